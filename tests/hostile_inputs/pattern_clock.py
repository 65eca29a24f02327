"""Measures patterns in a process of its own: reads patterns as JSON lines, answers with a line for each that is slow.

Run as a program, with the seconds of processor time that all texts of one pattern may take; a linear one takes some
milliseconds. Before each pattern the kernel is asked to end the process after that time: matching holds the
interpreter's lock, and in some loops it looks at no signal.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from worst_texts import text_of, worst_texts

SIZES = (600, 8_000, 100_000)
GROWN = 1.5
"""Times the work for a character of the shortest text that one of the next may take without the longest being tried.

Of work a + b * n for a character of n, b is then at most a / 14,000: eight times the work for one of 100,000 at most.
"""
FLOOR = 0.004
"""Seconds below which a difference says nothing."""

DENSEST = 2500
"""Times the scan of the same text, character by character, that matching may take."""


def worker(pattern: re.Pattern[str], method: str) -> Callable[[str], Any]:
    if method == "finditer":
        return lambda text: deque(pattern.finditer(text), maxlen=0)
    return getattr(pattern, method)


def taken(work: Callable[[str], Any], text: str, tries: int = 1) -> float:
    """Seconds of processor time of the quickest of some tries; other processes take caches from the slower ones."""
    best = float("inf")
    for _ in range(tries):
        start = time.thread_time()
        work(text)
        best = min(best, time.thread_time() - start)
        if best < FLOOR / 10:
            break
    return best


def scan(text: str) -> None:
    for _ in text:
        pass


def judged(source: str, flags: int, method: str) -> str:
    """What is wrong with a pattern, or an empty text."""
    work = worker(re.compile(source, flags), method)
    triples = worst_texts(source, flags)
    for size in SIZES:
        timed = []
        for triple in triples:
            text = text_of(triple, size)
            took = taken(work, text)
            if took > FLOOR and took > DENSEST * taken(scan, text, 3) + FLOOR:
                took, scanned = taken(work, text, 4 if took < 0.5 else 1), taken(scan, text, 9)
                if took > DENSEST * scanned + FLOOR:
                    spent = f"{took * 1e3:.1f} ms, {took / scanned:.0f} scans"
                    return f"{spent}, for {len(text):,} characters of {triple!r:.200}"
            timed.append((took, triple))
        timed.sort(reverse=True)
        if size == SIZES[0]:
            triples = [triple for _, triple in timed[:5]]
        else:
            triples = [triple for took, triple in timed if grows(work, triple, took, size)][:1]
    return ""


def grows(work: Callable[[str], Any], triple: tuple[str, str, str], took: float, size: int) -> bool:
    """Whether the longest text may show what a text that took so many seconds does not."""
    short, long = text_of(triple, SIZES[0]), text_of(triple, size)
    before, now = min(taken(work, short) for _ in range(3)) / len(short), took / len(long)
    return now > GROWN * before or (took > FLOOR and now > DENSEST / 8 * taken(scan, long) / len(long))


def main(patience: float) -> None:
    for line in sys.stdin:
        one = json.loads(line)
        signal.setitimer(signal.ITIMER_VIRTUAL, patience)  # ends the process
        said = next(
            filter(None, (judged(one["pattern"], one["flags"], method) for method in one["methods"])), ""
        )
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]))
