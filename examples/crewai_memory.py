"""The memory of a CrewAI crew in a brain: what one run was told, the next one knows, without a key or a model."""

from rlm_mem import Memory

try:
    from rlm_mem.integrations.crewai import CrewMemory
except ImportError:
    raise SystemExit(print("this example needs CrewAI: pip install rlm-mem crewai")) from None

with Memory.open("brain") as memory:
    crew_memory = CrewMemory(memory)  # Crew(agents=[agent], tasks=[task], memory=crew_memory)
    crew_memory.remember("The bees live in Porto.", scope="/research", categories=["bees"])

with Memory.open("brain") as memory:
    for match in CrewMemory(memory).recall("Where do the bees live?", scope="/research"):
        print(match.format())
