"""The host functions over a store for programs: read-only, with bounded plain data as arguments and results.

Every function uses the namespace of its store; no function writes memories. A wrong argument raises an error with a
remedy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Set
from contextlib import suppress
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from rlm_mem import search as searching
from rlm_mem.chunk import Chunk, parse_time
from rlm_mem.chunk.types import outside
from rlm_mem.errors import InputError, RlmMemError
from rlm_mem.sandbox.arguments import (
    MAX_COUNTED,
    MAX_DATE_CHARS,
    MAX_OFFSET,
    chunk_id_of,
    count,
    day,
    optional_text,
    query_words,
    shortened,
    tag_list,
)
from rlm_mem.sandbox.engine import HostCallFailed
from rlm_mem.sandbox.line_functions import LineFunctions, Lines, part_of, speakers, users_of
from rlm_mem.sandbox.person_functions import PersonFunctions
from rlm_mem.sandbox.reference import PAGES
from rlm_mem.sandbox.subject_functions import SubjectFunctions
from rlm_mem.sandbox.turn_functions import TurnFunctions
from rlm_mem.sandbox.values import Bounds, TooLarge, plain
from rlm_mem.store.core.records import standing
from rlm_mem.text.blocks import said_in
from rlm_mem.text.dates import DateMention, find_dates

if TYPE_CHECKING:
    from rlm_mem.store.core.chunk_store import ChunkStore

STORE_FUNCTIONS = tuple(name for name, page in PAGES.items() if page.by == "store")
MODEL_FUNCTIONS = tuple(name for name, page in PAGES.items() if page.by == "model")
FUNCTIONS = frozenset(PAGES)
"""The functions of every session, whose names a program cannot redefine; a session may provide more."""

MAX_CONTENT_CHARS = 200_000
MAX_TIMELINE_CHARS = 2_000
MAX_RESULTS = 100
MAX_IDS = 2_000
MAX_LINKS = 50
_METADATA = (
    "created_at", "modified_at", "occurred_at", "valid_from", "valid_to", "superseded_by", "conversation_id",
    "confidence", "source", "origin", "trust",
)  # fmt: skip


def message_of(error: Exception) -> str:
    """Return the message of an error, or its class if it has none, or one that cannot be read."""
    with suppress(Exception):  # the function of a user may raise an error whose `__str__` fails
        return str(error) or type(error).__name__
    return type(error).__name__


def failed(name: str, error: Exception) -> HostCallFailed:
    """Return the error that the program gets if a host function raised ``error``."""
    hint = getattr(error, "hint", None)
    text = message_of(error)
    kind = type(error).__name__
    if isinstance(error, InputError | UnicodeError):  # errors of Unicode cannot be made from one text
        kind = "ValueError"
    elif isinstance(error, RlmMemError | ExceptionGroup):
        kind = "RuntimeError"
    return HostCallFailed(kind, f"{name}: {text}" + (f"; {hint}" if hint else ""))


class StoreFunctions(LineFunctions, TurnFunctions, SubjectFunctions, PersonFunctions):
    """All functions over one store; :mod:`rlm_mem.sandbox.reference` documents each.

    Args:
        store: bound to one namespace.
        on_read: called with the id of each chunk whose text is returned; reads outside of programs are not noted.
        check: called during long reads; raises if the program must end.
        seen: ids of chunks that the programs have seen, which may be given by their last part.
        listed: those that lists of unseen turns leave out.
    """

    def __init__(
        self,
        store: ChunkStore,
        on_read: Callable[[str], None] = lambda _: None,
        check: Callable[[], None] = lambda: None,
        seen: Set[str] = frozenset(),
        listed: Set[str] = frozenset(),
    ) -> None:
        super().__init__(Lines(store, on_read, check, seen, listed))
        self._seen = seen
        self._on_read = on_read

    def table(self) -> dict[str, Callable[..., Any]]:
        """Return the functions by name."""
        return {name: getattr(self, name) for name in STORE_FUNCTIONS}

    # Chunks by id, tag and link.

    def read_chunk(self, chunk_id: Any) -> dict[str, Any] | None:
        """Return a chunk as a dict, or None if there is no such chunk."""
        chunk = self._get(chunk_id_of("read_chunk", chunk_id, self._seen))
        if chunk is None:
            return None
        part, parts = part_of(chunk)
        if part < parts:
            following = f"neighbors('{chunk.id}')"
            if users_of(self._store):
                following = f"turns(chunks='{chunk.id}', whole=True)"
            self.cut.add_remark(f"{chunk.id} is part {part} of {parts} of its text; {following} goes on")
        return self._shown_chunk(chunk)

    def search_chunks(self, query: Any, limit: Any = 10) -> list[str]:
        """Return ids of the chunks that contain a word of ``query`` in any inflection, best first."""
        words = query_words("search_chunks", query)
        return searching.keyword_ids(self._store, words, limit=count("limit", limit, 1, MAX_RESULTS))

    def list_chunks_by_tag(self, tag: Any) -> list[str]:
        """Return ids of the chunks with this tag, or with all of these tags."""
        return list(self._store.list_chunks(tags=tag_list("list_chunks_by_tag", tag), limit=MAX_IDS))

    def get_linked_chunks(self, chunk_id: Any, link_type: Any = None) -> list[dict[str, Any]]:
        """Return chunks linked to or from a chunk, with ``_link_type``, ``_link_strength``, ``_link_direction``."""
        identifier = chunk_id_of("get_linked_chunks", chunk_id, self._seen)
        if link_type is not None and not isinstance(link_type, str):
            raise HostCallFailed("TypeError", "get_linked_chunks: link_type is text, for example 'supports'")
        if not self._exists(identifier):
            return []
        links = self._store.linked(identifier, link_type, direction="both", limit=MAX_LINKS)
        chunks = self._store.get_many([link.chunk_id for link in links])
        found = []
        for link in links:
            chunk = chunks.get(link.chunk_id)
            if chunk is not None:
                found.append(
                    self._shown_chunk(chunk)
                    | {"_link_type": link.type, "_link_strength": link.strength}
                    | {"_link_direction": link.direction, "_link_reasoning": link.reasoning}
                )
        return found

    # Search and time.

    def search(
        self,
        query: Any,
        limit: Any = 10,
        tags: Any = None,
        chunk_type: Any = None,
        conversation_id: Any = None,
        start: Any = None,
        end: Any = None,
        speaker: Any = None,
        by: Any = "chunk",
    ) -> list[dict[str, Any]]:
        """Return hits, best first, as dicts: chunk_id, score, snippet, start, end, at, type, tags, author, …

        ``by="segment"`` ranks single turns or sentences, of which one chunk may have several.
        """
        words = query_words("search", query)
        maximum = count("limit", limit, 1, MAX_RESULTS)
        today = self._store.clock()
        filters: dict[str, Any] = {}
        if tags:
            filters["tags_all"] = tag_list("search", tags)
        for name, value in (
            ("chunk_type", chunk_type),
            ("conversation_id", conversation_id),
            ("start", day("start", start, today)),
            ("end", day("end", end, today, last=True)),
            ("speaker", speaker),
        ):
            if value is not None:
                filters[name] = tuple(value) if isinstance(value, list | set) else value
        hits = (
            searching.search(self._store, words, limit=maximum, filters=filters or None, by=by)
            if words
            else ()
        )
        if not hits and isinstance(speaker, str):
            self._remark_unknown("search", speaker)
        return [
            {
                "chunk_id": hit.chunk_id,
                "id": hit.chunk_id,
                "score": float(hit.score),
                "snippet": hit.snippet,
                "date": hit.at[:10],
                "speaker": hit.author,
                "start": hit.start,
                "end": hit.end,
                "at": hit.at,
                "type": hit.type,
                "tags": list(hit.tags),
                "author": hit.author,
                "conversation_id": hit.conversation_id,
                **hit.ended(),
                **({"same_subject": marks} if (marks := hit.marks()) else {}),
                **outside(hit.origin, hit.trust),
            }
            for hit in hits
        ]

    def neighbors(
        self, chunk_id: Any, before: Any = 1, after: Any = 1, chars: Any = None
    ) -> dict[str, list[dict[str, Any]]]:
        """Return ``{"before": [chunks], "after": [chunks]}`` of the same conversation, in its order."""
        longest = None if chars is None else count("chars", chars, 20, MAX_TIMELINE_CHARS)

        def shown(chunk: Chunk) -> dict[str, Any]:
            if longest is None:
                return self._shown_chunk(chunk)
            item = self._timeline_item(chunk)
            head = {name: item[name] for name in ("chunk_id", "id", "date", "speaker")}
            return {**head, "text": shortened(chunk.content, longest)}

        identifier = chunk_id_of("neighbors", chunk_id, self._seen)
        if not self._exists(identifier):
            return {"before": [], "after": []}
        earlier, later = self._store.neighbours(
            identifier, before=count("before", before, 0, 20), after=count("after", after, 0, 20)
        )
        chunks = self._store.get_many([*earlier, *later])
        return {
            "before": [shown(chunks[one]) for one in earlier if one in chunks],
            "after": [shown(chunks[one]) for one in later if one in chunks],
        }

    def timeline(
        self, start: Any = None, end: Any = None, limit: Any = 50, offset: Any = 0
    ) -> list[dict[str, Any]]:
        """Return chunks between two dates, oldest first."""
        today = self._store.clock()
        found = self._store.list_chunks(
            start_date=day("start", start, today),
            end_date=day("end", end, today, last=True),
            limit=count("offset", offset, 0, MAX_OFFSET) + count("limit", limit, 1, 500) + MAX_COUNTED,
        )
        ids = self.cut.part("timeline", iter(found), limit, offset)
        chunks = self._store.get_many(ids, track=False)
        return [self._timeline_item(chunks[one]) for one in ids if one in chunks]

    def all_chunks(self, limit: Any = 50, offset: Any = 0) -> list[dict[str, Any]]:
        """Return a page of all chunks, oldest first."""
        ids = self._store.list_chunks(
            limit=count("limit", limit, 1, 200), offset=count("offset", offset, 0, MAX_OFFSET)
        )
        chunks = self._store.get_many(ids, track=False)
        return [self._shown_chunk(chunks[one]) for one in ids if one in chunks]

    def dates(self, expression: Any, at: Any = None, until: Any = None) -> dict[str, Any] | None:
        """Return the period of a date in words, or None; with ``until`` also the distance between the two."""
        reference = day("at", at, self._store.clock())
        moment = self._store.clock() if reference is None else parse_time(reference, "at")
        found = _period(optional_text("expression", expression), moment)
        if found is None:
            return None
        period = {
            "start": found.first.isoformat(),
            "end": found.last.isoformat(),
            "precision": found.precision,
            "text": found.text,
        }
        if until is None:
            return period
        other = _period(optional_text("until", until), moment)
        return None if other is None else period | _distance(found.first, other.first)

    def stats(self) -> dict[str, Any]:
        """Return counts, speakers, tags and time span of the memory."""
        figures = self._store.get_stats() | {"speakers": speakers(self._store)}
        return dict(plain(figures, Bounds(nodes=5_000, text=200_000)))

    # Parts.

    def _get(self, chunk_id: str) -> Chunk | None:
        try:
            return self._store.get_chunk(chunk_id)
        except InputError:
            # Programs get the same result for a malformed id as for an unknown one.
            return None

    def _timeline_item(self, chunk: Chunk) -> dict[str, Any]:
        self._on_read(chunk.id)
        metadata = chunk.metadata
        who = dict.fromkeys(turn.speaker for turn in said_in(chunk.content) if turn.speaker)
        return {
            "chunk_id": chunk.id,
            "id": chunk.id,
            "date": metadata.at[:10],
            "at": metadata.at,
            "speaker": next(iter(who), None),
            "speakers": list(who)[:20],
            "content": shortened(chunk.content, MAX_TIMELINE_CHARS),
            "type": chunk.type,
            "tags": list(chunk.tags),
            "tokens": chunk.tokens,
            "confidence": metadata.confidence,
            "conversation_id": metadata.conversation_id,
            "superseded_by": metadata.superseded_by,
            "valid_to": metadata.valid_to,
            **outside(metadata.origin, metadata.trust),
        }

    def _exists(self, chunk_id: str) -> bool:
        try:
            return bool(self._store.exists(chunk_id))
        except InputError:
            return False

    def _shown_chunk(self, chunk: Chunk) -> dict[str, Any]:
        """Return a chunk as a dict for programs, and record it as read."""
        self._on_read(chunk.id)
        metadata = chunk.metadata
        shown: dict[str, Any] = {
            "id": chunk.id,
            "content": chunk.content[:MAX_CONTENT_CHARS],
            "type": chunk.type,
            "tags": list(chunk.tags),
            "tokens": chunk.tokens,
            "created_at": metadata.created_at,
            "occurred_at": metadata.occurred_at,
            "conversation_id": metadata.conversation_id,
            "confidence": metadata.confidence,
            **{name: value for name, value in standing(chunk).items() if name in ("tier", "reliability")},
            "links": [
                {"target_id": link.target_id, "type": link.type, "strength": link.strength}
                for link in chunk.links[:MAX_LINKS]
            ],
            "metadata": {name: getattr(metadata, name) for name in _METADATA},
            **outside(metadata.origin, metadata.trust),
        }
        if chunk.namespace != self._store.namespace:
            shown["namespace"] = chunk.namespace
        if len(chunk.content) > MAX_CONTENT_CHARS:
            shown["content_truncated"] = len(chunk.content)
        try:
            shown["metadata"]["extra"] = plain(metadata.extra, Bounds(nodes=500, text=50_000, depth=6))
        except TooLarge:
            shown["metadata"]["extra"] = {}
        return shown


def _period(text: str | None, moment: datetime) -> DateMention | None:
    # "Friday" or "May" alone is a date as an argument, though not in running text.
    for words in (text or "", f"on {text}", f"in {text}"):
        for mention in find_dates(words[:MAX_DATE_CHARS], moment):
            return mention
    return None


def _distance(first: date, second: date) -> dict[str, Any]:
    """Return the distance between two days in either order."""
    early, late = sorted((first, second))
    days = (late - early).days
    months = 12 * (late.year - early.year) + late.month - early.month - (late.day < early.day)
    return {"days": days, "weeks": days // 7, "months": months, "years": months // 12}


def described(name: str, function: Callable[..., Any]) -> str:
    """Describe a function of the caller on one line: its signature and the first line of its docstring."""
    try:
        whole = inspect.signature(function)
        bare = [one.replace(annotation=inspect.Parameter.empty) for one in whole.parameters.values()]
        signature = str(whole.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    except (TypeError, ValueError):  # builtins and C functions may have none
        signature = "(...)"
    about = (inspect.getdoc(function) or "").split("\n", 1)[0][:120]
    return f"{name}{signature[:120]}" + (f": {about}" if about else "")
