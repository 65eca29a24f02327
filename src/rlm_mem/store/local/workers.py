"""Worker processes that read and analyse files for the process that writes the index.

A worker is a child process that calls functions of this package with one batch of items after another. Results are
returned in the order of the items, so an index built with workers equals one built without. On Linux a worker is a
fork of this process if that has a single thread: a fork has already loaded all required modules, which takes a new
interpreter half a second. Otherwise it is a new interpreter. Python's own ``multiprocessing`` cannot be used: its
children would run the main script of the program that uses this package. If workers cannot be started, or one dies,
this process does the work itself.
"""

from __future__ import annotations

import _thread
import contextlib
import gc
import logging
import os
import queue
import signal
import struct
import subprocess
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from pkgutil import resolve_name
from typing import IO, Any, NoReturn

import msgspec

from rlm_mem import own_process
from rlm_mem.store.core.preencoding import WAIT

_logger = logging.getLogger("rlm_mem.store")

_MAX_PROCESSES = 8  # the writing process cannot keep up with more
_LOTS_PER_CHILD = 2
"""Lots that a child is sent at a time, so that it stays busy while this process does other work."""
_FIRST_LOTS_HERE = 8
"""Number of first lots that are queued last while children are still loading, so that this process works on them."""
_PIPE = 1 << 20
"""Capacity of a pipe between the processes in bytes, if the system allows it: a whole answer, so that a child continues
with its next lot while this process is busy. The usual 64 KB are half an answer."""
_SIZE = struct.Struct("<I")
_START = "import sys; sys.path[:] = {path!r}; from rlm_mem.store.local.workers import serve; serve()"


class _Request(msgspec.Struct, array_like=True):
    function: str
    given: str
    items: list[str]


def _work(request: _Request) -> list[Any]:
    """Call the function of a request with its items; the result is the same in any process."""
    function: Callable[[str, list[str]], list[Any]] = resolve_name(request.function)
    return function(request.given, request.items)


def called(
    function: str,
    given: str,
    items: Iterable[str],
    shape: Any,
    *,
    count: int,
    lot: int,
    processes: int = 0,
    few: int = 2,
    ahead: int = 0,
    otherwise: Callable[[bool], bool] | None = None,
) -> Iterator[Any]:
    """Yield the results of calling a function of this package for each item, in order; it must not use a store.

    Args:
        function: its name, ``package.module:function``; called with ``given`` and a list of items, it returns a
            list.
        given, items: strings.
        shape: type of the list that it returns.
        count: lower bound of the number of items.
        lot: number of items per call.
        processes: maximum number of processes, this one included; 0: one per core.
        few: with fewer items than this, no other process is used.
        ahead: number of calls that may be made ahead of the one whose results are needed; more with many processes.
        otherwise: called while the next answer is not available, before this process works on items; returns
            whether it had anything to do. Its argument is True if no items are left to work on.
    """
    rest = iter(items)
    requests = (_Request(function, given, some) for some in iter(lambda: list(islice(rest, lot)), []))
    processes = min(processes or _core_count(), _MAX_PROCESSES)
    if count < few or processes < 2 or not sys.executable or getattr(sys, "frozen", False):
        for request in requests:
            yield from _work(request)
        return
    if can_fork():  # first load the modules that the work needs
        yield from _work(_Request(function, given, list(islice(rest, 1))))
    pool = _Pool(processes - 1, msgspec.msgpack.Decoder(shape), ahead, otherwise)
    try:
        for answer in pool.answers(requests):
            yield from answer
    finally:
        pool.close()


