"""What a program changes in a module of the standard library ends with it; variables stay; on both engines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlm_mem.errors import SandboxError
from rlm_mem.sandbox.session import SandboxSession
from rlm_mem.store.core.chunk_store import ChunkStore

pytestmark = pytest.mark.local_only("about programs, which read every store alike")


@pytest.fixture(params=["monty", "cpython"])
def session(store: ChunkStore, request: pytest.FixtureRequest) -> Iterator[SandboxSession]:
    with SandboxSession(store, engine=request.param) as opened:
        yield opened


CHANGES = {
    "context": "import decimal\ndecimal.getcontext().prec = 3",
    "traps": "import decimal\ndecimal.getcontext().traps[decimal.DivisionByZero] = False",
    "new context": "import decimal\ndecimal.setcontext(decimal.Context(prec=2, rounding=decimal.ROUND_DOWN))",
    "default context": "import decimal\ndecimal.DefaultContext.prec = 3",
    "random": "import random\nrandom.seed(7)",
    "calendar": "import calendar\ncalendar.setfirstweekday(3)",
    "calendar names": "import calendar\ncalendar.day_name.format = '%d'",
    "dialect": "import csv\ncsv.register_dialect('excel', delimiter=';')",
    "own dialect": "import csv\ncsv.register_dialect('own', delimiter=';')",
    "field size": "import csv\ncsv.field_size_limit(3)",
    "abstract class": "import collections.abc\ncollections.abc.Sequence.register(int)",
    "number": "import numbers\nnumbers.Number.register(str)",
    "hashes": "import hashlib\nhashlib.algorithms_guaranteed.clear()",
    "modules": "import math\nmath.pi = 3",
}
PROBE = """
import collections.abc, csv, decimal, hashlib, math
seen = [str(decimal.Decimal(1) / decimal.Decimal(7)), math.pi]
try:
    decimal.Decimal(1) / decimal.Decimal(0)
except ArithmeticError:
    seen.append('trapped')
try:
    seen += [len(hashlib.algorithms_guaranteed) > 5]
except AttributeError:
    pass
try:
    seen += [decimal.Context().prec, list(csv.reader(['abcde,f;g'])), sorted(csv.list_dialects())]
    seen += [isinstance(5, collections.abc.Sequence), isinstance([], collections.abc.Sequence)]
except AttributeError:
    pass
seen
"""
ON_CPYTHON = """
import calendar, numbers
[calendar.weekheader(2), calendar.day_name[0], isinstance('a', numbers.Number), isinstance(5, numbers.Number)]
"""


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_a_program_changes_in_a_module_ends_with_it(session: SandboxSession, change: str) -> None:
    before = session.execute(PROBE)
    more = session.execute(ON_CPYTHON) if session.engine_name == "cpython" else None
    try:
        session.execute(f"{change}\nchanged = 'kept'")
    except (SandboxError, AttributeError, TypeError, ValueError) as error:  # the other engine lacks it
        assert session.engine_name == "monty", error
    else:
        assert session.execute("changed") == "kept"
    assert session.execute(PROBE) == before
    assert more is None or session.execute(ON_CPYTHON) == more


def test_a_seed_does_not_reach_the_next_program(session: SandboxSession) -> None:
    draws = set()
    for _ in range(2):
        session.execute("import random\nrandom.seed(7)")
        draws.add(session.execute("import random\nrandom.random()"))
    assert len(draws) == 2
    seeded = "import random\nrandom.seed(7)\nrandom.random()"
    assert session.execute(seeded) == session.execute(seeded)
