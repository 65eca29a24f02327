"""A folder of documents that is changed at random while several processes keep a memory in step with it.

In each round files are edited, renamed, moved onto each other, swapped, deleted and brought back while the processes
sync. Then the memory must hold exactly what the files say, and in some rounds exactly what a new memory holds after
importing them; nothing may be erased. With ``--baseline PYTHON`` the import is also timed, there and here in turn.

    python benchmarks/folders.py                            # 600 documents, 200 rounds, 3 processes
    python benchmarks/folders.py --quick
    python benchmarks/folders.py --baseline ../before/.venv/bin/python --rounds 1
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rlm_mem.interchange.documents import DocumentReader, SyncOptions
from rlm_mem.interchange.folders import sync_folder
from rlm_mem.interchange.places import Entry, FolderPlace, Unreadable
from rlm_mem.memory import Memory
from rlm_mem.store.core.chunk_store import ChunkStore
from support import Report, arguments, percentile, timed

_WORDS = [
    "gate",
    "boat",
    "key",
    "lamp",
    "river",
    "stone",
    "harbour",
    "crane",
    "clock",
    "garden",
    "bridge",
    "market",
    "winter",
    "letter",
    "engine",
    "window",
    "paper",
]
_IMPORT = """
import json, resource, sys, time
from rlm_mem.interchange import import_source
from rlm_mem.memory import Memory
with Memory.open(sys.argv[1]) as memory:
    memory.remember("A first memory, so that everything is loaded.")
    began = time.perf_counter()
    made = import_source(memory.store, sys.argv[2]).created
    took = time.perf_counter() - began
print(json.dumps({"chunks": made, "seconds": round(took, 2)}))
"""
_WORKER = """
import sys
from rlm_mem.memory import Memory
with Memory.open(sys.argv[1]) as memory:
    for line in sys.stdin:
        memory.sync_folder(sys.argv[2])
        print("done", flush=True)
