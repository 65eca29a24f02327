"""Automatic links by the rules of the specification, bounded; and links made on purpose."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Clock

from rlm_mem.chunk import Chunk
from rlm_mem.errors import InvalidChunkId, InvalidLink
from rlm_mem.ingest.filling import remember_many
from rlm_mem.ingest.linking import AutoLinker, add_manual_link
from rlm_mem.ingest.remember import remember
from rlm_mem.store.core.chunk_store import ChunkStore


def links_of(chunk: Chunk, link_type: str) -> dict[str, float]:
    return {link.target_id: link.strength for link in chunk.links if link.type == link_type}


def test_chunks_of_one_conversation_are_its_context_nearest_first(store: ChunkStore, clock: Clock) -> None:
    older = []
    for number in range(3):
        older.append(store.create_chunk(f"turn {number}", conversation_id="c1").id)
        clock.advance(hours=1)
    store.create_chunk("elsewhere", conversation_id="c2")
    clock.advance(hours=1)
    linked = AutoLinker(store).link_on_create(store.create_chunk("the next turn", conversation_id="c1"))
    found = links_of(linked, "context_of")
    assert list(found) == older[::-1]
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert linked.links == store.get_chunk(linked.id).links, "a stored chunk is updated in the store"


def test_a_chunk_follows_what_was_said_within_five_minutes(store: ChunkStore, clock: Clock) -> None:
    early = store.create_chunk("too early", conversation_id="c1")
    clock.advance(minutes=4)
    middle = store.create_chunk("four minutes before", conversation_id="c1")
    clock.advance(minutes=3)
    near = store.create_chunk("one minute before", conversation_id="c1")
    other = store.create_chunk("one minute before, elsewhere", conversation_id="c2")
    clock.advance(minutes=1)
    linked = AutoLinker(store).link_on_create(store.create_chunk("now", conversation_id="c1"))
    found = links_of(linked, "follows")
    assert early.id not in found
    assert other.id not in found, "another conversation"
    assert found[near.id] > found[middle.id] > 0


def test_without_a_conversation_a_chunk_follows_what_the_same_author_said(
    store: ChunkStore, clock: Clock
) -> None:
    first = store.create_chunk("one", metadata={"author": "Ana"})
    store.create_chunk("of somebody else", metadata={"author": "Ben"})
    store.create_chunk("of a tool", source="tool", metadata={"author": "Ana"})
    store.create_chunk("of a conversation", conversation_id="c1", metadata={"author": "Ana"})
    clock.advance(minutes=1)
    later = store.create_chunk("two", metadata={"author": "Ana"})
    assert links_of(AutoLinker(store).link_on_create(later), "follows") == {first.id: 0.8}


@pytest.mark.parametrize("conversation", [None, "all"])
def test_the_time_of_an_import_makes_no_links_between_its_texts(
    store: ChunkStore, conversation: str | None
) -> None:
    """But within one file, and where the texts have times of their own and a conversation."""

    def stored(text: str, path: str, at: str | None = None) -> Chunk:
        chunk = store.create_chunk(
            text, source="import", provenance={"path": path}, conversation_id=conversation, occurred_at=at
        )
        return AutoLinker(store).link_on_create(chunk)

    first, other = stored("one", "a.md"), stored("two", "b.md")
    assert links_of(other, "follows") == {}
    assert list(links_of(stored("three", "a.md"), "follows")) == [first.id]
    early = stored("four", "c.md", "2025-01-01T10:00:00Z")
    assert list(links_of(stored("five", "d.md", "2025-01-01T10:01:00Z"), "follows")) == [early.id]


def test_follows_goes_by_when_a_thing_was_said_not_by_when_it_was_stored(store: ChunkStore) -> None:
    first = store.create_chunk("in May", conversation_id="c1", occurred_at="2023-05-08T13:56:00Z")
    store.create_chunk("in June", conversation_id="c1", occurred_at="2023-06-08T13:56:00Z")
    chunk = store.create_chunk(
        "in May, a minute later", conversation_id="c1", occurred_at="2023-05-08T13:57:00Z"
    )
    assert list(links_of(AutoLinker(store).link_on_create(chunk), "follows")) == [first.id]


def test_shared_tags_relate_with_the_jaccard_of_the_tag_sets(store: ChunkStore, clock: Clock) -> None:
    both = store.create_chunk("one", tags=["db", "perf"])
    half = store.create_chunk("two", tags=["db", "ui", "web"])
    store.create_chunk("three", tags=["garden"])
    clock.advance(hours=1)
    linked = AutoLinker(store).link_on_create(store.create_chunk("four", tags=["db", "perf"]))
    assert links_of(linked, "related_to") == {both.id: 1.0, half.id: 0.25}


def test_a_tag_that_most_chunks_have_relates_nothing(store: ChunkStore, clock: Clock) -> None:
    items: list[dict[str, Any]] = [
        {
            "text": f"The {number}th item is kept in cupboard {number}.",
            "tags": ["team", f"shelf-{number // 2}"],
        }
        for number in range(40)
    ]
    for item in items[:35]:
        remember(store, **item)
        clock.advance(minutes=10)
    remember_many(store, items[35:])
    ids = store.list_chunks(limit=40)
    for place in range(33, 40):
        related = store.linked(ids[place], link_type="related_to", direction="out")
        assert [link.chunk_id for link in related] == ([ids[place - 1]] if place % 2 else [])


def test_more_shared_tags_can_be_asked_for(store: ChunkStore, clock: Clock) -> None:
    from dataclasses import replace

    two = store.create_chunk("one", tags=["db", "perf"])
    store.create_chunk("two", tags=["db"])
    clock.advance(hours=1)
    strict = replace(store.config.ingest, min_shared_tags=2)
    linked = AutoLinker(store, strict).link_on_create(store.create_chunk("three", tags=["db", "perf", "x"]))
    assert list(links_of(linked, "related_to")) == [two.id]


def test_the_same_words_elsewhere_are_similar(store: ChunkStore, clock: Clock) -> None:
    twin = store.create_chunk("User prefers  Python!", conversation_id="c1")
    clock.advance(hours=1)
    linked = AutoLinker(store).link_on_create(store.create_chunk("user prefers python", conversation_id="c2"))
    assert links_of(linked, "similar_to") == {twin.id: 1.0}


def test_at_most_three_links_of_a_type_are_stored_the_strongest_of_them(store: ChunkStore) -> None:
    weak = [
        store.create_chunk(f"weak {n}", conversation_id="c1", tags=["a", "b", "c", "d"]).id for n in range(5)
    ]
    strong = [store.create_chunk(f"strong {n}", conversation_id="c1", tags=["a"]).id for n in range(2)]
    weak += [
        store.create_chunk(f"weaker {n}", conversation_id="c1", tags=["a", "x", "y", "z"]).id
        for n in range(5)
    ]
    linked = AutoLinker(store).link_on_create(store.create_chunk("new", conversation_id="c1", tags=["a"]))
    assert Counter(link.type for link in linked.links) == {"context_of": 3, "follows": 3, "related_to": 3}
    related = list(links_of(linked, "related_to"))
    assert set(related[:2]) == set(strong)
    assert set(related[2:]) <= set(weak[-5:]), "equally strong ones: the newest"


def test_no_links_at_all_where_none_are_wanted(store: ChunkStore) -> None:
    from dataclasses import replace

    store.create_chunk("one", conversation_id="c1", tags=["a"])
    none = AutoLinker(store, replace(store.config.ingest, max_links_per_type=0))
    assert none.link_on_create(store.create_chunk("two", conversation_id="c1", tags=["a"])).links == []


def test_a_draft_is_linked_without_being_stored(store: ChunkStore, clock: Clock) -> None:
    there = store.create_chunk("one", conversation_id="c1")
    draft = Chunk.from_dict({**there.to_dict(), "id": "chunk-draft", "content": "two"})
    linked = AutoLinker(store).link_on_create(draft)
    assert set(links_of(linked, "context_of")) == {there.id}
    assert draft.links == [], "the caller's object is left alone"
    assert not store.exists("chunk-draft")


def test_existing_links_are_kept_and_linking_twice_adds_nothing(store: ChunkStore) -> None:
    one = store.create_chunk("one", conversation_id="c1")
    two = store.create_chunk("two", conversation_id="c1", links=[{"target_id": one.id, "type": "supports"}])
    linker = AutoLinker(store)
    first = linker.link_on_create(two)
    assert {link.type for link in first.links} >= {"supports", "context_of", "follows"}
    again = linker.link_on_create(first)
    assert again.links == first.links
    assert store.get_chunk(two.id).revision == 2


def test_archived_chunks_and_other_namespaces_are_never_linked(
    store: ChunkStore, base: Path | str, clock: Clock
) -> None:
    gone = store.create_chunk("gone", conversation_id="c1", tags=["a"])
    store.delete_chunk(gone.id)
    with ChunkStore(base, namespace="other", clock=clock) as other:
        other.create_chunk("new", conversation_id="c1", tags=["a"])
    assert (
        AutoLinker(store).link_on_create(store.create_chunk("new", conversation_id="c1", tags=["a"])).links
        == []
    )


def test_the_number_of_questions_asked_does_not_grow_with_the_store(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that linking looks at in a store of 40 chunks and of 400 are the same number."""
    looked_at: list[int] = []
    for method in ("list_between", "latest", "summaries", "find_normalised"):
        original = getattr(ChunkStore, method)

        def counted(self: ChunkStore, *args: Any, _original: Any = original, **named: Any) -> Any:
            found = _original(self, *args, **named)
            looked_at.append(len(found))
            return found

        monkeypatch.setattr(ChunkStore, method, counted)
    sums = []
    for count in (60, 340):
        with store.batch():
            for number in range(count):
                store.create_chunk(f"memory {count} {number}", conversation_id="c1", tags=["a", "b"])
        looked_at.clear()
        draft = {"id": "chunk-new", "content": "new", "tokens": 1, "tags": ["a", "b"]}
        about = {"conversation_id": "c1", "created_at": "2026-02-10T12:00:30Z"}
        AutoLinker(store).links_for(Chunk.from_dict({**draft, "metadata": about}))
        sums.append((len(looked_at), sum(looked_at)))
    assert sums[0] == sums[1]
    assert sums[0][1] < 200


