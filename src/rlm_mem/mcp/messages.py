"""Messages that the protocol's parser refuses: mended if possible, else (over stdio) answered with an error.

Over stdio the parser silently drops such a message, and the client would wait in vain for an answer.
"""

from __future__ import annotations

import json
import re
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING

import mcp_types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from rlm_mem.sandbox.values import well_formed

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

# An unterminated string is a token too: retrying from each character within it would take quadratic time.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.?)*+"?|[{\[]+|[}\]]+|[,:]|[^\s"{}\[\],:]+', re.DOTALL)
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,40}")


class AnsweredMessages:
    """A stream of messages that mends, or answers with an error, those that cannot be read.

    Half of a surrogate pair, which JavaScript writes for a text cut within an emoji, is replaced by U+FFFD. The
    messages of a batch, which the protocol had until 2025-03-26, are read one after the other. Any other unreadable
    message, such as one nested too deeply, is answered with an error that has the id of the request, or null where it
    has none that a request may have.

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
        """The next message, or the parser's error if it cannot be read."""
        return await self._answered(self._next_of_batch() or await self._received.receive())

    async def aclose(self) -> None:
        """Close the stream."""
        await self._received.aclose()

    def __aiter__(self) -> AnsweredMessages:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._answered(self._next_of_batch() or await self._received.__anext__())

    async def __aenter__(self) -> AnsweredMessages:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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

    async def _answered(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(item, SessionMessage):
            # The parser takes a request whose id is null, a fraction, a list or the like for a notification.
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
            read = _read(line)
            if isinstance(read, SessionMessage):
                return read
            if read is None and line.strip() and not _is_answer(line):
                reason = first.get("ctx", {}).get("error", "it is no JSON")
                await self._refuse(request_id(line), mcp_types.PARSE_ERROR, reason)
            return item if read is None else await self._answered(read)
        message = _whole(item)
        if isinstance(message, list) and message:
            # A message of the batch that is a list again is no message.
            self._batch.extend(one if not isinstance(one, list) else None for one in message)
        elif not isinstance(message, dict) or message.keys().isdisjoint(("result", "error")):
            asked = message.get("id") if isinstance(message, dict) else None
            known = isinstance(asked, str | int) and not isinstance(asked, bool)
            await self._refuse(
                asked if known else None, mcp_types.INVALID_REQUEST, "it is no request of JSON-RPC 2.0"
            )
        return item

    async def _refuse(self, asked: str | int | None, code: int, reason: str) -> None:
        error = mcp_types.ErrorData(code=code, message=f"the request cannot be read: {reason}")
        await self._answers.send(SessionMessage(mcp_types.JSONRPCError(jsonrpc="2.0", id=asked, error=error)))


def _read(line: str) -> SessionMessage | ValidationError | None:
    """The message of a line whose surrogates are mended; an error if it is no message, None if it is no JSON."""
    text = mended(line)
    if text is None:
        return None
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValidationError as error:
        return error


def mended(message: str | bytes) -> str | None:
    """The JSON with U+FFFD in place of each half surrogate pair; None if it has no surrogates, or is not JSON."""
    lower = message.lower()
    if not ("\\ud" in lower if isinstance(lower, str) else b"\\ud" in lower):
        return None
    try:
        return well_formed(json.dumps(json.loads(message), ensure_ascii=False))
    except (ValueError, RecursionError):
        return None


def _whole(refused: ValidationError) -> object:
    """A message that is JSON but no valid message, as it was sent."""
    # The error for another type than a mapping, and for a missing field, has the whole message as its input.
    whole = {("model_type", 1), ("missing", 2)}
    return next((one["input"] for one in refused.errors() if (one["type"], len(one["loc"])) in whole), None)


def _is_answer(line: str) -> bool:
    """Whether a line that cannot be parsed is an answer of the client, to which nothing is answered."""
    return '"result"' in (keys := _keys(line)) or '"error"' in keys


def request_id(line: str) -> str | int | None:
    """The id of a request that cannot be parsed, however deeply nested; None if it has no id or is an answer."""
    keys = _keys(line)
    found = keys.get('"id"')
    if found is None or _is_answer(line):
        return None
    if _WHOLE_NUMBER.fullmatch(found):
        return int(found)
    try:
        named = json.loads(found)
    except (ValueError, RecursionError):
        return None
    return named if isinstance(named, str) else None


def _keys(line: str) -> dict[str, str]:
    """The first tokens of the values of a mapping that cannot be parsed, by their keys in quotes."""
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
