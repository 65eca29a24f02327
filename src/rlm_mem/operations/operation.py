"""Operations as data: request, response and function of each, and how HTTP clients and agents call it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from rlm_mem.access.grants import Permission
from rlm_mem.errors import NamespaceError
from rlm_mem.operations.context import CallCancelled, OpenMemory, Settings

if TYPE_CHECKING:
    import msgspec

    from rlm_mem.memory import Memory
    from rlm_mem.operations.context import Handles
    from rlm_mem.operations.runs import ClientRuns
    from rlm_mem.operations.types import Request

#: Media type of server-sent events.
EVENT_STREAM = "text/event-stream"

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE", ""]


def no_progress(done: float, total: float | None, message: str) -> None:
    """A progress callback that does nothing."""


@dataclass(frozen=True)
class Context:
    """The context in which the function of an operation runs.

    Attributes:
        opened: the memory as the client may use it (``OpenMemory.admit``), with the handles of its open recalls.
        path: the parts of the address by name, each validated by its declared type.
        if_match, if_none_match: the header as received, or None.
        kept_runs: runs in the namespace of the client; None where runs are not kept, as over MCP.
        progress: called with (done, total, message).
        given_up: set when the client no longer waits.
    """

    opened: OpenMemory
    path: Mapping[str, str] = field(default_factory=dict)
    if_match: str | None = None
    if_none_match: str | None = None
    kept_runs: ClientRuns | None = None
    progress: Callable[[float, float | None, str], None] = no_progress
    given_up: threading.Event = field(default_factory=threading.Event)

    @property
    def memory(self) -> Memory:
        """The open memory, confined to the namespace of the client."""
        return self.opened.memory

    @property
    def handles(self) -> Handles:
        """The handles of open recalls."""
        return self.opened.handles

    @property
    def settings(self) -> Settings:
        """The settings of the server."""
        return self.opened.settings

    @property
    def runs(self) -> ClientRuns:
        """The runs of this server."""
        assert self.kept_runs is not None, "runs are operations of the HTTP interface only"
        return self.kept_runs

    def check_own(self, chunk_ids: Iterable[str]) -> None:
        """Raise when one of these chunks is in the shared namespace, which the server of a project may only read.

        Raises:
            NamespaceError: one of them is.
        """
        found = self.opened.reading.memory.store.elsewhere(list(chunk_ids))
        for chunk_id, namespace in found.items():
            raise NamespaceError(
                f"{chunk_id} is in the namespace {namespace!r}, which the server of a project may only read",
                hint=f"a person can move it into the project: rlm-mem project move {chunk_id} --to project",
            )

    def check(self) -> None:
        """Raise when the client no longer waits.

        Raises:
            CallCancelled: the client has cancelled the call.
        """
        if self.given_up.is_set():
            raise CallCancelled("the client no longer waits for this call")


@dataclass(frozen=True)
class Tool:
    """How an operation is offered to agents over MCP.

    Attributes:
        name: a verb of the characters `[a-z_]`.
        title: the name for people.
        description: tells the model what the tool does, and when to use it.
        request, response, run: for agents, where they differ from the operation's own; None: the operation's.
        path: name of an argument → part of the operation's address that it stands for; arguments named like a part need
            no entry. The function always reads them from the path of the context.
        destructive: whether it may remove or replace something.
        idempotent: whether repeating the call changes nothing further.
        open_world: whether it may ask a model over the network, as configured.
        aliases: other names of arguments.
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


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        method, path: method and path of its address below ``/api/v1``; empty: HTTP does not offer it. The types of the
            ``{parts}`` are in ``types.PARTS``.
        name: its id in the OpenAPI document.
        summary: what it does, in one sentence.
        run: called in a worker thread with context and request; returns a value of type ``response`` or a Reply.
            None: ``http.streams`` answers the request.
        request: type of the query parameters with GET, DELETE and ``raw_body``, else of the body; None: it takes
            neither.
        response: type of the answer's body; None: there is none.
        tool: how it is offered to agents; None: it is not.
        status: status of success. ``others``: further statuses of success with the type of their bodies.
        writes: whether a read-only server refuses it.
        permission: the permission that a client needs; None: write if it writes, read with GET, else admin.
        everywhere: whether it concerns every namespace of the store, so that a client needs access to all of them.
        conditional: whether it honours If-Match with the ETag of the chunk named in the address.
        tagged: whether it sends an ETag and honours If-None-Match.
        paged: whether it sends a Link header when there is a further page.
        media: media types of the answer besides JSON, each with its schema in the document.
        raw_body: media types of a body that is accepted unparsed.
        most_bytes: most bytes of the body; None: the server's limit.
        links: by status: operations that may follow, and where the answer has their parameters.
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
    most_bytes: int | None = None
    links: Mapping[int, Mapping[str, Mapping[str, str]]] = field(default_factory=dict)
    description: str = ""

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
        """Whether the request is the query string of the address, not the body."""
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
    """The names of the parameters in the path of an address."""
    return re.findall(r"{(\w+)}", path)
