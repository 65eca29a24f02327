"""What one thread or process changed, every other one sees at once, however often it has read before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory

Step = Callable[[Memory, list[str]], list[str]]
"""Changes a memory; is given the ids made so far, and returns new ones."""


def _remember(text: str, **more: Any) -> Step:
    return lambda memory, ids: list(memory.remember(text, **more).chunk_ids)


def _act(act: Callable[[Memory, list[str]], object]) -> Step:
    def step(memory: Memory, ids: list[str]) -> list[str]:
        act(memory, ids)
        return []

    return step


STEPS: dict[str, Step] = {
    "remember": _remember("The ferry to Hallig leaves at 6:10.", tags=["travel"], conversation_id="trip"),
    "replace": _remember("Correction: the ferry to Hallig leaves at 6:40.", tags=["travel"]),
    "remember more": _remember("Dana lives in Berlin."),
    "contradict": _remember("Dana moved from Berlin to Hamburg."),
    "edit": _act(lambda memory, ids: memory.update(ids[0], content="The barge to Hallig leaves at noon.")),
    "tag": _act(lambda memory, ids: memory.update(ids[2], tags=["people", "travel"])),
    "link": _act(lambda memory, ids: memory.link(ids[2], ids[0], "supports", 0.7)),
    "unlink": _act(lambda memory, ids: memory.unlink(ids[2], ids[0], "supports")),
    "undo unlink": _act(lambda memory, ids: memory.undo()),
    "delete": _act(lambda memory, ids: memory.delete(ids[2])),
    "restore": _act(lambda memory, ids: memory.restore(ids[2])),
    "quarantine": _act(lambda memory, ids: memory.quarantine(ids[1], "a test")),
    "release": _act(lambda memory, ids: memory.release(ids[1])),
    "delete for good": _act(lambda memory, ids: memory.delete(ids[0], permanent=True)),
    "remember the same again": _remember("The ferry to Hallig leaves at 6:10.", tags=["travel"]),
    "undo": _act(lambda memory, ids: memory.undo()),
    "long": _remember(
        "\n\n".join(f"Chapter {n}: the heron number {n} nests on pier {n}." for n in range(40))
    ),
}


WRITERS = (0, 0, 1, 1, 0)

FERRY, COUNT = "When does the ferry to Hallig leave?", "How many memories are there?"
RECALLED = {"replace": FERRY, "edit": FERRY, "quarantine": COUNT, "delete for good": FERRY,
            "remember the same again": FERRY, "long": COUNT}  # fmt: skip
"""Steps after which a question is asked whose answer they change; a recall takes longer than all the rest."""


def seen(memory: Memory, *questions: str) -> dict[str, object]:
    """Everything that a memory answers, with ids and no scores that depend on reading."""
    ids = memory.list_chunks()
    answers = {}
    for question in questions:
        found = memory.recall(question)
        answers[question] = (found.content, found.chunk_ids)
    return {
        **answers,
        "list": ids,
        "travel": memory.list_chunks(tags=["travel"]),
        "archived": memory.list_chunks(archived=True),
        "tags": memory.tags(),
        "conversations": [one.id for one in memory.conversations()],
        "search": {
            words: [(hit.chunk_id, hit.snippet, hit.superseded_by) for hit in memory.search(words)]
            for words in ("ferry Hallig", "barge", "Dana lives Hamburg", "heron pier 7")
        },
        "get": [
            (one.content, one.tags, one.revision) for one in memory.store.get_many(ids, track=False).values()
        ],
        "links": {one: [(link.chunk_id, link.type) for link in memory.links(one)] for one in ids},
        "review": sorted((case.kind, case.status) for case in memory.continuum.review.cases(None)),
        "chunks": memory.stats().chunk_count,
    }


_OPEN: list[Memory] = []
"""The memory of this process, where it is a worker."""


def _open(place: Path | str) -> None:
    _OPEN.append(Memory.open(place))


def _close() -> None:
    _OPEN.pop().close()


def _do(name: str, ids: list[str]) -> list[str]:
    return STEPS[name](_OPEN[0], ids)


def _see(*questions: str) -> dict[str, object]:
    return seen(_OPEN[0], *questions)


@contextmanager
def workers(kind: str, place: Path | str) -> Iterator[list[Executor]]:
    """Two threads of this process, or two processes, which each have the memory open."""
    if kind == "threads":
        _open(place)
        two: list[Executor] = [ThreadPoolExecutor(1), ThreadPoolExecutor(1)]
    else:
        two = [
            ProcessPoolExecutor(1, get_context("spawn"), initializer=_open, initargs=(place,)) for _ in "ab"
        ]
    try:
        yield two
    finally:
        if kind == "threads":
            _close()
        else:
            for one in two:
                one.submit(_close).result()
        for one in two:
            one.shutdown()


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_every_change_is_seen_at_once_by_every_other_thread_and_process(place: Path | str, kind: str) -> None:
    """The writers take turns of one and two changes; a memory opened anew after each says what must be seen."""
    Memory.open(place).close()
    with workers(kind, place) as two:
        ids: list[str] = []
        for one in two:
            one.submit(_see, FERRY, COUNT).result()
        for number, name in enumerate(STEPS):
            ids += two[WRITERS[number % len(WRITERS)]].submit(_do, name, ids).result()
            questions = [RECALLED[name]] if name in RECALLED else []
            answers = [one.submit(_see, *questions) for one in two]
            with Memory.open(place) as fresh:
                expected = seen(fresh, *questions)
            for who, answer_of in enumerate(answers):
                found = answer_of.result()
                for what, answer in expected.items():
                    assert found[what] == answer, f"{what} of worker {who} after {name!r}"