def _core_count() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Pool:
    """Child processes, each driven by its own thread, which does the work itself once the child has ended.

    Args:
        count: number of children; this process also works while it waits for them.
        ahead: number of lots that may be worked on ahead of the one whose answer is needed.
        otherwise: called in this process while the next answer is not available, with True if no lots are left;
            returns False if it had nothing to do.
    """

    def __init__(
        self,
        count: int,
        decoder: msgspec.msgpack.Decoder[Any],
        ahead: int,
        otherwise: Callable[[bool], bool] | None,
    ) -> None:
        self._decoder = decoder
        self._ahead = max((_LOTS_PER_CHILD + 1) * count, ahead)
        self._otherwise = otherwise
        self._lots: queue.SimpleQueue[_QueuedLot | None] = queue.SimpleQueue()
        self._closing = False
        self._owner = threading.get_ident()
        self._children = [_start_child() for _ in range(count)]
        self._threads = [
            threading.Thread(target=self._drive, args=(child,), name="rlm-mem-reader", daemon=True)
            for child in self._children
        ]
        for thread in self._threads:
            thread.start()

    def answers(self, lots: Iterable[_Request]) -> Iterator[Any]:
        """Yield the answers in the order of the lots; a few lots are worked on ahead of the one that is needed."""
        rest = iter(lots)
        waiting = deque(map(_QueuedLot, islice(rest, self._ahead)))
        # Until the children have loaded their modules, this process works on the first lots and continues with the
        # answers.
        ready = any(child is not None and child.is_ready for child in self._children)
        first_here = 1 if ready else min(_FIRST_LOTS_HERE, len(waiting) // 2)
        for one in (*islice(waiting, first_here, None), *islice(waiting, first_here)):
            self._lots.put(one)
        for lot in rest:
            waiting.append(_QueuedLot(lot))
            self._lots.put(waiting[-1])
            yield self._first_answer(waiting)
        self._end()
        while waiting:
            yield self._first_answer(waiting)

    def _first_answer(self, waiting: deque[_QueuedLot]) -> Any:
        """Return the answer to the first lot; until another process has it, this process works on lots itself."""
        first = waiting[0]
        while not first.answer.done():
            if not (
                self._run_other_work(waiting)
                or self._work_on_one(waiting)
                or self._run_other_work(waiting, idle=True)
            ):
                break
        waiting.popleft()
        return first.answer.result()

    def _run_other_work(self, waiting: deque[_QueuedLot], *, idle: bool = False) -> bool:
        """Call the caller's other work; return whether there was any."""
        if self._otherwise is None:
            return False
        token = WAIT.set(partial(self._wait, waiting))
        try:
            return self._otherwise(idle)
        finally:
            WAIT.reset(token)

    def _wait(self, waiting: deque[_QueuedLot], call: Callable[[], object]) -> None:
        """Run a call that waits for the disk in a thread, and work on lots meanwhile."""
        if threading.get_ident() != self._owner:  # a thread that a callback started does not take lots
            call()
            return
        with ThreadPoolExecutor(1) as thread:
            called = thread.submit(call)
            while not called.done() and self._work_on_one(waiting):
                pass
            called.result()

    def _work_on_one(self, waiting: deque[_QueuedLot]) -> bool:
        """Work on the first lot that nobody has taken; return whether there was one."""
        one = next((one for one in waiting if one.take()), None)
        if one is not None:
            one.work()
        return one is not None

    def _drive(self, child: _Child | None) -> None:
        """Send lots to a child, some ahead of its answers, so that it need not wait for this process."""
        asked: deque[_QueuedLot] = deque()
        more = True
        while not self._closing:
            one = None
            if more and len(asked) < _LOTS_PER_CHILD:
                with contextlib.suppress(queue.Empty):
                    one = self._lots.get(block=not asked)
                    more = one is not None
            if one is not None:
                if not one.take():
                    continue  # this process works on it
                asked.append(one)
            elif not asked:
                if child is not None:
                    child.finish()
                return
            try:
                if child is None:
                    asked.popleft().work()
                elif one is not None:
                    child.ask(msgspec.msgpack.encode(one.lot))
                else:
                    # Decoded in this process: decoding is the more expensive half of the transfer.
                    answer = self._decoder.decode(child.answer())
                    asked.popleft().answer.set_result(answer)
            except (OSError, EOFError, msgspec.DecodeError, UnicodeEncodeError) as error:
                if not self._closing:
                    _logger.warning("a process that reads chunk files ended (%s): going on without it", error)
                child = None

    def _end(self) -> None:
        """Tell the threads that no more lots follow."""
        for _ in self._threads:
            self._lots.put(None)

    def close(self) -> None:
        """End the children immediately."""
        self._closing = True
        children = [child for child in self._children if child is not None]
        for child in children:
            child.kill()
        self._end()
        for thread in self._threads:
            thread.join()
        for child in children:
            child.close()


class _QueuedLot:
    """A lot and its answer, which either a child or this process makes."""

    def __init__(self, lot: _Request) -> None:
        self.lot = lot
        self.answer: Future[Any] = Future()
        self._taken = threading.Lock()

    def take(self) -> bool:
        """Return whether the lot is the caller's to work on: no other thread has taken it."""
        return self._taken.acquire(blocking=False)

    def work(self) -> None:
        """Make the answer in this process."""
        try:
            self.answer.set_result(_work(self.lot))
        except Exception as error:  # noqa: BLE001 - raised again where the answer is needed
            self.answer.set_exception(error)


class _Child:
    """A child process that answers requests.

    Args:
        to, back: the pipes for requests and for answers.
        is_ready: whether it has loaded the modules it needs.
    """

    def __init__(
        self, process: subprocess.Popen[bytes] | _Fork, to: IO[bytes], back: IO[bytes], *, is_ready: bool
    ) -> None:
        self._process = process
        self._to, self._back = to, back
        self.is_ready = is_ready

    def ask(self, request: bytes) -> None:
        """Send a request, which the child reads at once; raises OSError if the child has ended."""
        _send(self._to, request)

    def answer(self) -> bytes:
        """Return the answer to the oldest unanswered request; raises OSError or EOFError if the child has ended."""
        answer = _receive(self._back)
        if answer is None:
            raise EOFError(f"exit code {self._process.poll()}")
        return answer

    def finish(self) -> None:
        """Let the child end after its last answer, while this process goes on."""
        with contextlib.suppress(OSError):
            self._to.close()

    def kill(self) -> None:
        """Kill the child, which has no state to save."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Close the pipes; no thread may still be waiting for an answer."""
        self._back.close()
        self.finish()


def _start_child() -> _Child | None:
    return _fork_child() if can_fork() else _spawn_child()


def _spawn_child() -> _Child | None:
    command = [sys.executable, "-I", "-c", _START.format(path=[place for place in sys.path if place])]
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except (OSError, ValueError) as error:
        _logger.info("no process to read chunk files with: %s", error)
        return None
    assert process.stdin is not None and process.stdout is not None
    _enlarge_pipes(process.stdin.fileno(), process.stdout.fileno())
    return _Child(process, process.stdin, process.stdout, is_ready=False)


def can_fork() -> bool:
    """Return whether a fork is safe: no other thread can hold a lock that the fork would wait for.

    A fork reads requests in its own thread, which must be a real one: gevent's threads would wait for each other.
    """
    is_real = _thread.start_new_thread.__module__ == "_thread"
    return sys.platform == "linux" and is_real and threading.active_count() == 1


def _fork_child() -> _Child | None:
    pipes: list[int] = []
    try:
        pipes += os.pipe()
        pipes += os.pipe()
        with warnings.catch_warnings():
            # The warning is about threads that Python did not start, such as numpy's.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
    except OSError as error:
        _logger.info("no process to read chunk files with: %s", error)
        for descriptor in pipes:
            os.close(descriptor)
        return None
    asked, to, back, answers = pipes
    if pid == 0:
        _serve_and_exit(asked, answers)
    os.close(asked)
    os.close(answers)
    _enlarge_pipes(to, back)
    return _Child(_Fork(pid), os.fdopen(to, "wb"), os.fdopen(back, "rb"), is_ready=True)


def _enlarge_pipes(*pipes: int) -> None:
    """Enlarge pipes on Linux; if the user's limit for pipes is reached, they keep their size."""
    if sys.platform == "linux":
        import fcntl

        for pipe in pipes:
            with contextlib.suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


def _serve_and_exit(asked: int, answers: int) -> NoReturn:
    """Serve requests in a fork, then exit without any cleanup of the parent process."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # sent to the whole group: the parent ends this process
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        gc.freeze()  # the parent's objects are neither traversed nor finalised here
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        begin = 3
        for kept in (*sorted((asked, answers)), os.sysconf("SC_OPEN_MAX")):
            os.closerange(begin, kept)  # close files, locks and connections inherited from the parent
            begin = kept + 1
        serve(os.fdopen(asked, "rb"), os.fdopen(answers, "wb"))
    finally:
        os._exit(0)


class _Fork:
    """A forked process with those methods of ``subprocess.Popen`` that are used here."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code; None while the process runs."""
        return self._reap(os.WNOHANG)

    def wait(self) -> None:
        """Wait until the process ends."""
        self._reap(0)

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self._pid, signal.SIGKILL)

    def _reap(self, options: int) -> int | None:
        if self._code is None:
            try:
                pid, status = os.waitpid(self._pid, options)
            except ChildProcessError:  # the program that uses this package has reaped all its children
                self._code = -1
            else:
                self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code


def _send(stream: IO[bytes], message: bytes) -> None:
    stream.write(_SIZE.pack(len(message)) + message)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack(head)
    message = stream.read(size)
    return message if len(message) == size else None


def serve(asked: IO[bytes] | None = None, answers: IO[bytes] | None = None) -> None:
    """Run a worker: answer requests from ``asked`` (stdin) on ``answers`` (stdout) until ``asked`` is closed.

    A separate thread receives the requests: the parent sends several before it reads an answer, so each side would
    otherwise block on the other.
    """
    source, sink = asked or sys.stdin.buffer, answers or sys.stdout.buffer
    taken: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def take() -> None:
        while (message := _receive(source)) is not None:
            taken.put(message)
        taken.put(None)

    threading.Thread(target=take, daemon=True).start()
    own_process.prepare()
    requests = msgspec.msgpack.Decoder(_Request)
    encode = msgspec.msgpack.Encoder().encode
    while (message := taken.get()) is not None:
        _send(sink, encode(_work(requests.decode(message))))
