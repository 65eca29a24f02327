"""Two checkouts side by side: starting the command and its servers, opening, remembering, searching and recalling.

Each checkout has an environment of its own (`.venv`, with the extra `server`) and fills a memory of its own with the
same notes. Both then do the same in turn, the one that begins alternating, so that a noisy moment hits both alike. What
is compared is the median of the ratios of the pairs, of processor time above all: other work on the machine changes it
little.

    git worktree add /tmp/before d6a8052     # and an environment in it
    python benchmarks/paired.py /tmp/before . --pairs 25
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from support import ENVIRON, Cost, Report, commit_of, ended, initialized, percentile

_USAGE = 2
"""The status of a command that was called wrongly."""
_LOT = 10  # calls of one pair within a process
_QUESTION = "Why did the team of the harbour choose PostgreSQL?"


def note(number: int) -> str:
    """One of the notes, each unlike the others."""
    return (
        f"Note {number}: on day {number % 300} team {number % 7} moved service {number % 61} to PostgreSQL, because "
        f"batch {number} of the harbour left the queue of runner {number % 50} full."
    )


class Checkout:
    """One of the two: its commands, its memory, and a process that remembers, searches and recalls on request."""

    def __init__(self, folder: Path, brain: Path, chunks: int) -> None:
        self.python = str(folder.absolute() / ".venv" / "bin" / "python")
        self.command = str(Path(self.python).with_name("rlm-mem"))
        self.brain = str(brain)
        self.commit = commit_of(folder)
        self._peer = self._start(self.python, __file__, "--serve", self.brain)
        self.ask("fill", chunks)

    def _start(self, *command: str, errors: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=ENVIRON
        )

    def close(self) -> None:
        """End the process."""
        _stream(self._peer.stdin).close()
        self._peer.wait()

    def ask(self, what: str, number: int) -> Cost:
        """What a lot of calls cost in the process that stays."""
        _stream(self._peer.stdin).write(f"{what} {number}\n".encode())
        _stream(self._peer.stdin).flush()
        line = _stream(self._peer.stdout).readline()
        if not line:
            raise SystemExit(f"the process of {self.commit} ended")
        wall, cpu = json.loads(line)
        return wall, cpu

    def run(self, *command: str, given: bytes = b"") -> Cost:
        """A command that ends by itself, with what it is given on stdin."""
        began = time.perf_counter()
        process = self._start(*command)
        _stream(process.stdin).write(given)
        _stream(process.stdin).close()
        while _stream(process.stdout).read(65536):
            pass
        return _ended(process, began, None, command)

    def first_page(self) -> Cost:
        """From the start of the HTTP server to the first page of the dashboard; the processor time until its end."""
        began = time.perf_counter()
        process = self._start(
            self.command, "serve", "--port", "0", "--brain", self.brain, errors=subprocess.STDOUT
        )
        jar = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with jar.open(_link(process), timeout=60) as page:
            assert b"<html" in page.read()
        answered = time.perf_counter()
        process.terminate()
        return _ended(process, began, answered, ["serve"], codes=(0, -15, 130, 143))


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None
    return stream


def _link(process: subprocess.Popen[bytes]) -> str:
    """The link to the dashboard that a server prints when it listens."""
    said = b""
    while select.select([process.stdout], [], [], 60)[0]:
        said += os.read(_stream(process.stdout).fileno(), 65536)
        found = re.search(rb"(http://127\.0\.0\.1:\d+/login\?code=\S+)\s", said)
        if found:
            return found[1].decode()
        if process.poll() is not None:
            break
    raise SystemExit(f"the server did not start: {said.decode(errors='replace')}")


class Unknown(Exception):
    """A checkout has no such command."""


def _ended(
    process: subprocess.Popen[bytes],
    began: float,
    answered: float | None,
    command: Sequence[str],
    codes: Sequence[int] = (0,),
) -> Cost:
    cost = ended(process, began, answered)
    _stream(process.stdout).close()
    if process.returncode == _USAGE and _USAGE not in codes:
        raise Unknown(f"{' '.join(command[:2])} is no command of it")
    if process.returncode not in codes:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return cost


def serve(brain: str) -> None:
    """Within a checkout's own interpreter: do what is asked, a line for each lot."""
    from rlm_mem import Memory

    with Memory.open(brain) as memory:
        done = 1_000_000

        def fill(count: int) -> None:
            with memory.batch():
                for number in range(count):
                    memory.remember(
                        note(number), conversation_id=f"c{number // 20}", tags=[f"t{number % 17}"]
                    )

        def remember(count: int) -> None:
            nonlocal done
            for _ in range(count):
                done += 1
                memory.remember(note(done), conversation_id=f"c{done // 20}")

        def search(count: int) -> None:
            for number in range(count):
                assert memory.search(f"What left the queue of runner {number} full?")

        def recall(count: int) -> None:
            for number in range(count):
                memory.recall(f"What left the queue of runner {number} full?")

        acts: dict[str, Callable[[int], None]] = {
            "fill": fill,
            "remember": remember,
            "search": search,
            "recall": recall,
        }
        for line in sys.stdin:
            what, number = line.split()
            began, busy = time.perf_counter(), time.process_time()
            acts[what](int(number))
            cost = (time.perf_counter() - began) * 1e3, (time.process_time() - busy) * 1e3
            print(json.dumps(cost), flush=True)


