"""The notebook of pydantic-ai-harness in a brain: versioned files, each a memory like any other."""

import asyncio

from rlm_mem import AsyncMemory

try:
    from rlm_mem.integrations.pydantic_ai_harness import NotebookStore
except ImportError:
    raise SystemExit(
        print("this example needs the harness: pip install 'rlm-mem[pydantic-ai-harness]'")
    ) from None


async def main() -> None:
    async with await AsyncMemory.open("brain") as memory:
        store = NotebookStore(memory)  # Agent(…, capabilities=[Memory(store=store, namespace="ana")])
        await store.write("ana/main/MEMORY.md", "- Bees live in Porto.", expected_version=None)
        if file := await store.read("ana/main/MEMORY.md", max_chars=100):
            print(file.content)
        print((await memory.recall("Where do the bees live?")).content)


asyncio.run(main())
