"""The pages of output that is too long to be shown at once."""

from __future__ import annotations

from typing import Any

from rlm_mem.sandbox.arguments import count
from rlm_mem.sandbox.engine import HostCallFailed

_REMARK_CHARS = 120
"""Characters reserved for the remark at the end of a page."""
_MIN_PAGE_CHARS = 80


class Pages:
    """The newest output of a session that is longer than a page."""

    def __init__(self) -> None:
        self._pages: list[str] = []
        self._total = 0

    def first(self, text: str, size: int) -> tuple[str, bool]:
        """Return the text, or its first page with a remark on how to continue; and whether it was too long.

        Args:
            text: the output. A text that fits does not change the pages of an earlier one.
            size: maximum characters of a page, including the remark.
        """
        if len(text) <= size:
            return text, False
        self._pages = _cut(text, max(_MIN_PAGE_CHARS, size - _REMARK_CHARS))
        self._total = len(text)
        return self._page(1), True

    def get(self, number: Any = 2) -> str:
        """Return the page with this number, counted from 1."""
        if not self._pages:
            raise HostCallFailed(
                "ValueError", "page: no output was too long so far; print what you want to see"
            )
        asked_page = count("number", number, -1, 1_000_000)
        if not 1 <= asked_page <= len(self._pages):
            raise HostCallFailed(
                "ValueError", f"page: the output has the pages 1 to {len(self._pages)}, not {asked_page}"
            )
        return self._page(asked_page)

    def _page(self, number: int) -> str:
        last = len(self._pages)
        remark = f"page {number} of {last}, {self._total:,} characters in all"
        more = f"; print(page({number + 1})) shows the next" if number < last else ""
        return f"{self._pages[number - 1]}\n[{remark}{more}]"


def _cut(text: str, room: int) -> list[str]:
    """Split a text into pieces of at most ``room`` characters, at the end of a line if one is in the last fifth."""
    pieces = []
    start = 0
    while start < len(text):
        end = start + room
        if end < len(text):
            line = text.rfind("\n", end - room // 5, end)
            end = line + 1 if line > start else end
        pieces.append(text[start:end].rstrip("\n"))
        start = end
    return pieces
