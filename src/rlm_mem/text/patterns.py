"""Patterns that are compiled when they are first needed, some only for a text that has one of their signs.

Compiling the patterns of all rules takes longer than a search, which uses few of them.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Any, cast


class LatePattern:
    """Stand-in for a pattern, with its attributes and methods; each is copied from the pattern when first used."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(*self._given)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.compiled, name)
        setattr(self, name, value)  # from now on as quick as the method of a pattern
        return value


class SignedPattern(LatePattern):
    """A pattern with signs: a text without any of them has no match, which is quicker to find out.

    Attributes:
        signs: as they stand in a text that is :func:`folded`.
    """

    def __init__(self, pattern: str, flags: int, signs: str) -> None:
        super().__init__(pattern, flags)
        self.signs = tuple(signs.split("|"))

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        """As for a pattern."""
        return self.compiled.search(text, start) if self._may_match(text) else None

    def match(self, text: str) -> re.Match[str] | None:
        """As for a pattern."""
        return self.compiled.match(text) if self._may_match(text) else None

    def sub(self, new: str, text: str) -> str:
        """As for a pattern."""
        return self.compiled.sub(new, text) if self._may_match(text) else text

    def _may_match(self, text: str) -> bool:
        return any(map(folded(text).__contains__, self.signs))


def late(pattern: str, flags: int = 0, *, signs: str = "") -> re.Pattern[str]:
    """Like `re.compile`, but compiled when first used. Call its methods: functions of `re` do not accept it.

    Args:
        signs: texts separated by ``|``, at least one of which is in every :func:`folded` text that has a match. With
            them, `match` and `sub` take a text only, no positions in it, and `search` none for its end.
    """
    made = SignedPattern(pattern, flags, signs) if signs else LatePattern(pattern, flags)
    return cast("re.Pattern[str]", made)


@lru_cache(maxsize=256)
def folded(text: str) -> str:
    """A text in lower case, with the ASCII letter for each other letter that `re.IGNORECASE` takes for it."""
    low = text.lower()
    return low if low.isascii() else low.replace("i\u0307", "i").replace("ı", "i").replace("ſ", "s")


_WORD = late(r"\w+")


@lru_cache(maxsize=256)
def _words_in(text: str) -> frozenset[str]:
    """The words of a text, folded. Cached: a text is looked up by several rules."""
    return frozenset(_WORD.findall(folded(text)))


class Expressions:
    """Words, which are looked up, and a pattern for all else: one with hundreds of words would take long to compile.

    Args:
        words: in lower case, each of letters and digits only; found as whole words, regardless of case.

    Attributes:
        others: matches phrases and marks.
    """

    def __init__(self, words: frozenset[str], others: re.Pattern[str]) -> None:
        self._words, self.others = words, others

    def found_in(self, text: str) -> bool:
        """Whether any of them is in a text."""
        return not self._words.isdisjoint(_words_in(text)) or self.others.search(text) is not None
