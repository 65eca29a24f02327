"""Host functions about a subject across conversations: outline, updates and contradictions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import chain, islice, zip_longest
from operator import mul
from statistics import median
from typing import TYPE_CHECKING, Any

from rlm_mem import search as searching
from rlm_mem.chunk.types import outside
from rlm_mem.sandbox.arguments import count, day, optional_text, query_words, wanted_texts
from rlm_mem.sandbox.comparing import Kind, Statement, differing_pairs
from rlm_mem.sandbox.line_functions import (
    SHORT_NOTE,
    HostFunctions,
    Line,
    is_assistant,
    is_speaker,
    users_of,
)
from rlm_mem.sandbox.turn_functions import (
    FollowingTurns,
    recurring_titles,
    timed,
    titles,
)
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.blocks import CODE, blocks, one_line, sentences
from rlm_mem.text.shortening import Shortener
from rlm_mem.text.telling_titles import TellingTitles

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk

_ROW_CHARS, _FITTING_CHARS, _FACTS_CHARS, _POINTS_CHARS = 120, 250, 40, 50
"""Maximum characters in a row of ``outline``: of a turn, of one that matches well, of figures and names of omitted
clauses, of the headings of the reply."""
_MAX_ROWS = 200
"""Maximum rows of the outline of an opening."""
_LENGTHS = (4.0, 3.0, 2.0, 1.5, 1.25, 1.0, 2 / 3)
"""How many times as many characters a row of an opening may have if all rows then have room, the most first; the last
one if they never have."""
_MIN_LISTED = 0.3
"""Minimum share of the rows without headings that must have room at their usual length for that to be taken: shorter,
they tell less of their turn, but in a long chat, more topics tell more than more words of a few."""
_EVERY_LENGTH, _SHORTEST = 1 / 2, 2 / 5
"""The same for a count, which needs every instance: with turns that match well at their usual length, if these have
room, and without."""
_FITTING_HEADED, _MIN_HEADED, _OTHER_HEADED = 1.5, 0.5, 0.5
"""How many times as many characters the headings have for a turn that has at least this share of the best turn's weight
for a subject, and for another one."""
_MIN_LIKENESS = 0.75
"""Minimum likeness to the turns about a vague subject ("my plans") of a turn that has no word of it, relative to the
median of their own."""
_MAX_LATER, _SHORT_TURN, _LATER_CHARS = 2, 200, 70
"""Follow-up questions listed with the first turn of their conversation: maximum number, and characters of each in full
and as listed."""
_MIN_FIT = 0.75
"""For a query without names, the minimum share of the best turn's weight at which a turn matches well."""
_ROW_HEAD = 6
"""Characters before a printed row."""
_MIN_NAMED = 6
"""Minimum number of turns with a name of its query at which an outline has no turns without one."""
_DAY_CHARS = 11
"""Characters of a printed day."""
_BETWEEN_POINTS = 3
"""Characters before a printed heading."""
_OUTLINED_CHUNKS = 3_000
_MAX_FOUND = 1_000
"""Maximum chunks found by one text."""
_MAX_POINTS = 40
"""Maximum headings of a reply from which those of a row are chosen."""
_EQUAL_MARGIN = 0.05
"""Turns whose weights differ by less than this share of the best one's count as equal, and are spread over time."""
_MIN_NEW = 0.33
"""Turns with less than this share of new terms in their conversation follow up on a reply, and come last."""
_LATE_DISCOUNT, _DAY_TURNS = 0.9, 60
"""The share of its weight that the last turn of a day to an assistant loses, since later turns continue earlier ones,
and the number of turns after which a long day counts as a new one."""
_COMPARED_CHARS = 1_500
"""Maximum characters of each line that are compared."""
_STATEMENTS = 80
"""Maximum lines about a subject whose sentences are compared."""
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
        return self._outlined(
            [query_words("outline", one) for one in wanted_texts("query", query)] if query else [],
            (day("start", start, today), day("end", end, today, last=True)),
            maximum=count("limit", limit, 1, 500),
            room=count("chars", chars, 500, 20_000),
            who=optional_text("author", author),
            points=bool(points),
            left_out=self._lines.listed_before(unseen),
        )

    def account(self, subject: str, chars: int, *, points: bool, every: bool = False) -> list[dict[str, Any]]:
        """Return the outline of a subject for an opening.

        Its rows are longer where all of them then have room, and shorter where not all have. Those of turns without a
        word of the subject, but much like the others, get what is left of the space, half of it if there are many.

        Args:
            chars: maximum characters of all rows.
            points: whether rows have headings of the replies.
            every: rows are as short as is needed for all to have room, those of turns that match well last, and of
                what they say of the subject.
        """
        return self._outlined(
            [subject],
            (None, None),
            maximum=_MAX_ROWS,
            room=chars,
            points=points,
            lengths=(*_LENGTHS, _EVERY_LENGTH, _SHORTEST) if every else _LENGTHS,
            every=every,
        )

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

    def _outlined(
        self,
        queries: list[str],
        period: tuple[str | None, str | None],
        *,
        maximum: int,
        room: int,
        points: bool,
        who: str | None = None,
        left_out: frozenset[str] = frozenset(),
        lengths: tuple[float, ...] = (1.0,),
        every: bool = False,
    ) -> list[dict[str, Any]]:
        """Return the rows of an outline.

        Args:
            queries: texts of which a turn shares a word with one; all turns if none has words.
            maximum: maximum number of rows. room: maximum characters of all, as printed.
            who: the speaker, in a memory without an assistant.
            left_out: ids of chunks without rows.
            lengths: how many times the usual characters a row may have; the first is taken with which all rows have
                room, or without headings, from 1 on, ``_MIN_LISTED`` of them, else the last. If there are several,
                other turns get rows, too; see :meth:`account`.
            every: as many rows as possible are wanted, in whichever place of their day; see :meth:`account`.
        """
        analyser = get_analyser(self._store.config.search.language)
        subjects = [one for one in queries if analyser.terms(one)]
        today = self._store.clock()
        users = frozenset[str]() if who else users_of(self._store)
        following_turns = FollowingTurns(self._lines)
        period_lines = list(self._period_lines(subjects, *period))
        chats = {
            _conversation(line)
            for line in period_lines
            if line.speaker in users or is_assistant(line.speaker)
        }
        if users and not subjects:  # a line of a chat without a label continues the turn of an earlier chunk
            period_lines = [one for one in period_lines if one.labelled or _conversation(one) not in chats]
        own_lines = (
            line
            for line in period_lines
            if line.chunk.id not in left_out
            and (
                line.speaker in users or _conversation(line) not in chats
                if users
                else who is None or is_speaker(line.speaker, who)
            )
        )
        lines = list(_beginnings(own_lines) if users else own_lines)
        lines, later = _with_later(lines) if users else (lines, {})
        texts = [
            "\n".join([line.text, *(one.text for one in later.get(place, ()))])
            for place, line in enumerate(lines)
        ]
        shortener = Shortener(texts, analyser, " ".join(subjects) if every else "")
        days = [line.at[:10] for line in lines]
        early = _day_factors(days) if users and not every else [1.0] * len(days)
        follow_ups = _follow_ups(period_lines, lines, shortener)
        rankings: list[list[int]] = []
        weights = [0.0] * len(lines)
        for one in subjects or [""]:
            own = [shortener.share(text, one) if one else shortener.content(text) for text in texts]
            ranked = sorted(_best_of_each_day(days, list(map(mul, own, early))), key=follow_ups.__contains__)
            tiers = _group_by_names(ranked, period_lines, lines, one, shortener)
            rankings.append(list(chain.from_iterable(tiers)))
            weights = list(map(max, weights, own))
        # Interleave, so that each text gets its best turns.
        best = list(
            dict.fromkeys(place for some in zip_longest(*rankings) for place in some if place is not None)
        )
        chunks = {line.chunk.id: line.chunk for line in period_lines}
        titled = {chunk_id: titles(chunk.content) for chunk_id, chunk in chunks.items()} if points else {}
        recurring = recurring_titles((chunks[chunk_id], own) for chunk_id, own in titled.items())
        telling_titles = TellingTitles(titled.values(), analyser)
        names = frozenset[str]().union(*map(shortener.names, subjects))
        top = max(weights, default=0.0) or 1.0

        def fits(place: int) -> bool:
            """Whether a turn matches well."""
            if names:
                return shortener.has(texts[place], names)
            return bool(subjects) and weights[place] >= _MIN_FIT * top

        def row(place: int, times: float, told: Set[str]) -> tuple[str, list[str]]:
            """The text of a row, and its headings, with so many times the usual characters at most.

            Args:
                told: terms of other rows.
            """
            headed = 1.0
            if subjects:
                headed = _FITTING_HEADED if weights[place] >= _MIN_HEADED * top else _OTHER_HEADED
            candidates = (
                title
                for one in (lines[place], *later.get(place, ()))
                for _, title, _ in following_turns.points(one)
                if title not in recurring and not timed(title, today)
            )
            own_points = (
                telling_titles.chosen(
                    list(dict.fromkeys(islice(candidates, _MAX_POINTS))),
                    shortener.terms(texts[place]) | told,
                    int(max(1, times) * _POINTS_CHARS * headed),
                )
                if points
                else []
            )
            row_chars = int(times * _ROW_CHARS)
            if fits(place):
                usual = every and _EVERY_LENGTH <= times < 1
                row_chars = int((1 if usual else times) * _FITTING_CHARS)
            text = shortener.short(lines[place].text, row_chars, _FACTS_CHARS, told)
            text += "".join(f" > {shortener.short(one.text, _LATER_CHARS)}" for one in later.get(place, ()))
            return text, own_points

        akin = (
            sorted(
                _best_of_each_day(days, list(map(mul, _akin(texts, weights, shortener), early))),
                key=follow_ups.__contains__,
            )
            if users and len(lengths) > 1 and not (every or names)
            else []
        )
        chosen: dict[int, tuple[str, list[str]]] = {}
        told: set[str] = set()
        left = room

        def add_rows(places: Iterable[int], times: float) -> None:
            """Add rows while there is room; ``left`` is then negative if there was not enough."""
            nonlocal left
            listed = {days[place] for place in chosen}
            for place in places:
                text, own_points = row(place, times, told)
                left -= _ROW_HEAD + len(text) + sum(len(one) + _BETWEEN_POINTS for one in own_points)
                left -= 0 if days[place] in listed else _DAY_CHARS
                if chosen and left < 0:
                    break
                chosen[place] = text, own_points
                listed.add(days[place])
                told.update(analyser.terms("\n".join((text, *own_points))))

        least = sum(map(fits, best)) if every else len(best) * (1 if points else _MIN_LISTED)
        longest = _EVERY_LENGTH if every else 1.0
        for times in lengths:
            chosen, told, left = {}, set(), room
            add_rows(best[:maximum], times)
            if left >= (room // 2 if akin and times > 1 else 0):
                add_rows(akin[: maximum - len(chosen)], min(times, 1))
                break
            if times <= longest and len(chosen) >= least:
                break
        for place in chosen:
            for question in later.get(place, ()):
                self._lines.on_read(question.chunk.id)
        # A stable sort keeps lines of the same time in the order in which they were stored.
        rows = sorted(
            ((lines[place], *chosen[place], weights[place] / top) for place in sorted(chosen)),
            key=lambda row: row[0].at,
        )
        outlined = list(self._outline_rows(rows))
        listed_best = sum(place in chosen for place in best)
        if listed_best < len(best):
            matching = " that share a word with its query" if subjects else ""
            self.cut.add_remark(
                f"outline returned {listed_best} of {len(best):,} turns{matching}; "
                "more chars, or start and end, give others"
            )
        return outlined

    def _period_lines(self, subjects: list[str], start: str | None, end: str | None) -> Iterator[Line]:
        """Yield the lines of a period: of its first chunks or, in a long period, of those with a word of the texts."""
        ids = self._store.list_chunks(None, start, end)
        if subjects and len(ids) > _OUTLINED_CHUNKS:
            maximum = min(_MAX_FOUND, _OUTLINED_CHUNKS // len(subjects))
            known = {
                one for text in subjects for one in searching.keyword_ids(self._store, text, limit=maximum)
            }
            ids = [one for one in ids if one in known]
        for chunk in self._lines.read(ids[:_OUTLINED_CHUNKS]):
            yield from self._lines.lines(chunk)

    def _outline_rows(self, rows: list[tuple[Line, str, list[str], float]]) -> Iterator[dict[str, Any]]:
        """Yield the rows of an outline, each with headings that no earlier one has; none for a turn of only code."""
        listed: set[str] = set()
        for line, text, headings, weight in rows:
            if not text:
                continue
            points = [one for one in headings if one not in listed]
            listed.update(points)
            self._lines.on_read(line.chunk.id)
            at = line.at
            yield {
                "date": at[:10],
                "at": at,
                "speaker": line.speaker,
                "text": text,
                "points": points,
                "score": round(weight, 2),
                "chunk_id": line.chunk.id,
                "conversation_id": line.chunk.metadata.conversation_id,
                **outside(line.chunk.metadata.origin, line.chunk.metadata.trust),
            }

    def _relevant_lines(self, subject: str) -> list[Line]:
        """Return the lines most relevant to a subject, each once."""
        found: dict[tuple[str, int], Line] = {}
        chats: dict[str | None, bool] = {None: False}
        assisted = bool(users_of(self._store))
        passages = searching.passages(self._store, subject, limit=_STATEMENTS)
        for hit in passages.hits:
            chunk = passages.chunks[hit.chunk_id]
            line = self._lines.at(chunk, hit.start)
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
        self,
        subject: str,
        lines: list[Line],
        linked: Iterable[dict[str, Any] | None],
        limit: int,
        kind: Kind,
    ) -> list[dict[str, Any]]:
        places = self._places([line.chunk for line in lines])
        statements = [
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
        ]
        analyser = get_analyser(self._store.config.search.language)
        found = [one for one in linked if one is not None]
        compared = differing_pairs(statements, subject, analyser, limit, kind)
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


def _group_by_names(
    places: list[int], period_lines: list[Line], lines: list[Line], text: str, shortener: Shortener
) -> list[list[int]]:
    """Return the places of the turns with a name of the text, of those whose reply has one, and of others.

    The others must share a rare word with the text, and are none if many turns have a name. For a text without names,
    all places are in one list.
    """
    names = shortener.names(text)
    place_of = {(line.chunk.id, line.number): number for number, line in enumerate(lines)}
    named: set[int] = set()
    answered: set[int] = set()
    turn: tuple[str | None, int] | None = None
    for line in period_lines if names else ():
        conversation = line.chunk.metadata.conversation_id
        place = place_of.get((line.chunk.id, line.number))
        if place is not None:
            turn = conversation, place
        if turn is not None and turn[0] == conversation and shortener.has(line.text, names):
            (answered if place is None else named).add(turn[1])
    if not named | answered:
        return [places]
    answered -= named
    telling = shortener.rare(text) if len(named) < _MIN_NAMED else frozenset[str]()
    others = (place for place in places if place not in named | answered)
    return [
        [place for place in places if place in named],
        [place for place in places if place in answered],
        [place for place in others if shortener.has(lines[place].text, telling)],
    ]


def _akin(texts: Sequence[str], weights: Sequence[float], shortener: Shortener) -> list[float]:
    """Return how like each text is to those with a weight; 0 for these, and for those much less like them."""
    matching = {place for place, weight in enumerate(weights) if weight}
    if not matching:
        return [0.0] * len(texts)
    likeness = shortener.likeness(texts, matching)
    least = _MIN_LIKENESS * median(likeness[place] for place in matching)
    return [0.0 if place in matching or one < least else one for place, one in enumerate(likeness)]


def _follow_ups(period_lines: list[Line], lines: list[Line], shortener: Shortener) -> set[int]:
    """Return the places of lines that follow up on earlier ones, and come last: "That sounds good! I'll …"."""
    place_of = {(line.chunk.id, line.number): number for number, line in enumerate(lines)}
    said: dict[str | None, set[str]] = defaultdict(set)
    following: set[int] = set()
    for line in period_lines:
        conversation = line.chunk.metadata.conversation_id
        place = place_of.get((line.chunk.id, line.number))
        if (
            place is not None
            and conversation is not None
            and shortener.new(line.text, said[conversation]) < _MIN_NEW
        ):
            following.add(place)
        said[conversation].update(shortener.terms(line.text))
    return following


def _beginnings(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines without those that continue a turn split into several chunks, such as its code."""
    begun: set[str | None] = set()
    for line in lines:
        conversation = line.chunk.metadata.conversation_id
        if line.labelled:
            begun.add(conversation)
        if line.labelled or line.speaker is None or conversation not in begun:
            yield line


def _conversation(line: Line) -> str:
    """Return the conversation of a line; a chunk outside of conversations is one of its own."""
    return line.chunk.metadata.conversation_id or line.chunk.id


def _with_later(lines: list[Line]) -> tuple[list[Line], dict[int, list[Line]]]:
    """Return the lines without short questions that follow up on the first of a conversation, and these by its place.

    "And what if it rains?" means little alone, and costs little in the row of the turn that it follows.
    """
    conversations: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        conversations[line.chunk.metadata.conversation_id or ""].append(line)
    follow_up_questions = {
        conversation: rest
        for conversation, (_, *rest) in conversations.items()
        if conversation and 0 < len(rest) <= _MAX_LATER and all(map(_is_short_question, rest))
    }
    heads: list[Line] = []
    later: dict[int, list[Line]] = {}
    for line in lines:
        conversation = line.chunk.metadata.conversation_id or ""
        if line is conversations[conversation][0] and conversation in follow_up_questions:
            later[len(heads)] = follow_up_questions[conversation]
        elif conversation in follow_up_questions:
            continue
        heads.append(line)
    return heads, later


def _is_short_question(line: Line) -> bool:
    return len(line.text) <= _SHORT_TURN and line.text.rstrip().endswith(("?", "？"))


def _day_factors(days: list[str]) -> list[float]:
    """Return factors for the lines by their place in their day, 1 for the first, which usually introduces the topic."""
    number, before = Counter(days), Counter[str]()
    factors = []
    for at in days:
        factors.append(1 - _LATE_DISCOUNT * (before[at] % _DAY_TURNS) / min(number[at], _DAY_TURNS))
        before[at] += 1
    return factors


def _best_of_each_day(days: list[str], weights: list[float]) -> list[int]:
    """Return the places of the lines with a weight, best first; nearly equal ones are distributed over the days.

    Those of one day are ordered by weight, and equal ones are spread over the day.
    """
    weights = [round(weight, 6) for weight in weights]  # equal sums may differ in their last digit
    step = _EQUAL_MARGIN * max(weights, default=0.0)
    alike: dict[tuple[int, str], list[int]] = defaultdict(list)
    for place, (at, weight) in enumerate(zip(days, weights, strict=True)):
        if weight:
            alike[-int(round(weight / step, 3)), at].append(place)
    order = dict(zip(sorted(set(days)), _spread_ranks(len(set(days))), strict=True))
    ranked = []
    for (worse, at), places in alike.items():
        scattered = dict(zip(places, _spread_ranks(len(places)), strict=True))
        by_weight = sorted(places, key=lambda place: (-weights[place], scattered[place]))
        ranked += [(worse, rank / len(places), order[at], place) for rank, place in enumerate(by_weight)]
    return [place for *_, place in sorted(ranked)]


def _spread_ranks(number: int) -> list[int]:
    """Return ranks for consecutive places with the lowest ones spread evenly: the bits of each place, reversed."""
    bits = max(1, (number - 1).bit_length())
    return [int(f"{place:0{bits}b}"[::-1], 2) for place in range(number)]
