"""A folder of documents that several processes change at random and keep a memory in sync with.

In each round every process edits, renames, moves onto each other, swaps, deletes and brings back files, and syncs,
while the others do. Then the memory must hold exactly what an import of the files into a new memory makes of them: by
content, place, headings, conversation, type, tags and title. What each file becomes is kept from the round in which it
got its text, so that only changed files are imported anew; in some rounds all of them are. Every chunk that was
ever there must be there still, with its text and with what replaced it.

    python benchmarks/folders.py                            # 600 documents, 200 rounds, 3 processes
    python benchmarks/folders.py --quick
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rlm_mem.chunk import Chunk
from rlm_mem.interchange.documents import SyncOptions
from rlm_mem.interchange.folder_sync import FolderSync
from rlm_mem.interchange.folders import sync_folder
from rlm_mem.interchange.places import Entry, FolderPlace
from rlm_mem.interchange.target import WriteTarget
from rlm_mem.memory import Memory
from rlm_mem.store.core.chunk_store import ChunkStore
from support import Report, arguments, percentile, timed

_WORDS = [
    "gate", "boat", "key", "lamp", "river", "stone", "harbour", "crane", "clock", "garden", "bridge",
    "market", "winter", "letter", "engine", "window", "paper",
]  # fmt: skip
_WORKER = """
import random, sys
from pathlib import Path
from folders import change
from rlm_mem.memory import Memory
folder, dice = Path(sys.argv[2]), random.Random(int(sys.argv[3]))
with Memory.open(sys.argv[1]) as memory:
    for line in sys.stdin:
        done = [change(folder, dice) for _ in range(dice.randint(0, 3))]
        memory.sync_folder(folder)
        print("done", *done, flush=True)
"""

Row = tuple[Any, ...]


def paragraphs(dice: random.Random, most: int) -> str:
    """Some paragraphs that nobody wrote, some of them below a heading."""
    texts = []
    for _ in range(dice.randint(1, most)):
        if dice.random() < 0.3:
            texts.append(
                f"{'#' * dice.randint(1, 3)} The {dice.choice(_WORDS)} and the {dice.choice(_WORDS)}"
            )
        words = (dice.choice(_WORDS) for _ in range(dice.randint(30, 120)))
        texts.append(" ".join(words).capitalize() + ".")
    return "\n\n".join(texts)


def change(folder: Path, dice: random.Random) -> str:
    """Change one file at random; what was done, ``missed`` where another process was quicker."""
    try:
        return _changed(folder, dice)
    except FileNotFoundError:
        return "missed"


def _changed(folder: Path, dice: random.Random) -> str:
    away = folder.parent / "away"
    away.mkdir(exist_ok=True)
    files = sorted(folder.rglob("*.md"))
    act = dice.choice(("edit", "edit", "edit", "rename", "onto", "swap", "delete", "restore", "add"))
    file = dice.choice(files)
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
        fresh.write_text(paragraphs(dice, 12))
        return "add"
    return act


def by_file(chunks: Iterable[Chunk]) -> dict[str, list[Row]]:
    """What holds of each file: all of its chunks that nothing replaced, but for their ids and times."""
    found: dict[str, list[Row]] = {}
    for chunk in chunks:
        about, origin = chunk.metadata, chunk.metadata.provenance
        if about.superseded_by is None:
            more = (chunk.type, about.conversation_id, sorted(chunk.tags), about.extra.get("title"))
            place = (origin["span"], origin.get("part"), origin.get("parts"), origin.get("headings"))
            row = (*place, chunk.content, *more, sorted(origin))
            found.setdefault(str(origin["path"]), []).append(row)
    for rows in found.values():
        rows.sort(key=repr)
    return found


class Imported:
    """What an import into a new memory makes of each file, kept by its path and bytes."""

    def __init__(self, scratch: Path, folder: Path) -> None:
        self._brain, self._folder = scratch / "fresh", folder
        self._known: dict[tuple[str, bytes], list[Row]] = {}
        self.files = 0

    def now(self) -> dict[str, list[Row]]:
        """What the files are to become; those that changed are imported."""
        place = FolderPlace(self._folder)
        entries = [entry for entry in place.entries() if isinstance(entry, Entry)]
        texts = {entry.name: (self._folder / entry.name).read_bytes() for entry in entries}
        changed = [entry for entry in entries if (entry.name, texts[entry.name]) not in self._known]
        self.files += len(changed)
        with Memory.open(self._brain) as memory:
            FolderSync(WriteTarget(memory.store), place, SyncOptions()).run(lambda: changed)
            made = by_file(memory.store.iter_chunks())
        shutil.rmtree(self._brain)
        self._known |= {(entry.name, texts[entry.name]): made.get(entry.name, []) for entry in changed}
        expected = {name: self._known[name, text] for name, text in texts.items()}
        return {name: rows for name, rows in expected.items() if rows}

    def whole(self) -> dict[str, list[Row]]:
        """What a new memory holds after a sync of the whole folder."""
        with Memory.open(self._brain) as memory:
            sync_folder(memory.store, self._folder)
            made = by_file(memory.store.iter_chunks())
        shutil.rmtree(self._brain)
        return made


class Kept:
    """Every chunk that was ever seen, with its text."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def look(self, active: Mapping[str, Chunk], archived: Mapping[str, Chunk]) -> None:
        """Note what is new; raises RuntimeError where something is lost."""
        everything = {**active, **archived}
        for chunk_id, text in self._texts.items():
            if chunk_id not in everything or everything[chunk_id].content != text:
                raise RuntimeError(f"{chunk_id} is lost, or has another text")
        for chunk in everything.values():
            by = chunk.metadata.superseded_by
            if by is not None and by not in everything:
                raise RuntimeError(f"{chunk.id} was replaced by {by}, which is lost")
            self._texts[chunk.id] = chunk.content


