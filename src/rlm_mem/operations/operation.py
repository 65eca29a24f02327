"""Operations as data: request, response and function of each, and how HTTP clients and agents call it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from rlm_mem.access.grants import Permission
from rlm_mem.errors import NamespaceError
from rlm_mem.operations.context import Handles, OpenMemory
from rlm_mem.operations.fitting import Reply
from rlm_mem.operations.types import Request

if TYPE_CHECKING:
    import msgspec

    from rlm_mem.memory import Memory
    from rlm_mem.operations.runs import RunRegistry

#: The address of the HTTP interface, below which every operation has its path.
PREFIX = "/api/v1"
#: Media type of server-sent events.
EVENT_STREAM = "text/event-stream"

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", ""]


def no_progress(done: float, total: float | None, message: str) -> None:
    """Ignore progress: the default callback."""


@dataclass(frozen=True)
class Context:
    """The context in which the function of an operation runs.

    Attributes:
        opened: the memory as the client may use it (``OpenMemory.admit``), with the handles of its open recalls.
        path: the parameters in the path of the address, each validated by its declared type.
        if_match, if_none_match: the header as received, or None.
        kept_runs: the runs of the server; None if runs are not kept, as over MCP.
        agent: whether an agent calls, or a client that may not decide in the name of a person.
        progress: called with (done, total, message).
        in_batch: whether this is a step of a batch.
    """

    opened: OpenMemory
    path: Mapping[str, str] = field(default_factory=dict)
    if_match: str | None = None
    if_none_match: str | None = None
    kept_runs: RunRegistry | None = None
    agent: bool = False
    progress: Callable[[float, float | None, str], None] = no_progress
    in_batch: bool = False

    @property
    def memory(self) -> Memory:
        """The open memory, confined to the namespace of the client."""
        return self.opened.memory

    @property
    def handles(self) -> Handles:
        """Handles of open recalls."""
        return self.opened.handles

    @property
    def runs(self) -> RunRegistry:
        """The runs of this server."""
        assert self.kept_runs is not None, "runs are operations of the HTTP interface only"
        return self.kept_runs

    def check_owned(self, chunk_ids: Iterable[str]) -> None:
        """Refuse to write chunks of the shared namespace, which the server of a project may only read.

        Raises:
            NamespaceError: one of these chunks is in it.
        """
        found = self.opened.reading.memory.store.elsewhere(list(chunk_ids))
        for chunk_id, namespace in found.items():
            raise NamespaceError(
                f"{chunk_id} is in the namespace {namespace!r}, which the server of a project may only read",
                hint=f"a person can move it into the project: rlm-mem project move {chunk_id} --to project",
            )


def _with_types(row: Tool | Operation) -> None:
    """Set the request and response that a row does not name to those in the annotations of its function."""
    if row.run is None:
        return
    _, request, response = get_type_hints(row.run).values()
    if row.request is None and issubclass(request, Request):
        object.__setattr__(row, "request", request)
    if row.response is None:
        kind = get_args(response)[0] if get_origin(response) is Reply else response
        # Any: it answers in several ways, which the row names.
        object.__setattr__(row, "response", None if kind in (type(None), Any) else kind)


@dataclass(frozen=True)
class Tool:
    """A description of an operation as a tool for agents over MCP.

    Attributes:
        name: a verb of characters `[a-z_]`.
        title: the name for people.
        description: describes for the model what the tool does, and when to use it.
        run: for agents, if it differs from the operation's own; None: the operation's.
        request, response: None: those of ``run``, else the operation's.
        path: name of an argument → path parameter of the operation that it provides; an argument with the same name
            needs no entry. The function reads both from the path of the context.
        destructive: whether it may remove or replace something.
        idempotent: whether repeating the call changes nothing further.
        open_world: whether it may call a model over the network, if configured.
        aliases: alternative names of arguments.
        default: whether it is offered without ``--tools all``.
    """

    name: str
    title: str
    description: str
    request: type[Request] | None = None
    response: type[msgspec.Struct] | None = None
    run: Callable[[Context, Any], Any] | None = None
    path: Mapping[str, str] = field(default_factory=dict)
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False
    aliases: Mapping[str, str] = field(default_factory=dict)
    default: bool = True

    def __post_init__(self) -> None:
        _with_types(self)


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        method, path: method and path below ``/api/v1``; empty: not offered over HTTP. The types of the path parameters
            are in ``types.PARTS``.
        name: the ``operationId`` in the OpenAPI document.
        summary: what it does, in one sentence.
        run: called in a worker thread with context and request; returns a value of type ``response`` or a Reply.
            None: ``http.streams`` answers the request.
        request: type of the query parameters with GET, DELETE and ``raw_body``, else of the body; None: of ``run``,
            if it takes one.
        response: type of the answer's body; None: that of ``run``, if it returns one.
        tool: how it is offered to agents; None: it is not.
        status: HTTP status of success. ``others``: further statuses of success, with the types of their bodies.
        writes: whether a read-only server refuses it.
        permission: the permission that a client needs; None: write if it writes, read with GET, else admin.
        everywhere: whether it concerns every namespace of the store, so that a client needs access to all of them.
        conditional: whether it honours If-Match with the ETag of the chunk in the path.
        tagged: whether it sends an ETag and honours If-None-Match.
        paged: whether it sends a Link header if there is a further page.
        media: media types of the answer besides JSON, each with its schema in the document.
        raw_body: media types of a body that is accepted unparsed.
        max_bytes: maximum bytes of the body; None: the server's limit.
        links: by status, the operations that may follow, and which fields of the answer are their parameters.
    """

    method: Method
    path: str
    name: str
    summary: str
    group: str
    run: Callable[[Context, Any], Any] | None = None
    request: type[Request] | None = None
    response: Any = None
    tool: Tool | None = None
    status: int = 200
    others: Mapping[int, Any] = field(default_factory=dict)
    writes: bool = False
    permission: Permission | None = None
    everywhere: bool = False
    conditional: bool = False
    tagged: bool = False
    paged: bool = False
    media: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    raw_body: tuple[str, ...] = ()
    max_bytes: int | None = None
    links: Mapping[int, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    description: str = ""

    def __post_init__(self) -> None:
        _with_types(self)

    @property
    def needs(self) -> Permission:
        """The permission that a client needs; ``admin`` if none is declared and it neither writes nor uses GET."""
        if self.permission is not None:
            return self.permission
        if self.writes:
            return "write"
        return "read" if self.method == "GET" else "admin"

    @property
    def by_query(self) -> bool:
        """Whether the request is in the query string, not in the body."""
        return self.method in ("GET", "DELETE") or bool(self.raw_body)

    @property
    def parameters(self) -> type[Request] | None:
        """The type of the query string."""
        return self.request if self.by_query else None

    @property
    def body(self) -> type[Request] | None:
        """The type of the JSON body."""
        return None if self.by_query else self.request


def parts_of(path: str) -> list[str]:
    """Return the names of the parameters in the path of an address."""
    return re.findall(r"{(\w+)}", path)
