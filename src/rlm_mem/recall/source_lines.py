"""The line of a memory that is nearest to a question, for people, who read one line before a whole memory."""

from __future__ import annotations

from collections.abc import Iterable
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


class SourceLine(NamedTuple):
    """A part of a chunk on one line, ``…`` at each cut, and the headings above it, topmost first."""

    text: str
    heading: str


def nearest_lines(question: str, chunks: Iterable[Chunk], longest: int) -> dict[str, SourceLine]:
    """The line of each chunk that is nearest to a question, by id.

    It begins with the segment that is nearest by the rules for the closest memories of the offline model, and goes on
    to ``longest`` characters. A chunk that is not longer is one line.
    """
    found: dict[str, SourceLine] = {}
    long = []
    for chunk in chunks:
        line = one_line(chunk.content, longest)
        if line.endswith("…"):
            long.append(chunk)
        found[chunk.id] = SourceLine(line, headings_above(chunk, [0])[0])
    return found | _nearest_of_long(question, long, longest) if long else found


def _nearest_of_long(question: str, chunks: Iterable[Chunk], longest: int) -> dict[str, SourceLine]:
    passages: list[Passage] = []
    places: dict[
        str, list[tuple[int, int, str]]
    ] = {}  # the number of a passage, its start, the headings above it
    read = {one.id: one.content[:_MAX_READ] for one in chunks}
    for chunk in chunks:
        text, before = read[chunk.id], ""
        segments = split_segments(text)
        above = headings_above(chunk, [one.start for one in segments])
        for segment, heading in zip(segments, above, strict=True):
            places.setdefault(chunk.id, []).append((len(passages), segment.start, heading))
            body = unwrapped(text[segment.body_start : segment.end])
            passages.append(
                Passage(
                    chunk.id, body, segment.author or "", before=before, heading=heading,
                    part=part_of(chunk)[1] > 1, document=document_of(chunk),
                    conversation_id=chunk.metadata.conversation_id or "",
                )
            )  # fmt: skip
            before = body
    near = nearness(analyse_question(question), passages)
    found = {}
    for chunk_id, own in places.items():
        _, start, heading = max(own, key=lambda place: near[place[0]])
        line = " ".join(read[chunk_id].split())
        first = len(" ".join(read[chunk_id][:start].split()))
        first = max(0, min(first + bool(first), len(line) - longest))
        found[chunk_id] = SourceLine(clipped(line, first, longest), heading)
    return found
