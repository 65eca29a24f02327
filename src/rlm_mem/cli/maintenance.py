"""Making a memory and keeping it sound: init, check, repair, index, sync, checkpoint."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlm_mem.cli import options
from rlm_mem.cli.open import brain_place, named_brain, open_memory
from rlm_mem.cli.terminal import amount, indented, plain, print_json, progress, screen, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlm_mem.store.core.answers import SyncReport
    from rlm_mem.store.core.integrity import Finding, Repair

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
        str | None,
        typer.Argument(
            metavar="[PATH]",
            help="The folder to make, or postgresql://…. Else RLM_MEM_BRAIN, else brain, here.",
            show_default=False,
        ),
    ] = None,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Make a memory: the folder, its settings, personalities, sliders and gauges. What is there already stays."""
    from rlm_mem.cli.settings import settings_file
    from rlm_mem.persona.library import Library

    target = brain_place(ctx, folder or named_brain(ctx, brain) or os.environ.get("RLM_MEM_BRAIN") or "brain")
    if isinstance(target, str):
        _init_database(ctx, target, namespace, as_json=as_json)
        return
    existed = (target / "memory").is_dir()
    with open_memory(ctx, target, namespace, create=True):
        _write_new(target / "config.toml", settings_file())
        _write_new(
            target / ".gitignore",
            "# derived from the files of the chunks, and rebuilt from them\n/memory/index/\n",
        )
        Library(target).copy_defaults()
    if as_json:
        print_json({"brain": str(target), "created": not existed})
    else:
        screen().print(text(f"{'there is a memory already at' if existed else 'made a memory at'} {target}"))


def _init_database(ctx: typer.Context, dsn: str, namespace: str | None, *, as_json: bool) -> None:
    """Make the tables, and give the namespace its personalities, sliders and gauges."""
    from rlm_mem.persona.library import Library

    with open_memory(ctx, dsn, namespace, create=True) as memory:
        store = memory.store
        existed = any(name == store.namespace for name, _ in store.namespaces())
        Library(store.backend.files(store.namespace)).copy_defaults()
        place = store.backend.location
    if as_json:
        print_json({"brain": place, "created": not existed})
    else:
        screen().print(text(f"{'there is a memory already in' if existed else 'made a memory in'} {place}"))


def _write_new(path: Path, content: str) -> None:
    """Write a file, unless there is one."""
    with contextlib.suppress(FileExistsError), path.open("x", encoding="utf-8") as file:
        file.write(content)


def check(
    ctx: typer.Context,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Check files, links and index against each other, changing nothing; ends with 1 on findings."""
    with (
        open_memory(ctx, brain, namespace) as memory,
        progress("checking", unit="files", quiet=as_json) as tell,
    ):
        findings = memory.check(progress=tell)
    if as_json:
        print_json({"ok": not findings, "findings": findings})
    elif findings:
        for finding in findings:
            _show_finding(finding)
        screen().print(
            text(f"{amount(len(findings), 'finding')}; rlm-mem repair says what can be mended", "bold")
        )
    else:
        screen().print(text("all is well", "green"))
    if findings:
        raise typer.Exit(1)


def repair(
    ctx: typer.Context,
    apply: Annotated[bool, options.flag("--apply", help="Do it; else only say what would be done.")] = False,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Mend what check finds; without --apply it says what it would do."""
    with (
        open_memory(ctx, brain, namespace) as memory,
        progress("mending", unit="files", quiet=as_json) as tell,
    ):
        repairs = memory.repair(dry_run=not apply, progress=tell)
    failed = [one for one in repairs if one.error]
    if as_json:
        print_json({"applied": apply, "repairs": repairs})
    else:
        _show_repairs(repairs, applied=apply)
    if failed:
        raise typer.Exit(1)


def _show_finding(finding: Finding) -> None:
    concerned = finding.chunk_id or finding.file or "index"
    screen().print(text(f"{finding.code}  ", "yellow") + text(concerned, "cyan"))
    screen().print(indented(finding.message, 4))


def _show_repairs(repairs: Sequence[Repair], *, applied: bool) -> None:
    console = screen()
    if not repairs:
        console.print(text("nothing to mend", "green"))
        return
    for one in repairs:
        _show_finding(one.finding)
        if one.error:
            console.print(indented(f"failed: {one.error}", 4, "red"))
        else:
            state = "for you to decide" if one.manual else ("done" if one.done else "would be done")
            console.print(indented(f"{state}: {one.action}", 4, "yellow" if one.manual else "green"))
    yours = sum(one.manual for one in repairs)
    mended = sum(one.done for one in repairs)
    rest = len(repairs) - yours
    said = (
        f"{amount(mended, 'repair')} done"
        if applied
        else f"{amount(rest, 'repair')} to do: rlm-mem repair --apply"
    )
    console.print(text(said + (f"; {yours} for you to decide" if yours else ""), "bold"))


def index_rebuild(
    ctx: typer.Context,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Build the index anew from the files."""
    with (
        open_memory(ctx, brain, namespace) as memory,
        progress("indexing", unit="files", quiet=as_json) as tell,
    ):
        report = memory.rebuild_index(progress=tell)
        count = memory.store.get_stats()["chunk_count"]
    if as_json:
        print_json({"chunks": count, **plain(report)})
        return
    screen().print(text(f"indexed {amount(count, 'chunk')}"))
    _unreadable(report)


def sync(
    ctx: typer.Context,
    full: Annotated[
        bool, options.flag("--full", help="Look at every file, not only at changed folders.")
    ] = False,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Take in what was edited by hand, by git or by another program."""
    with open_memory(ctx, brain, namespace) as memory:
        report = memory.sync(full=full)
    if as_json:
        print_json(report)
        return
    console = screen()
    for verb in ("added", "changed", "removed"):
        for path in getattr(report, verb):
            console.print(text(f"{verb}  {path}"))
    _unreadable(report)
    if not report:
        console.print(text("the index agrees with the files", "dim"))


def _unreadable(report: SyncReport) -> None:
    for path in report.unreadable:
        screen().print(text(f"unreadable  {path}  (rlm-mem check says why)", "yellow"))


def checkpoint(
    ctx: typer.Context,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Write into the files what only the index knows: access counts, and the JSON views."""
    with open_memory(ctx, brain, namespace) as memory:
        report = memory.store.checkpoint()
    if as_json:
        print_json(report)
    else:
        written = f"access counts of {amount(report['access_counts_folded'], 'chunk')} and {', '.join(report['views'])}"
        screen().print(text(f"wrote {written}"))
