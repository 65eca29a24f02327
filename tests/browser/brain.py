"""A brain with something on every page, and another process that runs a recall step by step for the tests."""

from __future__ import annotations

import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from rlm_mem.errors import ModelError
from rlm_mem.memory import Memory
from rlm_mem.models.base import Limits
from rlm_mem.models.scripted import ScriptedLLM
from tests.continuum.conftest import PROVEN, StillClock, open_continuum, record, rewrite, trace_of

NOTES = (
    ("kickoff", "2026-01-12", "Marta: We build a gauge that warns Ellerby of floods before they come."),
    (
        "kickoff",
        "2026-01-12",
        "Tobias: Two candidates for the radio: LoRaWAN with our own gateways, or NB-IoT.",
    ),
    ("kickoff", "2026-01-12", "Priya: PostgreSQL for the readings, because of its row-level security."),
    ("radio", "2026-02-20", "Tobias: LoRa cannot see Mill Bridge from the church tower."),
    ("radio", "2026-02-20", "Marta: Then we go to NB-IoT. Decision made."),
    ("install", "2026-04-16", "Lena: We put the first gauge up at Mill Bridge yesterday!"),
    ("install", "2026-04-16", "Jonas: The clamp went on in forty minutes."),
    ("team", "2026-05-07", "Sam drinks green tea and likes the night trains to Vienna."),
    (
        "hostile",
        "2026-05-08",
        "<script>alert('boo')</script> \"><img src=x onerror=alert(1)> **bold** {{ 7 * 7 }}",
    ),
    ("rtl", "2026-05-09", "שלום עולם, the heron says. مرحبا"),
    (
        "manual",
        "2026-05-10",
        "# Clamp checklist\n\nFor **every** gauge, see [the drawing](https://example.org/clamp):\n\n"
        "1. clean the pole\n2. close the clamp\n   - `12 Nm`, no more\n\n"
        "| part | number | where it is ordered |\n|---|--:|---|\n| clamp | 4 | the smithy behind the lock |\n\n"
        "![a photograph](https://example.org/photo.png)\n\n> Never in the rain.\n\n```\n"
        + "x = 1  # "
        + "long " * 60
        + "\n```",
    ),
)
OUTCOMES = {
    "answered": "FINAL('A clamp of the smithy, ' + 'with a very long story ' * 40)",
    "closest only": "FINAL(None, chunk_ids=search_chunks('clamp'))",
    "not held": "FINAL(None)",
    "stopped": "print(search('clamp'))",
}
"""Programs that end in each outcome, when there is one step; a model that fails ends in the fifth."""
LAST_LINE = "print('the last line of the program')"
CORE = {"usage_count": 100, "success_count": 99, "success_rate": 0.99, "confidence_score": 0.995}


def fill(brain: Path) -> None:
    """Memories with links and versions, tiers with a case to review, runs of recall and reason."""
    continuum = open_continuum(brain, StillClock(datetime(2026, 5, 1, 9, tzinfo=UTC)))
    for goal in ("Deploy the gauge firmware over the air", "Fetch and summarise the river bulletin"):
        rewrite(continuum, trace_of(continuum, goal), **PROVEN)
    record(continuum, "Read the tide table for the lock", success=False, error="the page moved")
    continuum.consolidate()
    for entry in list(continuum.files.entries(kinds=("learning",))):
        rewrite(continuum, entry, **CORE)
    continuum.consolidate()
    continuum.store.close()
    with Memory.open(brain, llm="offline", actor="maya") as memory:
        with memory.batch():
            ids = [
                memory.remember(
                    text, conversation_id=conversation, tags=[conversation], occurred_at=day
                ).chunk_ids[0]
                for conversation, day, text in NOTES
            ]
        memory.link(ids[3], ids[4], "supports", 0.9, "why LoRa was dropped")
        memory.update(ids[7], content="Sam drinks black coffee and likes the night trains to Vienna.")
        memory.recall("Which radio did we choose in the end?")
        memory.reason("Why did we choose NB-IoT?")
        for word, program in OUTCOMES.items():
            scripted = ScriptedLLM([f"```repl\n{program}\n```"])
            Memory(memory.store, scripted).recall(f"Which question is {word}?", limits=Limits(iterations=1))
        long = "\n".join(f"line_{number} = 'x' * {number}  # {'wide ' * 30}" for number in range(120))
        scripted = ScriptedLLM([f"```repl\n{long}\n{LAST_LINE}\nFINAL('Read to the end.')\n```"])
        Memory(memory.store, scripted).recall("Which program is long?")
        with suppress(ModelError):
            Memory(memory.store, ScriptedLLM([])).recall("Which question is failed?")


def ask_slowly(brain: Path) -> None:
    """A recall of three steps; each waits for a line of the standard input before it is written."""

    def after_a_line(program: str) -> object:
        def reply(_messages: object) -> str:
            sys.stdin.readline()
            return f"```repl\n{program}\n```"

        return reply

    steps = (
        "print('looking for the gauge', len(search('gauge')))",
        "print(read_chunk(search('gauge')[0]['chunk_id'])['content'])",
        "FINAL('It hangs at Mill Bridge.')",
    )
    with Memory.open(brain, llm=ScriptedLLM([after_a_line(step) for step in steps]), actor="other") as memory:
        memory.recall("Where does the slow gauge hang?")


def write(brain: Path, text: str) -> None:
    """Remember something, as another process."""
    with Memory.open(brain, actor="other") as memory:
        memory.remember(text, conversation_id="elsewhere")


if __name__ == "__main__":
    what, place, *rest = sys.argv[1:]
    {"ask": ask_slowly, "write": write}[what](Path(place), *rest)
