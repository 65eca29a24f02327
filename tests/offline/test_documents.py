"""What is quoted from documents: whole sentences, nothing about the opposite case; settings by parts of their names."""

from __future__ import annotations

import pytest

from rlm_mem.offline.closest import closest
from rlm_mem.offline.passages import Passage
from rlm_mem.offline.question import analyse_question
from rlm_mem.offline.reader import read


def answer(question: str, text: str) -> str | None:
    return read(analyse_question(question), [Passage("c1", text, heading="Pump")]).answer


def test_a_figure_of_a_document_comes_with_its_sentence() -> None:
    told = answer("How many litres does the small tank hold?", "The small tank holds 40 litres. It is blue.")
    assert told is not None and told.startswith("The small tank holds 40 litres")


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (
            "How many litres does the small tank hold?",
            "If the lid is not closed, the small tank holds 30 litres.",
        ),
        ("Which part of the pump cannot be replaced?", "Any part of the pump can be replaced by the owner."),
        ("Can the pump be cleaned?", "The pump can be cleaned while it is open."),
        (
            "Where does the pump keep the records of failures?",
            "The pump keeps records of failures on every start.",
        ),
        ("How many valves does the pump need?", "The pump needs one of the valves that are listed below."),
    ],
    ids=["in the other case", "the opposite", "few words", "no path", "a pronoun"],
)
def test_a_document_is_not_quoted(question: str, text: str) -> None:
    assert answer(question, text) is None


def test_a_setting_is_close_to_a_question_in_the_words_it_is_made_of() -> None:
    passages = [
        Passage("other", "retain_log=\nHow many lines stay.", heading="Pump"),
        Passage("setting", "maxClientCount=\nHow many may come.", heading="Pump"),
    ]
    found = closest(analyse_question("What is the client count?"), passages)
    assert [one.chunk_id for one in found] == ["setting"]
