"""MCP clients: where each keeps its configuration, and what our entry in it looks like."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm_mem.errors import InputError
from rlm_mem.mcp.client_files import Edit, json_with, read_text, toml_with

__all__ = [
    "CLIENTS",
    "ENTRY_NAME",
    "Client",
    "client_named",
    "entry_of",
    "is_here",
    "launcher",
    "place_in_project",
    "planned",
    "shared_launcher",
]

ENTRY_NAME = "rlm-mem"

Place = Callable[[Path, Mapping[str, str]], Path]


@dataclass(frozen=True)
class Client:
    """A client and its files.

    Attributes:
        name: as `--client` takes it.
        user: where the settings of the user are, from home folder and environment.
        project: where the settings of a project are, below its folder; None: it has none.
        table: the object or table that holds the servers.
        form: json or toml.
        folder: how an entry names the project's folder, with a slash at its end; empty: by paths relative to it.
        program: the command that a user of it has.
        typed: an entry says `"type": "stdio"`.
        next_step: what the user does then.
    """

    name: str
    user: Place
    project: str | None
    table: str
    form: str = "json"
    folder: str = ""
    program: str = ""
    typed: bool = False
    next_step: str = "Restart the client."


def _application(folder: str, file: str) -> Place:
    """A file in the folder where desktop applications keep their settings."""

    def place(home: Path, environ: Mapping[str, str]) -> Path:
        if sys.platform == "darwin":
            root = home / "Library" / "Application Support"
        elif sys.platform == "win32":
            root = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
        else:
            root = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
        return root / folder / file

    return place


CLIENTS: tuple[Client, ...] = (
    Client(
        "claude-code",
        lambda home, env: (
            Path(env["CLAUDE_CONFIG_DIR"]) / ".claude.json"
            if env.get("CLAUDE_CONFIG_DIR")
            else home / ".claude.json"
        ),
        ".mcp.json",
        "mcpServers",
        folder="${CLAUDE_PROJECT_DIR:-.}/",
        program="claude",
        typed=True,
        next_step="Start a new session; /mcp lists the servers.",
    ),
    Client("claude-desktop", _application("Claude", "claude_desktop_config.json"), None, "mcpServers"),
    Client(
        "cursor",
        lambda home, _: home / ".cursor" / "mcp.json",
        ".cursor/mcp.json",
        "mcpServers",
        folder="${workspaceFolder}/",
        program="cursor",
    ),
    Client(
        "vscode",
        _application("Code/User", "mcp.json"),
        ".vscode/mcp.json",
        "servers",
        folder="${workspaceFolder}/",
        program="code",
        typed=True,
    ),
    Client(
        "codex",
        lambda home, env: Path(env.get("CODEX_HOME") or home / ".codex") / "config.toml",
        ".codex/config.toml",
        "mcp_servers",
        form="toml",
        program="codex",
        next_step="Start a new session. Codex reads the settings of a project only where you trust it.",
    ),
)


def client_named(name: str) -> Client:
    """The client of that name.

    Raises:
        InputError: it is not known.
    """
    for client in CLIENTS:
        if client.name == name:
            return client
    known = ", ".join(client.name for client in CLIENTS)
    raise InputError(
        f"there is no client {name!r}", hint=f"There are: {known}. Others take the entry of --print."
    )


def launcher() -> list[str]:
    """How a client starts this installation: an absolute path, since a client's PATH may differ from ours."""
    if ".cache/uv" in sys.prefix.replace("\\", "/") or "/uv/archive" in sys.prefix.replace("\\", "/"):
        # Run by uvx: its environment may be gone tomorrow, but uvx makes a new one.
        return [shutil.which("uvx") or "uvx", "--from", "rlm-mem[server]", "rlm-mem"]
    script = Path(sys.executable).with_name("rlm-mem.exe" if os.name == "nt" else "rlm-mem")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "rlm_mem"]


def shared_launcher() -> list[str]:
    """How a client starts the server on whichever machine a committed file comes to: by name, never by path."""
    own = launcher()
    return ["uvx", *own[1:]] if "--from" in own else ["rlm-mem"]


def place_in_project(client: Client, brain: Path, project: Path) -> str | None:
    """How a committed file names a brain inside the project; None for one that lies elsewhere."""
    try:
        inside = brain.expanduser().resolve().relative_to(project.resolve())
    except ValueError:
        return None
    return f"{client.folder}{inside.as_posix()}"


def is_here(client: Client, home: Path, environ: Mapping[str, str]) -> bool:
    """Whether the client seems to be installed: its command is on the PATH, or it has left settings."""
    settings = client.user(home, environ)
    own_folder = settings.parent if settings.parent != home else home / f".{client.program}"
    return bool((client.program and shutil.which(client.program)) or settings.exists() or own_folder.is_dir())


def entry_of(client: Client, command: list[str]) -> dict[str, Any]:
    """Our entry in the client's configuration; all settings are arguments, since some clients drop environments."""
    entry: dict[str, Any] = {"type": "stdio"} if client.typed else {}
    return {**entry, "command": command[0], "args": command[1:]}


def planned(client: Client, path: Path, entry: dict[str, Any] | None) -> Edit:
    """What the file would become with our entry, or without it (None); None when nothing changes.

    Raises:
        InvalidConfig: the file cannot be edited safely.
    """
    edit = toml_with if client.form == "toml" else json_with
    return edit(read_text(path), client.table, ENTRY_NAME, entry, where=str(path))
