"""Search on PostgreSQL answers exactly as the local store does, whatever was written before."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

psycopg = pytest.importorskip("psycopg", reason="the extra postgres is not installed")

from rlm_mem import Memory  # noqa: E402 - below what may skip the module
from rlm_mem.chunk import format_time  # noqa: E402
from rlm_mem.errors import InvalidLink  # noqa: E402
from rlm_mem.ingest.remember import remember  # noqa: E402
from rlm_mem.search import search  # noqa: E402
from rlm_mem.store.core import selection  # noqa: E402
from rlm_mem.store.core.chunk_store import ChunkStore  # noqa: E402
from rlm_mem.store.core.lookup import CandidateSource, Filters  # noqa: E402
from rlm_mem.store.postgres import (  # noqa: E402
    lookup,
    parts,
    recount as recount_module,
    term_lists,
    terms,
)
from rlm_mem.store.postgres.lookup import PostgresSource, SearchCache  # noqa: E402
from rlm_mem.store.postgres.parts import PART  # noqa: E402
from rlm_mem.store.postgres.recount import Recount, recount  # noqa: E402
from rlm_mem.store.postgres.schema import namespace_key  # noqa: E402

NAMES = ["Ann", "Bob", "Cem", "Dóra"]
WORDS = [
    "walnut", "harbour", "violin", "Lisbon", "deadline", "postgres", "garden", "festival", "bicycle", "thunder",
    "ticket", "library", "soup", "marathon", "lantern", "orchid", "budget", "ferry", "quilt", "compass",
]  # fmt: skip
TAGS = ["red", "green", "blue"]
TYPES = ["note", "fact", "decision"]
START = datetime(2026, 1, 5, 9, tzinfo=UTC)


class Setback(Exception):
    """Raised inside a batch on purpose."""


class Both:
    """The same store twice, one in files and one in PostgreSQL, written alike at the same moments."""

    def __init__(self, folder: Path, dsn: str, rng: random.Random, namespace: str = "default") -> None:
        self.now = START
        self.rng = rng
        self.local = ChunkStore(folder / "memory", namespace=namespace, clock=lambda: self.now)
        self.far = ChunkStore(dsn, namespace=namespace, clock=lambda: self.now)
        self.stores = (self.local, self.far)
        self.active: list[str] = []
        self.archived: list[str] = []
        self._made = 0

    def close(self) -> None:
        for store in self.stores:
            store.close()

    # --- writing ----------------------------------------------------------------------------------------

    def text(self) -> str:
        """Dialogue, prose or nothing to find at all; low words are common, high ones rare."""
        rng = self.rng
        if rng.random() < 0.05:
            return "…!"
        lines = []
        for _ in range(rng.randrange(1, 6)):
            words = [
                WORDS[min(int(rng.expovariate(0.2)), len(WORDS) - 1)] for _ in range(rng.randrange(1, 9))
            ]
            sentence = " ".join(words).capitalize() + rng.choice([".", "?", " yesterday.", " in Paris."])
            lines.append(f"{rng.choice(NAMES)}: {sentence}" if rng.random() < 0.7 else sentence)
        return "\n".join(lines)

    def create(self) -> None:
        rng = self.rng
        self._made += 1
        values: dict[str, Any] = {
            "chunk_type": rng.choice(TYPES),
            "conversation_id": rng.choice([None, "c1", "c1", "c2", "c3", f"new{self._made}"]),
            "tags": rng.sample(TAGS, rng.randrange(3)),
            "chunk_id": f"chunk-2026-01-05-{self._made:08x}",
        }
        day = START - timedelta(days=rng.randrange(40))
        if rng.random() < 0.5:
            values["occurred_at"] = day.isoformat()
        if rng.random() < 0.2:
            values["valid_from"] = day.isoformat()
        if rng.random() < 0.2:
            values["valid_to"] = (day + timedelta(days=rng.randrange(1, 30))).isoformat()
        if rng.random() < 0.2:
            values |= rng.choice(
                [{"trust": "quarantined"}, {"expires": self.now + timedelta(hours=rng.randrange(1, 90))}]
            )
        content = self.text() + f" {self._made}"
        for store in self.stores:
            store.create_chunk(content, **values)
        self.active.append(values["chunk_id"])

    def change(self) -> None:
        rng = self.rng
        chunk_id = rng.choice(self.active)
        kind = rng.randrange(5)
        if kind == 0:
            values: dict[str, Any] = {"content": self.text() + f" {rng.random()}"}
        elif kind == 1:
            values = {"tags": rng.sample(TAGS, rng.randrange(3))}
        elif kind == 2:
            values = {"metadata": {"conversation_id": rng.choice(["c1", "c2", "moved"])}}
        elif kind == 3:
            values = {"metadata": {"superseded_by": rng.choice(self.active)}}
        else:
            values = {"chunk_type": rng.choice(TYPES), "metadata": {"occurred_at": START.isoformat()}}
        for store in self.stores:
            with suppress(InvalidLink):  # it is itself, or replaces the one that would replace it
                store.update_chunk(chunk_id, **values)

    def archive(self) -> None:
        chunk_id = self.active.pop(self.rng.randrange(len(self.active)))
        for store in self.stores:
            assert store.delete_chunk(chunk_id)
        self.archived.append(chunk_id)

    def restore(self) -> None:
        chunk_id = self.archived.pop(self.rng.randrange(len(self.archived)))
        for store in self.stores:
            assert store.restore_chunk(chunk_id) is not None
        self.active.append(chunk_id)

    def erase(self) -> None:
        pile = self.rng.choice([pile for pile in (self.active, self.archived) if pile])
        chunk_id = pile.pop(self.rng.randrange(len(pile)))
        for store in self.stores:
            assert store.delete_chunk(chunk_id, permanent=True)

    def step(self) -> None:
        """One write of any kind, at the same moment on both."""
        self.now += timedelta(seconds=self.rng.choice([0, 1, 3600]))
        kind = self.rng.random()
        if kind < 0.55 or len(self.active) < 3:
            self.create()
        elif kind < 0.75:
            self.change()
        elif kind < 0.85:
            self.archive()
        elif kind < 0.93 and self.archived:
            self.restore()
        else:
            self.erase()

    def steps(self, count: int, *, fails: bool = False) -> None:
        """Several writes in one batch, which may come to nothing."""
        active, archived, made, state = self.active[:], self.archived[:], self._made, self.rng.getstate()
        with suppress(Setback), self.local.batch(), self.far.batch():
            for _ in range(count):
                self.step()
            if fails:
                raise Setback
        if fails:
            self.active, self.archived, self._made = active, archived, made
            self.rng.setstate(state)
            self.rng.random()

    def wander(self, count: int) -> None:
        """Writes of every kind, alone and in batches."""
        while count > 0:
            if self.rng.random() < 0.2:
                many = self.rng.randrange(2, 12)
                self.steps(many, fails=self.rng.random() < 0.3)
                count -= many
            else:
                self.step()
                count -= 1

    # --- reading ----------------------------------------------------------------------------------------

    def sources(self) -> tuple[Named, Named]:
        """What search would ask now."""
        return tuple(Named(store) for store in self.stores)  # type: ignore[return-value]


class Named:
    """A source whose answers name chunks by id and conversations by a member, so that two of them compare."""

    def __init__(self, store: ChunkStore) -> None:
        self.source: CandidateSource = store.candidate_source()
        docs = self.source.newest(100_000, Filters())
        rows, _ = self.source.rows(docs, Filters())
        self.ids = dict(zip(rows.doc, rows.chunk_id, strict=True))
        self.docs = {chunk_id: doc for doc, chunk_id in self.ids.items()}
        self.conversation = dict(zip(rows.chunk_id, rows.conversation, strict=True))

    def named(self, docs: np.ndarray) -> list[str]:
        return [self.ids[int(doc)] for doc in docs]

    def docs_of(self, ids: list[str]) -> np.ndarray:
        return np.array([self.docs[chunk_id] for chunk_id in ids], np.int64)

    def terms(self, words: list[str]) -> np.ndarray:
        return self.source.term_ids(words)

    def statistics(self, words: list[str]) -> dict[str, Any]:
        figures = self.source.statistics(self.terms(words))
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name in figures.__slots__
            for value in [getattr(figures, name)]
        }

    def best(self, words: list[str], weights: list[float], limit: int, filters: Filters) -> list[Any]:
        docs, scores = self.source.best(self.terms(words), np.array(weights), limit, filters)
        return list(zip(self.named(docs), scores.tolist(), strict=True))

    def around(self, ids: list[str], alone: list[str], near: int, reach: int) -> Any:
        hood = self.source.around(self.docs_of(ids), self.docs_of(alone), near, reach)
        names = self.named(hood.doc)
        runs: dict[int, list[str]] = {}
        for name, run in zip(names, hood.run.tolist(), strict=True):
            runs.setdefault(run, []).append(name)
        each = dict(
            zip(names, zip(hood.near.tolist(), hood.segments_before.tolist(), strict=True), strict=True)
        )
        return sorted(map(tuple, runs.values())), each

    def rows(self, ids: list[str], words: list[str]) -> Any:
        rows, decoded = self.source.rows(self.docs_of(ids), Filters())
        spelled = dict(zip(self.terms(words).tolist(), words, strict=True))
        names = self.source.author_names(np.unique(decoded.author[decoded.author >= 0]))
        columns = (
            rows.chunk_id,
            rows.at,
            rows.type,
            rows.confidence,
            rows.valid_from,
            rows.valid_to,
            rows.superseded_by,
        )
        segments = [
            (
                *(getattr(decoded, name)[at].item() for name in ("start", "end", "flags", "length")),
                names.get(int(decoded.author[at])),
                sorted(spelled.get(t, "?") for t in decoded.terms[slice(*decoded.term_start[at : at + 2])].tolist()),
            )
            for at in range(len(decoded.start))
        ]  # fmt: skip
        return [list(column) for column in columns], decoded.chunk_start.tolist(), segments

    def conversation_terms(self, members: list[str], words: list[str]) -> Any:
        numbers = np.array([self.conversation[member] for member in members], np.int64)
        order = np.argsort(numbers)
        tf, length = self.source.conversation_terms(numbers[order], self.terms(words))
        back = np.argsort(order)
        return tf[back].tolist(), length[back].tolist()


@pytest.fixture
def both(tmp_path: Path, dsn: str, request: pytest.FixtureRequest) -> Iterator[Both]:
    seed = getattr(request, "param", 7)
    if seed is None:
        seed = 0 if os.environ.get("CI") else random.randrange(1_000_000)
        print(f"the history of the seed {seed}")
    made = Both(tmp_path, dsn, random.Random(seed))
    yield made
    made.close()


def vocabulary() -> list[str]:
    from rlm_mem.text.analysis import get_analyser

    analyser = get_analyser("english")
    terms = [term for word in WORDS for term in analyser.terms(word)]
    return [*terms, "yesterday", "pari", "author:Ann", "author:Nobody", "absent", "\0", "\ud800"]


def some_filters(both: Both) -> list[Filters]:
    """One of each kind, and several together."""
    return [
        Filters(),
        Filters(include_superseded=True),
        Filters(chunk_type="fact"),
        Filters(chunk_type=("note", "decision")),
        Filters(conversation_id="c1"),
        Filters(conversation_id="nowhere"),
        Filters(conversation_id="\0"),
        Filters(tags_all=("red",)),
        Filters(tags_all=("blue", "red")),
        Filters(tags_any=("green", "red", "\ud800")),
        Filters(start="2025-12-20"),
        Filters(end="2025-12-28"),
        Filters(start="2025-12-20", end="2025-12-28T10:00:00Z"),
        Filters(speaker="ann "),
        Filters(speaker="DÓRA", chunk_type="note"),
        Filters(speaker="Nobody"),
        Filters(valid_at=(START - timedelta(days=9)).timestamp()),
        Filters(valid_at=both.now.timestamp(), tags_any=("red",), speaker="Bob", start="2025-12-01"),
        Filters(valid_at=-1e15),
        Filters(valid_at=1e15),
        Filters(shown_at=format_time(both.now)),
        Filters(shown_at=format_time(both.now), conversation_id="c1", speaker="Ann"),
        Filters(shown_at=format_time(both.now), tags_any=("red", "blue")),
    ]


def compare(both: Both) -> None:
    """Every question that search can ask has the same answer from both."""
    rng = both.rng
    local, far = both.sources()
    words = vocabulary()
    assert sorted(local.ids.values()) == sorted(far.ids.values()) == sorted(both.active)
    assert set(local.source.authors()) == set(far.source.authors())
    assert local.source.term_counts(words) == far.source.term_counts(words)
    assert local.statistics(words) == far.statistics(words)
    for filters in some_filters(both):
        for limit in (3, 1000):
            asked = rng.sample(words, rng.randrange(1, 8))
            weights = [rng.choice([1.0, 0.6, 0.4, 0.0]) for _ in asked]
            assert local.best(asked, weights, limit, filters) == far.best(asked, weights, limit, filters)
        day = (START - timedelta(days=rng.randrange(40))).timestamp()
        for limit in (2, 1000):
            assert local.named(local.source.newest(limit, filters)) == far.named(
                far.source.newest(limit, filters)
            )
            assert local.named(local.source.in_period(day, day + 10 * 86400, limit, filters)) == far.named(
                far.source.in_period(day, day + 10 * 86400, limit, filters)
            )
        ids = rng.sample(both.active, min(20, len(both.active)))
        rows = [side.source.rows(side.docs_of(ids), filters)[0] for side in (local, far)]
        assert list(zip(rows[0].chunk_id, rows[0].accepted, strict=True)) == list(
            zip(rows[1].chunk_id, rows[1].accepted, strict=True)
        )
    for near, reach in ((3, 6), (0, 1), (2, 30)):
        ids = rng.sample(both.active, min(rng.randrange(6), len(both.active)))
        alone = rng.sample(both.active, min(rng.randrange(6), len(both.active)))
        assert local.around(ids, alone, near, reach) == far.around(ids, alone, near, reach)
    assert local.rows(both.active, words) == far.rows(both.active, words)
    members = [member for member in both.active if local.conversation[member] >= 0]
    one_each = list({local.conversation[member]: member for member in members}.values())
    assert local.conversation_terms(one_each, words) == far.conversation_terms(one_each, words)
    followed = [
        sorted(side.named(side.source.successors(side.docs_of(both.active)))) for side in (local, far)
    ]
    assert followed[0] == followed[1]


QUESTIONS = [
    "What did Ann say about the walnut and the harbour?",
    "When was the festival in Lisbon?",
    "marathon thunder",
    "walnutt quilt",
    "What happened on 2025-12-20?",
    "which instruments does Bob play?",
    "",
]


def compare_hits(both: Both) -> None:
    """Whole searches give the same hits with the same scores, to the last bit."""
    for question in QUESTIONS:
        for by in ("chunk", "segment", "conversation"):
            for filters in (None, {"chunk_type": "fact"}, {"tags_any": ["red"], "speaker": "Ann"}):
                found = [search(store, question, by=by, filters=filters, limit=20) for store in both.stores]
                assert found[0] == found[1], question
    as_of = [search(store, "walnut harbour", as_of="2025-12-25", explain=True) for store in both.stores]
    assert as_of[0] == as_of[1]


@pytest.mark.early
@pytest.mark.parametrize(
    "both",
    [
        pytest.param(None, id="another in each run"),
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(5)),
    ],
    indirect=True,
)
def test_both_backends_answer_alike_after_any_history(both: Both) -> None:
    for _ in range(2):
        both.wander(75)
        compare(both)
        compare_hits(both)


def test_answers_are_alike_where_every_list_is_long_and_every_filter_wide(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name, bound in (
        (parts, "PART", 4), (lookup, "PART", 1), (term_lists, "_LOOKUP_COST", 4), (term_lists, "_READ_AHEAD", 30),
        (term_lists, "_MIN_CACHED_ENTRIES", 2), (lookup, "_MAX_LIST_BYTES", 2_000),
        (term_lists, "_DOCS_PER_VALUE", 9), (lookup, "_READ_COST", 0),
        (lookup, "_MAX_LISTED", 3), (lookup, "_CANDIDATES_FACTOR", 1), (lookup, "_MAX_TRIED", 12),
        (selection, "_FEW", 5), (selection, "_SHORT", 0), (terms, "_MAX_BYTES", 900),
    ):  # fmt: skip
        assert hasattr(module, name)
        monkeypatch.setattr(module, name, bound)
    for _ in range(3):
        both.wander(60)
        compare(both)
        for words in (["walnut", "compass", "quilt"], ["harbour", "orchid"], ["lisbon", "violin", "walnut"]):
            found = [
                side.best(words, [1.0, 0.2, 0.01][: len(words)], 1, Filters()) for side in both.sources()
            ]
            assert found[0] == found[1]
    compare_hits(both)


def test_the_newest_of_many_equal_matches_come_first(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_READ_COST", 0)
    for store in both.stores:
        with store.batch():
            for number in range(60):
                store.create_chunk(
                    "A walnut in the garden." if number % 10 else "Two walnuts, one walnut tree.",
                    TYPES[number % 3],
                    occurred_at=START + timedelta(minutes=number * 37 % 60),
                    chunk_id=f"chunk-2026-01-05-{number:08x}",
                )
    word = vocabulary()[0]
    for limit in (1, 7, 20, 70):
        for filters, every in ((Filters(), 60), (Filters(chunk_type="fact"), 20)):
            local, far = (side.best([word], [1.0], limit, filters) for side in both.sources())
            assert local == far
            assert len(far) == min(limit, every)


def test_a_row_of_single_turns_among_long_chunks_is_walked_far_enough(both: Both) -> None:
    for store in both.stores:
        with store.batch():
            for number in range(8):
                long = "\n".join(f"Ann: Sentence {line} about the harbour." for line in range(40))
                store.create_chunk(f"{long} {number}", chunk_id=f"chunk-2026-01-05-{number:08x}")
            for number in range(30):
                store.create_chunk(
                    f"Bob: A walnut, {number}.",
                    conversation_id="c",
                    chunk_id=f"chunk-2026-01-05-a{number:07x}",
                )
    local, far = both.sources()
    for middle in (0, 3, 15, 28):
        ids = [f"chunk-2026-01-05-a{middle:07x}"]
        assert local.around(ids, [], 3, 6) == far.around(ids, [], 3, 6)
        assert len(far.around(ids, [], 3, 6)[1]) > 6
    assert search(both.local, "walnut", by="segment") == search(both.far, "walnut", by="segment")


# --- figures ------------------------------------------------------------------------------------------------


def recounted(dsn: str) -> Recount:
    """What a recount of the default namespace finds wrong."""
    with psycopg.connect(dsn) as connection:
        return recount(connection, namespace_key("default"))


@pytest.mark.parametrize("both", [11], indirect=True)
def test_figures_equal_a_recount_after_every_kind_of_write(both: Both, dsn: str) -> None:
    for _ in range(12):
        both.wander(10)
        assert recounted(dsn).sound


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("UPDATE rlm_mem.terms SET df = df + 1 WHERE text = 'walnut'", "terms"),
        ("UPDATE rlm_mem.terms SET segment_df = 0 WHERE text = 'walnut'", "terms"),
        ("UPDATE rlm_mem.terms SET conversation_df = conversation_df - 1 WHERE text = 'author:Ann'", "terms"),
        ("UPDATE rlm_mem.conversations SET chunks = chunks + 1 WHERE id = 'c1'", "conversations"),
        ("UPDATE rlm_mem.conversations SET length = 0 WHERE id = 'c1'", "conversations"),
        ("UPDATE rlm_mem.namespaces SET segments = segments + 1", "figures"),
        ("UPDATE rlm_mem.namespaces SET length = length - 1", "figures"),
        ("UPDATE rlm_mem.namespaces SET conversations = 1", "figures"),
        ("UPDATE rlm_mem.namespaces SET loose = loose + 1", "figures"),
        ("UPDATE rlm_mem.chunks SET length = length + 1 WHERE doc % 2 = 0 AND status = 0", "chunks"),
        ("UPDATE rlm_mem.chunks SET segment_count = 99 WHERE doc % 2 = 0 AND status = 0", "chunks"),
        ("DELETE FROM rlm_mem.postings p USING rlm_mem.terms t"
         " WHERE t.ns = p.ns AND t.term = p.term AND t.text = 'walnut'", "postings"),
        ("UPDATE rlm_mem.postings SET first = 2000000000 WHERE term = 1 AND first = 0", "postings"),
        ("UPDATE rlm_mem.postings SET entries = set_byte(entries, 4, get_byte(entries, 4) # 1) WHERE term = 1",
         "postings"),
        ("INSERT INTO rlm_mem.postings SELECT ns, 900000, 0, entries FROM rlm_mem.postings"
         " WHERE term = 1 AND first = 0", "postings"),
        ("UPDATE rlm_mem.postings SET entries = 'abc' WHERE term = 1 AND first = 0", "postings"),
        ("UPDATE rlm_mem.bodies SET segments = 'abc' WHERE doc = 17", "chunks"),
        ("DELETE FROM rlm_mem.conversation_terms WHERE conversation = 1", "words"),
        ("INSERT INTO rlm_mem.conversation_terms SELECT ns, 900000, 0, entries FROM rlm_mem.conversation_terms"
         " WHERE conversation = 1 AND first = 0", "words"),
        ("DELETE FROM rlm_mem.terms WHERE text = 'walnut'", "unknown_terms"),
    ],
)  # fmt: skip
def test_a_recount_finds_any_wrong_figure(dsn: str, statement: str, name: str) -> None:
    with ChunkStore(dsn) as store, store.batch():
        for number in range(100):
            content = f"Ann: A walnut and a harbour, {number}.\nBob: Which violin number {number % 7}?"
            store.create_chunk(content, conversation_id=f"c{number % 3}" if number % 4 else None)
    assert recounted(dsn).sound
    with psycopg.connect(dsn, autocommit=True) as connection:
        assert connection.execute(statement).rowcount > 0
    found = recounted(dsn)
    wrong = [each.name for each in fields(Recount) if getattr(found, each.name)]
    assert wrong == [name] or ("segments = 'abc'" in statement and name in wrong)


@pytest.mark.parametrize("both", [5], indirect=True)
def test_a_recount_in_many_passes_finds_the_same(
    both: Both, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    both.wander(40)
    with psycopg.connect(dsn, autocommit=True) as connection:
        broken = "UPDATE rlm_mem.postings SET entries = set_byte(entries, 4, 77) WHERE term % 3 = 0"
        assert connection.execute(broken).rowcount > 0
        connection.execute("UPDATE rlm_mem.namespaces SET segments = 0, loose = 0")
    at_once = recounted(dsn)
    monkeypatch.setattr(recount_module, "_MAX_POSTINGS", 30)
    monkeypatch.setattr(recount_module, "_LOT", 5)
    assert recounted(dsn) == at_once
    assert at_once.postings > 0
    assert len(at_once.figures) == 2


def test_long_lists_are_cut_into_short_parts_and_put_together_again(dsn: str) -> None:
    with ChunkStore(dsn) as store:
        with store.batch():
            chunks = [store.create_chunk(f"A walnut, number n{number}.") for number in range(300)]
        for chunk in chunks[:250:3]:
            store.delete_chunk(chunk.id)
        for chunk in reversed(chunks[:250:6]):
            store.restore_chunk(chunk.id)
        with psycopg.connect(dsn) as connection:
            sizes = connection.execute(
                "SELECT length(entries) / 12 FROM rlm_mem.postings p JOIN rlm_mem.terms t USING (ns, term)"
                " WHERE t.text = 'walnut'"
            ).fetchall()
        left = 300 - len(chunks[:250:3]) + len(chunks[:250:6])
        assert sum(size for (size,) in sizes) == left
        assert len(sizes) > 4
        assert all(0 < size <= PART for (size,) in sizes)
        assert len(search(store, "walnut", limit=1000)) == left
    assert recounted(dsn).sound


def test_a_name_with_characters_that_postgresql_cannot_hold_is_kept_as_it_is(both: Both) -> None:
    for store in both.stores:
        store.create_chunk("[10:30] X\0Y\x01: A walnut.", chunk_id="chunk-2026-01-05-0000000a")
        store.create_chunk("[10:31] X\x01\x02Y: A walnut.", chunk_id="chunk-2026-01-05-0000000b")
        store.create_chunk("[10:32] Ann: Another walnut.", chunk_id="chunk-2026-01-05-0000000c")
    found = [search(store, "walnut") for store in both.stores]
    assert found[0] == found[1]
    assert "X\0Y\x01" in {hit.author for hit in found[1]}
    for speaker in ("x\0y\x01", "x\x01\x02y", "\ud800"):
        spoken = [search(store, "walnut", filters={"speaker": speaker}) for store in both.stores]
        assert spoken[0] == spoken[1]


def test_searches_inside_an_open_batch_see_its_writes(dsn: str) -> None:
    with ChunkStore(dsn) as store, suppress(Setback), store.batch():
        store.create_chunk("Ann: The walnut is in the garden.", conversation_id="c1")
        assert [hit.author for hit in search(store, "walnut")] == ["Ann"]
        store.create_chunk("Bob: A second walnut.", conversation_id="c1")
        assert len(search(store, "walnut")) == 2
        raise Setback
    with ChunkStore(dsn) as store:
        assert search(store, "walnut") == []
    assert recounted(dsn).sound


def test_another_connection_sees_every_write_at_once(dsn: str) -> None:
    with ChunkStore(dsn) as writer, ChunkStore(dsn) as reader:
        assert search(reader, "walnut") == []
        chunk = writer.create_chunk("The walnut is in the garden.")
        assert [hit.chunk_id for hit in search(reader, "walnut")] == [chunk.id]
        writer.delete_chunk(chunk.id)
        assert search(reader, "walnut") == []


def test_searches_remember_who_speaks_until_something_is_written(dsn: str) -> None:
    remembered = SearchCache()

    def authors() -> set[str]:
        with psycopg.connect(dsn) as connection:

            def rows(statement: str, values: Any) -> list[Any]:
                return connection.cursor(binary=True).execute(statement, values).fetchall()

            return set(PostgresSource(rows, namespace_key("default"), remembered).authors())

    with ChunkStore(dsn) as store:
        assert authors() == set()
        chunk = store.create_chunk("Ann: A walnut.")
        assert authors() == {"Ann"}
        known = remembered.speakers.get(None)
        assert authors() == {"Ann"}
        assert known and remembered.speakers.get(None) is known
        store.delete_chunk(chunk.id)
        assert authors() == set()
        store.restore_chunk(chunk.id)
        assert authors() == {"Ann"}


def test_searches_beside_a_writer_never_fail(dsn: str) -> None:
    with ChunkStore(dsn) as writer, ChunkStore(dsn) as reader:
        with writer.batch():
            kept = [
                writer.create_chunk(f"Ann: Walnut {number} of the garden.", conversation_id="c").id
                for number in range(30)
            ]

        def write() -> None:
            for number in range(12):
                chunk = writer.create_chunk(f"Bob: Another walnut, {number}.", conversation_id="c")
                writer.update_chunk(chunk.id, content=f"Cem: Not that walnut, {number}.")
                writer.delete_chunk(chunk.id, permanent=bool(number % 2))

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            while not writing.done():
                found = {hit.chunk_id for hit in search(reader, "Which walnut of the garden?", limit=1000)}
                assert set(kept) <= found
            writing.result()
        assert {hit.chunk_id for hit in search(reader, "walnut", limit=1000)} == set(kept)
    assert recounted(dsn).sound


def test_namespaces_share_neither_hits_nor_figures(dsn: str) -> None:
    with ChunkStore(dsn, namespace="one") as one, ChunkStore(dsn, namespace="two") as two:
        one.create_chunk("Ann: The walnut is in the garden.", conversation_id="c")
        for number in range(5):
            two.create_chunk(f"Bob: Another walnut, {number}.", conversation_id="c")
        assert [hit.author for hit in search(one, "walnut")] == ["Ann"]
        source = one.candidate_source()
        assert source.term_counts(["walnut"]) == {"walnut": 1}
        assert set(source.authors()) == {"Ann"}
        assert source.statistics(source.term_ids(["walnut"])).chunks == 1


def round_trips(opened: Sequence[Any], record: Path, work: Callable[[], object]) -> int:
    """How often a program waits for an answer of the server while it does some work."""
    with record.open("wb") as file:
        for connection in opened:
            connection.pgconn.trace(file.fileno())
        work()
        for connection in opened:
            connection.pgconn.untrace()
    lines = [line.split("\t") for line in record.read_text(errors="replace").splitlines()]
    # The last message of each, however many pieces the statements before it were sent in.
    return sum(line[1] == "F" and line[3].split()[0] in ("Query", "Sync") for line in lines if len(line) > 3)


def noted_connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The connections that are opened from now on; nobody asks again where a namespace is, however busy the machine."""
    monkeypatch.setattr("rlm_mem.store.postgres.routes._CACHE_SECONDS", 3600.0)
    opened: list[Any] = []
    connect = psycopg.connect

    def noted(*given: Any, **options: Any) -> Any:
        opened.append(connect(*given, **options))
        return opened[-1]

    monkeypatch.setattr(psycopg, "connect", noted)
    monkeypatch.setattr("tests.postgres.MOST_KEPT", 0)
    return opened


