"""Changes that a later note states itself: in which words, of what, and what does not change it."""

from __future__ import annotations

import pytest

from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.differences import surest
from rlm_mem.text.statements import statements_in

ENGLISH = get_analyser("english")


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("The picnic is on Sunday.", "There will be no picnic on Sunday."),
        ("The team lunch is on Thursdays.", "No more team lunch on Thursdays."),
        ("The picnic is on Sunday.", "The picnic won't take place."),
        ("The picnic is on Sunday.", "The picnic will not happen on Sunday."),
        ("The picnic is on Sunday.", "The picnic: make that Monday."),
        ("The queue size is 4.", "We scaled the queue size from 4 to 12."),
        ("The cat's vet is Dr. Fink.", "The cat has a new vet: Dr. Amsel."),
        ("The exam is on 5 May.", "The exam, originally on 5 May, is on 9 May."),
        ("The default port is 80.", "default port changed: 80 -> 8080"),
        ("Ana leads the choir.", "Ben took over the choir from Ana."),
        ("The boat is called Tern.", "The Tern is called Gull now."),
        ("The captain is Ari.", "Bo is captain now, not Ari."),
        ("The keys are in the drawer.", "The keys were moved to the box."),
        ("The office is in Graz.", "The office isn't in Graz but in Linz."),
        ("# Tom\n\nLives in Graz.", "# Tom\n\nMoved to Lyon."),
        ("Tom lives in Graz.", "# Tom\n\n- moved to Lyon"),
        ("Lives in Graz, works for the post.", "Moved to Lyon."),
        *(
            ("I live in Graz.", f"# {heading}\n\nMoved to Lyon.")
            for heading in ("Notes", "Status Update", "About Me")
        ),
        ("# Tom\n\n- works at the mill", "# Tom\n\n- no longer at the mill, works at the quarry"),
        ("The bins are collected on Tuesday.", "The council changed the bin day to Friday."),
        ("Expense reports are due on the 5th.", "Expense reports are due on the 3rd now."),
    ],
)
def test_a_later_note_states_that_it_replaces_an_earlier_one(earlier: str, later: str) -> None:
    found = surest(statements_in(later, ENGLISH), statements_in(earlier, ENGLISH))
    assert found is not None and found[0].kind == "replace" and found[0].said, found


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("I always take the bus.", "I take the bus."),
        ("The door of pump 1 is open.", "The door of pump 2 is shut now."),
        ("The tests run in parallel.", "The tests were converted to pytest."),
        ("The picnic is on Sunday.", "Some of the picnic is in the fridge."),
        ("# Ines\n\nLives in Graz.", "# Tom\n\nMoved to Lyon."),
        ("# Tom\n\nWorks at the quarry.", "# Tom\n\nNo longer at the mill, works at the quarry."),
    ],
)
def test_a_later_note_that_leaves_an_earlier_one_in_force(earlier: str, later: str) -> None:
    assert surest(statements_in(later, ENGLISH), statements_in(earlier, ENGLISH)) is None


@pytest.mark.parametrize("number", ["①", "²"])
def test_a_sentence_may_begin_with_a_digit_that_is_no_decimal_one(number: str) -> None:
    (stated,) = statements_in(f"{number}. The office is in Paris", ENGLISH)
    assert (stated.shown, stated.number) == ("Paris", None)
