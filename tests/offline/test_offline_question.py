"""What the offline model makes of a question, and of the dates in a sentence."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rlm_mem.offline.candidates import compared
from rlm_mem.offline.extraction import only_repeats
from rlm_mem.offline.question import analyse_question
from rlm_mem.offline.times import moments

MAY_8 = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("When did Ana move to Porto?", "when"),
        ("What year did Ana start surfing?", "when"),
        ("Who designed the clamp?", "who"),
        ("Where are the spare parts kept?", "where"),
        ("Which country did Ben visit?", "where"),
        ("How many gauges did we order?", "how_many"),
        ("How high did the water rise?", "how_many"),
        ("How long have they been married?", "how_long"),
        ("Why did we drop the first supplier?", "why"),
        ("How does Ana relax?", "how"),
        ("Does Ana drink coffee?", "yes_no"),
        ("Would Ben prefer the sea or the mountains?", "choice"),
        ("Which sensor is cheaper, the ultrasonic or the radar?", "choice"),
        ("What kind of dog does Lena have?", "kind"),
        ("What did Ana buy?", "what"),
        ("When Ben was young, who helped him?", "who"),
        ("And when we met, where did Ben live?", "where"),
        ("When the tide is out, does the ferry run?", "yes_no"),
        ("When does the ferry leave, and who steers it?", "when"),
        ("", "what"),
    ],
)
def test_a_question_is_of_the_kind_of_what_it_asks_for(text: str, kind: str) -> None:
    assert analyse_question(text).kind.name == kind


def test_names_are_apart_from_the_words_that_are_looked_for() -> None:
    question = analyse_question("What did Ana's brother repair in March?")
    assert question.names == ("Ana",)
    assert "repair" in question.terms
    assert not {"ana", "what", "did"} & set(question.terms)


def test_a_plural_asks_for_several_things() -> None:
    assert analyse_question("What instruments does Ana play?").many
    assert not analyse_question("What instrument does Ana play?").many


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I went to the support group yesterday.", "7 May 2023"),
        ("We met today!", "8 May 2023"),
        ("That was last week.", "the week before 8 May 2023"),
        ("I ran a race last Saturday.", "6 May 2023 (the Saturday before 8 May 2023)"),
        ("We go camping next month.", "June 2023"),
        ("I painted that last year.", "2022"),
        ("It happened on 3 March 2021.", "3 March 2021"),
        ("Two weekends ago we hiked.", "two weekends before 8 May 2023"),
        ("A few weeks ago we hiked.", "a few weeks before 8 May 2023"),
        ("A few days ago we hiked.", "a few days before 8 May 2023"),
        ("We hiked this past weekend.", "the weekend before 8 May 2023"),
        ("We hike this week.", "the week of 8 May 2023"),
        ("We hike next weekend.", "the weekend after 8 May 2023"),
        ("We hike next Friday.", "12 May 2023 (the Friday after 8 May 2023)"),
        ("We hiked last summer.", "summer 2022"),
        ("We hiked in early June 2021.", "early June 2021"),
        ("We hiked over the last three weeks.", "between 17 April 2023 and 8 May 2023"),
        ("We hiked the weekend before 3 May 2022.", "30 April 2022 to 1 May 2022"),
        ("We hiked the week before 3 May 2022.", "26 April 2022 to 2 May 2022"),
    ],
)
def test_relative_dates_are_counted_from_the_day_they_were_said(text: str, words: str) -> None:
    assert [moment.words for moment in moments(text, MAY_8)] == [words]


def test_without_the_day_only_absolute_dates_are_recognised() -> None:
    assert [m.words for m in moments("Yesterday, and on 3 March 2021.", None)] == ["3 March 2021"]


@pytest.mark.parametrize(
    ("question", "winner"),
    [
        ("Which is cheaper, the radar or the ultrasonic?", "ultrasonic"),
        ("Which is more expensive, the radar or the ultrasonic?", "radar"),
        ("Which is nicer, the radar or the ultrasonic?", None),
    ],
)
def test_a_comparison_is_settled_by_the_figures_beside_each_option(question: str, winner: str | None) -> None:
    text = "A 60 GHz radar, the small one, is 54 euros against 31 for the ultrasonic."
    assert compared(question, ("radar", "ultrasonic"), text) == winner


def test_a_comparison_without_a_figure_for_each_is_left_open() -> None:
    assert compared("Which is cheaper?", ("radar", "ultrasonic"), "The radar costs 54 euros.") is None


@pytest.mark.parametrize(
    ("question", "answer", "nothing"),
    [
        ("What was done when the heat pump showed alarm 51?", "The heat pump showed alarm 51", True),
        ("What was done when the heat pump showed alarm 51?", "Alarm 51: the heat pump", True),
        ("Why did the heat pump break?", "the heat pumps broke", True),
        ("Which sport is the football team associated with?", "the football team", True),
        ("Which sport is the football team associated with?", "association football", False),
        ("What was done when the heat pump showed alarm 51?", "cleaned the filter", False),
        ("Did the heat pump show alarm 51?", "The heat pump showed alarm 51", False),
    ],
)
def test_an_answer_that_only_repeats_the_question_is_recognised(
    question: str, answer: str, nothing: bool
) -> None:
    assert only_repeats(analyse_question(question), answer) is nothing
