"""Random histories on files and PostgreSQL side by side: every answer is the same, and so is everything afterwards.

Hypothesis prints the seed of a history in which they differ. Ids and clock are the same on both sides.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from rlm_mem import Memory
from rlm_mem.capture.moving import move_chunks
from rlm_mem.chunk import Chunk
from rlm_mem.config import Config
from rlm_mem.errors import RlmMemError
from rlm_mem.interchange import export_store, import_source
from rlm_mem.store.core import chunk_store, writer
from tests.continuum.conftest import STEPS
from tests.postgres import Databases

SPACES = ("main", "team/a")
TEXTS = (
    "The standup is at 9:15.", "The standup is at 9:45.", "The standup moved from 9:15 to 9:45.",
    "Dana lives in Berlin.", "Dana moved from Berlin to Hamburg.", "dana LIVES in Berlin",
    "Deploys always happen on Fridays.", "Deploys never happen on Fridays.", "Ana: I like plums.\nBen: I like figs.",
    "Ångström, café, naïve, 中文, 😀", "A line\u2028of \x1b[31mred\x00 control characters.",
)  # fmt: skip
QUESTIONS = ("When is the standup?", "Where does Dana live?", "plums", "")
TAGS = ("a", "b", "café", "cafe\u0301")
DAYS = (None, None, "2026-01-05", "2026-02-10", "2027-05-05", "1999-12-31T23:59:59.999999Z", "soon")
TYPES = ("supports", "contradicts", "follows", "supersedes", "nonsense")
QUICK = Config.load(environ={}, store={"durability": "normal", "views_limit": 0})
Act = Callable[["Side"], object]


class Side:
    """One of the two: its memories, one for each namespace, and its clock, which advances by 1 µs with each call."""

    def __init__(self, place: Path | str, scratch: Path) -> None:
        self.place, self.scratch = place, scratch
        self.now, self.calls = datetime(2026, 2, 10, 12, tzinfo=UTC), 0
        self.begin: Callable[[int], None] = lambda part: None
        scratch.mkdir()
        self.open()

    def open(self) -> None:
        self.memories = {
            name: Memory.open(self.place, namespace=name, config=QUICK, clock=self.clock, actor="Ana")
            for name in SPACES
        }

    def close(self) -> None:
        for memory in self.memories.values():
            memory.close()

    def clock(self) -> datetime:
        self.calls += 1
        return self.now + timedelta(microseconds=self.calls)

    def reopen(self) -> None:
        self.close()
        self.open()


def plain(value: object) -> Any:
    """A result as plain data, without the ids of changes and what is smaller than a millisecond."""
    if isinstance(value, BaseException):
        return type(value).__name__, plain(str(value))
    if isinstance(value, Chunk):
        return plain(value.to_dict())
    if is_dataclass(value) and not isinstance(value, type):
        # Of equally good proposals, either may be found first.
        return {one.name: plain(getattr(value, one.name)) for one in fields(value) if one.name != "proposed"}
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):  # reads are counted in buffers, which need not be written at the same moment
        return {
            str(key): plain(one) for key, one in value.items() if key not in ("access_count", "accessed_at")
        }
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, str):
        value = re.sub(r"(:\d\d\.\d{3})\d{3}Z", r"\1Z", value)
        return re.sub(r"\b\d{20}-[0-9a-f]{16}\b", "CHANGE", re.sub(r"\S*/side-\w+", "SIDE", value))
    return value


def state(side: Side) -> Any:
    """Everything that can be read."""
    found: dict[str, Any] = {}
    for name, memory in side.memories.items():
        store, ids, archived = memory.store, memory.list_chunks(), memory.list_chunks(archived=True)
        # The order within a change is no promise. In files, a repetition within a batch that fails stays in the log,
        # and each line names the clone of the folder. The digest of a state has microseconds.
        log = sorted(
            (
                {key: one[key] for key in one if key not in ("clone", "state")}
                for one in store.events()
                if one["op"] != "repeat"
            ),
            key=lambda one: (one["ts"][:23], str(one.get("op")), str(one.get("chunk_id"))),
        )
        found[name] = {
            "ids": ids, "archived": archived, "newest": memory.list_chunks(newest_first=True, limit=3),
            "quarantined": [one.id for one in store.quarantined()], "expired": store.expired(),
            "tags": memory.tags(), "conversations": memory.conversations(),
            "chunks": [sorted_links(chunk) for chunk in store.iter_chunks()],
            "former": {one: store.get_archived(one) for one in archived},
            "history": {one: [version.chunk.content for version in memory.history(one)] for one in ids + archived},
            "links": {one: sorted(plain(memory.links(one)), key=str) for one in ids},
            "search": [[(hit.chunk_id, hit.score, hit.marks()) for hit in memory.search(one)] for one in QUESTIONS],
            "then": [memory.list_chunks(as_of=one) for one in ("2026-01-20", "2026-02-10", "2026-02-12", "2030-01-01")],
            "search then": [hit.chunk_id for hit in memory.search("standup Dana", as_of="2026-02-11")],
            "earlier": {one: [hit.chunk_id for hit in memory.earlier(one)] for one in ids[-3:]},
            "cases": memory.continuum.review.cases(None),
            "log": log, "changes": [sorted(one.chunk_ids) for one in memory.recorded_changes(None)],
        }  # fmt: skip
    return plain(found)


def findings(side: Side) -> list[str]:
    return [str(one) for memory in side.memories.values() for one in memory.check()]


def sorted_links(chunk: Chunk) -> dict[str, Any]:
    """Of links that are equally strong, either may be made first."""
    data = chunk.to_dict()
    data["links"].sort(key=lambda link: (link["type"], link["target_id"]))
    return data


def an_act(chance: Random, ids: list[str], number: int, name: str = "") -> tuple[str, Act]:
    """What happens next, as text and as a function; all choices are made here."""
    name = name or chance.choice(("main", "main", "main", "team/a"))
    one, other = (chance.choice([*ids, "chunk-none"]) for _ in range(2))
    text, day, tags = chance.choice(TEXTS), chance.choice(DAYS), chance.sample(TAGS, 2)
    told: dict[str, Any] = {"occurred_at": day, "again": chance.random() < 0.2}
    told |= chance.choice([{}, {}, {"tags": tags}, {"conversation_id": "one"}, {"replaces": one}, {"ttl": "1d"},
                           {"origin": chance.choice(["agent", "web", "radio"])}, {"trust": "quarantined"}])  # fmt: skip
    change: dict[str, Any] = chance.choice([
        {"content": f"{text} Changed."}, {"tags": tags}, {"confidence": 2}, {"links": []},
        {"links": [{"target_id": other, "type": "supersedes"}]}, {"metadata": {"superseded_by": other}},
        {"metadata": {"superseded_by": None}}, {"metadata": {"valid_to": "2026-02-12"}},
        {"metadata": {"trust": "quarantined"}}, {"metadata": {"expires_at": "2026-02-15"}},
    ])  # fmt: skip
    items = [{"text": chance.choice(TEXTS), "occurred_at": chance.choice(DAYS)} for _ in range(3)]
    kind, to = chance.choice(TYPES), chance.choice(SPACES)
    place, days, picked = (
        chance.randrange(8),
        chance.choice([0, 1, 9]),
        chance.choice(["approve", "reject", "defer"]),
    )
    fails, person, body = (
        chance.random() < 0.4,
        chance.choice(["Dana", "Ben"]),
        "\n\n".join(["# Doc", text, "[[y]]"]),
    )

    def of(side: Side) -> Memory:
        return side.memories[name]

    def undo_one(side: Side) -> object:
        found = of(side).recorded_changes(None)
        return of(side).undo(change=found[place % len(found)].id) if found else None

    def decide(side: Side) -> object:
        review = of(side).continuum.review
        cases = sorted(review.cases(), key=lambda case: case.id)
        if not cases:
            return None
        case = cases[place % len(cases)].id
        return case, getattr(review, picked)(case, reviewer="Bea", reason="so").op

    def sync(side: Side) -> object:
        folder = side.scratch.parent / "notes"
        folder.mkdir(exist_ok=True)
        file = folder / ("x.md", "y.md")[place % 2]
        if place >= 6:
            file.unlink(missing_ok=True)
        elif side.scratch.name == "side-files":  # once: its time is part of what is stored
            file.write_text(body.replace("\x00", ""), "utf-8")
        return of(side).sync_folder(folder).chunk_ids

    def carry(side: Side) -> object:
        file = side.scratch / f"{number}.{('jsonl', 'zip')[place % 2]}"
        export_store(of(side).store, file, namespaces=[name], history=fails)
        return import_source(side.memories[to].store, file, replace=place < 3, history=fails)

    def erase(side: Side) -> object:
        report = of(side).erase(person=person, dry_run=fails)
        return sorted(report.chunk_ids), [] if fails else of(side).verify_erasure(report)

    def tick(side: Side) -> None:
        side.now += timedelta(days=days)

    acts: dict[str, tuple[int, Act]] = {
        f"remember {text!r} {told}": (10, lambda side: of(side).remember(text, **told)),
        f"remember_many {items}": (3, lambda side: of(side).remember_many(items, batch=1 + place)),
        f"update {one} {change}": (8, lambda side: of(side).update(one, **change)),
        f"supersede {one} {other} {fails}": (5, lambda side: of(side).supersede(one, other, "so", force=fails)),
        f"link {one} {other} {kind}": (3, lambda side: of(side).link(one, other, kind, 0.7)),
        f"unlink {one} {other}": (1, lambda side: of(side).unlink(one, other)),
        f"delete {one}": (4, lambda side: of(side).delete(one)),
        f"delete {one} for good": (1, lambda side: of(side).delete(one, permanent=True)),
        f"restore {one}": (3, lambda side: of(side).restore(one)),
        "undo": (5, lambda side: of(side).undo()),
        f"undo {one}": (3, lambda side: of(side).undo(one)),
        f"undo change {place}": (3, undo_one),
        f"quarantine {one}": (3, lambda side: of(side).quarantine(one, "so")),
        f"release {one}": (2, lambda side: of(side).release(one)),
        f"{picked} case {place}": (3, decide),
    }  # fmt: skip
    if number < 100:  # not within a batch
        inner = [an_act(chance, ids, 100 * (number + 1) + part, name) for part in range(3)]

        def batch(side: Side) -> object:
            made: list[object] = []
            with of(side).batch():
                for part, (_, act) in enumerate(inner):
                    side.begin(part)
                    try:
                        made.append(act(side))
                    except RlmMemError as error:
                        made.append(error)
                if fails:
                    raise NotImplementedError
            return made

        acts |= {
            f"batch {fails} {'; '.join(said for said, _ in inner)}": (3, batch),
            f"sync {place} {text!r}": (3, sync),
            f"move {one} to {to}": (2, lambda side: move_chunks(of(side).store, to, [one])),
            f"export, import to {to} {place} {fails}": (2, carry),
            f"erase {person} {fails}": (1, erase),
            f"tick {days}": (4, tick),
            "sweep": (1, lambda side: of(side).store.sweep()),
            "record": (1, lambda side: of(side).continuum.traces.record("Go", STEPS, success=True).key),
            "consolidate": (1, lambda side: str(of(side).continuum.consolidate())[:0]),
            "reopen": (1, Side.reopen),
            "checkpoint": (1, lambda side: str(of(side).checkpoint())[:0]),
            "check": (1, lambda side: of(side).check()),
        }  # fmt: skip
    said = chance.choices(list(acts), [weight for weight, _ in acts.values()])[0]
    return f"{name}: {said}", acts[said][1]


def differences(one: Any, other: Any, where: str = "") -> Iterator[str]:
    """Where two results differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            yield from differences(one.get(key), other.get(key), f"{where}/{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for place, (first, second) in enumerate(zip(one, other, strict=True)):
            yield from differences(first, second, f"{where}/{place}")
    elif isinstance(one, list) and isinstance(other, list):
        more = [line for line in one if line not in other], [line for line in other if line not in one]
        yield f"{where}: only files {more[0]}, only rows {more[1]}"
    elif one != other:
        yield f"{where}: files {one}, rows {other}"


class Pair:
    """Files and PostgreSQL."""

    def __init__(self, dsn: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.sides = [Side(folder / "brain", folder / "side-files"), Side(dsn, folder / "side-rows")]
        self.done: list[str] = []
        self._made = self._first = 0
        for side in self.sides:
            side.begin = self._begin
        for module in (chunk_store, writer):
            patch.setattr(module, "new_chunk_id", self._new_id)

    def _new_id(self, now: datetime) -> str:
        self._made += 1
        return f"chunk-{now:%Y-%m-%d}-{self._made * 2654435761 % 2**32:08x}"

    def _begin(self, part: int) -> None:
        """Begin a part of a batch with the same id on both sides, however many one before it that failed has taken."""
        self._made = self._first + 10 * part

    def do(self, said: str, act: Act) -> Any:
        """Let both do it; the same must come of it."""
        self.done.append(said)
        results, self._first = [], (self._made // 100 + 1) * 100
        for side in self.sides:
            self._made, side.calls = self._first, 0
            side.now += timedelta(milliseconds=1)
            try:
                results.append(plain(act(side)))
            except (RlmMemError, NotImplementedError) as error:
                results.append(plain(error))
        assert results[0] == results[1], "\n".join([*self.done, *differences(*results)])
        return results[0]

    def look(self) -> Any:
        return self.do("look", state)


@settings(
    max_examples=4,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
)
@given(seed=st.integers(0, 2**32))
def test_files_and_rows_give_the_same_answers(databases: Databases, seed: int) -> None:
    chance = Random(seed)
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp())
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        dsn = stack.enter_context(databases.lend())
        pair = Pair(dsn, folder, stack.enter_context(pytest.MonkeyPatch.context()))
        for side in pair.sides:
            stack.callback(side.close)
        ids: list[str] = []
        for number in range(24):
            if number < 4:
                text, name = chance.choice(TEXTS), chance.choice(SPACES)
                pair.do(
                    f"{name}: remember {text!r}", lambda side, t=text, n=name: side.memories[n].remember(t)
                )
            else:
                pair.do(*an_act(chance, ids, number))
            if number % 6 == 3:
                known = pair.look()
                ids = sorted({one for space in known.values() for one in space["ids"] + space["archived"]})
        pair.look()
        assert pair.do("check", findings) == [], "\n".join(pair.done)
        for side in pair.sides:  # each by itself: a rebuild may number memories of one time anew
            before = state(side)
            side.memories["main"].rebuild_index()
            side.reopen()
            after = state(side)
            for name in SPACES:
                for what in ("chunks", "former", "history", "links", "cases", "log", "tags", "conversations"):
                    assert sorted(before[name][what], key=str) == sorted(after[name][what], key=str), what
        for name in SPACES:
            while isinstance(
                pair.do(f"{name}: undo", lambda side, name=name: side.memories[name].undo()), dict
            ):
                assert len(pair.done) < 500, "an undo comes to an end"
        pair.do(
            "what is left", lambda side: [sorted(memory.list_chunks()) for memory in side.memories.values()]
        )
        assert pair.do("check", findings) == [], "\n".join(pair.done)


def test_of_many_alike_the_same_ones_are_replaced_by_both(
    databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = (
        "Use 9 cups instead of 3 in production.", "Use 2 instead of 4 in staging.",
        "We use 7 threads on the quay. Use 5 workers instead of 8 for the harbour.",
        "We use 2 buckets. Use SQLite instead of SQLite for the harbour.", "Use 5 instead of 3.",
        "3 ports are needed on the quay.", "Use 3 replicas instead of 6.", "Use 9 instead of 2.",
        "Use 4 instead of 9. Use 3 instead of 8.",
    )  # fmt: skip
    with databases.lend() as dsn, ExitStack() as stack:
        pair = Pair(dsn, tmp_path, monkeypatch)
        for side in pair.sides:
            stack.callback(side.close)
        for text in texts:
            pair.do(text, lambda side, text=text: side.memories["main"].remember(text))
        pair.do("cases", lambda side: side.memories["main"].continuum.review.cases(None))
