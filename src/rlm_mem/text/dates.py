"""Finds absolute, partial and relative dates in texts and questions, each as a range of days.

"7 May 2023", "May 2023", "2023", "2023-05-07", "last week", "two days ago", "the Friday before 15 July 2023". A
mention without a year ("in May", "on 3 June") is resolved to the year nearest to the reference, a relative one is
counted from it; without a reference both are skipped. English; ISO and numeric forms in any language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date, datetime, timedelta

from rlm_mem.record import FrozenRecord
from rlm_mem.text.cues import MONTHS
from rlm_mem.text.patterns import late

MONTH_NAMES = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
DAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTH = {name: number for number, name in enumerate(MONTH_NAMES, 1)}
_MONTH.update({name[:3]: number for number, name in enumerate(MONTH_NAMES, 1)})
_MONTH["sept"] = 9
_WEEKDAY = {name: number for number, name in enumerate(DAY_NAMES)}
_SEASON = {"spring": (3, 5), "summer": (6, 8), "fall": (9, 11), "autumn": (9, 11), "winter": (12, 2)}
COUNTS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "couple of": 2, "a couple of": 2, "few": 3, "a few": 3,
    "several": 4,
}  # fmt: skip
"""Words for numbers."""

_M = rf"(?P<month>{MONTHS})\.?"
_Y = r"(?P<year>(?:19|20)\d\d)"
_D = r"(?P<day>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_N = (
    r"(?P<count>\d{1,3}|a couple of|a few|an?|one|two|three|four|five|six|seven|eight|nine|ten|"
    r"eleven|twelve|couple of|few|several)"
)
_WD = rf"(?P<weekday>{'|'.join(DAY_NAMES)})"

# The first pattern that matches at a position wins, so longer forms must precede shorter ones.
_PATTERNS = (
    ("iso", _Y + r"-(?P<monthno>0[1-9]|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01])"),
    ("iso_month", _Y + r"-(?P<monthno>0[1-9]|1[0-2])(?!-\d)"),
    ("slashed", _Y + r"/(?P<monthno>0?[1-9]|1[0-2])/(?P<day>0?[1-9]|[12]\d|3[01])"),
    ("dotted", r"(?P<day>0?[1-9]|[12]\d|3[01])\.(?P<monthno>0?[1-9]|1[0-2])\." + _Y),
    ("day", _D + r"\s++(?:of\s++)?" + _M + r",?\s++(?:of\s++|in\s++)?" + _Y),
    ("day", _M + r"\s++(?:the\s++)?" + _D + r",?\s++" + _Y),
    ("part_month", r"(?P<part>early|mid|late|beginning of|end of)[\s-]++" + _M + r"(?:,?\s++" + _Y + r")?"),
    ("month_year", _M + r",?\s++(?:of\s++)?" + _Y),
    ("season", r"(?:the\s++)?(?P<season>spring|summer|fall|autumn|winter)\s++(?:of\s++)?" + _Y),
    ("day", _D + r"\s++(?:of\s++)?" + _M),
    ("day", _M + r"\s++(?:the\s++)?" + _D + r"(?!\s*+(?:%|percent|people|times|years|[ap]m))"),
    ("bare_month", r"(?:in|during|since|until|by|before|after|of|from|last|next|this|throughout)\s++" + _M),
    (
        "day_word",
        r"(?P<word>the day before yesterday|the day after tomorrow|yesterday|today|tonight|tomorrow|last night)",
    ),
    ("ago", _N + r"\s++(?P<unit>day|week|month|year|weekend)s?\s++(?:ago|back|earlier)"),
    ("ahead", r"in\s++" + _N + r"\s++(?P<unit>day|week|month|year)s?(?:'?\s++time)?"),
    (
        "span",
        r"(?:(?:in|over|during|within|for)\s*+)?(?:the\s++)?(?:last|past|previous)\s++"
        + _N
        + r"\s++(?P<unit>day|week|month|year)s?",
    ),
    ("weekday", r"(?P<which>last|next|this|on|the previous|the following|coming|this past)\s++" + _WD),
    (
        "unit",
        r"(?P<which>last|next|this|previous|past|coming|following|this past|earlier this|"
        r"later this)\s++(?P<unit>day|week|month|year|weekend|spring|summer|fall|autumn|winter)",
    ),
    ("year", r"(?:in|during|since|of|until|by|before|after|from|year|late|early|mid|back in)[\s-]++" + _Y),
    ("bare_year", _Y),
)
_BEFORE = late(
    rf"(?:the\s++)?(?P<what>day|week|weekend|month|year|{'|'.join(DAY_NAMES)})s?\s++"
    r"(?P<way>before|prior to|after|following|of)\s+$",
    re.IGNORECASE,
)  # fmt: skip

# A pattern is only compiled and searched for if the text contains one of its signs, since compiling all patterns takes
# 5 ms. Signs are searched one by one, which is faster than compiling them into one pattern.
_YEARS = ("19", "20")
_MONTHS = tuple(name[:3] for name in MONTH_NAMES)
_UNITS = ("day", "night", "morrow", "week", "month", "year", "spring", "summer", "fall", "autumn", "winter")


_LOOKED_FOR = tuple(
    (
        kind,
        _MONTHS if _M in pattern else _YEARS if _Y in pattern else _UNITS,
        late(rf"(?<![\w-]){pattern}(?![\w])", re.IGNORECASE),
    )
    for kind, pattern in _PATTERNS
)
"""Kind, required signs (at least one) and pattern of each form of date."""


class DateMention(FrozenRecord, frozen=True):
    """A date mentioned in a text: the days from `first` to `last`, both included.

    `precision` is "day", "week", "month", "season", "year" or "span"; `relative`: the days depend on the reference
    ("last week"); `yearless`: the mention has a month but no year ("in May": the nearest year is assumed). `start` and
    `end` are the character offsets of the mention, and `text` is its text.
    """

    start: int
    end: int
    text: str
    first: date
    last: date
    precision: str
    relative: bool
    yearless: bool = False


def other_names_of_month(words: Iterable[str]) -> dict[str, list[str]]:
    """The other names of each month among the words of a date, lower case: "apr" for "april", "april" for "apr"."""
    return {
        word: [name for name, number in _MONTH.items() if number == _MONTH[word] and name != word]
        for word in words
        if word in _MONTH
    }


def find_dates(text: str, reference: datetime | date | None = None) -> list[DateMention]:
    """Find all dates mentioned in `text`, in order, without overlaps.

    `reference` is the day the text was written or asked (a datetime or date); without it, mentions that depend on it
    are skipped, as are impossible dates ("31 February"). Never raises on any text.
    """
    today = reference.date() if isinstance(reference, datetime) else reference
    folded = text.casefold()
    signs = {sort for sort in (_YEARS, _MONTHS, _UNITS) if any(map(folded.__contains__, sort))}
    if not signs:
        return []
    taken = bytearray(len(text))  # characters that belong to a mention
    found: list[DateMention] = []
    for kind, needed, pattern in _LOOKED_FOR:
        for match in pattern.finditer(text) if needed in signs else ():
            start, end = match.span()
            if any(taken[start:end]):
                continue
            try:
                resolved = _resolve(kind, match, today)
                if resolved is None:
                    continue
                first, last, precision, relative = resolved
                prefix = _BEFORE.search(text, max(0, start - 40), start)
                if prefix and precision == "day":
                    first, last, precision = _shift(prefix["what"].lower(), prefix["way"].lower(), first)
                    start = prefix.start()
            except (ValueError, OverflowError, KeyError):
                # "31 February 2023", "999 years ago" before year 1, "aprıl" (a dotless i, whose case is ignored, too)
                continue
            taken[start:end] = b"\x01" * (end - start)
            yearless = relative and match.groupdict().get("month") is not None
            found.append(DateMention(start, end, text[start:end], first, last, precision, relative, yearless))
    found.sort(key=lambda mention: mention.start)
    return found


_Resolved = tuple[date, date, str, bool]


def _resolve(kind: str, match: re.Match[str], today: date | None) -> _Resolved | None:
    """The days that a match denotes, or None if they depend on a missing reference."""
    groups = match.groupdict()
    year = int(groups["year"]) if groups.get("year") else None
    if groups.get("monthno"):
        assert year is not None
        month = int(groups["monthno"])
        if groups.get("day"):
            day = date(year, month, int(groups["day"]))
            return day, day, "day", False
        return (*_month(year, month), "month", False)
    if groups.get("month"):
        return _resolve_named_month(groups, year, today)
    if kind == "season":
        assert year is not None
        return (*_season(groups["season"].lower(), year), "season", False)
    if kind in ("year", "bare_year"):
        assert year is not None
        return date(year, 1, 1), date(year, 12, 31), "year", False
    if today is None:
        return None
    if kind == "day_word":
        word = groups["word"].lower()
        offset = {
            "yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "tomorrow": 1,
            "the day before yesterday": -2, "the day after tomorrow": 2,
        }[word]  # fmt: skip
        day = today + timedelta(days=offset)
        return day, day, "day", True
    if kind in ("ago", "ahead", "span"):
        word = groups["count"].lower()
        count = int(word) if word.isdigit() else COUNTS[word]
        unit = groups["unit"].lower()
        if kind == "span":
            return _move(today, unit, -count), today, "span", True
        moved = _move(today, unit, -count if kind == "ago" else count)
        return _around(moved, unit)
    if kind == "weekday":
        return _weekday(groups["which"].lower(), _WEEKDAY[groups["weekday"].lower()], today)
    return _unit(groups["which"].lower(), groups["unit"].lower(), today)


def _resolve_named_month(
    groups: dict[str, str | None], year: int | None, today: date | None
) -> _Resolved | None:
    name = groups["month"] or ""
    month = _MONTH[name.lower()]
    relative = year is None
    # "may" and "mar" are also words: without a day or year they only count if capitalised.
    if (
        year is None
        and not groups.get("day")
        and name.lower() in {"may", "march", "mar"}
        and not name[:1].isupper()
    ):
        return None
    if year is None:
        if today is None:
            return None
        year = _nearest_year(month, today)
    if groups.get("day"):
        day = date(year, month, int(groups["day"] or 0))
        return day, day, "day", relative
    first, last = _month(year, month)
    part = (groups.get("part") or "").lower()
    if part in ("early", "beginning of"):
        last = date(year, month, 10)
    elif part == "mid":
        first, last = date(year, month, 10), date(year, month, 20)
    elif part in ("late", "end of"):
        first = date(year, month, 20)
    return first, last, "month", relative


def _shift(what: str, way: str, day: date) -> tuple[date, date, str]:
    """The days denoted by "the Friday before <day>" or "the week of <day>"."""
    back = way in ("before", "prior to")
    if way == "of":
        monday = day - timedelta(days=day.weekday())
        return (monday, monday + timedelta(days=6), "week") if what == "week" else (day, day, "day")
    if what in _WEEKDAY:
        there = _nearest_weekday(day, _WEEKDAY[what], back=back)
        return there, there, "day"
    if what == "weekend":
        saturday = _nearest_weekday(day, _WEEKDAY["saturday"], back=back)
        return saturday, saturday + timedelta(days=1), "day"
    length = {"day": 1, "week": 7, "month": 30, "year": 365}[what]
    if back:
        return day - timedelta(days=length), day - timedelta(days=1), "day" if what == "day" else "week"
    return day + timedelta(days=1), day + timedelta(days=length), "day" if what == "day" else "week"


def _nearest_weekday(day: date, weekday: int, *, back: bool) -> date:
    """The last such weekday before a day, or the first after it."""
    gap = (day.weekday() - weekday if back else weekday - day.weekday()) - 1
    return day + timedelta(days=(-1 if back else 1) * (gap % 7 + 1))


_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def days_in(year: int, month: int) -> int:
    """Number of days of a month; importing the module `calendar` would take longer than loading this one."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if leap and month == 2 else _LENGTHS[month - 1]


