"""Continuum: the tiered memories of one namespace and the components that work on them."""

from __future__ import annotations

from functools import cached_property, partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.arguments import check_flag, check_function
from rlm_mem.continuum import damage
from rlm_mem.continuum.changes import Change, Changes
from rlm_mem.continuum.consolidate import MemoryConsolidationAgent
from rlm_mem.continuum.files import InvalidEntry, MemoryFiles
from rlm_mem.continuum.mirror import Mirror, key_of
from rlm_mem.continuum.prune import Pruner
from rlm_mem.continuum.query import QueryMemoryTool, hints, program_functions
from rlm_mem.continuum.reports import (
    ConsolidationReport,
    PruneReport,
    count_consolidation,
    count_pruning,
    health,
)
from rlm_mem.continuum.review import ReviewQueue
from rlm_mem.continuum.skills import SKILL_TIERS, Skill, skills_of
from rlm_mem.continuum.traces import Traces
from rlm_mem.continuum.undoing import change_to_undo, recorded_changes, undo_found
from rlm_mem.continuum.workspace import Workspace
from rlm_mem.errors import ConflictError, InvalidMemory, RlmMemError
from rlm_mem.store.core.brain_files import MIRRORED, place_of
from rlm_mem.store.core.files import Signature
from rlm_mem.store.core.findings import Finding
from rlm_mem.store.core.integrity import Repair
from rlm_mem.telemetry import observed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rlm_mem.chunk import Chunk
    from rlm_mem.continuum.answers import Hint
    from rlm_mem.continuum.files import TieredMemory
    from rlm_mem.models.base import LLM
    from rlm_mem.results import RecordedChange, UndoneChange
    from rlm_mem.store.core.chunk_store import ChunkStore

_INTERRUPTED, _CONFLICT = "change-interrupted", "tiered-conflict"


class _Mirrored(msgspec.Struct, array_like=True):
    """A file at its last mirroring, and its mirrors; ``broken``: it was not valid, so these are earlier ones, too."""

    signature: Signature
    ids: list[str]
    broken: bool = False


_SyncState = dict[str, _Mirrored]


