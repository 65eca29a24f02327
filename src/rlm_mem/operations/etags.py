"""ETags: the revision of a chunk, so that nobody overwrites what they have not seen (RFC 9110, section 13)."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rlm_mem.errors import NotFoundError, RlmMemError

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.operations.operation import Context

__all__ = ["PreconditionFailed", "etag", "matched", "not_modified", "tags_in"]

_TAG = re.compile(r'(?:W/)?"[^"]*"')


class PreconditionFailed(RlmMemError):
    """The chunk has another revision than the If-Match header names."""


def etag(chunk: Chunk) -> str:
    """The strong ETag of a chunk: its revision. Reads are counted elsewhere, so it names the whole content."""
    return f'"{chunk.revision}"'


def tags_in(header: str) -> list[str]:
    """The tags of an If-Match or If-None-Match header; ``*`` stands for any."""
    return ["*"] if header.strip() == "*" else _TAG.findall(header)


def not_modified(context: Context, chunk: Chunk) -> bool:
    """Whether the client has this revision already (weak comparison)."""
    if context.if_none_match is None:
        return False
    known = tags_in(context.if_none_match)
    return "*" in known or etag(chunk) in [tag.removeprefix("W/") for tag in known]


@contextlib.contextmanager
def matched(context: Context, chunk_id: str, *, archived: bool = False) -> Iterator[None]:
    """Hold the write lock while the chunk has a revision that If-Match names; without that header, just go on.

    Raises:
        PreconditionFailed: it has another one. NotFoundError: there is no such chunk.
    """
    if context.if_match is None:
        yield
        return
    wanted = tags_in(context.if_match)
    with context.memory.batch():
        store = context.memory.store
        chunk = store.get_archived(chunk_id) if archived else store.get_chunk(chunk_id, track=False)
        if chunk is None:
            raise NotFoundError(f"there is no chunk {chunk_id}")
        if "*" not in wanted and etag(chunk) not in wanted:
            raise PreconditionFailed(
                f"{chunk_id} is at revision {chunk.revision} by now",
                hint="Read it again, and send the ETag that comes with it.",
            )
        yield
