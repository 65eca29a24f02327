"""The line of each source that is nearest to the question, with its file and the headings above it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from rlm_mem import Memory
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall.source_lines import as_written, nearest_lines

MANUAL = """# Settings

## spool_folder

Where jobs wait until a worker takes them. The folder is made at the first start, and its owner must be the user
that runs the server. On a network drive, jobs can be taken twice, since locks are not reliable there.

## drain_seconds

Default: 45. How long the server waits for running jobs once it was told to stop, before it ends them.

## retry_pause

Default: 3. The seconds between two attempts of a job that failed, which double with every further attempt.

## log_folder

Where the log of each day is written. A folder on another disk keeps the spool from filling up with lines that nobody
reads, and its files are compressed after a week, removed after a year, and never sent anywhere.
"""
QUESTION = "How long does the server wait for running jobs when it stops?"


@pytest.fixture
def brain(tmp_path: Path) -> Path:
    (tmp_path / "manual").mkdir()
    (tmp_path / "manual" / "settings.md").write_text(MANUAL)
    with Memory.open(tmp_path / "brain", llm="offline") as memory:
        memory.sync_folder(tmp_path / "manual")
    return tmp_path / "brain"


def test_the_line_of_a_long_text_is_the_one_that_the_question_asks_for(brain: Path) -> None:
    with Memory.open(brain, llm="offline") as memory:
        source = memory.recall(QUESTION).sources[0]
    assert "Default: 45." in source.line and len(source.line) <= 500
    assert not source.line.startswith("# Settings")
    assert (source.path, source.heading) == ("settings.md", "Settings / drain_seconds")


def test_the_line_of_a_short_note_is_the_note(brain: Path) -> None:
    with Memory.open(brain, llm="offline") as memory:
        memory.remember("Cy moved the kiln to the yard.")
        source = memory.recall("Where is the kiln?").sources[0]
    assert (source.line, source.path, source.heading) == ("Cy moved the kiln to the yard.", "", "")


def test_the_line_goes_on_where_there_is_no_answer_to_read(brain: Path) -> None:
    for program, longest in (("FINAL('45', chunk_ids=found)", 300), ("FINAL(None, chunk_ids=found)", 500)):
        llm = ScriptedLLM([f"```repl\nfound = search_chunks('jobs')\n{program}\n```"])
        with Memory.open(brain, llm=llm) as memory:
            (source,) = memory.recall(QUESTION).sources
        assert longest - 100 < len(source.line) <= longest and "Default: 45." in source.line


@pytest.mark.parametrize("question", ["?", "Wo wartet ein Auftrag?", "jobs " * 2_000, "45"])
def test_any_question_has_a_line(brain: Path, question: str) -> None:
    with Memory.open(brain) as memory:
        chunks = list(memory.store.get_many(memory.store.list_chunks()).values())
        (line,) = nearest_lines(question, chunks, 80).values()
    assert 0 < len(line.text) <= 82


def test_only_what_is_read_of_a_huge_text_can_be_its_line(brain: Path) -> None:
    with Memory.open(brain) as memory:
        chunk = memory.store.get_chunk(memory.store.list_chunks()[0])
        assert chunk is not None
        huge = replace(chunk, content=MANUAL + "Nothing of note. " * 20_000 + QUESTION)
        assert "Default: 45." in nearest_lines(QUESTION, [huge], 300)[chunk.id].text


TABLE = """# Pins

| pin | use   |
|-----|-------|
| 4   | probe |
| 23  | relay |

---

- Pin 0 stays free: it is used by the memory chip, and by
  nothing else.
- Pin 2 is for the clock.
"""


@pytest.mark.parametrize(
    ("line", "written"),
    [
        (
            "…| 4 | probe | | 23 | relay | --- - Pin 0 stays…",
            "| 4   | probe |\n| 23  | relay |\n- Pin 0 stays…",
        ),
        (
            "…free: it is used by the memory chip, and by nothing else. - Pin 2 is for the clock.",
            "…free: it is used by the memory chip, and by nothing else.\n- Pin 2 is for the clock.",
        ),
        ("…a former version of it", "…a former version of it"),
        ("…", "…"),
        ("", ""),
    ],
)
def test_a_line_is_shown_as_the_lines_that_it_was_made_from(line: str, written: str) -> None:
    assert as_written(line, TABLE) == written


@pytest.mark.parametrize(
    "content",
    [
        "\n".join("abcdefghij" * 15),
        f"First{' ' * 15_000}second",
        f"First\n{' ' * 9_000}second\n{' ' * 9_000}third",
        "---\n***",
    ],
    ids=["many lines", "a gap", "indented far", "marks only"],
)
def test_a_line_stays_one_line_if_its_memory_would_fill_the_screen_or_nothing(content: str) -> None:
    line = " ".join(content.split())
    assert as_written(line, content) == line


def test_a_text_that_repeats_the_words_of_its_line_is_searched_quickly() -> None:
    began = time.process_time()
    assert as_written(f"…{'a ' * 249}b", f"{'a ' * 9_990}b") == f"…{'a ' * 249}b"
    assert time.process_time() - began < 0.1
