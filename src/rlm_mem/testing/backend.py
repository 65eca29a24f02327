"""The contract of store backends, as pytest tests: chunks, versions, links, namespaces, transactions, maintenance."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from rlm_mem.chunk import Chunk
from rlm_mem.config import Config
from rlm_mem.errors import (
    ConflictError,
    InvalidChunk,
    InvalidChunkId,
    InvalidLink,
    NamespaceError,
    StoreReadOnly,
)
from rlm_mem.search import search
from rlm_mem.store.backup import back_up, restore_backup
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.copying import compare, copy_namespace
from rlm_mem.store.core.integrity import check

OpenStore = Callable[..., ChunkStore]
_T = TypeVar("_T")


class MovedClock:
    """A clock that starts at 2026-02-10 12:00 UTC and advances by a millisecond per call, and by ``advance``."""

    def __init__(self) -> None:
        self.now = datetime(2026, 2, 10, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return the current time."""
        self.now += timedelta(milliseconds=1)
        return self.now

    def advance(self, **units: float) -> None:
        """Move the clock forward; ``units`` as for ``timedelta``."""
        self.now += timedelta(**units)


class StoreFixtures:
    """Fixtures of a suite for a store; a subclass provides ``place``."""

    @pytest.fixture
    def place(self) -> Path | str:
        """Return the location of an empty store for this test, as accepted by ``ChunkStore``: a folder or a DSN."""
        raise NotImplementedError("define the fixture `place` in your subclass of the suite")

    @pytest.fixture
    def moved_clock(self) -> MovedClock:
        """Return the clock of every store of the test."""
        return MovedClock()

    @pytest.fixture
    def open_store(self, place: Path | str, moved_clock: MovedClock) -> Iterator[OpenStore]:
        """Yield a function that opens another store at the place, with options of ``ChunkStore``."""
        with ExitStack() as stack:

            def opened(**options: Any) -> ChunkStore:
                config = Config.load(None, environ={}, store={"durability": "normal"})
                return stack.enter_context(
                    ChunkStore(place, **{"config": config, "clock": moved_clock, **options})
                )

            yield opened

    @pytest.fixture
    def store(self, open_store: OpenStore) -> ChunkStore:
        """Return an open, empty store."""
        return open_store()


_TEXTS = (
    "User decided to use RLM architecture instead of RAG.",
    "  leading space, two  spaces, trailing space ",
    "line one\r\nline two\n\n\ttabbed",
    "'; DROP TABLE chunks; --  \" \\ % _ {} $1 ?",
    "Zoë ⁠said: 日本語, עברית, 👩‍👩‍👧 and ﷽",
    "control \x01\x02 and null \x00 inside",
    "a" * 20_000,
)


class _Rollback(Exception):
    """Raised inside a transaction on purpose."""


