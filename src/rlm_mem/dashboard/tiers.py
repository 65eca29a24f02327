"""Pages of the tiers and their review: populations over time, transitions, planned steps, and cases."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from datetime import UTC, date, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, get_args
from urllib.parse import quote, unquote

from starlette.responses import HTMLResponse

from rlm_mem.continuum.cases import ABOUT, CaseStatus
from rlm_mem.continuum.review import UNEXPLAINED
from rlm_mem.continuum.schema import TIERS
from rlm_mem.dashboard.charts import Flow, flow_chart
from rlm_mem.dashboard.rendering import HEADERS
from rlm_mem.dashboard.words import address, day
from rlm_mem.errors import ConflictError, InputError, InvalidMemory, NotFoundError
from rlm_mem.operations.problems import Refused, problem_of

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.continuum.files import TieredMemory
    from rlm_mem.dashboard.requests import PageRequest
    from rlm_mem.memory import Memory

_STEPS = 25
_MAX_STEPS = 500
_POINTS = 48
_SHOWN = 60
_CASES = 30  # cases of one page
_MOVE_WORDS = {
    "record": "recorded",
    "promote": "promoted",
    "merge": "merged",
    "demote": "demoted",
    "archive": "archived",
    "undo": "undone",
    "restore": "restored",
    "delete": "deleted",
}
"""Journal operations that move a memory, with their labels."""


def tiers_page(request: PageRequest) -> Response:
    """The page of populations, memories and transitions."""
    memory = request.memory
    continuum = memory.continuum
    health = continuum.health()
    steps = deque(
        (step for step in continuum.changes.journal() if step.get("op") not in ("use", "retire")),
        maxlen=5_000,
    )
    undoable = set(continuum.changes.transitions())
    today = memory.store.clock().astimezone(UTC).date()
    points = populations(health["tiers"], steps, today)
    moved = flows(steps, today, len(points))
    limit = request.number("steps", _STEPS, 1, _MAX_STEPS)
    entries = _entries(memory)
    return request.answer(
        "tiers.html",
        tiers=[
            (
                tier,
                health["tiers"][tier.name],
                [one for one in entries if one.meta.tier == tier.name][:_SHOWN],
            )
            for tier in TIERS.values()
        ],
        health=health,
        chart=flow_chart(points, moved, title="Memories in each tier over time, and their moves"),
        moves=Counter(_MOVE_WORDS[step["op"]] for step in steps if step.get("op") in _MOVE_WORDS),
        days=_by_day(list(steps)[: -limit - 1 : -1]),
        words=_MOVE_WORDS,
        titles={one.key: one for one in entries},
        more=address("/tiers", steps=min(_MAX_STEPS, limit * 4)) if len(steps) > limit < _MAX_STEPS else "",
        here=address("/tiers", steps="" if limit == _STEPS else limit),
        undoable=undoable,
        empty=not steps and not entries,
        live="tiers memories",
    )


def plan_page(request: PageRequest) -> Response:
    """The page of a dry run of consolidation and pruning."""
    continuum = request.memory.continuum
    return request.page(
        "plan.html",
        consolidation=continuum.consolidate(dry_run=True),
        pruning=continuum.prune(dry_run=True),
        titles={one.key: one for one in _entries(request.memory)},
    )


def undo(request: PageRequest) -> Response:
    """Restore the files of one transition."""
    reason = request.text("reason", 500).strip() or "undone in the dashboard"
    request.carry_out("undoTransition", {"transition_id": request.text("transition", 200)}, reason=reason)
    return request.go("/tiers", "undone")


def populations(
    present: Mapping[str, int], steps: Iterable[Mapping[str, Any]], today: date
) -> list[tuple[str, dict[str, int]]]:
    """Number of memories in each tier from the first step of the journal to today.

    Counted backwards from the present, so that the last point agrees with the files. Populations are never negative,
    even if memories were edited or deleted by hand since.

    Returns:
        Label and populations of at most 48 periods of equal length, oldest first.
    """
    by_day: dict[date, Counter[str]] = {}
    for when, step in _dated_moves(steps, today):
        by_day.setdefault(when, Counter()).update(_population_change(step))
    first = min(by_day, default=today)
    period_days = _period_days(first, today)
    counts = dict(present)
    points = []
    end = today
    while end >= first - timedelta(period_days - 1):
        points.append((end.isoformat()[: 10 if period_days < 28 else 7], dict(counts)))
        for back in range(period_days):
            for tier, change in by_day.get(end - timedelta(back), Counter()).items():
                counts[tier] = max(0, counts.get(tier, 0) - change)
        end -= timedelta(period_days)
    return points[::-1]


def _period_days(first: date, today: date) -> int:
    return max(1, -(-((today - first).days + 1) // _POINTS))


def flows(steps: Iterable[Mapping[str, Any]], today: date, periods: int) -> list[Flow]:
    """Moves between tiers in the periods of :func:`populations`; both need the same steps."""
    dated = _dated_moves(steps, today)
    period_days = _period_days(min((when for when, _ in dated), default=today), today)
    found: Counter[tuple[int, str | None, str | None]] = Counter()
    for when, step in dated:
        source, target = (str(name) if (name := step.get(end)) in TIERS else None for end in ("from", "to"))
        if source == target or step.get("op") == "merge":
            continue
        at = periods - 1 - (today - when).days // period_days
        if 0 <= at < periods:
            found[at, source, target] += max(1, len((step.get("details") or {}).get("sources") or ()))
    return [Flow(*key, number) for key, number in found.items()]


def _dated_moves(steps: Iterable[Mapping[str, Any]], today: date) -> list[tuple[date, Mapping[str, Any]]]:
    """Journal steps that move a memory, each with its day."""
    return [
        (date.fromisoformat(day(step.get("ts")) or today.isoformat()), step)
        for step in steps
        if step.get("op") in _MOVE_WORDS
    ]


def _by_day(steps: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    return [(name, list(of_day)) for name, of_day in groupby(steps, key=lambda step: day(step.get("ts")))]


def _population_change(step: Mapping[str, Any]) -> dict[str, int]:
    """Change of the tier populations by one step; a promotion removes all of its sources from their tier."""
    change: Counter[str] = Counter()
    sources = len((step.get("details") or {}).get("sources") or ())
    if step.get("from") in TIERS:
        change[str(step["from"])] -= max(1, sources)
    if step.get("to") in TIERS and step.get("op") != "merge":
        change[str(step["to"])] += 1
    return dict(change)


def _entries(memory: Memory) -> list[TieredMemory]:
    """The tiered memories that are not part of another one, most reliable first."""
    found = (entry for entry in memory.continuum.files.entries([]) if not entry.meta.component_of)
    return sorted(found, key=lambda one: (-one.meta.confidence_score, one.key))


REVIEWER = "rlm_mem_reviewer"
"""Cookie with the reviewer's name, which prefills the form."""
_STATES = get_args(CaseStatus)
_OPERATIONS = {"approve": "approveCase", "reject": "rejectCase", "defer": "deferCase"}


