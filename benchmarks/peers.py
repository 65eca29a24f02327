"""RLM-MEM beside other memories: the same notes, the same machine, the same run, each by its own calls.

Peers are packages that can be installed without an account: LangGraph's SqliteStore, mem0 (`infer=False`), the official
MCP memory server and basic-memory, each in an environment of its own (`make bench-peers`). No model is used: calls of a
model by a peer are left out or replaced, which the table states.

At each size: filling by the fastest call of a peer, then in a fresh process opening, 100 adds one by one, reads by id,
searches for a note by a question with three of its words, all notes of a tag, and the space on disk. The peers take
turns, ten times, so that all run under the same load; the first call of each kind is left out. Once for each peer:
fsyncs for each add (counted with strace, where it is installed), a process killed (SIGKILL) while adding and how many
acknowledged notes survive, and two processes adding at once and how many are lost.

    python benchmarks/peers.py                    # 1,000 and 10,000 notes
    python benchmarks/peers.py --quick            # 300 notes
    python benchmarks/peers.py --only rlm-mem langgraph --sizes 100000
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import synthetic
from support import Report, arguments, spread

WORKER = Path(__file__).parent / "peer_worker.py"
ENVIRONMENTS = Path(__file__).parents[1] / "build" / "peers"
ADDS, READS, QUESTIONS, ROUNDS = 100, 200, 60, 10
MANY_TAGS = 40
WRITERS_EACH = 150

FIRST = (
    "Ana", "Ben", "Clara", "Dario", "Edith", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Luca", "Mara", "Nils",
    "Oona", "Pavel", "Quinn", "Rosa", "Sven", "Tara",
)  # fmt: skip
THINGS = (
    "ledger", "gateway", "invoice", "pump", "garden", "ferry", "sensor", "contract", "piano", "recipe", "archive",
    "turbine", "beehive", "atlas", "kiln",
)  # fmt: skip
PLACES = (
    "cellar", "harbour", "greenhouse", "workshop", "library", "attic", "station", "orchard", "chapel", "quarry", "mill",
    "depot", "pavilion",
)  # fmt: skip
DOINGS = (
    "moved the {thing} to the {place} because the old room was damp",
    "measured the {thing} twice at the {place} and wrote the figures down",
    "would rather keep the {thing} near the {place} until spring",
    "found that the {thing} at the {place} had been repaired without a note",
    "agreed with the neighbours to share the {thing} of the {place}",
)

#: Differences that matter when comparing the figures; checked by hand for the versions named in the facts.
WHAT = {
    "rlm-mem": (
        "RLM-MEM, Python",
        "one JSON file per chunk + SQLite index",
        "ranked: stemmed words, names, dates, neighbours",
        "yes",
    ),
    "rlm-mem-mcp": ("RLM-MEM, MCP over stdio", "the same", "the same", "with a search only"),
    "langgraph": ("LangGraph SqliteStore", "SQLite", "none without a model: exact values only", "yes"),
    "mem0": (
        "mem0, infer=False",
        "local Qdrant (SQLite) + SQLite history",
        "nearest by a model; hashed words in this run",
        "yes",
    ),
    "server-memory": (
        "MCP memory server",
        "one JSONL file, read and rewritten by every write",
        "substring, not ranked",
        "as a piece of text",
    ),
    "basic-memory": (
        "basic-memory, MCP over stdio",
        "one Markdown file per note + SQLite FTS5",
        "ranked words; its model is switched off",
        "yes",
    ),
}


Notes = list[dict[str, str]]


def notes(count: int) -> Notes:
    """Notes of some 50 words in five sentences; each has one word that no other has."""
    random_ = random.Random(3)
    made = []
    for number in range(count):
        who, other = random_.sample(FIRST, 2)
        lines = [
            f"{who} {doing.format(thing=random_.choice(THINGS), place=random_.choice(PLACES))}."
            for doing in random_.sample(DOINGS, 4)
        ]
        rare = synthetic.word(number)
        lines.insert(2, f"{other} calls the matter {rare} and wants to hear of it by day {number % 365}.")
        made.append(
            {
                "name": f"note-{number:06}",
                "text": " ".join(lines),
                "tag": f"topic{number % MANY_TAGS:02}x",
                "word": rare,
                "who": other,
            }
        )
    return made


class Closed(Exception):
    """The worker has ended, or did not answer in time."""


class Worker:
    """A peer in a process of its own."""

    def __init__(self, peer: str, folder: Path, file: Path, *, trace: Path | None = None) -> None:
        environment, python = environment_of(peer)
        command = [str(python), str(WORKER), peer, str(folder), str(file)]
        if trace is not None:
            command = [
                "strace",
                "-f",
                "-qq",
                "-e",
                "trace=fsync,fdatasync,syncfs,sync",
                "-o",
                str(trace),
                *command,
            ]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        self._pending = b""
        first = self.answer(180)
        if "refused" in first:
            self._process.wait()
            raise Closed(first["refused"])
        self.opened_ms: float = first["opened"]

    def ask(self, do: str, seconds: float = 600, **more: Any) -> dict[str, Any]:
        """Run a command and wait for it."""
        self.tell(do, **more)
        answer = self.answer(seconds)
        done: dict[str, Any] = answer["done"]
        return done

    def tell(self, do: str, **more: Any) -> None:
        """Start a command."""
        assert self._process.stdin is not None
        self._process.stdin.write((json.dumps({"do": do, **more}) + "\n").encode())
        self._process.stdin.flush()

    def answer(self, seconds: float) -> dict[str, Any]:
        """The next line of the worker, within a time."""
        assert self._process.stdout is not None
        ends = time.monotonic() + seconds
        descriptor = self._process.stdout.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                left = ends - time.monotonic()
                if left <= 0 or not selector.select(left):
                    self.kill()
                    raise Closed(f"no answer within {seconds:.0f} s")
                piece = os.read(descriptor, 1 << 20)
                if not piece:
                    self._process.wait()
                    raise Closed(f"ended with {self._process.returncode}")
                self._pending += piece
        line, self._pending = self._pending.split(b"\n", 1)
        found: dict[str, Any] = json.loads(line)
        return found

    def kill(self) -> None:
        """SIGKILL to the process and all that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End it normally."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            self.kill()


