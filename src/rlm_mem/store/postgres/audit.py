"""The audit log as rows: events written in the transaction that they record, and read a page at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.chunk import is_chunk_id
from rlm_mem.store.core.brain_files import concerned, parse_event
from rlm_mem.store.postgres.schema import namespace_key
from rlm_mem.store.postgres.values import Rows, Statement, plain

if TYPE_CHECKING:
    from rlm_mem.store.core.changes import Rewriting
    from rlm_mem.store.postgres.pool import Pool

# Event numbers are drawn by a separate statement and passed on in a setting of the transaction, so that the tables
# are written in the same round trip, and on a cluster the coordinator draws the numbers, not a worker.
_RESERVE_NUMBERS = (
    "SELECT set_config('rlm_mem.lines', string_agg(nextval('rlm_mem.event_numbers')::text, ','), true)"
    " FROM generate_series(1, %s)"
)
_RESERVED_NUMBERS = "string_to_array(current_setting('rlm_mem.lines'), ',')::bigint[]"

_PAGE = 500


def event_statement(events: Iterable[dict[str, Any]]) -> tuple[list[Statement], Statement]:
    """Return statements that write events of the audit log, and a query that finds the last one if it was written."""
    by_namespace: dict[int, list[dict[str, Any]]] = {}
    for event in events:
        by_namespace.setdefault(namespace_key(str(event["ns"])), []).append(event)
    statements: list[Statement] = []
    proof: Statement = ("", ())
    for ns, lines in by_namespace.items():
        payloads = [msgspec.json.encode(line).decode() for line in lines]
        mentioned = [(number, chunk) for number, line in enumerate(lines, 1) for chunk in _mentions(line)]
        columns = [str(line["ts"]) for line in lines], [plain(str(line["op"])) for line in lines], payloads
        statements += [
            (_RESERVE_NUMBERS, (len(lines),)),
            (
                "INSERT INTO rlm_mem.events(ns, seq, ts, op, payload)"
                f" SELECT %s, * FROM unnest({_RESERVED_NUMBERS}, %s::text[], %s::text[], %s::text[])",
                (ns, *columns),
            ),
        ]
        if mentioned:
            statements.append(
                (
                    "INSERT INTO rlm_mem.event_chunks(ns, chunk_id, seq)"
                    f" SELECT %s, m.chunk_id, ({_RESERVED_NUMBERS})[m.number]"
                    " FROM unnest(%s::integer[], %s::text[]) AS m(number, chunk_id)",
                    (ns, [number for number, _ in mentioned], [chunk for _, chunk in mentioned]),
                )
            )
        proof = (
            "SELECT 1 FROM rlm_mem.events WHERE ns = %s AND ts = %s AND payload = %s LIMIT 1",
            (ns, str(lines[-1]["ts"]), payloads[-1]),
        )
    return statements, proof


def _mentions(event: dict[str, Any]) -> Iterable[str]:
    several = event.get("chunk_ids")
    listed: Sequence[object] = several if isinstance(several, list | tuple) else ()
    # Anything else can be longer than an index admits, and nobody asks for it.
    every = (event.get("chunk_id"), *listed)
    return dict.fromkeys(item for item in every if isinstance(item, str) and is_chunk_id(item))


def read(
    ask: Rows, namespace: str, *, since: str | None, op: str | None, chunk_id: str | None, limit: int | None
) -> Iterator[dict[str, Any]]:
    """Yield events in the order written, with ``limit`` only the newest; ``since`` is a time or a prefix of one."""
    ns = namespace_key(namespace)
    query = "SELECT e.seq, e.payload FROM rlm_mem.events e WHERE e.ns = %s"
    values: list[object] = [ns]
    if chunk_id is not None:
        query = (
            "SELECT e.seq, e.payload FROM rlm_mem.event_chunks m JOIN rlm_mem.events e ON e.ns = %s AND e.seq = m.seq"
            " WHERE m.ns = %s AND m.chunk_id = %s"
        )
        values = [ns, ns, plain(chunk_id)]
    if since is not None:
        query += " AND e.ts >= %s"
        values.append(plain(since))
    if op is not None:
        query += " AND e.op = %s"
        values.append(plain(op))
    if limit is not None:
        yield from _parsed(reversed(ask(f"{query} ORDER BY e.seq DESC LIMIT %s::bigint", (*values, limit))))
        return
    last = 0
    while rows := ask(f"{query} AND e.seq > %s ORDER BY e.seq LIMIT {_PAGE}", (*values, last)):
        yield from _parsed(rows)
        last = rows[-1][0]


def _parsed(rows: Iterable[tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    events = (parse_event(payload.encode()) for _, payload in rows)
    return (event for event in events if event is not None)


def latest(ask: Rows, namespace: str, operations: Iterable[str]) -> dict[str, Any] | None:
    """Return the newest event of these operations; None if there is none."""
    newest = [
        row
        for op in sorted(operations)
        for row in ask(
            "SELECT seq, payload FROM rlm_mem.events WHERE ns = %s AND op = %s ORDER BY seq DESC LIMIT 1",
            (namespace_key(namespace), plain(op)),
        )
    ]
    return parse_event(max(newest)[1].encode()) if newest else None


def rewrite_events(pool: Pool, namespace: str, rewriting: Rewriting, *, dry_run: bool) -> int:
    """Replace payloads by what becomes of their events, a page at a time; return how many."""
    ns, last, count = namespace_key(namespace), -1, 0
    query = "SELECT seq, payload FROM rlm_mem.events WHERE ns = %s AND seq > %s ORDER BY seq LIMIT %s"
    while rows := pool.rows(query, (ns, last, _PAGE)):
        last = rows[-1][0]
        statements: list[Statement] = []
        lines = [str(payload).encode() for _, payload in rows]
        for place in concerned(lines, rewriting.concerns):
            seq, event = rows[place][0], parse_event(lines[place])
            made = None if event is None else rewriting.event({**event, "ns": namespace})
            if made is None:
                continue
            count += 1
            text = msgspec.json.encode(made).decode()
            statements += [
                ("UPDATE rlm_mem.events SET payload = %s WHERE ns = %s AND seq = %s", (text, ns, seq)),
                (
                    "DELETE FROM rlm_mem.event_chunks WHERE ns = %s AND seq = %s AND chunk_id <> ALL(%s::text[])",
                    (ns, seq, list(_mentions(made))),
                ),
            ]
        if statements and not dry_run:
            pool.change(statements)
    return count
