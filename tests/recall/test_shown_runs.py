"""Recorded runs that met a memory which is in quarantine now: their texts are hidden wherever runs are shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Clock
from tests.server.api import client_of
from tests.server.site import opened, text_of

from rlm_mem import Memory
from rlm_mem.cli import main
from rlm_mem.errors import InputError
from rlm_mem.mcp.resources import read_resource
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall.loop import LoopStep
from rlm_mem.recall.shown_runs import as_shown, shown_trajectory
from rlm_mem.recall.trajectory import load_trajectory, unrecorded
from rlm_mem.store.core.chunk_store import ChunkStore

SECRET = "Ottoline: The combination of the vault behind the clock is 7-19-83."
ASK = "What is the combination of the vault?"


def filled(memory: Memory) -> str:
    """Two memories and a run for each; returns the id of the one with the secret."""
    (secret,) = memory.remember(SECRET, conversation_id="vault").chunk_ids
    memory.remember("Lena: The boat shed is painted green.", conversation_id="boat")
    memory.recall(ASK)
    # A program that prints the text alone, and never the id.
    program = "print(search('combination')[0]['snippet'][:50])\nFINAL('green')"
    Memory(memory.store, ScriptedLLM([f"```repl\n{program}\n```"])).recall("Which colour has the shed?")
    return secret


def told(memory: Memory) -> str:
    """Everything that is shown of the runs."""
    infos = memory.trajectories()
    runs = [shown_trajectory(memory.store, info.id) for info in infos]
    return f"{infos} {runs} {[dict(run) for run in memory.export_trajectories()]}"


def test_texts_are_hidden_until_the_memory_is_released(place: Path | str, clock: Clock) -> None:
    with Memory.open(place, clock=clock, llm="offline") as memory:
        secret = filled(memory)
        before = told(memory)
        assert "7-19-83" in before and "behind the clock" in before
        assert not any(info.withheld for info in memory.trajectories())
        memory.quarantine(secret)
        assert {info.withheld for info in memory.trajectories()} == {(secret,)}
        shown = told(memory)
        assert "7-19-83" not in shown and "behind the clock" not in shown and "Ottoline" not in shown
        (answered,) = [info for info in memory.trajectories() if info.query == ASK]
        assert answered.outcome == "answered" and answered.answer != ""
        with pytest.raises(InputError, match="quarantine"):
            memory.receipt(answered.id)
        assert "7-19-83" in str(load_trajectory(memory.store, answered.id))  # the record itself is kept
        memory.recall("Which colour has the shed?")
        assert memory.trajectories()[0].withheld == ()
        memory.release(secret)
        assert "7-19-83" in told(memory) and memory.receipt(answered.id).answer.content


def test_texts_stay_hidden_when_the_memory_is_archived(place: Path | str, clock: Clock) -> None:
    with Memory.open(place, clock=clock, llm="offline") as memory:
        secret = filled(memory)
        memory.quarantine(secret)
        (case,) = memory.continuum.review.cases()
        memory.continuum.review.reject(case.id, reviewer="Ines", reason="a secret")
        assert memory.list_chunks(archived=True) == [secret] and "7-19-83" not in told(memory)


def test_no_way_to_see_runs_shows_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    brain = tmp_path / "brain"
    with Memory.open(brain, llm="offline") as memory:
        secret = filled(memory)
        run = next(info.id for info in memory.trajectories() if info.query == ASK)
        memory.quarantine(secret)
        seen = [
            read_resource(memory, uri) for uri in ("memory://trajectories", f"memory://trajectories/{run}")
        ]
    with client_of(brain) as client:
        seen += [client.get(path).text for path in ("trajectories", f"trajectories/{run}")]
        assert client.get(f"trajectories/{run}").json()["withheld"] == [secret]
    with opened(brain) as site:
        page = site.get(f"/recalls/{run}")
        assert secret in page and "in quarantine" in text_of(page)
        seen += [page, site.get("/recalls")]
        site.get(f"/recalls/{run}/receipt", 422)

    def command(*words: str) -> tuple[int, Any]:
        code = main(["trajectories", *words, "--brain", str(brain)])
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    seen += [command("list")[1], command("show", run)[1], command("list", "--json")[1], command("export")[1]]
    assert command("replay", run)[0] != 0
    assert not [text for text in seen if "7-19-83" in text or "Ottoline" in text]
    assert all(secret in text or "1 memory now in quarantine" in text for text in seen[:-1]) and not seen[-1]


@pytest.mark.local_only("compares texts alone")
def test_a_run_that_repeats_one_of_many_memories_in_quarantine_is_found(store: ChunkStore) -> None:
    told = [f"{number}. The lock of room {number} opens with {number * 7919} only." for number in range(30)]
    hidden = [store.create_chunk("\n".join(f"{line} {part}" for part in range(12))) for line in told]
    hidden.append(store.create_chunk("Short, but a secret."))
    output = f"row of text {told[7]} 3\nShort, but a secret. {'x' * 9_000}"
    run = replace(unrecorded(), steps=[LoopStep(1, 0, "?", 1, 1, "", output=output)])
    assert as_shown(run, hidden).withheld == (hidden[7].id, hidden[30].id)
    assert as_shown(run, hidden[8:12]).withheld == ()
