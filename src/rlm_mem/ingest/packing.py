"""The cheapest way to cut a row of units into chunks: sizes within bounds first, then good places, then the target.

Dynamic programming over the possible cuts; a chunk spans a bounded number of units, so the time is linear.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from rlm_mem.ingest.cutting import Cuts

_AT_BOUND = 4.0  # cost of a chunk of exactly the maximum size
_TOO_SMALL = 100.0  # more than any cut costs: bounds come before good places
_NEARLY = 6  # tokens from a bound within which the sum of parts is replaced by an exact count


@dataclass(frozen=True)
class Sizes:
    """Bounds in tokens of one chunk: `least` <= chunk <= `most` where possible, near `target` where free."""

    least: int
    target: int
    most: int

    @lru_cache(maxsize=64)  # noqa: B019 - of a few plain numbers, and the same for nearly every text
    def costs(self) -> tuple[float, ...]:
        """Cost of a chunk by its size, from 0 to `most` tokens: zero at the target, rising to both sides."""
        table: list[float] = []
        for size in range(self.most + 1):
            if size >= self.target:
                cost = _AT_BOUND * ((size - self.target) / max(1, self.most - self.target)) ** 2
            else:
                cost = (2.0 * (self.target - size) / self.target) ** 2
            if size < self.least:
                cost += _TOO_SMALL * (1.0 + (self.least - size) / self.least)
            table.append(cost)
        return tuple(table)


def pack(cuts: Cuts, sizes: Sizes, exact: Callable[[int, int], int]) -> list[tuple[int, int]]:
    """Chunks as ranges of units `[first, last)`, in order, all units covered.

    `exact(first, last)` counts the tokens of such a chunk with what it repeats. A single unit is always allowed, so
    only a unit that cannot be cut any further exceeds `sizes.most`.
    """
    count = len(cuts.start)
    table, most, least = sizes.costs(), sizes.most, sizes.least
    gap, repeat = cuts.gap, cuts.repeat_tokens
    floor_at_most = min(table[max(0, most - 2 * _NEARLY) :])
    floor_at_least = min(table[max(0, least - 2 * _NEARLY) : least + 2 * _NEARLY + 1])
    upto = [0]  # tokens before each unit, gaps included
    for tokens, space in zip(cuts.tokens, cuts.gap, strict=True):
        upto.append(upto[-1] + space + tokens)
    before = [0.0] * (count + 1)  # cheapest cost of everything before a unit, the cut there included
    came_from = [0] * (count + 1)
    for last in range(1, count + 1):
        total = upto[last]
        cheapest, chosen = float("inf"), last - 1
        doubtful: list[tuple[float, int]] = []  # what it costs at least, and where it starts
        for first in range(last - 1, -1, -1):
            size = total - upto[first] - gap[first]
            if size > most + _NEARLY:
                break
            size += repeat[first]
            if size > most + _NEARLY:
                continue
            if size >= most - _NEARLY:
                doubtful.append((before[first] + floor_at_most, first))
                continue
            if -_NEARLY <= size - least <= _NEARLY:
                doubtful.append((before[first] + floor_at_least, first))
                continue
            cost = before[first] + table[size]
            if cost < cheapest:
                cheapest, chosen = cost, first
        for lowest, first in doubtful:
            if lowest < cheapest:  # else no size could make it the best: spare the counting
                size = exact(first, last)
                cost = before[first] + table[size] if size <= most else float("inf")
                if cost < cheapest:
                    cheapest, chosen = cost, first
        if cheapest == float("inf"):  # a unit that cannot be cut any further is larger than allowed
            cheapest = before[last - 1] + table[most]
        came_from[last] = chosen
        if last < count:
            before[last] = cheapest + cuts.cost[last]
    chunks: list[tuple[int, int]] = []
    last = count
    while last > 0:
        chunks.append((came_from[last], last))
        last = came_from[last]
    return chunks[::-1]
