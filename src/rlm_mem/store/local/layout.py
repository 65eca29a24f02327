"""Where things lie in the folder of a local store (docs/spec/store-layout.md)."""

from __future__ import annotations

import os
from pathlib import Path

from rlm_mem.chunk import check_chunk_id

__all__ = ["Layout"]


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
