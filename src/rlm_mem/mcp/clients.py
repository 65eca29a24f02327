"""MCP clients: the location of their configuration, the format of the server entry, and writing it with a backup.

File locations and formats follow the documentation of the clients: code.claude.com/docs/en/mcp,
modelcontextprotocol.io (Claude Desktop), cursor.com/docs/mcp, code.visualstudio.com/docs,
developers.openai.com/codex/mcp, zed.dev/docs/ai/mcp, docs.windsurf.com/windsurf/cascade/mcp,
geminicli.com/docs/tools/mcp-server, docs.cline.bot/mcp, qwenlm.github.io/qwen-code-docs, opencode.ai/docs/mcp-servers;
of GitHub Copilot's command, `copilot mcp --help`.
"""

from __future__ import annotations

import codecs
import contextlib
import glob
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from rlm_mem.config import home_folder, working_folder
from rlm_mem.errors import InputError, InvalidConfig, StorageError
from rlm_mem.mcp.commented_json import is_empty, read_commented, rewritten, without_empty
from rlm_mem.mcp.hook_clients import Place
from rlm_mem.store.core.files import write_atomic

_TABLE = re.compile(r"^\s*+\[\[?\s*+([^\[\]]*[^\[\]\s])\s*+\]\]?\s*+(?:#.*)?$")

#: The new text of a file, or None if nothing changes.
Edit = str | None


def read_text(path: Path) -> str:
    """Return the content of a file with its line ends, without a byte order mark; empty if there is no file.

    Raises:
        StorageError: it cannot be read as text.
    """
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise StorageError(f"{path} cannot be read: it is not text in UTF-8") from None
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}") from None


def json_with(text: str, table: str, name: str, entry: dict[str, Any] | None, *, where: str) -> Edit:
    """Return the JSON text with the entry in one of its objects, or (entry None) without it; comments are kept.

    The result is None if nothing changes, and empty if the text contained only the entry.

    Raises:
        InvalidConfig: the text is not a JSON object, or the entry has a form that cannot be replaced.
    """
    settings = read_json(text, where)
    servers = settings.get(table, {}) if isinstance(settings, dict) else None
    if not isinstance(servers, dict):
        raise InvalidConfig(f"{where} has an unexpected form: {table} is not an object")
    if servers.get(name) == entry:  # also if there is nothing to remove, since an entry is never null
        return None
    servers = {key: value for key, value in servers.items() if key != name or entry is not None}
    if entry is not None:
        servers[name] = entry
    changed = {**settings, table: servers}
    if not servers:
        del changed[table]
    if not text.strip():
        return json.dumps(changed, ensure_ascii=False, indent=2) + "\n"
    made = rewritten(text, {**settings, table: servers})
    if not servers:
        made = without_empty(made, table)
    if entry is None and is_empty(made):
        return ""
    if read_commented(made) not in (changed, {**settings, table: servers}):
        raise InvalidConfig(
            f"{where} has {table}.{name} in a form that cannot be edited safely",
            hint="use --print and edit it by hand",
        )
    return made


def read_json(text: str, where: str) -> Any:
    """Parse the text of a settings file that is to be edited, with or without comments; an empty one is an object.

    Raises:
        InvalidConfig: it is not JSON.
    """
    try:
        return read_commented(text) if text.strip() else {}
    except ValueError as error:
        raise InvalidConfig(f"{where} is not JSON: {error}", hint="use --print and edit it by hand") from None


def toml_with(text: str, table: str, name: str, entry: dict[str, Any] | None, *, where: str) -> Edit:
    """Return the TOML text with the table `[table.name]`, or (entry None) without it; other lines are unchanged.

    The result is None if nothing changes.

    Raises:
        InvalidConfig: the text is not TOML, or the entry has a form that cannot be replaced by lines.
    """
    before = read_toml(text, where)
    servers = before.get(table, {})
    if not isinstance(servers, dict):
        raise InvalidConfig(f"{where} has an unexpected form: {table} is not a table")
    if servers.get(name) == entry:
        return None
    block = []
    if entry is not None:
        block = [f"[{table}.{name}]"]
        block += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
    made = _with_block(text, [table, name], block)
    expected = {key: value for key, value in servers.items() if key != name}
    if entry is not None:
        expected[name] = entry
    # An empty table may have been left out.
    if {table: {}, **read_toml(made, where)} != {**before, table: expected}:
        raise InvalidConfig(
            f"{where} has {table}.{name} in a form that cannot be edited safely",
            hint="use --print and edit it by hand",
        )
    return made


