"""Every format of other tools and older versions, in the shape its documents state, broken ones included."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rlm_mem.interchange import import_source, places
from rlm_mem.interchange.detection import Detector
from rlm_mem.interchange.format import FileHead
from rlm_mem.interchange.formats.chats import Parts
from rlm_mem.interchange.reading import SourceFile
from rlm_mem.interchange.records import ChatMessage
from rlm_mem.interchange.report import ImportReport
from rlm_mem.store.core.chunk_store import ChunkStore
from tests.typed import present

from .conftest import Open


def write(path: Path, data: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def lines(*entries: Any) -> str:
    return "".join((entry if isinstance(entry, str) else json.dumps(entry)) + "\n" for entry in entries)


def contents(store: ChunkStore, **filters: Any) -> list[str]:
    return [chunk.content for chunk in store.iter_chunks(**filters)]


def reasons(report: ImportReport) -> str:
    return "\n".join(f"{problem.where}: {problem.reason}" for problem in report.problems)


# --- chunk files -----------------------------------------------------------------------------------

OLD = {
    "id": "chunk-2026-02-10-a1b2c3d4",
    "content": "User decided to use RLM architecture instead of RAG.",
    "tokens": 145,
    "type": "decision",
    "metadata": {
        "created": "2026-02-10T21:37:00Z", "conversation_id": "conv-abc123", "source": "interaction",
        "confidence": 0.95, "access_count": 3, "last_accessed": "2026-02-10T22:15:00.123456Z",
    },
    "links": {
        "context_of": ["conv-abc123"], "follows": ["chunk-2026-02-10-x9y8z7w6"],
        "related_to": ["chunk-2026-02-09-p4q5r6s7"], "supports": [], "contradicts": [],
    },
    "tags": ["architecture", "rlm", "decision"],
}  # fmt: skip


def test_chunks_of_schema_1_keep_ids_times_counts_links_and_archive(
    store: ChunkStore, tmp_path: Path
) -> None:
    root = tmp_path / "old" / "memory"
    write(root / "chunks/2026-02/chunk-2026-02-10-a1b2c3d4.json", OLD)
    gone = {**OLD, "id": "chunk-2026-02-09-p4q5r6s7", "content": "Dropped.", "links": {}}
    write(root / "archive/chunk-2026-02-09-p4q5r6s7.json", gone)
    write(root / "index/metadata_index.json", {"chunk-2026-02-10-a1b2c3d4": {}})
    report = import_source(store, tmp_path / "old")
    assert reasons(report) == ""
    chunk = store.get_chunk("chunk-2026-02-10-a1b2c3d4", track=False)
    assert chunk is not None
    assert (chunk.tokens, chunk.type, chunk.tags) == (145, "decision", OLD["tags"])
    assert chunk.metadata.created_at == "2026-02-10T21:37:00.000000Z"
    assert (chunk.metadata.access_count, chunk.metadata.confidence) == (3, 0.95)
    assert [(link.type, link.target_id) for link in chunk.links] == [
        ("follows", "chunk-2026-02-10-x9y8z7w6"),
        ("related_to", "chunk-2026-02-09-p4q5r6s7"),
    ]
    assert store.list_chunks(archived=True) == ["chunk-2026-02-09-p4q5r6s7"]
    assert report.passed_over == 1


def test_the_same_number_on_two_days_is_two_chunks_and_links_stay_within_their_day(
    store: ChunkStore, tmp_path: Path
) -> None:
    for day, other in (("2026-02-10", "chunk-002"), ("2026-02-11", "chunk-002")):
        for name in ("chunk-001", "chunk-002"):
            links = [
                {"target_id": other, "type": "supports", "strength": 0.8, "created_at": f"{day}T10:00:00"}
            ]
            data = {
                "id": name, "content": f"{name} of {day}", "tokens": 4, "type": "fact",
                "metadata": {"created_at": f"{day}T09:00:00", "accessed_at": f"{day}T09:30:00"},
                "links": links if name == "chunk-001" else [], "tags": [],
            }  # fmt: skip
            write(tmp_path / "m" / day / f"{name}.json", data)
        write(tmp_path / "m" / day / "index.json", {"chunks": []})
    write(tmp_path / "m/tags/a.json", ["chunk-001"])
    write(tmp_path / "m/links/graph.json", {})
    report = import_source(store, tmp_path / "m")
    assert (report.created, reasons(report)) == (4, "")
    first = store.get_chunk("chunk-2026-02-11-001")
    assert first is not None
    assert first.content == "chunk-001 of 2026-02-11"
    assert first.links[0].target_id == "chunk-2026-02-11-002"
    assert import_source(store, tmp_path / "m", again=True).known == 4


def test_the_shape_with_type_and_tags_in_the_metadata(store: ChunkStore, tmp_path: Path) -> None:
    data = {
        "id": "chunk-uuid", "content": "Likes tea.",
        "metadata": {"created": "2026-02-10T00:00:00", "type": "preference", "tags": ["tea"], "token_count": 3},
        "links": {"outgoing": [{"target": "mem 9", "type": "supports"}], "incoming": []},
    }  # fmt: skip
    import_source(store, write(tmp_path / "chunk-uuid.json", data))
    chunk = store.get_chunk("chunk-uuid")
    assert chunk is not None
    assert (chunk.type, chunk.tags, chunk.tokens) == ("preference", ["tea"], 3)
    assert chunk.links[0].target_id.startswith("chunk-mem-9-")


def test_ids_and_times_that_are_not_valid_are_mapped_the_same_each_time(
    store: ChunkStore, tmp_path: Path
) -> None:
    data = {**OLD, "id": "Memory #7", "metadata": {"created": "last week"}, "links": {}}
    file = write(tmp_path / "chunk-7.json", data)
    report = import_source(store, file)
    (mapped,) = report.mapped.values()
    chunk = store.get_chunk(mapped)
    assert chunk is not None
    assert chunk.metadata.extra["original_created_at"] == "last week"
    assert import_source(store, file, again=True).created == 0


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, ""),
        ("[1]", ""),
        ({"id": "chunk-a"}, "content"),
        ({**OLD, "content": 7}, "content must be text"),
        ({**OLD, "metadata": {"created": "2026-01-01", "confidence": 9}}, "confidence"),
        ({**OLD, "links": {"supports": "x"}}, "list of chunk ids"),
        ({**OLD, "content": "a\ud800"}, "surrogate"),
    ],
)
def test_a_broken_chunk_is_reported_and_the_next_one_read(
    store: ChunkStore, tmp_path: Path, data: Any, reason: str
) -> None:
    write(tmp_path / "s/chunk-0.json", data)
    write(tmp_path / "s/chunk-1.json", {**OLD, "links": {}})
    report = import_source(store, tmp_path / "s")
    assert report.created == 1
    assert report.problem_count + report.passed_over == 1
    assert reason in reasons(report)


# --- layered ---------------------------------------------------------------------------------------


def layered(**fields: Any) -> dict[str, Any]:
    return {
        "id": "m1", "created_at": "2026-01-05T10:00:00Z", "scope": "project_agent", "entry_type": "decision",
        "content": "Use SQLite.", "project_id": "boats", "agent_id": "coder", **fields,
    }  # fmt: skip


def test_layered_memories_take_the_last_line_recover_links_and_map_scopes(
    store: ChunkStore, tmp_path: Path
) -> None:
    write(
        tmp_path / "p/.agents/memory/agents/coder/memory.jsonl",
        lines(
            layered(links={"supports": ["m2"], "related_to": ["m3"]}),
            layered(id="m2", content="Files are simple.", entry_type="insight", expires_at="2026-12-31"),
            "not json",
            layered(id="m4", agent_id=None),
            layered(id="m5", scope="galaxy"),
            {"id": "m6"},
            layered(
                content="Use SQLite with WAL.", confidence=0.9, access_count=4, updated="2026-01-06T00:00:00Z"
            ),
        ),
    )
    write(tmp_path / "p/.agents/memory/global/memory.jsonl", lines(layered(scope="project_global", id="m1")))
    write(tmp_path / "p/source.md", "# not a memory")
    report = import_source(store, tmp_path / "p")
    assert report.namespaces == {"project/boats/agent/coder": 2, "project/boats": 1}
    assert report.problem_count == 4
    assert "agent_id" in reasons(report)
    assert "galaxy" in reasons(report)
    by_text = {chunk.content: chunk for chunk in store.iter_chunks(namespace="project/boats/agent/coder")}
    chunk, other = by_text["Use SQLite with WAL."], by_text["Files are simple."]
    assert [(link.type, link.target_id) for link in chunk.links] == [("supports", other.id)]
    assert (chunk.type, chunk.metadata.confidence, chunk.metadata.access_count) == ("decision", 0.9, 4)
    assert chunk.metadata.source == "unknown"
    assert other.type == "note"
    assert other.metadata.extra["entry_type"] == "insight"
    assert other.metadata.valid_to == "2026-12-31T00:00:00.000000Z"
    assert other.metadata.confidence == 0.7
    assert contents(store, namespace="project/boats") == ["Use SQLite."]


def test_user_scopes_from_the_home_folder(store: ChunkStore, tmp_path: Path) -> None:
    write(
        tmp_path / "home/.agents/memory/global/memory.jsonl",
        lines(layered(scope="user_global"), layered(scope="user_agent", id="m9")),
    )
    report = import_source(store, tmp_path / "home")
    assert report.namespaces == {"user": 1, "user/agent/coder": 1}


# --- MERIDIAN --------------------------------------------------------------------------------------


def meridian(title: str, body: str, head: str = "**Category:** past\n**Tags:** [boats, keys]") -> str:
    return f"# {title}\n\n**Created:** 2026-01-05 09:30\n{head}\n\n---\n\n{body}\n"


def test_meridian_memories_and_what_supersedes_them(store: ChunkStore, tmp_path: Path) -> None:
    root = tmp_path / "brain/memory/allmemories"
    write(root / "boat_key.md", meridian("Boat key", "The key hangs behind the clock."))
    write(
        root / "boat_key_old.md",
        meridian("Boat key", "DEPRECATED: See boat_key.md\nThe key is under the mat."),
    )
    write(root / "empty.md", meridian("Empty", ""))
    report = import_source(store, tmp_path / "brain")
    assert report.formats == {"meridian": 3}
    assert "without text" in reasons(report)
    new, old = sorted(store.iter_chunks(), key=lambda chunk: len(chunk.content))
    assert new.metadata.created_at == "2026-01-05T09:30:00.000000Z"
    assert new.tags == ["boats", "keys"]
    assert new.metadata.extra["category"] == "past"
    assert old.metadata.superseded_by == new.id
    write(root / "boat_key.md", meridian("Boat key", "The key hangs behind the new clock."))
    assert import_source(store, tmp_path / "brain").updated == 1
    assert present(store.get_chunk(new.id)).content == "The key hangs behind the new clock."


def test_a_long_meridian_memory_becomes_linked_chunks(store: ChunkStore, tmp_path: Path) -> None:
    body = "\n\n".join(f"Paragraph {number} tells about boats, keys and clocks. " * 20 for number in range(6))
    import_source(store, write(tmp_path / "long_one.md", meridian("Long", body)))
    found = list(store.iter_chunks())
    assert len(found) > 1
    ids = {chunk.id for chunk in found}
    assert all(link.target_id in ids for chunk in found for link in chunk.links)
    assert max(chunk.tokens for chunk in found) <= 500


def test_candidate_lists(store: ChunkStore, tmp_path: Path) -> None:
    text = (
        "Some words first.\n[MEMORY_CANDIDATES]\n"
        "1. tea_time.md — category: present — tags: [tea, time]\n---\nTea is at four.\n\n"
        "2. coffee.md — category: past — tags: []\n---\nCoffee was at ten.\n"
        "3. nothing.md — category: past — tags: []\n---\n"
    )
    report = import_source(store, write(tmp_path / "candidates.md", text))
    assert contents(store) == ["Tea is at four.", "Coffee was at ten."]
    assert store.list_chunks(tags=["tea"])
    assert "nothing" in reasons(report)


@pytest.mark.local_only("look at files")
def test_persona_files_go_into_the_brain_and_replace_nothing(store: ChunkStore, tmp_path: Path) -> None:
    slider = "# HUMOR.md — Humor\n> Slider Range: 0% (dry) → 100% (silly)\n## Core Function\nJokes.\n## Default: 45%\n"
    mode = "# PIRATE.md — Pirate\n> Activated when: asked\n## Slider Adjustments\n| Slider | Adjustment | Reason |\n"
    write(tmp_path / "m/sliders/HUMOR.md", slider)
    write(tmp_path / "m/personalities/PIRATE.md", mode)
    own = store.base_path.parent / "sliders" / "HUMOR.md"
    write(own, "my own")
    report = import_source(store, tmp_path / "m")
    assert own.read_text() == "my own"
    assert (own.parents[1] / "personalities" / "PIRATE.md").read_text() == mode
    assert (report.persona_files, report.kept, report.created) == (1, 1, 0)


# --- chats -----------------------------------------------------------------------------------------


def chatgpt() -> dict[str, Any]:
    def node(key: str, parent: str | None, role: str, parts: list[Any], at: float | None) -> dict[str, Any]:
        content = {"content_type": "text", "parts": parts}
        return {
            "id": key, "parent": parent, "children": [],
            "message": {"id": key, "author": {"role": role}, "create_time": at, "content": content},
        }  # fmt: skip

    return {
        "title": "Boats", "create_time": 1767600000.0, "conversation_id": "conv-1", "current_node": "d",
        "mapping": {
            "root": {"id": "root", "message": None, "parent": None, "children": ["a"]},
            "a": node("a", "root", "system", ["You are helpful."], None),
            "b": node("b", "a", "user", ["Where is the key?", {"asset_pointer": "file://x"}], 1767600060.5),
            "c": node("c", "b", "assistant", ["An answer that was replaced."], 1767600070),
            "d": node("d", "b", "assistant", ["Behind the clock."], 1767600080),
        },
    }  # fmt: skip


def test_the_settings_beside_the_chats_of_an_export_are_no_problem(store: ChunkStore, tmp_path: Path) -> None:
    write(tmp_path / "export/a/conversations.json", [chatgpt()])
    write(tmp_path / "export/a/user.json", {"id": "u", "email": "ana@example.org"})
    write(tmp_path / "export/b/user.json", {"id": "u"})
    (tmp_path / "export/a/broken.json").write_text("{")
    report = import_source(store, tmp_path / "export")
    assert report.passed_over == 1
    assert sorted(Path(one.where).parts[-2:] for one in report.problems) == [
        ("a", "broken.json"), ("b", "user.json"),
    ]  # fmt: skip


def test_a_chatgpt_export_gives_what_was_seen_with_its_times(store: ChunkStore, tmp_path: Path) -> None:
    cyclic = {"title": "Loop", "id": "conv-2", "mapping": {"a": {"parent": "b"}, "b": {"parent": "a"}}}
    file = write(tmp_path / "conversations.json", [chatgpt(), cyclic, "junk"])
    report = import_source(store, file)
    assert report.formats == {"chatgpt": 1}
    (chunk,) = store.iter_chunks()
    assert chunk.content == "User: Where is the key?\nAssistant: Behind the clock."
    assert chunk.metadata.conversation_id == "conv-1"
    assert chunk.metadata.occurred_at == "2026-01-05T08:01:00.500000Z"
    assert chunk.metadata.extra["title"] == "Boats"
    assert chunk.metadata.source == "import"
    assert "entry 3" in reasons(report)


def test_a_claude_export_in_the_zip_archive_it_comes_in(store: ChunkStore, tmp_path: Path) -> None:
    talk = {
        "uuid": "u-1", "name": "Keys", "created_at": "2026-01-05T10:00:00Z",
        "chat_messages": [
            {"uuid": "1", "sender": "human", "text": "Which key?", "created_at": "2026-01-05T10:00:01Z",
             "content": [{"type": "text", "text": "Which key?"}], "attachments": [{"extracted_content": "A list."}]},
            {"uuid": "2", "sender": "assistant", "text": "The brass one.", "created_at": "nonsense"},
        ],
    }  # fmt: skip
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as packed:
        packed.writestr("conversations.json", json.dumps([talk]))
        packed.writestr("users.json", json.dumps([{"uuid": "me"}]))
    report = import_source(store, tmp_path / "data.zip")
    assert report.formats == {"claude": 1}
    assert contents(store) == ["User: Which key?\nA list.\nAssistant: The brass one."]


def test_claude_code_transcripts(store: ChunkStore, tmp_path: Path) -> None:
    def line(kind: str, content: Any, **more: Any) -> dict[str, Any]:
        return {
            "type": kind, "sessionId": "s-1", "uuid": "x", "timestamp": "2026-01-05T10:00:00.000Z", "cwd": "/boats",
            "message": {"role": kind, "content": content}, **more,
        }  # fmt: skip

    data = lines(
        {"type": "summary", "summary": "About tests"},
        line("user", "Fix the gate test."),
        line("user", "internal caveat", isMeta=True),
        line(
            "assistant",
            [{"type": "thinking", "thinking": "hmm"}, {"type": "text", "text": "It was the clock."}],
        ),
        line("assistant", [{"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}]),
        line("user", [{"type": "tool_result", "content": "file list"}]),
        '{"type": "user", "sessionId": ',
    )
    report = import_source(store, write(tmp_path / "s-1.jsonl", data))
    assert report.formats == {"claude-code": 1}
    (chunk,) = store.iter_chunks(conversation_id="s-1")
    assert chunk.content == "User: Fix the gate test.\nAssistant: It was the clock."
    assert "line 7" in reasons(report)


def test_plain_messages_in_lines_and_in_arrays(store: ChunkStore, tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "Tea or coffee?", "timestamp": 1767600000},
        {"role": "tool", "content": "noise"},
        {"role": "assistant", "content": "Tea.", "timestamp": "2026-01-05T10:00:00"},
    ]
    write(tmp_path / "a/chat.jsonl", "\ufeff" + lines(*messages, "{", [1], {"role": "user"}))
    write(
        tmp_path / "a/chat.json",
        {"version": 1, "messages": [{**m, "content": m["content"] + "!"} for m in messages]},
    )
    report = import_source(store, tmp_path / "a")
    assert set(contents(store)) == {
        "User: Tea or coffee?!\nAssistant: Tea.!",
        "User: Tea or coffee?\nAssistant: Tea.",
    }
    assert report.messages == 4
    assert report.problem_count == 3


def test_a_conversation_that_grew_adds_only_what_is_new(store: ChunkStore, tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": f"Message {number} about gate {number}. " * 12} for number in range(40)
    ]
    file = write(tmp_path / "chat.jsonl", lines(*said[:30]))
    import_source(store, file)
    before = set(store.list_chunks())
    write(file, lines(*said))
    report = import_source(store, file)
    after = set(store.list_chunks())
    assert len(before & after) >= len(before) - 1, "all but the last, which was incomplete"
    assert report.archived == len(before - after)
    assert "Message 39" in " ".join(contents(store))


def test_another_chat_in_a_file_of_the_same_name_replaces_nothing(store: ChunkStore, tmp_path: Path) -> None:
    for day in ("monday", "tuesday"):
        import_source(
            store, write(tmp_path / "chat.jsonl", lines({"role": "user", "content": f"It is {day}."}))
        )
    assert contents(store) == ["User: It is monday.", "User: It is tuesday."]


def test_several_conversations_in_one_file_stay_apart(store: ChunkStore, tmp_path: Path) -> None:
    said = [{"role": "user", "content": f"Said {n}.", "conversation_id": f"c{n % 2}"} for n in range(6)]
    import_source(store, write(tmp_path / "chat.jsonl", lines(*said)))
    assert {info.id for info in store.conversations()} == {"c0", "c1"}


# --- notes -----------------------------------------------------------------------------------------


def test_notes_keep_tags_title_and_date_of_their_frontmatter(store: ChunkStore, tmp_path: Path) -> None:
    write(
        tmp_path / "n/a.md",
        "---\ntitle: Keys\ntags: [boat, '#brass']\ndate: 2026-01-05\n---\nThe key is brass.\n",
    )
    write(tmp_path / "n/b.md", "---\n\nA rule, no frontmatter.\n")
    write(tmp_path / "n/c.md", "---\na: [\n---\nBroken YAML above.\n")
    write(tmp_path / "n/empty.txt", " \n")
    (tmp_path / "n/latin.txt").write_bytes(b"caf\xe9 du port")
    (tmp_path / "n/wide.txt").write_text("Gr\u00fc\u00dfe aus dem Hafen", encoding="utf-16")
    (tmp_path / "n/picture.png").write_bytes(b"\x89PNG")
    report = import_source(store, tmp_path / "n")
    (chunk,) = store.iter_chunks(tags=["brass"])
    assert chunk.content.strip() == "The key is brass."
    assert chunk.metadata.occurred_at == "2026-01-05T00:00:00.000000Z"
    assert chunk.metadata.extra["title"] == "Keys"
    assert "Grüße aus dem Hafen" in contents(store)
    assert "Broken YAML above." in " ".join(contents(store))
    assert {problem.where for problem in report.problems} == {"c.md", "empty.txt", "latin.txt"}
    assert report.passed_over == 1


def test_a_note_that_changed_replaces_what_it_was(store: ChunkStore, tmp_path: Path) -> None:
    file = write(tmp_path / "n/a.md", "The key is brass.")
    import_source(store, tmp_path / "n")
    file.write_text("The key is made of steel now.")
    report = import_source(store, tmp_path / "n")
    assert (report.created, report.superseded, report.archived) == (1, 1, 0)
    (old,) = store.iter_chunks(end_date=None, conversation_id=f"file:{file}", limit=1)
    new = store.get_chunk(str(old.metadata.superseded_by))
    assert (old.content, new and new.content) == ("The key is brass.", "The key is made of steel now.")


def test_a_mixed_folder_is_read_file_by_file(open_store: Open, tmp_path: Path) -> None:
    write(tmp_path / "x/note.md", "A note about gates.")
    write(tmp_path / "x/conversations.json", [chatgpt()])
    write(tmp_path / "x/chunk-a.json", OLD)
    write(tmp_path / "x/key.md", meridian("Key", "Behind the clock."))
    before = {path: path.read_bytes() for path in (tmp_path / "x").rglob("*") if path.is_file()}
    report = import_source(open_store(), tmp_path / "x")
    assert report.formats == {"notes": 1, "chatgpt": 1, "chunk-json": 1, "meridian": 1}
    assert {path: path.read_bytes() for path in (tmp_path / "x").rglob("*") if path.is_file()} == before


# --- which format reads a file ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("memory.jsonl", '{"id": "chunk-1", "content": "x", "metadata": {}}', "layered-jsonl"),
        ("a.jsonl", '{"id": "chunk-1", "content": "x", "metadata": {}}', "chunk-jsonl"),
        ("a.jsonl", '{"type": "summary"}\n{"parentUuid": null, "sessionId": "s", "mess', "claude-code"),
        ("a.jsonl", '{"role": "user", "content": "\\"sessionId\\": 1"}', "messages-jsonl"),
        ("a.json", '{"id": "x", "content": "y", "role": "user"}', "messages-json"),
        ("chunk-1.json", '{"role": "user"}', "chunk-json"),
        ("a.md", "---\ntitle: x\n---\n**Created:** 2026-01-01\n", "notes"),
        ("a.md", "[MEMORY_CANDIDATES]\n## Calibration Levels\n", "candidates"),
        ("a.md", "> Slider Range: 0-100\n**Category:** x\n", "persona"),
        ("index.json", '{"id": "x", "content": "y"}', None),
        ("log/a.jsonl", '{"role": "user", "content": "x"}', None),
        ("a.py", "**Created:** 2026-01-01\n", None),
    ],
)
def test_a_file_that_could_be_of_several_formats_is_read_by_the_surest(
    name: str, text: str, wanted: str | None
) -> None:
    found = Detector().detect(FileHead(name, text.encode()))
    assert (found.name if found else None) == wanted


@pytest.mark.parametrize(
    ("encoding", "expected", "problems"),
    [
        ("utf-8-sig", "Grüße aus dem Hafen", []),
        ("utf-16", "Grüße aus dem Hafen", []),
        ("latin-1", "Gr\ufffd\ufffde aus dem Hafen", ["characters that are not in UTF-8"]),
    ],
)
def test_json_of_another_encoding_is_read_or_said_to_be_damaged(
    store: ChunkStore, tmp_path: Path, encoding: str, expected: str, problems: list[str]
) -> None:
    messages = [
        {"role": "user", "content": "Grüße aus dem Hafen"},
        {"role": "user", "content": "x" * 300_000},
    ]
    text = json.dumps({"messages": messages}, ensure_ascii=False)
    (tmp_path / "chat.json").write_bytes(text.encode(encoding))
    report = import_source(store, tmp_path / "chat.json")
    stored = "\n".join(chunk.content for chunk in store.get_many(store.list_chunks()).values())
    assert expected in stored
    assert [one.reason[: len("characters that are not in UTF-8")] for one in report.problems] == problems


def test_an_empty_archive_is_said_to_be_empty(store: ChunkStore, tmp_path: Path) -> None:
    (tmp_path / "chat.zip").touch()
    assert [one.reason for one in import_source(store, tmp_path / "chat.zip").problems] == ["empty"]


def test_conversations_with_their_messages_in_arrays_and_in_lines(store: ChunkStore, tmp_path: Path) -> None:
    def talk(number: int, **fields: Any) -> dict[str, Any]:
        said = [
            {"role": "system", "content": "Be kind."}, {"role": "user", "content": f"Where is key {number}?"},
            "junk", {"role": "assistant", "content": {"parts": ["Behind the clock."]}},
        ]  # fmt: skip
        return {"title": f"Keys {number}", "created_at": "2026-01-05T10:00:00Z", "messages": said, **fields}

    import_source(store, write(tmp_path / "talks.json", [talk(1, id="talk 1"), talk(2)]))
    import_source(store, write(tmp_path / "talks.jsonl", lines(talk(3, id="talk 3"), talk(4))))
    found = {chunk.content: chunk.metadata for chunk in store.iter_chunks()}
    assert list(found) == [
        f"User: Where is key {number}?\nAssistant: Behind the clock." for number in range(1, 5)
    ]
    assert [one.conversation_id for one in found.values()] == [
        "talk 1", f"file:{tmp_path}/talks.json:Keys 2", "talk 3", f"file:{tmp_path}/talks.jsonl:Keys 4",
    ]  # fmt: skip
    assert {one.occurred_at for one in found.values()} == {"2026-01-05T10:00:00.000000Z"}


def test_layered_links_in_a_list(store: ChunkStore, tmp_path: Path) -> None:
    write(
        tmp_path / ".agents/memory/global/memory.jsonl",
        lines(
            layered(
                scope="user_global",
                links=[{"type": "supports", "target_id": "m2"}, {"target": "m3"}, "m2", 5],
            ),
            layered(
                scope="user_global", id="m2", content="Files are simple.", links={"extends": [{"id": "m3"}]}
            ),
            layered(scope="user_global", id="m3", content="Files are many."),
            layered(scope="user_global", id="m4", created_at="soon"),
            layered(scope="user_global", id="m5", confidence=7),
        ),
    )
    report = import_source(store, tmp_path)
    assert "line 4: created_at 'soon' is not a time" in reasons(report)
    assert "line 5: chunk-m5" in reasons(report) and report.problem_count == 2
    first, second, third = store.iter_chunks(namespace="user")
    assert [(link.type, link.target_id) for link in first.links] == [
        ("supports", second.id), ("related_to", third.id), ("related_to", second.id),
    ]  # fmt: skip
    assert [link.target_id for link in second.links] == [third.id]


def test_files_of_an_archive_that_are_locked_repeated_or_without_a_date(
    store: ChunkStore, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "notes.zip", "w") as packed:
        for name, text in (
            ("gate.md", "The gate is green."),
            ("boat.md", "The boat is blue."),
            ("lock.md", "Shut."),
        ):
            packed.writestr(name, text)
        packed.writestr(".git/config.md", "Of a tool.")
        with pytest.warns(UserWarning, match="Duplicate name"):
            packed.writestr("gate.md", "The gate is red.")
        packed.getinfo("lock.md").flag_bits |= 1
        packed.getinfo("boat.md").date_time = (1980, 0, 0, 0, 0, 0)
    report = import_source(store, tmp_path / "notes.zip")
    assert set(contents(store)) == {"The gate is green.", "The boat is blue."}
    assert sorted(f"{one.where}: {one.reason}" for one in report.problems) == [
        "gate.md: a repeated name in the archive: the first file is read", "lock.md: encrypted",
    ]  # fmt: skip


def test_a_source_of_too_many_files_is_said_to_be_one(
    store: ChunkStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_MAX_FILES", 2)
    for number in range(3):
        write(tmp_path / f"notes/{number}.md", f"Note {number}.")
    with zipfile.ZipFile(tmp_path / "notes.zip", "w") as packed:
        for number in range(3):
            packed.writestr(f"{number}.md", f"Packed note {number}.")
    assert "more than 2 files: the rest is not read" in reasons(import_source(store, tmp_path / "notes"))
    assert "more than 2 files: nothing is read" in reasons(import_source(store, tmp_path / "notes.zip"))
    assert contents(store) == ["Note 0.", "Note 1."]


def test_a_record_of_imports_that_was_written_anew_knows_every_file(
    store: ChunkStore, tmp_path: Path
) -> None:
    def said(name: str, text: str) -> Path:
        return write(tmp_path / name, {"messages": [{"role": "user", "content": text}]})

    first = said("first.json", "Tea?")
    assert import_source(store, first).created == 1
    (record,) = store.files.names("imports")
    store.files.write(record, (store.files.read(record) or b"") * 1200)
    second = said("second.json", "Milk?")
    assert import_source(store, second).created == 1
    assert len((store.files.read(record) or b"").splitlines()) < 10
    assert [import_source(store, file).unchanged_files for file in (first, second)] == [1, 1]


def test_a_very_long_message_is_split_into_parts_that_join_to_it() -> None:
    text = "".join(f"{number:07}," for number in range(75_001))
    parts = Parts(cast("SourceFile", SimpleNamespace(conversation="talk", max_text=10_000_000)))
    found = [*parts.add("talk", ChatMessage("User", text), "talk.jsonl"), *parts.end()]
    assert "".join(one.messages[0].text for one in found) == text
    assert [len(one.messages[0].text) for one in found] == [200_000, 200_000, 200_000, 8]