def differences(present: Mapping[str, list[Row]], expected: Mapping[str, list[Row]]) -> str:
    """The first file that is not as it should be; empty where all are."""
    for name in sorted({*present, *expected}):
        here, there = present.get(name, []), expected.get(name, [])
        if here != there:
            one = next((row for row in here if row not in there), None)
            other = next((row for row in there if row not in here), None)
            return f"{name}: the memory holds {one}, an import makes {other}"
    return ""


def rounds(scratch: Path, count: int, processes: int, fresh_every: int) -> dict[str, Any]:
    """One row: changes, and that the memory held what it should after each round."""
    dice, folder, brain = random.Random(1), scratch / "docs", scratch / "brain"
    command = [sys.executable, "-c", _WORKER, str(brain), str(folder)]
    done: Counter[str] = Counter()
    costs, imports = [], 0
    imported, kept = Imported(scratch, folder), Kept()
    imported.now()
    with Memory.open(brain) as memory:
        store: ChunkStore = memory.store
        sync_folder(store, folder)
        workers = [
            subprocess.Popen(
                [*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                cwd=Path(__file__).parent,
            )
            for number in range(processes)
        ]  # fmt: skip
        for number in range(count):
            for worker in workers:
                assert worker.stdin
                worker.stdin.write("change and sync\n")
                worker.stdin.flush()
            done.update(change(folder, dice) for _ in range(dice.randint(1, 3)))
            for worker in workers:
                assert worker.stdout
                word, *acts = (worker.stdout.readline() or "ended").split()
                if word != "done":
                    raise RuntimeError(f"a process ended with {worker.wait()}")
                done.update(acts)
            milliseconds, _ = timed(lambda: sync_folder(store, folder))
            costs.append(milliseconds)
            active = {chunk.id: chunk for chunk in store.iter_chunks()}
            archived = {chunk.id: chunk for chunk in store.iter_chunks(archived=True)}
            present = by_file(active.values())
            if wrong := differences(present, imported.now()):
                raise RuntimeError(f"round {number}, {wrong}")
            kept.look(active, archived)
            if sync_folder(store, folder).touched:
                raise RuntimeError(f"round {number}: another sync found something to do")
            if number % fresh_every == fresh_every - 1 or number == count - 1:
                imports += 1
                if wrong := differences(present, imported.whole()):
                    raise RuntimeError(f"round {number}, after a whole import, {wrong}")
                if memory.check():
                    raise RuntimeError(f"round {number}: the store has findings")
                print(f"  round {number + 1} of {count}", file=sys.stderr, flush=True)
        for worker in workers:
            worker.communicate()
        events = Counter(str(event["op"]) for event in store.events())
        if events["erase"]:
            raise RuntimeError("something was erased")
        return {
            "files": len(list(folder.rglob("*.md"))), "rounds": count, "processes": processes + 1,
            "file changes": sum(done.values()) - done["missed"], "rounds with equal results": count,
            "files imported for comparison": imported.files, "folders imported for comparison": imports,
            "chunks": sum(map(len, present.values())),
            "superseded": events["supersede"], "archived": events["delete"], "restored": events["restore"],
            "sync_p50_ms": percentile(costs, 0.5), "sync_p95_ms": percentile(costs, 0.95),
        }  # fmt: skip


def laid_down(folder: Path, files: int) -> None:
    """Write documents of several paragraphs in twenty folders."""
    dice = random.Random(0)
    for _ in range(files):
        place = folder / f"{dice.randrange(20):02d}" / f"n{dice.randrange(1 << 40)}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(paragraphs(dice, 12))


def main() -> None:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--files", type=int, default=600, help="documents of the folder")
    parser.add_argument("--rounds", type=int, default=200, help="rounds of changes")
    parser.add_argument("--processes", type=int, default=2, help="that change and sync beside this one")
    parser.add_argument("--fresh-every", type=int, default=20, help="rounds between imports of the whole")
    options = parser.parse_args()
    files, count = (40, 15) if options.quick else (options.files, options.rounds)
    report = Report(
        "folders",
        "A folder that several processes change at random; the memory equals an import of it after each round",
    )
    with tempfile.TemporaryDirectory(prefix="rlm-mem-folders-") as place:
        scratch = Path(place).resolve()
        laid_down(scratch / "docs", files)
        report.add(**rounds(scratch, count, options.processes, options.fresh_every))
    report.finish(options.output)


if __name__ == "__main__":
    main()
