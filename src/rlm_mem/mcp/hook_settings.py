"""The hooks of this package in the settings files of clients: finding, adding and removing them."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rlm_mem.config import home_folder
from rlm_mem.errors import InvalidConfig
from rlm_mem.mcp.clients import Edit, read_json, read_text
from rlm_mem.mcp.commented_json import is_empty, read_commented, rewritten, without_empty
from rlm_mem.mcp.hook_clients import SECONDS, HookClient, hook_client_named

_MARGIN = 2  # seconds added to a hook's own limit for the limit of the client
_OUR_COMMAND = re.compile(r"\brlm[-_]mem\b.{0,400}?\bhook (?:" + "|".join(SECONDS) + r")\b")


def cursor_has_our_hooks(event: Mapping[str, Any]) -> bool:
    """Return whether Cursor has hooks of this package in its own settings, for the folders of an event.

    Raises:
        StorageError: its settings cannot be read.
    """
    cursor = hook_client_named("cursor")
    roots = event.get("workspace_roots")
    folders = [Path(one) for one in roots if isinstance(one, str)] if isinstance(roots, list) else []
    files = [cursor.user(home_folder(), os.environ), *(folder / cursor.project for folder in folders)]
    return any(our_hooks(read_text(file)) for file in files)


def hooks_of(client: HookClient, command: Sequence[str], options: Sequence[str] = ()) -> dict[str, Any]:
    """Return the entries of this package, by the client's events.

    Args:
        command: the command that starts this installation.
        options: further options of the hook command, such as ``--brain PATH``.
    """
    made: dict[str, Any] = {}
    join = subprocess.list2cmdline if os.name == "nt" else shlex.join
    for kind, event in client.events.items():
        line = join([*command, "hook", kind, "--client", client.name, *options])
        seconds = client.max_seconds.get(kind, int(SECONDS[kind]) + _MARGIN)
        entry = {"command": line, "timeout": seconds * 1_000 if client.milliseconds else seconds}
        if client.flat:
            made[event] = [entry]
        else:
            matcher = {"matcher": client.tools} if kind == "tool-use" else {}
            made[event] = [{**matcher, "hooks": [{"type": "command", **entry}]}]
    return made


def our_hooks(text: str) -> dict[str, str]:
    """Return this package's commands in a settings file, by the client's events; empty if the file is not JSON."""
    try:
        settings = read_json(text, "")
    except InvalidConfig:
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
    """Return the settings with this package's former hooks replaced by ``ours``, or removed (None).

    Other entries, their order, comments and the indent of the file are kept.

    Returns:
        The new text; None if nothing changes; empty if the file contained nothing else and can be deleted.

    Raises:
        InvalidConfig: the text is not a JSON object of the client's format, with or without comments.
    """
    settings = read_json(text, where)
    present = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(present, dict) or not all(isinstance(groups, list) for groups in present.values()):
        raise InvalidConfig(f"{where} has an unexpected form: hooks is not an object of lists")
    changed = {event: _with_ours(groups, (ours or {}).get(event, [])) for event, groups in present.items()}
    kept = {event: groups for event, groups in changed.items() if groups or not present[event]}
    kept |= {event: groups for event, groups in (ours or {}).items() if event not in present}
    if kept == present:
        return None
    wanted = {**settings, "hooks": kept}
    if client.flat and ours is not None:
        wanted.setdefault("version", 1)
    if not text.strip():
        return json.dumps(wanted, ensure_ascii=False, indent=2) + "\n"
    made = _in_place(text, wanted, [event for event in changed if event not in kept])
    if not kept and client.flat and set(read_commented(made)) == {"version"}:
        made = rewritten(made, {})
    return "" if not kept and is_empty(made) else made


def _with_ours(groups: list[Any], ours: list[Any]) -> list[Any]:
    """Return the groups of an event, with this package's groups in place of its former ones, else at the end."""
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
    """Edit settings to the wanted value; remove parts that become empty, unless they have comments."""
    hooks = {**wanted["hooks"], **{event: [] for event in emptied}}
    made = rewritten(text, {**wanted, "hooks": hooks})
    for event in emptied:
        made = without_empty(made, "hooks", event)
    return without_empty(made, "hooks") if not read_commented(made)["hooks"] else made


def _without_ours(group: Any) -> Any:
    """Return a group, or a single command, without this package's commands; None if nothing remains."""
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
    return isinstance(command, str) and _OUR_COMMAND.search(command) is not None
