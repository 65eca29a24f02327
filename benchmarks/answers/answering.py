"""Systems that answer: a recall with any model, or search and FTS5, with or without a model that reads the passages."""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from answers.scoring import figures, prompt, terms
from answers.sets import Case, Corpus
from ranking_peers import Fts5
from rlm_mem import Memory
from rlm_mem.models.base import LLM, Completion

TOP = 10
"""Passages that search and FTS5 hand out."""
WITHOUT_MODEL = ("offline", "search-only", "fts5")
_COMPLETE = "answers-complete"
"""The file that says that a memory holds all texts of its corpus."""


@dataclass(frozen=True)
class Answered:
    """One question answered.

    Attributes:
        answer: None where the system found no answer in the memory.
        outcome: of a recall in one of five words, else ``answered`` or ``not held``; ``failed`` with ``error``.
        read_chars: characters given to the model, or to the caller, to read.
        tokens_in, tokens_out, calls: of models; usd: US dollars as text, None when a call had no known price.
        score, held: see `scoring.figures`; None: not measured.
    """

    id: str
    set: str
    kind: str
    answer: str | None
    outcome: str
    seconds: float | None
    read_chars: int | None
    tokens_in: int | None
    tokens_out: int | None
    calls: int | None
    usd: str | None
    score: float | None
    held: bool | None
    error: str | None = None

    def row(self) -> dict[str, Any]:
        """As a line of a file."""
        return asdict(self)


def remembered(corpus: Corpus, place: Path) -> Path:
    """The brain of a corpus, made where it is missing; an incomplete one is made again."""
    if not (place / _COMPLETE).exists():
        shutil.rmtree(place, ignore_errors=True)
        with Memory.open(place, llm="offline") as memory:
            for text in corpus.texts:
                memory.remember(
                    text.text, conversation_id=text.conversation, occurred_at=text.at, source="import"
                )
        (place / _COMPLETE).touch()
    return place


class Answerer:
    """Answers the questions about one corpus.

    Args:
        brain: its memory. mode: ``fts5``, ``search-only``, or the name of a model such as ``offline``.
        reader: reads the passages of ``fts5`` and ``search-only``; None: no model does.
    """

    def __init__(self, brain: Path, mode: str, llm: object, reader: LLM | None) -> None:
        self._mode = mode
        self._reader = reader
        self._memory = Memory.open(brain, llm="offline" if mode in WITHOUT_MODEL else llm)
        self._fts: tuple[Fts5, list[str]] | None = None

    def close(self) -> None:
        """Close the memory."""
        self._memory.close()

    def answer(self, case: Case) -> Answered:
        """Answer one question; a failure of the model is recorded, and the run continues."""
        started = time.perf_counter()
        try:
            if self._mode in ("fts5", "search-only"):
                return self._from_passages(case, started)
            return self._recalled(case, started)
        except Exception as error:  # noqa: BLE001 - one question of hundreds; the report counts and names it
            said = f"{type(error).__name__}: {error}"[:500]
            return _made(case, None, "failed", "", started, error=said)

    def _recalled(self, case: Case, started: float) -> Answered:
        offline = self._mode == "offline"
        asked = stem(case) if offline else prompt(f"ask_{case.set}", question=case.question).strip()
        result = self._memory.recall(asked)
        excerpts = [source.excerpt for source in result.sources]
        answer = result.content or result.suggestion  # who is examined gives their best guess
        if offline:
            read = "\n".join([answer or "", *excerpts])
            if case.options:
                answer = f"({choice(case, [answer or '', *excerpts])})"
        else:
            read = "\n".join(
                [*(str(hit.get("snippet", "")) for hit in result.trajectory.hits)]
                + [step.output for step in result.trajectory.steps]
            )
        outcome = result.trajectory.outcome
        return _made(
            case,
            answer,
            result.outcome,
            read,
            started,
            tokens=(0, 0) if offline else (result.usage.input_tokens, result.usage.output_tokens),
            calls=0 if offline or outcome is None else outcome.model_calls,
            usd=result.cost,
        )

    def _from_passages(self, case: Case, started: float) -> Answered:
        passages = self._passages(stem(case))
        read = "\n".join(passages)
        if self._reader is None:
            if case.options:
                answer: str | None = f"({choice(case, passages)})"
            else:
                answer = sentence(stem(case), passages)
            return _made(case, answer, "answered" if answer else "not held", read, started)
        numbered = "\n\n".join(f"[{number}] {passage}" for number, passage in enumerate(passages, 1))
        task = prompt(f"ask_{case.set}", question=case.question).strip()
        asked = prompt("read", passages=numbered, task=task)
        said: Completion = self._reader.complete(asked)
        return _made(
            case,
            said.text.strip() or None,
            "answered",
            asked,
            started,
            tokens=(said.usage.input_tokens, said.usage.output_tokens),
            calls=1,
            usd=said.cost,
            scored_on=read,
        )

    def _passages(self, question: str) -> list[str]:
        store = self._memory.store
        if self._mode == "search-only":
            ids = [hit.chunk_id for hit in self._memory.search(question, limit=TOP)]
            found = store.get_many(ids)
            return [_dated(found[one]) for one in ids if one in found]
        if self._fts is None:
            texts = [_dated(chunk) for chunk in store.get_many(store.list_chunks()).values()]
            self._fts = Fts5(texts), texts
        index, texts = self._fts
        return [texts[number] for number in index.rank(question)[:TOP]]


