"""A process that kills itself at a chosen call of some functions, as a crash would."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def at_call(number: int, after: bool) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """A wrapper of functions, which count their calls together: the process is killed just before (or after) the
    call of the given number.
    """
    count = 0

    def patched(original: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **more: object) -> object:
            nonlocal count
            count += 1
            own = count  # such functions call each other
            if own == number and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = original(*args, **more)
            if own == number and after:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return call

    return patched
