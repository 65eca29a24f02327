"""What the benchmark of moving in and out reports is a whole memory, there and back."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.house.sources import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from interchange import round_trip


def test_every_field_of_a_small_memory_comes_back(tmp_path: Path) -> None:
    rows = list(round_trip(tmp_path, 60))
    assert [row["what"].partition(",")[0] for row in rows] == ["Markdown", "JSON lines", "zip"]
    assert {row["chunks equal in all fields"] for row in rows} == {"yes"}
