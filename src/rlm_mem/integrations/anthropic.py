"""MemoryTool: the memory tool of Claude (``memory_20250818``) kept in a brain instead of a folder."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError
from anthropic.types import beta

from rlm_mem.aio import AsyncMemory
from rlm_mem.errors import RlmMemError
from rlm_mem.integrations.records import Record, Records
from rlm_mem.memory import Memory

Create = beta.BetaMemoryTool20250818CreateCommand
Delete = beta.BetaMemoryTool20250818DeleteCommand
Insert = beta.BetaMemoryTool20250818InsertCommand
Rename = beta.BetaMemoryTool20250818RenameCommand
StrReplace = beta.BetaMemoryTool20250818StrReplaceCommand
View = beta.BetaMemoryTool20250818ViewCommand

P = ParamSpec("P")

_ROOT = "/memories"
_MAX_LINES = 999_999
_LEVELS = 2
"""Levels of folders that a view of a folder shows."""
_AROUND = 2
"""Lines that are shown around a change."""


def _in_transaction(
    command: Callable[Concatenate[MemoryTool, P], str],
) -> Callable[Concatenate[MemoryTool, P], str]:
    """Run a command in a transaction; errors become text for the model."""

    @wraps(command)
    def run(self: MemoryTool, /, *args: P.args, **keywords: P.kwargs) -> str:
        try:
            with self._memory.batch():
                return command(self, *args, **keywords)
        except RlmMemError as error:
            raise ToolError(str(error)) from error

    return run


class MemoryTool(BetaAbstractMemoryTool):
    """Claude's memory tool over a brain: its files are memories that search and recall find, too.

    Example::

        with Memory.open("brain") as memory:
            runner = client.beta.messages.tool_runner(model=…, messages=…, tools=[MemoryTool(memory)])

    Text files are records, folders are their paths; a folder exists while it contains a file. No command touches the
    file system. Each runs in a transaction; a file's former texts stay in its history until it is deleted. Keys and
    passwords are redacted as in any memory, unless ``secrets.action`` is ``keep``.

    Args:
        memory: an open memory, which the caller closes.
    """

    def __init__(self, memory: Memory) -> None:
        super().__init__()
        self._memory = memory
        self._records = Records(memory, "anthropic")

    @_in_transaction
    def view(self, command: View) -> str:
        """A file with numbered lines, or the listing of a folder."""
        path = _path(command.path)
        file = self._file(path)
        if file is None:
            return self._listing(command.path, path)
        lines = _text(file).split("\n")
        if len(lines) > _MAX_LINES:
            raise ToolError(f"File {command.path} exceeds maximum line limit of 999,999 lines.")
        first, last = 1, len(lines)
        if command.view_range and len(command.view_range) == 2:
            first = max(1, command.view_range[0])
            last = last if command.view_range[1] == -1 else min(last, command.view_range[1])
        shown = _numbered(lines, first, last)
        return f"Here's the content of {command.path} with line numbers:\n{shown}"

    def _listing(self, shown: str, path: tuple[str, ...]) -> str:
        files = list(self._records.below(path))
        if not files and path:
            raise ToolError(f"The path {shown} does not exist. Please provide a valid path.")
        sizes: dict[str, int] = {}
        for file in files:
            parts = (*file.path, file.name)[len(path) :]
            if any(part.startswith(".") for part in parts[:_LEVELS]):
                continue
            size = len(_text(file).encode())
            for depth in range(1, min(len(parts), _LEVELS) + 1):
                name = "/".join(parts[:depth]) + ("/" if depth < len(parts) else "")
                sizes[name] = sizes.get(name, 0) + size
        base = shown.rstrip("/")
        total = sum(len(_text(file).encode()) for file in files)
        lines = [
            f"{_size(total)}\t{shown}",
            *(f"{_size(sizes[name])}\t{base}/{name}" for name in sorted(sizes)),
        ]
        header = f"Here're the files and directories up to 2 levels deep in {shown}, excluding hidden items:"
        return "\n".join([header, *lines])

    @_in_transaction
    def create(self, command: Create) -> str:
        """Write a new file."""
        path = _path(command.path)
        if self._taken(path):
            raise ToolError(f"File {command.path} already exists")
        self._below_no_file(path, command.path)
        self._write(path, command.file_text)
        return f"File created successfully at: {command.path}"

    @_in_transaction
    def str_replace(self, command: StrReplace) -> str:
        """Replace a text that occurs once in a file."""
        path, text = self._existing(command.path)
        old, new = command.old_str, command.new_str or ""
        count = text.count(old) if old else 0
        if count == 0:
            raise ToolError(
                f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
            )
        if count > 1:
            places, start = [], text.find(old)
            while start >= 0:
                places.append(str(text.count("\n", 0, start) + 1))
                start = text.find(old, start + 1)
            raise ToolError(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                f"{', '.join(places)}. Please ensure it is unique"
            )
        changed = text.count("\n", 0, text.find(old)) + 1
        text = text.replace(old, new)
        self._write(path, text)
        lines = text.split("\n")
        shown = _numbered(lines, max(1, changed - _AROUND), min(len(lines), changed + _AROUND))
        return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"

    @_in_transaction
    def insert(self, command: Insert) -> str:
        """Insert text after a line."""
        path, text = self._existing(command.path)
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        if not 0 <= command.insert_line <= len(lines):
            raise ToolError(
                f"Invalid `insert_line` parameter: {command.insert_line}. "
                f"It should be within the range [0, {len(lines)}]."
            )
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        self._write(path, "\n".join(lines) + "\n")
        return f"The file {command.path} has been edited."

    @_in_transaction
    def delete(self, command: Delete) -> str:
        """Delete a file, or a folder with its contents."""
        path = _path(command.path)
        if not path:
            raise ToolError("Cannot delete the /memories directory itself")
        doomed = self._at_or_below(path)
        if not doomed:
            raise ToolError(f"The path {command.path} does not exist")
        for file in doomed:
            self._records.delete(file.path, file.name)
        return f"Successfully deleted {command.path}"

    @_in_transaction
    def rename(self, command: Rename) -> str:
        """Rename or move a file or a folder."""
        old, new = _path(command.old_path), _path(command.new_path)
        if not old:
            raise ToolError("Cannot rename the /memories directory itself")
        moved = self._at_or_below(old)
        if not moved:
            raise ToolError(f"The path {command.old_path} does not exist")
        if self._taken(new):
            raise ToolError(f"The destination {command.new_path} already exists")
        if new[: len(old)] == old:
            raise ToolError(f"{command.old_path} cannot be moved below itself")
        self._below_no_file(new, command.new_path)
        for file in moved:
            self._records.delete(file.path, file.name)
            self._write((*new, *(*file.path, file.name)[len(old) :]), _text(file))
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    @_in_transaction
    def clear_all_memory(self) -> str:
        """Delete every file of the tool; other memories stay."""
        for file in list(self._records.below(())):
            self._records.delete(file.path, file.name)
        return "All memory cleared"

    def _file(self, path: tuple[str, ...]) -> Record | None:
        return self._records.get(path[:-1], path[-1]) if path else None

    def _at_or_below(self, path: tuple[str, ...]) -> list[Record]:
        file = self._file(path)
        return [file] if file is not None else list(self._records.below(path))

    def _taken(self, path: tuple[str, ...]) -> bool:
        return not path or bool(self._at_or_below(path))

    def _below_no_file(self, path: tuple[str, ...], shown: str) -> None:
        for depth in range(1, len(path)):
            if self._file(path[:depth]) is not None:
                raise ToolError(f"{shown} cannot be created: {_ROOT}/{'/'.join(path[:depth])} is a file")

    def _existing(self, shown: str) -> tuple[tuple[str, ...], str]:
        path = _path(shown)
        file = self._file(path)
        if file is not None:
            return path, _text(file)
        if self._taken(path):
            raise ToolError(f"The path {shown} is not a file.")
        raise ToolError(f"The path {shown} does not exist. Please provide a valid path.")

    def _write(self, path: tuple[str, ...], text: str) -> None:
        self._records.put(path[:-1], path[-1], {"text": text}, text=text.strip() or None)


def _path(given: str) -> tuple[str, ...]:
    """The path components below /memories; a path that leads elsewhere, or could be read that way, is refused."""
    if given != _ROOT and not given.startswith(_ROOT + "/"):
        raise ToolError(f"Path must start with /memories, got: {given}")
    parts = tuple(part for part in given[len(_ROOT) :].split("/") if part)
    if any(part in (".", "..") or "\\" in part or not part.isprintable() for part in parts):
        raise ToolError(f"Path {given} would escape /memories directory")
    return parts


def _text(file: Record) -> str:
    return str(file.value.get("text", "")) if isinstance(file.value, dict) else ""


def _numbered(lines: list[str], first: int, last: int) -> str:
    return "\n".join(f"{number:>6}\t{lines[number - 1]}" for number in range(first, last + 1))


def _size(count: int) -> str:
    size, units = float(count), iter("BKMG")
    unit = next(units)
    while size >= 1024 and (larger := next(units, None)) is not None:
        size, unit = size / 1024, larger
    return f"{size:.0f}{unit}" if size == int(size) else f"{size:.1f}{unit}"


def _in_thread(
    command: Callable[Concatenate[MemoryTool, P], str],
) -> Callable[Concatenate[AsyncMemoryTool, P], Coroutine[Any, Any, str]]:
    """Run a command in a worker thread."""

    @wraps(command)
    async def run(self: AsyncMemoryTool, /, *args: P.args, **keywords: P.kwargs) -> str:
        return await self._memory.run(lambda _: command(self._tool, *args, **keywords))

    return run


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The same for ``AsyncAnthropic``; commands run in worker threads.

    Args:
        memory: an open memory; the caller closes it.
    """

    def __init__(self, memory: AsyncMemory) -> None:
        super().__init__()
        self._memory = memory
        self._tool = MemoryTool(memory.memory)

    view = _in_thread(MemoryTool.view)
    create = _in_thread(MemoryTool.create)
    str_replace = _in_thread(MemoryTool.str_replace)
    insert = _in_thread(MemoryTool.insert)
    delete = _in_thread(MemoryTool.delete)
    rename = _in_thread(MemoryTool.rename)
    clear_all_memory = _in_thread(MemoryTool.clear_all_memory)