def _with_block(text: str, path: list[str], block: list[str]) -> str:
    """Return a TOML text with these lines instead of those of a table, or at its end; empty if nothing is left."""
    end = "\r\n" if "\r\n" in text else "\n"
    lines = text.split("\n")
    ours = _lines_of_table(lines, path)
    if ours:
        first = ours[0]
        if not block and first and not lines[first - 1].strip():
            first -= 1
        lines[first : ours[-1] + 1] = [line + end[:-1] for line in block]
        made = "\n".join(lines)
    else:
        above = text if not text or text.endswith("\n") else text + end
        made = above + (end if above else "") + end.join(block) + end
    return made if made.strip() else ""


def _lines_of_table(lines: list[str], path: list[str]) -> list[int]:
    """Return the numbers of the lines of a table and those below it, without what is between them and after them."""
    ours: list[int] = []
    inside = False
    for number, line in enumerate(lines):
        if header := _TABLE.match(line):
            inside = [part.strip().strip("\"'") for part in header.group(1).split(".")][: len(path)] == path
        # Blank lines and comments after it belong to the next table.
        if inside and line.strip() and not line.lstrip().startswith("#"):
            ours.append(number)
    return ours


def read_toml(text: str, where: str) -> dict[str, Any]:
    """Parse the text of a settings file that is to be edited.

    Raises:
        InvalidConfig: it is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidConfig(f"{where} is not valid TOML: {error}", hint="edit the file by hand") from None


def remove_file(path: Path) -> None:
    """Delete a settings file without other content, and its folder if that becomes empty.

    Folders above that one are deleted if they become empty within the home or working folder.

    A symbolic link, for example to a folder of dotfiles, is kept, and its target is emptied.

    Raises:
        StorageError: the file cannot be deleted.
    """
    try:
        if path.is_symlink():
            path.write_text("{}\n" if path.suffix == ".json" else "", encoding="utf-8")
            return
        path.unlink()
        kept = {home_folder(), working_folder()}
        for folder in path.parents:
            if folder in kept or folder.is_symlink() or any(folder.iterdir()):
                return
            folder.rmdir()
            if kept.isdisjoint(folder.parents):
                return
    except OSError as error:
        raise StorageError(f"{path} cannot be deleted: {error.strerror}") from None


def write_with_backup(path: Path, text: str, now: datetime, *, keep: bool = True) -> Path | None:
    """Replace a file atomically, and keep a backup of the former content beside it.

    Args:
        keep: False: make no backup, since the former content came from this package only.

    Returns:
        The backup, or None if there is none.

    Raises:
        StorageError: the file cannot be written; it is unchanged.
    """
    path = path.resolve()  # a symbolic link to a file in a dotfiles folder is kept
    backup, mode = None, 0o600
    try:
        if path.exists():
            mode = path.stat().st_mode & 0o777
            former = path.read_bytes()
            text = "\ufeff" + text if former.startswith(codecs.BOM_UTF8) else text
            if keep:
                backup = _free_name(path, now)
                backup.write_bytes(former)
                backup.chmod(mode)
        write_atomic(path, text.encode(), mode=mode)
        path.chmod(mode)  # the user's mask does not apply to a file that exists
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from None
    return backup


_BACKUP = ".backup-"


def removal(path: Path, present: str, edit: Callable[[str, Any], Edit], ours: Any) -> Edit:
    """Return the text after a removal: the file as it was before the installation, if nothing else was changed since.

    Args:
        present: the text of the file.
        edit: the text with this package's part, or (None) without it.
        ours: the part that was installed.

    Raises:
        InvalidConfig: the file cannot be edited safely.
    """
    made = edit(present, None)
    if made is None:
        return None
    for former in map(read_text, _backups(path)):
        with contextlib.suppress(InvalidConfig):  # a backup in another format
            if edit(former, None) is None and edit(former, ours) == present:
                return former
    return made


def remove_content(path: Path, now: datetime) -> None:
    """Delete a settings file without other content, or empty it if it was empty before, as its backup shows.

    Raises:
        StorageError: the file cannot be changed.
    """
    for copy in _backups(path):
        if not (former := read_text(copy)).strip():
            write_with_backup(path, former, now, keep=False)
            copy.unlink(missing_ok=True)
            return
    remove_file(path)


def _backups(path: Path) -> list[Path]:
    """Return the backups of a file, newest first."""
    path = path.resolve()
    return sorted(path.parent.glob(f"{glob.escape(path.name)}{_BACKUP}*"), reverse=True)


def _free_name(path: Path, now: datetime) -> Path:
    stem = f"{path.name}{_BACKUP}{now:%Y%m%d-%H%M%S}"
    names = (path.with_name(stem if number == 0 else f"{stem}-{number}") for number in range(1000))
    return next(name for name in names if not name.exists())


ENTRY_NAME = "rlm-mem"


@dataclass(frozen=True)
class Client:
    """A client and its files.

    Attributes:
        name: the name that `--client` takes.
        user: returns the user's settings file, given home folder and environment.
        project: path of a project's settings file in its folder; None: the client has none.
        table: the object or table with the servers.
        form: json or toml.
        folder: the client's variable for the project's folder, with a trailing slash; empty: paths are relative to it.
        program: the client's own command.
        fixed: fields of every entry besides the command.
        one_list: whether an entry has command and arguments in one list.
        in_project: whether the client starts servers of the user's settings in the project's folder too.
        next_step: what the user must do after the installation.
        after_removal: what the user should know after a removal.
    """

    name: str
    user: Place
    project: str | None
    table: str
    form: str = "json"
    folder: str = ""
    program: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    one_list: bool = False
    in_project: bool = False
    next_step: str = "Restart the client."
    after_removal: str = "Open sessions keep the server until they end."


def _application(folder: str, file: str) -> Place:
    """Return a finder of a file in the settings folder of desktop applications."""

    def place(home: Path, environ: Mapping[str, str]) -> Path:
        if sys.platform == "darwin":
            root = home / "Library" / "Application Support"
        elif sys.platform == "win32":
            root = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
        else:
            root = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
        return root / folder / file

    return place


def _zed(home: Path, environ: Mapping[str, str]) -> Path:
    """Return Zed's settings file, which is in ~/.config on macOS too."""
    if sys.platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming") / "Zed" / "settings.json"
    root = environ.get("XDG_CONFIG_HOME") if sys.platform != "darwin" else None
    return Path(root or home / ".config") / "zed" / "settings.json"


