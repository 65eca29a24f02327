"""Builds a snapshot from the previous one without its changed chunks plus the new chunks, as sorted arrays.

Nothing is tokenised again: the postings come from the segment blobs. Postings are sorted in slabs of a few million,
so memory stays bounded by the size of the delta and one slab, and the large arrays are written while they are
built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rlm_mem.store.core.arrays import Array, Bools, Ints, Slots, Words
from rlm_mem.store.core.lookup import NO_CONVERSATION
from rlm_mem.store.core.selection import changed_at, contained, distinct
from rlm_mem.store.local.snapshot import ArrayWriter, ChunkPostings, Columns, Snapshot, postings_of

if TYPE_CHECKING:
    import numpy.typing as npt

Progress = Callable[[int], None]

_SLAB = 8_000_000  # postings sorted at a time
_TERM_SPAN = 1 << 20  # term numbers that one slab may span (bits of the sort key)
_MAX_CHUNKS = 1 << 27


class _Run(Struct, frozen=True):
    """Postings of some new chunks, sorted by term; `chunk` numbers the new chunks from 0."""

    term: Words
    chunk: Slots
    payload: npt.NDArray[np.uint16]  # frequency << 8 | segments


class _Numbering(Struct, frozen=True):
    """Maps old ordinals and new chunks to ordinals of the snapshot being built (-1: dropped)."""

    old: Ints
    new: Ints
    group: Ints  # conversation of each ordinal, numbered in order


def make_snapshot(
    base: Snapshot,
    masked: Bools | None,
    parts: Iterable[ChunkPostings],
    seq: int,
    folder: Path | None = None,
    progress: Progress | None = None,
) -> Snapshot:
    """Build the snapshot of `base` without `masked`, plus `parts`.

    Args:
        base: the previous snapshot.
        masked: mask over its ordinals: chunks that were changed, archived or removed; None for none.
        parts: the chunks written since, in any order; each chunk at most once, none of them left in `base`.
        seq: the number of the last change that the snapshot covers.
        folder: where to write the posting arrays while building them; None keeps them in memory.
        progress: called with the number of chunks read from `parts` so far.
    """
    kept = np.arange(base.size) if masked is None else np.flatnonzero(~masked)
    columns_list: list[Columns] = []
    runs: list[_Run] = []
    authors = [base.author_terms]
    read = 0
    for part in parts:
        runs.append(_run_of(part, read))
        columns_list.append(part.columns)
        authors.append(part.author_terms)
        read += part.size
        if progress is not None:
            progress(read)
    new = Columns.joined(columns_list) if columns_list else postings_of([]).columns
    if len(kept) + read >= _MAX_CHUNKS:
        raise ValueError(f"a namespace holds at most {_MAX_CHUNKS} chunks in one index")  # 134 million
    columns, types, codes, numbering = _ordered(base, kept, new)
    term, counts = _term_counts(base, masked, runs)
    postings = _Postings(term, counts, folder)
    for first, last in _slabs(term, counts):
        postings.add(first, last, _slab_keys(base, runs, numbering, int(term[first]), int(term[last - 1])),
                     numbering.group)  # fmt: skip
    return postings.finish(columns, types, codes, numbering, distinct(np.concatenate(authors)), seq)


def _run_of(part: ChunkPostings, first_chunk: int) -> _Run:
    # Sorting values is several times faster than sorting positions: term, chunk and payload share one number.
    # Batches read from the tables have fewer than 2**15 chunks; a delta may have more.
    term, local = part.term.astype(np.int64), part.slot.astype(np.int64)
    payload = (part.frequency.astype(np.int64) << 8) | part.segments
    if part.size > 1 << 15:
        order = np.lexsort((local, term))
        term, local, payload = term[order], local[order], payload[order]
    else:
        keys = (term << 31) | (local << 16) | payload
        keys.sort()
        term, local, payload = keys >> 31, (keys >> 16) & 0x7FFF, keys & 0xFFFF
    return _Run(term.astype(np.uint32), (local + first_chunk).astype(np.int32), payload.astype(np.uint16))


def _ordered(
    base: Snapshot, kept: Ints, new: Columns
) -> tuple[Columns, tuple[str, ...], npt.NDArray[np.uint16], _Numbering]:
    """Return all chunks in the order (conversation, at, doc), their types, and the new ordinal of each."""
    types = list(base.types)
    code_of = {name: code for code, name in enumerate(types)}
    for name in new.type_name:
        if name not in code_of:
            code_of[name] = len(types)
            types.append(name)
    new_codes = np.fromiter((code_of[name] for name in new.type_name), np.uint16, len(new.type_name))
    unnamed = np.full(len(kept), None, np.object_)
    old = Columns(
        base.doc[kept], base.conversation[kept], base.at[kept], base.length[kept], base.segment_count[kept],
        unnamed, base.superseded[kept], base.valid_from[kept], base.valid_to[kept],
    )  # fmt: skip
    joined = Columns.joined([old, new])
    codes = np.concatenate([base.type_code[kept], new_codes])
    order = np.lexsort((joined.doc, joined.at, joined.conversation))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    old_place = np.full(base.size, -1, np.int64)
    old_place[kept] = place[: len(kept)]
    columns = joined.taken(order)
    changes = np.ones(len(order), np.int64)
    if len(order):
        same = columns.conversation[1:] == columns.conversation[:-1]
        changes[1:] = ~same | (columns.conversation[1:] == NO_CONVERSATION)
    return (
        columns,
        tuple(types),
        codes[order].astype(np.uint16),
        _Numbering(old_place, place[len(kept) :], np.cumsum(changes)),
    )


def _term_counts(base: Snapshot, masked: Bools | None, runs: list[_Run]) -> tuple[Ints, Ints]:
    """Return every remaining term and the length of its list."""
    if masked is None or not masked.any():
        base_counts = np.diff(base.offsets)
    else:
        base_counts = np.empty(len(base.term), np.int64)
        for first, last in _slabs(base.term, np.diff(base.offsets)):
            start, end = int(base.offsets[first]), int(base.offsets[last])
            left = np.concatenate([[0], np.cumsum(~masked[base.ordinal[start:end]])])
            base_counts[first:last] = np.diff(left[base.offsets[first : last + 1] - start])
    terms, counts = [base.term.astype(np.int64)], [base_counts]
    for run in runs:
        starts = changed_at(run.term)
        terms.append(run.term[starts].astype(np.int64))
        counts.append(np.diff(np.append(starts, len(run.term))))
    all_terms, all_counts = np.concatenate(terms), np.concatenate(counts)
    order = np.argsort(all_terms, kind="stable")
    all_terms, all_counts = all_terms[order], all_counts[order]
    starts = changed_at(all_terms)
    sums = np.add.reduceat(all_counts, starts)
    return all_terms[starts][sums > 0], sums[sums > 0]


def _slabs(term: Array, counts: Ints) -> Iterator[tuple[int, int]]:
    """Yield ranges of terms whose lists together fit one slab; a single longer list is a slab of its own."""
    ends = np.cumsum(counts)
    first = 0
    while first < len(term):
        done = int(ends[first - 1]) if first else 0
        last = int(np.searchsorted(ends, done + _SLAB, side="right"))
        last = min(last, int(np.searchsorted(term, int(term[first]) + _TERM_SPAN, side="left")))
        last = max(last, first + 1)
        yield first, last
        first = last


def _slab_keys(base: Snapshot, runs: list[_Run], numbering: _Numbering, low: int, high: int) -> Ints:
    """Return the sorted postings of the terms `low` to `high`: (term - low) << 43 | ordinal << 16 | payload."""
    parts: list[Ints] = []
    first = int(np.searchsorted(base.term, low, side="left"))
    last = int(np.searchsorted(base.term, high, side="right"))
    if last > first:
        lo, hi = int(base.offsets[first]), int(base.offsets[last])
        ordinal = numbering.old[base.ordinal[lo:hi]]
        term = np.repeat(
            base.term[first:last].astype(np.int64) - low, np.diff(base.offsets[first : last + 1])
        )
        payload = (base.frequency[lo:hi].astype(np.int64) << 8) | base.segments[lo:hi]
        keys = (term << 43) | (ordinal << 16) | payload
        parts.append(keys[ordinal >= 0])
    for run in runs:
        lo = int(np.searchsorted(run.term, low, side="left"))
        hi = int(np.searchsorted(run.term, high, side="right"))
        if hi > lo:
            term = run.term[lo:hi].astype(np.int64) - low
            parts.append((term << 43) | (numbering.new[run.chunk[lo:hi]] << 16) | run.payload[lo:hi])
    keys = np.concatenate(parts)
    keys.sort()
    return keys


class _Postings:
    """The posting arrays while they are being filled, slab by slab."""

    def __init__(self, term: Ints, counts: Ints, folder: Path | None) -> None:
        total = int(counts.sum())
        self._term = term
        self._offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self._ordinal = _new_array(folder, "ordinal", np.int32, total)
        self._frequency = _new_array(folder, "frequency", np.uint8, total)
        self._segments = _new_array(folder, "segments", np.uint8, total)
        self._segment_df = np.zeros(len(term), np.int64)
        self._conversation_df = np.zeros(len(term), np.int32)
        self._max_frequency = np.zeros(len(term), np.uint8)

    def add(self, first: int, last: int, keys: Ints, group: Ints) -> None:
        """Write the next lists, those of the terms at `first` to `last` (excluded), from their sorted keys."""
        lo = int(self._offsets[first])
        ordinal = (keys >> 16) & (_MAX_CHUNKS - 1)
        frequency = ((keys >> 8) & 0xFF).astype(np.uint8)
        segments = (keys & 0xFF).astype(np.uint8)
        self._ordinal.add(ordinal)
        self._frequency.add(frequency)
        self._segments.add(segments)
        starts = self._offsets[first:last] - lo
        self._segment_df[first:last] = np.add.reduceat(segments, starts, dtype=np.int64)
        self._max_frequency[first:last] = np.maximum.reduceat(frequency, starts)
        owner = group[ordinal]
        entered = np.ones(len(owner), np.int32)
        entered[1:] = owner[1:] != owner[:-1]
        entered[starts] = 1
        self._conversation_df[first:last] = np.add.reduceat(entered, starts)

    def finish(
        self,
        columns: Columns,
        types: tuple[str, ...],
        codes: npt.NDArray[np.uint16],
        numbering: _Numbering,
        authors: Words,
        seq: int,
    ) -> Snapshot:
        length_before = np.concatenate([[0], np.cumsum(columns.length, dtype=np.int64)]).astype(np.int64)
        named = {name: getattr(columns, name) for name in columns.__struct_fields__ if name != "type_name"}
        return Snapshot(
            **named,
            type_code=codes,
            doc_order=np.argsort(columns.doc).astype(np.int32),
            time_order=np.lexsort((columns.doc, columns.at)).astype(np.int32),
            length_before=length_before,
            term=self._term.astype(np.uint32),
            offsets=self._offsets,
            segment_df=self._segment_df,
            conversation_df=self._conversation_df,
            max_frequency=self._max_frequency,
            author_terms=authors[contained(authors, self._term.astype(np.uint32))],
            ordinal=self._ordinal.finish(),
            frequency=self._frequency.finish(),
            segments=self._segments.finish(),
            types=types,
            seq=seq,
            conversations=int(numbering.group[-1]) if len(numbering.group) else 0,
            total_length=int(length_before[-1]),
            total_segments=int(columns.segment_count.sum(dtype=np.int64)),
        )


class _InMemory:
    """Collects an array in memory if there is no folder to write it to."""

    def __init__(self, dtype: type[np.generic]) -> None:
        self._parts: list[Array] = [np.zeros(0, dtype)]
        self._dtype = dtype

    def add(self, values: Array) -> None:
        self._parts.append(values.astype(self._dtype, copy=False))

    def finish(self) -> Array:
        """Return the whole array."""
        return np.concatenate(self._parts)


def _new_array(folder: Path | None, name: str, dtype: type[np.generic], size: int) -> ArrayWriter | _InMemory:
    return _InMemory(dtype) if folder is None else ArrayWriter(folder / f"{name}.npy", dtype, size)
