"""Files of a brain beside its chunks: the same calls for a folder and for rows of a database."""

from __future__ import annotations

import errno
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from rlm_mem.errors import InputError, InvalidChunk, NamespaceError, StorageError, StoreFull, StoreReadOnly
from rlm_mem.memory import Memory
from rlm_mem.store.backup import back_up
from rlm_mem.store.core import files as file_operations
from rlm_mem.store.core.backup_archive import read_backup
from rlm_mem.store.core.brain_files import FOLDERS, SHOWN, BrainFiles, name_at, own_lines, place_of
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from rlm_mem.store.local.queries import is_alike_taken


@pytest.fixture
def files(store: ChunkStore) -> BrainFiles:
    return store.backend.files("default")


ALL = [
    "archive/memory/short_term/x.md",
    "archive/pending/20260210.json",
    "gauges/MINE.md",
    "log/continuum.jsonl",
    "memory/long_term/pattern_x.md",
    "memory/short_term/2026-02-10_12-00-00_agent_interaction.md",
    "persona/default.json",
    "system/memory_log.md",
    "system/review/case.json",
    "trajectories/2026-02/traj-20260210T120000-00000000.jsonl",
    "workspace/state/plan.md",
]


@pytest.mark.parametrize("name", ["system/memory_log.md", "trajectories/2026-02/x.jsonl", "persona/a.json"])
@pytest.mark.parametrize("data", [b"", b"one\r\ntwo", b"\x00\xff" * 400_000])
def test_a_file_is_read_as_it_was_written_and_gone_when_removed(
    files: BrainFiles, name: str, data: bytes
) -> None:
    assert (files.read(name), files.exists(name), files.signature(name)) == (None, False, None)
    assert not files.remove(name)
    files.write(name, b"former, and longer than an empty one")
    files.write(name, data)
    assert files.read(name) == data
    signature = files.signature(name)
    assert signature is not None
    assert signature.size == len(data)
    assert files.remove(name)
    assert (files.read(name), files.names(name.rpartition("/")[0])) == (None, [])


def test_a_name_may_be_as_long_as_file_systems_allow(files: BrainFiles) -> None:
    for folder in ("sliders", "persona"):
        name = f"{folder}/{'a' * 250}.json"
        files.write(name, b"x")
        assert files.read(name) == b"x"


def test_a_file_is_made_once(files: BrainFiles) -> None:
    for name in ("sliders/MINE.md", "trajectories/2026-02/x.jsonl"):
        assert files.create(name, b"first")
        assert not files.create(name, b"second")
        assert files.read(name) == b"first"


def test_appended_bytes_are_at_the_end(files: BrainFiles) -> None:
    for name in ("log/continuum.jsonl", "trajectories/2026-02/x.jsonl"):
        lines = [f"line {number}\n".encode() for number in range(200)]
        for line in lines:
            files.append(name, line)
        whole = b"".join(lines)
        assert files.read(name) == whole
        for offset in (0, 1, 7, 8, 500, len(whole) - 1, len(whole), len(whole) + 5):
            assert files.read_from(name, offset) == whole[offset:], offset
        for count in (1, 8, 500, len(whole), len(whole) + 5):
            assert files.read_from(name, -count) == whole[-count:], count
        files.write(name, b"anew")
        files.append(name, b" and more")
        assert files.read(name) == b"anew and more"
    assert files.read_from("log/none.jsonl", 5) == files.read_from("log/none.jsonl", -5) == b""


def test_a_file_that_is_begun_by_appending_is_there_within_its_transaction(files: BrainFiles) -> None:
    name = "memory/long_term/pattern_x.md"
    with files.transaction():
        files.append(name, b"one")
        files.append(name, b" two")
        assert (files.names("memory/long_term"), files.read(name), files.exists(name)) == (
            [name],
            b"one two",
            True,
        )
        signature = files.signature(name)
        assert signature is not None and signature.size == 7
        files.remove(name)
        assert (files.names("memory/long_term"), files.read(name)) == ([], None)
        files.append(name, b"three")
    assert (files.names("memory/long_term"), files.read(name)) == ([name], b"three")
    with files.transaction():
        before = files.signature(name)
        files.append(name, b" four")
        assert files.signature(name) != before


