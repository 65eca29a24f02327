"""ChunkingEngine: a text becomes chunks of bounded size that begin and end where a reader would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rlm_mem.chunk import check_tags
from rlm_mem.errors import InputError
from rlm_mem.ingest.classify import detect_content_type
from rlm_mem.ingest.cutting import CutCosts, Cuts, find_cuts
from rlm_mem.ingest.packing import Sizes, pack
from rlm_mem.text.tokens import count_many, count_tokens

_UNITS_PER_TARGET = 10  # a chunk of target size is put together from about this many units …
_UNITS_PER_CHUNK = 32  # … and the largest from no more than about this many, which bounds the time
_ATTEMPTS = 4
_KEEP_WHOLE = 8.0  # cost of cutting inside a paragraph when no target asks for it


@dataclass(frozen=True)
class ChunkResult:
    """One chunk of a text, not stored yet.

    `content` is exactly `text[start:end]` of the source. Its first `overlap` characters repeat the end of the chunk
    before (0 unless the cut fell inside running text); without them, the chunks hold every character of the source
    but the space between chunks, in order.
    """

    content: str
    tokens: int
    type: str
    index: int
    start: int
    end: int
    overlap: int = 0
    conversation_id: str | None = None
    tags: list[str] = field(default_factory=list)

    @property
    def chunk_type(self) -> str:
        """The same as `type`, under the name that `create_chunk` takes."""
        return self.type


class ChunkingEngine:
    """Cuts text into chunks (docs/spec/operations.md, Chunking).

    Paragraphs below the minimum are merged with their neighbours, those above the maximum are split at sentence
    ends, the end of one chunk repeated at the start of the next. Dialogue is cut between turns, sections at their
    headings; code blocks, lists, tables and turns stay whole where they fit. An unbroken run is cut all the same.
    Time and memory are linear in the text.

    Args:
        min_tokens: smallest chunk, in o200k tokens; a whole text below it is one chunk.
        max_tokens: largest chunk, never exceeded.
        target_tokens: size to aim for by merging paragraphs. None: as few paragraphs to a chunk as the minimum
            allows, and a paragraph is only split when it exceeds the maximum.
        overlap_tokens: most tokens repeated after a cut in running text. None: an eighth of the maximum, at most 40.

    Raises:
        InputError: a size that is no whole number, or sizes that contradict each other.
    """

    def __init__(
        self,
        min_tokens: int = 100,
        max_tokens: int = 800,
        *,
        target_tokens: int | None = None,
        overlap_tokens: int | None = None,
    ) -> None:
        self.min_tokens = _size(min_tokens, "min_tokens", 1)
        self.max_tokens = _size(max_tokens, "max_tokens", 2)
        if self.min_tokens > self.max_tokens:
            raise InputError(f"min_tokens {min_tokens} is above max_tokens {max_tokens}: swap them")
        self.target_tokens = None if target_tokens is None else _size(target_tokens, "target_tokens", 1)
        if self.target_tokens is not None and not self.min_tokens <= self.target_tokens <= self.max_tokens:
            raise InputError(
                f"target_tokens {target_tokens} must lie between min_tokens {min_tokens} and max_tokens {max_tokens}"
            )
        default = min(40, self.max_tokens // 8)
        self.overlap_tokens = (
            default if overlap_tokens is None else _size(overlap_tokens, "overlap_tokens", 0)
        )
        if self.overlap_tokens > self.max_tokens // 2:
            raise InputError(
                f"overlap_tokens {overlap_tokens} must be at most half of max_tokens {max_tokens}"
            )

    def chunk(
        self, content: str, conversation_id: str | None = None, tags: Sequence[str] | None = None
    ) -> list[ChunkResult]:
        """Split `content` into chunks, in order; nothing but space gives an empty list.

        Args:
            content: any text.
            conversation_id: handed on to every chunk.
            tags: handed on to every chunk.

        Raises:
            InputError: `content` is not text, or the tags are not a list of words.
        """
        if not isinstance(content, str):
            raise InputError(f"content must be text, not {type(content).__name__}")
        if conversation_id is not None and not isinstance(conversation_id, str):
            raise InputError(f"conversation_id must be text, not {type(conversation_id).__name__}")
        checked = check_tags(tags)
        cuts = self._cuts(content)
        spans, counts = self._partition(content, cuts)
        results: list[ChunkResult] = []
        for index, ((first, last), tokens) in enumerate(zip(spans, counts, strict=True)):
            start, end = _slice(cuts, first, last)
            own = cuts.start[first]
            results.append(
                ChunkResult(
                    content=content[start:end],
                    tokens=tokens,
                    type=detect_content_type(content[own:end]),
                    index=index,
                    start=start,
                    end=end,
                    overlap=own - start,
                    conversation_id=conversation_id,
                    tags=list(checked),
                )
            )
        return results

    def detect_content_type(self, content: str) -> str:
        """One of decision, pattern, preference, fact, note; rules in `ingest/classify.py`."""
        if not isinstance(content, str):
            raise InputError(f"content must be text, not {type(content).__name__}")
        return detect_content_type(content)

    def _cuts(self, content: str) -> Cuts:
        costs = CutCosts() if self.target_tokens is not None else CutCosts(sentence=_KEEP_WHOLE)
        aim = self.target_tokens or self.min_tokens
        # Units are small enough that two cuts around them can always meet both bounds.
        largest = max(1, min(self.max_tokens // 4, max(1, self.max_tokens - self.min_tokens)))
        grain = min(largest, max(aim // _UNITS_PER_TARGET, self.max_tokens // _UNITS_PER_CHUNK, 1))
        return find_cuts(
            content,
            grain=grain,
            largest=largest,
            most=self.max_tokens,
            overlap=self.overlap_tokens,
            costs=costs,
        )

    def _partition(self, content: str, cuts: Cuts) -> tuple[list[tuple[int, int]], list[int]]:
        """The chunks as ranges of units, with exact counts.

        The sum of parts can differ from the count of the whole; where that broke a bound, the bounds are drawn in
        by the same ratio and the packing is done again.
        """

        def exact(first: int, last: int) -> int:
            start, end = _slice(cuts, first, last)
            return count_tokens(content[start:end])

        sizes = Sizes(self.min_tokens, self.target_tokens or self.min_tokens, self.max_tokens)
        spans: list[tuple[int, int]] = []
        counts: list[int] = []
        for _ in range(_ATTEMPTS):
            spans = pack(cuts, sizes, exact)
            counts = count_many([content[slice(*_slice(cuts, *span))] for span in spans])
            closer = self._drawn_in(sizes, cuts, spans, counts)
            if closer is None:
                break
            sizes = closer
        return spans, counts

    def _drawn_in(
        self, sizes: Sizes, cuts: Cuts, spans: list[tuple[int, int]], counts: list[int]
    ) -> Sizes | None:
        """Bounds to pack again with; None where the real bounds hold or cannot be met better."""
        least, most = sizes.least, sizes.most
        for (first, last), count in zip(spans, counts, strict=True):
            if last - first > 1 and count > self.max_tokens:
                most = min(most, self.max_tokens * cuts.estimate(first, last) // count - 1)
            elif count < self.min_tokens and cuts.estimate(first, last) >= sizes.least and len(spans) > 1:
                least = max(least, self.min_tokens * cuts.estimate(first, last) // count + 1)
        if (least, most) == (sizes.least, sizes.most) or least > most:
            return None
        return Sizes(least, min(max(sizes.target, least), most), most)


def _slice(cuts: Cuts, first: int, last: int) -> tuple[int, int]:
    return cuts.repeat_from[first], cuts.end[last - 1]


def _size(value: object, name: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name} must be a whole number of tokens, {least} or more, not {value!r:.40}")
    return value
