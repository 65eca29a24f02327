"""Lines of the memory, and the host function that searches for some of them: passages.

They read the memory in order and return bounded plain data, within the program's deadline.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from difflib import get_close_matches
from functools import cached_property
from itertools import chain, filterfalse, islice
from operator import attrgetter
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from rlm_mem import search as searching
from rlm_mem.chunk import LINK_TYPES, Chunk, name_key
from rlm_mem.chunk.types import is_untrusted, outside
from rlm_mem.record import FrozenRecord
from rlm_mem.sandbox.arguments import (
    TruncatedLists,
    count,
    optional_text,
    query_words,
    shortened,
    wanted_texts,
)
from rlm_mem.sandbox.matching import part_around, without_better
from rlm_mem.store.core.encoding import AUTHOR_PREFIX
from rlm_mem.store.core.lookup import Filters, sources_of
from rlm_mem.store.core.records import path_of
from rlm_mem.text.blocks import CODE, Said, blocks, one_line, said_in
from rlm_mem.text.dates import find_dates
from rlm_mem.text.segments import headings_at

if TYPE_CHECKING:
    from rlm_mem.search import Hit
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.lookup import CandidateSource
    from rlm_mem.store.core.records import LinkedChunk

MAX_LINE_CHARS = 4_000
"""Maximum characters of a line that are returned; ``grep`` returns the part around its match."""
MAX_REPLY_CHARS = 400
_PREAMBLE = re.compile(
    r"\s{0,4}(?:[^\n.!?:;]{1,80}!\s{1,4})?(?:(?:Here|Let['’]s|Below)\b[^\n!?]{1,200}:\s*\n)?"
)
"""The beginning of a reply without content: "Great question! Here is how to do it:"."""
_BATCH = 200
_MAX_PARTS_BACK = 8
"""Maximum earlier parts of a text that are searched for the speaker of a later part."""
_MAX_REPLY_CHUNKS = 3
"""Maximum following chunks that are searched for the reply to a line."""


class Line(FrozenRecord, frozen=True):
    """One turn of a chunk, or a whole plain note."""

    chunk: Chunk
    said: list[Said]
    number: int

    @property
    def turn(self) -> Said:
        """Its place in the chunk."""
        return self.said[self.number]

    @property
    def speaker(self) -> str | None:
        """The speaker; None in a plain note."""
        return self.turn.speaker

    @property
    def text(self) -> str:
        """The text, without the label."""
        return self.chunk.content[self.turn.body : self.turn.end]

    @property
    def labelled(self) -> bool:
        """Whether it begins with the label of its speaker."""
        return self.turn.speaker is not None and self.turn.body > self.turn.start

    @property
    def at(self) -> str:
        """The date in the line's label, else the time of the chunk."""
        turn = self.turn
        if turn.body - turn.start > 10:
            for mention in find_dates(self.chunk.content[turn.start : turn.body]):
                if mention.precision == "day":
                    return mention.first.isoformat()
        return self.chunk.metadata.at


