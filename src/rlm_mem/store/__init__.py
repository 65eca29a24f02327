"""Storage of chunks.

``core`` is shared by every backend: ``ChunkStore`` (``core.chunk_store``), the ``Backend`` protocol and the plain data
of both. ``local`` keeps chunks as JSON files with a SQLite index beside them; ``postgres`` keeps them as rows.
Text analysis comes from ``rlm_mem.text``; ranking belongs to ``rlm_mem.search``.
"""

from __future__ import annotations