def _month(year: int, month: int) -> tuple[date, date]:
    return date(year, month, 1), date(year, month, days_in(year, month))


def _season(name: str, year: int) -> tuple[date, date]:
    first, last = _SEASON[name]
    end_year = year + 1 if last < first else year
    return date(year, first, 1), _month(end_year, last)[1]


def _nearest_year(month: int, today: date) -> int:
    """The year in which `month` is nearest to today; the past wins a tie."""
    candidates = (today.year, today.year - 1, today.year + 1)
    return min(candidates, key=lambda y: abs((y - today.year) * 12 + month - today.month))


def _move(day: date, unit: str, count: int) -> date:
    if unit == "day":
        return day + timedelta(days=count)
    if unit in ("week", "weekend"):
        return day + timedelta(weeks=count)
    months = count * (12 if unit == "year" else 1)
    index = day.year * 12 + day.month - 1 + months
    year, month = divmod(index, 12)
    return date(year, month + 1, min(day.day, days_in(year, month + 1)))


def _around(day: date, unit: str) -> _Resolved:
    """The period denoted by "two weeks ago", "three years ago" or "last month": a day, week, month or year."""
    if unit == "day":
        return day, day, "day", True
    if unit in ("week", "weekend"):
        return day - timedelta(days=3), day + timedelta(days=3), "week", True
    if unit == "month":
        return (*_month(day.year, day.month), "month", True)
    return date(day.year, 1, 1), date(day.year, 12, 31), "year", True


