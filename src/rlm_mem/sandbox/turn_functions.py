"""Host functions that list turns: turns and grep, with the whole reply or its headings if requested."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any

from rlm_mem import search as searching
from rlm_mem.chunk import name_key
from rlm_mem.sandbox.arguments import MAX_LINES, chunk_id_of, count, day, optional_text, wanted_texts
from rlm_mem.sandbox.engine import HostCallFailed
from rlm_mem.sandbox.line_functions import HostFunctions, Line, Lines, is_assistant, is_speaker, part_of
from rlm_mem.sandbox.matching import MAX_MATCHES, Span, WantedTexts, around, bounded
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.blocks import CODE, blocks, one_line
from rlm_mem.text.dates import find_dates
from rlm_mem.text.patterns import late, linear

if TYPE_CHECKING:
    from datetime import datetime

    from rlm_mem.chunk import Chunk

_MAX_PATTERN = 1_000
_PATTERN_BYTES = 8 << 20
"""Maximum bytes of memory of the automaton of the pattern of ``grep``."""
_MATCH_CHARS, _MATCHED_CHARS, _MIN_MATCHED = 500, 1_000, 60
"""Maximum characters of a line with matches of ``grep`` and of all lines of a turn; the minimum for a further line."""
MAX_WHOLE_CHARS = 20_000
"""Maximum characters of a whole turn, which may have been split into several chunks."""
MAX_POINTS_CHARS = 600
"""Maximum characters of the headings of one reply in ``turns``."""
_MANY_ROWS = 10
_MAX_POINTS_OF_MANY = 150
"""Maximum characters of the headings of one reply if a list has more than ``_MANY_ROWS`` rows."""
_POINTS_OF_LIST, _MIN_POINTS_CHARS = 2_000, 40
"""Characters of the headings of all replies of such a list, and the minimum of each reply."""
_WHOLE_OF_ONE, _WHOLE_OF_LIST = 6_000, 4_000
"""Default characters of a turn and of its reply: of a single row, and in all for several rows."""
_MIN_OF_LIST = 300
"""Minimum characters of each of several."""
_MIN_WHOLE_CHARS = 100
_ASKED_CHARS = 200
"""Maximum characters of a turn of whose reply only a section is returned."""
_SHORT_CODE = 3
"""Maximum lines of a block of code in a whole turn; longer ones are replaced by a mark."""
_OPEN_FENCE = late(r"(?:\A|(?<=\n))```\w{1,20}[ \t]*\n")
"""The beginning of a block of code with the name of its language."""
_MIN_RECURRING = 3
"""Minimum number of days or conversations at which a heading of their replies is not specific: "Final Steps"."""
_REPLY_CHUNKS = 8
"""Maximum chunks after a turn that are searched for the reply and its headings."""
_POINT = late(
    r"^(?:(#{1,6})[ \t]{1,4}([^\n]{1,70})|([ \t]{0,8})(?:[-*]|\d{1,2}\.)[ \t]{1,4}\*\*([^*\n]{1,70})\*\*)",
    re.MULTILINE,
)
_TOLD = late(
    r"[ \t:*]{0,4}(?:[ \t]{0,8}\n){0,3}[ \t]{0,8}(?:[-*][ \t]{1,4})?(?![-*#|>`\[\d]|[ \t\n])([^\n]{1,400})"
)
"""What a heading or label introduces: the rest of its line, or the line of prose or the item below it."""
_TOLD_CHARS, _MIN_TOLD = 90, 45
"""Maximum and minimum characters of that in ``turns``, if the headings leave room."""
_CLOCK = late(r"\d{1,2}(?:[:.]\d\d|(?: ?[AaPp]\.?[Mm]\b))")
_NUMBERING = late(r"[*# ]*+(?:\d{1,2}[.)][ \t]++|[^\W\d_]{2,12} \d{1,2}: (?=\S))?[*# ]*+")
_BELOW_HEADINGS = 10
"""The level of a bold label without indentation; headings have the levels 1 to 6."""


class TurnFunctions(HostFunctions):
    """The functions that list turns; :mod:`rlm_mem.sandbox.reference` documents each."""

    def turns(
        self,
        author: Any = None,
        contains: Any = None,
        start: Any = None,
        end: Any = None,
        conversation_id: Any = None,
        limit: Any = 50,
        offset: Any = 0,
        chunks: Any = None,
        points: Any = False,
        whole: Any = False,
        chars: Any = None,
        code: Any = False,
        unseen: Any = False,
        every: Any = False,
        heading: Any = None,
    ) -> list[dict[str, Any]]:
        """Return lines of conversations in order of time, or those of some chunks."""
        who = optional_text("author", author)
        texts = WantedTexts(
            wanted_texts("contains", contains) if contains else [],
            get_analyser(self._store.config.search.language),
            self._occurs,
            self._lines.check,
            every=bool(every),
        )
        today = self._store.clock()
        period = day("start", start, today), day("end", end, today, last=True)
        conversation = optional_text("conversation_id", conversation_id)
        listed_before = self._lines.listed_before(unseen)
        sections = wanted_texts("heading", heading) if heading else []
        whole = bool(whole or sections)

        def found(*, code: bool) -> Iterator[Line]:
            """Return the requested lines; text in pasted code only counts with ``code``."""
            lines = (
                self._lines_with(who, texts, conversation, *period)
                if chunks is None
                else self._turns_of(chunks, exchanges=who is None and (whole or bool(points)))
            )
            return (
                line
                for line in lines
                if line.chunk.id not in listed_before
                and (who is None or is_speaker(line.speaker, who))
                and texts.match(line.text if code else _prose(line))
            )

        code = bool(code)
        matching = found(code=code)
        if texts and not code:
            first = next(matching, None)
            code = first is None
            matching = found(code=True) if first is None else chain((first,), matching)
        listed = self.cut.part("turns", matching, limit, offset)
        if not listed and who is not None:
            self._remark_unknown("turns", who)
        following_turns = FollowingTurns(self._lines)
        if whole:
            listed, shown = self._whole_rows(listed, following_turns, chars, code, sections)
        else:
            shown = [
                self._lines.shown(line, _without_code(line.text) if not code and "```" in line.text else None)
                for line in listed
            ]
        if texts:
            for row in shown:
                row["matches"] = texts.matches(row["text"])
                row["match"] = next(iter(row["matches"]), None)
        if points:
            for row, found_points in zip(shown, _points_of(listed, following_turns, today), strict=True):
                row["points"] = [title for title, _ in found_points]
                row["below"] = [told for _, told in found_points]
        return shown

    def grep(
        self,
        pattern: Any,
        author: Any = None,
        ignore_case: Any = True,
        limit: Any = 50,
        offset: Any = 0,
        start: Any = None,
        end: Any = None,
        unseen: Any = False,
    ) -> list[dict[str, Any]]:
        """Return lines that a regular expression matches, in order of time."""
        who = optional_text("author", author)
        search = _compiled(pattern, bool(ignore_case))
        today = self._store.clock()
        first, last = day("start", start, today), day("end", end, today, last=True)
        listed_before = self._lines.listed_before(unseen)
        found = (
            (line, spans)
            for chunk in self._lines.chunks(None, first, last)
            if chunk.id not in listed_before
            and self._may_contain(chunk, who)
            and next(search(chunk.content), None) is not None
            for line in self._lines.lines(chunk)
            if who is None or is_speaker(line.speaker, who)
            if (spans := list(islice(search(line.text), MAX_MATCHES)))
        )
        listed = self.cut.part("grep", found, limit, offset)
        if not listed and who is not None:
            self._remark_unknown("grep", who)
        return [self._matched(line, spans) for line, spans in listed]

    # Parts.

    def _occurs(self, term: str) -> bool:
        """Return whether a chunk has a term; the index does not tell for earlier times."""
        return self._store.as_of is not None or searching.occurs(self._store, term)

    def _lines_with(
        self,
        who: str | None,
        texts: WantedTexts,
        conversation: str | None,
        start: str | None,
        end: str | None,
    ) -> Iterator[Line]:
        """Yield the lines of the chunks of a period that may contain one of the texts."""
        ids = self._store.list_chunks(conversation, start, end)
        # The index has present texts only.
        if texts and texts.terms is not None and self._store.as_of is None:
            holding = searching.ids_with_terms(self._store, texts.terms)
            ids = [one for one in ids if one in holding]
        for chunk in self._lines.read(ids):
            if self._may_contain(chunk, who):
                yield from self._lines.lines(chunk)

    def _may_contain(self, chunk: Chunk, author: str | None) -> bool:
        """Return whether a chunk can contain a line of an author, before it is split into lines."""
        if author is None or name_key(author) in name_key(chunk.content):
            return True
        return self._lines.in_chat and part_of(chunk)[0] > 1

    def _matched(self, line: Line, spans: list[Span]) -> dict[str, Any]:
        """Return a turn with its matches, and of its text the lines with a match, or the parts around far matches."""
        text = line.text
        parts: list[str] = []
        left = _MATCHED_CHARS
        for start, end, within in _lines_of(text, spans):
            if left < _MIN_MATCHED:
                parts.append(f"(+{sum(len(one) for _, _, one in _lines_of(text, spans)) - len(parts)})")
                break
            parts.append(_excerpt(text[start:end], within, min(left, _MATCH_CHARS)))
            left -= len(parts[-1])
        matches = dict.fromkeys(text[start : min(end, start + _MATCH_CHARS)] for start, end in spans)
        row = self._lines.shown(line, " … ".join(parts))
        return row | {"match": next(iter(matches)), "matches": list(matches)}

    def _turns_of(self, chunks: Any, *, exchanges: bool) -> Iterator[Line]:
        """Yield the turns in some chunks, each once, in the order of the chunks, including turns that they continue.

        Args:
            exchanges: yield the turn of the user in place of the assistant's reply to it.
        """
        given = chunks if isinstance(chunks, list | tuple) else [chunks]
        if len(given) > MAX_LINES:
            raise HostCallFailed(
                "ValueError", f"chunks has {len(given):,} rows; at most {MAX_LINES} are taken"
            )
        speakers_of: dict[str, set[Any]] = {}
        for one in given:
            # Of a row, only the turns of its speaker.
            who = one.get("speaker") if isinstance(one, dict) else None
            speakers_of.setdefault(chunk_id_of("turns", one, self._lines.seen), set()).add(who)
        seen: set[tuple[str, int]] = set()
        for chunk in self._lines.read(list(speakers_of)):
            speakers = speakers_of[chunk.id]
            for turn in self._turns_in(chunk):
                if speakers.isdisjoint((None, turn.speaker)):
                    continue
                line = self._question_of(turn) if exchanges and is_assistant(turn.speaker) else turn
                if (line.chunk.id, line.number) not in seen:
                    seen.add((line.chunk.id, line.number))
                    yield line

    def _turns_in(self, chunk: Chunk) -> list[Line]:
        """Return the turns that begin in a chunk, and the one that it continues; for a note, each line."""
        lines = list(self._lines.lines(chunk))
        if not lines or not self._lines.in_chat or lines[0].speaker is None:
            return lines
        begun = [] if self._lines.begins(lines[0]) else self._continued_turn(chunk)
        return begun + list(filter(self._lines.begins, lines))

    def _continued_turn(self, chunk: Chunk) -> list[Line]:
        """Return the turn that a chunk continues; empty if it is too far back."""
        earlier = self._store.neighbours(chunk.id, before=_REPLY_CHUNKS, after=0)[0]
        for before in reversed(list(self._lines.read(earlier))):
            begun = list(filter(self._lines.begins, self._lines.lines(before)))
            if begun:
                return begun[-1:]
        return []

    def _question_of(self, reply: Line) -> Line:
        """Return the turn that an assistant's reply answers; the reply itself if that is too far back."""
        before = [Line(reply.chunk, reply.said, number) for number in range(reply.number)]
        neighbours = self._store.neighbours(reply.chunk.id, before=_REPLY_CHUNKS, after=0)[0]
        earlier = (
            line
            for chunk in reversed(list(self._lines.read(neighbours)))
            for line in reversed(list(self._lines.lines(chunk)))
        )
        return next(
            (
                line
                for line in chain(reversed(before), earlier)
                if self._lines.begins(line) and not is_assistant(line.speaker)
            ),
            reply,
        )

    def _whole_rows(
        self, lines: list[Line], following_turns: FollowingTurns, chars: Any, code: bool, headings: list[str]
    ) -> tuple[list[Line], list[dict[str, Any]]]:
        """Return the lines, without those in an earlier row, and their rows with whole turn and reply.

        Args:
            headings: if any, rows have only the sections with one of them, and others are left out.
        """
        max_chars = None if chars is None else count("chars", chars, _MIN_WHOLE_CHARS, MAX_WHOLE_CHARS)
        listed_places: set[tuple[str, int]] = set()
        wholes: list[tuple[Line, str, str]] = []
        for line in lines:
            if (line.chunk.id, line.number) not in listed_places:
                turn, reply = (
                    (line.text, "") if line.speaker is None else following_turns.whole(line, listed_places)
                )
                if headings:
                    own, below = (self._sections(one, headings) for one in (turn, reply))
                    if not own and not below:
                        continue
                    turn, reply = own or bounded(turn, _ASKED_CHARS), below
                wholes.append((line, turn, reply))
        if lines and not wholes and headings:
            self.cut.add_remark(
                f"{len(lines)} rows, of which none has such a heading; points=True instead lists the headings"
            )
        limit = max_chars or (
            max(_MIN_OF_LIST, _WHOLE_OF_LIST // len(wholes)) if len(wholes) > 1 else _WHOLE_OF_ONE
        )
        rows: list[dict[str, Any]] = []
        left_out = False
        cut: tuple[str, str, int] | None = None
        for line, *turn_and_reply in wholes:
            prose = turn_and_reply if code else list(map(_without_code, turn_and_reply))
            turn, reply = (bounded(one, limit) for one in prose)
            rows.append(self._lines.shown(line) | {"text": turn, "reply": reply, "whole": True})
            left_out = left_out or prose != turn_and_reply
            for name, one, whole in zip(("text", "reply"), (turn, reply), prose, strict=True):
                if one != whole and cut is None:
                    cut = line.chunk.id, name, len(one) - 1
        if cut is not None:
            chunk_id, name, place = cut
            how = f"chars={MAX_WHOLE_CHARS}{', code=True' if code else ''}"
            how += f", heading={headings!r}" if headings else ""
            self.cut.add_remark(
                f"turns and replies after {limit:,} characters each; the first goes on: "
                f"print(turns(chunks='{chunk_id}', whole=True, {how})[0]['{name}'][{place}:])"
            )
        if left_out:
            self.cut.add_remark("blocks of code; code=True gives them")
        return [line for line, _, _ in wholes], rows

    def _sections(self, text: str, headings: list[str]) -> str:
        """Return the sections of a text with these headings, or whose headings have all words of one of them."""
        analyser = get_analyser(self._store.config.search.language)
        labels = [(match, _title(match)) for match in _labels(text)]
        chosen: set[int] = set()
        for one in headings:
            named = [match for match, title in labels if title.casefold() == one.casefold()]
            terms = set(analyser.terms(one))
            with_all = (match for match, title in labels if terms and terms.issubset(analyser.terms(title)))
            chosen.update(match.start() for match in named or with_all)
        parts: list[str] = []
        end = 0
        for place, (match, _) in enumerate(labels):
            if match.start() in chosen and match.start() >= end:
                below = (one.start() for one, _ in labels[place + 1 :] if _level(one) <= _level(match))
                end = next(below, len(text))
                parts.append(text[match.start() : end].strip())
        return "\n\n".join(parts)


def _points_of(
    lines: list[Line], following_turns: FollowingTurns, today: datetime
) -> Iterator[list[tuple[str, str]]]:
    """Yield the headings of the replies to each of several lines that are chosen for its row, and what follows each."""
    listed_places: set[tuple[str, int]] = set()  # a reply may have its own row after that of its turn
    found: list[list[tuple[int, str]]] = []
    place_of: list[dict[str, tuple[str, int]]] = []
    for line in lines:
        new = [point for point in following_turns.points(line) if point[2] not in listed_places]
        listed_places.update(place for _, _, place in new)
        found.append([(level, title) for level, title, _ in new])
        place_of.append({title: place for _, title, place in new})
    recurring = recurring_titles(
        (line.chunk, (title for _, title in points)) for line, points in zip(lines, found, strict=True)
    )
    each = max(_MIN_POINTS_CHARS, min(_MAX_POINTS_OF_MANY, _POINTS_OF_LIST // max(1, len(lines))))
    room = each if len(lines) > _MANY_ROWS else MAX_POINTS_CHARS
    for points, places in zip(found, place_of, strict=True):
        kept = [one for one in points if one[1] not in recurring and not timed(one[1], today)]
        chosen = chosen_titles(kept, room)
        each = min(_TOLD_CHARS, (room - sum(map(len, chosen))) // max(1, len(chosen)))
        yield [(title, following_turns.told_below(places[title], each)) for title in chosen]


class FollowingTurns:
    """The turns after the lines of one list, which share most of the chunks that follow them."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._following: dict[str, Chunk | None] = {}
        """The next chunk by chunk id, if it was looked up."""
        self._headed: dict[str, Chunk] = {}
        """The chunks with headings that were found."""
        self._code: dict[str, list[tuple[int, int]]] = {}
        """Start and end of each block of code, by chunk id."""

    def whole(self, line: Line, listed_places: set[tuple[str, int]]) -> tuple[str, str]:
        """Return a whole turn and the reply to it, which may be split into several chunks; add their places."""
        turn: list[str] = []
        reply: list[str] = []
        ended = False
        for one in self._lines_from(line):
            if turn and self._lines.begins(one, line):
                if reply:
                    break
                ended = True
                if one.speaker == line.speaker:
                    continue
            elif ended and not reply:
                continue  # part of a further turn of the same speaker
            self._lines.on_read(one.chunk.id)
            listed_places.add((one.chunk.id, one.number))
            if ended:
                reply.append(one.chunk.content[one.turn.start : one.turn.end])
            else:
                turn.append(one.text)
        return "\n\n".join(turn), "\n\n".join(reply)

    def _lines_from(self, line: Line) -> Iterator[Line]:
        """Yield a line and those after it in its conversation."""
        yield from (Line(line.chunk, line.said, number) for number in range(line.number, len(line.said)))
        if line.speaker is None or line.chunk.metadata.conversation_id is None:
            return
        for chunk in self._following_chunks(line.chunk):
            yield from self._lines.lines(chunk)

    def _following_chunks(self, chunk: Chunk) -> Iterator[Chunk]:
        """Yield the chunks after one in its conversation."""
        following = self._following
        for _ in range(_REPLY_CHUNKS):
            if chunk.id not in following:
                later = self._lines.store.neighbours(chunk.id, before=0, after=_REPLY_CHUNKS)[1]
                run = [chunk, *self._lines.read(later)]
                following.update((one.id, other) for one, other in pairwise(run))
                if len(later) < _REPLY_CHUNKS:
                    following[run[-1].id] = None
            found = following.get(chunk.id)
            if found is None:
                return
            yield found
            chunk = found

    def points(self, line: Line) -> Iterator[tuple[int, str, tuple[str, int]]]:
        """Yield the headings of a note, or of a turn and its replies up to the next turn of its speaker; each once.

        Each has its level (the number of its marks, or for a bold label its indentation below all headings) and its
        position.
        """
        seen: set[str] = set()
        for one in self._lines_from(line):
            itself = one.chunk.id == line.chunk.id and one.number == line.number
            if one.speaker == line.speaker and one.labelled and not itself:
                return
            for match in self._headings(one):
                title = _title(match)
                if title and title not in seen:
                    seen.add(title)
                    yield _level(match), title, (one.chunk.id, match.start())

    def told_below(self, place: tuple[str, int], chars: int) -> str:
        """Return the beginning of what a heading or label introduces, on one line; empty if it has no room.

        Args:
            place: chunk id and position of the heading, as :meth:`points` yields them.
        """
        if chars < _MIN_TOLD:
            return ""
        label = _POINT.match(self._headed[place[0]].content, place[1])
        below = None if label is None else _TOLD.match(label.string, label.end())
        told = "" if below is None else one_line(below[1], 4 * chars)
        is_lead = told.endswith(":")  # "Here is the code:"
        return bounded(told, chars) if not is_lead and any(map(str.isalnum, told)) else ""

    def _headings(self, line: Line) -> Iterator[re.Match[str]]:
        """Return the headings and bold items of a line, in order, except in code, where # begins a comment."""
        self._lines.check()
        chunk = line.chunk
        found = list(_POINT.finditer(chunk.content, line.turn.start, line.turn.end))
        if found and chunk.id not in self._code:
            self._headed[chunk.id] = chunk
            self._code[chunk.id] = [(one.start, one.end) for one in blocks(chunk.content) if one.kind == CODE]
        code = self._code[chunk.id] if found else []
        return (match for match in found if not any(start <= match.start() < end for start, end in code))


def recurring_titles(titled: Iterable[tuple[Chunk, Iterable[str]]]) -> set[str]:
    """Return headings that recur on several days or in several conversations, given chunks with their headings."""
    found: dict[str, set[tuple[str | None, str]]] = defaultdict(set)
    for chunk, own in titled:
        for title in own:
            found[title].add((chunk.metadata.conversation_id, chunk.metadata.at[:10]))
    return {title for title, where in found.items() if len(where) >= _MIN_RECURRING}


def titles(text: str) -> set[str]:
    """Return the headings and bold labels of a text, including apparent ones in code."""
    return set(map(_title, _POINT.finditer(text)))


def _labels(text: str) -> Iterator[re.Match[str]]:
    """Yield the headings and bold labels of a text, except in code, where # begins a comment."""
    found = list(_POINT.finditer(text))
    code = [(one.start, one.end) for one in blocks(text) if one.kind == CODE] if found else []
    return (match for match in found if not any(start <= match.start() < end for start, end in code))


def _level(match: re.Match[str]) -> int:
    """Return the number of marks of a heading, or for a bold label its indentation below all headings."""
    return len(match[1]) if match[1] else _BELOW_HEADINGS + len(match[3])


def _title(match: re.Match[str]) -> str:
    return _NUMBERING.sub("", match[2] or match[4], count=1).rstrip(" :*#")


def chosen_titles(points: list[tuple[int, str]], room: int) -> list[str]:
    """Return the headings that have room, in order: of the top levels with two, and of more levels that fit."""
    levels = sorted({level for level, _ in points})
    kept: list[str] = []
    for lowest in levels:
        more = [title for level, title in points if level <= lowest]
        if len(kept) > 1 and sum(map(len, more)) > room:
            break
        kept = more
    chosen = []
    for title in kept:
        if len(title) <= room:
            chosen.append(title)
            room -= len(title)
    return chosen


def timed(title: str, today: datetime) -> bool:
    """Return whether a heading begins with a time: "7:00 AM - 7:15 AM: Wake up", "July 11 - July 25"."""
    return _CLOCK.match(title) is not None or any(
        title.startswith(one.text) for one in find_dates(title, today)
    )


def _without_code(text: str) -> str:
    """Replace longer blocks of code in a text by marks, also one that goes on in the next chunk."""
    parts: list[str] = []
    place = 0
    for one in blocks(text):
        lines = text.count("\n", one.start, one.end) - 1  # without the fences
        if one.kind == CODE and lines > _SHORT_CODE:
            parts += text[place : one.start], f"[{lines} lines of code]"
            place = one.end
    unclosed = _OPEN_FENCE.search(text, max(place, text.rfind("```") - 1, 0))
    if unclosed is not None and (lines := text.count("\n", unclosed.end())) > _SHORT_CODE:
        return "".join([*parts, text[place : unclosed.start()], f"[{lines} lines of code]"])
    return "".join([*parts, text[place:]])


def _prose(line: Line) -> str:
    """Return the text of a line; for a turn, without code, whose fence may be within a line ("My code: ```")."""
    return line.text if line.speaker is None else "\n".join(line.text.split("```")[::2])


def _lines_of(text: str, spans: list[Span]) -> list[tuple[int, int, list[Span]]]:
    """Return start and end of each line of a text that has some of the spans, and these, relative to its start."""
    found: list[tuple[int, int, list[Span]]] = []
    for start, end in spans:
        if found and end <= found[-1][1]:
            first, _, within = found[-1]
        else:
            first = text.rfind("\n", 0, start) + 1
            last = text.find("\n", end)
            within = []
            found.append((first, len(text) if last < 0 else last, within))
        within.append((start - first, end - first))
    return found


def _excerpt(text: str, spans: list[Span], chars: int) -> str:
    """Return a line from its start if that has room for all spans, else the parts around them."""
    if spans[-1][1] <= chars:
        return bounded(text.strip(), chars)
    if spans[0][1] - spans[0][0] > chars:  # a match of many lines
        return f"{'…' if spans[0][0] else ''}{text[spans[0][0] : spans[0][0] + chars].strip()}…"
    return around(text, spans, chars)


def _compiled(pattern: Any, ignore_case: bool) -> Callable[[str], Iterator[Span]]:
    """Compile a pattern to a function that yields start and end of each match in a text.

    The host must not run a backtracking pattern of the program's choice, so the engine is RE2.
    """
    if not isinstance(pattern, str):
        raise HostCallFailed("TypeError", "grep takes the pattern as text: grep(r'\\bAna\\b')")
    if len(pattern) > _MAX_PATTERN:
        raise HostCallFailed(
            "ValueError",
            f"grep: the pattern has {len(pattern):,} characters; at most {_MAX_PATTERN:,} are taken",
        )
    try:
        compiled = linear(f"(?m){pattern}", _PATTERN_BYTES, ignore_case=ignore_case)
    except ValueError as error:
        raise HostCallFailed(
            "ValueError",
            f"grep cannot use the pattern {pattern[:80]!r}: {error}. It takes RE2: no lookahead, "
            "lookbehind or backreference, repetitions up to 1,000; for words, write turns(contains='…')",
        ) from None

    def matches(text: str) -> Iterator[Span]:
        # RE2 refuses an unpaired surrogate in stored text; its substitute has the same position.
        found = compiled.finditer(text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8"))
        return (match.span() for match in found)

    return matches
