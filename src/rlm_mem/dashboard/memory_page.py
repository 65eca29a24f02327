"""The page of one memory: content, links, versions, neighbours, runs that read it, and forms to change it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rlm_mem import recall
from rlm_mem.capture.moving import move_chunks
from rlm_mem.chunk import STATED_LINK_TYPES, Chunk
from rlm_mem.dashboard.diffs import changed_fields, changed_links, word_diff
from rlm_mem.dashboard.markdown import render
from rlm_mem.dashboard.memories import search_rows, tags_of
from rlm_mem.dashboard.requests import MOST_NAMESPACES, PageRequest
from rlm_mem.dashboard.words import address, day, deed, first_line, origin, plain_fields, title, without_marks
from rlm_mem.errors import ConflictError, InputError, NamespaceError, NotFoundError
from rlm_mem.store.core.records import standing

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.dashboard.memories import Row
    from rlm_mem.memory import Memory

_LINKS = 100
_LINKABLE = 6
_EVENTS = 100
_RUNS = 100
_LONG = 3_000
_READING = ("recall", "reason", "session", "read")


@dataclass(frozen=True)
class _Linked:
    """A linked memory, with all links between the two memories.

    Attributes:
        replaceable: both hold, so that one may replace the other.
        later: it is not older than the memory of the page.
    """

    id: str
    text: str
    ways: Sequence[tuple[str, float, str, str | None]]
    replaceable: bool = False
    later: bool = False


@dataclass(frozen=True)
class _Revision:
    """A version, with its differences from the version before."""

    revision: int
    at: str
    current: bool
    diff: Markup
    fields: Sequence[tuple[str, Markup, Markup]]
    links: Sequence[tuple[str, str, str]]
    chunk: Chunk


def present_or_hidden(memory: Memory, chunk_id: str) -> tuple[Chunk, str]:
    """The chunk, and why no search finds it: ``archived``, ``quarantined``, ``expired`` or empty; no access is counted.

    Raises:
        NotFoundError: there is no such chunk.
    """
    chunk = memory.store.get_chunk(chunk_id, track=False)
    if chunk is not None:
        return chunk, ""
    versions = memory.history(chunk_id)
    if not versions or not versions[-1].current:
        damage = memory.store.damage(chunk_id)
        raise NotFoundError(
            f"there is no memory {chunk_id}" if damage is None else f"the memory {chunk_id} cannot be read",
            hint=damage or "it may have been deleted permanently, or never have existed",
        )
    chunk = versions[-1].chunk
    if memory.store.get_archived(chunk_id) is not None:
        return chunk, "archived"
    return chunk, "quarantined" if chunk.metadata.trust == "quarantined" else "expired"


def memory_page(request: PageRequest) -> Response:
    """The page of a memory."""
    memory, chunk_id = request.memory, request.part("chunk_id")
    words = request.text("link", 4_000).strip()
    chunk, hidden = present_or_hidden(memory, chunk_id)
    source = request.text("view", 20) == "source"
    before, after = ([], []) if hidden else memory.store.neighbours(chunk_id, 1, 1)
    near = memory.store.get_many([*before, *after])
    stands = standing(chunk)
    editable = not (hidden or request.read_only or stands["tier"])
    links, more_links = _links(memory, chunk, hidden=bool(hidden))
    return request.answer(
        "memory.html",
        chunk=chunk,
        hidden=hidden,
        hidden_because=_quarantine_reason(chunk) if hidden == "quarantined" else "",
        about=chunk.metadata,
        long=len(chunk.content) > _LONG,
        source=source,
        rendered=render(chunk.content),
        links=links,
        most_links=_LINKS if more_links else 0,
        origin=origin(chunk.metadata.provenance),
        extra=plain_fields(chunk.metadata.extra),
        standing=stands,
        before=next((near[one] for one in before if one in near), None),
        after=next((near[one] for one in after if one in near), None),
        ended=memory.store.ended_at(chunk.metadata.valid_to),
        successor=_id_and_title(memory, chunk.metadata.superseded_by),
        replaced=[brief for one in chunk.replaces if (brief := _id_and_title(memory, one))],
        link_types=list(memory.store.types.link_types),
        words=words,
        linkable=_linkable(memory, chunk_id, words) if editable else [],
        editable=editable,
        elsewhere=request.other_namespaces() if editable else [],
        most_namespaces=MOST_NAMESPACES,
        back=request.came_from(),
        here=address("/memories", chunk_id, view="source" if source else ""),
        live="memories",
    )


def linkable_part(request: PageRequest) -> Response:
    """The memories found to link the memory with."""
    chunk_id, words = request.part("chunk_id"), request.text("link", 4_000).strip()
    found = _linkable(request.memory, chunk_id, words)
    return request.fragment("memory.html", block="linkable", words=words, linkable=found)


def earlier_part(request: PageRequest) -> Response:
    """The earlier memories that the memory may make out of date; loaded after the page."""
    chunk_id = request.part("chunk_id")
    return request.answer(
        "earlier.html", chunk_id=chunk_id, earlier=request.memory.earlier(chunk_id), live="memories"
    )


def _linkable(memory: Memory, chunk_id: str, words: str) -> list[Row]:
    """The memories that words find, except the one of the page."""
    found = [row for row in search_rows(memory, words, limit=_LINKABLE + 1) if row.id != chunk_id]
    return found[:_LINKABLE]


def _quarantine_reason(chunk: Chunk) -> str:
    record = chunk.metadata.extra.get("quarantine")
    return str(record.get("reason") or "") if isinstance(record, dict) else ""


def history_page(request: PageRequest) -> Response:
    """The page of all kept versions, newest first, with the differences of each."""
    chunk_id = request.part("chunk_id")
    chunk, hidden = present_or_hidden(request.memory, chunk_id)
    versions = request.memory.history(chunk_id)
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
    return request.answer(
        "history.html",
        chunk=chunk,
        revisions=made[::-1],
        texts=_titles(request.memory, others),
        restorable=not (hidden or request.read_only),
        live="memories",
    )


def events_part(request: PageRequest) -> Response:
    """Runs that read the memory and its changes, from the audit log and the recorded runs; loaded after the page."""
    memory, chunk_id = request.memory, request.part("chunk_id")
    events = list(memory.store.events(chunk_id=chunk_id, limit=_EVENTS))[::-1]
    recalls = [event for event in events if event.get("op") in _READING]
    returned = {str(event.get("trajectory")) for event in recalls}
    seen: list[dict[str, Any]] = []
    for run in islice(recall.trajectories(memory.store), _RUNS):
        # The log lists runs that returned the memory; only the records list runs that read it without returning it.
        if run.id not in returned and any(chunk_id in step.chunks_read for step in run.steps):
            seen.append({"ts": run.started_at, "op": run.operation, "trajectory": run.id, "query": run.query})
    return request.answer(
        "events.html",
        recalls=recalls,
        seen=seen,
        changes=[(deed(event), event) for event in events if event.get("op") not in _READING],
        texts=_titles(memory, (str(event["target"]) for event in events if event.get("target"))),
        full=len(events) >= _EVENTS,
        chunk_id=chunk_id,
    )


# --- related memories ---------------------------------------------------------------------------------


def _links(memory: Memory, chunk: Chunk, *, hidden: bool) -> tuple[list[_Linked], bool]:
    """Linked memories, and whether there are more links than are shown.

    Strongest first, each memory once with its links as (type, strength, direction, reasoning).
    """
    if hidden:  # no query returns its links, so only its own are known
        found = [(link.target_id, link.type, link.strength, "out", link.reasoning) for link in chunk.links]
    else:
        linked = memory.store.linked(chunk.id, None, "both", _LINKS + 1)
        found = [(one.chunk_id, one.type, one.strength, one.direction, one.reasoning) for one in linked]
    ways: dict[str, list[tuple[str, float, str, str | None]]] = defaultdict(list)
    for other, kind, strength, direction, reasoning in found[:_LINKS]:
        ways[other].append((kind, strength, direction, reasoning))
    texts = memory.store.get_many(list(ways))
    quarantined = memory.store.quarantined_ids() if hidden else frozenset()
    made = []
    for other, of_other in ways.items():
        if (there := texts.get(other)) is None:
            made.append(
                _Linked(other, f"{other} ({'in quarantine' if other in quarantined else 'gone'})", of_other)
            )
            continue
        made.append(
            _Linked(
                other,
                first_line(without_marks(there.content[:_LONG]), 160),
                of_other,
                replaceable=not (
                    chunk.metadata.superseded_by or there.metadata.superseded_by or standing(there)["tier"]
                ),
                later=there.metadata.at >= chunk.metadata.at,
            )
        )
    # Links that were stated come before those derived from tags and times.
    made.sort(key=lambda one: not any(way[0] in STATED_LINK_TYPES for way in one.ways))
    return made, len(found) > _LINKS


def _titles(memory: Memory, ids: Iterable[str]) -> dict[str, str]:
    """Titles of those memories that exist, by id."""
    found = memory.store.get_many(list(dict.fromkeys(ids))[:_LINKS])
    return {one: title(chunk.content) for one, chunk in found.items()}


def _id_and_title(memory: Memory, chunk_id: str | None) -> tuple[str, str] | None:
    if not chunk_id:
        return None
    chunk = memory.store.get_chunk(chunk_id, track=False)
    return chunk_id, title(chunk.content, 140) if chunk else chunk_id


_FIELDS = ("content", "tags", "type", "confidence", "valid_from", "valid_to")


def edit_page(request: PageRequest) -> Response:
    """The form to edit a memory."""
    chunk, hidden = present_or_hidden(request.memory, request.part("chunk_id"))
    if hidden:
        raise InputError(f"this memory is {hidden} and cannot be edited", hint="make it visible first")
    return _form(request, chunk, _form_values(chunk))


def save(request: PageRequest) -> Response:
    """Save the edited memory; after a concurrent change, show both versions instead of overwriting one."""
    memory, chunk_id = request.memory, request.part("chunk_id")
    given = {name: request.text(name, 0) for name in _FIELDS}
    revision = request.number("revision", 0, 0, 1_000_000_000)
    before = memory.store.get_chunk(chunk_id, track=False)
    if before is None:
        raise NotFoundError(
            f"there is no memory {chunk_id} any more",
            hint="it was archived or removed meanwhile; go back and copy your text",
        )
    try:
        changed = memory.update(
            chunk_id,
            content=given["content"],
            tags=tags_of(given["tags"]),
            chunk_type=given["type"] or None,
            confidence=_confidence(given["confidence"]),
            metadata=_validity(before, given),
            expected_revision=revision,
        )
    except ConflictError as error:
        theirs, _ = present_or_hidden(memory, chunk_id)
        if theirs.revision != revision:
            return _conflict(request, theirs, given)
        return _form(request, before, given, problem=error.sentence, revision=revision)  # a tiered memory
    except InputError as error:
        return _form(request, before, given, problem=error.sentence, revision=revision)
    if changed is None:
        raise NotFoundError(f"there is no memory {chunk_id} any more")
    return request.go(
        address("/memories", chunk_id), "saved" if changed.revision != before.revision else "unchanged"
    )


_ACTS: Mapping[str, tuple[str, str]] = {
    "archive": ("deleteChunk", "archived"),
    "erase": ("deleteChunk", "erased"),
    "restore": ("restoreChunk", "restored"),
    "revert": ("undoChunk", "reverted"),
    "link": ("putLink", "linked"),
    "unlink": ("deleteLinks", "unlinked"),
    "replace": ("supersedeChunk", "kept-one"),
    "quarantine": ("quarantineChunk", "quarantined"),
}
"""Operation and notice of each small form."""


def act(request: PageRequest) -> Response:
    """Run one of the small forms of a memory's page."""
    chunk_id, what = request.part("chunk_id"), request.action("move", *_ACTS)
    if what == "move":
        return _move(request, chunk_id)
    name, notice = _ACTS[what]
    path, given = {"chunk_id": chunk_id}, dict[str, Any]()
    if what == "erase":
        given = {"permanent": True}
    elif what == "revert":
        given = {"to_revision": request.text("revision", 20)}
    elif what == "link":
        target = request.text("target", 200).strip()
        if not target:
            raise InputError("no other memory is chosen", hint="find it by words or its id, then choose it")
        path |= {"target_id": target, "link_type": request.text("type", 100)}
        given = {
            "strength": request.text("strength", 20),
            "reasoning": request.text("reasoning", 2_000).strip(),
        }
    elif what == "unlink":
        path |= {"target_id": request.text("target", 200)}
        if request.text("direction", 3) == "in":
            path = {"chunk_id": path["target_id"], "target_id": chunk_id}
        given = {"type": request.text("type", 100)}
    elif what == "quarantine":
        given = {"reason": request.text("reason", 2_000).strip()}
    elif what == "replace":  # the memory of this page stays, even if it is the older of the two
        path = {"chunk_id": request.text("target", 200)}
        given = {
            "by": chunk_id,
            "reason": request.text("reason", 200).strip() or "says the same",
            "force": True,
        }
    done = request.carry_out(name, path, **given)
    if what == "unlink" and not done.removed:
        raise NotFoundError("that link no longer exists", hint="somebody else may have removed it")
    return request.go("/memories" if what == "erase" else address("/memories", chunk_id), notice)