class Lines:
    """Reads the lines of a store, for all host functions.

    Args:
        store: bound to one namespace.
        on_read: called with the id of each chunk whose text is returned.
        check: called before each batch of chunks is read, and during long comparisons; raises if the program must end.
        seen: ids of chunks that the programs, or the model that writes them, have seen.
        listed: those that lists of unseen turns leave out.
    """

    def __init__(
        self,
        store: ChunkStore,
        on_read: Callable[[str], None],
        check: Callable[[], None],
        seen: Set[str] = frozenset(),
        listed: Set[str] = frozenset(),
    ) -> None:
        self.store = store
        self.seen = seen
        self._listed = listed
        self.on_read = on_read
        self.check = check
        self._last_speakers: dict[tuple[str | None, int, int], str | None] = {}

    def listed_before(self, unseen: Any) -> frozenset[str]:
        """Return the ids of the chunks that were listed up to now, if only others are wanted."""
        return frozenset(self._listed) if unseen else frozenset()

    @cached_property
    def in_chat(self) -> bool:
        """Whether this memory has chats with an assistant, where headings and lists belong to the last speaker."""
        return bool(users_of(self.store))

    @cached_property
    def chat_speakers(self) -> list[str]:
        """Names of users and of the assistant."""
        names = self.store.candidate_source().authors()
        return [*users_among(names), *filter(is_assistant, names)]

    def chunks(
        self,
        conversation_id: str | None = None,
        start: str | None = None,
        end: str | None = None,
        *,
        newest_first: bool = False,
    ) -> Iterator[Chunk]:
        """Yield chunks in order of time, read in batches."""
        yield from self.read(self.store.list_chunks(conversation_id, start, end, newest_first=newest_first))

    def read(self, ids: Sequence[str]) -> Iterator[Chunk]:
        """Yield the existing chunks with these ids, read in batches."""
        for first in range(0, len(ids), _BATCH):
            self.check()
            batch = ids[first : first + _BATCH]
            found = self.store.get_many(batch, track=False)
            yield from (found[one] for one in batch if one in found)

    def lines(self, chunk: Chunk, *, look_back: bool = True) -> Iterator[Line]:
        """Return the lines of a chunk, in order.

        Args:
            look_back: for the second and later parts of a text, read earlier parts to find the speaker.
        """
        said = self._said(chunk, look_back)
        return (Line(chunk, said, number) for number in range(len(said)))

    def _said(self, chunk: Chunk, look_back: bool = True) -> list[Said]:
        said = said_in(chunk.content)
        return self._with_speakers(chunk, said, look_back) if self.in_chat else said

    def _with_speakers(self, chunk: Chunk, said: list[Said], look_back: bool) -> list[Said]:
        """Return the lines of a chat; a line without a label gets the last speaker before it."""
        part, parts = part_of(chunk)
        conversation = chunk.metadata.conversation_id
        speaker = None
        if part > 1 and said and said[0].speaker is None:
            before = (conversation, parts, part - 1)
            speaker = self._last_speakers.get(before)
            if speaker is None and before not in self._last_speakers and look_back:
                speaker = self._last_speaker_before(chunk, part)
        spoken = []
        for one in self._split_at_labels(chunk.content, said):
            # A label may be inside an apparent code block without an end.
            named = one.speaker or speaker
            spoken.append(replace(one, speaker=named))
            speaker = self._last_label(chunk.content[one.body : one.end]) or named
        self._last_speakers = {(conversation, parts, part): speaker}
        return spoken

    def _split_at_labels(self, content: str, said: list[Said]) -> Iterator[Said]:
        """Yield the lines, splitting each before the labels of a user or the assistant in it.

        A text with a single label that is not at its beginning is not recognised as a dialogue, nor is a label below
        the prose that follows code.
        """
        for one in said:
            for place, name in self._labels_in(content, one):
                yield replace(one, end=place)
                body = place + len(name) + 1
                one = Said(place, one.end, body + (content[body : body + 1] == " "), name)
            yield one

    def _labels_in(self, content: str, said: Said) -> list[tuple[int, str]]:
        """Return position and speaker of each label of users or assistant that begins a line, except in code."""
        found = [
            (place, name)
            for name in self.chat_speakers
            for place in _positions(content, f"\n{name}:", said.start, said.end)
        ]
        code = [(one.start, one.end) for one in blocks(content) if one.kind == CODE] if found else []
        return sorted(
            (place + 1, name) for place, name in found if not any(start <= place < end for start, end in code)
        )

    def _last_speaker_before(self, chunk: Chunk, part: int) -> str | None:
        earlier, _ = self.store.neighbours(chunk.id, before=min(part - 1, _MAX_PARTS_BACK), after=0)
        found = self.store.get_many(earlier, track=False)
        for one in reversed(earlier):
            speaker = self._last_label(found[one].content) if one in found else None
            if speaker is not None:
                return speaker
        return None

    def _last_label(self, text: str) -> str | None:
        """Return the user or assistant with the last label at the beginning of a line of a text."""
        last, speaker = -1, None
        for name in self.chat_speakers:
            place = max(text.rfind(f"\n{name}:"), 0 if text.startswith(f"{name}:") else -1)
            if place > last:
                last, speaker = place, name
        return speaker

    def ended(self, chunk: Chunk) -> dict[str, str]:
        """Return the mark of a chunk whose validity is over although no other one replaced it, or an empty dict."""
        end = None if chunk.metadata.superseded_by else self.store.ended_at(chunk.metadata.valid_to)
        return {} if end is None else {"ended_at": end}

    def at(self, chunk: Chunk, position: int, known: dict[str, list[Said]]) -> Line | None:
        """Return the line of a chunk that contains a position.

        Args:
            known: the lines of chunks that were read before, by their ids; extended.
        """
        said = known.get(chunk.id)
        if said is None:  # a chunk may have megabytes, and many hits
            said = known[chunk.id] = self._said(chunk)
        number = bisect_right(said, position, key=attrgetter("start")) - 1
        if number < 0 or position >= said[number].end:
            number = 0
        return Line(chunk, said, number) if said else None

    def reply(self, line: Line) -> str:
        """Return the next turn of another speaker in the conversation, with its label; empty if there is none."""
        for later in line.said[line.number + 1 :]:
            if later.speaker != line.speaker:
                return _reply_line(line.chunk.content, later)
        if line.speaker is None or line.chunk.metadata.conversation_id is None:
            return ""
        _, after = self.store.neighbours(
            line.chunk.id, before=0, after=_MAX_REPLY_CHUNKS if self.in_chat else 1
        )
        for chunk_id in after:
            for chunk in self.store.get_many([chunk_id], track=False).values():
                for other in islice(self.lines(chunk), 5):
                    if other.speaker != line.speaker:
                        text = _reply_line(chunk.content, other.turn)
                        known = is_untrusted(line.chunk.metadata.trust)  # the line itself is marked
                        return text if known else with_trust_mark(chunk, text)
        return ""

    def shown(self, line: Line, text: str | None = None) -> dict[str, Any]:
        """Return a line as a dict for programs, and record it as read; ``text``: return this part instead of all."""
        self.on_read(line.chunk.id)
        words = line.text if text is None else text
        at = line.at
        return {
            "date": at[:10],
            "at": at,
            "speaker": line.speaker,
            "text": shortened(words, MAX_LINE_CHARS),
            "reply": self.reply(line),
            "chunk_id": line.chunk.id,
            "conversation_id": line.chunk.metadata.conversation_id,
            "superseded_by": line.chunk.metadata.superseded_by,
            **(self.ended(line.chunk) if line.chunk.metadata.valid_to else {}),
            **outside(line.chunk.metadata.origin, line.chunk.metadata.trust),
        }

    def begins(self, line: Line, after: Line | None = None) -> bool:
        """Return whether a turn begins with a line, in a chat with an assistant with the label of one of the two.

        A bold heading in an answer, such as "**Idea from Rosa:** …", looks like a speaker too.

        Args:
            after: an earlier line with a known speaker.
        """
        chat = self.in_chat and (after is None or after.speaker in self.chat_speakers)
        return line.labelled and (not chat or line.speaker in self.chat_speakers)


