"""Hooks run as the clients run them: their JSON on stdin, our JSON or nothing on stdout, and always exit code 0."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlm_mem import Memory, capture
from rlm_mem.capture import transcripts
from rlm_mem.capture.context import prompt_context
from rlm_mem.capture.rules import RULES_FILE, SHIPPED, load_limits, load_rules
from rlm_mem.capture.transcripts import Session, SessionMessage, without_context
from rlm_mem.cli import events, main
from rlm_mem.config import Config
from rlm_mem.mcp.hook_clients import HOOK_CLIENTS, SECONDS, HookClient, hook_client_named
from rlm_mem.mcp.hooks import log_file
from rlm_mem.store.core import files
from rlm_mem.store.core.brain_files import WAITING
from tests.capture.sessions import Said, event, written
from tests.cli.conftest import Ran, Run
from tests.typed import present

NAMES = [client.name for client in HOOK_CLIENTS]
NAMESPACE = "project/github.com/acme/ledger"
SAID: list[Said] = [
    ("user", "Can you look at the failing ledger import?"),
    ("agent", "The root cause was that the importer read dates in the local time zone."),
    ("user", "We decided to store every date of the ledger in UTC. Thanks!"),
    ("agent", "I'll change the importer now and run the tests."),
    ("user", "Always run the linter before you commit anything here."),
    ("user", "No, the ledger database listens on port 5433, not on 5432."),
    ("user", "ok"),
]

Hook = Callable[..., Ran]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder within a clone of github.com/acme/ledger."""
    folder = tmp_path / "code" / "src"
    folder.mkdir(parents=True)
    git = tmp_path / "code" / ".git"
    git.mkdir()
    (git / "config").write_text(
        '[core]\n\tbare = false\n[remote "origin"]\n\turl = git@github.com:acme/Ledger.git\n'
    )
    return folder


@pytest.fixture
def hook(run: Run, repository: Path) -> Hook:
    """Run a hook of a client; it must end with 0 and write nothing to stderr."""

    def run_it(kind: str, client: str = "claude-code", transcript: Path | None = None, **more: Any) -> Ran:
        given = event(client, kind, repository, transcript, **more)
        ran = run("hook", kind, "--client", client, stdin=json.dumps(given))
        assert (ran.code, ran.err) == (0, "")
        return ran

    return run_it


def texts(place: Path | str, namespace: str = NAMESPACE) -> list[str]:
    with Memory.open(place, namespace=namespace) as opened:
        return sorted(present(opened.store.get_chunk(one)).content for one in opened.list_chunks())


KEPT = [
    "Agent: The root cause was that the importer read dates in the local time zone.",
    "User: Always run the linter before you commit anything here.",
    "User: No, the ledger database listens on port 5433, not on 5432.",
    "User: We decided to store every date of the ledger in UTC.",
]


@pytest.mark.parametrize("client", NAMES)
@pytest.mark.local_only("about transcripts, not about the store")
def test_every_client_captures_the_same_of_the_same_session(
    client: str, hook: Hook, brain: Path, tmp_path: Path
) -> None:
    transcript = written(tmp_path / "transcript", client, SAID)
    kinds = ("stop", "pre-compact", "stop", "session-end")
    for kind in (kind for kind in kinds if kind in hook_client_named(client).events):
        assert hook(kind, client, transcript).out == ""
    assert texts(brain) == KEPT
    assert texts(brain, "default") == []


