"""Two patterns of use: an agent with a personality and a memory, and a memory for a project."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def prompts() -> list[str]:
    return []


def test_the_agent_answers_in_its_personality_from_what_it_remembers(
    tmp_path: Path, prompts: list[str]
) -> None:
    def model(system_prompt: str, said: str) -> str:
        prompts.append(system_prompt)
        return f"You said {said}"

    agent = loaded("memory_enabled_agent").MemoryEnabledAgent(
        model, "CREATIVE_DIRECTOR", str(tmp_path / "brain")
    )
    assert agent.personality["sliders"]["creativity"] == 90
    assert agent.process("My boat is called Heron.") == "You said My boat is called Heron."
    agent.process("What is my boat called?")
    assert "Heron" not in prompts[0]
    assert "My boat is called Heron." in prompts[1].partition("<memories>")[2]
    assert all("# Mode: Creative Director" in prompt for prompt in prompts)
    assert agent.memory.get_stats()["chunk_count"] == 2
    agent.close()


def test_the_agent_obeys_slider_commands_and_does_not_remember_them(
    tmp_path: Path, prompts: list[str]
) -> None:
    def model(system_prompt: str, said: str) -> str:
        prompts.append(system_prompt)
        return said

    agent = loaded("memory_enabled_agent").MemoryEnabledAgent(model, brain=str(tmp_path / "brain"))
    assert "humor 20%" in agent.process("Set humor to 20%")
    assert agent.process("Research mode").startswith("RESEARCH_ANALYST")
    assert prompts == []
    assert agent.memory.get_stats()["chunk_count"] == 0
    agent.process("Hello, who are you?")
    assert "# Mode: Research Analyst" in prompts[0]
    agent.close()


def test_a_project_remembers_its_decisions_and_what_replaced_them(tmp_path: Path) -> None:
    module = loaded("project_memory")
    ledger = module.ProjectMemory("ledger", str(tmp_path / "brain"))
    website = module.ProjectMemory("website", str(tmp_path / "brain"))
    first = ledger.store_decision("MySQL for the ledger", "the team knows it")
    second = ledger.store_decision("PostgreSQL for the ledger", "row-level security", replaces=first.id)
    assert first.type == "decision"
    assert first.content == "Decision: MySQL for the ledger\nRationale: the team knows it"
    assert first.tags == ["decision", "ledger"]
    assert ledger.decisions() == ["Decision: PostgreSQL for the ledger"]
    assert "row-level security" in str(ledger.why("Which database is the ledger kept in, PostgreSQL?"))
    assert ledger.store.get_chunk(first.id).metadata.superseded_by == second.id
    assert website.decisions() == []
    assert website.why("PostgreSQL") is None
    ledger.close()
    website.close()
