"""The interface of an import format: a name, a function that inspects a file's beginning, and a reader."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from rlm_mem.interchange.frontmatter import split_frontmatter
from rlm_mem.interchange.reading import SourceFile, encoding_of
from rlm_mem.interchange.records import Record

HEAD_BYTES = 65_536
"""Bytes of a file that a format inspects."""

_LINES = 50
_DERIVED_FILES = {
    "index.json",
    "metadata_index.json",
    "tag_index.json",
    "link_graph.json",
    "graph.json",
    "manifest.json",
    "trajectories.jsonl",
}
_DERIVED_FOLDERS = ("tags", "versions", "index", "trajectories", "log")
_MESSAGE_KEY = re.compile(r'"(mapping|chat_messages|messages|role|sender)"\s*:')
_KEY = re.compile(r'"(\w{1,64})"\s*+:')
_JSON = {".json", ".jsonl", ".ndjson"}
_TEXTS = {".md", ".markdown", ".txt", ".text", ".rst", ".org"}


class Claim(IntEnum):
    """How certain a format is that a file is one of its own; the highest claim reads the file."""

    NO = 0
    POSSIBLE = 1
    """A general reader could read it; any more specific format takes precedence."""
    LIKELY = 2
    SURE = 3


class FileHead:
    """The name and the first ``HEAD_BYTES`` bytes of a file, for detecting its format.

    Args:
        name: its path within the source, with ``/``; never the name of an upload.
        data: its first bytes.
        folder: the name of the source folder, or of the folder of the source file; empty for archives and uploads.
    """

    def __init__(self, name: str, data: bytes, folder: str = "") -> None:
        self.name = name
        self.data = data
        self.folder = folder
        self.path = PurePosixPath(name)
        self.suffix = self.path.suffix.lower()

    @cached_property
    def text(self) -> str:
        """The bytes as text: UTF-8, or UTF-16 with a byte order mark; invalid bytes are replaced."""
        return self.data.decode(encoding_of(self.data), "replace")

    @property
    def is_text(self) -> bool:
        """Whether the file extension is that of prose, such as Markdown or plain text."""
        return self.suffix in _TEXTS

    @property
    def is_derived(self) -> bool:
        """Whether this is an index or a log of a memory, which is derived and never imported."""
        return self.path.name in _DERIVED_FILES or self.path.parent.name in _DERIVED_FOLDERS

    @property
    def is_json(self) -> bool:
        """Whether the file extension is that of JSON, and the file is not derived."""
        return self.suffix == ".json" and not self.is_derived

    @property
    def is_json_lines(self) -> bool:
        """Whether the file extension is that of JSON lines, and the file is not derived."""
        return self.suffix in (".jsonl", ".ndjson") and not self.is_derived

    @cached_property
    def lines(self) -> list[dict[str, Any]]:
        """The JSON objects among the first 50 lines, one per line."""
        found = []
        for line in self.text.split("\n", _LINES)[:_LINES]:
            try:
                entry = json.loads(line, strict=False)
            except (ValueError, RecursionError):
                continue
            if isinstance(entry, dict):
                found.append(entry)
        return found

    @cached_property
    def message_key(self) -> str:
        """The first key in the text that marks JSON of conversations or messages; empty: none."""
        found = _MESSAGE_KEY.search(self.text)
        return found[1] if found else ""

    @cached_property
    def keys(self) -> frozenset[str]:
        """The names of the keys in JSON or JSON lines, at any depth; empty for files of other names."""
        return frozenset(_KEY.findall(self.text) if self.suffix in _JSON else ())

    @cached_property
    def front_matter(self) -> str | None:
        """The front matter without its fences; None if there is none."""
        return split_frontmatter(self.text)[0]


@dataclass(frozen=True)
class Format:
    """A file format that an import reads.

    Attributes:
        name: for ``--format`` and reports: lower case, with ``-`` between words.
        sniff: how certain it is that a file is of this format; called for many files, so it inspects the head only.
        read: yields the records of a file, and an ``ImportProblem`` for each part that cannot be read; treats the
            file as hostile, and reads it in bounded memory.
        description: a few words about it, for reports.
    """

    name: str
    sniff: Callable[[FileHead], Claim]
    read: Callable[[SourceFile], Iterator[Record]]
    description: str = ""
