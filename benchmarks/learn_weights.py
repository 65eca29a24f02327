"""Learn the weights of `rlm_mem.search.ranking` from marked evidence, cross-validated over conversations.

    python benchmarks/learn_weights.py --data FOLDER

Listwise logistic loss: for each question, how likely its evidence is to be drawn before the other segments, with an L2
penalty on standardised features. Cues that count for one kind of question only are held back twice, by a stronger
penalty and by halving what was learned: few questions teach each, and other corpora put them to other uses (halving
costs the conversations nothing). Questions without a true answer ("adversarial") count less: they name the wrong person
on purpose. Prints recall for each conversation with weights from the others, then the table for `WEIGHTS`.

Needs scipy (benchmarks only).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from locomo import Conversation, load
from rlm_mem.search import features
from rlm_mem.search.candidates import CandidateSet
from rlm_mem.search.query import Query, analyse_query, with_related
from rlm_mem.text.analysis import get_analyser, segment_flags
from support import arguments

L2 = 0.02
CUE_L2 = 5.0  # times L2 for the weight of a cue of one kind of question ("when:time")
CUES_KEPT = 0.5  # share of such a weight that is kept
ADVERSARIAL = 0.2  # weight of a question without a true answer
HARD = 120  # other segments per question that are learned from: those that plain weights place first
_PLAIN = {
    "own": 0.38, "window": 0.15, "gap": 0.22, "session": 0.41, "author_named": 1.3, "in_month": 4.8,
    "near_date": 3.0, "exact_day": 1.3, "answers": 0.16, "is_question": -0.66, "opens_conversation": 0.7,
    "time_told": 0.89,
}  # fmt: skip


@dataclass(frozen=True)
class Said:
    """One segment of a corpus: `place` is its conversation, None where it stands alone."""

    key: str
    text: str
    author: str | None
    place: str | None
    at: float


class Corpus:
    """Segments in memory, offered as candidate sets that hold all of them."""

    def __init__(self, said: Sequence[Said]) -> None:
        self.analyser = get_analyser()
        self.said = said
        self.place = {one.key: number for number, one in enumerate(said)}
        counts = [Counter(self.analyser.terms(one.text)) for one in said]
        self.postings: dict[str, list[tuple[int, int]]] = {}
        for number, terms in enumerate(counts):
            for term, tf in terms.items():
                self.postings.setdefault(term, []).append((number, tf))
        self.length = np.array([sum(terms.values()) for terms in counts], np.int64)
        self.flags = np.array([segment_flags(one.text) for one in said], np.int64)
        self.authors = tuple(sorted({one.author for one in said if one.author}))
        self.author = np.array(
            [self.authors.index(one.author) if one.author else -1 for one in said], np.int64
        )
        self.at = np.array([one.at for one in said])
        places: dict[str, int] = {}
        self.conv = np.array(
            [places.setdefault(one.place or f"alone {one.key}", len(places)) for one in said]
        )
        self.conv_length = np.bincount(self.conv, self.length).astype(np.int64)
        self.conv_pos = np.array([int((self.conv[:n] == c).sum()) for n, c in enumerate(self.conv)], np.int64)

    def query(self, text: str) -> Query:
        """The question as search would analyse it, but for repairs."""
        return with_related(analyse_query(text, self.analyser, known_authors=self.authors), self.analyser)

    def candidates(self, query: Query) -> CandidateSet:
        """Every segment."""
        size, conversations = len(self.said), len(self.conv_length)
        tf = np.zeros((size, len(query.terms)), np.float32)
        for column, term in enumerate(query.terms):
            for number, count in self.postings.get(term, ()):
                tf[number, column] = count
        conv_tf = np.zeros((conversations, len(query.terms)), np.int64)
        np.add.at(conv_tf, self.conv, tf.astype(np.int64))
        numbers, df = np.arange(size), (tf > 0).sum(axis=0)
        average = float(self.length.mean())
        none: list[str | None] = [None] * size
        given: dict[str, Any] = {
            "chunk_ids": [one.key for one in self.said], "doc": numbers, "chunk_conv": self.conv, "chunk_at": self.at,
            "chunk_type": ["note"] * size, "confidence": np.ones(size), "valid_from": none, "valid_to": none,
            "superseded_by": none, "first_stage": np.zeros(size), "chunk_eligible": np.ones(size, np.bool_),
            "chunk_index": numbers, "seg_no": np.zeros(size, np.int64), "start": numbers, "end": numbers,
            "run": self.conv, "conv": self.conv, "conv_pos": self.conv_pos, "author": self.author, "at": self.at,
            "flags": self.flags, "length": self.length, "tf": tf, "eligible": np.ones(size, np.bool_),
            "authors": self.authors, "n_segments": size, "avg_length": average, "df": df, "n_chunks": size,
            "avg_chunk_length": average, "chunk_df": df, "n_conversations": conversations,
            "avg_conversation_length": float(self.conv_length.mean()), "conv_df": (conv_tf > 0).sum(axis=0),
            "conv_tf": conv_tf, "conv_length": self.conv_length,
        }  # fmt: skip
        return CandidateSet(**given)


@dataclass(frozen=True)
class Example:
    """One question: which conversation (fold) it is from, its weight, category, features and evidence rows."""

    fold: int
    weight: float
    category: int
    rows: np.ndarray
    evidence: np.ndarray


def corpus_of(conversation: Conversation) -> Corpus:
    """A conversation's turns."""
    return Corpus(
        [
            Said(
                turn.dia_id,
                turn.line[len(turn.speaker) + 2 :],
                turn.speaker,
                session.conversation_id,
                turn.at.timestamp(),
            )
            for session in conversation.sessions
            for turn in session.turns
        ]
    )


