"""Former versions of a chunk, kept by every update under ``archive/versions/{id}/{revision}.json``."""

from __future__ import annotations

import logging

from rlm_mem.errors import InvalidChunk
from rlm_mem.store.core.answers import Version
from rlm_mem.store.local.layout import Layout
from rlm_mem.store.local.sync import read_version_file

__all__ = ["former_versions"]

_logger = logging.getLogger("rlm_mem.store")


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
