"""Tiered memories: `query`, `consolidate`, `prune`, and `tier skills`, which writes stable ones for coding agents."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

from rlm_mem.cli import options
from rlm_mem.cli.call import Call
from rlm_mem.cli.options import argument, flag, option
from rlm_mem.cli.terminal import amount, note, one_line, print_json, print_text, progress, share, text
from rlm_mem.continuum.answers import QueryKind
from rlm_mem.continuum.skills import SKILL_TIERS, write_skills
from rlm_mem.errors import InvalidQuery
from rlm_mem.memory import Memory

_MAX_DAYS = 365_000  # a longer time would begin before the calendar does
Goal = Annotated[str, argument("GOAL", "The goal, in words.")]


def consolidate(
    call: Call,
    dry_run: Annotated[bool, flag("--dry-run", "Only show what would be done.")] = False,
    held: Annotated[bool, flag("--held", "Also show memories that stay in their tier, and why.")] = False,
    llm: options.Llm = None,
) -> None:
    """Promote memories with proven success. Safe to run from cron or a hook, and to repeat."""
    with call.open(llm=llm) as memory, progress("consolidating", unit="memories") as seen:
        title_model = memory.llm if llm and llm != "offline" else None
        report = memory.continuum.consolidate(dry_run=dry_run, llm=title_model, progress=seen)
    if call.printed_json(report):
        return
    for title, steps in (
        ("promoted", report.promoted),
        ("merged", report.merged),
        ("for review", report.queued),
    ):
        for step in steps:
            head = text(title, "green") + text(f"  {step['key']}", "cyan")
            print_text(head + text(f" → {step['to']}" if "to" in step else ""))
            print_text(step["reason"], "dim", indent=4)
    for step in report.held if held else ():
        print_text(text("stays", "dim") + text(f"  {step['key']}", "cyan"))
        print_text(step["reason"], "dim", indent=4)
    _problems(report.problems)
    for remark in report.notes:
        note(remark)
    done = f"{len(report.promoted)} promoted, {len(report.merged)} merged, {len(report.queued)} queued for review"
    would = "would be: " if dry_run else ""
    print_text(f"{would}{done}; {amount(report.considered, 'memory')} considered", "dim")


def prune(
    call: Call,
    apply: Annotated[bool, flag("--apply", "Apply the rules. Default: only report.")] = False,
    restore: Annotated[str | None, option("--restore", "NAME", "Restore this archived memory.")] = None,
    archived: Annotated[bool, flag("--archived", "List the archive.")] = False,
    delete_days: Annotated[
        int | None,
        option(
            "--delete-archived",
            "DAYS",
            "Permanently delete memories archived longer ago than this; also needs --apply.",
            min=0,
        ),
    ] = None,
) -> None:
    """Apply the retention rules: archive, demote, flag for review. Without --apply, only report."""
    with call.open() as memory, progress("pruning", unit="memories") as seen:
        pruner = memory.continuum.pruner
        if restore is not None:
            change = pruner.restore(restore)
            print_text(f"restored {change.entry}")
            return
        if archived or delete_days is not None:
            if delete_days is None:
                names = pruner.archived()
            else:
                limit = memory.store.clock() - timedelta(days=min(delete_days, _MAX_DAYS))
                names = pruner.delete_archived(limit, dry_run=not apply)
            if call.printed_json(names):
                return
            for name in names:
                print_text(name, "cyan")
            verb = "in the archive" if delete_days is None else "deleted" if apply else "would be deleted"
            print_text(f"{amount(len(names), 'memory')} {verb}", "dim")
            return
        report = memory.continuum.prune(dry_run=not apply, progress=seen)
    if call.printed_json(report):
        return
    for step in report.steps:
        print_text(text(step.action.replace("_", " "), "yellow") + text(f"  {step.key}", "cyan"))
        print_text(step.reason, "dim", indent=4)
    _problems(report.problems)
    count = amount(len(report.steps), "step")
    tail = "done" if apply else "not done: give --apply" if report.steps else "nothing to do"
    print_text(f"{count} of {amount(report.considered, 'memory')}; {tail}", "dim")


_APPLIES = {
    "--kind weighted": ("--weight", "--min-confidence", "--task"),
    "--kind recent": (),
    "--kind proven": ("--min-confidence",),
    "--kind stable": ("--task",),
    "--hints": (),
}
"""The options of ``query`` that select or weigh, by what it shows."""


def query(
    call: Call,
    goal: Goal,
    kind: Annotated[
        QueryKind,
        option("--kind", "KIND", "weighted, recent (24 hours), proven (mid) or stable (low)."),
    ] = "weighted",
    weight: Annotated[
        list[str] | None,
        option("--weight", "TIER=W", "Weight of a tier; repeatable. Default: high=0.1, mid=0.6, low=0.3."),
    ] = None,
    min_confidence: Annotated[
        float | None, option("--min-confidence", "0..1", "With at least this confidence.")
    ] = None,
    task_type: Annotated[
        str | None, option("--task", "TYPE", "research, development, creative, analysis.")
    ] = None,
    no_core: Annotated[bool, flag("--no-core", "Leave out the core (ultra-low memories).")] = False,
    hints: Annotated[bool, flag("--hints", "Show risks and success patterns instead of hits.")] = False,
    explain: Annotated[bool, flag("--explain", "Show the parts of each score.")] = False,
    limit: options.Limit = 10,
) -> None:
    """Find earlier work on a goal across the tiers, weighted by its success."""
    chosen = "--hints" if hints else f"--kind {kind}"
    given = {"--weight": weight, "--min-confidence": min_confidence, "--task": task_type}
    for name, value in given.items():
        if value is not None and name not in _APPLIES[chosen]:
            raise InvalidQuery(f"{name} does not apply to {chosen}", hint="leave out one of the two")
    with call.open() as memory:
        if hints:
            _show_hints(memory, goal, limit, call.json)
            return
        found = memory.continuum.queries.of_kind(
            kind, goal, tier_weights=_weights(weight), min_confidence=min_confidence, task_type=task_type,
            include_core=not no_core, limit=limit,
        )  # fmt: skip
    if call.printed_json({"hits": found.hits, "core": found.core}):
        return
    for hit in found.core:
        print_text(text("core  ", "magenta") + text(one_line(hit.title, 80)))
    for hit in found.hits:
        print_text(text(f"{hit.score:.3f}  ", "green") + text(one_line(hit.title, 80), "bold"))
        uses = f"{share(hit.success_rate)} of {amount(hit.usage_count, 'use')}"
        figures = f"{hit.tier} · confidence {hit.confidence:.2f} · {uses}"
        print_text(f"{hit.key}\n{figures}", "dim", indent=7)
        if explain:
            print_text(" · ".join(f"{name} {value:.3f}" for name, value in hit.parts.items()), indent=7)
    if not found.hits:
        print_text("no memory matches", "dim")


def _show_hints(memory: Memory, goal: str, limit: int, as_json: bool) -> None:
    found = memory.continuum.hints(goal, limit=limit)
    if as_json:
        print_json(found)
        return
    for hint in found:
        print_text(text(f"{hint.kind}  ", "yellow" if hint.kind == "risk" else "green") + text(hint.text))
        for one in hint.evidence:
            print_text(one, "dim", indent=4)
    if not found:
        print_text("no hints", "dim")


def _weights(given: list[str] | None) -> dict[str, float] | None:
    if not given:
        return None
    found = {}
    for item in given:
        name, _, number = item.partition("=")
        try:
            found[name.strip()] = float(number)
        except ValueError:
            raise InvalidQuery(f"--weight {item} is not TIER=NUMBER, for example mid=0.6") from None
    return found


def _problems(problems: list[Any]) -> None:
    for problem in problems:
        note(f"not changed: {problem.message}")


def tier_skills(
    call: Call,
    folder: Annotated[
        Path,
        argument(
            "FOLDER", "The folder where agents look for skills, such as .claude/skills.", parser=options.path
        ),
    ],
    mid: Annotated[
        bool, flag("--mid", "Also from the mid tier: successful work that is not stable yet.")
    ] = False,
) -> None:
    """Write stable memories as skills (NAME/SKILL.md), update them, and remove those of demoted memories."""
    with call.open() as memory:
        found = write_skills(
            memory.store, memory.continuum.files, folder, tiers=(*SKILL_TIERS, "mid") if mid else SKILL_TIERS
        )
    if call.printed_json(found):
        return
    for one in found:
        print_text(text(f"{one.state:10}", "dim") + text(one.name, "cyan") + text(f"  {one.key}", "dim"))
    if not found:
        print_text("no memory is stable enough to be a skill", "dim")
