"""Filling a memory in two checkouts in turn: short notes and documents, one by one, in large commits, and imported.

Each checkout has an environment of its own (`.venv`). Every way of filling starts with an empty memory in a fresh
process, and both checkouts take turns, so that a noisy moment hits both alike. `many` is `Memory.remember_many` where a
checkout has it, and `remember` within `Memory.batch` where it has not. The processor time includes that of children of
the process, but not that of a database server.

The report names the time that the file system takes for an empty new file. On ext4 it is some 25 microseconds, but ten
times as much for minutes after many files were removed nearby, which adds as much to both checkouts and so brings the
rates closer to each other: choose a folder (`TMPDIR`) in which nothing was removed lately.

    git worktree add /tmp/before d6a8052     # and an environment in it
    python benchmarks/filling.py /tmp/before . --notes 100000
    python benchmarks/filling.py /tmp/before . --databases postgresql://localhost/one postgresql://localhost/two
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from support import ENVIRON, Report, arguments, commit_of, percentile

SUBJECTS = ["Ines", "Dana", "Marek", "Priya", "Tomas", "Yuki", "Lena", "Omar", "Greta", "Pavel"]
VERBS = [
    "moved", "measured", "ordered", "repaired", "described", "tested", "postponed", "replaced", "inspected", "shipped",
]  # fmt: skip
WAYS = ("each", "many", "import")
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


def vocabulary(size: int = 8000) -> list[str]:
    """Words that no stemmer alters much, the first of them the most frequent."""
    pick = random.Random(7)
    return list(
        dict.fromkeys(
            "".join(pick.choices(_SYLLABLES, k=pick.choice((2, 2, 3)))) + "n" for _ in range(2 * size)
        )
    )[:size]


def sentence(pick: random.Random, words: list[str], length: int) -> str:
    """A sentence of so many words: some of them common, the others from the vocabulary, the first ones most often."""
    found = [words[int(len(words) * pick.random() ** 3)] for _ in range(length - 5)]
    number = pick.randrange(10_000)
    start = f"{pick.choice(SUBJECTS)} {pick.choice(VERBS)} the {found[0]} {number}"
    middle = " ".join(word if place % 3 else f"of the {word}" for place, word in enumerate(found[1:]))
    return f"{start} {middle}."


def notes(count: int) -> Iterator[dict[str, Any]]:
    """Short notes of some 25 words, twenty to a conversation."""
    pick, words = random.Random(1), vocabulary()
    for number in range(count):
        text = f"Note {number}: {sentence(pick, words, 12)} {sentence(pick, words, 9)}"
        yield {"text": text, "conversation_id": f"conv-{number // 20}", "tags": [f"team-{number % 17}"]}


def documents(count: int) -> Iterator[dict[str, Any]]:
    """Markdown documents of some 350 tokens, with headings, paragraphs and lists."""
    pick, words = random.Random(2), vocabulary()
    for number in range(count):
        parts = [f"# Report {number} on {words[pick.randrange(3000)]}"]
        for part in range(pick.choice((1, 2, 3))):
            parts.append(f"## {words[pick.randrange(3000)]} {part}")
            parts.append(" ".join(sentence(pick, words, pick.randrange(9, 16)) for _ in range(5)))
            parts.append("\n".join(f"- {sentence(pick, words, 8)}" for _ in range(3)))
        yield {"text": "\n\n".join(parts), "conversation_id": f"report-{number}"}


def fill(way: str, kind: str, count: int, batch: int, place: str, source: str) -> dict[str, Any]:
    """Within a checkout's own interpreter: fill an empty memory, and say what it took."""
    from rlm_mem import Memory

    items = list(notes(count) if kind == "notes" else documents(count))
    with Memory.open(place) as memory:
        memory.remember("The first memory loads the modules.")
        several = getattr(memory, "remember_many", None)
        wall, used = time.perf_counter(), _cpu()
        if way == "import":
            from rlm_mem.interchange import import_source

            import_source(memory.store, source)
        elif way == "each":
            for item in items:
                memory.remember(**item)
        elif several is not None:
            for _ in several(items, batch=batch):
                pass
        else:
            for start in range(0, count, batch):
                with memory.batch():
                    for item in items[start : start + batch]:
                        memory.remember(**item)
        wall, used = time.perf_counter() - wall, _cpu() - used
        stats: Any = memory.stats()
        chunks = stats.chunk_count if hasattr(stats, "chunk_count") else stats["chunk_count"]
    return {"wall": wall, "cpu": used, "chunks": chunks - 1}


def _cpu() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def sizes(folder: Path) -> dict[str, int]:
    """Bytes of a brain folder: of files as they are, and of the blocks that they take."""
    files = [path.stat() for path in folder.rglob("*")]
    chunks = [path.stat() for path in (folder / "memory" / "chunks").rglob("*.json")]
    return {
        "bytes": sum(one.st_size for one in files),
        "blocks": sum(one.st_blocks * 512 for one in files),
        "chunk files": sum(one.st_size for one in chunks),
        "chunk blocks": sum(one.st_blocks * 512 for one in chunks),
    }


