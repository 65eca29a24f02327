"""The glossary: in alphabetical order, each term once, and its Python names exist."""

from __future__ import annotations

import re

from tests.house.sources import ROOT, text

GLOSSARY = text(ROOT / "docs" / "glossary.md")


def test_the_glossary_is_in_alphabetical_order_and_defines_each_term_once() -> None:
    terms = re.findall(r"^\* \*\*(.+?)\*\*: ", GLOSSARY, re.MULTILINE)
    assert len(terms) > 100
    assert terms == sorted(set(terms), key=str.lower)


def test_the_python_names_of_the_glossary_exist() -> None:
    """Class names, and what is given as the Python name of a term."""
    found = set(re.findall(r"`([A-Z][a-z]\w*[a-z])(?:\.(?!md)\w+)?`", GLOSSARY))
    found |= set(re.findall(r"Python:\s+`(\w+)`", GLOSSARY))
    sources = "\n".join(text(path) for path in sorted((ROOT / "src").rglob("*.py")))
    defined = re.findall(r"^(?:class|def) (\w+)|^(\w+)(?:: \w.*?)? = ", sources, re.MULTILINE)
    assert found - {name for pair in defined for name in pair} == set()
