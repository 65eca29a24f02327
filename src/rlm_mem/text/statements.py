"""Extracts statements from sentences, by rules without a model.

A statement has a topic, an attribute and a value: "The standup is at 9:15" has the topic {standup}, the attribute "be"
and the value {9:15}. A sentence may mark a value as former ("from 9:15 to 10:30", "no longer at 9:15", "10:30 instead
of 9:15") or as new ("now", "from now on", "moved to"). English only. Every rule reads the words of a sentence a fixed
number of times.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import pairwise
from operator import attrgetter, or_

from msgspec.structs import replace

from rlm_mem.text.analysis import LONGEST, Analyser, Known, fold
from rlm_mem.text.blocks import CODE, HEADING, ITEM, Said, blocks, said_in, units
from rlm_mem.text.clauses import (
    ADDS,
    ADVERBS,
    BE,
    DAYS,
    DENYING,
    DETERMINERS,
    FIRST,
    MONTHS,
    NEWS,
    ONCE,
    OTHER,
    PREPOSITIONS,
    THIRD,
    UNSURE,
    Complement,
    Token,
    adds,
    begins_with_end,
    begins_with_verb,
    clauses_of,
    denial_in,
    ends_like_verb,
    family_of,
    from_to,
    is_compound,
    is_listed_verb,
    is_participle,
    is_past,
    kind_of,
    no_more,
    of_one_time,
    parts_of,
    subject_of,
    take_former,
    token_texts,
    tokens_of,
    verb_of,
    will_not_be,
    without_news,
)
from rlm_mem.text.patterns import word_set
from rlm_mem.text.stated_changes import CALLED_OFF, CHANGES_TO, SentenceReader
from rlm_mem.text.statement import ME, Stated
from rlm_mem.text.wording import (
    CORRECTIONS,
    DOUBTS,
    LABELS,
    PARTICLES,
    PHRASAL,
    QUOTES,
    TITLES,
    USERS,
    WORDED,
    field_of,
    in_plain_verbs,
    is_field,
    is_quoted,
    without_aside,
    without_lead,
)

# Words of the longest verbless phrase that a pronoun may refer to: "New code of the gate: it is …"
_FRAGMENT = 8
_SENTENCES = 40  # number of sentences read per text
_CHOOSING = frozenset(("instead", "rather", "not"))
_NO_NAMES = LABELS | TITLES | DOUBTS | USERS
_TIMES = DAYS | MONTHS
_NAME = 4  # maximum words of the name of a chosen thing
_PLANNED = frozenset(("planned", "plan"))  # "planned for Wednesday"


_STATING = word_set(
    "handed passed took taken off aside away turned became become place happen settled instead rather : = -> →"
).union(DENYING)
_VALUE_WORDS = 2
"""Maximum words of a value after a label that might be a speaker."""
_SPEAKING = frozenset(("i", "we", "you", "they", "no"))


def statements_in(text: str, analyser: Analyser, *, speaker: str | None = None) -> list[Stated]:
    """Statements of the first sentences of a text, in order.

    Args:
        analyser: stems the words.
        speaker: the speaker of text without a speaker's label.
    """
    return [] if analyser.language != "english" else list(_statements(text, analyser, speaker))


@lru_cache(maxsize=512)
def _statements(text: str, analyser: Analyser, speaker: str | None) -> tuple[Stated, ...]:
    """Cached :func:`statements_in`, since the same earlier chunks are compared repeatedly."""
    found: list[Stated] = []
    read = 0
    turns = said_in(text)
    fields = speaker is None and _are_fields(text, turns)
    for said in turns:
        who = (said.speaker or speaker or "").casefold()
        topic = (
            frozenset(analyser.terms(who))
            if who and who not in USERS | LABELS | CORRECTIONS
            else frozenset((ME,))
        )
        carried: frozenset[str] = frozenset()
        unread: list[str] = []
        before: Iterable[str] = ()
        label = text[said.start : said.body].strip(" *_:").casefold()
        if not DOUBTS.isdisjoint(label.split()):
            continue
        news = label if label in CORRECTIONS else ""
        is_label = said.speaker and (fields or is_field(text[said.start : said.end]))
        body = said.start if is_label else said.body
        for start, end in _sentences(text, body, said.end):
            if read >= _SENTENCES:
                return tuple(found)
            read += 1
            if end - start > LONGEST:
                continue
            sentence = text[start:end]
            said_words = token_texts(sentence)
            signs = reduce(or_, map(_signs_of, said_words), 0)
            if not _may_state(said_words, signs):
                unread.append(sentence)
                if signs & _CHANGES:
                    before = map(_low, said_words)  # lowered only for a statement that needs them
                continue
            about = _heading_of(text, start) if said.speaker is None else ""
            owner = frozenset(analyser.terms(about)) or topic
            reader = _Reader(sentence, analyser, topic, carried, news, unread, owner)
            made = reader.read(start, before, said_words)
            if fields and said.speaker:
                made = [replace(one, labelled=True) for one in made]
            found += made
            if about:
                found += [replace(one, topic=topic, unclear=True) for one in made if one.topic == owner]
            before, carried, unread = reader.lows, reader.known, reader.unread
    return tuple(found)


def _heading_of(text: str, place: int) -> str:
    """The nearest heading above a place if it may be a name, such as that of the person a note is about; else ""."""
    found = blocks(text)
    above = reversed(found[: bisect_right(found, place, key=attrgetter("start")) - 1])
    heading = next((text[one.start : one.end].strip("#*_: ") for one in above if one.kind == HEADING), "")
    words = heading.split()
    named = 0 < len(words) <= _NAME and all(one.isalpha() and one.istitle() for one in words)
    lows = [one.casefold() for one in words]
    known = {*lows, *(one.removesuffix("s") for one in lows)}  # "Meeting Notes" name nobody, as "Note"
    return heading if named and known.isdisjoint(_NO_NAMES) and lows[0] not in _TIMES else ""


def _is_of_person(tokens: Sequence[Token]) -> bool:
    """Whether a clause begins with what is said of a person only: "lives in …", "works for …"."""
    return family_of(tokens[0].low) in ("live", "work") and tokens[1].low in ("in", "at", "for", "as")


def _are_fields(text: str, turns: Sequence[Said]) -> bool:
    """Whether apparent turns are fields with values of one or two words ("Linter: flake8"), each label once."""
    spoken = [(one.speaker.casefold(), text[one.body : one.end].strip()) for one in turns if one.speaker]
    return len({label for label, _ in spoken} - USERS) == len(spoken) and all(
        len(value.split()) <= _VALUE_WORDS and value[-1:] not in (".", "!", "?", "…") for _, value in spoken
    )


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Sentences of `text[start:end]` outside of code, none crossing its heading, item, line or paragraph."""
    found = blocks(text)
    for block in found[bisect_right(found, start, key=attrgetter("end")) :]:
        if block.start >= end:
            return
        if block.kind != CODE:
            first = block.body_start if block.kind == ITEM else block.start
            yield from units(text, max(start, first), min(end, block.end))


