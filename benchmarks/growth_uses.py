"""Further uses of a memory at one size: links, a recall, an import, tiers.

Part of `growth.py`, which calls this at every size and on both stores; each has a detailed benchmark of its own
(`links.py`, `recall_overhead.py`, `imports.py`, `continuum_scale.py`).
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

from imports import rate, sources
from links import three_hops
from recall_overhead import InstantModel
from remember import note
from rlm_mem.interchange import import_source
from rlm_mem.memory import Memory
from rlm_mem.recall import RecallOperation
from support import percentile, timed, timings

_ROUNDS = 40
_IMPORTED = 500


def measure_uses(memory: Memory, size: int, scratch: Path) -> dict[str, Any]:
    """Links, a recall without its model, an import, confirmed uses and a dry run of the tiers.

    The links and imported chunks are removed again, so that the next size starts from the same memory.
    """
    chance = random.Random(7)
    pages = memory.list_chunks(limit=2_000) + memory.list_chunks(limit=2_000, newest_first=True)
    chosen = chance.sample(sorted(set(pages)), _ROUNDS * 2)
    pairs = list(zip(chosen[::2], chosen[1::2], strict=True))
    row: dict[str, Any] = {
        "add_link_p50": percentile(timings(lambda pair: memory.link(*pair, "supports", 0.8), pairs), 0.5),
        "three_hops_p50": percentile(timings(lambda one: three_hops(memory, one), chosen[:_ROUNDS]), 0.5),
        "recall_p50": percentile(_recalls(memory, size), 0.5),
    }
    for pair in pairs:
        memory.unlink(*pair, "supports")
    uses = timings(lambda one: memory.continuum.traces.use(one, True, project=f"project-{size}"), chosen)
    source = Path(tempfile.mkdtemp(prefix=f"import-{size}-", dir=scratch))  # each store has its own
    lines = sources(source, _IMPORTED)["jsonl"]
    per_second, made = rate(lambda: import_source(memory.store, lines, again=True))
    if made.created != _IMPORTED:
        raise RuntimeError(f"{made.created} of {_IMPORTED} chunks were imported")
    with memory.batch():
        for chunk_id in made.chunk_ids:
            memory.delete(chunk_id, permanent=True)
    consolidate_ms, _ = timed(lambda: memory.continuum.consolidate(dry_run=True))
    return row | {
        "use_p50": percentile(uses, 0.5),
        "imported_per_s": per_second,
        "consolidate_ms": consolidate_ms,
    }


def _recalls(memory: Memory, size: int) -> list[float]:
    """Milliseconds of recalls by a model that answers at once, without its own time."""
    model = InstantModel()
    recall = RecallOperation(memory.store, model, config=memory.store.config).recall
    costs = []
    for number in range(_ROUNDS + 3):
        question = " ".join(note(number * 37 % size).split()[2:10]) + "?"
        before = model.seconds
        took, result = timed(lambda question=question: recall(question))
        if not result.concluded:
            raise RuntimeError(f"a recall came to no end: {result.trajectory.steps}")
        costs.append(took - (model.seconds - before) * 1e3)
    return costs[3:]