class _Choice(NamedTuple):
    """A button of a case: its decision, the notice shown afterwards, and whether it takes memories from searches."""

    label: str
    does: str
    notice: str
    takes_away: bool = False


class _Kind(NamedTuple):
    """How cases of a kind are shown: headings of the two lists, and the two decisions."""

    evidence: str
    against: str
    approve: _Choice
    reject: _Choice


_BOTH_HOLD = _Choice("Both are valid", "leaves both as they are", "both-hold")
_ARCHIVE = "hides the listed memories from searches; they can be restored"
_KINDS: Mapping[str, _Kind] = {
    "promote": _Kind(
        "For it",
        "Against it",
        _Choice("Move to the core", "keeps it permanently, above the other tiers", "core"),
        _Choice("Not yet", "leaves it where it is; it is proposed again after further uses", "not-core"),
    ),
    "retain": _Kind(
        "For it",
        "Against it",
        _Choice("It is still valid", "leaves it where it is", "holds"),
        _Choice("It is no longer valid", "moves it to the mid tier", "holds-not"),
    ),
    "capture": _Kind(
        "What was captured",
        "Against it",
        _Choice("Keep", "marks the ticked memories as reviewed by you and archives the others", "captured"),
        _Choice("Archive all", _ARCHIVE, "captures-archived", takes_away=True),
    ),
    "quarantine": _Kind(
        "What is held back",
        "Why",
        _Choice("Release", "makes searches find it again", "released"),
        _Choice("Archive", _ARCHIVE, "archived-case", takes_away=True),
    ),
    "replace": _Kind(
        "The newer memory",
        "The older memory",
        _Choice("It replaces it", "marks the older one as replaced; it stays readable", "replaced"),
        _BOTH_HOLD,
    ),
    "forget": _Kind(
        "The memory",
        "Why it waits for you",
        _Choice("Forget it", "moves it to the archive; it can be restored", "forgotten", takes_away=True),
        _Choice("Keep it", "leaves it as it is", "kept-memory"),
    ),
    "contradict": _Kind(
        "The newer memory",
        "The older memory",
        _Choice("They contradict", "links them as contradicting; both stay", "contradicting"),
        _BOTH_HOLD,
    ),
}


