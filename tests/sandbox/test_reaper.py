"""The end of a process that still holds a worker: nothing is printed, nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import sys
from rlm_mem import Memory, REPLSession
memory = Memory.open(sys.argv[1])
session = REPLSession(memory.store, llm_client=lambda prompt: "", engine="monty")
print(session.execute("1 + 1"))
sys.keepalive = session  # given back when the interpreter ends, after what was registered with atexit
"""


def test_a_session_that_is_never_closed_prints_nothing_at_exit(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "brain")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "2\n", "")


@pytest.mark.parametrize("wrong", ["import os; os.environ['MONTY_BIN']", "import tempfile; tempfile.tempdir"])
def test_where_no_worker_can_be_started_the_sandbox_says_so(wrong: str) -> None:
    program = f"""
{wrong} = "/no/such/place"
from rlm_mem.errors import SandboxError
from rlm_mem.sandbox.monty import monty_pool
try:
    monty_pool()
except SandboxError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("no sandbox worker could be started: "), done