def environment_of(peer: str) -> tuple[dict[str, str], Path]:
    """Variables and interpreter of a peer, as `tools/peers.sh` made them."""
    if peer in ("langgraph", "mem0"):
        return {}, ENVIRONMENTS / "python" / "bin" / "python"
    return {
        "PEER_NODE": str(ENVIRONMENTS / "node" / "node_modules"),
        "PEER_BASIC_MEMORY": str(ENVIRONMENTS / "basic-memory" / "bin" / "basic-memory"),
    }, Path(sys.executable)


def installed(peer: str) -> str | None:
    """The reason that a peer cannot be measured here; None where it can."""
    wanted = {
        "langgraph": ENVIRONMENTS / "python" / "bin" / "python",
        "mem0": ENVIRONMENTS / "python" / "bin" / "python",
        "server-memory": ENVIRONMENTS / "node" / "node_modules" / "@modelcontextprotocol" / "server-memory",
        "basic-memory": ENVIRONMENTS / "basic-memory" / "bin" / "basic-memory",
    }.get(peer)
    if wanted is not None and not wanted.exists():
        return "not installed (make bench-peers)"
    if peer == "server-memory" and shutil.which("node") is None:
        return "node is not installed"
    return None


def versions() -> dict[str, str]:
    """The versions that were measured."""
    found = {}
    for folder, names in (
        ("python", ("langgraph-checkpoint-sqlite", "mem0ai")),
        ("basic-memory", ("basic-memory",)),
    ):
        python = ENVIRONMENTS / folder / "bin" / "python"
        for name in names if python.exists() else ():
            ask = f"from importlib.metadata import version; print(version({name!r}))"
            found[name] = subprocess.run(
                [str(python), "-c", ask], capture_output=True, text=True, check=False
            ).stdout.strip()
    package = ENVIRONMENTS / "node/node_modules/@modelcontextprotocol/server-memory/package.json"
    if package.exists():
        found["server-memory"] = json.loads(package.read_text(encoding="utf-8"))["version"]
    return found


