"""A real model on a real server: completion, usage, streaming, limits, time-outs, a killed server.

What is asserted is the protocol, never how good an answer is: the model has 135 million parameters.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from model_server import PROVIDERS, ModelServer, clients, start_server
from tests.waiting import takes, until

from rlm_mem.errors import ModelError, ModelOverloaded, ModelRefused, ModelTimeout, ModelUnavailable
from rlm_mem.models import Message, get_llm

if TYPE_CHECKING:
    from rlm_mem.models.providers import ProviderLLM

Connect = Callable[..., "ProviderLLM"]

QUESTION = [Message("system", "You are helpful."), Message("user", "Name the capital of France.")]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_completion_with_usage(connect: Connect, provider: str) -> None:
    completion = connect(provider).complete(QUESTION, max_tokens=24, temperature=0.0)
    assert completion.text.strip()
    assert 10 < completion.usage.input_tokens < 100
    assert 0 < completion.usage.output_tokens <= 24
    assert not completion.usage.estimated
    assert completion.model
    assert completion.cost is None
    assert completion.finish_reason in ("stop", "length")
    assert completion.seconds > 0


@pytest.mark.parametrize("provider", PROVIDERS)
def test_streaming_gives_the_same_answer_in_pieces(connect: Connect, provider: str) -> None:
    model = connect(provider)
    whole = model.complete(QUESTION, max_tokens=24, temperature=0.0)
    pieces: list[str] = []
    streamed = model.complete(QUESTION, max_tokens=24, temperature=0.0, on_text=pieces.append)
    assert len(pieces) > 1
    assert "".join(pieces) == streamed.text == whole.text
    # A server that reuses its cache may split the input differently; what was generated is the same.
    assert streamed.usage.output_tokens == whole.usage.output_tokens
    assert streamed.usage.input_tokens == whole.usage.input_tokens


def test_the_limit_and_stop_texts_hold(connect: Connect) -> None:
    model = connect()
    short = model.complete("Count: one, two, three,", max_tokens=3)
    assert short.usage.output_tokens <= 3
    assert short.finish_reason == "length"
    stopped = model.complete("Repeat exactly: alpha beta gamma", max_tokens=40, stop=["a"])
    assert "a" not in stopped.text


def test_a_grammar_is_obeyed(connect: Connect) -> None:
    grammar = 'root ::= ("yes" | "no")'
    completion = connect().complete("Is Paris in France?", max_tokens=8, extra_body={"grammar": grammar})
    assert completion.text in ("yes", "no")


def test_a_schema_is_obeyed(connect: Connect) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}, "large": {"type": "boolean"}},
        "required": ["city", "large"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema, "strict": True}}
    completion = connect().complete(QUESTION, max_tokens=64, extra_body={"response_format": wanted})
    found = json.loads(completion.text)
    assert isinstance(found["city"], str)
    assert isinstance(found["large"], bool)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_beyond_the_context_window_is_refused(connect: Connect, provider: str, stream: bool) -> None:
    pieces: list[str] = []
    with pytest.raises(ModelRefused, match="longer than the context window"):
        connect(provider).complete("word " * 6000, **({"on_text": pieces.append} if stream else {}))
    assert pieces == []


@pytest.mark.parametrize("stream", [False, True])
def test_a_timeout_ends_the_call_and_not_the_server(connect: Connect, stream: bool) -> None:
    model = connect()
    began = time.monotonic()
    with pytest.raises(ModelTimeout, match=r"within 0\.2 seconds"):
        model.complete(
            "Tell a long story.",
            max_tokens=2000,
            timeout=0.2,
            **({"on_text": lambda _: None} if stream else {}),
        )
    assert time.monotonic() - began < 30
    assert model.complete("Say hi.", max_tokens=4).text


def test_threads_ask_at_once(connect: Connect) -> None:
    model = connect()
    answers: dict[int, str] = {}
    threads = [
        threading.Thread(
            target=lambda n=n: answers.update({n: model.complete(f"Say {n}.", max_tokens=6).text})
        )
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(240)
    assert sorted(answers) == [0, 1, 2, 3]
    assert all(answers.values())


def test_the_name_of_the_model_need_not_be_known(running: ModelServer) -> None:
    model = get_llm(f"openai-compatible:@{running.url}")
    assert model.complete("Say hi.", max_tokens=4, timeout=240.0).text


def test_a_command_line_can_be_the_model(running: ModelServer, tmp_path: Path) -> None:
    script = tmp_path / "ask.py"
    script.write_text(
        f"""
import json, sys, urllib.request
body = {{"messages": [{{"role": "user", "content": sys.stdin.read()}}], "max_tokens": 8}}
request = urllib.request.Request({running.url + "/v1/chat/completions"!r}, json.dumps(body).encode(),
                                 {{"Content-Type": "application/json"}})
print(json.load(urllib.request.urlopen(request, timeout=200))["choices"][0]["message"]["content"])
""",
        encoding="utf-8",
    )
    assert get_llm(f"cli:{sys.executable} {script}").complete("Say hi.", timeout=240.0).text


@pytest.mark.parametrize("stream", [True, False])
def test_a_server_killed_midway_is_a_clear_error_and_nothing_hangs(tmp_path: Path, stream: bool) -> None:
    pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")
    server = start_server(tmp_path)
    for connect in clients(server):
        model = connect("openai-compatible")
        model.complete("Say hi.", max_tokens=2)
        pieces: list[str] = []
        failed: list[Exception] = []

        def ask(
            model: ProviderLLM = model, pieces: list[str] = pieces, failed: list[Exception] = failed
        ) -> None:
            options = {"on_text": pieces.append} if stream else {}
            try:
                model.complete("Tell a very long story about the sea.", max_tokens=3500, **options)  # type: ignore[arg-type]
            except ModelError as error:
                failed.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        if stream:
            until(lambda pieces=pieces: len(pieces) >= 3, "a first piece of the story")
        else:
            takes(0.5)  # nothing tells from here that the model has begun
        server.kill()
        thread.join(60)
        assert not thread.is_alive()
        assert isinstance(failed[0], (ModelOverloaded, ModelUnavailable))
        assert "openai-compatible:smollm2" in str(failed[0]) or server.url in str(failed[0])
        if stream:
            assert pieces
            assert "broke off" in str(failed[0])
        with pytest.raises(ModelUnavailable, match="cannot reach"):
            model.complete("Still there?", timeout=20.0)
