"""Functions of programs about a subject across conversations: outline, updates, contradictions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk.types import outside
from rlm_mem.sandbox.comparing import Pair, Statement, contradictory, updated
from rlm_mem.sandbox.line_functions import (
    SHORT_NOTE,
    Line,
    LineFunctions,
    count,
    day,
    is_assistant,
    one_line,
    query_words,
    users_of,
    wanted_texts,
)
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.blocks import CODE, blocks, sentences

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk

__all__ = ["SubjectFunctions"]

_POINT = re.compile(
    r"^(?:#{1,6}[ \t]{1,4}([^\n]{1,70})|[ \t]{0,8}(?:[-*]|\d{1,2}\.)[ \t]{1,4}\*\*([^*\n]{1,70})\*\*)",
    re.MULTILINE,
)
_NUMBERING = "0123456789.) *#"
_OUTLINE_CHARS = 160
_OUTLINED_CHUNKS = 30
_MOST_POINTS = 8
_COMPARED_CHARS = 1_500
"""Characters of each line that are compared."""
_STATEMENTS = 80
"""Lines about a subject whose sentences are compared."""
_MAX_LINKS = 5


def _headings(content: str) -> Iterator[re.Match[str]]:
    """The headings and bold items of a text, in order; in code a line with # is a comment."""
    found = list(_POINT.finditer(content))
    code = [(one.start, one.end) for one in blocks(content) if one.kind == CODE] if found else []
    return (match for match in found if not any(start <= match.start() < end for start, end in code))


def _place(line: Line) -> tuple[str, str, str, int]:
    """The sort key of a line in time; lines of the same day keep the order in which they were stored."""
    about = line.chunk.metadata
    return line.at, about.created_at, about.conversation_id or "", line.number


