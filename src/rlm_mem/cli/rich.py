"""The parts of Rich that the command uses, loaded on first use (PEP 562).

Rich takes a good part of the time of the shortest commands to load; ``--json``, hooks and ``rlm-mem mcp`` do not
need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import (
        Console as Console,
        ConsoleOptions as ConsoleOptions,
        RenderableType as RenderableType,
    )
    from rich.live import Live as Live
    from rich.progress import (
        BarColumn as BarColumn,
        MofNCompleteColumn as MofNCompleteColumn,
        Progress as Progress,
        TextColumn as TextColumn,
        TimeRemainingColumn as TimeRemainingColumn,
    )
    from rich.rule import Rule as Rule
    from rich.syntax import Syntax as Syntax
    from rich.table import Table as Table
    from rich.text import Text as Text
    from rich.tree import Tree as Tree

_PROGRESS = ("BarColumn", "MofNCompleteColumn", "Progress", "TextColumn", "TimeRemainingColumn")


def __getattr__(name: str) -> object:
    if name not in ("Console", "Live", "Rule", "Syntax", "Table", "Text", "Tree", *_PROGRESS):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"rich.{'progress' if name in _PROGRESS else name.lower()}"), name)
