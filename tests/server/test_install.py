"""`rlm-mem install`: our entry comes and goes, and everything else in a client's configuration stays."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from rlm_mem.mcp import clients
from rlm_mem.mcp.clients import CLIENTS, client_named, json_with, toml_with
from rlm_mem.mcp.commented_json import read_commented, rewritten, without_empty
from rlm_mem.mcp.hook_clients import hook_client_named
from tests.cli.conftest import Run

pytestmark = pytest.mark.local_only("about the settings of clients")
NAMES = [client.name for client in CLIENTS]


def settings_file(name: str) -> Path:
    return client_named(name).user(Path.home(), os.environ)


def entries(name: str) -> dict[str, Any]:
    client = client_named(name)
    text = settings_file(name).read_text(encoding="utf-8")
    read = tomllib.loads(text) if client.form == "toml" else json.loads(text)
    return dict(read.get(client.table, {}))


def command_of(entry: dict[str, Any]) -> list[str]:
    """Program and arguments of an entry, which OpenCode has in one list."""
    command = entry["command"]
    return command if isinstance(command, list) else [command, *entry["args"]]


@pytest.mark.parametrize(
    ("name", "file", "table"),
    [
        ("claude-code", ".claude.json", "mcpServers"),
        ("claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers"),
        ("cursor", ".cursor/mcp.json", "mcpServers"),
        ("vscode", ".config/Code/User/mcp.json", "servers"),
        ("codex", ".codex/config.toml", "mcp_servers"),
        ("windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
        ("zed", ".config/zed/settings.json", "context_servers"),
        ("gemini-cli", ".gemini/settings.json", "mcpServers"),
        ("qwen-code", ".qwen/settings.json", "mcpServers"),
        ("opencode", ".config/opencode/opencode.json", "mcp"),
        ("copilot-cli", ".copilot/mcp-config.json", "mcpServers"),
        ("cline", ".cline/data/settings/cline_mcp_settings.json", "mcpServers"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="places differ by system")
def test_each_client_has_the_file_that_it_documents(name: str, file: str, table: str) -> None:
    assert len(NAMES) == 12
    assert settings_file(name) == Path.home() / file
    assert client_named(name).table == table


def test_an_older_cline_keeps_its_servers_within_vs_code(run: Run) -> None:
    older = (
        Path.home()
        / ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
    )
    older.parent.mkdir(parents=True)
    older.write_text("{}")
    assert settings_file("cline") == older
    settings = Path.home() / ".cline/data/settings/cline_mcp_settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text("{}")
    assert settings_file("cline") == settings


@pytest.mark.parametrize("name", NAMES)
def test_the_entry_starts_this_server_on_this_brain(name: str, run: Run, brain: Path) -> None:
    ran = run("install", "--client", name, "--namespace", "agent/me", "--tools", "all")
    assert ran.code == 0, ran.err
    command = command_of(entries(name)["rlm-mem"])
    assert Path(command[0]).is_absolute()
    tail = ["mcp", "--brain", str(brain), "--namespace", "agent/me", "--tools", "all"]
    assert command[-len(tail) :] == tail
    assert str(settings_file(name)) in ran.out
    assert f"memory: {brain}\n" in ran.out


def test_a_client_that_starts_in_the_project_serves_the_project(run: Run) -> None:
    for name in NAMES:
        assert run("install", "--client", name).code == 0
    served = {name for name in NAMES if "--project" in command_of(entries(name)["rlm-mem"])}
    assert served == {"claude-code", "codex", "gemini-cli", "qwen-code", "opencode", "copilot-cli"}
    for name in NAMES:
        client = client_named(name)
        if client.project:
            printed = command_of(
                run("install", "--client", name, "--project", "--print", "--json").json["entry"]
            )
            named = ["--folder", "${workspaceFolder}"] if name in ("cursor", "vscode") else []
            assert printed[printed.index("--project") :] == ["--project", *named]


@pytest.mark.parametrize("name", NAMES)
def test_installing_again_changes_nothing_and_removing_leaves_what_was_there(name: str, run: Run) -> None:
    file = settings_file(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".toml":
        before = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "o"  # kept\n'
    else:
        before = (
            json.dumps({"theme": "dark", client_named(name).table: {"other": {"command": "o"}}}, indent=2)
            + "\n"
        )
    file.write_text(before, encoding="utf-8")
    first = run("install", "--client", name, "--json").json
    assert first["changed"]
    assert Path(first["backup"]).read_text(encoding="utf-8") == before
    assert set(entries(name)) == {"other", "rlm-mem"}
    written = file.read_text(encoding="utf-8")
    again = run("install", "--client", name, "--json").json
    assert (again["changed"], again["backup"]) == (False, None)
    assert file.read_text(encoding="utf-8") == written
    assert run("install", "--client", name, "--remove", "--json").json["changed"]
    assert file.read_text(encoding="utf-8") == before
    assert not run("install", "--client", name, "--remove", "--json").json["changed"]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_with_nothing_but_the_entry_is_removed(name: str, run: Run) -> None:
    file = settings_file(name)
    assert run("install", name).code == 0
    removed = run("install", name, "--remove")
    assert removed.code == 0 and "backup" not in removed.out
    assert client_named(name).next_step not in removed.out
    assert not file.exists()
    assert not list(file.parent.glob("*.backup-*"))


def test_other_options_replace_the_entry(run: Run) -> None:
    for name in ("cursor", "codex"):
        run("install", "--client", name)
        run("install", "--client", name, "--read-only")
        assert entries(name)["rlm-mem"]["args"][-1] == "--read-only"
        assert len(entries(name)) == 1


def test_print_writes_nothing(run: Run) -> None:
    for name in NAMES:
        ran = run("install", "--client", name, "--print")
        assert ran.code == 0
        assert "rlm-mem" in ran.out
        assert str(settings_file(name)) in ran.err.replace("\n", "")
        assert not settings_file(name).exists()


def test_a_project_has_its_own_file(run: Run) -> None:
    assert run("install", "--client", "claude-code", "--project").code == 0
    assert "rlm-mem" in json.loads(Path(".mcp.json").read_text(encoding="utf-8"))["mcpServers"]
    assert not settings_file("claude-code").exists()
    assert run("install", "--client", "codex", "--project").code == 0
    assert "rlm-mem" in tomllib.loads(Path(".codex/config.toml").read_text(encoding="utf-8"))["mcp_servers"]
    assert run("install", "--client", "claude-desktop", "--project").code == 2


@pytest.mark.parametrize("name", [name for name in NAMES if client_named(name).project])
@pytest.mark.parametrize("where", ["inside", "outside", "of the user"])
def test_settings_of_a_project_hold_no_path_of_one_machine(
    name: str, where: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "home" / "ada" / "project"
    (project / "brain" / "memory").mkdir(parents=True)
    if where != "inside":
        shutil.rmtree(project / "brain")
    monkeypatch.chdir(project)
    monkeypatch.setenv("RLM_MEM_BRAIN", str(tmp_path / "home" / "ada" / "secret-brain"))
    ran = run("install", "--client", name, "--project")
    assert ran.code == 0, ran.err
    written = (project / str(client_named(name).project)).read_text(encoding="utf-8")
    for personal in (str(tmp_path), "ada", str(Path.home()), str(Path(sys.executable).parent)):
        assert personal not in written
    entry = (tomllib if name == "codex" else json).loads(written)[client_named(name).table]["rlm-mem"]
    command = command_of(entry)
    assert command[0] == "rlm-mem"
    assert ("--brain" in command) == (where == "inside")
    if where == "inside":
        assert command[command.index("--brain") + 1] == client_named(name).folder + "brain"
    if where == "outside":
        for elsewhere in (str(tmp_path / "other"), "postgresql://ada:secret@db/brain"):
            refused = run("install", "--client", name, "--project", "--brain", elsewhere)
            assert refused.code == 2 and "--project" in refused.err and "secret@" not in refused.err
        assert (project / str(client_named(name).project)).read_text(encoding="utf-8") == written


def test_a_command_that_is_not_on_the_path_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    ran = run("install", "--client", "cursor", "--project")
    assert ran.code == 0 and "not on the PATH" in ran.err


def test_without_a_client_the_clients_and_the_commands_are_listed(run: Run) -> None:
    settings_file("cursor").parent.mkdir(parents=True)
    ran = run("install")
    assert ran.code == 2 and "rlm-mem install NAME" in ran.err
    for name in NAMES:
        assert f"rlm-mem install {name}" in ran.out
    listed = run("install", "--json")
    assert {one["client"]: one["found"] for one in listed.json}["cursor"] is True
    assert not any(settings_file(name).exists() for name in NAMES)


def test_on_a_terminal_the_client_is_asked_for(tmp_path: Path) -> None:
    environ = os.environ | {"HOME": str(tmp_path), "COLUMNS": "100", "RLM_MEM_BRAIN": str(tmp_path / "brain")}
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-m", "rlm_mem", "install"], environ)
    shown = b""
    while b"number or name" not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, b"cursor\n")
    with contextlib.suppress(OSError):  # the terminal is gone when the command is
        while more := os.read(terminal, 4096):
            shown += more
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0, shown
    assert b"claude-desktop" in shown
    assert "rlm-mem" in json.loads((tmp_path / ".cursor" / "mcp.json").read_text())["mcpServers"]


COMMENTED = [
    '{\n  // my servers\n  "servers": {}\n}\n',
    '// Zed settings\n{\n    "theme": "One", // dark\n    "servers": { // mine\n        "other": {"command": "//"},\n'
    "    },\n}\n",
    '{\n\t/* a, b: {} */\n\t"font": "x", "list": [1, 2,], // }\n\t"servers": {\n\t\t"a": {},\n'
    '\t\t"b": {} /* , */\n\t}\n}',
    '{"servers": {"a": {"command": "/* no comment */"},},}',
    "/* only */ {}",
    '{\n  "theme": "One",\n  // the end\n}\n',
    '{ /* two\n  lines */ "servers": { /* and\n two */ } }\n',
]


@pytest.mark.parametrize("before", COMMENTED)
def test_comments_stay_where_they_are(before: str, run: Run) -> None:
    file = settings_file("vscode")
    file.parent.mkdir(parents=True)
    file.write_text(before, encoding="utf-8")
    assert run("install", "--client", "vscode").code == 0
    written = file.read_text(encoding="utf-8")
    wanted = read_commented(before)
    assert "rlm-mem" in read_commented(written)["servers"]
    for comment in (
        "my servers",
        "// Zed settings",
        "// dark",
        "// mine",
        "/* a, b: {} */",
        "// }",
        "/* , */",
        "// the end",
        "/* two\n  lines */",
        "/* and\n two */",
    ):
        assert (comment in written) == (comment in before)
    assert run("install", "--client", "vscode", "--read-only").code == 0
    changed = read_commented(file.read_text(encoding="utf-8"))
    assert changed["servers"]["rlm-mem"]["args"][-1] == "--read-only"
    assert run("install", "--client", "vscode", "--remove").code == 0
    after = file.read_text(encoding="utf-8")
    left = read_commented(after)
    assert {**left, "servers": left.get("servers", {})} == {**wanted, "servers": wanted.get("servers", {})}
    if before.startswith(("// Zed", "{\n\t/*")):
        assert after == before


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_an_entry_comes_and_goes_in_any_settings(data: st.DataObject) -> None:
    gap = st.sampled_from(["", " ", "\n", "\n  ", "// c }\n", "/* , { */", '/* " */\n'])
    text = st.sampled_from(["a", "b", "servers", "rlm-mem", "//", "/*", ",}", '"', "\\"])

    def rendered(value: Any) -> str:
        def between() -> str:
            return data.draw(gap)

        if isinstance(value, dict):
            members = [
                f"{between()}{json.dumps(key)}{between()}:{between()}{rendered(inner)}{between()}"
                for key, inner in value.items()
            ]
        elif isinstance(value, list):
            members = [f"{between()}{rendered(inner)}{between()}" for inner in value]
        else:
            return json.dumps(value)
        final = "," + between() if members and data.draw(st.booleans()) else between()
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        return f"{opening}{','.join(members)}{final}{closing}"

    values = st.recursive(
        st.none() | text,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
        max_leaves=4,
    )
    whole = data.draw(st.dictionaries(text, values, max_size=3))
    if data.draw(st.booleans()):
        whole["servers"] = data.draw(st.dictionaries(text, values, max_size=3))
    if not isinstance(whole.get("servers", {}), dict):
        del whole["servers"]
    written = data.draw(gap) + rendered(whole) + data.draw(gap)
    assert read_commented(written) == whole
    entry = {"command": "x", "args": ["// {", "*/"]}
    servers = whole.get("servers", {})
    made = rewritten(written, {**whole, "servers": {**servers, "rlm-mem": entry}})
    assert read_commented(made) == {**whole, "servers": {**servers, "rlm-mem": entry}}
    kept = {key: value for key, value in servers.items() if key != "rlm-mem"}
    left = rewritten(made, {**whole, "servers": kept})
    assert read_commented(left) == {**whole, "servers": kept}
    if not kept:
        assert read_commented(without_empty(left, "servers")).get("servers", {}) == {}
    other = data.draw(values)
    assert read_commented(rewritten(written, other)) == other
    assert read_commented(rewritten(written, {**whole, "a": other})) == {**whole, "a": other}


def test_a_file_that_cannot_be_edited_safely_stays_as_it_is(run: Run) -> None:
    file = settings_file("vscode")
    file.parent.mkdir(parents=True)
    for broken in (
        '{"servers": {} // open',
        '{ /* open\n"servers": {}}',
        "{'a': 1}",
        '{"a": [NaN], }',
    ):
        file.write_text(broken, encoding="utf-8")
        ran = run("install", "--client", "vscode")
        assert ran.code == 2
        assert "--print" in ran.err
        assert file.read_text(encoding="utf-8") == broken


def test_a_file_that_cannot_be_read_is_named_once_with_the_reason(run: Run) -> None:
    settings = settings_file("cursor")
    settings.parent.mkdir()
    settings.write_bytes(b"\xff\xfe")
    assert run("install", "cursor").err == f"rlm-mem: {settings} cannot be read: it is not text in UTF-8\n"
    settings.unlink()
    settings.mkdir()
    assert run("install", "cursor").err == f"rlm-mem: {settings} cannot be read: Is a directory\n"
    assert run("hook", "try", "x" * 300).err.endswith("x cannot be read: File name too long\n")


def test_an_unknown_client_is_refused_with_the_known_ones(run: Run) -> None:
    ran = run("install", "--client", "emacs")
    assert ran.code == 2
    assert "claude-code" in ran.err


def test_a_link_to_the_file_stays_a_link(run: Run, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}", encoding="utf-8")
    file = settings_file("cursor")
    file.parent.mkdir(parents=True)
    file.symlink_to(real)
    assert run("install", "--client", "cursor").code == 0
    assert file.is_symlink()
    assert "rlm-mem" in real.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { rlm-mem = { command = "a" } }\n',
        '[mcp_servers]\nrlm-mem = { command = "a" }\n',
        f"x = {'[' * 5000}",
    ],
)
def test_a_table_written_another_way_is_not_guessed_at(text: str) -> None:
    from rlm_mem.errors import InvalidConfig

    with pytest.raises(InvalidConfig, match=r"safely|TOML"):
        toml_with(text, "mcp_servers", "rlm-mem", {"command": "b"}, where="config.toml")


def test_subtables_of_our_entry_go_with_it() -> None:
    text = '[mcp_servers.rlm-mem]\ncommand = "a"\n[mcp_servers.rlm-mem.env]\nX = "1"\n[other]\ny = 1\n'
    assert toml_with(text, "mcp_servers", "rlm-mem", None, where="f") == "[other]\ny = 1\n"


def test_an_object_of_another_shape_is_refused() -> None:
    from rlm_mem.errors import InvalidConfig

    for text in ("[]", '{"mcpServers": []}', "{", "[" * 5000):
        with pytest.raises(InvalidConfig):
            json_with(text, "mcpServers", "rlm-mem", {"command": "a"}, where="f")


KEPT = {
    "claude-code": '{\n\t"numStartups": 3, "mcpServers": {"x": {"command": "x"}},\n  "ratio": 1.50,\n\t"last": [ ] }\n',
    "cursor": '\ufeff{"mcpServers": {"x": {"command": "x"}}, "a": 1e3}',
    "gemini-cli": '{\r\n  "theme": "dark",\r\n  "mcpServers": {\r\n    "x": {"command": "é"}\r\n  }\r\n}\r\n',
    "windsurf": '{\r\n  "a": "first line ends with two",\n  "b": 2\r\n}',
    "zed": '// Zed\n{\n  "theme": "One", // dark\n  "sizes": [1,2,\n    3],\n}\n',
    "codex": 'model = "gpt-5"\r\n\r\n[mcp_servers.other]\r\ncommand = "o" # mine\r\n\r\n# the end\r\n\r\n',
}
"""Settings as people and programs write them: line ends, byte order marks, numbers, and several members on a line."""


@pytest.mark.parametrize("name", KEPT)
def test_settings_are_byte_for_byte_what_they_were_once_the_entry_is_removed(name: str, run: Run) -> None:
    path = client_named(name).user(Path.home(), os.environ)
    path.parent.mkdir(parents=True, exist_ok=True)
    before = KEPT[name].encode()
    path.write_bytes(before)
    assert run("install", name).code == 0
    there = path.read_bytes()
    assert there != before
    for piece in (
        b"1.50",
        b"1e3",
        b"[1,2,\n    3]",
        b"# mine\r\n",
        b'"\xc3\xa9"}\r\n',
        b"\xef\xbb\xbf{",
        b"[ ]",
    ):
        assert (piece in there) == (piece in before)
    if name in ("gemini-cli", "codex"):
        assert there.count(b"\n") == there.count(b"\r\n")
    assert run("install", name, "--remove").code == 0
    assert path.read_bytes() == before


EMPTIED = {
    "claude-code": '{"mcpServers": {}}',
    "cursor": '{\n  "mcpServers": {\n  },\n  "a": 1\n}',
    "gemini-cli": '{"hooks": {}, "mcpServers": { }}\n',
    "zed": '// mine\n{"context_servers": {}}\n',
    "codex": "[mcp_servers]\n\n\n# the end",
}
"""Settings with a table for servers and nothing in it."""


@pytest.mark.parametrize("again", [False, True], ids=["", "installed-twice"])
@pytest.mark.parametrize("name", EMPTIED)
def test_a_table_that_was_empty_before_is_there_again_once_the_entry_is_removed(
    name: str, again: bool, run: Run
) -> None:
    path = client_named(name).user(Path.home(), os.environ)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(EMPTIED[name])
    assert run("install", name).code == 0
    if again:
        assert run("install", name, "--read-only").code == 0
    assert run("install", name, "--remove").code == 0
    assert path.read_text() == EMPTIED[name]


@pytest.mark.parametrize("before", ["", "\n", "\ufeff"])
@pytest.mark.parametrize("name", ["codex", "gemini-cli"])
def test_a_settings_file_that_was_empty_before_is_kept_empty(name: str, before: str, run: Run) -> None:
    user = client_named(name).user, hook_client_named(name).user
    for path in (paths := {place(Path.home(), os.environ) for place in user}):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(before)
    assert run("install", name).code == run("install", name, "--hooks").code == 0
    assert run("uninstall", name).code == 0
    assert [path.read_text() for path in paths] == [before] * len(paths)
    for path in paths:
        path.unlink()
    assert run("install", name).code == run("uninstall", name).code == 0
    assert [path.read_text() for path in paths if path.exists()] == []


@pytest.mark.parametrize(
    "before",
    ['{"hooks": {"SessionEnd": []}, "mcpServers": {}}', '{\n  "hooks": {\n  }, // mine\n  "a": 1\n}'],
)
def test_the_hooks_of_a_client_are_removed_as_if_they_had_never_been_there(before: str, run: Run) -> None:
    path = hook_client_named("gemini-cli").user(Path.home(), os.environ)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(before)
    assert run("install", "gemini-cli").code == 0
    between = path.read_text()
    assert run("install", "gemini-cli", "--hooks").code == 0
    assert run("install", "gemini-cli", "--hooks", "--remove").code == 0
    assert path.read_text() == between
    assert run("install", "gemini-cli", "--remove").code == 0
    assert path.read_text() == before


@pytest.mark.parametrize("what", [["cursor"], ["cursor", "--hooks"]])
def test_a_removal_decides_by_one_reading_of_the_file(
    what: list[str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("install", *what).code == 0
    read: list[Path] = []
    read_text = clients.read_text
    monkeypatch.setattr(clients, "read_text", lambda path: read.append(path) or read_text(path))
    assert run("install", *what, "--remove").code == 0
    assert len(read) == len(set(read)) == 1


def test_an_uninstall_removes_tools_and_hooks_from_one_client_or_all(run: Run, brain: Path) -> None:
    gemini, codex = settings_file("gemini-cli"), settings_file("codex")
    gemini.parent.mkdir(parents=True)
    gemini.write_text('{"theme":"dark"}')
    assert "nothing to remove: no client has an entry or hooks" in run("uninstall").out
    for name in ("gemini-cli", "codex", "cursor"):
        assert run("install", name).code == 0
    assert run("install", "gemini-cli", "--hooks").code == 0
    said = run("uninstall", "gemini-cli")
    assert said.code == 0 and gemini.read_text() == '{"theme":"dark"}'
    assert (
        f"No memory was deleted. Those of this folder are in {brain}" in said.out
        and "pip uninstall rlm-mem" in said.out
    )
    assert codex.exists()
    settings_file("cursor").write_text("{")
    said = run("uninstall")
    assert said.code == 1 and not codex.exists()
    assert "mcp.json" in said.err
    assert run("uninstall", "nonsense").code == 2
    assert run("uninstall", "codex", "--json").json == {"removed_from": [], "failed": []}


def test_an_uninstall_says_that_the_settings_of_the_project_have_an_entry(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "--project removes them" not in run("uninstall").out
    assert run("install", "claude-code", "--project").code == 0
    assert "--project removes them" in run("uninstall").out
    assert run("uninstall", "--project").code == 0
    assert "--project removes them" not in run("uninstall").out


def test_an_install_shows_no_password(run: Run) -> None:
    for more in ([], ["--hooks"]):
        said = run("install", "claude-code", *more, "--brain", "postgresql://me:pw-of-mine@127.0.0.1:1/brain")
        assert said.code == 0 and "pw-of-mine" not in said.out


def test_what_was_changed_since_the_install_stays_when_the_entry_is_removed(run: Run) -> None:
    path = client_named("cursor").user(Path.home(), os.environ)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"mcpServers": {}}')
    assert run("install", "cursor").code == 0
    path.write_text("// mine\n" + path.read_text())
    assert run("install", "cursor", "--remove").code == 0
    assert path.read_text().startswith("// mine\n")


def test_what_follows_our_table_of_codex_stays(run: Run) -> None:
    path = client_named("codex").user(Path.home(), os.environ)
    assert run("install", "codex").code == 0
    entry = path.read_text()
    path.write_text(f"{entry}\n# my other server\n[mcp_servers.other]\ncommand = 'o'\n")
    assert run("install", "codex", "--read-only").code == 0
    changed = path.read_text()
    assert changed.endswith("\n\n# my other server\n[mcp_servers.other]\ncommand = 'o'\n")
    assert "--read-only" in changed
    assert run("install", "codex", "--remove").code == 0
    assert path.read_text() == "\n# my other server\n[mcp_servers.other]\ncommand = 'o'\n"
