"""The queue before the core: a named reviewer decides, on a case with evidence for and against."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.continuum import Continuum, places, review
from rlm_mem.continuum.cases import Case, case_file, decode
from rlm_mem.errors import ConflictError, InputError, InvalidMemory, NotFoundError
from rlm_mem.proposals import Proposal

from .conftest import StillClock, added, by_hand, learning, open_continuum, rewrite

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


@pytest.mark.parametrize("decision", ["approve", "reject", "defer"])
@pytest.mark.parametrize("kind", ["replace", "contradict", "quarantine"])
def test_a_decision_about_memories_is_undone_with_what_it_did_and_the_journal_says_so(
    continuum: Continuum, kind: str, decision: str
) -> None:
    store = continuum.store
    old, new = (store.create_chunk(f"The gate is {colour}.", "fact") for colour in ("blue", "red"))
    if kind == "quarantine":
        store.quarantine(new.id, "it was planted")
    else:
        one = Proposal(kind, new.id, old.id, new.content, old.content, 0.6, "so", applied=False)
        continuum.review.add_proposed([one])

    def state() -> Any:
        found = store.backend.chunks(store.namespace, [old.id, new.id], status=None)
        about = [(one.links, one.metadata.trust, one.metadata.superseded_by) for one in found.values()]
        return about, store.list_chunks(), continuum.review.cases()

    before = state()
    (case,) = continuum.review.cases()
    decided = getattr(continuum.review, decision)(case.id, reviewer="Ana", reason="Yes.")
    after = state()
    undone = continuum.undo_change(decided.id)
    assert undone is not None and state() == before
    redone = continuum.undo_change(undone.undo)
    assert redone is not None and state() == after
    steps = [(one["op"], one.get("details", {}).get("undoes")) for one in continuum.changes.journal()]
    assert steps == [(decided.op, None), ("undo", decided.id), ("undo", undone.undo)]


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


def captured(continuum: Continuum, number: int = 4, session: str = "s-1") -> Case:
    made = [
        continuum.store.create_chunk(f"Gateway {n} needs firmware {n}.", conversation_id=session)
        for n in range(number)
    ]
    with continuum.files.stored.transaction():
        return continuum.review.add_captured(session, "claude-code", made)


def test_keeping_some_memories_of_a_session_is_one_change_with_one_undo(continuum: Continuum) -> None:
    case = captured(continuum)
    first, second, third, gone = case.chunk_ids
    continuum.store.delete_chunk(gone)
    before = len(list(continuum.recorded_changes()))
    made = continuum.review.approve(case.id, reviewer="Ana", keep=[third, first])  # a capture needs no reason

    def state() -> dict[str, Any]:
        there = continuum.store.get_many(case.chunk_ids)
        return {one: chunk.metadata.extra.get("reviewed_by") for one, chunk in there.items()}

    assert state() == {first: "Ana", third: "Ana"}
    (decision,) = continuum.review.case(case.id).decisions
    assert (decision.decision, decision.archived) == ("approved", [second])
    changes = list(continuum.recorded_changes())
    assert len(changes) == before + 1 and changes[0].id == made.id
    assert set(changes[0].chunk_ids) == {first, second, third}
    assert [step["op"] for step in continuum.changes.journal()] == ["approved"]
    assert continuum.undo_change() is not None
    assert state() == dict.fromkeys((first, second, third))
    (again,) = continuum.review.cases()
    assert (again.id, again.decisions) == (case.id, [])


def test_what_is_kept_is_named_by_ids_of_the_case_alone(continuum: Continuum) -> None:
    case, other = captured(continuum), continuum.store.create_chunk("Rule of somebody else.").id
    low, approve = rewrite(continuum, learning(continuum), **CORE), continuum.review.approve
    continuum.consolidate()
    core = next(one.id for one in continuum.review.cases() if one.entry == low.key)
    continuum.store.quarantine(case.chunk_ids[0], "it was planted")
    wrong: list[tuple[str, Any, type[Exception], str]] = [
        (case.id, [], InputError, "names no memory"),
        (case.id, case.chunk_ids[1], InputError, "keep"),
        (case.id, [case.chunk_ids[1], other], InputError, "is not a memory of"),
        (case.id, [7], InputError, "keep must be text"),
        (case.id, case.chunk_ids[:1], ConflictError, "in quarantine"),
        (core, [other], InputError, "another kind of case"),
    ]
    for case_id, keep, error, said in wrong:
        with pytest.raises(error, match=said):
            approve(case_id, reviewer="Ana", reason="read", keep=keep)
    assert continuum.review.case(case.id).decisions == []
    assert all(continuum.store.exists(one) for one in case.chunk_ids[1:])


def test_a_decision_leaves_what_only_has_the_id_of_a_memory_of_the_case(continuum: Continuum) -> None:
    """As after an import of the case by a version that left the ids in it as they were."""
    case = captured(continuum)
    first, second, *others = case.chunk_ids
    for one in (first, *others):
        continuum.store.drop_chunk(one)
    continuum.store.create_chunk("The ferry leaves at nine.", chunk_id=first, conversation_id="s-2")
    continuum.review.reject(case.id, reviewer="Ana", reason="planted")
    assert [continuum.store.exists(one) for one in (first, second)] == [True, False]
    continuum.undo_change()
    continuum.store.delete_chunk(second)
    assert continuum.review.case(case.id).status == "obsolete"


def test_a_case_about_another_memory_of_the_same_place_is_obsolete(continuum: Continuum) -> None:
    case = queued(continuum, FAILING)
    (stored,) = (continuum.files.get(case.entry),)
    assert stored is not None
    text = continuum.files.read(stored.file) or ""
    by_hand(continuum, stored.file, text.replace(stored.title, "Mend the quay"))
    assert "is not" in str(continuum.review.case(case.id).obsolete_because)
    with pytest.raises(ConflictError, match="cannot be decided"):
        continuum.review.reject(case.id, reviewer="Ana", reason="It fails.")
    continuum.prune(dry_run=False)
    assert [one.title for one in continuum.review.cases()] == ["Mend the quay"]


def test_a_decision_on_a_session_that_fails_half_way_leaves_nothing_of_it(
    continuum: Continuum, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = captured(continuum)
    delete, deleted = type(continuum.store).delete_chunk, []

    def failing(store: Any, chunk_id: str) -> bool:
        deleted.append(chunk_id)
        if len(deleted) == 2:
            raise OSError("the disk is full")
        return delete(store, chunk_id)

    monkeypatch.setattr(type(continuum.store), "delete_chunk", failing)
    with pytest.raises(OSError, match="disk is full"):
        continuum.review.approve(case.id, reviewer="Ana", reason="read", keep=case.chunk_ids[:2])
    monkeypatch.undo()
    there = continuum.store.get_many(case.chunk_ids)
    assert list(there) == case.chunk_ids
    assert not any("reviewed_by" in chunk.metadata.extra for chunk in there.values())
    assert continuum.review.cases() == [case]


def test_decided_cases_are_read_once_and_what_another_process_does_to_them_is_seen(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = StillClock(datetime(2026, 2, 1, 9, tzinfo=UTC))
    continuum, other = open_continuum(place, now), open_continuum(place, now)
    first, second = captured(continuum), captured(continuum, session="s-2")
    for case in (first, second):
        other.review.approve(case.id, reviewer="Ana", reason="read")
    assert continuum.review.cases() == []
    decoded: list[str] = []

    def decoding(data: bytes, name: str) -> Case:
        decoded.append(name)
        return decode(data, name)

    monkeypatch.setattr(review, "decode", decoding)
    assert continuum.review.cases() == [] and decoded == []
    other.undo_change()
    assert [one.id for one in continuum.review.cases()] == [second.id]
    assert decoded == [case_file(second.id)]
    decoded.clear()
    open_cases, counts = continuum.review.counted("open")
    assert ([one.id for one in open_cases], counts) == ([second.id], {"approved": 1, "open": 1})
    assert decoded == [case_file(second.id)]
    assert continuum.review.counted("rejected") == ([], counts)
    assert {one.id for one in continuum.review.cases(None)} == {first.id, second.id}
    for one in (continuum, other):
        one.store.close()


def test_cases_come_by_importance_and_then_by_age(continuum: Continuum) -> None:
    captured(continuum)
    captured(continuum, session="s-2")
    low = rewrite(continuum, learning(continuum), **CORE)
    continuum.consolidate()
    made = [continuum.store.create_chunk(f"The code of gate {n} is {n}.") for n in range(3)]
    continuum.store.quarantine(made[0].id, "it was planted")
    continuum.review.add_proposed(
        [
            Proposal(kind, made[2].id, made[1].id, made[2].content, made[1].content, 0.6, "so", applied=False)
            for kind in ("replace", "contradict")
        ]
    )
    found = continuum.review.cases()
    assert [one.kind for one in found] == [
        "contradict", "replace", "quarantine", "capture", "capture", "promote",
    ]  # fmt: skip
    assert found[-1].entry == low.key
    assert [one.opened_at for one in found[3:5]] == sorted(one.opened_at for one in found[3:5])


def test_a_rejected_mirror_stays_rejected_with_its_memory(continuum: Continuum) -> None:
    entry = added(continuum, places.MEMORY_LOG, "Deploy by night", "As told.")
    continuum.sync()
    continuum.store.quarantine(entry.chunk_id, "it was planted")
    case = continuum.review.cases()[0]
    continuum.review.reject(case.id, reviewer="Ana", reason="It is not so.")
    continuum.sync()
    assert continuum.files.get(entry.key) is None
    assert continuum.review.cases() == []
    assert continuum.restore_chunk(entry.chunk_id) is not None
    assert continuum.files.get(entry.key) is not None
    assert [one.kind for one in continuum.review.cases()] == ["quarantine"]
    assert continuum.delete_chunk(entry.chunk_id)
    continuum.sync()
    assert continuum.files.get(entry.key) is None
    assert continuum.review.cases() == []
