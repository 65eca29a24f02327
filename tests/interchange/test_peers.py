"""Exports of other memory systems, in the shapes that their documentation gives, whole and damaged."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.chunk import Chunk
from rlm_mem.interchange import ImportReport, import_source, sync_folder
from rlm_mem.store.core.chunk_store import ChunkStore
from tests.typed import present

from .conftest import Open
from .test_formats import lines, reasons, write

pytestmark = pytest.mark.local_only("read files")


def by_text(store: ChunkStore, **filters: Any) -> dict[str, Chunk]:
    return {chunk.content: chunk for chunk in store.iter_chunks(**filters)}


# --- mem0 ------------------------------------------------------------------------------------------


def mem0(**fields: Any) -> dict[str, Any]:
    return {
        "id": "m1", "memory": "Prefers morning meetings.", "hash": "h", "user_id": "arjun", "agent_id": None,
        "metadata": {"type": "preference", "user_id": "forged"}, "categories": ["work", "habits"],
        "created_at": "2025-06-01T08:00:00-07:00", "updated_at": "2025-07-01T08:00:00-07:00",
        "expiration_date": None, "structured_attributes": {"day": 1}, **fields,
    }  # fmt: skip


@pytest.mark.parametrize(
    "shape",
    [
        lambda entry: json.dumps([entry]),
        lambda entry: json.dumps({"results": [entry]}),
        lambda entry: json.dumps({"count": 1, "next": None, "previous": None, "results": [entry]}),
        lambda entry: lines(entry),
    ],
    ids=["list", "results", "page", "lines"],
)
def test_memories_of_mem0_keep_ids_times_owners_and_categories(
    store: ChunkStore, tmp_path: Path, shape: Any
) -> None:
    text = shape(mem0())
    file = write(tmp_path / f"mem0.json{'l' if text.endswith(chr(10)) else ''}", text)
    report = import_source(store, file)
    assert (report.formats, reasons(report)) == ({"mem0": 1}, "")
    (chunk,) = store.iter_chunks()
    assert chunk.id.startswith("chunk-m1-")
    assert (chunk.content, chunk.type, chunk.tags) == (
        "Prefers morning meetings.", "preference", ["work", "habits"],
    )  # fmt: skip
    assert chunk.metadata.created_at == "2025-06-01T15:00:00.000000Z"
    assert chunk.metadata.modified_at == "2025-07-01T15:00:00.000000Z"
    assert chunk.metadata.extra == {"type": "preference", "user_id": "arjun"}
    assert (chunk.metadata.origin, chunk.metadata.trust) == ("import", "untrusted")
    write(file, shape(mem0(memory="Prefers afternoon meetings.", updated_at="2025-08-01T00:00:00Z")))
    again = import_source(store, file)
    assert (again.updated, again.created) == (1, 0)
    assert [one.content for one in store.iter_chunks()] == ["Prefers afternoon meetings."]


def test_the_archive_of_openmemory_gives_states_and_names_of_categories(
    store: ChunkStore, tmp_path: Path
) -> None:
    memory = {
        "user_id": "u", "app_id": "a", "metadata": {}, "created_at": "2025-06-01T08:00:00+00:00",
        "category_ids": ["c1"],
    }  # fmt: skip
    whole = {
        "user": {"id": "u", "user_id": "ann"},
        "apps": [{"id": "a", "name": "cursor"}],
        "categories": [{"id": "c1", "name": "travel"}],
        "memories": [
            {**memory, "id": "1", "content": "Flies to Lisbon in May.", "state": "active"},
            {**memory, "id": "2", "content": "Rents a car there.", "state": "archived"},
            {**memory, "id": "3", "content": "Was told a secret.", "state": "deleted"},
        ],
        "memory_categories": [{"memory_id": "1", "category_id": "c1"}],
        "export_meta": {"version": "1"},
    }
    with zipfile.ZipFile(tmp_path / "memories_export_ann.zip", "w") as packed:
        packed.writestr("memories.json", json.dumps(whole, indent=2))
        packed.writestr("memories.jsonl.gz", b"\x1f\x8b")
    report = import_source(store, tmp_path / "memories_export_ann.zip")
    assert (report.formats, reasons(report)) == ({"mem0": 1}, "")
    assert {text: chunk.tags for text, chunk in by_text(store).items()} == {
        "Flies to Lisbon in May.": ["travel"]
    }
    assert list(by_text(store, archived=True)) == ["Rents a car there."]


def test_an_expiry_and_relations_of_mem0_are_kept_and_broken_entries_reported(
    store: ChunkStore, tmp_path: Path
) -> None:
    whole = {
        "results": [
            mem0(id="1", expiration_date="2099-01-01", metadata={"source": "chat", "trust": "trusted"}),
            mem0(id="2", memory=None),
            mem0(id="3", memory="Likes \ud800 tea.", metadata={"deep": json.loads("[" * 40 + "]" * 40)}),
            mem0(id="4", memory="Likes \ud800 tea.", metadata=[1], categories="tea, cups", created_at="soon"),
            "text", {"x": 1}, {},
        ],
        "relations": [
            {"source": "arjun", "relationship": "works_at", "target": "tech_corp"},
            {"source": "arjun", "relationship": "knows"},
        ],
    }  # fmt: skip
    report = import_source(store, write(tmp_path / "mem0.json", whole))
    found = by_text(store)
    assert set(found) == {"Prefers morning meetings.", "Likes \ufffd tea.", "arjun works at tech corp"}
    assert found["Prefers morning meetings."].metadata.expires_at == "2099-01-01T00:00:00.000000Z"
    assert found["Prefers morning meetings."].metadata.trust == "untrusted"
    assert found["Prefers morning meetings."].metadata.extra["source"] == "chat"
    assert found["Likes \ufffd tea."].tags == ["tea", "cups"]
    assert report.problem_count == 6
    for number in (2, 3, 5, 6, 7, 9):
        assert f"entry {number}: " in reasons(report) or number == 9


def test_imported_memories_are_trusted_as_the_settings_say_and_stay_in_quarantine(
    open_store: Open, tmp_path: Path
) -> None:
    store = open_store(trust={"imported": "ordinary"})
    file = write(tmp_path / "mem0.json", [mem0()])
    import_source(store, file)
    (chunk_id,) = store.list_chunks()
    assert present(store.get_chunk(chunk_id)).metadata.trust == "ordinary"
    store.quarantine(chunk_id, "doubtful")
    write(file, [mem0(memory="Prefers no meetings.")])
    import_source(store, file)
    assert list(store.iter_chunks()) == []


def test_memories_that_were_edited_here_only_are_kept_and_the_log_is_read_once_for_all(
    store: ChunkStore, tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def imported(word: str) -> ImportReport:
        memories = [{"id": f"id-{number}", "memory": f"Gate {number} is {word}."} for number in range(5)]
        (tmp_path / "m.json").write_text(json.dumps({"results": memories}))
        return import_source(store, tmp_path / "m.json", format="mem0", again=True)

    assert imported("red").created == 5
    assert imported("blue").updated == 5
    for chunk_id in store.list_chunks()[:3]:
        store.update_chunk(chunk_id, "The gate is gone.")
    reads: list[object] = []
    read = store.backend.read_events
    monkeypatch.setattr(store.backend, "read_events", lambda **more: reads.append(more) or read(**more))
    again = imported("blue")
    assert (again.kept, again.known, again.updated) == (3, 2, 0)
    assert len(reads) == (1 if backend == "local" else 3)
    assert imported("green").updated == 5


def test_people_that_would_be_mixed_and_pages_that_are_missing_are_said(
    store: ChunkStore, tmp_path: Path
) -> None:
    page = {
        "count": 400, "next": "https://api.example/v2/memories/?page=2", "previous": None,
        "results": [
            mem0(id=f"m{n}", memory=f"Likes train {n}.", user_id=name) for n, name in enumerate(("ann", "ben", "ann"))
        ],
    }  # fmt: skip
    report = import_source(store, write(tmp_path / "page.json", json.dumps(page)))
    people, more = (notice.text for notice in report.notices)
    assert people.startswith("memories of 2 people (ann 2, ben 1) in one namespace")
    assert more.startswith("the page names a next one")
    told = mem0(memory='Writes "next": "now" and \'"results"\' a lot.')
    assert import_source(store, write(tmp_path / "one.json", json.dumps({"results": [told]}))).notices == []


# --- the MCP server memory -------------------------------------------------------------------------

_GRAPH = (
    {"type": "entity", "name": "Ann_Silva", "entityType": "person",
     "observations": ["Speaks Portuguese", "Prefers morning meetings"]},
    {"type": "entity", "name": "TechCorp", "entityType": "organization", "observations": []},
    {"type": "relation", "from": "Ann_Silva", "to": "TechCorp", "relationType": "works_at"},
)  # fmt: skip


def _read_graph() -> str:
    bare = [{key: value for key, value in entry.items() if key != "type"} for entry in _GRAPH]
    return json.dumps({"entities": bare[:2], "relations": bare[2:]}, indent=2)


@pytest.mark.parametrize(
    ("name", "text"),
    [("memory.jsonl", lines(*_GRAPH)), ("memory.json", lines(*_GRAPH)), ("read_graph.json", _read_graph())],
    ids=["lines", "lines-named-json", "read_graph"],
)
def test_a_knowledge_graph_gives_observations_and_relations(
    store: ChunkStore, tmp_path: Path, name: str, text: str
) -> None:
    file = write(tmp_path / name, text)
    report = import_source(store, file)
    assert (reasons(report), report.created) == ("", 4)
    found = by_text(store)
    assert {content: chunk.tags for content, chunk in found.items()} == {
        "Ann Silva: Speaks Portuguese": ["person"],
        "Ann Silva: Prefers morning meetings": ["person"],
        "TechCorp: organization": ["organization"],
        "Ann Silva works at TechCorp": ["relation"],
    }
    assert found["Ann Silva works at TechCorp"].metadata.extra == {
        "from": "Ann_Silva", "relationType": "works_at", "to": "TechCorp",
    }  # fmt: skip
    assert import_source(store, file, again=True).created == 0


def test_entries_of_a_knowledge_graph_that_say_nothing_are_reported(
    store: ChunkStore, tmp_path: Path
) -> None:
    text = lines(
        _GRAPH[0],
        {"type": "entity", "name": "", "entityType": "person", "observations": ["Lost"]},
        {"type": "entity", "name": "Ben", "entityType": "person", "observations": [" ", {"text": "Lost"}]},
        {"type": "relation", "from": "Ann_Silva", "relationType": "knows"},
    )
    report = import_source(store, write(tmp_path / "memory.jsonl", text))
    assert report.created == 2
    said = reasons(report)
    assert "neither an entity with a name and observations nor a relation" in said
    assert said.count("an observation about Ben without text") == 2
    assert "a relation without from, relationType or to" in said


def test_a_chat_that_quotes_calls_of_the_server_memory_remains_a_chat(
    store: ChunkStore, tmp_path: Path
) -> None:
    call = {"entities": [{"name": "Ann", "entityType": "person", "observations": ["Speaks Portuguese"]}]}
    text = lines({"type": "entity", "role": "user", "content": "Remember that Ann speaks it.", "input": call})
    report = import_source(store, write(tmp_path / "chat.jsonl", text))
    assert "knowledge-graph" not in report.formats
    assert [chunk.content for chunk in store.iter_chunks()] == ["User: Remember that Ann speaks it."]


# --- LangGraph -------------------------------------------------------------------------------------


def test_items_of_a_langgraph_store_whatever_their_values_are(store: ChunkStore, tmp_path: Path) -> None:
    def item(key: str, value: Any, **more: Any) -> dict[str, Any]:
        return {
            "namespace": ["memories", "ann"], "key": key, "value": value, "score": None,
            "created_at": "2026-03-02T10:00:00+00:00", "updated_at": "2026-03-03T10:00:00+00:00", **more,
        }  # fmt: skip

    items = [
        item("a", {"text": "Ann prefers trains."}),
        item("b", {"kind": "Memory", "content": {"content": "Ann lives in Porto."}}),
        item("c", {"likes": ["tea"], "age": 40}),
        item("d", {}),
        {"namespace": "memories", "key": "e", "value": {"text": "no path"}},
    ]
    for file in (
        write(tmp_path / "store.json", json.dumps(items)),
        write(tmp_path / "s.jsonl", lines(*items)),
    ):
        report = import_source(store, file)
        assert (report.formats, report.created + report.known, report.problem_count) == (
            {"langgraph": 1},
            3,
            2,
        )
    found = by_text(store)
    assert set(found) == {"Ann prefers trains.", "Ann lives in Porto.", '{"likes":["tea"],"age":40}'}
    about = found["Ann lives in Porto."].metadata
    assert about.extra == {"namespace": "memories/ann", "key": "b"}
    assert (about.created_at[:10], about.modified_at[:10]) == ("2026-03-02", "2026-03-03")


# --- Claude and Notion -----------------------------------------------------------------------------


def test_an_export_of_claude_brings_its_memory_and_projects_along(store: ChunkStore, tmp_path: Path) -> None:
    memory = {
        "conversations_memory": "**Work**\n\nAnn is a carpenter.", "project_memories": {"p1": "The boat is blue."},
        "account_uuid": "u1",
    }  # fmt: skip
    project = {
        "uuid": "p1", "name": "Boat", "description": "", "is_private": True, "prompt_template": "Use metric units.",
        "docs": [{"uuid": "d1", "filename": "spec.md", "content": "The boat is nine metres long."}],
        "created_at": "2026-03-02T10:00:00Z",
    }  # fmt: skip
    export = tmp_path / "export.zip"
    with zipfile.ZipFile(export, "w") as archive:
        archive.writestr("memories.json", json.dumps([memory]))
        archive.writestr("projects/p1.json", json.dumps(project))
    for _ in range(2):
        report = import_source(store, export, again=True)
        assert (report.formats, reasons(report)) == ({"claude-memory": 2}, "")
    texts = {chunk.content: chunk.metadata.conversation_id for chunk in store.iter_chunks()}
    assert texts == {
        "**Work**\n\nAnn is a carpenter.": "claude-memory:u1",
        "The boat is blue.": "claude-project:p1",
        "# Boat\n\nUse metric units.": "claude-project:p1",
        "The boat is nine metres long.": "claude-project:p1",
    }


def test_an_archive_in_an_archive_is_read_as_notion_packs_its_exports(
    store: ChunkStore, tmp_path: Path
) -> None:
    def packed(files: dict[str, bytes]) -> bytes:
        made = io.BytesIO()
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                archive.writestr(name, data)
        return made.getvalue()

    page = packed(
        {
            "Wiki 0123abcd/Page 4567cdef.md": b"# Keys\n\nThe key hangs behind the clock.",
            "pic.png": b"\x89PNG",
        }
    )
    deeper = packed({"within.zip": page, "../out.md": b"outside"})
    files = {
        "Part-1.zip": page, "Part-2.zip": deeper, "damaged.zip": page[:-30], "other.zip": b"PK\x03\x04",
        "huge.zip": packed({"zeros.md": b"\0" * 60_000_000}),
    }  # fmt: skip
    export = tmp_path / "Export.zip"
    export.write_bytes(packed(files))
    report = import_source(store, export)
    assert [chunk.content for chunk in store.iter_chunks()] == ["# Keys\n\nThe key hangs behind the clock."]
    problems = reasons(report)
    for expected in (
        "within.zip: an archive within an archive", "../out.md: a name that leads out of the archive",
        "damaged.zip: not a valid zip archive", "other.zip: not a valid zip archive",
        "zeros.md: unpacks to 60,000,000 bytes",
    ):  # fmt: skip
        assert expected in problems, problems


# --- Zep and Graphiti ------------------------------------------------------------------------------

EDGE = {
    "uuid": "e1", "group_id": "g", "source_node_uuid": "n1", "target_node_uuid": "n2", "name": "WORKS_AT",
    "fact": "Kendra works at Adidas.", "episodes": ["p1"], "created_at": "2025-06-02T00:00:00Z",
    "valid_at": "2025-06-01T00:00:00Z", "invalid_at": None, "expired_at": None, "attributes": {},
}  # fmt: skip
NODE = {
    "uuid": "n1", "name": "Kendra", "group_id": "g", "labels": ["Entity", "Person"], "summary": "A runner.",
    "created_at": "2025-06-02T00:00:00Z", "attributes": {},
}  # fmt: skip
EPISODE = {
    "uuid": "p1", "content": "I started at Adidas.", "source": "message", "source_description": "chat",
    "role": "Kendra", "role_type": "user", "thread_id": "t1", "created_at": "2025-06-01T10:00:00Z", "processed": True,
}  # fmt: skip


def test_a_graph_gives_facts_with_their_period_entities_and_episodes(
    store: ChunkStore, tmp_path: Path
) -> None:
    graph = {
        "nodes": [NODE, {**NODE, "uuid": "n2", "name": "Adidas", "summary": ""}],
        "edges": [EDGE],
        "episodes": [EPISODE],
    }
    file = write(tmp_path / "graph.json", graph)
    report = import_source(store, file)
    assert (report.formats, reasons(report)) == ({"zep": 1}, "")
    found = by_text(store)
    fact = found["Kendra works at Adidas."].metadata
    assert (fact.valid_from, fact.valid_to) == ("2025-06-01T00:00:00.000000Z", None)
    assert fact.extra == {"relation": "WORKS_AT", "group_id": "g"}
    assert found["Kendra: A runner."].tags == ["Person"]
    said = found["Kendra: I started at Adidas."].metadata
    assert (said.conversation_id, said.occurred_at) == ("t1", "2025-06-01T10:00:00.000000Z")
    # The graph ends a fact later: the same text gets its end.
    write(file, {**graph, "edges": [{**EDGE, "invalid_at": "2025-09-01T00:00:00Z"}]})
    again = import_source(store, file)
    assert (again.created, again.updated) == (0, 1)
    ended = by_text(store)["Kendra works at Adidas."].metadata
    assert ended.valid_to == "2025-09-01T00:00:00.000000Z"


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("edges.json", [EDGE]),
        ("page.json", {"items": [{**EDGE, "graph_uuid": "x"}], "next_cursor": None}),
        ("facts.json", {"message": "Facts retrieved successfully", "facts": [EDGE]}),
        ("edges.jsonl", lines(EDGE)),
        (
            "neo4j.jsonl",
            lines({
                "type": "relationship", "id": "4", "label": "RELATES_TO", "start": {"id": "0"}, "end": {"id": "1"},
                "properties": {**EDGE, "created_at": "2025-06-02T00:00:00Z[UTC]"},
            }),
        ),
    ],
)  # fmt: skip
def test_facts_are_read_in_every_shape_that_gives_them(
    store: ChunkStore, tmp_path: Path, name: str, shape: Any
) -> None:
    report = import_source(store, write(tmp_path / name, shape))
    assert (report.formats, reasons(report)) == ({"zep": 1}, "")
    (chunk,) = store.iter_chunks()
    assert chunk.content == "Kendra works at Adidas."
    assert chunk.metadata.created_at == "2025-06-02T00:00:00.000000Z"


def test_times_that_contradict_each_other_and_entries_without_text(store: ChunkStore, tmp_path: Path) -> None:
    entries = [
        {**EDGE, "invalid_at": "2020-01-01T00:00:00Z"},
        {**EDGE, "uuid": "e2", "fact": " "},
        {**EDGE, "uuid": "e3", "fact": 7},
        {**EPISODE, "content": ""},
        {"uuid": "m", "source_node_uuid": "a", "target_node_uuid": "b"},
        {"strange": 1},
    ]
    report = import_source(store, write(tmp_path / "graph.json", entries))
    (chunk,) = store.iter_chunks()
    assert (chunk.metadata.valid_from, chunk.metadata.valid_to) == (None, "2020-01-01T00:00:00.000000Z")
    assert report.problem_count == 4


# --- Letta -----------------------------------------------------------------------------------------


def said(role: str, text: str | None, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}] if text is not None else []
    return {
        "role": role,
        "content": content,
        "created_at": "2025-06-01T10:00:00Z",
        "tool_calls": None,
        **more,
    }


def sent(text: str) -> dict[str, Any]:
    return {
        "id": "c",
        "type": "function",
        "function": {"name": "send_message", "arguments": json.dumps({"message": text})},
    }


CONVERSATION = [
    said("system", "You are Keeper."),
    said("user", json.dumps({"type": "user_message", "message": "Where is the key?", "time": "10:00"})),
    said("assistant", "They want the key.", tool_calls=[sent("Behind the clock.")]),
    said("tool", '{"status": "OK"}', tool_call_id="c"),
    said("user", json.dumps({"type": "heartbeat", "reason": "continue", "time": "10:01"})),
    said("user", '{"json": "that a person pasted"}'),
    said("assistant", "Thanks."),
]


@pytest.mark.parametrize("version", [1, 2])
def test_an_agent_file_gives_blocks_files_and_what_was_said(
    store: ChunkStore, tmp_path: Path, version: int
) -> None:
    block = {
        "id": "block-0",
        "label": "human",
        "value": "Name: Ann. Repairs boats.",
        "description": "the user",
    }
    empty = {**block, "id": "block-1", "label": "persona", "value": ""}
    if version == 1:
        agent: dict[str, Any] = {
            "agent_type": "memgpt_agent", "core_memory": [block, empty], "messages": CONVERSATION, "name": "keeper",
            "system": "You are Keeper.", "tools": [{"name": "send_message", "source_code": "secret"}], "version": "0.6",
        }  # fmt: skip
    else:
        agent = {
            "agents": [{"id": "agent-0", "name": "keeper", "system": "You are Keeper.", "messages": CONVERSATION}],
            "groups": [], "blocks": [block, empty],
            "files": [{"id": "file-0", "file_name": "tides.txt", "content": "High tide is at noon."}],
            "sources": [], "tools": [{"id": "tool-0", "source_code": "secret"}], "mcp_servers": [],
        }  # fmt: skip
    report = import_source(store, write(tmp_path / "keeper.af", agent))
    assert (report.formats, reasons(report)) == ({"letta": 1}, "")
    found = by_text(store)
    assert found["Name: Ann. Repairs boats."].tags == ["human"]
    assert ("High tide is at noon." in found) == (version == 2)
    talk = "\n".join(text for text in found if text.startswith("User:"))
    for line in (
        "User: Where is the key?",
        "Assistant: Behind the clock.",
        "Assistant: Thanks.",
        "a person pasted",
    ):
        assert line in talk
    everything = "\n".join(found)
    for left_out in ("They want the key", "You are Keeper", "heartbeat", "secret", "status"):
        assert left_out not in everything
    changed = json.loads((tmp_path / "keeper.af").read_text())
    changed["core_memory" if version == 1 else "blocks"][0]["value"] = "Name: Ann. Builds boats."
    import_source(store, write(tmp_path / "keeper.af", changed))
    assert {"Name: Ann. Builds boats."} <= set(by_text(store))
    assert "Name: Ann. Repairs boats." not in by_text(store)


def test_a_list_of_agents_of_letta(store: ChunkStore, tmp_path: Path) -> None:
    agents = [
        {
            "agent_type": "memgpt_agent", "name": name,
            "core_memory": [{"label": "human", "value": f"{name} repairs boats."}],
            "messages": [said("user", f"I am {name}.")],
        }
        for name in ("Ann", "Ben")
    ]  # fmt: skip
    report = import_source(store, write(tmp_path / "agents.json", [*agents, {"file_name": "tides.txt"}]))
    assert report.formats == {"letta": 1}
    assert "entry 3: the export lacks the content of the file tides.txt" in reasons(report)
    assert set(by_text(store)) == {
        "Ann repairs boats.", "Ben repairs boats.", "User: I am Ann.", "User: I am Ben.",
    }  # fmt: skip


def test_archival_memory_of_letta(store: ChunkStore, tmp_path: Path) -> None:
    passage = {
        "id": "passage-1", "text": "Ann's boat is the Petrel.", "archive_id": "archive-1", "tags": ["boats"],
        "created_at": "2025-06-01T10:00:00+00:00", "metadata": {}, "is_deleted": False, "organization_id": "org",
    }  # fmt: skip
    entries = [
        passage,
        {**passage, "id": "passage-2", "text": ""},
        {**passage, "id": "passage-3", "is_deleted": True},
    ]
    report = import_source(store, write(tmp_path / "memories.json", entries))
    (chunk,) = store.iter_chunks()
    assert (chunk.content, chunk.tags) == ("Ann's boat is the Petrel.", ["boats"])
    assert (report.formats, report.problem_count) == ({"letta": 1}, 1)


# --- Hindsight -------------------------------------------------------------------------------------


def test_the_archive_of_a_hindsight_bank(store: ChunkStore, tmp_path: Path) -> None:
    fact = {
        "text": "Alice works at Google.", "fact_type": "world", "context": "career",
        "occurred_start": "2024-03-15T00:00:00Z",
        "mentioned_at": "2024-03-20T00:00:00Z", "tags": ["user:alice"], "entities": ["Alice", "Google"],
        "metadata": {"k": "v"},
    }  # fmt: skip
    document = {
        "id": "doc/1", "original_text": "Alice (2024-03-15): I work at Google now.", "tags": ["career"], "chunks": [],
        "created_at": "2024-03-20T00:00:00Z", "retain_params": {}, "facts": [fact, {"text": None}, 7],
    }  # fmt: skip
    observation = {
        "text": "Alice is an engineer.",
        "proof_count": 2,
        "sources": [{"document_id": "doc/1", "fact_index": 0}],
    }
    model = {"id": "mm", "bank_id": "b", "name": "Careers", "content": "Alice went to Google.", "tags": []}
    with zipfile.ZipFile(tmp_path / "bank.zip", "w") as packed:
        packed.writestr("documents/000000.json", json.dumps(document, indent=2))
        packed.writestr("observations.json", json.dumps([observation]))
        packed.writestr("mental_models.json", json.dumps([model]))
        packed.writestr("manifest.json", json.dumps({"schema_version": 1, "source_bank_id": "b"}))
    report = import_source(store, tmp_path / "bank.zip")
    assert report.formats == {"hindsight": 3}
    assert report.problem_count == 2
    found = by_text(store)
    assert set(found) == {
        "Alice (2024-03-15): I work at Google now.", "Alice works at Google.", "Alice is an engineer.",
        "Alice went to Google.",
    }  # fmt: skip
    chunk = found["Alice works at Google."]
    assert chunk.tags == ["career", "user:alice"]
    assert chunk.metadata.conversation_id == "doc/1"
    assert chunk.metadata.occurred_at == "2024-03-15T00:00:00.000000Z"
    assert chunk.metadata.extra == {
        "k": "v", "fact_type": "world", "context": "career", "entities": ["Alice", "Google"],
    }  # fmt: skip
    assert import_source(store, tmp_path / "bank.zip", again=True).created == 0


def test_a_list_of_hindsight_memories(store: ChunkStore, tmp_path: Path) -> None:
    item = {
        "id": "u1", "text": "Bob likes tea.", "context": "", "date": "2024-05-01", "fact_type": "experience",
        "entities": "Bob, tea", "tags": [], "chunk_id": None,
    }  # fmt: skip
    report = import_source(
        store, write(tmp_path / "list.json", {"items": [item], "total": 1, "limit": 100, "offset": 0})
    )
    assert (report.formats, reasons(report)) == ({"hindsight": 1}, "")
    (chunk,) = store.iter_chunks()
    assert (chunk.content, chunk.metadata.extra["entities"]) == ("Bob likes tea.", ["Bob", "tea"])


def test_a_document_of_hindsight_whose_text_is_in_its_chunks(store: ChunkStore, tmp_path: Path) -> None:
    document = {
        "id": "doc", "original_text": "", "chunks": [{"chunk_text": "First part."}, {"chunk_text": "Second part."}, 3],
        "facts": [], "created_at": "2024-03-20T00:00:00Z",
    }  # fmt: skip
    trip = {"id": "f", "text": "Ann sailed.", "occurred_start": "2024-01-01", "occurred_end": "2024-01-03"}
    entries = [document, trip, {"id": "e", "original_text": ""}, {"name": "x", "content": ""}, {"q": 1}]
    report = import_source(store, write(tmp_path / "bank.json", entries))
    assert report.formats == {"hindsight": 1}
    for number, reason in (
        (3, "a document without text and facts"),
        (4, "a page without content"),
        (5, "neither a document nor a memory nor a mental model"),
    ):
        assert f"entry {number}: {reason}" in reasons(report)
    found = by_text(store)
    assert set(found) == {"First part.\n\nSecond part.", "Ann sailed."}
    assert found["Ann sailed."].metadata.extra == {"occurred_end": "2024-01-03T00:00:00.000000Z"}


def test_a_page_of_hindsight_that_was_edited_in_the_memory_is_not_archived(
    store: ChunkStore, tmp_path: Path
) -> None:
    def imported(text: str) -> None:
        page = {"id": "mm", "bank_id": "b", "name": "Bob", "content": text}
        import_source(store, write(tmp_path / "pages.json", [page]), format="hindsight")

    imported("Bob likes tea.")
    imported("Bob likes milk.")
    assert set(by_text(store)) == {"Bob likes milk."}
    (chunk,) = store.iter_chunks()
    store.update_chunk(chunk.id, "Bob likes warm milk.")
    imported("Bob likes coffee.")
    assert set(by_text(store)) == {"Bob likes warm milk.", "Bob likes coffee."}


# --- folders of agents -----------------------------------------------------------------------------


def test_the_folder_of_claudes_memory_tool(store: ChunkStore, tmp_path: Path) -> None:
    root = tmp_path / "agent" / "memories"
    write(
        root / "customer_service_guidelines.xml", "<guidelines><rule>Answer within a day.</rule></guidelines>"
    )
    write(root / "projects/petrel.md", "The Petrel is moored in the north basin.")
    write(root / "state.bin", "\0\1")
    for source in (root, tmp_path / "agent"):
        report = import_source(store, source, dry_run=True)
        assert report.formats == {"memory-folder": 1, "notes": 1}, source
    import_source(store, root)
    assert any("Answer within a day" in text for text in by_text(store))
    assert report.passed_over == 1
    write(tmp_path / "other/page.xml", "<page>not a memory</page>")
    assert import_source(store, tmp_path / "other").created == 0


RULES = """# Rules

