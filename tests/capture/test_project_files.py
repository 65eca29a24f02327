"""`rlm-mem project import` and hooks keep the memory in step with the files that a project keeps for its agents."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.capture.project_files import project_files
from rlm_mem.errors import InputError
from rlm_mem.interchange.folders import sync_folder
from rlm_mem.interchange.formats.instructions import kind_of, may_hold
from rlm_mem.interchange.importing import import_source
from rlm_mem.mcp.hooks import log_file
from tests.capture.sessions import event
from tests.cli.conftest import Run

NAMESPACE = "project/github.com/acme/ferry"

FILES = {
    "CLAUDE.md": "# Ferry\n\n## Git\n- Branches are named after the ticket.\n\n"
    "## Tests\n- Do not mock the database, because mocks hid errors of locks.\n",
    "backend/AGENTS.md": "# Backend\n\nMigrations are never edited after a merge.\n",
    ".cursor/rules/api.mdc": "---\ndescription: Rules for the API\nglobs: *.py\nalwaysApply: false\n---\n\n"
    "- Paginate with cursors, never with offsets.\n",
    ".github/copilot-instructions.md": "Use British spelling in the interface.\n",
    ".github/workflows/notes.md": "Not for agents.\n",
    ".claude/worktrees/old/CLAUDE.md": "# A copy of another branch\n",
    "memory-bank/activeContext.md": "# Active Context\n\n## Current Work Focus\nThe offline check of tickets.\n\n"
    "## Next Steps\n- [ ] Sync of the tickets that were revoked\n- [ ] A load test with 500 tablets\n",
    "memory-bank/progress.md": "# Progress\n\n## Known Issues\n- The seat map flickers on Safari, but not on Firefox\n",
    "doc/adr/0001-sessions.md": "# 1. Sessions in Redis\n\nDate: 2026-03-02\n\n## Status\n\nAccepted\n\n"
    "## Decision\n\nSessions are kept in Redis.\n",
    "doc/adr/README.md": "How to write a record.\n",
    "doc/guide.md": "The guide for passengers.\n",
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "ferry"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "config").write_text('[remote "origin"]\n\turl = git@github.com:acme/ferry.git\n')
    for name, text in FILES.items():
        write(root, name, text)
    monkeypatch.chdir(root)
    return root


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def session(run: Run, project: Path) -> Callable[..., str]:
    """Start a session in the project, and return what the agent is given."""

    def start(folder: Path = project) -> str:
        ran = run(
            "hook", "session-start", stdin=json.dumps(event("claude-code", "session-start", folder, None))
        )
        assert (ran.code, ran.err) == (0, "")
        return str(json.loads(ran.out)["hookSpecificOutput"]["additionalContext"]) if ran.out else ""

    return start


def chunks(run: Run, *more: str) -> list[dict[str, Any]]:
    return list(run("--namespace", NAMESPACE, "list", "--json", *more).json)


def test_one_command_remembers_every_kind_of_file_and_nothing_else(run: Run, project: Path) -> None:
    (report,) = run("project", "import", "--json").json
    assert report["added"] == sorted(set(FILES) - {
        ".github/workflows/notes.md", ".claude/worktrees/old/CLAUDE.md", "doc/adr/README.md", "doc/guide.md",
    })  # fmt: skip
    shown = {one["content"].partition("\n")[0]: one for one in chunks(run)}
    assert shown["## Next Steps"]["tags"] == ["memory-bank", "activeContext"], (
        "a section is a memory of its own"
    )
    assert shown["## Tests"]["tags"] == ["instructions"]
    decision = shown["# 1. Sessions in Redis"]
    assert (decision["type"], decision["tags"]) == ("decision", ["decision"])
    assert decision["metadata"]["occurred_at"].startswith("2026-03-02")
    assert {one["metadata"]["trust"] for one in shown.values()} == {"ordinary"}
    assert run("project", "import").out.startswith(f"{project}: 7 unchanged")


def test_a_session_is_given_the_current_work_first_and_no_instructions(
    run: Run, session: Callable[..., str]
) -> None:
    run("project", "import")
    given = session()
    assert "The offline check of tickets." in given
    assert re.search(r"## Next Steps - \[ \] Sync of the tickets that were revoked", given), (
        "not the heading alone"
    )
    assert "Sessions are kept in Redis" in given
    assert "mock" not in given and "British" not in given
    assert given.index("revoked") < given.index("Redis")


@pytest.mark.local_only("about files, not about the store")
def test_a_session_follows_edits_and_branches_without_a_command(
    run: Run, session: Callable[..., str], project: Path
) -> None:
    run("project", "import")
    before = {one["id"] for one in chunks(run)}
    write(
        project, "memory-bank/activeContext.md", FILES["memory-bank/activeContext.md"].replace("500", "900")
    )
    assert "900 tablets" in session() and "500 tablets" not in session()
    new = [one for one in chunks(run) if one["id"] not in before]
    assert [one["content"].partition("\n")[0] for one in new] == ["## Next Steps"], (
        "only the section that changed"
    )
    shown = run("--namespace", NAMESPACE, "show", new[0]["id"], "--json").json
    assert [link["type"] for link in shown["links"]].count("supersedes") == 1
    (project / "doc/adr/0001-sessions.md").unlink()
    assert "Redis" not in session()
    write(project, "doc/adr/0001-sessions.md", FILES["doc/adr/0001-sessions.md"])
    assert "Redis" in session()


def test_a_branch_that_was_checked_out_before_brings_back_its_memories_instead_of_copies(
    run: Run, project: Path
) -> None:
    name = "memory-bank/activeContext.md"
    more = "\n## Blocked\n\nThe payment module waits for the certificate of the bank in Aarhus.\n"
    branches = [FILES[name], FILES[name].replace("500", "900") + more]
    run("project", "import")
    states: list[dict[str, str]] = []
    for number in range(6):
        write(project, name, branches[1 - number % 2])
        dry = run("project", "import", "--dry-run", "--json").json[0]
        made = run("project", "import", "--json").json[0]
        assert dry["chunks_restored"] == made["chunks_restored"] == (0 if number == 0 else 2 - number % 2)
        states.append(
            {one["id"]: one["content"] for one in chunks(run) if not one["metadata"]["superseded_by"]}
        )
        assert ("900 tablets" in str(states[-1]), "Aarhus" in str(states[-1])) == (number % 2 == 0,) * 2
    assert states[::2] == [states[0]] * 3 and states[1::2] == [states[1]] * 3
    assert run("store", "check", "--json").json["findings"] == []
    run("--namespace", NAMESPACE, "undo")
    assert {one["id"] for one in chunks(run) if not one["metadata"]["superseded_by"]} == states[0].keys()


def test_what_a_person_replaced_is_not_brought_back_by_a_branch(run: Run, project: Path) -> None:
    name = "memory-bank/activeContext.md"
    run("project", "import")
    old = next(one["id"] for one in chunks(run) if "500 tablets" in one["content"])
    run("--namespace", NAMESPACE, "remember", "The load test uses 700 tablets.", "--replaces", old)
    for text in (FILES[name].replace("500", "900"), FILES[name]):
        write(project, name, text)
        run("project", "import")
    shown = run("--namespace", NAMESPACE, "show", old, "--json").json
    assert shown["metadata"]["superseded_by"]


def test_a_project_without_a_remote_is_followed_when_the_machine_has_another_name(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of machines change with the network and with each container."""
    (project / ".git" / "config").unlink()
    run("project", "import")
    monkeypatch.setattr("platform.node", lambda: "another")
    write(project, "CLAUDE.md", "# Ferry\n\nBranches are named after the month.\n")
    ran = run("project", "import", "--json")
    assert (ran.code, ran.json[0]["changed"]) == (0, ["CLAUDE.md"])


