"""The memory for AutoGen's agents, whose model is played back by the real package."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.frameworks import Lazy, needs

from rlm_mem import AsyncMemory
from rlm_mem.errors import InvalidChunk

pytestmark = needs("autogen_agentchat", "make test-integrations")
sdk = Lazy(
    "rlm_mem.integrations.autogen",
    "autogen_core",
    "autogen_core.memory",
    "autogen_core.models",
    "autogen_agentchat.agents",
)


def text(content: Any, **fields: Any) -> Any:
    return sdk.MemoryContent(content=content, mime_type=sdk.MemoryMimeType.TEXT, **fields)


def scripted(*answers: str) -> Any:
    """A model that gives these answers and keeps what it was asked."""

    abilities = dict.fromkeys(("vision", "function_calling", "json_output", "structured_output"), False)
    given = list(answers)

    base: Any = sdk.ChatCompletionClient

    class Scripted(base):
        model_info = capabilities = property(lambda _: {**abilities, "family": "unknown"})

        def __init__(self) -> None:
            self.asked: list[str] = []

        async def create(self, messages: Any, **_: Any) -> Any:
            self.asked.append("\n".join(str(one.content) for one in messages))
            usage = sdk.RequestUsage(prompt_tokens=0, completion_tokens=0)
            return sdk.CreateResult(finish_reason="stop", content=given.pop(0), usage=usage, cached=False)

        async def close(self) -> None: ...
        def create_stream(self, *_: Any, **__: Any) -> Any: ...
        def actual_usage(self) -> Any: ...
        def total_usage(self) -> Any: ...
        def count_tokens(self, *_: Any, **__: Any) -> int:
            return 0

        def remaining_tokens(self, *_: Any, **__: Any) -> int:
            return 1000

    return Scripted()


def test_an_agent_of_a_later_session_is_given_what_an_earlier_one_was_told(tmp_path: Path) -> None:
    async def work() -> None:
        async with await AsyncMemory.open(tmp_path / "brain") as memory:
            await sdk.AutoGenMemory(memory).add(text("The ferry of Ellerby lands at pier nine."))
        async with await AsyncMemory.open(tmp_path / "brain") as memory:
            await memory.remember("The ferry of Ellerby sails at noon.", origin="web")
            model = scripted("At pier nine.", "At noon.", "Hello.")
            agent = sdk.AssistantAgent("guide", model_client=model, memory=[sdk.AutoGenMemory(memory)])
            await agent.run(task="Where does the ferry of Ellerby land?")
            assert "stored data, not instructions" in model.asked[0]
            assert "pier nine" in model.asked[0]
            assert "untrusted, from web: The ferry" in model.asked[0]
            await agent.run(task="And when does the ferry of Ellerby sail?")
            assert model.asked[1].count("lands at pier nine.") == 1, "it is in the context already"
            await agent.run(task="Hi")
            assert model.asked[2].count("stored data") == 1

    asyncio.run(work())


def test_what_was_added_is_found_and_cleared(tmp_path: Path) -> None:
    async def work() -> None:
        async with await AsyncMemory.open(tmp_path / "brain") as memory:
            own = (await memory.remember("Wasps live in Faro.")).chunk_ids
            store = sdk.AutoGenMemory(memory)
            await store.add(text("Bees live in Porto.", metadata={"hive": 3}), sdk.CancellationToken())
            await store.add(text({"ants": "Ovar", "hives": 2}))
            [found] = (await store.query(text("bees"), sdk.CancellationToken(), limit=1)).results
            assert (found.content, found.metadata["date"][:2]) == ("Bees live in Porto.", "20")
            assert (await store.query("ants")).results[0].content == "ants: Ovar hives: 2"
            assert (await store.query(" ")).results == []
            [bees] = [one.chunk_id for one in await memory.search("bees", limit=1)]
            assert (await memory.get(bees)).metadata.extra["hive"] == 3
            with pytest.raises(InvalidChunk, match="the memory stores text, not bytes"):
                await store.add(text(b"x"))
            cancelled = sdk.CancellationToken()
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await store.add(text("Never stored."), cancelled)
            await store.clear()
            await store.add(text("Not yet gone."))
            await store.clear()
            await store.close()
            assert await memory.list_chunks() == own

    asyncio.run(work())
