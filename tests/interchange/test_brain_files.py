"""Tiered memories, personas and trajectories leave with an export, and come back byte for byte."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.config import Config
from rlm_mem.interchange import export_store, import_source
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.proposals import Proposal
from tests.continuum.conftest import added

STEPS = [{"tool": "Fetch", "call": "the page", "validation": "status 200"}]
PLACES = {
    "workspace/state/plan.md",
    "system/memory_log.md",
    "memory/log/continuum.jsonl",
    "persona/default.json",
    "personalities/MINE.md",
    "namespaces/team%2Fana/system/profiles/ana.md",
}


def opened(brain: Path | str, namespace: str | None = None) -> Memory:
    config = Config.load(None, environ={}, store={"durability": "normal"})
    return Memory.open(
        brain, namespace=namespace, config=config, llm=ScriptedLLM(["```repl\nFINAL('Yes.')\n```"] * 9)
    )


def fill(brain: Path | str) -> None:
    """Something of every kind, in two namespaces."""
    with opened(brain) as memory:
        tiers = memory.continuum
        tiers.workspace.start("1. fetch\n2. write")
        tiers.traces.record("Fetch a page", STEPS, success=True, indicators=["done"], project="a")
        tiers.consolidate()
        added(tiers, "system/memory_log.md", "Quince", "Graft in March.\r\n")
        memory.store.backend.files("default").write(
            "personalities/MINE.md", b"# MINE Mode\n\n## Configuration\n- Humor: 5\n"
        )
        memory.persona(keep=True).say("Mine mode and max soul")
        memory.remember("The boat shed key hangs behind the clock.")
        memory.recall("Where does the key hang?")
    with opened(brain, "team/ana") as memory:
        added(memory.continuum, "system/profiles/ana.md", "Ana", "Likes trains.")
        memory.recall("What does Ana like?")


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def everything(memory: Memory) -> dict[tuple[str, str], bytes | None]:
    """Every file of both namespaces but what importing itself notes down."""
    found = {}
    for namespace in ("default", "team/ana"):
        stored = memory.store.backend.files(namespace)
        names = [name for name in stored.names("", recursive=True) if not name.startswith("imports/")]
        found |= {(namespace, name): stored.read(name) for name in names}
    return found


@pytest.fixture
def source(tmp_path: Path) -> Path:
    fill(tmp_path / "source")
    return tmp_path / "source"


@pytest.fixture
def memories() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def copy(place: Path | str, memories: ExitStack) -> Memory:
    """An empty memory to import into."""
    return memories.enter_context(opened(place))


@pytest.mark.parametrize("target", ["vault", "all.zip", "all.jsonl"])
def test_what_a_brain_has_beside_chunks_comes_back_byte_for_byte(
    source: Path, tmp_path: Path, memories: ExitStack, copy: Memory, target: str
) -> None:
    memory = memories.enter_context(opened(source))
    report = export_store(memory.store, tmp_path / target)
    done = import_source(copy.store, tmp_path / target)
    assert done.problems == done.conflicts == []
    assert done.persona_files + done.brain_files >= report.files
    export_store(memory.store, tmp_path / "one")
    export_store(copy.store, tmp_path / "two")
    assert tree(tmp_path / "two") == tree(tmp_path / "one")
    assert {f"files/{place}" for place in PLACES} <= set(tree(tmp_path / "one"))


def test_imported_files_work_like_those_made_there(
    source: Path, tmp_path: Path, memories: ExitStack, copy: Memory
) -> None:
    memory = memories.enter_context(opened(source))
    export_store(memory.store, tmp_path / "vault")
    import_source(copy.store, tmp_path / "vault")
    before = {chunk.id: chunk.to_dict() for chunk in copy.store.iter_chunks()}
    copy.continuum.sync()
    assert {chunk.id: chunk.to_dict() for chunk in copy.store.iter_chunks()} == before
    assert copy.continuum.check() == []
    assert [one.key for one in copy.continuum.queries.query("Fetch a page").hits] == [
        "memory/long_term/execution_trace_fetch_a_page_v1.md"
    ]
    assert copy.persona(keep=True).mode == "MINE"
    assert [one.id for one in copy.trajectories()] == [one.id for one in memory.trajectories()] != []
    assert list(copy.continuum.changes.journal()) == list(memory.continuum.changes.journal())
    copy.continuum.undo(copy.continuum.changes.transitions()[-1])
    assert copy.continuum.files.names().count("memory/long_term/execution_trace_fetch_a_page_v1.md") == 0


def test_importing_again_adds_nothing_and_a_file_that_differs_is_kept(
    source: Path, tmp_path: Path, memories: ExitStack, copy: Memory
) -> None:
    memory = memories.enter_context(opened(source))
    export_store(memory.store, tmp_path / "vault")
    import_source(copy.store, tmp_path / "vault")
    before = everything(copy)
    again = import_source(copy.store, tmp_path / "vault", again=True)
    assert (again.brain_files, again.persona_files, again.conflicts) == (0, 0, [])
    place = tmp_path / "vault" / "files" / "system" / "memory_log.md"
    place.write_text("# Another log\n", encoding="utf-8")
    kept = import_source(copy.store, tmp_path / "vault")
    assert [one.reason for one in kept.conflicts] == ["system/memory_log.md exists already, and was kept"]
    assert everything(copy) == before
    replaced = import_source(copy.store, tmp_path / "vault", again=True, replace=True)
    assert replaced.brain_files == 1
    stored = copy.store.backend.files("default")
    assert stored.read("system/memory_log.md") == b"# Another log\n"
    aside = [stored.read(name) for name in stored.names("archive/conflicts")]
    assert aside == [before["default", "system/memory_log.md"]]


@pytest.mark.parametrize("target", ["vault", "all.jsonl"])
def test_files_name_memories_whose_ids_were_taken_by_their_new_ids(
    tmp_path: Path, memories: ExitStack, copy: Memory, target: str
) -> None:
    """Otherwise rejecting what was captured elsewhere would archive a memory of this brain."""
    memory = memories.enter_context(opened(tmp_path / "source"))
    made = [
        memory.store.create_chunk(
            f"Gate {number} is locked.", chunk_id=f"chunk-00{number}", conversation_id="s-1"
        )
        for number in (1, 2)
    ]
    memory.link("chunk-002", "chunk-001", "supports")
    with memory.store.files.transaction():
        case = memory.continuum.review.add_captured("s-1", "claude-code", made)
    added(
        memory.continuum,
        "system/profiles/ana.md",
        "Ana",
        "Locks the gates (chunk-001, chunk-002), _chunk-001_ first.\n",
    )
    memory.store.files.write(
        "trajectories/2026-01/traj-20260101T000000-00000000.jsonl",
        b'{"kind": "start", "format": 1, "namespace": "default", "query": "as in\\nchunk-001"}\n',
    )
    export_store(memory.store, tmp_path / target, history=True)
    copy.store.create_chunk("Mine.", chunk_id="chunk-001")
    for again in (False, True):
        done = import_source(copy.store, tmp_path / target, history=True, again=again)
        new = done.mapped["chunk-001"]
        assert (done.notices, done.problems, done.conflicts) == ([], [], [])
    stored = copy.store.files
    profile = (tmp_path / target / "files/system/profiles/ana.md").read_text() if target == "vault" else None
    assert f"({new}, chunk-002), _{new}_".encode() in (stored.read("system/profiles/ana.md") or b"")
    assert f"as in\\n{new}".encode() in (
        stored.read(next(iter(stored.names("trajectories", recursive=True)))) or b""
    )
    if profile is not None:  # a file that was edited since is compared as the new ids make it
        place = tmp_path / target / "files/system/profiles/ana.md"
        place.write_text(profile + "\n", encoding="utf-8")
        import_source(copy.store, tmp_path / target, replace=True)
        assert f"({new}, chunk-002)".encode() in (stored.read("system/profiles/ana.md") or b"")
    assert copy.continuum.review.case(case.id).chunk_ids == [new, "chunk-002"]
    copy.continuum.review.reject(case.id, reviewer="Ana", reason="Not ours.")
    assert [copy.store.exists(one) for one in ("chunk-001", new, "chunk-002")] == [True, False, False]


def test_the_case_of_a_proposal_is_the_one_of_its_new_ids(
    tmp_path: Path, memories: ExitStack, copy: Memory
) -> None:
    """Otherwise the same proposal would be queued a second time."""
    memory = memories.enter_context(opened(tmp_path / "source"))
    red, blue = "The gate is red.", "The gate is blue."
    newer, older = (
        memory.store.create_chunk(text, chunk_id=f"chunk-00{number}").id
        for number, text in enumerate((red, blue), 1)
    )
    with memory.store.files.transaction():
        memory.continuum.review.add_proposed(
            [Proposal("replace", newer, older, red, blue, 0.6, "so", applied=False)]
        )
    export_store(memory.store, tmp_path / "all.jsonl")
    copy.store.create_chunk("Mine.", chunk_id="chunk-001")
    for again in (False, True):
        done = import_source(copy.store, tmp_path / "all.jsonl", again=again)
        assert (done.problems, done.conflicts) == ([], [])
    (case,) = copy.continuum.review.cases()
    assert case.chunk_ids == [done.mapped["chunk-001"], "chunk-002"]
    newer, older = case.chunk_ids
    same = Proposal("replace", newer, older, red, blue, 0.6, "so", applied=False)
    with copy.store.files.transaction():
        assert copy.continuum.review.add_proposed([same]) == [case.id]
    assert len(copy.continuum.review.cases()) == 1


def test_a_review_case_without_an_id_is_stored_as_it_is(tmp_path: Path, copy: Memory) -> None:
    place, text = "system/review/x.json", '{"kind":"replace","chunk_ids":[],"id":""}'
    (tmp_path / "x.jsonl").write_text(json.dumps({"brain_file": place, "text": text}))
    assert import_source(copy.store, tmp_path / "x.jsonl").problems == []
    assert copy.store.files.read(place) == text.encode()


def test_tiered_memories_copied_to_another_namespace_are_mirrored_once(
    place: Path | str, tmp_path: Path, memories: ExitStack
) -> None:
    with opened(place) as memory:
        added(memory.continuum, "system/profiles/ana.md", "Ana", "Likes trains.")
        memory.continuum.sync()
        export_store(memory.store, tmp_path / "all.jsonl")
    copy = memories.enter_context(opened(place, "team"))
    for _ in range(2):
        import_source(copy.store, tmp_path / "all.jsonl", keep_namespaces=False, again=True)
        copy.continuum.sync()
        (mirror,) = copy.store.iter_chunks()
        assert copy.continuum.files.in_file("system/profiles/ana.md")[0].chunk_id == mirror.id
    other = memories.enter_context(opened(place, "other"))
    added(other.continuum, "system/profiles/ana.md", "Ana", "Likes planes.")
    other.continuum.sync()
    done = import_source(other.store, tmp_path / "all.jsonl", keep_namespaces=False)
    assert len(done.conflicts) == 2, "the file, and its mirror"
    assert [chunk.content.splitlines()[-1] for chunk in other.store.iter_chunks()] == ["Likes planes."]


def test_a_memory_whose_id_only_looks_like_that_of_a_mirror_keeps_it(
    tmp_path: Path, memories: ExitStack
) -> None:
    memory = memories.enter_context(opened(tmp_path / "source"))
    memory.store.create_chunk("The pump leaks.", chunk_id="chunk-memory-leak")
    export_store(memory.store, tmp_path / "all.jsonl")
    team = memories.enter_context(opened(tmp_path / "other", "team"))
    for again in (False, True):
        import_source(team.store, tmp_path / "all.jsonl", keep_namespaces=False, again=again)
        assert team.store.list_chunks() == ["chunk-memory-leak"]


def test_a_dry_run_writes_no_file(source: Path, tmp_path: Path, memories: ExitStack, copy: Memory) -> None:
    memory = memories.enter_context(opened(source))
    export_store(memory.store, tmp_path / "vault")
    report = import_source(copy.store, tmp_path / "vault", dry_run=True)
    assert report.brain_files > 5
    assert everything(copy) == {}


def test_a_whole_brain_folder_is_imported_unchanged(
    source: Path, tmp_path: Path, memories: ExitStack, copy: Memory
) -> None:
    report = import_source(copy.store, source)
    assert report.problems == []
    assert set(report.formats) == {"brain-file", "chunk-json"}
    memory = memories.enter_context(opened(source))
    export_store(memory.store, tmp_path / "one")
    export_store(copy.store, tmp_path / "two")
    assert tree(tmp_path / "two" / "files") == tree(tmp_path / "one" / "files")


NOWHERE = [
    "../escape.md",
    "memory/index/index.sqlite",
    "memory/archive/continuum/default/pending/20260101-0.json",
    "memory/archive/continuum/../chunk-x.json",
    "memory/chunks/2026-01/chunk-x.json",
    "namespaces/x/memory/archive/x.json",
    "namespaces/../system/x.md",
    "namespaces/%2e%2e/system/x.md",
    "config.toml",
    "memory/log/2026-01.jsonl",
]


def test_files_that_belong_nowhere_are_refused(tmp_path: Path, memories: ExitStack) -> None:
    """An interrupted change in an export would be finished by the next write: whoever made it could write anything."""
    copy = memories.enter_context(opened(tmp_path / "copy"))
    before = set(tree(tmp_path))
    hostile = tmp_path / "hostile.jsonl"
    hostile.write_text("".join(json.dumps({"brain_file": one, "text": "{}"}) + "\n" for one in NOWHERE))
    report = import_source(copy.store, hostile)
    assert [one.reason for one in report.problems] == ["not a valid name of a brain file"] * len(NOWHERE)
    with zipfile.ZipFile(tmp_path / "hostile.zip", "w") as packed:
        packed.writestr("rlm-mem-export.json", "{}")
        for place in NOWHERE:
            packed.writestr(f"files/{place}", "{}")
    assert (report.brain_files, import_source(copy.store, tmp_path / "hostile.zip").brain_files) == (0, 0)
    assert set(tree(tmp_path)) - before == {"hostile.jsonl", "hostile.zip"}


def test_lines_that_name_no_namespace_are_refused_and_the_others_taken(
    tmp_path: Path, memories: ExitStack, place: Path | str
) -> None:
    copy = memories.enter_context(opened(place))
    steps = [
        {"ns": "../..", "id": "a"},
        {"ns": "default", "id": {}},
        {"ns": "default", "id": "b"},
        {"ns": 3},
        [],
    ]
    hostile = tmp_path / "hostile.jsonl"
    files = {
        "memory/log/continuum.jsonl": "".join(json.dumps(one) + "\n" for one in steps),
        "memory/trajectories/2026-01/t.jsonl": '{"namespace": "../.."}\n',
    }
    hostile.write_text(
        "".join(json.dumps({"brain_file": one, "text": text}) + "\n" for one, text in files.items())
    )
    report = import_source(copy.store, hostile)
    assert [one.reason.partition(" is ")[0] for one in report.problems] == ["'../..'"] * 2
    assert report.brain_files == 1
    kept = (copy.store.backend.files("default").read("log/continuum.jsonl") or b"").splitlines()
    assert [json.loads(line)["id"] for line in kept] == [{}, "b"]
    assert import_source(copy.store, hostile, again=True).brain_files == 0


def test_deleted_memories_can_be_left_out(source: Path, tmp_path: Path, memories: ExitStack) -> None:
    memory = memories.enter_context(opened(source))
    export_store(memory.store, tmp_path / "vault", archive=False)
    assert not [name for name in tree(tmp_path / "vault") if "archive" in name]


def test_a_file_that_is_not_text_travels_in_json_lines_too(tmp_path: Path, memories: ExitStack) -> None:
    with opened(tmp_path / "a") as memory:
        memory.store.files.write("workspace/state/photo.md", b"\xff\xfe\x00abc")
        export_store(memory.store, tmp_path / "brain.jsonl")
    damaged = [{"base64": "!!"}, {}, {"text": "\ud800"}]
    with (tmp_path / "brain.jsonl").open("a", encoding="utf-8") as file:
        for number, fields in enumerate(damaged):
            file.write(json.dumps({"brain_file": f"workspace/state/{number}.md", **fields}) + "\n")
    copy = memories.enter_context(opened(tmp_path / "b"))
    report = import_source(copy.store, tmp_path / "brain.jsonl")
    assert copy.store.files.read("workspace/state/photo.md") == b"\xff\xfe\x00abc"
    assert [one.reason for one in report.problems] == [
        "a file whose content is damaged", "a file without content", "a file whose content is damaged",
    ]  # fmt: skip


def test_a_journal_is_imported_into_another_namespace_once(tmp_path: Path, memories: ExitStack) -> None:
    with opened(tmp_path / "a") as memory:
        memory.continuum.traces.record("Fetch a page", STEPS, success=True, indicators=["done"], project="a")
        memory.continuum.consolidate()
        steps = [(one["id"], one["op"]) for one in memory.continuum.changes.journal()]
        export_store(memory.store, tmp_path / "brain.jsonl")
    copy = memories.enter_context(opened(tmp_path / "b", "team"))
    for _ in range(2):
        import_source(copy.store, tmp_path / "brain.jsonl", keep_namespaces=False, again=True)
        assert [(one["id"], one["op"]) for one in copy.continuum.changes.journal()] == steps
