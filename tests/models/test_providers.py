"""Real client libraries against a local server that plays the providers: answers, usage, failures, time-outs."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from played_server import KEY, Play, chat, chunks
from tests.waiting import takes

from rlm_mem.errors import (
    ModelError,
    ModelOverloaded,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from rlm_mem.models import Completion, Message, Usage
from rlm_mem.models.apis import APIS, Target

if TYPE_CHECKING:
    from pytest_httpserver import HTTPServer
    from werkzeug import Request, Response

    from rlm_mem.models.providers import ProviderLLM

Make = Callable[..., "ProviderLLM"]

CONVERSATION = [
    Message("system", "Be brief."),
    Message("user", "Who?"),
    Message("assistant", "Ada."),
    Message("user", "When?"),
]
USAGE = Usage(100, 50, cached_tokens=40, reasoning_tokens=20)


@pytest.mark.parametrize("provider", APIS)
def test_every_provider_connects_with_the_sdk_that_the_extra_installs(client: Make, provider: str) -> None:
    from genai_prices.data_snapshot import get_snapshot

    api = APIS[provider]
    assert find_spec(api.package), (
        f"add {api.package} to the extra `llm` in pyproject.toml and docs/dependencies.md"
    )
    assert api.connect(Target(provider, "model-1", "http://localhost:1/v1", KEY)).model_name == "model-1"
    priced = {one.id for one in get_snapshot().providers}
    assert api.prices in {"", *priced}, f"{api.prices} is no provider of the price data"


@pytest.mark.parametrize("provider", ["openai", "openai-compatible", "ollama"])
def test_openai_compatible_completion(client: Make, play: Play, provider: str) -> None:
    """Messages, options and key arrive as the API wants them; text, usage and the model's name come back."""
    play.answers = [chat("1843")]
    completion = client(provider).complete(
        CONVERSATION, max_tokens=7, temperature=0.2, stop=["\n"], extra_body={"grammar": "root ::= x"}
    )
    assert (completion.text, completion.model, completion.finish_reason) == ("1843", "model-1", "stop")
    assert completion.usage == USAGE
    assert completion.provider == provider
    assert completion.cost is None  # a local server
    body = play.bodies[0]
    assert [(m["role"], m["content"]) for m in body["messages"]] == [
        (message.role, message.content) for message in CONVERSATION
    ]
    assert body["max_completion_tokens" if provider == "openai" else "max_tokens"] == 7
    assert (body["temperature"], body["stop"], body["grammar"]) == (0.2, ["\n"], "root ::= x")
    assert play.requests[0].headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("provider", ["openai", "openai-compatible", "ollama"])
def test_a_schema_holds_the_answer_where_the_server_can(client: Make, play: Play, provider: str) -> None:
    play.answers = [chat('{"year": 1843}')]
    schema = {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}
    client(provider).complete("When?", json_schema=schema, extra_body={"seed": 1})
    body = play.bodies[0]
    assert body["response_format"]["type"] == "json_schema"
    assert body["response_format"]["json_schema"]["schema"] == schema
    assert body["seed"] == 1


def test_settings_hold_where_a_call_says_nothing(client: Make, play: Play) -> None:
    play.answers = [chat()]
    client(max_tokens=33, temperature=0.7).complete("x")
    client(max_tokens=33, temperature=-1.0).complete("x")
    assert (play.bodies[0]["max_tokens"], play.bodies[0]["temperature"]) == (33, 0.7)
    assert "temperature" not in play.bodies[1]


def test_streaming_hands_out_each_piece_and_ends_with_the_same_completion(client: Make, play: Play) -> None:
    play.answers = [chunks("Eighteen ", "forty-", "three")]
    pieces: list[str] = []
    completion = client().complete("When?", on_text=pieces.append)
    assert pieces == ["Eighteen ", "forty-", "three"]
    assert completion.text == "Eighteen forty-three"
    assert completion.usage == USAGE
    assert play.bodies[0]["stream"] is True


def test_on_text_is_called_in_the_thread_of_the_caller(client: Make, play: Play) -> None:
    play.answers = [chunks("a", "b")]
    threads: set[int] = set()
    client().complete("x", on_text=lambda _: threads.add(threading.get_ident()))
    assert threads == {threading.get_ident()}


