"""The figures of LIVEHUD in one schema with stable keys, from a store and the costs of recalls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol

from rlm_mem.arguments import check_kind
from rlm_mem.chunk import format_time
from rlm_mem.chunk.types import amount
from rlm_mem.persona.boxes import fixed_width
from rlm_mem.persona.session import Persona
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.records import COMPONENT, TIER_TAG, StoreStatus, is_mirror
from rlm_mem.text.tokens import count_tokens

SCHEMA = "livehud/1"
"""Value of the key ``schema``; its number is incremented when a key changes meaning or is removed."""

KEYS: Mapping[str, str] = {
    "schema": "name and number of this schema",
    "at": "when the figures were taken (UTC)",
    "session.id": "the session",
    "session.namespace": "the namespace",
    "mode.name": "the personality",
    "mode.label": "the same, with a note when sliders were set by hand",
    "mode.adjusted": "whether sliders were set by hand",
    "sliders": "a list, see below",
    "memory.past": "the last recall, 3-9 words",
    "memory.present": "the last write, 3-9 words",
    "memory.future": "the next dated memory, else what is pending, 3-9 words",
    "memory.past_at": "when the last recall began, or null",
    "memory.present_at": "when the last write was, or null",
    "memory.future_at": "the date of that memory, or null",
    "system.context.used": "tokens of the largest prompt of the last recall",
    "system.context.limit": "tokens of the model's context window (llm.context_tokens)",
    "system.context.percent": "used of limit",
    "system.context.persona": "tokens of the persona's system prompt",
    "system.tools": "names of the functions that programs have",
    "system.tools_count": "how many",
    "system.chunks_loaded": "chunks that the last recall read",
    "system.writes_pending": "access counts and files not yet written",
    "system.model": "the model that writes the programs",
    "system.vibe": "how the sliders depart from their defaults",
    "store.chunks": "active chunks of the namespace",
    "store.archived": "archived ones",
    "store.tokens": "tokens of the active ones",
    "store.links": "links",
    "store.conversations": "conversations",
    "store.tags": "different tags",
    "store.size_mb": "megabytes of chunk files",
    "store.index_mb": "megabytes of the index",
    "health.state": "well, busy or attention",
    "health.text": "the same in words",
    "health.unreadable_files": "chunk files that do not validate",
    "health.unfinished_files": "files being written or removed",
    "tiers.high": "memories in the tier high",
    "tiers.mid": "in mid",
    "tiers.low": "in low",
    "tiers.ultra_low": "in ultra-low",
    "cost.day": "the day of the costs (UTC)",
    "cost.runs": "recalls and reasonings",
    "cost.calls": "calls of models",
    "cost.tokens": "tokens of models, in and out",
    "cost.usd": "US dollars of the priced calls; null when none had a price",
    "cost.unpriced_calls": "calls whose price is not known",
    "cost.text": "the costs in words",
}
"""All keys outside of the list of sliders, with their meanings."""

SLIDER_KEYS: Mapping[str, str] = {
    "name": "in lower case",
    "title": "as it is shown",
    "value": "the current value",
    "default": "the value in BASE",
    "low": "lowest value",
    "high": "highest value",
    "percent": "how far along the range the value is",
    "by_hand": "whether it was set by hand",
    "mark": "* where it was set by hand, else a space",
    "behavior": "what the value means",
}
"""Keys of each item of ``sliders``, with their meanings."""

WORDS = 9
_WRITES: Mapping[str, str] = {
    "create": "wrote a",
    "update": "revised a",
    "restore": "restored a",
    "undo": "undid a",
    "import": "imported a",
    "link": "linked a",
    "unlink": "unlinked a",
    "delete": "archived a",
    "erase": "erased a",
}


class RecordedRun(Protocol):
    """The used attributes of a recorded run (``recall.trajectory.Trajectory``)."""

    @property
    def query(self) -> str: ...
    @property
    def operation(self) -> str: ...
    @property
    def started_at(self) -> str: ...
    @property
    def steps(self) -> Sequence[Any]: ...


class Spending(Protocol):
    """The used attributes of a line of costs (``recall.costing.CostLine``)."""

    @property
    def runs(self) -> int: ...
    @property
    def calls(self) -> int: ...
    @property
    def usage(self) -> Any: ...
    @property
    def cost(self) -> Decimal | None: ...
    @property
    def unpriced_calls(self) -> int: ...


def figures_of(
    store: ChunkStore,
    persona: Persona,
    *,
    last_run: RecordedRun | None = None,
    spent_today: Iterable[Spending] = (),
) -> dict[str, Any]:
    """Collect all figures of the schema as plain data.

    Args:
        store: the memory.
        persona: the persona of the session.
        last_run: the latest recall or reasoning, if any.
        spent_today: today's costs of recalls, one line per model and operation.
    """
    now = store.clock().astimezone(UTC)
    state = store.backend.status(store.namespace)
    prompt = check_kind(persona, Persona, "persona").prompt()
    sliders = _sliders(persona)
    return {
        "schema": SCHEMA,
        "at": format_time(now),
        "session": {"id": persona.session, "namespace": store.namespace},
        "mode": {
            "name": persona.mode,
            "label": persona.mode + (" (adjusted)" if persona.by_hand else ""),
            "adjusted": bool(persona.by_hand),
        },
        "sliders": sliders,
        "memory": _memory(store, now, last_run, state),
        "system": _system(store, count_tokens(prompt), last_run, state, sliders),
        "store": _store(store),
        "health": _health(state),
        "tiers": _tiers(store),
        "cost": _cost(now, spent_today),
    }


def _sliders(persona: Persona) -> list[dict[str, Any]]:
    known, defaults, by_hand = persona.library.sliders(), persona.defaults, persona.by_hand
    return [
        {
            "name": name,
            "title": known[name].title,
            "value": value,
            "default": defaults[name],
            "low": known[name].low,
            "high": known[name].high,
            "percent": known[name].percent(value),
            "by_hand": name in by_hand,
            "mark": "*" if name in by_hand else " ",
            "behavior": known[name].behavior(value),
        }
        for name, value in persona.sliders.items()
    ]


# --- memory: past, present, future ---------------------------------------------------------------------


def _memory(store: ChunkStore, now: datetime, run: RecordedRun | None, state: StoreStatus) -> dict[str, Any]:
    written = store.backend.latest_event(store.namespace, frozenset(_WRITES))
    ahead = store.timeline(format_time(now + timedelta(seconds=1)), None, 1)
    future_at = ahead[0].occurred_at or ahead[0].created_at if ahead else None
    return {
        "past": _past(run),
        "present": _present(store, written),
        "future": _future(store, ahead[0].id if ahead else None, future_at, state),
        "past_at": run.started_at if run else None,
        "present_at": str(written["ts"]) if written else None,
        "future_at": future_at,
    }


def _past(run: RecordedRun | None) -> str:
    if run is None:
        return "nothing has been recalled yet"
    verb = "reasoned over" if run.operation == "reason" else "read"
    return _words(f"{verb} {amount(len(_read_by(run)), 'chunk')} for:", run.query)


def _present(store: ChunkStore, event: Mapping[str, Any] | None) -> str:
    if event is None:
        return "nothing has been written lately"
    chunk_id = str(event.get("chunk_id"))
    chunk = store.get_chunk(chunk_id, track=False) if event.get("op") not in ("delete", "erase") else None
    verb = _WRITES[str(event["op"])]
    return _words(f"{verb} {chunk.type}:", chunk.content) if chunk else f"{verb} chunk, {chunk_id}"


def _future(store: ChunkStore, chunk_id: str | None, at: str | None, state: StoreStatus) -> str:
    chunk = store.get_chunk(chunk_id, track=False) if chunk_id else None
    if chunk is not None and at is not None:
        return _words(f"on {at[:10]}:", chunk.content)
    waiting = state.unsaved_reads
    return (
        f"{waiting} access {'count waits' if waiting == 1 else 'counts wait'} for the next checkpoint"
        if waiting
        else "nothing dated ahead, nothing waiting"
    )


def _words(beginning: str, text: str) -> str:
    """At most nine words, truncated in case a text without spaces counts as one word."""
    room = WORDS - len(beginning.split())
    words = fixed_width(re.sub(r"[#*_`>|]+", " ", text[:2000])).split()
    beginning_words = " ".join(words[:room])
    short = beginning_words if len(beginning_words) <= 60 else beginning_words[:59].rstrip() + "…"
    return f"{beginning} {short}" + ("…" if len(words) > room and not short.endswith("…") else "")


def _read_by(run: RecordedRun) -> set[str]:
    return {chunk_id for step in run.steps for chunk_id in step.chunks_read}


# --- system, store, health, tiers, cost ----------------------------------------------------------------


def _system(
    store: ChunkStore,
    persona_tokens: int,
    run: RecordedRun | None,
    state: StoreStatus,
    sliders: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    from rlm_mem.sandbox.functions import MODEL_FUNCTIONS, STORE_FUNCTIONS

    limit = store.config.llm.context_tokens
    used = max((step.prompt_tokens for step in run.steps), default=0) if run else 0
    tools = [*STORE_FUNCTIONS, *MODEL_FUNCTIONS]
    return {
        "context": {
            "used": used,
            "limit": limit,
            "percent": round(100 * used / limit),
            "persona": persona_tokens,
        },
        "tools": tools,
        "tools_count": len(tools),
        "chunks_loaded": len(_read_by(run)) if run else 0,
        "writes_pending": state.unsaved_reads + state.unfinished_files,
        "model": store.config.llm.model,
        "vibe": _vibe(sliders),
    }


def _vibe(sliders: Sequence[Mapping[str, Any]]) -> str:
    """The three sliders furthest from their defaults, relative to their ranges."""
    apart = [
        (abs(slider["value"] - slider["default"]) / (slider["high"] - slider["low"]), slider)
        for slider in sliders
        if slider["value"] != slider["default"]
    ]
    far = sorted(apart, key=lambda one: -one[0])[:3]
    parts = [f"{'more' if one['value'] > one['default'] else 'less'} {one['name']}" for _, one in far]
    return ", ".join(parts) or "as by default"


def _store(store: ChunkStore) -> dict[str, Any]:
    stats = store.get_stats()
    return {
        "chunks": stats["chunk_count"],
        "archived": stats["archived_count"],
        "tokens": stats["total_tokens"],
        "links": stats["links"],
        "conversations": stats["conversations"],
        "tags": stats["tags"],
        "size_mb": stats["storage_size_mb"],
        "index_mb": stats.get("index_size_mb", 0.0),
    }


def _health(state: StoreStatus) -> dict[str, Any]:
    if state.unreadable_files:
        name = "attention"
        text = f"{amount(state.unreadable_files, 'unreadable file')}, see rlm-mem store check"
    elif state.unfinished_files:
        name, text = "busy", f"{amount(state.unfinished_files, 'file')} being written"
    else:
        name, text = "well", "every known file is readable"
    return {
        "state": name,
        "text": text,
        "unreadable_files": state.unreadable_files,
        "unfinished_files": state.unfinished_files,
    }


def _tiers(store: ChunkStore) -> dict[str, int]:
    """Number of memories per tier, by tags of chunks; cards and superseded memories do not count."""

    def count(tier: str) -> int:
        ids = filter(is_mirror, store.list_chunks(tags=[TIER_TAG + tier]))
        return sum(
            1 for one in store.summaries(list(ids)) if not one.superseded_by and COMPONENT not in one.tags
        )

    return {tier.replace("-", "_"): count(tier) for tier in ("high", "mid", "low", "ultra-low")}


def _cost(now: datetime, spent: Iterable[Spending]) -> dict[str, Any]:
    lines = list(spent)
    calls, unpriced = sum(one.calls for one in lines), sum(one.unpriced_calls for one in lines)
    priced = [one.cost for one in lines if one.cost is not None]
    # Without calls the cost is zero; if only unpriced calls were made, it is unknown.
    usd = sum(priced, Decimal(0)) if priced or not calls else None
    parts = [] if usd is None else [_money(usd)]
    if unpriced:
        parts.append(f"{amount(unpriced, 'call')} unpriced")
    return {
        "day": f"{now:%Y-%m-%d}",
        "runs": sum(one.runs for one in lines),
        "calls": calls,
        "tokens": sum(one.usage.input_tokens + one.usage.output_tokens for one in lines),
        "usd": None if usd is None else float(usd),
        "unpriced_calls": unpriced,
        "text": " and ".join(parts) + f", {amount(calls, 'call')} of models",
    }


def _money(usd: Decimal) -> str:
    return f"${usd:.2f}" if usd >= 1 or not usd else f"${usd:.4f}"
