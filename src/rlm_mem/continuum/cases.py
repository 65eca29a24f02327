"""Cases of the review queue: one question to a reviewer each, with evidence, decisions, and the file it is kept in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from rlm_mem.chunk import Chunk
from rlm_mem.continuum.rules import low_to_ultra
from rlm_mem.errors import InvalidMemory
from rlm_mem.merging import json_fault
from rlm_mem.store.core.brain_files import case_id_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlm_mem.continuum.files import TieredMemory
    from rlm_mem.proposals.finding import Proposal
    from rlm_mem.store.core.records import LinkedChunk

FOLDER = "system/review"
"""Of the brain files of a namespace, the folder with the cases."""
MAX_TITLE = 300
DecisionWord = Literal["approved", "deferred", "rejected"]
CaseStatus = Literal["open", "deferred", "approved", "rejected", "obsolete"]
CaseFilter = Literal[CaseStatus, "all"]
CLOSED = ("approved", "rejected", "obsolete")
"""States that need no further decision."""
PROPOSED = {
    "replace": (
        "Does the newer memory replace the older one? Approving marks the older one as replaced: it stays readable, "
        "and searches rank it below the newer one. Rejecting keeps both valid.",
        "replaces",
    ),
    "contradict": (
        "Do the two memories contradict each other? Approving notes it, and both stay. Rejecting keeps both valid.",
        "contradicts",
    ),
}
"""By kind of a proposal: its question, and the word with which a model approves it."""


ABOUT = {
    "contradict": "may contradict an earlier memory",
    "replace": "may replace an earlier memory",
    "forget": "an agent asks to forget it",
    "retain": "may no longer be valid",
    "quarantine": "in quarantine: hidden from searches until it is released",
    "capture": "captured from a session",
    "promote": "proposed for the core",
}
"""By kind: what a case is about. Those that wait longest at the cost of right answers come first: of two statements one
may be wrong, a learning fails, a memory is hidden; what was captured or proved itself is in use already."""
_RANKS = {kind: rank for rank, kind in enumerate(ABOUT)}


class Decision(msgspec.Struct, kw_only=True):
    """A reviewer's decision on a case, with the reason.

    Attributes:
        archived: memories of a session that the decision archived.
    """

    reviewer: str
    decision: DecisionWord
    reason: str
    at: str
    archived: list[str] = []


class Case(msgspec.Struct, kw_only=True):
    """A question for a reviewer, with evidence and counter-evidence.

    Attributes:
        kind: ``promote`` (low to ultra-low), ``retain`` (does this low memory still hold?), ``capture`` (shall the
            memories of this session be kept?), ``quarantine`` (shall this chunk be released?), ``replace`` (does the
            newer memory replace the older one?), ``contradict`` (do the two contradict each other?) or ``forget``
            (shall this chunk be archived, as an agent asks?).
        entry: the memory; for a capture the conversation, for a quarantine or ``forget`` the chunk, for a proposal the
            newer chunk.
        chunk_ids: for a capture, a quarantine or ``forget``, the chunks in question; for a proposal, the newer and the
            older one.
        status: ``obsolete`` (never stored) while there is nothing to decide, for the reason ``obsolete_because``.
        evidence, counter_evidence: for and against the memory.
        defer_until: time at which a deferred case is open again.
        usage_at: number of uses of the memory at the last decision.
        sentences: for a proposal, the statements of the newer and the older chunk that it compares; where an agent asks
            for it, the beginnings of both.
        asked_by: the agent that asks for it; empty if a rule found it.
        texts: for what an agent asks, the hash of the text that each of ``chunk_ids`` then had.
        revisions: the revisions, by id, on which an agent made its request conditional.
    """

    id: str
    kind: Literal["promote", "retain", "capture", "quarantine", "replace", "contradict", "forget"]
    entry: str
    title: str
    status: CaseStatus
    opened_at: str
    question: str
    figures: dict[str, Any]
    evidence: list[str]
    counter_evidence: list[str]
    history: list[str]
    decisions: list[Decision] = []
    defer_until: str | None = None
    usage_at: int = 0
    chunk_ids: list[str] = []
    sentences: list[str] = []
    asked_by: str = ""
    texts: list[str] = []
    revisions: dict[str, int] = {}
    obsolete_because: str | None = None


def order_of(case: Case) -> tuple[int, str, str]:
    """The sort key of a case: the most important kind first, the oldest of a kind first."""
    return _RANKS[case.kind], case.opened_at, case.id


def case_file(case_id: str) -> str:
    """Name of the file of a case."""
    return f"{FOLDER}/{case_id}.json"


def shorten(text: str) -> str:
    """The first 120 characters of a text."""
    return text if len(text) <= 120 else f"{text[:119]}…"


def quarantine_case(chunk: Chunk) -> Case:
    """A case for a chunk in quarantine; it is derived from the chunk, not stored."""
    about = chunk.metadata
    stored = about.extra.get("quarantine")
    details: dict[str, Any] = stored if isinstance(stored, dict) else {}
    reason = str(details.get("reason") or "no reason was given")
    return Case(
        id=case_id_of("quarantine", chunk.id), kind="quarantine", entry=chunk.id,
        title=" ".join(chunk.content[:300].split())[:100], status="open",
        opened_at=str(details.get("at") or about.modified_at),
        question="Shall this be released from quarantine? Rejecting moves it to the archive.",
        figures={"origin": about.origin, "trust before": str(details.get("trust") or "not known")},
        evidence=[f"{chunk.id}: {chunk.content[:400]}"], counter_evidence=[reason[:1000]], history=[],
        chunk_ids=[chunk.id],
    )  # fmt: skip


def proposed_case(found: Proposal, at: str) -> Case:
    """A case for what a rule found that a newer chunk replaces or contradicts."""
    return Case(
        id=case_id_of(found.kind, f"{found.newer_id} {found.older_id}"), entry=found.newer_id,
        kind="replace" if found.kind == "replace" else "contradict",
        title=f"{shorten(found.older)} → {shorten(found.newer)}", status="open", opened_at=at,
        question=PROPOSED[found.kind][0], figures={"confidence": found.confidence, "reason": found.reason},
        evidence=[f"{found.newer_id} (newer): {found.newer}", found.reason],
        counter_evidence=[f"{found.older_id} (older): {found.older}"],
        history=[], chunk_ids=[found.newer_id, found.older_id], sentences=[found.newer, found.older],
    )  # fmt: skip


def tier_case(
    kind: Literal["promote", "retain"], entry: TieredMemory, why: str, against: Sequence[LinkedChunk], at: str
) -> Case:
    """A case on the tier of a memory; ``against``: the chunks that contradict it."""
    meta = entry.meta
    checks = [(check.met, f"{check.rule.replace('_', ' ')}: {check.detail}") for check in low_to_ultra(meta)]
    uses = [(context, uses, good) for context, (uses, good) in meta.contexts.items()]
    unknown = "no reason given"
    return Case(
        id=case_id_of(kind, entry.key), kind=kind, entry=entry.key, title=entry.title[:MAX_TITLE], status="open",
        opened_at=at,
        question="Shall this become part of the core, kept for good?"
        if kind == "promote"
        else f"Does this still hold? {why}",
        figures={
            "confidence_score": meta.confidence_score, "usage_count": meta.usage_count,
            "success_rate": meta.rate, "validation_count": meta.validation_count,
            "projects": meta.projects, "access_count": meta.access_count,
        },
        evidence=[
            *(line for met, line in checks if met),
            *(f"{context}: {good} of {count} uses went well" for context, count, good in uses if good),
            *(f"made from {source}" for source in meta.sources),
        ],
        counter_evidence=[
            *(line for met, line in checks if not met),
            *(f"{where}: {count - good} of {count} uses failed" for where, count, good in uses if good < count),
            *(f"{one.get('at', '')}: {one.get('error') or f'failed, {unknown}'}" for one in meta.failures),
            *(f"{link.chunk_id} contradicts it: {link.reasoning or unknown}" for link in against),
        ],
        history=[line for line in (meta.consolidation_log or "").splitlines() if line],
    )  # fmt: skip


def encode(case: Case) -> str:
    """The content of the file of a case."""
    return msgspec.json.format(msgspec.json.encode(case), indent=2).decode("utf-8") + "\n"


def decode(data: bytes, name: str) -> Case:
    """Read the file of a case; raises InvalidMemory if it is none."""
    try:
        case = msgspec.json.decode(data, type=Case)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        is_json = isinstance(error, msgspec.ValidationError)
        raise InvalidMemory(f"{name}: {error if is_json else json_fault(data, error)}") from None
    if case.kind in PROPOSED:
        if not case.sentences:  # earlier versions wrote the statements only as evidence
            newer, older = case.evidence[:1], case.counter_evidence[:1]
            sides = zip(case.chunk_ids, ("newer", "older"), newer + older, strict=False)
            case.sentences = [line.removeprefix(f"{one} ({side}): ") for one, side, line in sides]
        if len(case.chunk_ids) != 2 or len(case.sentences) != 2:
            raise InvalidMemory(f"{name}: a proposal names two chunks, and what each of them says")
    if not case.revisions.keys() <= set(case.chunk_ids):
        raise InvalidMemory(f"{name}: it has the revision of a chunk that it does not name")
    return case
