"""Lazily compiled patterns, some of them only for texts that contain one of their signs.

Compiling the patterns of all rules takes longer than a search, which uses few of them.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Any, cast


class LatePattern:
    """Proxy of a pattern, which is compiled on first use of an attribute or method."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(*self._given)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.compiled, name)
        setattr(self, name, value)  # cached, so later accesses do not pass through here
        return value


class SignedPattern(LatePattern):
    """A pattern that can only match texts with one of its signs, which is faster to check.

    Attributes:
        signs: texts in the form of :func:`folded`.
    """

    def __init__(self, pattern: str, flags: int, signs: str) -> None:
        super().__init__(pattern, flags)
        self.signs = tuple(signs.split("|"))

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        """Like ``re.Pattern.search``."""
        return self.compiled.search(text, start) if self._may_match(text) else None

    def match(self, text: str) -> re.Match[str] | None:
        """Like ``re.Pattern.match``."""
        return self.compiled.match(text) if self._may_match(text) else None

    def sub(self, new: str, text: str) -> str:
        """Like ``re.Pattern.sub``."""
        return self.compiled.sub(new, text) if self._may_match(text) else text

    def _may_match(self, text: str) -> bool:
        return any(map(folded(text).__contains__, self.signs))


def late(pattern: str, flags: int = 0, *, signs: str = "") -> re.Pattern[str]:
    """Like `re.compile`, but compiled on first use; use its methods, since functions of `re` do not accept it.

    Args:
        signs: texts separated by ``|``, one of which is in every :func:`folded` text that has a match. With
            signs, `match` and `sub` accept no positions, and `search` no end position.
    """
    made = SignedPattern(pattern, flags, signs) if signs else LatePattern(pattern, flags)
    return cast("re.Pattern[str]", made)


@lru_cache(maxsize=256)
def folded(text: str) -> str:
    """A text in lower case, with each letter that `re.IGNORECASE` equates with an ASCII letter replaced by it."""
    low = text.lower()
    return low if low.isascii() else low.replace("i\u0307", "i").replace("ı", "i").replace("ſ", "s")


def linear(pattern: str, max_bytes: int, *, ignore_case: bool = False) -> Any:
    """Compile a pattern of a program, a user or a model with RE2, whose time is linear in the text for any pattern.

    Args:
        max_bytes: memory of its automaton.

    Raises:
        ValueError: RE2 refuses the pattern; the message is the reason.
    """
    import re2  # few processes compile such a pattern

    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    options.max_mem = max_bytes
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(error)
        raise ValueError(text[:120]) from None


_WORD = late(r"\w+")


@lru_cache(maxsize=256)
def _words_in(text: str) -> frozenset[str]:
    """The folded words of a text, cached since several rules look them up."""
    return frozenset(_WORD.findall(folded(text)))


class Expressions:
    """A set of words and a pattern for other expressions; a pattern of hundreds of words would be slow to compile.

    Args:
        words: lower-case words of letters and digits; matched as whole words, ignoring case.

    Attributes:
        others: pattern of phrases and marks.
    """

    def __init__(self, words: frozenset[str], others: re.Pattern[str]) -> None:
        self._words, self.others = words, others

    def found_in(self, text: str) -> bool:
        """Whether a text contains any of the expressions."""
        return not self._words.isdisjoint(_words_in(text)) or self.others.search(text) is not None