def _may_state(found: Sequence[str], signs: int) -> bool:
    """Whether a sentence may have a verb that states something; without one it only names something.

    The first word before a past form is a name or noun, whatever its ending: "Ines packed the crate".

    Args:
        found: the words of the sentence. ``signs``: their signs together.
    """
    if signs & _STATES or signs & _CHANGES_BESIDE == _CHANGES_BESIDE:
        return True
    if signs & _ENDS_LIKE_VERB and (
        not is_past(_low(found[1 % len(found)]))
        or reduce(or_, map(_signs_of, found[1:]), 0) & _ENDS_LIKE_VERB
    ):
        return True
    if not signs & (_MOVES | _SPEAKS):
        return False
    lows = list(map(_low, found))
    if signs & _MOVES and 0 < from_to(lows) < lows.index("from") - 1:
        # With an object; without one it may be a journey
        return True
    return any(
        before in _SPEAKING and one.isalpha() and not is_past(one) and not one.endswith("ing")
        for before, one in pairwise(lows)
    )


def _low(word: str) -> str:
    return word.lower().replace("’", "'")


# Signs of words, of which a sentence may have several.
_STATES, _ENDS_LIKE_VERB, _MOVES, _SPEAKS, _CHANGES, _BESIDE_CHANGE = (1 << bit for bit in range(6))
_CHANGES_BESIDE = _CHANGES | _BESIDE_CHANGE
_BESIDE_CHANGES = WORDED | PARTICLES | {"to", "out", "not"}
"""Words without which a verb in ``CHANGES_TO`` states nothing: "moved the crate"."""


def _made_signs(word: str) -> int:
    if word.isdigit():  # the most frequent of the words that are looked up for the first time
        return 0
    low = _low(word)
    signs = _BESIDE_CHANGE if low in _BESIDE_CHANGES else 0
    if low in CHANGES_TO:
        return signs | _CHANGES
    if low in _STATING or is_listed_verb(low):
        return _STATES
    if low == "from":
        return signs | _MOVES
    return signs | (_ENDS_LIKE_VERB if ends_like_verb(low) else _SPEAKS if low in _SPEAKING else 0)


