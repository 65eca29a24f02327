"""Writes the tables and plots of docs/benchmarks.md from benchmarks/results.

A place without a result is marked. `python tools/figures.py --check` writes nothing and fails where the page, or a
plot, differs from the results.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import plots

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
RESULTS = ROOT / "benchmarks" / "results"
DRAWINGS = ROOT / "docs" / "plots"
PLACE = re.compile(r"<!-- figures: (\w+) -->\n.*?<!-- end of figures -->", re.DOTALL)

#: What a benchmark puts where it had nothing to measure with.
NOT_MEASURED = "not measured"

Result = dict[str, Any]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Table:
    """Some columns of a result, under a heading of their own.

    Attributes:
        title: the heading above it.
        columns: their names in the result, and as they are shown.
    """

    title: str
    columns: dict[str, str] = field(default_factory=dict)


#: Results with more columns than a page is wide, in parts. Columns that are named nowhere come last, in a table "more".
PARTS: dict[str, tuple[Table, ...]] = {
    "pages": (
        Table(
            "Accessibility rules of axe",
            {
                "what": "what",
                "pages": "pages",
                "violations, light": "violations, light theme",
                "violations, dark": "violations, dark theme",
            },
        ),
        Table(
            "Lighthouse scores, out of 100",
            {
                "page": "page",
                "performance": "performance",
                "accessibility": "accessibility",
                "best practices": "best practices",
                "SEO": "SEO",
            },
        ),
    ),
    "search_scale": (
        Table(
            "Search latency in milliseconds; FTS5 is given the whole question, or only its four best words",
            {
                "chunks": "chunks",
                "recipe_p50": "RLM-MEM p50",
                "recipe_p95": "p95",
                "first_stage_p50": "RLM-MEM, candidates only, p50",
                "first_stage_p95": "p95",
                "fts5_p50": "FTS5 p50",
                "fts5_p95": "p95",
                "fts5_picked_p50": "FTS5, best words, p50",
                "fts5_picked_p95": "p95",
                "times_faster": "times faster than FTS5",
                "times_faster_than_picked": "times faster than FTS5, best words",
            },
        ),
        Table(
            "Opening, and visibility of writes by another process",
            {
                "chunks": "chunks",
                "cold_open_ms": "open, cold, ms",
                "cold_first_search_ms": "first search, cold, ms",
                "seen_by_other_process": "writes of another process found",
                "search_after_write_ms": "search after such a write, ms",
            },
        ),
        Table(
            "Build time and size",
            {
                "chunks": "chunks",
                "rows_s": "rows written, s",
                "postings_build_s": "postings built, s",
                "fts5_build_s": "FTS5 built, s",
                "postings_mb": "postings MB",
                "segments_and_rows_mb": "rows and segments MB",
                "fts5_mb": "FTS5 MB",
                "peak_rss_mb": "peak memory MB",
            },
        ),
    ),
    "postgres_search": (
        Table(
            "Search latency in milliseconds: complete hits, and ids only; the local store for comparison; PostgreSQL's"
            " built-in full-text search, given the whole question or only its four best words",
            {
                "chunks": "chunks",
                "search_p50": "search p50",
                "search_p95": "p95",
                "ids_p50": "ids p50",
                "ids_p95": "p95",
                "local_ids_p50": "local ids p50",
                "local_ids_p95": "p95",
                "peer_p50": "built-in p50",
                "peer_p95": "p95",
                "peer_picked_p50": "built-in, best words, p50",
                "peer_picked_p95": "p95",
                "same_as_local": "same hits and scores as local",
                "statements": "statements per search",
            },
        ),
        Table(
            "Filtered searches and durable writes, milliseconds",
            {
                "chunks": "chunks",
                "typed_p50": "by type p50",
                "typed_p95": "p95",
                "period_p50": "by period p50",
                "period_p95": "p95",
                "insert_p50": "insert p50",
                "insert_p95": "p95",
                "archive_p50": "archive p50",
                "batch_chunks_per_s": "in batches, chunks/s",
            },
        ),
        Table(
            "Disk space and rebuild time",
            {
                "chunks": "chunks",
                "postings_mb": "postings and dictionary MB",
                "words_mb": "words of conversations MB",
                "bodies_mb": "texts of chunks MB",
                "chunks_mb": "rows MB",
                "peer_index_mb": "built-in index MB",
                "peer_mb": "built-in, total MB",
                "rows_s": "loading rows s",
                "recount_s": "building postings s",
                "peer_build_s": "building the built-in index s",
            },
        ),
    ),
    "growth": (
        Table(
            "Writing and reading, milliseconds, p50; the floor is one synced file and one synced SQLite commit",
            {
                "chunks": "chunks",
                "backend": "store",
                "remember_p50": "remember",
                "remember_p95": "p95",
                "floor_p50": "floor",
                "floor_p95": "p95",
                "get_p50": "get",
                "search_p50": "search",
                "tag_page_p50": "50 chunks of a tag",
                "tags_p50": "all tags",
                "conversation_p50": "one conversation",
                "conversations_p50": "50 conversations",
                "open_p50": "open",
            },
        ),
        Table(
            "Links, recalls and tiers, milliseconds, p50 unless stated otherwise; a recall excludes its model's time",
            {
                "chunks": "chunks",
                "backend": "store",
                "add_link_p50": "add a link",
                "three_hops_p50": "three hops of links",
                "recall_p50": "recall",
                "use_p50": "record a use",
                "consolidate_ms": "consolidation, dry run",
                "imported_per_s": "imported, chunks/s",
            },
        ),
        Table(
            "Maintenance",
            {
                "chunks": "chunks",
                "backend": "store",
                "remembered_per_s": "remembered in batches, chunks/s",
                "rebuild_per_s": "rebuilt, chunks/s",
                "rebuild_s": "rebuild s",
                "rebuild_writer_cpu_s": "rebuild, CPU of the writer s",
                "check_s": "check s",
                "findings": "findings",
                "checkpoint_s": "checkpoint s",
                "index_mb": "index MB",
            },
        ),
    ),
    "telemetry": (
        Table("Cost of a hook while telemetry is off", {"what": "hook", "nanoseconds": "ns"}),
        Table(
            "Milliseconds, p50",
            {
                "what": "operation",
                "off_p50_ms": "off",
                "on_p50_ms": "on",
                "spans": "spans",
                "off_share_percent": "share of the hooks while off %",
            },
        ),
    ),
    "backup": (
        Table(
            "",
            {
                "chunks": "chunks",
                "backup_s": "backup s",
                "backup_mb": "file MB",
                "verify_s": "verify s",
                "restore_s": "restore s",
                "remember_p50": "remember without a backup, p50 ms",
                "remember_max": "max ms",
                "meanwhile": "remembered during the backup",
                "meanwhile_p50": "p50 ms",
                "meanwhile_p95": "p95 ms",
                "meanwhile_max": "max ms",
            },
        ),
    ),
    "host_trial": (
        Table(
            "",
            {
                "round": "round",
                "set": "set",
                "questions": "questions",
                "mark": "score",
                "programs": "programs per question",
                "chars read": "characters read",
                "chars as JSON": "characters as JSON",
                "chars written": "characters written",
            },
        ),
    ),
    "peers": (
        Table(
            "Latency in milliseconds; found: questions whose note is among the first ten hits, and tags of which every"
            " note is returned",
            {
                "what": "memory",
                "memories": "memories",
                "add_p50": "add p50",
                "add_p95": "p95",
                "get_p50": "get p50",
                "search_p50": "search p50",
                "search_right": "found",
                "tag_p50": "list a tag p50",
                "tag_right": "found",
                "open_ms": "start and open",
                "fill_per_s": "bulk insert, memories/s",
                "disk_mb": "disk MB",
            },
        ),
    ),
}


#: Plots above the tables of a result, by the names of their files.
PICTURES: dict[str, dict[str, str]] = {
    "growth": {"growth": "Latency as a memory grows"},
    "peers": {"peers_add": "Time to add a memory", "peers_search": "Search latency"},
    "search_scale": {"search": "Search latency by size of the store"},
}


def main() -> int:
    """Fill every marked place of the page and draw every plot; or list the differences."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail where something differs")
    options = parser.parse_args()
    results = read_results(RESULTS)
    page, drawings = PAGE.read_text(encoding="utf-8"), drawn(results)
    made = filled(page, results)
    if options.check:
        stale = ["docs/benchmarks.md"] if made != page else []
        stale += [name for name, drawing in drawings.items() if _text(DRAWINGS / f"{name}.svg") != drawing]
        stale += [f"no place for {name}" for name in results if f"<!-- figures: {name} -->" not in page]
        print("\n".join(stale) or "docs/benchmarks.md matches the results")
        return 1 if stale else 0
    fill()
    return 0


