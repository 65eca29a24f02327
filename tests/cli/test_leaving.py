"""The program `rlm-mem` ends without freeing its memory; what else happens at the end of a process happens."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rlm_mem import Memory, own_process
from rlm_mem.cli import main


@pytest.fixture
def brain(tmp_path: Path) -> Path:
    with Memory.open(tmp_path / "brain") as memory:
        memory.remember("Dana moved the team to PostgreSQL.")
    return tmp_path / "brain"


def ended(*words: str, before: str = "", output: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """The program, in a process that says whether the interpreter ended it."""
    code = (
        f"import atexit, sys\natexit.register(print, 'registered')\n{before}\nsys.argv[1:] = {[*words]!r}\n"
        "from rlm_mem.cli import command\ntry:\n    command()\nfinally:\n    print('as ever', file=sys.stderr)"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_output_is_whole_and_registered_functions_are_called(brain: Path) -> None:
    ran = ended("search", "Where did Dana move?", "--brain", str(brain))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Dana moved the team to PostgreSQL." in ran.stdout
    assert ran.stdout.endswith("registered\n")


def test_other_threads_are_waited_for(brain: Path) -> None:
    thread = (
        "import threading\n"
        "threading.Thread(target=lambda: (threading.main_thread().join(), print('done'))).start()"
    )
    ran = ended("search", "Where did Dana move?", "--brain", str(brain), before=thread)
    assert (ran.returncode, ran.stderr) == (0, "as ever\n")
    assert ran.stdout.endswith("done\nregistered\n")


@pytest.mark.parametrize("words", [("search",), ("search", "Dana", "--brain", "nowhere"), ("--version",)])
def test_the_exit_code_is_that_of_the_command(words: tuple[str, ...], tmp_path: Path) -> None:
    ran = ended(*words, before=f"import os; os.chdir({str(tmp_path)!r})")
    code = {"search": 2 if len(words) == 1 else 1}.get(words[0], 0)
    assert ran.returncode == code
    assert ran.stderr.endswith("as ever\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_output_that_cannot_be_written_is_an_error(brain: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = ended(
            "search", "Dana", "--brain", str(brain), before="atexit.unregister(print)", output=full.fileno()
        )
    assert ran.returncode == 1
    assert "the output cannot be written" in ran.stderr


@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_command_in_order(brain: Path, tmp_path: Path, how: str) -> None:
    """As does Ctrl-C: what it had begun is taken back, and no temporary file stays."""
    slow = (
        "from rlm_mem.store.local import backup\n"
        "def wait(*_):\n    print('begun', flush=True)\n    import time\n    time.sleep(60)\n"
        "backup.packing = wait"
    )
    words = ["store", "backup", str(tmp_path / "backup.tar.gz"), "--brain", str(brain)]
    # A run under nohup ignores SIGHUP, and hands that on.
    heard = f"import signal, sys\nsignal.signal(signal.{how}, signal.SIG_DFL)"
    code = f"{heard}\n{slow}\nsys.argv[1:] = {words!r}\nfrom rlm_mem.cli import command\ncommand()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as ran:
        assert ran.stdout is not None and ran.stderr is not None
        assert ran.stdout.readline() == b"begun\n"
        assert list(brain.glob(".backup-*"))
        ran.send_signal(signal.Signals[how])
        assert (ran.wait(30), ran.stderr.read()) == (128 + signal.Signals[how], b"")
    assert not list(brain.glob(".backup-*"))
    assert [path.name for path in tmp_path.iterdir()] == ["brain"]


@pytest.mark.parametrize(
    "words", [("import", "FOLDER"), ("remember", "--folder", "FOLDER"), ("persona", "hud")]
)
def test_a_command_that_watches_ends_well_when_it_is_stopped(
    brain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """As a service is: a command that ends by itself fails if a signal ends it."""

    def stopped(*_: object, **__: object) -> None:
        sys.exit(128 + signal.SIGTERM)

    monkeypatch.setattr(own_process, "ENDING", {signal.SIGTERM})
    for name in (
        "cli.interchange.watch_folder",
        "interchange.folders.watch_folder",
        "cli.persona.time.sleep",
    ):
        monkeypatch.setattr(f"rlm_mem.{name}", stopped)
    named = [str(tmp_path) if one == "FOLDER" else one for one in words]
    assert main(["--brain", str(brain), *named, "--watch"]) == 0
    monkeypatch.setattr("rlm_mem.cli.interchange.import_source", stopped)
    assert main(["--brain", str(brain), "import", str(tmp_path)]) == 128 + signal.SIGTERM
