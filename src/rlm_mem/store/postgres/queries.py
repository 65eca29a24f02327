"""SQL queries on the tables of one namespace that read no chunk text, and the conditions of its filters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from rlm_mem.chunk import format_time, from_epoch
from rlm_mem.chunk.types import wanted_origins, wanted_trust
from rlm_mem.store.core.lookup import Filters
from rlm_mem.store.core.records import (
    MAX_SAME,
    ChunkState,
    ConversationInfo,
    LinkedChunk,
    ListFilter,
    Summary,
    strongest,
    time_range,
    totals_of,
)
from rlm_mem.store.postgres.schema import namespace_key
from rlm_mem.store.postgres.values import Statement, plain, shown, stored

_SUMMARY = (
    "c.doc, c.id, c.type, c.tokens, c.confidence, v.id, c.created_at, c.occurred_at, c.at, c.revision,"
    " coalesce(r.access_count, 0), c.valid_from, c.valid_to, c.superseded_by, c.source,"
    " c.origin, c.trust, c.expires_at"
)
_JOINED = (
    " LEFT JOIN rlm_mem.conversations v ON v.ns = %s AND v.conversation = c.conversation"
    " LEFT JOIN rlm_mem.reads r ON r.ns = %s AND r.doc = c.doc"
)
_LINKS = {
    "out": "SELECT t.id, l.type, l.strength, 'out', l.reasoning, l.created_at FROM rlm_mem.chunks s"
    " JOIN rlm_mem.links l ON l.ns = %s AND l.doc = s.doc"
    " JOIN rlm_mem.chunks t ON t.ns = %s AND t.id = l.dst_id AND t.status = 0"
    " WHERE s.ns = %s AND s.id = %s AND s.status = 0",
    "in": "SELECT s.id, l.type, l.strength, 'in', l.reasoning, l.created_at FROM rlm_mem.links l"
    " JOIN rlm_mem.chunks s ON s.ns = %s AND s.doc = l.doc AND s.status = 0"
    " JOIN rlm_mem.chunks t ON t.ns = %s AND t.id = l.dst_id"
    " WHERE l.ns = %s AND l.dst_id = %s",
}
_STRONGEST = " ORDER BY l.strength DESC, l.created_at DESC, l.doc, l.position LIMIT %s::bigint"
#: Active, or archived while in quarantine: a reviewer rejected it, so its words do not come back.
_KEPT = "(c.status = 0 OR c.trust = 'quarantined')"
#: Neither in quarantine nor expired; the value is the time.
SHOWN = "c.trust <> 'quarantined' AND (c.expires_at IS NULL OR c.expires_at > %s)"
#: The time from which `SHOWN` is false: before all times in quarantine, NULL for never.
HIDDEN_FROM = "CASE WHEN c.trust = 'quarantined' THEN '' ELSE c.expires_at END"
#: Valid at a time; the values are the time as stored, in epoch seconds, and as stored. A chunk without `valid_from` is
#: valid from when it happened.
HELD = "(c.valid_from <= %s OR (c.valid_from IS NULL AND c.at <= %s)) AND (c.valid_to > %s OR c.valid_to IS NULL)"
_TAGGED = "c.doc IN (SELECT t.doc FROM rlm_mem.tags t WHERE t.ns = %s AND t.tag = ANY(%s::text[]))"
_CONVERSATION = "(SELECT v.conversation FROM rlm_mem.conversations v WHERE v.ns = %s AND v.id = %s)"


def conditions(ns: int, filters: Filters) -> Statement:
    """`AND …` for everything but the speaker, and its values; empty when nothing restricts.

    Raises:
        InvalidQuery: a time is neither `YYYY-MM-DD` nor ISO 8601.
    """
    where: list[str] = []
    values: list[object] = []

    def also(condition: str, *given: object) -> None:
        where.append(condition)
        values.extend(given)

    if filters.valid_at is not None:
        text = format_time(from_epoch(filters.valid_at))
        also(HELD, text, filters.valid_at, text)
    first, last = time_range(filters.start, filters.end)
    if first != float("-inf"):
        also("c.at >= %s", float(first))
    if last != float("inf"):
        also("c.at < %s", float(last))
    if filters.chunk_type is not None:
        wanted = (filters.chunk_type,) if isinstance(filters.chunk_type, str) else filters.chunk_type
        also("c.type = ANY(%s::text[])", list(map(plain, wanted)))
    if filters.conversation_id is not None:
        also(f"c.conversation = {_CONVERSATION}", ns, plain(filters.conversation_id))
    origins = wanted_origins(filters.origin)
    if origins:
        also("c.origin = ANY(%s::text[])", list(origins))
    if filters.trust is not None:
        also("c.trust = ANY(%s::text[])", list(wanted_trust(filters.trust)))
    for tag in filters.tags_all:
        also(_TAGGED, ns, [plain(tag)])
    if filters.tags_any:
        also(_TAGGED, ns, list(map(plain, filters.tags_any)))
    return "".join(f" AND {condition}" for condition in where), tuple(values)


def admitted(ns: int, filters: Filters) -> Statement:
    """The conditions of `conditions` and `SHOWN`, and their values."""
    sql, values = conditions(ns, filters)
    return (sql, values) if filters.shown_at is None else (f"{sql} AND {SHOWN}", (*values, filters.shown_at))


def is_shown(hidden_from: str | None, filters: Filters) -> bool:
    """Whether `SHOWN` holds, given `HIDDEN_FROM`: rows that do not depend on the time can be cached."""
    return hidden_from is None or filters.shown_at is None or hidden_from > filters.shown_at


class PostgresQueries:
    """`IndexQueries` over the tables; the protocol documents the methods.

    Args:
        rows: runs a statement with values in the database of a namespace and returns its rows; sees open writes.
    """

    def __init__(
        self,
        rows: Callable[[str, str, Sequence[object]], list[tuple[Any, ...]]],
        namespaces: Callable[[], list[tuple[str, int]]],
    ) -> None:
        self._rows = rows
        self.namespaces = namespaces

    def _select(self, namespace: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a statement whose first value is the key of the namespace."""
        return self._rows(namespace, statement, (namespace_key(namespace), *values))

    def any_term(self, namespace: str, terms: Collection[str]) -> str | None:
        query = "SELECT text FROM rlm_mem.terms WHERE ns = %s AND text = ANY(%s) LIMIT 1"
        found = self._select(namespace, query, list(map(stored, terms)))
        return shown(found[0][0]) if found else None

    def next_term(self, namespace: str) -> int:
        found = self._select(namespace, "SELECT next_term FROM rlm_mem.namespaces WHERE ns = %s")
        return found[0][0] if found else 0

    def terms_before(self, namespace: str, terms: Collection[str], number: int) -> set[str]:
        query = "SELECT text FROM rlm_mem.terms WHERE ns = %s AND text = ANY(%s::text[]) AND term < %s"
        found = self._select(namespace, query, list(map(stored, terms)), number)
        return {shown(text) for (text,) in found}

    # --- listings --------------------------------------------------------------------------------------

    def list_places(self, namespace: str, wanted: ListFilter) -> list[tuple[str, float, int]]:
        page, values = self._page_query(namespace, wanted)
        if wanted.alone is None:
            return self._rows(namespace, f"SELECT c.id, c.at, c.doc {page}", values)
        direction = "DESC" if wanted.newest_first else "ASC"
        origin, source, shown_at = wanted.alone
        return self._rows(
            namespace,
            f"SELECT c.id, c.at, c.doc FROM (SELECT c.* {page}) c WHERE c.conversation IS NULL AND c.origin = %s"
            f" AND c.source = %s AND {SHOWN} ORDER BY c.at {direction}, c.doc {direction}",
            (*values, plain(origin), plain(source), shown_at),
        )

    def list_summaries(self, namespace: str, wanted: ListFilter) -> list[Summary]:
        page, values = self._page_query(namespace, wanted)
        direction = "DESC" if wanted.newest_first else "ASC"
        return self._summaries(
            namespace, f"SELECT c.* {page}", values, order=f"c.at {direction}, c.doc {direction}"
        )

    def _page_query(self, namespace: str, wanted: ListFilter) -> tuple[str, list[object]]:
        """Return the part of a listing statement after its columns, which are those of ``c``, and its values."""
        ns = namespace_key(namespace)
        source, at, doc = "rlm_mem.chunks c WHERE c.ns = %s", "c.at", "c.doc"
        where = ["c.status = %s"]
        values: list[object] = [ns, int(wanted.archived)]

        def also(condition: str, *given: object) -> None:
            where.append(condition)
            values.extend(given)

        if wanted.tags and not wanted.archived:
            # Start from the rows of the rarest tag, which are in order of time: only a page of them is read.
            counts = dict(self.tag_counts(namespace, None, among=wanted.tags) if len(wanted.tags) > 1 else ())
            first, *others = sorted(wanted.tags, key=lambda tag: counts.get(tag, 0))
            source = (
                "rlm_mem.tags t JOIN rlm_mem.chunks c ON c.ns = %s AND c.doc = t.doc"
                " WHERE t.ns = %s AND t.tag = %s"
            )
            at, doc = "t.at", "t.doc"
            values[1:1] = [ns, plain(first)]
            for tag in others:
                tagged = "rlm_mem.tags x WHERE x.ns = %s AND x.tag = %s AND x.at = c.at AND x.doc = c.doc"
                also(f"EXISTS (SELECT 1 FROM {tagged})", ns, plain(tag))
        if wanted.any_tags and not wanted.archived:
            also(_TAGGED, ns, list(map(plain, wanted.any_tags)))
        if wanted.conversation_id is not None:
            also(f"c.conversation = {_CONVERSATION}", ns, plain(wanted.conversation_id))
        kind = None if wanted.chunk_type is None else plain(wanted.chunk_type)
        for condition, value in (
            (f"{at} >= %s", wanted.start),
            (f"{at} < %s", wanted.end),
            ("c.type = %s", kind),
            (SHOWN, wanted.shown_at),
            ("c.expires_at <= %s", wanted.expired_at),
        ):
            if value is not None:
                also(condition, value)
        if wanted.held_at is not None:
            seconds, text = wanted.held_at
            also(HELD, text, seconds, text)
        for column, names in (("c.origin", wanted.origins), ("c.trust", wanted.trusts)):
            if names:
                also(f"{column} = ANY(%s::text[])", list(names))
        if wanted.after is not None:
            also(f"({at}, {doc}) {'<' if wanted.newest_first else '>'} (%s, %s)", *wanted.after)
        direction = "DESC" if wanted.newest_first else "ASC"
        order = f"{at} {direction}, {doc} {direction}"
        values += [wanted.limit, wanted.offset]
        return (
            f"FROM {source} AND {' AND '.join(where)} ORDER BY {order} LIMIT %s::bigint OFFSET %s::bigint",
            values,
        )

    def summaries(self, namespace: str, ids: Sequence[str]) -> list[Summary]:
        wanted = list(dict.fromkeys(ids))
        found = {
            item.id: item
            for item in self._summaries(
                namespace,
                "SELECT * FROM rlm_mem.chunks c WHERE c.ns = %s AND c.status = 0 AND c.id = ANY(%s)",
                (namespace_key(namespace), wanted),
                order="c.doc",
            )
        }
        return [found[chunk_id] for chunk_id in wanted if chunk_id in found]

    def _summaries(
        self, namespace: str, chunks: str, values: Sequence[object], *, order: str
    ) -> list[Summary]:
        """Return summaries of the chunks that a statement selects as ``c``."""
        ns = namespace_key(namespace)
        rows = self._rows(
            namespace,
            f"WITH c AS ({chunks}) SELECT {_SUMMARY}, ARRAY(SELECT t.tag FROM rlm_mem.tags t WHERE t.ns = %s"
            f" AND t.doc = c.doc ORDER BY t.tag) FROM c{_JOINED} ORDER BY {order}",
            (*values, ns, ns, ns),
        )
        return [Summary(*(row[1], row[2], tuple(row[-1]), *row[3:-1], namespace)) for row in rows]

    def states(
        self, namespace: str, after: int = 0, limit: int = 1000, *, ids: Sequence[str] | None = None
    ) -> list[ChunkState]:
        # No LIMIT with ids: the planner might scan along doc until it has found them all.
        some = " ORDER BY c.doc LIMIT %s::bigint" if ids is None else " AND c.id = ANY(%s) ORDER BY c.doc"
        rows = self._select(
            namespace,
            "SELECT c.doc, c.id, c.status, c.revision, c.modified_at, c.content_hash FROM rlm_mem.chunks c"
            f" WHERE c.ns = %s AND c.doc > %s{some}",
            after,
            limit if ids is None else list(ids),
        )
        return [ChunkState(*row) for row in rows[:limit]]

    # --- relations -------------------------------------------------------------------------------------

    def linked(
        self, namespace: str, chunk_id: str, *, link_type: str | None, direction: str, limit: int
    ) -> list[LinkedChunk]:
        ns = namespace_key(namespace)
        selects: list[str] = []
        values: list[object] = []
        for side in _LINKS if direction == "both" else (direction,):
            of_type = "" if link_type is None else " AND l.type = %s"
            selects.append(f"({_LINKS[side]}{of_type}{_STRONGEST})")
            values += [ns, ns, ns, chunk_id, *([] if link_type is None else [plain(link_type)]), limit]
        found = [
            LinkedChunk(*(*row[:4], None if row[4] is None else bytes(row[4]).decode(), row[5]))
            for row in self._rows(namespace, " UNION ALL ".join(selects), values)
        ]
        return strongest(found)[:limit]

    def neighbours(
        self, namespace: str, chunk_id: str, before: int, after: int
    ) -> tuple[list[str], list[str]]:
        ns = namespace_key(namespace)
        half = (
            "(SELECT {side}, c.id, c.at, c.doc FROM rlm_mem.chunks c, here h WHERE c.ns = %s"
            " AND c.conversation = h.conversation AND c.status = 0 AND (c.at, c.doc) {sign} (h.at, h.doc)"
            " ORDER BY c.at {order}, c.doc {order} LIMIT %s::bigint)"
        )
        rows = self._rows(
            namespace,
            "WITH here AS (SELECT conversation, at, doc FROM rlm_mem.chunks WHERE ns = %s AND id = %s AND status = 0)"
            f" SELECT side, id FROM ({half.format(side='0 AS side', sign='<', order='DESC')} UNION ALL"
            f" {half.format(side='1', sign='>', order='ASC')}) found ORDER BY side, at, doc",
            (ns, chunk_id, ns, before, ns, after),
        )
        return [row[1] for row in rows if row[0] == 0], [row[1] for row in rows if row[0] == 1]

    def with_hash(self, namespace: str, digest: str, conversation_id: str | None) -> list[str]:
        query = "SELECT c.id FROM rlm_mem.chunks c WHERE c.ns = %s AND c.content_hash = %s AND c.status = 0"
        order = f"ORDER BY c.doc DESC LIMIT {MAX_SAME}"
        if conversation_id is None:
            found = self._select(namespace, f"{query} AND c.conversation IS NULL {order}", digest)
        else:
            query += f" AND c.conversation = {_CONVERSATION} {order}"
            found = self._select(namespace, query, digest, namespace_key(namespace), plain(conversation_id))
        return [one for (one,) in found]

    def with_normalised_hash(self, namespace: str, digest: str, limit: int) -> list[str]:
        # Without "+ 0", if texts are often repeated, PostgreSQL scans all documents down to the newest equal one.
        query = f"SELECT c.id FROM rlm_mem.chunks c WHERE c.ns = %s AND c.norm_hash = %s AND {_KEPT}"
        rows = self._select(namespace, f"{query} ORDER BY c.doc + 0 DESC LIMIT %s::bigint", digest, limit)
        return [row[0] for row in rows]

    def known_hashes(self, namespace: str, digests: Collection[str]) -> set[str]:
        query = "SELECT DISTINCT c.norm_hash FROM rlm_mem.chunks c WHERE c.ns = %s AND c.norm_hash = ANY(%s::text[])"
        rows = self._select(namespace, f"{query} AND {_KEPT}", list(digests))
        return {row[0] for row in rows}

    def linking_to(self, namespace: str, chunk_id: str) -> list[str]:
        ns = namespace_key(namespace)
        rows = self._rows(
            namespace,
            "SELECT DISTINCT c.id FROM rlm_mem.links l JOIN rlm_mem.chunks c ON c.ns = %s AND c.doc = l.doc"
            " WHERE l.ns = %s AND l.dst_id = %s ORDER BY c.id",
            (ns, ns, chunk_id),
        )
        return [row[0] for row in rows]

    # --- counts ----------------------------------------------------------------------------------------

    def tag_counts(
        self, namespace: str, limit: int | None, *, among: Collection[str] | None = None
    ) -> list[tuple[str, int]]:
        query = "SELECT t.tag, t.chunks FROM rlm_mem.tag_totals t WHERE t.ns = %s AND t.chunks > 0"
        some, values = ("", ()) if among is None else (" AND t.tag = ANY(%s)", (list(map(plain, among)),))
        order = "ORDER BY t.chunks DESC, t.tag LIMIT %s::bigint"
        return self._select(namespace, f"{query}{some} {order}", *values, limit)

    def conversations(self, namespace: str, limit: int | None) -> list[ConversationInfo]:
        rows = self._rows(
            namespace,
            "SELECT v.id, v.chunks, (SELECT c.at FROM rlm_mem.chunks c WHERE c.ns = %s"
            " AND c.conversation = v.conversation AND c.status = 0 ORDER BY c.at LIMIT 1), v.last_at"
            " FROM rlm_mem.conversations v WHERE v.ns = %s AND v.last_at IS NOT NULL"
            " ORDER BY v.last_at DESC, v.id LIMIT %s::bigint",
            (namespace_key(namespace), namespace_key(namespace), limit),
        )
        return [ConversationInfo(*row) for row in rows]

    def stats(self, namespace: str) -> dict[str, Any]:
        ns = namespace_key(namespace)
        end = "(SELECT c.at FROM rlm_mem.chunks c WHERE c.ns = %s AND c.status = 0 ORDER BY c.at {} LIMIT 1)"
        rows = self._rows(
            namespace,
            f"SELECT {end.format('ASC')}, {end.format('DESC')}, status, type, chunks, tokens, bytes"
            " FROM rlm_mem.totals WHERE ns = %s AND chunks > 0 ORDER BY type",
            (ns, ns, ns),
        )
        first, last = rows[0][:2] if rows else (None, None)
        return totals_of([row[2:] for row in rows], first, last)

    def count_rows(self, table: str, namespace: str) -> int:
        query = {
            "tags": "SELECT count(*) FROM rlm_mem.tag_totals WHERE ns = %s AND chunks > 0",
            "conversations": "SELECT count(*) FROM rlm_mem.conversations WHERE ns = %s AND last_at IS NOT NULL",
            "links": "SELECT count(*) FROM rlm_mem.links WHERE ns = %s",
        }[table]
        found = self._select(namespace, query)
        return int(found[0][0]) if found else 0
