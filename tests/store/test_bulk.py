"""Archiving and restoring everything of a conversation, a tag or a source at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.errors import InputError, RlmMemError
from tests.server.api import client_of


def filled(memory: Memory) -> dict[str, str]:
    """Two memories of a conversation, two with a tag, one from a file, and one that somebody archived."""
    made = {
        name: memory.remember(text, **more).chunk_ids[0]
        for name, text, more in (
            ("first", "The ferry is late.", {"conversation_id": "trip"}),
            ("second", "The train is full.", {"conversation_id": "trip", "tags": ["rail"]}),
            ("third", "The track is closed.", {"tags": ["rail", "work"]}),
            ("file", "The quay is new.", {"provenance": {"path": "/notes/quay.md"}}),
            ("gone", "The bus is early.", {"conversation_id": "trip"}),
        )
    }
    memory.delete(made["gone"])
    return made


def test_what_matches_is_archived_and_restored_as_one_change(place: Path | str) -> None:
    with Memory.open(place) as memory:
        ids = filled(memory)
        before = memory.list_chunks()
        hidden = memory.remember("The tram is red.", conversation_id="trip").chunk_ids[0]
        memory.quarantine(hidden)
        for wanted, names in (
            ({"conversation_id": "trip"}, ["first", "second"]),
            ({"tags": "rail"}, ["second", "third"]),
            ({"tags": ["rail"], "conversation_id": "trip"}, ["second"]),
            ({"source": "/notes"}, ["file"]),
            ({"source": "trip"}, ["first", "second"]),
            ({"conversation_id": "nowhere"}, []),
        ):
            found = [ids[name] for name in names]
            assert memory.archive(**wanted) == found and memory.list_chunks() == before
            assert memory.archive(**wanted, dry_run=False) == found
            assert memory.list_chunks() == [one for one in before if one not in found]
            if found:
                undone = memory.undo()
                assert undone is not None and set(undone.chunk_ids) == set(found)
            assert memory.list_chunks() == before and memory.list_chunks(archived=True) == [ids["gone"]]
        assert memory.archive(source="trip", restore=True, dry_run=False) == [ids["gone"]]
        assert len(memory.list_chunks()) == len(before) + 1 and memory.check() == []
        assert memory.archive(tags="rail", dry_run=False) == [ids["second"], ids["third"]]
        assert memory.archive(tags=["rail", "work"], restore=True, dry_run=False) == [ids["third"]]
        memory.undo()
        assert memory.list_chunks(archived=True) == [ids["second"], ids["third"]]
        assert [one.id for one in memory.store.quarantined()] == [hidden]


def test_without_a_filter_or_with_a_wrong_one_nothing_is_archived(place: Path | str) -> None:
    with Memory.open(place) as memory:
        filled(memory)
        before = memory.list_chunks()
        for wrong in ({}, {"tags": []}, {"conversation_id": None}):
            with pytest.raises(InputError, match="nothing to archive was named"):
                memory.archive(**wrong, dry_run=False)
        for wrong in ({"conversation_id": 3}, {"tags": [3]}, {"source": ""}, {"tags": "rail", "dry_run": 1}):
            with pytest.raises(RlmMemError):
                memory.archive(**{"dry_run": False, **wrong})
        with pytest.raises(TypeError):
            memory.archive(tags="rail", conversation="trip", dry_run=False)  # type: ignore[call-arg]
        assert memory.list_chunks() == before
    with Memory.open(place, read_only=True) as memory:
        with pytest.raises(RlmMemError):
            memory.archive(tags="rail", dry_run=False)
        assert memory.list_chunks() == before


def test_over_http_the_default_is_a_dry_run(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        ids = filled(memory)
    with client_of(tmp_path / "brain") as client:
        for dry_run in (True, False):
            asked = {"conversation_id": "trip"} if dry_run else {"conversation_id": "trip", "dry_run": False}
            answer = client.post("archive", json=asked)
            assert answer.status_code == 200, answer.text
            found = answer.json()
            assert (found["dry_run"], found["count"]) == (dry_run, 2)
            assert found["chunk_ids"] == [ids["first"], ids["second"]]
        assert len(client.get("archive").json()["items"]) == 3
        restored = client.post("archive", json={"tags": ["rail"], "restore": True, "dry_run": False}).json()
        assert restored["chunk_ids"] == [ids["second"]]
        refused = client.post("archive", json={})
        assert refused.status_code == 409 and "name a conversation" in refused.json()["hint"]
