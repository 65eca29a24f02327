"""The queue before the core: a named reviewer decides, on a case with evidence for and against."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rlm_mem.continuum import Continuum
from rlm_mem.continuum.review import Case
from rlm_mem.errors import ConflictError, InvalidMemory, NotFoundError

from .conftest import StillClock, by_hand, learning, rewrite

CORE = {"usage_count": 100, "success_count": 99, "success_rate": 0.99, "confidence_score": 0.995}
FAILING = {"usage_count": 100, "success_count": 80, "success_rate": 0.8}


def queued(continuum: Continuum, figures: dict[str, Any] = CORE) -> Case:
    low = rewrite(continuum, learning(continuum), **figures)
    continuum.traces.use(low.key, False, project="beta", error="the page moved", step=1)
    rewrite(continuum, low, **figures)
    continuum.consolidate()
    continuum.prune(dry_run=False)
    (case,) = continuum.review.cases()
    return case


def test_a_case_holds_evidence_counter_evidence_and_history(continuum: Continuum) -> None:
    low = rewrite(continuum, learning(continuum), **CORE)
    against = continuum.store.create_chunk("Fetching is forbidden by the site.", "fact")
    continuum.store.add_link(against.id, low.chunk_id, "contradicts", 0.9, "the terms of the site")
    rewrite(continuum, low, failures=[{"at": "2025-11-20", "error": "the page moved"}])
    continuum.consolidate()
    (case,) = continuum.review.cases()
    assert "alpha: 15 of 15 uses went well" in case.evidence
    assert any("execution_trace" in line for line in case.evidence)
    assert "beta: 1 of 10 uses failed" in case.counter_evidence
    assert any("the page moved" in line for line in case.counter_evidence)
    assert any("the terms of the site" in line for line in case.counter_evidence)
    assert len(case.history) == 2
    assert case.figures["usage_count"] == 100


DECISIONS = ("approve", "defer", "reject")


def test_a_decision_needs_the_name_of_a_reviewer_and_a_reason(continuum: Continuum) -> None:
    case = queued(continuum)
    for decide in DECISIONS:
        for reviewer in ("", "  ", "ContinuumMemoryAgent", "MemoryConsolidationAgent", "auto"):
            with pytest.raises(InvalidMemory, match=r"named reviewer"):
                getattr(continuum.review, decide)(case.id, reviewer=reviewer, reason="because")
        with pytest.raises(InvalidMemory, match=r"reason"):
            getattr(continuum.review, decide)(case.id, reviewer="Ana", reason=" ")
        assert continuum.review.case(case.id).status == "open", decide


def test_a_rejected_case_leaves_the_memory_and_comes_back_with_new_uses_only(continuum: Continuum) -> None:
    case = queued(continuum)
    continuum.review.reject(case.id, reviewer="Ana", reason="Too special.")
    assert continuum.traces.find(case.entry).meta.tier == "low"
    continuum.consolidate()
    assert continuum.review.cases() == []
    for _ in range(20):
        continuum.traces.use(case.entry, True, project="gamma")
    continuum.consolidate()
    (again,) = continuum.review.cases()
    assert [one.reason for one in again.decisions] == ["Too special."]
    assert again.decisions[0].reviewer == "Ana"


def test_a_deferred_case_is_open_again_on_its_day(continuum: Continuum, still: StillClock) -> None:
    case = queued(continuum)
    continuum.review.defer(case.id, reviewer="Ana", reason="After the audit.", days=10)
    continuum.consolidate()
    assert continuum.review.cases() == []
    still.now += timedelta(days=10)
    assert [one.id for one in continuum.review.cases()] == [case.id]
    continuum.review.approve(case.id, reviewer="Ben", reason="Audit passed.")
    assert [one.decision for one in continuum.review.case(case.id).decisions] == ["deferred", "approved"]


def test_approval_is_refused_when_the_figures_fell_meanwhile(continuum: Continuum) -> None:
    case = queued(continuum)
    for _ in range(3):
        continuum.traces.use(case.entry, False, error="gone")
    with pytest.raises(InvalidMemory, match=r"no longer meets the rule"):
        continuum.review.approve(case.id, reviewer="Ana", reason="I like it.")
    assert continuum.traces.find(case.entry).meta.tier == "low"


def test_a_case_is_decided_once(continuum: Continuum) -> None:
    case = queued(continuum)
    continuum.review.reject(case.id, reviewer="Ana", reason="No.")
    with pytest.raises(ConflictError, match=r"already rejected"):
        continuum.review.approve(case.id, reviewer="Ana", reason="Yes.")
    with pytest.raises(NotFoundError):
        continuum.review.approve("promote-none", reviewer="Ana", reason="Yes.")


def test_a_flagged_learning_is_kept_on_approval(continuum: Continuum) -> None:
    case = queued(continuum, FAILING)
    assert case.kind == "retain"
    continuum.review.approve(case.id, reviewer="Ana", reason="The site was down that week.")
    assert continuum.traces.find(case.entry).meta.tier == "low"
    assert continuum.prune(dry_run=False).steps == []


def test_a_flagged_learning_goes_back_to_mid_on_rejection(continuum: Continuum) -> None:
    case = queued(continuum, FAILING)
    body = continuum.traces.find(case.entry).body
    continuum.review.reject(case.id, reviewer="Ana", reason="The site is gone.")
    (entry,) = continuum.files.entries()
    assert entry.file == "memory/long_term/pattern_fetch_and_summarise_a_page.md"
    assert entry.meta.frequency_history == ["high", "mid", "low", "mid"]
    assert "rejected by Ana: The site is gone." in (entry.meta.consolidation_log or "")
    assert entry.body.strip() == body.strip()


def test_an_approval_can_be_undone(continuum: Continuum) -> None:
    case = queued(continuum)
    before = continuum.traces.find(case.entry).text
    continuum.review.approve(case.id, reviewer="Ana", reason="Yes.")
    continuum.undo(continuum.changes.transitions()[-1])
    assert continuum.traces.find(case.entry).text == before
    assert continuum.review.case(case.id).status == "open"


def test_a_case_that_cannot_be_read_hides_no_other_one(continuum: Continuum) -> None:
    case = queued(continuum)
    stored = continuum.store.files
    data = stored.read(f"system/review/{case.id}.json")
    assert data is not None
    later = data.replace(f'"{case.kind}"'.encode(), b'"a kind of a later version"', 1)
    broken = {"promote-0.json": data[:40], "replace-0.json": later, "retain-0.json": b"\xff" + b"[" * 9000}
    with stored.transaction():
        for name, text in broken.items():
            stored.write(f"system/review/{name}", text)
    assert continuum.review.cases() == [case]
    found = [one for one in continuum.findings() if one.code == "unreadable-case"]
    assert [(one.file or "").rpartition("/")[2] for one in found] == list(broken)
    assert all((one.file or "") in one.message and "later" not in one.remedy for one in found)
    continuum.review.approve(case.id, reviewer="mara", reason="it is proven")
    assert continuum.review.cases() == []


@pytest.mark.parametrize("figures", [CORE, FAILING], ids=["promote", "retain"])
def test_a_case_is_obsolete_while_its_memory_is_not_there(
    continuum: Continuum, figures: dict[str, Any]
) -> None:
    case = queued(continuum, figures)
    file = case.entry.partition("#")[0]
    text = continuum.files.stored.read(file)
    by_hand(continuum, file, None)
    assert continuum.review.cases() == []
    assert [one.id for one in continuum.review.cases("obsolete")] == [case.id]
    for decide in (continuum.review.approve, continuum.review.reject, continuum.review.defer):
        with pytest.raises(ConflictError, match=r"cannot be decided: .* no longer exists"):
            decide(case.id, reviewer="Ana", reason="Yes.")
    by_hand(continuum, file, text)
    assert continuum.review.cases() == [case]
    entry = continuum.files.get(case.entry)
    assert entry is not None
    continuum.store.quarantine(entry.chunk_id, "it was planted")
    with pytest.raises(ConflictError, match=r"cannot be decided: .* is in quarantine"):
        continuum.review.approve(case.id, reviewer="Ana", reason="Yes.")
    assert [one.kind for one in continuum.review.cases()] == ["quarantine"]
    continuum.store.release(entry.chunk_id)
    assert continuum.review.cases() == [case]
    continuum.review.approve(case.id, reviewer="Ana", reason="Yes.")
