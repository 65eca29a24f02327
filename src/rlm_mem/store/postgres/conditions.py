"""Filters as conditions on the chunks `c` of a statement."""

from __future__ import annotations

from rlm_mem.chunk import format_time, from_epoch
from rlm_mem.chunk.types import wanted_origins, wanted_trust
from rlm_mem.store.core.lookup import Filters
from rlm_mem.store.core.records import time_range
from rlm_mem.store.postgres.values import is_storable

#: Neither in quarantine nor expired; the value is the time.
SHOWN = "c.trust <> 'quarantined' AND (c.expires_at IS NULL OR c.expires_at > %s)"
#: The time from which `SHOWN` is false: before all times in quarantine, NULL for never.
HIDDEN_FROM = "CASE WHEN c.trust = 'quarantined' THEN '' ELSE c.expires_at END"
#: Valid at a time; the values are the time as stored, in epoch seconds, and as stored. A chunk without `valid_from` is
#: valid from when it happened.
HELD = "(c.valid_from <= %s OR (c.valid_from IS NULL AND c.at <= %s)) AND (c.valid_to > %s OR c.valid_to IS NULL)"


def conditions(ns: int, filters: Filters) -> tuple[str, tuple[object, ...]]:
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
        also("c.type = ANY(%s::text[])", _storable(wanted))
    if filters.conversation_id is not None:
        also(
            "c.conversation = (SELECT v.conversation FROM rlm_mem.conversations v WHERE v.ns = %s AND v.id = ANY(%s))",
            ns, _storable((filters.conversation_id,)),
        )  # fmt: skip
    origins = wanted_origins(filters.origin)
    if origins:
        also("c.origin = ANY(%s::text[])", list(origins))
    if filters.trust is not None:
        also("c.trust = ANY(%s::text[])", list(wanted_trust(filters.trust)))
    tagged = "c.doc IN (SELECT t.doc FROM rlm_mem.tags t WHERE t.ns = %s AND t.tag = ANY(%s::text[]))"
    for tag in filters.tags_all:
        also(tagged, ns, _storable((tag,)))
    if filters.tags_any:
        also(tagged, ns, _storable(filters.tags_any))
    return "".join(f" AND {condition}" for condition in where), tuple(values)


def admitted(ns: int, filters: Filters) -> tuple[str, tuple[object, ...]]:
    """The conditions of `conditions` and `SHOWN`, and their values."""
    sql, values = conditions(ns, filters)
    return (sql, values) if filters.shown_at is None else (f"{sql} AND {SHOWN}", (*values, filters.shown_at))


def is_shown(hidden_from: str | None, filters: Filters) -> bool:
    """Whether `SHOWN` holds, given `HIDDEN_FROM`: rows that do not depend on the time can be cached."""
    return hidden_from is None or filters.shown_at is None or hidden_from > filters.shown_at


def _storable(texts: tuple[str, ...]) -> list[str]:
    return [text for text in texts if is_storable(text)]
