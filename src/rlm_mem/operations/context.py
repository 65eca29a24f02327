"""State that the interfaces of one server share: settings, the open memory, and the handles of open recalls."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_mem.access.grants import OWNER, Access, Caller, Permission, name_of_client
from rlm_mem.access.tokens import TokenFile
from rlm_mem.errors import AccessDenied, NotFoundError, ServerAway

if TYPE_CHECKING:
    from rlm_mem.memory import Memory
    from rlm_mem.recall.host_session import RecallSession


@dataclass
class _OpenRecall:
    session: RecallSession
    used: float
    busy: int = 0


class Handles:
    """Open recalls by handle; safe for several threads.

    An idle handle expires, and the least recently used one is dropped when there are too many, which bounds the cost
    of a client that does not finish its recalls.

    Args:
        limit: maximum number of handles.
        idle_seconds: lifetime of an unused handle.
        clock: returns monotonic seconds.
    """

    def __init__(
        self, limit: int = 16, idle_seconds: float = 1800.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit = limit
        self.idle_seconds = idle_seconds
        self._clock = clock
        self._open: dict[str, _OpenRecall] = {}
        self._guard = threading.Lock()

    def __len__(self) -> int:
        """Number of recalls that have not ended; ended ones are kept for a while, to be read again."""
        return sum(recall.session.result is None for recall in list(self._open.values()))

    def add(self, session: RecallSession) -> str:
        """Create a handle for an open recall."""
        handle = f"recall-{secrets.token_hex(8)}"
        with self._guard:
            ended = self._expired()
            while len(self._open) >= self.limit:
                idle = [name for name, recall in self._open.items() if not recall.busy] or list(self._open)
                # Drop those that have an answer first, then the least recently used one.
                ended.append(
                    self._open.pop(
                        min(idle, key=lambda n: (self._open[n].session.result is None, self._open[n].used))
                    )
                )
            self._open[handle] = _OpenRecall(session, self._clock())
        for recall in ended:
            recall.session.close()
        return handle

    def get(self, handle: str) -> RecallSession:
        """Return the recall of a handle, and count the handle as used.

        Raises:
            NotFoundError: the handle is unknown, has expired, or was dropped in favour of newer ones.
        """
        with self._guard:
            ended = self._expired()
            recall = self._open.get(handle)
            if recall is not None:
                recall.used = self._clock()
        for old in ended:
            old.session.close()
        if recall is None:
            raise NotFoundError(
                f"there is no open recall {handle!r:.60}",
                hint=f"call recall_open again; a handle expires after {self.idle_seconds / 60:.0f} minutes without use",
            )
        return recall.session

    def mark_busy(self, handle: str, change: int) -> None:
        """Add ``change`` (+1 or -1) to the running programs of a handle; a handle with any is not dropped."""
        with self._guard:
            recall = self._open.get(handle)
            if recall is not None:
                recall.busy += change
                recall.used = self._clock()

    def close(self) -> None:
        """End every open recall."""
        with self._guard:
            ended, self._open = list(self._open.values()), {}
        for recall in ended:
            recall.session.close()

    def _expired(self) -> list[_OpenRecall]:
        now = self._clock()
        old = [
            name
            for name, recall in self._open.items()
            if not recall.busy and now - recall.used > self.idle_seconds
        ]
        return [self._open.pop(name) for name in old]


@dataclass(frozen=True)
class Settings:
    """The settings of a server, the same for all of its clients.

    Attributes:
        brain: the brain folder or a DSN; None: the default of the command line.
        namespace: the only namespace that clients reach; None: the configured one, and those that a client's token
            names.
        shared: the namespace that all projects share: read besides ``namespace``, never written.
        llm: the model that writes the programs of recall and reason; None: the configured model.
        read_only: offer only tools that change no memory.
        every_tool: offer all tools instead of the default ones.
        actor: recorded in the audit log with each write of the owner.
        tokens: the file with the named tokens; None: this server has none.
    """

    brain: Path | str | None = None
    namespace: str | None = None
    shared: str | None = None
    llm: str | None = None
    read_only: bool = False
    every_tool: bool = False
    actor: str = "mcp"
    tokens: Path | None = None


#: Maximum number of client views of a memory that are kept; an unused view takes a few kilobytes.
_MAX_VIEWS = 1024


class OpenMemory:
    """One memory, confined to its namespace, and its open recalls; safe for several threads.

    The memory is opened on first use, so that it does not delay the first response to a client. Interfaces use the
    memory of a server only through ``admit``, which returns the part of it that a client may reach.

    Args:
        handles: the handles of open recalls, which another one closes; None: a new set.
        access: the client's access; by default the owner's.
        whole: the memory of the server, if this is a client's view of it; None: it is the server's memory itself.
    """

    def __init__(
        self,
        settings: Settings,
        handles: Handles | None = None,
        *,
        access: Access = OWNER,
        whole: OpenMemory | None = None,
    ) -> None:
        self.settings = settings
        self._shares_handles = handles is not None
        self.handles = Handles() if handles is None else handles
        self.access = access
        self.tokens: TokenFile | None = (
            whole.tokens if whole else None if settings.tokens is None else TokenFile(settings.tokens)
        )
        self._whole = whole
        self._views: OrderedDict[tuple[Access, str, str], OpenMemory] = OrderedDict()
        self._sessions: OrderedDict[tuple[Access, str, str], OpenMemory] = OrderedDict()
        self._memory: Memory | None = None
        self._reading: OpenMemory | None = None
        self._session_named = False
        self._guard = threading.Lock()

    @property
    def is_open(self) -> bool:
        """Whether the memory is already open, so that ``admit`` does not block."""
        return self._memory is not None

    def admit(self, client: Caller, needed: Permission, *, everywhere: bool = False) -> OpenMemory:
        """Return the memory as this client may use it, for an operation that needs this permission.

        Args:
            everywhere: whether the operation concerns every namespace.

        Raises:
            AccessDenied: the client's token lacks the permission, or does not cover every namespace.
            NamespaceError: the client requests a namespace that it may not reach.
            RlmMemError: the memory cannot be opened.
        """
        access = client.access
        access.check(needed)
        if everywhere and not access.covers("*"):
            raise AccessDenied(
                f"the token {access.name!r:.80} does not cover every namespace, as this operation requires",
                hint="use a token with the namespace *",
                needed=needed,
            )
        own = self.memory.store.namespace
        namespace = client.namespace_of(own, self._namespace_patterns)
        is_own = access.owner and namespace == own
        if is_own and not client.session:
            return self
        # Apart, since a client may name any number of sessions, and must not displace the views of others.
        key, views = (access, namespace, client.session), self._sessions if client.session else self._views
        # One set of open recalls, with its limit, for all sessions of a token.
        handles = self.admit(replace(client, session=""), needed).handles if client.session else None
        with self._guard:
            view = views.pop(key, None)
            if view is None:
                actor = self.settings.actor if is_own else access.actor
                settings = replace(
                    self.settings,
                    namespace=namespace,
                    shared=self.settings.shared if is_own else None,
                    actor=f"{actor}:{client.session}" if client.session else actor,
                )
                view = OpenMemory(settings, handles, access=access, whole=self)
            elif handles is not None:
                view.handles = handles
            views[key] = view
            ended = views.popitem(last=False)[1] if len(views) > _MAX_VIEWS else None
        if ended is not None:
            ended.close()
        return view

    @property
    def _namespace_patterns(self) -> tuple[str, ...]:
        """Patterns of the namespaces that the server offers."""
        return ("*",) if self.settings.namespace is None else (self.memory.store.namespace,)

    def namespaces_of(self, client: Caller) -> dict[str, int]:
        """Return the namespaces that a client may reach: those that its token names, and others with memories.

        Returns:
            The number of active memories by name, sorted by name.
        """
        store = self.memory.store
        try:
            counts = dict(store.backend.queries.namespaces())
        except ServerAway as error:
            counts = dict(error.namespaces)
        named = [one for one in client.access.namespaces if "*" not in one]
        offered = Access("", self._namespace_patterns)
        return {
            one: counts.get(one, 0)
            for one in sorted({store.namespace, *named, *counts})
            if client.access.covers(one) and offered.covers(one)
        }

    @property
    def bound(self) -> bool:
        """Whether the server was started for one namespace."""
        return (self._whole or self).settings.namespace is not None

    @property
    def reading(self) -> OpenMemory:
        """The memory for operations that only read, joined with the shared namespace if the settings name one.

        Raises:
            RlmMemError: it cannot be opened.
        """
        shared, own = self.settings.shared, self.memory
        if shared is None or shared == own.store.namespace:
            return self
        with self._guard:
            if self._reading is None:
                from rlm_mem.access.confined import joined_memory

                self._reading = OpenMemory(
                    replace(self.settings, shared=None), self.handles, access=self.access
                )
                self._reading._memory = joined_memory(own, shared)
            return self._reading

    @property
    def memory(self) -> Memory:
        """The memory, opened on first access.

        Raises:
            RlmMemError: it cannot be opened.
        """
        with self._guard:
            if self._memory is None and self._whole is not None:
                from rlm_mem.access.confined import confined_memory

                namespace = self.settings.namespace
                assert namespace is not None, "a view has the namespace of its client"
                self._memory = confined_memory(self._whole.memory, namespace, self.settings.actor)
            if self._memory is None:
                from rlm_mem.memory import Memory

                self._memory = Memory.open(
                    self.settings.brain,
                    namespace=self.settings.namespace,
                    llm=self.settings.llm,
                    read_only=self.settings.read_only,
                    actor=self.settings.actor,
                    confined=True,
                )
            return self._memory

    def name_session(self, client: str) -> None:
        """Add the client's name and a number of this session to the actor, unless the memory is open already.

        So two agents, each with its own server on stdin and stdout, do not undo each other's changes.
        """
        with self._guard:
            if self._memory is None and not self._session_named:
                self._session_named = True
                name = name_of_client(client)
                parts = [self.settings.actor, *([name] if name else ()), secrets.token_hex(4)]
                self.settings = replace(self.settings, actor=":".join(parts))

    def end_recalls(self) -> None:
        """End the open recalls of every client of the server."""
        whole = self._whole or self
        with whole._guard:
            views = [whole, *whole._views.values()]
        for view in views:
            view.handles.close()

    def close(self) -> None:
        """End open recalls and close the memory."""
        with self._guard:
            views = [*self._sessions.values(), *self._views.values()]
            self._sessions, self._views = OrderedDict(), OrderedDict()
        for view in views:
            view.close()
        if not self._shares_handles:
            self.handles.close()
        with self._guard:
            if self._memory is not None:
                self._memory.close()
                self._memory = None


def storable(data: dict[str, Any]) -> dict[str, Any]:
    """Return plain data with characters that UTF-8 cannot encode replaced."""
    try:
        json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        replaced: dict[str, Any] = json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
        return replaced
    return data
