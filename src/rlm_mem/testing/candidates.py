"""The contract of candidate sources, as pytest tests: every result is compared with a plain count over the chunks."""

from __future__ import annotations

import math
import random
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress

import numpy as np
import pytest

from rlm_mem.chunk import Chunk, format_time, name_key, parse_time
from rlm_mem.errors import InvalidLink
from rlm_mem.search import search
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.lookup import BM25_B, BM25_K1, FAR, WEIGHED, CandidateSource, Filters
from rlm_mem.testing.backend import MovedClock, StoreFixtures
from rlm_mem.text.analysis import AnalysedSegment, get_analyser

_WORDS = (
    "walnut", "harbour", "violin", "Lisbon", "deadline", "garden", "festival", "bicycle", "thunder", "ticket",
    "library", "soup", "marathon", "lantern", "orchid", "budget", "ferry", "quilt", "compass", "pigeon",
)  # fmt: skip
_PEOPLE = ("Ann", "Bob", "Dóra")


@dataclass
class _CountedChunk:
    """A chunk with its analysed segments, for counting without an index."""

    chunk: Chunk
    at: float
    segments: list[AnalysedSegment]

    @property
    def length(self) -> int:
        return sum(segment.length for segment in self.segments)

    def count(self, term: str) -> int:
        return sum(segment.terms.get(term, 0) for segment in self.segments)


