"""Broken or malicious sources: each becomes an entry of the report, never a crash, and nothing leaks out."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from rlm_mem.errors import InputError, NotFoundError
from rlm_mem.interchange import import_source, places, reading
from rlm_mem.interchange.detection import FORMATS, Detector
from rlm_mem.interchange.format import FileHead
from rlm_mem.interchange.frontmatter import read_frontmatter
from rlm_mem.interchange.places import Unreadable
from rlm_mem.interchange.reading import Counted, json_entries, json_lines
from rlm_mem.store.core.chunk_store import ChunkStore

from .conftest import Open

MESSAGE = json.dumps({"role": "user", "content": "The key is brass."})


def reasons(report: Any) -> str:
    return "\n".join(f"{problem.where}: {problem.reason}" for problem in report.problems)


def texts(store: ChunkStore) -> list[str]:
    return [chunk.content for chunk in store.iter_chunks()]


# --- places ----------------------------------------------------------------------------------------


def test_names_that_lead_out_of_an_archive_are_refused_and_nothing_is_unpacked(
    store: ChunkStore, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as packed:
        for name in ("../up.md", "/etc/root.md", "a/../../b.md", "..\\win.md", "C:/x.md"):
            packed.writestr(name, "Evil text.")
        link = zipfile.ZipInfo("link.md")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        packed.writestr(link, "/etc/passwd")
        packed.writestr("good.md", "Good text.")
        packed.writestr("of\\windows\\", "")
        packed.writestr("of\\windows\\note.md", "Good note.")
    before = sorted(tmp_path.rglob("*.md"))
    report = import_source(store, tmp_path / "x.zip")
    assert sorted(texts(store)) == ["Good note.", "Good text."]
    assert report.problem_count == 6
    assert sorted(tmp_path.rglob("*.md")) == before


def test_an_archive_that_unpacks_to_far_more_than_it_is_is_not_read(
    store: ChunkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_RATIO_FROM", 1_000_000)
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb.md", b"a" * 3_000_000)
        packed.writestr("good.md", "Good text.")
    report = import_source(store, tmp_path / "x.zip")
    assert "unpacks to 3,000,000 bytes" in reasons(report)
    assert texts(store) == ["Good text."]


def test_a_damaged_archive_is_reported(store: ChunkStore, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as packed:
        packed.writestr("a.md", "First text, stored as it is.")
        packed.writestr("b.md", "Second text.")
    data = (tmp_path / "x.zip").read_bytes()
    (tmp_path / "x.zip").write_bytes(data.replace(b"First text", b"Fixed text", 1))
    report = import_source(store, tmp_path / "x.zip")
    assert "damaged archive" in reasons(report)
    assert texts(store) == ["Second text."]
    (tmp_path / "y.zip").write_bytes(b"PK\x03\x04" + b"\0" * 50)
    with pytest.raises(InputError, match="not a valid zip"):
        import_source(store, tmp_path / "y.zip")


def test_links_that_lead_out_of_a_folder_are_not_followed(store: ChunkStore, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "s.md").write_text("Secret text.")
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "own.md").write_text("Own text.")
    (folder / "same.md").symlink_to(folder / "own.md")
    (folder / "out.md").symlink_to(tmp_path / "secret" / "s.md")
    (folder / ".env").write_text("Secret text.")
    (folder / "env.md").symlink_to(".env")
    (folder / "venv").mkdir()
    (folder / "venv" / "x.md").write_text("Secret text.")
    (folder / "x.md").symlink_to("venv/x.md")
    (folder / "dir").symlink_to(tmp_path / "secret")
    (folder / "loop").symlink_to(folder)
    (folder / "gone.md").symlink_to(folder / "nothing.md")
    (folder / "round.md").symlink_to(folder / "back.md")
    (folder / "back.md").symlink_to(folder / "round.md")
    os.mkfifo(folder / "pipe.md")
    report = import_source(store, folder)
    assert "Secret text." not in texts(store)
    assert "Own text." in texts(store)
    assert {problem.where for problem in report.problems} == {
        "out.md", "gone.md", "pipe.md", "round.md", "back.md", "env.md", "x.md",
    }  # fmt: skip


def test_archives_within_an_archive_take_bounded_memory(
    store: ChunkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_MAX_ALL_NESTED", 300)
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as whole:
        for number in range(3):
            part = io.BytesIO()
            with zipfile.ZipFile(part, "w") as inner:
                inner.writestr(f"{number}.md", f"Text {number}.")
            whole.writestr(f"part-{number}.zip", part.getvalue())
    report = import_source(store, tmp_path / "all.zip")
    assert sorted(texts(store)) == ["Text 0.", "Text 1."]
    assert "part-2.zip: more than 0 MiB of archives within the archive: not read" in reasons(report)


def test_an_archive_within_is_named_and_not_opened(store: ChunkStore, tmp_path: Path) -> None:
    (tmp_path / "n").mkdir()
    with zipfile.ZipFile(tmp_path / "n/inner.zip", "w") as packed:
        packed.writestr("a.md", "Text.")
    report = import_source(store, tmp_path / "n")
    assert "inner.zip: an archive within" in reasons(report)
    assert texts(store) == []


def test_what_is_not_there_is_an_error(store: ChunkStore, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        import_source(store, tmp_path / "nothing")
    with pytest.raises(InputError, match="unknown format"):
        import_source(store, tmp_path, format="pdf")
    with pytest.raises(InputError, match="must be the path"):  # not the working folder
        import_source(store, "")


# --- contents --------------------------------------------------------------------------------------


def test_yaml_aliases_without_end_are_refused_at_once(store: ChunkStore, tmp_path: Path) -> None:
    bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
    (tmp_path / "bomb.md").write_text(f"---\n{bomb}---\nThe text below.\n")
    report = import_source(store, tmp_path / "bomb.md")
    assert report.problem_count == 1
    assert "more than" in reasons(report)


@pytest.mark.parametrize(
    "header",
    [
        "a: [",
        "a: !!python/object:os.system x",
        "- a\n- b",
        "a: &a [*a]",
        "? {a: b}\n: c",
        "a: 1_0:99:99",
        "\t",
        "a: b: c",
    ],
)
def test_odd_frontmatter_is_data_or_a_clear_refusal(header: str) -> None:
    try:
        fields = read_frontmatter(header + "\n")
    except InputError as error:
        assert str(error)
    else:
        assert isinstance(fields, dict)


@pytest.mark.parametrize(
    "head", [b'[{"role": "user", "content": "cut', b"[", b'{"messages": [', b"[1, 2", b"\xff\xfe[", b"nul"]
)
def test_a_cut_off_array_is_reported(store: ChunkStore, tmp_path: Path, head: bytes) -> None:
    (tmp_path / "conversations.json").write_bytes(head)
    report = import_source(store, tmp_path / "conversations.json")
    assert report.created == 0
    assert report.problem_count >= 1


def test_entries_before_a_damaged_one_are_imported(store: ChunkStore, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(
        f"[{MESSAGE}, {MESSAGE.replace('brass', 'steel')}, {{broken}}, {MESSAGE}]"
    )
    report = import_source(store, tmp_path / "c.json")
    assert texts(store) == ["User: The key is brass.\nUser: The key is steel."]
    assert "entry 3" in reasons(report)


def test_an_endless_line_is_skipped(
    store: ChunkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_ENTRY", 10_000)
    (tmp_path / "c.jsonl").write_text(
        '{"role": "user", "content": "' + "x" * 100_000 + '"}\n' + MESSAGE + "\n"
    )
    report = import_source(store, tmp_path / "c.jsonl", format="messages-jsonl")
    assert texts(store) == ["User: The key is brass."]
    assert "line 1: a line of more than" in reasons(report)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(FORMATS)),
    st.one_of(
        st.binary(max_size=200).filter(lambda data: not data.startswith(b"PK")),
        st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
            lambda inner: st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    ["id", "role", "content", "mapping", "message", "chat_messages", "parts", "author", "text", "type",
                     "metadata", "links", "scope", "created_at", "timestamp", "chunk", "archived", "parent", "tags"]
                ),
                inner,
                max_size=5,
            ),
            max_leaves=12,
        ).map(lambda value: json.dumps(value).encode()),
    ),
)  # fmt: skip
def test_no_reader_fails_on_any_input(
    tmp_path_factory: pytest.TempPathFactory, fuzzed: ChunkStore, name: str, data: bytes
) -> None:
    file = tmp_path_factory.mktemp("fuzz") / "file.json"
    file.write_bytes(data)
    report = import_source(fuzzed, file, format=name)
    assert report.finished


@pytest.mark.parametrize(
    ("name", "entry", "stored"),
    [
        ("claude", {"chat_messages": [{"text": "One.", "attachments": True}]}, "User: One."),
        ("mem0", {"categories": [{"id": "1", "name": "home"}], "memories": [{"memory": "One.", "category_ids": [1]}]},
         "One."),
        ("langgraph", {"namespace": [], "key": "k", "value": {"\ud800": 1}}, '{"\ufffd":1}'),
    ],
)  # fmt: skip
def test_values_of_another_kind_than_expected_are_no_crash(
    store: ChunkStore, tmp_path: Path, name: str, entry: dict[str, Any], stored: str
) -> None:
    (tmp_path / "x.json").write_text(json.dumps(entry if name == "mem0" else [entry]))
    assert not import_source(store, tmp_path / "x.json", format=name).problems
    assert texts(store) == [stored]


def test_a_file_whose_disk_fails_is_reported_and_the_others_are_read(
    store: ChunkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "folder").mkdir()
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / "folder" / name).write_text(MESSAGE)

    def opened(path: str, mode: str) -> io.BufferedIOBase:
        return Failing() if path.endswith("a.jsonl") else Path(path).open(mode)  # type: ignore[return-value]

    monkeypatch.setattr(places, "open", opened, raising=False)
    report = import_source(store, tmp_path / "folder")
    assert reasons(report) == "a.jsonl: Input/output error"
    assert texts(store) == ["User: The key is brass."]


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="there is no such file")
def test_a_file_that_cannot_be_read_at_all_is_an_error(store: ChunkStore) -> None:
    with pytest.raises(InputError, match="/proc/self/mem cannot be read"):
        import_source(store, "/proc/self/mem")


@pytest.fixture
def fuzzed(open_store: Open) -> ChunkStore:
    return open_store("fuzzed")


@given(st.text(max_size=30), st.binary(max_size=100))
def test_detection_accepts_any_bytes(name: str, head: bytes) -> None:
    detector = Detector()
    assert detector.detect(FileHead("n" + name.replace("/", "") + ".md", head)) is not None
    for other in ("x.json", "x.jsonl"):
        found = detector.detect(FileHead(other, head))
        assert found is None or found.name in FORMATS


# --- streaming -------------------------------------------------------------------------------------


class Small(io.BytesIO):
    """A file that gives a few bytes at a time, so that every entry is cut somewhere."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(min(size or 7, 7) if size and size > 0 else 7)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.lists(values, max_size=6), st.booleans(), st.sampled_from([None, 1]))
