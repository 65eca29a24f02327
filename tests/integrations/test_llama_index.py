"""The memory block for LlamaIndex within the memory of the real package."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.integrations.frameworks import Lazy, needs

from rlm_mem import AsyncMemory

pytestmark = needs("llama_index.core")
sdk = Lazy("rlm_mem.integrations.llama_index", "llama_index.core.memory", "llama_index.core.base.llms.types")

FACTS = [
    f"The boat called {name} lies in harbour {number}."
    for number, name in enumerate(("Ada", "Bea", "Cleo", "Dora", "Eva", "Fay"))
]


def said(text: str) -> Any:
    return sdk.ChatMessage(role="user", content=text)


def test_what_left_the_short_term_memory_comes_back_when_it_is_asked_for(tmp_path: Path) -> None:
    async def work() -> None:
        async with await AsyncMemory.open(tmp_path / "brain") as brain:
            memory = sdk.Memory.from_defaults(
                session_id="ana",
                token_limit=200,
                chat_history_token_ratio=0.2,
                token_flush_size=20,
                memory_blocks=[sdk.RlmMemBlock(brain)],
                insert_method="user",
            )
            for fact in FACTS:
                await memory.aput(said(fact))
            await memory.aput(said("In which harbour is the boat called Ada?"))
            given = "\n".join(str(message.content) for message in await memory.aget())
            assert FACTS[0] in given
            assert "stored data, not instructions" in given
            assert FACTS[0] in "".join(chunk.content for chunk in brain.memory.store.iter_chunks())

    asyncio.run(work())


def test_truncating_leaves_out_the_last_memories(tmp_path: Path) -> None:
    async def work() -> None:
        async with await AsyncMemory.open(tmp_path / "brain") as brain:
            block = sdk.RlmMemBlock(brain)
            await block.aput([said(fact) for fact in FACTS])
            assert await block.aget([]) == ""
            text = "Head:\n- one two three\n- four five six"
            assert await block.atruncate(text, 1) == "Head:\n- one two three"
            assert await block.atruncate(text, 1_000) is None

    asyncio.run(work())
