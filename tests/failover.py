"""Writers whose servers die under them, the fate of every write, and a primary whose standby takes over repeatedly.

``python -m tests.failover --worker …`` is one writer; ``fail_over`` runs the whole scenario and counts.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import msgspec

from tests.postgres import PASSWORD, REPLICATED, USER, Databases, Server
from tests.waiting import takes, until

ROOT = Path(__file__).resolve().parents[1]
NAME = "standby"


@dataclass
class Outcome:
    """The result; times in seconds."""

    writes: int = 0
    """acknowledged, of all kinds"""
    lost: list[str] = field(default_factory=list)
    """acknowledged and not there"""
    twice: list[str] = field(default_factory=list)
    """there more than once"""
    denied: list[str] = field(default_factory=list)
    """the writer was told that nothing was changed, and it is there"""
    refused: int = 0
    """writes that ended with an error that says that nothing was changed"""
    undecided: int = 0
    """writes of which the writer was told that nobody knows"""
    findings: list[str] = field(default_factory=list)
    kills: int = 0
    promote_seconds: list[float] = field(default_factory=list)
    gap_seconds: list[float] = field(default_factory=list)
    """the longest time about a kill in which no writer was acknowledged anything"""


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a writer.

    Attributes:
        said: "wrote" a chunk; is "raising" a counter, and "raised" it; was "refused", so that nothing was changed;
            "undecided", since nobody knows.
        text: of the chunk; the id of the counter.
        at: when, in seconds of the epoch.
        took: seconds from the call to the answer.
        count: of the counter, once it is raised.
        error: the name of the error's class, and its message.
    """

    said: str
    text: str
    at: float
    took: float = 0.0
    count: int = 0
    error: str = ""


class Writers:
    """Processes that create chunks and raise counters, and write down what the store said.

    Args:
        namespaces: one for each process; several may share one.
    """

    def __init__(self, dsn: str, namespaces: Sequence[str]) -> None:
        self.namespaces = namespaces
        self._dsn = dsn
        self._folder = Path(tempfile.mkdtemp(prefix="rlm-mem-writers-"))
        self._journals = [self._folder / f"{number}.jsonl" for number in range(len(namespaces))]
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Writers:
        self._running = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.failover", "--worker", self._dsn, namespace, str(journal)],
                cwd=ROOT, env=dict(os.environ),
            )
            for namespace, journal in zip(self.namespaces, self._journals, strict=True)
        ]  # fmt: skip

        def writing() -> bool:
            return all(journal.exists() and journal.stat().st_size > 0 for journal in self._journals)

        until(writing, "a first write of each writer", seconds=120)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            process.kill()
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def stop(self) -> None:
        """Let each of them end what it is about."""
        for process in self._running:
            process.terminate()
        for process in self._running:
            process.wait()

    def told(self) -> dict[str, list[Said]]:
        """What was said, by namespace: the lines of each writer in order."""
        lines: dict[str, list[Said]] = {}
        for namespace, journal in zip(self.namespaces, self._journals, strict=True):
            said = (msgspec.json.decode(line, type=Said) for line in journal.read_bytes().splitlines())
            lines.setdefault(namespace, []).extend(said)
        return lines

    def judged(self) -> Outcome:
        """Compare what is there with what was said."""
        outcome = Outcome()
        for namespace, lines in self.told().items():
            _judge(outcome, lines, self._dsn, namespace)
        return outcome


def fail_over(writers: int, rounds: int, seconds: float) -> Outcome:
    """Two servers, replication that acknowledges only what both have; kill, promote, follow, and again.

    Args:
        seconds: of load before each kill, and after the last.
    """
    primary = Server(REPLICATED).start()
    standby: Server | None = None
    kills: list[float] = []
    promoted: list[float] = []
    try:
        database = Databases(primary).make()
        standby = primary.standby(NAME)
        primary.wait_for_standby(NAME)
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        dsn = f"postgresql://{USER}:{PASSWORD}@{hosts}/{database}?target_session_attrs=read-write&connect_timeout=2"
        with Writers(dsn, ["default"] * writers) as running:
            for turn in range(rounds):
                assert standby is not None  # only the last turn leaves none
                takes(seconds)
                kills.append(time.time())
                primary.kill()
                begun = time.monotonic()
                standby.promote()
                promoted.append(time.monotonic() - begun)
                former, primary = primary, standby
                if turn + 1 < rounds:  # the machine that died comes back as the follower, at its old address
                    port = former.port
                    former.remove()
                    standby = primary.standby(NAME, port)
                    primary.wait_for_standby(NAME)
                else:
                    former.remove()
                    standby = None
            takes(seconds)
            running.stop()
            outcome = running.judged()
            moments = acknowledged(running.told()["default"])
    finally:
        primary.remove()
        if standby is not None:
            standby.remove()
    outcome.kills, outcome.promote_seconds = len(kills), promoted
    for kill in kills:
        # What was under way is acknowledged a little after the kill: the longest pause about it is what counts.
        pauses = [b - a for a, b in pairwise(moments) if b > kill and a < kill + 5]
        outcome.gap_seconds.append(max(pauses, default=float("inf")))
    return outcome


