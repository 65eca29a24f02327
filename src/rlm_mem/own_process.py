"""What a process that is this package's own sets for itself: the command, its hooks and servers, and its workers.

Nothing of it happens in a program that imports the package.
"""

from __future__ import annotations

import gc
import os

__all__ = ["environment_of_programs", "prepare"]

_ONE_THREAD = "OPENBLAS_NUM_THREADS"
"""numpy comes with OpenBLAS, which starts a thread for each processor when it is loaded; these wait by spinning for
longer than loading takes. There is no linear algebra here, which alone would use them. In a program that imports
the package they belong to its own calculations."""
_COLLECTED = 50_000
"""Objects made since the last search for garbage that cause the next one. Python's 700 cause some hundred of them while
modules are loaded, which find nothing."""

_ours: list[str] = []
"""Variables that were not set before."""


def prepare() -> None:
    """Set up this process, before numpy is loaded. A variable that the user has set stays."""
    if _ONE_THREAD not in os.environ:
        os.environ[_ONE_THREAD] = "1"
        _ours.append(_ONE_THREAD)
    gc.set_threshold(_COLLECTED)


def environment_of_programs() -> dict[str, str]:
    """The environment for programs of the user that are started here, such as an editor: without what was set above."""
    return {name: value for name, value in os.environ.items() if name not in _ours}
