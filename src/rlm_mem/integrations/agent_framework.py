"""RlmMemContextProvider: long-term memory for agents of the Microsoft Agent Framework (extra ``agent-framework``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_framework import AgentSession, ContextProvider, Message, SessionContext

from rlm_mem.aio import AsyncMemory, check_async
from rlm_mem.capture.context import HITS, prompt_context

_TOKENS = 600
_MOST_HITS = 100
_SAID = "chunk_ids"  # in the state of a session: what it has said, which the framework's history has, too
_SPEAKERS = {"user": "User", "assistant": "Assistant"}


class RlmMemContextProvider(ContextProvider):
    """Gives an agent the memories relevant to the messages of a run, and remembers what was said.

    Example::

        async with await AsyncMemory.open("brain") as memory:
            agent = Agent(client=client, context_providers=[RlmMemContextProvider(memory)])

    The text is marked as stored data, stays within ``max_tokens`` and is left out if no memory fits. What the session
    itself has said is not repeated, since its history has it; a session that is made anew by its id is given it.

    Args:
        memory: an open memory, which the caller closes.
        source_id: name of this provider, unique within the agent.
        max_tokens: maximum tokens of memories in one run.
        remember: whether to store what user and agent say.
    """

    def __init__(
        self,
        memory: AsyncMemory,
        *,
        source_id: str = "rlm_mem",
        max_tokens: int = _TOKENS,
        remember: bool = True,
    ) -> None:
        super().__init__(source_id)
        self._memory = check_async(memory)
        self._max_tokens = max_tokens
        self._remember = remember

    async def before_run(
        self, *, context: SessionContext, state: dict[str, Any] | None = None, **_: Any
    ) -> None:
        """Add the memories that are relevant to the messages of this run."""
        asked = "\n".join(message.text for message in context.input_messages if message.role == "user")
        if not asked.strip():
            return
        said = (state or {}).get(_SAID, [])
        hits = min(HITS + len(said), _MOST_HITS)
        memories = await self._memory.run(
            lambda memory: prompt_context([memory], asked, budget=self._max_tokens, known=said, hits=hits)
        )
        if memories.text:
            context.extend_messages(self, [Message("user", [memories.text])])

    async def after_run(
        self, *, session: AgentSession, context: SessionContext, state: dict[str, Any] | None = None, **_: Any
    ) -> None:
        """Remember what was said in this run, as a part of the session."""
        replies = context.response.messages if context.response is not None else ()
        conversation = "\n".join(_turns([*context.input_messages, *replies]))
        if self._remember and conversation:
            made = await self._memory.remember(
                conversation, conversation_id=context.session_id or session.session_id
            )
            if state is not None:
                state[_SAID] = [*state.get(_SAID, []), *made.chunk_ids]


def _turns(messages: Iterable[Message]) -> Iterable[str]:
    for message in messages:
        speaker = _SPEAKERS.get(str(message.role))
        if speaker is not None and message.text.strip():
            yield f"{speaker}: {message.text.strip()}"