def _reply_line(content: str, turn: Said) -> str:
    """Return a reply on one line, with its label, and without the preamble of a long reply of an assistant."""
    body = turn.body
    if turn.end - body > MAX_REPLY_CHARS and is_assistant(turn.speaker):
        preamble = _PREAMBLE.match(content, body, turn.end)
        body = preamble.end() if preamble else body
    label = f"{content[turn.start : turn.body].rstrip()} " if turn.body > turn.start else ""
    left_out = "… " if body > turn.body else ""
    return one_line(f"{label}{left_out}{content[body : turn.end]}", MAX_REPLY_CHARS)


def _positions(text: str, part: str, start: int, end: int) -> Iterator[int]:
    place = text.find(part, start, end)
    while place >= 0:
        yield place
        place = text.find(part, place + 1, end)


def part_of(chunk: Chunk) -> tuple[int, int]:
    """Return the number of a chunk among the parts of its text, and the number of parts."""
    provenance = chunk.metadata.provenance or {}
    part, parts = provenance.get("part"), provenance.get("parts")
    return (part, parts) if isinstance(part, int) and isinstance(parts, int) else (1, 1)


def with_trust_mark(chunk: Chunk, text: str) -> str:
    """Return text of a chunk for use in another result, marked if it is untrusted."""
    about = chunk.metadata
    return f"[untrusted: {about.origin}] {text}" if is_untrusted(about.trust) else text


