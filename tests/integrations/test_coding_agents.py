"""Real coding agents with our hooks, or our server, installed: what they tell the model, and what is kept of a session.

Each client talks to a server of the test. `make test-clients` installs the clients and runs these tests; `make test`
leaves them out, since whether a client is on a machine has nothing to do with a change, and each takes seconds.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.integrations.played_apis import PlayedApis, played_apis

import rlm_mem
from rlm_mem import Memory

pytestmark = pytest.mark.slow

REPLY = "We decided to use PostgreSQL for the ledger service because SQLite locks under load."
PROMPT = "Always run the linter before you commit. Which database does the ledger use?"
SHARED = "Always answer in British English."
RELEVANT = "We decided that the linter before each commit is ruff."
NAMESPACE = "project/github.com/acme/ledger"
INSTALLED = Path(__file__).parents[2] / "build" / "clients" / "node_modules" / ".bin"
SECONDS = 120


def program(name: str) -> str:
    """The path of a client; the test is skipped without one."""
    found = shutil.which(name)
    if found is None and name == "claude" and (package := find_spec("claude_agent_sdk")) and package.origin:
        found = shutil.which("claude", path=Path(package.origin).parent / "_bundled")
    if found is None:
        pytest.skip(f"{name} is not installed: make test-clients")
    return found


@pytest.fixture(autouse=True)
def _own_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use what `make test-clients` installed, with its Node.js, rather than what the machine has."""
    monkeypatch.setenv("PATH", f"{INSTALLED}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def apis() -> Iterator[PlayedApis]:
    with played_apis(REPLY) as played:
        yield played


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return made_repository(tmp_path, "ledger")


def made_repository(parent: Path, name: str) -> Path:
    folder = parent / name
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    address = f"git@github.com:acme/{name}.git"
    subprocess.run(["git", "-C", str(folder), "remote", "add", "origin", address], check=True)
    return folder


@pytest.fixture
def brain(tmp_path: Path) -> Path:
    with Memory.open(tmp_path / "brain") as memory:
        memory.remember(SHARED, chunk_type="preference")
        memory.remember(RELEVANT, chunk_type="fact")
    return tmp_path / "brain"


def installed(client: str, brain: Path, *options: str) -> None:
    """Install the memory into a client as a user would."""
    rlm_mem = [sys.executable, "-m", "rlm_mem", "--brain", str(brain)]
    subprocess.run([*rlm_mem, "install", client, *options], check=True, capture_output=True)


def ran(repository: Path, command: list[str], environ: dict[str, str]) -> None:
    """Run a session of one prompt, in which the client does not complain of what was installed."""
    done = subprocess.run(
        command,
        cwd=repository,
        env={**os.environ, "PWD": str(repository), **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert REPLY in done.stdout, done.stdout + done.stderr
    complaints = [
        line for line in done.stderr.splitlines() if re.search(r"warning.*(?:hook|mcp)", line, re.IGNORECASE)
    ]
    assert not [line for line in complaints if "bypass-hook-trust" not in line]


def check(brain: Path, apis: PlayedApis) -> None:
    """The model was told what fits; what was said was captured for the project, once, and not what was told."""
    for told in (SHARED, RELEVANT):
        assert any(told in body for body in apis.asked), f"not told: {told}"
    with Memory.open(brain, namespace=NAMESPACE) as memory:
        kept = sorted(chunk.content for chunk in memory.store.iter_chunks())
    assert kept == [f"Agent: {REPLY}", "User: Always run the linter before you commit."]


Session = tuple[list[str], dict[str, str]]


def claude_code(apis: PlayedApis) -> Session:
    environ = {
        "ANTHROPIC_BASE_URL": apis.address,
        "ANTHROPIC_API_KEY": "sk-ant-played",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "ENABLE_TOOL_SEARCH": "false",  # every tool is offered at once
        # On a busy machine a server may take longer than the five seconds after which the client begins without it.
        "MCP_CONNECT_TIMEOUT_MS": str(SECONDS * 500),
        "MCP_CONNECTION_NONBLOCKING": "false",
    }
    return [program("claude"), "--allowedTools", "mcp__rlm-mem", "-p", PROMPT], environ


def codex(apis: PlayedApis) -> Session:
    command = [program("codex"), "exec", "--dangerously-bypass-hook-trust", PROMPT]
    settings = Path.home() / ".codex" / "config.toml"
    settings.parent.mkdir()
    settings.write_text(
        f'model = "played"\nmodel_provider = "played"\n[model_providers.played]\nname = "played"\n'
        f'base_url = "{apis.address}/v1"\nenv_key = "PLAYED_KEY"\nwire_api = "responses"\n'
    )
    return command, {"PLAYED_KEY": "played"}


def gemini_cli(apis: PlayedApis) -> Session:
    command = [program("gemini"), "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", PROMPT]
    settings = Path.home() / ".gemini" / "settings.json"
    settings.parent.mkdir()
    chosen: dict[str, Any] = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
    }
    settings.write_text(json.dumps(chosen, indent=2))
    environ = {
        "GEMINI_API_KEY": "played",
        "GOOGLE_GEMINI_BASE_URL": apis.address,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    return command, environ


def copilot_cli(apis: PlayedApis) -> Session:
    environ = {
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_ALLOW_ALL": "true",
        "COPILOT_PROVIDER_BASE_URL": apis.address,
        "COPILOT_PROVIDER_TYPE": "anthropic",
        "COPILOT_PROVIDER_API_KEY": "played",
        "COPILOT_MODEL": "claude-sonnet-4.5",
    }
    return [program("copilot"), "-p", PROMPT], environ


def qwen_code(apis: PlayedApis) -> Session:
    settings = Path.home() / ".qwen" / "settings.json"
    settings.parent.mkdir()
    chosen: dict[str, Any] = {
        "security": {"auth": {"selectedType": "anthropic"}},
        "privacy": {"usageStatisticsEnabled": False},
        "tools": {"toolSearch": {"enabled": False}},  # every tool is offered at once
    }
    settings.write_text(json.dumps(chosen, indent=2))
    environ = {
        "ANTHROPIC_API_KEY": "played",
        "ANTHROPIC_BASE_URL": apis.address,
        "ANTHROPIC_MODEL": "claude-sonnet-4.5",
    }
    return [program("qwen"), "--approval-mode", "yolo", "-p", PROMPT], environ


def opencode(apis: PlayedApis) -> Session:
    settings = Path.home() / ".config" / "opencode" / "opencode.json"
    settings.parent.mkdir(parents=True)
    provider = {"options": {"baseURL": f"{apis.address}/v1", "apiKey": "played"}}
    chosen: dict[str, Any] = {
        "model": "anthropic/claude-sonnet-4-5",
        "provider": {"anthropic": provider},
        "autoupdate": False,
        "permission": "allow",
    }
    settings.write_text(json.dumps(chosen, indent=2))
    return [program("opencode"), "run", PROMPT], {"OPENCODE_DISABLE_MODELS_FETCH": "true"}


WITH_HOOKS = [
    ("claude-code", claude_code), ("codex", codex), ("copilot-cli", copilot_cli), ("gemini-cli", gemini_cli),
    ("qwen-code", qwen_code),
]  # fmt: skip
WITH_SERVER = [*WITH_HOOKS, ("opencode", opencode)]


@pytest.mark.parametrize(("client", "session"), WITH_HOOKS)
def test_the_hooks_of_a_client_give_context_and_capture(
    client: str, session: Callable[[PlayedApis], Session], apis: PlayedApis, brain: Path, repository: Path
) -> None:
    command, environ = session(apis)
    installed(client, brain, "--hooks")
    ran(repository, command, environ)
    check(brain, apis)


TASK = "Always count the ledgers in the cellar before you answer."


@pytest.mark.parametrize(
    ("client", "session", "tool", "arguments"),
    [
        (
            "claude-code",
            claude_code,
            "Agent",
            {"description": "Count", "prompt": TASK, "run_in_background": False},
        ),
        ("codex", codex, "spawn_agent", {"message": TASK}),
    ],
)
def test_a_subagent_is_told_what_the_session_was_told(
    client: str,
    session: Callable[[PlayedApis], Session],
    tool: str,
    arguments: dict[str, Any],
    apis: PlayedApis,
    brain: Path,
    repository: Path,
) -> None:
    command, environ = session(apis)
    installed(client, brain, "--hooks")
    apis.calls = [(tool, arguments)]
    ran(repository, command, environ)
    [first, *_] = [body for body in apis.asked if TASK in body and PROMPT not in body]
    assert SHARED in first
    check(brain, apis)


SPEAKS = "User: The cellar service is restarted by Irena, never with docker compose."
COMMAND = "echo docker compose restart cellar"


@pytest.mark.parametrize(
    ("client", "session", "tool", "arguments"),
    [
        ("claude-code", claude_code, "Bash", {"command": COMMAND}),
        ("codex", codex, "exec_command", {"cmd": COMMAND}),
        ("gemini-cli", gemini_cli, "run_shell_command", {"command": COMMAND}),
        ("qwen-code", qwen_code, "run_shell_command", {"command": COMMAND, "is_background": False}),
    ],
)
def test_the_memory_that_speaks_to_a_command_is_told_with_its_result(
    client: str,
    session: Callable[[PlayedApis], Session],
    tool: str,
    arguments: dict[str, Any],
    apis: PlayedApis,
    brain: Path,
    repository: Path,
) -> None:
    with Memory.open(brain) as memory:
        memory.remember(SPEAKS, chunk_type="fact")
    command, environ = session(apis)
    if client == "claude-code":
        command = [command[0], "--allowedTools", "Bash", *command[3:]]
    installed(client, brain, "--hooks")
    apis.calls = [(tool, arguments)]
    ran(repository, command, environ)
    last = max(apis.asked, key=len)
    assert SPEAKS in last, re.findall(r'"name": ?"(\w+)"', last)
    assert not any(SPEAKS in body for body in apis.asked if COMMAND not in body)
    check(brain, apis)


@pytest.mark.parametrize(("client", "session"), WITH_SERVER)
def test_a_client_reads_the_person_and_its_project_and_writes_to_its_project(
    client: str, session: Callable[[PlayedApis], Session], apis: PlayedApis, brain: Path, tmp_path: Path
) -> None:
    """The server of `mcp --project`, started by the client in one repository and then in another."""
    command, environ = session(apis)
    installed(client, brain)
    learnt = {"ledger": "Answer auditors in writing.", "orchard": "Answer pickers by telephone."}
    for name, text in learnt.items():
        apis.asked.clear()
        apis.calls = [("remember", {"text": text}), ("search", {"query": "answer"})]
        ran(made_repository(tmp_path, name), command, environ)
        told = max(apis.asked, key=len)  # with the results of both calls
        found = [one for one in (SHARED, *learnt.values()) if told.count(one) > (one == text)]
        assert found == [SHARED, text], told[-4000:]
        with Memory.open(brain, namespace=f"project/github.com/acme/{name}") as memory:
            assert [chunk.content for chunk in memory.store.iter_chunks()] == [text]
    with Memory.open(brain) as memory:
        assert {chunk.content for chunk in memory.store.iter_chunks()} == {SHARED, RELEVANT}


def test_the_plugin_of_claude_code_is_installed_as_its_page_says(
    apis: PlayedApis, brain: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [claude, _, _, *prompt], environ = claude_code(apis)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("RLM_MEM_BRAIN", str(brain))
    market = Path(rlm_mem.__file__).parent / "plugins"
    for step in (["marketplace", "add", str(market)], ["install", "rlm-mem@rlm-mem"]):
        subprocess.run([claude, "plugin", *step], cwd=repository, check=True, capture_output=True)
    apis.calls = [("search", {"query": "answer"})]
    ran(repository, [claude, "--allowedTools", "mcp__plugin_rlm-mem_rlm-mem", *prompt], environ)
    assert '"tool_result"' in apis.asked[-1]
    check(brain, apis)


def test_a_program_on_the_claude_agent_sdk(
    apis: PlayedApis, brain: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sdk = pytest.importorskip(
        "claude_agent_sdk", reason="claude-agent-sdk is not installed: make test-clients"
    )
    from rlm_mem.integrations.claude_agent import memory_hooks

    monkeypatch.setenv("ANTHROPIC_BASE_URL", apis.address)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-played")

    async def use() -> list[str]:
        options = sdk.ClaudeAgentOptions(cwd=str(repository), hooks=memory_hooks(brain), setting_sources=[])
        async with sdk.ClaudeSDKClient(options=options) as client:
            said = []
            for prompt in (PROMPT, "Thanks!"):
                await client.query(prompt)
                said += [str(message) async for message in client.receive_response()]
            return said

    said = asyncio.run(asyncio.wait_for(use(), SECONDS))
    assert any(REPLY in one for one in said), said
    check(brain, apis)


def test_the_memories_are_given_again_after_a_compaction_and_to_a_subagent(
    brain: Path, repository: Path
) -> None:
    pytest.importorskip("claude_agent_sdk", reason="claude-agent-sdk is not installed: make test-clients")
    from rlm_mem.integrations.claude_agent import memory_hooks

    hooks = memory_hooks(brain)

    async def told(name: Any, **more: Any) -> str:
        event: Any = {"session_id": "s-1", "cwd": str(repository), "hook_event_name": name, **more}
        return str(await hooks[name][0].hooks[0](event, None, {"signal": None}))

    async def use() -> list[bool]:
        said = []
        for compacted in (False, False, True):
            if compacted:
                await told("PreCompact", trigger="auto", custom_instructions=None)
            text = await told("UserPromptSubmit", prompt="Which linter runs before a commit?")
            said.append(SHARED in text and RELEVANT in text)
        assert SHARED in await told("SubagentStart", agent_id="a-1", agent_type="Explore")
        return said

    assert asyncio.run(use()) == [True, False, True]


@pytest.mark.parametrize(
    ("client", "command", "environ"),
    [
        ("claude-code", "claude", {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}),
        ("gemini-cli", "gemini", {"GEMINI_CLI_TRUST_WORKSPACE": "true"}),
    ],
)
def test_a_client_that_lists_its_servers_finds_the_memory_connected(
    client: str, command: str, environ: dict[str, str], brain: Path, repository: Path
) -> None:
    found = program(command)
    installed(client, brain)
    if client == "gemini-cli":  # it gives a server five seconds to start, which a busy machine may not
        settings = Path.home() / ".gemini" / "settings.json"
        changed = json.loads(settings.read_text())
        changed["mcpServers"]["rlm-mem"]["timeout"] = SECONDS * 1_000
        settings.write_text(json.dumps(changed))
    listed = subprocess.run(
        [found, "mcp", "list"],
        cwd=repository,
        env={**os.environ, "PWD": str(repository), **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    said = listed.stdout + listed.stderr
    line = next((line for line in said.splitlines() if "rlm-mem" in line and "mcp --brain" in line), said)
    assert "Connected" in line
