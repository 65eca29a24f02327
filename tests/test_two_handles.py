"""Two programs use one memory in turns, by operations drawn at random: both see what a third, opened anew, sees, and
what a plain model says; on both stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import chain, count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from rlm_mem import Memory
from rlm_mem.capture.moving import move_chunks
from rlm_mem.config import Config, StoreConfig
from rlm_mem.errors import RlmMemError
from rlm_mem.interchange.export import export_store
from rlm_mem.interchange.importing import import_source
from tests.postgres import Databases

SPACES = ("main", "team/a")
WORDS = [
    "kestrel",
    "heron",
    "plover",
    "bittern",
    "gannet",
    "wagtail",
    "dunlin",
    "osprey",
    "siskin",
    "wryneck",
    "fulmar",
    "redstart",
]
PEOPLE = ("Zyxanna", "Quillvane")
SETTINGS = Config(store=StoreConfig(durability="normal", lock_wait_seconds=5.0))


class Machine:
    """A memory, the two handles on each of its namespaces, and what should be in it."""

    def __init__(self, place: Path | str, scratch: Path, chance: Random) -> None:
        self.place, self.scratch, self.chance = place, scratch, chance
        self.now = datetime(2026, 2, 1, tzinfo=UTC)
        self.handles = [self.opened() for _ in range(2)]
        self.texts: dict[str, str] = {}
        self.state: dict[str, tuple[str, str]] = {}  # namespace, and active, archived or hidden, by id
        self.erased: set[str] = set()
        self.done: list[str] = []
        self.number = 0

    def clock(self) -> datetime:
        self.now += timedelta(microseconds=1)
        return self.now

    def opened(self) -> dict[str, Memory]:
        return {
            name: Memory.open(self.place, namespace=name, config=SETTINGS, clock=self.clock, actor="Ana")
            for name in SPACES
        }

    def close(self) -> None:
        for memory in chain.from_iterable(handle.values() for handle in self.handles):
            memory.close()

    # --- the model ----------------------------------------------------------------------------------------------

    def ids(self, space: str, *states: str) -> list[str]:
        return [one for one, (name, state) in self.state.items() if name == space and state in states]

    def check(self) -> None:
        fresh = self.opened()
        try:
            views = [self.view(handle) for handle in (fresh, *self.handles)]
        finally:
            for memory in fresh.values():
                memory.close()
        for other in views[1:]:
            for key in views[0]:
                assert views[0][key] == other[key], f"{key}\n" + "\n".join(self.done)
        for name in SPACES:
            assert sorted(views[0][name, "list"]) == sorted(self.ids(name, "active")), self.said()
            assert sorted(views[0][name, "archive"]) == sorted(self.ids(name, "archived")), self.said()
            for one in self.ids(name, "active"):
                assert views[0][name, "get"][one] == self.texts[one], self.said()

    def said(self) -> str:
        return "\n".join(self.done)

    def view(self, handle: dict[str, Memory]) -> dict[tuple[str, str], Any]:
        found: dict[tuple[str, str], Any] = {}
        for name, memory in handle.items():
            listed, archived = memory.list_chunks(limit=1000), memory.list_chunks(archived=True, limit=1000)
            found |= {
                (name, "list"): listed,
                (name, "archive"): archived,
                (name, "get"): {
                    one: getattr(memory.store.get_chunk(one, track=False), "content", None) for one in listed
                },
                (name, "history"): {
                    one: [
                        (version.revision, version.chunk.content, version.chunk.tags)
                        for version in memory.history(one)
                    ]
                    for one in sorted(self.texts)
                },
                (name, "tags"): sorted(memory.tags()),
                (name, "conversations"): sorted(map(str, memory.conversations())),
                (name, "quarantined"): [one.id for one in memory.store.quarantined()],
                (name, "then"): [
                    sorted(memory.list_chunks(as_of=day, limit=1000)) for day in ("2026-02-02", "2026-02-09")
                ],
                (name, "search"): {
                    word: sorted(
                        (hit.chunk_id, hit.superseded_by, round(hit.score, 6))
                        for hit in memory.search(word, limit=50)
                    )
                    for word in WORDS
                },
                (name, "links"): {one: sorted(map(str, memory.links(one))) for one in listed},
                (name, "cases"): sorted(one.id + one.status for one in memory.continuum.review.cases(None)),
                (name, "changes"): [one.id for one in memory.recorded_changes(None)],
            }
        return found

    # --- the operations -----------------------------------------------------------------------------------------

    def step(self, name: str = "") -> None:
        space, handle = self.chance.choice(SPACES), self.chance.randrange(2)
        memory = self.handles[handle][space]
        name = name or self.chance.choice(["remember", *ACTS])
        self.done.append(f"{len(self.done)}: {handle} {space} {name}")
        try:
            ACTS[name](self, memory, space)
        except RlmMemError as error:
            self.done[-1] += f" refused: {error}"
        if name in MAKES:
            self.adopt()
        self.now += timedelta(seconds=self.chance.choice((1, 60, 90_000)))

    def adopt(self) -> None:
        """Take over what an operation with effects beyond the model has made, from a store opened anew."""
        fresh = self.opened()
        try:
            for name, memory in fresh.items():
                for state, listed in (
                    ("active", memory.list_chunks(limit=1000)),
                    ("archived", memory.list_chunks(archived=True, limit=1000)),
                ):
                    for one in listed:
                        if one not in self.state:
                            chunk = memory.store.get_chunk(one, track=False) or memory.store.get_archived(one)
                            assert chunk is not None
                            self.texts[one], self.state[one] = chunk.content, (name, state)
        finally:
            for memory in fresh.values():
                memory.close()

    def text(self) -> str:
        self.number += 1
        one, two = self.chance.sample(WORDS, 2)
        who = self.chance.choice((*PEOPLE, "Nobody", "Nobody"))
        return f"{who} saw the {one} and the {two} at place {self.number}."

    def pick(self, space: str, *states: str) -> str:
        return self.chance.choice(self.ids(space, *states) or ["chunk-2026-01-01-00000000"])


Act = Callable[[Machine, Memory, str], None]


def remember(m: Machine, memory: Memory, space: str) -> None:
    text, old = m.text(), m.pick(space, "active")
    told: tuple[dict[str, Any], ...] = (
        {}, {"tags": ["a", "b"]}, {"conversation_id": "talk"}, {"source": "radio"}, {"replaces": old},
    )  # fmt: skip
    more = m.chance.choice(told)
    for one in memory.remember(text, **more).chunk_ids:
        m.texts[one], m.state[one] = text, (space, "active")


def update(m: Machine, memory: Memory, space: str) -> None:
    one, text = m.pick(space, "active"), m.text()
    if memory.update(one, text) is not None:
        m.texts[one] = text


def tag_all(m: Machine, memory: Memory, space: str) -> None:
    with memory.batch():
        for one in m.ids(space, "active"):
            memory.update(one, tags=[m.chance.choice("abc")])


def archive(m: Machine, memory: Memory, space: str) -> None:
    for one in memory.archive(tags=["a"], dry_run=False):
        m.state[one] = (space, "archived")


def restore_all(m: Machine, memory: Memory, space: str) -> None:
    for one in memory.archive(tags=["a"], restore=True, dry_run=False):
        m.state[one] = (space, "active")


def delete(m: Machine, memory: Memory, space: str) -> None:
    one = m.pick(space, "active")
    if memory.delete(one):
        m.state[one] = (space, "archived")


def restore(m: Machine, memory: Memory, space: str) -> None:
    one = m.pick(space, "archived")
    if memory.restore(one) is not None:
        m.state[one] = (space, "active")


def gone(m: Machine, ids: list[str], *, by_id: bool = False) -> None:
    """Forget erased chunks; only one that was erased by its id may have a copy that stays, in another namespace."""
    for one in ids:
        m.state.pop(one, None)
    left = {m.texts[one] for one in m.state}
    for one in ids:
        if m.texts[one] not in left:
            m.erased.add(m.texts[one])
        elif not by_id:
            raise AssertionError(f"{m.texts[one]} is left\n{m.said()}")


def erase_one(m: Machine, memory: Memory, space: str) -> None:
    one = m.pick(space, "active", "archived", "hidden")
    if memory.delete(one, permanent=True):
        gone(m, [one], by_id=True)


def erase_person(m: Machine, memory: Memory, space: str) -> None:
    report = memory.erase(person=m.chance.choice(PEOPLE), dry_run=False)
    gone(m, report.chunk_ids)
    assert memory.verify_erasure(report) == [], m.said()


def erase_source(m: Machine, memory: Memory, space: str) -> None:
    report = memory.erase(source=m.chance.choice(("radio", "talk")), dry_run=False)
    gone(m, report.chunk_ids)
    assert memory.verify_erasure(report) == [], m.said()


def supersede(m: Machine, memory: Memory, space: str) -> None:
    memory.supersede(m.pick(space, "active"), m.pick(space, "active"), "so", force=True)


def link(m: Machine, memory: Memory, space: str) -> None:
    memory.link(m.pick(space, "active"), m.pick(space, "active"), "supports", 0.5)


def quarantine(m: Machine, memory: Memory, space: str) -> None:
    one = m.pick(space, "active")
    memory.quarantine(one, "so")
    m.state[one] = (space, "hidden")


def release(m: Machine, memory: Memory, space: str) -> None:
    one = m.pick(space, "hidden")
    memory.release(one)
    m.state[one] = (space, "active")


def move(m: Machine, memory: Memory, space: str) -> None:
    one, to = m.pick(space, "active"), SPACES[1 - SPACES.index(space)]
    move_chunks(memory.store, to, [one])
    m.state[one] = (space, "archived")


def exchange(m: Machine, memory: Memory, space: str) -> None:
    """Export a namespace, and import it again, which changes nothing."""
    m.number += 1
    file = m.scratch / f"{m.number}.{m.chance.choice(('jsonl', 'zip'))}"
    export_store(memory.store, file, namespaces=[space], history=m.chance.random() < 0.5)
    import_source(memory.store, file)


def sync_folder(m: Machine, memory: Memory, space: str) -> None:
    folder = m.scratch / f"notes-{space.replace('/', '-')}"
    folder.mkdir(exist_ok=True)
    file = folder / m.chance.choice(("x.md", "y.md"))
    if m.chance.random() < 0.25:
        file.unlink(missing_ok=True)
    else:
        file.write_text(f"# Doc\n\n{m.text()}\n", "utf-8")
    before = {one: m.state[one] for one in m.ids(space, "active", "archived")}
    memory.sync_folder(folder)
    now_archived = set(memory.list_chunks(archived=True, limit=1000))
    now_active = set(memory.list_chunks(limit=1000))
    for one in before:
        m.state[one] = (space, "archived" if one in now_archived else "active")
        assert one in now_archived | now_active, m.said()


def undo(m: Machine, memory: Memory, space: str) -> None:
    """The model takes over what an undo brings back: that both handles agree on it is what is looked at."""
    memory.undo()
    take_over(m)


def undo_one(m: Machine, memory: Memory, space: str) -> None:
    memory.undo(m.pick(space, "active"))
    take_over(m)


def take_over(m: Machine) -> None:
    fresh = m.opened()
    found: dict[str, tuple[str, str]] = {}
    for name, memory in fresh.items():
        for state, listed in (
            ("active", memory.list_chunks(limit=1000)),
            ("archived", memory.list_chunks(archived=True, limit=1000)),
            ("hidden", [one.id for one in memory.store.quarantined()]),
        ):
            for one in listed:
                found[one] = (name, state)
        for one, chunk in memory.store.backend.chunks(name, list(found), status=None).items():
            assert chunk.content not in m.erased, m.said()
            m.texts[one] = chunk.content
        memory.close()
    m.state = found


def rebuild(m: Machine, memory: Memory, space: str) -> None:
    memory.rebuild_index()


def checkpoint(m: Machine, memory: Memory, space: str) -> None:
    memory.checkpoint()


def reopen(m: Machine, memory: Memory, space: str) -> None:
    place = m.chance.randrange(2)
    for one in m.handles[place].values():
        one.close()
    m.handles[place] = m.opened()


def failed_batch(m: Machine, memory: Memory, space: str) -> None:
    try:
        with memory.batch():
            memory.remember(m.text())
            memory.delete(m.pick(space, "active"))
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass


ACTS: dict[str, Act] = {
    one.__name__: one
    for one in (
        remember, update, tag_all, archive, restore_all, delete, restore, erase_one, erase_person, erase_source,
        supersede, link, quarantine, release, move, exchange, sync_folder, undo, undo_one, rebuild, checkpoint, reopen,
        failed_batch,
    )
}  # fmt: skip
MAKES = ("sync_folder", "undo", "undo_one", "move")


@pytest.fixture
def lend(backend: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Path | str]]:
    """Lends an empty place for each example."""
    numbers = count()
    with ExitStack() as stack:
        if backend == "local":
            yield lambda: tmp_path / f"brain{next(numbers)}"
        else:
            databases: Databases = request.getfixturevalue("databases")
            yield lambda: stack.enter_context(databases.lend())


@settings(
    max_examples=2,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
@given(seed=st.integers(0, 2**32))
def test_two_handles_and_a_new_one_agree_with_each_other_and_with_a_model(
    lend: Callable[[], Path | str], tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    machine = Machine(lend(), tmp_path_factory.mktemp("scratch"), Random(seed))
    try:
        for _ in range(4):
            machine.step("remember")
        for number in range(18):
            machine.step()
            if number % 6 == 5:
                machine.check()
        machine.check()
        for memory in machine.handles[0].values():
            assert memory.check() == [], machine.said()
    finally:
        machine.close()
