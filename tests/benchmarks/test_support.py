"""Figures of benchmarks are what their names say."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.benchmarks.test_imports import BENCHMARKS


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: str(path.stem))
def test_percentiles_are_asked_for_as_shares(path: Path) -> None:
    shares = [
        call.args[1].value
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "percentile"
        if isinstance(call.args[1], ast.Constant)
    ]
    assert all(0 <= share <= 1 for share in shares), shares
