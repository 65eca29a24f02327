"""Export and import: 10,000 chunks there and back, and half a million chat messages in bounded memory."""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlm_mem.config import Config
from rlm_mem.interchange import export_store, import_source
from rlm_mem.store.core.chunk_store import ChunkStore
from support import Report, arguments, timed

TEXT = """gate key boat clock tea mill bridge sensor radio cable river meeting budget friday march price paint rope
harbour invoice ticket train garden window letter recipe doctor lesson piano summer winter ferry parcel"""
WORDS = TEXT.split()
FORMATS = {"markdown": "Markdown", "jsonl": "JSON lines", "zip": "zip"}


def main() -> None:
    """Run both parts, print a table and write the report."""
    options = arguments(__doc__ or "").parse_args()
    chunks, messages = (1_000, 20_000) if options.quick else (10_000, 500_000)
    report = Report("interchange", "Moving in and out: every field compared, memory measured")
    # The chats first: measured is how far they raise the peak memory of the process.
    with tempfile.TemporaryDirectory() as folder:
        report.add(**chat_export(Path(folder), messages))
    with tempfile.TemporaryDirectory() as folder:
        for row in round_trip(Path(folder), chunks):
            report.add(**row)
    report.finish(options.output)


def store_at(path: Path) -> ChunkStore:
    """A store that does not wait for the disk: only the work is measured."""
    return ChunkStore(path / "memory", config=Config.load(None, environ={}, store={"durability": "normal"}))


def sentence(random_: random.Random, words: int) -> str:
    """Some words, the same for the same seed."""
    return " ".join(random_.choices(WORDS, k=words)).capitalize() + "."


def round_trip(folder: Path, count: int) -> Iterator[dict[str, Any]]:
    """Chunks of every kind, out and into an empty store, compared field by field."""
    random_ = random.Random(1)
    with store_at(folder / "one") as one:
        ids: list[str] = []
        with one.batch():
            for number in range(count):
                apart = number % 10 == 9
                linked = [] if apart or not ids else [random_.choice(ids)]
                chunk = one.create_chunk(
                    "\n".join(sentence(random_, 12) for _ in range(8)),
                    tags=random_.sample(WORDS, 3),
                    conversation_id=f"talk {number // 20}", occurred_at=f"2026-01-01T00:{number % 60:02}:00Z",
                    namespace="agent/two" if apart else None,
                    links=[{"target_id": id_, "type": "supports", "reasoning": "said so"} for id_ in linked],
                )  # fmt: skip
                if not apart:
                    ids.append(chunk.id)
        with one.batch():
            for chunk_id in ids[::50]:
                one.delete_chunk(chunk_id)
        wanted = state(one)
        for name in ("vault", "all.jsonl", "all.zip"):
            out_ms, out = timed(lambda name=name: export_store(one, folder / name))
            with store_at(folder / f"copy of {name}") as two:
                in_ms, _ = timed(lambda name=name, two=two: import_source(two, folder / name))
                yield {
                    "what": f"{FORMATS[out.format]}, export and import", "megabytes": round(out.bytes / 1e6, 1),
                    "export s": round(out_ms / 1e3, 2), "import s": round(in_ms / 1e3, 2), "chunks": count,
                    "chunks equal in all fields": "yes" if state(two) == wanted else "NO",
                }  # fmt: skip


def state(store: ChunkStore) -> dict[str, Any]:
    """Every field of every chunk."""
    return {
        chunk.id: (archived, chunk.to_dict())
        for name, _ in store.namespaces()
        for archived in (False, True)
        for chunk in store.iter_chunks(namespace=name, archived=archived)
    }


def chat_export(folder: Path, count: int) -> dict[str, Any]:
    """A data export of conversations of 100 messages, imported; then again, with nothing left to do."""
    file = folder / "conversations.json"
    write_export(file, count)
    with store_at(folder / "brain") as store:
        warm = folder / "warm.md"
        warm.write_text("A note, so that every table is loaded before memory is measured.")
        import_source(store, warm)
        before = peak_mb()
        moves: list[int] = []
        first_ms, report = timed(
            lambda: import_source(store, file, progress=lambda done, _total: moves.append(done))
        )
        grown = peak_mb() - before
        again_ms, second = timed(lambda: import_source(store, file))
    assert moves == sorted(moves)
    assert moves[-1] == file.stat().st_size
    assert second.created == 0
    return {
        "what": f"chat export, {report.messages:,} messages", "megabytes": round(file.stat().st_size / 1e6),
        "export s": "", "import s": round(first_ms / 1e3, 1), "chunks": report.created,
        "chunks equal in all fields": "", "repeated import s": round(again_ms / 1e3, 2),
        "growth of peak memory MB": round(grown, 1), "progress reports": len(set(moves)),
    }  # fmt: skip


def write_export(file: Path, count: int) -> None:
    """An array of conversations, each a tree of messages, written in bounded memory."""
    random_ = random.Random(2)
    with file.open("w", encoding="utf-8") as handle:
        handle.write("[")
        for number in range(count // 100):
            nodes: dict[str, Any] = {}
            parent = None
            for position in range(100):
                key = f"n{position}"
                role = ("user", "assistant")[position % 2]
                nodes[key] = {
                    "id": key, "parent": parent,
                    "message": {
                        "author": {"role": role}, "create_time": 1.76e9 + number * 3600 + position * 20,
                        "content": {"content_type": "text", "parts": [sentence(random_, random_.randint(3, 12))]},
                    },
                }  # fmt: skip
                parent = key
            talk = {
                "title": f"Talk {number}",
                "id": f"talk-{number}",
                "current_node": parent,
                "mapping": nodes,
            }
            handle.write(("," if number else "") + json.dumps(talk))
        handle.write("]")


def peak_mb() -> float:
    """Peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


if __name__ == "__main__":
    main()