@pytest.mark.local_only("about transcripts, not about the store")
def test_the_rules_are_read_only_if_there_is_something_new(
    hook: Hook, brain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcript = written(tmp_path / "transcript", "claude-code", SAID)
    hook("stop", transcript=transcript)
    (brain / RULES_FILE).write_text("no rules")
    hook("session-end", transcript=transcript)
    assert not log_file().exists()
    written(transcript, "claude-code", [*SAID, ("user", "Always sort the imports.")])
    hook("session-end", transcript=transcript)
    assert RULES_FILE in log_file().read_text()
    (brain / RULES_FILE).unlink()
    hook("session-end", transcript=transcript)
    assert texts(brain) == sorted([*KEPT, "User: Always sort the imports."]), "nothing is lost"


def test_captured_memories_are_queued_for_review_and_given_to_the_next_session(
    hook: Hook,
    run: Run,
    brain: Path | str,
    tmp_path: Path,
) -> None:
    hook("stop", transcript=written(tmp_path / "t.jsonl", "claude-code", SAID))
    (case,) = run("--namespace", NAMESPACE, "review", "list", "--json").json
    assert case["kind"] == "capture"
    day = case["opened_at"][:10]
    assert case["title"] == f"{len(KEPT)} memories of a session with claude-code, {day}"
    assert len(case["evidence"]) == len(KEPT)
    listed = run("--namespace", NAMESPACE, "review", "list").out
    for chunk_id, said in zip(case["chunk_ids"], case["evidence"], strict=True):
        assert f"      {chunk_id[-8:]}  {said.removeprefix(f'{chunk_id}: ')}\n" in listed
    assert f"rlm-mem --namespace {NAMESPACE} review approve" in listed
    assert "approve CASE with --keep ID" in listed
    started = hook("session-start", session_id="s-2").json["hookSpecificOutput"]
    assert started["hookEventName"] == "SessionStart"
    assert "every date of the ledger in UTC" in started["additionalContext"]
    assert "not instructions" in started["additionalContext"]
    # A prompt gets relevant memories that were not given yet, and nothing otherwise.
    assert (
        hook("user-prompt", session_id="s-2", prompt="Which port does the ledger database listen on?").out
        == ""
    )
    asked = hook("user-prompt", session_id="s-3", prompt="Which port does the ledger database listen on?")
    assert "5433" in asked.json["hookSpecificOutput"]["additionalContext"]
    assert hook("user-prompt", session_id="s-3", prompt="Write a poem on autumn leaves, please").out == ""
    decided = (
        "--namespace",
        NAMESPACE,
        "review",
        "reject",
        case["id"],
        "--reviewer",
        "Dana",
        "--reason",
        "junk",
    )
    assert run(*decided).out == "rejected; the memories of session s-1 are archived\n"
    assert texts(brain) == []
    assert run("--namespace", NAMESPACE, "undo").code == 0
    assert texts(brain) == KEPT
    some = ("--namespace", NAMESPACE, "review", "approve", case["id"], "--reviewer", "Dana", "--reason", "ok")
    kept = run(*some, "--keep", case["chunk_ids"][1][-8:])
    left = f"1 memory kept, {len(KEPT) - 1} archived"
    assert kept.out == f"approved; of session s-1, {left}\n"
    assert texts(brain) == [case["evidence"][1].partition(": ")[2]]
    assert run("--namespace", NAMESPACE, "undo").code == 0
    assert texts(brain) == KEPT
    assert (
        f"review approve (or reject) {case['id']}"
        in run("--namespace", NAMESPACE, "review", "show", case["id"]).out
    )
    assert run("--namespace", NAMESPACE, "review", "reject", case["id"]).code == 0, (
        "in a terminal, in the name of the user"
    )
    (decided_case,) = run("--namespace", NAMESPACE, "review", "list", "--status", "rejected", "--json").json
    assert decided_case["decisions"][-1]["reviewer"] == getpass.getuser()
    assert run("--namespace", NAMESPACE, "undo").code == 0
    assert "there is no memory of capture-" in run(*some, "--keep", "chunk-none").err
    approved = run(
        "--namespace", NAMESPACE, "review", "approve", case["id"], "--reviewer", "Dana", "--reason", "true"
    )
    assert approved.out == "approved; the memories of session s-1 are kept\n"
    with Memory.open(brain, namespace=NAMESPACE) as opened:
        chunk = opened.get(opened.list_chunks(tags="captured")[0])
        assert chunk is not None
        assert chunk.metadata.extra["reviewed_by"] == "Dana"
        assert opened.check() == []


def test_a_prompt_after_a_compaction_is_given_again_what_the_context_no_longer_has(
    hook: Hook, memory: Memory
) -> None:
    memory.remember("The port of the ledger database is 5433.")
    asked = {"client": "copilot-cli", "prompt": "Which port has the ledger database?"}
    assert [bool(hook("user-prompt", **asked).out) for _ in range(2)] == [True, False]
    hook("pre-compact", "copilot-cli")
    assert hook("user-prompt", **asked).out


@pytest.mark.local_only("about what the hooks say")
def test_only_output_that_the_client_accepts_is_printed(hook: Hook, memory: Memory) -> None:
    memory.store.create_chunk("I prefer short answers over long ones.", chunk_type="preference")
    for client in NAMES:
        ran = hook("session-start", client)
        if client in ("cursor", "copilot-cli"):
            assert list(ran.json) == ["additional_context" if client == "cursor" else "additionalContext"]
        else:
            assert set(ran.json["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
        event_name = hook_client_named(client).events["user-prompt"]
        asked = hook(
            "user-prompt", client, prompt="Do I prefer short or long answers?", session_id=f"s-{client}"
        )
        if client == "cursor":  # documents no context for a prompt
            assert asked.out == ""
        elif client == "copilot-cli":
            assert "short answers" in asked.json["additionalContext"]
        else:
            assert asked.json["hookSpecificOutput"]["hookEventName"] == event_name


@pytest.mark.local_only("about what the hooks say")
@pytest.mark.parametrize(
    "client", [name for name in NAMES if "subagent-start" in hook_client_named(name).events]
)
def test_a_subagent_is_given_what_its_session_was_given(
    client: str, hook: Hook, memory: Memory, brain: Path, tmp_path: Path
) -> None:
    """Its context begins empty; that of the session, and what is captured of it, stay as they are."""
    memory.store.create_chunk("I prefer short answers over long ones.", chunk_type="preference")
    transcript = written(tmp_path / "transcript", client, SAID)
    started = hook("session-start", client).json["hookSpecificOutput"]
    for agent in ("a-1", "a-2"):
        given = hook("subagent-start", client, transcript, agent_id=agent).json["hookSpecificOutput"]
        assert given == {**started, "hookEventName": "SubagentStart"}
    assert texts(brain) == []
    memory.store.create_chunk("Reviews of the ledger are on Mondays.")
    asked = {"prompt": "When are reviews of the ledger?", "transcript": transcript}
    assert "Mondays" in hook("user-prompt", client, **asked).out
    hook("subagent-start", client, transcript)
    assert hook("user-prompt", client, **asked).out == ""  # given once to the session


@pytest.mark.local_only("about what the hooks say")
def test_a_person_sees_what_an_agent_is_given_and_why(
    hook: Hook, run: Run, memory: Memory, brain: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.store.create_chunk("I prefer short answers over long ones.", chunk_type="preference")
    with Memory.open(brain, namespace=NAMESPACE) as project:
        project.store.create_chunk(
            "We decided to store every date of the ledger in UTC.", chunk_type="decision"
        )
    memory.store.create_chunk("We decided to store every date of the ledger in UTC.")  # given once
    monkeypatch.chdir(repository)
    (row,) = run("hook", "context", "How are the dates of the ledger stored?", "--json").json
    assert (row["namespace"], row["because"]) == (NAMESPACE, "shares date, ledger, store")
    assert [one["because"] for one in run("hook", "context", "--json").json] == ["a decision", "a preference"]
    assert (
        row["id"] in hook("user-prompt", prompt="How are the dates of the ledger stored?").out
    )  # it counts nothing
    assert (
        run("hook", "context", "What is for lunch?").out
        == "no memories are provided: none shares enough words with it\n"
    )


@pytest.mark.local_only("looks at files")
def test_what_a_session_was_shown_is_no_file_that_git_would_merge(
    hook: Hook, memory: Memory, brain: Path
) -> None:
    memory.store.create_chunk("I prefer short answers over long ones.", chunk_type="preference")
    assert hook("session-start").out
    told = [path for path in brain.rglob("*s-1*") if path.is_file()]
    assert [path.parents[1] for path in told] == [brain / "memory" / "index"]  # which .gitignore leaves out


@pytest.mark.local_only("about what the hooks say")
def test_a_pause_gives_and_captures_nothing_of_what_is_said_in_it(
    hook: Hook, run: Run, brain: Path | str, memory: Memory, tmp_path: Path
) -> None:
    memory.store.create_chunk("I prefer short answers over long ones.", chunk_type="preference")
    assert "short answers" in hook("session-start").out
    paused = run("hook", "pause", "1h").out
    assert paused.startswith("the hooks are paused until 2") and "rlm-mem hook resume" in paused
    assert "paused until" in run("doctor", "--json").out
    said: list[Said] = [("user", "Always run the linter before you commit anything here."), ("agent", "Yes.")]
    transcript = written(tmp_path / "t.jsonl", "claude-code", said)
    for kind in ("session-start", "user-prompt", "stop", "session-end"):
        more = {"prompt": "Do I prefer short or long answers?"} if kind == "user-prompt" else {}
        assert hook(kind, transcript=transcript, **more).out == ""
    hook("user-prompt", prompt="Always use tabs in each file of this repository.")  # without a transcript
    assert run("hook", "resume").out == "the hooks are active again\n"
    assert run("hook", "resume").out == "the hooks were not paused\n"
    written(
        transcript, "claude-code", [*said, ("user", "We decided to store every date of the ledger in UTC.")]
    )
    hook("stop", transcript=transcript)
    assert texts(brain) == ["User: We decided to store every date of the ledger in UTC."]
    assert run("hook", "pause", "soon").code == 1  # 2 has a meaning for clients
    assert run("hook", "pause", "0s").code == 0 and run("hook", "resume").out == "the hooks were not paused\n"
    assert "until resumed" in run("hook", "pause").out
    assert hook("session-start", session_id="s-9").out == ""
    assert run("hook", "resume").code == 0


@pytest.mark.local_only("about what the hooks say")
@pytest.mark.parametrize("options", [[], ["--project"]])
def test_hooks_of_claude_code_that_cursor_runs_beside_its_own_do_nothing(
    options: list[str],
    hook: Hook,
    run: Run,
    memory: Memory,
    repository: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory.store.create_chunk("I prefer short answers over long ones.", chunk_type="preference")
    from_cursor = {"cursor_version": "2.4.0", "workspace_roots": [str(repository)]}
    assert "short answers" in hook("session-start", **from_cursor).out
    monkeypatch.chdir(repository)
    run("install", "cursor", "--hooks", *options)
    assert hook("session-start", **from_cursor).out == ""
    assert "short answers" in hook("session-start", "cursor").out
    assert "short answers" in hook("session-start", session_id="s-2").out  # of Claude Code itself


@pytest.mark.local_only("looks at files")
def test_without_a_memory_a_session_start_prints_nothing(hook: Hook, brain: Path) -> None:
    assert hook("session-start").out == ""
    assert not brain.exists()


@pytest.mark.local_only("about what the hooks say")
def test_the_context_keeps_its_budget(hook: Hook, memory: Memory) -> None:
    from rlm_mem.text.tokens import count_tokens

    for number in range(60):
        memory.store.create_chunk(f"Preference {number}: " + "ledger words " * 100, chunk_type="preference")
    told = hook("session-start").json["hookSpecificOutput"]["additionalContext"]
    assert 600 < count_tokens(told) <= 1200
    assert hook("session-start", source="resume").out == ""
    assert hook("session-start", source="compact").out


@pytest.mark.local_only("about what the hooks say")
@pytest.mark.parametrize("kinds", [("preference", "fact"), ("decision", "decision")])
def test_the_context_of_a_session_fills_its_budget(hook: Hook, brain: Path, kinds: tuple[str, str]) -> None:
    from rlm_mem.text.tokens import count_tokens

    with Memory.open(brain, namespace=NAMESPACE) as memory:
        for number, kind in enumerate(kinds * 20):
            memory.store.create_chunk(
                f"User: The {kind} of ledger {number} is to keep one file for each month.", chunk_type=kind
            )
    told = hook("session-start").json["hookSpecificOutput"]["additionalContext"]
    assert 1000 < count_tokens(told) <= 1200


@pytest.mark.local_only("about what the hooks say")
def test_the_context_of_a_prompt_with_one_memory_needs_no_tables_of_tokens(memory: Memory) -> None:
    from rlm_mem.text.tokens import _toktok

    memory.remember("The ledger database listens on port 5433, since 5432 is taken by the archive.")
    _toktok.cache_clear()  # as in a new process
    asked = "Which port does the ledger database listen on?"
    assert "5433" in prompt_context([memory], asked, budget=250).text
    assert prompt_context([memory], "Paint the fence green", budget=250).text == ""
    assert not _toktok.cache_info().currsize


@pytest.mark.local_only("about the rules in the folder of a brain")
def test_rules_with_a_wrong_pattern_stop_the_capture_and_not_the_context(
    hook: Hook, brain: Path, memory: Memory, tmp_path: Path
) -> None:
    memory.store.create_chunk("I prefer short answers over long ones.", chunk_type="preference")
    (brain / RULES_FILE).write_text('[[rule]]\nname = "open"\nspeakers = ["user"]\npatterns = ["("]\n')
    transcript = written(tmp_path / "said.jsonl", "claude-code", SAID)
    assert "short answers" in hook("session-start", transcript=transcript).out
    asked = "Do I prefer short or long answers?"
    assert "short answers" in hook("user-prompt", transcript=transcript, prompt=asked, session_id="s-2").out
    assert not log_file().exists()
    hook("stop", transcript=transcript)
    assert "'(' is not a valid RE2 pattern" in log_file().read_text()


_SIGN = '[[sign]]\nname = "open"\npatterns = ["open"]\n'
_RULE = '[[rule]]\nname = "open"\nspeakers = ["user"]\npatterns = ["open"]\n'


@pytest.mark.local_only("about the rules in the folder of a brain")
@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        (_RULE + 'type = "desicion"', "unknown type 'desicion'"),
        (_RULE + "confidence = 2", "confidence of rule 'open' must be from 0 to 1"),
        (_RULE.replace('"open"]', f'"{"a" * 1_001}"]'), "at most 1000 characters"),
        (_RULE * 101, "at most"),
        (_SIGN + "user = nan", "weight of sign 'open' must be from -20 to 20"),
        (_SIGN + 'type = "desicion"', "unknown type 'desicion'"),
        ("[weighing]\nthreshold = 2", "weighing.threshold must be from 0 to 1"),
        ("[limits]\nper_session = -1", "limits.per_session must be from 0"),
        ("[limits]\nnosuch = 1", "nosuch"),
        ("[[", "capture.toml"),
        ("# " + "a" * 1_000_000, "is larger than"),
    ],
    ids=[
        "type",
        "confidence",
        "pattern",
        "rules",
        "weight",
        "type of a sign",
        "threshold",
        "limit",
        "unknown",
        "syntax",
        "size",
    ],
)
def test_rules_that_could_keep_nothing_are_refused(run: Run, brain: Path, rules: str, reason: str) -> None:
    brain.mkdir(exist_ok=True)
    (brain / RULES_FILE).write_text(rules)
    for command in (("rules",), ("try", str(brain / RULES_FILE))):
        ended = run("hook", *command)
        assert ended.code == 1 and reason in ended.err


@pytest.mark.local_only("about the rules in the folder of a brain")
def test_the_rules_are_written_once_to_be_edited_and_may_name_a_type_of_the_brain(
    run: Run, brain: Path
) -> None:
    assert run("hook", "rules", "--write").code == 0
    assert run("hook", "rules", "--write").code == 1
    assert run("hook", "rules", "--json").json["file"] == str(brain / RULES_FILE)
    (brain / RULES_FILE).write_text(_RULE + 'type = "ticket"')
    (brain / "config.toml").write_text('[types.chunk.ticket]\ndescription = "a ticket"\n')
    assert [rule["type"] for rule in run("hook", "rules", "--json").json["rules"]] == ["ticket"]


@pytest.mark.local_only("about the rules, not about the store")
def test_signs_are_added_up_to_the_threshold_and_the_most_certain_sentences_are_kept(tmp_path: Path) -> None:
    sign = '[[sign]]\nname = "{0}"\ntype = "{1}"\nuser = {2}\npatterns = ["{0}"]\n'
    (tmp_path / RULES_FILE).write_text(
        "[limits]\nper_message = 2\n[weighing]\nthreshold = 0.5\nuser = -3.0\nagent = -3.0\n"
        + sign.format("harbour", "fact", 2.0)
        + sign.format("never", "decision", 1.5)
        + sign.format("maybe", "note", -1.0)
    )
    rules = load_rules(tmp_path)
    said = (
        "The harbour closes early. The harbour never closes early in winter months. "
        "The harbour maybe never closes early in spring."
    )
    assert [(one.type, one.signs) for one in rules.kept(SessionMessage("user", said))] == [
        ("fact", ("harbour", "never"))
    ]
    assert rules.kept(SessionMessage("agent", said)) == []
    sure = (tmp_path / RULES_FILE).read_text().replace("user = -3.0", "user = -1.9")
    (tmp_path / RULES_FILE).write_text(sure)
    kept = load_rules(tmp_path).kept(SessionMessage("user", said))
    assert [one.signs for one in kept] == [("harbour", "never"), ("harbour", "never", "maybe")]


@pytest.mark.local_only("about the rules, not about the store")
def test_signs_without_a_base_are_weighed_as_in_the_shipped_rules(tmp_path: Path) -> None:
    (tmp_path / RULES_FILE).write_text('[[sign]]\nname = "harbour"\nuser = 2.0\npatterns = ["harbour"]\n')
    rules, shipped = load_rules(tmp_path), load_rules(None)
    assert rules.weighing == shipped.weighing
    said = "The harbour closes early in winter. The tests of the ledger pass now."
    assert [one.text for one in rules.kept(SessionMessage("user", said))] == [
        "The harbour closes early in winter."
    ]


@pytest.mark.local_only("about the rules, not about the store")
def test_of_a_long_message_the_beginning_and_the_end_are_read_and_equal_sentences_are_bounded() -> None:
    rule = "Always run the linter before you commit."
    pasted = "The committee met again without any result. " * 600
    for said, kept in (
        (rule + " " + pasted, 1),
        (pasted + rule, 1),
        (pasted + rule + " " + pasted, 0),
        (f"{rule} " * 9, 3),
    ):
        assert [one.text for one in load_rules(None).kept(SessionMessage("user", said))] == [rule] * kept


@pytest.mark.local_only("about the rules, not about the store")
def test_limits_are_those_of_the_rules_in_force(tmp_path: Path) -> None:
    assert load_limits(None) == load_limits(tmp_path) == load_rules(tmp_path).limits
    (tmp_path / RULES_FILE).write_text("[limits]\nprompt_tokens = 7\n")
    assert load_limits(tmp_path).prompt_tokens == load_rules(tmp_path).limits.prompt_tokens == 7


@pytest.mark.local_only("about transcripts, not about the store")
def test_a_session_is_bounded_and_screened(hook: Hook, brain: Path, tmp_path: Path) -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    said = [("user", f"Always use the key {key} for the staging server of the ledger.")]
    said += [
        ("user", f"We decided to name module {number} of the ledger after river {number * 7}.")
        for number in range(40)
    ]
    hook("stop", transcript=written(tmp_path / "t.jsonl", "claude-code", said))
    kept = texts(brain)
    assert len(kept) == 30
    assert not any("sk-proj" in text for text in kept)


@pytest.mark.local_only("about transcripts, not about the store")
def test_trying_the_rules_hides_what_a_hook_would_hide_and_names_the_bound(run: Run, tmp_path: Path) -> None:
    key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    said = [("user", f"Always use the key {key} for the staging server of the ledger.")]
    said += [
        ("user", f"We decided to name module {number} of the ledger after a river.") for number in range(31)
    ]
    shown = run("hook", "try", str(written(tmp_path / "t.jsonl", "claude-code", said))).out
    assert "sk-proj" not in shown
    assert shown.endswith("32 messages, 31 kept; only the first 30 of one session\n")


HOSTILE = [
    b"",
    b"\x00\xff\xfe not text\n",
    b"[" * 200_000 + b"\n",
    b'{"type":"user","message":{"role":"user","content":"' + b"a" * 3_000_000 + b'"}}\n',
    b'{"type":"user","message":{"role":["user"],"content":{"a":1}}}\n{"message":7}\n{"payload":{"type":{}}}\nnull\n[1]\n',
    b'{"type":"user","timestamp":"not a time","message":{"role":"user","content":"\\ud800 We decided to drop it."}}\n',
    b'{"messages":[{"type":"user","content":[1,null,{"text":7},{"type":"text"}]},5,null]}',
    b"[" + b"{" * 5_000,
]


@pytest.mark.local_only("about transcripts, not about the store")
def test_a_hostile_transcript_affects_no_other(hook: Hook, brain: Path, tmp_path: Path) -> None:
    good = written(tmp_path / "good", "claude-code", SAID).read_bytes()
    for number, data in enumerate(HOSTILE):
        path = tmp_path / f"{number}.jsonl"
        path.write_bytes(data + b"\n" + good if data.endswith(b"\n") else data)
        hook("stop", transcript=path, session_id=f"s-{number}")
    assert set(KEPT) <= set(texts(brain))
    assert not log_file().exists(), log_file().read_text()


@pytest.mark.local_only("about transcripts, not about the store")
def test_a_half_written_line_is_read_once_complete(hook: Hook, brain: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", "claude-code", SAID[:3])
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    cut = len(whole) - len(whole.splitlines()[-1]) - 1
    hook("stop", transcript=path)
    before = texts(brain)
    path.write_bytes(whole + written(tmp_path / "more", "claude-code", SAID[4:]).read_bytes())
    assert cut < len(whole)
    hook("stop", transcript=path)
    assert before < texts(brain) or set(before) < set(texts(brain))
    assert texts(brain) == KEPT


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("whole", ["object", "list"])
def test_a_transcript_of_one_document_is_read_however_it_is_written(
    whole: str, indent: int | None, tmp_path: Path
) -> None:
    messages = [{"type": "user", "content": "One."}, {"type": "gemini", "content": "Two."}]
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"messages": messages} if whole == "object" else messages, indent=indent))
    part = transcripts.read_part(path)
    assert [(one.speaker, one.text) for one in part.messages] == [("user", "One."), ("agent", "Two.")]


@pytest.mark.parametrize("size", [300, 301, 340, 1_000])
def test_a_transcript_longer_than_one_call_reads_loses_no_message(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "_MAX_BYTES", size)
    path = tmp_path / "t.jsonl"
    said = [f"message {number}" for number in range(20)]
    lines = [json.dumps({"role": "user", "content": text}) + "\n" for text in said]
    path.write_text("".join([*lines[:10], "x" * 3 * size + "\n", *lines[10:]]))
    found, offset = [], 0
    while (part := transcripts.read_part(path, offset)).offset > offset:
        found += [message.text for message in part.messages]
        offset = part.offset
    assert (found, offset) == (said, path.stat().st_size)


@pytest.mark.parametrize(
    "stdin",
    [
        b"no JSON",
        b"[]",
        b"{}",
        b'{"transcript_path": 7, "cwd": {}, "session_id": []}',
        b"\xff" * 100,
        b"[" * 100_000,
    ],
)
@pytest.mark.local_only("about what the hooks say")
def test_a_hook_that_fails_never_stops_the_agent(run: Run, memory: Memory, stdin: bytes) -> None:
    for kind in ("session-start", "user-prompt", "stop"):
        ran = run("hook", kind, stdin=stdin)
        assert (ran.code, ran.out, ran.err) == (0, "", "")
    for arguments in (("stop", "--client", "nobody"), ("stop", "--brain", "mysql://x")):
        ran = run("hook", *arguments, stdin=stdin)
        assert (ran.code, ran.out) == (0, "")
    assert "nobody" in log_file().read_text()
    # An unknown event of a newer plugin: 2 would refuse the user's prompt.
    assert run("hook", "no-such-event", stdin=stdin).code == 1


@pytest.mark.local_only("about the command line")
@pytest.mark.local_only("about what the hooks say")
def test_a_hook_without_a_place_for_its_memory_or_its_log_never_stops_the_agent(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("RLM_MEM_BRAIN", "mysql://elsewhere")
    ran = run("hook", "stop", stdin="{}")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert "mysql://elsewhere" in (tmp_path / "rlm-mem" / "hooks.log").read_text(encoding="utf-8")
    _without_home(monkeypatch)
    ran = run("hook", "stop", stdin="{}")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


@pytest.mark.local_only("about the command line")
def test_a_user_without_a_home_folder_is_told_what_to_set(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _without_home(monkeypatch)
    for command in ("list", "doctor", "uninstall"):
        ran = run(command)
        assert (ran.code, "this user has no home folder" in ran.err) == (2, True), command


@pytest.mark.local_only("about the command line")
def test_a_working_folder_that_was_removed_is_named_and_stops_no_agent(
    run: Run, brain: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert run("remember", "The kettle is red.").code == 0
    Path.cwd().rmdir()
    assert run("search", "zeppelin").out == "nothing found\n", "it may belong to a project"
    ran = run("hook", "session-start", stdin="{}")
    assert (ran.code, ran.err, "kettle" in ran.out) == (0, "", False)
    monkeypatch.delenv("RLM_MEM_BRAIN")
    for command in (["list"], ["doctor"], ["install", "cursor", "--project"]):
        ran = run(*command)
        assert (ran.code, "the working folder was removed" in ran.err) == (2, True), command
    ran = run("hook", "stop", stdin="{}")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


def _without_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose user is not in its list of users."""
    for name in ("HOME", "XDG_DATA_HOME", "RLM_MEM_BRAIN"):
        monkeypatch.delenv(name, raising=False)

    def none(_: type[Path]) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", classmethod(none))


def test_an_event_can_be_asked_for_its_help_and_given_its_options_in_any_form(run: Run, brain: Path) -> None:
    assert "--client" in run("hook", "stop", "--help").out
    # Of a client without a transcript a prompt is captured when it is sent.
    event = json.dumps({"session_id": "s", "cwd": "/", "prompt": "Always run the linter before you commit."})
    for options in (["--namespace=ann", "--client=codex"], ["--client", "codex", "--namespace", "ben"]):
        ran = run("hook", "user-prompt", *options, stdin=event)
        assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert texts(brain, "ann") == texts(brain, "ben") == ["User: Always run the linter before you commit."]
    assert run("hook", "stop", "--client").code == run("hook", "stop", "now").code == 1


@pytest.mark.local_only("about the command line")
def test_an_interrupted_hook_ends_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted:
        @property
        def buffer(self) -> Any:
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Interrupted())
    assert main(["hook", "stop"]) == 130


@pytest.mark.local_only("about time")
def test_a_hook_ends_in_time_when_stdin_stays_open(tmp_path: Path) -> None:
    code = (
        "import sys; from rlm_mem.mcp import hook_clients; hook_clients.SECONDS['stop'] = 0.2; "
        "from rlm_mem.cli import main; sys.exit(main(['hook', 'stop']))"
    )
    home = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=home
    ) as started:
        assert started.wait(60) == 0  # stdin is open all the while
        assert started.stdout is not None
        assert started.stdout.read() == b""
    assert "ended after the limit of" in (tmp_path / "rlm-mem" / "hooks.log").read_text()


def test_a_captured_correction_replaces_the_captured_choice_and_proposes_to_replace_others(
    hook: Hook, run: Run, brain: Path | str, tmp_path: Path
) -> None:
    said: list[Said] = [
        ("user", "We decided to use Corvid for the tickets of the ledger."),
        ("user", "No, let's use Tallyboard instead of Corvid for the tickets of the ledger."),
    ]
    with Memory.open(brain, namespace=NAMESPACE) as opened:
        earlier = "We use Corvid for the tickets of the ledger."
        by_hand = opened.remember(earlier, occurred_at="2026-02-01").chunk_ids[0]
    for end in (1, 2):
        hook("stop", transcript=written(tmp_path / "t.jsonl", "claude-code", said[:end]))
    with Memory.open(brain, namespace=NAMESPACE) as opened:
        stored = {chunk.content: chunk.metadata.superseded_by for chunk in opened.store.iter_chunks()}
        corrected = opened.search("Tallyboard", limit=1)[0].chunk_id
        assert stored[f"User: {said[0][1]}"] == corrected
        assert stored[earlier] is None
        [case] = [one for one in opened.continuum.review.cases() if one.kind == "replace"]
        assert case.chunk_ids == [corrected, by_hand]


@pytest.mark.parametrize(
    "client", ["claude-code", "gemini-cli"]
)  # lines, and one object that is reread whole
@pytest.mark.local_only("about transcripts, not about the store")
def test_what_was_undone_in_a_session_is_not_captured_again_by_its_next_turn(
    client: str, hook: Hook, run: Run, brain: Path, tmp_path: Path
) -> None:
    transcript = tmp_path / "transcript"
    hook("stop", client, written(transcript, client, SAID[:3]))
    assert len(texts(brain)) == 2
    hook("stop", client, written(transcript, client, SAID[:4]))  # a turn with nothing to keep
    assert run("--namespace", NAMESPACE, "undo").code == 0
    assert texts(brain) == []
    hook("stop", client, written(transcript, client, SAID[:5]))
    assert texts(brain) == [KEPT[1]]


@pytest.mark.local_only("about a file of the user")
def test_a_pause_that_is_cut_off_as_it_is_written_is_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of its end was a pause without end."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(files, "publish", interrupted)
        assert run("hook", "pause", "1h").code == 130
    assert run("hook", "resume").out == "the hooks were not paused\n"


@pytest.mark.parametrize("client", ["claude-code", "gemini-cli"])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.local_only("about transcripts, not about the store")
def test_what_was_said_in_a_pause_is_not_captured_after_it(
    client: str, whole: bool, hook: Hook, run: Run, brain: Path, memory: Memory, tmp_path: Path
) -> None:
    if whole:
        text = SHIPPED.read_text().replace("whole_transcript = false", "whole_transcript = true")
        (brain / RULES_FILE).write_text(text)
    transcript = tmp_path / "transcript"
    run("hook", "pause", "1h")
    hook("stop", client, written(transcript, client, SAID[:3]))
    run("hook", "resume")
    hook("stop", client, written(transcript, client, SAID[:5]))
    found = texts(brain)
    assert KEPT[1] in found and not any(said in one for _, said in SAID[:3] for one in found)


@pytest.mark.local_only("about what the hooks say")
def test_a_memory_is_given_once_by_a_hook_that_fails_to_capture_too(
    hook: Hook, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The context is printed first: a capture that fails, or takes longer than the hook may, does not take it away."""
    memory.store.create_chunk("I prefer short answers over long ones.", chunk_type="preference")
    asked = "Do I prefer short or long answers?"
    with monkeypatch.context() as broken:
        broken.setattr(capture, "capture_messages", lambda *_: dict[str, None]()["full disk"])
        assert "short answers" in hook("user-prompt", prompt=asked).out
        assert "full disk" in log_file().read_text()
    assert hook("user-prompt", prompt=asked).out == ""


def test_a_memory_that_was_found_but_not_given_is_given_with_the_next_prompt(
    hook: Hook, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.store.create_chunk("I prefer short answers over long ones.", chunk_type="preference")
    asked = "Do I prefer short or long answers?"
    with monkeypatch.context() as broken:
        broken.setattr(HookClient, "context", lambda *_: dict[str, None]()["closed pipe"])
        assert hook("user-prompt", prompt=asked).out == ""
    assert "short answers" in hook("user-prompt", prompt=asked).out


@pytest.mark.local_only("about the fields of an event")
def test_a_prompt_waits_for_no_capture_where_the_end_of_the_turn_names_the_transcript(
    hook: Hook, brain: Path, tmp_path: Path
) -> None:
    said: list[Said] = [("user", "We decided to store every date of the ledger in UTC.")]
    hook("user-prompt", "copilot-cli", prompt=said[0][1])
    assert not brain.exists()
    hook("stop", "copilot-cli", written(tmp_path / "t.jsonl", "copilot-cli", said))
    assert texts(brain) == [f"User: {said[0][1]}"]


def test_what_a_client_writes_to_its_transcript_as_the_hook_begins_is_captured(
    hook: Hook, brain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copilot CLI runs the hook at the end of a turn before the turn is in the file."""
    said: list[Said] = [("user", "We decided to store every date of the ledger in UTC.")]
    transcript = tmp_path / "t.jsonl"
    transcript.touch()
    monkeypatch.setattr("time.sleep", lambda _: written(transcript, "copilot-cli", said))
    hook("stop", "copilot-cli", transcript)
    assert texts(brain) == [f"User: {said[0][1]}"]


def test_the_end_of_a_session_captures_what_a_hook_before_it_could_not(hook: Hook, brain: Path) -> None:
    """Copilot CLI names the transcript only at the end of a turn; that hook may have been ended at its time limit."""
    said: list[Said] = [("user", "We decided to store every date of the ledger in UTC.")]
    sessions = Path.home() / ".copilot" / "session-state"
    (sessions / "s-1").mkdir(parents=True)
    written(sessions / "s-1" / "events.jsonl", "copilot-cli", said)
    hook("session-end", "copilot-cli", session_id="../session-state/s-1")  # no id, but a path
    assert texts(brain) == []
    hook("session-end", "copilot-cli", session_id="s-1")
    assert texts(brain) == [f"User: {said[0][1]}"]


@pytest.mark.parametrize(
    ("client", "field"), [("codex", "last_assistant_message"), ("gemini-cli", "prompt_response")]
)
def test_without_a_transcript_what_the_event_tells_is_captured(
    hook: Hook, brain: Path, client: str, field: str
) -> None:
    hook("user-prompt", client=client, prompt="We decided to store every date of the ledger in UTC.")
    told = "The root cause was that the importer read dates in the local time zone."
    for _ in range(2):
        hook("stop", client=client, **{field: told})
    assert texts(brain) == [f"Agent: {told}", "User: We decided to store every date of the ledger in UTC."]


@pytest.mark.parametrize(
    ("client", "fields"),
    [
        ("gemini-cli", {"prompt": "<hook_context>- The port is 5433.</hook_context>\n\n{}"}),
        ("gemini-cli", {"prompt": "{}<hook_context>- The port is 5433.</hook_context>"}),
        ("qwen-code", {"prompt": "{} The port is 5433, says the pasted file.", "submitted_prompt": "{}"}),
    ],
)
@pytest.mark.local_only("about the fields of an event")
def test_a_prompt_is_what_was_typed_and_not_what_is_sent_with_it(
    client: str, fields: dict[str, str], hook: Hook, memory: Memory, brain: Path
) -> None:
    memory.remember("The port of the ledger database is 5433.")
    said = {name: form.format("We decided to store all dates in UTC.") for name, form in fields.items()}
    assert hook("user-prompt", client, **said).out == ""
    assert texts(brain) == ["User: We decided to store all dates in UTC."]
    asked = {name: form.format("Which port has the ledger database?") for name, form in fields.items()}
    assert "5433" in hook("user-prompt", client, **asked).json["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("Explain <hook_context> to me.", "Explain <hook_context> to me."),
        ("Explain it.\n<hook_context>- cut off", "Explain it."),
        ("<hook_context>- cut off", ""),
        ("<hook_context>a</hook_context>Why?<hook_context>b</hook_context>", "Why?"),
    ],
)
def test_of_a_prompt_only_the_context_of_hooks_is_left_out(text: str, typed: str) -> None:
    assert without_context(text) == typed


WRITTEN = ["The writer was here.", "The writer wrote this."]


@pytest.fixture
def writer(brain: Path | str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[None]]:
    """Another writer of the project's memory, which writes for as long as the block."""
    monkeypatch.setenv("RLM_MEM_STORE_LOCK_WAIT_SECONDS", "0.2")

    @contextmanager
    def writing() -> Iterator[None]:
        begun, end = threading.Event(), threading.Event()

        def write() -> None:
            with Memory.open(brain, namespace=NAMESPACE) as other:
                other.remember("The writer was here.")
                with other.batch():
                    other.remember("The writer wrote this.")
                    begun.set()
                    assert end.wait(60)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            assert begun.wait(60)
            yield
        finally:
            end.set()
            thread.join(60)

    return writing


def test_what_is_said_while_another_process_writes_is_captured_by_the_next_hook(
    hook: Hook, brain: Path | str, writer: Callable[[], AbstractContextManager[None]]
) -> None:
    """No transcript has it, so that it would be lost."""
    key = "ghp_" + "x9Y8z7" * 6
    with writer():
        hook("user-prompt", client="gemini-cli", prompt=f"We decided to store every date in UTC. Key: {key}")
        hook(
            "stop",
            client="gemini-cli",
            prompt_response="The root cause was that the importer read local time.",
        )
        with Memory.open(brain, namespace=NAMESPACE, read_only=True) as memory:
            waiting = list(memory.store.files.contents(memory.store.files.names(WAITING)))
            assert len(waiting) == 2 and all(key.encode() not in data for _, data in waiting)
    assert not log_file().exists(), "nothing was lost"
    for _ in range(2):
        hook("session-end", client="gemini-cli")
        assert [one.partition(" Key")[0] for one in texts(brain)] == [
            "Agent: The root cause was that the importer read local time.",
            *WRITTEN,
            "User: We decided to store every date in UTC.",
        ]
        with Memory.open(brain, namespace=NAMESPACE) as memory:
            assert memory.store.files.names(WAITING) == [] and memory.check() == []


def test_what_waits_is_erased_and_a_damaged_file_of_it_is_moved_aside(
    hook: Hook, brain: Path | str, writer: Callable[[], AbstractContextManager[None]]
) -> None:
    with writer():
        hook("user-prompt", client="gemini-cli", prompt="Zyxanna decided to store every date in UTC.")
        hook("user-prompt", client="gemini-cli", prompt="We decided to use port 5433 for the ledger.")
    with Memory.open(brain, namespace=NAMESPACE) as memory:
        files = memory.store.files
        memory.erase(person="Zyxanna", dry_run=False)
        (left,) = files.names(WAITING)
        files.write(left, (files.read(left) or b"")[:-9])
        assert [one.code for one in memory.check()] == ["unreadable-state"]
        hook("session-end", client="gemini-cli")
        assert all(one.done for one in memory.repair(dry_run=False)) and memory.check() == []
        assert any("port 5433" in data.decode() for _, data in files.contents(files.names("archive/damaged")))
    assert texts(brain) == WRITTEN


def test_what_waits_is_in_no_export_and_a_hook_without_messages_adds_nothing(
    hook: Hook,
    run: Run,
    brain: Path | str,
    tmp_path: Path,
    writer: Callable[[], AbstractContextManager[None]],
) -> None:
    with writer():
        hook("user-prompt", client="gemini-cli", prompt="We decided to store every date in UTC.")
        for _ in range(2):
            hook("session-end", client="gemini-cli")
    export = tmp_path / "export.zip"
    assert run("--namespace", NAMESPACE, "export", str(export)).code == 0
    with Memory.open(brain, namespace=NAMESPACE) as memory:
        assert len(memory.store.files.names(WAITING)) == 1
    with zipfile.ZipFile(export) as archive:
        assert not [name for name in archive.namelist() if WAITING in name]
        about = archive.read("rlm-mem-export.json")
    with zipfile.ZipFile(export, "w") as archive:
        archive.writestr("rlm-mem-export.json", about)
        archive.writestr(f"files/{WAITING}/1.json", "{}")
    assert run("import", str(export)).code != 0, "an import says nothing in the name of the user"


@pytest.mark.local_only("about the lock of the files")
def test_what_is_erased_while_a_hook_waits_for_the_lock_is_not_captured(
    hook: Hook,
    brain: Path,
    writer: Callable[[], AbstractContextManager[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with writer():
        hook("user-prompt", client="gemini-cli", prompt="Zyxanna decided to store every date in UTC.")
    monkeypatch.setenv("RLM_MEM_STORE_LOCK_WAIT_SECONDS", "60")
    with Memory.open(brain, namespace=NAMESPACE) as memory, Memory.open(brain, namespace=NAMESPACE) as other:
        stored, asks = memory.store.files, threading.Event()
        transaction = type(stored).transaction

        def asked(files: Any) -> Any:
            asks.set()
            return transaction(files)

        session = Session("session", "gemini-cli")
        thread = threading.Thread(
            target=capture.capture_messages, args=(other, [], session, load_rules(brain))
        )
        with memory.batch():
            monkeypatch.setattr(type(stored), "transaction", asked)
            thread.start()
            assert asks.wait(60), "it waits for the lock"
            for name in stored.names(WAITING):
                stored.remove(name)
        thread.join(60)
    assert texts(brain) == WRITTEN


@pytest.mark.parametrize(
    "kind", ["session-start", "user-prompt", "tool-use", "stop", "pre-compact", "session-end"]
)
def test_a_hook_that_waited_in_vain_logs_it_once(
    kind: str, hook: Hook, run: Run, repository: Path, tmp_path: Path,
    writer: Callable[[], AbstractContextManager[None]], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(repository.parent)
    for text in ("Always sort the imports.", "Never sort the imports."):
        (repository.parent / "CLAUDE.md").write_text(f"# Rules\n\n{text}\n", "utf-8")
        if text.startswith("Always"):
            run("project", "import")
    transcript = written(tmp_path / "transcript", "claude-code", SAID)
    with writer():
        hook(kind, transcript=transcript, prompt="Which port?", tool_input={"command": "sort the imports"})
    lines = log_file().read_text().splitlines() if log_file().exists() else []
    assert [line for line in lines if "lock" in line] == lines
    assert len(lines) == (0 if kind in ("user-prompt", "tool-use") else 1)


@pytest.mark.parametrize(("kind", "memories"), [("session-start", 2), ("user-prompt", 2), ("stop", 1)])
@pytest.mark.local_only("about the lock of the files")
def test_a_hook_waits_for_other_writers_for_half_of_its_time(
    kind: str, memories: int, hook: Hook, brain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then it can still give what it reads, or log what it waited for, before it is ended."""
    waits: list[float] = []
    opened = Memory.open

    def open_memory(*given: Any, config: Config, **named: Any) -> Memory:
        waits.append(config.store.lock_wait_seconds)
        return opened(*given, config=config, **named)

    monkeypatch.setattr(Memory, "open", open_memory)
    # Each memory is opened after all of the wait that it may take.
    monkeypatch.setattr(events, "time", SimpleNamespace(monotonic=lambda: sum(waits)))
    transcript = written(tmp_path / "transcript", "claude-code", SAID)
    for most, set_to in ((SECONDS[kind] / 2, None), (0.5, "0.5")):
        if set_to is not None:
            monkeypatch.setenv("RLM_MEM_STORE_LOCK_WAIT_SECONDS", set_to)
        (brain / "memory").mkdir(parents=True, exist_ok=True)
        hook(kind, transcript=transcript, prompt="Which port?")
        assert len(waits) == memories
        assert waits[0] == most
        assert sum(waits) <= SECONDS[kind] / 2
        waits.clear()


@pytest.mark.local_only("about the fields of an event")
def test_a_result_of_a_tool_is_no_prompt(hook: Hook, brain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Qwen Code runs the hook with each result, without a prompt, and waits for it: the memory is not even opened."""
    monkeypatch.setattr(Memory, "open", lambda *_, **__: pytest.fail("opened"))
    assert hook("user-prompt", "qwen-code", prompt="").out == ""
    assert not log_file().exists()


@pytest.mark.parametrize("client", ["claude-code", "gemini-cli"])
@pytest.mark.local_only("about transcripts, not about the store")
def test_what_was_deleted_in_a_session_is_not_captured_again_by_its_next_turn(
    client: str, hook: Hook, brain: Path, tmp_path: Path
) -> None:
    transcript = tmp_path / "transcript"
    hook("stop", client, written(transcript, client, SAID[:3]))
    with Memory.open(brain, namespace=NAMESPACE) as opened:
        for one in opened.list_chunks():
            opened.store.delete_chunk(one)
    hook("stop", client, written(transcript, client, SAID[:5]))
    assert texts(brain) == [KEPT[1]]


@pytest.mark.local_only("about the messages of an event, not about the store")
def test_a_deleted_message_that_a_client_passes_again_is_not_kept_again(brain: Path, memory: Memory) -> None:
    text = SHIPPED.read_text().replace("whole_transcript = false", "whole_transcript = true")
    (brain / RULES_FILE).write_text(text)
    said = [SessionMessage("user", SAID[0][1])]
    for kept in (1, 0):
        capture.capture_messages(memory, said, Session("s-1", "a-client"), load_rules(brain))
        assert len(memory.list_chunks()) == kept
        for one in memory.list_chunks():
            memory.store.delete_chunk(one)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            "No, don't keep the cache for reads. We decided to remove it altogether because it hides rotations.",
            [
                "No, don't keep the cache for reads. We decided to remove it altogether because it hides rotations."
            ],
        ),
        (
            "We chose Redis for the session store. Let's drop it, Postgres is enough.",
            ["We chose Redis for the session store. Let's drop it, Postgres is enough."],
        ),
        (
            "The old queue loses messages under load. We decided to remove it.",
            ["The old queue loses messages under load. We decided to remove it."],
        ),
        ("We decided to remove it.", []),
        ("I looked at the logs. We decided to store dates in UTC.", ["We decided to store dates in UTC."]),
        ("ok don't add retries anywhere in this repo", ["ok don't add retries anywhere in this repo"]),
        ("We use Decimal for all amounts, never float.", ["We use Decimal for all amounts, never float."]),
        (
            "The export has a header of two lines. Please keep that in mind.",
            ["The export has a header of two lines."],
        ),
        ("We use Decimal, never float numbers. Remember that!", ["We use Decimal, never float numbers."]),
        ("That was a good idea. Please remember that.", []),
        (
            "thanks! remember that the demo for Petra is on 4 December",
            ["remember that the demo for Petra is on 4 December"],
        ),
        ("great. never mock the database in these tests", ["never mock the database in these tests"]),
        ("We use htmx in this project, no React!", ["We use htmx in this project, no React!"]),
        ("done. never mind the failing build on the server", []),
        ("Keys always come from the environment.", ["Keys always come from the environment."]),
        (
            "don't run the whole suite each time, only the touched tests",
            ["don't run the whole suite each time, only the touched tests"],
        ),
        (
            "Marta owns the chart of accounts, ask her before changing account numbers",
            ["Marta owns the chart of accounts, ask her before changing account numbers"],
        ),
        (
            "the importer must finish within 15 minutes, the window ends at 4",
            ["the importer must finish within 15 minutes, the window ends at 4"],
        ),
        (
            "We moved from asyncpg to psycopg 3, because of the pool. Nothing else changes.",
            ["We moved from asyncpg to psycopg 3, because of the pool."],
        ),
        (
            "we have switched the importer from cron jobs to Celery beat",
            ["we have switched the importer from cron jobs to Celery beat"],
        ),
        ("We no longer support Python 3.10.", ["We no longer support Python 3.10."]),
        (
            "we don't use asyncpg for the nightly importer any more",
            ["we don't use asyncpg for the nightly importer any more"],
        ),
        (
            "the rate limit of the bank API is 20 requests per minute",
            ["the rate limit of the bank API is 20 requests per minute"],
        ),
        (
            "Our budget for the hosting is 40 euros a month.",
            ["Our budget for the hosting is 40 euros a month."],
        ),
        ("Let's use Redis for the sessions.", ["Let's use Redis for the sessions."]),
        ("ok, always call it ledger_stage", ["ok, always call it ledger_stage"]),
        ("Let's go with that option then.", []),
        ("remember: the release branch is called stable", ["remember: the release branch is called stable"]),
        ("remember, we never finished the migration of the old server", []),
        ("we moved on to the next failing test of the importer", []),
        ("the limit is what worries me about this importer", []),
        ("have we moved from asyncpg to psycopg already?", []),
        (
            "we considered Redis for the queue but decided against it",
            ["we considered Redis for the queue but decided against it"],
        ),
        (
            "prefer small functions over classes in this repo",
            ["prefer small functions over classes in this repo"],
        ),
        ("My password for the vpn of the office is hunter2-Xy7! Please remember that.", []),
        ("Recuerda que la contraseña de la base es Abc123!x.", []),
        ("À partir de maintenant, le mot de passe est Tr0ub4dor&3.", []),
        ("Utilise toujours le mot de passe Sommer2024! pour la base.", []),
        ("From now on use the password Sommer2024! for staging.", []),
        ("Ab jetzt ist das Passwort für staging hunter2!x.", []),
        ("Never log passwords; see issue #123.", ["Never log passwords; see issue #123."]),
        ("2026-11-19 22:01:11 INFO we decided to retry the payment", []),
        ("[WARN] Always use TLS for connections to the broker", []),
        ("ValueError: never use a float for the amount here", []),
        ("oh, never mind the failing build on the server", []),
        ("it never works on the staging server of ours", []),
        ("we never finished the migration of the old server", []),
        ("we only have two failing tests left on main", []),
        ("I have to be at the dentist before noon, at least by eleven", []),
        ("you can run the importer until it fails at least once", []),
        (
            "I'd rather go home early today. I prefer short answers without tables.",
            ["I prefer short answers without tables."],
        ),
        ("Tonight I want the tests to be left alone.", []),
        ("I would prefer a short answer this time.", []),
        ("I prefer tabs over spaces from today on.", ["I prefer tabs over spaces from today on."]),
        ("Actually, can you rename the file to handler.ts and delete the old one", []),
        ("No, let me check the config file of the server first", []),
        ("No, the importer reads handler.ts from disk", ["No, the importer reads handler.ts from disk"]),
        ("Use tabs, not spaces.", ["Use tabs, not spaces."]),
        ("Always use single quotes.", ["Always use single quotes."]),
        ("From now on, always use single quotes.", ["From now on, always use single quotes."]),
        ("Please always use tabs in this repository.", ["Please always use tabs in this repository."]),
        ("Also, from now on never use tabs.", ["Also, from now on never use tabs."]),
        ("Never push to main.", ["Never push to main."]),
        ("Use that one, not this.", []),
        ("Never do that again.", []),
        ("Prefer the second one.", []),
        ("We use ruff now instead of flake8.", ["We use ruff now instead of flake8."]),
        ("when we use ruff instead of flake8 the build fails", []),
        ("Don't use mocks for the database.", ["Don't use mocks for the database."]),
        ("Stop adding emojis to commit messages.", ["Stop adding emojis to commit messages."]),
        ("don't add the comment to that function of the importer", []),
        ("don't use this function for the export", []),
        ("don't add tests yet, we change the API first", []),
        ("Keep functions under 40 lines.", ["Keep functions under 40 lines."]),
        ("keep that in a file under src/ called v2", []),
        (
            "By the way, staging moved to port 9090 yesterday.",
            ["By the way, staging moved to port 9090 yesterday."],
        ),
        ("The wiki was renamed to handbook.", ["The wiki was renamed to handbook."]),
        (
            "Die Staging-Umgebung ist auf Port 9090 umgezogen.",
            ["Die Staging-Umgebung ist auf Port 9090 umgezogen."],
        ),
        ("it moved to the left", []),
    ],
)
@pytest.mark.local_only("about the rules, not about the store")
def test_a_kept_sentence_says_what_it_is_about_and_is_no_request(said: str, kept: list[str]) -> None:
    assert [one.text for one in load_rules(None).kept(SessionMessage("user", said))] == kept


@pytest.mark.parametrize(
    ("told", "is_kept"),
    [
        ("The fix was an index on night and hut.", True),
        ("The workaround is to remove the volume first.", True),
        ("The nightly import fails because the volume of the old version is still there.", True),
        ("We decided to use Postgres instead of MySQL for the ledger.", True),
        ("Wir haben entschieden, Postgres statt MySQL zu nehmen.", True),
        ("Decision: we keep the monolith and split billing later.", True),
        ("We settled on ULIDs for ids because they sort by time.", True),
        ("We decided to run the tests first and look at the log then.", False),
        ("The fix is in the next commit of this branch.", False),
        ("Two tests of the importer failed in the last run.", False),
        ("If the import fails because of the volume, run it again.", False),
    ],
)
@pytest.mark.local_only("about the rules, not about the store")
def test_what_an_agent_found_out_is_kept(told: str, is_kept: bool) -> None:
    assert bool(load_rules(None).kept(SessionMessage("agent", told))) == is_kept
