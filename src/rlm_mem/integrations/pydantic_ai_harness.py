"""NotebookStore: the files of the memory of ``pydantic-ai-harness`` kept in a brain (extra ``pydantic-ai-harness``)."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import Any

from pydantic_ai_harness.memory import (
    MemoryConflictError,
    MemoryFile,
    MemoryMutation,
    MemoryOperation,
    MemoryOperationConflictError,
    MemorySearchMatch,
    MemorySearchResult,
)

from rlm_mem.aio import AsyncMemory, check_async
from rlm_mem.integrations.records import Record, Records
from rlm_mem.memory import Memory

_RECEIPTS = "workspace/pydantic-ai-harness.json"
_MAX_RECEIPTS = 1024
_MAX_METADATA = 4_096  # characters as JSON, as in the stores of the harness
_SEGMENT = re.compile(r"(?!\.+$)(?!.*\.\.)[A-Za-z0-9_.-]{1,200}")


class NotebookStore:
    """Versioned files for ``Memory(store=…)`` of the harness, each a memory that recall and search find, too.

    Example::

        async with await AsyncMemory.open("brain") as memory:
            agent = Agent("openai:gpt-5", capabilities=[Memory(store=NotebookStore(memory), namespace="ana")])

    Several processes may write: an outdated version is refused, and a repeated operation is not carried out
    again. Former contents stay in the history of their chunk until a file is deleted.

    Args:
        memory: an open memory, which the caller closes.
    """

    def __init__(self, memory: AsyncMemory) -> None:
        self._memory = check_async(memory)
        self._records = Records(memory.memory, "pydantic-ai")

    async def read(self, path: str, *, max_chars: int) -> MemoryFile | None:
        """The file, cut to ``max_chars`` characters, or None."""
        place = _place(path)
        if max_chars <= 0:
            raise ValueError("max_chars must be positive")
        record = await self._memory.run(lambda _: self._records.get(*place))
        if record is None:
            return None
        content = record.value["content"]
        return MemoryFile(
            content=content[:max_chars],
            version=record.value["version"],
            operation_id=record.value.get("operation"),
            truncated=len(content) > max_chars,
            metadata=record.value.get("metadata"),
        )

    async def get_operation(self, operation: MemoryOperation) -> MemoryMutation | None:
        """The result of an operation carried out before, or None; the newest 1,024 are kept."""
        return await self._memory.run(lambda memory: _replayed(_receipts(memory), operation))

    async def write(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Create or replace a file whose version is the expected one (None: there is none)."""
        return await self.write_with_metadata(
            path, content, expected_version=expected_version, metadata=None, operation=operation
        )

    async def write_with_metadata(
        self,
        path: str,
        content: str,
        *,
        expected_version: str | None,
        metadata: Mapping[str, str] | None,
        operation: MemoryOperation | None = None,
    ) -> MemoryMutation:
        """Like :meth:`write`, with metadata that is kept with this version."""
        _place(path)
        value: dict[str, Any] = {"content": content}
        if metadata:
            if len(json.dumps(dict(metadata), ensure_ascii=False)) > _MAX_METADATA:
                raise ValueError(f"the metadata is longer than {_MAX_METADATA} characters")
            value["metadata"] = dict(metadata)
        return await self._memory.run(self._change, path, value, expected_version, operation)

    async def delete(
        self, path: str, *, expected_version: str | None, operation: MemoryOperation | None = None
    ) -> MemoryMutation:
        """Delete a file whose version is the expected one, with its history."""
        _place(path)
        return await self._memory.run(self._change, path, None, expected_version, operation)

    def _change(
        self,
        memory: Memory,
        path: str,
        value: dict[str, Any] | None,
        expected: str | None,
        operation: MemoryOperation | None,
    ) -> MemoryMutation:
        place = _place(path)
        with memory.batch():
            receipts = _receipts(memory) if operation is not None else {}
            if operation is not None and (former := _replayed(receipts, operation)) is not None:
                return former
            present = self._records.get(*place, touch=False)
            if (present.value["version"] if present is not None else None) != expected:
                raise MemoryConflictError(f"{path!r} has changed since version {expected!r}")
            version = None
            if value is not None:
                version = uuid.uuid4().hex
                written = {**value, "version": version, "operation": operation.id if operation else None}
                self._records.put(*place, written, text=value["content"])
            elif present is not None:
                self._records.delete(*place)
            if operation is not None:
                receipts[operation.id] = [operation.fingerprint, version, present is not None]
                newest = dict(list(receipts.items())[-_MAX_RECEIPTS:])
                memory.store.backend.files(memory.store.namespace).write(
                    _RECEIPTS, json.dumps(newest).encode()
                )
            return MemoryMutation(version=version, replayed=False, existed=present is not None)

    async def list_paths(self, prefix: str = "", *, limit: int) -> list[str]:
        """The paths that begin with a text, in order."""
        _checked_prefix(prefix)
        if limit <= 0:
            raise ValueError("limit must be positive")
        folder = tuple(prefix.split("/")[:-1])
        records = await self._memory.run(lambda _: list(self._records.below(folder)))
        return sorted(path for record in records if (path := _path(record)).startswith(prefix))[:limit]

    async def search(
        self, prefix: str, query: str, *, limit: int, max_files: int, max_chars: int, max_file_chars: int
    ) -> MemorySearchResult:
        """Files directly in a folder that match a query, best first; at most ``limit`` and at most ``max_files``."""
        _checked_prefix(prefix)
        if not query.strip() or min(limit, max_files, max_chars, max_file_chars) <= 0:
            return MemorySearchResult(matches=[], scanned=0, truncated=False)
        folder = tuple(prefix.split("/")[:-1])
        most = min(limit, max_files)
        found = await self._memory.run(
            lambda _: self._records.search(
                folder,
                query,
                limit=most + 1,
                wanted=lambda one: one.path == folder and _path(one).startswith(prefix),
            )
        )
        matches, left = [], max_chars
        for record in found[:most]:
            name = _path(record).removeprefix(prefix)
            if left <= len(name):
                break
            snippet = _around(record.value["content"][:max_file_chars], query, left - len(name))
            matches.append(MemorySearchMatch(path=_path(record), snippet=snippet, score=record.score or 0.0))
            left -= len(name) + len(snippet)
        return MemorySearchResult(matches=matches, scanned=len(found), truncated=len(found) > len(matches))


