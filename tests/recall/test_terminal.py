"""Budgets are terminal: each of them ends a run that would never finish, also one that catches everything."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest
from recall_memories import block, fill
from tests.waiting import takes

from rlm_mem.config import Config
from rlm_mem.models.base import Budget, Completion, Limits, Message, Usage
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import RecallOperation, RecallResult, running
from rlm_mem.store.core.chunk_store import ChunkStore

pytestmark = pytest.mark.local_only("about models and programs, which read every store alike")

PLENTY = {
    "iterations": 1000,
    "depth": 50,
    "seconds": 20.0,
    "model_calls": 10_000,
    "tokens": None,
    "usd": None,
}

NEVER_DONE = {
    "iterations": "x = 1",
    "seconds": "while True:\n    pass",
    "model_calls": "while True:\n    llm_query('again')",
    "tokens": "while True:\n    llm_query('again')",
    "usd": "while True:\n    llm_query('again')",
    "depth": "rlm_query('deeper still?')",
}
TIGHT = {
    "iterations": 4,
    "seconds": 1.0,
    "model_calls": 7,
    "tokens": 20_000,
    "usd": Decimal("0.05"),
    "depth": 3,
}


def stubborn(code: str) -> str:
    """The same program inside handlers for everything, in a loop that never ends by itself."""
    inner = "\n".join("            " + line for line in code.splitlines())
    return f"""n = 0
while True:
    n = n + 1
    try:
        try:
{inner}
        except BaseException:
            pass
    except:
        pass
    finally:
        n = n + 1
"""


def endless(code: str) -> ScriptedLLM:
    """A model that writes the program for ever, and answers sub-calls with a word; each call has its price."""

    def reply(messages: list[Message]) -> Completion:
        text = block(code) if messages[0].role == "system" else "a word"
        return Completion(text, Usage(400, 30), model="m", cost=Decimal("0.004"))

    return ScriptedLLM(default=reply)


ALONE = Config.load(None, recall={"scaffold": "never"})  # no other model answers in its place


def run(store: ChunkStore, code: str, name: str) -> RecallResult:
    limits = Limits(**(PLENTY | {name: TIGHT[name]}))  # type: ignore[arg-type]
    return RecallOperation(store, endless(code), limits=limits, config=ALONE).recall("Where does Carla live?")


@pytest.mark.parametrize("name", list(NEVER_DONE))
def test_a_run_that_never_finishes_is_ended_by_its_budget(store: ChunkStore, name: str) -> None:
    fill(store)
    began = time.monotonic()
    result = run(store, NEVER_DONE[name], name)
    assert (result.content, result.stopped_by, result.concluded) == (None, name, False)
    assert result.confidence == 0.0
    assert time.monotonic() - began < 60, "it would run for ever"


@pytest.mark.parametrize("name", [name for name in NEVER_DONE if name != "iterations"])
def test_a_program_that_catches_everything_is_ended_all_the_same(store: ChunkStore, name: str) -> None:
    fill(store)
    result = run(store, stubborn(NEVER_DONE[name]), name)
    assert (result.content, result.stopped_by) == (None, name)


def test_no_budget_is_overspent(store: ChunkStore) -> None:
    fill(store)
    for name in ("model_calls", "usd"):
        result = run(store, stubborn(NEVER_DONE[name]), name)
        outcome = result.trajectory.outcome
        assert outcome is not None
        assert outcome.model_calls <= 7 if name == "model_calls" else result.cost <= TIGHT["usd"]  # type: ignore[operator]


def test_the_evidence_of_a_stopped_run_is_kept(store: ChunkStore) -> None:
    ids = fill(store)
    code = f"print(read_chunk('{ids['job']}')['content'])\nwhile True:\n    llm_query('again')"
    result = run(store, code, "model_calls")
    assert result.content is None
    assert result.evidence == result.chunk_ids == [ids["job"]]
    assert "lighthouse" in result.trajectory.steps[0].output


def test_without_anything_read_the_rankers_hits_are_the_best_evidence(store: ChunkStore) -> None:
    ids = fill(store)
    result = run(store, "x = 1", "iterations")
    assert result.evidence == []
    assert {ids["city"], ids["job"]} <= set(result.chunk_ids)


def test_a_hundred_parallel_sub_calls_stay_within_one_budget(store: ChunkStore) -> None:
    fill(store)
    code = "answers = llm_query_batched([f'prompt {n}' for n in range(100)])\nFINAL(len(answers))"
    llm = endless(code)
    result = RecallOperation(store, llm, limits=Limits(model_calls=41)).recall("Many?")
    assert result.stopped_by == "model_calls"
    assert llm.calls <= 41
    outcome = result.trajectory.outcome
    assert outcome is not None
    assert outcome.usage.input_tokens == 400 * llm.calls

    enough = RecallOperation(store, endless(code), limits=Limits(model_calls=101)).recall("Many?")
    assert enough.content == "100"
    assert enough.usage.input_tokens == 400 * 101


def test_parallel_sub_calls_keep_the_order_of_their_prompts(store: ChunkStore) -> None:
    fill(store)

    def reply(messages: list[Message]) -> str:
        if messages[0].role == "system":
            return block("FINAL(llm_query_batched([f'<{n}>' for n in range(20)]))")
        text = messages[-1].content
        number = int(text[text.index("<") + 1 : text.index(">")])
        takes(0.02 if number % 3 == 0 else 0.001)
        return str(number)

    result = RecallOperation(store, ScriptedLLM(default=reply)).recall("Order?")
    assert result.content == "[" + ", ".join(f'"{n}"' for n in range(20)) + "]"


def test_nested_sub_questions_stop_at_max_depth(store: ChunkStore) -> None:
    fill(store)
    result = run(store, "print(rlm_query('deeper still?'))", "depth")
    assert result.stopped_by == "depth"
    # Depths 0 to 3 each asked once; nothing was asked at depth 4.
    assert sorted(step.depth for step in result.trajectory.steps) == [0, 1, 2, 3]


def test_a_model_that_thinks_past_the_end_of_the_run_is_not_asked_again(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    now = 0.0
    monkeypatch.setattr(running, "Budget", lambda limits: Budget(limits, clock=lambda: now))

    def slow(_messages: list[Message]) -> str:
        nonlocal now
        now += 0.4
        return block("print('too late')\nFINAL('too late')")

    llm = ScriptedLLM(default=slow)
    result = RecallOperation(store, llm, limits=Limits(seconds=0.3), config=ALONE).recall(
        "Where does Carla live?"
    )
    assert (result.content, result.stopped_by) == (None, "seconds")
    assert llm.calls == 1
