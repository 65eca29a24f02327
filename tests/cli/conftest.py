"""A command line in process: `run("search", "tea")` gives exit code, stdout and stderr."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.cli import main


@dataclass(frozen=True)
class Ran:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.out, f"nothing on stdout; on stderr: {self.err}"
        return json.loads(self.out)


class Piped(io.StringIO):
    """Text on stdin as the command reads it, in bytes."""

    def __init__(self, content: str | bytes) -> None:
        super().__init__()
        self.buffer = io.BytesIO(content.encode("utf-8") if isinstance(content, str) else content)  # type: ignore[misc]

    def isatty(self) -> bool:
        return False


Run = Callable[..., Ran]


@pytest.fixture
def brain(place: Path | str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path | str:
    """The brain of a test, a folder or a DSN, named by the environment; the working folder is an empty one."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("RLM_MEM_BRAIN", str(place))
    monkeypatch.setenv("COLUMNS", "100")
    return place


@pytest.fixture
def run(brain: Path | str) -> Run:
    """Run `rlm-mem` with arguments on the brain of the test."""
    return ran


def ran(*arguments: str, stdin: str | bytes | None = None) -> Ran:
    """Run `rlm-mem` with arguments; `stdin` is what is piped in, None a terminal without anybody."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "stdin", Piped(stdin) if stdin is not None else Terminal())
        code = main(list(arguments))
    return Ran(code, out.getvalue(), err.getvalue())


class Terminal(io.StringIO):
    """Stdin of a person who types nothing."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def memory(brain: Path | str) -> Iterator[Memory]:
    """The same memory from Python."""
    with Memory.open(brain) as opened:
        yield opened


@pytest.fixture
def notes(memory: Memory) -> dict[str, str]:
    """Four chunks in two conversations; name → id."""
    rows = {
        "choice": (
            "Ana: We chose PostgreSQL for the ledger.",
            "decision",
            ["database"],
            "db",
            "2026-03-02T10:00:00Z",
        ),
        "reason": (
            "Ben: Because of its row-level security.",
            "fact",
            ["database", "security"],
            "db",
            "2026-03-02T10:01:00Z",
        ),
        "tea": (
            "Ana drinks green tea in the morning.",
            "preference",
            ["people"],
            "kitchen",
            "2026-04-01T08:00:00Z",
        ),
        "cake": ("On Fridays there is cake.", "pattern", ["people"], "kitchen", "2026-04-03T15:00:00Z"),
    }
    return {
        name: memory.store.create_chunk(
            content, chunk_type=kind, tags=tags, conversation_id=conversation, occurred_at=at
        ).id
        for name, (content, kind, tags, conversation, at) in rows.items()
    }
