"""Many texts at once: the result of one after the other, in transactions that others can write between."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Clock
from tests.typed import present

from rlm_mem import Memory, lazy
from rlm_mem.config import Config
from rlm_mem.errors import ConflictError, InputError, InvalidChunk, NotFoundError, RlmMemError
from rlm_mem.ingest import filling
from rlm_mem.proposals import earlier, statements
from rlm_mem.results import Progress
from rlm_mem.store.core import chunk_store, writer
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.local.local_lookup import LocalSource
from rlm_mem.store.postgres.lookup import PostgresSource

LONG = "\n\n".join(
    f"## Part {number}\n\n"
    + " ".join(f"Sentence {part} of {number} tells of pump {part}." for part in range(40))
    for number in range(4)
)


def texts() -> Iterator[dict[str, Any]]:
    """Conversations, loose notes, imports, repetitions, changes of fact, times out of order, and a long text."""
    for number in range(60):
        item: dict[str, Any] = {
            "text": f"Valve {number} of hall {number % 4} was tested by Ines.",
            "tags": [f"hall-{number % 4}", "valves"][: 1 + number % 2],
            "occurred_at": f"2026-02-{1 + number * 7 % 28:02d}T10:{number:02d}:00Z",
        }
        if number % 3:
            item["conversation_id"] = f"talk-{number // 9}"
        if number % 5 == 0:
            item |= {"source": "import", "provenance": {"path": f"log/{number % 2}.md", "title": "The log"}}
        if number % 11 == 0:
            item["trust"] = "quarantined"
        if number % 13 == 0:
            item["metadata"] = {"speaker": "Ines"}
        yield item
        if number % 7 == 0:
            yield item  # word for word
            later = item["occurred_at"].replace(
                ":00Z", ":30Z"
            )  # of equal times the order is that of ids, which are random
            yield {**item, "text": item["text"].upper(), "conversation_id": None, "occurred_at": later}
        if number % 10 == 0:
            yield {
                "text": f"Dana lives in {('Berlin', 'Hamburg', 'Kiel')[number // 10 % 3]}.",
                "trust": "trusted",
            }
    yield {"text": LONG, "conversation_id": "manual", "metadata": {"title": "The manual"}}
    yield {"text": "The key is AKIAIOSFODNN7EXAMPLE.", "tags": "keys"}


def state(memory: Memory, made: Sequence[Any]) -> list[Any]:
    """Everything of the chunks but ids and times of writing, with the order in which they are listed."""
    ids = list(dict.fromkeys(chunk_id for one in made for chunk_id in one.chunk_ids))
    place = {chunk_id: number for number, chunk_id in enumerate(ids)}
    stored = memory.store.backend.chunks("default", ids)
    chunks = []
    for chunk_id in ids:
        data = stored[chunk_id].to_dict()
        meta = data["metadata"]
        for name in ("created_at", "modified_at", "accessed_at"):
            del meta[name]
        meta["valid_to"] = meta["valid_to"] and meta["valid_to"][:19]  # no two times of writing are equal
        links = [
            (place[one["target_id"]], one["type"], one["strength"], one["reasoning"]) for one in data["links"]
        ]
        by = meta.pop("superseded_by")
        chunks.append(
            (
                data["content"],
                data["type"],
                data["tokens"],
                data["tags"],
                data["revision"],
                links,
                meta,
                place.get(by),
            )
        )
    results = [
        ([place[one] for one in result.chunk_ids], result.created, len(result.duplicates), result.tokens,
         [place[one] for one in result.replaced], len(result.proposed), result.not_stored, dict(result.secrets.rules))
        for result in made
    ]  # fmt: skip
    listed = [place[one] for one in memory.list_chunks()]
    memory.store.clock.advance(seconds=1)  # type: ignore[attr-defined]  # past the times of writing
    hits = [
        sorted(round(hit.score, 9) for hit in memory.search(words, limit=8))
        for words in ("valve hall", "pump", "Dana lives")
    ]
    return [chunks, results, listed, hits]


class Standing(Clock):
    """A clock that stands still, so that times do not depend on how often it is asked."""

    def __call__(self) -> Any:
        return self.now


def opened(place: Path | str, namespace: str | None = None, **settings: Any) -> Memory:
    return Memory.open(
        place, clock=Standing(), namespace=namespace, config=Config.load(**settings) if settings else None
    )


@pytest.fixture
def memory(place: Path | str) -> Iterator[Memory]:
    with opened(place) as memory:
        yield memory


def test_many_texts_give_what_one_after_the_other_gives(place: Path | str, tmp_path: Path) -> None:
    with opened(tmp_path / "single") as single:
        wanted = state(single, [single.remember(**item) for item in texts()])
    with opened(place) as memory:
        made = memory.remember_many(texts(), batch=17)
        assert state(memory, made) == wanted
        assert memory.check() == []


def test_the_index_is_asked_about_dozens_of_sentences_at_once(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where each question takes a round trip; what is replaced is the same as one by one."""
    before = [f"Ines{number} lives in Berlin." for number in range(40)]
    after = [f"Ines{number} moved to Kiel." for number in range(40)]
    clock = Standing()
    with Memory.open(tmp_path / "single", clock=clock) as single:
        each = [single.remember(text) for text in before]
        clock.advance(milliseconds=1)
        wanted = state(single, each + [single.remember(text) for text in (*after, *after[:3])])
    asked: list[int] = []
    ask = PostgresSource.holding_each

    def counted(source: PostgresSource, questions: Sequence[Any], *more: Any) -> Any:
        asked.append(len(questions))
        return ask(source, questions, *more)

    clock = Standing()
    with Memory.open(dsn, clock=clock) as memory:
        made = memory.remember_many(before)
        clock.advance(milliseconds=1)
        monkeypatch.setattr(PostgresSource, "holding_each", counted)
        monkeypatch.setattr(
            filling, "_LONGEST_LOCK", 600.0
        )  # else a busy machine commits, and asks, more often
        made += memory.remember_many((*after, *after[:3]))
        assert state(memory, made) == wanted
    assert sum(len(one.replaced) for one in made) == 40
    assert len(asked) <= 3 and max(asked) >= 20


