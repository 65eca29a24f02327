"""Lazy loading of package attributes (PEP 562) and loggers, and fewer garbage collections while modules load."""

from __future__ import annotations

import gc
import sys
from _thread import allocate_lock  # importing `threading` takes as long as the whole package
from collections.abc import Callable, Mapping
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger

GARBAGE_THRESHOLD = 200_000
"""Garbage collection threshold while modules load or many texts are stored. With Python's default of 700, loading the
modules of a first search starts many collections, and bulk storage starts one for every few texts. They free nothing,
and the larger ones traverse all objects of the program. The package's own processes use this threshold all the time."""


class _RareCollections:
    """Context manager that raises the garbage collection threshold of the process and restores the former one."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._entered = 0
        self._former_threshold = gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            if not self._entered:
                self._former_threshold = gc.get_threshold()
                if 0 < self._former_threshold[0] < GARBAGE_THRESHOLD:
                    gc.set_threshold(GARBAGE_THRESHOLD, *self._former_threshold[1:])
            self._entered += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            if not self._entered and gc.get_threshold()[0] == GARBAGE_THRESHOLD:  # else changed meanwhile
                if not gc.get_freeze_count():
                    # New objects count as old from now on; otherwise the next collection would scan all of them, which
                    # takes 15 ms for 600 documents.
                    gc.freeze()
                    gc.unfreeze()
                gc.set_threshold(*self._former_threshold)


rare_collections = _RareCollections()


def loader(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], object], list[str]]:
    """A lazy ``__getattr__`` for a package, and its ``__all__``; type checkers read imports under ``TYPE_CHECKING``.

    A name must not equal that of a module of the package, since importing the module would overwrite it.

    Args:
        package: ``__name__`` of the package.
        modules: names to load from each module, separated by spaces, by its name relative to the package.
    """
    module_of = {name: module for module, names in modules.items() for name in names.split()}

    def load(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with rare_collections:
            value: object = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, list(module_of)


def logger(name: str) -> Logger:
    """A logger that imports `logging` on first use, for modules loaded at every start.

    Most starts log nothing, and importing `logging` takes as long as opening a store without its imports.
    """
    return _Logger(name)  # type: ignore[return-value]


class _Logger:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        from logging import getLogger

        value: object = getattr(getLogger(self._name), name)
        setattr(self, name, value)  # cached, so later calls do not pass through here
        return value
