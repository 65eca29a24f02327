"""Handles of open recalls: bounded in number, gone after a while, never displaced while they work."""

from __future__ import annotations

import pytest

from rlm_mem.errors import NotFoundError
from rlm_mem.operations.context import Handles
from rlm_mem.store.core.chunk_store import ChunkStore


class Seconds:
    """A clock moved by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


def opened(store: ChunkStore) -> object:
    from rlm_mem.recall import recall_session

    return recall_session(store, "Where is it?")


def test_a_handle_leads_to_its_recall_and_cannot_be_guessed(store: ChunkStore, seconds: Seconds) -> None:
    handles = Handles(clock=seconds)
    session = opened(store)
    handle = handles.add(session)
    assert handles.get(handle) is session
    assert len(handle) >= 20
    with pytest.raises(NotFoundError, match=r"recall_open|no open recall"):
        handles.get(handle[:-1])
    handles.close()


def test_an_unused_handle_ends_and_so_does_its_recall(store: ChunkStore, seconds: Seconds) -> None:
    handles = Handles(idle_seconds=60, clock=seconds)
    session = opened(store)
    handle = handles.add(session)
    seconds.now = 50
    handles.get(handle)
    seconds.now = 105
    handles.get(handle)  # used in time
    seconds.now = 166
    with pytest.raises(NotFoundError):
        handles.get(handle)
    assert session.result is not None  # type: ignore[attr-defined]
    assert not session.result.concluded  # type: ignore[attr-defined]


def test_too_many_displace_the_finished_first_then_the_least_used(
    store: ChunkStore, seconds: Seconds
) -> None:
    handles = Handles(limit=3, clock=seconds)
    names = []
    for moment in range(3):
        seconds.now = moment
        names.append(handles.add(opened(store)))
    handles.get(names[1]).finish("done")
    names.append(handles.add(opened(store)))
    with pytest.raises(NotFoundError):
        handles.get(names[1])
    handles.mark_busy(names[0], +1)
    names.append(handles.add(opened(store)))
    assert len(handles) == 3
    assert handles.get(names[0])
    with pytest.raises(NotFoundError):
        handles.get(names[2])
    handles.close()
    assert len(handles) == 0