class Continuum:
    """The tiered memories of a chunk store's brain and namespace.

    Args:
        store: an open chunk store.
    """

    def __init__(self, store: ChunkStore) -> None:
        self.store = store
        self.files = MemoryFiles(store)
        self.mirror = Mirror(store)
        self.changes = Changes(store, self.files, self.mirror)

    # --- components ---------------------------------------------------------------------------------------------------

    @cached_property
    def workspace(self) -> Workspace:
        """The working state of the current execution."""
        return Workspace(self.store, self.files, self.changes)

    @cached_property
    def traces(self) -> Traces:
        """Writes logs, and counts the uses of memories."""
        return Traces(self.store, self.files, self.changes)

    @cached_property
    def review(self) -> ReviewQueue:
        """The queue of cases that wait for a reviewer."""
        return ReviewQueue(self.store, self.files, self.changes, self.traces)

    @cached_property
    def queries(self) -> QueryMemoryTool:
        """Queries of tiered memories."""
        return QueryMemoryTool(self.store)

    @cached_property
    def pruner(self) -> Pruner:
        """Applies retention, and manages the archive."""
        return Pruner(self)

    # --- operations ---------------------------------------------------------------------------------------------------

    @observed("consolidate", count_consolidation)
    def consolidate(
        self,
        *,
        dry_run: bool = False,
        llm: LLM | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> ConsolidationReport:
        """Promote memories that meet the rules, after ``ChunkStore.sweep`` has archived or erased expired chunks.

        Args:
            llm: writes generalisations; None: no generalisations.
        """
        if not check_flag(dry_run, "dry_run"):
            check_function(progress, "progress")
            self.store.sweep()
        return MemoryConsolidationAgent(self, llm).run(dry_run=dry_run, progress=progress)

    @observed("prune", count_pruning)
    def prune(
        self, *, dry_run: bool = True, progress: Callable[[int, int], None] | None = None
    ) -> PruneReport:
        """Apply retention; by default only report what would be done."""
        return self.pruner.run(dry_run=dry_run, progress=progress)

    def hints(self, goal: str, *, limit: int = 5) -> list[Hint]:
        """Risk warnings and success patterns for a goal."""
        return hints(self.queries, self.files, goal, limit=limit)

    def health(self) -> dict[str, Any]:
        """Figures for the LIVEHUD (see ``rlm_mem.continuum.reports``)."""
        return health(self.files, self.changes, self.review)

    def skills(self, *, mid: bool = False) -> list[Skill]:
        """Stable memories as skills for coding agents, in memory (``write_skills`` writes them to a folder).

        Args:
            mid: also from the mid tier: memories that worked, but are not stable yet.
        """
        return skills_of(
            self.store, self.files, tiers=(*SKILL_TIERS, "mid") if check_flag(mid, "mid") else SKILL_TIERS
        )

    def delete_chunk(self, chunk_id: str, permanent: bool = False) -> bool:
        """Archive the memory that a mirror shows, with the mirror; returns whether there was such a chunk.

        Raises:
            ConflictError: it is to be deleted permanently, but its memory is not archived.
        """
        if permanent:
            self.refuse_deletion(chunk_id)
        memory = self.changes.memory_of(chunk_id)
        if memory is None:
            return self.store.delete_chunk(chunk_id, permanent)
        return self.pruner.archive(memory.key)

    def refuse_deletion(self, chunk_id: str) -> None:
        """Raise ConflictError if a chunk shows a tiered memory that is not archived."""
        memory = self.changes.memory_of(chunk_id)
        if memory is not None:
            raise ConflictError(
                f"{chunk_id} shows the tiered memory {memory.key}, and would be made again",
                hint="archive it; rlm-mem tier prune --delete-archived deletes from the archive",
            )

    def restore_chunk(self, chunk_id: str) -> Chunk | None:
        """Restore the archived memory that a mirror shows, with the mirror; None if it is not in the archive."""
        mirror = self.store.get_archived(chunk_id)
        key = key_of(mirror)
        if mirror is None or key is None or mirror.metadata.superseded_by or self.files.get(key) is not None:
            return self.store.restore_chunk(chunk_id)  # only the mirror was archived
        self.pruner.restore(key)
        return self.store.get_chunk(chunk_id, track=False) or mirror  # it may be in quarantine

    def refuse_change(self, chunk_id: str) -> None:
        """Raise ConflictError if a chunk is the mirror of a memory, whose text and fields are changed in its file."""
        memory = self.changes.memory_of(chunk_id)
        if memory is not None:
            raise ConflictError(
                f"{chunk_id} shows the tiered memory {memory.key}", hint="edit that file of the brain"
            )

    def undo(self, transition_id: str, reason: str = "undone by hand") -> Change:
        """Restore the files of a transition, byte for byte."""
        return self.changes.undo(self.changes.transition(transition_id), reason)

    def undo_change(self, change: str | None = None) -> UndoneChange | None:
        """Undo the last change of the namespace, or the one with this id; returns None if there is none.

        Raises:
            ConflictError: something was changed since; or within a batch, whose other changes would count as undone.
        """
        if self.store.backend.in_transaction:
            raise ConflictError(
                "a change cannot be undone within a batch", hint="undo it before the batch, or after it"
            )
        found = change_to_undo(self.store, change)
        return None if found is None else undo_found(self.store, self.changes, found)

    def recorded_changes(self) -> Iterator[RecordedChange]:
        """Every change of the namespace in the audit log, newest first."""
        return recorded_changes(self.store)

    # --- programs -----------------------------------------------------------------------------------------------------

    @cached_property
    def functions(self) -> Mapping[str, Callable[..., Any]]:
        """Read-only functions for programs in the sandbox: ``search_traces(goal)`` and ``memories(tier=…)``."""
        return program_functions(self.store)

    # --- checking and mirroring files ---------------------------------------------------------------------------------

    def check(self) -> list[InvalidEntry]:
        """All problems: invalid files and memories, missing ``created_at``, damaged cases, interrupted changes."""
        problems: list[InvalidEntry] = []
        for entry in self.files.entries(problems):
            if entry.undated:
                message = f"{entry.key}: created_at: missing; the time of the file is used"
                problems.append(InvalidEntry(entry.file, message, "tiered-undated"))
        problems = [
            InvalidEntry(one.file, one.message, _CONFLICT)
            if one.code == "tiered-memory" and self.files.united(one.file) is not None
            else one
            for one in problems
        ]
        problems += self.files.overlooked()
        problems += self.review.damaged()
        damaged = list(damage.damaged_files(self.files.stored))
        named = {one.file for one in damaged}  # by what can be mended in it
        problems = [one for one in problems if one.file not in named] + damaged
        for file in self.changes.waiting():
            message = f"{PurePosixPath(file).stem}: a change was interrupted; the next write finishes it"
            problems.append(InvalidEntry(file, message, _INTERRUPTED))
        return problems

    def findings(self) -> list[Finding]:
        """The problems of ``check`` as findings; places are relative to the brain."""
        namespace = self.store.namespace
        return [
            Finding(problem.code, problem.message, file=place_of(namespace, problem.file))
            for problem in self.check()
        ]

    def repairs(self, *, dry_run: bool = True) -> list[Repair]:
        """Finish interrupted changes and unite files in conflict; other problems are listed for manual correction."""
        check_flag(dry_run, "dry_run")
        found = self.findings()
        remedies: dict[str, Callable[[], object]] = {
            _INTERRUPTED: self.changes.recover, _CONFLICT: self._unite,
            **{code: partial(self._mend, code) for code in damage.CODES},
        }  # fmt: skip
        errors: dict[str, str] = {}
        for code in () if dry_run else {one.code for one in found} & remedies.keys():
            try:
                remedies[code]()
            except RlmMemError as failed:
                errors[code] = str(failed)
        return [
            Repair(
                one,
                one.remedy,
                done=one.code in remedies and not dry_run and one.code not in errors,
                manual=one.code not in remedies,
                error=errors.get(one.code),
            )
            for one in found
        ]

    def _mend(self, code: str) -> None:
        """Mend the records and logs with a fault."""
        with self.files.stored.transaction():
            found = [one.file for one in damage.damaged_files(self.files.stored) if one.code == code]
            damage.mend(self.files.stored, code, found)

    def _unite(self) -> int:
        """Write the memories of both sides into the files in conflict; returns the number of mirrored files."""
        with self.changes.locked(undoable=True):
            for problem in self.check():
                text = self.files.united(problem.file)
                if text is not None:
                    self.files.stored.write(problem.file, text.encode("utf-8"))
        return self.sync()

    def sync(self) -> int:
        """Finish interrupted changes, and update the mirrors of files edited by hand or by git.

        Only files whose size, time or inode changed since the last sync are read. Returns their number.
        """
        self.changes.recover()
        known = self._load_sync_state()
        present = self.files.signatures()
        searched = set(self.mirror.ids())
        if not all(searched.issuperset(one.ids) for one in known.values()):
            searched |= self.store.quarantined_ids()
        changed = [
            file for file, signature in present.items() if self._differs(known.get(file), signature, searched)
        ]
        # What was invalid may be valid by new settings; it is read without the lock, which it would take each time.
        changed += [
            file
            for file, one in known.items()
            if one.broken and file in present and file not in changed and self._is_valid(file)
        ]
        removed = [file for file in known if file not in present]
        if not changed and not removed and not self._orphans(known):
            return 0
        with self.changes.locked():
            for file in changed:
                known[file] = self._mirror_file(file, present[file])
            for file in removed:
                del known[file]
            for chunk_id in self._orphans(known):
                self.store.delete_chunk(chunk_id)
        self.files.stored.write(MIRRORED, msgspec.json.encode(known), durable=False)
        return len(changed) + len(removed)

    @staticmethod
    def _differs(known: _Mirrored | None, signature: Signature, searched: set[str]) -> bool:
        """Whether a file has to be mirrored: it is new, or it or one of its mirrors was changed."""
        return known is None or known.signature != signature or not searched.issuperset(known.ids)

    def _orphans(self, known: _SyncState) -> list[str]:
        """Active mirrors whose memory is in none of these files, except superseded mirrors."""
        mirrored_ids = {chunk_id for one in known.values() for chunk_id in one.ids}
        orphans = [chunk_id for chunk_id in self.mirror.ids() if chunk_id not in mirrored_ids]
        return [one.id for one in self.store.summaries(orphans) if not one.superseded_by]

    def _mirror_file(self, file: str, signature: Signature) -> _Mirrored:
        """Mirror the memories of a file; if any of them is invalid, earlier mirrors of the file are kept."""
        entries, is_valid = self._read_file(file)
        for entry in entries:
            self.mirror.put(entry)
        if is_valid:
            return _Mirrored(signature, sorted(entry.chunk_id for entry in entries))
        kept = [one for one in self.mirror.ids() if (self.mirror.key_of(one) or "").partition("#")[0] == file]
        return _Mirrored(signature, sorted(kept), broken=True)

    def _is_valid(self, file: str) -> bool:
        return self._read_file(file)[1]

    def _read_file(self, file: str) -> tuple[list[TieredMemory], bool]:
        """The valid memories of a file that have mirrors, and whether all of its memories are valid."""
        problems: list[InvalidEntry] = []
        try:
            entries = self.files.in_file(file, problems)
        except InvalidMemory:
            return [], False
        return [entry for entry in entries if entry.kind != "state"], not problems

    def _load_sync_state(self) -> _SyncState:
        try:
            return msgspec.json.decode(self.files.stored.read(MIRRORED) or b"{}", type=_SyncState)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}  # the state is derived, so every file is read again