def _cline(home: Path, environ: Mapping[str, str]) -> Path:
    """Return the file that extension and command share since Cline 4.0; earlier extensions had their own in VS Code."""
    if environ.get("CLINE_MCP_SETTINGS_PATH"):
        return Path(environ["CLINE_MCP_SETTINGS_PATH"])
    file = Path("settings") / "cline_mcp_settings.json"
    shared = Path(environ.get("CLINE_DIR") or home / ".cline") / "data" / file
    own = _application("Code/User/globalStorage/saoudrizwan.claude-dev", str(file))(home, environ)
    return own if own.exists() and not shared.exists() else shared


def _opencode(home: Path, environ: Mapping[str, str]) -> Path:
    """Return OpenCode's settings file, which may have comments."""
    folder = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    commented = folder / "opencode.jsonc"
    return commented if commented.exists() else folder / "opencode.json"


CLIENTS: tuple[Client, ...] = (
    Client(
        "claude-code",
        lambda home, env: Path(env.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json",
        ".mcp.json",
        "mcpServers",
        folder="${CLAUDE_PROJECT_DIR:-.}/",
        program="claude",
        in_project=True,
        fixed={"type": "stdio"},
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
        fixed={"type": "stdio"},
    ),
    Client(
        "codex",
        lambda home, env: Path(env.get("CODEX_HOME") or home / ".codex") / "config.toml",
        ".codex/config.toml",
        "mcp_servers",
        form="toml",
        program="codex",
        in_project=True,
        next_step="Start a new session. Codex reads the settings of a project only where you trust it.",
    ),
    Client(
        "windsurf",
        lambda home, _: home / ".codeium" / "windsurf" / "mcp_config.json",
        None,
        "mcpServers",
        program="windsurf",
        next_step="Press refresh in the MCP settings of Cascade, or restart Windsurf.",
    ),
    Client(
        "zed",
        _zed,
        ".zed/settings.json",
        "context_servers",
        program="zed",
        fixed={"source": "custom"},
        next_step="Zed starts it at once; the settings of the agent panel show a green dot.",
        after_removal="Zed ends the server at once.",
    ),
    Client(
        "gemini-cli",
        lambda home, env: Path(env.get("GEMINI_CLI_HOME") or home) / ".gemini" / "settings.json",
        ".gemini/settings.json",
        "mcpServers",
        program="gemini",
        in_project=True,
        next_step="Start a new session in a folder that you trust; /mcp lists the servers.",
    ),
    Client(
        "qwen-code",
        lambda home, env: Path(env.get("QWEN_HOME") or home / ".qwen") / "settings.json",
        ".qwen/settings.json",
        "mcpServers",
        program="qwen",
        in_project=True,
        next_step="Start a new session; /mcp lists the servers.",
    ),
    Client(
        "opencode",
        _opencode,
        "opencode.json",
        "mcp",
        program="opencode",
        fixed={"type": "local", "enabled": True},
        one_list=True,
        in_project=True,
        next_step="Start a new session; `opencode mcp list` shows the servers.",
    ),
    Client(
        "copilot-cli",
        lambda home, env: Path(env.get("COPILOT_HOME") or home / ".copilot") / "mcp-config.json",
        ".github/mcp.json",
        "mcpServers",
        program="copilot",
        fixed={"type": "local", "tools": ["*"]},
        in_project=True,
        next_step="Start a new session in a folder that you trust; /mcp lists the servers.",
    ),
    Client(
        "cline",
        _cline,
        None,
        "mcpServers",
        program="cline",
        next_step="Cline starts it at once; its MCP servers are listed under Configure.",
        after_removal="Cline ends the server at once.",
    ),
)


NAMES = tuple(client.name for client in CLIENTS)


def client_named(name: str) -> Client:
    """Return the client with this name.

    Raises:
        InputError: the name is unknown.
    """
    for client in CLIENTS:
        if client.name == name:
            return client
    raise InputError(
        f"there is no client {name!r}",
        hint=f"there are: {', '.join(NAMES)}; for others, use the entry of --print",
    )


def launcher() -> list[str]:
    """Return the command that starts this installation, by its absolute path, since a client's PATH may differ."""
    if ".cache/uv" in sys.prefix.replace("\\", "/") or "/uv/archive" in sys.prefix.replace("\\", "/"):
        # Run by uvx: its environment is temporary, so the entry starts uvx.
        return [shutil.which("uvx") or "uvx", "--from", "rlm-mem[server]", "rlm-mem"]
    script = Path(sys.executable).with_name("rlm-mem.exe" if os.name == "nt" else "rlm-mem")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "rlm_mem"]


