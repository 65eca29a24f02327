"""Exporting: one chunk as Markdown, a whole store as a folder of Markdown, as JSON lines, or as one zip archive."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk import DEFAULT_NAMESPACE, SCHEMA_VERSION, Chunk
from rlm_mem.config import Config, locate_brain
from rlm_mem.errors import InputError, NotFoundError, StorageError
from rlm_mem.interchange.markdown import chunk_to_markdown
from rlm_mem.telemetry import observed

if TYPE_CHECKING:
    from rlm_mem.store.api import ChunkStore

__all__ = ["EXPORT_FORMATS", "EXPORT_MARKER", "ExportReport", "export_store", "export_to_markdown"]

EXPORT_FORMATS = ("markdown", "jsonl", "zip")

EXPORT_MARKER = "rlm-mem-export.json"
"""A file that tells an exported folder from any other."""
_OURS = ("chunks", "archive", "namespaces")
_ABOUT = """# Exported memories

One file a memory, below `chunks`; deleted ones, which can be restored, below `archive`; other namespaces below
`namespaces`. The folder opens as a vault in Obsidian: links between memories are wiki links in `related`.
`rlm-mem import` reads it back, edits included.
"""


@dataclass
class ExportReport:
    """What was written where."""

    target: str
    format: str
    chunks: int = 0
    archived: int = 0
    namespaces: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0
    bytes: int = 0


def export_to_markdown(chunk_id: str, *, store: ChunkStore | None = None) -> str:
    """A chunk, active or archived, as Markdown with YAML frontmatter (seed 003); nothing is lost, reads not counted.

    Args:
        store: where from; None opens the brain that the command line would find.

    Raises:
        NotFoundError: there is no such chunk. InvalidChunkId: it is no chunk id.
    """
    if store is None:
        from rlm_mem.store.api import ChunkStore

        folder = locate_brain()
        if not (folder / "memory").is_dir():
            raise NotFoundError(f"there is no memory at {folder}")
        with ChunkStore(folder / "memory", config=Config.load(folder), actor="export") as opened:
            return export_to_markdown(chunk_id, store=opened)
    chunk = store.get_chunk(chunk_id, track=False)
    if chunk is not None:
        return chunk_to_markdown(chunk)
    found = store.backend.chunks(store.namespace, [chunk_id], status=None).get(chunk_id)
    if found is None:
        raise NotFoundError(f"there is no chunk {chunk_id}", hint="rlm-mem list shows what is there.")
    return chunk_to_markdown(found, archived=True)


@observed("export")
def export_store(
    store: ChunkStore,
    target: str | Path,
    *,
    format: str | None = None,
    namespaces: Sequence[str] | None = None,
    archive: bool = True,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> ExportReport:
    """Write every chunk of a store, with links, times, confidence, access counts, namespaces and archive.

    Former versions and the audit log are not exported: copy the brain folder for these.

    Args:
        target: a folder, or a file ending in ``.jsonl`` or ``.zip``.
        format: ``markdown``, ``jsonl`` or ``zip``; None takes it from the name of the target.
        namespaces: only these; None: all that the store may see.
        archive: with soft-deleted chunks.
        overwrite: write over what a former export left at ``target``.
        progress: called with (chunks done, chunks in all).

    Raises:
        InputError: the target is there already, or the format is unknown. StorageError: it cannot be written.
    """
    target = Path(target)
    kind = format or {".jsonl": "jsonl", ".ndjson": "jsonl", ".zip": "zip"}.get(
        target.suffix.lower(), "markdown"
    )
    if kind not in EXPORT_FORMATS:
        raise InputError(f"unknown format {kind!r:.40}: use one of {', '.join(EXPORT_FORMATS)}")
    if target.resolve().is_relative_to(store.base_path.resolve()):
        raise InputError(f"{target} lies within the store: name a place outside of it")
    listed = _listed(store, namespaces, archive)
    report = ExportReport(str(target), kind)
    try:
        with _sink(kind, target, overwrite) as write:
            for done, (chunk, archived) in enumerate(_read_in_lots(store, listed), 1):
                if chunk is None:
                    report.unreadable += 1
                else:
                    report.bytes += write(chunk, archived)
                    report.archived += archived
                    report.chunks += not archived
                    report.namespaces[chunk.namespace] = report.namespaces.get(chunk.namespace, 0) + 1
                if progress and (done % 50 == 0 or done == len(listed)):
                    progress(done, len(listed))
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{target} cannot be written: {error.strerror or error}") from None
    return report


_LOT = 100


def _read_in_lots(
    store: ChunkStore, listed: Sequence[tuple[str, str, bool]]
) -> Iterator[tuple[Chunk | None, bool]]:
    """The chunks of a listing, a few at a time; None for one that cannot be read."""
    for start in range(0, len(listed), _LOT):
        lot = listed[start : start + _LOT]
        for name in dict.fromkeys(namespace for namespace, _, _ in lot):
            ids = [(chunk_id, archived) for namespace, chunk_id, archived in lot if namespace == name]
            found = store.backend.chunks(name, [chunk_id for chunk_id, _ in ids], status=None)
            yield from ((found.get(chunk_id), archived) for chunk_id, archived in ids)


def _listed(
    store: ChunkStore, namespaces: Sequence[str] | None, archive: bool
) -> list[tuple[str, str, bool]]:
    wanted = [name for name, _ in store.namespaces()] if namespaces is None else list(namespaces)
    listed: list[tuple[str, str, bool]] = []
    for name in wanted:
        listed += [(name, chunk_id, False) for chunk_id in store.list_chunks(namespace=name)]
        if archive:
            listed += [(name, chunk_id, True) for chunk_id in store.list_chunks(namespace=name, archived=True)]
    return listed


Write = Callable[[Chunk, bool], int]


@contextmanager
def _sink(kind: str, target: Path, overwrite: bool) -> Iterator[Write]:
    if kind == "markdown":
        _prepare_folder(target, overwrite)
        yield lambda chunk, archived: _write_file(target, chunk, archived)
        return
    if target.is_dir() or (target.exists() and not overwrite):
        raise InputError(f"{target} is there already", hint="--overwrite writes over it.")
    target.parent.mkdir(parents=True, exist_ok=True)
    # Under another name until it is whole: a file at the target is always a complete export.
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        if kind == "jsonl":
            with unfinished.open("w", encoding="utf-8", newline="") as handle:
                yield lambda chunk, archived: handle.write(_line(chunk, archived))
        else:
            with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as packed:
                packed.writestr("README.md", _ABOUT)
                packed.writestr(EXPORT_MARKER, _marker())
                yield lambda chunk, archived: _pack(packed, chunk, archived)
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def _prepare_folder(target: Path, overwrite: bool) -> None:
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file, and Markdown goes into a folder")
    if target.is_dir() and any(target.iterdir()):
        if not overwrite or not (target / EXPORT_MARKER).is_file():
            raise InputError(
                f"{target} is not empty",
                hint="Name another folder; --overwrite writes over the folder of a former export.",
            )
        for name in _OURS:
            if (target / name).is_dir() and not (target / name).is_symlink():
                shutil.rmtree(target / name)
    target.mkdir(parents=True, exist_ok=True)
    (target / "README.md").write_text(_ABOUT, encoding="utf-8")
    (target / EXPORT_MARKER).write_text(_marker(), encoding="utf-8")


def _marker() -> str:
    return json.dumps({"made_by": "rlm-mem export", "schema": SCHEMA_VERSION}) + "\n"


def _name(chunk: Chunk, archived: bool) -> str:
    """The place of a chunk within an export. Parts of namespaces never hold anything that leads elsewhere."""
    inside = "" if chunk.namespace == DEFAULT_NAMESPACE else f"namespaces/{chunk.namespace}/"
    folder = "archive" if archived else f"chunks/{chunk.metadata.created_at[:7]}"
    return f"{inside}{folder}/{chunk.id}.md"


def _write_file(target: Path, chunk: Chunk, archived: bool) -> int:
    path = target / _name(chunk, archived)
    path.parent.mkdir(parents=True, exist_ok=True)
    data = chunk_to_markdown(chunk, archived=archived).encode("utf-8")
    try:
        handle = path.open("xb")
    except FileExistsError:  # a file system that takes chunk-A and chunk-a for one name
        handle = path.with_name(f"{path.stem}~{secrets.token_hex(4)}.md").open("xb")
    with handle:
        return handle.write(data)


def _pack(packed: zipfile.ZipFile, chunk: Chunk, archived: bool) -> int:
    data = chunk_to_markdown(chunk, archived=archived).encode("utf-8")
    packed.writestr(_name(chunk, archived), data)
    return len(data)


def _line(chunk: Chunk, archived: bool) -> str:
    shape: dict[str, Any] = chunk.to_dict()
    if archived or "archived" in shape:
        shape = {"archived": archived, "chunk": shape}
    return json.dumps(shape, ensure_ascii=False, separators=(",", ":")) + "\n"
