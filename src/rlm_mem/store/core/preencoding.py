"""Pre-encoded segments of chunks, computed before their transaction: outside the write lock, possibly in workers."""

from __future__ import annotations

import contextlib
import sys
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from itertools import count
from types import MappingProxyType

import msgspec

from rlm_mem.store.core.encoding import AUTHOR, HEAD, LENGTH, PER_SEGMENT, encode_segments
from rlm_mem.store.core.records import analysed


class LocalTerms(msgspec.Struct, array_like=True, gc=False):
    """Encoded segments whose term numbers are positions in ``terms``, which lists terms in order of first use.

    ``normalised`` is the normalised hash of their content, or empty if it was not computed.
    """

    blob: bytes
    terms: list[str]
    normalised: str = ""

    def numbered(self, term: Callable[[str], int]) -> bytes:
        """Return the blob with dictionary numbers of the index: the result of ``encode_segments`` with ``term``."""
        numbers = list(map(term, self.terms))
        words = self._words()
        start = HEAD + PER_SEGMENT * words[1]
        if any(words[HEAD + AUTHOR : start : PER_SEGMENT]):
            for place in range(HEAD + AUTHOR, start, PER_SEGMENT):
                if words[place]:
                    words[place] = numbers[words[place] - 1] + 1
        words[start:] = array("I", map(numbers.__getitem__, words[start:]))
        if sys.byteorder == "big":
            words.byteswap()
        return words.tobytes()

    def figures(self) -> tuple[int, int]:
        """Return the total length of the segments in terms, and the number of segments."""
        words = self._words()
        return sum(words[HEAD + LENGTH : HEAD + PER_SEGMENT * words[1] : PER_SEGMENT]), words[1]

    def _words(self) -> array[int]:
        words = array("I")
        words.frombytes(self.blob)
        if sys.byteorder == "big":
            words.byteswap()
        return words


Ahead = Mapping[tuple[str, int, str], LocalTerms]
"""Encoded segments, by content, length of the repeated prefix, and surroundings."""

AHEAD: ContextVar[Ahead] = ContextVar("AHEAD", default=MappingProxyType({}))
"""The encoded segments available to the chunks being stored."""

WAIT: ContextVar[Callable[[Callable[[], object]], object]] = ContextVar("WAIT", default=lambda call: call())
"""Runs a call that waits for the disk: in this thread, or in another if this process has other work meanwhile."""


@contextlib.contextmanager
def preencoded_segments(found: Ahead) -> Iterator[None]:
    """Provide encoded segments to chunks stored inside the block; each block sets a new mapping."""
    token = AHEAD.set(MappingProxyType(dict(found)))
    try:
        yield
    finally:
        AHEAD.reset(token)


def local_terms(content: str, skip_before: int, around: str, language: str) -> LocalTerms:
    """Encode the segments of a content, with local term numbers."""
    places: defaultdict[str, int] = defaultdict(count().__next__)
    blob = encode_segments(analysed(language, content, skip_before, around), places.__getitem__)
    return LocalTerms(blob, list(places))
