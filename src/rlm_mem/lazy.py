"""Load the names of a package when they are first used (PEP 562): importing the package alone costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module

__all__ = ["loader"]


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
