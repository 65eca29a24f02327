"""The knowledge graph of the MCP reference server ``memory``: its file, or the result of its ``read_graph``.

The shapes are those of ``src/memory/index.ts`` of github.com/modelcontextprotocol/servers in 2026: lines of the
type ``entity`` or ``relation`` in ``memory.jsonl`` (formerly ``memory.json``), and an object with ``entities``
and ``relations``. Neither has times.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.reading import (
    SourceFile,
    entry_objects,
    line_objects,
    plain_tags,
    text_lines,
    whole_text,
)
from rlm_mem.interchange.records import ImportProblem, Record, derived_chunks


def _read_lines(file: SourceFile) -> Iterator[Record]:
    for where, entry in line_objects(file):
        yield from _entry(file, where, entry)


def _read_graph(file: SourceFile) -> Iterator[Record]:
    for where, entry in entry_objects(file, ("entities", "relations")):
        yield from _entry(file, where, entry)


def _entry(file: SourceFile, where: str, entry: dict[str, Any]) -> Iterator[Record]:
    if "relationType" in entry:
        yield from _relation(file, where, entry)
    elif "observations" in entry and _words(entry.get("name")):
        yield from _entity(file, where, entry)
    else:
        yield ImportProblem(where, "neither an entity with a name and observations nor a relation")


def _entity(file: SourceFile, where: str, entry: dict[str, Any]) -> Iterator[Record]:
    """Return each observation as a memory of its own; an entity without observations by its name and type."""
    name, kind, observations = entry["name"], _words(entry.get("entityType")), entry["observations"]
    texts = observations if isinstance(observations, list) else [observations]
    for text in texts or [kind or "entity"]:
        if observed := whole_text(text):
            said = f"{_words(name)}: {observed}"
            yield from _memory(file, where, said, {"entity": text_lines(name)}, plain_tags([kind]))
        else:
            yield ImportProblem(where, f"an observation about {_words(name)} without text")


def _relation(file: SourceFile, where: str, entry: dict[str, Any]) -> Iterator[Record]:
    words = [_words(entry.get(name)) for name in ("from", "relationType", "to")]
    if not all(words):
        yield ImportProblem(where, "a relation without from, relationType or to")
        return
    extra = {name: text_lines(entry[name]) for name in ("from", "relationType", "to")}
    yield from _memory(file, where, " ".join(words), extra, ["relation"])


def _memory(
    file: SourceFile, where: str, text: str, extra: dict[str, Any], tags: list[str]
) -> Iterator[Record]:
    metadata = {"created_at": file.modified_at, "extra": extra}
    yield from derived_chunks("knowledge-graph", text, text, where, metadata=metadata, tags=tags)


def _words(value: Any) -> str:
    """Return a name in words: the server's examples write ``John_Smith`` and ``works_at``."""
    return text_lines(value).replace("_", " ").strip()


def _is_graph(head: FileHead) -> bool:
    keys = head.keys
    known = {"name", "entityType", "observations"} <= keys or {"from", "to", "relationType"} <= keys
    return known and not head.message_key  # a chat may quote the calls of the server's tools


def _sniff_lines(head: FileHead) -> Claim:
    """Claim the file by its lines, whatever its suffix: the server's own file was called ``memory.json``."""
    kinds = {entry.get("type") for entry in head.lines} if _is_graph(head) else set()
    return Claim.SURE if kinds & {"entity", "relation"} else Claim.NO


def _sniff_graph(head: FileHead) -> Claim:
    return Claim.LIKELY if head.is_json and _is_graph(head) and not _sniff_lines(head) else Claim.NO


LINES = Format("knowledge-graph", _sniff_lines, _read_lines, "the knowledge graph of the MCP server memory")
GRAPH = Format(
    "knowledge-graph-json", _sniff_graph, _read_graph, "the result of read_graph of the MCP server memory"
)
