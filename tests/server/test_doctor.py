"""`rlm-mem doctor` says in words what is right and what is wrong, and changes nothing."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.mcp import doctor, hooks
from rlm_mem.mcp.clients import CLIENTS, client_named
from rlm_mem.mcp.starting import ServerEntry, started
from tests.cli.conftest import Ran, Run


def states(ran: Ran) -> dict[str, str]:
    return {found["subject"]: found["state"] for found in ran.json["findings"]}


@pytest.fixture
def no_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engines of the sandbox are not probed, which takes a second."""
    monkeypatch.setattr(doctor, "_engines", lambda _config: iter(()))


@pytest.mark.local_only("look at files")
def test_a_sound_memory_is_found_sound(
    run: Run, brain: Path, memory: Memory, request: pytest.FixtureRequest
) -> None:
    memory.remember("Something to find.")
    ran = run("doctor", "--json")
    assert ran.code == 0
    assert ran.json["ok"]
    assert {"brain", "store", "search", "model", "sandbox"} <= set(states(ran))
    assert set(states(ran).values()) == {"ok"}
    request.getfixturevalue("no_engines")
    text = run("doctor").out
    assert str(brain) in text
    assert "1 memory in namespace" in text


@pytest.mark.usefixtures("no_engines")
@pytest.mark.local_only("look at files")
def test_without_a_memory_it_says_how_to_make_one_and_makes_none(run: Run, brain: Path) -> None:
    ran = run("doctor", "--json")
    assert ran.code == 0
    found = next(one for one in ran.json["findings"] if one["subject"] == "brain")
    assert "rlm-mem store init" in found["remedy"]
    assert not brain.exists()


@pytest.mark.local_only("look at files")
def test_it_tries_out_what_each_engine_of_the_sandbox_guarantees(run: Run, brain: Path) -> None:
    """Also without a memory: it is about the machine. Each attempt stands in the answer with what happened."""
    from rlm_mem.sandbox import seccomp

    ran = run("doctor", "--json")
    found = {one["subject"]: one for one in ran.json["findings"]}
    for name in ("monty", "cpython"):
        guarantees = found[f"sandbox engine {name}"]["guarantees"]
        assert guarantees["engine"] == name
        if name == "cpython" and not seccomp.supported():
            assert not guarantees["available"]
            continue
        assert {probe["tried"]: probe["held"] for probe in guarantees["probes"]} == dict.fromkeys(
            (
                *("run a program", "read and write files", "open a connection"),
                *("take memory without end", "loop without end"),
            ),
            True,
        )
        assert guarantees["memory_mb"] == 32 and guarantees["seconds"] == 60.0
        told = found[f"sandbox engine {name}"]["message"]
        assert told.endswith("a program has 32 MB and 60 s at most") and len(told) < 200
        assert guarantees["system_call_filter"] is (name == "cpython")


@pytest.mark.local_only("look at files")
def test_an_engine_that_cannot_be_confined_is_said_to_refuse(
    run: Run, brain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlm_mem.sandbox import seccomp

    monkeypatch.setattr(seccomp, "supported", lambda: False)
    found = {one["subject"]: one for one in run("doctor", "--json").json["findings"]}[
        "sandbox engine cpython"
    ]
    assert not found["guarantees"]["available"] and "system-call filter" in found["message"]


@pytest.mark.usefixtures("no_engines")
@pytest.mark.usefixtures("no_engines")
@pytest.mark.local_only("look at files")
def test_hooks_that_failed_in_the_last_days_are_reported(run: Run, memory: Memory) -> None:
    def found() -> list[tuple[str, str]]:
        listed = run("doctor", "--json").json["findings"]
        return [(one["message"], one["remedy"]) for one in listed if one["subject"] == "hooks"]

    assert found() == []
    log = hooks.log_file()
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"\xff cut off\n2020-01-01T10:00:00+0000 stop of codex: an old one\n")
    assert found() == []
    with hooks.guarded("user-prompt of claude-code", 4):
        raise TimeoutError("the memory is busy")
    [(message, remedy)] = found()
    assert message.startswith("1 hook failed in the last 7 days, the last at 20")
    assert message.endswith("user-prompt of claude-code: TimeoutError: the memory is busy")
    assert str(log) in remedy


