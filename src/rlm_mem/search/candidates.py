"""The first stage of search: a bounded number of candidate segments from the backend's index, ready to be ranked.

The best chunks by tuned BM25 over whole chunks, their neighbours in conversation order (without them a fifth of what
ranking can find is lost) and chunks of a period that the question names. Everything that ranking needs comes along as
arrays, so the ranker does no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["CandidateSet"]


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """Segments of candidate chunks and of their neighbours, with the figures that scoring needs.

    Sizes: ``M`` chunks, ``S`` segments, ``Q`` query terms (in the order of ``Query.terms``), ``C`` conversations.
    Chunks stand in conversation order within a run, a chunk's segments are contiguous and in text order, and
    ``chunk_index`` never decreases. Window and gap features must not cross a change of ``run``.

    Per chunk:
        chunk_ids: their ids.
        doc: index number; only for ties and for asking the index again.
        chunk_conv: index into the conversation arrays. A chunk without a conversation is a conversation of its own.
        chunk_at: epoch seconds of occurred_at, else of created_at.
        chunk_type, confidence, valid_from, valid_to, superseded_by: as in the chunk (times as strings or None).
        first_stage: BM25 over the whole chunk, 0 for one that came in as neighbour or by date.
        chunk_eligible: may be a result: passes the filters and is a candidate or close to one. The others are there
            as context for window features only.
    Per segment:
        chunk_index: index into the chunk arrays.
        seg_no: number of the segment within its chunk.
        start, end: character offsets in the chunk's content.
        run: number of the unbroken stretch of a conversation.
        conv: index into the conversation arrays.
        conv_pos: number of the segment within its conversation (0 = first); exact among the first few chunks,
            1,000,000 or more further on.
        author: index into ``authors``; -1 for none.
        at: epoch seconds of its chunk.
        flags: bits of rlm_mem.text.analysis.
        length: number of terms.
        tf: frequency of each query term.
        eligible: ``chunk_eligible`` of its chunk.
    Statistics of the namespace, exact and independent of the history of writes:
        n_segments, avg_length, df: number of segments, terms per segment, segments that hold each query term.
        n_chunks, avg_chunk_length, chunk_df: the same for chunks.
        n_conversations, avg_conversation_length, conv_df: the same for conversations.
        conv_tf, conv_length: per conversation, over all its chunks.
    """

    chunk_ids: list[str]
    doc: npt.NDArray[np.int64]  # [M]
    chunk_conv: npt.NDArray[np.int64]  # [M]
    chunk_at: npt.NDArray[np.float64]  # [M]
    chunk_type: list[str]  # [M]
    confidence: npt.NDArray[np.float64]  # [M]
    valid_from: list[str | None]  # [M]
    valid_to: list[str | None]  # [M]
    superseded_by: list[str | None]  # [M]
    first_stage: npt.NDArray[np.float64]  # [M]
    chunk_eligible: npt.NDArray[np.bool_]  # [M]

    chunk_index: npt.NDArray[np.int64]  # [S]
    seg_no: npt.NDArray[np.int64]  # [S]
    start: npt.NDArray[np.int64]  # [S]
    end: npt.NDArray[np.int64]  # [S]
    run: npt.NDArray[np.int64]  # [S]
    conv: npt.NDArray[np.int64]  # [S]
    conv_pos: npt.NDArray[np.int64]  # [S]
    author: npt.NDArray[np.int64]  # [S]
    at: npt.NDArray[np.float64]  # [S]
    flags: npt.NDArray[np.int64]  # [S]
    length: npt.NDArray[np.int64]  # [S]
    tf: npt.NDArray[np.float32]  # [S, Q]
    eligible: npt.NDArray[np.bool_]  # [S]

    authors: tuple[str, ...]

    n_segments: int
    avg_length: float
    df: npt.NDArray[np.int64]  # [Q]
    n_chunks: int
    avg_chunk_length: float
    chunk_df: npt.NDArray[np.int64]  # [Q]
    n_conversations: int
    avg_conversation_length: float
    conv_df: npt.NDArray[np.int64]  # [Q]
    conv_tf: npt.NDArray[np.int64]  # [C, Q]
    conv_length: npt.NDArray[np.int64]  # [C]
