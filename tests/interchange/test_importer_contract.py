"""Every built-in format keeps what an importer promises, by the suite that other packages run (``rlm_mem.testing``)."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
}  # fmt: skip
"""One of each family of formats: what a program wrote."""


@pytest.mark.parametrize("name", sorted(EXAMPLES))
class TestFormat(ImporterContract):
    chunks = 1

    @pytest.fixture
    def importer(self, name: str) -> Format:
        return FORMATS[name]

    @pytest.fixture
    def example(self, name: str) -> tuple[str, bytes]:
        return EXAMPLES[name]
