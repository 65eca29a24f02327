"""Find who does something now, if the same note says who did it before: "Lars retired, Nina took over"."""

from __future__ import annotations

import re
from dataclasses import replace

from rlm_mem.offline.passages import Passage, Reading, Sentence
from rlm_mem.offline.phrases import FUNCTION_WORDS, NO_PERSON, TIME, word_set
from rlm_mem.offline.question import Question

__all__ = ["names_successor", "with_successor"]

_NAME = r"(?P<name>[^\W\d_a-z][\w'’-]{0,40}(?:\s[^\W\d_a-z][\w'’-]{0,40}){0,3})"
_NOW = r"(?:[Nn]ow|[Ss]ince then|[Ss]ince|[Tt]oday|[Cc]urrently|[Nn]owadays)"
_SUCCEEDS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b{_NAME}\s(?:has\s|have\s|then\s|now\s){{0,2}}(?:took over|taken over|takes over|succeeded|succeeds"
        r"|replaced|replaces|stepped in|steps in|followed)\b",
        rf"\b(?:replaced|succeeded|followed) by {_NAME}",
        rf"\b(?:handed|passed|turned)\s(?:(?:it|this|them|everything|the [a-z]{{1,20}})\s)?over to {_NAME}",
        rf"\bsuccessor,? (?:(?:is|was|will be|became|called|named) )?{_NAME}",
        rf"\b{_NAME} (?:is|was|became|has become) (?:his|her|their|the) successor\b",
        rf"\b{_NAME}\s(?:(?:was|is|has been)\s)?(?:\w{{2,20}}ed|chosen)\sin\s(?:his|her|their)\splace\b",
        rf"\b{_NOW},? (?:it is |it's |it’s )?{_NAME} (?P<does>(?:is|does|[a-z]{{2,20}}s)\b)",
        rf"\b{_NAME} (?P<does>[a-z]{{2,20}}s (?:[a-z]{{1,20}} ){{0,2}}now\b)",
    )
)
"""Who follows somebody. The text after a match, or from ``does`` on, may only repeat the question or give a time."""
_CLAUSE_END = re.compile(r"[.;!?\n]|,\s")
_ROLE_WORDS = word_set(
    "role job post position duties work task tasks it him her them this that so does do duty place instead now is"
)
_OF_SUCCESSION = re.compile(
    r"\b(?:before|previous\w*|former\w*|first|was|were|did|had|used to|retired?|left|leaves?|quit|resign\w*"
    r"|t(?:ook|akes?|aken) over|replac\w+|succe\w+|follow\w*|sold|handed|stepped|until)\b",
    re.IGNORECASE,
)
"""A question about the past, or about the succession itself."""


def with_successor(question: Question, reading: Reading) -> Reading:
    """The reading of who does something, with the person who took it over according to the same note."""
    if (
        question.kind != "who"
        or not (reading.answer and reading.passages)
        or _OF_SUCCESSION.search(question.text)
    ):
        return reading
    home = reading.passages[0]
    later = "" if home.of_document else _successor(question, home, reading.answer)
    return replace(reading, answer=later) if later else reading


def names_successor(question: Question, answer: str, text: str) -> bool:
    """Whether a text says that somebody follows the person who is the answer, in whatever role."""
    if question.kind != "who" or _OF_SUCCESSION.search(question.text) or not answer[:1].isupper():
        return False
    place = text.find(answer.split()[-1])
    matches = (match for pattern in _SUCCEEDS for match in pattern.finditer(text, max(0, place)))
    return place >= 0 and any(
        match["name"] not in answer and match["name"].lower().split()[0] not in FUNCTION_WORDS | NO_PERSON
        for match in matches
    )


def _successor(question: Question, passage: Passage, answer: str) -> str:
    """The last person in a note who follows the one named in an answer; empty if there is none."""
    text = passage.text
    place = text.find(answer)
    found: list[tuple[int, str]] = []
    for pattern in _SUCCEEDS:
        for match in pattern.finditer(text):
            name = match["name"].removesuffix("'s").removesuffix("’s")
            end = _CLAUSE_END.search(text, match.end())
            start = match.start("does") if "does" in match.re.groupindex else match.end()
            rest = text[start : end.start() if end else len(text)]
            if name.lower().split()[0] in FUNCTION_WORDS | NO_PERSON or not _repeats(question, rest, answer):
                continue
            if place < 0 or match.start("name") > place or name in answer:
                found.append((match.start("name"), name))
    return max(found)[1] if found else ""


def _repeats(question: Question, rest: str, answer: str) -> bool:
    """Whether a text has only words of the question or of the answer, words such as "role", and a time."""
    known = {word.stem for word in Sentence(answer, 0).words} | set(question.terms)
    return all(
        word.stem in known or word.low in FUNCTION_WORDS or word.low in _ROLE_WORDS or word.low[0].isdigit()
        for word in Sentence(TIME.sub(" ", rest), 0).words
    )
