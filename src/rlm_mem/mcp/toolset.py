"""Which tools are offered, and in which order: the one place where a group of tools is registered."""

from __future__ import annotations

from rlm_mem.mcp import tools_memory, tools_more, tools_recall, tools_upkeep
from rlm_mem.mcp.tool import Tool

__all__ = ["GROUPS", "tools_for"]

#: Groups in the order in which clients list them. A new group is a module with a tuple ``TOOLS``, added at the end.
GROUPS: tuple[tuple[Tool, ...], ...] = (
    tools_recall.TOOLS,
    tools_memory.TOOLS,
    tools_more.TOOLS,
    tools_upkeep.TOOLS,
)


def tools_for(*, every: bool = False, read_only: bool = False) -> list[Tool]:
    """The tools of a server.

    Args:
        every: also those that are not offered by default.
        read_only: none that changes a memory.
    """
    return [
        tool
        for group in GROUPS
        for tool in group
        if (every or tool.default) and (tool.read_only or not read_only)
    ]