def test_what_was_not_imported_or_is_another_clone_is_not_followed(
    run: Run, session: Callable[..., str], project: Path, tmp_path: Path
) -> None:
    assert session() == ""
    run("project", "import", "--dry-run")
    assert session() == ""
    run("project", "import")
    clone = tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    (clone / ".git" / "config").write_bytes((project / ".git" / "config").read_bytes())
    write(clone, "memory-bank/activeContext.md", "# Active Context\n\nThe work of another clone.\n")
    assert "another clone" not in session(clone)


@pytest.mark.parametrize(
    "status",
    ["Status: Superseded by 0002", "## Status\n\nDeprecated", "* **Status**: rejected", "status: superseded"],
)
def test_a_decision_that_no_longer_holds_is_out_of_date(run: Run, project: Path, status: str) -> None:
    text = FILES["doc/adr/0001-sessions.md"].replace("## Status\n\nAccepted", status)
    if status.startswith("status"):
        text = f"---\n{status}\n---\n{text}"
    write(project, "doc/adr/0001-sessions.md", text)
    run("project", "import")
    hits = run("--namespace", NAMESPACE, "search", "Where are sessions kept?", "--json").json
    assert next(one for one in hits if "Redis" in one["snippet"])["ended_at"]


@pytest.mark.local_only("about files, not about the store")
def test_the_notes_of_claude_code_about_the_project_are_read_too(run: Run, project: Path) -> None:
    folder = re.sub(r"[^A-Za-z0-9]", "-", str(project))
    write(
        Path.home(),
        f".claude/projects/{folder}/memory/MEMORY.md",
        "# Ferry\n\nThe test database is on port 5544.\n",
    )
    _, notes = run("project", "import", "--json").json
    assert notes["added"] == ["MEMORY.md"]


