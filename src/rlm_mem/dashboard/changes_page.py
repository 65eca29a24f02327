"""The page of changes: what was changed each day and by whom, with a button to undo each change."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from starlette.responses import Response

from rlm_mem.dashboard.requests import PageRequest, local_address
from rlm_mem.dashboard.words import address, day, operation_done
from rlm_mem.results import RecordedChange

_PAGE, _MOST = 50, 800
_NAMED = 3  # number of memories named for one change


def changes_page(request: PageRequest) -> Response:
    """The last changes, newest first."""
    limit = request.number("limit", _PAGE, 1, _MOST)
    changes = request.memory.recorded_changes(limit + 1)
    shown = changes[:limit]
    named = list(dict.fromkeys(one for change in shown for one in change.chunk_ids[:_NAMED]))
    store = request.memory.store
    texts = {one: chunk.content for one, chunk in store.get_many(named).items()}
    for one in set(named) - set(texts):
        archived = store.get_archived(one)
        if archived is not None and archived.metadata.trust != "quarantined":
            texts[one] = archived.content
    return request.answer(
        "changes.html",
        days=[(name, list(made)) for name, made in groupby(shown, key=lambda change: day(change.at))],
        told=_description,
        replacement=_replacement,
        quarantined=store.quarantined_ids(),
        texts=texts,
        named=_NAMED,
        more=address("/changes", limit=min(_MOST, limit * 4)) if len(changes) > limit < _MOST else "",
        here=address("/changes", limit="" if limit == _PAGE else limit),
        live="memories",
    )


def undo(request: PageRequest) -> Response:
    """Undo one change, and show the page from which that was asked."""
    request.carry_out("undoChange", {}, change=request.text("change", 200))
    return request.go(local_address(request.text("back", 8_000)) or "/changes", "taken-back")


def _description(change: RecordedChange) -> str:
    """Describe a change in words."""
    if change.undoes:
        return "undid an earlier change"
    if _replacement(change):
        return "replaced"
    if change.files and not change.chunk_ids and all(name.startswith("persona/") for name in change.files):
        return "persona changed"
    # "edit" is a change of a file: beside changes of memories, their bookkeeping, such as a case of the review queue.
    ops = [op for op in change.ops if op != "edit"] or change.ops
    return ", ".join(dict.fromkeys(map(operation_done, ops)))


def _replacement(change: RecordedChange) -> Sequence[str]:
    """The replaced memory and the one that replaced it, if that is what a change did; else nothing."""
    if change.undoes or "supersede" not in change.ops or len(change.chunk_ids) != 2:
        return ()
    return change.chunk_ids if change.ops[0] == "supersede" else change.chunk_ids[::-1]