class CandidateSourceContract(StoreFixtures):
    """Tests of ``Backend.candidate_source``; a subclass provides the fixture ``place``: an empty store's location.

    The source is exact: after any sequence of writes its figures equal a recount of every chunk, and its results
    are ordered by score, ties newest first.
    """

    @pytest.fixture
    def searched(self, store: ChunkStore, moved_clock: MovedClock) -> ChunkStore:
        """Return a store with some 60 chunks after creations, changes, archiving and erasing, some in transactions."""
        rng = random.Random(20260210)
        ids: list[str] = []
        with store.batch():
            for _ in range(40):
                ids.append(_create(store, rng, moved_clock))
        for _ in range(40):
            chance, chosen = rng.random(), rng.choice(ids)
            if chance < 0.5:
                ids.append(_create(store, rng, moved_clock))
            elif chance < 0.7:
                store.update_chunk(chosen, _text(rng), tags=rng.sample(["red", "green"], rng.randrange(3)))
            elif chance < 0.8:
                with suppress(InvalidLink):
                    # A chunk cannot be replaced by itself, nor by one that it replaces
                    store.update_chunk(chosen, metadata={"superseded_by": rng.choice(ids)})
            elif chance < 0.9:
                store.delete_chunk(chosen)
                if rng.random() < 0.5:
                    store.restore_chunk(chosen)
            else:
                store.delete_chunk(chosen, permanent=True)
            if not store.exists(chosen):
                ids.remove(chosen)
        return store

    def test_figures_equal_a_recount(self, searched: ChunkStore) -> None:
        """Counts of chunks, segments and conversations, in total and by term; term frequencies of conversations."""
        source, plain, terms = searched.candidate_source(), _recounted(searched), _terms()
        figures = source.statistics(source.term_ids(terms))
        assert figures.chunks == len(plain)
        assert figures.segments == sum(len(one.segments) for one in plain)
        assert figures.total_length == sum(one.length for one in plain)
        assert figures.chunk_df.tolist() == [sum(one.count(term) > 0 for one in plain) for term in terms]
        assert figures.segment_df.tolist() == [
            sum(term in segment.terms for one in plain for segment in one.segments) for term in terms
        ]
        assert figures.conversations == _conversations(plain)
        assert figures.conversation_df.tolist() == [
            _conversations([one for one in plain if one.count(term)]) for term in terms
        ]
        assert source.term_counts(terms) == {
            term: count for term in terms if (count := sum(one.count(term) > 0 for one in plain))
        }
        speakers = {segment.author for one in plain for segment in one.segments if segment.author}
        assert set(source.authors()) == speakers
        rows, _ = source.rows(source.newest(1000, Filters()), Filters())
        numbers = dict(zip(rows.chunk_id, rows.conversation, strict=True))
        for name in ("c1", "c2"):
            members = [one for one in plain if one.chunk.metadata.conversation_id == name]
            number = numbers[members[0].chunk.id]
            frequencies, lengths = source.conversation_terms(np.array([number]), source.term_ids(terms))
            assert frequencies[0].tolist() == [sum(one.count(term) for one in members) for term in terms]
            assert lengths.tolist() == [sum(one.length for one in members)]

    def test_the_best_are_the_best(self, searched: ChunkStore) -> None:
        """Weighted BM25 of whole chunks, with each kind of filter, cut off exactly at the limit."""
        source, plain = searched.candidate_source(), _recounted(searched)
        ids = _ids(source)
        rng = random.Random(7)
        for filters in _filters():
            terms = rng.sample(_terms(), 4)
            weights = [1.0, 0.6, 1.0, 0.4]
            expected = _scores(plain, terms, weights, filters)
            for limit in (3, 1000):
                docs, scores = source.best(source.term_ids(terms), np.array(weights), limit, filters)
                assert scores.tolist() == pytest.approx(
                    sorted(expected.values(), reverse=True)[:limit], rel=1e-5
                )
                assert scores.tolist() == sorted(scores.tolist(), reverse=True)
                for doc, score in zip(docs.tolist(), scores.tolist(), strict=True):
                    assert expected[ids[doc]] == pytest.approx(score, rel=1e-5)

    def test_filters_and_times_decide_alike(self, searched: ChunkStore) -> None:
        """``rows``, ``newest`` and ``in_period`` agree with the chunks, in order of time."""
        source, plain = searched.candidate_source(), _recounted(searched)
        ids = _ids(source)
        at = {one.chunk.id: one.at for one in plain}
        docs = np.array(sorted(ids), np.int64)
        low, high = np.quantile(list(at.values()), [0.3, 0.7]).tolist()
        for filters in _filters():
            passing = {one.chunk.id for one in plain if _passes(one, filters)}
            rows, _ = source.rows(docs, filters)
            assert set(compress(rows.chunk_id, rows.accepted)) == passing, filters
            newest = [ids[int(doc)] for doc in source.newest(1000, filters)]
            assert set(newest) == passing
            assert [at[one] for one in newest] == sorted((at[one] for one in passing), reverse=True)
            assert [ids[int(doc)] for doc in source.newest(2, filters)] == newest[:2]
            period = [ids[int(doc)] for doc in source.in_period(low, high, 1000, filters)]
            assert set(period) == {one for one in passing if low <= at[one] < high}
            assert [at[one] for one in period] == sorted(at[one] for one in period)

    def test_rows_and_segments_are_those_of_the_chunks(self, searched: ChunkStore) -> None:
        """Rows and segments for the ranker match the chunk's own text."""
        source = searched.candidate_source()
        plain = {one.chunk.id: one for one in _recounted(searched)}
        docs = source.newest(1000, Filters(include_superseded=True))
        rows, decoded = source.rows(docs, Filters())
        assert sorted(rows.chunk_id) == sorted(plain)
        names = source.author_names(np.unique(decoded.author[decoded.author >= 0]))
        for place, chunk_id in enumerate(rows.chunk_id):
            one = plain[chunk_id]
            assert (rows.type[place], rows.confidence[place]) == (
                one.chunk.type,
                one.chunk.metadata.confidence,
            )
            assert rows.at[place] == pytest.approx(one.at, abs=1e-6)
            assert rows.superseded_by[place] == one.chunk.metadata.superseded_by
            first, last = decoded.chunk_start[place : place + 2].tolist()
            found = [
                (
                    int(decoded.start[number]),
                    int(decoded.end[number]),
                    names.get(int(decoded.author[number])),
                    int(decoded.length[number]),
                )
                for number in range(first, last)
            ]
            assert found == [(two.start, two.end, two.author, two.length) for two in one.segments]

    def test_what_holds_every_term_of_a_group(self, searched: ChunkStore) -> None:
        """Chunks that are not superseded and contain a group of terms, ordered by term weights, then newest first."""
        source, plain = searched.candidate_source(), _recounted(searched)
        terms = _terms()
        rng = random.Random(11)
        counts = {term: sum(one.count(term) > 0 for one in plain) for term in terms}
        docs = {chunk_id: doc for doc, chunk_id in _ids(source).items()}
        some, asked, answers = 0, [], []
        for _ in range(12):
            groups = [rng.sample(terms, rng.randrange(1, 4)) for _ in range(rng.randrange(1, 3))]
            weights = {term: rng.choice((0.0, 1.0, 1.0)) for term in rng.sample(terms, 10)}
            known = sorted((counts[term], term) for term in weights if weights[term] and counts[term])
            counted = [term for _, term in known[:WEIGHED]]
            looked = {*counted, *(term for term in weights if not weights[term])}

            def score(one: _CountedChunk, counted: list[str] = counted) -> float:
                return round(
                    sum(1 / (1 + math.log(1 + counts[term])) for term in counted if one.count(term)), 5
                )

            holding = [
                one for one in plain if one.chunk.metadata.superseded_by is None
                and any(all(one.count(term) for term in group) for group in groups)
            ]  # fmt: skip
            holding.sort(key=lambda one: (-score(one), -one.at, -docs[one.chunk.id]))
            (found,) = source.holding_each([(groups, weights)], 5)
            assert [one.chunk_id for one in found] == [one.chunk.id for one in holding[:5]]
            for one, held in zip(holding, found, strict=False):
                assert held.terms == {term for term in looked if one.count(term)}
                assert held.content_hash == one.chunk.metadata.content_hash
            some += len(found)
            asked.append((groups, weights))
            answers.append(found)
        assert some > 12
        asked[3:3] = [([], {}), ([["neverused"]], {terms[0]: 1.0})]
        answers[3:3] = [[], []]
        assert source.holding_each(asked, 5) == answers
        assert source.holding_each([], 5) == []
        hidden = {one.chunk_id for found in answers for one in found[:2]}
        for chunk_id in hidden:
            searched.quarantine(chunk_id)
        now = format_time(searched.clock())
        shown = searched.candidate_source().holding_each(asked, 5, now)
        wide = searched.candidate_source().holding_each(asked, 5 + len(hidden))
        assert shown == [[one for one in found if one.chunk_id not in hidden][:5] for found in wide]
        assert source.holding_each([([["neverused", terms[0]], ["\ud800"]], {terms[0]: 1.0})], 5) == [[]]
        assert source.holding_each([([], {terms[0]: 1.0})], 5) == [[]]

    def test_later_chunks_with_a_rare_term(self, searched: ChunkStore) -> None:
        """Those in force that pass the filters: with most of the rare terms first, then the newest."""
        source, plain, terms = searched.candidate_source(), _recounted(searched), _terms()
        docs = {chunk_id: doc for doc, chunk_id in _ids(source).items()}
        counts = {term: sum(one.count(term) > 0 for one in plain) for term in terms}
        most = sorted(counts.values())[len(counts) // 2]
        since = float(np.median([one.at for one in plain]))
        rng, some = random.Random(13), 0
        for filters in _filters():
            if filters.speaker is None:
                chosen = [*rng.sample(terms, 6), "neverused", "\ud800"]
                rare = {term for term in chosen if counts.get(term, 0) <= most}
                shared = {one.chunk.id: sum(one.count(term) > 0 for term in rare) for one in plain}
                wanted = [
                    one for one in plain if shared[one.chunk.id] and one.at > since and _passes(one, filters)
                    and one.chunk.metadata.superseded_by is None
                ]  # fmt: skip
                wanted.sort(key=lambda one: (-shared[one.chunk.id], -one.at, -docs[one.chunk.id]))
                found = source.later_with(chosen, since, most, 4, filters)
                assert found == [one.chunk.id for one in wanted[:4]], filters
                some += len(found)
        assert some > 9
        assert source.later_with([], since, most, 4, Filters()) == []

    def test_neighbours_are_in_the_order_of_their_conversation(self, searched: ChunkStore) -> None:
        """``around`` covers the requested number of segments on each side, in one contiguous run."""
        source, plain = searched.candidate_source(), _recounted(searched)
        ids = _ids(source)
        docs = {chunk_id: doc for doc, chunk_id in ids.items()}
        members = [one for one in plain if one.chunk.metadata.conversation_id == "c1"]
        order = [one.chunk.id for one in sorted(members, key=lambda one: (one.at, docs[one.chunk.id]))]
        lengths = {one.chunk.id: len(one.segments) for one in members}
        middle = len(order) // 2
        hood = source.around(np.array([docs[order[middle]]]), np.zeros(0, np.int64), 1, 2)
        found = [ids[int(doc)] for doc in hood.doc]
        assert order[middle] in found
        first = order.index(found[0])
        assert found == order[first : first + len(found)]
        assert set(hood.run.tolist()) == {0}
        for side in (order[first:middle], order[middle + 1 : first + len(found)]):
            assert sum(lengths[one] for one in side) >= 2
        for chunk_id, before in zip(found, hood.segments_before.tolist(), strict=True):
            assert before in (FAR, sum(lengths[one] for one in order[: order.index(chunk_id)]))

    def test_terms_that_nobody_used_are_no_error(self, searched: ChunkStore) -> None:
        """Unknown words, no words at all, and words that no database can store yield empty results."""
        source = searched.candidate_source()
        odd = ["neverused", "\0", "\ud800", "'; --", ""]
        assert source.term_ids(odd).tolist() == [-1] * len(odd)
        assert source.term_counts(odd) == {}
        for terms in (odd, []):
            docs, scores = source.best(source.term_ids(terms), np.ones(len(terms)), 10, Filters())
            assert (docs.tolist(), scores.tolist()) == ([], [])
        assert source.successors(np.zeros(0, np.int64)).tolist() == []

    def test_an_empty_namespace_has_empty_answers(self, store: ChunkStore) -> None:
        """Search in an empty namespace yields empty results, without an error."""
        source = store.candidate_source()
        assert source.statistics(source.term_ids(["walnut"])).chunks == 0
        assert source.newest(10, Filters()).tolist() == []
        assert search(store, "walnut") == []

    def test_search_sees_a_write_at_once_and_inside_its_transaction(self, store: ChunkStore) -> None:
        """A chunk is found as soon as it is written, and no longer once it is changed or deleted.

        The title in its provenance is searched as well.
        """
        with store.batch():
            made = store.create_chunk("The walnut stands in the garden.")
            assert [hit.chunk_id for hit in search(store, "walnut")] == [made.id]
        store.update_chunk(made.id, "The orchid stands in the garden.")
        assert search(store, "walnut") == []
        assert [hit.chunk_id for hit in search(store, "orchid")] == [made.id]
        for title, earlier in (("Pergola", "zelkova"), ("Zelkova", "pergola")):
            store.update_chunk(made.id, metadata={"provenance": {"title": title}})
            assert [hit.chunk_id for hit in search(store, title)] == [made.id]
            assert search(store, earlier) == []
        store.delete_chunk(made.id)
        assert search(store, "orchid") == []


def _text(rng: random.Random) -> str:
    lines = []
    for _ in range(rng.randrange(1, 5)):
        words = [_WORDS[min(int(rng.expovariate(0.2)), 19)] for _ in range(rng.randrange(1, 8))]
        sentence = " ".join(words).capitalize() + "."
        lines.append(f"{rng.choice(_PEOPLE)}: {sentence}" if rng.random() < 0.6 else sentence)
    return "\n".join(lines)


def _create(store: ChunkStore, rng: random.Random, clock: MovedClock) -> str:
    clock.advance(hours=rng.randrange(1, 50))
    return store.create_chunk(
        _text(rng),
        rng.choice(["note", "fact", "decision"]),
        conversation_id=rng.choice([None, "c1", "c1", "c2"]),
        tags=rng.sample(["red", "green", "blue"], rng.randrange(3)),
    ).id


def _recounted(store: ChunkStore) -> list[_CountedChunk]:
    analyser = get_analyser(store.config.search.language)
    return [
        _CountedChunk(
            chunk,
            parse_time(chunk.metadata.occurred_at or chunk.metadata.created_at).timestamp(),
            analyser.analyse_segments(chunk.content),
        )
        for chunk in store.iter_chunks()
    ]


def _terms() -> list[str]:
    analyser = get_analyser("english")
    return list(dict.fromkeys(term for word in _WORDS for term in analyser.terms(word)))


def _ids(source: CandidateSource) -> dict[int, str]:
    rows, _ = source.rows(source.newest(1000, Filters()), Filters())
    return dict(zip(rows.doc, rows.chunk_id, strict=True))


def _conversations(plain: list[_CountedChunk]) -> int:
    named = [one.chunk.metadata.conversation_id for one in plain]
    return len({name for name in named if name is not None}) + named.count(None)


def _filters() -> list[Filters]:
    return [
        Filters(),
        Filters(include_superseded=True),
        Filters(chunk_type="fact"),
        Filters(chunk_type=("note", "decision")),
        Filters(conversation_id="c1"),
        Filters(conversation_id="nowhere"),
        Filters(tags_all=("red", "blue")),
        Filters(tags_any=("green", "red")),
        Filters(start="2026-02-20", end="2026-03-20"),
        Filters(speaker="dóra "),
        Filters(speaker="DO\u0301RA"),
        Filters(speaker="Ann", chunk_type="note", tags_any=("red",)),
    ]


def _passes(one: _CountedChunk, filters: Filters) -> bool:
    chunk, kinds = one.chunk, filters.chunk_type
    wanted = (kinds,) if isinstance(kinds, str) else kinds
    speakers = {name_key(segment.author) for segment in one.segments if segment.author}
    day = (chunk.metadata.occurred_at or chunk.metadata.created_at)[:10]
    return (
        (wanted is None or chunk.type in wanted)
        and (filters.conversation_id in (None, chunk.metadata.conversation_id))
        and set(filters.tags_all) <= set(chunk.tags)
        and (not filters.tags_any or bool(set(filters.tags_any) & set(chunk.tags)))
        and (filters.start is None or day >= str(filters.start))
        and (filters.end is None or day <= str(filters.end))
        and (filters.speaker is None or name_key(filters.speaker) in speakers)
    )


def _scores(
    plain: list[_CountedChunk], terms: list[str], weights: list[float], filters: Filters
) -> dict[str, float]:
    average = sum(one.length for one in plain) / len(plain)
    scores: dict[str, float] = {}
    for one in plain:
        if not _passes(one, filters):
            continue
        score = 0.0
        for term, weight in zip(terms, weights, strict=True):
            holders = sum(other.count(term) > 0 for other in plain)
            if count := one.count(term):
                rarity = math.log(1 + (len(plain) - holders + 0.5) / (holders + 0.5))
                norm = BM25_K1 * (1 - BM25_B + BM25_B * one.length / average)
                score += weight * rarity * count * (BM25_K1 + 1) / (count + norm)
        if score:
            scores[one.chunk.id] = score
    return scores