def new_file_us(folder: Path, count: int = 500) -> float:
    """Microseconds of processor time for an empty new file in a new folder, which stays."""
    place = Path(tempfile.mkdtemp(prefix="new-", dir=folder))
    used = _cpu()
    for number in range(count):
        (place / str(number)).touch()
    return round((_cpu() - used) / count * 1e6)


def _source(kind: str, count: int, folder: Path) -> Path:
    """What `import` reads: a list of notes, or a folder of documents."""
    if kind == "notes":
        path = folder / "notes.md"
        path.write_text("\n\n".join(item["text"] for item in notes(count)), encoding="utf-8")
        return path
    path = folder / "documents"
    path.mkdir(exist_ok=True)
    for item in documents(count):
        (path / f"{item['conversation_id']}.md").write_text(item["text"], encoding="utf-8")
    return path


def _run(checkout: Path, store: str | None, job: dict[str, Any], folder: Path) -> dict[str, Any]:
    python = checkout.absolute() / ".venv" / "bin" / "python"
    # Nothing is removed before the end: ext4 takes no inode that was freed a moment ago, but looks at each of them for
    # every new file, so that a run would pay for the one before.
    place = Path(tempfile.mkdtemp(prefix="brain-", dir=folder)) / "brain"
    environment = dict(ENVIRON)
    if store is not None:
        environment["RLM_MEM_STORE_NAMESPACE"] = f"fill/{time.time_ns()}"
    job = job | {"place": store or str(place)}
    done = subprocess.run(
        [str(python), __file__, "--job", json.dumps(job)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{checkout}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if store is None:
        found |= sizes(place)
    return found


def main() -> None:
    """Measure and report."""
    if sys.argv[1:2] == ["--job"]:
        print(json.dumps(fill(**json.loads(sys.argv[2]))))
        return
    parser = arguments(__doc__ or "")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--documents", type=int, default=600)
    parser.add_argument("--batch", type=int, default=500, help="texts of one commit")
    parser.add_argument("--ways", default="each,many", help=f"of {', '.join(WAYS)}")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument(
        "--databases",
        nargs=2,
        metavar="DSN",
        help="also a database for each checkout: each run has its own namespace there",
    )
    options = parser.parse_args()
    for dsn in options.databases or ():
        if "://" not in dsn:
            parser.error(f"{dsn!r} is no database but a folder: give postgresql://USER@HOST/NAME")
    report = Report("filling", "Filling an empty memory (texts per second, seconds of processor time)")
    scratch = Path(tempfile.mkdtemp(prefix="rlm-mem-filling-", dir=os.environ.get("TMPDIR")))
    report.facts["microseconds to create a file"] = new_file_us(scratch)
    try:
        for stores in ((None, None), *([options.databases] if options.databases else ())):
            _compare(report, options, stores, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    report.facts["compared"] = [commit_of(options.before), commit_of(options.after)]
    report.finish(options.output)


def _compare(
    report: Report, options: argparse.Namespace, stores_of: Sequence[str | None], scratch: Path
) -> None:
    counts = {"notes": options.notes, "documents": options.documents}
    for kind, whole in counts.items():
        count = min(whole, 500) if options.quick else whole
        if not count:
            continue
        source = _source(kind, count, scratch)
        for way in options.ways.split(","):
            job = {"way": way, "kind": kind, "count": count, "batch": options.batch, "source": str(source)}
            pairs = []
            for number in range(1 if options.quick else options.pairs):
                turn = [options.before, options.after]
                if number % 2:
                    turn.reverse()
                stores = dict(zip((options.before, options.after), stores_of, strict=True))
                made = {place: _run(place, stores[place], job, scratch) for place in turn}
                pairs.append((made[options.before], made[options.after]))
            before, after = pairs[-1]
            row: dict[str, Any] = {
                "texts": kind,
                "method": way,
                "store": "files" if stores_of[0] is None else "postgresql",
                "number of texts": count,
                "chunks": after["chunks"],
                "pairs": len(pairs),
            }
            for name, ratio, part in (("texts/s", "speed-up", "wall"), ("CPU s", "CPU ratio", "cpu")):
                one, two = (percentile([pair[side][part] for pair in pairs], 0.5) for side in (0, 1))
                row[f"{name} before"] = round(count / one if part == "wall" else one, 1)
                row[f"{name} after"] = round(count / two if part == "wall" else two, 1)
                row[ratio] = round(percentile([pair[0][part] / pair[1][part] for pair in pairs], 0.5), 2)
            if "bytes" in after:
                for name in ("bytes", "blocks"):
                    row[f"{name}/chunk before"] = round(before[name] / before["chunks"])
                    row[f"{name}/chunk after"] = round(after[name] / after["chunks"])
            report.add(**row)


if __name__ == "__main__":
    main()
