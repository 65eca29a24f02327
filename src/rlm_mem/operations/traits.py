"""Conditional and paged operations: ETags (RFC 9110, section 13) and cursors that stay valid during writes."""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec

from rlm_mem.chunk import Chunk, check_chunk_ids, content_hash
from rlm_mem.errors import NotFoundError, RlmMemError
from rlm_mem.operations.fitting import Reply
from rlm_mem.operations.operation import Context
from rlm_mem.operations.shapes import ChunkOut, chunk_out
from rlm_mem.store.core.records import is_mirror

_TAG = re.compile(r'(?:W/)?"[^"]*"')


class PreconditionFailed(RlmMemError):
    """The chunk's revision is not one that the If-Match header names."""


def etag(chunk: Chunk) -> str:
    """Return the strong ETag of a chunk: its revision, and the hash of a text edited by hand, which has no revision.

    Access counts are not part of it.
    """
    found = content_hash(chunk.content)
    by_hand = "" if found == chunk.metadata.content_hash else f"-{found[:16]}"
    return f'"{chunk.revision}{by_hand}"'


def tags_in(header: str) -> list[str]:
    """Return the ETags of an If-Match or If-None-Match header; ``*`` stands for any."""
    return ["*"] if header.strip() == "*" else _TAG.findall(header)


def chunk_reply(context: Context, chunk: Chunk, *, archived: bool = False) -> Reply[ChunkOut]:
    """Return a chunk with its ETag; 304 without the chunk if the client already has this revision (weak comparison)."""
    tag = etag(chunk)
    known = [] if context.if_none_match is None else tags_in(context.if_none_match)
    if "*" in known or tag in [one.removeprefix("W/") for one in known]:
        return Reply(status=304, headers={"ETag": tag})
    return Reply(chunk_out(chunk, archived=archived), headers={"ETag": tag})


@contextlib.contextmanager
def matched(context: Context, *, archived: bool = False) -> Iterator[str]:
    """Yield the id of the chunk in the path; with an If-Match header, check its revision, and hold the write lock.

    Raises:
        PreconditionFailed: the chunk is at another revision. NotFoundError: there is no such chunk.
    """
    chunk_id = context.path["chunk_id"]
    if context.if_match is None:
        yield chunk_id
        return
    wanted = tags_in(context.if_match)
    # A tiered memory is changed in a transaction of its own.
    with contextlib.nullcontext() if is_mirror(chunk_id) else context.memory.batch():
        store = context.memory.store
        chunk = store.get_archived(chunk_id) if archived else store.get_chunk(chunk_id, track=False)
        if chunk is None:
            raise NotFoundError(f"there is no chunk {chunk_id}")
        if "*" not in wanted and etag(chunk) not in wanted:
            raise PreconditionFailed(
                f"{chunk_id} is now at revision {etag(chunk).strip(chr(34))}",
                hint="read it again, and send its current ETag",
            )
        yield chunk_id


def in_one_change(
    context: Context, chunk_ids: Sequence[str], act: Callable[[str], bool]
) -> tuple[list[str], list[str]]:
    """Return the ids for which `act` returns True, and the others.

    Chunks are changed as one, then each tiered memory on its own.
    """
    wanted = check_chunk_ids(chunk_ids)  # an invalid id must not leave some of them changed
    done = dict.fromkeys(wanted, False)
    with context.memory.batch():
        done |= {one: act(one) for one in done if not is_mirror(one)}
    done |= {one: act(one) for one in done if is_mirror(one)}
    return [one for one in done if done[one]], [one for one in done if not done[one]]


_T = TypeVar("_T")


def encode_cursor(kind: str, *place: Any) -> str:
    """Return a cursor for a position in the list ``kind``."""
    data = msgspec.json.encode([kind, *place])
    return base64.urlsafe_b64encode(data).decode("ascii").rstrip("=")


def decode_cursor(kind: str, cursor: str, shape: Any) -> Any:
    """Return the position that a cursor of the list ``kind`` encodes, as the type ``shape``.

    Raises:
        NotFoundError: it is not a cursor of this list.
    """
    try:
        data = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        found, *place = msgspec.json.decode(data, type=list[Any])
        if found == kind:
            return msgspec.convert(place, shape)
    except (binascii.Error, ValueError, RecursionError, msgspec.MsgspecError):
        pass  # refused below, like a cursor of another list
    raise NotFoundError("there is no page at this cursor", hint="use the next_cursor of a page of this list")


def page_of(
    kind: str,
    items: Iterable[_T],
    key: Callable[[_T], Any],
    shape: Any,
    request: Any,
    *,
    descending: bool = False,
) -> tuple[list[_T], str | None]:
    """Return a page of items in the order of ``key``, a tuple of plain data, and the cursor of the next page or None.

    The position is the key of the last item returned, so it remains valid if that item is deleted.

    Args:
        request: has ``limit`` and ``cursor``.
    """
    if request.cursor is not None:
        last = decode_cursor(kind, request.cursor, shape)
        items = (item for item in items if (key(item) < last if descending else key(item) > last))
    rest = sorted(items, key=key, reverse=descending)
    page = rest[: request.limit]
    return page, encode_cursor(kind, *key(page[-1])) if len(rest) > len(page) else None


def next_link(path: str, parameters: Sequence[tuple[str, str]], cursor: str) -> str:
    """Return the Link header of a page: the same request with the next cursor (RFC 8288)."""
    kept = [(name, value) for name, value in parameters if name != "cursor"]
    return f'<{path}?{urlencode([*kept, ("cursor", cursor)])}>; rel="next"'