@pytest.mark.usefixtures("no_engines")
@pytest.mark.local_only("look at files")
def test_complete_old_and_broken_hooks_are_distinguished(
    run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> dict[str, tuple[str, str, str]]:
        listed = run("doctor", "--json").json["findings"]
        return {
            one["subject"]: (one["state"], one["message"], one["remedy"])
            for one in listed
            if one["subject"].startswith("hooks")
        }

    assert found() == {}
    for options in (["codex"], ["cursor"], ["claude-code"], ["gemini-cli", "--project"]):
        run("install", *options, "--hooks")
    file = Path.home() / ".codex" / "hooks.json"
    settings = json.loads(file.read_text())
    del settings["hooks"]["SessionEnd"]
    file.write_text(json.dumps(settings))
    file = Path.home() / ".cursor" / "hooks.json"
    file.write_text(
        file.read_text()
        .replace("rlm-mem hook stop", "gone/rlm-mem hook stop")
        .replace("-m rlm_mem hook stop", "gone -m rlm_mem hook stop")
    )
    file = Path.home() / ".gemini" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text("{")
    monkeypatch.setenv("PATH", "/nowhere")
    told = found()
    assert told["hooks codex"][0] == "warning" and "lacks SessionEnd" in told["hooks codex"][1]
    assert told["hooks codex"][2] == "rlm-mem install codex --hooks writes them again."
    assert told["hooks cursor"][0] == "wrong" and "gone" in told["hooks cursor"][1]
    assert told["hooks claude-code"][0] == "ok" and "7 events" in told["hooks claude-code"][1]
    assert (
        told["hooks gemini-cli (project)"][0] == "wrong" and "PATH" in told["hooks gemini-cli (project)"][2]
    )
    assert "hooks gemini-cli" not in told  # what cannot be read has none


@pytest.mark.usefixtures("no_engines")
@pytest.mark.local_only("look at files")
def test_the_hook_of_an_event_that_is_no_longer_used_is_named_and_removed_by_the_next_installation(
    run: Run, memory: Memory
) -> None:
    def found() -> tuple[str, str]:
        listed = run("doctor", "--json").json["findings"]
        [one] = [one for one in listed if one["subject"] == "hooks gemini-cli"]
        return one["state"], one["message"]

    run("install", "gemini-cli", "--hooks")
    file = Path.home() / ".gemini" / "settings.json"
    settings = json.loads(file.read_text())
    former = json.loads(json.dumps(settings["hooks"]["AfterAgent"]).replace("hook stop", "hook pre-compact"))
    settings["hooks"]["PreCompress"] = former
    file.write_text(json.dumps(settings))
    assert found() == ("warning", f"{file} has PreCompress, which is no longer used")
    run("install", "gemini-cli", "--hooks")
    assert found() == ("ok", f"set up in {file}, for 5 events")


@pytest.mark.local_only("look at files")
@pytest.mark.usefixtures("no_engines")
@pytest.mark.parametrize("enabled", [True, False])
def test_the_plugin_of_claude_code_is_known_and_hooks_beside_it_are_too_many(
    enabled: bool, run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    has_plugin = doctor._has_plugin
    monkeypatch.setattr(doctor, "_has_plugin", lambda *given: asked.append(True) or has_plugin(*given))

    def told() -> dict[str, tuple[str, str | None]]:
        return {
            one["subject"]: (one["state"], one["remedy"])
            for one in run("doctor", "--json").json["findings"]
            if one["subject"].endswith("claude-code")
        }

    file = Path.home() / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"enabledPlugins": {"rlm-mem@rlm-mem": enabled}}))
    assert told() == {"client claude-code": ("ok", None if enabled else "rlm-mem install claude-code")}
    run("install", "claude-code", "--hooks")
    remedy = "rlm-mem install claude-code --hooks --remove"
    asked.clear()
    assert told()["hooks claude-code"] == (("warning", remedy) if enabled else ("ok", None))
    assert len(asked) == 1


@pytest.mark.local_only("look at files")
def test_a_wrong_setting_is_named(run: Run, brain: Path, memory: Memory) -> None:
    (brain / "config.toml").write_text("[recall]\nmax_iterations = 0\n", encoding="utf-8")
    ran = run("doctor", "--json")
    assert ran.code == 1
    assert "max_iterations" in next(one["message"] for one in ran.json["findings"] if one["state"] == "wrong")


