"""Gather candidates from two namespaces and merge them with common statistics, so that they rank as one set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import structs

from rlm_mem.search.candidates import CandidateSet, gather
from rlm_mem.store.core.lookup import JoinedSource
from rlm_mem.store.core.selection import distinct

if TYPE_CHECKING:
    import numpy.typing as npt

    from rlm_mem.search.query import Query
    from rlm_mem.store.core.lookup import CandidateSource, Filters


def gather_all(
    source: CandidateSource | JoinedSource, query: Query, filters: Filters, limit: int
) -> CandidateSet:
    """Gather the candidates of one namespace, or of both as one set; the arguments are those of ``gather``."""
    if not isinstance(source, JoinedSource):
        return gather(source, query, filters, limit)
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
    plain: dict[str, Any] = {
        **{name: np.concatenate([getattr(a, name), getattr(b, name)]) for name in _PLAIN_ARRAYS},
        **{name: [*getattr(a, name), *getattr(b, name)] for name in _LISTS},
        **{name: getattr(a, name) + getattr(b, name) for name in _COUNTS},
    }
    return CandidateSet(
        **plain,
        doc=_concatenated(a.doc, b.doc),
        chunk_index=np.concatenate([a.chunk_index, b.chunk_index + chunks]),
        run=_concatenated(a.run, b.run),
        conv=np.concatenate([a.conv, b.conv + conversations]),
        author=np.concatenate([_author_indexes(a, names), _author_indexes(b, names)]),
        word_start=np.concatenate([a.word_start, b.word_start[1:] + len(a.words)]),
        authors=tuple(names),
        avg_length=_average(a.n_segments, a.avg_length, b.n_segments, b.avg_length),
        avg_chunk_length=_average(a.n_chunks, a.avg_chunk_length, b.n_chunks, b.avg_chunk_length),
        avg_conversation_length=_average(
            a.n_conversations, a.avg_conversation_length, b.n_conversations, b.avg_conversation_length
        ),
    )


_PLAIN_ARRAYS = (
    "confidence", "chunk_eligible", "seg_no", "start", "end", "conv_pos", "at", "flags",
    "length", "tf", "eligible", "words", "asked", "conv_tf", "conv_length",
)  # fmt: skip
"""Arrays without numbers of chunks, conversations or authors, which are simply put one after the other."""
_LISTS = ("chunk_ids", "chunk_type", "valid_to", "superseded_by")
_COUNTS = ("n_segments", "n_chunks", "n_conversations", "df", "chunk_df", "conv_df")


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
