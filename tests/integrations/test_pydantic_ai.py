"""Pydantic AI against the real packages: the toolset, and the store for the harness beside its store in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.frameworks import Lazy, needs

from rlm_mem import AsyncMemory
from rlm_mem.models.scripted import ScriptedLLM

ai = Lazy("rlm_mem.integrations.pydantic_ai", "pydantic_ai", "pydantic_ai.models.test")
harness = Lazy("pydantic_ai_harness.memory", "rlm_mem.integrations.pydantic_ai_harness")

NOTES = "ana/main/MEMORY.md"
BEES = "Bees in Porto."


@needs("pydantic_ai", "the extra llm")
def test_an_agent_uses_every_tool(tmp_path: Path) -> None:
    async def work() -> None:
        async with await AsyncMemory.open(tmp_path / "brain") as memory:
            await memory.remember("Ines lives in Porto.")
            model = ai.TestModel()
            await ai.Agent(model, toolsets=[ai.memory_toolset(memory)]).run("Hello")
            tools = model.last_model_request_parameters.function_tools
            assert [tool.name for tool in tools] == ["recall", "search_memory", "remember", "forget"]
            assert len(await memory.list_chunks()) == 2
            await ai.Agent(model, toolsets=[ai.memory_toolset(memory, read_only=True)]).run("Hello")
            tools = model.last_model_request_parameters.function_tools
            assert [tool.name for tool in tools] == ["recall", "search_memory"]

    asyncio.run(work())


@needs("pydantic_ai", "the extra llm")
def test_tools_answer_and_say_what_is_wrong(tmp_path: Path) -> None:
    async def work() -> None:
        async with await AsyncMemory.open(tmp_path / "brain") as memory:
            [chunk_id] = (await memory.remember("Ines lives in Porto.", occurred_at="2026-03-02")).chunk_ids
            tools = ai.memory_toolset(memory).tools
            answer = await tools["recall"].function("Where does Ines live?")
            assert (answer["outcome"], answer["answer"]) == ("answered", "Porto")
            assert answer["sources"] == [
                {"id": chunk_id, "date": "2026-03-02", "text": "Ines lives in Porto."}
            ]
            assert [hit["text"] for hit in await tools["search_memory"].function("Ines")] == [
                "Ines lives in Porto."
            ]
            assert answer["closest"] == []
            with pytest.raises(ai.ModelRetry):
                await tools["remember"].function("")
            moved = "Ines gave up her flat in Porto for one in Faro."
            made = await tools["remember"].function(moved)
            assert [one["id"] for one in made["earlier"]] == [chunk_id]
            again = await tools["remember"].function(moved, replaces=[chunk_id])
            assert again == {"ids": made["ids"], "replaced": [chunk_id], "earlier": []}
            unknown = ["chunk-2026-03-02-00000000", "the one about Porto"]
            gone = await tools["forget"].function([*made["ids"], *unknown])
            assert gone == {"forgotten": made["ids"], "missing": unknown}
            assert await memory.undo()  # it is in the archive

    asyncio.run(work())


@needs("pydantic_ai", "the extra llm")
def test_an_unsure_answer_comes_with_the_closest_memories(tmp_path: Path) -> None:
    async def work() -> None:
        first = "FINAL('1950', chunk_ids=[search('Faro')[0]['chunk_id']], confidence=0.5)"
        model = ScriptedLLM([f"```repl\n{first}\n```"])
        async with await AsyncMemory.open(tmp_path / "brain", llm=model) as memory:
            for text in ("The harbour in Porto is old.", "The harbour of Faro was built in 1950."):
                await memory.remember(text, origin="web")
            answer = await ai.memory_toolset(memory).tools["recall"].function("When was the harbour built?")
            assert [one["text"] for one in answer["closest"]] == [
                "untrusted, from web: The harbour in Porto is old."
            ]

    asyncio.run(work())


@needs("pydantic_ai", "the extra llm")
def test_tools_mark_untrusted_text_and_what_was_replaced(tmp_path: Path) -> None:
    async def work() -> None:
        async with await AsyncMemory.open(tmp_path / "brain") as memory:
            text = "Ines lives in Porto."
            [old] = (await memory.remember(text, origin="web", occurred_at="2026-03-02")).chunk_ids
            tools = ai.memory_toolset(memory).tools
            marked = f"untrusted, from web: {text}"
            answer = await tools["recall"].function("Where does Ines live?")
            assert [one["text"] for one in answer["sources"]] == [marked]
            [new] = (await memory.remember("Ines moved house: Faro.", occurred_at="2026-05-02")).chunk_ids
            await memory.supersede(old, new)
            found = {hit["id"]: hit["text"] for hit in await tools["search_memory"].function("Ines Porto")}
            assert found[old] == f"{marked}\nout of date: {new} replaced it"

    asyncio.run(work())


@needs("pydantic_ai_harness")
def test_the_store_behaves_as_that_in_memory(tmp_path: Path) -> None:
    async def work() -> None:
        async with await AsyncMemory.open(tmp_path / "brain") as memory:
            own, other = harness.NotebookStore(memory), harness.InMemoryStore()
            protocols = (harness.MemoryStore, harness.MetadataMemoryStore, harness.SearchableMemoryStore)
            assert all(isinstance(own, one) for one in protocols)
            versions: dict[Any, dict[str, str | None]] = {own: {}, other: {}}

            async def outcome(store: Any, name: str, path: str, **more: Any) -> Any:
                if "expected_version" in more and more["expected_version"] == "present":
                    more["expected_version"] = versions[store].get(path)
                try:
                    result = await getattr(store, name)(path, **more)
                except (
                    ValueError,
                    harness.MemoryConflictError,
                    harness.MemoryOperationConflictError,
                ) as error:
                    return type(error).__name__
                if isinstance(result, harness.MemoryMutation):
                    if not result.replayed:
                        versions[store][path] = result.version
                    return (result.version is None, result.replayed, result.existed)
                if isinstance(result, harness.MemoryFile):
                    return (result.content, result.operation_id, result.truncated, result.metadata)
                return result

            op = harness.MemoryOperation("op-1", "f-1")
            reused = harness.MemoryOperation("op-1", "f-2")
            removal = harness.MemoryOperation("op-2", "f-3")
            steps: list[tuple[str, str, dict[str, Any]]] = [
                ("read", NOTES, {"max_chars": 100}),
                ("write", NOTES, {"content": BEES, "expected_version": None, "operation": op}),
                ("write", NOTES, {"content": BEES, "expected_version": None, "operation": op}),
                ("write", NOTES, {"content": "x", "expected_version": None, "operation": reused}),
                ("write", NOTES, {"content": "x", "expected_version": None}),
                ("write", NOTES, {"content": "x", "expected_version": "other"}),
                ("read", NOTES, {"max_chars": 100}),
                ("read", NOTES, {"max_chars": 4}),
                ("read", NOTES, {"max_chars": 0}),
                ("write_with_metadata", "ana/main/a.md",
                 {"content": "Wasps.", "expected_version": None, "metadata": {"by": "ana"}}),
                ("read", "ana/main/a.md", {"max_chars": 100}),
                ("write", "ana/main/a.md", {"content": "Hornets.", "expected_version": "present"}),
                ("read", "ana/main/a.md", {"max_chars": 100}),
                ("write", "ben/main/b.md", {"content": "Ants.", "expected_version": None}),
                ("write", "../b.md", {"content": "Ants.", "expected_version": None}),
                ("write", "ana//b.md", {"content": "Ants.", "expected_version": None}),
                ("write", "./b.md", {"content": "Ants.", "expected_version": None}),
                ("list_paths", "", {"limit": 10}),
                ("list_paths", "ana/", {"limit": 1}),
                ("list_paths", "ana/main/M", {"limit": 5}),
                ("list_paths", "../", {"limit": 5}),
                ("delete", "ana/main/a.md", {"expected_version": "other"}),
                ("delete", "ana/main/a.md", {"expected_version": "present", "operation": removal}),
                ("delete", "ana/main/a.md", {"expected_version": "present", "operation": removal}),
                ("delete", "ana/main/gone.md", {"expected_version": None}),
                ("read", "ana/main/a.md", {"max_chars": 100}),
                ("list_paths", "", {"limit": 10}),
            ]  # fmt: skip
            for name, path, more in steps:
                mine, theirs = [await outcome(store, name, path, **more) for store in (own, other)]
                assert mine == theirs, (name, path, more)
            bounds = {"limit": 5, "max_files": 10, "max_chars": 100, "max_file_chars": 100}
            for prefix in ("ana/main/", "ana/", "ben/main/"):
                found = [await store.search(prefix, "bees", **bounds) for store in (own, other)]
                mine, theirs = [[(one.path, one.snippet) for one in result.matches] for result in found]
                assert mine == theirs
            turkish = "İ" * 300 + " The bees live in Izmir."  # in lower case, İ is two characters
            await own.write("can/notes.md", turkish, expected_version=None)
            (match,) = (await own.search("can/", "bees", **{**bounds, "max_file_chars": 1000})).matches
            assert "bees live" in match.snippet
            assert await own.get_operation(op) == await own.get_operation(op)

    asyncio.run(work())


@needs("pydantic_ai_harness")
def test_an_agent_keeps_its_notebook_over_runs(tmp_path: Path) -> None:
    async def work() -> None:
        async with await AsyncMemory.open(tmp_path / "brain") as memory:
            model = ai.TestModel(call_tools=["write_memory"])
            notebook = harness.Memory(store=harness.NotebookStore(memory), namespace="ana")
            await ai.Agent(model, capabilities=[notebook]).run("Hello")
            again = harness.NotebookStore(memory)
            (path,) = await again.list_paths("ana/", limit=5)
            assert await again.read(path, max_chars=100)

    asyncio.run(work())
