"""Enlarge a namespace of a database by SQL: its chunks are repeated with later times and other names.

Remembering a million chunks one by one takes most of an hour and gives no further figures. So a namespace that was
remembered is repeated as rows: ids, conversations, times, tags and links of every repetition are its own, texts are the
same. Terms, postings and figures are then counted anew from the stored analysis. Marks of counted uses are not
repeated: a memory of a million chunks has no more of them than a small one, as in a folder.
"""

from __future__ import annotations

import math

import psycopg

from postgres_lists import index_rows
from rlm_mem.store.postgres.schema import namespace_key

_TIMES = "generate_series(1, %(times)s) AS g(k)"
_STAMP = """to_char(to_timestamp(c.at + k * %(span)s) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""

# The tag of a chunk whose uses are counted (rlm_mem.continuum.mirror.MARK), in a text and after another tag.
_USED = """',\\s*"use:recorded"|"use:recorded",?\\s*'"""

# Distinguishes the names of a repetition from those of all others, also of earlier calls.
_MARK = "'x' || (k + %(docs)s)"

_STATEMENTS = (
    f"""INSERT INTO rlm_mem.bodies(ns, doc, body, segments)
        SELECT b.ns, b.doc + k * %(docs)s, replace(regexp_replace(regexp_replace(regexp_replace(
                b.body, {_USED}, '', 'g'), '(chunk-\\d{{4}}-\\d\\d-\\d\\d-[0-9a-fx]+)"', '\\1' || {_MARK} || '"', 'g'),
                '("conversation_id": "[^"]+)"', '\\1' || {_MARK} || '"'),
                c.created_at, {_STAMP}), b.segments
        FROM {_TIMES}, rlm_mem.bodies b JOIN rlm_mem.chunks c USING (ns, doc)
        WHERE b.ns = %(ns)s AND b.doc <= %(docs)s ORDER BY k, b.doc""",
    f"""INSERT INTO rlm_mem.chunks(ns, doc, id, conversation, type, status, at, created_at, modified_at, confidence,
            tokens, revision, source, content_hash, norm_hash, size, length, segment_count, origin, trust)
        SELECT c.ns, c.doc + k * %(docs)s, id || {_MARK}, conversation + k * %(talks)s, type, status,
            at + k * %(span)s, {_STAMP}, CASE WHEN modified_at = c.created_at THEN {_STAMP} ELSE modified_at END,
            confidence, tokens, revision, source, content_hash, norm_hash,
            octet_length(b.body), length, segment_count, origin, trust
        FROM {_TIMES}, rlm_mem.chunks c, rlm_mem.bodies b
        WHERE c.ns = %(ns)s AND c.doc <= %(docs)s AND b.ns = %(ns)s AND b.doc = c.doc + k * %(docs)s
        ORDER BY k, c.doc""",
    f"""INSERT INTO rlm_mem.conversations(ns, conversation, id, chunks, length, last_at)
        SELECT ns, conversation + k * %(talks)s, id || {_MARK}, chunks, length,
            last_at + k * %(span)s
        FROM {_TIMES}, rlm_mem.conversations
        WHERE ns = %(ns)s AND conversation <= %(talks)s ORDER BY k, conversation""",
    f"""INSERT INTO rlm_mem.tags(ns, tag, at, doc) SELECT ns, tag, at + k * %(span)s, doc + k * %(docs)s
        FROM {_TIMES}, rlm_mem.tags WHERE ns = %(ns)s AND doc <= %(docs)s AND tag <> 'use:recorded'
        ORDER BY tag, k, at""",
    f"""INSERT INTO rlm_mem.links(ns, doc, position, dst_id, type, strength, created_at, reasoning)
        SELECT l.ns, l.doc + k * %(docs)s, position, dst_id || {_MARK}, l.type, strength, {_STAMP}, reasoning
        FROM {_TIMES}, rlm_mem.links l JOIN rlm_mem.chunks c USING (ns, doc)
        WHERE l.ns = %(ns)s AND l.doc <= %(docs)s ORDER BY k, l.doc""",
    """UPDATE rlm_mem.tag_totals SET chunks = chunks * (%(times)s + 1) WHERE ns = %(ns)s AND tag <> 'use:recorded'""",
    """UPDATE rlm_mem.totals t SET chunks = s.chunks, tokens = s.tokens, bytes = s.bytes
        FROM (SELECT status, type, count(*) AS chunks, sum(tokens) AS tokens, sum(size) AS bytes
            FROM rlm_mem.chunks WHERE ns = %(ns)s GROUP BY status, type) s
        WHERE t.ns = %(ns)s AND t.status = s.status AND t.type = s.type""",
    "UPDATE rlm_mem.namespaces SET next_doc = %(docs)s * (%(times)s + 1) + 1,"
    " next_conversation = %(talks)s * (%(times)s + 1) + 1, modified = modified + 1 WHERE ns = %(ns)s",
)


def repeat(dsn: str, size: int, namespace: str = "default") -> None:
    """Enlarge a namespace of active chunks, all of `growth.write`, to `size` chunks or slightly more.

    All chunks are repeated as often as necessary.
    """
    ns = namespace_key(namespace)
    with psycopg.connect(dsn, autocommit=True) as connection:
        docs, talks, first, last, held = connection.execute(
            "SELECT next_doc - 1, next_conversation - 1, (SELECT min(at) FROM rlm_mem.chunks c WHERE c.ns = n.ns),"
            " (SELECT max(at) FROM rlm_mem.chunks c WHERE c.ns = n.ns),"
            " (SELECT count(*) FROM rlm_mem.chunks c WHERE c.ns = n.ns) FROM rlm_mem.namespaces n WHERE ns = %s",
            (ns,),
        ).fetchone() or (0, 0, 0.0, 0.0, 0)
        values = {
            "ns": ns,
            "docs": docs,
            "talks": talks,
            "times": -(-size // held) - 1,
            "span": math.ceil(last - first) + 300.0,  # whole seconds: sums of times stay exact
        }
        with connection.transaction():
            for statement in _STATEMENTS:
                connection.execute(statement, values)
        with connection.transaction():
            index_rows(connection, ns)
        connection.execute("VACUUM (FULL, ANALYZE)")


def derived_bytes(dsn: str) -> float:
    """Bytes of every table and index of the schema except those with the texts of chunks and their versions."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relnamespace = 'rlm_mem'::regnamespace"
            " AND relkind = 'r' AND relname NOT IN ('bodies', 'versions')"
        ).fetchone()
    return float(row[0] or 0) if row else 0.0
