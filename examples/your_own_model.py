"""Any function from prompt to text can write the programs: here fixed text instead of a model."""

from rlm_mem import Memory

LOOK = """```repl
for hit in search("gauge bridge", limit=3):
    print(hit["chunk_id"], hit["snippet"])
```"""

CONCLUDE = """```repl
best = search("gauge bridge", limit=1)[0]
FINAL(best["snippet"], chunk_ids=[best["chunk_id"]])
```"""

prompts: list[str] = []


def two_steps(prompt: str) -> str:
    """First search, then conclude from what the program printed."""
    prompts.append(prompt)
    return CONCLUDE if "\n<output>\n" in prompt else LOOK


with Memory.open("brain", llm=two_steps) as memory:
    memory.remember("Lena put the first gauge up at Mill Bridge.", conversation_id="installation")
    result = memory.recall("Where is the first gauge?")
    print(result.content)
    for step in result.trajectory.steps:
        print(f"--- turn {step.turn}, {step.program_seconds * 1000:.0f} ms")
        print(step.programs[0].strip())
        print(step.output.strip())
    print("calls of the model:", len(prompts))
