"""Python's parser for the host, one text at a time.

The parser of CPython 3.11 and 3.12 counts its depth for the whole interpreter: when one thread waits in the middle of a
parse, another one that parses makes both fail with a SystemError. So a lock stands before it. Parsing holds the
interpreter's lock too, for about 4 µs a token, so the number of tokens is bounded.
"""

from __future__ import annotations

import ast
import re
import threading
import time

from rlm_mem.errors import TimeoutError

__all__ = [
    "MAX_TOKENS",
    "NODES_BETWEEN_LOOKS",
    "TooManyTokens",
    "check_deadline",
    "line_at_fault",
    "parse",
    "syntax_tree",
]

MAX_TOKENS = 20_000
"""Words and signs of a text that is parsed."""

NODES_BETWEEN_LOOKS = 2_000
"""Nodes of a syntax tree, or parts of a value, that are visited between two looks at the clock; some milliseconds."""

_TOKEN = re.compile(r"\w+|[^\w\s]")
_LOCK = threading.Lock()


class TooManyTokens(ValueError):
    """A text has more words and signs than are parsed."""


def check_deadline(deadline: float) -> None:
    """Raise TimeoutError once ``time.monotonic()`` has passed ``deadline``."""
    if time.monotonic() > deadline:
        raise TimeoutError("the time for the program was up while it was checked or its values were read")


def syntax_tree(code: str) -> ast.Module:
    """Parse ``code``; raises what ``ast.parse`` raises for text that is no program.

    Raises:
        TooManyTokens: it has more than ``MAX_TOKENS`` words and signs.
    """
    tokens = sum(1 for _ in _TOKEN.finditer(code))
    if tokens > MAX_TOKENS:
        raise TooManyTokens(
            f"the program has {tokens:,} words and signs; at most {MAX_TOKENS:,} are accepted"
        )
    with _LOCK:
        try:
            return ast.parse(code)
        except SystemError:
            # A library parsed at the same moment: the next attempt starts from a depth of its own.
            return ast.parse(code)


def parse(code: str) -> ast.Module | None:
    """The syntax tree of ``code``, or None when Python cannot parse it or it is too long to be parsed."""
    try:
        return syntax_tree(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def line_at_fault(code: str) -> int:
    """The line, from 1, at which ``code`` stops to be Python; 1 where the parser cannot say."""
    try:
        syntax_tree(code)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 1
    return 1
