"""The line of a memory that is nearest to a question, for people, who read one line before a whole memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rlm_mem.offline.closest import nearness
from rlm_mem.offline.passages import Passage, unwrapped
from rlm_mem.offline.question import analyse_question
from rlm_mem.sandbox.line_functions import document_of, headings_above, part_of
from rlm_mem.search.snippets import clipped
from rlm_mem.text.blocks import one_line
from rlm_mem.text.segments import split_segments

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk

_MAX_READ = 20_000
"""Most characters of a chunk that are read; chunks are much shorter unless somebody wants them longer."""

_FILLED = 300
"""Characters up to which a line is filled with what is before the nearest segment, or is the whole chunk."""


class SourceLine(NamedTuple):
    """A part of a chunk on one line, ``…`` at each cut, and the headings above it, topmost first."""

    text: str
    heading: str


def nearest_lines(question: str, chunks: Iterable[Chunk], longest: int) -> dict[str, SourceLine]:
    """The line of each chunk that is nearest to a question, by id.

    It begins with the segment that is nearest by the rules for the closest memories of the offline model, and goes on
    to ``longest`` characters. A short chunk is one line.
    """
    found: dict[str, SourceLine] = {}
    long = []
    for chunk in chunks:
        line = one_line(chunk.content, min(longest, _FILLED))
        if line.endswith("…"):
            long.append(chunk)
        else:
            found[chunk.id] = SourceLine(line, headings_above(chunk, [0])[0])
    return found | _nearest_of_long(question, long, longest) if long else found


def _nearest_of_long(question: str, chunks: Sequence[Chunk], longest: int) -> dict[str, SourceLine]:
    of_chunks = [list(_passages_of(chunk)) for chunk in chunks]
    near = iter(nearness(analyse_question(question), [one for own in of_chunks for one, _ in own]))
    found = {}
    for chunk, own in zip(chunks, of_chunks, strict=True):
        shares = list(islice(near, len(own)))
        passage, start = own[shares.index(max(shares))]
        content = chunk.content[:_MAX_READ]
        line = " ".join(content.split())
        first = len(" ".join(content[:start].split()))
        first = max(0, min(first + bool(first), len(line) - min(longest, _FILLED)))
        found[chunk.id] = SourceLine(clipped(line, first, longest), passage.heading)
    return found


def _passages_of(chunk: Chunk) -> Iterator[tuple[Passage, int]]:
    """The segments of a chunk as passages without scores, and where each begins."""
    content, before = chunk.content[:_MAX_READ], ""
    segments = split_segments(content)
    part, document = part_of(chunk)[1] > 1, document_of(chunk)
    for segment, heading in zip(
        segments, headings_above(chunk, [one.start for one in segments]), strict=True
    ):
        text = unwrapped(content[segment.body_start : segment.end])
        yield (
            Passage(
                chunk.id, text, segment.author or "", before=before, heading=heading, part=part, document=document,
                conversation_id=chunk.metadata.conversation_id or "",
            ),
            segment.start,
        )  # fmt: skip
        before = text
