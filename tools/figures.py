"""Writes the tables and plots of docs/benchmarks.md and docs/benchmarks/tables.md from benchmarks/results.

Of large results, the first page shows what `selection.py` selects, and the second page everything. A place without a
result is marked. `python tools/figures.py --check` writes nothing and fails where a page, or a plot, differs from the
results.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import plots
import selection

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "benchmarks" / "tables.md")
RESULTS = ROOT / "benchmarks" / "results"
DRAWINGS = ROOT / "docs" / "plots"
PLACE = re.compile(r"<!-- figures: (\w+)(, complete)? -->\n.*?<!-- end of figures -->", re.DOTALL)
"""Where a page has the figures of a result, or all of them."""

#: What a benchmark puts where it had nothing to measure with.
NOT_MEASURED = "not measured"

Result = dict[str, Any]
Rows = list[dict[str, Any]]


#: Results with more columns than a page is wide: the columns of each table, by its title. The others come last.
PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "search_scale": {
        "Search latency in milliseconds; FTS5 is given the whole question, or only its four best words": (
            "chunks", "RLM-MEM p50", "RLM-MEM p95", "RLM-MEM, candidates only, p50",
            "RLM-MEM, candidates only, p95", "FTS5 p50", "FTS5 p95", "FTS5, best words, p50",
            "FTS5, best words, p95", "times faster than FTS5", "times faster than FTS5, best words",
        ),
        "Opening, and visibility of writes by another process": (
            "chunks", "open, cold, ms", "first search, cold, ms", "writes of another process found",
            "search after such a write, ms",
        ),
        "Build time and size": (
            "chunks", "rows written, s", "postings built, s", "FTS5 built, s", "postings MB",
            "rows and segments MB", "FTS5 MB", "peak memory MB",
        ),
    },
    "postgres_search": {
        "Search latency in milliseconds: complete hits, and ids only; the local store for comparison; PostgreSQL's"
        " built-in full-text search, given the whole question or only its four best words": (
            "chunks", "search p50", "search p95", "ids p50", "ids p95", "local ids p50", "local ids p95",
            "built-in p50", "built-in p95", "built-in, best words, p50", "built-in, best words, p95",
            "same hits and scores as local", "statements per search",
        ),
        "Filtered searches and durable writes, milliseconds": (
            "chunks", "by type p50", "by type p95", "by period p50", "by period p95", "insert p50",
            "insert p95", "archive p50", "in batches, chunks/s",
        ),
        "Disk space and rebuild time": (
            "chunks", "postings and dictionary MB", "words of conversations MB", "texts of chunks MB",
            "rows MB", "built-in index MB", "built-in, total MB", "loading rows s", "building postings s",
            "building the built-in index s",
        ),
    },
    "growth": {
        "Writing and reading, milliseconds, p50; the floor is one synced file and one synced SQLite commit": (
            "chunks", "store", "remember", "remember p95", "floor", "floor p95", "get", "search",
            "50 chunks of a tag", "all tags", "one conversation", "50 conversations", "open",
        ),
        "Links, recalls and tiers, milliseconds, p50 unless stated otherwise; a recall excludes its model's time": (
            "chunks", "store", "add a link", "three hops of links", "recall", "record a use",
            "consolidation, dry run", "imported, chunks/s",
        ),
        "Maintenance": (
            "chunks", "store", "remembered in batches, chunks/s", "rebuilt, chunks/s", "rebuild s",
            "rebuild, CPU of the writer s", "check s", "findings", "checkpoint s", "index MB",
        ),
    },
    "diary": {
        "What is replaced, or waits for review": (
            "corpus", "entries", "changes stated in the text", "of these applied",
            "applied, or the outdated memory named to the agent", "wrong replacements", "precision",
            "other changes in review", "stated changes in review", "cases in review",
        ),
        "What questions get": (
            "corpus", "outdated first hits", "with the later note", "outdated without a later note",
            "first hit gives the valid value", "outdated answers", "new value given", "look-alike questions",
            "look-alike is the first hit", "answered with the look-alike", "answered with both",
        ),
        "What questions as of a day between two statements get": (
            "corpus", "questions as of a day", "right first hit as of it", "right answer as of it",
        ),
        "Notes among which little changes": (
            "set", "questions", "right first hit by words alone", "right first hit", "moved behind another note",
        ),
    },
}  # fmt: skip

#: Columns that say what a row is about.
_KEYS = ("chunks", "store", "corpus")

#: Results of which the page has only the last rows.
_LAST_ROWS = {"host_trial": 10}

#: Results with a line for each question: the rounds whose mean marks are shown for each kind of question.
_BY_KIND = {"host_trial": (36, 37, 39, 42, 43)}

#: Plots above the tables of a result, by the names of their files.
PICTURES: dict[str, dict[str, str]] = {
    "growth": {"growth": "Latency as a memory grows"},
    "peers": {"peers_add": "Time to add a memory", "peers_search": "Search latency"},
    "search_scale": {"search": "Search latency by size of the store"},
}


def main() -> int:
    """Fill every marked place of the pages and draw every plot; or list the differences."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail where something differs")
    options = parser.parse_args()
    if options.check:
        results = read_results(RESULTS)
        stale = [_named(page) for page in PAGES if filled(_text(page) or "", results) != _text(page)]
        stale += [
            f"docs/plots/{name}.svg"
            for name, drawing in drawn(results).items()
            if _text(DRAWINGS / f"{name}.svg") != drawing
        ]
        stale += [f"no place for all of {name}" for name in _without_a_place(results)]
        print("\n".join(stale) or "the pages of benchmarks match the results")
        return 1 if stale else 0
    fill()
    return 0


