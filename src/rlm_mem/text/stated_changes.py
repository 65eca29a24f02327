"""Extracts the changes that a sentence states, and its words as topic and value.

Examples: "moved X from A to B", "replaced A with B", "sold A", "Ana took X over from Ben", "no more X on Fridays".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from functools import cache, partial

from msgspec.structs import replace

from rlm_mem.text.analysis import Analyser, Known, fold
from rlm_mem.text.clauses import (
    ADVERBS,
    AUXILIARIES,
    BE,
    CHANGES,
    DETERMINERS,
    ENDS,
    ENDS_WITH,
    FIRST,
    FOR_GOOD,
    NEWS,
    OTHER,
    PLACED,
    POSSESSIVES,
    PREPOSITIONS,
    RENAMES,
    REPLACES,
    THIRD,
    TRAVELLED,
    UNSURE,
    Complement,
    Token,
    after_phrase,
    complement_after,
    family_of,
    is_bare,
    kind_of,
    labels_of,
    parts_of,
    take_former,
    without_news,
)
from rlm_mem.text.patterns import word_set
from rlm_mem.text.statement import ME, UNKNOWN, Stated

_NO_VALUE = DETERMINERS | POSSESSIVES | {"of", "and", "number"}
_NO_TOPIC = DETERMINERS | AUXILIARIES | ADVERBS
_PARTS = word_set("some part parts half most few many several one bit")
_TAKEN = word_set("handed passed took taken takes")
_SAYING_IT = REPLACES | ENDS | RENAMES
"""Verbs of change that need no "to"."""
CHANGES_TO = CHANGES - _SAYING_IT | {"moved"}
"""Verbs of change that need "to"; of those that end something, only "moved out of" needs a further word."""
CALLED_OFF = word_set("cancelled canceled scrapped axed")
_OF_PASSIVE = word_set("was were been is are be being")
_FAVOUR = word_set("favour favor")
_LEFT = word_set("left quit resigned retired died moved closed ended")  # with or without an object


@cache
def _stems(analyser: Analyser) -> Known[str]:
    return Known(partial(_stem_of, analyser), 1 << 15)


def _stem_of(analyser: Analyser, low: str) -> str:
    """The stem of a word; words with digits are not stemmed."""
    if low.isdigit():
        return low
    word = low.removesuffix("'s").rstrip(".")
    if word.isalpha():
        return analyser.stem(fold(word))
    if not word[:1].isdigit() and "-" in word and word.replace("-", "").isalpha():
        return "-".join([analyser.stem(fold(part)) for part in word.split("-")])
    return word


class SentenceReader:
    """Base of readers of one sentence.

    ``unread``: the preceding sentences without statements, to whose topic a pronoun may refer. ``owner``: whom a
    sentence without a subject is about, unless it is the speaker.
    """

    def __init__(
        self, text: str, analyser: Analyser, speaker: frozenset[str], carried: frozenset[str], news: str,
        unread: Sequence[str] = (), owner: frozenset[str] | None = None,
    ) -> None:  # fmt: skip
        self.text = text
        self.analyser = analyser
        self.stems = _stems(analyser)
        self.speaker = speaker
        self.owner = owner or speaker
        self.known = carried
        self.unread = list(unread)
        self.news = news
        self.lows: Set[str] = frozenset()
        self.once = self.adds = False
        self.gone: tuple[list[Token], list[Token]] | None = None
        self.subject: list[Token] = []
        self.head = ""
        self.labels: tuple[tuple[str, str], ...] = ()
        self.number: int | None = None

    @property
    def carried(self) -> frozenset[str]:
        """The topic to which a pronoun refers."""
        unread, self.unread = self.unread, []
        for text in unread:
            reader = type(self)(text, self.analyser, self.speaker, self.known, self.news)
            reader.read()
            self.known = reader.known
        return self.known

    @carried.setter
    def carried(self, topic: frozenset[str]) -> None:
        self.known, self.unread = topic, []

    def _ending(self, one: Stated, before: Sequence[Token]) -> Stated:
        """A copy of the statement whose former value consists of these words."""
        return replace(one, former=self._value(before), shown_former=self._shown(before))

    def _taken_over(self, tokens: list[Token]) -> list[Stated]:
        """Statements of "Bram took over the project from Greta": Bram has the project instead of Greta."""
        if _TAKEN.isdisjoint(self.lows):
            return []
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
        """Statements of "Greta handed the project over to Bram": Bram has the project instead of Greta."""
        parts = parts_of([one for one in rest if one.low not in ("over", "on")])
        target = next((one for one in parts if one.preposition == "to"), None)
        former = [one for one in subject if one.low not in AUXILIARIES]
        if target is None or parts[0].preposition or not former or any(one.low in UNSURE for one in former):
            return []
        topic, _ = self._topic(parts[0].tokens)
        return [self._made(topic, "change", target, frozenset(), former=self._value(former),
                           shown_former=self._shown(former), news="handed over")]  # fmt: skip

    # One clause.

    def _no_more(self, tokens: list[Token]) -> list[Stated]:
        """Statements of "no more team lunch on Thursdays": the team lunch is no longer on Thursdays."""
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
        """Stems of a subject, with the speaker as :data:`ME` or by name, and a marker such as "new" or "now"."""
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
                stem = self.stems[low]
                stems.add(stem)
                head = head if done else stem
        self.head = head
        self.labels = labels_of(tokens, self.stems)
        return frozenset(stems), news

    def _value(self, tokens: Sequence[Token]) -> frozenset[str]:
        if len(tokens) > 1 and tokens[-1].low in ("one", "ones"):
            tokens = tokens[:-1]
        lows = [one.low for one in tokens]
        stems = self.stems
        return frozenset([stems[low] for low in lows if low not in _NO_VALUE and low[0].isalnum()])

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

    def _former_only(
        self, topic: frozenset[str], attribute: str, part: Complement, context: frozenset[str], news: str
    ) -> Stated:
        """A statement that has only a former value."""
        return Stated(
            topic, self.head, attribute, part.preposition, frozenset(), context, self._value(part.tokens), news=news,
            shown_former=self._shown(part.tokens), kind=kind_of(part.tokens), labels=self.labels,
        )  # fmt: skip

    def _change(
        self, subject: list[Token], topic: frozenset[str], verb: str, rest: list[Token]
    ) -> list[Stated]:
        """Statements of a verb of change: "moved X from A to B", "replaced A with B", "sold A"."""
        if verb not in _SAYING_IT and not any(one.low == "to" for one in rest):
            return []  # "moved the crate": neither a former value nor a new one
        passive = any(one.low in _OF_PASSIVE for one in subject)
        rest, instead, _ = take_former(rest) if "instead" in self.lows else (rest, [], "")
        rest, _ = without_news(rest)
        if not self.lows.isdisjoint(_FAVOUR) and (
            favour := after_phrase(rest, ("in", "favour", "of")) or after_phrase(rest, ("in", "favor", "of"))
        ):
            rest = rest[: favour - 3]
        parts = parts_of(rest)
        named = {part.preposition: part for part in reversed(parts)}
        target, source = complement_after(parts, "to"), complement_after(parts, "from")
        if instead and kind_of(instead[0].tokens) != "number":  # "to 600 instead of 800" may be about a plan
            source = source or instead[0]
        if verb in RENAMES and target is None and named.get(""):
            if not passive:
                return []  # "the kids renamed our wifi Dovecote"
            target, named = Complement("to", named[""].tokens), {**named, "": Complement("")}
        direct = named.get("", Complement(""))
        others = self._context(parts, ("", "to", "from", "by", "with"))
        owner = topic or self.owner
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
            over = verb in CALLED_OFF or (verb in FOR_GOOD and kind_of(who) == "name")
            return [
                Stated(topic, self.head, "change", "", frozenset(), others, news=verb, over=True, labels=self.labels)
            ] if topic and not others and over else []  # fmt: skip
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
        topic = topic or self.owner
        former = source.tokens if source is not None else []
        more: dict[str, object] = {
            "former": self._value(former),
            "shown_former": self._shown(former),
            "news": f"{verb} to",
        }
        if verb in RENAMES and about and not former:
            topic, more["former"], more["shown_former"] = self.speaker, self._value(about), self._shown(about)
            self.head, former = "", about
        sure = bool(former) or verb in PLACED or bool(topic - {ME}) or kind_of(target.tokens) == "number"
        # "from the second floor to the fourth floor"
        alike = self._value(former) & self._value(target.tokens)
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
            self._former_only(
                owner, attribute, part, self._context([one for one in parts if one is not part], ()), verb
            )
            for part in ended
        ]

    def _context(self, parts: Sequence[Complement], without: tuple[str, ...]) -> frozenset[str]:
        return frozenset(
            stem for part in parts if part.preposition not in without for stem in self._value(part.tokens)
            if not (part.preposition in ("in", "on", "at", "since") and kind_of(part.tokens) in ("date",))
        )  # fmt: skip

    def read(
        self, start: int = 0, former: Iterable[str] = (), found: Sequence[str] | None = None
    ) -> list[Stated]:
        """The statements of the sentence."""
        raise NotImplementedError
