"""Models that answer prompts, such as a request for the program of a recall.

``base`` has the protocol, its types and the budget of a run; ``opening`` finds a model by name; ``apis`` has a record
for each provider; ``scripted`` replies from a queue; ``cli_models`` runs command-line agents; ``providers`` calls APIs
and local servers (extra ``llm``) and computes costs; ``targets`` finds their addresses and keys. Prompts and the use
of answers belong to ``sandbox`` and ``recall``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.lazy import loader

if TYPE_CHECKING:
    from rlm_mem.models.base import (
        LLM as LLM,
        Completion as Completion,
        Message as Message,
        Options as Options,
        Prompt as Prompt,
        Usage as Usage,
        as_messages as as_messages,
        estimate_usage as estimate_usage,
        render_prompt as render_prompt,
    )
    from rlm_mem.models.opening import adapt as adapt, get_llm as get_llm

__getattr__, __all__ = loader(
    __name__,
    {
        "base": "LLM Completion Message Options Prompt Usage as_messages estimate_usage render_prompt",
        "opening": "adapt get_llm",
    },
)
