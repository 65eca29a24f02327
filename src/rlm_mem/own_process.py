"""Process-wide settings for the package's own processes: the command, hooks, servers and workers.

Importing the package into another program changes none of them.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from contextlib import contextmanager

from rlm_mem.lazy import GARBAGE_THRESHOLD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

_ONE_THREAD = "OPENBLAS_NUM_THREADS"
"""numpy comes with OpenBLAS, which starts a thread for each processor when it is loaded; these spin for longer than
loading takes. Only linear algebra uses them, and the package has none. A program that imports the package keeps them
for its own calculations."""
_UTF8 = "PYTHONUTF8"
_ASCII = ("ascii", "us-ascii", "ansi_x3.4-1968")

_set_variables: list[str] = []
"""Environment variables set by ``prepare``."""


def speak_utf8() -> None:
    """Restart this process in UTF-8 mode if the locale's encoding is ASCII and UTF-8 mode was not set.

    Otherwise non-ASCII arguments and file names would be decoded to lone surrogates, which cannot be stored.
    """
    fixed = sys.flags.ignore_environment or os.environ.get(_UTF8) == "1"
    if sys.getfilesystemencoding().lower() in _ASCII and not fixed:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, _UTF8: "1"})


def prepare() -> None:
    """Set up this process before numpy is loaded; variables that the user has set are kept."""
    if _ONE_THREAD not in os.environ:
        os.environ[_ONE_THREAD] = "1"
        _set_variables.append(_ONE_THREAD)
    gc.set_threshold(GARBAGE_THRESHOLD)


ENDING: set[int] = set()
"""The signals that end this process by an exception, besides SIGINT."""


def end_in_order() -> None:
    """Let SIGTERM and SIGHUP (a closed terminal) end this process by an exception, as Ctrl-C does.

    Temporary files are then removed and files closed. A signal that is ignored or handled already stays so.
    """
    import signal

    def end(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)  # a second one ends the process at once
        sys.exit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)  # Windows has no SIGHUP
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)
            ENDING.add(number)


@contextmanager
def until_stopped() -> Iterator[None]:
    """Run what ends only when it is asked to: then SIGTERM and SIGHUP end the process with 0, as they do a service."""
    try:
        yield
    except SystemExit as stopped:
        if stopped.code in {128 + number for number in ENDING}:
            sys.exit(0)
        raise


def leave(code: int, *, wait: bool = True) -> NoReturn:
    """Exit the process with a code without freeing memory, which takes long for numpy.

    Functions registered with `atexit` are called and output is flushed. If numpy is not loaded, another thread runs or
    the output cannot be written, the interpreter exits normally.

    Args:
        wait: for other threads; False if one cannot be ended.
    """
    if not wait or ("numpy" in sys.modules and sys.modules["threading"].active_count() == 1):
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            if wait:
                sys.exit(code)
        os._exit(code)
    sys.exit(code)


def environment_of_programs() -> dict[str, str]:
    """The environment for programs of the user, such as an editor: without variables set by ``prepare``."""
    return {name: value for name, value in os.environ.items() if name not in _set_variables}
