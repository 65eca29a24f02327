"""Memories: the list, search as you type with its filters, and remembering something new."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from rlm_mem.dashboard.answers import is_question
from rlm_mem.dashboard.markdown import teaser
from rlm_mem.dashboard.rendering import HEADERS
from rlm_mem.dashboard.words import address, marked
from rlm_mem.errors import InputError
from rlm_mem.operations.moving import ExportQuery, export_file
from rlm_mem.operations.problems import Refused, problem_of
from rlm_mem.store.core.lookup import Filters
from rlm_mem.text.analysis import get_analyser

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.chunk import Chunk
    from rlm_mem.dashboard.visits import EachNamespace, Visit
    from rlm_mem.memory import Memory

PAGE = 20
MOST = 200
_MAX_ARCHIVE_SCAN = 500
_CONTENT = 600


@dataclass(frozen=True)
class Row:
    """One memory in a list."""

    id: str
    text: Markup
    type: str
    tags: Sequence[str]
    at: Any
    conversation: str | None
    author: str | None = None
    score: float | None = None
    parts: Sequence[tuple[str, float]] = ()
    superseded: bool = False
    confidence: float | None = None
    marks: Sequence[str] = ()


def suggestions(memory: Memory) -> tuple[list[str], list[str]]:
    """The commonest tags and the latest conversations, for the filters."""
    return [tag for tag, _ in memory.tags(80)], [one.id for one in memory.conversations(40)]


@dataclass(frozen=True)
class _Wanted:
    """The requested filters; empty means no filter."""

    q: str = ""
    type: str = ""
    tag: tuple[str, ...] = ()
    conversation: str = ""
    speaker: str = ""
    since: str = ""
    until: str = ""
    archived: bool = False
    limit: int = PAGE
    query: Mapping[str, Any] = field(default_factory=dict)

    @property
    def narrowed(self) -> bool:
        """Whether a filter is set."""
        return bool(self.type or self.tag or self.conversation or self.speaker or self.since or self.until)


def _wanted(visit: Visit) -> _Wanted:
    tags = [part.strip() for said in visit.texts("tag") for part in said.split(",")]
    given: dict[str, Any] = {
        "q": visit.text("q", 4_000),
        "type": visit.text("type", 100),
        "tag": tuple(dict.fromkeys(tag for tag in tags if tag)),
        "conversation": visit.text("conversation", 500).strip(),
        "speaker": visit.text("speaker", 200).strip(),
        "since": visit.text("since", 40).strip(),
        "until": visit.text("until", 40).strip(),
        "archived": visit.text("archived", 3) == "yes",
        "limit": visit.number("limit", PAGE, 1, MOST),
    }
    query = dict(given)
    query["archived"] = "yes" if given["archived"] else ""
    query["limit"] = "" if given["limit"] == PAGE else given["limit"]
    query["tag"] = list(given["tag"])
    return _Wanted(**given, query=query)


def list_page(visit: Visit, suggested: EachNamespace[tuple[list[str], list[str]]]) -> Response:
    """The newest memories, or the results of a search."""
    wanted = _wanted(visit)
    began = time.perf_counter()
    problem = ""
    try:
        rows = _found(visit.memory, wanted)
    except InputError as error:  # for example a half-typed date: show it in place of the results
        rows, problem = [], error.sentence
    here = address("/memories", **wanted.query)
    values: dict[str, Any] = {
        "wanted": wanted,
        "rows": rows[: wanted.limit],
        "more": address("/memories", **{**wanted.query, "limit": min(MOST, wanted.limit * 2)})
        if len(rows) > wanted.limit < MOST
        else "",
        "cut": len(rows) > wanted.limit >= MOST,
        "problem": problem,
        "took": time.perf_counter() - began,
        "asks": not wanted.narrowed and not wanted.archived and is_question(wanted.q),
        "here": here,
        "stats": figures(visit.memory),
        "partial": visit.partial,
        "live": "memories",
    }
    if visit.partial:
        response = visit.fragment("memories.html", **values)
        response.headers["HX-Replace-Url"] = here
        return response
    tags, conversations = suggested.of(visit)
    return visit.page(
        "memories.html",
        **values,
        types=list(visit.memory.store.types.chunk_types),
        tags=tags,
        conversations=conversations,
    )


def figures(memory: Memory) -> dict[str, Any]:
    """Totals that take constant time; without the number of links, which takes a scan."""
    queries, namespace = memory.store.backend.queries, memory.store.namespace
    return {**queries.stats(namespace), "conversations": queries.count_rows("conversations", namespace)}


def _found(memory: Memory, wanted: _Wanted) -> list[Row]:
    if wanted.archived:
        return _archived(memory, wanted)
    if wanted.q.strip() or wanted.speaker:
        return _searched(memory, wanted)
    ids = _ids(memory, wanted, limit=wanted.limit + 1)
    return rows_of(memory.store.get_many(ids).values())


def _ids(memory: Memory, wanted: _Wanted, *, limit: int, archived: bool = False) -> list[str]:
    """Ids of the newest memories that pass the filters."""
    return memory.list_chunks(
        conversation_id=wanted.conversation or None,
        start_date=wanted.since or None,
        end_date=wanted.until or None,
        tags=list(wanted.tag) or None,
        chunk_type=wanted.type or None,
        archived=archived,
        limit=limit,
        newest_first=True,
    )


def _searched(memory: Memory, wanted: _Wanted) -> list[Row]:
    filters = Filters(
        tags_all=wanted.tag,
        chunk_type=wanted.type or None,
        conversation_id=wanted.conversation or None,
        start=wanted.since or None,
        end=wanted.until or None,
        speaker=wanted.speaker or None,
    )
    hits = memory.search(
        wanted.q, limit=wanted.limit + 1, filters=filters if wanted.narrowed else None, explain=True
    )
    language = memory.config.search.language
    stems = get_analyser(language).terms(wanted.q)

    def found(text: str) -> Markup:
        return marked(text, stems, language)

    return [
        Row(
            hit.chunk_id, teaser(hit.snippet, _CONTENT, found), hit.type, hit.tags, hit.at,
            hit.conversation_id, hit.author, float(hit.score),
            sorted((hit.parts or {}).items(), key=lambda part: -abs(part[1]))[:8],
            marks=hit.marks(),
        )
        for hit in hits
    ]  # fmt: skip


def _archived(memory: Memory, wanted: _Wanted) -> list[Row]:
    """Archived memories have no postings, so the contents of the newest ones are searched for the text."""
    needle = wanted.q.strip().casefold()
    ids = _ids(memory, wanted, archived=True, limit=_MAX_ARCHIVE_SCAN if needle else wanted.limit + 1)
    kept: list[Chunk] = []
    for chunk_id in ids:
        versions = memory.history(chunk_id)
        if versions and needle in versions[-1].chunk.content.casefold():
            kept.append(versions[-1].chunk)
            if len(kept) > wanted.limit:
                break
    return rows_of(kept)


def rows_of(chunks: Any) -> list[Row]:
    """Chunks as rows of a list."""
    return [
        Row(
            chunk.id,
            teaser(chunk.content, _CONTENT),
            chunk.type,
            chunk.tags,
            chunk.metadata.at,
            chunk.metadata.conversation_id,
            superseded=bool(chunk.metadata.superseded_by),
            confidence=chunk.metadata.confidence,
        )
        for chunk in chunks
    ]


# --- new memories ----------------------------------------------------------------------------------------


def new_page(visit: Visit, *, problem: str = "", status: int = 200) -> Response:
    """The form for a new memory."""
    return visit.page(
        "new.html",
        status=status,
        problem=problem,
        given={name: visit.text(name, 0) for name in ("text", "tags", "type", "conversation", "occurred_at")},
        types=list(visit.memory.store.types.chunk_types),
    )


def remember(visit: Visit) -> Response:
    """Store the text of the form."""
    try:
        made = visit.carry_out(
            "remember",
            text=visit.text("text", 0),
            conversation_id=visit.text("conversation", 1_000).strip(),
            tags=tags_of(visit.text("tags", 2_000)),
            type=visit.text("type", 100),
            source="dashboard",
            occurred_at=visit.text("occurred_at", 40),
        )
    except (InputError, Refused) as error:
        return new_page(visit, problem=problem_of(error).sentence, status=400)
    if not made.chunks_created and made.duplicates:
        return visit.go(address("/memories", made.duplicates[0]), "known")
    ids = made.chunk_ids
    more = (("replaces", made.replaced), ("asks", made.proposed), ("hidden", made.secrets_hidden))
    notice = ".".join(["remembered", *(name for name, found in more if found)])
    return visit.go(address("/memories", ids[0]) if len(ids) == 1 else "/memories", notice)


def tags_of(said: str) -> list[str]:
    """Split tags at commas."""
    return list(dict.fromkeys(tag for part in said.replace("\n", ",").split(",") if (tag := part.strip())))


def export(visit: Visit) -> Response:
    """Every memory of the namespace, deleted ones too, as Markdown in a zip file."""
    file = export_file(visit.memory, ExportQuery(format="zip"))
    remove = BackgroundTask(shutil.rmtree, file.parent, ignore_errors=True)
    return FileResponse(
        file, filename=file.name, media_type="application/zip", headers=dict(HEADERS), background=remove
    )
