"""Filters of a search as SQL conditions on `rlm_mem.chunks c`."""

from __future__ import annotations

from datetime import UTC, datetime

from rlm_mem.chunk import format_time
from rlm_mem.store.core.lookup import Filters, time_range
from rlm_mem.store.postgres.texts import is_storable

__all__ = ["conditions"]

_EARLIEST, _LATEST = "0000", "9999-12-31T23:59:59.999999Z"


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
        # What says nothing about its validity holds from when it happened.
        text = _time_text(filters.valid_at)
        also(
            "(c.valid_from <= %s OR (c.valid_from IS NULL AND c.at <= %s)) AND (c.valid_to > %s OR c.valid_to IS NULL)",
            text, filters.valid_at, text,
        )  # fmt: skip
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
    tagged = "c.doc IN (SELECT t.doc FROM rlm_mem.tags t WHERE t.ns = %s AND t.tag = ANY(%s::text[]))"
    for tag in filters.tags_all:
        also(tagged, ns, _storable((tag,)))
    if filters.tags_any:
        also(tagged, ns, _storable(filters.tags_any))
    return "".join(f" AND {condition}" for condition in where), tuple(values)


def _storable(texts: tuple[str, ...]) -> list[str]:
    return [text for text in texts if is_storable(text)]


def _time_text(seconds: float) -> str:
    """Epoch seconds as times are stored; what lies outside of the calendar is before or after everything."""
    try:
        return format_time(datetime.fromtimestamp(seconds, UTC))
    except (OverflowError, ValueError, OSError):
        return _EARLIEST if seconds < 0 else _LATEST
