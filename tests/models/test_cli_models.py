"""Command-line models, run for real: small scripts stand in for the agents."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal
from pathlib import Path

import pytest
from tests.waiting import until

from rlm_mem.config import Config
from rlm_mem.errors import ModelError, ModelOverloaded, ModelRefused, ModelTimeout, ModelUnavailable
from rlm_mem.models import LLM, Message, Usage, commands as commands_module, get_llm

pytestmark = pytest.mark.skipif(
    os.name != "posix", reason="stand-in agents are shell and Python scripts for POSIX"
)


def script(folder: Path, name: str, body: str) -> Path:
    """An executable Python script."""
    path = folder / name
    path.write_text(
        f"#!{sys.executable}\nimport json, os, signal, subprocess, sys, time\n{body}\n", encoding="utf-8"
    )
    path.chmod(0o755)
    return path


def agent(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, body: str) -> LLM:
    """A stand-in for the agent ``name``, found through PATH like the real one."""
    script(folder, name, body)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return get_llm(f"cli:{name}")


def gone(pid: int) -> bool:
    """True when no process of this number runs any more (a zombie that nobody has waited for counts as gone)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def test_any_command_gets_the_prompt_on_standard_input(tmp_path: Path) -> None:
    path = script(tmp_path, "shout", "print(sys.stdin.read().upper(), sys.argv[1:])")
    completion = get_llm(f"cli:{path} --loud 'two words'").complete(
        [Message("system", "be"), Message("user", "kind")]
    )
    assert completion.text == "BE\n\nKIND ['--loud', 'two words']"
    assert completion.model == "cli:shout"
    assert completion.provider == "cli"
    assert completion.cost is None
    assert completion.usage.estimated
    assert completion.usage.output_tokens > 0


def test_the_prompt_can_be_an_argument_and_no_shell_looks_at_it(tmp_path: Path) -> None:
    path = script(tmp_path, "argued", "print(sys.argv[1:], repr(sys.stdin.read()))")
    prompt = "$(touch pwned); `id` 'quoted' \"double\" \n* end"
    assert get_llm(f"cli:{path} -q {{prompt}}").complete(prompt).text == f"{['-q', prompt]} ''"


@pytest.mark.parametrize("tail", ["", " {prompt}"])
def test_text_that_is_no_valid_unicode_can_be_asked_about(tmp_path: Path, tail: str) -> None:
    path = script(tmp_path, "says", "print(*sys.argv[1:], sys.stdin.read())")
    text = get_llm(f"cli:{path}{tail}").complete("half a pair: \ud83d, and a NUL: \0.").text
    assert text.startswith("half a pair: ?, and a NUL: ")


def test_a_prompt_too_long_for_an_argument_is_refused(tmp_path: Path) -> None:
    path = script(tmp_path, "argued", "print('never')")
    with pytest.raises(ModelRefused, match="too long"):
        get_llm(f"cli:{path} {{prompt}}").complete("x" * 3_000_000)


def test_a_long_prompt_and_a_command_that_reads_none_of_it_do_not_block_each_other(tmp_path: Path) -> None:
    path = script(tmp_path, "deaf", "print('y' * 500_000)")
    assert len(get_llm(f"cli:{path}").complete("x" * 1_000_000).text) == 500_000


def test_the_environment_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = script(tmp_path, "asks", "print(os.environ['SOME_SETTING'])")
    monkeypatch.setenv("SOME_SETTING", "here")
    assert get_llm(f"cli:{path}").complete("x").text == "here"


def test_text_and_terminal_colours(tmp_path: Path) -> None:
    path = script(tmp_path, "coloured", r"sys.stdout.buffer.write(b'\x1b[1;32mgr\xc3\xbcn\x1b[0m \xff\n')")
    assert get_llm(f"cli:{path}").complete("x").text == "grün �"


def test_output_streams_as_it_comes_and_characters_are_not_cut(tmp_path: Path) -> None:
    body = r"""
for part in (b'gr\xc3', b'\xbcn ', b'leaf'):
    sys.stdout.buffer.write(part); sys.stdout.buffer.flush(); time.sleep(0.15)
"""
    pieces: list[str] = []
    completion = get_llm(f"cli:{script(tmp_path, 'slowly', body)}").complete("x", on_text=pieces.append)
    assert "".join(pieces) == completion.text == "grün leaf"
    assert len(pieces) > 1


def test_a_failing_command_is_an_error_with_its_own_words_but_not_with_keys(tmp_path: Path) -> None:
    body = "print('half an answer'); print('cannot: sk-abcdefghijklmnop1234567890', file=sys.stderr); sys.exit(3)"
    with pytest.raises(ModelError, match=r"exit status 3: cannot: \[redacted\]"):
        get_llm(f"cli:{script(tmp_path, 'fails', body)}").complete("x")


def test_a_command_that_prints_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cli:mute printed nothing"):
        get_llm(f"cli:{script(tmp_path, 'mute', 'pass')}").complete("x")