def test_a_record_of_a_run_is_extended_only_while_it_exists(files: BrainFiles) -> None:
    name = "trajectories/2026-02/x.jsonl"
    assert not files.extend(name, b"one")
    files.create(name, b"one")
    assert files.extend(name, b" two")
    assert files.read(name) == b"one two"
    files.remove(name)
    assert not files.extend(name, b"three")
    assert files.read(name) is None


def test_lines_that_several_threads_append_do_not_mix(files: BrainFiles) -> None:
    def write(letter: str) -> None:
        for _ in range(25):
            files.append("trajectories/2026-02/x.jsonl", letter.encode() * 99 + b"\n")
            files.append("log/continuum.jsonl", letter.encode() * 99 + b"\n")

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in ("trajectories/2026-02/x.jsonl", "log/continuum.jsonl"):
        lines = (files.read(name) or b"").splitlines()
        assert sorted(lines) == sorted(letter.encode() * 99 for letter in "abcd" for _ in range(25))


def test_a_file_takes_another_name_and_the_place_of_what_had_it(files: BrainFiles) -> None:
    files.write("archive/pending/1.json", b"new")
    files.write("archive/transitions/1.json", b"old")
    before = files.signature("archive/transitions/1.json")
    files.rename("archive/pending/1.json", "archive/transitions/1.json")
    assert files.read("archive/transitions/1.json") == b"new"
    assert files.signature("archive/transitions/1.json") != before
    assert not files.exists("archive/pending/1.json")
    with pytest.raises(StorageError):
        files.rename("archive/pending/1.json", "archive/transitions/2.json")
    files.rename("archive/transitions/1.json", "archive/transitions/1.json")
    assert files.read("archive/transitions/1.json") == b"new"


def test_a_folder_lists_its_files_and_everything_is_listed_but_what_is_derived(files: BrainFiles) -> None:
    for name in ALL:
        files.write(name, b'{"namespace":"default","ns":"default"}\n')
    files.write("index/continuum.json", b"{}")
    files.write("imports/ledger.jsonl", b"")
    assert files.names("system") == ["system/memory_log.md"]
    assert files.names("system", recursive=True) == ["system/memory_log.md", "system/review/case.json"]
    assert files.names("memory/long_term") == ["memory/long_term/pattern_x.md"]
    assert files.names("workspace") == []
    assert files.names("archive", recursive=True) == ALL[:2]
    assert files.names("gauges/none") == []
    assert sorted(files.names("", recursive=True)) == sorted([*ALL, "imports/ledger.jsonl"])
    assert set(files.signatures("", recursive=True)) == set(files.names("", recursive=True))


def test_many_files_are_read_in_the_order_asked_for(files: BrainFiles) -> None:
    names = [f"system/profiles/p{number}.md" for number in range(150)]
    for name in names[:-1]:
        files.write(name, name.encode() * 3)
    files.write(names[7], b"")
    asked = [*reversed(names), "system/none.md"]
    wanted = [(name, b"" if name == names[7] else name.encode() * 3) for name in asked if name in names[:-1]]
    assert list(files.contents(asked)) == wanted


def test_the_last_files_come_first_and_page_by_page(files: BrainFiles) -> None:
    names = sorted(
        f"trajectories/2026-0{month}/t{number:02}.jsonl" for month in (1, 2, 3) for number in range(7)
    )
    for name in names:
        files.create(name, name.encode())
    files.write("system/memory_log.md", b"in no such folder")
    assert files.last("trajectories", 3) == {name: files.signature(name) for name in names[:-4:-1]}
    assert list(files.last("trajectories", 3)) == names[:-4:-1]
    assert list(files.last("trajectories/2026-01", 100)) == names[6::-1]
    assert files.last("trajectories", 5, before="trajectories/2026-01/t00.jsonl") == {}
    seen: list[str] = []
    while found := files.last("trajectories", 4, before=seen[-1] if seen else None):
        seen += found
    assert seen == names[::-1]
    assert files.last("gauges", 5) == {}