def fill() -> None:
    """Write the pages and the plots."""
    results = read_results(RESULTS)
    for name in _without_a_place(results):
        print(f"no page has a place for all of {name}")
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8"), results), encoding="utf-8")
    for name, drawing in drawn(results).items():
        plots.write(DRAWINGS / f"{name}.svg", drawing)


def _without_a_place(results: dict[str, Result]) -> list[str]:
    """The results of which no page shows everything."""
    places = [found for page in PAGES for found in PLACE.finditer(page.read_text(encoding="utf-8"))]
    complete = {found[1] for found in places if found[2] or found[1] not in selection.SELECTED}
    return [name for name in results if name not in complete]


def _named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def read_results(folder: Path) -> dict[str, Result]:
    """Every result, by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def filled(page: str, results: dict[str, Result]) -> str:
    """The page with the figures of these results."""

    there = drawn(results)

    def put(found: re.Match[str]) -> str:
        name, complete = found[1], bool(found[2])
        pictures = "".join(
            f"\n![{title}](plots/{plot}.svg)\n"
            for plot, title in PICTURES.get(name, {}).items()
            if plot in there and not complete
        )
        if name == "overview":
            rows = selection.overview(results, shown)
            places = dict.fromkeys(map(place_of, results.values()))
            inside = _block([_table(rows, list(rows[0]), "")], [f"Measured on {' and on '.join(places)}."])
        elif name == "limits":
            inside = "\n" + "\n".join(f"* {one}" for one in selection.limits(results, shown)) + "\n\n"
        elif name not in results:
            inside = "\nNot measured yet.\n\n"
        elif complete or name not in selection.SELECTED:
            inside = rendered(results[name], where=complete)
        else:
            inside = selected(results[name])
        return f"<!-- figures: {name}{found[2] or ''} -->\n{pictures}{inside}<!-- end of figures -->"

    return PLACE.sub(put, page)


# --- tables ------------------------------------------------------------------------------------------------


def rendered(result: Result, *, where: bool = True) -> str:
    """One result as tables, its facts, and when and, if wanted, where it was measured."""
    result = {**result, "rows": result["rows"][-_LAST_ROWS.get(result["name"], 0) :]}
    blocks = [_table(rows, columns, title) for title, columns, rows in tables(result)]
    unmeasured = [name for name in _columns(result["rows"]) if _unmeasured(result["rows"], name)]
    closing = [_measured(result, where=where)]
    if unmeasured:
        closing.append(f"Not measured: {', '.join(map(_heading, unmeasured))}.")
    facts = result.get("facts", {})
    blocks += _marks(result)
    blocks += [
        _table(value, list(value[0]), _sentence(name)) for name, value in facts.items() if _is_rows(value)
    ]
    return _block(blocks, [*closing, *_said(facts)])


def selected(result: Result) -> str:
    """What the page shows of one result, and where the rest is."""
    name, chosen = result["name"], selection.SELECTED[result["name"]]
    blocks = [_table(rows, columns, title) for title, columns, rows in chosen.tables(result)]
    closing = f"{_measured(result, where=False)} [All figures](benchmarks/tables.md#{name})."
    return _block(
        [*blocks, *_marks(result)], [closing, *_said({fact: result["facts"][fact] for fact in chosen.facts})]
    )


def _block(blocks: Sequence[str], closing: Sequence[str]) -> str:
    return "\n" + "\n".join([*blocks, *closing]) + "\n\n"


def place_of(result: Result) -> str:
    """The machine of a result."""
    machine = result["machine"]
    return f"{machine['system']}, {machine['cores']} cores, Python {machine['python']}"


def _measured(result: Result, *, where: bool) -> str:
    load = result["machine"].get("load_1min")
    said = f"Measured {result['started'][:10]}" + (f" on {place_of(result)}" if where else "")
    return said + (f", load {load:.1f}." if load is not None else ".")


def _is_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _said(facts: dict[str, Any]) -> Iterator[str]:
    """A line for each fact that is no table."""
    for name, value in facts.items():
        if isinstance(value, dict) and value and not any(isinstance(v, dict | list) for v in value.values()):
            yield f"{_sentence(name)}: {', '.join(f'{key} {shown(item)}' for key, item in value.items())}."
        elif not isinstance(value, dict | list):
            yield f"{_sentence(name)}: {shown(value)}."


def _marks(result: Result) -> list[str]:
    if not (rounds := _BY_KIND.get(result["name"], ())):
        return []
    marks = _marks_by_kind(result["questions"], rounds)
    return [_table(marks, list(marks[0]), "Mean marks by kind of question")]


def _marks_by_kind(questions: Rows, rounds: Sequence[int]) -> Rows:
    """The mean mark of each kind of question (the third part of an id of four) in each of these rounds."""
    found: dict[str, dict[int, list[float]]] = {}
    for one in questions:
        parts = one["id"].split("/")
        if one["round"] in rounds and len(parts) == 4:
            kind = parts[2].replace("_", " ")
            found.setdefault(kind, {}).setdefault(one["round"], []).append(one["mark"])
    return [
        {"kind of question": kind}
        | {f"round {number}": sum(marks[number]) / len(marks[number]) for number in rounds if number in marks}
        for kind, marks in sorted(found.items())
    ]


def _columns(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _unmeasured(rows: Rows, column: str) -> bool:
    return all(row.get(column) == NOT_MEASURED for row in rows)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def tables(result: Result) -> Iterator[tuple[str, Sequence[str], Rows]]:
    """Title, columns and rows of each table of a result; no column is left out that was measured."""
    rows: Rows = result["rows"]
    measured = [name for name in _columns(rows) if not _unmeasured(rows, name)]
    parts = PARTS.get(result["name"], {})
    if not parts:  # a table for the rows of each kind, which have a first column of their own
        for first in dict.fromkeys(next(iter(row)) for row in rows):
            kind = [row for row in rows if first in row]
            yield "", [name for name in _columns(kind) if name in measured], kind
        return
    for title, columns in parts.items():
        kind = [row for row in rows if any(name in row for name in columns if name not in _KEYS)]
        if kind:
            yield title, columns, kind
    named = {name for columns in parts.values() for name in columns}
    left = [name for name in measured if name not in named]
    if left:
        yield "More", [measured[0], *left], rows


#: Words of column names that are not written as they are.
_WRITTEN = {"cpu": "CPU", "kb": "KB", "mb": "MB", "usd": "USD"}


def _heading(column: str) -> str:
    return " ".join(_WRITTEN.get(word, word) for word in column.replace("_", " ").split(" "))


def _table(rows: Rows, columns: Sequence[str], title: str) -> str:
    lines = [
        "| " + " | ".join(map(_heading, columns)) + " |",
        "|" + "---|" * len(columns),
        *(
            "| " + " | ".join(shown(row.get(name, "")) for name in columns) + " |"
            for row in rows
            if any(name in row for name in columns)
        ),
        "",
    ]
    return "\n".join([f"{title}:", "", *lines] if title else lines)


def shown(value: object) -> str:
    """A cell: numbers with the digits that matter."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        text = str(value).replace("|", "\\|").replace("\n", " ")
        return f"`{text}`" if " --" in text else text  # else the site makes a dash of the hyphens
    if isinstance(value, int) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:z.1f}" if abs(value) >= 10 else f"{value:z.2f}"  # z: no minus before a zero


