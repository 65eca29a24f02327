"""Trajectories: one JSONL file per run, listed, loaded, costed, pruned; without secrets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from recall_memories import block, fill
from tests.conftest import Clock

from rlm_mem.config import Config
from rlm_mem.errors import InputError, InvalidConfig, InvalidQuery, NotFoundError, StorageError
from rlm_mem.models.base import Completion, Usage
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import (
    ReasonOperation,
    RecallOperation,
    RecallResult,
    costs,
    list_trajectories,
    load_trajectory,
    prune_trajectories,
    recall_session,
    trajectories,
)
from rlm_mem.recall.trajectory import Trajectory, recent, trajectory_file
from rlm_mem.recall.trajectory_export import export_trajectories
from rlm_mem.store.core.brain_files import BrainFiles
from rlm_mem.store.core.chunk_store import ChunkStore


def recall(
    store: ChunkStore, query: str = "Where does Carla live?", cost: str | None = "0.01"
) -> RecallResult:
    price = Decimal(cost) if cost else None
    llm = ScriptedLLM(
        [
            Completion(
                block("print(read_chunk(search_chunks('Carla')[0])['content'])\nprint(llm_query('sum up'))"),
                Usage(100, 20),
                model="big",
                cost=price,
            ),
            Completion("short", Usage(10, 1), model="small", cost=None),
            Completion(block("FINAL('Lisbon')"), Usage(150, 5), model="big", cost=price),
        ]
    )
    return RecallOperation(store, llm).recall(query)


def written(store: ChunkStore, trajectory: Trajectory) -> bytes:
    return store.backend.files(store.namespace).read(trajectory_file(trajectory.id)) or b""


def lines(store: ChunkStore, trajectory: Trajectory) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written(store, trajectory).decode().splitlines()]


def names(store: ChunkStore) -> list[str]:
    return store.backend.files(store.namespace).names("trajectories", recursive=True)


@pytest.mark.local_only("about the place of a file")
def test_a_recall_is_one_jsonl_file_of_its_month(base: Path, clock: Callable[[], datetime]) -> None:
    with ChunkStore(base, clock=clock) as store:
        fill(store)
        path = recall(store).trajectory.path
    assert path is not None
    assert path.parent == base / "trajectories" / "2026-02"
    assert [path] == list((base / "trajectories").rglob("*.jsonl"))


def test_every_turn_and_sub_call_has_a_line_of_its_own(store: ChunkStore) -> None:
    fill(store)
    trajectory = recall(store).trajectory
    assert [line["kind"] for line in lines(store, trajectory)] == ["start", "call", "step", "step", "end"]
    assert names(store) == [f"trajectories/2026-02/{trajectory.id}.jsonl"]
    assert recent(store, 5, {}) == [(trajectory.id, len(written(store, trajectory)))]


def test_a_recall_inside_a_batch_is_recorded_whatever_becomes_of_the_batch(store: ChunkStore) -> None:
    fill(store)
    with pytest.raises(RuntimeError), store.batch():
        trajectory = recall(store).trajectory
        raise RuntimeError
    assert load_trajectory(store, trajectory.id) == trajectory


def test_a_step_records_prompt_code_output_calls_chunks_usage_cost_and_seconds(store: ChunkStore) -> None:
    ids = fill(store)
    start, call, step, _, end = lines(store, recall(store).trajectory)
    assert start["query"] == "Where does Carla live?"
    assert (start["model"], start["engine"], start["namespace"]) == ("scripted", "monty", "default")
    assert start["hits"]
    assert call["reply"] == "short"
    assert step["prompt_tokens"] == 100
    assert int(str(step["prompt_chars"])) > 1000
    assert "read_chunk" in str(step["programs"])
    assert "Lisbon" in str(step["output"])
    assert {c["name"] for c in step["host_calls"]} >= {"search_chunks", "read_chunk", "llm_query"}
    assert set(step["chunks_read"]) <= set(ids.values())
    assert step["usage"]["output_tokens"] == 20
    assert step["cost"] == "0.01"
    assert step["program_seconds"] > 0
    assert (end["content"], end["iterations"], end["cost"]) == ("Lisbon", 2, None)


def test_a_trajectory_loads_as_it_was_recorded(store: ChunkStore) -> None:
    fill(store)
    result = recall(store)
    loaded = load_trajectory(store, result.trajectory.id)
    assert loaded == result.trajectory
    assert load_trajectory(store, "last").id == loaded.id


def test_runs_of_one_moment_are_listed_in_their_order(store: ChunkStore) -> None:
    """The clock of this store stands still; ``last`` names the run that began last."""
    fill(store)
    asked = [RecallOperation(store, "offline").recall(f"Who has key {number}?") for number in range(12)]
    assert [one.id for one in list_trajectories(store)] == [one.trajectory.id for one in reversed(asked)]
    assert load_trajectory(store, "last").query == "Who has key 11?"


def test_trajectories_are_listed_newest_first(store: ChunkStore, clock: Clock) -> None:
    fill(store)
    first = recall(store)
    clock.advance(days=1)
    second = recall(store, "Who is Carla?")
    reasoned = ReasonOperation(store).reason("Where does Carla live?")
    listed = list_trajectories(store)
    assert [info.id for info in listed][-1] == first.trajectory.id
    assert {info.id for info in listed} == {
        first.trajectory.id,
        second.trajectory.id,
        reasoned.trajectory.id,
    }
    assert [info.operation for info in list_trajectories(store, operation="reason")] == ["reason"]
    assert len(list_trajectories(store, limit=1)) == 1
    assert {info.id for info in list_trajectories(store, until="2026-02-10")} == {first.trajectory.id}
    assert first.trajectory.id not in {info.id for info in list_trajectories(store, since="2026-02-11")}
    info = listed[-1]
    assert (info.query, info.concluded, info.iterations) == ("Where does Carla live?", True, 2)


def test_runs_that_have_ended_can_be_read_without_their_steps(store: ChunkStore) -> None:
    done, cut_off = recall(store).trajectory, recall(store).trajectory
    name, whole = trajectory_file(cut_off.id), written(store, cut_off)
    store.backend.files(store.namespace).write(name, whole[: whole.rindex(b'{"kind": "end"')])
    running, ended = trajectories(store, steps=False)
    assert (running.id, running.outcome) == (cut_off.id, None)
    assert (running.steps, running.calls) == (cut_off.steps, cut_off.calls)
    assert (ended.id, ended.outcome) == (done.id, done.outcome)
    assert (ended.steps, ended.calls) == ([], [])


def test_a_file_that_cannot_be_read_hides_no_other(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, broken, last = (recall(store).trajectory for _ in range(3))
    files = type(store.backend.files(store.namespace))
    read, contents = files.read, files.contents

    def refused(self: BrainFiles, name: str) -> bytes | None:
        if broken.id in name:
            raise StorageError("the disk is damaged")
        return read(self, name)

    def refused_of_several(self: BrainFiles, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        for name in names:
            refused(self, name)
            yield from contents(self, [name])

    monkeypatch.setattr(files, "read", refused)
    monkeypatch.setattr(files, "contents", refused_of_several)
    assert [run.id for run in trajectories(store)] == [last.id, first.id]


@pytest.mark.parametrize("name", ["traj-20260210T120000-00000000"])
def test_a_trajectory_that_is_not_there_is_an_error(store: ChunkStore, name: str) -> None:
    with pytest.raises(NotFoundError):
        load_trajectory(store, name)
    with pytest.raises(NotFoundError):
        load_trajectory(store, "last")


@pytest.mark.parametrize("name", ["../../../etc/passwd", "traj-../x", "", "traj-20260210T120000-0000000g"])
def test_an_invalid_trajectory_id_is_refused(store: ChunkStore, name: str) -> None:
    with pytest.raises(InvalidQuery):
        load_trajectory(store, name)


def test_trajectories_of_another_namespace_are_not_there(store: ChunkStore, base: Path | str) -> None:
    fill(store)
    result = recall(store)
    with ChunkStore(base, namespace="other") as other:
        assert list_trajectories(other) == []
        assert costs(other) == []
        with pytest.raises(NotFoundError):
            load_trajectory(other, result.trajectory.id)


def test_keys_are_redacted_everywhere(store: ChunkStore, monkeypatch: pytest.MonkeyPatch) -> None:
    key, shaped = "verysecret-value-123", "sk-abcdefghijklmnop1234567890"
    monkeypatch.setenv("SOME_API_KEY", key)
    store.create_chunk(f"The key of Carla is {key} and also {shaped}.")
    code = f"x = '{key}'\nprint(read_chunk(search_chunks('key Carla')[0])['content'])"
    llm = ScriptedLLM([block(code), block(f"FINAL('It is {shaped}')")])
    result = RecallOperation(store, llm).recall(f"Is {key} the key of Carla?")
    assert shaped in (result.content or "")
    text = written(store, result.trajectory).decode()
    assert key not in text
    assert shaped not in text
    assert "[redacted]" in text


def test_a_file_that_a_crash_cut_off_still_lists_and_loads(store: ChunkStore) -> None:
    fill(store)
    result = recall(store)
    files, name = store.backend.files(store.namespace), trajectory_file(result.trajectory.id)
    whole = written(store, result.trajectory)
    files.write(name, whole[: whole.rindex(b'{"kind": "end"') + 40])
    info = list_trajectories(store)[0]
    assert (info.id, info.concluded, info.iterations) == (result.trajectory.id, None, 2)
    assert load_trajectory(store, info.id).outcome is None
    assert sum(line.calls for line in costs(store)) == 3
    files.write(name, b"\xff\xfe nonsense")
    assert list_trajectories(store) == []


def test_recording_can_be_switched_off(store: ChunkStore) -> None:
    fill(store)
    config = replace(store.config, recall=replace(store.config.recall, trajectories=False))
    llm = ScriptedLLM([block("FINAL(1)")])
    result = RecallOperation(store, llm, config=config).recall("Where?")
    assert result.trajectory.path is None
    assert len(result.trajectory.steps) == 1
    assert names(store) == []


@pytest.mark.local_only("about the place of a file")
def test_a_folder_that_cannot_be_written_does_not_stop_a_recall(base: Path) -> None:
    with ChunkStore(base) as store:
        fill(store)
        (base / "trajectories").write_text("in the way")
        result = recall(store)
    assert result.content == "Lisbon"
    assert result.trajectory.path is None


def test_a_recall_on_a_read_only_store_records_nothing(store: ChunkStore, base: Path | str) -> None:
    fill(store)
    store.checkpoint()
    with ChunkStore(base, read_only=True) as reader:
        result = recall(reader)
    assert names(store) == []
    assert result.content == "Lisbon"
    assert result.trajectory.path is None


def test_old_trajectories_go_after_the_configured_days(store: ChunkStore, clock: Clock) -> None:
    fill(store)
    first = recall(store)
    clock.advance(days=40)
    second = recall(store)
    assert len(list_trajectories(store)) == 2
    clock.advance(days=60)
    third = recall(store)  # config.recall.keep_trajectory_days is 90: the first is older
    assert [info.id for info in list_trajectories(store)] == [third.trajectory.id, second.trajectory.id]
    if first.trajectory.path is not None:
        assert not first.trajectory.path.parent.exists()
    assert prune_trajectories(store, 0) == 0
    assert prune_trajectories(store, 30) == 1


def test_costs_are_summed_by_day_model_and_operation(store: ChunkStore, clock: Clock) -> None:
    fill(store)
    recall(store)
    recall(store)
    clock.now += timedelta(days=1)
    recall(store, cost="0.05")
    found = {(line.day, line.model): line for line in costs(store)}
    assert found["2026-02-10", "big"].cost == Decimal("0.04")
    assert (found["2026-02-10", "big"].runs, found["2026-02-10", "big"].calls) == (2, 4)
    assert found["2026-02-10", "big"].usage == Usage(500, 50)
    assert found["2026-02-11", "big"].cost == Decimal("0.10")
    assert {line.operation for line in costs(store)} == {"recall"}
    assert {line.day for line in costs(store, since="2026-02-11")} == {"2026-02-11"}


def test_an_unknown_price_is_never_zero_in_costs(store: ChunkStore) -> None:
    fill(store)
    recall(store, cost=None)
    for line in costs(store):
        assert line.cost is None
        assert line.unpriced_calls == line.calls > 0


def test_a_lone_surrogate_in_an_answer_is_recorded(store: ChunkStore) -> None:
    fill(store)
    result = RecallOperation(store, ScriptedLLM([block("print('\\ud800')\nFINAL('\\udc80x')")])).recall(
        "Odd?"
    )
    assert load_trajectory(store, result.trajectory.id).outcome is not None


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [(0, "started_at", 7), (0, "query", 5), (-1, "content", 5), (-1, "chunk_ids", 5), (-1, "detail", 5)],
)
def test_a_record_with_other_types_hides_no_other_run(
    store: ChunkStore, line: int, field: str, value: object
) -> None:
    damaged, whole = recall(store).trajectory, recall(store).trajectory
    records = lines(store, damaged)
    records[line][field] = value
    data = "".join(json.dumps(record) + "\n" for record in records)
    store.backend.files(store.namespace).write(trajectory_file(damaged.id), data.encode())
    assert whole.id in [one.id for one in list_trajectories(store)]
    assert whole.id in [one["id"] for one in export_trajectories(store)]
    assert costs(store)


def test_a_run_that_cannot_begin_leaves_no_record(store: ChunkStore) -> None:
    with pytest.raises(InputError):
        recall_session(store, "What does Ana drink?", functions={"search": len})
    sub_model = Config.load(None, environ={}, llm={"sub_model": "scripted:missing.json"})
    with pytest.raises(InvalidConfig):
        RecallOperation(store, ScriptedLLM(), config=sub_model).recall("What does Ana drink?")
    assert names(store) == []
