"""Watching a folder, going on after an interruption, and the commands."""

from __future__ import annotations

import json
import os
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.cli import main
from rlm_mem.errors import InputError
from rlm_mem.ingest.filling import remember_many
from rlm_mem.ingest.remember import store_text
from rlm_mem.interchange import import_source
from rlm_mem.interchange.folders import NO_FOLDER
from rlm_mem.interchange.importing import watch
from rlm_mem.interchange.report import ImportReport, Ledger
from rlm_mem.store.core.chunk_store import ChunkStore

from .conftest import Open


def texts(store: ChunkStore) -> set[str]:
    return {chunk.content for chunk in store.iter_chunks() if chunk.metadata.superseded_by is None}


def test_what_is_new_or_changed_in_a_watched_folder_is_imported(store: ChunkStore, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("The gate is green.")
    steps: list[Any] = [
        lambda: (folder / "b.md").write_text("The boat is blue."),
        lambda: (folder / "a.md").write_text("The gate is painted red."),
        lambda: (folder / "b.md").unlink(),
        lambda: folder.rename(tmp_path / "away"),
        lambda: (tmp_path / "away").rename(folder),
        lambda: None,
    ]
    reports: list[ImportReport] = []
    seen: list[set[str]] = []

    def sleep(_seconds: float) -> None:
        seen.append(texts(store))
        steps.pop(0)()

    watch(store, folder, on_report=reports.append, stop=lambda: not steps, sleep=sleep, settled=0)
    seen.append(texts(store))
    assert seen == [
        {"The gate is green."},
        {"The gate is green.", "The boat is blue."},
        {"The gate is painted red.", "The boat is blue."},
        *[{"The gate is painted red."}] * 4,
    ]
    assert [
        (report.created, report.superseded, report.archived, report.problem_count) for report in reports
    ] == [(1, 0, 0, 0), (1, 0, 0, 0), (1, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]
    assert [one.reason for one in reports[-1].problems] == [NO_FOLDER]


def test_a_file_that_is_just_being_written_is_left_until_later(store: ChunkStore, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    rounds = [1, 2, 3]

    def sleep(_seconds: float) -> None:
        if rounds.pop(0) == 1:
            (folder / "a.md").write_text("Half a sen")
        else:
            assert texts(store) == set()
            (folder / "a.md").write_text("Half a sentence, now whole.")
            os.utime(folder / "a.md", (1_770_000_000, 1_770_000_000))

    watch(store, folder, stop=lambda: len(rounds) == 1, sleep=sleep)
    assert texts(store) == {"Half a sentence, now whole."}


def test_only_a_folder_can_be_watched(store: ChunkStore, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x")
    with pytest.raises(InputError, match="folder"):
        watch(store, tmp_path / "a.md")


def test_an_interrupted_import_continues_where_it_stopped(
    open_store: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm_mem.interchange.import_texts.remember_many", partial(remember_many, batch=5))
    talks = [
        {"uuid": f"u{n}", "chat_messages": [{"sender": "human", "text": f"Gate {n} opens at {n}."}]}
        for n in range(40)
    ]
    (tmp_path / "c.json").write_text(json.dumps(talks))
    one, two = open_store("one"), open_store("two")
    calls: list[None] = []

    def interrupted(*args: Any, **options: Any) -> Any:
        calls.append(None)
        if len(calls) == 23:
            raise KeyboardInterrupt
        return store_text(*args, **options)

    monkeypatch.setattr("rlm_mem.ingest.filling.store_text", interrupted)
    with pytest.raises(KeyboardInterrupt):
        import_source(one, tmp_path / "c.json")
    monkeypatch.setattr("rlm_mem.ingest.filling.store_text", store_text)
    assert len(one.list_chunks()) == 20, "whole commits, nothing of the one that was cut off"
    report = import_source(one, tmp_path / "c.json")
    assert (report.created, report.known) == (20, 20)
    import_source(two, tmp_path / "c.json")
    assert texts(one) == texts(two)


@pytest.mark.local_only("look at files")
def test_without_its_ledger_an_import_finds_existing_chunks(store: ChunkStore, tmp_path: Path) -> None:
    (tmp_path / "n").mkdir()
    (tmp_path / "n/a.md").write_text("The gate is green.")
    os.utime(tmp_path / "n/a.md", (1_770_000_000, 1_770_000_000))
    (tmp_path / "n/b.jsonl").write_text('{"role": "user", "content": "The boat is blue."}')
    import_source(store, tmp_path / "n")
    for file in (store.base_path / "imports").iterdir():
        file.write_text('["cut off')
    shutil.rmtree(store.base_path.parent / "system/folders")
    report = import_source(store, tmp_path / "n")
    assert (report.created, report.updated, len(texts(store))) == (0, 0, 2)
    unit = f"dialogue:file:{tmp_path / 'n/b.jsonl'}#0"
    assert Ledger(store.files).ids(unit), "a line after one that was cut off is whole"


def test_the_ledger_of_imports_is_not_a_finding(store: ChunkStore, tmp_path: Path) -> None:
    from rlm_mem.store.core.integrity import check

    (tmp_path / "a.md").write_text("The gate is green.")
    import_source(store, tmp_path / "a.md")
    assert check(store) == []


def test_secrets_are_counted_in_the_report(open_store: Open, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("The key is AKIA" + "IOSFODNN7EXAMPLE, ask ada@example.org.")
    for action, shown in (("keep", True), ("redact", False)):
        store = open_store(action, secrets={"action": action, "pii": True})
        planned = import_source(store, tmp_path / "a.md", dry_run=True)
        report = import_source(store, tmp_path / "a.md")
        assert planned.secrets == report.secrets == {"aws-access-key": 1, "e-mail-address": 1}
        assert planned.secrets_hidden == report.secrets_hidden == (0 if shown else 2)
        assert any("AKIA" in text for text in texts(store)) is shown
    refusing = open_store("refuse", secrets={"action": "refuse"})
    report = import_source(refusing, tmp_path / "a.md")
    assert "AWS access key" in report.problems[0].reason
    assert texts(refusing) == set()


def test_a_dry_run_of_changed_texts_counts_as_the_import(store: ChunkStore, tmp_path: Path) -> None:
    note, talk = tmp_path / "note.md", tmp_path / "talk.jsonl"
    said = [{"role": "user", "content": "The key is brass."}, {"role": "assistant", "content": "Noted."}]
    for texts in (
        ("The gate is green.", said[:1]),
        ("The gate is red.", said),
        ("The gate is red.", said[:1]),
        ("The gate is green.", said),
    ):
        note.write_text(texts[0])
        talk.write_text("\n".join(map(json.dumps, texts[1])))
        for source in (note, talk):
            planned, done = import_source(store, source, dry_run=True), import_source(store, source)
            assert len(planned.samples) == done.created
            assert planned.change is None
            assert done.change in {event.get("change") for event in store.events()}
            differing = {"dry_run": False, "chunk_ids": done.chunk_ids, "samples": [], "change": done.change}
            assert {**vars(planned), **differing} == vars(done)


def test_secrets_stored_beside_an_import_are_logged(
    store: ChunkStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = "AKIA" + "IOSFODNN7EXAMPLE"
    (tmp_path / "a.md").write_text(f"The key is {key}.")
    made = []
    import_source(
        store, tmp_path / "a.md", progress=lambda *_: made.append(store.create_chunk(f"Mine is {key}.").id)
    )
    logged = [record.getMessage() for record in caplog.records]
    assert made
    assert logged == [f"what looks like an AWS access key was hidden in {one}" for one in made]


# --- the commands ----------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_export_and_import_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert run(capsys, "--brain", one, "remember", "The gate is green.", "--json")[0] == 0
    code, out, _ = run(capsys, "--brain", one, "export", tmp_path / "vault")
    assert code == 0
    assert "exported 1 chunk" in out
    code, out, _ = run(capsys, "--brain", two, "import", tmp_path / "vault", "--json")
    report = json.loads(out)
    assert (code, report["created"], report["problems"]) == (0, 1, [])
    (chunk_id,) = report["chunk_ids"]
    code, out, _ = run(capsys, "--brain", two, "export", "--chunk", chunk_id)
    assert out.startswith(f"---\nid: {chunk_id}\n")
    assert out.endswith("\n---\nThe gate is green.\n")
    code, out, _ = run(capsys, "--brain", two, "export", tmp_path / "x.zip", "--json")
    assert json.loads(out)["chunks"] == 1
    assert run(capsys, "--brain", two, "export", tmp_path / "x.zip")[0] == 2


def test_a_dry_run_by_command_says_what_would_happen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    brain = tmp_path / "brain"
    run(capsys, "--brain", brain, "init")
    (tmp_path / "n").mkdir()
    (tmp_path / "n/a.md").write_text("The gate is green.")
    (tmp_path / "n/b.txt").write_bytes(b"\xff\xfe\xff")
    code, out, _ = run(capsys, "--brain", brain, "import", tmp_path / "n", "--dry-run")
    assert code == 0
    assert "would be imported: 1 new chunk" in out
    assert "not read: b.txt" in out
    assert json.loads(run(capsys, "--brain", brain, "stats", "--json")[1])["chunk_count"] == 0


def test_import_into_a_namespace_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "--brain", tmp_path / "one", "remember", "The gate is green.")
    run(capsys, "--brain", tmp_path / "one", "export", tmp_path / "x.jsonl")
    _, out, _ = run(
        capsys, "--brain", tmp_path / "two", "import", tmp_path / "x.jsonl", "--namespace", "bob", "--json"
    )
    assert json.loads(out)["namespaces"] == {"bob": 1}


def test_bad_input_by_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    brain = tmp_path / "brain"
    assert run(capsys, "--brain", brain, "import", tmp_path / "nothing")[0] == 1
    assert run(capsys, "--brain", brain, "export")[0] == 2
    (tmp_path / "x.json").write_text("[")
    assert run(capsys, "--brain", brain, "import", tmp_path / "x.json", "--format", "chatgpt")[0] == 1
    code, _, err = run(capsys, "--brain", brain, "import", tmp_path, "--watch", "--dry-run")
    assert code == 2
    assert "--watch" in err
