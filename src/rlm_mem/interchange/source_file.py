"""One file of a place, as its reader sees it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rlm_mem.chunk import format_time, parse_time
from rlm_mem.errors import InvalidChunk
from rlm_mem.interchange.places import Entry, Place
from rlm_mem.interchange.reading import Counted

__all__ = ["SourceFile", "clean", "moment", "plain_tags", "text_lines"]

_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


@dataclass
class SourceFile:
    """A file to read.

    Args:
        place, entry: where it is.
        names: every file name of the place.
        conversation: the conversation that its text belongs to when nothing else is said.
        max_text: bytes that one text may have.
        moved: told how many bytes were read.
    """

    place: Place
    entry: Entry
    conversation: str
    max_text: int = 8_388_608
    names: Set[str] = frozenset()
    moved: Callable[[int], None] = field(default=lambda _count: None)

    @property
    def where(self) -> str:
        """The file as a person would name it."""
        return self.place.name(self.entry)

    @property
    def modified_at(self) -> str:
        """When the file was last changed."""
        return format_time(datetime.fromtimestamp(max(0.0, self.entry.modified), UTC))

    @contextmanager
    def opened(self) -> Iterator[Counted]:
        """The bytes of the file from its beginning; raises Unreadable."""
        handle = self.place.open(self.entry)
        try:
            yield Counted(handle, self.moved)
        finally:
            handle.close()


def moment(value: Any) -> str | None:
    """A time in any usual form (ISO 8601, seconds or milliseconds since 1970), or None."""
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            seconds = value / 1000 if abs(value) > 1e11 else float(value)
            return format_time(datetime.fromtimestamp(seconds, UTC))
        if isinstance(value, str) and value.strip():
            return format_time(parse_time(value))
    except (InvalidChunk, ValueError, OverflowError, OSError):
        return None
    return None


def clean(text: str) -> str:
    """The text with lone surrogates, which no file can hold, replaced."""
    return _SURROGATE.sub("\ufffd", text)


def text_lines(value: Any, limit: int = 1000) -> str:
    """A title, name or id as one line of storable text; may be empty."""
    return _CONTROL.sub(" ", value).strip()[:limit].strip() if isinstance(value, str) else ""


def plain_tags(value: Any) -> list[str]:
    """Tags from a list, or from words in brackets or with commas between; what cannot be one is left out."""
    if isinstance(value, str):
        value = value.strip().removeprefix("[").removesuffix("]").split(",")
    if not isinstance(value, list | tuple):
        return []
    cleaned = (
        text_lines(str(tag), 200).strip("\"' ").removeprefix("#")
        for tag in value
        if isinstance(tag, str | int | float)
    )
    return list(dict.fromkeys(tag for tag in cleaned if tag))[:1000]
