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

    brain: Path | str | None = None
    namespace: str | None = None


def brain_place(ctx: typer.Context, brain: Path | str | None) -> Path | str:
    """The folder, or the DSN of the database, that a command works on."""
    from rlm_mem.config import locate

    return locate(named_brain(ctx, brain))


def named_brain(ctx: typer.Context, brain: Path | str | None) -> Path | str | None:
    """The folder or the DSN that the options name, or None when they name none."""
    from rlm_mem.dsn import checked_place

    named = brain or _before(ctx).brain
    return None if named is None else checked_place(named)


def named_namespace(ctx: typer.Context, namespace: str | None) -> str | None:
    """The namespace that the options name, or None when they name none."""
    return namespace or _before(ctx).namespace


def shown_place(place: Path | str) -> str:
    """A folder or a DSN as messages may show it: without a password."""
    from rlm_mem.dsn import shown_dsn

    return shown_dsn(place) if isinstance(place, str) else str(place)


def open_memory(
    ctx: typer.Context,
    brain: Path | str | None,
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
    place = brain_place(ctx, brain)
    named: dict[str, Any] = {"actor": "cli"}
    if isinstance(place, Path):
        if not create and not (place / "memory").is_dir():
            raise NotFoundError(
                f"there is no memory at {place}",
                hint="rlm-mem init makes one here; --brain PATH names another place.",
            )
        # A memory on a read-only disk, or somebody else's, can still be looked at.
        named["read_only"] = not create and not os.access(place / "memory", os.W_OK)
    from rlm_mem.memory import Memory

    if llm:
        named["llm"] = llm
    chosen = named_namespace(ctx, namespace)
    if chosen:
        named["namespace"] = chosen
    return Memory.open(place, **named)


def _before(ctx: typer.Context) -> Where:
    found = ctx.find_object(Where)
    return found if found is not None else Where()