def shared_launcher() -> list[str]:
    """Return the command that starts the server on any machine, for a committed file: by name, never by path."""
    own = launcher()
    return ["uvx", *own[1:]] if "--from" in own else ["rlm-mem"]


def place_in_project(client: Client, brain: Path, project: Path) -> str | None:
    """Return the path of a brain inside the project, for a committed file; None for a brain outside the project."""
    try:
        inside = brain.expanduser().resolve().relative_to(project.resolve())
    except ValueError:
        return None
    return f"{client.folder}{inside.as_posix()}"


def project_arguments(client: Client, *, committed: bool) -> list[str]:
    """Return the options for serving the project in which a client starts the server; none if it is unknown.

    Args:
        committed: whether the entry is in the settings of a project. Clients start these servers in its folder, except
            those whose entries must name the folder.
    """
    if client.in_project:
        return ["--project"]
    if not committed:
        return []
    return ["--project", *(["--folder", client.folder.rstrip("/")] if client.folder else [])]


def is_here(client: Client, home: Path, environ: Mapping[str, str]) -> bool:
    """Return whether the client seems to be installed: its command is on the PATH, or its settings exist."""
    settings = client.user(home, environ)
    own_folder = settings.parent if settings.parent != home else home / f".{client.program}"
    return bool((client.program and shutil.which(client.program)) or settings.exists() or own_folder.is_dir())


def entry_of(client: Client, command: list[str]) -> dict[str, Any]:
    """Return the server's entry for the client; settings are arguments, since some clients drop the environment."""
    if client.one_list:
        return {**client.fixed, "command": command}
    return {**client.fixed, "command": command[0], "args": command[1:]}


def edited(client: Client, text: str, wanted: dict[str, Any] | None, *, where: str) -> Edit:
    """What a settings file with this text would be with the entry of the server, or (None) without it.

    Raises:
        InvalidConfig: the file cannot be edited safely.
    """
    change = toml_with if client.form == "toml" else json_with
    return change(text, client.table, ENTRY_NAME, wanted, where=where)


def planned(client: Client, path: Path, entry: dict[str, Any] | None) -> Edit:
    """Return the new text of the file with the entry, or (entry None) without it; None if nothing changes.

    Raises:
        InvalidConfig: the file cannot be edited safely.
    """
    edit = partial(edited, client, where=str(path))
    text = read_text(path)
    if entry is not None or edit(text, None) is None:
        return edit(text, entry)
    settings = tomllib.loads(text) if client.form == "toml" else read_commented(text)
    return removal(path, text, edit, settings[client.table][ENTRY_NAME])
