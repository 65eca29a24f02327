"""Clients with hooks: the events of each, its settings file, and adding and removing the entries.

The formats follow the documentation of the clients: Claude Code (https://docs.claude.com/en/docs/claude-code/hooks),
Codex (https://developers.openai.com/codex/hooks), Cursor (https://cursor.com/docs/agent/hooks), Gemini CLI
(https://geminicli.com/docs/hooks/reference), Qwen Code (https://qwenlm.github.io/qwen-code-docs).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlm_mem.errors import InputError, InvalidConfig
from rlm_mem.mcp.clients import Edit, Place, read_text
from rlm_mem.mcp.commented_json import holds_nothing, read_commented, rewritten, without_empty

#: Time limit of each hook, in seconds.
SECONDS: dict[str, float] = {
    "session-start": 8, "user-prompt": 4, "stop": 15, "pre-compact": 20, "session-end": 20,
}  # fmt: skip

_MARGIN = 2  # seconds by which the client's own time limit is longer
_OURS = re.compile(r"\brlm[-_]mem\b.{0,400}?\bhook (?:" + "|".join(SECONDS) + r")\b")


@dataclass(frozen=True)
class HookClient:
    """A client that runs commands on events.

    Attributes:
        name: the name that ``--client`` takes.
        events: this package's event → the client's.
        user: finds the user's settings file, from home folder and environment. ``project``: a project's settings file.
        flat: whether an event has a list of commands instead of groups of commands.
        milliseconds: whether time limits are in milliseconds instead of seconds.
        most: events for which the client grants fewer seconds than :data:`SECONDS`, and warns of a longer limit.
    """

    name: str
    events: Mapping[str, str]
    user: Place
    project: str
    flat: bool = False
    milliseconds: bool = False
    most: Mapping[str, int] = field(default_factory=dict)

    def context(self, kind: str, text: str) -> str:
        """The JSON that adds a text to the model's context; empty if the client accepts no text at this event."""
        if self.flat:
            return json.dumps({"additional_context": text}) if kind == "session-start" else ""
        output = {"hookEventName": self.events[kind], "additionalContext": text}
        return json.dumps({"hookSpecificOutput": output})


def _folder_of(variable: str, folder: str, file: str) -> Place:
    def place(home: Path, environ: Mapping[str, str]) -> Path:
        return Path(environ.get(variable) or home / folder) / file

    return place


#: The events of Claude Code, which others took over.
_EVENTS = {
    "session-start": "SessionStart",
    "user-prompt": "UserPromptSubmit",
    "stop": "Stop",
    "pre-compact": "PreCompact",
    "session-end": "SessionEnd",
}

HOOK_CLIENTS: tuple[HookClient, ...] = (
    HookClient(
        "claude-code",
        _EVENTS,
        _folder_of("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
        ".claude/settings.json",
    ),
    HookClient(
        "codex",
        _EVENTS,
        _folder_of("CODEX_HOME", ".codex", "hooks.json"),
        ".codex/hooks.json",
        most={"session-end": 3},
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
    ),
    HookClient(
        "gemini-cli",
        {
            "session-start": "SessionStart",
            "user-prompt": "BeforeAgent",
            "stop": "AfterAgent",
            "pre-compact": "PreCompress",
            "session-end": "SessionEnd",
        },
        lambda home, env: Path(env.get("GEMINI_CLI_HOME") or home) / ".gemini" / "settings.json",
        ".gemini/settings.json",
        milliseconds=True,
    ),
    HookClient(
        "qwen-code",
        _EVENTS,
        _folder_of("QWEN_HOME", ".qwen", "settings.json"),
        ".qwen/settings.json",
        milliseconds=True,  # later versions take seconds, and values from 1,000 on as milliseconds
    ),
)


def hook_client_named(name: str) -> HookClient:
    """The client with this name.

    Raises:
        InputError: the client has no hooks, or is unknown.
    """
    for client in HOOK_CLIENTS:
        if client.name == name:
            return client
    known = ", ".join(client.name for client in HOOK_CLIENTS)
    raise InputError(f"hooks are not supported for {name!r:.60}", hint=f"supported: {known}")


def doubled_by_cursor(client: HookClient, event: Mapping[str, Any]) -> bool:
    """Whether Cursor runs this hook of Claude Code's settings, which it reads as well, beside one of its own.

    Raises:
        StorageError: its settings cannot be read.
    """
    if client.name != "claude-code" or not event.get("cursor_version"):
        return False
    cursor = hook_client_named("cursor")
    roots = event.get("workspace_roots")
    folders = [Path(one) for one in roots if isinstance(one, str)] if isinstance(roots, list) else []
    files = [cursor.user(Path.home(), os.environ), *(folder / cursor.project for folder in folders)]
    return any(our_hooks(read_text(file)) for file in files)


def hooks_of(client: HookClient, command: Sequence[str], options: Sequence[str] = ()) -> dict[str, Any]:
    """The entries of this package, by the client's events.

    Args:
        command: the command that starts this installation.
        options: further options of the hook command, such as ``--brain PATH``.
    """
    made: dict[str, Any] = {}
    for kind, event in client.events.items():
        line = _line([*command, "hook", kind, "--client", client.name, *options])
        seconds = client.most.get(kind, int(SECONDS[kind]) + _MARGIN)
        entry = {"command": line, "timeout": seconds * 1_000 if client.milliseconds else seconds}
        if client.flat:
            made[event] = [entry]
        else:
            made[event] = [{"hooks": [{"type": "command", **entry}]}]
    return made


def _line(words: Sequence[str]) -> str:
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)