def is_speaker(speaker: str | None, wanted: str) -> bool:
    """Return whether a speaker has a name: the whole name or one word of it, ignoring case."""
    if speaker is None:
        return False
    name, asked = name_key(speaker), name_key(wanted)
    return name == asked or asked in name.split()


MAX_PASSAGES = 50
_MATCH_CHARS = 500
_MIN_WIDTH = 100
"""Minimum of the characters of a passage that a program may set."""
SHORT_NOTE = 600
"""Maximum characters of a note without speakers that is returned whole."""
_HEADING = re.compile(
    r"^(?:#{1,6}[ \t]+(?P<title>.{1,200})|\*\*(?P<bold>[^*\n]{1,80})\*\*.{0,60})$", re.MULTILINE
)
_MAX_EXPANDED = 5
"""Number of passages for which neighbours in other chunks and links are looked up."""
_Sides = tuple[list[str], list[str]]
"""Lines before, and lines after."""
_RANK_OFFSET = 3
"""Added to each rank in merging two rankings; a larger value reduces the lead of the first ranks."""
_FOLLOWED = sorted(kind.name for kind in LINK_TYPES if kind.weight == 1)
_MAX_FOLLOWED_CHUNKS = 3
_FOLLOWED_PENALTY = 0.5
_FOLLOWED_CHARS = 1_500
MAX_FOLLOWED = 50
_MAX_LINKS = 5
_LINKED_CHARS = 300
_MAX_SPEAKERS, _MAX_NEAR = 20, 5
"""Maximum speakers that are listed: of a memory, and beside an unknown one."""
_MAX_SPOKEN = 200
"""Maximum chunks that are searched for speakers of conversations without an assistant."""
_USERS = frozenset(("user", "human"))
_ASSISTANTS = frozenset(("assistant", "ai", "bot", "chatbot", "chatgpt", "claude", "model", "system", "tool"))


class HostFunctions:
    """Functions of programs over the lines of a store.

    Attributes:
        cut: the lists that were cut at their limit.
    """

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._store = lines.store
        self.cut = TruncatedLists()

    def _remark_unknown(self, function: str, speaker: str) -> None:
        """Add a remark if a list is empty because the memory has no such speaker, with the speakers that it has."""
        names = self._store.authors()
        if any(is_speaker(name, speaker) for name in names):
            return
        near = get_close_matches(speaker, names, _MAX_NEAR) or speakers(self._store)[:_MAX_NEAR]
        known = f"it has {', '.join(map(repr, near))}" if near else "nobody speaks in it"
        self.cut.add_remark(f"{function} is empty, since the memory has no speaker {speaker!r:.80}: {known}")


