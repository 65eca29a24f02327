"""Answers of a wanted form, sub-calls with a model and budget of their own, kept variables, and export for training."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
import pydantic
import pytest
from recall_memories import block, fill

from rlm_mem import Memory
from rlm_mem.config import Config
from rlm_mem.errors import InputError, ModelRefused, SessionBusy, SessionComplete
from rlm_mem.models import Completion, Message, Usage
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import RecallOperation, costs, recall_session, replay
from rlm_mem.recall.model_calls import SubModel, render
from rlm_mem.recall.result_schema import ResultSchema, check_schema, check_value
from rlm_mem.recall.trajectory_export import FIELDS, export_trajectories
from rlm_mem.store.core.chunk_store import ChunkStore

pytestmark = pytest.mark.local_only("about models and programs, which read every store alike")


class Drink(msgspec.Struct):
    name: str
    cups: int


@dataclass
class DrinkData:
    name: str
    cups: int


class DrinkModel(pydantic.BaseModel):
    name: str
    cups: int


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "cups": {"type": "integer", "minimum": 1}},
    "required": ["name", "cups"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        (Drink, Drink("tea", 1)),
        (DrinkData, DrinkData("tea", 1)),
        (DrinkModel, DrinkModel(name="tea", cups=1)),
        (SCHEMA, {"name": "tea", "cups": 1}),
    ],
    ids=["struct", "dataclass", "pydantic", "schema"],
)
def test_an_answer_has_the_form_that_was_asked_for(store: ChunkStore, wanted: Any, value: Any) -> None:
    fill(store)
    llm = ScriptedLLM(
        [block("FINAL('tea')"), block("FINAL({'name': 'tea'})"), block("FINAL({'name': 'tea', 'cups': 1})")]
    )
    result = RecallOperation(store, llm).recall("What does Ana drink?", result=wanted)
    assert result.value == value and type(result.value) is type(value)
    assert json.loads(result.content or "") == {"name": "tea", "cups": 1}
    assert '"cups"' in llm.prompts[0][1].content
    assert "does not match the schema" in llm.prompts[1][-1].content
    assert "cups" in llm.prompts[2][-1].content
    assert replay(store, result.trajectory.id).same


def test_without_an_answer_there_is_no_value_and_the_offline_model_stays_honest(store: ChunkStore) -> None:
    fill(store)
    assert (
        RecallOperation(store, ScriptedLLM([block("FINAL(None)")])).recall("What?", result=Drink).value
        is None
    )
    offline = RecallOperation(store, "offline").recall("What does Ana drink every morning?", result=Drink)
    assert (offline.content, offline.value) == (None, None) and offline.chunk_ids
    text = RecallOperation(store, "offline").recall("What does Ana drink every morning?", result=str)
    assert (text.content, text.value) == (None, None) and "tea" in str(text.suggestion)


def test_a_weak_model_reads_into_the_form(store: ChunkStore) -> None:
    fill(store)
    replies = [
        json.dumps({"passages": [1], "answer": {"name": "green tea"}, "search": None}),
        json.dumps({"passages": [1], "answer": {"name": "green tea", "cups": 1}, "search": None}),
    ]
    llm = ScriptedLLM(["prose", "prose again", *replies])
    result = RecallOperation(store, llm).recall("What does Ana drink every morning?", result=SCHEMA)
    assert (result.value, result.method) == ({"name": "green tea", "cups": 1}, "scaffolded")
    asked = llm.options[-1]["json_schema"]
    assert asked is not None and asked["properties"]["answer"]["anyOf"][0] == SCHEMA


def test_an_agent_finishes_with_the_form_too(store: ChunkStore) -> None:
    fill(store)
    with recall_session(store, "What does Ana drink?", result=SCHEMA) as session:
        assert '"cups"' in session.opening
        with pytest.raises(InputError, match="does not match the schema"):
            session.finish("tea")
        assert session.finish('{"name": "tea", "cups": 2}').value == {"name": "tea", "cups": 2}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": ["string", "null"], "maxLength": 3}, "abc", "abcd"),
        ({"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}, 1.5, 0),
        ({"enum": ["a", 1]}, 1, True),
        ({"items": {"$ref": "#/$defs/n"}, "minItems": 1, "$defs": {"n": {"type": "integer"}}}, [1], ["x"]),
        ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]}, 3, 7),
        ({"type": "string", "pattern": "^[a-z]+$"}, "abc", "Abc"),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": False}, ["a"], ["a", 1]),
        ({"type": "array", "uniqueItems": True}, [1, 2], [1, 1]),
        ({"type": "boolean"}, True, 1),
        ({"type": "integer"}, 3, True),
        ({"type": "integer"}, 3.0, 3.5),
        ({"type": "number", "multipleOf": 0.01}, 19.99, 19.995),
        ({"multipleOf": 0.1}, 10**400, float("inf")),
        ({"maximum": 5}, 5, 6),
        ({"exclusiveMaximum": 5}, 4, 5),
        ({"const": {"a": 1}}, {"a": 1}, {"a": 2}),
        ({"minProperties": 1}, {"a": True}, {}),
        ({"properties": {"a": True}, "additionalProperties": False}, {"a": 1}, {"b": 1}),
        ({"properties": {"a": True}, "additionalProperties": {"type": "string"}}, {"a": 1, "b": "x"}, {"b": 1}),
    ],
)  # fmt: skip
def test_schemas_are_checked(schema: dict[str, Any], good: Any, bad: Any) -> None:
    checked = check_schema(schema)
    check_value(good, checked)
    with pytest.raises(InputError):
        check_value(bad, checked)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "text"},
        {"$ref": "https://example.com/x"},
        {"$ref": "#/$defs/none"},
        {"if": {}},
        {"pattern": "(?=a)b"},
        {"properties": []},
        {"anyOf": [3]},
        {"anyOf": {}},
        {"type": {}},
        {"required": "name"},
        {"required": [{}]},
        {"enum": "name"},
        {"minimum": "5"},
        {"maxLength": True},
        {"pattern": "a" * 501},
        {"description": "x" * 30_000},
        {"type": "string", "default": {1, 2}},
        7,
    ],
    ids=str,
)
def test_what_cannot_be_checked_is_refused_first(schema: Any) -> None:
    with pytest.raises(InputError):
        ResultSchema(schema)


def test_hostile_schemas_come_to_an_end() -> None:
    began = time.process_time()
    endless = check_schema({"$ref": "#"})
    doubling = check_schema({"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "null"}]})
    nested = check_schema({"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}] * 9}}, "$ref": "#/$defs/a"})
    slow = check_schema({"pattern": "(a+)+$"})
    for schema in (endless, doubling, nested):
        with pytest.raises(InputError):
            check_value("x", schema)
    with pytest.raises(InputError):
        check_value("a" * 100_000 + "b", slow)
    assert time.process_time() - began < 5


def test_sub_calls_go_to_the_cheaper_model_within_their_budget(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    cheap = ScriptedLLM(
        default=Completion("small", Usage(10, 2), model="cheap", cost=Decimal("0.001")), name="cheap"
    )
    import rlm_mem.recall.running as run_module

    real = run_module.adapt
    monkeypatch.setattr(
        run_module, "adapt", lambda model, config=None: cheap if model == "cheap" else real(model, config)
    )
    config = Config.load(None, llm={"sub_model": "cheap"}, recall={"max_sub_calls": 3})
    program = (
        "said = [llm_query('a'), *llm_query_batched(['b', 'c'])]\n"
        "try:\n    llm_query('d')\nexcept Exception as error:\n    said.append(str(error))\nFINAL(said)"
    )
    dear = ScriptedLLM(
        [Completion(block(program), Usage(50, 20), model="dear", cost=Decimal("0.5"))], name="dear"
    )
    result = RecallOperation(store, dear, config=config).recall("What?")
    said = json.loads(result.content or "")
    assert said[:3] == ["small"] * 3 and "budget of sub-calls is used up" in said[3]
    assert cheap.calls == 3 and dear.calls == 1
    assert {(line.model, line.calls, line.cost) for line in costs(store)} >= {
        ("cheap", 3, Decimal("0.003")), ("dear", 1, Decimal("0.5")),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("limits", "cost", "reason"),
    [
        ({"max_sub_tokens": 3_000}, "0.001", "nearly all of 3,000 tokens"),
        ({"max_sub_usd": 0.0015}, "0.001", "nearly all of 0.0015 dollars"),
        ({"max_sub_usd": 1.0}, None, "a call without a known price"),
    ],
)
def test_a_budget_of_sub_calls_names_what_is_used_up(
    limits: dict[str, Any], cost: str | None, reason: str
) -> None:
    priced = None if cost is None else Decimal(cost)
    inner = ScriptedLLM(default=Completion("small", Usage(1_500, 10), model="cheap", cost=priced))
    model = SubModel(inner, Config.load(None, recall=limits, llm={"max_tokens": 1_600}))
    model.complete([Message("user", "What?")])
    with pytest.raises(ModelRefused, match=reason):
        model.complete([Message("user", "What?")])
    assert inner.calls == 1


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("llm_query(5)", "must be text"),
        ("llm_query('q', {(1, 2): 'x'})", "not plain data"),
        ("llm_query('q' * 500_000)", "at most"),
        ("llm_query_batched('q')", "needs a list of prompts"),
        ("llm_query_batched(['q'] * 1_000)", "at most"),
        ("rlm_query(5)", "takes a question as text"),
    ],
)
def test_a_prompt_that_cannot_be_sent_is_refused_in_words(store: ChunkStore, call: str, reason: str) -> None:
    llm = ScriptedLLM([block(call), block("FINAL('x')")])
    result = RecallOperation(store, llm).recall("What?")
    assert reason in str(result.trajectory.steps[0].error) and llm.calls == 2


def test_a_set_is_sent_in_the_same_order_by_every_process() -> None:
    names = [f"name {number:02}" for number in range(30)]
    assert render("Who?", {"names": set(names)}) == render("Who?", {"names": names})
    assert render("Who?", range(2)) == render("Who?", [0, 1])


def test_sub_questions_of_a_batch_are_answered_at_the_same_time(store: ChunkStore) -> None:
    ids = fill(store)
    meeting = threading.Barrier(3, timeout=20)
    questions = ["What does Ana drink?", "What is red?", "Where does Carla work?"]

    def reply(messages: list[Any]) -> str:
        text = messages[1].content
        if "Everything" in text.split("</question>")[0]:
            return block(
                f"found = rlm_query_batched({[*questions, questions[0]]!r})\n"
                "FINAL([one['answer'] for one in found], [i for one in found for i in one['chunk_ids']])"
            )
        meeting.wait()
        number = next(n for n, one in enumerate(questions) if one in text)
        return block(f"hit = search({questions[number]!r}, limit=1)[0]\nFINAL({number}, [hit['chunk_id']])")

    result = RecallOperation(store, ScriptedLLM(default=reply)).recall("Everything?")
    assert result.content == "[0, 1, 2, 0]"
    assert ids["tea"] in result.chunk_ids
    assert replay(store, result.trajectory.id).content_now == result.content


def test_a_batch_is_bounded_in_number_depth_and_cost(store: ChunkStore) -> None:
    fill(store)
    refused = RecallOperation(
        store, ScriptedLLM([block("rlm_query_batched(['q'] * 21)"), block("FINAL('x')")])
    ).recall("What?")
    assert "up to 20 questions" in str(refused.trajectory.steps[0].error)
    endless = ScriptedLLM(default=block("FINAL(rlm_query_batched(['deeper?', 'and deeper?']))"))
    alone = Config.load(None, recall={"scaffold": "never"})
    stopped = RecallOperation(store, endless, config=alone).recall("What?")
    assert stopped.stopped_by in ("depth", "iterations", "model_calls")


def test_a_batch_that_was_left_behind_does_not_hold_up_the_exit(tmp_path: Any) -> None:
    program = """
