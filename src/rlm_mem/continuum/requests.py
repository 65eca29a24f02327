"""What an agent asks for: to forget or replace a memory that a person wrote or confirmed, which a person decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.chunk import Chunk
from rlm_mem.chunk.types import rank
from rlm_mem.continuum.cases import PROPOSED, Case, shorten
from rlm_mem.continuum.schema import stamp
from rlm_mem.store.core.brain_files import case_id_of

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

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


def forget_case(store: ChunkStore, chunk: Chunk, agent: str) -> Case:
    """Return the case of an agent that asks to forget a chunk."""
    return Case(
        id=case_id_of("forget", chunk.id), kind="forget", entry=chunk.id, title=shorten(_line(chunk)), status="open",
        opened_at=stamp(store.clock()),
        question="Shall this be forgotten? Approving moves it to the archive, from which it can be restored. Rejecting "
        "keeps it.", figures={"asked by": agent},
        evidence=[f"{chunk.id}: {chunk.content[:_MOST]}"],
        counter_evidence=[f"it {persons_mark(store, chunk)}"], history=[], chunk_ids=[chunk.id], asked_by=agent,
    )  # fmt: skip


def replace_case(store: ChunkStore, newer: Chunk, older: Chunk, agent: str, why: str | None) -> Case:
    """Return the case of an agent that asks to replace a chunk by another one."""
    reason = f"asked by {agent}{f': {why}' if why else ''}"[:_MOST]
    sides = [beginning(newer), beginning(older)]
    return Case(
        id=case_id_of("replace", f"{newer.id} {older.id}"), kind="replace", entry=newer.id,
        title=f"{shorten(sides[1])} → {shorten(sides[0])}", status="open", opened_at=stamp(store.clock()),
        question=PROPOSED["replace"][0], figures={"confidence": 1.0, "reason": reason},
        evidence=[f"{newer.id} (newer): {sides[0]}", reason],
        counter_evidence=[f"{older.id} (older): {sides[1]}", f"it {persons_mark(store, older)}"], history=[],
        chunk_ids=[newer.id, older.id], sentences=sides, asked_by=agent,
    )  # fmt: skip


def beginning(chunk: Chunk) -> str:
    """Return what a case of an agent that asks to replace a chunk shows of each of the two."""
    return _line(chunk)[:_MOST]


def _line(chunk: Chunk) -> str:
    return " ".join(chunk.content[: 2 * _MOST].split())
