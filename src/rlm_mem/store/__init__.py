"""Where chunks live: files as the truth, an index that files can rebuild, integrity checks.

``api`` is the documented ChunkStore; ``backend`` the protocol under it; ``local`` the files-and-SQLite backend. Text
analysis comes from ``rlm_mem.text``; ranking does not belong here (``rlm_mem.search``).
"""

from __future__ import annotations