import sys, time
from rlm_mem import Memory
def slow(prompt):
    if "<question>" in prompt:
        return "```repl\\nllm_query_batched(['a', 'b'])\\n```"
    time.sleep(60)
    return "late"
with Memory.open(sys.argv[1], llm=slow) as memory:
    memory.remember("Ana drinks tea.")
    from rlm_mem.models.base import Limits
    print(memory.recall("What?", limits=Limits(seconds=2.0)).stopped_by)
"""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "brain")], capture_output=True, text=True, timeout=50
    )
    assert done.stdout.strip() == "seconds", done.stderr
    assert time.monotonic() - began < 40


def test_variables_stay_for_further_questions_of_a_session(store: ChunkStore) -> None:
    fill(store)
    with recall_session(store, "What does Ana drink?", keep=True) as session:
        with pytest.raises(SessionBusy):
            session.ask("And Ben?")
        session.execute("known = search_chunks('tea')")
        first = session.finish("tea")
        session.ask("How many did you know?")
        assert session.result is None and session.query == "How many did you know?"
        done = session.execute("FINAL(len(known))")
        assert done.finished and session.result is not None
        assert session.result.content == "1"
        assert session.result.trajectory.id != first.trajectory.id
        session.ask("Once more?")
        ended = """
found, drinks = turns(), {'Änne': 'tea'}  # one program that finds and answers
found
print('reading'); FINAL(
    [drinks['Änne'], 1 / 0] if not found else drinks['Änne'],
    chunk_ids=found[:1])
