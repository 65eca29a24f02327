"""The review queue over HTTP: cases with their evidence, and the decisions of named reviewers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, structs

from rlm_mem.continuum.cases import Case, CaseFilter, DecisionWord, order_of
from rlm_mem.errors import InputError, NotFoundError
from rlm_mem.operations.consent import WHERE, persons
from rlm_mem.operations.fitting import Bounded, MayBeCut
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.shapes import fill
from rlm_mem.operations.traits import page_of
from rlm_mem.operations.types import CaseId, ChunkId, Cursor, Limit, Line, Request, about

if TYPE_CHECKING:
    from rlm_mem.continuum.changes import Change

_GROUP = "review"
Decision = Literal["approve", "defer", "reject"]
_STATUSES: dict[Decision, DecisionWord] = {"approve": "approved", "defer": "deferred", "reject": "rejected"}
#: Maximum number of cases that a tool lists.
_MAX_LISTED = 50
_WITHHELD = f"The text is in quarantine. A person can read it and decide: {WHERE}."


class ReviewArguments(Bounded, kw_only=True):
    """Which cases."""

    status: Annotated[CaseFilter, about("Which cases.")] = "open"


class CaseQuery(ReviewArguments):
    """Which cases, and which page of them."""

    limit: Limit = 50
    cursor: Cursor | None = None


class DecisionOut(Struct):
    """What a reviewer decided, and why, and which memories of a session that archived."""

    reviewer: str
    decision: str
    reason: str
    at: str
    archived: list[str]


class CaseOut(MayBeCut):
    """One question to a reviewer: should a memory become part of the core (promote), is it still valid (retain), should
    a captured memory be kept (capture), should a memory be released from quarantine (quarantine), does one memory
    replace (replace) or contradict (contradict) another, should one be archived, as an agent asks (forget)?
    """

    id: str
    kind: str
    entry: str
    title: str
    status: str
    opened_at: str
    question: str
    figures: dict[str, Any]
    chunk_ids: list[str]
    evidence: list[str]
    counter_evidence: list[str]
    history: list[str]
    decisions: list[DecisionOut]
    defer_until: str | None
    obsolete_because: str | None


class CasePage(MayBeCut):
    """Cases, the most important kind first; ``next_cursor`` is null on the last page."""

    items: list[CaseOut]
    next_cursor: str | None


class DecideRequest(Request):
    """Who decides, and why."""

    reviewer: Annotated[Line, about("Name of the person who decided; the agent that prepares cases cannot.")]
    reason: Annotated[
        Line,
        about(
            "Why, in the person's words; may be left out for captures, replacements, contradictions and "
            "requests to forget."
        ),
    ] = ""


Keep = Annotated[
    Annotated[list[ChunkId], Meta(min_length=1, max_length=1000)] | None,
    about("Of a session, the ids of the memories to keep; approving archives the others. None: all."),
]


class ApproveRequest(DecideRequest):
    """Who approves, why, and which memories of a session."""

    keep: Keep = None


class DeferRequest(DecideRequest):
    """Who defers, why, and for how long."""

    days: Annotated[int, about("Days until the case is open again.", ge=1, le=3650)] = 30


class DecideArguments(DeferRequest, kw_only=True):
    """The tool's arguments."""

    case_id: CaseId
    decision: Annotated[
        Decision, about("approve: make it part of the core, or confirm it; defer: decide later.")
    ]
    keep: Keep = None


class DecisionResponse(Struct):
    """The case after the decision, and the transition for undoing the decision if it moved a memory."""

    case: CaseOut
    transition: str


class CaseSummary(Struct):
    """A case for an agent that prepares the decision: without figures, history and earlier decisions."""

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
    """Cases, the most important kind first."""

    cases: list[CaseSummary]


class DecisionSummary(Struct):
    """The case after the decision, and the memory that it moved, if any."""

    id: str
    status: str
    entry: str
    tier: str | None
    transition: str


def _cases(context: Context, request: ReviewArguments) -> list[Case]:
    return context.memory.continuum.review.cases(None if request.status == "all" else request.status)


def _list(context: Context, request: CaseQuery) -> CasePage:
    cases = _cases(context, request)
    page, cursor = page_of("cases", cases, order_of, tuple[int, str, str], request)
    return fill(CasePage, items=page, next_cursor=cursor)


def _one(context: Context, _: Bounded) -> CaseOut:
    return fill(CaseOut, context.memory.continuum.review.case(context.path["case_id"]))


