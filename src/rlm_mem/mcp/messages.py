"""Messages that the protocol's parser refuses: mended if possible, else (over stdio) answered with an error.

Over stdio the parser silently drops such a message, and the client would wait in vain for an answer.
"""

from __future__ import annotations

import json
import re
from types import TracebackType
from typing import TYPE_CHECKING

import mcp_types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from rlm_mem.sandbox.values import well_formed

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

__all__ = ["AnsweredMessages", "mended", "request_id"]

# An unterminated string is a token too: retrying from each character within it would take quadratic time.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.?)*+"?|[{\[]+|[}\]]+|[,:]|[^\s"{}\[\],:]+', re.DOTALL)
_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,40}")


class AnsweredMessages:
    """A stream of messages that mends, or answers with an error, those that cannot be read.

    Half of a surrogate pair, which JavaScript writes for a text cut within an emoji, is replaced by U+FFFD. Any other
    unreadable message, such as one nested too deeply, is answered with an error if it has the id of a request.

    Args:
        received: the messages of the client.
        answers: the stream to which errors are sent.
    """

    def __init__(
        self, received: ReadStream[SessionMessage | Exception], answers: WriteStream[SessionMessage]
    ) -> None:
        self._received = received
        self._answers = answers

    async def receive(self) -> SessionMessage | Exception:
        """The next message, or the parser's error if it cannot be read."""
        return await self._answered(await self._received.receive())

    async def aclose(self) -> None:
        """Close the stream."""
        await self._received.aclose()

    def __aiter__(self) -> AnsweredMessages:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._answered(await self._received.__anext__())

    async def __aenter__(self) -> AnsweredMessages:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _answered(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if not isinstance(item, ValidationError):
            return item
        first = item.errors()[0]
        line, reason = first["input"], "it is no request of JSON-RPC 2.0"
        if isinstance(line, str):
            read = _read(line)
            if read is not None:
                return read
            asked, reason = request_id(line), first.get("ctx", {}).get("error", reason)
        else:
            asked = _id_in(item)
        if asked is not None:
            error = mcp_types.ErrorData(
                code=mcp_types.INVALID_REQUEST, message=f"the request cannot be read: {reason}"
            )
            answer = mcp_types.JSONRPCError(jsonrpc="2.0", id=asked, error=error)
            await self._answers.send(SessionMessage(answer))
        return item


def _read(line: str) -> SessionMessage | None:
    text = mended(line)
    if text is None:
        return None
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError:
        return None


def mended(message: str | bytes) -> str | None:
    """The JSON with U+FFFD in place of each half surrogate pair; None if it has no surrogates, or is not JSON."""
    lower = message.lower()
    if not ("\\ud" in lower if isinstance(lower, str) else b"\\ud" in lower):
        return None
    try:
        return well_formed(json.dumps(json.loads(message), ensure_ascii=False))
    except (ValueError, RecursionError):
        return None


def _id_in(refused: ValidationError) -> str | int | None:
    """The id of a message that is JSON but not a valid request: a field is missing or invalid."""
    for one in refused.errors():
        # The error for a missing field, of any kind of message, has the whole message as its input.
        message = one["input"] if one["type"] == "missing" and len(one["loc"]) == 2 else None
        if isinstance(message, dict) and message.keys().isdisjoint(("result", "error")):
            asked = message.get("id")
            return asked if isinstance(asked, str | int) and not isinstance(asked, bool) else None
    return None


def request_id(line: str) -> str | int | None:
    """The id of a request that cannot be parsed, however deeply nested; None if it has no id or is an answer."""
    depth, key, text, found = 0, "", "", None
    for token in _TOKEN.finditer(line):
        text, before = token[0], text
        if text[0] in "{[":
            if depth == 0 and text[0] != "{":
                return None
            depth += len(text)
        elif text[0] in "}]":
            depth -= len(text)
        elif depth != 1:
            continue
        elif before in ("{", ",") and text[0] == '"':
            key = text
            if key in ('"result"', '"error"'):
                return None
        elif before == ":" and key == '"id"':
            found = text
    if found is None:
        return None
    if _WHOLE_NUMBER.fullmatch(found):
        return int(found)
    try:
        named = json.loads(found)
    except (ValueError, RecursionError):
        return None
    return named if isinstance(named, str) else None
