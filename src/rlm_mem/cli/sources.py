"""What `rlm-mem remember` reads: text, files, folders, stdin."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from rlm_mem.errors import InputError, NotFoundError

# Folders that hold what tools made, not what people wrote.
_SKIPPED_FOLDERS = {"node_modules", "__pycache__", "build", "dist", "target", "venv", "site-packages"}


@dataclass(frozen=True)
class InputText:
    """One text to remember, and where it comes from (None for typed text)."""

    text: str
    path: Path | None = None


@dataclass(frozen=True)
class Skipped:
    """A file that was left out, and why."""

    path: Path
    reason: str


def typed(words: Sequence[str]) -> str:
    """The text given as arguments; a lone word that names a file is refused, for its content may be meant."""
    said = " ".join(words)
    if len(words) == 1 and len(said) < 1024 and said.strip() and Path(said).exists():
        option = "--folder" if Path(said).is_dir() else "--file"
        raise InputError(
            f"{said!r} is the name of a {option[2:]} here",
            hint=f"rlm-mem remember {option} {said} remembers what is in it.",
        )
    return said


def piped() -> str | None:
    """What is piped into the command, or None on a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        return None
    return _decoded(sys.stdin.buffer.read(), "stdin")


def one_file(path: Path) -> InputText:
    """A file named by the user: what hinders reading it is an error."""
    if path.is_dir():
        raise InputError(f"{path} is a folder", hint=f"rlm-mem remember --folder {path} takes a folder.")
    try:
        return InputText(_decoded(path.read_bytes(), str(path)), path)
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path}") from None


def files_below(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """The files of a folder and its sub-folders, in order; hidden ones and what tools made are left out.

    Args:
        patterns: shell patterns for file names, for example ``*.md``; none means every file.
    """
    if not folder.is_dir():
        raise NotFoundError(f"there is no folder {folder}")
    return [
        path for path in _walk(folder) if not patterns or any(fnmatch(path.name, one) for one in patterns)
    ]


def text_of(path: Path, largest: int) -> InputText | Skipped:
    """A file found in a folder; one that is empty, not text or over ``largest`` bytes is skipped."""
    try:
        size = path.stat().st_size
        if size > largest:
            return Skipped(path, f"larger than {largest:,} bytes")
        text = _decoded(path.read_bytes(), str(path))
    except InputError:
        return Skipped(path, "not text in UTF-8")
    except OSError as error:
        return Skipped(path, error.strerror or "cannot be read")
    return InputText(text, path) if text.strip() else Skipped(path, "empty")


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _SKIPPED_FOLDERS
            and not (Path(root) / name / "pyvenv.cfg").exists()
        )
        yield from (Path(root) / name for name in sorted(names) if not name.startswith("."))


def _decoded(data: bytes, name: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(
            f"{name} is not text in UTF-8", hint="Convert it first; binary files are not remembered."
        ) from None
    if "\0" in text:
        raise InputError(
            f"{name} holds NUL characters: it is not text", hint="Binary files are not remembered."
        )
    return text
