"""`rlm-mem --help` is written down, so that it costs nothing to show; it says what the commands themselves say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from rlm_mem.cli.app import GROUPS, needed
from rlm_mem.cli.overview import overview
from rlm_mem.cli.overview_data import MODULES, PANELS

TOOL = Path(__file__).parents[2] / "tools" / "overview.py"


def test_what_is_written_down_is_what_the_commands_say(tmp_path: Path) -> None:
    written: dict[str, object] = {}
    exec(compile(runpy.run_path(str(TOOL))["content"](), "wanted", "exec"), written)
    import rlm_mem.cli.overview_data as present

    for name in ("SUMMARY", "OPTIONS", "PANELS", "MODULES"):
        assert getattr(present, name) == written[name], "run: python tools/overview.py"


def test_every_command_is_in_the_overview_with_its_whole_summary() -> None:
    shown = " ".join(overview(200, boxes=False).split())
    for _, commands in PANELS:
        for name, summary in commands:
            assert f"{name} {summary}" in shown


@pytest.mark.parametrize("width", [10, 40, 60, 80, 100, 500])
@pytest.mark.parametrize("boxes", [True, False])
def test_it_fits_the_terminal(width: int, boxes: bool) -> None:
    for line in overview(width, boxes=boxes).splitlines():
        assert len(line) <= max(44, min(120, width)), line


def test_the_overview_shows_on_a_terminal_without_unicode() -> None:
    assert overview(80, boxes=False).isascii()


@pytest.mark.parametrize(
    ("line", "modules"),
    [
        (["search", "tea"], ("read",)),
        (["--brain", "search", "mcp"], ("server",)),
        (["--namespace", "a", "--log-level", "debug", "hud"], ("persona",)),
        (["--brain=x", "trace", "list"], ("traces",)),
        (["serch"], GROUPS),
        (["--version"], ()),
        ([], GROUPS),
        (["--install-completion"], GROUPS),
    ],
)
def test_a_command_line_needs_the_module_of_its_command(line: list[str], modules: tuple[str, ...]) -> None:
    assert needed(line) == modules


def test_every_command_is_known_to_a_module() -> None:
    assert {name for _, commands in PANELS for name, _ in commands} == set(MODULES)
