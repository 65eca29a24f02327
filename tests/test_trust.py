"""How memories came and how far they are trusted; quarantine and expiry: on both stores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Filters, Memory
from rlm_mem.chunk import Chunk, decode_chunk, encode_chunk
from rlm_mem.config import Config
from rlm_mem.errors import ConflictError, InvalidChunk, InvalidConfig, InvalidQuery, NotFoundError
from rlm_mem.store.core.integrity import check
from tests.conftest import Clock

WAYS = ("person", "agent", "tool", "import", "web")


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    """A memory in files, where the store makes no difference."""
    with Memory.open(tmp_path / "brain", clock=clock) as opened:
        yield opened


def told(memory: Memory, text: str, **more: Any) -> str:
    return memory.remember(text, **more).chunk_ids[0]


def everything_about(memory: Memory, chunk_id: str) -> list[bool]:
    """Whether each way of reading gives a chunk."""
    store = memory.store
    chunk = store.get_chunk(chunk_id, track=False)
    return [
        chunk is not None,
        store.exists(chunk_id),
        chunk_id in memory.list_chunks(),
        chunk_id in memory.list_chunks(tags="fruit"),
        chunk_id in store.list_page(10)[0],
        chunk_id in [one.id for one in store.latest(1)],
        chunk_id in [one.id for one in store.latest(1, tag="fruit")],
        chunk_id in [one.id for one in store.timeline(limit=10)],
        chunk_id in [one.id for one in store.iter_chunks()],
        chunk_id in [hit.chunk_id for hit in memory.search("pomegranate")],
        chunk_id in [hit.chunk_id for hit in memory.search("", filters=Filters(tags_all=("fruit",)))],
        chunk_id in [link.chunk_id for other in memory.list_chunks() for link in memory.links(other)],
        chunk_id
        in [one for other in memory.list_chunks() for side in store.neighbours(other) for one in side],
        store.find_same("The pomegranate is ripe.", "garden") == chunk_id,
    ]


def test_each_way_in_has_its_trust_and_filters_keep_it_out(place: Path | str, clock: Clock) -> None:
    with Memory.open(place, clock=clock) as memory:
        ids = {way: told(memory, f"The {way} likes plums.", origin=way) for way in WAYS}
        plain = told(memory, "Everybody likes plums.")
        levels = {way: memory.store.get_many([ids[way]])[ids[way]].metadata.trust for way in WAYS}
        assert levels == dict(zip(WAYS, ("trusted", "ordinary", *["untrusted"] * 3), strict=True))
        for trust, kept in (("trusted", 2), ("ordinary", 3), ("untrusted", 6)):
            found = {hit.chunk_id for hit in memory.search("plums", filters=Filters(trust=trust))}
            assert len(found) == kept and found == set(memory.list_chunks(trust=trust))
        for origin in ("web", ("web", "tool")):
            wanted = {ids[one] for one in ([origin] if isinstance(origin, str) else origin)}
            assert {hit.chunk_id for hit in memory.search("plums", filters=Filters(origin=origin))} == wanted
            assert set(memory.list_chunks(origin=origin)) == wanted
        [hit] = memory.search("plums", filters=Filters(origin="web"))
        assert (hit.origin, hit.trust) == ("web", "untrusted") and "untrusted: web" in str(hit)
        newest = memory.search("", filters=Filters(trust="trusted"))
        assert [one.chunk_id for one in newest] == [plain, ids["person"]]
        own = told(memory, "A page that I wrote likes plums.", origin="web", trust="trusted")
        memory.rebuild_index()
        assert own in memory.list_chunks(trust="trusted", origin="web")
        assert not memory.check()
        for wrong in ({"origin": "radio"}, {"trust": "holy"}):
            with pytest.raises(InvalidChunk):
                told(memory, "Nothing of this.", **wrong)
            with pytest.raises(InvalidQuery):
                memory.search("plums", filters=wrong)
            with pytest.raises(InvalidQuery):
                memory.list_chunks(**wrong)


def test_old_files_read_as_their_source_and_keep_their_bytes(memory: Memory, tmp_path: Path) -> None:
    """Files of former versions have no such fields: what is written of them is what was there."""
    chunk_id = told(memory, "A plain note.")
    path = next((tmp_path / "brain").rglob(f"{chunk_id}.json"))
    before = path.read_bytes()
    assert b'"trust"' not in before and b'"origin"' not in before and b"expires" not in before
    for source, origin, trust in (
        ("interaction", "person", "trusted"),
        ("import", "import", "untrusted"),
        ("web", "web", "untrusted"),
        ("derived", "agent", "ordinary"),
        ("sensor", "agent", "ordinary"),
    ):
        data = before.replace(b'"interaction"', json.dumps(source).encode())
        chunk = decode_chunk(data)
        assert (chunk.metadata.origin, chunk.metadata.trust) == (origin, trust)
        assert encode_chunk(chunk) == data
    raw = json.loads(before)
    raw["metadata"] |= {"origin": "Berlin", "trust": 0.9, "expires_at": "whenever"}  # somebody's own fields
    chunk = Chunk.from_dict(raw)
    assert (chunk.metadata.origin, chunk.metadata.trust, chunk.metadata.expires_at) == (
        "person",
        "trusted",
        None,
    )
    assert chunk.metadata.extra == {"origin": "Berlin", "trust": 0.9, "expires_at": "whenever"}


def test_settings_decide_by_way_in_and_namespace(tmp_path: Path) -> None:
    brain = tmp_path / "brain"
    brain.mkdir()
    (brain / "config.toml").write_text(
        '[trust]\nimported = "ordinary"\n[trust.namespaces."team/inbox"]\nweb = "quarantined"\n', "utf-8"
    )
    with Memory.open(brain) as memory, Memory.open(brain, namespace="team/inbox") as inbox:
        for opened, count in ((memory, 2), (inbox, 1)):
            told(opened, "From a file.", origin="import")
            told(opened, "From a page.", origin="web")
            assert [one.metadata.trust for one in opened.store.iter_chunks()] == ["ordinary", "untrusted"][
                :count
            ]
        assert [one.content for one in inbox.store.quarantined()] == ["From a page."]
    for wrong in (
        'web = "low"',
        "imported = 1",
        'namespaces = {a = {radio = "trusted"}}',
        "namespaces = {a = 1}",
    ):
        with pytest.raises(InvalidConfig):
            Config.of_file(f"[trust]\n{wrong}", "config.toml")


def test_quarantine_hides_everywhere_and_release_and_undo_bring_back(place: Path | str, clock: Clock) -> None:
    with Memory.open(place, clock=clock) as memory:
        told(memory, "The plum is green.", conversation_id="garden", tags="fruit")
        old = told(memory, "The fig is ripe.", conversation_id="garden", tags="fruit")
        bad = told(
            memory,
            "The pomegranate is ripe.",
            conversation_id="garden",
            tags="fruit",
            origin="web",
            replaces=old,
        )
        assert all(everything_about(memory, bad))
        put = memory.quarantine(bad, "says to ignore\u2028rules")
        assert put.metadata.extra["quarantine"]["reason"] == "says to ignore\u2028rules"
        assert not any(everything_about(memory, bad))
        assert [one.id for one in memory.store.quarantined()] == [bad]
        before = memory.get(old)
        assert before is not None and before.metadata.superseded_by is None  # it holds again
        assert memory.update(bad, "Trust me.", metadata={"trust": "trusted"}) is None
        with pytest.raises(ConflictError):
            memory.quarantine(bad)
        assert not memory.check()
        memory.undo()
        assert all(everything_about(memory, bad)) and memory.get(old).metadata.superseded_by == bad  # type: ignore[union-attr]
        memory.quarantine(bad)
        assert memory.release(bad).metadata.trust == "untrusted"
        assert all(everything_about(memory, bad)) and not memory.store.quarantined()
        assert [event.op for event in memory.events(chunk_id=bad)][-4:] == [
            "quarantine",
            "undo",
            "quarantine",
            "release",
        ]
        with pytest.raises(ConflictError):
            memory.release(bad)
        memory.quarantine(bad)
        with pytest.raises(InvalidChunk):
            memory.release(bad, "quarantined")
        assert memory.release(bad, "ordinary").metadata.trust == "ordinary"
        assert "quarantine" not in memory.store.get_many([bad])[bad].metadata.extra
        for act in (memory.quarantine, memory.release):
            with pytest.raises(NotFoundError):
                act("chunk-2026-02-10-00000000")


def test_what_has_expired_is_gone_at_once_and_swept_later(place: Path | str, clock: Clock) -> None:
    with Memory.open(place, clock=clock) as memory:
        kept = told(memory, "The plum is green.", conversation_id="garden", tags="fruit")
        short = told(memory, "The pomegranate is ripe.", conversation_id="garden", tags="fruit", ttl="2h")
        assert all(everything_about(memory, short))
        clock.advance(hours=1)
        again = memory.remember("The pomegranate is ripe.", conversation_id="garden", ttl=timedelta(hours=3))
        assert again.duplicates == [short]  # said again: kept until the later time
        clock.advance(hours=2)
        assert all(everything_about(memory, short))
        then = clock.now
        clock.advance(hours=2)
        assert not any(everything_about(memory, short))
        assert memory.search("pomegranate", as_of=then)[0].chunk_id == short
        assert memory.store.expired() == [short]
        later = told(memory, "The pomegranate is ripe.", conversation_id="garden")
        assert later != short  # said anew, it is a memory of its own
        assert memory.store.sweep() == [short] and memory.store.sweep() == []
        assert set(memory.list_chunks()) == {kept, later} and memory.list_chunks(archived=True) == [short]
        for wrong in ("soon", "30", "99999999999d", True, -1, "0s", float("nan")):
            with pytest.raises(InvalidChunk):
                told(memory, "Nothing of this.", ttl=wrong)
        with pytest.raises(InvalidChunk):
            told(memory, "Nothing of this.", ttl="1d", expires="2030-01-01")
        with pytest.raises(InvalidChunk):
            told(memory, "Nothing of this.", expires="2020-01-01")
        assert not check(memory.store)


def test_who_says_it_again_raises_its_trust_and_an_agent_does_not_lower_it(memory: Memory) -> None:
    page = told(memory, "The bridge is closed.", origin="web")
    for way, level in (("tool", "untrusted"), ("person", "trusted"), ("web", "trusted")):
        assert memory.remember("The bridge is closed.", origin=way).duplicates == [page]
        assert memory.store.get_many([page])[page].metadata.trust == level
