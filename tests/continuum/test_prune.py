"""Retention and pruning: the table and the rules of docs/spec/continuum.md, Retention: dry first, with a way back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.continuum import Continuum
from rlm_mem.errors import ConflictError, NotFoundError
from rlm_mem.search import search

from .conftest import StillClock, added, by_hand, learning, record, rewrite, trace_of, tree


def actions(continuum: Continuum) -> list[tuple[str, str]]:
    return [(step.action, step.tier) for step in continuum.prune().steps if step.action != "retire"]


def test_a_log_is_archived_once_it_is_older_than_thirty_days(continuum: Continuum, still: StillClock) -> None:
    record(continuum, indicators=[])
    still.now += timedelta(days=30)
    assert actions(continuum) == []
    still.now += timedelta(seconds=1)
    assert actions(continuum) == [("archive", "high")]


def test_retention_does_not_apply_to_working_state(continuum: Continuum, still: StillClock) -> None:
    continuum.workspace.start("plan")
    still.now += timedelta(days=400)
    assert actions(continuum) == []
    assert continuum.workspace.text("plan").strip() == "plan"


def test_only_working_state_is_cleared_on_boot(continuum: Continuum) -> None:
    continuum.workspace.start("plan")
    log = record(continuum)
    assert len(continuum.workspace.clear()) == 5
    assert continuum.workspace.entries() == []
    assert continuum.traces.find(log.key).text == log.text


@pytest.mark.parametrize(
    ("figures", "days", "goes"),
    [
        ({"usage_count": 3, "success_count": 2, "success_rate": 0.67}, 0, True),
        ({"usage_count": 2, "success_count": 1, "success_rate": 0.5}, 0, False),
        ({"usage_count": 10, "success_count": 7, "success_rate": 0.7}, 0, False),
        ({"usage_count": 4, "success_count": 4, "success_rate": 1.0}, 60, False),
        ({"usage_count": 4, "success_count": 4, "success_rate": 1.0}, 61, True),
        ({"usage_count": 5, "success_count": 5, "success_rate": 1.0}, 400, False),
    ],
)
def test_a_trace_is_downgraded_for_failing_at_any_age_or_for_being_idle_for_sixty_days(
    continuum: Continuum, still: StillClock, figures: dict[str, Any], days: int, goes: bool
) -> None:
    rewrite(continuum, trace_of(continuum), contexts={}, **figures)
    still.now += timedelta(days=days, seconds=1 if goes else 0)
    assert actions(continuum) == ([("downgrade", "mid")] if goes else [])


def test_a_downgraded_trace_is_temporary_with_a_fresh_clock_and_its_history(
    continuum: Continuum, still: StillClock
) -> None:
    trace = trace_of(continuum)
    still.now += timedelta(days=61)
    continuum.prune(dry_run=False)
    (log,) = continuum.files.entries()
    assert log.file.startswith("memory/short_term/")
    assert (log.meta.tier, log.meta.retention_policy) == ("high", "temporary")
    assert log.meta.frequency_history == ["high", "mid", "high"]
    assert "fewer than 5" in (log.meta.consolidation_log or "")
    assert log.body == trace.body
    assert next(iter(continuum.changes.journal(op="demote")))["to"] == "high"
    still.now += timedelta(days=30)
    assert actions(continuum) == [], "the thirty days begin anew"
    still.now += timedelta(seconds=1)
    assert actions(continuum) == [("archive", "high")]


@pytest.mark.parametrize(("good", "validated", "goes"), [(84, 9, True), (85, 9, False), (84, 0, False)])
def test_a_learning_that_fails_after_validation_is_flagged_for_review(
    continuum: Continuum, good: int, validated: int, goes: bool
) -> None:
    low = learning(continuum)
    rewrite(
        continuum,
        low,
        usage_count=100,
        success_count=good,
        success_rate=good / 100,
        validation_count=validated,
    )
    assert actions(continuum) == ([("flag_for_review", "low")] if goes else [])
    continuum.prune(dry_run=False)
    assert [case.kind for case in continuum.review.cases()] == (["retain"] if goes else [])
    assert continuum.traces.find(low.key).meta.tier == "low", "flagged, not moved"
    assert actions(continuum) == [], "flagged once"


def test_the_core_is_never_pruned_whatever_its_figures(continuum: Continuum, still: StillClock) -> None:
    core = added(continuum, "system/profiles/ana.md", "Ana", "Ana prefers trains.")
    rewrite(continuum, core, usage_count=100, success_count=1, success_rate=0.01, validation_count=50)
    still.now += timedelta(days=36_500)
    assert actions(continuum) == []
    continuum.prune(dry_run=False)
    assert continuum.traces.find(core.key).meta.tier == "ultra-low"


def test_a_damaged_record_of_another_change_does_not_prevent_a_restore(
    continuum: Continuum, still: StillClock
) -> None:
    first, second = record(continuum, indicators=[]), record(continuum, indicators=[])
    still.now += timedelta(days=31)
    continuum.prune(dry_run=False)
    newest = continuum.changes.transition(continuum.changes.transitions()[-1])
    by_hand(continuum, f"archive/transitions/{newest.id}.json", "{")
    readable = {first.file, second.file} - {newest.entry}
    continuum.pruner.restore(readable.pop())
    assert len(list(continuum.files.entries(kinds=("interaction",)))) == 1


def test_pruning_only_reports_by_default(continuum: Continuum, still: StillClock) -> None:
    record(continuum, indicators=[])
    still.now += timedelta(days=31)
    before = tree(continuum)
    assert continuum.pruner.run().dry_run
    report = continuum.prune()
    assert report.dry_run
    assert "31 days old" in report.steps[0].reason
    assert tree(continuum) == before


def test_pruning_is_idempotent(continuum: Continuum, still: StillClock) -> None:
    record(continuum, indicators=[])
    trace_of(continuum, "Deploy")
    still.now += timedelta(days=61)
    continuum.prune(dry_run=False)
    before = tree(continuum)
    assert continuum.prune(dry_run=False).steps == []
    assert tree(continuum) == before


def test_an_archived_log_is_out_of_search_and_comes_back_byte_for_byte(
    continuum: Continuum, still: StillClock
) -> None:
    log = record(continuum, "Graft the medlar", indicators=[])
    still.now += timedelta(days=31)
    continuum.prune(dry_run=False)
    assert continuum.files.read(log.file) is None
    assert search(continuum.store, "medlar") == []
    assert continuum.pruner.archived() == ["archive/" + log.file]
    continuum.pruner.restore("archive/" + log.file)
    assert continuum.files.read(log.file) == log.text
    assert continuum.pruner.archived() == []
    assert search(continuum.store, "medlar")[0].chunk_id == log.chunk_id
    with pytest.raises(NotFoundError):
        continuum.pruner.restore("archive/" + log.file)


def test_a_memory_that_a_person_deletes_does_not_come_back_until_it_is_restored(continuum: Continuum) -> None:
    log = record(continuum, "Graft the medlar")
    with Memory(continuum.store) as memory:
        with pytest.raises(ConflictError, match="shows the tiered memory"):
            memory.delete(log.chunk_id, permanent=True)
        with pytest.raises(ConflictError, match="shows the tiered memory"):
            memory.update(log.chunk_id, "Graft the quince")
        assert memory.archive(tags=["tier:high"], dry_run=False) == []
        assert memory.delete(log.chunk_id)
        memory.continuum.sync()
        assert not memory.search("medlar")
        assert continuum.pruner.archived() == ["archive/" + log.file]
        assert memory.restore(log.chunk_id) is not None
        memory.continuum.sync()
        assert memory.search("medlar")[0].chunk_id == log.chunk_id
        assert memory.delete(log.chunk_id)
        memory.undo()
        assert continuum.files.read(log.file) == log.text
        assert not memory.delete("chunk-memory-00000000000000000000")
        assert memory.restore("chunk-memory-00000000000000000000") is None


def test_a_mirror_that_was_archived_alone_is_restored_alone(continuum: Continuum) -> None:
    log = record(continuum, "Graft the medlar")
    continuum.store.delete_chunk(log.chunk_id)  # as earlier versions did
    with Memory(continuum.store) as memory:
        assert memory.restore(log.chunk_id) is not None


def test_a_chunk_that_only_says_which_memory_it_shows_is_deleted_alone(continuum: Continuum) -> None:
    log = record(continuum, "Graft the medlar")
    stored = continuum.store.create_chunk("x", chunk_id="chunk-memory-x", provenance={"file": log.file})
    with Memory(continuum.store) as memory:
        assert memory.delete(stored.id)
        assert continuum.files.read(log.file) == log.text


def test_deleting_from_the_archive_is_its_own_command_and_dry_first(
    continuum: Continuum, still: StillClock
) -> None:
    record(continuum, indicators=[])
    still.now += timedelta(days=31)
    continuum.prune(dry_run=False)
    names = continuum.pruner.archived()
    still.now += timedelta(days=1000)
    continuum.prune(dry_run=False)
    assert continuum.pruner.archived() == names, "retention never empties the archive"
    assert continuum.pruner.delete_archived(still.now - timedelta(days=2000)) == []
    assert continuum.pruner.delete_archived(still.now) == names
    assert continuum.pruner.archived() == names, "that was dry"
    continuum.pruner.delete_archived(still.now, dry_run=False)
    assert continuum.pruner.archived() == []


def test_mirrors_of_what_went_into_other_memories_are_retired_after_thirty_days(
    continuum: Continuum, still: StillClock
) -> None:
    log = record(continuum)
    continuum.consolidate()
    still.now += timedelta(days=30)
    assert continuum.prune(dry_run=False).steps == []
    still.now += timedelta(days=1)
    steps = continuum.prune(dry_run=False).steps
    assert [(step.key, step.action) for step in steps] == [(log.chunk_id, "retire")]
    assert not continuum.store.exists(log.chunk_id)


def test_a_memory_used_after_the_report_is_checked_again(continuum: Continuum, still: StillClock) -> None:
    trace = trace_of(continuum)
    still.now += timedelta(days=61)
    plan = continuum.prune()
    for _ in range(5):
        continuum.traces.use(trace.key, True)
    continuum.pruner._carry_out(plan.steps[-1] if plan.steps[-1].action == "downgrade" else plan.steps[0])
    assert continuum.traces.find(trace.key).meta.tier == "mid"


def test_undoing_a_downgrade_that_was_used_since_is_refused(continuum: Continuum, still: StillClock) -> None:
    trace_of(continuum)
    still.now += timedelta(days=61)
    continuum.prune(dry_run=False)
    (log,) = continuum.files.entries()
    continuum.traces.use(log.key, True)
    with pytest.raises(ConflictError, match=r"changed since"):
        continuum.undo(continuum.changes.transitions()[-1])


def test_a_learning_made_from_what_was_replaced_is_reviewed_and_no_skill(continuum: Continuum) -> None:
    store = continuum.store
    old = store.create_chunk("Run the script first.").id
    entry = learning(continuum)
    rewrite(continuum, entry, sources=[*entry.meta.sources, old])
    [skill] = continuum.skills()
    assert "Use for" not in skill.text and old in skill.evidence
    store.supersede(old, store.create_chunk("Run no script.").id)
    assert not continuum.skills()
    [step] = continuum.prune(dry_run=False).steps
    assert (step.key, step.action) == (entry.key, "flag_for_review") and old in step.reason
    assert [case.entry for case in continuum.review.cases()] == [entry.key]
    store.undo(old)
    assert [one.key for one in continuum.skills()] == [entry.key]


@pytest.mark.parametrize("name", ["../../up", "a/b", "..", "q" * 300, "NUL\\0"])
def test_a_memory_is_archived_whatever_its_id(continuum: Continuum, name: str) -> None:
    entry = learning(continuum)
    by_hand(continuum, entry.file, entry.changed({"id": f'"{name}"'}).replace("'", ""))
    continuum.sync()
    found = next(continuum.files.entries(kinds=("learning",)))
    assert continuum.pruner.archive(found.key)
    assert len([one for one in continuum.pruner.archived() if one.startswith("archive/system/")]) == 1
    continuum.pruner.restore(found.key)
    assert continuum.files.get(found.key) is not None


def test_a_damaged_record_does_not_keep_the_archive(continuum: Continuum, still: StillClock) -> None:
    record(continuum, indicators=[])
    log = record(continuum, "Bake bread")
    for entry in list(continuum.files.entries()):
        continuum.pruner.archive(entry.key)
    damaged = continuum.changes.transitions()[0]
    by_hand(continuum, f"archive/transitions/{damaged}.json", "{")
    still.now += timedelta(days=1)
    assert continuum.pruner.delete_archived(still.now) == [f"archive/{log.file}"]