"""
        done = session.execute(ended)
        assert done.finished and done.output == "reading" and done.error is None
        session.ask("And after that?")
        assert session.execute("(len(found), drinks['Änne'])").output == "(4, 'tea')"
        failed = session.execute("more = 1\n\nFINAL(1 / 0)")
        assert failed.error is not None and failed.error.startswith("line 3: ZeroDivisionError")
        assert session.execute("more").output == "1"
    with pytest.raises(SessionComplete):
        session.ask("More?")
    once = recall_session(store, "What?")
    once.finish(None)
    with pytest.raises(SessionComplete, match="kept no variables"):
        once.ask("More?")


def test_runs_are_exported_with_chosen_fields_and_without_secrets(tmp_path: Any) -> None:
    secret = "sk-" + "a1B2" * 12
    with Memory.open(
        tmp_path / "brain", llm=ScriptedLLM([block(f"print('{secret}')"), block("FINAL('tea')")])
    ) as memory:
        memory.remember("Ana drinks tea.")
        memory.recall("What does Ana drink?")
        (run,) = memory.export_trajectories()
        assert tuple(run) == FIELDS
        assert [one["role"] for one in run["messages"]] == [
            "system",
            "user",
            "assistant",
            "user",
            "assistant",
        ]
        assert (run["answer"], run["outcome"]) == ("tea", "answered")
        assert secret not in json.dumps(run)
        assert list(memory.export_trajectories(fields=["question", "answer"])) == [
            {"question": "What does Ana drink?", "answer": "tea"}
        ]
        assert list(memory.export_trajectories(operation="reason")) == []
        with pytest.raises(InputError, match="'colour'"):
            list(export_trajectories(memory.store, fields=["colour"]))
