"""The records below the adapters, without a framework: hidden and archived ones, and searches of many."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm_mem import ConflictError, Memory
from rlm_mem.integrations.records import Records
from rlm_mem.search import api

PATH = ("notes",)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "brain") as opened:
        yield opened


def chunk_of(memory: Memory, text: str) -> str:
    return next(hit.chunk_id for hit in memory.search(text))


def test_a_record_in_quarantine_is_named_as_such_and_counts_as_taken(memory: Memory) -> None:
    records = Records(memory, "test")
    for name in ("hidden", "archived", "there"):
        records.put(PATH, name, {"text": f"the {name} bees of Porto"})
    hidden = chunk_of(memory, "hidden")
    memory.delete(chunk_of(memory, "archived"))
    memory.quarantine(hidden)
    assert records.get(PATH, "hidden") is None
    with pytest.raises(ConflictError, match="quarantine") as refused:
        records.put(PATH, "hidden", {"text": "anything"})
    assert hidden in refused.value.hint
    assert records.taken(PATH, ["hidden", "archived", "there", "none"]) == {"hidden", "archived", "there"}
    assert records.put(PATH, "archived", {"text": "back"}).value == {"text": "back"}


def test_a_search_whose_matches_are_refused_ends_at_the_most_hits_of_a_search(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "MAX_LIMIT", 12)
    monkeypatch.setattr("rlm_mem.integrations.records.MAX_LIMIT", 12)
    records = Records(memory, "test")
    with memory.batch():
        for number in range(15):
            records.put(PATH, str(number), {"text": "bees of Porto", "number": number})
    assert records.search(PATH, "bees", limit=5, wanted=lambda _: False) == []
    assert len(records.search(PATH, "bees", limit=9, wanted=lambda _: True)) == 9
