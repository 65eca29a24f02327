"""The examples of docs/api.md run as they stand, against a server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.server.api import TOKEN
from tests.server.test_api_serve import running

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_examples_of_the_page_run_in_order(tmp_path: Path) -> None:
    assert len(BLOCKS) >= 6
    with running(tmp_path / "brain", "--no-dashboard") as address:
        environment = {**os.environ, "API": f"{address}/api/v1", "RLM_MEM_TOKEN": TOKEN}
        script = "set -eu\n" + "\necho '~~~'\n".join(BLOCKS)
        ran = subprocess.run(
            ["sh", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    said = ran.stdout.split("~~~")
    assert "PostgreSQL" in said[1]
    assert '"answer":' in said[2]
    assert "event: result" in said[3]
    assert "Ana chose PostgreSQL" in said[4] and '"answer":"PostgreSQL"' in said[4]
    assert '"revision":2' in said[5]
    assert "row-level security" in (tmp_path / "memories.jsonl").read_text(encoding="utf-8")