class Side:
    """One peer at one size, filled and reopened, measured in turn with the others."""

    def __init__(self, peer: str, size: int, place: Path, file: Path, all_notes: Notes, limit: float) -> None:
        self._limit, self._size = limit, size
        self.peer, self.folder = peer, place / f"{peer}-{size}"
        worker = Worker(peer, self.folder, file)
        filled = worker.ask("fill", limit, first=0, last=size)
        worker.close()
        self.worker = Worker(peer, self.folder, file)
        self.pace = size / filled["seconds"]
        random_ = random.Random(5)
        chosen = random_.sample(range(size), min(size, READS))
        self._keys = [filled["keys"][n] for n in chosen]
        self._questions = [
            {
                "text": f"What does {all_notes[n]['who']} call the matter {all_notes[n]['word']} of day {n % 365}?",
                "word": all_notes[n]["word"],
                "key": filled["keys"][n],
            }
            for n in chosen[:QUESTIONS]
        ]
        self._found: dict[str, dict[str, Any]] = {}

    def round(self, number: int) -> None:
        """One tenth of all calls."""
        first = self._size + number * ADDS // ROUNDS
        self._ask("add", number, first=first, last=first + ADDS // ROUNDS)
        self._ask("get", number, keys=self._keys[number::ROUNDS])
        self._ask("search", number, questions=self._questions[number::ROUNDS])
        tag = f"topic{number:02}x"
        self._ask("tagged", number, tags=[tag], wanted=[len(range(number, self._size, MANY_TAGS))])

    def _ask(self, do: str, number: int, **given: Any) -> None:
        done = self.worker.ask(do, self._limit, **given)
        known = self._found.setdefault(do, {"ms": [], "right": 0})
        if done.get("unsupported"):
            known["unsupported"] = True
            return
        # What a first call loads counts as opening.
        known["ms"] += done["ms"][1:] if number == 0 and len(done["ms"]) > 1 else done["ms"]
        known["right"] += done.get("right", 0)

    def row(self) -> dict[str, Any]:
        """The row of the report; ends the peer."""
        self.worker.close()
        add, get = spread(self._found["add"]["ms"]), spread(self._found["get"]["ms"])
        row: dict[str, Any] = {
            "memory": WHAT[self.peer][0],
            "memories": self._size,
            "bulk insert, memories/s": round(self.pace),
            "start and open": round(self.worker.opened_ms),
            "add p50": add["p50_ms"],
            "add p95": add["p95_ms"],
            "get p50": get["p50_ms"],
        }
        row |= _searched(self._found["search"], "search", "found by search", len(self._questions))
        if self.peer == "mem0":
            row["found by search"] = "its model's"  # results with hashed words are not representative of it
        row |= _searched(self._found["tagged"], "list a tag", "found by tag", ROUNDS)
        row["disk MB"] = round(space(self.folder) / 1e6, 1)
        shutil.rmtree(self.folder, ignore_errors=True)
        return row


def at_size(
    peers: list[str],
    size: int,
    place: Path,
    file: Path,
    all_notes: Notes,
    limit: float,
    pace: dict[str, float],
) -> list[dict[str, Any]]:
    """Rows of all peers at one size: first each is filled, then all are measured in turn, ten times."""
    sides: dict[str, Side] = {}
    missing: dict[str, str] = {}
    for peer in peers:
        why = installed(peer)
        if why is None and size / pace.get(peer, 1e9) > limit:
            why = f"not measured: {size / pace[peer] / 60:.0f} minutes at its pace"
        try:
            if why is None:
                sides[peer] = Side(peer, size, place, file, all_notes, limit)
                pace[peer] = sides[peer].pace
                print(f"  {peer}: filled with {size:,}", file=sys.stderr, flush=True)
        except Closed as ended:
            why = str(ended)
        if why is not None:
            missing[peer] = why
    for number in range(ROUNDS):
        for peer in list(sides):
            try:
                sides[peer].round(number)
            except Closed as ended:
                missing[peer] = str(ended)
                sides.pop(peer).worker.kill()
    return [
        sides[peer].row()
        if peer in sides
        else {"memory": WHAT[peer][0], "memories": size, "bulk insert, memories/s": missing[peer]}
        for peer in peers
    ]


def _searched(found: dict[str, Any], name: str, found_by: str, count: int) -> dict[str, Any]:
    if found.get("unsupported"):
        return {f"{name} p50": "no such call", found_by: "–"}
    return {f"{name} p50": spread(found["ms"])["p50_ms"], found_by: f"{found['right']}/{count}"}


def space(folder: Path) -> int:
    """Bytes on disk, without the peer's files in the user's home."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def fsyncs(peer: str, place: Path, file: Path) -> float | str:
    """Calls of fsync and its like for each add, the first ones left out."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    trace = place / "trace"
    worker = Worker(peer, place / f"{peer}-sync", file, trace=trace)
    try:
        worker.ask("add", first=0, last=5)
        before = trace.read_text(encoding="utf-8", errors="replace").count("sync")
        worker.ask("add", first=5, last=25)
        time.sleep(1)  # background tasks may sync, too
        after = trace.read_text(encoding="utf-8", errors="replace").count("sync")
        return round((after - before) / 20, 1)
    finally:
        worker.kill()


def killed(peer: str, place: Path, file: Path) -> str:
    """Adds acknowledged before a SIGKILL, and how many of them survive."""
    folder = place / f"{peer}-killed"
    worker = Worker(peer, folder, file)
    worker.tell("add", first=0, last=2_000, loud=True)
    keys: list[str] = []
    while len(keys) < 100:
        line = worker.answer(300)
        if "ack" not in line:
            break
        keys.append(line["ack"])
    worker.kill()
    try:
        again = Worker(peer, folder, file)
    except Closed as refused:
        return f"cannot be opened again: {refused}"
    try:
        return f"{again.ask('present', keys=keys)['present']}/{len(keys)}"
    finally:
        again.close()


def together(peer: str, place: Path, file: Path) -> str:
    """Two processes add at the same time: acknowledged, and present afterwards."""
    folder = place / f"{peer}-two"
    first = Worker(peer, folder, file)
    first.ask("add", first=0, last=1)
    try:
        second = Worker(peer, folder, file)
    except Closed as refused:
        first.close()
        return f"a second process is refused ({str(refused).split(':')[0]})"
    first.tell("add", first=1, last=1 + WRITERS_EACH)
    second.tell("add", first=1_000, last=1_000 + WRITERS_EACH)
    answers = [worker.answer(600)["done"] for worker in (first, second)]
    for worker in (first, second):
        worker.close()
    keys = [key for answer in answers for key in answer["keys"]]
    errors = [error for answer in answers for error in answer["errors"]]
    reader = Worker(peer, folder, file)
    try:
        there = reader.ask("present", keys=keys)["present"]
    finally:
        reader.close()
    said = f"{there}/{len(keys)} kept"
    if errors:
        said += f", {len(errors)} refused ({errors[0].split(':')[0]})"
    return said


def main() -> None:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--sizes", type=int, nargs="+", default=None, help="numbers of memories")
    parser.add_argument("--only", nargs="+", choices=list(WHAT), default=None, help="these peers only")
    parser.add_argument(
        "--limit", type=float, default=600.0, help="most seconds for filling one peer at one size"
    )
    options = parser.parse_args()
    sizes = options.sizes or ([300] if options.quick else [1_000, 10_000])
    report = Report("peers", "Beside other memories: the same notes in one run (milliseconds)")
    all_notes = notes(max(*sizes, 2_000) + ADDS)
    with tempfile.TemporaryDirectory(prefix="rlm-mem-peers-") as name:
        place, file = Path(name), Path(name) / "notes.jsonl"
        file.write_text("".join(json.dumps(note) + "\n" for note in all_notes), encoding="utf-8")
        peers = options.only or list(WHAT)
        pace: dict[str, float] = {}
        for size in sizes:
            for row in at_size(peers, size, place, file, all_notes, options.limit, pace):
                report.add(**row)
        safety = []
        for peer in peers:
            if installed(peer) is not None:
                continue
            _, kept_as, searches, tags = WHAT[peer]
            row = {"memory": WHAT[peer][0], "stored as": kept_as, "search": searches, "by tag": tags}
            for column, test in (
                ("fsyncs per add", fsyncs),
                ("present after SIGKILL", killed),
                ("two processes at once", together),
            ):
                try:
                    row[column] = str(test(peer, place, file))
                except Closed as ended:
                    row[column] = str(ended)
            safety.append(row)
            print(
                "  " + "  ".join(f"{key}={value}" for key, value in row.items()), file=sys.stderr, flush=True
            )
    report.facts["versions"] = versions()
    report.facts["behaviour"] = safety
    report.finish(options.output)


if __name__ == "__main__":
    main()