def stem(case: Case) -> str:
    """The question without the options of a choice and without the name of the user."""
    text = case.question
    for letter in case.options:
        text = text.split(f"\n({letter}) ", 1)[0]
    text = text.strip()
    # The first line names the user, or is the question itself.
    first, _, rest = text.partition("\n")
    return rest.strip() or first.removeprefix("User: ") if first.startswith("User: ") else text


def choice(case: Case, passages: list[str]) -> str:
    """Without a model: the option with most words in the passages, not counting words that all options share."""
    seen = set(terms("\n".join(passages)))
    words = {letter: set(terms(text)) for letter, text in case.options.items()}
    shared = set.intersection(*words.values()) if words else set()
    own = {letter: found - shared for letter, found in words.items()}
    return max(own, key=lambda letter: (len(own[letter] & seen) / (len(own[letter]) or 1), letter))


def sentence(question: str, passages: list[str]) -> str | None:
    """Without a model: the sentence of the first passage that shares most words with the question."""
    if not passages:
        return None
    wanted = set(terms(question))
    sentences = [one for one in re.split(r"(?<=[.!?])\s+|\n", passages[0].partition("] ")[2]) if one.strip()]
    return max(sentences, key=lambda one: len(wanted & set(terms(one))), default=None)


def _dated(chunk: Any) -> str:
    return f"[{chunk.metadata.at[:10]}] {chunk.content}"


def _made(
    case: Case,
    answer: str | None,
    outcome: str,
    read: str,
    started: float,
    *,
    tokens: tuple[int, int] = (0, 0),
    calls: int = 0,
    usd: Decimal | None = Decimal(0),
    error: str | None = None,
    scored_on: str | None = None,
) -> Answered:
    measured: dict[str, Any] = {"score": None, "held": None}
    if error is None:  # no answer because of a failure is no abstention
        measured = figures(case, answer, read if scored_on is None else scored_on)
    return Answered(
        id=case.id, set=case.set, kind=case.kind, answer=answer, outcome=outcome,
        seconds=round(time.perf_counter() - started, 4), read_chars=len(read), tokens_in=tokens[0],
        tokens_out=tokens[1], calls=calls, usd=None if usd is None else str(usd), error=error, **measured,
    )  # fmt: skip


def given_by_host(case: Case, answer: str | None) -> Answered:
    """An answer of an external agent, without measured cost."""
    return Answered(
        id=case.id, set=case.set, kind=case.kind, answer=answer, outcome="answered" if answer else "not held",
        seconds=None, read_chars=None, tokens_in=None, tokens_out=None, calls=None, usd=None,
        score=figures(case, answer, "")["score"], held=None,
    )  # fmt: skip
