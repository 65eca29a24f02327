"""What is quoted from documents: whole sentences, nothing about the opposite case; settings by parts of their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.offline.ranked import closest_to

from rlm_mem import Memory
from rlm_mem.offline.documents import named_documents
from rlm_mem.offline.passages import Passage, Reading, unwrapped, without_earlier_versions
from rlm_mem.offline.question import analyse_question
from rlm_mem.offline.reader import read, with_later_notes


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "brain") as memory:
        yield memory


def answer(question: str, text: str) -> str | None:
    return read(analyse_question(question), [Passage("c1", text, heading="Pump")]).answer


def test_a_figure_of_a_document_comes_with_its_sentence() -> None:
    told = answer("How many litres does the small tank hold?", "The small tank holds 40 litres. It is blue.")
    assert told is not None and told.startswith("The small tank holds 40 litres")


BANK = """# Progress

## Known Issues
- The seat map flickers on Safari - not on Firefox
- Sunday timetables cannot be imported

## Current Work Focus
Card payments.

## Later
"""


@pytest.mark.parametrize(
    ("question", "told"),
    [
        (
            "What are the known issues?",
            "The seat map flickers on Safari - not on Firefox; Sunday timetables cannot be imported",
        ),
        ("What is the current focus?", "Card payments."),
        ("What comes later?", None),
        ("What are the issues?", None),
        ("What are the known issues of the printer?", None),
    ],
)
def test_a_question_for_what_a_heading_names_is_answered_by_its_section(
    question: str, told: str | None
) -> None:
    assert answer(question, BANK) == told


def test_of_sections_with_the_same_heading_the_newest_that_is_valid_is_quoted_and_long_ones_are_cut() -> None:
    def issues(text: str, day: int, *, current: bool = True) -> Passage:
        at = datetime(2026, 3, day, tzinfo=UTC)
        return Passage(f"c{day}", f"## Known Issues\n{text}", heading="Progress", at=at, current=current)

    question = analyse_question("What are the known issues?")
    older, newer, replaced = issues("- One", 2), issues("- Two", 3), issues("- Three", 4, current=False)
    told = read(question, [older, newer, replaced])
    assert told.answer == "Two" and told.passages == (newer,)
    long = read(question, [issues("\n".join(f"- Issue {n} of the ferry" for n in range(30)), 5)]).answer
    assert long is not None and long.count(";") == 7 and long.endswith("Issue 7 of the ferry …")


@pytest.mark.parametrize("command", ["`./x ship`", "../tools/ship", "ship?/all"])
def test_a_stop_in_a_path_ends_no_sentence(command: str) -> None:
    said = f"Deployments are on Wednesdays at 9:30, by Jonas, with {command}."
    told = answer("When are deployments?", f"{said} Production runs in Frankfurt.")
    assert told is not None and told.rstrip(".") == said.rstrip(".")


def test_things_are_counted_by_the_figure_before_them() -> None:
    assert answer("How many valves are there?", "It has four brass valves.") == "It has four brass valves"


def test_a_place_of_a_document_comes_with_its_sentence() -> None:
    told = answer("Where is the key of the cellar?", "The key of the cellar hangs behind the stove.")
    assert told == "The key of the cellar hangs behind the stove"


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Which part of the pump cannot be replaced?", "Any part of the pump can be replaced by the owner."),
        ("Can the pump be cleaned?", "The pump can be cleaned while it is open."),
        (
            "Where does the pump keep the records of failures?",
            "The pump keeps records of failures on every start.",
        ),
        ("How many valves does the pump need?", "The pump needs one of the valves that are listed below."),
        ("How many valves can one pump have?", "Fixed: pumps made by 1.x leaked if they had few valves."),
        ("Who reported the leak of the pump?", "Fixed: leak of the pump after a hose was reported (#88)."),
        (
            "How long is the warranty on power supplies?",
            "Give the power supply a rest of two minutes, then start again. The warranty covers the motor.",
        ),
        ("How many valves are there?", "Valves sold to the trade, by kind of valve: small 21."),
        (
            "Where is the key of the cellar?",
            'made = memory.remember("The key of the cellar hangs behind the stove.")',
        ),
    ],
    ids=[
        "the opposite",
        "few words",
        "no path",
        "a pronoun",
        "a version",
        "no person",
        "another thing",
        "other counts",
        "code",
    ],
)
def test_a_document_is_not_quoted(question: str, text: str) -> None:
    assert answer(question, text) is None


@pytest.mark.parametrize(("name", "other"), [("Ruby", "core team"), ("Java", "nobody")])
def test_a_row_of_a_table_is_not_about_the_thing_in_the_next_row(name: str, other: str) -> None:
    rows = "## SDKs\n\n| Java | `io.heron:sdk` | core team |\n| Ruby | heron-rb | nobody |"
    table = Passage("c1", rows, heading="Heron / SDKs / Language Package Maintained by")
    found = read(analyse_question(f"Who maintains the {name} SDK of Heron by name?"), [table])
    assert other not in str(found.answer)


def test_a_former_value_is_not_answered_with_the_present_one() -> None:
    question = "What port did the pump use in the past?"
    now = "The pump uses port 4310."
    assert answer(question, f"{now} It was 1313, which was taken.") == "It was 1313, which was taken"
    assert answer("What port does the pump use?", now) == "The pump uses port 4310"
    found = read(analyse_question(question), [Passage("c1", now, heading="Pump")])
    assert found.confidence <= 0.5


def test_a_setting_is_close_to_a_question_in_the_words_it_is_made_of() -> None:
    passages = [
        Passage("other", "retain_log=\nHow many lines stay.", heading="Pump"),
        Passage("setting", "maxClientCount=\nHow many may come.", heading="Pump"),
    ]
    found = closest_to("What is the client count?", passages)
    assert [one.chunk_id for one in found] == ["setting"]


def test_a_document_is_named_by_its_file_its_title_and_its_topmost_heading() -> None:
    passages = [
        Passage("c1", "The level is 6.", heading="Options", document="heron-tool", conversation_id="heron"),
        Passage("c2", "The level is 9.", heading="stork / Options", conversation_id="stork"),
        Passage("c3", "The level is 1. See stork.", heading="Other", conversation_id="other"),
        Passage("c4", "The heron stork sleeps.", conversation_id="note"),
    ]

    def named(question: str) -> list[str]:
        return list(named_documents(analyse_question(question), passages))

    assert named("Which level does heron take?") == ["heron"]
    assert named("Which level does the heron tool take?") == ["heron"]
    assert named("Which level does herontool take?") == ["heron"]
    assert named("Which level does the stork take?") == ["stork"]
    assert named("Which level is best?") == []


def test_a_word_that_other_documents_use_hardly_names_one() -> None:
    text = "An option may be given twice."
    passages = [
        Passage("c1", text, document="xz", conversation_id="xz"),
        Passage("c2", text, document="tmux-options", conversation_id="tmux"),
        Passage("c3", text, document="gzip", conversation_id="gzip"),
        Passage("c4", text, document="less", conversation_id="less"),
    ]
    passages = [replace(one, part=True) for one in passages]
    found = named_documents(analyse_question("Which option of xz may be given?"), passages)
    assert next(iter(found)) == "xz"
    assert found["xz"] == 1.0


def test_passages_of_the_document_that_is_named_come_first() -> None:
    text = "Give -w to run several workers."
    passages = [
        Passage("other", text, score=1.0, heading="Heron", document="heron", conversation_id="heron"),
        Passage("named", text, score=1.0, heading="Stork", document="stork", conversation_id="stork"),
    ]
    found = closest_to("How many workers does stork run?", passages)
    assert [one.chunk_id for one in found] == ["named", "other"]


def test_a_passage_of_two_versions_of_a_page_comes_once() -> None:
    text = "Give -w to run several workers."
    passages = [
        Passage(name, text, score=score, heading="Heron", document="heron", conversation_id=name)
        for name, score in (("new", 2.0), ("old", 1.0))
    ]
    other = replace(passages[1], chunk_id="stork", document="stork")
    question = "How do I run several workers?"
    assert [one.chunk_id for one in closest_to(question, [*passages, other])] == ["new", "stork"]
    notes = [replace(one, heading="") for one in passages]
    assert len(closest_to(question, notes)) == 2, "a note that was made twice may be of two days"


def test_a_part_of_a_sentence_of_a_document_comes_with_its_sentence() -> None:
    told = answer("Which version of the pump may run dry?", "From version 4.10 on the pump may run dry.")
    assert told == "From version 4.10 on the pump may run dry."
    told = answer("Why must the pump not run dry?", "The pump must not run dry because the seal needs water.")
    assert told == "The pump must not run dry because the seal needs water"


def test_times_are_not_counted_in_units_of_time() -> None:
    question = "How many times does the pump retry a start?"
    assert answer(question, "The pump will retry a start after 10 seconds.") is None
    assert answer(question, "The pump will retry a start 10 times.") == "The pump will retry a start 10 times"


def test_a_quoted_paragraph_is_read_as_one() -> None:
    text = (
        "> The pump must not run dry, however cold it is, since the\n> seal between the halves needs water."
    )
    assert unwrapped(text).endswith("since the seal between the halves needs water.")


@pytest.mark.parametrize(
    ("question", "told", "other"),
    [
        ("What is the longest label of a valve?", "A label has up to 40 letters.", "A label is printed twice."),
        ("How many valves are open unless told otherwise?", "By default 3 valves are open.",
         "In winter 3 valves are open."),
        ("After what period does the valve close?", "The valve does so in 90 s.", "The valve does so in winter."),
        ("Who found the leak of the valve?", "A leak of the valve (Hedda Lyng).",
         "Pump shows a leak of the valve."),
        ("Which algorithm signs the valves?", "The signature of a valve.", "The colour of a valve."),
    ],
    ids=["a limit", "a default", "a duration", "a person", "a word that begins alike"],
)  # fmt: skip
def test_what_a_question_asks_for_brings_a_passage_of_a_document_closer(
    question: str, told: str, other: str
) -> None:
    passages = [
        Passage("other", other, heading="Pump / Options", score=1.0),
        Passage("told", told, heading="Pump / Options", score=1.0),
    ]
    assert closest_to(question, passages)[0].chunk_id == "told"


def test_every_document_of_the_tool_that_is_named_is_closer_than_those_of_others() -> None:
    passages = [
        Passage("stork", "Old lines go after 9 days.", heading="Options", document="stork", conversation_id="stork"),
        Passage("heron", "They go after 9 days.", heading="Options", document="heron-guide", conversation_id="h1"),
        Passage("log", "A log has a name.", heading="Options", document="heron-log", conversation_id="h2"),
    ]  # fmt: skip
    found = closest_to("When do old lines of the Heron log go?", passages)
    assert [one.chunk_id for one in found].index("heron") < [one.chunk_id for one in found].index("stork")


def test_a_name_that_is_an_everyday_word_names_no_document() -> None:
    passages = [
        Passage("c1", "Build it.", heading="Install", document="heron", conversation_id="heron"),
        Passage("c2", "Press undo.", heading="How to go back", document="stork", conversation_id="stork"),
    ]
    assert list(named_documents(analyse_question("Which Go does the heron need?"), passages)) == ["heron"]


TEAM = "Team\n* Release manager: {}\n* Tester: Piet\n* Operator: Lena"


def test_a_list_is_read_in_its_latest_version(memory: Memory) -> None:
    for month, name in enumerate(("Ana", "Olu", "Bo"), 1):
        memory.remember(TEAM.format(name), occurred_at=f"2025-0{month}-10")
    assert memory.recall("Who is release manager?").content == "Bo"


@pytest.mark.parametrize(
    ("later", "is_version"),
    [
        (TEAM.format("Olu"), True),
        (TEAM.format("Olu").replace("Team", "Team of the other project"), False),
        ("Team\n* Release manager: Olu\n* Tester: Ina\n* Operator: Kim", False),
        (TEAM.format("Ana").partition("\n* Tester")[0], False),
    ],
)
def test_a_version_has_the_first_line_and_half_of_the_lines(later: str, is_version: bool) -> None:
    days = (datetime(2025, month, 1, tzinfo=UTC) for month in (2, 8))
    both = [
        Passage(text[-4:], text, at=at) for text, at in zip((TEAM.format("Ana"), later), days, strict=True)
    ]
    assert without_earlier_versions(both) == (both[1:] if is_version else both)


@pytest.mark.parametrize(
    ("after", "is_later"), [(timedelta(milliseconds=20), False), (timedelta(days=2), True)]
)
def test_a_file_is_not_later_since_it_was_copied_after_another(after: timedelta, is_later: bool) -> None:
    """A passage that is not read from a document as a whole is known to be of a file by its conversation alone."""
    told = "Inside the container, the servers listen on port 8000."
    copied = datetime(2026, 11, 30, 16, 52, tzinfo=UTC)
    home = Passage("c1", told, at=copied, document="ports", conversation_id="file:/notes/ports.md")
    other = Passage(
        "c2",
        "Inside the container, the servers listen on port 9000.",
        at=copied + after,
        conversation_id="file:/notes/speed.md",
    )
    question = analyse_question("Which port do the servers listen on inside the container?")
    answered = with_later_notes(question, Reading(told, (home,), 0.9, 0.9), [home, other]).answer
    assert ("9000" in str(answered)) == is_later
