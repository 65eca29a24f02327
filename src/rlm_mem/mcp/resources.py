"""Resources: `memory://…` addresses of chunks, trajectories and figures, read as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import mcp_types as types

from rlm_mem.errors import NotFoundError

if TYPE_CHECKING:
    from rlm_mem.memory import Memory

_MAX_RECENT = 20


_JSON = "application/json"


def _resource(uri: str, name: str, description: str) -> types.Resource:
    return types.Resource(uri=uri, name=name, description=description, mime_type=_JSON)


def _template(uri: str, name: str, description: str) -> types.ResourceTemplate:
    return types.ResourceTemplate(uri_template=uri, name=name, description=description, mime_type=_JSON)


FIXED: tuple[types.Resource, ...] = (
    _resource("memory://status", "status", "Figures of the memory: counts, types, time span."),
    _resource("memory://recent", "recent", f"The {_MAX_RECENT} newest memories."),
    _resource("memory://hud", "hud", "The figures of LIVEHUD: memories, last recall, costs, persona."),
    _resource("memory://trajectories", "trajectories", "Recorded recalls, newest first."),
)
TEMPLATES: tuple[types.ResourceTemplate, ...] = (
    _template("memory://chunks/{id}", "chunk", "One memory: content, metadata, links."),
    _template("memory://trajectories/{id}", "trajectory", "One recorded recall: programs, output, outcome."),
)


def recent(memory: Memory) -> list[types.Resource]:
    """Return the newest memories, as resources."""
    return [
        _resource(
            f"memory://chunks/{one.id}", one.id, f"{one.type}, {(one.occurred_at or one.created_at)[:10]}"
        )
        for one in memory.store.latest(_MAX_RECENT)
    ]


def read_resource(memory: Memory, uri: str) -> str:
    """Return the content of a resource, as JSON text.

    Raises:
        NotFoundError: the namespace has no such resource.
        InputError: the id in the address is malformed.
    """
    scheme, separator, rest = uri.partition("://")
    kind, _, name = rest.partition("/")
    name = unquote(name)
    found: Any = None
    if scheme == "memory" and separator:
        if name and kind in _BY_ID:
            found = _BY_ID[kind](memory, name)
        elif not name and kind in _COLLECTIONS:
            found = _COLLECTIONS[kind](memory)
    if found is None:
        raise NotFoundError(
            f"there is no resource {uri!r:.120}", hint="see the lists of resources and templates"
        )
    text = json.dumps(found, ensure_ascii=False, indent=1, default=str)
    return text.encode("utf-8", "replace").decode()


def _chunk(memory: Memory, chunk_id: str) -> dict[str, Any] | None:
    chunk = memory.get(chunk_id)
    return None if chunk is None else chunk.to_dict()


def _trajectory(memory: Memory, trajectory_id: str) -> dict[str, Any]:
    from rlm_mem.recall.shown_runs import shown_trajectory

    found = asdict(shown_trajectory(memory.store, trajectory_id))
    found.pop("path")  # clients do not need its path on the server
    return found


def _recent(memory: Memory) -> list[dict[str, Any]]:
    ids = [one.id for one in memory.store.latest(_MAX_RECENT)]
    chunks = memory.store.get_many(ids)
    return [chunks[chunk_id].to_dict() for chunk_id in ids if chunk_id in chunks]


def _trajectories(memory: Memory) -> list[dict[str, Any]]:
    names = ("id", "operation", "query", "started_at", "concluded", "outcome", "answer", "withheld")
    return [{name: getattr(one, name) for name in names} for one in memory.trajectories(limit=50)]


def _hud(memory: Memory) -> dict[str, Any]:
    from rlm_mem.operations.personas import persona_of

    return dict(memory.hud_figures(persona_of(memory)))


_BY_ID: dict[str, Callable[[Memory, str], Any]] = {"chunks": _chunk, "trajectories": _trajectory}
_COLLECTIONS: dict[str, Callable[[Memory], Any]] = {
    "status": lambda memory: memory.store.get_stats(),
    "hud": _hud,
    "recent": _recent,
    "trajectories": _trajectories,
}
