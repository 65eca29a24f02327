"""RECALL: answer a question from the memory by programs that the model writes (docs/spec/operations.md, RECALL)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic

from rlm_mem import search as searching
from rlm_mem.chunk.types import out_of_date
from rlm_mem.models.base import SURE, Limits, Usage
from rlm_mem.recall.loop import LoopStep, answer_text, confidence_of, existing, supporting
from rlm_mem.recall.outcome import (
    CLOSEST_BESIDE,
    ENDINGS,
    SUGGESTED,
    Method,
    OutcomeWord,
    confidence_words,
    ending_of,
    note_line,
    outcome_word,
    unread_note,
)
from rlm_mem.recall.result_schema import ResultSchema
from rlm_mem.recall.running import Run, Runner
from rlm_mem.recall.source_lines import SourceLine, nearest_lines
from rlm_mem.recall.trajectory import Trajectory, TrajectoryRecorder, record_recall, unrecorded
from rlm_mem.record import FrozenRecord
from rlm_mem.store.core.records import path_of, repeated_prefix, standing
from rlm_mem.telemetry import observed
from rlm_mem.text.blocks import one_line
from rlm_mem.text.tokens import texts_within

if TYPE_CHECKING:
    from types import UnionType
    from typing import _SpecialForm

    from typing_extensions import TypeVar  # of the type checker: that of Python has a default from 3.13 on

    from rlm_mem.chunk import Chunk
    from rlm_mem.store.core.chunk_store import ChunkStore

    ValueT = TypeVar("ValueT", default=Any)
    Wanted = type[ValueT] | UnionType | Mapping[str, Any] | _SpecialForm
    """The requested type of an answer, as for :class:`~rlm_mem.recall.result_schema.ResultSchema`.

    ``Literal[…]``, ``Optional[…]`` and ``Annotated[…]`` are special forms, whose meaning a type checker cannot express.
    """
else:
    from typing import TypeVar

    ValueT = TypeVar("ValueT")
_MAX_CLOSEST = 3
"""Most closest memories beside an uncertain answer."""
_MAX_PRINTED = 5
"""Most sources in a printed result."""
_EXCERPT_CHARS = (1_500,) * 3 + (500,) * 7
"""Most characters of the excerpts of the first ten sources; readers need the first ones most."""
_LINE_CHARS, _LINE_CHARS_ALONE = (
    300,
    500,
)  # most characters, with an answer and without, when there is no more to read


class Source(FrozenRecord, frozen=True):
    """A memory behind an answer; without an answer, one of the closest.

    Attributes:
        chunk_id: id of the chunk.
        at: when it was said or happened (ISO 8601).
        line: the part nearest to the question, on one line of at most 300 characters, without an answer of at most 500;
            after the first ten sources, and for a path of reasoning, its beginning.
        excerpt: the part most relevant to the question, on one line of at most 1,500 characters, from the fourth source
            on of at most 500; only the first ten sources of a result have one, for others it is ``line``. Without an
            answer, a whole part of a document goes on with the part after it.
        origin: where it came from: person, agent, tool, import, web.
        trust: how far it is trusted: untrusted, ordinary, trusted.
        superseded_by: the chunk that replaced it, or None.
        ended_at: the end of its validity, or None while it is valid.
        path: the file that it was read from, as far as that is known, or an empty string.
        heading: the headings above ``line``, topmost first, separated by slashes.
    """

    chunk_id: str
    at: str
    line: str
    excerpt: str = ""
    origin: str = "person"
    trust: str = "trusted"
    superseded_by: str | None = None
    ended_at: str | None = None
    path: str = ""
    heading: str = ""

    def __str__(self) -> str:
        untrusted = f"untrusted: {self.origin}" if self.trust == "untrusted" else ""
        marks = filter(None, (untrusted, out_of_date(self.superseded_by, self.ended_at)))
        return f"{self.chunk_id}  {self.at[:10]}  {self.line}" + "".join(f"  [{mark}]" for mark in marks)


class Standing(FrozenRecord, frozen=True):
    """The reliability of a memory and its figures.

    Attributes:
        chunk_id: id of the chunk.
        tier: of a tiered memory, None for a plain chunk.
        reliability, confidence: 0 to 1.
        usage_count: number of uses.
        success_rate: share of successful uses, 0 to 1; None: unknown.
    """

    chunk_id: str
    tier: str | None
    reliability: float
    confidence: float
    usage_count: int
    success_rate: float | None


@dataclass
class RecallResult(Generic[ValueT]):
    """The answer to a question (docs/spec/operations.md, RECALL).

    The first four fields are enough to create one, for example in a test.

    Attributes:
        content: the answer; None if the memory has none (``concluded``) or a budget ended the run.
        suggestion: without an answer, the likeliest one, if any; to be checked against ``sources``. The offline
            model makes one if its confidence is at most 0.6.
        chunk_ids: the chunks that the answer rests on; without an answer, the best evidence found.
        confidence: 0 to 1. As the model gave it to FINAL, else derived from the chunks (``confidence_of``); 0 if
            nothing was concluded. Without an answer, the confidence in the suggestion; without that, the confidence
            that there is no answer, 0 if chunk files could not be read.
        iterations_used: turns of the run, sub-questions included.
        trajectory: every step; ``trajectory.path`` is the file.
        usage: tokens of all calls.
        cost: US dollars of all calls, None if one of them had no known price.
        stopped_by: iterations, depth, seconds, model_calls, tokens or usd; ``repetition`` if the model sent one
            failing reply four times in a row; None if FINAL was called.
        evidence: ids of the chunks that the programs read, in order.
        concluded: FINAL was called.
        seconds: wall clock of the run.
        standing: how reliable each of ``chunk_ids`` that still exists is.
        sources: the same chunks with date, beginning, and the part most relevant to the question.
        closest: beside an uncertain answer (confidence at most 0.6), up to three of the first hits that the answer
            does not rest on; else empty.
        method: ``programs``: the model wrote programs; ``scaffolded``: it read memories that the offline model
            found or that it searched for; ``offline``: the offline model answered instead.
        note: the reason if ``method`` is not ``programs``, and that chunk files could not be read; else empty.
        value: the answer in the type requested with ``result``; None without an answer, or if none was requested.
    """

    content: str | None
    chunk_ids: list[str]
    confidence: float
    iterations_used: int
    trajectory: Trajectory = field(default_factory=unrecorded)
    usage: Usage = field(default_factory=Usage)
    cost: Decimal | None = None
    stopped_by: str | None = None
    evidence: list[str] = field(default_factory=list)
    concluded: bool = True
    seconds: float = 0.0
    standing: list[Standing] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    closest: list[Source] = field(default_factory=list)
    method: Method = "programs"
    note: str = ""
    value: ValueT | None = None
    suggestion: str | None = None

    def __str__(self) -> str:
        text = result_text(
            self.content, self.outcome, self.sources, self.confidence, self.stopped_by, self.suggestion
        )
        closest = [CLOSEST_BESIDE, *(f"  {one}" for one in self.closest)] if self.closest else []
        note = [note_line(self.method, self.note)] if self.note else []
        return "\n".join((text, *closest, *note))

    def __repr__(self) -> str:
        return (
            f"RecallResult(outcome={self.outcome!r}, content={self.content!r}, suggestion={self.suggestion!r}, "
            f"chunk_ids={self.chunk_ids!r}, confidence={self.confidence!r}, iterations_used={self.iterations_used!r}, "
            f"trajectory={self.trajectory.id!r})"
        )

    @property
    def outcome(self) -> OutcomeWord:
        """``answered``, ``closest only``, ``not held`` or ``stopped`` (:mod:`rlm_mem.recall.outcome`)."""
        return outcome_word(content=self.content, chunk_ids=self.chunk_ids, concluded=self.concluded)

    def within(self, max_tokens: int) -> RecallResult[ValueT]:
        """The result with excerpts of at most ``max_tokens`` tokens together; the last is cut, later ones dropped."""
        sources = [*self.sources, *self.closest]
        texts = texts_within([one.excerpt for one in sources], max_tokens)
        kept = [
            one if text == one.excerpt else replace(one, excerpt=text, line=min(one.line, text, key=len))
            for one, text in zip(sources, texts, strict=False)
        ]
        count = len(self.sources)
        return replace(self, sources=kept[:count], closest=kept[count:])


class RecallOperation(Runner):
    """Answers questions from a store; arguments as for :class:`~rlm_mem.recall.running.Runner`."""

    @observed("recall", record_recall)
    def recall(
        self,
        query: str,
        *,
        result: Wanted[ValueT] | None = None,
        limits: Limits | None = None,
        on_step: Callable[[LoopStep], None] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> RecallResult[ValueT]:
        """Answer ``query`` from the memory.

        Args:
            query: the question, in words.
            result: the type or schema of the answer (:class:`~rlm_mem.recall.result_schema.ResultSchema`), and of
                ``value``. An answer that does not match is returned to the model with the reason.
            limits: budgets of this recall only.
            on_step: called after every turn, for live views.
            on_text: called with each piece of the model's replies as it arrives.

        Raises:
            InvalidQuery: the question is empty.
            InputError: ``result`` is not a supported type or schema.
            ModelError: the model failed.
        """
        form = None if result is None else ResultSchema(result)

        def ask() -> RecallResult[ValueT]:
            run = self.run(query, "recall", limits=limits, form=form, on_step=on_step, on_text=on_text)
            return recall_result(self.view, run, form)

        return self.retry_if_changed(ask)

    __call__ = recall


def recall_result(store: ChunkStore, run: Run, form: ResultSchema | None = None) -> RecallResult:
    """Make the result of a finished run (text, chunks, confidence), and close its trajectory."""
    content, answer_ids = answer_text(run.loop.answer)
    chunks = existing(store, [*run.loop.chunk_ids, *answer_ids])
    if content is not None and not chunks:
        chunks = supporting(store, content, run.evidence)
    suggestion = run.loop.suggestion
    values = end_run(
        store,
        run,
        content if content is not None else suggestion,
        chunks,
        content=content,
        suggestion=suggestion,
    )
    returned_ids = values["chunk_ids"]
    unsure = content is not None and values["confidence"] <= SURE
    # An outline is in time order.
    hits = sorted(run.opening.hits, key=lambda hit: -hit["score"]) if unsure else []
    closest_ids = [hit["id"] for hit in hits if hit["id"] not in returned_ids][:_MAX_CLOSEST]
    log_recall(store, run.recorder, [*returned_ids, *closest_ids])
    cited_chunks = list(store.get_many(returned_ids, track=False).values())
    closest_chunks = list(store.get_many(closest_ids, track=False).values())
    sources = _sources(
        store, values["trajectory"], [*cited_chunks, *closest_chunks], continued=content is None
    )
    return RecallResult(
        content=content,
        suggestion=suggestion,
        standing=[Standing(chunk.id, **standing(chunk)) for chunk in cited_chunks],
        sources=sources[: len(cited_chunks)],
        closest=sources[len(cited_chunks) :],
        value=None if form is None or content is None else form.value_of(run.loop.answer),
        method=run.loop.detail.get("method", "programs"),
        **values,
    )


def end_run(
    store: ChunkStore,
    run: Run,
    answer: str | None,
    chunks: Mapping[str, Chunk],
    *,
    content: str | None,
    suggestion: str | None = None,
    detail: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Close the trajectory of a finished run, and return the fields that the results of RECALL and REASON share.

    Args:
        answer: what the confidence is derived from, if FINAL got none; None: there is no answer.
        chunks: those that it rests on, by id. If nothing was concluded, the best evidence is returned instead.
        content, suggestion, detail: of the recorded outcome.
    """
    loop = run.loop
    confidence = loop.confidence
    if confidence is None:
        confidence = confidence_of(store, answer, chunks) if answer is not None else 0.0
    unread = store.unreadable_files
    if not loop.concluded or (unread and answer is None):
        confidence = 0.0
    note = "; ".join(filter(None, (loop.detail.get("note"), unread_note(unread) if unread else "")))
    values: dict[str, Any] = {
        # The best evidence: the chunks that were read, else the ranker's first hits.
        "chunk_ids": list(chunks) if loop.concluded else list(run.evidence) or run.opening.hit_ids,
        "confidence": min(1.0, max(0.0, float(confidence))),
        "concluded": loop.concluded,
        "stopped_by": loop.stopped_by,
        "evidence": list(run.evidence),
    }
    trajectory = run.recorder.finish(
        run.spent,
        content=content,
        suggestion=suggestion,
        detail={**(detail or {}), **loop.detail, **({"note": note} if note else {})},
        **values,
    )
    return values | {
        "iterations_used": run.spent.iterations,
        "trajectory": trajectory,
        "usage": run.spent.usage,
        "cost": run.spent.cost,
        "seconds": run.spent.seconds,
        "note": note,
    }


