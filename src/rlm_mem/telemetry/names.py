"""Names of operations, metrics and attributes, a public interface for dashboards and alerts."""

from __future__ import annotations

from typing import NamedTuple


class Metric(NamedTuple):
    """One metric instrument."""

    kind: str
    """``histogram`` or ``counter``"""
    unit: str
    description: str


OPERATIONS = {
    "remember": "one text remembered, whatever its length",
    "recall": "one question answered, all turns",
    "reason": "one REASON, all turns",
    "turn": "one turn: a model call and the programs it wrote",
    "search": "one search, the chunks of its hits read",
    "import": "one import, all files",
    "export": "one export",
    "write": "one write transaction, from the lock to the commit",
    "read": "one read of chunks by id, one or many",
    "sync": "noticing files changed by hand or by git",
    "rebuild": "rebuilding the index",
    "check": "every integrity check",
    "consolidate": "one consolidation of the tiers",
    "prune": "one run of retention",
    "tool": "one tool call of an MCP client",
}

METRICS = {
    "rlm_mem.operation.duration": Metric("histogram", "s", "how long an operation took"),
    "rlm_mem.store.lock.wait": Metric("histogram", "s", "how long a writer waited for the write lock"),
    "rlm_mem.chunks.created": Metric("counter", "{chunk}", "chunks that remember stored"),
    "rlm_mem.chunks.repeated": Metric("counter", "{chunk}", "chunks that were there already"),
    "rlm_mem.recall.stopped": Metric("counter", "{recall}", "recalls that a budget ended, by budget"),
    "rlm_mem.consolidation.changes": Metric("counter", "{memory}", "memories promoted, queued, pruned"),
    "rlm_mem.model.cost": Metric("counter", "{USD}", "US dollars of model calls with a known price"),
    "rlm_mem.model.unpriced": Metric("counter", "{call}", "model calls without a known price"),
    "gen_ai.client.operation.duration": Metric("histogram", "s", "how long a model took to answer"),
    "gen_ai.client.token.usage": Metric("histogram", "{token}", "tokens of a model call, by kind"),
    "http.server.request.duration": Metric("histogram", "s", "how long an HTTP request took"),
}

ATTRIBUTES = {
    "rlm_mem.operation": "which operation",
    "rlm_mem.backend": "local or postgresql",
    "error.type": "class of the error that ended it; refused: bad input, reported to the caller",
    "rlm_mem.chunks": "chunks created, read or handed out",
    "rlm_mem.hits": "hits of a search",
    "rlm_mem.turns": "turns of a recall",
    "rlm_mem.turn": "number of a turn within its session",
    "rlm_mem.depth": "nesting of a turn's session",
    "rlm_mem.programs": "programs that a turn ran",
    "rlm_mem.host_calls": "calls of a turn's programs",
    "rlm_mem.concluded": "whether FINAL was called",
    "rlm_mem.stopped_by": "the budget that ended a recall",
    "rlm_mem.change": "promoted, queued or pruned",
    "rlm_mem.dry_run": "only reported what would be done",
    "gen_ai.operation.name": "chat",
    "gen_ai.request.model": "the model asked",
    "gen_ai.token.type": "input or output",
    "gen_ai.usage.input_tokens": "tokens of the prompt",
    "gen_ai.usage.output_tokens": "tokens of the reply",
    "gen_ai.tool.name": "the MCP tool",
    "http.request.method": "GET, POST, …",
    "http.route": "the route, not the address",
    "http.response.status_code": "the status",
    "rlm_mem.query": "the question or query; only with telemetry.content",
    "rlm_mem.answer": "the answer; only with telemetry.content",
}
