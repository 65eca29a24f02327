"""Named values: cells of tables, and lines with a label."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm_mem import Memory

NOTES = [
    "# Project setup\n\n- Node version: 18\n- Package manager: npm\n- Deploy: push to the branch release",
    "Database: PostgreSQL 14\nHost: db1.internal\nPort: 5433\nBackups: nightly at 02:30",
    "| service | owner | port |\n|---|---|---|\n| billing | Dana | 8080 |\n| search | Ben | 8090 |\n"
    "| mail | Ines | 2525 |",
    "Meeting with Acme, 4 March\nAttendees: Joe, Dana, Ben\nThey want the export as CSV.\nNext call: 18 March, 15:00.",
    "```yaml\nretries: 3\ntimeout: 30s\nname: 'gate way'\n```",
    "Boiler: serviced in May. The engineer was Huber.",
]


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with Memory.open(tmp_path_factory.mktemp("fields"), llm="offline") as memory:
        for note in NOTES:
            memory.remember(note)
        yield memory


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("What is the package manager?", "npm"),
        ("Which Node version does the project use?", "18"),
        ("What is the host of the database?", "db1.internal"),
        ("Which port does the database use?", "5433"),
        ("Who owns the search service?", "Ben"),
        ("Who is the owner of the mail service?", "Ines"),
        ("Which port does billing use?", "8080"),
        ("Who attended the meeting with Acme?", "Joe, Dana, Ben"),
        ("When is the next call with Acme?", "18 March, 15:00"),
        ("What is the timeout?", "30s"),
    ],
)
def test_a_value_is_found_by_its_label_its_row_and_its_note(
    memory: Memory, question: str, answer: str
) -> None:
    found = memory.recall(question)
    assert (found.content, found.outcome) == (answer, "answered")


@pytest.mark.parametrize(
    "question",
    [
        "Who owns the payments service?",
        "Which port does the webhook use?",
        "What is the host of the mail archive?",
        "Who is the engineer of the billing service?",
        "When is the next call with Nordwind?",
    ],
)
def test_a_value_of_another_row_or_note_is_no_answer(memory: Memory, question: str) -> None:
    assert memory.recall(question).outcome != "answered"


def test_a_value_that_differs_between_notes_is_not_sure(tmp_path: Path) -> None:
    with Memory.open(tmp_path, llm="offline") as memory:
        memory.remember("Gateway\nTimeout: 30 s\nRetries: 3")
        memory.remember("Resolver\nTimeout: 5 s\nRetries: 1")
        assert memory.recall("What is the timeout of the resolver?").content == "5 s"
        assert memory.recall("What is the timeout?").confidence <= 0.5


def test_a_later_note_about_another_value_of_the_same_note_is_not_added(tmp_path: Path) -> None:
    with Memory.open(tmp_path, llm="offline") as memory:
        memory.remember(NOTES[1], occurred_at="2026-03-01")
        memory.remember("The database moved to db2.internal.", occurred_at="2026-03-09")
        assert memory.recall("When are the backups made?").content == "nightly at 02:30"
        moved = memory.recall("What is the host of the database?").content
        assert moved is not None and "db1.internal" in moved and "db2.internal" in moved
