"""A result may be named after the function that gave it; the function stays what it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlm_mem.errors import SandboxViolation
from rlm_mem.sandbox.session import SandboxSession
from rlm_mem.store.core.chunk_store import ChunkStore

pytestmark = pytest.mark.local_only("about models and programs, which read every store alike")


@pytest.fixture(params=["monty", "cpython"])
def session(store: ChunkStore, request: pytest.FixtureRequest) -> Iterator[SandboxSession]:
    store.create_chunk("Ana: I drink green tea.\nBen: I ride a bicycle.", conversation_id="talk")
    with SandboxSession(store, engine=request.param) as opened:
        yield opened


@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("turns = turns(author='Ana')\nlen(turns)", 1),
        ("turns = turns()\nprint(len(turns))\nfor t in turns:\n    pass\nt['speaker']", "Ben"),
        ("page = 1\nwhile page < 3:\n    page += 1\npage", 3),
        ("dates = ['a']\ndates.append('b')\nf'{len(dates)} {dates[0]}'", "2 a"),
        ("dates = ['a']\ntext = f'''\n{dates[0]}\n{len(turns())}'''\ntext", "\na\n2"),
        ("passages = passages('tea')\n[p['speaker'] for p in passages][0]", "Ana"),
        ("stats = stats()\ndef count():\n    return stats['chunk_count']\ncount()", 1),
        ("timeline, stats = timeline(), stats()\n(len(timeline), stats['chunk_count'])", (1, 1)),
        ("help = 'x'\nhelp", "x"),
        ("def f(turns):\n    return turns + 1\nturns = 5\nf(1) + turns", 7),
        ("sum(len(turns) for turns in [turns()])", 2),
        ("updates = 1\nif (updates := updates + 1) > 1:\n    pass\nupdates", 2),
    ],
)
def test_a_result_is_named_after_its_function(session: SandboxSession, program: str, value: object) -> None:
    assert session.execute(program) == value
    assert len(session.execute("turns()")) == 2


def test_the_variable_stays_and_so_does_the_function(session: SandboxSession) -> None:
    session.execute("turns = turns(author='Ana')")
    assert session.execute("len(turns)") == 1
    assert session.execute("turns = turns + turns(author='Ben')\nlen(turns)") == 2
    assert len(session.get_state()["turns"]) == 2
    session.reset()
    assert session.get_state() == {}
    assert len(session.execute("turns()")) == 2


@pytest.mark.parametrize(
    "program",
    [
        "FINAL = print",
        "read_chunk = None",
        "llm_query = 1",
        "search = lambda q: []",
        "turns = lambda: []",
        "turns = read_chunk",
        "def turns():\n    return []",
        "class page:\n    pass",
        "import json as stats",
        "try:\n    1 / 0\nexcept Exception as dates:\n    pass",
        "def f():\n    global turns\n    turns = 1",
    ],
)
def test_functions_are_not_replaced(session: SandboxSession, program: str) -> None:
    with pytest.raises(SandboxViolation, match="cannot be redefined"):
        session.execute(program)
