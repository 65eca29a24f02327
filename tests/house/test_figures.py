"""The benchmarks page matches the recorded results, and its plots are legible in light and dark themes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.house.sources import ROOT, listed, named, text

RESULTS = sorted((ROOT / "benchmarks" / "results").glob("*.json"))
PLOTS = sorted((ROOT / "docs" / "plots").glob("*.svg"))
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


def test_there_are_results_and_plots() -> None:
    assert len(RESULTS) > 5
    assert PLOTS