_OPEN = "import sys; from rlm_mem import Memory; memory = Memory.open(sys.argv[1])"

KINDS: dict[str, Callable[[Checkout], Cost]] = {
    "rlm-mem --help": lambda one: one.run(one.command, "--help"),
    "rlm-mem list": lambda one: one.run(one.command, "list", "--brain", one.brain),
    "rlm-mem search": lambda one: one.run(one.command, "search", _QUESTION, "--brain", one.brain),
    "rlm-mem recall": lambda one: one.run(one.command, "recall", _QUESTION, "--brain", one.brain),
    "rlm-mem hook user-prompt": lambda one: one.run(
        *(one.command, "hook", "user-prompt", "--brain", one.brain),
        given=json.dumps({"session_id": str(time.time_ns()), "prompt": _QUESTION, "cwd": one.brain}).encode(),
    ),
    "MCP, initialize": lambda one: initialized([one.command, "mcp", "--brain", one.brain]),
    "HTTP, first page": lambda one: one.first_page(),
    "new process, Memory.open": lambda one: one.run(one.python, "-c", f"{_OPEN}; memory.close()", one.brain),
    "new process, first search": lambda one: one.run(
        one.python, "-c", f"{_OPEN}; assert memory.search({_QUESTION!r}); memory.close()", one.brain
    ),
    f"{_LOT} searches": lambda one: one.ask("search", _LOT),
    f"{_LOT} recalls, offline": lambda one: one.ask("recall", _LOT),
    f"{_LOT} remembers": lambda one: one.ask("remember", _LOT),
}


def main() -> None:
    """Fill, take turns, compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", type=Path, nargs="?", help="folder of a checkout with its .venv")
    parser.add_argument("after", type=Path, nargs="?", help="folder of another one")
    parser.add_argument("--pairs", type=int, default=15, help="of each kind (default: 15)")
    parser.add_argument("--chunks", type=int, default=1_000, help="notes in each memory (default: 1,000)")
    parser.add_argument(
        "--only", nargs="+", default=None, metavar="WORD", help="kinds whose name has one of these"
    )
    parser.add_argument("--output", type=Path, default=None, help="where to write the JSON report")
    parser.add_argument("--serve", metavar="BRAIN", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    if options.after is None:
        parser.error("name two checkouts")
    chosen = {
        name: act
        for name, act in KINDS.items()
        if not options.only or any(word in name for word in options.only)
    }
    report = Report("paired", "Two checkouts in turn (milliseconds, medians; ratios of pairs)")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rlm-mem-paired-")))
        both = [
            Checkout(place, folder / name, options.chunks)
            for name, place in (("before", options.before), ("after", options.after))
        ]
        for one in both:
            stack.callback(one.close)
        for name, act in chosen.items():
            try:
                report.add(operation=name, **compared(list(taken(act, both, options.pairs))))
            except Unknown as reason:  # one of the two is older than the command
                print(f"  {name}: left out, {reason}")
        report.facts["compared versions"] = (
            f"{both[0].commit} and {both[1].commit}, {options.chunks:,} notes each"
        )
    report.finish(options.output)


def taken(
    act: Callable[[Checkout], Cost], both: Sequence[Checkout], pairs: int
) -> Iterator[tuple[Cost, Cost]]:
    """The costs of both, pair by pair; the first of each is not counted: it fills caches of the system."""
    for one in both:
        act(one)
    for number in range(pairs):
        if number % 2:
            second, first = act(both[1]), act(both[0])
        else:
            first, second = act(both[0]), act(both[1])
        yield first, second


def compared(pairs: Sequence[tuple[Cost, Cost]]) -> dict[str, Any]:
    """Medians of both, and of the ratios, of processor time and of wall-clock time."""
    row: dict[str, Any] = {}
    for name, part in (("cpu", 1), ("wall", 0)):
        row[f"{name} before"] = round(percentile([one[part] for one, _ in pairs], 0.5), 1)
        row[f"{name} after"] = round(percentile([other[part] for _, other in pairs], 0.5), 1)
        row[f"{name} ratio"] = round(percentile([other[part] / one[part] for one, other in pairs], 0.5), 2)
    return row | {"pairs": len(pairs)}


if __name__ == "__main__":
    main()
