"""remember: text, files, folders, stdin."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rlm_mem import Memory

from .conftest import Run

PARAGRAPH = "The pump station reports its level every ten minutes, and the valve opens at two metres. "


def test_a_text_is_remembered_and_can_be_found(run: Run) -> None:
    made = run(
        "remember",
        "Ana",
        "prefers trains",
        "--tag",
        "travel",
        "--tag",
        "ana",
        "--type",
        "preference",
        "--json",
    ).json
    assert made["success"] is True
    (chunk_id,) = made["chunk_ids"]
    chunk = run("show", chunk_id, "--json").json
    assert (chunk["content"], chunk["type"], sorted(chunk["tags"])) == (
        "Ana prefers trains",
        "preference",
        ["ana", "travel"],
    )


def test_a_text_that_begins_like_an_option_is_refused_with_the_way_to_give_it(run: Run) -> None:
    refused = run("remember", "- Run the linter.")
    assert refused.code == 2 and "put -- before a text" in refused.err
    assert run("remember", "--", "- Run the linter.").code == 0
    assert "--help shows how" in run("remember", "Ana drinks tea.", "--colour=light green").err


def test_what_was_known_keeps_its_tags_and_the_output_says_so(run: Run) -> None:
    run("remember", "Ana prefers trains")
    assert "stays as it is" not in run("remember", "Ana prefers trains").out
    told = run("remember", "Ana prefers trains", "--tag", "travel").out
    assert "1 chunk already known" in told
    assert "known chunks were not changed; use rlm-mem chunk update ID" in told


def test_a_wrong_time_is_named_by_its_option(run: Run) -> None:
    for option in ("--at", "--expires"):
        ran = run("remember", "Ana prefers trains", option, "yesterday")
        assert ran.code == 2
        assert ran.err.startswith(f"rlm-mem: {option} 'yesterday' is not an ISO 8601 time")


def test_confidence_time_and_conversation_are_kept(run: Run) -> None:
    made = run(
        "remember", "Signed.", "--confidence", "0.9", "--at", "2026-01-02T03:04:05Z", "-c", "deal", "--json"
    ).json
    metadata = run("show", made["chunk_ids"][0], "--json").json["metadata"]
    assert metadata["confidence"] == 0.9
    assert metadata["occurred_at"].startswith("2026-01-02T03:04:05")
    assert metadata["conversation_id"] == "deal"


def test_stdin_is_remembered(run: Run) -> None:
    for arguments in (["-"], []):
        made = run("remember", *arguments, "--json", stdin=f"Piped in {len(arguments)}.\n").json
        assert made["chunks_created"] == 1


def test_a_file_is_remembered_with_its_path(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Notes\n\nThe valve opens at two metres.\n", encoding="utf-8")
    made = run("remember", "--file", str(path), "--json").json
    metadata = run("show", made["chunk_ids"][0], "--json").json["metadata"]
    assert metadata["source"] == "import"
    assert metadata["provenance"]["path"] == str(path)
    assert metadata["conversation_id"] == f"file:{path}"


def test_a_pipe_named_as_a_file_is_read_to_its_end_and_says_what_it_waits_for(
    run: Run, tmp_path: Path
) -> None:
    pipe = tmp_path / "notes"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(pipe.write_text, "The jetty closes at dusk.")
        ran = run("remember", "--file", str(pipe))
        writing.result()
    assert ran.code == 0 and f"reading the pipe {pipe}" in ran.err.replace("\n", " ")
    assert "jetty" in run("search", "jetty").out


def test_a_file_of_any_name_is_remembered(run: Run, tmp_path: Path) -> None:
    for number, name in enumerate((b"two\nlines.txt", b"no\xffunicode.txt")):
        file = tmp_path / os.fsdecode(name)
        file.write_text(f"The walnut {number} was planted.", encoding="utf-8")
        ran = run("remember", "--file", str(file))
        assert ran.code == 0, ran.err


def test_a_long_file_becomes_several_chunks_of_one_conversation(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("\n\n".join(f"{number}. {PARAGRAPH * 5}" for number in range(40)), encoding="utf-8")
    made = run("remember", "-f", str(path), "--json").json
    assert made["chunks_created"] > 5
    assert len(run("list", "--json", "-c", f"file:{path}", "--limit", "1000").json) == made["chunks_created"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    for name, content in {
        "a.md": b"The first note.",
        "sub/b.md": b"The second note.",
        "sub/c.txt": b"A text file.",
        "picture.png": b"\x89PNG\r\n\x1a\n\x00\x00",
        "latin.txt": "Grüße".encode("latin-1"),
        "empty.md": b"  \n",
        ".hidden.md": b"Hidden.",
        ".git/config": b"Not a note.",
        "node_modules/x/readme.md": b"Somebody else's.",
        "env/pyvenv.cfg": b"home = /usr",
        "env/lib/z.md": b"In an environment.",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def test_a_folder_is_remembered_but_for_what_is_not_text(run: Run, folder: Path) -> None:
    made = run("remember", "--folder", str(folder), "--json").json
    contents = {chunk["content"] for chunk in run("list", "--json").json}
    assert contents == {"The first note.", "The second note.", "A text file."}
    assert made["texts"] == 3
    assert {Path(row["path"]).name: row["reason"] for row in made["skipped"]} == {
        "picture.png": "not text in UTF-8",
        "latin.txt": "not text in UTF-8",
        "empty.md": "empty",
    }


def test_a_pattern_chooses_files_of_a_folder(run: Run, folder: Path) -> None:
    assert run("remember", "--folder", str(folder), "--glob", "*.txt", "--json").json["texts"] == 1


def test_a_folder_that_was_emptied_or_moved_is_asked_about(run: Run, folder: Path, memory: Memory) -> None:
    first = run("remember", "--folder", str(folder), "--json").json["chunk_ids"]
    away = folder.rename(folder.with_name("away"))
    folder.mkdir()
    emptied = run("remember", "--folder", str(folder))
    assert emptied.code == 1 and "none of its 3 documents" in emptied.out and "--archive-all" in emptied.out
    folder.rmdir()
    refused = run("remember", "--folder", str(away))
    assert refused.code != 0 and f"--known-as {folder}" in refused.err
    moved = run("remember", "--folder", str(away), "--known-as", str(folder), "--json").json
    assert moved["chunk_ids"] == first
    assert run("remember", "--folder", str(away), "--folder", str(folder.parent), "--known-as", "x").code == 2
    for path in away.rglob("*"):
        if path.is_file():
            path.unlink()
    assert run("remember", "--folder", str(away), "--archive-all").code == 0
    assert list(memory.store.iter_chunks()) == []


def test_a_folder_of_your_own_is_trusted_as_far_as_you_say(run: Run, folder: Path, memory: Memory) -> None:
    run("remember", "--folder", str(folder), "--trust", "ordinary")
    assert {chunk.metadata.trust for chunk in memory.store.iter_chunks()} == {"ordinary"}
    refused = run("remember", "--folder", str(folder), "--trust", "blind")
    assert refused.code == 2 and "ordinary" in refused.err
    for option, value in (("--ttl", "3d"), ("--expires", "2027-01-01"), ("--origin", "person")):
        refused = run("remember", "--folder", str(folder), option, value)
        assert (refused.code, f"{option} cannot be used with a folder" in refused.err) == (2, True)


def test_what_a_folder_has_is_said_in_lines_that_a_person_reads(run: Run, tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"vault/{number}.md").parent.mkdir(exist_ok=True)
        (tmp_path / f"vault/{number}.md").write_text(f"Note {number} is about the harbour.")
        (tmp_path / f"vault/{number}.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    said = run("remember", "--folder", str(tmp_path / "vault")).out
    assert "refused: 30 files, such as 0.png: not text in UTF-8" in said
    assert "remembered 30 chunks" in said and "chunk-" not in said
    assert len(said.splitlines()) < 20


def test_the_same_folder_again_adds_nothing(run: Run, folder: Path) -> None:
    run("remember", "--folder", str(folder))
    again = run("remember", "--folder", str(folder), "--json").json
    assert (again["success"], again["chunks_created"], len(again["chunk_ids"])) == (True, 0, 3)
    assert "already known" in run("remember", "--folder", str(folder)).out


def test_a_folder_is_kept_in_step_and_the_change_can_be_undone(run: Run, folder: Path) -> None:
    run("remember", "--folder", str(folder))
    (folder / "a.md").write_text("The first note, edited.")
    (folder / "sub/b.md").rename(folder / "moved.md")
    (folder / "sub/c.txt").unlink()
    planned = " ".join(run("remember", "--folder", str(folder), "--dry-run").out.split())
    assert "1 changed, 1 renamed, 1 archived" in planned
    made = run("remember", "--folder", str(folder), "--json").json
    (told,) = made["folders"]
    assert (told["changed"], told["renamed"], told["archived"]) == (
        ["a.md"],
        [["sub/b.md", "moved.md"]],
        ["sub/c.txt"],
    )
    hit = run("search", "first note", "--json").json[0]
    assert hit["snippet"] == "The first note, edited."
    assert run("undo", told["change"]).code == 0
    assert {one["content"] for one in run("list", "--json").json} == {
        "The first note.",
        "The second note.",
        "A text file.",
    }
    assert run("remember", "text", "--watch").code == run("remember", "text", "--dry-run").code == 2


def test_a_file_too_large_for_one_text_is_skipped_with_the_reason(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLM_MEM_INGEST_MAX_CONTENT_BYTES", "14")
    made = run("remember", "--folder", str(folder), "--glob", "*.md", "--json").json
    assert {row["reason"] for row in made["skipped"]} >= {"larger than 14 bytes"}


def test_a_single_word_that_names_a_file_is_not_stored_as_text(run: Run, brain: Path) -> None:
    Path("notes.md").write_text("What is in it.", encoding="utf-8")
    ran = run("remember", "notes.md")
    assert ran.code == 2
    assert "--file notes.md" in ran.err


def test_a_text_longer_than_the_name_of_a_file_is_not_taken_for_a_path(run: Run) -> None:
    text = "The pump station reports its level. " * 8
    assert len(text.encode()) > 255, "the longest name of a file"
    assert run("remember", text).code == 0
    assert "give 2 to 200 characters" in run("erase", "--source", text).err
    assert "neither an id nor a part of one" in run("restore", "x" * 300).err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 2),
        (["   "], 2),
        (["--file", "nowhere.md"], 1),
        (["--folder", "nowhere"], 1),
        (["text", "--confidence", "7"], 2),
        (["text", "--confidence", "high"], 2),
        (["text", "--type", "no such type"], 2),
        (["text", "--at", "yesterday-ish"], 2),
    ],
)
def test_text_that_cannot_be_remembered_is_one_line_and_an_exit_code(
    run: Run, arguments: list[str], code: int
) -> None:
    ran = run("remember", *arguments)
    assert (ran.code, ran.out) == (code, "")
    lines = ran.err.splitlines()
    assert lines[0].startswith("rlm-mem: ")
    assert len(lines) <= 2
    assert "Traceback" not in ran.err


def test_an_endless_input_is_read_no_further_than_a_text_may_be_long(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLM_MEM_INGEST_MAX_CONTENT_BYTES", "5000")
    monkeypatch.setenv("RLM_MEM_STORE_MAX_CONTENT_BYTES", "5000")
    chunk = run("remember", "Ana drinks tea.", "--json").json["chunk_ids"][0]
    for ran in (
        run("remember", "--file", "/dev/zero"),
        run("remember", stdin="tea " * 2_600),
        run("chunk", "update", chunk, "--content", "-", stdin="tea " * 2_600),
    ):
        assert (ran.code, "is larger than 5,000 bytes" in ran.err) == (2, True), ran.err
    utf_16 = "Ana drinks green tea. ".encode("utf-16") * 200
    assert run("remember", stdin=utf_16).code == 0


def test_a_file_that_is_not_text_is_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(b"\xff\xd8\xff\xe0 a picture")
    assert run("remember", "--file", str(path)).code == 2
    assert run("remember", stdin=b"\xff\xd8\xff\xe0 a picture").code == 2


def test_the_outcome_is_printed(run: Run) -> None:
    out = run("remember", "A single note.").out
    assert "remembered 1 chunk, " in out
    assert "chunk-" in out


@pytest.mark.parametrize("given", [[""], ["  \n"], ["-"], []])
def test_empty_text_is_reported(run: Run, given: list[str], brain: Path | str) -> None:
    for piped in ("", " \n"):
        ran = run("remember", *given, stdin=piped)
        assert ran.code == 2
        assert "nothing to remember" in ran.err
    if isinstance(brain, Path):
        assert not brain.exists(), "and nothing is made for it"


def test_an_empty_file_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    ran = run("remember", "--file", str(tmp_path / "empty.txt"))
    assert ran.code == 2
    assert "empty.txt is empty: there is nothing to remember" in " ".join(ran.err.split())


def test_each_line_of_a_file_is_remembered(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf"Pump 1 was tested."\n\n'
        b'{"text": "Pump 2 leaks.", "tags": ["pumps", "leaks"], "conversation_id": "hall", "source": "interaction"}\r\n'
        b'"Pump 3 hums."'
    )
    made = run("remember", "--jsonl", str(path), "--tag", "plant", "--json").json
    assert (made["texts"], made["chunks_created"]) == (3, 3)
    first, second, third = (run("show", one, "--json").json for one in made["chunk_ids"])
    assert [first["content"], second["content"], third["content"]] == [
        "Pump 1 was tested.",
        "Pump 2 leaks.",
        "Pump 3 hums.",
    ]
    assert (first["tags"], sorted(second["tags"])) == (["plant"], ["leaks", "pumps"])
    assert (first["metadata"]["source"], second["metadata"]["source"]) == ("import", "interaction")
    assert first["metadata"]["provenance"]["path"] == str(path)
    assert run("remember", "--jsonl", str(path), "--tag", "plant", "--json").json["chunks_created"] == 0
    piped = run("remember", "--jsonl", "-", "--json", stdin='{"text": "Pump 4 is new."}\n').json
    assert run("show", piped["chunk_ids"][0], "--json").json["metadata"]["source"] == "interaction"


@pytest.mark.local_only("lines are read before the store is asked")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("7", "a text or an object was expected, not int"),
        ('{"text": "c", "colour": 1}', "remember does not take 'colour'"),
        ('{"words": "c"}', "remember does not take 'words'"),
        ('{"text": "c", "confidence": 2}', "confidence"),
        ('""', "nothing to remember"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_a_line_at_fault_is_named_and_those_before_it_are_stored(run: Run, line: str, reason: str) -> None:
    for before, said in ((['"a"', "", '"b"'], "the lines before it are stored"), ([], "nothing was stored")):
        ran = run("remember", "--jsonl", "-", stdin="\n".join([*before, line, '"d"']))
        assert ran.code == 2
        assert f"stdin, line {len(before) + 1}: " in ran.err and reason in ran.err and said in ran.err
    assert run("stats", "--json").json["chunk_count"] == 2


def test_lines_are_the_only_text_and_there_are_some(run: Run, tmp_path: Path) -> None:
    assert "cannot be combined with other texts" in run("remember", "more", "--jsonl", "-", stdin='"a"').err
    assert "there is no file" in run("remember", "--jsonl", str(tmp_path / "none.jsonl")).err
    assert "stdin is empty" in run("remember", "--jsonl", "-", stdin="\n\n").err


def test_of_many_replaced_memories_some_are_named(run: Run) -> None:
    """Filling a memory may replace thousands: their ids would scroll everything else away."""
    lines = [f'"Host {n} runs on port {4000 + n}."\n' for n in range(30)]
    lines += [f'"We moved host {n} from port {4000 + n} to port {5000 + n}."\n' for n in range(30)]
    told = run("remember", "--jsonl", "-", stdin="".join(lines)).out
    named = [line for line in told.split("\n") if line.startswith(("replaced ", "to review "))]
    assert all(line.count("chunk-") + line.count("replace-") <= 20 for line in named)
    assert "more (--json names all)" in told


def test_a_text_in_utf_16_with_its_mark_is_read_as_in_a_folder(run: Run) -> None:
    Path("note.txt").write_text("The café is closed.", encoding="utf-16")
    (one,) = run("remember", "--file", "note.txt", "--json").json["chunk_ids"]
    assert run("show", one, "--raw").out == "The café is closed.\n"
    assert run("remember", stdin=Path("note.txt").read_bytes()).code == 0


@pytest.mark.local_only("name a folder without a memory")
def test_a_dry_run_needs_no_memory_and_makes_none(run: Run, tmp_path: Path) -> None:
    Path("notes").mkdir()
    Path("notes/boat.md").write_text("The key hangs behind the clock.", encoding="utf-8")
    nowhere = tmp_path / "nowhere"
    for command in (["remember", "--folder", "notes"], ["import", "notes"]):
        ran = run("--brain", str(nowhere), *command, "--dry-run")
        assert ran.code == 0, ran.err
        assert "would be" in ran.out
        assert not nowhere.exists()


def test_a_hidden_secret_names_the_option_that_keeps_it(run: Run) -> None:
    said = run("remember", "The key is sk-ant-api03-" + "a1B2c3D4e5" * 8)
    assert "1 secret" in said.out and "--secrets keep stores it" in said.out