class SubjectFunctions(LineFunctions):
    """The functions about a subject; :mod:`rlm_mem.sandbox.reference` documents each."""

    def outline(
        self, query: Any = None, start: Any = None, end: Any = None, limit: Any = 15
    ) -> list[dict[str, Any]]:
        """The subjects of conversations, one line for each conversation, in order of time."""
        queries = [query_words("outline", one) for one in wanted_texts("query", query)] if query else []
        wanted = count("limit", limit, 1, 100)
        today = self._store.clock()
        first, last = day("start", start, today), day("end", end, today, last=True)
        talks: dict[str, Line] = {}
        if any(queries):
            users = users_of(self._store)
            filters = {"start": first, "end": last, "speaker": min(users) if users else None}
            for line in self._found(queries, 6 * wanted, filters):
                if len(talks) < wanted and (not users or line.speaker in users):
                    talks.setdefault(line.chunk.metadata.conversation_id or line.chunk.id, line)
        else:
            for chunk in self._lines.chunks(None, first, last):
                talk = chunk.metadata.conversation_id or chunk.id
                opening = None if talk in talks else next(self._lines.lines(chunk), None)
                if opening is not None:
                    talks[talk] = opening
                if len(talks) == wanted:
                    break
        told: set[str] = set()
        return [self._outlined(line, told) for line in sorted(talks.values(), key=_place)]

    def updates(self, subject: Any, limit: Any = 10) -> list[dict[str, Any]]:
        """Candidates for changes to a subject."""
        about = query_words("updates", subject)
        wanted = count("limit", limit, 1, 50)
        lines = self._about(about)
        replaced = [
            self._linked_pair(line.chunk, line.chunk.metadata.superseded_by, "it was replaced")
            for line in lines
            if line.chunk.metadata.superseded_by
        ]
        return self._pairs(about, lines, replaced, wanted, updated)

    def contradictions(self, subject: Any, limit: Any = 10) -> list[dict[str, Any]]:
        """Candidates for contradictions between statements about a subject."""
        about = query_words("contradictions", subject)
        wanted = count("limit", limit, 1, 50)
        lines = self._about(about)
        linked = [
            self._linked_pair(line.chunk, link.chunk_id, "they are linked as contradicting")
            for line in lines[:20]
            for link in self._store.linked(line.chunk.id, "contradicts", direction="both", limit=_MAX_LINKS)
        ]
        return self._pairs(about, lines, linked, wanted, contradictory)

    # Parts.

    def _found(self, queries: Iterable[str], limit: int, filters: Mapping[str, Any]) -> Iterator[Line]:
        """The lines that fit any of the texts, best first for each text."""
        kept = {name: value for name, value in filters.items() if value is not None}
        read: dict[str, Chunk] = {}
        for hit in self._hits(queries, limit, read, kept)[0]:
            line = self._lines.at(read[hit.chunk_id], hit.start)
            if line is not None:
                yield line

    def _outlined(self, line: Line, told: set[str]) -> dict[str, Any]:
        """The row of a conversation: its line, and the headings of the conversation that are not in ``told``."""
        self._on_read(line.chunk.id)
        talk = line.chunk.metadata.conversation_id
        ids = self._store.list_chunks(talk, limit=_OUTLINED_CHUNKS) if talk else [line.chunk.id]
        found = self._store.get_many(ids, track=False)
        titles = (
            (match[1] or match[2]).lstrip(_NUMBERING).rstrip(" :*#")
            for one in ids
            if one in found
            for match in _headings(found[one].content)
        )
        points = list(islice((one for one in dict.fromkeys(titles) if one and one not in told), _MOST_POINTS))
        told.update(points)
        at = line.at
        return {
            "date": at[:10],
            "at": at,
            "speaker": line.speaker,
            "text": one_line(line.text, _OUTLINE_CHARS),
            "points": points,
            "chunk_id": line.chunk.id,
            "conversation_id": talk,
            **outside(line.chunk.metadata.origin, line.chunk.metadata.trust),
        }

    def _about(self, subject: str) -> list[Line]:
        """The lines most relevant to a subject, each once."""
        found: dict[tuple[str, int], Line] = {}
        chats: dict[str | None, bool] = {None: False}
        assisted = bool(users_of(self._store))
        read: dict[str, Chunk] = {}
        for hit in self._hits([subject], _STATEMENTS, read)[0]:
            chunk = read[hit.chunk_id]
            line = self._lines.at(chunk, hit.start)
            if line is None or is_assistant(line.speaker):
                continue
            if assisted and line.speaker is None:
                # In a chat this is the rest of a long answer of the assistant; elsewhere it is a note.
                talk = chunk.metadata.conversation_id
                if talk not in chats:
                    chats[talk] = any(one.speaker for one in self._opening_lines(talk))
                if chats[talk]:
                    continue
            found.setdefault((chunk.id, line.number), line)
        return list(found.values())

    def _opening_lines(self, conversation_id: str | None) -> list[Line]:
        """The lines of the first chunk of a conversation."""
        first = self._store.list_chunks(conversation_id, limit=1)
        return [
            line
            for one in self._store.get_many(first, track=False).values()
            for line in self._lines.lines(one)
        ]

    def _pairs(
        self,
        subject: str,
        lines: list[Line],
        linked: Iterable[dict[str, Any] | None],
        limit: int,
        compare: Callable[..., list[Pair]],
    ) -> list[dict[str, Any]]:
        statements = [
            Statement(key, (line.at, line.said[line.number].body + start), text[start:end], line.speaker)
            for key, line in enumerate(lines)
            for text in [line.text]
            for block in blocks(text)
            if block.kind != CODE and block.start < _COMPARED_CHARS
            for start, end in sentences(text, block.start, min(block.end, _COMPARED_CHARS))
        ]
        analyser = get_analyser(self._store.config.search.language)
        found = [one for one in linked if one is not None]
        found += [
            {
                "newer": self._statement(lines[pair.newer.key], pair.newer.text),
                "older": self._statement(lines[pair.older.key], pair.older.text),
                "shared": list(pair.shared),
                "why": pair.why,
            }
            for pair in compare(statements, subject, analyser, limit)
        ]
        once = {(one["newer"]["text"], one["older"]["text"]): one for one in reversed(found)}
        newest = sorted(once.values(), key=lambda one: (one["newer"]["at"], one["older"]["at"]), reverse=True)
        return newest[:limit]

    def _statement(self, line: Line, text: str) -> dict[str, Any]:
        self._on_read(line.chunk.id)
        at = line.at
        return {
            "date": at[:10],
            "at": at,
            "speaker": line.speaker,
            "text": one_line(text, SHORT_NOTE),
            "chunk_id": line.chunk.id,
        }

    def _linked_pair(self, chunk: Chunk, other_id: str | None, why: str) -> dict[str, Any] | None:
        """Two linked chunks as a pair; None when the other one is gone."""
        other = self._store.get_many([other_id], track=False).get(other_id) if other_id else None
        if other is None:
            return None
        older, newer = sorted((chunk, other), key=lambda one: one.metadata.at)
        if chunk.metadata.superseded_by == other.id:
            older, newer = chunk, other
        sides = [next(self._lines.lines(one), None) for one in (newer, older)]
        if sides[0] is None or sides[1] is None:
            return None
        return {
            "newer": self._statement(sides[0], sides[0].text),
            "older": self._statement(sides[1], sides[1].text),
            "shared": [],
            "why": why,
        }