def test_every_change_shows_in_the_signature(files: BrainFiles) -> None:
    seen = set()
    for work in (
        lambda: files.write("system/memory_log.md", b"aaaa"),
        lambda: files.write("system/memory_log.md", b"bbbb"),
        lambda: files.append("system/memory_log.md", b"c"),
        lambda: files.remove("system/memory_log.md") and files.write("system/memory_log.md", b"bbbbc"),
    ):
        work()
        seen.add(files.signature("system/memory_log.md"))
        assert files.signatures("system") == {"system/memory_log.md": files.signature("system/memory_log.md")}
    assert len(seen) == 4


def test_namespaces_have_files_of_their_own(store: ChunkStore, files: BrainFiles) -> None:
    other = store.backend.files("team/ana")
    files.write("system/memory_log.md", b"mine")
    other.write("system/memory_log.md", b"theirs")
    other.append("log/continuum.jsonl", b'{"ns":"team/ana","id":"1"}\n')
    files.append("log/continuum.jsonl", b'{"ns":"default","id":"2"}\n')
    other.append("trajectories/2026-02/traj-1.jsonl", b'{"namespace":"team/ana"}\n')
    assert files.read("system/memory_log.md") == b"mine"
    assert other.read("system/memory_log.md") == b"theirs"
    assert own_lines("default", files.read("log/continuum.jsonl") or b"") == b'{"ns":"default","id":"2"}\n'
    assert "trajectories/2026-02/traj-1.jsonl" in other.names("", recursive=True)
    assert "trajectories/2026-02/traj-1.jsonl" not in files.names("", recursive=True)


@pytest.mark.parametrize(
    "name",
    ["../x", "system/../../x", "/etc/passwd", "system//x", "system/./x", "a\\b", "", "config.toml",
     "memory/index/index.sqlite", "memory/chunks/2026-02/chunk-x.json", "system/a\0b", "chunks/x"],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_refused(files: BrainFiles, name: str) -> None:
    for work in (
        lambda: files.read(name),
        lambda: files.write(name, b""),
        lambda: files.append(name, b""),
        lambda: files.remove(name),
        lambda: files.create(name, b""),
    ):
        with pytest.raises(InputError):
            work()


def test_a_read_only_store_writes_no_file(store: ChunkStore, base: Path | str) -> None:
    store.create_chunk("something")
    store.backend.files("default").write("system/memory_log.md", b"there")
    with ChunkStore(base, read_only=True) as reader:
        files = reader.backend.files("default")
        assert files.read("system/memory_log.md") == b"there"
        for work in (
            lambda: files.write("system/memory_log.md", b""),
            lambda: files.append("log/continuum.jsonl", b""),
            lambda: files.remove("system/memory_log.md"),
            lambda: files.create("trajectories/2026-02/x.jsonl", b""),
        ):
            with pytest.raises(StoreReadOnly):
                work()


def test_rows_written_in_a_transaction_share_its_fate_and_trajectories_do_not(dsn: str) -> None:
    with ChunkStore(dsn) as store:
        files = store.backend.files("default")
        files.write("system/memory_log.md", b"former")
        with pytest.raises(RuntimeError), store.batch():
            files.write("system/memory_log.md", b"never")
            files.append("log/continuum.jsonl", b"never")
            files.create("trajectories/2026-02/x.jsonl", b"seen\n")
            worker = threading.Thread(target=files.append, args=("trajectories/2026-02/x.jsonl", b"too\n"))
            worker.start()
            worker.join(20)
            assert not worker.is_alive(), "a thread of the same recall waits for nobody"
            assert files.read("system/memory_log.md") == b"never"
            assert store.backend.in_transaction
            raise RuntimeError
        assert files.read("system/memory_log.md") == b"former"
        assert files.names("log") == []
        assert files.read("trajectories/2026-02/x.jsonl") == b"seen\ntoo\n"


def test_check_finds_files_whose_rows_were_lost(dsn: str) -> None:
    import psycopg

    with ChunkStore(dsn) as store:
        files = store.backend.files("default")
        for name in ("system/a.md", "system/b.md", "system/c.md", "system/empty.md"):
            files.write(name, b"" if "empty" in name else b"some text")
            files.append(name, b" and more")
        files.rename("system/a.md", "system/d.md")
        files.create("trajectories/2026-02/x.jsonl", b"")
        assert check(store) == []
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("DELETE FROM rlm_mem.file_parts WHERE name = 'system/b.md' AND part = 1")
            connection.execute("DELETE FROM rlm_mem.files WHERE name = 'system/c.md'")
        assert [(one.code, one.file) for one in check(store)] == [
            ("damaged-file", "system/b.md"),
            ("damaged-file", "system/c.md"),
        ]


def test_unfinished_files_are_in_no_folder_that_people_work_in(tmp_path: Path) -> None:
    with ChunkStore(tmp_path / "brain" / "memory") as store:
        files = store.backend.files("default")
        files.write("system/memory_log.md", b"there")
        unfinished = tmp_path / "brain" / "memory" / "archive" / "continuum" / "default" / ".unfinished"
        assert list(unfinished.iterdir()) == []
        (unfinished / "memory.1.abc.tmp").write_bytes(b"of a killed writer")
        assert files.names("archive", recursive=True) == []
        files.tidy()
        assert list(unfinished.iterdir()) == []


names = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="/\\\0"), min_size=1), min_size=1, max_size=3
)