def test_a_command_that_prints_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands_module, "MAX_OUTPUT_BYTES", 1024 * 1024)
    body = f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\nwhile True: print('y' * 10_000)"
    with pytest.raises(ModelError, match="printed more than 1 MiB"):
        get_llm(f"cli:{script(tmp_path, 'endless', body)}").complete("x", timeout=60)
    until(lambda: gone(int((tmp_path / "pid").read_text(encoding="utf-8"))), "the end of the command")


def test_a_timeout_ends_the_command_and_everything_it_started(tmp_path: Path) -> None:
    body = f"""
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(['sleep', '600'])
open({str(tmp_path / "pids")!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')
time.sleep(600)
"""
    began = time.monotonic()
    with pytest.raises(ModelTimeout, match="cli:stubborn did not answer within 2 seconds"):
        get_llm(f"cli:{script(tmp_path, 'stubborn', body)}").complete("x", timeout=2.0)
    assert time.monotonic() - began < 30
    for pid in (tmp_path / "pids").read_text(encoding="utf-8").split():
        until(lambda pid=pid: gone(int(pid)), "the end of a command")


def test_a_child_left_behind_does_not_hold_up_the_answer(tmp_path: Path) -> None:
    body = f"""
child = subprocess.Popen(['sleep', '600'])
open({str(tmp_path / "pid")!r}, 'w').write(str(child.pid))
print('answer')
"""
    began = time.monotonic()
    assert get_llm(f"cli:{script(tmp_path, 'leaves', body)}").complete("x", timeout=60).text == "answer"
    assert time.monotonic() - began < 30
    until(lambda: gone(int((tmp_path / "pid").read_text(encoding="utf-8"))), "the end of the command")


def test_an_exception_of_the_caller_ends_the_command(tmp_path: Path) -> None:
    body = f"""
open({str(tmp_path / "pid")!r}, 'w').write(str(os.getpid()))
print('start', flush=True)
time.sleep(600)
"""

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get_llm(f"cli:{script(tmp_path, 'talks', body)}").complete("x", on_text=stop, timeout=60)
    until(lambda: gone(int((tmp_path / "pid").read_text(encoding="utf-8"))), "the end of the command")


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs signals of POSIX")
@pytest.mark.parametrize("how", ["SIGTERM", "SIGHUP", "SIGKILL"])
def test_a_command_ends_with_the_process_that_asked_it(tmp_path: Path, how: str) -> None:
    """However that one ends: a closed terminal must not leave an agent working, whose tokens cost."""
    body = f"""
child = subprocess.Popen(['sleep', '600'])
Path({str(tmp_path / "pids")!r}).write_text(f'{{os.getpid()}} {{child.pid}}')
print('begun', flush=True)
time.sleep(600)
"""
    asking = (
        "import sys; from rlm_mem.models import get_llm; get_llm(sys.argv[1]).complete('x', on_text=print)"
    )
    command = f"cli:{script(tmp_path, 'works', 'from pathlib import Path' + body)}"
    with subprocess.Popen([sys.executable, "-uc", asking, command], stdout=subprocess.PIPE) as asks:
        assert asks.stdout is not None
        assert asks.stdout.readline() == b"begun\n"
        asks.send_signal(signal.Signals[how])
    for pid in (tmp_path / "pids").read_text(encoding="utf-8").split():
        until(lambda pid=pid: gone(int(pid)), "the end of a command")


def test_the_configured_timeout_holds_when_a_call_names_none(tmp_path: Path) -> None:
    config = Config.load(None, environ={}, llm={"timeout_seconds": 0.5})
    with pytest.raises(ModelTimeout, match=r"within 0\.5 seconds"):
        get_llm(f"cli:{script(tmp_path, 'sleeps', 'time.sleep(600)')}", config).complete("x")


def test_several_threads_can_ask_at_once(tmp_path: Path) -> None:
    model = get_llm(f"cli:{script(tmp_path, 'echoes', 'print(sys.stdin.read())')}")
    answers: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda n=n: answers.update({n: model.complete(f"question {n}").text}))
        for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == {n: f"question {n}" for n in range(6)}


CLAUDE_ANSWER = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "Paris",
    "stop_reason": "end_turn",
    "total_cost_usd": 0.0123,
    "usage": {
        "input_tokens": 10,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 300,
        "output_tokens": 7,
    },
    "modelUsage": {"claude-small": {"outputTokens": 1}, "claude-large": {"outputTokens": 6}},
}


def test_claude_is_asked_without_tools_and_in_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen.json"
    body = f"""
json.dump([sys.argv[1:], sys.stdin.read(), os.getcwd(), os.listdir()], open({str(seen)!r}, 'w'))
print(json.dumps({CLAUDE_ANSWER!r}))
"""
    model = agent(monkeypatch, tmp_path, "claude", body)
    completion = model.complete("What is the capital of France?")
    assert completion.text == "Paris"
    assert completion.model == "claude-large"
    assert completion.cost == Decimal("0.0123")
    assert completion.usage == Usage(330, 7, cached_tokens=300, cache_write_tokens=20)
    argv, prompt, folder, files = json.loads(seen.read_text(encoding="utf-8"))
    assert prompt == "What is the capital of France?"
    assert "--tools=" in argv
    assert "--output-format=json" in argv
    assert Path(folder) != Path.cwd()
    assert files == []
    assert not Path(folder).exists()