def acknowledged(lines: Sequence[Said]) -> list[float]:
    """When writes were acknowledged, in order of time."""
    return sorted(one.at for one in lines if one.said in ("wrote", "raised"))


def _judge(outcome: Outcome, lines: Sequence[Said], dsn: str, namespace: str) -> None:
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.integrity import check

    wrote: set[str] = set()
    denied: set[str] = set()
    counters: dict[str, tuple[int, int]] = {}  # chunk → the least and the most that it may count
    for one in lines:
        if one.said == "wrote":
            wrote.add(one.text)
        elif one.said == "raising":
            least, most = counters.get(one.text, (0, 0))
            if not least <= one.count - 1 <= most:
                outcome.lost.append(f"counter {one.text}: read {one.count - 1}, not {least} to {most}")
            counters[one.text] = one.count - 1, one.count
        elif one.said == "raised":
            counters[one.text] = one.count, one.count
        elif one.said == "refused" and one.count:
            counters[one.text] = one.count - 1, one.count - 1
        elif one.said == "refused":
            denied.add(one.text)
        outcome.refused += one.said == "refused"
        outcome.undecided += one.said == "undecided"
    outcome.writes += len(acknowledged(lines))
    with ChunkStore(dsn, namespace=namespace) as store:
        there = Counter(chunk.content for chunk in store.iter_chunks())
        outcome.lost += sorted(wrote - there.keys())
        outcome.twice += [text for text, times in there.items() if times > 1]
        outcome.denied += sorted(denied & there.keys())
        for chunk_id, (least, most) in counters.items():
            chunk = store.get_chunk(chunk_id, track=False)
            count = chunk.metadata.extra["count"] if chunk else -1
            if not least <= count <= most or (chunk and chunk.revision != count + 1):
                outcome.lost.append(f"counter {chunk_id}: {count}, not {least} to {most}")
        outcome.findings += [str(finding) for finding in check(store)]


def _work(dsn: str, namespace: str, journal: Path) -> None:
    """Create chunks and raise a counter until terminated; say what the store said."""
    from rlm_mem.errors import StorageError
    from rlm_mem.store.core.chunk_store import ChunkStore

    ended = False

    def end(*_: object) -> None:
        nonlocal ended
        ended = True

    signal.signal(signal.SIGTERM, end)
    who = journal.stem
    with ChunkStore(dsn, namespace=namespace) as store, journal.open("ab") as file:

        def say(said: str, text: str, began: float, *, count: int = 0, error: str = "") -> None:
            line = Said(said, text, time.time(), round(time.monotonic() - began, 4), count, error)
            file.write(msgspec.json.encode(line) + b"\n")
            file.flush()

        counter = store.create_chunk(f"counter of writer {who}", metadata={"count": 0}).id
        number = 0
        while not ended:
            number += 1
            text, count = f"Writer {who} wrote down item {number}, which weighs {number * 7 % 900} grams.", 0
            began = time.monotonic()
            try:
                store.create_chunk(text, tags=[f"by-{who}"], conversation_id=f"writer-{who}")
                say("wrote", text, began)
                if number % 4 == 0:
                    text, began = counter, time.monotonic()
                    with store.batch():
                        now = store.get_chunk(counter, track=False)
                        assert now is not None
                        count = now.metadata.extra["count"] + 1
                        say("raising", counter, began, count=count)
                        store.update_chunk(counter, metadata={"count": count})
                    say("raised", counter, began, count=count)
            except StorageError as error:
                unknown = "may have been made or not" in str(error)
                told = f"{type(error).__name__}: {error}"
                say("undecided" if unknown else "refused", text, began, count=count, error=told)


if __name__ == "__main__":
    _work(sys.argv[2], sys.argv[3], Path(sys.argv[4]))
