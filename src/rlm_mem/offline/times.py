"""The dates that a sentence mentions, resolved against its own day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime

from rlm_mem.offline.passages import Passage
from rlm_mem.record import FrozenRecord
from rlm_mem.text.dates import COUNTS, DAY_NAMES, MONTH_NAMES, DateMention, find_dates
from rlm_mem.text.patterns import late

_ASKED_YEAR = late(
    r"\b[Ii]n\s(?:the\syear\s|(?:early|mid|late|[A-Z][a-z]{2,8})[\s-])?(1\d{3}|20\d\d)(?=\s*(?:[?.,]|$))"
)
_YEAR = late(r"(?<!\d)(?:1\d{3}|20\d\d)(?!\d)")
_FUZZY = late(r"\b(?:a few|several|couple|few|some)\b", re.IGNORECASE)
_COUNTED = late(
    r"\b(?P<count>\w+(?: \w+){0,3}?)\s++(?P<unit>day|week|weekend|month|year)s?\s+(?:ago|back|earlier)$",
    re.IGNORECASE,
)


class Moment(FrozenRecord, frozen=True):
    """A date mention in a sentence: its place, its days, and its text."""

    start: int
    end: int
    words: str
    first: date
    last: date
    shape: str


def in_asked_year(question: str, passages: Sequence[Passage]) -> Sequence[Passage]:
    """The passages that may be about the year in a question ("in 1066?"); others are about other years.

    A passage is about the years that it names, in digits or as "last year", and about its own year.
    """
    asked = {int(one) for one in _ASKED_YEAR.findall(question)}
    if not asked:
        return passages
    return [
        one for one in passages if one.of_document or one.at is None or not asked.isdisjoint(_years_of(one))
    ]


def _years_of(passage: Passage) -> set[int]:
    text = f"{passage.before}\n{passage.text}"
    found = {int(one) for one in _YEAR.findall(text)} | ({passage.at.year} if passage.at else set())
    for mention in find_dates(text, passage.at):
        found.update(range(mention.first.year, mention.last.year + 1))
    return found


def day_words(day: date) -> str:
    """Format a day as ``7 May 2023``, whatever the locale."""
    return f"{day.day} {_month(day)}"


def _month(day: date) -> str:
    return f"{MONTH_NAMES[day.month - 1].capitalize()} {day.year}"


def moments(text: str, said: datetime | None) -> list[Moment]:
    """The dates in ``text``, resolved against its day; without that day only absolute ones."""
    return [
        Moment(
            m.start,
            m.end,
            _in_words(m, said),
            m.first,
            m.last,
            ("relative_" if m.relative else "") + m.precision,
        )
        for m in find_dates(text, said)
    ]


def _in_words(mention: DateMention, said: datetime | None) -> str:
    """A mention in absolute words; weeks keep their anchor ("the week before 9 June 2023"): the day is unknown."""
    low = mention.text.lower()
    counted = _COUNTED.search(low) if said is not None and mention.relative else None
    if said is not None and counted and counted["unit"] == "day" and _FUZZY.search(counted["count"]):
        return f"{counted['count']} days before {day_words(said.date())}"
    if mention.precision == "day" and mention.first == mention.last:
        named = said is not None and mention.first != said.date() and any(one in low for one in DAY_NAMES)
        if said is not None and mention.relative and named:
            day = DAY_NAMES[mention.first.weekday()].capitalize()
            relation = "before" if mention.first < said.date() else "after"
            return f"{day_words(mention.first)} (the {day} {relation} {day_words(said.date())})"
        return day_words(mention.first)
    if said is not None and mention.relative:
        today = day_words(said.date())
        if "weekend" in low or ("week" in low and mention.precision in ("week", "day")):
            unit = "weekend" if "weekend" in low else "week"
            if counted:
                count = COUNTS.get(counted["count"].split()[-1]) or (
                    int(counted["count"]) if counted["count"].isdigit() else 0
                )
                many = counted["count"] if count != 1 else "the"
                return f"{many} {unit}{'s' if count != 1 else ''} before {today}"
            if "next" in low or "coming" in low or "following" in low:
                return f"the {unit} after {today}"
            if "this" in low and "past" not in low:
                return f"the {unit} of {today}"
            return f"the {unit} before {today}"
    if mention.precision == "month":
        part = re.match(r"(early|mid|late)", low)
        return f"{part[1]} {_month(mention.first)}" if part else _month(mention.first)
    if mention.precision == "year":
        return str(mention.first.year)
    if mention.precision == "season":
        found = re.search(r"spring|summer|fall|autumn|winter", low)
        return f"{found.group() if found else 'season'} {mention.first.year}"
    if mention.precision == "span":
        return f"between {day_words(mention.first)} and {day_words(mention.last)}"
    return f"{day_words(mention.first)} to {day_words(mention.last)}"