class LineFunctions(HostFunctions):
    """The functions that search for some lines; :mod:`rlm_mem.sandbox.reference` documents each."""

    def passages(
        self, query: Any, limit: Any = 10, neighbours: Any = 1, conversation_id: Any = None, chars: Any = None
    ) -> list[dict[str, Any]]:
        """Return turns, sentences or short notes that match one text or any of several, best first.

        They are ranked by their own score and by that of their chunk. Passages of chunks that replaced, contradict,
        elaborate or support the best three chunks follow, beyond ``limit``.
        """
        maximum = count("limit", limit, 1, MAX_PASSAGES)
        near = count("neighbours", neighbours, 0, 5)
        width = None if chars is None else count("chars", chars, _MIN_WIDTH, MAX_LINE_CHARS)
        queries = [query_words("passages", one) for one in wanted_texts("query", query)]
        within = optional_text("conversation_id", conversation_id)
        filters = {"conversation_id": within} if within else None
        searches = [searching.passages(self._store, one, limit=maximum, filters=filters) for one in queries]
        read = {chunk_id: chunk for one in searches for chunk_id, chunk in one.chunks.items()}
        hits = [hit for one in searches for hit in one.hits]
        whole = searches[0].ranking if searches else []
        order: dict[str, float] = defaultdict(float)
        for ranked in ([hit.chunk_id for hit in hits], whole):
            for rank, chunk_id in enumerate(dict.fromkeys(ranked)):
                order[chunk_id] += 1 / (_RANK_OFFSET + rank)
        found: dict[tuple[str, int], tuple[Line, int, Hit]] = {}
        known: dict[str, list[Said]] = {}
        for hit in hits:
            line = self._lines.at(read[hit.chunk_id], hit.start, known)
            if line is not None:
                start, end = part_around(read[hit.chunk_id].content, line.turn, hit, width or 0, SHORT_NOTE)
                if width:
                    better = (
                        (begun, until) for (one, begun), (_, until, _) in found.items() if one == hit.chunk_id
                    )
                    start, end = without_better(start, end, hit, better)
                    if start >= end:
                        continue
                # The score for the first text is kept, since scores for different texts cannot be compared.
                found.setdefault((hit.chunk_id, start), (line, end, hit))
        best = sorted(found.items(), key=lambda one: (-order[one[0][0]], -one[1][2].score))[:maximum]
        close = list(dict.fromkeys(chunk_id for (chunk_id, _), _ in best))[:_MAX_EXPANDED]
        linked = self._store.linked_of_each(close, direction="both", limit=MAX_FOLLOWED)
        links = self._links(linked, read)
        beside = self._adjacent_lines([line for _, (line, _, _) in best[:_MAX_EXPANDED]], near, read)
        shown = [
            self._passage(line, start, end, float(hit.score), near, beside if number < _MAX_EXPANDED else {})
            | {"links": links.get(chunk_id, [])}
            | ({} if hit.later_note is None else {"later_note": asdict(hit.later_note)})
            | ({"whole": True} if width else {})
            for number, ((chunk_id, start), (line, end, hit)) in enumerate(best)
        ]
        return shown + self._followed(shown, linked, read)

    # Parts.

    def _read_once(self, chunk_ids: Iterable[str], read: dict[str, Chunk]) -> dict[str, Chunk]:
        """Add the existing chunks to ``read``, the chunks read by this call so far, and return it."""
        missing = set(chunk_ids) - read.keys()
        if missing:
            read.update(self._store.get_many(sorted(missing), track=False))
        return read

    def _passage(
        self, line: Line, start: int, end: int, score: float, near: int, beside: Mapping[str, _Sides]
    ) -> dict[str, Any]:
        """Return a part of a line as a passage; the lines around it may be from the adjacent chunks in ``beside``."""
        chunk = line.chunk
        self._lines.on_read(chunk.id)
        headings = [match for match in _HEADING.finditer(chunk.content, 0, end) if match.start() <= start]
        if headings and headings[-1].end() >= end - 1:
            # For a heading, the whole section is returned.
            end = _section_end(chunk.content, headings[-1].end())
        text = chunk.content[max(start, line.turn.body) : end] or chunk.content[start:end]
        before, after = _around(line, near, beside.get(chunk.id, ([], [])))
        if start > line.turn.body:
            above = chunk.content[line.turn.body : start].strip()
            before = (
                [*before, one_line(above.rpartition("\n")[2], _MATCH_CHARS)][-near:]
                if near and above
                else before
            )
        at = line.at
        return {
            "chunk_id": chunk.id,
            "score": score,
            "date": at[:10],
            "at": at,
            "speaker": line.speaker,
            "text": shortened(text, MAX_LINE_CHARS),
            "heading": headings_above(chunk, [max(start, headings[-1].end()) if headings else start])[0],
            "document": document_of(chunk),
            "conversation_id": chunk.metadata.conversation_id,
            "parts": part_of(chunk)[1],
            "start": start,
            "before": before,
            "after": after,
            "superseded_by": chunk.metadata.superseded_by,
            **(self._lines.ended(chunk) if chunk.metadata.valid_to else {}),
            **outside(chunk.metadata.origin, chunk.metadata.trust),
        }

    def _links(
        self, linked: dict[str, list[LinkedChunk]], read: dict[str, Chunk]
    ) -> dict[str, list[dict[str, Any]]]:
        linked = {one: links[:_MAX_LINKS] for one, links in linked.items()}
        others = self._read_once((link.chunk_id for links in linked.values() for link in links), read)
        return {
            chunk_id: [
                {
                    "chunk_id": link.chunk_id,
                    "type": link.type,
                    "text": one_line(others[link.chunk_id].content, _LINKED_CHARS),
                    **outside(others[link.chunk_id].metadata.origin, others[link.chunk_id].metadata.trust),
                }
                for link in links
                if link.chunk_id in others
            ]
            for chunk_id, links in linked.items()
        }

    def _followed(
        self, shown: list[dict[str, Any]], linked: dict[str, list[LinkedChunk]], read: dict[str, Chunk]
    ) -> list[dict[str, Any]]:
        """Return passages of the chunks that replaced, contradict, elaborate or support the best three chunks."""
        followed: dict[str, float] = {}
        for chunk_id in list(linked)[:_MAX_FOLLOWED_CHUNKS]:
            own = [one for one in shown if one["chunk_id"] == chunk_id]
            score = max(one["score"] for one in own) - _FOLLOWED_PENALTY
            others = [own[0]["superseded_by"]]
            all_known = len(linked[chunk_id]) < MAX_FOLLOWED // 2  # not half, since some may not be shown
            for kind in _FOLLOWED:
                of_kind = linked[chunk_id]
                if not all_known:
                    of_kind = self._store.linked(chunk_id, kind, direction="both", limit=MAX_FOLLOWED)
                others += [link.chunk_id for link in of_kind if link.type == kind]
            for other in others:
                if other and all(one["chunk_id"] != other for one in shown):
                    followed.setdefault(other, score)
        chunks = self._read_once(followed, read)
        return [
            self._passage(line, 0, _FOLLOWED_CHARS, score, 0, {}) | {"links": []}
            for chunk_id, score in followed.items()
            if chunk_id in chunks and (line := next(self._lines.lines(chunks[chunk_id]), None)) is not None
        ]

    def _adjacent_lines(self, lines: Sequence[Line], near: int, read: dict[str, Chunk]) -> dict[str, _Sides]:
        """Return lines of the adjacent chunks of those with too few lines around a passage, all read at once."""
        short = [line.chunk.id for line in lines if min(line.number, len(line.said) - 1 - line.number) < near]
        sides = (
            self._store.neighbours_of_each(list(dict.fromkeys(short)), before=near, after=near)
            if short
            else {}
        )
        chunks = self._read_once((one for side in chain(*sides.values()) for one in side), read)

        def texts(chunk_ids: list[str]) -> list[str]:
            return [text for one in chunk_ids if one in chunks for text in _texts(chunks[one])]

        return {chunk_id: (texts(earlier), texts(later)) for chunk_id, (earlier, later) in sides.items()}


