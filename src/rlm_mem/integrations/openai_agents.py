"""RlmMemSession: the sessions of the OpenAI Agents SDK kept in a brain (extra ``openai-agents``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from agents import SessionABC, SessionSettings, TResponseInputItem
from agents.memory.session_settings import resolve_session_limit

from rlm_mem.aio import AsyncMemory, check_async
from rlm_mem.integrations.records import Records
from rlm_mem.memory import Memory

_COUNT = "count"
_LOT = 200
"""Number of items that are read at a time."""


class RlmMemSession(SessionABC):
    """The items of one session as memories of a brain, which other sessions find by recall and search.

    Example::

        async with await AsyncMemory.open("brain") as memory:
            await Runner.run(agent, "Where do my bees live?", session=RlmMemSession("ana-1", memory))

    Several processes may add to one session; items added in one call stay together. Keys and passwords in items are
    redacted as in any memory, unless ``secrets.action`` is ``keep``.

    Args:
        session_id: names the session.
        memory: an open memory, which the caller closes.
        session_settings: defaults, such as how many items are returned.
    """

    def __init__(
        self, session_id: str, memory: AsyncMemory, *, session_settings: SessionSettings | None = None
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._memory = check_async(memory)
        self._records = Records(memory.memory, "openai-agents")

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items, oldest first; with a limit, only the newest."""
        most = resolve_session_limit(limit, self.session_settings)
        return await self._memory.run(lambda _: self._items(most))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items: all of them, or none if one is refused."""
        if items:
            await self._memory.run(self._add, cast("Sequence[Mapping[str, Any]]", items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the newest item permanently and return it; None if there is none."""
        return cast("TResponseInputItem | None", await self._memory.run(self._pop))

    async def clear_session(self) -> None:
        """Remove every item permanently."""
        await self._memory.run(self._clear)

    # --- in a worker thread ------------------------------------------------------------------------------

    @property
    def _path(self) -> tuple[str]:
        return (self.session_id,)

    def _count(self) -> int:
        """The number of the next item: how many were added, less those popped since."""
        record = self._records.get(self._path, _COUNT, touch=False)
        if record is not None:
            return int(record.value)
        # It may have been deleted as a memory: the items are still there, and none of them is written over.
        items = self._records.below(self._path, exactly=True)
        return max((int(item.name) + 1 for item in items if item.name != _COUNT), default=0)

    def _set_count(self, count: int) -> None:
        self._records.put(self._path, _COUNT, count, text=f"Items of the session {self.session_id}: {count}")

    def _newest(self) -> Iterator[tuple[int, Any]]:
        """Numbers and values, the newest first; items that were deleted as memories are skipped."""
        end = self._count()
        while end > 0:
            start = max(0, end - _LOT)
            found = self._records.named(self._path, [str(number) for number in range(start, end)])
            for number in reversed(range(start, end)):
                if str(number) in found:
                    yield number, found[str(number)].value
            end = start

    def _items(self, limit: int | None) -> list[Any]:
        if limit is not None and limit <= 0:
            return []
        newest = []
        for _, value in self._newest():
            newest.append(value)
            if len(newest) == limit:
                break
        return newest[::-1]

    def _add(self, memory: Memory, items: Sequence[Mapping[str, Any]]) -> None:
        with memory.batch():
            first = self._count()
            # Items may be hidden by quarantine, or archived.
            while taken := self._records.taken(self._path, map(str, range(first, first + len(items)))):
                first = 1 + max(map(int, taken))
            for number, item in enumerate(items, first):
                self._records.put(
                    self._path, str(number), dict(item), text=_text(item), conversation_id=self.session_id
                )
            self._set_count(first + len(items))

    def _pop(self, memory: Memory) -> Any:
        with memory.batch():
            for number, value in self._newest():
                self._records.delete(self._path, str(number))
                self._set_count(number)
                return value
        return None

    def _clear(self, memory: Memory) -> None:
        with memory.batch():
            for record in list(self._records.below(self._path, exactly=True)):
                self._records.delete(record.path, record.name)


def _text(item: Mapping[str, Any]) -> str:
    """The text of an item for search: speaker and words, or type and name of a call."""
    content = item.get("content")
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "\n".join(part for part in parts if isinstance(part, str))
    if isinstance(content, str) and content.strip():
        role = item.get("role")
        return f"{role.capitalize()}: {content}" if isinstance(role, str) and role else content
    return " ".join(str(item[field]) for field in ("type", "name") if item.get(field)) or "item"
