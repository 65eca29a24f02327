"""Making a memory and keeping it sound: init, check, repair, index, sync, checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlm_mem.cli import options
from rlm_mem.cli.opening import brain_folder, named_brain, open_memory
from rlm_mem.cli.terminal import amount, one_line, plain, print_json, progress, screen, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlm_mem.store.integrity import Finding

PANEL = "Care"


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command("init", rich_help_panel=PANEL)(init)
    for command in (check, repair, sync, checkpoint):
        app.command(command.__name__, rich_help_panel=PANEL)(command)
    index = typer.Typer(
        help="The index: derived from the files, rebuildable from them.", no_args_is_help=True
    )
    index.command("rebuild")(index_rebuild)
    app.add_typer(index, name="index", rich_help_panel=PANEL)


def init(
    ctx: typer.Context,
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[PATH]", help="The brain folder to make. Default: brain, here.", show_default=False
        ),
    ] = None,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Make a memory: the folder, and settings to change. What is there already stays."""
    target = folder or named_brain(ctx, brain) or Path("brain")
    existed = (target / "memory").is_dir()
    with open_memory(ctx, target, namespace, create=True):
        pass
    if as_json:
        print_json({"brain": str(target), "created": not existed})
    else:
        screen().print(text(f"{'there is a memory already at' if existed else 'made a memory at'} {target}"))


def check(
    ctx: typer.Context,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Check files, links and index against each other, changing nothing; ends with 1 on findings."""
    with open_memory(ctx, brain, namespace) as memory:
        findings = memory.check()
    if as_json:
        print_json({"ok": not findings, "findings": findings})
    elif findings:
        _show(findings)
        screen().print(
            text(f"{amount(len(findings), 'finding')}; rlm-mem repair says what can be mended", "bold")
        )
    else:
        screen().print(text("all is well", "green"))
    if findings:
        raise typer.Exit(1)


def repair(
    ctx: typer.Context,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; else only say what would be done.")] = False,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Mend what `check` finds; without --apply it says what it would do."""
    with open_memory(ctx, brain, namespace) as memory:
        report = memory.repair(dry_run=not apply)
    if as_json:
        print_json({"applied": apply, "actions": report})
        return
    if not report:
        screen().print(text("nothing to mend", "green"))
        return
    _show(report)
    outcome = "done" if apply else "to do; rlm-mem repair --apply does them"
    screen().print(text(f"{amount(len(report), 'repair')} {outcome}", "bold"))


def _show(findings: Sequence[Finding]) -> None:
    console = screen()
    for finding in findings:
        row = plain(finding)
        console.print(
            text(f"{row.get('kind', '')}  ", "yellow")
            + text(str(row.get("chunk_id") or row.get("path") or ""), "cyan")
        )
        console.print(text(f"    {one_line(row.get('message', ''), 400)}"))


def index_rebuild(
    ctx: typer.Context,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Build the index anew from the files."""
    with open_memory(ctx, brain, namespace) as memory, progress("indexing", quiet=as_json) as tell:
        count = memory.rebuild_index(progress=tell)
    if as_json:
        print_json({"chunks": count})
    else:
        screen().print(text(f"indexed {amount(count, 'chunk')}"))


def sync(
    ctx: typer.Context,
    full: Annotated[
        bool, typer.Option("--full", help="Look at every file, not only at changed folders.")
    ] = False,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Take in what was edited by hand, by git or by another program."""
    with open_memory(ctx, brain, namespace) as memory:
        report = memory.store.sync(full=full)
    if as_json:
        print_json(report)
    else:
        screen().print(text(str(report)))


def checkpoint(
    ctx: typer.Context,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Write into the files what only the index knows: access counts, and the JSON views."""
    with open_memory(ctx, brain, namespace) as memory:
        memory.store.checkpoint()
        folder = brain_folder(ctx, brain)
    if as_json:
        print_json({"checkpoint": str(folder)})
    else:
        screen().print(text(f"the files of {folder} are up to date"))
