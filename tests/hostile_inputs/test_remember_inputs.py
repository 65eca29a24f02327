"""Malformed input to REMEMBER: one clear sentence each, nothing raised, nothing changed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.errors import InputError
from rlm_mem.ingest.chunking import ChunkingEngine
from rlm_mem.ingest.remember import RememberOperation
from rlm_mem.store.core.chunk_store import ChunkStore


class Odd:
    """An object of no known type."""


LOOP: dict[str, Any] = {}
LOOP["self"] = LOOP

MALFORMED: list[dict[str, Any]] = [
    {"content": None},
    {"content": 5},
    {"content": b"bytes"},
    {"content": ["a", "list"]},
    {"content": Odd()},
    {"content": ""},
    {"content": " \n\t\r\n "},
    {"content": "a lone \ud800 surrogate"},
    {"content": "\udfff"},
    {"content": "x" * 10_000_000},
    {"content": "é" * 4_200_000},
    {"conversation_id": 7},
    {"conversation_id": ""},
    {"conversation_id": "  "},
    {"conversation_id": "a\x00b"},
    {"conversation_id": "a\nb"},
    {"conversation_id": "\ud800"},
    {"conversation_id": "c" * 100_000},
    {"conversation_id": ["c"]},
    {"tags": b"bytes"},
    {"tags": [1, 2]},
    {"tags": [None]},
    {"tags": [""]},
    {"tags": {"a": 1}},
    {"tags": ["t" * 10_000]},
    {"tags": [f"t{n}" for n in range(5_000)]},
    {"tags": ["a\ud800"]},
    {"tags": ["a\nb"]},
    {"tags": 3},
    {"confidence": math.nan},
    {"confidence": math.inf},
    {"confidence": -0.01},
    {"confidence": 1.01},
    {"confidence": "high"},
    {"confidence": None},
    {"confidence": True},
    {"confidence": 10**400},
    {"chunk_type": "bogus"},
    {"chunk_type": ""},
    {"chunk_type": 3},
    {"chunk_type": ["fact"]},
    {"source": ""},
    {"source": None},
    {"source": 5},
    {"source": "a\ud800"},
    {"occurred_at": "2026-02-30"},
    {"occurred_at": "2026-13-01T00:00:00Z"},
    {"occurred_at": "yesterday"},
    {"occurred_at": ""},
    {"occurred_at": 1234567890},
    {"occurred_at": "0001-01-01T00:00:00+14:00"},
    {"occurred_at": lambda _position: "no time"},
    {"occurred_at": lambda _position: 17},
    {"metadata": [1]},
    {"metadata": "text"},
    {"metadata": {1: 2}},
    {"metadata": {"a": Odd()}},
    {"metadata": {"a": math.nan}},
    {"metadata": {"a": "\ud800"}},
    {"metadata": {"a": 10**30}},
    {"metadata": LOOP},
    {"metadata": {"created_at": "2026-02-30"}},
    {"metadata": {"confidence": 2}},
    {"metadata": {"conversation_id": "another"}},
    {"provenance": [1]},
    {"provenance": {"a": b"bytes"}},
    {"provenance": {"\ud800": 1}},
]


def shown(case: dict[str, Any]) -> str:
    (name,) = case
    value = case[name]
    # A function's repr holds its address: test names must be the same in every process.
    return f"{name}={'a function' if callable(value) else format(repr(value), '.30')}"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One store for all cases, so that any leftover of a case fails the next one."""
    base = tmp_path_factory.mktemp("hostile") / "brain" / "memory"
    with ChunkStore(base) as store:
        store.create_chunk("already here", conversation_id="conv-1")
        yield store


def everything(base: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(base)): path.read_bytes()
        for folder in ("chunks", "archive", "log")
        for path in (base / folder).rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("case", MALFORMED, ids=shown)
def test_remember_answers_with_one_sentence_and_changes_nothing(
    shared: ChunkStore, case: dict[str, Any]
) -> None:
    before = (everything(shared.base_path), shared.get_stats())
    arguments = {"content": "A perfectly good memory.", "conversation_id": "conv-1", **case}
    result = RememberOperation(shared).remember(**arguments)
    assert result["success"] is False
    assert (result["chunk_ids"], result["total_tokens"], result["chunks_created"]) == ([], 0, 0)
    error = result["error"]
    assert isinstance(error, str)
    assert 10 < len(error) < 500
    assert "\n" not in error
    assert "Traceback" not in error
    error.encode("utf-8")
    assert (everything(shared.base_path), shared.get_stats()) == before


def test_the_store_works_as_before_after_all_of_them(shared: ChunkStore) -> None:
    assert RememberOperation(shared).remember("A perfectly good memory.", "conv-1")["success"]


MALFORMED_TO_CHUNK: list[dict[str, Any]] = [
    {"content": None},
    {"content": b"x"},
    {"content": 1.5},
    {"content": ["text"]},
    {"tags": 5},
    {"tags": [7]},
    {"tags": ["\ud800"]},
    {"tags": {"a": 1}},
    {"conversation_id": 3},
    {"conversation_id": b"c"},
]


@pytest.mark.parametrize("case", MALFORMED_TO_CHUNK, ids=shown)
def test_the_chunking_engine_refuses_values_that_are_not_text(case: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        ChunkingEngine().chunk(**{"content": "text", "conversation_id": "c", **case})
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "content",
    [
        "\x00\x01\x02",
        "<script>alert(1)</script>",
        "'; DROP TABLE chunks; --",
        "../../etc/passwd",
        "{{7*7}} ${7*7} %s %n",
        "\u202eright to left\u202c",
        "\ufeffwith a byte order mark",
        "\u2028\u2029 line separators",
        "e" + "\u0301" * 500,
        "\U0010ffff",
        "\r\n\r\nonly windows\r\n",
        "```\nunclosed fence",
        '{"id": "chunk-x", "content": null}',
        "---\nid: chunk-x\n---\nfront matter",
        "".join(map(str, range(20_000))),
    ],
    ids=lambda text: repr(text[:20]),
)
def test_strange_but_valid_text_comes_back_exactly(store: ChunkStore, content: str) -> None:
    result = RememberOperation(store).remember(content, "conv-1")
    assert result["success"], result
    chunks = [store.get_chunk(chunk_id) for chunk_id in result["chunk_ids"]]
    body = "".join(chunk.content[chunk.metadata.provenance.get("overlap", 0) :] for chunk in chunks if chunk)
    assert "".join(body.split()) == "".join(content.split())
