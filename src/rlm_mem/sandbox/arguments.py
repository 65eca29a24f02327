"""Arguments of the functions of programs, checked; what is wrong is answered with what to write instead."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from rlm_mem.chunk import parse_time
from rlm_mem.errors import InputError
from rlm_mem.sandbox.engine import HostCallFailed
from rlm_mem.text.dates import find_dates

__all__ = ["MAX_QUERY_CHARS", "chunk_id_of", "count", "day", "optional_text", "query_words", "wanted_texts"]

MAX_QUERY_CHARS = 10_000
_MAX_DATE_CHARS = 200
_MAX_TEXTS = 20


def chunk_id_of(name: str, value: Any) -> str:
    """The id in ``value``: text, or a hit or chunk as a dict."""
    if isinstance(value, dict):
        value = value.get("chunk_id") or value.get("id") or value.get("target_id")
    if not isinstance(value, str):
        raise HostCallFailed(
            "TypeError", f"{name} takes one chunk id as text; for several, call it in a loop"
        )
    return value


def query_words(name: str, query: Any) -> str:
    """The query as text, bounded; empty when it holds no words."""
    if not isinstance(query, str):
        raise HostCallFailed("TypeError", f"{name} takes the words to look for as one text")
    return query[:MAX_QUERY_CHARS].strip()


def wanted_texts(name: str, value: Any) -> list[str]:
    """One text or a list of texts, as a list."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple | set) or not all(isinstance(one, str) for one in texts):
        raise HostCallFailed("TypeError", f"{name} is a text, or a list of texts")
    if len(texts) > _MAX_TEXTS:
        raise HostCallFailed("ValueError", f"{name} has {len(texts):,} texts; at most {_MAX_TEXTS} are taken")
    return [one[:MAX_QUERY_CHARS] for one in texts]


def optional_text(name: str, value: Any) -> str | None:
    """A text or None."""
    if value is not None and not isinstance(value, str):
        raise HostCallFailed("TypeError", f"{name} is text, or left out")
    return value or None


def count(name: str, value: Any, low: int, high: int) -> int:
    """A number, brought into its range."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise HostCallFailed("TypeError", f"{name} is a number from {low} to {high}")
    return int(max(low, min(high, value)))


def day(name: str, value: Any, today: datetime, *, last: bool = False) -> str | None:
    """A date as the store takes it: ISO dates and times as they are, "May 2026" or "last week" by their days.

    Args:
        today: what relative dates are counted from.
        last: the last day of a period instead of its first.
    """
    if value is None or value == "":
        return None
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    if isinstance(value, str):
        try:
            parse_time(value, name)
        except InputError:
            mentions = find_dates(value[:_MAX_DATE_CHARS], today)
            if len(mentions) == 1:
                return (mentions[0].last if last else mentions[0].first).isoformat()
        else:
            return value
    raise HostCallFailed(
        "ValueError" if isinstance(value, str) else "TypeError",
        f"{name} is a date such as '2026-05-01', '2026-05' or 'May 2026', not {value!r:.60}",
    )
