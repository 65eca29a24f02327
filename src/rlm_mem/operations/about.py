"""What this server is over HTTP: version, namespace, model, limits, and the OpenAPI document itself."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from rlm_mem.errors import RlmMemError
from rlm_mem.operations.links import TagCount
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.types import Request

__all__ = ["OPERATIONS"]

_GROUP = "server"


class About(Struct):
    """What answers here: which memory, by which model, within which limits."""

    version: str
    namespace: str
    read_only: bool
    model: str
    chunk_types: list[str]
    link_types: list[str]


class Status(Struct):
    """How much is remembered here, and how questions are answered."""

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


def _about(context: Context, _: object) -> About:
    from rlm_mem import __version__

    store = context.memory.store
    try:
        model = context.memory.llm.name
    except RlmMemError as error:
        model = f"not usable: {error}"
    return About(
        __version__, store.namespace, context.settings.read_only, model, list(store.types.chunk_types),
        list(store.types.link_types),
    )  # fmt: skip


def _status(context: Context, _: object) -> Status:
    from rlm_mem import __version__

    figures: dict[str, Any] = context.memory.store.get_stats()
    try:
        model = context.memory.llm.name
    except RlmMemError as error:
        model = f"not usable: {error}"
    return Status(
        namespace=context.memory.store.namespace,
        version=__version__,
        memories=figures["chunk_count"],
        archived=figures["archived_count"],
        tokens=figures["total_tokens"],
        conversations=figures["conversations"],
        links=figures["links"],
        first_at=figures["first_at"],
        last_at=figures["last_at"],
        by_type=figures["by_type"],
        tags=[TagCount(tag, count) for tag, count in context.memory.tags(20)],
        model=model,
        read_only=context.settings.read_only,
        open_recalls=len(context.handles),
    )


OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/about", "getAbout", "What answers here.", _GROUP, run=_about, response=About),
    Operation("GET", "/openapi.json", "getDocument", "This document.", _GROUP, response=dict[str, Any]),
    Operation(
        "",
        "",
        "getStatus",
        "How much is remembered, and what answers.",
        _GROUP,
        run=_status,
        request=Request,
        response=Status,
        tool=Tool(
            name="status",
            title="Memory status",
            description="How much is remembered, about what, since when, and which model answers recall.",
        ),
    ),
)
