"""Storage of chunks.

``core`` is shared by every backend: ``ChunkStore`` (``core.chunk_store``), the ``Backend`` protocol and the plain data
of both. ``local`` keeps chunks as JSON files with a SQLite index beside them; ``postgres`` keeps them as rows.
Text analysis comes from ``rlm_mem.text``; ranking belongs to ``rlm_mem.search``.
The names below are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.store.core.integrity import check, repair

__all__ = ["check", "repair"]

__getattr__ = loader(__name__, {"core.integrity": ("check", "repair")})
