"""Fields as answers: "What is the baud rate?" is answered by the line "Baud rate: 115200"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rlm_mem.offline.documents import same_name
from rlm_mem.offline.extraction import piece
from rlm_mem.offline.kinds import has_form
from rlm_mem.offline.lines import lines_of
from rlm_mem.offline.notes import EXACT_FIT, wanted_words
from rlm_mem.offline.passages import Passage, Reading, Sentence, heading_stems
from rlm_mem.offline.phrases import FUNCTION_WORDS
from rlm_mem.offline.question import Question
from rlm_mem.offline.question_kinds import WHO
from rlm_mem.offline.word_classes import degree, stem_of
from rlm_mem.text.patterns import late

_FIELD = late(r"(?P<label>[^\W_][^\n:=|]{0,59})(?:::?(?=\s)|[ \t]=[ \t])[ \t]*(?P<value>\S[^\n]{0,300})")
_ROW = late(r"\|[ \t]*(?P<label>[^\W_][^\n|]{0,59})\|[ \t]*(?P<value>[^\W_][^\n|]{0,300})\|$")
"""A row of a table of two columns."""
_NEXT = late(r"[,;][ \t]{1,9}[^\W\d_][\w \t-]{0,40}:[ \t]")
"""The next field of a line with several: "Track width: 45 cm, car width: 15 cm"."""
_BOLD = late(r"\*\*|__")
_CODE = late(r"`([^`]+)`\.?$")
_MAX_WORDS = 6  # of a label
_SYNONYM = 0.9  # least degree of a word that may stand for another
_LEAST_WEIGHT = 0.8  # of a word of the question that must be in the label or above it
_CONFIDENCE, _BY_HEADING, _ONE_OF_SEVERAL = 0.85, 0.75, 0.55


class _Field(NamedTuple):
    """The value of a field that answers a question, and whether words of the question are only above it."""

    value: str
    passage: Passage
    by_heading: bool


def read_field(question: Question, passages: Sequence[Passage]) -> Reading | None:
    """The value of the field whose label, with the headings above it, has the words of a question; None without any.

    Every word of the label must be in the question, one of them no name: "Tom: I moved" is a turn. Of fields with
    different values below headings, the first one is given with a low confidence.
    """
    wanted = wanted_words(question)
    if question.kind.is_closed or question.kind.is_open or not wanted:
        return None
    found = [one for passage in passages if passage.current for one in _answering(question, wanted, passage)]
    if not found:
        return None
    best = min(found, key=lambda one: one.by_heading)
    others = {one.value for one in found if one.by_heading == best.by_heading}
    confidence = _BY_HEADING if best.by_heading else _CONFIDENCE
    if len(others) > 1:
        if not best.passage.of_document:
            return None  # of notes, the later one may hold
        confidence = _ONE_OF_SEVERAL
    return Reading(
        best.value, (best.passage,), max(confidence, _BY_HEADING), confidence, exact=len(others) == 1
    )


def _answering(question: Question, wanted: dict[str, float], passage: Passage) -> Iterator[_Field]:
    """The fields of a passage that answer a question."""
    names = {stem_of(name) for name in question.names}
    asked = frozenset(question.terms) | names
    above = heading_stems(f"{passage.document} {passage.heading}")
    for label, value, headings in _fields(passage.text):
        words = [word for word in Sentence(label, 0).words if word.low not in FUNCTION_WORDS]
        stems = frozenset(word.stem for word in words)
        if not 0 < len(words) <= _MAX_WORDS or not all(degree(one, asked, "") >= _SYNONYM for one in stems):
            continue
        if stems <= names:
            continue
        around = above | heading_stems(" ".join(headings))
        missing = [
            term
            for term, weight in wanted.items()
            if weight >= _LEAST_WEIGHT and degree(term, stems, "") < _SYNONYM
        ]
        if all(same_name(one, around) if one in names else one in around for one in missing) and _is_of_kind(
            question, label, value, passage
        ):
            yield _Field(value, passage, bool(missing))


def _is_of_kind(question: Question, label: str, value: str, passage: Passage) -> bool:
    if not has_form(question, value):
        return False
    if question.kind is WHO:
        return any(map(str.isupper, value))
    if question.kind.is_measured:
        part = piece(question, Sentence(f"{label}: {value}", 0), passage.at)
        return part is not None and part.fit >= EXACT_FIT
    return True


def _fields(text: str) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The labels and values of a text, with the headings above each, topmost first."""
    for line, headings in lines_of(text):
        plain = _BOLD.sub("", line)
        if found := _FIELD.match(plain) or _ROW.match(plain):
            value = _NEXT.split(found["value"], 1)[0].strip()
            code = _CODE.match(value)
            yield found["label"].strip(" `"), code[1] if code else value, headings
