"""How well the offline model answers: token F1, evidence found, abstention and calibration on long conversations.

    python benchmarks/offline_answers.py --data FOLDER                  the tables that are shipped
    python benchmarks/offline_answers.py --data FOLDER --leave-one-out  each with tables fitted on the others
    python benchmarks/offline_answers.py --data FOLDER --fit            fit the shipped tables anew
    python benchmarks/offline_answers.py --data FOLDER --sample 30      30 questions of each; nothing is recorded

Every conversation is remembered session by session and every question goes through `Memory.recall`: search, program,
sandbox, reading. A suggestion counts as an abstention, but is compared like an answer. The baseline is the sentence
of the first hit's segment that shares most words with the question. Answers are compared by token F1 (lower case, no
punctuation, no articles), nothing is stemmed. An abstention counts as an F1 of 0 where there is an answer. Questions
of the category "adversarial" have no answer.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from locomo import CATEGORIES, Conversation, load
from offline_fit import Example, collect, examined, fit, is_right, token_f1, write
from rlm_mem import Memory
from rlm_mem.models.base import Completion, as_messages
from rlm_mem.offline import OfflineLLM
from rlm_mem.offline.model import given_passages
from rlm_mem.offline.weights import Weights
from rlm_mem.recall.recall import RecallOperation
from rlm_mem.text.analysis import get_analyser
from support import Report

WEIGHTS = Path(__file__).parents[1] / "src" / "rlm_mem" / "offline" / "weights.json"
UNANSWERABLE = 5


class Listening(OfflineLLM):
    """The offline model; keeps the passages of the first reading of each question."""

    def __init__(self, weights: Weights | None = None) -> None:
        super().__init__(weights)
        self.readings: list[tuple[Any, ...]] = []

    def complete(self, messages: Any, **options: Any) -> Completion:
        """Answer as usual; record the passages."""
        passages = given_passages(as_messages(messages)[-1].content)
        if passages is not None:
            self.readings.append(tuple(passages))
        return super().complete(messages, **options)


@dataclass(frozen=True)
class Outcome:
    """One question answered: by the offline model, and by the baseline."""

    category: int
    answered: bool
    f1: float
    right: bool
    confidence: float
    cited: float | None
    read: float | None
    baseline_f1: float
    baseline_cited: float | None
    seconds: float


def ask(
    memory: Memory, conversation: Conversation, weights: Weights | None = None
) -> tuple[list[Outcome], list[Example]]:
    """Every question of a conversation."""
    outcomes, examples = [], []
    for question in conversation.questions:
        truth = None if question.category == UNANSWERABLE else str(question.answer)
        model = Listening(weights)
        began = time.perf_counter()
        result = RecallOperation(memory.store, model).recall(question.text)
        seconds = time.perf_counter() - began
        given = result.content or result.suggestion
        examples.append(
            Example(conversation.name, question.text, truth, model.readings[0] if model.readings else ())
        )
        best = memory.search(question.text, limit=1)
        plain = best_sentence(question.text, best[0].snippet) if best else ""
        told = set(question.evidence)
        read = list(dict.fromkeys(p.chunk_id for reading in model.readings for p in reading))
        outcomes.append(
            Outcome(
                category=question.category,
                answered=result.content is not None,
                f1=token_f1(given, truth) if truth is not None and given is not None else 0.0,
                right=(given is None) == (truth is None) and (truth is None or is_right(given, truth)),
                confidence=result.confidence,
                cited=covered(memory, conversation, result.chunk_ids, told),
                read=covered(memory, conversation, read, told),
                baseline_f1=token_f1(plain, truth) if truth is not None else 0.0,
                baseline_cited=covered(memory, conversation, [hit.chunk_id for hit in best], told),
                seconds=seconds,
            )
        )
    return outcomes, examples


def best_sentence(question: str, text: str) -> str:
    """The sentence of a text that shares most words with the question, the speaker's name cut off."""
    analyser = get_analyser("english")
    wanted = set(analyser.terms(question))
    sentences = re.split(r"(?<=[.!?])\s+", re.sub(r"^\s*\w[\w .'-]{0,40}:\s", "", text))
    return max(sentences, key=lambda one: len(wanted & set(analyser.terms(one))), default="")


def covered(
    memory: Memory, conversation: Conversation, chunk_ids: Iterable[str], evidence: set[str]
) -> float | None:
    """Share of the marked turns in these chunks; None where nothing is marked."""
    known = {turn for turn in evidence if turn in conversation.session_of}
    if not known:
        return None
    held: set[str] = set()
    for chunk_id in chunk_ids:
        chunk = memory.store.get_chunk(chunk_id, track=False)
        if chunk is None:
            continue
        session = conversation.by_conversation_id[str(chunk.metadata.conversation_id)]
        held.update(turn.dia_id for turn in session.turns_between(*chunk.metadata.provenance["span"]))
    return len(known & held) / len(known)


