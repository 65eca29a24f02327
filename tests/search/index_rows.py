"""Index rows written directly, so that tests of the postings need no files and run through many writes quickly."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from rlm_mem.store.core.encoding import encode_segments
from rlm_mem.store.local import schema
from rlm_mem.text.analysis import AnalysedSegment

NS = 1


@dataclass
class Spoken:
    """One segment of a made-up chunk: who says which words."""

    words: list[str]
    author: str | None = None


@dataclass
class Made:
    """A made-up chunk as the tests know it."""

    doc: int
    conversation: int | None
    at: float
    segments: list[Spoken]
    type: str = "note"
    superseded: bool = False
    tags: list[str] = field(default_factory=list)

    @cached_property
    def words(self) -> list[str]:
        """Of all segments, which nobody changes."""
        return [word for segment in self.segments for word in segment.words]


class IndexRows:
    """The tables of the index in one file, with the writes that a store would make."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.path = folder / "index.sqlite"
        self.connection = self.connect()
        schema.make_tables(self.connection)
        self.chunks: dict[int, Made] = {}

    def connect(self) -> sqlite3.Connection:
        connection = schema.connect(self.path, wait_seconds=30)
        connection.execute("PRAGMA synchronous=OFF")
        return connection

    def term(self, text: str) -> int:
        self.connection.execute("INSERT OR IGNORE INTO terms(text) VALUES (?)", (text,))
        row = self.connection.execute("SELECT term FROM terms WHERE text = ?", (text,)).fetchone()
        return int(row[0])

    def put(self, made: Made) -> None:
        """Add a chunk or replace it."""
        segments, offset = [], 0
        for spoken in made.segments:
            counts = {word: spoken.words.count(word) for word in spoken.words}
            length = len(spoken.words)
            segments.append(AnalysedSegment(offset, offset + length, spoken.author, 0, length, counts))
            offset += length
        blob = encode_segments(segments, self.term)
        stamp = "2026-01-01T00:00:00.000000Z"
        self.drop(made.doc, announce=False)
        self.connection.execute(
            "INSERT INTO chunks(doc, id, ns, conversation, type, at, created_at, modified_at, superseded_by,"
            " confidence, tokens, revision, content_hash, norm_hash, folder, size, mtime_ns, inode, accessed_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0.7, 1, 1, '', '', ?, 1, 1, 1, ?)",
            (made.doc, f"chunk-{made.doc}", NS, made.conversation, made.type, made.at, stamp, stamp,
             "chunk-newer" if made.superseded else None, str(made.doc), stamp),
        )  # fmt: skip
        self.connection.execute("INSERT INTO segments(doc, data) VALUES (?, ?)", (made.doc, blob))
        for tag in made.tags:
            self.connection.execute(
                "INSERT INTO tags(ns, tag, at, doc) VALUES (?, ?, ?, ?)", (NS, tag, made.at, made.doc)
            )
        self._announce(made.doc)
        self.chunks[made.doc] = made

    def drop(self, doc: int, *, announce: bool = True) -> None:
        """Remove a chunk for good."""
        for table in ("chunks", "segments", "tags"):
            self.connection.execute(f"DELETE FROM {table} WHERE doc = ?", (doc,))
        self.chunks.pop(doc, None)
        if announce:
            self._announce(doc)

    def archive(self, doc: int) -> None:
        """Archive a chunk: its rows stay, it is no longer active."""
        self.connection.execute("UPDATE chunks SET status = 1 WHERE doc = ?", (doc,))
        self.chunks.pop(doc, None)
        self._announce(doc)

    def _announce(self, doc: int) -> None:
        self.connection.execute("INSERT INTO changes(ns, doc) VALUES (?, ?)", (NS, doc))
