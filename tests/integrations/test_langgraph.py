"""The store of LangGraph, against the real package; graphs, filters, paging, namespaces, TTLs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph.store.base", reason="langgraph is not installed: make test-integrations")

from langgraph.store.base import GetOp, InvalidNamespaceError, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from tests.typed import present

from rlm_mem import InvalidChunk, Memory
from rlm_mem.integrations.langgraph import RlmMemStore


class Clock:
    """Moved by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 2, 10, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with Memory.open(tmp_path / "brain", clock=clock) as opened:
        yield opened


@pytest.fixture
def store(memory: Memory) -> RlmMemStore:
    return RlmMemStore(memory)


DOCUMENTS: dict[tuple[tuple[str, ...], str], dict[str, Any]] = {
    (("docs",), "one"): {"text": "trains to Porto", "status": "open", "score": 4.5, "by": {"name": "Ines"}},
    (("docs",), "two"): {"text": "boats to Faro", "status": "done", "score": 2, "tags": ["sea", "south"]},
    (("docs", "old"), "one"): {"text": "planes to Oslo", "status": "done", "score": 9},
    (("Docs",), "one"): {"text": "another case, another namespace", "status": "open"},
    (("docs2",), "é/ü %41"): {"text": "not below docs", "status": "open", "score": 1},
}
FILTERS: list[dict[str, Any] | None] = [
    None,
    {"status": "done"},
    {"status": {"$ne": "done"}},
    {"status": {"$eq": "open"}, "by": {"name": "Ines"}},
    {"tags": ["sea", "south"]},
    {"by": {"name": "Nobody"}},
]


def test_it_returns_the_same_as_the_store_in_memory(store: RlmMemStore) -> None:
    other = InMemoryStore()
    for (namespace, key), value in DOCUMENTS.items():
        store.put(namespace, key, value)
        other.put(namespace, key, value)
    for prefix in ((), ("docs",), ("docs", "old"), ("docs2",), ("nothing",)):
        for filters in FILTERS:
            found, expected = (
                {(i.namespace, i.key): i.value for i in one.search(prefix, filter=filters, limit=50)}
                for one in (store, other)
            )
            assert found == expected, (prefix, filters)
    for given in (
        {},
        {"prefix": ("docs",)},
        {"prefix": ("*", "old")},
        {"suffix": ("old",)},
        {"max_depth": 1},
        {"limit": 2, "offset": 1},
    ):
        assert store.list_namespaces(**given) == other.list_namespaces(**given), given
    for one in (store, other):
        assert [i.key for i in one.search(("docs",), filter={"score": {"$gt": 3, "$lte": 4.5}})] == ["one"]
    store.delete(("docs",), "one")
    assert store.get(("docs",), "one") is None
    assert store.get(("docs", "old"), "one") is not None
    store.delete(("docs",), "never there")


def test_a_put_replaces_the_value_and_keeps_when_it_was_made(store: RlmMemStore, memory: Memory) -> None:
    store.put(("users", "1"), "colour", {"is": "green"})
    first = store.get(("users", "1"), "colour")
    store.put(("users", "1"), "colour", {"is": "blue", "since": None})
    second = store.get(("users", "1"), "colour")
    assert first is not None
    assert second is not None
    assert second.value == {"is": "blue", "since": None}
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    (chunk_id,) = memory.list_chunks()
    assert len(memory.history(chunk_id)) == 2
    assert "blue" in str(memory.search("blue")[0].snippet)


def test_search_ranks_pages_and_keeps_out_what_is_not_indexed(store: RlmMemStore) -> None:
    for number in range(12):
        store.put(("notes",), f"note{number}", {"text": f"Bees in garden {number}", "even": number % 2 == 0})
    store.put(("notes",), "hidden", {"text": "Bees that nobody finds"}, index=False)
    store.put(("notes",), "title", {"title": "Wasps", "text": "Bees"}, index=["title"])
    store.put(("other",), "note", {"text": "Bees elsewhere"})
    best = store.search(("notes",), query="bees in garden 7", limit=3)
    assert best[0].key == "note7"
    assert best[0].score is not None
    found = [
        i.key for start in (0, 5, 10) for i in store.search(("notes",), query="bees", limit=5, offset=start)
    ]
    assert sorted(found) == sorted(f"note{number}" for number in range(12))
    assert len(store.search(("notes",), query="bees", filter={"even": True}, limit=50)) == 6
    assert [i.key for i in store.search(("notes",), query="wasps")] == ["title"]
    assert store.get(("notes",), "hidden") is not None