@pytest.mark.usefixtures("no_engines")
def test_a_model_that_is_not_set_up_is_named(
    run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLM_MEM_LLM_MODEL", "openai:gpt-5")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ran = run("doctor", "--json")
    assert ran.code == 1
    assert states(ran)["model"] == "wrong"
    assert states(ran)["sandbox"] == "ok"


@pytest.mark.usefixtures("no_engines")
@pytest.mark.local_only("look at files")
def test_a_file_that_cannot_be_read_is_named(run: Run, brain: Path) -> None:
    with Memory.open(brain) as memory:
        made = memory.remember("Something.").chunk_ids[0]
    file = next(path for path in (brain / "memory").rglob(f"{made}*.json"))
    file.write_text("{", encoding="utf-8")
    ran = run("doctor", "--json")
    assert ran.code == 1
    wrong = [one for one in ran.json["findings"] if one["state"] == "wrong"]
    assert any("rlm-mem store check" in one["remedy"] for one in wrong)


@pytest.mark.usefixtures("no_engines")
def test_a_missing_extra_is_named_with_how_to_install_it(
    run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = doctor.find_spec
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "mcp" else real(name))
    ran = run("doctor", "--json")
    found = next(one for one in ran.json["findings"] if one["subject"] == "extra server")
    assert (ran.code, found["state"]) == (0, "ok")
    assert "rlm-mem[server]" in found["remedy"]
    monkeypatch.setattr("rlm_mem.cli.agents.find_spec", lambda _: None)
    assert "rlm-mem[server]" in run("install", "cursor").err


@pytest.mark.usefixtures("no_engines")
@pytest.mark.local_only("look at files")
def test_the_server_starts_as_each_client_starts_it(
    run: Run, brain: Path, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry of each client is tried with no more of the environment than every client hands on."""
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    for client in CLIENTS:
        assert run("install", client.name, "--namespace", "agent/me").code == 0
        assert run("install", client.name, "--project").code == (0 if client.project else 2)
    Path("brain").symlink_to(brain)
    found = {one["subject"]: one for one in run("doctor", "--json").json["findings"]}
    for client in CLIENTS:
        subjects = [f"client {client.name}", *([f"client {client.name} (project)"] if client.project else [])]
        for subject in subjects:
            assert found[subject]["state"] == "ok", found[subject]
            assert "starts, and offers" in found[subject]["message"]


@pytest.mark.usefixtures("no_engines")
@pytest.mark.local_only("look at files")
def test_clients_with_another_entry_are_distinguished(run: Run, brain: Path, memory: Memory) -> None:
    """One that is here without the memory, one whose command is gone, one that cannot be read, one of a stranger."""
    (Path.home() / ".codeium" / "windsurf").mkdir(parents=True)
    for name, entry in (
        ("cursor", {"command": "/gone/rlm-mem", "args": ["mcp", "--brain", str(brain)]}),
        ("gemini-cli", {"command": ["a", "list"]}),
        (
            "claude-code",
            {"command": sys.executable, "args": ["-m", "rlm_mem", "mcp", "--brain", "/no/such/brain"]},
        ),
    ):
        client = client_named(name)
        file = client.user(Path.home(), os.environ)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({client.table: {"rlm-mem": entry}}), encoding="utf-8")
    (Path.home() / ".codex").mkdir()
    (Path.home() / ".codex" / "config.toml").write_text("= broken", encoding="utf-8")
    stranger = {
        "command": sys.executable,
        "args": ["-c", "open('was started', 'w')", "mcp", "--brain", str(brain)],
    }
    Path(".mcp.json").write_text(json.dumps({"mcpServers": {"rlm-mem": stranger}}), encoding="utf-8")
    Path(".cursor").mkdir()
    elsewhere = {"command": "rlm-mem", "args": ["mcp", "--brain", "postgresql://elsewhere/x"]}
    Path(".cursor/mcp.json").write_text(json.dumps({"mcpServers": {"rlm-mem": elsewhere}}), encoding="utf-8")
    ran = run("doctor", "--json")
    found = {one["subject"]: one for one in ran.json["findings"]}
    assert ran.code == 1
    assert found["client windsurf"]["remedy"] == "rlm-mem install windsurf"
    assert found["client cursor"]["state"] == "wrong" and "/gone/rlm-mem" in found["client cursor"]["message"]
    assert found["client gemini-cli"]["state"] == "wrong"
    assert found["client codex"]["state"] == "wrong" and "TOML" in found["client codex"]["message"]
    assert "no memory at /no/such/brain" in found["client claude-code"]["message"]
    for subject in ("client claude-code (project)", "client cursor (project)"):
        assert found[subject]["state"] == "warning" and "not tried" in found[subject]["message"]
    assert not Path("was started").exists()


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import time; time.sleep(60)", "no answer"),
        ("raise SystemExit('no such brain')", "ended without an answer (no such brain)"),
        ("print('hello')", "not of the protocol"),
        ('print(\'{"id": 1, "error": {"message": "x"}}\')', "an error"),
    ],
)
def test_a_server_that_does_not_answer_is_ended_and_its_reason_kept(
    program: str, reason: str, tmp_path: Path
) -> None:
    entry = ServerEntry(tmp_path / "x.json", (sys.executable, "-c", program), {}, tmp_path)
    result = started(entry, os.environ, seconds=1.0 if "sleep" in program else 30.0)
    assert reason in result.failure
    assert result.tools == 0
