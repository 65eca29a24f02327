"""Figures of benchmarks are what their names say."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.benchmarks.test_imports import BENCHMARKS
from tests.house.sources import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from support import fit_logistic


@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: str(path.stem))
def test_percentiles_are_asked_for_as_shares(path: Path) -> None:
    shares = [
        call.args[1].value
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "percentile"
        if isinstance(call.args[1], ast.Constant)
    ]
    assert all(0 <= share <= 1 for share in shares), shares


def test_a_logistic_regression_finds_the_weights_from_which_no_step_leads_down() -> None:
    rows = np.random.default_rng(1).integers(0, 2, (200, 3)).astype(float)
    wanted = (rows @ [1.0, -2.0, 0.0] > 0).astype(float)
    worth = rows[:, 0] + 1
    weights, base = fit_logistic(rows, wanted, penalty=2.0, worth=worth)
    error = worth * (1 / (1 + np.exp(-rows @ weights - base)) - wanted)
    assert np.allclose(rows.T @ error + 2.0 * weights, 0, atol=1e-5)
    assert abs(error.sum()) < 1e-4


def test_a_strong_penalty_keeps_weights_at_nothing() -> None:
    weights, _ = fit_logistic(np.eye(3), np.ones(3), penalty=1e6)
    assert np.allclose(weights, 0, atol=1e-4)
