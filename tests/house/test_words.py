"""Words with no place in the code: those of learned representations (seed 003), those of unfinished work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "benchmarks", "examples", "tools")
# Pieced together, so that this file does not hold them.
LEARNED = re.compile("|".join(("embed" + "ding", "vec" + "tor", "cos" + "ine")), re.IGNORECASE)
UNFINISHED = re.compile(r"#.*?\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def test_there_are_files_to_look_at() -> None:
    assert len(FILES) > 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_python_file_holds_such_a_word(path: Path) -> None:
    content = path.read_text(encoding="utf-8")
    for pattern in (LEARNED, UNFINISHED):
        found = pattern.search(content)
        assert found is None, f"line {content[: found.start()].count(chr(10)) + 1} holds {found.group()!r}"


def test_the_patterns_find_what_they_are_for() -> None:
    assert LEARNED.search("an array-wise " + "Vec" + "torised sum")
    assert UNFINISHED.search("# TO" + "DO: later")