def test_instructions_in_two_names_are_remembered_once_and_links_out_are_refused(
    run: Run, project: Path, tmp_path: Path
) -> None:
    (project / "AGENTS.md").symlink_to("CLAUDE.md")
    write(tmp_path, "secret/0001-x.md", "Nobody should read this.")
    (project / "memory-bank" / "stolen.md").symlink_to(tmp_path / "secret" / "0001-x.md")
    (project / ".windsurf").mkdir()
    (project / ".windsurf" / "rules").symlink_to(tmp_path / "secret")
    (report,) = run("project", "import", "--json").json
    assert [one["where"] for one in report["refused"]] == ["memory-bank/stolen.md"]
    assert not any("Nobody" in one["content"] for one in chunks(run))


def test_wrong_calls_name_the_remedy(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--watch cannot be combined" in run("project", "import", "--watch", "--dry-run").err
    assert "trust" in run("project", "import", "--trust", "some").err
    monkeypatch.chdir(Path.home())
    assert "belongs to no project" in run("project", "import").err
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert "no files for agents" in run("project", "import").out


def test_an_id_of_the_project_that_is_looked_for_elsewhere_is_explained(run: Run, project: Path) -> None:
    assert "another namespace" not in run("show", "aaaaaaaa").err
    run("project", "import")
    one = chunks(run)[0]["id"]
    for given in (one, one[-8:]):
        told = run("show", given)
        assert told.code != 0 and "add --namespace project" in told.err
    assert run("show", "--namespace", "project", one).code == 0
    assert "another namespace" not in run("show", "--namespace", "project", "aaaaaaaa").err


@pytest.mark.local_only("about files, not about the store")
def test_a_session_is_given_what_is_remembered_if_the_files_cannot_be_followed(
    run: Run, session: Callable[..., str], brain: Path, project: Path
) -> None:
    run("project", "import")
    (record,) = brain.rglob("system/capture/project.json")
    record.write_text(json.dumps({"folders": {str(project): "some"}}))
    assert "revoked" in session()
    assert "trust must be one of" in log_file().read_text()


@pytest.mark.local_only("about the lock of the files")
def test_a_session_is_given_what_is_remembered_while_another_process_is_writing(
    run: Run, session: Callable[..., str], project: Path, brain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("project", "import")
    write(project, "doc/adr/0001-sessions.md", FILES["doc/adr/0001-sessions.md"].replace("Redis", "Valkey"))
    monkeypatch.setenv("RLM_MEM_STORE_LOCK_WAIT_SECONDS", "0.1")
    with Memory.open(brain) as memory, memory.store.batch():
        memory.remember("The ferry leaves at seven.")
        assert "Sessions are kept in Redis" in session()
        assert "another process holds the write lock" in log_file().read_text()
    assert "Sessions are kept in Valkey" in session()


def test_the_command_that_undoes_an_import_is_printed_with_its_namespace(
    run: Run, project: Path, tmp_path: Path
) -> None:
    write(tmp_path, "notes/gate.md", "The gate of the harbour is green.")
    for command in (
        ["project", "import"],
        ["--namespace", "team/harbour", "remember", "--folder", str(tmp_path / "notes")],
        ["--namespace", "team/quay", "import", str(tmp_path / "notes")],
    ):
        (line,) = (one for one in run(*command).out.splitlines() if one.endswith(" undoes it"))
        undone = run(*line.split()[1:-2])
        assert undone.code == 0, undone.err
        redo = undone.err.partition("to redo it: rlm-mem ")[2]
        assert redo.startswith("--namespace ") and run(*redo.split()).code == 0
    assert run("remember", "--folder", str(tmp_path / "notes")).out.count("  rlm-mem undo ") == 1


def test_the_command_is_named_where_hooks_are_installed(run: Run) -> None:
    assert "rlm-mem project import" in run("install", "claude-code", "--hooks").out


@pytest.mark.local_only("about files, not about the store")
def test_a_damaged_record_of_what_is_followed_is_written_again(
    run: Run, session: Callable[..., str], brain: Path, project: Path
) -> None:
    run("project", "import")
    (record,) = brain.rglob("system/capture/project.json")
    record.write_text("{")
    write(project, "memory-bank/activeContext.md", "# Active Context\n\nThe harvest of apples.\n")
    assert "apples" not in session()
    run("project", "import")
    assert json.loads(record.read_text()) == {"folders": {str(project): "ordinary"}}


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("CLAUDE.md", "instructions"), ("app/Gemini.md", "instructions"), (".cursorrules", "instructions"),
        ("rules/api.mdc", "instructions"), (".roo/rules-code/a.md", "instructions"),
        (".clinerules/a.md", "instructions"), ("app/.claude/rules/x/y.md", "instructions"),
        (".claude/agents/reviewer.md", None), (".claude/CLAUDE.md", "instructions"),
        ("memory-bank/a/b.md", "memory-bank"), ("productContext.md", "memory-bank"), ("progress.md", None),
        ("memory-bank/picture.png", None), ("doc/decisions/ADR-12 x.md", "decision"), ("adr/template.md", None),
        ("doc/2026-01-02.md", None), ("", None),
    ],
)  # fmt: skip
def test_kinds_are_told_by_paths(path: str, kind: str | None) -> None:
    assert kind_of(path) == kind


