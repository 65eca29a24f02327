"""Edits the configuration files of MCP clients: adds or removes our entry, keeps everything else, makes a backup."""

from __future__ import annotations

import json
import os
import re
import tempfile
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any

from rlm_mem.errors import InvalidConfig, StorageError

__all__ = ["Edit", "json_with", "read_text", "toml_with", "write_with_backup"]

_TABLE = re.compile(r"^\s*+\[\[?\s*+([^\[\]]*[^\[\]\s])\s*+\]\]?\s*+(?:#.*)?$")

#: The new text of a file, or None when it already says what it should.
Edit = str | None


def read_text(path: Path) -> str:
    """The content of a file; empty when there is none.

    Raises:
        StorageError: it cannot be read as text.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise StorageError(f"{path} cannot be read: {error}") from None


def json_with(text: str, table: str, name: str, entry: dict[str, Any] | None, *, where: str) -> Edit:
    """The JSON text with our entry in one of its objects, or (entry None) without it.

    Raises:
        InvalidConfig: the text is no JSON object, or one with comments, which editing would lose.
    """
    try:
        settings = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError) as error:
        raise InvalidConfig(
            f"{where} is not plain JSON: {error}", hint="Use --print and put the entry in by hand."
        ) from None
    servers = settings.get(table, {}) if isinstance(settings, dict) else None
    if not isinstance(servers, dict):
        raise InvalidConfig(f"{where} has another shape than expected: {table} is no object")
    if (
        servers.get(name) == entry
    ):  # an entry is never null: so this also says that there is nothing to remove
        return None
    servers = {key: value for key, value in servers.items() if key != name or entry is not None}
    if entry is not None:
        servers[name] = entry
    settings[table] = servers
    if not servers:
        del settings[table]
    return json.dumps(settings, ensure_ascii=False, indent=2) + "\n"


def toml_with(text: str, table: str, name: str, entry: dict[str, Any] | None, *, where: str) -> Edit:
    """The TOML text with our table `[table.name]`, or without it; all other lines stay as they are.

    Raises:
        InvalidConfig: the text is no TOML, or the entry is written in a form that cannot be replaced by lines.
    """
    before = _toml(text, where)
    servers = before.get(table, {})
    if not isinstance(servers, dict):
        raise InvalidConfig(f"{where} has another shape than expected: {table} is no table")
    if servers.get(name) == entry:
        return None
    kept, ours = [], False
    for line in text.splitlines():
        header = _TABLE.match(line)
        if header:
            path = [part.strip().strip("\"'") for part in header.group(1).split(".")]
            ours = path[:2] == [table, name]
        if not ours:
            kept.append(line)
    while kept and not kept[-1].strip():
        kept.pop()
    if entry is not None:
        kept += [""] if kept else []
        kept.append(f"[{table}.{name}]")
        kept += [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
    made = "\n".join(kept) + "\n" if kept else ""
    wanted = {key: value for key, value in servers.items() if key != name}
    if entry is not None:
        wanted[name] = entry
    after = _toml(made, where)
    others = {key: value for key, value in before.items() if key != table}
    if after.get(table, {}) != wanted or {k: v for k, v in after.items() if k != table} != others:
        raise InvalidConfig(
            f"{where} writes {table}.{name} in a form that cannot be edited safely",
            hint="Use --print and change it by hand.",
        )
    return made


def _toml(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(f"{where} is not valid TOML: {error}") from None


def write_with_backup(path: Path, text: str, now: datetime) -> Path | None:
    """Replace a file in one step, keeping a copy of what was there beside it.

    Returns:
        The copy, or None when there was no file.

    Raises:
        StorageError: it cannot be written; the file is as it was.
    """
    path = path.resolve()  # a link to a file in a dotfiles folder stays a link
    backup = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = 0o600
        if path.exists():
            mode = path.stat().st_mode & 0o777
            backup = _free_name(path, now)
            backup.write_bytes(path.read_bytes())
            backup.chmod(mode)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(mode)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from None
    return backup


def _free_name(path: Path, now: datetime) -> Path:
    stem = f"{path.name}.backup-{now:%Y%m%d-%H%M%S}"
    names = (path.with_name(stem if number == 0 else f"{stem}-{number}") for number in range(1000))
    return next(name for name in names if not name.exists())
