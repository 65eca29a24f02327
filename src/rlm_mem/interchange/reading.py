"""Reads one file in bounded memory: as text, as JSON lines, or as the entries of a JSON array one at a time."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from typing import Any, BinaryIO

from msgspec import field

from rlm_mem.chunk import format_time, from_epoch, parse_time
from rlm_mem.errors import InvalidChunk
from rlm_mem.interchange.places import Entry, Place, Unreadable
from rlm_mem.record import MutableRecord

_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


class SourceFile(MutableRecord):
    """A file of a source, to be read by a format.

    Args:
        place, entry: the source and the file in it.
        names: every file name of the source.
        conversation: the conversation of its text if the file names none.
        max_text: maximum size of one text in bytes.
        data: its bytes, if already read.
        moved: called with the number of bytes of each read.
        problem: called with the location of each unreadable part, and the reason.
    """

    place: Place
    entry: Entry
    conversation: str
    max_text: int = 8_388_608
    names: Set[str] = frozenset()
    data: bytes | None = None
    moved: Callable[[int], None] = field(default=lambda _count: None)
    problem: Callable[[str, str], None] = field(default=lambda _where, _reason: None)

    @property
    def where(self) -> str:
        """The name of the file in reports."""
        return self.place.name(self.entry)

    @property
    def modified_at(self) -> str:
        """The time of the file's last change."""
        return format_time(from_epoch(max(0.0, self.entry.modified)))

    @contextmanager
    def opened(self) -> Iterator[Counted]:
        """Open the file from its beginning; raises Unreadable."""
        handle = self.place.open(self.entry) if self.data is None else BytesIO(self.data)
        counted = Counted(handle, self.moved)
        try:
            yield counted
        finally:
            handle.close()
        if counted.undecodable:
            self.problem(self.where, "characters that are not in UTF-8: they are replaced by \ufffd")


def moment(value: Any) -> str | None:
    """Parse a time in any usual form (ISO 8601, seconds or milliseconds since 1970), or return None."""
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
    """Replace lone surrogates, which cannot be stored."""
    return _SURROGATE.sub("\ufffd", text)


def text_lines(value: Any, limit: int = 1000) -> str:
    """Return a title, name or id as one line of storable text; may be empty."""
    return _CONTROL.sub(" ", value).strip()[:limit].strip() if isinstance(value, str) else ""


def whole_text(value: Any) -> str:
    """Return a text value as storable text without surrounding space; empty for any other value."""
    return clean(value).strip() if isinstance(value, str) else ""


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list; none for any other value."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def plain_tags(value: Any) -> list[str]:
    """Return tags from a list, or from words in brackets or separated by commas; invalid tags are left out."""
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


MAX_ENTRY = 128 * 1024 * 1024  # characters of one array entry, or bytes of one line
_BLOCK = 256 * 1024
_SPACE = re.compile(r"[\s,]*")
_DECODER = json.JSONDecoder(strict=False)


class Counted:
    """A file reader that reports the number of bytes read, for progress bars.

    Attributes:
        undecodable: whether characters were replaced because they are not in the encoding of the file.
    """

    def __init__(self, handle: BinaryIO, moved: Callable[[int], None]) -> None:
        self._handle = handle
        self._moved = moved
        self.undecodable = False

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes."""
        return self._counted(self._handle.read(size))

    def readline(self, size: int) -> bytes:
        """Read to the end of the line, at most ``size`` bytes."""
        return self._counted(self._handle.readline(size))

    def _counted(self, data: bytes) -> bytes:
        self._moved(len(data))
        return data


def encoding_of(data: bytes) -> str:
    """Return the encoding of a text by its first bytes: UTF-16 if it begins with its byte order mark, else UTF-8."""
    return "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def read_text(handle: Counted, limit: int) -> str:
    """Read a whole file as text (UTF-8, or UTF-16 with its mark); raises Unreadable if it is not text or too long."""
    data = handle.read(limit + 1)
    if len(data) > limit:
        raise Unreadable(f"larger than {limit:,} bytes")
    try:
        return data.decode(encoding_of(data))
    except UnicodeDecodeError as error:
        raise Unreadable(f"not text in UTF-8 (byte {error.start:,})") from None


def json_lines(handle: Counted | BinaryIO) -> Iterator[tuple[int, Any | Unreadable]]:
    """Yield number (from 1) and value of each line that is not empty; an unreadable value is an Unreadable."""
    number = 0
    while True:
        line = handle.readline(MAX_ENTRY)
        if not line:
            return
        number += 1
        if len(line) == MAX_ENTRY and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = handle.readline(_BLOCK)
            yield number, Unreadable(f"a line of more than {MAX_ENTRY:,} bytes")
            continue
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        if line.strip():
            yield number, _value(line)


def _value(line: bytes) -> Any | Unreadable:
    try:
        return json.loads(line.decode("utf-8"), strict=False)
    except UnicodeDecodeError:
        return Unreadable("not text in UTF-8")
    except RecursionError:
        return Unreadable("JSON that is nested too deeply")
    except ValueError as error:
        return Unreadable(f"not JSON: {error}")


Objects = Iterator[tuple[str, dict[str, Any]]]
"""JSON objects of a file, each with its location; any other entry of the file is reported as a problem."""


def line_objects(file: SourceFile) -> Objects:
    """Yield the objects of JSON lines."""
    with file.opened() as handle:
        yield from _objects(file, json_lines(handle), "line")


def entry_objects(file: SourceFile, inside: tuple[str, ...]) -> Objects:
    """Yield the objects of a JSON array, or of arrays in one object; ``inside``: keys under which they may be."""
    with file.opened() as handle:
        yield from _objects(file, json_entries(handle, inside=inside), "entry")


def json_records(file: SourceFile, inside: tuple[str, ...]) -> Objects:
    """Yield the objects of JSON lines or of a JSON array, by the suffix of the file's name."""
    is_lines = file.entry.name.lower().endswith((".jsonl", ".ndjson"))
    return line_objects(file) if is_lines else entry_objects(file, inside)


