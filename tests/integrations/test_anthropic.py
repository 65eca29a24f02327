"""The memory tool of Claude against the real SDK: every command as its tool over a folder, and no way out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.frameworks import Lazy, needs

from rlm_mem import AsyncMemory, Memory

pytestmark = needs("anthropic", "the extra llm")
sdk = Lazy(
    "rlm_mem.integrations.anthropic",
    "anthropic.lib.tools",
    "anthropic.lib.tools._beta_builtin_memory_tool",
)

NOTES = "/memories/notes.txt"
COMMANDS: list[dict[str, Any]] = [
    {"command": "create", "path": NOTES, "file_text": "one bee\ntwo wasps\nthree bees\n"},
    {"command": "create", "path": NOTES, "file_text": "again"},
    {"command": "view", "path": NOTES},
    {"command": "view", "path": NOTES, "view_range": [2, 3]},
    {"command": "view", "path": NOTES, "view_range": [2, -1]},
    {"command": "str_replace", "path": NOTES, "old_str": "two wasps", "new_str": "two hornets"},
    {"command": "str_replace", "path": NOTES, "old_str": "bee", "new_str": "ant"},
    {"command": "str_replace", "path": NOTES, "old_str": "not there", "new_str": "ant"},
    {"command": "insert", "path": NOTES, "insert_line": 0, "insert_text": "first\n"},
    {"command": "insert", "path": NOTES, "insert_line": 4, "insert_text": "last"},
    {"command": "insert", "path": NOTES, "insert_line": 99, "insert_text": "too far"},
    {"command": "view", "path": NOTES},
    {"command": "create", "path": "/memories/people/ines.md", "file_text": "Ines lives in Porto."},
    {"command": "insert", "path": "/memories/people", "insert_line": 0, "insert_text": "x"},
    {"command": "rename", "old_path": NOTES, "new_path": "/memories/people/ines.md"},
    {"command": "rename", "old_path": NOTES, "new_path": "/memories/old/notes.txt"},
    {"command": "rename", "old_path": "/memories/people", "new_path": "/memories/friends"},
    {"command": "view", "path": "/memories/friends/ines.md"},
    {"command": "view", "path": NOTES},
    {"command": "delete", "path": NOTES},
    {"command": "rename", "old_path": NOTES, "new_path": "/memories/x"},
    {"command": "str_replace", "path": NOTES, "old_str": "a", "new_str": "b"},
    {"command": "delete", "path": "/memories"},
    {"command": "delete", "path": "/memories/old"},
    {"command": "view", "path": "/memories/old/notes.txt"},
]
OUTSIDE = [
    "/etc/passwd",
    "memories/x",
    "/memoriesx/y",
    "/memories/../etc/passwd",
    "/memories/a/../../b",
    "/memories/./a",
    "/memories/..\\b",
    "/memories/a\x00b",
    "",
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "brain") as opened:
        yield opened


def outcome(tool: Any, command: dict[str, Any]) -> str:
    try:
        return str(tool.call(command))
    except sdk.ToolError as error:
        return f"refused: {error}"


def test_every_command_answers_as_the_tool_over_a_folder(memory: Memory, tmp_path: Path) -> None:
    own, other = sdk.MemoryTool(memory), sdk.BetaLocalFilesystemMemoryTool(str(tmp_path / "folder"))
    assert own.to_dict() == other.to_dict()
    for command in COMMANDS:
        assert outcome(own, command) == outcome(other, command), command


def test_the_asynchronous_tool_does_the_same(memory: Memory, tmp_path: Path) -> None:
    other = sdk.BetaLocalFilesystemMemoryTool(str(tmp_path / "folder"))

    async def use() -> None:
        tool = sdk.AsyncMemoryTool(AsyncMemory(memory))
        for command in COMMANDS:
            try:
                got = str(await tool.call(command))
            except sdk.ToolError as error:
                got = f"refused: {error}"
            assert got == outcome(other, command), command
        assert await tool.clear_all_memory() == "All memory cleared"

    asyncio.run(use())


def test_a_folder_is_listed_two_levels_deep_with_sizes(memory: Memory) -> None:
    tool = sdk.MemoryTool(memory)
    assert outcome(tool, {"command": "view", "path": "/memories"}).endswith("0B\t/memories")
    for path in ("a.txt", "b/c.txt", "b/d/e.txt", ".hidden"):
        tool.call({"command": "create", "path": f"/memories/{path}", "file_text": "x" * 1536})
    lines = outcome(tool, {"command": "view", "path": "/memories"}).splitlines()[1:]
    assert lines == [
        "6K\t/memories",
        "1.5K\t/memories/a.txt",
        "3K\t/memories/b/",
        "1.5K\t/memories/b/c.txt",
        "1.5K\t/memories/b/d/",
    ]


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_outside(memory: Memory, path: str) -> None:
    tool = sdk.MemoryTool(memory)
    tool.call({"command": "create", "path": NOTES, "file_text": "x"})
    for command in (
        {"command": "view", "path": path},
        {"command": "create", "path": path, "file_text": "x"},
        {"command": "str_replace", "path": path, "old_str": "x", "new_str": "y"},
        {"command": "insert", "path": path, "insert_line": 0, "insert_text": "x"},
        {"command": "delete", "path": path},
        {"command": "rename", "old_path": path, "new_path": "/memories/z"},
        {"command": "rename", "old_path": NOTES, "new_path": path},
    ):
        assert outcome(tool, command).startswith("refused: Path"), command
    assert len(memory.list_chunks()) == 1


def test_a_file_is_not_a_folder_and_nothing_moves_below_itself(memory: Memory) -> None:
    tool = sdk.MemoryTool(memory)
    tool.call({"command": "create", "path": "/memories/a/b", "file_text": "x"})
    assert "is a file" in outcome(tool, {"command": "create", "path": "/memories/a/b/c", "file_text": "x"})
    assert "already exists" in outcome(tool, {"command": "create", "path": "/memories/a", "file_text": "x"})
    assert "refused" in outcome(
        tool, {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/a/c"}
    )
    assert outcome(tool, {"command": "view", "path": "/memories/a/b"}).endswith("\tx")


def test_files_are_memories_and_other_memories_are_not_files(memory: Memory) -> None:
    memory.remember("Ana keeps bees in Faro.")
    tool = sdk.MemoryTool(memory)
    tool.call({"command": "create", "path": "/memories/ines", "file_text": "Ines lives in Porto."})
    assert "Porto" in str(memory.recall("Where does Ines live?").content)
    tool.call({"command": "create", "path": "/memories/empty", "file_text": ""})
    assert outcome(tool, {"command": "view", "path": "/memories/empty"}).endswith("     1\t")
    tool.clear_all_memory()
    assert len(memory.list_chunks()) == 1
