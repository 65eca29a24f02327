"""RlmMemStore: the long-term memory of LangGraph (``BaseStore``) kept in a brain (extra ``langgraph``)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import islice
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from rlm_mem.aio import AsyncMemory
from rlm_mem.errors import InvalidQuery
from rlm_mem.integrations.records import Record, Records
from rlm_mem.memory import Memory

_OPERATORS = {"$eq": eq, "$ne": ne, "$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}


class RlmMemStore(BaseStore):
    """Items of LangGraph as memories of a brain: each is a chunk that recall and search find, too.

    Example::

        with Memory.open("brain") as memory:
            store = RlmMemStore(memory)
            graph = builder.compile(store=store)

    ``search`` with a query ranks by words and returns the matches, best first, among the 1,000 that fit best; without
    one it lists the newest first. A value is plain data. Keys and passwords in it are redacted as in any memory, unless
    ``secrets.action`` is ``keep``.
    An item with a TTL is not returned after it has expired, and is removed at a later write.

    Args:
        memory: an open memory, which the caller closes.
        ttl: defaults for TTLs in minutes, as LangGraph describes them.
    """

    __slots__ = ("_async", "_memory", "_records", "_swept_at", "ttl_config")

    supports_ttl = True

    def __init__(self, memory: Memory, *, ttl: TTLConfig | None = None) -> None:
        self._memory = memory
        self._records = Records(memory, "langgraph")
        self._async = AsyncMemory(memory)
        self._swept_at = time.monotonic()
        self.ttl_config = ttl

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations: reads in order, then writes, which are stored all or none."""
        given = list(ops)
        for op in given:
            validate_op_namespace(op)
        results: list[Result] = [None if isinstance(op, PutOp) else self._read(op) for op in given]
        writes = {
            (op.namespace, op.key): op for op in given if isinstance(op, PutOp)
        }  # the last write to a key counts
        if writes:
            with self._memory.batch():
                for write in writes.values():
                    self._write(write)
            self._sweep_at_times()
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same without blocking the loop."""
        given = list(ops)
        return await self._async.run(lambda _: self.batch(given))

    def sweep_ttl(self) -> int:
        """Remove expired items; returns how many."""
        return self._records.sweep()

    def _sweep_at_times(self) -> None:
        every = (self.ttl_config or {}).get("sweep_interval_minutes") or 5
        if time.monotonic() - self._swept_at >= every * 60:
            self._swept_at = time.monotonic()
            self.sweep_ttl()

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            record = self._records.get(op.namespace, op.key, touch=op.refresh_ttl)
            return None if record is None else Item(**_fields(record))
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        raise InvalidQuery(f"{type(op).__name__} is not an operation of this store")

    def _search(self, op: SearchOp) -> list[SearchItem]:
        def wanted(record: Record) -> bool:
            return all(_matches(record.value.get(key), asked) for key, asked in (op.filter or {}).items())

        offset, limit = max(0, op.offset), max(0, op.limit)
        if op.query and op.query.strip():
            found = self._records.search(
                op.namespace_prefix, op.query, limit=limit, offset=offset, wanted=wanted
            )
        else:
            listed = (record for record in self._records.below(op.namespace_prefix) if wanted(record))
            found = list(islice(listed, offset, offset + limit))
        if op.refresh_ttl:
            self._records.touch(found)
        return [SearchItem(**_fields(record), score=record.score) for record in found]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = [
            path
            for path in self._records.paths()
            if all(_fits(condition, path) for condition in op.match_conditions or ())
        ]
        if op.max_depth is not None:
            found = sorted({path[: op.max_depth] for path in found})
        return found[op.offset : op.offset + op.limit]

    def _write(self, op: PutOp) -> None:
        if op.value is None:
            self._records.delete(op.namespace, op.key)
            return
        text = None
        if op.index is False:
            text = ""
        elif op.index:
            texts = [
                text for path in op.index for text in get_text_at_path(dict(op.value), tokenize_path(path))
            ]
            text = "\n".join(texts)
        self._records.put(op.namespace, op.key, dict(op.value), text=text, minutes=op.ttl)


def _fields(record: Record) -> dict[str, Any]:
    return {
        "namespace": record.path,
        "key": record.name,
        "value": record.value,
        "created_at": record.created_at,
        "updated_at": record.updated_at,
    }


def _fits(condition: MatchCondition, path: tuple[str, ...]) -> bool:
    wanted = condition.path
    if len(path) < len(wanted):
        return False
    part = path[: len(wanted)] if condition.match_type == "prefix" else path[len(path) - len(wanted) :]
    return all(label in ("*", own) for label, own in zip(wanted, part, strict=True))


def _matches(value: Any, asked: Any) -> bool:
    """Whether a value matches a filter: equal, or allowed by its operators."""
    if isinstance(asked, dict):
        if any(str(name).startswith("$") for name in asked):
            return all(_compares(value, name, bound) for name, bound in asked.items())
        return isinstance(value, dict) and all(
            _matches(value.get(name), inner) for name, inner in asked.items()
        )
    if isinstance(asked, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(asked)
            and all(_matches(one, other) for one, other in zip(value, asked, strict=True))
        )
    return bool(value == asked)


def _compares(value: Any, name: str, bound: Any) -> bool:
    if name not in _OPERATORS:
        raise InvalidQuery(
            f"{name!r:.40} is not a filter operator", hint="use $eq, $ne, $gt, $gte, $lt or $lte"
        )
    compare = _OPERATORS[name]
    if name in ("$eq", "$ne"):
        return bool(compare(value, bound))
    try:
        return bool(compare(float(value), float(bound)))
    except (TypeError, ValueError):  # values that cannot be compared do not match
        return isinstance(value, str) and isinstance(bound, str) and bool(compare(value, bound))