_signs_of = Known(_made_signs, 1 << 15).__getitem__


class _Reader(SentenceReader):
    """Extracts the statements of one sentence."""

    def read(
        self, start: int = 0, former: Iterable[str] = (), found: Sequence[str] | None = None
    ) -> list[Stated]:
        """The statements of the sentence.

        Args:
            start: position of the sentence in the text.
            former: the words of the sentence before it.
            found: its words and punctuation marks, if already known.
        """
        tokens = tokens_of(self.text, found)
        if not tokens or self.text.rstrip().endswith("?"):
            return []
        if len(tokens) > 2 and tokens[0].text.isdecimal() and tokens[1].text in (".", ":"):
            self.number = int(tokens[0].text[:9])
            tokens = tokens[2:]
        lows = self.lows = {one.low for one in tokens}
        self.once = not lows.isdisjoint(ONCE) and of_one_time(tokens)
        self.adds = not lows.isdisjoint(ADDS)
        news = self.news
        before: list[Token] = []
        made: list[Stated] = []
        if not lows.isdisjoint(WORDED) or not (lows.isdisjoint(PHRASAL) or lows.isdisjoint(PARTICLES)):
            tokens, news = without_lead(in_plain_verbs(tokens), self.news)
            tokens, before = without_aside(tokens)
            made = self._field(tokens, news)
        unsure = bool(tokens) and (tokens[0].low in UNSURE or tokens[0].low == "had")
        if not unsure and ('"' in self.text or not (self.text.isascii() or QUOTES.isdisjoint(self.text))):
            unsure = is_quoted(self.text)
        for clause in () if made else clauses_of(tokens):
            some = self._clause(clause, news, unsure)
            made += some
            news = news or next((one.news for one in some if one.news == "correction"), "")
        if before and made and not made[0].former:
            made[0] = replace(self._ending(made[0], before), news=made[0].news or "before")
        if self.gone is not None:
            self._note_end_in_other_clause(made, *self.gone)
        if not made:
            return made
        text, end = self.text.strip(), start + len(self.text)
        named = frozenset(map(self.stems.__getitem__, lows.union(former)))
        return [
            replace(
                one, text=text, start=start, end=end, number=self.number, named=named,
                sure=one.sure and not self._repeated(one.former, tokens),
            )
            for one in made
        ]  # fmt: skip

    def _note_end_in_other_clause(self, found: list[Stated], who: list[Token], what: list[Token]) -> None:
        """Record in a statement what another clause ends: "Tilda retired; Yusuf is the manager"."""
        for number in range(len(found) - 1, -1, -1):
            one = found[number]
            if one.value and not one.former:
                mine = self._value(who)
                ended = what if not mine or mine <= one.topic | {ME} or self.speaker <= one.topic else who
                found[number] = replace(
                    one,
                    gone=self._value(ended) - one.value,
                    instead=ended is what and kind_of(what) == one.kind,
                )
                return

    def _field(self, tokens: list[Token], news: str) -> list[Stated]:
        """Statements of a field: "Port: 8081" states the port, "Port: 8080 -> 8081" also the former one."""
        label, value = field_of(tokens)
        if not label:
            return []
        former: list[Token] = []
        arrow = next((number for number, one in enumerate(value) if one.text in ("->", "→")), 0)
        if arrow:
            former, value = value[:arrow], value[arrow + 1 :]
        topic, said = self._topic(label)
        value, ended, cue = take_former(value)
        former, said = (ended[0].tokens, said or cue) if ended else (former, said)
        value, more = without_news(value)
        if not topic or not value:
            return []
        made = self._made(topic, "be", Complement("", value), frozenset(), news=news or said or more)
        return [replace(self._ending(made, former), news=made.news or "before") if former else made]

    def _repeated(self, former: frozenset[str], tokens: Sequence[Token]) -> bool:
        """Whether the sentence names the former value twice: "from A to B and back to A"."""
        if not former:
            return False
        stems = [self.stems[one.low] for one in tokens]
        return all(stems.count(one) > 1 for one in former)

    def _clause(self, tokens: list[Token], news: str, unsure: bool) -> list[Stated]:
        while tokens and tokens[0].low in ("but", "and", "so"):
            tokens = tokens[1:]
        if tokens and tokens[0].low in ("no", "there") and (no := no_more(tokens)):
            return self._no_more(tokens[no:])
        if ("place" in self.text or "happen" in self.text) and (off := will_not_be(tokens)):
            return self._no_more([one for one in tokens[:off] if one.low not in UNSURE])
        if taken := self._taken_over(tokens):
            return taken
        if not _CHOOSING.isdisjoint(self.lows) and (chosen := self._chosen(tokens)):
            return [replace(one, sure=False) for one in chosen] if unsure or self.once else chosen
        place, kind = verb_of(tokens)
        if place < 0 and begins_with_end(tokens) and (self.carried or self.owner):
            return self._be([], self.carried or self.owner, "is", tokens, news)
        if place < 0 and begins_with_verb(tokens) and (self.carried or _is_of_person(tokens)):
            place, kind = 0, family_of(tokens[0].low) or OTHER + tokens[0].low
        if place < 0:
            topic, _ = self._topic(subject_of(tokens) or (tokens if len(tokens) <= _FRAGMENT else ()))
            self.carried = topic or self.carried
            return []
        subject, verb = tokens[:place], tokens[place].low
        sure = not unsure and not any(
            (one.low in UNSURE or one.low == "to") and not is_compound(subject, number)
            for number, one in enumerate(subject)
        )
        rest = tokens[place + 1 :]
        topic, subject_news = self._topic(subject)
        news = news or subject_news
        if topic:
            self.carried, self.subject = topic, subject
        if kind == "used to":
            made = self._state(
                subject,
                topic,
                (family_of(rest[1].low) or OTHER + self.analyser.stem(rest[1].low)) if len(rest) > 1 else "",
                rest[2:],
                "used to",
                denied=True,
            )
            return [replace(one, sure=sure) for one in made]
        if kind == "change":
            if any(one.low in ("not", "never", "no", "didn't", "haven't", "hasn't") for one in subject):
                return []
            made = self._change(subject, topic, verb, rest)
        elif kind in ("be", "been"):
            if kind == "been":
                rest = rest[next(number for number, one in enumerate(rest) if one.low == "been") + 1 :]
            sure = sure and not any(one.low in UNSURE for one in rest[:2] if one.low not in _PLANNED)
            made = self._be(subject, topic, "is" if kind == "been" else verb, rest, news)
        elif kind == "have" and (renewed := self._renewed(topic, rest)) is not None:
            made = [renewed]
        else:
            if kind.startswith(OTHER):
                kind = OTHER + self.analyser.stem(fold(kind.removeprefix(OTHER)))
            denied = denial_in(subject)
            made = self._state(subject, topic, kind, rest, news or denied[1], denied=denied[0])
        if kind != "change":
            sure = sure and not self.once
            if self.adds and adds(tokens):  # "the kiosk takes cards now, too": nothing has ended
                made = [replace(one, news="", added=True) if not one.former else one for one in made]
        return made if sure else [replace(one, sure=False) for one in made]

    def _chosen(self, tokens: list[Token]) -> list[Stated]:
        """Statements of a choice without a subject: "Use B instead of A for C", "B instead of A".

        Without a verb both values must be names or figures: "Tea instead of coffee" may be about one cup.
        """
        value, former, cue = take_former(tokens)
        if former and value and value[-1].text == ",":
            value = value[:-1]
        if not (value and former) or verb_of(value)[0] >= 0 or any(one.low in UNSURE for one in tokens):
            return []
        if family_of(value[0].low) and value[0].low[-1] not in "sg" and len(value) > 1:
            return self._state([], self.speaker, family_of(value[0].low), tokens[1:], "", denied=False)
        kind, ended = kind_of(value), former[0]
        if kind == "word" or kind != kind_of(ended.tokens) or len(value) > _NAME:
            return []
        self.head, self.labels = "", ()
        made = self._made(
            self.speaker, "change", Complement("to", value), self._context(former[1:], ()), news=cue
        )
        return [self._ending(made, ended.tokens)]

    def _be(
        self, subject: list[Token], topic: frozenset[str], verb: str, rest: list[Token], news: str
    ) -> list[Stated]:
        """Statements of a clause with "be": "is B", "is due on B", "is no longer A", "is B, not A"."""
        if verb in ("i'm", "we're"):
            topic = self.speaker
        elif verb in ("it's", "he's", "she's", "they're"):
            topic = self.carried
        if not (topic or subject):
            topic = self.carried
        if not topic:
            return []
        denied = BE.get(verb) == "not"
        attribute = "be"
        if rest and rest[0].low in CALLED_OFF and not parts_of(rest[1:]) and not denied:
            return [Stated(topic, self.head, "change", "", frozenset(), news=rest[0].low, over=True)]
        if denied and rest and any(one.low == "but" for one in rest):  # "isn't in Graz but in Linz"
            rest, denied = [Token("not", "not", rest[0].start, rest[0].start), *rest], False
        if rest and rest[0].low in ("not", "never") and not any(one.low == "but" for one in rest):
            rest, denied = rest[1:], True
        negation = [one.low for one in rest[:2]]
        ended = rest[: 2 if negation == ["no", "longer"] else 1 if negation[:1] == ["not"] else 0]
        rest = rest[len(ended) :]
        for number, one in enumerate(rest[:4]):
            if one.low in ("no", "not") or one.text in ",;":
                break
            if one.low in ADVERBS:
                continue
            after = rest[number + 1].low if number + 1 < len(rest) else ""
            if one.low in ("called", "named") or (
                after in PREPOSITIONS | NEWS and one.low.isalpha() and one.low not in DETERMINERS
                and one.low not in PREPOSITIONS and not one.text[0].isupper() and one.low not in DAYS
                and is_participle(one.low)
            ):  # fmt: skip
                attribute = self.analyser.stem(one.low)
                rest = rest[:number] + rest[number + 1 :]
            elif one.low.endswith("ing") and len(one.low) > 4 and family_of(one.low):
                attribute = family_of(one.low)
                rest = rest[:number] + rest[number + 1 :]
            break
        return self._state(subject, topic, attribute, [*ended, *rest], news, denied=denied)

    def _state(
        self,
        subject: list[Token],
        topic: frozenset[str],
        attribute: str,
        rest: list[Token],
        news: str,
        *,
        denied: bool,
    ) -> list[Stated]:
        """Statements of a clause with a verb of state, with the former value if the clause names it."""
        topic = topic or self.carried or self.owner
        always = any(one.low == "always" for one in (*subject, *rest[:1]))
        rest, former, cue = take_former(rest)
        beside = self._context(former[1:], ())
        rest, said = without_news([one for one in rest if one.low not in ("it", "them")])
        news = news or said or cue
        if any(one.low == "longer" for one in subject) or (
            denied and said in ("any more", "anymore", "any longer")
        ):
            denied, news = True, news or "no longer"
        parts = parts_of(rest)
        if not parts:
            ended = former[:1] if former and former[0].tokens else []
            return [self._former_only(topic, attribute, one, frozenset(), news or cue) for one in ended]
        swapped = self._role(subject, attribute, parts)
        if swapped is not None:
            topic, parts, said = swapped
            news = news or said
        ends = denied and bool(news) and news not in ("correction", "update")
        found: list[Stated] = []
        for part in parts:
            context = self._context([one for one in parts if one is not part], ()) | beside
            if ends:
                found.append(self._former_only(topic, attribute, part, context, news))
            else:
                found.append(
                    self._made(topic, attribute, part, context, denied=denied, always=always, news=news)
                )
        if former:
            kind = kind_of(former[0].tokens)
            alike = [
                n
                for n, one in enumerate(found)
                if one.preposition and one.preposition == former[0].preposition
            ]
            alike = alike or [n for n, one in enumerate(found) if one.kind == kind] or list(range(len(found)))
            for chosen in alike:
                found[chosen] = replace(
                    found[chosen], former=self._value(former[0].tokens), shown_former=self._shown(former[0].tokens),
                    news=news or cue,
                )  # fmt: skip
        return found

    def _renewed(self, topic: frozenset[str], rest: list[Token]) -> Stated | None:
        """The statement of a new holder of a role: "has a new vet: Dr. Amsel" states the vet."""
        mark = next((number for number, one in enumerate(rest) if one.text == ":"), 0)
        if not mark or not any(one.low == "new" for one in rest[:mark]):
            return None
        rest, former, _ = take_former(rest)
        parts = parts_of(without_news(rest[mark + 1 :])[0])
        if not parts:
            return None
        noun, _ = self._topic(rest[:mark])
        old = former[0].tokens if former else []
        return self._made(
            topic | noun,
            "be",
            parts[0],
            frozenset(),
            news="new",
            former=self._value(old),
            shown_former=self._shown(old),
        )

    def _role(
        self, subject: list[Token], attribute: str, parts: list[Complement]
    ) -> tuple[frozenset[str], list[Complement], str] | None:
        """Swap subject and role: "Ruben is the head of procurement" states who the head of procurement is."""
        first = parts[0]
        if attribute != "be" or first.preposition or not subject or not first.tokens:
            return None
        if first.tokens[0].low not in ("the", "our", "my") or not all(
            one.text[:1].isupper() for one in subject
        ):
            return None
        if any(one.low in FIRST | THIRD | DETERMINERS for one in subject):
            return None
        topic, news = self._topic(first.tokens)
        return (topic, [Complement("", subject), *parts[1:]], news) if topic else None
