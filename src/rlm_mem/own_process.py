"""Settings of the package's own processes: the command, its hooks and servers, and its workers.

Importing the package into another program changes nothing.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys

from rlm_mem.lazy import GARBAGE_THRESHOLD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_ONE_THREAD = "OPENBLAS_NUM_THREADS"
"""numpy comes with OpenBLAS, which starts a thread for each processor when it is loaded; these spin for longer than
loading takes. Only linear algebra uses them, and the package has none. A program that imports the package keeps them
for its own calculations."""
_UTF8 = "PYTHONUTF8"
_ASCII = ("ascii", "us-ascii", "ansi_x3.4-1968")

_ours: list[str] = []
"""Environment variables that ``prepare`` set."""


def speak_utf8() -> None:
    """Start this program anew with UTF-8 where the locale has ASCII alone and Python's UTF-8 mode is off.

    Arguments and names of files with other letters would else be half surrogate pairs, which no memory has.
    """
    fixed = sys.flags.ignore_environment or os.environ.get(_UTF8) == "1"
    if sys.getfilesystemencoding().lower() in _ASCII and not fixed:
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, _UTF8: "1"})


def prepare() -> None:
    """Set up this process, before numpy is loaded. A variable that the user has set stays."""
    if _ONE_THREAD not in os.environ:
        os.environ[_ONE_THREAD] = "1"
        _ours.append(_ONE_THREAD)
    gc.set_threshold(GARBAGE_THRESHOLD)


def leave(code: int) -> NoReturn:
    """End this process with an exit code, and leave its memory to the system: freeing that of numpy takes 10 ms.

    What is registered with `atexit` is called, and what was printed goes out. Where numpy is not loaded, another thread
    runs or the output cannot be written, the interpreter ends the process as ever.
    """
    if "numpy" in sys.modules and sys.modules["threading"].active_count() == 1:
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            sys.exit(code)
        os._exit(code)
    sys.exit(code)


def environment_of_programs() -> dict[str, str]:
    """The environment for the user's programs, such as an editor: without the variables that ``prepare`` set."""
    return {name: value for name, value in os.environ.items() if name not in _ours}
