"""Sorted lists in rows of bounded size: the chunks of a term, and the words of a conversation.

A list belongs to an *owner* (a term, a conversation) and consists of entries sorted by their *key* (a chunk, a
term). It is split into parts of at most `PART` entries; a part is one row `(ns, owner, first, entries)` with the
keys from `first` up to the `first` of the next part. So a write rewrites a few hundred bytes per list, and a whole
list is read from few rows that are adjacent in the index: one row per entry takes far more space and
time to read. An entry is three little-endian 32-bit words: its
key and two figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rlm_mem.store.core.arrays import Array, Ints, Slots, Words
from rlm_mem.store.core.encoding import damaged_entry
from rlm_mem.store.core.selection import changed_at

#: Maximum number of entries in a part.
PART = 64
_WORDS = 3
KEY = 0xFFFFFFFF
"""The bits of the key in a number of ``pairs``."""


@dataclass(frozen=True, slots=True)
class PartTable:
    """A table of list parts.

    Attributes:
        owner: the column of the list that a part belongs to.
        appended: whether keys mostly arrive in ascending order, so that a full part should stay full when it is
            split.
    """

    name: str
    owner: str
    appended: bool

    @property
    def holding(self) -> str:
        """SQL for the parts whose range includes some keys; values: ns, owners, keys, ns (arrays of equal length).

        The inner LIMIT makes the planner look up each part by the primary key.
        """
        return (
            f"SELECT w.owner, w.first, p.entries FROM (SELECT DISTINCT k.owner, (SELECT q.first FROM {self.name} q"
            f" WHERE q.ns = %s AND q.{self.owner} = k.owner AND q.first <= k.key ORDER BY q.first DESC LIMIT 1)"
            " AS first FROM unnest(%s::int4[], %s::int4[]) AS k(owner, key)) w CROSS JOIN LATERAL"
            f" (SELECT entries FROM {self.name} p WHERE p.ns = %s AND p.{self.owner} = w.owner AND p.first = w.first"
            " LIMIT 1) p"
        )

    @property
    def whole(self) -> str:
        """SQL for the entries of ranges of lists, joined in any order; values: owners, lowest keys, ends, ns.

        One value per range: thousands of rows would cost several times as much to send and to receive.
        """
        return (
            "SELECT k.owner, w.entries FROM unnest(%s::int4[], %s::int4[], %s::int4[]) AS k(owner, low, high)"
            f" CROSS JOIN LATERAL (SELECT string_agg(p.entries, ''::bytea) AS entries FROM {self.name} p"
            f" WHERE p.ns = %s AND p.{self.owner} = k.owner AND p.first >= k.low AND p.first < k.high) w"
        )

    @property
    def put(self) -> str:
        """SQL that writes parts; values: ns, owners, firsts, entries."""
        return (
            f"INSERT INTO {self.name}(ns, {self.owner}, first, entries)"
            " SELECT %s::bigint, * FROM unnest(%s::int4[], %s::int4[], %s::bytea[])"
            f" ON CONFLICT (ns, {self.owner}, first) DO UPDATE SET entries = excluded.entries"
        )

    @property
    def drop(self) -> str:
        """SQL that removes parts; values: owners, firsts, ns."""
        return (
            f"DELETE FROM {self.name} p USING unnest(%s::int4[], %s::int4[]) AS g(owner, first)"
            f" WHERE p.ns = %s AND p.{self.owner} = g.owner AND p.first = g.first"
        )


POSTINGS = PartTable("rlm_mem.postings", "term", appended=True)
CONVERSATION_TERMS = PartTable("rlm_mem.conversation_terms", "conversation", appended=False)


@dataclass(frozen=True, slots=True)
class Lists:
    """Parts of lists, sorted by owner and first key, and their concatenated entries.

    Attributes:
        owner, first, count: per part its owner, its first key and its number of entries.
        pair: per entry `owner << 32 | key`, sorted.
        figures: `[n, 2]`, the two figures of each entry.
    """

    owner: Ints
    first: Ints
    count: Ints
    pair: Ints
    figures: Words

    @property
    def code(self) -> Ints:
        """Per part `owner << 32 | first`."""
        return pairs(self.owner, self.first)

    def entries(self) -> str:
        """Return the entries of each part in their stored form, as the text of a `bytea[]`."""
        words = np.empty((len(self.pair), _WORDS), "<u4")
        words[:, 0], words[:, 1:] = self.pair & KEY, self.figures
        digits, ends = words.tobytes().hex(), (np.cumsum(self.count) * (2 * words.itemsize * _WORDS)).tolist()
        parts = (f'"\\\\x{digits[first:end]}"' for first, end in pairwise((0, *ends)))
        return f"{{{','.join(parts)}}}"


def pairs(owner: Array, key: Array) -> Ints:
    """Combine each owner and key to one sortable number."""
    return (owner.astype(np.int64) << 32) | key.astype(np.int64)


def lists_of(rows: Sequence[tuple[int, int, bytes]]) -> Lists:
    """Decode rows of parts, in any order; raises `CorruptStore` if one is damaged."""
    owner = np.fromiter((row[0] for row in rows), np.int64, len(rows))
    first = np.fromiter((row[1] for row in rows), np.int64, len(rows))
    order = np.argsort(pairs(owner, first), kind="stable")
    blobs = [rows[number][2] for number in order.tolist()]
    sizes = np.fromiter(map(len, blobs), np.int64, len(blobs))
    if bool((sizes % (4 * _WORDS)).any()):
        raise damaged_entry()
    words = np.frombuffer(b"".join(blobs), "<u4").reshape(-1, _WORDS)
    owner, first, count = owner[order], first[order], sizes // (4 * _WORDS)
    pair = pairs(np.repeat(owner, count), words[:, 0])
    if len(pair) > 1 and not bool((pair[1:] > pair[:-1]).all()):
        raise damaged_entry()
    return Lists(owner, first, count, pair, words[:, 1:])


def joined(pieces: Sequence[bytes]) -> tuple[Slots, Words]:
    """Decode one list's entries, in any order, to sorted keys and figures; raises `CorruptStore` on damage."""
    blob = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    if len(blob) % (4 * _WORDS):
        raise damaged_entry()
    words = np.frombuffer(blob, "<u4").reshape(-1, _WORDS)
    keys = words[:, 0].astype(np.int32)
    if not bool((keys[1:] > keys[:-1]).all()):
        order = np.argsort(keys, kind="stable")
        keys, words = keys[order], words[order]
        if bool((keys[1:] == keys[:-1]).any()):
            raise damaged_entry()
    return keys, words[:, 1:]


