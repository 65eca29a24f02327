"""The tools of a memory for agents of Pydantic AI; here one is called as an agent calls it."""

import asyncio

from rlm_mem import AsyncMemory

try:
    from rlm_mem.integrations.pydantic_ai import memory_toolset
except ImportError:
    raise SystemExit(print("this example needs Pydantic AI: pip install 'rlm-mem[llm]'")) from None


async def main() -> None:
    async with await AsyncMemory.open("brain") as memory:
        await memory.remember("My bees live in Porto.")
        toolset = memory_toolset(memory)  # Agent("openai:gpt-5", toolsets=[toolset])
        print(await toolset.tools["search_memory"].function("Where do my bees live?"))


asyncio.run(main())
