"""Counts tokens exactly, offline (encoding o200k).

The tables of the package `toktok-rs` take long to load, so it is imported with the first count.
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
"""Maximum total characters of texts counted one by one, which avoids the thread switch of a batch call."""
_NO_LIMIT = (1 << 31) - 1
_PIECE = late(r"[A-Za-z0-9]{1,40}|[^\x00-\x7f]{1,8}|[^ ]| {2,}")
_ROUNDED = 2
"""Tokens added to every estimate, since one rare word matters in a short text."""
_WORD = 12
"""Maximum letters of a word that is estimated as an ordinary word."""
_LONE_SURROGATE = late("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"  # the usual replacement of a lone surrogate; counts as one token


def count_tokens(text: str) -> int:
    """Number of o200k tokens of `text`; special-token strings count as ordinary text.

    Any string is accepted: a lone surrogate (which UTF-8 cannot encode) counts as U+FFFD.
    """
    toktok = _toktok()
    try:
        counted: int = toktok.truncate(text, _NO_LIMIT, ENCODING)[1]
    except UnicodeEncodeError:
        counted = toktok.truncate(_encodable(text), _NO_LIMIT, ENCODING)[1]
    return counted


def count_many(texts: Sequence[str]) -> list[int]:
    """Number of tokens of each text, in order."""
    if sum(map(len, texts)) <= _SHORT:
        return [count_tokens(text) if text else 0 for text in texts]
    toktok = _toktok()
    try:
        return list(toktok.batch_count(texts, ENCODING, 1))
    except UnicodeEncodeError:
        return list(toktok.batch_count([_encodable(text) for text in texts], ENCODING, 1))


def estimated_tokens(text: str) -> int:
    """Estimate the number of tokens without the tables.

    The estimate is slightly too high for ordinary text and code, but invented words may have twice as many tokens.
    """
    return _ROUNDED + sum(map(_estimated, _PIECE.findall(text)))


def truncate_estimated(text: str, limit: int) -> str:
    """The longest prefix of `text` in whole words with at most `limit` estimated tokens."""
    left = limit - _ROUNDED
    for piece in _PIECE.finditer(text):
        left -= _estimated(piece[0])
        if left < 0:
            return text[: piece.start()].rstrip()
    return text


def _estimated(piece: str) -> int:
    length = len(piece)
    if piece[0] == " ":
        return 1  # all but the last of several blanks; that belongs to the next word
    if not piece.isascii():
        return len(piece.encode("utf-8", "replace")) // 2 + 1
    if piece.isdigit():
        return (length + 5) // 3  # three digits are a token, as is the blank before a number
    if length > _WORD or not piece.isalpha():
        return (4 * length + 4) // 5
    if piece.islower():
        return 1 + length // 8
    return 1 + length // 5 if piece.istitle() else length


def truncate_tokens(text: str, limit: int) -> str:
    """The longest prefix of `text` in whole characters with at most `limit` tokens."""
    if limit <= 0:
        return ""
    # A lone surrogate and its replacement are one character each, so the prefix has the same length in both.
    kept, _ = _toktok().truncate(_encodable(text), limit, ENCODING)
    return text[: len(kept)]


def check_max_tokens(limit: object) -> int:
    """Return a limit of tokens; raises InputError unless it is a non-negative integer."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise InputError(f"max_tokens must be a whole number from 0 up, not {shown(limit)}")
    return limit


def texts_within(texts: Sequence[str], limit: int) -> list[str]:
    """The first texts with at most `limit` tokens in total, the last one truncated to fit.

    Raises:
        InputError: the limit is negative or not an integer.
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
