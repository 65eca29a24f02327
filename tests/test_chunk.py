"""The chunk and its JSON: what is written is read back, and all input either validates or is refused."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given, strategies as st

from rlm_mem.chunk import (
    CHUNK_TYPES,
    Chunk,
    ChunkLinks,
    ChunkMetadata,
    check_chunk_id,
    decode_chunk,
    encode_chunk,
    format_time,
    new_chunk_id,
    normalised_hash,
    parse_time,
)
from rlm_mem.errors import InvalidChunk, InvalidChunkId
from rlm_mem.receipts.making import chunk_hash

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
WORD = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30).filter(
    lambda text: text.strip() == text
)
TAG = WORD.map(lambda text: unicodedata.normalize("NFC", text))
TIME = st.datetimes().map(lambda moment: format_time(parse_time(moment)))
IDS = st.from_regex(re.compile(r"chunk-[A-Za-z0-9][A-Za-z0-9_-]{0,30}\Z"), fullmatch=True)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
KEYS = TEXT.filter(lambda key: key not in {"schema", "id", "revision", "content", "tokens", "type", "metadata", "links",
                                            "tags", "namespace"})  # fmt: skip
LINKS = st.builds(
    ChunkLinks, target_id=IDS, type=st.sampled_from(["supports", "follows"]), strength=st.floats(0, 1), created_at=TIME,
    reasoning=st.none() | TEXT,
)  # fmt: skip
METADATA = st.builds(
    ChunkMetadata, created_at=TIME, modified_at=TIME, accessed_at=TIME, access_count=st.integers(0, 10**9),
    confidence=st.floats(0, 1), conversation_id=st.none() | WORD, source=WORD, content_hash=st.just("0" * 64),
    occurred_at=st.none() | TIME, valid_from=st.none() | TIME, valid_to=st.none() | TIME,
    superseded_by=st.none() | IDS, provenance=st.dictionaries(TEXT, PLAIN, max_size=3),
    extra=st.dictionaries(TEXT.filter(lambda key: key != "extra"), PLAIN, max_size=3),
)  # fmt: skip
CHUNKS = st.builds(
    Chunk, id=IDS, content=TEXT, tokens=st.integers(0, 10**6), type=st.sampled_from(CHUNK_TYPES), metadata=METADATA,
    links=st.lists(LINKS, max_size=3), tags=st.lists(TAG, max_size=4, unique=True), revision=st.integers(1, 10**6),
    namespace=st.sampled_from(["default", "agent/one"]), extra=st.dictionaries(KEYS, PLAIN, max_size=3),
)  # fmt: skip


@given(CHUNKS)
def test_every_chunk_survives_its_json(chunk: Chunk) -> None:
    data = encode_chunk(chunk)
    assert decode_chunk(data) == chunk
    assert encode_chunk(decode_chunk(data)) == data
    every_field = json.dumps(chunk.to_dict())  # as former versions wrote it
    assert decode_chunk(every_field.encode()) == chunk
    assert chunk_hash(decode_chunk(data).to_dict()) == chunk_hash(json.loads(every_field))


def test_a_file_has_some_fields_only_where_there_is_a_value() -> None:
    when = "2026-02-10T21:37:00.000000Z"
    link = ChunkLinks("chunk-b", "supports", created_at=when)
    chunk = Chunk("chunk-a", "text", 1, metadata=ChunkMetadata(created_at=when), links=[link])
    short = json.loads(encode_chunk(chunk))
    assert list(short["metadata"]) == ["created_at", "modified_at", "accessed_at", "access_count", "confidence",
                                       "conversation_id", "source", "content_hash", "provenance", "extra"]  # fmt: skip
    assert list(short["links"][0]) == ["target_id", "type", "strength", "created_at"]
    about = chunk.metadata
    about.occurred_at, about.valid_from, about.valid_to, about.superseded_by = when, when, when, "chunk-b"
    link.reasoning, about.extra = "", {"mood": None}
    assert json.loads(encode_chunk(chunk)) == chunk.to_dict()


def test_a_fault_of_a_file_edited_by_hand_is_named_with_its_line() -> None:
    with pytest.raises(InvalidChunk, match=r"not valid JSON: .* line 3 column"):
        decode_chunk(b'{\n"id": "chunk-a",\n"content": "It said "no".",\n"tokens": 3\n}')


@given(st.binary(max_size=200) | PLAIN.map(lambda value: json.dumps(value).encode()))
def test_arbitrary_bytes_are_a_chunk_or_invalid_chunk(data: bytes) -> None:
    try:
        decode_chunk(data)
    except InvalidChunk as error:
        assert str(error)


@given(
    st.dictionaries(
        st.sampled_from(["id", "content", "metadata", "links", "tags", "tokens", "type", "revision"]), PLAIN
    )
)
def test_fields_of_any_kind_are_a_chunk_or_invalid_chunk(data: dict[str, Any]) -> None:
    data.setdefault("id", "chunk-a")
    data.setdefault("content", "text")
    data.setdefault("metadata", {"created_at": "2026-01-01"})
    try:
        decode_chunk(json.dumps(data).encode())
    except InvalidChunk as error:
        assert str(error)


@pytest.mark.parametrize(
    ("links", "targets"),
    [
        ({"follows": ["chunk-a"], "context_of": ["conv-1"]}, [("chunk-a", "follows")]),
        ({"outgoing": [{"target": "chunk-a", "type": "related_to"}], "incoming": [{"target": "chunk-b", "type": "x"}]},
         [("chunk-a", "related_to")]),
        ([{"target_id": "chunk-a", "type": "supports", "strength": 1}], [("chunk-a", "supports")]),
        (None, []),
    ],
)  # fmt: skip
def test_links_of_every_documented_shape_are_read(links: Any, targets: list[tuple[str, str]]) -> None:
    chunk = Chunk.from_dict(
        {"id": "chunk-x", "content": "c", "metadata": {"created": "2026-02-10T21:37:00Z"}, "links": links}
    )
    assert [(link.target_id, link.type) for link in chunk.links] == targets


@pytest.mark.parametrize(
    "link",
    [
        {"target_id": "../x", "type": "supports"},
        {"target_id": "chunk-a"},
        "chunk-a",
        {"target_id": "chunk-a", "type": "x", "strength": 2},
    ],
)
def test_malformed_links_in_a_file_make_it_invalid(link: Any) -> None:
    with pytest.raises(InvalidChunk):
        Chunk.from_dict(
            {"id": "chunk-x", "content": "c", "metadata": {"created": "2026-02-10"}, "links": [link]}
        )


def test_generated_ids_have_the_documented_form() -> None:
    made = {new_chunk_id(parse_time("2026-02-10T23:59:59Z")) for _ in range(200)}
    assert all(re.fullmatch(r"chunk-2026-02-10-[0-9a-f]{8}", chunk_id) for chunk_id in made)
    assert len(made) > 190


@given(st.text())
def test_no_accepted_id_can_leave_a_folder(text: str) -> None:
    for candidate in (text, "chunk-" + text):
        try:
            accepted = check_chunk_id(candidate)
        except InvalidChunkId:
            continue
        assert not set("/\\.\x00:") & set(accepted)
        assert len(accepted) <= 126


def test_normalising_ignores_case_space_and_punctuation_only() -> None:
    assert normalised_hash("User prefers  Tea.") == normalised_hash("user prefers tea")
    assert normalised_hash("user prefers tea") != normalised_hash("user prefers teas")
    ascii_only = "".join(map(chr, range(128))) + " A_B\x1cc d"
    assert normalised_hash(ascii_only) == normalised_hash(f"\N{EM DASH}{ascii_only}"), (
        "whatever else is there"
    )


@pytest.mark.parametrize(
    ("given_time", "written"),
    [
        ("2026-02-10T21:37:00Z", "2026-02-10T21:37:00.000000Z"),
        ("2026-02-10T21:37:00.5", "2026-02-10T21:37:00.500000Z"),
        ("2026-02-10", "2026-02-10T00:00:00.000000Z"),
        ("2026-02-10T23:00:00-05:00", "2026-02-11T04:00:00.000000Z"),
    ],
)
def test_times_have_one_written_form(given_time: str, written: str) -> None:
    assert format_time(parse_time(given_time)) == written
