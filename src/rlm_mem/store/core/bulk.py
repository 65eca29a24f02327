"""Archives or restores many chunks at once: those of a conversation, with some tags, or from a source."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypedDict

from rlm_mem.arguments import check_flag, check_words
from rlm_mem.chunk import Chunk
from rlm_mem.config import stored_path
from rlm_mem.errors import InputError
from rlm_mem.store.core.records import is_mirror

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore


class Wanted(TypedDict, total=False):
    """The filters, at least one of which must be given.

    Attributes:
        tags: the chunk must have all of them.
        source: a conversation, a word of ``source``, or a value of provenance such as a path, as in ``erase``.
    """

    conversation_id: str | None
    tags: Sequence[str] | str | None
    source: str | None


def archive(
    store: ChunkStore,
    *,
    conversation_id: str | None = None,
    tags: Sequence[str] | str | None = None,
    source: str | None = None,
    restore: bool = False,
    dry_run: bool = True,
) -> list[str]:
    """Archive the chunks that match every filter, or restore those in the archive that do, in one transaction.

    Chunks in quarantine and mirrors of tiered memories are left alone, in either direction.

    Args:
        restore: restore them from the archive instead.
        dry_run: only return the ids.
        conversation_id, tags, source: the filters (``Wanted``).

    Returns:
        Their ids, in order of time.

    Raises:
        InputError: there is no filter, or one cannot be understood.
    """
    check_flag(restore, "restore")
    check_flag(dry_run, "dry_run")
    if conversation_id is None and not tags and source is None:
        raise InputError("nothing to archive was named", hint="name a conversation, tags or a source")
    if source is not None and not check_words(source, "source").strip():
        raise InputError("the source is empty", hint="name a conversation, a path or a value of source")
    with nullcontext() if dry_run else store.batch():
        if restore or source is not None:
            chunks = store.iter_chunks(conversation_id, tags=tags, archived=restore)
            ids = [one.id for one in chunks if source is None or is_from(one, source)]
        else:
            ids = store.list_chunks(conversation_id, tags=tags)
        ids = [one for one in ids if not is_mirror(one)]
        # The newest of a conversation stays active longest: finding the next one would pass over what is archived.
        for chunk_id in () if dry_run else reversed(ids) if restore else ids:
            if restore:
                store.restore_chunk(chunk_id)
            else:
                store.delete_chunk(chunk_id)
    return ids


def is_from(chunk: Chunk, source: str) -> bool:
    """Return whether a chunk is from a source: a conversation, a word of ``source``, or a path, of a folder too."""
    about = chunk.metadata
    named = [about.source, about.conversation_id or "", *map(str, about.provenance.values())]
    bare = [one.removeprefix("file:") for one in named]
    return any(
        name in (one, path) or path.startswith((f"{name.rstrip('/')}/", f"{name}!/"))
        for name in {source, stored_path(source)}
        for one, path in zip(named, bare, strict=True)
    )
