"""Benchmarks run rarely: what they import from the package exists."""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

BENCHMARKS = sorted((Path(__file__).parents[2] / "benchmarks").rglob("*.py"))


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: str(path.stem))
def test_what_a_benchmark_imports_from_the_package_exists(path: Path) -> None:
    missing = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "rlm_mem":
            found = import_module(node.module)
            missing += [
                f"{node.module}.{one.name}"
                for one in node.names
                if not hasattr(found, one.name) and find_spec(f"{node.module}.{one.name}") is None
            ]
    assert not missing
