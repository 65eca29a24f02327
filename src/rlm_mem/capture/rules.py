"""The capture rules: which sentences of a session are kept, read from TOML (`rules.toml`, docs/capture.md).

A sentence is kept if it matches a rule, or if the weights of the signs that it shows add up to a probability of at
least the threshold.

Patterns are RE2: matching takes linear time whatever the pattern and the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import msgspec

from rlm_mem.capture.transcripts import SessionMessage, Speaker
from rlm_mem.chunk.types import TypeRegistry
from rlm_mem.config import Config
from rlm_mem.errors import InvalidConfig, StorageError
from rlm_mem.record import FrozenRecord
from rlm_mem.text import blocks as structure
from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.blocks import blocks, units
from rlm_mem.text.patterns import late, linear
from rlm_mem.text.sentences import sentences

#: Name of the file in a brain folder that replaces the shipped rules.
RULES_FILE = "capture.toml"
#: The shipped rules.
SHIPPED = Path(__file__).with_name("rules.toml")

_MAX_BYTES = 200_000
_MAX_RULES = 100
_MAX_PATTERNS = 100
_MAX_PATTERN = 1_000  # characters
_MAX_WEIGHT = 20  # logits
_READ_AT_ENDS = 250  # sentences
_PATTERN_BYTES = 8_000_000  # memory of one compiled pattern
_SKIPPED_BLOCKS = (structure.CODE, structure.HEADING, structure.RULE, structure.ROW, structure.HEADER)

#: "We decided to remove it": only the sentence before names what "it" is. A later "it" mostly refers to its own
#: sentence.
_REFERS = late(r"(?:\S+\s+){1,5}(?:it|them)\b", re.IGNORECASE)

#: A name within a sentence: a word with a capital letter other than the first, `code`, or an identifier.
_NAME = late(r"[\w,] (?:[A-Z]\w|`\S)|\w_\w|[a-z][A-Z]")

_RULE = late(
    r"\w,? (?:not|instead of|rather than|over) \w|^(?:(?:please|also|and|but|so|from now on|going forward),? ){0,3}"
    r"(?:always|never|do not|don.t) ",
    re.IGNORECASE,
)
"""Matches a contrast and a standing rule: "tabs, not spaces", "Never push to main.", "Please always use tabs."."""

_QUOTED_LINE = late(r"^[ \t]*>.*$", re.MULTILINE)
_ASKED_CONFIDENCE = 0.85  # of a sentence that the user asked to keep
_MOST_CONFIDENT = 0.8  # of a sentence that is kept by its signs

Search = Callable[[str], object]


class CaptureLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The section ``[limits]``: sizes refer to one sentence; tokens to the context given to an agent.

    The defaults are those of the shipped rules.
    """

    per_session: int = 30
    per_message: int = 3
    shortest: int = 3
    longest: int = 400
    content_words: int = 3
    context_tokens: int = 1200
    prompt_tokens: int = 250
    tool_tokens: int = 200
    whole_transcript: bool = False


