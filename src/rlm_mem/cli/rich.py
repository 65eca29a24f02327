"""The parts of Rich that the command uses, loaded on first use (PEP 562).

Rich takes 70 ms of CPU to load, a fifth of the shortest commands; ``--json``, hooks and ``rlm-mem mcp`` do not
need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group, RenderableType
    from rich.live import Live
    from rich.padding import Padding
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.rule import Rule
    from rich.syntax import Syntax
    from rich.table import Table
    from rich.text import Text
    from rich.tree import Tree

__all__ = [
    "BarColumn",
    "Console",
    "ConsoleOptions",
    "Group",
    "Live",
    "MofNCompleteColumn",
    "Padding",
    "Progress",
    "RenderableType",
    "Rule",
    "Syntax",
    "Table",
    "Text",
    "TextColumn",
    "TimeRemainingColumn",
    "Tree",
]

_MODULES = {
    **dict.fromkeys(("Console", "ConsoleOptions", "Group", "RenderableType"), "console"),
    **dict.fromkeys(
        ("BarColumn", "MofNCompleteColumn", "Progress", "TextColumn", "TimeRemainingColumn"), "progress"
    ),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"rich.{_MODULES.get(name, name.lower())}"), name)
