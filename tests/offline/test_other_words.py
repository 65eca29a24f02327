"""Closest memories of a question in other words than theirs, and what is quoted of lists, blocks of code and tables."""

from __future__ import annotations

from tests.offline.ranked import closest_to

from rlm_mem.offline.closest import nearness
from rlm_mem.offline.extraction import trimmed
from rlm_mem.offline.nearest import quotation
from rlm_mem.offline.passages import Passage
from rlm_mem.offline.question import analyse_question
from rlm_mem.offline.reader import read

MOVE = Passage("van", "Loading shifts to 30 July, arrival 5 August.", score=1.0)
LAWN = Passage("lawn", "Mowed the lawn.", score=1.0)
SCHOOL = Passage("school", "Schools here: a place in grade 6 for the boy.", score=1.0)


def test_a_memory_without_a_word_of_the_question_is_among_the_first_three_if_it_has_what_is_asked_for() -> (
    None
):
    found = [
        one.chunk_id for one in closest_to("When will our furniture be at the school?", [SCHOOL, MOVE, LAWN])
    ]
    assert sorted(found) == ["school", "van"]


def test_a_memory_without_the_name_that_another_one_has_is_not_close() -> None:
    named = Passage("porto", "Schools in Porto: a place in grade 6.", score=1.0)
    assert closest_to("When will our furniture be in Porto?", [named, MOVE]) == [named]


def test_without_any_related_memory_none_is_close() -> None:
    assert closest_to("When will our furniture be at the school?", [MOVE, LAWN]) == []


def test_words_that_no_memory_has_do_not_make_the_others_count_less() -> None:
    boiler = Passage("boiler", "Hugh looks at the boiler.", score=1.0)
    bins = Passage("bins", "Bins go out on 3 May, says the caretaker.", score=1.0)
    question = "When does a borough inspector examine certified boiler valves in annexes?"
    assert closest_to(question, [bins, boiler])[0] is boiler


def test_a_request_before_a_question_and_the_first_person_name_nobody() -> None:
    assert analyse_question("Remind me of the alarm number?").names == ()
    assert "remind" not in analyse_question("Remind me of the alarm number?").terms
    assert analyse_question("I've learned a rule. Where does Ana record it?").names == ("Ana",)


def test_a_label_is_quoted_without_half_of_its_marks() -> None:
    assert trimmed("- **Root cause:** no cache.") == "Root cause: no cache"
    assert trimmed("Use **only** this.") == "Use **only** this"


def test_the_next_item_of_a_list_is_no_part_of_a_quotation() -> None:
    text = "- The accent model needs 2 GB of memory.\n- An unknown voice gets a warning."
    question = analyse_question("How much memory does the accent model need?")
    passages = [Passage("voices", text), Passage("bread", "Bread is baked.")]
    quoted = quotation(question, passages, nearness(question, passages))
    assert quoted is not None and quoted.text == "The accent model needs 2 GB of memory"


def _answer(question: str, text: str) -> str | None:
    return read(analyse_question(question), [Passage("manual", text, heading="Manual")]).answer


def test_a_way_is_told_by_the_section_named_like_it_with_its_commands() -> None:
    text = "## Running the tests\n\n```sh\n# all of them\nmake verify\n```\n\n## Releases\nBy Jonas.\n"
    assert _answer("How do I run the tests?", text) == "# all of them; make verify"
    assert _answer("How do I run the tests on Windows?", text) != "# all of them; make verify"


def test_the_rows_of_a_table_below_a_heading_are_told_without_its_lines() -> None:
    text = "## Open ports\n| name | number |\n|---|---|\n| sonar | 35 |\n| gyro | 36 |\n"
    assert _answer("What are the open ports?", text) == "name, number; sonar, 35; gyro, 36"


def test_a_quoted_item_with_a_bullet_is_a_line_of_its_section() -> None:
    assert (
        _answer("What are the ground rules?", "# Ground rules\n• No drivers\n> • Ask first")
        == "No drivers; Ask first"
    )
