"""The sets on which `ranking.py` measures search: texts, questions, and the half kept apart.

A folder of data holds `locomo/*.json` (conversations in LoCoMo's layout) and `ranking/*.json.gz`, each `{"name",
"stores": [{"items": [{"id", "text", "conv", "at"}], "queries": [{"q", "rel": {id: grade}, "kind"}]}]}`. The notes are
part of the repository; the other data is not.

One half of every set is *looked at* (weights are learned from it), the other *kept apart* (measured only): every other
store, or every other question of a set with one store.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from locomo import Conversation, load
from offline_corpora import library, questions
from rlm_mem.ingest.remember import RememberOperation
from rlm_mem.store.core.chunk_store import ChunkStore

NOTES = Path(__file__).parent / "corpora" / "notes"
LOOKED_AT, KEPT_APART = "looked at", "held out"
HALVES = (LOOKED_AT, KEPT_APART)
#: Category of LoCoMo's questions that have no true answer: they name the wrong person on purpose.
ADVERSARIAL = "5"


@dataclass(frozen=True)
class Task:
    """A question, the grade of each mark that answers it, and its kind."""

    text: str
    marks: Mapping[str, float]
    kind: str


@dataclass
class Place:
    """One store with its questions: `texts` are what the peers index, `covers` the marks of each of them.

    `owners` has the numbers of the texts of each chunk: one, or several where equal texts are one memory.
    """

    store: ChunkStore
    texts: list[str]
    covers: list[frozenset[str]]
    owners: dict[str, list[int]]
    tasks: list[Task]
    lines: dict[str, frozenset[str]] = field(default_factory=dict)

    def add(self, chunk_id: str, text: str, *marks: str) -> None:
        """Add a text, the chunk that holds it, and its marks."""
        self.owners.setdefault(chunk_id, []).append(len(self.texts))
        self.texts.append(text)
        self.covers.append(frozenset(marks))


@dataclass(frozen=True)
class RankingSet:
    """A named set: sets of one `group` are left out together when weights are learned."""

    name: str
    group: str
    build: tuple[Callable[[Path], Place], ...]
    pairs: bool = False

    def places(self, folder: Path) -> Iterator[Place]:
        """Its stores, made below `folder` one after the other."""
        for number, build in enumerate(self.build):
            place = build(folder / self.name.replace(" ", "-") / str(number))
            try:
                yield place
            finally:
                place.store.close()


def sets(data: Path | None, half: str) -> list[RankingSet]:
    """Every available set, in the named half."""
    found: list[RankingSet] = []
    if data is not None and (data / "locomo").is_dir():
        conversations = _half(load(data / "locomo"), half)
        found += [
            RankingSet("LoCoMo turns", "LoCoMo", tuple(partial(_turns, one) for one in conversations)),
            RankingSet("LoCoMo chunks", "LoCoMo", tuple(partial(_chunks, one) for one in conversations)),
        ]
    for path in sorted((data / "ranking").glob("*.json.gz")) if data is not None else ():
        with gzip.open(path) as file:
            content = json.load(file)
        name, stores = content["name"], content["stores"]
        if len(stores) == 1:
            stores = [{**stores[0], "queries": _half(stores[0]["queries"], half)}]
        else:
            stores = _half(stores, half)
        found.append(
            RankingSet(
                name,
                name,
                tuple(partial(_items, one) for one in stores),
                pairs=_spaceless(stores[0]["items"]),
            )
        )
    found.append(RankingSet("documentation", "documentation", (partial(_documentation, half),)))
    found.append(RankingSet("notes", "notes", (partial(_notes, half),)))
    return found


def _half(of: Sequence[Any], half: str) -> list[Any]:
    return list(of[HALVES.index(half) :: 2])


def _spaceless(items: Sequence[Mapping[str, Any]]) -> bool:
    text = "".join(item["text"] for item in items[:20])
    return sum("\u3040" <= one <= "\u9fff" for one in text) > len(text) / 3


def _items(given: Mapping[str, Any], folder: Path) -> Place:
    tasks = [
        Task(query["q"], {str(key): float(grade) for key, grade in query["rel"].items()}, query["kind"])
        for query in given["queries"]
    ]
    place = Place(ChunkStore(folder), [], [], {}, tasks)
    remember = RememberOperation(place.store)
    with place.store.batch():
        for number, item in enumerate(given["items"]):
            result = remember.remember(item["text"], item.get("conv"), occurred_at=item.get("at"))
            if not result["success"]:
                raise RuntimeError(f"{item['id']}: {result['error']}")
            place.texts.append(item["text"])
            place.covers.append(frozenset([str(item["id"])]))
            for chunk_id in result["chunk_ids"]:
                place.owners.setdefault(chunk_id, []).append(number)
    return place


def _locomo_tasks(conversation: Conversation) -> list[Task]:
    return [
        Task(one.text, dict.fromkeys(one.evidence, 1.0), str(one.category))
        for one in conversation.questions
        if one.evidence
    ]


def _lines(conversation: Conversation) -> dict[str, frozenset[str]]:
    return {turn.line: frozenset([turn.dia_id]) for turn in conversation.turns}


def _turns(conversation: Conversation, folder: Path) -> Place:
    place = Place(ChunkStore(folder), [], [], {}, _locomo_tasks(conversation), _lines(conversation))
    with place.store.batch():
        for session in conversation.sessions:
            talk = session.conversation_id
            for turn in session.turns:
                at = turn.at.isoformat()
                chunk = place.store.create_chunk(turn.line, "note", conversation_id=talk, occurred_at=at)
                place.add(chunk.id, turn.line, turn.dia_id)
    return place


def _chunks(conversation: Conversation, folder: Path) -> Place:
    place = Place(ChunkStore(folder), [], [], {}, _locomo_tasks(conversation), _lines(conversation))
    remember = RememberOperation(place.store)
    for session in conversation.sessions:
        result = remember.remember(
            session.text, session.conversation_id, occurred_at=lambda p, s=session: s.turn_at(p).at
        )
        if not result["success"]:
            raise RuntimeError(f"{session.conversation_id}: {result['error']}")
        for chunk in place.store.get_many(result["chunk_ids"]).values():
            turns = session.turns_between(*chunk.metadata.provenance["span"])
            place.add(chunk.id, chunk.content, *(turn.dia_id for turn in turns))
    return place


def _notes(half: str, folder: Path) -> Place:
    notes, asked = (
        [json.loads(line) for line in (NOTES / name).read_text("utf-8").splitlines()]
        for name in ("notes.jsonl", "questions.jsonl")
    )
    tasks = [Task(one["question"], dict.fromkeys(one["evidence"], 1.0), "note") for one in _half(asked, half)]
    place = Place(ChunkStore(folder), [], [], {}, tasks)
    with place.store.batch():
        for note in notes:
            chunk = place.store.create_chunk(
                note["text"], "note", conversation_id=note.get("document"), occurred_at=note.get("at")
            )
            place.add(chunk.id, note["text"], note["id"])
    return place


def _documentation(half: str, folder: Path) -> Place:
    """That of the standard library, in chunks; the chunks with an accepted answer are what a question asks for."""
    asked = _half([one for one in questions("documentation")[1] if one.answers], half)
    tasks = [Task(one.question, {one.question: 1.0}, "documentation") for one in asked]
    place = Place(ChunkStore(folder), [], [], {}, [])
    remember = RememberOperation(place.store)
    for module, text in library():
        result = remember.remember(text, module)
        if not result["success"]:
            raise RuntimeError(f"{module}: {result['error']}")
        for chunk in place.store.get_many(result["chunk_ids"]).values():
            place.add(
                chunk.id, chunk.content, *(one.question for one in asked if one.is_answered_by(chunk.content))
            )
    place.tasks = [task for task in tasks if any(task.marks.keys() & covered for covered in place.covers)]
    return place


def figures(order: Sequence[int], place: Place, task: Task) -> dict[str, float]:
    """recall@10 and nDCG@10 of texts (by number, best first) for a question; each text counts once."""
    top = list(dict.fromkeys(order))[:10]
    covered = {mark for number in top for mark in place.covers[number] & task.marks.keys()}

    def gain(number: int) -> float:
        return max((task.marks[mark] for mark in place.covers[number] & task.marks.keys()), default=0.0)

    gained = sum(gain(number) / math.log2(rank + 2) for rank, number in enumerate(top))
    ideal = sorted((gain(number) for number in range(len(place.texts))), reverse=True)[:10]
    best = sum(one / math.log2(rank + 2) for rank, one in enumerate(ideal))
    return {"recall": len(covered) / len(task.marks), "ndcg": gained / best if best else 0.0}
