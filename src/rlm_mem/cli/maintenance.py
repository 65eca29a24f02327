"""Creating and maintaining a memory: init, check, repair, rebuild, sync, checkpoint."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from rlm_mem.cli.call import Call, shown_place
from rlm_mem.cli.options import argument, flag
from rlm_mem.cli.settings import settings_file
from rlm_mem.cli.terminal import amount, plain, print_json, print_text, text
from rlm_mem.errors import StoreReadOnly
from rlm_mem.ingest.noise import noisy_links, prune_links
from rlm_mem.persona.library import Library
from rlm_mem.store.core.findings import Finding
from rlm_mem.store.core.integrity import Repair
from rlm_mem.store.core.records import SyncReport
from rlm_mem.store.local.folder import Layout


def init(
    call: Call,
    folder: Annotated[
        str | None,
        argument(
            "[PATH]", "The folder to create, or postgresql://…. Default: RLM_MEM_BRAIN, else brain/ here."
        ),
    ] = None,
) -> None:
    """Create a memory: folder, settings, personalities, sliders and gauges. Existing files are kept."""
    inside = Path("memory", "chunks").is_dir()  # within a brain: use that one, not another inside it
    default = str(Path.cwd()) if inside else "brain"
    call = call.at(folder if folder is not None else call.brain or os.environ.get("RLM_MEM_BRAIN") or default)
    target = call.place
    if isinstance(target, str):
        _init_database(call, target)
        return
    existed = (target / "memory").is_dir()
    with call.open(create=True):
        settings = target / "config.toml"
        with contextlib.suppress(FileExistsError), settings.open("x", encoding="utf-8") as file:
            file.write(settings_file())
        Layout(target / "memory").prepare_for_git()
        Library(target).copy_defaults()
    call.report(
        {"brain": str(target), "created": not existed},
        f"{'there is already a memory at' if existed else 'created a memory at'} {target}",
    )


def _init_database(call: Call, dsn: str) -> None:
    """Create the tables, and the personalities, sliders and gauges of the namespace."""
    place = shown_place(dsn)
    with call.open(create=True) as memory:
        existed = any(name == memory.store.namespace for name, _ in memory.store.namespaces())
        memory.persona().library.copy_defaults()
    call.report(
        {"brain": place, "created": not existed},
        f"{'there is already a memory in' if existed else 'created a memory in'} {place}",
    )


_LINKS = flag("--links", "Include automatic links of earlier rules that the current rules would not make.")


def check(call: Call, links: Annotated[bool, _LINKS] = False) -> None:
    """Check files, links and index against each other without changing anything; exit with 1 on findings."""
    with _named_once(), call.with_progress("checking", "files") as (memory, update):
        findings = memory.check(progress=update)
        if links:
            findings += noisy_links(memory.store, progress=update)
    if call.json:
        print_json({"ok": not findings, "findings": findings})
    elif findings:
        for finding in findings:
            _show_finding(finding)
        print_text(
            f"{amount(len(findings), 'finding')}; rlm-mem store repair{' --links' * links} shows the repairs",
            "bold",
        )
    else:
        print_text("no findings", "green")
    if findings:
        raise typer.Exit(1)


def repair(
    call: Call,
    apply: Annotated[bool, flag("--apply", "Make the repairs. Default: only show them.")] = False,
    links: Annotated[bool, _LINKS] = False,
) -> None:
    """Repair what check finds; without --apply, only show the repairs."""
    with _named_once(), call.with_progress("repairing", "files") as (memory, update):
        repairs = memory.repair(dry_run=not apply, progress=update)
        if links:
            repairs += prune_links(memory.store, dry_run=not apply, progress=update)
    failed = [one for one in repairs if one.error]
    again = "rlm-mem store repair" + " --links" * links + " --apply"
    data = {"applied": apply, "repairs": repairs}
    call.report(data, lambda: _show_repairs(repairs, applied=apply, again=again))
    if failed:
        raise typer.Exit(1)


@contextlib.contextmanager
def _named_once() -> Iterator[None]:
    """Leave out the log's lines about unreadable chunk files: the findings name them."""

    def is_other(record: logging.LogRecord) -> bool:
        return "unreadable chunk file" not in record.msg

    log = logging.getLogger("rlm_mem.store")
    log.addFilter(is_other)
    try:
        yield
    finally:
        log.removeFilter(is_other)


def _show_finding(finding: Finding) -> None:
    concerned = finding.chunk_id or finding.file or "index"
    print_text(text(f"{finding.code}  ", "yellow") + text(concerned, "cyan"))
    print_text(finding.message, indent=4)


def _show_repairs(repairs: Sequence[Repair], *, applied: bool, again: str) -> None:
    if not repairs:
        print_text("nothing to repair", "green")
        return
    for one in repairs:
        _show_finding(one.finding)
        if one.error:
            print_text(f"failed: {one.error}", "red", indent=4)
        else:
            planned = "not done" if applied else "would be done"
            state = "for you to decide" if one.manual else ("done" if one.done else planned)
            print_text(f"{state}: {one.action}", "yellow" if one.manual else "green", indent=4)
    manual = sum(one.manual for one in repairs)
    repaired = sum(one.done for one in repairs)
    rest = len(repairs) - manual
    summary = f"{amount(repaired, 'repair')} done" if applied else f"{amount(rest, 'repair')} to do: {again}"
    print_text(summary + (f"; {manual} for you to decide" if manual else ""), "bold")


def rebuild(call: Call) -> None:
    """Rebuild the index from the files."""
    with call.with_progress("indexing", "files") as (memory, update):
        report = memory.rebuild_index(progress=update)
        count = memory.store.totals()["chunk_count"]
    if call.printed_json({"chunks": count, **plain(report)}):
        return
    print_text(f"indexed {amount(count, 'chunk')}")
    _unreadable(report)


def sync(
    call: Call, full: Annotated[bool, flag("--full", "Check every file, not only changed folders.")] = False
) -> None:
    """Index files edited by hand, by git or by other programs."""
    with call.open() as memory:
        if memory.store.backend.read_only:
            raise StoreReadOnly(
                f"{call.place} cannot be written: nothing was indexed",
                hint="check the folder's permissions, and how its disk is mounted",
            )
        report = memory.sync(full=full)
    if call.printed_json(report):
        return
    for verb in ("added", "changed", "removed"):
        for path in getattr(report, verb):
            print_text(f"{verb}  {path}")
    _unreadable(report)
    if not report:
        is_database = isinstance(call.place, str)
        print_text(
            "a database has no files to index" if is_database else "the index matches the files", "dim"
        )


def _unreadable(report: SyncReport) -> None:
    for path in report.unreadable:
        print_text(f"unreadable  {path}  (see rlm-mem store check)", "yellow")


def checkpoint(call: Call) -> None:
    """Write to files what only the index has: access counts, and the JSON views."""
    with call.open() as memory:
        report = memory.store.checkpoint()
    counts = f"access counts of {amount(report['access_counts_folded'], 'chunk')}"
    # A database has no views.
    call.report(report, f"wrote {' and '.join(filter(None, (counts, ', '.join(report['views']))))}")
