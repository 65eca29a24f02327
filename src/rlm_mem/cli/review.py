"""`rlm-mem review`: the cases of the review queue, and what a model finds or decides."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import rlm_mem
from rlm_mem.cli import options
from rlm_mem.cli.call import Call, login_name, other_places
from rlm_mem.cli.ids import known_id, short_ids
from rlm_mem.cli.options import argument, option
from rlm_mem.cli.terminal import amount, moment, one_line, print_json, print_text, text
from rlm_mem.config import MAX_NEAREST
from rlm_mem.continuum.cases import ABOUT, CaseFilter
from rlm_mem.continuum.changes import Change
from rlm_mem.errors import InputError, NotFoundError

if TYPE_CHECKING:
    from rlm_mem.continuum.review import ReviewQueue
    from rlm_mem.proposals.judging import Comparison

CaseId = Annotated[str, argument("ID", "The id of a case (rlm-mem review list), or its beginning.")]
CaseIds = Annotated[
    list[str], argument("ID...", "Ids of cases (rlm-mem review list), or the beginning of each.")
]
Reviewer = Annotated[str | None, option("--reviewer", "NAME", "Who decides; in a terminal, by default you.")]
Reason = Annotated[
    str,
    option(
        "--reason",
        "TEXT",
        "Why; may be left out for captures, replacements, contradictions and requests to forget.",
    ),
]

_CAPTURED = 10  # memories of a session that the list names


def review_list(
    call: Call,
    status: Annotated[
        CaseFilter,
        option("--status", "STATUS", "open, deferred, approved, rejected, obsolete or all."),
    ] = "open",
) -> None:
    """List cases, the most important kind first, then the oldest."""
    with call.open() as memory:
        cases = memory.continuum.review.cases(None if status == "all" else status)
        elsewhere = "" if cases or call.json else other_places(memory)
    if call.json:
        print_json(cases)
        return
    for case in cases:
        print_text(
            text(case.id, "cyan")
            + text(f"  {ABOUT[case.kind]} · {case.status} · {moment(case.opened_at)}", "dim")
        )
        print_text(case.title, indent=4)
        if case.kind == "capture":  # its title names only the session
            short = short_ids(case.chunk_ids)
            for chunk_id, line in zip(case.chunk_ids[:_CAPTURED], case.evidence, strict=False):
                said = one_line(line.removeprefix(f"{chunk_id}: "), 120)
                print_text(f"{short[chunk_id]}  {said}", "dim", indent=6)
            if len(case.evidence) > _CAPTURED:
                print_text(f"… and {len(case.evidence) - _CAPTURED:,} more", "dim", indent=6)
    print_text(amount(len(cases), "case"), "dim")
    if elsewhere:
        print_text(elsewhere, "dim")
    if any(case.status == "open" for case in cases):
        print_text(_how_to_decide(call, "CASE"), "dim")
    if any(case.status == "open" and case.kind == "capture" for case in cases):
        print_text(
            "to keep some of a session: approve CASE with --keep ID for each; the others are archived", "dim"
        )


def _how_to_decide(call: Call, case_id: str) -> str:
    chosen = f" --namespace {call.namespace}" if call.namespace else ""
    named = "" if sys.stdin.isatty() else " --reviewer NAME"
    return f"rlm-mem{chosen} review approve (or reject) {case_id}{named}"


def review_show(call: Call, case_id: CaseId) -> None:
    """Show a case: question, figures, evidence for and against, history, decisions."""
    with call.open() as memory:
        case = memory.continuum.review.case(_full_case_id(memory, case_id))
    if call.json:
        print_json(case)
        return
    print_text(case.title, "bold")
    because = f": {case.obsolete_because}" if case.obsolete_because else ""
    print_text(f"{case.entry} · {case.status}{because}", "dim")
    print_text(case.question)
    decided = [f"{one.at} {one.decision} by {one.reviewer}: {one.reason}" for one in case.decisions]
    # The reason of a proposal is among its evidence.
    figures = [f"{name}: {value}" for name, value in case.figures.items() if value not in case.evidence]
    for title, lines in (
        ("figures", figures), ("evidence", case.evidence), ("counter-evidence", case.counter_evidence),
        ("history", case.history), ("decisions", decided),
    ):  # fmt: skip
        if lines:
            print_text(title, "dim")
            for line in lines:
                print_text(line, indent=4)
    if case.status == "open":
        print_text(_how_to_decide(call, case.id), "dim")


def _full_case_id(memory: rlm_mem.Memory, given: str) -> str:
    with suppress(NotFoundError):
        return memory.continuum.review.case(given).id
    known = (case.id for case in memory.continuum.review.cases(None))
    return known_id(given, known, "review case", "rlm-mem review list --status all shows the ids.")


def _outcome(case_id: str, change: Change) -> str:
    kind, is_approved = case_id.partition("-")[0], change.op == "approved"
    match kind:
        case "replace" | "contradict":
            return f"{change.entry} {f'{kind}s' if is_approved else 'is kept beside'} the older memory"
        case "capture" if is_approved and change.archived:
            archived = f"{len(change.archived):,} archived"
            return f"of session {change.entry}, {amount(len(change.marks), 'memory')} kept, {archived}"
        case "capture":
            return f"the memories of session {change.entry} are {'kept' if is_approved else 'archived'}"
        case "forget":
            return f"{change.entry} is {'archived' if is_approved else 'kept'}"
        case "quarantine":
            return f"{change.entry} is {'released' if is_approved else 'archived'}"
        case _:
            return f"{change.entry} is {change.tier_to or ('kept' if is_approved else 'where it was')}"


def _decide(
    call: Call,
    given: list[str],
    decided: str,
    reviewer: str | None,
    decide: Callable[[ReviewQueue, str, str], str],
    **more: Any,
) -> None:
    """Decide cases one after the other, each a change of its own, and report each as soon as it is decided.

    Args:
        decided: the word for the decision. more: further data to print with ``--json``.
        reviewer: who decides; None: the user, if a person can type. An agent that runs a shell must name somebody.
        decide: decides a case in the name of somebody, and returns what to print.
    """
    who = reviewer
    if who is None and sys.stdin.isatty():
        who = login_name()
    if who is None:
        raise InputError(
            "a case is decided in the name of a person", hint="--reviewer NAME names who decided"
        )
    with call.open() as memory:
        review = memory.continuum.review
        for case_id in dict.fromkeys([_full_case_id(memory, one) for one in given]):
            said = decide(review, case_id, who)
            call.report({decided: case_id, **more}, said if len(given) == 1 else f"{case_id}: {said}")


def review_approve(
    call: Call,
    case_ids: CaseIds,
    reviewer: Reviewer = None,
    reason: Reason = "",
    keep: Annotated[
        list[str] | None,
        option("--keep", "ID", "Of a session, keep this memory and archive those not named; repeatable."),
    ] = None,
) -> None:
    """Approve cases: promote, keep, release from quarantine, or link the newer memory to the older one."""
    if keep and len(case_ids) > 1:
        raise InputError("--keep names memories of one case", hint="approve the other cases by themselves")

    def approve(review: ReviewQueue, case_id: str, who: str) -> str:
        kept = None
        if keep:
            of_case, hint = review.case(case_id).chunk_ids, "rlm-mem review show CASE has the ids"
            kept = [known_id(one, of_case, f"memory of {case_id}", hint) for one in keep]
        change = review.approve(case_id, reviewer=who, reason=reason, keep=kept)
        return f"approved; {_outcome(case_id, change)}"

    _decide(call, case_ids, "approved", reviewer, approve)


def review_defer(
    call: Call,
    case_ids: CaseIds,
    reviewer: Reviewer = None,
    reason: Reason = "",
    days: Annotated[int, option("--days", "N", "Open it again after N days.", min=1)] = 30,
) -> None:
    """Postpone the decision on cases."""

    def defer(review: ReviewQueue, case_id: str, who: str) -> str:
        review.defer(case_id, reviewer=who, reason=reason, days=days)
        return f"deferred for {amount(days, 'day')}"

    _decide(call, case_ids, "deferred", reviewer, defer, days=days)


def review_reject(call: Call, case_ids: CaseIds, reviewer: Reviewer = None, reason: Reason = "") -> None:
    """Reject cases: nothing is promoted or linked; captured and quarantined memories are archived."""

    def reject(review: ReviewQueue, case_id: str, who: str) -> str:
        return f"rejected; {_outcome(case_id, review.reject(case_id, reviewer=who, reason=reason))}"

    _decide(call, case_ids, "rejected", reviewer, reject)


def review_judge(
    call: Call,
    llm: options.Llm = None,
    limit: Annotated[
        int, option("--limit -n", "N", "Maximum number of proposals, with one short call each.", min=1)
    ] = 10,
) -> None:
    """Let a model decide, in its own name, the proposals that it is certain of; the others stay open."""

    def show(decided: list[Change]) -> None:
        if call.json:
            print_json({"decided": [{"case": one.details["case"], "reason": one.reason} for one in decided]})
            return
        for one in decided:
            print_text(f"{one.details['case']}: {one.reason}")
        print_text(f"{amount(len(decided), 'proposal')} decided", "dim")

    with call.open(llm=llm) as memory:
        _run_shown(lambda noted: memory.continuum.review.judge(memory.llm, limit, on_step=noted), show)


def _run_shown(run: Callable[[Callable[[Any], None]], object], show: Callable[[list[Any]], None]) -> None:
    """Run what calls a model again and again, and show what was done, also before a failure or an interruption."""
    done: list[Any] = []
    try:
        run(done.append)
    except BaseException:
        if done:
            show(done)
        raise
    show(done)


def review_find(
    call: Call,
    llm: options.Llm = None,
    limit: Annotated[
        int, option("--limit -n", "N", "Maximum number of comparisons, one short call each.", min=1)
    ] = 20,
    since: Annotated[str | None, option("--since", "DATE", "Only memories from this time on.")] = None,
    nearest: Annotated[
        int, option("--nearest", "N", "Earlier memories that each is compared with.", min=1, max=MAX_NEAREST)
    ] = 1,
) -> None:
    """Let a model compare memories, the newest first, with the nearest earlier ones, and link what it is certain of."""

    def show(found: list[Comparison]) -> None:
        linked = [one for one in found if one.word in ("replaces", "contradicts")]
        if call.json:
            print_json({"compared": len(found), "linked": linked})
            return
        for one in linked:
            print_text(f"{one.newer_id} {one.word} {one.older_id}: {one.reason}")
        print_text(f"{amount(len(found), 'pair')} compared, {len(linked):,} linked", "dim")

    with call.open(llm=llm) as memory:
        find = memory.continuum.review.find
        _run_shown(lambda noted: find(memory.llm, limit, since=since, nearest=nearest, on_step=noted), show)
