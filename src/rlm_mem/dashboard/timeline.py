"""The timeline: memories by the day on which they happened, and their number over time."""

from __future__ import annotations

from calendar import monthrange
from datetime import MAXYEAR, date, timedelta
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from markupsafe import Markup

from rlm_mem.chunk.types import amount
from rlm_mem.dashboard.charts import Bar, bars
from rlm_mem.dashboard.memories import Row, rows_of
from rlm_mem.dashboard.requests import NamespaceCache, PageRequest
from rlm_mem.dashboard.words import address, day
from rlm_mem.errors import InputError
from rlm_mem.operations.chunks import Place
from rlm_mem.operations.traits import decode_cursor, encode_cursor

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response

    from rlm_mem.memory import Memory

_PAGE, _MOST = 50, 400
_BARS = 60


def timeline_page(request: PageRequest) -> Response:
    """Memories by day, newest first."""
    memory = request.memory
    since, until = request.text("since", 40).strip(), request.text("until", 40).strip()
    after, limit = request.text("after", 200), request.number("limit", _PAGE, 1, _MOST)
    query = {"since": since, "until": until, "after": after}
    problem, rows, place = "", [], None
    try:
        ids, place = memory.store.list_page(
            limit,
            after=decode_cursor("days", after, Place) if after else None,
            start=since or None,
            end=until or None,
            newest_first=True,
        )
        rows = rows_of(memory.store, memory.store.get_many(ids).values())
    except InputError as error:
        problem = error.sentence
    following = "" if place is None else encode_cursor("days", *place)
    return request.answer(
        "timeline.html",
        days=_by_day(rows),
        since=since,
        until=until,
        problem=problem,
        more=address("/timeline", **query, limit=limit * 2) if following and limit < _MOST else "",
        earlier=address("/timeline", **{**query, "after": following}) if following and limit >= _MOST else "",
        empty=not rows and not any(query.values()),
        here=address("/timeline", **query, limit="" if limit == _PAGE else limit),
        live="memories",
    )


def density_part(request: PageRequest) -> Response:
    """The chart above the timeline, loaded after the page."""
    chart = request.state.shared(_densities).of(request)
    return request.fragment("timeline.html", block="density", chart=chart)


def _densities() -> NamespaceCache[Markup]:
    return NamespaceCache(_density, seconds=30)


def _by_day(rows: list[Row]) -> list[tuple[str, str, list[Row]]]:
    found = []
    for name, of_day in groupby(rows, key=lambda row: day(row.at)):
        weekday = f"{date.fromisoformat(name):%A}" if name else ""
        found.append((name, weekday, list(of_day)))
    return found


def _density(memory: Memory) -> Markup:
    """A chart of the number of memories per day, week, month, year or several years; empty without memories."""
    stats = memory.store.get_stats()
    if not stats["first_at"]:
        return Markup("")
    first, last = (date.fromisoformat(day(stats[name])) for name in ("first_at", "last_at"))
    spans = _spans(first, last)
    values = []
    for label, begin, end in spans:
        number = len(memory.list_chunks(start_date=begin.isoformat(), end_date=end.isoformat()))
        values.append(
            Bar(label, number, amount(number, "memory"), address("/timeline", since=begin, until=end))
        )
    return bars(values, title=f"Memories from {first} to {last}")


def _spans(first: date, last: date) -> list[tuple[str, date, date]]:
    """At most _BARS named periods from the first to the last day: days, weeks, months, years or 10, 100, … years."""
    length = (last - first).days + 1
    begin, years = first, 1
    end_of: Callable[[date], date] = _same_day
    if length > _BARS * 31:
        while last.year // years - first.year // years >= _BARS:
            years *= 10
        begin = date(max(1, first.year - first.year % years), 1, 1)
        end_of = partial(_end_of_years, years=years)
    elif length > _BARS * 7:
        begin, end_of = first.replace(day=1), _end_of_month
    elif length > _BARS:
        begin, end_of = first - timedelta(first.weekday()), _end_of_week
    made: list[tuple[str, date, date]] = []
    while True:
        end = end_of(begin)
        name = begin.isoformat()
        if length > _BARS * 31:
            name = name[:4] if years == 1 else f"{name[:4]}–{end.year:04}"
        elif length > _BARS * 7:
            name = name[:7]
        made.append((name, begin, end))
        if end >= last:
            return made
        begin = end + timedelta(1)


def _same_day(begin: date) -> date:
    return begin


def _end_of_week(begin: date) -> date:
    return date.fromordinal(min(begin.toordinal() + 6, date.max.toordinal()))


def _end_of_month(begin: date) -> date:
    return begin.replace(day=monthrange(begin.year, begin.month)[1])


def _end_of_years(begin: date, years: int) -> date:
    return date(min(begin.year - begin.year % years + years - 1, MAXYEAR), 12, 31)
