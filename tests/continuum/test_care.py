"""`rlm-mem store check` and `repair` look at tiered memories, too."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.continuum import Continuum
from rlm_mem.merging import MERGE_CONFLICT, in_conflict
from rlm_mem.store.core.changes import WriteTransaction

from .conftest import added, by_hand, record


def interrupted(continuum: Continuum) -> str:
    """A promotion as if its process had died before the record was put away."""
    record(continuum)
    continuum.consolidate()
    (transition,) = continuum.changes.transitions()
    continuum.files.stored.rename(
        f"archive/transitions/{transition}.json", f"archive/pending/{transition}.json"
    )
    return transition


def test_a_sound_memory_has_no_finding(continuum: Continuum) -> None:
    record(continuum)
    continuum.workspace.start("plan")
    assert Memory(continuum.store).check() == []


def test_both_sides_of_a_merge_conflict_are_one_finding_and_no_memory(continuum: Continuum) -> None:
    """Of the front matter, of the body alone, and of a case; a memory that tells of a conflict is none."""
    told = "It ended so:\n\n<<<<<<< HEAD\nsand\n=======\nplane\n>>>>>>> theirs\n"
    kept = added(continuum, "memory/long_term/pattern_merging.md", "Merging", told)
    assert continuum.files.get(kept.key) == kept and "\n <<<<<<< HEAD\n" in kept.body
    pattern = added(
        continuum, "memory/long_term/pattern_sanding.md", "Sanding", "First plane it.\n\nThen sand it."
    )
    before, text = continuum.files.get(pattern.key), pattern.text
    case = "system/review/replace-1.json"
    for file, whole, line in (
        (pattern.file, text, "Then sand it."),
        (pattern.file, text, "memory_frequency: mid"),
        (case, '{\n  "id": "replace-1",\n  "kind": "replace"\n}', '  "kind": "replace"'),
    ):
        conflict = f"<<<<<<< HEAD\n{line}\n=======\n{line} or not\n>>>>>>> theirs"
        by_hand(continuum, file, whole.replace(line, conflict))
        found = [one for one in Memory(continuum.store).check() if one.file == file]
        assert [one.message for one in found] == [f"{file}: {MERGE_CONFLICT}"]
        assert pattern.key not in [one.key for one in continuum.files.entries()] or file == case
        by_hand(continuum, pattern.file, text)
        assert continuum.files.get(pattern.key) == before


def test_repair_keeps_the_memories_that_each_side_of_a_merge_added_and_undoes_it(
    continuum: Continuum,
) -> None:
    """Git takes equal lines of two memories for one, so that keeping one side by hand would lose the other's memory."""
    file, memory = "system/memory_log.md", Memory(continuum.store)
    for title in ("Sanding", "Planing"):
        added(continuum, file, title, "Slowly.")
    whole = continuum.files.read(file) or ""
    keys = [entry.key for entry in continuum.files.in_file(file)]
    sides = ("sanding", "planing"), ("# Sanding", "# Planing")
    first = whole[: whole.rindex("---\nid: planing")]
    for mine, theirs in sides:
        first = first.replace(mine, f"<<<<<<< HEAD\n{mine}\n=======\n{theirs}\n>>>>>>> theirs", 1)
    merged = first.replace("id: <<<<<<< HEAD\n", "<<<<<<< HEAD\nid: ").replace(
        "=======\nplan", "=======\nid: plan"
    )
    by_hand(continuum, file, merged)
    (finding,) = memory.check()
    assert (finding.code, finding.file) == ("tiered-conflict", file)
    assert [one.done for one in memory.repair()] == [False] and continuum.files.read(file) == merged
    assert [one.done for one in memory.repair(dry_run=False)] == [True]
    assert memory.check() == []
    assert [entry.key for entry in continuum.files.in_file(file)] == keys
    assert memory.undo() and continuum.files.read(file) == merged


def test_of_two_sides_that_changed_the_text_before_the_first_memory_none_is_dropped(
    continuum: Continuum,
) -> None:
    file, memory = "system/memory_log.md", Memory(continuum.store)
    first = added(continuum, file, "Sanding", "Slowly.").text.rstrip()
    for mine, theirs, kept in (
        ("# Of wood", "# Of oak", 2),
        ("", "# Of oak", 1),
        ("# Of oak", "# Of oak", 1),
    ):
        other = first.replace("sanding", "planing").replace("Sanding", "Planing")
        halves = f"{mine}\n\n{first}\n", f"{theirs}\n\n{other}\n"
        by_hand(continuum, file, "<<<<<<< HEAD\n{}=======\n{}>>>>>>> theirs\n".format(*halves))
        assert [one.done for one in memory.repair(dry_run=False)] == [True]
        text = continuum.files.read(file) or ""
        assert theirs in text and mine in text and text.count("# Of") == kept
        assert in_conflict(text) == (kept == 2)
        assert {entry.key for entry in continuum.files.in_file(file, [])} == {
            f"{file}#sanding",
            f"{file}#planing",
        }


@pytest.mark.local_only("rename a file by hand")
@pytest.mark.parametrize(
    "to", ["long_term/pattern_sanding.MD", "long_term/old/pattern_sanding.md", "../system/Sanding.md"]
)
def test_a_memory_whose_file_was_renamed_so_that_nothing_reads_it_is_a_finding(
    continuum: Continuum, brain: Path, to: str
) -> None:
    file = added(continuum, "memory/long_term/pattern_sanding.md", "Sanding", "Slowly.").file
    by_hand(continuum, "memory/long_term/notes.txt", "of no memory\n")
    by_hand(continuum, "system/review/case.md", "---\nmemory_frequency: mid\n---\n")
    target = brain / "memory" / to
    target.parent.mkdir(exist_ok=True)
    (brain / file).rename(target)
    (finding,) = Memory(continuum.store).check()
    place = target.resolve().relative_to(brain.resolve()).as_posix()
    assert (finding.code, finding.file) == ("tiered-memory", place) and "rename it" in finding.message
    target.rename(brain / file)
    assert Memory(continuum.store).check() == []


