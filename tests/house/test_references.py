"""References resolve inside the repository: nothing outside of it is cited, every named page and heading exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.house.sources import PAGES, ROOT, listed, named, nodes, text
from tests.typed import present

FOLDERS = ("src", "tests", "benchmarks", "examples", "tools")
PROGRAMS = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
# Pieced together, so that this file does not hold them.
OUTSIDE = {
    "a document that is not here": re.compile(
        r"\b[Ss]" + r"eeds? 00\d|\b(?:the|these) se" + r"eds\b|\bDESI" + r"GN\b|\b(?:RETRI" + r"EVAL|CONTIN"
        r"UUM|SAND" + r"BOX|FORM" + r"ATS|HOU" + r"SE|TRU" + r"ST|STY" + r"LE)\.md\b"
        r"|\bspec(?:ification)?s? 00\d|\b[Rr]econ" + r"ciliation"
    ),
    "a row or section of a page that is not named": re.compile(
        r"(?<!RFC 9110, )\(?\bsec" + r"tion \d|\(ro" + r"ws? \d"
    ),
    "the mark of a lost line break": re.compile("\u23ce"),
}
PAGE = re.compile(r"\bdocs/[\w/-]+\.md\b")
PLACE = re.compile(r"\b(docs/[\w/-]+\.md), ((?!and\b|or\b)\w[\w -]*?)(?=[.,;:)\n\"'|]|$)", re.MULTILINE)
FILE = re.compile(r"`([\w./-]+\.(?:py|css|html|sh))`")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
BROKEN = re.compile(r"\"\s*\n\s*\"")
LONG_TEXT = re.compile(r'"""(.*?)"""', re.DOTALL)


def found(pattern: re.Pattern[str], path: Path) -> list[str]:
    return [
        f"{named(path)}:{text(path).count(chr(10), 0, match.start()) + 1}: {match.group()!r}"
        for match in pattern.finditer(text(path))
    ]


def headings(page: str) -> set[str]:
    """Headings of a page, and of docs/spec/decisions.md the numbers of its rows."""
    content = text(ROOT / page)
    return set(HEADING.findall(content)) | set(re.findall(r"^\| (\d+) \|", content, re.MULTILINE))


def test_no_document_outside_the_repository_is_cited() -> None:
    wrong = [
        f"{hit} ({what})"
        for what, pattern in OUTSIDE.items()
        for path in [*PROGRAMS, *PAGES]
        for hit in found(pattern, path)
    ]
    assert not wrong, listed(wrong)


def test_every_page_that_a_program_names_exists() -> None:
    wrong = [
        f"{named(path)} names {page}, which is not there"
        for path in PROGRAMS
        for page in sorted(set(PAGE.findall(text(path))))
        if not (ROOT / page).is_file()
    ]
    assert not wrong, listed(wrong)


def test_every_file_that_a_page_for_contributors_names_exists() -> None:
    wrong = [
        f"{page} names {file}, which is neither a path of the repository nor one below src/rlm_mem"
        for page in ("CONTRIBUTING.md", "docs/architecture.md", "docs/extending.md")
        for file in sorted(set(FILE.findall(text(ROOT / page))))
        if not (ROOT / file).is_file() and not (ROOT / "src" / "rlm_mem" / file).is_file()
    ]
    assert not wrong, listed(wrong)


def test_every_heading_that_a_program_names_exists() -> None:
    wrong = []
    for path in PROGRAMS:
        joined = re.sub(r"\s*\n\s*(?:#:? )?", " ", text(path))  # a reference may go on in the next line
        for page, heading in PLACE.findall(joined):
            if (ROOT / page).is_file() and page.startswith("docs/spec/") and not is_heading(page, heading):
                wrong.append(f"{named(path)} names {page}, {heading}")
    assert not wrong, listed(wrong)


def is_heading(page: str, words: str) -> bool:
    """Whether these words are a heading, or begin with one: prose may follow it ("…, Promotion and Retention")."""
    return any(words == one or words.startswith(f"{one} ") for one in headings(page))


def test_no_docstring_holds_the_quotes_of_a_wrong_line_break() -> None:
    wrong = [
        f"{named(path)}:{node.body[0].lineno}: {present(BROKEN.search(written)).group()!r}"
        for path in PROGRAMS
        if any(BROKEN.search(written) for written in LONG_TEXT.findall(text(path)))  # most need not be parsed
        for node in nodes(path)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (written := ast.get_docstring(node, clean=False))
        and BROKEN.search(written)
    ]
    assert not wrong, listed(wrong)


def test_the_patterns_find_what_they_are_for() -> None:
    samples = (
        "as se" + "ed 003 says",
        "(DESI" + "GN sec" + "tion 4)",
        "(ro" + "w 12)",
        "a\u23ceb",
        "See" + "d 001",
    )
    for sample in samples:
        assert any(pattern.search(sample) for pattern in OUTSIDE.values()), sample
    assert PLACE.findall("x (docs/spec/links.md, Automatic rules).") == [
        ("docs/spec/links.md", "Automatic rules")
    ]
    assert not is_heading("docs/spec/links.md", "No such heading")
    assert BROKEN.search('one "\n    "two')
