"""Programs with different analyses of words on one memory: two versions of the package, or two languages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.config import Config
from rlm_mem.errors import StorageError
from rlm_mem.search import search
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check

Open = Callable[..., ChunkStore]
REFUSED = r"has the words of another program \(analysis {}, this program has {}\): nothing was changed"


@pytest.fixture
def opened(base: Path | str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Open the store of the test as a program of some version of the analysis would, in a language."""
    stores: list[ChunkStore] = []

    def make(version: int = 5, language: str = "english", **options: Any) -> ChunkStore:
        with monkeypatch.context() as as_of:
            as_of.setattr("rlm_mem.store.core.records.ANALYSIS_VERSION", version)
            stores.append(
                ChunkStore(base, config=Config.load(base, search={"language": language}), **options)
            )
        return stores[-1]

    yield make
    for store in stores:
        store.close()


def look(store: ChunkStore) -> None:
    """Let the store look for changes of others, as it does once a second."""
    look_now = getattr(store.backend, "look", None)
    if look_now is not None:
        look_now()


def hits(store: ChunkStore, words: str) -> list[str]:
    return [hit.chunk_id for hit in search(store, words)]


def test_the_older_program_may_not_write_once_a_newer_one_has_rebuilt_the_index(opened: Open) -> None:
    older = opened(4)
    first = older.create_chunk("The gate is green.")
    newer = opened(5)
    assert hits(newer, "gate") == [first.id], "opening rebuilds"
    refused = REFUSED.format("5:english", "4:english")
    with pytest.raises(StorageError, match=refused) as raised:
        older.create_chunk("The gate squeaks.")
    assert "restart this program" in str(raised.value.hint)
    with pytest.raises(StorageError, match=refused), older.batch():
        older.update_chunk(first.id, content="The gate is red.")
    assert newer.list_chunks() == [first.id]
    second = newer.create_chunk("The gate was painted.")
    assert set(hits(newer, "gate")) == {first.id, second.id}
    assert check(newer) == []
    with pytest.raises(StorageError, match=refused):
        hits(opened(4), "gate")


def test_programs_of_two_languages_do_not_take_turns_at_rebuilding(opened: Open) -> None:
    english = opened(language="english")
    house = english.create_chunk("Two houses were built.")
    german = opened(language="german")
    assert hits(german, "houses") == [house.id]
    for _ in range(3):
        look(english)
        look(german)
        with pytest.raises(StorageError, match=REFUSED.format("5:german", "5:english")):
            english.create_chunk("Three houses were built.")
        assert hits(german, "houses") == [house.id]
    again = opened(language="english")
    assert hits(again, "house") == [house.id]
    with pytest.raises(StorageError, match=REFUSED.format("5:english", "5:german")):
        german.create_chunk("Vier Häuser.")


@pytest.mark.local_only("PostgreSQL reads the name of the analysis with the lock only")
def test_a_search_with_other_words_than_those_of_the_index_is_refused(opened: Open) -> None:
    english = opened(language="english")
    house = english.create_chunk("Two houses were built.")
    reader = opened(language="english", read_only=True)
    german = opened(language="german")
    look(english)
    with pytest.raises(StorageError, match="analysis 5:german, this program has 5:english"):
        hits(english, "house")
    assert english.get_chunk(house.id) is not None, "reading needs no words"
    look(reader)
    assert hits(reader, "house") == [house.id], "it has indexed the files for itself"
    assert hits(opened(language="english", read_only=True), "house") == [house.id]
    german.backend.rebuild("default")
    opened(language="english")
    look(english)
    assert hits(english, "house") == [house.id], "the index has its words again"


def test_a_batch_that_reaches_a_namespace_of_an_older_program_rebuilds_it(opened: Open) -> None:
    older = opened(4, namespace="there")
    kept = older.create_chunk("The gate is green.")
    older.close()
    here = opened(5, namespace="here")
    there = here.confined_to("there", actor=None)
    with here.batch():
        here.create_chunk("The fence is brown.")
        new = there.create_chunk("The gate squeaks.")
    assert set(hits(there, "gate")) == {kept.id, new.id}
