"""Questions for when something began to hold, and for what held before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm_mem import Memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "brain") as opened:
        for number, text in enumerate(("Rain all day.", "The boiler was serviced.", "Lost at cards."), 1):
            opened.remember(text, occurred_at=f"2025-03-0{number}")
        yield opened


def told(memory: Memory, earlier: str, later: str) -> None:
    memory.remember(earlier, occurred_at="2025-02-10")
    memory.remember(later, occurred_at="2025-09-10")


@pytest.mark.parametrize(
    ("earlier", "later", "question", "day"),
    [
        (
            "The library lends 5 books per card.",
            "The library lends 8 books per card now.",
            "Since when does the library lend 8 books?",
            "10 September 2025",
        ),
        (
            "The pool opens at 8:00.",
            "As of 1 October 2025 the pool opens at 9:15.",
            "Since when does the pool open at 9:15?",
            "1 October 2025",
        ),
        (
            "Der Markt ist am Hafen.",
            "Der Markt ist jetzt am Bahnhof.",
            "Seit wann ist der Markt am Bahnhof?",
            "2025-09-10: Der Markt ist jetzt am Bahnhof.",
        ),
        (
            "The release manager is Ines.",
            "Ines handed that over to Omar Reyes.",
            "Since when is Omar the release manager?",
            "10 September 2025",
        ),
    ],
)
def test_the_day_since_which_something_holds_is_that_of_the_change(
    memory: Memory, earlier: str, later: str, question: str, day: str
) -> None:
    told(memory, earlier, later)
    assert memory.recall(question).content == day


@pytest.mark.parametrize(
    "question",
    ["Since when does the ferry leave at 7?", "Since when does the ferry leave at 9?"],
)
def test_a_note_without_a_change_or_about_a_plan_tells_no_beginning(memory: Memory, question: str) -> None:
    told(memory, "The ferry leaves at 7.", "Maybe the ferry will leave at 9 from next year.")
    assert "2025" not in str(memory.recall(question).content)


@pytest.mark.parametrize(
    ("earlier", "later", "question", "former"),
    [
        (
            "Our vet is Dr. Salk.",
            "Dr. Salk has retired, Dr. Bloom is our vet now.",
            "Who used to be our vet?",
            "Dr. Salk",
        ),
        (
            "The release manager is Ines.",
            "Ines handed that over to Omar Reyes.",
            "Who was the release manager before Omar?",
            "Ines",
        ),
        (
            "Den Schlüssel verwaltet Frau Ebert.",
            "Den Schlüssel verwaltet jetzt Herr Ohm.",
            "Wer hat früher den Schlüssel verwaltet?",
            "Ebert",
        ),
        (
            "El taller está en la calle Olmo.",
            "El taller ahora está en la calle Fresno.",
            "¿Dónde estaba antes el taller?",
            "Olmo",
        ),
        (
            "Le code du portail est 4471.",
            "Le code du portail est désormais 9025.",
            "Quel était l'ancien code du portail ?",
            "4471",
        ),
    ],
)
def test_a_former_value_is_told_by_the_note_that_another_one_changes(
    memory: Memory, earlier: str, later: str, question: str, former: str
) -> None:
    told(memory, earlier, later)
    answer = str(memory.recall(question).content)
    assert former in answer
    assert later not in answer


def test_what_another_sentence_of_the_minutes_leaves_as_it_is_takes_no_change_back(memory: Memory) -> None:
    told(
        memory,
        "Supplier for the slate is Brunner Stone.",
        "Long minutes. The fan is loud again. Brunner can't deliver any more, so the slate comes from Alpin Quarry now."
        " The summer party stays as it is. The coffee fund is empty.",
    )
    question = "Who is the supplier for the slate?"
    assert "Alpin" in str(memory.recall(question).content)
    assert "Alpin" in memory.search(question)[0].snippet


def test_a_title_ends_no_sentence_and_the_kind_asked_for_need_not_be_named(memory: Memory) -> None:
    told(memory, "Die Praxis von Dr. Uhl ist mittwochs offen.", "La poste ferme à 17 h.")
    assert "mittwochs" in str(memory.recall("Wann ist die Praxis von Dr. Uhl offen?").content)
    assert "17 h" in str(memory.recall("À quelle heure ferme la poste ?").content)


def test_a_role_that_answers_is_given_with_the_name_of_who_has_it_now(memory: Memory) -> None:
    memory.remember("The release manager signs off every hotfix.", occurred_at="2025-02-08")
    question = "Who signs off every hotfix?"
    assert memory.recall(question).content == "The release manager"
    told(memory, "The release manager is Ines.", "The release manager is now Omar Reyes.")
    assert memory.recall(question).content == "The release manager: Omar Reyes"
    memory.remember("Omar Reyes handed that over to Bea Lund.", occurred_at="2025-11-10")
    found = memory.recall(question)
    assert "Bea Lund" in f"{found.content} {found.suggestion}"
