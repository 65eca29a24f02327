"""Clients with hooks: the events of each, its settings file, and what it accepts as context.

The formats follow the documentation of the clients: Claude Code (https://docs.claude.com/en/docs/claude-code/hooks),
Codex (https://developers.openai.com/codex/hooks), Cursor (https://cursor.com/docs/agent/hooks), Gemini CLI
(https://geminicli.com/docs/hooks/reference), GitHub Copilot CLI
(https://docs.github.com/en/copilot/reference/hooks-configuration), Qwen Code
(https://qwenlm.github.io/qwen-code-docs).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from rlm_mem.errors import InputError
from rlm_mem.record import FrozenRecord

Place = Callable[[Path, Mapping[str, str]], Path]
"""Returns a settings file, given the home folder and the environment."""

#: Time limit of each hook, in seconds.
SECONDS: dict[str, float] = {
    "session-start": 8, "subagent-start": 8, "user-prompt": 4, "tool-use": 2, "stop": 15, "pre-compact": 20,
    "session-end": 20,
}  # fmt: skip


#: The events at which a hook gives memories to the agent.
GIVES_CONTEXT = ("session-start", "subagent-start", "user-prompt", "tool-use")


class HookClient(FrozenRecord, frozen=True):
    """A client that runs commands on events.

    Attributes:
        name: the name that ``--client`` takes.
        events: the client's names of events, by this package's names.
        tools: pattern of the tools whose use runs the hook ``tool-use``: those that run commands and change files.
        user: returns the user's settings file. ``project``: path of a project's settings file.
        flat: whether an event has a list of commands instead of groups of commands.
        output: the field of the output that takes context; empty: ``hookSpecificOutput``.
        takes_context: the events whose output may have context.
        transcript: returns the transcript of a session, given its id, where not every event names it.
        writes_late: whether it may run a hook before it has written what precedes to the transcript.
        milliseconds: whether time limits are in milliseconds instead of seconds.
        max_seconds: events for which the client permits fewer seconds than :data:`SECONDS`.
    """

    name: str
    events: Mapping[str, str]
    user: Place
    project: str
    tools: str = ""
    flat: bool = False
    output: str = ""
    takes_context: tuple[str, ...] = GIVES_CONTEXT
    transcript: Callable[[Path, Mapping[str, str], str], Path] | None = None
    writes_late: bool = False
    milliseconds: bool = False
    max_seconds: Mapping[str, int] = {}

    def context(self, kind: str, text: str) -> str:
        """Return the JSON that adds a text to the model's context; empty if the client accepts none at this event."""
        if kind not in self.takes_context or kind not in self.events:
            return ""
        if self.output:
            return json.dumps({self.output: text})
        output = {"hookEventName": self.events[kind], "additionalContext": text}
        return json.dumps({"hookSpecificOutput": output})


def _folder_of(variable: str, folder: str, file: str) -> Place:
    def place(home: Path, environ: Mapping[str, str]) -> Path:
        return Path(environ.get(variable) or home / folder) / file

    return place


#: The events of Claude Code, which other clients have adopted.
_EVENTS = {
    "session-start": "SessionStart",
    "user-prompt": "UserPromptSubmit",
    "stop": "Stop",
    "pre-compact": "PreCompact",
    "session-end": "SessionEnd",
}

#: Also the start of a subagent, whose context begins empty, and each use of a tool.
_ALL_EVENTS = {
    "session-start": "SessionStart",
    "subagent-start": "SubagentStart",
    "tool-use": "PreToolUse",  # the model gets the context together with the tool's result
    **_EVENTS,
}

HOOK_CLIENTS: tuple[HookClient, ...] = (
    HookClient(
        "claude-code",
        _ALL_EVENTS,
        _folder_of("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
        ".claude/settings.json",
        tools="Bash|Edit|MultiEdit|Write|NotebookEdit",
    ),
    HookClient(
        "codex",
        _ALL_EVENTS,
        _folder_of("CODEX_HOME", ".codex", "hooks.json"),
        ".codex/hooks.json",
        tools="Bash|apply_patch",
        max_seconds={"session-end": 3},
    ),
    HookClient(
        "cursor",
        {
            "session-start": "sessionStart",
            "user-prompt": "beforeSubmitPrompt",
            "stop": "stop",
            "pre-compact": "preCompact",
            "session-end": "sessionEnd",
        },
        lambda home, _: home / ".cursor" / "hooks.json",
        ".cursor/hooks.json",
        flat=True,
        output="additional_context",
        takes_context=("session-start",),
    ),
    HookClient(
        "gemini-cli",
        {
            "session-start": "SessionStart",
            "user-prompt": "BeforeAgent",
            "tool-use": "AfterTool",  # its BeforeTool accepts no context
            "stop": "AfterAgent",
            # Not PreCompress: it runs before each request to the model, which waits for it, also without compression.
            "session-end": "SessionEnd",
        },
        lambda home, env: Path(env.get("GEMINI_CLI_HOME") or home) / ".gemini" / "settings.json",
        ".gemini/settings.json",
        tools="run_shell_command|write_file|replace",
        milliseconds=True,
    ),
    HookClient(
        "copilot-cli",  # runs every file in the folder
        _EVENTS,
        _folder_of("COPILOT_HOME", ".copilot", "hooks/rlm-mem.json"),
        ".github/hooks/rlm-mem.json",
        output="additionalContext",
        # Named only at the end of a turn.
        transcript=lambda home, env, session: (
            Path(env.get("COPILOT_HOME") or home / ".copilot") / "session-state" / session / "events.jsonl"
        ),
        writes_late=True,
    ),
    HookClient(
        "qwen-code",
        # No SubagentStart: up to 0.24, a subagent in the foreground is not told what it returns; nor is the model told
        # what PreToolUse returns.
        {"tool-use": "PostToolUse", **_EVENTS},
        _folder_of("QWEN_HOME", ".qwen", "settings.json"),
        ".qwen/settings.json",
        tools="run_shell_command|write_file|edit",
        milliseconds=True,  # later versions take seconds, but values from 1,000 as milliseconds
    ),
)


def hook_client_named(name: str) -> HookClient:
    """Return the client with this name.

    Raises:
        InputError: the client has no hooks, or is unknown.
    """
    for client in HOOK_CLIENTS:
        if client.name == name:
            return client
    known = ", ".join(client.name for client in HOOK_CLIENTS)
    raise InputError(f"hooks are not supported for {name!r:.60}", hint=f"supported: {known}")