def _objects(file: SourceFile, entries: Iterable[tuple[int, Any]], unit: str) -> Objects:
    for number, entry in entries:
        where = f"{file.where}, {unit} {number}"
        if isinstance(entry, Unreadable):
            file.problem(where, str(entry))
        elif not isinstance(entry, dict):
            file.problem(where, f"an object was expected, not {type(entry).__name__}")
        else:
            yield where, entry


def json_entries(handle: Counted, *, inside: tuple[str, ...] = ()) -> Iterator[tuple[int, Any | Unreadable]]:
    """Yield the entries of the array in a file, by number from 1; for a single object, the object itself.

    One entry and one block are in memory at a time. Entries after a malformed one cannot be separated and are not
    read.

    Args:
        inside: keys under which the array may be if the file contains an object around it.
    """
    text = _TextWindow(handle)
    text.skip()
    first = text.peek()
    if first == "[":
        text.start += 1
        yield from _array(text)
    elif first == "{":
        yield from _object(text, inside)
    else:
        yield 1, Unreadable("not JSON" if first else "empty")


class _TextWindow:
    """A window over the file's text that is extended at its end and cut at its beginning."""

    def __init__(self, handle: Counted) -> None:
        self._handle = handle
        self._decoder: codecs.IncrementalDecoder | None = None
        self.window = ""
        self.start = 0
        self.ended = False
        self.broken = False

    def more(self) -> bool:
        """Read at least as much as the window has, so that an entry of any size is parsed only a few times."""
        if self.ended:
            return False
        unread = len(self.window) - self.start
        data = self._handle.read(max(_BLOCK, unread))
        self.ended = not data
        self.window = self.window[self.start :] + self._decoded(data)
        self.start = 0
        return True

    def _decoded(self, data: bytes) -> str:
        if self._decoder is None:
            self._decoder = codecs.getincrementaldecoder(encoding_of(data))()
        try:
            return self._decoder.decode(data, final=self.ended)
        except UnicodeDecodeError:
            self._handle.undecodable, self._decoder.errors = True, "replace"
            return self._decoder.decode(data, final=self.ended)

    def skip(self) -> None:
        """Advance to the next character that is neither space nor comma."""
        while True:
            found = _SPACE.match(self.window, self.start)
            self.start = found.end() if found else self.start
            if self.start < len(self.window) or not self.more():
                return

    def peek(self) -> str:
        """Return the current character, or an empty text at the end."""
        return self.window[self.start : self.start + 1]

    def value(self) -> Any:
        """Parse the JSON value that begins here; raises Unreadable."""
        while True:
            try:
                value, end = _DECODER.raw_decode(self.window, self.start)
            except RecursionError:
                raise Unreadable("JSON that is nested too deeply") from None
            except json.JSONDecodeError as error:
                # An error at the end of the window may be due to missing text; any other means malformed JSON.
                near_end = error.pos >= len(self.window) - 16 or error.msg.startswith("Unterminated string")
                if self.ended or not near_end:
                    raise Unreadable(
                        "cut off: the file ends in the middle"
                        if self.ended and near_end
                        else f"not JSON: {error.msg}"
                    ) from None
            except ValueError as error:  # a number with more digits than Python converts
                raise Unreadable(f"not JSON: {error}") from None
            else:
                if end < len(self.window) or self.ended:
                    self.start = end
                    return value
            if len(self.window) - self.start > MAX_ENTRY:
                raise Unreadable(f"an entry of more than {MAX_ENTRY:,} characters")
            self.more()


def _array(text: _TextWindow) -> Iterator[tuple[int, Any | Unreadable]]:
    number = 0
    while True:
        text.skip()
        if text.peek() == "]":
            return
        number += 1
        if not text.peek():
            text.broken = True
            yield number, Unreadable("cut off: the array is not closed")
            return
        try:
            value = text.value()
        except Unreadable as error:
            text.broken = True
            yield number, Unreadable(f"{error}; what follows is not read")
            return
        yield number, value


def _object(text: _TextWindow, inside: tuple[str, ...]) -> Iterator[tuple[int, Any | Unreadable]]:
    """Scan the keys of the outer object: an array under a wanted key is streamed, other values are skipped."""
    kept: dict[str, Any] = {}
    text.start += 1
    streamed = False
    try:
        while True:
            text.skip()
            if text.peek() in ("}", ""):
                break
            key = text.value()
            text.skip()
            if text.peek() != ":":
                raise Unreadable("not JSON: a key without a value")
            text.start += 1
            text.skip()
            if key in inside and text.peek() == "[":
                text.start += 1
                streamed = True
                yield from _array(text)
                if text.broken:
                    return
                text.skip()
                text.start += 1
            else:
                kept[str(key)] = text.value()
    except Unreadable as error:
        yield 1, Unreadable(f"{error}; what follows is not read")
        return
    if not streamed:
        yield 1, kept
