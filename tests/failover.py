"""A primary is killed under load and its standby takes over, again and again: the fate of every write.

``python -m tests.failover --worker …`` is one writer; ``fail_over`` runs the whole scenario and counts.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

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


def fail_over(writers: int, rounds: int, seconds: float) -> Outcome:
    """Two servers, replication that acknowledges only what both have; kill, promote, follow, and again.

    Args:
        seconds: of load before each kill, and after the last.
    """
    outcome = Outcome()
    folder = Path(tempfile.mkdtemp(prefix="rlm-mem-failover-"))
    primary = Server(REPLICATED).start()
    standby: Server | None = None
    workers: list[subprocess.Popen[bytes]] = []
    try:
        database = Databases(primary).make()
        standby = primary.standby(NAME)
        primary.wait_for_standby(NAME)
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        dsn = f"postgresql://{USER}:{PASSWORD}@{hosts}/{database}?target_session_attrs=read-write&connect_timeout=2"
        workers = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.failover", "--worker", dsn, str(folder / f"{number}.jsonl")],
                cwd=ROOT, env=dict(os.environ),
            )
            for number in range(writers)
        ]  # fmt: skip
        _all_writing(folder, writers)
        kills: list[float] = []
        for turn in range(rounds):
            takes(seconds)
            kills.append(time.time())
            primary.kill()
            begun = time.monotonic()
            standby.promote()
            outcome.promote_seconds.append(time.monotonic() - begun)
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
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait()
        _judge(outcome, folder, dsn, kills)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
        shutil.rmtree(folder, ignore_errors=True)
        primary.remove()
        if standby is not None:
            standby.remove()
    return outcome


def _all_writing(folder: Path, writers: int) -> None:
    def writing() -> int:
        return sum(path.stat().st_size > 0 for path in folder.glob("*.jsonl"))

    until(lambda: writing() >= writers, "a first write of each writer", seconds=120)


def _judge(outcome: Outcome, folder: Path, dsn: str, kills: list[float]) -> None:
    from rlm_mem.store.core.chunk_store import ChunkStore
    from rlm_mem.store.core.integrity import check

    acknowledged: dict[str, str] = {}  # text of a chunk that must be there → how it was written
    denied: set[str] = set()
    counters: dict[str, list[int]] = {}  # chunk → acknowledged count, count that may be there
    moments: list[float] = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            said = json.loads(line)
            kind, what = said["said"], said["text"]
            if kind == "counter":
                counters[what] = [0, 0]
            elif kind == "raised":
                counters[what] = [said["count"], said["count"]]
                moments.append(said["at"])
            elif kind == "raising":
                counters[what][1] = max(counters[what][1], said["count"])
            elif kind == "wrote":
                acknowledged[what] = said["id"]
                moments.append(said["at"])
            elif kind == "refused":
                outcome.refused += 1
                denied.add(what)
            elif kind == "undecided":
                outcome.undecided += 1
    with ChunkStore(dsn) as store:
        there = Counter(chunk.content for chunk in store.iter_chunks())
        outcome.lost = [text for text in acknowledged if text not in there]
        outcome.twice = [text for text, times in there.items() if times > 1]
        outcome.denied = [text for text in denied if text in there]
        for chunk_id, (least, most) in counters.items():
            chunk = store.get_chunk(chunk_id, track=False)
            count = chunk.metadata.extra["count"] if chunk else -1
            if not least <= count <= most or (chunk and chunk.revision != count + 1):
                outcome.lost.append(f"counter {chunk_id}: {count}, acknowledged {least}")
        outcome.findings = [str(finding) for finding in check(store)]
    moments.sort()
    outcome.writes = len(moments)
    outcome.kills = len(kills)
    for kill in kills:
        # What was under way is acknowledged a little after the kill: the longest pause about it is what counts.
        pauses = [b - a for a, b in pairwise(moments) if b > kill and a < kill + 5]
        outcome.gap_seconds.append(max(pauses, default=float("inf")))


def _work(dsn: str, journal: Path) -> None:
    """Create chunks and raise a counter until terminated; say what the store said."""
    import signal

    from rlm_mem.errors import StorageError
    from rlm_mem.store.core.chunk_store import ChunkStore

    ended = False

    def end(*_: object) -> None:
        nonlocal ended
        ended = True

    signal.signal(signal.SIGTERM, end)
    who = journal.stem
    with ChunkStore(dsn) as store, journal.open("a") as file:

        def say(said: str, text: str, **more: Any) -> None:
            file.write(json.dumps({"said": said, "text": text, "at": time.time(), **more}) + "\n")
            file.flush()

        counter = store.create_chunk(f"counter of writer {who}", metadata={"count": 0})
        say("counter", counter.id)
        number = count = 0
        while not ended:
            number += 1
            text = f"Writer {who} wrote down item {number}, which weighs {number * 7 % 900} grams."
            try:
                chunk = store.create_chunk(text, tags=[f"by-{who}"], conversation_id=f"writer-{who}")
                say("wrote", text, id=chunk.id)
                if number % 4 == 0:
                    text = counter.id
                    say("raising", text, count=count + 1)
                    with store.batch():
                        now = store.get_chunk(counter.id, track=False)
                        assert now is not None
                        count = now.metadata.extra["count"]
                        store.update_chunk(counter.id, metadata={"count": count + 1})
                    count += 1
                    say("raised", text, count=count)
            except StorageError as error:
                clear = "nothing was changed" in str(error) or "no PostgreSQL server" in str(error)
                say(
                    "refused" if clear else "undecided", text if text != counter.id else "-", error=str(error)
                )


if __name__ == "__main__":
    _work(sys.argv[2], Path(sys.argv[3]))
