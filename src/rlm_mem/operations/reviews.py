"""The review queue over HTTP: cases with their evidence, and the decisions of named reviewers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from rlm_mem.operations.operation import Ask, Endpoint
from rlm_mem.operations.paging import page_of
from rlm_mem.operations.types import Cursor, Limit, Line, Query, Request

if TYPE_CHECKING:
    from rlm_mem.continuum.review import Case

__all__ = ["ENDPOINTS"]

_GROUP = "review"


class CaseQuery(Query):
    """Which cases."""

    status: Literal["open", "deferred", "approved", "rejected", "all"] = "open"
    limit: Limit = 50
    cursor: Cursor | None = None


class DecisionOut(Struct):
    """What a reviewer decided, and why."""

    reviewer: str
    decision: str
    reason: str
    at: str


class CaseOut(Struct):
    """One question to a reviewer: shall a memory become part of the core (promote), does it still hold (retain)?"""

    id: str
    kind: str
    entry: str
    title: str
    status: str
    opened_at: str
    question: str
    figures: dict[str, Any]
    evidence: list[str]
    counter_evidence: list[str]
    history: list[str]
    decisions: list[DecisionOut]
    defer_until: str | None


class CasePage(Struct):
    """Cases, the oldest first; ``next_cursor`` is null on the last page."""

    items: list[CaseOut]
    next_cursor: str | None


class DecideRequest(Request):
    """Who decides, and why."""

    reviewer: Annotated[
        Line, Meta(description="A person's name; the agent that prepares cases cannot decide.")
    ]
    reason: Line


class DeferRequest(Request):
    """Who defers, why, and for how long."""

    reviewer: Annotated[
        Line, Meta(description="A person's name; the agent that prepares cases cannot decide.")
    ]
    reason: Line
    days: Annotated[int, Meta(ge=1, le=3650)] = 30


class Decided(Struct):
    """The case as it is now, and the transition by which the decision can be undone where it moved a memory."""

    case: CaseOut
    transition: str


def _out(case: Case) -> CaseOut:
    return CaseOut(
        id=case.id,
        kind=case.kind,
        entry=case.entry,
        title=case.title,
        status=case.status,
        opened_at=case.opened_at,
        question=case.question,
        figures=case.figures,
        evidence=case.evidence,
        counter_evidence=case.counter_evidence,
        history=case.history,
        decisions=[DecisionOut(one.reviewer, one.decision, one.reason, one.at) for one in case.decisions],
        defer_until=case.defer_until,
    )


def _list(ask: Ask) -> CasePage:
    query: CaseQuery = ask.query
    cases = ask.memory.continuum.review.cases(None if query.status == "all" else query.status)
    here, cursor = page_of(
        "cases", cases, lambda case: (case.opened_at, case.id), tuple[str, str], query.cursor, query.limit
    )
    return CasePage([_out(case) for case in here], cursor)


def _one(ask: Ask) -> CaseOut:
    return _out(ask.memory.continuum.review.case(ask.path["case_id"]))


def _approve(ask: Ask) -> Decided:
    review, given = ask.memory.continuum.review, ask.body
    change = review.approve(ask.path["case_id"], reviewer=given.reviewer, reason=given.reason)
    return Decided(_one(ask), change.id)


def _reject(ask: Ask) -> Decided:
    review, given = ask.memory.continuum.review, ask.body
    change = review.reject(ask.path["case_id"], reviewer=given.reviewer, reason=given.reason)
    return Decided(_one(ask), change.id)


def _defer(ask: Ask) -> Decided:
    review, given = ask.memory.continuum.review, ask.body
    change = review.defer(ask.path["case_id"], reviewer=given.reviewer, reason=given.reason, days=given.days)
    return Decided(_one(ask), change.id)


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "GET", "/review", "listCases", "Memories that wait for a person's decision.", _GROUP,
        run=_list, query=CaseQuery, gives=CasePage, paged=True,
    ),
    Endpoint(
        "GET", "/review/{case_id}", "getCase", "One case with its evidence.", _GROUP, run=_one, gives=CaseOut
    ),
    Endpoint(
        "POST", "/review/{case_id}/approve", "approveCase",
        "Make a memory part of the core, or confirm that it holds.", _GROUP,
        run=_approve, takes=DecideRequest, gives=Decided, writes=True,
    ),
    Endpoint(
        "POST", "/review/{case_id}/reject", "rejectCase",
        "Leave a memory where it is, or move it back to the mid tier.", _GROUP,
        run=_reject, takes=DecideRequest, gives=Decided, writes=True,
    ),
    Endpoint(
        "POST", "/review/{case_id}/defer", "deferCase", "Decide later.", _GROUP,
        run=_defer, takes=DeferRequest, gives=Decided, writes=True,
    ),
)  # fmt: skip
