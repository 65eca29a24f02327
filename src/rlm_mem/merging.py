"""Faults of files that git merged or did not fetch, or a person edited: conflict markers, pointers, invalid JSON."""

from __future__ import annotations

import re

MERGE_CONFLICT = "has merge conflict markers: keep one of the two versions and remove the markers"
MEMORIES_IN_CONFLICT = (
    "has merge conflict markers: rlm-mem store repair --apply keeps the memories of both sides; of one that both "
    "changed, keep one version and remove the markers"
)
NOT_FETCHED = "is only a pointer of Git LFS to the file: run git lfs pull"

_POINTER = b"version https://git-lfs."
_MARK = re.compile(r"^(?=(?:<<<<<<<|>>>>>>>) )", re.MULTILINE)
_MARKS_IN_ORDER = (b"<<<<<<< ", b"=======", b">>>>>>> ")
_MARKERS = (b"<<<<<<< ", b"|||||||", b"=======", b">>>>>>> ")
"""How the lines of a conflict begin, and no line of JSON."""
_MARK_IN_BYTES = re.compile(_MARK.pattern.encode(), re.MULTILINE)


def in_conflict(text: str | bytes) -> bool:
    """Whether a line of the text begins with a conflict marker."""
    return (_MARK if isinstance(text, str) else _MARK_IN_BYTES).search(text) is not None  # type: ignore[arg-type]


def sides(text: str) -> tuple[str, str]:
    """Return a text with conflicts as each of the two sides has it; unchanged, with its markers, if one has no end."""
    parts: dict[str, list[str]] = {"ours": [], "base": [], "theirs": []}
    place = "both"
    for line in text.split("\n"):
        if place == "both" and line.startswith("<<<<<<< "):
            place = "ours"
        elif place == "ours" and line.startswith("|||||||"):  # the common ancestor, if git is configured so
            place = "base"
        elif place in ("ours", "base") and line.rstrip("\r") == "=======":
            place = "theirs"
        elif place == "theirs" and line.startswith(">>>>>>> "):
            place = "both"
        elif place == "both":
            parts["ours"].append(line)
            parts["theirs"].append(line)
        else:
            parts[place].append(line)
    return ("\n".join(parts["ours"]), "\n".join(parts["theirs"])) if place == "both" else (text, text)


def without_conflict_lines(data: bytes) -> bytes:
    """Return a log without the markers of conflicts, that is, with the lines of both sides.

    Lines that only the common ancestor has, if git shows it, are left out: an erasure may have emptied them.
    """
    kept: list[bytes] = []
    base: list[bytes] | None = None
    for line in data.splitlines(keepends=True):
        if not line.startswith(_MARKERS):
            (kept if base is None else base).append(line)
        elif line.startswith(b"|||||||"):
            base = []
        else:
            kept += (
                base or () if not line.startswith(b"=======") else ()
            )  # an ancestor without an end is kept
            base = None
    return b"".join([*kept, *(base or ())])


def is_pointer(data: bytes) -> bool:
    """Whether Git LFS has written its pointer in place of a file that it has not fetched."""
    return data.startswith(_POINTER)


def json_fault(data: bytes, error: Exception) -> str:
    """Return why a file is not JSON, with the line of the fault where possible.

    Args:
        data: the content of the file.
        error: the error of msgspec, which has no line; used if the standard library accepts the file.
    """
    import json  # only for a damaged file

    if in_conflict(data):
        return MERGE_CONFLICT
    if is_pointer(data):
        return NOT_FETCHED
    try:
        json.loads(data)
    except RecursionError:
        return "not valid JSON: it is nested too deeply"
    except ValueError as precise:
        error = precise
    return f"not valid JSON: {error}"


def is_unmerged(data: bytes) -> bool:
    """Whether a file contains a complete conflict outside of fenced code, which may only quote one."""
    fence, seen = b"", 0
    for line in data.splitlines() if in_conflict(data) else ():
        begin = line.lstrip()[:3]
        if seen == 0 and begin in (b"```", b"~~~"):
            fence = b"" if fence == begin else fence or begin
        elif not fence and line.startswith(_MARKS_IN_ORDER[seen]):
            seen += 1
            if seen == len(_MARKS_IN_ORDER):
                return True
    return False


def without_marks(text: str) -> str:
    """Indent conflict markers by a space, so that a memory can quote a merge conflict."""
    return _MARK.sub(" ", text)
