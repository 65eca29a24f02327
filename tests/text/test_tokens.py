"""Token counts: exact for o200k, offline, for any string."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlm_mem.text.tokens import count_many, count_tokens, truncate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("hello world", 2),
        ("User prefers Python over JavaScript", 6),
        ("<|endoftext|>", 7),
        (" ", 1),
        ("😊", 1),
        ("こんにちは世界", 2),
        ("1234567890", 4),
    ],
)
def test_counts_agree_with_the_published_o200k_encoding(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@given(st.lists(st.text(alphabet=st.characters(categories=None), max_size=40), max_size=8))
def test_counting_many_texts_equals_counting_each(texts: list[str]) -> None:
    counts = [count_tokens(text) for text in texts]
    assert count_many(texts) == counts
    assert count_many([*texts, "word " * 2000]) == [*counts, 2001], "long ones are counted in another way"


def test_a_lone_surrogate_counts_as_the_replacement_character() -> None:
    assert count_tokens("a\ud800b") == count_tokens("a\ufffdb") > 0


@given(st.text(alphabet=st.characters(categories=None), max_size=120), st.integers(-2, 40))
def test_truncation_keeps_a_beginning_that_fits_and_wastes_no_room(text: str, limit: int) -> None:
    kept = truncate_tokens(text, limit)
    assert text.startswith(kept)
    assert count_tokens(kept) <= max(0, limit)
    if count_tokens(text) <= limit:
        assert kept == text


def test_threads_that_count_first_at_the_same_time_agree() -> None:
    program = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from rlm_mem.text.tokens import count_tokens\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    print(set(pool.map(count_tokens, ['hello world'] * 32)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{2}"


def test_counting_from_many_threads_is_exact() -> None:
    texts = [f"thread {n} says hello " * (n + 1) for n in range(64)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(count_tokens, texts)) == count_many(texts)


def test_importing_the_module_loads_no_tables() -> None:
    program = "import sys, rlm_mem.text.tokens; print('toktok' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
