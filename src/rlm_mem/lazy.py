"""What is loaded when it is first used: the names of a package (PEP 562), and the loggers of what every start loads."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger


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
