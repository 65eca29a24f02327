"""Values with a name: the cells of tables, and lines like "Port: 8081" and "port = 8081".

A value answers if the question asks for what its label names, and if its row, its note or the headings above have the
other words of the question: "Who owns the search service?" is answered by the cell of the row "search" in the column
"owner", "What is the host of the database?" by "Host: db1" in the note that begins with "Database: PostgreSQL".
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from rlm_mem.offline.everyday import degree, stem_of
from rlm_mem.offline.kinds import has_form
from rlm_mem.offline.notes import wanted_words
from rlm_mem.offline.passages import Passage, Reading, Sentence, heading_stems
from rlm_mem.offline.question import Question
from rlm_mem.text.dates import find_dates

__all__ = ["read_fields"]

_LINE = re.compile(
    r"^[ \t>]{0,20}(?:(?:[-*+•]|\d{1,3}[.)])[ \t]{1,4}(?:\[[ xX]\][ \t]{1,4})?)?"
    r"(?P<label>[^\W_][^\n:=|]{0,60}?)[ \t]{0,8}(?::(?=[ \t*])|=)[ \t*]{0,8}(?P<value>[^\s=][^\n]{0,200})$",
    re.MULTILINE,
)
_STOP = re.compile(r"[^\W\d_]{2}[\"”')]?[.;!?][\"”')]? ")
"""What ends a clause: a value has one."""
_RULE = re.compile(r"[|:\-\s]+")
_LABEL_WORDS, _VALUE_WORDS = 5, 12
"""Most words of a label, and of a value."""
_LEAST_SHARE = 0.8
"""Least share of the weighed words of a question that the label, its row and its note must have."""
_WHOLE = 0.95
"""Share from which a value is preferred to a part of a sentence of another note."""
_IN_ROW, _IN_NOTE = 1.0, 0.9
"""How well a word of the question is met by the row of a value, and by its note."""
_FAMILY = 0.8
"""The same by a label of the same family: "owns" and "owner"."""
_UNASKED = 0.15
"""Loss of share for a label with a word that neither the question nor the rest of the note has: "backup port"."""
_LATER = 0.1
"""Loss of share for each telling word of the question before the first that the label has."""
_LEAST, _MOST, _DISPUTED = 0.6, 0.85, 0.5
"""Confidence at the least share and at the whole of it, and the highest where another note has another such value."""
_NEAR = 0.05
"""Difference of shares up to which another value is as good."""
_ELSEWHERE = frozenset(("yes_no", "choice", "why", "how", "do"))
"""Kinds of questions that no value answers."""
_ANY_DAY = date(2026, 1, 1)
_STEM, _ENDINGS = 4, ("er", "r", "or", "ee", "ees", "ers", "ors")


class _Field(NamedTuple):
    """A value with its label, the stems of the other cells of its row, and those of what else it belongs to."""

    label: str
    value: str
    row: frozenset[str]
    around: frozenset[str]
    passage: Passage


def read_fields(question: Question, passages: Sequence[Passage], found: Reading) -> Reading | None:
    """Answer with a named value; None if none clearly answers, or no better than another reading of the passages.

    Args:
        found: the answer as the sentences of the passages give it.
    """
    wanted = wanted_words(question) if question.kind not in _ELSEWHERE and not question.options else {}
    if not wanted:
        return None
    notes: defaultdict[str, set[str]] = defaultdict(set)
    for one in passages:
        notes[one.chunk_id] |= one.stems | Sentence(one.author, 0).stems | heading_stems(one.heading)
    shares = [
        (share, field)
        for passage in passages
        for field in _fields(passage, frozenset(notes[passage.chunk_id]))
        if (share := _share(question, wanted, field)) >= _LEAST_SHARE
    ]
    if not shares:
        return None
    most = max(share for share, _ in shares)
    best = [field for share, field in shares if share >= most - _NEAR]
    best.sort(key=lambda one: (not one.passage.current, -one.passage.score))
    chosen = best[0]
    elsewhere = found.answer is not None and all(
        one.chunk_id != chosen.passage.chunk_id for one in found.passages
    )
    if elsewhere and found.exact and most < _WHOLE:
        return None
    confidence = _LEAST + (_MOST - _LEAST) * (most - _LEAST_SHARE) / (1 - _LEAST_SHARE)
    if (elsewhere and found.exact) or any(one.value != chosen.value for one in best):
        confidence = min(confidence, _DISPUTED)
    return Reading(
        chosen.value, (chosen.passage,), round(most, 3), round(confidence, 3), exact=True, label=chosen.label
    )


def _fields(passage: Passage, note: frozenset[str]) -> Iterator[_Field]:
    """The named values of a passage.

    Args:
        note: the stems of the whole note.
    """
    text = f"{passage.author}: {passage.text}" if passage.author else passage.text
    for match in _LINE.finditer(text):
        label, value = match["label"].strip(" *_`\"'"), _bare(match["value"])
        if value and len(label.split()) <= _LABEL_WORDS and len(value.split()) <= _VALUE_WORDS:
            yield _Field(label, value, frozenset(), note, passage)
    lines = text.split("\n") if "|" in text else []
    if not lines:
        return
    outside = "\n".join(line for line in lines if not line.lstrip().startswith("|"))
    around = Sentence(outside, 0).stems | heading_stems(passage.heading)
    header: list[str] = []
    for line in lines:
        if not line.lstrip().startswith("|"):
            header = []
        elif not header:
            header = _cells(line)
        elif not _RULE.fullmatch(line):
            cells = _cells(line)
            for place, (label, value) in enumerate(zip(header, cells, strict=False)):
                others = " ".join((*cells[:place], *cells[place + 1 :], header[0]))
                if label and value:
                    yield _Field(label, value, Sentence(others, 0).stems, around, passage)


def _cells(line: str) -> list[str]:
    return [_bare(cell) for cell in line.strip().strip("|").split("|")]


def _bare(value: str) -> str:
    """A value without the marks around it."""
    plain = value.strip().rstrip(",;").strip("*_` ")
    quoted = len(plain) > 1 and plain[0] == plain[-1] and plain[0] in "\"'"
    return plain[1:-1] if quoted else plain.rstrip(".")


def _share(question: Question, wanted: Mapping[str, float], field: _Field) -> float:
    """The share of a question that a value meets, 0 to 1; 0 where its label is not what is asked for."""
    words = Sentence(field.label, 0).words
    names = {stem_of(name) for name in question.names}
    if not words or not _may_answer(question, field.value):
        return 0.0
    label, head = Sentence(field.label, 0).stems, frozenset((words[-1].stem,))
    if not any(_named_by(term, head) for term in wanted if term not in names):
        return 0.0
    if not Sentence(field.value, 0).stems.isdisjoint(wanted.keys() - names):
        return 0.0  # "Boiler: pressure fell to 1 bar" is a sentence about the pressure
    met = total = 0.0
    for term, weight in wanted.items():
        share = _named_by(term, label)
        if not share and degree(term, field.row, "") >= _IN_NOTE:
            share = _IN_ROW
        if not share and degree(term, field.around, "") >= _IN_NOTE:
            share = _IN_NOTE
        if not share and term in names:
            return 0.0
        met += weight * share
        total += weight
    unasked = {word.stem for word in words[:-1]} - set(wanted) - field.row
    lost = _UNASKED * any(not _named_by(term, frozenset(wanted)) for term in unasked)
    # What is asked for comes first: "the host of the database" is no database.
    order = [term for term in question.terms if wanted.get(term, 0.0) >= 1 and term not in names]
    place = next((place for place, term in enumerate(order) if _named_by(term, label)), len(order))
    return met / total - lost - _LATER * place


def _may_answer(question: Question, value: str) -> bool:
    """Whether a value has the form of an answer: a name for who, a figure or a day for when and how many."""
    if value.endswith("?") or _STOP.search(value) or not has_form(question, value):
        return False
    if question.kind == "who":
        return any(map(str.isupper, value)) or "@" in value
    if question.kind in ("when", "how_many", "how_long"):
        return any(map(str.isdigit, value)) or bool(find_dates(value, _ANY_DAY))
    return True


def _named_by(term: str, stems: frozenset[str]) -> float:
    """How well a label with these stems names what a word of a question asks for, 0 to 1."""
    found = degree(term, stems, "")
    if found >= _IN_NOTE:
        return found
    return _FAMILY * any(_of_one_family(term, stem) for stem in stems)


def _of_one_family(one: str, other: str) -> bool:
    """Whether one word is the other with an ending of a person: "own" and "owner", "attend" and "attendee"."""
    short, long = sorted((one, other), key=len)
    if long.startswith(short) and long[len(short) :] in _ENDINGS:
        return True
    return len(short) > _STEM and long.startswith(short[:-1]) and len(long) - len(short) <= len(_ENDINGS[0])
