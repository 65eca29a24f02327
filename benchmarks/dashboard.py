"""The dashboard at 100,000 chunks over real HTTP: the first page, search as you type, and delay of live updates.

`rlm-mem serve` runs in a process of its own on a store of made-up conversations with all their files. Requested over
one persistent connection, as a browser does: the first page (20 newest memories, figures, filters), the pages of single
memories, the graph, the timeline; then questions as they are typed, a request for every second letter, each answer
complete with its marked snippets. `browser` is the time until Chromium has loaded and drawn the page (its load event),
where there is one. `live` is the time from the end of a write in another process to the notice at the open page.

    python benchmarks/dashboard.py                 # 100,000 chunks; ten minutes, most of them to make the store
    python benchmarks/dashboard.py --brain FOLDER  # keep the store there, or use an existing one
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import synthetic
from support import Report, arguments, spread, timed

TARGETS = {"first page": 150.0, "search as you type": 100.0, "live": 1000.0}
_TAGS = ("work", "home", "travel", "people", "tools", "ideas", "plans", "bugs")
_TYPES = ("note", "fact", "preference", "decision", "pattern")


def make_brain(brain: Path, size: int) -> None:
    """Write the chunk files; opening the brain makes the index of them."""
    from rlm_mem.chunk import Chunk, ChunkLinks, ChunkMetadata, content_hash, encode_chunk, format_time
    from rlm_mem.memory import Memory
    from rlm_mem.text.tokens import count_tokens

    names = [synthetic.word(number) for number in range(synthetic.VOCABULARY)]
    chunks = brain / "memory" / "chunks"
    former: list[tuple[int, str]] = []
    for batch in synthetic.Corpus(size).batches():
        texts = synthetic.texts(batch, names)
        rows = zip(batch.doc.tolist(), batch.conversation.tolist(), batch.at.tolist(), texts, strict=True)
        for doc, conversation, at, text in rows:
            moment = datetime.fromtimestamp(at, UTC)
            stamp = format_time(moment)
            # As remembering links them: the latest ones of the conversation.
            near = [one for of_conversation, one in former if of_conversation == conversation]
            chunk = Chunk(
                id=f"chunk-{moment:%Y-%m-%d}-{doc:08x}",
                content=text,
                tokens=count_tokens(text),
                type=_TYPES[doc % len(_TYPES)],
                metadata=ChunkMetadata(
                    created_at=stamp, modified_at=stamp, accessed_at=stamp, confidence=0.7,
                    conversation_id=f"conv-{conversation}", source="interaction", content_hash=content_hash(text),
                ),
                tags=[_TAGS[conversation % len(_TAGS)], _TAGS[doc % len(_TAGS)]][: 1 + doc % 2],
                links=[ChunkLinks(one, "context_of", 0.9, stamp) for one in near],
            )  # fmt: skip
            former = [*former[-5:], (conversation, chunk.id)]
            folder = chunks / f"{moment:%Y-%m}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{chunk.id}.json").write_bytes(encode_chunk(chunk))
    with Memory.open(brain) as memory:
        memory.checkpoint()


class Browser:
    """One persistent connection that has logged in."""

    def __init__(self, link: str) -> None:
        parts = urlsplit(link)
        self.host, self.port = str(parts.hostname), int(parts.port or 0)
        self._connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        self._connection.request("GET", f"{parts.path}?{parts.query}")
        answer = self._connection.getresponse()
        answer.read()
        self.cookie = str(answer.headers["set-cookie"]).split(";")[0]

    def get(self, path: str, *, part: bool = False) -> str:
        """The body of a response, which must be a success."""
        headers = {"Cookie": self.cookie, "Accept": "text/html"} | ({"HX-Request": "true"} if part else {})
        self._connection.request("GET", path, headers=headers)
        answer = self._connection.getresponse()
        body = answer.read().decode()
        assert answer.status == 200, (path, answer.status, body[:300])
        return body


@contextlib.contextmanager
def serving(brain: Path, *options: str) -> Iterator[str]:
    """The link that logs in."""
    program = [sys.executable, "-m", "rlm_mem", "serve", "--port", "0", "--llm", "offline"]
    with subprocess.Popen(
        [*program, "--brain", str(brain), *options], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr
            for line in process.stderr:
                found = re.search(r"http://\S+/login\?code=\S+", line)
                if found:
                    yield found[0]
                    break
        finally:
            process.terminate()


def typed(question: str) -> Iterator[str]:
    """The question while it is typed, every second letter."""
    yield from (question[:end] for end in range(3, len(question) + 1, 2))


def browser_times(browser: Browser, rounds: int) -> list[float]:
    """Milliseconds until Chromium has loaded the first page; empty without one."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return []
    if chromium is None:
        return []
    site = f"http://{browser.host}:{browser.port}"
    name, _, value = browser.cookie.partition("=")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        context = found.new_context()
        context.add_cookies([{"name": name, "value": value, "url": site}])
        page = context.new_page()
        times = []
        for _ in range(rounds + 1):
            page.goto(f"{site}/memories")
            times.append(float(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")))
        found.close()
    return times[1:]  # the first one fetched and compiled the scripts


def live_times(brain: Path, browser: Browser, rounds: int) -> list[float]:
    """Milliseconds from the end of a write in this process to the notice from the server's."""
    from rlm_mem.memory import Memory

    connection = http.client.HTTPConnection(browser.host, browser.port, timeout=30)
    connection.request("GET", "/live", headers={"Cookie": browser.cookie})
    stream = connection.getresponse()
    told = threading.Event()
    seen = [0.0]

    def listen() -> None:
        # The connection is closed while the thread reads, once everything is measured.
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            for line in stream:
                if line.startswith(b"data:") and b"memories" in line:
                    seen[0] = time.perf_counter()
                    told.set()

    threading.Thread(target=listen, daemon=True).start()
    time.sleep(1)
    times = []
    with Memory.open(brain) as memory:
        for number in range(rounds):
            told.clear()
            memory.store.create_chunk(f"A note that shows at once, number {number}.", conversation_id="live")
            written = time.perf_counter()
            if told.wait(10):
                times.append(max(0.0, (seen[0] - written) * 1e3))
            time.sleep(0.6 + 0.037 * number % 0.25)
    connection.close()
    return times


def measure(report: Report, brain: Path, size: int, *, rounds: int) -> None:
    """All figures of one store."""

    def add(what: str, times: list[float]) -> None:
        if times:
            target = TARGETS.get(what)
            report.add(what=what, chunks=size, **spread(times), target_ms=target if target else "")

    questions = [question for question, _ in synthetic.Corpus(size).questions(max(3, rounds // 5))]
    with serving(brain) as link:
        browser = Browser(link)
        cold, _ = timed(lambda: browser.get("/memories"))
        add("first page, fresh server", [cold])
        page = browser.get("/memories")
        assert "20 memories shown" in page
        one = re.findall(r'href="(/memories/chunk-[^"]+)"', page)[0]
        tasks: tuple[tuple[str, Callable[[], Any]], ...] = (
            ("first page", lambda: browser.get("/memories")),
            ("one memory", lambda: browser.get(one)),
            ("graph data", lambda: browser.get(f"/graph/data?id={one.rpartition('/')[2]}&limit=500")),
            ("timeline", lambda: browser.get("/timeline")),
            ("memories of a tag", lambda: browser.get("/memories?tag=work", part=True)),
        )
        for what, task in tasks:
            add(what, [timed(task)[0] for _ in range(rounds)])
        browser.get(f"/memories?q={quote(questions[0])}", part=True)
        times, whole = [], []
        for question in questions:
            for words in typed(question):
                took, _ = timed(lambda words=words: browser.get(f"/memories?q={quote(words)}", part=True))
                times.append(took)
            whole.append(times[-1])
        add("search as you type", times)
        add("search, whole questions", whole)
        add("browser", browser_times(browser, min(20, rounds)))
        add("live", live_times(brain, browser, min(20, rounds)))


def main() -> None:
    """Make the store, unless there is one, and measure."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--brain", type=Path, help="where the store is, or is to be kept")
    parser.add_argument("--size", type=int, default=100_000, help="chunks")
    parser.add_argument("--rounds", type=int, default=100, help="times that each page is asked for")
    options = parser.parse_args()
    size = 5_000 if options.quick else options.size
    report = Report(
        "dashboard", "The dashboard over HTTP: milliseconds of an answer, of a loaded page, of a notice"
    )
    with contextlib.ExitStack() as stack:
        brain = options.brain or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "brain"
        if not (brain / "memory" / "chunks").is_dir():
            made, _ = timed(lambda: make_brain(brain, size))
            report.facts["seconds to write the files and index them"] = round(made / 1e3, 1)
        measure(report, brain, size, rounds=20 if options.quick else options.rounds)
    met = [row for row in report.rows if row["target_ms"] and row["p95_ms"] <= row["target_ms"]]
    aimed = [row for row in report.rows if row["target_ms"]]
    report.facts["targets met at p95"] = f"{len(met)} of {len(aimed)}"
    report.finish(options.output)


if __name__ == "__main__":
    main()
