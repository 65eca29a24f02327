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

from support import fit_with_prior


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
    prior, penalty, worth = np.array([0.5, 0.0, 1.0]), 2.0, rows[:, 0] + 1
    weights, base = fit_with_prior(
        rows, wanted, penalty=penalty, prior=prior, worth=worth, tolerance=1e-9, steps=5000
    )
    error = worth * (1 / (1 + np.exp(-rows @ weights - base)) - wanted)
    assert np.allclose(rows.T @ error + penalty * (weights - prior), 0, atol=1e-5)
    assert abs(error.sum()) < 1e-5


def test_a_strong_penalty_keeps_weights_at_their_prior() -> None:
    rows = np.eye(3)
    weights, _ = fit_with_prior(rows, np.ones(3), penalty=1e6, prior=[0.5, -1.0, 0.0])
    assert np.allclose(weights, [0.5, -1.0, 0.0], atol=1e-4)
