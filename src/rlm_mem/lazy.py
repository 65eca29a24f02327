"""What is loaded when it is first used: the names of a package (PEP 562), and the loggers of what every start loads.

Meanwhile, and while a memory is filled, garbage is collected more rarely.
"""

from __future__ import annotations

import gc
import sys
from _thread import allocate_lock  # `threading` takes as long to load as the whole package
from collections.abc import Callable, Mapping
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger

GARBAGE_THRESHOLD = 200_000
"""Number of new objects that triggers a garbage collection meanwhile. With Python's default of 700 there are fifty
while a first search loads its modules, a tenth of its time, and one for every ten texts of a filling. They find
nothing, and the larger ones read all that the program has in memory. The package's own processes keep it."""


class _RareCollections:
    """Within any such block of this process garbage is collected more rarely; what the program has set comes back."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._entered = 0
        self._before = gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            if not self._entered:
                self._before = gc.get_threshold()
                if 0 < self._before[0] < GARBAGE_THRESHOLD:
                    gc.set_threshold(GARBAGE_THRESHOLD, *self._before[1:])
            self._entered += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            if not self._entered and gc.get_threshold()[0] == GARBAGE_THRESHOLD:  # else it was set meanwhile
                if not gc.get_freeze_count():
                    # What was made counts as old from now on: else the next new object would have all of it read, in
                    # 15 ms for 600 documents.
                    gc.freeze()
                    gc.unfreeze()
                gc.set_threshold(*self._before)


rare_collections = _RareCollections()


def loader(package: str, modules: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """A function for a package to assign to ``__getattr__``; type checkers read the imports under ``TYPE_CHECKING``.

    No name may be that of a module of the package: importing the module would replace the name.

    Args:
        package: its ``__name__``.
        modules: names of modules relative to the package, each with the names to load from it.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> object:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with rare_collections:
            value: object = getattr(import_module(f"{package}.{module_of[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


def logger(name: str) -> Logger:
    """The logger of this name, for modules that opening and searching load: most starts have nothing to log.

    Loading `logging` takes as long as all that opening a store does beside loading modules.
    """
    return _Logger(name)  # type: ignore[return-value]


class _Logger:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        from logging import getLogger

        value: object = getattr(getLogger(self._name), name)
        setattr(self, name, value)  # from now on as quick as the method of a logger
        return value
