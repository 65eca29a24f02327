"""Texts on which a pattern does the most work: each repeated part pumped, after each way to reach it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import permutations
from re import (
    _constants as op,
    _parser as parser,
)
from typing import Any

ALPHABET = "a Z0_.-'\"\n\t,:;({[<*`#=!?$@/\\é漢—。"
REPEATS = (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT)
MOST = 160
"""Texts of one pattern."""

TAILS = ("\x00", "\n")


def worst_texts(pattern: str, flags: int) -> list[tuple[str, str, str]]:
    """Return (prefix, pump, tail) triples: the text of n characters is prefix + pump * k + tail."""
    tree = parser.parse(pattern, flags)
    classes = list(_classes(tree))

    @cache
    def taken_by(char: str) -> int:
        return sum(_takes(code, argument, char) for code, argument in classes)

    extra = "".join(dict.fromkeys(chr(argument) for code, argument in classes if code is op.LITERAL))
    pumps: dict[tuple[str, str, str], None] = {}
    steps = {(prefix, repr(body)): body for prefix, body in _steps(list(tree), ("",))}
    for (prefix, _), body in steps.items():
        prefix = prefix[-120:]
        singles = sorted(_members(body, extra), key=taken_by, reverse=True)
        samples = _samples(body)
        for pump in dict.fromkeys((*singles[:5], *samples)):
            for tail in TAILS:
                pumps[prefix, pump, tail] = None
            if prefix:
                pumps["", prefix + pump, "\x00"] = None
                pumps["", prefix + pump * 3, "\x00"] = None
        if prefix:
            for joined in ("", " ", "-"):
                pumps["", prefix + joined, "\x00"] = None
        for one, two in permutations(_kinds(singles), 2):
            pumps[prefix, one + two, "\x00"] = None
    for pump in ("a", " ", "0", "a ", "a.", "\n", "A", "_", "'", " a"):
        pumps["", pump, "\x00"] = None
    for sample in _samples(list(tree)):
        for pump in (sample, sample[:-1], sample + " "):
            pumps["", pump, "\x00"] = None
    kept = [triple for triple in pumps if triple[1]]
    return kept[:: len(kept) // MOST + 1]


def text_of(triple: tuple[str, str, str], size: int) -> str:
    """A text of about `size` characters."""
    prefix, pump, tail = triple
    return prefix + pump * max(1, (size - len(prefix)) // len(pump)) + tail


def _steps(items: list[Any], prefixes: tuple[str, ...]) -> Iterator[tuple[str, list[Any]]]:
    """Each repeated part, with texts that lead to it."""
    for at, (code, argument) in enumerate(items):
        before = _samples(items[:at])
        here = tuple(dict.fromkeys(outer + one for outer in prefixes for one in before))[:4]
        if code in REPEATS:
            _, high, body = argument
            if high > 4:
                for prefix in here:
                    yield prefix, list(body)
            yield from _steps(list(body), here)
        elif code is op.SUBPATTERN:
            yield from _steps(list(argument[-1]), here)
        elif code is op.ATOMIC_GROUP:
            yield from _steps(list(argument), here)
        elif code is op.BRANCH:
            for branch in argument[1]:
                yield from _steps(list(branch), here)
        elif code in (op.ASSERT, op.ASSERT_NOT):
            yield from _steps(list(argument[1]), here)
        elif code is op.GROUPREF_EXISTS:
            for branch in argument[1:]:
                yield from _steps(list(branch or []), here)


def _samples(items: Iterable[Any]) -> list[str]:
    """Some short texts that the sequence matches: the least, with every optional part, with other branches."""
    texts = [""] * 4
    for code, argument in items:
        pieces = _piece(code, argument)
        texts = [text + pieces[min(number, len(pieces) - 1)] for number, text in enumerate(texts)]
    return list(dict.fromkeys(texts))


def _piece(code: Any, argument: Any) -> list[str]:
    if code is op.LITERAL:
        return [chr(argument)]
    if code in (op.NOT_LITERAL, op.ANY, op.IN):
        members = [c for c in ALPHABET if _takes(code, argument, c)]
        return [members[0]] if members else [_first(argument)]
    if code in REPEATS:
        low, high, body = argument
        one = _samples(body)
        return [one[0] * low, *(text * max(low, min(1, high)) for text in one)]
    if code is op.SUBPATTERN:
        return _samples(argument[-1])
    if code is op.ATOMIC_GROUP:
        return _samples(argument)
    if code is op.BRANCH:
        branches = [_samples(branch)[0] for branch in argument[1]]
        return [branches[0], max(branches, key=len), branches[-1], branches[len(branches) // 2]]
    return [""]


def _first(items: Any) -> str:
    for code, argument in items if isinstance(items, list) else ():
        if code is op.LITERAL:
            return chr(argument)
        if code is op.RANGE:
            return chr(argument[0])
    return "\x01"


def _takes(code: Any, argument: Any, char: str) -> bool:
    point = ord(char)
    if code is op.LITERAL:
        return bool(argument == point)
    if code is op.NOT_LITERAL:
        return bool(argument != point)
    if code is op.ANY:
        return char != "\n"
    negate = False
    for inner, value in argument:
        if inner is op.NEGATE:
            negate = True
        elif (
            (inner is op.LITERAL and value == point)
            or (inner is op.RANGE and value[0] <= point <= value[1])
            or (inner is op.CATEGORY and _category(value, char))
        ):
            return not negate
    return negate


def _category(category: Any, char: str) -> bool:
    name = str(category)
    known = (
        char.isspace()
        if "SPACE" in name
        else char.isdigit()
        if "DIGIT" in name
        else char.isalnum() or char == "_"
    )
    return known != ("NOT" in name)


def _classes(items: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for code, argument in items:
        if code in (op.IN, op.NOT_LITERAL, op.ANY, op.LITERAL):
            yield code, argument
        elif code in REPEATS:
            yield from _classes(argument[2])
        elif code is op.SUBPATTERN:
            yield from _classes(argument[-1])
        elif code is op.ATOMIC_GROUP:
            yield from _classes(argument)
        elif code is op.BRANCH:
            for branch in argument[1]:
                yield from _classes(branch)
        elif code in (op.ASSERT, op.ASSERT_NOT):
            yield from _classes(argument[1])


def _kinds(singles: list[str]) -> list[str]:
    """One character of each kind: letters, digits, space, marks."""
    kept: dict[str, str] = {}
    for char in singles:
        kind = "a" if char.isalpha() else "0" if char.isdigit() else " " if char.isspace() else char
        kept.setdefault(kind, char)
    return list(kept.values())[:5]


def _members(body: list[Any], extra: str) -> list[str]:
    """Characters that the repeated part begins with, of those of the alphabet and of the pattern itself."""
    firsts: list[tuple[Any, Any]] = list(_firsts(body))
    found = [
        char
        for char in dict.fromkeys(ALPHABET + extra)
        if any(_takes(code, argument, char) for code, argument in firsts)
    ]
    if not found:
        found = [_piece(code, argument)[0] for code, argument in firsts][:1]
    return found


def _firsts(body: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for code, argument in body:
        if code in (op.IN, op.NOT_LITERAL, op.ANY, op.LITERAL):
            yield code, argument
            return
        if code in REPEATS:
            yield from _firsts(argument[2])
            if argument[0]:
                return
        elif code is op.SUBPATTERN:
            yield from _firsts(argument[-1])
            return
        elif code is op.ATOMIC_GROUP:
            yield from _firsts(argument)
            return
        elif code is op.BRANCH:
            for branch in argument[1]:
                yield from _firsts(branch)
            return
