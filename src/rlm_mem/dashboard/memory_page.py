"""One memory: its content, links, origin, versions, neighbours in its conversation, and who recalled it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rlm_mem.chunk import MANUAL_LINK_TYPES
from rlm_mem.dashboard.diffs import changed_fields, changed_links, word_diff
from rlm_mem.dashboard.markdown import render
from rlm_mem.dashboard.phrases import deed, origin, plain_fields
from rlm_mem.dashboard.words import address, first_line, title, without_marks
from rlm_mem.errors import NotFoundError
from rlm_mem.recall.trajectory import trajectories
from rlm_mem.store.core.standing import standing

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.chunk import Chunk
    from rlm_mem.dashboard.visits import Visit
    from rlm_mem.memory import Memory

__all__ = ["events_part", "history_page", "memory_page", "present_or_archived"]

_LINKS = 100
_EVENTS = 100
_RUNS = 100
_LONG = 3_000
_READING = ("recall", "reason", "session", "read")


@dataclass(frozen=True)
class _Linked:
    """A memory that is linked with this one, and every way in which it is."""

    id: str
    text: str
    ways: Sequence[tuple[str, float, str, str | None]]


@dataclass(frozen=True)
class _Revision:
    """A version and what it changed."""

    revision: int
    at: str
    current: bool
    diff: Markup
    fields: Sequence[tuple[str, Markup, Markup]]
    links: Sequence[tuple[str, str, str]]
    chunk: Chunk


def present_or_archived(memory: Memory, chunk_id: str) -> tuple[Chunk, bool]:
    """The chunk, and whether it is archived; not counted as a read.

    Raises:
        NotFoundError: there is neither.
    """
    chunk = memory.store.get_chunk(chunk_id, track=False)
    if chunk is not None:
        return chunk, False
    versions = memory.history(chunk_id)
    if not versions:
        raise NotFoundError(
            f"there is no memory {chunk_id}", hint="It may have been removed for good, or never was."
        )
    return versions[-1].chunk, True


def memory_page(visit: Visit) -> Response:
    """Everything about one memory."""
    memory, chunk_id = visit.memory, visit.part("chunk_id")
    chunk, archived = present_or_archived(memory, chunk_id)
    source = visit.text("view", 20) == "source"
    before, after = ([], []) if archived else memory.store.neighbours(chunk_id, 1, 1)
    near = memory.store.get_many([*before, *after])
    stands = standing(chunk)
    return visit.answer(
        "memory.html",
        chunk=chunk,
        archived=archived,
        about=chunk.metadata,
        long=len(chunk.content) > _LONG,
        source=source,
        rendered=render(chunk.content),
        links=_links(memory, chunk, archived=archived),
        origin=origin(chunk.metadata.provenance),
        extra=plain_fields(chunk.metadata.extra),
        standing=stands,
        before=next((near[one] for one in before if one in near), None),
        after=next((near[one] for one in after if one in near), None),
        successor=_brief(memory, chunk.metadata.superseded_by),
        link_types=list(memory.store.types.link_types),
        editable=not (archived or visit.state.read_only or stands["tier"]),
        back=visit.came_from(),
        here=address("/memories", chunk_id, view="source" if source else ""),
        live="memories",
    )


def history_page(visit: Visit) -> Response:
    """Every kept version, the newest first, each with what it changed."""
    chunk_id = visit.part("chunk_id")
    chunk, archived = present_or_archived(visit.memory, chunk_id)
    versions = visit.memory.history(chunk_id)
    made = [
        _Revision(
            later.revision, later.modified_at, later.current,
            word_diff(earlier.chunk.content, later.chunk.content),
            changed_fields(earlier.chunk, later.chunk),
            changed_links(earlier.chunk, later.chunk), later.chunk,
        )
        for earlier, later in pairwise(versions)
    ]  # fmt: skip
    first = versions[0]
    made.insert(
        0, _Revision(first.revision, first.modified_at, first.current, Markup(""), (), (), first.chunk)
    )
    others = (other for one in made for _, _, other in one.links)
    return visit.answer(
        "history.html",
        chunk=chunk,
        archived=archived,
        revisions=made[::-1],
        texts=_texts(visit.memory, others),
        restorable=not (archived or visit.state.read_only),
        live="memories",
    )


def events_part(visit: Visit) -> Response:
    """Who recalled it and what was done to it: the audit log and the recorded runs, loaded after the page."""
    memory, chunk_id = visit.memory, visit.part("chunk_id")
    events = list(memory.store.events(chunk_id=chunk_id, limit=_EVENTS))[::-1]
    recalls = [event for event in events if event.get("op") in _READING]
    handed_out = {str(event.get("trajectory")) for event in recalls}
    seen: list[dict[str, Any]] = []
    for run in islice(trajectories(memory.store), _RUNS):
        # The log names runs that handed the memory out; those that only read it on the way are in the runs.
        if run.id not in handed_out and any(chunk_id in step.chunks_read for step in run.steps):
            seen.append({"ts": run.started_at, "op": run.operation, "trajectory": run.id, "query": run.query})
    values: Mapping[str, Any] = {
        "recalls": recalls,
        "seen": seen,
        "changes": [(deed(event), event) for event in events if event.get("op") not in _READING],
        "texts": _texts(memory, (str(event["target"]) for event in events if event.get("target"))),
        "full": len(events) >= _EVENTS,
        "chunk_id": chunk_id,
    }
    if visit.partial:
        return visit.fragment("events.html", **values)
    return visit.page("events.html", **values)


# --- what stands around it ---------------------------------------------------------------------------------


def _links(memory: Memory, chunk: Chunk, *, archived: bool) -> list[_Linked]:
    """What is linked with a memory, the strongest first; each once, with (type, strength, direction, reasoning)."""
    if archived:  # the index forgets the links of what is archived; its file does not
        found = [(link.target_id, link.type, link.strength, "out", link.reasoning) for link in chunk.links]
    else:
        linked = memory.store.linked(chunk.id, None, "both", _LINKS)
        found = [(one.chunk_id, one.type, one.strength, one.direction, one.reasoning) for one in linked]
    ways: dict[str, list[tuple[str, float, str, str | None]]] = defaultdict(list)
    for other, kind, strength, direction, reasoning in found:
        ways[other].append((kind, strength, direction, reasoning))
    texts = memory.store.get_many(list(ways))
    made = [
        _Linked(
            other,
            first_line(without_marks(texts[other].content[:_LONG]), 160)
            if other in texts
            else f"{other} (gone)",
            of_other,
        )
        for other, of_other in ways.items()
    ]
    # What somebody said about two memories comes before what follows from tags and times.
    return sorted(made, key=lambda one: not any(way[0] in MANUAL_LINK_TYPES for way in one.ways))


def _texts(memory: Memory, ids: Iterable[str]) -> dict[str, str]:
    """The titles of memories that are there."""
    found = memory.store.get_many(list(dict.fromkeys(ids))[:_LINKS])
    return {one: title(chunk.content) for one, chunk in found.items()}


def _brief(memory: Memory, chunk_id: str | None) -> tuple[str, str] | None:
    if not chunk_id:
        return None
    chunk = memory.store.get_chunk(chunk_id, track=False)
    return chunk_id, title(chunk.content, 140) if chunk else chunk_id
