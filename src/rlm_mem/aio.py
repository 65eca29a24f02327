"""AsyncMemory: the methods of Memory for programs with an event loop, without blocking the loop.

Each method runs the method of :class:`~rlm_mem.memory.Memory` with the same name in a worker thread. Cancelling the
task that waits for a call ends the call: a recall stops, together with the running program or model call, and a write
is either complete or absent.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import wraps
from itertools import islice
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NoReturn,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
    overload,
)

from rlm_mem.arguments import check_kind, not_copied
from rlm_mem.continuum.system import Continuum
from rlm_mem.errors import InputError, SessionBusy, StoreClosed
from rlm_mem.memory import Memory
from rlm_mem.recall.host_session import RecallSession
from rlm_mem.sandbox.engine import Stop, stop_of_context, stopped_by

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.config import Config
    from rlm_mem.models.base import LLM, Limits
    from rlm_mem.recall.loop import LoopStep
    from rlm_mem.recall.recall import RecallResult
    from rlm_mem.results import UndoneChange
    from rlm_mem.store.core.chunk_store import ChunkStore

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_LISTING_BATCH = 100
"""Number of items that a listing reads at a time."""


class _Threads:
    """Worker threads of one memory, and the calls running in them.

    Args:
        count: maximum number of concurrent calls; further calls wait.
        context: context variables of every call; None: a copy of the caller's for each call.
        of_batch: whether this is the single thread of a batch.
    """

    def __init__(
        self, count: int, context: contextvars.Context | None = None, *, of_batch: bool = False
    ) -> None:
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            raise InputError(f"threads must be a whole number from 1 up, not {count!r:.40}")
        self._pool = ThreadPoolExecutor(max_workers=count, thread_name_prefix="rlm-mem-async")
        self.context = context
        self.of_batch = of_batch
        self._running: set[Stop] = set()
        self._closed = False

    async def run(self, function: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
        """Call a function in a worker thread and return its result.

        Cancelling stops the call and raises CancelledError after it has ended; cancelling again raises it at once.
        """
        if self._closed and self.of_batch:
            raise StoreClosed("the batch has ended", hint="call the memory itself")
        if self._closed:
            raise StoreClosed("the memory was closed", hint="open it again")
        stop = Stop()
        context = self.context or contextvars.copy_context()

        def work() -> R:
            with stopped_by(stop):
                return function(*args, **keywords)

        self._running.add(stop)
        future = self._pool.submit(context.run, work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            stop.set()
            await _wait_until_ended(future)
            raise
        finally:
            self._running.discard(stop)

    async def close(self) -> None:
        """Stop running calls and wait until they have ended."""
        self._closed = True
        for stop in list(self._running):
            stop.set()
        await asyncio.to_thread(self._pool.shutdown)


def _reporting(method: Callable[..., R]) -> Callable[..., R]:
    """Wrap a method with ``progress`` so that it stops at its next report after its task was cancelled."""
    signature = inspect.signature(method)
    if "progress" not in signature.parameters:
        return method

    def call(*args: Any, **keywords: Any) -> R:
        bound = signature.bind(*args, **keywords)
        progress, stop = bound.arguments.get("progress"), stop_of_context()

        def report(done: int, total: int) -> None:
            if stop is not None:
                stop.check()
            if progress is not None:
                progress(done, total)

        bound.arguments["progress"] = report
        return method(*bound.args, **bound.kwargs)

    return call


async def _wait_until_ended(future: Future[Any]) -> None:
    """Wait until the call has ended, even if it failed."""
    loop = asyncio.get_running_loop()
    waiting = asyncio.Event()

    def wake(_: object) -> None:
        with suppress(RuntimeError):  # the loop was closed meanwhile
            loop.call_soon_threadsafe(waiting.set)

    future.add_done_callback(wake)
    await waiting.wait()


class _OnThreads(Generic[T]):
    """Base of objects whose methods run in worker threads."""

    def __init__(self, wrapped: T, threads: _Threads) -> None:
        self._wrapped = wrapped
        self._threads = threads

    async def run(self, function: Callable[Concatenate[T, P], R], *args: P.args, **keywords: P.kwargs) -> R:
        """Call a function with the wrapped object and further arguments in a worker thread.

        For methods that this class lacks: ``await memory.run(lambda memory: memory.continuum.traces.search("…"))``.
        """
        return await self._threads.run(function, self._wrapped, *args, **keywords)


class _Method(Protocol[P, R_co]):
    """A callable that type checkers bind to an instance like a method."""

    @overload
    def __get__(self, instance: None, owner: type) -> Callable[..., R_co]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Callable[P, R_co]: ...


def _threaded(method: Callable[Concatenate[T, P], R]) -> _Method[P, Coroutine[Any, Any, R]]:
    """Wrap a method to run in a worker thread."""
    carried_out = _reporting(method)

    @wraps(method)
    async def call(self: _OnThreads[T], *args: P.args, **keywords: P.kwargs) -> R:
        return await self._threads.run(carried_out, self._wrapped, *args, **keywords)

    return cast("_Method[P, Coroutine[Any, Any, R]]", call)


def _listing(method: Callable[Concatenate[T, P], Iterator[R]]) -> _Method[P, AsyncIterator[R]]:
    """Wrap an iterator method as an asynchronous iterator whose reads happen in a single thread."""

    @wraps(method)
    async def call(self: _OnThreads[T], *args: P.args, **keywords: P.kwargs) -> AsyncIterator[R]:
        thread = _Threads(1, contextvars.copy_context())
        try:
            items = await thread.run(method, self._wrapped, *args, **keywords)
            while some := await thread.run(lambda: list(islice(items, _LISTING_BATCH))):
                for item in some:
                    yield item
        finally:
            await thread.close()

    return cast("_Method[P, AsyncIterator[R]]", call)


def _streamed(method: Callable[Concatenate[T, P], R]) -> _Method[P, RunStream[R]]:
    """Wrap a method as a stream of its steps."""

    @wraps(method)
    def call(self: _OnThreads[T], *args: P.args, **keywords: P.kwargs) -> RunStream[R]:
        callback = cast("Callable[[LoopStep], None] | None", keywords.pop("on_step", None))

        def begin(on_step: Callable[[LoopStep], object]) -> Awaitable[R]:
            def forward(step: LoopStep) -> None:
                if callback is not None:
                    callback(step)
                on_step(step)

            every = cast("Any", {**keywords, "on_step": forward})
            return self._threads.run(method, self._wrapped, *args, **every)

        return RunStream(begin)

    return cast("_Method[P, RunStream[R]]", call)


class RunStream(Generic[R]):
    """The steps of a run as they happen: ``async for step in memory.recall_stream(question)``.

    Leaving the loop early, or leaving the surrounding ``async with``, stops the run.
    """

    def __init__(self, begin: Callable[[Callable[[LoopStep], object]], Awaitable[R]]) -> None:
        self._begin = begin
        self._steps: weakref.ref[AsyncGenerator[LoopStep, None]] | None = None
        self._result: R | None = None

    @property
    def result(self) -> R:
        """The result of the run, available after the last step was read.

        Raises:
            SessionBusy: the last step has not been read yet, or the run was stopped early.
        """
        if self._result is None:
            raise SessionBusy(
                "the run has no result until its last step has been read", hint="read the stream to its end"
            )
        return self._result

    def __aiter__(self) -> AsyncIterator[LoopStep]:
        """The steps; a stream can be iterated once.

        Raises:
            SessionBusy: the stream was already iterated.
        """
        if self._steps is not None:
            raise SessionBusy(
                "the stream has been iterated already", hint="call the method again for another run"
            )
        steps = self._follow()
        self._steps = weakref.ref(steps)  # leaving the loop drops the last reference, which stops the run
        return steps

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        steps = self._steps() if self._steps is not None else None
        if steps is not None:
            await steps.aclose()

    async def _follow(self) -> AsyncGenerator[LoopStep, None]:
        loop = asyncio.get_running_loop()
        steps: asyncio.Queue[LoopStep | None] = asyncio.Queue()
        run = asyncio.ensure_future(
            self._begin(lambda step: loop.call_soon_threadsafe(steps.put_nowait, step))
        )
        run.add_done_callback(lambda _: steps.put_nowait(None))
        try:
            while (step := await steps.get()) is not None:
                yield step
            self._result = await run
        finally:
            if not run.done():
                run.cancel()
                await asyncio.wait([run])
            elif not run.cancelled():
                run.exception()  # mark the error as retrieved, as nobody awaits a stream that was left early


class AsyncRecallSession(_OnThreads[RecallSession]):
    """A host-driven recall whose calls do not block the event loop; an asynchronous context manager.

    Its attributes are those of :class:`~rlm_mem.recall.host_session.RecallSession`.
    """

    execute = _threaded(RecallSession.execute)
    finish = _threaded(RecallSession.finish)
    ask = _threaded(RecallSession.ask)
    close = _threaded(RecallSession.close)

    @property
    def id(self) -> str:
        """Id of the trajectory."""
        return self._wrapped.id

    @property
    def query(self) -> str:
        """The question."""
        return self._wrapped.query

    @property
    def schema(self) -> str:
        """Instructions for writing programs."""
        return self._wrapped.schema

    @property
    def opening(self) -> str:
        """Question, store statistics and first hits as one message for the agent."""
        return self._wrapped.opening

    @property
    def hits(self) -> list[dict[str, Any]]:
        """The first hits, with their snippets."""
        return self._wrapped.hits

    @property
    def hit_scores(self) -> list[dict[str, Any]]:
        """Ids and scores of the first hits."""
        return self._wrapped.hit_scores

    @property
    def store_summary(self) -> dict[str, Any]:
        """Counts, tags and time span of the store."""
        return self._wrapped.store_summary

    @property
    def result(self) -> RecallResult | None:
        """The result, or None before the run has finished."""
        return self._wrapped.result

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class _Opening(Coroutine[Any, Any, R]):
    """An object to be opened: ``async with`` closes it again, after ``await`` the caller closes it.

    It is a coroutine, since ``asyncio.run`` and ``asyncio.create_task`` take nothing else.
    """

    def __init__(self, opens: Coroutine[Any, Any, R]) -> None:
        self._opens = opens
        self._opened: R | None = None

    def __await__(self) -> Generator[Any, Any, R]:
        return self._opens.__await__()

    def send(self, value: Any) -> Any:
        """Continue the opening."""
        return self._opens.send(value)

    def throw(self, *error: Any) -> Any:
        """Raise an error in the opening."""
        return self._opens.throw(*error)

    def close(self) -> None:
        """Give up the opening; what is open is closed by its own ``close``."""
        self._opens.close()

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"no {name!r:.60}, since nothing is open yet: use `async with`, or `await` it first"
        )

    async def __aenter__(self) -> R:
        self._opened = await self._opens
        return self._opened

    async def __aexit__(self, *_: object) -> None:
        await cast("AsyncMemory | AsyncRecallSession", self._opened).close()


def _opens_session(
    method: Callable[Concatenate[Memory, P], RecallSession],
) -> _Method[P, _Opening[AsyncRecallSession]]:
    @wraps(method)
    async def begin(self: AsyncMemory, *args: P.args, **keywords: P.kwargs) -> AsyncRecallSession:
        made: list[RecallSession] = []
        try:
            await self._threads.run(lambda: made.append(method(self._wrapped, *args, **keywords)))
        except asyncio.CancelledError:
            for session in made:  # nobody else can close it
                await asyncio.to_thread(session.close)
            raise
        return AsyncRecallSession(made[0], self._threads)

    @wraps(method)
    def call(self: AsyncMemory, *args: P.args, **keywords: P.kwargs) -> _Opening[AsyncRecallSession]:
        return _Opening(begin(self, *args, **keywords))

    return cast("_Method[P, _Opening[AsyncRecallSession]]", call)


def _opens_memory(method: Callable[P, Memory]) -> Callable[P, _Opening[AsyncMemory]]:
    @wraps(method)
    async def begin(*args: P.args, **keywords: P.kwargs) -> AsyncMemory:
        return AsyncMemory(await asyncio.to_thread(method, *args, **keywords))

    @wraps(method)
    def call(*args: P.args, **keywords: P.kwargs) -> _Opening[AsyncMemory]:
        return _Opening(begin(*args, **keywords))

    return call


class AsyncContinuum(_OnThreads[Continuum]):
    """The tiered memories; use ``run`` for the parts of :class:`~rlm_mem.continuum.system.Continuum`."""

    consolidate = _threaded(Continuum.consolidate)
    prune = _threaded(Continuum.prune)
    hints = _threaded(Continuum.hints)
    health = _threaded(Continuum.health)
    skills = _threaded(Continuum.skills)
    delete_chunk = _threaded(Continuum.delete_chunk)
    refuse_deletion = _threaded(Continuum.refuse_deletion)
    restore_chunk = _threaded(Continuum.restore_chunk)
    refuse_change = _threaded(Continuum.refuse_change)
    undo = _threaded(Continuum.undo)
    undo_change = _threaded(Continuum.undo_change)
    recorded_changes = _listing(Continuum.recorded_changes)
    check = _threaded(Continuum.check)
    findings = _threaded(Continuum.findings)
    repairs = _threaded(Continuum.repairs)
    sync = _threaded(Continuum.sync)


class AsyncMemory(_OnThreads[Memory]):
    """Long-term memory of an agent for programs with an event loop: the methods of Memory, awaited.

    Example::

        async with AsyncMemory.open("brain") as memory:
            await memory.remember("Dana prefers trains to planes.", conversation_id="trip")
            async for step in memory.recall_stream("How does Dana like to travel?"):
                print(step.output)

    Arguments, results and errors are those of :class:`~rlm_mem.memory.Memory`. Callbacks (``on_step``, ``progress``,
    ``functions``, a model that is a function) are called in worker threads. Cancelling the waiting task stops the work:
    a recall or a program at once; long work with ``progress`` at its next report; shorter work completes first. A write
    is applied completely or not at all.

    Args:
        memory: an open memory, which is closed with this object.
        threads: maximum number of concurrent calls; further calls wait.
    """

    def __init__(self, memory: Memory, *, threads: int = 8) -> None:
        super().__init__(check_kind(memory, Memory, "memory"), _Threads(threads))

    open = staticmethod(_opens_memory(Memory.open))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    __getstate__ = not_copied

    async def close(self) -> None:
        """Stop running calls, write pending changes, and close all files and connections."""
        await self._threads.close()
        await asyncio.to_thread(self._wrapped.close)

    @property
    def memory(self) -> Memory:
        """The synchronous memory, for code without an event loop."""
        return self._wrapped

    @property
    def store(self) -> ChunkStore:
        """The chunk store, whose methods block."""
        return self._wrapped.store

    @property
    def config(self) -> Config:
        """The effective settings."""
        return self._wrapped.config

    async def llm(self) -> LLM:
        """The model that writes the programs; it is loaded on first use."""
        return await self._threads.run(lambda: self._wrapped.llm)

    @property
    def continuum(self) -> AsyncContinuum:
        """The tiered memories of this brain."""
        return AsyncContinuum(self._wrapped.continuum, self._threads)

    remember = _threaded(Memory.remember)
    remember_many = _threaded(Memory.remember_many)
    sync_folder = _threaded(Memory.sync_folder)
    recall = _threaded(Memory.recall)
    reason = _threaded(Memory.reason)
    recall_stream = _streamed(Memory.recall)
    reason_stream = _streamed(Memory.reason)
    recall_session = _opens_session(Memory.recall_session)

    async def limits(self, **given: float | None) -> Limits:
        """The configured limits of a run with the given fields changed; None leaves a limit as configured."""
        return await self._threads.run(self._wrapped.limits, **given)

    receipt = _threaded(Memory.receipt)
    verify = _threaded(Memory.verify)
    search = _threaded(Memory.search)
    context = _threaded(Memory.context)
    get = _threaded(Memory.get)
    update = _threaded(Memory.update)
    delete = _threaded(Memory.delete)
    archive = _threaded(Memory.archive)
    erase = _threaded(Memory.erase)
    verify_erasure = _threaded(Memory.verify_erasure)
    restore = _threaded(Memory.restore)
    history = _threaded(Memory.history)

    @overload
    async def undo(self, chunk_id: None = None, *, change: str | None = None) -> UndoneChange | None: ...
    @overload
    async def undo(self, chunk_id: str, *, to_revision: int | None = None) -> Chunk | None: ...
    async def undo(
        self, chunk_id: str | None = None, *, to_revision: int | None = None, change: str | None = None
    ) -> Chunk | UndoneChange | None:
        """Undo the last change in the namespace, or the last change of one chunk (see :meth:`Memory.undo`)."""
        undo = cast("Callable[..., Chunk | UndoneChange | None]", self._wrapped.undo)
        return await self._threads.run(undo, chunk_id, to_revision=to_revision, change=change)

    link = _threaded(Memory.link)
    unlink = _threaded(Memory.unlink)
    links = _threaded(Memory.links)
    list_chunks = _threaded(Memory.list_chunks)
    supersede = _threaded(Memory.supersede)
    earlier = _threaded(Memory.earlier)
    quarantine = _threaded(Memory.quarantine)
    release = _threaded(Memory.release)
    tags = _threaded(Memory.tags)
    conversations = _threaded(Memory.conversations)

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[AsyncMemory]:
        """Group writes made through the yielded object into one transaction, applied completely or not at all.

        Writes through any other object wait until the block is left; awaiting one of them inside the block deadlocks.
        """
        inner = self
        if not self._threads.of_batch:  # a nested batch runs in the thread of the outer one
            inner = AsyncMemory(self._wrapped)
            inner._threads = _Threads(1, contextvars.copy_context(), of_batch=True)
        thread = inner._threads
        group = self._wrapped.batch()
        entered = False

        def enter() -> None:
            nonlocal entered
            group.__enter__()
            entered = True

        def leave(error: BaseException) -> None:
            if entered:
                group.__exit__(type(error), error, error.__traceback__)

        try:
            try:
                await thread.run(enter)
                yield inner
            except BaseException as error:
                await asyncio.shield(thread.run(leave, error))
                raise
            await asyncio.shield(thread.run(group.__exit__, None, None, None))
        finally:
            if inner is not self:
                await thread.close()

    stats = _threaded(Memory.stats)
    check = _threaded(Memory.check)
    repair = _threaded(Memory.repair)
    rebuild_index = _threaded(Memory.rebuild_index)
    sync = _threaded(Memory.sync)
    recorded_changes = _threaded(Memory.recorded_changes)
    checkpoint = _threaded(Memory.checkpoint)
    persona = _threaded(Memory.persona)
    hud = _threaded(Memory.hud)
    hud_figures = _threaded(Memory.hud_figures)
    trajectories = _threaded(Memory.trajectories)
    export_trajectories = _listing(Memory.export_trajectories)
    costs = _threaded(Memory.costs)
    events = _listing(Memory.events)


def check_async(memory: object) -> AsyncMemory:
    """Return ``memory`` if it is an open AsyncMemory, as adapters need; raises InputError."""
    return check_kind(memory, AsyncMemory, "memory", hint="open it with await AsyncMemory.open(…)")
