"""ChunkStore through its public interface: create, get, update, delete, restore, list."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import structs

from rlm_mem.chunk import Chunk, content_hash
from rlm_mem.config import Config
from rlm_mem.errors import (
    ConflictError,
    InputError,
    InvalidChunk,
    InvalidChunkId,
    InvalidLink,
    InvalidQuery,
    NamespaceError,
    RlmMemError,
)
from rlm_mem.ingest.remember import remember
from rlm_mem.interchange import import_source
from rlm_mem.search import search
from rlm_mem.store.core.chunk_store import ChunkStore, init_storage
from rlm_mem.store.core.contents import NamespaceWriter
from rlm_mem.store.core.integrity import check
from rlm_mem.store.core.joined_store import JoinedStore
from rlm_mem.store.local import local_backend
from rlm_mem.store.local.queries import find_rows
from tests.conftest import Clock
from tests.stored import stored


def test_the_documented_keywords_create_a_chunk(store: ChunkStore) -> None:
    chunk = store.create_chunk(
        content="User prefers Python over JavaScript",
        chunk_type="preference",
        conversation_id="conv-123",
        tokens=12,
        tags=["coding", "preferences"],
        confidence=0.95,
    )
    assert chunk.id.startswith("chunk-2026-02-10-")
    assert (chunk.type, chunk.tokens, chunk.tags) == ("preference", 12, ["coding", "preferences"])
    assert (chunk.metadata.conversation_id, chunk.metadata.confidence) == ("conv-123", 0.95)


def test_the_documented_positions_create_the_same_chunk(store: ChunkStore) -> None:
    chunk = store.create_chunk("User prefers tea", "preference", "conv-1", 4, ["drink"], 0.9)
    assert (chunk.metadata.conversation_id, chunk.tokens, chunk.tags, chunk.metadata.confidence) == (
        "conv-1", 4, ["drink"], 0.9,
    )  # fmt: skip


def test_the_second_documented_signature_creates_a_chunk(store: ChunkStore) -> None:
    first = store.create_chunk("The build runs on two cores.", "fact")
    chunk = store.create_chunk(
        "We decided to split the suite.",
        "decision",
        {"confidence": 0.8, "conversation_id": "c", "ticket": 7},
        [{"target_id": first.id, "type": "supports", "strength": 0.9}],
        ["ci"],
    )
    assert chunk.metadata.extra == {"ticket": 7}
    assert chunk.metadata.conversation_id == "c"
    assert [(link.target_id, link.type, link.strength) for link in chunk.links] == [
        (first.id, "supports", 0.9)
    ]


def test_the_keyword_type_is_accepted(store: ChunkStore) -> None:
    chunk = store.create_chunk(content="Decision: x\nRationale: y", type="decision", tags=["decision", "p"])
    assert chunk.type == "decision"


def test_one_field_given_twice_with_different_values_is_refused(store: ChunkStore) -> None:
    with pytest.raises(ValueError, match="given twice"):
        store.create_chunk("text", "fact", {"confidence": 0.5}, confidence=0.6)
    with pytest.raises(ValueError, match="given twice"):
        store.create_chunk("text", "fact", type="note")
    assert store.list_chunks() == []


def test_a_chunk_is_read_back_as_it_was_written(store: ChunkStore) -> None:
    made = store.create_chunk(
        "Zażółć gęślą jaźń 漢字 🦀\r\n\ttext", tags=["ü"], metadata={"deep": {"a": [1, None]}}
    )
    read = store.get_chunk(made.id, track=False)
    assert read == made


@pytest.mark.local_only("look at files")
def test_the_file_is_canonical_json_in_its_month_folder(store: ChunkStore, base: Path) -> None:
    chunk = store.create_chunk("text", conversation_id="c", tags=["b", "a", "b"])
    path = base / "chunks" / "2026-02" / f"{chunk.id}.json"
    text = path.read_text(encoding="utf-8")
    data = json.loads(text)
    assert list(data) == [
        "schema",
        "id",
        "revision",
        "content",
        "tokens",
        "type",
        "metadata",
        "links",
        "tags",
    ]
    assert data["schema"] == "2.0"
    assert data["tags"] == ["b", "a"]
    assert text == json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def test_reads_are_counted_and_never_rewrite_a_file(store: ChunkStore, base: Path | str) -> None:
    chunk = store.create_chunk("text")
    before = stored(base)
    for _ in range(5):
        store.get_chunk(chunk.id)
    read = store.get_chunk(chunk.id)
    assert read is not None
    assert read.metadata.access_count == 6
    assert stored(base) == before


def test_counted_reads_survive_closing_and_reach_the_file_at_checkpoint(base: Path | str) -> None:
    with ChunkStore(base) as store:
        chunk = store.create_chunk("text")
        for _ in range(3):
            store.get_chunk(chunk.id)
    with ChunkStore(base) as store:
        read = store.get_chunk(chunk.id, track=False)
        assert read is not None
        assert read.metadata.access_count == 3
        assert store.delete_chunk(chunk.id)
        store.rebuild_index()
        restored = store.restore_chunk(chunk.id)
        assert restored is not None and restored.metadata.access_count == 3, "also through the archive"
        store.checkpoint()
        if isinstance(base, Path):
            path = next((base / "chunks").rglob("*.json"))
            assert json.loads(path.read_bytes())["metadata"]["access_count"] == 3
            assert json.loads(path.read_bytes())["revision"] == 1


@pytest.mark.parametrize(
    "bad",
    ["../../etc/passwd", "chunk-../x", "chunk-a/b", "chunk-a\\b", "chunk-\x00", "", "chunk-", "chunk-" + "a" * 200,
     "CHUNK-abc", "chunk-é", "chunk-a.json", None, 7, b"chunk-a"],
)  # fmt: skip
def test_ids_outside_the_whitelist_are_refused_everywhere(
    store: ChunkStore, base: Path | str, bad: object
) -> None:
    before = stored(base)
    for call in (store.get_chunk, store.update_chunk, store.delete_chunk, store.restore_chunk, store.history):
        with pytest.raises(InvalidChunkId):
            call(bad)  # type: ignore[arg-type]
    if bad is not None:
        with pytest.raises(InvalidChunkId):
            store.create_chunk("text", chunk_id=bad)  # type: ignore[arg-type]
    assert stored(base) == before


def test_the_two_forms_of_an_accented_letter_are_one_tag(store: ChunkStore) -> None:
    composed, decomposed = "café", "cafe\u0301"
    first = store.create_chunk("Dana likes the one at the harbour.", tags=[decomposed, composed])
    second = store.create_chunk("Ben likes the one at the station.", tags=["tea"])
    store.update_chunk(second.id, tags=[decomposed])
    assert store.get_many([first.id])[first.id].tags == [composed]
    assert store.get_stats()["tags"] == 1
    for form in (composed, decomposed):
        assert store.list_chunks(tags=form) == [first.id, second.id]
        assert store.list_chunks(any_tags=[form, "x"]) == [first.id, second.id]
        hits = search(store, "likes the one", filters={"tags_all": form})
        assert {hit.chunk_id for hit in hits} == {first.id, second.id}
    assert store.list_chunks(tags="Café") == []


def test_update_merges_metadata_and_replaces_tags_and_links(store: ChunkStore, clock: Clock) -> None:
    a = store.create_chunk("a", tags=["x"], metadata={"one": 1, "two": 2})
    b = store.create_chunk("b")
    store.add_link(a.id, b.id, "supports")
    clock.advance(hours=1)
    updated = store.update_chunk(a.id, metadata={"two": 3, "source": "import"}, tags=["y"], links=[])
    assert updated is not None
    assert updated.metadata.extra == {"one": 1, "two": 3}
    assert updated.metadata.source == "import"
    assert (updated.tags, updated.links) == (["y"], [])
    assert updated.metadata.modified_at > updated.metadata.created_at
    assert store.list_chunks(tags=["x"]) == []
    assert store.list_chunks(tags=["y"]) == [a.id]


def test_update_of_content_recounts_tokens_and_hash(store: ChunkStore) -> None:
    chunk = store.create_chunk("one two three")
    updated = store.update_chunk(chunk.id, content="one two three four five six seven")
    assert updated is not None
    assert updated.tokens > chunk.tokens
    assert updated.metadata.content_hash != chunk.metadata.content_hash


def test_an_update_that_changes_nothing_writes_nothing(store: ChunkStore, base: Path | str) -> None:
    chunk = store.create_chunk("text", tags=["a"], confidence=0.5)
    before = stored(base)
    same = store.update_chunk(chunk.id, content="text", tags=["a"], confidence=0.5)
    assert same is not None
    assert same.revision == 1
    assert stored(base) == before


def test_soft_delete_moves_to_the_archive_and_restore_brings_it_back_unchanged(
    store: ChunkStore, base: Path | str
) -> None:
    chunk = store.create_chunk("text", tags=["a"], conversation_id="c")
    before = stored(base)
    assert store.delete_chunk(chunk.id) is True
    assert store.get_chunk(chunk.id) is None
    assert (
        store.list_chunks() == store.list_chunks(tags=["a"]) == store.list_chunks(conversation_id="c") == []
    )
    assert store.list_chunks(archived=True) == store.list_chunks(archived=True, tags=["a"]) == [chunk.id]
    assert store.list_chunks(archived=True, tags=["b"]) == []
    assert store.list_chunks(archived=True, tags=["a"], origin=chunk.metadata.origin) == [chunk.id]
    assert store.list_chunks(archived=True, tags=["a"], origin="web") == []
    assert list(stored(base)) == [f"archive/{chunk.id}.json"]
    assert store.delete_chunk(chunk.id) is False
    restored = store.restore_chunk(chunk.id)
    assert restored is not None
    assert stored(base) == before
    assert store.list_chunks(tags=["a"]) == [chunk.id]


def test_permanent_delete_removes_the_file_its_versions_and_links_to_it(
    store: ChunkStore, base: Path | str
) -> None:
    a, b = store.create_chunk("a"), store.create_chunk("b")
    store.add_link(b.id, a.id, "supports")
    store.update_chunk(a.id, content="a changed")
    assert store.delete_chunk(a.id, permanent=True) is True
    assert not [name for name in stored(base) if a.id in name]
    left = store.get_chunk(b.id)
    assert left is not None
    assert left.links == []
    assert store.delete_chunk(a.id, permanent=True) is False


def test_stats_count_what_is_there(store: ChunkStore) -> None:
    chunk = store.create_chunk("one two three", "fact", tags=["x", "y"], conversation_id="c")
    store.create_chunk("four five", "note", tags=["x"])
    gone = store.create_chunk("six", "note")
    store.delete_chunk(gone.id)
    stats = store.get_stats()
    assert (stats["chunk_count"], stats["archived_count"], stats["conversations"], stats["tags"]) == (
        2,
        1,
        1,
        2,
    )
    assert stats["by_type"] == {"fact": 1, "note": 1}
    assert stats["total_tokens"] == chunk.tokens + 2
    assert stats["storage_size_mb"] > 0


def test_a_batch_appears_whole_or_not_at_all(store: ChunkStore, base: Path | str) -> None:
    kept = store.create_chunk("kept", tags=["t"])
    before = stored(base)
    with pytest.raises(RuntimeError, match="stop"), store.batch():
        store.create_chunk("lost", tags=["t"])
        store.update_chunk(kept.id, confidence=0.1)
        store.delete_chunk(kept.id)
        raise RuntimeError("stop")
    assert stored(base) == before
    assert store.list_chunks(tags=["t"]) == [kept.id]
    with store.batch():
        first = store.create_chunk("first", tags=["t"])
        read = store.get_chunk(first.id)
        assert read is not None
        assert read.content == "first"
        store.update_chunk(first.id, content="first, changed")
        store.add_link(first.id, kept.id, "supports")
    final = store.get_chunk(first.id)
    assert final is not None
    assert (final.content, final.revision, len(final.links)) == ("first, changed", 3, 1)
    assert not isinstance(base, Path) or list((base / ".tmp").iterdir()) == []


def test_a_chunk_made_and_deleted_in_one_batch_ends_in_the_archive(store: ChunkStore) -> None:
    with store.batch():
        soft = store.create_chunk("soft")
        hard = store.create_chunk("hard")
        store.delete_chunk(soft.id)
        store.delete_chunk(hard.id, permanent=True)
    assert store.list_chunks() == []
    assert store.list_chunks(archived=True) == [soft.id]
    assert store.restore_chunk(soft.id) is not None
    assert store.restore_chunk(hard.id) is None


def test_a_chunk_restored_and_changed_in_one_batch_ends_as_changed(store: ChunkStore) -> None:
    chunk = store.create_chunk("before")
    store.delete_chunk(chunk.id)
    with store.batch():
        store.restore_chunk(chunk.id)
        store.update_chunk(chunk.id, content="after")
    read = store.get_chunk(chunk.id)
    assert read is not None
    assert (read.content, read.revision) == ("after", 2)
    assert [version.chunk.content for version in store.history(chunk.id)] == ["before", "after"]


def test_a_chunk_changed_and_archived_in_one_batch_keeps_its_former_version(store: ChunkStore) -> None:
    chunk = store.create_chunk("before")
    with store.batch():
        store.update_chunk(chunk.id, content="after")
        store.delete_chunk(chunk.id)
    assert store.get_archived(chunk.id) is not None
    assert [one.chunk.content for one in store.history(chunk.id)] == ["before", "after"]
    with store.batch():
        store.restore_chunk(chunk.id)
        store.update_chunk(chunk.id, content="later")
        store.delete_chunk(chunk.id)
        store.restore_chunk(chunk.id)
    assert [one.chunk.content for one in store.history(chunk.id)] == ["before", "after", "later"]
    assert check(store) == []


def test_an_undo_within_a_batch_finds_the_version_before_the_batch(store: ChunkStore) -> None:
    first, second = (store.create_chunk("before").id for _ in range(2))
    store.delete_chunk(second)
    with store.batch():
        store.update_chunk(first, content="after")
        assert [one.chunk.content for one in store.history(first)] == ["before", "after"]
        assert cast(Chunk, store.undo(first)).content == "before"
        store.restore_chunk(second)
        store.update_chunk(second, content="after")
        assert cast(Chunk, store.undo(second, to_revision=1)).content == "before"
    assert [cast(Chunk, store.get_chunk(one)).content for one in (first, second)] == ["before"] * 2
    assert check(store) == []


def test_no_version_of_a_restored_chunk_keeps_the_link_to_an_erased_one(store: ChunkStore) -> None:
    target = store.create_chunk("The harbour has two cranes.")
    chunk = store.create_chunk("One of them is new.")
    store.add_link(chunk.id, target.id, "supports")
    store.delete_chunk(chunk.id)
    store.delete_chunk(target.id, permanent=True)
    restored = store.restore_chunk(chunk.id)
    assert restored is not None and (restored.revision, restored.links) == (3, [])
    assert [(one.revision, len(one.chunk.links)) for one in store.history(chunk.id)] == [
        (1, 0),
        (2, 0),
        (3, 0),
    ]
    assert check(store) == []


def test_history_keeps_every_version_and_undo_loses_nothing(store: ChunkStore) -> None:
    chunk = store.create_chunk("first", confidence=0.5)
    store.update_chunk(chunk.id, content="second")
    store.update_chunk(chunk.id, content="third")
    assert [(v.revision, v.chunk.content) for v in store.history(chunk.id)] == [
        (1, "first"), (2, "second"), (3, "third"),
    ]  # fmt: skip
    undone = store.undo(chunk.id)
    assert undone is not None
    assert (undone.content, undone.revision) == ("second", 4)
    first = store.undo(chunk.id, to_revision=1)
    assert first is not None
    assert (first.content, first.revision) == ("first", 5)
    assert [version.chunk.content for version in store.history(chunk.id)] == [
        "first", "second", "third", "second", "first",
    ]  # fmt: skip
    assert store.undo(chunk.id, to_revision=99) is None


def test_former_versions_are_bounded_by_configuration(base: Path | str) -> None:
    from rlm_mem.config import Config

    with ChunkStore(base, config=Config.load(store={"keep_versions": 2})) as store:
        chunk = store.create_chunk("0")
        for number in range(1, 6):
            store.update_chunk(chunk.id, content=str(number))
        assert [version.chunk.content for version in store.history(chunk.id)] == ["3", "4", "5"]


@pytest.mark.parametrize(
    ("link_type", "strength"),
    [
        ("no_such", 0.5),
        ("supports", 1.5),
        ("supports", -0.1),
        ("supports", float("nan")),
        ("supports", "x"),
        (None, 0.5),
    ],
)
def test_bad_links_are_refused(
    store: ChunkStore, base: Path | str, link_type: object, strength: object
) -> None:
    a, b = store.create_chunk("a"), store.create_chunk("b")
    before = stored(base)
    with pytest.raises(InvalidLink):
        store.add_link(a.id, b.id, link_type, strength)  # type: ignore[arg-type]
    with pytest.raises(InvalidLink):
        store.create_chunk("c", links=[{"target_id": b.id, "type": link_type, "strength": strength}])
    assert stored(base) == before


def test_links_to_nowhere_or_to_itself_are_refused(store: ChunkStore) -> None:
    a = store.create_chunk("a")
    with pytest.raises(InvalidLink, match="no chunk"):
        store.add_link(a.id, "chunk-2026-02-10-00000000", "supports")
    with pytest.raises(InvalidLink, match="itself"):
        store.add_link(a.id, a.id, "supports")
    wrong: Any
    for wrong in (["x"], {}, None, 3, "x"):
        for one, other in ((wrong, a.id), (a.id, wrong)):
            with pytest.raises(RlmMemError):
                store.add_link(one, other, "supports")
    with pytest.raises(InvalidLink, match="no chunk"):
        store.create_chunk("c", links=[{"target_id": "chunk-2026-02-10-00000000", "type": "supports"}])


def test_a_link_that_closes_a_circle_of_an_order_is_refused(store: ChunkStore) -> None:
    from rlm_mem.chunk import ORDERED_LINK_TYPES

    ids = [store.create_chunk(text).id for text in "abcd"]
    for kind in ORDERED_LINK_TYPES:
        for one, other in pairwise(ids):
            store.add_link(one, other, kind)
        before = store.history(ids[3])
        with pytest.raises(InvalidLink, match=r"cycle|replaced by it"):
            store.add_link(ids[3], ids[0], kind)
        with pytest.raises((InvalidLink, ConflictError), match=r"cycle|replaced by"):
            store.update_chunk(ids[3], links=[{"target_id": ids[1], "type": kind}])
        assert store.history(ids[3]) == before
    with pytest.raises(InvalidLink, match="cycle"), store.batch():
        store.add_link(store.create_chunk("e").id, ids[0], "follows")
        store.add_link(ids[3], store.latest(1)[0].id, "follows")
    # An earlier state comes back only where it closes none; what is in the archive may come back.
    store.remove_link(ids[2], ids[3], "follows")
    store.delete_chunk(ids[1])
    with pytest.raises(InvalidLink, match=f"cycle: {ids[2]} → {ids[0]} → {ids[1]} → {ids[2]}"):
        store.add_link(ids[2], ids[0], "follows")
    assert store.add_link(ids[3], ids[2], "follows")
    with pytest.raises(InvalidLink, match="cycle"):
        store.undo(ids[2])
    assert store.add_link(ids[3], ids[0], "context_of"), "of no order"
    assert check(store) == []


def test_custom_types_are_accepted_when_registered_and_their_fields_checked(base: Path | str) -> None:
    types = {
        "api_endpoint": {
            "description": "",
            "required_fields": ["method", "path"],
            "optional_fields": ["auth"],
        }
    }
    with ChunkStore(base, chunk_types=types, link_types={"implements": ""}) as store:
        with pytest.raises(InputError, match="needs the metadata fields path"):
            store.create_chunk("GET", "api_endpoint", {"method": "GET"})
        a = store.create_chunk("GET /x", "api_endpoint", {"method": "GET", "path": "/x"})
        b = store.create_chunk("the handler")
        assert store.add_link(b.id, a.id, "implements")
    with ChunkStore(base) as store:
        assert store.get_chunk(a.id) is not None
        with pytest.raises(InputError, match="unknown chunk type"):
            store.create_chunk("GET /y", "api_endpoint", {"method": "GET", "path": "/y"})


@pytest.mark.parametrize("bad", ["", "/", "a//b", "../x", "a/..", "a b", "*", "ä", "a" * 300, 7, ".hidden"])
def test_malformed_namespaces_are_refused(base: Path | str, bad: object) -> None:
    with pytest.raises(NamespaceError):
        ChunkStore(base, namespace=bad)  # type: ignore[arg-type]


def test_the_audit_log_holds_every_operation(store: ChunkStore, base: Path | str) -> None:
    chunk = store.create_chunk("a")
    store.update_chunk(chunk.id, content="b")
    store.delete_chunk(chunk.id)
    store.restore_chunk(chunk.id)
    store.undo(chunk.id)
    store.record_event("recall", [chunk.id], question="?")
    events = list(store.events(chunk_id=chunk.id))
    assert [event["op"] for event in events] == ["create", "update", "delete", "restore", "undo", "recall"]
    assert events[1]["before"] == events[0]["after"] != events[1]["after"]
    assert [event["op"] for event in store.events(op="update")] == ["update"]
    if isinstance(base, Path):
        logs = [base / "log" / name for name in ("2026-02.jsonl", "reads-2026-02.jsonl")]
        assert [len(log.read_text().splitlines()) for log in logs] == [len(events) - 1, 1]
    store.delete_chunk(chunk.id, permanent=True)
    assert [event["op"] for event in store.events(chunk_id=chunk.id)] == ["erase"]
    assert [event.get("erased", False) for event in store.events()] == [True] * 6 + [False]


@pytest.mark.local_only("look at files")
def test_checkpoint_writes_the_three_views(store: ChunkStore, base: Path) -> None:
    a, b = store.create_chunk("a", tags=["x"]), store.create_chunk("b", tags=["x"])
    store.add_link(a.id, b.id, "supports")
    store.checkpoint()
    metadata, tags, graph = (
        json.loads((base / "index" / name).read_text())
        for name in ("metadata_index.json", "tag_index.json", "link_graph.json")
    )
    assert set(metadata) == {a.id, b.id}
    assert tags == {"x": [a.id, b.id]}
    assert graph == {a.id: {"supports": {b.id: 0.5}}}


def test_init_storage_makes_the_folders(tmp_path: Path) -> None:
    with init_storage(str(tmp_path / "m")) as store:
        assert isinstance(store, ChunkStore)
    assert (tmp_path / "m" / "chunks").is_dir()
    assert (tmp_path / "m" / "index").is_dir()
    assert (tmp_path / "m" / "archive").is_dir()


def test_of_equally_strong_links_the_newest_comes_first(store: ChunkStore) -> None:
    hub, *others = (store.create_chunk(f"Memory {number}.").id for number in range(4))
    for other in others:  # each a millisecond after the one before
        store.add_link(hub, other, "supports", 0.5)
    store.add_link(others[0], hub, "contradicts", 0.9)
    assert [link.chunk_id for link in store.linked(hub, direction="both")] == [others[0], *reversed(others)]


def test_the_last_day_of_the_year_9999_is_listed_whole(store: ChunkStore) -> None:
    last = store.create_chunk("the end", occurred_at="9999-12-31T23:59:59.5Z")
    assert store.list_chunks(start_date="9999-12-31", end_date="9999-12-31") == [last.id]
    assert store.list_chunks(end_date="9999-12-30") == []


@pytest.mark.local_only("reads statements of SQLite")
def test_all_chunks_of_one_call_are_looked_up_in_one_statement(store: ChunkStore) -> None:
    ids = [store.create_chunk(f"Memory {number}.").id for number in range(4)]
    asked: list[str] = []
    backend: Any = store.backend
    backend.connection.set_trace_callback(asked.append)
    found = store.get_many([ids[2], "chunk-2026-02-10-00000000", ids[0], ids[3], ids[2]])
    backend.connection.set_trace_callback(None)
    assert list(found) == [ids[2], ids[0], ids[3]]
    assert [found[one].content for one in found] == ["Memory 2.", "Memory 0.", "Memory 3."]
    assert len([statement for statement in asked if " FROM chunks " in statement]) == 1


@pytest.mark.local_only("moves files")
def test_a_chunk_that_another_process_moves_while_it_is_read_is_looked_up_again(
    store: ChunkStore, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [store.create_chunk(f"Memory {number}.").id for number in range(3)]
    looked_up: list[list[str]] = []

    def before_a_move(connection: Any, chunk_ids: list[str], namespace: str) -> dict[str, Any]:
        rows = find_rows(connection, chunk_ids, namespace)
        looked_up.append(chunk_ids)
        if len(looked_up) == 1:
            rows[ids[1]] = structs.replace(rows[ids[1]], path=f"chunks/before/{ids[1]}.json")
            with ChunkStore(base) as other:
                assert other.delete_chunk(ids[0])
        return rows

    monkeypatch.setattr(local_backend, "find_rows", before_a_move)
    assert list(store.get_many(ids)) == ids[1:]
    assert [set(one) for one in looked_up] == [set(ids), set(ids[:2])]


@pytest.mark.parametrize("wrong", ["3", -1, True])
def test_two_namespaces_read_together_refuse_what_one_refuses(store: ChunkStore, wrong: Any) -> None:
    store.create_chunk("A gate.", tags=["green"])
    together = JoinedStore(store, store.confined_to("shared", actor=None))
    for one in (store, together):
        with pytest.raises(InvalidQuery, match="limit must be a whole number"):
            one.list_chunks(limit=wrong)
        with pytest.raises(InvalidQuery, match="offset must be a whole number"):
            one.list_chunks(offset=wrong)
        with pytest.raises(InvalidQuery, match="limit must be a whole number"):
            one.tag_counts(wrong)


def test_two_namespaces_read_together_yield_the_chunks_of_both_in_order(store: ChunkStore) -> None:
    other = store.confined_to("shared", actor=None)
    with store.batch(), other.batch():
        made = [
            (other if number % 3 else store).create_chunk(f"Gate {number}.", tags=["green"]).id
            for number in range(250)
        ]
    store.delete_chunk(made[0])
    other.delete_chunk(made[1])
    together = JoinedStore(store, other)
    assert [chunk.id for chunk in together.iter_chunks()] == made[2:]
    assert [chunk.id for chunk in together.iter_chunks(limit=3, offset=1)] == made[3:6]
    assert [one.id for one in together.summaries(made[:1:-1])] == made[:1:-1]
    assert list(together.get_many(made[:1:-1])) == made[:1:-1]
    assert [chunk.id for chunk in together.iter_chunks(archived=True, tags=["green"])] == [made[0]]
    assert [chunk.id for chunk in together.iter_chunks(namespace=store.namespace)] == made[3::3]


def test_a_chunk_that_could_not_be_read_again_is_refused(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that is below limits of its own may be too much for a file: what was acknowledged would be missing then."""
    kept = store.create_chunk("text")
    monkeypatch.setattr("rlm_mem.chunk.MAX_FILE_BYTES", 10_000)
    for write in (
        lambda: store.create_chunk("more", metadata={"table": "x" * 10_000}),
        lambda: store.update_chunk(kept.id, metadata={"table": "x" * 10_000}),
    ):
        with pytest.raises(InvalidChunk, match=r"bytes, of which 10,000 can be read"):
            write()
    assert (
        store.list_chunks() == [kept.id]
        and store.get_chunk(kept.id, track=False) == kept
        and check(store) == []
    )


