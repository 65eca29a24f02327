"""How much of a rubric the opening and the outline of a chat show, counted without a model.

BEAM's questions about the order of events, for summaries and for counts are asked; read is the opening of a session, or
what one program prints, an `outline` of the question. A point of a rubric counts by the share of its words, weighed by
rarity in the chat and without those of the question, that neighbouring rows of up to 500 characters have at most. The
chats 100K-01 to 100K-06 were at hand while `outline` was developed.

    python benchmarks/outlines.py --data FOLDER     # with beam/*.json.gz
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from answers.answering import remembered
from answers.sets import load_beam
from rlm_mem import Memory, REPLSession
from rlm_mem.text.analysis import get_analyser
from support import Report, arguments

KINDS = {
    "event_ordering": "order of events",
    "summarization": "summaries",
    "multi_session_reasoning": "counts",
}
LAST_LOOKED_AT = "100K-06"
_TOGETHER = 500
"""Most characters of the neighbouring rows that may tell of one point together, whatever the length of a row."""
_TASKS = ("LLM response should contain:", "LLM response should state:")
"""Precede some points, and are no part of them."""
_PROGRAM = "rows = outline({question!r})\nprint_rows(rows)"

Asked = list[tuple[str, tuple[str, ...]]]
"""Questions with their rubrics."""


def opening(memory: Memory, question: str) -> str:
    """What a session shows first."""
    with memory.recall_session(question) as session:
        return session.opening


def program(memory: Memory, question: str) -> str:
    """What a program prints."""
    with REPLSession(memory.store) as session:
        return session.run(_PROGRAM.format(question=question)).output


READ: Mapping[str, Callable[[Memory, str], str]] = {"opening": opening, "outline": program}


def shares(
    memory: Memory, questions: Asked, read: Callable[[Memory, str], str]
) -> tuple[list[float], list[int]]:
    """The share of each point of these rubrics, and the characters of what is read for each question."""
    analyser = get_analyser(memory.config.search.language)
    texts = [set(analyser.terms(one.content)) for one in memory.store.iter_chunks()]
    held = Counter(term for terms in texts for term in terms)
    points: list[float] = []
    sizes: list[int] = []
    for question, rubric in questions:
        output = read(memory, question)
        sizes.append(len(output))
        rows = [(len(line), frozenset(analyser.terms(line))) for line in output.splitlines()]
        windows = [together(rows[first:]) for first in range(len(rows))]
        asked = set(analyser.terms(question))
        for point in rubric:
            for task in _TASKS:
                point = point.removeprefix(task)
            wanted = {
                term: math.log((len(texts) + 1) / (held[term] + 1))
                for term in set(analyser.terms(point)) - asked
            }
            if whole := sum(wanted.values()):
                told = (sum(wanted.get(term, 0.0) for term in window) for window in windows)
                points.append(max(told, default=0.0) / whole)
    return points, sizes


def together(rows: list[tuple[int, frozenset[str]]]) -> frozenset[str]:
    """The terms of the first row and of those after it that have room beside it."""
    terms: frozenset[str] = frozenset()
    room = _TOGETHER
    for number, (size, own) in enumerate(rows):
        room -= size
        if number and room < 0:
            break
        terms |= own
    return terms


def main() -> int:
    """Run from the command line."""
    chosen = arguments(__doc__ or "").parse_args()
    if chosen.data is None or not (chosen.data / "beam").exists():
        print("outlines needs --data FOLDER with beam/*.json.gz")
        return 0
    report = Report("outlines", "How much of a rubric the outline of a chat shows")
    loaded = load_beam(chosen.data / "beam")
    found: dict[tuple[str, str, bool], tuple[list[float], list[int]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, corpus in sorted(loaded.corpora.items()):
            if not name.startswith("100K"):
                continue
            place = Path(scratch) / name
            remembered(corpus, place)
            with Memory.open(place) as memory:
                for kind in KINDS:
                    asked = [
                        (one.question, one.rubric)
                        for one in loaded.cases
                        if one.corpus == name and one.kind == kind
                    ]
                    for what, read in READ.items():
                        points, sizes = shares(memory, asked, read)
                        kept = found.setdefault((kind, what, name <= LAST_LOOKED_AT), ([], []))
                        kept[0].extend(points)
                        kept[1].extend(sizes)
    for (kind, what, looked_at), (points, sizes) in sorted(
        found.items(), key=lambda one: (*one[0][:2], not one[0][2])
    ):
        report.add(
            kind_of_question=KINDS[kind],
            read=what,
            chats="development" if looked_at else "held out",
            rubric_points=len(points),
            share_shown=round(sum(points) / len(points), 3),
            characters=round(sum(sizes) / len(sizes)),
        )
    report.finish(chosen.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
