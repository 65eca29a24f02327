"""Sessions of the OpenAI Agents SDK in a brain, beside its own sessions in SQLite."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from tests.integrations.frameworks import Lazy, needs

from rlm_mem import AsyncMemory

pytestmark = needs("agents")
sdk = Lazy("rlm_mem.integrations.openai_agents", "agents")

ITEMS: list[dict[str, Any]] = [
    {"role": "user", "content": "My bees live in Porto."},
    {"type": "function_call", "name": "get_weather", "call_id": "c1", "arguments": '{"city": "Porto"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
    {"role": "assistant", "type": "message", "content": [{"type": "output_text", "text": "They have sun."}]},
]


def run(brain: Path, work: Any) -> None:
    async def inner() -> None:
        async with await AsyncMemory.open(brain) as memory:
            await work(memory, sdk.RlmMemSession("s1", memory), sdk.SQLiteSession("s1"))

    asyncio.run(inner())


def test_a_session_behaves_as_one_in_sqlite(tmp_path: Path) -> None:
    async def work(_: AsyncMemory, own: Any, other: Any) -> None:
        assert isinstance(own, sdk.Session)

        async def alike(name: str, *arguments: Any) -> None:
            mine, theirs = [await getattr(one, name)(*arguments) for one in (own, other)]
            assert mine == theirs, (name, arguments)

        await alike("pop_item")
        await alike("add_items", ITEMS)
        await alike("add_items", [])
        for limit in (None, 0, 1, 3, 99):
            await alike("get_items", limit)
        await alike("pop_item")
        await alike("add_items", ITEMS[:1])
        await alike("get_items")
        await alike("get_items", 2)
        await alike("clear_session")
        await alike("get_items")
        await alike("add_items", ITEMS)
        await alike("get_items")

    run(tmp_path / "brain", work)


def test_sessions_are_apart_and_recall_reads_all(tmp_path: Path) -> None:
    async def work(memory: AsyncMemory, own: Any, _: Any) -> None:
        await own.add_items(ITEMS)
        assert await sdk.RlmMemSession("s2", memory).get_items() == []
        limited = sdk.RlmMemSession("s1", memory, session_settings=sdk.SessionSettings(limit=1))
        assert await limited.get_items() == ITEMS[-1:]
        assert "Porto" in str((await memory.recall("Where do the bees live?")).content)

    run(tmp_path / "brain", work)


def test_adders_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    async def work(memory: AsyncMemory, own: Any, _: Any) -> None:
        pairs = [
            [{"role": "user", "content": f"{number}a"}, {"role": "user", "content": f"{number}b"}]
            for number in range(8)
        ]
        await asyncio.gather(*(sdk.RlmMemSession("s1", memory).add_items(pair) for pair in pairs))
        said = [item["content"] for item in await own.get_items()]
        assert sorted(said) == sorted(item["content"] for pair in pairs for item in pair)
        assert all(one[:-1] == other[:-1] for one, other in zip(said[::2], said[1::2], strict=True))

    run(tmp_path / "brain", work)


def test_a_runner_continues_with_a_session(tmp_path: Path) -> None:
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    given: list[Any] = []

    class Played(Model):  # type: ignore[misc, unused-ignore]
        async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> Any:
            given.append(input)
            text = ResponseOutputText(text="Noted.", type="output_text", annotations=[])
            message = ResponseOutputMessage(
                id="m1", content=[text], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    async def work(_: AsyncMemory, own: Any, __: Any) -> None:
        agent = sdk.Agent(name="helper", model=Played())
        settings = sdk.RunConfig(tracing_disabled=True)
        for said in ("My bees live in Porto.", "Where do they live?"):
            await sdk.Runner.run(agent, said, session=own, run_config=settings)
        assert [item.get("content") for item in given[1] if item.get("role") == "user"] == [
            "My bees live in Porto.",
            "Where do they live?",
        ]

    run(tmp_path / "brain", work)


def test_items_outlive_a_deleted_count_and_keep_clear_of_hidden_ones(tmp_path: Path) -> None:
    async def work(memory: AsyncMemory, own: Any, _: Any) -> None:
        await own.add_items([{"role": "user", "content": f"Bees number {number}."} for number in range(3)])
        texts = {(await memory.get(one)).content: one for one in await memory.list_chunks()}
        count = next(one for text, one in texts.items() if text.startswith("Items of the session"))
        await memory.delete(count)
        assert len(await own.get_items()) == 3
        await memory.quarantine(texts["User: Bees number 2."])
        await own.pop_item()
        await own.add_items([{"role": "user", "content": "One more."}])
        assert [item["content"] for item in await own.get_items()] == ["Bees number 0.", "One more."]

    run(tmp_path / "brain", work)
