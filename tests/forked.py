"""Work in processes of their own that need not load the package again, which would take longer than the work."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def forked(work: Callable[[T], R], *given: T) -> list[R]:
    """What a function returns for each argument, all called at once, each in a process that is forked from this one.

    Args:
        work: a function of a module, or a `partial` of one.

    Raises:
        Exception: that of the first call that fails.
    """
    with ProcessPoolExecutor(len(given), mp_context=get_context("fork")) as pool:
        return list(pool.map(work, given, timeout=240))