def _move(request: PageRequest, chunk_id: str) -> Response:
    goal = request.text("namespace", 200).strip()
    if goal not in request.other_namespaces():
        raise NamespaceError(
            f"a memory cannot be moved to {goal!r:.80} from here",
            hint="choose one of the namespaces in the form",
        )
    move_chunks(request.memory.store, goal, [chunk_id])
    return request.go(address("/memories", chunk_id), "moved")


# --- the form ---------------------------------------------------------------------------------------------


def _form_values(chunk: Chunk) -> dict[str, str]:
    about = chunk.metadata
    return {
        "content": chunk.content,
        "tags": ", ".join(chunk.tags),
        "type": chunk.type,
        "confidence": f"{about.confidence:g}",
        "valid_from": day(about.valid_from),
        "valid_to": day(about.valid_to),
    }


def _confidence(text: str) -> float | None:
    """The confidence entered in the form; None leaves it unchanged."""
    try:
        return float(text) if text.strip() else None
    except ValueError:
        raise InputError(f"confidence must be a number from 0 to 1, not {text!r:.40}") from None


def _validity(chunk: Chunk, given: dict[str, str]) -> dict[str, str | None]:
    """The validity entered in the form; a day that was not changed keeps its time of day."""
    fields: dict[str, str | None] = {}
    for name in ("valid_from", "valid_to"):
        if given[name].strip() != day(getattr(chunk.metadata, name)):
            fields[name] = given[name].strip() or None
    return fields


def _form(
    request: PageRequest,
    chunk: Chunk,
    given: dict[str, str],
    *,
    problem: str = "",
    revision: int | None = None,
) -> Response:
    return request.page(
        "edit.html",
        status=400 if problem else 200,
        chunk=chunk,
        given=given,
        revision=chunk.revision if revision is None else revision,
        problem=problem,
        types=sorted({*request.memory.store.types.chunk_types, chunk.type}),
    )


def _conflict(request: PageRequest, theirs: Chunk, given: dict[str, str]) -> Response:
    return request.page(
        "conflict.html",
        status=409,
        chunk=theirs,
        given=given,
        diff=word_diff(theirs.content, given["content"]),
        types=sorted({*request.memory.store.types.chunk_types, theirs.type}),
    )
