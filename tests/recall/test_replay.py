"""Replay runs the recorded programs on today's store and shows what differs."""

from __future__ import annotations

import pytest
from recall_memories import block, fill

from rlm_mem.config import Config
from rlm_mem.errors import NotFoundError
from rlm_mem.models.base import Message
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import ReasonOperation, RecallOperation, load_trajectory, recall_session, replay
from rlm_mem.store.core.chunk_store import ChunkStore

READ = "for i in search_chunks('Carla Lisbon'):\n    print(read_chunk(i)['content'])"


def test_on_an_unchanged_store_nothing_differs(store: ChunkStore) -> None:
    fill(store)
    llm = ScriptedLLM([block(READ), block("print(1 / 0)"), "prose", block("FINAL('Lisbon')")])
    result = RecallOperation(store, llm).recall("Where does Carla live?")
    again = replay(store, result.trajectory.id)
    assert again.same
    assert [step.same for step in again.steps] == [True, True, True]
    assert again.content_now == again.content_then == "Lisbon"


def test_a_suggestion_is_compared_as_it_is_recorded_without_secrets(store: ChunkStore) -> None:
    ids = fill(store)
    code = f"FINAL(None, [{ids['city']!r}], 0.4, 'perhaps sk-ant-api03-' + 'Ab1' * 30)"
    result = RecallOperation(store, ScriptedLLM([block(code)])).recall("Where does Carla live?")
    assert (result.outcome, result.suggestion) == ("closest only", "perhaps sk-ant-api03-" + "Ab1" * 30)
    again = replay(store, result.trajectory.id)
    assert again.same and again.content_now == again.content_then
    assert again.content_then is not None and "Ab1Ab1" not in again.content_then


def test_a_changed_chunk_shows_in_the_diff(store: ChunkStore) -> None:
    ids = fill(store)
    code = READ + "\nx = read_chunk(search_chunks('lighthouse')[0])['content'].split()[-1]"
    llm = ScriptedLLM([block(code), block("FINAL(x)")])
    result = RecallOperation(store, llm).recall("Where does Carla work?")
    store.update_chunk(ids["job"], content="Carla works as a lighthouse keeper near Porto.")
    again = replay(store, "last")
    assert not again.same
    assert (again.content_then, again.content_now) == ("Lisbon.", "Porto.")
    assert not again.steps[0].same
    assert any(line.startswith("-") and "Lisbon" in line for line in again.steps[0].diff)
    assert any(line.startswith("+") and "Porto" in line for line in again.steps[0].diff)
    assert again.trajectory.id == result.trajectory.id


def test_a_deleted_chunk_is_named_as_missing_and_a_new_one_as_new(store: ChunkStore) -> None:
    ids = fill(store)
    RecallOperation(store, ScriptedLLM([block(READ), block("FINAL(1)")])).recall("Where does Carla live?")
    store.delete_chunk(ids["job"])
    new = store.create_chunk("Carla likes Lisbon a lot.").id
    step = replay(store, "last").steps[0]
    assert step.chunks_missing == (ids["job"],)
    assert step.chunks_new == (new,)


def test_sub_calls_are_answered_with_what_was_recorded(store: ChunkStore) -> None:
    fill(store)
    code = "a = llm_query('same')\nb = llm_query('same')\nprint(a, b, llm_query_batched(['p', 'q']))\nFINAL(a + b)"
    replies = {"same": iter(["1", "2"]), "p": iter(["3"]), "q": iter(["4"])}

    def reply(messages: list[Message]) -> str:
        text = messages[-1].content
        name = next(name for name in ("same", "p", "q") if text.strip().startswith(name))
        return next(replies[name])

    llm = ScriptedLLM([block(code)], default=reply)
    result = RecallOperation(store, llm).recall("Add?")
    assert result.content == "12"
    again = replay(store, result.trajectory)
    assert again.same, again.steps[0].diff
    assert again.content_now == "12"


def test_a_sub_call_with_another_prompt_has_no_recorded_reply_and_shows(store: ChunkStore) -> None:
    ids = fill(store)
    code = f"FINAL(llm_query(read_chunk('{ids['tea']}')['content']))"
    result = RecallOperation(store, ScriptedLLM([block(code), "tea"])).recall("What does Ana drink?")
    assert result.content == "tea"
    assert replay(store, "last").same
    store.update_chunk(ids["tea"], content="Ana: I drink coffee.")
    again = replay(store, "last")
    assert not again.same
    assert again.content_now is None
    assert "no reply is recorded" in str(again.steps[0].now.error)


def test_sub_questions_replay_their_own_programs(store: ChunkStore) -> None:
    fill(store)
    replies = [
        block("r = rlm_query('What does Ana drink?')\ns = rlm_query('What does Ana drink?')"),
        block("FINAL('first')"),
        block("print('thinking')"),
        block("FINAL('second')"),
        block("FINAL(r['answer'] + s['answer'])"),
    ]
    result = RecallOperation(store, ScriptedLLM(replies)).recall("Both?")
    assert result.content == "firstsecond"
    again = replay(store, "last")
    assert again.same
    assert [step.now.depth for step in again.steps] == [1, 1, 1, 0, 0]
    assert again.content_now == "firstsecond"


def test_an_endless_program_ends_with_the_replays_budget(store: ChunkStore) -> None:
    from rlm_mem.models.base import Limits

    fill(store)
    result = RecallOperation(
        store,
        ScriptedLLM(default=block("while True:\n    pass")),
        limits=Limits(seconds=1),
        config=Config.load(None, recall={"scaffold": "never"}),
    ).recall("Ever?")
    assert result.stopped_by == "seconds"
    again = replay(store, "last", limits=Limits(seconds=0.5))
    assert again.stopped_by == "seconds"
    assert again.content_now is None


def test_reasoning_and_host_driven_sessions_replay_too(store: ChunkStore) -> None:
    fill(store)
    ReasonOperation(store).reason("Where does Carla work?")
    again = replay(store, "last")
    assert again.same, [step.diff for step in again.steps]
    with recall_session(store, "Where does Carla live?") as session:
        session.execute(READ)
        session.finish("Lisbon")
    assert replay(store, session.id).steps[0].same


def test_the_sub_questions_of_a_host_are_recorded_and_replay(store: ChunkStore) -> None:
    fill(store)
    llm = ScriptedLLM([block("FINAL(search('Ana drinks')[0]['snippet'])")])
    with recall_session(store, "What does Ana drink?", llm=llm) as session:
        said = session.execute("print(rlm_query('What does Ana drink?')['answer'])").output
        session.finish(said)
    assert "tea" in said
    recorded = load_trajectory(store, session.id)
    assert ([step.depth for step in recorded.steps], recorded.calls) == ([1, 0], [])
    assert [step.same for step in replay(store, session.id).steps] == [True, True]


def test_replaying_leaves_no_trajectory_behind(store: ChunkStore) -> None:
    from rlm_mem.recall import list_trajectories

    fill(store)
    RecallOperation(store).recall("What does Ana drink?")
    replay(store, "last")
    assert len(list_trajectories(store)) == 1


def test_replaying_what_does_not_exist_is_an_error(store: ChunkStore) -> None:
    with pytest.raises(NotFoundError):
        replay(store, "last")
