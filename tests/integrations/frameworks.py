"""What the tests of the adapters share: names of a framework, imported when they are used."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest


class Lazy:
    """Names of modules, looked up when they are used: to collect these tests must not import a framework.

    Args:
        modules: in the order in which names are looked up.
    """

    def __init__(self, *modules: str) -> None:
        self._modules = modules

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)  # pytest asks for such names when it looks for fixtures
        for module in self._modules:
            if hasattr(importlib.import_module(module), name):
                return getattr(importlib.import_module(module), name)
        raise AttributeError(name)


def needs(module: str, remedy: str = "make test-integrations") -> pytest.MarkDecorator:
    """Skip, with the reason, where a module is not installed."""
    return pytest.mark.skipif(not _installed(module), reason=f"{module} is not installed: {remedy}")


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
