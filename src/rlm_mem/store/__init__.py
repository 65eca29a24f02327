"""Storage of chunks: the store interface, its backends, and the checks and repairs.

``core`` is shared by every backend: ``ChunkStore`` (``core.chunk_store``), the ``Backend`` protocol and the plain
data of both. ``local`` stores chunks as JSON files with a SQLite index beside them; ``postgres`` stores them as
rows. Text analysis is in ``rlm_mem.text``; ranking is in ``rlm_mem.search``. The names below are loaded on first
use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.store.core.integrity import check as check, repair as repair

__getattr__, __all__ = loader(__name__, {"core.integrity": "check repair"})
