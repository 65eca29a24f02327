"""`rlm-mem export` and `rlm-mem import`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rlm_mem.cli import options
from rlm_mem.cli.call import Call
from rlm_mem.cli.ids import full_id
from rlm_mem.cli.options import argument, flag, option
from rlm_mem.cli.terminal import amount, note, one_line, print_pairs, print_text, progress, resumable, safe
from rlm_mem.dsn import checked_path
from rlm_mem.errors import InputError
from rlm_mem.interchange import export_store, export_to_markdown, import_source
from rlm_mem.interchange.detection import format_named
from rlm_mem.interchange.importing import watch as watch_folder
from rlm_mem.interchange.report import ImportReport
from rlm_mem.memory import Memory
from rlm_mem.own_process import until_stopped
from rlm_mem.store.core.files import write_atomic


def export(
    call: Call,
    target: Annotated[
        str | None,
        argument(
            "[TARGET]",
            "A folder, or a file ending in .jsonl or .zip. With --chunk, - prints it, as by default.",
        ),
    ] = None,
    chunk: Annotated[str | None, option("--chunk", "ID", "Only this chunk, as one Markdown file.")] = None,
    format: Annotated[
        str | None, option("--format", "FORMAT", "markdown, jsonl or zip. Default: according to the target.")
    ] = None,
    no_archive: Annotated[
        bool, flag("--no-archive", "Leave out deleted chunks, and those in quarantine.")
    ] = False,
    history: Annotated[
        bool, flag("--history", "Also export former versions of chunks and the audit log.")
    ] = False,
    overwrite: Annotated[bool, flag("--overwrite", "Replace an earlier export.")] = False,
) -> None:
    """Export memories: a folder of Markdown that opens in Obsidian, JSON lines, or one zip archive."""
    with call.open() as memory:
        if chunk is not None:
            _export_one(memory, chunk, target, overwrite, call)
            return
        if target is None or target == "-":
            raise InputError(
                "no target was given", hint="name a folder, a file ending in .jsonl or .zip, or --chunk ID"
            )
        named = _is_one_namespace(call, memory)
        with progress("exporting", quiet=call.json) as update:
            report = export_store(
                memory.store,
                target,
                format=format,
                namespaces=[memory.store.namespace] if named else None,
                archive=not no_archive,
                history=history,
                overwrite=overwrite,
                progress=update,
            )
    if call.printed_json(report):
        return
    line = f"exported {amount(report.chunks, 'chunk')}"
    if report.archived:
        line += f", {report.archived:,} of the archive"
    if report.files:
        line += f", {amount(report.files, 'file')} of tiered memories, personas and records"
    if history:
        line += f", {amount(report.versions, 'former version')}, {amount(report.events, 'event')}"
    print_text(f"{line} to {report.target}")
    if report.unreadable:
        note(f"{amount(report.unreadable, 'chunk')} could not be read: see rlm-mem store check")


def _is_one_namespace(call: Call, memory: Memory) -> bool:
    """Whether the command names a namespace, and so applies to it alone."""
    return call.namespace is not None or memory.store.namespace != memory.config.store.namespace


def _export_one(memory: Memory, chunk_id: str, target: str | None, overwrite: bool, call: Call) -> None:
    chunk_id = full_id(memory, chunk_id)
    made = export_to_markdown(chunk_id, store=memory.store)
    if target is None or target == "-":
        if call.json:
            raise InputError(
                "a single chunk can only be printed as Markdown",
                hint=f"rlm-mem show {chunk_id} --json prints JSON",
            )
        sys.stdout.write(safe(made) if sys.stdout.isatty() else made)
        return
    path = checked_path(target)
    if path.is_dir():
        path = path / f"{chunk_id}.md"
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already", hint="use --overwrite to replace it")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a regular file", hint="name a file, or - for the output")
    write_atomic(path.resolve(), made.encode("utf-8"))
    call.report({"chunk_id": chunk_id, "target": str(path)}, f"exported {chunk_id} to {path}")


def import_(
    call: Call,
    source: Annotated[Path, argument("SOURCE", "A file, a folder or a zip archive.", parser=options.path)],
    dry_run: Annotated[bool, flag("--dry-run", "Only show what would happen.")] = False,
    format: Annotated[
        str | None, option("--format", "FORMAT", "Read every file in this format. Default: detect it.")
    ] = None,
    replace: Annotated[
        bool, flag("--replace", "Let imported chunks replace existing ones, even newer revisions.")
    ] = False,
    again: Annotated[bool, flag("--again", "Read imported files again, even unchanged ones.")] = False,
    history: Annotated[
        bool,
        flag(
            "--history", "Also import former versions and the audit log; only from a source that you trust."
        ),
    ] = False,
    duplicates: Annotated[
        bool, flag("--duplicates", "Also store chunks that the memory has under another id.")
    ] = False,
    secrets: options.Secrets = None,
    trust: Annotated[
        str | None, option("--trust", "LEVEL", "Limit the trust that imported chunks claim.")
    ] = None,
    watch: Annotated[
        bool, flag("--watch", "Keep running, and import new and changed files of a folder.")
    ] = False,
    every: options.Every = 2.0,
) -> None:
    """Import memories, chats and notes from this and other tools; the format is detected, nothing is stored twice."""
    if watch and (dry_run or replace or again or format or history or duplicates or secrets or trust):
        raise InputError(
            "--watch cannot be combined with --dry-run, --format, --replace, --again, --history, --duplicates, "
            "--secrets, --trust"
        )

    def show(report: ImportReport) -> None:
        call.report(report.as_dict(), lambda: _show(call, report))

    with resumable(), call.writing(dry_run=dry_run) as memory:
        if watch:
            note(f"watching {source}; Ctrl-C ends it")
            with until_stopped():
                watch_folder(memory.store, source, seconds=every, on_report=show)
            return
        named = _is_one_namespace(call, memory)
        with progress("importing", unit="KiB", quiet=call.json) as update:
            report = import_source(
                memory.store,
                source,
                format=format,
                dry_run=dry_run,
                keep_namespaces=not named,
                replace=replace,
                again=again,
                history=history,
                duplicates=duplicates,
                secrets=secrets,
                trust=trust,
                progress=lambda done, total: update(done // 1024, max(1, total // 1024)),
            )
    show(report)
    if report.problem_count and not report.read_anything:
        raise typer.Exit(1)


_SHOWN = 5  # new chunks of a dry run


def _show(call: Call, report: ImportReport) -> None:
    title = "would be imported" if report.dry_run else "imported"
    print_text(f"{title}: {amount(report.created, 'new chunk')} from {report.source}", "bold")
    for name, count in report.formats.items():
        print_text(f"  {format_named(name).description or name}: {amount(count, 'file')}")
    rows: list[tuple[str, int]] = [
        ("messages", report.messages),
        ("changed", report.updated),
        ("already known", report.known),
        ("different here, and kept", report.kept),
        ("superseded by changed text", report.superseded),
        ("moved to the archive", report.archived),
        ("restored from the archive", report.restored),
        ("linked with other notes", report.documents.chunks_linked if report.documents else 0),
        ("persona files", report.persona_files),
        ("files of tiered memories and records", report.brain_files),
        ("former versions", report.versions),
        ("events of the audit log", report.events),
        ("files unchanged since last time", report.unchanged_files),
        ("other files, without memories", report.passed_over),
        ("ids mapped", len(report.mapped)),
    ]
    shown = [(f"  {name}", f"{count:,}") for name, count in rows if count]
    if len(report.namespaces) > 1:
        shown += [(f"  into {name}", f"{count:,}") for name, count in sorted(report.namespaces.items())]
    if shown:
        print_pairs(shown)
    if report.documents is not None and report.documents.moved_from is not None:
        print_text(f"note: it is the folder {report.documents.moved_from}, which was moved here", "yellow")
    if report.secrets:
        named = ", ".join(f"{rule}: {count:,}" for rule, count in sorted(report.secrets.items()))
        total = sum(report.secrets.values())
        hidden = "would be redacted" if report.dry_run else "redacted"
        print_text(
            f"secrets: {report.secrets_hidden:,} {hidden}, {total - report.secrets_hidden:,} as they are ({named})",
            "yellow",
        )
    for sample in report.samples[:_SHOWN]:
        print_text(f"  {one_line(sample.where, 120)}: {one_line(sample.text)}", "dim")
    if report.created > _SHOWN and report.samples:
        print_text(f"  and {report.created - _SHOWN:,} more new chunks", "dim")
    if report.change:
        print_text(f"  {call.undo_command(report.change)} undoes it", "dim", wrap=False)
    for notice in report.notices[:10]:
        print_text(f"note: {one_line(notice.where, 120)}: {one_line(notice.text)}", "yellow")
    for name, entries, total in (
        ("kept", report.conflicts, report.kept),
        ("not read", report.problems, report.problem_count),
    ):
        for entry in entries[:10]:
            print_text(f"{name}: {one_line(entry.where, 120)}: {one_line(entry.reason)}", "yellow")
        if total > 10:
            print_text(f"{name}: {total - 10:,} more (--json names all)", "yellow")
