"""The rows of an outline: turns about a subject, or about everything, within a number of characters."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from itertools import chain, islice, zip_longest
from operator import mul
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from rlm_mem import search as searching
from rlm_mem.chunk.types import outside
from rlm_mem.sandbox.line_functions import Line, Lines, is_assistant, is_speaker, users_of
from rlm_mem.sandbox.turn_functions import FollowingTurns, recurring_titles, timed, titles
from rlm_mem.text.analysis import Analyser, get_analyser
from rlm_mem.text.shortening import Shortener
from rlm_mem.text.telling_titles import TellingTitles

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.sandbox.arguments import TruncatedLists

_ROW_CHARS = 120
"""Maximum characters of the text of a row of usual length."""
_FITTING_CHARS = 250
"""The same for a turn that matches well."""
_COUNTED_CHARS = 140
"""The same for every turn of a count: what was done and the figures have room, and about 28 turns in an opening."""
_FACTS_CHARS = 40
"""Maximum characters, beyond these, of figures and names of omitted clauses."""
_POINTS_CHARS = 50
"""Maximum characters of the headings of the reply in a row of usual length."""
_MAX_ROWS = 200
"""Maximum rows of the outline of an opening."""
_LENGTHS = (4.0, 3.0, 2.0, 1.5, 1.25, 1.0, 2 / 3)
"""Lengths of the rows of an opening that are tried in turn, relative to the usual one. The first is taken at which all
rows have room, else the last."""
_MIN_LISTED = 0.3
"""Share of the rows without headings that is enough at the usual length: shorter rows would say less of each turn, but
in a long chat more topics are worth more than more words about a few."""
_MIN_HEADED = 0.5
"""Share of the best turn's weight from which the headings of a turn get more characters."""
_FITTING_HEADED, _OTHER_HEADED = 1.5, 0.5
"""Factors for the characters of the headings of such a turn, and of other turns about a subject."""
_MIN_LIKENESS = 0.75
"""Minimum likeness of a turn without a word of a vague subject ("my plans") to the turns that have one, relative to
the median likeness of these to each other."""
_MAX_LATER, _SHORT_TURN, _LATER_CHARS = 2, 200, 70
"""Follow-up questions listed with the first turn of their conversation: maximum number, and characters of each in full
and as listed."""
_TOLD_FACTOR = 0.7
"""Factor for a turn of the requested speaker that matches only with the reply to it."""
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
"""Maximum chunks whose turns are compared."""
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


class OutlineRequest(NamedTuple):
    """What an outline is to contain.

    Attributes:
        queries: texts, of one of which a turn must have a word; all turns are listed if no text has words.
        start, end: the first and last day; None without bound.
        maximum: maximum number of rows.
        room: maximum characters of all rows, as printed.
        points: whether rows have headings of the replies.
        speaker: the only speaker of the turns, also in a memory without an assistant; None: the users of an assistant,
            and all speakers of other conversations.
        left_out: ids of chunks without rows.
        lengths: lengths of the rows, relative to the usual one, of which the first is taken at which enough rows have
            room, else the last. If there are several, turns like those about the subject get rows, too.
        every: as many rows as possible are wanted, from any place of their day, and shortened to what they say of the
            subject.
    """

    queries: Sequence[str]
    start: str | None
    end: str | None
    maximum: int
    room: int
    points: bool
    speaker: str | None = None
    left_out: frozenset[str] = frozenset()
    lengths: Sequence[float] = (1.0,)
    every: bool = False


def opening_request(subject: str, chars: int, *, points: bool, every: bool) -> OutlineRequest:
    """Return the request for the outline of an opening.

    Its rows are longer if all of them then have room, and shorter if not all have. Turns without a word of the subject,
    but much like those with one, get the remaining space; if there are any, longer rows leave half of the space.

    Args:
        chars: maximum characters of all rows.
        points: whether rows have headings of the replies.
        every: rows are not shorter than usual, since a row that leaves out what was done or the figures cannot be
            counted.
    """
    lengths = tuple(one for one in _LENGTHS if one >= 1) if every else _LENGTHS
    return OutlineRequest(
        [subject], None, None, _MAX_ROWS, chars, points=points, lengths=lengths, every=every
    )


class _Row(NamedTuple):
    text: str
    points: list[str]


