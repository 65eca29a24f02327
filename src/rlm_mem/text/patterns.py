"""Patterns that are compiled when they are first used.

Compiling the patterns of all rules takes longer than a search, which uses few of them.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast

__all__ = ["LatePattern", "late"]


class LatePattern:
    """Stands for a pattern: has its attributes and methods, which are taken over one by one."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._given = pattern, flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The pattern itself."""
        return re.compile(*self._given)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.compiled, name)
        setattr(self, name, value)  # from now on as quick as the method of a pattern
        return value


def late(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """As `re.compile`, but compiled with the first use. To be used as an object, not passed to functions of `re`."""
    return cast("re.Pattern[str]", LatePattern(pattern, flags))