@pytest.mark.parametrize(
    ("folder", "held"),
    [("doc", True), (".git", False), (".github", True), (".github/workflows", False), (".claude/worktrees", False),
     (".claude/rules/go", True), ("app/.memory-bank", True), (".venv", False)],
)  # fmt: skip
def test_hidden_folders_are_entered_only_for_rules(folder: str, held: bool) -> None:
    assert may_hold(folder) is held


@pytest.mark.local_only("about files, not about the store")
def test_a_memory_bank_is_recognised_when_only_its_folder_is_remembered(project: Path, brain: Path) -> None:
    with Memory.open(brain) as memory:
        sync_folder(memory.store, project / "memory-bank")
        assert {tag for tag, _ in memory.store.tag_counts()} >= {"memory-bank", "activeContext"}


def test_a_single_file_for_agents_is_split_at_its_sections_as_by_the_command_for_projects(
    project: Path, brain: Path
) -> None:
    file = project / "memory-bank" / "activeContext.md"
    with Memory.open(brain) as memory:
        planned = import_source(memory.store, file, dry_run=True)
        made = import_source(memory.store, file)
        assert planned.created == made.created == len(memory.list_chunks()) > 1
        assert {chunk.content.partition("\n")[0] for chunk in memory.store.iter_chunks()} >= {"## Next Steps"}
        (stored,) = memory.remember_many([{"text": file.read_text(), "sections": True, "again": True}])
        assert stored.created == made.created
        with pytest.raises(InputError, match="sections must be"):
            memory.remember_many([{"text": "x", "sections": "yes"}])


