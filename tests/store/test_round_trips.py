"""How often each operation waits for the database: what a distant server, or a cluster, costs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed")

from rlm_mem import Memory  # noqa: E402 - below what may skip the module
from rlm_mem.models.scripted import ScriptedLLM  # noqa: E402
from rlm_mem.store.core.chunk_store import ChunkStore  # noqa: E402
from rlm_mem.store.core.copying import compare, copy_namespace  # noqa: E402
from tests.store.test_postgres_search import noted_connections, round_trips  # noqa: E402


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Sequence[Any]:
    return noted_connections(monkeypatch)


def test_each_operation_takes_few_round_trips(opened: Sequence[Any], dsn: str, tmp_path: Path) -> None:
    with Memory.open(dsn) as memory:
        for number in range(40):
            text = f"The supplier moved the delivery of bracket{number} to week {number}."
            memory.remember(text, conversation_id=f"c{number % 4}", tags=["parts"])
        store = memory.store
        ids = store.list_chunks()
        for number in range(30):
            Memory(store, ScriptedLLM(["```repl\nFINAL('week 7')\n```"])).recall(f"Which week? {number}")
        question = "To which week was the delivery of bracket7 moved?"
        operations: dict[str, Callable[[int], object]] = {
            "get": lambda turn: memory.get(ids[turn]),
            "list": lambda turn: store.list_chunks(tags=["parts"], limit=10 + turn),
            "search": lambda turn: memory.search(question),
            "recall": lambda turn: memory.recall(question),
            "link": lambda turn: store.add_link(ids[turn], ids[9], "supports"),
            "update": lambda turn: store.update_chunk(ids[turn], tags=["moved"]),
            "rewrite": lambda turn: store.update_chunk(ids[turn], content=f"It comes when it comes: {turn}."),
            "archive": lambda turn: store.delete_chunk(ids[turn]),
            "restore": lambda turn: store.restore_chunk(ids[turn]),
            "erase": lambda turn: store.delete_chunk(ids[turn], permanent=True),
            "figures": lambda turn: store.get_stats(),
            "costs of 30 runs": lambda turn: memory.costs(),
            "links of several": lambda turn: store.linked_of_each(ids[turn : turn + 20]),
            "neighbours of several": lambda turn: store.neighbours_of_each(ids[turn : turn + 20]),
            "consolidate": lambda turn: memory.continuum.consolidate(dry_run=True),
        }
        taken = {}
        for name, operation in operations.items():
            operation(0)  # which may read what is kept from then on
            taken[name] = round_trips(opened, tmp_path / name, lambda operation=operation: operation(1))
    most = {
        "get": 1, "list": 1, "search": 2, "recall": 55, "link": 7, "update": 7, "rewrite": 9, "archive": 5,
        "restore": 7, "erase": 115, "consolidate": 30, "figures": 1, "links of several": 2, "neighbours of several": 2,
        "costs of 30 runs": 6,
    }  # fmt: skip
    over = {name: number for name, number in taken.items() if not 0 < number <= most[name]}
    assert over == {}, taken


def test_looking_up_later_notes_takes_at_most_two_more_round_trips(
    opened: Sequence[Any], dsn: str, tmp_path: Path
) -> None:
    with Memory.open(dsn) as memory:
        memory.remember("Our plumber is Mr Feddersen on Dock Road.", occurred_at="2026-01-05")
        memory.remember("The roofer is Ms Lund.", occurred_at="2026-01-06")
        memory.remember(
            "Took the boiler papers to Ms Okafor, Feddersen has retired.", occurred_at="2026-03-05"
        )
        taken = {}
        for by in ("conversation", "chunk"):  # of conversations nothing is looked up
            memory.search("Who mends the roof?", by=by)
            taken[by] = round_trips(
                opened, tmp_path / by, lambda by=by: memory.search("Who is our plumber?", by=by)
            )
    assert 0 < taken["chunk"] <= taken["conversation"] + 2, taken


def test_a_copy_into_a_database_takes_the_same_few_round_trips_for_each_page_of_chunks(
    opened: Sequence[Any], dsn: str, tmp_path: Path
) -> None:
    with ChunkStore(tmp_path / "memory") as source, ChunkStore(dsn) as target:
        taken = []
        for turn in range(2):
            with source.batch():
                for number in range(100 * (turn + 1)):
                    source.create_chunk(
                        f"Note {turn} {number} of the harbour.", conversation_id=f"c{number % 9}"
                    )
            taken.append(round_trips(opened, tmp_path / str(turn), lambda: copy_namespace(source, target)))
        assert compare(source, target) == []
    assert taken[1] <= taken[0] + 2 < 40, taken


def test_the_links_of_a_document_do_not_each_take_a_round_trip(
    opened: Sequence[Any], dsn: str, tmp_path: Path
) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    names = [f"note {number}" for number in range(20)]
    for name in names:
        (folder / f"{name}.md").write_text(f"The {name} has a berth.")
    with Memory.open(dsn) as memory:
        memory.sync_folder(folder)
        taken = []
        for count in (2, 20):
            (folder / f"list {count}.md").write_text("\n".join(f"[[{name}]]" for name in names[:count]))
            taken.append(round_trips(opened, tmp_path / str(count), lambda: memory.sync_folder(folder)))
        assert taken[1] < taken[0] + 12, taken  # eighteen more links
