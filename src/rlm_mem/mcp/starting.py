"""Test starts of the server as by a client: its entry in the client's settings, and a first exchange of messages."""

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

_PASSED_VARIABLES = (
    ("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE",
     "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE")
    if sys.platform == "win32"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)  # fmt: skip
"""Environment variables that clients built on the protocol's SDK pass to a server; others pass more."""

_SECONDS = 30.0
_MAX_LINE_BYTES = 16 * 1024 * 1024
#: The first message of a client.
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "rlm-mem doctor", "version": "1"},
    },
}
_MESSAGES = (
    INITIALIZE,
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


@dataclass(frozen=True)
class ServerEntry:
    """The start of the server by a client.

    Attributes:
        file: the settings file with the entry.
        command: program and arguments, with the client's variables replaced.
        environ: variables that the entry adds to the environment.
    """

    file: Path
    command: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)
    folder: Path = Path()

    @property
    def start(self) -> Hashable:
        """A key that is equal for entries that start the server in the same way."""
        return self.command, tuple(sorted(self.environ.items())), self.folder

    @property
    def brain(self) -> str | None:
        """The value of ``--brain`` in the command; None without it."""
        place = self.command.index("--brain") + 1 if "--brain" in self.command else len(self.command)
        return self.command[place] if place < len(self.command) else None


@dataclass(frozen=True)
class Started:
    """The result of a start: the number of tools that the server offers, or the failure."""

    tools: int = 0
    failure: str = ""


def entry_in(client: Client, file: Path, folder: Path) -> ServerEntry | None:
    """Return the entry of this memory in a settings file; None if there is none.

    Args:
        folder: the working folder of the server: the home folder or the project's folder.

    Raises:
        StorageError: the file cannot be read.
        ValueError: the file or the entry is malformed.
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
        raise ValueError(f"{client.table}.{ENTRY_NAME} in {file} does not name a command with arguments")
    for variable in ("${CLAUDE_PROJECT_DIR:-.}", "${workspaceFolder}"):
        words = [str(word).replace(variable, str(folder)) for word in words]
    return ServerEntry(file, tuple(map(str, words)), environ, folder)


def is_our_command(entry: ServerEntry) -> bool:
    """Return whether an entry, which others may have written, starts this package with a brain on this machine."""
    ours = (launcher(), shared_launcher())
    known = any(list(entry.command[: len(start) + 1]) == [*start, "mcp"] for start in ours)
    return known and not entry.environ and not any("://" in word for word in entry.command)


def started(entry: ServerEntry, environ: Mapping[str, str], *, seconds: float = _SECONDS) -> Started:
    """Start the server, request its tools as a client does, and end it.

    Args:
        environ: the user's environment; only the variables that every client passes are used.
        seconds: time limit for the answer.
    """
    passed = {name: environ[name] for name in _PASSED_VARIABLES if name in environ} | dict(entry.environ)
    with tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(
                entry.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=entry.folder,
                env=passed,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            return Started(failure=f"{entry.command[0]} cannot be started: {reason}")
        found: int | str = ""
        try:
            found = _tools(process, time.monotonic() + seconds)
        finally:
            _end(process, by_force=not isinstance(found, int))
        return Started(found) if isinstance(found, int) else Started(0, f"{found}{_last_line(errors)}")


def _tools(process: subprocess.Popen[bytes], deadline: float) -> int | str:
    """Return the number of tools, or why the server did not list them."""
    assert process.stdin is not None
    assert process.stdout is not None
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
    try:
        process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in _MESSAGES))
        process.stdin.flush()
    except OSError:
        pass  # the process has ended: its output has the reason
    while True:
        try:
            line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return "no answer"
        if not line:
            return "it ended without an answer"
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            return "its output is not of the protocol"
        if not isinstance(answer, dict) or answer.get("id") not in (1, 2):
            continue
        result = answer.get("result")
        if not isinstance(result, dict):
            return f"it answered with an error: {json.dumps(answer.get('error'))[:200]}"
        if answer["id"] == 2:
            tools = result.get("tools")
            return len(tools) if isinstance(tools, list) else "it did not list its tools"


def _read(stream: IO[bytes], lines: queue.Queue[bytes]) -> None:
    while True:
        line = stream.readline(_MAX_LINE_BYTES)
        lines.put(line)
        if not line:
            return


def _end(process: subprocess.Popen[bytes], *, by_force: bool) -> None:
    """End the process by closing its input, as clients do; kill it if it keeps running, sooner if it did not answer."""
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
