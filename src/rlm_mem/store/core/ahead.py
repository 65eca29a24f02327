"""Segments of chunks, encoded before their transaction: by other processes, and outside of the write lock."""

from __future__ import annotations

import contextlib
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType

import msgspec

from rlm_mem.store.core.records import encode_segments, segments_of, texts_of

__all__ = ["AHEAD", "Ahead", "LocalTerms", "local_terms", "segments_ahead"]

_HEAD, _PER_SEGMENT, _AUTHOR, _LENGTH = 3, 6, 2, 4  # of a segment blob, in words (store.core.records)


class LocalTerms(msgspec.Struct, array_like=True):
    """Encoded segments whose terms are numbered by their places in ``terms``, in the order of their first use.

    ``normalised`` is the normalised hash of their content, empty where it was not computed.
    """

    blob: bytes
    terms: list[str]
    normalised: str = ""

    def numbered(self, term: Callable[[str], int]) -> bytes:
        """The blob with the numbers of the index's own dictionary: what ``encode_segments`` gives with ``term``."""
        numbers = list(map(term, self.terms))
        words = self._words()
        start = _HEAD + _PER_SEGMENT * words[1]
        if any(words[_HEAD + _AUTHOR : start : _PER_SEGMENT]):
            for place in range(_HEAD + _AUTHOR, start, _PER_SEGMENT):
                if words[place]:
                    words[place] = numbers[words[place] - 1] + 1
        words[start:] = array("I", map(numbers.__getitem__, words[start:]))
        if sys.byteorder == "big":
            words.byteswap()
        return words.tobytes()

    def figures(self) -> tuple[int, int]:
        """Length of all segments in terms, and how many segments there are."""
        words = self._words()
        return sum(words[_HEAD + _LENGTH : _HEAD + _PER_SEGMENT * words[1] : _PER_SEGMENT]), words[1]

    def _words(self) -> array[int]:
        words = array("I")
        words.frombytes(self.blob)
        if sys.byteorder == "big":
            words.byteswap()
        return words


Ahead = Mapping[tuple[str, int, str], LocalTerms]
"""Segments that are encoded already, by content, length of the repeated prefix, and surroundings."""

AHEAD: ContextVar[Ahead] = ContextVar("AHEAD", default=MappingProxyType({}))
"""Those that are taken by what is stored now."""


@contextlib.contextmanager
def segments_ahead(found: Ahead) -> Iterator[None]:
    """Let what is stored inside take segments that are encoded already; writers see another mapping each time."""
    token = AHEAD.set(MappingProxyType(dict(found)))
    try:
        yield
    finally:
        AHEAD.reset(token)


def local_terms(content: str, skip_before: int, around: str, language: str) -> LocalTerms:
    """The encoded segments of a content, with a numbering of terms of their own."""
    segments = segments_of(language, content, skip_before, around)
    terms = list(texts_of(segments))
    places = {term: place for place, term in enumerate(terms)}
    return LocalTerms(encode_segments(segments, places.__getitem__), terms)