@settings(max_examples=200)
@given(
    st.sampled_from(["default", "team/ana", "a@b"]),
    st.sampled_from(["workspace", "system", "memory/long_term", "archive", "persona", "sliders"]),
    names,
)
def test_the_place_of_a_file_gives_its_namespace_and_name(
    namespace: str, folder: str, more: list[str]
) -> None:
    if any(part in (".", "..") for part in more):
        return
    name = "/".join([folder, *more])
    assert name_at(place_of(namespace, name, alone=True)) == (namespace, name)


def test_each_folder_is_listed_backed_up_and_found_again_by_its_place(tmp_path: Path) -> None:
    with ChunkStore(tmp_path / "memory") as store:
        expected = set()
        for namespace in ("default", "team/a"):
            stored = store.backend.files(namespace)
            line = f'{{"namespace":"{namespace}","ns":"{namespace}"}}\n'.encode()
            for folder in FOLDERS.keys() - {"index"}:
                last = {"log": "continuum.jsonl", "imports": "ledger.jsonl"}.get(
                    folder, f"{namespace[:1]}.jsonl"
                )
                stored.append(f"{folder}/{last}", line)
                expected.add((namespace, f"{folder}/{last}"))
        for namespace, name in expected:
            stored = store.backend.files(namespace)
            assert name in stored.names("", recursive=True)
            place = place_of(namespace, name)
            assert (tmp_path / place).read_bytes().count(b"\n") >= 1
            found = name_at(place)
            if not name.startswith(("imports", "persona", "sliders", "gauges")):
                shared = name.startswith(("log", "trajectories"))
                assert found == (None if shared else namespace, name), place
        back_up(store, tmp_path / "all.tar.gz")
        packed: set[str] = set()
        read_backup(tmp_path / "all.tar.gz", lambda name, *_: packed.add(name))
        assert {place_of(*one) for one in expected} <= packed


