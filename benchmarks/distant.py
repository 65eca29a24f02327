"""Operations on a PostgreSQL server that is some milliseconds away, beside the same server next door.

A relay on this machine holds back each answer for that time, so an operation that waits for the server several times
pays it as often; how often is counted, the median of all turns.

    python benchmarks/distant.py                       # 5 milliseconds away
    python benchmarks/distant.py --milliseconds 20
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.postgres import REPLICATED, Databases, Server

from rlm_mem import Memory
from support import Report, arguments, percentile, timed


class Relay:
    """A port that leads to another one of this machine, and whose answers come `delay` seconds late.

    Attributes:
        trips: how often a client asked something after it had got an answer, or as the first thing.
    """

    def __init__(self, port: int, delay: float) -> None:
        self.trips = 0
        self._delay = delay
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self) -> Relay:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                answered = threading.Event()
                answered.set()
                sent: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
                for way, values in (
                    (self._ask, (client, server, answered)),
                    (self._hold, (server, sent)),
                    (self._release, (sent, client, answered)),
                ):
                    threading.Thread(target=way, args=values, daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket, answered: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                self.trips += answered.is_set()
                answered.clear()
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)

    def _hold(self, server: socket.socket, sent: SimpleQueue[tuple[float, bytes]]) -> None:
        data = b"-"
        while data:
            data = b""
            with suppress(OSError):
                data = server.recv(1 << 16)
            sent.put((time.monotonic() + self._delay, data))

    def _release(
        self, sent: SimpleQueue[tuple[float, bytes]], client: socket.socket, answered: threading.Event
    ) -> None:
        with suppress(OSError):
            while True:
                due, data = sent.get()
                time.sleep(max(0.0, due - time.monotonic()))
                if not data:
                    client.shutdown(socket.SHUT_RDWR)
                    return
                answered.set()
                client.sendall(data)


def operations(memory: Memory) -> dict[str, Callable[[int], object]]:
    """What is measured, by the number of the turn; 200 turns at most."""
    store, ids = memory.store, memory.list_chunks()
    at = {"update": 0, "link": 200, "supersede": 400, "delete": 600, "get": 800}
    return {
        "remember": lambda n: memory.remember(f"The plumber moved visit {n} to week {n}.", tags=["visits"]),
        "remember_many, 100 texts": lambda n: memory.remember_many(
            [f"The carpenter sold chair {n * 100 + one} for {one} crowns." for one in range(100)]
        ),
        "get": lambda n: memory.get(ids[at["get"] + n]),
        "list a tag": lambda n: memory.list_chunks(tags=["parts"], limit=20 + n),
        "search": lambda n: memory.search(f"To which week was the delivery of bracket{n} moved?"),
        "search, about the present": lambda n: memory.search(f"In which week is bracket{500 + n} delivered?"),
        "recall, offline": lambda n: memory.recall(f"When does the delivery of bracket{n} come?"),
        "update": lambda n: store.update_chunk(ids[at["update"] + n], tags=["moved"]),
        "link": lambda n: memory.link(ids[at["link"] + n], ids[900 + n], "supports"),
        "supersede": lambda n: memory.supersede(
            ids[at["supersede"] + 2 * n], ids[at["supersede"] + 2 * n + 1]
        ),
        "delete": lambda n: memory.delete(ids[at["delete"] + n]),
        "stats": lambda _: memory.stats(),
    }


def main() -> None:
    """Measure and report."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--milliseconds", type=float, default=5.0, help="how far away the server is")
    parser.add_argument(
        "--turns", type=int, default=30, help="how often each operation is done on either, at most 90"
    )
    options = parser.parse_args()
    turns = 5 if options.quick else options.turns
    report = Report("distant", f"PostgreSQL {options.milliseconds:g} ms away (milliseconds, p50)")
    with Server(REPLICATED) as server, Relay(server.port, options.milliseconds / 1e3) as relay:
        near = server.dsn(Databases(server).make())
        far = near.replace(f":{server.port}/", f":{relay.port}/")
        with Memory.open(near) as memory:
            for start in range(0, 1000, 100):
                memory.remember_many(
                    {"text": f"The supplier moved the delivery of bracket{n} to week {n}.", "tags": ["parts"]}
                    for n in range(start, start + 100)
                )
        with Memory.open(near) as here, Memory.open(far) as there:
            pairs = zip(operations(here).items(), operations(there).values(), strict=True)
            for (name, at_hand), away in pairs:
                for first in range(2):  # what is done once a process
                    at_hand(first)
                    away(2 + first)
                took: tuple[list[float], list[float], list[float]] = [], [], []
                for turn in range(2, 2 + turns):
                    took[0].append(timed(lambda turn=turn, do=at_hand: do(2 * turn))[0])
                    before = relay.trips
                    took[1].append(timed(lambda turn=turn, do=away: do(2 * turn + 1))[0])
                    took[2].append(relay.trips - before)
                beside, distant, trips = (percentile(each, 0.5) for each in took)
                report.add(
                    operation=name,
                    round_trips=int(trips),
                    server_next_door_ms=beside,
                    server_5_ms_away_ms=distant,
                )
    report.finish(options.output)


if __name__ == "__main__":
    main()
