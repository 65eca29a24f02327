"""The host-driven form: the agent writes the programs itself; same sandbox, budgets and trajectory."""

from __future__ import annotations

from pathlib import Path

import pytest
from recall_memories import fill
from tests.waiting import takes

from rlm_mem.config import Config, SandboxConfig
from rlm_mem.errors import (
    BudgetError,
    InputError,
    InvalidQuery,
    MaxIterationsError,
    SessionComplete,
    StorageError,
)
from rlm_mem.memory import Memory
from rlm_mem.models.base import Limits
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import host_session, load_trajectory, recall_session, replay
from rlm_mem.store.core.chunk_store import ChunkStore


def test_a_session_opens_with_schema_figures_and_snippets(store: ChunkStore) -> None:
    ids = fill(store)
    with recall_session(store, "Where does Carla live?") as session:
        assert "FINAL(" in session.schema
        assert {hit["id"] for hit in session.hits} >= {ids["city"], ids["job"]}
        assert session.store_summary["chunks"] == 4
        assert "Lisbon" in session.opening
        assert "llm_query" not in session.schema
        assert "llm_query" not in session.execute("help()").output
        assert session.result is None


def test_programs_run_and_the_agent_finishes_with_its_answer(store: ChunkStore) -> None:
    ids = fill(store)
    with recall_session(store, "Where does Carla live?") as session:
        first = session.execute("found = search_chunks('Carla')\nprint(len(found) > 1)")
        assert first.output == "True"
        assert not first.finished
        second = session.execute("read_chunk(found[0])['id']")
        assert second.chunks_read == (second.output.strip("'"),)
        result = session.finish("In Lisbon", [ids["city"]], 0.7)
    assert (result.content, result.chunk_ids, result.confidence) == ("In Lisbon", [ids["city"]], 0.7)
    assert result.iterations_used == 2
    assert result.cost == 0
    trajectory = load_trajectory(store, session.id)
    assert (trajectory.operation, trajectory.model) == ("session", "host")
    assert [step.programs for step in trajectory.steps] == [
        ("found = search_chunks('Carla')\nprint(len(found) > 1)",),
        ("read_chunk(found[0])['id']",),
    ]


@pytest.mark.parametrize("by_program", [False, True])
def test_an_answered_recall_takes_the_same_answer_again_and_no_other(
    store: ChunkStore, by_program: bool
) -> None:
    ids = fill(store)
    city, job = ids["city"], ids["job"]
    session = recall_session(store, "Where does Carla live?")
    if by_program:
        assert session.execute(f"FINAL('In Lisbon', chunk_ids=['{city}'], confidence=0.7)").finished
    else:
        session.finish("In Lisbon", [city], 0.7)
    for same in ((), ("In Lisbon",), ("In Lisbon", [city.rpartition("-")[2]]), ("In Lisbon", [city], 0.7)):
        assert session.finish(*same) is session.result
    for other in (
        ("In Porto",),
        ("In Lisbon", [job]),
        ("In Lisbon", [city], 0.2),
        (None, [city], None, "Porto"),
    ):
        with pytest.raises(SessionComplete, match="already ended with the answer 'In Lisbon'"):
            session.finish(*other)
    with recall_session(store, "Where does Carla live?") as closed:
        pass
    with pytest.raises(SessionComplete, match="already ended without an answer"):
        closed.finish("In Lisbon")


@pytest.mark.parametrize("by_program", [False, True])
def test_an_answer_that_could_not_be_recorded_is_given_again(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch, by_program: bool
) -> None:
    ids = fill(store)
    session = recall_session(store, "Where does Carla live?")

    def full(*_: object) -> None:
        raise StorageError("no space is left")

    with monkeypatch.context() as patched:
        patched.setattr(host_session, "recall_result", full)
        with pytest.raises(StorageError):
            if by_program:
                session.execute(f"FINAL('In Lisbon', chunk_ids=['{ids['city']}'])")
            else:
                session.finish("In Lisbon", [ids["city"]])
    result = session.finish() if by_program else session.finish("In Lisbon", [ids["city"]])
    assert (result.content, result.chunk_ids) == ("In Lisbon", [ids["city"]])
    assert load_trajectory(store, session.id).outcome is not None