def test_a_remember_takes_at_most_five_round_trips(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = noted_connections(monkeypatch)
    with ChunkStore(dsn) as store:
        number = 0

        def note(**options: Any) -> None:
            text = f"Note {number}: the supplier moved the delivery of the brackets to week {number}."
            remember(store, text, **options)

        with store.batch():
            for _ in range(40):  # a tag of many chunks needs one more answer
                number += 1
                note(tags=["parts"])
        for case, most, options in (
            ("in a conversation", 4, {"conversation_id": "here", "tags": ["parts"]}),
            ("alone", 5, {"tags": ["parts", "supply"]}),  # what came before it is read, too
            ("with a time", 5, {"occurred_at": "2026-01-05", "chunk_type": "fact"}),
        ):
            for _ in range(3):
                number += 1
                taken = round_trips(opened, tmp_path / str(number), lambda options=options: note(**options))
                assert 0 < taken <= most, (case, number)
        again = round_trips(opened, tmp_path / "again", lambda: note(**options))
        assert 0 < again <= 9  # the repetition is recorded in a transaction of its own


def test_long_lists_are_read_once_until_something_is_written(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_lists, "_MIN_CACHED_ENTRIES", 10)
    asked: list[str] = []
    plain = psycopg.Cursor.execute

    def counted(cursor: Any, query: Any, *rest: Any, **options: Any) -> Any:
        asked.append(str(query))
        return plain(cursor, query, *rest, **options)

    with ChunkStore(dsn) as store, ChunkStore(dsn) as other:
        with store.batch():
            for number in range(40):
                store.create_chunk(f"Ann: A walnut in garden {number}.")
        monkeypatch.setattr(psycopg.Cursor, "execute", counted)

        def found() -> tuple[list[str], bool]:
            """Hits, and whether lists were read for them."""
            asked.clear()
            hits = [hit.chunk_id for hit in search(store, "walnut garden", limit=100)]
            return hits, any("string_agg" in query for query in asked)

        hits, read = found()
        assert len(hits) == 40
        assert read
        assert found() == (hits, False)
        assert len(asked) <= 3, "what the same search asked before is known, too"
        new = other.create_chunk("Bob: One more walnut of the garden.").id
        more, read = found()
        assert read
        assert set(more) == {*hits, new}
        other.delete_chunk(hits[0])
        assert set(found()[0]) == {*hits[1:], new}
        with store.batch():  # what a batch sees may be undone: nothing is kept of it
            inside = store.create_chunk("Cem: A walnut for the garden of another.").id
            assert inside in found()[0]
        assert inside in found()[0]


def test_looking_for_what_is_replaced_takes_one_more_round_trip(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = noted_connections(monkeypatch)
    with Memory.open(dsn) as memory:
        for number in range(4):
            memory.remember(f"The delivery of the steel{number} brackets is in week {number}.")
    with Memory.open(dsn) as memory:  # which has not read these memories
        memory.remember("Ida eats soup.", conversation_id="here")
        for text, most in (
            ("The delivery of the steel1 brackets is in week 1, as agreed.", 5),
            (
                "The delivery of the steel1 brackets is in week 1, as agreed again.",
                4,
            ),  # both are known by now
            ("The delivery of the steel2 brackets is in week 2, in one lot.", 5),
        ):
            work = partial(memory.remember, text, conversation_id="here")
            assert 0 < round_trips(opened, tmp_path / "trips", work) <= most, text
        assert memory.remember("The delivery of the steel2 brackets is in week 30 now.").replaced


def test_a_search_takes_few_statements(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with ChunkStore(dsn) as store:
        with store.batch():
            for number in range(60):
                store.create_chunk(f"Ann: A walnut in garden {number}.", conversation_id=f"c{number % 5}")
        asked: list[str] = []
        plain = psycopg.Cursor.execute

        def counted(cursor: Any, query: Any, *rest: Any, **options: Any) -> Any:
            asked.append(str(query))
            return plain(cursor, query, *rest, **options)

        monkeypatch.setattr(psycopg.Cursor, "execute", counted)
        assert search(store, "What did Ann say about the walnut in the garden?")
        # Three of them read the turns beside the first hit, and one may look up again where the namespace is.
        assert 0 < len(asked) <= 14
