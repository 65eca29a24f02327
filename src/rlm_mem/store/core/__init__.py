"""What every backend shares: ``ChunkStore``, the ``Backend`` protocol, and the plain data passed between them."""

from __future__ import annotations
