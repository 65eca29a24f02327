"""What a program or a model writes is cut where it is recorded, and says so; a trajectory stays small."""

from __future__ import annotations

import pytest
from recall_memories import block, fill

from rlm_mem.models.base import Limits, Message
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import RecallOperation, RecallResult, load_trajectory
from rlm_mem.store.core.chunk_store import ChunkStore

pytestmark = pytest.mark.local_only("about models and programs, which read every store alike")

ENGINES = ("monty", "cpython")

MAX_BYTES = 16_000_000
"""Of a trajectory, as docs/recall.md says."""


def recall(store: ChunkStore, engine: str, *replies: str, **limits: int) -> RecallResult:
    return RecallOperation(store, ScriptedLLM(replies), engine=engine, limits=Limits(**limits)).recall(
        "What does Ana drink?"
    )


FAILING = {
    "a message": "raise ValueError('m' * 9_000_000)",
    "a key": "{}['k' * 3_000_000]",
    "a name": "n" * 50_000,
    "a class": "kind = type('C' * 40_000, (Exception,), {})\nraise kind('x')",
    "a module": "import " + "m" * 50_000,
    "an attribute": "x = 1\nx." + "a" * 50_000,
    "an assertion": "assert False, 'm' * 1_000_000",
    "a cause": "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError('c' * 2_000_000) from error",
}


@pytest.mark.parametrize("engine", ENGINES)
def test_errors_are_short_whatever_a_program_puts_into_them(store: ChunkStore, engine: str) -> None:
    for name, code in FAILING.items():
        result = recall(store, engine, block(code), block("FINAL('done')"))
        step = result.trajectory.steps[0]
        assert step.error is not None, name
        assert len(step.error) < 2_100, name
        assert len(step.error_kind or "") <= 110, name


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_cut_says_so(store: ChunkStore, engine: str) -> None:
    result = recall(store, engine, block("raise ValueError('m' * 500_000)"), block("FINAL('done')"))
    assert "characters, cut)" in (result.trajectory.steps[0].error or "")
    long = "# " + "é" * 300_000 + "\nprint(1)"
    result = recall(store, engine, long, block("FINAL('done')"))
    reply = result.trajectory.steps[0].reply
    assert len(reply) < 100_100
    assert reply.endswith("(300,011 characters, cut)")


# As much as each place takes: control characters, which JSON writes with six bytes each.
WORST = """
noise = chr(1) * 1_000_000
for n in range(510):
    try:
        search(chr(2) * 9_000, chr(3) * 50, **{chr(97) * 5_000: chr(4) * 80})
    except Exception as error:
        pass
for n in range(600):
    read_chunk(ids[n % len(ids)])
print(noise)
raise ValueError(noise)
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_the_worst_program_leaves_a_small_trajectory(store: ChunkStore, engine: str) -> None:
    ids = fill(store)
    start = f"```repl\nids = {list(ids.values())!r}\n```\n"
    junk = "\x01" * 60_000
    replies = [f"{start}```repl\n{WORST}# {n}\n```\n{junk}" for n in range(2)]
    replies.append(block("FINAL({'a': [chr(1) * 149_000, chr(2) * 149_000]})"))
    result = recall(store, engine, *replies, iterations=20, seconds=300, model_calls=100)
    assert result.concluded
    size = sum(len(line) for line in _bytes_of(store, result.trajectory.id))
    assert 1_000_000 < size < MAX_BYTES
    recorded = load_trajectory(store, result.trajectory.id)
    assert recorded.outcome is not None
    assert len(recorded.steps) == 3
    assert recorded.outcome.content == result.content


@pytest.mark.parametrize("engine", ENGINES)
def test_endless_sub_calls_leave_a_small_trajectory(store: ChunkStore, engine: str) -> None:
    def reply(messages: list[Message]) -> str:
        asked = messages[0].role == "system"
        return (
            block("for n in range(60):\n    llm_query('again')\nFINAL('done')") if asked else "\x01" * 200_000
        )

    llm = ScriptedLLM(default=reply)
    limits = Limits(iterations=3, model_calls=200, seconds=300)
    result = RecallOperation(store, llm, engine=engine, limits=limits).recall("What does Ana drink?")
    assert result.content == "done"
    assert sum(len(line) for line in _bytes_of(store, result.trajectory.id)) < MAX_BYTES
    assert result.trajectory.outcome is not None
    assert result.trajectory.outcome.detail["records_left_out"] >= 40
    assert all(len(call.reply) < 100_100 for call in result.trajectory.calls)


def _bytes_of(store: ChunkStore, trajectory_id: str) -> list[bytes]:
    from rlm_mem.recall.trajectory import trajectory_file

    return [store.backend.files(store.namespace).read(trajectory_file(trajectory_id)) or b""]
