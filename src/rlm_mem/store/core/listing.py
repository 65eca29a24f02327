"""Filters of listings: the types in which callers give them, and their check."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from rlm_mem.arguments import check_flag, check_words
from rlm_mem.chunk import normalise_unicode
from rlm_mem.chunk.types import wanted_origins, wanted_trust
from rlm_mem.errors import InvalidQuery
from rlm_mem.store.core.records import ListFilter, after, page, query_time

if TYPE_CHECKING:
    from typing import TypedDict, Unpack

    class _Filters(TypedDict, total=False):
        any_tags: Sequence[str] | str | None
        archived: bool
        newest_first: bool
        origin: Sequence[str] | str | None
        trust: str | None

    class Listing(_Filters, total=False):
        """The filters of list_chunks, as passed to ``list_page``; ``start`` and ``end`` are the dates."""

        conversation_id: str | None
        start: str | date | None
        end: str | date | None
        tags: Sequence[str] | str | None
        chunk_type: str | None

    class MoreFilters(_Filters, total=False):
        """The keyword-only filters of list_chunks."""

        namespace: str | None
        limit: int | None
        offset: int


def list_filter(limit: Any, offset: Any, **filters: Unpack[Listing]) -> ListFilter:
    """Check the filters of list_chunks; raises InvalidQuery."""
    conversation_id, chunk_type = filters.get("conversation_id"), filters.get("chunk_type")
    for value, what in ((conversation_id, "conversation_id"), (chunk_type, "chunk_type")):
        if value is not None:
            check_words(value, what)
    start, end, trust = filters.get("start"), filters.get("end"), filters.get("trust")
    return ListFilter(
        conversation_id=conversation_id,
        start=None if start is None else query_time(start, "start_date")[0],
        end=None if end is None else after(query_time(end, "end_date")),
        tags=_tags(filters.get("tags"), "tags"),
        any_tags=_tags(filters.get("any_tags"), "any_tags"),
        chunk_type=chunk_type,
        archived=check_flag(filters.get("archived", False), "archived"),
        limit=None if limit is None else page(limit, "limit"),
        offset=page(offset, "offset"),
        newest_first=check_flag(filters.get("newest_first", False), "newest_first"),
        origins=wanted_origins(filters.get("origin")),
        trusts=() if trust is None else wanted_trust(trust),
    )


def _tags(value: object, what: str) -> tuple[str, ...]:
    """Normalise one tag or several, without duplicates; raises InvalidQuery."""
    if value is None:
        return ()
    if isinstance(value, str):
        value = (value,)
    if not isinstance(value, Sequence | set | frozenset) or not all(isinstance(item, str) for item in value):
        raise InvalidQuery(f"{what} must be a list of words, not {value!r:.60}")
    return tuple(dict.fromkeys(normalise_unicode("NFC", check_words(item, what)) for item in value))
