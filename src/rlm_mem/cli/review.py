"""`rlm-mem review`: the queue before the core: look at a case, approve, defer or reject it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rlm_mem.cli import options
from rlm_mem.cli.open import open_memory
from rlm_mem.cli.terminal import amount, indented, moment, print_json, screen, text
from rlm_mem.errors import InvalidQuery

if TYPE_CHECKING:
    from rlm_mem.continuum.review import Case

CaseId = Annotated[str, typer.Argument(metavar="ID", help="A case of rlm-mem review list.")]
Reviewer = Annotated[str, typer.Option("--reviewer", metavar="NAME", help="Who decides.")]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    group = typer.Typer(
        help="The queue before the core: look at cases and decide them.", no_args_is_help=True
    )
    group.command("list")(review_list)
    group.command("show")(review_show)
    group.command("approve")(review_approve)
    group.command("defer")(review_defer)
    group.command("reject")(review_reject)
    app.add_typer(group, name="review", rich_help_panel="Continuum")


def review_list(
    ctx: typer.Context,
    status: Annotated[
        str, typer.Option("--status", metavar="STATUS", help="open, deferred, approved, rejected or all.")
    ] = "open",
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """List cases, the oldest first."""
    if status not in ("open", "deferred", "approved", "rejected", "all"):
        raise InvalidQuery(f"--status {status} is not known: use open, deferred, approved, rejected or all")
    with open_memory(ctx, brain, namespace) as memory:
        cases = memory.continuum.review.cases(None if status == "all" else status)
    if as_json:
        print_json([_plain(case) for case in cases])
        return
    console = screen()
    for case in cases:
        console.print(
            text(case.id, "cyan") + text(f"  {case.kind} · {case.status} · {moment(case.opened_at)}", "dim")
        )
        console.print(indented(case.title, 4))
    console.print(text(amount(len(cases), "case"), "dim"))


def review_show(
    ctx: typer.Context,
    case_id: CaseId,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Show a case: question, figures, evidence, counter-evidence, history, decisions."""
    with open_memory(ctx, brain, namespace) as memory:
        case = memory.continuum.review.case(case_id)
    if as_json:
        print_json(_plain(case))
        return
    console = screen()
    console.print(text(case.title, "bold"))
    console.print(text(f"{case.entry} · {case.status}", "dim"))
    console.print(text(case.question))
    decided = [f"{one.at} {one.decision} by {one.reviewer}: {one.reason}" for one in case.decisions]
    figures = [f"{name}: {value}" for name, value in case.figures.items()]
    for title, lines in (
        ("figures", figures), ("evidence", case.evidence), ("counter-evidence", case.counter_evidence),
        ("history", case.history), ("decisions", decided),
    ):  # fmt: skip
        if lines:
            console.print(text(title, "dim"))
            for line in lines:
                console.print(indented(line, 4))


def _plain(case: Case) -> object:
    import msgspec

    return msgspec.to_builtins(case)


def review_approve(
    ctx: typer.Context,
    case_id: CaseId,
    reviewer: Reviewer,
    reason: Reason,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Approve: into the core, or (for a case that asks whether a memory still holds) it stays."""
    with open_memory(ctx, brain, namespace) as memory:
        change = memory.continuum.review.approve(case_id, reviewer=reviewer, reason=reason)
    screen().print(text(f"approved; {change.entry} is {change.tier_to or 'kept'}"))


def review_defer(
    ctx: typer.Context,
    case_id: CaseId,
    reviewer: Reviewer,
    reason: Reason,
    days: Annotated[
        int, typer.Option("--days", metavar="N", min=1, help="Open again after so many days.")
    ] = 30,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Decide later."""
    with open_memory(ctx, brain, namespace) as memory:
        memory.continuum.review.defer(case_id, reviewer=reviewer, reason=reason, days=days)
    screen().print(text(f"deferred for {amount(days, 'day')}"))


def review_reject(
    ctx: typer.Context,
    case_id: CaseId,
    reviewer: Reviewer,
    reason: Reason,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Reject: the memory stays where it is, or (where it was asked whether it still holds) goes back to mid."""
    with open_memory(ctx, brain, namespace) as memory:
        change = memory.continuum.review.reject(case_id, reviewer=reviewer, reason=reason)
    screen().print(text(f"rejected; {change.entry} is {change.tier_to or 'where it was'}"))
