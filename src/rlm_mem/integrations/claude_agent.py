"""Hooks for programs on the Claude Agent SDK (extra ``claude-agent``).

They show and capture the same as the hooks of Claude Code (docs/capture.md), but run within the program.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, cast

from claude_agent_sdk import HookInput, HookMatcher
from claude_agent_sdk.types import HookEvent, HookJSONOutput

from rlm_mem.config import locate
from rlm_mem.errors import RlmMemError
from rlm_mem.mcp.hook_clients import hook_client_named
from rlm_mem.mcp.hooks import handle_event
from rlm_mem.memory import Memory

_CLIENT = "claude-agent-sdk"
_TOOLS = hook_client_named("claude-code").tools
_SECONDS = 30.0
"""How long the SDK waits for a hook."""

_log = logging.getLogger(__name__)


def memory_hooks(
    brain: Path | str | None = None, *, namespace: str | None = None
) -> dict[HookEvent, list[HookMatcher]]:
    """Hooks for ``ClaudeAgentOptions(hooks=…)``.

    With the first prompt of a session, and the first after its context was compacted, the agent gets the general
    memories of its project and its user, and with every prompt those that are relevant to it; no memory is given
    twice in a session without a compaction between. With a command or the change of a file, it gets the memories
    that speak to it, each once in a session. A subagent gets the general memories when it starts. At the end of
    each turn and before compaction, the conversation is captured by rules. A hook never fails: errors are logged
    (``rlm_mem.integrations.claude_agent``).

    Example::

        options = ClaudeAgentOptions(hooks=memory_hooks())

    Args:
        brain: folder or DSN of the brain; None: the default of the command line.
        namespace: namespace of the memories; None: derived from the repository that the agent works in.
    """
    hooks = _Hooks(locate(brain), namespace)
    turn_ended = [HookMatcher(hooks=[partial(hooks.capture, "stop")], timeout=_SECONDS)]
    return {
        "UserPromptSubmit": [HookMatcher(hooks=[hooks.add_context], timeout=_SECONDS)],
        "PreToolUse": [HookMatcher(_TOOLS, [hooks.add_context_of_tool], timeout=_SECONDS)],
        "SubagentStart": [HookMatcher(hooks=[hooks.add_context_of_subagent], timeout=_SECONDS)],
        "Stop": turn_ended,
        "PreCompact": [HookMatcher(hooks=[hooks.before_compaction], timeout=_SECONDS)],
    }


def _context(event: str, text: str) -> HookJSONOutput:
    if not text:
        return {}
    return cast("HookJSONOutput", {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}})


class _Hooks:
    """The functions behind the hooks of one program."""

    def __init__(self, place: Path | str, namespace: str | None) -> None:
        self._place = place
        self._namespace = namespace
        self._begun: set[str] = set()

    async def add_context(self, event: HookInput, *_: object) -> HookJSONOutput:
        session = str(event.get("session_id"))
        kinds = ["user-prompt"] if session in self._begun else ["session-start", "user-prompt"]
        self._begun.add(session)
        texts = [await asyncio.to_thread(self._carry_out, kind, event) for kind in kinds]
        return _context("UserPromptSubmit", "\n\n".join(filter(None, texts)))

    async def add_context_of_tool(self, event: HookInput, *_: object) -> HookJSONOutput:
        return _context("PreToolUse", await asyncio.to_thread(self._carry_out, "tool-use", event))

    async def add_context_of_subagent(self, event: HookInput, *_: object) -> HookJSONOutput:
        return _context("SubagentStart", await asyncio.to_thread(self._carry_out, "subagent-start", event))

    async def before_compaction(self, event: HookInput, *_: object) -> HookJSONOutput:
        self._begun.discard(str(event.get("session_id")))  # the new context contains no memories
        return await self.capture("pre-compact", event)

    async def capture(self, kind: str, event: HookInput, *_: object) -> HookJSONOutput:
        await asyncio.to_thread(self._carry_out, kind, event)
        return {}

    def _carry_out(self, kind: str, event: HookInput) -> str:
        def opened(namespace: str | None) -> Memory:
            return Memory.open(self._place, namespace=namespace, actor=f"hook:{_CLIENT}")

        given: list[str] = []
        try:
            handle_event(
                kind,
                _CLIENT,
                cast("Mapping[str, Any]", event),
                opened,
                given.append,
                brain=self._place if isinstance(self._place, Path) else None,
                namespace=self._namespace,
            )
        except RlmMemError as error:
            _log.warning("%s: %s", kind, error)
        except Exception:  # noqa: BLE001 - an unusable memory must not end the agent's turn
            _log.exception("%s failed", kind)
        return "".join(given)
