"""Python's parser for the host, one text at a time.

The parser of CPython 3.11 and 3.12 counts its depth for the whole interpreter: when one thread waits in the middle of a
parse, another one that parses makes both fail with a SystemError. So a lock stands before it.
"""

from __future__ import annotations

import ast
import threading

__all__ = ["line_at_fault", "parse", "syntax_tree"]

_LOCK = threading.Lock()


def syntax_tree(code: str) -> ast.Module:
    """Parse ``code``; raises what ``ast.parse`` raises for text that is no program."""
    with _LOCK:
        try:
            return ast.parse(code)
        except SystemError:
            # A library parsed at the same moment: the next attempt starts from a depth of its own.
            return ast.parse(code)


def parse(code: str) -> ast.Module | None:
    """The syntax tree of ``code``, or None when Python cannot parse it."""
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
