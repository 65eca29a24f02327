"""A memory that a brain has under another id is recognised in an export, and not stored a second time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.chunk import Chunk
from rlm_mem.config import Config
from rlm_mem.interchange import export_store, import_source
from rlm_mem.interchange.report import ImportReport

DAY = "2026-03-01T10:00:00Z"


@pytest.fixture
def memories() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def opened(brain: Path | str) -> Memory:
    return Memory.open(brain, config=Config.load(None, environ={}, store={"durability": "normal"}))


@pytest.fixture
def theirs(tmp_path: Path, memories: ExitStack) -> Memory:
    return memories.enter_context(opened(tmp_path / "theirs"))


@pytest.fixture
def mine(place: Path | str, memories: ExitStack) -> Memory:
    return memories.enter_context(opened(place))


def said(memory: Memory, text: str, **more: Any) -> str:
    return memory.store.create_chunk(text, **{"occurred_at": DAY, "conversation_id": "chat", **more}).id


def now(memory: Memory, chunk_id: str) -> Chunk:
    return memory.store.get_many([chunk_id], track=False)[chunk_id]


def exported(memory: Memory, path: Path, **options: Any) -> Path:
    export_store(memory.store, path, history=True, overwrite=True)
    return path


def counts(report: ImportReport) -> tuple[int, int, int, int]:
    assert not report.problems
    return report.created, report.updated, report.known, report.kept


@pytest.mark.parametrize("target", ["all.jsonl", "vault", "all.zip"])
def test_the_same_memory_under_another_id_is_known_and_what_names_it_names_the_local_one(
    theirs: Memory, mine: Memory, tmp_path: Path, target: str
) -> None:
    gate, key, boat = (
        said(theirs, text) for text in ("The gate is green.", "The key is lost.", "The boat leaks.")
    )
    old = said(theirs, "The gate was blue.")
    theirs.link(key, gate, "supports")
    theirs.link(gate, boat, "elaborates")
    theirs.supersede(old, gate)
    theirs.update(gate, tags=["harbour"])
    local = said(mine, "The gate is green.")
    source = exported(theirs, tmp_path / target)
    planned = import_source(mine.store, source, history=True, dry_run=True)
    assert mine.list_chunks() == [local] and counts(planned) == (3, 0, 1, 0)
    done = import_source(mine.store, source, history=True)
    assert counts(done) == (3, 0, 1, 0) and done.mapped == planned.mapped == {gate: local}
    assert done.versions == 2, "the past of the recognised one is not that of the local one"
    chunks = mine.store.get_many([local, key, old])
    assert [(link.type, link.target_id) for link in chunks[key].links] == [("supports", local)]
    assert chunks[old].metadata.superseded_by == local
    assert {(link.type, link.target_id) for link in chunks[local].links} == {
        ("elaborates", boat), ("supersedes", old),
    }  # fmt: skip
    assert mine.check() == []
    before = [chunk.to_dict() for chunk in mine.store.iter_chunks()]
    for again in (False, True):
        repeated = import_source(mine.store, source, history=True, again=again)
        assert (repeated.created, repeated.updated, repeated.kept, repeated.versions) == (0, 0, 0, 0)
    assert [chunk.to_dict() for chunk in mine.store.iter_chunks()] == before
    assert mine.undo() is not None and mine.list_chunks() == [local]
    assert now(mine, local).links == []
    assert mine.undo() is not None and mine.list_chunks() == []


@pytest.mark.parametrize(
    "more",
    [{"type": "fact"}, {"conversation_id": "other"}, {"source": "manual"}, {"occurred_at": "2026-03-02"}],
)
def test_what_differs_in_more_than_its_id_is_another_memory(
    theirs: Memory, mine: Memory, tmp_path: Path, more: dict[str, Any]
) -> None:
    said(mine, "The gate is green.")
    said(theirs, "The gate is green.", **more)
    assert counts(import_source(mine.store, exported(theirs, tmp_path / "all.jsonl"))) == (1, 0, 0, 0)


def test_all_are_kept_if_asked_for_and_then_known_by_their_ids(
    theirs: Memory, mine: Memory, tmp_path: Path
) -> None:
    local, one = said(mine, "The gate is green."), said(theirs, "The gate is green.")
    source = exported(theirs, tmp_path / "all.jsonl")
    assert counts(import_source(mine.store, source, duplicates=True)) == (1, 0, 0, 0)
    assert counts(import_source(mine.store, source, again=True)) == (0, 0, 1, 0)
    assert sorted(mine.list_chunks()) == sorted([local, one])


@pytest.mark.parametrize("order", [1, -1])
def test_equal_memories_of_one_source_are_never_taken_for_each_other(
    theirs: Memory, mine: Memory, tmp_path: Path, order: int
) -> None:
    said(theirs, "The gate is green.", chunk_id="chunk-001")
    said(theirs, "The gate is green.", chunk_id="chunk-002")
    source = exported(theirs, tmp_path / "all.jsonl")
    lines = [line for line in source.read_text().splitlines() if "content" in json.loads(line)][::order]
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "a.jsonl").write_text(lines[0] + "\n")
    assert counts(import_source(mine.store, tmp_path / "part")) == (1, 0, 0, 0)
    (tmp_path / "part" / "b.jsonl").write_text(lines[1] + "\n")
    assert counts(import_source(mine.store, tmp_path / "part")) == (1, 0, 0, 0)


def test_an_edit_of_the_source_or_of_the_memory_does_not_bring_a_second_one(
    theirs: Memory, mine: Memory, tmp_path: Path
) -> None:
    local, one = said(mine, "The gate is green."), said(theirs, "The gate is green.")
    said(theirs, "The boat leaks.")
    source = exported(theirs, tmp_path / "all.jsonl")
    assert counts(import_source(mine.store, source)) == (1, 0, 1, 0)
    theirs.update(one, "The gate is red.")
    assert counts(import_source(mine.store, exported(theirs, source))) == (0, 1, 1, 0)
    assert (now(mine, local).content, now(mine, local).revision) == ("The gate is red.", 2)
    mine.update(local, "The gate is yellow.")
    assert counts(import_source(mine.store, source, again=True)) == (0, 0, 2, 0)
    theirs.update(one, "The gate is black.")
    report = import_source(mine.store, exported(theirs, source))
    assert counts(report) == (0, 0, 1, 1) and local in report.conflicts[0].reason
    assert now(mine, local).content == "The gate is yellow."


def test_a_replacement_that_an_import_completes_is_undone_with_it(
    theirs: Memory, mine: Memory, tmp_path: Path
) -> None:
    """Both chunks of the source are known here; that one replaced the other is not."""
    pairs = [(said(one, "The gate was blue."), said(one, "The gate is green.")) for one in (theirs, mine)]
    theirs.supersede(*pairs[0])
    old, new = pairs[1]
    assert counts(import_source(mine.store, exported(theirs, tmp_path / "all.jsonl"))) == (0, 0, 2, 0)
    assert now(mine, old).metadata.superseded_by == new and mine.check() == []
    undone = mine.undo()
    assert undone is not None and sorted(undone.chunk_ids) == sorted(pairs[1])
    assert now(mine, old).metadata.superseded_by is None and mine.check() == []


def test_links_that_the_source_has_in_another_order_lead_in_no_circle(
    theirs: Memory, mine: Memory, tmp_path: Path
) -> None:
    texts = ("The gate is green.", "The boat leaks.")
    (one, two), (first, second) = ([said(memory, text) for text in texts] for memory in (theirs, mine))
    theirs.link(two, one, "follows")
    mine.link(first, second, "follows")
    assert counts(import_source(mine.store, exported(theirs, tmp_path / "all.jsonl"))) == (0, 0, 2, 0)
    assert mine.check() == []


@pytest.mark.parametrize("both", [False, True])
def test_a_state_without_a_replacement_that_takes_the_place_of_a_replaced_one(
    theirs: Memory, mine: Memory, tmp_path: Path, both: bool
) -> None:
    """The newer chunk still replaces it, unless the source has that one without the replacement, too."""
    old = said(theirs, "The gate was blue.")
    new = said(theirs if both else mine, "The gate is green.")
    source = exported(theirs, tmp_path / "all.jsonl")
    import_source(mine.store, source)
    mine.supersede(old, new)
    import_source(mine.store, source, replace=True, again=True)
    assert now(mine, old).metadata.superseded_by == (None if both else new)
    assert mine.check() == []


def test_a_memory_of_another_system_that_was_edited_here_stays_so_until_it_changes_there(
    mine: Memory, tmp_path: Path
) -> None:
    def noted(text: str) -> tuple[int, int, int, int]:
        one = {"id": "a", "memory": text, "created_at": DAY, "user_id": "ana"}
        (tmp_path / "mem0.json").write_text(json.dumps({"results": [one]}))
        return counts(import_source(mine.store, tmp_path / "mem0.json", again=True))

    assert noted("Ana likes tea.") == (1, 0, 0, 0)
    (one,) = mine.list_chunks()
    mine.update(one, "Ana likes green tea.")
    assert noted("Ana likes tea.") == (0, 0, 0, 1)
    assert now(mine, one).content == "Ana likes green tea."
    assert noted("Ana likes cocoa.") == (0, 1, 0, 0)
    assert noted("Ana likes tea.") == (0, 1, 0, 0), "it changed back there"
    assert now(mine, one).content == "Ana likes tea."
