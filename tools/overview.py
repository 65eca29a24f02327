"""Write `src/rlm_mem/cli/overview_data.py` from the commands themselves; a test says when that is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.main import get_command

from rlm_mem.cli.app import GROUPS, build

TARGET = Path(__file__).parents[1] / "src" / "rlm_mem" / "cli" / "overview_data.py"


def content() -> str:
    """The module as it should be."""
    whole: Any = get_command(build())
    panels: dict[str, list[tuple[str, str]]] = {}
    for name, command in whole.commands.items():
        panels.setdefault(command.rich_help_panel or "Commands", []).append((name, summary(command)))
    options = [
        (", ".join(option.opts), "" if option.is_flag else option.metavar or "TEXT", option.help or "")
        for option in whole.params
        if not option.hidden
    ]
    options.append(("--help, -h", "", "Show this message and exit."))
    modules = {
        name: group for group in GROUPS for name in getattr(get_command(build((group,))), "commands", {})
    }
    lines = [
        '"""What `rlm-mem --help` shows, and which module holds a command; written by `python tools/overview.py`."""',
        "",
        "# ruff: noqa: E501 - the words of the commands, as they stand there",
        "from __future__ import annotations",
        "",
        f"SUMMARY = {whole.help!r}",
        "",
        f"OPTIONS: tuple[tuple[str, str, str], ...] = {tuple(options)!r}",
        "",
        "PANELS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (",
        *(f"    ({name!r}, {tuple(commands)!r})," for name, commands in panels.items()),
        ")",
        "",
        f"MODULES: dict[str, str] = {modules!r}",
    ]
    return "\n".join(lines) + "\n"


def summary(command: Any) -> str:
    """The first paragraph of a command's help, on one line."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


if __name__ == "__main__":
    import subprocess
    import sys

    TARGET.write_text(content(), encoding="utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", str(TARGET)], check=True)
