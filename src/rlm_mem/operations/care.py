"""Care over HTTP: check, repair (a dry run by default), checkpoint, sync, rebuild of the index."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from rlm_mem.operations.operation import Context, Operation
from rlm_mem.operations.tier_care import DryRun

__all__ = ["OPERATIONS"]

_GROUP = "care"


class FindingOut(Struct):
    """One thing that is not as it should be; ``file`` is relative to the store."""

    code: str
    message: str
    file: str | None
    chunk_id: str | None
    target_id: str | None
    link_type: str | None


class Checked(Struct):
    """What is not as it should be; empty in a sound memory."""

    findings: list[FindingOut]


class RepairOut(Struct):
    """What was, or would be, done about a finding; ``manual``: only a person can decide."""

    finding: FindingOut
    action: str
    done: bool
    manual: bool
    error: str | None


class Repaired(Struct):
    """What was, or with ``dry_run`` would be, mended."""

    dry_run: bool
    repairs: list[RepairOut]


class Synced(Struct):
    """Files that were added, changed or removed by hand since the index last saw them."""

    added: list[str]
    changed: list[str]
    removed: list[str]
    unreadable: list[str]


class Checkpointed(Struct):
    """What was written."""

    figures: dict[str, Any]


def _finding(one: Any) -> FindingOut:
    return FindingOut(one.code, one.message, one.file, one.chunk_id, one.target_id, one.link_type)


def _check(context: Context, _: object) -> Checked:
    return Checked([_finding(one) for one in context.memory.check()])


def _repair(context: Context, request: DryRun) -> Repaired:
    dry_run: bool = request.dry_run
    return Repaired(
        dry_run,
        [
            RepairOut(_finding(one.finding), one.action, one.done, one.manual, one.error)
            for one in context.memory.repair(dry_run=dry_run)
        ],
    )


def _checkpoint(context: Context, _: object) -> Checkpointed:
    return Checkpointed(context.memory.store.checkpoint())


def _synced(report: Any) -> Synced:
    return Synced(list(report.added), list(report.changed), list(report.removed), list(report.unreadable))


def _sync(context: Context, _: object) -> Synced:
    return _synced(context.memory.sync())


def _rebuild(context: Context, _: object) -> Synced:
    return _synced(context.memory.rebuild_index())


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", "/check", "check", "Every integrity check over files, links and index.", _GROUP,
        run=_check, response=Checked,
    ),
    Operation(
        "POST", "/repair", "repair", "Mend what can be mended without deleting content; by default a dry run.",
        _GROUP, run=_repair, request=DryRun, response=Repaired, writes=True,
    ),
    Operation(
        "POST", "/checkpoint", "checkpoint", "Fold access counts into the files and write the JSON views.", _GROUP,
        run=_checkpoint, response=Checkpointed, writes=True,
    ),
    Operation(
        "POST", "/sync", "sync", "Notice files changed by hand or by git.", _GROUP,
        run=_sync, response=Synced, writes=True,
    ),
    Operation(
        "POST", "/rebuild", "rebuildIndex", "Build the index anew from the files.", _GROUP,
        run=_rebuild, response=Synced, writes=True,
    ),
)  # fmt: skip
