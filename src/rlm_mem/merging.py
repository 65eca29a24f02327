"""The marks that git leaves in a file where a merge could not choose between two versions."""

from __future__ import annotations

import re

MERGE_CONFLICT = "two versions stand between the marks of a merge conflict: keep one, remove the marks"

_MARK = re.compile(r"^(?=(?:<<<<<<<|>>>>>>>) )", re.MULTILINE)
_MARK_IN_BYTES = re.compile(_MARK.pattern.encode(), re.MULTILINE)


def in_conflict(text: str | bytes) -> bool:
    """Whether a text has a line that begins like one of these marks."""
    return (_MARK if isinstance(text, str) else _MARK_IN_BYTES).search(text) is not None  # type: ignore[arg-type]


def without_marks(text: str) -> str:
    """The text with a space before each such line: a memory may quote a merge conflict."""
    return _MARK.sub(" ", text)
