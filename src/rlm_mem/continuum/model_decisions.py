"""Decisions of a model in its own name: about proposals in the review queue, and about what stored memories replace.

Decisions of which it is certain are carried out and can be undone; nothing else changes (docs/spec/links.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from rlm_mem.continuum.cases import PROPOSED
from rlm_mem.errors import ConflictError, InvalidMemory, NotFoundError
from rlm_mem.proposals.finding import is_trusted_as_far
from rlm_mem.proposals.judging import check_judge, compare_nearest, judgement_of

if TYPE_CHECKING:
    from rlm_mem.continuum.cases import Case
    from rlm_mem.continuum.changes import Change
    from rlm_mem.ingest.remember import RememberResult
    from rlm_mem.models.base import LLM
    from rlm_mem.store.core.chunk_store import ChunkStore

_logger = logging.getLogger("rlm_mem.continuum")


class Queue(Protocol):
    """What is used of the review queue (:class:`rlm_mem.continuum.review.ReviewQueue`)."""

    def cases(self, status: str | None = "open") -> list[Case]: ...

    def case(self, case_id: str) -> Case: ...

    def approve(self, case_id: str, *, reviewer: str, reason: str) -> Change: ...

    def reject(self, case_id: str, *, reviewer: str, reason: str) -> Change: ...


def decide_proposals(
    store: ChunkStore,
    review: Queue,
    llm: LLM,
    limit: int,
    *,
    only: Sequence[str] | None = None,
    on_step: Callable[[Change], None] | None = None,
) -> list[Change]:
    """Let a model decide open proposals; see :meth:`rlm_mem.continuum.review.ReviewQueue.judge`."""
    check_judge(llm, limit)
    decided: list[Change] = []
    calls = 0
    for case in review.cases():
        if (
            calls >= limit
            or case.kind not in PROPOSED
            or case.asked_by
            or (only is not None and case.id not in only)
        ):
            continue
        newer, older = map(store.get_many(case.chunk_ids, track=False).get, case.chunk_ids)
        if newer is None or older is None or not is_trusted_as_far(newer, older):
            continue
        calls += 1
        said = judgement_of(llm, *case.sentences, timeout=store.config.llm.timeout_seconds)
        if said.word not in ("both", PROPOSED[case.kind][1]):
            continue
        decide = review.reject if said.word == "both" else review.approve
        # It may have been decided or changed while the model was asked.
        with suppress(ConflictError, NotFoundError):
            made = decide(case.id, reviewer=f"model {llm.name}", reason=said.reason or said.word)
            decided.append(made)
            if on_step is not None:
                on_step(made)
    return decided


def decide_remembered(
    store: ChunkStore, review: Queue, made: RememberResult, llm: Callable[[], LLM]
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
            decide_proposals(store, review, model, limit, only=made.proposed)
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
