"""Highlights and notes of an e-reader: ``My Clippings.txt``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from rlm_mem.interchange import (
    Claim,
    FileHead,
    Format,
    ImportProblem,
    Note,
    SourceFile,
    clean,
    read_text,
    text_lines,
)

__all__ = ["FORMAT"]

_RULE = "=========="
_HEAD = re.compile(
    r"- Your (Highlight|Note|Bookmark)\b([^\n|]{0,80})(?:\|([^\n|]{0,80}))?\|? ?(?:Added on ([^\n]{0,60}))?"
)


def _sniff(head: FileHead) -> Claim:
    if head.suffix != ".txt":
        return Claim.NO
    second = head.text.lstrip("\ufeff\r\n ").split("\n", 2)[1:2]
    return Claim.SURE if second and _HEAD.match(second[0].strip()) else Claim.NO


def _read(file: SourceFile) -> Iterator[Note | ImportProblem]:
    """One note an entry; entries end with a line of ten equal signs."""
    with file.opened() as handle:
        text = clean(read_text(handle, file.max_text)).replace("\r\n", "\n").lstrip("\ufeff")
    for number, entry in enumerate(text.split(_RULE + "\n"), 1):
        where = f"{file.where}, entry {number}"
        lines = entry.strip().removesuffix(_RULE).strip().split("\n")
        if lines == [""]:
            continue
        head = _HEAD.match(lines[1].strip()) if len(lines) > 1 else None
        if head is None:
            yield ImportProblem(where, "no line `- Your Highlight …` below a title")
            continue
        said = "\n".join(lines[2:]).strip()
        kind, title = head[1].lower(), text_lines(lines[0])
        if kind == "bookmark":
            continue
        if not said:
            yield ImportProblem(where, f"a {kind} without text")
            continue
        place = text_lines(f"{head[2]} {head[3] or ''}")
        yield Note(
            key=f"{title}, {place}",
            conversation_id=f"kindle:{title}"[:900],
            text=said,
            where=where,
            at=_time(head[4]),
            tags=["kindle", kind],
            extra={"title": title, "place": place},
        )


def _time(text: str | None) -> str | None:
    try:
        return datetime.strptime((text or "").strip(), "%A, %d %B %Y %H:%M:%S").isoformat()
    except ValueError:
        return None


FORMAT = Format("kindle", _sniff, _read, "highlights of an e-reader")
