"""The tools of a memory for agents of Pydantic AI; here a simulated model calls one and repeats what it found."""

import asyncio

from rlm_mem import AsyncMemory

try:
    from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from rlm_mem.integrations.pydantic_ai import memory_toolset
except ImportError:
    raise SystemExit(print("this example needs Pydantic AI: pip install 'rlm-mem[llm]'")) from None


def played(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """In place of a model: search first, then answer with the result."""
    found = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if found:
        return ModelResponse(parts=[TextPart(str(found[-1].content))])
    return ModelResponse(parts=[ToolCallPart("search_memory", {"query": "Where do my bees live?"})])


async def main() -> None:
    async with await AsyncMemory.open("brain") as memory:
        await memory.remember("My bees live in Porto.")
        agent = Agent(FunctionModel(played), toolsets=[memory_toolset(memory)])  # or Agent("openai:gpt-5", …)
        print((await agent.run("Where do my bees live?")).output)


asyncio.run(main())
