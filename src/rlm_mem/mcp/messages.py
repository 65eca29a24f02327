"""Messages that the protocol's parser refuses: repaired if possible, else (over stdio) answered with an error.

Over stdio the parser silently drops such a message, and the client would wait for an answer without end.
"""

from __future__ import annotations

import json
import re
from collections import deque

import mcp_types
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from rlm_mem.sandbox.values import well_formed

# An unterminated string is a token too, since retrying from each of its characters would take quadratic time.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.?)*+"?|[{\[]+|[}\]]+|[,:]|[^\s"{}\[\],:]+', re.DOTALL)
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,40}")


class AnsweredMessages:
    """A stream of messages that repairs those that cannot be read, or answers them with an error.

    An unpaired surrogate, which JavaScript writes for a text cut within an emoji, is replaced by U+FFFD. The messages
    of a batch, which the protocol had until 2025-03-26, are returned one after the other. Any other unreadable message,
    such as one nested too deeply, is answered with an error with the id of the request, or null without a valid one.

    Args:
        received: the messages of the client.
        answers: the stream to which errors are sent.
    """

    def __init__(
        self, received: ReadStream[SessionMessage | Exception], answers: WriteStream[SessionMessage]
    ) -> None:
        self._received = received
        self._answers = answers
        self._batch: deque[object] = deque()

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message, or the parser's error if it cannot be read."""
        return await self._handled(self._next_of_batch() or await self._received.receive())

    async def aclose(self) -> None:
        """Close the stream."""
        await self._received.aclose()

    def __aiter__(self) -> AnsweredMessages:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._handled(self._next_of_batch() or await self._received.__anext__())

    async def __aenter__(self) -> AnsweredMessages:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _next_of_batch(self) -> SessionMessage | Exception | None:
        if not self._batch:
            return None
        try:
            return SessionMessage(
                mcp_types.jsonrpc_message_adapter.validate_python(self._batch.popleft(), by_name=False)
            )
        except ValidationError as error:
            return error

    async def _handled(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(item, SessionMessage):
            # The parser treats a request whose id is null, a fraction or a list as a notification.
            method = getattr(item.message, "method", "")
            if isinstance(item.message, mcp_types.JSONRPCNotification) and not method.startswith(
                "notifications/"
            ):
                await self._refuse(None, mcp_types.INVALID_REQUEST, "its id must be text or a whole number")
            return item
        if not isinstance(item, ValidationError):
            return item
        first = item.errors()[0]
        if first["type"] == "json_invalid":
            line = first["input"]
            read = _parse_repaired(line)
            if isinstance(read, SessionMessage):
                return read
            if read is None and line.strip() and not _is_response(line):
                reason = first.get("ctx", {}).get("error", "it is not JSON")
                await self._refuse(request_id(line), mcp_types.PARSE_ERROR, reason)
            return item if read is None else await self._handled(read)
        message = _original_message(item)
        if isinstance(message, list) and message:
            # A batch within a batch is not a valid message.
            self._batch.extend(one if not isinstance(one, list) else None for one in message)
        elif not isinstance(message, dict) or message.keys().isdisjoint(("result", "error")):
            request = message.get("id") if isinstance(message, dict) else None
            known = isinstance(request, str | int) and not isinstance(request, bool)
            await self._refuse(
                request if known else None, mcp_types.INVALID_REQUEST, "it is not a JSON-RPC 2.0 request"
            )
        return item

    async def _refuse(self, request: str | int | None, code: int, reason: str) -> None:
        error = mcp_types.ErrorData(code=code, message=f"the request cannot be read: {reason}")
        await self._answers.send(
            SessionMessage(mcp_types.JSONRPCError(jsonrpc="2.0", id=request, error=error))
        )


def _parse_repaired(line: str) -> SessionMessage | ValidationError | None:
    """Return the message of a line after replacing surrogates; an error if it is not a message, None if not JSON."""
    text = replace_surrogates(line)
    if text is None:
        return None
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValidationError as error:
        return error


def replace_surrogates(message: str | bytes) -> str | None:
    """Replace each unpaired surrogate in JSON by U+FFFD; return None if it has no surrogates, or is not JSON."""
    lower = message.lower()
    if not ("\\ud" in lower if isinstance(lower, str) else b"\\ud" in lower):
        return None
    try:
        return well_formed(json.dumps(json.loads(message), ensure_ascii=False))
    except (ValueError, RecursionError):
        return None


def _original_message(refused: ValidationError) -> object:
    """Return a refused message that is JSON, as it was sent."""
    # The errors for a value that is not a mapping, and for a missing field, have the whole message as their input.
    whole = {("model_type", 1), ("missing", 2)}
    return next((one["input"] for one in refused.errors() if (one["type"], len(one["loc"])) in whole), None)


def _is_response(line: str) -> bool:
    """Return whether a line that cannot be parsed is a response of the client, which gets no answer."""
    return '"result"' in (keys := _keys(line)) or '"error"' in keys


def request_id(line: str) -> str | int | None:
    """Return the id of a request that cannot be parsed, however deeply nested; None without an id or for a response."""
    keys = _keys(line)
    found = keys.get('"id"')
    if found is None or _is_response(line):
        return None
    if _WHOLE_NUMBER.fullmatch(found):
        return int(found)
    try:
        named = json.loads(found)
    except (ValueError, RecursionError):
        return None
    return named if isinstance(named, str) else None


def _keys(line: str) -> dict[str, str]:
    """Return the first token of each value of a mapping that cannot be parsed, by the key in quotes."""
    depth, key, text = 0, "", ""
    found: dict[str, str] = {}
    for token in _TOKEN.finditer(line):
        text, before = token[0], text
        if depth == 1 and before == ":":
            found[key] = text
        if text[0] in "{[":
            if depth == 0 and text[0] != "{":
                break
            depth += len(text)
        elif text[0] in "}]":
            depth -= len(text)
        elif depth == 1 and before in ("{", ",") and text[0] == '"':
            key = text
    return found
