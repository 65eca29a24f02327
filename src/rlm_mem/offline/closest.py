"""The closest memories, returned if no passage clearly answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from rlm_mem.offline.documents import document_weights
from rlm_mem.offline.extraction import piece, reason_after
from rlm_mem.offline.features import lags_behind, term_weights, with_unspoken_names
from rlm_mem.offline.figures import subject_numbers
from rlm_mem.offline.kinds import forms_asked, has_form
from rlm_mem.offline.language import shares_matched
from rlm_mem.offline.numbered import is_derivation
from rlm_mem.offline.passages import Passage, heading_stems
from rlm_mem.offline.phrases import FULL_NAME
from rlm_mem.offline.question import Question
from rlm_mem.offline.question_kinds import WHO, WHY
from rlm_mem.offline.word_classes import degree, is_of_class, stem_of
from rlm_mem.text.analysis import PARTS, get_analyser
from rlm_mem.text.dates import DateMention, find_dates
from rlm_mem.text.languages import is_foreign
from rlm_mem.text.patterns import late

_MAX_RETURNED = 5
"""Most closest memories that are returned."""
_FIRST = 3
"""Places in which a memory need not be related to the question, if another one is: an answer in other words shares none
with it, but may have what it asks for and a high search score."""
_RARE = 1.0
"""Least natural logarithm of the number of notes per note with a word, for a rare word (about one note in
three)."""
_SEQUEL_WEIGHT = 4.5
"""Weight of rare words that a later note shares with the nearest one, relative to 1 for all words of the question.

