"""The three JSON views for people and older tools, written at a checkpoint and when a small store is closed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from rlm_mem.store.core import files
from rlm_mem.store.local.folder import Layout
from rlm_mem.store.local.schema import since_created

_BLOCK = 1 << 18


def write_views(connection: sqlite3.Connection, layout: Layout) -> list[str]:
    """Write ``metadata_index.json``, ``tag_index.json`` and ``link_graph.json``; return their names.

    One line per chunk or tag, written while the rows are read: memory use does not grow with the store.
    """
    files.make_folder(layout.index)
    views = {
        "metadata_index.json": _metadata(connection),
        "tag_index.json": _tags(connection),
        "link_graph.json": _links(connection),
    }
    for name, entries in views.items():
        _write(layout.index / name, entries)
    return list(views)


_FIELDS = (
    "type", "tokens", "confidence", "created_at", "modified_at", "conversation_id", "namespace", "file",
)  # fmt: skip


def _metadata(connection: sqlite3.Connection) -> Iterator[tuple[str, Any]]:
    for chunk_id, *values in connection.execute(
        f"SELECT c.id, type, tokens, confidence, created_at, {since_created('modified_at', 'c')}, v.id, n.name, path"
        " FROM chunks c JOIN namespaces n USING(ns) LEFT JOIN conversations v USING(conversation)"
        " WHERE status = 0 ORDER BY doc"
    ):
        yield chunk_id, dict(zip(_FIELDS, values, strict=True))


def _tags(connection: sqlite3.Connection) -> Iterator[tuple[str, Any]]:
    namespaces = connection.execute("SELECT ns FROM namespaces ORDER BY ns").fetchall()
    # All namespaces together, as in the files; each scan follows the key of the table, so nothing is sorted.
    scans = [
        connection.execute(
            "SELECT tag, c.id FROM tags t JOIN chunks c USING(doc) WHERE t.ns = ? ORDER BY t.tag, t.at, t.doc",
            ns,
        )
        for ns in namespaces
    ]
    for tag, rows in groupby(merge(*scans, key=itemgetter(0)), itemgetter(0)):
        yield tag, [chunk_id for _, chunk_id in rows]


def _links(connection: sqlite3.Connection) -> Iterator[tuple[str, Any]]:
    rows = connection.execute(
        "SELECT c.id, dst_id, l.type, strength FROM chunks c CROSS JOIN links l USING(doc) WHERE status = 0"
        " ORDER BY c.doc, position"
    )
    for source, links in groupby(rows, itemgetter(0)):
        strengths: dict[str, dict[str, float]] = {}  # by type and target
        for _, target, kind, strength in links:
            strengths.setdefault(kind, {})[target] = strength
        yield source, strengths


def _write(target: Path, entries: Iterable[tuple[str, Any]]) -> None:
    encode = msgspec.json.Encoder().encode
    temp = Path(files.write_temp(target.parent, f".{target.name}", b""))
    with files.finishing(temp, target.name):
        with temp.open("wb", buffering=_BLOCK) as file:
            before = b"{\n"
            for key, value in entries:
                file.write(before + encode(key) + b": " + encode(value))
                before = b",\n"
            file.write(b"\n}\n" if before != b"{\n" else b"{}\n")
        files.publish(temp, target)
