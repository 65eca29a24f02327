"""A namespace copied from one store to another holds the same, whatever kind the two are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.errors import ConflictError, InputError
from rlm_mem.ingest.remember import RememberOperation
from rlm_mem.search import search
from rlm_mem.store.core.changes import UNDO
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.copying import compare, copy_namespace
from tests.conftest import Clock
from tests.postgres import Databases
from tests.typed import present

QUESTION = "Which train did Dana take to Ghent?"


def fill(store: ChunkStore) -> list[str]:
    """Chunks of every state: plain, revised, linked, archived, with odd characters; and files beside them."""
    remember = RememberOperation(store).remember
    ids: list[str] = []
    for number in range(12):
        text = f"Dana: I took train {number} to Ghent.\nLee: The {number}th of March, was it?\x00 …\u2028end"
        ids += remember(text, "trip" if number % 3 else None, tags=["travel", f"n{number}"])["chunk_ids"]
    for chunk_id in ids[:3]:
        store.update_chunk(chunk_id, f"Dana changed trains {chunk_id[-4:]}.")
    store.update_chunk(ids[0], tags=["once", "more"])
    store.add_link(ids[4], ids[5], "supports", 0.7, "said \x00 both")
    store.delete_chunk(ids[6])
    store.delete_chunk(ids[1])
    store.get_chunk(ids[7])
    store.backend.files(store.namespace).write("workspace/state/plan.md", b"# Plan\n")
    store.backend.files(store.namespace).append("log/continuum.jsonl", b'{"ns":"default","op":"x"}\n')
    return ids


@pytest.fixture(
    params=["folder to folder", "folder to database", "database to folder", "database to database"]
)
def pair(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> Iterator[tuple[ChunkStore, ChunkStore]]:
    """A source and a target of each combination of kinds."""
    with ExitStack() as open_things:
        stores = []
        for name, kind in zip("ab", request.param.split(" to "), strict=True):
            place: str | Path = tmp_path / name / "memory"
            if kind == "database":
                databases: Databases = request.getfixturevalue("databases")
                place = open_things.enter_context(databases.lend())
            stores.append(open_things.enter_context(ChunkStore(place, clock=clock)))
        yield stores[0], stores[1]


def test_a_copy_holds_everything_and_ranks_alike(pair: tuple[ChunkStore, ChunkStore]) -> None:
    source, target = pair
    ids = fill(source)
    report = copy_namespace(source, target)
    assert (report.chunks, report.already_there, report.skipped) == (len(ids), 0, [])
    assert compare(source, target) == []
    assert target.list_chunks(archived=True) == source.list_chunks(archived=True)
    assert [one.revision for one in target.history(ids[0])] == [1, 2, 3]
    assert target.linked(ids[4], "supports")[0].reasoning == "said \x00 both"
    assert [one.chunk_id for one in search(target, QUESTION)] == [
        one.chunk_id for one in search(source, QUESTION)
    ]
    assert target.backend.files("default").read("workspace/state/plan.md") == b"# Plan\n"
    read = target.get_chunk(ids[7], track=False)
    assert read is not None and read.metadata.access_count == 1
    restored = target.restore_chunk(ids[6])
    assert restored is not None and search(target, restored.content)[0].chunk_id == ids[6]


def test_a_copy_begun_again_carries_only_what_is_missing(pair: tuple[ChunkStore, ChunkStore]) -> None:
    source, target = pair
    ids = fill(source)
    copy_namespace(source, target)
    assert copy_namespace(source, target).changes == 0
    source.update_chunk(ids[8], "Dana took the boat after all.")
    source.restore_chunk(ids[6])
    source.drop_chunk(ids[9])  # as an erasure does, which would also empty lines of the audit log
    new = source.create_chunk("A new one.").id
    report = copy_namespace(source, target)
    assert report.chunks >= 3
    assert target.get_chunk(new) is not None and target.exists(ids[6])
    assert [one.what for one in compare(source, target)] == [ids[9]]
    copy_namespace(source, target, mirror=True)
    assert compare(source, target) == []


def test_another_state_in_the_target_is_a_conflict_unless_overwriting_is_requested(
    pair: tuple[ChunkStore, ChunkStore],
) -> None:
    source, target = pair
    ids = fill(source)
    copy_namespace(source, target)
    target.update_chunk(ids[10], "Changed in the copy.")
    with pytest.raises(ConflictError, match=ids[10]):
        copy_namespace(source, target)
    assert present(target.get_chunk(ids[10])).content == "Changed in the copy."
    copy_namespace(source, target, overwrite=True, mirror=True)
    assert [one for one in compare(source, target) if one.what != "audit log"] == []


def test_what_was_deleted_in_the_target_comes_back_only_if_told_to_overwrite(
    pair: tuple[ChunkStore, ChunkStore],
) -> None:
    source, target = pair
    chunk_id = source.create_chunk("A walnut.").id
    copy_namespace(source, target)
    target.delete_chunk(chunk_id)
    with pytest.raises(ConflictError, match=f"{chunk_id} was deleted in the target"):
        copy_namespace(source, target)
    assert not target.exists(chunk_id)
    copy_namespace(source, target, overwrite=True)
    assert target.exists(chunk_id)
    for change in (source.delete_chunk, source.restore_chunk):  # of the source's own, later deletion
        change(chunk_id)
        copy_namespace(source, target)
        assert target.exists(chunk_id) == source.exists(chunk_id)


def test_a_file_that_was_changed_in_the_target_is_kept_until_told_to_overwrite(
    pair: tuple[ChunkStore, ChunkStore],
) -> None:
    source, target = pair
    name = "memory/long_term/notes.md"

    def write(store: ChunkStore, text: str, *, recorded: bool = True) -> None:
        with store.files.transaction() if recorded else nullcontext():
            store.files.write(name, text.encode())

    write(source, "# Notes\n\nTessa has the key.\n")
    copy_namespace(source, target)
    write(source, "# Notes\n\nNobody has the key.\n")
    assert copy_namespace(source, target).kept_files == [] and compare(source, target) == []
    for who, recorded in (("Wendel", True), ("Ana", False)):  # by a program, and by hand
        write(target, f"# Notes\n\n{who} has the key.\n", recorded=recorded)
        assert copy_namespace(source, target).kept_files == [name]
        assert target.files.read(name) == f"# Notes\n\n{who} has the key.\n".encode()
        assert name in [one.what for one in compare(source, target)]
        assert copy_namespace(source, target, overwrite=True).kept_files == []
        assert target.files.read(name) == source.files.read(name)
    write(target, "# Notes\n")  # lines were taken out
    assert copy_namespace(source, target).kept_files == [name]
    copy_namespace(source, target, overwrite=True)
    write(source, "# Notes\n\nNobody has the key, still.\n", recorded=False)
    write(source, "# Notes\n\nNobody has a key.\n")
    assert copy_namespace(source, target).kept_files == []
    assert target.files.read(name) == b"# Notes\n\nNobody has a key.\n"


def test_a_file_of_the_target_is_kept_where_a_record_of_its_changes_is_damaged(
    pair: tuple[ChunkStore, ChunkStore],
) -> None:
    source, target = pair
    name, text = "memory/long_term/notes.md", b"# Notes\n\nTessa has the key.\n"
    source.files.write(name, text)
    copy_namespace(source, target)
    before = set(target.files.names(UNDO))
    with target.files.transaction():
        target.files.write(name, b"# Notes\n")  # a line was taken out, as only the record says
    (record,) = set(target.files.names(UNDO)) - before
    target.files.write(record, b'{"edits": [')
    assert copy_namespace(source, target).kept_files == [name]
    assert target.files.read(name) == b"# Notes\n"
    copy_namespace(source, target, overwrite=True)
    assert target.files.read(name) == text


def test_a_persona_of_the_target_is_kept(pair: tuple[ChunkStore, ChunkStore]) -> None:
    source, target = pair
    Memory(source).persona(keep=True).set("humor", 20)
    copy_namespace(source, target)
    Memory(source).persona(keep=True).set("humor", 70)
    assert copy_namespace(source, target).kept_files == ["persona/default.json"]
    assert Memory(target).persona(keep=True).by_hand == {"humor": 20}


def test_a_change_in_the_target_is_a_conflict_also_where_the_source_has_more_revisions(
    pair: tuple[ChunkStore, ChunkStore], clock: Clock
) -> None:
    source, target = pair
    many = source.config.store.keep_versions + 3
    kept, dropped, former = (source.create_chunk(f"Mooring {number} is free.").id for number in range(3))

    def change(chunk_id: str, times: int) -> None:
        for number in range(times):
            clock.advance(seconds=1)
            source.update_chunk(chunk_id, f"A mooring was taken {number} times.", tags=[f"t{clock.now:%S}"])

    copy_namespace(source, target)
    change(former, 2)
    assert copy_namespace(source, target).chunks == 1
    change(former, many)  # the source has not kept the state of the target
    assert copy_namespace(source, target).chunks == 1
    change(dropped, many)
    clock.advance(seconds=1)
    for chunk_id in (kept, dropped):
        target.update_chunk(chunk_id, "Changed in the copy.")
    change(kept, 2)
    for chunk_id in (kept, dropped):
        with pytest.raises(ConflictError, match=chunk_id):
            copy_namespace(source, target)
        assert target.get_many([chunk_id])[chunk_id].content == "Changed in the copy."
        source.delete_chunk(chunk_id, permanent=True)
    copy_namespace(source, target)


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda store, ids: store.update_chunk(ids[3], tags=["other"]), 3),
        (lambda store, ids: store.delete_chunk(ids[3]), 3),
        (lambda store, ids: store.delete_chunk(ids[3], permanent=True), 3),
    ],
)
def test_compare_finds_every_kind_of_difference(
    base: Path, tmp_path: Path, damage: Callable[[ChunkStore, list[str]], object], what: int
) -> None:
    with ChunkStore(base) as source, ChunkStore(tmp_path / "copy" / "memory") as target:
        ids = fill(source)
        copy_namespace(source, target)
        damage(target, ids)
        assert ids[what] in [one.what for one in compare(source, target)]


def test_compare_finds_texts_that_were_edited_in_place(base: Path, tmp_path: Path) -> None:
    with ChunkStore(base) as source, ChunkStore(tmp_path / "copy" / "memory") as target:
        chunk = source.create_chunk("The quince blooms.")
        source.update_chunk(chunk.id, "The quince is ripe.")
        copy_namespace(source, target)
        for folder, message in (
            ("archive/versions", "has other former versions in the target"),
            ("chunks", "has other contents in the target"),
        ):
            (path,) = (tmp_path / "copy/memory" / folder).glob("*/*.json")
            path.write_text(
                path.read_text(encoding="utf-8").replace("The quince", "A quince"), encoding="utf-8"
            )
            assert [(one.what, one.message) for one in compare(source, target)] == [(chunk.id, message)]


def test_files_and_log_that_differ_are_found(base: Path, tmp_path: Path) -> None:
    with ChunkStore(base) as source, ChunkStore(tmp_path / "copy" / "memory") as target:
        fill(source)
        copy_namespace(source, target)
        target.backend.files("default").append("log/continuum.jsonl", b'{"ns":"default","id":"later"}\n')
        assert copy_namespace(source, target).changes == 0
        target.backend.files("default").write("workspace/state/plan.md", b"other")
        target.record_event("recall", ["chunk-x"])
        assert {one.what for one in compare(source, target)} == {
            "audit log", "log/continuum.jsonl", "workspace/state/plan.md",
        }  # fmt: skip


def test_a_store_is_not_copied_onto_itself_or_into_another_namespace(base: Path) -> None:
    with ChunkStore(base) as store, ChunkStore(base) as again, ChunkStore(base, namespace="b") as other:
        with pytest.raises(InputError, match="the same"):
            copy_namespace(store, again)
        with pytest.raises(InputError, match="namespaces"):
            copy_namespace(store, other)


def test_other_namespaces_of_the_target_are_left_alone(base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy" / "memory"
    with ChunkStore(folder, namespace="mine") as kept:
        kept.create_chunk("Mine alone.")
        kept.backend.files("mine").append("log/continuum.jsonl", b'{"ns":"mine","op":"y"}\n')
    with ChunkStore(base) as source, ChunkStore(folder) as target:
        fill(source)
        copy_namespace(source, target, mirror=True)
        assert compare(source, target) == []
    with ChunkStore(folder, namespace="mine") as kept:
        assert len(kept.list_chunks()) == 1
        assert b'"mine"' in (kept.backend.files("mine").read("log/continuum.jsonl") or b"")


@pytest.mark.local_only("ids that are unique in the store")
def test_a_chunk_of_another_namespace_with_the_same_id_is_not_overwritten(base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copy" / "memory"
    with (
        ChunkStore(base) as source,
        ChunkStore(folder, namespace="mine") as mine,
        ChunkStore(folder) as target,
    ):
        made = source.create_chunk("A text.")
        kept = mine.create_chunk("Mine alone.", chunk_id=made.id)
        for overwrite in (False, True):
            with pytest.raises(ConflictError, match="the id of another chunk"):
                copy_namespace(source, target, overwrite=overwrite)
        assert mine.get_chunk(made.id, track=False) == kept


@pytest.mark.local_only("ids that differ in case as names of files")
def test_of_ids_that_differ_in_case_alone_none_is_copied_to_where_they_are_one_file(
    base: Path, tmp_path: Path
) -> None:
    with ChunkStore(base) as source, ChunkStore(tmp_path / "copy" / "memory") as target:
        for name in ("quince", "Quince"):
            source.create_chunk(f"A {name}.", chunk_id=f"chunk-2026-02-10-{name}")
        (tmp_path / "copy/memory/INDEX").symlink_to(tmp_path / "copy/memory/index")
        with pytest.raises(ConflictError, match="differs from that of another chunk only in case"):
            copy_namespace(source, target)
        assert target.list_chunks() == []
