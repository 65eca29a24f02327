"""FINAL takes plain data: what JSON cannot hold comes back to the program with the remedy, on both engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from recall_memories import block, fill

from rlm_mem import Memory
from rlm_mem.errors import InputError
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import RecallOperation, load_trajectory, recall_session
from rlm_mem.recall.repl_session import REPLSession
from rlm_mem.sandbox.dispatch import check_answer, check_final
from rlm_mem.store.core.chunk_store import ChunkStore

ENGINES = ("monty", "cpython")

REFUSED = {
    "a set": "FINAL({'a', 'b'})",
    "a set inside": "FINAL({'people': {'Ana', 'Ben'}})",
    "bytes": "FINAL(b'tea')",
    "a complex number": "FINAL(2j)",
    "a Decimal": "from decimal import Decimal\nFINAL(Decimal('1.5'))",
    "an instance": "class Tea:\n    def __init__(self):\n        self.kind = 'green'\nFINAL(Tea())",
    "an instance without fields": "class Tea:\n    pass\nFINAL([Tea()])",
    "a class": "class Tea:\n    pass\nFINAL(Tea)",
    "a function": "FINAL(len)",
    "a lambda": "FINAL(lambda: 1)",
    "not a number": "FINAL(float('nan'))",
    "infinity": "FINAL({'x': [float('-inf')]})",
    "a huge number": "FINAL(10 ** 3500)",
    "a key that is no text": "FINAL({1: 'one'})",
    "much text": "FINAL('x' * 400_000)",
    "much text in pieces": "FINAL(['x' * 1000] * 400)",
    "many parts": "FINAL([[1] * 1000] * 20)",
    "a list that holds itself": "x = []\nx.append(x)\nFINAL(x)",
    "deep nesting": "x = 1\nfor _ in range(30):\n    x = [x]\nFINAL(x)",
    "a shared list": "x = [1]\nfor _ in range(18):\n    x = [x, x]\nFINAL(x)",
    "no answer": "FINAL()",
    "an id that is no text": "FINAL('tea', chunk_ids=[b'chunk-1'])",
    "many ids": "FINAL('tea', chunk_ids=['chunk-%d' % n for n in range(2000)])",
    "a long id": "FINAL('tea', chunk_ids=['chunk-' + 'a' * 1000])",
    "confidence nan": "FINAL('tea', confidence=float('nan'))",
    "confidence as text": "FINAL('tea', confidence='0.9')",
    "confidence above 1": "FINAL('tea', confidence=10 ** 3000)",
    "confidence true": "FINAL('tea', confidence=True)",
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChunkStore]:
    with ChunkStore(tmp_path_factory.mktemp("answers")) as store:
        fill(store)
        yield store


@pytest.mark.parametrize("engine", ENGINES)
def test_what_json_cannot_hold_is_refused_and_the_program_may_try_again(
    small: ChunkStore, engine: str
) -> None:
    with REPLSession(small, engine=engine) as session:
        for name, code in REFUSED.items():
            step = session.run(code)
            assert step.error is not None, name
            assert session.final is None, name
            assert len(str(step.error)) < 600, name
        session.run(
            "try:\n    FINAL({1, 2})\nexcept ValueError as error:\n    FINAL('caught: ' + str(error))"
        )
        assert session.get_result().startswith("caught: FINAL: an answer must be plain data")


@pytest.mark.parametrize("engine", ENGINES)
def test_plain_data_passes_and_dates_and_broken_text_become_text(small: ChunkStore, engine: str) -> None:
    code = (
        "import datetime\nhalf = 'tea\\ud83d'\n"
        "FINAL({'when': datetime.date(2026, 3, 1), 'at': datetime.datetime(2026, 3, 1, 9), 'pair': (1, 2.5),\n"
        "    half: [None, True, half]})"
    )
    with REPLSession(small, engine=engine) as session:
        session.run(code)
        assert session.get_result() == {
            "when": "2026-03-01",
            "at": "2026-03-01T09:00:00",
            "pair": [1, 2.5],
            "tea\ufffd": [None, True, "tea\ufffd"],
        }


@pytest.mark.parametrize("engine", ENGINES)
def test_a_recall_continues_after_a_refused_answer(store: ChunkStore, engine: str) -> None:
    fill(store)
    llm = ScriptedLLM([block("FINAL({'green tea'})"), block("FINAL('green \\udc80 tea')")])
    result = RecallOperation(store, llm, engine=engine).recall("What does Ana drink?")
    assert "sorted(values)" in llm.prompts[1][-1].content
    assert result.content == "green \ufffd tea"
    recorded = load_trajectory(store, result.trajectory.id)
    assert recorded.outcome is not None
    assert recorded.outcome.content == "green \ufffd tea"


@pytest.mark.parametrize("engine", ENGINES)
def test_broken_text_reaches_no_output_error_or_record(store: ChunkStore, engine: str) -> None:
    fill(store)
    code = "bad = 'x\\ud800y'\nprint(bad)\nsearch(bad)\nraise ValueError(bad)"
    llm = ScriptedLLM([block(code), block("FINAL('green tea')")])
    result = RecallOperation(store, llm, engine=engine).recall("What does Ana drink?")
    step = result.trajectory.steps[0]
    for text in (step.output, step.error, str(step.host_calls), llm.prompts[1][-1].content):
        assert text is not None
        assert text.encode("utf-8")
    assert load_trajectory(store, result.trajectory.id).steps[0].output == step.output


def test_an_agent_that_finishes_by_hand_gets_the_same_checks(store: ChunkStore) -> None:
    ids = fill(store)
    with recall_session(store, "What does Ana drink?") as session:
        for answer in ({1}, b"x", object(), float("nan"), Decimal(1), {2: 1}, "x" * 400_000, [[]] * 20_000):
            with pytest.raises(InputError):
                session.finish(answer)
        for wrong in ({"confidence": 2.0}, {"confidence": float("nan")}, {"chunk_ids": [1]}):
            with pytest.raises(InputError):
                session.finish("tea", **wrong)
        with pytest.raises(InputError, match="there is no chunk 'chunk-2020-01-01-ffffffff'"):
            session.finish("tea", [ids["tea"], "chunk-2020-01-01-ffffffff"])
        assert session.result is None
        result = session.finish({"drink": "tea \ud800"}, [ids["tea"]], 0.5)
    assert result.content == '{"drink": "tea \ufffd"}'
    assert result.chunk_ids == [ids["tea"]]


@pytest.mark.parametrize("engine", ENGINES)
def test_memory_recall_never_fails_for_an_answer(place: Path | str, engine: str) -> None:
    replies = [block(code) for code in ("FINAL({b'tea': {1}})", "FINAL(len)", "FINAL(['Ana', {'n': 1}])")]
    with Memory.open(place, llm=ScriptedLLM(replies)) as memory:
        memory.remember("Ana drinks green tea.")
        assert memory.recall("What does Ana drink?", engine=engine).content == '["Ana", {"n": 1}]'


letters = st.characters() | st.sampled_from("\ud800\udbff\udc00\udfff")
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(letters, max_size=20)
    | st.binary(max_size=5)
    | st.complex_numbers()
    | st.decimals()
    | st.dates()
    | st.datetimes()
    | st.times()
    | st.timedeltas()
    | st.just(object())
    | st.sampled_from([len, int, 10**2000]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(letters, max_size=3) | st.integers(), inner, max_size=3)
        | st.frozensets(st.integers(), max_size=2)
    ),
    max_leaves=12,
)


def test_an_integer_has_at_most_1000_digits() -> None:
    for sign in (1, -1):
        assert check_answer(sign * (10**1000 - 1)) == sign * (10**1000 - 1)
        with pytest.raises(InputError, match="at most 1,000 digits"):
            check_answer(sign * 10**1000)


@given(anything)
def test_whatever_is_accepted_can_be_written_as_json(value: Any) -> None:
    try:
        made = check_answer(value)
    except InputError:
        return
    text = json.dumps(made, ensure_ascii=False, allow_nan=False)
    assert json.loads(text.encode("utf-8")) == made


@given(anything, anything, anything)
def test_whatever_is_given_to_final_is_taken_or_refused_in_words(
    answer: Any, chunk_ids: Any, confidence: Any
) -> None:
    try:
        final = check_final(answer, chunk_ids, confidence)
    except InputError as error:
        assert 0 < len(str(error)) < 500
        return
    json.dumps([final.answer, final.chunk_ids, final.confidence], allow_nan=False).encode("utf-8")
