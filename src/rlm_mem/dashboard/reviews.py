"""Review queue: cases with what speaks for and against a memory, to approve, defer or reject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.dashboard.words import address
from rlm_mem.errors import InputError, InvalidMemory, NotFoundError

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.continuum.files import TieredMemory
    from rlm_mem.dashboard.visits import Visit

__all__ = ["REVIEWER", "decide", "review_page"]

REVIEWER = "rlm_mem_reviewer"
"""Cookie that keeps the reviewer's name, so that it need not be typed for every case."""
_STATES = ("open", "deferred", "approved", "rejected")


def review_page(visit: Visit, *, problem: str = "", at: str = "", status: int = 200) -> Response:
    """The open cases, or those of another state."""
    state = visit.request.query_params.get("state", "open")
    state = state if state in _STATES else "open"
    cases = visit.memory.continuum.review.cases(None)
    titles = {}
    for case in cases:
        entry = _entry_of(visit, case.entry)
        titles[case.id] = entry.chunk_id if entry else ""
    return visit.answer(
        "review.html",
        status=status,
        cases=[case for case in cases if case.status == state],
        counts={name: sum(case.status == name for case in cases) for name in _STATES},
        chunk_ids=titles,
        asked=state,
        reviewer=visit.text("reviewer", 100) or visit.request.cookies.get(REVIEWER, ""),
        given_reason=visit.text("reason", 2_000),
        problem=problem,
        at=at,
        here=address("/review", state="" if state == "open" else state),
        live="tiers",
    )


def decide(visit: Visit) -> Response:
    """Write a reviewer's decision."""
    queue = visit.memory.continuum.review
    case_id, what = visit.part("case"), visit.text("do", 20)
    reviewer, reason = visit.text("reviewer", 100), visit.text("reason", 2_000)
    try:
        if what == "approve":
            queue.approve(case_id, reviewer=reviewer, reason=reason)
        elif what == "reject":
            queue.reject(case_id, reviewer=reviewer, reason=reason)
        elif what == "defer":
            queue.defer(case_id, reviewer=reviewer, reason=reason, days=visit.number("days", 30, 1, 3650))
        else:
            raise InputError("say whether to approve, to defer or to reject")
    except InvalidMemory as error:
        return review_page(visit, problem=f"{error}. {error.hint or ''}", at=case_id, status=400)
    response = visit.go("/review", {"approve": "approved", "reject": "rejected", "defer": "deferred"}[what])
    name = "".join(sign for sign in reviewer.strip() if (sign.isalnum() and sign.isascii()) or sign in " .-_")
    response.set_cookie(REVIEWER, name[:60], max_age=31_536_000, httponly=True, samesite="strict")
    return response


def _entry_of(visit: Visit, key: str) -> TieredMemory | None:
    try:
        return visit.memory.continuum.files.get(key)
    except (InvalidMemory, NotFoundError):
        return None