def our_hooks(text: str) -> dict[str, str]:
    """This package's commands in a settings file, by the client's events; empty where the file is not JSON."""
    try:
        settings = read_commented(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return {}
    events = settings.get("hooks") if isinstance(settings, dict) else None
    found = {}
    for event, groups in events.items() if isinstance(events, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            inner = group.get("hooks") if isinstance(group, dict) else None
            for entry in (group, *inner) if isinstance(inner, list) else (group,):
                if _is_ours(entry):
                    found[event] = entry["command"]
    return found


def with_hooks(text: str, client: HookClient, ours: Mapping[str, Any] | None, *, where: str) -> Edit:
    """The settings with this package's former hooks replaced by ``ours``, or removed (None).

    Other entries, their order, comments and the indent of the file are kept.

    Returns:
        the new text; None when nothing changes; empty when the file contained nothing else and can be deleted.

    Raises:
        InvalidConfig: the text is not a JSON object of the client's format, with or without comments.
    """
    try:
        settings = read_commented(text) if text.strip() else {}
    except ValueError as error:
        raise InvalidConfig(
            f"{where} is not JSON: {error}", hint="use --print and add the hooks by hand"
        ) from None
    present = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(present, dict) or not all(isinstance(groups, list) for groups in present.values()):
        raise InvalidConfig(f"{where} has an unexpected form: hooks is not an object of lists")
    changed = {event: _with_ours(groups, (ours or {}).get(event, [])) for event, groups in present.items()}
    kept = {event: groups for event, groups in changed.items() if groups or not present[event]}
    kept |= {event: groups for event, groups in (ours or {}).items() if event not in present}
    if kept == present and ("hooks" in settings) == bool(present or ours):
        return None
    wanted = {**settings, "hooks": kept}
    if client.flat and ours is not None:
        wanted.setdefault("version", 1)
    if not text.strip():
        return json.dumps(wanted, ensure_ascii=False, indent=2) + "\n"
    made = _in_place(text, wanted, [event for event in changed if event not in kept])
    if not kept and client.flat and set(read_commented(made)) == {"version"}:
        made = rewritten(made, {})
    return "" if not kept and holds_nothing(made) else made


def _with_ours(groups: list[Any], ours: list[Any]) -> list[Any]:
    """The groups of an event, with this package's groups in place of its former ones, else at the end."""
    left = [_without_ours(group) for group in groups]
    first = next(
        (at for at, (group, rest) in enumerate(zip(groups, left, strict=True)) if rest != group), None
    )
    others = [[rest] if rest is not None else [] for rest in left]
    if first is None:
        return [*groups, *ours]
    others[first] = [*others[first], *ours]
    return [group for part in others for group in part]


def _in_place(text: str, wanted: dict[str, Any], emptied: list[str]) -> str:
    """Settings changed to the wanted value; parts left empty are removed unless they have comments."""
    hooks = {**wanted["hooks"], **{event: [] for event in emptied}}
    made = rewritten(text, {**wanted, "hooks": hooks})
    for event in emptied:
        made = without_empty(made, "hooks", event)
    return without_empty(made, "hooks") if not read_commented(made)["hooks"] else made


def _without_ours(group: Any) -> Any:
    """A group, or a bare command, without this package's commands; None if nothing is left."""
    if not isinstance(group, dict):
        return group
    if _is_ours(group):
        return None
    inner = group.get("hooks")
    if not isinstance(inner, list) or not any(_is_ours(one) for one in inner):
        return group
    left = [one for one in inner if not _is_ours(one)]
    return {**group, "hooks": left} if left else None


def _is_ours(entry: Any) -> bool:
    command = entry.get("command") if isinstance(entry, dict) else None
    return isinstance(command, str) and _OURS.search(command) is not None
