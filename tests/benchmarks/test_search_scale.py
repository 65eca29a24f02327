"""The process that `search_scale` starts to search beside it has what it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.house.sources import ROOT


def test_the_other_process_starts_and_ends_with_its_questions(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "search_scale.py"), "--searcher", str(tmp_path)]
    ran = subprocess.run(command, input="", capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
