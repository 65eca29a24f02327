"""The audit log of a store folder: ``log/YYYY-MM.jsonl`` for changes, ``log/reads-YYYY-MM.jsonl`` for reads.

The format is specified in docs/spec/store-layout.md, Audit log.
"""

from __future__ import annotations

import fnmatch
import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import merge
from pathlib import Path
from typing import Annotated, Any

import msgspec

from rlm_mem.chunk import format_time, parse_time
from rlm_mem.lazy import logger
from rlm_mem.store.core import files
from rlm_mem.store.core.brain_files import concerned, parse_event
from rlm_mem.store.core.changes import Rewriting
from rlm_mem.store.core.files import make_folder
from rlm_mem.store.core.records import log_events

_audit_logger = logger("rlm_mem.audit")
_READS = frozenset({"read", "recall", "reason", "session"})
"""Operations that change no memory. Their events are in separate files, which git ignores: otherwise no commit
could be checked out after a recall."""
_MONTH = "????-??.jsonl"
_TAIL_BYTES = 262_144
"""Number of bytes that ``latest`` reads from the end of a month's file: some thousand lines."""


class _Event(msgspec.Struct):
    """The keys of an event that are evaluated here and by an undo."""

    ts: Annotated[str, msgspec.Meta(pattern=r"^\d{4}")]
    op: str
    ns: str | None = None
    chunk_id: str | None = None
    chunk_ids: list[str] | None = None
    change: str | None = None
    undoes: str | None = None
    namespaces: list[str] | None = None
    files: list[str] | None = None


def _is_sound(event: dict[str, Any]) -> bool:
    """Return whether the keys of an event have values of their kinds: its line may have been edited by hand."""
    try:
        msgspec.convert(event, _Event)
    except msgspec.ValidationError:
        return False
    return True


