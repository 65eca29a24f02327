"""Handles of open recalls: bounded in number, gone after a while, never displaced while they work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rlm_mem.access.grants import Access, Caller
from rlm_mem.errors import NotFoundError
from rlm_mem.operations.context import Handles, OpenMemory, Settings
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


def test_the_sessions_of_one_token_share_its_open_recalls_and_displace_no_other(tmp_path: Path) -> None:
    """Else each new session over MCP left its recalls open, which nothing would end for long."""
    server = OpenMemory(Settings(brain=tmp_path / "brain"))
    ann = Access("ann", ("team/*",), permissions=frozenset({"read"}))
    of_ann = [server.admit(Caller(ann, "team/a", session=f"agent:{one}"), "read") for one in range(40)]
    recalls = [opened(one.memory.store) for one in of_ann]
    handles = [one.handles.add(recall) for one, recall in zip(of_ann, recalls, strict=True)]
    assert len(of_ann[0].handles) == of_ann[0].handles.limit
    assert of_ann[0].handles.get(handles[-1]) is recalls[-1], "an agent that connects again goes on with it"
    for other in (Caller(replace(ann, name="bob"), "team/a"), Caller(ann, "team/b")):
        with pytest.raises(NotFoundError):
            server.admit(other, "read").handles.get(handles[-1])
    kept = server.admit(Caller(replace(ann, name="bob"), "team/a"), "read")
    for number in range(1100):
        server.admit(Caller(ann, "team/a", session=f"agent:{number}"), "read")
    assert server.admit(Caller(replace(ann, name="bob"), "team/a"), "read") is kept, "displaced by nobody"
    server.close()
    assert all(one.result is not None for one in recalls)  # type: ignore[attr-defined]
