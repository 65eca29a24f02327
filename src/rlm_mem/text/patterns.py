"""Sets of words, and lazily compiled patterns, some of them only for texts that contain one of their signs.

Compiling the patterns of all rules takes longer than a search, which uses few of them. The signs of a pattern are
texts that it requires, read off the pattern itself.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from itertools import chain
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
    """A pattern that can only match texts with one of its signs, which is faster to check."""

    @cached_property
    def signs(self) -> tuple[str, ...]:
        """Texts in the form of :func:`folded`, one of which is in every folded text that has a match."""
        return tuple(dict.fromkeys(map(folded, signs_of(self._given[0]))))

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
        return not self.signs or any(map(folded(text).__contains__, self.signs))


def word_set(text: str) -> frozenset[str]:
    """The words of a table, separated by white space."""
    return frozenset(text.split())


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Like `re.compile`, but compiled on first use; use its methods, since functions of `re` do not accept it."""
    return cast("re.Pattern[str]", LatePattern(pattern, flags))


def signed(pattern: str) -> re.Pattern[str]:
    """Like :func:`late`, ignoring case, for a pattern that few texts match: those without its signs are not searched.

    Its `match` and `sub` accept no positions, and `search` no end position.
    """
    return cast("re.Pattern[str]", SignedPattern(pattern, re.IGNORECASE))


_CHAR = r"[^\\\[\]()|^$.?*+{}]"
_PIECE = late(
    r"\\.|\[(?:\\.|[^\]\\]){1,200}+\]|\((?:\?(?:P<\w+>|<?[:=!]))?|[)|^$.]|(?:[?*+]|\{[\d,]+\})\??"
    rf"|{_CHAR}(?=[?*+{{])|(?:{_CHAR}(?![?*+{{]))+"
)
"""A piece of a pattern: an escape, a class, a bracket, a quantifier or literal text."""
_MOST_FORMS = 64
"""Most forms of a part of a pattern that are spelled out."""
_SHORT_CLASS = 9
"""Length below which a class is spelled out: "['’]"."""
_EMPTY = ("",)


class _Alternative:
    """One alternative of a pattern, read piece by piece.

    ``forms`` are all texts of the last part that is spelled out; ``required`` are sets of texts, one of which is in
    every match; ``last`` is the last piece, to which a quantifier may apply, as its forms or, without these, its signs.
    """

    def __init__(self) -> None:
        self.forms: tuple[str, ...] = _EMPTY
        self.required: list[tuple[str, ...]] = []
        self.last: tuple[tuple[str, ...], tuple[str, ...]] = _EMPTY, ()

    def add(self, forms: tuple[str, ...], signs: tuple[str, ...] = ()) -> None:
        mine, others = self.last
        if mine is _EMPTY:  # nothing to add
            pass
        elif mine and len(self.forms) * len(mine) <= _MOST_FORMS:
            self.forms = tuple([before + after for before in self.forms for after in mine])
        else:
            self.required += (self.forms, others)
            self.forms = mine or _EMPTY
        self.last = forms, signs

    def ended(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Its forms, if it is spelled out as a whole, and its signs."""
        self.add(_EMPTY)
        if not self.required:
            return self.forms, self.forms if all(self.forms) else ()
        signs = max((*self.required, self.forms), key=lambda one: (min(map(len, one), default=0), -len(one)))
        return (), (signs if all(signs) else ())


def signs_of(pattern: str) -> tuple[str, ...]:
    """Texts, one of which is in every text that a pattern matches, apart from case; empty if there are none."""
    groups: list[tuple[str, list[_Alternative]]] = [("(", [_Alternative()])]
    for piece in _PIECE.findall(pattern):
        alternative = groups[-1][1][-1]
        if piece[0] == "(":
            groups.append((piece, [_Alternative()]))
        elif piece == "|":
            groups[-1][1].append(_Alternative())
        elif piece == ")":
            opened, read = groups.pop()
            around = opened[-1] in "=!"
            groups[-1][1][-1].add(*((_EMPTY, ()) if around else _either(read)))
        elif piece[0] in "?*+{":
            forms, signs = alternative.last
            if piece[0] == "?":
                alternative.last = ((*forms, "") if forms else ()), ()
            else:
                alternative.last = (), () if piece[0] == "*" or piece[1:2] == "0" else signs or forms
        elif piece in ("^", "$", r"\b", r"\A", r"\Z"):
            alternative.add(_EMPTY)
        elif piece[0] == "[":
            is_short = len(piece) < _SHORT_CLASS and not set("-^\\").intersection(piece)
            alternative.add(tuple(piece[1:-1]) if is_short else ())
        elif piece == "." or (piece[0] == "\\" and piece[1].isalnum()):
            alternative.add(())
        else:
            alternative.add((piece.removeprefix("\\"),))
    return _either(groups[0][1])[1]


def _either(read: list[_Alternative]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The forms and signs of alternatives together: of all of them, or none."""
    forms, signs = zip(*(one.ended() for one in read), strict=True)
    return tuple(chain(*forms)) if all(forms) else (), tuple(chain(*signs)) if all(signs) else ()


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
