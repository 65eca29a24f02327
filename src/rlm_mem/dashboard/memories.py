"""The list of memories, search with filters, and the form for new memories."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from markupsafe import Markup

from rlm_mem.chunk import is_chunk_id, name_key
from rlm_mem.dashboard.answers import is_question
from rlm_mem.dashboard.markdown import teaser
from rlm_mem.dashboard.rendering import HEADERS
from rlm_mem.dashboard.requests import NamespaceCache, PageRequest
from rlm_mem.dashboard.words import address, marked
from rlm_mem.errors import ConflictError, InputError, NotFoundError
from rlm_mem.http.streams import TemporaryFile
from rlm_mem.operations.moving import ExportQuery, export_file
from rlm_mem.operations.problems import Refused, problem_of
from rlm_mem.store.core.lookup import Filters
from rlm_mem.store.core.records import in_lots, is_mirror
from rlm_mem.text.analysis import get_analyser

if TYPE_CHECKING:
    from starlette.responses import Response

    from rlm_mem.chunk import Chunk
    from rlm_mem.memory import Memory
    from rlm_mem.search.ranking import OtherNote
    from rlm_mem.store.core.chunk_store import ChunkStore

PAGE = 20
MOST = 200
_MAX_SCAN = 500
_CONTENT = 600
_LEAD = 60
"""Characters shown before the first match of a part of a word."""
_REJECTED = Markup("Rejected while in quarantine. Its text is shown on its own page alone.")


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
    out_of_date: bool = False
    confidence: float | None = None
    notes: Sequence[tuple[str, OtherNote]] = ()

    @property
    def tickable(self) -> bool:
        """Whether it can be changed from the list: tiered memories are changed one by one, with their files."""
        return not is_mirror(self.id)


def _suggestions() -> NamespaceCache[tuple[list[str], list[str]]]:
    """The most frequent tags and the latest conversations, offered as filters."""
    return NamespaceCache(
        lambda memory: ([tag for tag, _ in memory.tags(80)], [one.id for one in memory.conversations(40)]),
        seconds=20,
    )


@dataclass(frozen=True)
class _ListFilters:
    """Filters requested for the list, as in its address; an empty field is no filter."""

    q: str = ""
    type: str = ""
    tag: tuple[str, ...] = ()
    conversation: str = ""
    speaker: str = ""
    since: str = ""
    until: str = ""
    archived: Literal["yes", ""] = ""
    limit: int = PAGE

    @property
    def narrowed(self) -> bool:
        """Whether a filter is set."""
        return bool(self.type or self.tag or self.conversation or self.speaker or self.since or self.until)

    def address(self, limit: int) -> str:
        """The address of the list with these filters and so many memories."""
        return address("/memories", **{**vars(self), "limit": "" if limit == PAGE else limit})


def _requested_filters(request: PageRequest) -> _ListFilters:
    return _ListFilters(
        q=request.text("q", 4_000),
        type=request.text("type", 100),
        tag=tuple(tags_of(",".join(request.texts("tag")))),
        conversation=request.text("conversation", 500).strip(),
        speaker=request.text("speaker", 200).strip(),
        since=request.text("since", 40).strip(),
        until=request.text("until", 40).strip(),
        archived="yes" if request.text("archived", 3) == "yes" else "",
        limit=request.number("limit", PAGE, 1, MOST),
    )


def list_page(request: PageRequest) -> Response:
    """The newest memories, or results of a search."""
    selected = _requested_filters(request)
    began = time.perf_counter()
    problem = ""
    try:
        rows = _matching_rows(request.memory, selected)
    except InputError as error:  # for example an incomplete date: shown in place of the results
        rows, problem = [], error.sentence
    here = selected.address(selected.limit)
    values: dict[str, Any] = {
        "wanted": selected,
        "rows": rows[: selected.limit],
        "more": selected.address(min(MOST, selected.limit * 2)) if len(rows) > selected.limit < MOST else "",
        "cut": len(rows) > selected.limit >= MOST,
        "problem": problem,
        "took": time.perf_counter() - began,
        "asks": not selected.narrowed and not selected.archived and is_question(selected.q),
        "here": here,
        "stats": figures(request.memory),
        "partial": request.partial,
        "live": "memories",
    }
    if request.partial:
        response = request.fragment("memories.html", **values)
        response.headers["HX-Replace-Url"] = here
        return response
    tags, conversations = request.state.shared(_suggestions).of(request)
    return request.page(
        "memories.html",
        **values,
        types=list(request.memory.store.types.chunk_types),
        tags=tags,
        conversations=conversations,
    )


_ON_TICKED = {"archive": ("deleteChunks", "ticked-archived"), "restore": ("restoreChunks", "ticked-restored")}
"""Operation and notice of each button that moves the ticked memories."""
_IDS_AT_ONCE = 20


def act_on_ticked(request: PageRequest) -> Response:
    """Tag, archive or restore the ticked memories of the list, as one change, and show the list again."""
    what, ids = request.action("tag", "untag", *_ON_TICKED), request.texts("id")
    if any(map(is_mirror, ids)):
        raise InputError("tiered memories are changed one by one", hint="open each on its own page")
    if not ids:
        notice = "none-ticked"
    elif what in _ON_TICKED:
        notice = _move_ticked(request, what, ids)
    else:
        notice = _tag_ticked(request, ids, remove=what == "untag")
    return request.go(request.came_from()[0], notice)


def _move_ticked(request: PageRequest, what: str, ids: Sequence[str]) -> str:
    name, notice = _ON_TICKED[what]
    with request.memory.batch():
        for lot in in_lots(ids, _IDS_AT_ONCE):
            request.carry_out(name, ids=lot)
    return notice


def _tag_ticked(request: PageRequest, ids: Sequence[str], *, remove: bool) -> str:
    """Add the tags of the form to the memories, or remove them; a memory that was archived meanwhile is left alone."""
    given = tags_of(request.text("tags", 2_000))
    if not given:
        return "no-tag"
    tags, changed = set(given), False
    with request.memory.batch():
        for chunk in request.memory.store.get_many(ids).values():
            kept = [tag for tag in chunk.tags if tag not in tags]
            new = kept if remove else [*chunk.tags, *(tag for tag in given if tag not in chunk.tags)]
            if new != list(chunk.tags):
                changed = True
                request.memory.update(chunk.id, tags=new)
    return "ticked-tagged" if changed else "unchanged"


def figures(memory: Memory) -> dict[str, Any]:
    """Totals that are computed in constant time; the number of links needs a scan and is omitted."""
    queries, namespace = memory.store.backend.queries, memory.store.namespace
    return {**queries.stats(namespace), "conversations": queries.count_rows("conversations", namespace)}


def _matching_rows(memory: Memory, selected: _ListFilters) -> list[Row]:
    if selected.archived:
        return _containing_rows(memory, selected)
    if selected.q.strip() or selected.speaker:
        return _search_rows(memory, selected)
    ids = _newest_ids(memory, selected, limit=selected.limit + 1)
    return rows_of(memory.store, memory.store.get_many(ids).values())


def _newest_ids(memory: Memory, selected: _ListFilters, *, limit: int) -> list[str]:
    """Ids of the newest memories that match the filters."""
    return memory.list_chunks(
        conversation_id=selected.conversation or None,
        start_date=selected.since or None,
        end_date=selected.until or None,
        tags=list(selected.tag) or None,
        chunk_type=selected.type or None,
        archived=bool(selected.archived),
        limit=limit,
        newest_first=True,
    )


def search_rows(memory: Memory, words: str, *, limit: int) -> list[Row]:
    """Rows of the memories that words find, best first; a whole id finds its memory."""
    return _search_rows(memory, _ListFilters(q=words, limit=limit - 1)) if words.strip() else []


def _search_rows(memory: Memory, selected: _ListFilters) -> list[Row]:
    named = selected.q.strip()
    if is_chunk_id(named) and memory.store.exists(named):
        return rows_of(memory.store, memory.store.get_many([named]).values())
    filters = Filters(
        tags_all=selected.tag,
        chunk_type=selected.type or None,
        conversation_id=selected.conversation or None,
        start=selected.since or None,
        end=selected.until or None,
        speaker=selected.speaker or None,
    )
    hits = memory.search(
        selected.q, limit=selected.limit + 1, filters=filters if selected.narrowed else None, explain=True
    )
    if not hits and not selected.speaker:
        return _containing_rows(memory, selected)
    language = memory.config.search.language
    stems = get_analyser(language).terms(selected.q)

    def found(text: str) -> Markup:
        return marked(text, stems, language)

    return [
        Row(
            hit.chunk_id, teaser(hit.snippet, _CONTENT, found), hit.type, hit.tags, hit.at,
            hit.conversation_id, hit.author, float(hit.score),
            sorted((hit.parts or {}).items(), key=lambda part: -abs(part[1]))[:8],
            out_of_date=bool(hit.ended()),
            notes=[("later" if what == "more" else what, note) for what, note in hit.other_notes()],
        )
        for hit in hits
    ]  # fmt: skip


def _containing_rows(memory: Memory, selected: _ListFilters) -> list[Row]:
    """The newest memories with this text anywhere: a word still being typed, or a part of a number or address.

    Archived memories, which no search finds, are searched only so.
    """
    needle = name_key(selected.q)
    ids = _newest_ids(memory, selected, limit=_MAX_SCAN if needle else selected.limit + 1)
    found = map(memory.store.get_archived, ids) if selected.archived else memory.store.get_many(ids).values()
    kept = (
        chunk
        for chunk in found
        if chunk is not None and (not needle or (needle in name_key(chunk.content) and not _rejected(chunk)))
    )
    return rows_of(memory.store, islice(kept, selected.limit + 1), selected.q)


def _rejected(chunk: Chunk) -> bool:
    """Whether a listed memory was archived in quarantine: its text is shown on its own page only."""
    return chunk.metadata.trust == "quarantined"


def _near(text: str, words: str) -> str:
    """A text from the beginning of a word shortly before these words on; whole if they are near its beginning."""
    found = text.lower().find(words.strip().lower())
    if found <= _LEAD:
        return text
    return f"…{text[text.find(' ', found - _LEAD, found) + 1 or found :]}"


def rows_of(store: ChunkStore, chunks: Any, words: str = "") -> list[Row]:
    """Rows of the list for some chunks, shown from shortly before these words on."""
    return [
        Row(
            chunk.id,
            _REJECTED if _rejected(chunk) else teaser(_near(chunk.content, words), _CONTENT),
            chunk.type,
            chunk.tags,
            chunk.metadata.at,
            chunk.metadata.conversation_id,
            out_of_date=bool(store.out_of_date(chunk.metadata)),
            confidence=chunk.metadata.confidence,
        )
        for chunk in chunks
    ]


# --- new memories ----------------------------------------------------------------------------------------


def new_page(request: PageRequest, *, problem: str = "") -> Response:
    """The form for a new memory; with ``replaces``, for what is now valid instead of that memory."""
    given = {name: request.text(name, 0) for name in ("text", "tags", "type", "conversation", "occurred_at")}
    old_id = request.text("replaces", 200)
    old = request.memory.store.get_chunk(old_id, track=False) if old_id else None
    if old is not None and not request.form:
        given |= {"text": old.content, "tags": ", ".join(old.tags)}
    return request.page(
        "new.html",
        status=400 if problem else 200,
        problem=problem,
        given=given,
        old=old,
        types=list(request.memory.store.types.chunk_types),
    )


def remember(request: PageRequest) -> Response:
    """Store the text of the form."""
    try:
        made = request.carry_out(
            "remember",
            text=request.text("text", 0),
            conversation_id=request.text("conversation", 1_000).strip(),
            tags=tags_of(request.text("tags", 2_000)),
            type=request.text("type", 100),
            source="dashboard",
            occurred_at=request.text("occurred_at", 40),
            replaces=request.text("replaces", 200),
        )
    except (InputError, NotFoundError, ConflictError, Refused) as error:  # also of the memory to be replaced
        return new_page(request, problem=problem_of(error).sentence)
    if made.quarantined and not made.chunks_created:
        return request.go("/review", "known-quarantined")
    if not made.chunks_created and made.duplicates:
        return request.go(address("/memories", made.duplicates[0]), "known")
    ids = made.chunk_ids
    more = (
        ("replaces", made.replaced),
        ("asks", made.proposed),
        ("hidden", made.secrets_hidden),
        ("known-quarantined", made.quarantined),
    )
    notice = ".".join(["remembered", *(name for name, found in more if found)])
    return request.go(address("/memories", ids[0]) if len(ids) == 1 else "/memories", notice)


def tags_of(text: str) -> list[str]:
    """Split tags at commas."""
    return list(dict.fromkeys(tag for part in text.replace("\n", ",").split(",") if (tag := part.strip())))


def export(request: PageRequest) -> Response:
    """A zip file with all memories of the namespace as Markdown, archived ones included."""
    file = export_file(request.memory, ExportQuery(format="zip"))
    return TemporaryFile(file, filename=file.name, media_type="application/zip", headers=HEADERS)
