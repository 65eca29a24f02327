"""Input of commands: text, files, stdin."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rlm_mem.cli.terminal import note
from rlm_mem.errors import InputError, NotFoundError
from rlm_mem.interchange.reading import encoding_of
from rlm_mem.record import FrozenRecord


class InputText(FrozenRecord, frozen=True):
    """One text to remember, and its file (None for typed text)."""

    text: str
    path: Path | None = None


def typed(words: Sequence[str]) -> str:
    """Return the text given as arguments; a single word that is the name of a file is refused as ambiguous."""
    given = " ".join(words)
    if len(words) == 1 and given.strip() and is_there(given):
        option = "--folder" if Path(given).is_dir() else "--file"
        raise InputError(
            f"{given!r} names a {option[2:]} here",
            hint=f"rlm-mem remember {option} {given} remembers its content",
        )
    return given


def is_there(path: str) -> bool:
    """Whether a typed text is the path of a file or folder; one that is too long for a path is not."""
    return os.path.exists(path)  # noqa: PTH110 - Path.exists raises OSError for too long a name


def piped(max_bytes: int) -> str | None:
    """Return the text piped into the command, of at most ``max_bytes`` in UTF-8; None on a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        return None
    return _decoded(bounded(sys.stdin.buffer, "stdin", max_bytes), "stdin")


def one_file(path: Path, max_bytes: int) -> InputText:
    """Read a file named by the user, of at most ``max_bytes`` in UTF-8."""
    if path.is_dir():
        raise InputError(f"{path} is a folder", hint=f"rlm-mem remember --folder {path} remembers a folder")
    if path.is_fifo():
        note(f"reading the pipe {path} until its writer closes it; Ctrl-C ends it")
    try:
        with path.open("rb") as handle:
            return InputText(_decoded(bounded(handle, str(path), max_bytes), str(path)), path)
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path}") from None


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file named by the user, or stdin (``-``), in binary mode."""
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    try:
        handle = path.open("rb")
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error
    with handle:
        yield handle


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """Read a file named by the user, which may be endless; raise InputError if it is larger than ``max_bytes``."""
    try:
        with path.open("rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            data = handle.read(max_bytes + 1) if size <= max_bytes else b""
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    if size > max_bytes or len(data) > max_bytes:
        raise InputError(f"{path} is larger than {max_bytes:,} bytes", hint="name a smaller file")
    return data


def bounded(handle: BinaryIO, name: str, max_bytes: int) -> bytes:
    """Read a file, which may be endless; raise InputError if its text cannot be within ``max_bytes`` of UTF-8."""
    data = handle.read(2 * max_bytes + 4)  # as UTF-16
    if len(data) > 2 * max_bytes + 3:
        raise InputError(f"{name} is larger than {max_bytes:,} bytes", hint="split it into several files")
    return data


def _decoded(data: bytes, name: str) -> str:
    try:
        text = data.decode(encoding_of(data))
    except UnicodeDecodeError:
        raise InputError(
            f"{name} is not text in UTF-8", hint="convert it first; binary files are not remembered"
        ) from None
    if "\0" in text:
        raise InputError(
            f"{name} contains NUL characters: it is not text", hint="binary files are not remembered"
        )
    return text
