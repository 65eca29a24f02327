"""Models: who writes the programs of a recall.

``base`` has the protocol and finds a model by name; ``offline`` is the embedded default; ``scripted`` answers
from a queue; ``cli_models`` runs command-line agents; ``providers`` reaches APIs and local servers (extra
``llm``); ``budget`` limits a run; ``pricing`` turns usage into cost; ``secrets`` finds keys and hides them.
What to ask and what to do with an answer does not belong here: see ``repl`` and ``recall``.
"""

from __future__ import annotations

from rlm_mem.llm.base import LLM, Completion, Message, Options, Prompt, Usage, adapt, get_llm

__all__ = ["LLM", "Completion", "Message", "Options", "Prompt", "Usage", "adapt", "get_llm"]
