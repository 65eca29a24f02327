"""How much of the package one call passes through: files and functions, counted by the interpreter's own profiler.

The limits go down when a path becomes shorter. A change that needs more has to say why here. They are those of the
first walk in a process: later ones find some words and patterns in caches.
"""

from __future__ import annotations

import gc
import math
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from types import FrameType

import pytest

import rlm_mem
from rlm_mem import Memory
from rlm_mem.text.analysis import get_analyser

ROOT = str(Path(rlm_mem.__file__).parent)
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
_IN, _OUT = "### The path of one memory in\n", "### The path of one question out\n"
_FILE = re.compile(r"`([\w/]+\.py)` (\d+)")
_SUM = re.compile(r"(\d+) files and (\d+) functions")

REMEMBER_FILES = 25
REMEMBER_FUNCTIONS = 137
"""One sentence in a memory that is warm: checked, screened for secrets, linked, written and indexed, with a look
whether it may replace another memory, which asks the index for its words. What is checked of a text and what is
stored of it are two functions, so that many texts are checked outside of the write lock, and linking is a file, as
segments are beside terms. The rows of new chunks wait until something is read, or the commit, and are then written
together: these rows are a file. The version of the store tells whether others have written since the look."""

REMEMBER_STATEMENTS = 27
"""Statements of SQLite on this path, without those of triggers: three of them make terms, three tell whether
others have written, and four set how the connection waits and syncs."""

FIND_FILES, FIND_FUNCTIONS = 32, 211
"""The same where an earlier memory has a word of it: its statements are compared with those of that memory."""
ASK_FILES, ASK_FUNCTIONS = 36, 250
"""The same where the index is asked anew, because others, or an edit, changed the memory since."""

RECALL_FILES = 58
RECALL_FUNCTIONS = 631
"""One question, answered by the built-in offline model in its first program; some of them keep to what held at a time,
say what was replaced and what is told again, look up later notes like the first, and look for numbered statements; a
passage comes with the lines around it and what stands above it (`text.blocks`, `text.segments`); what a caller passes
is checked (`arguments`);
what a question about the present is (`text.present`) is apart from which notes answer it (`text.retold`) and which are
about something else (`text.apart`), and a run (`recall.running`) from the results made of it (`recall.recall`), whose
outcome (`recall.outcome`) tells whether to look for files changed by others and ask again; one function reads files and
signs them (`store.core.files`); of two notes on one subject each names the other (`search.marking`); labels of notes
are searched like their words; a session makes the functions about turns and subjects, though this program calls none
of them."""

_ONCE = frozenset(("/text/patterns.py",))
"""Called for the first use of a pattern, which may be in any of the walks."""

ROW_CALLS = 5
"""Calls of our functions for one row of the index."""


class Walk:
    """What one call passed: each function of the package once, and how many calls there were.

    Comprehensions and lambdas are part of the function around them, as they are for whoever reads it.
    """

    def __init__(self, call: Callable[[], object]) -> None:
        self.functions: Counter[tuple[str, str]] = Counter()
        """How often each was called, by file and name."""
        former = sys.getprofile()
        gc.disable()  # else what is collected meanwhile, such as a worker of an earlier recall, is counted, too
        sys.setprofile(self._note)
        try:
            call()
        finally:
            sys.setprofile(former)
            gc.enable()

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        place = code.co_filename.removeprefix(ROOT)
        if event != "call" or place == code.co_filename or code.co_name.startswith("<") or place in _ONCE:
            return
        self.functions[place, code.co_qualname] += 1

    @property
    def calls(self) -> int:
        return self.functions.total()

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}

    def __str__(self) -> str:
        return "\n".join(f"{file} {name}" for file, name in sorted(self.functions))


@contextmanager
def warm_memory(folder: Path) -> Iterator[Memory]:
    """What is imported, opened and prepared once has been."""
    with Memory.open(folder / "brain") as memory:
        memory.remember("The cat sleeps on the red sofa.", conversation_id="home")
        memory.recall("Where does the cat sleep?")
        memory.remember(
            "The dog sleeps on the stairs.", conversation_id="home"
        )  # writes the counted reads, too
        memory.store.backend._connections._look_at = math.inf  # type: ignore[attr-defined]  # once a second
        yield memory


def remembering(memory: Memory) -> Walk:
    text = "Dana prefers trains to planes."
    get_analyser(memory.config.search.language).indexed_terms(
        text
    )  # words are cached: other tests have some of them
    return Walk(lambda: memory.remember(text, conversation_id="trip"))


def asking(memory: Memory) -> Walk:
    return Walk(lambda: memory.recall("Where does the cat sleep?"))


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with warm_memory(tmp_path_factory.mktemp("walks")) as memory:
        yield memory


@pytest.fixture(scope="module")
def walk_in(memory: Memory) -> Walk:
    return remembering(memory)


@pytest.fixture(scope="module")
def walk_out(memory: Memory) -> Walk:
    return asking(memory)


