"""Weak models: the offline model finds memories, the model only reads them, and what both say is the answer."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from recall_memories import block, fill

from rlm_mem.config import Config
from rlm_mem.errors import InputError, ModelRefused, ModelTimeout
from rlm_mem.models.base import Limits, Message
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import (
    ReasonOperation,
    RecallOperation,
    RecallResult,
    load_trajectory,
    recall_session,
    replay,
)
from rlm_mem.recall.scaffold import AGREED, READ, READING_SCHEMA, read_reply
from rlm_mem.store.core.chunk_store import ChunkStore

pytestmark = pytest.mark.local_only("about models and programs, which read every store alike")

PROSE = ["I believe it is tea.", "As I said: tea."]
ASKED = "What does Ana drink every morning?"
UNSURE = "What does Ana consume before her job?"
"""The offline model finds the memory, and suggests nothing."""
QUOTED = "Which beverage does Ana take before her job?"
"""The offline model suggests the whole memory."""


def reading(answer: str | None, *passages: int, search: str | None = None) -> str:
    return json.dumps({"passages": list(passages), "answer": answer, "search": search})


def first(messages: list[Message]) -> str:
    """A reading of the first passage, in its words."""
    passage = messages[1].content.split("[1] ")[1].split("\n")[0]
    return reading(passage.split(": ", 1)[1], 1)


def asked(store: ChunkStore, replies: list[Any], question: str = ASKED, **more: Any) -> RecallResult:
    return RecallOperation(store, ScriptedLLM(replies), **more).recall(question)


def test_after_two_replies_that_do_not_run_the_model_only_reads(store: ChunkStore) -> None:
    ids = fill(store)
    llm = ScriptedLLM([*PROSE, first])
    result = RecallOperation(store, llm).recall(ASKED)
    assert "green tea" in str(result.content)
    assert (result.chunk_ids, result.method) == ([ids["tea"]], "scaffolded")
    assert "did not run" in result.note and result.note in str(result)
    assert llm.options[-1]["json_schema"] == READING_SCHEMA
    recorded = load_trajectory(store, result.trajectory.id)
    assert [step.scaffolded for step in recorded.steps] == [False, False, True, True]
    assert not recorded.calls, "those of the offline model, whose answer was not taken, are left out"
    assert recorded.outcome is not None and recorded.outcome.detail["method"] == "scaffolded"
    assert replay(store, recorded).same


def test_what_the_offline_model_does_not_suggest_is_a_suggestion(store: ChunkStore) -> None:
    ids = fill(store)
    assert RecallOperation(store, "offline").recall(UNSURE).suggestion is None
    llm = ScriptedLLM([*PROSE, reading("green tea", 1)])
    result = RecallOperation(store, llm).recall(UNSURE)
    assert (result.outcome, result.content, result.suggestion) == ("closest only", None, "green tea")
    assert (result.chunk_ids[0], result.confidence, result.method) == (ids["tea"], READ, "scaffolded")
    assert set(result.chunk_ids) == {ids["tea"], ids["bike"], ids["job"]}, (
        "the closest memories are all there"
    )
    assert "suggests nothing" in result.trajectory.steps[-1].programs[0]
    assert replay(store, result.trajectory.id).same


def test_a_suggestion_from_which_the_model_reads_among_others_is_the_answer(store: ChunkStore) -> None:
    ids = fill(store)
    offline = RecallOperation(store, "offline").recall(QUOTED)
    llm = ScriptedLLM([*PROSE, reading("green tea", 1)])
    result = RecallOperation(store, llm).recall(QUOTED)
    assert result.content == offline.suggestion == "I drink green tea every morning before work"
    assert (result.chunk_ids, result.confidence, result.method) == ([ids["tea"]], AGREED, "scaffolded")
    assert "in words of the offline model's suggestion" in result.trajectory.steps[-1].programs[0]
    shown = llm.prompts[2][1].content
    assert "[1]" in shown and "[2]" in shown, "it reads other memories, too"
    assert llm.calls == 3, "two programs, and one reading"
    assert replay(store, result.trajectory.id).same


@pytest.mark.parametrize("answer", ["not green tea", "It isn't green tea.", "no green tea"])
def test_an_answer_that_denies_a_suggestion_does_not_confirm_it(store: ChunkStore, answer: str) -> None:
    fill(store)
    result = asked(store, [*PROSE, *[reading(answer, 1)] * 3], QUOTED)
    assert (result.content, result.suggestion) == (None, "I drink green tea every morning before work")


def test_what_only_a_later_note_of_a_suggestion_has_does_not_make_it_the_answer(store: ChunkStore) -> None:
    texts = (
        "Claves moved the booklet date to 20 November instead of 1 December. Tell Dr. Sieber at once",
        "Money plan of the CD: half of the booklet is paid by Claves.",
        "The choir sings on Fridays.",
    )
    for day, text in enumerate(texts, 24):
        store.create_chunk(text, "note", occurred_at=f"2026-10-{day}T10:00:00Z")
    question = "By when does Claves want the booklet text now?"
    offline = RecallOperation(store, "offline").recall(question)
    assert "20 November (2026-10-24); later, 2026-10-25: Money plan" in str(offline.suggestion)
    confirmed = asked(store, [*PROSE, reading("20 November", 1)], question)
    assert (confirmed.content, confirmed.chunk_ids) == (offline.suggestion, offline.chunk_ids)
    other = asked(store, [*PROSE, reading("25 October 2026", 1)], question)
    assert (other.content, other.suggestion) == (None, offline.suggestion)


@pytest.mark.parametrize("question", [ASKED, UNSURE, QUOTED, "What made Carla leave Oslo?"])
@pytest.mark.parametrize("answer", ["bicycle", "Lisbon", "Ana", "no", "yes", "2026-02-10", None, "a moon"])
def test_a_poor_reading_takes_nothing_from_what_the_offline_model_finds(
    store: ChunkStore, question: str, answer: str | None
) -> None:
    fill(store)
    offline = RecallOperation(store, "offline").recall(question)
    result = asked(store, [*PROSE, *[reading(answer, 1)] * 6], question)
    assert offline.content is None and result.content in (None, offline.suggestion)
    assert offline.suggestion in (None, result.content or result.suggestion)
    assert result.chunk_ids[0] == offline.chunk_ids[0]


def test_where_only_one_memory_is_near_its_reading_shows_nothing(store: ChunkStore) -> None:
    store.create_chunk("The certificate of the VPN expires on 2 December 2026.")
    llm = ScriptedLLM([*PROSE, reading("2 December 2026", 1)])
    result = RecallOperation(store, llm).recall("When does the domain name expire?")
    assert (result.content, result.method, llm.calls) == (None, "offline", 2)
    assert "2 December 2026" in str(result.suggestion) and "no other memory" in result.note


def test_a_run_reads_the_three_nearest_memories_before_the_others(store: ChunkStore) -> None:
    for number in range(5):
        store.create_chunk(f"The kettle of the {'abcde'[number]} floor was descaled by Ana.", "note")
    llm = ScriptedLLM([*PROSE, reading(None), reading(None)])
    RecallOperation(store, llm).recall("Which vinegar went into the kettle when Ana descaled?")
    assert [f"[{number}]" in llm.prompts[2][1].content for number in (3, 4)] == [True, False]
    assert "[4]" in llm.prompts[3][1].content


def test_the_memory_that_the_model_chose_does_not_come_before_nearer_ones(store: ChunkStore) -> None:
    fill(store)

    def farthest(messages: list[Message]) -> str:
        lines = [line for line in messages[1].content.split("\n") if line.startswith("[")]
        return reading(lines[-1].split(": ", 1)[1], len(lines))

    result = asked(store, [*PROSE, farthest], UNSURE)
    offline = RecallOperation(store, "offline").recall(UNSURE)
    assert result.method == "scaffolded" and result.suggestion is not None
    assert result.chunk_ids == offline.chunk_ids and len(offline.chunk_ids) > 1


def test_the_offline_model_keeps_its_suggestion_where_the_model_reads_another_answer(
    store: ChunkStore,
) -> None:
    fill(store)
    question = "What made Carla leave Oslo?"
    offline = RecallOperation(store, "offline").recall(question)
    assert "because of the light" in str(offline.suggestion)
    for reply in (reading("moved", 1), reading(None)):
        llm = ScriptedLLM([*PROSE, reply])
        result = RecallOperation(store, llm).recall(question)
        assert (result.suggestion, result.method, llm.calls) == (offline.suggestion, "offline", 3)


def test_an_answer_without_a_passage_is_that_of_the_passages_with_its_words(store: ChunkStore) -> None:
    ids = fill(store)
    result = asked(store, [*PROSE, reading("green tea")])
    assert (result.content, result.method) == ("green tea every morning before work", "scaffolded")
    assert result.chunk_ids == [ids["tea"]]


def test_a_model_that_is_too_slow_gives_way_to_the_offline_model(store: ChunkStore) -> None:
    ids = fill(store)
    for replies in ([ModelTimeout("no answer")], [PROSE[0], ModelTimeout("no answer")]):
        result = asked(store, replies)
        assert (result.method, result.chunk_ids[0]) == ("offline", ids["tea"])
        assert "did not answer in time" in result.note
    reading_slowly = asked(store, [*PROSE, ModelTimeout("no answer")])
    assert reading_slowly.method == "offline"


def test_a_slow_model_whose_programs_ran_or_that_is_left_to_itself_is_not_replaced(store: ChunkStore) -> None:
    fill(store)
    with pytest.raises(ModelTimeout):
        asked(store, [block("print(search_chunks('tea'))"), ModelTimeout("no answer")])
    with pytest.raises(ModelTimeout):
        asked(store, [ModelTimeout("no answer")], config=Config.load(None, recall={"scaffold": "never"}))


def test_a_call_that_the_end_of_the_run_cuts_off_stops_the_run(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_mem.recall.loop.NO_TIME", 100)
    ids = fill(store)
    read = block("print(read_chunk(search('tea')[0]['id'])['content'])")
    late = ModelTimeout("no answer")
    stopped = asked(store, [read, late], limits=Limits(seconds=30))
    assert (stopped.outcome, stopped.stopped_by) == ("stopped", "seconds")
    assert stopped.chunk_ids == [ids["tea"]], "what was read remains"
    failing = [block(f"print(search('tea')[{number}]['texts'])") for number in range(2)]
    weak = asked(store, [read, *failing, late], limits=Limits(seconds=30))
    assert (weak.outcome, weak.method, weak.chunk_ids[0]) == ("closest only", "offline", ids["tea"])
    with pytest.raises(ModelTimeout):
        asked(store, [read, late], limits=Limits(seconds=1_000))


def test_a_model_that_has_read_nothing_cannot_conclude_that_the_memory_has_no_answer(
    store: ChunkStore,
) -> None:
    ids = fill(store)
    failing, silent, nothing = (
        block("print(hits)"),
        block("for p in passages('tea'):\n    pass"),
        block("FINAL(None)"),
    )
    result = asked(store, [failing, silent, nothing, first])
    assert (result.method, result.chunk_ids) == ("scaffolded", [ids["tea"]])
    assert "printed nothing" in result.note
    reading = [block(f"print(search('tea', limit={number}))") for number in (1, 2)]
    for replies in ([nothing], [silent, nothing], [failing, *reading, nothing]):
        assert asked(store, replies).method == "programs", "a model whose programs run may conclude"


def test_a_model_half_of_whose_programs_failed_cannot_conclude_that_the_memory_has_no_answer(
    store: ChunkStore,
) -> None:
    ids = fill(store)
    failing = [block(f"print(search('tea')[{number}]['texts'])") for number in range(3)]
    shown = block("print(search('bicycle'))")
    for conclusion in ("FINAL(None)", "FINAL('The drink of Ana is not mentioned in the memory.')"):
        result = asked(store, [*failing, shown, shown.replace("bicycle", "job"), block(conclusion), first])
        assert (result.method, result.chunk_ids) == ("scaffolded", [ids["tea"]])
        assert "half of the model's programs or more failed" in result.note


def test_an_answer_after_failures_must_be_one_to_the_question(store: ChunkStore) -> None:
    fill(store)
    failing = block("print(search('tea')[0]['texts'])")
    for answer, method in (
        ("Ana drinks every morning", "scaffolded"),
        ("green tea", "programs"),
    ):
        result = asked(store, [failing, block(f"FINAL({answer!r})"), first])
        assert result.method == method
        assert ("only repeats the question" in result.note) == (method == "scaffolded")
    believed = asked(store, [block("print(search('tea'))"), block("FINAL('Ana drinks every morning')")])
    assert believed.method == "programs"
    asks = "Who takes over Ana's work on leave?"
    leave = asked(store, [failing, block("FINAL('Ana leaves for work')"), *[reading(None)] * 3], asks)
    assert leave.method == "offline", "“leaves” is of “leave”"
    choice = asked(store, [failing, block("FINAL('tea')")], "Does Ana drink tea or coffee?")
    assert choice.content == "tea"


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("Not found.", "not held"),
        ("THE DRINK OF ANA IS NOT FOUND", "not held"),
        ("It is not mentioned in any of the notes", "not held"),
        ("The key was not found, so Ana broke the door.", "answered"),
        ("Ana is not Norwegian", "answered"),
    ],
)
def test_an_answer_that_only_says_that_there_is_none_is_none(
    store: ChunkStore, said: str, outcome: str
) -> None:
    ids = fill(store)
    assert asked(store, [block("print(search('tea'))"), block(f"FINAL({said!r})")]).outcome == outcome
    cited = asked(store, [block("print(search('tea'))"), block(f"FINAL({said!r}, [{ids['tea']!r}])")])
    assert cited.content == said, "with its source, it may be what the memory says"


def test_a_model_that_repeats_a_reply_without_anything_new_only_reads(store: ChunkStore) -> None:
    ids = fill(store)
    same = block("print(search('tea')[0]['snippet'])")
    result = asked(store, [same, same, same, first])
    assert (result.method, result.chunk_ids) == ("scaffolded", [ids["tea"]])
    assert "brought nothing new" in result.note
    pair = [block("print(search('tea')[0]['snippet'])"), block("FINAL('tea', ['CHUNK_ID'])")]
    assert asked(store, [*pair, *pair, first]).method == "scaffolded", "two replies in turn"
    counting = [block("seen = 0"), *[block("seen += 1\nprint(seen)")] * 4, block("FINAL(str(seen))")]
    assert asked(store, counting).content == "4", "the same program may print something else each time"


def test_the_setting_makes_every_run_scaffolded_or_none(store: ChunkStore) -> None:
    fill(store)
    always, never = (Config.load(None, recall={"scaffold": word}) for word in ("always", "never"))
    assert asked(store, [first], config=always).method == "scaffolded"
    result = asked(store, [*PROSE, block("FINAL('tea')")], config=never)
    assert (result.content, result.method, result.note) == ("tea", "programs", "")


def test_a_model_whose_programs_run_is_not_scaffolded_for_two_failures(store: ChunkStore) -> None:
    fill(store)
    result = asked(store, [block("print(stats())"), *PROSE, block("FINAL('tea')")])
    assert (result.content, result.method) == ("tea", "programs")


def test_the_model_may_ask_for_another_search_but_not_for_ever(store: ChunkStore) -> None:
    ids = fill(store)

    def lisbon(messages: list[Message]) -> str:
        line = next(one for one in messages[1].content.split("\n") if "lighthouse" in one)
        return reading("lighthouse keeper", int(line.split("]")[0].strip("[")))

    nothing = reading(None, search="Carla lighthouse")
    found = asked(store, [*PROSE, nothing, lisbon], UNSURE)
    nearest = RecallOperation(store, "offline").recall(UNSURE).chunk_ids
    assert found.suggestion == "lighthouse keeper"
    assert found.chunk_ids[:3] == nearest[:3] and ids["job"] in found.chunk_ids[:4]
    llm = ScriptedLLM([*PROSE, *(reading(None, search=f"word{n}") for n in range(20))])
    assert RecallOperation(store, llm).recall(UNSURE).method == "offline"
    assert llm.calls == 5, "two programs, the nearest memories, and two searches"


@pytest.mark.parametrize(
    "replies",
    [
        [reading("tea", 99)] * 3,
        [reading("a walk on the moon")] * 3,
        [reading("seventeen purple elephants", 1)] * 3,
        ["no JSON at all", "[1, 2]", '{"answer": {"a": 1}}'],
        [reading(None)],
        [reading("The passages do not say.", 1)],
        ["", "{" * 2_000, "\ud800"],
    ],
    ids=[
        "unknown passage",
        "no passage",
        "other words",
        "no reading",
        "nothing",
        "nothing in words",
        "hostile",
    ],
)
def test_what_does_not_hold_is_replaced_by_what_the_offline_model_finds(
    store: ChunkStore, replies: list[str]
) -> None:
    fill(store)
    result = asked(store, [*PROSE, *replies])
    offline = RecallOperation(store, "offline").recall(ASKED)
    assert (result.content, result.chunk_ids, result.outcome) == (
        offline.content, offline.chunk_ids, offline.outcome,
    )  # fmt: skip
    assert result.method == "offline" and "offline" in result.note
    recorded = load_trajectory(store, result.trajectory.id)
    # The offline model looks twice before it suggests something.
    assert {call.turn for call in recorded.calls} == {step.turn for step in recorded.steps[-2:]}
    assert replay(store, result.trajectory.id).same


def test_a_budget_that_ends_a_model_of_prose_leaves_the_offline_answer(store: ChunkStore) -> None:
    fill(store)
    for limits in (Limits(iterations=1), Limits(model_calls=2), Limits(tokens=2_500)):
        result = asked(store, ["prose"] * 9, limits=limits)
        assert (result.method, result.concluded, result.stopped_by) == ("offline", True, None), limits
        assert "tea" in str(result.suggestion)


@pytest.mark.parametrize(
    "program",
    ["print({turn})", "print(rlm_query('What does Ana drink, {turn}?'))"],
    ids=["iterations", "depth"],
)
def test_a_budget_that_ends_programs_that_read_nothing_leaves_the_offline_answer(
    store: ChunkStore, program: str
) -> None:
    fill(store)
    turns = iter(range(99))
    llm = ScriptedLLM(default=lambda _messages: block(program.format(turn=next(turns))))
    result = RecallOperation(store, llm, limits=Limits(iterations=3)).recall(ASKED)
    assert (result.method, result.stopped_by) == ("offline", None)
    assert "read nothing" in result.note and "tea" in str(result.suggestion)


def test_a_server_that_refuses_the_schema_is_asked_without(store: ChunkStore) -> None:
    fill(store)
    llm = ScriptedLLM([*PROSE, ModelRefused("response_format is not supported"), first])
    assert RecallOperation(store, llm).recall(ASKED).method == "scaffolded"
    assert "json_schema" in llm.options[2] and "json_schema" not in llm.options[3]


def test_a_reasoning_falls_back_on_the_offline_reasoner(store: ChunkStore) -> None:
    fill(store)
    result = ReasonOperation(store, ScriptedLLM(PROSE)).reason("What does Ana drink?")
    assert "tea" in result.conclusion
    assert result.trajectory.outcome is not None
    assert result.trajectory.outcome.detail["method"] == "offline"


def test_sub_questions_of_a_weak_model_are_scaffolded_too(store: ChunkStore) -> None:
    fill(store)
    program = block(f"FINAL(rlm_query({ASKED!r})['answer'])")
    result = asked(store, [program, *PROSE, first])
    assert any(step.scaffolded and "green tea" in "".join(step.programs) for step in result.trajectory.steps)


def test_a_failing_reply_that_comes_again_hands_over(store: ChunkStore) -> None:
    fill(store)
    guess = block("FINAL('coffee', chunk_ids=['CHUNK_ID'])")
    llm = ScriptedLLM([guess, guess, first])
    result = RecallOperation(store, llm).recall(ASKED)
    assert ("green tea" in str(result.content), result.method, llm.calls) == (True, "scaffolded", 3)
    assert result.confidence == AGREED


def test_the_note_says_so_where_a_program_ran_and_failed_twice(store: ChunkStore) -> None:
    fill(store)
    failing = block("print(stats()['none'])")
    result = RecallOperation(store, ScriptedLLM([failing, failing, first])).recall(ASKED)
    assert result.method == "scaffolded"
    assert result.note.startswith("the model repeated a reply that had failed")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who works at sea?", "Ana"),
        ("Who works at sea?", "sea works"),
        ("Where does Carla work?", "2026"),
    ],
    ids=["another memory than the nearest", "words of the question", "a number for a place"],
)
def test_an_answer_that_the_nearest_memory_does_not_give_is_not_accepted(
    store: ChunkStore, question: str, answer: str
) -> None:
    fill(store)
    offline = RecallOperation(store, "offline").recall(question)
    result = asked(store, [*PROSE, *[reading(answer, 1)] * 3], question)
    assert (result.method, result.outcome, result.chunk_ids) == (
        "offline", offline.outcome, offline.chunk_ids,
    )  # fmt: skip
    assert replay(store, result.trajectory.id).same


def test_a_date_may_be_worked_out_and_a_wrong_one_is_not_accepted(store: ChunkStore) -> None:
    store.create_chunk("We flew home two days ago, worn out.", occurred_at="2026-05-08T10:00:00Z")
    question = "What is the date of the flight of the family?"
    assert asked(store, [*PROSE, reading("6 May 2026", 1)], question).suggestion == "6 May 2026"
    wrong = asked(store, [*PROSE, *[reading("9 June 2026", 1)] * 3], question)
    assert (wrong.method, wrong.content) == ("offline", None)


@pytest.mark.parametrize(("rooms", "searched"), [(1, False), (4000, True)])
def test_passages_are_searched_for_only_where_a_nearest_memory_is_too_long_to_be_read(
    store: ChunkStore, rooms: int, searched: bool
) -> None:
    store.create_chunk("We flew home, worn out, and slept. " + "The room was cold. " * rooms)
    result = asked(store, [*PROSE, *[reading("Ana", 1)] * 3], "Who slept worn out after we flew home?")
    reads = [step for step in result.trajectory.steps if "nearest memories" in "".join(step.programs)]
    called = {call["name"] for step in reads[:1] for call in step.host_calls}
    assert reads
    assert ("passages" in called) == searched


def test_a_model_that_cannot_write_programs_is_not_asked_where_the_offline_model_is_sure(
    store: ChunkStore,
) -> None:
    fill(store)
    store.create_chunk("The port of the staging database is 6432.")
    llm = ScriptedLLM(PROSE)
    result = RecallOperation(store, llm).recall("What is the port of the staging database?")
    assert (result.content, result.method, llm.calls) == ("6432", "offline", 2)
    assert result.confidence > 0.6


def test_readings_are_read_leniently_and_in_linear_time() -> None:
    assert read_reply(
        'Sure:\n```json\n{"answer": "tea", "passages": ["[2]", "passage 3"]}\n```'
    ).passages == (2, 3)
    lines = read_reply("Answer: **tea**\nPassages: 1 and 4")
    assert (lines.answer, lines.passages) == ("tea**", (1, 4))
    assert read_reply('{"answer": true, "passages": 1}').answer == "yes"
    assert read_reply('{"answer": ["a", "b"], "passages": [1]}').answer == "a, b"
    assert read_reply('{"answer": "It is not stated in the text", "passages": []}').answer is None
    assert read_reply('{"answer": "It is not far", "passages": [1]}').answer == "It is not far"
    assert read_reply('{"passages": [1]}').error is not None
    began = time.process_time()
    for text in (
        "{" * 100_000,
        '{"a":' * 50_000,
        "answer:" * 20_000,
        "* _" * 50_000 + "answer",
        "is not " * 20_000,
    ):
        read_reply(text)
        read_reply(json.dumps({"answer": text[:2_000], "passages": [1]}))
    assert time.process_time() - began < 5


def test_final_names_only_what_the_run_has_met(store: ChunkStore) -> None:
    """An id that exists but was neither shown nor read comes back to the model with the reason."""
    ids = fill(store)
    far = store.create_chunk("Dora sings in a choir in Vienna.").id
    llm = ScriptedLLM(
        [
            block(f"FINAL('tea', ['{far}'])"),
            block(f"print(read_chunk('{far}')['content'])"),
            block(f"FINAL('tea', ['{far}', '{ids['tea']}'])"),
        ]
    )
    config = Config.load(None, recall={"first_hits": 1})
    result = RecallOperation(store, llm, config=config).recall(ASKED)
    assert "has not shown or read the chunk" in llm.prompts[1][-1].content
    assert result.chunk_ids == [far, ids["tea"]]
    assert replay(store, result.trajectory.id).same


@pytest.mark.parametrize(
    "meets",
    [
        "ids = search_chunks('choir')",
        "hits = search('choir')",
        "lines = turns(contains='choir')",
        "near = neighbors(IDS['city'], after=9)['after'] + get_linked_chunks(IDS['city'])",
        "tagged = list_chunks_by_tag('song')",
        "items = timeline()",
    ],
)
def test_an_agent_names_what_its_programs_met(store: ChunkStore, meets: str) -> None:
    ids = fill(store)
    far = store.create_chunk(
        "Dora sings in a choir in Vienna.", tags=["song"], conversation_id="conv-talk"
    ).id
    config = Config.load(None, recall={"first_hits": 1})
    with recall_session(store, "What does Ana drink?", config=config) as session:
        with pytest.raises(InputError, match="shown or read"):
            session.finish("a choir", [far])
        done = session.execute(f"IDS = {ids!r}\n{meets}")
        assert done.error is None
        assert session.finish("a choir", [far]).chunk_ids == [far]
