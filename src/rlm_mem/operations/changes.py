"""The change feed: notifies listeners of writes by any process; it polls only while there are listeners."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.chunk import format_time
from rlm_mem.errors import RlmMemError, StoreClosed
from rlm_mem.store.core.changes import MAX_OFF

if TYPE_CHECKING:
    from rlm_mem.memory import Memory

#: Kinds of change: chunks, tags and links; runs of recall and reason; tiers and their review; mode and sliders.
TOPICS = frozenset({"memories", "recalls", "tiers", "persona"})

_WATCHED_RUNS = 8
"""How many of the newest runs are watched for growth: more than run at the same time."""

_PERSONA = ("persona", "personalities", "sliders", "gauges")
"""Folders of a brain with the state of persona sessions, and with files edited by hand."""

_KEEP_ALIVE = 15.0
"""Seconds without an event after which a stream sends a comment."""

_RETRY_SECONDS = 2.0
"""Shortest pause after a look that failed: a database that restarts, or a folder that is briefly unavailable."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ChangeNotice:
    """A notice that this process or another one has written something.

    Attributes:
        seq: number of the notice in this feed, incremented by one.
        at: when the change was noticed (UTC).
        topics: the members of TOPICS that are affected.
        events: new lines of the audit log, for listeners that asked for them.
        version: the store's change counter, comparable for equality only.
    """

    seq: int
    at: str
    topics: frozenset[str]
    events: tuple[dict[str, Any], ...] = ()
    version: object = None


@dataclass(eq=False)
class _Listener:
    """The pending notices of one listener; they are merged when it reads them."""

    events: bool
    waiting: list[ChangeNotice] = field(default_factory=list)
    ready: asyncio.Event = field(default_factory=asyncio.Event)


