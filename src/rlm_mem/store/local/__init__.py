"""The local backend: JSON files are the truth; a SQLite index and postings beside them are derived from the files.

``local_backend`` is the backend. A write goes through ``transaction``, ``rows``, ``redo`` and ``audit``; a search
through ``local_lookup``, ``postings`` and ``snapshot``; any other read through ``queries``, ``folder`` and
``brain_folder``. ``local_index`` opens the index (``schema``, ``connections``) and ``sync`` brings it up to date with
the files (``prepare``, ``workers``). ``integrity``, ``vacuum``, ``backup``, ``restore`` and ``views`` serve
maintenance.

What opening and searching do not need is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.store.local.audit import EventLog as EventLog
    from rlm_mem.store.local.redo import finish_writes as finish_writes
    from rlm_mem.store.local.rows import LocalRowWriter as LocalRowWriter, ThreadRows as ThreadRows
    from rlm_mem.store.local.snapshot_build import make_snapshot as make_snapshot
    from rlm_mem.store.local.sync import (
        drop_unused_terms as drop_unused_terms,
        emptied as emptied,
        needs_refill as needs_refill,
        sync_folders as sync_folders,
        unsaved_reads as unsaved_reads,
    )
    from rlm_mem.store.local.transaction import Transaction as Transaction
    from rlm_mem.store.local.views import write_views as write_views

__getattr__, __all__ = loader(
    __name__,
    {
        "audit": "EventLog",
        "redo": "finish_writes",
        "rows": "LocalRowWriter ThreadRows",
        "snapshot_build": "make_snapshot",
        "sync": "drop_unused_terms emptied needs_refill sync_folders unsaved_reads",
        "transaction": "Transaction",
        "views": "write_views",
    },
)
