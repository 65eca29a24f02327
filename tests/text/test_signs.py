"""Patterns with signs: a text without a sign is one that the pattern cannot match."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any

import pytest

from rlm_mem.search import query
from rlm_mem.text import by_language, distinct, factuality, present, update_score
from rlm_mem.text.patterns import Expressions, SignedPattern, folded, signs_of

code, parser = import_module("re._constants"), import_module("re._parser")  # which have no types
ANYTHING, SIGN = "\0", "\1"
"""What no sign contains; and what stands for a form that has a sign."""


def forms(part: Iterable[Any], signs: tuple[str, ...]) -> set[str]:
    """What a parsed pattern may match, with `ANYTHING` for what is left open, and `SIGN` for all that has a sign."""
    found = {""}
    for kind, value in reversed(
        list(part)
    ):  # most patterns end in their signs: fewer forms are left to extend
        found = {known(before + after, signs) for before in step(kind, value, signs) for after in found}
    return found


def step(kind: Any, value: Any, signs: tuple[str, ...]) -> set[str]:
    if kind in (code.AT, code.ASSERT, code.ASSERT_NOT):
        return {""}
    if kind is code.LITERAL:
        return {folded(chr(value))}
    if kind is code.IN and all(one is code.LITERAL for one, _ in value) and len(value) < 8:
        return {folded(chr(letter)) for _, letter in value}
    if kind is code.SUBPATTERN:
        return forms(value[-1], signs)
    if kind is code.BRANCH:
        return set().union(*(forms(one, signs) for one in value[1]))
    if kind in (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT):
        least, most, what = value
        once = forms(what, signs) if least or most == 1 else set()
        return ({""} if not least and most == 1 else {ANYTHING} if not least else set()) | {
            one if most == 1 else known(one + ANYTHING, signs) for one in once
        }
    return {ANYTHING}


def known(form: str, signs: tuple[str, ...]) -> str:
    return SIGN if SIGN in form or any(sign in form for sign in signs) else form


def without_sign(pattern: SignedPattern) -> set[str]:
    """Forms of a pattern that have none of its signs."""
    return forms(parser.parse(pattern.pattern, pattern.flags), pattern.signs) - {SIGN}


SIGNED = {
    f"{module.__name__}.{name}": value
    for module in (query, by_language, distinct, factuality, present, update_score)
    for name, one in vars(module).items()
    if isinstance(value := one.others if isinstance(one, Expressions) else one, SignedPattern)
}


@pytest.mark.parametrize("name", SIGNED)
def test_every_text_that_a_pattern_matches_has_one_of_its_signs(name: str) -> None:
    assert SIGNED[name].signs and not without_sign(SIGNED[name])


@pytest.mark.parametrize(
    ("pattern", "signs"),
    [
        (r"\bby (?:bus|trams?)\b", ("by bus", "by tram", "by trams")),
        (r"\bon (?:the )?foot\b(?! bridge)", ("on the foot", "on foot")),
        (r"\w+ (?:is|are) \w+ed\b|^->|n['’]t", (" is ", " are ", "->", "n't", "n’t")),
        (r"(?:no )?(?:longer){1,2}|x*yz+|\(draft\)", ("longer", "y", "(draft)")),
        (r"[^x]*|bus", ()),
        (r"(?:bus)?", ()),
    ],
)
def test_signs_are_the_longest_texts_that_a_pattern_requires(pattern: str, signs: tuple[str, ...]) -> None:
    assert set(signs_of(pattern)) == set(signs)


def test_a_missing_sign_is_noticed() -> None:
    assert len(SIGNED) > 20
    made = SignedPattern(r"\b(?:bus|by train|trams?|on (?:the )?foot)\b|[ab]x*|(?:ab)+", re.IGNORECASE)
    vars(made)["signs"] = ("bus", "tram")
    assert without_sign(made) == {"by train", "on foot", "on the foot", "a\0", "b\0", "ab\0"}
