"""Arguments of reading calls, checked: pages, dates and filters become what the index queries take."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from rlm_mem.chunk import parse_time
from rlm_mem.errors import InvalidChunk, InvalidQuery
from rlm_mem.store.core.answers import ListFilter

__all__ = ["after", "list_filter", "page", "query_time"]


def page(value: object, what: str) -> int:
    """A limit or an offset: a whole number from 0 up; raises InvalidQuery."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidQuery(f"{what} must be a whole number from 0 up, not {value!r:.40}")
    return min(value, 2**62)


def query_time(text: str, what: str) -> tuple[float, float]:
    """First and last moment (epoch seconds) of a date or time; raises InvalidQuery."""
    try:
        return day_bounds(text, what)
    except (InvalidChunk, AttributeError, TypeError) as error:
        reason = (
            error.message if isinstance(error, InvalidChunk) else f"{what} must be a date, not {text!r:.40}"
        )
        raise InvalidQuery(reason) from None


def after(bounds: tuple[float, float]) -> float:
    """The exclusive end of a period that includes ``bounds``."""
    # A bare day ends where the next begins; a moment is included itself.
    return bounds[1] if bounds[1] > bounds[0] else bounds[1] + 1e-6


def words(value: object, what: str) -> tuple[str, ...]:
    """One word or several, without repeats; raises InvalidQuery."""
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, Sequence | set | frozenset) or not all(isinstance(item, str) for item in value):
        raise InvalidQuery(f"{what} must be a list of words, not {value!r:.60}")
    return tuple(dict.fromkeys(value))


def list_filter(
    conversation_id: Any, start: Any, end: Any, tags: Any, chunk_type: Any, any_tags: Any,
    archived: bool, limit: Any, offset: Any, newest_first: bool,
) -> ListFilter:  # fmt: skip
    """The arguments of list_chunks, checked; raises InvalidQuery."""
    for value, what in ((conversation_id, "conversation_id"), (chunk_type, "chunk_type")):
        if value is not None and not isinstance(value, str):
            raise InvalidQuery(f"{what} must be text, not {value!r:.60}")
    return ListFilter(
        conversation_id=conversation_id,
        start=None if start is None else query_time(start, "start_date")[0],
        end=None if end is None else after(query_time(end, "end_date")),
        tags=words(tags, "tags"),
        any_tags=words(any_tags, "any_tags"),
        chunk_type=chunk_type,
        archived=archived,
        limit=None if limit is None else page(limit, "limit"),
        offset=page(offset, "offset"),
        newest_first=newest_first,
    )


def day_bounds(text: str, what: str) -> tuple[float, float]:
    """First and last moment (epoch seconds) that a date or time names: a bare date is its whole day."""
    moment = parse_time(text, what)
    if len(text.strip()) <= 10:
        try:
            return moment.timestamp(), (moment + timedelta(days=1)).timestamp()
        except OverflowError:
            return moment.timestamp(), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
    return moment.timestamp(), moment.timestamp()
