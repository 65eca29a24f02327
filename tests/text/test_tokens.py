"""Token counts: exact for o200k, offline, for any string."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from rlm_mem.text import tokens
from rlm_mem.text.tokens import count_many, count_tokens, truncate_tokens


@pytest.mark.parametrize(
    ("text", "count"),
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
def test_counts_agree_with_the_published_o200k_encoding(text: str, count: int) -> None:
    assert count_tokens(text) == count


@given(st.lists(st.text(alphabet=st.characters(categories=None), max_size=40), max_size=8))
def test_counting_many_texts_equals_counting_each(texts: list[str]) -> None:
    counts = [count_tokens(text) for text in texts]
    assert count_many(texts) == counts
    assert count_many([*texts, "word " * 2000]) == [*counts, 2001], "long ones are counted in another way"


def test_a_lone_surrogate_counts_as_the_replacement_character() -> None:
    assert count_tokens("a\ud800b") == count_tokens("a\ufffdb") > 0


@given(st.text(alphabet=st.characters(categories=None), max_size=120), st.integers(-2, 40))
def test_truncation_keeps_the_longest_beginning_that_fits(text: str, limit: int) -> None:
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


LINES = (
    *(
        line
        for path in sorted((Path(__file__).parents[2] / "docs").glob("*.md"))
        for line in path.read_text().splitlines()
    ),
    "1cd7f7c3a4e57a8d5bcb372a8c3d809e5ddad346 61712fddb45badc8ad648ea3acac0cfdb0a0f05d",
    "E3+GuPksM0PNAXimwtR2tRfVgsF4AB+zq7q9eG6QeUY2qPff6UIE0fQ bdqfbfjtjzquzdcgxsmsycfstwslfmwcrkxskxhc",
    "Wir haben den Vertrag mit den Stadtwerken Überlingen gekündigt. Kraków Łódź ğışöç él añadió café",
    "会议改到星期五下午三点，因为团队需要更多时间。 회의는 금요일로 옮겨졌습니다 🎉🎉 done 👨\u200d👩\u200d👧",
    "Встреча перенесена на пятницу. تم نقل الاجتماع إلى يوم الجمعة ประชุมถูกเลื่อนไปวันศุกร์",
)


def test_estimates_are_a_little_above_the_counts_and_need_no_tables() -> None:
    lines = [line for line in map(str.strip, LINES) if line]
    tokens._toktok.cache_clear()
    estimates = [tokens.estimated_tokens(line) for line in lines]
    cut = [tokens.truncate_estimated(line, 20) for line in lines]
    assert not tokens._toktok.cache_info().currsize
    counts = count_many(lines)
    # Of invented names, such as that of a package, an estimate may be too low.
    below = [count - most for most, count in zip(estimates, counts, strict=True) if most < count]
    assert len(below) <= len(lines) // 1_000 and max(below, default=0) <= 1
    assert sum(estimates) < 1.6 * sum(counts)
    assert max(count_many(cut)) <= 20
    assert all(line.startswith(kept) for line, kept in zip(lines, cut, strict=True))
    assert all((kept == line) == (most <= 20) for line, kept, most in zip(lines, cut, estimates, strict=True))
    assert tokens.truncate_estimated("会议改到星期五下午三点因为团队需要更多时间", 20)


@given(st.text())
def test_any_string_has_an_estimate(text: str) -> None:
    assert text.startswith(tokens.truncate_estimated(text, 9))
    assert tokens.truncate_estimated(text, tokens.estimated_tokens(text)) == text
