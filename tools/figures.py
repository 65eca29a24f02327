"""Writes the tables of docs/benchmarks.md from benchmarks/results: the figures come from runs, not from hands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
START = "<!-- figures: {name} -->\n"
END = "<!-- end of figures -->"


def main() -> None:
    """Fill every marked place of the page that has a result."""
    page = PAGE.read_text(encoding="utf-8")
    for path in sorted((ROOT / "benchmarks" / "results").glob("*.json")):
        start = START.format(name=path.stem)
        if start not in page:
            print(f"docs/benchmarks.md has no place for {path.stem}")
            continue
        made = rendered(json.loads(path.read_text(encoding="utf-8")))
        page = re.sub(
            f"{re.escape(start)}.*?{re.escape(END)}",
            lambda _, s=start, m=made: s + m + END,
            page,
            flags=re.DOTALL,
        )
    PAGE.write_text(page, encoding="utf-8")


def rendered(result: dict[str, Any]) -> str:
    """One result as a table, its facts, and where it was measured."""
    rows = result["rows"]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [
        "",
        "| " + " | ".join(name.replace("_", " ") for name in columns) + " |",
        "|" + "---|" * len(columns),
        *("| " + " | ".join(shown(row.get(name, "")) for name in columns) + " |" for row in rows),
        "",
    ]
    machine = result["machine"]
    place = f"{machine['system']}, {machine['cores']} cores, Python {machine['python']}"
    load = machine.get("load_1min")
    lines.append(
        f"Measured {result['started'][:10]} on {place}" + (f", load {load:.1f}." if load is not None else ".")
    )
    for name, value in result.get("facts", {}).items():
        if not isinstance(value, dict | list):
            lines.append(f"{name.capitalize()}: {shown(value)}.")
    return "\n".join([*lines, "", ""])


def shown(value: object) -> str:
    """A cell: numbers with the digits that matter."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).replace("|", "\\|")
    if isinstance(value, int) or value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    main()
