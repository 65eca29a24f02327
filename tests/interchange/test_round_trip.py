"""An export is imported unchanged: every field of every chunk, through Markdown, JSON lines and zip."""

from __future__ import annotations

import json
import os
import time
import zipfile
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

import brain.scripts
from rlm_mem import Memory
from rlm_mem.chunk import CHUNK_TYPES, Chunk, ChunkLinks, ChunkMetadata, content_hash
from rlm_mem.errors import InputError, InvalidChunk, NotFoundError, StorageError
from rlm_mem.interchange import export_store, export_to_markdown, import_from_markdown, import_source
from rlm_mem.interchange.export import _line, _shape
from rlm_mem.interchange.formats.chunk_files import lenient_chunk
from rlm_mem.interchange.frontmatter import read_frontmatter
from rlm_mem.interchange.markdown import chunk_from_markdown, chunk_to_markdown
from rlm_mem.interchange.records import ImportedChunk
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from tests.typed import present

from .conftest import Open

TIME = "2026-02-10T21:37:00.000000Z"

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
hard_text = st.one_of(
    text,
    st.lists(
        st.sampled_from(
            ["---", "---\n", "...", "\n", "\r\n", "\r", "\0", "id: chunk-a", "\\r", "\\u0000", "\\", "🜚", "\u2028",
             "\x85", "\ufeff", "# A", "[[chunk-a]]", "```", "%%", " ", "\t",
             "é", "x" * 5000, "content_encoding: escapes"]
        ),
        max_size=12,
    ).map("".join),
)  # fmt: skip
word = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=20).filter(str.strip)
chunk_ids = st.from_regex(r"chunk-[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True)
times = st.datetimes().map(lambda moment: moment.isoformat(timespec="microseconds") + "Z")
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | text
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
tables = st.dictionaries(text, plain, max_size=3)
unit = st.floats(0, 1)


@st.composite
def chunks(draw: st.DrawFn) -> Chunk:
    content = draw(hard_text.filter(str.strip))
    known = set(ChunkLinks.__dataclass_fields__) | {"target"}
    links = [
        ChunkLinks(
            draw(chunk_ids), draw(word), draw(unit), draw(times), draw(st.none() | hard_text),
            {key: value for key, value in draw(tables).items() if key not in known},
        )
        for _ in range(draw(st.integers(0, 3)))
    ]  # fmt: skip
    named = {*Chunk.__dataclass_fields__}
    return Chunk(
        id=draw(chunk_ids),
        content=content,
        tokens=draw(st.integers(1, 10**6)),
        type=draw(st.sampled_from(CHUNK_TYPES) | word),
        metadata=ChunkMetadata(
            created_at=draw(times), modified_at=draw(times), accessed_at=draw(times),
            access_count=draw(st.integers(0, 10**9)), confidence=draw(unit),
            conversation_id=draw(st.none() | word), source=draw(word), content_hash=content_hash(content),
            occurred_at=draw(st.none() | times), valid_from=draw(st.none() | times), valid_to=draw(st.none() | times),
            superseded_by=draw(st.none() | chunk_ids), provenance=draw(tables), extra=draw(tables),
        ),
        links=links,
        tags=list(dict.fromkeys(normalize("NFC", tag.strip()) for tag in draw(st.lists(word, max_size=3)))),
        revision=draw(st.integers(1, 10**6)),
        namespace=draw(st.sampled_from(["default", "agent/project/user"])),
        extra={key: value for key, value in draw(tables).items() if key not in named},
    )  # fmt: skip


def with_content(content: str) -> Chunk:
    return Chunk(
        "chunk-a", content, 3, metadata=ChunkMetadata(TIME, TIME, TIME, content_hash=content_hash(content))
    )


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(chunks(), st.booleans())
@example(with_content("---\nid: chunk-b\n---\n"), False)
@example(with_content("\r\n\0\\r\\u000d"), True)
@example(with_content("x" * 300_000), False)
@example(with_content("a\n"), False)
@example(with_content("\n\n a \n\n"), False)
def test_no_chunk_is_changed_by_markdown(chunk: Chunk, archived: bool) -> None:
    written = chunk_to_markdown(chunk, archived=archived)
    read, read_archived = chunk_from_markdown(written.encode("utf-8").decode("utf-8"))
    assert read.to_dict() == chunk.to_dict()
    assert read == chunk
    assert read_archived is archived


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(chunks(), st.booleans())
def test_no_chunk_is_changed_by_json_lines(chunk: Chunk, archived: bool) -> None:
    entry = json.loads(_line(_shape(chunk, archived)))
    wrapped = entry.keys() == {"archived", "chunk"}
    read = lenient_chunk(entry["chunk"] if wrapped else entry, "here", TIME, archived=archived)
    assert isinstance(read, ImportedChunk)
    assert read.chunk == chunk
    assert wrapped or not archived


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(chunks())
def test_the_frontmatter_means_the_same_to_a_yaml_library(chunk: Chunk) -> None:
    """What Obsidian and others read is what was written, not only what this package makes of it."""
    from ruamel.yaml import YAML

    header = chunk_to_markdown(chunk).split("\n---\n")[0].removeprefix("---\n")
    loaded = YAML(typ="safe", pure=True).load(header)
    assert loaded["id"] == chunk.id
    assert loaded["tags"] == chunk.tags
    assert loaded.get("conversation_id") == chunk.metadata.conversation_id
    assert [link.get("reasoning") for link in loaded.get("links", [])] == [
        link.reasoning for link in chunk.links
    ]


def test_characters_that_editors_change_are_written_in_words_and_marked() -> None:
    written = chunk_to_markdown(with_content("a\r\nb\0c\\d"))
    assert "content_encoding: escapes" in written
    assert written.endswith("---\na\\r\nb\\u0000c\\\\d\n")
    assert "content_encoding" not in chunk_to_markdown(with_content("a\\r\nb\tc"))


def test_an_export_that_a_tool_gave_other_line_ends_is_read_as_before() -> None:
    written = chunk_to_markdown(with_content("one\ntwo"))
    assert chunk_from_markdown(written.replace("\n", "\r\n")) == (with_content("one\ntwo"), False)


# --- stores ----------------------------------------------------------------------------------------


def state(store: ChunkStore) -> dict[str, Any]:
    """Every field of every chunk of every namespace, active and archived."""
    found: dict[str, Any] = {}
    for name, _ in store.namespaces():
        for archived in (False, True):
            for chunk in store.iter_chunks(namespace=name, archived=archived):
                found[chunk.id] = (archived, chunk.to_dict())
    return found


def fill(store: ChunkStore, count: int = 60) -> None:
    with store.batch():
        ids: list[str] = []
        for number in range(count):
            other = number % 7 == 3
            chunk = store.create_chunk(
                f"Memory {number}: the gate at Mill Bridge opens at {number % 24}:00.\n---\nid: {number}\n",
                CHUNK_TYPES[number % 5],
                metadata={"room": number, "created_at": f"2026-0{1 + number % 9}-01T00:00:00Z"},
                tags=[f"tag {number % 4}", "größe"][: number % 3],
                confidence=number / count,
                conversation_id=f"talk {number % 5}" if number % 2 else None,
                occurred_at="2025-12-24T18:00:00+01:00" if number % 4 == 0 else None,
                valid_to="2027-01-01" if number % 10 == 0 else None,
                links=[
                    {"target_id": ids[-1], "type": "supports", "strength": 0.25, "reasoning": "so\r\nsaid"}
                ]
                if ids and number % 3 == 0 and not other
                else None,
                namespace="agent/two" if other else None,
            )
            if not other:
                ids.append(chunk.id)
    for chunk_id in ids[:5]:
        store.get_chunk(chunk_id)
        store.get_chunk(chunk_id)
    store.update_chunk(ids[6], content="changed since", confidence=1.0)
    for chunk_id in ids[8:12]:
        store.delete_chunk(chunk_id)


@pytest.mark.parametrize("target", ["vault", "all.jsonl", "all.zip"])
def test_a_store_exported_and_imported_is_the_same_field_by_field(
    open_store: Open, tmp_path: Path, target: str
) -> None:
    one, two = open_store("one"), open_store("two")
    fill(one)
    out = export_store(one, tmp_path / target)
    assert out.archived == 4
    assert target != "all.jsonl" or out.bytes == (tmp_path / target).stat().st_size
    assert out.namespaces.keys() == {"default", "agent/two"}
    report = import_source(two, tmp_path / target)
    assert report.problems == []
    assert report.created == 60
    assert state(two) == state(one)
    # Counts of reads, archive and search work there too.
    assert [row.access_count for row in two.summaries(two.list_chunks(limit=60)) if row.access_count] == [
        2
    ] * 5
    archived = two.list_chunks(archived=True)
    assert two.restore_chunk(archived[0]) is not None


@pytest.mark.parametrize("target", ["vault", "all.zip"])
def test_files_of_one_chunk_each_are_stored_together_and_those_with_a_problem_read_again(
    open_store: Open, tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = open_store("one"), open_store("two")
    for number in range(30):
        one.create_chunk(f"Memory {number}." if number != 7 else "password=Tr0ub4dor&3-aaaa", secrets="keep")
    export_store(one, tmp_path / target)
    begun: list[object] = []
    transaction = two.backend.transaction
    monkeypatch.setattr(two.backend, "transaction", lambda name: begun.append(name) or transaction(name))
    report = import_source(two, tmp_path / target, secrets="refuse")
    assert (report.created, report.problem_count) == (29, 1)
    assert len(begun) < 40  # each chunk joins the transaction of all
    again = import_source(two, tmp_path / target, secrets="refuse")
    assert (again.unchanged_files, again.created, again.problem_count) == (29, 0, 1)


def test_wiki_links_of_a_vault_lead_to_exactly_one_file(store: ChunkStore, tmp_path: Path) -> None:
    fill(store, 30)
    export_store(store, tmp_path / "vault")
    files = [path.stem for path in (tmp_path / "vault").rglob("chunk-*.md")]
    assert len(files) == len(set(files)) == 30
    linked = 0
    for path in (tmp_path / "vault").rglob("chunk-*.md"):
        fields = read_frontmatter(path.read_text(encoding="utf-8").split("\n---\n")[0].removeprefix("---\n"))
        for link in fields.get("related", []):
            linked += 1
            assert link.removeprefix("[[").removesuffix("]]") in files
    assert linked


@pytest.mark.slow
@pytest.mark.parametrize("target", ["vault", "all.jsonl"])
def test_ten_thousand_chunks_come_back_the_same(open_store: Open, tmp_path: Path, target: str) -> None:
    one, two = open_store("one"), open_store("two")
    fill(one, 10_000)
    export_store(one, tmp_path / target)
    assert import_source(two, tmp_path / target).created == 10_000
    assert state(two) == state(one)


def test_an_archived_chunk_that_was_imported_is_found_again_once_restored(
    open_store: Open, tmp_path: Path
) -> None:
    from rlm_mem.search import search

    one, two = open_store("one"), open_store("two")
    chunk = one.create_chunk("The kestrel nests under the eaves of the pump house.")
    one.delete_chunk(chunk.id)
    export_store(one, tmp_path / "x.jsonl")
    import_source(two, tmp_path / "x.jsonl")
    assert two.get_chunk(chunk.id) is None
    two.restore_chunk(chunk.id)
    assert [hit.chunk_id for hit in search(two, "kestrel nests")] == [chunk.id]


def test_importing_twice_changes_nothing(open_store: Open, tmp_path: Path) -> None:
    one, two = open_store("one"), open_store("two")
    fill(one, 20)
    export_store(one, tmp_path / "vault")
    import_source(two, tmp_path / "vault")
    before = state(two)
    report = import_source(two, tmp_path / "vault", again=True)
    assert (report.created, report.updated, report.kept, report.known) == (0, 0, 0, 20)
    assert import_source(two, tmp_path / "vault").unchanged_files == 20
    assert state(two) == before


@pytest.mark.local_only("look at files")
def test_a_dry_run_reports_what_would_happen_and_writes_nothing(open_store: Open, tmp_path: Path) -> None:
    one, two = open_store("one"), open_store("two")
    fill(one, 20)
    export_store(one, tmp_path / "x.zip")
    planned = import_source(two, tmp_path / "x.zip", dry_run=True)
    assert state(two) == {}
    assert not (two.base_path / "imports").exists()
    done = import_source(two, tmp_path / "x.zip")
    assert (planned.created, planned.namespaces) == (done.created, done.namespaces)


def test_an_edit_in_the_vault_becomes_a_new_revision(store: ChunkStore, tmp_path: Path) -> None:
    chunk = store.create_chunk("The meeting is on Monday.", tags=["plan"])
    other = store.create_chunk("Rooms are booked by Ada.")
    export_store(store, tmp_path / "vault")
    file = next((tmp_path / "vault").rglob(f"{chunk.id}.md"))
    edited = file.read_text().replace("Monday", "Tuesday").replace("[plan]", "[plan, moved]")
    file.write_text(
        edited.replace("revision: 1\n", f'revision: 1\nrelated: ["[[{other.id}]]"]\nmood: calm\n')
    )
    report = import_source(store, tmp_path / "vault")
    assert (report.updated, report.known) == (1, 1)
    now = store.get_chunk(chunk.id)
    assert now is not None
    assert (now.content, now.tags, now.revision) == ("The meeting is on Tuesday.", ["plan", "moved"], 2)
    assert now.metadata.content_hash == content_hash(now.content)
    assert [(link.target_id, link.type) for link in now.links] == [(other.id, "related_to")]
    assert now.metadata.extra["mood"] == "calm"
    assert [version.revision for version in store.history(chunk.id)] == [1, 2]


def test_newer_revisions_of_the_store_are_kept_and_named(store: ChunkStore, tmp_path: Path) -> None:
    chunk = store.create_chunk("Version one.")
    gone = store.create_chunk("Deleted later.")
    export_store(store, tmp_path / "x.jsonl")
    store.update_chunk(chunk.id, content="Version two.")
    store.delete_chunk(gone.id)
    report = import_source(store, tmp_path / "x.jsonl")
    assert report.kept == 2
    assert present(store.get_chunk(chunk.id)).content == "Version two."
    assert store.get_chunk(gone.id) is None
    assert import_source(store, tmp_path / "x.jsonl", replace=True, again=True).updated == 2
    assert present(store.get_chunk(chunk.id)).content == "Version one."


@pytest.mark.local_only("share ids between namespaces, which rows need not")
def test_an_id_that_belongs_to_another_memory_is_mapped(open_store: Open, tmp_path: Path) -> None:
    one, two = open_store("one"), open_store("two", namespace="other")
    one.create_chunk("Ours.", chunk_id="chunk-001")
    two.create_chunk("Theirs.", chunk_id="chunk-001")
    export_store(one, tmp_path / "x.jsonl")
    for _ in range(2):
        report = import_source(two, tmp_path / "x.jsonl", again=True)
        mapped = report.mapped["chunk-001"]
        assert {chunk.content for chunk in two.iter_chunks(namespace="default")} == {"Ours."}
        assert two.backend.find("default", mapped) is not None
    assert present(two.get_chunk("chunk-001")).content == "Theirs."


@pytest.mark.local_only("share ids between namespaces, which rows need not")
def test_a_copy_in_another_namespace_of_the_brain_is_linked_in_itself(
    open_store: Open, tmp_path: Path
) -> None:
    one, two = open_store("one"), open_store("one", namespace="other")
    ids = [one.create_chunk(text).id for text in ("Pears.", "Apples.", "Plums.")]
    one.add_link(ids[0], ids[2], "supports")
    one.supersede(ids[0], ids[1])
    export_store(one, tmp_path / "x.jsonl")
    new = import_source(two, tmp_path / "x.jsonl", keep_namespaces=False).mapped
    assert sorted(new) == sorted(ids) and sorted(new.values()) == sorted(two.list_chunks())
    assert [(link.type, link.chunk_id) for link in two.linked(new[ids[0]])] == [("supports", new[ids[2]])]
    copied = two.get_many(list(new.values()))
    assert copied[new[ids[0]]].metadata.superseded_by == new[ids[1]]
    assert check(one) == check(two) == []
    again = import_source(two, tmp_path / "x.jsonl", keep_namespaces=False, again=True)
    assert (again.known, again.updated) == (3, 0)


def test_everything_can_go_into_one_namespace(open_store: Open, tmp_path: Path) -> None:
    one, two = open_store("one"), open_store("two", namespace="mine")
    fill(one, 10)
    export_store(one, tmp_path / "x.jsonl")
    import_source(two, tmp_path / "x.jsonl", keep_namespaces=False)
    assert [name for name, _ in two.namespaces()] == ["mine"]


# --- the two functions for Markdown ---------------------------------------------------------------------


def test_export_to_markdown_is_what_the_document_shows(store: ChunkStore) -> None:
    chunk = store.create_chunk("Content here", tags=["a", "b"])
    lines = export_to_markdown(chunk.id, store=store).split("\n")
    assert lines[0] == "---"
    assert lines[1] == f"id: {chunk.id}"
    assert "tags: [a, b]" in lines
    assert lines[-3:] == ["---", "Content here", ""]
    assert present(store.get_chunk(chunk.id, track=False)).metadata.access_count == 0
    with pytest.raises(NotFoundError):
        export_to_markdown("chunk-none", store=store)


def test_the_documented_import_path_finds_the_brain_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_store: Open
) -> None:
    monkeypatch.setenv("RLM_MEM_BRAIN", str(tmp_path / "found"))
    (tmp_path / "note.md").write_text("Ada keeps the key of the boat shed.")
    made = brain.scripts.import_from_markdown(str(tmp_path / "note.md"))
    assert [chunk.content for chunk in made] == ["Ada keeps the key of the boat shed."]
    assert brain.scripts.export_to_markdown(made[0].id).endswith("---\nAda keeps the key of the boat shed.\n")


def test_import_from_markdown_takes_an_exported_chunk_back(open_store: Open, tmp_path: Path) -> None:
    one, two = open_store("one"), open_store("two")
    chunk = one.create_chunk("A fact.", "fact", confidence=0.9)
    (tmp_path / "one.md").write_text(export_to_markdown(chunk.id, store=one))
    assert import_from_markdown(tmp_path / "one.md", store=two) == [chunk]
    (tmp_path / "bad.md").write_text("---\nid: chunk-x\ntype: note\nconfidence: 7\n---\ntext\n")
    with pytest.raises(InputError, match="confidence"):
        import_from_markdown(tmp_path / "bad.md", store=two)


# --- targets ---------------------------------------------------------------------------------------


@pytest.mark.local_only("look at files")
def test_nothing_is_overwritten_by_default(store: ChunkStore, tmp_path: Path) -> None:
    store.create_chunk("One.")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.md").write_text("private")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="not empty"):
            export_store(store, tmp_path / "mine", overwrite=overwrite)
    (tmp_path / "x.zip").write_text("something")
    with pytest.raises(InputError, match="exists already"):
        export_store(store, tmp_path / "x.zip")
    with pytest.raises(InputError, match="inside the store"):
        export_store(store, store.base_path / "out")
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(InputError, match="not a regular file"):
        export_store(store, tmp_path / "pipe.jsonl", overwrite=True)
    for name in ("out.pdf", "out.MD", "out.tar.gz", "out.json"):
        with pytest.raises(InputError, match="no export format"):
            export_store(store, tmp_path / name)
        assert not (tmp_path / name).exists()
    for name in ("notes-2026.11", "out.v2/"):
        assert export_store(store, f"{tmp_path}/{name}").format == "markdown"
    assert export_store(store, tmp_path / "out.pdf", format="markdown").chunks == 1


def test_files_of_an_archive_have_the_time_of_the_export(store: ChunkStore, tmp_path: Path) -> None:
    store.create_chunk("one")
    began = time.localtime()[:3]
    export_store(store, tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "x.zip") as packed:
        assert len(packed.infolist()) > 2
        assert all(entry.date_time[:3] >= began for entry in packed.infolist())


@pytest.mark.parametrize("target", ["vault", "new/below/vault", "new/all.jsonl", "new/all.zip"])
def test_a_failed_export_leaves_nothing(
    store: ChunkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    store.create_chunk("The gate is green.")
    (tmp_path / "out").mkdir()

    def full(*_: Any, **__: Any) -> Any:
        yield "personalities/one.md", b"#"
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rlm_mem.interchange.export.exported_files", full)
    with pytest.raises(StorageError, match="No space left"):
        export_store(store, tmp_path / "out" / target)
    assert list((tmp_path / "out").iterdir()) == []
    (tmp_path / "out" / "kept").mkdir()
    with pytest.raises(StorageError):
        export_store(store, tmp_path / "out" / "kept" / target)
    assert list((tmp_path / "out" / "kept").iterdir()) == []


def test_a_second_export_leaves_nothing_of_the_first(store: ChunkStore, tmp_path: Path) -> None:
    chunk = store.create_chunk("One.")
    export_store(store, tmp_path / "vault")
    (tmp_path / "vault" / "own.md").write_text("kept")
    store.delete_chunk(chunk.id)
    export_store(store, tmp_path / "vault", overwrite=True)
    assert [path.parent.name for path in (tmp_path / "vault").rglob("chunk-*.md")] == ["archive"]
    assert (tmp_path / "vault" / "own.md").exists()


def test_an_export_that_fails_leaves_the_former_one_complete(
    store: ChunkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_chunk("The gate is green.")
    vault = tmp_path / "vault"
    export_store(store, vault)
    former = {path: path.read_bytes() for path in vault.rglob("*") if path.is_file()}
    store.create_chunk("The gate is red.")

    def full(*_: Any, **__: Any) -> Any:
        yield "personalities/one.md", b"#"
        raise OSError(28, "No space left on device")

    rename = Path.rename

    def interrupted(path: Path, target: Path) -> Path:
        if path.name == "README.md" and "made" in path.parts:
            raise KeyboardInterrupt
        return rename(path, target)

    for name, fails, error in (
        ("rlm_mem.interchange.export.exported_files", full, StorageError),
        ("rlm_mem.interchange.export.Path.rename", interrupted, KeyboardInterrupt),
    ):
        with monkeypatch.context() as patch, pytest.raises(error):
            patch.setattr(name, fails)
            export_store(store, vault, overwrite=True)
        assert {path: path.read_bytes() for path in vault.rglob("*") if path.is_file()} == former
    assert export_store(store, vault, overwrite=True).chunks == 2
    assert sorted(path.name for path in vault.iterdir()) == sorted(
        {path.relative_to(vault).parts[0] for path in former}
    )


def test_json_lines_are_the_canonical_chunks(store: ChunkStore, tmp_path: Path) -> None:
    chunk = store.create_chunk("One.")
    export_store(store, tmp_path / "x.jsonl")
    assert json.loads((tmp_path / "x.jsonl").read_text()) == chunk.to_dict()


def test_frontmatter_that_other_tools_write_is_read() -> None:
    fields = read_frontmatter("title: 'A: b'\ntags:\n- x\n- y\ndate: 2026-02-10\nnested: {a: [1, 2]}\n")
    assert fields == {"title": "A: b", "tags": ["x", "y"], "date": "2026-02-10", "nested": {"a": [1, 2]}}


def test_an_import_into_other_namespaces_keeps_what_is_newer_there_and_undo_takes_it_back(
    place: Path | str, tmp_path: Path
) -> None:
    """A process that has not used a namespace before reads what is in it, and logs what it does there in it."""
    with Memory.open(place, namespace="team/a") as memory:
        kept = memory.remember("Dana lives in Berlin.").chunk_ids[0]
        gone = memory.remember("The quay is closed.").chunk_ids[0]
        export_store(memory.store, tmp_path / "former.jsonl")
        memory.update(kept, "Dana lives in Ulm.")
        memory.delete(gone, permanent=True)
    with Memory.open(place, namespace="team/b") as memory:
        report = import_source(memory.store, tmp_path / "former.jsonl")
        assert (report.created, report.updated, len(report.conflicts)) == (1, 0, 1)
        assert not list(memory.events(op="import")), "nothing of this namespace was changed"
    with Memory.open(place, namespace="team/a") as memory:
        chunk = memory.get(kept)
        assert chunk is not None and (chunk.content, chunk.revision) == ("Dana lives in Ulm.", 2)
        assert [event.chunk_ids for event in memory.events(op="import")] == [(gone,)]
        undone = memory.undo()
        assert undone is not None and undone.chunk_ids == (gone,) and memory.list_chunks() == [kept]
        assert memory.check() == []
    with Memory.open(place, namespace="team/b") as memory:
        with memory.batch():
            memory.remember("The ferry is back.")
            memory.store.create_chunk("The quay is open.", namespace="team/a")
        undone = memory.undo()
        assert undone is not None and len(undone.chunk_ids) == 1
    with Memory.open(place, namespace="team/a") as memory:
        assert memory.list_chunks() == [kept], "a change of two namespaces is undone in both"


HAND_WRITTEN = """---
id: chunk-2026-02-10-a1b2c3d4
type: fact
created: 2026-02-10T10:00:00Z
tags: fruit, garden
mood: glad
---
The quince blooms.
"""


def test_a_chunk_that_a_person_wrote_as_markdown_is_read() -> None:
    chunk, archived = chunk_from_markdown(HAND_WRITTEN)
    assert not archived
    assert (chunk.content, chunk.tags) == ("The quince blooms.", ["fruit", "garden"])
    assert chunk.metadata.created_at == "2026-02-10T10:00:00.000000Z"
    assert chunk.metadata.extra == {"mood": "glad"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("archived: maybe", "archived must be true or false"),
        ("extra: 5", "extra must be a table"),
        ("chunk_extra: [1]", "chunk_extra must be a table"),
        ("content_encoding: rot13", "content_encoding 'rot13' is not known"),
        ("provenance: 5", "provenance must be an object"),
    ],
)
def test_a_wrong_field_of_markdown_is_refused_in_words(line: str, message: str) -> None:
    with pytest.raises(InvalidChunk, match=message):
        chunk_from_markdown(HAND_WRITTEN.replace("mood: glad", line))


def test_an_export_to_a_wrong_place_or_of_an_unknown_format_is_refused(
    store: ChunkStore, tmp_path: Path
) -> None:
    (tmp_path / "chunks.md").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match="Markdown is exported to a folder"):
        export_store(store, tmp_path / "chunks.md", format="markdown")
    with pytest.raises(InputError, match="unknown format 'pdf'"):
        export_store(store, tmp_path / "chunks", format="pdf")