class BackendContract(StoreFixtures):
    """Tests of a store backend; a subclass provides the fixture ``place``: the location of a new, empty store.

    The location is opened through ``ChunkStore``, as users open it, so the package has to be installed for its
    scheme to be found. Search over the backend is tested by ``CandidateSourceContract``.

    Attributes:
        persistent: whether data are kept when a store is closed and opened again.
        several_processes: whether several processes may open the same location at once.
    """

    persistent = True
    several_processes = True

    # --- chunks -------------------------------------------------------------------------------------------

    def test_a_chunk_is_read_back_as_it_was_written(self, store: ChunkStore, open_store: OpenStore) -> None:
        """Every field is unchanged, for any text, in the store that wrote it and in one opened later."""
        made = [
            store.create_chunk(
                text,
                "decision",
                {"mood": "certain", "count": 3, "nested": {"list": [1, None, True]}},
                tags=["b", "a", "ä/ö"],
                confidence=0.25,
                conversation_id="conversation one",
                source="user",
                occurred_at="2026-01-31T23:59:59.123456Z",
                valid_from="2026-01-01",
                valid_to="2027-01-01",
                provenance={"path": "notes.md"},
            )
            for text in _TEXTS
        ]
        wanted = {chunk.id: chunk.to_dict() for chunk in made}
        assert len(wanted) == len(_TEXTS)
        assert {name: chunk.to_dict() for name, chunk in store.get_many(list(wanted)).items()} == wanted
        if self.persistent:
            later = open_store()
            assert {name: chunk.to_dict() for name, chunk in later.get_many(list(wanted)).items()} == wanted
        assert [chunk.content for chunk in store.iter_chunks()] == list(_TEXTS)

    def test_an_unknown_id_finds_nothing_and_an_invalid_one_is_refused(self, store: ChunkStore) -> None:
        """An unknown id yields an empty result; an invalid id is an error, and never reaches the backend."""
        unknown = "chunk-2026-01-01-00000000"
        assert store.get_chunk(unknown) is None
        assert store.update_chunk(unknown, content="x") is None
        assert not store.delete_chunk(unknown)
        assert not store.delete_chunk(unknown, permanent=True)
        assert store.restore_chunk(unknown) is None
        assert store.undo(unknown) is None
        assert not store.exists(unknown)
        assert not any((store.history(unknown), store.linked(unknown), store.summaries([unknown])))
        for bad in ("", "x", "chunk-../x", "chunk-a/b", "chunk-a\0", "chunk-" + "a" * 200):
            with pytest.raises(InvalidChunkId):
                store.get_chunk(bad)

    def test_an_id_is_taken_once(self, store: ChunkStore) -> None:
        """A second chunk with the same id is refused, even if the first one is archived; the first one is unchanged."""
        store.create_chunk("first", chunk_id="chunk-own")
        with pytest.raises(InvalidChunk):
            store.create_chunk("second", chunk_id="chunk-own")
        store.delete_chunk("chunk-own")
        with pytest.raises(InvalidChunk):
            store.create_chunk("third", chunk_id="chunk-own")
        restored = _present(store.restore_chunk("chunk-own"))
        assert restored.content == "first"

    def test_an_update_is_a_new_revision_and_the_former_one_is_kept(
        self, store: ChunkStore, moved_clock: MovedClock
    ) -> None:
        """History is complete and in order; undoing adds a revision; an update without effect adds none."""
        made = store.create_chunk("one", tags=["a"], metadata={"kept": 1})
        moved_clock.advance(hours=1)
        changed = _present(store.update_chunk(made.id, "two", metadata={"new": 2}, tags=["b"]))
        assert (changed.revision, changed.content, changed.tags) == (2, "two", ["b"])
        assert changed.metadata.extra == {"kept": 1, "new": 2}
        assert changed.metadata.created_at == made.metadata.created_at < changed.metadata.modified_at
        same = _present(store.update_chunk(made.id, "two"))
        assert same.revision == 2
        undone = _present(store.undo(made.id))
        assert (undone.revision, undone.content, undone.tags) == (3, "one", ["a"])
        versions = store.history(made.id)
        assert [(one.revision, one.chunk.content) for one in versions] == [(1, "one"), (2, "two"), (3, "one")]
        first = _present(store.undo(made.id, to_revision=2))
        assert (first.revision, first.content) == (4, "two")

    def test_a_stale_revision_is_refused(self, store: ChunkStore) -> None:
        """Compare and set: a caller with an older revision changes nothing."""
        made = store.create_chunk("one")
        store.update_chunk(made.id, "two", expected_revision=1)
        with pytest.raises(ConflictError):
            store.update_chunk(made.id, "three", expected_revision=1)
        now = _present(store.get_chunk(made.id))
        assert (now.content, now.revision) == ("two", 2)

    def test_deleting_archives_and_restoring_brings_back_the_same(self, store: ChunkStore) -> None:
        """An archived chunk is in no listing, count or search, and is restored with its links and tags."""
        kept, gone = (
            store.create_chunk("kept walnut"),
            store.create_chunk("gone walnut", tags=["t"], conversation_id="talk"),
        )
        store.add_link(gone.id, kept.id, "supports")
        before = _present(store.get_chunk(gone.id, track=False))
        assert store.delete_chunk(gone.id)
        assert not store.delete_chunk(gone.id)
        assert store.get_chunk(gone.id) is None
        assert store.list_chunks() == [kept.id]
        assert store.list_chunks(archived=True) == store.list_chunks(archived=True, tags=["t"]) == [gone.id]
        stats = store.get_stats()
        assert (store.tag_counts(), stats["chunk_count"], stats["conversations"]) == ([], 1, 0)
        assert [hit.chunk_id for hit in search(store, "walnut")] == [kept.id]
        archived = _present(store.get_archived(gone.id))
        assert archived.content == "gone walnut"
        restored = _present(store.restore_chunk(gone.id))
        assert restored.to_dict() == before.to_dict()
        assert store.restore_chunk(gone.id) is None
        assert (store.tag_counts(), store.get_stats()["chunk_count"]) == ([("t", 1)], 2)
        assert {hit.chunk_id for hit in search(store, "walnut")} == {kept.id, gone.id}

    def test_erasing_leaves_nothing(self, store: ChunkStore) -> None:
        """An erased chunk, active or archived, is removed with its versions and the links to it."""
        kept = store.create_chunk("kept")
        for archived_first in (False, True):
            gone = store.create_chunk(f"gone {archived_first}")
            store.update_chunk(gone.id, f"gone again {archived_first}")
            store.add_link(kept.id, gone.id, "supports")
            if archived_first:
                store.delete_chunk(gone.id)
            assert store.delete_chunk(gone.id, permanent=True)
            assert not store.delete_chunk(gone.id, permanent=True)
            assert store.history(gone.id) == []
            assert store.get_archived(gone.id) is None
            now = _present(store.get_chunk(kept.id))
            assert now.links == []
        assert store.list_chunks(archived=True) == []
        assert check(store) == []

    def test_erasing_in_a_batch_leaves_no_quotation(self, store: ChunkStore) -> None:
        """What quotes a chunk that a batch erases is erased after the commit, and not if the batch fails."""
        text = "The walnut in the yard was planted by the grandfather of the neighbour."
        gone = store.create_chunk(text)
        with store.files.transaction():
            store.files.write("personalities/MINE.md", f"# Mine\n\n{text}\n".encode())
        with pytest.raises(_Rollback), store.batch():
            store.delete_chunk(gone.id, permanent=True)
            raise _Rollback
        assert text.encode() in (store.files.read("personalities/MINE.md") or b"")
        with store.batch():
            assert store.delete_chunk(gone.id, permanent=True)
        found = [where for where, data in store.backend.stored_bytes([store.namespace]) if b"walnut" in data]
        assert found == []

    def test_reads_are_counted_and_are_no_change(self, store: ChunkStore, open_store: OpenStore) -> None:
        """A read increments the count, but changes neither revision nor history; counts survive closing the store."""
        made = store.create_chunk("read me")
        for _ in range(3):
            store.get_chunk(made.id)
        store.get_chunk(made.id, track=False)
        store.get_many([made.id])
        read = _present(store.get_chunk(made.id, track=False))
        assert (read.metadata.access_count, read.revision) == (3, 1)
        assert read.metadata.accessed_at > made.metadata.accessed_at
        assert len(store.history(made.id)) == 1
        if self.persistent:
            store.close()
            later = _present(open_store().get_chunk(made.id, track=False))
            assert later.metadata.access_count == 3

    # --- links --------------------------------------------------------------------------------------------

    def test_links_are_seen_from_both_ends(self, store: ChunkStore) -> None:
        """Links are listed from both ends, strongest first, by type; can be changed and removed; need a target."""
        hub, one, two = (store.create_chunk(name) for name in ("hub", "one", "two"))
        store.add_link(hub.id, one.id, "supports", 0.4, "since it says so")
        store.add_link(hub.id, two.id, "contradicts", 0.9)
        store.add_link(two.id, hub.id, "supports", 0.7)
        seen = [
            (link.chunk_id, link.type, link.strength, link.direction)
            for link in store.linked(hub.id, direction="both")
        ]
        assert seen == [
            (two.id, "contradicts", 0.9, "out"),
            (two.id, "supports", 0.7, "in"),
            (one.id, "supports", 0.4, "out"),
        ]
        assert [link.chunk_id for link in store.linked(hub.id, "supports")] == [one.id]
        assert [link.chunk_id for link in store.linked(one.id, direction="in")] == [hub.id]
        assert [link.chunk_id for link in store.linked(hub.id, direction="both", limit=1)] == [two.id]
        each = store.linked_of_each([one.id, hub.id, "chunk-nowhere"], direction="both")
        assert each == {chunk_id: store.linked(chunk_id, direction="both") for chunk_id in each}
        assert [len(links) for links in each.values()] == [1, 3, 0]
        store.add_link(hub.id, one.id, "supports", 1.0)
        now = _present(store.get_chunk(hub.id))
        assert [(link.target_id, link.strength) for link in now.links] == [(one.id, 1.0), (two.id, 0.9)]
        assert store.remove_link(hub.id, one.id) == 1
        assert store.remove_link(hub.id, one.id) == 0
        for source, target in ((hub.id, hub.id), (hub.id, "chunk-nowhere"), ("chunk-nowhere", hub.id)):
            with pytest.raises(InvalidLink):
                store.add_link(source, target, "supports")

    # --- listings -----------------------------------------------------------------------------------------

    def test_every_filter_restricts_and_the_order_is_that_of_time(
        self, store: ChunkStore, moved_clock: MovedClock
    ) -> None:
        """Filters by conversation, period, tags and type, alone and combined, in both orders, page by page."""
        made = []
        for number in range(12):
            moved_clock.advance(days=1)
            made.append(
                store.create_chunk(
                    f"number {number}",
                    "fact" if number % 2 else "note",
                    tags=[f"by-{n}" for n in (2, 3) if number % n == 0],
                    conversation_id="even" if number % 2 == 0 else None,
                    occurred_at="2025-06-01T10:00:00Z" if number == 11 else None,
                )
            )
        ids = [made[11].id, *(chunk.id for chunk in made[:11])]

        def numbers(**filters: Any) -> list[int]:
            at = {chunk.id: number for number, chunk in enumerate(made)}
            return [at[chunk_id] for chunk_id in store.list_chunks(**filters)]

        assert store.list_chunks() == ids
        assert store.list_chunks(newest_first=True) == ids[::-1]
        assert numbers(chunk_type="fact") == [11, 1, 3, 5, 7, 9]
        assert numbers(conversation_id="even") == [0, 2, 4, 6, 8, 10]
        assert numbers(tags=["by-2", "by-3"]) == [0, 6]
        assert numbers(any_tags=["by-2", "by-3"]) == [0, 2, 3, 4, 6, 8, 9, 10]
        assert numbers(end_date="2025-12-31") == [11]
        assert numbers(start_date="2026-02-12", end_date="2026-02-13") == [1, 2]
        assert numbers(start_date="2026-02-12", tags=["by-3"], chunk_type="fact", limit=1, offset=1) == [9]
        assert numbers(limit=0) == numbers(tags=["none"]) == numbers(conversation_id="'") == []
        paged: list[str] = []
        place = None
        while True:
            page, place = store.list_page(5, after=place)
            paged += page
            if len(paged) == 5:
                store.delete_chunk(paged[0])  # a page keeps its position during concurrent writes
            if place is None:
                break
        assert paged == ids

    def test_summaries_and_figures_come_from_the_index(
        self, store: ChunkStore, moved_clock: MovedClock
    ) -> None:
        """Timeline, newest, tags, conversations, neighbours and counts agree with the chunks."""
        made = []
        for number in range(6):
            moved_clock.advance(minutes=10)
            made.append(
                store.create_chunk(
                    f"said {number}", tags=["odd"] if number % 2 else [], conversation_id=f"c{number // 3}"
                )
            )
        ids = [chunk.id for chunk in made]
        assert [one.id for one in store.timeline()] == ids
        assert [one.id for one in store.latest(2)] == [ids[5], ids[4]]
        assert [one.id for one in store.latest(9, conversation_id="c0", tag="odd")] == [ids[1]]
        assert [one.id for one in store.summaries([ids[3], "chunk-nowhere", ids[0]])] == [ids[3], ids[0]]
        assert store.neighbours(ids[1]) == ([ids[0]], [ids[2]])
        assert store.neighbours(ids[3], 2, 9) == ([], [ids[4], ids[5]])
        alone = store.create_chunk("alone").id
        assert store.neighbours(alone) == ([], [])
        assert store.neighbours_of_each([ids[3], alone, ids[1]], 0, 1) == {
            ids[3]: ([], [ids[4]]), alone: ([], []), ids[1]: ([], [ids[2]]),
        }  # fmt: skip
        assert [one.id for one in store.timeline(start="2026-02-10T12:55:00Z", limit=1)] == [ids[5]]
        assert store.tag_counts() == [("odd", 3)]
        assert [(one.id, one.count) for one in store.conversations()] == [("c1", 3), ("c0", 3)]
        stats = store.get_stats()
        assert (stats["chunk_count"], stats["conversations"], stats["tags"]) == (7, 2, 1)
        assert stats["total_tokens"] == sum(chunk.tokens for chunk in store.iter_chunks())
        for chunk_id in ids[::2]:
            store.quarantine(chunk_id)
        hidden = store.get_stats()  # of what is stored
        assert (hidden["chunk_count"], hidden["conversations"]) == (7, 2) and len(store.list_chunks()) == 4
        for chunk_id in ids[::2]:
            store.release(chunk_id)
        assert store.find_same("said 2", "c0") == ids[2]
        assert store.find_same("said 2", "c1") is None
        assert store.find_normalised("SAID  2!") == [ids[2]]

    def test_the_dictionary_tells_older_terms_from_newer_ones(self, store: ChunkStore) -> None:
        """A term keeps its number, and a new one gets a higher one."""
        queries, place = store.backend.queries, store.namespace
        assert queries.terms_before(place, ["walnut"], queries.next_term(place)) == set()
        store.create_chunk("A walnut.")
        later = queries.next_term(place)
        store.create_chunk("A zebra and a walnut.")
        assert queries.terms_before(place, ["zebra", "walnut", "none"], later) == {"walnut"}
        assert queries.terms_before(place, ["zebra", "none"], queries.next_term(place)) == {"zebra"}

    # --- namespaces and transactions ----------------------------------------------------------------------

    def test_namespaces_are_isolated(self, open_store: OpenStore) -> None:
        """Content of one namespace is invisible to another: reads, lists, counts, links, files, events, search."""
        one, two = open_store(namespace="agent/one"), open_store(namespace="agent/two")
        own = one.create_chunk("the walnut secret", tags=["t"], conversation_id="c")
        one.backend.files("agent/one").write("system/own.md", b"own")
        assert two.get_chunk(own.id) is None
        assert two.update_chunk(own.id, "x") is None
        assert not two.delete_chunk(own.id, permanent=True)
        assert not any((two.list_chunks(), two.list_chunks(tags=["t"]), two.timeline(), two.linked(own.id)))
        assert not any((two.tag_counts(), two.conversations(), two.history(own.id)))
        assert two.find_same("the walnut secret", "c") is None
        assert one.backend.queries.any_term(one.namespace, ["zebra", "walnut"]) == "walnut"
        assert one.backend.queries.any_term(one.namespace, ["zebra"]) is None
        assert two.get_stats()["chunk_count"] == 0
        assert search(two, "walnut secret") == []
        assert list(two.events()) == []
        assert two.backend.files("agent/two").read("system/own.md") is None
        other = two.create_chunk("of two")
        for store, source, target in ((one, own, other), (two, other, own)):
            with pytest.raises(InvalidLink):
                store.add_link(source.id, target.id, "supports")
        assert sorted(one.namespaces()) == [("agent/one", 1), ("agent/two", 1)]
        assert one.list_chunks(namespace="agent/two") == [other.id]
        assert open_store().list_chunks() == []
        confined = open_store(namespace="agent/two", confined=True)
        assert confined.namespaces() == [("agent/two", 1)]
        with pytest.raises(NamespaceError):
            confined.list_chunks(namespace="agent/one")
        with pytest.raises(NamespaceError):
            confined.create_chunk("x", namespace="agent/one")

    def test_a_transaction_appears_whole_or_not_at_all(
        self, store: ChunkStore, open_store: OpenStore
    ) -> None:
        """A failed transaction leaves chunks, versions, links, archive, index and audit log unchanged; it can nest."""
        kept, gone = store.create_chunk("kept walnut", tags=["t"]), store.create_chunk("gone")
        store.add_link(kept.id, gone.id, "supports")
        before = _everything(store)
        version = store.backend.version(store.namespace)
        with pytest.raises(_Rollback), store.batch():
            made = store.create_chunk("made walnut")
            store.update_chunk(kept.id, "changed", tags=["u"])
            with store.batch():
                store.delete_chunk(gone.id)
            store.add_link(made.id, kept.id, "contradicts")
            assert store.backend.in_transaction
            assert store.exists(made.id)
            raise _Rollback
        assert not store.backend.in_transaction
        assert _everything(store) == before
        assert [hit.chunk_id for hit in search(store, "walnut")] == [kept.id]
        with store.batch():
            whole = [store.create_chunk(f"whole {number}").id for number in range(20)]
            within = store.backend.version(store.namespace)
            whole.append(store.create_chunk("whole too", conversation_id="known").id)
            assert version < within < (version := store.backend.version(store.namespace))
        assert set(store.list_chunks()) == {kept.id, gone.id, *whole}
        assert store.backend.version(store.namespace) == version
        drafts = [
            store.draft("new", {"tags": [], "conversation_id": talk}, {})
            for talk in ("known", "unknown", None)
        ]
        with store.backend.transaction(store.namespace) as transaction:
            assert transaction.expect(drafts) == {"unknown"}
        if self.several_processes:
            assert _everything(open_store()) == _everything(store)
        assert check(store) == []

    # --- the audit log ------------------------------------------------------------------------------------

    def test_the_audit_log_has_every_operation_in_order(self, store: ChunkStore) -> None:
        """Every operation on a chunk in order; filtered by operation and by chunk, and only the newest."""
        made = store.create_chunk("a")
        store.update_chunk(made.id, "b")
        store.delete_chunk(made.id)
        store.restore_chunk(made.id)
        store.undo(made.id)
        store.record_event("recall", [made.id], question="?")
        events = list(store.events(chunk_id=made.id))
        done = ["create", "update", "delete", "restore", "undo", "recall"]
        assert [event["op"] for event in events] == done
        assert [event["ts"] for event in events] == sorted(event["ts"] for event in events)
        assert [event["op"] for event in store.events(limit=2)] == done[-2:]
        assert [event["question"] for event in store.events(op="recall")] == ["?"]
        newest = _present(store.backend.latest_event(store.namespace, frozenset({"update", "delete"})))
        assert newest["op"] == "delete"
        store.delete_chunk(made.id, permanent=True)
        assert [event["op"] for event in store.events(chunk_id=made.id)] == ["erase"]

    # --- brain files --------------------------------------------------------------------------------------

    def test_files_are_kept_byte_for_byte(self, store: ChunkStore) -> None:
        """Files are written, read in part, created exclusively, appended, renamed, listed, compared, removed."""
        files = store.backend.files(store.namespace)
        name = "system/memory_log.md"
        assert (files.read(name), files.exists(name), files.signature(name)) == (None, False, None)
        data = bytes(range(256)) * 2000
        files.write(name, b"former")
        former = files.signature(name)
        files.write(name, data)
        assert files.read(name) == data
        assert files.signature(name) != former
        assert (files.read_from(name, len(data) - 3), files.read_from(name, -3)) == (data[-3:], data[-3:])
        assert files.create("system/review/case.json", b"{}")
        assert not files.create("system/review/case.json", b"other")
        for number in range(20):
            files.append("log/continuum.jsonl", f"line {number}\n".encode())
        log = _present(files.read("log/continuum.jsonl"))
        assert log.splitlines() == [f"line {number}".encode() for number in range(20)]
        files.rename("system/review/case.json", "system/review/done.json")
        assert files.names("system") == [name]
        assert files.names("system", recursive=True) == [name, "system/review/done.json"]
        assert dict(files.contents([name, "system/none.md"])) == {name: data}
        assert files.remove(name)
        assert not files.remove(name)

    # --- maintenance -------------------------------------------------------------------------------------------

    def test_a_sound_store_has_no_findings_and_a_rebuilt_index_answers_as_before(
        self, store: ChunkStore
    ) -> None:
        """Check, status, sync, checkpoint, vacuum and rebuild change nothing that a reader can see."""
        made = [store.create_chunk(f"walnut {number}", tags=["t"]) for number in range(10)]
        store.add_link(made[0].id, made[1].id, "supports")
        store.delete_chunk(made[2].id)
        store.update_chunk(made[3].id, "changed walnut")
        before = _everything(store)
        hits = search(store, "walnut", limit=20)
        assert len(hits) == 9
        assert check(store) == []
        store.sync(full=True)
        store.checkpoint()
        store.backend.vacuum(store.namespace)
        store.rebuild_index()
        assert _everything(store) == before
        assert search(store, "walnut", limit=20) == hits
        assert check(store) == []

    def test_chunks_with_former_versions_are_named(self, store: ChunkStore) -> None:
        """An erasure takes links out of former versions, and asks for the chunks that have any."""
        kept, changed = store.create_chunk("walnut"), store.create_chunk("hazel")
        store.update_chunk(changed.id, "changed hazel")
        named = store.backend.versioned(store.namespace)
        assert changed.id in named
        assert kept.id not in named

    def test_a_backup_holds_everything(
        self, store: ChunkStore, tmp_path: Path, moved_clock: MovedClock
    ) -> None:
        """A backup restored to a folder has equal chunks, archive, versions and files; so has a copy of it."""
        made = [store.create_chunk(f"number {number}", tags=["t"]) for number in range(4)]
        store.add_link(made[0].id, made[1].id, "supports")
        store.update_chunk(made[1].id, "changed")
        store.delete_chunk(made[2].id)
        store.backend.files(store.namespace).write("system/memory_log.md", b"kept")
        info = back_up(store, tmp_path / "whole.tar.gz")
        assert store.namespace in info.namespaces
        restore_backup(tmp_path / "whole.tar.gz", tmp_path / "restored")
        with ChunkStore(tmp_path / "restored" / "memory", clock=moved_clock) as restored:
            assert compare(store, restored) == []
            for chunk_id in store.list_chunks():
                store.delete_chunk(chunk_id, permanent=True)
            copy_namespace(restored, store, mirror=True)
            # The audit log of the store has since recorded the erasures above as well.
            assert [one for one in compare(store, restored) if one.what != "audit log"] == []

    def test_a_read_only_store_writes_nothing(self, store: ChunkStore, open_store: OpenStore) -> None:
        """Every write is refused, every read succeeds."""
        made = store.create_chunk("there")
        if not (self.persistent and self.several_processes):
            pytest.skip("this backend allows one store object for a place at a time")
        reader = open_store(read_only=True)
        assert reader.list_chunks() == [made.id]
        for write in (
            lambda: reader.create_chunk("x"),
            lambda: reader.update_chunk(made.id, "x"),
            lambda: reader.delete_chunk(made.id),
            lambda: reader.backend.files(reader.namespace).write("system/x.md", b"x"),
        ):
            with pytest.raises(StoreReadOnly):
                write()
        assert [(chunk.id, chunk.content) for chunk in store.iter_chunks()] == [(made.id, "there")]

    # --- several writers ----------------------------------------------------------------------------------

    def test_threads_share_a_store_and_lose_no_update(self, store: ChunkStore) -> None:
        """Reads and writes inside a transaction are atomic with respect to other threads."""
        made = store.create_chunk("0", metadata={"count": 0})

        def work(who: int) -> None:
            for number in range(10):
                with store.batch():
                    now = _present(store.get_chunk(made.id, track=False))
                    store.update_chunk(made.id, metadata={"count": now.metadata.extra["count"] + 1})
                store.create_chunk(f"{who} {number}")

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(work, range(4)))
        now = _present(store.get_chunk(made.id))
        assert (now.metadata.extra["count"], now.revision) == (40, 41)
        assert store.get_stats()["chunk_count"] == 41
        assert check(store) == []

    def test_processes_share_a_place_and_see_each_other(self, store: ChunkStore, place: Path | str) -> None:
        """No update of several processes is lost, and each write is visible to the next read of another process."""
        if not self.several_processes:
            pytest.skip("this backend allows one process at a place")
        made = store.create_chunk("0", metadata={"count": 0})
        script = """
            import sys
            from rlm_mem.store.core.chunk_store import ChunkStore
            with ChunkStore(sys.argv[1]) as store:
                for _ in range(10):
                    with store.batch():
                        count = store.get_chunk(sys.argv[2], track=False).metadata.extra["count"]
                        store.update_chunk(sys.argv[2], metadata={"count": count + 1})
        """
        started = [
            subprocess.Popen(
                [sys.executable, "-c", textwrap.dedent(script), str(place), made.id],
                stderr=subprocess.PIPE,
                text=True,
                env=dict(os.environ),
            )
            for _ in range(2)
        ]
        for process in started:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
        now = _present(store.get_chunk(made.id))
        assert (now.metadata.extra["count"], now.revision) == (20, 21)


def _present(value: _T | None) -> _T:
    assert value is not None
    return value


def _everything(store: ChunkStore) -> Any:
    """Return everything that a reader can see of a namespace, except access counts."""

    def plain(chunk: Chunk) -> dict[str, Any]:
        data = chunk.to_dict()
        for name in ("access_count", "accessed_at"):
            data["metadata"].pop(name, None)
        return data

    ids = store.list_chunks()
    return (
        [plain(chunk) for chunk in store.iter_chunks()],
        [plain(chunk) for chunk in store.iter_chunks(archived=True)],
        {chunk_id: [(one.revision, plain(one.chunk)) for one in store.history(chunk_id)] for chunk_id in ids},
        {chunk_id: store.linked(chunk_id, direction="both") for chunk_id in ids},
        store.tag_counts(),
        list(store.events()),
    )
