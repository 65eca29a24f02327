"""Messages over stdio with half of a surrogate pair, as JavaScript writes a text that was cut within an emoji."""

from __future__ import annotations

import json
from types import TracebackType
from typing import TYPE_CHECKING

import mcp_types
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from rlm_mem.sandbox.values import well_formed

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream

__all__ = ["MendedMessages"]


class MendedMessages:
    """A stream of messages in which half surrogate pairs are replaced by U+FFFD.

    The protocol's parser refuses such a message, which then has no id to be answered by: the client would wait in vain.
    """

    def __init__(self, received: ReadStream[SessionMessage | Exception]) -> None:
        self._received = received

    async def receive(self) -> SessionMessage | Exception:
        """The next message, or the error of one that is no JSON."""
        return _mended(await self._received.receive())

    async def aclose(self) -> None:
        """Close the stream."""
        await self._received.aclose()

    def __aiter__(self) -> MendedMessages:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return _mended(await self._received.__anext__())

    async def __aenter__(self) -> MendedMessages:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _mended(item: SessionMessage | Exception) -> SessionMessage | Exception:
    if not isinstance(item, ValidationError):
        return item
    line = item.errors()[0]["input"]
    if not isinstance(line, str) or "\\ud" not in line.lower():
        return item
    try:
        text = well_formed(json.dumps(json.loads(line), ensure_ascii=False))
        message = mcp_types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except (ValueError, RecursionError):
        return item
    return SessionMessage(message)