def examples_of(conversation: Conversation, fold: int) -> Iterator[Example]:
    """A conversation's questions that have marked evidence."""
    corpus = corpus_of(conversation)
    for question in conversation.questions:
        if question.evidence:
            weight = ADVERSARIAL if question.category == 5 else 1.0
            evidence = np.array([corpus.place[key] for key in question.evidence])
            yield Example(fold, weight, question.category, feature_rows(corpus, question.text), evidence)


def feature_rows(corpus: Corpus, text: str) -> np.ndarray:
    """Features of every segment for a question (segments × `features.names()`)."""
    query = corpus.query(text)
    found = features.values(features.Scene(query, corpus.candidates(query)))
    zeros = np.zeros(len(corpus.said))
    return np.stack([found.get(name, zeros) for name in features.names()], axis=1).astype(np.float32)


def hard(example: Example, plain: np.ndarray) -> Example:
    """The same question with only its evidence and the strongest other segments."""
    scores = example.rows @ plain
    kept = np.zeros(len(scores), np.bool_)
    kept[np.argsort(-scores, kind="stable")[:HARD]] = True
    kept[example.evidence] = True
    renumbered = np.cumsum(kept) - 1
    return Example(
        example.fold, example.weight, example.category, example.rows[kept], renumbered[example.evidence]
    )  # fmt: skip


def fit(examples: Sequence[Example], start: np.ndarray | None = None) -> np.ndarray:
    """Weights that minimise the listwise loss."""
    from scipy.optimize import minimize

    sizes = np.array([len(e.rows) for e in examples])
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    rows = np.concatenate([e.rows for e in examples])
    scale = rows.std(axis=0) + 1e-6
    rows = rows / scale
    which = np.concatenate([np.full(len(e.evidence), i) for i, e in enumerate(examples)])
    right = np.concatenate([begins[i] + e.evidence for i, e in enumerate(examples)])
    worth = np.concatenate([np.full(len(e.evidence), e.weight / len(e.evidence)) for e in examples])
    worth = worth / worth.sum()
    wrong = np.ones(len(rows), np.bool_)
    wrong[right] = False

    penalty = L2 * np.array([CUE_L2 if ":" in name else 1.0 for name in features.names()])

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = rows @ weights
        top = np.maximum.reduceat(scores, begins)
        odds = np.exp(scores - np.repeat(top, sizes)) * wrong
        others = np.add.reduceat(odds, begins)
        own = scores[right] - top[which]
        total = others[which] + np.exp(own)
        pull = np.zeros(len(rows))
        np.add.at(pull, right, -worth * (1 - np.exp(own) / total))
        pull += odds * np.repeat(np.bincount(which, worth / total, len(examples)), sizes)
        value = float((worth * (np.log(total) - own)).sum() + (penalty * weights) @ weights / 2)
        return value, rows.T @ pull + penalty * weights

    first = np.zeros(rows.shape[1]) if start is None else start * scale
    found = minimize(loss, first, jac=True, method="L-BFGS-B", options={"maxiter": 150})
    kept = np.array([CUES_KEPT if ":" in name else 1.0 for name in features.names()])
    return np.asarray(found.x / scale * kept)


def recall(examples: Sequence[Example], weights: np.ndarray, first: int = 10) -> dict[int, list[float]]:
    """Share of evidence among the first results, by category."""
    found: dict[int, list[float]] = {}
    for example in examples:
        order = np.argsort(-(example.rows @ weights), kind="stable")[:first]
        found.setdefault(example.category, []).append(float(np.isin(example.evidence, order).mean()))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Learn and report; see the module's docstring."""
    options = arguments(__doc__ or "").parse_args(argv)
    if options.data is None or not Path(options.data).exists():
        print("learn_weights: no --data with conversations: nothing to learn from, skipped")
        return 0
    conversations = load(options.data)
    examples = [e for fold, c in enumerate(conversations) for e in examples_of(c, fold)]
    names = features.names()
    plain = np.array([_PLAIN.get(name, 0.0) for name in names])
    tight = [hard(example, plain) for example in examples]
    every = fit(tight)
    found: dict[int, list[float]] = {}
    for fold in range(len(conversations)):
        weights = fit([e for e in tight if e.fold != fold], every)
        for category, values in recall([e for e in examples if e.fold == fold], weights).items():
            found.setdefault(category, []).extend(values)
    answerable = [v for category in (1, 2, 3, 4) for v in found.get(category, [])]
    by_category = "  ".join(f"{c}: {100 * np.mean(found[c]):.1f}" for c in sorted(found))
    print(
        f"recall@10, each conversation left out: {100 * np.mean(answerable):.1f}  ({by_category})", flush=True
    )
    print("WEIGHTS: dict[str, float] = {")
    for name, weight in zip(names, every, strict=True):
        print(f'    "{name}": {weight:.2f},')
    print("}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
