"""Secrets in text: found by the rules of ``secret_rules``, and hidden, refused or named as the settings say."""

from __future__ import annotations

import logging
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from rlm_mem.config import SecretsConfig
from rlm_mem.errors import InvalidChunk
from rlm_mem.text.secret_rules import KEY, KEY_RULES, PII, PII_RULES, PRIVATE_KEY_EDGE, Rule

__all__ = ["REDACTED", "Found", "Screened", "find_secrets", "hide", "log_secrets", "screen"]

REDACTED = "[redacted]"

_PRIVATE_KEY = "private-key"
_TITLES = {rule.name: rule.title for rule in (*KEY_RULES, *PII_RULES)} | {_PRIVATE_KEY: "a private key"}
_CASELESS = frozenset(rule.name for rule in (*KEY_RULES, *PII_RULES) if rule.pattern.flags & re.IGNORECASE)
_logger = logging.getLogger("rlm_mem.secrets")


@dataclass(frozen=True)
class Found:
    """A secret at characters ``start`` to ``end``; ``rule`` names its format, ``kind`` is ``key`` or ``pii``."""

    rule: str
    kind: str
    start: int
    end: int

    @property
    def title(self) -> str:
        """What it is, in words."""
        return _TITLES[self.rule]


def find_secrets(text: str, *, keys: bool = True, pii: bool = True) -> list[Found]:
    """Every secret in ``text``, in order, none overlapping another. Linear in the length of the text.

    Args:
        keys: keys, tokens, passwords and private keys.
        pii: e-mail addresses and telephone numbers.
    """
    found: list[Found] = []
    if keys:
        found += _private_keys(text)
        found += _by_rules(text, KEY_RULES)
    if pii:
        found += _by_rules(text, PII_RULES)
    return _apart(found)


def _by_rules(text: str, rules: Iterable[Rule]) -> list[Found]:
    lowered = text.lower()
    found = []
    for rule in rules:
        within = lowered if rule.name in _CASELESS else text
        for anchor in rule.anchors:  # a plain loop: this runs over every rule for every text
            if anchor in within:
                break
        else:
            continue
        group = "secret" if "secret" in rule.pattern.groupindex else 0
        for match in rule.pattern.finditer(text):
            if rule.name != "telephone-number" or 8 <= sum(char.isdigit() for char in match[0]) <= 15:
                found.append(Found(rule.name, rule.kind, match.start(group), match.end(group)))
    return found


def _private_keys(text: str) -> list[Found]:
    # Pairs the edges in one pass: one pattern from edge to edge would search anew from every beginning.
    if "PRIVATE KEY" not in text:
        return []
    found: list[Found] = []
    opened = -1
    for edge in PRIVATE_KEY_EDGE.finditer(text):
        if edge[1] == "BEGIN":
            opened = edge.start() if opened < 0 else opened
        elif opened >= 0:
            found.append(Found(_PRIVATE_KEY, KEY, opened, edge.end()))
            opened = -1
    return found


def _apart(found: list[Found]) -> list[Found]:
    """In order; of those that overlap one remains, which covers them all."""
    kept: list[Found] = []
    for one in sorted(found, key=lambda item: (item.start, -item.end)):
        if kept and one.start < kept[-1].end:
            if one.end > kept[-1].end:
                kept[-1] = Found(kept[-1].rule, kept[-1].kind, kept[-1].start, one.end)
        else:
            kept.append(one)
    return kept


def hide(text: str, found: Sequence[Found], mask: Callable[[Found], str] = lambda _one: REDACTED) -> str:
    """``text`` with each secret replaced by its mask."""
    parts: list[str] = []
    done = 0
    for one in found:
        parts += (text[done : one.start], mask(one))
        done = one.end
    return "".join((*parts, text[done:]))


@dataclass(frozen=True)
class Screened:
    """A text after the settings were applied to it; ``found`` refers to characters of the text as it came."""

    text: str
    found: list[Found] = field(default_factory=list)
    hidden: bool = False

    def original(self, position: int) -> int:
        """The character of the text as it came that stands at ``position`` of the screened one."""
        if not self.hidden:
            return position
        starts: list[int] = []
        shift = 0
        shifts = [0]
        for one in self.found:
            mask = len(_mask(one))
            starts.append(one.start - shift + mask)
            shift += one.end - one.start - mask
            # Positions below are in the new text; everything behind a mask moves by what was cut out so far.
            shifts.append(shift)
        return position + shifts[bisect_right(starts, position)]

    def counts(self) -> dict[str, int]:
        """How many of each rule."""
        counted: dict[str, int] = {}
        for one in self.found:
            counted[one.rule] = counted.get(one.rule, 0) + 1
        return counted


def screen(text: str, settings: SecretsConfig) -> Screened:
    """Look for secrets and do what the settings say.

    Returns:
        the text, with ``[redacted:RULE]`` in place of each secret where ``secrets.action`` is ``redact``.

    Raises:
        InvalidChunk: ``secrets.action`` is ``refuse`` and there is one. The message names the format and the line,
            never the secret.
    """
    if settings.action == "off":
        return Screened(text)
    found = find_secrets(text, pii=settings.pii)
    if not found:
        return Screened(text)
    if settings.action == "refuse":
        first = found[0]
        line = text.count("\n", 0, first.start) + 1
        raise InvalidChunk(
            f"line {line} of the content holds what looks like {first.title}, and secrets are refused",
            hint="Take it out, or set secrets.action to redact or warn"
            + (" (secrets.pii = false allows addresses and numbers)." if first.kind == PII else "."),
        )
    if settings.action == "redact":
        return Screened(hide(text, found, _mask), found, hidden=True)
    return Screened(text, found)


def _mask(one: Found) -> str:
    return f"[redacted:{one.rule}]"


def log_secrets(where: str, screened: Screened) -> None:
    """Say in the log what was found: a warning for keys, a remark for addresses and numbers."""
    done = "was hidden in" if screened.hidden else "stands in"
    for kind, level in ((KEY, logging.WARNING), (PII, logging.INFO)):
        titles = dict.fromkeys(one.title for one in screened.found if one.kind == kind)
        if titles:
            _logger.log(level, "what looks like %s %s %s", " and ".join(titles), done, where)
