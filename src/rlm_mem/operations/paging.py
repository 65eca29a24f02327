"""Pages: opaque cursors that name a place in an order, so that writes in between neither repeat nor hide an item."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from rlm_mem.errors import NotFoundError

__all__ = ["decode_cursor", "encode_cursor", "next_link", "page_of"]

_T = TypeVar("_T")


def encode_cursor(kind: str, *place: Any) -> str:
    """A cursor for a place in the list ``kind``."""
    data = msgspec.json.encode([kind, *place])
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def decode_cursor(kind: str, cursor: str, shape: Any) -> Any:
    """The place that a cursor names.

    Raises:
        NotFoundError: it is no cursor of this list.
    """
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        found, *place = msgspec.json.decode(data, type=list[Any])
        if found == kind:
            return msgspec.convert(place, shape)
    except (binascii.Error, ValueError, RecursionError, msgspec.MsgspecError):
        pass  # not ours: said below, like a cursor of another list
    raise NotFoundError("there is no page at this cursor", hint="Use the next_cursor of a page of this list.")


def page_of(
    kind: str, items: Sequence[_T], key: Callable[[_T], Any], shape: Any, cursor: str | None, limit: int
) -> tuple[list[_T], str | None]:
    """A page of a list that is sorted by ``key``, a tuple of plain data, and the cursor of the next one.

    The place is the key of the last item handed out, so it stays good when that item is gone.
    """
    start = 0
    if cursor is not None:
        start = bisect_right([key(item) for item in items], decode_cursor(kind, cursor, shape))
    here = list(items[start : start + limit])
    more = start + limit < len(items)
    return here, encode_cursor(kind, *key(here[-1])) if more and here else None


def next_link(path: str, parameters: Sequence[tuple[str, str]], cursor: str) -> str:
    """The Link header of a page: the same question with the next cursor (RFC 8288)."""
    kept = [(name, value) for name, value in parameters if name != "cursor"]
    return f'<{path}?{urlencode([*kept, ("cursor", cursor)])}>; rel="next"'
