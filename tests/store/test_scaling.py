"""Costs that must not grow with the store, counted in steps of SQLite's machine instead of milliseconds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlm_mem.memory import Memory
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.local import connections
from tests.typed import local


def steps(store: ChunkStore, action: Callable[[], object]) -> int:
    """Tens of SQLite's virtual machine instructions that an action takes."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    local(store.backend).connection.set_progress_handler(tick, 10)
    try:
        action()
    finally:
        local(store.backend).connection.set_progress_handler(None, 0)
    return count


def grow(memory: Memory, first: int, last: int) -> None:
    with memory.batch():
        for number in range(first, last):
            memory.store.create_chunk(
                f"note {number} on subject {number % 40}",
                tags=["all", f"team-{number % 5}"],
                conversation_id=f"conv-{number // 20}",
            )


@pytest.fixture(scope="module")
def _no_look() -> Iterator[None]:
    """No operation looks in passing for what others did to the files, as each first one in a second does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connections, "_LOOK_SECONDS", math.inf)
        yield


def actions(memory: Memory, ids: list[str], size: int) -> dict[str, Callable[[], object]]:
    """The operations by name, on chunks of one conversation in a memory of this size."""
    store = memory.store
    return {
        "remember": lambda: memory.remember(
            f"A new remark number {size}.", conversation_id="conv-3", tags=["all", "team-1"]
        ),
        "get": lambda: store.get_chunk(ids[0]),
        "update": lambda: store.update_chunk(ids[0], content=f"changed {size}"),
        "link": lambda: store.add_link(ids[0], ids[1], "supports", size / 4000),
        "summaries": lambda: store.summaries(ids),
        "neighbours": lambda: store.neighbours(ids[1], 3, 3),
        "latest by tag": lambda: store.latest(10, tag="all"),
        "latest": lambda: store.latest(10),
        "list a conversation": lambda: store.list_chunks(conversation_id="conv-3"),
        "a page of a tag": lambda: store.list_chunks(chunk_type="note", limit=10),
        "linked": lambda: store.linked(ids[0], direction="both"),
        "delete and restore": lambda: store.delete_chunk(ids[2]) and store.restore_chunk(ids[2]),
    }


@pytest.fixture(scope="module")
def costs(tmp_path_factory: pytest.TempPathFactory, _no_look: None) -> dict[str, tuple[int, int]]:
    """Steps of each operation at 200 and at 2,000 chunks."""
    found: dict[str, list[int]] = {}
    with Memory.open(tmp_path_factory.mktemp("scaling") / "brain") as memory:
        store = memory.store
        for size, previous in ((200, 0), (2000, 200)):
            grow(memory, previous, size)
            memory.search("subject")  # reads what the batch wrote, so that no operation below does it
            ids = store.list_chunks(conversation_id="conv-3")
            for name, action in actions(memory, ids, size).items():
                found.setdefault(name, []).append(steps(store, action))
    return {name: (small, large) for name, (small, large) in found.items()}


@pytest.mark.parametrize(
    "name",
    ["remember", "get", "update", "link", "summaries", "neighbours", "latest by tag", "latest", "list a conversation",
     "a page of a tag", "linked", "delete and restore"],
)  # fmt: skip
def test_the_cost_does_not_grow_with_the_store(costs: dict[str, tuple[int, int]], name: str) -> None:
    small, large = costs[name]
    assert large <= small * 1.5 + 20, f"{name}: {small} steps at 200 chunks, {large} at 2,000"


def test_opening_looks_at_folders_not_at_files(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        grow(memory, 0, 300)
    with Memory.open(tmp_path / "brain") as memory:
        assert steps(memory.store, lambda: memory.store.sync()) < 20
