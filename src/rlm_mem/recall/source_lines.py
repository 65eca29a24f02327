"""The line of a memory that is nearest to a question, for people, who read one line before a whole memory."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rlm_mem.offline.closest import nearness
from rlm_mem.offline.passages import Passage, unwrapped
from rlm_mem.offline.question import analyse_question
from rlm_mem.sandbox.line_functions import document_of, headings_above, part_of
from rlm_mem.search.snippets import clipped
from rlm_mem.text.blocks import one_line
from rlm_mem.text.patterns import late
from rlm_mem.text.segments import split_segments

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk

_MAX_READ = 20_000
"""Most characters of a chunk that are read; chunks are much shorter unless somebody wants them longer."""

_FILLED = 300
"""Characters up to which a line is filled with what is before the nearest segment, or is the whole chunk."""


_WORD = late(r"\S+")
_RULE = late(r"[ \t|:=~`*_-]{3,400}$")
"""A line of marks only: below the header of a table, between sections, around code."""
_MOST_LINES, _MOST_WIDER = 25, 4
"""Most lines that a line is shown as, and most times its length: a few words can be spread over many pages."""


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


def as_written(line: str, content: str) -> str:
    """The lines of a memory that a source's line was made from, so that a person sees its lists and tables as such.

    Lines of marks only are left out, and the lines of a paragraph are joined. A cut before a whole line is not marked.

    Args:
        line: as :func:`nearest_lines` returns it; one that is not in ``content``, such as that of a former version, is
            returned unchanged, and so is one of marks only, of too many lines, or with much more white space there.
    """
    content = content[:_MAX_READ]
    words = line.removeprefix("…").removesuffix("…").split()
    spaced, sought = (f" {' '.join(some)} " for some in (content.split(), words))
    at = spaced.find(sought) if words else -1
    if at < 0:
        return line
    places, first = list(_WORD.finditer(content)), spaced.count(" ", 0, at)
    start, end = places[first].start(), places[first + len(words) - 1].end()
    margin = content[content.rfind("\n", 0, start) + 1 : start]
    begins_line = not margin.strip()
    shown = unwrapped(margin + content[start:end])  # only long lines are joined, hence the whole first one
    shown = textwrap.dedent(shown) if begins_line else shown[len(margin) :]
    kept = [one.rstrip() for one in shown.splitlines() if one.strip() and not _RULE.match(one)]
    if not 0 < len(kept) <= _MOST_LINES or sum(map(len, kept)) > _MOST_WIDER * len(line):
        return line
    before = "…" if line.startswith("…") and not begins_line else ""
    return before + "\n".join(kept) + ("…" if line.endswith("…") else "")
