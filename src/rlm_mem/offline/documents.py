"""The documents that a question names, by the names of their files, their titles and their topmost headings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from rlm_mem.offline.everyday import stem_of
from rlm_mem.offline.numbered import is_derivation
from rlm_mem.offline.passages import Passage, Sentence
from rlm_mem.offline.question import Question

_NEAR = 0.6
"""A document counts as named if it has at least this share of the weight of the document that is named best."""


def named_documents(question: Question, passages: Sequence[Passage]) -> dict[str, float]:
    """The conversations of the documents among these passages that a question names, the best first, each with a
    weight of at most 1.

    A word of the question counts more, the fewer documents have it in their names or their passages.
    """
    names: dict[str, frozenset[str]] = {}
    texts: dict[str, frozenset[str]] = {}
    for passage in passages:
        if passage.conversation_id and passage.of_document:
            one = passage.conversation_id
            names[one] = names.get(one, frozenset()) | passage.document_stems
            texts[one] = texts.get(one, frozenset()) | passage.stems
    weights = dict.fromkeys(names, 0.0)
    words, pairs = _asked(question)
    for term in words | pairs:
        named = [
            one for one, stems in names.items() if term in stems or (term in words and same_name(term, stems))
        ]
        elsewhere = sum(1 for one, stems in texts.items() if term in stems and one not in named)
        for one in named:
            weights[one] += math.log(1 + len(names) / (len(named) + elsewhere + 0.5))
    best = max(weights.values(), default=0.0)
    named = [one for one, weight in weights.items() if best and weight >= _NEAR * best]
    return {one: weights[one] / best for one in sorted(named, key=lambda one: -weights[one])}


def _asked(question: Question) -> tuple[set[str], set[str]]:
    """Stems of the question's words, and of neighbours written as one ("AWS CLI" is "awscli")."""
    words = [word.low for word in Sentence(question.text, 0).words if word.low[0].isalnum()]
    pairs = {stem_of(one + other) for one, other in itertools.pairwise(words)}
    return {*question.terms, *(stem for name in question.names for stem in Sentence(name, 0).stems)}, pairs


def same_name(term: str, stems: frozenset[str]) -> bool:
    """Whether a name or a short form of it is among stems: "Postgres" for "PostgreSQL"."""
    return term in stems or any(is_derivation(term, stem) for stem in stems)
