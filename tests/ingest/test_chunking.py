"""ChunkingEngine: bounded sizes, nothing lost, cut where a reader would cut."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from rlm_mem.errors import InputError
from rlm_mem.ingest import chunking
from rlm_mem.ingest.chunking import ChunkingEngine, ChunkResult
from rlm_mem.text.tokens import count_tokens

SENTENCE = "The quick brown fox jumps over the lazy dog near the old mill. "  # 15 tokens or so
REMEMBER = {"min_tokens": 100, "max_tokens": 500, "target_tokens": 250, "overlap_tokens": 40}


def paragraph(tokens: int, word: str = "") -> str:
    """A paragraph of about so many tokens."""
    text = f"{word} {SENTENCE}" * math.ceil(tokens / count_tokens(f"{word} {SENTENCE}"))
    return text.strip()


def own(chunk: ChunkResult) -> str:
    return chunk.content[chunk.overlap :]


def check(source: str, chunks: list[ChunkResult]) -> None:
    """What holds for every text: exact slices, exact counts, nothing lost, nothing doubled but the overlap."""
    position = 0
    for index, chunk in enumerate(chunks):
        assert chunk.index == index
        assert chunk.content == source[chunk.start : chunk.end]
        assert chunk.content.strip()
        assert chunk.tokens == count_tokens(chunk.content)
        own_start = chunk.start + chunk.overlap
        assert chunk.overlap >= 0
        assert chunk.start <= position <= own_start or chunk.overlap == 0
        assert not source[position:own_start].strip(), "characters between two chunks are lost"
        assert own_start < chunk.end
        position = chunk.end
    assert not source[position:].strip()


LINE_KINDS = """
# Heading
- item one of a list
  - nested
