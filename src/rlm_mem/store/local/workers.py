"""Processes that read and analyse files for the one that writes the index, if that is quicker.

A worker is a child process that calls functions of this package with one lot of items after another; the results come
back in the order of the items, so an index made with workers is the same as one made without. On Linux it is a fork of
this process if that has a single thread: a fork has already loaded everything that the work needs, which takes a new
interpreter half a second. Otherwise it is a new interpreter. Python's own ``multiprocessing`` cannot be used: its
children would run the main script of the program that uses this package. If children cannot be started, or one dies,
the work is done in this process.
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
from rlm_mem.store.core.ahead import WAIT

_logger = logging.getLogger("rlm_mem.store")

_MOST = 8  # the writing process cannot keep up with more
_ASKED = 2
"""Lots that a child has at a time, so that it can go on while this process is busy."""
_BEGUN_HERE = 8
"""Number of first lots that are queued last while children are still loading: this process works on them."""
_PIPE = 1 << 20
"""Bytes that a pipe between the processes holds, where the system lets it: a whole answer, so that a child goes on with
its next lot while this process is busy. The usual 64 KB hold half of one."""
_SIZE = struct.Struct("<I")
_START = "import sys; sys.path[:] = {path!r}; from rlm_mem.store.local.workers import serve; serve()"


class _Request(msgspec.Struct, array_like=True):
    function: str
    given: str
    items: list[str]


def _work(request: _Request) -> list[Any]:
    """The answers to a request, one for each item; the same here and in another process."""
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
    """The results of a function of this package, which uses no store, for each item in order.

    Args:
        function: its name, ``package.module:function``; called with ``given`` and a list of items, it returns a list.
        given, items: strings.
        shape: type of the list that it returns.
        count: how many items there are, at least.
        lot: number of items of one call.
        processes: how many may be used, this one included; 0 takes as many as there are cores.
        few: with fewer items no other process is used.
        ahead: calls that may be made ahead of the one whose results are needed; more if there are many processes.
        otherwise: called while the next answer is not there, before items are worked on here; returns whether it had
            anything to do. Its argument is True if no items are left to work on.
    """
    rest = iter(items)
    requests = (_Request(function, given, some) for some in iter(lambda: list(islice(rest, lot)), []))
    processes = min(processes or _cores(), _MOST)
    if count < few or processes < 2 or not sys.executable or getattr(sys, "frozen", False):
        for request in requests:
            yield from _work(request)
        return
    if can_fork():  # first load what the work needs
        yield from _work(_Request(function, given, list(islice(rest, 1))))
    pool = _Pool(processes - 1, msgspec.msgpack.Decoder(shape), ahead, otherwise)
    try:
        for answer in pool.answers(requests):
            yield from answer
    finally:
        pool.close()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Pool:
    """Children, each driven by a thread of its own that does the work itself once its child is gone.

    Args:
        count: number of children; this process works, too, while it waits for them.
        decoder: decoder of answers.
        ahead: lots that may be worked on ahead of the one whose answer is needed.
        otherwise: called in this process while the next answer is not there, with True if no lots are left; returns
            False if it had nothing to do.
    """

    def __init__(
        self,
        count: int,
        decoder: msgspec.msgpack.Decoder[Any],
        ahead: int,
        otherwise: Callable[[bool], bool] | None,
    ) -> None:
        self._decoder = decoder
        self._ahead = max((_ASKED + 1) * count, ahead)
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
        """The answers in the order of the lots; a few lots are worked on ahead of the one that is needed."""
        rest = iter(lots)
        waiting = deque(_QueuedLot(lot, Future()) for lot in islice(rest, self._ahead))
        # Until children have loaded what they need, this process works on the first lots and goes on with the answers.
        ready = any(child is not None and child.is_ready for child in self._children)
        here = 1 if ready else min(_BEGUN_HERE, len(waiting) // 2)
        for one in (*islice(waiting, here, None), *islice(waiting, here)):
            self._lots.put(one)
        for lot in rest:
            waiting.append(_QueuedLot(lot, Future()))
            self._lots.put(waiting[-1])
            yield self._first_answer(waiting)
        while waiting:
            yield self._first_answer(waiting)

    def _first_answer(self, waiting: deque[_QueuedLot]) -> Any:
        """The answer to the first lot; until another process has it, this process works on lots itself."""
        first = waiting[0]
        while not first.is_answered:
            if not (
                self._run_otherwise(waiting)
                or self._work_on_one(waiting)
                or self._run_otherwise(waiting, idle=True)
            ):
                break
        waiting.popleft()
        return (first.here or first.future).result()

    def _run_otherwise(self, waiting: deque[_QueuedLot], *, idle: bool = False) -> bool:
        """Let the caller do something else; returns whether it did."""
        if self._otherwise is None:
            return False
        token = WAIT.set(partial(self._wait, waiting))
        try:
            return self._otherwise(idle)
        finally:
            WAIT.reset(token)

    def _wait(self, waiting: deque[_QueuedLot], call: Callable[[], object]) -> None:
        """Make a call that waits for the disk, and work on lots meanwhile."""
        if threading.get_ident() != self._owner:  # a thread that a callback started takes no lots
            call()
            return
        with ThreadPoolExecutor(1) as thread:
            called = thread.submit(call)
            while not called.done() and self._work_on_one(waiting):
                pass
            called.result()

    def _work_on_one(self, waiting: deque[_QueuedLot]) -> bool:
        """Work on the first lot that is left; returns whether there was one."""
        one = next((one for one in waiting if one.is_untaken and one.future.cancel()), None)
        if one is not None:
            one.here = Future()
            _answer(one.lot, one.here)
        return one is not None

    def _drive(self, child: _Child | None) -> None:
        """Send lots to a child, some ahead of its answers, so that it need not wait for this process."""
        asked: deque[_QueuedLot] = deque()
        while not self._closing:
            one = self._next(wait=not asked) if len(asked) < _ASKED else None
            if one is not None:
                if not one.future.set_running_or_notify_cancel():
                    continue  # answered already, in `_first_answer`
                asked.append(one)
            elif not asked:
                return  # closed
            try:
                if child is None:
                    one = asked.popleft()
                    _answer(one.lot, one.future)
                elif one is not None:
                    child.ask(msgspec.msgpack.encode(one.lot))
                else:
                    # Decoded in this process: the more expensive half of the transfer.
                    answer = self._decoder.decode(child.answer())
                    asked.popleft().future.set_result(answer)
            except (OSError, EOFError, msgspec.DecodeError, UnicodeEncodeError) as error:
                if not self._closing:
                    _logger.warning("a process that reads chunk files ended (%s): going on without it", error)
                child = None

    def _next(self, *, wait: bool) -> _QueuedLot | None:
        try:
            return self._lots.get(block=wait)
        except queue.Empty:
            return None

    def close(self) -> None:
        """End the children, whatever they are doing."""
        self._closing = True
        children = [child for child in self._children if child is not None]
        for child in children:
            child.kill()
        for _ in self._threads:
            self._lots.put(None)
        for thread in self._threads:
            thread.join()
        for child in children:
            child.close()


def _answer(lot: _Request, future: Future[Any]) -> None:
    try:
        future.set_result(_work(lot))
    except Exception as error:  # noqa: BLE001 - raised where the answer is asked for
        future.set_exception(error)


class _QueuedLot(msgspec.Struct):
    """A lot with its answer: that of another process, or of ``here`` if this one took it first."""

    lot: _Request
    future: Future[Any]
    here: Future[Any] | None = None

    @property
    def is_untaken(self) -> bool:
        """Whether no process works on it or has done so."""
        return not (self.future.running() or self.future.done())

    @property
    def is_answered(self) -> bool:
        """Whether its answer is there."""
        return (self.here or self.future).done()


class _Child:
    """A process that answers requests.

    Args:
        process: the process.
        to, back: where it reads requests, and writes answers.
        is_ready: whether it has loaded what it needs.
    """

    def __init__(
        self, process: subprocess.Popen[bytes] | _Fork, to: IO[bytes], back: IO[bytes], *, is_ready: bool
    ) -> None:
        self._process = process
        self._to, self._back = to, back
        self.is_ready = is_ready

    def ask(self, request: bytes) -> None:
        """Send a request, which is read at once; raises OSError if the child is gone."""
        _send(self._to, request)

    def answer(self) -> bytes:
        """The answer to the first request that has none yet; raises OSError or EOFError if the child is gone."""
        answer = _receive(self._back)
        if answer is None:
            raise EOFError(f"exit code {self._process.poll()}")
        return answer

    def kill(self) -> None:
        """End the child, which has no state."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Close the pipes; no thread may wait for an answer any more."""
        self._back.close()
        try:
            self._to.close()
        except OSError:  # unsent data cannot be sent any more
            return


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
    """Whether no other thread can hold a lock that a fork of this process would wait for.

    A fork reads in a thread of its own, which has to be a real one: gevent's would wait for each other.
    """
    is_real = _thread.start_new_thread.__module__ == "_thread"
    return sys.platform == "linux" and is_real and threading.active_count() == 1


