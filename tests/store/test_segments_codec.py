"""The blob of a chunk's segments: what is written is what is read, one by one or many at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rlm_mem.errors import CorruptStore
from rlm_mem.store.core.encoding import AUTHOR_PREFIX, decode_many, document_terms, encode_segments
from rlm_mem.text.analysis import AnalysedSegment

words = st.text("abcdé漢", min_size=1, max_size=3)


@st.composite
def segments(draw: st.DrawFn) -> list[AnalysedSegment]:
    made = []
    for _ in range(draw(st.integers(0, 6))):
        terms = draw(st.dictionaries(words, st.integers(1, 255), max_size=5))
        made.append(
            AnalysedSegment(
                start=draw(st.integers(0, 2**31)),
                end=draw(st.integers(0, 2**31)),
                author=draw(st.none() | words),
                flags=draw(st.integers(0, 2**32 - 1)),
                length=sum(terms.values()),
                terms=terms,
            )
        )
    return made


def dictionary() -> tuple[Callable[[str], int], dict[str, int]]:
    known: dict[str, int] = {}
    return lambda text: known.setdefault(text, len(known)), known


@given(st.lists(segments(), max_size=4))
def test_decoding_gives_back_every_field_of_every_segment(chunks: list[list[AnalysedSegment]]) -> None:
    term_id, known = dictionary()
    decoded = decode_many([encode_segments(chunk, term_id) for chunk in chunks])
    texts = {number: text for text, number in known.items()}
    assert np.diff(decoded.chunk_start).tolist() == [len(chunk) for chunk in chunks]
    flat = [segment for chunk in chunks for segment in chunk]
    for number, segment in enumerate(flat):
        assert decoded.start[number] == segment.start
        assert decoded.end[number] == segment.end
        assert decoded.flags[number] == segment.flags
        assert decoded.length[number] == segment.length
        author = int(decoded.author[number])
        assert (None if author < 0 else texts[author].removeprefix(AUTHOR_PREFIX)) == segment.author
        found = decoded.terms[decoded.term_start[number] : decoded.term_start[number + 1]].tolist()
        assert {texts[term]: found.count(term) for term in found} == segment.terms


@given(st.lists(segments(), max_size=4))
def test_adding_up_counts_terms_authors_and_the_segments_that_hold_them(
    chunks: list[list[AnalysedSegment]],
) -> None:
    term_id, known = dictionary()
    totals = document_terms(decode_many([encode_segments(chunk, term_id) for chunk in chunks]))
    expected = {}
    for number, chunk in enumerate(chunks):
        for segment in chunk:
            entries = list(segment.terms.items())
            if segment.author is not None:
                entries.append((AUTHOR_PREFIX + segment.author, 1))
            for text, count in entries:
                before = expected.get((number, known[text]), (0, 0))
                expected[number, known[text]] = (before[0] + count, before[1] + 1)
    found = zip(
        totals.chunk.tolist(),
        totals.term.tolist(),
        totals.frequency.tolist(),
        totals.segments.tolist(),
        strict=True,
    )
    assert {(chunk, term): (tf, held) for chunk, term, tf, held in found} == {
        key: (min(tf, 255), held) for key, (tf, held) in expected.items()
    }


def test_a_chunk_without_segments_is_a_blob_of_nothing() -> None:
    decoded = decode_many([encode_segments([], lambda _: 0)])
    assert decoded.chunk_start.tolist() == [0, 0]
    assert decode_many([]).chunk_start.tolist() == [0]


def test_a_term_counts_no_more_than_255_times_in_a_segment() -> None:
    blob = encode_segments([AnalysedSegment(0, 9, None, 0, 10**6, {"a": 10**6})], lambda _: 7)
    decoded = decode_many([blob])
    assert len(decoded.terms) == 255
    assert decoded.length.tolist() == [10**6]


@pytest.mark.parametrize(
    "damage",
    [
        lambda blob: blob[:-1],
        lambda blob: blob[:-4],
        lambda blob: blob + b"\0\0\0\0",
        lambda blob: b"\x09" + blob[1:],
        lambda _: b"",
        lambda blob: blob[:4] + b"\xff\xff\0\0" + blob[8:],
        lambda blob: blob[:12] + blob[12:32] + b"\x05\0\0\0" + blob[36:],
    ],
)
def test_a_damaged_blob_is_refused_with_a_remedy(damage: Callable[[bytes], bytes]) -> None:
    term_id, _ = dictionary()
    good = encode_segments([AnalysedSegment(0, 9, "Ann", 1, 3, {"a": 2, "b": 1})], term_id)
    with pytest.raises(CorruptStore) as caught:
        decode_many([good, damage(good)])
    assert "rebuild" in (caught.value.hint or "")
    assert "files" not in (caught.value.hint or ""), "a database has none"