def remember(conversation: Conversation, folder: Path) -> Memory:
    """The conversation as memories, a session at a time."""
    memory = Memory.open(folder, llm="offline")
    for session in conversation.sessions:
        memory.remember(session.text, conversation_id=session.conversation_id, occurred_at=session.at)
    return memory


def run(
    conversations: Sequence[Conversation], leave_one_out: bool, refit: bool
) -> tuple[list[Outcome], dict[str, float]]:
    """Outcomes of all questions, and the bars used."""
    outcomes: list[Outcome] = []
    bars: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        memories = {c.name: remember(c, Path(folder) / c.name) for c in conversations}
        examples: list[Example] = []
        for conversation in conversations:
            found, asked = ask(memories[conversation.name], conversation)
            examples += asked
            if not leave_one_out:
                outcomes += found
            say(f"{conversation.name}: {len(found)} questions asked")
        if leave_one_out or refit:
            say("fitting …")
            rows = collect(examples)
            seen = examined(examples, rows)
            if refit:
                write(fit(rows, seen), WEIGHTS)
                say(f"wrote {WEIGHTS}")
            for conversation in conversations if leave_one_out else ():
                weights = fit(rows, seen, {conversation.name})
                bars[conversation.name] = weights.bar
                outcomes += ask(memories[conversation.name], conversation, weights)[0]
                say(f"{conversation.name}: answered with tables fitted on the others")
        for memory in memories.values():
            memory.close()
    return outcomes, bars


def report(outcomes: Sequence[Outcome], mode: str) -> tuple[Report, Report]:
    """The figures by category, and how well the confidence fits."""
    answers = Report("offline_answers", f"Answers of the offline model ({mode})")
    for number, name in CATEGORIES.items():
        group = [one for one in outcomes if one.category == number]
        if not group:
            continue
        there = number != UNANSWERABLE
        answers.add(
            category=name,
            questions=len(group),
            F1=mean(one.f1 for one in group) if there else "–",
            F1_of_the_baseline=mean(one.baseline_f1 for one in group) if there else "–",
            evidence_cited=mean(one.cited for one in group) if there else "–",
            evidence_in_the_baseline=mean(one.baseline_cited for one in group) if there else "–",
            evidence_read=mean(one.read for one in group),
            abstained=mean(float(not one.answered) for one in group),
        )
    answerable = [one for one in outcomes if one.category != UNANSWERABLE]
    without = [one for one in outcomes if one.category == UNANSWERABLE]
    answers.facts |= {
        "weights": mode,
        "F1 of all answerable questions": mean(one.f1 for one in answerable),
        "F1 of the baseline": mean(one.baseline_f1 for one in answerable),
        "share abstained if there is no answer": mean(float(not one.answered) for one in without),
        "share abstained if there is one": mean(float(not one.answered) for one in answerable),
        "median seconds per question": sorted(one.seconds for one in outcomes)[len(outcomes) // 2],
    }
    calibration = Report("offline_calibration", f"Confidence of the offline model ({mode})")
    gap = 0.0
    for low in range(10):
        group = [one for one in outcomes if min(9, int(one.confidence * 10)) == low]
        if group:
            said, right = mean(one.confidence for one in group), mean(float(one.right) for one in group)
            gap += len(group) * abs(said - right) / len(outcomes)
            calibration.add(
                confidence=f"{low / 10:.1f}–{low / 10 + 0.1:.1f}",
                questions=len(group),
                mean_confidence=said,
                share_right=right,
            )
    calibration.facts["expected calibration error"] = round(gap, 4)
    return answers, calibration


def mean(values: Iterable[float | None]) -> float:
    """Mean of the values that are not None, rounded to four digits."""
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 4) if known else 0.0


def sampled(conversation: Conversation, count: int) -> Conversation:
    """The conversation with ``count`` of its questions, evenly chosen; 0: all of them."""
    step = max(1, len(conversation.questions) // count) if count else 1
    return replace(conversation, questions=conversation.questions[::step])


def say(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Run from the command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--data", type=Path, help="folder with the LoCoMo conversations (*.json)")
    options.add_argument("--leave-one-out", action="store_true", help="fit on the other conversations")
    options.add_argument("--fit", action="store_true", help="fit the shipped tables on all of them")
    options.add_argument(
        "--sample", type=int, default=0, help="ask only this many questions of each, evenly chosen"
    )
    chosen = options.parse_args()
    if chosen.data is None or not chosen.data.is_dir():
        print("skipped: give the folder with the conversations as --data PATH")
        return 0
    began = time.perf_counter()
    conversations = [sampled(one, chosen.sample) for one in load(chosen.data)]
    outcomes, bars = run(conversations, chosen.leave_one_out, chosen.fit)
    mode = "fitted on the other conversations" if chosen.leave_one_out else "shipped"
    answers, calibration = report(outcomes, mode)
    answers.facts |= {
        "answer threshold by conversation": bars,
        "total seconds": round(time.perf_counter() - began, 1),
    }
    scratch = Path(tempfile.gettempdir()) if chosen.sample else None
    for one in (answers, calibration):
        one.finish(scratch / f"{one.name}_sample.json" if scratch else None)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
