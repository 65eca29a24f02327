"""REASON: multi-hop over links in both directions, for and against, newer facts over superseded ones."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from recall_memories import block

from rlm_mem import search as searching
from rlm_mem.errors import InvalidQuery
from rlm_mem.models.base import Limits
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import ReasoningResult, ReasoningStep, ReasonOperation, load_trajectory
from rlm_mem.store.core.chunk_store import ChunkStore

QUESTION = "Why does Carla live in Lisbon?"


@pytest.fixture
def ids(store: ChunkStore) -> dict[str, str]:
    """A move with its reason two links away, a rumour against it, and what it replaced."""
    texts = {
        "old": ("Carla lives in Oslo.", "2025-01-05"),
        "new": ("Carla moved to Lisbon and lives there now.", "2025-06-05"),
        "why": ("She wanted more light in winter.", "2025-05-01"),
        "deep": ("The doctor had told her that dark months make her ill.", "2025-04-01"),
        "rumour": ("Carla is said to live in Porto.", "2025-03-01"),
        "noise": ("Ben rides a red bicycle.", "2025-07-01"),
    }
    made = {
        name: store.create_chunk(text, "fact", occurred_at=f"{day}T10:00:00Z").id
        for name, (text, day) in texts.items()
    }
    store.update_chunk(
        made["old"], metadata={"superseded_by": made["new"], "valid_to": "2025-06-05T10:00:00.000000Z"}
    )
    # The first link points at the hit, the second away from the chunk it leads to: both directions are walked.
    store.add_link(made["why"], made["new"], "supports", 0.9)
    store.add_link(made["why"], made["deep"], "elaborates", 0.9)
    store.add_link(made["rumour"], made["new"], "contradicts", 0.8)
    store.add_link(made["new"], made["old"], "related_to", 0.9)
    return made


def operations(result: ReasoningResult, chunk_id: str) -> list[str]:
    return [step.operation for step in result.path if step.chunk_id == chunk_id]


def test_offline_the_conclusion_is_quoted_from_chunks_several_links_away(
    store: ChunkStore, ids: dict[str, str]
) -> None:
    result = ReasonOperation(store).reason(QUESTION)
    for quoted in ("moved to Lisbon", "more light in winter", "dark months make her ill"):
        assert quoted in result.conclusion
    assert "bicycle" not in result.conclusion
    assert {ids["new"], ids["why"], ids["deep"]} <= set(result.supports)
    assert operations(result, ids["new"])[0] == "read"
    assert operations(result, ids["why"]) == ["link"]
    assert operations(result, ids["deep"]) == ["link"]
    assert result.path[-1].operation == "synthesize"
    assert 0 < result.confidence < 1
    assert result.cost == 0


def test_offline_contradicting_memories_are_listed_apart_and_lower_the_confidence(
    store: ChunkStore, ids: dict[str, str]
) -> None:
    doubted = ReasonOperation(store).reason(QUESTION)
    assert doubted.contradicts == [ids["rumour"]]
    assert ids["rumour"] not in doubted.supports
    assert "Against this: [2025-03-01] Carla is said to live in Porto." in doubted.conclusion
    store.delete_chunk(ids["rumour"])
    sure = ReasonOperation(store).reason(QUESTION)
    assert sure.contradicts == []
    assert sure.confidence > doubted.confidence


def test_offline_the_newer_fact_is_concluded_and_the_superseded_one_named(
    store: ChunkStore, ids: dict[str, str]
) -> None:
    result = ReasonOperation(store).reason("Where does Carla live now, Oslo or Lisbon?")
    concluded = [line for line in result.conclusion.splitlines() if "No longer valid" not in line]
    assert any("Lisbon" in line for line in concluded)
    assert not any("Oslo" in line for line in concluded)
    assert ids["old"] in result.superseded
    assert ids["old"] not in result.supports


def test_offline_a_fact_whose_validity_has_ended_is_not_concluded(store: ChunkStore) -> None:
    ended = store.create_chunk("The office of Dora is in Bergen.", valid_to="2025-12-31T00:00:00Z").id
    holds = store.create_chunk("The office of Dora is in Turin.", valid_from="2026-01-01T00:00:00Z").id
    store.add_link(holds, ended, "related_to", 1.0)
    result = ReasonOperation(store).reason("Where is the office of Dora?")
    assert holds in result.supports
    assert ended in result.superseded
    assert ended not in result.supports


def test_offline_a_memory_without_an_answer_gives_none(store: ChunkStore, ids: dict[str, str]) -> None:
    result = ReasonOperation(store).reason("Which opera does Zoe sing?")
    assert (result.conclusion, result.path, result.confidence) == ("", [], 0.0)
    assert result.concluded
    assert ids


def test_offline_reasoning_is_deterministic(store: ChunkStore, ids: dict[str, str]) -> None:
    first, second = (ReasonOperation(store).reason(QUESTION) for _ in range(2))
    assert (first.conclusion, first.path, first.confidence) == (
        second.conclusion,
        second.path,
        second.confidence,
    )
    assert ids


def test_offline_a_long_question_looks_up_each_of_its_words_once(
    store: ChunkStore, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Counter[str]()
    keyword_ids = searching.keyword_ids

    def counted(store: ChunkStore, words: str, **how: Any) -> list[str]:
        asked[words] += 1
        return keyword_ids(store, words, **how)

    monkeypatch.setattr(searching, "keyword_ids", counted)
    ReasonOperation(store).reason("Why does Carla live in Lisbon, " * 300 + "and in Oslo?")
    assert set(asked.values()) == {1}, asked


def test_circular_links_end(store: ChunkStore) -> None:
    made = [store.create_chunk(f"Gear number {n} turns the mill.").id for n in range(5)]
    for one, other in zip(made, [*made[1:], made[0]], strict=True):
        store.add_link(one, other, "supports", 1.0)
    result = ReasonOperation(store).reason("What turns the mill?")
    assert result.concluded
    assert set(result.supports) <= set(made)


def test_a_model_gives_conclusion_path_and_sides(store: ChunkStore, ids: dict[str, str]) -> None:
    answer = {
        "conclusion": "For the light.",
        "path": [
            {"chunk_id": ids["new"], "operation": "read", "reasoning": "the move"},
            {"chunk_id": ids["why"], "operation": "link", "reasoning": "its reason"},
            {"chunk_id": ids["why"], "operation": "ponder", "reasoning": "an unknown operation"},
            {"chunk_id": "chunk-2020-01-01-00000000", "operation": "read", "reasoning": "invented"},
            "nonsense",
        ],
        "supports": [ids["why"]],
        "contradicts": [ids["rumour"], "chunk-2020-01-01-00000000"],
    }
    llm = ScriptedLLM([block(f"FINAL({answer!r}, chunk_ids=['{ids['new']}'], confidence=0.8)")])
    result = ReasonOperation(store, llm).reason(QUESTION)
    assert "get_linked_chunks" in llm.prompts[0][1].content
    assert result.conclusion == "For the light."
    assert result.path == [
        ReasoningStep(ids["new"], "read", "the move"),
        ReasoningStep(ids["why"], "link", "its reason"),
        ReasoningStep(ids["why"], "read", "an unknown operation"),
    ]
    assert (result.supports, result.contradicts) == ([ids["why"]], [ids["rumour"]])
    assert result.chunk_ids == [ids["new"], ids["why"]]
    assert result.confidence == 0.8


def test_without_a_path_from_the_model_the_observed_one_is_returned(
    store: ChunkStore, ids: dict[str, str]
) -> None:
    code = (
        f"read_chunk('{ids['new']}')\n"
        f"for c in get_linked_chunks('{ids['new']}', 'supports'):\n    print(c['content'])\n"
        f"FINAL('She wanted more light.', chunk_ids=['{ids['why']}'])"
    )
    result = ReasonOperation(store, ScriptedLLM([block(code)])).reason(QUESTION)
    assert [(step.chunk_id, step.operation) for step in result.path] == [
        (ids["new"], "read"),
        (ids["why"], "link"),
        (ids["why"], "synthesize"),
    ]
    assert result.confidence > 0.5


def test_contradicting_chunks_are_looked_up_when_the_model_names_none(
    store: ChunkStore, ids: dict[str, str]
) -> None:
    code = f"FINAL('In Lisbon', chunk_ids=['{ids['new']}'])"
    result = ReasonOperation(store, ScriptedLLM([block(code)])).reason(QUESTION)
    assert result.contradicts == [ids["rumour"]]


def test_a_budget_ends_reasoning_and_keeps_the_evidence(store: ChunkStore, ids: dict[str, str]) -> None:
    llm = ScriptedLLM(default=block(f"read_chunk('{ids['why']}')"))
    result = ReasonOperation(store, llm, limits=Limits(iterations=2)).reason(QUESTION)
    assert (result.conclusion, result.stopped_by, result.concluded) == ("", "iterations", False)
    assert result.chunk_ids == result.evidence == [ids["why"]]
    assert (result.confidence, [step.operation for step in result.path]) == (0.0, ["read"])


def test_the_path_is_in_the_trajectory(store: ChunkStore, ids: dict[str, str]) -> None:
    result = ReasonOperation(store).reason(QUESTION)
    recorded = load_trajectory(store, result.trajectory.id)
    assert recorded.operation == "reason"
    assert recorded.outcome is not None
    assert recorded.outcome.content == result.conclusion
    assert [ReasoningStep(**step) for step in recorded.outcome.detail["path"]] == result.path
    assert recorded.outcome.detail["contradicts"] == [ids["rumour"]]


def test_an_empty_question_is_refused(store: ChunkStore) -> None:
    with pytest.raises(InvalidQuery):
        ReasonOperation(store).reason("")