def test_branches_that_take_turns_leave_no_copies(brain: Path | str, project: Path) -> None:
    """Each text has one memory, which holds while its branch is checked out."""
    old = FILES["CLAUDE.md"]
    texts = [old.replace("Do not mock", "Always mock"), old.replace("locks", "time"), old]
    with Memory.open(brain, namespace=NAMESPACE) as memory:
        files = project_files(memory, project, "ordinary")
        files.sync()
        for turn, text in enumerate([*texts, *texts, *texts[:2], *texts[:1]]):
            write(project, "CLAUDE.md", text)
            planned, made = (files.sync(dry_run=dry_run)[0] for dry_run in (True, False))
            assert planned.chunks_created == made.chunks_created == (turn < 2)
            assert planned.chunks_superseded == made.chunks_superseded == 1
            found = [one for one in memory.store.iter_chunks(tags=["instructions"]) if "mock" in one.content]
            assert len(found) == min(turn + 2, 3) and memory.check() == []
            (valid,) = [one for one in found if one.metadata.superseded_by is None]
            assert valid.content.splitlines()[-1] in text and valid.metadata.valid_to is None
        assert memory.undo() is not None
        assert memory.check() == [] and "time" in memory.search("mock")[0].snippet


def test_a_text_that_a_person_replaced_does_not_hold_again(brain: Path | str, project: Path) -> None:
    old = FILES["CLAUDE.md"]
    with Memory.open(brain, namespace=NAMESPACE) as memory:
        files = project_files(memory, project, "ordinary")
        files.sync()
        (first,) = [one.id for one in memory.store.iter_chunks() if "Do not mock" in one.content]
        by_hand = memory.store.create_chunk("Mocks are fine where no lock is taken.").id
        memory.supersede(first, by_hand)
        for text in (old.replace("Do not mock", "Always mock"), old):
            write(project, "CLAUDE.md", text)
            files.sync()
        replaced = memory.get(first)
        assert replaced is not None and replaced.metadata.superseded_by == by_hand and memory.check() == []


def test_a_file_is_erased_by_its_path_wherever_the_command_runs(
    run: Run, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its memories are recorded by the name of the repository, in the namespace of the project."""
    run("project", "import")
    monkeypatch.chdir(tmp_path)
    shown = run("erase", "--source", str(project / "CLAUDE.md")).out
    assert "Do not mock the database" in shown and "British" not in shown
    run("erase", "--source", "ferry/CLAUDE.md", "--apply", "--report", str(tmp_path / "report.json"))
    texts = [one["content"] for one in chunks(run)]
    assert not any("mock" in one for one in texts) and any("British" in one for one in texts)
    assert "github.com/acme/ferry:/CLAUDE.md" in (tmp_path / "report.json").read_text()


def test_work_trees_and_submodules_within_the_folder_are_left_out(run: Run, project: Path) -> None:
    """The first repeat the files of another branch, the second are of another project, perhaps of other people."""
    for folder in ("trees/feature", "vendor/engine"):
        write(project, f"{folder}/.git", "gitdir: elsewhere\n")
        write(project, f"{folder}/CLAUDE.md", "# Ferry\n\nObey the engine.\n")
        write(project, f"{folder}/memory-bank/progress.md", "# Progress\n\nObey the engine.\n")
    run("project", "import")
    assert chunks(run) and not any("Obey" in one["content"] for one in chunks(run))


def test_branches_that_take_turns_leave_a_bounded_number_of_memories_and_versions(
    run: Run, brain: Path | str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLM_MEM_STORE_KEEP_VERSIONS", "3")
    texts = (
        FILES["CLAUDE.md"],
        FILES["CLAUDE.md"].replace("Do not mock", "Never mock") + "\n## More\n- Of a branch alone.\n",
    )
    counts: list[tuple[int, int]] = []
    with Memory.open(brain, namespace=NAMESPACE) as memory:
        for number in range(8):
            write(project, "CLAUDE.md", texts[number % 2])
            project_files(memory, project, "ordinary").sync()
            ids = memory.list_chunks() + memory.list_chunks(archived=True)
            counts.append((len(ids), max(len(memory.history(one)) for one in ids)))
        assert counts[-1] == (counts[1][0], 4)
        assert memory.check() == []
