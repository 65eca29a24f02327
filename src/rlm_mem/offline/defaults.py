"""Questions for what holds if nothing is said ("unless told otherwise"), and what a manual says of it."""

from __future__ import annotations

import re

from rlm_mem.offline.question import Question

__all__ = ["asks_for_default", "states_default"]

_ABSENT = r"(?:not|no|nothing|none|never|empty|missing|omitted|absent|left (?:out|alone))"
_ASKED = re.compile(
    r"\bdefaults?\b|\bout of the box\b|\bfrom the start\b|\bunless\b|\bun(?:configured|specified|set|changed)\b"
    rf"|\b(?:if|when|while)\b[^,?]{{0,60}}?(?:\b{_ABSENT}\b|n['’]t\b)"
    r"|\bwithout (?:any |an? )?(?:options?|config\w*|arguments?|settings?|telling|saying|naming|giving)\b",
    re.IGNORECASE,
)
_STATED = re.compile(r"\bdefaults?\b", re.IGNORECASE)


def asks_for_default(question: Question) -> bool:
    """Whether a question asks for a default: "by default", "unless told otherwise", "if none is given"."""
    return bool(_ASKED.search(question.text))


def states_default(text: str) -> bool:
    """Whether a text of a manual speaks of a default."""
    return bool(_STATED.search(text))
