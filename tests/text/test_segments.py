"""Segments, blocks, sentences and speakers: what a reader would see as one unit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from rlm_mem.text.blocks import _PLAIN_LINE, _parse, _Scanner, blocks, pieces, speaker_of
from rlm_mem.text.segments import LARGEST, LONG_CODE, Segment, split_segments
from rlm_mem.text.sentences import _ASCII_END, _END, sentences

LINE_KINDS = """
# Heading
Title
=====
---
- item one
  - nested
1. first
* * *
```
```py
~~~~
x = 1
    indented
| a | b |
|---|---|
> quote
Anna: hello there.
**Bob:** yes?
[10:32] carl: late
Plain words go here. And more of them!
no stop
Note: a label
你好。今天很好！
👨‍👩‍👧 family
Mr. Smith left. He did.
"""
ODD_LINES = [" ", "\tcode", "e\u0301\u0301", "\u200d", "a\ud800b", "\x0b", "\u2028x", "\r"]
LINES = st.lists(st.sampled_from([*LINE_KINDS.split("\n"), *ODD_LINES]), max_size=40)
ANY = st.one_of(
    st.text(alphabet=st.characters(categories=None), max_size=300),
    st.builds("\n".join, LINES),
    st.builds("\r\n".join, LINES),
    st.builds(lambda lines, times: "\n".join(lines) * times, LINES, st.integers(1, 30)),
)


def texts(content: str) -> list[str]:
    return [content[segment.start : segment.end] for segment in split_segments(content)]


def check_cover(content: str, found: list[Segment]) -> None:
    position = 0
    for segment in found:
        assert not content[position : segment.start].strip(), "characters between segments are lost"
        assert position <= segment.start < segment.end <= len(content)
        assert segment.start <= segment.body_start <= segment.end
        assert not content[segment.start].isspace()
        assert not content[segment.end - 1].isspace()
        position = segment.end
    assert not content[position:].strip()


@settings(max_examples=300, deadline=None)
@given(ANY)
def test_every_visible_character_lies_in_exactly_one_segment_in_order(content: str) -> None:
    check_cover(content, split_segments(content))


@settings(max_examples=200, deadline=None)
@given(ANY)
def test_blocks_cover_every_visible_character_in_order(content: str) -> None:
    position = 0
    for block in blocks(content):
        assert not content[position : block.start].strip()
        assert block.start < block.end
        position = block.end
    assert not content[position:].strip()


@settings(max_examples=300, deadline=None)
@given(st.from_regex(r"\A[A-Za-zÀ-ÿ日][^\r\n:：]{0,60}\Z") | ANY)
def test_one_plain_line_is_the_paragraph_that_the_scan_of_its_lines_finds(content: str) -> None:
    if _PLAIN_LINE.match(content):
        assert list(_parse(content)) == _Scanner(content).scan()


@settings(max_examples=200, deadline=None)
@given(ANY)
def test_sentences_cover_every_visible_character_in_order(content: str) -> None:
    position = 0
    for start, end in sentences(content):
        assert not content[position:start].strip()
        assert start < end
        position = end
    assert not content[position:].strip()


@settings(max_examples=200, deadline=None)
@given(ANY, st.integers(1, 60))
def test_pieces_are_bounded_and_lose_nothing(content: str, limit: int) -> None:
    spans = pieces(content, 0, len(content), limit)
    assert all(0 < end - start <= limit for start, end in spans)
    assert "".join("".join(content[a:b] for a, b in spans).split()) == "".join(content.split())


@pytest.mark.parametrize(
    "content",
    [
        "a" * 200_000,
        "word " * 40_000,
        "记忆是人类的，" * 30_000,
        "a\n" * 100_000,
        "- item\n" * 30_000,
        "```\n" + "x = 1\n" * 30_000 + "```",
        "Anna: " + "hello there. " * 20_000,
        "👨‍👩‍👧‍👦" * 20_000,
        "```js\n" * 30_000,
        "\n" * 500_000 + "x",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_no_segment_grows_without_bound(content: str) -> None:
    found = split_segments(content)
    check_cover(content, found)
    assert max(segment.end - segment.start for segment in found) <= max(LARGEST, LONG_CODE)


def test_dialogue_lines_are_one_segment_each_with_their_author() -> None:
    content = "Caroline: Hey Mel! Good to see you!\nMelanie: Hi. I'm swamped. What's up?\nCaroline: Not much."
    found = split_segments(content)
    assert [(segment.kind, segment.author) for segment in found] == [
        ("turn", "Caroline"),
        ("turn", "Melanie"),
        ("turn", "Caroline"),
    ]
    assert content[found[1].body_start :].startswith("Hi. I'm swamped")


def test_a_long_turn_becomes_several_segments_of_the_same_author() -> None:
    content = "Anna: hi\nAssistant: " + "This is one more sentence of a long reply. " * 40 + "\nAnna: thanks"
    found = split_segments(content)
    assert len(found) > 4
    assert {segment.author for segment in found[1:-1]} == {"Assistant"}


def test_paragraphs_after_a_turn_keep_the_speaker_until_a_heading() -> None:
    content = "User: a question\n\nAssistant: an answer\n\n- with a list\n\nand more\n\n# Next\n\nplain text"
    assert [segment.author for segment in split_segments(content)] == [
        "User",
        "Assistant",
        "Assistant",
        "Assistant",
        None,
        None,
    ]


def test_sentences_headings_items_and_code_are_distinguished() -> None:
    content = (
        "# Plan\n\nWe start with the parser, which is the part that everything else in the new pipeline depends on. "
        "Then we measure it on the real corpus and compare the figures with last year's.\n\n"
        "- first item\n- second item\n\n```python\nx = 1\n\ny = 2\n```\n"
    )
    assert [
        (segment.kind, content[segment.start : segment.end][:8]) for segment in split_segments(content)
    ] == [
        ("heading", "# Plan"),
        ("sentence", "We start"),
        ("sentence", "Then we "),
        ("item", "- first "),
        ("item", "- second"),
        ("code", "```pytho"),
    ]


def test_a_short_paragraph_is_one_segment_and_tiny_sentences_join_a_neighbour() -> None:
    assert texts("He left. She stayed.") == ["He left. She stayed."]
    long = "The committee met for the third time this year to discuss the new building and its cost. "
    assert texts(long + long + "Yes.") == [long.strip(), long + "Yes."]


def test_lines_that_are_complete_are_not_joined() -> None:
    log = "\n".join(
        f"2026-01-{day:02d} Backup finished without any error on host alpha" for day in range(1, 9)
    )
    assert texts(log) == log.splitlines()


def test_wrapped_prose_is_not_cut_at_line_ends() -> None:
    wrapped = (
        "The first sentence of this paragraph was wrapped by an editor that\nlikes short lines and goes on here. "
        "The second sentence is\nwrapped as well but ends here, after quite a few words of text."
    )
    assert [text.split()[0] for text in texts(wrapped)] == ["The", "The"]


def test_an_unclosed_fence_does_not_swallow_the_rest() -> None:
    kinds = [segment.kind for segment in split_segments("```\nopen\n\nA paragraph after it.")]
    assert "code" not in kinds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Smith went to Washington. He arrived at 5 p.m. on Monday.", 2),
        ("We use e.g. this one, i.e. that. Fine.", 2),
        ("J. R. R. Tolkien wrote it. I read it.", 2),
        ('"Why?" he asked. "Because." She left.', 3),
        ("It cost $3.50. Really? Yes!", 3),
        ("See Fig. 3 and No. 5. I said no. We left.", 3),
        ("He lives in the U.S. He likes it there.", 2),
        ("The U.S. Army is large.", 1),
        ("Apple Inc. announced a phone. Nobody cared.", 2),
        ("Wait... what? Go to example.com now.", 2),
        ("1. First do this. 2. Then do that.", 2),
        ("你好。今天天气很好！我们走吧。", 3),
        ("We enjoyed the sun. It was hot.", 2),
        ("Version 1.2.3 is out. Upgrade!", 2),
        ("Das Fest ist am 12. Dezember, abends. Am 3. Mai ist frei.", 2),
        ("no full stop at all", 1),
    ],
)
def test_full_stops_are_read_as_a_reader_reads_them(text: str, expected: int) -> None:
    assert len(sentences(text)) == expected, [text[a:b] for a, b in sentences(text)]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Caroline: hi", "Caroline"),
        ("**User:** hi", "User"),
        ("**Assistant**: hi", "Assistant"),
        ("user: hi", "user"),
        ("User:", "User"),
        ("Speaker 2: go on", "Speaker 2"),
        ("Mary Ann van Dyke: hey", "Mary Ann van Dyke"),
        ("[10:32] alice: hi", "alice"),
        ("[2023-05-08 13:56] Mel: hi", "Mel"),
        ("12/05/2023, 10:32 - Jon Snow: hi", "Jon Snow"),
        ("Bob (10:31 AM): yes", "Bob"),
        ("[10:32] <bob> hi", "bob"),
        ("小明：你好", "小明"),
    ],
)
def test_a_speaker_is_recognised_in_the_forms_that_chats_use(line: str, name: str) -> None:
    label = speaker_of(line)
    assert label is not None
    assert label.name == name
    assert line[label.body :] in ("hi", "hey", "yes", "go on", "你好", "")


@pytest.mark.parametrize(
    "line",
    [
        "Note: a remark",
        "Step 2: go",
        "Decision: use Rust",
        "http://example.com is a page",
        "At 10:30 we left",
        "the thing: it works",
        "I said: stop",
        "Favorite color: blue",
        "Model: T-1000",
        "host: localhost",
        "Ingredients:",
        "else: return",
        "<b> bold text",
        "",
        ":",
    ],
)
def test_an_ordinary_label_is_not_taken_for_a_speaker(line: str) -> None:
    assert speaker_of(line) is None


def test_a_label_inside_a_sentence_does_not_start_a_turn() -> None:
    content = "There were two people there and one of them was\nAnna: the other one I did not know at all."
    assert [segment.author for segment in split_segments(content)] == [None]


@given(st.text(st.sampled_from(".!?\"')] \n\x1cab"), max_size=40))
def test_the_ends_of_sentences_in_ascii_are_those_of_any_text(text: str) -> None:
    assert [end.span() for end in _ASCII_END.finditer(text)] == [end.span() for end in _END.finditer(text)]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_separates_turns_headings_and_items(line_end: str) -> None:
    lines = [
        "Ann: I live in Oslo.",
        "Bob: I moved to Rome.",
        "",
        "# Plan",
        "",
        "- one",
        "- two",
        "",
        "Some text.",
    ]
    text = line_end.join(lines)
    assert [text[one.start : one.end] for one in blocks(text)] == [line for line in lines if line]
    assert [one.author for one in blocks(text)][:2] == ["Ann", "Bob"]


def test_a_header_of_thousands_of_lines_is_not_repeated_whole_above_each_row() -> None:
    header = "".join(f"| column {number} |\n" for number in range(2_000))
    text = f"+----+\n{header}+====+\n" + "| cell |\n" * 100 + "+----+"
    rows = [one for one in split_segments(text) if text[one.start : one.end] == "| cell |"]
    assert len(rows) == 100
    assert all("column 0" in one.under and len(one.under) < 1_000 for one in rows)
