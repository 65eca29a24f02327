"""Malicious files of a brain: refused or read, never a hang and never another exception."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from rlm_mem.errors import InvalidConfig
from rlm_mem.persona import (
    Library,
    parse_commands,
    parse_gauge,
    parse_personality,
    parse_slider,
    render_gauge,
)
from rlm_mem.persona.documents import document_text

LONG = 200_000
PIECES = ["#", " ", "\t", "- 5", "*", "%", "(", "0-", "{{", "a", "|", "|-", "`", "> x:", "→", "9"]
HEADS = [
    "",
    "# ",
    "## Range\n",
    "## Default\n",
    "## Default: ",
    "## Examples\n- 5",
    "## Calibration Levels\n| 0",
    "## Configuration\n- Humor: 5",
    "## Slider Adjustments\n| Humor | 5",
    "> Slider Range: 5",
    "```gauge\n{{",
    "```gauge\n{{#each",
    "```gauge\n--- ",
]


@pytest.mark.parametrize("head", HEADS)
def test_no_file_keeps_a_parser_busy(head: str) -> None:
    """Each of the shapes that make a careless pattern try every way of dividing a long run."""
    for piece in PIECES:
        text = head + piece * (LONG // len(piece)) + "!"
        begun = time.process_time()
        for parse in (parse_slider, parse_personality, parse_gauge):
            try:
                parse(text, "HOSTILE")
            except InvalidConfig:
                continue
        assert time.process_time() - begun < 5, f"{head!r} and {piece!r}"


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([*HEADS, *PIECES, "\n", "75", "Humor", ": ", "{{x}}", "é", "\x00"]), max_size=30)
)
def test_any_text_is_read_or_refused(parts: list[str]) -> None:
    text = "".join(parts)
    for parse in (parse_slider, parse_personality):
        try:
            parse(text, "ANY")
        except InvalidConfig as error:
            assert str(error)
    try:
        render_gauge(parse_gauge(text, "ANY"), {"x": "y"})
    except InvalidConfig as error:
        assert str(error)


@pytest.mark.parametrize(
    ("count", "message"), [(9, "repeat too many lines"), (5_000, "blocks within each other")]
)
def test_blocks_within_blocks_are_bounded(count: int, message: str) -> None:
    text = "```gauge\n" + "{{#each x}}\n" * count + "y\n" + "{{/each}}\n" * count + "```\n"
    with pytest.raises(InvalidConfig, match=message):
        render_gauge(parse_gauge(text, "NESTED"), {"x": list(range(20))})


def test_a_line_that_repeats_its_figures_is_bounded_and_drawn_in_linear_time() -> None:
    gauge = parse_gauge("```gauge\n" + "{{x}} " * 4_000 + "\n```\n", "LONG")
    began = time.monotonic()
    with pytest.raises(InvalidConfig, match="longer than a box may be"):
        render_gauge(gauge, {"x": ["figure " * 20] * 5})
    assert len(render_gauge(gauge, {"x": "figure " * 15}).splitlines()) > 5_000
    assert time.monotonic() - began < 5


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_message_is_ordinary_text_or_a_command(text: str) -> None:
    try:
        parse_commands(text, Library())
    except InvalidConfig as error:
        assert str(error)


def test_a_number_of_any_length_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="must be a whole number"):
        parse_personality("## Configuration\n- Humor: " + "9" * 10_000, "ODD")


def test_pipes_and_folders_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "personalities"
    (folder / "FOLDER.md").mkdir(parents=True)
    os.mkfifo(folder / "PIPE.md")
    assert Library(tmp_path).modes() == Library().modes()


def test_both_sides_of_a_merge_conflict_become_no_prompt() -> None:
    text = "# Mine\n\n<<<<<<< HEAD\nBe short.\n=======\nBe long.\n>>>>>>> theirs\n"
    with pytest.raises(InvalidConfig, match=r"^mine\.md: has merge conflict markers"):
        document_text(text.encode(), "mine.md")