def test_a_session_that_was_closed_without_a_result_has_ended(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StorageError("no space is left")

    session = recall_session(store, "Where does Carla live?")
    monkeypatch.setattr(host_session, "recall_result", full)
    with pytest.raises(StorageError):
        session.close()
    session.close()
    with pytest.raises(SessionComplete):
        session.finish("In Lisbon")


def test_the_agent_finishes_with_a_guess_in_place_of_an_answer(store: ChunkStore) -> None:
    chunk = store.create_chunk("The heron server may move to port 9000.")
    with recall_session(store, "Which port does the heron server use?") as session:
        for refused in ({"answer": "8431", "chunk_ids": [chunk.id]}, {"chunk_ids": []}):
            with pytest.raises(InputError, match="replaces an answer"):
                session.finish(**refused, suggestion="9000")
        result = session.finish(None, [chunk.id], 0.4, suggestion="9000")
    assert (result.outcome, result.content, result.suggestion) == ("closest only", None, "9000")
    recorded = load_trajectory(store, result.trajectory.id).outcome
    assert recorded is not None and (recorded.chunk_ids, recorded.suggestion) == ((chunk.id,), "9000")


def test_final_in_a_program_finishes_too(store: ChunkStore) -> None:
    ids = fill(store)
    session = recall_session(store, "What does Ana drink?")
    done = session.execute(f"FINAL('tea', chunk_ids=['{ids['tea']}'], confidence=0.6)")
    assert done.finished and "turns left" not in done.text
    assert session.result is not None
    assert (session.result.content, session.result.confidence) == ("tea", 0.6)
    with pytest.raises(SessionComplete):
        session.execute("1")


def test_errors_have_line_and_hint_and_the_session_continues(store: ChunkStore) -> None:
    fill(store)
    with recall_session(store, "What?") as session:
        failed = session.execute("x = 1\nprint(missing)")
        assert failed.error is not None
        assert "line 2" in failed.error
        assert failed.hint
        assert "line 2" in failed.text
        assert session.execute("import os").error
        assert session.execute("x").output == "1"


def test_programs_are_counted_and_finishing_stays_possible(store: ChunkStore) -> None:
    fill(store)
    session = recall_session(store, "What?", limits=Limits(iterations=2))
    first, second = session.execute("1"), session.execute("2")
    assert (first.turns_left, second.turns_left) == (1, 0)
    assert "last turn" in first.text and "No further program" in second.text
    with pytest.raises(MaxIterationsError):
        session.execute("3")
    assert session.finish("enough").content == "enough"


def test_the_seconds_of_a_session_pass_only_while_programs_run(store: ChunkStore) -> None:
    fill(store)
    session = recall_session(store, "What?", limits=Limits(seconds=0.5))
    session.execute("1")
    takes(0.7)
    assert session.execute("print('still here')").output == "still here"
    ended = session.execute("while True:\n    pass")
    assert ended.stopped_by == "seconds" and "turns left" not in ended.text
    with pytest.raises(BudgetError):
        session.execute("1")
    session.close()
    assert session.result is not None
    assert (session.result.content, session.result.stopped_by) == (None, "seconds")


def test_a_program_of_a_caller_that_never_ends_is_stopped_long_before_the_recall_and_another_can_run(
    place: str | Path,
) -> None:
    config = Config(sandbox=SandboxConfig(timeout_seconds=60, caller_timeout_seconds=0.5))
    with Memory.open(place, config=config) as memory, memory.recall_session("What?") as session:
        session.execute("kept = 1")
        stopped = session.execute("while True:\n    pass")
        assert (stopped.stopped_by, stopped.finished) == (None, False)
        assert "exceeded its time and was stopped" in (stopped.error or "")
        assert "a program has 0.5 seconds (setting sandbox.caller_timeout_seconds)" in (stopped.hint or "")
        assert session.execute("print(kept)").output == "1"
    assert Config().sandbox.caller_timeout_seconds <= 20, "clients give up on a call after 30 to 60 seconds"


def test_a_session_left_open_is_closed_without_a_conclusion(store: ChunkStore) -> None:
    ids = fill(store)
    with recall_session(store, "What?") as session:
        session.execute(f"read_chunk('{ids['tea']}')")
    assert session.result is not None
    assert not session.result.concluded
    assert session.result.evidence == [ids["tea"]]
    with pytest.raises(SessionComplete):
        session.execute("1")


def test_without_a_model_llm_query_says_so_and_with_one_it_works(store: ChunkStore) -> None:
    fill(store)
    with recall_session(store, "What?") as session:
        assert session.execute("llm_query('hello')").error
    with recall_session(store, "What?", llm=ScriptedLLM(["hi"])) as session:
        assert session.execute("llm_query('hello')").output == "'hi'"


def test_an_empty_question_is_refused(store: ChunkStore) -> None:
    with pytest.raises(InvalidQuery):
        recall_session(store, " ")


def test_what_a_list_left_out_is_said_until_it_is_read(store: ChunkStore) -> None:
    with store.batch():
        for number in range(67):
            store.create_chunk(f"Ana: kite {number}", conversation_id="kites")
    with recall_session(store, "Which kites?") as session:
        said = "grep returned 50 of 67 rows, offset=50 continues"
        assert said in session.execute("print(len(grep('kite')))").text
        assert "Cut:" not in session.execute("rows = grep('kite', limit=5)").text
        assert "Cut:" not in session.execute("rows = grep('kite') + grep('kite', offset=50)").text
        assert "turns returned 50 of 67 rows" in session.execute("rows = turns(author='Ana')").text
        assert "timeline returned 50 of " in session.execute("rows = timeline()").text


def test_an_outline_says_how_many_turns_it_left_out(store: ChunkStore) -> None:
    with store.batch():
        for number in range(40):
            store.create_chunk(
                f"User: My kite number {number} has a tail of {number} metres, and {'it flies well ' * 20}.\n"
                "Assistant: Good.",
                conversation_id="kites",
            )
    with recall_session(store, "Which kites?") as session:
        text = session.execute("print(len(outline('kite', chars=500)))").text
        number = int(text.partition("<output>\n")[2].split()[0])
        assert 0 < number < 40
        assert f"outline returned {number} of 40 turns that share a word with its query;" in text
        assert "Cut:" not in session.execute("rows = outline('kite', chars=20000)").text


def test_a_row_that_the_host_has_before_it_is_not_printed_in_full_again(store: ChunkStore) -> None:
    told = (
        "I am building a red kite with a tail of nine metres, because my niece Rosa asked me for one in March"
    )
    with store.batch():
        for number in range(2):
            store.create_chunk(
                f"User: {told}, part {number}\nAssistant: Fine.", conversation_id=f"kite {number}"
            )
        store.create_chunk("User: My boat has a new and very long mast, which I painted white in April, and it sails, "
                           "well and fast\nAssistant: Fine.", conversation_id="boats")  # fmt: skip
    with recall_session(store, "Which kite am I building?") as session:
        assert f"{told}, part 0" in session.opening
        kites = session.execute("rows = turns(contains='kite')\nprint_rows(rows)").output
        assert kites.count("[0] I am building a red kite") == kites.count("[1] I am") == 1
        assert kites.count("… (above)") == 2 and "nine metres" not in kites
        boats = [session.execute("print_rows(turns(contains='mast'))").output for _ in range(2)]
        assert "sails, well and fast" in boats[0] and "… (above)" in boats[1], "nor what a program printed"
        assert "nine metres" in session.execute("for row in rows: print(row['text'])").output
        recorded = load_trajectory(store, session.id).steps
    assert all("sails, well and fast" in step.output for step in recorded[1:3]), "records are whole"
    assert replay(store, session.id).same


def test_an_outline_gives_in_short_the_turns_that_the_opening_outlined(store: ChunkStore) -> None:
    things = ("oak boards", "tulip bulbs", "a water butt", "red bricks", "a beehive", "bean poles")
    with store.batch():
        for number in range(100):
            store.create_chunk(
                f"User: For bed {number} of the garden I ordered {things[number % 6]} at {number + 3} euros, and I "
                "wonder whether they will come before the long winter, can you help me?\nAssistant: Yes.\n\n"
                f"### Frost cover {chr(97 + number % 26) * 5}\n\nFine.",
                conversation_id=f"talk-{number}",
                occurred_at=f"2026-05-{number % 6 + 1:02}T00:00:00Z",
            )
    with recall_session(store, "Can you summarise my plans for the garden?") as session:
        outlined = sum(len(hit["lines"]) for hit in session.hits)
        programs = ("print_rows(outline('plans for the garden', chars=15000))", "print(page(2))")
        rows = "".join(session.execute(one).output for one in programs)
        assert outlined * 0.7 <= rows.count("… (above)") <= outlined
        assert not any(line.count(" | ") for line in rows.splitlines() if "(above)" in line), "headings, too"
        whole = [line for line in rows.splitlines() if line.startswith("[") and "(above)" not in line]
        assert len(whole) >= 10 and all("ordered" in line for line in whole if "[page" not in line), (
            "others, even if only figures differ"
        )


def test_a_program_lists_only_turns_that_the_session_has_not_seen(store: ChunkStore) -> None:
    with store.batch():
        for number in range(30):
            store.create_chunk(
                f"User: Bed {number} of my garden gets {number + 3} tulips, as {'I planned ' * 12}.\nAssistant: Good.",
                conversation_id=f"talk-{number}",
            )
    with recall_session(store, "Which tulips did I plan?") as session:
        shown = {hit["id"] for hit in session.hits}
        listed = "print([one['chunk_id'] for one in turns('User', ['tulips'], unseen=True)])"
        first, again = (session.execute(listed).output for _ in range(2))
        assert 0 < len(shown) < 30 and first.count("chunk-") == 30 - len(shown)
        assert not any(one in first for one in shown) and again.strip() == "[]", (
            "nor what was returned before"
        )
    assert replay(store, session.id).same
    with recall_session(store, "Which tulips did I plan?") as session:
        others = "[one['chunk_id'] for one in outline('tulips', limit=10, unseen=True)]"
        first, second = (set(session.execute(f"print({others})").output.split("'")[1::2]) for _ in range(2))
        assert len(first) == len(second) == 10 and first.isdisjoint(shown | second)
        session.execute("rows = turns('User')")
        found = "print(len(grep('tulips', author='User')), len(grep('tulips', author='User', unseen=True)))"
        assert session.execute(found).output.strip() == "30 0"
    assert replay(store, session.id).same


def test_a_chunk_may_be_named_by_the_end_of_its_id_once_it_was_shown(store: ChunkStore) -> None:
    with store.batch():
        for number in range(12):
            store.create_chunk(
                f"User: Bed {number} of the garden gets {number + 3} tulips, as planned.\nAssistant: Good.",
                conversation_id=f"talk-{number}",
            )
    with recall_session(store, "Can you summarise my plans for the garden?") as session:
        whole = session.hits[0]["id"]
        short = whole.rpartition("-")[2]
        program = f"print(turns(chunks='{short}', limit=1)[0]['chunk_id'], read_chunk('{short}')['id'])"
        assert f"{whole} {whole}" in session.execute(program).output
        assert session.execute("print(read_chunk('nothing-of-the-kind'))").output.strip() == "None"
        assert session.finish("tulips", [short]).chunk_ids == [whole]


def test_the_end_of_several_ids_names_none_of_them_and_the_error_lists_them(store: ChunkStore) -> None:
    for day in ("2026-01-01", "2026-01-02"):
        store.create_chunk(f"A heron on {day}.", chunk_id=f"chunk-{day}-0000abcd")
    with recall_session(store, "Which heron?") as session:
        for program in ("read_chunk('0000abcd')", "turns(chunks=['0000abcd'])", "FINAL('x', ['0000abcd'])"):
            ran = session.execute(f"all_chunks()\n{program}")
            assert "chunk-2026-01-01-0000abcd, chunk-2026-01-02-0000abcd" in str(ran.error), program
        with pytest.raises(InputError, match="0000abcd"):
            session.finish("x", ["0000abcd"])


def test_ids_of_an_answer_that_are_no_list_are_refused_and_none_is_no_id(store: ChunkStore) -> None:
    with recall_session(store, "Which heron?") as session:
        with pytest.raises(InputError, match="chunk_ids must be a list of chunk ids, not 7"):
            session.finish("x", 7)  # type: ignore[arg-type]
        assert session.finish(None, None).chunk_ids == []


def test_that_all_is_untrusted_is_said_once(store: ChunkStore) -> None:
    with store.batch():
        for number in range(3):
            store.create_chunk(f"Ana: kite {number}", conversation_id="kites", origin="import")
        store.create_chunk("Ana: a page about boats", origin="web")
    with recall_session(store, "Which kites?") as session:
        first = session.execute("print_rows(grep('kite'))")
        again = session.execute("print_rows(grep('kite'))")
        other = session.execute("print_rows(grep('boats'))")
    assert "all untrusted: import" in session.opening and "Untrusted" not in first.text
    assert first.untrusted == "all 3 (import)"
    assert "Untrusted" not in again.text and again.untrusted == "all 3 (import)"
    assert "(web)" in other.text
