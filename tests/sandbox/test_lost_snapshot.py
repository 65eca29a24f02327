"""A namespace that cannot be restored: the program is told, and the session goes on."""

from __future__ import annotations

import pytest

from rlm_mem import REPLSession
from rlm_mem.errors import SandboxCrashed
from rlm_mem.store.core.chunk_store import ChunkStore


@pytest.mark.local_only("about the sandbox alone")
def test_names_that_cannot_be_restored_are_reported_once_and_the_next_program_runs(store: ChunkStore) -> None:
    with REPLSession(store, engine="monty") as session:
        session.execute("kept = 1")
        engine = session._engine
        engine._discard()  # as when another session needed the worker
        engine._saved = b"no snapshot at all"  # type: ignore[attr-defined]
        with pytest.raises(SandboxCrashed, match="lost; this program did not run"):
            session.execute("kept + 1")
        assert session.get_state() == {}
        assert session.execute("1 + 1") == 2
