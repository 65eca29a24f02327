"""Backup, restore and vacuum."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from rlm_mem.cli.call import Call, shown_place
from rlm_mem.cli.options import argument, flag
from rlm_mem.cli.terminal import RIGHT, amount, print_json, print_pairs, print_table, print_text, progress
from rlm_mem.errors import InputError
from rlm_mem.store.backup import back_up, restore_backup, vacuum as vacuum_store
from rlm_mem.store.core.backup_archive import BackupInfo, read_backup

_MAX_LISTED = 10
"""Maximum number of left-out files that are listed."""


def backup(
    call: Call,
    file: Annotated[
        Path | None,
        argument("[FILE]", "The file to write, or with --verify to read. Default: NAME-DATE.tar.gz here."),
    ] = None,
    verify: Annotated[bool, flag("--verify", "Only read a backup and compare it with its manifest.")] = False,
) -> None:
    """Write a consistent snapshot of everything into one compressed file, while others keep writing."""
    if verify:
        if file is None:
            raise InputError("--verify needs a backup file", hint="rlm-mem store backup --verify FILE")
        with progress("reading", unit="files", quiet=call.json) as update:
            info = read_backup(file, progress=update)
        _show(file, info, "is complete", call.json)
        return
    place = call.place
    name = (
        place.absolute().name
        if isinstance(place, Path)
        else shown_place(place).rsplit("/", 1)[-1].split("?")[0]
    )
    target = file or Path(f"{name or 'memory'}-{time.strftime('%Y%m%d-%H%M%S')}.tar.gz")
    if target.suffix.lower() in (".zip", ".jsonl"):
        raise InputError(
            f"a backup is a tar.gz file, and {target} has another suffix",
            hint=f"name it {target.stem}.tar.gz; rlm-mem export writes {target.suffix}",
        )
    with call.with_progress("writing", "files") as (memory, update):
        info = back_up(memory.store, target, only=call.namespace, progress=update)
    but = " except for the files below" if info.left_out else ""
    of = f" in namespace {call.namespace}" if call.namespace else ""
    _show(target, info, f"contains everything{of}{but}", call.json)


def _show(file: Path, info: BackupInfo, status: str, as_json: bool) -> None:
    size = file.stat().st_size
    if as_json:
        print_json({"file": str(file), "size": size, **vars(info)})
        return
    print_text(f"{file} {status}", "yellow" if info.left_out else "green", wrap=False)
    print_pairs(
        [
            ("made at", info.made_at or "–"),
            ("chunks", f"{info.chunks:,} in {amount(len(info.namespaces), 'namespace')}"),
            ("files", f"{info.files:,}, {megabytes(info.bytes)} unpacked"),
            ("size", megabytes(size)),
        ]
    )
    for name in info.left_out[:_MAX_LISTED]:
        print_text(f"left out: {name}", "yellow", wrap=False)
    if info.left_out:
        more = len(info.left_out) - _MAX_LISTED
        print_text(
            f"{f'and {more:,} more; ' if more > 0 else ''}links, and names that are not Unicode text or have a "
            "backslash or a control character, cannot be backed up: rename them, or replace links by their files",
            "yellow",
        )


def restore(
    call: Call,
    file: Annotated[Path, argument("FILE", "A file written by rlm-mem store backup.")],
    replace: Annotated[bool, flag("--replace", "Replace an existing memory, which is set aside.")] = False,
) -> None:
    """Restore a whole memory from a backup to the place of --brain, which must be empty unless --replace is given."""
    place = call.place
    with progress("restoring", unit="files", quiet=call.json) as update:
        restored = restore_backup(file, place, replace=replace, progress=update)
    if call.printed_json(restored):
        return
    print_text(
        f"{shown_place(place)} restored as of {restored.info.made_at}: {amount(restored.chunks, 'chunk')}",
        "green",
    )
    if restored.kept:
        print_text(f"the previous memory is in {restored.kept}")
    if restored.unreadable:
        print_text(
            f"{amount(restored.unreadable, 'file')} did not validate: see rlm-mem store check", "yellow"
        )


def vacuum(call: Call) -> None:
    """Free space that the index does not need; safe while others use the memory."""
    with call.with_progress("compacting the index", "steps") as (memory, update):
        done = vacuum_store(memory.store, progress=update)
    if call.printed_json({"before": done.before, "after": done.after, "freed": done.freed}):
        return
    rows = (
        (name, megabytes(size), megabytes(done.after.get(name, 0)))
        for name, size in done.before.items()
        if size or done.after.get(name)
    )
    print_table(("", ("before", RIGHT), ("after", RIGHT)), rows)
    print_text(f"{megabytes(done.freed)} freed" if done.freed >= 50_000 else "nothing to free", "green")


def megabytes(size: int) -> str:
    """Return a size in bytes as text, such as ``1.2 MB``, or ``12 kB`` where that would be less than 0.1 MB."""
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 or not size else f"{max(1, round(size / 1e3))} kB"
