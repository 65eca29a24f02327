"""Responses of operations, cut to the number of tokens that the caller allows."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import msgspec
from msgspec import Struct

from rlm_mem.operations.types import Cursor, Limit, Request, about
from rlm_mem.text.tokens import count_tokens, truncate_tokens

_WORD_CHARS, _NAME_CHARS = 40, 120
"""Texts up to the first length, and up to the second if without spaces (ids, times, addresses), are never cut."""
_CUT_MARK = " …"
_MAX_PASSES = 8
_LEAST_TOKENS = 24
"""Tokens of text that the best result keeps beside its names and figures, however little room there is."""


class Bounded(Request):
    """Base of requests whose response contains text."""

    max_tokens: (
        Annotated[
            int, about("Maximum tokens of the result; sets `truncated` if exceeded.", ge=1, le=1_000_000)
        ]
        | None
    ) = None


class PageQuery(Bounded, kw_only=True):
    """Base of requests for a page of a list."""

    limit: Limit = 50
    cursor: Cursor | None = None


class MayBeCut(Struct, kw_only=True):
    """Base of their responses; ``truncated``: texts or items were cut to keep ``max_tokens``.

    Attributes:
        results: the field with what was looked for, best first, whose first item stays: without any of them, the
            response would say that there is nothing.
    """

    results: ClassVar[str] = ""
    truncated: bool = False


_T = TypeVar("_T")


@dataclasses.dataclass(frozen=True)
class Reply(Generic[_T]):
    """A response with a status and headers besides its data."""

    data: _T | None = None
    status: int | None = None
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


def run_fitted(run: Callable[[Any], Any], request: Any) -> Any:
    """Run an operation, and return its response cut to the tokens that the request allows.

    Lists and texts are cut at their end; names and figures are kept, even if they alone exceed the limit, and so is the
    best result of a search. A page gets fewer items, but at least one, and the cursor of the next item.

    Args:
        run: the function of the operation; called again with a smaller limit if a page does not fit.
    """
    result = run(request)
    max_tokens = getattr(request, "max_tokens", None)
    data = result.data if isinstance(result, Reply) else result
    if max_tokens is None or data is None:
        return result
    cut = fitted(data, max_tokens)
    if hasattr(data, "next_cursor"):
        while len(cut["items"]) < len(data.items) > 1:
            data = run(msgspec.structs.replace(request, limit=max(1, len(cut["items"]))))
            cut = fitted(data, max_tokens)
        cut["items"] = cut["items"] or msgspec.to_builtins(data.items, enc_hook=str)
    return dataclasses.replace(result, data=cut) if isinstance(result, Reply) else cut


def fitted(data: Any, max_tokens: int | None) -> Any:
    """Return plain data cut to ``max_tokens`` tokens of JSON, marked as truncated if cut; None: the data unchanged."""
    if max_tokens is None:
        return data
    plain = msgspec.to_builtins(data, enc_hook=str)
    if _cost(plain) <= max_tokens:
        return plain
    aim = max_tokens
    for _ in range(_MAX_PASSES):
        cut: dict[str, Any] = {**_cut(plain, aim), "truncated": True}
        excess = _cost(cut) - max_tokens
        if excess <= 0 or aim <= 0:
            break
        aim -= excess  # the sum of the parts' tokens may be a few less than those of the whole
    results = getattr(data, "results", "")
    if results and plain[results] and not cut[results]:
        best = plain[results][0]
        cut[results] = [_cut(best, _cost(_cut(best, 0)) + _LEAST_TOKENS)]
    return cut


def _cost(data: Any) -> int:
    return count_tokens(json.dumps(data, ensure_ascii=False))


def _cut(data: Any, room: int) -> Any:
    if isinstance(data, str):
        return f"{kept}{_CUT_MARK}" if (kept := truncate_tokens(data, room - 4).rstrip()) else ""
    if isinstance(data, list | tuple):
        return _cut_list(data, room)
    if not isinstance(data, dict):
        return data
    rest = sorted((name for name in data if _can_be_cut(data[name])), key=lambda name: _cut_order(data[name]))
    made = {
        name: ("" if isinstance(data[name], str) else []) if name in rest else data[name] for name in data
    }
    if "truncated" in made:
        made["truncated"] = True
    room -= _cost(made)
    for name in rest:
        cost = _cost(data[name])
        made[name] = data[name] if cost <= room else _cut(data[name], room)
        room -= min(cost, _cost(made[name]))
    return made


def _cut_list(items: Sequence[Any], room: int) -> list[Any]:
    """Return the first items that fit; the very first may itself be cut."""
    kept: list[Any] = []
    for item in items:
        cost = _cost(item) + 1
        if cost > room and not kept and _can_be_cut(item):
            item = _cut(item, room)
            cost = _cost(item) + 1
        if cost > room:
            break
        kept.append(item)
        room -= cost
    return kept


def _can_be_cut(data: Any) -> bool:
    if isinstance(data, str):
        return len(data) > _NAME_CHARS or (len(data) > _WORD_CHARS and len(data.split()) > 1)
    return isinstance(data, list | tuple) or (isinstance(data, dict) and any(map(_can_be_cut, data.values())))


def _cut_order(data: Any) -> int:
    """Return the order of cutting: texts, then lists that contain text, then lists of names and figures."""
    if isinstance(data, str):
        return 0
    return 1 if any(_can_be_cut(one) for one in (data.values() if isinstance(data, dict) else data)) else 2
