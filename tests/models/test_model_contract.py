"""Every kind of model keeps what a model promises, by the suite that other packages run (``rlm_mem.testing``)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from played_server import Play, chat, chunks
from werkzeug import Request, Response

from rlm_mem.config import Config
from rlm_mem.errors import ModelOverloaded
from rlm_mem.models import LLM, get_llm
from rlm_mem.models.cli_models import CommandLLM
from rlm_mem.models.opening import adapt
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.testing import ModelContract

if TYPE_CHECKING:
    from rlm_mem.models.providers import ProviderLLM


class TestOffline(ModelContract):
    @pytest.fixture
    def model(self) -> LLM:
        return get_llm("offline")


class TestScripted(ModelContract):
    @pytest.fixture
    def model(self) -> LLM:
        return ScriptedLLM(default="a word")

    @pytest.fixture
    def failing_model(self) -> LLM:
        return ScriptedLLM(default=ModelOverloaded("busy"))


class TestCallable(ModelContract):
    @pytest.fixture
    def model(self) -> LLM:
        return adapt(lambda prompt: f"heard {len(prompt)} characters")


class TestCommand(ModelContract):
    @pytest.fixture
    def model(self) -> LLM:
        return get_llm(f'cli:{sys.executable} -c "import sys; sys.stdin.read(); print(chr(97))"')

    @pytest.fixture
    def failing_model(self, tmp_path: Path) -> LLM:
        code = "import os, sys; sys.exit(os.environ['CONTRACT_API_KEY'])"
        return CommandLLM.from_spec(f'{sys.executable} -c "{code}"', Config.load(None, environ={}).llm)


class TestProvider(ModelContract):
    @pytest.fixture
    def model(self, client: Callable[..., ProviderLLM], play: Play) -> LLM:
        def answer(request: Request) -> Response:
            streamed = json.loads(request.get_data()).get("stream")
            if streamed:
                return Response(chunks("a ", "word"), content_type="text/event-stream")
            return Response(json.dumps(chat("a word")), content_type="application/json")

        play.answers = [answer]
        return client()

    @pytest.fixture
    def failing_model(self, client: Callable[..., ProviderLLM], play: Play) -> LLM:
        play.answers = [
            lambda request: Response(
                f"not served: {request.get_data().decode()}", 400, content_type="text/plain"
            )
        ]
        return client(path="/v1")
