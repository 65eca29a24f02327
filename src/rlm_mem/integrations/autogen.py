"""AutoGenMemory: a memory for agents of AutoGen (``autogen_core.memory.Memory``) kept in a brain."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from autogen_core import CancellationToken
from autogen_core.memory import Memory, MemoryContent, MemoryMimeType, MemoryQueryResult, UpdateContextResult
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import SystemMessage, UserMessage

from rlm_mem.aio import AsyncMemory, check_async
from rlm_mem.capture.context import prompt_context
from rlm_mem.errors import InvalidChunk
from rlm_mem.integrations.records import text_of
from rlm_mem.memory import Memory as Brain

T = TypeVar("T")

_TAG = "autogen"
_LIMIT = 10


class AutoGenMemory(Memory):
    """Gives an agent the memories relevant to the user's last message, and stores what the program adds.

    Example::

        async with await AsyncMemory.open("brain") as memory:
            agent = AssistantAgent("guide", model_client=client, memory=[AutoGenMemory(memory)])

    The text is marked as stored data, stays within ``max_tokens`` and is left out if no memory fits. Queries find all
    memories of the namespace; ``clear`` archives those that were added here.

    Args:
        memory: an open memory, which the caller closes.
        max_tokens: maximum tokens of memories for one message.
    """

    def __init__(self, memory: AsyncMemory, *, max_tokens: int = 600) -> None:
        self._memory = check_async(memory)
        self._max_tokens = max_tokens

    async def update_context(self, model_context: ChatCompletionContext) -> UpdateContextResult:
        """Add the memories that are relevant to the user's last message and not yet in the context."""
        messages = await model_context.get_messages()
        asked = next((one.content for one in reversed(messages) if isinstance(one, UserMessage)), "")
        told = "\n".join(one.content for one in messages if isinstance(one, SystemMessage))
        found = await self._memory.run(
            lambda memory: prompt_context([memory], _text(asked), budget=self._max_tokens, known=told)
        )
        if found.text:
            await model_context.add_message(SystemMessage(content=found.text))
        results = [_content(line, {"chunk_id": chunk_id}) for chunk_id, line in found.lines.items()]
        return UpdateContextResult(memories=MemoryQueryResult(results=results))

    async def query(
        self,
        query: str | MemoryContent,
        cancellation_token: CancellationToken | None = None,
        **kwargs: Any,
    ) -> MemoryQueryResult:
        """The passages that fit a query, the best first, each with its chunk, date and score.

        Args:
            kwargs: ``limit``: maximum number of passages, 10 if not given.
        """
        text = _text(query.content if isinstance(query, MemoryContent) else query)
        if not text.strip():
            return MemoryQueryResult(results=[])
        search = self._memory.search(text, limit=kwargs.get("limit", _LIMIT))
        return MemoryQueryResult(
            results=[
                _content(hit.marked_snippet(), {"chunk_id": hit.chunk_id, "date": hit.at, "score": hit.score})
                for hit in await _cancellable(search, cancellation_token)
            ]
        )

    async def add(self, content: MemoryContent, cancellation_token: CancellationToken | None = None) -> None:
        """Remember a text or plain data.

        Raises:
            InvalidChunk: it is an image or bytes.
        """
        remember = self._memory.remember(
            _text(content.content), tags=[_TAG], metadata=content.metadata, origin="agent"
        )
        await _cancellable(remember, cancellation_token)

    async def clear(self) -> None:
        """Archive what was added here; ``rlm-mem undo`` brings it back."""
        await self._memory.run(_clear)

    async def close(self) -> None:
        """Nothing: the caller closes the memory."""


def _clear(memory: Brain) -> None:
    with memory.batch():
        for chunk_id in memory.store.list_chunks(tags=[_TAG]):
            memory.delete(chunk_id)


async def _cancellable(work: Coroutine[Any, Any, T], token: CancellationToken | None) -> T:
    task = asyncio.ensure_future(work)
    if token is not None:
        token.link_future(task)
    return await task


def _text(content: Any) -> str:
    """A text, or the texts of plain data or of a message's parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):  # of a user's message: texts and images
        return "\n".join(one for one in content if isinstance(one, str))
    if isinstance(content, dict):
        return text_of(content)
    raise InvalidChunk(
        f"the memory stores text, not {type(content).__name__}", hint="add a text that describes it"
    )


def _content(text: str, metadata: dict[str, Any]) -> MemoryContent:
    return MemoryContent(content=text, mime_type=MemoryMimeType.TEXT, metadata=metadata)
