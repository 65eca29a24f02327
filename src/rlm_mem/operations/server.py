"""The server and its store: version and model, figures, check and repair, checkpoint, sync, index rebuild."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rlm_mem import __version__
from rlm_mem.errors import RlmMemError
from rlm_mem.operations.fitting import Bounded, MayBeCut
from rlm_mem.operations.links import TagCount
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.shapes import fill
from rlm_mem.operations.types import DryRun

if TYPE_CHECKING:
    from rlm_mem.memory import Memory

_GROUP = "server"


class About(Struct):
    """The server: its version, memory and model."""

    version: str
    namespace: str
    read_only: bool
    model: str
    chunk_types: list[str]
    link_types: list[str]


class Status(MayBeCut):
    """Figures of the memory, and the model that answers questions."""

    namespace: str
    version: str
    memories: int
    archived: int
    tokens: int
    conversations: int
    links: int
    first_at: str | None
    last_at: str | None
    by_type: dict[str, int]
    tags: list[TagCount]
    model: str
    read_only: bool
    open_recalls: int


def model_name(memory: Memory) -> str:
    """Return the name of the model that answers questions, or why there is none."""
    try:
        return memory.llm.name
    except RlmMemError as error:
        return f"not usable: {error}"


def _about(context: Context, _: object) -> About:
    store = context.memory.store
    return About(
        __version__, store.namespace, context.opened.settings.read_only, model_name(context.memory),
        list(store.types.chunk_types), list(store.types.link_types),
    )  # fmt: skip


def _status(context: Context, _: Bounded) -> Status:
    figures = context.memory.stats()
    return fill(
        Status,
        figures,
        version=__version__,
        memories=figures.chunk_count,
        archived=figures.archived_count,
        tokens=figures.total_tokens,
        tags=[TagCount(tag, count) for tag, count in context.memory.tags(20)],
        model=model_name(context.memory),
        read_only=context.opened.settings.read_only,
        open_recalls=len(context.handles),
    )


_MAINTENANCE = "care"


class FindingOut(Struct):
    """One defect; ``file`` is relative to the store."""

    code: str
    message: str
    file: str | None
    chunk_id: str | None
    target_id: str | None
    link_type: str | None


class Checked(Struct):
    """Every defect; empty in a sound memory."""

    findings: list[FindingOut]


class RepairOut(Struct):
    """The repair of a finding, done or planned; ``manual``: a person must decide."""

    finding: FindingOut
    action: str
    done: bool
    manual: bool
    error: str | None


class Repaired(Struct):
    """The repairs, done or (``dry_run``) planned."""

    dry_run: bool
    repairs: list[RepairOut]


class Synced(Struct):
    """Files that were added, changed or removed by hand since the last sync."""

    added: list[str]
    changed: list[str]
    removed: list[str]
    unreadable: list[str]


class Checkpointed(Struct):
    """Figures of what was written."""

    figures: dict[str, Any]


def _check(context: Context, _: object) -> Checked:
    return fill(Checked, findings=context.memory.check())


def _repair(context: Context, request: DryRun) -> Repaired:
    repairs = context.memory.repair(dry_run=request.dry_run)
    return fill(Repaired, request, repairs=repairs)


def _checkpoint(context: Context, _: object) -> Checkpointed:
    return Checkpointed(context.memory.store.checkpoint())


def _sync(context: Context, _: object) -> Synced:
    return fill(Synced, context.memory.sync())


def _rebuild(context: Context, _: object) -> Synced:
    return fill(Synced, context.memory.rebuild_index())


OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/about", "getAbout", "Version, memory, model of the server.", _GROUP, run=_about),
    Operation("GET", "/openapi.json", "getDocument", "This document.", _GROUP, response=dict[str, Any]),
    Operation(
        "", "", "getStatus", "Figures of the memory, and the model.", _GROUP, permission="read", run=_status,
        tool=Tool(
            name="status",
            title="Memory status",
            description="How many memories there are, of which types and tags, since when, and which model answers "
            "`recall`.",
        ),
    ),
    Operation(
        "POST", "/check", "check", "Run every integrity check on files, links and index.", _MAINTENANCE,
        permission="read", run=_check,
    ),
    Operation(
        "POST", "/repair", "repair", "Repair what can be repaired without deleting content; by default a dry run.",
        _MAINTENANCE, permission="admin", run=_repair, writes=True,
    ),
    Operation(
        "POST", "/checkpoint", "checkpoint", "Write access counts to the files, and the JSON views.", _MAINTENANCE,
        permission="admin", everywhere=True, run=_checkpoint, writes=True,
    ),
    Operation(
        "POST", "/sync", "sync", "Index files that were changed by hand or by git.", _MAINTENANCE, permission="admin",
        everywhere=True, run=_sync, writes=True,
    ),
    Operation(
        "POST", "/rebuild", "rebuildIndex", "Rebuild the index from the files.", _MAINTENANCE, permission="admin",
        everywhere=True, run=_rebuild, writes=True,
    ),
)  # fmt: skip
