"""The closest passages to a question, as a program is given them."""

from __future__ import annotations

from collections.abc import Sequence

from rlm_mem.offline.closest import closest, nearness
from rlm_mem.offline.passages import Passage
from rlm_mem.offline.question import analyse_question


def closest_to(question: str, passages: Sequence[Passage]) -> list[Passage]:
    """The passages that are returned if none clearly answers, nearest first."""
    asked = analyse_question(question)
    return closest(asked, passages, nearness(asked, passages, known=True))
