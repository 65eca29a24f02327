"""Several changes over HTTP in one transaction: all of them are made, or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from rlm_mem.errors import RlmMemError
from rlm_mem.operations import chunks, links
from rlm_mem.operations.chunks import ChunkChange, DeleteQuery, NewChunk, UndoRequest
from rlm_mem.operations.fitting import Reply
from rlm_mem.operations.links import LinkRequest, LinkState, UnlinkQuery
from rlm_mem.operations.operation import Context, Operation
from rlm_mem.operations.problems import FieldError, Problem, Refused, problem, problem_of, refused
from rlm_mem.operations.remembering import RememberRequest, to_remember
from rlm_mem.operations.shapes import ChunkOut
from rlm_mem.operations.traits import PreconditionFailed
from rlm_mem.operations.types import LinkType, Request, Revision, about, matching
from rlm_mem.store.core.records import is_mirror

MAX_STEPS = 5_000
MAX_BYTES = 32 * 1024 * 1024

Target = Annotated[
    str,
    matching(
        "(?:chunk-[A-Za-z0-9][A-Za-z0-9_-]{0,119}|#[0-9]{1,4})",
        "Id of a chunk, or #N: the first chunk of step N of this batch, counted from 0.",
        examples=["chunk-2026-02-10-a1b2c3d4", "#0"],
    ),
]
AtRevision = Annotated[Revision, about("Only if the chunk is at this revision; else nothing is done.")]


class Remember(RememberRequest, tag_field="do", tag="remember", kw_only=True):
    """`POST /remember`."""


class Create(NewChunk, tag_field="do", tag="create", kw_only=True):
    """`POST /chunks`."""


class Update(ChunkChange, tag_field="do", tag="update", kw_only=True):
    """`PATCH /chunks/ID`."""

    chunk_id: Target
    if_revision: AtRevision | None = None


class Undo(UndoRequest, tag_field="do", tag="undo", kw_only=True):
    """`POST /chunks/ID/undo`."""

    chunk_id: Target
    if_revision: AtRevision | None = None


class Delete(DeleteQuery, tag_field="do", tag="delete", kw_only=True):
    """`DELETE /chunks/ID`."""

    chunk_id: Target
    if_revision: AtRevision | None = None


class Restore(Request, tag_field="do", tag="restore", kw_only=True):
    """`POST /chunks/ID/restore`."""

    chunk_id: Target
    if_revision: AtRevision | None = None


class Link(LinkRequest, tag_field="do", tag="link", kw_only=True):
    """`PUT /chunks/ID/links/TYPE/TARGET`."""

    chunk_id: Target
    target_id: Target
    link_type: LinkType
    if_revision: AtRevision | None = None


class Unlink(UnlinkQuery, tag_field="do", tag="unlink", kw_only=True):
    """`DELETE /chunks/ID/links/TARGET`."""

    chunk_id: Target
    target_id: Target
    if_revision: AtRevision | None = None


Step = Remember | Create | Update | Undo | Delete | Restore | Link | Unlink


class BatchRequest(Request):
    """Changes in the order in which they are made."""

    steps: Annotated[list[Step], Meta(min_length=1, max_length=MAX_STEPS)]


class StepDone(Struct):
    """The result of one step: the chunks that it created or changed, and the revision of a changed one."""

    do: str
    chunk_ids: list[str]
    revision: int | None


class BatchDone(Struct):
    """The results of the steps, in order."""

    steps: list[StepDone]


#: Each step runs the function of the corresponding HTTP address, so that the same rules apply to both.
_FUNCTIONS: dict[type[Request], Callable[[Context, Any], Any]] = {
    Create: chunks.create, Update: chunks.change, Undo: chunks.undo,
    Delete: chunks.delete, Restore: chunks.restore, Link: links.link, Unlink: links.unlink,
}  # fmt: skip


def _batch(context: Context, request: BatchRequest) -> BatchDone:
    done: list[StepDone] = []
    context = replace(context, in_batch=True)
    with context.memory.batch():
        for texts, steps in groupby(request.steps, lambda step: isinstance(step, Remember)):
            if texts:
                done += _remember(context, [step for step in steps if isinstance(step, Remember)], len(done))
                continue
            for step in steps:
                try:
                    done.append(_run_step(context, step, done))
                except (RlmMemError, Refused) as error:
                    raise Refused(_step_problem(error, len(done), step)) from error
    return BatchDone(done)


def _remember(context: Context, steps: Sequence[Remember], first: int) -> list[StepDone]:
    """Remember the texts of consecutive steps in one call."""

    def refuse(place: int, error: Exception) -> None:
        raise Refused(_step_problem(error, first + place, steps[place])) from error

    items = []
    for place, step in enumerate(steps):
        try:
            items.append(to_remember(context, step))
        except (RlmMemError, Refused) as error:
            refuse(place, error)
    made = context.memory.remember_many(items, batch=len(items), refused=refuse)
    return [StepDone("remember", one.chunk_ids, None) for one in made]


def _run_step(context: Context, step: Step, done: list[StepDone]) -> StepDone:
    path = {
        name: _chunk_id(given, done) if name in ("chunk_id", "target_id") else given
        for name in ("chunk_id", "target_id", "link_type")
        if (given := getattr(step, name, None)) is not None
    }
    if isinstance(step, Delete | Restore) and is_mirror(path["chunk_id"]):
        raise refused(409, f"{path['chunk_id']} is a tiered memory, which is archived on its own")
    revision = getattr(step, "if_revision", None)
    answer = _FUNCTIONS[type(step)](
        # A step has the same fields as the body and parameters of its address.
        replace(context, path=path, if_match=None if revision is None else f'"{revision}"'),
        step,
    )
    made = answer.data if isinstance(answer, Reply) else answer
    kind = str(type(step).__struct_config__.tag)
    if isinstance(made, ChunkOut):
        return StepDone(kind, [made.id], made.revision)
    if isinstance(made, LinkState):
        return StepDone(kind, [made.source_id], None)
    return StepDone(kind, [path["chunk_id"]], None)


def _chunk_id(named: str, done: list[StepDone]) -> str:
    if not named.startswith("#"):
        return named
    number = int(named[1:])
    if number >= len(done) or not done[number].chunk_ids:
        raise refused(409, f"{named}: no earlier step with that number created a chunk")
    return done[number].chunk_ids[0]


def _step_problem(error: Exception, number: int, step: Step) -> Problem:
    """Return the problem of a step, with the number of the step; nothing of the batch was done."""
    if isinstance(error, PreconditionFailed):  # no header named the revision, so 412 would mislead
        why = problem(409, error.message, hint="read it again")
    else:
        why = problem_of(error)
    kind = type(step).__struct_config__.tag
    return msgspec.structs.replace(
        why,
        detail=f"step {number} ({kind}): {why.detail}; nothing of the batch was done",
        errors=[FieldError(why.detail, f"/steps/{number}")],
    )


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", "/batch", "batch", "Make several changes in one transaction: all of them, or none.", "chunks",
        run=_batch, writes=True, max_bytes=MAX_BYTES,
        description="If a step fails, its problem names the step (`/steps/N`), and nothing is done.",
    ),
)  # fmt: skip
