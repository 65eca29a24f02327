"""The three JSON views of seed 000, written at checkpoint and never per insert: for people and older tools."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec

from rlm_mem.store.files import make_folder, write_atomic
from rlm_mem.store.layout import Layout

__all__ = ["write_views"]


def write_views(connection: sqlite3.Connection, layout: Layout) -> list[str]:
    """Write ``metadata_index.json``, ``tag_index.json`` and ``link_graph.json``; returns their names."""
    make_folder(layout.index)
    metadata: dict[str, Any] = {
        row[0]: {
            "type": row[1],
            "tokens": row[2],
            "confidence": row[3],
            "created_at": row[4],
            "modified_at": row[5],
            "conversation_id": row[6],
            "namespace": row[7],
            "file": row[8],
        }
        for row in connection.execute(
            "SELECT c.id, type, tokens, confidence, created_at, modified_at, v.id, n.name, path FROM chunks c"
            " JOIN namespaces n USING(ns) LEFT JOIN conversations v USING(conversation)"
            " WHERE status = 0 ORDER BY doc"
        )
    }
    tags: dict[str, list[str]] = {}
    for tag, chunk_id in connection.execute(
        "SELECT tag, id FROM tags JOIN chunks USING(doc) WHERE status = 0 ORDER BY tag, doc"
    ):
        tags.setdefault(tag, []).append(chunk_id)
    graph: dict[str, list[dict[str, Any]]] = {}
    for source, target, kind, strength in connection.execute(
        "SELECT id, dst_id, l.type, strength FROM links l JOIN chunks USING(doc) WHERE status = 0"
        " ORDER BY doc, position"
    ):
        graph.setdefault(source, []).append({"target_id": target, "type": kind, "strength": strength})
    views = {"metadata_index.json": metadata, "tag_index.json": tags, "link_graph.json": graph}
    for name, view in views.items():
        data = msgspec.json.format(msgspec.json.encode(view), indent=2) + b"\n"
        write_atomic(layout.index / name, data, durable=False)
    return list(views)
