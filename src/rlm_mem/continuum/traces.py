"""Writes logs of executions, and counts the uses of memories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.arguments import check_flag, check_items, check_words
from rlm_mem.chunk import Chunk, check_confidence
from rlm_mem.chunk.types import as_list
from rlm_mem.continuum import places
from rlm_mem.continuum.changes import Change, Changes, archive_name
from rlm_mem.continuum.files import MemoryFiles, TieredMemory, new_text
from rlm_mem.continuum.mirror import MARK, key_of
from rlm_mem.continuum.rules import after_use, moved
from rlm_mem.continuum.runs import ExecutionRecord, ToolCall, as_step, write_run
from rlm_mem.continuum.schema import TIERS, Frontmatter, TierName, stamp, tier_fields
from rlm_mem.errors import InvalidMemory, NotFoundError
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.secrets import screen

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

_CONFIDENT, _PLAIN, _FAILED = 0.80, 0.70, 0.30


def goal_signature(goal: str, language: str = "english") -> str:
    """A normalised key for a goal: its stemmed content words in order."""
    return "_".join(dict.fromkeys(get_analyser(language).terms(goal)))[:200]


def context_key(project: str | None, context_fingerprint: str | None) -> str:
    """The key under which uses are counted: ``project@fingerprint``."""
    project = " ".join((project or "").replace("@", " ").split())[:80]
    return f"{project}@{context_fingerprint}" if context_fingerprint else project


def _check_words(**texts: str | None) -> None:
    for what, value in texts.items():
        if value is not None:
            check_words(value, what)


def _texts(texts: Sequence[str] | str, what: str) -> tuple[str, ...]:
    listed = [texts] if isinstance(texts, str) else check_items(texts, what)
    return tuple(check_words(one, what) for one in as_list(listed))


class Traces:
    """Writes logs, and counts the uses of memories."""

    def __init__(self, store: ChunkStore, memories: MemoryFiles, changes: Changes) -> None:
        self._store = store
        self._files = memories
        self._changes = changes

    # --- logs --------------------------------------------------------------------------------------------------------

    def record(
        self,
        goal: str,
        steps: Iterable[ToolCall | Mapping[str, Any]] = (),
        *,
        success: bool | None = None,
        indicators: Sequence[str] | str = (),
        preconditions: Sequence[str] | str = (),
        postconditions: Sequence[str] | str = (),
        project: str | None = None,
        context_fingerprint: str | None = None,
        task_type: str | None = None,
        confidence: float | None = None,
        notes: str = "",
        error: str | None = None,
        session: bool = False,
    ) -> TieredMemory:
        """Write the log of one interaction, or (``session``) of one session into the day's file.

        Args:
            success: the outcome; None if it is not known yet (record it later with ``use``).
            indicators: signs of success; a single text is one of them, as in the other lists.
            project, context_fingerprint: the context by which uses are counted.
            confidence: 0-1; by default from the execution: 0.8 for a success with indicators and no failed step,
                0.7 without, 0.3 for a failure.

        Raises:
            InvalidMemory: the goal is empty, or a step or field is malformed.
            InputError: another argument is of a wrong type.
        """
        if not isinstance(goal, str) or not goal.strip():
            raise InvalidMemory("a log needs a goal")
        check_flag(session, "session")
        if success is not None:
            check_flag(success, "success")
        _check_words(
            goal=goal, notes=notes, project=project, context_fingerprint=context_fingerprint, task_type=task_type,
            error=error,
        )  # fmt: skip
        if confidence is not None:
            check_confidence(confidence)
        run = ExecutionRecord(
            goal=goal,
            steps=tuple(as_step(number, step) for number, step in enumerate(check_items(steps, "steps"), 1)),
            preconditions=_texts(preconditions, "preconditions"),
            postconditions=_texts(postconditions, "postconditions"),
            indicators=_texts(indicators, "indicators"),
            notes=notes,
        )
        well = all(step.went_well for step in run.steps)
        if confidence is None:
            confidence = _FAILED if success is False else _CONFIDENT if run.indicators and well else _PLAIN
        now = self._store.clock()
        context = context_key(project, context_fingerprint)
        fields: dict[str, Any] = {
            **tier_fields("high"),
            "confidence_score": confidence,
            "consolidation_threshold": TIERS["high"].threshold,
            "usage_count": 0,
            "created_at": stamp(now),
            "goal_signature": goal_signature(self._clean(goal), self._store.config.search.language),
            "task_type": task_type,
            "context_fingerprint": context_fingerprint,
            "learning_source": "execution",
        }
        if success is not None:
            fields |= {"usage_count": 1, "success_count": int(success), "success_rate": float(success)}
            if context:
                fields["contexts"] = {context: [1, int(success)]}
            if not success:
                fields["failures"] = [
                    {"at": stamp(now), "error": self._clean(error or "")[:300], "context": context}
                ]
        body = self._clean(write_run(run), report=True)
        return self._add_log(now, fields, body, session=session)

    def _clean(self, text: str, *, report: bool = False) -> str:
        """Remove secrets from a text according to ``config.secrets``; with ``report``, findings are logged."""
        screened = screen(text, self._store.config.secrets)
        if screened.found and report:
            self._store.on_secret("a tiered memory", screened)
        return screened.text

    def _add_log(self, now: datetime, fields: dict[str, Any], body: str, *, session: bool) -> TieredMemory:
        """Write a log into a file of its own, or (``session``) as a block of the day's file."""

        def build() -> Change:
            if session:
                file = places.session_file(now)
                block: str | None = self.free_block(file, f"session-{now:%H%M%S}")
                key, text = f"{file}#{block}", new_text({"id": block, **fields}, body.rstrip("\n") + "\n\n")
            else:
                key = file = self.free_interaction(now)
                block, text = None, new_text(fields, body)
            edit = self._changes.added(file, text, block)
            return self._changes.draft("record", key, "recorded", [edit], tier_to="high")

        made = self._changes.apply(build)
        entry = self._files.get(made.entry)
        if entry is None:
            raise NotFoundError(f"{made.entry} disappeared after it was written")
        return entry

    def free_interaction(self, at: datetime) -> str:
        """The file name of a log at ``at`` or the next free second (names have a resolution of seconds)."""
        while True:
            file = places.interaction_file(at)
            # An archived name is also in use: its mirror still exists, superseded by that of the trace.
            if not any(self._files.exists(name) for name in (file, archive_name(file))):
                return file
            at += timedelta(seconds=1)

    def free_block(self, file: str, preferred: str) -> str:
        """An unused id for a new block: the preferred one, with a number appended if it is taken."""
        taken = {entry.block for entry in self._files.in_file(file)}
        if preferred not in taken:
            return preferred
        return next(
            name for number in range(2, len(taken) + 3) if (name := f"{preferred}-{number}") not in taken
        )

    # --- reading and uses --------------------------------------------------------------------------------------------

    def read(self, key: str) -> TieredMemory:
        """Return the memory with this key or chunk id and count an access, not a use; raises NotFoundError."""
        entry = self.find(key)
        self._store.get_chunk(entry.chunk_id, track=True)
        return entry

    def find(self, key: str) -> TieredMemory:
        """The memory with this key, or mirrored by this chunk; raises NotFoundError."""
        if check_words(key, "key").startswith("chunk-"):
            key = key_of(self._store.get_chunk(key, track=False)) or key
        entry = None if key.startswith("chunk-") else self._files.get(key)
        if entry is None:
            raise NotFoundError(f"there is no memory {key!r:.120}", hint="rlm-mem tier list shows them")
        return entry

    def use(
        self,
        key: str,
        success: bool,
        *,
        project: str | None = None,
        context_fingerprint: str | None = None,
        validated: bool | None = None,
        error: str | None = None,
        step: int | None = None,
    ) -> TieredMemory | Chunk:
        """Record one use and its outcome, and update usage, success rate and confidence.

        Args:
            key: a memory (``file`` or ``file#id``), its chunk, or a plain chunk of any type.
            validated: whether this was a test on new data; by default a success in another context than the first.
            error, step: what failed, and at which step.

        Returns:
            The updated memory or chunk.

        Raises:
            NotFoundError: the memory does not exist. InvalidMemory: it is working state, which has no uses.
        """
        check_flag(success, "success")
        if validated is not None:
            check_flag(validated, "validated")
        _check_words(key=key, project=project, context_fingerprint=context_fingerprint, error=error)
        use_fields: dict[str, Any] = {
            "context": context_key(project, context_fingerprint),
            "validated": validated,
            "error": None if error is None else self._clean(error, report=True),
            "step": step,
        }
        if key.startswith("chunk-"):
            chunk = self._store.get_chunk(key, track=False)
            if chunk is not None and key_of(chunk) is None:
                return self._use_chunk(key, success, use_fields)
        memory_key = self.find(key).key

        def build() -> Change:
            entry = self.find(memory_key)
            if entry.kind == "state":
                raise InvalidMemory(f"{entry.key} is working state: it has no uses")
            at = stamp(self._store.clock())
            fields = after_use(entry.meta, success, at, **use_fields) | self.accesses(entry)
            reason = "went well" if success else f"failed: {use_fields['error'] or 'no reason given'}"
            edit = self._changes.replaced(entry, entry.changed(fields))
            details = {"success": success, "context": use_fields["context"], "tier": entry.meta.tier}
            return self._changes.draft("use", entry.key, reason, [edit], details=details)

        self._changes.apply(build)
        return self.find(memory_key)

    def moved(self, entry: TieredMemory, tier: TierName, reason: str) -> dict[str, Any]:
        """The front matter of a memory after a move to another tier, with the access count of its mirror."""
        now = stamp(self._store.clock())
        return {**entry.raw, **moved(entry.meta, tier, now, reason), **self.accesses(entry)}

    def accesses(self, entry: TieredMemory) -> dict[str, Any]:
        """Fields that copy the mirror's access count to the memory's front matter; empty if it has not changed."""
        known = self._store.summaries([entry.chunk_id])
        count = max([entry.meta.access_count, *(summary.access_count for summary in known)])
        if count == entry.meta.access_count:
            return {}
        return {"access_count": count, "last_accessed": stamp(self._store.clock())}

    def _use_chunk(self, chunk_id: str, success: bool, use_fields: dict[str, Any]) -> Chunk:
        with self._changes.locked():
            chunk = self._store.get_chunk(chunk_id, track=False)
            if chunk is None:
                raise NotFoundError(f"there is no chunk {chunk_id}")
            changes = after_use(chunk_meta(chunk), success, stamp(self._store.clock()), **use_fields)
            uses = {**(chunk.metadata.extra.get("uses") or {}), **changes}
            confidence = uses.pop("confidence_score")
            updated = self._store.update_chunk(
                chunk_id,
                metadata={
                    "uses": uses,
                    "usage_count": uses["usage_count"],
                    "success_rate": uses["success_rate"],
                },
                tags=list(dict.fromkeys([*chunk.tags, MARK])),
                confidence=confidence,
            )
        if updated is None:
            raise NotFoundError(f"there is no chunk {chunk_id}")
        return updated


def chunk_meta(chunk: Chunk) -> Frontmatter:
    """The figures of a plain chunk as those of a mid-tier memory; raises InvalidMemory if damaged."""
    try:
        uses = msgspec.convert(chunk.metadata.extra.get("uses") or {}, dict[str, Any])
        known = {name: value for name, value in uses.items() if name in Frontmatter.__struct_fields__}
        return msgspec.convert(
            {**known, **tier_fields("mid"), "confidence_score": chunk.metadata.confidence}, Frontmatter
        )
    except msgspec.ValidationError as error:
        raise InvalidMemory(f"{chunk.id}: metadata.extra.uses: {error}") from None
