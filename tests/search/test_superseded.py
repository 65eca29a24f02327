"""Superseded facts rank below their successors unless asked for."""

from __future__ import annotations

from itertools import pairwise

from rlm_mem.search import Filters, search
from rlm_mem.store.core.chunk_store import ChunkStore


def replace_chunk(store: ChunkStore, old: str, new: str, at: str) -> None:
    store.update_chunk(old, metadata={"superseded_by": new, "valid_to": at})


def test_a_superseded_chunk_comes_after_its_successor_though_its_words_match_better(
    store: ChunkStore,
) -> None:
    old = store.create_chunk("The radio of the sensor node is LoRa, radio LoRa for every sensor node.")
    new = store.create_chunk("The team moved to NB-IoT for the sensor node.")
    other = store.create_chunk("The sensor node has a green case.")
    replace_chunk(store, old.id, new.id, "2026-03-03T00:00:00Z")
    found = [hit.chunk_id for hit in search(store, "Which radio does the sensor node use, LoRa?")]
    assert found.index(new.id) < found.index(old.id)
    assert set(found) == {old.id, new.id, other.id}


def test_a_successor_comes_before_what_is_said_of_something_else_in_the_words_of_the_question(
    store: ChunkStore,
) -> None:
    for note in (
        "The gutter is repaired.",
        "Four chairs from the flea market.",
        "Lunch with Ida at the harbour.",
    ):
        store.create_chunk(note)
    old = store.create_chunk("Product owner of Checkout: Dana Whitfield")
    store.create_chunk("Product owner of Search: Imani Cole")
    new = store.create_chunk("Dana Whitfield handed Checkout over to Lucas Brandt.")
    replace_chunk(store, old.id, new.id, new.metadata.at)
    assert search(store, "Who is the product owner of Checkout?")[0].chunk_id == new.id


def test_a_successor_without_a_common_word_is_brought_in(store: ChunkStore) -> None:
    old = store.create_chunk("Deployment happens on Fridays.")
    new = store.create_chunk("We ship every Monday now.")
    replace_chunk(store, old.id, new.id, "2026-03-03T00:00:00Z")
    assert [hit.chunk_id for hit in search(store, "deployment Fridays")] == [new.id, old.id]


def test_a_chain_of_replacements_is_ordered_newest_first(store: ChunkStore) -> None:
    texts = [
        "Budget: budget budget 100 euros.",
        "The budget is 200 euros, budget.",
        "Budget raised to 300 euros.",
    ]
    chain = [store.create_chunk(text) for text in texts]
    for old, new in pairwise(chain):
        replace_chunk(store, old.id, new.id, "2026-03-03T00:00:00Z")
    for by in ("chunk", "segment"):
        found = [hit.chunk_id for hit in search(store, "budget euros", by=by)]
        assert found == [chunk.id for chunk in chain[::-1]]


def test_asked_for_outdated_chunks_rank_like_any_other(store: ChunkStore) -> None:
    old = store.create_chunk("The radio of the sensor node is LoRa.")
    new = store.create_chunk("NB-IoT it is.")
    replace_chunk(store, old.id, new.id, "2026-03-03T00:00:00Z")
    found = search(store, "radio of the sensor node", filters=Filters(include_superseded=True))
    assert [hit.chunk_id for hit in found] == [old.id]


def test_replacements_in_a_circle_do_no_harm(store: ChunkStore) -> None:
    one, two = store.create_chunk("The lamp is red."), store.create_chunk("The lamp is blue.")
    one.metadata.superseded_by, two.metadata.superseded_by = two.id, one.id
    for chunk in (one, two):  # an update would be refused
        store.adopt(chunk)
    assert {hit.chunk_id for hit in search(store, "lamp")} == {one.id, two.id}


def test_as_of_a_time_shows_what_held_then(store: ChunkStore) -> None:
    old = store.create_chunk("The lamp is red.", occurred_at="2026-01-01T00:00:00Z")
    new = store.create_chunk("The lamp is blue.", occurred_at="2026-03-01T00:00:00Z")
    replace_chunk(store, old.id, new.id, "2026-03-01T00:00:00Z")
    assert [hit.chunk_id for hit in search(store, "lamp", as_of="2026-02-01")] == [old.id]
    assert [hit.chunk_id for hit in search(store, "lamp", as_of="2026-03-01")] == [new.id]
    assert search(store, "lamp", as_of="2025-12-31") == []
    assert [hit.chunk_id for hit in search(store, "lamp", as_of="20260301")] == [new.id]
