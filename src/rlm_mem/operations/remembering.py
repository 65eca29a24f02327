"""Remembering over HTTP and for agents: a text of any length, what it replaces, and the memories nearest to it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from rlm_mem.chunk import Chunk
from rlm_mem.chunk.types import origin_mark
from rlm_mem.operations.chunks import check_expiry, check_extra
from rlm_mem.operations.consent import AskedPerson, ask_to_replace, persons, refuse_persons
from rlm_mem.operations.operation import Context, Operation, Tool
from rlm_mem.operations.shapes import fill
from rlm_mem.operations.types import (
    CONVERSATION_NAMES,
    TAG_NAMES,
    TYPE_NAMES,
    ChunkId,
    ChunkType,
    Confidence,
    Content,
    Extra,
    Line,
    OriginName,
    Request,
    Secrets,
    Tag,
    Tags,
    Time,
    TrustName,
    TtlText,
    about,
)

if TYPE_CHECKING:
    from rlm_mem.ingest.remember import RememberResult

_GROUP = "chunks"
_EARLIER = 3
"""Most earlier memories that the tool for agents names."""
ReplacedIds = Annotated[list[ChunkId], Meta(min_length=1, max_length=20)]


class RememberArguments(Request):
    """A text to remember, with what an agent may state about it."""

    text: Annotated[Content, about("What to remember, self-contained: who, what, when. Any length.")]
    conversation_id: Annotated[Line, about("Conversation or project it belongs to.")] | None = None
    tags: Annotated[Tags | Tag, about("A few words for finding it.")] | None = None
    type: (
        Annotated[
            ChunkType,
            about("fact, preference, pattern, note, decision or a registered type. Default: detected."),
        ]
        | None
    ) = None
    confidence: Annotated[Confidence, about("Confidence, 0 to 1.")] = 0.7
    occurred_at: Annotated[Time, about("When it was said or happened, ISO 8601. Default: now.")] | None = None
    secrets: Secrets | None = None
    replaces: (
        Annotated[
            ReplacedIds | ChunkId,
            about("Ids of outdated memories that this one replaces. They are kept, marked and ranked lower."),
        ]
        | None
    ) = None
    origin: (
        Annotated[
            Literal["agent", "tool", "import", "web"],
            about(
                "Source of text that neither you nor the person wrote: tool (its output), web (a "
                "page), import (a file). It is then marked as untrusted."
            ),
        ]
        | None
    ) = None
    ttl: TtlText | None = None
    again: Annotated[bool, about("Store it even if nearly the same text is stored already.")] = False


class RememberRequest(RememberArguments):
    """Text of any length: it is split into chunks, typed, linked, and stored once."""

    origin: OriginName | None = None  # type: ignore[assignment]
    trust: TrustName | None = None
    expires: Annotated[Time, about("When it expires; instead of ttl.")] | None = None
    source: Line = "interaction"
    extra: Extra | None = None
    provenance: Extra | None = None
    earlier: Annotated[int, about("Maximum of `earlier` memories in the response.", ge=0, le=10)] = 0


class EarlierMemory(Struct, omit_defaults=True):
    """An earlier memory that the new one may make out of date, with the part nearest to it. `namespace` is given only
    if it is the one shared by all projects; such a memory is replaced there, or after a move into the project.
    """

    id: str
    at: str
    text: str
    namespace: str | None = None


class RememberResponse(Struct):
    """What was stored; ``duplicates`` were already stored, ``replaced`` were replaced by it, and ``proposed`` are cases
    of the review queue: what the text may replace or contradict. ``secrets`` counts by rule what looks like a key or
    password; ``secrets_hidden`` of them are stored as ``[redacted:RULE]``, the others as they are. ``quarantined`` are
    ``duplicates`` that stay hidden until a person releases them. ``note`` is a sentence about secrets and quarantine.
    ``earlier``, of a new text of one chunk, are the valid earlier memories nearest to it.
    """

    chunk_ids: list[str]
    chunks_created: int
    total_tokens: int
    duplicates: list[str]
    quarantined: list[str]
    replaced: list[str]
    proposed: list[str]
    secrets: dict[str, int]
    secrets_hidden: int
    note: str | None
    earlier: list[EarlierMemory] | UnsetType = UNSET


def remember(context: Context, request: RememberRequest | RememberArguments) -> RememberResponse:
    """Remember a text; batches use ``to_remember`` instead."""
    theirs = persons(context, _replaced(request))
    given = to_remember(context, request, asked=theirs)
    with context.memory.batch() if theirs else nullcontext():  # stored only together with what it asks for
        made = context.memory.remember(
            **given,
            progress=lambda done, total: context.progress(done, total, f"stored {done} of {total} chunks"),
        )
        older = [chunk for one, chunk in theirs.items() if one not in made.chunk_ids]
        asked = ask_to_replace(context, made.chunk_ids[0], older) if older else AskedPerson([], "")
    most = request.earlier if isinstance(request, RememberRequest) else 0 if request.replaces else _EARLIER
    return fill(
        RememberResponse,
        made,
        chunks_created=made.created,
        total_tokens=made.tokens,
        secrets=dict(made.secrets.rules),
        secrets_hidden=made.secrets.count if made.secrets.hidden else 0,
        proposed=list(dict.fromkeys([*made.proposed, *asked.proposed])),
        note=". ".join(
            filter(None, (asked.note, made.quarantine_note, str(made.secrets) if made.secrets else ""))
        )
        or None,
        earlier=_earlier(context, made, most) or UNSET,
    )


def _earlier(context: Context, made: RememberResult, most: int) -> list[EarlierMemory]:
    """Return the earlier memories nearest to a new text of one chunk, which it may make out of date."""
    if not most or not made.is_one_new_chunk:
        return []
    memory = context.opened.reading.memory
    found = memory.earlier(made.chunk_ids[0], most)
    places = memory.store.elsewhere([hit.chunk_id for hit in found])
    marked = ((hit, origin_mark(hit.origin, hit.trust)) for hit in found)
    return [
        EarlierMemory(hit.chunk_id, hit.at[:10], mark + hit.snippet, places.get(hit.chunk_id))
        for hit, mark in marked
    ]


def _replaced(request: RememberRequest | RememberArguments) -> list[str]:
    """Return the ids of the chunks that a text is to replace."""
    return [request.replaces] if isinstance(request.replaces, str) else request.replaces or []


def to_remember(
    context: Context,
    request: RememberRequest | RememberArguments,
    *,
    asked: Mapping[str, Chunk] | None = None,
) -> dict[str, Any]:
    """Return the request as arguments of ``Memory.remember``, or as an item of ``remember_many``.

    Args:
        asked: chunks that the text replaces only if a person agrees, by id; None: such chunks are refused.
    """
    given = structs.asdict(request)
    if asked is None:
        refuse_persons(context, _replaced(request), "replace", "ask for it in a request of its own")
    elif asked:
        given["replaces"] = [one for one in _replaced(request) if one not in asked] or None
    given.pop("earlier", None)
    extra, given["chunk_type"] = given.pop("extra", None), given.pop("type")
    check_extra(extra, {})
    if isinstance(request, RememberRequest):
        check_expiry(context, request.expires, request.ttl)
    else:
        given["origin"] = request.origin or "agent"
    context.check_owned(_replaced(request))
    return {**given, "metadata": {"extra": extra} if extra else None}


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST", "/remember", "remember", "Remember text of any length, in one transaction.", _GROUP, run=remember,
        request=RememberRequest, writes=True,
        tool=Tool(
            name="remember",
            title="Remember",
            description="Store something worth knowing later: a preference, a decision with its reason, a "
            "fact about people or the project. To correct or update a memory, store the new text "
            "with `replaces`. If the new text makes one of the memories in `earlier` of the result out of date, "
            "call this again with the same text and its id in `replaces`; one with a `namespace` is left to a person. "
            "The same text in the same conversation is stored once. Leave out passwords and keys.",
            request=RememberArguments,
            aliases={
                **dict.fromkeys(("content", "memory", "note", "value", "observation"), "text"),
                **dict.fromkeys(("at", "when", "date", "timestamp", "time"), "occurred_at"),
                **dict.fromkeys(("supersedes", "replace", "corrects", "updates"), "replaces"),
                **dict.fromkeys(("expires_in", "time_to_live"), "ttl"),
                **CONVERSATION_NAMES,
                **TYPE_NAMES,
                **TAG_NAMES,
            },
        ),
    ),
)  # fmt: skip
