"""Every built-in format keeps what an importer promises, by the suite that other packages run (``rlm_mem.testing``)."""

from __future__ import annotations

import json
import pkgutil
from typing import Any

import pytest

from rlm_mem.interchange import formats
from rlm_mem.interchange.detection import FORMATS
from rlm_mem.interchange.format import Format
from rlm_mem.testing import ImporterContract

CHUNK = {
    "id": "chunk-2026-02-10-a1b2c3d4", "content": "The key is brass.", "type": "note", "tokens": 5, "tags": [],
    "metadata": {"created_at": "2026-02-10T21:37:00.000000Z"}, "links": [],
}  # fmt: skip


def lines(*entries: Any) -> bytes:
    return "".join(json.dumps(entry) + "\n" for entry in entries).encode()


EXAMPLES: dict[str, tuple[str, bytes]] = {
    "chunk-jsonl": ("export.jsonl", lines(CHUNK)),
    "chatgpt": (
        "conversations.json",
        json.dumps([{
            "title": "Keys", "conversation_id": "c", "create_time": 1_760_000_000.0, "current_node": "b",
            "mapping": {
                "a": {"parent": None, "message": None},
                "b": {"parent": "a", "message": {
                    "author": {"role": "user"}, "content": {"content_type": "text", "parts": ["The key is brass."]},
                }},
            },
        }]).encode(),
    ),
    "claude-code": (
        "session.jsonl",
        lines({
            "sessionId": "s", "type": "user", "timestamp": "2026-01-05T10:00:00Z",
            "message": {"role": "user", "content": "The key is brass."},
        }),
    ),
    "meridian": (
        "brass_key.md",
        b"# Brass key\n\n**Created:** 2026-01-05\n**Category:** fact\n**Tags:** [key]\n\n---\n\nThe key is brass.\n",
    ),
    "mem0": (
        "mem0.json",
        json.dumps({"results": [{
            "id": "5c1e0c0c-3b0f-4a4e-9a52-0d7f6a1b2c3d", "memory": "The key is brass.", "hash": "b1", "metadata": None,
            "created_at": "2026-01-05T02:00:00.000000-08:00", "updated_at": None, "user_id": "ann",
        }]}).encode(),
    ),
    "knowledge-graph": (
        "memory.jsonl",
        json.dumps({
            "type": "entity", "name": "Front_door", "entityType": "door", "observations": ["The key is brass."],
        }).encode(),
    ),
    "knowledge-graph-json": (
        "graph-of-doors.json",
        json.dumps({"entities": [
            {"name": "Front_door", "entityType": "door", "observations": ["The key is brass."]},
        ], "relations": []}).encode(),
    ),
    "zep": (
        "edges.json",
        json.dumps([{
            "uuid": "e1", "name": "IS_MADE_OF", "fact": "The key is brass.", "source_node_uuid": "n1",
            "target_node_uuid": "n2", "created_at": "2026-01-05T10:00:00Z", "valid_at": "2026-01-05T10:00:00Z",
            "invalid_at": None, "expired_at": None, "episodes": ["p1"],
        }]).encode(),
    ),
    "letta": (
        "keeper.af",
        json.dumps({
            "agents": [{"id": "agent-0", "name": "keeper", "block_ids": ["block-0"], "messages": []}],
            "blocks": [{"id": "block-0", "label": "human", "value": "The key is brass.", "limit": 5000}],
            "groups": [], "files": [], "sources": [], "tools": [], "mcp_servers": [], "metadata": {},
        }).encode(),
    ),
    "hindsight": (
        "bank/documents/000000.json",
        json.dumps({
            "id": "d1", "original_text": None, "retain_params": {}, "tags": [], "created_at": "2026-01-05T10:00:00Z",
            "chunks": [],
            "facts": [{"text": "The key is brass.", "fact_type": "world", "mentioned_at": "2026-01-05T10:00:00Z"}],
        }).encode(),
    ),
    "claude-memory": (
        "memories.json",
        json.dumps([{
            "conversations_memory": "The key is brass.", "project_memories": {}, "account_uuid": "u1",
        }]).encode(),
    ),
    "langgraph": (
        "store.json",
        json.dumps([{
            "namespace": ["memories", "ann"], "key": "a", "value": {"text": "The key is brass."}, "score": None,
            "created_at": "2026-01-05T10:00:00+00:00", "updated_at": "2026-01-05T10:00:00+00:00",
        }]).encode(),
    ),
    "layered-jsonl": (
        "memory.jsonl",
        lines({
            "id": "m1", "created_at": "2026-01-05T10:00:00Z", "scope": "project_agent", "entry_type": "decision",
            "content": "The key is brass.", "project_id": "boats", "agent_id": "coder",
        }),
    ),
    "memory-folder": ("memories/keys.xml", b"<keys>\n  <key>The key is brass.</key>\n</keys>\n"),
    "instructions": ("AGENTS.md", b"# Rules\n\n- Hang the brass key behind the clock.\n"),
}  # fmt: skip
"""One for each module of ``interchange/formats``: what a program wrote."""


def test_each_module_of_formats_has_an_example_here() -> None:
    """Formats outside of that package are those of a brain itself, which are no chunks."""
    tested = {FORMATS[name].read.__module__ for name in EXAMPLES}
    modules = {f"{formats.__name__}.{module.name}" for module in pkgutil.iter_modules(formats.__path__)}
    missing = modules - tested
    assert not missing, "add an example to EXAMPLES: a file as the program of the format writes it"


@pytest.mark.parametrize("name", sorted(EXAMPLES))
class TestFormat(ImporterContract):
    chunks = 1

    @pytest.fixture
    def importer(self, name: str) -> Format:
        return FORMATS[name]

    @pytest.fixture
    def example(self, name: str) -> tuple[str, bytes]:
        return EXAMPLES[name]
