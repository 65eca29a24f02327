"""Dates: what a mention of time means in days."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from rlm_mem.text.dates import find_dates

NOW = datetime(2023, 10, 3, 12, 0)  # a Tuesday


@pytest.mark.parametrize(
    ("text", "first", "last", "precision"),
    [
        ("on 7 May 2023", date(2023, 5, 7), date(2023, 5, 7), "day"),
        ("October 13, 2023", date(2023, 10, 13), date(2023, 10, 13), "day"),
        ("the 3rd of June, 2022", date(2022, 6, 3), date(2022, 6, 3), "day"),
        ("2023-05-07", date(2023, 5, 7), date(2023, 5, 7), "day"),
        ("31.12.2021", date(2021, 12, 31), date(2021, 12, 31), "day"),
        ("in May 2023", date(2023, 5, 1), date(2023, 5, 31), "month"),
        ("2023-02", date(2023, 2, 1), date(2023, 2, 28), "month"),
        ("early June 2023", date(2023, 6, 1), date(2023, 6, 10), "month"),
        ("since 2016", date(2016, 1, 1), date(2016, 12, 31), "year"),
        ("summer of 2022", date(2022, 6, 1), date(2022, 8, 31), "season"),
        ("in May", date(2023, 5, 1), date(2023, 5, 31), "month"),
        ("in December", date(2023, 12, 1), date(2023, 12, 31), "month"),
        ("yesterday", date(2023, 10, 2), date(2023, 10, 2), "day"),
        ("two days ago", date(2023, 10, 1), date(2023, 10, 1), "day"),
        ("last Friday", date(2023, 9, 29), date(2023, 9, 29), "day"),
        ("last week", date(2023, 9, 25), date(2023, 10, 1), "week"),
        ("next month", date(2023, 11, 1), date(2023, 11, 30), "month"),
        ("last year", date(2022, 1, 1), date(2022, 12, 31), "year"),
        ("last summer", date(2023, 6, 1), date(2023, 8, 31), "season"),
        ("three years ago", date(2020, 1, 1), date(2020, 12, 31), "year"),
        ("the Friday before 15 July 2023", date(2023, 7, 14), date(2023, 7, 14), "day"),
        ("the week before 9 June 2023", date(2023, 6, 2), date(2023, 6, 8), "week"),
        ("the week of 23 August 2023", date(2023, 8, 21), date(2023, 8, 27), "week"),
        ("over the last 3 weeks", date(2023, 9, 12), date(2023, 10, 3), "span"),
        ("in mid March 2023", date(2023, 3, 10), date(2023, 3, 20), "month"),
        ("late March 2023", date(2023, 3, 20), date(2023, 3, 31), "month"),
        ("two months ago", date(2023, 8, 1), date(2023, 8, 31), "month"),
        ("next Friday", date(2023, 10, 6), date(2023, 10, 6), "day"),
        ("next summer", date(2024, 6, 1), date(2024, 8, 31), "season"),
        ("the weekend before 3 May 2023", date(2023, 4, 29), date(2023, 4, 30), "day"),
        ("the weekend after 3 May 2023", date(2023, 5, 6), date(2023, 5, 7), "day"),
        ("the week after 9 June 2023", date(2023, 6, 10), date(2023, 6, 16), "week"),
    ],
)
def test_a_mention_means_these_days(text: str, first: date, last: date, precision: str) -> None:
    (mention,) = find_dates(f"What happened {text}?", NOW)
    assert (mention.first, mention.last, mention.precision) == (first, last, precision)
    assert mention.text in text


@pytest.mark.parametrize("day", [date(2023, 10, 4), date(2023, 10, 7), date(2023, 10, 8)])
@pytest.mark.parametrize(("which", "weeks"), [("last", -1), ("this", 0), ("next", 1)])
def test_a_weekend_is_counted_from_the_one_of_this_week_also_on_its_days(
    day: date, which: str, weeks: int
) -> None:
    (mention,) = find_dates(f"{which} weekend", day)
    # "Next weekend" is the coming one from Monday to Friday.
    weeks -= which == "next" and day.weekday() < 5
    assert mention.first == date(2023, 10, 7) + timedelta(weeks=weeks)
    assert mention.last == mention.first + timedelta(days=1)


@pytest.mark.parametrize(
    ("day", "which", "year"),
    [
        (date(2023, 1, 15), "last", 2021),
        (date(2023, 1, 15), "this", 2022),
        (date(2023, 1, 15), "next", 2023),
        (date(2023, 5, 15), "last", 2022),
        (date(2023, 5, 15), "this", 2023),
        (date(2023, 12, 15), "last", 2022),
        (date(2023, 12, 15), "this", 2023),
    ],
)
def test_a_winter_lasts_into_the_next_year(day: date, which: str, year: int) -> None:
    (mention,) = find_dates(f"{which} winter", day)
    assert (mention.first, mention.last.year, mention.last.month) == (date(year, 12, 1), year + 1, 2)


def test_relative_mentions_need_a_reference() -> None:
    assert find_dates("last week and in May and yesterday") == []
    assert [m.precision for m in find_dates("last week, 7 May 2023")] == ["day"]


def test_relative_and_absolute_dates_are_distinguished() -> None:
    relative = [m.relative for m in find_dates("last week or 7 May 2023 or in June", NOW)]
    assert relative == [True, False, True]


@pytest.mark.parametrize(
    "text", ["31 February", "you may go", "we march on", "may I?", "version 1.2.3", "at 2pm", ""]
)
def test_what_is_no_date_is_left_alone(text: str) -> None:
    assert find_dates(text, NOW) == []


@given(st.text(alphabet="0123456789 mayjuneago-/.lastweekyearsin,", max_size=80), st.dates())
def test_any_text_and_reference_give_ordered_ranges_inside_the_text(text: str, today: date) -> None:
    mentions = find_dates(text, today)
    position = 0
    for mention in mentions:
        assert position <= mention.start < mention.end <= len(text)
        assert mention.first <= mention.last
        position = mention.end


@pytest.mark.parametrize(
    "text", ["on frıday", "aprıl 2023", "in auguſt 2023", "the ſunday before 7 May 2023"]
)
def test_a_letter_that_only_looks_alike_to_a_pattern_makes_no_date_and_no_error(text: str) -> None:
    """A pattern that ignores case takes a dotless i for an i, but no table of names has it."""
    assert all(mention.text != text for mention in find_dates(text, NOW))
