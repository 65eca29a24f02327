"""Disk and memory of a brain by its content: the figures of the table in docs/operations.md.

Two kinds: short notes with about eighteen links each, as `remember` makes them of conversations, and chunks of some 220
tokens without links, as imports of documents give. Disk is what the file system takes, in its blocks.

    python benchmarks/sizing.py            # 1,000 and 10,000 chunks; of short notes 100,000 too; Linux only
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from growing import Growing, note
from recall_overhead import build
from support import Report, arguments

_ASK = """
import sys
from pathlib import Path
from rlm_mem import Memory

def most():
    # Not ru_maxrss, which begins with what the parent held.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("VmHWM"))

with Memory.open(sys.argv[1]) as memory:
    opened = most()
    for question in sys.argv[2:]:
        memory.search(question)
print(opened, most())
"""


def on_disk(place: Path) -> float:
    """Megabytes of a file or of all below a folder."""
    files = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    return round(sum(path.stat().st_blocks for path in files) * 512 / 1e6, 1)


def measure(brain: Path, size: int, kind: str) -> dict[str, Any]:
    """One row."""
    questions = [note(number * 37) for number in range(20)]
    asked = subprocess.run(
        [sys.executable, "-c", _ASK, str(brain), *questions], capture_output=True, text=True, check=True
    )
    opened, searched = (int(number) / 1024 for number in asked.stdout.split())
    index = brain / "memory" / "index"
    whole, chunks = on_disk(brain), on_disk(brain / "memory" / "chunks")
    return {
        "chunks": size,
        "kind": kind,
        "chunk_files_mb": chunks,
        "index_mb": on_disk(index),
        "postings (part of the index) MB": on_disk(index / "postings"),
        "log and other files MB": round(whole - chunks - on_disk(index), 1),
        "KB per chunk": round(whole * 1000 / size, 1),
        "memory after opening MB": round(opened),
        "memory_after_searches_mb": round(searched),
    }


def _short(brain: Path, size: int) -> None:
    growing = Growing(brain)
    growing.lay_down(size)
    with growing.opened() as memory:
        memory.search("warm up")
        memory.checkpoint()


def _long(brain: Path, size: int) -> None:
    with Growing(brain).opened() as memory:
        build(memory.store, size)


def main() -> None:
    """Measure and report."""
    options = arguments(__doc__ or "").parse_args()
    kinds: dict[str, tuple[Callable[[Path, int], None], list[int]]] = {
        "notes of 25 words, 18 links": (_short, [500] if options.quick else [1_000, 10_000, 100_000]),
        "220 tokens, no links": (_long, [500] if options.quick else [1_000, 10_000]),
    }
    report = Report("sizing", "Disk and memory of a brain")
    for kind, (fill, sizes) in kinds.items():
        for size in sizes:
            with tempfile.TemporaryDirectory(prefix="rlm-mem-sizing-") as name:
                fill(Path(name) / "brain", size)
                report.add(**measure(Path(name) / "brain", size, kind))
    report.finish(options.output)


if __name__ == "__main__":
    main()
