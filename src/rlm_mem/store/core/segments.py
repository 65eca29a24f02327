"""The compact blob in which the index keeps the analysed segments of one chunk.

A blob is a row of little-endian unsigned 32-bit words, so that the blobs of many chunks can be decoded at once with
array arithmetic and without a Python loop:

    version · number of segments · number of term words ·
    per segment: start, end, author, flags, length, number of its term words ·
    the term words of all segments: each term's number, repeated as often as the term occurs

Authors are entries of the term dictionary under a name that no analysed text can yield ("author:" + name).
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlm_mem.errors import CorruptStore

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rlm_mem.text.analysis import AnalysedSegment

__all__ = [
    "AUTHOR_PREFIX",
    "DecodedSegments",
    "DocumentTerms",
    "decode_many",
    "decode_segments",
    "document_terms",
    "encode_content",
    "encode_segments",
]

#: What turns an author's name into an entry of the term dictionary; a colon never occurs in an analysed term.
AUTHOR_PREFIX = "author:"

#: A term counts at most this often within one segment and within one chunk; BM25 is saturated long before.
MAX_FREQUENCY = 255

_VERSION = 1
_HEAD = 3
_PER_SEGMENT = 6
_WORD_LIMIT = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class DecodedSegments:
    """Segments of one or several chunks as arrays.

    Attributes:
        chunk_start: `[M + 1]`; the segments of chunk m are `chunk_start[m]` up to `chunk_start[m + 1]`.
        start, end: character offsets in the chunk's content.
        author: number of the author in the term dictionary, -1 for none.
        flags: bits of rlm_mem.text.analysis.
        length: number of terms.
        term_start: `[S + 1]`; the terms of segment s are `term_start[s]` up to `term_start[s + 1]`.
        terms: term numbers, repeated as often as they occur, equal ones side by side.
    """

    chunk_start: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    author: npt.NDArray[np.int64]
    flags: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
    term_start: npt.NDArray[np.int64]
    terms: npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class DocumentTerms:
    """Terms and authors of whole chunks, ordered by chunk and then by term number.

    Attributes:
        chunk: position of the chunk among those decoded.
        term: number in the term dictionary.
        frequency: occurrences in the chunk, at most 255; for an author, the number of his or her segments.
        segments: segments of the chunk that hold the term, at most 255.
    """

    chunk: npt.NDArray[np.int64]
    term: npt.NDArray[np.int64]
    frequency: npt.NDArray[np.uint8]
    segments: npt.NDArray[np.uint8]


def encode_segments(segs: Sequence[AnalysedSegment], term_id: Callable[[str], int]) -> bytes:
    """Encode a chunk's segments; `term_id` gives the dictionary number (0 … 2**32 − 1) of a term or author entry.

    A term that occurs more than 255 times in one segment is stored as occurring 255 times.
    """
    head = array("I", (_VERSION, len(segs), 0))
    words = array("I")
    for seg in segs:
        before = len(words)
        for term, count in seg.terms.items():
            number = term_id(term)
            if count == 1:
                words.append(number)
            else:
                words.extend((number,) * min(count, MAX_FREQUENCY))
        # Author numbers are stored one higher, so that 0 can mean an unknown author.
        author = 0 if seg.author is None else term_id(AUTHOR_PREFIX + seg.author) + 1
        head.extend((seg.start, seg.end, author, seg.flags & _WORD_LIMIT, seg.length, len(words) - before))
    head[2] = len(words)
    head.extend(words)
    if sys.byteorder == "big":
        head.byteswap()
    return head.tobytes()


def encode_content(
    language: str, content: str, skip_before: int, around: str, term_id: Callable[[str], int]
) -> bytes:
    """The encoded segments of a chunk's content (``Analyser.analyse_segments`` of a language, then encoded)."""
    from rlm_mem.text.analysis import get_analyser

    analysed = get_analyser(language).analyse_segments(content, skip_before=skip_before, around=around)
    return encode_segments(analysed, term_id)


def decode_segments(blob: bytes) -> DecodedSegments:
    """Decode one chunk's segments (`CorruptStore` if `blob` is not one that `encode_segments` made)."""
    return decode_many([blob])


def decode_many(blobs: Sequence[bytes]) -> DecodedSegments:
    """Decode the segments of many chunks at once, in the order given (`CorruptStore` if a blob is damaged)."""
    import numpy as np

    sizes = np.array(list(map(len, blobs)), np.int64)
    if bool((sizes & 3).any()) or bool((sizes < 4 * _HEAD).any()):
        raise _damaged()
    words = np.frombuffer(b"".join(blobs), dtype="<u4")
    first = np.zeros(len(blobs), np.int64)
    np.cumsum(sizes[:-1] >> 2, out=first[1:])
    if not len(blobs):
        counts = term_counts = first
    else:
        counts = words[first + 1].astype(np.int64)
        term_counts = words[first + 2].astype(np.int64)
        wrong = (words[first] != _VERSION) | (_HEAD + _PER_SEGMENT * counts + term_counts != sizes >> 2)
        if bool(wrong.any()):
            raise _damaged()
    chunk_start = _starts(counts)
    rows = words[spans(first + _HEAD, _PER_SEGMENT * counts)].reshape(-1, _PER_SEGMENT).astype(np.int64)
    terms = words[spans(first + _HEAD + _PER_SEGMENT * counts, term_counts)]
    term_start = _starts(rows[:, 5])
    if int(term_start[-1]) != len(terms) or not np.array_equal(term_start[chunk_start], _starts(term_counts)):
        raise _damaged()
    return DecodedSegments(
        chunk_start=chunk_start,
        start=rows[:, 0],
        end=rows[:, 1],
        author=rows[:, 2] - 1,
        flags=rows[:, 3],
        length=rows[:, 4],
        term_start=term_start,
        terms=terms,
    )


def document_terms(decoded: DecodedSegments) -> DocumentTerms:
    """Add segments up into chunks: the figures from which postings are made."""
    import numpy as np

    segment_count = len(decoded.start)
    chunk_of_segment = np.repeat(
        np.arange(len(decoded.chunk_start) - 1, dtype=np.int64), np.diff(decoded.chunk_start)
    )
    term_counts = np.diff(decoded.term_start)
    # One sortable number per occurrence: chunk, term, and whether it is the first of its segment. Equal terms of a
    # segment are adjacent, so a change of term or of segment marks a first.
    fresh = np.ones(len(decoded.terms), bool)
    if len(fresh) > 1:
        np.not_equal(decoded.terms[1:], decoded.terms[:-1], out=fresh[1:])
    fresh[decoded.term_start[:-1][term_counts > 0]] = True
    chunk_of_term = np.repeat(chunk_of_segment, term_counts)
    keys = (((chunk_of_term << 32) | decoded.terms.astype(np.int64)) << 1) | fresh
    spoken = np.flatnonzero(decoded.author >= 0)
    if segment_count and len(spoken):
        author_keys = (((chunk_of_segment[spoken] << 32) | decoded.author[spoken]) << 1) | 1
        keys = np.concatenate([keys, author_keys])
    keys.sort()
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


def spans(starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The numbers of all the ranges `starts[i] … starts[i] + lengths[i] - 1`, one after the other."""
    import numpy as np

    total = int(lengths.sum())
    shift = starts - (np.cumsum(lengths) - lengths)
    return np.repeat(shift, lengths) + np.arange(total, dtype=np.int64)


def _starts(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    import numpy as np

    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def _damaged() -> CorruptStore:
    return CorruptStore(
        "The search index holds a damaged entry.",
        hint="Run `rlm-mem store rebuild` to make it anew from the files.",
    )
