"""A memory for AutoGen's agents in a brain: it adds relevant memories to the agent's context."""

import asyncio

from rlm_mem import AsyncMemory

try:
    from autogen_core.memory import MemoryContent

    from rlm_mem.integrations.autogen import AutoGenMemory
except ImportError:
    raise SystemExit(print("this example needs AutoGen: pip install rlm-mem autogen-agentchat")) from None


async def main() -> None:
    async with await AsyncMemory.open("brain") as memory:
        store = AutoGenMemory(memory)  # AssistantAgent("guide", model_client=client, memory=[store])
        await store.add(MemoryContent(content="My bees live in Porto.", mime_type="text/plain"))
        for found in (await store.query("Where do my bees live?")).results:
            print(found.content)


asyncio.run(main())