def fill() -> None:
    """Write the page and the plots."""
    results = read_results(RESULTS)
    page = PAGE.read_text(encoding="utf-8")
    for name in results:
        if f"<!-- figures: {name} -->" not in page:
            print(f"docs/benchmarks.md has no place for {name}")
    PAGE.write_text(filled(page, results), encoding="utf-8")
    for name, drawing in drawn(results).items():
        plots.write(DRAWINGS / f"{name}.svg", drawing)


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def read_results(folder: Path) -> dict[str, Result]:
    """Every result, by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}


def filled(page: str, results: dict[str, Result]) -> str:
    """The page with the figures of these results."""

    there = drawn(results)

    def put(found: re.Match[str]) -> str:
        name = found[1]
        inside = rendered(results[name]) if name in results else "\nNot measured yet.\n\n"
        pictures = "".join(
            f"\n![{title}](plots/{plot}.svg)\n"
            for plot, title in PICTURES.get(name, {}).items()
            if plot in there
        )
        inside = pictures + inside
        return f"<!-- figures: {name} -->\n{inside}<!-- end of figures -->"

    return PLACE.sub(put, page)


# --- tables ------------------------------------------------------------------------------------------------


def rendered(result: Result) -> str:
    """One result as tables, its facts, and where it was measured."""
    blocks = [_table(rows, columns, title) for title, columns, rows in tables(result)]
    machine = result["machine"]
    place = f"{machine['system']}, {machine['cores']} cores, Python {machine['python']}"
    load = machine.get("load_1min")
    closing = [
        f"Measured {result['started'][:10]} on {place}" + (f", load {load:.1f}." if load is not None else ".")
    ]
    unmeasured = [name for name in _columns(result["rows"]) if _unmeasured(result["rows"], name)]
    if unmeasured:
        closing.append(f"Not measured: {', '.join(map(_heading, unmeasured))}.")
    for name, value in result.get("facts", {}).items():
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            blocks.append(_table(value, {key: key for key in value[0]}, _sentence(name)))
        elif (
            isinstance(value, dict) and value and not any(isinstance(v, dict | list) for v in value.values())
        ):
            said = ", ".join(f"{key} {shown(item)}" for key, item in value.items())
            closing.append(f"{_sentence(name)}: {said}.")
        elif not isinstance(value, dict | list):
            closing.append(f"{_sentence(name)}: {shown(value)}.")
    return "\n" + "\n".join(blocks) + "\n" + "\n".join(closing) + "\n\n"


def _columns(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _unmeasured(rows: Rows, column: str) -> bool:
    return all(row.get(column) == NOT_MEASURED for row in rows)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def tables(result: Result) -> Iterator[tuple[str, dict[str, str], Rows]]:
    """Title, columns and rows of each table of a result; no column is left out that was measured."""
    rows: Rows = result["rows"]
    present = _columns(rows)
    named: set[str] = set()
    for part in PARTS.get(result["name"], ()):
        columns = {name: shown_as for name, shown_as in part.columns.items() if name in present}
        values = [row for row in rows if any(name in row for name in list(columns)[1:])]
        if len(columns) > 1 and values:
            named |= set(columns)
            yield part.title, columns, values
    left = [name for name in present if name not in named and not _unmeasured(rows, name)]
    if left:
        first = [present[0]] if named else []
        yield (
            "More" if named else "",
            {name: _heading(name) for name in [*first, *left]},
            rows,
        )


#: Words of column names that are not written as they are.
_WRITTEN = {"cpu": "CPU", "kb": "KB", "mb": "MB", "usd": "USD"}


def _heading(column: str) -> str:
    return " ".join(_WRITTEN.get(word, word) for word in column.replace("_", " ").split(" "))


def _table(rows: Rows, columns: dict[str, str], title: str) -> str:
    lines = [
        "| " + " | ".join(columns.values()) + " |",
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
        return str(value).replace("|", "\\|").replace("\n", " ")
    if isinstance(value, int) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:z.1f}" if abs(value) >= 10 else f"{value:z.2f}"  # z: no minus before a zero


# --- plots -------------------------------------------------------------------------------------------------


def drawn(results: dict[str, Result]) -> dict[str, str]:
    """Every plot with figures, by the name of its file."""
    made: dict[str, str] = {}
    if "growth" in results:
        rows = results["growth"]["rows"]
        wanted = {"remember_p50": "remember", "search_p50": "search", "tag_page_p50": "50 chunks of a tag"}
        several = len({row.get("backend") for row in rows}) > 1
        lines = {
            f"{shown_as}, {backend}" if several else shown_as: _points(
                [row for row in rows if row.get("backend") == backend], "chunks", name
            )
            for backend in dict.fromkeys(row.get("backend") for row in rows)
            for name, shown_as in wanted.items()
        }
        made["growth"] = plots.curves("Latency as a memory grows", "chunks", "milliseconds, p50", lines)
    if "search_scale" in results:
        rows = results["search_scale"]["rows"]
        wanted = {
            "recipe_p50": "RLM-MEM",
            "fts5_p50": "SQLite FTS5",
            "fts5_picked_p50": "FTS5, best words",
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
    titles = {"add_p50": "Time to add a memory", "search_p50": "Search latency"}
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
            str(row["what"]): float(row[column])
            for row in rows
            if row["memories"] == most and _is_number(row.get(column))
        }
        if len(values) > 1:
            name = f"peers_{column.split('_')[0]}"
            made[name] = plots.bars(f"{title}, {most:,} memories", "milliseconds, p50", values)
    return made


def _points(rows: Rows, x: str, y: str) -> Sequence[tuple[float, float]]:
    return [(row[x], row[y]) for row in rows if _is_number(row.get(x)) and _is_number(row.get(y))]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


if __name__ == "__main__":
    sys.exit(main())
