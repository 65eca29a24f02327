"""The store against a model of it, on both backends: any sequence of operations, reopenings, rebuilt and deleted
indexes, processes killed in the middle of a write and writers at the same moment included."""

from __future__ import annotations

import copy
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rlm_mem.config import Config
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from tests import killed
from tests.store.test_crashes import dies_at, in_child

TAGS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(
    lambda text: text.strip()
)
QUICK = Config.load(environ={}, store={"durability": "normal", "views_limit": 0})


class StoreMachine(RuleBasedStateMachine):
    """``model`` holds what must be there: content, tags, conversation, whether archived, links, revision."""

    ids = Bundle("ids")

    def __init__(self, lend: Callable[[], AbstractContextManager[Path | str]]) -> None:
        super().__init__()
        self.lent = lend()
        self.base = self.lent.__enter__()
        self.stores = [ChunkStore(self.base, config=QUICK), ChunkStore(self.base, config=QUICK)]
        self.turn = 0
        self.model: dict[str, dict[str, Any]] = {}

    @property
    def store(self) -> ChunkStore:
        """Two open stores take turns, as two processes would."""
        self.turn += 1
        return self.stores[self.turn % 2]

    @rule(target=ids, content=WORDS, tags=TAGS, conversation=st.sampled_from([None, "one", "two"]))
    def create(self, content: str, tags: list[str], conversation: str | None) -> str:
        chunk = self.store.create_chunk(content, tags=tags, conversation_id=conversation)
        self.model[chunk.id] = {
            "content": content, "tags": tags, "conversation": conversation, "archived": False, "links": set(),
            "revision": 1,
        }  # fmt: skip
        return chunk.id

    @rule(chunk_id=ids, content=WORDS, tags=TAGS)
    def update(self, chunk_id: str, content: str, tags: list[str]) -> None:
        known = self.model[chunk_id]
        updated = self.store.update_chunk(chunk_id, content=content, tags=tags)
        assert (updated is None) == known["archived"]
        if updated is not None:
            if (content, tags) != (known["content"], known["tags"]):
                known["revision"] += 1
            known.update(content=content, tags=tags)

    @rule(one=ids, other=ids)
    def link(self, one: str, other: str) -> None:
        if one == other or self.model[one]["archived"] or self.model[other]["archived"]:
            return
        self.store.add_link(one, other, "supports", 0.5)
        if other not in self.model[one]["links"]:
            self.model[one]["links"].add(other)
            self.model[one]["revision"] += 1

    @rule(chunk_id=ids)
    def delete(self, chunk_id: str) -> None:
        assert self.store.delete_chunk(chunk_id) != self.model[chunk_id]["archived"]
        self.model[chunk_id]["archived"] = True

    @rule(chunk_id=ids)
    def restore(self, chunk_id: str) -> None:
        known = self.model[chunk_id]
        assert (self.store.restore_chunk(chunk_id) is not None) == known["archived"]
        if known["archived"] and not known["links"] <= set(self.model):
            known["links"] &= set(self.model)
            known["revision"] += 1
        known["archived"] = False

    @rule(chunk_id=ids, content=WORDS)
    def everything_in_one_batch(self, chunk_id: str, content: str) -> None:
        store = self.store
        with store.batch():
            store.delete_chunk(chunk_id)
            self.model[chunk_id]["archived"] = True
            restored = store.restore_chunk(chunk_id)
            assert restored is not None
            updated = store.update_chunk(chunk_id, content=content)
            assert updated is not None
        known = self.model[chunk_id]
        known.update(
            content=content, archived=False, revision=updated.revision, links=known["links"] & set(self.model)
        )

    @rule(chunk_id=consumes(ids))
    def erase(self, chunk_id: str) -> None:
        if chunk_id not in self.model:
            return
        assert self.store.delete_chunk(chunk_id, permanent=True)
        del self.model[chunk_id]
        for known in self.model.values():
            if chunk_id in known["links"] and not known["archived"]:
                known["links"].discard(chunk_id)
                known["revision"] += 1

    @rule(content=WORDS)
    def failing_batch(self, content: str) -> None:
        before = copy.deepcopy(self.model)
        store = self.store
        try:
            with store.batch():
                store.create_chunk(content)
                for chunk_id in list(self.model)[:2]:
                    store.delete_chunk(chunk_id)
                raise KeyError("stop")
        except KeyError:
            pass
        assert self.model == before

    @precondition(lambda _: hasattr(os, "fork"))
    @rule(
        target=ids,
        content=WORDS,
        call=st.integers(1, 24),
        after=st.booleans(),
        what=st.sampled_from(["create", "update", "delete", "restore"]),
        chunk_id=ids,
    )
    def kill(self, content: str, call: int, after: bool, what: str, chunk_id: str) -> Any:
        """A process is killed before or after some step of a write: the chunk is as it was, or as it was to be."""
        if chunk_id not in self.model:
            return multiple()
        chunk_id = f"chunk-made-{self.turn}" if what == "create" else chunk_id
        known = self.model.get(chunk_id)
        writes: dict[str, Callable[[ChunkStore], object]] = {
            "create": lambda store: store.create_chunk(content, chunk_id=chunk_id),
            "update": lambda store: store.update_chunk(chunk_id, content=content),
            "delete": lambda store: store.delete_chunk(chunk_id),
            "restore": lambda store: store.restore_chunk(chunk_id),
        }

        def work() -> None:
            store = ChunkStore(self.base, config=QUICK)
            store.list_chunks()
            (dies_at if isinstance(self.base, Path) else dies_at_statement)(call, after)()
            writes[what](store)

        status = os.waitpid(in_child(work), 0)[1]
        survived = os.WIFEXITED(status)
        assert not survived or os.WEXITSTATUS(status) == 0
        store = self.store
        store.sync()  # as the next process that opens it does: from then on it is decided
        chunk, archived = store.get_chunk(chunk_id, track=False), chunk_id in store.list_chunks(archived=True)
        if what == "create":
            if chunk is not None:
                assert chunk.content == content
                self.model[chunk_id] = {
                    "content": content, "tags": [], "conversation": None, "archived": False, "links": set(),
                    "revision": 1,
                }  # fmt: skip
            assert chunk is not None or not survived, "it was acknowledged"
            return multiple() if chunk is None else chunk_id
        assert known is not None
        if what == "update" and chunk is not None and chunk.content != known["content"]:
            assert chunk.content == content
            known.update(content=content, revision=known["revision"] + 1)
        elif what == "delete":
            assert archived or not survived
            known["archived"] = archived
        elif what == "restore" and known["archived"] and not archived:
            known["archived"] = False
            if not known["links"] <= set(self.model):
                known["links"] &= set(self.model)
                known["revision"] += 1
        return multiple()

    @rule(chunk_id=ids, text=WORDS)
    def both_at_once(self, chunk_id: str, text: str) -> None:
        """Two writers raise the same counter and create chunks at the same moment."""
        known = self.model.get(chunk_id)
        if known is None or known["archived"]:
            return
        made: list[Any] = []

        def work(store: ChunkStore, who: int) -> None:
            for _ in range(2):
                with store.batch():
                    chunk = store.get_chunk(chunk_id, track=False)
                    assert chunk is not None
                    count = chunk.metadata.extra.get("count", 0)
                    store.update_chunk(chunk_id, metadata={"count": count + 1})
                made.append(store.create_chunk(text, tags=["a"]))

        threads = [threading.Thread(target=work, args=(store, who)) for who, store in enumerate(self.stores)]
        before = self.store.get_chunk(chunk_id, track=False)
        assert before is not None
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        chunk = self.store.get_chunk(chunk_id, track=False)
        assert chunk is not None
        assert chunk.metadata.extra["count"] == before.metadata.extra.get("count", 0) + 4, (
            "an update was lost"
        )
        known["revision"] += 4
        assert len({one.id for one in made}) == 4
        for one in made:
            self.model[one.id] = {
                "content": text, "tags": ["a"], "conversation": None, "archived": False, "links": set(),
                "revision": 1,
            }  # fmt: skip

    @rule(how=st.sampled_from(["reopen", "rebuild", "delete the index", "checkpoint", "full sync"]))
    def care(self, how: str) -> None:
        if how == "reopen":
            place = self.turn % 2
            self.stores[place].close()
            self.stores[place] = ChunkStore(self.base, config=QUICK)
        elif how == "rebuild":
            self.store.rebuild_index()
        elif how == "checkpoint":
            self.store.checkpoint()
        elif how == "full sync":
            self.store.sync(full=True)
        elif isinstance(self.base, Path):
            shutil.rmtree(self.base / "index")

    @invariant()
    def both_stores_agree_with_the_model(self) -> None:
        active = {chunk_id for chunk_id, known in self.model.items() if not known["archived"]}
        for store in self.stores:
            assert set(store.list_chunks()) == active
            assert set(store.list_chunks(archived=True)) == set(self.model) - active
            for tag in "abc":
                expected = {chunk_id for chunk_id in active if tag in self.model[chunk_id]["tags"]}
                assert set(store.list_chunks(tags=[tag])) == expected
            for conversation in ("one", "two"):
                expected = {
                    chunk_id for chunk_id in active if self.model[chunk_id]["conversation"] == conversation
                }
                assert set(store.list_chunks(conversation_id=conversation)) == expected
        store = self.store
        for chunk_id in active:
            chunk = store.get_chunk(chunk_id, track=False)
            known = self.model[chunk_id]
            assert chunk is not None
            assert (chunk.content, chunk.tags, chunk.revision) == (
                known["content"],
                known["tags"],
                known["revision"],
            )
            assert {link.chunk_id for link in store.linked(chunk_id)} == known["links"] & active
        assert store.get_stats()["chunk_count"] == len(active)

    def teardown(self) -> None:
        self.store.sync()  # as the next process to open it would: it removes what a killed one left unfinished
        assert check(self.store) == []
        for store in self.stores:
            store.close()
        self.lent.__exit__(None, None, None)


def dies_at_statement(number: int, after: bool) -> Callable[[], None]:
    """Patch the database's client: the process is killed just before (or after) it sends the given statement."""
    import psycopg

    patched = killed.at_call(number, after)

    def install() -> None:
        for kind in (psycopg.Connection, psycopg.Cursor):
            kind.execute = patched(kind.execute)  # type: ignore[method-assign,assignment]

    return install


@contextmanager
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp())
    yield made / "memory"
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.parametrize("examples", [10, pytest.param(40, marks=pytest.mark.slow)])
def test_any_history_leaves_what_the_model_says(
    backend: str, request: pytest.FixtureRequest, examples: int
) -> None:
    lend = folder if backend == "local" else request.getfixturevalue("databases").lend
    run_state_machine_as_test(
        lambda: StoreMachine(lend),
        settings=settings(
            max_examples=examples if backend == "local" else examples * 3 // 5,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
