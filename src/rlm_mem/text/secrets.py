"""Finds secrets in text by the rules of ``secret_rules``, and redacts, keeps or refuses them."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, get_args

from msgspec import Struct, field

from rlm_mem.chunk.types import amount, is_one_of
from rlm_mem.config import SecretAction, SecretsConfig
from rlm_mem.errors import InputError, InvalidChunk
from rlm_mem.lazy import logger
from rlm_mem.record import FrozenRecord
from rlm_mem.text.patterns import late
from rlm_mem.text.secret_rules import (
    KEY,
    KEY_RULES,
    PII,
    PII_RULES,
    PRIVATE_KEY_EDGE,
    PRIVATE_KEY_LINES,
    SecretRule,
)

REDACTED = "[redacted]"

_MAX_DEPTH = 40  # levels; the store accepts at most 32
_PRIVATE_KEY = "private-key"
_TITLES = {rule.name: rule.title for rule in (*KEY_RULES, *PII_RULES)} | {_PRIVATE_KEY: "a private key"}
_NAMES = ("key", "token", "secret", "passw", "pwd", "credential", "://")
"""Parts of the anchors of secrets that may be short, since a name or an address shows them: if a text lacks a part, the
anchors that contain it are not looked for."""
_UNBROKEN = 15
"""Characters without a space that every other secret has at least. Ordinary text has no such word, and its anchors need
not be looked for."""


@cache
def _anchors(kind: str) -> Sequence[tuple[str, Sequence[tuple[str, bool, int]]]]:
    """Anchors by the part to search for first, each with whether it is searched in lower case, and its rule's index.

    The anchors of keys that are not names have the part ""; they are searched if the text has a long word.
    """
    table: dict[str, list[tuple[str, bool, int]]] = {}
    for number, rule in enumerate(KEY_RULES if kind == KEY else PII_RULES):
        caseless = bool(rule.flags & re.IGNORECASE)
        for anchor in rule.anchors:
            first = next((one for one in _NAMES if one in anchor), "")
            table.setdefault(first, []).append((anchor, caseless, number))
    return tuple(table.items())


_SECRET_NAME = late(
    r"(?:^|_)(?:API_?KEY|ACCESS_?KEY|SECRET_?KEY|PRIVATE_?KEY|AUTH_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)(?:$|_)",
    re.IGNORECASE,
)
_SHORTEST_SECRET, _LONGEST_WORD = 8, 16  # characters; redacting shorter values would affect ordinary text
_logger = logger("rlm_mem.secrets")


class FoundSecret(Struct, frozen=True):
    """A secret from character ``start`` to ``end``; ``rule`` names its format, ``kind`` is ``key`` or ``pii``."""

    rule: str
    kind: str
    start: int
    end: int

    @property
    def title(self) -> str:
        """The format in words: "a GitHub token"."""
        return _TITLES[self.rule]


def find_secrets(text: str, *, pii: bool = True) -> list[FoundSecret]:
    """Find all secrets in ``text``, in order and without overlaps, in linear time.

    Args:
        pii: whether to find e-mail addresses and telephone numbers, too.
    """
    found: list[FoundSecret] = []
    if "PRIVATE KEY" in text:
        found += _private_keys(text)
    found += _by_rules(text, KEY_RULES)
    if pii:
        found += _by_rules(text, PII_RULES)
    return _apart(found) if found else found


def _by_rules(text: str, rules: tuple[SecretRule, ...]) -> list[FoundSecret]:
    lowered = text.lower()
    is_long = rules is PII_RULES or max(map(len, text.split()), default=0) >= _UNBROKEN
    present = set()
    for first, anchors in _anchors(rules[0].kind):
        if first in lowered and (first or is_long):
            for anchor, caseless, number in anchors:  # a plain loop: this runs for every text
                if anchor in (lowered if caseless else text):
                    present.add(number)
    found = []
    for rule in map(rules.__getitem__, sorted(present)):
        group = "secret" if "secret" in rule.pattern.groupindex else 0
        for match in rule.pattern.finditer(text):
            if rule.name != "telephone-number" or 8 <= sum(char.isdigit() for char in match[0]) <= 15:
                found.append(FoundSecret(rule.name, rule.kind, match.start(group), match.end(group)))
    return found


def _private_keys(text: str) -> list[FoundSecret]:
    # Pairs begin and end lines in one pass; one pattern for a whole key would restart at every begin line.
    found: list[FoundSecret] = []
    opened = body = -1
    for edge in PRIVATE_KEY_EDGE.finditer(text):
        if edge[1] == "BEGIN":
            opened, body = (edge.start(), edge.end()) if opened < 0 else (opened, body)
        elif opened >= 0:
            found.append(FoundSecret(_PRIVATE_KEY, KEY, opened, edge.end()))
            opened = -1
    # A truncated key is as useful to an attacker as a complete one.
    if opened >= 0 and (cut := PRIVATE_KEY_LINES.match(text[body:])) is not None:
        found.append(FoundSecret(_PRIVATE_KEY, KEY, opened, body + cut.end()))
    return found


def _apart(found: list[FoundSecret]) -> list[FoundSecret]:
    """Sort the secrets, merging those that overlap."""
    kept: list[FoundSecret] = []
    for one in sorted(found, key=lambda item: (item.start, -item.end)):
        if kept and one.start < kept[-1].end:
            if one.end > kept[-1].end:
                kept[-1] = FoundSecret(kept[-1].rule, kept[-1].kind, kept[-1].start, one.end)
        else:
            kept.append(one)
    return kept


def hide(
    text: str, found: Sequence[FoundSecret], mask: Callable[[FoundSecret], str] = lambda _one: REDACTED
) -> str:
    """Replace each secret in ``text`` by its mask."""
    parts: list[str] = []
    done = 0
    for one in found:
        parts += (text[done : one.start], mask(one))
        done = one.end
    return "".join((*parts, text[done:]))


def redact(text: str, *, known: Iterable[str] = (), environ: Mapping[str, str] | None = None) -> str:
    """Replace every key in ``text`` by ``[redacted]``.

    This hides the values of environment variables that are named after keys, tokens or passwords, the values in
    ``known``, and any text in the format of a known provider's key. Safe on any text and linear in its length;
    ordinary prose is returned unchanged.

    Args:
        text: text to be logged, shown or stored.
        known: further secrets, for example a key that came from the keyring.
        environ: environment to take values from; None means ``os.environ``.
    """
    if not text:
        return text
    values = set(known)
    for name, value in (os.environ if environ is None else environ).items():
        named = _SECRET_NAME.search(name)
        # SOME_TOKEN=developer must not redact this word in every memory.
        if named and ("API" in named[0].upper() or not (value.isalpha() and len(value) < _LONGEST_WORD)):
            values.add(value.strip())
    for value in sorted(values, key=len, reverse=True):  # longest first, as a secret may contain another
        if len(value) >= _SHORTEST_SECRET and value in text:
            text = text.replace(value, REDACTED)
    return hide(text, find_secrets(text, pii=False))


class Screened(Struct, frozen=True):
    """A text after secrets were handled; ``found`` refers to characters of the original text."""

    text: str
    found: list[FoundSecret] = []
    hidden: bool = False

    def original(self, position: int) -> int:
        """Convert a position in the screened text to one in the original text."""
        if not self.hidden:
            return position
        starts: list[int] = []
        shift = 0
        shifts = [0]
        for one in self.found:
            mask = len(_mask(one))
            starts.append(one.start - shift + mask)
            shift += one.end - one.start - mask
            # Positions below refer to the new text; text after a mask is shifted by what was removed before it.
            shifts.append(shift)
        return position + shifts[bisect_right(starts, position)]

    def counts(self) -> dict[str, int]:
        """Number of secrets found by each rule."""
        return dict(Counter(one.rule for one in self.found))

    def report(self) -> SecretsFound:
        """A summary for the caller."""
        return SecretsFound(self.counts(), hidden=self.hidden and bool(self.found))


class SecretsFound(FrozenRecord, frozen=True):
    """Summary of the secrets found in a written text; false if there are none.

    Attributes:
        rules: number of secrets by rule.
        hidden: whether ``[redacted:RULE]`` was stored in their place.
    """

    rules: Mapping[str, int] = field(default_factory=dict)
    hidden: bool = False

    @property
    def count(self) -> int:
        """Number of secrets."""
        return sum(self.rules.values())

    def __bool__(self) -> bool:
        return bool(self.rules)

    def __str__(self) -> str:
        return self.told("secrets='{}'")

    def told(self, option: str) -> str:
        """Say in words what was found and done, and how to choose otherwise.

        Args:
            option: how the caller names another action, with ``{}`` in its place.
        """
        if not self.rules:
            return "no secrets found"
        named = ", ".join(f"{rule}: {count}" for rule, count in self.rules.items())
        what = f"{amount(self.count, 'secret')} ({named})"
        if self.hidden:
            return f"{what} hidden: [redacted:RULE] is stored instead; {option.format('keep')} stores it as it is"
        return f"{what} found and stored in clear, as asked; {option.format('redact')} hides it"


def screen(text: str, settings: SecretsConfig, action: SecretAction | None = None) -> Screened:
    """Find secrets, and apply the action of the call or else of the settings.

    Args:
        action: ``redact``, ``keep`` or ``refuse``; None: ``settings.action``.

    Returns:
        the text, with ``[redacted:RULE]`` in place of each secret if they are redacted.

    Raises:
        InvalidChunk: a secret was found and secrets are refused. The message names format and line, never the
            secret.
        InputError: ``action`` is not one of the three.
    """
    chosen = _chosen(settings, action)
    if chosen == "off":
        return Screened(text)
    found = find_secrets(text, pii=settings.pii)
    if not found:
        return Screened(text)
    if chosen == "refuse":
        first = found[0]
        line = text.count("\n", 0, first.start) + 1
        raise _refusal(first, f"line {line} of the content")
    if chosen == "redact":
        return Screened(hide(text, found, _mask), found, hidden=True)
    return Screened(text, found)


_CLEAN: set[tuple[bool, str]] = set()
"""Cache of (pii, text) without secrets, since the same tags are screened repeatedly."""
_MAX_CLEAN, _MAX_CLEAN_CHARACTERS = 4096, 200


def screen_data(
    data: Any, settings: SecretsConfig, action: SecretAction | None = None, *, where: str = "metadata"
) -> tuple[Any, Screened]:
    """Apply :func:`screen` to every text in nested mappings and lists, except keys of mappings.

    Args:
        where: name of the data for errors.

    Returns:
        the data (a changed copy if anything was redacted), and the secrets found.

    Raises:
        InvalidChunk, InputError: as :func:`screen`.
    """
    chosen = _chosen(settings, action)
    # Usually there is no secret, which one search of all texts together shows.
    texts = "\n".join(_texts(data)) if chosen != "off" else ""
    if not texts or (settings.pii, texts) in _CLEAN or not find_secrets(texts, pii=settings.pii):
        if len(texts) <= _MAX_CLEAN_CHARACTERS:
            if len(_CLEAN) >= _MAX_CLEAN:
                _CLEAN.clear()
            _CLEAN.add((settings.pii, texts))
        return data, Screened("")
    found: list[FoundSecret] = []

    def replaced(value: Any, depth: int = 0) -> Any:
        if depth > _MAX_DEPTH:
            return value
        if isinstance(value, str):
            here = find_secrets(value, pii=settings.pii)
            found.extend(here)
            return hide(value, here, _mask) if here and chosen == "redact" else value
        if isinstance(value, Mapping):
            return {name: replaced(item, depth + 1) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [replaced(item, depth + 1) for item in value]
        return value

    data = replaced(data)
    if found and chosen == "refuse":
        raise _refusal(found[0], where)
    return data, Screened("", found, hidden=chosen == "redact")


def check_action(action: SecretAction | None) -> SecretAction | None:
    """Return ``action`` if it is one of the three or None; raises InputError."""
    if action is None or is_one_of(action, get_args(SecretAction)):
        return action
    raise InputError(f"secrets must be one of {', '.join(get_args(SecretAction))}, not {action!r:.60}")


def _chosen(settings: SecretsConfig, action: SecretAction | None) -> str:
    return settings.action if action is None else str(check_action(action))


def _refusal(first: FoundSecret, where: str) -> InvalidChunk:
    return InvalidChunk(
        f"{where} contains what looks like {first.title}, and secrets are refused",
        hint="remove it, or pass secrets='redact' (or 'keep') for this call, or set secrets.action"
        + (" (secrets.pii = false allows addresses and numbers)" if first.kind == PII else ""),
    )


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth > _MAX_DEPTH or value is None:
        return
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, depth + 1)
    elif isinstance(value, Mapping):  # last, since this check is the slowest
        for item in value.values():
            yield from _texts(item, depth + 1)


def _mask(one: FoundSecret) -> str:
    return f"[redacted:{one.rule}]"


def log_secrets(where: str, screened: Screened) -> None:
    """Log the secrets found: keys as a warning, addresses and numbers as information."""
    done = "was hidden in" if screened.hidden else "is stored in"
    for kind, tell in ((KEY, _logger.warning), (PII, _logger.info)):
        titles = dict.fromkeys(one.title for one in screened.found if one.kind == kind)
        if titles:
            tell("what looks like %s %s %s", " and ".join(titles), done, where)
