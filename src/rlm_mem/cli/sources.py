"""What `rlm-mem remember` reads: text, files, stdin."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlm_mem.errors import InputError, NotFoundError


@dataclass(frozen=True)
class InputText:
    """One text to remember, and where it comes from (None for typed text)."""

    text: str
    path: Path | None = None


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
