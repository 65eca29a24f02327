"""Host functions about a subject across conversations: outline, updates and contradictions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from rlm_mem import search as searching
from rlm_mem.chunk.types import outside
from rlm_mem.sandbox.arguments import count, day, optional_text, query_words, wanted_texts
from rlm_mem.sandbox.comparing import Kind, Statement, differing_pairs
from rlm_mem.sandbox.line_functions import SHORT_NOTE, HostFunctions, Line, is_assistant, users_of
from rlm_mem.sandbox.outline import Outline, OutlineRequest, opening_request
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.blocks import CODE, blocks, one_line
from rlm_mem.text.sentences import sentences

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.text.blocks import Said

_COMPARED_CHARS = 1_500
"""Maximum characters of each line that are compared."""
_STATEMENTS = 80
"""Maximum lines about a subject whose sentences are compared."""
_SENTENCES = 1_000
"""Maximum sentences that are compared, those of the most relevant lines."""
_MAX_LINKS = 5


class SubjectFunctions(HostFunctions):
    """The functions about a subject; :mod:`rlm_mem.sandbox.reference` documents each."""

    def outline(
        self,
        query: Any = None,
        start: Any = None,
        end: Any = None,
        limit: Any = 200,
        chars: Any = 4_000,
        author: Any = None,
        points: Any = True,
        unseen: Any = False,
    ) -> list[dict[str, Any]]:
        """Return a row for each turn about a subject, or about everything, that has room, in order of time."""
        today = self._store.clock()
        request = OutlineRequest(
            [query_words("outline", one) for one in wanted_texts("query", query)] if query else [],
            day("start", start, today),
            day("end", end, today, last=True),
            maximum=count("limit", limit, 1, 500),
            room=count("chars", chars, 500, 20_000),
            points=bool(points),
            speaker=optional_text("author", author),
            left_out=self._lines.listed_before(unseen),
        )
        rows = Outline(self._lines, request).rows(self.cut)
        if not rows and request.speaker is not None:
            self._remark_unknown("outline", request.speaker)
        return rows

    def account(self, subject: str, chars: int, *, points: bool, every: bool = False) -> list[dict[str, Any]]:
        """Return the outline of a subject for an opening; :func:`opening_request` describes the arguments."""
        request = opening_request(subject, chars, points=points, every=every)
        return Outline(self._lines, request).rows(self.cut)

    def updates(self, subject: Any, limit: Any = 10) -> list[dict[str, Any]]:
        """Return candidates for changes to a subject."""
        words = query_words("updates", subject)
        maximum = count("limit", limit, 1, 50)
        lines = self._relevant_lines(words)
        replaced = [
            self._linked_pair(line.chunk, line.chunk.metadata.superseded_by, "it was replaced")
            for line in lines
            if line.chunk.metadata.superseded_by
        ]
        return self._pairs(words, lines, replaced, maximum, "replace")

    def contradictions(self, subject: Any, limit: Any = 10) -> list[dict[str, Any]]:
        """Return candidates for contradictions between statements about a subject."""
        words = query_words("contradictions", subject)
        maximum = count("limit", limit, 1, 50)
        lines = self._relevant_lines(words)
        linked = [
            self._linked_pair(line.chunk, link.chunk_id, "they are linked as contradicting")
            for line in lines[:20]
            for link in self._store.linked(line.chunk.id, "contradicts", direction="both", limit=_MAX_LINKS)
        ]
        return self._pairs(words, lines, linked, maximum, "contradict")

    # Parts.

    def _relevant_lines(self, subject: str) -> list[Line]:
        """Return the lines most relevant to a subject, each once."""
        found: dict[tuple[str, int], Line] = {}
        chats: dict[str | None, bool] = {None: False}
        assisted = bool(users_of(self._store))
        known: dict[str, list[Said]] = {}
        passages = searching.passages(self._store, subject, limit=_STATEMENTS)
        for hit in passages.hits:
            chunk = passages.chunks[hit.chunk_id]
            line = self._lines.at(chunk, hit.start, known)
            if line is None or is_assistant(line.speaker):
                continue
            if assisted and line.speaker is None:
                # In a chat, this is the rest of a long answer of the assistant; elsewhere, a note.
                conversation = chunk.metadata.conversation_id
                if conversation not in chats:
                    chats[conversation] = any(one.speaker for one in self._opening_lines(conversation))
                if chats[conversation]:
                    continue
            found.setdefault((chunk.id, line.number), line)
        return list(found.values())

    def _opening_lines(self, conversation_id: str | None) -> list[Line]:
        first = self._store.list_chunks(conversation_id, limit=1)
        return [
            line
            for one in self._store.get_many(first, track=False).values()
            for line in self._lines.lines(one)
        ]

    def _pairs(
        self, subject: str, lines: list[Line], linked: Iterable[dict[str, Any] | None], limit: int, kind: Kind
    ) -> list[dict[str, Any]]:
        places = self._places([line.chunk for line in lines])
        found_statements = (
            Statement(
                key,
                (
                    line.at,
                    line.chunk.metadata.created_at,
                    places.get(line.chunk.id, 0),
                    line.turn.body + start,
                ),
                text[start:end],
                line.speaker,
            )
            for key, line in enumerate(lines)
            for text in [line.text]
            for block in blocks(text)
            if block.kind != CODE and block.start < _COMPARED_CHARS
            for start, end in sentences(text, block.start, min(block.end, _COMPARED_CHARS))
        )
        analyser = get_analyser(self._store.config.search.language)
        found = [one for one in linked if one is not None]
        statements = list(islice(found_statements, _SENTENCES))
        compared = differing_pairs(statements, subject, analyser, limit, kind, self._lines.check)
        rows = [
            {
                "newer": self._statement(lines[pair.newer.key], pair.newer.text, pair.marks[0]),
                "older": self._statement(lines[pair.older.key], pair.older.text, pair.marks[1]),
                "shared": list(pair.shared),
                "why": pair.why,
            }
            for pair in compared
        ]

        def texts_of(row: dict[str, Any]) -> tuple[str, str]:
            return row["newer"]["text"], row["older"]["text"]

        once = {texts_of(one): one for one in reversed([*found, *rows])}
        newest = sorted(once.values(), key=lambda one: (one["newer"]["at"], one["older"]["at"]), reverse=True)
        first = {texts_of(row) for row, pair in zip(rows, compared, strict=True) if pair.first}
        return sorted(newest, key=lambda one: texts_of(one) not in first)[:limit]

    def _places(self, chunks: Iterable[Chunk]) -> dict[str, int]:
        """Return the places of chunks among those of their conversation with the same time, if there are several."""
        times: dict[tuple[str, str], set[str]] = defaultdict(set)
        for chunk in chunks:
            if chunk.metadata.conversation_id is not None:
                times[chunk.metadata.conversation_id, chunk.metadata.at].add(chunk.id)
        return {
            chunk_id: place
            for (conversation, at), ids in times.items()
            if len(ids) > 1
            for place, chunk_id in enumerate(self._store.list_chunks(conversation, at, at))
        }

    def _statement(self, line: Line, text: str, mark: str = "") -> dict[str, Any]:
        self._lines.on_read(line.chunk.id)
        at = line.at
        match = {"match": mark} if mark and mark in text else {}
        return match | {
            "date": at[:10],
            "at": at,
            "speaker": line.speaker,
            "text": one_line(text, SHORT_NOTE),
            "chunk_id": line.chunk.id,
            **outside(line.chunk.metadata.origin, line.chunk.metadata.trust),
        }

    def _linked_pair(self, chunk: Chunk, other_id: str | None, why: str) -> dict[str, Any] | None:
        """Return two linked chunks as a pair; None if the other one no longer exists."""
        other = self._store.get_many([other_id], track=False).get(other_id) if other_id else None
        if other is None:
            return None
        places = self._places((chunk, other))
        older, newer = sorted((chunk, other), key=lambda one: (one.metadata.at, places.get(one.id, 0)))
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
