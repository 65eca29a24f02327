"""The term lists of one search: read in batches when scoring needs them, and cached between searches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from rlm_mem.store.core.arrays import Frequencies, Ints, Slots, Words
from rlm_mem.store.core.selection import places
from rlm_mem.store.postgres.parts import KEY, POSTINGS, Lists, joined, lists_of, pairs
from rlm_mem.store.postgres.values import Rows

#: Entries that are read ahead in one statement; stores of usual size need just one.
_READ_AHEAD = 400_000
#: Looking up one entry costs as much as reading this many entries of a whole list.
_LOOKUP_COST = 512
#: Lists with at least this many entries are cached between searches.
_MIN_CACHED_ENTRIES = 4_000
#: Range of documents whose entries are read as one value: a PostgreSQL value is smaller than a gigabyte.
_DOCS_PER_VALUE = 1 << 24
_MOST = 2**31 - 1


class TermEntries(NamedTuple):
    """A whole term list: documents, frequency of the term in each, and the length of each in terms."""

    slots: Slots
    frequency: Frequencies
    length: npt.NDArray[np.int32]


_Cached = TypeVar("_Cached")


class StateCache(Generic[_Cached]):
    """An LRU cache whose entries are valid until the next write to their namespace.

    A recall searches several times for much the same words. The least recently used entry across all namespaces is
    evicted first. Thread-safe.

    Args:
        most: maximum size in bytes.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._entries: OrderedDict[Hashable, tuple[Hashable, _Cached, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: Hashable, state: Hashable) -> _Cached | None:
        """Return the entry cached at this state of its namespace, or None."""
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            if found[0] != state:
                self._drop(key)
                return None
            self._entries.move_to_end(key)
            return found[1]

    def put(self, key: Hashable, state: Hashable, entry: _Cached, size: int) -> None:
        """Cache an entry of ``size`` bytes."""
        with self._lock:
            self._drop(key)
            self._entries[key] = state, entry, size
            self._bytes += size
            while self._bytes > self._most:
                self._drop(next(iter(self._entries)))

    def _drop(self, key: Hashable) -> None:
        found = self._entries.pop(key, None)
        if found is not None:
            self._bytes -= found[2]


class PostgresTermPostings:
    """The chunks of one term (`TermPostings`); slots are documents."""

    def __init__(self, lists: TermLists, term: int, df: int) -> None:
        self._lists = lists
        self.term = term
        self.df = df
        self.slots: Slots | None = None
        self.frequency: Frequencies = np.zeros(0, np.uint8)
        self.max_frequency = 255

    def set_entries(self, slots: Slots, frequency: Frequencies) -> None:
        """Store the whole list after it was read."""
        self.slots, self.frequency = slots, frequency
        self.max_frequency = int(frequency.max()) if len(frequency) else 0

    def whole(self) -> tuple[Slots, Frequencies]:
        """Return every document that contains the term, sorted, and its frequency there."""
        if self.slots is None:
            self._lists.read(self)
        assert self.slots is not None
        return self.slots, self.frequency

    def find(self, slots: Slots) -> tuple[Ints, Frequencies]:
        """Return which of the sorted documents contain the term, and its frequency there."""
        if self.slots is None:
            found = self._lists.look_up(self, slots)
            if found is not None:
                return found
        docs, frequency = self.whole()
        which, place = places(docs, slots)
        return which, frequency[place]


class TermLists:
    """Reads and caches the term lists of one search in one namespace.

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
        kept: StateCache[TermEntries] | None = None,
        owner: Hashable = None,
        state: Hashable = None,
    ) -> None:
        self._rows = rows
        self._ns = ns
        self._size = size
        self._kept = kept
        self._owner = owner
        self._state = state
        #: Length in terms of every document found in a list.
        self.length = np.zeros(size, np.int32)
        self._known: dict[int, PostgresTermPostings] = {}
        self._expected: list[PostgresTermPostings] = []
        self._looked_up: tuple[Slots, dict[int, tuple[Slots, Frequencies]]] | None = None

    def of(self, term: int, df: int) -> PostgresTermPostings:
        """Return the list of a term that `df` chunks contain."""
        if term not in self._known:
            self._known[term] = made = PostgresTermPostings(self, term, df)
            found = None
            if self._kept is not None and df >= _MIN_CACHED_ENTRIES:
                found = self._kept.get((self._owner, term), self._state)
            if found is not None:
                self.length[found.slots] = found.length
                made.set_entries(found.slots, found.frequency)
        return self._known[term]

    def expect(self, lists: Sequence[PostgresTermPostings]) -> None:
        """Announce which lists will be read, in which order: they are read ahead together."""
        self._expected = list(lists)
        self._looked_up = None

    def read(self, wanted: PostgresTermPostings) -> None:
        """Read a list, and the lists expected after it, up to `_READ_AHEAD` entries in all."""
        chosen, total = [wanted], wanted.df
        for other in self._missing(wanted):
            total += other.df
            if total > _READ_AHEAD:
                break
            chosen.append(other)
        terms = [each.term for each in chosen]
        lows = list(range(0, max(self._size, 1), _DOCS_PER_VALUE))
        ends = [*lows[1:], _MOST]
        stretches = [(term, low, end) for term in terms for low, end in zip(lows, ends, strict=True)]
        found: dict[int, list[bytes]] = {term: [] for term in terms}
        for term, entries in self._rows(POSTINGS.whole, (*map(list, zip(*stretches, strict=True)), self._ns)):
            found[term] += [] if entries is None else [entries]
        for each in chosen:
            slots, frequency = self._scoring_entries(*joined(found[each.term]))
            each.set_entries(slots, frequency)
            if self._kept is not None and len(slots) >= _MIN_CACHED_ENTRIES:
                entries = TermEntries(slots, frequency, self.length[slots])
                self._kept.put(
                    (self._owner, each.term), self._state, entries, sum(one.nbytes for one in entries)
                )

    def look_up(self, wanted: PostgresTermPostings, slots: Slots) -> tuple[Ints, Frequencies] | None:
        """Do `TermList.find` without reading the list; None if reading it costs no more."""
        if self._looked_up is None:
            others = [wanted, *self._missing(wanted)]
            if sum(other.df for other in others) < _LOOKUP_COST * len(others) * len(slots):
                return None
            terms = np.repeat(np.array([other.term for other in others]), len(slots))
            docs = np.tile(slots, len(others))
            values = (self._ns, terms.tolist(), docs.tolist(), self._ns)
            read = lists_of(self._rows(POSTINGS.holding, values))
            found = {other.term: self._part(read, other.term) for other in others}
            self._looked_up = slots, found
        looked_up, parts = self._looked_up
        if wanted.term not in parts or len(places(looked_up, slots)[0]) != len(slots):
            return None
        term_docs, frequency = parts[wanted.term]
        which, place = places(term_docs, slots)
        return which, frequency[place]

    def _missing(self, wanted: PostgresTermPostings) -> list[PostgresTermPostings]:
        """Return the lists expected after this one that have not been read."""
        at = next((n for n, other in enumerate(self._expected) if other is wanted), len(self._expected))
        return [other for other in self._expected[at + 1 :] if other.slots is None]

    def _part(self, read: Lists, term: int) -> tuple[Slots, Frequencies]:
        """Return one term's entries among those read."""
        start, end = np.searchsorted(read.pair, pairs(np.array([term, term + 1]), _TWO_ZEROS))
        return self._scoring_entries((read.pair[start:end] & KEY).astype(np.int32), read.figures[start:end])

    def _scoring_entries(self, slots: Slots, figures: Words) -> tuple[Slots, Frequencies]:
        """Record the lengths of entries; return the entries for scoring, without those newer than the search."""
        end = int(np.searchsorted(slots, self._size))
        slots, figures = slots[:end], figures[:end]
        self.length[slots] = figures[:, 0]
        return slots, (figures[:, 1] >> 8).astype(np.uint8)


_TWO_ZEROS = np.zeros(2, np.int64)
