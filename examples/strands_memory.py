"""A brain as a store of the memory manager of Strands Agents."""

import asyncio

from rlm_mem import AsyncMemory

try:
    from strands.memory import MemoryManager

    from rlm_mem.integrations.strands import StrandsStore
except ImportError:
    raise SystemExit(print("this example needs Strands: pip install 'rlm-mem[strands]'")) from None


async def main() -> None:
    async with await AsyncMemory.open("brain") as memory:
        manager = MemoryManager(stores=[StrandsStore("notes", memory)])  # Agent(…, memory_manager=manager)
        await manager.add("My bees live in Porto.")
        print((await manager.search("Where do my bees live?"))[0].content)


asyncio.run(main())
