"""How much of the package one call passes through: files and functions, counted by the interpreter's own profiler.

The limits go down when a path becomes shorter. A change that needs more has to say why here.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

import rlm_mem
from rlm_mem import Memory

ROOT = str(Path(rlm_mem.__file__).parent)

REMEMBER_FILES = 23
REMEMBER_FUNCTIONS = 142
"""One sentence in a memory that is warm: checked, screened for secrets, linked, written and indexed. One of them makes
the id of the transaction, by which it can be undone, and one looks whether it replaces another memory."""

RECALL_FILES = 47
RECALL_FUNCTIONS = 712
"""One question, answered by the embedded offline model in its first program; some of them keep to what held at a time,
say what was replaced, and look for numbered statements."""

ROW_CALLS = 5
"""Calls of our functions for one row of the index, which every read of a chunk starts with."""


class Walk:
    """What one call passed: each function of the package once, and how many calls there were."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.functions: Counter[tuple[str, str]] = Counter()
        """How often each was called, by file and name."""
        former = sys.getprofile()
        sys.setprofile(self._note)
        try:
            call()
        finally:
            sys.setprofile(former)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and code.co_name != "<module>":
            self.functions[code.co_filename.removeprefix(ROOT), code.co_qualname] += 1

    @property
    def calls(self) -> int:
        return self.functions.total()

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}

    def __str__(self) -> str:
        return "\n".join(f"{file} {name}" for file, name in sorted(self.functions))


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    """Warm: what is imported, opened and prepared once has been."""
    with Memory.open(tmp_path_factory.mktemp("walks") / "brain") as memory:
        memory.remember("The cat sleeps on the red sofa.", conversation_id="home")
        memory.recall("Where does the cat sleep?")
        memory.remember(
            "The dog sleeps on the stairs.", conversation_id="home"
        )  # writes the counted reads, too
        yield memory


def test_remembering_a_sentence_takes_a_short_path(memory: Memory) -> None:
    walk = Walk(lambda: memory.remember("Dana prefers trains to planes.", conversation_id="trip"))
    assert len(walk.files) <= REMEMBER_FILES, str(walk)
    assert len(walk.functions) <= REMEMBER_FUNCTIONS, str(walk)


def test_a_note_is_parsed_into_blocks_once(memory: Memory) -> None:
    walk = Walk(lambda: memory.remember("Ben: I prefer ferries.\n- no planes", conversation_id="trip"))
    assert walk.functions["/text/blocks.py", "_Scanner.scan"] == 1


def test_a_question_takes_a_short_path(memory: Memory) -> None:
    walk = Walk(lambda: memory.recall("Where does the cat sleep?"))
    assert len(walk.files) <= RECALL_FILES, str(walk)
    assert len(walk.functions) <= RECALL_FUNCTIONS, str(walk)


def test_an_index_row_takes_few_calls(memory: Memory) -> None:
    chunk_id = memory.list_chunks()[0]
    store = memory.store
    walk = Walk(lambda: store.backend.find(store.namespace, chunk_id))
    assert walk.calls <= ROW_CALLS, str(walk)


def test_the_count_notices_a_longer_path(memory: Memory) -> None:
    short, long = Walk(memory.stats), Walk(lambda: (memory.stats(), memory.tags()))
    assert len(long.functions) > len(short.functions) > 0
    assert long.calls > short.calls
