"""Files that projects keep for coding agents: instructions and rules, memory banks, and records of decisions.

They are recognised by their paths, which are those that the tools document in 2026: ``CLAUDE.md`` and
``.claude/rules`` of Claude Code, ``AGENTS.md`` (agents.md), ``GEMINI.md``, the rules of Cursor, Cline, Roo Code,
Windsurf, Copilot and others; the ``memory-bank`` of Cline, Roo Code and Cursor; numbered records in ``adr`` or
``decisions``. As in Claude Code, comments (``<!-- … -->``) outside of code are left out. Lines that import another file
(``@style.md``) are kept unchanged: no file is read because another one names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Literal

from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.formats.notes import read_note
from rlm_mem.interchange.reading import SourceFile, clean, moment, plain_tags, read_text
from rlm_mem.interchange.records import ImportProblem, Note, Record

Kind = Literal["instructions", "memory-bank", "decision"]

_NAMES = {
    "claude.md", "claude.local.md", "agents.md", "agents.override.md", "gemini.md", "copilot-instructions.md",
    ".cursorrules", ".clinerules", ".windsurfrules",
}  # fmt: skip
_RULES = {
    ".cursor": "rules", ".claude": "rules", ".clinerules": "", ".roo": "rules", ".windsurf": "rules",
    ".kilocode": "rules", ".github": "instructions", ".continue": "rules", ".kiro": "steering", ".amazonq": "rules",
}  # fmt: skip
"""Hidden folders of tools, and the folder in each that holds the rules; empty: it holds them itself."""
_BANKS = {"memory-bank", "memory_bank", ".memory-bank"}
_BANK_FILES = {
    "projectbrief.md", "productContext.md", "activeContext.md", "systemPatterns.md", "techContext.md",
    "decisionLog.md",
}  # fmt: skip
"""Names that only a memory bank has, wherever it is."""
_DECISIONS = {"adr", "adrs", "decisions", "architecture-decisions", "decision-records"}
_NUMBERED = re.compile(r"(?:adr[-_ ]?)?\d{1,8}[-_ .]", re.IGNORECASE)
_TEXTS = {".md", ".mdc", ".markdown", ".txt"}
_DATE = re.compile(
    r"^[*\-> \t]{0,8}(?:\*\*|__)?date(?:\*\*|__)?:(?:\*\*|__)?[ \t]*(\d{4}-\d\d-\d\d)\b", re.M | re.I
)
_ENDED = re.compile(
    r"^[#*\-> \t]{0,8}(?:\*\*)?status(?:\*\*)?:?(?:\*\*)?\s{0,4}[*\-\"'~]{0,3}[ \t]?"
    r"(?:superseded|superceded|replaced|deprecated|rejected|obsolete)\b",
    re.MULTILINE | re.IGNORECASE,
)
_MAX_HEAD = 2_000  # characters in which date and status of a decision stand


def kind_of(path: str) -> Kind | None:
    """Return what a file of this path, relative to its project, is for agents; None for any other file."""
    *folders, name = PurePosixPath(path).parts or ("",)
    if PurePosixPath(name).suffix.lower() not in (*_TEXTS, ""):
        return None
    if name.lower() in _NAMES:
        return "instructions"
    if not PurePosixPath(name).suffix or name.startswith("."):
        return None
    if name in _BANK_FILES or not _BANKS.isdisjoint(folders):
        return "memory-bank"
    if name.endswith(".mdc") or any(
        _holds_rules(folders[place:]) for place, one in enumerate(folders) if one in _RULES
    ):
        return "instructions"
    return "decision" if folders and folders[-1].lower() in _DECISIONS and _NUMBERED.match(name) else None


def may_hold(folder: str) -> bool:
    """Return whether a folder of this path has, or leads to, files for agents although a part of it is hidden."""
    parts = PurePosixPath(folder).parts
    hidden = next((place for place, one in enumerate(parts) if one.startswith(".")), None)
    if hidden is None or parts[hidden] in _BANKS:
        return True
    return parts[hidden] in _RULES and (len(parts) == hidden + 1 or _holds_rules(parts[hidden:]))


def _holds_rules(parts: list[str] | tuple[str, ...]) -> bool:
    """Whether a path that begins with the hidden folder of a tool is in its folder of rules (``rules-code`` of Roo)."""
    rules = _RULES[parts[0]]
    return not rules or (len(parts) > 1 and (parts[1] == rules or parts[1].startswith(f"{rules}-")))


def read_agent_file(file: SourceFile, kind: Kind) -> Iterator[Record]:
    """Read a file for agents as a note: its kind is a tag, of a memory bank also the file's name, and each section
    of it a memory of its own.

    A record of a decision stays whole, has the type ``decision``, and the date that it states. If its status says that
    it no longer holds, its validity ends with the last change of the file.
    """
    for record in read_note(file):
        if not isinstance(record, Note):
            yield record
            continue
        text = _without_comments(record.text)
        if not text.strip():
            yield ImportProblem(file.where, "empty but for comments")
            continue
        stem = [PurePosixPath(file.entry.name).stem] if kind == "memory-bank" else []
        tags = list(dict.fromkeys([*record.tags, kind, *plain_tags(stem)]))
        if kind != "decision":
            yield replace(record, text=text, tags=tags, sections=True)
            continue
        with file.opened() as handle:
            head = clean(read_text(handle, file.max_text))[:_MAX_HEAD]  # with the front matter
        dated = _DATE.search(head)
        at = (moment(dated[1]) if dated else None) or record.at
        extra: dict[str, Any] = {**record.extra, "type": "decision"}
        if _ENDED.search(head):
            extra["valid_to"] = max(file.modified_at, at or "")
        yield replace(record, text=text, tags=tags, at=at, extra=extra)


def _without_comments(text: str) -> str:
    kept: list[str] = []
    fence = ""
    inside = False
    for line in text.splitlines(keepends=True):
        start = line.lstrip()
        if inside:
            inside = "-->" not in line
            continue
        if fence:
            if start.startswith(fence):
                fence = ""
        elif start.startswith(("```", "~~~")):
            fence = start[:3]
        elif start.startswith("<!--"):
            _, end, after = line.partition("-->")
            inside = not end
            if after.strip():
                kept.append(after.lstrip())
            continue
        kept.append(line)
    return "".join(kept)


def _path_of(head: FileHead) -> str:
    return f"{head.folder}/{head.name}" if head.folder else head.name


def _sniff(head: FileHead) -> Claim:
    return Claim.LIKELY if kind_of(_path_of(head)) is not None and head.text.strip() else Claim.NO


def kind_in(file: SourceFile) -> Kind | None:
    """Return what a file of a source is for agents, by the name of the source and its path in that."""
    return kind_of(f"{file.place.path.name}/{file.entry.name}")


def _read(file: SourceFile) -> Iterator[Record]:
    return read_agent_file(
        file, kind_in(file) or "instructions"
    )  # a file of another name is read by --format


FORMAT = Format("instructions", _sniff, _read, "instructions, memory banks and decisions for coding agents")
