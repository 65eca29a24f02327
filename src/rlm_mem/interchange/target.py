"""What all that comes in is written to: a store, in transactions that are one change, with the ledger of imports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rlm_mem.chunk import new_change_id
from rlm_mem.interchange.report import ImportOptions, ImportReport, Ledger
from rlm_mem.store.core.chunk_store import ChunkStore


class WriteTarget:
    """The store that an import or a folder sync writes to.

    Attributes:
        dry_run: nothing is written.
        ledger: knows what was imported before.
        change: the id by which all that is written is undone together; within a transaction of the caller, that of its
            change.
    """

    def __init__(self, store: ChunkStore, *, dry_run: bool = False) -> None:
        self.store, self.dry_run = store, dry_run
        self.ledger = Ledger(store.files, write=not dry_run)
        self.change = new_change_id()
        self._begun = False
        if store.backend.in_transaction and not dry_run:
            with store.files.transaction() as transaction:
                self.change = transaction.change.id

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Write in a transaction that is a part of the change; in a dry run, without one."""
        if self.dry_run:
            yield
            return
        is_own = not self.store.backend.in_transaction
        with self.store.files.transaction() as transaction:
            if is_own:
                transaction.change.id, transaction.change.continues = self.change, self._begun
            yield
        self._begun = True


class ImportTarget(WriteTarget):
    """The target of an import, with its options, and the report of what became of each record.

    Attributes:
        renamed: the ids of chunks whose own were taken, by namespace in the source and by their ids there.
        planned: the revisions of the chunks that a dry run would write, by their ids.
    """

    def __init__(self, store: ChunkStore, options: ImportOptions, report: ImportReport) -> None:
        super().__init__(store, dry_run=options.dry_run)
        self.options, self.report = options, report
        self.renamed: dict[str, dict[str, str]] = {}
        self.planned: dict[str, int] = {}
