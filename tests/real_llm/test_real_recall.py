"""The same recall with each real client library: the loop runs, ends within its budgets and is recorded.

Whether this little model finds the answer is not asserted; that every run ends in order is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from model_server import PROVIDERS

from rlm_mem.config import Config
from rlm_mem.errors import ModelUnavailable
from rlm_mem.models.base import Limits
from rlm_mem.store.core.chunk_store import ChunkStore

if TYPE_CHECKING:
    from rlm_mem.models.providers import ProviderLLM

MEMORIES = [
    "Ada: We moved the nightly build to the machine called Heron, since Osprey kept running out of disk.",
    "Ben: The password reset mails are sent by the service Pigeon, at most three an hour.",
    "Ada: On Friday we decided to keep the memory in plain JSON files instead of a database.",
    "Ben: My dog Waffle ate the printed release notes.",
]
# Short answers: this model likes to go on, and the machine may be busy.
CONFIG = Config.load(
    None, environ={}, llm={"timeout_seconds": 240.0, "max_tokens": 160, "context_tokens": 4096}
)
LIMITS = Limits(iterations=3, depth=1, seconds=240.0, model_calls=6)


@pytest.fixture
def memories(store: ChunkStore) -> ChunkStore:
    for text in MEMORIES:
        store.create_chunk(text, "note", conversation_id="conv-team", tokens=20)
    return store


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_same_recall_with_each_client_library(
    connect: Callable[[str], ProviderLLM], memories: ChunkStore, provider: str
) -> None:
    from rlm_mem.recall.recall import RecallOperation

    result = RecallOperation(memories, connect(provider), limits=LIMITS, config=CONFIG).recall(
        "Which machine runs the nightly build?"
    )
    assert 1 <= result.iterations_used <= 3
    assert result.stopped_by in (None, "iterations", "seconds", "model_calls")
    assert result.concluded == (result.stopped_by is None)
    assert result.usage.input_tokens > 100
    assert result.usage.output_tokens > 0
    assert not result.usage.estimated
    assert result.cost is None  # a server of one's own is unpriced, not free
    assert 0.0 <= result.confidence <= 1.0
    assert all(memories.exists(chunk_id) for chunk_id in result.chunk_ids)
    assert result.trajectory.path is not None
    assert Path(result.trajectory.path).stat().st_size > 0


def test_streamed_recall_hands_out_what_the_model_writes(
    connect: Callable[[str], ProviderLLM], memories: ChunkStore
) -> None:
    from rlm_mem.recall.recall import RecallOperation

    pieces: list[str] = []
    operation = RecallOperation(memories, connect("openai-compatible"), limits=LIMITS, config=CONFIG)
    operation.recall("Who is Waffle?", on_text=pieces.append)
    assert len(pieces) > 1


def test_a_recall_whose_server_is_gone_fails_clearly(memories: ChunkStore) -> None:
    from rlm_mem.recall.recall import RecallOperation

    pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")
    operation = RecallOperation(
        memories, "openai-compatible:gone@http://127.0.0.1:9/v1", limits=LIMITS, config=CONFIG
    )
    with pytest.raises(ModelUnavailable, match="cannot reach"):
        operation.recall("Who is Waffle?")
