"""Modules that a program finds imported already, since models forget to: ``re``, ``json``, ``Counter`` and so on."""

from __future__ import annotations

import ast
from collections.abc import Set

__all__ = ["READY", "ready_imports"]

_MODULES = (
    "re",
    "json",
    "math",
    "datetime",
    "collections",
    "itertools",
    "functools",
    "statistics",
    "random",
    "string",
)
READY = {
    **{name: f"import {name}" for name in _MODULES},
    **dict.fromkeys(("Counter", "defaultdict", "deque"), "from collections import {}"),
    **dict.fromkeys(("timedelta", "date"), "from datetime import {}"),
}
"""How each name that needs no import is brought in."""

_DATETIME_PARTS = frozenset(
    ("datetime", "date", "time", "timedelta", "timezone", "UTC", "MINYEAR", "MAXYEAR")
)


def ready_imports(tree: ast.Module, taken: Set[str]) -> dict[str, str]:
    """The names that a program uses without having bound them, each with the import that provides it.

    ``datetime`` is the module where the program takes ``datetime.timedelta`` and the like from it, else the class.

    Args:
        taken: names that this or an earlier program of the session may have bound.
    """
    used = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in READY and isinstance(node.ctx, ast.Load)
    }
    wanted = {name: READY[name].format(name) for name in sorted(used - taken)}
    if "datetime" in wanted:
        parts = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "datetime"
        }
        if not parts & _DATETIME_PARTS:
            wanted["datetime"] = "from datetime import datetime"
    return wanted