1. first
```
```py
x = 1
| a | b |
|---|---|
Anna: hello there, how are you today?
Bob: fine.
Plain words go here. And more of them! Then a third sentence, longer than the others, to fill the line.
no stop
你好。今天很好！我们走吧
👨‍👩‍👧 family
aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
"""
LINES = st.lists(st.sampled_from([*LINE_KINDS.split("\n"), " ", "\t", "e\u0301\u0301"]), max_size=60)
ANY = st.one_of(
    st.text(alphabet=st.characters(categories=None), max_size=400),
    st.builds("\n".join, LINES),
    st.builds("\r\n".join, LINES),
    st.builds(lambda lines, times: "\n".join(lines) * times, LINES, st.integers(1, 20)),
    st.builds(lambda word, times: word * times, st.text(max_size=4), st.integers(0, 2000)),
)
ENGINES = st.sampled_from(
    [
        ChunkingEngine(**REMEMBER),
        ChunkingEngine(),
        ChunkingEngine(20, 60),
        ChunkingEngine(10, 40, target_tokens=20, overlap_tokens=8),
        ChunkingEngine(1, 16, overlap_tokens=0),
    ]
)


@settings(max_examples=150, deadline=None)
@given(ANY, ENGINES)
# Words that count more together than each by itself:
@example(
    "\t\tdon't don't \tdon't \tdon't \t\tdon't \tdon't 漢字\t", ChunkingEngine(min_tokens=4, max_tokens=20)
)
def test_nothing_is_lost_and_no_chunk_exceeds_the_maximum(source: str, engine: ChunkingEngine) -> None:
    chunks = engine.chunk(source)
    check(source, chunks)
    assert all(chunk.tokens <= engine.max_tokens for chunk in chunks)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 900), min_size=1, max_size=12), st.sampled_from(["", "Anna:", "-", "#"]))
def test_every_chunk_of_ordinary_text_is_within_both_bounds(sizes: list[int], mark: str) -> None:
    source = "\n\n".join(f"{mark} {paragraph(size)}".strip() for size in sizes)
    for engine in (ChunkingEngine(**REMEMBER), ChunkingEngine()):
        chunks = engine.chunk(source)
        check(source, chunks)
        if count_tokens(source) < engine.min_tokens:
            assert len(chunks) == 1
        else:
            assert all(engine.min_tokens <= chunk.tokens <= engine.max_tokens for chunk in chunks)


def test_the_defaults_are_those_of_the_specification() -> None:
    engine = ChunkingEngine()
    assert (engine.min_tokens, engine.max_tokens) == (100, 800)


@pytest.mark.parametrize("source", ["", " ", "\n\n\t \r\n", "\u2028"])
def test_nothing_but_space_gives_no_chunks(source: str) -> None:
    assert ChunkingEngine().chunk(source) == []


def test_a_text_below_the_minimum_is_one_chunk() -> None:
    (chunk,) = ChunkingEngine().chunk("User prefers Python over JavaScript", "conv-1", ["coding"])
    assert chunk.content == "User prefers Python over JavaScript"
    assert (chunk.tokens, chunk.type, chunk.conversation_id, chunk.tags) == (
        6,
        "preference",
        "conv-1",
        ["coding"],
    )
    assert chunk.chunk_type == chunk.type


def test_small_paragraphs_are_merged_and_large_enough_ones_are_not() -> None:
    small = [paragraph(30, f"small{n}") for n in range(4)]
    large = [paragraph(150, f"large{n}") for n in range(3)]
    chunks = ChunkingEngine().chunk("\n\n".join([*small, *large]))
    assert chunks[0].content == "\n\n".join(small)
    assert [chunk.content for chunk in chunks[1:]] == large


def test_a_target_gathers_paragraphs_up_to_it() -> None:
    source = "\n\n".join(paragraph(60, f"p{n}") for n in range(40))
    chunks = ChunkingEngine(**REMEMBER).chunk(source)
    assert all(200 <= chunk.tokens <= 310 for chunk in chunks)
    assert all(chunk.overlap == 0 for chunk in chunks), "between paragraphs nothing is repeated"
    assert all(chunk.content.startswith("p") for chunk in chunks)


def test_a_paragraph_above_the_maximum_is_split_at_sentence_ends_with_overlap() -> None:
    source = " ".join(
        f"Sentence number {n} says something about topic {n % 7} in plain words." for n in range(300)
    )
    chunks = ChunkingEngine().chunk(source)
    assert len(chunks) > 3
    check(source, chunks)
    for before, after in pairwise(chunks):
        assert before.content.endswith(".")
        assert after.overlap > 0
        repeated = after.content[: after.overlap].strip()
        assert before.content.endswith(repeated)
        assert repeated.startswith("Sentence number")
        assert count_tokens(repeated) <= 40
        assert own(after).startswith("Sentence number")


def test_no_overlap_when_it_is_turned_off() -> None:
    chunks = ChunkingEngine(100, 800, overlap_tokens=0).chunk(SENTENCE * 300)
    assert len(chunks) > 3
    assert all(chunk.overlap == 0 for chunk in chunks)
    assert "".join(chunk.content for chunk in chunks).replace(" ", "") == (SENTENCE * 300).replace(" ", "")


def test_a_long_sentence_repeats_only_its_last_words() -> None:
    source = "and then they walked on along the river, " * 400
    chunks = ChunkingEngine(**REMEMBER).chunk(source)
    check(source, chunks)
    assert all(
        chunk.overlap > 0 and count_tokens(chunk.content[: chunk.overlap]) <= 40 for chunk in chunks[1:]
    )


def test_a_code_block_that_fits_is_never_cut() -> None:
    code = (
        "```python\n" + "\n".join(f"value_{n} = compute({n})" for n in range(30)) + "\n\nprint(value_1)\n```"
    )
    assert 200 < count_tokens(code) < 450
    source = "\n\n".join(
        [paragraph(90), code, paragraph(180), code.replace("value", "other"), paragraph(110)]
    )
    chunks = ChunkingEngine(**REMEMBER).chunk(source)
    check(source, chunks)
    for block in (code, code.replace("value", "other")):
        assert sum(block in chunk.content for chunk in chunks) == 1


def test_a_code_block_above_the_maximum_is_cut_between_lines() -> None:
    lines = [f"value_{n} = compute({n})" for n in range(200)]
    source = "```python\n" + "\n".join(lines) + "\n```"
    chunks = ChunkingEngine(**REMEMBER).chunk(source)
    check(source, chunks)
    assert len(chunks) > 2
    whole = set(source.splitlines())
    assert all(line in whole for chunk in chunks for line in chunk.content.splitlines())


def test_a_list_that_fits_stays_whole_with_its_introduction() -> None:
    items = "The release needs these steps:\n" + "\n".join(
        f"- step {n}: {SENTENCE.strip()}" for n in range(15)
    )
    assert 250 < count_tokens(items) < 500
    source = "\n\n".join([paragraph(240, "before"), items, paragraph(240, "after")])
    chunks = ChunkingEngine(**REMEMBER).chunk(source)
    check(source, chunks)
    assert any(items in chunk.content for chunk in chunks)


def test_a_list_above_the_maximum_is_cut_between_items() -> None:
    source = "\n".join(f"- item {n}: {SENTENCE.strip()}" for n in range(120))
    chunks = ChunkingEngine(**REMEMBER).chunk(source)
    check(source, chunks)
    assert all(chunk.content.startswith("- item") and chunk.overlap == 0 for chunk in chunks)


def test_a_table_is_cut_between_rows() -> None:
    source = "| name | value |\n|---|---|\n" + "\n".join(
        f"| row {n} | the value of row {n} |" for n in range(150)
    )
    chunks = ChunkingEngine(**REMEMBER).chunk(source)
    check(source, chunks)
    assert all(chunk.content.startswith("|") and chunk.content.endswith("|") for chunk in chunks)


def test_dialogue_is_cut_between_turns_and_repeats_nothing() -> None:
    turns = [
        f"{('Caroline', 'Melanie')[n % 2]}: {SENTENCE * (1 + n % 4)}That was number {n}." for n in range(80)
    ]
    source = "\n".join(turns)
    chunks = ChunkingEngine(**REMEMBER).chunk(source)
    check(source, chunks)
    assert [line for chunk in chunks for line in chunk.content.split("\n")] == turns
    assert all(chunk.overlap == 0 and 150 <= chunk.tokens <= 350 for chunk in chunks)


def test_a_question_stays_with_its_reply() -> None:
    turns = []
    for n in range(60):
        turns.append(f"Anna: {SENTENCE * 2}What do you think of number {n}?")
        turns.append(f"Bert: {SENTENCE * 2}I think number {n} is fine.")
    chunks = ChunkingEngine(**REMEMBER).chunk("\n".join(turns))
    assert all(chunk.content.startswith("Anna:") for chunk in chunks)


def test_sections_large_enough_start_their_own_chunk_and_headings_are_never_left_behind() -> None:
    source = "\n\n".join(f"## Section {n}\n\n{paragraph(180)}" for n in range(8))
    chunks = ChunkingEngine(**REMEMBER).chunk(source)
    assert [chunk.content.split("\n")[0] for chunk in chunks] == [f"## Section {n}" for n in range(8)]
    small = "\n\n".join(f"## Section {n}\n\n{paragraph(45)}" for n in range(20))
    for chunk in ChunkingEngine(**REMEMBER).chunk(small):
        assert chunk.content.startswith("## Section")
        assert chunk.tokens >= 100


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("letters", "a" * 300_000),
        ("digits", "1234567890" * 20_000),
        ("base64", "Zm9vYmFyYmF6cXV4MTIzNDU2" * 8_000),
        ("chinese without spaces", "记忆是人类的重要能力" * 10_000),
        ("chinese with stops", "记忆是人类的重要能力。" * 8_000),
        ("emoji families", "👨‍👩‍👧‍👦" * 5_000),
        ("flags", "🇩🇪🇫🇷" * 5_000),
        ("combining marks", "e" + "\u0301" * 20_000),
        ("nul", "\x00" * 50_000),
        ("one line of words", "word " * 60_000),
        ("short lines", "ok\n" * 15_000),
        ("short paragraphs", "ok\n\n" * 10_000),
        ("html", "<div><p>text</p></div>" * 8_000),
    ],
    ids=lambda value: value if len(value) < 40 else "",
)
def test_any_run_however_long_is_cut_within_the_bounds(name: str, source: str) -> None:
    for engine in (ChunkingEngine(**REMEMBER), ChunkingEngine()):
        chunks = engine.chunk(source)
        check(source, chunks)
        assert all(engine.min_tokens <= chunk.tokens <= engine.max_tokens for chunk in chunks), name


def test_no_cut_falls_inside_what_a_reader_sees_as_one_character() -> None:
    for cluster in ("👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "e\u0301"):
        source = cluster * 3_000
        for chunk in ChunkingEngine(**REMEMBER).chunk(source):
            assert len(chunk.content) % len(cluster) == 0
            assert chunk.content.startswith(cluster)


def test_windows_line_ends_are_kept_and_cut_like_others() -> None:
    paragraphs = [paragraph(80, f"p{n}") for n in range(20)]
    windows = "\r\n\r\n".join(paragraphs)
    chunks = ChunkingEngine(**REMEMBER).chunk(windows)
    check(windows, chunks)
    assert [part for chunk in chunks for part in chunk.content.split("\r\n\r\n")] == paragraphs


def test_far_apart_words_do_not_break_the_maximum() -> None:
    source = ("word" + " " * 50_000) * 20 + "\n" * 50_000 + "end"
    chunks = ChunkingEngine(**REMEMBER).chunk(source)
    check(source, chunks)
    assert all(chunk.tokens <= 500 for chunk in chunks)


def test_the_work_grows_in_proportion_to_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: the tokens that are counted per token of text do not grow with its length."""
    from rlm_mem.text import tokens

    counted = 0

    def counting(texts: list[str]) -> list[int]:
        nonlocal counted
        counted += sum(map(len, texts))
        return tokens.count_many(texts)

    monkeypatch.setattr(chunking, "count_many", counting)
    monkeypatch.setattr(chunking, "count_tokens", lambda text: counting([text])[0])
    ratios = []
    for times in (1, 16):
        for source in (paragraph(4_000 * times), "x" * 20_000 * times, "Anna: hi\nBob: ho\n" * 300 * times):
            counted = 0
            ChunkingEngine(**REMEMBER).chunk(source)
            ratios.append(counted / len(source))
    assert all(large <= 1.5 * small + 1 for small, large in zip(ratios[:3], ratios[3:], strict=True)), ratios