def _record_decision(
    context: Context, case_id: str, decision: Decision, request: DecideRequest
) -> tuple[Case, Change]:
    """Record a decision; return the case after it, and the transition."""
    review = context.memory.continuum.review
    case = review.case(case_id)
    who = {"reviewer": request.reviewer, "reason": request.reason}
    keep = getattr(request, "keep", None)
    if decision == "approve":
        change = review.approve(case.id, **who, keep=keep)
    elif keep is not None:
        raise InputError("keep belongs to an approval", hint="approve the case to keep some of its memories")
    elif decision == "defer":
        assert isinstance(request, DeferRequest)
        change = review.defer(case.id, **who, days=request.days)
    else:
        change = review.reject(case.id, **who)
    try:
        return review.case(case.id), change
    except NotFoundError:  # the case of a chunk that is not in quarantine any more is not kept
        return structs.replace(case, status=_STATUSES[decision]), change


def _decide_as(decision: Decision) -> Callable[[Context, DecideRequest], DecisionResponse]:
    def run(context: Context, request: DecideRequest) -> DecisionResponse:
        case, change = _record_decision(context, context.path["case_id"], decision, request)
        return fill(DecisionResponse, case=case, transition=change.id)

    return run


def _review(context: Context, request: ReviewArguments) -> CaseSummaries:
    """Return the cases for an agent, which is shown no text of a memory in quarantine, rejected ones included."""
    store = context.memory.store
    hidden = {one.id for archived in (False, True) for one in store.quarantined(archived=archived)}
    cases = _cases(context, request)[:_MAX_LISTED]
    for case in cases:
        if not hidden.isdisjoint(case.chunk_ids):
            case.title, case.evidence = f"{case.entry}, in quarantine", [_WITHHELD]
            case.counter_evidence = case.counter_evidence if case.kind == "quarantine" else []
    return fill(CaseSummaries, cases=cases)


def _decide(context: Context, request: DecideArguments) -> DecisionSummary:
    """Record what a person decided, but no release and no end of a person's memory, which text may ask for."""
    if request.decision == "approve" and request.case_id.startswith("quarantine-"):
        raise InputError("an agent cannot release a memory from quarantine", hint=f"a person does: {WHERE}")
    ending = ("replace-", "forget-") if request.decision == "approve" else ("quarantine-",)
    if request.decision != "defer" and request.case_id.startswith(ending):
        of_case = context.memory.continuum.review.case(request.case_id).chunk_ids
        if persons(context, of_case[-1:]):
            raise InputError(
                f"that {of_case[-1]}, which a person wrote or confirmed, goes is not decided by an agent",
                hint=f"a person does: {WHERE}",
            )
    case, change = _record_decision(context, request.case_id, request.decision, request)
    return DecisionSummary(case.id, case.status, case.entry, change.tier_to, change.id)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "GET", "/review", "listCases", "Cases that await a person's decision.", _GROUP, run=_list, paged=True,
        tool=Tool(
            name="review",
            title="Review queue",
            description="List cases that await a person's decision, with the evidence. Show them to the "
            "person; `review_decide` records the decision.",
            run=_review,
            aliases={"state": "status"},
            default=False,
        ),
    ),
    Operation("GET", "/review/{case_id}", "getCase", "One case with its evidence.", _GROUP, run=_one),
    Operation(
        "POST", "/review/{case_id}/approve", "approveCase",
        "Make a memory part of the core, confirm it, release it, or record that it replaces or contradicts the other.",
        _GROUP, permission="review", run=_decide_as("approve"), request=ApproveRequest, response=DecisionResponse,
        writes=True,
    ),
    Operation(
        "POST", "/review/{case_id}/reject", "rejectCase",
        "Leave a memory where it is, move it back to the mid tier, archive it, or keep both memories valid.", _GROUP,
        permission="review", run=_decide_as("reject"), request=DecideRequest, response=DecisionResponse, writes=True,
    ),
    Operation(
        "POST", "/review/{case_id}/defer", "deferCase", "Decide later.", _GROUP, permission="review",
        run=_decide_as("defer"), request=DeferRequest, response=DecisionResponse, writes=True,
    ),
    Operation(
        "", "", "decideCase", "Record a reviewer's decision.", _GROUP, permission="review", run=_decide, writes=True,
        tool=Tool(
            name="review_decide",
            title="Record a reviewer's decision",
            description="Approve, defer or reject a case of the review queue in the name of the person who decided. "
            "Ask them first, show them the evidence, and give their name and their reason: a decision "
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
