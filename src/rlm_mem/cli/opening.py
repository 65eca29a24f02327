"""From the options of a command to an open memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rlm_mem.errors import NotFoundError

if TYPE_CHECKING:
    from rlm_mem.memory import Memory


@dataclass(frozen=True)
class Where:
    """What stood before the command: ``rlm-mem --brain PATH --namespace NAME search …``."""

    brain: Path | None = None
    namespace: str | None = None


def brain_folder(ctx: typer.Context, brain: Path | None) -> Path:
    """The folder that a command works on; an option after the command goes before one ahead of it."""
    from rlm_mem.config import locate_brain

    return locate_brain(named_brain(ctx, brain))


def named_brain(ctx: typer.Context, brain: Path | None) -> Path | None:
    """The folder that the options name, or None when they name none."""
    return brain or _before(ctx).brain


def open_memory(
    ctx: typer.Context,
    brain: Path | None,
    namespace: str | None,
    *,
    create: bool = False,
    llm: str | None = None,
) -> Memory:
    """Open the memory that the options name.

    Args:
        create: make the folders when there is no memory yet; commands that only look do not.
        llm: who writes the programs; None means the configured model.

    Raises:
        NotFoundError: there is no memory at that place, and ``create`` is False.
    """
    folder = brain_folder(ctx, brain)
    if not create and not (folder / "memory").is_dir():
        raise NotFoundError(
            f"there is no memory at {folder}",
            hint="rlm-mem init makes one here; --brain PATH names another place.",
        )
    from rlm_mem.memory import Memory

    # A memory on a read-only disk, or somebody else's, can still be looked at.
    named: dict[str, Any] = {
        "actor": "cli",
        "read_only": not create and not os.access(folder / "memory", os.W_OK),
    }
    if llm:
        named["llm"] = llm
    chosen = namespace or _before(ctx).namespace
    if chosen:
        named["namespace"] = chosen
    return Memory.open(folder, **named)


def _before(ctx: typer.Context) -> Where:
    found = ctx.find_object(Where)
    return found if found is not None else Where()
