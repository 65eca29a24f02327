"""The folder of a local store: where files lie, former versions, the audit log (docs/spec/store-layout.md)."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rlm_mem.chunk import Chunk, check_chunk_id, decode_chunk
from rlm_mem.errors import InvalidChunk
from rlm_mem.store.core.brain_files import parse_event
from rlm_mem.store.core.files import make_folder
from rlm_mem.store.core.records import Version

__all__ = ["REDO_SUFFIX", "EventLog", "Layout", "former_versions", "read_version_file"]

_logger = logging.getLogger("rlm_mem.store")

REDO_SUFFIX = ".redo"
"""Ending of the record of a write of several files."""


class Layout:
    """Paths below the base folder; those kept in the index are relative, with forward slashes."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.chunks = base / "chunks"
        """Active chunks, by month."""
        self.archive = base / "archive"
        """Soft-deleted chunks; ``versions/`` below it holds former versions."""
        self.index = base / "index"
        """Everything that can be rebuilt from files."""
        self.database = self.index / "index.sqlite"
        """The SQLite index."""
        self.unfinished = base / ".tmp"
        """Files on their way in or out; what a killed process left there is dealt with at the next open."""
        self.log = base / "log"
        """Append-only event files by month."""

    def index_size_mb(self) -> float:
        """Size of the SQLite index in megabytes; 0 where there is none."""
        return round(self.database.stat().st_size / 1e6, 3) if self.database.exists() else 0.0

    def chunk_path(self, chunk_id: str, created_at: str) -> str:
        """Relative path of an active chunk: ``chunks/YYYY-MM/ID.json``."""
        return f"chunks/{created_at[:7]}/{check_chunk_id(chunk_id)}.json"

    def archive_path(self, chunk_id: str) -> str:
        """Relative path of a soft-deleted chunk."""
        return f"archive/{check_chunk_id(chunk_id)}.json"

    def versions(self, chunk_id: str) -> Path:
        """Folder of a chunk's former versions, ``{revision}.json`` each."""
        return self.archive / "versions" / check_chunk_id(chunk_id)

    def absolute(self, relative: str) -> Path:
        """The file behind a relative path of the index."""
        return Path(f"{self.base}/{relative}")

    def is_interrupted(self) -> bool:
        """Whether a killed process left the record of a write that is to be finished (see ``redo``)."""
        try:
            with os.scandir(self.unfinished) as entries:
                for entry in entries:
                    if entry.name.endswith(REDO_SUFFIX):
                        return True
        except FileNotFoundError:  # no write was ever begun
            pass
        return False

    def relative(self, path: Path) -> str:
        """The path as it is recorded: relative to the base, ``../…`` for a file of the brain around it."""
        return os.path.relpath(path, self.base).replace(os.sep, "/")

    def folders(self) -> list[str]:
        """Relative paths of every folder that holds chunk files now."""
        found = []
        if self.chunks.is_dir():
            found += [f"chunks/{entry.name}" for entry in sorted(self.chunks.iterdir()) if entry.is_dir()]
        if self.archive.is_dir():
            found.append("archive")
        return found


def read_version_file(path: Path) -> Chunk:
    """Read a former version (its file is named after the revision, not the chunk)."""
    return decode_chunk(path.read_bytes())


def former_versions(layout: Layout, chunk_id: str, *, below: int) -> list[Version]:
    """Kept versions with a revision under ``below``, oldest first; unreadable ones are logged and left out."""
    found: list[Version] = []
    folder = layout.versions(chunk_id)
    if not folder.is_dir():
        return found
    for path in folder.glob("*.json"):
        if not path.stem.isdigit() or int(path.stem) >= below:
            continue
        try:
            chunk = read_version_file(path)
        except (InvalidChunk, OSError) as error:
            _logger.error("unreadable former version %s: %s", path, error)
            continue
        found.append(Version(int(path.stem), chunk.metadata.modified_at, chunk))
    return sorted(found, key=lambda version: version.revision)


_audit_logger = logging.getLogger("rlm_mem.audit")
_TAIL_BYTES = 262_144
"""Of a month's file that ``latest`` looks at: some thousand lines."""


class EventLog:
    """Appends and reads ``log/YYYY-MM.jsonl``.

    A line is written with one ``write`` call on a file opened for appending, so lines of several processes do not
    mix. A torn last line (power cut) is skipped by the reader.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def append(self, events: Sequence[dict[str, Any]]) -> None:
        """Write events, each with at least ``ts`` and ``op``; failures are logged, not raised.

        The operation itself is done by then: refusing to return would report a failure that did not happen.
        """
        if not events:
            return
        by_month: dict[str, list[bytes]] = {}
        for event in events:
            _audit_logger.info(
                "%s %s", event.get("op"), event.get("chunk_id") or event.get("chunk_ids") or ""
            )
            by_month.setdefault(str(event["ts"])[:7], []).append(msgspec.json.encode(event) + b"\n")
        for month, lines in by_month.items():
            path = self._folder / f"{month}.jsonl"
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            try:
                try:
                    descriptor = os.open(path, flags, 0o644)
                except FileNotFoundError:
                    make_folder(path.parent)
                    descriptor = os.open(path, flags, 0o644)
                try:
                    os.write(descriptor, b"".join(lines))
                finally:
                    os.close(descriptor)
            except OSError as error:
                _audit_logger.error("audit log %s: %s", month, error)

    def read(
        self,
        *,
        since: str | None = None,
        op: str | None = None,
        chunk_id: str | None = None,
        namespace: str | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Events in the order they were written; ``since`` is an ISO time or a prefix of one."""
        if not self._folder.is_dir():
            return
        for path in sorted(self._folder.glob("????-??.jsonl")):
            if since is not None and path.stem < since[:7]:
                continue
            with path.open("rb") as lines:
                for line in lines:
                    event = parse_event(line)
                    if event is None or (since is not None and str(event.get("ts", "")) < since):
                        continue
                    if op is not None and event.get("op") != op:
                        continue
                    if namespace is not None and event.get("ns") != namespace:
                        continue
                    if chunk_id is not None and not _mentions(event, chunk_id):
                        continue
                    yield event

    def latest(self, namespace: str, operations: frozenset[str]) -> dict[str, Any] | None:
        """The newest line of these operations at the end of the last two months; None where there is none."""
        months = sorted(self._folder.glob("????-??.jsonl"), reverse=True)[:2] if self._folder.is_dir() else []
        for path in months:
            for line in reversed(_tail(path)):
                event = parse_event(line)
                if (
                    event is not None
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
    except OSError:  # rotated away, or not ours to read: no event is known then
        return deque()
    if size > _TAIL_BYTES and lines:
        lines.popleft()  # the tail begins in the middle of a line
    return lines


def _mentions(event: dict[str, Any], chunk_id: str) -> bool:
    return event.get("chunk_id") == chunk_id or chunk_id in (event.get("chunk_ids") or ())