def _sources(
    store: ChunkStore, trajectory: Trajectory, chunks: list[Chunk], *, continued: bool
) -> list[Source]:
    """The chunks as sources; ``continued``: parts of documents are read on, see :func:`_continued`."""
    lines = {hit["id"]: hit["lines"] for hit in trajectory.hits}
    excerpts = searching.excerpts(store, trajectory.query, chunks, longest=_EXCERPT_CHARS, lines=lines)
    if continued:
        excerpts.update(_continued(store, chunks, excerpts))
    longest = _LINE_CHARS_ALONE if continued else _LINE_CHARS
    near = nearest_lines(trajectory.query, chunks[: len(_EXCERPT_CHARS)], longest)
    return [source_of(store, chunk, excerpts.get(chunk.id), near.get(chunk.id)) for chunk in chunks]


def _continued(store: ChunkStore, chunks: list[Chunk], excerpts: Mapping[str, str]) -> dict[str, str]:
    """Excerpts with room left, by id, continued with the next part of their document.

    A question often has the words of a heading or of the first lines below it, and the answer is in the part that
    follows. Parts that are shown anyway are not repeated.
    """
    whole = {
        one.id: (one, room)
        for one, room in zip(chunks, _EXCERPT_CHARS, strict=False)
        if one.metadata.provenance.get("parts", 1) != 1
        and len(excerpts[one.id]) == len(" ".join(one.content.split())) < room
    }
    if not whole:
        return {}
    following = {one: after for one, (_, after) in store.neighbours_of_each(list(whole), 0, 1).items()}
    shown = {one.id for one in chunks[: len(_EXCERPT_CHARS)]}
    read = store.get_many([one for ids in following.values() for one in ids if one not in shown], track=False)
    found = {}
    for chunk_id, ids in following.items():
        for after in filter(None, map(read.get, ids)):
            part, meta = whole[chunk_id][0].metadata.provenance.get("part"), after.metadata
            if (
                meta.superseded_by is None
                and isinstance(part, int)
                and meta.provenance.get("part") == part + 1
            ):
                rest = after.content[repeated_prefix(after) :]
                found[chunk_id] = one_line(f"{excerpts[chunk_id]} {rest}", whole[chunk_id][1])
    return found


