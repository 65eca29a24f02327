"""`rlm-mem import` names each file that cannot be imported, ending with 1 without any other, and says what it did."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

from tests.cli.conftest import Run

JUNK = {
    "empty.json": (b"", "empty"),
    "blank.jsonl": (b" \n", "empty"),
    "empty.md": (b"", "empty"),
    "cut.json": (b'{"content": ', "not valid JSON"),
    "words.json": (b"these are words", "not valid JSON"),
    "shape.json": (b'{"temperature": 21, "unit": "C"}', "in a known form"),
    "list.json": (b"[1, 2, 3]", "in a known form"),
    "text.json": (b'"only a text"', "in a known form"),
    "deep.json": (b"[" * 20_000, "JSON"),
    "lines.jsonl": (b'{"x": 1}\n{"y": 2}\n', "neither a conversation nor a message"),
    "binary.json": (b"\x89\0\x01\xff" * 500, "binary"),
    "binary.md": (b"\x89\0\x01\xfe" * 500, "not text"),
    "picture.png": (b"\x89PNG\r\n" * 500, "not of a format"),
    "no-suffix": (b"whatever", "not of a format"),
}


@pytest.mark.parametrize("name", JUNK)
def test_a_file_that_cannot_be_imported_is_named_with_the_reason_and_ends_with_1(
    run: Run, tmp_path: Path, name: str
) -> None:
    content, reason = JUNK[name]
    (tmp_path / name).write_bytes(content)
    for _ in range(2):  # and again: it is not taken for imported
        ran = run("import", str(tmp_path / name), "--json")
        assert ran.code == 1
        (first, *_) = ran.json["problems"]
        assert name in first["where"] and reason in first["reason"]
    shown = run("import", str(tmp_path / name))
    assert shown.code == 1 and f"not read: {tmp_path / name}" in shown.out.replace("\n", "")


def test_a_folder_or_archive_without_anything_usable_says_so_and_ends_with_1(
    run: Run, tmp_path: Path
) -> None:
    empty, pictures, packed = tmp_path / "empty", tmp_path / "pictures", tmp_path / "empty.zip"
    empty.mkdir()
    pictures.mkdir()
    for name in ("a.png", "b.png"):
        (pictures / name).write_bytes(b"\x89PNG")
    zipfile.ZipFile(packed, "w").close()
    for place in (empty, pictures, packed):
        ran = run("import", str(place), "--json")
        assert ran.code == 1
        assert "nothing that can be imported" in ran.json["problems"][0]["reason"]


def test_junk_beside_memories_is_named_and_the_rest_is_imported(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "good.md").write_text("Herons nest in March.")
    (folder / "photo.png").write_bytes(b"\x89PNG")
    for name, (content, _) in JUNK.items():
        if name.endswith((".json", ".jsonl", ".md")):
            (folder / name).write_bytes(content)
    ran = run("import", str(folder), "--json")
    assert ran.code == 0 and ran.json["created"] == 1
    named = {problem["where"].partition(",")[0] for problem in ran.json["problems"]}
    assert named == {name for name in JUNK if name.endswith((".json", ".jsonl", ".md"))}


def test_a_dry_run_shows_what_is_new_and_an_import_how_to_undo_it(run: Run, tmp_path: Path) -> None:
    texts = [{"role": "user", "content": f"Tram {number} is red."} for number in range(3)]
    (tmp_path / "talk.json").write_text(json.dumps(texts))
    planned = run("import", str(tmp_path / "talk.json"), "--dry-run")
    assert "talk.json, entry 1: User: Tram 0 is red." in " ".join(planned.out.split())
    assert "undo" not in planned.out
    done = run("import", str(tmp_path / "talk.json"))
    change = re.search(r"rlm-mem undo (\S+) undoes it", " ".join(done.out.split()))
    assert change and "Tram 0" not in done.out
    assert run("undo", change[1]).code == 0
    assert run("list", "--json").json == []
