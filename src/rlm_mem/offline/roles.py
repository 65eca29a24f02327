"""Names the person behind a role that answers "who …": "The release manager" signs off a fix, and that is Omar."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlm_mem.offline.passages import Passage, Reading
from rlm_mem.offline.question import analyse_question
from rlm_mem.offline.reader import read
from rlm_mem.offline.weights import Weights
from rlm_mem.text.patterns import late

_ROLE = late(r"\W*(?P<role>(?:[Tt]he|[Oo]ur)(?: [a-z][\w-]{1,30}){1,4})(?=\W*$| \(\d{4}-)")
"""A role as an answer, possibly followed by the day of its note."""
_NAME = late(r"\b[A-Z]\w")


def name_of_role(
    found: Reading, passages: Sequence[Passage], sought: Sequence[str], weights: Weights
) -> Reading | str | None:
    """The answer with the person who has the role that it names; None if it names no role, or nobody is known.

    Args:
        passages: those found by further searches, among them the one for the role.
        sought: the questions for which further passages were searched.

    Returns:
        Before the question for the role is among those, that question.
    """
    match = _ROLE.match(str(found.answer))
    if match is None:
        return None
    asks = f"Who is {match['role'][0].lower()}{match['role'][1:]}?"
    if asks not in sought:
        return asks
    person = read(analyse_question(asks), passages, weights)
    if person.answer is None or person.answerable < weights.bar or not _NAME.search(person.answer):
        return None
    return replace(
        found,
        answer=f"{match['role']}: {person.answer}",
        passages=tuple(dict.fromkeys((*found.passages[:1], *person.passages))),
        confidence=min(found.confidence, person.confidence)
        if match[0] == found.answer
        else person.confidence,
    )
