"""A server that plays the interfaces of Anthropic, OpenAI and Google for coding agents: always one reply."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class PlayedApis:
    """The server.

    Attributes:
        address: its base address.
        asked: the bodies of the requests for a reply, in their order.
    """

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.asked: list[str] = []
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
                events = played._events(path)
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

    def _events(self, path: str) -> list[dict[str, Any]]:
        if path.endswith("/messages"):
            return self._anthropic()
        if path.endswith("/responses"):
            return self._openai()
        return self._google() if "enerateContent" in path else []

    def _anthropic(self) -> list[dict[str, Any]]:
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "played", "content": [],
            "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }  # fmt: skip
        text = {"type": "text_delta", "text": self.reply}
        return [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": text},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
            {"type": "message_stop"},
        ]

    def _openai(self) -> list[dict[str, Any]]:
        response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "played", "output": []}
        content = [{"type": "output_text", "text": self.reply, "annotations": []}]
        item = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        done = {**response, "status": "completed", "output": [item], "usage": usage}
        return [
            {"type": "response.created", "response": {**response, "status": "in_progress"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": done},
        ]

    def _google(self) -> list[dict[str, Any]]:
        content = {"role": "model", "parts": [{"text": self.reply}]}
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
