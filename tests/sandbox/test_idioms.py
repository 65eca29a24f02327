"""Everyday retrieval programs give on the engines what they give in plain Python."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm_mem.errors import ProgramError
from rlm_mem.recall import REPLSession
from rlm_mem.sandbox import seccomp
from rlm_mem.store.core.chunk_store import ChunkStore
from tests.sandbox.corpus_store import fill
from tests.sandbox.idioms import PROGRAMS
from tests.sandbox.plain_python import alike, in_plain_python, model, on_engine

needs_filter = pytest.mark.skipif(
    not seccomp.supported(), reason="the cpython engine is confined on Linux x86-64 and 64-bit ARM only"
)


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChunkStore]:
    with ChunkStore(tmp_path_factory.mktemp("idioms") / "memory") as store:
        fill(store)
        yield store


@pytest.mark.early
@pytest.mark.parametrize(
    ("engine", "share"), [("monty", 0.90), pytest.param("cpython", 0.98, marks=needs_filter)]
)
def test_everyday_programs_run_as_in_plain_python(memory: ChunkStore, engine: str, share: float) -> None:
    """Of more than 100 programs at least this share; each of the others says what to write instead."""
    assert len(PROGRAMS) >= 100
    differ, silent = [], []
    for name, code in PROGRAMS:
        got, error = on_engine(memory, code, engine)
        if alike(list(got)) != alike(list(in_plain_python(memory, code))):
            differ.append(name)
            if error is None or not getattr(error, "hint", None):
                silent.append((name, got, error))
    assert silent == []
    assert 1 - len(differ) / len(PROGRAMS) >= share, differ


def test_a_generator_over_the_model_stops_at_the_first_answer(memory: ChunkStore) -> None:
    """any(llm_query(…) for …) makes one call when the first answer settles it: calls cost money."""
    session = REPLSession(memory, model, 100)
    step = session.run("any(llm_query('tea?') == 'yes' for _ in range(50))")
    assert step.value is True
    assert len(step.host_calls) == 1


def test_lines_of_errors_are_those_of_the_program_as_written(memory: ChunkStore) -> None:
    """Also when the program was rewritten: comments and long lines do not shift them."""
    code = (
        "# first\n\nd = {\n    'a': 1,\n}\nbest = max(d, key=d.get)  # an idiom\n\n\nraise ValueError(best)"
    )
    session = REPLSession(memory)
    error = session.run(code).error
    assert error is not None and getattr(error, "line", None) == 9
    error = session.run("def f():\n    yield 1\n\n\nfor x in f():\n    y = x / 0").error
    assert getattr(error, "line", None) == 6


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python knows the syntax")
def test_syntax_that_this_python_does_not_know_is_refused_with_a_remedy(memory: ChunkStore) -> None:
    """Nested quotes in f-strings are Python 3.12: nothing could check such a program before it runs."""
    session = REPLSession(memory)
    step = session.run('d = {"k": 1}\nprint(f"{d["k"]}")')
    assert isinstance(step.error, ProgramError) and step.error.kind == "SyntaxError" and step.error.line == 2
    assert "quotes" in str(step.error.hint) and step.output == ""


def test_the_text_of_a_program_without_idioms_is_left_alone() -> None:
    """Nothing but the bound around the last value is added, so the sandbox's own messages fit the program."""
    from rlm_mem.sandbox.idioms import rewrite

    code = "x = [1,\n  2]  # kept\nsum(x)   # é"
    assert rewrite(code, ast.parse(code)).code == "x = [1,\n  2]  # kept\n''.join(_rlm_value((sum(x))))   # é"


def test_the_corpus_stays_data() -> None:
    """Programs are text, each with a name of its own."""
    assert len({name for name, _ in PROGRAMS}) == len(PROGRAMS)
    assert Path(__file__).with_name("idioms.py").exists()
