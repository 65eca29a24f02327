"""Make postings and figures of a namespace whose chunks were loaded as rows, with their encoded segments, by SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import psycopg

from rlm_mem.store.core.encoding import NO_SEGMENTS, decode_many
from rlm_mem.store.postgres.recount import recount
from rlm_mem.store.postgres.schema import HEAD_COLUMNS, Head
from rlm_mem.store.postgres.terms import TermIndex

_LOT = 2_000
"""Chunks that are read at once."""
_EMPTY = (
    "DELETE FROM rlm_mem.postings WHERE ns = %s",
    "DELETE FROM rlm_mem.conversation_terms WHERE ns = %s",
    "UPDATE rlm_mem.terms SET df = 0, segment_df = 0, conversation_df = 0 WHERE ns = %s",
    "UPDATE rlm_mem.conversations SET chunks = 0, length = 0 WHERE ns = %s",
    "UPDATE rlm_mem.namespaces SET segments = 0, length = 0, conversations = 0, loose = 0 WHERE ns = %s",
)


def index_rows(connection: psycopg.Connection[Any], ns: int) -> None:
    """Index all active chunks of a namespace anew, as writing them would; inside a transaction.

    Raises:
        AssertionError: a recount finds a difference.
    """
    for statement in _EMPTY:
        connection.execute(statement, (ns,))
    row = connection.execute(
        f"SELECT {HEAD_COLUMNS} FROM rlm_mem.namespaces WHERE ns = %s FOR NO KEY UPDATE", (ns,)
    ).fetchone()
    head = Head(ns, *(row or ()))
    index = TermIndex(connection, head)
    for first in range(0, head.next_doc, _LOT):
        rows = connection.execute(
            "SELECT c.doc, c.conversation, b.segments FROM rlm_mem.chunks c JOIN rlm_mem.bodies b USING (ns, doc)"
            " WHERE ns = %s AND c.status = 0 AND doc >= %s AND doc < %s ORDER BY doc",
            (ns, first, first + _LOT),
        ).fetchall()
        _write_figures(connection, ns, rows)
        for doc, conversation, blob in rows:
            index.add_blob(doc, conversation, blob)
        if index.is_full:
            _flush(connection, index)
    _flush(connection, index)
    connection.execute(*head.write())
    found = recount(connection, ns)
    assert found.sound, found


def _write_figures(connection: psycopg.Connection[Any], ns: int, rows: Sequence[tuple[Any, ...]]) -> None:
    """Write the length and the number of segments of chunks."""
    if not rows:
        return
    decoded = decode_many([blob or NO_SEGMENTS for _, _, blob in rows])
    length = np.diff(np.concatenate([[0], np.cumsum(decoded.length)])[decoded.chunk_start])
    connection.execute(
        "UPDATE rlm_mem.chunks c SET length = d.length, segment_count = d.segments"
        " FROM unnest(%s::int4[], %s::int4[], %s::int4[]) AS d(doc, length, segments)"
        " WHERE c.ns = %s AND c.doc = d.doc",
        ([row[0] for row in rows], length.tolist(), np.diff(decoded.chunk_start).tolist(), ns),
    )


def _flush(connection: psycopg.Connection[Any], index: TermIndex) -> None:
    with connection.cursor(binary=True) as cursor:
        answers = [cursor.execute(*statement).fetchall() for statement in index.begin_flush()]
        for statement in index.flush(answers) if answers else ():
            cursor.execute(*statement)
