"""A memory that grows to a size, in a folder or on a PostgreSQL server: as users fill it, or from files laid down.

Its notes are short, and follow five sentence patterns.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rlm_mem.chunk import Chunk, ChunkLinks, ChunkMetadata, content_hash, encode_chunk, format_time
from rlm_mem.config import Config
from rlm_mem.memory import Memory
from rlm_mem.text.tokens import count_tokens
from support import timed

TOPICS = (
    "the supplier moved the delivery of the {n} brackets to week {w}",
    "Ines measured {n} milliamps on board {w} after the firmware change",
    "we decided to keep gateway {n} in hall {w} until the lease ends",
    "customer {n} prefers invoices on paper, sent before the {w}th",
    "the night build of branch {n} failed on runner {w} with a full disk",
)


def note(number: int) -> str:
    """A short note, different for every number."""
    text = TOPICS[number % len(TOPICS)].format(n=number, w=number % 52)
    return f"Note {number}: {text}, seen on day {number % 365} by team {number % 17}."


def fill(memory: Memory, size: int) -> None:
    """Fill the store to ``size`` chunks, in large commits."""
    number = memory.stats().chunk_count
    while number < size:
        with memory.batch():
            end = min(size, number + 2000)
            for new in range(number, end):
                remember(memory, new)
        number = end


def remember(memory: Memory, number: int) -> None:
    """One short note, with a tag and a conversation."""
    memory.remember(note(number), conversation_id=f"conv-{number // 20}", tags=[f"team-{number % 17}"])


def side_by_side(memory: Memory, folder: Path, first: int, rounds: int) -> tuple[list[float], list[float]]:
    """Remembers and floors in turn: the speed of the disk changes within seconds, so both must be measured together."""
    connection = sqlite3.connect(folder / "floor.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS t(x)")
    data = os.urandom(1500)

    def floor(number: int) -> None:
        target = folder / f"floor-{number}"
        with target.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        connection.execute("INSERT INTO t VALUES (?)", (number,))

    costs, floors = [], []
    for number in range(first, first + rounds):
        floors.append(timed(lambda number=number: floor(number))[0])
        costs.append(timed(lambda number=number: remember(memory, number))[0])
    connection.close()
    return costs, floors


_START = datetime(2016, 1, 1, tzinfo=UTC)
_STEP = timedelta(minutes=5)


class Growing:
    """One memory, reopened as often as needed; `place` is a folder or a DSN."""

    def __init__(self, place: str | Path) -> None:
        self.place = place
        self.config = Config.load(environ={})
        self.local = isinstance(place, Path)

    @contextmanager
    def opened(self) -> Iterator[Memory]:
        """The memory."""
        with Memory.open(self.place, config=self.config) as memory:
            yield memory

    def write(self, size: int) -> float:
        """Bring it to `size` chunks by remembering, in large commits; chunks per second."""
        with self.opened() as memory:
            missing = max(0, size - memory.stats().chunk_count)
            took, _ = timed(lambda: fill(memory, size))
        return missing / took * 1e3

    def lay_down(self, size: int) -> None:
        """Bring the folder to `size` chunk files, as `remember` would write them; the index follows at opening."""
        assert isinstance(self.place, Path)
        folder = self.place / "memory" / "chunks"
        ids = sorted(path.stem for path in folder.glob("*/*.json"))
        first = len(ids)
        ids += [f"chunk-{_START + number * _STEP:%Y-%m-%d}-{number:08x}" for number in range(first, size)]
        for number in range(first, size):
            chunk = _chunk(number, ids)
            folder = self.place / "memory" / "chunks" / chunk.metadata.created_at[:7]
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{chunk.id}.json").write_bytes(encode_chunk(chunk))


def _chunk(number: int, ids: list[str]) -> Chunk:
    content, stamp = note(number), format_time(_START + number * _STEP)
    context = [
        (number - back, "context_of") for back in range(1, 11) if (number - back) // 20 == number // 20
    ]
    related = [(number - 17 * back, "related_to") for back in range(1, 11)]
    return Chunk(
        ids[number],
        content,
        count_tokens(content),
        "fact",
        ChunkMetadata(
            created_at=stamp,
            modified_at=stamp,
            accessed_at=stamp,
            conversation_id=f"conv-{number // 20}",
            content_hash=content_hash(content),
            provenance={"span": [0, len(content)]},
        ),
        [ChunkLinks(ids[to], kind, 0.9, stamp) for to, kind in context + related if to >= 0],
        [f"team-{number % 17}"],
    )
