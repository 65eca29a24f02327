"""Candidate source of the local store: postings for scoring, SQLite rows for the displayed parts of a chunk.

One `LocalSource` serves one search, on the postings as of its creation.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import reduce
from itertools import compress, repeat
from operator import and_, attrgetter
from typing import Self

import numpy as np

from rlm_mem.chunk import name_key
from rlm_mem.chunk.types import wanted_origins, wanted_trust
from rlm_mem.store.core.arrays import Array, Bools, Floats, Ints, Scores, Slots
from rlm_mem.store.core.encoding import AUTHOR_PREFIX, NO_SEGMENTS, DecodedSegments, decode_many, spans
from rlm_mem.store.core.lookup import (
    MAX_REPLACEMENTS,
    NO_CONVERSATION,
    NO_ROWS,
    ChunkRows,
    CorpusStatistics,
    Filters,
    Held,
    HoldingQuestion,
    Neighbourhood,
    has_surrogate,
)
from rlm_mem.store.core.records import time_range
from rlm_mem.store.core.selection import (
    EXCLUDED,
    NOTHING,
    CorpusLengths,
    Scorer,
    added,
    best,
    contained,
    distinct,
    ints,
    kth,
    scorers,
    top,
    union,
    walked,
    weighed,
)
from rlm_mem.store.local.queries import json_list
from rlm_mem.store.local.snapshot import LocalTermPostings, View, term_list

_UNKNOWN_CONVERSATION = -2  # the number of no conversation; differs from NO_CONVERSATION
_HIDDEN = (
    "SELECT doc FROM chunks WHERE ns = ? AND status = 0 AND trust = 'quarantined'"
    " UNION ALL SELECT doc FROM chunks WHERE ns = ? AND expires_at <= ?"
)


class LocalSource:
    """`CandidateSource` over one `View` of the postings; the protocol documents each method."""

    def __init__(
        self, connection: sqlite3.Connection, ns: int, view: View, names: dict[int, str] | None = None
    ) -> None:
        self._connection = connection
        self._ns = ns
        self._view = view
        self._names = {} if names is None else names  # number → author; numbers are never reused
        self._lists: dict[int, LocalTermPostings] = {}
        self._masks: dict[Filters, Bools | None] = {}
        self._known: dict[tuple[object, ...], Ints] = {}  # by query and values, the chunks that it finds

    # -- terms and statistics --------------------------------------------------------------------------------------

    def term_ids(self, terms: Sequence[str]) -> Ints:
        found = self._numbers(terms)
        return np.fromiter((found.get(term, -1) for term in terms), np.int64, len(terms))

    def renumbered(self, terms: Ints, other: Self) -> Ints:  # noqa: ARG002
        return terms

    def term_counts(self, terms: Sequence[str]) -> dict[str, int]:
        return {term: postings.df for term, postings in self._lists_of(terms).items()}

    def authors(self) -> Collection[str]:
        view = self._view
        if view.authors is None:
            snap = view.snapshot
            place = np.searchsorted(snap.term, snap.author_terms)
            # An author with more postings than there are deleted chunks still has at least one chunk.
            sure = snap.author_terms[
                snap.offsets[place + 1] - snap.offsets[place] > len(view.masked_ordinals)
            ]
            every = union(snap.author_terms, view.delta.author_terms)
            open_ = every[~contained(every, sure)]
            rest = [number for number in open_.tolist() if self._list(number).df]
            ids = np.concatenate([sure.astype(np.int64), np.array(rest, np.int64)])
            view.authors = frozenset(self.author_names(ids).values())
        return view.authors

    def author_names(self, ids: Ints) -> dict[int, str]:
        wanted = ids.tolist()
        missing = [number for number in wanted if number not in self._names]
        if missing:
            rows = self._connection.execute(
                "SELECT term, text FROM terms WHERE term IN (SELECT value FROM json_each(?))",
                (json_list(missing),),
            )
            self._names.update((number, text.removeprefix(AUTHOR_PREFIX)) for number, text in rows)
        return {number: self._names[number] for number in wanted if number in self._names}

    def statistics(self, terms: Ints) -> CorpusStatistics:
        view = self._view
        lists = [self._list(int(term)) for term in terms]
        first, last = (edge.astype(np.int32) for edge in view.snapshot.range_of(view.touched))
        return CorpusStatistics(
            chunks=view.chunks,
            segments=view.segments,
            conversations=view.conversations,
            total_length=view.total_length,
            chunk_df=ints(postings.df for postings in lists),
            segment_df=ints(self._segment_df(postings) for postings in lists),
            conversation_df=ints(self._conversation_df(postings, first, last) for postings in lists),
        )

    def conversation_terms(self, conversations: Ints, terms: Ints) -> tuple[Ints, Ints]:
        view = self._view
        snap, new = view.snapshot, view.delta.columns
        count = len(conversations)
        first, last = snap.range_of(conversations)
        masked = view.masked_ordinals
        masked_in, masked_at = _match(snap.conversation[masked], conversations)
        new_in, new_at = _match(new.conversation, conversations)
        length = snap.length_before[last] - snap.length_before[first]
        length = (
            length
            - _sums(masked_in, snap.length[masked[masked_at]], count)
            + _sums(new_in, new.length[new_at], count)
        )
        tf = np.zeros((count, len(terms)), np.int64)
        conversation_of_new = np.full(view.delta.size, -1, np.int64)
        conversation_of_new[new_at] = new_in
        begin, end = first.astype(np.int32), last.astype(np.int32)
        for column, term in enumerate(terms):
            postings = self._list(int(term))
            lo = np.searchsorted(postings.ordinal, begin)
            sizes = np.searchsorted(postings.ordinal, end) - lo
            where = np.repeat(np.arange(count), sizes)
            tf[:, column] = _sums(where, postings.frequency[spans(lo, sizes)], count)
            if len(postings.lost):
                inside, at = _match(snap.conversation[postings.ordinal[postings.lost]], conversations)
                tf[:, column] -= _sums(inside, postings.frequency[postings.lost[at]], count)
            if len(postings.new):
                owner = conversation_of_new[postings.new]
                tf[:, column] += _sums(owner[owner >= 0], postings.new_frequency[owner >= 0], count)
        return tf, length

    # -- choosing chunks -------------------------------------------------------------------------------------------

    def best(self, terms: Ints, weights: Floats, limit: int, filters: Filters) -> tuple[Ints, Floats]:
        view, admitted = self._view, self._mask(filters)
        collection = CorpusLengths(view.snapshot.length, view.chunks, view.total_length)
        weighted = scorers(collection, [self._list(int(term)) for term in terms], weights)
        if not weighted or limit < 1:
            return NOTHING, np.zeros(0)
        size = view.snapshot.size
        new_scores = _new_scores(view, collection, weighted)
        if admitted is not None:
            new_scores[~admitted[size:]] = EXCLUDED
        old, scores = best(
            collection,
            weighted,
            limit,
            admitted=None if admitted is None else admitted[:size],
            excluded=view.masked_ordinals,
            floor=kth(new_scores, limit, np.float32(0)),
        )
        slots = np.concatenate([old.astype(np.int64), np.arange(size, size + len(new_scores))])
        scores = np.concatenate([scores, new_scores])
        keep = top(scores, limit)
        slots, scores = slots[keep], scores[keep]
        docs = self._docs(slots)
        order = np.lexsort((-docs, -view.take("at", slots), -scores))[:limit]
        return docs[order], scores[order].astype(np.float64)

    def holding_each(
        self, questions: Sequence[HoldingQuestion], limit: int, shown_at: str | None = None
    ) -> list[list[Held]]:
        return [self._holding(question, limit, shown_at) for question in questions]

    def _holding(self, question: HoldingQuestion, limit: int, shown_at: str | None) -> list[Held]:
        found = self._best_holding(question, limit, shown_at)
        if not found:
            return []
        rows = self._connection.execute(
            "SELECT c.doc, c.id, c.content_hash FROM json_each(?) j CROSS JOIN chunks c ON c.doc = j.value"
            " WHERE c.ns = ? AND c.status = 0 AND c.superseded_by IS NULL",
            (json_list(found), self._ns),
        )
        return [Held(chunk_id, digest, found[doc]) for doc, chunk_id, digest in rows]

    def _best_holding(
        self, question: HoldingQuestion, limit: int, shown_at: str | None
    ) -> dict[int, frozenset[str]]:
        """Answer a question from the postings alone: chunk number → the terms that the chunk contains."""
        groups, weights = question
        lists = self._lists_of(term for group in groups for term in group)
        found = [
            self._holding_all([lists[term] for term in group])
            for group in groups
            if group and lists.keys() >= set(group)
        ]
        if not found:  # most questions end here: terms that only have a weight are not looked up
            return {}
        lists |= self._lists_of(weights)
        (old, new), *others = found
        for old_too, new_too in others:
            old, new = union(old, old_too), union(new, new_too)
        count = len(old) + len(new)
        if not count:
            return {}
        view = self._view
        parts = weighed(weights, {term: postings.df for term, postings in lists.items()})
        terms = sorted(parts)
        scores, contains = np.zeros(count), np.empty((len(terms), count), np.bool_)
        for mask, term in zip(contains, terms, strict=True):
            mask[: len(old)], mask[len(old) :] = lists[term].among(old, new)
            if parts[term]:
                scores += mask * parts[term]
        scores[view.both("superseded", old, new)] = -1
        docs = view.both("doc", old, new)
        if shown_at is not None:
            hidden = self._found(_HIDDEN, self._ns, self._ns, shown_at)
            if len(hidden):
                scores[contained(docs, hidden)] = -1
        order = np.lexsort((docs, view.both("at", old, new), scores))[: -limit - 1 : -1]
        order = order[scores[order] >= 0]
        matched = map(frozenset, map(compress, repeat(terms), contains[:, order].T.tolist()))
        return dict(zip(docs[order].tolist(), matched, strict=True))

    def later_with(
        self, terms: Collection[str], since: float, most: int, limit: int, filters: Filters
    ) -> list[str]:
        view = self._view
        snap, most_before = view.snapshot, most + len(view.masked_ordinals)
        held = []
        for number in self._numbers(terms).values():
            place = snap.term_index(number)
            if place < 0 or snap.offsets[place + 1] - snap.offsets[place] <= most_before:
                postings = self._list(number)  # which is read only if it may be short
                if 0 < postings.df <= most:
                    held.append(self._holding_all([postings]))
        if not held:
            return []
        slots = np.concatenate([part for old, new in held for part in (old, new + view.snapshot.size)])
        found, times = np.unique(slots.astype(np.int64), return_counts=True)
        at = view.take("at", found)
        kept = (at > since) & ~view.take("superseded", found)
        if kept.any() and (mask := self._mask(filters)) is not None:
            kept &= mask[found]
        found, times, at = found[kept], times[kept], at[kept]
        docs = self._docs(found)
        order = np.lexsort((-docs, -at, -times))[:limit]
        rows = self._connection.execute(
            "SELECT c.id FROM json_each(?) j CROSS JOIN chunks c ON c.doc = j.value WHERE c.ns = ? AND c.status = 0",
            (json_list(docs[order].tolist()), self._ns),
        )
        return [chunk_id for (chunk_id,) in rows]

    def in_period(self, first: float, last: float, limit: int, filters: Filters) -> Ints:
        return self._docs(self._in_order(first, last, filters)[:limit])

    def newest(self, limit: int, filters: Filters) -> Ints:
        return self._docs(self._in_order(-np.inf, np.inf, filters)[::-1][:limit])

    def successors(self, docs: Ints) -> Ints:
        slots = self._slots(docs)
        slots = slots[slots >= 0]
        replaced = slots[self._view.take("superseded", slots)]
        if not len(replaced):
            return NOTHING
        rows = self._connection.execute(
            "WITH RECURSIVE chain(id, step) AS ("
            " SELECT superseded_by, 1 FROM chunks WHERE doc IN (SELECT value FROM json_each(?))"
            " UNION SELECT c.superseded_by, step + 1 FROM chain JOIN chunks c ON c.id = chain.id"
            " WHERE step < ? AND c.superseded_by IS NOT NULL)"
            " SELECT DISTINCT c.doc FROM chain JOIN chunks c ON c.id = chain.id WHERE c.ns = ? AND c.status = 0",
            (json_list(self._docs(replaced).tolist()), MAX_REPLACEMENTS, self._ns),
        ).fetchall()
        return ints(row[0] for row in rows)

    def around(self, docs: Ints, alone: Ints, near: int, reach: int) -> Neighbourhood:
        slots, lone = self._slots(docs), self._slots(alone)
        slots = slots[slots >= 0]
        line = _ConversationLayout(self._view, union(slots, lone[lone >= 0]))
        found, _ = walked(line, np.flatnonzero(contained(line.asked, slots)), near, reach)
        return Neighbourhood(self._docs(found.doc), found.run, found.near, found.segments_before)

    def rows(self, docs: Ints, filters: Filters) -> tuple[ChunkRows, DecodedSegments]:
        # CROSS JOIN keeps SQLite from reordering: rows are returned in the order of the docs.
        found = self._connection.execute(
            "SELECT c.doc, c.id, ifnull(c.conversation, ?), c.at, c.type, c.confidence, c.valid_from, c.valid_to,"
            " c.superseded_by, ifnull(s.data, ?) FROM json_each(?) j CROSS JOIN chunks c ON c.doc = j.value"
            " LEFT JOIN segments s ON s.doc = c.doc WHERE c.ns = ? AND c.status = 0",
            (NO_CONVERSATION, NO_SEGMENTS, json_list(docs.tolist()), self._ns),
        ).fetchall()
        if not found:
            return NO_ROWS, decode_many([])
        *columns, blobs = zip(*found, strict=True)
        accepted = np.ones(len(found), np.bool_)
        if (mask := self._mask(filters)) is not None:
            slots = self._slots(np.array(columns[0], np.int64))
            accepted = (slots >= 0) & mask[slots]
        return ChunkRows(*columns, *[accepted.tolist()]), decode_many(blobs)

    # -- inside ----------------------------------------------------------------------------------------------------

    def _numbers(self, terms: Iterable[str]) -> dict[str, int]:
        # A lone surrogate cannot be bound as text, and no stored term contains one.
        known = [term for term in dict.fromkeys(terms) if term.isascii() or not has_surrogate(term)]
        rows = self._connection.execute(
            "SELECT text, term FROM terms WHERE text IN (SELECT value FROM json_each(?))", (json_list(known),)
        )
        return dict(rows.fetchall())

    def _lists_of(self, terms: Iterable[str]) -> dict[str, LocalTermPostings]:
        """Return the postings of those terms that some chunk contains."""
        numbers = self._numbers(terms).items()
        return {term: postings for term, number in numbers if (postings := self._list(number)).df}

    def _list(self, term: int) -> LocalTermPostings:
        postings = self._lists.get(term)
        if postings is None:
            postings = self._lists[term] = term_list(self._view, term)
        return postings

    def _holding_all(self, lists: Sequence[LocalTermPostings]) -> tuple[Slots, Slots]:
        """Return the chunks that every list contains: ordinals in the snapshot, and positions in the delta."""
        rarest, *others = sorted(lists, key=attrgetter("df"))
        old, new = np.delete(rarest.ordinal, rarest.lost) if len(rarest.lost) else rarest.ordinal, rarest.new
        for other in others:
            in_old, in_new = other.among(old, new)
            old, new = old[in_old], new[in_new]
        return old, new

    def _segment_df(self, postings: LocalTermPostings) -> int:
        before = int(self._view.snapshot.segment_df[postings.index]) if postings.index >= 0 else 0
        lost = int(postings.segments[postings.lost].sum(dtype=np.int64))
        return before - lost + int(postings.new_segments.sum(dtype=np.int64))

    def _conversation_df(self, postings: LocalTermPostings, first: Slots, last: Slots) -> int:
        """Count the conversations with the term: the snapshot's count, corrected for delta and mask.

        Args:
            postings: `term_list` of the term.
            first, last: where each changed conversation begins and ends in the snapshot.
        """
        view = self._view
        snap, touched = view.snapshot, view.touched
        before = int(snap.conversation_df[postings.index]) if postings.index >= 0 else 0
        left = snap.conversation[postings.ordinal[postings.lost]]
        came = view.delta.columns.conversation[postings.new]
        before += int(np.count_nonzero(came == NO_CONVERSATION)) - int(
            np.count_nonzero(left == NO_CONVERSATION)
        )
        if not len(touched):
            return before
        had = np.searchsorted(postings.ordinal, last) - np.searchsorted(postings.ordinal, first)
        has = had - _sums(_match(left, touched)[0], None, len(touched)) + _sums(
            _match(came, touched)[0], None, len(touched)
        )  # fmt: skip
        return before + int(np.count_nonzero(has > 0)) - int(np.count_nonzero(had > 0))

    def _mask(self, filters: Filters) -> Bools | None:
        """Return which slots pass the filters; None if there is no restriction. Deleted chunks are not masked here."""
        if filters not in self._masks:
            masks = list(self._restrictions(filters))
            self._masks[filters] = reduce(and_, masks) if masks else None
        return self._masks[filters]

    def _restrictions(self, filters: Filters) -> Iterator[Bools]:
        """Yield one mask over the slots per restriction."""
        view = self._view
        if filters.valid_at is not None:
            # A chunk without `valid_from` is valid from the time when it happened.
            start = view.column("valid_from")
            yield np.where(np.isinf(start), view.column("at"), start) <= filters.valid_at
            yield view.column("valid_to") > filters.valid_at
        first, last = time_range(filters.start, filters.end)
        if first != -np.inf or last != np.inf:
            at = view.column("at")
            yield (at >= first) & (at < last)
        if filters.chunk_type is not None:
            wanted = (filters.chunk_type,) if isinstance(filters.chunk_type, str) else filters.chunk_type
            codes = [code for code, name in enumerate(view.snapshot.types) if name in wanted]
            old = contained(view.snapshot.type_code, np.array(codes, np.uint16))
            new = np.array([name in wanted for name in view.delta.columns.type_name], np.bool_)
            yield np.concatenate([old, new])
        if filters.conversation_id is not None:
            row = None
            if not has_surrogate(filters.conversation_id):
                row = self._connection.execute(
                    "SELECT conversation FROM conversations WHERE ns = ? AND id = ?",
                    (self._ns, filters.conversation_id),
                ).fetchone()
            yield view.column("conversation") == (_UNKNOWN_CONVERSATION if row is None else row[0])
        if filters.shown_at is not None:
            hidden = self._found(_HIDDEN, self._ns, self._ns, filters.shown_at)
            if len(hidden):
                yield ~self._of_docs(hidden)
        for column, names in (
            ("origin", wanted_origins(filters.origin)),
            ("trust", () if filters.trust is None else wanted_trust(filters.trust)),
        ):
            if names:
                query = "SELECT doc FROM chunks WHERE ns = ? AND status = 0"
                query += f" AND {column} IN (SELECT value FROM json_each(?))"
                yield self._of_docs(self._found(query, self._ns, json_list(names)))
        if filters.speaker is not None:
            by_speaker = np.zeros(view.snapshot.size + view.delta.size, np.bool_)
            by_speaker[self._speaker_slots(filters.speaker)] = True
            yield by_speaker
        for tags in (
            *((tag,) for tag in filters.tags_all),
            *([filters.tags_any] if filters.tags_any else ()),
        ):
            known = [tag for tag in tags if not has_surrogate(tag)]
            query = "SELECT doc FROM tags WHERE ns = ? AND tag IN (SELECT value FROM json_each(?))"
            yield self._of_docs(self._found(query, self._ns, json_list(known)))

    def _found(self, query: str, *values: str | int) -> Ints:
        """Return the chunks that a query finds; cached, since the view does not change."""
        key = query, values
        if key not in self._known:
            rows = self._connection.execute(query, values).fetchall()
            self._known[key] = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        return self._known[key]

    def _of_docs(self, docs: Ints) -> Bools:
        """Return the mask of the slots of the chunks with these numbers."""
        view, docs = self._view, distinct(docs)
        old = np.zeros(view.snapshot.size, np.bool_)
        ordinals = view.snapshot.ordinals_of(docs)
        old[ordinals[ordinals >= 0]] = True
        return np.concatenate([old, contained(view.delta.columns.doc, docs)])

    def _in_order(self, first: float, last: float, filters: Filters) -> Ints:
        """Return the slots with `first <= at < last` that pass the filters, ordered by (at, doc)."""
        view, mask = self._view, self._mask(filters)
        snap, new = view.snapshot, view.delta.columns
        order = snap.time_order
        start, end = (int(np.searchsorted(snap.at, moment, sorter=order)) for moment in (first, last))
        slots = order[start:end].astype(np.int64)
        if len(view.masked_ordinals):
            slots = slots[~view.masked[slots]]
        fresh = np.flatnonzero((new.at >= first) & (new.at < last))
        if len(fresh):
            slots = np.concatenate([slots, fresh + snap.size])
            slots = slots[np.lexsort((view.take("doc", slots), view.take("at", slots)))]
        return slots if mask is None else slots[mask[slots]]

    def _speaker_slots(self, speaker: str) -> Ints:
        """Return the slots of the chunks with an author of this name."""
        view = self._view
        ids = union(view.snapshot.author_terms, view.delta.author_terms).astype(np.int64)
        wanted = name_key(speaker)
        slots = [NOTHING]
        for number, name in self.author_names(ids).items():
            if name_key(name) == wanted:
                postings = self._list(number)
                slots += [
                    postings.ordinal.astype(np.int64),
                    postings.new.astype(np.int64) + view.snapshot.size,
                ]
        return np.concatenate(slots)

    def _slots(self, docs: Ints) -> Ints:
        """Return the slot of each doc in the view; -1 if it is absent."""
        view = self._view
        slots = view.snapshot.ordinals_of(docs)
        if len(view.masked_ordinals):
            slots[(slots >= 0) & view.masked[slots]] = -1
        new = view.delta.columns.doc
        if len(new):
            order = np.argsort(new)
            place = np.minimum(np.searchsorted(new, docs, sorter=order), len(new) - 1)
            hit = new[order[place]] == docs
            slots[hit] = order[place[hit]] + view.snapshot.size
        return slots

    def _docs(self, slots: Ints) -> Ints:
        return self._view.take("doc", slots).astype(np.int64)


def _match(values: Ints, among: Ints) -> tuple[Ints, Ints]:
    """Return, for the `values` that occur in the sorted `among`, their positions in `among` and in `values`."""
    if not len(among) or not len(values):
        return NOTHING, NOTHING
    place = np.minimum(np.searchsorted(among, values), len(among) - 1)
    hit = np.flatnonzero(among[place] == values)
    return place[hit], hit


def _sums(where: Ints, values: Array | None, count: int) -> Ints:
    """Sum `values` (None: 1 each) per position in `where`, for `count` positions."""
    summed = np.bincount(where, None if values is None else values.astype(np.float64), count)
    return summed.astype(np.int64)


def _new_scores(view: View, collection: CorpusLengths, terms: list[Scorer[LocalTermPostings]]) -> Scores:
    scores = np.zeros(view.delta.size, np.float32)
    length = view.delta.columns.length
    for scorer in terms:
        postings = scorer.postings
        scores[postings.new] += added(collection, scorer.weight, postings.new_frequency, length[postings.new])
    return scores


class _ConversationLayout:
    """A layout of chunks in which every conversation is one contiguous range of positions.

    The ordinals of the snapshot are such a layout. Conversations that the delta or the mask changes are laid out
    again after its end.
    """

    def __init__(self, view: View, slots: Ints) -> None:
        self._view = view
        self.asked = slots
        size = view.snapshot.size
        conversation = view.take("conversation", slots)
        self.place = slots.copy()
        self.first, self.last = slots.copy(), slots + 1
        touched = contained(conversation, view.touched)
        plain = np.flatnonzero(~touched & (conversation != NO_CONVERSATION))
        self.first[plain], self.last[plain] = view.snapshot.range_of(conversation[plain])
        # Chunks of the delta without a conversation keep their slot, so the new ranges begin after the delta.
        self._base = size + view.delta.size
        stretches: list[Ints] = [NOTHING]
        end = self._base
        for number in distinct(conversation[touched]).tolist():
            members = _members(view, number)
            of_conversation = np.flatnonzero(conversation == number)
            order = np.argsort(members)
            self.place[of_conversation] = (
                order[np.searchsorted(members, slots[of_conversation], sorter=order)] + end
            )
            self.first[of_conversation], self.last[of_conversation] = end, end + len(members)
            stretches.append(members)
            end += len(members)
        self._laid_out = np.concatenate(stretches)

    def slots(self, place: Ints) -> Ints:
        """Return the slots at these positions."""
        slots = place.copy()
        moved = place >= self._base
        slots[moved] = self._laid_out[place[moved] - self._base]
        return slots

    def segment_count(self, place: Ints) -> Ints:
        """Return the number of segments of the chunks at these positions."""
        counts: Ints = self._view.take("segment_count", self.slots(place)).astype(np.int64)
        return counts


def _members(view: View, conversation: int) -> Ints:
    """Return the slots of one conversation in order (at, doc)."""
    cached: Ints | None = view.members.get(conversation)
    if cached is not None:
        return cached
    first, last = (int(edge[0]) for edge in view.snapshot.range_of(np.array([conversation])))
    old = np.arange(first, last, dtype=np.int64)
    old = old[~view.masked[first:last]]
    new = np.flatnonzero(view.delta.columns.conversation == conversation) + view.snapshot.size
    slots = np.concatenate([old, new])
    members: Ints = slots[np.lexsort((view.take("doc", slots), view.take("at", slots)))]
    view.members[conversation] = members
    return members
