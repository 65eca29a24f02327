"""The ways in which a question asks for a default: "unless I say otherwise", "if I set nothing", "out of the box"."""

from __future__ import annotations

import re

from rlm_mem.text.patterns import late

_SET = (
    r"(?:set|choose|say|specify|state|tell|give|change|pick|pass|define|provide|configure|override|touch|do|ask)"
    r"(?:s|es|ing)?|said|told|given|chosen|specified|chang(?:ed|ing)|configur(?:ed|ing)|defin(?:ed|ing)"
)
_WHOM = r"(?:i|you|we|one|they|nobody|nothing|none)"
_NOT = r"(?:do not|don['’]?t|does not|doesn['’]?t|did not|didn['’]?t|have not|haven['’]?t|has not|hasn['’]?t|never)"
_REST = r"(?: (?:it|them|that|one|otherwise|so|explicitly|anything|something|differently|else|at all)\b){0,3}"
_WORDS = (
    r"\bout of the box\b|\bas (?:shipped|installed)\b|\bby default\b"
    rf"|\bunless (?:(?:i|you|we|one|they|it|is|are|anything|something|explicitly) ){{0,3}}(?:{_SET}|otherwise)\b{_REST}"
    rf"|\b(?:if|when|where|while) {_WHOM} (?:\w+ )?{_NOT} (?:\w+ )?(?:{_SET})\b{_REST}"
    rf"|\b(?:if|when|where|while) (?:{_WHOM} )?(?:is |are |has |have )?(?:{_SET}) (?:nothing|none|no)\b"
    rf"|\b(?:if|when|where|while) (?:nothing|nobody|none)(?: else)?(?: is| has| was)? (?:{_SET})\b{_REST}"
    rf"|\bwithout (?:{_SET})\b{_REST}"
)
DEFAULT_ASKED = late(_WORDS, re.IGNORECASE)
"""The words with which a question asks for a default."""
ASKS_USUAL = late(rf"\b(?:defaults?|normally|usually)\b|{_WORDS}", re.IGNORECASE)
"""Whether a question asks for what is usual, in any words."""
