"""One memory on several machines: copying it between folders and databases, and spreading namespaces over databases."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from rlm_mem.cli.call import BrainCall, Call, JsonCall, shown_place
from rlm_mem.cli.options import argument, flag, option
from rlm_mem.cli.terminal import RIGHT, amount, print_json, print_text, progress
from rlm_mem.errors import InputError
from rlm_mem.store.core.backends import extra_postgres
from rlm_mem.store.core.contents import owners
from rlm_mem.store.core.copying import BothRuns, CopyReport, Difference, compare, copy_namespace, runs_of

Target = Annotated[str, argument("TARGET", "A brain folder, created if it is missing, or a DSN.")]
ToDatabase = Annotated[str, option("--to", "DSN", "The database: postgresql://USER@HOST/NAME.")]
Name = Annotated[str, argument("NAMESPACE", "The namespace.")]


def copy(
    call: Call,
    target: Target,
    all_namespaces: Annotated[bool, flag("--all", "Copy every namespace, not only one.")] = False,
    overwrite: Annotated[
        bool, flag("--overwrite", "Replace chunks and files that differ in the target.")
    ] = False,
    mirror: Annotated[
        bool, flag("--mirror", "Also remove from the target what the source does not have.")
    ] = False,
    check_only: Annotated[bool, flag("--compare", "Copy nothing, only list the differences.")] = False,
) -> None:
    """Copy a whole memory between folders and databases, and compare the two; repeat it to copy what is missing."""
    results: list[dict[str, Any]] = []
    runs: BothRuns | None = None
    for name in _namespaces(call) if all_namespaces else [call.namespace]:
        with ExitStack() as both:
            source = both.enter_context(call.at(namespace=name).open()).store
            place = source.namespace
            there = both.enter_context(call.at(target, place).open(create=not check_only)).store
            runs = runs or runs_of(source, there)
            report: CopyReport | None = None
            if not check_only:
                with progress(f"copying {place}", quiet=call.json) as update:
                    report = copy_namespace(
                        source, there, overwrite=overwrite, mirror=mirror, progress=update, runs=runs
                    )
            with progress(f"comparing {place}", quiet=call.json) as update:
                differences = compare(source, there, update, runs=runs)
        results.append(
            {"namespace": place, "copied": report, "equal": not differences, "differences": differences}
        )
        if not call.json:
            _show(place, report, differences)
    if call.json:
        print_json(results)
    if not all(one["equal"] for one in results):
        raise typer.Exit(1)


def _namespaces(call: Call) -> list[str]:
    if call.namespace is not None:
        raise InputError("--all and --namespace exclude each other", hint="leave one of them out")
    with call.open() as memory:
        return owners(memory.store)


def _show(namespace: str, report: CopyReport | None, differences: list[Difference]) -> None:
    if report is not None:
        done = ", ".join(
            amount(count, noun)
            for count, noun in (
                (report.chunks, "chunk"),
                (report.versions, "former version"),
                (report.events, "event"),
                (report.files, "file"),
            )
        )
        print_text(f"{namespace}: copied {done}; {amount(report.already_there, 'chunk')} already there")
        for chunk_id in report.skipped:
            print_text(f"{chunk_id} cannot be read: see rlm-mem store check", "yellow", indent=2)
        for name in report.kept_files:
            print_text(f"{name} differs and was kept; --overwrite replaces it", "yellow", indent=2)
        if report.removed:
            print_text(f"{amount(report.removed, 'entry')} removed from the target", indent=2)
    for one in differences[:20]:
        print_text(f"{one.what} {one.message}", "red", indent=2)
    if len(differences) > 20:
        print_text(f"… and {len(differences) - 20:,} more", "red", indent=2)
    verdict = "both are equal" if not differences else f"{amount(len(differences), 'difference')}"
    print_text(f"{namespace}: {verdict}", "green" if not differences else "bold red")


# --- shards ----------------------------------------------------------------------------------------------------------


def _databases() -> ModuleType:
    """Load the module for several databases, which needs the extra ``postgres``."""
    with extra_postgres("a memory on several databases"):
        from rlm_mem.store.postgres import shards

    return shards


def _directory(call: BrainCall) -> str:
    place = call.place
    if isinstance(place, Path):
        raise InputError(
            f"{shown_place(place)} is a folder: namespaces are spread over databases",
            hint="--brain postgresql://… names the database that programs open; copy a folder there with store copy",
        )
    return place


def shards_list(call: BrainCall) -> None:
    """Show which database has which namespace."""
    found = _databases().shards(_directory(call))
    rows = ((one.namespace, f"{one.chunks:,}", one.place) for one in found)
    call.report_table(found, ("namespace", ("chunks", RIGHT), "database"), rows)


def shards_assign(call: BrainCall, namespace: Name, to: ToDatabase) -> None:
    """Assign a namespace that is not in the directory yet to a database."""
    _databases().assign(_directory(call), namespace, to)
    call.report(
        {"namespace": namespace, "database": shown_place(to)}, f"{namespace} is assigned to {shown_place(to)}"
    )


def shards_move(
    call: BrainCall,
    namespace: Name,
    to: ToDatabase,
    purge: Annotated[bool, flag("--purge", "Remove the rows in the old database afterwards.")] = False,
) -> None:
    """Move a namespace to another database while it is in use; both are compared before programs are redirected."""
    with progress(f"moving {namespace}", quiet=call.json) as update:
        report = _databases().move_namespace(_directory(call), namespace, to, purge=purge, progress=update)
    if call.printed_json(report):
        return
    if report.source == report.target:
        print_text(f"{namespace} is at {report.target}: nothing to move")
        return
    print_text(
        f"{namespace} moved from {report.source} to {report.target}: {amount(report.chunks, 'chunk')},"
        f" writers waited {report.held_up:.2f} s"
    )
    if not report.purged:
        print_text("the old rows remain: rlm-mem shards purge removes them", "dim", indent=2)


def shards_purge(
    call: JsonCall,
    namespace: Name,
    old: Annotated[str, option("--from", "DSN", "The database that it was moved from.")],
) -> None:
    """Remove the rows of a moved namespace from its old database; its forwarding address is kept."""
    rows = _databases().purge_moved(old, namespace)
    call.report(
        {"namespace": namespace, "rows_removed": rows},
        f"{amount(rows, 'row')} of {namespace} removed from {shown_place(old)}",
    )
