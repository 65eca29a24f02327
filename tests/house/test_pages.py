"""What the documents show works: a page is carried out from its beginning to its end, in an empty folder.

* A block with the name of a file behind its language (```` ```json notes.json ````) is written to that file.
* ``python`` is run, the blocks of a page as one program. ``py`` needs a framework or a model: compiled.
* ``console``: each line behind ``$`` is run, and what is shown below it must be in its output. Where it needs what is
  not here (see ``NOT_RUN``), its words are held to the options and arguments of the command.
* ``sh``: targets of make exist; ``toml`` and ``json`` are parsed, settings are checked.
"""

from __future__ import annotations

import io
import json
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from rlm_mem.cli import main
from rlm_mem.cli.app import loaded
from rlm_mem.cli.catalogue import CommandRow, find
from rlm_mem.config import Config
from tests.house.sources import PAGES, ROOT, named, text

FENCE = re.compile(r"^( *)```([\w{}`]*)[ \t]*(\S*)[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
MADE = {"python", "py", "console", "sh", "toml", "json"}

#: Lines of a console that are not run, by what they need.
NOT_RUN = {
    "the network, or the package installed anew": re.compile(r"^(?:python3 -m venv|pip|npm|docker|kubectl) "),
    "another program, or minutes": re.compile(
        r"^(?:make|claude|keyring|llama-server|(?:\S+/)?python) |^rlm-mem (?:demo|doctor)\b"
    ),
    "a shell": re.compile(r"\s[|<]\s|2>>|^export |^[A-Z_]+="),
    "a model, a database or a home": re.compile(r"--llm \S+:|postgresql://|~/|anthropic:|RLM_MEM_LLM"),
    "a word of the reader's": re.compile(r" (?:--\S+ )?[A-Z]{3,}(?: |$)|elsewhere"),
    "its end": re.compile(r"^rlm-mem.* (?:serve|mcp)\b|--watch"),
}


#: What a command reads; a line with a file that its page does not make is not run either.
FILE_TAKEN = re.compile(r" (?:import|--folder|restore) (\S+)")


class Block(NamedTuple):
    """A fenced block of a page."""

    kind: str
    file: str
    code: str


def blocks(path: Path) -> Iterator[Block]:
    for _, kind, file, code in FENCE.findall(text(path)):
        yield Block(kind, file, code)


SHOWING = [
    path for path in PAGES if path.name != "CHANGELOG.md" and any(one.kind in MADE for one in blocks(path))
]


@pytest.mark.parametrize("path", SHOWING, ids=named)
def test_what_a_page_shows_works(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    page = ModuleType("shown_on_a_page")
    monkeypatch.setitem(sys.modules, page.__name__, page)
    wrong: list[str] = []
    if "$ rlm-mem" in text(path) and "$ rlm-mem store init" not in text(
        path
    ):  # a page on a memory that is there
        run(["store", "init"])
        run(["remember", "The ledger runs on PostgreSQL, because of its row-level security."])
    for block in blocks(path):
        if block.file and block.kind in ("json", "markdown", "text"):
            made = tmp_path / block.file
            made.parent.mkdir(parents=True, exist_ok=True)
            made.write_text(block.code, encoding="utf-8")
        elif block.kind == "python":
            with redirect_stdout(io.StringIO()):
                exec(compile(block.code, named(path), "exec"), page.__dict__)
        elif block.kind == "py":
            compile(block.code, named(path), "exec")
        elif block.kind == "console":
            wrong += console(block.code)
        elif block.kind == "sh":
            wrong += [
                f"make {target} is no target"
                for target in re.findall(r"^make ([\w-]+)", block.code, re.M)
                if target not in TARGETS
            ]
        elif block.kind == "json":
            json.loads(block.code)
        elif block.kind == "toml" and not re.search(r"^\[(?:project|tool)\b", block.code, re.M):
            Config.of_file(block.code, named(path))
    assert not wrong, "\n".join(wrong)


TARGETS = re.findall(r"^([a-z-]+):", text(ROOT / "Makefile"), re.MULTILINE)


def console(code: str) -> Iterator[str]:
    """What is wrong with the lines of a console: a command that fails, output that is not there."""
    for shown in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        line, _, output = shown.partition("\n")
        line = re.sub(r"\s+#.*", "", line).strip()
        if any(pattern.search(line) for pattern in NOT_RUN.values()) or not all(
            Path(name).exists() for name in FILE_TAKEN.findall(line)
        ):
            yield from misfits(line)
        elif line.startswith("rlm-mem "):
            code_, printed = run(shlex.split(line)[1:])
            if code_:
                yield f"{line} ended with {code_}: {printed}"
            yield from (
                f"{line} does not print {one!r}: {printed}"
                for one in output.splitlines()
                if not any(prints(line_, one) for line_ in printed.splitlines())
            )
        else:
            yield f"{line} is neither run nor in NOT_RUN"


def run(arguments: list[str]) -> tuple[int, str]:
    """A command line in this process: its exit code and what it printed."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        return main(arguments), printed.getvalue()


def prints(printed: str, shown: str) -> bool:
    """Whether a line begins as a page shows it; a line without indentation, such as an answer, has none either."""
    return plain(printed).startswith(plain(shown)) and printed.startswith(" ") == shown.startswith(" ")


def plain(printed: str) -> str:
    """A line without what differs with the day: ids, and the date after one."""
    return re.sub(
        r"\s+", " ", re.sub(r"\b(?:chunk|traj)-[\w-]+(?: +\d{4}-\d\d-\d\d)?", "ID", printed)
    ).strip()


def misfits(line: str) -> Iterator[str]:
    """Options and arguments of a line that its command does not take."""
    for part in re.split(r"\s[|]\s", line):
        words = shlex.split(part)
        while words and "=" in words[0]:
            del words[0]
        if not words or words[0] != "rlm-mem":
            continue
        del words[0]
        while words and words[0].startswith("--") and words[0] != "--version":
            del words[:2]
        row = find(" ".join(words[:2])) or find(words[0] if words else "")
        if not isinstance(row, CommandRow):
            yield from () if words[:1] == ["--version"] else (f"{part} is no command",)
            continue
        arguments = words[2:] if find(" ".join(words[:2])) else words[1:]
        command = loaded(row)
        try:
            command.make_parser(command.context_class(command)).parse_args(arguments)
        except Exception as error:  # noqa: BLE001 - Typer's own errors, which it vendors
            yield f"{part}: {error}"