Any weight from 3 to 7 does about as well on five sets of notes; a weight for earlier notes brings no gain.
"""
_FEW_WORDS = 3
"""Added to the number of words of a note, so that the shortest notes do not count as the most similar."""
_MIN_RELATED = 0.9
"""Least relation of a passage that contains a word of the question or a synonym."""
_ALIKE, _SHARED_LETTERS = 0.1, 4
"""Relation of a passage with a word that begins like one of the question ("UUIDv4" for "UUID"), and the fewest
equal letters."""
_INNER_CAPITAL = late(r"\b[^\W\d_]{1,40}[A-Z][a-z]{2,40}")
_SHARED_BEGINNING, _ENDING = 5, 2
"""Fewest equal letters of words with different endings, and most letters of such an ending."""
_SAID, _LAG = 0.5, 0.3
"""Weight of the question words found in one sentence, and of one standard deviation of the search scores, relative to 1
for all words of the question in the passage."""
_IN_CHUNK = 0.5
"""Weight of the question words found in any passage of the same chunk."""
_NAMED, _OF_FORM = 2.0, 0.6
"""Weight of the names of the question, outside of documents, which name their tool above every passage, and of a
time, a number … if the question asks for one."""
_AS_ASKED = 0.3
"""Weight of a limit, a default or a duration if the question asks for one in other words than its kind."""
_ON_DAY = 1.5
"""Weight of being of a day that the question names."""
_IN_NAMED = 0.3
"""Weight of being in the document that the question names best."""
_RESEMBLES = 0.7
"""How well a word matches one of the question that begins like it: "signature" and "sign"."""
_COMPOUND = late(r"(?<![^\W\d_])[^\W\d_]{3,40}+(?:[/._][^\W\d_]{2,40}+)++")
_PLAIN_WORD = late(r"[^\W_]+")


def closest(question: Question, passages: Sequence[Passage], own: Sequence[float]) -> list[Passage]:
    """Up to five passages of different chunks, nearest to ``question`` first; ``own``: their nearness by known words.

    None if no passage is related to the question. Else those that are and, among the first three, those that are near
    nevertheless, unless the question has a name that only others have. If one has a word of the question or a synonym,
    one with only a word of the same class is not related.
    Of equal passages of a document that is there twice, such as two versions of a manual, one is returned.
    """
    days = _days_asked(question)
    near: Sequence[float]
    if is_foreign(question.text):  # the words of other rules are English
        near, relations = own, [float(share > 0) for share in own]
    else:
        near, relations = _with_sequels(passages, own), [_relation(question, one) for one in passages]
    order = sorted(range(len(passages)), key=lambda i: (not passages[i].current, -near[i]))
    related = {i: 1.0 if _is_of_day(days, passages[i]) else relations[i] for i in order}
    most = max(related.values(), default=0.0)
    if most < _ALIKE:
        return []
    least = _MIN_RELATED if most >= _MIN_RELATED else _ALIKE
    named = any(has_name(question, one) for one in passages)
    found: dict[str, Passage] = {}
    texts: set[tuple[str, str, str]] = set()
    for i in order:
        one = passages[i]
        text = one.document, one.heading, one.text
        if text in texts:
            continue
        is_near = (
            len(found) < _FIRST and one.current and near[i] > 0 and (has_name(question, one) or not named)
        )
        if len(found) < _MAX_RETURNED and (related[i] >= least or is_near):
            found.setdefault(one.chunk_id, one)
            if one.of_document:
                texts.add(text)
    return list(found.values())


def is_related(question: Question, passage: Passage) -> bool:
    """Whether a passage has a word of the question, or one that belongs to it.

    A member of a class that the question names ("black" for "colour") counts only with another word of it.
    """
    return _relation(question, passage) > 0


_ATTRIBUTE_ASKED = late(
    r"\W*(?i:what|which) (?P<word>[\w-]{2,30}) (?:is|are|was|were)"
    r" (?:the|my|our|your|his|her|its|their|[A-Z][\w'’-]*)\b"
    r"(?!.*\b(?:in|on|at|from|with|to|for|of|by)\W*$)"
)
_DEED_ASKED = late(
    r"\W*(?i:who) (?P<word>[a-z]{3,30})(?P<particle> (?:in|out|up|off|over|back|away|down|after|on)\b)?"
)


def names_attribute(question: Question, passages: Iterable[Passage]) -> bool:
    """Whether one of the passages has the attribute that a question names, if it names one, in some word.

    "Which make is the camera?" is not answered by what else is known of the camera.
    """
    found = _ATTRIBUTE_ASKED.match(question.text)
    term = stem_of(found["word"]) if found else ""
    return term not in question.strong or _has_word(term, passages)


def names_deed(question: Question, passages: Iterable[Passage]) -> bool:
    """Whether one of the passages has the deed for whose doer a question asks, if it does, in some word.

    "Who took in Wanda?" is not answered by who named her. An everyday verb ("who has …") counts only with a particle.
    """
    found = _DEED_ASKED.match(question.text)
    term = stem_of(found["word"]) if found else ""
    return term not in (question.terms if found and found["particle"] else question.strong) or _has_word(
        term, passages
    )


def _has_word(term: str, passages: Iterable[Passage]) -> bool:
    return any(
        degree(term, _stems(one), one.text) or any(_alike((term,), _stems(one)).values()) for one in passages
    )


def _with_sequels(passages: Sequence[Passage], near: Sequence[float]) -> list[float]:
    """The nearness of each passage, increased for a later note that continues the nearest one.

    The outcome of a matter is often described in other words than those of the question, but with some of the note
    before it.
    """
    terms = get_analyser("english").terms
    notes: dict[str, frozenset[str]] = {}
    for one in passages:
        if one.current and not one.of_document:
            notes[one.chunk_id] = notes.get(one.chunk_id, frozenset()) | frozenset(terms(one.text))
    nearest = max(range(len(passages)), key=near.__getitem__, default=-1)
    start = passages[nearest] if nearest >= 0 else None
    if start is None or start.at is None or start.chunk_id not in notes:
        return list(near)
    note_counts = Counter(stem for stems in notes.values() for stem in stems)
    first = notes[start.chunk_id]
    rare = {stem: max(0.0, math.log(len(notes) / note_counts[stem]) - _RARE) for stem in first}
    found = list(near)
    for number, one in enumerate(passages):
        stems = notes.get(one.chunk_id)
        if stems is not None and one.at is not None and one.at > start.at:
            length = math.sqrt((_FEW_WORDS + len(stems)) * (_FEW_WORDS + len(first)))
            found[number] += _SEQUEL_WEIGHT * sum(rare[stem] for stem in stems & first) / length
    return found


def _days_asked(question: Question) -> list[DateMention]:
    """The days that a question names with their year."""
    return [day for day in find_dates(question.text) if day.precision == "day"]


def _is_of_day(days: Sequence[DateMention], passage: Passage) -> bool:
    at = passage.at
    return at is not None and any(day.first <= at.date() <= day.last for day in days)


def _relation(question: Question, passage: Passage) -> float:
    """How well a passage matches its best matching name or content word of the question, 0 to 1."""
    stems = _stems(passage)
    names = frozenset(map(stem_of, question.names))
    telling = (question.strong | names) or frozenset(question.terms)
    degrees = {term: found for term in telling if (found := degree(term, stems, passage.text))}
    if degrees and len(degrees) < len(telling) and all(is_of_class(term, stems) for term in degrees):
        return 0.0  # "the colour of the moon" is not that of whatever else has one
    if degrees:
        return max(degrees.values())
    return _ALIKE * any(_alike(telling, stems).values())


def _alike(terms: Iterable[str], stems: frozenset[str]) -> dict[str, frozenset[str]]:
    """For each of these words, the stems that begin like it."""
    begun: dict[str, list[str]] = {}
    for stem in stems:
        begun.setdefault(stem[:_SHARED_LETTERS], []).append(stem)
    return {
        term: frozenset(
            one
            for one in begun.get(term[:_SHARED_LETTERS], ())
            if is_derivation(term, one, _SHARED_LETTERS) or _differ_in_ending(term, one)
        )
        for term in terms
    }


def _stems(passage: Passage) -> frozenset[str]:
    """Stems of a passage, its heading, its author and the text before it."""
    around = heading_stems(f"{passage.heading} {passage.author}") | passage.document_stems
    if not passage.of_document and (compounds := _COMPOUND.findall(passage.text)):
        around |= heading_stems(" ".join(compounds))  # "lib/legacy.go" counts as its words
    parts = (part for word in _INNER_CAPITAL.findall(passage.text) for part in PARTS.findall(word))
    around |= {
        stem_of(part.lower()) for part in parts if len(part) >= _SHARED_LETTERS
    }  # "ESLint" is a linter
    return passage.stems | passage.before_stems | around


def _differ_in_ending(one: str, other: str) -> bool:
    """Whether two words begin alike and differ in a short ending: "defend" and "defence"."""
    begin = max(_SHARED_BEGINNING, len(one) - _ENDING, len(other) - _ENDING)
    return min(len(one), len(other)) >= begin and one[:begin] == other[:begin]


def nearness(question: Question, passages: Sequence[Passage], *, known: bool = False) -> list[float]:
    """How near each passage is to a question; in other languages than English, its share of the question's words.

    In English, this adds the shares of the question's words in the passage, in its best sentence and in all passages
    of its chunk, the share of its names, and whether the passage has the kind of value asked for, or is of a day or
    in a document that the question names, and subtracts its lag in search score. The fewer passages have a word, the
    more it counts: if all name the tool in question, the other words decide.

    Args:
        known: the shares are of the words that some passage has. This ranks better, but is not comparable between
            questions.
    """
    if is_foreign(question.text):
        return shares_matched(question.text, passages)
    asked = with_unspoken_names(question, passages)
    weights = term_weights(asked, list(passages))
    lags = lags_behind([passage.score for passage in passages])

    stems = [_stems(passage) for passage in passages]
    everything = frozenset[str]().union(*stems)
    alike = _alike(weights, everything)

    def match(term: str, stems: frozenset[str], text: str) -> float:
        return max(degree(term, stems, text), 0.0 if alike[term].isdisjoint(stems) else _RESEMBLES)

    counted = (weight for term, weight in weights.items() if not known or match(term, everything, ""))
    total = sum(counted) or 1.0

    def matched(stems: frozenset[str], text: str = "") -> float:
        return sum(weight * match(term, stems, text) for term, weight in weights.items()) / total

    together: dict[str, frozenset[str]] = {}
    for passage, own in zip(passages, stems, strict=True):
        together[passage.chunk_id] = together.get(passage.chunk_id, frozenset()) | own
    whole = {chunk_id: matched(words) for chunk_id, words in together.items()}
    documents, forms = document_weights(question, passages), forms_asked(question)
    days = _days_asked(question)
    found = []
    for passage, own, lag in zip(passages, stems, lags, strict=True):
        said = max((matched(one.stems, one.text) for one in passage.sentences), default=0.0)
        near = matched(own, passage.text) + _SAID * said + _IN_CHUNK * whole[passage.chunk_id]
        near += _OF_FORM * _has_kind(question, passage)
        # The heading of a table names its columns.
        near += _AS_ASKED * sum(bool(one.search(f"{passage.heading} {passage.text}")) for one in forms)
        if not passage.of_document:
            near += _NAMED * _name_share(question, passage)
        near += _ON_DAY * _is_of_day(days, passage)
        near += _IN_NAMED * documents.get(passage.conversation_id, 0.0)
        found.append(near - _LAG * min(lag, 4.0))
    return found


def has_name(question: Question, passage: Passage) -> bool:
    """Whether a passage has a name of the question."""
    return _name_share(question, passage) > 0


def _name_share(question: Question, passage: Passage) -> float:
    """The share of the question's names that a passage, its author or its heading contains.

    The number of a subject ("ticket 3456") is a name.
    """
    words = set(_PLAIN_WORD.findall(f"{passage.text} {passage.author} {passage.heading}".lower()))
    numbers = subject_numbers(question)
    matched = [
        name.lower() in words or any(is_derivation(name.lower(), word, _SHARED_LETTERS) for word in words)
        for name in question.names
    ]
    matched += [number in words for number in numbers]
    return sum(matched) / max(1, len(matched))


def _has_kind(question: Question, passage: Passage) -> bool:
    """Whether a sentence of the passage has a time, person, place, reason or number, as the question requires."""
    if question.kind is WHO and passage.of_document:
        return bool(FULL_NAME.search(passage.text))
    if question.kind is WHY:
        return any(reason_after(question, one, ()) is not None for one in passage.sentences)
    parts = (piece(question, one, passage.at) for one in passage.sentences)
    return question.kind.has_form and any(one and has_form(question, one.text) for one in parts)
