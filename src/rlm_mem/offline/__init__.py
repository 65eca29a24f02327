"""The offline model: it takes the seat of a model without being one.

`question` takes the question apart, `program` writes what runs in the sandbox, `reader` (with `candidates`,
`features`, `support` and the tables of `weights`) answers from the passages that the program found. Nothing here
reads a store or the network.
"""

from __future__ import annotations

from rlm_mem.offline.model import OfflineLLM

__all__ = ["OfflineLLM"]