def _fork_child() -> _Child | None:
    pipes: list[int] = []
    try:
        pipes += os.pipe()
        pipes += os.pipe()
        with warnings.catch_warnings():
            # About threads that Python did not start, such as numpy's.
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
    """Let pipes hold more, on Linux; where a user's pipes hold as much as they may, they stay as they are."""
    if sys.platform == "linux":
        import fcntl

        for pipe in pipes:
            with contextlib.suppress(OSError):
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE)


def _serve_and_exit(asked: int, answers: int) -> NoReturn:
    """In a fork: serve, then exit without any cleanup of the parent process."""
    try:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # sent to the whole group: the parent ends this process
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        gc.freeze()  # the parent's objects are neither traversed nor finalised here
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        begin = 3
        for kept in (*sorted((asked, answers)), os.sysconf("SC_OPEN_MAX")):
            os.closerange(begin, kept)  # files, locks and connections of the parent are its own
            begin = kept + 1
        serve(os.fdopen(asked, "rb"), os.fdopen(answers, "wb"))
    finally:
        os._exit(0)


class _Fork:
    """A forked process, with the methods of ``subprocess.Popen`` that are used here."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._reaped(os.WNOHANG)

    def wait(self) -> None:
        """Wait for its end."""
        self._reaped(0)

    def kill(self) -> None:
        """End it."""
        if self.poll() is None:
            os.kill(self._pid, signal.SIGKILL)

    def _reaped(self, options: int) -> int | None:
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
    """The child's side: answer requests from ``asked`` (stdin) on ``answers`` (stdout) until ``asked`` is closed.

    A separate thread receives the requests: the parent sends several before it reads an answer, and must not wait for
    this process while this process waits for the parent.
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
