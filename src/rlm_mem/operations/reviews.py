"""The review queue over HTTP: cases with their evidence, and the decisions of named reviewers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, convert, structs

from rlm_mem.operations.fitting import Bounded, MayBeCut
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.traits import page_of
from rlm_mem.operations.types import CaseId, Cursor, Limit, Line, Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlm_mem.continuum.changes import Change
    from rlm_mem.continuum.review import Case

_GROUP = "review"
Decision = Literal["approve", "defer", "reject"]
_STATUSES: dict[Decision, Literal["approved", "deferred", "rejected"]] = {
    "approve": "approved", "defer": "deferred", "reject": "rejected",
}  # fmt: skip
#: Most cases that a tool lists.
_LISTED = 50


class ReviewArguments(Bounded, kw_only=True):
    """Which cases."""

    status: Annotated[
        Literal["open", "deferred", "approved", "rejected", "obsolete", "all"],
        Meta(description="Which cases."),
    ] = "open"


class CaseQuery(ReviewArguments):
    """Which page of which cases."""

    limit: Limit = 50
    cursor: Cursor | None = None


class DecisionOut(Struct):
    """What a reviewer decided, and why."""

    reviewer: str
    decision: str
    reason: str
    at: str


class CaseOut(MayBeCut):
    """One question to a reviewer: shall a memory become part of the core (promote), does it still hold (retain), shall
    what a session left be kept (capture), shall a memory be released from quarantine (quarantine), does one memory
    replace (replace) or contradict (contradict) another?
    """

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
    obsolete_because: str | None


class CasePage(MayBeCut):
    """Cases, the oldest first; ``next_cursor`` is null on the last page."""

    items: list[CaseOut]
    next_cursor: str | None


class DecideRequest(Request):
    """Who decides, and why."""

    reviewer: Annotated[
        Line, Meta(description="Name of the person who decided; the agent that prepares cases cannot.")
    ]
    reason: Annotated[Line, Meta(description="Why, in the person's words.")]


class DeferRequest(DecideRequest):
    """Who defers, why, and for how long."""

    days: Annotated[int, Meta(ge=1, le=3650, description="Days until it is asked again.")] = 30


class DecideArguments(DeferRequest, kw_only=True):
    """The tool's arguments."""

    case_id: CaseId
    decision: Annotated[
        Decision,
        Meta(description="approve: make it part of the core, or confirm that it holds; defer: retry later."),
    ]


class DecisionResponse(Struct):
    """The case as it is now, and the transition by which the decision can be undone where it moved a memory."""

    case: CaseOut
    transition: str


class CaseSummary(Struct):
    """A case for an agent, which prepares the decision: without figures, history and earlier decisions."""

    id: str
    kind: str
    entry: str
    title: str
    status: str
    opened_at: str
    question: str
    evidence: list[str]
    counter_evidence: list[str]


class CaseSummaries(MayBeCut):
    """Cases, the oldest first."""

    cases: list[CaseSummary]


class DecisionSummary(Struct):
    """The case after the decision, and the memory that it moved, if it moved one."""

    id: str
    status: str
    entry: str
    tier: str | None
    transition: str


def _out(case: Case) -> CaseOut:
    return convert(case, CaseOut, from_attributes=True)


def _list(context: Context, request: CaseQuery) -> CasePage:
    cases = context.memory.continuum.review.cases(None if request.status == "all" else request.status)
    here, cursor = page_of(
        "cases", cases, lambda case: (case.opened_at, case.id), tuple[str, str], request.cursor, request.limit
    )
    return CasePage([_out(case) for case in here], cursor)


def _one(context: Context, _: object) -> CaseOut:
    return _out(context.memory.continuum.review.case(context.path["case_id"]))


def _decided(
    context: Context, case_id: str, decision: Decision, request: DecideRequest
) -> tuple[Case, Change]:
    """Record a decision; returns the case after it, and the transition."""
    review = context.memory.continuum.review
    case = review.case(case_id)
    who = {"reviewer": request.reviewer, "reason": request.reason}
    if decision == "defer":
        assert isinstance(request, DeferRequest)
        change = review.defer(case.id, **who, days=request.days)
    else:
        change = (review.approve if decision == "approve" else review.reject)(case.id, **who)
    # The case of a chunk that has left quarantine is not kept.
    kept = (one for one in review.cases(None) if one.id == case.id)
    return next(kept, structs.replace(case, status=_STATUSES[decision])), change


def _deciding(decision: Decision) -> Callable[[Context, DecideRequest], DecisionResponse]:
    def run(context: Context, request: DecideRequest) -> DecisionResponse:
        case, change = _decided(context, context.path["case_id"], decision, request)
        return DecisionResponse(_out(case), change.id)

    return run


def _review(context: Context, request: ReviewArguments) -> CaseSummaries:
    cases = context.memory.continuum.review.cases(None if request.status == "all" else request.status)
    return CaseSummaries([convert(case, CaseSummary, from_attributes=True) for case in cases[:_LISTED]])


def _decide(context: Context, request: DecideArguments) -> DecisionSummary:
    case, change = _decided(context, request.case_id, request.decision, request)
    return DecisionSummary(case.id, case.status, case.entry, change.tier_to, change.id)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET", "/review", "listCases", "Memories that wait for a person's decision.", _GROUP,
        run=_list, request=CaseQuery, response=CasePage, paged=True,
        tool=Tool(
            name="review",
            title="Look at the review queue",
            description="List memories that wait for a person's decision, with the evidence. Show them to the "
            "person; `review_decide` records the decision.",
            request=ReviewArguments,
            response=CaseSummaries,
            run=_review,
            aliases={"state": "status"},
            default=False,
        ),
    ),
    Operation(
        "GET", "/review/{case_id}", "getCase", "One case with its evidence.", _GROUP,
        run=_one, request=Bounded, response=CaseOut,
    ),
    Operation(
        "POST", "/review/{case_id}/approve", "approveCase",
        "Make a memory part of the core, confirm that it holds, release it, or let it replace or contradict the other.",
        _GROUP,
        permission="review", run=_deciding("approve"), request=DecideRequest, response=DecisionResponse, writes=True,
    ),
    Operation(
        "POST", "/review/{case_id}/reject", "rejectCase",
        "Leave a memory where it is, move it back to the mid tier, archive it, or let both memories hold.", _GROUP,
        permission="review", run=_deciding("reject"), request=DecideRequest, response=DecisionResponse, writes=True,
    ),
    Operation(
        "POST", "/review/{case_id}/defer", "deferCase", "Decide later.", _GROUP,
        permission="review", run=_deciding("defer"), request=DeferRequest, response=DecisionResponse, writes=True,
    ),
    Operation(
        "", "", "decideCase", "Record what a reviewer decided.", _GROUP,
        permission="review", run=_decide, request=DecideArguments, response=DecisionSummary, writes=True,
        tool=Tool(
            name="review_decide",
            title="Write down a reviewer's decision",
            description="Approve, defer or reject a case of the review queue in the name of the person who decided. "
            "Ask them first, show them the evidence, and give their name and reason: a decision "
            "of your own is refused.",
            destructive=True,
            idempotent=False,
            aliases={
                **dict.fromkeys(("id", "case"), "case_id"),
                **dict.fromkeys(("action", "verdict"), "decision"),
                **dict.fromkeys(("name", "by", "person"), "reviewer"),
                "why": "reason",
            },
            default=False,
        ),
    ),
)  # fmt: skip
