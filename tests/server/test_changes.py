"""The change feed: what any process writes reaches listeners, and nothing is looked at while nobody listens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.types import Message

from rlm_mem.errors import StorageError
from rlm_mem.http.streams import stream
from rlm_mem.memory import Memory
from rlm_mem.operations import changes
from rlm_mem.operations.changes import ChangeFeed, ChangeNotice, with_keep_alive
from tests.continuum.conftest import record
from tests.server.site import opened
from tests.waiting import soon


@pytest.fixture
def memory(place: Path | str) -> Iterator[Memory]:
    with Memory.open(place, llm="offline") as found:
        found.remember("Ben drinks green tea.")
        yield found


@pytest.fixture
def other(memory: Memory, place: Path | str) -> Iterator[Memory]:
    """The same brain, as another process would have it open."""
    with Memory.open(place, llm="offline", actor="other") as found:
        yield found


def changes_after(memory: Memory, *acts: Callable[[], object], events: bool = False) -> list[ChangeNotice]:
    """What a listener is told when these things are done one after the other, each once the one before was told."""

    async def follow() -> list[ChangeNotice]:
        feed = ChangeFeed(lambda: memory, interval=0.02)
        told: list[ChangeNotice] = []
        waiting = list(acts)

        async def listen() -> None:
            async for change in feed.follow(events=events, ready=True):
                if change.topics or change.events:
                    told.append(change)
                if len(told) >= len(acts):
                    return
                await asyncio.to_thread(waiting.pop(0))

        await asyncio.wait_for(listen(), 60)
        await feed.stop()
        return told

    return asyncio.run(follow())


def test_writes_of_another_process_are_announced(memory: Memory, other: Memory) -> None:
    (change,) = changes_after(memory, lambda: other.remember("Ana likes coffee."))
    assert "memories" in change.topics


def test_writes_of_this_process_are_announced_too(memory: Memory) -> None:
    (change,) = changes_after(memory, lambda: memory.remember("Ana likes coffee."))
    assert "memories" in change.topics


def test_runs_tiers_and_persona_have_topics_of_their_own(memory: Memory, other: Memory) -> None:
    def tell_persona() -> None:
        other.persona(keep=True).set("humor", 3)

    (change,) = changes_after(memory, tell_persona)
    assert change.topics == {"persona"}
    (change,) = changes_after(memory, lambda: other.recall("What does Ben drink?"))
    assert "recalls" in change.topics
    (change,) = changes_after(memory, lambda: record(other.continuum))
    assert "tiers" in change.topics or "memories" in change.topics


def test_every_decision_on_a_proposal_is_announced(memory: Memory, other: Memory) -> None:
    for text in ("The ferry leaves at 6:10.", "The ferry leaves at 6:40."):
        proposed = memory.remember(text).proposed
    review, who = other.continuum.review, {"reviewer": "Ana", "reason": "two ferries"}
    steps = [
        lambda: review.defer(proposed[0], **who),
        lambda: review.reject(proposed[0], **who),
        lambda: other.undo(),
        lambda: review.approve(proposed[0], **who),
    ]
    for change in changes_after(memory, *steps):
        assert "tiers" in change.topics
    assert [step["op"] for step in memory.continuum.changes.journal()] == [
        "deferred", "rejected", "undo", "approved",
    ]  # fmt: skip


def test_changes_are_numbered_and_the_version_moves(memory: Memory, other: Memory) -> None:
    first, second = changes_after(
        memory, lambda: other.remember("Ana likes coffee."), lambda: other.remember("Eve likes cocoa.")
    )
    assert second.seq > first.seq
    assert second.version != first.version


def test_listeners_get_the_new_lines_of_the_audit_log(memory: Memory, other: Memory) -> None:
    (change,) = changes_after(memory, lambda: other.remember("Ana likes coffee."), events=True)
    assert [(event["op"], event["actor"]) for event in change.events] == [("create", "other")]


def test_a_line_dated_by_a_clock_that_is_behind_is_reported(memory: Memory, place: Path | str) -> None:
    with Memory.open(place, clock=lambda: datetime.now(UTC) - timedelta(hours=1)) as behind:
        first, second = changes_after(
            memory,
            lambda: memory.update(memory.list_chunks()[0], tags=["tea"]),
            lambda: behind.update(behind.list_chunks()[0], tags=["green"]),
            events=True,
        )
    assert [one["op"] for one in (*first.events, *second.events)] == ["update", "update"]


def test_a_listener_is_told_nothing_of_other_namespaces(memory: Memory, place: Path | str) -> None:
    with Memory.open(place, llm="offline", namespace="team/secret") as secret:

        def write_elsewhere() -> None:
            secret.remember("Zoe likes juice.")
            secret.recall("What does Zoe like?")
            record(secret.continuum)
            memory.remember("Ana likes coffee.")

        before = memory.store.backend.version(memory.store.namespace)
        secret.remember("Zoe likes milk.")
        assert memory.store.backend.version(memory.store.namespace) == before
        told = changes_after(memory, write_elsewhere, lambda: memory.recall("What does Ana like?"))
    assert [one.topics - {"memories"} for one in told] == [set(), {"recalls"}]


def test_who_asks_for_lines_beside_a_listener_that_does_not_is_ready_once_none_is_missed(
    memory: Memory, other: Memory
) -> None:
    async def listen() -> ChangeNotice:
        feed = ChangeFeed(lambda: memory, interval=0.02)
        plain = feed.follow(ready=True)
        await anext(plain)
        lines = feed.follow(events=True, ready=True)
        await anext(lines)
        await asyncio.to_thread(other.update, other.list_chunks()[0], tags=["tea"])
        change = await asyncio.wait_for(anext(lines), 60)
        await feed.stop()
        for one in (plain, lines):
            await one.aclose()
        return change

    assert [one["op"] for one in asyncio.run(listen()).events] == ["update"]


def test_nothing_is_polled_without_listeners(memory: Memory) -> None:
    looks = []

    def ask() -> Memory:
        looks.append(1)
        return memory

    def watching() -> bool:
        tasks = asyncio.all_tasks()
        return any(getattr(task.get_coro(), "__qualname__", "") == "ChangeFeed._watch" for task in tasks)

    async def play() -> None:
        feed = ChangeFeed(ask, interval=0.01)
        assert not watching()
        listening = asyncio.create_task(anext(feed.follow()))
        await soon(lambda: len(looks) > 1, "a second look")
        assert feed.listening == 1
        listening.cancel()
        await soon(lambda: feed.listening == 0, "the end of the listener")
        await soon(lambda: not watching(), "the end of the watching")
        seen = len(looks)
        await feed.stop()
        assert len(looks) == seen

    asyncio.run(play())


def test_a_stop_ends_every_listener(memory: Memory) -> None:
    async def play() -> list[ChangeNotice]:
        feed = ChangeFeed(lambda: memory, interval=0.01)
        told: list[ChangeNotice] = []

        async def listen() -> None:
            async for change in feed.follow():
                told.append(change)

        tasks = [asyncio.create_task(listen()) for _ in range(3)]
        await soon(lambda: feed.listening == 3, "three listeners")
        await feed.stop()
        await asyncio.wait_for(asyncio.gather(*tasks), 60)
        return told

    assert asyncio.run(play()) == []


def test_a_store_that_is_briefly_unavailable_is_polled_again(
    memory: Memory, other: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "_RETRY_SECONDS", 0.01)
    fails = [True]

    def ask() -> Memory:
        if fails:
            fails.pop()
            raise StorageError("the database restarts")
        return memory

    async def play() -> ChangeNotice:
        feed = ChangeFeed(ask, interval=0.01)
        following = feed.follow(ready=True)
        await asyncio.wait_for(anext(following), 60)  # a first look was taken, after one that failed
        assert not fails
        await asyncio.to_thread(other.remember, "Ana likes coffee.")
        change = await asyncio.wait_for(anext(following), 60)
        await feed.stop()
        return change

    assert "memories" in asyncio.run(play()).topics


def test_the_end_of_a_feed_that_waits_for_its_store_holds_nothing_up(memory: Memory) -> None:
    begun, answered = threading.Event(), threading.Event()

    def ask() -> Memory:
        begun.set()
        answered.wait(5)
        return memory

    async def play() -> None:
        feed = ChangeFeed(ask, interval=0.01)
        first = asyncio.ensure_future(anext(feed.follow(ready=True)))
        await soon(begun.is_set, "the first look")
        asyncio.get_running_loop().call_later(0.01, answered.set)
        await feed.stop()
        assert answered.is_set(), "the loop went on meanwhile"
        await asyncio.gather(first, return_exceptions=True)

    asyncio.run(play())


def test_an_open_page_is_notified_over_its_stream(place: Path | str) -> None:
    """The stream itself, in the application: topics of a change, as an event."""
    from rlm_mem.dashboard.pages import changed

    with opened(place) as site:
        memory = site.memory

        async def play() -> tuple[bytes, bytes]:
            feed = ChangeFeed(lambda: memory, interval=0.02)
            stream = with_keep_alive(changed(feed))
            hello = await anext(stream)
            coming = asyncio.create_task(anext(stream))
            await soon(lambda: feed._polled.is_set(), "a first look")
            await asyncio.to_thread(memory.remember, "Ana likes coffee.")
            event = await asyncio.wait_for(coming, 60)
            await stream.aclose()  # type: ignore[attr-defined]
            await feed.stop()
            return hello, event

        hello, event = asyncio.run(play())
    assert hello.startswith(b"retry:")
    assert event.startswith(b"event: changed\ndata: ")
    assert b"memories" in event


def test_a_head_of_a_stream_has_no_events_and_ends() -> None:
    sent: list[Message] = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"data: x\n\n"
            await asyncio.Event().wait()

    async def receive() -> Message:
        await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(asyncio.wait_for(stream(endless())({"type": "http", "method": "HEAD"}, receive, send), 5))
    assert (b"content-type", b"text/event-stream; charset=utf-8") in sent[0]["headers"]
    assert sent[1:] == [{"type": "http.response.body", "body": b"", "more_body": False}]


def test_a_stream_without_news_is_kept_alive_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "_KEEP_ALIVE", 0.02)

    async def play() -> list[bytes]:
        late = asyncio.Event()

        async def parts() -> AsyncIterator[bytes]:
            yield b"first"
            await late.wait()
            yield b"second"

        got = []
        async for part in with_keep_alive(parts()):
            got.append(part)
            if len(got) == 3:
                late.set()
        return got

    got = asyncio.run(play())
    assert (got[0], got[-1]) == (b"first", b"second")
    assert len(got) >= 4 and all(part.startswith(b":") for part in got[1:-1])
