"""The memory for CrewAI within crews of the real package, whose model is scripted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.frameworks import Lazy, needs

from rlm_mem import Memory
from rlm_mem.errors import InputError

pytestmark = needs("crewai", "make test-crewai")
sdk = Lazy("rlm_mem.integrations.crewai", "crewai")

LOOK_UP = 'Thought: look\nAction: search_memory\nAction Input: {"queries": ["ferry of Ellerby"]}'
KEEP = 'Thought: keep\nAction: save_to_memory\nAction Input: {"contents": ["The mill of Ulm grinds rye."]}'


@pytest.fixture(autouse=True)
def no_key_and_no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("CREWAI_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "brain") as opened:
        yield opened


def scripted(*answers: str) -> Any:
    """A model that gives these answers, one after the other, and keeps what it was asked."""

    base: Any = sdk.BaseLLM

    class Scripted(base):
        asked: list[str] = []  # noqa: RUF012 - a field of a model of Pydantic, copied for each
        left: list[str] = list(answers)  # noqa: RUF012

        def call(self, messages: Any, *_: Any, **__: Any) -> str:
            self.asked.append(str(messages))
            return self.left.pop(0)

        def supports_function_calling(self) -> bool:
            return False

    return Scripted(model="scripted")


def run(memory: Memory, task: str, *answers: str, **fields: Any) -> Any:
    """One run of a crew; returns its model."""
    model = scripted(*answers)
    agent = sdk.Agent(role="Guide", goal="help", backstory="knows", llm=model)
    asked = sdk.Task(description=task, expected_output="a sentence", agent=agent)
    sdk.Crew(agents=[agent], tasks=[asked], memory=sdk.CrewMemory(memory, **fields)).kickoff()
    return model


def final(answer: str) -> str:
    return f"Thought: done\nFinal Answer: {answer}"


def test_a_second_crew_knows_what_the_first_one_found(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        run(
            memory,
            "Find out where the ferry of Ellerby lands.",
            final("The ferry of Ellerby lands at pier nine."),
        )
    with Memory.open(tmp_path / "brain") as memory:
        model = run(memory, "Where does the ferry of Ellerby land?", LOOK_UP, final("At pier nine."))
        assert "pier nine" in model.asked[0], "the framework puts memories into the prompt of a task"
        assert "Found memories" in model.asked[1]
        assert "pier nine" in str(memory.recall("Where does the ferry of Ellerby land?").sources)


def test_agents_find_other_memories_and_store_their_own(memory: Memory) -> None:
    memory.remember("The ferry of Ellerby sails at noon.", origin="web")
    model = run(memory, "When does the ferry of Ellerby sail?", LOOK_UP, KEEP, final("At noon."))
    assert "untrusted, from web: The ferry" in model.asked[0]
    [mill] = memory.search("mill of Ulm", limit=1)
    assert mill.origin == "agent"
    run(memory, "What grinds the mill of Ulm?", final("Rye."), read_only=True)
    assert not memory.search("Task: What grinds the mill")[0].snippet.startswith("Task: What")


def test_scopes_categories_and_sources_restrict_what_is_recalled(memory: Memory) -> None:
    crew = sdk.CrewMemory(memory)
    long = "/" + "very-long-role-" * 20
    crew.remember(
        "Bees live in Porto.", scope="/team/ann", categories=["bees"], metadata={"hive": 3}, importance=0.9
    )
    crew.remember("Bees live in Faro.", scope="/team/ben", source="ben", private=True)
    other = crew.remember("Bees live in Porto.", scope="/other")
    assert crew.remember("Bees live in Porto.", scope="/other").id == other.id, (
        "the same result is stored once"
    )
    crew.remember("Bees live in Braga.", scope=long)
    memory.remember("Bees live in Lisbon.")

    def found(**wanted: Any) -> set[str]:
        return {match.record.content.split()[3] for match in crew.recall("Where do bees live?", **wanted)}

    assert found() == {"Porto.", "Braga.", "Lisbon."}
    assert found(include_private=True) == {"Porto.", "Braga.", "Lisbon.", "Faro."}
    assert found(scope="/team") == {"Porto."}
    assert found(scope="/team", source="ben") == {"Porto.", "Faro."}
    assert found(scope="/other") == {"Porto."}, "the same text in another scope is another record"
    assert found(scope=long) == {"Braga."}
    assert found(scope="/tea") == set()
    assert found(categories=["bees"]) == {"Porto."}
    assert len(crew.recall("Where do bees live?", limit=1)) == 1
    assert crew.recall("  ") == []
    hidden = crew.remember("Wasps live in Porto.", source="ben", private=True)
    assert crew.remember("Wasps live in Porto.").id != hidden.id, "or nobody else could recall it"
    [match] = crew.recall("bees", scope="/team/ann", depth="shallow")
    assert (match.record.metadata, match.record.importance, match.record.scope) == (
        {"hive": 3},
        0.9,
        "/team/ann",
    )
    assert crew.list_scopes() == ["/other", "/team", long]
    assert crew.list_scopes("/team") == ["/team/ann", "/team/ben"]
    assert crew.list_categories() == {"bees": 1}
    assert crew.info("/team").record_count == 2
    assert "/team (2 records)" in crew.tree()
    assert [one.content for one in crew.list_records("/team")] == [
        "Bees live in Faro.",
        "Bees live in Porto.",
    ]
    view = crew.scope("/team")
    view.remember("Ants live in Ovar.", scope="/ann")
    assert view.recall("ants")[0].record.scope == "/team/ann"
    rooted = sdk.CrewMemory(memory, root_scope="/other")
    assert [one.record.scope for one in rooted.recall("bees")] == ["/other"]


def test_no_category_puts_a_record_into_another_scope(memory: Memory) -> None:
    crew = sdk.CrewMemory(memory)
    made = crew.remember(
        "Pay the bill at pier four.", scope="/ben", categories=["crewai:ann", " CrewAI:ann", "bill"]
    )
    assert made.categories == ["bill"]
    assert crew.recall("bill", scope="/ann") == crew.list_records("/ann") == []


def test_a_record_is_updated_and_forgotten_without_being_lost(memory: Memory) -> None:
    crew = sdk.CrewMemory(memory)
    record = crew.remember("The kiln fires at 900 degrees.", scope="/kiln", categories=["heat"])
    changed = crew.update(record.id, content="The kiln fires at 950 degrees.", scope="/oven")
    assert (changed.id, changed.scope, changed.categories) == (record.id, "/oven", ["heat"])
    assert crew.list_records("/kiln") == []
    assert len(memory.history(record.id)) == 2
    with pytest.raises(ValueError, match="Record not found"):
        crew.update("nothing", content="x")
    assert sdk.CrewMemory(memory, read_only=True).update(record.id, content="x").content == changed.content

    own = memory.remember("Not of a crew.").chunk_ids[0]
    later = datetime.now(UTC) + timedelta(minutes=1)
    assert crew.forget(older_than=later - timedelta(days=1)) == 0
    assert crew.forget(metadata_filter={"hive": 3}) == 0
    assert crew.forget(scope="/oven", categories=["cold"]) == 0
    assert crew.forget(older_than=later) == 1
    crew.remember("Another one.")
    crew.reset()
    assert [chunk.id for chunk in memory.store.iter_chunks()] == [own], "what no crew stored stays"
    assert crew.forget(record_ids=[own, "nothing"]) == 1
    assert memory.restore(record.id).content == changed.content


def test_a_model_of_the_framework_extracts_statements(memory: Memory) -> None:
    model = scripted('{"memories": ["Ines lives in Porto.", "Ines keeps bees."]}')
    crew = sdk.CrewMemory(memory, llm=model)
    assert crew.extract_memories("Task: …\nResult: …") == ["Ines lives in Porto.", "Ines keeps bees."]
    assert sdk.CrewMemory(memory).extract_memories(" ") == []


def test_what_was_damaged_by_hand_has_defaults(memory: Memory) -> None:
    memory.remember(
        "Bees live in Ovar.", metadata={"crewai": {"scope": 3, "importance": "high", "metadata": []}}
    )
    [match] = sdk.CrewMemory(memory).recall("bees")
    assert (match.record.scope, match.record.importance, match.record.metadata) == ("/", 0.5, {})


def test_a_copy_of_a_crew_shares_the_brain(memory: Memory) -> None:
    agent = sdk.Agent(role="Guide", goal="help", backstory="knows", llm=scripted())
    task = sdk.Task(description="x", expected_output="y", agent=agent)
    crew = sdk.Crew(agents=[agent], tasks=[task], memory=sdk.CrewMemory(memory))
    copied = crew.copy()
    copied.memory.remember("Bees live in Porto.")
    assert memory.search("bees")


def test_something_else_than_a_memory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="memory must be Memory, not"):
        sdk.CrewMemory(tmp_path)
