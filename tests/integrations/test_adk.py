"""The memory service for Google's ADK against the real package, beside its own service in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.frameworks import Lazy, needs

from rlm_mem import AsyncMemory

pytestmark = needs("google.adk")
adk = Lazy(
    "rlm_mem.integrations.adk",
    "google.adk.events.event",
    "google.adk.memory.in_memory_memory_service",
    "google.adk.memory.memory_entry",
    "google.adk.sessions.session",
    "google.genai.types",
)

OURS = {"app_name": "shop", "user_id": "ana"}
SAID = [
    ("user", "My bees live in Porto."),
    ("helper", "Porto is a fine place for bees."),
    ("user", "Thanks!"),
]


def event(number: int, author: str, text: str) -> Any:
    content = adk.Content(role="user" if author == "user" else "model", parts=[adk.Part(text=text)])
    return adk.Event(id=f"e{number}", author=author, content=content, timestamp=1_770_000_000.0 + number)


def session(count: int = 3, user: str = "ana", name: str = "s1") -> Any:
    events = [event(number, *said) for number, said in enumerate(SAID[:count])]
    return adk.Session(id=name, app_name="shop", user_id=user, events=events)


def shown(found: Any) -> list[tuple[str, str, str]]:
    return [(one.id, one.author, one.content.parts[0].text) for one in found.memories]


def run(brain: Path, work: Any) -> None:
    async def inner() -> None:
        async with await AsyncMemory.open(brain) as memory:
            await work(memory, adk.RlmMemService(memory), adk.InMemoryMemoryService())

    asyncio.run(inner())


def test_sessions_are_found_as_by_the_service_in_memory(tmp_path: Path) -> None:
    async def work(memory: AsyncMemory, own: Any, other: Any) -> None:
        for service in (own, other):
            await service.add_session_to_memory(session(1))
            await service.add_session_to_memory(session(3))  # again, and longer
            await service.add_session_to_memory(session(3, user="ben"))
        for query in ("bees", "thanks", "nothing of the kind", ""):
            mine, theirs = [shown(await one.search_memory(**OURS, query=query)) for one in (own, other)]
            # What shares a word comes first; what was said beside it may follow.
            assert sorted(mine[: len(theirs)]) == sorted(theirs), query
            assert bool(mine) == bool(theirs), query
        first = (await own.search_memory(**OURS, query="bees")).memories[0]
        assert first.timestamp.startswith("2026-02-02T02:40:0")
        assert "Porto" in str((await memory.recall("Where do the bees live?")).content)

    run(tmp_path / "brain", work)


def test_the_name_of_an_agent_is_kept_as_it_is_written(tmp_path: Path) -> None:
    async def work(memory: AsyncMemory, own: Any, _: Any) -> None:
        said = [event(1, "user", "My bees live in Porto."), event(2, "beeKeeper", "Porto suits bees.")]
        await own.add_session_to_memory(adk.Session(id="s1", app_name="shop", user_id="ana", events=said))
        hits = await memory.search("Porto")
        assert {hit.snippet.partition(":")[0] for hit in hits} == {"User", "BeeKeeper"}

    run(tmp_path / "brain", work)


def test_users_and_applications_are_apart(tmp_path: Path) -> None:
    async def work(_: AsyncMemory, own: Any, __: Any) -> None:
        await own.add_session_to_memory(session())
        for app_name, user_id in (("shop", "ben"), ("other", "ana"), ("shop", "an"), ("shop/ana", "s1")):
            found = await own.search_memory(app_name=app_name, user_id=user_id, query="bees Porto")
            assert found.memories == []

    run(tmp_path / "brain", work)


def test_what_was_deleted_does_not_come_back(tmp_path: Path) -> None:
    async def work(memory: AsyncMemory, own: Any, other: Any) -> None:
        for service in (own, other):
            await service.add_session_to_memory(session())
            await service.delete_memory(**OURS, memory_id="e0")
            await service.add_session_to_memory(session())
            found = [one[0] for one in shown(await service.search_memory(**OURS, query="bees"))]
            assert found[0] == "e1"
            assert "e0" not in found
        assert "My bees" not in "".join([chunk.content for chunk in memory.memory.store.iter_chunks()])

    run(tmp_path / "brain", work)


def test_memories_are_added_by_themselves(tmp_path: Path) -> None:
    async def work(_: AsyncMemory, own: Any, __: Any) -> None:
        content = adk.Content(parts=[adk.Part(text="Ana is allergic to hazelnuts.")])
        await own.add_memory(
            **OURS, memories=[adk.MemoryEntry(content=content)], custom_metadata={"from": "form"}
        )
        (found,) = (await own.search_memory(**OURS, query="hazelnuts")).memories
        assert found.custom_metadata == {"from": "form"}
        assert found.id

    run(tmp_path / "brain", work)


def test_a_runner_loads_memories_with_its_own_tool(tmp_path: Path) -> None:
    pytest.importorskip("google.adk.runners")
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import Runner
    from google.adk.sessions import InMemorySessionService
    from google.adk.tools.preload_memory_tool import PreloadMemoryTool

    asked: list[str] = []

    class Played(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            asked.append(str(llm_request.contents))
            yield LlmResponse(content=adk.Content(role="model", parts=[adk.Part(text="In Porto.")]))

    async def work(_: AsyncMemory, own: Any, __: Any) -> None:
        await own.add_session_to_memory(session())
        agent = LlmAgent(name="helper", model=Played(model="played"), tools=[PreloadMemoryTool()])
        sessions = InMemorySessionService()
        runner = Runner(agent=agent, app_name="shop", session_service=sessions, memory_service=own)
        begun = await sessions.create_session(app_name="shop", user_id="ana")
        said = adk.Content(role="user", parts=[adk.Part(text="Where do my bees live?")])
        async for _event in runner.run_async(user_id="ana", session_id=begun.id, new_message=said):
            pass
        assert "My bees live in Porto." in asked[0]

    run(tmp_path / "brain", work)


def test_hidden_and_archived_memories_do_not_stop_a_session_and_do_not_come_back(tmp_path: Path) -> None:
    async def work(memory: AsyncMemory, own: Any, _: Any) -> None:
        await own.add_session_to_memory(session(2))
        user, helper = await memory.list_chunks()
        await memory.quarantine(user)
        await memory.delete(helper)
        await own.add_session_to_memory(session(3))
        assert [(await memory.get(one)).content for one in await memory.list_chunks()] == ["User: Thanks!"]

    run(tmp_path / "brain", work)