class RuleText(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[[rule]]`` as written in the file."""

    name: str
    speakers: list[Speaker]
    patterns: list[str]
    type: str = "note"
    confidence: float = 0.7
    about: str = ""


class Sign(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One ``[[sign]]``: its weights, in logits, for a sentence of a user and of an agent that shows it."""

    name: str
    patterns: list[str]
    user: float = 0.0
    agent: float = 0.0
    type: str = ""
    about: str = ""


class Weighing(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The section ``[weighing]``: what a sentence without any sign weighs, in logits, and the probability to reach.

    The defaults are those of the shipped rules: with others, signs alone could keep every sentence.
    """

    threshold: float = 0.4
    user: float = -1.58
    agent: float = -2.91


class Patterns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The section ``[leave_out]`` or ``[asks_to_keep]``."""

    patterns: list[str] = []


class RulesText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    limits: CaptureLimits = CaptureLimits()
    rule: list[RuleText] = []
    sign: list[Sign] = []
    weighing: Weighing = Weighing()
    asks_to_keep: Patterns = Patterns()
    leave_out: Patterns = Patterns()


class Kept(FrozenRecord, frozen=True):
    """A sentence to keep.

    Attributes:
        rule: name of the rule that matches it, or of its strongest sign.
        signs: names of all its signs, if these decided.
    """

    text: str
    rule: str
    type: str
    confidence: float
    signs: tuple[str, ...] = ()


class Rules(FrozenRecord, frozen=True):
    """Compiled rules.

    Attributes:
        where: the file that they come from.
    """

    where: Path
    limits: CaptureLimits
    rules: tuple[tuple[RuleText, tuple[Search, ...]], ...]
    signs: tuple[tuple[Sign, tuple[Search, ...]], ...]
    weighing: Weighing
    asks_to_keep: tuple[Search, ...]
    leave_out: tuple[Search, ...]

    def kept(self, message: SessionMessage) -> list[Kept]:
        """Return the sentences of a message to keep in their order: the most certain ``per_message``.

        Of a very long message, which mostly is pasted text, only the beginning and the end are read.
        """
        found: list[Kept] = []
        read = list(self._sentences(message.text))
        if len(read) > 2 * _READ_AT_ENDS:
            del read[_READ_AT_ENDS:-_READ_AT_ENDS]
        for sentence, previous in read:
            if message.speaker == "user" and any(search(sentence) for search in self.asks_to_keep):
                if self._is_keepable(previous):
                    if found and found[-1].text == previous:
                        found.pop()
                    if not (found and previous in found[-1].text):
                        found.append(Kept(previous, "asked", "preference", _ASKED_CONFIDENCE))
                continue
            if (one := self._match(sentence, previous, message.speaker)) is None:
                continue
            if one.text != sentence and found and found[-1].text == previous:
                found.pop()
            found.append(one)
        if len(found) > self.limits.per_message:
            certain = sorted(range(len(found)), key=lambda place: -found[place].confidence)
            found = [found[place] for place in sorted(certain[: self.limits.per_message])]
        return found

    def sentences(self, text: str) -> list[str]:
        """Return the sentences of a message that have the form of one to keep."""
        return [one for one, _ in self._sentences(text) if self._is_keepable(one)]

    def shown(self, sentence: str) -> list[Sign]:
        """Return the signs that a sentence shows."""
        return [sign for sign, searches in self.signs if any(search(sentence) for search in searches)]

    def _needs_previous(self, sentence: str, previous: str) -> bool:
        """Whether a sentence is kept with the one before it, to which its "it" refers."""
        return (
            bool(previous)
            and _REFERS.match(sentence) is not None
            and len(previous) + 1 + len(sentence) <= self.limits.longest
            and not any(search(previous) for search in self.leave_out)
        )

    def _sentences(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield each sentence, of any length, with the one before it in its paragraph, which is empty for the first.

        Code, headings, tables and quoted lines are skipped.
        """
        text = _QUOTED_LINE.sub("", text)
        for block in blocks(text):
            if block.kind in _SKIPPED_BLOCKS:
                continue
            # A colon after the first word ("Decision: …") reads like a speaker's label; here it is part of the text.
            begin = block.body_start if block.kind == structure.ITEM else block.start
            sentence = ""
            for start, end in units(text, begin, block.end):
                for first, last in sentences(text, start, end, lower_case=True):
                    previous = sentence
                    sentence = " ".join(text[first:last].replace("’", "'").split()).strip("*_ ")
                    yield sentence, previous

    def _is_keepable(self, sentence: str) -> bool:
        """Whether a sentence has the right length and can be understood outside of its conversation."""
        return (
            len(sentence) <= self.limits.longest
            and len(sentence.split()) >= self.limits.shortest
            # "Let's use it instead." means nothing outside of its conversation. A name or a rule counts as one word.
            and len(set(get_analyser().terms(sentence)))
            + bool(_NAME.search(sentence) or _RULE.search(sentence))
            >= self.limits.content_words
            and not any(search(sentence) for search in self.leave_out)
        )

    def _match(self, sentence: str, previous: str, speaker: Speaker) -> Kept | None:
        if len(sentence) > self.limits.longest or len(sentence.split()) < self.limits.shortest:
            return None
        rule = next(
            (
                rule
                for rule, searches in self.rules
                if speaker in rule.speakers and any(search(sentence) for search in searches)
            ),
            None,
        )
        if (rule is None and not self.signs) or any(search(sentence) for search in self.leave_out):
            return None
        text = f"{previous} {sentence}" if self._needs_previous(sentence, previous) else sentence
        if not self._is_keepable(text):
            return None
        if rule is not None:
            return Kept(text, rule.name, rule.type, rule.confidence)
        return self._weigh(text, speaker)

    def _weigh(self, text: str, speaker: Speaker) -> Kept | None:
        """Return the text if its signs weigh enough."""
        shown = self.shown(text)
        weights = [sign.user if speaker == "user" else sign.agent for sign in shown]
        base = self.weighing.user if speaker == "user" else self.weighing.agent
        probability = 1 / (1 + math.exp(-max(-30.0, base + sum(weights))))
        if probability < self.weighing.threshold:
            return None
        typed = [(weight, sign) for weight, sign in zip(weights, shown, strict=True) if sign.type]
        name, kind = "statement", "fact"
        if typed and (strongest := max(typed, key=lambda one: one[0]))[0] > 0:
            name, kind = strongest[1].name, strongest[1].type
        signs = tuple(sign.name for sign in shown)
        return Kept(text, name, kind, round(min(probability, _MOST_CONFIDENT), 2), signs)


def load_rules(brain: Path | None) -> Rules:
    """Load the rules of a brain: its own file, else the shipped ones.

    Args:
        brain: the folder of the brain; None for a database, which has the shipped rules.

    Raises:
        InvalidConfig: the file is invalid; the message names it and the place in it.
        StorageError: the file cannot be read.
    """
    path = _rules_path(brain)
    rules = _compile_rules(path, _read(path))
    if brain is not None and path != SHIPPED:
        known = TypeRegistry(Config.load(brain).types.chunk).plain
        typed: list[RuleText | Sign] = [rule for rule, _ in rules.rules]
        typed += [sign for sign, _ in rules.signs]
        for one in typed:
            if one.type and one.type not in known:  # the store would refuse each of its sentences
                raise InvalidConfig(
                    f"{path}: {one.name!r:.60} has the unknown type {one.type!r:.60}",
                    hint=f"use one of {', '.join(sorted(known))}",
                )
    return rules


def load_limits(brain: Path | None) -> CaptureLimits:
    """Load the limits of a brain's rules, without compiling patterns or reading the shipped rules.

    Raises:
        InvalidConfig, StorageError: as ``load_rules``, but not for invalid patterns.
    """
    path = _rules_path(brain)
    return CaptureLimits() if path == SHIPPED else _parsed(path, _read(path)).limits


def _rules_path(brain: Path | None) -> Path:
    own_rules = brain / RULES_FILE if brain is not None else None
    return own_rules if own_rules is not None and own_rules.is_file() else SHIPPED


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}") from None


@cache
def _parsed(path: Path, data: bytes) -> RulesText:
    import tomllib  # not needed for the shipped limits, which suffice for most prompts

    if len(data) > _MAX_BYTES:
        raise InvalidConfig(f"{path} is larger than the {_MAX_BYTES:,} bytes allowed for rules")
    try:
        parsed = msgspec.convert(tomllib.loads(data.decode("utf-8")), RulesText)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError, RecursionError) as error:
        raise InvalidConfig(f"{path}: {error}", hint=f"see {SHIPPED} for the format") from None
    patterns = [len(rule.patterns) for rule in parsed.rule] + [len(sign.patterns) for sign in parsed.sign]
    patterns += [len(parsed.leave_out.patterns), len(parsed.asks_to_keep.patterns)]
    if max(len(parsed.rule), len(parsed.sign)) > _MAX_RULES or max(patterns) > _MAX_PATTERNS:
        raise InvalidConfig(
            f"{path}: at most {_MAX_RULES} rules, and as many signs, of {_MAX_PATTERNS} patterns each"
        )
    for name, value in msgspec.to_builtins(parsed.limits).items():
        if not isinstance(value, bool) and not 0 <= value <= 100_000:
            raise InvalidConfig(f"{path}: limits.{name} must be from 0 to 100000, not {value}")
    for rule in parsed.rule:
        if not 0 <= rule.confidence <= 1:
            raise InvalidConfig(f"{path}: the confidence of rule {rule.name!r:.60} must be from 0 to 1")
    if not 0 <= parsed.weighing.threshold <= 1:
        raise InvalidConfig(f"{path}: weighing.threshold must be from 0 to 1")
    weights = {"weighing": parsed.weighing.user, "weighing of agents": parsed.weighing.agent}
    for sign in parsed.sign:
        weights |= {f"sign {sign.name!r:.60}": sign.user, f"sign {sign.name!r:.60} for agents": sign.agent}
    for name, weight in weights.items():
        if not -_MAX_WEIGHT <= weight <= _MAX_WEIGHT:
            raise InvalidConfig(f"{path}: the weight of {name} must be from -{_MAX_WEIGHT} to {_MAX_WEIGHT}")
    return parsed


@cache
def _compile_rules(path: Path, data: bytes) -> Rules:
    parsed = _parsed(path, data)
    return Rules(
        path,
        parsed.limits,
        tuple(
            (rule, tuple(_compile(pattern, f"{path}: rule {rule.name!r:.60}") for pattern in rule.patterns))
            for rule in parsed.rule
        ),
        tuple(
            (sign, tuple(_compile(pattern, f"{path}: sign {sign.name!r:.60}") for pattern in sign.patterns))
            for sign in parsed.sign
        ),
        parsed.weighing,
        tuple(_compile(pattern, f"{path}: asks_to_keep") for pattern in parsed.asks_to_keep.patterns),
        tuple(_compile(pattern, f"{path}: leave_out") for pattern in parsed.leave_out.patterns),
    )


def _compile(pattern: str, where: str) -> Search:
    if len(pattern) > _MAX_PATTERN:
        raise InvalidConfig(f"{where}: a pattern may have at most {_MAX_PATTERN} characters")
    try:
        compiled: Search = linear(pattern, _PATTERN_BYTES, ignore_case=True).search
    except ValueError as error:
        raise InvalidConfig(f"{where}: {pattern[:80]!r} is not a valid RE2 pattern: {error}") from None
    return compiled