def test_an_exception_of_on_text_reaches_the_caller_and_is_not_tried_again(client: Make, play: Play) -> None:
    play.answers = [chunks("a", "b")]
    for error in (ValueError("mine"), TimeoutError("mine"), KeyboardInterrupt()):

        def fail(_: str, error: BaseException = error) -> None:
            raise error

        with pytest.raises(type(error)) as caught:
            client().complete("x", on_text=fail)
        assert caught.value is error
    assert len(play.requests) == 3


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_transient_failures_are_tried_again(client: Make, play: Play, status: int) -> None:
    play.answers = [(status, {"error": {"message": "later"}}, {"Retry-After": "0"}), chat("at last")]
    completion = client().complete("x")
    assert (completion.text, completion.attempts, len(play.requests)) == ("at last", 2, 2)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_failures_that_stay_are_overload_after_the_last_attempt(
    client: Make, play: Play, status: int
) -> None:
    play.answers = [(status, {"error": {"message": "still busy"}})]
    with pytest.raises(ModelOverloaded, match="still busy"):
        client(retries=2).complete("x")
    assert len(play.requests) == 3


def test_the_wait_that_the_provider_asks_for_counts(client: Make, play: Play) -> None:
    play.answers = [(429, {"error": {"message": "slow down"}}, {"Retry-After": "600"}), chat()]
    with pytest.raises(ModelOverloaded, match="asks to wait 600 seconds"):
        client().complete("x")
    assert len(play.requests) == 1


REFUSALS = [
    (400, {"error": {"message": "no such field"}}, ModelRefused, "no such field"),
    (
        400,
        {"error": {"message": "x", "code": "context_length_exceeded"}},
        ModelRefused,
        "longer than the context",
    ),
    (
        400,
        {
            "error": {
                "code": 400,
                "message": "request exceeds the available context size",
                "type": "exceed_context_size_error",
            }
        },
        ModelRefused,
        "longer than the context",
    ),
    (
        401,
        {"error": {"message": f"Incorrect API key: {KEY}"}},
        ModelUnavailable,
        r"did not accept the key.*\[redacted\]",
    ),
    (403, {"error": {"message": "forbidden"}}, ModelUnavailable, "did not accept the key"),
    (404, {"error": {"message": "unknown model"}}, ModelRefused, "has no model named"),
    (422, {"detail": "unprocessable"}, ModelRefused, "unprocessable"),
    (429, {"error": {"message": "pay first", "code": "insufficient_quota"}}, ModelRefused, "no quota left"),
]


@pytest.mark.parametrize(("status", "body", "error", "words"), REFUSALS)
@pytest.mark.parametrize("stream", [False, True])
def test_refusals_are_clear_and_are_not_tried_again(
    client: Make,
    play: Play,
    status: int,
    body: dict[str, Any],
    error: type[ModelError],
    words: str,
    stream: bool,
) -> None:
    play.answers = [(status, body)]
    pieces: list[str] = []
    with pytest.raises(error, match=words) as caught:
        client().complete("x", **({"on_text": pieces.append} if stream else {}))
    assert len(play.requests) == 1
    assert KEY not in str(caught.value)
    assert caught.value.__cause__ is None  # the library's own error may repeat the key
    assert pieces == []


@pytest.mark.parametrize(
    "body",
    [
        "<html>Welcome</html>",
        '{"id": "1", "cho',
        "[]",
        '"text"',
        '{"choices": []}',
        '{"choices": [{"index": 0}]}',
        "",
    ],
)
def test_an_answer_of_another_shape_is_a_clear_error(client: Make, play: Play, body: str) -> None:
    from werkzeug import Response

    play.answers = [lambda _: Response(body, content_type="application/json")]
    with pytest.raises(ModelError, match="openai-compatible:model-1"):
        client(retries=0).complete("x")


def test_a_server_that_reports_no_usage_is_counted_here(client: Make, play: Play) -> None:
    play.answers = [chat("four words of answer", usage=None)]
    usage = client().complete("a question").usage
    assert usage.estimated
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0


