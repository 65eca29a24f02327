"""Facts, entities and episodes of a graph of Zep or Graphiti, as JSON or JSON lines.

The shapes are those of the API reference of Zep (help.getzep.com, v2 to v4: edges, nodes and episodes of a
graph, as a list or as pages with ``items``), of the models of graphiti-core 0.2x (``EntityEdge``,
``EntityNode``, ``EpisodicNode``) and its MCP server (``facts``, ``nodes``, ``episodes``), and of graphs exported from
Neo4j by ``apoc.export.json`` (``properties``). Messages of threads are read like any other list of messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rlm_mem.interchange.format import Claim, FileHead, Format
from rlm_mem.interchange.reading import SourceFile, json_records, moment, plain_tags, text_lines, whole_text
from rlm_mem.interchange.records import ImportProblem, Note, Record, derived_chunks

_INSIDE = ("edges", "nodes", "episodes", "items", "facts", "communities", "results")
_GROUPS = ("group_id", "graph_uuid", "graph_id", "user_id")
_GENERAL_LABELS = {"Entity", "Community", "Episodic"}


def _read(file: SourceFile) -> Iterator[Record]:
    for where, entry in json_records(file, _INSIDE):
        inner = entry.get("properties")
        if isinstance(inner, dict) and entry.get("type") in ("node", "relationship"):
            entry = {"labels": entry.get("labels"), **inner}
        if "fact" in entry:
            yield from _edge(file, where, entry)
        elif "content" in entry:
            yield from _episode(file, where, entry)
        elif "name" in entry or "summary" in entry:
            yield from _node(file, where, entry)
        elif not _is_mention(entry):
            yield ImportProblem(where, "neither a fact nor an entity nor an episode")


def _is_mention(entry: dict[str, Any]) -> bool:
    """Return whether the edge only connects an episode with a node, and states no fact."""
    return "source_node_uuid" in entry or ("uuid" in entry and "group_id" in entry and len(entry) <= 4)


def _edge(file: SourceFile, where: str, entry: dict[str, Any]) -> Iterator[Record]:
    text = whole_text(entry["fact"])
    if not text:
        yield ImportProblem(where, "an edge without a fact")
        return
    begins = _time(entry, "valid_at")
    ends = _time(entry, "invalid_at") or _time(entry, "expired_at")
    extra = _metadata_fields(entry, ("source_node_name", "target_node_name"))
    if text_lines(entry.get("name")):
        extra["relation"] = text_lines(entry.get("name"))
    if begins and ends and ends < begins:
        # Invalid before it was valid: the end was observed, so the end is kept
        extra["original_valid_at"], begins = begins, None
    yield from derived_chunks(
        "zep",
        _id_of(entry, text),
        text,
        where,
        metadata={
            "created_at": _time(entry, "created_at") or file.modified_at,
            "occurred_at": begins,
            "valid_from": begins,
            "valid_to": ends,
            "extra": extra,
        },
    )


def _node(file: SourceFile, where: str, entry: dict[str, Any]) -> Iterator[Record]:
    name, summary = text_lines(entry.get("name")), whole_text(entry.get("summary"))
    if not summary:  # a bare name adds nothing to the facts about the entity
        return
    text = summary if not name or summary.startswith(name) else f"{name}: {summary}"
    labels = [label for label in plain_tags(entry.get("labels")) if label not in _GENERAL_LABELS]
    yield from derived_chunks(
        "zep",
        _id_of(entry, text),
        text,
        where,
        metadata={
            "created_at": _time(entry, "created_at") or file.modified_at,
            "extra": {**_metadata_fields(entry, ()), "entity": name},
        },
        tags=labels,
    )


def _episode(file: SourceFile, where: str, entry: dict[str, Any]) -> Iterator[Record]:
    text = whole_text(entry["content"])
    if not text:
        yield ImportProblem(where, "an episode without content")
        return
    thread = text_lines(entry.get("thread_id") or entry.get("session_id") or entry.get("thread_uuid"))
    speaker = text_lines(entry.get("role") or entry.get("role_type"), 60).replace(":", " ")
    extra = _metadata_fields(entry, ("source_description", "name"))
    yield Note(
        key=_id_of(entry, text),
        conversation_id=thread or file.conversation,
        text=f"{speaker}: {text}" if speaker else text,
        where=where,
        at=_time(entry, "valid_at") or _time(entry, "created_at") or file.modified_at,
        extra=extra,
    )


def _time(entry: dict[str, Any], name: str) -> str | None:
    value = entry.get(name)
    if isinstance(value, str):  # Neo4j appends the name of the zone to the offset: 2026-02-10T21:37:00Z[UTC]
        value = value.partition("[")[0]
    return moment(value)


def _id_of(entry: dict[str, Any], text: str) -> str:
    return text_lines(entry.get("uuid")) or text[:1000]


def _metadata_fields(entry: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: text_lines(entry.get(name)) for name in (*names, *_GROUPS) if text_lines(entry.get(name))}


def _sniff(head: FileHead) -> Claim:
    keys = head.keys
    if "fact" in keys and keys & {"source_node_uuid", "valid_at", "invalid_at"}:
        return Claim.LIKELY
    if "uuid" not in keys or "chat_messages" in keys:
        return Claim.NO
    node = "summary" in keys and keys & {"labels", "group_id"}
    episode = "content" in keys and keys & {
        "source_description",
        "entity_edges",
        "processed",
        "episode_metadata",
    }
    return Claim.LIKELY if node or episode else Claim.NO


FORMAT = Format("zep", _sniff, _read, "a graph of Zep or Graphiti")
