"""The longest stall of a second client while others ask adversarial questions and run adversarial programs.

`rlm-mem serve` runs in a process of its own, once for each engine. One client runs 100 questions and 100 programs made
to be slow, one after the other. A second one, in another process, asks for the figures (`GET /api/v1/stats`) every 10
ms and records how long each answer took, which shows whatever holds the interpreter lock of the server.

    python benchmarks/stalls.py            # 200 on each engine
    python benchmarks/stalls.py --quick    # 20 on each engine
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dashboard import Browser, serving
from support import Report, arguments, percentile

TARGET = 250.0
EVERY = 0.01
_WORDS = (
    "what would ", "i really ", "the last ", "every ", "in ", "a or ", "Ana's ", "prefer ", "a-", "0,00", "....", "((",
    "{__a", "\u0301", "\ufdfa", "é漢", "how did ", "since ", "1.", "<question>", "when when ", "\t", "_a", "'s ", "?",
)  # fmt: skip


def questions(count: int) -> Iterator[str]:
    """Questions made of the repeated parts of patterns, at several lengths."""
    for number in range(count):
        word = _WORDS[number % len(_WORDS)]
        size = (300, 1_200, 4_000, 9_800)[number // len(_WORDS) % 4]
        yield ("Where does Ana live? " + word * size)[:size] + "x"


def programs(count: int) -> Iterator[str]:
    """Programs that are slow to check, to rewrite, to run, or whose values and messages are large or odd."""
    made = [
        "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')",
        "x = '" + "{__a" * 12_000 + "'",
        "x = '" + "{" * 60_000 + "'",
        "'x' * 9_000_000",
        "print('x' * 9_000_000)",
        "while True:\n    print('flood')",
        "raise ValueError('name ' + 'w' * 5_000_000)",
        "raise ValueError(\"No module named '\" + 'a' * 5_000_000)",
        "class " + "C" * 50_000 + ":\n    pass\n" + "C" * 10 + "()",
        "x = 10 ** 200_000\nprint(x)",
        "x = " + "9" * 60_000,
        "x = " + "(" * 150 + "1" + ")" * 150,
        "x = " + "-" * 60_000 + "1",
        "x = " + "[" * 30_000,
        "x = " + "1+" * 9_000 + "1",
        "a\n" * 9_000,
        "a = 1\n" * 6_000,
        "a = " + "a." * 9_000 + "b",
        "f" + "()" * 6_000,
        "x = {i * ((1 << 61) - 1): 0 for i in range(100_000)}\nx",
        "x = []\nfor i in range(100_000):\n    x = [x]\nx",
        "x = [0]\nfor i in range(40):\n    x = [x, x]\nx",
        "read_chunk = 5",
        "def read_chunk(x):\n    return read_chunk(x)\nread_chunk('a')",
        "def f():\n    return f()\nf()",
        "x = '\\ud800' * 100_000\nprint(x)\nx",
        "print('\u0301' * 1_000_000)",
        "print('\ufdfa' * 500_000)",
        "search_chunks('what would ' * 2_000)",
        "search_chunks('a-' * 4_000)",
        "FINAL('x' * 9_000_000)",
        "FINAL({str(i): 'y' * 100 for i in range(50_000)})",
        "f = f'" + "{a}" * 5_000 + "'",
        "[" + "lambda: " * 90 + "0 for x in range(3)]",
        "max({" + ", ".join(f"'k{n}': {n}" for n in range(3_000)) + "}, key=str.lower)",
        "x = [i for i in range(2_000_000)]\nx",
        "import hashlib\nwhile True:\n    hashlib.sha256(b'x')",
        "x = {}\nx['me'] = x\nx",
        "def g():\n    yield from g()\nlist(g())",
        "try:\n    1 / 0\nexcept Exception as e:\n    raise ValueError(str(e) * 500_000)",
    ]
    for number in range(count):
        yield made[number % len(made)] + f"\n# {number}"


class Client:
    """One persistent connection that posts JSON."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._connection = http.client.HTTPConnection(browser.host, browser.port, timeout=120)

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        headers = {"Cookie": self._browser.cookie, "Content-Type": "application/json"}
        headers["Origin"] = f"http://{self._browser.host}:{self._browser.port}"
        self._connection.request("POST", path, json.dumps(body), headers)
        answer = self._connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None


def ask_all(client: Client, count: int) -> dict[int, int]:
    """Run questions and programs; the number of answers by status."""
    seen: dict[int, int] = {}
    limits = {"seconds": 2}
    for question in questions(count):
        status, _ = client.post("/api/v1/recall", {"question": question, "limits": limits})
        seen[status] = seen.get(status, 0) + 1
    handle = None
    for code in programs(count):
        if handle is None:
            status, opened = client.post(
                "/api/v1/sessions", {"question": "Where does Ana live?", "limits": limits}
            )
            assert status < 300, (status, opened)
            handle = opened["handle"]
        status, done = client.post(f"/api/v1/sessions/{handle}/programs", {"code": code})
        seen[status] = seen.get(status, 0) + 1
        if status != 200 or done["finished"] or done["stopped_by"]:
            handle = None
    return seen


def watch(link_host: str, port: int, cookie: str) -> None:
    """Request the figures until standard input ends; print the milliseconds of each answer."""
    connection = http.client.HTTPConnection(link_host, port, timeout=300)
    os.set_blocking(0, False)
    took: list[float] = []
    while True:
        began = time.perf_counter()
        connection.request("GET", "/api/v1/stats", headers={"Cookie": cookie})
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        took.append((time.perf_counter() - began) * 1000)
        if sys.stdin.buffer.read() == b"":
            break
        time.sleep(max(0.0, EVERY - took[-1] / 1000))
    print(json.dumps(took))


def measured(engine: str, count: int, report: Report) -> None:
    """One server with one engine."""
    from rlm_mem.memory import Memory

    with tempfile.TemporaryDirectory() as folder:
        brain = Path(folder) / "brain"
        with Memory.open(brain) as memory:
            for number in range(200):
                memory.remember(
                    f"Ana moved to flat {number} in Porto and lives there with her {number} cats."
                )
        os.environ["RLM_MEM_SANDBOX_ENGINE"] = engine
        with serving(brain, "--rate", "0") as link:
            browser = Browser(link)
            command = [sys.executable, __file__, "--watch", browser.host, str(browser.port), browser.cookie]
            with subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as watcher:
                began = time.perf_counter()
                seen = ask_all(Client(browser), count)
                seconds = time.perf_counter() - began
                said, _ = watcher.communicate()
            took = json.loads(said)
            report.add(
                engine=engine, slow_questions_and_programs=2 * count,
                refused=sum(n for s, n in seen.items() if s >= 400),
                seconds=round(seconds, 1), requests=len(took), p50_ms=percentile(took, 0.5),
                p99_ms=percentile(took, 0.99), max_ms=max(took), target_ms=TARGET,
            )  # fmt: skip


def main() -> None:
    """Measure both engines."""
    if sys.argv[1:2] == ["--watch"]:
        watch(sys.argv[2], int(sys.argv[3]), sys.argv[4])
        return
    options = arguments(__doc__ or "").parse_args()
    report = Report(
        "stalls", "The longest stall of a second client while adversarial questions and programs run"
    )
    for engine in ("monty", "cpython"):
        measured(engine, 10 if options.quick else 100, report)
    report.finish(options.output)


if __name__ == "__main__":
    main()
