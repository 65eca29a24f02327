"""A context provider for agents of the Microsoft Agent Framework; this example calls its two steps directly."""

import asyncio

from rlm_mem import AsyncMemory

try:
    from agent_framework import AgentSession, Message, SessionContext

    from rlm_mem.integrations.agent_framework import RlmMemContextProvider
except ImportError:
    raise SystemExit(
        print("this example needs the framework: pip install 'rlm-mem[agent-framework]'")
    ) from None


async def main() -> None:
    async with await AsyncMemory.open("brain") as memory:
        provider = RlmMemContextProvider(memory)  # Agent(…, context_providers=[provider])
        session = AgentSession()
        said = SessionContext(input_messages=[Message("user", ["My bees live in Porto."])])
        await provider.after_run(session=session, context=said)
        asked = SessionContext(input_messages=[Message("user", ["Where do my bees live?"])])
        await provider.before_run(context=asked)
        print(asked.context_messages["rlm_mem"][0].text)


asyncio.run(main())
