"""Chunks as JSON: exported JSON lines, chunk files of every documented layout, and the files beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from rlm_mem.chunk import Chunk, check_namespace, is_chunk_id
from rlm_mem.errors import InputError
from rlm_mem.interchange.brain_files import file_from_line, read_brain_file
from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.history import read_history, record_of
from rlm_mem.interchange.reading import SourceFile, line_objects, moment, read_text
from rlm_mem.interchange.records import (
    ImportedChunk,
    ImportedEvent,
    ImportedVersion,
    ImportProblem,
    Record,
    mapped_id,
)  # fmt: skip
from rlm_mem.text.tokens import count_tokens

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_NAMED = (re.compile(r'"id"\s*:'), re.compile(r'"content"\s*:'))
_DATED = re.compile(r"chunk-\d{4}-\d{2}-\d{2}-")


def read_chunk_lines(file: SourceFile) -> Iterator[Record]:
    """Read exported JSON lines: a chunk per line, archived ones as ``{"archived": true, "chunk": {…}}``; then files."""
    for where, entry in line_objects(file):
        if "brain_file" in entry:
            yield file_from_line(entry, where)
            continue
        former = record_of(entry, where)
        if former is not None:
            yield former
            continue
        archived = False
        if entry.keys() == {"archived", "chunk"}:
            archived, entry = entry["archived"] is True, entry["chunk"]
        yield lenient_chunk(entry, where, file.modified_at, archived=archived)


def read_chunk_file(file: SourceFile) -> Iterator[Record]:
    """Read one chunk file of any documented shape."""
    with file.opened() as handle:
        text = read_text(handle, 4 * file.max_text)
    try:
        raw = json.loads(text)
    except RecursionError:
        yield ImportProblem(file.where, "JSON that is nested too deeply")
        return
    except ValueError as error:
        yield ImportProblem(file.where, f"not JSON: {error}")
        return
    archived, rename = PurePosixPath(file.entry.name).parent.name == "archive", partial(_id_of_day, file)
    yield lenient_chunk(raw, file.where, file.modified_at, archived=archived, rename=rename)


def _id_of_day(file: SourceFile, chunk_id: str) -> str:
    """Return the id in the store for one of the day layout, where ``chunk-001`` is a different chunk on each day."""
    folder = PurePosixPath(file.entry.name).parent
    if not _DAY.match(folder.name) or _DATED.match(chunk_id):
        return chunk_id
    is_of_same_day = str(folder / f"{chunk_id}.json") in file.names
    # A link to a chunk that is missing on the same day refers to an unknown day.
    return f"chunk-{folder.name}-{chunk_id.removeprefix('chunk-')}" if is_of_same_day else chunk_id


def lenient_chunk(
    raw: Any, where: str, default_time: str, *, archived: bool = False, rename: Any = None
) -> ImportedChunk | ImportProblem:
    """Convert a chunk of any documented shape; an invalid id or time is mapped, anything else is a problem.

    Args:
        default_time: ``created_at`` if it is missing or not a time.
        rename: maps each valid id to the one to use.
    """
    if not isinstance(raw, Mapping):
        return ImportProblem(where, f"a chunk was expected, not {type(raw).__name__}")
    original = raw.get("id")
    if not isinstance(original, str | int) or original == "":
        return ImportProblem(where, "a chunk without an id")

    def stored_id(value: Any) -> str:
        mapped = mapped_id(value)
        return rename(mapped) if rename else mapped

    metadata = raw.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, Mapping) else {}
    extra: dict[str, Any] = {}
    for names in (("created_at", "created"), ("modified_at", "updated"), ("accessed_at", "last_accessed")):
        _map_time(metadata, names, extra, default_time if names[0] == "created_at" else None)
    if isinstance(metadata.get("superseded_by"), str):
        metadata["superseded_by"] = stored_id(metadata["superseded_by"])
    if extra:
        former = metadata.get("extra")
        metadata["extra"] = {**(former if isinstance(former, Mapping) else {}), **extra}
    changed = {
        **raw,
        "id": stored_id(original),
        "metadata": metadata,
        "links": _renamed(raw.get("links"), stored_id),
    }
    try:
        chunk = Chunk.from_dict(changed)
        check_namespace(chunk.namespace)
    except InputError as error:
        return ImportProblem(where, str(error))
    except RecursionError:
        return ImportProblem(where, "nested too deeply")
    if not chunk.tokens and chunk.content:
        chunk.tokens = count_tokens(chunk.content)
    named = raw.get("schema") == "2.0" or "namespace" in raw  # older schemas have no namespaces
    original_id = None if chunk.id == original else str(original)
    return ImportedChunk(chunk, where, archived, original_id, names_namespace=named)


def _map_time(
    metadata: dict[str, Any], names: tuple[str, str], extra: dict[str, Any], default: str | None
) -> None:
    name = names[0] if metadata.get(names[0]) else names[1]
    value = metadata.get(name)
    if moment(value) is not None:
        metadata[name] = moment(value)
        return
    if value not in (None, ""):
        extra[f"original_{names[0]}"] = str(value)[:200]
    metadata.pop(name, None)
    metadata.pop(names[0], None)
    if default:
        metadata[names[0]] = default


def _renamed(links: Any, stored_id: Any) -> Any:
    """Return links in any documented shape, with every target's id mapped."""

    def one(link: Any) -> Any:
        if not isinstance(link, Mapping):
            return link
        key = "target_id" if "target_id" in link else "target"
        return {**link, key: stored_id(link[key])} if isinstance(link.get(key), str) else link

    if isinstance(links, Mapping):
        if "outgoing" in links or "incoming" in links:
            outgoing = links.get("outgoing") or []
            return {"outgoing": [one(link) for link in outgoing] if isinstance(outgoing, list) else outgoing}
        return {
            kind: [stored_id(target) if is_chunk_id(target) else target for target in targets]
            if isinstance(targets, list)
            else targets
            for kind, targets in links.items()
        }
    return [one(link) for link in links] if isinstance(links, list) else links


