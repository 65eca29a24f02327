"""Retention: demote or archive old or failed memories, after a report.

Only ``delete_archived`` deletes, and only from the archive. Ultra-low memories are never touched.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from rlm_mem.arguments import check_flag, check_function
from rlm_mem.chunk import is_chunk_id, parse_time
from rlm_mem.continuum.changes import Change
from rlm_mem.continuum.files import TieredMemory, new_text
from rlm_mem.continuum.reports import PruneReport, PruneStep, Tiers
from rlm_mem.continuum.rules import TEMPORARY_DAYS, prune_action
from rlm_mem.errors import NotFoundError, StorageError
from rlm_mem.results import Progress

_logger = logging.getLogger("rlm_mem.continuum")


class Pruner:
    """Applies the retention rules to the memories of one namespace."""

    def __init__(self, continuum: Tiers) -> None:
        self._continuum = continuum
        self._files = continuum.files
        self._changes = continuum.changes

    def plan(self) -> PruneReport:
        """The steps that the rules require now, without carrying them out."""
        report = PruneReport(dry_run=True)
        now = self._continuum.store.clock()
        hidden = self._continuum.store.quarantined_ids()
        for entry in self._files.entries(report.problems):
            report.considered += 1
            stays = entry.meta.component_of or entry.chunk_id in hidden
            due = prune_action(entry.meta, now) or self._source_replaced(entry) if not stays else None
            if due is None:
                continue
            action, reason = due
            if action == "flag_for_review" and not self._continuum.review.should_open("retain", entry):
                continue
            report.steps.append(PruneStep(entry.key, action, reason, entry.meta.tier))
        report.steps += self._merged_mirrors(now)
        return report

    def run(self, *, dry_run: bool = True, progress: Progress | None = None) -> PruneReport:
        """Report the steps of retention; with ``dry_run=False`` carry them out. Safe to repeat and to kill."""
        check_function(progress, "progress")
        if not check_flag(dry_run, "dry_run"):
            self._continuum.sync()
        report = self.plan()
        report.dry_run = dry_run
        if not dry_run:
            for number, step in enumerate(report.steps, 1):
                self._carry_out(step)
                if progress is not None:
                    progress(number, len(report.steps))
        return report

    def _source_replaced(self, entry: TieredMemory) -> tuple[str, str] | None:
        """The review of a memory of the low tier that was made from a chunk that is out of date by now."""
        store = self._continuum.store
        sources = store.summaries([one for one in entry.meta.sources if is_chunk_id(one)])
        ended = [f"{one.id} is {mark}" for one in sources if (mark := store.out_of_date(one))]
        return ("flag_for_review", ended[0]) if ended and entry.meta.tier == "low" else None

    def _merged_mirrors(self, now: datetime) -> list[PruneStep]:
        """Steps that archive mirrors of merged memories 30 days after the merge."""
        limit = now - timedelta(days=TEMPORARY_DAYS)
        return [
            PruneStep(one.id, "retire", f"replaced by {one.superseded_by} on {one.valid_to[:10]}", "chunk")
            for one in self._continuum.store.summaries(self._continuum.mirror.ids())
            if one.superseded_by and one.valid_to and parse_time(one.valid_to) < limit
        ]

    # --- execution ---------------------------------------------------------------------------------------------------

    def _carry_out(self, step: PruneStep) -> None:
        if step.action == "flag_for_review":
            self._continuum.review.open("retain", step.key, step.reason)
        elif step.action == "retire":
            self._changes.apply(
                lambda: self._changes.draft("retire", step.key, step.reason, [], retired=[step.key])
            )
        else:
            self._changes.apply(lambda: self._demotion(step))

    def _demotion(self, step: PruneStep) -> Change | None:
        entry = self._files.get(step.key)
        due = prune_action(entry.meta, self._continuum.store.clock()) if entry is not None else None
        if entry is None or due is None or due[0] != step.action:
            return None  # the memory was used or moved since the plan was made
        return self._archive(entry, due[1]) if step.action == "archive" else self._downgrade(entry, due[1])

    def _archive(self, entry: TieredMemory, reason: str) -> Change:
        return self._changes.draft(
            "archive", entry.key, reason, self._changes.archived(entry), tier_from=entry.meta.tier, keep=True
        )

    def _downgrade(self, entry: TieredMemory, reason: str) -> Change:
        """Move a memory from mid to high with temporary retention; its 30 days begin now and its text is unchanged."""
        traces = self._continuum.traces
        text = new_text(traces.moved(entry, "high", reason) | {"demoted_from": entry.file}, entry.body)
        file = traces.free_interaction(self._continuum.store.clock())
        return self._changes.draft(
            "demote", entry.key, reason, [self._changes.added(file, text), self._changes.removed(entry)],
            tier_from="mid", tier_to="high", keep=True, details={"to": file},
        )  # fmt: skip

    # --- the archive -------------------------------------------------------------------------------------------------

    def archive(self, key: str) -> bool:
        """Archive a memory with its mirror at the request of a person; return whether there was such a memory."""

        def archived() -> Change | None:
            entry = self._files.get(key)
            return None if entry is None else self._archive(entry, "archived by hand")

        return self._changes.apply(archived) is not None

    def archived(self) -> list[str]:
        """Sorted paths of the memories in the archive."""
        return sorted(
            name
            for folder in ("memory", "system", "workspace")
            for name in self._files.stored.names(f"archive/{folder}", recursive=True)
        )

    def restore(self, name: str) -> Change:
        """Restore an archived memory by undoing the change that archived it; raises NotFoundError, ConflictError.

        Args:
            name: path in the archive, or the former key of the memory.
        """
        for _, former in self._transitions(reversed(self._changes.transitions())):
            names = {edit.file for edit in former.edits if edit.file.startswith("archive/") and edit.after}
            names |= {former.entry} if former.op == "archive" else set()
            if name in names and any(self._files.exists(file) for file in names if "archive/" in file):
                return self._changes.undo(former, f"restored {name}")
        raise NotFoundError(
            f"there is no {name!r:.120} in the archive", hint="rlm-mem tier prune --archived lists it"
        )

    def _transitions(self, ids: Iterable[str]) -> Iterator[tuple[str, Change]]:
        """Yield transitions; damaged records, which may be of other memories, are skipped with a warning."""
        for transition_id in ids:
            try:
                yield transition_id, self._changes.transition(transition_id)
            except StorageError as error:
                _logger.warning("%s", error)

    def delete_archived(self, before: datetime, *, dry_run: bool = True) -> list[str]:
        """Permanently delete memories that were archived before a time; by default a dry run.

        The records that could undo those transitions are deleted too. Returns the names.
        """
        check_flag(dry_run, "dry_run")
        archived_by: dict[str, tuple[str, datetime]] = {}
        for transition_id, former in self._transitions(self._changes.transitions()):
            # Oldest first: the last archiving counts.
            for edit in former.edits:
                if edit.file.startswith("archive/") and edit.after is not None:
                    archived_by[edit.file] = (transition_id, parse_time(former.at))
        expired = {
            name: transition_id
            for name, (transition_id, at) in archived_by.items()
            if at < before and self._files.exists(name)
        }
        if not dry_run:
            with self._changes.locked():
                for name in expired:
                    self._files.stored.remove(name)
                for transition_id in set(expired.values()):
                    self._changes.forget(transition_id)
        return sorted(expired)