class EventLog:
    """Appends and reads the audit log.

    If the clock is set back, lines are still appended to the newest file, so that they keep their order.
    A line is written with one ``write`` call on a file opened for appending, so lines of several processes do not
    interleave. A torn last line (power cut, full disk) is skipped by the reader, and never joined to the next one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def append(self, events: Sequence[dict[str, Any]]) -> None:
        """Append events, each with at least ``ts`` and ``op``.

        Raises:
            StorageError: they cannot be written.
        """
        reads = [event for event in events if event.get("op") in _READS]
        changes = [event for event in events if event.get("op") not in _READS]
        for some, prefix in ((changes, ""), (reads, "reads-")):
            if some:
                path, _, lines = self.prepared(some, prefix)
                self.write(path, lines)
        log_events(events)

    def prepared(self, events: Sequence[dict[str, Any]], prefix: str = "") -> tuple[str, int, bytes]:
        """Return the path of the file for these events, its size, and their lines."""
        lines, name = bytearray(), ""
        for event in events:
            lines += msgspec.json.encode(event) + b"\n"
            name = max(name, f"{prefix}{format_time(parse_time(event['ts']))[:7]}.jsonl")
        try:
            present = os.listdir(self._folder)  # noqa: PTH208 - names alone, at every write
            name = max([name, *fnmatch.filter(present, f"{prefix}{_MONTH}")])
            size = os.stat(f"{self._folder}/{name}").st_size
        except OSError:  # the file does not exist yet; any other reason is raised by the write
            size = 0
        return f"{self._folder}/{name}", size, bytes(lines)

    def write(self, path: str, lines: bytes) -> None:
        """Append lines to a file.

        Raises:
            StorageError: they cannot be written; none of them is kept, unless another process wrote meanwhile.
        """
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        written = 0
        try:
            try:
                descriptor = os.open(path, flags, 0o644)
            except (FileNotFoundError, NotADirectoryError):
                make_folder(self._folder)
                descriptor = os.open(path, flags, 0o644)
            try:
                if end := os.lseek(descriptor, 0, os.SEEK_END):
                    os.lseek(descriptor, end - 1, os.SEEK_SET)
                    if os.read(descriptor, 1) != b"\n":
                        lines = b"\n" + lines
                while written < len(lines):  # more than once only where the disk is full, for its reason
                    written += os.write(descriptor, lines[written:])
            finally:
                os.close(descriptor)
        except OSError as error:
            if written:
                self.withdraw(path, lines[:written])
            files.translate(error, path)

    def complete(self, path: Path, size: int, lines: bytes) -> None:
        """Append the lines of an interrupted write, unless they were appended since the file had this size."""
        if not (path.exists() and lines in path.read_bytes()[size:]):
            self.write(str(path), lines)

    def withdraw(self, path: str, lines: bytes) -> None:
        """Remove the lines of a write that failed after all, unless others were appended meanwhile."""
        try:
            with Path(path).open("r+b") as file:
                start = max(0, file.seek(0, os.SEEK_END) - len(lines))
                file.seek(start)
                if file.read() == lines:
                    file.truncate(start)
        except OSError as error:
            _audit_logger.error("audit log %s: %s", path, error)

    def read(
        self,
        *,
        since: str | None = None,
        op: str | None = None,
        chunk_id: str | None = None,
        namespace: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield events in the order they were written; ``since`` is an ISO time or a prefix of one."""
        parts = [
            self._read(self._months(prefix), since, op, chunk_id, namespace) for prefix in ("", "reads-")
        ]
        return merge(*parts, key=lambda event: str(event.get("ts", "")))

    def _months(self, prefix: str = "") -> list[Path]:
        return sorted(self._folder.glob(f"{prefix}{_MONTH}")) if self._folder.is_dir() else []

    @staticmethod
    def _read(
        paths: Iterable[Path], since: str | None, op: str | None, chunk_id: str | None, namespace: str | None
    ) -> Iterator[dict[str, Any]]:
        for path in paths:
            if since is not None and path.stem[-7:] < since[:7]:
                continue
            try:
                with path.open("rb") as lines:
                    for line in lines:
                        event = parse_event(line)
                        if event is None or (since is not None and str(event.get("ts", "")) < since):
                            continue
                        if op is not None and event.get("op") != op:
                            continue
                        if namespace is not None and event.get("ns") != namespace:
                            continue
                        if not _is_sound(event):  # last of all that is cheap: it takes as long as the parsing
                            continue
                        if chunk_id not in (None, event.get("chunk_id"), *(event.get("chunk_ids") or ())):
                            continue
                        yield event
            except FileNotFoundError:
                continue  # removed after it was listed
            except OSError as error:
                raise files.unreadable(path, error) from error

    def rewrite(self, namespace: str, rewriting: Rewriting, *, dry_run: bool) -> int:
        """Replace lines of a namespace; return how many."""

        def replaced(_: bytes, event: dict[str, Any] | None) -> bytes | None:
            if event is None or event.get("ns") != namespace or not _is_sound(event):
                return None
            made = rewriting.event(event)
            return None if made is None else msgspec.json.encode(made) + b"\n"

        return self._replace_lines(replaced, rewriting.concerns, dry_run=dry_run)

    def rewrite_strays(self, namespaces: Collection[str], rewriting: Rewriting, *, dry_run: bool) -> int:
        """Replace lines that cannot be read, or are of none of these namespaces; return how many."""

        def replaced(line: bytes, event: dict[str, Any] | None) -> bytes | None:
            is_known = event is not None and _is_sound(event) and event.get("ns") in namespaces
            return None if is_known else rewriting.stray_line(line)

        return self._replace_lines(replaced, rewriting.concerns, dry_run=dry_run)

    def _replace_lines(
        self,
        replaced: Callable[[bytes, dict[str, Any] | None], bytes | None],
        concerns: Callable[[bytes], bool],
        *,
        dry_run: bool,
    ) -> int:
        count = 0
        for path in [*self._months(), *self._months("reads-")]:
            try:
                lines = path.read_bytes().splitlines(keepends=True)
            except OSError as error:
                raise files.unreadable(path, error) from error
            changed = False
            for place in concerned(lines, concerns):
                line = lines[place]
                made = replaced(line, parse_event(line))
                if made is not None:
                    lines[place], changed, count = made, True, count + 1
            if changed and not dry_run:
                files.write_atomic(path, b"".join(lines))
        return count

    def latest(self, namespace: str, operations: frozenset[str]) -> dict[str, Any] | None:
        """Return the newest event of these operations at the end of the last two months' files, or None."""
        found = []
        for prefix in ("reads-", "") if operations & _READS else ("",):
            event = self._latest(self._months(prefix)[-2:], namespace, operations)
            found += [event] if event is not None else []
        return max(found, key=lambda event: str(event.get("ts", "")), default=None)

    @staticmethod
    def _latest(paths: Sequence[Path], namespace: str, operations: frozenset[str]) -> dict[str, Any] | None:
        for path in reversed(paths):
            for line in reversed(_tail(path)):
                event = parse_event(line)
                if (
                    event is not None
                    and _is_sound(event)
                    and event.get("op") in operations
                    and event.get("ns", namespace) == namespace
                ):
                    return event
        return None


def _tail(path: Path) -> deque[bytes]:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            lines = deque(file.read().splitlines())
    except OSError:  # rotated away, or not readable: no event is known
        return deque()
    if size > _TAIL_BYTES and lines:
        lines.popleft()  # the tail begins in the middle of a line
    return lines
