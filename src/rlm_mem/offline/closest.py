"""The closest memories, which are returned if no passage clearly answers."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import partial

from rlm_mem.offline.defaults import asks_for_default, states_default
from rlm_mem.offline.documents import named_documents
from rlm_mem.offline.everyday import degree, stem_of
from rlm_mem.offline.features import lags_behind, term_weights, with_unspoken_names
from rlm_mem.offline.kinds import has_form
from rlm_mem.offline.language import foreign_terms, is_foreign
from rlm_mem.offline.passages import Passage, heading_stems
from rlm_mem.offline.pieces import piece, reason_after
from rlm_mem.offline.question import Question

__all__ = ["closest"]

_MOST = 5
"""Number of closest memories that are returned if no passage clearly answers."""
_AT_LEAST = 3
"""Number of closest memories that are returned if at least one is related to the question and there are so many."""
_RARE = 1.5
"""Natural logarithm of how many notes there are for each with a word that counts as rare (about one in five)."""
_GOES_ON = 2.0
"""Least sum of the weights of the rare words that a later note shares with the nearest one to go on from it."""
_SAME_THING = 0.9
"""Least relation of a passage that has a word of the question or a synonym of one."""
_ALIKE, _SHARED_LETTERS = 0.1, 4
"""Relation of a passage with a word that begins like one of the question ("UUIDv4" for "UUID"), and the least number
of equal letters."""
_SAID, _LAG = 0.5, 0.3
"""Weight of the question words found in one sentence, and of one standard deviation of the search scores, relative to 1
for all words of the question in the passage."""
_IN_CHUNK = 0.5
"""Weight of the question words found in any passage of the same chunk."""
_NAMED, _OF_FORM = 2.0, 0.6
"""Weight of the names of the question, and of a time, a number … if the question asks for one."""
_NAMED_IN_DOCUMENT = 0.5
"""Weight of the names in a document: that of the tool stands above every passage."""
_IN_NAMED = 1.0
"""Weight of being in the document that the question names best."""
_DEFAULT = 0.5
"""Weight of naming a default if one is asked for."""
_COMPOUND = re.compile(r"(?<![^\W\d_])[^\W\d_]{3,40}+(?:[/._][^\W\d_]{2,40}+)++")
_PLAIN_WORD = re.compile(r"[^\W_]+")
_FORMED = frozenset({"when", "who", "where", "why", "how_many", "how_long"})


def closest(question: Question, passages: Sequence[Passage]) -> list[Passage]:
    """Up to five passages of different chunks that are related to ``question``, the nearest first.

    If one has a word of the question or a synonym, passages with only a word of the same class are left out. Where
    fewer than three are left, others follow, and a later note that goes on from the first one is among the first three.
    """
    foreign = is_foreign(question.text)  # words are compared as English ones
    nearness = [0.0] * len(passages) if foreign else _nearness(question, passages)
    order = sorted(range(len(passages)), key=lambda i: (not passages[i].current, -nearness[i]))
    related = [(passages[i], _relation(question, passages[i])) for i in order]
    least = _SAME_THING if any(share >= _SAME_THING for _, share in related) else _ALIKE
    found: dict[str, Passage] = {}
    for passage, share in related:
        if len(found) < _MOST and share >= least:
            found.setdefault(passage.chunk_id, passage)
    if not found or foreign:
        return list(found.values())
    notes = [one for one, _ in related if one.current and not one.of_document]
    return _with_sequel(list(found.values()), notes)


def _with_sequel(found: list[Passage], notes: Sequence[Passage]) -> list[Passage]:
    """The closest memories, with a later note that goes on from the first one in the third place at the latest.

    What came of a matter is often told in other words than those of the question. Where fewer than three are related,
    those follow that share rare words with the first one.
    """
    holding = Counter(stem for one in notes for stem in one.stems)

    def shared(one: Passage) -> float:
        rare = (math.log(len(notes) / holding[stem]) for stem in one.stems & found[0].stems)
        return round(sum(max(0.0, weight - _RARE) for weight in rare), 1)

    shown = {one.chunk_id for one in found[: _AT_LEAST - 1]}
    weighed = [(shared(one), one) for one in notes if one.chunk_id not in shown]
    others = sorted([pair for pair in weighed if pair[0] > 0], key=lambda pair: -pair[0])
    start = found[0].at
    later = [one for weight, one in others if one.at and start and one.at > start and weight >= _GOES_ON]
    ordered, most = [*found[: _AT_LEAST - 1], *later[:1], *found[_AT_LEAST - 1 :]], _MOST
    if len(ordered) < _AT_LEAST:
        ordered, most = [*ordered, *(one for _, one in others[:_AT_LEAST])], _AT_LEAST
    unique: dict[str, Passage] = {}
    for one in ordered:
        unique.setdefault(one.chunk_id, one)
    return list(unique.values())[:most]


def _relation(question: Question, passage: Passage) -> float:
    """How well a passage matches the name or content word of the question that it matches best, 0 to 1."""
    if is_foreign(question.text):
        return float(bool(foreign_terms(question.text) & foreign_terms(passage.text)))
    stems = _stems(passage)
    telling = {*(question.strong or question.terms), *map(stem_of, question.names)}
    best = max((degree(term, stems, passage.text) for term in telling), default=0.0)
    return best or _ALIKE * any(_begin_alike(term, stem) for term in telling for stem in stems)


def _stems(passage: Passage) -> frozenset[str]:
    """Stems of a passage, its heading, its author and the text before it."""
    around = heading_stems(f"{passage.heading} {passage.author}") | passage.document_stems
    if not passage.of_document and (compounds := _COMPOUND.findall(passage.text)):
        around |= heading_stems(" ".join(compounds))  # "lib/legacy.go" has each of its words
    return passage.stems | passage.before_stems | around


def _begin_alike(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    return len(short) >= _SHARED_LETTERS and long.startswith(short)


def _nearness(question: Question, passages: Sequence[Passage]) -> list[float]:
    """How near each passage comes to a question.

    This adds the shares of the question's words in the passage, in its best sentence and in all passages of its chunk,
    the share of its names, and whether the passage has the kind of thing asked for, is in a document that the question
    names, or states a default if one is asked for, and subtracts its lag in search score. The fewer passages have a
    word, the more it counts: if all name the tool asked for, the other words decide.
    """
    asked = with_unspoken_names(question, passages)
    weights = term_weights(asked, list(passages))
    total = sum(weights.values()) or 1.0
    lags = lags_behind([passage.score for passage in passages])

    def matched(stems: frozenset[str], text: str = "") -> float:
        return sum(weight * degree(term, stems, text) for term, weight in weights.items()) / total

    stems = [_stems(passage) for passage in passages]
    together: dict[str, frozenset[str]] = {}
    for passage, own in zip(passages, stems, strict=True):
        together[passage.chunk_id] = together.get(passage.chunk_id, frozenset()) | own
    whole = {chunk_id: matched(words) for chunk_id, words in together.items()}
    documents = named_documents(question, passages)
    default = asks_for_default(question)
    found = []
    for passage, own, lag in zip(passages, stems, lags, strict=True):
        said = max((matched(one.stems, one.text) for one in passage.sentences), default=0.0)
        near = matched(own, passage.text) + _SAID * said + _IN_CHUNK * whole[passage.chunk_id]
        named = _NAMED_IN_DOCUMENT if passage.of_document else _NAMED
        near += named * _names(question, passage) + _OF_FORM * _has_kind(question, passage)
        near += _IN_NAMED * documents.get(passage.conversation_id, 0.0)
        near += _DEFAULT * (default and passage.of_document and states_default(passage.text))
        found.append(near - _LAG * min(lag, 4.0))
    return found


def _names(question: Question, passage: Passage) -> float:
    """The share of the question's names that a passage has, its author and heading included."""
    words = set(_PLAIN_WORD.findall(f"{passage.text} {passage.author} {passage.heading}".lower()))
    held = (
        any(map(partial(_begin_alike, name.lower()), words)) or name.lower() in words
        for name in question.names
    )
    return sum(held) / max(1, len(question.names))


def _has_kind(question: Question, passage: Passage) -> bool:
    """Whether a sentence of the passage has a time, a person, a place, a reason or a number, as asked for."""
    if question.kind not in _FORMED:
        return False
    if question.kind == "why":
        return any(reason_after(question, one, (), "") is not None for one in passage.sentences)
    told = (piece(question, one, passage.at) for one in passage.sentences)
    return any(one is not None and has_form(question, one.text) for one in told)
