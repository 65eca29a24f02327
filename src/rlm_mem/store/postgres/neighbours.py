"""Neighbours of chunks in conversation order, read as a window of rows around each chunk."""

from __future__ import annotations

import numpy as np

from rlm_mem.store.core.arrays import Bools, Ints
from rlm_mem.store.core.lookup import Neighbourhood
from rlm_mem.store.core.selection import (
    MOST,
    NOTHING,
    OPENING,
    changed_at,
    contained,
    distinct,
    union,
    walked,
)
from rlm_mem.store.postgres.values import Rows

#: Positions left between chunks when the rows between them are unknown: more than any search for neighbours spans.
_GAP = MOST + OPENING + 2

# A window of rows on each side of every chunk, in the order (at, doc). The inner LIMITs make the planner scan the
# index from each chunk.
_WINDOWS = """
SELECT a.doc, a.conversation, a.before, n.doc, n.at, n.segment_count FROM (
    SELECT k.doc, k.before, k.after, c.conversation, c.at, c.segment_count
    FROM unnest(%s::int4[], %s::int4[], %s::int4[]) AS k(doc, before, after) CROSS JOIN LATERAL (
        SELECT x.conversation, x.at, x.segment_count FROM rlm_mem.chunks x
        WHERE x.ns = %s AND x.doc = k.doc AND x.status = 0 LIMIT 1
    ) c
) a CROSS JOIN LATERAL (
    (SELECT p.doc, p.at, p.segment_count FROM rlm_mem.chunks p
     WHERE p.ns = %s AND p.conversation = a.conversation AND p.status = 0 AND (p.at, p.doc) < (a.at, a.doc)
     ORDER BY p.at DESC, p.doc DESC LIMIT a.before)
    UNION ALL SELECT a.doc, a.at, a.segment_count
    UNION ALL
    (SELECT s.doc, s.at, s.segment_count FROM rlm_mem.chunks s
     WHERE s.ns = %s AND s.conversation = a.conversation AND s.status = 0 AND (s.at, s.doc) > (a.at, a.doc)
     ORDER BY s.at, s.doc LIMIT a.after)
) n
"""


def around(
    rows: Rows, ns: int, docs: Ints, alone: Ints, near: int, reach: int, usual_size: float
) -> Neighbourhood:
    """See `CandidateSource.around`; `usual_size` is the average number of segments per chunk."""
    asked = union(docs, alone)
    # Windows are wide enough for chunks of usual size; where small chunks are adjacent, wider windows are read.
    steps = min(MOST, 2 + int(2 * reach / max(usual_size, 1.0)))
    hood, enough = _read_windows(rows, ns, asked, docs, near, reach, steps)
    if not enough and steps < MOST:
        hood, _ = _read_windows(rows, ns, asked, docs, near, reach, MOST)
    return hood


def _read_windows(
    rows: Rows, ns: int, asked: Ints, docs: Ints, near: int, reach: int, steps: int
) -> tuple[Neighbourhood, bool]:
    walks = contained(asked, docs)
    # One row more on each side than is needed shows which chunks are adjacent; `OPENING` rows more before each
    # chunk show whether its conversation begins there.
    before = np.where(walks, steps, 0) + OPENING + 1
    after = np.where(walks, steps, 0) + 1
    found = (
        rows(_WINDOWS, (asked.tolist(), before.tolist(), after.tolist(), ns, ns, ns)) if len(asked) else []
    )
    if not found:
        return Neighbourhood(NOTHING, NOTHING, np.zeros(0, np.bool_), NOTHING), True
    line = _WindowLayout(found)
    return walked(line, np.flatnonzero(contained(line.asked, docs)), near, reach, steps)


class _WindowLayout:
    """The rows of all windows (at least one) in one layout (`selection.ConversationLine`); slots are documents."""

    def __init__(self, rows: list[tuple[int, int | None, int, int, float, int]]) -> None:
        count = len(rows)
        anchors, groups, windows, docs, moments, sizes = zip(*rows, strict=True)
        asked, doc, size = np.array(anchors, np.int64), np.array(docs, np.int64), np.array(sizes, np.int64)
        at = np.array(moments, np.float64)
        # A chunk without a conversation gets one of its own, with a negative number.
        group = np.array([-a if g is None else g for g, a in zip(groups, anchors, strict=True)], np.int64)
        limit = np.array(windows, np.int64)

        order = np.lexsort((doc, at, group))
        new = np.ones(count, np.bool_)
        new[1:] = doc[order][1:] != doc[order][:-1]
        # For each row of the windows, the position of its chunk in the layout
        row_of = np.empty(count, np.int64)
        row_of[order] = np.cumsum(new) - 1
        chosen = order[new]
        self._doc, self._size, group = doc[chosen], size[chosen], group[chosen]

        self.asked = distinct(asked)
        number = np.searchsorted(self.asked, asked)
        lowest = np.full(len(self.asked), len(chosen), np.int64)
        highest = np.full(len(self.asked), -1, np.int64)
        np.minimum.at(lowest, number, row_of)
        np.maximum.at(highest, number, row_of)
        asked_rows = np.zeros(len(self.asked), np.int64)
        is_asked = asked == doc
        asked_rows[number[is_asked]] = row_of[is_asked]

        # Within one window chunks are adjacent; between windows there may be other chunks.
        steps = np.zeros(len(chosen) + 1, np.int64)
        np.add.at(steps, lowest, 1)
        np.add.at(steps, highest, -1)
        is_adjacent = np.cumsum(steps)[: len(chosen)] > 0
        self._place = np.concatenate([[0], np.cumsum(np.where(is_adjacent[:-1], 1, _GAP))])

        limits = np.zeros(len(self.asked), np.int64)
        limits[number] = limit
        # Fewer rows before the chunk than requested: its conversation begins in this window
        opens = asked_rows - lowest < limits
        self.place = self._place[asked_rows]
        self.first, self.last = self._edges(group, asked_rows, opens)

    def _edges(self, group: Ints, asked_rows: Ints, opens: Bools) -> tuple[Ints, Ints]:
        """Return where the conversation of each requested chunk begins and ends, as far as that is known."""
        start = changed_at(group)
        stretch = np.searchsorted(start, asked_rows, side="right") - 1
        begins = np.zeros(len(start), np.bool_)
        begins[stretch[opens]] = True
        # A beginning that is not among the rows is placed far enough before them.
        first = self._place[start] - np.where(begins, 0, OPENING + 1)
        end = np.append(start[1:], len(group)) - 1
        last = self._place[end] + 1
        edges: tuple[Ints, Ints] = first[stretch], last[stretch]
        return edges

    def slots(self, place: Ints) -> Ints:
        """Return the documents at these positions."""
        return self._doc[self._at(place)]

    def segment_count(self, place: Ints) -> Ints:
        """Return the number of segments of the chunks at these positions."""
        return self._size[self._at(place)]

    def _at(self, place: Ints) -> Ints:
        at: Ints = np.searchsorted(self._place, place)
        return at