def test_an_invalid_file_takes_the_write_lock_once_and_again_when_it_was_edited(
    continuum: Continuum, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = added(continuum, "memory/long_term/pattern_sanding.md", "Sanding", "Slowly.")
    file, text = good.file, good.text
    taken: list[int] = []
    locked = continuum.changes.locked

    def noted(**more: Any) -> AbstractContextManager[WriteTransaction]:
        taken.append(1)
        return locked(**more)

    monkeypatch.setattr(continuum.changes, "locked", noted)
    continuum.sync()
    taken.clear()
    for edited, times in ((text.replace("mid", "sideways"), 1), (text.replace("Slowly", "Fast"), 1)):
        by_hand(continuum, file, edited)
        for _ in range(3):
            continuum.sync()
        assert len(taken) == times
        assert continuum.store.exists(good.chunk_id), "the mirror of an invalid memory is kept"
        taken.clear()
    chunk = continuum.store.get_chunk(good.chunk_id)
    assert chunk is not None and "Fast" in chunk.content


def test_of_two_sides_that_changed_the_same_memory_repair_leaves_that_one_to_a_person(
    continuum: Continuum,
) -> None:
    file, memory = "system/memory_log.md", Memory(continuum.store)
    made = [added(continuum, file, title, "Slowly.") for title in ("Sanding", "Planing", "Sawing")]
    whole = continuum.files.read(file) or ""
    mine = whole.replace("Slowly", "Fast", 1).replace(made[1].text, "")
    theirs = whole.replace("Slowly", "With care", 1).replace(made[2].text, "")
    by_hand(continuum, file, f"<<<<<<< HEAD\n{mine}||||||| base\n{whole}=======\n{theirs}>>>>>>> theirs\n")
    assert [one.done for one in memory.repair(dry_run=False)] == [True]
    text = continuum.files.read(file) or ""
    assert in_conflict(text) and text.count("Sanding") == 2
    assert {entry.key for entry in continuum.files.in_file(file, [])} == {made[1].key, made[2].key}
    assert [(one.code, one.file) for one in memory.check()] == [("tiered-memory", file)]
    by_hand(
        continuum,
        file,
        text.replace("<<<<<<< ours\n", "").partition("=======")[0] + text.partition("theirs\n")[2],
    )
    assert {entry.key for entry in continuum.files.in_file(file)} == {entry.key for entry in made}
    assert memory.check() == []


def test_a_broken_rule_is_a_finding_that_names_the_file(continuum: Continuum) -> None:
    record(continuum)
    by_hand(continuum, "memory/long_term/execution_trace_x_v1.md", "---\nmemory_frequency: sideways\n---\n")
    by_hand(
        continuum, "system/memory_log.md", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"
    )
    by_hand(
        continuum,
        "memory/long_term/pattern_old.md",
        "---\nmemory_frequency: mid\nvolatility: medium\nupdate_trigger: manual\nretention_policy: persistent\n"
        "confidence_score: 0.8\n---\n# Old\n",
    )
    found = Memory(continuum.store).check()
    assert [(one.code, one.file) for one in found] == [
        ("tiered-memory", "memory/long_term/execution_trace_x_v1.md"),
        ("tiered-undated", "memory/long_term/pattern_old.md"),
        ("tiered-memory", "system/memory_log.md"),
    ]
    assert found[2].message.endswith("run git lfs pull")
    assert "volatility: this field is required" in found[0].message
    assert all(one.meaning and one.remedy for one in found)


def test_a_memory_whose_front_matter_lost_its_line_is_a_finding_and_stays_searchable(
    continuum: Continuum,
) -> None:
    """As by an editor that makes three hyphens a dash: the memory would be text of the one before it."""
    file = "system/memory_log.md"
    made = [added(continuum, file, title, "Slowly.") for title in ("Sanding", "Planing")]
    continuum.sync()
    text = continuum.files.read(file) or ""
    by_hand(continuum, file, text.replace("---\nid: planing", "—\nid: planing"))
    continuum.sync()
    (finding,) = Memory(continuum.store).check()
    assert (finding.code, finding.file) == ("tiered-memory", file)
    assert "2 memories have memory_frequency, but only 1" in finding.message
    assert continuum.store.get_chunk(made[1].chunk_id) is not None


def test_front_matter_that_a_memory_quotes_is_no_finding(continuum: Continuum) -> None:
    added(continuum, "system/memory_log.md", "Sanding", "Begin so:\n\n```yaml\nmemory_frequency: high\n```\n")
    continuum.sync()
    assert Memory(continuum.store).check() == []


def test_repair_finishes_what_was_interrupted_and_leaves_the_rest_to_a_person(continuum: Continuum) -> None:
    transition = interrupted(continuum)
    by_hand(continuum, "memory/long_term/pattern_x.md", "no frontmatter\n")
    memory = Memory(continuum.store)
    assert {one.code for one in memory.check()} == {"change-interrupted", "tiered-memory"}
    assert [one.done for one in memory.repair()] == [False, False]
    done = {one.finding.code: one for one in memory.repair(dry_run=False)}
    assert (done["change-interrupted"].done, done["change-interrupted"].error) == (True, None)
    assert (done["tiered-memory"].done, done["tiered-memory"].manual) == (False, True)
    assert continuum.changes.transitions() == [transition]
    assert [one.code for one in memory.check()] == ["tiered-memory"]
