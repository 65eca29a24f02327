"""Changes: what was done to the memory day by day, by whom, each with a button that takes it back."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from rlm_mem.dashboard.words import address, day, operation_done

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.dashboard.visits import Visit
    from rlm_mem.results import RecordedChange

_PAGE, _MOST = 50, 800
_NAMED = 3  # most memories of one change that are named


def changes_page(visit: Visit) -> Response:
    """The last changes, newest first."""
    limit = visit.number("limit", _PAGE, 1, _MOST)
    changes = visit.memory.recorded_changes(limit + 1)
    shown = changes[:limit]
    named = list(dict.fromkeys(one for change in shown for one in change.chunk_ids[:_NAMED]))
    chunks = visit.memory.store.get_many(named)
    return visit.answer(
        "changes.html",
        days=[(name, list(made)) for name, made in groupby(shown, key=lambda change: day(change.at))],
        told=_told,
        texts={one: chunk.content for one, chunk in chunks.items()},
        named=_NAMED,
        more=address("/changes", limit=min(_MOST, limit * 4)) if len(changes) > limit < _MOST else "",
        here=address("/changes", limit="" if limit == _PAGE else limit),
        live="memories",
    )


def undo(visit: Visit) -> Response:
    """Take back one change."""
    visit.carry_out("undoChange", {}, change=visit.text("change", 200))
    return visit.go("/changes", "taken-back")


def _told(change: RecordedChange) -> str:
    """What a change did, in words."""
    if change.undoes:
        return "undid an earlier change"
    return ", ".join(dict.fromkeys(map(operation_done, change.ops)))
