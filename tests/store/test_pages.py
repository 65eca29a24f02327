"""Listings by tag and conversation: right after every kind of write, and as dear as what they show."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rlm_mem.memory import Memory
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.local import schema
from tests.store.test_scaling import grow, steps

OLD_INDEX = Path(__file__).parent / "archives" / "index-2.sql"
"""The tables of an index of version 2."""

WRITES = st.lists(
    st.tuples(
        st.sampled_from(["create", "archive", "restore", "erase", "retag", "move", "retime"]),
        st.integers(0, 30),
    ),
    max_size=25,
)


@settings(max_examples=20)
@given(writes=WRITES)
def test_counts_kept_along_are_those_of_the_rows(
    writes: list[tuple[str, int]], tmp_path_factory: object
) -> None:
    base = Path(tmp_path_factory.mktemp("pages"))  # type: ignore[attr-defined]  # the session's factory
    with ChunkStore(base / "memory") as store:
        ids: list[str] = []
        with store.batch():
            for op, number in writes:
                chosen = ids[number % len(ids)] if ids else None
                if op == "create" or chosen is None:
                    ids.append(
                        store.create_chunk(
                            f"note {len(ids)}",
                            tags=["all", f"t{number % 3}"],
                            conversation_id=f"c{number % 4}" if number % 5 else None,
                            occurred_at=f"2026-01-{number % 9 + 1:02}T00:00:00Z",
                        ).id
                    )
                elif op == "archive":
                    store.delete_chunk(chosen)
                elif op == "restore":
                    store.restore_chunk(chosen)
                elif op == "erase":
                    store.delete_chunk(chosen, permanent=True)
                elif op == "retag":
                    store.update_chunk(chosen, tags=[f"t{number % 4}"])
                elif op == "move":
                    store.update_chunk(chosen, metadata={"conversation_id": f"c{number % 3}"})
                else:
                    store.update_chunk(
                        chosen, metadata={"occurred_at": f"2026-02-{number % 9 + 1:02}T00:00:00Z"}
                    )
        chunks = list(store.iter_chunks())
        at = {item.id: item.at for item in store.summaries([chunk.id for chunk in chunks])}
        tags: dict[str, int] = {}
        for chunk in chunks:
            for tag in chunk.tags:
                tags[tag] = tags.get(tag, 0) + 1
        assert dict(store.tag_counts()) == tags
        for tag in tags:
            carrying = [chunk.id for chunk in chunks if tag in chunk.tags]
            assert store.list_chunks(tags=[tag]) == carrying
            assert [item.id for item in store.latest(3, tag=tag)] == carrying[::-1][:3]
        spoken: dict[str, list[float]] = {}
        for chunk in chunks:
            if chunk.metadata.conversation_id:
                spoken.setdefault(chunk.metadata.conversation_id, []).append(at[chunk.id])
        listed = {item.id: (item.count, item.first_at, item.last_at) for item in store.conversations()}
        assert listed == {name: (len(times), min(times), max(times)) for name, times in spoken.items()}


def test_an_index_of_the_first_release_is_brought_up_to_date(tmp_path: Path, monkeypatch: object) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        for number in range(6):
            memory.store.create_chunk(
                f"note {number}", tags=["a", f"t{number % 2}"], conversation_id=f"c{number % 3}"
            )
        counts, talks = memory.store.tag_counts(), memory.store.conversations()
        listed = memory.list_chunks(tags=["a"])
        for one, target in ((1, 0), (2, 0), (3, 1)):
            memory.link(listed[one], listed[target], "supports")
        linked = memory.store.linked(listed[0]), memory.store.linked(listed[1])
    path = tmp_path / "brain" / "memory" / "index" / "index.sqlite"
    old = sqlite3.connect(path, isolation_level=None)
    rows = {
        name: old.execute(f"SELECT * FROM {name}").fetchall()
        for name in [
            "chunks",
            "links",
            "meta",
            "namespaces",
            "conversations",
            "tags",
            "segments",
            "folders",
            "terms",
        ]
    }
    position = [row[1] for row in old.execute("PRAGMA table_info(chunks)")].index("folder")
    rows["chunks"] = [(*row[:position], row[-1], *row[position + 1 :]) for row in rows["chunks"]]  # the path
    old.close()
    for file in path.parent.glob("index.sqlite*"):
        file.unlink()
    made = sqlite3.connect(path, isolation_level=None)
    made.executescript(OLD_INDEX.read_text(encoding="utf-8"))
    made.execute("PRAGMA user_version=2")
    for name, found in rows.items():
        columns = len(
            made.execute(f"PRAGMA table_info({name})").fetchall()
        )  # later versions have more, at the end
        for row in found:
            made.execute(f"INSERT INTO {name} VALUES ({','.join('?' * columns)})", row[:columns])
    made.close()
    with Memory.open(tmp_path / "brain") as memory:
        assert memory.store.tag_counts() == counts
        assert memory.store.conversations() == talks
        assert memory.list_chunks(tags=["a"]) == listed
        assert (memory.store.linked(listed[0]), memory.store.linked(listed[1])) == linked
        assert memory.sync(full=True).changed == []  # nothing was read anew
        assert memory.check() == []


def test_an_index_from_before_the_first_release_is_set_aside_and_made_anew(tmp_path: Path) -> None:
    with ChunkStore(tmp_path) as store:
        chunk = store.create_chunk("kept in its file")
    with contextlib.closing(sqlite3.connect(tmp_path / "index" / "index.sqlite")) as index:
        index.execute("PRAGMA user_version=1")
    with ChunkStore(tmp_path) as store:
        assert store.list_chunks() == [chunk.id]
    assert list((tmp_path / "index").glob("index.sqlite.damaged-*"))


def test_an_old_index_is_not_asked_by_a_store_that_is_only_read(tmp_path: Path) -> None:
    with ChunkStore(tmp_path) as store:
        chunk = store.create_chunk("kept in its file")
    path = tmp_path / "index" / "index.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as index:
        index.execute("ALTER TABLE chunks RENAME COLUMN trust TO another")
        index.execute("PRAGMA user_version=2")
    before = path.read_bytes()
    with ChunkStore(tmp_path, read_only=True) as store:
        assert store.list_chunks() == [chunk.id]
    assert path.read_bytes() == before


def test_an_old_index_that_is_brought_up_to_date_is_a_new_one() -> None:
    made = []
    for first in (OLD_INDEX.read_text(encoding="utf-8"), ""):
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.executescript(first)
        connection.execute(f"PRAGMA user_version={2 * bool(first)}")
        assert schema.migrate(connection) is not bool(first)
        parts = connection.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY tbl_name, rowid"
        ).fetchall()
        # Of tables the columns, since those added later are written otherwise; in this order, since that of indexes
        # decides between those that seem equally good for a question.
        made.append([
            (kind, name, connection.execute(f"PRAGMA table_xinfo({name})").fetchall() if kind == "table" else sql)
            for kind, name, table, sql in parts if not name.startswith("sqlite_")
        ])  # fmt: skip
        connection.close()
    assert made[0] == made[1]


def test_a_page_costs_what_it_shows(tmp_path: Path) -> None:
    costs: list[list[int]] = []
    with Memory.open(tmp_path / "brain") as memory:
        store = memory.store
        actions = (
            lambda: store.list_chunks(tags=["all"], limit=10),
            lambda: store.list_chunks(tags=["all"], limit=10, newest_first=True),
            lambda: store.list_chunks(tags=["all"], start_date="2026-11-01", limit=10),
            lambda: store.conversations(limit=10),
            store.tag_counts,
        )
        for size, former in ((400, 0), (4000, 400)):
            grow(memory, former, size)
            costs.append([steps(store, action) for action in actions])
        store.rebuild_index()
        costs.append([steps(store, action) for action in actions])
    for later in costs[1:]:
        assert all(now <= before * 1.5 + 20 for before, now in zip(costs[0], later, strict=True)), costs