@pytest.mark.parametrize("link_type", ["supports", "contradicts", "elaborates", "example_of"])
def test_links_on_purpose_carry_strength_and_reasoning(store: ChunkStore, link_type: str) -> None:
    one, two = store.create_chunk("one"), store.create_chunk("two")
    assert (
        AutoLinker(store).add_manual_link(one.id, two.id, link_type, 0.8, "measured in the same run") is True
    )
    (link,) = store.get_chunk(one.id).links
    assert (link.target_id, link.type, link.strength, link.reasoning) == (
        two.id,
        link_type,
        0.8,
        "measured in the same run",
    )
    (seen,) = store.linked(two.id, direction="in")
    assert (seen.chunk_id, seen.type) == (one.id, link_type)


def test_the_function_of_the_module_does_the_same(store: ChunkStore) -> None:
    one, two = store.create_chunk("one"), store.create_chunk("two")
    assert add_manual_link(store, one.id, two.id, "supports") is True
    assert add_manual_link(store, one.id, two.id, "supports", strength=0.9) is True
    assert [(link.type, link.strength) for link in store.get_chunk(one.id).links] == [("supports", 0.9)]


def test_a_registered_link_type_is_accepted_and_an_unknown_one_is_not(store: ChunkStore) -> None:
    one, two = store.create_chunk("one"), store.create_chunk("two")
    with pytest.raises(InvalidLink, match="depends_on"):
        add_manual_link(store, one.id, two.id, "depends_on")
    store.types.register_link_type("depends_on", "Chunk depends on target chunk")
    assert add_manual_link(store, one.id, two.id, "depends_on")


