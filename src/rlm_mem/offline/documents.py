"""The documents that a question names, by the names of their files, their titles and their topmost headings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from rlm_mem.offline.numbered import is_derivation
from rlm_mem.offline.passages import Passage, Sentence
from rlm_mem.offline.question import Question
from rlm_mem.offline.word_classes import stem_of
from rlm_mem.text.analysis import get_analyser

_NEAR = 0.6
"""A document counts as named if it has at least this share of the weight of the document that is named best."""


def named_documents(question: Question, passages: Sequence[Passage]) -> dict[str, float]:
    """The conversations of the documents among these passages that a question names, the best first, each with a
    weight of at most 1.
    """
    weights = document_weights(question, passages)
    named = [one for one, weight in weights.items() if weight >= _NEAR]
    return {one: weights[one] for one in sorted(named, key=lambda one: -weights[one])}


def document_weights(question: Question, passages: Sequence[Passage]) -> dict[str, float]:
    """How well a question names each document among these passages, relative to the one that it names best.

    A word of the question counts more, the fewer documents have it in their names or their passages. A document that
    shares only the name of the tool with the one named best has a part of its weight.
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
            one
            for one, stems in names.items()
            if (same_name(term, stems) if term in words else term in stems)
        ]
        elsewhere = sum(1 for one, stems in texts.items() if term in stems and one not in named)
        for one in named:
            weights[one] += math.log(1 + len(names) / (len(named) + elsewhere + 0.5))
    best = max(weights.values(), default=0.0)
    return {one: weight / best for one, weight in weights.items()} if best else {}


def _asked(question: Question) -> tuple[set[str], set[str]]:
    """Stems of the question's words, and of neighbours written as one ("AWS CLI" is "awscli").

    A name that is an everyday word, such as that of the language Go, names no document.
    """
    words = [word.low for word in Sentence(question.text, 0).words if word.low[0].isalnum()]
    pairs = {stem_of(one + other) for one, other in itertools.pairwise(words)}
    names = (name for name in question.names if get_analyser("english").terms(name))
    return {*question.terms, *(stem for name in names for stem in Sentence(name, 0).stems)}, pairs


def same_name(term: str, stems: frozenset[str]) -> bool:
    """Whether a name, a short or a longer form of it is among stems: "Postgres" for "PostgreSQL"."""
    return term in stems or any(is_derivation(term, stem) for stem in stems)
