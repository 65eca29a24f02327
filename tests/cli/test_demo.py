"""The demo: half a year of a team's notes, and questions about them."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.cli import demo as module
from rlm_mem.receipts import verify

from .conftest import Run, ran


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "brain"


@dataclass(frozen=True)
class Demo:
    """The demo twice on one memory, as JSON and as text, and the figures of the memory after each."""

    answers: list[dict[str, Any]]
    first: dict[str, Any]
    shown: str
    second: dict[str, Any]


@pytest.fixture(scope="module")
def demo(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    on = ("--brain", str(place))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        answers = ran("demo", *on, "--json").json
        first = ran("stats", *on, "--json").json
        shown = ran("demo", *on).out
        return Demo(answers, first, shown, ran("stats", *on, "--json").json)


def test_the_demo_answers_its_questions_from_the_notes(demo: Demo) -> None:
    assert len(demo.answers) >= 6
    wrong = [
        (answer["question"], answer["content"], answer["suggestion"])
        for answer in demo.answers
        if not module._is_right(answer)
    ]
    assert len(wrong) <= 2, wrong
    right = f"{len(demo.answers) - len(wrong)} of {len(demo.answers)} right"
    assert right in " ".join(demo.shown.split())  # the line may be broken


def test_the_demo_changes_a_fact_and_undoes_the_change(demo: Demo) -> None:
    shown = demo.shown.partition("Then a fact changes")[2]
    told = re.findall(r"^When is go-live\?  (.+): (.+)$", shown, re.MULTILINE)
    assert told == [
        ("now", "3 July 2026"),
        ("as of 20 June", "26 June 2026"),
        ("after rlm-mem undo", "26 June 2026"),
    ]


def test_the_demo_shows_programs_answers_and_chunks_that_exist(run: Run, demo: Demo, place: Path) -> None:
    assert "step 1" in demo.shown
    assert "passages(" in demo.shown
    assert "FINAL(" in demo.shown
    answered = sum(answer["outcome"] == "answered" for answer in demo.answers)
    assert f"{len(demo.answers)} questions: {answered} answered, " in demo.shown
    assert "1 rightly without an answer" in demo.shown
    ids = set(re.findall(r"^  (chunk-[\w-]+)", demo.shown, re.MULTILINE))
    assert len(ids) >= 6
    for chunk_id in ids:
        assert run("show", "--brain", str(place), chunk_id).code == 0


def test_every_recorded_answer_of_the_demo_has_a_receipt_that_holds(demo: Demo, place: Path) -> None:
    with Memory.open(place) as memory:
        questions = {info.query: info.id for info in memory.trajectories(limit=None)}
        assert len(questions) >= 6
        for trajectory_id in questions.values():
            receipt = memory.receipt(trajectory_id, bundle=True)
            assert receipt.bundle is not None
            found = memory.verify(receipt.to_bytes())
            assert found.holds, str(found)
            assert verify(receipt.to_bytes(), bundle=receipt.bundle.to_bytes()).holds


def test_a_second_demo_on_the_same_memory_adds_nothing(demo: Demo) -> None:
    assert demo.second["chunk_count"] == demo.first["chunk_count"] == 317
    assert demo.second["links"] == demo.first["links"]


def test_a_note_that_was_replaced_says_by_what(run: Run, demo: Demo, place: Path) -> None:
    chunks = run("list", "--brain", str(place), "--json", "--limit", "1000").json
    replaced = [chunk["metadata"] for chunk in chunks if chunk["metadata"]["superseded_by"]]
    assert len(replaced) == 11
    assert {meta["superseded_by"] for meta in replaced} <= {chunk["id"] for chunk in chunks}
    assert all(meta["valid_to"] for meta in replaced)


def test_the_demo_leaves_nothing_behind(
    run: Run, brain: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = module._rows
    monkeypatch.setattr(module, "_rows", lambda name: rows(name)[:2])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = sorted(brain.rglob("*"))
    assert run("demo").code == 0
    assert list(temporary.iterdir()) == []
    assert sorted(brain.rglob("*")) == before


def test_the_demo_does_not_mix_its_notes_with_other_memories(run: Run, tmp_path: Path) -> None:
    on = ("--brain", str(tmp_path / "own"))
    assert run("remember", "Dana likes tea.", *on).code == 0
    refused = run("demo", *on)
    assert refused.code == 2 and "has memories already" in refused.err
    assert len(run("list", *on, "--json").json) == 1


@pytest.mark.parametrize(("line", "name"), [("continue with", "recall"), ("see it in the browser", "serve")])
def test_the_commands_to_continue_with_can_be_run(demo: Demo, tmp_path: Path, line: str, name: str) -> None:
    """Also from another folder, and if the demo was started as a module."""
    (told,) = re.findall(f"{line}: (.+)", demo.shown)
    made = subprocess.run(
        [*shlex.split(told)[:-1], "--help"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert made.returncode == 0 and f"rlm-mem {name}" in made.stdout
