"""Gather candidates from two namespaces and merge them with common statistics, so that they rank as one set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from rlm_mem.search.candidates import CandidateSet, gather
from rlm_mem.store.core.selection import distinct

if TYPE_CHECKING:
    import numpy.typing as npt

    from rlm_mem.search.query import Query
    from rlm_mem.store.core.lookup import CandidateSource, Filters, JoinedSource


def gather_both(source: JoinedSource, query: Query, filters: Filters, limit: int) -> CandidateSet:
    """Gather the candidates of both namespaces as one set; the arguments are those of ``gather``."""
    own, other = source.sources
    own_set, other_set = gather(own, query, filters, limit), gather(other, query, filters, limit)
    return _merged(own_set, _renumbered_words(other_set, other, own, own_set))


def _renumbered_words(
    b: CandidateSet, other: CandidateSource, own: CandidateSource, a: CandidateSet
) -> CandidateSet:
    """Return `b` with its words numbered as in the index of `a`; words missing there get numbers above all others."""
    words = distinct(np.concatenate([b.words.astype(np.int64), b.asked[b.asked >= 0]]))
    numbers = other.renumbered(words, own)
    missing = numbers < 0
    beyond = max(int(one.max(initial=0)) for one in (a.words, a.asked, numbers)) + 1
    numbers = np.where(missing, beyond + np.cumsum(missing), numbers)
    asked = b.asked.copy()
    asked[asked >= 0] = numbers[np.searchsorted(words, asked[asked >= 0])]
    return structs.replace(b, words=numbers[np.searchsorted(words, b.words)].astype(np.uint32), asked=asked)


def _merged(a: CandidateSet, b: CandidateSet) -> CandidateSet:
    """Merge two sets; the figures are those of both namespaces together, so that scores are comparable."""
    chunks, conversations = len(a.chunk_ids), len(a.conv_length)
    names = list(dict.fromkeys((*a.authors, *b.authors)))
    return CandidateSet(
        chunk_ids=[*a.chunk_ids, *b.chunk_ids],
        doc=_concatenated(a.doc, b.doc),
        chunk_conv=np.concatenate([a.chunk_conv, b.chunk_conv + conversations]),
        chunk_at=np.concatenate([a.chunk_at, b.chunk_at]),
        chunk_type=[*a.chunk_type, *b.chunk_type],
        confidence=np.concatenate([a.confidence, b.confidence]),
        valid_from=[*a.valid_from, *b.valid_from],
        valid_to=[*a.valid_to, *b.valid_to],
        superseded_by=[*a.superseded_by, *b.superseded_by],
        first_stage=np.concatenate([a.first_stage, b.first_stage]),
        chunk_eligible=np.concatenate([a.chunk_eligible, b.chunk_eligible]),
        chunk_index=np.concatenate([a.chunk_index, b.chunk_index + chunks]),
        seg_no=np.concatenate([a.seg_no, b.seg_no]),
        start=np.concatenate([a.start, b.start]),
        end=np.concatenate([a.end, b.end]),
        run=_concatenated(a.run, b.run),
        conv=np.concatenate([a.conv, b.conv + conversations]),
        conv_pos=np.concatenate([a.conv_pos, b.conv_pos]),
        author=np.concatenate([_author_indexes(a, names), _author_indexes(b, names)]),
        at=np.concatenate([a.at, b.at]),
        flags=np.concatenate([a.flags, b.flags]),
        length=np.concatenate([a.length, b.length]),
        tf=np.concatenate([a.tf, b.tf]),
        eligible=np.concatenate([a.eligible, b.eligible]),
        word_start=np.concatenate([a.word_start, b.word_start[1:] + len(a.words)]),
        words=np.concatenate([a.words, b.words]),
        asked=np.concatenate([a.asked, b.asked]),
        authors=tuple(names),
        n_segments=a.n_segments + b.n_segments,
        avg_length=_average(a.n_segments, a.avg_length, b.n_segments, b.avg_length),
        df=a.df + b.df,
        n_chunks=a.n_chunks + b.n_chunks,
        avg_chunk_length=_average(a.n_chunks, a.avg_chunk_length, b.n_chunks, b.avg_chunk_length),
        chunk_df=a.chunk_df + b.chunk_df,
        n_conversations=a.n_conversations + b.n_conversations,
        avg_conversation_length=_average(
            a.n_conversations, a.avg_conversation_length, b.n_conversations, b.avg_conversation_length
        ),
        conv_df=a.conv_df + b.conv_df,
        conv_tf=np.concatenate([a.conv_tf, b.conv_tf]),
        conv_length=np.concatenate([a.conv_length, b.conv_length]),
    )


def _concatenated(first: npt.NDArray[np.int64], second: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Concatenate both arrays, shifting the second's numbers beyond the first's so that they stay distinct."""
    beyond = int(first.max()) + 1 if len(first) else 0
    return np.concatenate([first, second + beyond])


def _author_indexes(one: CandidateSet, names: list[str]) -> npt.NDArray[np.int64]:
    """Return the author of each segment as an index into `names`; -1 for none."""
    places = np.array([*(names.index(name) for name in one.authors), -1], np.int64)
    return places[one.author]


def _average(count: int, mean: float, other_count: int, other_mean: float) -> float:
    return (count * mean + other_count * other_mean) / max(count + other_count, 1)
