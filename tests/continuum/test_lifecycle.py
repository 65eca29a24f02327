"""The life of a memory: day 1, day 2, day 30, and on into the core."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rlm_mem.continuum import Continuum
from rlm_mem.continuum.mirror import MARK
from rlm_mem.continuum.rules import unmet
from rlm_mem.errors import InvalidMemory
from rlm_mem.memory import Memory

from .conftest import PROVEN, StillClock, added, by_hand, learning, record, replaced, rewrite, trace_of


def test_the_example_of_the_schema_day_1_day_2_and_day_30(continuum: Continuum, still: StillClock) -> None:
    log = record(continuum, "Research web content and summarize", task_type="research")
    assert log.meta.tier == "high"
    assert log.meta.volatility == "high"
    assert log.meta.confidence_score == 0.80
    assert (log.meta.usage_count, log.meta.rate) == (1, 1.0)
    assert log.meta.created_at == "2025-11-09T10:00:00Z"

    for _ in range(4):
        continuum.traces.use(log.key, True, project="alpha")
    still.now = datetime(2025, 11, 10, 8, tzinfo=UTC)
    continuum.consolidate()
    (trace,) = continuum.files.entries()
    meta = trace.meta
    assert trace.file == "memory/long_term/execution_trace_research_web_content_and_summarize_v1.md"
    assert (meta.tier, meta.volatility) == ("mid", "medium")
    assert meta.usage_count == 5
    assert meta.confidence_score == pytest.approx(0.85, abs=0.005)
    assert meta.frequency_history == ["high", "mid"]
    assert meta.transition_timestamps == ["2025-11-09T10:00:00Z", "2025-11-10T08:00:00Z"]
    assert "successful pattern extract" in (meta.consolidation_log or "")

    for number in range(20):
        continuum.traces.use(trace.key, number != 3, project="beta" if number % 2 else "alpha")
    still.now = datetime(2025, 12, 8, 12, tzinfo=UTC)
    continuum.consolidate()
    (low,) = continuum.files.entries(kinds=("learning",))
    meta = low.meta
    assert low.file == "system/memory_log.md"
    assert (meta.tier, meta.volatility, meta.retention_policy) == ("low", "low", "persistent")
    assert (meta.usage_count, meta.rate) == (25, 0.96)
    assert meta.confidence_score == pytest.approx(0.96, abs=0.01)
    assert meta.frequency_history == ["high", "mid", "low"]
    assert meta.transition_timestamps == [
        "2025-11-09T10:00:00Z",
        "2025-11-10T08:00:00Z",
        "2025-12-08T12:00:00Z",
    ]
    assert "elevated after 24 of 25 uses" in (meta.consolidation_log or "")
    assert meta.cross_project_validated


def test_the_whole_way_into_the_core_leads_through_the_review_queue(
    continuum: Continuum, still: StillClock
) -> None:
    low = learning(continuum)
    for number in range(60):
        continuum.traces.use(low.key, True, project=f"project {number % 4}")
    report = continuum.consolidate()
    assert [step["key"] for step in report.queued] == [low.key]
    assert continuum.traces.find(low.key).meta.tier == "low", "nothing enters the core without a reviewer"

    (case,) = continuum.review.cases()
    continuum.review.approve(case.id, reviewer="Ana", reason="Held in five projects.")
    (core,) = continuum.files.entries(kinds=("library",))
    meta = core.meta
    assert (meta.tier, meta.retention_policy, meta.update_trigger) == ("ultra-low", "permanent", "manual")
    assert meta.frequency_history == ["high", "mid", "low", "ultra-low"]
    assert meta.system_core_component
    assert "approved by Ana: Held in five projects." in (meta.consolidation_log or "")
    assert (meta.usage_count, meta.successes) == (85, 84)
    assert list(continuum.files.entries(kinds=("learning",))) == []
    still.now = datetime(2035, 1, 1, tzinfo=UTC)
    assert {step.action for step in continuum.prune(dry_run=False).steps} == {"retire"}, (
        "only replaced mirrors"
    )
    assert continuum.traces.find(core.key).text == core.text


def test_a_memory_takes_one_tier_at_a_time_however_good_it_is(continuum: Continuum) -> None:
    for _ in range(3):
        record(continuum)
    report = continuum.consolidate()
    assert [step["to"] for step in report.promoted] == ["mid"]


def test_every_transition_has_a_reasoned_line_in_the_journal(continuum: Continuum) -> None:
    low = learning(continuum)
    steps = [step for step in continuum.changes.journal() if step["op"] == "promote"]
    assert [(step["from"], step["to"]) for step in steps] == [("high", "mid"), ("mid", "low")]
    assert all(step["reason"] and step["ts"] for step in steps)
    assert (low.meta.consolidation_log or "").count("\n") == 1


def test_the_learning_is_offered_in_the_smart_library_until_it_enters_the_core(continuum: Continuum) -> None:
    low = learning(continuum)
    (card,) = continuum.files.entries(kinds=("library",))
    assert card.meta.component_of == low.key
    assert card.meta.tier == "low"
    assert not card.meta.system_core_component


def test_a_card_is_counted_with_the_learning_it_belongs_to(continuum: Continuum) -> None:
    learning(continuum)
    counted = continuum.health()["tiers"]
    assert counted["low"] == 1
    with Memory(continuum.store) as memory:
        shown = memory.hud_figures()["tiers"]
    assert {name: shown[name.replace("-", "_")] for name in counted} == counted


def test_what_was_validated_in_one_project_only_is_a_project_learning(continuum: Continuum) -> None:
    low = learning(
        continuum, contexts={"alpha@one": [15, 15], "alpha@two": [10, 9]}, cross_project_validated=False
    )
    assert low.file == "system/project_learnings.md"
    assert not low.meta.cross_project_validated
    continuum.traces.use(low.key, True, project="beta")
    assert continuum.traces.find(low.key).meta.cross_project_validated


def test_five_successful_uses_alone_promote_nothing(continuum: Continuum) -> None:
    """ "After 5 successful uses" is not a rule (docs/spec/decisions.md, 33)."""
    log = record(continuum, indicators=[], confidence=0.9)
    for _ in range(5):
        continuum.traces.use(log.key, True)
    assert continuum.consolidate().promoted == []
    from rlm_mem.continuum.rules import high_to_mid
    from rlm_mem.continuum.runs import read_run

    now = continuum.traces.find(log.key)
    assert unmet(high_to_mid(now.meta, read_run(now.body))) == "success indicators: 0 named"


def test_reads_are_counted_as_accesses_and_uses_as_uses(continuum: Continuum) -> None:
    log = record(continuum)
    for _ in range(3):
        continuum.traces.read(log.key)
    assert continuum.traces.find(log.key).meta.usage_count == 1
    continuum.traces.use(log.key, False, error="timeout")
    meta = continuum.traces.find(log.key).meta
    assert (meta.access_count, meta.usage_count, meta.successes, meta.rate) == (3, 2, 1, 0.5)
    assert meta.last_accessed is not None
    assert meta.failures[-1]["error"] == "timeout"
    assert meta.confidence_score < 0.8


def test_working_state_has_no_uses(continuum: Continuum) -> None:
    continuum.workspace.start("plan")
    with pytest.raises(InvalidMemory, match=r"working state"):
        continuum.traces.use("workspace/state/plan.md", True)


# --- what a person writes into the files ----------------------------------------------------------------------


def test_a_block_without_an_id_keeps_the_one_that_its_first_line_gives(continuum: Continuum) -> None:
    made = learning(continuum)
    replaced(continuum, made.file, f"id: {made.block}\n", "")
    continuum.sync()
    (entry,) = continuum.files.in_file(made.file)
    before = continuum.files.read(made.file)
    assert entry.key.startswith(f"{made.file}#entry-")
    for count, success in ((26, True), (27, False)):
        continuum.traces.use(entry.key, success)
        assert continuum.traces.find(entry.key).meta.usage_count == count
    assert [hit.key for hit in continuum.queries.stable()] == [entry.key]
    continuum.undo_change()
    continuum.undo_change()
    assert continuum.files.read(made.file) == before


def test_of_two_blocks_with_one_id_the_second_is_reported(continuum: Continuum) -> None:
    made = learning(continuum)
    by_hand(continuum, made.file, f"{continuum.files.read(made.file)}\n{made.text}")
    assert [one.message for one in continuum.findings()] == [
        f"{made.file}: id: '{made.block}' is used twice in this file"
    ]
    assert [entry.key for entry in continuum.files.in_file(made.file, [])] == [made.key]


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{", "not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2"),
        ("[" * 100_000, "nested too deeply"),
        ('{"plan": 1}', "_memory: a JSON file must have its front matter under this key"),
    ],
)
def test_a_json_memory_that_cannot_be_read_is_reported(
    continuum: Continuum, written: str, message: str
) -> None:
    by_hand(continuum, "workspace/state/variables.json", written)
    (found,) = continuum.findings()
    assert message in found.message and found.file == "workspace/state/variables.json"


def test_a_section_that_a_person_added_rises_with_the_memory(continuum: Continuum) -> None:
    trace = trace_of(continuum)
    section = "## Caveats\n\nOnly on weekdays, never by night."
    by_hand(continuum, trace.file, f"{trace.text.rstrip()}\n\n{section}\n")
    rewrite(continuum, trace, **PROVEN)
    continuum.consolidate()
    (risen,) = continuum.files.entries(kinds=("learning",))
    assert section in risen.body


def test_of_too_many_contexts_the_least_used_is_forgotten(continuum: Continuum) -> None:
    contexts = {"alpha": [1, 1]} | {f"project {number}": [2 + number, 2] for number in range(49)}
    trace = rewrite(continuum, trace_of(continuum), contexts=contexts)
    continuum.traces.use(trace.key, True, project="new")
    found = list(continuum.traces.find(trace.key).meta.contexts)
    assert len(found) == 50 and found[0] == "alpha" and found[-1].startswith("new")
    assert "project 0" not in found


def test_figures_of_a_chunk_that_are_damaged_are_reported_and_left(continuum: Continuum) -> None:
    damaged = continuum.store.create_chunk(
        "Ask before a release.", "pattern", {"uses": {"usage_count": "many"}}, tags=[MARK]
    )
    (problem,) = continuum.consolidate().problems
    assert problem.file == damaged.id and "usage_count" in problem.message
    with pytest.raises(InvalidMemory, match="usage_count"):
        continuum.traces.use(damaged.id, True)
    assert continuum.store.get_chunk(damaged.id, track=False) == damaged


def test_memories_of_one_name_are_archived_beside_each_other(continuum: Continuum) -> None:
    changes, stored = continuum.changes, continuum.files.stored
    for number in range(3):
        entry = added(continuum, "system/memory_log.md", "Quince", f"Graft in March {number}.")
        changes.apply(lambda: changes.draft("archive", entry.key, "", changes.archived(entry)))  # noqa: B023
    archived = [stored.read(name) or b"" for name in stored.names("archive/system", recursive=True)]
    assert [sum(f"March {number}".encode() in one for one in archived) for number in range(3)] == [1, 1, 1]
