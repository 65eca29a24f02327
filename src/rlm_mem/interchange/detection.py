"""What a file is: told from its name and its first bytes, never from what the user calls it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

from rlm_mem.chunk import is_chunk_id
from rlm_mem.errors import InputError
from rlm_mem.interchange import brain_files, chats, chunk_files, history, layered, notes
from rlm_mem.interchange.frontmatter import read_frontmatter, split_frontmatter
from rlm_mem.interchange.markdown import is_chunk_markdown
from rlm_mem.interchange.records import Record
from rlm_mem.interchange.source_file import SourceFile

__all__ = ["FORMATS", "HEAD", "detect", "reader_of", "unknown_because"]

HEAD = 65_536
"""Bytes of a file that are looked at."""

Reader = Callable[[SourceFile], Iterator[Record]]

FORMATS: dict[str, tuple[str, Reader]] = {
    "chunk-markdown": ("chunks exported as Markdown", notes.read_chunk_markdown),
    "chunk-jsonl": ("chunks exported as JSON lines", chunk_files.read_chunk_lines),
    "chunk-json": ("chunk files, of this or an older layout", chunk_files.read_chunk_file),
    "layered-jsonl": ("layered memories (.agents/memory)", layered.read_layered),
    "meridian": ("MERIDIAN memories", notes.read_meridian),
    "candidates": ("a list of memory candidates", notes.read_candidates),
    "persona": ("personalities, sliders and gauges", notes.read_asset),
    "brain-file": ("tiered memories, trajectories and other files of a brain", brain_files.read_brain_file),
    "history": ("former versions of chunks, and the audit log", history.read_history),
    "chatgpt": ("a ChatGPT data export", chats.read_array),
    "claude": ("a Claude data export", chats.read_array),
    "claude-code": ("Claude Code transcripts", chats.read_transcript),
    "messages-json": ("messages in a JSON array", chats.read_array),
    "messages-jsonl": ("messages as JSON lines", chats.read_message_lines),
    "notes": ("notes: Markdown and plain text", notes.read_note),
}
"""Every format by name: what it is, and what reads it."""

_TEXTS = {".md", ".markdown", ".txt", ".text", ".rst", ".org"}
_INDEXES = {
    "index.json",
    "metadata_index.json",
    "tag_index.json",
    "link_graph.json",
    "graph.json",
    "manifest.json",
}
_DERIVED = ("tags", "versions", "index", "trajectories", "log")
_MERIDIAN = re.compile(r"^\*\*(?:Created|Category):\*\*", re.MULTILINE)
_PERSONA = re.compile(
    r"^> (?:Slider Range|Activated when):|^## (?:Slider Adjustments|Calibration Levels)"
    r"|\A# [^\n]{1,80} (?:Slider|Mode)[ \t]*\n+## (?:Range|Configuration)",
    re.MULTILINE,
)
_ENTRY_KEY = re.compile(r'"(mapping|chat_messages|messages|role|sender)"\s*:')


def reader_of(name: str) -> Reader:
    """What reads a format; raises InputError for an unknown name."""
    if name not in FORMATS:
        raise InputError(f"unknown format {name!r:.40}: use one of {', '.join(FORMATS)}")
    return FORMATS[name][1]


def detect(name: str, head: bytes) -> str | None:
    """The format of a file, or None for one that is passed over (pictures, indexes, programs).

    Args:
        name: its path within the place.
        head: its first HEAD bytes.
    """
    path = PurePosixPath(name)
    suffix = path.suffix.lower()
    text = head.decode("utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig", "replace")
    if suffix == ".json":
        return _json(path, text)
    if suffix in (".jsonl", ".ndjson"):
        return _lines(path, text)
    if suffix not in _TEXTS:
        return None
    if "[MEMORY_CANDIDATES]" in text:
        return "candidates"
    header, _ = split_frontmatter(text)
    if header is not None:
        try:
            fields = read_frontmatter(header)
        except InputError:
            # Broken YAML that calls itself a chunk is reported as one, not remembered as a note.
            fields = (
                {"id": "chunk-x", "type": ""}
                if re.search(r"^id: *[\"']?chunk-", header, re.MULTILINE)
                else {}
            )
        return "chunk-markdown" if is_chunk_markdown(fields) else "notes"
    if text.startswith("---\n") and re.match(r"---\r?\nid: *chunk-[\w-]+\r?\n", text):
        return "chunk-markdown"  # frontmatter longer than what is looked at
    if _PERSONA.search(text[:8192]) or (path.name == "LIVEHUD.md" and path.parent.name == "gauges"):
        return "persona"
    if _MERIDIAN.search(text[:4096]):
        return "meridian"
    return "notes"


def unknown_because(name: str, head: bytes) -> str | None:
    """Why a file whose name promises memories has no known format; None for one that promises none.

    Args:
        name: its path within the place.
        head: its first HEAD bytes.
    """
    path = PurePosixPath(name)
    suffix = path.suffix.lower()
    if suffix == ".zip":
        return "an archive within: import it by itself"
    if suffix not in (".json", ".jsonl", ".ndjson") or _is_derived(path):
        return None
    if not head.strip():
        return "empty"
    if b"\0" in head and head[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        return "binary, not JSON"
    if len(head) < HEAD:
        try:
            json.loads(head)
        except (ValueError, RecursionError) as error:
            return f"not valid JSON: {error}" if isinstance(error, ValueError) else "JSON nested too deeply"
    return "JSON of a shape that no importer knows: no memories, messages or conversations in it"


def _is_derived(path: PurePosixPath) -> bool:
    """Whether a file of this name is an index or a log of a memory, which is made anew and never imported."""
    return path.name in (*_INDEXES, "trajectories.jsonl") or path.parent.name in _DERIVED


def _json(path: PurePosixPath, text: str) -> str | None:
    if path.name in _INDEXES or path.parent.name in ("tags", "versions", "index", "trajectories"):
        return None
    start = text.lstrip()[:1]
    if path.name.startswith("chunk-") and start != "[":
        return "chunk-json"
    found = _ENTRY_KEY.search(text)
    kind = found[1] if found else ""
    if kind == "mapping":
        return "chatgpt"
    if kind in ("chat_messages", "sender"):
        return "claude"
    if kind:
        return "messages-json"
    if start == "{" and re.search(r'"id"\s*:', text) and re.search(r'"content"\s*:', text):
        return "chunk-json"
    return "messages-json" if path.name == "conversations.json" else None


def _lines(path: PurePosixPath, text: str) -> str | None:
    if path.parent.name == "log" or path.name == "trajectories.jsonl":
        return None
    if path.name == "memory.jsonl":
        return "layered-jsonl"
    for line in text.split("\n")[:50]:
        try:
            entry: Any = json.loads(line, strict=False)
        except (ValueError, RecursionError):
            continue
        kind = _line(entry) if isinstance(entry, dict) else None
        if kind:
            return kind
    # A first line longer than what is looked at, or nothing that parses: the likeliest reader reports it.
    if re.search(r'"(?:sessionId|parentUuid)"\s*:', text):
        return "claude-code"
    if re.match(r'\s*\{"(?:schema|archived|id|brain_file)"', text):
        return "chunk-jsonl"
    return "messages-jsonl" if text.strip() else None


def _line(entry: dict[str, Any]) -> str | None:
    if (
        "brain_file" in entry
        or entry.keys() == {"archived", "chunk"}
        or (is_chunk_id(entry.get("id")) and "content" in entry and "metadata" in entry)
    ):
        return "chunk-jsonl"
    if entry.get("scope") in layered.SCOPES:
        return "layered-jsonl"
    if "sessionId" in entry or ("message" in entry and entry.get("type") in ("user", "assistant")):
        return "claude-code"
    if ("role" in entry or "sender" in entry or "author" in entry) and (
        "content" in entry or "text" in entry
    ):
        return "messages-jsonl"
    return "messages-jsonl" if isinstance(entry.get("messages"), list) else None
