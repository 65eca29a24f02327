"""``--since``, ``--until`` and ``--as-of``: dates in words."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Annotated, Any

from rlm_mem.cli.options import FILTER, option
from rlm_mem.errors import InvalidQuery
from rlm_mem.text.dates import DateMention, find_dates

_STAMP = re.compile(r"\d{4}-\d\d-\d\d(?:[T ].*)?", re.DOTALL)
_AGO = re.compile(r"(.{1,30}?)\s+(?:ago|back|earlier)", re.IGNORECASE | re.DOTALL)
_MAX_CHARS = 60


def day_of(given: str, option: str, today: date) -> str:
    """Return a date in words as ``YYYY-MM-DD``; ISO dates and times are unchanged.

    A period such as ``last week`` or ``May 2026`` means its first day with ``--since``, its last day with ``--until``
    and ``--as-of``. ``3 weeks ago`` is the day three weeks before.

    Args:
        given: "yesterday", "last week", "3 days ago", "monday", "2026-03", "12 May 2026".
        option: ``--since``, ``--until`` or ``--as-of``.
        today: the reference of relative dates.

    Raises:
        InvalidQuery: no date, or more than one.
    """
    words = " ".join(given[: _MAX_CHARS + 1].split())
    if _STAMP.fullmatch(words) and _exists(words):
        return given.strip()
    ago = _AGO.fullmatch(words)
    # `find_dates` takes "3 weeks ago" as the week around that day, and needs a word before a weekday or month.
    forms = (f"last {ago[1]}", words) if ago else (words, f"last {words}", f"in {words.capitalize()}")
    found = (
        next((one for form in forms if (one := _single_date(form, today))), None)
        if len(words) <= _MAX_CHARS
        else None
    )
    if found is None:
        raise InvalidQuery(
            f"{option} {given!r:.60} is not a date",
            hint="use YYYY-MM-DD, yesterday, last week, 3 days ago, or a month such as May 2026",
        )
    return (found.last if option in ("--until", "--as-of") and not ago else found.first).isoformat()


def _exists(stamp: str) -> bool:
    try:
        datetime.fromisoformat(stamp)
    except ValueError:
        return False
    return True


def _single_date(words: str, today: date) -> DateMention | None:
    """Return the date if the words are one date and nothing else."""
    found = find_dates(words, today)
    return found[0] if len(found) == 1 and found[0].text == words else None


def _option(name: str, help: str) -> Any:
    def read(given: str | None) -> str | None:
        return None if given is None else day_of(given, name, datetime.now(UTC).date())

    return option(name, "DATE", help, FILTER, callback=read)


Since = Annotated[
    str | None, _option("--since", "On this day or later: YYYY-MM-DD, yesterday, last week, 3 days ago.")
]
Until = Annotated[str | None, _option("--until", "On this day or earlier; of a period, its last day.")]
AsOf = Annotated[
    str | None, _option("--as-of", "Use what was valid then: YYYY-MM-DD, last week, 3 days ago.")
]
