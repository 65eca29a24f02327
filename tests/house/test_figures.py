"""Figures of the documentation match the recorded results, and plots are legible in light and dark themes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import pytest

from tests.house.sources import ROOT, listed, named, text

RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
PLOTS = sorted((ROOT / "docs" / "plots").glob("*.svg"))
Results = dict[str, dict[str, Any]]
"""The recorded results, by name."""

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import figures

    return figures


def test_tables_and_plots_are_those_of_the_results() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "figures.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, f"run `make figures`:\n{ran.stdout}{ran.stderr}"


def test_every_result_says_when_where_and_at_which_load_it_was_measured() -> None:
    wrong = []
    for path in RESULTS:
        result = json.loads(text(path))
        wrong += [
            f"{named(path)}: {what}"
            for what, right in {
                "its name is not that of its file": result["name"] == path.stem,
                "it does not say when": re.match(r"\d{4}-\d\d-\d\dT", result["started"]),
                "it does not say where": {"python", "system", "cores"} <= set(result["machine"]),
                "it has no rows": result["rows"],
            }.items()
            if not right
        ]
    assert not wrong, listed(wrong)


def test_no_column_of_a_result_is_left_out(figures: ModuleType) -> None:
    result = {
        "name": "search_scale",
        "started": "2026-01-01T00:00:00Z",
        "machine": {"system": "Linux", "cores": 2, "python": "3.11"},
        "rows": [{"chunks": 10, "RLM-MEM p50": 1.5, "new_figure": 77}],
        "facts": {"goal": "held", "by size": {"10": 1.25}, "cases": [{"what": "a|b", "kept": "2/2"}]},
    }
    page = figures.rendered(result)
    assert "| 10 | 1.50 |" in page
    assert "new figure" in page
    assert "77" in page
    assert "Goal: held." in page
    assert "By size: 10 1.25." in page
    assert "| a\\|b | 2/2 |" in page


def test_what_the_page_selects_of_a_result_is_there(figures: ModuleType) -> None:
    results = figures.read_results(figures.RESULTS)
    wrong = []
    for name, chosen in figures.selection.SELECTED.items():
        for table in chosen.tables(results[name]):
            present = {column for row in table.rows for column in row}
            wrong += [f"{name} has no {column!r}" for column in table.columns if column not in present]
        wrong += [
            f"{name} has no fact {fact!r}" for fact in chosen.facts if fact not in results[name]["facts"]
        ]
    assert not wrong, listed(wrong)


def test_every_result_is_shown_completely_somewhere(figures: ModuleType) -> None:
    results = figures.read_results(figures.RESULTS)
    assert figures._without_a_place(results | {"new": {}}) == ["new"]


def test_what_speaks_against_the_product_is_said_with_its_figures(figures: ModuleType) -> None:
    def said(results: Results) -> str:
        return "\n".join(figures.selection.limits(results, figures.shown))

    results = figures.read_results(figures.RESULTS)
    rows = [row | {"of these applied": 0} if "corpus" in row else row for row in results["diary"]["rows"]]
    assert ", 0 replaced the outdated memory" in said(results | {"diary": {"rows": rows}})
    for milliseconds, missed in ((49, False), (51, True)):
        rows = [
            row | {"p50_ms": milliseconds} if "calls" in row["operation"] else row
            for row in results["sandbox"]["rows"]
        ]
        assert ("the target is 50" in said(results | {"sandbox": {"rows": rows}})) is missed


def test_marks_are_shown_by_kind_of_question(figures: ModuleType) -> None:
    marks = [
        (1, "beam/a/event_ordering/1", 1),
        (1, "beam/b/event_ordering/1", 0.5),
        (2, "beam/a/event_ordering/1", 0.25),
    ]
    questions = [{"round": number, "id": name, "mark": mark} for number, name, mark in marks]
    questions.append({"round": 1, "id": "locomo/other", "mark": 0})
    assert figures._marks_by_kind(questions, (1, 2)) == [
        {"kind of question": "event ordering", "round 1": 0.75, "round 2": 0.25}
    ]


def test_missing_figures_are_marked(figures: ModuleType) -> None:
    page = "<!-- figures: failover -->\n| old |\n<!-- end of figures -->"
    assert "Not measured yet." in figures.filled(page, {})
    assert "old" not in figures.filled(page, {})


def test_a_curve_leaves_out_values_without_a_logarithm(figures: ModuleType) -> None:
    drawing = figures.plots.curves("T", "x", "y", {"one": [(1000, 2.0), (10_000, 0)], "none": []})
    ET.fromstring(drawing)
    assert drawing.count("<circle") == 2  # one in the plot, one beside the name


def test_the_text_of_every_plot_can_be_read_on_a_light_and_on_a_dark_page() -> None:
    wrong = [f"{named(path)}: {problem}" for path in PLOTS for problem in unreadable(text(path))]
    assert not wrong, listed(wrong)


def unreadable(drawing: str) -> Iterator[str]:
    """What keeps somebody from reading a plot."""
    root = ET.fromstring(drawing)
    if "prefers-color-scheme:dark" not in drawing:
        yield "it has no colours for a dark page"
        return
    if not root.get("aria-label"):
        yield "a screen reader has nothing to say"
    width = float(root.get("width", "0"))
    for label in root.iter(f"{SVG}text"):
        if label.get("class") not in ("text", "faint"):
            yield f"the colour of {label.text!r} does not follow the page"
        if not 0 <= float(label.get("x", "-1")) <= width:
            yield f"{label.text!r} lies outside"
    day, night = drawing.split("@media", 1)[0], drawing.split("@media", 1)[1].split("</style>")[0]
    for name, scheme in (("light", day), ("dark", night)):
        paper = luminance(re.search(r"\.page\{fill:(#\w{6})", scheme))
        for kind in ("text", "faint"):
            ink = luminance(re.search(rf"\.{kind}\{{fill:(#\w{{6}})", scheme))
            high, low = max(ink, paper), min(ink, paper)
            if (high + 0.05) / (low + 0.05) < 4.5:
                yield f"{kind} is too faint on a {name} page"


def luminance(found: re.Match[str] | None) -> float:
    """How bright a colour is, 0 to 1 (WCAG)."""
    assert found is not None
    parts = [int(found[1][place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_one_command_runs_every_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import bench

    started = {
        path.stem for path in (ROOT / "benchmarks").glob("*.py") if '__name__ == "__main__"' in text(path)
    }
    assert sorted([*(one.name for one in bench.ALL), *bench.NO_BENCHMARKS]) == sorted(started)


#: Rounded figures of other pages: the page, the words around them, and what the results have.
ROUNDED: tuple[tuple[str, str, Callable[[Results], Sequence[float]]], ...] = (
    ("operations.md", r"\| 1,000 \| (\d+) MB \| (\d+) MB \|", lambda results: sizes(results, 1_000)),
    ("operations.md", r"\| 10,000 \| (\d+) MB \| (\d+) MB \|", lambda results: sizes(results, 10_000)),
    ("operations.md", r"\| 100,000 \| (\d+) MB \| (\d+) MB \|", lambda results: sizes(results, 100_000)),
    ("operations.md", r"search takes about (\d+) ms", lambda results: searches(results)),
    ("operations.md", r"wait at most ([\d.]+) s", lambda results: waits(results)),
    ("guides/documents.md", r"takes about (\d+) ms", lambda results: searches(results)),
    (
        "explanation/when-not-to-use.md",
        r"about (\d+) MB per thousand",
        lambda results: sizes(results, 1_000)[:1],
    ),
    ("many-machines.md", r"about (\d) to (\d) times as long", lambda results: slowdown(results)),
)
TOLERANCE = 0.3
"""How far a rounded figure may be from its result, as a share of it."""


def sizes(results: Results, chunks: int) -> tuple[float, float]:
    """MB on disk and in memory for short notes."""
    row = next(row for row in results["sizing"]["rows"] if row["chunks"] == chunks and "notes" in row["kind"])
    return row["KB per chunk"] * chunks / 1e3, row["memory_after_searches_mb"]


def searches(results: Results) -> Sequence[float]:
    """Milliseconds of a search in the largest store."""
    return [max(results["search_scale"]["rows"], key=lambda row: row["chunks"])["RLM-MEM p50"]]


def waits(results: Results) -> Sequence[float]:
    """The longest seconds of a write during a backup."""
    return [max(row["during the backup, max ms"] for row in results["backup"]["rows"]) / 1e3]


def slowdown(results: Results) -> Sequence[float]:
    times = results["cluster"]["facts"]["Time relative to one PostgreSQL server"].values()
    return min(times), max(times)


@pytest.mark.parametrize(("page", "words", "measured"), ROUNDED, ids=[one[1] for one in ROUNDED])
def test_rounded_figures_of_other_pages_are_near_the_results(
    figures: ModuleType, page: str, words: str, measured: Callable[[Results], Sequence[float]]
) -> None:
    found = re.search(words, re.sub(r"\s+", " ", text(ROOT / "docs" / page)))
    assert found, f"docs/{page} does not say this any more: remove it here, too"
    for told, real in zip(found.groups(), measured(figures.read_results(figures.RESULTS)), strict=True):
        assert abs(float(told) - real) <= TOLERANCE * real, (
            f"docs/{page} says {found[0]!r}, measured is {real:.3g}"
        )


_NUMBER = r"(?:[\d.,]+|two|three|four|five|six|seven|eight|nine|ten)(?: (?:to|in|of) \w+)?"
_MEASURED = re.compile(
    rf"\b(?:about|some|nearly|roughly) {_NUMBER} (?:ms|s|seconds?|milliseconds?|µs|[KMG]B|times)\b"
    rf"|\b{_NUMBER} times as (?:fast|slow)|\btimes (?:faster|slower)\b|\b\d+ of \d+\b"
)
"""What only a measurement can tell. Limits, defaults and waiting times are worded otherwise."""

_NOT_PROSE = re.compile(r"<!-- figures.*?end of figures -->|^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)


def unbacked(page: str) -> Iterator[str]:
    """What a page says as measured in a paragraph or row without a link to where it comes from."""
    for part in re.split(r"\n\s*\n|\n(?=\s*[*|])", _NOT_PROSE.sub("", page)):
        said = re.sub(r"\s+", " ", part)
        if "benchmarks" not in said and "#sizing" not in said:
            yield from (found[0] for found in _MEASURED.finditer(said))


def test_what_pages_say_as_measured_names_its_benchmark() -> None:
    pages = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
    wrong = [
        f"{named(path)}: {said!r} needs a link to its benchmark, and a line in ROUNDED; or say it without a figure"
        for path in pages
        if path.name != "benchmarks.md"
        for said in unbacked(text(path))
    ]
    assert not wrong, listed(wrong)


def test_the_pages_of_benchmarks_have_no_table_of_figures_beside_the_filled_ones() -> None:
    outside = _NOT_PROSE.sub(
        "", text(ROOT / "docs" / "benchmarks.md") + text(ROOT / "docs" / "benchmarks" / "tables.md")
    )
    assert not re.findall(r"^\|.*\|\s*[\d.,]+\s*\|.*$", outside, re.MULTILINE)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("A search takes about 10 ms.", ["about 10 ms"]),
        ("It is five times as fast.", ["five times as fast"]),
        ("It is right in 54 of 84 questions.", ["54 of 84"]),
        ("A search takes about 10 ms ([figures](benchmarks.md#growth)).", []),
        ("A hook ends within 4 seconds, a request within 30 seconds; `about 10 ms`.", []),
    ],
)
def test_a_figure_without_its_benchmark_is_found(said: str, found: list[str]) -> None:
    assert list(unbacked(said)) == found


def test_there_are_results_and_plots() -> None:
    assert len(RESULTS) > 5
    assert PLOTS
