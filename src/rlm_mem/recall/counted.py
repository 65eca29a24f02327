"""Statements of the user of a chat that count one thing differently, as an opening shows them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from rlm_mem.sandbox.functions import StoreFunctions
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.blocks import one_line

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

_COUNTED = re.compile(r"\bhow many((?: [\w'’-]{1,30}){1,4})", re.IGNORECASE)
"""In a question for a number: the words that say of what."""
_TELLING = 1 / 3
"""Largest share of the chunks that have a telling word of a question."""
_PAIRS_READ, _MOST_COUNTS = 10, 2
_COUNT_BEFORE, _COUNT_CHARS = 60, 160
"""Characters of a statement in front of its count, and in all."""


def counted_otherwise(store: ChunkStore, question: str, chunks: int) -> tuple[Mapping[str, Any], ...]:
    """The first pairs of statements of a chat that count differently what the question asks the number of.

    They also share another telling word of the question, if it has one: two drafts have two numbers of pages.

    Args:
        chunks: how many the store has.
    """
    counted = _COUNTED.search(question[:1_000])
    if counted is None:
        return ()
    analyser = get_analyser(store.config.search.language)
    asked = frozenset(analyser.terms(counted[1]))
    counts = store.candidate_source().term_counts(analyser.terms(question[:1_000]))
    telling = frozenset(term for term, number in counts.items() if 0 < number <= _TELLING * chunks)

    def same(pair: Mapping[str, Any]) -> bool:
        sides = pair["newer"], pair["older"]
        thing = asked.intersection(*(analyser.terms(_thing(one)) for one in sides))
        others = telling - thing
        return bool(thing) and (
            not others or bool(others.intersection(*(analyser.terms(one["text"]) for one in sides)))
        )

    found = filter(same, StoreFunctions(store, lambda _: None).updates(question, limit=_PAIRS_READ))
    return tuple(islice(found, _MOST_COUNTS))


def _thing(told: Mapping[str, Any]) -> str:
    """The word after the number of a statement."""
    return str(told.get("match", "")).partition(" ")[2]


def counts_listed(pairs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Pairs of statements, the newer first, each around its count."""
    for pair in pairs:
        yield " <- before: ".join(map(_around_count, (pair["newer"], pair["older"])))


def _around_count(told: Mapping[str, Any]) -> str:
    text = told["text"]
    start = max(0, text.find(told["match"]) - _COUNT_BEFORE)
    start = text.find(" ", start) + 1 if start else 0
    return f"{told['chunk_id']} {told['date']}: {one_line(text[start:], _COUNT_CHARS)}"
