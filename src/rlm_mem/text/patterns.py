"""Patterns that are compiled when they are first used.

Compiling the patterns of all rules takes longer than a search, which uses few of them.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast

__all__ = ["LatePattern", "late"]


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


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Like `re.compile`, but compiled when first used. Call its methods: functions of `re` do not accept it."""
    return cast("re.Pattern[str]", LatePattern(pattern, flags))
