"""The term lists of one search: read when scoring needs them, several at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from rlm_mem.store.core.selection import places
from rlm_mem.store.postgres.parts import POSTINGS, Lists, joined, lists_of, pairs

Ints = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int32]
Frequencies = npt.NDArray[np.uint8]

Rows = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]
"""Runs one statement and returns all its rows."""

#: Entries that are read ahead in one statement; stores of usual size need just one.
_AHEAD = 400_000
#: Looking up one entry takes as long as reading this many entries of a whole list.
_A_LOOK = 512
#: Lists with at least this many entries are kept between searches, up to this many bytes in total.
_LONG = 4_000
_MOST_KEPT = 96_000_000
#: Answers to other statements are kept in the same way, up to this many bytes in total and in one answer; not those to
#: statements with very many values.
_MOST_ANSWERED, _SHORT, _FEW_VALUES = 8_000_000, 256_000, 2_000
#: Range of documents whose entries are read as one value: a value in PostgreSQL is smaller than a gigabyte.
_STRETCH = 1 << 24
_MOST = 2**31 - 1
_KEY = 0xFFFFFFFF


class _Entries(NamedTuple):
    """A whole list: documents, how often the term occurs in each, and the length of each in terms."""

    slots: Slots
    frequency: Frequencies
    length: npt.NDArray[np.int32]

    @property
    def size(self) -> int:
        return self.slots.nbytes + self.frequency.nbytes + self.length.nbytes


class _Answer(NamedTuple):
    """What a statement found."""

    rows: list[tuple[Any, ...]]
    size: int


class _Sized(Protocol):
    @property
    def size(self) -> int: ...


_Kept = TypeVar("_Kept", bound=_Sized)


class UntilWritten(Generic[_Kept]):
    """What searches have read, kept until something is written to its namespace.

    A recall searches several times for much the same words. What was used least recently, across all namespaces, is
    dropped first. Safe to share between threads.

    Args:
        most: bytes in total.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._lists: OrderedDict[Hashable, tuple[Hashable, _Kept]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable, state: Hashable) -> _Kept | None:
        """What was read at this state of its namespace; None if there is nothing."""
        with self._lock:
            found = self._lists.get(key)
            if found is None:
                return None
            if found[0] != state:
                self._drop(key)
                return None
            self._lists.move_to_end(key)
            return found[1]

    def put(self, key: Hashable, state: Hashable, entries: _Kept) -> None:
        """Keep something."""
        with self._lock:
            self._drop(key)
            self._lists[key] = state, entries
            self._bytes += entries.size
            while self._bytes > self._most:
                self._drop(next(iter(self._lists)))

    def _drop(self, key: Hashable) -> None:
        found = self._lists.pop(key, None)
        if found is not None:
            self._bytes -= found[1].size


