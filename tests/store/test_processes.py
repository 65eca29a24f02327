"""Several processes and threads on one store: the normal case, not an exotic one."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.core.integrity import check
from tests.stored import stored


def run_all(script: str, *arguments: list[str]) -> list[subprocess.CompletedProcess[str]]:
    """Start one Python process per argument list, all at once, and wait for them."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script), *one],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ),
        )
        for one in arguments
    ]  # fmt: skip
    done = []
    for process in processes:
        out, err = process.communicate(timeout=240)
        done.append(subprocess.CompletedProcess(process.args, process.returncode, out, err))
        assert process.returncode == 0, err
    return done


@pytest.mark.parametrize("each", [25, pytest.param(200, marks=pytest.mark.slow)])
def test_of_what_four_processes_remember_at_once_none_is_missing(
    place: Path | str, base: Path | str, each: int
) -> None:
    script = """
        import sys
        from rlm_mem.memory import Memory
        brain, who, each = sys.argv[1], sys.argv[2], int(sys.argv[3])
        with Memory.open(brain) as memory:
            for number in range(each):
                result = memory.remember(
                    f"Process {who} noted that item {number} weighs {number * 7} grams.",
                    conversation_id=f"conv-{who}", tags=["all", f"by-{who}"])
                print(*result.chunk_ids)
    """
    done = run_all(script, *[[str(place), str(who), str(each)] for who in range(4)])
    acknowledged = [line for process in done for line in process.stdout.split()]
    assert len(acknowledged) == len(set(acknowledged)) == 4 * each
    with ChunkStore(base) as store:
        assert sorted(store.list_chunks()) == sorted(acknowledged)
        assert sorted(store.list_chunks(tags=["all"])) == sorted(acknowledged)
        for who in range(4):
            assert len(store.list_chunks(tags=[f"by-{who}"])) == each
            assert len(store.list_chunks(conversation_id=f"conv-{who}")) == each
        assert store.get_stats()["chunk_count"] == 4 * each
        assert len(store.get_many(acknowledged)) == 4 * each
        assert len(stored(base)) == 4 * each
        assert check(store) == []


def test_a_write_of_another_process_is_seen_by_the_next_call(base: Path | str) -> None:
    with ChunkStore(base) as store:
        assert store.list_chunks() == []
        script = """
            import sys
            from rlm_mem.store.core.chunk_store import ChunkStore
            ChunkStore(sys.argv[1]).create_chunk("x", tags=["t"])
        """
        run_all(script, [str(base)])
        assert len(store.list_chunks(tags=["t"])) == 1
