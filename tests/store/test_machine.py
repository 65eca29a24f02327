"""The store against a model of it: any sequence of operations, reopenings, rebuilt and deleted indexes included."""

from __future__ import annotations

import copy
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from rlm_mem.config import Config
from rlm_mem.store.api import ChunkStore
from rlm_mem.store.integrity import check

TAGS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3, unique=True)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30).filter(
    lambda text: text.strip()
)
QUICK = Config.load(environ={}, store={"durability": "normal", "views_limit": 0})


class StoreMachine(RuleBasedStateMachine):
    """``model`` holds what must be there: content, tags, conversation, whether archived, links, revision."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.base = self.folder / "memory"
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
        else:
            shutil.rmtree(self.base / "index")
            (self.base / "index").mkdir()

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
        assert check(self.store) == []
        for store in self.stores:
            store.close()
        shutil.rmtree(self.folder, ignore_errors=True)


StoreMachine.TestCase.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
TestStoreMachine = StoreMachine.TestCase
