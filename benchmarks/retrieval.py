"""How much of the marked evidence search finds: RLM-MEM and its peers on the same texts, in the same run.

    python benchmarks/retrieval.py --data FOLDER      # conversations in LoCoMo's layout, and the notes beside this file
    python benchmarks/retrieval.py                    # the notes alone

Two granularities: *turn* (each turn remembered by itself) and *chunk* (each session remembered as one text and cut by
REMEMBER); `turn of chunk` asks the second store for single turns. recall@k is the share of a question's evidence among
the first k results, MRR the mean of one over the rank of the first, t1000 the share of the evidence within the first
1,000 tokens of results. Peers whose package is missing are skipped and say so.

The weights are learned (see `learn_weights.py`): figures for conversations that they were learned from are flattering
by about half a point; `learn_weights.py` prints the cross-validated ones.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from locomo import CATEGORIES, Conversation, load
from retrieval_peers import DEPTH, PEERS, Peer, missing
from rlm_mem.ingest.remember import RememberOperation
from rlm_mem.search import search
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.text.tokens import count_tokens
from support import Report, arguments, percentile, timed

NOTES = Path(__file__).parent / "corpora" / "notes"
FIRST_TOKENS = 1000
OURS = "RLM-MEM"


@dataclass(frozen=True)
class Item:
    """One thing that can be found: its text and the marks (turn or segment ids) that it covers."""

    text: str
    marks: frozenset[str]
    tokens: int


@dataclass(frozen=True)
class Task:
    """A question and the marks that hold its answer."""

    text: str
    evidence: frozenset[str]
    category: int


@dataclass
class Tally:
    """Figures of one system over questions."""

    rows: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)

    def add(self, task: Task, found: Sequence[Item], milliseconds: float) -> None:
        """Count one answered question."""
        first: dict[str, int] = {}
        within: set[str] = set()
        tokens = 0
        for rank, item in enumerate(found):
            tokens += item.tokens
            for mark in item.marks & task.evidence:
                first.setdefault(mark, rank)
                if tokens <= FIRST_TOKENS or rank == 0:
                    within.add(mark)
        size = len(task.evidence)
        figures = {f"r@{k}": sum(r < k for r in first.values()) / size for k in (5, 10, 20)}
        figures["mrr"] = 1 / (1 + min(first.values())) if first else 0.0
        figures["t1000"] = len(within) / size
        self.rows.append((task.category, figures))
        self.milliseconds.append(milliseconds)

    def mean(self, name: str, categories: Sequence[int]) -> float | None:
        """Mean of a figure in percent over the questions of some categories; None without any."""
        values = [figures[name] for category, figures in self.rows if category in categories]
        return round(100 * sum(values) / len(values), 1) if values else None


# -- stores ------------------------------------------------------------------------------------------------------------


def turn_store(
    conversations: Sequence[Conversation], folder: Path
) -> tuple[ChunkStore, list[Item], dict[str, Item]]:
    """A store with one chunk per turn; its items, and which item a chunk is."""
    store = ChunkStore(folder)
    items, by_chunk = [], {}
    with store.batch():
        for conversation in conversations:
            for session in conversation.sessions:
                for turn in session.turns:
                    chunk = store.create_chunk(
                        turn.line,
                        "note",
                        conversation_id=session.conversation_id,
                        occurred_at=turn.at.isoformat(),
                    )
                    item = Item(
                        turn.line, frozenset([_mark(conversation, turn.dia_id)]), count_tokens(turn.line)
                    )
                    if chunk.id not in by_chunk:
                        items.append(item)
                        by_chunk[chunk.id] = item
                    else:  # the same words again in one session are one memory
                        by_chunk[chunk.id] = Item(
                            item.text, by_chunk[chunk.id].marks | item.marks, item.tokens
                        )
    return store, items, by_chunk


def chunk_store(
    conversations: Sequence[Conversation], folder: Path
) -> tuple[ChunkStore, list[Item], dict[str, Item], Callable[[str, int, int], Item]]:
    """A store of remembered sessions; its items, which item a chunk is, and the item of a stretch of a chunk."""
    store = ChunkStore(folder)
    remember = RememberOperation(store)
    items, by_chunk, origin = [], {}, {}
    for conversation in conversations:
        for session in conversation.sessions:
            result = remember.remember(
                session.text, session.conversation_id, occurred_at=lambda p, s=session: s.turn_at(p).at
            )
            if not result["success"]:
                raise RuntimeError(f"{session.conversation_id}: {result['error']}")
            for chunk in store.get_many(result["chunk_ids"]).values():
                start, end = chunk.metadata.provenance["span"]
                turns = session.turns_between(start, end)
                marks = frozenset(_mark(conversation, turn.dia_id) for turn in turns)
                item = Item(chunk.content, marks, chunk.tokens)
                items.append(item)
                by_chunk[chunk.id] = item
                origin[chunk.id] = (conversation, session, start)

    def stretch(chunk_id: str, start: int, end: int) -> Item:
        conversation, session, offset = origin[chunk_id]
        turns = session.turns_between(offset + start, offset + end)
        text = session.text[offset + start : offset + end]
        return Item(text, frozenset(_mark(conversation, turn.dia_id) for turn in turns), count_tokens(text))

    return store, items, by_chunk, stretch


def _mark(conversation: Conversation, dia_id: str) -> str:
    return f"{conversation.name}/{dia_id}"


def tasks_of(conversation: Conversation) -> list[Task]:
    """The questions of a conversation that have marked evidence."""
    return [
        Task(q.text, frozenset(_mark(conversation, e) for e in q.evidence), q.category)
        for q in conversation.questions
        if q.evidence
    ]


# -- measuring ---------------------------------------------------------------------------------------------------------


Ranker = Callable[[str], list[Item]]


def measure(tally: Tally, ranker: Ranker, tasks: Sequence[Task]) -> None:
    """Ask every question."""
    for task in tasks:
        milliseconds, found = timed(lambda task=task: ranker(task.text))
        tally.add(task, found, milliseconds)


def peer_ranker(peer: Peer, items: Sequence[Item]) -> Ranker:
    return lambda question: [items[number] for number in peer.rank(question)]


def conversations_rankers(
    conversations: Sequence[Conversation], folder: Path
) -> Iterator[tuple[str, str, Ranker]]:
    """(granularity, system, ranker) for one set of conversations that share a store."""
    store, items, by_chunk = turn_store(conversations, folder / "turns")
    yield "turn", OURS, lambda q: [by_chunk[hit.chunk_id] for hit in search(store, q, limit=DEPTH)]
    yield from _peers("turn", items)
    store.close()
    store, items, by_chunk, stretch = chunk_store(conversations, folder / "chunks")
    yield (
        "turn of chunk",
        OURS,
        lambda q: [
            stretch(hit.chunk_id, hit.start, hit.end) for hit in search(store, q, limit=DEPTH, by="segment")
        ],
    )
    yield "chunk", OURS, lambda q: [by_chunk[hit.chunk_id] for hit in search(store, q, limit=DEPTH // 2)]
    yield from _peers("chunk", items)
    store.close()


def _peers(granularity: str, items: Sequence[Item]) -> Iterator[tuple[str, str, Ranker]]:
    for name, (build, package) in PEERS.items():
        if missing(package) is None:
            yield granularity, name, peer_ranker(build([item.text for item in items]), items)


def notes_tasks() -> tuple[list[dict[str, str]], list[Task]]:
    """The notes (id, text, …) and their questions."""
    notes = [json.loads(line) for line in (NOTES / "notes.jsonl").read_text(encoding="utf-8").splitlines()]
    asked = [
        json.loads(line) for line in (NOTES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    return notes, [Task(q["question"], frozenset(q["evidence"]), 4) for q in asked]


def notes_rankers(notes: Sequence[dict[str, str]], folder: Path) -> Iterator[tuple[str, str, Ranker]]:
    """Rankers over the notes, one chunk per note."""
    store = ChunkStore(folder / "notes")
    items, by_chunk = [], {}
    with store.batch():
        for note in notes:
            chunk = store.create_chunk(
                note["text"], "note", conversation_id=note.get("document"), occurred_at=note.get("at")
            )
            item = Item(note["text"], frozenset([note["id"]]), count_tokens(note["text"]))
            items.append(item)
            by_chunk[chunk.id] = item
    yield "note", OURS, lambda q: [by_chunk[hit.chunk_id] for hit in search(store, q, limit=DEPTH)]
    yield from _peers("note", items)
    store.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; see the module's docstring."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--together", action="store_true", help="also one store with all conversations")
    parser.add_argument("--plot", type=Path, default=None, help="write a plot of recall@10 here (SVG)")
    options = parser.parse_args(argv)
    tallies: dict[tuple[str, str, str], Tally] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.data is not None:
            conversations = load(options.data)
            chosen = conversations[:2] if options.quick else conversations
            for number, conversation in enumerate(chosen):
                for level, system, ranker in conversations_rankers([conversation], folder / str(number)):
                    tally = tallies.setdefault(("conversations", level, system), Tally())
                    measure(tally, ranker, tasks_of(conversation))
            if options.together:
                tasks = [task for conversation in chosen for task in tasks_of(conversation)]
                for level, system, ranker in conversations_rankers(chosen, folder / "all"):
                    measure(tallies.setdefault(("together", level, system), Tally()), ranker, tasks)
        else:
            print("no --data: the conversations are skipped", file=sys.stderr)
        if (NOTES / "questions.jsonl").exists():
            notes, tasks = notes_tasks()
            for level, system, ranker in notes_rankers(notes, folder):
                measure(tallies.setdefault(("notes", level, system), Tally()), ranker, tasks)
    report = Report("retrieval", "Evidence found, in percent (categories 1-4 together, then each)")
    for (corpus, level, system), tally in tallies.items():
        _add(report, corpus, level, system, tally)
    for peer, (_, package) in PEERS.items():
        reason = missing(package)
        if reason:
            report.facts[f"{peer} skipped"] = reason
    report.finish(options.output)
    if options.plot:
        from retrieval_plot import plot

        plot(report.rows, options.plot)
    return 0


def _add(report: Report, corpus: str, level: str, system: str, tally: Tally) -> None:
    answerable = (1, 2, 3, 4)
    row: dict[str, object] = {"corpus": corpus, "level": level, "system": system}
    for name in ("r@5", "r@10", "r@20", "mrr", "t1000"):
        row[name] = tally.mean(name, answerable)
    if corpus != "notes":
        for category, label in CATEGORIES.items():
            row[f"{label} r@10"] = tally.mean("r@10", [category])
    row["p50 ms"] = round(percentile(tally.milliseconds, 0.5), 2)
    row["p95 ms"] = round(percentile(tally.milliseconds, 0.95), 2)
    row["questions"] = len(tally.rows)
    report.add(**row)


if __name__ == "__main__":
    sys.exit(main())
