"""The state shared by all parts of a running server: the memory, worker threads, live runs, change notices."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from rlm_mem.operations.changes import ChangeFeed
from rlm_mem.operations.context import OpenMemory, Settings
from rlm_mem.operations.runs import RunRegistry
from rlm_mem.text.tokens import count_tokens

if TYPE_CHECKING:
    from rlm_mem.access.grants import Caller, Permission
    from rlm_mem.memory import Memory

_T = TypeVar("_T")
_logger = logging.getLogger(__name__)

_WORKERS = 6
#: Maximum seconds for which ``start`` waits for ``_prepare``.
_PREPARE_TIMEOUT = 1.0


class ServerState:
    """The state of a server; safe for several threads.

    Store calls block, so they run in a few worker threads that end with the server; the store keeps one connection for
    each thread.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.opened = OpenMemory(settings)
        self.runs = RunRegistry()
        self._pool = ThreadPoolExecutor(max_workers=_WORKERS, thread_name_prefix="rlm-mem-http")
        self._guard = threading.Lock()
        self._closed = False
        #: Functions that run once before the first request, so that no request waits for them.
        self.at_start: list[Callable[[], object]] = [self._warm_up_search]
        self._feeds: dict[str, ChangeFeed] = {}
        self._shared: dict[Callable[[], Any], Any] = {}
        self._starting: asyncio.Future[None] | None = None

    @property
    def memory(self) -> Memory:
        """The memory of the server, confined to its namespace; opened on first access.

        Raises:
            RlmMemError: it cannot be opened.
        """
        return self.opened.memory

    @property
    def read_only(self) -> bool:
        """Whether the server refuses writes."""
        return self.settings.read_only

    async def admit(self, client: Caller, needed: Permission, *, everywhere: bool = False) -> OpenMemory:
        """Return the memory as a client may use it; arguments and errors are those of ``OpenMemory.admit``."""
        if self.opened.is_open:
            return self.opened.admit(client, needed, everywhere=everywhere)
        return await self.run_in_worker(lambda: self.opened.admit(client, needed, everywhere=everywhere))

    def changes_of(self, opened: OpenMemory) -> ChangeFeed:
        """Return the feed of changes in the namespace of a client, by any process."""
        with self._guard:
            feed = self._feeds.get(opened.memory.store.namespace)
            if feed is None:
                for name in [name for name, one in self._feeds.items() if not one.listening]:
                    del self._feeds[name]
                feed = self._feeds[opened.memory.store.namespace] = ChangeFeed(lambda: opened.memory)
        return feed

    def shared(self, make: Callable[[], _T]) -> _T:
        """Return the one object that ``make`` creates for this server, for what requests share beside the memory."""
        with self._guard:
            if make not in self._shared:
                self._shared[make] = make()
            found: _T = self._shared[make]
        return found

    async def run_in_worker(self, task: Callable[[], _T]) -> _T:
        """Run a blocking function in a worker thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, task)

    async def start(self) -> None:
        """Prepare for the first request, without waiting for a slow store."""
        self._starting = asyncio.ensure_future(self.run_in_worker(self._prepare))
        await asyncio.wait({self._starting}, timeout=_PREPARE_TIMEOUT)

    def _prepare(self) -> None:
        # Loading the tokenizer's tables blocks the interpreter for a third of a second.
        count_tokens("")
        for prepare in self.at_start:
            try:
                prepare()
            except Exception as error:  # noqa: BLE001 - the request that needs it reports it again
                _logger.info("the preparation failed: %s", error)

    def _warm_up_search(self) -> None:
        """Load the dictionaries, postings and ranker that the first search needs."""
        self.memory.search("anything", limit=1)

    async def stop(self) -> None:
        """Wait for the preparation of ``start`` to end, then end every stream."""
        if self._starting is not None:
            await self._starting
        await self.end_streams()

    async def end_streams(self) -> None:
        """End every stream of changes, so that its client connects again."""
        for feed in list(self._feeds.values()):
            await feed.stop()

    def close(self) -> None:
        """End every run and worker, then close the memory; the state cannot be used afterwards."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
        self.runs.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.opened.close()