<!-- for people
who maintain this file -->
Use tabs. <!-- kept: within a line -->

```html
<!-- kept: code -->
```

@/etc/hostname
@../outside.md
"""


def test_instructions_lose_their_comments_and_import_no_other_file(store: ChunkStore, tmp_path: Path) -> None:
    write(tmp_path / "outside.md", "outside")
    file = write(tmp_path / "project/CLAUDE.md", RULES)
    report = import_source(store, file)
    assert (report.formats, reasons(report)) == ({"instructions": 1}, "")
    (chunk,) = store.iter_chunks()
    assert chunk.tags == ["instructions"]
    assert "maintain" not in chunk.content and "outside\n" not in chunk.content
    for kept in ("kept: within a line", "kept: code", "@/etc/hostname", "@../outside.md"):
        assert kept in chunk.content
    write(file, "# Rules\n\nUse spaces.")
    import_source(store, file)
    assert ["Use spaces" in one.content for one in store.iter_chunks()] == [True]
    write(file, "<!-- nothing\n")
    assert "empty but for comments" in reasons(import_source(store, file))


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.local.md", "sub/GEMINI.md"])
def test_instructions_in_a_folder_are_kept_in_step(store: ChunkStore, tmp_path: Path, name: str) -> None:
    file = write(tmp_path / "project" / name, RULES)
    import_source(store, tmp_path / "project")
    (chunk,) = store.iter_chunks()
    assert chunk.tags == ["instructions"] and "maintain" not in chunk.content
    assert sync_folder(store, tmp_path / "project").unchanged == 1
    file.unlink()
    assert sync_folder(store, tmp_path / "project", archive_all=True).archived == [name]
    assert list(store.iter_chunks()) == []
