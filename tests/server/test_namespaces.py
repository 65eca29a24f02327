"""A client sees the namespace that its server was started with, and no argument leads to another one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.errors import RlmMemError
from rlm_mem.mcp.resources import FIXED, read_resource
from rlm_mem.mcp.service import Service, input_schema
from rlm_mem.operations.context import OpenMemory, Settings
from tests.typed import present

SECRET = "The vault of the other namespace opens with a heron feather."


@pytest.fixture
def secret(tmp_path: Path) -> dict[str, str]:
    """A memory and a recorded recall of another namespace."""
    with Memory.open(tmp_path / "brain", namespace="other") as memory:
        chunk = memory.remember(SECRET, conversation_id="vault", tags=["vault"]).chunk_ids[0]
        return {"chunk": chunk, "trajectory": memory.recall("What opens the vault?").trajectory.id}


@pytest.fixture
def mine(tmp_path: Path, secret: dict[str, str]) -> Iterator[Service]:
    """A server bound to a namespace of its own."""
    service = Service(OpenMemory(Settings(brain=tmp_path / "brain", namespace="mine", every_tool=True)))
    service.memory.remember("Nothing of interest stands here.", conversation_id="vault")
    yield service
    service.close()


def calls(service: Service, secret: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each tool, with the other namespace named in every argument that it has, and in some that it has not."""
    handle = present(service.call("recall_open", {"question": "What opens the vault?"}).data)["handle"]
    program = (
        "print(search('vault heron feather'), list_chunks_by_tag('vault'), timeline(), stats())\n"
        f"print(read_chunk('{secret['chunk']}'))"
    )
    usual = {
        "ids": [secret["chunk"]],
        "id": secret["chunk"],
        "source_id": secret["chunk"],
        "target_id": secret["chunk"],
        "type": "supports",
        "query": "vault heron feather",
        "question": "What opens the vault?",
        "text": "x",
        "handle": handle,
        "code": program,
        "answer": "x",
        "chunk_ids": [secret["chunk"]],
        "conversation_id": "vault",
        "tags": ["vault"],
    }
    for tool in service.tools.values():
        own = {name: value for name, value in usual.items() if name in input_schema(tool)["properties"]}
        if tool.name in ("search", "remember", "update"):
            own.pop("type", None)
        yield tool.name, own
        for extra in ("namespace", "ns", "brain", "user"):
            yield tool.name, {**own, extra: "other"}
    for text in ("other", "other/vault", "../other"):
        yield "search", {"query": "vault", "conversation_id": text}
        yield "recall", {"question": f"namespace:{text} What opens the vault?"}


def test_no_tool_reveals_anything_of_another_namespace(mine: Service, secret: dict[str, str]) -> None:
    used = set()
    for name, arguments in calls(mine, secret):
        used.add(name)
        answer = mine.call(name, arguments)
        assert "feather" not in answer.text.replace("vault heron feather", ""), (name, arguments)
        assert "namespace" not in arguments or answer.failed
    assert used == set(mine.tools)


def test_no_tool_changes_anything_of_another_namespace(
    mine: Service, secret: dict[str, str], tmp_path: Path
) -> None:
    for name, arguments in calls(mine, secret):
        mine.call(name, arguments)
    with Memory.open(tmp_path / "brain", namespace="other") as memory:
        chunk = memory.get(secret["chunk"])
        assert chunk is not None
        assert (chunk.content, chunk.revision, memory.stats().chunk_count) == (SECRET, 1, 1)


def test_no_resource_reveals_anything_of_another_namespace(mine: Service, secret: dict[str, str]) -> None:
    for uri in (
        *(one.uri for one in FIXED),
        f"memory://chunks/{secret['chunk']}",
        f"memory://trajectories/{secret['trajectory']}",
        f"memory://other/chunks/{secret['chunk']}",
    ):
        try:
            text = read_resource(mine.memory, uri)
        except RlmMemError as error:
            text = str(error)
        assert "feather" not in text
        assert "vault?" not in text


def test_the_server_says_which_namespace_it_serves(mine: Service) -> None:
    answer = mine.call("status", {})
    assert json.loads(answer.text)["namespace"] == "mine"


def test_each_namespace_has_a_persona_of_its_own(mine: Service, tmp_path: Path) -> None:
    mine.call("persona", {"message": "set verbosity to 80"})
    other = Service(OpenMemory(Settings(brain=tmp_path / "brain", namespace="mine/below", every_tool=True)))
    assert present(other.call("persona", {}).data)["sliders"]["verbosity"] != 80
    assert present(mine.call("persona", {}).data)["sliders"]["verbosity"] == 80
    other.close()
