"""A session of the OpenAI Agents SDK in a brain: other sessions find its items."""

import asyncio

from rlm_mem import AsyncMemory

try:
    from rlm_mem.integrations.openai_agents import RlmMemSession
except ImportError:
    raise SystemExit(print("this example needs the SDK: pip install 'rlm-mem[openai-agents]'")) from None


async def main() -> None:
    async with await AsyncMemory.open("brain") as memory:
        session = RlmMemSession("ana-1", memory)  # await Runner.run(agent, "…", session=session)
        await session.add_items([{"role": "user", "content": "My bees live in Porto."}])
        print(await session.get_items())
        print((await memory.recall("Where do the bees live?")).content)


asyncio.run(main())