# --- plots -------------------------------------------------------------------------------------------------


def drawn(results: dict[str, Result]) -> dict[str, str]:
    """Every plot with figures, by the name of its file."""
    made: dict[str, str] = {}
    if "growth" in results:
        rows = results["growth"]["rows"]
        stores = list(dict.fromkeys(row["store"] for row in rows))
        lines = {
            f"{name}, {store}" if len(stores) > 1 else name: _points(
                [row for row in rows if row["store"] == store], "chunks", name
            )
            for store in stores
            for name in ("remember", "search", "50 chunks of a tag")
        }
        made["growth"] = plots.curves("Latency as a memory grows", "chunks", "milliseconds, p50", lines)
    if "search_scale" in results:
        rows = results["search_scale"]["rows"]
        wanted = {
            "RLM-MEM p50": "RLM-MEM",
            "FTS5 p50": "SQLite FTS5",
            "FTS5, best words, p50": "FTS5, best words",
        }
        lines = {shown_as: _points(rows, "chunks", name) for name, shown_as in wanted.items()}
        made["search"] = plots.curves(
            "Search latency by size of the store", "chunks", "milliseconds, p50", lines
        )
    if "peers" in results:
        made |= _peer_plots(results["peers"]["rows"])
    return {name: drawing for name, drawing in made.items() if drawing}


def _peer_plots(rows: Rows) -> dict[str, str]:
    sizes = sorted({row["memories"] for row in rows})
    titles = {"add p50": "Time to add a memory", "search p50": "Search latency"}
    made = {}
    for column, title in titles.items():
        most = max(
            sizes,
            key=lambda size, column=column: (
                sum(_is_number(row.get(column)) for row in rows if row["memories"] == size),
                size,
            ),
        )
        values = {
            str(row["memory"]): float(row[column])
            for row in rows
            if row["memories"] == most and _is_number(row.get(column))
        }
        if len(values) > 1:
            name = f"peers_{column.split(' ')[0]}"
            made[name] = plots.bars(f"{title}, {most:,} memories", "milliseconds, p50", values)
    return made


def _points(rows: Rows, x: str, y: str) -> Sequence[tuple[float, float]]:
    return [(row[x], row[y]) for row in rows if _is_number(row.get(x)) and _is_number(row.get(y))]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


if __name__ == "__main__":
    sys.exit(main())
