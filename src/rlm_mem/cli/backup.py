"""Keeping a memory safe and small: backup, vacuum, and what ``restore`` does with a backup."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlm_mem.cli import options
from rlm_mem.cli.open import brain_place, named_namespace, open_memory, shown_place
from rlm_mem.cli.terminal import amount, pairs, print_json, progress, screen, table, text
from rlm_mem.errors import InputError

if TYPE_CHECKING:
    from rlm_mem.store.core.backup_archive import BackupInfo

PANEL = "Care"


def add_to(app: typer.Typer) -> None:
    """Register the commands of this module."""
    for command in (backup, vacuum):
        app.command(command.__name__, rich_help_panel=PANEL)(command)


def backup(
    ctx: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="The file to write, or with --verify to read. Else NAME-DATE.tar.gz, here.",
            show_default=False,
        ),
    ] = None,
    verify: Annotated[
        bool, options.flag("--verify", help="Only read a backup and compare it with its manifest.")
    ] = False,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Write everything into one compressed file, as it is at one moment, while others go on writing."""
    from rlm_mem.store.core.backup_archive import read_backup

    if verify:
        if file is None:
            raise InputError("--verify needs the backup to read", hint="rlm-mem backup --verify FILE")
        with progress("reading", unit="files", quiet=as_json) as tell:
            info = read_backup(file, progress=tell)
        _show(file, info, "is whole", as_json)
        return
    from rlm_mem.store.backup import back_up

    place = brain_place(ctx, brain)
    name = (
        place.absolute().name
        if isinstance(place, Path)
        else shown_place(place).rsplit("/", 1)[-1].split("?")[0]
    )
    target = file or Path(f"{name or 'memory'}-{time.strftime('%Y%m%d-%H%M%S')}.tar.gz")
    with (
        open_memory(ctx, brain, namespace) as memory,
        progress("packing", unit="files", quiet=as_json) as tell,
    ):
        info = back_up(memory.store, target, only=named_namespace(ctx, namespace), progress=tell)
    _show(target, info, "holds everything", as_json)


def _show(file: Path, info: BackupInfo, said: str, as_json: bool) -> None:
    size = file.stat().st_size
    if as_json:
        print_json({"file": str(file), "size": size, **vars(info)})
        return
    screen().print(text(f"{file} {said}", "green"))
    screen().print(
        pairs(
            [
                ("state of", info.made_at or "–"),
                ("chunks", f"{info.chunks:,} in {amount(len(info.namespaces), 'namespace')}"),
                ("files", f"{info.files:,}, {megabytes(info.bytes)} unpacked"),
                ("size", megabytes(size)),
            ]
        )
    )


def restore_backup(
    ctx: typer.Context, file: Path, brain: str | None, *, replace: bool, as_json: bool
) -> None:
    """What ``rlm-mem restore FILE`` does."""
    from rlm_mem.store.backup import bring_back

    place = brain_place(ctx, brain)
    with progress("restoring", unit="files", quiet=as_json) as tell:
        restored = bring_back(file, place, replace=replace, progress=tell)
    if as_json:
        print_json(restored)
        return
    screen().print(
        text(
            f"{shown_place(place)} is as it was at {restored.info.made_at}: {amount(restored.chunks, 'chunk')}",
            "green",
        )
    )
    if restored.kept:
        screen().print(text(f"what was there before is in {restored.kept}"))
    if restored.unreadable:
        screen().print(
            text(f"{amount(restored.unreadable, 'file')} did not validate: rlm-mem check says why", "yellow")
        )


def vacuum(
    ctx: typer.Context,
    as_json: options.Json = False,
    brain: options.Brain = None,
    namespace: options.Namespace = None,
) -> None:
    """Give back the room that the index takes without need; safe while others use the memory."""
    from rlm_mem.store.backup import vacuum as give_back

    with (
        open_memory(ctx, brain, namespace) as memory,
        progress("packing the index", unit="steps", quiet=as_json) as tell,
    ):
        done = give_back(memory.store, progress=tell)
    if as_json:
        print_json({"before": done.before, "after": done.after, "freed": done.freed})
        return
    shown = table("", ("before", {"justify": "right"}), ("after", {"justify": "right"}))
    for name, size in done.before.items():
        if size or done.after.get(name):
            shown.add_row(text(name), megabytes(size), megabytes(done.after.get(name, 0)))
    screen().print(shown)
    screen().print(
        text(f"{megabytes(abs(done.freed))} {'freed' if done.freed >= 0 else 'more than before'}", "green")
    )


def megabytes(size: int) -> str:
    """``1.2 MB``."""
    return f"{size / 1e6:,.1f} MB"
