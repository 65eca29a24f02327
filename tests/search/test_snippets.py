"""Snippets: the passage that matched, short enough to show."""

from __future__ import annotations

import time

from hypothesis import given, strategies as st

from rlm_mem.chunk import Chunk
from rlm_mem.ingest.remember import remember
from rlm_mem.search.api import excerpts, search
from rlm_mem.search.query import analyse_query
from rlm_mem.search.snippets import MAX_SNIPPET, snippet
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.text.analysis import get_analyser

QUERY = analyse_query("Where is the lighthouse keeper's violin?", get_analyser())


def test_a_short_segment_is_shown_whole_on_one_line() -> None:
    content = "Before.\nThe violin is\n  in the attic. After."
    assert snippet(content, 8, 37, QUERY) == "The violin is in the attic."


def test_a_long_segment_is_cut_around_the_words_that_matched() -> None:
    text = "filler words here " * 60 + "the lighthouse keeper keeps a violin " + "more filler text " * 60
    shown = snippet(text, 0, len(text), QUERY)
    assert "lighthouse keeper keeps a violin" in shown
    assert shown.startswith("…") and shown.endswith("…")
    assert len(shown) <= MAX_SNIPPET


def test_a_heading_is_shown_with_its_section() -> None:
    content = "# Progress\n\n## Violins\n- in the attic\n\n### Repairs\nA peg.\n\n## Bows\nNone."
    start = content.index("## Violins")
    assert snippet(content, start, start + 10, QUERY) == "## Violins - in the attic ### Repairs A peg."
    assert snippet(content, 0, 10, QUERY).endswith("## Bows None."), "a title with all below it"
    end = content.index("## Bows") + len("## Bows")
    assert snippet(content[:end], end - 7, end, QUERY) == "## Bows"
    assert snippet("#tag on the violin\nMore.", 0, 18, QUERY) == "#tag on the violin"
    long = "## The violin\n" + "filler words here " * 10_000
    assert len(snippet(long, 0, 13, QUERY)) <= MAX_SNIPPET


def test_a_cut_falls_between_words_unless_the_word_is_long() -> None:
    for begun, kept in ((39, 0), (40, 40)):  # characters of the last word before the cut
        before = "violin " + "y" * (MAX_SNIPPET - 3 - len("violin  ") - begun)
        text = f"{before} {'z' * 100}"
        assert snippet(text, 0, len(text), QUERY) == f"{before} {'z' * kept}".rstrip() + "…"
    text = f"{'x' * 300} {'w' * 30} the violin " + "y " * 300
    assert snippet(text, 0, len(text), QUERY).startswith("…www")
    text = f"{'x' * 300} the violin " + "y " * 300
    assert snippet(text, 0, len(text), QUERY).startswith("…xxx"), "the space is 47 characters further"


def test_a_cut_segment_begins_with_the_sentence_that_matched_if_that_is_near() -> None:
    sentence = (
        "I prefer quiet instruments, e.g. this one, and of all on the wall the lighthouse keeper's violin."
    )
    near = f"{'Filler words here. ' * 30}{sentence} {'More filler text. ' * 30}"
    assert snippet(near, 0, len(near), QUERY).startswith(f"… {sentence} More filler")
    far = f"{'Filler words here. ' * 30}I prefer {'quiet things, and ' * 30}the lighthouse keeper's violin."
    shown = snippet(far, 0, len(far), QUERY)
    assert shown.startswith("…") and shown.endswith("the lighthouse keeper's violin.")


TABLE = """# Instruments

| Instrument | Keeper | Place |
|:--|---|---|
| drum | the miller | barn |
| violin | the lighthouse keeper | attic |
| harp | Ana | hall |
"""


def test_a_row_of_a_table_is_shown_with_its_head_and_the_head_with_the_row_that_matches(
    store: ChunkStore,
) -> None:
    remember(store, TABLE)
    head = "| Instrument | Keeper | Place |"
    for question, row in (
        ("Where is the harp?", "| harp | Ana | hall |"),
        ("keeper instrument place", "| violin | the lighthouse keeper | attic |"),
        ("instrument place of the miller", "| drum | the miller | barn |"),
        ("place of the attic", "| violin | the lighthouse keeper | attic |"),
    ):
        assert search(store, question)[0].snippet == f"{head} … {row}"
    start = TABLE.index("| Instrument")
    assert snippet(TABLE, start, TABLE.index("| drum"), QUERY) == (
        f"{head} … | violin | the lighthouse keeper | attic |"
    )
    alone = TABLE[: TABLE.index("| drum")]
    assert snippet(alone, start, len(alone), QUERY) == f"{head} |:--|---|---|", "a head without rows"
    wide = TABLE.replace("Place", "Place " * 80)
    assert snippet(wide, wide.index("| harp"), len(wide), QUERY) == "| harp | Ana | hall |", "no room"
    plain = "| a | b |\n| c | d |\n"
    assert snippet(plain, 10, 20, QUERY) == "| c | d |", "no head"


def test_an_excerpt_is_cut_around_the_row_of_a_snippet(store: ChunkStore) -> None:
    row = "| violin | the lighthouse keeper | attic |"
    text = f"{'Filler words here. ' * 60}\n\n{TABLE}\n{'More filler text. ' * 60}"
    chunk = Chunk("chunk-2026-01-01-00000001", text, 1)
    lines = {chunk.id: [f"| Instrument | Keeper | Place | … {row}"]}
    assert row in excerpts(store, "unrelated", [chunk], longest=[300], lines=lines)[chunk.id]


@given(st.text(max_size=1200), st.integers(0, 1200), st.integers(0, 1200))
def test_any_stretch_of_any_text_gives_one_short_line(text: str, start: int, end: int) -> None:
    shown = snippet(text, min(start, len(text)), min(end, len(text)), QUERY)
    assert len(shown) <= MAX_SNIPPET
    assert "\n" not in shown


def test_an_excerpt_of_a_very_long_text_reads_one_part_of_it_around_what_was_found(store: ChunkStore) -> None:
    filler, said = (
        "田中さんは電車が好きです。" * 40_000,
        "The lighthouse keeper hides the violin in the attic.",
    )
    chunk = Chunk("chunk-2026-01-01-00000001", f"{filler}{said} {filler}", 1)
    began = time.process_time()
    for lines in ([said], []):  # what a search found, or only the words of the question
        found = excerpts(store, QUERY.text, [chunk], longest=[300], lines={chunk.id: lines})[chunk.id]
        assert said in found and found.startswith("…") and found.endswith("…") and len(found) <= 300
    assert time.process_time() - began < 2, "a second for each 200,000 characters, if all were read"