class Outline:
    """Chooses the turns of an outline and writes its rows.

    Args:
        lines: reads the turns of the memory.
    """

    def __init__(self, lines: Lines, request: OutlineRequest) -> None:
        self._reader = lines
        self._request = request
        self._analyser = get_analyser(lines.store.config.search.language)
        self._subjects = [one for one in request.queries if self._analyser.terms(one)]
        self._subject_terms = frozenset(self._analyser.terms("\n".join(self._subjects)))
        self._users = frozenset[str]() if request.speaker else users_of(lines.store)
        self._period_lines, own = self._gathered()
        self._turns, self._later = _with_later(own) if self._users else (own, self._replies(own))
        self._texts = [
            "\n".join(one.text for one in (turn, *self._later.get(place, ())))
            for place, turn in enumerate(self._turns)
        ]
        self._shortener = Shortener(
            self._texts, self._analyser, " ".join(self._subjects) if request.every else ""
        )
        # Who speaks seldom says the own name: the turns of a speaker whom a subject names are found by their speaker.
        self._speakers = {} if self._users else self._terms_of_speakers()
        self._names = frozenset[str]().union(*map(self._names_in, self._subjects))
        self._days = [turn.at[:10] for turn in self._turns]
        discounted = self._users and not request.every
        self._factors = _day_factors(self._days) if discounted else [1.0] * len(self._days)
        # What only the reply tells.
        self._told = set() if self._users else {one for one in self._later if not self._is_about(own[one])}
        for place in self._told:
            self._factors[place] = _TOLD_FACTOR
        self._follow_ups = _follow_ups(self._period_lines, self._turns, self._shortener)
        self._best, self._weights = self._ranked_by_subject()
        self._top = max(self._weights, default=0.0) or 1.0
        chunks = {line.chunk.id: line.chunk for line in self._period_lines}.values()
        self._headings = _Headings(lines, chunks, self._analyser) if request.points else None

    def rows(self, cut: TruncatedLists) -> list[dict[str, Any]]:
        """Return the rows in order of time.

        Args:
            cut: gets a remark if not all turns have a row.
        """
        chosen = self._chosen()
        for place in chosen:
            for question in self._later.get(place, ()):
                self._reader.on_read(question.chunk.id)
        # A stable sort keeps lines of the same time in the order in which they were stored.
        ordered = sorted(sorted(chosen), key=lambda place: self._turns[place].at)
        rows = list(self._written([(place, chosen[place]) for place in ordered]))
        listed = sum(place in chosen for place in self._best)
        if listed < len(self._best):
            matching = " that share a word with its query" if self._subjects else ""
            cut.add_remark(
                f"outline returned {listed} of {len(self._best):,} turns{matching}; "
                "more chars, or start and end, give others"
            )
        return rows

    # Turns.

    def _gathered(self) -> tuple[list[Line], list[Line]]:
        """Return the lines of the period, replies included, and those that may have a row."""
        request, users = self._request, self._users
        lines = list(self._read_period())
        chats = {_conversation(line) for line in lines if line.speaker in users or is_assistant(line.speaker)}
        if users and not self._subjects:
            # A chat's line without a label continues the turn of an earlier chunk.
            lines = [one for one in lines if one.labelled or _conversation(one) not in chats]
        own = (
            line
            for line in lines
            if line.chunk.id not in request.left_out
            and (
                line.speaker in users or _conversation(line) not in chats
                if users
                else request.speaker is None or is_speaker(line.speaker, request.speaker)
            )
        )
        return lines, list(_beginnings(own) if users else own)

    def _read_period(self) -> Iterator[Line]:
        """Yield the lines of a period: of its first chunks or, in a long period, of those with a word of the texts."""
        store = self._reader.store
        ids = store.list_chunks(None, self._request.start, self._request.end)
        if self._subjects and len(ids) > _OUTLINED_CHUNKS:
            maximum = min(_MAX_FOUND, _OUTLINED_CHUNKS // len(self._subjects))
            found = {
                one for text in self._subjects for one in searching.keyword_ids(store, text, limit=maximum)
            }
            ids = [one for one in ids if one in found]
        for chunk in self._reader.read(ids[:_OUTLINED_CHUNKS]):
            yield from self._reader.lines(chunk)

    def _replies(self, own: list[Line]) -> dict[int, list[Line]]:
        """Return the reply of another person to each turn of the requested speaker, by its place, if it fits."""
        speaker = self._request.speaker
        if speaker is None or not self._subjects:
            return {}
        place_of = {(line.chunk.id, line.number): place for place, line in enumerate(own)}
        spoken: dict[str, int] = {}
        found: dict[int, list[Line]] = {}
        for line in self._period_lines:
            place = place_of.get((line.chunk.id, line.number))
            if place is not None:
                spoken[_conversation(line)] = place
            elif line.speaker and not is_speaker(line.speaker, speaker):
                place = spoken.pop(_conversation(line), None)
                if place is not None and not is_assistant(line.speaker) and self._is_about(line):
                    found[place] = [line]
        return found

    def _is_about(self, line: Line) -> bool:
        """Return whether a line has a word of a subject."""
        return not self._subject_terms.isdisjoint(self._analyser.terms(line.text))

    # Their order.

    def _ranked_by_subject(self) -> tuple[list[int], list[float]]:
        """Return the places of the turns with a word of a subject, best first, and the weight of every turn."""
        rankings: list[Iterable[int]] = []
        weights = [0.0] * len(self._turns)
        for subject in self._subjects or [""]:
            own = [
                self._share(place, subject) if subject else self._shortener.content(text)
                for place, text in enumerate(self._texts)
            ]
            groups = _group_by_names(
                self._ranked(own),
                self._period_lines,
                self._turns,
                self._names_in(subject),
                subject,
                self._shortener,
            )
            rankings.append(chain.from_iterable(groups))
            weights = list(map(max, weights, own))
        # Interleaved, so that each subject gets its best turns.
        best = (place for some in zip_longest(*rankings) for place in some if place is not None)
        return list(dict.fromkeys(best)), weights

    def _share(self, place: int, subject: str) -> float:
        """Return the share of the words of a subject that a turn has; it has the name of its speaker."""
        own_name = self._speakers.get(self._turns[place].speaker, ())
        return self._shortener.share(self._texts[place], subject, own_name)

    def _names_in(self, subject: str) -> frozenset[str]:
        """Return the terms of the names in a subject, without those of speakers."""
        return self._shortener.names(subject).difference(*self._speakers.values())

    def _terms_of_speakers(self) -> dict[str | None, list[str]]:
        """Return the terms of the name of each speaker of the turns."""
        return {name: self._analyser.terms(name or "") for name in {turn.speaker for turn in self._turns}}

    def _ranked(self, weights: Sequence[float]) -> list[int]:
        """Return the places of the turns with a weight, best first, those that follow up on others last."""
        discounted = list(map(mul, weights, self._factors))
        return sorted(_best_of_each_day(self._days, discounted), key=self._follow_ups.__contains__)

    def _ranked_by_likeness(self) -> list[int]:
        """Return the places of the turns without a word of a vague subject, but like those with one; best first."""
        request = self._request
        if not self._users or len(request.lengths) == 1 or request.every or self._names:
            return []
        return self._ranked(_akin(self._texts, self._weights, self._shortener))

    def _fits(self, place: int) -> bool:
        """Return whether a turn matches well."""
        if self._names:
            return self._shortener.has(self._texts[place], self._names)
        return bool(self._subjects) and self._weights[place] >= _MIN_FIT * self._top

    # Rows.

    def _chosen(self) -> dict[int, _Row]:
        """Return the rows of the turns that have room, by place, at the first length at which enough have."""
        request, best = self._request, self._best
        akin = self._ranked_by_likeness()
        enough = len(best) * (1 if request.points or request.every else _MIN_LISTED)
        for times in request.lengths:
            page = _Page(self._analyser, self._days, request.room)
            page.add(best[: request.maximum], partial(self._row, times=times))
            if page.left >= (request.room // 2 if akin and times > 1 else 0):
                page.add(akin[: request.maximum - len(page.rows)], partial(self._row, times=min(times, 1)))
                break
            if times <= 1 and len(page.rows) >= enough:
                break
        return page.rows

    def _row(self, place: int, shown_terms: Set[str], times: float) -> _Row:
        """Return the row of a turn.

        Args:
            shown_terms: terms of other rows, which count less.
            times: its maximum length, relative to the usual one.
        """
        turn, later = self._turns[place], self._later.get(place, ())
        chars = _ROW_CHARS
        if self._request.every:
            # What other rows have, too, says what the row is an instance of.
            chars, shown_terms = _COUNTED_CHARS, frozenset()
        elif self._fits(place):
            chars = _FITTING_CHARS
        own_chars, later_chars = int(times * chars), _LATER_CHARS
        if place in self._told:
            own_chars, later_chars = later_chars, own_chars
        text = self._shortener.short(turn.text, own_chars, _FACTS_CHARS, shown_terms)
        for one in later:
            who = "" if self._users else f"{one.speaker}: "
            text += f" > {who}{self._shortener.short(one.text, later_chars)}"
        if self._headings is None:
            return _Row(text, [])
        headed = 1.0
        if self._subjects:
            fitting = self._weights[place] >= _MIN_HEADED * self._top
            headed = _FITTING_HEADED if fitting else _OTHER_HEADED
        known = self._shortener.terms(self._texts[place]) | shown_terms
        room = int(max(1, times) * _POINTS_CHARS * headed)
        return _Row(text, self._headings.chosen((turn, *later), known, room))

    def _written(self, rows: Iterable[tuple[int, _Row]]) -> Iterator[dict[str, Any]]:
        """Yield the rows, each with headings that no earlier one has; none for a turn of only code."""
        listed: set[str] = set()
        for place, (text, headings) in rows:
            if not text:
                continue
            turn = self._turns[place]
            points = [one for one in headings if one not in listed]
            listed.update(points)
            self._reader.on_read(turn.chunk.id)
            yield {
                "date": turn.at[:10],
                "at": turn.at,
                "speaker": turn.speaker,
                "text": text,
                "points": points,
                "score": round(self._weights[place] / self._top, 2),
                "chunk_id": turn.chunk.id,
                "conversation_id": turn.chunk.metadata.conversation_id,
                **outside(turn.chunk.metadata.origin, turn.chunk.metadata.trust),
            }


class _Page:
    """The rows of an outline at one length.

    Args:
        days: the day of each turn.
        room: maximum characters.

    Attributes:
        rows: by the place of their turn.
        left: characters left; negative if a row had no room.
    """

    def __init__(self, analyser: Analyser, days: Sequence[str], room: int) -> None:
        self._analyser = analyser
        self._days = days
        self._listed_days: set[str] = set()
        self._shown_terms: set[str] = set()
        self.rows: dict[int, _Row] = {}
        self.left = room

    def add(self, places: Iterable[int], row: Callable[[int, Set[str]], _Row]) -> None:
        """Add rows while there is room, and one in any case.

        Args:
            row: writes the row of a place, given the terms of the rows before it.
        """
        for place in places:
            text, points = made = row(place, self._shown_terms)
            self.left -= _ROW_HEAD + len(text) + sum(len(one) + _BETWEEN_POINTS for one in points)
            self.left -= 0 if self._days[place] in self._listed_days else _DAY_CHARS
            if self.rows and self.left < 0:
                break
            self.rows[place] = made
            self._listed_days.add(self._days[place])
            self._shown_terms.update(self._analyser.terms("\n".join((text, *points))))


class _Headings:
    """Chooses the headings of the replies to turns.

    Args:
        chunks: those of the turns and replies, whose headings are compared.
    """

    def __init__(self, lines: Lines, chunks: Iterable[Chunk], analyser: Analyser) -> None:
        self._today = lines.store.clock()
        self._following_turns = FollowingTurns(lines)
        titled = [(chunk, titles(chunk.content)) for chunk in chunks]
        self._recurring = recurring_titles(titled)
        self._telling = TellingTitles((own for _, own in titled), analyser)

    def chosen(self, lines: Iterable[Line], known: Set[str], room: int) -> list[str]:
        """Return the most specific headings of the replies to some turns.

        Args:
            known: terms that are shown beside them, which count less.
            room: maximum characters of all.
        """
        found = (
            title
            for line in lines
            for _, title, _ in self._following_turns.points(line)
            if title not in self._recurring and not timed(title, self._today)
        )
        return self._telling.chosen(list(dict.fromkeys(islice(found, _MAX_POINTS))), known, room)


def _group_by_names(
    places: list[int],
    period_lines: list[Line],
    lines: list[Line],
    names: frozenset[str],
    text: str,
    shortener: Shortener,
) -> list[list[int]]:
    """Return the places of the turns with a name of the text, of those whose reply has one, and of others.

    The others must share a rare word with the text, and are none if many turns have a name. For a text without names,
    all places are in one list.
    """
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
