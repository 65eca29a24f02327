"""Tools, resources and prompts, through the official client in both ages of the protocol."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from rlm_mem.mcp import server
from rlm_mem.mcp.server import McpServer
from rlm_mem.mcp.service import Service, input_schema, output_schema, plain, tools_for
from rlm_mem.operations.context import OpenMemory, Settings
from rlm_mem.operations.links import TagCount
from rlm_mem.sandbox.engine import Stop
from rlm_mem.text.tokens import count_tokens
from tests.continuum.conftest import learning, rewrite
from tests.server.conftest import Ask, drive_all, text_in

CORE = {"usage_count": 100, "success_count": 99, "success_rate": 0.99, "confidence_score": 0.995}

TEN = {
    "remember", "recall", "recall_open", "recall_exec", "recall_finish", "search", "get", "forget", "link", "status",
}  # fmt: skip


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_official_client_drives_every_tool(served: McpServer, mode: str) -> None:
    async def go() -> set[str]:
        async with Client(served.protocol, mode=mode) as client:
            return await drive_all(client)

    left_out = set(served.service.tools) - asyncio.run(go())
    assert not left_out, "add a call to `drive_all` in tests/server/conftest.py"


def test_ten_tools_are_offered_by_default_and_in_the_same_order_each_time() -> None:
    names = [tool.name for tool in tools_for()]
    assert set(names) == TEN
    assert len(names) == 10
    assert names == [tool.name for tool in tools_for()]
    assert [tool.name for tool in tools_for(every=True)][:10] == names


def test_a_read_only_server_offers_nothing_that_changes_a_memory(tmp_path: Path) -> None:
    Service(OpenMemory(Settings(brain=tmp_path))).memory.close()
    service = Service(OpenMemory(Settings(brain=tmp_path, read_only=True, every_tool=True)))
    assert set(service.tools).isdisjoint(
        {"remember", "forget", "link", "update", "restore", "persona", "import", "review_decide"}
    )
    assert not service.call("recall", {"question": "What is there?"}).failed
    service.close()


def test_annotations_are_honest(served: McpServer) -> None:
    async def go() -> dict[str, Any]:
        async with Client(served.protocol) as client:
            return {tool.name: tool.annotations for tool in (await client.list_tools()).tools}

    notes = asyncio.run(go())
    assert [n for n, note in notes.items() if note.destructive_hint] == [
        "forget",
        "update",
        "quarantine",
        "review_decide",
        "undo",
        "sync_folder",
    ]
    writing = [n for n, note in notes.items() if not note.read_only_hint]
    assert writing == [
        "remember", "forget", "link", "update", "restore", "quarantine", "consolidate", "review_decide", "persona",
        "undo", "import", "sync_folder",
    ]  # fmt: skip
    assert [n for n, note in notes.items() if note.open_world_hint] == ["recall", "reason"]


def test_every_argument_is_described_and_bounded() -> None:
    for tool in tools_for(every=True):
        schema = input_schema(tool)
        assert schema["type"] == "object"
        for name, about in schema["properties"].items():
            assert about.get("description"), f"{tool.name}.{name}"
        assert set(tool.tool.aliases.values()) <= set(schema["properties"]), tool.name
        assert set(tool.tool.aliases).isdisjoint(schema["properties"]), tool.name


def test_the_list_of_tools_is_short_enough_to_be_read_with_every_request() -> None:
    offered = tools_for()
    arguments = [input_schema(tool) for tool in offered]
    said = [str(tool.tool.description) for tool in offered] + [json.dumps(schema) for schema in arguments]
    assert sum(count_tokens(one) for one in said) <= 3_100
    everything = [*arguments, *(output_schema(tool) for tool in offered)]
    assert '"title": "' not in json.dumps(everything) and '"default": null' not in json.dumps(everything)
    assert arguments[1]["properties"]["again"]["default"] is False, "a default that says something stays"


@pytest.mark.parametrize("name", ["ids", "id", "chunk_id", "memory_id", "memory_ids"])
def test_tools_take_the_same_names_for_ids(ask: Ask, remembered: list[str], name: str) -> None:
    named = {name: remembered[:1]}
    assert ask("forget", **named)["forgotten"] == remembered[:1]
    assert ask("restore", **named)["restored"] == remembered[:1]
    assert ask("get", **named)["memories"][0]["id"] == remembered[0]


def test_remember_names_the_earlier_memories_that_it_may_make_out_of_date(ask: Ask) -> None:
    old = ask("remember", text="The backup job runs at 02:00.")
    assert "earlier" not in old, "nothing is near the first memory"
    new = ask("remember", text="Kim: backup job clashes with the export, so four in the morning it is.")
    assert [(one["id"], one["text"]) for one in new["earlier"]] == [
        (old["chunk_ids"][0], "The backup job runs at 02:00.")
    ]
    stated = ask("remember", text="The backup job runs at 05:00.", replaces=new["chunk_ids"])
    assert stated["replaced"] == new["chunk_ids"] and "earlier" not in stated
    long = " ".join(f"The backup job wrote block {number}." for number in range(400))
    assert "earlier" not in ask("remember", text=long), "of a text of several chunks none is named"


def test_arguments_under_other_names_and_as_text_are_understood(ask: Ask) -> None:
    stored = ask("remember", content="Dana prefers trains.", labels='["travel", "people"]', confidence="0.9")
    found = ask("search", q="trains", n="3", tag="travel")
    assert [hit["id"] for hit in found["hits"]] == stored["chunk_ids"]
    read = ask("get", chunk_ids=json.dumps(stored["chunk_ids"]))["memories"][0]
    assert (read["tags"], read["confidence"]) == (["travel", "people"], 0.9)
    assert ask("forget", id=stored["chunk_ids"][0])["forgotten"] == stored["chunk_ids"]


def test_what_is_wrong_is_said_in_words_with_the_remedy(ask: Ask, remembered: list[str]) -> None:
    assert "limit" in ask("search", query="x", limit=1000)
    assert "no argument 'page'; there are: " in ask("search", query="x", page=2)
    assert "twice" in ask("search", query="x", q="y")
    assert "chunk id" in ask("get", ids=["../../etc/passwd"])
    assert "recall_open" in ask("recall_exec", handle="recall-0", code="1")
    assert "supports" in ask("link", source_id=remembered[0], target_id=remembered[1], type="eats")


def test_an_unknown_tool_is_an_error_of_the_protocol(served: McpServer) -> None:
    async def go() -> None:
        async with Client(served.protocol) as client:
            with pytest.raises(MCPError, match="there is no tool"):
                await client.call_tool("drop_everything", {})

    asyncio.run(go())


def test_one_bad_id_deletes_nothing(ask: Ask, remembered: list[str]) -> None:
    assert "chunk id" in ask("forget", ids=[remembered[0], "not an id"])
    assert ask("get", ids=[remembered[0]])["missing"] == []


def test_a_tiered_memory_is_forgotten_and_restored_with_others_but_takes_no_text(
    served: McpServer, ask: Ask, remembered: list[str]
) -> None:
    both = [
        served.service.memory.continuum.traces.record("Graft the medlar", success=True).chunk_id,
        remembered[0],
    ]
    assert "shows the tiered memory" in ask("update", id=both[0], content="Graft the quince.")
    assert set(ask("forget", ids=both)["forgotten"]) == set(both)
    assert set(ask("restore", ids=both)["restored"]) == set(both)


def test_a_program_in_a_fence_runs_and_final_ends_the_recall(ask: Ask, remembered: list[str]) -> None:
    handle = ask("recall_open", question="Where is the heron server?")["handle"]
    code = f"```repl\nFINAL('in the cellar', chunk_ids=['{remembered[2]}'])\n```"
    done = ask("recall_exec", handle=handle, code=code)
    assert done["finished"]
    assert done["result"]["answer"] == "in the cellar"
    assert ask("recall_finish", handle=handle, answer="in the cellar")["answer"] == "in the cellar"
    again = ask("recall_finish", handle=handle, answer="something else")
    assert "already ended with the answer 'in the cellar'" in again
    assert "the recall session has ended" in ask("recall_exec", handle=handle, code="print(1)")


def test_an_unsure_answer_has_the_closest_memories_beside_it(ask: Ask, remembered: list[str]) -> None:
    def finished(confidence: float) -> dict[str, Any]:
        handle = ask("recall_open", question="Where is the heron server of Ellerby?")["handle"]
        answer = {"answer": "upstairs", "chunk_id": remembered[1], "confidence": confidence}
        return ask("recall_finish", handle=handle, **answer)

    unsure, sure = finished(0.4), finished(0.9)
    assert unsure["closest"][0]["id"] == remembered[2]
    assert len(unsure["closest"]) <= 3
    assert "heron" in unsure["closest"][0]["excerpt"]
    assert "closest" not in sure and sure["chunk_ids"] == [remembered[1]], "by either name"


def test_an_open_recall_holds_its_answer_to_a_schema(ask: Ask, remembered: list[str]) -> None:
    form = {"type": "object", "properties": {"port": {"type": "integer"}}, "required": ["port"]}
    handle = ask("recall_open", question="Which port?", schema=form)["handle"]
    refused = ask("recall_finish", handle=handle, answer="the usual one")
    assert "does not match the schema" in refused
    assert ask("recall_finish", handle=handle, answer='{"port": 8093}')["value"] == {"port": 8093}
    assert "keeps the form" in ask("recall_open", question="And now?", handle=handle, schema=form)


def test_an_answer_that_does_not_hold_up_comes_back_and_the_recall_stays_open(
    ask: Ask, remembered: list[str]
) -> None:
    handle = ask("recall_open", question="Where is the heron server?")["handle"]
    step = ask("recall_exec", handle=handle, code="FINAL({'cellar'})")
    assert "sorted(values)" in step["error"]
    unknown = ask("recall_finish", handle=handle, answer="x", chunk_ids=["chunk-2020-01-01-ffffffff"])
    assert "there is no chunk 'chunk-2020-01-01-ffffffff'" in unknown
    done = ask("recall_finish", handle=handle, answer="cellar \ud800", chunk_ids=[remembered[2]])
    assert (done["answer"], done["chunk_ids"]) == ("cellar \ufffd", [remembered[2]])


def test_a_program_that_fails_is_an_answer_that_says_why(ask: Ask, remembered: list[str]) -> None:
    handle = ask("recall_open", question="anything")["handle"]
    step = ask("recall_exec", handle=handle, code="open('/etc/passwd')")
    assert step["error"]
    assert not step["finished"]


def test_a_program_returns_each_part_once(ask: Ask) -> None:
    """A model reads all of an answer, so nothing stands in it twice, and ids of what was read are bounded."""
    texts = [f"The otter number {number} swims." for number in range(14)]
    for text in texts:
        ask("remember", text=text, origin="web")
    opened = ask("recall_open", question="Which otters swim?", keep=True)
    step = ask(
        "recall_exec", handle=opened["handle"], code="for t in turns(contains='otter'): print(t['text'])"
    )
    assert step["output"].splitlines() == texts and str(step).count(texts[3]) == 1
    assert (len(step["chunks_read"]), step["chunk_count"], step["untrusted"]) == (10, 14, "all 14 (web)")
    ask("recall_exec", handle=opened["handle"], code="rows = turns(contains='number 13')")
    ask("recall_finish", handle=opened["handle"], answer="fourteen")
    assert "is already answered" in ask("recall_exec", handle=opened["handle"], code="print(rows)")
    again = ask("recall_open", question="And how many are there?", handle=opened["handle"])
    assert opened["instructions"] and not again["instructions"] and "how many" in again["opening"]
    # What an earlier question of the session found may be cited, as its variables stay.
    cited = ask("recall_exec", handle=opened["handle"], code="FINAL('13', [rows[0]['chunk_id']])")["result"]
    assert cited["sources"][0]["excerpt"] == texts[13]


def test_a_program_returns_how_a_cut_text_goes_on(ask: Ask) -> None:
    ask("remember", text=f"User: How do otters sleep?\nAssistant: {'They hold hands. ' * 90}Afloat.")
    handle = ask("recall_open", question="How do otters sleep?")["handle"]
    code = "rows = turns(contains='otters', whole=True, chars=500); print(rows[0]['reply'])"
    step = ask("recall_exec", handle=handle, code=code)
    _, _, goes_on = step["cut"].partition("the first goes on: ")
    rest = ask("recall_exec", handle=handle, code=goes_on)
    assert rest["output"].strip().endswith("Afloat.") and "cut" not in rest


def test_long_calls_report_progress(served: McpServer, remembered: list[str]) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    async def go() -> None:
        async with Client(served.protocol) as client:
            await client.call_tool("recall", {"question": "Where is the heron?"}, progress_callback=note)
            text = "\n\n".join(f"Paragraph {n} about the ledger. " * 60 for n in range(5))
            await client.call_tool("remember", {"text": text}, progress_callback=note)

    asyncio.run(go())
    assert any("turn 1" in (message or "") for _, _, message in seen)
    done, total, message = seen[-1]
    assert done == total
    assert "chunks" in (message or "")


def test_a_client_that_takes_no_report_of_progress_does_not_hold_up_a_write(
    served: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_PROGRESS_SECONDS", 0.05)
    asked: list[float] = []

    class Stuck:
        session: Any

        async def report_progress(self, done: float, *_: object) -> None:
            asked.append(done)
            await asyncio.Event().wait()

    async def go() -> None:
        context = Stuck()
        context.session = context
        report = served._progress(context, asyncio.get_running_loop())  # type: ignore[arg-type]
        for done in range(1, 5):
            await asyncio.to_thread(report, done, 4, "stored")
            await asyncio.to_thread(monkeypatch.setattr, server, "_PROGRESS_INTERVAL", 0.0)

    asyncio.run(go())
    assert asked == [1]


def test_memories_and_recalls_can_be_read_as_resources(served: McpServer, remembered: list[str]) -> None:
    trajectory = served.service.memory.recall("Where is the heron server?").trajectory.id

    async def go() -> dict[str, Any]:
        async with Client(served.protocol) as client:
            listed = [one.uri for one in (await client.list_resources()).resources]
            assert "memory://recent" in listed
            assert f"memory://chunks/{remembered[0]}" in listed
            templates = [t.uri_template for t in (await client.list_resource_templates()).resource_templates]
            assert templates == ["memory://chunks/{id}", "memory://trajectories/{id}"]
            read = {}
            for uri in (*listed, f"memory://trajectories/{trajectory}"):
                read[uri] = json.loads(text_in((await client.read_resource(uri)).contents[0]))
            return read

    read = asyncio.run(go())
    assert read[f"memory://chunks/{remembered[1]}"]["content"] == "Ben drinks green tea in the morning."
    assert read["memory://status"]["chunk_count"] == 3
    assert read[f"memory://trajectories/{trajectory}"]["query"] == "Where is the heron server?"
    assert str(served.service.memory.store.backend.location) not in json.dumps(read)


@pytest.mark.parametrize(
    "uri",
    [
        "memory://chunks/chunk-2020-01-01-00000000",
        "memory://chunks/..%2F..%2Fconfig.toml",
        "memory://trajectories/..%2Findex",
        "memory://nothing",
        "file:///etc/passwd",
    ],
)
def test_an_address_without_anything_behind_it_is_refused(served: McpServer, uri: str) -> None:
    async def go() -> None:
        async with Client(served.protocol) as client:
            with pytest.raises(MCPError, match=r"there is no|not a chunk id|trajectory"):
                await client.read_resource(uri)

    asyncio.run(go())


def test_prompts_are_filled_in(served: McpServer) -> None:
    async def go() -> list[str]:
        async with Client(served.protocol) as client:
            texts = []
            for prompt in (await client.list_prompts()).prompts:
                arguments = {one.name: "the {} ledger" for one in prompt.arguments or []}
                made = await client.get_prompt(prompt.name, arguments)
                texts.append(text_in(made.messages[0].content))
            return texts

    texts = asyncio.run(go())
    assert len(texts) == 3
    assert sum("the {} ledger" in text for text in texts) == 2


@pytest.mark.parametrize(
    ("name", "argument", "said"),
    [
        ("nosuch", "", "there is no prompt 'nosuch'"),
        (None, " ", "needs the argument"),
        (None, "a" * 100_000, "has more than"),
    ],
)
def test_a_prompt_that_cannot_be_filled_in_is_refused_in_words(
    served: McpServer, name: str | None, argument: str, said: str
) -> None:
    async def go() -> None:
        async with Client(served.protocol) as client:
            named = next(one for one in (await client.list_prompts()).prompts if one.arguments)
            given = {one.name: argument for one in named.arguments or []}
            with pytest.raises(MCPError, match=said):
                await client.get_prompt(name or named.name, given)

    asyncio.run(go())


def test_text_that_utf8_cannot_hold_never_reaches_the_wire() -> None:
    data = plain(TagCount("half a pair: \ud83d", 1))
    assert data == {"tag": "half a pair: ?", "count": 1}
    assert plain(TagCount("whole: \N{BIRD}", 1))["tag"] == "whole: \N{BIRD}"


@pytest.fixture
def waiting(service: Service) -> str:
    """The case of a memory that waits for its reviewer."""
    continuum = service.memory.continuum
    rewrite(continuum, learning(continuum), **CORE)
    continuum.consolidate()
    return continuum.review.cases()[0].id


def test_a_case_is_shown_with_its_evidence_and_decided_in_a_persons_name(waiting: str, ask: Ask) -> None:
    (case,) = ask("review")["cases"]
    assert case["id"] == waiting
    assert case["evidence"]
    assert "needs a reason" in ask("review_decide", case_id=waiting, decision="approve", reviewer="Maya")
    done = ask("review_decide", case_id=waiting, decision="approve", reviewer="Maya", reason="It works.")
    assert (done["status"], done["tier"]) == ("approved", "ultra-low")
    assert ask("review")["cases"] == []
    again = ask("review_decide", id=waiting, action="reject", reviewer="Maya", reason="Or not.")
    assert "already approved" in again


@pytest.mark.parametrize(("decision", "status"), [("defer", "deferred"), ("reject", "rejected")])
def test_a_case_is_put_off_or_turned_down(waiting: str, ask: Ask, decision: str, status: str) -> None:
    done = ask(
        "review_decide", case_id=waiting, decision=decision, reviewer="Maya", reason="Not yet.", days=3
    )
    assert (done["status"], done["tier"]) == (status, None)


def test_some_memories_of_a_session_are_kept_in_a_persons_name(service: Service, ask: Ask) -> None:
    store = service.memory.store
    made = [store.create_chunk(f"Gateway {n} needs firmware {n}.", conversation_id="s-1") for n in range(3)]
    with store.files.transaction():
        case = service.memory.continuum.review.add_captured("s-1", "claude-code", made)
    decision = {"case_id": case.id, "reviewer": "Maya", "keep": case.chunk_ids[:1]}
    assert "approval" in ask("review_decide", decision="reject", **decision)
    assert ask("review_decide", decision="approve", **decision)["status"] == "approved"
    assert list(store.get_many(case.chunk_ids)) == case.chunk_ids[:1]


@pytest.mark.parametrize("reviewer", ["agent", "MemoryConsolidationAgent", " "])
def test_an_agent_decides_nothing_in_its_own_name(waiting: str, ask: Ask, reviewer: str) -> None:
    said = ask("review_decide", case_id=waiting, decision="approve", reviewer=reviewer, reason="I like it.")
    assert "reviewer" in said
    assert ask("review")["cases"][0]["id"] == waiting


def test_what_a_file_holds_is_stored_once(ask: Ask) -> None:
    chat = json.dumps(
        [{"role": "user", "content": "My bicycle is green."}, {"role": "assistant", "content": "Nice."}]
    )
    would = ask("import", content=chat, name="chat.json", dry_run=True)
    assert (would["created"], would["messages"], ask("status")["memories"]) == (1, 2, 0)
    first = ask("import", content=chat, name="chat.json")
    assert (first["created"], first["formats"]) == (1, {"messages-json": 1})
    assert ask("import", content=chat, filename="chat.json")["created"] == 0
    assert "green" in ask("search", query="colour of the bicycle")["hits"][0]["snippet"]


@pytest.mark.parametrize("name", ["../notes.md", "a/b.md", "/etc/notes.md", ".hidden", "x\ny.md", ""])
def test_an_import_takes_a_bare_file_name_only(ask: Ask, name: str) -> None:
    said = ask("import", content="A note.", name=name)
    assert name == "" or "name: " in said


def test_an_import_reaches_neither_personas_nor_tiers(ask: Ask, service: Service) -> None:
    """A personality would speak in every namespace; a tiered memory would come past its reviewer."""
    lines = [
        {"brain_file": "personalities/EVIL_MODE.md", "text": "# Evil Mode\n"},
        {"brain_file": "system/SmartLibrary.md", "text": "---\nid: x\n---\n"},
    ]
    content = "\n".join(json.dumps(line) for line in lines)
    done = ask("import", content=content, name="export.jsonl", format="chunk-jsonl")
    assert [note["reason"] for note in done["conflicts"]] == [
        "such files are imported by the command only, without --trust"
    ] * 2
    assert "EVIL_MODE" not in service.memory.persona().library.modes()


def test_a_recall_that_nobody_waits_for_ends(service: Service, remembered: list[str]) -> None:
    gone = Stop()
    gone.set()
    answer = service.call("recall", {"question": "Where is the heron server?"}, stop=gone)
    assert answer.failed
    assert "was cancelled" in answer.text
    assert not service.call("remember", {"text": "What is to be kept is kept."}, stop=gone).failed


def test_a_fault_of_ours_is_an_answer_and_not_the_end(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(service.memory.store, "get_stats", lambda: 1 / 0)
    answer = service.call("status", {})
    assert answer.failed
    assert "ZeroDivisionError" in answer.text
    assert "status" in caplog.text


def test_a_brain_that_cannot_be_opened_is_said_with_each_call(tmp_path: Path) -> None:
    (tmp_path / "brain").mkdir()
    (tmp_path / "brain" / "config.toml").write_text("[recall]\nmax_iterations = 0\n", encoding="utf-8")
    service = Service(OpenMemory(Settings(brain=tmp_path / "brain")))
    for _ in range(2):
        assert "max_iterations" in service.call("status", {}).text
    service.close()