def test_sentences_whose_words_no_earlier_chunk_has_are_not_looked_up(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    for source in (LocalSource, PostgresSource):

        def counted(found: Any, questions: Any, *more: Any, ask: Any = source.holding_each) -> Any:
            asked.extend(term for groups, _ in questions for group in groups for term in group)
            return ask(found, questions, *more)

        monkeypatch.setattr(source, "holding_each", counted)
    with opened(place) as memory:
        memory.remember("Ines lives in Berlin.")
    with opened(place) as memory:
        made = memory.remember_many(
            ["Ottokar lives in Wien.", "Ottokar moved to Kiel.", "Ines moved to Kiel."], batch=1
        )
    assert [len(one.replaced) for one in made] == [0, 1, 1]
    assert "ine" in asked and "ottokar" not in asked


def test_chunks_of_a_filling_are_compared_however_many_there_are(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(earlier, "_KEPT_FILLING", 5)
    names = [f"Ines{number}" for number in range(18)]
    told = [f"{name} {what}." for what in ("lives in Berlin", "moved to Kiel") for name in names]
    with opened(place) as memory:
        made = memory.remember_many(told, batch=9)
    assert [len(one.replaced) for one in made] == [0] * 18 + [1] * 18


def test_of_any_number_of_fillings_the_statements_of_some_texts_are_cached(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statements, "_TEXTS", 300)
    with opened(place) as memory:
        cached = present(memory._finder())._earlier.statements
        for name in ("Ines", "Omar", "Dana"):
            told = [
                f"{name}{number} {what}."
                for what in ("lives in Berlin", "moved to Kiel")
                for number in range(18)
            ]
            made = memory.remember_many(told, batch=9)
            assert [len(one.replaced) for one in made] == [0] * 18 + [1] * 18
            assert 0 < sum(map(len, cached)) <= 300


def test_what_others_write_between_two_transactions_is_replaced(place: Path | str) -> None:
    with opened(place) as memory, opened(place) as other:

        def write(stored: int, _: int) -> None:
            if stored == 1:
                other.remember("Ines lives in Berlin.")

        made = memory.remember_many(
            ["Pump 9 hums.", "A gate.", "Ines moved to Kiel."], batch=1, progress=write
        )
    assert [len(one.replaced) for one in made] == [0, 0, 1]


@pytest.mark.local_only("analysis does not depend on the store")
def test_other_processes_give_the_same(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "_WORTH_FORKS", 4_000)
    monkeypatch.setattr(filling, "_WORTH_PROCESSES", 4_000)
    monkeypatch.setattr(filling, "_LOT_CHARACTERS", 1_000)
    started: list[int] = []
    found = []
    kept = filling.called

    def called(*args: Any, **named: Any) -> Any:
        started.append(named["processes"] if named["count"] >= named["few"] else 0)
        return kept(*args, **named)

    monkeypatch.setattr(filling, "called", called)
    for processes in (1, 2):
        with opened(place.with_name(f"brain-{processes}"), store={"processes": processes}) as memory:
            found.append(state(memory, memory.remember_many(texts(), batch=50)))
    assert started == [1, 2] and found[0] == found[1]


@pytest.mark.local_only("analysis does not depend on the store")
def test_other_processes_are_for_many_characters_and_take_a_few_long_texts_at_once(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filling, "_WORTH_FORKS", 300_000)
    monkeypatch.setattr(filling, "_WORTH_PROCESSES", 3_000)
    monkeypatch.setattr(filling, "can_fork", lambda: False)
    monkeypatch.setattr(filling, "_LOT_CHARACTERS", 2_000)
    asked: list[tuple[bool, int]] = []

    def called(_: str, given: str, items: Iterator[str], *_shape: Any, **named: Any) -> Any:
        asked.append((named["count"] >= named["few"], named["lot"]))
        yield from filling.analyse_texts(given, list(items))

    monkeypatch.setattr(filling, "called", called)
    memory.remember_many([f"Text {number}." for number in range(20)])
    memory.remember_many([f"Ines moved crate {number}. " * 40 for number in range(5)])
    assert asked == [(False, 18), (True, 2)]


def test_texts_are_stored_while_the_next_one_is_not_analysed_yet(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text of several chunks counts as many: storing them takes as long as storing as many short texts."""
    monkeypatch.setattr(filling, "_WORTH_STORING", 3)
    monkeypatch.setattr(filling, "_WORTH_STORING_IDLE", 2)
    did: list[bool] = []

    def called(_: str, given: str, items: Iterator[str], *_shape: Any, otherwise: Any, **_named: Any) -> Any:
        for number, item in enumerate(items):
            did.append(otherwise(number >= 5))  # nothing else to do from then on
            yield from filling.analyse_texts(given, [item])

    monkeypatch.setattr(filling, "called", called)
    told: list[tuple[int, int]] = []
    long = "\n\n".join(f"Part {number}: {'a crate was packed ' * 40}" for number in range(3))
    made = memory.remember_many(
        [long, *(f"Text {number}." for number in range(6))], progress=lambda *given: told.append(given)
    )
    assert [one.created for one in made] == [2, 1, 1, 1, 1, 1, 1]
    assert did == [False, False, True, False, False, True, False]
    assert told == [(2, 2), (5, 5), (7, 7)]


def test_two_texts_of_a_batch_never_have_one_id(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    there = memory.remember("there before").chunk_ids[0]
    drawn = [there, there[:-8] + "00000000", there[:-8] + "00000000"]
    monkeypatch.setattr(chunk_store, "new_chunk_id", lambda _: drawn.pop(0))
    made = memory.remember_many(["first", "second", "third"])
    ids = [there, *(one.chunk_ids[0] for one in made)]
    assert len(set(ids)) == 4 and ids[2] == there[:-8] + "00000000"
    found = memory.store.get_many(ids)
    assert [found[one].content for one in ids] == ["there before", "first", "second", "third"]


@pytest.mark.local_only("looks at files")
def test_no_text_of_a_batch_gets_the_id_of_a_file_in_the_archive(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = memory.remember("there before").chunk_ids[0]
    taken, free = there[:-8] + "00000000", there[:-8] + "00000001"
    backend: Any = memory.store.backend
    backend.layout.archive.mkdir(exist_ok=True)
    (backend.layout.archive / f"{taken}.json").write_text("{}")  # no index has it
    drawn = [taken, free]
    monkeypatch.setattr(chunk_store, "new_chunk_id", lambda _: drawn.pop(0))
    monkeypatch.setattr(writer, "new_chunk_id", lambda _: drawn.pop(0))
    assert memory.remember_many(["first"])[0].chunk_ids == [free]


@pytest.mark.local_only("reads statements of SQLite")
def test_the_terms_and_the_time_of_each_batch_are_looked_up_at_once(memory: Memory) -> None:
    memory.remember("before")
    asked: list[str] = []
    backend: Any = memory.store.backend
    backend.connection.set_trace_callback(asked.append)
    memory.remember_many([f"Word{number} and other{number}." for number in range(6)], batch=3)
    backend.connection.set_trace_callback(None)
    terms = [
        statement for statement in asked if statement.startswith("SELECT") and " FROM terms " in statement
    ]
    assert terms and all("json_each" in statement for statement in terms)
    assert len([statement for statement in asked if "max(created_at)" in statement]) == 2


def test_what_others_write_between_two_transactions_is_linked(memory: Memory, place: Path | str) -> None:
    hums: list[str] = []
    with opened(place) as other:

        def write(stored: int, _: int) -> None:
            if stored == 2:
                hums.extend(other.remember("Pump 9 hums.", conversation_id="hall", tags="pumps").chunk_ids)

        items = [{"text": f"Pump {n} runs.", "conversation_id": "hall", "tags": "pumps"} for n in range(4)]
        made = memory.remember_many(items, batch=2, progress=write)
    third = memory.get(made[2].chunk_ids[0])
    assert third is not None
    assert {link.type for link in third.links if link.target_id in hums} == {
        "context_of",
        "follows",
        "related_to",
    }


def test_a_text_that_cannot_be_stored_is_named_and_those_before_it_are_stored(memory: Memory) -> None:
    first = memory.remember("The first.").chunk_ids[0]
    refused: list[tuple[object, type[RlmMemError], str]] = [
        ("  ", InvalidChunk, "text 3: there is nothing to remember: the text is empty"),
        (b"bytes", InvalidChunk, "text 3: it must be str or a mapping with the key text, not bytes"),
        ({"text": 7}, InvalidChunk, "text 3: the text to remember must be str, not int"),
        ({"text": "x", "colour": "red"}, InvalidChunk, "text 3: remember does not take 'colour'"),
        ({"text": "x", "confidence": 2}, InvalidChunk, "text 3: confidence"),
        ({"text": "x", "occurred_at": "yesterday"}, InvalidChunk, "text 3: occurred_at"),
        ({"text": "x", "secrets": "shout"}, InputError, "text 3: "),
        ({"text": "\ud800"}, InvalidChunk, "text 3: "),
        ({"text": "x", "replaces": "chunk-2026-01-01-00000000"}, NotFoundError, "text 3: there is no chunk"),
        (
            {"text": "The first.", "replaces": first},
            InvalidChunk,
            f"text 3: {first} has exactly the same text",
        ),
    ]
    for number, (item, kind, message) in enumerate(refused):
        before = memory.stats().chunk_count
        with pytest.raises(kind) as caught:
            memory.remember_many([f"{number} a", f"{number} b", f"{number} c", item, f"{number} d"], batch=10)
        assert str(caught.value).startswith(message)
        assert memory.stats().chunk_count == before + 3
    for wrong in ("one text", {"text": "a"}, b"x"):
        with pytest.raises(InvalidChunk, match="items must be several texts"):
            memory.remember_many(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="batch must be a whole number from 1 up, not 0"):
        memory.remember_many(["a"], batch=0)


def test_texts_that_cannot_be_stored_can_be_left_out(memory: Memory) -> None:
    old = memory.remember("The gate is blue.").chunk_ids[0]
    items = [
        "a",
        "",
        {"text": "The gate is red.", "replaces": old},
        {"text": "The gate is green.", "replaces": old},
        "b",
    ]
    told: list[tuple[int, type[RlmMemError]]] = []
    made = filling.remember_many(
        memory.store, items, refused=lambda number, error: told.append((number, type(error)))
    )
    assert told == [(1, InvalidChunk), (3, ConflictError)]
    contents = [memory.get(one.chunk_ids[0]) for one in made]
    assert [one.content for one in contents if one] == ["a", "The gate is red.", "b"]


def test_a_text_that_can_no_longer_be_stored_when_it_is_stored_again_is_left_out(
    memory: Memory, place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that cannot be stored ends its transaction, and those before it are stored in another one."""
    old = memory.remember("The gate is blue.").chunk_ids[0]
    store_some, tries = filling._Filling._store_some, []

    def interrupted(self: Any, most: int) -> int:
        tries.append(most)
        if len(tries) == 2:
            with opened(place) as other:
                other.delete(old)
        return store_some(self, most)

    monkeypatch.setattr(filling._Filling, "_store_some", interrupted)
    items = [
        "a",
        {"text": "The gate is red.", "replaces": old},
        {"text": "b", "replaces": "chunk-2026-01-01-0"},
    ]
    told: list[tuple[int, type[RlmMemError]]] = []
    made = filling.remember_many(
        memory.store, [*items, "c"], refused=lambda number, error: told.append((number, type(error)))
    )
    assert told == [(1, NotFoundError), (2, NotFoundError)]
    contents = [memory.get(one.chunk_ids[0]) for one in made]
    assert [one.content for one in contents if one] == ["a", "c"]


def test_within_a_batch_all_of_them_are_stored_or_none(memory: Memory) -> None:
    with pytest.raises(InvalidChunk, match="text 2: "), memory.batch():
        memory.remember_many(["a", "b", ""], batch=1)
    assert memory.stats().chunk_count == 0
    with memory.batch():
        memory.remember("before")
        memory.remember_many(["a", "b", "c"], batch=1)
    assert memory.stats().chunk_count == 4


def test_within_a_batch_nothing_of_a_text_that_is_left_out_is_stored(memory: Memory) -> None:
    old = memory.remember("The gate is blue.").chunk_ids[0]
    told: list[tuple[int, type[RlmMemError]]] = []

    def fill(*items: Any) -> list[int]:
        made = filling.remember_many(
            memory.store, items, refused=lambda number, error: told.append((number, type(error)))
        )
        return [one.created for one in made]

    no_chunk = "chunk-2026-01-01-00000000"
    with memory.batch():
        with pytest.raises(NotFoundError):
            memory.remember("The gate is red.", replaces=no_chunk)
        assert fill("a", {"text": "The gate is red.", "replaces": no_chunk}, "b") == [1, 1]
    assert told == [(1, NotFoundError)]
    contents = {chunk.content for chunk in memory.store.iter_chunks()}
    assert contents == {"The gate is blue.", "a", "b"}
    # That a part of the text has the words of what it replaces is found when the parts before it are written.
    memory.remember(LONG, conversation_id="manual")
    last = memory.list_chunks("manual")[-1]
    changed = {"text": LONG.replace("Part 0", "Part nought"), "conversation_id": "manual", "replaces": last}
    with pytest.raises(InvalidChunk, match="text 1: "), memory.batch():
        fill("c", changed, "d")
    assert {"c", "d"}.isdisjoint(chunk.content for chunk in memory.store.iter_chunks())
    assert memory.get(old)


def test_a_transaction_ends_when_it_takes_long(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filling, "_LONGEST_LOCK", 0.0)
    told: list[tuple[int, int]] = []
    memory.remember_many(
        [f"Text {number}." for number in range(4)], progress=lambda *given: told.append(given)
    )
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.fixture
def own_threshold() -> Iterator[tuple[int, int, int]]:
    """What a program has set for the collection of garbage; it is as before after the test."""
    before = gc.get_threshold()
    gc.set_threshold(600, 9, 8)
    yield 600, 9, 8
    gc.set_threshold(*before)


def test_garbage_is_collected_more_rarely_until_the_last_of_several_fillings_ends(
    memory: Memory, own_threshold: tuple[int, int, int]
) -> None:
    seen: list[int] = []

    def look(*_: int) -> None:
        seen.append(gc.get_threshold()[0])

    def nested() -> Iterator[str]:
        yield "Outer."
        memory.remember_many(["Inner."], progress=look)
        seen.append(gc.get_threshold()[0])
        yield "Outer, again."

    with pytest.raises(InvalidChunk):
        memory.remember_many([*nested(), ""], progress=look)
    assert gc.get_threshold() == own_threshold
    memory.remember_many(nested(), progress=look)
    assert seen[-3:] == [lazy.GARBAGE_THRESHOLD] * 3
    assert gc.get_threshold() == own_threshold


@pytest.mark.parametrize("threshold", [(0, 10, 10), (900_000, 10, 10)])
def test_a_program_that_collects_no_garbage_or_less_of_it_is_left_alone(
    memory: Memory, own_threshold: tuple[int, int, int], threshold: tuple[int, int, int]
) -> None:
    gc.set_threshold(*threshold)
    seen: list[tuple[int, int, int]] = []
    memory.remember_many(["A text."], progress=lambda *_: seen.append(gc.get_threshold()))
    assert [*seen, gc.get_threshold()] == [threshold] * 2


def test_what_a_program_sets_during_a_filling_stays(
    memory: Memory, own_threshold: tuple[int, int, int]
) -> None:
    memory.remember_many(["A text."], progress=lambda *_: gc.set_threshold(1_234, 9, 8))
    assert gc.get_threshold() == (1_234, *own_threshold[1:])


def test_what_a_filling_made_is_old_at_its_end_unless_the_program_keeps_objects_from_collection(
    memory: Memory, own_threshold: tuple[int, int, int]
) -> None:
    """Else the next new object would have the collection read all of it."""
    (made,) = memory.remember_many(["A text."])
    assert any(one is made for one in gc.get_objects(generation=2))
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        memory.remember_many(["Another text."])
        assert gc.get_freeze_count() >= frozen // 2
    finally:
        gc.unfreeze()


@pytest.mark.local_only("looks at files")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks its victims: needs a POSIX system")
def test_a_kill_loses_nothing_of_finished_transactions(place: Path) -> None:
    with opened(place) as memory:  # modules are loaded before the forks
        memory.remember_many(["The first of all."])
    known = 1
    for seed in range(2):
        reader, writer = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(reader)
            _fill_until_killed(place, writer, seed)
        os.close(writer)
        stored = 0
        with os.fdopen(reader, "rb") as lines:
            for line in lines:
                stored = int(line)
                if stored >= 16 + 8 * seed:
                    os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with opened(place) as memory:
            found = memory.stats().chunk_count
            assert found >= known + stored
            assert (found - known) % 8 == 0  # whole transactions only
            assert memory.check() == []
            known = found


def _fill_until_killed(place: Path, writer: int, seed: int) -> None:
    """In a child: acknowledge each transaction; the child never returns into pytest."""
    acknowledge: Progress = lambda stored, _: os.write(writer, f"{stored}\n".encode())  # noqa: E731
    sys.stdout.flush()
    try:
        with opened(place) as memory:
            memory.remember_many(
                (f"Note {seed} {n} of pump {n % 9}." for n in range(100_000)), batch=8, progress=acknowledge
            )
    finally:
        os._exit(1)


def test_tags_that_no_chunk_has_are_not_looked_up_one_by_one(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory.open(place) as memory:
        old = memory.remember("The first rack is blue.", tags=["tag-3-0", "tag-3-1"]).chunk_ids[0]
        asked = list[object]()
        listed = ChunkStore.latest

        def counted(store: ChunkStore, limit: int, **wanted: Any) -> Any:
            asked.append(wanted.get("tag"))
            return listed(store, limit, **wanted)

        monkeypatch.setattr(ChunkStore, "latest", counted)
        made = memory.remember_many(
            [
                {
                    "text": f"Rack {number} has the number {number * 37}.",
                    "tags": [f"tag-{number}-{n}" for n in range(8)],
                }
                for number in range(30)
            ]
        )
        assert sorted(str(tag) for tag in asked if tag) == ["tag-3-0", "tag-3-1"]
        # What the batch itself stored is linked, too.
        later = memory.remember_many([{"text": "A new rack.", "tags": ["tag-7-1"]}])[0].chunk_ids[0]
        assert [one.chunk_id for one in memory.links(later, "related_to", "out")] == made[7].chunk_ids
        assert [one.chunk_id for one in memory.links(made[3].chunk_ids[0], "related_to", "out")] == [old]