"""


def paragraphs(dice: random.Random, most: int) -> str:
    """Some paragraphs that nobody wrote."""
    return "\n\n".join(
        " ".join(dice.choice(_WORDS) for _ in range(dice.randint(30, 120))).capitalize() + "."
        for _ in range(dice.randint(1, most))
    )


def change(folder: Path, dice: random.Random) -> str:
    """Change one file at random; what was done."""
    away = folder.parent / "away"
    away.mkdir(exist_ok=True)
    files = sorted(folder.rglob("*.md"))
    act = (
        dice.choice(("edit", "edit", "edit", "rename", "onto", "swap", "delete", "restore", "add"))
        if files
        else "add"
    )
    file = dice.choice(files) if files else folder
    fresh = folder / f"{dice.randrange(20):02d}" / f"n{dice.randrange(1 << 40)}.md"
    fresh.parent.mkdir(exist_ok=True)
    if act == "edit":
        parts = file.read_text().split("\n\n")
        place = dice.randrange(len(parts) + 1)
        parts[place : place + dice.randrange(3)] = [paragraphs(dice, 2)] if dice.random() < 0.7 else []
        file.write_text("\n\n".join(parts) or "Nothing is left.")
    elif act in ("rename", "onto"):
        file.rename(fresh if act == "rename" else dice.choice(files))
    elif act == "swap":
        other = dice.choice(files)
        one, two = file.read_text(), other.read_text()
        file.write_text(two)
        other.write_text(one)
    elif act == "delete":
        file.rename(away / f"{dice.randrange(1 << 40)}.md")
    elif act == "restore" and (gone := sorted(away.iterdir())):
        dice.choice(gone).rename(fresh)
    else:
        fresh.write_text(paragraphs(dice, 8))
    return act


def held(store: ChunkStore) -> set[tuple[str, str, int]]:
    """What holds: path, content and place of each chunk that nothing replaced."""
    return {
        (str(chunk.metadata.provenance["path"]), chunk.content, chunk.metadata.provenance["span"][0])
        for chunk in store.iter_chunks()
        if chunk.metadata.superseded_by is None
    }


def said(store: ChunkStore, folder: Path) -> Iterator[tuple[str, str, int]]:
    """What the files say."""
    reader = DocumentReader(FolderPlace(folder), str(folder), SyncOptions(), store.config)
    for entry in FolderPlace(folder).entries():
        assert isinstance(entry, Entry)
        try:
            text = reader.text(entry, reader.digest(entry))
        except Unreadable:  # nothing but space
            continue
        assert text is not None
        for _, number in text.pieces:
            piece = text.analysed.pieces[number]
            yield entry.name, piece.content, piece.start


def rounds(scratch: Path, files: int, count: int, processes: int, fresh_every: int) -> dict[str, Any]:
    """One row: changes, and that the memory held what it should after each round."""
    dice, folder, brain = random.Random(1), scratch / "docs", scratch / "brain"
    folder.mkdir()
    for _ in range(files):
        place = folder / f"{dice.randrange(20):02d}" / f"n{dice.randrange(1 << 40)}.md"
        place.parent.mkdir(exist_ok=True)
        place.write_text(paragraphs(dice, 8))
    command = [sys.executable, "-c", _WORKER, str(brain), str(folder)]
    done: Counter[str] = Counter()
    costs, imports = [], 0
    with Memory.open(brain) as memory:
        sync_folder(memory.store, folder)
        workers = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for _ in range(processes)
        ]
        for number in range(count):
            for worker in workers:
                assert worker.stdin
                worker.stdin.write("sync\n")
                worker.stdin.flush()
            done.update(change(folder, dice) for _ in range(dice.randint(1, 5)))
            for worker in workers:
                assert worker.stdout
                if worker.stdout.readline() != "done\n":
                    raise RuntimeError(f"a process ended with {worker.wait()}")
            milliseconds, _ = timed(lambda: sync_folder(memory.store, folder))
            costs.append(milliseconds)
            present = held(memory.store)
            if present != set(said(memory.store, folder)):
                raise RuntimeError(f"round {number}: the memory is not in step with the files")
            if number % fresh_every == 0 or number == count - 1:
                imports += 1
                with Memory.open(scratch / "fresh") as fresh:
                    sync_folder(fresh.store, folder)
                    if held(fresh.store) != present:
                        raise RuntimeError(f"round {number}: the memory is not that of a fresh import")
                shutil.rmtree(scratch / "fresh")
        for worker in workers:
            worker.communicate()
        events = Counter(str(event["op"]) for event in memory.store.events())
        if events["erase"]:
            raise RuntimeError("something was erased")
        if memory.check():
            raise RuntimeError("the store has findings")
        return {
            "files": files, "rounds": count, "processes": processes + 1, "changes": sum(done.values()),
            "imports": imports,
            "equal": count, "chunks": len(held(memory.store)), "superseded": events["supersede"],
            "archived": events["delete"], "restored": events["restore"],
            "sync_p50": percentile(costs, 0.5), "sync_p95": percentile(costs, 0.95),
        }  # fmt: skip


def import_times(scratch: Path, folder: Path, pythons: dict[str, str]) -> dict[str, list[float]]:
    """Seconds of importing the folder into a new memory, three times in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in pythons}
    for number in range(3):
        for name, python in pythons.items():
            command = [python, "-c", _IMPORT, str(scratch / f"{name}-{number}"), str(folder)]
            ran = subprocess.run(command, capture_output=True, text=True, check=True)
            seconds[name].append(json.loads(ran.stdout)["seconds"])
    return seconds


def main() -> None:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--files", type=int, default=600, help="documents of the folder")
    parser.add_argument("--rounds", type=int, default=200, help="rounds of changes")
    parser.add_argument("--processes", type=int, default=2, help="that sync beside this one")
    parser.add_argument(
        "--fresh-every", type=int, default=20, help="rounds from one fresh import to the next"
    )
    parser.add_argument(
        "--baseline", default=None, help="the Python of another installation, to time its import"
    )
    options = parser.parse_args()
    files, count = (40, 15) if options.quick else (options.files, options.rounds)
    report = Report(
        "folders",
        "A folder changed at random under several processes; the memory equals its files after each round",
    )
    with tempfile.TemporaryDirectory(prefix="rlm-mem-folders-") as place:
        scratch = Path(place).resolve()
        report.add(**rounds(scratch, files, count, options.processes, options.fresh_every))
        if options.baseline:
            pythons = {"before": options.baseline, "here": sys.executable}
            for name, seconds in import_times(scratch, scratch / "docs", pythons).items():
                report.facts[f"import {name}, seconds"] = seconds
    report.finish(options.output)


if __name__ == "__main__":
    main()
