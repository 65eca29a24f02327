"""The regular expressions of `grep`, by RE2, whose time is linear in the text for any pattern."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlm_mem.sandbox.engine import HostCallFailed
from rlm_mem.text.patterns import linear

MAX_PATTERN = 1_000
_PATTERN_BYTES = 8 << 20
"""Maximum bytes of memory of the automaton of one pattern."""


def compiled(pattern: Any, ignore_case: bool) -> Callable[[str], tuple[int, int] | None]:
    """Compile a pattern to a function that returns start and end of the first match in a text, or None.

    The host must not run a backtracking pattern of the program's choice, so the engine is RE2.
    """
    if not isinstance(pattern, str):
        raise HostCallFailed("TypeError", "grep takes the pattern as text: grep(r'\\bAna\\b')")
    if len(pattern) > MAX_PATTERN:
        raise HostCallFailed(
            "ValueError",
            f"grep: the pattern has {len(pattern):,} characters; at most {MAX_PATTERN:,} are taken",
        )
    try:
        compiled = linear(f"(?m){pattern}", _PATTERN_BYTES, ignore_case=ignore_case)
    except ValueError as error:
        raise HostCallFailed(
            "ValueError",
            f"grep cannot use the pattern {pattern[:80]!r}: {error}. It takes RE2: no lookahead, "
            "lookbehind or backreference, repetitions up to 1,000; for words, write turns(contains='…')",
        ) from None

    def first_match(text: str) -> tuple[int, int] | None:
        try:
            match = compiled.search(text)
        except UnicodeEncodeError:
            # An unpaired surrogate in stored text: everything else in it can still be matched, at the same positions.
            match = compiled.search(text.encode("utf-8", "replace").decode("utf-8"))
        return None if match is None else match.span()

    return first_match
