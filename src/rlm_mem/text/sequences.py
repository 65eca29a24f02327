"""Compares two sequences of words or lines, in bounded time even if many items are equal."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence

Opcode = tuple[str, int, int, int, int]

_MAX_PAIRS = 60_000
"""Maximum pairs of equal items for a detailed comparison, which visits each pair many times."""
_MAX_ITEMS = 6_000


def opcodes(before: Sequence[str], after: Sequence[str]) -> list[Opcode]:
    """Edit operations from ``before`` to ``after``, in the form of `difflib.SequenceMatcher.get_opcodes`.

    The common beginning and end are equal. If the rest is too long or too repetitive, all of it counts as replaced.
    """
    head, tail = _in_common(before, after)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    made: list[Opcode] = [("equal", 0, head, 0, head)] if head else []
    made += [(kind, a + head, b + head, c + head, d + head) for kind, a, b, c, d in _between(old, new)]
    if tail:
        made.append(("equal", len(before) - tail, len(before), len(after) - tail, len(after)))
    return made


def comparable(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether `opcodes` compares these in detail, that is, they are not too long or too repetitive."""
    head, tail = _in_common(before, after)
    return _bounded(before[head : len(before) - tail], after[head : len(after) - tail])


def _in_common(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    head = tail = 0
    shorter = min(len(before), len(after))
    while head < shorter and before[head] == after[head]:
        head += 1
    while tail < shorter - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return head, tail


def _bounded(old: Sequence[str], new: Sequence[str]) -> bool:
    counted = Counter(new)
    pairs = sum(count * counted[item] for item, count in Counter(old).items())
    return pairs <= _MAX_PAIRS and len(old) + len(new) <= _MAX_ITEMS


def _between(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    if not old and not new:
        return []
    if not old or not new:
        return [("insert" if new else "delete", 0, len(old), 0, len(new))]
    if not _bounded(old, new):
        return [("replace", 0, len(old), 0, len(new))]
    return list(difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes())
