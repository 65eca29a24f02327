"""What was said in the memory, line by line: who, when, what, and the reply; the ground of ``turns`` and ``grep``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from rlm_mem.text.blocks import Said, said_in
from rlm_mem.text.dates import find_dates

if TYPE_CHECKING:
    from rlm_mem.chunk import Chunk
    from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = ["Line", "Lines", "is_speaker", "one_line"]

LONGEST_TEXT = 4_000
"""Characters of a line that are handed out; ``grep`` gives the part around its match."""
LONGEST_REPLY = 400
_LOT = 200


@dataclass(frozen=True, slots=True)
class Line:
    """One turn of a chunk, or the whole of a plain note."""

    chunk: Chunk
    said: list[Said]
    number: int

    @property
    def speaker(self) -> str | None:
        """Who says it; None in a plain note."""
        return self.said[self.number].speaker

    @property
    def text(self) -> str:
        """The words, without the label."""
        turn = self.said[self.number]
        return self.chunk.content[turn.body : turn.end]

    @property
    def at(self) -> str:
        """When: a date in the line's own label, else the time of the chunk."""
        turn = self.said[self.number]
        if turn.body - turn.start > 10:
            for mention in find_dates(self.chunk.content[turn.start : turn.body]):
                if mention.precision == "day":
                    return mention.first.isoformat()
        return self.chunk.metadata.at


class Lines:
    """Goes through the lines of a store.

    Args:
        store: bound to one namespace.
        check: called before each lot of chunks is read; raises when the program has to end.
    """

    def __init__(self, store: ChunkStore, check: Callable[[], None]) -> None:
        self._store = store
        self._check = check

    def chunks(
        self,
        conversation_id: str | None = None,
        start: str | None = None,
        end: str | None = None,
        *,
        offset: int = 0,
        newest_first: bool = False,
    ) -> Iterator[Chunk]:
        """The chunks themselves in order of time, read a few at a time."""
        ids = self._store.list_chunks(conversation_id, start, end, offset=offset, newest_first=newest_first)
        for first in range(0, len(ids), _LOT):
            self._check()
            lot = ids[first : first + _LOT]
            found = self._store.get_many(lot, track=False)
            yield from (found[one] for one in lot if one in found)

    def lines(self, chunk: Chunk) -> Iterator[Line]:
        """The lines of a chunk, in order."""
        said = said_in(chunk.content)
        return (Line(chunk, said, number) for number in range(len(said)))

    def at(self, chunk: Chunk, position: int) -> Line | None:
        """The line of a chunk in which a character stands."""
        for line in self.lines(chunk):
            if line.said[line.number].start <= position < line.said[line.number].end:
                return line
        return next(self.lines(chunk), None)

    def reply(self, line: Line) -> str:
        """What somebody else says next in the conversation, with the label; empty where nobody does."""
        for later in line.said[line.number + 1 :]:
            if later.speaker != line.speaker:
                return one_line(line.chunk.content[later.start : later.end], LONGEST_REPLY)
        if line.speaker is None or line.chunk.metadata.conversation_id is None:
            return ""
        _, after = self._store.neighbours(line.chunk.id, before=0, after=1)
        following = self._store.get_many(after, track=False)
        for chunk in following.values():
            for other in islice(self.lines(chunk), 5):
                if other.speaker != line.speaker:
                    turn = other.said[other.number]
                    return one_line(chunk.content[turn.start : turn.end], LONGEST_REPLY)
        return ""

    def shown(self, line: Line, text: str | None = None) -> dict[str, Any]:
        """A line as programs see it; ``text`` in place of all of its words."""
        words = line.text if text is None else text
        at = line.at
        return {
            "date": at[:10],
            "at": at,
            "speaker": line.speaker,
            "text": words if len(words) <= LONGEST_TEXT else f"{words[: LONGEST_TEXT - 1]}…",
            "reply": self.reply(line),
            "chunk_id": line.chunk.id,
            "conversation_id": line.chunk.metadata.conversation_id,
            "superseded_by": line.chunk.metadata.superseded_by,
        }


def is_speaker(speaker: str | None, wanted: str) -> bool:
    """Whether a speaker goes by the name asked for: the whole name or one word of it, in any case."""
    if speaker is None:
        return False
    name, asked = speaker.casefold(), wanted.casefold().strip()
    return name == asked or asked in name.split()


def one_line(text: str, longest: int) -> str:
    """The text on one line, cut at the end with `…`."""
    # Some room beyond, for the space that is left out.
    text = " ".join(text[: 4 * longest].split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
