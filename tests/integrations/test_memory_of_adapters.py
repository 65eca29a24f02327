"""Adapters that work asynchronously refuse another memory at once, with the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integrations.frameworks import Lazy, needs

from rlm_mem import Memory
from rlm_mem.errors import InputError

ADAPTERS = [
    ("agents", "openai_agents", "RlmMemSession", ["session"]),
    ("llama_index", "llama_index", "RlmMemBlock", []),
    ("strands", "strands", "StrandsStore", ["store"]),
    ("agent_framework", "agent_framework", "RlmMemContextProvider", []),
    ("google.adk", "adk", "RlmMemService", []),
    ("pydantic_ai_harness", "pydantic_ai_harness", "NotebookStore", []),
    ("pydantic_ai", "pydantic_ai", "memory_toolset", []),
]


@pytest.mark.parametrize(
    ("module", "name", "before"),
    [
        pytest.param(f"rlm_mem.integrations.{adapter}", name, before, marks=needs(framework), id=adapter)
        for framework, adapter, name, before in ADAPTERS
    ],
)
def test_a_memory_that_is_not_asynchronous_is_refused(
    module: str, name: str, before: list[str], tmp_path: Path
) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        with pytest.raises(InputError, match="memory must be AsyncMemory, not") as refused:
            getattr(Lazy(module), name)(*before, memory)
        assert "AsyncMemory.open" in str(refused.value.hint)
