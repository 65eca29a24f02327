"""Decisions of a model in its own name about what a remembered text replaces.

Decisions of which it is certain are carried out and can be undone; nothing else changes (docs/spec/links.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from rlm_mem.errors import InvalidMemory, NotFoundError
from rlm_mem.proposals.judging import compare_nearest

if TYPE_CHECKING:
    from rlm_mem.continuum.cases import Case
    from rlm_mem.continuum.review import ReviewQueue
    from rlm_mem.ingest.remember import RememberResult
    from rlm_mem.models.base import LLM
    from rlm_mem.store.core.chunk_store import ChunkStore

_logger = logging.getLogger("rlm_mem.continuum")


def decide_remembered(
    store: ChunkStore, review: ReviewQueue, made: RememberResult, llm: Callable[[], LLM]
) -> RememberResult:
    """The result of remembering, after the configured model decided what the text replaces.

    It decides up to ``updates.judge`` of the proposals, and compares a new text of one chunk with up to
    ``updates.nearest`` of the nearest earlier ones. Called after the transaction. If the model fails, what is left
    stays as it is, and a warning is logged.

    Args:
        llm: opens the model; called only if there is something to decide.
    """
    settings = store.config.updates
    limit = settings.judge if made.proposed else 0
    nearest = settings.nearest if made.is_one_new_chunk else 0
    if not (limit or nearest) or store.backend.in_transaction:
        return made
    replaced = list(made.replaced)
    try:
        model = llm()
        if model.name == "offline":
            return made
        if limit:
            review.judge(model, limit, only=made.proposed)
        newer = store.get_chunk(made.chunk_ids[0], track=False) if nearest else None
        if newer is not None:
            for one in compare_nearest(store, model, newer, nearest):
                if one.word == "replaces":
                    replaced.append(one.older_id)
    except Exception as error:  # noqa: BLE001 - a callable may raise anything, and the text is stored
        _logger.warning("the model could not judge what the text replaces: %s", error)
    asked: list[Case] = []
    for case_id in made.proposed:
        with suppress(InvalidMemory, NotFoundError):  # damaged or removed meanwhile
            asked.append(review.case(case_id))
    approved = [case for case in asked if case.kind == "replace" and case.status == "approved"]
    return replace(
        made,
        replaced=[*replaced, *(case.chunk_ids[1] for case in approved)],
        proposed=[case.id for case in asked if case.status == "open"],
    )
