"""REASON: follow links, weigh supporting and contradicting chunks, and conclude (docs/spec/operations.md, REASON)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk import AGAINST_LINK_TYPES, Chunk
from rlm_mem.models.base import Limits, Usage, is_offline
from rlm_mem.recall.loop import LoopStep, answer_text, existing, supporting
from rlm_mem.recall.offline_reason import OfflineReasoner
from rlm_mem.recall.outcome import OutcomeWord, outcome_word
from rlm_mem.recall.recall import Source, end_run, log_recall, result_text, source_of
from rlm_mem.recall.running import Run, Runner, check_query
from rlm_mem.recall.trajectory import Trajectory, record_recall, unrecorded
from rlm_mem.telemetry import observed

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

OPERATIONS = ("read", "link", "synthesize")

REASON_TASK = """\
Reason across several chunks: from the hits, follow get_linked_chunks and neighbors, read what matters, and look
for what contradicts it. Of two facts the newer one holds (superseded_by, valid_to). End with:
FINAL({"conclusion": "...", "path": [{"chunk_id": "chunk-...", "operation": "read", "reasoning": "why"}],
"supports": ["chunk-..."], "contradicts": []}, chunk_ids=["chunk-..."], confidence=0.8)
where operation is read, link or synthesize."""
"""What REASON adds to the question; the instructions are those of RECALL."""


@dataclass(frozen=True)
class ReasoningStep:
    """One step of a path: ``operation`` is ``read``, ``link`` or ``synthesize``."""

    chunk_id: str
    operation: str
    reasoning: str


@dataclass
class ReasoningResult:
    """A conclusion and the path to it (docs/spec/operations.md, REASON).

    The first three fields are enough to create one, for example in a test.

    Attributes:
        conclusion: in words; empty if nothing was concluded (``stopped_by``) or the memory has no answer.
        path: the steps in order, as given by the model, else as observed: the chunks that its programs read, and
            the links between them.
        confidence: 0 to 1, as given to FINAL, else derived from the chunks (``confidence_of``).
        supports: ids of the chunks that support the conclusion.
        contradicts: ids of chunks that contradict it and are still valid.
        superseded: ids of chunks found on the way that are no longer valid.
        chunk_ids: the chunks that the conclusion rests on; without one, the best evidence found.
        iterations_used, trajectory, usage, cost, stopped_by, evidence, concluded, seconds, sources: as in
            RecallResult.
        note: that the offline model answered, and that chunk files could not be read; else empty.
    """

    conclusion: str
    path: list[ReasoningStep]
    confidence: float
    supports: list[str] = field(default_factory=list)
    contradicts: list[str] = field(default_factory=list)
    superseded: list[str] = field(default_factory=list)
    chunk_ids: list[str] = field(default_factory=list)
    iterations_used: int = 0
    trajectory: Trajectory = field(default_factory=unrecorded)
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = None
    stopped_by: str | None = None
    evidence: list[str] = field(default_factory=list)
    concluded: bool = True
    seconds: float = 0.0
    sources: list[Source] = field(default_factory=list)
    note: str = ""

    def __str__(self) -> str:
        text = result_text(self.conclusion, self.outcome, self.sources, self.confidence, self.stopped_by)
        return f"{text}\n{self.note}" if self.note else text

    def __repr__(self) -> str:
        return (
            f"ReasoningResult(outcome={self.outcome!r}, conclusion={self.conclusion!r}, "
            f"chunk_ids={self.chunk_ids!r}, confidence={self.confidence!r}, trajectory={self.trajectory.id!r})"
        )

    @property
    def outcome(self) -> OutcomeWord:
        """``answered``, ``closest only``, ``not held`` or ``stopped`` (:mod:`rlm_mem.recall.outcome`)."""
        return outcome_word(content=self.conclusion, chunk_ids=self.chunk_ids, concluded=self.concluded)


class ReasonOperation(Runner):
    """Reasons over a store; arguments as for :class:`~rlm_mem.recall.running.Runner`.

    With the offline model, a fixed program follows the links (:mod:`rlm_mem.recall.offline_reason`).
    """

    @observed("reason", record_recall)
    def reason(
        self,
        query: str,
        *,
        limits: Limits | None = None,
        on_step: Callable[[LoopStep], None] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> ReasoningResult:
        """Reason about ``query``; the arguments and errors are those of ``RecallOperation.recall``."""
        query = check_query(query)
        offline = OfflineReasoner(query, self.view.clock())

        def ask() -> ReasoningResult:
            run = self.run(
                query,
                "reason",
                llm=offline if is_offline(self.llm) else None,
                limits=limits,
                task=REASON_TASK,
                fallback=offline,
                on_step=on_step,
                on_text=on_text,
            )
            return reasoning_result(self.view, run)

        return self.retry_if_changed(ask)

    __call__ = reason


def reasoning_result(store: ChunkStore, run: Run) -> ReasoningResult:
    """Make the result of a finished run, and close its trajectory."""
    loop = run.loop
    given: dict[str, Any] = loop.answer if isinstance(loop.answer, dict) else {}
    text, answer_ids = answer_text(given.get("conclusion") if "conclusion" in given else loop.answer)
    conclusion = text or ""
    cited = existing(store, [*loop.chunk_ids, *_ids(given.get("supports")), *answer_ids])
    if conclusion and not cited:
        cited = supporting(store, conclusion, run.evidence)
    path = _given_path(store, given.get("path")) or _observed_path(store, run, list(cited), conclusion)
    known = existing(store, [*cited, *run.evidence])
    contradicts = list(existing(store, _ids(given.get("contradicts")))) or _opposing(store, cited, known)
    stated = given.get("superseded")
    superseded = [
        chunk_id
        for chunk_id, chunk in (existing(store, _ids(stated)) if isinstance(stated, list) else known).items()
        if store.out_of_date(chunk.metadata)
    ]
    supports = list(existing(store, _ids(given.get("supports")))) or list(cited)
    detail: dict[str, Any] = {
        "path": path,
        "supports": [chunk_id for chunk_id in supports if chunk_id not in contradicts],
        "contradicts": contradicts,
        "superseded": superseded,
    }
    values = end_run(
        store,
        run,
        conclusion or None,
        cited,
        content=text,
        detail=detail | {"path": [asdict(step) for step in path]},
    )
    log_recall(store, run.recorder, values["chunk_ids"])
    return ReasoningResult(
        conclusion=conclusion,
        sources=[
            source_of(store, chunk) for chunk in store.get_many(values["chunk_ids"], track=False).values()
        ],
        **values,
        **detail,
    )


def _ids(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _given_path(store: ChunkStore, value: Any) -> list[ReasoningStep]:
    """The path given by the model, without steps whose chunk is not in the store."""
    if not isinstance(value, list):
        return []
    entries = [item for item in value if isinstance(item, dict) and isinstance(item.get("chunk_id"), str)]
    real = existing(store, [item["chunk_id"] for item in entries])
    return [
        ReasoningStep(
            item["chunk_id"],
            item["operation"] if item.get("operation") in OPERATIONS else "read",
            str(item.get("reasoning") or ""),
        )
        for item in entries
        if item["chunk_id"] in real
    ]


def _observed_path(store: ChunkStore, run: Run, cited: Sequence[str], conclusion: str) -> list[ReasoningStep]:
    """The path of the programs: each chunk read, by a link if one connects it with a chunk read before."""
    path: list[ReasoningStep] = []
    hits = set(run.opening.hit_ids)
    before: set[str] = set()
    links = store.linked_of_each(list(existing(store, run.evidence)), direction="both")
    for chunk_id, linked in links.items():
        joined = [link for link in linked if link.chunk_id in before]
        if joined and chunk_id not in hits:
            step = ReasoningStep(chunk_id, "link", f"{joined[0].type} (link with {joined[0].chunk_id})")
        else:
            step = ReasoningStep(chunk_id, "read", "a first hit" if chunk_id in hits else "read by a program")
        path.append(step)
        before.add(chunk_id)
    if conclusion and cited:
        path.append(ReasoningStep(cited[0], "synthesize", f"concluded from {len(cited)} chunk(s)"))
    return path


def _opposing(store: ChunkStore, cited: Collection[str], known: dict[str, Chunk]) -> list[str]:
    """Chunks that are still valid and have a contradicting link with a cited chunk."""
    of_kind = [store.linked_of_each(list(cited), kind, direction="both") for kind in AGAINST_LINK_TYPES]
    linked = dict.fromkeys(
        link.chunk_id for chunk_id in cited for links in of_kind for link in links[chunk_id]
    )
    others = known | existing(store, linked)
    return [
        chunk_id
        for chunk_id in linked
        if chunk_id not in cited and chunk_id in others and not store.out_of_date(others[chunk_id].metadata)
    ]