@pytest.mark.parametrize(
    "change",
    [
        {"target": "chunk-missing"},
        {"source": "chunk-missing"},
        {"target": "../../etc/passwd"},
        {"target": ""},
        {"target": None},
        {"source": 7},
        {"target": "chunk-a/b"},
        {"target": "chunk-" + "a" * 500},
        {"target": "chunk-a\ud800"},
        {"link_type": "bogus"},
        {"link_type": None},
        {"link_type": 3},
        {"link_type": ""},
        {"strength": 1.5},
        {"strength": -0.1},
        {"strength": math.nan},
        {"strength": math.inf},
        {"strength": "strong"},
        {"strength": True},
        {"strength": None},
        {"reasoning": 5},
        {"reasoning": b"bytes"},
        {"reasoning": "a\ud800"},
        {"target": "self"},
    ],
    ids=repr,
)
def test_a_malformed_link_is_one_clear_error_and_changes_nothing(
    store: ChunkStore, change: dict[str, Any]
) -> None:
    one, two = store.create_chunk("one"), store.create_chunk("two")
    given: dict[str, Any] = {"source": one.id, "target": two.id, "link_type": "supports", **change}
    if given["target"] == "self":
        given["target"] = one.id
    with pytest.raises((InvalidLink, InvalidChunkId)) as caught:
        AutoLinker(store).add_manual_link(
            given["source"],
            given["target"],
            given["link_type"],
            given.get("strength", 0.5),
            given.get("reasoning"),
        )
    assert caught.value.message
    assert "\n" not in caught.value.message
    assert store.get_chunk(one.id).links == []
    assert store.get_chunk(one.id).revision == 1