def review_page(request: PageRequest, *, problem: str = "", at: str = "") -> Response:
    """The page of cases with the requested status; ``problem``: why a decision, on the case ``at``, was refused."""
    state = request.request.query_params.get("state", "open")
    state = state if state in _STATES else "open"
    limit = request.number("limit", _CASES, 1, 100_000)
    matching, counts = request.memory.continuum.review.counted(state)
    shown = [case for number, case in enumerate(matching) if number < limit or case.id == at]
    titles = {}
    for case in shown:
        entry = _entry_of(request, case.entry)
        titles[case.id] = entry.chunk_id if entry else ""
    named = request.memory.store.get_many([one for case in shown for one in case.chunk_ids])
    return request.answer(
        "review.html",
        status=400 if problem else 200,
        cases=shown,
        more=address("/review", state=state, limit=limit * 2) if len(matching) > limit else "",
        kinds=_KINDS,
        about=ABOUT,
        counts={name: counts[name] for name in _STATES},
        chunk_ids=titles,
        times={one: chunk.metadata.at for one, chunk in named.items()},
        hidden=request.memory.store.quarantined_ids(),
        unexplained=UNEXPLAINED,
        asked=state,
        reviewer=request.text("reviewer", 100) or unquote(request.request.cookies.get(REVIEWER, ""))[:100],
        given_reason=request.text("reason", 2_000),
        ticked=request.texts("case") if problem else [],
        problem=problem,
        at=at,
        here=address(
            "/review", state="" if state == "open" else state, limit="" if limit == _CASES else limit
        ),
        live="tiers memories",
    )


def waiting_part(request: PageRequest) -> Response:
    """The number of open cases for the navigation, empty if there are none; loaded after the page."""
    count = len(request.memory.continuum.review.cases())
    return HTMLResponse(f"{count:,}" if count else "", headers=HEADERS)


def decide(request: PageRequest) -> Response:
    """Record a reviewer's decision."""
    case_id, what = request.part("case"), _asked(request)
    more: dict[str, Any] = {}
    if what == "defer":
        more["days"] = request.text("days", 10)
    if case_id.startswith("capture-") and what == "approve":
        ticked, listed = request.texts("keep"), request.text("listed", 0).split()
        if not set(listed) <= set(ticked):
            store, of_case = request.memory.store, request.memory.continuum.review.case(case_id).chunk_ids
            # What the session left since the page was shown stays, too.
            keep = [one for one in of_case if one in ticked or (one not in listed and store.exists(one))]
            what, more = ("approve", {"keep": keep}) if keep else ("reject", {})
    try:
        notice = _record(request, case_id, what, **more)
    except (InputError, Refused) as error:
        return review_page(request, problem=problem_of(error).sentence, at=case_id)
    return _decided(request, "captured-some" if "keep" in more else notice)


def decide_ticked(request: PageRequest) -> Response:
    """Record one decision on each of the ticked cases; those before one that is refused stay decided."""
    what, cases = _asked(request), request.texts("case")
    if not cases:
        return review_page(request, problem="tick the cases to decide first")
    explained = [one for one in cases if one.partition("-")[0] not in UNEXPLAINED]
    if explained and not request.text("reason", 1_000).strip():
        return review_page(request, problem="say why: this case needs a reason", at=explained[0])
    for case_id in cases:
        try:
            _record(request, case_id, what)
        except (InputError, Refused, NotFoundError, ConflictError) as error:
            return review_page(request, problem=problem_of(error).sentence, at=case_id)
    return _decided(request, "decided-ticked")


def _asked(request: PageRequest) -> str:
    what = request.text("do", 20)
    if what not in _OPERATIONS:
        raise InputError("choose to approve, defer or reject")
    return what


def _record(request: PageRequest, case_id: str, what: str, **more: Any) -> str:
    """Record a decision with the reviewer and reason of the form; return the name of its notice."""
    name, reason = case_id.partition("-")[0], request.text("reason", 1_000).strip()
    kind = _KINDS.get(name)
    choice: _Choice | None = getattr(kind, what) if kind and what != "defer" else None
    if name in UNEXPLAINED:
        reason = reason or (choice.label if choice else "later")
    who = {"reviewer": request.text("reviewer", 100), "reason": reason}
    request.carry_out(_OPERATIONS[what], {"case_id": case_id}, **who, **more)
    return choice.notice if choice else "deferred"


def _decided(request: PageRequest, notice: str) -> Response:
    """Back to the queue; the browser keeps the reviewer's name for the next case."""
    response = request.go("/review", notice)
    name = quote(request.text("reviewer", 100).strip())  # a cookie has only some ASCII characters
    response.set_cookie(REVIEWER, name, max_age=31_536_000, httponly=True, samesite="strict")
    return response


def _entry_of(request: PageRequest, key: str) -> TieredMemory | None:
    try:
        return request.memory.continuum.files.get(key)
    except (InvalidMemory, NotFoundError):
        return None