def test_the_entries_of_an_array_are_those_of_the_json_module(
    entries: list[Any], ascii_: bool, indent: int | None
) -> None:
    data = json.dumps(entries, ensure_ascii=ascii_, indent=indent).encode("utf-8", "surrogatepass")
    wanted = json.loads(data.decode("utf-8", "replace"))
    assert [value for _, value in json_entries(Counted(Small(data), lambda _count: None))] == wanted
    inside = b'{"a": 1, "b": [1], "messages": ' + data + b', "z": {}}'
    got = [
        value for _, value in json_entries(Counted(Small(inside), lambda _count: None), inside=("messages",))
    ]
    assert got == wanted


@settings(deadline=None)
@given(st.lists(values, min_size=1, max_size=4), st.data())
def test_a_cut_anywhere_loses_only_what_comes_after(entries: list[Any], data: st.DataObject) -> None:
    whole = json.dumps(entries).encode()
    cut = data.draw(st.integers(1, len(whole) - 1))
    got = [value for _, value in json_entries(Counted(io.BytesIO(whole[:cut]), lambda _count: None))]
    assert isinstance(got[-1], Unreadable)
    complete = [value for value in got if not isinstance(value, Unreadable)]
    # A number may have been cut in two: 12 becomes 1.
    assert complete[:-1] == entries[: len(complete)][:-1]


