"""Former versions and the audit log leave and come back where both sides ask for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.config import Config
from rlm_mem.errors import NotFoundError
from rlm_mem.interchange import export_store, import_source, importing


@pytest.fixture
def memories() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def source(tmp_path: Path, memories: ExitStack) -> Memory:
    """Chunks with a past, in two namespaces."""
    memory = memories.enter_context(opened(tmp_path / "source"))
    chunk = memory.store.create_chunk("The key hangs behind the clock.")
    memory.update(chunk.id, content="The key hangs behind the new clock.")
    memory.update(chunk.id, content="The key is lost.")
    gone = memory.store.create_chunk("Dana prefers trains.")
    memory.update(gone.id, tags=["travel"])
    memory.delete(gone.id)
    other = memory.store.create_chunk("Theirs.", namespace="team/ana")
    with opened(tmp_path / "source", "team/ana") as theirs:
        theirs.update(other.id, content="Theirs, changed.")
    return memory


@pytest.fixture
def copy(place: Path | str, memories: ExitStack) -> Memory:
    return memories.enter_context(opened(place))


def opened(brain: Path | str, namespace: str | None = None, **sections: Any) -> Memory:
    config = Config.load(None, environ={}, store={"durability": "normal"}, **sections)
    return Memory.open(brain, namespace=namespace, config=config)


def past(memory: Memory) -> dict[str, list[tuple[int, str]]]:
    """Revision and content of every former version of every chunk."""
    found = {}
    for namespace in ("default", "team/ana"):
        for archived in (False, True):
            for chunk_id in memory.store.list_chunks(namespace=namespace, archived=archived):
                versions = memory.store.backend.former_versions(namespace, chunk_id, below=1_000_000)
                found[chunk_id] = [(one.revision, one.chunk.content) for one in versions]
    return found


def log(memory: Memory, namespace: str = "default") -> list[dict[str, Any]]:
    lines = memory.store.backend.read_events(namespace=namespace, since=None, op=None, chunk_id=None)
    return [{**line, "ns": namespace} for line in lines]


@pytest.mark.parametrize("target", ["vault", "all.zip", "all.jsonl"])
def test_former_versions_and_the_audit_log_come_back(
    source: Memory, copy: Memory, tmp_path: Path, target: str
) -> None:
    report = export_store(source.store, tmp_path / target, history=True)
    before = {name: log(source, name) for name in ("default", "team/ana")}
    assert report.versions == sum(map(len, past(source).values())) >= 4
    assert report.events == sum(map(len, before.values()))
    done = import_source(copy.store, tmp_path / target, history=True)
    assert (done.problems, done.versions, done.events) == ([], report.versions, report.events)
    assert past(copy) == past(source)
    for namespace, lines in before.items():
        there = log(copy, namespace)
        assert [line for line in there if line.pop("imported", False)] == lines
    again = import_source(copy.store, tmp_path / target, history=True, again=True)
    assert (again.versions, again.events) == (0, 0)
    (lost,) = copy.store.list_chunks()
    undone = copy.undo(lost)
    assert undone is not None
    assert undone.content == "The key hangs behind the new clock."


@pytest.mark.parametrize("target", ["vault", "all.zip", "all.jsonl"])
def test_an_export_without_former_versions_is_read_without_a_problem(
    copy: Memory, tmp_path: Path, target: str
) -> None:
    with Memory.open(tmp_path / "new") as made:
        made.remember("The quay is closed.")
        assert export_store(made.store, tmp_path / target, history=True).versions == 0
    done = import_source(copy.store, tmp_path / target, history=True)
    assert (done.problems, done.events) == ([], 1)


def test_an_import_without_history_takes_none(source: Memory, copy: Memory, tmp_path: Path) -> None:
    for target in ("vault", "all.jsonl"):
        export_store(source.store, tmp_path / target, history=True)
        done = import_source(copy.store, tmp_path / target)
        assert (done.problems, done.versions, done.events) == ([], 0, 0)
    assert not any(past(copy).values())
    assert {line["op"] for line in log(copy)} == {"import"}


def test_an_export_without_history_has_none(source: Memory, tmp_path: Path) -> None:
    export_store(source.store, tmp_path / "vault")
    export_store(source.store, tmp_path / "all.jsonl")
    assert not (tmp_path / "vault" / "history").exists()
    lines = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert not [line for line in lines if "version" in line or "event" in line]


def test_a_dry_run_counts_and_writes_nothing(source: Memory, copy: Memory, tmp_path: Path) -> None:
    export_store(source.store, tmp_path / "vault", history=True)
    import_source(copy.store, tmp_path / "vault")
    before = log(copy)
    done = import_source(copy.store, tmp_path / "vault", history=True, dry_run=True)
    assert (done.versions > 0, done.events > 0) == (True, True)
    assert log(copy) == before
    assert not any(past(copy).values())


def test_a_dry_run_counts_the_versions_of_chunks_that_are_new_too(
    source: Memory, copy: Memory, tmp_path: Path
) -> None:
    export_store(source.store, tmp_path / "all.jsonl", history=True)
    planned = import_source(copy.store, tmp_path / "all.jsonl", history=True, dry_run=True)
    done = import_source(copy.store, tmp_path / "all.jsonl", history=True)
    assert planned.versions == done.versions > 0


def test_everything_goes_into_one_namespace_with_its_history(
    source: Memory, tmp_path: Path, memories: ExitStack, place: Path | str
) -> None:
    export_store(source.store, tmp_path / "vault", history=True)
    mine = memories.enter_context(opened(place, "mine"))
    done = import_source(mine.store, tmp_path / "vault", history=True, keep_namespaces=False)
    assert done.versions == 4
    assert [name for name, _ in mine.store.namespaces()] == ["mine"]
    assert len(log(mine, "mine")) > done.events


def test_a_line_that_is_neither_a_version_nor_an_event_is_a_problem(
    copy: Memory, tmp_path: Path, source: Memory
) -> None:
    export_store(source.store, tmp_path / "vault", history=True)
    versions = tmp_path / "vault" / "history" / "versions.jsonl"
    versions.write_text(
        versions.read_text()
        + '{"version": {"id": "../x"}}\n{"version": 3}\n{"event": {"op": "create"}}\n'
        + '{"event": {"op": "create", "ts": "2026-01-01", "ns": "../.."}}\n{"other": 1}\nnot json\n'
        + '{"event": {"op": "\\ud800", "ts": "2026-01-01", "ns": "default"}}\n'
    )
    done = import_source(copy.store, tmp_path / "vault", history=True)
    assert done.problem_count == 7
    assert past(copy) == past(source)


def test_the_time_of_an_event_is_read_in_any_form_and_stored_in_one(copy: Memory, tmp_path: Path) -> None:
    event = {"op": "create", "ts": 1_770_000_000, "ns": "default", "chunk_id": "chunk-a"}
    (tmp_path / "x.jsonl").write_text(json.dumps({"event": event}))
    import_source(copy.store, tmp_path / "x.jsonl", history=True)
    assert [line["ts"] for line in log(copy)] == ["2026-02-02T02:40:00.000000Z"]


@pytest.mark.parametrize("action", ["redact", "refuse"])
def test_secrets_of_the_past_go_the_way_of_the_settings(
    source: Memory, tmp_path: Path, memories: ExitStack, place: Path | str, action: str
) -> None:
    secret = "sk-abcdefghijklmnop1234567890abcdef"
    chunk = source.store.create_chunk(f"The key is {secret}.", secrets="keep")
    source.update(chunk.id, content="The key is elsewhere.")
    export_store(source.store, tmp_path / "vault", history=True)
    copy = memories.enter_context(opened(place, secrets={"action": action}))
    done = import_source(copy.store, tmp_path / "vault", history=True)
    former = dict(past(copy)[chunk.id])
    assert secret not in str(former)
    assert (done.problem_count, len(former)) == ((0, 1) if action == "redact" else (1, 0))


def test_no_version_of_the_past_is_trusted_more_than_the_import(
    source: Memory, tmp_path: Path, memories: ExitStack, place: Path | str
) -> None:
    (chunk_id,) = source.remember("The quince blooms.", trust="trusted").chunk_ids
    source.update(chunk_id, "The quince is ripe.")
    export_store(source.store, tmp_path / "vault", history=True)
    copy = memories.enter_context(opened(place))
    import_source(copy.store, tmp_path / "vault", history=True, trust="untrusted")
    assert [one.chunk.metadata.trust for one in copy.history(chunk_id)] == ["untrusted", "untrusted"]


def test_a_secret_in_the_reason_of_a_link_is_hidden(
    source: Memory, tmp_path: Path, memories: ExitStack, place: Path | str
) -> None:
    first, second = (source.store.create_chunk(text).id for text in ("The gate is green.", "It was painted."))
    source.link(first, second, "supports", 0.5, "QUINCE")
    export_store(source.store, tmp_path / "vault.jsonl")
    text = (tmp_path / "vault.jsonl").read_text(encoding="utf-8")
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    (tmp_path / "vault.jsonl").write_text(text.replace("QUINCE", f"the key is {key}"), encoding="utf-8")
    copy = memories.enter_context(opened(place))
    done = import_source(copy.store, tmp_path / "vault.jsonl")
    assert done.secrets == {"aws-access-key": 1}
    assert [link.reasoning for link in copy.links(first, "supports")] == [
        "the key is [redacted:aws-access-key]"
    ]


def test_an_export_of_nothing_but_a_past_is_read_as_one(place: Path | str, tmp_path: Path) -> None:
    with opened(place) as memory:
        memory.delete(memory.remember("The key hangs behind the clock.").chunk_ids[0])
        export_store(memory.store, tmp_path / "past.jsonl", archive=False, history=True)
    with opened(tmp_path / "copy") as memory:
        report = import_source(memory.store, tmp_path / "past.jsonl", history=True)
        assert report.formats == {"chunk-jsonl": 1} and not report.problems
        assert [event.op for event in memory.events()] == ["create", "delete"]


def test_what_names_a_chunk_whose_id_was_taken_names_it_by_its_new_id(
    tmp_path: Path, memories: ExitStack, place: Path | str
) -> None:
    theirs = memories.enter_context(opened(tmp_path / "source"))
    mine = memories.enter_context(opened(place))
    for number in range(1, 6):
        theirs.store.create_chunk(f"Theirs {number}.", chunk_id=f"chunk-00{number}")
        if number < 4:
            mine.store.create_chunk(f"Mine {number}.", chunk_id=f"chunk-00{number}")
    theirs.link("chunk-004", "chunk-001", "supports")
    theirs.link("chunk-001", "chunk-003", "elaborates")  # one that the source has later
    theirs.supersede("chunk-001", "chunk-002")
    theirs.supersede("chunk-004", "chunk-005")
    theirs.update("chunk-003", "Theirs 3, changed.")
    before = [chunk.to_dict() for chunk in mine.store.iter_chunks()]
    for target in ("all.jsonl", "vault"):
        export_store(theirs.store, tmp_path / target, history=True)
    done = import_source(mine.store, tmp_path / "all.jsonl", history=True)
    assert (done.problems, done.created, done.versions) == ([], 5, 7)
    new = {one: done.mapped.get(one, one) for one in (f"chunk-00{number}" for number in range(1, 6))}
    assert [new[one] == one for one in sorted(new)] == [False, False, False, True, True]
    for one, chunk in theirs.store.get_many(list(new)).items():
        copied = mine.store.get_many([new[one]])[new[one]]
        by = chunk.metadata.superseded_by
        assert (copied.content, copied.revision) == (chunk.content, chunk.revision)
        assert copied.metadata.superseded_by == (None if by is None else new[by])
        assert {(link.type, link.target_id) for link in copied.links} == {
            (link.type, new[link.target_id]) for link in chunk.links
        }
        assert [former.chunk.content for former in mine.history(new[one])] == [
            former.chunk.content for former in theirs.history(one)
        ]
    assert [event.op for event in mine.events(chunk_id=new["chunk-003"])] == ["import", "create", "update"]
    assert mine.check() == []
    for target in ("all.jsonl", "vault"):  # again, and from another form: nothing differs
        again = import_source(mine.store, tmp_path / target, history=True, again=True)
        assert (again.known, again.updated, again.conflicts, again.versions, again.events) == (5, 0, [], 0, 0)
    assert mine.undo() is not None
    assert [chunk.to_dict() for chunk in mine.store.iter_chunks()] == before
    assert mine.check() == []


def test_a_memory_that_an_import_keeps_as_it_is_keeps_its_links(
    tmp_path: Path, memories: ExitStack, place: Path | str
) -> None:
    theirs = memories.enter_context(opened(tmp_path / "source"))
    mine = memories.enter_context(opened(place))
    theirs.store.create_chunk("Both have this.", chunk_id="chunk-002")
    export_store(theirs.store, tmp_path / "before.jsonl")
    theirs.store.create_chunk("Theirs.", chunk_id="chunk-001")
    theirs.link("chunk-002", "chunk-001", "supports")
    export_store(theirs.store, tmp_path / "after.jsonl")
    import_source(mine.store, tmp_path / "before.jsonl")
    mine.store.create_chunk("Mine.", chunk_id="chunk-001")
    mine.link("chunk-002", "chunk-001", "elaborates")
    mine.update("chunk-002", "Both had this.")
    kept = mine.store.get_many(["chunk-002"], track=False)
    done = import_source(mine.store, tmp_path / "after.jsonl")
    assert done.mapped and len(done.conflicts) == 1
    assert mine.store.get_many(["chunk-002"], track=False) == kept


def test_undo_takes_the_last_change_of_this_memory_not_one_of_an_imported_log(
    source: Memory, copy: Memory, tmp_path: Path
) -> None:
    export_store(source.store, tmp_path / "all.jsonl", history=True)
    own = copy.remember("The ferry is back.").chunk_ids
    import_source(copy.store, tmp_path / "all.jsonl", history=True)
    assert [one.ops for one in copy.recorded_changes()] == [("import",), ("create",)]
    with pytest.raises(NotFoundError):
        copy.undo(change=source.recorded_changes()[0].id)
    undone = copy.undo()
    assert undone is not None and undone.ops == ("import",) and copy.list_chunks() == own
    undone = copy.undo()
    assert undone is not None and undone.ops == ("create",) and copy.list_chunks() == []
    assert copy.undo() is None


@pytest.mark.parametrize("target", ["all.jsonl", "vault"])
def test_an_import_of_several_namespaces_is_one_change(
    source: Memory, copy: Memory, place: Path | str, tmp_path: Path, target: str
) -> None:
    export_store(source.store, tmp_path / target)
    import_source(copy.store, tmp_path / target)
    with opened(place, "team/ana") as theirs:
        assert len(theirs.list_chunks()) == 1
        assert copy.undo() is not None and copy.list_chunks() == theirs.list_chunks() == []
        theirs.undo(change=theirs.recorded_changes()[0].id)
        assert len(copy.list_chunks()) == len(theirs.list_chunks()) == 1


def test_what_was_undone_from_another_namespace_is_imported_again(
    source: Memory, copy: Memory, place: Path | str, tmp_path: Path
) -> None:
    export_store(source.store, tmp_path / "all.jsonl")
    import_source(copy.store, tmp_path / "all.jsonl")
    with opened(place, "team/ana") as theirs:
        theirs.undo()
        assert copy.list_chunks() == theirs.list_chunks() == []
        import_source(copy.store, tmp_path / "all.jsonl")
        assert len(copy.list_chunks()) == len(theirs.list_chunks()) == 1


def test_an_import_of_many_chunks_is_one_change(
    source: Memory, copy: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "_RECORDS_PER_COMMIT", 200)  # three commits
    source.remember_many([f"Rack {number} is in use." for number in range(550)])
    export_store(source.store, tmp_path / "all.jsonl")
    import_source(copy.store, tmp_path / "all.jsonl")
    assert len(copy.list_chunks()) == 551 and copy.undo() is not None and copy.list_chunks() == []


@pytest.mark.parametrize(
    "text", ["The gate is green.", '[{"role": "user", "content": "The gate is green."}]']
)
def test_an_import_within_a_batch_is_a_part_of_its_change(copy: Memory, tmp_path: Path, text: str) -> None:
    (tmp_path / "source.json" if text[0] == "[" else tmp_path / "source.md").write_text(text)
    with copy.batch():
        first = copy.remember("The boat is blue.").chunk_ids
        report = import_source(copy.store, next(tmp_path.glob("source.*")))
    assert report.created == 1 and report.change == copy.recorded_changes()[0].id
    copy.undo(change=report.change)
    assert first and copy.list_chunks() == []
