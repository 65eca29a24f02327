"""What an agent asks for: to forget or replace a memory that a person wrote or confirmed, which a person decides.

And whether the chunks are still as such a request, or what a rule proposed, says.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING

from rlm_mem.chunk import Chunk, content_hash
from rlm_mem.chunk.types import rank
from rlm_mem.continuum.cases import PROPOSED, Case, shorten
from rlm_mem.continuum.schema import stamp
from rlm_mem.store.core.brain_files import case_id_of
from rlm_mem.text.statements import statements_in

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.text.analysis import Analyser

_MOST = 400
"""Most characters of a memory in a case."""


def persons_mark(store: ChunkStore, chunk: Chunk) -> str:
    """Return why a chunk is a person's, as words after its id; empty for what agents may forget and replace.

    A person's is what a person wrote or said, what a reviewer confirmed, and what is trusted more than the text of
    agents.
    """
    about = chunk.metadata
    reviewer = about.extra.get("reviewed_by")
    if about.origin == "person":
        return "was written by a person"
    if reviewer:
        return f"was confirmed by {reviewer}"[:100]
    if "tier:ultra-low" in chunk.tags and about.source == "continuum":
        return "is part of the core, as a reviewer decided"
    above = rank(about.trust) > rank(store.trust_levels["agent"])
    return "is trusted more than what agents write" if above else ""


def forget_case(store: ChunkStore, chunk: Chunk, agent: str, revisions: Mapping[str, int] = {}) -> Case:
    """Return the case of an agent that asks to forget a chunk; ``revisions`` as in ``Case``."""
    return Case(
        id=case_id_of("forget", chunk.id), kind="forget", entry=chunk.id, title=shorten(_line(chunk)), status="open",
        opened_at=stamp(store.clock()),
        question="Shall this be forgotten? Approving moves it to the archive, from which it can be restored. Rejecting "
        "keeps it.", figures={"asked by": agent},
        evidence=[f"{chunk.id}: {chunk.content[:_MOST]}"],
        counter_evidence=[f"it {persons_mark(store, chunk)}"], history=[], chunk_ids=[chunk.id], asked_by=agent,
        texts=[content_hash(chunk.content)], revisions=dict(revisions),
    )  # fmt: skip


def replace_case(
    store: ChunkStore,
    newer: Chunk,
    older: Chunk,
    agent: str,
    why: str | None,
    revisions: Mapping[str, int] = {},
) -> Case:
    """Return the case of an agent that asks to replace a chunk by another one; ``revisions`` as in ``Case``."""
    reason = f"asked by {agent}{f': {why}' if why else ''}"[:_MOST]
    sides = [_beginning(newer), _beginning(older)]
    return Case(
        id=case_id_of("replace", f"{newer.id} {older.id}"), kind="replace", entry=newer.id,
        title=f"{shorten(sides[1])} → {shorten(sides[0])}", status="open", opened_at=stamp(store.clock()),
        question=PROPOSED["replace"][0], figures={"confidence": 1.0, "reason": reason},
        evidence=[f"{newer.id} (newer): {sides[0]}", reason],
        counter_evidence=[f"{older.id} (older): {sides[1]}", f"it {persons_mark(store, older)}"], history=[],
        chunk_ids=[newer.id, older.id], sentences=sides, asked_by=agent,
        texts=[content_hash(one.content) for one in (newer, older)], revisions=dict(revisions),
    )  # fmt: skip


def what_changed(
    case: Case, readable: Mapping[str, Chunk], hidden: Collection[str], analyser: Analyser
) -> str:
    """Return why the chunks of a proposal or request leave nothing to decide; empty if they are as it says.

    Args:
        readable: the chunks of the case that can be read, by id.
        hidden: the ids of the chunks in quarantine.
    """
    for chunk_id, sentence in zip_longest(case.chunk_ids, case.sentences, fillvalue=""):
        if chunk_id not in readable:
            return f"{chunk_id} {'is in quarantine' if chunk_id in hidden else 'no longer exists'}"
        chunk = readable[chunk_id]
        if case.asked_by:
            says_so = case.kind == "forget" or _beginning(chunk) == sentence
        else:
            says_so = any(one.text == sentence for one in statements_in(chunk.content, analyser))
        if not says_so:
            return f"{chunk_id} was edited and does not say “{shorten(sentence)}” any more"
    for chunk_id, text in zip(case.chunk_ids, case.texts, strict=False):
        if content_hash(readable[chunk_id].content) != text:
            return f"{chunk_id} was edited after {case.asked_by} had asked"
    for chunk_id, revision in case.revisions.items():
        if (now := readable[chunk_id].revision) != revision:
            return (
                f"{chunk_id} was changed: {case.asked_by} asked for revision {revision}, and it is at {now}"
            )
    by = readable[case.chunk_ids[1]].metadata.superseded_by if case.kind in PROPOSED else None
    return f"{case.chunk_ids[1]} was replaced by {by}" if by is not None else ""


def _beginning(chunk: Chunk) -> str:
    """Return what the case of an agent that asks to replace a chunk shows of each of the two."""
    return _line(chunk)[:_MOST]


def _line(chunk: Chunk) -> str:
    return " ".join(chunk.content[: 2 * _MOST].split())
