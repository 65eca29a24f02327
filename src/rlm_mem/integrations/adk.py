"""RlmMemService: the long-term memory of Google's Agent Development Kit kept in a brain (extra ``adk``)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Content, Part

from rlm_mem.aio import AsyncMemory, check_async
from rlm_mem.integrations.records import Record, Records
from rlm_mem.memory import Memory

_NO_SESSION = "~"
_LIMIT = 10
_DELETED = {"deleted": True}


class RlmMemService(BaseMemoryService):
    """The text of sessions as memories of a brain, separate for each application and user.

    Example::

        async with await AsyncMemory.open("brain") as memory:
            runner = Runner(agent=agent, app_name="shop", session_service=sessions,
                            memory_service=RlmMemService(memory))

    Adding a session again adds its new events only. Parts other than text (images, function calls) are not kept.
    A memory that was deleted, archived or put into quarantine is not added again with a later session.

    Args:
        memory: an open memory, which the caller closes.
        limit: maximum number of memories that a search returns.
    """

    def __init__(self, memory: AsyncMemory, *, limit: int = _LIMIT) -> None:
        self._memory = check_async(memory)
        self._records = Records(memory.memory, "adk")
        self._limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Add the events of a session that are not there yet."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add events; those that are there already stay as they are. ``custom_metadata`` is kept with each."""
        entries = [
            MemoryEntry(
                id=event.id,
                content=event.content,
                author=event.author,
                timestamp=datetime.fromtimestamp(event.timestamp, UTC).isoformat(),
                custom_metadata=dict(custom_metadata or {}),
            )
            for event in events
            if event.content is not None
        ]
        await self._memory.run(self._add, (app_name, user_id, session_id or _NO_SESSION), entries)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Add memories that belong to no session; one without an id gets one."""
        entries = [
            entry.model_copy(
                update={
                    "id": entry.id or str(uuid.uuid4()),
                    "custom_metadata": {**(custom_metadata or {}), **entry.custom_metadata},
                }
            )
            for entry in memories
        ]
        await self._memory.run(self._add, (app_name, user_id, _NO_SESSION), entries)

    def _add(self, memory: Memory, path: tuple[str, str, str], entries: Sequence[MemoryEntry]) -> None:
        with memory.batch():
            present = self._records.taken(path, [str(entry.id) for entry in entries])
            for entry in entries:
                text = _text(entry.content)
                if not text or str(entry.id) in present:
                    continue
                value = {"author": entry.author, "role": entry.content.role, "text": text}
                if entry.timestamp:
                    value["timestamp"] = entry.timestamp
                self._records.put(
                    path,
                    str(entry.id),
                    {**value, "metadata": entry.custom_metadata} if entry.custom_metadata else value,
                    text=f"{entry.author[0].upper()}{entry.author[1:]}: {text}" if entry.author else text,
                    conversation_id=None if path[2] == _NO_SESSION else path[2],
                    occurred_at=_time(entry.timestamp),
                )

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """The memories of a user that fit a query, the best first; none for an empty query."""
        if not query.strip():
            return SearchMemoryResponse()
        found = await self._memory.run(
            lambda _: self._records.search(
                (app_name, user_id), query, limit=self._limit, wanted=lambda record: "text" in record.value
            )
        )
        return SearchMemoryResponse(memories=[_entry(record) for record in found])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Delete a memory permanently, with its history; without an id, all memories of the user."""
        await self._memory.run(self._delete, (app_name, user_id), memory_id)

    def _delete(self, memory: Memory, path: tuple[str, str], memory_id: str | None) -> None:
        wanted = [
            record
            for record in self._records.below(path)
            if memory_id in (None, record.name) and record.value != _DELETED
        ]
        with memory.batch():
            for record in wanted:
                self._records.delete(record.path, record.name)
        with memory.batch():  # a record of each deletion stays, since the session may be added again
            for record in wanted:
                self._records.put(record.path, record.name, _DELETED, text="")


def _text(content: Content) -> str:
    return "\n".join(part.text for part in content.parts or () if part.text and not part.thought).strip()


def _time(written: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(written).astimezone(UTC) if written else None
    except ValueError:
        return None


def _entry(record: Record) -> MemoryEntry:
    value = record.value
    return MemoryEntry(
        id=record.name,
        content=Content(role=value.get("role") or "user", parts=[Part(text=value["text"])]),
        author=value.get("author"),
        timestamp=value.get("timestamp"),
        custom_metadata=value.get("metadata") or {},
    )
