"""Two of the best notes of which one changes the other are suggested if no sentence of either clearly answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.recall.recall import RecallResult

_OTHERS = (
    "Rain all day, repaired the gutter with Sam.",
    "Watched a film about bees in the town hall.",
    "Bought two chairs at the flea market for 35.",
    "Planted tulips behind the shed.",
    "Walked along the canal to the old mill, 14 km.",
)


def ask(folder: Path, question: str, earlier: str, later: str, as_of: str | None = None) -> RecallResult:
    with Memory.open(folder / "brain", llm="offline") as memory:
        for month, note in enumerate(_OTHERS, 1):
            memory.remember(note, occurred_at=f"2025-0{month}-03")
        memory.remember(earlier, occurred_at="2025-03-10")
        memory.remember(later, occurred_at="2025-09-21")
        return memory.recall(question, as_of=as_of)


@pytest.mark.parametrize(
    ("question", "earlier", "later", "value"),
    [
        ("Wie hoch ist der Jahresbeitrag?", "Der Jahresbeitrag beträgt 60 Euro.",
         "Protokoll: Jahresbeitrag auf 72 Euro angehoben, gilt ab sofort.", "72 Euro"),
        ("Where are the heifers grazing?", "The heifers are in the lower paddock.",
         "Water standing everywhere this morning. Walked the heifers up to Barrow Hill, they are settled there.",
         "Barrow Hill"),
        ("What does an egg cost at the gate?", "Eggs are 30 cents each at the gate.",
         "Frost again. Repainted the sign at the gate (eggs 35 cents each, honey sold out) and fed the geese.",
         "35 cents"),
    ],
)  # fmt: skip
def test_a_change_that_no_sentence_answers_is_suggested_with_both_days(
    tmp_path: Path, question: str, earlier: str, later: str, value: str
) -> None:
    result = ask(tmp_path, question, earlier, later)
    assert result.content is None
    told = str(result.suggestion)
    assert told.startswith(f"{earlier.rstrip('.')} (2025-03-10); later, 2025-09-21: ")
    assert value in told
    assert len(result.sources) >= 2


def test_two_notes_that_match_little_of_a_question_are_not_suggested(tmp_path: Path) -> None:
    result = ask(
        tmp_path,
        "Which linter do we use?",
        "ESLint was dropped for Biome in May, it is ten times faster on our tree.",
        "Deskew was rewritten in Rust by Marek, 6 times faster.",
    )
    assert result.content is None
    assert result.suggestion is None


def test_a_later_note_on_another_matter_is_no_change_of_the_earlier_one(tmp_path: Path) -> None:
    result = ask(
        tmp_path,
        "Wann wird die blaue Tonne abgeholt?",
        "Müll: Restmüll wird dienstags geholt, die blaue Tonne (Papier) montags. Beides am besten am Abend vorher "
        "raus, die kommen gegen halb sieben.",
        "Ben hat Läuse (die halbe Klasse). Jonas hat seit Oktober eine neue Regelung im Büro: nur noch freitags "
        "Homeoffice. Ich brauche also montags jemanden fürs Abholen.",
    )
    assert "Läuse" not in f"{result.content} {result.suggestion}"


def test_as_of_a_day_before_the_change_the_later_note_is_not_suggested(tmp_path: Path) -> None:
    result = ask(
        tmp_path,
        "What does an egg cost at the gate?",
        "Eggs are 30 cents each at the gate.",
        "Frost again. Repainted the sign at the gate (eggs 35 cents each, honey sold out) and fed the geese.",
        as_of="2025-06-01",
    )
    assert "35 cents" not in f"{result.content} {result.suggestion}"
