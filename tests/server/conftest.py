"""A server in process for most tests: `ask("search", query="tea")` through the official client."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client

from rlm_mem.mcp.server import McpServer
from rlm_mem.mcp.service import Service
from rlm_mem.operations.context import OpenMemory, Settings
from tests.cli.conftest import brain, memory, run  # noqa: F401 - fixtures

Ask = Callable[..., Any]


@pytest.fixture
def served(place: Path | str) -> Iterator[McpServer]:
    """A server with every tool, on a brain of its own."""
    server = McpServer(Service(OpenMemory(Settings(brain=place, every_tool=True))))
    yield server
    server.close()


@pytest.fixture
def service(served: McpServer) -> Service:
    """What is behind that server."""
    return served.service


@pytest.fixture
def remembered(service: Service) -> list[str]:
    """Ids of three memories."""
    texts = (
        "Ana: We chose PostgreSQL for the ledger because of its row-level security.",
        "Ben drinks green tea in the morning.",
        "The heron server stands in the cellar of Ellerby town hall.",
    )
    ids = []
    for text in texts:
        report = service.memory.remember(text, conversation_id="notes", tags=["team"], origin="agent")
        ids += report.chunk_ids
    return ids


def text_in(content: object) -> str:
    """The text of a part of a result, a resource or a prompt, which must be text."""
    text = getattr(content, "text", None)
    assert isinstance(text, str), content
    return text


async def drive(client: Client, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool that must work; the client checks what it gives against its schema, and this its text copy."""
    result = await client.call_tool(name, arguments)
    said = text_in(result.content[0])
    assert not result.is_error, said
    assert json.loads(said) == result.structured_content
    return dict(result.structured_content)


async def drive_all(client: Client) -> set[str]:
    """Use every tool once, as an agent would; gives their names."""
    used: set[str] = set()
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert all(tool.output_schema for tool in tools.values()), (
        "the client checks what a tool gives against it"
    )

    async def use(name: str, /, **arguments: Any) -> dict[str, Any]:
        used.add(name)
        return await drive(client, name, arguments)

    first = await use(
        "remember", text="Ana chose PostgreSQL for the ledger.", conversation_id="db", tags=["db"]
    )
    second = await use("remember", text="The ledger needs row-level security.", conversation_id="db")
    one, two = first["chunk_ids"][0], second["chunk_ids"][0]
    hits = (await use("search", query="who chose the ledger database", limit=5))["hits"]
    assert hits[0]["id"] == one
    link = {"source_id": two, "target_id": one, "type": "supports", "strength": 0.8, "reasoning": "why"}
    assert (await use("link", **link))["type"] == "supports"
    got = await use("get", ids=[one, "chunk-2020-01-01-00000000"])
    assert got["memories"][0]["content"] == "Ana chose PostgreSQL for the ledger."
    assert {link["id"] for link in got["memories"][0]["links"]} == {two}
    assert got["missing"] == ["chunk-2020-01-01-00000000"]
    answer = await use("recall", question="What did Ana choose for the ledger?")
    assert answer["trajectory_id"].startswith("traj-")
    opened = await use("recall_open", question="What did Ana choose?")
    assert opened["hits"][0]["id"] == one
    program = 'for hit in search("Ana ledger"):\n    print(hit["snippet"])'
    ran = await use("recall_exec", handle=opened["handle"], code=program)
    assert "PostgreSQL" in ran["output"]
    assert not ran["finished"]
    finished = await use(
        "recall_finish", handle=opened["handle"], answer="PostgreSQL", chunk_ids=[one], confidence=0.9
    )
    assert (finished["answer"], finished["chunk_ids"]) == ("PostgreSQL", [one])
    assert finished["sources"][0]["excerpt"].startswith("Ana chose")
    status = await use("status")
    assert (status["memories"], status["links"] > 0, status["open_recalls"]) == (2, True, 0)
    assert (await use("forget", ids=[two]))["forgotten"] == [two]
    if "reason" in tools:
        assert (await use("restore", ids=[two]))["restored"] == [two]
        changed = await use(
            "update", id=one, tags=["choice"], expected_revision=got["memories"][0]["revision"]
        )
        assert changed["tags"] == ["choice"]
        await use("reason", question="Why PostgreSQL?")
        assert not (await use("consolidate", dry_run=True))["promoted"]
        imported = await use(
            "import", content="# Notes\n\nThe archive of Port Lowan opens at ten.", name="port.md"
        )
        assert (imported["created"], imported["problems"]) == (1, [])
        decision = {
            "case_id": "promote-0000000000",
            "decision": "approve",
            "reviewer": "Maya",
            "reason": "why",
        }
        refused = await client.call_tool("review_decide", decision)
        used.add("review_decide")
        assert refused.is_error
        assert "no review case" in text_in(refused.content[0])
        outside = await client.call_tool("sync_folder", {"path": "/"})
        used.add("sync_folder")
        assert outside.is_error
        assert "RLM_MEM_INGEST_FOLDERS" in text_in(outside.content[0])
        assert (await use("persona", message="set verbosity to 80"))["sliders"]["verbosity"] == 80
        former = (await use("changes", limit=1))["changes"][0]
        undone = await use("undo")
        assert (undone["change"], former["undone"]) == (former["id"], False)
        assert (await use("undo", change=undone["undo"]))["change"] == undone["undo"]
        assert (await use("changes", limit=3))["changes"][2] == former
        assert (await use("skills"))["items"] == []
        listed = (await use("trajectories", limit=10))["trajectories"]
        assert {"recall", "reason", "session"} <= {run["operation"] for run in listed}
        recalled = next(run["id"] for run in listed if run["operation"] == "recall")
        receipt = (await use("receipt", trajectory_id=recalled))["receipt"]
        assert (await use("verify_receipt", receipt=receipt))["run"] == recalled
        assert (await use("quarantine", chunk_id=two, reason="it gives orders"))["trust"] == "quarantined"
        assert [case["kind"] for case in (await use("review", status="all"))["cases"]] == ["quarantine"]
    return used


@pytest.fixture
def ask(served: McpServer) -> Iterator[Ask]:
    """Call one tool through a client, the same for all of a test: structured content, or the text of the error."""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(Client(served.protocol)) as client,
    ):

        def ask_it(name: str, /, **arguments: Any) -> Any:
            result = portal.call(client.call_tool, name, arguments)
            return result.content[0].text if result.is_error else result.structured_content

        yield ask_it
