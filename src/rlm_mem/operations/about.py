"""What this server is over HTTP: version, namespace, model, limits, and the OpenAPI document itself."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from rlm_mem.errors import RlmMemError
from rlm_mem.operations.operation import Context, Operation

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


OPERATIONS: tuple[Operation, ...] = (
    Operation("GET", "/about", "getAbout", "What answers here.", _GROUP, run=_about, response=About),
    Operation("GET", "/openapi.json", "getDocument", "This document.", _GROUP, response=dict[str, Any]),
)
