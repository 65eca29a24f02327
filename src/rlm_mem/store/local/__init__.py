"""The local backend: JSON files are the truth; a SQLite index and postings beside them are derived from the files.

What opening and searching do not need is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.store.local.audit import EventLog
    from rlm_mem.store.local.redo import finish_writes
    from rlm_mem.store.local.rows import LocalRowWriter, ThreadRows
    from rlm_mem.store.local.snapshot_build import make_snapshot
    from rlm_mem.store.local.sync import (
        drop_unused_terms,
        emptied,
        fold_reads,
        needs_refill,
        sync_folders,
        unsaved_reads,
    )
    from rlm_mem.store.local.transaction import Transaction
    from rlm_mem.store.local.views import status_of, write_views

__all__ = [
    "EventLog",
    "LocalRowWriter",
    "ThreadRows",
    "Transaction",
    "drop_unused_terms",
    "emptied",
    "finish_writes",
    "fold_reads",
    "needs_refill",
    "make_snapshot",
    "status_of",
    "sync_folders",
    "unsaved_reads",
    "write_views",
]

__getattr__ = loader(
    __name__,
    {
        "audit": ("EventLog",),
        "redo": ("finish_writes",),
        "rows": ("LocalRowWriter", "ThreadRows"),
        "snapshot_build": ("make_snapshot",),
        "sync": (
            "drop_unused_terms", "emptied", "fold_reads", "needs_refill", "sync_folders", "unsaved_reads",
        ),
        "transaction": ("Transaction",),
        "views": ("status_of", "write_views"),
    },
)  # fmt: skip
