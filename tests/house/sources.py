"""The files that the house rules are about, each read and parsed once."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MODULES = sorted(SOURCE.rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Every node of a file, in the order of `ast.walk`, which takes as long as to parse it."""
    return list(ast.walk(tree(path)))


def named(path: Path) -> str:
    """How a violation names its file."""
    return str(path.relative_to(ROOT))


def listed(violations: list[str], remedy: str = "") -> str:
    """What a failed rule shows: what to do, and every violation on a line of its own."""
    return "\n".join([f"{len(violations)} violations{f' ({remedy})' if remedy else ''}:", *violations])
