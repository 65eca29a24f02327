"""A LlamaIndex memory block in a brain: what has left the short-term memory is found again when it is relevant."""

import asyncio

from rlm_mem import AsyncMemory

try:
    from llama_index.core.base.llms.types import ChatMessage

    from rlm_mem.integrations.llama_index import RlmMemBlock
except ImportError:
    raise SystemExit(print("this example needs LlamaIndex: pip install 'rlm-mem[llama-index]'")) from None


async def main() -> None:
    async with await AsyncMemory.open("brain") as brain:
        block = RlmMemBlock(brain)  # Memory.from_defaults(session_id="ana", memory_blocks=[block])
        await block.aput([ChatMessage(role="user", content="My bees live in Porto.")])
        print(await block.aget([ChatMessage(role="user", content="Where do my bees live?")]))


asyncio.run(main())