class ChangeFeed:
    """Watches one memory by polling its cheap change counters.

    It polls because a plain file system has no notifications between processes, and LISTEN does not work through a
    connection pool.

    Args:
        memory: returns the open memory; called at each poll.
        interval: seconds between polls.
    """

    def __init__(self, memory: Callable[[], Memory], interval: float = 0.25) -> None:
        self._memory = memory
        self._interval = interval
        self._listeners: set[_Listener] = set()
        self._task: asyncio.Task[None] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._seq = 0
        self._since = ""  # time from which on lines of the audit log may be new
        # Hashes of the lines read since then; None: no listener wants lines
        self._seen_lines: set[int] | None = None
        self._polled = asyncio.Event()
        self._lines_ready = asyncio.Event()
        self._runs: dict[str, str] = {}  # namespaces of the newest runs, by file
        self._closed = False

    @property
    def listening(self) -> int:
        """Number of listeners."""
        return len(self._listeners)

    async def stop(self) -> None:
        """End every listener and stop polling."""
        self._closed = True
        for event in (self._polled, self._lines_ready):
            event.set()  # release waiting listeners
        for listener in self._listeners:
            listener.ready.set()
        task = self._task
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._thread is not None:
            # A poll may wait for a database: meanwhile other requests are answered.
            await asyncio.to_thread(self._thread.shutdown)
            self._thread = None

    async def follow(self, *, events: bool = False, ready: bool = False) -> AsyncIterator[ChangeNotice]:
        """Yield notices of changes from now on, until the feed or the caller stops.

        Args:
            events: also read the new lines of the audit log.
            ready: first yield a notice without topics, once no later change can be missed.
        """
        listener = _Listener(events)
        self._listeners.add(listener)
        try:
            if self._task is None:
                self._task = asyncio.create_task(self._watch())
            if ready:
                await (self._lines_ready if events else self._polled).wait()
                yield ChangeNotice(self._seq, format_time(datetime.now(UTC)), frozenset())
            while not self._closed:
                await listener.ready.wait()
                listener.ready.clear()
                waiting, listener.waiting = listener.waiting, []
                if waiting and not self._closed:
                    yield _merge(waiting)
        finally:
            self._listeners.discard(listener)

    async def _watch(self) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="rlm-mem-changes")
        loop = asyncio.get_running_loop()
        seen: dict[str, object] | None = None
        try:
            while self._listeners and not self._closed:
                with_events = any(listener.events for listener in self._listeners)
                try:
                    now, news = await loop.run_in_executor(self._thread, self._poll, seen, with_events)
                except StoreClosed:
                    return
                except RlmMemError as error:
                    _log.warning("cannot check for changes: %s", error)
                    await asyncio.sleep(max(_RETRY_SECONDS, self._interval))
                    continue
                if seen is not None:
                    topics = frozenset(name for name in TOPICS if now[name] != seen[name])
                    if topics or news:
                        self._notify(topics, news, now["memories"])
                seen = now
                self._polled.set()
                if self._seen_lines is None:
                    self._lines_ready.clear()
                else:
                    self._lines_ready.set()
                await asyncio.sleep(self._interval)
        finally:
            self._task, self._seen_lines = None, None
            self._polled.clear()
            self._lines_ready.clear()

    def _notify(self, topics: frozenset[str], news: tuple[dict[str, Any], ...], version: object) -> None:
        self._seq += 1
        at = format_time(datetime.now(UTC))
        for listener in self._listeners:
            events = news if listener.events else ()
            if topics or events:
                listener.waiting.append(ChangeNotice(self._seq, at, topics, events, version))
                listener.ready.set()

    # --- polling, in the thread of the feed -----------------------------------------------------------------

    def _poll(
        self, seen: dict[str, object] | None, with_events: bool
    ) -> tuple[dict[str, object], tuple[dict[str, Any], ...]]:
        from rlm_mem.recall.trajectory import recent

        memory = self._memory()
        now: dict[str, object] = {
            "memories": memory.store.backend.version(memory.store.namespace),
            "recalls": recent(memory.store, _WATCHED_RUNS, self._runs),
            "tiers": memory.continuum.changes.journal_state(),
            "persona": _persona(memory),
        }
        news: tuple[dict[str, Any], ...] = ()
        if not with_events:
            self._seen_lines = None
        elif self._seen_lines is None:
            self._since = ""
            self._new_lines(memory)
        elif seen is None or now["memories"] != seen["memories"] or now["recalls"] != seen["recalls"]:
            news = self._new_lines(memory)
        return now, news

    def _new_lines(self, memory: Memory) -> tuple[dict[str, Any], ...]:
        """Return the lines of the audit log that were not there before.

        They are compared by content, not by time: if the clocks of two programs differ, or a clock was set back, a new
        line may have an earlier time than one already read.
        """
        self._since = max(self._since, format_time(memory.store.clock() - MAX_OFF))
        lines = {hash(msgspec.json.encode(event)): event for event in memory.store.events(since=self._since)}
        seen, self._seen_lines = self._seen_lines or set(), set(lines)
        return tuple(event for line, event in lines.items() if line not in seen)


async def with_keep_alive(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the parts of an event stream, and a comment after some seconds without any, to detect a lost connection."""
    waiting: asyncio.Future[bytes] | None = None
    try:
        while True:
            waiting = waiting or asyncio.ensure_future(anext(parts))
            done, _ = await asyncio.wait({waiting}, timeout=_KEEP_ALIVE)
            if not done:
                yield b": still here\n\n"
                continue
            try:
                part = waiting.result()
            except StopAsyncIteration:
                return
            waiting = None
            yield part
    finally:
        if waiting is not None:
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await waiting
        close = getattr(parts, "aclose", None)
        if close is not None:
            await close()


def _persona(memory: Memory) -> object:
    stored = memory.store.backend.files(memory.store.namespace)
    return [stored.signatures(folder, recursive=True) for folder in _PERSONA]


def _merge(changes: list[ChangeNotice]) -> ChangeNotice:
    """Merge several notices into one with the number and time of the last."""
    if len(changes) == 1:
        return changes[0]
    last = changes[-1]
    return ChangeNotice(
        last.seq,
        last.at,
        frozenset().union(*(change.topics for change in changes)),
        tuple(event for change in changes for event in change.events),
        last.version,
    )