def regrouped(table: PartTable, former: Lists, pair: Ints, figures: Words) -> tuple[Lists, Ints, Ints]:
    """Split changed lists into new parts: the parts to write, and owners and firsts of those to remove.

    Args:
        table: its `appended` decides where full parts are split.
        former: the parts whose range includes a changed key.
        pair, figures: all entries of these parts after the change, sorted.
    """
    codes = former.code
    place = np.searchsorted(codes, pair, side="right") - 1
    inside = (
        (place >= 0) & (former.owner[place] == pair >> 32) if len(codes) else np.zeros(len(pair), np.bool_)
    )
    # The lowest part of a list begins with 0, so that every key has a part.
    code = (pair >> 32) << 32
    code[inside] = codes[place[inside]]
    start = changed_at(code)
    size = np.diff(np.append(start, len(pair)))
    rank = np.arange(len(pair)) - np.repeat(start, size)
    if table.appended:
        piece = rank // PART
    else:
        pieces = -(-size // PART)
        piece = rank * np.repeat(pieces, size) // np.repeat(size, size)
    cut = changed_at(pairs(np.repeat(np.arange(len(start)), size), piece))
    first = np.where(piece[cut] == 0, code[cut], pair[cut]) & KEY
    count = np.diff(np.append(cut, len(pair)))
    written = Lists(pair[cut] >> 32, first, count, pair, figures)
    kept = np.zeros(len(codes), np.bool_)
    if len(codes) and len(start):
        position = np.minimum(np.searchsorted(code[start], codes), len(start) - 1)
        kept = code[start][position] == codes
    return written, former.owner[~kept], former.first[~kept]
