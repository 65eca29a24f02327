"""The server of a project: writes go to the project, reads see the shared namespace, and nothing reaches a third."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from rlm_mem import Memory, Stats
from rlm_mem.mcp.service import Service
from rlm_mem.operations.context import OpenMemory, Settings
from rlm_mem.search import Filters, search
from rlm_mem.store.core.joined_store import JoinedStore
from tests.server.conftest import text_in
from tests.typed import present

PROJECT = "project/github.com/acme/ledger"
OWN = "Ana: the ledger service listens on port 5433 since the move to the new cluster."
SHARED = "Dana prefers tabs of four spaces in every Python project of hers."
OTHER = "The vault of the third project opens with a heron feather."


@pytest.fixture
def ids(place: Path | str) -> dict[str, str]:
    """A memory in the project, in the shared namespace and in a third one."""
    made = {}
    for name, namespace, text in (
        ("own", PROJECT, OWN), ("shared", None, SHARED), ("other", "project/x/y", OTHER)
    ):  # fmt: skip
        with Memory.open(place, namespace=namespace) as memory:
            made[name] = memory.remember(text, conversation_id="c", tags=["t"]).chunk_ids[0]
    return made


@pytest.fixture
def service(place: Path | str, ids: dict[str, str]) -> Iterator[Service]:
    """A server of the project."""
    settings = Settings(brain=place, namespace=PROJECT, shared="default", every_tool=True)
    service = Service(OpenMemory(settings))
    yield service
    service.close()


def data(service: Service, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = service.call(tool, arguments)
    assert answer.data is not None, answer.text
    return answer.data


def test_reading_tools_see_both_and_say_which(service: Service, ids: dict[str, str]) -> None:
    found = {
        one["id"]: one.get("namespace")
        for one in data(service, "search", query="Dana ledger port tabs")["hits"]
    }
    assert found == {ids["own"]: None, ids["shared"]: "default"}
    newest = data(service, "search")["hits"]
    assert [(one["id"], one.get("namespace")) for one in newest] == [
        (ids["shared"], "default"),
        (ids["own"], None),
    ]
    got = data(service, "get", ids=[ids["own"], ids["shared"], ids["other"]])
    assert [one.get("namespace") for one in got["memories"]] == [None, "default"]
    assert got["missing"] == [ids["other"]]
    assert data(service, "status")["memories"] == 2
    for question, name, words in (
        ("Which port does the ledger service listen on?", "own", "5433"),
        ("What does Dana prefer in Python projects?", "shared", "four spaces"),
    ):
        answer = data(service, "recall", question=question)
        assert words in answer["answer"]
        assert ids[name] in answer["chunk_ids"]
        assert [one.get("namespace") for one in answer["sources"]][:1] == [
            None if name == "own" else "default"
        ]


def test_a_session_reads_both_and_no_third(service: Service, ids: dict[str, str]) -> None:
    opened = data(service, "recall_open", question="What does Dana prefer?")
    assert ids["shared"] in opened["opening"]
    program = (
        f"print([read_chunk(one) and read_chunk(one).get('namespace', 'own') for one in {list(ids.values())}])\n"
        "print(len(timeline()), len(all_chunks()), len(list_chunks_by_tag('t')), len(search_chunks('vault heron')))\n"
        "print([one['chunk_id'] for one in search('heron feather vault Dana ledger')], stats()['chunk_count'])\n"
        "print(grep('heron|vault'))\n"
    )
    step = data(service, "recall_exec", handle=opened["handle"], code=program)
    assert "error" not in step
    lines = step["output"].splitlines()
    assert lines[0] == "['own', 'default', None]"
    assert lines[1] == "2 2 2 0"
    assert ids["other"] not in step["output"]
    assert lines[3] == "[]"
    finish = {"handle": opened["handle"], "answer": "tabs"}
    refused = service.call("recall_finish", {**finish, "chunk_ids": [ids["other"]]})
    assert "there is no chunk" in refused.text
    assert data(service, "recall_finish", **finish, chunk_ids=[ids["shared"]])["chunk_ids"] == [ids["shared"]]


def test_writes_go_to_the_project_alone(service: Service, ids: dict[str, str], place: Path | str) -> None:
    made = data(service, "remember", text="The ledger uses optimistic locking.")["chunk_ids"][0]
    for tool, arguments in (
        ("update", {"id": ids["shared"], "content": "taken over"}),
        ("forget", {"ids": [made, ids["shared"]]}),
        ("link", {"source_id": made, "target_id": ids["shared"], "type": "supports"}),
        ("link", {"source_id": ids["shared"], "target_id": made, "type": "supports"}),
        ("quarantine", {"chunk_id": ids["shared"]}),
        ("remember", {"text": "Dana prefers two spaces.", "replaces": [ids["shared"]]}),
    ):
        answer = service.call(tool, arguments)
        assert answer.failed
        assert "'default'" in answer.text
        assert f"rlm-mem project move {ids['shared']} --to project" in answer.text
    assert "no memory" in service.call("update", {"id": ids["other"], "content": "x"}).text
    service.close()
    with Memory.open(place, namespace=PROJECT) as project, Memory.open(place) as shared:
        assert set(project.list_chunks()) == {ids["own"], made}
        assert shared.list_chunks() == [ids["shared"]]
        assert present(shared.get(ids["shared"])).content == SHARED
        assert [one.op for one in shared.events()] == ["create"]
        assert len(project.trajectories()) == len(shared.trajectories()) == 0


def test_remember_names_earlier_memories_of_both_and_where_they_are(
    service: Service, ids: dict[str, str]
) -> None:
    made = data(service, "remember", text="Dana prefers tabs of two spaces in the ledger service.")
    assert {one["id"]: one.get("namespace") for one in made["earlier"]} == {
        ids["own"]: None,
        ids["shared"]: "default",
    }
    refused = service.call("remember", {"text": "Dana prefers two spaces.", "replaces": [ids["shared"]]})
    assert f"rlm-mem project move {ids['shared']} --to project" in refused.text


def test_two_namespaces_rank_as_one(place: Path | str) -> None:
    """Split over two namespaces or stored in one: the same hits with the same scores."""
    texts = [f"Note {number}: the {word} of the harbour is {colour}." for number, (word, colour) in enumerate(
        (word, colour) for word in ("boat", "crane", "light", "gate") for colour in ("red", "green", "white")
    )]  # fmt: skip
    with (
        Memory.open(place, namespace="one") as one,
        Memory.open(place, namespace="a") as a,
        Memory.open(place, namespace="b") as b,
    ):
        for number, text in enumerate(texts):
            at = f"2026-01-{number + 1:02}T10:00:00Z"
            one.remember(text, occurred_at=at)
            (b if number % 4 == 0 else a).remember(text, occurred_at=at)
        joined = JoinedStore(a.store, b.store)
        for query in ("green crane", "the white light of the harbour", "gate", "harbor", "zebra", ""):
            wanted = {hit.snippet: round(hit.score, 6) for hit in one.search(query, limit=20)}
            got = {hit.snippet: round(hit.score, 6) for hit in search(joined, query, limit=20)}
            assert got == wanted, query
            assert list(got.values()) == list(wanted.values()), query
        newest = search(joined, "", limit=3, filters=Filters(start="2026-01-02"))
        assert [hit.snippet for hit in newest] == texts[:-4:-1]
        listed = [joined.get_many([one])[one].content for one in joined.list_chunks(offset=2, limit=5)]
        assert listed == texts[2:7]
        pages, after = [], None
        while True:
            page, after = joined.list_page(5, after=after, newest_first=True)
            pages += page
            if after is None:
                break
        assert [joined.get_many([one])[one].content for one in pages] == texts[::-1]
        assert [one.at for one in joined.timeline(limit=4)] == sorted(one.at for one in joined.timeline())[:4]
        figures, each = joined.get_stats(), [one.store.get_stats() for one in (a, b)]
        assert figures["chunk_count"] == len(texts)
        assert figures.keys() <= {field.name for field in fields(Stats)}, "a figure is also an attribute"
        of_both = {name for name in figures if isinstance(figures[name], int | float)}
        for name in of_both - {"unreadable_files", "index_size_mb"}:
            assert figures[name] == pytest.approx(each[0][name] + each[1][name]), name
        then = joined.held_at("2026-01-05")
        assert [hit.snippet for hit in search(then, "harbour", limit=20) if hit.at > "2026-01-06"] == []
        assert len(then.list_chunks()) == 5


def test_a_client_starts_the_server_in_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an installed entry does: the namespace is that of the repository's remote, in any folder below it."""
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    brain, repository = tmp_path / "brain", tmp_path / "ledger"
    (repository / ".git").mkdir(parents=True)
    (repository / "src").mkdir()
    (repository / ".git" / "config").write_text('[remote "origin"]\n url = git@github.com:acme/ledger.git\n')
    with Memory.open(brain) as memory:
        shared = memory.remember(SHARED).chunk_ids[0]

    async def run() -> dict[str, Any]:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "rlm_mem", "mcp", "--brain", str(brain), "--project"],
            cwd=repository / "src",
        )
        async with Client(stdio_client(parameters)) as client:
            await client.call_tool("remember", {"text": OWN})
            await client.call_tool("remember", {"text": "x", "namespace": "default"})
            found = await client.call_tool("search", {"query": "Dana tabs"})
            refused = await client.call_tool("forget", {"ids": [shared]})
            listed = await client.read_resource(f"memory://chunks/{shared}")
            assert refused.is_error
            assert SHARED in text_in(listed.contents[0])
            return dict(found.structured_content or {})

    found = asyncio.run(run())
    assert (found["hits"][0]["id"], found["hits"][0]["namespace"]) == (shared, "default")
    with Memory.open(brain, namespace=PROJECT) as memory:
        assert [present(memory.get(one)).content for one in memory.list_chunks()] == [OWN]

    async def committed() -> None:
        """As the settings of a project name a brain inside of it, which a session below finds, too."""
        Memory.open(repository / "brain").close()
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-m", "rlm_mem", "mcp", "--brain", "brain", "--project"],
            cwd=repository / "src",
        )
        async with Client(stdio_client(parameters)) as client:
            await client.call_tool("remember", {"text": OWN})

    asyncio.run(committed())
    assert not (repository / "src" / "brain").exists()
    with Memory.open(repository / "brain", namespace=PROJECT) as memory:
        assert [present(memory.get(one)).content for one in memory.list_chunks()] == [OWN]
    both = subprocess.run(
        [sys.executable, "-m", "rlm_mem", "mcp", "--project", "--namespace", "x"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert both.returncode == 2
    assert "--project and --namespace" in both.stderr
