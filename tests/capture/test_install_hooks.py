"""`rlm-mem install CLIENT --hooks`: our hooks are added and removed, and everything else in the settings is kept."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest

import rlm_mem
from rlm_mem.mcp.commented_json import read_commented
from rlm_mem.mcp.hook_clients import HOOK_CLIENTS, HookClient, hook_client_named
from rlm_mem.mcp.hook_settings import hooks_of, with_hooks
from tests.cli.conftest import Run

pytestmark = pytest.mark.local_only("about the settings of clients")
NAMES = [client.name for client in HOOK_CLIENTS]


def others(client: HookClient) -> dict[str, Any]:
    """Settings of a person who has hooks already."""
    entry = {"type": "command", "command": "notify-send done", "timeout": 5}
    group = entry if client.flat else {"matcher": "", "hooks": [entry]}
    rest = {"version": 1} if client.flat else {"theme": "dark – ünïcode"}
    return {**rest, "hooks": {client.events["stop"]: [group], "PreToolUse": []}}


def commands(settings: dict[str, Any], client: HookClient) -> dict[str, list[str]]:
    return {
        event: [one["command"] for group in groups for one in ([group] if client.flat else group["hooks"])]
        for event, groups in settings["hooks"].items()
    }


@pytest.mark.parametrize("name", NAMES)
def test_hooks_come_and_go_and_the_rest_stays(name: str, run: Run) -> None:
    client = hook_client_named(name)
    file = client.user(Path.home(), os.environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    for indent in (4, "\t", 2):
        before = json.dumps(others(client), indent=indent, ensure_ascii=False) + "\n"
        file.write_text(before, encoding="utf-8")
        first = run("install", name, "--hooks", "--json").json
        assert Path(first["backup"]).read_text(encoding="utf-8") == before
        settings = json.loads(file.read_text(encoding="utf-8"))
        found = commands(settings, client)
        for kind, event in client.events.items():
            ours = [line for line in found[event] if f"hook {kind} --client {name}" in line]
            assert len(ours) == 1
            assert Path(ours[0].split()[0].strip("'")).is_absolute()
        assert found[client.events["stop"]][0] == "notify-send done"
        assert not run("install", name, "--hooks", "--json").json["changed"]
        assert run("install", name, "--hooks", "--remove", "--json").json["changed"]
        assert file.read_text(encoding="utf-8") == before
        assert not run("install", name, "--hooks", "--remove", "--json").json["changed"]


def test_codex_is_not_asked_for_more_than_the_three_seconds_of_which_it_warns() -> None:
    [group] = hooks_of(hook_client_named("codex"), ["rlm-mem"])["SessionEnd"]
    [entry] = group["hooks"]
    assert entry["timeout"] == 3


def test_comments_stay_where_they_are(run: Run) -> None:
    """Ours come, change and go; every other character is as it was."""
    client = hook_client_named("gemini-cli")
    file = client.user(Path.home(), os.environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    before = """// settings of mine
{
  "theme": "dark", // the eyes
  "hooks": {
    // when it has answered
    "AfterAgent": [
      {"matcher": "", "hooks": [{"type": "command", "command": "notify-send"}]}, // to the desktop
      /* the
         log */ {"hooks": [{"type": "command", "command": "log // it"}]} // last
    ],
    "BeforeTool": [], // none yet
  },
}
"""
    file.write_text(before, encoding="utf-8")
    for _ in range(2):
        assert run("install", "gemini-cli", "--hooks").code == 0
        written = file.read_text(encoding="utf-8")
        found = commands(read_commented(written), client)
        for kind, event in client.events.items():
            assert sum(f"hook {kind} --client gemini-cli" in line for line in found[event]) == 1
        assert found["AfterAgent"][:2] == ["notify-send", "log // it"] and found["BeforeTool"] == []
        for line in before.splitlines():
            assert line.rstrip(",") in written or line.partition(" // last")[0] in written
    assert not run("install", "gemini-cli", "--hooks", "--json").json["changed"]
    assert run("install", "gemini-cli", "--hooks", "--brain", "/elsewhere").code == 0
    assert file.read_text(encoding="utf-8").count("--brain /elsewhere") == len(client.events)
    assert run("install", "gemini-cli", "--hooks", "--remove").code == 0
    assert file.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("name", NAMES)
def test_a_file_with_nothing_but_our_hooks_is_removed(name: str, run: Run) -> None:
    client = hook_client_named(name)
    file = client.user(Path.home(), os.environ)
    assert run("install", name, "--hooks").code == 0
    made = run("install", name, "--hooks", "--remove", "--json").json
    assert (made["changed"], made["backup"]) == (True, None)
    assert not file.parent.exists()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("first", ["server", "hooks"])
def test_server_and_hooks_come_and_go_without_a_trace(name: str, first: str, run: Run) -> None:
    """Some clients have both in one file: none of its states has anything worth a copy."""
    present = sorted(Path.home().rglob("*"))
    ways = [[], ["--hooks"]] if first == "server" else [["--hooks"], []]
    for remove in ([], ["--remove"]):
        for way in ways:
            done = run("install", name, *way, *remove)
            assert done.code == 0
            other = f"rlm-mem install {name}{'' if way else ' --hooks'}."
            assert (f"are added by {other}" in done.out) == (not remove), (
                "each names the command for the other"
            )
            assert not list(Path.home().rglob("*.backup-*"))
    assert sorted(Path.home().rglob("*")) == present


def test_no_folder_above_that_of_settings_outside_of_the_home_is_removed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "opt" / "codex"
    monkeypatch.setenv("CODEX_HOME", str(place))
    assert run("install", "codex", "--hooks").code == 0
    assert (place / "hooks.json").exists()
    assert run("install", "codex", "--hooks", "--remove").code == 0
    assert list((tmp_path / "opt").iterdir()) == []


def test_a_folder_of_settings_that_is_a_link_stays(run: Run, tmp_path: Path) -> None:
    """As people have it who keep their settings in a repository."""
    file = hook_client_named("copilot-cli").user(Path.home(), os.environ)
    top = next(one for one in file.parents if one.parent == Path.home())
    (tmp_path / "dotfiles").mkdir()
    top.symlink_to(tmp_path / "dotfiles")
    assert run("install", "copilot-cli", "--hooks").code == 0 and file.exists()
    assert run("install", "copilot-cli", "--hooks", "--remove").code == 0
    assert top.is_symlink() and not file.exists()


def test_a_link_to_a_file_of_ours_alone_stays(run: Run, tmp_path: Path) -> None:
    """As people have it who keep their settings in a repository."""
    file = hook_client_named("claude-code").user(Path.home(), os.environ)
    kept = tmp_path / "dotfiles" / "claude.json"
    for folder in (file.parent, kept.parent):
        folder.mkdir(parents=True)
    file.symlink_to(kept)
    assert run("install", "claude-code", "--hooks").code == 0
    assert "hook stop" in kept.read_text()
    assert run("install", "claude-code", "--hooks", "--remove").code == 0
    assert file.is_symlink() and json.loads(kept.read_text()) == {}


def test_hooks_and_server_have_the_same_brain(run: Run, brain: Path) -> None:
    """Whatever leads to it: clients start hooks in any folder, and without the variables of a shell."""
    run("install", "cursor")
    run("install", "cursor", "--hooks")
    server = json.loads((Path.home() / ".cursor/mcp.json").read_text())["mcpServers"]["rlm-mem"]
    hooks = json.loads((Path.home() / ".cursor/hooks.json").read_text())["hooks"]["stop"][0]["command"]
    assert server["args"][1:3] == ["--brain", str(brain)] == shlex.split(hooks)[-2:]


def test_other_options_replace_our_hooks(run: Run, tmp_path: Path) -> None:
    run("install", "claude-code", "--hooks")
    run("install", "claude-code", "--hooks", "--brain", str(tmp_path / "my brain"))
    client = hook_client_named("claude-code")
    lines = commands(json.loads(client.user(Path.home(), os.environ).read_text()), client)
    assert all(len(found) == 1 and "my brain'" in found[0] for found in lines.values())


def test_settings_that_cannot_be_edited_are_left_alone(run: Run) -> None:
    file = hook_client_named("gemini-cli").user(Path.home(), os.environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    for text in (
        '{"a": 1, /* a comment\n}',
        "[1]",
        '{"hooks": [1]}',
        '{"hooks": {"Stop": 7}}',
        "[" * 100_000,
    ):
        file.write_text(text)
        ran = run("install", "gemini-cli", "--hooks")
        assert ran.code == 1 or ran.code == 2
        assert file.read_text() == text
    assert run("install", "vscode", "--hooks").code == 2


def test_project_hooks_name_no_folder_of_this_machine(run: Run) -> None:
    assert run("install", "codex", "--hooks", "--project").code == 0
    text = Path(".codex/hooks.json").read_text()
    assert str(Path.home()) not in text
    assert '"rlm-mem hook stop --client codex"' in text


def test_the_plugin_has_the_same_hooks() -> None:
    plugin = Path(rlm_mem.__file__).parent / "plugins" / "claude-code"
    shipped = json.loads((plugin / "hooks" / "hooks.json").read_text())
    assert shipped["hooks"] == hooks_of(hook_client_named("claude-code"), ["rlm-mem"])
    named = json.loads((plugin / ".claude-plugin" / "plugin.json").read_text())
    market = json.loads((plugin.parent / ".claude-plugin" / "marketplace.json").read_text())
    [offered] = market["plugins"]
    assert (market["name"], offered["name"]) == ("rlm-mem", named["name"])
    assert offered["description"] == named["description"]
    assert plugin.parent / offered["source"] == plugin


def test_a_hook_of_another_program_is_not_taken_for_ours() -> None:
    client = hook_client_named("claude-code")
    text = json.dumps(
        {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "rlm-mem stats > /tmp/x"}]}]}}
    )
    assert with_hooks(text, client, None, where="x") is None


@pytest.mark.parametrize(
    "before",
    [
        '{\r\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "echo hi"}]}]},\r\n  "model": "opus"\r\n}',
        '{"model": "opus", "ratio": 1.50, "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}',
        '{\n    "permissions": {"allow": ["Bash(ls:*)", "Read"],\n  "deny": []},\n\t"env": {"A": "\\u00e9"}\n}\n',
    ],
)
def test_settings_are_byte_for_byte_what_they_were_once_the_hooks_are_removed(before: str, run: Run) -> None:
    path = Path.home() / ".claude/settings.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(before.encode())
    assert run("install", "claude-code", "--hooks").code == 0
    there = path.read_bytes()
    assert b"rlm-mem" in there
    if "\r\n" in before:
        assert there.count(b"\n") == there.count(b"\r\n")
    assert run("install", "claude-code", "--hooks", "--remove").code == 0
    assert path.read_bytes() == before.encode()
