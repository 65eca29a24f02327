"""Endpoints: what one method of one address takes and gives, as data, and what its function may use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rlm_mem.memory import Memory
    from rlm_mem.operations.state import ServerState
    from rlm_mem.operations.types import Query, Request

__all__ = ["EVENT_STREAM", "Ask", "Endpoint", "Method", "Reply"]

#: Media type of server-sent events.
EVENT_STREAM = "text/event-stream"

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


@dataclass(frozen=True)
class Ask:
    """A request that was found sound, as an endpoint's function sees it.

    Attributes:
        memory: open, confined to the server's namespace.
        path: the parts of the address by name, each of its declared type.
        query, body: of the declared types.
        if_match, if_none_match: the header as it came, or None.
    """

    state: ServerState
    memory: Memory
    path: Mapping[str, str]
    query: Any = None
    body: Any = None
    if_match: str | None = None
    if_none_match: str | None = None


@dataclass(frozen=True)
class Reply:
    """An answer with more to it than its data."""

    data: Any = None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Endpoint:
    """One method of one address.

    Attributes:
        path: below ``/api/v1``; the types of its ``{parts}`` are in ``openapi.PARTS``.
        name: the operation's id in the document.
        summary: what it does, one sentence.
        run: called in a worker thread; gives a value of type ``gives`` or a Reply. None: what serves it answers in a
            way of its own (events, a file).
        gives: type of the answer's body; None: there is none.
        takes: type of the body; ``query``: type of the parameters.
        status: of success. ``others``: further statuses of success with the type of their bodies.
        writes: refused by a read-only server.
        conditional: honours If-Match with the ETag of the chunk named in the address.
        tagged: gives an ETag and honours If-None-Match.
        paged: gives a Link header when there is a further page.
        media: of the answer, with the schema for the document, where it is not (only) JSON.
        raw_body: media types of a body that is taken as it comes.
        most_bytes: of the body; None: the server's limit.
        links: by status: operations that may follow, with where their parameters come from in the answer.
    """

    method: Method
    path: str
    name: str
    summary: str
    group: str
    run: Callable[[Ask], Any] | None = None
    gives: Any = None
    takes: type[Request] | None = None
    query: type[Query] | None = None
    status: int = 200
    others: Mapping[int, Any] = field(default_factory=dict)
    writes: bool = False
    conditional: bool = False
    tagged: bool = False
    paged: bool = False
    media: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    raw_body: tuple[str, ...] = ()
    most_bytes: int | None = None
    links: Mapping[int, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    description: str = ""
