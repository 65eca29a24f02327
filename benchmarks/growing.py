"""A memory that grows to a size, in a folder or on a PostgreSQL server: as users fill it, or from files laid down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from remember import fill, note
from rlm_mem.chunk import Chunk, ChunkLinks, ChunkMetadata, content_hash, encode_chunk, format_time
from rlm_mem.config import Config
from rlm_mem.memory import Memory
from rlm_mem.text.tokens import count_tokens
from support import timed

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
