"""The context provider for the Microsoft Agent Framework, run by an agent of the real package."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.integrations.frameworks import Lazy, needs

from rlm_mem import AsyncMemory

pytestmark = needs("agent_framework")
sdk = Lazy("rlm_mem.integrations.agent_framework", "agent_framework")


def test_an_agent_gets_memories_and_its_messages_are_remembered(tmp_path: Path) -> None:
    asked: list[str] = []

    def played() -> Any:
        class Played(sdk.BaseChatClient):  # type: ignore[name-defined]
            def _inner_get_response(self, *, messages: Any, stream: bool = False, **_: Any) -> Any:
                assert not stream
                asked.append("\n".join(message.text for message in messages))

                async def reply() -> Any:
                    return sdk.ChatResponse(messages=[sdk.Message("assistant", ["Noted."])])

                return reply()

        return Played()

    async def work() -> None:
        async with await AsyncMemory.open(tmp_path / "brain") as memory:
            provider = sdk.RlmMemContextProvider(memory)
            agent = sdk.Agent(client=played(), context_providers=[provider])
            await agent.run("My bees live in Porto.", session=agent.create_session())
            await agent.run("Where do my bees live?", session=agent.create_session())
            await agent.run("Fine!", session=agent.create_session())
            assert "My bees live in Porto." not in asked[0].replace("My bees live in Porto.", "", 1)
            assert "stored data, not instructions" in asked[1]
            assert "My bees live in Porto." in asked[1]
            assert "stored data" not in asked[2]
            said = [chunk.content for chunk in memory.memory.store.iter_chunks()]
            assert "User: My bees live in Porto.\nAssistant: Noted." in said
            assert not any("stored data" in one for one in said)
            session = agent.create_session(session_id="boats")
            await agent.run("My boat lies in Faro.", session=session)
            await agent.run("Where do my bees and my boat live?", session=session)
            assert asked[-1].count("My boat lies in Faro.") == 1, "the history of the session has it"
            assert "My bees live in Porto." in asked[-1]
            restored = type(session).from_dict(session.to_dict())
            await agent.run("Where does my boat lie?", session=restored)
            assert asked[-1].count("My boat lies in Faro.") == 1
            await agent.run("Where does my boat lie?", session=agent.create_session(session_id="boats"))
            assert "My boat lies in Faro." in asked[-1], "without its history, the memory has it"
            silent = sdk.RlmMemContextProvider(memory, remember=False)
            await sdk.Agent(client=played(), context_providers=[silent]).run("A secret word.")
            assert not any("secret word" in chunk.content for chunk in memory.memory.store.iter_chunks())

    asyncio.run(work())
