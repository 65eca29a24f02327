"""Imports of what a client sends: bytes under a file name, read as `rlm-mem import` reads a file."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

if TYPE_CHECKING:
    from rlm_mem.memory import Memory

__all__ = ["FileName", "Imported", "UploadNotice", "import_bytes", "import_file"]

#: A bare file name: it cannot lead anywhere, and its ending says what the file may be.
FileName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9 ._-]{0,150}$(?!\n)",
        description="File name with its ending, such as notes.md, chat.json, export.jsonl or export.zip.",
    ),
]
_LISTED = 200


class UploadNotice(Struct):
    """Something that was kept as it is, or could not be read, and why."""

    where: str
    reason: str


class Imported(Struct):
    """What an import did, or with ``dry_run`` would do; counts are of chunks, lists hold the first 200 entries.

    ``created`` are new, ``updated`` replaced what was there, ``known`` were there already, ``kept`` differ from what is
    there, which was kept (``conflicts`` says why).
    """

    dry_run: bool
    formats: dict[str, int]
    created: int
    updated: int
    known: int
    kept: int
    archived: int
    messages: int
    tokens: int
    secrets: dict[str, int]
    secrets_hidden: int
    chunk_ids: list[str]
    conflicts: list[UploadNotice]
    problems: list[UploadNotice]
    problem_count: int


def import_file(
    memory: Memory,
    path: Path,
    *,
    format: str | None = None,
    dry_run: bool = False,
    replace: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """Import a file that a client sent, into the namespace of the memory whatever the file names.

    Raises:
        InputError: it is no sound archive, or the format is unknown.
    """
    from rlm_mem.interchange import import_source

    report = import_source(
        memory.store,
        path,
        format=format,
        dry_run=dry_run,
        keep_namespaces=False,
        replace=replace,
        again=True,
        # By name and content: the same file again is known, another one of that name replaces nothing.
        label=f"{path.name}~{_digest(path)}",
        progress=progress,
    )
    given = report.as_dict()
    for name in ("chunk_ids", "conflicts", "problems"):
        given[name] = given[name][:_LISTED]
    return msgspec.convert(given, Imported)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


def import_bytes(
    memory: Memory,
    name: str,
    data: bytes,
    *,
    format: str | None = None,
    dry_run: bool = False,
    replace: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Imported:
    """As ``import_file``, for what is in memory."""
    with tempfile.TemporaryDirectory(prefix="rlm-mem-import-") as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        return import_file(memory, path, format=format, dry_run=dry_run, replace=replace, progress=progress)
