"""Exports one chunk as Markdown, or a whole store as a folder of Markdown, as JSON lines, or as one zip archive."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

from rlm_mem.arguments import check_flag
from rlm_mem.chunk import DEFAULT_NAMESPACE, SCHEMA_VERSION, Chunk
from rlm_mem.chunk.types import as_list
from rlm_mem.config import locate
from rlm_mem.dsn import checked_path
from rlm_mem.errors import InputError, NotFoundError, StorageError
from rlm_mem.interchange.brain_files import EXPORT_MARKER, exported_files, file_to_line, place_in_export
from rlm_mem.interchange.history import FOLDER, exported_events, exported_versions
from rlm_mem.interchange.markdown import chunk_to_markdown
from rlm_mem.store.core.chunk_store import ChunkStore, open_store
from rlm_mem.store.core.contents import NamespaceReader, owners
from rlm_mem.store.core.records import ListFilter, is_mirror
from rlm_mem.telemetry import observed

EXPORT_FORMATS = ("markdown", "jsonl", "zip")
_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".zip": "zip"}
_FILE_SUFFIX = re.compile(r"\.[a-z][a-z0-9]{0,9}")
_SEPARATORS = (os.sep, os.altsep) if os.altsep else (os.sep,)

_EXPORT_FOLDERS = ("chunks", "archive", "namespaces", "files", "history")
_ABOUT = """# Exported memories

