"""ServerState: what all parts of one running server share: the memory, its workers, live runs, news of changes."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from rlm_mem.errors import RlmMemError
from rlm_mem.operations.changes import ChangeFeed
from rlm_mem.operations.context import OpenMemory, Settings
from rlm_mem.operations.runs import RunRegistry
from rlm_mem.text.tokens import count_tokens

if TYPE_CHECKING:
    from rlm_mem.memory import Memory
    from rlm_mem.operations.changes import ChangeFeed

__all__ = ["ServerState"]

_T = TypeVar("_T")
_logger = logging.getLogger(__name__)

_WORKERS = 6
#: How long a start waits until what the first page needs is loaded (seconds).
_PREPARATION = 1.0


class ServerState:
    """One per server; safe for several threads.

    Calls of the store block, so they run in a few worker threads that live as long as the server: the store keeps one
    connection for each.

    Args:
        settings: what the start of the server fixed.
        token: what clients must send.
        opened: the memory that all share; by default one of these settings.
    """

    def __init__(self, settings: Settings, *, token: str, opened: OpenMemory | None = None) -> None:
        self.settings = settings
        self.token = token
        self.opened = opened or OpenMemory(settings)
        self.runs = RunRegistry(lambda: self.memory)
        self._pool = ThreadPoolExecutor(max_workers=_WORKERS, thread_name_prefix="rlm-mem-http")
        self._guard = threading.Lock()
        self._closed = False
        #: What is done once before the first request, so that nobody has to wait for it.
        self.at_start: list[Callable[[], object]] = [self._ask_once]
        self._starting: asyncio.Future[None] | None = None

    @property
    def memory(self) -> Memory:
        """The memory, confined to its namespace; opened when first asked for.

        Raises:
            RlmMemError: it cannot be opened.
        """
        return self.opened.memory

    @property
    def read_only(self) -> bool:
        """Nothing may be changed through this server."""
        return self.settings.read_only

    @cached_property
    def changes(self) -> ChangeFeed:
        """Tells listeners what changed, also where another process did it."""
        return ChangeFeed(lambda: self.memory)

    async def work(self, task: Callable[[Memory], _T]) -> _T:
        """Run something that asks the memory in a worker thread."""
        return await self.run_in_worker(lambda: task(self.memory))

    async def run_in_worker(self, task: Callable[[], _T]) -> _T:
        """Run anything that blocks in a worker thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, task)

    async def start(self) -> None:
        """Begin what runs beside the requests, and prepare for the first of them; a slow store is not waited for."""
        await self.changes.start()
        self._starting = asyncio.ensure_future(self.run_in_worker(self._prepare))
        await asyncio.wait({self._starting}, timeout=_PREPARATION)

    def _prepare(self) -> None:
        # The tables of the tokenizer hold the interpreter for a third of a second while they load.
        count_tokens("")
        for prepare in self.at_start:
            prepare()

    def _ask_once(self) -> None:
        """Load what a first question loads: dictionaries, postings, the ranker."""
        try:
            self.memory.search("anything", limit=1)
        except RlmMemError as error:  # who asks next is told as well
            _logger.info("the first search failed: %s", error)

    async def stop(self) -> None:
        """End what ``start`` began."""
        if self._starting is not None:
            await self._starting
        await self.changes.stop()

    def close(self) -> None:
        """End every run and worker, then close the memory. Nothing may be asked after that."""
        with self._guard:
            if self._closed:
                return
            self._closed = True
        self.runs.close()
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.opened.close()
