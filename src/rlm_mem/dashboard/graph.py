"""Pages of the graph: up to 500 memories, the newest or those around one, grouped into communities."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, Response

from rlm_mem.chunk.types import CHUNK_TYPES
from rlm_mem.dashboard.communities import Community, Member, communities
from rlm_mem.dashboard.memory_page import present_or_hidden
from rlm_mem.dashboard.rendering import HEADERS
from rlm_mem.dashboard.words import address, day, first_line, visible, without_marks
from rlm_mem.errors import NotFoundError

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.dashboard.requests import PageRequest
    from rlm_mem.memory import Memory

MOST = 500
_USUAL = 250
_ADDED = 40
"""Maximum number of memories added by expanding one, itself included."""
_EXPANDED = 30
_LINKS_OF_ONE = 60
_LISTED = 60
_SHOWN = 3
"""Number of memories named in the list for each community."""


def graph_page(request: PageRequest) -> Response:
    """The newest memories, or those around one memory, by community."""
    memory = request.memory
    asked = _requested_graph(request)
    chunk, hidden = present_or_hidden(memory, asked.centre) if asked.centre else (None, "")
    found = Graph({}, [], False) if hidden else gather(memory, asked)
    groups = _groups(memory, found)
    texts = {
        one: visible(first_line(without_marks(chunk.content[:900]), 140))
        for one, chunk in found.chunks.items()
    }
    counts = Counter(chunk.type for chunk in found.chunks.values())
    return request.page(
        "graph.html",
        centre=chunk,
        chosen=asked.types,
        limit=asked.limit,
        most=MOST,
        link_types=list(memory.store.types.link_types),
        data=address("/graph/data", id=asked.centre, type=asked.types, limit=asked.limit),
        near=_neighbours(found, asked.centre) if asked.centre else [],
        groups=groups[:_LISTED],
        further=max(0, len(groups) - _LISTED),
        heads=_most_linked(found, groups[:_LISTED]),
        texts=texts,
        types=[
            (name, counts[name])
            for name in (*CHUNK_TYPES, *sorted(set(counts) - set(CHUNK_TYPES)))
            if counts[name]
        ],
        days=sorted({day(chunk.metadata.at) for chunk in found.chunks.values()} - {""}),
        empty=not found.chunks,
        live="",
    )


def graph_data(request: PageRequest) -> Response:
    """Nodes, links and communities as JSON, for the drawing."""
    asked = _requested_graph(request)
    for one in (asked.centre, *asked.expanded):
        if one and not request.memory.store.exists(one):
            raise NotFoundError(f"there is no memory {one}")
    found = gather(request.memory, asked)
    groups = _groups(request.memory, found)
    group = {at: number for number, one in enumerate(groups) for at in one.members}
    return JSONResponse(
        {
            "nodes": [
                {
                    "id": one,
                    "text": visible(first_line(without_marks(chunk.content[:900]), 220)),
                    "type": chunk.type,
                    "day": day(chunk.metadata.at),
                    "group": group[at],
                    "href": address("/memories", one),
                }
                for at, (one, chunk) in enumerate(found.chunks.items())
            ],
            "links": [
                {"source": source, "target": target, "type": kind, "strength": strength}
                for source, target, kind, strength in found.links
            ],
            "groups": [
                {"name": visible(one.name), "words": list(one.words), "linked": one.linked} for one in groups
            ],
            "cut": found.cut,
        },
        headers=HEADERS,
    )


@dataclass(frozen=True)
class Asked:
    """The requested graph.

    Attributes:
        centre: the memory whose neighbourhood is drawn; empty: the newest memories.
        expanded: further memories whose neighbourhoods are added.
        types: link types to follow; empty: all.
        limit: maximum number of memories.
    """

    centre: str = ""
    expanded: Sequence[str] = ()
    types: Sequence[str] = ()
    limit: int = MOST


@dataclass(frozen=True)
class Graph:
    """Memories and the links among them.

    Attributes:
        links: source, target, type and strength.
        cut: whether memories were omitted.
    """

    chunks: Mapping[str, Chunk]
    links: Sequence[tuple[str, str, str, float]]
    cut: bool


def _requested_graph(request: PageRequest) -> Asked:
    return Asked(
        request.text("id", 200).strip(),
        request.texts("expand")[:_EXPANDED],
        request.texts("type"),
        request.number("limit", _USUAL, 2, MOST),
    )


def gather(memory: Memory, asked: Asked) -> Graph:
    """Read the memories and links of a graph."""
    store = memory.store
    if asked.centre:
        found, cut = _around(memory, asked.centre, asked.types, asked.limit)
    else:
        found = [one.id for one in store.latest(asked.limit + 1)]
        cut = len(found) > asked.limit
        found = found[: asked.limit]
    for one in asked.expanded:
        more, cut_there = _around(memory, one, asked.types, _ADDED)
        found = list(dict.fromkeys([*found, *more]))
        cut = cut or cut_there
    chunks = store.get_many(found[:MOST])
    chunks = {one: chunks[one] for one in found[:MOST] if one in chunks}
    links = [
        (one, link.target_id, link.type, link.strength)
        for one, chunk in chunks.items()
        for link in chunk.links
        if link.target_id in chunks and (not asked.types or link.type in asked.types)
    ]
    return Graph(chunks, links, cut or len(found) > MOST)


def _around(memory: Memory, chunk_id: str, types: Sequence[str], limit: int) -> tuple[list[str], bool]:
    """Memories reachable from one, nearest first and strongest first at equal distance; and whether there are more."""
    store = memory.store
    known = dict.fromkeys([chunk_id])
    ring, cut = [chunk_id], False
    while ring and len(known) < limit:
        found: list[tuple[float, str]] = []
        for one in ring:
            linked = store.linked(one, None, "both", _LINKS_OF_ONE)
            cut = cut or len(linked) == _LINKS_OF_ONE
            found += [
                (-link.strength, link.chunk_id)
                for link in linked
                if link.chunk_id not in known and (not types or link.type in types)
            ]
        ring = list(dict.fromkeys(other for _, other in sorted(found)))
        cut = cut or len(known) + len(ring) > limit
        ring = ring[: limit - len(known)]
        known |= dict.fromkeys(ring)
    return list(known), cut or (len(known) >= limit and bool(ring))


def _groups(memory: Memory, found: Graph) -> list[Community]:
    members = [
        Member(one, chunk.content[:300], chunk.metadata.conversation_id, tuple(chunk.tags))
        for one, chunk in found.chunks.items()
    ]
    links = [(source, target, strength) for source, target, _, strength in found.links]
    return communities(members, links, language=memory.config.search.language)


def _most_linked(found: Graph, groups: Sequence[Community]) -> list[list[str]]:
    degree = Counter(one for source, target, _, _ in found.links for one in (source, target))
    ids = list(found.chunks)
    return [
        sorted((ids[at] for at in one.members), key=lambda name: -degree[name])[:_SHOWN] for one in groups
    ]


def _neighbours(found: Graph, centre: str) -> list[tuple[str, str, str]]:
    """Memories linked with the centre: id, relation in words, and day of each."""
    kinds: dict[str, list[str]] = {}
    for source, target, kind, _ in found.links:
        if centre in (source, target):
            kinds.setdefault(target if source == centre else source, []).append(kind.replace("_", " "))
    return [
        (one, ", ".join(dict.fromkeys(of_one)), day(found.chunks[one].metadata.at))
        for one, of_one in kinds.items()
    ]
