"""The commands `rlm-mem persona …` and `rlm-mem persona hud`."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from rlm_mem import Memory
from rlm_mem.persona import Library, Persona
from rlm_mem.persona.figures import KEYS
from tests.house.sources import SOURCE
from tests.persona.test_hud import paths
from tests.waiting import until

from .conftest import Run

DEFAULTS = SOURCE / "rlm_mem" / "persona" / "defaults"


@pytest.mark.local_only("look at files")
def test_init_copies_the_defaults_and_overwrites_nothing(run: Run, brain: Path) -> None:
    mine = brain / "personalities" / "BASE.md"
    mine.parent.mkdir(parents=True)
    mine.write_text("# mine\n", encoding="utf-8")
    assert run("init").code == 0
    assert mine.read_text(encoding="utf-8") == "# mine\n"
    for kind in ("personalities", "sliders", "gauges"):
        shipped = {path.name for path in (DEFAULTS / kind).glob("*.md")}
        assert shipped
        assert {path.name for path in (brain / kind).glob("*.md")} == shipped


@pytest.mark.local_only("look at files")
def test_show_prints_the_prompt_of_the_session(run: Run, brain: Path) -> None:
    assert run("persona", "say", "Set humor to 20%").code == 0
    shown = run("persona", "show", "--user", "Dana", "--project", "Ledger").out
    persona = Persona(brain)
    persona.set("humor", 20)
    assert shown == persona.prompt({"user": "Dana", "project": "Ledger"})
    assert "- Humor 20%: " in shown


@pytest.mark.local_only("look at files")
def test_show_of_a_mode_leaves_the_session_alone(run: Run, brain: Path) -> None:
    run("persona", "set", "humor", "3")
    assert run("persona", "show", "research").out == Persona(brain, mode="research").prompt()
    state = run("persona", "show", "--json").json
    assert (state["mode"], state["by_hand"]) == ("BASE", {"humor": 3})
    assert state["prompt"]


def test_use_set_and_reset_are_kept(run: Run) -> None:
    assert run("persona", "use", "technical", "--json").json["mode"] == "TECHNICAL_COPILOT"
    assert run("persona", "set", "Humor", "70", "--json").json["by_hand"] == {"humor": 70}
    assert run("persona", "show", "--json").json["sliders"]["humor"] == 70
    assert run("persona", "reset", "--json").json["by_hand"] == {}
    assert run("persona", "show", "--json").json["sliders"]["humor"] == 15


def test_a_change_by_the_command_is_in_the_audit_log_of_the_memory_and_is_undone(
    run: Run, memory: Memory
) -> None:
    run("persona", "set", "humor", "70")
    changed = [one for one in memory.recorded_changes() if one.files == ("persona/default.json",)]
    assert [(one.ops, one.actor) for one in changed] == [(("edit",), "persona")]
    memory.undo()
    assert run("persona", "show", "--json").json["by_hand"] == {}


def test_sessions_are_independent(run: Run) -> None:
    run("persona", "use", "concise", "--session", "alice")
    assert run("persona", "show", "--json", "-s", "alice").json["mode"] == "CONCISE"
    assert run("persona", "show", "--json").json["mode"] == "BASE"


def test_say_names_what_it_did(run: Run) -> None:
    said = run("persona", "say", "Research mode and max directness", "--json").json
    assert [command["kind"] for command in said["commands"]] == ["mode", "set"]
    assert "RESEARCH_ANALYST" in run("persona", "say", "min", "humor").out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("say", "How are you?"), 2, "is not a command for the persona"),
        (("say", "Set humor to 300%"), 2, "Humor must be from 0 to 100, not 300"),
        (("set", "humor", "101"), 2, "Humor must be from 0 to 100, not 101"),
        (("set", "humour", "1"), 1, "there is no slider 'humour'"),
        (("use", "poet"), 1, "there is no mode 'poet'"),
        (("use", "../x"), 2, "is not a valid name of a mode"),
        (("show", "--session", "../x"), 2, "is not a valid name of a session"),
        (("slider", "wit"), 1, "there is no slider 'wit'"),
    ],
)
def test_a_mistake_is_one_line_and_a_hint(run: Run, arguments: tuple[str, ...], code: int, said: str) -> None:
    ran = run("persona", *arguments)
    assert ran.code == code
    assert said in ran.err
    assert "hint: " in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.local_only("look at files")
def test_list_names_modes_sliders_and_gauges(run: Run, brain: Path) -> None:
    (brain / "personalities").mkdir(parents=True)
    (brain / "personalities" / "MY_MODE.md").write_text("# MY_MODE Mode\n## Configuration\n- Humor: 1\n")
    listed = run("persona", "list", "--json").json
    assert "MY_MODE" in [mode["mode"] for mode in listed["modes"]]
    assert len(listed["sliders"]) == 10
    assert listed["gauges"][0] == "LIVEHUD"
    shown = run("persona", "list").out
    for name in ("MY_MODE", "CREATIVE_DIRECTOR", "Technicality", "LIVEHUD"):
        assert name in shown


@pytest.mark.local_only("look at files")
def test_list_names_each_file_that_is_invalid_and_lists_the_others(run: Run, brain: Path) -> None:
    for folder, name, content in (
        ("personalities", "MY_MODE", "# MY_MODE Mode\n## Configuration\n- Humor: 1\n"),
        ("personalities", "LOUD", "# LOUD Mode\n## Configuration\n- Humor: 1000\n"),
        ("personalities", "WARM", "# WARM Mode\n## Configuration\n- Warmth: 7\n"),
        ("sliders", "WARMTH", "# Warmth\n## Range\nfar\n"),
        ("gauges", "EMPTY", "no block"),
    ):
        (brain / folder).mkdir(parents=True, exist_ok=True)
        (brain / folder / f"{name}.md").write_text(content)
    (brain / "personalities" / "LINK.md").symlink_to("/etc/hostname")
    for ran in (run("persona", "list"), run("persona", "list", "--json")):
        assert ran.code == 2 and "MY_MODE" in ran.out and "Technicality" in ran.out
        assert all(f"{name}.md" in ran.err for name in ("LOUD", "LINK", "WARMTH", "EMPTY"))
        assert ran.err.count("WARMTH.md") == 1
    assert run("persona", "show", "LINK").code == 2


def test_slider_explains_its_values(run: Run) -> None:
    shown = " ".join(run("persona", "slider", "humor").out.split())
    for value, meaning in Library().slider("humor").examples:
        assert f"{value} {meaning}" in shown
    assert run("persona", "slider", "humor", "--json").json["range"] == [0, 100]


def test_hud_json_has_the_canonical_keys(run: Run, notes: dict[str, str]) -> None:
    figures = run("hud", "--json").json
    assert sorted(paths(figures)) == sorted(KEYS)
    assert figures["store"]["chunks"] == len(notes)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_hud_is_as_wide_as_the_terminal(
    run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    memory.remember("日本語 👨‍👩‍👧 and more\x1b[31m words ❤️ here")
    lines = run("hud").out.splitlines()
    assert {cell_len(line) for line in lines} == {width}
    assert "日本語 👨 and" in "\n".join(lines)
    assert "\x1b" not in "\n".join(lines)


def test_hud_takes_a_width_and_draws_in_ascii(run: Run, notes: dict[str, str]) -> None:
    shown = run("hud", "--width", "70", "--ascii").out
    assert {len(line) for line in shown.splitlines()} == {70}
    assert "─" not in shown
    assert "###" in shown


@pytest.mark.local_only("look at files")
def test_hud_shows_a_gauge_of_the_brain(run: Run, brain: Path, notes: dict[str, str]) -> None:
    run("init")
    (brain / "gauges" / "SHORT.md").write_text(
        "# x\n```gauge\nchunks {{store.chunks}}\n```\n", encoding="utf-8"
    )
    assert "│ chunks 4 " in run("hud", "short").out
    (brain / "gauges" / "BAD.md").write_text("```gauge\n{{store.nothing}}\n```\n", encoding="utf-8")
    ran = run("hud", "bad")
    assert ran.code == 2
    assert "BAD.md line 2: there is no figure 'store.nothing'" in " ".join(ran.err.split())


@pytest.mark.local_only("look at files")
def test_hud_of_no_memory_says_how_to_make_one(run: Run) -> None:
    ran = run("hud")
    assert ran.code == 1
    assert "rlm-mem store init" in ran.err


def test_watch_follows_what_is_written(brain: Path, memory: Memory) -> None:
    """In a real terminal: the frame is drawn again when the store changed, and Ctrl-C ends it."""
    memory.store.create_chunk("first of all")
    screen = Terminal(
        [sys.executable, "-m", "rlm_mem", "--brain", str(brain), "hud", "--watch", "--interval", "0.2"]
    )
    try:
        screen.wait_for("wrote a note: first of all")
        memory.store.create_chunk("second one 日本")
        screen.wait_for("wrote a note: second one 日本")
        screen.process.send_signal(signal.SIGINT)
        assert screen.process.wait(20) == 130
        assert "Traceback" not in screen.seen
    finally:
        screen.close()


class Terminal:
    """A command with a terminal of 100 by 50 around it."""

    def __init__(self, command: list[str]) -> None:
        self._own, other = pty.openpty()
        environment = {
            **os.environ,
            "COLUMNS": "100",
            "LINES": "50",
            "TERM": "xterm-256color",
            "NO_COLOR": "1",
        }
        environment["PYTHONIOENCODING"] = "utf-8"
        self.process = subprocess.Popen(
            command,
            stdin=other,
            stdout=other,
            stderr=other,
            env=environment,
            close_fds=True,
            # A suite that a shell runs in the background ignores Ctrl-C, and its children would, too.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(other)
        os.set_blocking(self._own, False)
        self._raw = b""

    @property
    def seen(self) -> str:
        return self._raw.decode("utf-8", "replace")

    def wait_for(self, text: str) -> None:
        until(lambda: text in self._read(), f"{text!r}")

    def _read(self) -> str:
        with contextlib.suppress(BlockingIOError):
            self._raw += os.read(self._own, 65536)
        return self.seen

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._own)
