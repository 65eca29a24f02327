"""The store for Strands Agents against the real package's memory manager."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.integrations.frameworks import Lazy, needs

from rlm_mem import AsyncMemory, InvalidQuery

pytestmark = needs("strands.memory")
sdk = Lazy("rlm_mem.integrations.strands", "strands.memory", "strands.memory.types")


def test_the_manager_adds_and_finds(tmp_path: Path) -> None:
    async def work() -> None:
        async with await AsyncMemory.open(tmp_path / "brain") as memory:
            store = sdk.StrandsStore("notes", memory, description="What Ana said.")
            manager = sdk.MemoryManager(stores=[store], add_tool_config=True)
            await manager.add("Ines lives in Porto.")
            await manager.add("Ines lives in Porto.")  # a retry
            await manager.add("Ben grows tomatoes in Faro.", {"metadata": {"kind": "fact"}})
            found = await manager.search("Where does Ines live?")
            assert found[0].content == "Ines lives in Porto."
            assert found[0].store_name == "notes"
            assert len(await memory.list_chunks()) == 2
            assert (await manager.search("tomatoes", {"max_search_results": 1}))[0].content.startswith("Ben")
            assert await store.search("  ") == []
            older, newer = (
                "The autoclave cycle takes 18 min.",
                "Autoclave needs 22 min per cycle, timed twice.",
            )
            await memory.remember(older, occurred_at="2026-01-10")
            await memory.remember(newer, occurred_at="2026-05-02")
            told = {
                one.content.partition("\n")[0]: one.content
                for one in await store.search("How long is an autoclave cycle?")
            }
            assert "a later note on the same subject" in told[older]
            assert "an earlier note on the same subject" in told[newer]
            await memory.remember("The kiln of Aveiro fires at 900 degrees.", origin="web")
            [kiln] = [one for one in await store.search("kiln of Aveiro") if "kiln" in one.content]
            assert kiln.content.startswith("untrusted, from web: The kiln")
            with pytest.raises(InvalidQuery, match="at least 1"):
                await store.search("x", {"max_search_results": 0})

    asyncio.run(work())


def test_a_store_that_is_read_only_takes_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        async with await AsyncMemory.open(tmp_path / "brain") as memory:
            manager = sdk.MemoryManager(stores=[sdk.StrandsStore("notes", memory, writable=False)])
            with pytest.raises(Exception, match="writable"):
                await manager.add("Ines lives in Porto.")

    asyncio.run(work())