def test_an_answer_cut_off_at_its_limit_says_so(client: Make, play: Play) -> None:
    play.answers = [chat("Once upon", choice={"finish_reason": "length"})]
    assert client().complete("x").finish_reason == "length"


def test_a_model_that_thought_until_its_limit_is_a_clear_error(client: Make, play: Play) -> None:
    play.answers = [chat("", choice={"finish_reason": "length"})]
    with pytest.raises(ModelRefused, match="before it began to reply") as caught:
        client().complete("x")
    assert "max_tokens" in str(caught.value.hint)


def broken_stream(*texts: str) -> Callable[[Request], Response]:
    """A stream whose connection breaks, with less sent than announced."""

    def answer(_: Request) -> Response:
        from werkzeug import Response

        body = chunks(*texts, finish=None, usage=False, done=False)
        return Response(body, headers={"Content-Length": "100000"}, content_type="text/event-stream")

    return answer


@pytest.mark.parametrize(
    "end",
    [
        chunks("some ", finish=None, usage=False, done=False),  # closed politely
        chunks("some ", finish=None, usage=False, done=True),
        chunks("some ", finish=None, usage=False, done=False) + 'data: {"id": "1", "cho\n\n',
        chunks("some ", finish=None, usage=False, done=False)
        + 'data: {"error": {"message": "oops", "code": 500}}\n\n',
        broken_stream("some "),
    ],
    ids=["closed", "done-without-reason", "malformed", "error-event", "broken"],
)
def test_a_stream_that_breaks_off_is_an_error_and_is_not_begun_anew(
    client: Make, play: Play, end: Any
) -> None:
    play.answers = [end, chunks("never")]
    pieces: list[str] = []
    with pytest.raises(ModelError, match="openai-compatible:model-1"):
        client().complete("x", on_text=pieces.append)
    assert pieces == ["some "]
    assert len(play.requests) == 1


def test_a_stream_that_breaks_before_the_first_piece_is_tried_again(client: Make, play: Play) -> None:
    play.answers = [broken_stream(), chunks(finish=None, usage=False, done=False), chunks("whole")]
    pieces: list[str] = []
    assert client().complete("x", on_text=pieces.append).text == "whole"
    assert pieces == ["whole"]


def test_a_slow_answer_is_a_timeout(client: Make, play: Play) -> None:
    released = threading.Event()

    def slow(_: Request) -> Response:
        from werkzeug import Response

        released.wait(120)
        return Response(json.dumps(chat()), content_type="application/json")

    play.answers = [slow]
    began = time.monotonic()
    with pytest.raises(ModelTimeout, match=r"within 0\.5 seconds"):
        client().complete("x", timeout=0.5)
    assert time.monotonic() - began < 60
    released.set()


def test_a_stream_that_drips_forever_is_a_timeout_for_the_whole_answer(client: Make, play: Play) -> None:
    stopped = threading.Event()

    def drip(_: Request) -> Response:
        from werkzeug import Response

        def body() -> Iterator[str]:
            while not stopped.wait(0.1):
                yield chunks("drop ", finish=None, usage=False, done=False)

        return Response(body(), content_type="text/event-stream")

    play.answers = [drip]
    pieces: list[str] = []
    with pytest.raises(ModelTimeout):
        client().complete("x", on_text=pieces.append, timeout=1.0)
    stopped.set()
    assert pieces


def test_a_caller_that_stops_listening_ends_the_request(client: Make, play: Play) -> None:
    hung_up = threading.Event()

    def drip(_: Request) -> Response:
        from werkzeug import Response

        def body() -> Iterator[str]:
            try:
                for _ in range(300):
                    takes(0.1)
                    yield chunks("drop ", finish=None, usage=False, done=False)
            finally:
                hung_up.set()

        return Response(body(), content_type="text/event-stream")

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    play.answers = [drip]
    with pytest.raises(KeyboardInterrupt):
        client().complete("x", on_text=stop, timeout=60.0)
    assert hung_up.wait(60), "the request went on behind the caller's back"


