"""Words that the code must not contain: those of learned representations, and those of unfinished work."""

from __future__ import annotations

import re

from tests.house.sources import ROOT, listed, named, text

FOLDERS = ("src", "tests", "benchmarks", "examples", "tools")
# Pieced together, so that this file does not hold them.
LEARNED = re.compile("|".join(("embed" + "ding", "vec" + "tor", "cos" + "ine")), re.IGNORECASE)
UNFINISHED = re.compile(r"#.*?\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


def test_no_python_file_holds_such_a_word() -> None:
    assert len(FILES) > 20
    wrong = [
        f"{named(path)}:{text(path)[: found.start()].count(chr(10)) + 1}: {found.group()!r}"
        for path in FILES
        for pattern in (LEARNED, UNFINISHED)
        for found in pattern.finditer(text(path))
    ]
    assert not wrong, listed(
        wrong, "use another word: nothing here is a learned representation, or unfinished"
    )


def test_the_patterns_find_what_they_are_for() -> None:
    assert LEARNED.search("an array-wise " + "Vec" + "torised sum")
    assert UNFINISHED.search("# TO" + "DO: later")
