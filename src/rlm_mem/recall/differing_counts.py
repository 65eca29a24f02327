"""Pairs of a user's statements that give different numbers for the same thing, for an opening."""

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
"""Matches a question for a number; the group is what is counted."""
_RARE_SHARE = 1 / 3
"""Largest share of the chunks that contain a distinctive word of a question."""
_PAIRS_READ, _MAX_COUNTS = 10, 2
_COUNT_BEFORE, _COUNT_CHARS = 60, 160
"""Most characters of a statement before its count, and in total."""


def counted_otherwise(store: ChunkStore, question: str, chunks: int) -> tuple[Mapping[str, Any], ...]:
    """The first pairs of statements of a chat with different numbers of what the question asks the number of.

    They also share another distinctive word of the question, if it has one: two drafts have two numbers of pages.

    Args:
        chunks: number of chunks in the store.
    """
    counted = _COUNTED.search(question[:1_000])
    if counted is None:
        return ()
    analyser = get_analyser(store.config.search.language)
    counted_terms = frozenset(analyser.terms(counted[1]))
    counts = store.candidate_source().term_counts(analyser.terms(question[:1_000]))
    distinctive = frozenset(term for term, number in counts.items() if 0 < number <= _RARE_SHARE * chunks)

    def is_same_count(pair: Mapping[str, Any]) -> bool:
        sides = pair["newer"], pair["older"]
        thing = counted_terms.intersection(*(analyser.terms(_counted_thing(one)) for one in sides))
        others = distinctive - thing
        return bool(thing) and (
            not others or bool(others.intersection(*(analyser.terms(one["text"]) for one in sides)))
        )

    pairs = filter(is_same_count, StoreFunctions(store).updates(question, limit=_PAIRS_READ))
    return tuple(islice(pairs, _MAX_COUNTS))


def _counted_thing(statement: Mapping[str, Any]) -> str:
    """The word after the number of a statement."""
    return str(statement.get("match", "")).partition(" ")[2]


def counts_listed(pairs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each pair of statements, the newer first, each shortened around its count."""
    for pair in pairs:
        yield " <- before: ".join(map(_around_count, (pair["newer"], pair["older"])))


def _around_count(statement: Mapping[str, Any]) -> str:
    text = statement["text"]
    start = max(0, text.find(statement["match"]) - _COUNT_BEFORE)
    start = text.find(" ", start) + 1 if start else 0
    return f"{statement['chunk_id']} {statement['date']}: {one_line(text[start:], _COUNT_CHARS)}"
