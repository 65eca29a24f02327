"""Statements about the same thing that differ: candidates for what was updated or is contradicted.

The rules by which remembering finds what is replaced and contradicted (``rlm_mem.text.differences``) come first. Beyond
them, two statements are about the same thing when they share words that are rare among the statements compared: a
candidate for an update when their values differ (numbers, dates, names) or the later one has a word of change, and for
a contradiction when one is negated and the other is not. The program reads the pairs and decides.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlm_mem.text.differences import Conflict, surest
from rlm_mem.text.statements import Stated, statements_in

if TYPE_CHECKING:
    from rlm_mem.text.analysis import Analyser

__all__ = ["Pair", "Statement", "contradictory", "updated"]

_CHANGE = re.compile(
    r"\b(?:now|no longer|any ?more|instead|changed?|switch(?:ed|ing)?|moved?|moving|new|update[ds]?|used to|"
    r"rather than|replaced?|rescheduled|postponed|extended|increased|decreased|raised|lowered|reached|improved|grown|"
    r"became|renamed|upgraded|since then|recently|already|finally|jetzt|nicht mehr|maintenant|ne plus|ahora|ya no)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(?:not|never|no|nobody|nothing|none|neither|nor|without|cannot|haven.?t|hasn.?t|hadn.?t|don.?t|doesn.?t|didn.?t|"
    r"isn.?t|aren.?t|wasn.?t|weren.?t|won.?t|can.?t|couldn.?t|wouldn.?t|nicht|nie|kein\w{0,3}|pas|jamais|aucune?|nunca|"
    r"jamás|ningún|non|mai|não)\b",
    re.IGNORECASE,
)
_VALUE = re.compile(r"(?<![\w.])\d[\d.,:/-]*+%?|(?<![.!?:\n] )(?<=\s)[A-Z][\w'-]++")
_BY_RULE = 100.0
_ABOUT = 10.0
"""Added for the share of the subject's words that both have: long sentences share many others."""
_COMMON = frozenset(("i", "i'm", "i've", "i'll", "i'd", "ok"))


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence; ``order`` grows with time, ``key`` identifies the line that contains it."""

    key: int
    order: tuple[str, int]
    text: str
    speaker: str | None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two statements about the same thing, with the words they share and the reason for pairing them."""

    newer: Statement
    older: Statement
    shared: tuple[str, ...]
    why: str
    weight: float


def updated(statements: Sequence[Statement], subject: str, analyser: Analyser, limit: int) -> list[Pair]:
    """Pairs whose later statement has a different value than the earlier one, newest first."""
    return _pairs(statements, subject, analyser, limit, _other_value, "replace")


def contradictory(
    statements: Sequence[Statement], subject: str, analyser: Analyser, limit: int
) -> list[Pair]:
    """Pairs of which one is negated and the other is not, newest first."""
    return _pairs(statements, subject, analyser, limit, _denied, "contradict")


def _weight(ruled: tuple[Conflict, Stated, Stated] | None) -> float:
    """Pairs that the rules find come before the others."""
    return _BY_RULE + ruled[0].confidence if ruled is not None else 0.0


def _other_value(older: str, newer: str) -> str:
    before, after = _values(older), _values(newer)
    if before and after and after - before and before - after:
        return f"{', '.join(sorted(before - after)[:4])} → {', '.join(sorted(after - before)[:4])}"
    change = _CHANGE.search(newer)
    return f"the newer one says “{change[0].lower()}”" if change is not None else ""


def _denied(older: str, newer: str) -> str:
    first, second = _DENIAL.search(older), _DENIAL.search(newer)
    if first is not None and second is None:
        return f"the older one says “{first[0].lower()}”"
    if second is not None and first is None:
        return f"the newer one says “{second[0].lower()}”"
    return ""


def _values(text: str) -> set[str]:
    return {value for value in _VALUE.findall(text) if value.lower() not in _COMMON}


def _pairs(
    statements: Sequence[Statement],
    subject: str,
    analyser: Analyser,
    limit: int,
    reason: Callable[[str, str], str],
    kind: str,
) -> list[Pair]:
    words = [set(analyser.terms(one.text)) for one in statements]
    names = {term for one in statements if one.speaker for term in analyser.terms(one.speaker)}
    subject_terms = set(analyser.terms(subject))
    frequency = Counter(term for terms in words for term in terms)
    usable = [(one, terms) for one, terms in zip(statements, words, strict=True) if len(terms) > 1]
    usable.sort(key=lambda pair: pair[0].order)
    stated = [statements_in(one.text, analyser, speaker=one.speaker) for one, _ in usable]
    max_frequency = len(usable) // 3 + 3
    found: list[Pair] = []
    for place, (older, before) in enumerate(usable):
        for later, (newer, after) in enumerate(usable[place + 1 :], place + 1):
            shared = {
                term
                for term in before & after
                if not term.isdigit()
                and term not in names
                and (term in subject_terms or frequency[term] <= max_frequency)
            }
            ruled = surest(stated[later], stated[place], kind)
            if ruled is None and (len(shared) < 2 or before == after):
                continue
            why = reason(older.text, newer.text) or (ruled[0].reason if ruled is not None else "")
            if why:
                overlap = len(shared) / (1 + min(len(before), len(after)))
                rarity = sum(1.0 / frequency[term] for term in shared)
                found.append(
                    Pair(
                        newer,
                        older,
                        tuple(sorted(shared)),
                        why,
                        rarity
                        + overlap
                        + _ABOUT * len(shared & subject_terms) / (len(subject_terms) or 1)
                        + _weight(ruled),
                    )
                )
    best = sorted(found, key=lambda pair: -pair.weight)[:limit]
    return sorted(best, key=lambda pair: pair.newer.order, reverse=True)
