"""Another documented module name for links between chunks; re-exports only."""

from __future__ import annotations

from rlm_mem.ingest.linking import AutoLinker, add_manual_link

__all__ = ["AutoLinker", "add_manual_link"]