def test_metadata_has_a_limit_and_what_is_beyond_it_stays_readable(
    store: ChunkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_mem.chunk.types.MAX_DATA_BYTES", 10_000)
    table, kept = ["pear"] * 2_000, store.create_chunk("text", metadata={"first": "x" * 6_000})
    deep: dict[str, Any] = {}
    for _ in range(40):
        deep = {"in": deep}
    for write in (
        lambda: store.create_chunk("more", metadata={"table": table}),
        lambda: store.create_chunk("more", provenance={"table": table}),
        lambda: store.update_chunk(kept.id, metadata={"second": "x" * 6_000}),  # together too large
        lambda: remember(store, "more", metadata={"table": table}),
    ):
        with pytest.raises(InvalidChunk, match=r"has 1\d,\d\d\d bytes of JSON: at most 10,000 are stored"):
            write()
    with pytest.raises(InvalidChunk, match="more than 32 levels"):
        store.update_chunk(kept.id, metadata=deep)
    assert store.list_chunks() == [kept.id] and store.get_chunk(kept.id, track=False) == kept

    former = Chunk.from_dict({**kept.to_dict(), "id": "chunk-former", "content": "written before"})
    former.metadata.extra = {"table": table, "note": "long"}
    former.metadata.content_hash = content_hash(former.content)
    NamespaceWriter(store).put(former, 0)
    assert store.get_chunk(former.id, track=False) == former
    changed = store.update_chunk(former.id, tags=["old"], metadata={"note": None})  # it becomes smaller
    assert changed is not None and changed.metadata.extra == {"table": table}
    with pytest.raises(InvalidChunk, match="bytes of JSON"):
        store.update_chunk(former.id, metadata={"note": "longer"})

    file = tmp_path / "in.jsonl"
    entries = [changed.to_dict() | {"id": "chunk-too-large"}, kept.to_dict() | {"id": "chunk-small"}]
    file.write_text("".join(json.dumps(one) + "\n" for one in entries), encoding="utf-8")
    report = import_source(store, file, duplicates=True)
    assert report.created == 1 and store.exists("chunk-small")
    assert ["bytes of JSON" in one.reason for one in report.problems] == [True]


def test_every_read_is_in_the_audit_log_where_the_settings_say_so(base: Path | str) -> None:
    config = Config.load(None, environ={}, store={"audit_reads": True})
    with ChunkStore(base, config=config, actor="Ana") as store:
        made = store.create_chunk("The quince blooms.")
        store.get_chunk(made.id)
        store.get_chunk(made.id, track=False)
        found = store.backend.read_events(namespace=store.namespace, since=None, op="read", chunk_id=None)
        assert [(one["chunk_ids"], one["actor"]) for one in found] == [([made.id], "Ana")]


def test_a_change_that_contradicts_itself_or_links_to_nothing_is_refused(store: ChunkStore) -> None:
    made = store.create_chunk("The quince blooms.", metadata={"valid_from": "2026-03-01"})
    gone = "chunk-2026-02-10-00000000"
    with pytest.raises(InvalidChunk, match="extra must be a dict"):
        store.update_chunk(made.id, metadata={"extra": 5})
    with pytest.raises(InvalidChunk, match="is after valid_to"):
        store.update_chunk(made.id, metadata={"valid_to": "2026-02-01"})
    with pytest.raises(InvalidLink, match="cannot link to itself"):
        store.update_chunk(made.id, links=[{"target_id": made.id, "type": "supports", "strength": 1.0}])
    with pytest.raises(InvalidLink, match=f"no chunk {gone} to link"):
        store.add_link(made.id, gone, "supports", 0.5)
    with pytest.raises(InvalidLink, match=f"no chunk {gone} to replace"):
        store.create_chunk("text", links=[{"target_id": gone, "type": "supersedes", "strength": 1.0}])
    assert [one.to_dict() for one in store.iter_chunks()] == [made.to_dict()]


@pytest.mark.parametrize("newest_first", [False, True])
def test_pages_of_joined_namespaces_leave_out_no_chunk_of_the_same_time(
    store: ChunkStore, newest_first: bool
) -> None:
    other = store.confined_to("shared", actor=None)
    for number in range(3):
        for part in (store, other):
            part.create_chunk(f"Note {number} of {part.namespace}.", occurred_at="2026-01-01")
    joined, listed, after = JoinedStore(store, other), list[str](), None
    while len(listed) < 6:
        page, after = joined.list_page(1, after=after, newest_first=newest_first)
        listed += page
        if after is None:
            break
    assert listed == joined.list_chunks(newest_first=newest_first)
    assert len(listed) == 6


def test_joined_namespaces_have_the_chunks_versions_and_conversations_of_both(store: ChunkStore) -> None:
    other = store.confined_to("shared", actor=None)
    own = store.create_chunk("The quince blooms.", conversation_id="orchard")
    gone = store.create_chunk("The pear is gone.", conversation_id="orchard")
    shared = other.create_chunk("The apple blooms.", conversation_id="market")
    store.create_chunk("The quince is ripe.", conversation_id="orchard")
    store.delete_chunk(gone.id)
    other.update_chunk(shared.id, "The apple is ripe.")
    joined = JoinedStore(store, other)
    assert [joined.exists(one) for one in (own.id, shared.id, gone.id)] == [True, True, False]
    assert [len(joined.history(one)) for one in (own.id, shared.id, "chunk-2026-02-10-00000000")] == [1, 2, 0]
    assert [one.id for one in joined.conversations()] == ["orchard", "market"]
    assert [one.id for one in joined.conversations(1)] == ["orchard"]
    assert [place[0] for place in joined.places(None, archived=True)] == [gone.id]