def _place(path: str) -> tuple[tuple[str, ...], str]:
    """Folder and name; raises ValueError if a part of the path is not a plain name."""
    *folder, name = path.split("/")
    if not all(_SEGMENT.fullmatch(part) for part in (*folder, name)):
        raise ValueError(f"invalid memory path: {path!r:.300}")
    return tuple(folder), name


def _checked_prefix(prefix: str) -> None:
    if prefix:
        _place(prefix.removesuffix("/"))


def _path(record: Record) -> str:
    return "/".join((*record.path, record.name))


def _receipts(memory: Memory) -> dict[str, Any]:
    """Operation → fingerprint, version and whether the file existed; oldest first."""
    data = memory.store.backend.files(memory.store.namespace).read(_RECEIPTS)
    try:
        read = json.loads(data) if data else {}
    except (ValueError, RecursionError):
        # Edited by hand: a repeated operation is then refused by its version
        read = {}
    return read if isinstance(read, dict) else {}


def _replayed(receipts: Mapping[str, Any], operation: MemoryOperation) -> MemoryMutation | None:
    receipt = receipts.get(operation.id)
    if not isinstance(receipt, list) or len(receipt) != 3:
        return None
    fingerprint, version, existed = receipt
    if fingerprint != operation.fingerprint:
        raise MemoryOperationConflictError(f"operation {operation.id!r} was used with other arguments")
    return MemoryMutation(version=version, replayed=True, existed=bool(existed))


def _around(content: str, query: str, most: int) -> str:
    """At most ``most`` characters of a file, around the first place with a word of the query."""
    found = re.search("|".join(map(re.escape, query.split())), content, re.IGNORECASE)
    start = max(0, (found.start() if found else 0) - most // 3)
    start = max(0, min(start, len(content) - most))
    return content[start : start + most]
