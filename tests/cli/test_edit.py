"""link, unlink, update, edit, delete, restore, undo."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from pathlib import Path

import pytest

from rlm_mem import Memory

from .conftest import Run

Notes = dict[str, str]
MISSING = "chunk-2026-01-01-00000000"


def test_link_and_unlink(run: Run, notes: Notes) -> None:
    made = run(
        "link", notes["reason"], notes["choice"], "supports", "--strength", "0.9", "--reason", "it says why"
    )
    assert made.code == 0
    (found,) = run("links", notes["reason"], "--type", "supports", "--json").json
    assert (found["chunk_id"], found["strength"], found["reasoning"]) == (notes["choice"], 0.9, "it says why")
    assert run("unlink", notes["reason"], notes["choice"]).code == 0
    assert run("links", notes["reason"], "--json").json == []


@pytest.mark.parametrize(
    "arguments",
    [["likes"], ["supports", "--strength", "1.5"], ["supports", "--strength", "strong"]],
)
def test_an_invalid_link_is_bad_input(run: Run, notes: Notes, arguments: list[str]) -> None:
    ran = run("link", notes["reason"], notes["choice"], *arguments)
    assert ran.code == 2
    assert len(ran.err.splitlines()) <= 2


def test_a_link_to_a_missing_chunk_is_refused(run: Run, notes: Notes) -> None:
    ran = run("link", notes["reason"], MISSING, "supports")
    assert ran.code in (1, 2)
    assert MISSING in ran.err


def test_removing_a_link_that_is_not_there_is_a_failure(run: Run, notes: Notes) -> None:
    assert run("unlink", notes["reason"], notes["choice"]).code == 1


def test_update_changes_what_is_named_and_nothing_else(run: Run, notes: Notes) -> None:
    changed = run("update", notes["tea"], "--confidence", "0.95", "--type", "fact", "--json").json
    assert (changed["metadata"]["confidence"], changed["type"]) == (0.95, "fact")
    assert (changed["content"], changed["tags"]) == ("Ana drinks green tea in the morning.", ["people"])


def test_update_takes_content_from_stdin(run: Run, notes: Notes) -> None:
    run("update", notes["tea"], "--content", "-", stdin="Ana drinks coffee now.")
    assert run("show", "--raw", notes["tea"]).out == "Ana drinks coffee now.\n"


def test_update_can_remove_every_tag(run: Run, notes: Notes) -> None:
    assert run("update", notes["tea"], "--no-tags", "--json").json["tags"] == []


def test_update_with_nothing_to_change_is_bad_input(run: Run, notes: Notes) -> None:
    assert run("update", notes["tea"]).code == 2


def test_update_refuses_a_confidence_out_of_range(run: Run, notes: Notes) -> None:
    assert run("update", notes["tea"], "--confidence", "2").code == 2


def test_update_expecting_an_older_revision_fails_and_changes_nothing(run: Run, notes: Notes) -> None:
    run("update", notes["tea"], "--content", "first")
    ran = run("update", notes["tea"], "--content", "second", "--expect", "1")
    assert ran.code == 1
    assert run("show", "--raw", notes["tea"]).out == "first\n"


def test_update_of_a_chunk_that_is_not_there_is_a_failure(run: Run, notes: Notes) -> None:
    assert run("update", MISSING, "--content", "x").code == 1


def editor(tmp_path: Path, script: str) -> str:
    path = tmp_path / "editor"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_edit_stores_what_the_editor_left(
    run: Run, notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", editor(tmp_path, 'sed -i s/green/white/ "$1"'))
    assert run("edit", notes["tea"]).code == 0
    assert run("show", "--raw", notes["tea"]).out == "Ana drinks white tea in the morning.\n"


def test_edit_without_a_change_makes_no_revision(
    run: Run, notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", editor(tmp_path, 'echo >> "$1"'))  # only the newline that editors add
    run("edit", notes["tea"])
    assert run("show", "--json", notes["tea"]).json["revision"] == 1


def test_edit_keeps_the_line_ends_of_a_text(
    run: Run, memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk = memory.store.create_chunk("From Windows:\r\nAna drinks green tea.", "note")
    memory.close()
    monkeypatch.setenv("EDITOR", editor(tmp_path, 'printf "\\r\\n" >> "$1"'))
    run("edit", chunk.id)
    assert run("show", "--json", chunk.id).json["revision"] == 1
    monkeypatch.setenv("EDITOR", editor(tmp_path, 'sed -i s/green/white/ "$1"'))
    run("edit", chunk.id)
    assert run("show", "--json", chunk.id).json["content"] == "From Windows:\r\nAna drinks white tea."


def test_edit_refuses_when_somebody_else_changed_the_chunk(
    run: Run, notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = f'rlm-mem chunk update {notes["tea"]} --content "somebody else was quicker"'
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("EDITOR", editor(tmp_path, f'{other} && sed -i s/green/white/ "$1"'))
    ran = run("edit", notes["tea"])
    assert ran.code == 1
    assert run("show", "--raw", notes["tea"]).out == "somebody else was quicker\n"
    kept = re.search(r"kept in (\S+)", ran.err)
    assert kept and "white tea" in Path(kept[1]).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ('printf "caf\\351" > "$1"', "saved text that is not in UTF-8"),
        ('rm "$1"', "removed the file"),
        (': > "$1"', "content is empty"),
    ],
)
def test_what_an_editor_cannot_have_meant_is_refused_in_one_sentence(
    run: Run, notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, message: str
) -> None:
    monkeypatch.setenv("EDITOR", editor(tmp_path, script))
    ran = run("edit", notes["tea"])
    assert (ran.code, run("show", "--json", notes["tea"]).json["revision"]) == (2, 1)
    assert message in ran.err


def test_edit_without_an_editor_is_bad_input(run: Run, notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    assert run("edit", notes["tea"]).code == 2


def test_an_editor_that_fails_changes_nothing(
    run: Run, notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", editor(tmp_path, 'echo changed > "$1"; exit 3'))
    assert run("edit", notes["tea"]).code == 1
    assert run("show", "--json", notes["tea"]).json["revision"] == 1


def test_what_was_written_when_ctrl_c_ends_an_edit_is_kept(
    run: Run, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(command: list[str], **_: object) -> None:
        Path(command[-1]).write_text("half a sentence", encoding="utf-8")
        raise KeyboardInterrupt

    monkeypatch.setenv("EDITOR", "an-editor")
    monkeypatch.setattr("rlm_mem.cli.edit.subprocess.run", interrupted)
    ran = run("edit", notes["tea"])
    assert ran.code == 130
    kept = re.search(r"kept in (\S+)", ran.err)
    assert kept and Path(kept[1]).read_text(encoding="utf-8") == "half a sentence"


def test_a_deleted_chunk_is_gone_until_it_is_restored(run: Run, notes: Notes) -> None:
    assert run("delete", notes["tea"]).code == 0
    for command in ("show", "delete", "edit"):
        ran = run(command, notes["tea"])
        assert ran.code == 1
        assert f"{notes['tea']} is deleted" in ran.err, command
        assert f"rlm-mem chunk restore {notes['tea']}" in ran.err, command
    assert [chunk["id"] for chunk in run("list", "--archived", "--json").json] == [notes["tea"]]
    assert run("restore", notes["tea"]).code == 0
    assert run("show", notes["tea"]).code == 0
    assert "not in the archive" in run("restore", notes["tea"]).err


def test_delete_deletes_what_exists_and_names_missing_ids(run: Run, notes: Notes) -> None:
    ran = run("delete", notes["tea"], MISSING, "--json")
    assert ran.code == 1
    assert ran.json == {"deleted": [notes["tea"]], "not_found": [MISSING]}
    assert MISSING in ran.err


def test_an_id_that_is_given_twice_is_deleted_and_restored_once(run: Run, notes: Notes) -> None:
    for command in ("delete", "restore"):
        ran = run(command, notes["tea"], notes["tea"][-8:])
        assert (ran.code, ran.out, ran.err) == (0, f"{command}d {notes['tea']}\n", "")


def test_a_permanent_delete_asks_for_confirmation(run: Run, notes: Notes) -> None:
    refused = run("delete", "--permanent", notes["tea"], stdin="")
    assert refused.code == 2
    assert run("show", notes["tea"]).code == 0
    assert run("delete", "--permanent", "--yes", notes["tea"], stdin="").code == 0
    assert run("restore", notes["tea"]).code == 1


def test_a_chunk_in_quarantine_is_named_and_released_by_a_short_id(run: Run, notes: Notes) -> None:
    short = notes["tea"].rpartition("-")[2]
    run("chunk", "quarantine", short)
    hidden = run("show", short)
    assert hidden.code == 1
    assert f"{notes['tea']} is in quarantine" in hidden.err
    assert run("chunk", "release", short).out.startswith(f"{notes['tea']} is released")
    assert run("show", short).code == 0
    assert run("chunk", "release", short).code == 1


@pytest.mark.parametrize(("decision", "done"), [("approve", "released"), ("reject", "archived")])
def test_the_decision_on_a_chunk_in_quarantine_says_what_became_of_it(
    run: Run, notes: Notes, decision: str, done: str
) -> None:
    run("chunk", "quarantine", notes["tea"])
    (case,) = run("review", "list", "--json").json
    twice = [case["id"]] * 2
    decided = run("review", decision, *twice, "--reviewer", "Dana", "--reason", "looked at it")
    assert decided.code == 0
    assert decided.out.endswith(f"; {notes['tea']} is {done}\n")


def test_tags_are_not_set_and_removed_at_once(run: Run, notes: Notes) -> None:
    assert run("update", notes["tea"], "--tag", "x", "--no-tags").code == 2


def test_undo_brings_back_the_version_before(run: Run, notes: Notes) -> None:
    run("update", notes["tea"], "--content", "wrong")
    assert run("undo", notes["tea"]).out.endswith("was restored to revision 1, as revision 3\n")
    assert "green tea" in run("show", "--raw", notes["tea"]).out


def test_the_undo_of_a_change_shows_what_it_was_about(run: Run, notes: Notes) -> None:
    run("remember", "Dana takes the tram.")
    assert run("undo").out.splitlines()[1].strip() == "archived: Dana takes the tram."
    first = run("remember", "Priya: The ledger goes live on 12 May.").out.split()[-1]
    for number in range(5):
        run("remember", f"Tram {number} is late.", "--tag", "tram")
    assert "… and 2 more (--json names all)" in run("chunk", "archive", "--tag", "tram").out
    run("chunk", "archive", "--tag", "tram", "--apply")
    assert "… and 2 more (--json names all)" in run("undo").out
    run("remember", "Priya: The ledger goes live on 19 May.", "--replaces", first)
    assert [line.strip() for line in run("undo").out.splitlines()[-2:]] == [
        "archived: Priya: The ledger goes live on 19 May.",
        "now: Priya: The ledger goes live on 12 May.",
    ]
    run("chunk", "quarantine", run("remember", "Dana gives orders.").out.split()[-1])
    undone = run("undo").out
    assert "quarantine" in undone and "Dana gives orders." in undone


def test_undo_goes_back_to_a_named_revision(run: Run, notes: Notes) -> None:
    for content in ("second", "third"):
        run("update", notes["tea"], "--content", content)
    run("undo", notes["tea"], "--to", "1")
    assert "green tea" in run("show", "--raw", notes["tea"]).out


def test_undo_of_a_new_chunk_says_that_it_replaces_nothing_any_more(run: Run, notes: Notes) -> None:
    made = run("remember", "Dana drinks coffee.", "--replaces", notes["tea"], "--json")
    new = json.loads(made.out)["chunk_ids"][0]
    assert f"{new} no longer replaces anything, as revision" in run("undo", new).out
    assert json.loads(run("show", notes["tea"], "--json").out)["metadata"]["superseded_by"] is None


def test_there_is_nothing_to_undo_for_a_new_chunk(run: Run, notes: Notes) -> None:
    assert run("undo", notes["tea"]).code == 1
    assert "cannot go back to revision 9" in run("undo", notes["tea"], "--to", "9").err


def test_supersede_reports_swapped_ids_and_accepts_force(run: Run, notes: Notes) -> None:
    older, newer = sorted(
        (notes["tea"], notes["cake"]),
        key=lambda one: json.loads(run("show", one, "--json").out)["metadata"]["occurred_at"],
    )
    ran = run("chunk", "supersede", newer, older)
    assert ran.code == 2 and "which it is to replace" in " ".join(ran.err.split())
    assert run("chunk", "supersede", newer, older, "--force").code == 0


def test_archive_shows_what_it_would_archive_and_undo_takes_it_back(run: Run) -> None:
    for text in ("The ferry is late.", "The train is full."):
        run("remember", text, "--conversation", "trip", "--tag", "travel")
    run("remember", "The quay is new.")
    shown = run("chunk", "archive", "--conversation", "trip")
    assert "would be archived: 2 chunks" in shown.out and "The ferry is late." in shown.out
    assert "add --apply" in shown.out and len(run("list", "--json").json) == 3
    assert "archived: 2 chunks" in run("chunk", "archive", "--conversation", "trip", "--apply").out
    assert len(run("list", "--json").json) == 1
    assert run("undo").code == 0 and len(run("list", "--json").json) == 3
    made = run("chunk", "archive", "--tag", "travel", "--apply", "--json").json
    assert len(made["archived"]) == 2 and made["dry_run"] is False
    assert "restored: 2 chunks" in run("chunk", "archive", "--tag", "travel", "--restore", "--apply").out
    refused = run("chunk", "archive", "--apply")
    assert refused.code == 2 and "name a conversation" in refused.err


def test_an_undo_as_json_names_what_it_undid(run: Run, notes: Notes) -> None:
    assert run("undo", "--to", "3").code == 2
    assert run("undo", "--json").json["chunk_ids"] == [notes["cake"]]


def test_when_everything_is_undone_there_is_nothing_to_undo(run: Run) -> None:
    run("remember", "There is cake.")
    assert run("undo").code == 0
    nothing = run("undo")
    assert nothing.code == 1 and "nothing to undo" in nothing.err
