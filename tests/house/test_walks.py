"""How much of the package one call passes through: files and functions, counted by the interpreter's own profiler.

The paths of one memory in and of one question out are recorded in docs/architecture.md, file by file. A path may
differ a little from its record (``SLACK``), so a change of a function or two needs no edit; one that makes it longer or
shorter than that writes the numbers again (``python -m tests.house.test_walks``), and its diff shows by how much. All
are those of the first walk in a process: later ones find some words and patterns in caches.
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
from tests.typed import local

ROOT = str(Path(rlm_mem.__file__).parent)
PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
_IN, _OUT = "### The path of one memory in\n", "### The path of one question out\n"
_FILE = re.compile(r"`([\w/]+\.py)` (\d+)")
_SUM = re.compile(r"(\d+) files and(\s)(\d+) functions")

SLACK = 0.04
"""The share by which a path may be longer than its record, in files (at least one) and in functions."""

SHORTER = 0.1
"""The share by which it may be shorter: what earlier tests of the process put into caches is not passed again."""

REMEMBER_STATEMENTS = 27
"""SQLite statements while one sentence is remembered, without those of triggers. Each costs every write: no slack."""

FIND_FILES, FIND_FUNCTIONS = 39, 258
"""The record of one sentence remembered where an earlier memory shares a word with it: it is looked up, and the
statements of both are compared. The architecture describes the path without it."""

_ONCE = frozenset(("/text/patterns.py",))
"""Called at the first use of a pattern, which may fall into any of the walks."""

ROW_CALLS = 6
"""Calls of functions of the package for each row read from the index."""


class Walk:
    """The functions of the package that one call ran, each with its number of calls.

    Comprehensions and lambdas count as part of the function that contains them.
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
        local(memory.store.backend)._connections._look_at = math.inf  # once a second
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


def off(walk: Walk, files: int, functions: int) -> str:
    """How a path differs from its record by more than the slack; empty where it does not."""
    counts = ((len(walk.files), files), (len(walk.functions), functions))
    if all(-slack(recorded, SHORTER) <= now - recorded <= slack(recorded) for now, recorded in counts):
        return ""
    size = f"{len(walk.files)} files, {len(walk.functions)} functions, recorded are {files} and {functions}"
    return f"{size}: shorten the path, or record it (`python -m tests.house.test_walks`) and say why it is longer"


def slack(recorded: int, share: float = SLACK) -> int:
    return max(1, math.ceil(recorded * share))


def recorded_path(heading: str) -> tuple[int, int]:
    """The files and functions of a path that the architecture states."""
    found = _SUM.search(section(PAGE.read_text(encoding="utf-8"), heading))
    assert found is not None, f"{PAGE.name} does not say how long the path of {heading!r} is"
    return int(found[1]), int(found[3])


def test_remembering_a_sentence_takes_a_short_path(walk_in: Walk) -> None:
    assert not (problem := off(walk_in, *recorded_path(_IN))), f"{problem}\n{walk_in}"


def test_remembering_a_sentence_takes_few_statements(tmp_path: Path) -> None:
    told: list[str] = []
    with warm_memory(tmp_path) as memory:
        connection = local(memory.store.backend).connection
        connection.set_trace_callback(told.append)
        memory.remember("Ben prefers trams to taxis.", conversation_id="trip")
        connection.set_trace_callback(None)
    # A statement whose triggers run is told again for each of them.
    of_the_call = [one for one, _ in groupby(told) if not one.startswith("--")]
    assert of_the_call.count("BEGIN IMMEDIATE") == of_the_call.count("COMMIT") == 1
    assert len(of_the_call) <= REMEMBER_STATEMENTS, "\n".join(of_the_call)


def test_finding_what_a_sentence_replaces_takes_a_short_path(tmp_path: Path, walk_in: Walk) -> None:
    """After the walk without earlier memories, whose sentence it remembers: its blocks and words are known then."""
    assert walk_in.files
    with warm_memory(tmp_path) as memory:
        for text in ("Dana lives in Berlin.", "Ben lives in Rome."):
            memory.remember(text, conversation_id="trip")
        walk = remembering(memory)
    assert not (problem := off(walk, FIND_FILES, FIND_FUNCTIONS)), f"{problem}\n{walk}"


def test_a_note_is_parsed_into_blocks_once(memory: Memory, walk_in: Walk) -> None:
    """After the walk of the others, whose sentence must have no word of this one."""
    assert walk_in.files
    walk = Walk(lambda: memory.remember("Ben: I prefer ferries.\n- no planes", conversation_id="trip"))
    assert walk.functions["/text/blocks.py", "_Scanner.scan"] == 1


def test_a_question_takes_a_short_path(walk_out: Walk) -> None:
    assert not (problem := off(walk_out, *recorded_path(_OUT))), f"{problem}\n{walk_out}"


def test_the_paths_of_the_architecture_are_those_that_are_taken(walk_in: Walk, walk_out: Walk) -> None:
    """File by file: a few may be missing or too many, and the numbers may lag a little behind."""
    for heading, walk in ((_IN, walk_in), (_OUT, walk_out)):
        page = PAGE.read_text(encoding="utf-8")
        told = {f"/{file}": int(number) for file, number in _FILE.findall(section(page, heading))}
        lacking, passed_by = walk.files - set(told), set(told) - walk.files
        both = f"{heading}: {PAGE.name} lacks {lacking}, and names {passed_by}"
        assert max(len(lacking), len(passed_by)) <= slack(len(told)), both
        passed = Counter(file for file, _ in walk.functions)
        wrong = {file: n for file, n in passed.items() if file in told and abs(n - told[file]) > 4 + n // 4}
        assert wrong == {}, f"{heading}: python -m tests.house.test_walks writes the numbers into {PAGE.name}"


def test_a_path_may_differ_by_a_few_functions_but_not_by_more(walk_out: Walk) -> None:
    files, functions = len(walk_out.files), len(walk_out.functions)
    few = slack(functions)
    assert not off(walk_out, files + 1, functions - few // 2)
    assert off(walk_out, files, functions - 2 * few)  # longer
    assert off(walk_out, files, functions + 4 * few)  # shorter, so that the record follows
    assert off(walk_out, files - 2 * slack(files), functions)


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
            new = _SUM.sub(rf"{len(walk.files)} files and\g<2>{len(walk.functions)} functions", new, count=1)
            page = page.replace(old, new)
    PAGE.write_text(page)


if __name__ == "__main__":
    write_numbers()
