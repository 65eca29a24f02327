"""Labels, the texts before a colon: found by the words of a question like the words of the text after them."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from math import log1p

from rlm_mem.search.query import EVERYDAY, WORD, Query, with_alternatives
from rlm_mem.store.core.lookup import CandidateSource, JoinedSource, sources_of
from rlm_mem.store.core.records import AUTHOR_PREFIX
from rlm_mem.text.analysis import Analyser, get_analyser


def with_labels(
    query: Query, source: CandidateSource | JoinedSource, authors: Collection[str], analyser: Analyser
) -> Query:
    """Add labels with a word of the question, which the index keeps apart from spoken words.

    A label is no better evidence than its word, so it has the inverse document frequency of both together: the line
    "BUFFER_SIZE: …" of one document must not make "size" a rare word.

    Args:
        authors: the labels and names of speakers in `source`.
    """
    labels = _authors_by_term(frozenset(authors), analyser.language)
    labelled = {
        term: labels[term]
        for term, weight in zip(query.terms, query.weights, strict=True)
        if weight > EVERYDAY and term in labels
    }
    if not labelled:
        return query
    chunks = sum(one.statistics(one.term_ids(())).chunks for one in sources_of(source))
    # All terms in one look-up: those that are not known yet would need another one later.
    counts = source.term_counts(
        [*query.terms, *(AUTHOR_PREFIX + name for names in labelled.values() for name in names)]
    )
    found: list[tuple[str, str, float, int]] = []
    for term, names in labelled.items():
        own = [counts.get(AUTHOR_PREFIX + name, 0) for name in names]
        together = _rarity(min(counts.get(term, 0) + sum(own), chunks), chunks)
        found.extend(
            (term, AUTHOR_PREFIX + name, together / _rarity(count, chunks) / len(name.split()), WORD)
            for name, count in zip(names, own, strict=True)
        )
    return with_alternatives(query, found)


def _rarity(count: int, chunks: int) -> float:
    """Return the inverse document frequency of a term in `count` of `chunks` chunks."""
    return log1p((chunks - count + 0.5) / (count + 0.5))


@lru_cache(maxsize=16)
def _authors_by_term(authors: frozenset[str], language: str) -> dict[str, list[str]]:
    """Return authors by each term of their name."""
    by_term: dict[str, list[str]] = {}
    for author in sorted(authors):
        for term in _terms_of(author, language):
            by_term.setdefault(term, []).append(author)
    return by_term


@lru_cache(maxsize=20_000)
def _terms_of(name: str, language: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(get_analyser(language).terms(name)))