def _weekday(which: str, weekday: int, today: date) -> _Resolved:
    if which == "on" and today.weekday() == weekday:
        return today, today, "day", True
    day = _nearest_weekday(today, weekday, back=which not in ("next", "the following", "coming", "this"))
    return day, day, "day", True


def _unit(which: str, unit: str, today: date) -> _Resolved:
    step = (
        -1
        if which in ("last", "previous", "past", "this past")
        else 1
        if which in ("next", "coming", "following")
        else 0
    )
    if unit in _SEASON:
        year = today.year
        if _season(unit, year - 1)[1] >= today:  # January is still in the winter of last year
            year -= 1
        first, last = _season(unit, year)
        if step < 0 and last >= today:
            first, last = _season(unit, year - 1)
        elif step > 0 and first <= today:
            first, last = _season(unit, year + 1)
        return first, last, "season", True
    if unit == "day":
        day = today + timedelta(days=step)
        return day, day, "day", True
    if unit == "weekend":
        saturday = today + timedelta(days=5 - today.weekday())  # on a Sunday, the day before
        if step < 0:
            saturday -= timedelta(days=7)
        elif step > 0 and today.weekday() >= 5:
            saturday += timedelta(days=7)
        return saturday, saturday + timedelta(days=1), "day", True
    if unit == "week":
        monday = today - timedelta(days=today.weekday()) + timedelta(weeks=step)
        return monday, monday + timedelta(days=6), "week", True
    return _around(_move(today.replace(day=1), unit, step), unit)