class KeptReads:
    """The long lists that searches have read, and what they found otherwise."""

    def __init__(self) -> None:
        self.lists = UntilWritten[_Entries](_MOST_KEPT)
        self._answers = UntilWritten[_Answer](_MOST_ANSWERED)

    def through(self, rows: Rows, owner: Hashable, state: Hashable) -> Rows:
        """`rows` for statements on one namespace in this state, each of which is run once as long as its rows are kept.

        The rows may depend on nothing but the namespace and the statement's values.
        """

        def asked(statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
            if sum(len(value) for value in values if isinstance(value, list)) > _FEW_VALUES:
                return rows(statement, values)
            key = owner, statement, repr(values)
            known = self._answers.get(key, state)
            if known is not None:
                return known.rows
            found = rows(statement, values)
            texts = (len(value) for row in found for value in row if isinstance(value, bytes | str))
            size = len(statement) + len(key[2]) + 100 * len(found) + sum(texts)
            if size <= _SHORT:
                self._answers.put(key, state, _Answer(found, size))
            return found

        return asked


class PostgresTermPostings:
    """One term's chunks (`TermPostings`); slots are documents."""

    def __init__(self, lists: TermLists, term: int, df: int) -> None:
        self._lists = lists
        self.term = term
        self.df = df
        self.slots: Slots | None = None
        self.frequency: Frequencies = np.zeros(0, np.uint8)
        self.max_frequency = 255

    def hold(self, slots: Slots, frequency: Frequencies) -> None:
        """Keep the whole list, which was read."""
        self.slots, self.frequency = slots, frequency
        self.max_frequency = int(frequency.max()) if len(frequency) else 0

    def whole(self) -> tuple[Slots, Frequencies]:
        """Every document that contains the term, sorted, and how often it occurs there."""
        if self.slots is None:
            self._lists.read(self)
        assert self.slots is not None
        return self.slots, self.frequency

    def find(self, slots: Slots) -> tuple[Ints, Frequencies]:
        """Which of the sorted documents contain the term, and how often it occurs there."""
        if self.slots is None:
            found = self._lists.look_up(self, slots)
            if found is not None:
                return found
        held, frequency = self.whole()
        which, place = places(held, slots)
        return which, frequency[place]


class TermLists:
    """The lists of one namespace that one search reads.

    Args:
        rows: runs one statement and returns its rows.
        ns: key of the namespace.
        size: documents from this number on are newer than the search and are left out.
        kept: lists of earlier searches; their keys begin with `owner`.
        state: of the namespace before the first list was read; every write changes it.
    """

    def __init__(
        self,
        rows: Rows,
        ns: int,
        size: int,
        kept: UntilWritten[_Entries] | None = None,
        owner: Hashable = None,
        state: Hashable = None,
    ) -> None:
        self._rows = rows
        self._ns = ns
        self._size = size
        self._kept = kept
        self._owner = owner
        self._state = state
        #: Length in terms of every document met in a list.
        self.length = np.zeros(size, np.int32)
        self._known: dict[int, PostgresTermPostings] = {}
        self._expected: list[PostgresTermPostings] = []
        self._looked_up: tuple[Slots, dict[int, tuple[Slots, Frequencies]]] | None = None

    def of(self, term: int, df: int) -> PostgresTermPostings:
        """The list of a term that `df` chunks contain."""
        if term not in self._known:
            self._known[term] = made = PostgresTermPostings(self, term, df)
            found = None
            if self._kept is not None and df >= _LONG:
                found = self._kept.get((self._owner, term), self._state)
            if found is not None:
                self.length[found.slots] = found.length
                made.hold(found.slots, found.frequency)
        return self._known[term]

    def expect(self, lists: Sequence[PostgresTermPostings]) -> None:
        """Announce which lists will be read, in which order: they are read ahead together."""
        self._expected = list(lists)
        self._looked_up = None

    def read(self, wanted: PostgresTermPostings) -> None:
        """Read a list, and the lists expected after it, up to `_AHEAD` entries in all."""
        chosen, total = [wanted], wanted.df
        for other in self._missing(wanted):
            total += other.df
            if total > _AHEAD:
                break
            chosen.append(other)
        terms = [each.term for each in chosen]
        lows = list(range(0, max(self._size, 1), _STRETCH))
        ends = [*lows[1:], _MOST]
        stretches = [(term, low, end) for term in terms for low, end in zip(lows, ends, strict=True)]
        found: dict[int, list[bytes]] = {term: [] for term in terms}
        for term, entries in self._rows(POSTINGS.whole, (*map(list, zip(*stretches, strict=True)), self._ns)):
            found[term] += [] if entries is None else [entries]
        for each in chosen:
            slots, frequency = self._noted(*joined(found[each.term]))
            each.hold(slots, frequency)
            if self._kept is not None and len(slots) >= _LONG:
                key = self._owner, each.term
                self._kept.put(key, self._state, _Entries(slots, frequency, self.length[slots]))

    def look_up(self, wanted: PostgresTermPostings, slots: Slots) -> tuple[Ints, Frequencies] | None:
        """`TermList.find` without reading the list; None where reading it costs no more."""
        if self._looked_up is None:
            others = [wanted, *self._missing(wanted)]
            if sum(other.df for other in others) < _A_LOOK * len(others) * len(slots):
                return None
            terms = np.repeat(np.array([other.term for other in others]), len(slots))
            docs = np.tile(slots, len(others))
            values = (self._ns, terms.tolist(), docs.tolist(), self._ns)
            read = lists_of(self._rows(POSTINGS.holding, values))
            found = {other.term: self._part(read, other.term) for other in others}
            self._looked_up = slots, found
        known, parts = self._looked_up
        if wanted.term not in parts or len(places(known, slots)[0]) != len(slots):
            return None
        held, frequency = parts[wanted.term]
        which, place = places(held, slots)
        return which, frequency[place]

    def _missing(self, wanted: PostgresTermPostings) -> list[PostgresTermPostings]:
        """The lists expected after this one that have not been read."""
        at = next((n for n, other in enumerate(self._expected) if other is wanted), len(self._expected))
        return [other for other in self._expected[at + 1 :] if other.slots is None]

    def _part(self, read: Lists, term: int) -> tuple[Slots, Frequencies]:
        """One term's entries among those read."""
        lo, hi = np.searchsorted(read.pair, pairs(np.array([term, term + 1]), _NOTHING_BUT_ZERO))
        return self._noted((read.pair[lo:hi] & _KEY).astype(np.int32), read.figures[lo:hi])

    def _noted(self, slots: Slots, figures: npt.NDArray[np.uint32]) -> tuple[Slots, Frequencies]:
        """Entries in the form scoring needs, without those newer than the search; their lengths are noted."""
        end = int(np.searchsorted(slots, self._size))
        slots, figures = slots[:end], figures[:end]
        self.length[slots] = figures[:, 0]
        return slots, (figures[:, 1] >> 8).astype(np.uint8)


_NOTHING_BUT_ZERO = np.zeros(2, np.int64)
