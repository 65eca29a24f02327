"""Graph: one memory and what it is linked with, as far as 500 memories around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from rlm_mem.dashboard.memory_page import present_or_archived
from rlm_mem.dashboard.rendering import HEADERS
from rlm_mem.dashboard.words import address, day, first_line, visible
from rlm_mem.errors import NotFoundError

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.dashboard.visits import Visit
    from rlm_mem.memory import Memory

__all__ = ["MOST", "ego_graph", "graph_data", "graph_page"]

MOST = 500
_USUAL = 120
_LINKS_OF_ONE = 60
_TRIED = 40


def graph_page(visit: Visit) -> Response:
    """The graph around one memory; without an id, around one of the newest with many links."""
    memory = visit.memory
    chunk_id = visit.text("id", 200).strip() or _default_centre(memory)
    if not chunk_id:
        return visit.page("graph.html", centre=None)
    chunk, archived = present_or_archived(memory, chunk_id)
    types = visit.texts("type")
    limit = visit.number("limit", _USUAL, 2, MOST)
    near = ego_graph(memory, chunk_id, types, 40) if not archived else {"nodes": [], "links": []}
    return visit.page(
        "graph.html",
        centre=chunk,
        chosen=types,
        limit=limit,
        most=MOST,
        link_types=list(memory.store.types.link_types),
        data=address("/graph/data", id=chunk_id, type=types, limit=limit),
        near=[node for node in near["nodes"] if node["depth"] == 1],
        kinds=_kinds_by_node(near, chunk_id),
        live="",
    )


def graph_data(visit: Visit) -> Response:
    """Nodes and links as JSON, for the drawing."""
    chunk_id = visit.text("id", 200)
    if not visit.memory.store.exists(chunk_id):
        raise NotFoundError(f"there is no memory {chunk_id}")
    limit = visit.number("limit", _USUAL, 2, MOST)
    graph = ego_graph(visit.memory, chunk_id, visit.texts("type"), limit)
    return JSONResponse(graph, headers=dict(HEADERS))


def ego_graph(memory: Memory, chunk_id: str, types: Sequence[str], limit: int) -> dict[str, Any]:
    """The memories linked with a memory, by distance, and by strength at equal distance.

    Args:
        types: only links of these types; none: of every type.
        limit: most memories.

    Returns:
        ``nodes`` (``id, text, type, day, depth, href``), ``links`` (``source, target, type, strength``), ``cut``:
        whether there was more.
    """
    store = memory.store
    depth = {chunk_id: 0}
    links: dict[tuple[str, str, str], float] = {}
    ring, cut, distance = [chunk_id], False, 0
    while ring:
        distance += 1
        found: list[tuple[float, str]] = []
        for one in ring:
            linked = store.linked(one, None, "both", _LINKS_OF_ONE)
            cut = cut or len(linked) == _LINKS_OF_ONE
            for link in linked:
                if types and link.type not in types:
                    continue
                ends = (one, link.chunk_id) if link.direction == "out" else (link.chunk_id, one)
                links[(*ends, link.type)] = link.strength
                if link.chunk_id not in depth:
                    found.append((-link.strength, link.chunk_id))
        ring = []
        for _, other in sorted(found):
            if other in depth:
                continue
            if len(depth) >= limit:
                cut = True
                break
            depth[other] = distance
            ring.append(other)
        if len(depth) >= limit:
            # Also read links among the outermost memories, without going any further.
            for one in ring:
                for link in store.linked(one, None, "out", _LINKS_OF_ONE):
                    if link.chunk_id in depth and (not types or link.type in types):
                        links[(one, link.chunk_id, link.type)] = link.strength
            break
    chunks = store.get_many(list(depth))
    return {
        "nodes": [
            {
                "id": one,
                "text": visible(first_line(chunks[one].content, 220)),
                "type": chunks[one].type,
                "day": day(chunks[one].metadata.at),
                "depth": far,
                "href": address("/memories", one),
            }
            for one, far in depth.items()
            if one in chunks
        ],
        "links": [
            {"source": source, "target": target, "type": kind, "strength": strength}
            for (source, target, kind), strength in links.items()
            if source in chunks and target in chunks and source in depth and target in depth
        ],
        "cut": cut,
    }


def _default_centre(memory: Memory) -> str:
    """One of the newest memories, the one with most links."""
    newest = [one.id for one in memory.store.latest(_TRIED)]
    return max(newest, key=lambda one: len(memory.store.linked(one, None, "both", 30)), default="")


def _kinds_by_node(graph: dict[str, Any], centre: str) -> dict[str, str]:
    """For each memory next to the centre, how it is linked with it."""
    kinds: dict[str, list[str]] = {}
    for link in graph["links"]:
        if centre in (link["source"], link["target"]):
            other = link["target"] if link["source"] == centre else link["source"]
            kinds.setdefault(other, []).append(link["type"].replace("_", " "))
    return {one: ", ".join(dict.fromkeys(found)) for one, found in kinds.items()}
