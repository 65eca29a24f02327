"""The first stage: what the postings answer equals a plain count over all chunks, whatever was written before."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
from index_rows import NS, IndexRows, Made, Spoken

from rlm_mem.search.candidates import gather
from rlm_mem.search.query import WORD, Query
from rlm_mem.store.core.lookup import BM25_B, BM25_K1, FAR, CandidateSource, Filters
from rlm_mem.store.local.postings import PostingsIndex

WORDS = [f"w{number}" for number in range(30)]
AUTHORS = [None, "Ann", "Bob", "Cem"]
EVERYTHING = Filters(include_superseded=True)


@pytest.fixture
def rows(tmp_path: Path) -> IndexRows:
    return IndexRows(tmp_path)


def made_up(rng: random.Random, doc: int) -> Made:
    """A chunk with a few segments; low-numbered words are common, high-numbered ones rare."""
    segments = [
        Spoken(
            [WORDS[min(int(rng.expovariate(0.25)), 29)] for _ in range(rng.randrange(0, 8))],
            rng.choice(AUTHORS),
        )
        for _ in range(rng.randrange(0, 5))
    ]
    return Made(
        doc=doc,
        conversation=rng.choice([None, 1, 2, 3, 4, 5]),
        at=float(rng.randrange(50)),
        segments=segments,
        type=rng.choice(["note", "fact", "decision"]),
        superseded=rng.random() < 0.1,
        tags=rng.sample(["red", "green", "blue"], rng.randrange(3)),
    )


def wander(rows: IndexRows, index: PostingsIndex, rng: random.Random, steps: int) -> None:
    """Writes of every kind, with searches and merges in between."""
    for _ in range(steps):
        kind = rng.random()
        known = list(rows.chunks)
        if kind < 0.6 or not known:
            rows.put(made_up(rng, len(rows.chunks) + rng.randrange(1000)))
        elif kind < 0.75:
            rows.put(made_up(rng, rng.choice(known)))
        elif kind < 0.83:
            rows.drop(rng.choice(known))
        elif kind < 0.9:
            rows.archive(rng.choice(known))
        elif kind < 0.95:
            index.source(rows.connection)
        else:
            index.merge(rows.connection)


def expected_scores(
    rows: IndexRows, words: list[str], weights: list[float], filters: Filters
) -> dict[int, float]:
    """BM25 of every chunk, the slow and plain way."""
    chunks = rows.chunks.values()
    count = len(chunks)
    average = sum(len(made.words) for made in chunks) / max(count, 1)
    holders = [sum(word in made.words for made in chunks) for word in words]
    scores = {}
    for made in chunks:
        if filters.chunk_type and made.type != filters.chunk_type:
            continue
        if not set(filters.tags_all) <= set(made.tags):
            continue
        if filters.tags_any and not set(filters.tags_any) & set(made.tags):
            continue
        if filters.speaker and filters.speaker not in {segment.author for segment in made.segments}:
            continue
        score = 0.0
        for word, weight, df in zip(words, weights, holders, strict=True):
            tf = made.words.count(word)
            if tf:
                idf = math.log1p((count - df + 0.5) / (df + 0.5))
                norm = BM25_K1 * (1 - BM25_B + BM25_B * len(made.words) / average)
                score += weight * idf * tf * (BM25_K1 + 1) / (tf + norm)
        if score:
            scores[made.doc] = score
    return scores


def check_statistics(rows: IndexRows, source: CandidateSource) -> None:
    chunks = list(rows.chunks.values())
    figures = source.statistics(source.term_ids(WORDS))
    assert figures.chunks == len(chunks)
    assert figures.segments == sum(len(made.segments) for made in chunks)
    assert figures.total_length == sum(len(made.words) for made in chunks)
    assert figures.chunk_df.tolist() == [sum(w in made.words for made in chunks) for w in WORDS]
    assert figures.segment_df.tolist() == [
        sum(w in segment.words for made in chunks for segment in made.segments) for w in WORDS
    ]

    def conversations(with_word: str | None) -> int:
        holders = [made for made in chunks if with_word is None or with_word in made.words]
        named = {made.conversation for made in holders if made.conversation is not None}
        return len(named) + sum(made.conversation is None for made in holders)

    assert figures.conversations == conversations(None)
    assert figures.conversation_df.tolist() == [conversations(w) for w in WORDS]
    tf, length = source.conversation_terms(np.array([1, 2, 3, 4, 5]), source.term_ids(WORDS))
    for number in range(1, 6):
        words = [w for made in chunks if made.conversation == number for w in made.words]
        assert tf[number - 1].tolist() == [words.count(w) for w in WORDS]
        assert length[number - 1] == len(words)
    assert set(source.authors()) == {s.author for made in chunks for s in made.segments if s.author}
    assert source.term_counts(WORDS) == {
        w: n for w in WORDS if (n := sum(w in made.words for made in chunks))
    }


def check_best(rows: IndexRows, source: CandidateSource, rng: random.Random) -> None:
    for _ in range(8):
        words = rng.sample(WORDS, rng.randrange(1, 6))
        weights = [rng.choice([1.0, 0.6]) for _ in words]
        filters = rng.choice(
            [
                EVERYTHING,
                Filters(),
                Filters(chunk_type="fact"),
                Filters(tags_all=("red",)),
                Filters(tags_any=("red", "blue"), include_superseded=True),
                Filters(speaker="Ann"),
            ]
        )
        limit = rng.choice([1, 3, 10, 1000])
        expected = expected_scores(rows, words, weights, filters)
        docs, scores = source.best(source.term_ids(words), np.array(weights), limit, filters)
        ordered = sorted(expected.values(), reverse=True)
        assert len(docs) == min(limit, len(expected))
        assert scores.tolist() == pytest.approx(ordered[:limit], rel=1e-5)
        for doc, score in zip(docs.tolist(), scores.tolist(), strict=True):
            assert expected[doc] == pytest.approx(score, rel=1e-5)


def check_order(rows: IndexRows, source: CandidateSource) -> None:
    by_time = sorted(rows.chunks.values(), key=lambda made: (made.at, made.doc))
    found = source.in_period(10, 30, 1000, EVERYTHING)
    assert found.tolist() == [made.doc for made in by_time if 10 <= made.at < 30]
    assert source.newest(7, EVERYTHING).tolist() == [made.doc for made in by_time[::-1]][:7]
    for number in range(1, 6):
        members = [made for made in by_time if made.conversation == number]
        for place, made in enumerate(members):
            hood = source.around(np.array([made.doc]), np.zeros(0, np.int64), 1, 2)
            assert set(hood.run.tolist()) == {0}
            expected, near = neighbourhood(members, place)
            assert hood.doc.tolist() == expected
            assert {doc for doc, is_near in zip(hood.doc.tolist(), hood.near, strict=True) if is_near} == near
            for doc, before in zip(hood.doc.tolist(), hood.segments_before.tolist(), strict=True):
                ahead = members[: [m.doc for m in members].index(doc)]
                assert before in (sum(len(m.segments) for m in ahead), FAR)
                assert before < FAR or len(ahead) > 2


def test_chunks_asked_for_alone_come_without_neighbours_but_in_their_run(rows: IndexRows) -> None:
    for doc in range(1, 11):
        rows.put(Made(doc, 1, float(doc), [Spoken(["word"])] * 3))
    source = PostingsIndex(rows.folder / "postings", NS).source(rows.connection)
    hood = source.around(np.array([4]), np.array([6, 9]), 1, 3)
    assert hood.doc.tolist() == [3, 4, 5, 6, 9]
    assert hood.run.tolist() == [0, 0, 0, 0, 1]
    assert hood.near.tolist() == [True] * 5


def neighbourhood(members: list[Made], place: int) -> tuple[list[int], set[int]]:
    """Neighbours on both sides of `place` until two segments are covered; near ones cover the first."""
    chosen, near = {place}, {members[place].doc}
    for step in (-1, 1):
        at, covered, looked = place + step, 0, 0
        while 0 <= at < len(members) and covered < 2 and looked < 12:
            chosen.add(at)
            if covered < 1:
                near.add(members[at].doc)
            covered += len(members[at].segments)
            at, looked = at + step, looked + 1
    return [members[at].doc for at in sorted(chosen)], near


@pytest.mark.parametrize("seed", range(12))
def test_after_any_sequence_of_writes_and_merges_the_answers_equal_a_plain_count(
    rows: IndexRows, seed: int
) -> None:
    rng = random.Random(seed)
    index = PostingsIndex(rows.folder / "postings", NS)
    for _ in range(4):
        wander(rows, index, rng, 60)
        source = index.source(rows.connection)
        check_statistics(rows, source)
        check_best(rows, source, rng)
        check_order(rows, source)


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_the_same_to_the_last_bit_as_those_of_an_index_built_anew(
    rows: IndexRows, seed: int
) -> None:
    rng = random.Random(100 + seed)
    grown = PostingsIndex(rows.folder / "postings", NS)
    wander(rows, grown, rng, 250)
    fresh = PostingsIndex(rows.folder / "fresh", NS)
    old = grown.source(rows.connection)
    rows.connection.execute("DELETE FROM postings_state")
    assert fresh.merge(rows.connection)
    new = fresh.source(rows.connection)
    for _ in range(20):
        words = rng.sample(WORDS, 4)
        answers = [s.best(s.term_ids(words), np.ones(4), 10, Filters()) for s in (old, new)]
        assert answers[0][0].tolist() == answers[1][0].tolist()
        assert answers[0][1].tolist() == answers[1][1].tolist()


def test_common_words_do_not_change_who_wins(rows: IndexRows) -> None:
    """Long posting lists are looked up rather than walked; the result must stay exact."""
    rng = random.Random(7)
    for doc in range(1, 6001):
        words = [w for w, share in (("every", 0.95), ("many", 0.7), ("some", 0.2)) if rng.random() < share]
        words += ["rare"] if doc % 300 == 0 else []
        words *= rng.randrange(1, 4)
        rows.connection.execute("BEGIN") if not rows.connection.in_transaction else None
        rows.put(Made(doc, doc // 10, float(doc), [Spoken(words + ["filler"] * rng.randrange(20))]))
    rows.connection.execute("COMMIT")
    index = PostingsIndex(rows.folder / "postings", NS)
    source = index.source(rows.connection)
    words = ["every", "many", "some", "rare"]
    docs, scores = source.best(source.term_ids(words), np.ones(4), 15, Filters())
    expected = expected_scores_quickly(rows, words)
    best = sorted(expected.values(), reverse=True)[:15]
    assert scores.tolist() == pytest.approx(best, rel=1e-5)
    assert [expected[doc] for doc in docs.tolist()] == pytest.approx(best, rel=1e-5)


def expected_scores_quickly(rows: IndexRows, words: list[str]) -> dict[int, float]:
    chunks = list(rows.chunks.values())
    counts = np.array([[made.words.count(word) for word in words] for made in chunks], float)
    length = np.array([len(made.words) for made in chunks], float)
    df = (counts > 0).sum(axis=0)
    idf = np.log1p((len(chunks) - df + 0.5) / (df + 0.5))
    norm = BM25_K1 * (1 - BM25_B + BM25_B * length / length.mean())
    scores = (idf * counts * (BM25_K1 + 1) / (counts + norm[:, None])).sum(axis=1)
    return dict(zip((made.doc for made in chunks), scores.tolist(), strict=True))


def query(*words: str) -> Query:
    count = len(words)
    return Query(" ".join(words), words, (1.0,) * count, tuple(range(count)), (WORD,) * count)


def test_candidates_carry_neighbours_across_chunk_borders_in_runs(rows: IndexRows) -> None:
    for doc in range(1, 21):
        words = ["needle"] if doc == 10 else ["straw"]
        rows.put(Made(doc, 1, float(doc), [Spoken(words, "Ann"), Spoken(["hay"], "Bob")]))
    rows.put(Made(30, 2, 1.0, [Spoken(["needle", "needle"])]))
    source = PostingsIndex(rows.folder / "postings", NS).source(rows.connection)
    found = gather(source, query("needle", "hay"), Filters(), 2)
    assert found.chunk_ids == [f"chunk-{doc}" for doc in (7, 8, 9, 10, 11, 12, 13, 30)]
    assert found.chunk_eligible.tolist() == [False, True, True, True, True, True, False, True]
    assert found.run.tolist() == [0] * 14 + [1]
    assert found.seg_no.tolist() == [0, 1] * 7 + [0]
    assert found.tf[:, 0].tolist() == [0.0] * 6 + [1.0] + [0.0] * 7 + [2.0]
    assert [found.authors[number] if number >= 0 else None for number in found.author] == [
        "Ann",
        "Bob",
    ] * 7 + [None]
    assert found.conv_tf.tolist() == [[1, 20], [2, 0]]
    assert found.conv_length.tolist() == [40, 2]
    assert found.conv_pos[0] >= 5
    assert found.conv_pos[-1] == 0
    assert found.df.tolist() == [2, 20]
    assert (found.n_segments, found.n_chunks, found.n_conversations) == (41, 21, 2)


def test_a_filtered_out_neighbour_is_context_only(rows: IndexRows) -> None:
    for doc, type_ in ((1, "fact"), (2, "note"), (3, "fact")):
        rows.put(Made(doc, 1, float(doc), [Spoken(["needle"])], type=type_))
    source = PostingsIndex(rows.folder / "postings", NS).source(rows.connection)
    found = gather(source, query("needle"), Filters(chunk_type="note"), 10)
    assert dict(zip(found.chunk_ids, found.chunk_eligible.tolist(), strict=True)) == {
        "chunk-1": False, "chunk-2": True, "chunk-3": False,
    }  # fmt: skip


def test_no_candidates_is_an_empty_set_with_statistics(rows: IndexRows) -> None:
    rows.put(Made(1, None, 1.0, [Spoken(["word"])]))
    source = PostingsIndex(rows.folder / "postings", NS).source(rows.connection)
    found = gather(source, query("unknown"), Filters(), 10)
    assert found.chunk_ids == []
    assert found.tf.shape == (0, 1)
    assert found.n_chunks == 1


def test_a_question_asked_again_leaves_out_what_was_archived_or_replaced_meanwhile(rows: IndexRows) -> None:
    for doc in range(4):
        rows.put(Made(doc, None, float(doc), [Spoken(["w1", "w2"])]))
    source = PostingsIndex(rows.folder / "postings", NS).source(rows.connection)
    asked = [([["w1"]], {"w2": 1.0})], 3
    (first,) = source.holding_each(*asked)
    assert [one.terms for one in first] == [{"w2"}] * 3
    rows.archive(3)
    rows.put(Made(2, None, 2.0, [Spoken(["w1"])], superseded=True))
    assert source.holding_each(*asked) == [first[2:]]
