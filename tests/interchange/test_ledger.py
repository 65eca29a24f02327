"""The record of imports, which a brain under git shares: it recognises a source without the path on one machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.interchange import import_source
from rlm_mem.store.core.brain_files import LEDGER


def sources(folder: Path) -> list[Path]:
    """Files and folders to import: a note, a chat, and a folder of both."""
    home = folder / "home" / "ines"
    home.mkdir(parents=True)
    (home / "gate.md").write_text("The gate is green.", encoding="utf-8")
    said = [{"role": "user", "content": "The ferry leaves at nine."}]
    (home / "chat.json").write_text(json.dumps(said), encoding="utf-8")
    return [home / "gate.md", home / "chat.json", home]


def imported(memory: Memory, places: list[Path]) -> list[tuple[int, int]]:
    reports = [import_source(memory.store, one) for one in places]
    return [(one.created, one.unchanged_files) for one in reports]


def ledger(memory: Memory) -> list[list[object]]:
    return [json.loads(line) for line in (memory.store.files.read(LEDGER) or b"").splitlines()]


def test_it_has_no_path_of_a_machine_and_recognises_the_source(place: Path | str, tmp_path: Path) -> None:
    places = sources(tmp_path / "import")
    with Memory.open(place) as memory:
        first = imported(memory, places)
        assert [created for created, _ in first] == [1, 1, 0]
        assert "ines" not in json.dumps(ledger(memory)) and len(ledger(memory)) >= 5
    with Memory.open(place) as memory:
        assert all(created == 0 and unchanged for created, unchanged in imported(memory, places))


@pytest.mark.parametrize("merged", [False, True])
def test_one_with_paths_by_an_earlier_version_is_read_and_its_paths_go_with_the_next_write(
    place: Path | str, tmp_path: Path, merged: bool
) -> None:
    places = sources(tmp_path / "import")
    with Memory.open(place) as memory:
        imported(memory, places[:2])
        written = ledger(memory)
        units = [f"note:file:{places[0]}", f"file:{places[0]}!gate.md", f"dialogue:file:{places[1]}#0",
                 f"file:{places[1]}!chat.json"]  # fmt: skip
        former = [[unit, *line[1:]] for unit, line in zip(units, written, strict=True)]
        lines = [*former, *(written if merged else [])]
        memory.store.files.write(LEDGER, "".join(json.dumps(line) + "\n" for line in lines).encode())
    with Memory.open(place) as memory:
        assert imported(memory, places[:2]) == [(0, 1), (0, 1)]
        places[0].write_text("The gate is red.", encoding="utf-8")
        report = import_source(memory.store, places[0])
        assert (report.created, report.archived) == (1, 1), "its former text was recognised"
        assert "ines" not in json.dumps(ledger(memory)) and len(ledger(memory)) == 4
