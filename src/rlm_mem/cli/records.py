"""Records: trajectories of recalls, their costs, and the audit log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import rlm_mem
from rlm_mem.cli import options, periods, rich
from rlm_mem.cli.call import Call, Where
from rlm_mem.cli.ids import full_id, known_id
from rlm_mem.cli.options import argument, option
from rlm_mem.cli.steps import cost_line, step_parts, step_title
from rlm_mem.cli.terminal import (
    FOLDED,
    RIGHT,
    amount,
    long_text,
    moment,
    money,
    one_line,
    print_text,
    screen,
    text,
)
from rlm_mem.errors import InvalidQuery
from rlm_mem.recall.costing import CostLine
from rlm_mem.recall.outcome import OPERATION_WORDS, SUGGESTED, RunOperation, confidence_words, ending_of
from rlm_mem.recall.shown_runs import check_shown, hidden_words, shown_trajectory
from rlm_mem.recall.trajectory import Outcome, Trajectory, is_trajectory_id
from rlm_mem.store.core.files import finishing

if TYPE_CHECKING:
    from rlm_mem.recall.replaying import Replay


Operation = Annotated[RunOperation | None, option("--operation", "NAME", f"Only {OPERATION_WORDS}.")]
TrajectoryId = Annotated[
    str, argument("[ID]", "The id or its beginning. Default: last, the newest.", show_default=False)
]


def trajectories_list(
    call: Call,
    operation: Operation = None,
    since: periods.Since = None,
    until: periods.Until = None,
    limit: options.Limit = 20,
) -> None:
    """List the recorded recalls, newest first."""
    with call.open() as memory:
        found = memory.trajectories(operation=operation, since=since, until=until, limit=limit)
    if call.printed_json(found):
        return
    if not found:
        print_text("no trajectories", "dim")
        return
    for info in found:
        end: str = info.outcome or "no end recorded"
        if info.stopped_by:
            end = ending_of(info.stopped_by) if end == "stopped" else f"{end}, {ending_of(info.stopped_by)}"
        head = text(info.id, "cyan")
        head.append(
            f"  {info.operation} · {end} · {amount(info.iterations, 'program')} · {info.seconds:.1f} s", "dim"
        )
        print_text(head, cut=True)
        print_text(one_line(info.query, 300), indent=4)
        if info.withheld:
            print_text(hidden_words(info.withheld), "dim", indent=4)
        elif info.answer is not None:
            print_text(one_line(info.answer, 300), "green", indent=4)
        elif info.suggestion is not None:
            print_text(one_line(f"{SUGGESTED} {info.suggestion}", 300), "yellow", indent=4)
        elif info.error is not None:
            print_text(one_line(info.error, 300), "red", indent=4)


def _full_id(memory: rlm_mem.Memory, given: str) -> str:
    """Return the full id of a trajectory from its beginning; ``last`` is unchanged."""
    if given == "last" or is_trajectory_id(given):
        return given
    return known_id(
        given,
        (one.id for one in memory.trajectories(limit=None)),
        "trajectory",
        "rlm-mem trajectories list shows the ids.",
    )


def trajectories_show(call: Call, trajectory_id: TrajectoryId = "last") -> None:
    """Show the steps of one recall: programs, calls, output, outcome."""
    with call.open() as memory:
        trajectory = shown_trajectory(memory.store, _full_id(memory, trajectory_id))
    call.report(trajectory, lambda: screen().print(_tree_of_steps(trajectory)))


def _tree_of_steps(trajectory: Trajectory) -> rich.Tree:
    head = text(trajectory.query, "bold")
    head.append(
        f"\n{trajectory.id} · {trajectory.operation} · {trajectory.model} · {moment(trajectory.started_at)}",
        "dim",
    )
    tree = rich.Tree(head, guide_style="dim")
    if trajectory.withheld:
        tree.add(text(f"{hidden_words(trajectory.withheld)}; rlm-mem review list shows it", "yellow"))
    for step in trajectory.steps:
        branch = tree.add(step_title(step))
        for part in step_parts(step, whole=True):
            branch.add(part)
    outcome = trajectory.outcome
    if outcome is None:
        tree.add(text("no end recorded", "yellow"))
        return tree
    end = tree.add(long_text(outcome.content or outcome.word, "bold green" if outcome.content else "yellow"))
    if outcome.suggestion is not None:
        end.add(text(f"{SUGGESTED} ", "yellow") + long_text(outcome.suggestion, "bold"))
    for chunk_id in outcome.chunk_ids:
        end.add(text(chunk_id, "cyan"))
    tree.add(text(_figures(outcome), "dim"))
    return tree


def _figures(outcome: Outcome) -> str:
    parts = [
        confidence_words(outcome.word, outcome.confidence, outcome.suggestion),
        ending_of(outcome.stopped_by) if outcome.stopped_by else "",
        amount(outcome.model_calls, "model call"),
        cost_line(outcome.usage, outcome.cost),
        f"{outcome.seconds:.1f} s",
        f"error: {outcome.error}" if outcome.error else "",
    ]
    return " · ".join(part for part in parts if part)


def trajectories_export(
    call: Where,
    to: Annotated[Path | None, option("--to", "FILE", "A new file. Default: standard output.")] = None,
    file_format: Annotated[  # noqa: ARG001 - there is only one
        Literal["jsonl"], option("--format", "FORMAT", "jsonl: one JSON object per line.")
    ] = "jsonl",
    fields: Annotated[
        str | None, option("--fields", "A,B", "Only these fields, for example question,messages,answer.")
    ] = None,
    operation: Operation = None,
    since: periods.Since = None,
    until: periods.Until = None,
) -> None:
    """Write the recorded runs as training data, with keys and passwords redacted."""
    chosen = None if fields is None else [name.strip() for name in fields.split(",")]
    with call.open() as memory:
        runs = memory.export_trajectories(fields=chosen, operation=operation, since=since, until=until)
        lines = (json.dumps(run, ensure_ascii=False) + "\n" for run in runs)
        if to is None:
            for line in lines:
                typer.echo(line, nl=False)
            return
        try:
            file = to.open("x", encoding="utf-8", errors="backslashreplace")
        except FileExistsError:
            raise InvalidQuery(f"{to} exists already", hint="name a new file") from None
        with finishing(to, to), file:
            file.writelines(lines)


def trajectories_replay(call: Call, trajectory_id: TrajectoryId = "last") -> None:
    """Run the recorded programs again on the current memory, without a model, and compare the answers."""
    with call.open() as memory:
        # This loads the sandbox, which takes 150 ms of CPU and which only this command needs.
        from rlm_mem.recall.replaying import replay

        recorded = check_shown(shown_trajectory(memory.store, _full_id(memory, trajectory_id)))
        result = replay(memory.store, recorded, functions=memory.continuum.functions)
    call.report(result, lambda: _show_replay(result))


def _show_replay(result: Replay) -> None:
    print_text(result.trajectory.query, "bold")
    for step in result.steps:
        outcome = text("the same output", "green") if step.same else text("another output", "yellow")
        print_text(step_title(step.then) + text(" · ", "dim") + outcome)
        for line in step.diff:
            style = {"+": "green", "-": "red"}.get(line[:1], "dim")
            print_text(f"    {line}", style)
        for name, ids in (("no longer read", step.chunks_missing), ("newly read", step.chunks_new)):
            if ids:
                print_text(f"    {name}: {', '.join(ids)}", "dim")
    if result.same:
        print_text("the same steps and the same answer", "green")
    elif result.content_then == result.content_now:
        print_text("the same answer with other steps", "yellow")
    else:
        print_text(text("then: ", "dim") + text(result.content_then or "no answer"))
        print_text(text("now:  ", "dim") + text(result.content_now or "no answer", "yellow"))


def costs(
    call: Call,
    by: Annotated[
        Literal["day", "model", "operation", "all"],
        option("--by", "WHAT", "day, model, operation, or all three."),
    ] = "all",
    since: periods.Since = None,
    until: periods.Until = None,
) -> None:
    """Show what recalls cost, by day, model and operation."""
    names = ("day", "model", "operation") if by == "all" else (by,)
    with call.open() as memory:
        rows = _summed(memory.costs(since=since, until=until), names)
    cells = []
    for row in rows:
        tokens = f"{row['input_tokens'] + row['output_tokens']:,}"
        cost = money(row["cost"])
        if row["unpriced_calls"] and row["cost"] is not None:
            cost += f" + {row['unpriced_calls']:,} unpriced"
        cells.append((*(row[name] for name in names), f"{row['runs']:,}", f"{row['calls']:,}", tokens, cost))
    columns = (*names, *((name, RIGHT) for name in ("runs", "calls", "tokens", "cost")))
    call.report_table(rows, columns, cells, none="no recall has been recorded")


def _summed(lines: Sequence[CostLine], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the lines summed by the named columns; a cost is None only if no call had a price."""

    def key(line: CostLine) -> tuple[str, ...]:
        return tuple(getattr(line, name) for name in names)

    rows = []
    for columns, group in groupby(sorted(lines, key=key), key):
        summed = list(group)
        priced = [line.cost for line in summed if line.cost is not None]
        figures = {
            "runs": sum(line.runs for line in summed),
            "calls": sum(line.calls for line in summed),
            "input_tokens": sum(line.usage.input_tokens for line in summed),
            "output_tokens": sum(line.usage.output_tokens for line in summed),
            "cost": sum(priced, Decimal(0)) if priced else None,
            "unpriced_calls": sum(line.unpriced_calls for line in summed),
        }
        rows.append(dict(zip(names, columns, strict=True)) | figures)
    return rows


def events(
    call: Call,
    operation: Annotated[
        str | None, option("--operation", "NAME", "Only this operation, for example create or recall.")
    ] = None,
    chunk_id: Annotated[str | None, option("--chunk", "ID", "Only events of this chunk.")] = None,
    since: periods.Since = None,
    limit: Annotated[int, option("--limit -n", "N", "At most this many, the latest.", min=1)] = 50,
) -> None:
    """Show the audit log: when, who, what, and which chunk."""
    with call.open() as memory:
        chunk_id = None if chunk_id is None else full_id(memory, chunk_id)
        found = list(memory.store.events(since=since, op=operation, chunk_id=chunk_id, limit=limit))
    rows = []
    for event in found:
        ids = event.get("chunk_ids") or [one for one in (event.get("chunk_id"),) if one]
        shown = ", ".join(ids[:3]) + (f" and {len(ids) - 3:,} more" if len(ids) > 3 else "")
        rows.append((moment(event["ts"]), event["op"], shown, event.get("actor") or ""))
    columns = ("time", "what", ("chunks", {"style": "cyan", **FOLDED}), "who")
    call.report_table(found, columns, rows, none="no events")
