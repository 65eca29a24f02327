"""What a question or a program may ask of the host before it runs: sizes, checked in time linear to the text."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rlm_mem.errors import InvalidQuery, SandboxViolation, TimeoutError
from rlm_mem.ingest.chunking import detect_content_type
from rlm_mem.memory import Memory
from rlm_mem.offline.question import analyse_question
from rlm_mem.persona.commands import parse_commands
from rlm_mem.persona.library import Library
from rlm_mem.sandbox.functions import StoreFunctions
from rlm_mem.sandbox.hints import hint_for
from rlm_mem.sandbox.policy import _names_dunder, check_program
from rlm_mem.text import blocks
from rlm_mem.text.dates import find_dates
from rlm_mem.text.segments import split_segments
from rlm_mem.text.sentences import sentences


def checked(code: str, deadline: float = float("inf")) -> object:
    return check_program(code, importable={"re"}, reserved={"FINAL"}, max_chars=64_000, deadline=deadline)


@pytest.mark.parametrize("call", ["recall", "reason", "recall_session"])
def test_a_long_question_is_refused_with_its_limit(tmp_path: Path, call: str) -> None:
    with Memory.open(tmp_path / "brain") as memory, pytest.raises(InvalidQuery, match="at most 10,000"):
        getattr(memory, call)("what is " * 2_000)


def test_a_program_of_too_many_statements_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(SandboxViolation, match="words and signs"):
        checked("a\n" * 30_000)


def test_the_checks_of_a_program_end_with_its_time() -> None:
    with pytest.raises(TimeoutError):
        checked("a = 1\n" * 5_000, deadline=time.monotonic())


def test_fields_of_a_format_string_are_found_at_any_length() -> None:
    with pytest.raises(SandboxViolation, match="interpreter attributes"):
        checked(f"'{'{' * 9_000}0.__class__}}'")
    assert checked("'" + "{__a" * 4_000 + "'") is not None


WORST: dict[str, Callable[[str], object]] = {
    "a question": analyse_question,
    "a persona command": lambda text: parse_commands(text, Library()),
    "a hint": lambda text: hint_for("ValueError", text),
    "a format string": lambda text: _names_dunder(f"{{{text}"),
    "the type of a text": detect_content_type,
    "dates": lambda text: find_dates(text, None),
    "sentences": sentences,
    "segments": split_segments,
}
PUMPS = (
    "a",
    " ",
    "{__a",
    "i really ",
    "what would ",
    "a-",
    "0,00",
    "....",
    "the last ",
    "prefer ",
    "a or ",
    "'s ",
    "\n",
    "(",
)


@pytest.mark.parametrize("reader", WORST)
def test_readers_of_foreign_text_take_time_in_proportion_to_it(reader: str) -> None:
    read = WORST[reader]
    read("warm")
    slow = []
    for pump in PUMPS:
        took = []
        for size in (6_000, 60_000):
            text = (pump * size)[:size]
            began = time.process_time()
            read(text)
            took.append(time.process_time() - began)
        # Ten times the text: ten times the time, and far from the hundred times of a quadratic reader.
        if took[1] > 40 * took[0] + 0.5:
            slow.append((pump, took))
    assert slow == []


@pytest.mark.parametrize("name", ["passages", "updates"])
def test_a_long_chunk_is_parsed_a_fixed_number_of_times_however_many_hits_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Each hit needs its line, and the headings above it."""
    filler = "The quay is long, and the tide comes in at noon with the wind from the west.\n" * 200
    text = "".join(f"{filler}The heron of pier {number} nests.\n" for number in range(10))
    scans: list[int] = []
    scan = blocks._Scanner.scan
    with Memory.open(tmp_path / "brain") as memory:
        memory.store.create_chunk(text)
        monkeypatch.setattr(
            blocks._Scanner,
            "scan",
            lambda self: (scans.append(1) if len(self.text) > 100_000 else None) or scan(self),
        )
        found = getattr(StoreFunctions(memory.store), name)("heron pier nests")
        assert (len(found) == 10 or name == "updates") and len(scans) <= 2
