"""What the documents say is so: every command and option stands there, links lead somewhere, examples run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from rlm_mem.cli.app import app
from rlm_mem.config import Config

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
CLI_PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
EVERYWHERE = CLI_PAGE.split("\n## Remember and recall", 1)[0]
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def page_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command that does something, with the words that call it."""
    children = getattr(command, "commands", None)
    if not children:
        yield " ".join(path), command
        return
    for name, child in children.items():
        yield from commands(child, (*path, name))


COMMANDS = dict(commands(get_command(app)))


def section(command: str) -> str:
    """The part of the page below the heading of a command."""
    heading = f"### `rlm-mem {command}`\n"
    assert heading in CLI_PAGE, f"docs/cli.md has no section {heading.strip()!r}"
    return re.split(r"^#{2,3} ", CLI_PAGE.split(heading, 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_documented(command: str) -> None:
    own = section(command)
    for option in COMMANDS[command].params:
        for name in option.opts:
            if name.startswith("-"):
                shown = re.compile(rf"`{re.escape(name)}(?![\w-])")
                assert shown.search(own) or shown.search(EVERYWHERE), (
                    f"rlm-mem {command} {name} is not in docs/cli.md"
                )


def test_options_before_the_command_are_documented() -> None:
    for option in get_command(app).params:
        for name in option.opts:
            assert f"`{name}" in EVERYWHERE, f"{name} is not in docs/cli.md"


def test_no_command_is_documented_that_is_not_there() -> None:
    named = re.findall(r"^### `rlm-mem ([^`]+)`$", CLI_PAGE, re.MULTILINE)
    assert sorted(named) == sorted(COMMANDS)


def test_no_option_is_documented_that_is_not_there() -> None:
    known = {name for command in COMMANDS.values() for option in command.params for name in option.opts}
    known |= {name for option in get_command(app).params for name in option.opts} | {"--help", "-h"}
    for name in set(re.findall(r"`(--[a-z-]+)", CLI_PAGE)):
        assert name in known, f"docs/cli.md names {name}"


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_links_within_the_repository_lead_somewhere(path: Path) -> None:
    for target in LINK.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), f"{page_id(path)} links to {target}"
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), f"{page_id(path)} links to {target}"


def anchors(path: Path) -> set[str]:
    """The anchors of the headings, as the usual renderers make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_no_page_names_a_place_of_the_machine_it_was_written_on(path: Path) -> None:
    content = path.read_text(encoding="utf-8")
    found = re.search(r"/(?:work|root|tmp|home/\w+)/\S*", content)
    assert found is None, f"{page_id(path)} names {found.group()!r}"


PYTHON_PAGES = [
    path for path in PAGES if any(kind == "python" for kind, _ in FENCE.findall(path.read_text("utf-8")))
]


@pytest.mark.parametrize("path", PYTHON_PAGES, ids=page_id)
def test_the_python_examples_of_a_page_run(path: Path, tmp_path: Path) -> None:
    """In order, as one program, in an empty folder. Pseudo-code carries another name on its fence than python."""
    blocks = [code for kind, code in FENCE.findall(path.read_text(encoding="utf-8")) if kind == "python"]
    run_script("\n".join(blocks), tmp_path)


def test_some_pages_hold_python_examples() -> None:
    assert {"README.md", "docs/recall.md", "docs/schema.md"} <= {page_id(path) for path in PYTHON_PAGES}


@pytest.mark.parametrize("path", EXAMPLES, ids=page_id)
def test_an_example_runs(path: Path, tmp_path: Path) -> None:
    printed = run_script(path.read_text(encoding="utf-8"), tmp_path)
    assert printed.strip(), "an example shows something"


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


def run_script(code: str, folder: Path) -> str:
    script = folder / "script.py"
    script.write_text(code, encoding="utf-8")
    environment = {**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder / "data")}
    environment.pop("RLM_MEM_BRAIN", None)
    ran = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES], ids=page_id)
def test_commands_shown_in_the_documents_exist(path: Path) -> None:
    """Every `rlm-mem WORD` in a console block or in backticks names a command."""
    content = path.read_text(encoding="utf-8")
    first_words = {command.split()[0] for command in COMMANDS}
    for block in [code for _, code in FENCE.findall(content)] + re.findall(r"`(rlm-mem[^`]*)`", content):
        for word in re.findall(
            r"(?:^|[|&;`$] *)rlm-mem(?: --(?:brain|namespace) \S+)* ([a-z]+)", block, re.MULTILINE
        ):
            assert word in first_words, f"{page_id(path)} shows rlm-mem {word}"


@pytest.mark.parametrize("path", PAGES, ids=page_id)
def test_settings_named_in_the_documents_exist(path: Path) -> None:
    known = {f"{section}.{name}" for section, values in Config().to_dict().items() for name in values}
    sections = "|".join(Config().to_dict())
    named = set(re.findall(rf"`((?:{sections})\.[a-z_]+)", path.read_text(encoding="utf-8")))
    assert named <= known
