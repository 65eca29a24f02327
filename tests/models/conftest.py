"""A local server for the tests of models, and clients of the real libraries pointed at it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from played_server import KEY, Play

if TYPE_CHECKING:
    from pytest_httpserver import HTTPServer

    from rlm_mem.models.providers import ProviderLLM


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test may find a real key, address or proxy in the environment."""
    from rlm_mem.models.apis import APIS

    for name in [name for api in APIS.values() for name in api.keys]:
        monkeypatch.delenv(name, raising=False)
    for name in list(os.environ):
        if name.endswith("_BASE_URL") or name in ("OLLAMA_HOST", "RLM_MEM_LLM_MODEL"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """A server of one test on a free port; threads, so that a slow answer does not block the next one."""
    httpserver = pytest.importorskip("pytest_httpserver", reason="pytest-httpserver is not installed")

    class PromptlyStopping(httpserver.HTTPServer):  # type: ignore[name-defined, misc]
        """A server that looks every hundredth of a second whether it is to stop; the package's waits half a second."""

        def thread_target(self) -> None:
            self.server.serve_forever(poll_interval=0.01)

    with PromptlyStopping(threaded=True) as running:
        yield running


@pytest.fixture
def client(server: HTTPServer) -> Iterator[Callable[..., ProviderLLM]]:
    """Makes a client of the real library for a provider, pointed at the server; without waits between attempts."""
    pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")
    from rlm_mem.config import Config
    from rlm_mem.models.apis import Target
    from rlm_mem.models.providers import ProviderLLM
    from rlm_mem.models.retry import RetryPolicy

    made: list[ProviderLLM] = []

    def make(
        provider: str = "openai-compatible", *, retries: int = 2, path: str = "/v1", **llm: Any
    ) -> ProviderLLM:
        target = Target(provider, "model-1", server.url_for(path).rstrip("/"), KEY)
        config = Config.load(None, environ={}, llm=llm)
        made.append(ProviderLLM(target, config.llm, RetryPolicy(retries=retries, first_wait=0.0)))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def play(server: HTTPServer) -> Play:
    """The chat completions of an OpenAI-compatible server."""
    return Play(server, "/v1/chat/completions")
