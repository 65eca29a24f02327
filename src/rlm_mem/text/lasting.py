"""Whether what a sentence says lasts: it may be about a limited time, or about a draft. English only."""

from __future__ import annotations

import re

from rlm_mem.text.patterns import late

__all__ = ["UNDONE", "is_in_force", "is_taken_back", "is_temporary"]

_TEMPORARY = late(
    r"^\W*while (?!\w{1,20}ing\b|at\b|i\b|we\b|there\b)|\bwhile\b[^,.;]{1,60}\b(?:is|are|was|were)\b|\bduring\b"
    r"|\b(?:un)?till? then\b|\btemporar"
    r"|\bfor (?:the time being|now|the duration)\b|\bstand(?:s|ing)? in\b|\bfill(?:s|ing) in\b"
    r"|\bexceptionally\b|\bon the (?:last )?day (?:of|before)\b|^\W*last night\b"
    r"|\bthis time\b|^\W*this (?:week|weekend)\b(?!'s|’s)",
    re.IGNORECASE,
)
"""A sentence about a limited time, after which the former value holds again."""
_FOR_A_WHILE = late(
    r"\bfor (?:(?:a|an|one|two|three|four|five|six|that|this|just|only|the|several|\d{1,3}) ){1,2}"
    r"(minute|hour|morning|afternoon|evening|day|night|week|weekend|match|game|lesson|session|meeting)s?\b",
    re.IGNORECASE,
)
_HAS_BEEN = late(r"\bbeen\b", re.IGNORECASE)
"""With this word, a duration is no limit: "has been at nine for a week"."""
_NOT_IN_FORCE = late(
    r"\((?:rejected|declined|withdrawn|not adopted)\)|\b(?:draft|not adopted|roadmap|poster|petition|april fools?)\b"
    r"|\b(?:proposal|motion|referendum|rfc|bill|vote)\b[^.]{0,120}\b(?:rejected|failed|declined|withdrawn|tabled)\b",
    re.IGNORECASE,
)
UNDONE = r"(?:rolled (?:it |that |them )?back|reverted|undid|undone)"
"""A pattern of the words for a change that was undone, between word boundaries."""
_TAKEN_BACK = late(
    rf"\b(?:to|at|is|are|was|were|by)\b.{{1,400}}?\b{UNDONE}\b",
    re.IGNORECASE | re.DOTALL,
)
_NEAR = 800
"""Number of leading characters of a text in which a change and its reversal are looked for."""


def is_temporary(sentence: str, known: str) -> bool:
    """Whether a sentence is about a limited time that the question and the earlier note do not name."""
    low = known.lower()
    lasting = _HAS_BEEN.search(sentence)
    found = None if lasting else _FOR_A_WHILE.search(sentence)
    if found is not None and found[1].lower() not in low:  # else the duration is the value
        return True
    found = _TEMPORARY.search(sentence)
    return found is not None and found.group().lower() not in low


def is_in_force(sentence: str, known: str) -> bool:
    """Whether a sentence mentions no draft, rejected proposal or poster, or only one that ``known`` mentions, too."""
    found = _NOT_IN_FORCE.search(sentence)
    return found is None or found.group().lower() in known.lower()


def is_taken_back(text: str) -> bool:
    """Whether a text first states a change and then says that it was undone: "raised to 12g, reverted to 4g"."""
    return _TAKEN_BACK.search(text[:_NEAR]) is not None
