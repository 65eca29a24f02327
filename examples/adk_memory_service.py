"""Google's ADK with a brain as its memory service: what was said in one session is found in the next."""

import asyncio

from rlm_mem import AsyncMemory

try:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session
    from google.genai.types import Content, Part

    from rlm_mem.integrations.adk import RlmMemService
except ImportError:
    raise SystemExit(print("this example needs the ADK: pip install 'rlm-mem[adk]'")) from None


async def main() -> None:
    async with await AsyncMemory.open("brain") as memory:
        service = RlmMemService(memory)  # Runner(…, memory_service=service)
        said = Event(id="e1", author="user", content=Content(parts=[Part(text="My bees live in Porto.")]))
        await service.add_session_to_memory(Session(id="s1", app_name="farm", user_id="ana", events=[said]))
        found = await service.search_memory(app_name="farm", user_id="ana", query="Where do my bees live?")
        print([part.text for entry in found.memories for part in entry.content.parts or ()])


asyncio.run(main())
