"""The offline model: answers in place of a language model, by rules and learned weights.

`question` analyses the question, `program` writes what runs in the sandbox, `reader` (with `candidates`,
`features` and the tables of `weights`) answers from the passages that the program found. Nothing here
reads a store or the network.
"""

from __future__ import annotations

from rlm_mem.offline.model import OfflineLLM

__all__ = ["OfflineLLM"]
