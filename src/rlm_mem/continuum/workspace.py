"""Working state of the current execution: plan, context, variables, history and constraints.

It is updated after each tool call and stays until :meth:`Workspace.clear`. It is never consolidated or mirrored as
chunks, since it is meaningless after the execution.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from rlm_mem.arguments import check_mapping, check_words
from rlm_mem.chunk.types import is_one_of
from rlm_mem.continuum import places
from rlm_mem.continuum.changes import Changes
from rlm_mem.continuum.files import MemoryFiles, TieredMemory, new_text
from rlm_mem.continuum.schema import stamp, tier_fields
from rlm_mem.errors import InvalidMemory
from rlm_mem.text.secrets import screen, screen_data

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

_TEXTS = ("plan", "context", "history", "constraints")


class Workspace:
    """Reads and writes the five files of ``workspace/state``."""

    def __init__(self, store: ChunkStore, memories: MemoryFiles, changes: Changes) -> None:
        self._store = store
        self._files = memories
        self._changes = changes

    def start(self, plan: str, *, context: str = "", constraints: str = "") -> None:
        """Begin an execution: replace the previous state."""
        for text, what in ((plan, "plan"), (context, "context"), (constraints, "constraints")):
            check_words(text, what)
        with self._changes.locked():
            self._clear()
            self._put_text("plan", plan)
            self._put_text("context", context)
            self._put_text("constraints", constraints)
            self._put_text("history", "")
            self._put_variables({})

    def put(self, name: str, text: str) -> None:
        """Replace plan, context, history or constraints; raises InvalidMemory for any other name."""
        if not is_one_of(name, _TEXTS):
            raise InvalidMemory(f"there is no state file {name!r:.40}: use {', '.join(_TEXTS)}")
        check_words(text, "text")
        with self._changes.locked():
            self._put_text(name, text)

    def after_tool_call(
        self,
        tool: str,
        call: str = "",
        result: str = "",
        *,
        variables: Mapping[str, Any] | None = None,
        context: str | None = None,
    ) -> None:
        """Update the state after a tool call: add a line of history, merge variables, append context."""
        for text, what in ((tool, "tool"), (call, "call"), (result, "result")):
            check_words(text, what)
        if context is not None:
            check_words(context, "context")
        if variables is not None:
            check_mapping(variables, "variables")
        with self._changes.locked():
            line = f"- {stamp(self._store.clock())} `{tool}` {call}".rstrip()
            if result:
                line += f" → {result}"
            former = self.text("history")
            self._put_text("history", f"{former.rstrip()}\n{' '.join(line.split())}\n".lstrip("\n"))
            self._put_variables({**self.variables(), **(variables or {})})
            if context is not None:
                self._put_text("context", f"{self.text('context').rstrip()}\n\n{context}\n".lstrip("\n"))

    def text(self, name: str) -> str:
        """The body of plan, context, history or constraints; empty if the file is missing."""
        entry = self._files.get(f"{places.STATE}/{check_words(name, 'name')}.md")
        return entry.body if entry is not None else ""

    def variables(self) -> dict[str, Any]:
        """The variables of the execution."""
        entry = self._files.get(f"{places.STATE}/variables.json")
        try:
            loaded = msgspec.json.decode(entry.body) if entry is not None else {}
        except RecursionError:
            raise InvalidMemory(f"{places.STATE}/variables.json: the JSON is nested too deeply") from None
        return loaded if isinstance(loaded, dict) else {}

    def entries(self) -> list[TieredMemory]:
        """The existing state files, as memories."""
        return [entry for file in places.STATE_FILES if (entry := self._files.get(file)) is not None]

    def clear(self) -> list[str]:
        """Remove the state files; returns the names of those removed."""
        with self._changes.locked():
            return self._clear()

    def _clear(self) -> list[str]:
        present = [file for file in places.STATE_FILES if self._files.exists(file)]
        for file in present:
            self._files.stored.remove(file)
        return present

    def _fields(self, file: str) -> dict[str, Any]:
        try:
            entry = self._files.get(file)
        except InvalidMemory:  # an invalid file does not matter: it is overwritten
            entry = None
        created = entry.meta.created_at if entry is not None else stamp(self._store.clock())
        return {
            **tier_fields("high"),
            "retention_policy": "volatile",
            "confidence_score": 1.0,
            "created_at": created,
        }

    def _put_text(self, name: str, text: str) -> None:
        file = f"{places.STATE}/{name}.md"
        screened = screen(text, self._store.config.secrets)
        if screened.found:
            self._store.on_secret(file, screened)
        self._files.stored.write(file, new_text(self._fields(file), screened.text).encode("utf-8"))

    def _put_variables(self, variables: Mapping[str, Any]) -> None:
        file = f"{places.STATE}/variables.json"
        if "_memory" in variables:
            raise InvalidMemory(f"{file}: _memory: this name is reserved for the front matter")
        variables, found = screen_data(variables, self._store.config.secrets, where=file)
        if found.found:
            self._store.on_secret(file, found)
        try:
            data = msgspec.json.encode({"_memory": self._fields(file), **variables})
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidMemory(f"{file}: variables must be plain data: {error}") from None
        self._files.stored.write(file, msgspec.json.format(data, indent=2) + b"\n")
