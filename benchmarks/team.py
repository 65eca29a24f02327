"""A server for a team: many clients with different scopes, tokens revoked and the server replaced in their midst.

The server runs in a process of its own. Each client has a token for a namespace of its own, and one that all share; it
remembers, searches, reads, runs programs, and tries to reach what belongs to others. Every answer is searched for text
of other clients. Tokens are revoked while their clients send requests without a pause; halfway the server is replaced
(SIGUSR2). At the end the brain is opened: what was acknowledged has to be there, once, in its namespace.

    python benchmarks/team.py            # 50 clients, five minutes
    python benchmarks/team.py --quick    # 12 clients, 20 seconds
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from rlm_mem import Memory
from rlm_mem.access.tokens import TokenFile
from support import Report, arguments, percentile

_MARK = re.compile(r"mark-(\d+)-\d+")
_ROLES = ("read,write", "read,write", "read,write,review", "read")
_SHARED = "team/shared"
_PAUSE = 0.4


@dataclass
class Player:
    """One client: its token, and what it was told."""

    number: int
    token: str
    allow: str
    namespace: str
    acknowledged: dict[str, str] = field(default_factory=dict)
    """Chunk ids by the text that they hold."""
    revoked_at: float | None = None
    last_served: float = 0.0
    refused_at: float = 0.0

    @property
    def writes(self) -> bool:
        """Whether it may write."""
        return "write" in self.allow


@dataclass
class Played:
    """What happened.

    Attributes:
        seconds: of each answered request. ``answers``: how many, by status.
        leaks: text of another client in an answer, or a refusal that was none.
        broken: requests without an answer. ``restarted``: the process that served before and after.
        revoked: seconds from a revocation to the last answer with the token.
        lost, twice, astray: acknowledged writes that are not there, there twice, or in another namespace.
    """

    seconds: list[float] = field(default_factory=list)
    answers: Counter[int] = field(default_factory=Counter)
    leaks: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    restarted: tuple[int, int] = (0, 0)
    revoked: list[float] = field(default_factory=list)
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    astray: list[str] = field(default_factory=list)


def play(brain: Path, clients: int, seconds: float, revocations: int, seed: int = 1) -> Played:
    """Let clients work on a server of this brain for some seconds.

    Args:
        brain: a folder that is made. ``revocations``: how many tokens are revoked meanwhile.
    """
    tokens = TokenFile(brain / "tokens.json")
    brain.mkdir(parents=True)
    players = []
    for number in range(clients):
        allow = _ROLES[number % len(_ROLES)]
        own = f"team/c{number}"
        _, token = tokens.create(f"c{number}", [own, _SHARED], allow.split(","))
        players.append(Player(number, token, allow, own))
    for player in players:  # those that only read have something to read
        if not player.writes:
            with Memory.open(brain, namespace=player.namespace) as memory:
                text = f"The note mark-{player.number}-0 belongs to one client."
                player.acknowledged[text] = memory.remember(text, conversation_id="notes").chunk_ids[0]
    played = Played()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        process = _started(brain, listening)
    try:
        asyncio.run(_play(players, tokens, f"http://127.0.0.1:{port}", seconds, revocations, played, seed))
    finally:
        for one in {process.pid, *played.restarted} - {0}:
            _stop(one)
        process.wait(60)
    _verify(brain, players, played)
    return played


async def _play(
    players: list[Player],
    tokens: TokenFile,
    address: str,
    seconds: float,
    revocations: int,
    played: Played,
    seed: int,
) -> None:
    until = time.monotonic() + seconds
    async with asyncio.TaskGroup() as group:
        for player in players:
            group.create_task(
                _client(player, players, address, until, played, random.Random(seed * 1000 + player.number))
            )
        group.create_task(_revoke(players, tokens, seconds, revocations, played))
        group.create_task(_restart(address, seconds, played))


async def _client(
    player: Player, players: list[Player], address: str, until: float, played: Played, chance: random.Random
) -> None:
    """One client until the end."""
    async with httpx.AsyncClient(base_url=f"{address}/api/v1/", timeout=60) as http:
        count = 0

        async def ask(
            method: str, path: str, expected: tuple[int, ...], namespace: str | None = None, **more: Any
        ) -> Any:
            token = player.token
            headers = {"Authorization": f"Bearer {token}"}
            if namespace is not None:
                headers["RLM-MEM-Namespace"] = namespace
            began = time.perf_counter()
            try:
                answer = await http.request(method, path, headers=headers, **more)
            except httpx.TransportError as error:
                played.broken.append(f"{method} {path}: {type(error).__name__}: {error}")
                return None
            played.seconds.append(time.perf_counter() - began)
            played.answers[answer.status_code] += 1
            if answer.status_code == 401 and (player.revoked_at is not None or token != player.token):
                player.refused_at = player.refused_at or time.monotonic()
                return None
            player.last_served = time.monotonic()
            foreign = {int(one) for one in _MARK.findall(answer.text)} - {player.number}
            if namespace != _SHARED and foreign:
                played.leaks.append(f"{method} {path} gave text of {foreign} to {player.number}")
            if answer.status_code not in expected:
                played.leaks.append(
                    f"{method} {path} of {player.number}: {answer.status_code}, not {expected}"
                )
            return answer

        while time.monotonic() < until:
            other = chance.choice([one for one in players if one is not player])
            theirs = chance.choice(list(other.acknowledged.values()) or ["chunk-none"])
            count += 1
            text = f"The note mark-{player.number}-{count} belongs to one client."
            what = chance.randrange(8)
            if what <= 1:
                body = {"text": text, "conversation_id": "notes"}
                answer = await ask("POST", "remember", (200,) if player.writes else (403,), json=body)
                if answer is not None and answer.status_code == 200:
                    player.acknowledged[text] = answer.json()["chunk_ids"][0]
            elif what == 2:
                await ask("GET", f"chunks/{theirs}", (404,))
                await ask("GET", "chunks", (403,), namespace=other.namespace)
            elif what == 3:
                # The query itself is not repeated in the answer.
                await ask("POST", "search", (200,), json={"query": "note belongs to one client"})
            elif what == 4:
                answer = await ask("GET", "events", (200,))
            elif what == 5:
                opened = await ask(
                    "POST", "sessions", (201,), json={"question": "Which notes belong to a client?"}
                )
                if opened is not None and opened.status_code == 201:
                    code = f"print(read_chunk('{theirs}'), search('note client'), list_chunks_by_tag('x'))"
                    handle = opened.json()["handle"]
                    # The handle ends with the process that gave it.
                    await ask("POST", f"sessions/{handle}/programs", (200, 404), json={"code": code})
                    await ask("DELETE", f"sessions/{handle}", (204, 404))
            elif what == 6:
                note = {"text": f"shared {player.number} {count}", "conversation_id": "all"}
                await ask(
                    "POST", "remember", (200,) if player.writes else (403,), namespace=_SHARED, json=note
                )
                await ask("POST", "search", (200,), namespace=_SHARED, json={"query": "shared"})
            else:
                await ask("POST", "rebuild", (403,))
                await ask("GET", "tokens", (403,))
            while player.revoked_at is not None and time.monotonic() < until + 5:
                await ask("GET", "about", (200,))  # without a pause, until it gets a new token
            await asyncio.sleep(_PAUSE * chance.random() * 2)


async def _revoke(
    players: list[Player], tokens: TokenFile, seconds: float, revocations: int, played: Played
) -> None:
    """Revoke tokens, one after the other; their clients get new ones once they are refused."""
    started = time.monotonic()
    for number in range(revocations):
        # All of them before the clients end.
        await asyncio.sleep(started + seconds * (number + 1) / (revocations + 2) - time.monotonic())
        player = players[number * 7 % len(players)]
        player.refused_at = 0.0
        player.revoked_at = time.monotonic()
        revoked = await asyncio.to_thread(tokens.revoke, f"c{player.number}")
        began = time.monotonic()
        while not player.refused_at and time.monotonic() < began + 5:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.1)  # whatever it is served after the first refusal counts, too
        played.revoked.append(max(0.0, player.last_served - began) if player.refused_at else 5.0)
        made = await asyncio.to_thread(
            tokens.create, revoked.name, revoked.namespaces, list(revoked.permissions)
        )
        player.token, player.revoked_at = made[1], None


async def _restart(address: str, seconds: float, played: Played) -> None:
    """Replace the server halfway, and wait until the former process has ended."""
    began = time.monotonic()
    while not played.answers[200]:  # it has started
        await asyncio.sleep(0.02)
    await asyncio.sleep(began + seconds / 2 - time.monotonic())
    port = address.rpartition(":")[2]
    (before,) = _serving(port)
    os.kill(before, signal.SIGUSR2)
    while before in (now := _serving(port)):
        await asyncio.sleep(0.05)
    if not now:
        raise SystemExit("the server has ended instead of handing over")
    played.restarted = (before, now[0])


def _serving(port: str) -> list[int]:
    """The processes that listen on a port."""
    inodes = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and int(fields[1].partition(":")[2], 16) == int(port):
            inodes.add(f"socket:[{fields[9]}]")
    found = []
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            links = {str(one.readlink()) for one in folder.iterdir()}
        except OSError:  # another user's, or it has ended
            continue
        if links & inodes:
            found.append(int(folder.parent.name))
    return found


def _verify(brain: Path, players: list[Player], played: Played) -> None:
    with Memory.open(brain, namespace=_SHARED) as shared:
        astray = [chunk.content for chunk in _all(shared) if _MARK.search(chunk.content)]
        played.astray += astray
    for player in players:
        with Memory.open(brain, namespace=player.namespace) as memory:
            texts = Counter(chunk.content for chunk in _all(memory))
        played.acknowledged += len(player.acknowledged)
        played.lost += [text for text in player.acknowledged if not texts[text]]
        played.twice += [text for text, count in texts.items() if count > 1]
        played.astray += [text for text in texts if f"mark-{player.number}-" not in text]


def _all(memory: Memory) -> list[Any]:
    return list(memory.store.get_many(memory.list_chunks()).values())


_START = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
os.execv(sys.executable, [sys.executable, "-m", "rlm_mem", *sys.argv[2:]])
"""


