"""SQL queries on the SQLite index of a store folder; no chunk file is read here.

Listings, summaries, links, neighbours and counts are answered by the index alone.

The row of `postings_state` is the pointer to the current snapshot folder of a namespace. It is altered in the same
transaction that drops the `changes` which the new snapshot covers, so a reader never sees a snapshot without the
changes after it.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from rlm_mem.store.core.records import (
    MAX_SAME,
    ChunkRow,
    ChunkState,
    ConversationInfo,
    LinkedChunk,
    ListFilter,
    Summary,
    strongest,
    totals_of,
)
from rlm_mem.store.local.connections import Connections, healed
from rlm_mem.store.local.schema import NORMALISED, roll_back, since_created

#: A snapshot is rebuilt when more chunks than this, plus one in `_CHANGES_SHARE` of its chunks, changed since.
_MIN_CHANGES = 500
_CHANGES_SHARE = 50


class CurrentSnapshot(Struct, frozen=True):
    """The current snapshot of a namespace: the name of its folder and the last change that it covers."""

    generation: str
    seq: int


def snapshot_folder(directory: Path, ns: int, generation: str) -> Path:
    """Return the folder of a snapshot."""
    return directory / str(ns) / generation


def read_state(connection: sqlite3.Connection, ns: int) -> CurrentSnapshot | None:
    """Return the current snapshot of a namespace; None if it has none."""
    row = connection.execute("SELECT generation, seq FROM postings_state WHERE ns = ?", (ns,)).fetchone()
    return None if row is None else CurrentSnapshot(row[0], row[1])


def numbered_changes(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the number above which the changes of this index are numbered, and that of the latest one.

    The latter counts the changes of all namespaces, including those whose rows were dropped.
    """
    row = connection.execute(
        "SELECT (SELECT value FROM meta WHERE key = 'first_change'), seq FROM sqlite_sequence WHERE name = 'changes'"
    ).fetchone()
    return (0, 0) if row is None else (int(row[0] or 0), int(row[1]))


def most_pending(chunks: int) -> int:
    """Return how many chunks may change before a snapshot of `chunks` chunks is rebuilt."""
    return _MIN_CHANGES + chunks // _CHANGES_SHARE


def merge_is_due(connection: sqlite3.Connection, directory: Path, ns: int) -> bool:
    """Return whether too many changes are pending for a quick open. Takes well under a millisecond."""
    state = read_state(connection, ns)
    if state is None:
        query, since = "SELECT 1 FROM chunks WHERE ns = ? AND status = 0 AND ? IS NOT NULL", 0
        bound = most_pending(0)
    else:
        query, since = "SELECT 1 FROM changes WHERE ns = ? AND seq > ?", state.seq
        bound = most_pending(_chunks_in(snapshot_folder(directory, ns, state.generation)))
    found = connection.execute(f"SELECT count(*) FROM ({query} LIMIT {bound + 1})", (ns, since)).fetchone()
    return int(found[0]) > bound


