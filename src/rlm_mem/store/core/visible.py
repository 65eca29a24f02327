"""Links, neighbours, tags, conversations and authors, without those of quarantined and expired chunks.

The index has every active chunk. The hidden ones, which are few, are neither counted here nor take the place of others
in a limited answer.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Protocol

from rlm_mem.store.core.encoding import AUTHOR_PREFIX
from rlm_mem.store.core.records import ConversationInfo, LinkedChunk, ListFilter, Summary, authors_of

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.store.core.backend import Backend


class Reader(Protocol):
    """What is asked of a ``ChunkReader``."""

    backend: Backend
    namespace: str
    as_of: datetime | None

    def existing(self, chunk_ids: Iterable[str]) -> set[str]: ...
    def get_many(self, chunk_ids: Sequence[str]) -> dict[str, Chunk]: ...


Sides = tuple[list[str], list[str]]
"""The ids before and after a chunk, both in order of time."""


def links_of_each(
    store: Reader, wanted: Sequence[str], link_type: str | None, direction: str, most: int
) -> dict[str, list[LinkedChunk]]:
    """Return the links of each chunk to and from visible ones, strongest first."""
    queries = store.backend.queries

    def ask(wanted: Sequence[str], limit: int) -> dict[str, list[LinkedChunk]]:
        return {
            one: queries.linked(store.namespace, one, link_type=link_type, direction=direction, limit=limit)
            for one in wanted
        }

    found = store.backend.together(store.namespace, partial(ask, wanted, most))
    shown = _shown_links(store, found)
    cut = [one for one in found if len(shown[one]) < len(found[one]) == most]
    if cut:
        found = store.backend.together(store.namespace, partial(ask, cut, sys.maxsize))
        shown |= {one: links[:most] for one, links in _shown_links(store, found).items()}
    return shown


def _shown_links(store: Reader, found: Mapping[str, list[LinkedChunk]]) -> dict[str, list[LinkedChunk]]:
    """Return the links that lead to visible chunks; in a view of an earlier time, those that there were then."""
    shown = store.existing({link.chunk_id for links in found.values() for link in links})
    then = {} if store.as_of is None else store.get_many([*shown, *found])
    named = {(chunk.id, link.target_id, link.type) for chunk in then.values() for link in chunk.links}

    def is_shown(one: str, link: LinkedChunk) -> bool:
        source, target = (one, link.chunk_id) if link.direction == "out" else (link.chunk_id, one)
        return link.chunk_id in shown and (store.as_of is None or (source, target, link.type) in named)

    return {one: [link for link in links if is_shown(one, link)] for one, links in found.items()}


def neighbours_of_each(store: Reader, wanted: Sequence[str], before: int, after: int) -> dict[str, Sides]:
    """Return the visible chunks nearest to each chunk in its conversation."""
    queries = store.backend.queries

    def ask(wanted: Sequence[str], before: int, after: int) -> dict[str, Sides]:
        return {one: queries.neighbours(store.namespace, one, before, after) for one in wanted}

    answer: dict[str, Sides] = {}
    reach = before, after
    while wanted:
        found = store.backend.together(store.namespace, partial(ask, wanted, *reach))
        shown = store.existing({one for sides in found.values() for side in sides for one in side})
        wanted = []
        for chunk_id, (earlier, later) in found.items():
            left = [one for one in earlier if one in shown]
            right = [one for one in later if one in shown]
            answer[chunk_id] = left[max(0, len(left) - before) :], right[:after]
            if (len(left) < before and len(earlier) == reach[0]) or (
                len(right) < after and len(later) == reach[1]
            ):
                wanted.append(chunk_id)
        reach = 4 * reach[0], 4 * reach[1]
    return answer


def tag_counts(store: Reader, limit: int | None, now: str) -> list[tuple[str, int]]:
    """Return tags with the number of chunks that have them, most frequent first."""
    tags = Counter(tag for one in _hidden(store, now) for tag in one.tags)
    most = None if limit is None else limit + len(tags)
    found = store.backend.queries.tag_counts(store.namespace, most)
    counts = [(tag, count - tags[tag]) for tag, count in found]
    if tags:
        counts = sorted((one for one in counts if one[1] > 0), key=lambda one: (-one[1], one[0]))
    return counts[:limit]


def conversations(store: Reader, limit: int | None, now: str) -> list[ConversationInfo]:
    """Return conversations, the most recently active first."""
    hidden = Counter(one.conversation_id for one in _hidden(store, now))
    most = None if limit is None else limit + len(hidden)
    found = []
    for one in store.backend.queries.conversations(store.namespace, most):
        count = one.count - hidden[one.id]
        if not hidden[one.id]:
            found.append(one)
        elif count > 0:
            first, last = (_end(store, one.id, now, last=last) for last in (False, True))
            found.append(ConversationInfo(one.id, count, first, last))
    if hidden:
        found.sort(key=lambda one: (-one.last_at, one.id))
    return found[:limit]


def authors(store: Reader, language: str, now: str) -> set[str]:
    """Return the names of the authors of visible chunks."""
    source = store.backend.candidate_source(store.namespace)
    names = set(source.authors())
    hidden = [one.id for one in _hidden(store, now)] if names else []
    if not hidden:
        return names
    said = Counter(
        AUTHOR_PREFIX + name
        for chunk in store.backend.chunks(store.namespace, hidden).values()
        for name in authors_of(language, chunk)
    )
    counts = source.term_counts(list(said))
    return {name for name in names if counts.get(AUTHOR_PREFIX + name, 1) > said[AUTHOR_PREFIX + name]}


def _hidden(store: Reader, now: str) -> list[Summary]:
    """Return the active chunks that are quarantined or expired."""
    queries, namespace = store.backend.queries, store.namespace
    wanted = ListFilter(trusts=("quarantined",)), ListFilter(expired_at=now)
    found = store.backend.together(
        namespace, lambda: [place for one in wanted for place in queries.list_places(namespace, one)]
    )
    ids = list(dict.fromkeys(chunk_id for chunk_id, _, _ in found))
    return queries.summaries(namespace, ids) if ids else []


def _end(store: Reader, conversation_id: str, now: str, *, last: bool) -> float:
    wanted = ListFilter(conversation_id=conversation_id, shown_at=now, newest_first=last, limit=1)
    return store.backend.queries.list_places(store.namespace, wanted)[0][1]
