"""Starting the server as a client does: its entry in the client's settings, and a first exchange of messages."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from rlm_mem.mcp.clients import ENTRY_NAME, Client, launcher, read_text, shared_launcher
from rlm_mem.mcp.commented_json import read_commented

_HANDED_ON = (
    ("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE",
     "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE")
    if sys.platform == "win32"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)  # fmt: skip
"""Environment variables that clients built on the protocol's SDK hand on to a server; others hand on more."""

_SECONDS = 30.0
_LONGEST_LINE = 16 * 1024 * 1024
_MESSAGES = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "rlm-mem doctor", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


@dataclass(frozen=True)
class ServerEntry:
    """How a client starts the server.

    Attributes:
        file: the settings file with the entry.
        command: program and arguments, with the client's variables replaced.
        environ: variables that the entry adds to the environment.
        folder: the working folder.
    """

    file: Path
    command: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path()

    @property
    def start(self) -> Hashable:
        """Key by which two entries start the server in the same way."""
        return self.command, tuple(sorted(self.environ.items())), self.folder

    @property
    def brain(self) -> str | None:
        """The value of ``--brain`` in the command; None without it."""
        place = self.command.index("--brain") + 1 if "--brain" in self.command else len(self.command)
        return self.command[place] if place < len(self.command) else None


@dataclass(frozen=True)
class Started:
    """The result of a start: the number of tools that the server offers, or why it did not answer."""

    tools: int = 0
    seconds: float = 0.0
    failure: str = ""


def entry_in(client: Client, file: Path, folder: Path) -> ServerEntry | None:
    """The entry of this memory in a settings file; None where there is none.

    Args:
        folder: where the client starts the server: the home folder or the project's folder.

    Raises:
        StorageError: the file cannot be read.
        ValueError: the file or the entry is malformed, so the client could not use it.
    """
    text = read_text(file)
    if not text.strip():
        return None
    try:
        settings = tomllib.loads(text) if client.form == "toml" else read_commented(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{file} cannot be read as {client.form.upper()}: {error}") from None
    servers = settings.get(client.table) if isinstance(settings, dict) else None
    entry = servers.get(ENTRY_NAME) if isinstance(servers, dict) else None
    if entry is None:
        return None
    entry = entry if isinstance(entry, dict) else {}
    words = entry.get("command")
    environ = entry.get("environment" if client.one_list else "env") or {}
    if not client.one_list:
        arguments = entry.get("args", [])
        words = [words, *arguments] if isinstance(arguments, list) else None
    if not (isinstance(words, list) and words and isinstance(environ, dict)) or not all(
        isinstance(word, str) for word in (*words, *environ.values())
    ):
        raise ValueError(f"{client.table}.{ENTRY_NAME} in {file} names no command with arguments")
    for variable in ("${CLAUDE_PROJECT_DIR:-.}", "${workspaceFolder}"):
        words = [str(word).replace(variable, str(folder)) for word in words]
    return ServerEntry(file, tuple(map(str, words)), environ, folder)


def is_our_command(entry: ServerEntry) -> bool:
    """Whether an entry that others may have written starts this package with a brain on this machine."""
    ours = (launcher(), shared_launcher())
    known = any(list(entry.command[: len(start) + 1]) == [*start, "mcp"] for start in ours)
    return known and not entry.environ and not any("://" in word for word in entry.command)


def started(entry: ServerEntry, environ: Mapping[str, str], *, seconds: float = _SECONDS) -> Started:
    """Start the server, ask for its tools as a client does, and end it.

    Args:
        environ: the user's environment; only the variables that every client hands on are used.
        seconds: how long the server may take to answer.
    """
    handed_on = {name: environ[name] for name in _HANDED_ON if name in environ} | dict(entry.environ)
    begun = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                entry.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=entry.folder,
                env=handed_on,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            return Started(failure=f"{entry.command[0]} cannot be started: {reason}")
        found: int | str = ""
        try:
            found = _tools(process, begun + seconds)
        finally:
            _end(process, by_force=not isinstance(found, int))
        taken = time.monotonic() - begun
        if isinstance(found, int):
            return Started(found, taken)
        return Started(0, taken, f"{found}{_last_line(errors)}")


def _tools(process: subprocess.Popen[bytes], deadline: float) -> int | str:
    """The number of tools, or why the server did not list them."""
    assert process.stdin is not None
    assert process.stdout is not None
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
    try:
        process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in _MESSAGES))
        process.stdin.flush()
    except OSError:
        pass  # the process has ended: its output tells more
    while True:
        try:
            line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return "it does not answer"
        if not line:
            return "it ends without an answer"
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            return "what it puts out is not the protocol"
        if not isinstance(answer, dict) or answer.get("id") not in (1, 2):
            continue
        result = answer.get("result")
        if not isinstance(result, dict):
            return f"it answers with an error: {json.dumps(answer.get('error'))[:200]}"
        if answer["id"] == 2:
            tools = result.get("tools")
            return len(tools) if isinstance(tools, list) else "it names no tools"


def _read(stream: IO[bytes], lines: queue.Queue[bytes]) -> None:
    while True:
        line = stream.readline(_LONGEST_LINE)
        lines.put(line)
        if not line:
            return


def _end(process: subprocess.Popen[bytes], *, by_force: bool) -> None:
    """End the process as clients do, by closing its input; kill it if it keeps running, sooner if it did not answer."""
    try:
        if process.stdin is not None:
            process.stdin.close()
    except OSError:
        pass
    try:
        process.wait(timeout=0.5 if by_force else 5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0, os.SEEK_END)
    errors.seek(max(0, errors.tell() - 4096))
    lines = errors.read().decode("utf-8", "replace").strip().splitlines()
    return f" ({lines[-1].strip()[:300]})" if lines else ""