def test_retries_and_their_waits_count_against_the_timeout(client: Make, play: Play) -> None:
    play.answers = [(429, {"error": {"message": "slow down"}}, {"Retry-After": "5"})]
    began = time.monotonic()
    with pytest.raises(ModelOverloaded, match="slow down"):
        client(retries=10).complete("x", timeout=2.0)
    assert time.monotonic() - began < 30, "ten waits of five seconds"


def test_no_server_at_the_address_is_a_clear_error(client: Make, server: HTTPServer) -> None:
    model = client(retries=1)
    server.stop()
    with pytest.raises(ModelUnavailable, match=r"cannot reach http://.*openai-compatible:model-1") as caught:
        model.complete("x", timeout=20.0)
    assert "server is running" in str(caught.value.hint)


def test_many_threads_share_one_client(client: Make, play: Play) -> None:
    play.answers = [lambda request: _echo(request)]
    model = client()
    answers: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda n=n: answers.update({n: model.complete(f"q{n}").text}))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert answers == {n: f"q{n}" for n in range(8)}


def _echo(request: Request) -> Response:
    from werkzeug import Response

    question = json.loads(request.get_data())["messages"][-1]["content"]
    return Response(json.dumps(chat(question)), content_type="application/json")


def test_it_works_where_an_event_loop_is_running_already(client: Make, play: Play) -> None:
    play.answers = [chat("inside")]
    model = client()

    async def inside() -> Completion:
        return model.complete("x")

    assert asyncio.run(inside()).text == "inside"


def test_a_closed_client_opens_again(client: Make, play: Play) -> None:
    play.answers = [chat("a")]
    model = client()
    model.complete("x")
    model.close()
    model.close()
    assert model.complete("x").text == "a"


def test_nothing_of_a_client_shows_its_key(
    client: Make, play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    play.answers = [chat("ok")]
    model = client()
    completion = model.complete("x")
    assert KEY not in f"{model!r} {model.name} {model._target!r} {completion!r} {caplog.text}"


def test_a_server_without_a_named_model_is_asked_for_its_first_one(
    server: HTTPServer, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")
    from rlm_mem.models import get_llm

    monkeypatch.setenv("RLM_MEM_LLM_API_KEY", KEY)
    listing = {
        "object": "list",
        "data": [{"id": "local.gguf", "object": "model", "created": 1, "owned_by": "me"}],
    }
    server.expect_request("/v1/models").respond_with_json(listing)
    play.answers = [chat("hello")]
    model = get_llm(f"openai-compatible:@{server.url_for('')}")
    assert model.complete("x").text == "hello"
    assert play.bodies[0]["model"] == "local.gguf"
    assert play.requests[0].headers["Authorization"] == f"Bearer {KEY}"
    model.close()  # type: ignore[attr-defined]


def test_a_listing_that_fails_is_as_clear_as_an_answer_that_fails(server: HTTPServer) -> None:
    pytest.importorskip("pydantic_ai", reason="the extra llm is not installed")
    from rlm_mem.config import Config
    from rlm_mem.models import get_llm

    config = Config.load(None, environ={}, llm={"retries": 0})
    model = get_llm(f"openai-compatible:@{server.url_for('')}", config)
    server.expect_oneshot_request("/v1/models").respond_with_json({"object": "list", "data": []})
    with pytest.raises(ModelRefused, match="lists no model"):
        model.complete("x")
    server.expect_oneshot_request("/v1/models").respond_with_json({"error": {"message": "who?"}}, status=401)
    with pytest.raises(ModelUnavailable, match="did not accept the key"):
        model.complete("x")
    server.stop()
    with pytest.raises(ModelUnavailable, match="cannot reach"):
        model.complete("x")
    model.close()  # type: ignore[attr-defined]


def test_text_that_is_no_valid_unicode_can_be_asked_about(client: Make, play: Play) -> None:
    play.answers = [chat("fine")]
    assert client().complete("half a pair: \ud83d, and a NUL: \0").text == "fine"
    assert play.bodies[0]["messages"][0]["content"] == "half a pair: ?, and a NUL: \0"


ANTHROPIC = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "1843"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 10,
        "cache_read_input_tokens": 300,
        "cache_creation_input_tokens": 20,
        "output_tokens": 7,
    },
}