def test_the_price_that_claude_guesses_for_a_model_of_others_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {**CLAUDE_ANSWER, "modelUsage": {"local-model": {"outputTokens": 7}}}
    assert agent(monkeypatch, tmp_path, "claude", f"print(json.dumps({answer!r}))").complete("x").cost is None


def test_arguments_after_the_agent_are_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path, "claude", "print(json.dumps({'result': ' '.join(sys.argv[-2:])}))")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    model = get_llm("cli:claude --model opus")
    assert model.complete("x").text == "--model opus"
    assert model.name == "cli:claude"


@pytest.mark.parametrize(
    ("result", "error", "words"),
    [
        (
            {"is_error": True, "result": "Not logged in · Please run /login"},
            ModelUnavailable,
            "not logged in",
        ),
        ({"is_error": True, "result": "overloaded", "api_error_status": 529}, ModelOverloaded, "overloaded"),
        ({"is_error": True, "result": "Prompt is too long"}, ModelRefused, "context window"),
        ({"is_error": True, "result": "something odd"}, ModelError, "something odd"),
    ],
)
def test_what_claude_reports_as_an_error_is_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    result: dict[str, object],
    error: type[ModelError],
    words: str,
) -> None:
    model = agent(monkeypatch, tmp_path, "claude", f"print(json.dumps({result!r})); sys.exit(1)")
    with pytest.raises(error, match=words):
        model.complete("x")


def test_an_agent_that_is_not_logged_in_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = agent(monkeypatch, tmp_path, "codex", "print('not logged in', file=sys.stderr); sys.exit(1)")
    with pytest.raises(ModelUnavailable) as caught:
        model.complete("x")
    assert caught.value.hint == "run: codex login"


def test_an_agent_of_another_version_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = agent(
        monkeypatch, tmp_path, "claude", "print('unknown option --tools=', file=sys.stderr); sys.exit(2)"
    )
    with pytest.raises(ModelError, match="exit status 2: unknown option"):
        model.complete("x")


def test_codex_events_are_read_for_the_answer_and_the_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {"type": "reasoning", "text": "hm"}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "let me see"}},
        {"type": "item.completed", "item": {"type": "agent_message", "text": "Paris"}},
        {
            "type": "turn.completed",
            "usage": {
                "input_tokens": 100,
                "cached_input_tokens": 40,
                "output_tokens": 9,
                "reasoning_output_tokens": 4,
            },
        },
    ]
    body = f"sys.stdin.read()\nprint('no JSON here')\nfor event in {events!r}: print(json.dumps(event))"
    completion = agent(monkeypatch, tmp_path, "codex", body).complete("x")
    assert completion.text == "Paris"
    assert completion.usage == Usage(100, 9, cached_tokens=40, reasoning_tokens=4)
    assert completion.cost is None


def test_codex_is_asked_without_shell_and_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = {"type": "item.completed", "item": {"type": "agent_message"}}
    body = f"""
event = {event!r}
event['item']['text'] = json.dumps([sys.argv[1:], os.listdir(), sys.stdin.read()])
print(json.dumps(event))
"""
    argv, files, prompt = json.loads(agent(monkeypatch, tmp_path, "codex", body).complete("a question").text)
    assert {"exec", "--sandbox=read-only", "features.shell_tool=false", "web_search=disabled"} <= set(argv)
    assert files == []
    assert prompt == "a question"


def test_a_failed_turn_of_codex_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = {"type": "turn.failed", "error": {"message": "stream disconnected"}}
    with pytest.raises(ModelError, match="stream disconnected"):
        agent(monkeypatch, tmp_path, "codex", f"print(json.dumps({event!r}))").complete("x")


def test_a_command_that_closes_its_output_and_goes_on_is_ended_in_time() -> None:
    program = "import os, time; os.close(1); os.close(2); time.sleep(30)"
    began = time.monotonic()
    with pytest.raises(ModelTimeout, match="did not answer within"):
        commands_module.run_command([sys.executable, "-c", program], "", name="quiet", timeout=0.5)
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("program", ["/nonexistent/program", "/etc/hostname", "a\0b"])
def test_what_cannot_be_run_is_no_model(program: str) -> None:
    with pytest.raises(ModelUnavailable, match="cannot run"):
        commands_module.run_command([program], "", name="none", timeout=5.0)


def test_an_answer_of_codex_may_have_any_line_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    event = {"type": "item.completed", "item": {"type": "agent_message", "text": "one\u2028two\x85three"}}
    body = f"sys.stdin.read()\nprint(json.dumps({event!r}, ensure_ascii=False))"
    assert agent(monkeypatch, tmp_path, "codex", body).complete("x").text == "one\u2028two\x85three"
