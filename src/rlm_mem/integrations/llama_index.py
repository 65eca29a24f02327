"""RlmMemBlock: a block of LlamaIndex's memory kept in a brain (extra ``llama-index``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.memory import BaseMemoryBlock

from rlm_mem.aio import AsyncMemory, check_async
from rlm_mem.capture.context import prompt_context
from rlm_mem.text.tokens import count_tokens

_ASKED = 3
"""Number of newest messages whose user texts form the query."""


class RlmMemBlock(BaseMemoryBlock[str]):
    """Stores messages that leave the short-term memory in a brain, and gives back those relevant to the newest ones.

    Example::

        async with await AsyncMemory.open("brain") as brain:
            memory = Memory.from_defaults(session_id="ana", memory_blocks=[RlmMemBlock(memory=brain)])

    Args:
        memory: an open memory, which the caller closes.
        max_tokens: maximum tokens of the memories given back.
    """

    name: str = Field(default="long_term_memory", description="The name of the memory block.")
    description: str | None = Field(default="Memories of earlier conversations.")
    priority: int = Field(default=1, description="Priority of the memory block.")
    max_tokens: int = Field(default=600, ge=1, description="Maximum tokens of the block.")
    _memory: AsyncMemory = PrivateAttr()

    def __init__(self, memory: AsyncMemory, **fields: Any) -> None:
        super().__init__(**fields)
        self._memory = check_async(memory)

    async def _aget(self, messages: list[ChatMessage] | None = None, **_: Any) -> str:
        asked = "\n".join(
            message.content or ""
            for message in (messages or [])[-_ASKED:]
            if message.role == MessageRole.USER
        )
        if not asked.strip():
            return ""
        context = await self._memory.run(
            lambda memory: prompt_context([memory], asked, budget=self.max_tokens)
        )
        return context.text

    async def _aput(self, messages: list[ChatMessage]) -> None:
        conversation = "\n".join(_turns(messages))
        if conversation:
            session = next((one.additional_kwargs.get("session_id") for one in messages), None)
            await self._memory.remember(conversation, conversation_id=session)

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """Drop the last memories until the text is shorter by ``tokens_to_truncate``; None if none would be left."""
        head, *lines = content.splitlines()
        most = count_tokens(content) - tokens_to_truncate
        while lines and count_tokens("\n".join([head, *lines])) > most:
            lines.pop()
        return "\n".join([head, *lines]) if lines else None


def _turns(messages: Iterable[ChatMessage]) -> Iterable[str]:
    for message in messages:
        if message.role in (MessageRole.USER, MessageRole.ASSISTANT) and (message.content or "").strip():
            yield f"{message.role.value.capitalize()}: {(message.content or '').strip()}"
