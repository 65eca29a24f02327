"""The offline model: answers instead of a language model, by rules and learned weights.

`question` analyses the question, `model` writes the programs that run in the sandbox, `reader` (with `candidates`,
`features` and the tables of `weights`) answers from the passages that the programs found; if none clearly answers,
`nearest` quotes the nearest memory. Nothing here reads a store or the network.
"""

from __future__ import annotations

from rlm_mem.offline.model import OfflineLLM

__all__ = ["OfflineLLM"]