One file a memory, below `chunks`; deleted ones, which can be restored, below `archive`; other namespaces below
`namespaces`. Tiered memories, personas and the records of recalls are the files below `files`, each where a brain
folder has it; former versions and the audit log, where they were asked for, are in `history`. The folder opens as a
vault in Obsidian: links between memories are wiki links in `related`. `rlm-mem import` reads it back, edits included.
"""


@dataclass
class ExportReport:
    """The result of an export, in counts."""

    target: str
    format: str
    chunks: int = 0
    archived: int = 0
    namespaces: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0
    files: int = 0
    versions: int = 0
    events: int = 0
    bytes: int = 0


def export_to_markdown(chunk_id: str, *, store: ChunkStore | None = None) -> str:
    """Return a chunk, active or archived, as Markdown with YAML front matter; lossless, not counted as a read.

    Args:
        store: the store; None opens the brain that the command line uses.

    Raises:
        NotFoundError: there is no such chunk. InvalidChunkId: it is not a chunk id.
    """
    if store is None:
        place = locate()
        if isinstance(place, Path) and not (place / "memory").is_dir():
            raise NotFoundError(f"there is no memory at {place}")
        with open_store(place, actor="export") as opened:
            return export_to_markdown(chunk_id, store=opened)
    chunk = store.get_chunk(chunk_id, track=False)
    if chunk is not None:
        return chunk_to_markdown(chunk)
    found = NamespaceReader(store).chunks([chunk_id]).get(chunk_id)
    if found is None:
        raise NotFoundError(f"there is no chunk {chunk_id}", hint="rlm-mem list shows the chunks")
    return chunk_to_markdown(found, archived=True)


@observed("export")
def export_store(
    store: ChunkStore,
    target: str | Path,
    *,
    format: str | None = None,
    namespaces: Sequence[str] | str | None = None,
    archive: bool = True,
    history: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ExportReport:
    """Write every chunk of a store, with links, times, confidence, access counts, namespaces and archive.

    Tiered memories with their journal and transitions, personas and trajectories are also written, as the files of a
    brain folder.

    Args:
        target: a folder, or a file ending in ``.jsonl`` or ``.zip``.
        format: ``markdown``, ``jsonl`` or ``zip``; None: by the suffix of the target; without a suffix, a folder of
            Markdown.
        namespaces: only these; None: all that the store may access.
        archive: include soft-deleted chunks, and those in quarantine, which stay so when they are imported; without
            them, recorded runs that read one of them are left out, too.
        history: include former versions of these chunks, and the audit log.
        overwrite: replace a former export at ``target``.
        progress: called with (chunks done, chunks in all).

    Raises:
        InputError: the target exists already, or its format is unknown. StorageError: it cannot be written.
    """
    for what, value in (("archive", archive), ("history", history), ("overwrite", overwrite)):
        check_flag(value, what)
    named = str(target)
    target = checked_path(target)
    kind = format or ("markdown" if named.endswith(_SEPARATORS) else _format_of(target))
    if kind not in EXPORT_FORMATS:
        raise InputError(f"unknown format {kind!r:.40}: use one of {', '.join(EXPORT_FORMATS)}")
    _refuse_inside_store(store, target)
    wanted = _namespaces(store, None if namespaces is None else as_list(namespaces))
    listed = _listed(store, wanted, archive)
    report = ExportReport(str(target), kind)
    try:
        with _open_target(kind, target, overwrite) as (write, write_file, write_lines):
            for done, (chunk, archived) in enumerate(_read_in_batches(store, listed), 1):
                if chunk is None:
                    report.unreadable += 1
                else:
                    report.bytes += write(chunk, archived)
                    report.archived += archived
                    report.chunks += not archived
                    report.namespaces[chunk.namespace] = report.namespaces.get(chunk.namespace, 0) + 1
                if progress and (done % 50 == 0 or done == len(listed)):
                    progress(done, len(listed))
            shown = None if archive else frozenset(chunk_id for _, chunk_id, _ in listed)
            hidden = frozenset() if archive else _hidden(store, wanted)
            for place, data in exported_files(store, wanted, shown, hidden):
                report.bytes += write_file(place, data)
                report.files += 1
            if history:
                report.versions = write_lines("versions", exported_versions(store, listed))
                report.events = write_lines("events", exported_events(store, wanted))
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{target} cannot be written: {error.strerror or error}") from None
    return report


def _format_of(target: Path) -> str:
    suffix = target.suffix.lower()
    # A name such as "notes-2026.11" is that of a folder.
    if suffix not in _SUFFIXES and _FILE_SUFFIX.fullmatch(suffix) and not target.is_dir():
        raise InputError(
            f"there is no export format for files ending in {target.suffix}",
            hint="name a folder, or a file ending in .jsonl or .zip; the format markdown (--format) makes a folder of"
            " any name",
        )
    return _SUFFIXES.get(suffix, "markdown")


_CHUNKS_PER_READ = 100
_IN_QUARANTINE = ListFilter(trusts=("quarantined",))


def _read_in_batches(
    store: ChunkStore, listed: Sequence[tuple[str, str, bool]]
) -> Iterator[tuple[Chunk | None, bool]]:
    """Yield the chunks of a listing, read in batches; None for one that cannot be read."""
    for start in range(0, len(listed), _CHUNKS_PER_READ):
        group = listed[start : start + _CHUNKS_PER_READ]
        for name in dict.fromkeys(namespace for namespace, _, _ in group):
            ids = [(chunk_id, archived) for namespace, chunk_id, archived in group if namespace == name]
            found = NamespaceReader(store, name).chunks([chunk_id for chunk_id, _ in ids])
            yield from ((found.get(chunk_id), archived) for chunk_id, archived in ids)


def _refuse_inside_store(store: ChunkStore, target: Path) -> None:
    """Refuse a target inside the store: its files would be read as memories."""
    inside = NamespaceReader(store).stored.path("trajectories")
    if inside is not None and target.resolve().is_relative_to(inside.parent.resolve()):
        raise InputError(f"{target} is inside the store: name a place outside")


def _namespaces(store: ChunkStore, namespaces: Sequence[str] | None) -> list[str]:
    if namespaces is not None:
        return list(namespaces)
    return list(dict.fromkeys([*owners(store), store.namespace]))


def _hidden(store: ChunkStore, namespaces: Sequence[str]) -> frozenset[str]:
    """Return the ids of the chunks in the archive, and of those in quarantine."""
    hidden: set[str] = set()
    for name in namespaces:
        hidden.update(store.list_chunks(namespace=name, archived=True))
        hidden.update(_ids(store, name, _IN_QUARANTINE))
    return frozenset(hidden)


def _ids(store: ChunkStore, namespace: str, wanted: ListFilter) -> list[str]:
    return [one for one, *_ in store.backend.queries.list_places(namespace, wanted)]


def _listed(store: ChunkStore, namespaces: Sequence[str], archive: bool) -> list[tuple[str, str, bool]]:
    listed: list[tuple[str, str, bool]] = []
    for name in namespaces:
        # Includes quarantined and expired chunks.
        ids = _ids(store, name, ListFilter())
        if not archive:
            hidden = set(_ids(store, name, _IN_QUARANTINE))
            # The text of a tiered memory is in its file, which its mirror keeps in quarantine.
            ids = [one for one in ids if one not in hidden or is_mirror(one)]
        listed += [(name, one, False) for one in ids]
        if archive:
            listed += [
                (name, chunk_id, True) for chunk_id in store.list_chunks(namespace=name, archived=True)
            ]
    return listed


Write = Callable[[Chunk, bool], int]
WriteFile = Callable[[str, bytes], int]
WriteLines = Callable[[str, Iterator[dict[str, Any]]], int]


@contextmanager
def _open_target(kind: str, target: Path, overwrite: bool) -> Iterator[tuple[Write, WriteFile, WriteLines]]:
    if kind == "markdown":
        if target.exists() and not target.is_dir():
            raise InputError(f"{target} is a file, but Markdown is exported to a folder: name a folder")
        with _made(target):
            yield from _open_folder(target, overwrite)
        return
    if target.is_dir() or (target.exists() and not overwrite):
        raise InputError(f"{target} exists already", hint="use --overwrite to replace it")
    if target.exists() and not target.is_file():
        raise InputError(f"{target} is not a regular file", hint="name a file")
    with _made(target.parent):
        yield from _open_file(kind, target)


def _open_folder(target: Path, overwrite: bool) -> Iterator[tuple[Write, WriteFile, WriteLines]]:
    if any(target.iterdir()) and not (overwrite and (target / EXPORT_MARKER).is_file()):
        raise InputError(
            f"{target} is not empty",
            hint="name another folder, or use --overwrite to replace a former export",
        )
    # Written beside the former export, which stays complete if this one fails.
    unfinished = target / f".{secrets.token_hex(4)}.unfinished"
    made, former = unfinished / "made", unfinished / "former"
    try:
        for folder in (made, former):
            folder.mkdir(parents=True)
        yield _writers(lambda name: _new_file(made / name))
        (made / "README.md").write_text(_ABOUT, encoding="utf-8")
        (made / EXPORT_MARKER).write_text(_marker(), encoding="utf-8")
        _exchange(target, made, former)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _exchange(target: Path, made: Path, former: Path) -> None:
    """Move the parts of an export out of its folder and those of a new one into it, or leave it as it was."""
    names = (*_EXPORT_FOLDERS, "README.md", EXPORT_MARKER)
    try:
        for name in names:
            if os.path.lexists(target / name):
                (target / name).rename(former / name)
            if (made / name).exists():
                (made / name).rename(target / name)
    except BaseException:
        for name in names:
            if os.path.lexists(target / name) and not (made / name).exists():
                (target / name).rename(made / name)
            if os.path.lexists(former / name):
                (former / name).rename(target / name)
        raise


def _open_file(kind: str, target: Path) -> Iterator[tuple[Write, WriteFile, WriteLines]]:
    # Written under another name first: a file at the target is always a complete export.
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        if kind == "jsonl":
            with unfinished.open("wb") as handle:
                yield (
                    lambda chunk, archived: handle.write(_line(_shape(chunk, archived))),
                    lambda place, data: handle.write(_line(file_to_line(place, data))),
                    lambda _name, lines: sum(1 for line in lines if handle.write(_line(line))),
                )
        else:
            with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as packed:
                packed.writestr("README.md", _ABOUT)
                packed.writestr(EXPORT_MARKER, _marker())
                yield _writers(partial(_new_entry, packed))
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def _writers(create: Callable[[str], IO[bytes]]) -> tuple[Write, WriteFile, WriteLines]:
    """Return the functions that write to a folder or an archive, given the one that creates a file in it."""

    def write_file(name: str, data: bytes) -> int:
        with create(name) as handle:
            return handle.write(data)

    def write_lines(name: str, lines: Iterator[dict[str, Any]]) -> int:
        with create(f"{FOLDER}{name}.jsonl") as handle:
            return sum(1 for line in lines if handle.write(_line(line)))

    def write(chunk: Chunk, archived: bool) -> int:
        name, data = _name(chunk, archived), chunk_to_markdown(chunk, archived=archived).encode("utf-8")
        try:
            return write_file(name, data)
        except FileExistsError:  # the file system ignores letter case: chunk-A and chunk-a are the same name
            return write_file(f"{name.removesuffix('.md')}~{secrets.token_hex(4)}.md", data)

    return write, lambda place, data: write_file(place_in_export(place), data), write_lines


def _new_file(path: Path) -> IO[bytes]:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("xb")


def _new_entry(packed: zipfile.ZipFile, name: str) -> IO[bytes]:
    entry = zipfile.ZipInfo(name, time.localtime()[:6])  # of a name alone, zipfile makes a file of 1980
    entry.compress_type = zipfile.ZIP_DEFLATED
    return packed.open(entry, "w", force_zip64=name.startswith(FOLDER))


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder with those above it; if the export fails, remove what did not exist before."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        if folder in missing:
            shutil.rmtree(folder, ignore_errors=True)
        for one in missing:
            with suppress(OSError):  # another program uses it already
                one.rmdir()
        raise


def _marker() -> str:
    return json.dumps({"made_by": "rlm-mem export", "schema": SCHEMA_VERSION}) + "\n"


def _name(chunk: Chunk, archived: bool) -> str:
    """Return the path of a chunk within an export. A namespace cannot contain parts that leave the folder."""
    inside = "" if chunk.namespace == DEFAULT_NAMESPACE else f"namespaces/{chunk.namespace}/"
    folder = "archive" if archived else f"chunks/{chunk.metadata.created_at[:7]}"
    return f"{inside}{folder}/{chunk.id}.md"


def _shape(chunk: Chunk, archived: bool) -> dict[str, Any]:
    shape: dict[str, Any] = chunk.to_dict()
    return {"archived": archived, "chunk": shape} if archived or "archived" in shape else shape


def _line(shape: dict[str, Any]) -> bytes:
    return json.dumps(shape, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
