"""Each project has a namespace of its own, the same in every clone; memories are moved between them only explicitly."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.capture.moving import move_chunks
from rlm_mem.capture.projects import project_of
from rlm_mem.chunk import check_namespace
from rlm_mem.errors import ConflictError, InputError, NamespaceError
from rlm_mem.ingest.remember import remember
from rlm_mem.store.core import files
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from tests import killed
from tests.cli.conftest import Run
from tests.typed import present


def repository(root: Path, url: str | None) -> Path:
    (root / ".git").mkdir(parents=True)
    remote = (
        f'[remote "upstream"]\n\turl = https://x.org/a/b\n[remote "origin"]\n\turl = {url}\n' if url else ""
    )
    (root / ".git" / "config").write_text(f"[core]\n\tbare = false\n{remote}")
    return root


@pytest.mark.parametrize(
    ("url", "namespace"),
    [
        ("https://github.com/Acme/Ledger.git", "project/github.com/acme/ledger"),
        ("git@github.com:acme/ledger.git", "project/github.com/acme/ledger"),
        ("ssh://git@github.com:22/acme/ledger/", "project/github.com/acme/ledger"),
        ("https://me:secret@github.com/acme/ledger", "project/github.com/acme/ledger"),
        ("me:secret@github.com:acme/ledger.git", "project/github.com/acme/ledger"),
        ("git@gitlab.example:a/b/c/d.git", "project/gitlab.example/a/b/c/d"),
    ],
)
def test_the_remote_names_the_project(tmp_path: Path, url: str, namespace: str) -> None:
    root = repository(tmp_path / "here", url)
    (root / "deep" / "er").mkdir(parents=True)
    found = project_of(root / "deep" / "er")
    assert found is not None
    assert (found.namespace, found.root) == (namespace, root)


@pytest.mark.parametrize(
    "url",
    [None, "/srv/git/ledger.git", "file:///srv/git/ledger", "C:\\git\\x", "http://[broken", "../ledger",
     "a:b:" + "c/" * 300, "https://e.org/" + "x" * 900, "https://e.org/..%2f../ü n/ö", "https://e.org/../../../etc", "https://e.org/-/.git"],
)  # fmt: skip
def test_every_address_gives_a_namespace(tmp_path: Path, url: str | None) -> None:
    found = project_of(repository(tmp_path / "Ledger ü", url))
    assert found is not None
    assert check_namespace(found.namespace).startswith("project/")
    assert ".." not in found.namespace.split("/")


@pytest.mark.parametrize("url", ["https://me:pass/secret@e.org/a/b.git", "ext::sh -c 'secret %S a/b'"])
def test_an_address_that_git_does_not_take_apart_names_no_project_by_a_password(
    tmp_path: Path, url: str
) -> None:
    found = project_of(repository(tmp_path / "ledger", url))
    assert found is not None and found.namespace.startswith("project/local/ledger-")


def test_different_repositories_are_separate_and_work_trees_share_a_namespace(tmp_path: Path) -> None:
    one, two = repository(tmp_path / "a" / "app", None), repository(tmp_path / "b" / "app", None)
    tree = tmp_path / "tree"
    (one / ".git" / "worktrees" / "tree").mkdir(parents=True)
    (one / ".git" / "worktrees" / "tree" / "commondir").write_text("../..\n")
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {one}/.git/worktrees/tree\n")
    names = [present(project_of(folder)).namespace for folder in (one, two, tree)]
    assert names[0] == names[2] != names[1]
    similar = [
        project_of(repository(tmp_path / name, f"https://e.org/a/b{name}c")) for name in ("-", "+", " ")
    ]
    assert len({found.namespace for found in similar if found}) == 3


def test_the_home_folder_is_no_project(tmp_path: Path) -> None:
    assert project_of(tmp_path, home=tmp_path) is None
    assert project_of(tmp_path / "missing") is None
    assert project_of(tmp_path / "with\0nul") is None
    plain = tmp_path / "notes"
    plain.mkdir()
    assert present(project_of(plain, home=tmp_path)).namespace.startswith("project/local/notes-")


@pytest.mark.local_only("name a folder without a memory")
def test_a_project_is_shown_before_there_is_a_memory(run: Run, tmp_path: Path) -> None:
    repository(Path.cwd(), "git@github.com:acme/ledger.git")
    nowhere = tmp_path / "no brain"
    shown = run("--brain", str(nowhere), "project", "show")
    assert (shown.code, shown.out.splitlines()[0]) == (0, "project/github.com/acme/ledger")
    assert f"no memory at {nowhere} yet" in shown.err and not nowhere.exists()
    missing = run("--brain", str(nowhere), "list")
    assert missing.code == 1
    assert f"hint: rlm-mem store init '{nowhere}' creates one" in missing.err


def test_memories_move_between_project_and_person(run: Run, brain: Path | str) -> None:
    repository(Path.cwd(), "git@github.com:acme/ledger.git")
    own = "project/github.com/acme/ledger"
    with Memory.open(brain, namespace=own) as project:
        ids = [project.remember(text, conversation_id="s", tags=["x"]).chunk_ids[0] for text in (
            "I prefer short commit messages.", "The ledger runs on heron.")]  # fmt: skip
    assert run("project", "show", "--json").json["memories"] == 2
    refused = run("project", "move", ids[0], "chunk-2026-01-01-00000000", "--to", "shared")
    assert refused.code != 0
    (moved,) = run("project", "move", ids[0], "--to", "shared", "--json").json
    with Memory.open(brain, namespace=own) as project, Memory.open(brain) as shared:
        assert project.list_chunks() == [ids[1]]
        chunk = shared.get(moved["chunk_id"])
        assert chunk is not None
        assert (chunk.content, chunk.tags) == ("I prefer short commit messages.", ["x"])
        assert chunk.metadata.provenance["moved_from"] == f"{own}#{ids[0]}"
    assert f"back in {own}: I prefer short commit messages." in run("undo").out
    (moved,) = run("project", "move", ids[0], "--to", "shared", "--json").json
    run("project", "move", moved["chunk_id"], "--to", "project")
    assert run("project", "show", "--json").json["memories"] == 2
    assert run("project", "move", ids[1], "--to", own).code == 2
    assert run("--namespace", own, "project", "move", ids[1], "--to", "shared").code == 0


def test_project_as_a_namespace_is_that_of_the_working_folder(
    run: Run, brain: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(Path.cwd(), "git@github.com:acme/ledger.git")
    with Memory.open(brain, namespace="project/github.com/acme/ledger") as project:
        project.remember("The ledger runs on heron.")
    assert "heron" in run("--namespace", "project", "list").out
    assert "heron" in run("search", "ledger", "--namespace", "project").out
    assert run("search", "ledger").out.startswith("nothing found")
    told = "the project of this folder has 1 memory: use --namespace project"
    assert told in run("search", "ledger").out and told in run("recall", "Where does the ledger run?").out
    assert told in run("review", "list").out and told in run("undo").err
    assert (
        run("hook", "context", "autumn").out == "no memories are provided: none shares enough words with it\n"
    )
    monkeypatch.chdir("/")
    refused = run("--namespace", "project", "list")
    assert (refused.code, "/ belongs to no project" in refused.err) == (2, True)


def test_namespaces_called_project_and_shared_are_named_by_a_dot_and_a_slash(
    run: Run, brain: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository(Path.cwd(), "git@github.com:acme/ledger.git")
    for name in ("project", "project/github.com/acme/ledger"):
        with Memory.open(brain, namespace=name) as memory:
            memory.remember(f"A heron is in {name}.")
    assert "project." in run("--namespace", "./project", "list").out
    assert "ledger." in run("list", "--namespace", "project").out
    assert "ledger." in run("list", "--namespace", "./project/github.com/acme/ledger").out
    assert "--namespace ./project review" not in run("--namespace", "./project", "project", "show").out
    assert run("--namespace", "./project", "project", "move", "--all", "--to", "./shared").code == 0
    with Memory.open(brain, namespace="shared") as memory:
        assert memory.stats().chunk_count == 1
    for named, written in (("./project", "./project"), ("project", "project/github.com/acme/ledger")):
        for which in ((), ("--hooks",)):
            shown = run("--namespace", named, "install", "claude-code", *which, "--print").out
            words = re.split(r'[\s",]+', shown)
            assert words[words.index("--namespace") + 1] == written


def test_a_hook_in_a_folder_of_no_project_never_fails_whatever_namespace_it_names(
    run: Run, brain: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    for name in ("project", "./project", "no name"):
        for event in ("session-start", "stop"):
            ran = run("hook", event, "--namespace", name, stdin='{"session_id": "a", "cwd": "/"}')
            assert (ran.code, ran.out) == (0, ""), ran.err


def test_a_renamed_project_is_shown_its_former_memories_and_can_take_them_over(
    run: Run, brain: Path | str
) -> None:
    root, former = Path.cwd(), "project/github.com/acme/ledger"
    repository(root, "git@github.com:acme/ledger.git")
    with Memory.open(brain, namespace=former) as project:
        project.remember("The ledger runs on heron.")
        project.remember("The ledger moved from heron to egret.")
        [kept] = project.remember("Ana reviews every change of the ledger.", conversation_id="s-1").chunk_ids
        captured = [project.store.get_chunk(kept)]
        project.continuum.review.add_captured("s-1", "codex", [one for one in captured if one])
        project.continuum.traces.record("Paint the tram", success=True)  # stays there
    with Memory.open(brain) as shared:
        shared.remember("I prefer short commit messages.")
    (root / ".git" / "config").write_text('[remote "origin"]\n\turl = git@github.com:acme/accounts.git\n')
    told = run("project", "show", "--json").json
    assert told["other_projects"] == [{"namespace": former, "memories": 4}]
    assert f"{former}: 4 chunks" in run("project", "show").out
    for wrong in (["--all", "--to", "project"], ["--to", "project"]):
        assert run("project", "move", *wrong).code == 2
    moved = run("--namespace", former, "project", "move", "--all", "--to", "project", "--json").json
    assert len(moved) == 3
    with Memory.open(brain, namespace=told["namespace"]) as project:
        held = {chunk.content: chunk for chunk in project.store.iter_chunks()}
        heron, egret = held["The ledger runs on heron."], held["The ledger moved from heron to egret."]
        assert heron.metadata.superseded_by == egret.id
        assert [(link.type, link.target_id) for link in egret.links if link.type == "supersedes"] == [
            ("supersedes", heron.id)
        ]
        assert project.recall("Where does the ledger run?").content == "egret"
        assert check(project.store) == []
        (case,) = project.continuum.review.cases()
        assert case.chunk_ids == [held["Ana reviews every change of the ledger."].id], (
            "it waits for review here"
        )
    assert run("project", "show", "--json").json["other_projects"] == []
    assert run("--namespace", former, "undo").code == 0
    with Memory.open(brain, namespace=former) as project:
        assert len(project.list_chunks()) == 4
        assert [case.chunk_ids for case in project.continuum.review.cases()] == [[kept]]


def test_a_move_is_undone_in_both_namespaces_at_once(store: ChunkStore) -> None:
    other = store.confined_to("other", actor=None)
    made = store.create_chunk("I prefer short commit messages.", tags=["x"])
    move_chunks(store, "other", [made.id])
    there = [chunk.content for chunk in other.iter_chunks()]
    with Memory(store) as memory:
        with pytest.raises(NamespaceError, match="but this store reaches only other"):
            Memory(other).undo()
        undone = memory.undo()
        assert undone is not None and undone.ops == ("move",) and str(undone).startswith("undone: move of ")
        assert [(chunk.id, chunk.content) for chunk in store.iter_chunks()] == [(made.id, made.content)]
        assert list(other.iter_chunks()) == []
        assert Memory(other).undo() is None, "the undo counts in both"
        memory.undo(change=undone.undo)
        assert list(store.iter_chunks()) == []
        assert [chunk.content for chunk in other.iter_chunks()] == there
        (moved,) = other.iter_chunks()
        other.update_chunk(moved.id, content="I prefer long commit messages.")
        with pytest.raises(ConflictError, match="changed since"):
            memory.undo(change=next(iter(memory.recorded_changes())).id)
        assert list(store.iter_chunks()) == [], "nothing is undone in one namespace alone"


def contents(base: Path | str, namespace: str) -> list[str]:
    with ChunkStore(base, namespace=namespace) as store:
        return sorted(chunk.content for chunk in store.iter_chunks())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its victims: needs a POSIX system")
@pytest.mark.parametrize(
    "step", [pytest.param(3, id="every third"), pytest.param(1, id="every", marks=pytest.mark.slow)]
)
def test_a_move_killed_at_any_step_leaves_each_memory_in_one_namespace(
    base: Path | str, backend: str, step: int
) -> None:
    ends = set()
    for number in range(
        1, 200, 4 * step if backend == "postgres" else step
    ):  # more statements than file operations
        texts = [f"Note {number} {part}." for part in "ab"]
        with ChunkStore(base, namespace="a") as store:
            ids = [store.create_chunk(text).id for text in texts]
        pid = os.fork()
        if not pid:
            try:
                with ChunkStore(base, namespace="a") as store:
                    _die_at(number, backend)
                    move_chunks(store, "b", ids)
            finally:
                os._exit(0)
        status = os.waitpid(pid, 0)[1]
        left, moved = ([text for text in contents(base, name) if text in texts] for name in ("a", "b"))
        assert (left, moved) in ((texts, []), ([], texts)), number
        ends.add(bool(moved))
        if os.WIFEXITED(status):
            assert ends == {False, True}
            assert number > 4, "it must have been killed at several steps before it ran through"
            with ChunkStore(base, namespace="a") as store:
                assert check(store) == []
            return
    pytest.fail("the move never ran through")


def _die_at(number: int, backend: str) -> None:
    """Kill this process just before its file operation, or its statement, of this number."""
    patched = killed.at_call(number, after=False)
    places: list[tuple[object, str]] = [
        (files, name)
        for name in ("write_temp", "sync_files", "publish", "sync_folder", "link_or_copy", "remove")
    ]
    if backend == "postgres":
        import psycopg

        places = [
            (psycopg.Connection, "execute"), (psycopg.Cursor, "execute"), (psycopg.Cursor, "executemany"),
            (psycopg.Cursor, "copy"), (psycopg.Cursor, "fetchone"), (psycopg.Cursor, "fetchall"),
        ]  # fmt: skip
    for place, name in places:
        setattr(place, name, patched(getattr(place, name)))


def test_a_memory_that_is_moved_onto_the_same_text_is_trusted_and_kept_as_before(store: ChunkStore) -> None:
    text = "The gate code of the depot is 4711."
    other = store.confined_to("other", actor=None)
    doubted = remember(other, text, origin="web", ttl="1d").chunk_ids[0]
    kept = remember(store, text, origin="person", trust="trusted").chunk_ids[0]
    (moved,) = move_chunks(store, "other", [kept])
    assert moved.chunk_id == doubted
    (there,) = other.iter_chunks()
    assert (there.metadata.origin, there.metadata.trust, there.metadata.expires_at) == (
        "person",
        "trusted",
        None,
    )


def test_a_memory_that_is_moved_onto_a_text_that_holds_no_more_holds_again(store: ChunkStore) -> None:
    other = store.confined_to("other", actor=None)
    former = remember(other, "The office is in Bremen.").chunk_ids[0]
    newer = remember(other, "The office is in Emden.", replaces=former).chunk_ids[0]
    back = remember(store, "The office is in Bremen.").chunk_ids[0]
    (moved,) = move_chunks(store, "other", [back])
    assert moved.chunk_id not in (former, newer)
    (chunk,) = other.get_many([moved.chunk_id]).values()
    assert chunk.metadata.superseded_by is None


@pytest.mark.parametrize("first", [0, 1])
def test_two_that_replace_each_other_meet_again_if_they_are_moved_one_after_the_other(
    store: ChunkStore, first: int
) -> None:
    old = remember(store, "The office is in Bremen.").chunk_ids[0]
    new = remember(store, "The office is in Emden.", replaces=old).chunk_ids[0]
    pair = [old, new]
    (moved,) = move_chunks(store, "other", [pair[first]])
    assert moved.apart == (pair[1 - first],)
    (left,) = store.iter_chunks()
    assert (left.id, left.metadata.superseded_by) == ((old, new) if first else (new, None))
    other = store.confined_to("other", actor=None)
    (there,) = other.iter_chunks()
    assert (there.metadata.valid_to is None, there.metadata.superseded_by) == (bool(first), None)
    (too,) = move_chunks(store, "other", [pair[1 - first]])
    assert too.apart == () and not store.list_chunks()
    older, newer = (too.chunk_id, moved.chunk_id) if first else (moved.chunk_id, too.chunk_id)
    chunks = other.get_many([older, newer])
    assert chunks[older].metadata.superseded_by == newer
    assert ("supersedes", older) in [(link.type, link.target_id) for link in chunks[newer].links]
    assert check(store) == check(other) == []
    assert Memory(store).undo() is not None and store.list_chunks() == [pair[1 - first]]


def test_moving_one_of_two_says_that_the_other_one_stays(run: Run, brain: Path | str) -> None:
    with Memory.open(brain, namespace="project/a") as project:
        old = project.remember("The office is in Bremen.").chunk_ids[0]
        new = project.remember("The office is in Emden.", replaces=old).chunk_ids[0]
    shown = run("--namespace", "project/a", "project", "move", new, "--to", "shared")
    assert shown.code == 0 and f"note: {old} stays" in shown.out


def test_a_moved_memory_is_as_far_trusted_and_as_long_kept_as_before(store: ChunkStore) -> None:
    made = store.create_chunk("From a page.", origin="web", ttl="30d", type="fact")
    (moved,) = move_chunks(store, "other", [made.id])
    with store.confined_to("other", actor=None) as other:
        found = other.get_many([moved.chunk_id])[moved.chunk_id]
        assert [getattr(found.metadata, name) for name in ("origin", "trust", "expires_at", "at")] == [
            getattr(made.metadata, name) for name in ("origin", "trust", "expires_at", "at")
        ]


def test_a_text_that_was_replaced_and_is_true_again_moves_as_two_memories(store: ChunkStore) -> None:
    """Again after the originals were restored, as when a move between two servers is repeated."""
    texts = ("We deploy on Thursdays.", "We deploy on Mondays now.", "We deploy on Thursdays.")
    ids: list[str] = []
    for text in texts:
        ids += remember(store, text, replaces=ids[-1:], again=True).chunk_ids
    other = store.confined_to("other", actor=None)
    former, between, latest = (one.chunk_id for one in move_chunks(store, "other", ids))
    for chunk_id in ids:
        store.restore_chunk(chunk_id)
    assert [one.chunk_id for one in move_chunks(store, "other", ids)] == [former, between, latest]
    found = other.get_many([former, between, latest])
    assert [one.metadata.superseded_by for one in found.values()] == [between, latest, None]
    assert check(other) == []


def test_a_tiered_memory_stays_in_its_namespace(store: ChunkStore) -> None:
    with Memory(store) as memory:
        tiered = memory.continuum.traces.record("Paint the tram", success=True).chunk_id
        with pytest.raises(InputError, match="stays in its namespace"):
            move_chunks(store, "other", [tiered])
        assert memory.store.exists(tiered)


def test_a_move_drops_a_link_that_would_close_a_cycle_in_the_target(store: ChunkStore) -> None:
    other = store.confined_to("other", actor=None)
    for place, texts in ((other, ("Ebb.", "Flow.")), (store, ("Flow.", "Ebb."))):
        first, second = (place.create_chunk(text).id for text in texts)
        place.add_link(second, first, "follows", 0.5)
    moved = move_chunks(store, "other", [first, second])
    assert [chunk.content for chunk in other.iter_chunks()] == ["Ebb.", "Flow."]
    assert len(moved) == 2 and list(store.iter_chunks()) == []