def test_anthropic_counts_cached_tokens_apart_and_they_are_added(client: Make, server: HTTPServer) -> None:
    play = Play(server, "/v1/messages")
    play.answers = [ANTHROPIC]
    completion = client("anthropic", path="").complete(CONVERSATION, max_tokens=9)
    assert completion.text == "1843"
    assert completion.usage == Usage(330, 7, cached_tokens=300, cache_write_tokens=20)
    assert play.bodies[0]["max_tokens"] == 9
    assert "Be brief." in json.dumps(play.bodies[0]["system"])
    assert [message["role"] for message in play.bodies[0]["messages"]] == ["user", "assistant", "user"]
    assert f"Bearer {KEY}" in play.requests[0].headers.values()


def test_anthropic_streams(client: Make, server: HTTPServer) -> None:
    start = {**ANTHROPIC, "content": [], "stop_reason": None}
    events = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "18"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "43"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]
    play = Play(server, "/v1/messages")
    play.answers = ["".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)]
    pieces: list[str] = []
    completion = client("anthropic", path="").complete("x", on_text=pieces.append)
    assert pieces == ["18", "43"]
    assert (completion.text, completion.usage.input_tokens, completion.usage.output_tokens) == (
        "1843",
        330,
        7,
    )

    play.answers = ["".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events[:4])]
    with pytest.raises(ModelOverloaded, match="broke off"):
        client("anthropic", path="").complete("x", on_text=pieces.append)


@pytest.mark.parametrize(
    ("status", "kind", "message", "error"),
    [
        (529, "overloaded_error", "Overloaded", ModelOverloaded),
        (429, "rate_limit_error", "slow down", ModelOverloaded),
        (400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum", ModelRefused),
        (401, "authentication_error", "invalid x-api-key", ModelUnavailable),
    ],
)
def test_errors_of_anthropic(
    client: Make, server: HTTPServer, status: int, kind: str, message: str, error: type[ModelError]
) -> None:
    play = Play(server, "/v1/messages")
    play.answers = [(status, {"type": "error", "error": {"type": kind, "message": message}})]
    with pytest.raises(error, match=message.split(":")[0]):
        client("anthropic", path="", retries=1).complete("x")
    assert len(play.requests) == (2 if error is ModelOverloaded else 1)


GOOGLE = {
    "candidates": [
        {"content": {"role": "model", "parts": [{"text": "1843"}]}, "finishReason": "STOP", "index": 0}
    ],
    "usageMetadata": {
        "promptTokenCount": 100,
        "cachedContentTokenCount": 40,
        "candidatesTokenCount": 30,
        "thoughtsTokenCount": 20,
        "totalTokenCount": 150,
    },
    "modelVersion": "gemini-2.5-flash",
}


def test_google_completion_and_stream(client: Make, server: HTTPServer) -> None:
    play = Play(server, "/v1beta/models/model-1:generateContent")
    play.answers = [GOOGLE]
    completion = client("google", path="").complete(CONVERSATION)
    assert completion.text == "1843"
    assert completion.usage == USAGE
    assert play.requests[0].headers["x-goog-api-key"] == KEY

    stream = Play(server, "/v1beta/models/model-1:streamGenerateContent")
    stream.answers = [f"data: {json.dumps(GOOGLE)}\r\n\r\n"]
    pieces: list[str] = []
    assert client("google", path="").complete("x", on_text=pieces.append).usage == USAGE
    assert pieces == ["1843"]


def test_errors_of_google(client: Make, server: HTTPServer) -> None:
    play = Play(server, "/v1beta/models/model-1:generateContent")
    busy = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    wrong = {"error": {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT"}}
    play.answers = [(503, busy), GOOGLE]
    assert client("google", path="").complete("x").attempts == 2
    play.answers = [(400, wrong)]
    with pytest.raises(ModelError, match="API key not valid"):
        client("google", path="").complete("x")


def test_a_provider_of_ones_choice_is_priced(client: Make, play: Play) -> None:
    """The figures that come back are what the price is computed from."""
    from rlm_mem.models.providers import price

    play.answers = [chat("x")]
    cost = price("gpt-4o", "openai", client("openai").complete("x").usage)
    assert isinstance(cost, Decimal)
    assert cost > 0