def _sniff_file(head: FileHead) -> Claim:
    if not head.is_json:
        return Claim.NO
    start = head.text.lstrip()[:1]
    if head.path.name.startswith("chunk-") and start != "[":
        return Claim.SURE
    if start != "{" or head.message_key:
        return Claim.NO
    return Claim.POSSIBLE if all(re.search(name, head.text) for name in _NAMED) else Claim.NO


def _sniff_lines(head: FileHead) -> Claim:
    if not head.is_json_lines:
        return Claim.NO
    for entry in head.lines:
        if (
            "brain_file" in entry
            or entry.keys() == {"archived", "chunk"}
            or isinstance(record_of(entry, ""), ImportedVersion | ImportedEvent)
            or (is_chunk_id(entry.get("id")) and "content" in entry and "metadata" in entry)
        ):
            return Claim.LIKELY
    # A first line longer than the head, or one that does not parse: the most likely reader reports it.
    broken = not head.lines and re.match(r'\s*\{"(?:schema|archived|id|brain_file)"', head.text)
    return Claim.LIKELY if broken else Claim.NO


CHUNK_FILE = Format("chunk-json", _sniff_file, read_chunk_file, "chunk files, of this or an older layout")
CHUNK_LINES = Format("chunk-jsonl", _sniff_lines, read_chunk_lines, "chunks exported as JSON lines")


def _claim_nothing(_head: FileHead) -> Claim:
    return Claim.NO


# Determined by a file's path in an export or a brain folder (``brain_files.format_by_place``).
BRAIN_FILE = Format(
    "brain-file", _claim_nothing, read_brain_file, "tiered memories, trajectories and other files of a brain"
)
HISTORY = Format("history", _claim_nothing, read_history, "former versions of chunks, and the audit log")