def _started(brain: Path, listening: socket.socket) -> subprocess.Popen[bytes]:
    """A server on a socket that is open already, as a service manager hands it over: connections wait for it."""
    options = ("serve", "--brain", str(brain), "--port", "1", "--rate", "0", "--no-dashboard")
    command = [sys.executable, "-c", _START, str(listening.fileno()), *options]
    environment = {**os.environ, "RLM_MEM_TOKEN": "x" * 32}
    return subprocess.Popen(
        command, stderr=subprocess.DEVNULL, env=environment, pass_fds=(listening.fileno(),)
    )


def _stop(process: int) -> None:
    try:
        os.kill(process, signal.SIGTERM)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
            if state == "Z":
                return
            time.sleep(0.05)
    except OSError:  # it has ended
        return


def main() -> None:
    """Play, print, and save the report."""
    options = arguments(__doc__ or "").parse_args()
    clients, seconds, revocations = (12, 20.0, 3) if options.quick else (50, 300.0, 30)
    report = Report("team", "A server for a team: clients with different scopes")
    with tempfile.TemporaryDirectory() as folder:
        played = play(Path(folder) / "brain", clients, seconds, revocations)
    report.add(
        clients=clients,
        seconds=seconds,
        requests=len(played.seconds),
        p50_ms=percentile(played.seconds, 0.5) * 1e3,
        p95_ms=percentile(played.seconds, 0.95) * 1e3,
        refused=played.answers[403] + played.answers[404] + played.answers[401],
        leaks_across_scopes=len(played.leaks),
        revocations=len(played.revoked),
        slowest_revocation_ms=max(played.revoked) * 1e3,
        requests_unanswered=len(played.broken),
        writes_acknowledged=played.acknowledged,
        writes_lost=len(played.lost),
        writes_duplicated=len(played.twice),
        writes_in_a_wrong_namespace=len(played.astray),
    )
    report.finish(options.output)
    for one in (*played.leaks[:20], *played.broken[:20], *played.lost[:20], *played.astray[:20]):
        print(one, file=sys.stderr)
    good = not (played.leaks or played.broken or played.lost or played.twice or played.astray)
    sys.exit(0 if good and max(played.revoked) < 1.0 and 0 not in played.restarted else 1)


if __name__ == "__main__":
    main()
