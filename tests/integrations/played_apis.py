"""A server that plays the interfaces of Anthropic, OpenAI and Google for coding agents.

Its model calls the tools that a test names, one after the other, and then gives one reply.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.waiting import takes

_RESULTS = ('"tool_result"', '"function_call_output"', '"functionResponse"')


#: A tool of Codex that is called again and again, until the tools of the memory are offered.
_WAITS = "list_mcp_resources"
_WAITED = 300


class Call(NamedTuple):
    """A call of a tool: its id, the namespace of the tool if it has one, its name, its arguments."""

    id: str
    namespace: str
    name: str
    arguments: dict[str, Any]


def _offered(tools: list[dict[str, Any]], namespace: str = "") -> Iterator[tuple[str, str]]:
    """Namespace and name of each tool that a request offers."""
    for tool in tools:
        inner = tool.get("tools") or tool.get("functionDeclarations")
        name = str(tool.get("name") or "")
        if inner:
            yield from _offered(inner, name)
        else:
            yield namespace, name


class PlayedApis:
    """The server.

    Attributes:
        address: its base address.
        asked: the bodies of the requests for a reply, in their order.
        calls: tools of the memory, or of the client itself, that are called before the reply, each with its arguments.
    """

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.asked: list[str] = []
        self.calls: list[tuple[str, dict[str, Any]]] = []
        played = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Nothing on stderr."""

            def do_GET(self) -> None:
                self._send(b"{}")

            do_HEAD = do_GET

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
                path = self.path.partition("?")[0]
                if path.endswith(("count_tokens", "countTokens")):
                    self._send(b'{"input_tokens": 9, "totalTokens": 9}')
                    return
                events = played._events(path, body)
                if events:
                    played.asked.append(body)
                lines = (f"event: {event['type']}\n" if "type" in event else "" for event in events)
                data = "".join(
                    f"{line}data: {json.dumps(event)}\n\n" for line, event in zip(lines, events, strict=True)
                )
                self._send(data.encode(), "text/event-stream")

            def _send(self, data: bytes, kind: str = "application/json") -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def _events(self, path: str, body: str) -> list[dict[str, Any]]:
        call = self._next_call(body)
        if path.endswith("/messages"):
            return self._anthropic(call)
        if path.endswith("/responses"):
            return self._openai(call)
        return self._google(call) if "enerateContent" in path else []

    def _next_call(self, body: str) -> Call | None:
        """The call that is due after those whose results the request has; None where it offers no such tool."""
        results = sum(body.count(mark) for mark in _RESULTS)
        waits = len(re.findall(r'"call_id":"wait_\d+","output"', body))
        done = results - waits
        if done >= len(self.calls):
            return None
        name, arguments = self.calls[done]
        offered = list(_offered(json.loads(body).get("tools") or []))
        for namespace, tool in offered:
            if tool == name or re.search(rf"rlm.mem[_-]*{name}$", namespace + tool):
                return Call(f"call_{done}", namespace, tool, arguments)
        if ("", _WAITS) in offered and waits < _WAITED:  # a client that asks before its servers have started
            takes(0.1)
            return Call(f"wait_{waits}", "", _WAITS, {})
        return None

    def _anthropic(self, call: Call | None) -> list[dict[str, Any]]:
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "played", "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": self.reply}
        if call is not None:
            block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}
        end = {"stop_reason": "end_turn" if call is None else "tool_use"}
        return [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": end, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ]

    def _openai(self, call: Call | None) -> list[dict[str, Any]]:
        response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "played", "output": []}
        content = [{"type": "output_text", "text": self.reply, "annotations": []}]
        item: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "content": content}
        if call is not None:
            item = {
                "id": f"fc_{call.id}", "type": "function_call", "call_id": call.id,
                "name": call.name, "arguments": json.dumps(call.arguments),
            }  # fmt: skip
            if call.namespace:
                item["namespace"] = call.namespace
        item["status"] = "completed"
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        done = {**response, "status": "completed", "output": [item], "usage": usage}
        return [
            {"type": "response.created", "response": {**response, "status": "in_progress"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ]

    def _google(self, call: Call | None) -> list[dict[str, Any]]:
        part: dict[str, Any] = {"text": self.reply}
        if call is not None:
            part = {"functionCall": {"name": call.name, "args": call.arguments}}
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        return [
            {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
        ]


@contextmanager
def played_apis(reply: str) -> Iterator[PlayedApis]:
    """The server, while it runs."""
    played = PlayedApis(reply)
    thread = threading.Thread(target=played.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield played
    finally:
        played.server.shutdown()
        played.server.server_close()
        thread.join()
