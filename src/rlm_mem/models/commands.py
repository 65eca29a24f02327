"""Runs a command on a text, bounded in time and output, without leaving processes behind.

No shell is involved. On POSIX the command runs in its own process group, so that stopping it also stops its children.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO

from rlm_mem.children import unwatch, watch
from rlm_mem.errors import ModelError, ModelRefused, ModelTimeout, ModelUnavailable
from rlm_mem.own_process import environment_of_programs

MAX_OUTPUT_BYTES = 4 * 1024 * 1024
"""A command that prints more than this is stopped, since no answer is that long."""

_MAX_ERROR_BYTES = 8 * 1024
_POLL_SECONDS = 0.2
# How long children of a finished command may keep its output open, and how long a command may take to exit after
# SIGTERM before it is killed.
_LINGER_SECONDS = 2.0


@dataclass(frozen=True)
class CommandResult:
    """Result of a command: exit status (negative: the signal that ended it), output, end of the error output."""

    status: int
    output: str
    errors: str
    seconds: float


def run_command(
    argv: Sequence[str],
    text: str,
    *,
    name: str,
    timeout: float | None = None,
    cwd: Path | None = None,
    on_text: Callable[[str], None] | None = None,
) -> CommandResult:
    """Run ``argv`` with ``text`` on its standard input and wait for it to finish.

    Args:
        argv: the program and its arguments.
        text: text for standard input, written as UTF-8.
        name: name of the model for messages.
        timeout: seconds until it is stopped, or None.
        cwd: working folder; None: that of this process.
        on_text: called in this thread with each piece of output as it arrives.

    Raises:
        ModelUnavailable: the program does not exist or may not be run.
        ModelRefused: the arguments are longer than the system allows.
        ModelTimeout: it did not finish in time and was stopped.
        ModelError: it printed more than :data:`MAX_OUTPUT_BYTES` and was stopped.
    """
    began = time.monotonic()
    process = _start(argv, name, cwd)
    watch(-process.pid)
    assert process.stdin and process.stdout and process.stderr
    errors = bytearray()
    pieces: SimpleQueue[bytes] = SimpleQueue()
    threads = [
        threading.Thread(target=_write, args=(process.stdin, text), daemon=True),
        threading.Thread(target=_read_output, args=(process.stdout, pieces), daemon=True),
        threading.Thread(target=_read_errors, args=(process.stderr, errors), daemon=True),
    ]
    for thread in threads:
        thread.start()
    try:
        deadline = None if timeout is None else began + timeout
        output = _collect(process, pieces, name, deadline, timeout, on_text)
        status = _wait(process, name, deadline, timeout)
    finally:
        # Also reached after Ctrl-C and exceptions of on_text; harmless if everything has exited.
        _end(process)
        unwatch(-process.pid)
        for thread in threads:
            thread.join(timeout=_LINGER_SECONDS)
    tail = bytes(errors).decode("utf-8", errors="replace")
    return CommandResult(status, output, tail, time.monotonic() - began)


def _start(argv: Sequence[str], name: str, cwd: Path | None) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env=environment_of_programs(),
            start_new_session=os.name == "posix",
        )
    except (FileNotFoundError, PermissionError) as error:
        raise ModelUnavailable(
            f"cannot run {argv[0]} for {name}: {error.strerror}", hint="install it, or give its whole path"
        ) from error
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.E2BIG:
            raise ModelRefused(
                f"the prompt is too long to be an argument of {argv[0]}", hint="let it read standard input"
            ) from error
        raise ModelUnavailable(f"cannot run {argv[0]} for {name}: {error}") from error


def _collect(
    process: subprocess.Popen[bytes],
    pieces: SimpleQueue[bytes],
    name: str,
    deadline: float | None,
    timeout: float | None,
    on_text: Callable[[str], None] | None,
) -> str:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    output: list[str] = []
    size = 0
    ended_at: float | None = None
    while True:
        now = time.monotonic()
        if deadline is not None and now >= deadline:
            raise _timed_out(name, timeout)
        try:
            piece = pieces.get(
                timeout=_POLL_SECONDS if deadline is None else min(_POLL_SECONDS, deadline - now)
            )
        except Empty:
            if process.poll() is None:
                continue
            # The command has exited, but a child keeps the pipe open.
            ended_at = ended_at or now
            if now - ended_at < _LINGER_SECONDS:
                continue
            piece = b""
        size += len(piece)
        if size > MAX_OUTPUT_BYTES:
            raise ModelError(
                f"{name} printed more than {MAX_OUTPUT_BYTES // 1024 // 1024} MiB and was terminated"
            )
        text = decoder.decode(piece, final=not piece)
        output.append(text)
        if text and on_text is not None:
            on_text(text)
        if not piece:
            return "".join(output)


def _wait(process: subprocess.Popen[bytes], name: str, deadline: float | None, timeout: float | None) -> int:
    try:
        return process.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise _timed_out(name, timeout) from None


def _timed_out(name: str, timeout: float | None) -> ModelTimeout:
    return ModelTimeout(
        f"{name} did not answer within {timeout or 0:g} seconds and was terminated",
        hint="raise llm.timeout_seconds",
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    running = process.poll() is None
    if running:
        _signal(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):  # SIGTERM was ignored, SIGKILL follows
            process.wait(_LINGER_SECONDS)
    # Also after a normal exit: children that outlive the command are in its group.
    _signal(process, signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
    if running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LINGER_SECONDS)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # ProcessLookupError: the whole group has exited. PermissionError: the rest runs as another user.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "posix":
            os.killpg(process.pid, number)
        else:
            process.terminate()


def _write(pipe: IO[bytes], text: str) -> None:
    # A command need not read its input, so closing it early is not an error.
    with contextlib.suppress(OSError, ValueError):
        pipe.write(text.encode("utf-8", errors="replace"))
    with contextlib.suppress(OSError, ValueError):
        pipe.close()


def _read_output(pipe: IO[bytes], pieces: SimpleQueue[bytes]) -> None:
    total = 0
    with pipe:
        # os.read returns what is available; a buffered read would wait for more and delay streaming.
        while total <= MAX_OUTPUT_BYTES and (piece := os.read(pipe.fileno(), 65536)):
            total += len(piece)
            pieces.put(piece)
    pieces.put(b"")


def _read_errors(pipe: IO[bytes], tail: bytearray) -> None:
    with pipe:
        while piece := os.read(pipe.fileno(), 65536):
            tail += piece
            del tail[:-_MAX_ERROR_BYTES]
