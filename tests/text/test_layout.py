"""Tables, manual pages and other texts whose structure is in their columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.blocks import blocks
from rlm_mem.text.segments import headings_at, split_segments
from rlm_mem.text.sentences import sentences

MANUAL = """\
PUMPD(8)                 Water Works                 PUMPD(8)

NAME
       pumpd - keeps the tank full

OPTIONS
       The following settings are read at the start.

       RefillLevel=, LowLevel=
           Takes a number of litres. Below this level the pump is
           started, unless it is being serviced.

           Defaults to 40.

       Mode=
           Says how the pump runs. One of these:

           eager
               The pump runs as soon as the level sinks.

           lazy
               The pump waits for the night, which is cheaper.

           Defaults to lazy.

EXAMPLES
       This is what most people have:

           [Pump]
           RefillLevel=60

       See the pages of the maker for more.
"""


def shown(text: str) -> list[tuple[str, str, str]]:
    """Kind, first words and context of each segment."""
    return [
        (one.kind, " ".join(text[one.start : one.end].split())[:24], one.under)
        for one in split_segments(text)
    ]


def test_a_manual_page_has_headings_and_terms_with_their_explanations() -> None:
    assert shown(MANUAL) == [
        ("heading", "PUMPD(8) Water Works PUM", ""),
        ("heading", "NAME", ""),
        ("sentence", "pumpd - keeps the tank f", ""),
        ("heading", "OPTIONS", ""),
        ("sentence", "The following settings a", ""),
        ("item", "RefillLevel=, LowLevel= ", ""),
        ("item", "Mode= Says how the pump ", ""),
        ("item", "eager The pump runs as s", "Mode="),
        ("item", "lazy The pump waits for ", "Mode="),
        ("sentence", "Defaults to lazy.", "Mode="),
        ("heading", "EXAMPLES", ""),
        ("sentence", "This is what most people", ""),
        ("code", "[Pump] RefillLevel=60", ""),
        ("sentence", "See the pages of the mak", ""),
    ]


def test_above_a_heading_are_those_it_belongs_to_not_the_section_before() -> None:
    text = "# Pump\n\n## Start\n\nPress it.\n\n### By night\n\nAsk.\n\n## Stop\n\nRelease it.\n"
    places = [text.index(one) for one in ("# Pump", "## Start", "### By", "## Stop", "Release")]
    assert headings_at(text, places) == [[], ["Pump"], ["Pump", "Start"], ["Pump"], ["Pump", "Stop"]]


def test_headings_at_a_place_of_a_manual_page_end_with_the_term_explained_there() -> None:
    level, lazy = MANUAL.index("Defaults to 40"), MANUAL.index("Defaults to lazy")
    assert headings_at(MANUAL, [0, level, lazy]) == [
        [],
        ["PUMPD(8) Water Works", "OPTIONS", "RefillLevel=, LowLevel="],
        ["PUMPD(8) Water Works", "OPTIONS", "Mode="],
    ]


def test_indented_code_stays_code() -> None:
    text = "The call is:\n\n    for line in open(name):\n        print(line, end='')\n        total = total + len(line)"
    assert [one.kind for one in blocks(text)] == ["paragraph", "code"]


@pytest.mark.parametrize(
    "table",
    [
        "| Setting | Standard value |\n|---|---|\n| level | 40 |\n| mode | lazy |",
        "Setting | Standard value\n--- | :---:\nlevel | 40\nmode | lazy",
        "+---------+----------------+\n| Setting | Standard value |\n+=========+================+\n"
        "| level   | 40             |\n+---------+----------------+\n| mode    | lazy           |\n"
        "+---------+----------------+",
        "=======  ==============\nSetting  Standard value\n=======  ==============\nlevel    40\nmode     lazy\n"
        "=======  ==============",
    ],
    ids=["bars", "inner bars", "borders", "columns"],
)
def test_a_row_of_a_table_has_the_header_as_its_context(table: str) -> None:
    text = f"# Pump\n\nWhat can be set:\n\n{table}\n\nAfter the table."
    under = {words.strip("| ").split()[0]: " ".join(context.split()) for _, words, context in shown(text)}
    assert under["level"] == under["mode"] == "Setting Standard value"
    assert not under["After"] and not under["Setting"]
    assert headings_at(text, [text.index("mode")]) == [["Pump", "Setting Standard value"]]
    row = next(one for one in get_analyser().analyse_segments(text) if "mode" in text[one.start : one.end])
    assert {"standard", "valu", "pump", "lazi"} <= set(row.terms) and row.length == 2


def test_a_row_is_found_by_its_header_and_the_heading_of_its_table(base: Path | str) -> None:
    rows = "\n".join(f"| tank{number} | {number} l |" for number in range(60))
    with Memory.open(base) as memory:
        memory.remember(f"# Garden\n\n## Capacity\n\n| Vessel | Volume |\n|---|---|\n{rows}")
        memory.remember("tank41 was painted on Monday.")
        best = memory.search("volume of tank41 in the garden", by="segment", limit=1)[0]
    assert "41 l" in best.snippet


def test_a_word_broken_at_the_end_of_a_line_is_found_whole() -> None:
    terms = get_analyser().indexed_terms("It sets the name\u2010\n       space of the pump.")
    assert "namespac" in terms and "pump" in terms


def test_initials_do_not_end_a_sentence() -> None:
    text = "The pump is by J.R. Miller. It was sold in the U.S. The tank was not."
    assert [text[a:b] for a, b in sentences(text)] == [
        "The pump is by J.R. Miller.",
        "It was sold in the U.S.",
        "The tank was not.",
    ]