def test_the_asynchronous_methods_do_the_same(store: RlmMemStore) -> None:
    async def use() -> None:
        await store.aput(("docs",), "one", {"text": "trains to Porto"})
        item = await store.aget(("docs",), "one")
        assert item is not None
        assert item.value == {"text": "trains to Porto"}
        found, listed = await asyncio.gather(
            store.asearch(("docs",), query="Porto"), store.alist_namespaces()
        )
        assert ([i.key for i in found], listed) == (["one"], [("docs",)])
        await store.adelete(("docs",), "one")
        assert await store.aget(("docs",), "one") is None

    asyncio.run(use())


def test_a_batch_reads_before_it_writes_and_writes_all_or_nothing(store: RlmMemStore) -> None:
    store.put(("a",), "k", {"n": 1})
    read, _, _ = store.batch([GetOp(("a",), "k"), PutOp(("a",), "k", {"n": 2}), PutOp(("a",), "k", {"n": 3})])
    assert read.value == {"n": 1}
    with pytest.raises(InvalidChunk, match="plain data"):
        store.batch([PutOp(("a",), "k", {"n": 4}), PutOp(("a",), "j", {"n": object()})])
    assert present(store.get(("a",), "k")).value == {"n": 3}
    with pytest.raises(InvalidNamespaceError):
        store.batch([SearchOp(("a.b",))])


def test_items_stay_for_their_time_which_reading_prolongs(
    store: RlmMemStore, memory: Memory, clock: Clock
) -> None:
    store.put(("t",), "short", {"text": "bees"}, ttl=10)
    store.put(("t",), "long", {"text": "bees"})
    clock.now += timedelta(minutes=8)
    assert store.get(("t",), "short") is not None
    clock.now += timedelta(minutes=8)
    assert store.get(("t",), "short", refresh_ttl=False) is not None
    assert [i.key for i in store.search(("t",), refresh_ttl=False)] == ["long", "short"]
    clock.now += timedelta(minutes=3)
    assert store.get(("t",), "short") is None
    assert [i.key for i in store.search(("t",))] == ["long"]
    assert [i.key for i in store.search(("t",), query="bees")] == ["long"]
    assert store.sweep_ttl() == 1
    assert len(memory.list_chunks()) == 1
    timed = RlmMemStore(memory, ttl={"default_ttl": 1, "refresh_on_read": False})
    timed.put(("t",), "default", {"text": "bees"})
    timed.put(("t",), "long", {"text": "bees"}, ttl=None)
    clock.now += timedelta(minutes=2)
    assert timed.get(("t",), "default") is None
    timed.put(("t",), "default", {"text": "bees again"}, ttl=None)
    assert present(timed.get(("t",), "default")).value == {"text": "bees again"}


def test_memories_that_are_not_items_are_not_returned(store: RlmMemStore, memory: Memory) -> None:
    memory.remember("Bees in the garden.", tags=["langgraph:", "langgraph:docs", "langgraph:docs/."])
    assert store.search(("docs",)) == []
    assert store.search((), query="bees") == []
    assert store.list_namespaces() == []


def test_long_labels_and_many_levels(store: RlmMemStore) -> None:
    namespace = tuple(f"{level}-" + "x" * 90 for level in range(6))
    store.put(namespace, "k" * 500, {"deep": True})
    assert store.list_namespaces() == [namespace]
    assert [i.key for i in store.search(namespace[:4])] == ["k" * 500]
    assert store.search((*namespace[:3], "other")) == []


class _State(TypedDict):
    said: str
    known: list[str]


def test_a_graph_remembers_across_threads(store: RlmMemStore) -> None:
    graphs = pytest.importorskip(
        "langgraph.graph", reason="langgraph is not installed: make test-integrations"
    )
    from langgraph.config import get_store

    def node(state: dict[str, Any]) -> dict[str, Any]:
        kept = get_store()
        known = [item.value["said"] for item in kept.search(("chat", "ana"), query=state["said"])]
        kept.put(("chat", "ana"), state["said"], {"said": state["said"]})
        return {"known": known}

    builder = graphs.StateGraph(_State)
    builder.add_node("chat", node)
    builder.add_edge(graphs.START, "chat")
    graph = builder.compile(store=store)
    graph.invoke({"said": "My bees live in Porto."})
    assert graph.invoke({"said": "Where do my bees live?"})["known"] == ["My bees live in Porto."]
