"""Computes how added and removed chunks change the lists and figures of the search index, on arrays alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlm_mem.store.core.arrays import Array, Ints, Words
from rlm_mem.store.core.encoding import decode_many, document_terms
from rlm_mem.store.core.selection import changed_at, contained
from rlm_mem.store.postgres.parts import Lists, pairs

Indexed = tuple[int, int | None, bytes]
"""The indexed data of a chunk: document, conversation and encoded segments."""


@dataclass(frozen=True, slots=True)
class IndexDifference:
    """Differences in the lists and figures of the search index.

    Attributes:
        posting, figures: entries of terms' lists to set: `term << 32 | doc`, sorted; per entry the length of the
            chunk in terms, and `frequency << 8 | segments`, the number of its segments that contain the term.
        removed: entries of terms' lists to remove, sorted.
        word, word_frequency, word_chunks: entries of conversations' lists, sorted (`conversation << 32 | term`),
            and how many occurrences and chunks are added (negative: removed).
        term, df, segment_df, loose_df: per term, sorted, how many chunks, segments and chunks outside of any
            conversation are added (negative: removed).
        conversations: per conversation how many chunks, and what length in terms, are added (negative: removed).
        segments, length, loose: the same for the namespace: segments, length in terms, chunks without conversation.
    """

    posting: Ints
    figures: Words
    removed: Ints
    word: Ints
    word_frequency: Ints
    word_chunks: Ints
    term: Ints
    df: Ints
    segment_df: Ints
    loose_df: Ints
    conversations: dict[int, tuple[int, int]]
    segments: int
    length: int
    loose: int


def changes_of(removed_chunks: Sequence[Indexed], added_chunks: Sequence[Indexed]) -> IndexDifference:
    """Compute the changes made by removed and added chunks; a chunk may be in both, once in each."""
    chunks = [*removed_chunks, *added_chunks]
    decoded = decode_many([blob for _, _, blob in chunks])
    doc = np.fromiter((chunk[0] for chunk in chunks), np.int64, len(chunks))
    conversation = np.fromiter((-1 if c[1] is None else c[1] for c in chunks), np.int64, len(chunks))
    sign = np.ones(len(chunks), np.int64)
    sign[: len(removed_chunks)] = -1
    length = np.diff(np.concatenate([[0], np.cumsum(decoded.length)])[decoded.chunk_start])
    segments = np.diff(decoded.chunk_start)
    terms = document_terms(decoded)
    at = terms.chunk
    by = sign[at]

    posting = pairs(terms.term, doc[at])
    order = np.argsort(posting)
    order_in, order_out = order[by[order] > 0], order[by[order] < 0]
    figures = np.empty((len(order_in), 2), np.uint32)
    figures[:, 0] = length[at[order_in]]
    figures[:, 1] = (terms.frequency[order_in].astype(np.uint32) << 8) | terms.segments[order_in]
    removed = posting[order_out]
    removed = removed[~contained(removed, posting[order_in])]

    in_conversation = np.flatnonzero(conversation[at] >= 0)
    word, (frequency, chunk_count) = _totals(
        pairs(conversation[at[in_conversation]], terms.term[in_conversation]),
        by[in_conversation] * terms.frequency[in_conversation],
        by[in_conversation],
    )
    alone = (conversation[at] < 0).astype(np.int64)
    term, (df, segment_df, loose_df) = _totals(terms.term, by, by * terms.segments, by * alone)
    return IndexDifference(
        posting=posting[order_in],
        figures=figures,
        removed=removed,
        word=word,
        word_frequency=frequency,
        word_chunks=chunk_count,
        term=term,
        df=df,
        segment_df=segment_df,
        loose_df=loose_df,
        conversations=_per_conversation(conversation, sign, sign * length),
        segments=int((sign * segments).sum()),
        length=int((sign * length).sum()),
        loose=int(sign[conversation < 0].sum()),
    )


def replaced(lists: Lists, changes: IndexDifference) -> tuple[Ints, Words]:
    """The entries of terms' lists after the changes."""
    unchanged = ~contained(lists.pair, changes.removed)
    unchanged &= ~contained(lists.pair, changes.posting)
    left = lists.pair[unchanged], lists.figures[unchanged]
    return sorted_together([left, (changes.posting, changes.figures)])


def summed(lists: Lists, changes: IndexDifference) -> tuple[Ints, Words, Ints]:
    """Return the entries of conversations' lists after the changes, and the gain or loss of each word of `changes`.

    The third value is 1 if the word's conversation gained it, -1 if it lost it, else 0.
    """
    place = np.searchsorted(lists.pair, changes.word)
    exists = np.zeros(len(changes.word), np.bool_)
    if len(lists.pair):
        exists = lists.pair[np.minimum(place, len(lists.pair) - 1)] == changes.word
    former = np.zeros((len(changes.word), 2), np.int64)
    former[exists] = lists.figures[place[exists]]
    now = former + np.stack([changes.word_frequency, changes.word_chunks], axis=1)
    unchanged = ~contained(lists.pair, changes.word)
    present = now[:, 1] > 0
    left = lists.pair[unchanged], lists.figures[unchanged]
    pair, figures = sorted_together([left, (changes.word[present], now[present].astype(np.uint32))])
    return pair, figures, present.astype(np.int64) - (former[:, 1] > 0)


def added(among: Ints, keys: Ints, values: Ints) -> Ints:
    """Sum `values` by key, for each of the sorted keys `among`, which include every key."""
    total = np.zeros(len(among), np.int64)
    np.add.at(total, np.searchsorted(among, keys), values)
    return total


def sorted_together(lists: Sequence[tuple[Ints, Words]]) -> tuple[Ints, Words]:
    """Merge several lists of entries with their figures."""
    pair = np.concatenate([pairs for pairs, _ in lists])
    order = np.argsort(pair, kind="stable")
    return pair[order], np.concatenate([figures for _, figures in lists])[order]


def _totals(keys: Ints, *values: Array) -> tuple[Ints, list[Ints]]:
    """Return each key once, sorted, and the sums of the values by key; keys whose sums are all 0 are left out."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    if not len(keys):
        return keys, [np.zeros(0, np.int64) for _ in values]
    start = changed_at(keys)
    sums = [np.add.reduceat(value[order].astype(np.int64), start) for value in values]
    keep = np.logical_or.reduce([total != 0 for total in sums])
    return keys[start][keep], [total[keep] for total in sums]


def _per_conversation(conversation: Ints, chunks: Ints, length: Ints) -> dict[int, tuple[int, int]]:
    in_conversation = conversation >= 0
    number, (count, lengths) = _totals(
        conversation[in_conversation], chunks[in_conversation], length[in_conversation]
    )
    return {n: (c, w) for n, c, w in zip(number.tolist(), count.tolist(), lengths.tolist(), strict=True)}
