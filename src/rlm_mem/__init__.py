"""RLM-MEM: long-term memory for LLM agents, kept as plain files and questioned by programs that a model writes."""

from __future__ import annotations

__version__ = "0.1.0"
