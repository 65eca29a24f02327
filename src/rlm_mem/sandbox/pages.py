"""Long output a page at a time: what does not fit is kept, and a program can print the pages that follow."""

from __future__ import annotations

from typing import Any

from rlm_mem.sandbox.arguments import count
from rlm_mem.sandbox.engine import HostCallFailed

__all__ = ["Pages"]

_REMARK = 120
"""Characters that are kept free for the remark at the end of a page."""
_LEAST = 80


class Pages:
    """The newest output of a session that was longer than a page."""

    def __init__(self) -> None:
        self._pages: list[str] = []
        self._total = 0

    def first(self, text: str, size: int) -> tuple[str, bool]:
        """The text, or its first page with a remark that says how to read on; and whether it was too long.

        Args:
            text: what was printed. A text that fits leaves the pages of an earlier one as they are.
            size: longest page in characters, remark included.
        """
        if len(text) <= size:
            return text, False
        self._pages = _cut(text, max(_LEAST, size - _REMARK))
        self._total = len(text)
        return self._page(1), True

    def get(self, number: Any = 2) -> str:
        """The page with this number, counted from 1."""
        if not self._pages:
            raise HostCallFailed(
                "ValueError", "page: no output was too long so far; print what you want to see"
            )
        wanted = count("number", number, -1, 1_000_000)
        if not 1 <= wanted <= len(self._pages):
            raise HostCallFailed(
                "ValueError", f"page: the output has the pages 1 to {len(self._pages)}, not {wanted}"
            )
        return self._page(wanted)

    def _page(self, number: int) -> str:
        last = len(self._pages)
        remark = f"page {number} of {last}, {self._total:,} characters in all"
        more = f"; print(page({number + 1})) shows the next" if number < last else ""
        return f"{self._pages[number - 1]}\n[{remark}{more}]"


def _cut(text: str, room: int) -> list[str]:
    """The text in pieces of at most ``room`` characters, ended where a line ends if one does in their last fifth."""
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
