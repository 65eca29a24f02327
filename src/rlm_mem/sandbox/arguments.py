"""Arguments of host functions: their checks, and the limit and offset of lists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from datetime import date, datetime
from itertools import islice
from typing import Any, TypeVar

from rlm_mem.chunk import parse_time
from rlm_mem.errors import InputError
from rlm_mem.sandbox.engine import HostCallFailed
from rlm_mem.text.dates import DateMention, find_dates
from rlm_mem.text.patterns import late

MAX_QUERY_CHARS = 10_000
MAX_DATE_CHARS = 200
_TIME_OF_DAY = late(r"\b\d{1,2}(?:(?::\d\d){1,2}(?:\.\d+)?(?:\s?[ap]m)?|\s?[ap]m)\b", re.IGNORECASE)
_MAX_TEXTS = 20
_MAX_LISTED = 4
MAX_OFFSET = 10_000_000
MAX_LINES = 500
_MAX_REMARKS = 5
MAX_COUNTED = 500
"""Maximum number of rows beyond the end of a list that are counted."""
SHORT_LIST = 50
"""Minimum limit of a list whose omitted rows are counted; shorter lists are meant to be short."""


def chunk_id_of(name: str, value: Any, seen: Set[str] = frozenset()) -> str:
    """Return the id in ``value``, a text, hit or chunk; for ids that were seen, the last part is enough."""
    if isinstance(value, dict):
        value = value.get("chunk_id") or value.get("id") or value.get("target_id")
    if not isinstance(value, str):
        raise HostCallFailed(
            "TypeError", f"{name} takes one chunk id as text; for several, call it in a loop"
        )
    return value if value in seen else full_chunk_id(value, seen)


def full_chunk_id(chunk_id: str, seen: Set[str]) -> str:
    """Return the seen id that ends with this last part, as in outlines; the argument itself if there is none.

    Raises:
        InputError: several seen ids end with it.
    """
    found = sorted(one for one in seen if one.endswith(f"-{chunk_id}"))
    if len(found) > 1:
        shown = ", ".join(found[:_MAX_LISTED]) + (" and others" if len(found) > _MAX_LISTED else "")
        raise InputError(
            f"{chunk_id[:80]!r} is the end of {len(found)} ids: {shown}", hint="give the whole id"
        )
    return found[0] if found else chunk_id


def query_words(name: str, query: Any) -> str:
    """Return the query as text, bounded; empty if it has no words."""
    if not isinstance(query, str):
        raise HostCallFailed("TypeError", f"{name} takes the words to look for as one text")
    return query[:MAX_QUERY_CHARS].strip()


def wanted_texts(name: str, value: Any) -> list[str]:
    """Return one text or several as a list."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple | set) or not all(isinstance(one, str) for one in texts):
        raise HostCallFailed("TypeError", f"{name} is a text, or a list of texts")
    if len(texts) > _MAX_TEXTS:
        raise HostCallFailed("ValueError", f"{name} has {len(texts):,} texts; at most {_MAX_TEXTS} are taken")
    return [one[:MAX_QUERY_CHARS] for one in texts]


def tag_list(name: str, value: Any) -> tuple[str, ...]:
    """Return one tag or several."""
    tags = (value,) if isinstance(value, str) else value
    if not isinstance(tags, list | tuple | set) or not tags or not all(isinstance(one, str) for one in tags):
        raise HostCallFailed("TypeError", f"{name} takes a tag, or a list of tags, as text")
    return tuple(tags)


def optional_text(name: str, value: Any) -> str | None:
    """Return a text or None."""
    if value is not None and not isinstance(value, str):
        raise HostCallFailed("TypeError", f"{name} is text, or left out")
    return value or None


def count(name: str, value: Any, low: int, high: int) -> int:
    """Return a number, clamped to its range."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        raise HostCallFailed("TypeError", f"{name} is a number from {low} to {high}")
    return int(max(low, min(high, value)))


def shortened(text: str, chars: int) -> str:
    """Return a text of at most ``chars`` characters, marked … if it was longer."""
    return text if len(text) <= chars else f"{text[: chars - 1]}…"


def day(name: str, value: Any, today: datetime, *, last: bool = False) -> str | None:
    """Return a date as the store accepts it: ISO dates and times unchanged, "May 2026" or "last week" as a day.

    Args:
        today: reference of relative dates.
        last: return the last day of a period instead of its first.
    """
    if value is None or value == "":
        return None
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    if isinstance(value, str):
        try:
            parse_time(value, name)
        except InputError:
            mentions = find_dates(value[:MAX_DATE_CHARS], today)
            if len(mentions) == 1 and not _has_other_numbers(value, mentions[0]):
                return (mentions[0].last if last else mentions[0].first).isoformat()
        else:
            return value
    raise HostCallFailed(
        "ValueError" if isinstance(value, str) else "TypeError",
        f"{name} is a date such as '2026-05-01', '2026-05' or 'May 2026', not {value!r:.60}",
    )


def _has_other_numbers(value: str, mention: DateMention) -> bool:
    """Return whether a text has numbers beside a date and times of day: "2026" in "2026-13-45" is not what it means."""
    rest = f"{value[: mention.start]} {value[mention.end :]}"
    return any(char.isdigit() for char in _TIME_OF_DAY.sub("", rest))


_T = TypeVar("_T")


class TruncatedLists:
    """Lists that were cut at their limit, for a remark below the output of a program."""

    def __init__(self) -> None:
        self._cut: list[tuple[str, int, int, int]] = []
        self._remarks: list[str] = []

    def part(self, name: str, found: Iterator[_T], limit: Any, offset: Any) -> list[_T]:
        """Return the requested part of a list, and count the omitted rows unless the limit is small."""
        first = count("offset", offset, 0, MAX_OFFSET)
        maximum = count("limit", limit, 1, MAX_LINES)
        listed = list(islice(found, first, first + maximum))
        if len(listed) == maximum >= SHORT_LIST:
            self._note(name, first, maximum, sum(1 for _ in islice(found, MAX_COUNTED)))
        else:
            self._note(name, first, len(listed), 0)
        return listed

    def _note(self, name: str, first: int, number: int, rest: int) -> None:
        """Record a list of ``number`` rows from ``first``, after which ``rest`` follow.

        A list that continues an earlier one of the same function replaces it.
        """
        self._cut = [one for one in self._cut if (one[0], one[1] + one[2]) != (name, first)]
        if rest:
            self._cut.append((name, first, number, rest))

    def add_remark(self, remark: str) -> None:
        """Add a remark about a list of a function without offset."""
        self._remarks.append(remark)

    def remark(self) -> str:
        """Return a remark on what the programs since the last remark did not list; empty if nothing."""
        cut, self._cut = self._cut, []
        remarks, self._remarks = self._remarks, []
        counted = [
            f"{name} returned {number} of {'more than ' if rest == MAX_COUNTED else ''}{first + number + rest:,} rows, "
            f"offset={first + number} continues"
            for name, first, number, rest in dict.fromkeys(cut[-_MAX_REMARKS:])
        ]
        return "; ".join([*counted, *dict.fromkeys(remarks[-_MAX_REMARKS:])])
