"""RECALL with scripted models and the real sandbox: results, citations, recovery, records."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from recall_memories import block, fill

from rlm_mem.errors import InvalidQuery, ModelOverloaded
from rlm_mem.models.base import Completion, Limits, Usage
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import RecallOperation, RecallResult, list_trajectories, load_trajectory
from rlm_mem.recall.loop import LoopStep
from rlm_mem.recall.programs import programs_in
from rlm_mem.recall.prompts import SYSTEM_PROMPT
from rlm_mem.store.core.chunk_store import ChunkStore

READ_ALL = block("for i in search_chunks('Carla Lisbon Oslo'):\n    print(i, read_chunk(i)['content'])")


def recall(store: ChunkStore, *replies: Any, query: str = "Where does Carla live?") -> RecallResult:
    return RecallOperation(store, ScriptedLLM(replies)).recall(query)


def test_a_recall_reads_and_answers_with_the_chunks_it_rests_on(store: ChunkStore) -> None:
    ids = fill(store)
    result = recall(store, READ_ALL, block(f"FINAL('Lisbon', chunk_ids=['{ids['city']}'], confidence=0.9)"))
    assert result.content == "Lisbon"
    assert result.chunk_ids == [ids["city"]]
    assert result.confidence == 0.9
    assert result.iterations_used == 2
    assert result.stopped_by is None
    assert result.concluded
    assert {ids["city"], ids["job"]} <= set(result.evidence)


def test_the_result_begins_with_the_documented_fields(store: ChunkStore) -> None:
    fill(store)
    names = list(vars(recall(store, block("FINAL('x')"))))
    assert names[:8] == [
        "content",
        "chunk_ids",
        "confidence",
        "iterations_used",
        "trajectory",
        "usage",
        "cost",
        "stopped_by",
    ]


def test_the_first_prompt_holds_the_rankers_hits_with_their_snippets_as_data(store: ChunkStore) -> None:
    ids = fill(store)
    llm = ScriptedLLM([block("FINAL(None)")])
    RecallOperation(store, llm).recall("What colour is the bicycle of Ben?")
    prompt = "\n".join(message.content for message in llm.prompts[0])
    assert ids["bike"] in prompt
    assert "What colour is the bicycle of Ben?" in prompt
    hits = prompt[prompt.index("<hits>") : prompt.index("</hits>")]
    assert hits.count("red and I ride") == 1 and prompt.count("red and I ride") == 1


def test_faulty_code_is_corrected_in_the_second_turn(store: ChunkStore) -> None:
    ids = fill(store)
    llm = ScriptedLLM(
        [
            block("found = search_chunks('green tea')\nprint(found[0]['chunk_id'])"),
            block("chunk = read_chunk(found[0])\nFINAL(chunk['content'], chunk_ids=[chunk['id']])"),
        ]
    )
    result = RecallOperation(store, llm).recall("What does Ana drink?")
    told = llm.prompts[1][-1].content
    assert "line 2" in told
    assert "TypeError" in told
    assert "Hint:" in told
    assert result.content == "Ana: I drink green tea every morning before work."
    assert result.chunk_ids == [ids["tea"]]


def test_a_forbidden_import_is_named_with_its_line_and_the_run_continues(store: ChunkStore) -> None:
    fill(store)
    llm = ScriptedLLM([block("x = 1\nimport os"), block("FINAL('fine')")])
    result = RecallOperation(store, llm).recall("Anything?")
    assert "line 2" in llm.prompts[1][-1].content
    assert "os" in llm.prompts[1][-1].content
    assert result.content == "fine"


def test_variables_last_from_one_program_to_the_next(store: ChunkStore) -> None:
    fill(store)
    assert (
        recall(store, block("x = 20"), block("def f():\n    return x + 1"), block("FINAL(f() * 2)")).content
        == "42"
    )


def test_an_object_with_complete_that_returns_a_text_is_a_model(store: ChunkStore) -> None:
    class Client:
        def complete(self, prompt: str) -> str:
            assert "Where?" in prompt
            return block("FINAL('here')")

    assert RecallOperation(store, Client()).recall("Where?").content == "here"
    assert RecallOperation(store, llm_client=Client()).recall("Where?").content == "here"


def test_a_chunk_given_to_final_stands_for_its_content(store: ChunkStore) -> None:
    """Programs call FINAL(content) with what read_chunk returned, after ``return``."""
    ids = fill(store)
    code = "for chunk_id in search_chunks('bicycle'):\n    content = read_chunk(chunk_id)\n    return FINAL(content)"
    result = recall(store, block(code))
    assert result.content == "Ben: My bicycle is red and I ride it to the office."
    assert result.chunk_ids == [ids["bike"]]


def test_an_answer_without_citations_is_traced_to_the_chunks_that_were_read(store: ChunkStore) -> None:
    ids = fill(store)
    code = f"for i in {list(ids.values())!r}:\n    read_chunk(i)\nFINAL('She works as a lighthouse keeper.')"
    result = recall(store, block(code))
    assert result.chunk_ids == [ids["job"]]
    assert 0.5 < result.confidence <= 0.95


def test_an_answer_that_is_in_no_chunk_gets_no_confidence(store: ChunkStore) -> None:
    fill(store)
    result = recall(store, block("FINAL('Purple submarines')"))
    assert result.content == "Purple submarines"
    assert (result.chunk_ids, result.confidence) == ([], 0.0)


@pytest.mark.parametrize(
    "named", ["chunk-2020-01-01-ffffffff", "../../etc/passwd", "CHUNK_ID", "chunk-\ud800"]
)
def test_an_answer_that_names_an_unknown_chunk_goes_back_to_the_model(store: ChunkStore, named: str) -> None:
    ids = fill(store)
    llm = ScriptedLLM(
        [
            block(f"FINAL('coffee', chunk_ids=[{ids['tea']!r}, {named!r}])"),
            block(f"FINAL('tea', chunk_ids=['{ids['tea']}', '{ids['tea']}'])"),
        ]
    )
    result = RecallOperation(store, llm).recall("What does Ana drink?")
    assert (result.content, result.chunk_ids) == ("tea", [ids["tea"]])
    assert "there is no chunk" in llm.prompts[1][-1].content


@pytest.mark.parametrize("given", ["2.5", "-1", "'high'"])
def test_a_confidence_outside_0_to_1_is_an_error_that_the_model_can_mend(
    store: ChunkStore, given: str
) -> None:
    fill(store)
    llm = ScriptedLLM([block(f"FINAL('x', confidence={given})"), block("FINAL('x', confidence=0.25)")])
    result = RecallOperation(store, llm).recall("What?")
    assert "confidence" in llm.prompts[1][-1].content
    assert (result.content, result.confidence) == ("x", 0.25)


def test_final_none_concludes_that_there_is_no_answer(store: ChunkStore) -> None:
    fill(store)
    result = recall(store, block("FINAL(None, chunk_ids=[], confidence=0.8)"))
    assert (result.content, result.concluded, result.stopped_by) == (None, True, None)
    assert (result.chunk_ids, result.confidence) == ([], 0.8)


def test_plain_data_given_to_final_becomes_json(store: ChunkStore) -> None:
    fill(store)
    assert json.loads(recall(store, block("FINAL({'a': [1, 2]})")).content or "") == {"a": [1, 2]}


def test_usage_and_cost_cover_turns_and_sub_calls(store: ChunkStore) -> None:
    fill(store)
    result = recall(
        store,
        Completion(block("print(llm_query('Say yes'))"), Usage(100, 10), model="big", cost=Decimal("0.02")),
        Completion("yes", Usage(7, 1), model="small", cost=Decimal("0.001")),
        Completion(block("FINAL('yes')"), Usage(200, 10), model="big", cost=Decimal("0.03")),
    )
    assert result.usage.total_tokens == 328
    assert result.cost == Decimal("0.051")
    assert result.iterations_used == 2


def test_one_call_without_a_price_leaves_the_cost_unknown(store: ChunkStore) -> None:
    fill(store)
    priced = Completion(block("x = 1"), Usage(1, 1), cost=Decimal("0.02"))
    assert recall(store, priced, block("FINAL(1)")).cost is None


def test_a_sub_question_has_its_own_session_and_hands_back_answer_and_chunks(store: ChunkStore) -> None:
    ids = fill(store)
    llm = ScriptedLLM(
        [
            block("secret = 1\nr = rlm_query('What does Ana drink?')\nprint(r)"),
            block("try:\n    print(secret)\nexcept NameError:\n    print('clean')"),
            block(f"read_chunk('{ids['tea']}')\nFINAL('green tea', chunk_ids=['{ids['tea']}'])"),
            block("FINAL(r['answer'], chunk_ids=r['chunk_ids'])"),
        ]
    )
    steps: list[LoopStep] = []
    result = RecallOperation(store, llm).recall("What does the colleague of Ben drink?", on_step=steps.append)
    assert "clean" in llm.prompts[2][-1].content
    assert (result.content, result.chunk_ids) == ("green tea", [ids["tea"]])
    assert result.evidence == [ids["tea"]]
    assert result.iterations_used == 4
    assert [(step.depth, step.turn) for step in steps] == [(1, 1), (1, 2), (0, 1), (0, 2)]


def test_the_chunks_handed_out_are_in_the_audit_log(store: ChunkStore) -> None:
    ids = fill(store)
    result = recall(store, block(f"FINAL('tea', chunk_ids=['{ids['tea']}'])"))
    event = list(store.events(op="recall"))[-1]
    assert ids["tea"] in json.dumps(event)
    assert result.trajectory.id in json.dumps(event)


def test_reading_changes_no_chunk(store: ChunkStore) -> None:
    ids = fill(store)
    before = store.get_many(list(ids.values()))
    recall(store, READ_ALL, block("FINAL('x')"))
    for chunk_id, chunk in store.get_many(list(ids.values())).items():
        assert (chunk.revision, chunk.content, chunk.tags) == (
            1,
            before[chunk_id].content,
            before[chunk_id].tags,
        )
        assert len(store.history(chunk_id)) == 1


@pytest.mark.parametrize("query", ["", "   \n", None, 7])
def test_an_empty_question_is_refused(store: ChunkStore, query: str) -> None:
    with pytest.raises(InvalidQuery):
        RecallOperation(store, ScriptedLLM()).recall(query)


def test_a_recall_on_an_empty_store_works(store: ChunkStore) -> None:
    assert recall(store, block("print(search('anything'))"), block("FINAL(None)")).content is None


def test_a_failing_model_leaves_its_steps_in_the_trajectory(store: ChunkStore) -> None:
    fill(store)
    llm = ScriptedLLM([READ_ALL, ModelOverloaded("busy")])
    with pytest.raises(ModelOverloaded) as caught:
        RecallOperation(store, llm).recall("Where?")
    trajectory = load_trajectory(store, "last")
    assert trajectory.id in "".join(caught.value.__notes__)
    assert len(trajectory.steps) == 1
    assert trajectory.outcome is not None
    assert "busy" in str(trajectory.outcome.error)
    assert not trajectory.outcome.concluded


def test_a_small_window_is_enough_for_many_turns(store: ChunkStore) -> None:
    from dataclasses import replace

    for number in range(30):
        store.create_chunk(f"Fact number {number}: " + f"detail {number} " * 120, conversation_id="long")
    config = replace(store.config, llm=replace(store.config.llm, context_tokens=4096, max_tokens=512))
    reading = "for i in search_chunks('fact detail', limit={}):\n    print(read_chunk(i)['content'])"
    llm = ScriptedLLM([*(block(reading.format(20 + n)) for n in range(7)), block("FINAL('done')")])
    result = RecallOperation(store, llm, config=config).recall("Which details are there?")
    assert result.content == "done"
    from rlm_mem.text.tokens import count_tokens

    sizes = [sum(count_tokens(message.content) for message in prompt) for prompt in llm.prompts]
    assert max(sizes) <= 4096 - 512
    assert sizes[-1] > 1500


def test_the_offline_model_answers_without_any_key(store: ChunkStore) -> None:
    ids = fill(store)
    result = RecallOperation(store).recall("What does Ana drink every morning?")
    assert "green tea" in str(result.content or result.suggestion)
    assert ids["tea"] in result.chunk_ids
    assert result.cost == 0
    assert result.trajectory.model == "offline"


def test_limits_of_one_recall_replace_the_operations(store: ChunkStore) -> None:
    fill(store)
    replies = (block(f"x = {number}") for number in range(7))
    operation = RecallOperation(store, ScriptedLLM(replies), limits=Limits(iterations=5))
    assert operation.recall("Where?", limits=Limits(iterations=2)).iterations_used == 2
    assert operation.recall("Where?").iterations_used == 5


def test_further_functions_are_described_to_the_model_and_callable(store: ChunkStore) -> None:
    def exchange_rate(currency: str, day: str = "today") -> float:
        """Units of a currency for one euro."""
        return {"NOK": 11.5}[currency]

    llm = ScriptedLLM([block("FINAL(exchange_rate('NOK') * 2)")])
    result = RecallOperation(store, llm, functions={"exchange_rate": exchange_rate}).recall(
        "How many crowns?"
    )
    assert result.content == "23.0"
    system = llm.prompts[0][0].content
    assert "exchange_rate(currency, day='today')" in system
    assert "Units of a currency for one euro." in system


def test_the_worked_programs_of_the_prompt_run_in_the_sandbox(store: ChunkStore) -> None:
    store.create_chunk(
        "Ana drinks green tea in the morning.", chunk_id="chunk-2026-01-05-0a1b2c3d", conversation_id="c"
    )
    placeholders = {
        "CHUNK_ID": "chunk-2026-01-05-0a1b2c3d",
        "ANSWER IN A FEW WORDS": "Green tea",
        "Ana drink morning coffee tea": "Ana drinks tea",
    }
    told = "Ben: My trip to the city of Rome was fine."
    store.create_chunk(told, conversation_id="c", occurred_at="2026-05-20T10:00:00Z")
    shown = programs_in(SYSTEM_PROMPT)
    assert len(shown) == 3
    for placeholder, value in placeholders.items():
        shown = [program.replace(placeholder, value) for program in shown]
    first, last, other = shown
    llm = ScriptedLLM([block(program) for program in (first, other, last)])
    result = RecallOperation(store, llm).recall("What does Ana drink in the morning?")
    assert [step.error for step in result.trajectory.steps] == [None] * 3
    assert "green tea" in result.trajectory.steps[0].output
    assert "Rome" in result.trajectory.steps[1].output
    assert (result.content, result.chunk_ids) == ("Green tea", ["chunk-2026-01-05-0a1b2c3d"])


def test_one_operation_serves_many_threads(store: ChunkStore) -> None:
    ids = fill(store)
    operation = RecallOperation(store, "offline")
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(operation.recall, ["What does Ana drink every morning?"] * 12))
    assert {result.content for result in results} == {results[0].content}
    assert all(ids["tea"] in result.chunk_ids for result in results)
    assert len({result.trajectory.id for result in results}) == len(list_trajectories(store)) == 12
