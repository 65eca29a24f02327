"""Finds places where a text may be cut, and chooses the cheapest cuts.

A text is split into small units (sentences, lines of code, rows, pieces of an unbroken run), each with its exact token
count and the cost of starting a chunk there. The cheapest cuts meet the size bounds first, then prefer good places,
then the target size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import add, sub

from msgspec import Struct, field
from msgspec.structs import replace

from rlm_mem.record import FrozenRecord, MutableRecord
from rlm_mem.text import blocks as structure
from rlm_mem.text.blocks import Block, blocks, pieces, units
from rlm_mem.text.tokens import count_many


class CutCosts(FrozenRecord, frozen=True):
    """Costs of starting a chunk at a place, on a scale on which a chunk of maximum size costs 4.

    Cutting something that should stay whole costs more than any size; a natural beginning costs nothing.
    """

    heading: float = -1.0  # a section starts a chunk, unless that would be far below the target
    paragraph: float = 0.0
    turn: float = 0.0
    answer: float = 0.5  # between a question and its reply
    same_speaker: float = 0.5
    line: float = 1.0  # between blocks with no empty line between them
    after_colon: float = 3.0  # between "The steps are:" and its list
    after_rule: float = 5.0
    item: float = 6.0
    nested_item: float = 8.0
    row: float = 8.0
    header_row: float = 12.0
    after_heading: float = 20.0
    sentence: float = 1.0  # inside a running paragraph
    sentence_in_turn: float = 8.0
    sentence_in_item: float = 9.0
    code_gap: float = 8.0  # at an empty line inside code
    code_line: float = 10.0
    inside_sentence: float = 30.0


class Cuts(MutableRecord):
    """Parallel lists with one entry per unit; the units contain every character of the text except space."""

    start: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    gap: list[int] = field(default_factory=list)  # tokens of long white space before the unit
    cost: list[float] = field(default_factory=list)  # of starting a chunk with this unit
    repeat_from: list[int] = field(default_factory=list)  # start of the repeated text; `start` if none
    repeat_tokens: list[int] = field(default_factory=list)

    def estimate(self, first: int, last: int) -> int:
        """Tokens of the chunk of units `[first, last)` as the sum of its parts."""
        return sum(self.tokens[first:last]) + sum(self.gap[first + 1 : last]) + self.repeat_tokens[first]


class _Atom(Struct, frozen=True, gc=False):
    """A smallest piece of text, which is only cut if it is too large by itself."""

    start: int
    end: int
    cost: float
    running: bool  # inside running text, so that a cut before it repeats the text before it
    inner: float = 0.0  # cost of a cut inside it, if needed


class _Sized(Struct, gc=False):
    atom: _Atom
    tokens: int
    gap: int


# BPE merges them into the token before
_SHORT_BREAKS = frozenset(("\n", "\r", "\r\n", "\n\n", "\r\r", "\n\r"))
_MANY_SECTIONS = 1_000


def find_cuts(text: str, *, grain: int, largest: int, most: int, overlap: int, costs: CutCosts) -> Cuts:
    """Find all places where `text` may be cut.

    Args:
        text: any text; empty gives no units.
        grain: maximum tokens of pieces joined into one unit (keeps packing linear).
        largest: maximum tokens of a unit, unless a single character has more.
        most: maximum tokens of a chunk; a longer sentence is cut at the cost of other running text.
        overlap: maximum tokens repeated when a chunk starts inside running text.
        costs: the cost of each kind of cut.
    """
    atoms = _split_to_size(text, _atoms(text, costs), largest, most, costs)
    apart = not _has_many_sections(atoms, grain)
    cuts = Cuts()
    index = 0
    while index < len(atoms):
        last, total = index, atoms[index].tokens
        while last + 1 < len(atoms) and _may_join(atoms[last + 1], total, grain, apart):
            last += 1
            total += atoms[last].gap + atoms[last].tokens
        first = atoms[index]
        repeat_from, repeat_tokens = _overlap_start(text, atoms, index, overlap)
        cuts.start.append(first.atom.start)
        cuts.end.append(atoms[last].atom.end)
        cuts.tokens.append(total)
        cuts.gap.append(first.gap)
        cuts.cost.append(first.atom.cost)
        cuts.repeat_from.append(repeat_from)
        cuts.repeat_tokens.append(repeat_tokens)
        index = last + 1
    return cuts


def _may_join(following: _Sized, total: int, grain: int, apart: bool) -> bool:
    """Whether another atom fits into a unit; with ``apart``, a section begins a new unit."""
    return (not apart or following.atom.cost >= 0.0) and total + following.gap + following.tokens <= grain


def _has_many_sections(atoms: list[_Sized], grain: int) -> bool:
    """Whether the text has over a thousand tiny sections (such as rules), too many for packing to consider each."""
    sections = sum(1 for one in atoms if one.atom.cost < 0.0)
    return sections > _MANY_SECTIONS and sections * grain > sum(one.tokens + one.gap for one in atoms)


def _atoms(text: str, costs: CutCosts) -> list[_Atom]:
    found: list[_Atom] = []
    before: Block | None = None
    for block in blocks(text):
        cost = _block_cost(text, before, block, costs)
        for number, (start, end, inner) in enumerate(_inside(text, block, costs)):
            running = number > 0 and block.kind in _RUNNING
            found.append(_Atom(start, end, inner if number else cost, running))
        before = block
    return found


_RUNNING = frozenset((structure.PARAGRAPH, structure.TURN, structure.ITEM, structure.DEFINITION))
_LISTED = frozenset((structure.ITEM, structure.DEFINITION))
_IN_TABLE = frozenset((structure.ROW, structure.HEADER))


def _block_cost(text: str, before: Block | None, block: Block, costs: CutCosts) -> float:
    if before is None:
        return 0.0
    kind, former = block.kind, before.kind
    if former == structure.HEADING:
        return costs.after_heading
    if kind in (structure.HEADING, structure.RULE):
        return costs.heading
    if former == structure.RULE:
        return costs.after_rule
    if kind in _LISTED and former in _LISTED and (kind == former or block.depth > before.depth):
        return costs.nested_item if block.depth > before.depth else costs.item
    if kind in _IN_TABLE and former in _IN_TABLE and not block.apart:
        return costs.header_row if former == structure.HEADER else costs.row
    last = text[before.end - 1]
    if last in ":：" and kind not in (structure.PARAGRAPH, structure.TURN):
        return costs.after_colon
    if kind == structure.TURN:
        return costs.answer if last in "?？" and former == structure.TURN else costs.turn
    if block.author is not None and block.author == before.author:
        return costs.same_speaker
    return costs.paragraph if block.apart else costs.line


def _inside(text: str, block: Block, costs: CutCosts) -> list[tuple[int, int, float]]:
    """The atoms of one block, each with the cost of a cut before it (undefined for the first)."""
    start, end, kind = block.start, block.end, block.kind
    if kind == structure.CODE:
        return _code_lines(text, start, end, costs)
    if kind in (structure.HEADING, structure.RULE, structure.ROW, structure.HEADER):
        return [(start, end, 0.0)]
    inner = costs.sentence
    if kind in _LISTED:
        inner = costs.sentence_in_item
    elif kind == structure.TURN:
        inner = costs.sentence_in_turn
    body = start
    # A marker or a beginning without a number ends no sentence, and the spans of the words alone are cached.
    if kind == structure.ITEM and not any(map(str.isdigit, text[start : block.body_start + 1])):
        body = block.body_start
    spans = units(text, body, end)
    if len(spans) == 1:
        return [(start, spans[0][1], inner)]
    # An item includes its indentation and marker.
    return [(start if number == 0 else first, last, inner) for number, (first, last) in enumerate(spans)]


def _code_lines(text: str, start: int, end: int, costs: CutCosts) -> list[tuple[int, int, float]]:
    lines: list[tuple[int, int, float]] = []
    position, gap = start, False
    while position < end:
        stop = text.find("\n", position, end)
        stop = end if stop < 0 else stop
        if text[position:stop].strip():
            lines.append((position, stop, costs.code_gap if gap else costs.code_line))
            gap = False
        else:
            gap = True
        position = stop + 1
    return lines


def _split_to_size(text: str, atoms: list[_Atom], largest: int, most: int, costs: CutCosts) -> list[_Sized]:
    """Count the tokens of every atom, and cut those that are too large until all fit or are single characters."""
    while True:
        between = [text[before.end : atom.start] for before, atom in pairwise(atoms)]
        counts = _counts(text, atoms, between)
        smaller: list[_Atom] = []
        for atom, count in zip(atoms, counts, strict=True):
            length = atom.end - atom.start
            if count <= largest or length <= 1:
                smaller.append(atom)
                continue
            # Aim slightly below the share of characters that would fit; at least halve, so that this terminates.
            inner = atom.inner or (costs.inside_sentence if count <= most else costs.sentence + costs.line)
            limit = max(1, min(length // 2 + length % 2, length * largest * 3 // (count * 4)))
            for number, (start, end) in enumerate(pieces(text, atom.start, atom.end, limit)):
                broken = number > 0 and not text[start - 1].isspace()
                piece = replace(atom, start=start, end=end, inner=inner)
                smaller.append(replace(piece, cost=inner, running=not broken) if number else piece)
        if len(smaller) == len(atoms):
            break
        atoms = smaller
    # White space that `_counts` counts with neither of the atoms beside it
    gaps = ["" if space in _SHORT_BREAKS else space.removesuffix(" ") for space in between]
    return [_Sized(*row) for row in zip(atoms, counts, count_many(["", *gaps])[: len(atoms)], strict=True)]


def _counts(text: str, atoms: list[_Atom], between: list[str]) -> list[int]:
    """Token counts of the atoms, which nearly always add up to the count of the joined text.

    A tokeniser joins a space to the word after it, and a line break to the words before it.

    Args:
        between: the white space between the atoms.
    """
    return count_many(
        [
            (" " if before[-1:] == " " else "")
            + text[atom.start : atom.end]
            + (after if after in _SHORT_BREAKS else "")
            for atom, before, after in zip(atoms, ["", *between], [*between, ""], strict=False)
        ]
    )


def _overlap_start(text: str, atoms: list[_Sized], index: int, overlap: int) -> tuple[int, int]:
    """Where a chunk that starts with this atom begins to repeat the text before it, and the number of repeated tokens.

    Whole sentences are repeated if they fit, else the last words of the sentence before; nothing between blocks or
    inside an unbroken run.
    """
    start = atoms[index].atom.start
    if overlap <= 0 or not atoms[index].atom.running:
        return start, 0
    total, first = 0, index
    while atoms[first].atom.running and total + atoms[first - 1].tokens + atoms[first].gap <= overlap:
        total += atoms[first - 1].tokens + atoms[first].gap
        first -= 1
    if first < index:
        return atoms[first].atom.start, total
    if atoms[index].gap:
        return start, 0
    before = atoms[index - 1]
    length = before.atom.end - before.atom.start
    share = max(1, length * overlap * 3 // (before.tokens * 4))
    window = text[before.atom.end - share : before.atom.end]
    words = window.split(None, 1)
    if len(words) < 2:
        return start, 0
    tail = words[1]
    return before.atom.end - len(tail), count_many((tail,))[0]


# --- choosing the cuts --------------------------------------------------------------------------------------

_AT_BOUND = 4.0  # cost of a chunk of exactly the maximum size
_TOO_SMALL = 100.0  # more than any cut, since bounds take precedence over good places
_NEARLY = 6  # distance in tokens from a bound below which exact counts are needed


class Sizes(FrozenRecord, frozen=True):
    """Size bounds of a chunk in tokens: `least` <= chunk <= `most` where possible, otherwise close to `target`."""

    least: int
    target: int
    most: int

    @lru_cache(maxsize=64)  # noqa: B019 - of a few plain numbers, and the same for nearly every text
    def costs(self) -> tuple[float, ...]:
        """Cost of a chunk by size, from 0 to `most` tokens: zero at the target, rising on both sides."""
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

    @lru_cache(maxsize=64)  # noqa: B019
    def costs_by_sum(self) -> tuple[tuple[float, bool], ...]:
        """Costs by the sum of parts, each with whether it is exact; near a bound, the lowest possible cost."""
        table, most, least = self.costs(), self.most, self.least
        at_most = min(table[max(0, most - 2 * _NEARLY) :])
        at_least = min(table[max(0, least - 2 * _NEARLY) : least + 2 * _NEARLY + 1])
        return tuple(
            (at_most, False) if size >= most - _NEARLY
            else (at_least, False) if abs(size - least) <= _NEARLY
            else (table[size], True)
            for size in range(most + _NEARLY + 1)
        )  # fmt: skip


def pack(cuts: Cuts, sizes: Sizes, exact: Callable[[int, int], int]) -> list[tuple[int, int]]:
    """Choose chunks as ranges of units `[first, last)` that cover all units in order.

    `exact(first, last)` counts the tokens of such a chunk, repeated text included. A single unit is always allowed, so
    only a unit that cannot be cut further exceeds `sizes.most`.
    """
    count = len(cuts.start)
    table, most, repeat = sizes.costs(), sizes.most, cuts.repeat_tokens
    by_sum = sizes.costs_by_sum()
    largest = most + _NEARLY
    # Tokens before each unit, gaps included
    upto = list(accumulate(map(add, cuts.tokens, cuts.gap), initial=0))
    start = list(map(sub, map(add, upto, cuts.gap), repeat))  # tokens before a chunk that starts with a unit
    before = [0.0] * (count + 1)  # lowest cost of everything before a unit, including the cut there
    came_from = [0] * (count + 1)
    for last in range(1, count + 1):
        total = upto[last]
        cheapest, chosen = float("inf"), last - 1
        doubtful: list[tuple[float, int]] = []  # lowest possible cost, and first unit
        for first in range(last - 1, -1, -1):
            size = total - start[first]
            if size > largest:
                if size - repeat[first] > largest:
                    break
                continue
            cost, is_sure = by_sum[size]
            cost += before[first]
            if cost >= cheapest:  # it cannot be the best, whatever its exact size
                continue
            if is_sure:
                cheapest, chosen = cost, first
            else:
                doubtful.append((cost, first))
        for lowest, first in doubtful:
            if lowest < cheapest:
                size = exact(first, last)
                cost = before[first] + table[size] if size <= most else float("inf")
                if cost < cheapest:
                    cheapest, chosen = cost, first
        if cheapest == float("inf"):  # a unit that cannot be cut further exceeds the maximum
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
