"""Content type detection on ordinary English."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, strategies as st
from labelled_sentences import LABELLED

from rlm_mem.chunk import CHUNK_TYPES
from rlm_mem.errors import InputError
from rlm_mem.ingest.chunking import ChunkingEngine

ENGINE = ChunkingEngine()


def test_labelled_sentences_get_the_type_a_reader_gives_them() -> None:
    """Of 265 sentences, 97 % or more; of each type nine in ten or more."""
    assert len(LABELLED) >= 200
    right = Counter(label for sentence, label in LABELLED if ENGINE.detect_content_type(sentence) == label)
    for label, count in Counter(label for _, label in LABELLED).items():
        assert right[label] >= 0.9 * count, label
    assert sum(right.values()) >= 0.97 * len(LABELLED)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("User prefers Python over JavaScript", "preference"),
        ("We decided to use PostgreSQL.", "decision"),
        ("Every time we deploy on Friday, something breaks.", "pattern"),
        ("Decision: keep SQLite\nRationale: it needs no server", "decision"),
        ("PREFERENCE: short answers", "preference"),
        ("Dana: I prefer trains to planes.", "preference"),
        ("- The API limit is 100 requests per minute.", "fact"),
        ("We’ve decided against it.", "decision"),
        ("", "note"),
        ("```\nx = decided_to_use(1)\n```", "note"),
        ("你好", "note"),
    ],
)
def test_single_texts(text: str, expected: str) -> None:
    assert ENGINE.detect_content_type(text) == expected


def test_where_several_types_apply_the_stronger_statement_wins() -> None:
    assert ENGINE.detect_content_type("We agreed to meet every Monday.") == "decision"
    assert ENGINE.detect_content_type("She always prefers tea.") == "preference"
    assert ENGINE.detect_content_type("Whenever we decided to hurry, it failed.") == "pattern"


def test_a_longer_text_has_the_type_of_its_substance() -> None:
    text = (
        "We decided to move the service to PostgreSQL. The current database has 40 tables. "
        "The migration takes two hours. It was tested on a copy."
    )
    assert ENGINE.detect_content_type(text) == "decision"


def test_a_chat_that_mentions_many_things_is_a_note() -> None:
    chat = (
        "Anna: Hey! How was the weekend?\nBen: Great, we went to the lake. I love swimming.\n"
        "Anna: Nice! Did the kids join?\nBen: Yes, both of them.\nAnna: Sounds fun. See you tomorrow!"
    )
    assert ENGINE.detect_content_type(chat) == "note"


@given(st.text(alphabet=st.characters(categories=None), max_size=300))
def test_any_text_has_one_of_the_five_types(text: str) -> None:
    assert ENGINE.detect_content_type(text) in CHUNK_TYPES


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "we " * 60_000, "decided and " * 20_000, "and " * 50_000 + "i like"]
)
def test_giant_texts_are_read_only_in_part(text: str) -> None:
    assert ENGINE.detect_content_type(text) in CHUNK_TYPES


@pytest.mark.parametrize("content", [None, 5, b"bytes", ["list"]])
def test_values_that_are_not_text_are_refused(content: object) -> None:
    with pytest.raises(InputError, match="content must be text"):
        ENGINE.detect_content_type(content)  # type: ignore[arg-type]


def test_a_label_may_have_a_dotless_i() -> None:
    """As lower-casing by Turkish rules makes it."""
    assert ENGINE.detect_content_type("Decısıon: SQLite") == "decision"
