"""A local server that plays the providers: bodies, event streams, and the record of what it was asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_httpserver import HTTPServer
    from werkzeug import Request, Response

KEY = "sk-testonly-0123456789abcdef"

OPENAI_USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 50,
    "total_tokens": 150,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 20},
}


def chat(text: str = "hi", **changes: Any) -> dict[str, Any]:
    """A chat completion as OpenAI-compatible servers send it."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    choice.update(changes.pop("choice", {}))
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "model-1", "choices": [choice]}
    return {**body, "usage": OPENAI_USAGE, **changes}


def chunks(*texts: str, finish: str | None = "stop", usage: bool = True, done: bool = True) -> str:
    """The same as a stream of events."""

    def event(**fields: Any) -> str:
        body = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "model-1", **fields}
        return f"data: {json.dumps(body)}\n\n"

    parts = [
        event(choices=[{"index": 0, "delta": {"content": text}, "finish_reason": None}]) for text in texts
    ]
    if finish:
        parts.append(event(choices=[{"index": 0, "delta": {}, "finish_reason": finish}]))
    if usage:
        parts.append(event(choices=[], usage=OPENAI_USAGE))
    return "".join(parts) + ("data: [DONE]\n\n" if done else "")


class Play:
    """A provider played by a list of answers, one per request; the last one is repeated.

    An answer is a body (dict: JSON, str: event stream), ``(status, body)``, ``(status, body, headers)``, or a
    function of the request that returns a response.
    """

    def __init__(self, server: HTTPServer, path: str) -> None:
        self._server = server
        self._path = path
        self.answers: list[Any] = []
        self.requests: list[Request] = []
        server.expect_request(path).respond_with_handler(self._answer)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.get_data()) for request in self.requests]

    def _answer(self, request: Request) -> Response:
        from werkzeug import Response

        request.get_data()
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if callable(answer):
            found = answer(request)
            assert isinstance(found, Response)
            return found
        status, body, headers = (*answer, {})[:3] if isinstance(answer, tuple) else (200, answer, {})
        if isinstance(body, dict):
            return Response(json.dumps(body), status, headers, content_type="application/json")
        return Response(body, status, headers, content_type="text/event-stream")
