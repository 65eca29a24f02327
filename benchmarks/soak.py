"""Many processes on one memory for minutes: remember, update, link, delete, search and recall, all at once.

Afterwards every acknowledged change must be there, every counter must be the number of its increments (read, add one,
write: this detects lost updates), and the integrity check must find nothing. Rows: latencies of each operation, in
milliseconds, on a local folder and on PostgreSQL. With `--kills`, some are killed (SIGKILL) and replaced. With
`--replica`, commits on PostgreSQL wait for a standby, which is killed half-way and comes back some seconds later.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from rlm_mem.errors import ConflictError
from rlm_mem.memory import Memory
from rlm_mem.store.core.integrity import check
from support import Report, arguments, percentile

COUNTERS = 5
MIX = {
    "remember": 30, "raise a counter": 15, "raise it by compare-and-set": 10, "update": 10, "link": 10, "delete": 6,
    "read": 10, "search": 6, "recall": 3,
}  # fmt: skip
NOUNS = ("bracket", "gateway", "invoice", "lease", "sensor", "heron", "ledger", "turbine", "orchard", "ferry")
VERBS = ("moved", "measured", "signed", "repaired", "postponed", "sold", "painted", "counted")


@dataclass
class Worker:
    """One process: does a random mix until its time is over, and records what was acknowledged, line by line."""

    memory: Memory
    journal: TextIO
    name: str
    chance: random.Random
    counters: list[str]
    mine: list[str] = field(default_factory=list)
    made: int = 0

    def note(self, *line: object) -> None:
        """One line, passed to the operating system before the next step."""
        self.journal.write(json.dumps(line) + "\n")
        self.journal.flush()

    def run(self, seconds: float) -> None:
        """Work until the time is over."""
        actions: dict[str, Callable[[], None]] = {
            "remember": self.remember, "raise a counter": self.raise_in_a_batch,
            "raise it by compare-and-set": self.raise_by_compare_and_set, "update": self.update, "link": self.link,
            "delete": self.delete, "read": self.read, "search": self.search, "recall": self.recall,
        }  # fmt: skip
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            name = self.chance.choices(list(MIX), list(MIX.values()))[0]
            if len(self.mine) < 5:
                name = "remember"
            start = time.perf_counter()
            actions[name]()
            self.note("took", name, round((time.perf_counter() - start) * 1e3, 3))

    def text(self) -> str:
        self.made += 1
        noun, verb = self.chance.choice(NOUNS), self.chance.choice(VERBS)
        return (
            f"Worker {self.name} {verb} {noun} {self.made}, which weighs {self.chance.randrange(900)} grams."
        )

    def remember(self) -> None:
        text = self.text()
        result = self.memory.remember(
            text,
            conversation_id=f"shift-{self.chance.randrange(40)}",
            tags=[self.chance.choice(NOUNS), "soak"],
        )
        for chunk_id in result.chunk_ids:
            self.mine.append(chunk_id)
            self.note("made", chunk_id, text)

    def raise_in_a_batch(self) -> None:
        """Read and write under the write lock."""
        number = self.chance.randrange(COUNTERS)
        self.note("raising", number)
        with self.memory.batch():
            chunk = self.memory.store.get_chunk(self.counters[number], track=False)
            assert chunk is not None
            self.memory.store.update_chunk(chunk.id, metadata={"count": chunk.metadata.extra["count"] + 1})
        self.note("raised", number)

    def raise_by_compare_and_set(self) -> None:
        """Read without a lock, and write only if nobody wrote since."""
        number = self.chance.randrange(COUNTERS)
        self.note("raising", number)
        while True:
            chunk = self.memory.store.get_chunk(self.counters[number], track=False)
            assert chunk is not None
            more = {"count": chunk.metadata.extra["count"] + 1}
            try:
                self.memory.store.update_chunk(chunk.id, metadata=more, expected_revision=chunk.revision)
            except ConflictError:
                self.note("conflict")
                continue
            self.note("raised", number)
            return

    def update(self) -> None:
        chunk_id, text = self.chance.choice(self.mine), self.text()
        self.note("rewriting", chunk_id, text)
        changed = self.memory.store.update_chunk(chunk_id, content=text)
        assert changed is not None, f"{chunk_id} was mine and is gone"
        self.note("rewrote", chunk_id, text)

    def link(self) -> None:
        one, two = self.chance.sample(self.mine, 2)
        self.memory.store.add_link(one, two, "supports", 0.5, "both weigh something")
        self.note("linked", one, two)

    def delete(self) -> None:
        chunk_id = self.mine.pop(self.chance.randrange(len(self.mine)))
        permanent = self.chance.random() < 0.4
        self.note("deleting", chunk_id)
        assert self.memory.store.delete_chunk(chunk_id, permanent=permanent)
        self.note("erased" if permanent else "archived", chunk_id)

    def read(self) -> None:
        chunk_id = self.chance.choice(self.mine)
        assert self.memory.store.get_chunk(chunk_id) is not None, (
            f"{chunk_id} was acknowledged and is not there"
        )

    def search(self) -> None:
        self.memory.search(f"which {self.chance.choice(NOUNS)} was {self.chance.choice(VERBS)}?")

    def recall(self) -> None:
        self.memory.recall(f"How heavy is the {self.chance.choice(NOUNS)} that worker {self.name} counted?")


def work(target: str, journal: Path, name: str, seconds: float, counters: list[str]) -> None:
    """The program of one worker process."""
    chance = random.Random(f"{name} of the soak")
    with Memory.open(target) as memory, journal.open("a", encoding="utf-8") as file:
        Worker(memory, file, name, chance, counters).run(seconds)


_AWAY = 5.0
"""Seconds that a replica is away."""


@contextmanager
def place(kind: str, replica_dies: float | None, facts: dict[str, Any]) -> Iterator[str]:
    """A fresh memory: a local folder, a PostgreSQL server with durable commits, or the given DSN.

    Args:
        replica_dies: seconds after which a synchronous standby of the PostgreSQL server is killed; None: it has none.
        facts: gets what became of the standby.
    """
    if kind == "local":
        with tempfile.TemporaryDirectory(prefix="rlm-mem-soak-") as folder:
            yield str(Path(folder) / "brain")
    elif kind == "postgres":
        sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
        from tests.postgres import REPLICATED, Databases, Server

        own = {"shared_buffers": "256MB"}
        with Server(own if replica_dies is None else own | REPLICATED) as server:
            target = server.dsn(Databases(server).make())
            if replica_dies is None:
                yield target
                return
            with server.standby("replica") as standby:
                server.wait_for_standby("replica")
                killer = threading.Timer(replica_dies, _kill_and_start, (standby,))
                killer.start()
                yield target
                killer.join()
                facts["rows that the replica lacks"] = _lacking(server, standby, target.rsplit("/", 1)[1])
    else:
        yield kind


def _kill_and_start(standby: Any) -> None:
    standby.kill()
    time.sleep(_AWAY)
    standby.start()


def _lacking(server: Any, standby: Any, database: str) -> int:
    """How many chunks a standby does not have as the primary has them, once it has received everything."""
    from tests.waiting import until

    ((end,),) = server.sql("SELECT pg_current_wal_lsn()::text")
    reached = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
    until(lambda: standby.sql(reached, end) == [(True,)], "the replica to catch up")
    rows = "SELECT ns, doc, id, revision FROM rlm_mem.chunks"
    return len(set(server.sql(rows, database=database)) - set(standby.sql(rows, database=database)))


def soak(target: str, folder: Path, processes: int, seconds: float, kills: int) -> int:
    """Run the workers; kill and replace some where asked; returns how many were killed."""
    with Memory.open(target) as memory:
        counters = [
            memory.store.create_chunk(f"counter {n}", metadata={"count": 0}).id for n in range(COUNTERS)
        ]
    (folder / "counters.json").write_text(json.dumps(counters))
    begin, chance, killed = time.monotonic(), random.Random(5), 0

    def start(number: int, life: int) -> subprocess.Popen[bytes]:
        left = seconds - (time.monotonic() - begin)
        name = f"{number}-{life}"
        given = [target, str(folder / f"{name}.jsonl"), name, str(left), *counters]
        return subprocess.Popen([sys.executable, __file__, "--worker", *given])

    running = [start(number, 0) for number in range(processes)]
    while kills and time.monotonic() - begin < seconds:
        time.sleep(seconds / (kills + 1))
        if killed == kills or seconds - (time.monotonic() - begin) < 1:
            break
        number = chance.randrange(processes)
        running[number].kill()
        running[number].wait()
        killed += 1
        running[number] = start(number, killed)
    failed = [process.wait() for process in running]
    if any(failed):
        raise RuntimeError(f"workers ended with {failed}")
    return killed


def verdict(target: str, folder: Path) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """Compare the store with everything acknowledged; also the latencies."""
    counters: list[str] = json.loads((folder / "counters.json").read_text())
    texts: dict[str, set[str]] = {}
    fate: dict[str, str] = {}
    links: set[tuple[str, str]] = set()
    raised, begun, took, conflicts = Counter[int](), Counter[int](), defaultdict[str, list[float]](list), 0
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            kind, *rest = json.loads(line)
            if kind == "took":
                took[rest[0]].append(rest[1])
            elif kind == "made" or kind == "rewrote":
                texts[rest[0]] = {rest[1]}
            elif kind == "rewriting":
                texts[rest[0]].add(rest[1])  # either, until it is acknowledged
            elif kind == "linked":
                links.add((rest[0], rest[1]))
            elif kind == "raising":
                begun[rest[0]] += 1
            elif kind == "raised":
                raised[rest[0]] += 1
            elif kind == "conflict":
                conflicts += 1
            else:
                fate[rest[0]] = kind
    wrong: list[str] = []
    with Memory.open(target) as memory:
        store = memory.store
        archived = set(store.list_chunks(archived=True))
        active = set(store.list_chunks())
        for chunk_id, allowed in texts.items():
            chunk = store.get_chunk(chunk_id, track=False)
            end = fate.get(chunk_id)
            if end is None and (chunk is None or chunk.content not in allowed):
                wrong.append(f"{chunk_id} should hold {allowed}, holds {chunk.content if chunk else None!r}")
            elif end == "archived" and chunk_id not in archived:
                wrong.append(f"{chunk_id} should be in the archive")
            elif end == "erased" and (chunk_id in active or chunk_id in archived):
                wrong.append(f"{chunk_id} should be gone")
        for one, two in links:
            if one in fate or two in fate:
                continue
            if two not in {link.chunk_id for link in store.linked(one, "supports", limit=1000)}:
                wrong.append(f"{one} should be linked to {two}")
        lost = 0
        for number, chunk_id in enumerate(counters):
            counter = store.get_chunk(chunk_id, track=False)
            assert counter is not None
            count = counter.metadata.extra["count"]
            if not raised[number] <= count <= begun[number] or counter.revision != count + 1:
                lost += abs(raised[number] - count) or 1
        unknown = active | archived
        unknown -= set(texts) | set(counters)
        findings = check(store)
    facts = {
        "acknowledged changes": len(texts) + len(fate) + len(links) + sum(raised.values()),
        "not as acknowledged": len(wrong),
        "increments": sum(raised.values()),
        "lost updates": lost,
        "compare-and-set conflicts, retried": conflicts,
        "written but never acknowledged": len(unknown),  # more than none only where processes were killed
        "integrity findings": len(findings),
    }
    for line in [*wrong[:10], *(f"{finding.code}: {finding.message}" for finding in findings[:10])]:
        print(line, file=sys.stderr)
    return facts, took


def main() -> None:
    """Soak, check and report; exits 1 if anything acknowledged is missing or the check finds anything."""
    if sys.argv[1:2] == ["--worker"]:
        target, journal, name, seconds, *counters = sys.argv[2:]
        work(target, Path(journal), name, float(seconds), counters)
        return
    parser = arguments(__doc__ or "")
    parser.add_argument(
        "--on", default="local,postgres", help="local, postgres, or a folder or DSN; several by commas"
    )
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=5.0, help="on each of them")
    parser.add_argument(
        "--kills", type=int, default=0, help="how many processes are killed and replaced meanwhile"
    )
    parser.add_argument(
        "--replica",
        action="store_true",
        help="kill a synchronous standby of PostgreSQL half-way, and start it again",
    )
    options = parser.parse_args()
    minutes = 0.33 if options.quick else options.minutes
    report = Report(
        "soak",
        f"{options.processes} processes on one memory for {minutes:g} minutes (latencies in milliseconds)",
    )
    sound = True
    for kind in options.on.split(","):
        of_replica: dict[str, Any] = {}
        with (
            tempfile.TemporaryDirectory(prefix="rlm-mem-soak-log-") as folder,
            place(kind, minutes * 30 if options.replica else None, of_replica) as target,
        ):
            killed = soak(target, Path(folder), options.processes, minutes * 60, options.kills)
            facts, took = verdict(target, Path(folder))
        facts |= of_replica
        where = {"local": "local", "postgres": "postgresql"}.get(kind, "given")
        for name in MIX:
            values = took[name]
            report.add(
                backend=where, operation=name, number=len(values), per_second=len(values) / (minutes * 60),
                p50_ms=percentile(values, 0.5), p95_ms=percentile(values, 0.95),
                max_ms=max(values, default=float("nan")),
            )  # fmt: skip
        if options.kills:
            facts["processes killed"] = killed
        report.facts.setdefault("checked afterwards", []).append({"backend": where, **facts})
        bad = ("not as acknowledged", "lost updates", "integrity findings", "rows that the replica lacks")
        sound &= not any(facts.get(name) for name in bad)
        sound &= bool(options.kills) or not facts["written but never acknowledged"]
    report.finish(options.output)
    if not sound:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
