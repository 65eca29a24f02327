"""The help and the names of commands: the catalogue, groups, former names, completion."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest

from rlm_mem.cli import main
from rlm_mem.cli.app import build, loaded
from rlm_mem.cli.catalogue import FORMER, PANELS, CommandRow, GroupRow, find, rows_of
from rlm_mem.cli.examples import EXAMPLES
from rlm_mem.cli.overview import overview

from .conftest import Run

GROUPS = [row for row in rows_of(None) if isinstance(row, GroupRow)]
EVERY = [row for row in rows_of(None) if isinstance(row, CommandRow)]
EVERY += [row for group in GROUPS for row in rows_of(group) if isinstance(row, CommandRow)]


def test_every_command_of_the_catalogue_loads_with_its_help_and_documented_options() -> None:
    for command in EVERY:
        made = loaded(command)
        assert made.name == command.name
        assert made.help.split("\n\n")[0].strip().endswith((".", '".')), command.path
        for option in made.params:
            assert option.name == "help" or getattr(option, "help", None), f"{command.path}: {option.name}"


@pytest.mark.parametrize("path", EXAMPLES)
def test_the_examples_in_the_help_of_a_command_are_ones_that_it_takes(
    path: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    command = find(path)
    assert isinstance(command, CommandRow)
    assert main([*path.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    for line in EXAMPLES[path]:
        assert f"rlm-mem {line}" in shown
        before, _, given = f" {line}".partition(f" {path}")
        assert not before or re.fullmatch(r" --(?:brain|namespace) \S+", before)
        loaded(command).make_context(path, shlex.split(given))


def test_the_help_names_every_command_with_its_whole_summary() -> None:
    for group in (None, *GROUPS):
        shown = " ".join(overview(group, 200, boxes=False, colours=False).split())
        for row in rows_of(group):
            assert f"{row.name} {row.summary}" in shown


def test_everyday_commands_and_those_for_agents_come_first() -> None:
    titles = [title for title, _ in PANELS]
    assert titles == ["Remember and ask", "Look and change", "Agents", "More, by subject"]
    assert len(rows_of(None)) <= 34


@pytest.mark.parametrize("width", [10, 40, 80, 120, 500])
def test_the_help_fits_the_terminal(width: int) -> None:
    for group in (None, *GROUPS):
        for boxes in (True, False):
            for line in overview(group, width, boxes=boxes, colours=False).splitlines():
                assert len(line) <= max(44, min(120, width)), line
    assert all(len(row.summary) <= 64 for row in EVERY), "one line of 80 columns each"


def test_the_help_shows_on_a_terminal_without_unicode() -> None:
    assert overview(None, 80, boxes=False, colours=False).isascii()
    coloured = overview(None, 80, boxes=True, colours=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == overview(None, 80, boxes=True, colours=False)


@pytest.mark.parametrize(
    ("line", "code", "begin"),
    [
        ([], 2, " Usage: rlm-mem [OPTIONS] COMMAND"),
        (["-h"], 0, " Usage: rlm-mem [OPTIONS] COMMAND"),
        (["--brain", "x", "--help"], 0, " Usage: rlm-mem [OPTIONS] COMMAND"),
        (["store"], 2, " Usage: rlm-mem store COMMAND"),
        (["store", "--help"], 0, " Usage: rlm-mem store COMMAND"),
        (["--brain", "x", "store", "--help"], 0, " Usage: rlm-mem store COMMAND"),
        (["store", "check", "--help"], 0, " Usage: rlm-mem store check [OPTIONS]"),
        (["check", "--help"], 0, " Usage: rlm-mem check [OPTIONS]"),
    ],
)
def test_help_is_printed_at_every_level(
    line: list[str], code: int, begin: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line) == code
    assert begin in capsys.readouterr().out


def test_former_names_lead_to_commands_and_are_not_shown(run: Run) -> None:
    for former, present in FORMER.items():
        assert find(former) is find(present) is not None
    shown = set(build().list_commands(None))
    assert shown.isdisjoint({name for name in FORMER if " " not in name})
    chunk_id = run("remember", "Ana drinks tea.", "--tag", "people", "--json").json["chunk_ids"][0]
    other = run("remember", "Ben drinks water.", "--json").json["chunk_ids"][0]
    for words, former_words in (
        (("store", "stats"), ("stats",)),
        (("store", "tags"), ("tags",)),
        (("tier", "list"), ("trace", "list")),
        (("config", "list", "recall"), ("config", "show", "recall")),
        (("chunk", "history", chunk_id), ("history", chunk_id)),
        (("link", "list", chunk_id), ("links", chunk_id)),
    ):
        assert run(*words, "--json").json == run(*former_words, "--json").json
    assert run("link", chunk_id, other, "supports").code == 0
    assert run("link", "add", other, chunk_id, "elaborates").code == 0
    assert run("unlink", chunk_id, other).code == 0
    assert run("index", "rebuild").code == 0
    assert "Ana drinks tea." in run("get", chunk_id).out
    assert run("forget", chunk_id).code == 0
    assert run("restore", chunk_id).code == 0
    assert run("chunk", "restore", chunk_id).code == 1


def test_completion_offers_commands_of_groups_and_options() -> None:
    def offered(words: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-m", "rlm_mem"],
            env={**os.environ, "_RLM_MEM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "2"},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return ran.stdout

    assert {"check", "checkpoint"} <= set(offered("rlm-mem store che").split())
    assert "--since" in offered("rlm-mem list --si")


def test_words_that_people_try_first_lead_to_the_commands(run: Run) -> None:
    assert run("help").out == run("--help").out
    assert run("help", "store").out == run("store", "--help").out
    assert run("help", "recall").out == run("recall", "--help").out
    assert run("add", "Ana drinks tea.").code == 0
    assert "tea" in run("ask", "What does Ana drink?").out
    assert "--help lists the commands" in run("remeber", "Ana drinks tea.").err


#: Commands whose output is no report: servers, what hooks and clients read, JSON lines.
WITHOUT_JSON = {
    "serve", "mcp", "trajectories export",
    "hook session-start", "hook subagent-start", "hook user-prompt", "hook tool-use", "hook stop",
    "hook pre-compact", "hook session-end",
}  # fmt: skip


def test_every_command_that_reports_something_takes_json() -> None:
    without = {
        row.path
        for row in EVERY
        if not any("--json" in getattr(one, "opts", ()) for one in loaded(row).params)
    }
    assert without == WITHOUT_JSON
