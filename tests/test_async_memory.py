"""AsyncMemory: the names and signatures of Memory, a loop that is never blocked, cancellation that ends the work."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import AsyncMemory, InputError, InvalidChunk, Memory, RecallSession, SessionBusy, StoreClosed
from rlm_mem.aio import AsyncContinuum, AsyncRecallSession, _opens_session
from rlm_mem.continuum.system import Continuum
from rlm_mem.errors import SessionCancelled
from rlm_mem.sandbox.engine import stop_of_context
from tests.waiting import soon

FINAL = "```python\nFINAL('Porto')\n```"
LOOK = "```python\nprint(search_chunks('Porto'))\n```"


def scripted(*replies: str) -> Callable[[str], str]:
    waiting = iter(replies)
    return lambda prompt: next(waiting)


def test_every_public_name_is_there_with_the_signature_of_the_original() -> None:
    unlike = {"Memory.llm", "Memory.batch"}  # a property with work behind it, and an asynchronous block
    parts = ((Memory, AsyncMemory), (RecallSession, AsyncRecallSession), (Continuum, AsyncContinuum))
    wrong = []
    for original, own in parts:
        for name, member in inspect.getmembers(original):
            if name.startswith("_") or f"{original.__name__}.{name}" in unlike:
                continue
            if original is Continuum and (name in ("agent", "functions") or not inspect.isfunction(member)):
                continue  # parts, reached by run()
            there = getattr(own, name, None)
            if there is None:
                wrong.append(f"{own.__name__} lacks {name}")
            elif callable(member) and parameters(there) != parameters(member):
                wrong.append(
                    f"{own.__name__}.{name}{parameters(there)}, the original has {parameters(member)}"
                )
    assert wrong == []
    assert parameters(AsyncMemory.recall_stream) == parameters(Memory.recall)


def parameters(function: Callable[..., Any]) -> list[tuple[str, object, object]]:
    return [(one.name, one.kind, one.default) for one in inspect.signature(function).parameters.values()]


def test_it_remembers_asks_and_lists(place: Path | str) -> None:
    async def use() -> None:
        async with AsyncMemory.open(place) as memory:
            made = await memory.remember("Ines lives in Porto.", conversation_id="trip", tags="family")
            assert [hit.chunk_id for hit in await memory.search("Porto")] == made.chunk_ids
            assert "Porto" in str((await memory.recall("Where does Ines live?")).content)
            async with memory.recall_session("Where does Ines live?") as session:
                step = await session.execute("print(search('Porto'))")
                assert "Ines" in step.text
                result = await session.finish("Porto", chunk_ids=[session.hits[0]["id"]])
            assert result is session.result
            assert [event.op async for event in memory.events(op="create")] == ["create"]
            assert (await memory.stats()).chunk_count == 1
            assert (await memory.undo(made.chunk_ids[0])) is None
            assert (await memory.limits(iterations=3)).iterations == 3
            assert (await memory.llm()).name
            assert await memory.run(lambda inner: inner.tags()) == [("family", 1)]
            assert await memory.continuum.findings() == []
            with pytest.raises(InvalidChunk):
                await memory.remember("")
        with pytest.raises(StoreClosed):
            await memory.search("Porto")

    asyncio.run(use())


def test_an_opening_is_a_coroutine_for_run_and_create_task(tmp_path: Path) -> None:
    async def use(memory: AsyncMemory) -> None:
        async with memory:
            session = await asyncio.create_task(memory.recall_session("Where?"))
            await session.close()

    memory = asyncio.run(AsyncMemory.open(tmp_path / "brain"))
    asyncio.run(use(memory))


def test_the_event_loop_runs_during_calls(tmp_path: Path) -> None:
    """A model that waits for the loop would wait for ever if the loop waited for the model."""
    asked, answer = threading.Event(), threading.Event()

    def model(prompt: str) -> str:
        asked.set()
        assert answer.wait(30), "the loop was blocked"
        return FINAL

    async def use() -> None:
        async with AsyncMemory(Memory.open(tmp_path / "brain", llm=model)) as memory:
            run = asyncio.create_task(memory.recall("Where?"))
            await soon(asked.is_set)
            await memory.remember("Meanwhile something else is remembered.")
            answer.set()
            assert (await run).content == "Porto"

    asyncio.run(use())


ENDLESS = {
    "a program": lambda prompt: "```python\nwhile True:\n    pass\n```",
    "a model": lambda prompt: threading.Event().wait(60) or FINAL,
}


@pytest.mark.parametrize("what", ENDLESS)
def test_cancelling_ends_the_work(tmp_path: Path, what: str) -> None:
    asked = threading.Event()

    def model(prompt: str) -> Any:
        asked.set()
        return ENDLESS[what](prompt)

    async def use() -> None:
        async with AsyncMemory.open(tmp_path / "brain", llm=model) as memory:
            run = asyncio.create_task(memory.recall("Where?", limits=await memory.limits(seconds=60)))
            await soon(asked.is_set)
            run.cancel()
            with pytest.raises(asyncio.CancelledError):
                async with asyncio.timeout(30):
                    await run
            (info,) = await memory.trajectories()
            assert info.error, "the run has ended, and its record says how"

    asyncio.run(use())


def test_a_cancelled_write_is_whole_or_not_there(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph {number} about harbours and dogs. " * 30 for number in range(40))
    reports: list[int] = []

    async def use() -> None:
        async with AsyncMemory.open(tmp_path / "brain") as memory:
            begun, go_on = threading.Event(), threading.Event()

            def progress(done: int, total: int) -> None:
                reports.append(done)
                begun.set()
                go_on.wait(30)

            write = asyncio.create_task(memory.remember(text, progress=progress))
            await soon(begun.is_set)
            write.cancel()
            await asyncio.sleep(0)  # the cancellation arrives before the write goes on
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await write
            assert (await memory.stats()).chunk_count == 0
            await memory.remember(text)

    asyncio.run(use())
    assert len(reports) == 1


def test_a_stream_gives_each_step_as_it_ends_and_then_the_result(tmp_path: Path) -> None:
    gone_on = threading.Event()

    def model(prompt: str, replies: list[str] = [LOOK, FINAL]) -> str:  # noqa: B006 - used up by this test
        if len(replies) == 1:
            assert gone_on.wait(30), "the first step has not arrived while the second turn waits"
        return replies.pop(0)

    async def use() -> None:
        async with AsyncMemory.open(tmp_path / "brain", llm=model) as memory:
            told = []
            stream = memory.recall_stream("Where?", on_step=lambda step: told.append(step.turn))
            turns = []
            with pytest.raises(SessionBusy, match="until its last step has been read"):
                _ = stream.result
            async for step in stream:
                turns.append(step.turn)
                gone_on.set()
            assert turns == told == [1, 2]
            assert stream.result.content == "Porto"
            with pytest.raises(SessionBusy):
                aiter(stream)

    asyncio.run(use())


@pytest.mark.parametrize("leave", ["break", "block"])
def test_leaving_a_stream_ends_its_run(tmp_path: Path, leave: str) -> None:
    async def use() -> None:
        replies = iter([LOOK])
        memory = await AsyncMemory.open(
            tmp_path / "brain", llm=lambda prompt: next(replies, None) or threading.Event().wait(60)
        )
        if leave == "break":
            async for _ in memory.recall_stream("Where?"):
                break
        else:
            async with memory.recall_stream("Where?") as stream:
                async for _ in stream:
                    break
        await soon(lambda: memory.memory.trajectories()[0].error is not None)
        await memory.close()

    asyncio.run(use())


def test_a_failed_run_raises_from_its_stream(tmp_path: Path) -> None:
    async def use() -> None:
        async with AsyncMemory.open(tmp_path / "brain") as memory:
            with pytest.raises(ValueError, match="empty"):
                async for _ in memory.recall_stream(""):
                    pass

    asyncio.run(use())


def test_a_batch_is_all_or_nothing(place: Path | str) -> None:
    async def use() -> None:
        async with AsyncMemory.open(place) as memory:
            async with memory.batch() as together:
                await together.remember("Ines works at the harbour.")
                await together.remember("Ines has two dogs.")
            with pytest.raises(ZeroDivisionError):
                async with memory.batch() as together:
                    await together.remember("Never to be seen.")
                    1 / 0  # noqa: B018
            inside = asyncio.Event()

            async def cancelled() -> None:
                async with memory.batch() as group:
                    await group.remember("Never to be seen either.")
                    inside.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(cancelled())
            await inside.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await memory.stats()).chunk_count == 2
            await memory.remember("Writing goes on.")

    asyncio.run(use())


def test_a_batch_within_a_batch_belongs_to_it_and_its_object_ends_with_it(place: Path | str) -> None:
    async def run() -> None:
        async with AsyncMemory.open(place) as memory:
            with pytest.raises(KeyError):
                async with memory.batch() as outer:
                    async with outer.batch() as inner:
                        await inner.remember("The lamp is lit.")
                    assert (await outer.stats()).chunk_count == 1
                    raise KeyError
            async with memory.batch() as outer, outer.batch() as inner:
                await asyncio.wait_for(inner.remember("The lamp is out."), 20)
            for one in (outer, inner):
                with pytest.raises(StoreClosed, match="the batch has ended"):
                    await one.remember("The lamp is gone.")
            assert (await memory.stats()).chunk_count == 1

    asyncio.run(run())


def test_wrong_threads_are_refused_in_words(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        for wrong in (0, -1, True, "two"):
            with pytest.raises(InputError, match="threads must be a whole number from 1 up"):
                AsyncMemory(memory, threads=wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="memory must be Memory"):
            AsyncMemory(memory.store)  # type: ignore[arg-type]


def test_closing_ends_what_runs(tmp_path: Path) -> None:
    asked = threading.Event()

    def model(prompt: str) -> Any:
        asked.set()
        return threading.Event().wait(60)

    async def use() -> None:
        memory = await AsyncMemory.open(tmp_path / "brain", llm=model)
        run: Awaitable[Any] = asyncio.create_task(memory.recall("Where?"))
        await soon(asked.is_set)
        async with asyncio.timeout(30):
            await memory.close()
        with pytest.raises(SessionCancelled, match="cancelled"):
            await run

    asyncio.run(use())


def test_one_memory_serves_many_threads(place: Path | str) -> None:
    """Writes, changes, searches, recalls and batches at the same time: nothing is lost, nothing is mixed up."""
    with Memory.open(place) as memory:

        def work(who: int) -> list[str]:
            first = memory.remember(
                f"Worker{who} keeps bees in garden{who}.", conversation_id=f"c{who}"
            ).chunk_ids
            with memory.batch():
                second = memory.remember(f"Worker{who} sells honey.", conversation_id=f"c{who}").chunk_ids
                memory.update(first[0], tags=[f"of{who}"])
            assert memory.search(f"garden{who}", limit=1)[0].chunk_id == first[0]
            assert f"garden{who}" in str(memory.recall(f"Where does Worker{who} keep bees?").content)
            return [*first, *second]

        with ThreadPoolExecutor(6) as pool:
            made = [chunk_id for ids in pool.map(work, range(6)) for chunk_id in ids]
        assert sorted(memory.list_chunks()) == sorted(made)
        assert len(memory.tags()) == 6
        assert memory.check() == []


@pytest.mark.local_only("connections to the index beside the files")
def test_threads_that_have_ended_leave_no_connection_open(place: Path | str) -> None:
    with Memory.open(place) as memory:
        memory.remember("Ines lives in Porto.")
        for _ in range(10):
            thread = threading.Thread(target=memory.search, args=("Porto",))
            thread.start()
            thread.join()
        folder = Path("/proc/self/fd")
        if not folder.exists():
            pytest.skip("open files cannot be counted here")
        files = [one.resolve() for one in folder.iterdir()]
        assert 1 <= sum(path.name == "index.sqlite" for path in files) <= 3, files


def test_a_session_that_is_opened_while_its_task_is_cancelled_is_closed(place: Path | str) -> None:
    async def play() -> None:
        async with AsyncMemory.open(place, llm="offline") as memory:
            await memory.remember("The boat is green.")
            opened: list[RecallSession] = []
            entered = threading.Event()

            def slow(wrapped: Memory, query: str) -> RecallSession:
                opened.append(wrapped.recall_session(query))
                entered.set()
                stop = stop_of_context()
                assert stop is not None
                stop.wait(60)  # the task is cancelled now
                return opened[0]

            opening = asyncio.ensure_future(_opens_session(slow)(memory, "What is green?").__aenter__())  # type: ignore[operator]
            assert await asyncio.to_thread(entered.wait, 60)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
            (run,) = await memory.trajectories()
            assert run.outcome == "stopped"

    asyncio.run(play())