def publish_snapshot(connection: sqlite3.Connection, ns: int, new: CurrentSnapshot) -> bool:
    """Make `new` the current snapshot and drop the changes that it covers.

    Returns:
        False if a later one is current already, or the index was replaced since.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        current = read_state(connection, ns)
        if (current is not None and current.seq > new.seq) or new.seq < numbered_changes(connection)[0]:
            connection.execute("ROLLBACK")
            return False
        connection.execute(
            "INSERT OR REPLACE INTO postings_state(ns, generation, seq) VALUES (?, ?, ?)",
            (ns, new.generation, new.seq),
        )
        connection.execute("DELETE FROM changes WHERE ns = ? AND seq <= ?", (ns, new.seq))
        connection.execute("COMMIT")
    except BaseException:
        roll_back(connection)
        raise
    return True


def _chunks_in(folder: Path) -> int:
    try:
        return int(msgspec.json.decode((folder / "meta.json").read_bytes())["sizes"]["doc"])
    except (OSError, msgspec.DecodeError, ValueError, KeyError, TypeError, RecursionError):
        return 0  # missing or damaged: the next search rebuilds it


_MODIFIED, _ACCESSED = since_created("modified_at", "chunks"), since_created("accessed_at", "chunks")
_LINKED = since_created("l.created_at", "s")  # of a link ``l`` from the chunk ``s``

_ROW_COLUMNS = (
    f"doc, id, ns, status, revision, content_hash, {_ACCESSED}, access_count, tokens,"
    " path, size, mtime_ns, inode"
)


def find_row(connection: sqlite3.Connection, chunk_id: str, namespace: str | None = None) -> ChunkRow | None:
    """Return the row of a chunk id, active or archived; of one namespace, or of any."""
    query, values = f"SELECT {_ROW_COLUMNS} FROM chunks WHERE id = ?", [chunk_id]
    if namespace is not None:
        query += f" AND {_OF_NAMESPACE}"
        values.append(namespace)
    found = connection.execute(query, values).fetchone()
    return ChunkRow(*found) if found else None


_FOUR_LETTERS = re.compile(r"chunk-(?:[^A-Za-z]*[A-Za-z]){0,4}")


def is_alike_taken(connection: sqlite3.Connection, chunk_id: str) -> bool:
    """Return whether a chunk has an id that differs from this one only in case.

    Only ids with the same beginning are compared, its first letters in both cases: there may be many of one day.
    """
    begun = _FOUR_LETTERS.match(chunk_id)
    spelt = [
        (char,) if char == char.swapcase() else (char.lower(), char.upper())
        for char in (begun or [""])[0][6:]
    ]
    starts = ["chunk-" + "".join(chars) for chars in product(*spelt)]
    wanted = " OR ".join(["(id >= ? AND id < ? || '~')"] * len(starts))
    found = connection.execute(
        f"SELECT 1 FROM chunks WHERE ({wanted}) AND id <> ? AND id = ? COLLATE NOCASE LIMIT 1",
        (*(start for start in starts for _ in range(2)), chunk_id, chunk_id),
    )
    return found.fetchone() is not None


def find_rows(
    connection: sqlite3.Connection, chunk_ids: Sequence[str], namespace: str
) -> dict[str, ChunkRow]:
    """Return the rows of these chunk ids in one namespace, active or archived, by id; one statement."""
    found = connection.execute(
        f"SELECT {_ROW_COLUMNS} FROM chunks WHERE id {_SOME} AND {_OF_NAMESPACE}",
        (json_list(chunk_ids), namespace),
    )
    return {row[1]: ChunkRow(*row) for row in found}


def row_at_path(connection: sqlite3.Connection, path: str) -> ChunkRow | None:
    """The row of the chunk whose file is at ``path`` (relative to the store)."""
    folder, _, name = path.rpartition("/")
    found = connection.execute(
        f"SELECT {_ROW_COLUMNS} FROM chunks WHERE id = ? AND +folder = ?",
        (name.removesuffix(".json"), folder),
    ).fetchone()
    return ChunkRow(*found) if found else None


_SUMMARY = (
    "doc, id, type, tokens, confidence, (SELECT c.id FROM conversations c WHERE c.conversation = chunks.conversation),"
    " created_at, occurred_at, at, revision, access_count, valid_from, valid_to, superseded_by, source,"
    " origin, trust, expires_at"
)
#: Active, or archived while in quarantine: a reviewer rejected it, so its words do not come back.
_KEPT = "(+status = 0 OR +trust = 'quarantined')"
_VISIBLE = "trust <> 'quarantined' AND (expires_at IS NULL OR expires_at > ?)"
_VALID_AT = (
    "(valid_from <= ? OR (valid_from IS NULL AND chunks.at <= ?)) AND (valid_to > ? OR valid_to IS NULL)"
)
_NO_CONVERSATION = f"conversation IS NULL AND origin = ? AND source = ? AND {_VISIBLE}"
_NUMBER = "(SELECT ns FROM namespaces WHERE name = ?)"
_OF_NAMESPACE = f"+ns = {_NUMBER}"  # the plus sign keeps SQLite from using an index on namespaces
_CONVERSATION = (
    f"ifnull((SELECT c.conversation FROM conversations c WHERE c.ns = {_NUMBER} AND c.id = ?), -1)"  # by name
)
_SAME_CONTENT = (
    f"SELECT id FROM chunks WHERE substr(content_hash, 1, 16) = ? AND +content_hash = ? AND {_OF_NAMESPACE}"
    " AND +status = 0 AND +conversation IS"
)
_SAME_ALONE = f"{_SAME_CONTENT} NULL ORDER BY doc DESC LIMIT {MAX_SAME}"
_SAME_IN_CONVERSATION = f"{_SAME_CONTENT} {_CONVERSATION} ORDER BY doc DESC LIMIT {MAX_SAME}"
_END = "(SELECT at FROM chunks c WHERE c.ns = t.ns AND c.status = 0 ORDER BY at {} LIMIT 1)"  # of a namespace's times
LAST_CHANGE = (
    "SELECT max(ifnull((SELECT max(c.seq) FROM changes c JOIN namespaces n USING (ns) WHERE n.name = ?1), 0),"
    " ifnull((SELECT p.seq FROM postings_state p JOIN namespaces n USING (ns) WHERE n.name = ?1), 0),"
    " ifnull((SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'first_change'), 0))"
)
"""The number of the latest change of a namespace, or of the snapshot that its changes were merged into."""
_SOME = "IN (SELECT value FROM json_each(?))"
"""One of the values of a ``json_list``."""


def json_list(values: Iterable[object]) -> str:
    """Encode values for ``IN (SELECT value FROM json_each(?))``: some builds of SQLite allow 999 parameters at most."""
    return msgspec.json.encode(list(values)).decode()


_LINKS = {
    "out": f"SELECT t.id, l.type, l.strength, 'out', l.reasoning, {_LINKED} FROM chunks s"
    " JOIN links l ON l.doc = s.doc JOIN chunks t ON t.id = l.dst_id AND +t.ns = s.ns AND +t.status = 0"
    f" WHERE s.id = ? AND s.ns = {_NUMBER} AND s.status = 0",
    "in": f"SELECT s.id, l.type, l.strength, 'in', l.reasoning, {_LINKED} FROM links l"
    f" JOIN chunks s ON s.doc = l.doc AND +s.status = 0 WHERE l.dst_id = ? AND +s.ns = {_NUMBER}"
    " AND EXISTS (SELECT 1 FROM chunks t WHERE t.id = l.dst_id AND t.ns = s.ns)",
}
_STRONGEST = f" ORDER BY l.strength DESC, {_LINKED} DESC, l.doc, l.position LIMIT ?"


class Queries:
    """`IndexQueries` over the calling thread's connection; the protocol documents the methods."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @healed
    def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._connections.get().execute(query, values).fetchall()

    def number(self, namespace: str) -> int:
        """Return the number of a namespace: -1, which no row has, if it has no chunks."""
        found = self._connections.get().execute("SELECT ns FROM namespaces WHERE name = ?", (namespace,))
        return int(next(found, (-1,))[0])

    def namespaces(self) -> list[tuple[str, int]]:
        return self._rows(
            "SELECT name, coalesce((SELECT sum(chunks) FROM totals t WHERE t.ns = n.ns AND t.status = 0), 0)"
            " FROM namespaces n ORDER BY name"
        )

    def any_term(self, namespace: str, terms: Collection[str]) -> str | None:  # noqa: ARG002 - one dictionary
        found = self._rows(f"SELECT text FROM terms WHERE text {_SOME} LIMIT 1", json_list(terms))
        return found[0][0] if found else None

    def next_term(self, namespace: str) -> int:  # noqa: ARG002 - one dictionary
        return int(self._rows("SELECT ifnull(max(term), 0) + 1 FROM terms")[0][0])

    def terms_before(self, namespace: str, terms: Collection[str], number: int) -> set[str]:  # noqa: ARG002
        query = f"SELECT text FROM terms WHERE text {_SOME} AND term < ?"
        return {text for (text,) in self._rows(query, json_list(sorted(terms)), number)}

    # --- listings --------------------------------------------------------------------------------------

    def list_places(self, namespace: str, wanted: ListFilter) -> list[tuple[str, float, int]]:
        page, values = self._page_query(namespace, wanted)
        return self._rows(page, *values)

    @healed
    def list_summaries(self, namespace: str, wanted: ListFilter) -> list[Summary]:
        page, values = self._page_query(namespace, wanted)
        order = "DESC" if wanted.newest_first else "ASC"
        rows = self._rows(
            f"SELECT {_SUMMARY} FROM chunks WHERE doc IN (SELECT doc FROM ({page})) ORDER BY at {order}, doc {order}",
            *values,
        )
        return self._summaries(namespace, rows)

    def _page_query(self, namespace: str, wanted: ListFilter) -> tuple[str, list[object]]:
        """Return the statement and its values for the id, time and number of each listed chunk."""
        # The plus sign makes SQLite look up the conversation, not scan in order of time
        status = "status = ?" if wanted.conversation_id is None else "+status = ?"
        # Conditions, each with its values
        where: list[tuple[Any, ...]] = [(f"chunks.ns = {_NUMBER}", namespace), (status, int(wanted.archived))]
        source, at, doc = "chunks", "chunks.at", "chunks.doc"
        if wanted.trusts == ("quarantined",):
            at = "+chunks.at"  # they are few: looked up by trust instead of a scan in order of time
        if wanted.tags and not wanted.archived:
            # Start from the rows of the rarest tag, which are in order of time: the cost depends on the answer, not
            # the store.
            counts = dict(self.tag_counts(namespace, None, among=wanted.tags) if len(wanted.tags) > 1 else ())
            first = min(wanted.tags, key=lambda tag: counts.get(tag, 0))
            source, at, doc = "tags t CROSS JOIN chunks ON chunks.doc = t.doc", "t.at", "t.doc"
            where.append((f"t.ns = {_NUMBER} AND t.tag = ?", namespace, first))
            for tag in wanted.tags:
                if tag != first:
                    of_tag = "x.ns = t.ns AND x.tag = ? AND x.at = t.at AND x.doc = t.doc"
                    where.append((f"EXISTS (SELECT 1 FROM tags x WHERE {of_tag})", tag))
        if wanted.any_tags and not wanted.archived:
            tagged = f"SELECT doc FROM tags WHERE ns = {_NUMBER} AND tag {_SOME}"
            where.append((f"chunks.doc IN ({tagged})", namespace, json_list(wanted.any_tags)))
        if wanted.conversation_id is not None:
            where.append((f"conversation = {_CONVERSATION}", namespace, wanted.conversation_id))
        optional = (
            (f"{at} >= ?", wanted.start),
            (f"{at} < ?", wanted.end),
            ("type = ?", wanted.chunk_type),
            (_VISIBLE, wanted.shown_at),
            ("expires_at <= ?", wanted.expired_at),
        )
        where += [one for one in optional if one[1] is not None]
        if wanted.held_at is not None:
            seconds, text = wanted.held_at
            where.append((_VALID_AT, text, seconds, text))
        named = ("origin", wanted.origins), ("trust", wanted.trusts)
        where += [(f"{column} {_SOME}", json_list(names)) for column, names in named if names]
        if wanted.after is not None:
            where.append((f"({at}, {doc}) {'<' if wanted.newest_first else '>'} (?, ?)", *wanted.after))
        order = "DESC" if wanted.newest_first else "ASC"
        more = "" if wanted.alone is None else ", conversation, origin, source, trust, expires_at"
        condition = " AND ".join(one for one, *_ in where)
        page = f"SELECT chunks.id, {at} AS at, {doc} AS doc{more} FROM {source} WHERE {condition}"
        page += f" ORDER BY {at} {order}, {doc} {order} LIMIT ? OFFSET ?"
        values = [value for _, *given in where for value in given]
        values += [-1 if wanted.limit is None else wanted.limit, wanted.offset]
        if wanted.alone is not None:
            page = (
                f"SELECT id, at, doc FROM ({page}) WHERE {_NO_CONVERSATION} ORDER BY at {order}, doc {order}"
            )
        return page, [*values, *(wanted.alone or ())]

    @healed
    def summaries(self, namespace: str, ids: Sequence[str]) -> list[Summary]:
        wanted = list(dict.fromkeys(ids))
        rows = self._rows(
            f"SELECT {_SUMMARY} FROM chunks WHERE {_OF_NAMESPACE} AND +status = 0 AND id {_SOME}",
            namespace,
            json_list(wanted),
        )
        found = {item.id: item for item in self._summaries(namespace, rows)}
        return [found[chunk_id] for chunk_id in wanted if chunk_id in found]

    def _summaries(self, namespace: str, rows: Sequence[Any]) -> list[Summary]:
        tags: dict[int, list[str]] = {}
        query = f"SELECT doc, tag FROM tags WHERE doc {_SOME} ORDER BY tag"
        for doc, tag in self._rows(query, json_list([row[0] for row in rows])):
            tags.setdefault(doc, []).append(tag)
        return [Summary(*(row[1], row[2], tuple(tags.get(row[0], ())), *row[3:], namespace)) for row in rows]

    def states(
        self, namespace: str, after: int = 0, limit: int = 1000, *, ids: Sequence[str] | None = None
    ) -> list[ChunkState]:
        # The plus sign: one scan of the rows, no sorting.
        some = "" if ids is None else f" AND id {_SOME}"
        rows = self._rows(
            f"SELECT doc, id, status, revision, {_MODIFIED}, content_hash FROM chunks"
            f" WHERE {_OF_NAMESPACE} AND doc > ?{some} ORDER BY doc LIMIT ?",
            *(namespace, after, *(() if ids is None else (json_list(ids),)), limit),
        )
        return [ChunkState(*row) for row in rows]

    # --- relations -------------------------------------------------------------------------------------

    @healed
    def linked(
        self, namespace: str, chunk_id: str, *, link_type: str | None, direction: str, limit: int
    ) -> list[LinkedChunk]:
        some, values = ("", ()) if link_type is None else (" AND l.type = ?", (link_type,))
        rows: list[tuple[Any, ...]] = []
        for side in _LINKS if direction == "both" else (direction,):
            rows += self._rows(f"{_LINKS[side]}{some}{_STRONGEST}", chunk_id, namespace, *values, limit)
        return strongest([LinkedChunk(*row) for row in rows])[:limit]

    @healed
    def neighbours(
        self, namespace: str, chunk_id: str, before: int, after: int
    ) -> tuple[list[str], list[str]]:
        query = (
            f"SELECT ns, conversation, at, doc FROM chunks WHERE id = ? AND {_OF_NAMESPACE} AND status = 0"
        )
        found = self._rows(query, chunk_id, namespace)
        if not found or found[0][1] is None:
            return [], []
        ns, conversation, at, doc = found[0]
        query = (
            "SELECT id FROM chunks WHERE ns = ? AND conversation = ? AND status = 0"
            " AND (at {sign} ? OR (at = ? AND doc {sign} ?)) ORDER BY at {order}, doc {order} LIMIT ?"
        )
        values = (ns, conversation, at, at, doc)
        earlier = self._rows(query.format(sign="<", order="DESC"), *values, before)
        later = self._rows(query.format(sign=">", order="ASC"), *values, after)
        return [row[0] for row in reversed(earlier)], [row[0] for row in later]

    def with_hash(self, namespace: str, digest: str, conversation_id: str | None) -> list[str]:
        query, values = _SAME_ALONE, [digest[:16], digest, namespace]
        if conversation_id is not None:
            query = _SAME_IN_CONVERSATION
            values += [namespace, conversation_id]
        return [one for (one,) in self._rows(query, *values)]

    def with_normalised_hash(self, namespace: str, digest: str, limit: int) -> list[str]:
        query = f"SELECT id FROM chunks WHERE norm_hash = ? AND {_OF_NAMESPACE} AND {_KEPT} ORDER BY doc DESC LIMIT ?"
        return [one for (one,) in self._rows(query, digest[:NORMALISED], namespace, limit)]

    def known_hashes(self, namespace: str, digests: Collection[str]) -> set[str]:
        query = f"SELECT norm_hash FROM chunks WHERE norm_hash {_SOME} AND {_OF_NAMESPACE} AND {_KEPT}"
        begin = {digest[:NORMALISED]: digest for digest in digests}
        return {begin[digest] for (digest,) in self._rows(query, json_list(begin), namespace)}

    def linking_to(self, namespace: str, chunk_id: str) -> list[str]:
        rows = self._rows(
            "SELECT DISTINCT c.id FROM links l JOIN chunks c ON c.doc = l.doc"
            f" WHERE l.dst_id = ? AND +c.ns = {_NUMBER} ORDER BY c.id",
            chunk_id,
            namespace,
        )
        return [row[0] for row in rows]

    # --- counts ----------------------------------------------------------------------------------------

    def tag_counts(
        self, namespace: str, limit: int | None, *, among: Collection[str] | None = None
    ) -> list[tuple[str, int]]:
        some = "" if among is None else f" AND tag {_SOME}"
        return self._rows(
            f"SELECT tag, chunks FROM tag_totals WHERE ns = {_NUMBER} AND chunks > 0{some}"
            " ORDER BY chunks DESC, tag LIMIT ?",
            *(namespace, *(() if among is None else (json_list(among),)), -1 if limit is None else limit),
        )

    def conversations(self, namespace: str, limit: int | None) -> list[ConversationInfo]:
        rows = self._rows(
            "SELECT id, chunks, (SELECT at FROM chunks c WHERE c.ns = v.ns AND c.conversation = v.conversation AND"
            f" c.status = 0 ORDER BY at LIMIT 1), last_at FROM conversations v WHERE ns = {_NUMBER}"
            " AND last_at > -1e16 ORDER BY last_at DESC, id LIMIT ?",
            namespace,
            -1 if limit is None else limit,
        )
        return [ConversationInfo(*row) for row in rows]

    def stats(self, namespace: str) -> dict[str, Any]:
        rows = self._rows(
            f"SELECT {_END.format('ASC')}, {_END.format('DESC')}, status, type, chunks, tokens, bytes FROM totals t"
            f" WHERE ns = {_NUMBER} AND chunks > 0 ORDER BY type",
            namespace,
        )
        first, last = rows[0][:2] if rows else (None, None)
        return totals_of([row[2:] for row in rows], first, last)

    def count_rows(self, table: str, namespace: str) -> int:
        query = {
            "tags": "tag_totals WHERE chunks > 0 AND ns",
            "conversations": "conversations WHERE last_at > -1e16 AND ns",
            "links": "link_rows l JOIN chunks c ON c.doc = l.doc WHERE c.ns",
        }[table]
        return int(self._rows(f"SELECT count(*) FROM {query} = {_NUMBER}", namespace)[0][0])
