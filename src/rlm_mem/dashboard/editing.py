"""What is done to one memory: edit, archive, restore, go back to a version, remove for good, link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlm_mem.dashboard.diffs import word_diff
from rlm_mem.dashboard.memories import tags_of
from rlm_mem.dashboard.memory_page import present_or_archived
from rlm_mem.dashboard.words import address, day
from rlm_mem.errors import ConflictError, InputError, NotFoundError

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.chunk import Chunk
    from rlm_mem.dashboard.visits import Visit

__all__ = ["act", "edit_page", "save"]

_FIELDS = ("content", "tags", "type", "confidence", "valid_from", "valid_to")


def edit_page(visit: Visit) -> Response:
    """The form with the memory as it is."""
    chunk, archived = present_or_archived(visit.memory, visit.part("chunk_id"))
    if archived:
        raise InputError("an archived memory cannot be edited", hint="Restore it first.")
    return _form(visit, chunk, _given_by(chunk))


def save(visit: Visit) -> Response:
    """Write the form, unless somebody else was quicker: then both texts are shown and nothing is lost."""
    memory, chunk_id = visit.memory, visit.part("chunk_id")
    given = {name: visit.text(name, 0) for name in _FIELDS}
    revision = visit.number("revision", 0, 0, 1_000_000_000)
    before = memory.store.get_chunk(chunk_id, track=False)
    if before is None:
        raise NotFoundError(
            f"there is no memory {chunk_id} any more",
            hint="It was archived or removed meanwhile; go back to copy your text.",
        )
    try:
        confidence = float(given["confidence"] or before.metadata.confidence)
        changed = memory.update(
            chunk_id,
            content=given["content"],
            tags=tags_of(given["tags"]),
            chunk_type=given["type"] or None,
            confidence=confidence,
            metadata=_validity(before, given),
            expected_revision=revision,
        )
    except ConflictError:
        theirs, _ = present_or_archived(memory, chunk_id)
        return _conflict(visit, theirs, given)
    except (InputError, ValueError) as error:
        hint = getattr(error, "hint", None)
        return _form(visit, before, given, problem=f"{error}{'. ' + hint if hint else ''}", revision=revision)
    if changed is None:
        raise NotFoundError(f"there is no memory {chunk_id} any more")
    return visit.go(
        address("/memories", chunk_id), "saved" if changed.revision != before.revision else "unchanged"
    )


def act(visit: Visit) -> Response:
    """Carry out one of the small forms of the page of a memory."""
    memory, chunk_id, what = visit.memory, visit.part("chunk_id"), visit.text("do", 40)
    here = address("/memories", chunk_id)
    done: Any
    if what == "archive":
        done, notice = memory.delete(chunk_id), "archived"
    elif what == "restore":
        done, notice = memory.restore(chunk_id), "restored"
    elif what == "revert":
        revision = visit.number("revision", 0, 0, 1_000_000_000)
        done, notice = memory.undo(chunk_id, to_revision=revision), "reverted"
    elif what == "erase":
        done, notice, here = memory.delete(chunk_id, permanent=True), "erased", "/memories"
    elif what == "link":
        done, notice = _link(visit, chunk_id), "linked"
    elif what == "unlink":
        source, target = chunk_id, visit.text("target", 200)
        if visit.text("direction", 3) == "in":
            source, target = target, source
        done, notice = memory.unlink(source, target, visit.text("type", 100) or None), "unlinked"
    else:
        raise InputError("this form says nothing that can be done")
    if not done:
        raise NotFoundError("that is not there any more", hint="Somebody else may have been quicker.")
    return visit.go(here, notice)


def _link(visit: Visit, chunk_id: str) -> bool:
    said = visit.text("strength", 10).strip()
    try:
        strength = float(said or 0.5)
    except ValueError:
        raise InputError(f"strength must be a number from 0 to 1, not {said!r}") from None
    return visit.memory.link(
        chunk_id,
        visit.text("target", 200).strip(),
        visit.text("type", 100),
        strength,
        visit.text("reasoning", 2_000).strip() or None,
    )


# --- the form ---------------------------------------------------------------------------------------------


def _given_by(chunk: Chunk) -> dict[str, str]:
    about = chunk.metadata
    return {
        "content": chunk.content,
        "tags": ", ".join(chunk.tags),
        "type": chunk.type,
        "confidence": f"{about.confidence:g}",
        "valid_from": day(about.valid_from),
        "valid_to": day(about.valid_to),
    }


def _validity(chunk: Chunk, given: dict[str, str]) -> dict[str, str | None]:
    """The period that the form asks for; a day that was not touched keeps its time of day."""
    fields: dict[str, str | None] = {}
    for name in ("valid_from", "valid_to"):
        if given[name].strip() != day(getattr(chunk.metadata, name)):
            fields[name] = given[name].strip() or None
    return fields


def _form(
    visit: Visit, chunk: Chunk, given: dict[str, str], *, problem: str = "", revision: int | None = None
) -> Response:
    return visit.page(
        "edit.html",
        status=400 if problem else 200,
        chunk=chunk,
        given=given,
        revision=chunk.revision if revision is None else revision,
        problem=problem,
        types=sorted({*visit.memory.store.types.chunk_types, chunk.type}),
    )


def _conflict(visit: Visit, theirs: Chunk, given: dict[str, str]) -> Response:
    return visit.page(
        "conflict.html",
        status=409,
        chunk=theirs,
        given=given,
        diff=word_diff(theirs.content, given["content"]),
        types=sorted({*visit.memory.store.types.chunk_types, theirs.type}),
    )