def _around(line: Line, near: int, beside: _Sides) -> _Sides:
    """Return the lines before and after, of the same chunk and then of adjacent ones."""
    if not near:
        return [], []
    content, said, number = line.chunk.content, line.said, line.number
    before = [content[one.start : one.end] for one in said[max(0, number - near) : number]]
    after = [content[one.start : one.end] for one in said[number + 1 : number + 1 + near]]
    if len(before) < near:
        before = [*beside[0][len(before) - near :], *before]
    if len(after) < near:
        after = [*after, *beside[1][: near - len(after)]]
    return [one_line(text, _MATCH_CHARS) for text in before], [one_line(text, _MATCH_CHARS) for text in after]


def headings_above(chunk: Chunk, starts: Sequence[int]) -> list[str]:
    """Return the headings above each of these positions of a chunk, topmost first.

    They include a table's header and a defined term.
    """
    above = (chunk.metadata.provenance or {}).get("headings")
    before = [one for one in above if isinstance(one, str)] if isinstance(above, list) else []  # of the chunk
    return [
        " / ".join(dict.fromkeys(before[:1] + own if own else before))
        for own in headings_at(chunk.content, starts)
    ]


def document_of(chunk: Chunk) -> str:
    """Return the title of a chunk's document and the name of its file without suffix, if known."""
    title, name = (
        chunk.metadata.provenance.get("title"),
        PurePosixPath(path_of(chunk).replace("\\", "/")).stem,
    )
    return " ".join(f"{title if isinstance(title, str) else ''} {name}".split())[:_MATCH_CHARS]


