"""Filters of a search as a mask over the postings, so that the best chunks are chosen among admitted ones only."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rlm_mem.store.core.arrays import contained, distinct
from rlm_mem.store.core.lookup import Filters, has_surrogate, time_range
from rlm_mem.store.local.postings import View

__all__ = ["admitted_slots"]

Bools = npt.NDArray[np.bool_]


def admitted_slots(
    connection: sqlite3.Connection,
    ns: int,
    view: View,
    filters: Filters,
    speaker_slots: Callable[[str], npt.NDArray[np.int64]],
) -> Bools | None:
    """Mask over the slots of `view` of the chunks that pass; None when nothing restricts.

    Chunks that are gone are not masked here. `speaker_slots` gives the slots in which a person speaks.
    """
    size = view.snapshot.size + view.delta.size
    mask = np.ones(size, np.bool_)
    open_ = True
    if filters.valid_at is not None:
        # What says nothing about its validity holds from when it happened.
        start = view.column("valid_from")
        mask &= np.where(np.isinf(start), view.column("at"), start) <= filters.valid_at
        mask &= view.column("valid_to") > filters.valid_at
        open_ = False
    first, last = time_range(filters.start, filters.end)
    if first != -np.inf or last != np.inf:
        at = view.column("at")
        mask &= (at >= first) & (at < last)
        open_ = False
    if filters.chunk_type is not None:
        wanted = (filters.chunk_type,) if isinstance(filters.chunk_type, str) else filters.chunk_type
        mask &= _of_type(view, wanted)
        open_ = False
    if filters.conversation_id is not None:
        row = None
        if not has_surrogate(filters.conversation_id):
            row = connection.execute(
                "SELECT conversation FROM conversations WHERE ns = ? AND id = ?",
                (ns, filters.conversation_id),
            ).fetchone()
        mask &= np.zeros(size, np.bool_) if row is None else view.column("conversation") == row[0]
        open_ = False
    if filters.speaker is not None:
        mask &= _of_slots(speaker_slots(filters.speaker), size)
        open_ = False
    for tag in filters.tags_all:
        mask &= _tagged(connection, ns, view, (tag,))
        open_ = False
    if filters.tags_any:
        mask &= _tagged(connection, ns, view, filters.tags_any)
        open_ = False
    return None if open_ else mask


def _of_type(view: View, wanted: tuple[str, ...]) -> Bools:
    snap = view.snapshot
    codes = [code for code, name in enumerate(snap.types) if name in wanted]
    old = contained(snap.type_code, np.array(codes, np.uint16))
    new = np.array([name in wanted for name in view.delta.columns.type_name], np.bool_)
    return np.concatenate([old, new])


def _tagged(connection: sqlite3.Connection, ns: int, view: View, tags: tuple[str, ...]) -> Bools:
    tags = tuple(tag for tag in tags if not has_surrogate(tag))
    marks = ",".join("?" * len(tags))
    rows = connection.execute(
        f"SELECT doc FROM tags WHERE ns = ? AND tag IN ({marks})", (ns, *tags)
    ).fetchall()
    docs = distinct(np.fromiter((row[0] for row in rows), np.int64, len(rows)))
    old = np.zeros(view.snapshot.size, np.bool_)
    ordinals = view.snapshot.ordinals_of(docs)
    old[ordinals[ordinals >= 0]] = True
    return np.concatenate([old, contained(view.delta.columns.doc, docs)])


def _of_slots(slots: npt.NDArray[np.int64], size: int) -> Bools:
    mask = np.zeros(size, np.bool_)
    mask[slots] = True
    return mask
