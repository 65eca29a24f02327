"""Importing into stores of growing size: the same 1,000 chunks as JSON lines, as a folder of Markdown and as a chat.

A rate that falls with the size of the store would mean that something reads all of it for each chunk.

    python benchmarks/imports.py                   # into 1,000, 10,000 and 100,000 chunks
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from growing import Growing
from interchange import store_at, write_export
from remember import note
from rlm_mem.config import Config
from rlm_mem.interchange import export_store, import_source
from rlm_mem.interchange.report import ImportReport
from rlm_mem.store.core.chunk_store import ChunkStore
from support import Report, arguments

MANY = 1_000


def sources(folder: Path, count: int) -> dict[str, Path]:
    """The sources to import."""
    with store_at(folder / "from") as store, store.batch():
        for number in range(count):
            store.create_chunk(
                note(400_000_000 + number),
                "fact",
                tags=[f"team-{number % 17}"],
                conversation_id=f"imported-{number // 20}",
            )
    with store_at(folder / "from") as store:
        export_store(store, folder / "chunks.jsonl")
        export_store(store, folder / "vault")
    chats = folder / "conversations.json"
    write_export(chats, max(100, count * 25 // 100 * 100))
    return {"jsonl": folder / "chunks.jsonl", "markdown": folder / "vault", "chat": chats}


def rate(action: Callable[[], ImportReport]) -> tuple[int, ImportReport]:
    """Chunks created per second, and the report."""
    began = time.perf_counter()
    made = action()
    return round(made.created / (time.perf_counter() - began)), made


def remove(store: ChunkStore, chunk_ids: list[str]) -> None:
    """Leave the store as it was before an import; the chunks that `growth.py` lays down are of other conversations."""
    with store.batch():
        for chunk_id in chunk_ids:
            chunk = store.get_chunk(chunk_id, track=False)
            if chunk is not None and not (chunk.metadata.conversation_id or "").startswith("conv-"):
                store.delete_chunk(chunk_id, permanent=True)


def main() -> None:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--sizes", type=int, nargs="+", default=None, help="numbers of chunks")
    options = parser.parse_args()
    sizes = options.sizes or ([1_000, 5_000] if options.quick else [1_000, 10_000, 100_000])
    count = 200 if options.quick else MANY
    report = Report("imports", f"Importing {count:,} chunks into a store (chunks a second)")
    config = Config.load(environ={})
    with tempfile.TemporaryDirectory(prefix="rlm-mem-imports-") as name:
        found = sources(Path(name), count)
        growing = Growing(Path(name) / "brain")
        for size in sizes:
            growing.lay_down(size)
            row: dict[str, Any] = {"chunks": size}
            with ChunkStore(Path(name) / "brain" / "memory", config=config) as store:
                for kind, source in found.items():
                    per_second, made = rate(
                        lambda source=source, store=store: import_source(store, source, again=True)
                    )
                    if not made.created:
                        raise RuntimeError(json.dumps(made.as_dict(), default=str)[:500])
                    row[f"{kind}_per_s"] = per_second
                    if kind == "jsonl":
                        began = time.perf_counter()
                        import_source(store, source)
                        row["jsonl_again_s"] = round(time.perf_counter() - began, 2)
                    if kind == "chat":
                        row["chat_chunks"] = made.created
                    remove(store, made.chunk_ids or store.list_chunks(start_date="2017-01-01"))
            report.add(**row)
    report.finish(options.output)


if __name__ == "__main__":
    main()