@pytest.mark.slow
def test_five_megabytes_take_seconds() -> None:
    import time

    source = "\n\n".join(paragraph(40 + n % 300, f"p{n}") for n in range(6_700))
    assert len(source) > 5_000_000
    started = time.process_time()
    chunks = ChunkingEngine(**REMEMBER).chunk(source)
    assert time.process_time() - started < 30  # about 2 s of one core
    assert all(100 <= chunk.tokens <= 500 for chunk in chunks)


@pytest.mark.parametrize(
    "sizes",
    [
        {"min_tokens": 0},
        {"min_tokens": -1},
        {"min_tokens": "100"},
        {"min_tokens": 1.5},
        {"min_tokens": True},
        {"min_tokens": None},
        {"min_tokens": 900},
        {"max_tokens": 50},
        {"max_tokens": float("nan")},
        {"max_tokens": 1},
        {"target_tokens": 50},
        {"target_tokens": 900},
        {"target_tokens": "x"},
        {"overlap_tokens": -1},
        {"overlap_tokens": 500},
    ],
    ids=repr,
)
def test_sizes_that_make_no_sense_are_refused_with_one_sentence(sizes: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        ChunkingEngine(**sizes)
    assert "_tokens" in caught.value.message
    assert "\n" not in caught.value.message


@given(st.text(alphabet="ab .\n\t-#|*`:1\r\u00a0\u2028Ω", max_size=80))
def test_a_short_text_is_one_chunk_with_the_bounds_that_parsing_it_gives(text: str) -> None:
    engine = ChunkingEngine(**REMEMBER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunking, "_SHORT", 0)
        parsed = engine.chunk(text)
    assert engine.chunk(text) == parsed


def test_with_sections_each_heading_starts_a_chunk_unless_little_is_below_it() -> None:
    text = (
        "# Ferry\n\n## Focus\nThe offline check of the tickets, on all of the tablets on board.\n\n"
        "## Next\n- A load test with 500 tablets, before the timetable of autumn.\n- Refunds\n\n## Open\nNone.\n"
    )
    (whole,) = ChunkingEngine().chunk(text)
    assert whole.content == text.strip()
    pieces = ChunkingEngine(sections=True).chunk(text)
    assert [piece.content.partition("\n")[0] for piece in pieces] == ["# Ferry", "## Next"]
    assert "".join(piece.content for piece in pieces).replace("\n", "") == text.replace("\n", "")
    long = "## Rules\n\n" + "\n\n".join(f"Rule {number} has some words of its own." for number in range(200))
    assert max(piece.tokens for piece in ChunkingEngine(sections=True).chunk(long)) <= 800