def test_lines_are_numbered_as_an_editor_numbers_them() -> None:
    handle = Counted(io.BytesIO(b'\xef\xbb\xbf{"a": 1}\r\n\n[2]\n{'), lambda _count: None)
    got = [
        (number, value if not isinstance(value, Unreadable) else None) for number, value in json_lines(handle)
    ]
    assert got == [(1, {"a": 1}), (3, [2]), (4, None)]


def test_a_large_array_takes_little_memory_and_reports_progress() -> None:
    entry = json.dumps({"role": "user", "content": "x" * 500})
    data = ("[" + ",".join([entry] * 40_000) + "]").encode()
    moved: list[int] = []
    handle = Counted(io.BytesIO(data), moved.append)
    tracemalloc.start()
    count = sum(1 for _ in json_entries(handle))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 40_000
    assert peak < 4_000_000 < len(data)
    assert sum(moved) == len(data)
    assert len(moved) > 50


def test_a_chat_export_is_read_in_bounded_memory_and_the_bar_moves(store: ChunkStore, tmp_path: Path) -> None:
    """A dry run over 20,000 messages; benchmarks/interchange.py stores half a million."""
    file = tmp_path / "conversations.json"
    with file.open("w") as handle:
        handle.write("[")
        for number in range(200):
            said = [{"sender": "human", "text": f"Gate {number} opens at {minute}."} for minute in range(100)]
            handle.write(("," if number else "") + json.dumps({"uuid": f"u{number}", "chat_messages": said}))
        handle.write("]")
    moves: list[tuple[int, int]] = []
    report = import_source(
        store, file, dry_run=True, progress=lambda done, total: moves.append((done, total))
    )
    assert report.messages == 20_000
    assert len(set(moves)) >= 3
    assert moves == sorted(moves)
    assert moves[-1] == (file.stat().st_size,) * 2


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damage_inside_compressed_data_is_no_crash(store: ChunkStore, tmp_path: Path, method: int) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w", method) as packed:
        packed.writestr("a.jsonl", (MESSAGE + "\n") * 3000)
    data = bytearray((tmp_path / "x.zip").read_bytes())
    data[60:70] = b"\xff" * 10
    (tmp_path / "x.zip").write_bytes(bytes(data))
    report = import_source(store, tmp_path / "x.zip")
    assert report.problem_count == 1
