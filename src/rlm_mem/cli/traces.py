"""`rlm-mem trace`, `tier` and `state`: logs of work and their uses, tiered memories, the working state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

import rlm_mem
from rlm_mem.cli import options
from rlm_mem.cli.call import Call
from rlm_mem.cli.continuum import Goal
from rlm_mem.cli.ids import full_id, known_id
from rlm_mem.cli.options import argument, flag, option
from rlm_mem.cli.sources import read_bounded
from rlm_mem.cli.terminal import FOLDED, amount, moment, print_text, share, text
from rlm_mem.errors import InvalidQuery

_MAX_STEPS = 16_000_000  # bytes
Key = Annotated[str, argument("KEY", "The memory: its file, FILE#ENTRY, or its chunk id.")]


def _key(memory: rlm_mem.Memory, given: str) -> str:
    """Return the key of a memory: its file, or the full id of its chunk."""
    return given if "/" in given else full_id(memory, given)


# --- traces ----------------------------------------------------------------------------------------------------------


def trace_record(
    call: Call,
    goal: Goal,
    steps: Annotated[
        Path | None,
        option("--steps", "FILE", "JSON: a list of steps with tool, call, validation, on_error, …"),
    ] = None,
    success: Annotated[
        bool | None, option("--success/--failure", "", "Whether it succeeded, if known.")
    ] = None,
    indicator: Annotated[
        list[str] | None, option("--indicator", "TEXT", "Evidence of the success; repeatable.")
    ] = None,
    precondition: Annotated[
        list[str] | None, option("--precondition", "TEXT", "What it requires; repeatable.")
    ] = None,
    project: Annotated[str | None, option("--project", "NAME", "Where it was done.")] = None,
    task_type: Annotated[str | None, option("--task", "TYPE", "Kind of task.")] = None,
    notes: Annotated[str, option("--notes", "TEXT", "Anything else.")] = "",
    session: Annotated[bool, flag("--session", "Write it to the session log of the day.")] = False,
) -> None:
    """Write the short-term log of an interaction or a session."""
    with call.open(create=True) as memory:
        entry = memory.continuum.traces.record(
            goal, _steps(steps), success=success, indicators=indicator or (), preconditions=precondition or (),
            project=project, task_type=task_type, notes=notes, session=session,
        )  # fmt: skip
    call.report({"key": entry.key}, entry.key, "cyan")


def _steps(path: Path | None) -> list[dict[str, Any]]:
    if path is None:
        return []
    data = read_bounded(path, _MAX_STEPS)
    try:
        loaded = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InvalidQuery(f"--steps {path} cannot be read: {error}") from None
    if not isinstance(loaded, list) or not all(isinstance(step, dict) for step in loaded):
        raise InvalidQuery(f"--steps {path} does not contain a JSON list of objects")
    return loaded


def trace_use(
    call: Call,
    key: Key,
    success: Annotated[bool, option("--success/--failure", "", "Whether it succeeded.")],
    project: Annotated[str | None, option("--project", "NAME", "Where it was used.")] = None,
    error: Annotated[str | None, option("--error", "TEXT", "What went wrong.")] = None,
    step: Annotated[int | None, option("--step", "N", "At which step.")] = None,
) -> None:
    """Record that a tiered memory or a chunk was used, and whether it succeeded."""
    with call.open() as memory:
        used = memory.continuum.traces.use(
            _key(memory, key), success, project=project, error=error, step=step
        )
        if hasattr(used, "meta"):
            meta = used.meta
            confidence = meta.confidence_score
            uses = f"{meta.successes} of {meta.usage_count} uses went well, "
        else:
            confidence, uses = used.metadata.confidence, ""
    call.report({"confidence": confidence}, f"{uses}confidence {confidence:.2f}")


def tier_list(
    call: Call,
    tier: Annotated[str | None, option("--tier", "TIER", "high, mid, low or ultra-low.")] = None,
    limit: options.Limit = 50,
) -> None:
    """List tiered memories, most reliable first."""
    with call.open() as memory:
        found = memory.continuum.queries.memories(tier, limit)
    rows = []
    for hit in found:
        reliability = f"{hit.parts['reliability']:.2f}"
        key = text(hit.key, "cyan")
        rows.append((hit.tier, f"{hit.usage_count:,}", share(hit.success_rate), reliability, key))
    columns = ("tier", "uses", "success", "reliable", ("memory", FOLDED))
    call.report_table(found, columns, rows, none="no memories")


def tier_show(call: Call, key: Key) -> None:
    """Show a tiered memory in full; this counts as an access, not as a use."""
    with call.open() as memory:
        entry = memory.continuum.traces.read(_key(memory, key))
    call.report(
        {"key": entry.key, "frontmatter": entry.raw, "body": entry.body, "chunk_id": entry.chunk_id},
        entry.text.rstrip(),
    )


def tier_log(
    call: Call,
    entry: Annotated[str | None, option("--entry", "KEY", "Only changes of this memory.")] = None,
    limit: options.Limit = 50,
) -> None:
    """Show transitions and other changes with their reasons, latest last, without uses."""
    with call.open() as memory:
        steps = [step for step in memory.continuum.changes.journal(entry=entry) if step["op"] != "use"][
            -limit:
        ]
        undoable = set(memory.continuum.changes.transitions())
    if call.printed_json(steps):
        return
    for step in steps:
        tiers = " → ".join(str(one) for one in (step["from"], step["to"]) if one)
        print_text(
            text(f"{moment(step['ts'])}  ", "dim")
            + text(f"{step['op']} {tiers}")
            + text(f"  {step['entry']}", "cyan")
        )
        mark = f"{step['id']}: " if step["id"] in undoable else ""
        print_text(f"{mark}{step['reason']}", "dim", indent=4)
    if not steps:
        print_text("no changes yet", "dim")


def tier_undo(
    call: Call,
    transition: Annotated[
        str, argument("ID", "The id of a transition (rlm-mem tier log), or its beginning.")
    ],
    reason: Annotated[str, option("--reason", "TEXT", "Why.")] = "undone by hand",
) -> None:
    """Undo a transition: restore its files byte for byte."""
    with call.open() as memory:
        known = memory.continuum.changes.transitions()
        full = known_id(transition, known, "transition", "rlm-mem tier log shows those that can be undone.")
        change = memory.continuum.undo(full, reason)
    call.report(
        {"undone": full, "entry": change.entry},
        f"undone: {change.entry} is {change.tier_to or 'as it was'} again",
    )


def tier_health(call: Call) -> None:
    """Show the state of the tiers: sizes, consolidation rate, reuse, promotions per month."""
    with call.open() as memory:
        found = memory.continuum.health()
    rows = []
    for name, value in found.items():
        shown = (
            ", ".join(f"{key} {count}" for key, count in value.items()) if isinstance(value, dict) else value
        )
        rows.append((name.replace("_", " "), "–" if shown in (None, "") else shown))
    call.report_table(found, (("figure", {"style": "dim"}), ("value", {"no_wrap": False})), rows)


def tier_check(call: Call) -> None:
    """List memory files that violate a rule, and index manual edits; exit with 1 if there are any."""
    with call.open() as memory:
        memory.continuum.sync()
        problems = memory.continuum.check()
    if not call.printed_json(problems):
        for problem in problems:
            print_text(problem.message)
        print_text(f"{amount(len(problems), 'problem')}", "dim")
    if problems:
        raise typer.Exit(1)


# --- state -----------------------------------------------------------------------------------------------------------


def state_show(call: Call) -> None:
    """Show plan, context, variables, history and constraints."""
    with call.open() as memory:
        entries = memory.continuum.workspace.entries()
    if call.printed_json({entry.file.rpartition("/")[2]: entry.body for entry in entries}):
        return
    for entry in entries:
        print_text(entry.file, "cyan")
        print_text(entry.body.strip() or "(empty)", indent=2)
    if not entries:
        print_text("no state", "dim")


def state_set(
    call: Call,
    name: Annotated[str, argument("NAME", "plan, context, history or constraints.")],
    content: Annotated[str, argument("TEXT", "Its new text.")],
) -> None:
    """Replace one part of the working state."""
    with call.open(create=True) as memory:
        memory.continuum.workspace.put(name, content)
    call.report({"set": name}, f"{name} set")


def state_step(
    call: Call,
    tool: Annotated[str, argument("TOOL", "The tool that was called.")],
    arguments: Annotated[str, option("--call", "TEXT", "Its arguments.")] = "",
    result: Annotated[str, option("--result", "TEXT", "Its result.")] = "",
) -> None:
    """Update the working state after a tool call."""
    with call.open(create=True) as memory:
        memory.continuum.workspace.after_tool_call(tool, arguments, result)
    call.report({"noted": tool}, f"recorded {tool}")


def state_clear(call: Call) -> None:
    """Clear the working state, at boot or to start over; nothing else is changed."""
    with call.open() as memory:
        removed = memory.continuum.workspace.clear()
    call.report({"cleared": removed}, f"cleared {amount(len(removed), 'file')}")
