"""Tools around the memories: import, consolidate, review and its decisions, persona."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

from rlm_mem.mcp.arguments import Arguments
from rlm_mem.mcp.fields import MaybeText, Text
from rlm_mem.mcp.tool import Tool
from rlm_mem.operations.personas import persona_of
from rlm_mem.operations.uploads import FileName, Imported, import_bytes

if TYPE_CHECKING:
    from rlm_mem.mcp.service import Call

__all__ = ["TOOLS"]

_LISTED = 50


class Step(Struct):
    """What consolidation did with one memory, and why."""

    key: str
    to: str | None
    reason: str


class Consolidated(Struct):
    """What was, or with `dry_run` would be, promoted, merged, and put before a reviewer."""

    dry_run: bool
    considered: int
    promoted: list[Step]
    merged: list[Step]
    queued: list[Step]
    problems: list[str]


class ReviewCase(Struct):
    """A question to a reviewer, with what speaks for and against."""

    id: str
    kind: str
    entry: str
    title: str
    status: str
    opened_at: str
    question: str
    evidence: list[str]
    counter_evidence: list[str]


class ReviewCases(Struct):
    """Cases, the oldest first."""

    cases: list[ReviewCase]


class PersonaState(Struct):
    """How to speak: the mode, the sliders, what the message changed, and the system prompt that follows."""

    mode: str
    sliders: dict[str, int]
    changed: list[str]
    prompt: str


class Decided(Struct):
    """The case after the decision, and the memory that it moved, if it moved one."""

    id: str
    status: str
    entry: str
    tier: str | None
    transition: str


class ImportArguments(Arguments):
    """See the tool."""

    content: Annotated[Text, Meta(description="The content of the file, as text.")]
    name: FileName = "notes.md"
    format: Annotated[
        Literal[
            "chunk-markdown",
            "chunk-jsonl",
            "chunk-json",
            "layered-jsonl",
            "meridian",
            "candidates",
            "chatgpt",
            "claude",
            "claude-code",
            "messages-json",
            "messages-jsonl",
            "notes",
        ]
        | None,
        Meta(description="What it is; else it is detected."),
    ] = None
    dry_run: Annotated[bool, Meta(description="Only say what would happen.")] = False


class DecideArguments(Arguments):
    """See the tool."""

    case_id: Annotated[
        str, Meta(min_length=1, max_length=100, description="Id of the case, as review lists it.")
    ]
    decision: Annotated[
        Literal["approve", "defer", "reject"],
        Meta(
            description="approve: make it part of the core, or confirm that it holds; defer: ask again later."
        ),
    ]
    reviewer: Annotated[
        str, Meta(min_length=1, max_length=200, description="Name of the person who decided; never your own.")
    ]
    reason: Annotated[str, Meta(min_length=1, max_length=2000, description="Why, in the person's words.")]
    days: Annotated[int, Meta(ge=1, le=3650, description="With defer: after how many days.")] = 30


class ConsolidateArguments(Arguments):
    """See the tool."""

    dry_run: Annotated[bool, Meta(description="Only say what would be done.")] = False


class ReviewArguments(Arguments):
    """See the tool."""

    status: Annotated[
        Literal["open", "deferred", "approved", "rejected", "all"], Meta(description="Which cases.")
    ] = "open"


class PersonaArguments(Arguments):
    """See the tool."""

    message: Annotated[
        MaybeText,
        Meta(description="A chat command that changes it, for example a mode; else it is only shown."),
    ] = None


def _steps(given: list[dict[str, str]]) -> list[Step]:
    return [Step(one["key"], one.get("to"), one["reason"]) for one in given[:_LISTED]]


def _consolidate(call: Call, given: ConsolidateArguments) -> Consolidated:
    report = call.memory.continuum.consolidate(
        dry_run=given.dry_run,
        progress=lambda done, total: call.progress(done, total, f"considered {done} of {total} memories"),
    )
    return Consolidated(
        dry_run=report.dry_run,
        considered=report.considered,
        promoted=_steps(report.promoted),
        merged=_steps(report.merged),
        queued=_steps(report.queued),
        problems=[str(problem) for problem in report.problems[:_LISTED]],
    )


def _review(call: Call, given: ReviewArguments) -> ReviewCases:
    cases = call.memory.continuum.review.cases(None if given.status == "all" else given.status)
    return ReviewCases(
        [
            ReviewCase(
                id=case.id,
                kind=case.kind,
                entry=case.entry,
                title=case.title,
                status=case.status,
                opened_at=case.opened_at,
                question=case.question,
                evidence=list(case.evidence),
                counter_evidence=list(case.counter_evidence),
            )
            for case in cases[:_LISTED]
        ]
    )


def _decide(call: Call, given: DecideArguments) -> Decided:
    review = call.memory.continuum.review
    who = {"reviewer": given.reviewer, "reason": given.reason}
    if given.decision == "approve":
        change = review.approve(given.case_id, **who)
    elif given.decision == "reject":
        change = review.reject(given.case_id, **who)
    else:
        change = review.defer(given.case_id, **who, days=given.days)
    case = review.case(given.case_id)
    return Decided(case.id, case.status, case.entry, change.tier_to, change.id)


def _import(call: Call, given: ImportArguments) -> Imported:
    return import_bytes(
        call.memory,
        given.name,
        given.content.encode("utf-8", "replace"),
        format=given.format,
        dry_run=given.dry_run,
        progress=lambda done, total: call.progress(done, total, f"read {done} of {total} bytes"),
    )


def _persona(call: Call, given: PersonaArguments) -> PersonaState:
    persona = persona_of(call.memory)
    done = persona.say(given.message) if given.message else []
    return PersonaState(
        mode=persona.mode,
        sliders=persona.sliders,
        changed=[one.kind for one in done],
        prompt=persona.prompt(),
    )


TOOLS: tuple[Tool, ...] = (
    Tool(
        name="import",
        title="Import memories",
        description="Store what a file holds: notes in Markdown, a chat export, messages in JSON, an export of this "
        "memory. Each thing is stored once, however often it is imported. For a single fact use `remember`.",
        takes=ImportArguments,
        gives=Imported,
        run=_import,
        read_only=False,
        aliases={
            **dict.fromkeys(("text", "data", "file", "document"), "content"),
            **dict.fromkeys(("filename", "file_name", "title"), "name"),
            **dict.fromkeys(("preview", "dryRun"), "dry_run"),
        },
        default=False,
    ),
    Tool(
        name="consolidate",
        title="Consolidate memories",
        description="Promote tiered memories that have proved themselves, merge what says the same, and put what is "
        "to become permanent before a person. Safe to repeat.",
        takes=ConsolidateArguments,
        gives=Consolidated,
        run=_consolidate,
        read_only=False,
        aliases={"dryRun": "dry_run", "preview": "dry_run"},
        default=False,
    ),
    Tool(
        name="review",
        title="Look at the review queue",
        description="List memories that wait for a person's decision, with the evidence. Show them to the person; "
        "`review_decide` writes down what they decide.",
        takes=ReviewArguments,
        gives=ReviewCases,
        run=_review,
        read_only=True,
        aliases={"state": "status"},
        default=False,
    ),
    Tool(
        name="review_decide",
        title="Write down a reviewer's decision",
        description="Approve, defer or reject a case of the review queue in the name of the person who decided. Ask "
        "them first, show them the evidence, and give their name and reason: a decision of your own is refused.",
        takes=DecideArguments,
        gives=Decided,
        run=_decide,
        read_only=False,
        destructive=True,
        idempotent=False,
        aliases={
            **dict.fromkeys(("id", "case"), "case_id"),
            **dict.fromkeys(("action", "verdict"), "decision"),
            **dict.fromkeys(("name", "by", "person"), "reviewer"),
            "why": "reason",
        },
        default=False,
    ),
    Tool(
        name="persona",
        title="Persona",
        description="The persona's mode, sliders and system prompt; with a message that is a command, after it was "
        "carried out.",
        takes=PersonaArguments,
        gives=PersonaState,
        run=_persona,
        read_only=False,
        aliases={"text": "message", "command": "message"},
        default=False,
    ),
)