def _texts(chunk: Chunk) -> list[str]:
    return [with_trust_mark(chunk, chunk.content[one.start : one.end]) for one in said_in(chunk.content)]


def users_of(store: ChunkStore) -> frozenset[str]:
    """Return the speakers who talk with an assistant in this memory; empty if there are none or it is unclear."""
    return users_among(store.candidate_source().authors())


def users_among(names: Collection[str]) -> frozenset[str]:
    """Return those of a memory's speakers who talk with an assistant; empty if there are none or it is unclear.

    Since words with colons in text of an assistant may look like speakers, speakers called user are preferred.
    """
    others = frozenset(filterfalse(is_assistant, names))
    if len(others) == len(names):
        return frozenset()
    called = frozenset(name for name in others if name.casefold() in _USERS)
    return called or (others if len(others) == 1 else frozenset())


def speakers(store: ChunkStore) -> list[str]:
    """Return the speakers of the memory, first those of chats with an assistant; at most 20 names.

    Of chats with an assistant, only users and assistant are returned, since many headings in long answers look like
    speakers.
    """
    names = store.authors()
    users = users_among(names)
    chatting = {*users, *filter(is_assistant, names)} if users else set()
    others = names - chatting
    if users and others:
        sources = sources_of(store.candidate_source())
        others &= set().union(*(_speaking_elsewhere(one, others, chatting) for one in sources))
    return [*sorted(chatting), *sorted(others)][:_MAX_SPEAKERS]


def _speaking_elsewhere(source: CandidateSource, names: Set[str], chatting: Set[str]) -> set[str]:
    """Return the names that are speakers of a conversation without a speaker of ``chatting``."""
    import numpy as np

    terms, users = (source.term_ids([AUTHOR_PREFIX + name for name in some]) for some in (names, chatting))
    terms = terms[terms >= 0]
    docs, _ = source.best(terms, np.ones(len(terms)), _MAX_SPOKEN, Filters())
    rows, segments = source.rows(docs, Filters())
    conversations = np.array(rows.conversation, np.int64)
    known = np.unique(conversations[conversations >= 0])
    counts, _ = source.conversation_terms(known, users)
    chats = known[counts.any(axis=1)]
    chunk = np.repeat(np.arange(len(docs)), np.diff(segments.chunk_start))
    chunk_in_chat = np.isin(conversations, chats)
    chunk_in_chat[chunk[np.isin(segments.author, users)]] = True  # chunks without a conversation
    spoken = (segments.author >= 0) & ~chunk_in_chat[chunk]
    return set(source.author_names(np.unique(segments.author[spoken])).values())


def is_assistant(speaker: str | None) -> bool:
    """Return whether a speaker is the assistant of a chat, not its user."""
    return speaker is not None and speaker.casefold() in _ASSISTANTS


def _section_end(content: str, start: int) -> int:
    """Return the end of the section that begins at ``start``: the next heading, or a short note's length."""
    following = _HEADING.search(content, start)
    return min(start + SHORT_NOTE, following.start() if following else len(content))