def test_remembering_a_sentence_takes_a_short_path(walk_in: Walk) -> None:
    assert len(walk_in.files) <= REMEMBER_FILES, str(walk_in)
    assert len(walk_in.functions) <= REMEMBER_FUNCTIONS, str(walk_in)


def test_remembering_a_sentence_takes_few_statements(tmp_path: Path) -> None:
    told: list[str] = []
    with warm_memory(tmp_path) as memory:
        connection = memory.store.backend.connection  # type: ignore[attr-defined]
        connection.set_trace_callback(told.append)
        memory.remember("Ben prefers trams to taxis.", conversation_id="trip")
        connection.set_trace_callback(None)
    # A statement whose triggers run is told again for each of them.
    of_the_call = [one for one, _ in groupby(told) if not one.startswith("--")]
    assert of_the_call.count("BEGIN IMMEDIATE") == of_the_call.count("COMMIT") == 1
    assert len(of_the_call) <= REMEMBER_STATEMENTS, "\n".join(of_the_call)


def test_finding_what_a_sentence_replaces_takes_a_short_path(tmp_path: Path) -> None:
    with warm_memory(tmp_path) as memory:
        for text in ("Dana lives in Berlin.", "Ben lives in Rome."):
            memory.remember(text, conversation_id="trip")
        walk = remembering(memory)
        memory.remember(
            "Eva works for Nettle Works.", conversation_id="trip"
        )  # calls what is cached afterwards
        memory.update(memory.list_chunks()[0], tags=["other"])
        asked = Walk(lambda: memory.remember("Dana works for Fennel Labs.", conversation_id="trip"))
    assert len(walk.files) <= FIND_FILES, str(walk)
    assert len(walk.functions) <= FIND_FUNCTIONS, str(walk)
    assert len(asked.files) <= ASK_FILES, str(asked)
    assert len(asked.functions) <= ASK_FUNCTIONS, str(asked)


def test_a_note_is_parsed_into_blocks_once(memory: Memory, walk_in: Walk) -> None:
    """After the walk of the others, whose sentence must have no word of this one."""
    assert walk_in.files
    walk = Walk(lambda: memory.remember("Ben: I prefer ferries.\n- no planes", conversation_id="trip"))
    assert walk.functions["/text/blocks.py", "_Scanner.scan"] == 1


def test_a_question_takes_a_short_path(walk_out: Walk) -> None:
    assert len(walk_out.files) <= RECALL_FILES, str(walk_out)
    assert len(walk_out.functions) <= RECALL_FUNCTIONS, str(walk_out)


def test_the_paths_of_the_architecture_are_those_that_are_taken(walk_in: Walk, walk_out: Walk) -> None:
    """File by file; the numbers may lag a little behind (``python -m tests.house.test_walks`` writes them)."""
    for heading, walk in ((_IN, walk_in), (_OUT, walk_out)):
        told = {f"/{file}": int(number) for file, number in _FILE.findall(section(PAGE.read_text(), heading))}
        assert set(told) == walk.files, heading
        passed = Counter(file for file, _ in walk.functions)
        wrong = {file: n for file, n in passed.items() if abs(n - told[file]) > 4 + n // 4}
        assert wrong == {}, heading


def section(page: str, heading: str) -> str:
    """What stands below a heading, up to the next one."""
    return page.partition(heading)[2].partition("\n#")[0]


def test_an_index_row_takes_few_calls(memory: Memory) -> None:
    chunk_id = memory.list_chunks()[0]
    store = memory.store
    walk = Walk(lambda: store.backend.find(store.namespace, chunk_id))
    assert walk.calls <= ROW_CALLS, str(walk)


def test_the_count_notices_a_longer_path(memory: Memory) -> None:
    memory.stats()  # loads what it needs
    short, long = Walk(memory.stats), Walk(lambda: (memory.stats(), memory.tags()))
    assert len(long.functions) > len(short.functions) > 0
    assert long.calls > short.calls


def write_numbers() -> None:
    """Bring the numbers of the architecture up to date; its files are chosen by hand."""
    page = PAGE.read_text()
    with tempfile.TemporaryDirectory() as folder, warm_memory(Path(folder)) as memory:
        for heading, walk in ((_IN, remembering(memory)), (_OUT, asking(memory))):
            passed = Counter(file for file, _ in walk.functions)
            old = section(page, heading)
            told = {f"/{file}" for file, _ in _FILE.findall(old)}
            print(heading, "missing:", sorted(walk.files - told), "not passed:", sorted(told - walk.files))
            new = _FILE.sub(lambda found, passed=passed: f"`{found[1]}` {passed[f'/{found[1]}']}", old)
            new = _SUM.sub(f"{len(walk.files)} files and {len(walk.functions)} functions", new, count=1)
            page = page.replace(old, new)
    PAGE.write_text(page)


if __name__ == "__main__":
    write_numbers()