def source_of(
    store: ChunkStore, chunk: Chunk, excerpt: str | None = None, nearest: SourceLine | None = None
) -> Source:
    """A chunk as the source of an answer; without its nearest line and an excerpt, its beginning."""
    line, heading = nearest or SourceLine(one_line(chunk.content, _LINE_CHARS), "")
    metadata = chunk.metadata
    return Source(
        chunk.id, metadata.at, line, excerpt or line, metadata.origin, metadata.trust, metadata.superseded_by,
        metadata.valid_to and store.ended_at(metadata.valid_to), path_of(chunk), heading,
    )  # fmt: skip


def result_text(
    answer: str | None,
    outcome: OutcomeWord,
    sources: list[Source],
    confidence: float,
    stopped_by: str | None,
    suggestion: str | None = None,
) -> str:
    """A result as a few lines: answer, sources, confidence."""
    if suggestion is not None:
        lines = [f"{SUGGESTED} {suggestion}"]
    else:
        lines = [answer if outcome == "answered" and answer else ENDINGS[outcome]]
    if stopped_by is not None:
        lines.append(ending_of(stopped_by))
    lines += [f"  {source}" for source in sources[:_MAX_PRINTED]]
    if len(sources) > _MAX_PRINTED:
        lines.append(f"  and {len(sources) - _MAX_PRINTED} more")
    words = confidence_words(outcome, confidence, suggestion)
    return "\n".join([*lines, words] if words else lines)


def log_recall(store: ChunkStore, recorder: TrajectoryRecorder, chunk_ids: list[str]) -> None:
    """Record the returned chunks in the audit log, which a read-only store does not have.

    The question of a run whose record was erased meanwhile is not written again.
    """
    if not (store.backend.read_only or recorder.removed):
        trajectory = recorder.trajectory
        store.record_event(
            trajectory.operation, chunk_ids=chunk_ids, trajectory=trajectory.id, query=trajectory.query
        )
