"""Links of earlier rules are found and removed on request, and nothing that a person made."""

from __future__ import annotations

from dataclasses import replace

from tests.conftest import Clock
from tests.typed import present

from rlm_mem.chunk import Chunk, ChunkLinks
from rlm_mem.ingest.noise import noisy_links, prune_links
from rlm_mem.ingest.remember import remember
from rlm_mem.store.core.chunk_store import ChunkStore


def kinds(chunk: Chunk) -> list[tuple[str, str]]:
    return [(link.target_id, link.type) for link in chunk.links]


def linked_as_before(store: ChunkStore, text: str, links: list[tuple[str, str, float]]) -> Chunk:
    """A chunk with the links that an earlier version stored."""
    return store.create_chunk(
        text,
        source="import",
        tags=["a", "b"],
        links=[{"target_id": target, "type": kind, "strength": strength} for target, kind, strength in links],
    )


def test_links_by_the_second_of_an_import_are_pruned_and_come_back_by_undo(store: ChunkStore) -> None:
    one, two, three = (store.create_chunk(text, source="import", tags=["a"]).id for text in "xyz")
    noisy = linked_as_before(
        store,
        "w",
        [(one, "follows", 0.5), (two, "follows", 0.45), (three, "follows", 0.405), (one, "related_to", 0.5)],
    )
    store.add_link(noisy.id, two, "related_to", 0.5)
    before = store.get_chunk(noisy.id)
    assert before is not None
    (planned,) = prune_links(store)
    assert (planned.finding.code, planned.finding.chunk_id, planned.done) == ("noise-links", noisy.id, False)
    assert store.get_chunk(noisy.id, track=False).links == before.links, "a dry run changes nothing"
    assert [step.done for step in prune_links(store, dry_run=False)] == [True]
    left = store.get_chunk(noisy.id)
    assert left is not None
    assert kinds(left) == [(one, "related_to"), (two, "related_to")]
    assert list(noisy_links(store)) == []
    store.undo(noisy.id)
    assert store.get_chunk(noisy.id, track=False).links == before.links


def test_more_links_than_today_s_number_are_pruned_the_weakest_of_each_type(
    store: ChunkStore, clock: Clock
) -> None:
    many = replace(store.config, ingest=replace(store.config.ingest, max_links_per_type=10))
    for number in range(8):
        remember(store, f"turn {number}", conversation_id="c1", tags=["a"], config=many)
        clock.advance(seconds=20)
    assert max(len(chunk.links) for chunk in store.iter_chunks()) == 21
    prune_links(store, dry_run=False)
    for chunk in store.iter_chunks():
        wanted = [link for link in chunk.links if link.type == "context_of"]
        assert [link.strength for link in wanted] == [1.0, 0.9, 0.81][: len(wanted)]
        assert len([link for link in chunk.links if link.type == "follows"]) <= 3
    assert max(len(chunk.links) for chunk in store.iter_chunks()) == 9


def test_links_that_a_person_may_have_made_stay(store: ChunkStore) -> None:
    ids = [store.create_chunk(f"text {number}", source="import").id for number in range(8)]
    beside = linked_as_before(
        store, "beside", [(ids[0], "follows", 0.5), (ids[1], "follows", 0.45), (ids[2], "follows", 0.405)]
    )
    by_hand = store.create_chunk("by hand", source="import").id
    for target in ids:
        store.add_link(by_hand, target, "follows", 0.5)
        store.add_link(by_hand, target, "context_of", 1.0)
    store.add_link(beside.id, ids[3], "follows", 0.3645)  # later, and as strong as a rule makes it
    store.add_link(beside.id, ids[4], "supports", 0.5)
    reason = [ChunkLinks(target, "follows", 0.405, reasoning="said after it") for target in ids]
    reasoned = store.create_chunk("reasoned", source="import", links=reason)
    prune_links(store, dry_run=False)
    assert len(present(store.get_chunk(by_hand)).links) == 16
    assert kinds(present(store.get_chunk(beside.id))) == [(ids[3], "follows"), (ids[4], "supports")]
    assert len(present(store.get_chunk(reasoned.id)).links) == 8