@pytest.mark.local_only("about folders")
def test_namespaces_and_ids_that_differ_in_case_share_no_file(base: Path) -> None:
    """A file system that ignores case is played by second names of the folders."""
    with ChunkStore(base) as store:
        (base / "INDEX").symlink_to(base / "index")
        places = base.parent / "namespaces", base / "archive/continuum", base / "index"
        for place in places[:2]:
            place.mkdir(parents=True)
            (place / "team").symlink_to(place / "Team")
        (base / "index/team.told").symlink_to(base / "index/Team.told")
        large, small = store.backend.files("Team"), store.backend.files("team")
        for name in ("system/memory_log.md", "archive/undo/1.json", SHOWN):
            large.write(name, b"of Team")
            assert large.read(name) == b"of Team"
            for use in (lambda name=name: small.read(name), lambda name=name: small.write(name, b"of team")):
                with pytest.raises(NamespaceError, match=r"Team.* would share .*is case-insensitive"):
                    use()
        with pytest.raises(NamespaceError, match="would share"):
            store.backend.files("team")
        assert store.backend.files("Team").read(SHOWN) == b"of Team"

        large.write("persona/Ada.json", b"{}")
        (base.parent / "persona/ada.json").symlink_to(base.parent / "persona/Ada.json")
        with pytest.raises(NamespaceError, match=r"ada\.json and Ada\.json would share"):
            Memory(store).persona("ada", keep=True)

        store.create_chunk("The quince blooms.", chunk_id="chunk-2026-02-10-Quince")
        with pytest.raises(InvalidChunk, match="exists already"):
            store.create_chunk("The plum blooms.", chunk_id="chunk-2026-02-10-quince")
        other = store.get_chunk("chunk-2026-02-10-Quince")
        assert other is not None
        store.create_chunk("The sloe blooms.", chunk_id="chunk-2026-02-10-9Quince-e2e2")
        with pytest.raises(InvalidChunk, match="exists already"):
            store.create_chunk("The plum blooms.", chunk_id="chunk-2026-02-10-9quinCE-E2e2")
        other.id = "chunk-2026-02-10-QUINCE"
        with pytest.raises(InvalidChunk, match="that of another chunk"):
            store.adopt(other)


def test_a_namespace_whose_encoded_name_is_longer_than_one_folder_s_has_files(store: ChunkStore) -> None:
    names = ["/".join(["a"] * 100), "/".join("abcdefg" for _ in range(25)), "/".join(["b" * 60] * 3)]
    names += [
        f"a{'@' * 101}{'b' * (98 - len(end))}{end}" for end in ("..", ".")
    ]  # whose rest would be that end
    for namespace in names:
        own = store.confined_to(namespace, actor=None)
        for name in ("system/memory_log.md", "archive/undo/1.json", "log/continuum.jsonl", SHOWN):
            own.files.write(name, namespace.encode())
            assert own.files.read(name) == namespace.encode()
        assert name_at(place_of(namespace, "archive/undo/1.json")) == (namespace, "archive/undo/1.json")
        parts = place_of(namespace, SHOWN).split("/")
        assert max(map(len, parts)) <= 255 and not {".", ".."} & {*parts}
    assert set(store.backend.files("default").namespaces()) in (set(), {*names})  # a database lists its own


def test_that_an_id_is_taken_in_another_case_is_found_without_a_look_at_all_ids_of_a_day() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE chunks (id TEXT PRIMARY KEY)")
        ids = [f"chunk-2026-02-10-{number:08x}" for number in range(0, 1 << 32, 1 << 17)]
        connection.executemany("INSERT INTO chunks VALUES (?)", [(one,) for one in ids])
        steps: list[int] = []
        connection.set_progress_handler(lambda: steps.append(1), 100)
        assert not is_alike_taken(connection, "chunk-2026-02-10-3fa9c1e7") and len(steps) < 50
        assert is_alike_taken(connection, "chunk-2026-02-10-ABCA0000")


@pytest.mark.local_only("fails in the middle of a file")
def test_lines_of_a_transaction_that_fails_while_they_are_appended_are_taken_back(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = "system/old.md", "system/new.md"
    journal, stored = "log/continuum.jsonl", store.files
    for name in (old, journal):
        stored.append(name, b"{}\n")
    append_at = file_operations.append_at

    def full_disk(path: Path, data: bytes, size: int) -> None:
        append_at(path, data[: len(data) // 2], size)
        raise OSError(errno.ENOSPC, "No space left on device")

    for failing in (old, journal):
        monkeypatch.setattr(
            file_operations,
            "append_at",
            lambda path, data, size, failing=failing: (
                full_disk if path.name == Path(failing).name else append_at
            )(path, data, size),
        )
        with pytest.raises(StoreFull, match="was not written"), stored.transaction():
            store.create_chunk("The quince blooms.")
            for name in (old, new, journal):
                stored.append(name, b'{"line": 2}\n')
        assert [stored.read(name) for name in (old, new, journal)] == [b"{}\n", None, b"{}\n"], failing
        assert store.list_chunks() == [] and check(store) == []
