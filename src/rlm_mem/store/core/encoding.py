"""Encodes the analysed segments of a chunk as one blob, and decodes those of many chunks at once.

A blob is a sequence of little-endian unsigned 32-bit words, so that many are decoded with array arithmetic and
without a Python loop:

    version · number of segments · number of term words ·
    per segment: start, end, author, flags, length, number of its term words ·
    the term words of all segments: each term's number, repeated as often as the term occurs

Authors are entries of the term dictionary, named so that no analysed text can produce the entry ("author:" + name).
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from rlm_mem.errors import CorruptStore

if TYPE_CHECKING:
    from rlm_mem.store.core.arrays import Frequencies, Ints, Words
    from rlm_mem.text.analysis import AnalysedSegment

#: Prefix of an author's name in the term dictionary; a colon never occurs in an analysed term.
AUTHOR_PREFIX = "author:"

#: A term counts at most this often within one segment and within one chunk; BM25 is saturated long before.
MAX_FREQUENCY = 255

_VERSION = 1
HEAD, PER_SEGMENT = 3, 6
"""Words before the first segment, and of each segment."""
AUTHOR, LENGTH = 2, 4
"""Places of these words among those of a segment."""
_WORD_LIMIT = 0xFFFFFFFF


class DecodedSegments(Struct, frozen=True):
    """Segments of one or several chunks as arrays.

    Attributes:
        chunk_start: `[M + 1]`; the segments of chunk m are `chunk_start[m]` up to `chunk_start[m + 1]`.
        start, end: character offsets in the chunk's content.
        author: number of the author in the term dictionary, -1 for none.
        flags: bits of rlm_mem.text.analysis.
        length: number of terms.
        term_start: `[S + 1]`; the terms of segment s are `term_start[s]` up to `term_start[s + 1]`.
        terms: term numbers, repeated as often as they occur, equal ones adjacent.
    """

    chunk_start: Ints
    start: Ints
    end: Ints
    author: Ints
    flags: Ints
    length: Ints
    term_start: Ints
    terms: Words


class DocumentTerms(Struct, frozen=True):
    """Terms and authors of whole chunks, ordered by chunk and then by term number.

    Attributes:
        chunk: position of the chunk among those decoded.
        term: number in the term dictionary.
        frequency: occurrences in the chunk, at most 255; for an author, the number of their segments.
        segments: number of the chunk's segments that contain the term, at most 255.
    """

    chunk: Ints
    term: Ints
    frequency: Frequencies
    segments: Frequencies


def encode_segments(segs: Sequence[AnalysedSegment], term_id: Callable[[str], int]) -> bytes:
    """Encode a chunk's segments; `term_id` maps a term or author entry to its dictionary number (0 … 2**32 − 1).

    A term that occurs more than 255 times in one segment is stored as occurring 255 times.
    """
    head = array("I", (_VERSION, len(segs), 0))
    words = array("I")
    for seg in segs:
        before = len(words)
        numbers = map(term_id, seg.terms)
        if max(seg.terms.values(), default=1) == 1:
            words.extend(numbers)
        else:
            for number, count in zip(numbers, seg.terms.values(), strict=True):
                words.extend((number,) * min(count, MAX_FREQUENCY))
        # Author numbers are stored incremented by one, so that 0 can mean no author.
        author = 0 if seg.author is None else term_id(AUTHOR_PREFIX + seg.author) + 1
        head.extend((seg.start, seg.end, author, seg.flags & _WORD_LIMIT, seg.length, len(words) - before))
    head[2] = len(words)
    head.extend(words)
    if sys.byteorder == "big":
        head.byteswap()
    return head.tobytes()


NO_SEGMENTS = encode_segments((), lambda _: 0)
"""The encoded segments of a chunk that has none."""


def decode_many(blobs: Sequence[bytes]) -> DecodedSegments:
    """Decode the segments of many chunks at once, in the given order; raises `CorruptStore` if a blob is damaged."""
    import numpy as np

    sizes = np.array(list(map(len, blobs)), np.int64)
    if bool((sizes & 3).any()) or bool((sizes < 4 * HEAD).any()):
        raise damaged_entry()
    words = np.frombuffer(b"".join(blobs), dtype="<u4")
    first = _starts(sizes >> 2)[:-1]
    counts = words[first + 1].astype(np.int64)
    term_counts = words[first + 2].astype(np.int64)
    wrong = (words[first] != _VERSION) | (HEAD + PER_SEGMENT * counts + term_counts != sizes >> 2)
    if bool(wrong.any()):
        raise damaged_entry()
    chunk_start = _starts(counts)
    rows = words[spans(first + HEAD, PER_SEGMENT * counts)].reshape(-1, PER_SEGMENT).astype(np.int64)
    terms = words[spans(first + HEAD + PER_SEGMENT * counts, term_counts)]
    term_start = _starts(rows[:, 5])
    if int(term_start[-1]) != len(terms) or not np.array_equal(term_start[chunk_start], _starts(term_counts)):
        raise damaged_entry()
    return DecodedSegments(
        chunk_start=chunk_start,
        start=rows[:, 0],
        end=rows[:, 1],
        author=rows[:, AUTHOR] - 1,
        flags=rows[:, 3],
        length=rows[:, LENGTH],
        term_start=term_start,
        terms=terms,
    )


def document_terms(decoded: DecodedSegments) -> DocumentTerms:
    """Sum up segments to figures of whole chunks, from which postings are built."""
    import numpy as np

    segment_count = len(decoded.start)
    chunk_of_segment = np.repeat(
        np.arange(len(decoded.chunk_start) - 1, dtype=np.int64), np.diff(decoded.chunk_start)
    )
    term_counts = np.diff(decoded.term_start)
    # One sortable number per occurrence: chunk, term, and whether it is the first in its segment. Equal terms of a
    # segment are adjacent, so a change of term or of segment marks a first occurrence.
    is_first = np.ones(len(decoded.terms), bool)
    if len(is_first) > 1:
        np.not_equal(decoded.terms[1:], decoded.terms[:-1], out=is_first[1:])
    is_first[decoded.term_start[:-1][term_counts > 0]] = True
    chunk_of_term = np.repeat(chunk_of_segment, term_counts)
    keys = (((chunk_of_term << 32) | decoded.terms.astype(np.int64)) << 1) | is_first
    with_author = np.flatnonzero(decoded.author >= 0)
    if segment_count and len(with_author):
        author_keys = (((chunk_of_segment[with_author] << 32) | decoded.author[with_author]) << 1) | 1
        keys = np.concatenate([keys, author_keys])
    keys.sort(kind="stable")  # chunks are already in order, which makes a stable sort three times as fast
    pair = keys >> 1
    first = np.ones(len(pair), bool)
    if len(pair) > 1:
        np.not_equal(pair[1:], pair[:-1], out=first[1:])
    at = np.flatnonzero(first)
    frequency = np.diff(np.append(at, len(pair)))
    segments = np.add.reduceat(keys & 1, at) if len(at) else np.zeros(0, np.int64)
    pair = pair[at]
    return DocumentTerms(
        chunk=pair >> 32,
        term=pair & _WORD_LIMIT,
        frequency=np.minimum(frequency, MAX_FREQUENCY).astype(np.uint8),
        segments=np.minimum(segments, MAX_FREQUENCY).astype(np.uint8),
    )


def spans(starts: Ints, lengths: Ints) -> Ints:
    """Concatenate the numbers of all ranges `starts[i] … starts[i] + lengths[i] - 1`."""
    import numpy as np

    total = int(lengths.sum())
    shift = starts - (np.cumsum(lengths) - lengths)
    return np.repeat(shift, lengths) + np.arange(total, dtype=np.int64)


def _starts(counts: Ints) -> Ints:
    import numpy as np

    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def damaged_entry() -> CorruptStore:
    """Return the error for an entry of the search index that cannot be decoded."""
    return CorruptStore(
        "the search index has a damaged entry",
        hint="run `rlm-mem store rebuild` to rebuild it from the chunks",
    )
