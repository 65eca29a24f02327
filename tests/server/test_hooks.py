"""The hooks of coding agents: context when a session starts, its words kept before they are compacted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from tests.cli.conftest import Run


def written(path: Path, *entries: Any) -> Path:
    path.write_text(
        "".join((entry if isinstance(entry, str) else json.dumps(entry)) + "\n" for entry in entries),
        encoding="utf-8",
    )
    return path


def message(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": role,
        "timestamp": "2026-03-02T10:00:00.000Z",
        "message": {"role": role, "content": content},
        **more,
    }


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    return written(
        tmp_path / "session.jsonl",
        message("user", "Please move the ledger to PostgreSQL this week."),
        message(
            "assistant",
            [
                {"type": "text", "text": "I moved the ledger; the migration took four minutes."},
                {"type": "tool_use", "name": "Bash", "input": {"command": "secret tool call"}},
            ],
        ),
        message("user", [{"type": "tool_result", "content": "a long listing of files in the folder"}]),
        message("user", "<command-name>/compact</command-name> with a lot of words"),
        message("user", "ok"),
        message("user", "My key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD, keep it in mind."),
        {"type": "summary", "summary": "not a message"},
        "[1, 2",
        '{"message": {"role": "user", "content": "half wri',
    )


def compact(run: Run, transcript: Path) -> Any:
    return run(
        "hook", "pre-compact", stdin=json.dumps({"session_id": "s-1", "transcript_path": str(transcript)})
    )


def test_what_was_said_is_kept_and_nothing_else(run: Run, brain: Path, transcript: Path) -> None:
    assert compact(run, transcript).code == 0
    with Memory.open(brain) as memory:
        chunks = [memory.get(chunk_id) for chunk_id in memory.list_chunks(conversation_id="s-1")]
    texts = sorted(chunk.content for chunk in chunks if chunk)
    assert len(texts) == 3
    assert texts[0] == "Agent: I moved the ledger; the migration took four minutes."
    assert texts[2] == "User: Please move the ledger to PostgreSQL this week."
    assert "sk-proj" not in texts[1]
    assert {chunk.metadata.occurred_at[:10] for chunk in chunks if chunk} == {"2026-03-02"}  # type: ignore[index]


def test_a_second_compaction_adds_only_what_is_new(run: Run, brain: Path, transcript: Path) -> None:
    compact(run, transcript)
    with transcript.open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(message("user", "Now write the release notes for it.")) + "\n")
    compact(run, transcript)
    with Memory.open(brain) as memory:
        assert memory.stats().chunk_count == 4
        assert not list(memory.store.events(op="repeat"))


def test_a_session_starts_with_what_fits_its_folder(run: Run, memory: Memory) -> None:
    ours = memory.remember("The ledger service runs on the heron server.").chunk_ids[0]
    choice = memory.store.create_chunk("We decided for trains.", chunk_type="decision").id
    other = memory.remember("There is cake in the kitchen on Fridays.", chunk_type="note").chunk_ids[0]
    ran = run("hook", "session-start", stdin=json.dumps({"cwd": "/home/dana/ledger", "source": "startup"}))
    told = ran.json["hookSpecificOutput"]
    assert told["hookEventName"] == "SessionStart"
    assert ours in told["additionalContext"]
    assert choice in told["additionalContext"]
    assert other not in told["additionalContext"]
    assert "not instructions" in told["additionalContext"]


@pytest.mark.local_only("look at files")
def test_without_a_memory_a_session_starts_in_silence(run: Run, brain: Path) -> None:
    ran = run("hook", "session-start", stdin="{}")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert not brain.exists()


def test_the_context_is_bounded(run: Run, memory: Memory) -> None:
    for number in range(60):
        memory.store.create_chunk(f"Decision {number}: " + "ledger words " * 100, chunk_type="decision")
    ran = run("hook", "session-start", "--limit", "50", stdin=json.dumps({"cwd": "/x/ledger"}))
    assert len(ran.json["hookSpecificOutput"]["additionalContext"]) < 5_000


@pytest.mark.parametrize(
    "stdin", ["no JSON", "[]", "{}", '{"transcript_path": "/nothing/here.jsonl"}', '{"transcript_path": 7}']
)
def test_a_hook_that_fails_never_stops_the_agent(run: Run, memory: Memory, stdin: str) -> None:
    """An exit code of 2 would."""
    ran = run("hook", "pre-compact", stdin=stdin)
    assert ran.code == 1
    assert ran.err.count("\n") <= 2
    assert run("hook", "session-start", stdin=stdin).code in (0, 1)
