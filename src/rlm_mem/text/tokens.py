"""Exact token counts, offline (encoding o200k).

The tables come with the package `toktok-rs` and take a third of a second to load, so the package is not imported
before the first count.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from types import ModuleType

from rlm_mem.chunk.types import shown
from rlm_mem.errors import InputError
from rlm_mem.text.patterns import late

ENCODING = "o200k_base"

_SHORT = 8_000
"""Texts of up to this many characters in all are counted singly: a batch call lets other threads run, and wakes one."""
_NO_LIMIT = (1 << 31) - 1
_PIECE = late(r"[A-Za-z0-9]{1,40}|[^\x00-\x7f]{1,8}|[^ ]| {2,}")
_ROUNDED = 2
"""Tokens added to every estimate: in a short text a single rare word has a large share."""
_WORD = 12
"""Letters of the longest word that is estimated as an ordinary word."""
_LONE_SURROGATE = late("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"  # what a strict encoder would write in its place; it counts as one token


def count_tokens(text: str) -> int:
    """Number of o200k tokens of `text`; special-token strings count as ordinary text.

    Any string is counted: a lone surrogate (which UTF-8 cannot hold) counts as U+FFFD.
    """
    toktok = _toktok()
    try:
        counted: int = toktok.truncate(text, _NO_LIMIT, ENCODING)[1]
    except UnicodeEncodeError:
        counted = toktok.truncate(_encodable(text), _NO_LIMIT, ENCODING)[1]
    return counted


def count_many(texts: Sequence[str]) -> list[int]:
    """Token counts of many texts, in order."""
    if sum(map(len, texts)) <= _SHORT:
        return [count_tokens(text) if text else 0 for text in texts]
    toktok = _toktok()
    try:
        return list(toktok.batch_count(texts, ENCODING, 1))
    except UnicodeEncodeError:
        return list(toktok.batch_count([_encodable(text) for text in texts], ENCODING, 1))


def estimated_tokens(text: str) -> int:
    """An estimate of the tokens of a text, made without the tables: a little too high for texts that people and
    programs write, but a text of invented words may have twice as many.
    """
    return _ROUNDED + sum(map(_estimated, _PIECE.findall(text)))


def truncate_estimated(text: str, limit: int) -> str:
    """The longest beginning of `text` in whole words, of at most `limit` estimated tokens (0 or more)."""
    left = limit - _ROUNDED
    for piece in _PIECE.finditer(text):
        left -= _estimated(piece[0])
        if left < 0:
            return text[: piece.start()].rstrip()
    return text


def _estimated(piece: str) -> int:
    length = len(piece)
    if piece[0] == " ":
        return 1  # all but the last of several blanks, which belongs to what follows
    if not piece.isascii():
        return len(piece.encode("utf-8", "replace")) // 2 + 1
    if piece.isdigit():
        return (length + 5) // 3  # three digits are a token, and so is the blank before a number
    if length > _WORD or not piece.isalpha():
        return (4 * length + 4) // 5
    if piece.islower():
        return 1 + length // 8
    return 1 + length // 5 if piece.istitle() else length


def truncate_tokens(text: str, limit: int) -> str:
    """The longest beginning of `text`, ending between characters, of at most `limit` tokens (0 or more)."""
    if limit <= 0:
        return ""
    # A lone surrogate and its replacement are one character each: the kept length is the same in both.
    kept, _ = _toktok().truncate(_encodable(text), limit, ENCODING)
    return text[: len(kept)]


def check_max_tokens(limit: object) -> int:
    """Return a budget of tokens; raises InputError unless it is a whole number from 0 up."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise InputError(f"max_tokens must be a whole number from 0 up, not {shown(limit)}")
    return limit


def texts_within(texts: Sequence[str], limit: int) -> list[str]:
    """The first texts that together have at most `limit` tokens (0 or more); the last one is cut to fit.

    Raises:
        InputError: the limit is negative, or no whole number.
    """
    check_max_tokens(limit)
    kept: list[str] = []
    for text, cost in zip(texts, count_many(texts), strict=True):
        if cost > limit:
            beginning = truncate_tokens(text, limit)
            return [*kept, beginning] if beginning.strip() else kept
        kept.append(text)
        limit -= cost
    return kept


def _encodable(text: str) -> str:
    return _LONE_SURROGATE.sub(_REPLACEMENT, text)


@cache
def _toktok() -> ModuleType:
    return importlib.import_module("toktok")
