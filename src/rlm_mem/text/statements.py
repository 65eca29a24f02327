"""What a sentence states of a thing: rules without a model.

A statement is a topic, an attribute and a value: "The standup is at 9:15" states of {standup} that it is at
{9:15}. A sentence may say that a value does not hold any more ("from 9:15 to 10:30", "no longer at 9:15",
"10:30 instead of 9:15"), or that its value is new ("now", "from now on", "moved to"). English only. Every
rule goes through the words of a sentence a fixed number of times, whatever they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rlm_mem.text.analysis import fold
from rlm_mem.text.blocks import said_in, sentences
from rlm_mem.text.clauses import (
    ADDS,
    ADVERBS,
    AUXILIARIES,
    BE,
    CHANGES,
    DAYS,
    DETERMINERS,
    ENDS,
    ENDS_WITH,
    FIRST,
    NEWS,
    ONCE,
    OTHER,
    PLACED,
    POSSESSIVES,
    PREPOSITIONS,
    REPLACES,
    THIRD,
    TRAVELLED,
    UNSURE,
    Complement,
    Token,
    adds,
    after_phrase,
    begins_with,
    begins_with_verb,
    clauses_of,
    denial_in,
    family_of,
    is_bare,
    is_compound,
    is_participle,
    kind_of,
    labels_of,
    may_state,
    no_more,
    of_one_time,
    parts_of,
    subject_of,
    take_former,
    tokens_of,
    told_of,
    verb_of,
    will_not_be,
    without_news,
    words,
)
from rlm_mem.text.stated import ME, UNKNOWN, Stated
from rlm_mem.text.wording import (
    CORRECTIONS,
    LABELS,
    USERS,
    WORDED,
    field_of,
    in_plain_verbs,
    is_field,
    is_quoted,
    without_aside,
    without_lead,
)

if TYPE_CHECKING:
    from rlm_mem.text.analysis import Analyser

__all__ = ["ME", "UNKNOWN", "Stated", "statements_in"]

_NO_VALUE = DETERMINERS | POSSESSIVES | {"of", "and", "number"}
_NO_TOPIC = DETERMINERS | AUXILIARIES | ADVERBS
LONGEST = 400  # characters of a sentence that is read; a longer one states nothing
_FRAGMENT = 8  # words without a verb that a pronoun after them may mean: "New code of the gate: it is …"
_PLANNED = frozenset(("planned", "plan"))  # for Wednesday
_PARTS = words("some part parts half most few many several one bit")
_CALLED_OFF = words("cancelled canceled scrapped axed")
_LEFT = words("left quit resigned retired died moved closed ended")  # with or without an object


def statements_in(
    text: str, analyser: Analyser, *, most: int = 40, speaker: str | None = None
) -> list[Stated]:
    """The statements of a text, in order; of its first sentences only.

    Args:
        analyser: whose stems are compared.
        most: sentences that are read.
        speaker: who says what names no speaker itself.
    """
    return [] if analyser.language != "english" else list(_statements(text, analyser, most, speaker))


@lru_cache(maxsize=512)
def _statements(text: str, analyser: Analyser, most: int, speaker: str | None) -> tuple[Stated, ...]:
    """The same, kept for the last texts: the same earlier memories are compared again and again."""
    found: list[Stated] = []
    read = 0
    for said in said_in(text):
        who = (said.speaker or speaker or "").casefold()
        topic = frozenset(analyser.terms(who)) if who and who not in USERS | LABELS else frozenset((ME,))
        carried: frozenset[str] = frozenset()
        unread: list[str] = []
        named: frozenset[str] = frozenset()
        label = text[said.start : said.body].strip(" *_:").casefold()
        news = label if label in CORRECTIONS else ""
        body = said.start if said.speaker and is_field(text[said.start : said.end]) else said.body
        for start, end in sentences(text, body, said.end):
            if read >= most:
                return tuple(found)
            read += 1
            if end - start > LONGEST:
                continue
            if not may_state(text[start:end]):
                unread.append(text[start:end])
                continue
            reader = _Reader(text[start:end], analyser, topic, carried, news, unread)
            found += reader.read(start, named)
            named, carried, unread = reader.named, reader.known, reader.unread
    return tuple(found)


@lru_cache(maxsize=8192)
def _stem_of(low: str, analyser: Analyser) -> str:
    """The stem of a word; of one with digits, the word."""
    word = low.removesuffix("'s").rstrip(".")
    if word.isalpha():
        return analyser.stem(fold(word))
    if not word[:1].isdigit() and "-" in word and word.replace("-", "").isalpha():
        return "-".join([analyser.stem(fold(part)) for part in word.split("-")])
    return word


class _Reader:
    """Reads one sentence; ``unread``: those right before it, which state nothing; a pronoun may mean their topic."""

    def __init__(
        self, text: str, analyser: Analyser, speaker: frozenset[str], carried: frozenset[str], news: str,
        unread: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.text = text
        self.analyser = analyser
        self.speaker = speaker
        self.known = carried
        self.unread = list(unread)
        self.news = news
        self.named: frozenset[str] = frozenset()
        self.once = self.adds = False
        self.gone: tuple[list[Token], list[Token]] | None = None
        self.subject: list[Token] = []
        self.head = ""
        self.labels: tuple[tuple[str, str], ...] = ()
        self.number: int | None = None

    @property
    def carried(self) -> frozenset[str]:
        """The topic that a pronoun means."""
        unread, self.unread = self.unread, []
        for text in unread:
            reader = _Reader(text, self.analyser, self.speaker, self.known, self.news)
            reader.read()
            self.known = reader.known
        return self.known

    @carried.setter
    def carried(self, topic: frozenset[str]) -> None:
        self.known, self.unread = topic, []

    def read(self, start: int = 0, named: frozenset[str] = frozenset()) -> list[Stated]:
        """What the sentence states.

        Args:
            start: where it stands in the text.
            named: the stems of the sentence before it.
        """
        tokens = tokens_of(self.text)
        if not tokens or self.text.rstrip().endswith("?"):
            return []
        if len(tokens) > 2 and tokens[0].text.isdigit() and tokens[1].text in (".", ":"):
            self.number = int(tokens[0].text[:9])
            tokens = tokens[2:]
        lows = {one.low for one in tokens}
        self.named = frozenset([_stem_of(low, self.analyser) for low in lows])
        self.once = not lows.isdisjoint(ONCE) and of_one_time(tokens)
        self.adds = not lows.isdisjoint(ADDS)
        news = self.news
        before: list[Token] = []
        found: list[Stated] = []
        if not lows.isdisjoint(WORDED):
            tokens, news = without_lead(in_plain_verbs(tokens), self.news)
            tokens, before = without_aside(tokens)
            found = self._field(tokens, news)
        unsure = any(one.low in UNSURE or one.low == "had" for one in tokens[:1]) or (
            self.text[0] in '"“”„«»' and is_quoted(self.text)
        )
        for clause in () if found else clauses_of(tokens):
            made = self._clause(clause, news, unsure)
            found += made
            news = news or next((one.news for one in made if one.news == "correction"), "")
        if before and found and not found[0].former:
            found[0] = replace(self._ending(found[0], before), news=found[0].news or "before")
        if self.gone is not None:
            self._end_by_another_clause(found, *self.gone)
        if not found:
            return found
        text, end, named = self.text.strip(), start + len(self.text), named | self.named
        return [
            replace(
                one, text=text, start=start, end=end, number=self.number, named=named,
                sure=one.sure and not self._repeated(one.former, tokens),
            )
            for one in found
        ]  # fmt: skip

    def _ending(self, one: Stated, before: Sequence[Token]) -> Stated:
        """The same statement, saying that a value did hold before."""
        return replace(one, former=self._value(before), shown_former=self._shown(before))

    def _end_by_another_clause(self, found: list[Stated], who: list[Token], what: list[Token]) -> None:
        """ "Tilda retired; Yusuf is the manager": what one clause ends did hold where another says what does."""
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
        """ "Port: 8081" states of the port that it is 8081; "Port: 8080 -> 8081", that it was 8080."""
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
        """Whether a value that is said to hold no more is named twice: "from A to B and back to A"."""
        if not former:
            return False
        stems = [self._stem(one) for one in tokens]
        return all(stems.count(one) > 1 for one in former)

    def _taken_over(self, tokens: list[Token]) -> list[Stated]:
        """ "Bram took over the project from Greta" states of the project that Bram has it instead of Greta."""
        low = [one.low for one in tokens]
        for number in range(1, len(low) - 1):
            if low[number] in ("handed", "passed"):
                return self._handed_over(tokens[:number], tokens[number + 1 :])
            if low[number] in ("took", "taken", "takes") and low[number + 1] == "over":
                subject = [one for one in tokens[:number] if one.low not in AUXILIARIES]
                if not subject or any(one.low in UNSURE for one in subject):
                    return []
                parts = parts_of(tokens[number + 2 :])
                source = next((one for one in parts if one.preposition == "from"), None)
                if source is None or parts[0].preposition:
                    return []
                topic, _ = self._topic(parts[0].tokens)
                value = Complement("to", subject)
                return [self._made(topic, "change", value, frozenset(), former=self._value(source.tokens),
                                   shown_former=self._shown(source.tokens), news="took over")]  # fmt: skip
        return []

    def _handed_over(self, subject: list[Token], rest: list[Token]) -> list[Stated]:
        """ "Greta handed the project over to Bram" states of the project that Bram has it instead of Greta."""
        parts = parts_of([one for one in rest if one.low not in ("over", "on")])
        target = next((one for one in parts if one.preposition == "to"), None)
        former = [one for one in subject if one.low not in AUXILIARIES]
        if target is None or parts[0].preposition or not former or any(one.low in UNSURE for one in former):
            return []
        topic, _ = self._topic(parts[0].tokens)
        return [self._made(topic, "change", target, frozenset(), former=self._value(former),
                           shown_former=self._shown(former), news="handed over")]  # fmt: skip

    # One clause.

    def _clause(self, tokens: list[Token], news: str, unsure: bool) -> list[Stated]:
        while tokens and tokens[0].low in ("but", "and", "so"):
            tokens = tokens[1:]
        if tokens and tokens[0].low in ("no", "there") and (no := no_more(tokens)):
            return self._no_more(tokens[no:])
        if ("place" in self.text or "happen" in self.text) and (off := will_not_be(tokens)):
            return self._no_more([one for one in tokens[:off] if one.low not in UNSURE])
        if taken := self._taken_over(tokens):
            return taken
        place, kind = verb_of(tokens)
        if place < 0 and begins_with_verb(tokens) and self.carried:
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
            if self.adds and adds(tokens):  # "the kiosk takes cards now, too" ends nothing
                made = [replace(one, news="", added=True) if not one.former else one for one in made]
        return made if sure else [replace(one, sure=False) for one in made]

    def _no_more(self, tokens: list[Token]) -> list[Stated]:
        """ "No more team lunch on Thursdays" states of the lunch that it is not on Thursdays any more."""
        parts = parts_of(tokens)
        if not parts or parts[0].preposition:
            return []
        topic, _ = self._topic(parts[0].tokens)
        self.carried, self.gone = topic or self.carried, ([], parts[0].tokens)
        if not parts[1:]:
            return (
                [Stated(topic, self.head, "change", "", frozenset(), news="no more", over=True)]
                if topic
                else []
            )
        return [
            Stated(topic, self.head, "be", part.preposition, frozenset(), frozenset(), self._value(part.tokens),
                   news="no more", shown_former=self._shown(part.tokens), kind=kind_of(part.tokens))
            for part in parts[1:]
        ]  # fmt: skip

    def _topic(self, tokens: Sequence[Token]) -> tuple[frozenset[str], str]:
        """The stems of a subject, with who speaks as :data:`ME` or by name, and "new" where it says so."""
        stems: set[str] = set()
        news = ""
        head = ""
        done = False
        for number, one in enumerate(tokens):
            low = one.low
            if low in FIRST:
                stems |= self.speaker
            elif low in THIRD:
                if number == 0 or low in ("his", "her", "their"):
                    stems |= self.carried or {UNKNOWN}
            elif low == "new":
                news = "new"
            elif low in NEWS:
                news = low
            elif low in _NO_TOPIC or low in BE or not low[:1].isalnum():
                continue
            elif low == "of" or low in PREPOSITIONS:
                done = True
            elif low not in ("no", "longer", "not", "never", "don't", "doesn't", "do", "does", "any", "more"):
                stem = self._stem(one)
                stems.add(stem)
                head = head if done else stem
        self.head = head
        self.labels = labels_of(tokens, self._stem)
        return frozenset(stems), news

    def _stem(self, one: Token) -> str:
        return _stem_of(one.low, self.analyser)

    def _value(self, tokens: Sequence[Token]) -> frozenset[str]:
        if len(tokens) > 1 and tokens[-1].low in ("one", "ones"):
            tokens = tokens[:-1]
        lows = [one.low for one in tokens]
        return frozenset(
            [_stem_of(low, self.analyser) for low in lows if low not in _NO_VALUE and low[0].isalnum()]
        )

    def _shown(self, tokens: Sequence[Token]) -> str:
        return self.text[tokens[0].start : tokens[-1].end] if tokens else ""

    def _made(
        self, topic: frozenset[str], attribute: str, part: Complement, context: frozenset[str], **more: object
    ) -> Stated:
        made = Stated(
            topic, self.head, attribute, part.preposition, self._value(part.tokens), context,
            shown=self._shown(part.tokens), kind=kind_of(part.tokens), labels=self.labels,
        )  # fmt: skip
        return replace(made, **more)

    def _change(
        self, subject: list[Token], topic: frozenset[str], verb: str, rest: list[Token]
    ) -> list[Stated]:
        """ "moved X from A to B", "replaced A with B", "sold A"."""
        passive = any(one.low in ("was", "were", "been", "is", "are", "being") for one in subject)
        rest, _ = without_news(rest)
        favour = after_phrase(rest, ("in", "favour", "of")) or after_phrase(rest, ("in", "favor", "of"))
        if favour:
            rest = rest[: favour - 3]
        parts = parts_of(rest)
        named = {part.preposition: part for part in reversed(parts)}
        target, source = told_of(parts, "to"), told_of(parts, "from")
        if verb == "renamed" and target is None and named.get(""):
            target, named = Complement("to", named[""].tokens), {**named, "": Complement("")}
        direct = named.get("", Complement(""))
        others = self._context(parts, ("", "to", "from", "by", "with"))
        owner = topic or self.speaker
        if verb in REPLACES and (named.get("with") or named.get("by") or (verb != "replaced" and named.get("for"))
                                  or not (target or source)):  # fmt: skip
            return self._replacement(owner, subject, direct, named, passive, verb, others)
        if target is not None and (verb in CHANGES or (source is not None and verb not in ENDS)):
            return self._moved(subject, topic, direct, source, target, verb, others)
        needed = ENDS_WITH.get(verb)
        if verb not in ENDS:
            return []
        who = [one for one in subject if one.low not in AUXILIARIES | FIRST | THIRD]
        if passive or (verb in _LEFT and not direct.tokens and not source):
            self.gone = who, []
            return [
                Stated(topic, self.head, "change", "", frozenset(), others, news=verb, over=True, labels=self.labels)
            ] if topic and not others and verb in _CALLED_OFF else []  # fmt: skip
        if needed is not None and tuple(one.low for one in rest[: len(needed)]) != needed:
            return []
        ended = rest[len(needed or ()) :]
        if ended and ended[0].low in _PARTS:
            return []  # "lost some of it"
        parts = parts_of(ended)
        if parts and parts[0].preposition and verb not in _LEFT and needed is None:
            return []  # "lost at cards"
        what = (
            parts[-1]
            if parts and parts[-1].preposition in ("from", "at", "in", "with")
            else next(iter(parts), None)
        )
        self.gone = (who if verb in _LEFT else []), what.tokens if what is not None else []
        return self._ended(owner, ended, verb)

    def _replacement(
        self, owner: frozenset[str], subject: list[Token], direct: Complement, named: dict[str, Complement],
        passive: bool, verb: str, others: frozenset[str],
    ) -> list[Stated]:  # fmt: skip
        subject = subject if any(one.low not in AUXILIARIES for one in subject) else [*subject, *self.subject]
        by = named.get("by") if passive else named.get("with") or named.get("by") or named.get("for")
        if passive and by is not None:
            former, value = [one for one in subject if one.low not in AUXILIARIES], by
            owner = self.speaker
        elif by is not None and direct.tokens:
            former, value = direct.tokens, by
            if by.preposition == "for":
                others = frozenset()
        elif direct.tokens and not passive and not any(one.low in FIRST for one in subject) and subject:
            former, value = (
                direct.tokens,
                Complement("", [one for one in subject if one.low not in AUXILIARIES]),
            )
            owner = self.speaker
        else:
            return []
        if not former or not value.tokens:
            return []
        self.head, self.labels = "", ()
        return [
            self._made(owner, "change", Complement("to", value.tokens), others, former=self._value(former),
                       shown_former=self._shown(former), news=verb)
        ]  # fmt: skip

    def _moved(
        self, subject: list[Token], topic: frozenset[str], direct: Complement, source: Complement | None,
        target: Complement, verb: str, others: frozenset[str],
    ) -> list[Stated]:  # fmt: skip
        about = [
            one
            for one in (() if is_bare(direct.tokens) else direct.tokens)
            if one.low not in ("up", "down", "over", "back", "forward", "out", "away")
        ]
        if about:
            bare = len(about) == 1 and about[0].text.islower() and about[0].low.endswith("s")
            owned = any(one.low in ("his", "her", "their", "its") for one in about)
            whose = topic if owned or (bare and not self._value(subject) & {ME}) else frozenset()
            found, _ = self._topic([one for one in about if one.low not in THIRD])
            topic = found | whose
        topic = topic or self.speaker
        former = source.tokens if source is not None else []
        more: dict[str, object] = {
            "former": self._value(former),
            "shown_former": self._shown(former),
            "news": f"{verb} to",
        }
        if verb == "renamed" and about and not former:
            topic, more["former"], more["shown_former"] = self.speaker, self._value(about), self._shown(about)
            self.head, former = "", about
        sure = bool(former) or verb in PLACED or bool(topic - {ME}) or kind_of(target.tokens) == "number"
        alike = self._value(former) & self._value(
            target.tokens
        )  # "from the second floor to the fourth floor"
        if verb in TRAVELLED | {verb} - CHANGES and kind_of(target.tokens) in ("name", "word") and not alike:
            sure = False
        return [self._made(topic, "change", target, others, sure=sure, **more)]

    def _ended(self, owner: frozenset[str], rest: list[Token], verb: str) -> list[Stated]:
        attribute = "change"
        if verb in ("stopped", "quit", "dropped") and rest and rest[0].low.endswith("ing"):
            attribute = family_of(rest[0].low) or OTHER + self.analyser.stem(fold(rest[0].low))
            rest = rest[1:]
        parts = parts_of(rest)
        ended = parts if attribute != "change" else parts[:1]
        return [
            Stated(owner, self.head, attribute, part.preposition, frozenset(),
                      self._context([one for one in parts if one is not part], ()), self._value(part.tokens),
                      news=verb, shown_former=self._shown(part.tokens), kind=kind_of(part.tokens),
                      labels=self.labels)
            for part in ended
        ]  # fmt: skip

    def _be(
        self, subject: list[Token], topic: frozenset[str], verb: str, rest: list[Token], news: str
    ) -> list[Stated]:
        """ "is B", "is due on B", "is no longer A", "is B, not A"."""
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
        if rest and rest[0].low in _CALLED_OFF and not parts_of(rest[1:]) and not denied:
            return [Stated(topic, self.head, "change", "", frozenset(), news=rest[0].low, over=True)]
        if denied and rest and any(one.low == "but" for one in rest):  # "isn't in Graz but in Linz"
            rest, denied = [Token("not", "not", rest[0].start, rest[0].start), *rest], False
        if rest and rest[0].low in ("not", "never") and not any(one.low == "but" for one in rest):
            rest, denied = rest[1:], True
        ended = (
            rest[:2]
            if [one.low for one in rest[:2]] == ["no", "longer"]
            else rest[:1]
            if begins_with(rest, "not")
            else []
        )
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
        """What holds by a verb of state; with what does not hold any more, where the clause says so."""
        topic = topic or self.carried or self.speaker
        always = any(one.low == "always" for one in (*subject, *rest[:1]))
        rest, former, cue = take_former(rest)
        rest, said = without_news([one for one in rest if one.low not in ("it", "them")])
        news = news or said or cue
        if any(one.low in ("longer",) for one in subject) or (
            denied and said in ("any more", "anymore", "any longer")
        ):
            denied, news = True, news or "no longer"
        parts = parts_of(rest)
        if not parts:
            return [
                Stated(topic, self.head, attribute, former[0].preposition, frozenset(), frozenset(),
                          self._value(former[0].tokens), news=news or cue, shown_former=self._shown(former[0].tokens),
                          kind=kind_of(former[0].tokens), labels=self.labels)
            ] if former and former[0].tokens else []  # fmt: skip
        swapped = self._role(subject, attribute, parts)
        if swapped is not None:
            topic, parts, said = swapped
            news = news or said
        ends = denied and bool(news) and news not in ("correction", "update")
        found: list[Stated] = []
        for part in parts:
            context = self._context([one for one in parts if one is not part], ())
            if ends:
                found.append(
                    Stated(topic, self.head, attribute, part.preposition, frozenset(), context,
                              self._value(part.tokens), news=news, shown_former=self._shown(part.tokens),
                              kind=kind_of(part.tokens), labels=self.labels)
                )  # fmt: skip
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
        """ "has a new vet: Dr. Amsel" states of the vet who it is."""
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
        """ "Ruben is the head of procurement" states of the head of procurement that it is Ruben."""
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

    def _context(self, parts: Sequence[Complement], without: tuple[str, ...]) -> frozenset[str]:
        return frozenset(
            stem for part in parts if part.preposition not in without for stem in self._value(part.tokens)
            if not (part.preposition in ("in", "on", "at", "since") and kind_of(part.tokens) in ("date",))
        )  # fmt: skip
