"""Tools on memories themselves: remember, search, get, forget, link, status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from rlm_mem.chunk import STATED_LINK_TYPES
from rlm_mem.errors import RlmMemError
from rlm_mem.mcp.arguments import Arguments
from rlm_mem.mcp.fields import (
    ChunkId,
    ChunkIds,
    Confidence,
    Conversation,
    MaybeText,
    Secrets,
    Tags,
    Text,
    Time,
    TypeName,
)
from rlm_mem.mcp.tool import Tool

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.mcp.service import Call

__all__ = ["TOOLS", "Memory", "memory_of"]

_MAX_CONTENT = 20_000
_STATED = ", ".join(STATED_LINK_TYPES)


# --- what comes back ------------------------------------------------------------------------------------


class Remembered(Struct):
    """What was stored; `duplicates` were there already, word for word. `secrets` counts by rule what looks like a
    key or password, `secrets_hidden` how many of them are stored as [redacted:RULE]; the others stand in clear."""

    chunk_ids: list[str]
    chunks_created: int
    total_tokens: int
    duplicates: list[str]
    secrets: dict[str, int]
    secrets_hidden: int
    note: str | None


class SearchHit(Struct):
    """One hit: the part that matched, and of which memory."""

    id: str
    score: float
    snippet: str
    at: str
    type: str
    tags: list[str]
    conversation_id: str | None
    author: str | None


class Found(Struct):
    """Hits, best first."""

    hits: list[SearchHit]


class MemoryLink(Struct):
    """A link of a memory with another one; `direction` is out or in."""

    id: str
    type: str
    strength: float
    direction: str
    reasoning: str | None


class Memory(Struct):
    """One memory; `truncated` when its content is longer than what stands here. `note` tells of secrets in a change."""

    id: str
    content: str
    truncated: bool
    type: str
    tags: list[str]
    at: str
    created_at: str
    conversation_id: str | None
    confidence: float
    revision: int
    valid_to: str | None
    superseded_by: str | None
    links: list[MemoryLink]
    note: str | None = None


class Memories(Struct):
    """The memories that are there, and the ids for which there is none."""

    memories: list[Memory]
    missing: list[str]


class Forgotten(Struct):
    """Ids that were archived, and ids for which there was nothing."""

    forgotten: list[str]
    missing: list[str]


class Linked(Struct):
    """The link as it stands now."""

    source_id: str
    target_id: str
    type: str
    strength: float


class TagCount(Struct):
    """A tag and how many memories carry it."""

    tag: str
    count: int


class Status(Struct):
    """How much is remembered here, and how questions are answered."""

    namespace: str
    version: str
    memories: int
    archived: int
    tokens: int
    conversations: int
    links: int
    first_at: str | None
    last_at: str | None
    by_type: dict[str, int]
    tags: list[TagCount]
    model: str
    read_only: bool
    open_recalls: int


# --- what is taken --------------------------------------------------------------------------------------


class RememberArguments(Arguments):
    """See the tool."""

    text: Annotated[Text, Meta(description="What to remember, self-contained: who, what, when. Any length.")]
    conversation_id: Annotated[Conversation, Meta(description="Conversation or project it belongs to.")] = (
        None
    )
    tags: Annotated[Tags, Meta(description="A few words to find it by.")] = None
    type: Annotated[
        TypeName, Meta(description="fact, preference, pattern, note or decision; else it is detected.")
    ] = None
    confidence: Annotated[Confidence, Meta(description="How sure it is, 0 to 1.")] = 0.7
    occurred_at: Annotated[Time, Meta(description="When it was said or happened, ISO 8601; else now.")] = None
    secrets: Annotated[
        Secrets,
        Meta(description="Keys and passwords in it: redact, keep or refuse. Else as configured: redact."),
    ] = None


class SearchArguments(Arguments):
    """See the tool."""

    query: Annotated[
        str, Meta(max_length=20_000, description="Words, names, dates or a question. Empty: the newest.")
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=50, description="Most hits.")] = 10
    tags: Annotated[Tags, Meta(description="Only memories with all of these tags.")] = None
    type: Annotated[TypeName, Meta(description="Only memories of this type.")] = None
    conversation_id: Annotated[Conversation, Meta(description="Only memories of this conversation.")] = None
    since: Annotated[Time, Meta(description="Only from this day on (YYYY-MM-DD).")] = None
    until: Annotated[Time, Meta(description="Only up to this day, included.")] = None
    speaker: Annotated[Conversation, Meta(description="Only where this person speaks.")] = None


class IdsArguments(Arguments):
    """See the tool."""

    ids: ChunkIds


class LinkArguments(Arguments):
    """See the tool."""

    source_id: ChunkId
    target_id: ChunkId
    type: Annotated[
        str,
        Meta(min_length=1, max_length=100, description=f"{_STATED}."),
    ]
    strength: Annotated[Confidence, Meta(description="How strong, 0 to 1.")] = 0.5
    reasoning: Annotated[MaybeText, Meta(description="Why they are linked.")] = None


class NoArguments(Arguments):
    """See the tool."""


# --- what is done ---------------------------------------------------------------------------------------


def _remember(call: Call, given: RememberArguments) -> Remembered:
    made = call.memory.remember(
        given.text,
        conversation_id=given.conversation_id,
        tags=given.tags,
        confidence=given.confidence,
        chunk_type=given.type,
        occurred_at=given.occurred_at,
        secrets=given.secrets,
        progress=lambda done, total: call.progress(done, total, f"stored {done} of {total} chunks"),
    )
    return Remembered(
        chunk_ids=made.chunk_ids,
        chunks_created=made.created,
        total_tokens=made.tokens,
        duplicates=made.duplicates,
        secrets=dict(made.secrets.rules),
        secrets_hidden=made.secrets.count if made.secrets.hidden else 0,
        note=str(made.secrets) if made.secrets else None,
    )


def _search(call: Call, given: SearchArguments) -> Found:
    from rlm_mem.search import Filters

    filters = Filters(
        tags_all=tuple(given.tags or ()),
        chunk_type=given.type,
        conversation_id=given.conversation_id,
        start=given.since,
        end=given.until,
        speaker=given.speaker,
    )
    if not given.query.strip() and filters == Filters():
        chunks = [
            call.memory.store.get_chunk(one.id, track=False) for one in call.memory.store.latest(given.limit)
        ]
        return Found([_newest(chunk) for chunk in chunks if chunk is not None])
    return Found(
        [
            SearchHit(
                id=hit.chunk_id,
                score=round(float(hit.score), 4),
                snippet=hit.snippet,
                at=hit.at,
                type=hit.type,
                tags=list(hit.tags),
                conversation_id=hit.conversation_id,
                author=hit.author,
            )
            for hit in call.memory.search(given.query, limit=given.limit, filters=filters)
        ]
    )


def _newest(chunk: Chunk) -> SearchHit:
    return SearchHit(
        id=chunk.id,
        score=0.0,
        snippet=chunk.content[:400],
        at=chunk.metadata.at,
        type=chunk.type,
        tags=list(chunk.tags),
        conversation_id=chunk.metadata.conversation_id,
        author=None,
    )


def memory_of(call: Call, chunk: Chunk) -> Memory:
    """A chunk as tools hand it out, with its strongest links both ways."""
    about = chunk.metadata
    return Memory(
        id=chunk.id,
        content=chunk.content[:_MAX_CONTENT],
        truncated=len(chunk.content) > _MAX_CONTENT,
        type=chunk.type,
        tags=list(chunk.tags),
        at=about.at,
        created_at=about.created_at,
        conversation_id=about.conversation_id,
        confidence=about.confidence,
        revision=chunk.revision,
        valid_to=about.valid_to,
        superseded_by=about.superseded_by,
        links=[
            MemoryLink(link.chunk_id, link.type, link.strength, link.direction, link.reasoning)
            for link in call.memory.store.linked(chunk.id, None, "both", limit=10)
        ],
    )


def _get(call: Call, given: IdsArguments) -> Memories:
    found = Memories([], [])
    for chunk_id in dict.fromkeys(given.ids):
        chunk = call.memory.get(chunk_id)
        if chunk is None:
            found.missing.append(chunk_id)
        else:
            found.memories.append(memory_of(call, chunk))
    return found


def _forget(call: Call, given: IdsArguments) -> Forgotten:
    ids = list(dict.fromkeys(given.ids))
    with call.memory.batch():  # a bad id among them must not leave half of it done
        done = {chunk_id: call.memory.delete(chunk_id) for chunk_id in ids}
    return Forgotten([one for one in ids if done[one]], [one for one in ids if not done[one]])


def _link(call: Call, given: LinkArguments) -> Linked:
    call.memory.link(given.source_id, given.target_id, given.type, given.strength, given.reasoning)
    return Linked(given.source_id, given.target_id, given.type, given.strength)


def _status(call: Call, given: NoArguments) -> Status:  # noqa: ARG001 - every tool takes arguments
    from rlm_mem import __version__

    figures: dict[str, Any] = call.memory.store.get_stats()
    try:
        model = call.memory.llm.name
    except RlmMemError as error:
        model = f"not usable: {error}"
    return Status(
        namespace=call.memory.store.namespace,
        version=__version__,
        memories=figures["chunk_count"],
        archived=figures["archived_count"],
        tokens=figures["total_tokens"],
        conversations=figures["conversations"],
        links=figures["links"],
        first_at=figures["first_at"],
        last_at=figures["last_at"],
        by_type=figures["by_type"],
        tags=[TagCount(tag, count) for tag, count in call.memory.tags(20)],
        model=model,
        read_only=call.settings.read_only,
        open_recalls=len(call.handles),
    )


_IDS = {"id": "ids", "chunk_id": "ids", "chunk_ids": "ids", "memory_id": "ids", "memory_ids": "ids"}
_CONVERSATION = dict.fromkeys(
    ("conversation", "conversationId", "session_id", "thread_id", "project"), "conversation_id"
)
_TYPE = dict.fromkeys(("chunk_type", "kind", "category"), "type")
_TAGS = dict.fromkeys(("tag", "labels", "label", "topics"), "tags")

TOOLS: tuple[Tool, ...] = (
    Tool(
        name="remember",
        title="Remember",
        description="Store something worth knowing later: a preference, a decision with its reason, a "
        "fact about people "
        "or the project. The same text in the same conversation is stored once. Keep passwords and keys out.",
        takes=RememberArguments,
        gives=Remembered,
        run=_remember,
        read_only=False,
        aliases={
            **dict.fromkeys(("content", "memory", "note", "value", "observation"), "text"),
            **dict.fromkeys(("at", "when", "date", "timestamp", "time"), "occurred_at"),
            **_CONVERSATION,
            **_TYPE,
            **_TAGS,
        },
    ),
    Tool(
        name="search",
        title="Search memories",
        description="Find memories by words, names and dates, best first; no model is asked. Use it "
        "before you answer "
        "what may have been discussed earlier. `get` reads a hit whole.",
        takes=SearchArguments,
        gives=Found,
        run=_search,
        read_only=True,
        aliases={
            **dict.fromkeys(("q", "question", "text", "keywords"), "query"),
            **dict.fromkeys(("n", "k", "top_k", "max_results", "count"), "limit"),
            **dict.fromkeys(("start", "from", "after", "start_date"), "since"),
            **dict.fromkeys(("end", "to", "before", "end_date"), "until"),
            **dict.fromkeys(("author", "person"), "speaker"),
            **_CONVERSATION,
            **_TYPE,
            **_TAGS,
        },
    ),
    Tool(
        name="get",
        title="Read memories",
        description="Read memories whole by their ids, with their links.",
        takes=IdsArguments,
        gives=Memories,
        run=_get,
        read_only=True,
        aliases=_IDS,
    ),
    Tool(
        name="forget",
        title="Forget memories",
        description="Take memories out of use by their ids. They go to the archive, from which a person "
        "can restore them.",
        takes=IdsArguments,
        gives=Forgotten,
        run=_forget,
        read_only=False,
        destructive=True,
        aliases=_IDS,
    ),
    Tool(
        name="link",
        title="Link memories",
        description=f"Say how one memory stands to another: {_STATED}. A link that is "
        "there already gets the new strength and reasoning.",
        takes=LinkArguments,
        gives=Linked,
        run=_link,
        read_only=False,
        aliases={
            **dict.fromkeys(("source", "from", "from_id", "chunk_id"), "source_id"),
            **dict.fromkeys(("target", "to", "to_id"), "target_id"),
            **dict.fromkeys(("link_type", "relation", "kind"), "type"),
            **dict.fromkeys(("reason", "why"), "reasoning"),
        },
    ),
    Tool(
        name="status",
        title="Memory status",
        description="How much is remembered, about what, since when, and which model answers recall.",
        takes=NoArguments,
        gives=Status,
        run=_status,
        read_only=True,
    ),
)
