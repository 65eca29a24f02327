"""The review queue: cases with evidence and counter-evidence, decided by a named reviewer.

A memory enters the ultra-low tier, and a stable memory that fails is kept, by manual review only. The agent prepares
cases; a person, or a caller with the name of a reviewer, approves, defers or rejects them, with a reason
(docs/spec/continuum.md, Review). Memories captured from sessions with coding agents are reviewed here, too: they are
in use from the start, approving confirms them, and rejecting archives them. Proposals are reviewed here as well: a new
memory may replace or contradict an earlier one (docs/spec/links.md, Proposals).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Literal

from rlm_mem.arguments import check_items, check_words
from rlm_mem.chunk import Chunk, parse_time
from rlm_mem.chunk.types import amount, shown
from rlm_mem.continuum import places
from rlm_mem.continuum.cases import (
    CLOSED,
    FOLDER,
    MAX_TITLE,
    PROPOSED,
    Case,
    Decision,
    DecisionWord,
    case_file,
    decode,
    encode,
    order_of,
    proposed_case,
    quarantine_case,
    shorten,
    tier_case,
)
from rlm_mem.continuum.changes import Change, Changes
from rlm_mem.continuum.files import InvalidEntry, MemoryFiles, TieredMemory, new_text
from rlm_mem.continuum.requests import what_changed
from rlm_mem.continuum.rules import all_met, low_to_ultra, moved, unmet
from rlm_mem.continuum.schema import stamp
from rlm_mem.errors import ConflictError, InputError, InvalidMemory, NotFoundError
from rlm_mem.proposals.finding import is_trusted_as_far
from rlm_mem.proposals.judging import check_judge, compare_stored, judgement_of
from rlm_mem.store.core.brain_files import case_id_of, mirror_id
from rlm_mem.store.core.changes import Edit
from rlm_mem.text.analysis import get_analyser

if TYPE_CHECKING:
    from rlm_mem.continuum.traces import Traces
    from rlm_mem.models.base import LLM
    from rlm_mem.proposals.finding import Proposal
    from rlm_mem.proposals.judging import Comparison
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.files import Signature

_logger = logging.getLogger("rlm_mem.continuum")

AGENTS = {"continuummemoryagent", "memoryconsolidationagent", "agent", "auto", "system"}
"""Names that cannot decide: the agent that prepares a case is not its reviewer."""
UNEXPLAINED = frozenset({"capture", "replace", "contradict", "forget"})
"""Kinds of cases that may be decided without a reason: the decision says enough, and there are many such cases."""
_DECIDED = ("approved", "rejected")
_MAX_DAYS = 3650
_LONGEST_ID = 60
NEW_USES = 20
"""A rejected case is opened again only after this many further uses."""


class ReviewQueue:
    """Opens and decides cases; each is a JSON file in ``system/review``."""

    def __init__(self, store: ChunkStore, memories: MemoryFiles, changes: Changes, traces: Traces) -> None:
        self._store = store
        self._files = memories
        self._changes = changes
        self._traces = traces
        self._last_full: tuple[Mapping[str, Signature], Mapping[str, int]] = ({}, {})
        """Files of the proposals when the queue was last full, and the revisions of their chunks."""
        self._lack_logged = False
        self._decided: dict[str, tuple[Signature, str]] = {}
        """Files of cases known to be approved or rejected, and which of the two; read only when they are asked for."""

    # --- reading -----------------------------------------------------------------------------------------------------

    def cases(self, status: str | None = "open") -> list[Case]:
        """Cases, the most important kind first, the oldest of a kind first; ``status`` None: all.

        A deferred case is open again after ``defer_until``.

        A case whose memory was deleted, is in quarantine, or no longer contains the statement in question is obsolete,
        not open. A file that cannot be read is skipped with a warning.
        """
        return self.counted(status)[0]

    def counted(self, status: str | None = "open") -> tuple[list[Case], Counter[str]]:
        """Like ``cases``, and the number of cases of every status, for which decided ones are not read again."""
        damaged: list[InvalidEntry] = []
        found = list(self._load_cases(damaged, decided=_DECIDED if status is None else (status,)))
        for one in damaged:
            _logger.warning("a case of the review queue is left out: %s", one.message)
        found += [quarantine_case(chunk) for chunk in self._store.quarantined()]
        self._settle(found)
        counts = Counter[str](case.status for case in found if case.status not in _DECIDED)
        counts.update(decided for _, decided in list(self._decided.values()))  # other threads add to it
        return sorted((case for case in found if status in (None, case.status)), key=order_of), counts

    def damaged(self) -> list[InvalidEntry]:
        """Case files that cannot be read, with the error of each."""
        damaged: list[InvalidEntry] = []
        list(self._load_cases(damaged))
        return damaged

    def _load_cases(
        self, damaged: list[InvalidEntry], *, decided: Collection[str] = _DECIDED
    ) -> Iterator[Case]:
        """Read the stored cases.

        Args:
            damaged: receives the files that cannot be read.
            decided: also read the files that had a case of this status when they last changed.
        """
        stored = self._files.stored
        # Taken before the files are read: a file that changes in between is read again the next time.
        signed = {name: one for name, one in stored.signatures(FOLDER).items() if name.endswith(".json")}
        known = self._decided
        self._decided = {
            name: known[name] for name, one in signed.items() if name in known and known[name][0] == one
        }
        names = [name for name in signed if name not in self._decided or self._decided[name][1] in decided]
        for name, data in stored.contents(names):
            try:
                case = decode(data, name)
            except InvalidMemory as error:
                damaged.append(InvalidEntry(name, error.message, "unreadable-case"))
                continue
            if case.status in _DECIDED:
                self._decided[name] = signed[name], case.status
            yield case

    def _settle(self, cases: Sequence[Case]) -> None:
        """Open deferred cases that are due, and mark undecided ones as obsolete if there is nothing left to decide."""
        now = self._store.clock()
        for case in cases:
            if case.status == "deferred" and case.defer_until and parse_time(case.defer_until) <= now:
                case.status = "open"
        waiting = [case for case in cases if case.status not in CLOSED and case.kind != "quarantine"]
        readable = self._store.get_many([one for case in waiting for one in case.chunk_ids])
        hidden = self._store.quarantined_ids() if waiting else frozenset()
        for case in waiting:
            if reason := self._obsolete_reason(case, readable, hidden):
                case.status, case.obsolete_because = "obsolete", reason

    def _obsolete_reason(self, case: Case, readable: Mapping[str, Chunk], hidden: frozenset[str]) -> str:
        """Why there is nothing left to decide about a case; empty if there is something.

        Args:
            readable: the chunks of the case that can be read, by id.
            hidden: the ids of the chunks in quarantine.
        """
        if case.kind in ("promote", "retain"):
            with suppress(InvalidMemory):  # an invalid memory still exists; checks report it
                entry = self._files.get(case.entry)
                if entry is None:
                    return f"{case.entry} no longer exists"
                if entry.title[:MAX_TITLE] != case.title:  # also another brain's, whose case was imported
                    return f"{case.entry} was edited and is not “{shorten(case.title)}” any more"
                return f"{case.entry} is in quarantine" if entry.chunk_id in hidden else ""
            return ""
        if case.kind == "capture":  # a capture is open while any of its chunks exists
            return "" if _captured(case, readable) else "none of its memories is there any more"
        return what_changed(case, readable, hidden, get_analyser(self._store.config.search.language))

    def case(self, case_id: str) -> Case:
        """One case; raises NotFoundError."""
        found = self._stored(check_words(case_id, "case_id"))
        if found is None:
            hidden = map(
                quarantine_case, self._store.quarantined() if case_id.startswith("quarantine-") else ()
            )
            found = next((case for case in hidden if case.id == case_id), None)
        if found is None:
            raise NotFoundError(
                f"there is no review case {case_id!r:.60}", hint="rlm-mem review list shows them"
            )
        self._settle([found])
        return found

    def _stored(self, case_id: str) -> Case | None:
        """The stored case with an id, as its file has it; raises InvalidMemory if the file cannot be read."""
        if len(case_id) > _LONGEST_ID or not case_id.replace("-", "").isalnum():
            return None  # no name of a file
        file = case_file(case_id)
        data = self._files.stored.read(file)
        return None if data is None else decode(data, file)

    # --- opening -----------------------------------------------------------------------------------------------------

    def should_open(self, kind: Literal["promote", "retain"], entry: TieredMemory) -> bool:
        """Whether ``open`` would open a case: none is open, and there are enough new uses since the last decision."""
        try:
            former = self._stored(case_id_of(kind, entry.key))
        except InvalidMemory:
            return False  # checks report the file
        if former is None:
            return True
        if former.status in ("open", "deferred"):
            return bool(self._obsolete_reason(former, {}, frozenset()))
        return entry.meta.usage_count >= former.usage_at + NEW_USES

    def open(self, kind: Literal["promote", "retain"], key: str, why: str) -> Case | None:
        """Open a case for a memory; None if one is open, or if it has too few uses since the last decision."""
        case_id = case_id_of(kind, key)
        made: list[Case] = []

        def build() -> Change | None:
            entry = self._files.get(key)
            if entry is None or not self.should_open(kind, entry):
                return None
            file = case_file(case_id)
            text = self._files.read(file)
            former = self._stored(case_id)
            against = self._store.linked(entry.chunk_id, "contradicts", "both", 20)
            case = tier_case(kind, entry, why, against, stamp(self._store.clock()))
            case.decisions = former.decisions if former else []
            made.append(case)
            return self._changes.draft(
                "review", key, f"queued for review: {why}",
                [Edit(file=file, before=text, after=encode(case))], tier_from=entry.meta.tier,
            )  # fmt: skip

        self._changes.apply(build)
        return made[0] if made else None

    def add_captured(self, conversation_id: str, client: str, chunks: Sequence[Chunk]) -> Case:
        """Add captured memories to the review queue: one case for each session, open until decided.

        Called within the transaction that stores the chunks.
        """
        case_id = case_id_of("capture", conversation_id)
        case = self._stored(case_id)
        at = stamp(self._store.clock())
        if case is None or case.status in _DECIDED:
            case = Case(
                id=case_id, kind="capture", entry=conversation_id, title="", status="open", opened_at=at,
                question="Shall these be kept? Rules took them from what was said in the session, and they are in use "
                "already. Approving marks them as reviewed, rejecting archives them.",
                figures={}, evidence=[], counter_evidence=[], history=[], decisions=case.decisions if case else [],
            )  # fmt: skip
        case.chunk_ids += [chunk.id for chunk in chunks]
        case.evidence += [f"{chunk.id}: {chunk.content[:400]}" for chunk in chunks]
        case.figures = {"client": client, "memories": len(case.chunk_ids)}
        case.title = (
            f"{amount(len(case.chunk_ids), 'memory')} of a session with {client}, {case.opened_at[:10]}"
        )
        self._files.stored.write(case_file(case_id), encode(case).encode())
        return case

    def add_proposed(self, proposals: Sequence[Proposal]) -> list[str]:
        """Open cases for as many proposals as ``updates.max_open`` leaves room for; returns the ids of the cases.

        Called within the transaction that stores the newer chunks.
        """
        at = stamp(self._store.clock())
        opened: list[str] = []
        with self._files.stored.transaction():
            room = self._room(len(proposals))
            for one in proposals[:room]:
                case = proposed_case(one, at)
                self._files.stored.write(case_file(case.id), encode(case).encode())
                opened.append(case.id)
        return opened

    def ask(self, wanted: Sequence[Case]) -> list[Case]:
        """Queue what an agent asks for, and return the cases as stored; one that waits or was rejected stays as it is.

        Raises:
            ConflictError: ``updates.max_open`` leaves no room.
        """
        with self._files.stored.transaction():
            stored = {case.id: found for case in wanted if (found := self._stored(case.id)) is not None}
            said = {case.id: (case.sentences, case.texts, case.revisions) for case in wanted}
            # What a rule found, too, now waits as asked for, and so does a chunk that was edited since.
            known = {
                name: case
                for name, case in stored.items()
                if case.status == "rejected"
                or (
                    case.asked_by
                    and case.status != "approved"
                    and (case.sentences, case.texts, case.revisions) == said[name]
                )
            }
            new = [case for case in wanted if case.id not in known]
            if self._room(len(new)) < len(new):
                raise ConflictError(
                    "the review queue is full, so nothing can be asked for",
                    hint="a person decides some of its cases first: rlm-mem review list",
                )
            for case in new:
                case.decisions = stored[case.id].decisions if case.id in stored else []
                self._files.stored.write(case_file(case.id), encode(case).encode())
        return [known.get(case.id, case) for case in wanted]

    def judge(
        self,
        llm: LLM,
        limit: int = 10,
        *,
        only: Sequence[str] | None = None,
        on_step: Callable[[Change], None] | None = None,
    ) -> list[Change]:
        """Let a model decide open proposals, in one call each about two sentences of at most 1,200 characters.

        Proposals that it is sure of are decided in the name ``model NAME``, which ``undo`` reverts. The others stay
        open, as do those that only a person may decide: the newer memory is from a file, or not from a person or an
        agent, or is trusted less.

        Args:
            limit: calls at most.
            only: ids of the cases to decide; None: the first of the queue.
            on_step: called with each decision, also with those before a failure.

        Raises:
            InputError: ``limit`` is below 1. InvalidConfig: the model is the offline one, which cannot judge.
            ModelError: the model failed; earlier decisions stay.
        """
        check_judge(llm, limit)
        decided: list[Change] = []
        calls = 0
        for case in self.cases():
            wanted = case.kind in PROPOSED and not case.asked_by and (only is None or case.id in only)
            if calls >= limit or not wanted:
                continue
            newer, older = map(self._store.get_many(case.chunk_ids, track=False).get, case.chunk_ids)
            if newer is None or older is None or not is_trusted_as_far(newer, older):
                continue
            calls += 1
            said = judgement_of(llm, *case.sentences, timeout=self._store.config.llm.timeout_seconds)
            if said.word not in ("both", PROPOSED[case.kind][1]):
                continue
            decide = self.reject if said.word == "both" else self.approve
            # It may have been decided or changed while the model was asked.
            with suppress(ConflictError, NotFoundError):
                made = decide(case.id, reviewer=f"model {llm.name}", reason=said.reason or said.word)
                decided.append(made)
                if on_step is not None:
                    on_step(made)
        return decided

    def find(
        self,
        llm: LLM,
        limit: int = 20,
        *,
        since: str | date | None = None,
        nearest: int = 1,
        on_step: Callable[[Comparison], None] | None = None,
    ) -> list[Comparison]:
        """Let a model compare memories, the newest first, with the nearest earlier ones, in one call for each two.

        What it is certain of becomes a link, which ``undo`` reverts (``proposals.judging.compare_nearest``). For
        memories that were stored before a model was configured, or without ``updates.nearest``.

        Args:
            limit: calls at most.
            since: only memories from this time on.
            nearest: most earlier memories that one is compared with, 1 to 10.
            on_step: called after each call, also with those before a failure.

        Raises:
            InputError: an argument is out of range. InvalidConfig: the model is the offline one, which cannot judge.
            ModelError: the model failed; what it decided before stays.
        """
        found: list[Comparison] = []
        for one in compare_stored(self._store, llm, limit, nearest=nearest, since=since):
            found.append(one)
            if on_step is not None:
                on_step(one)
        return found

    def _room(self, requested: int) -> int:
        """How many of ``requested`` proposals may be queued; closed cases are removed if there is not enough room.

        A lack of room is logged once, and again only after the queue was no more than half full.
        """
        most = self._store.config.updates.max_open
        stored = self._files.stored
        beginnings = tuple(f"{FOLDER}/{kind}-" for kind in (*PROPOSED, "forget"))
        signed = stored.signatures(FOLDER).items()
        files = {name: signature for name, signature in signed if name.startswith(beginnings)}
        names = list(files)
        if len(names) + requested <= most:
            self._lack_logged &= len(names) > most // 2
            return requested
        last_full, last_revisions = self._last_full
        if files == last_full and last_revisions == self._revisions(last_revisions):
            return 0
        cases: dict[str, Case] = {}
        for name, data in stored.contents(names):
            with suppress(InvalidMemory):  # an unreadable case: checks report it
                cases[name] = decode(data, name)
        self._settle(list(cases.values()))
        closed = [name for name, case in cases.items() if case.status in CLOSED]
        for name in closed:
            stored.remove(name)  # the audit log keeps the decision
        waiting = len(names) - len(closed)
        if waiting >= most and waiting == len(names):
            self._last_full = files, self._revisions(one for case in cases.values() for one in case.chunk_ids)
        room = max(0, most - waiting)
        self._lack_logged &= waiting > most // 2
        if room < requested and not self._lack_logged:
            self._lack_logged = True
            _logger.warning(
                "proposals that were not queued: %d; %d wait for a reviewer already (updates.max_open)",
                requested - room, waiting,
            )  # fmt: skip
        return room

    def _revisions(self, chunk_ids: Iterable[str]) -> dict[str, int]:
        return {one.id: one.revision for one in self._store.summaries(list(chunk_ids))}

    # --- deciding ----------------------------------------------------------------------------------------------------

    def approve(
        self, case_id: str, *, reviewer: str, reason: str = "", keep: Iterable[str] | None = None
    ) -> Change:
        """Approve a case.

        The change promotes to the core (``promote``), confirms the memories (``retain``, ``capture``), releases the
        chunk (``quarantine``) or links the two chunks (``replace``, ``contradict``).

        Args:
            reason: may be empty for a case of the kinds ``UNEXPLAINED``.
            keep: of a capture, the ids of the memories to keep; the others are archived in the same change. None: all
                are kept.

        Raises:
            InputError: ``keep`` is empty, names a memory that is not of the case, or the case is no capture.
            InvalidMemory: reviewer or reason is missing, or the memory no longer meets the rule.
            ConflictError: the case was already decided.
        """
        kept = None if keep is None else [check_words(one, "keep") for one in check_items(keep, "keep")]
        if kept == []:
            raise InputError("keep names no memory", hint="reject the case to archive all of its memories")
        return self._decide(case_id, "approved", reviewer, reason, keep=kept)

    def reject(self, case_id: str, *, reviewer: str, reason: str = "") -> Change:
        """Reject a case.

        The change leaves the memory in its tier (``promote``), moves it to mid (``retain``), archives it (``capture``,
        ``quarantine``) or leaves both chunks unlinked (``replace``, ``contradict``).
        """
        return self._decide(case_id, "rejected", reviewer, reason)

    def defer(self, case_id: str, *, reviewer: str, reason: str = "", days: int = 30) -> Change:
        """Postpone a decision: the case is open again after ``days``; a chunk in quarantine remains listed."""
        if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= _MAX_DAYS:
            raise InputError(f"days must be a whole number from 1 to {_MAX_DAYS:,}, not {shown(days)}")
        until = stamp(self._store.clock() + timedelta(days=days))
        return self._decide(case_id, "deferred", reviewer, reason, until=until)

    def _decide(
        self,
        case_id: str,
        decision: DecisionWord,
        reviewer: str,
        reason: str,
        *,
        until: str | None = None,
        keep: Sequence[str] | None = None,
    ) -> Change:
        check_words(case_id, "case_id")
        reviewer, reason = check_words(reviewer, "reviewer").strip(), check_words(reason, "reason").strip()
        if not reviewer or reviewer.lower() in AGENTS:
            raise InvalidMemory(
                f"a decision needs a named reviewer, not {reviewer!r:.40}",
                hint="give your name; the agent that prepares cases cannot decide them",
            )
        kind = case_id.partition("-")[0]
        if not reason and kind not in UNEXPLAINED:
            raise InvalidMemory(
                f"a decision on {case_id:.60} needs a reason", hint="say why; it is kept with the case"
            )
        reason = reason or "no reason given"
        made = Decision(reviewer=reviewer, decision=decision, reason=reason, at=stamp(self._store.clock()))
        if keep is not None and kind != "capture":
            raise InputError(
                f"only a captured session can be kept in part, and {case_id:.60} is another kind of case"
            )
        if kind in PROPOSED and decision == "approved":
            return self._approve_proposal(case_id, made)
        return self._changes.apply(lambda: self._decision_change(case_id, made, until, keep))

    def _with_decision(self, case_id: str, made: Decision, until: str | None) -> Case:
        """The case with one more decision; raises ConflictError if it is already decided or obsolete."""
        case = self.case(case_id)
        if case.status in _DECIDED:
            raise ConflictError(f"{case_id} was already {case.status}")
        if case.status == "obsolete":
            raise ConflictError(f"{case_id} cannot be decided: {case.obsolete_because}")
        case.decisions.append(made)
        case.status, case.defer_until = made.decision, until
        return case

    def _approve_proposal(self, case_id: str, made: Decision) -> Change:
        """Approve a proposal in one transaction, so that undoing the change also removes its links."""
        with self._files.stored.transaction() as transaction:
            case = self._with_decision(case_id, made, None)
            newer, older = case.chunk_ids
            change = self._draft_decision(case, made.decision, [])
            transaction.change.id = change.id
            why = f"{case.figures.get('reason', '')}; {change.reason}"[:500]
            confidence = float(case.figures.get("confidence", 1.0))
            if case.kind == "replace":
                self._store.supersede(older, newer, why, confidence=confidence, force=True)
            else:
                self._store.add_link(newer, older, "contradicts", confidence, why)
            self._files.stored.write(case_file(case_id), encode(case).encode())
            self._changes.log(change)
        return change

    def _decision_change(
        self, case_id: str, made: Decision, until: str | None, keep: Sequence[str] | None
    ) -> Change:
        """The change that carries out a decision, except the approval of a proposal."""
        case = self._with_decision(case_id, made, until)
        if case.kind == "quarantine":
            return self._quarantine_change(case, made)
        op: str = made.decision
        edits: list[Edit] = []
        if case.kind == "capture":
            more = self._capture_fields(case, made, keep)
        elif case.kind in PROPOSED:
            more = {}
        elif case.kind == "forget":
            more, edits = self._forgetting(case, made)
        else:
            entry = self._files.get(case.entry)
            if entry is None:
                raise NotFoundError(f"{case.entry}, the memory of this case, no longer exists")
            case.usage_at = entry.meta.usage_count
            edits, moves = self._tier_move(entry, case.kind, made)
            if moves:
                op = "promote" if moves["tier_to"] == "ultra-low" else "demote"
            more = {"keep": bool(moves), "tier_from": "low", **moves}
        file = case_file(case_id)
        edits.append(Edit(file=file, before=self._files.read(file), after=encode(case)))
        return self._draft_decision(case, op, edits, **more)

    def _forgetting(self, case: Case, made: Decision) -> tuple[dict[str, Any], list[Edit]]:
        """Fields and edits of the change after it is decided whether a chunk is forgotten."""
        if made.decision != "approved":
            return {}, []
        memory = self._changes.memory_of(case.entry)
        if memory is None:
            return {"archived": [case.entry]}, []
        return {"tier_from": memory.meta.tier, "keep": True}, self._changes.archived(memory)

    def _quarantine_change(self, case: Case, made: Decision) -> Change:
        """The change after a chunk in quarantine is released or rejected; with a mirror, its memory is archived."""
        memory: TieredMemory | None = None
        if made.decision == "approved":
            self._store.release(case.entry)
        elif made.decision == "rejected":
            key = self._changes.mirror.key_of(case.entry)
            self._store.reject(case.entry, made.reason)
            with suppress(InvalidMemory):  # a memory that cannot be read is mirrored again when it is mended
                memory = None if key is None else self._files.get(key)
        if memory is None:
            return self._draft_decision(case, made.decision, [])
        case.entry = memory.key
        edits = self._changes.archived(memory)
        return self._draft_decision(case, "archive", edits, tier_from=memory.meta.tier, keep=True)

    def _draft_decision(self, case: Case, op: str, edits: list[Edit], **more: Any) -> Change:
        """The change that carries out the last decision of a case."""
        made = case.decisions[-1]
        return self._changes.draft(
            op, case.entry, _decision_text(made), edits,
            details={"case": case.id, "reviewer": made.reviewer}, **more,
        )  # fmt: skip

    def _capture_fields(self, case: Case, made: Decision, keep: Sequence[str] | None) -> dict[str, Any]:
        """Fields of a change that confirms or archives the memories captured from a session."""
        for one in keep or ():
            if one not in case.chunk_ids:
                raise InputError(f"{one!r:.140} is not a memory of {case.id}", hint="review show lists them")
        here = _captured(case, self._store.get_many(case.chunk_ids))
        if made.decision == "deferred":
            return {}
        kept = [] if made.decision == "rejected" else [one for one in here if keep is None or one in keep]
        if keep and not kept:
            raise ConflictError(
                f"{keep[0]} cannot be kept: it is archived, in quarantine or of another session"
            )
        made.archived = [one for one in here if one not in kept]
        return {
            "marks": {one: {"reviewed_by": made.reviewer} for one in kept},
            "unmarks": {one: {"reviewed_by": None} for one in kept},
            "archived": made.archived,
        }

    def _tier_move(self, entry: TieredMemory, kind: str, made: Decision) -> tuple[list[Edit], dict[str, Any]]:
        """The edits and fields of a change that moves a memory; raises InvalidMemory if its rule is unmet."""
        if made.decision == "approved" and kind == "promote":
            checks = low_to_ultra(entry.meta)
            if not all_met(checks):
                raise InvalidMemory(f"{entry.key} no longer meets the rule: {unmet(checks)}")
            return self._to_core(entry, _decision_text(made))
        if made.decision == "rejected" and kind == "retain":
            return self._to_mid(entry, _decision_text(made))
        return [], {}

    def _to_core(self, entry: TieredMemory, reason: str) -> tuple[list[Edit], dict[str, Any]]:
        """Promote a memory to an ultra-low block of the SmartLibrary, and archive the low-tier memory."""
        fields = {
            **self._traces.moved(entry, "ultra-low", reason),
            "system_core_component": True,
            "component_of": None,
        }
        block = self.component(entry.key)
        name = (block.block if block else None) or self._traces.free_block(
            places.LIBRARY, entry.block or "core"
        )
        text = new_text({**fields, "id": name}, entry.body.rstrip("\n") + "\n\n")
        edit = (
            self._changes.replaced(block, text) if block else self._changes.added(places.LIBRARY, text, name)
        )
        core = mirror_id(self._store.namespace, places.LIBRARY, name)
        return [edit, *self._changes.archived(entry)], {
            "tier_to": "ultra-low",
            "derived": {core: [entry.chunk_id]},
            "superseded": {entry.chunk_id: core},
        }

    def _to_mid(self, entry: TieredMemory, reason: str) -> tuple[list[Edit], dict[str, Any]]:
        at = stamp(self._store.clock())
        fields = {**entry.raw, **moved(entry.meta, "mid", at, reason), "id": None}
        name = places.slug((entry.block or entry.title).replace("-", " "))
        file = places.pattern_file(name)
        number = 2
        while self._files.exists(file):
            file, number = places.pattern_file(f"{name}_{number}"), number + 1
        text = new_text(fields, entry.body)
        edits = [self._changes.added(file, text), self._changes.removed(entry)]
        component = self.component(entry.key)
        if component is not None:
            edits += self._changes.archived(component)
        return edits, {"tier_to": "mid"}

    def component(self, key: str) -> TieredMemory | None:
        """The SmartLibrary block (card) that refers to this low-tier memory, if any."""
        cards = self._files.in_file(places.LIBRARY, [])
        return next((entry for entry in cards if entry.meta.component_of == key), None)


def _captured(case: Case, readable: Mapping[str, Chunk]) -> list[str]:
    """The ids of the memories of a capture that can be read: not of others, which got their ids since."""
    return [
        one
        for one in case.chunk_ids
        if one in readable and readable[one].metadata.conversation_id == case.entry
    ]


def _decision_text(made: Decision) -> str:
    return f"{made.decision} by {made.reviewer}: {made.reason}"
