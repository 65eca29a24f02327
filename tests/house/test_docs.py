"""The documents are true: every command and option is documented, links resolve, examples run."""

from __future__ import annotations

import re
import runpy
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import rlm_mem
from rlm_mem import Hit, ReasoningResult, RecallResult, RememberResult, errors
from rlm_mem.chunk import ALL_LINK_TYPES
from rlm_mem.cli.app import build, loaded
from rlm_mem.cli.ask import recall_json
from rlm_mem.cli.catalogue import CommandRow, GroupRow, rows_of
from rlm_mem.config import Config
from rlm_mem.http.openapi import document
from rlm_mem.interchange.detection import FORMATS
from rlm_mem.mcp.service import tools_for
from rlm_mem.models.opening import PROVIDERS
from rlm_mem.operations.registry import OPERATIONS
from rlm_mem.persona.figures import KEYS, SLIDER_KEYS
from rlm_mem.persona.library import Library
from rlm_mem.recall.trajectory_export import FIELDS
from rlm_mem.sandbox.functions import FUNCTIONS
from rlm_mem.store.core.backup_archive import BackupInfo
from tests.house.sources import EXAMPLES, MODULES, PAGES, ROOT, SOURCE, listed, named, text

CLI_PAGE = text(ROOT / "docs" / "cli.md")
EVERYWHERE = CLI_PAGE.split("\n## Remember and ask", 1)[0]
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
TEMPLATES = sorted((SOURCE / "rlm_mem" / "dashboard" / "templates").glob("*.html"))
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


COMMANDS = {
    command.path: loaded(command)
    for row in rows_of(None)
    for command in ((row,) if isinstance(row, CommandRow) else rows_of(row))
    if isinstance(command, CommandRow)
}


def test_every_command_and_option_has_a_help_text() -> None:
    """From it the reference is made, in which every one stands therefore."""
    wrong = [f"rlm-mem {command}" for command, found in COMMANDS.items() if not found.help]
    wrong += [
        f"rlm-mem {command} {one.opts[0]}"
        for command, found in COMMANDS.items()
        for one in found.params
        if not one.hidden and not one.help
    ]
    assert not wrong, listed(wrong)


def dashed(command: Any) -> list[str]:
    """The options of a command, in all their spellings."""
    return [name for option in command.params for name in option.opts if name.startswith("-")]


def test_options_before_the_command_are_documented() -> None:
    wrong = [name for name in dashed(build()) if f"`{name}" not in EVERYWHERE]
    assert not wrong, listed(wrong)


def test_no_command_is_documented_that_is_not_there() -> None:
    named = re.findall(r"^### `rlm-mem ([^`]+)`$", CLI_PAGE, re.MULTILINE)
    assert len(set(named)) == len(named) and set(named) <= set(COMMANDS)


def test_no_option_is_documented_that_is_not_there() -> None:
    known = {name for command in COMMANDS.values() for name in dashed(command)}
    known |= {*dashed(build()), "--help", "-h"}
    wrong = sorted(set(re.findall(r"`(--[a-z-]+)", CLI_PAGE)) - known)
    assert not wrong, listed(wrong)


def test_what_commands_print_as_json_is_documented() -> None:
    """Of those commands whose fields their section lists."""
    found = RecallResult(content=None, chunk_ids=[], confidence=0, iterations_used=0)
    shown: dict[str, Iterable[str]] = {
        "recall": recall_json(found, trajectory=True),
        "trajectories export": FIELDS,
        "store backup": [field.name for field in fields(BackupInfo)],
    }
    sections = dict(
        re.findall(r"^### `rlm-mem ([^`]+)`\n(.*?)(?=^##|\Z)", CLI_PAGE, re.MULTILINE | re.DOTALL)
    )
    wrong = [
        f"rlm-mem {command}: {name}"
        for command, names in shown.items()
        for name in names
        if f"`{name}`" not in sections[command]
    ]
    assert not wrong, listed(wrong)


def test_every_group_of_addresses_is_on_the_page_of_the_http_interface() -> None:
    page = text(ROOT / "docs" / "api.md")
    groups = {path.removeprefix("/api/v1").split("/")[1] for path in document()["paths"]}
    wrong = sorted(group for group in groups if not re.search(rf"/{re.escape(group)}\b", page))
    assert not wrong, listed(wrong)


def test_links_within_the_repository_lead_somewhere() -> None:
    wrong = [
        f"{named(path)} links to {target}, which is not there"
        for path in PAGES
        for target in broken_links(path)
    ]
    assert not wrong, listed(wrong)


def broken_links(path: Path) -> Iterator[str]:
    for target in LINK.findall(FENCE.sub("", text(path))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors(there)):
            yield target


@cache
def anchors(path: Path) -> set[str]:
    """The anchors of the headings, as the usual renderers make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", text(path)), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_no_page_names_a_path_of_one_machine() -> None:
    wrong = [
        f"{named(path)} names {found!r}"
        for path in PAGES
        for found in re.findall(r"/(?:work|root|tmp|home/\w+)/\S*", text(path))
    ]
    assert not wrong, listed(wrong)


@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_an_example_runs(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, which has loaded already what most of them load."""
    monkeypatch.chdir(tmp_path)
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as ended:  # it says what is to be installed first
        assert not ended.code
    assert capsys.readouterr().out.strip(), "an example shows something"


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 3


SHOWN = re.compile(
    r"(?:^|[|&;`$] *)rlm-mem(?: --(?:brain|namespace) \S+)* ([a-z]+)(?: ([a-z][a-z-]*)\b)?", re.MULTILINE
)


def test_commands_shown_in_the_documents_exist() -> None:
    """Every `rlm-mem WORD` in a console block or in backticks names a command by its present name."""
    groups = {row.name for row in rows_of(None) if isinstance(row, GroupRow)}
    wrong = [
        f"{named(path)} shows rlm-mem {first} {second}".rstrip() + ", which is no command"
        for path in [*PAGES, *EXAMPLES]
        for block in [code for _, code in FENCE.findall(text(path))]
        + re.findall(r"`(rlm-mem[^`]*)`", text(path))
        for first, second in SHOWN.findall(block)
        if (first not in COMMANDS and first not in groups)
        or (first in groups and second and f"{first} {second}" not in COMMANDS)
    ]
    assert not wrong, listed(wrong)


NAMED = re.compile(r"rlm-mem(?: --(?:brain|namespace) \S+)* ([a-z]+)(?: ([A-Za-z][\w-]*))?")


def test_commands_named_by_messages_and_pages_of_the_dashboard_exist() -> None:
    """Every `rlm-mem WORD` in the sources, such as the remedy of an error, names a command by its present name."""
    groups = {row.name for row in rows_of(None) if isinstance(row, GroupRow)}
    wrong = [
        f"{named(path)} names rlm-mem {first} {second}".rstrip() + ", which is no command"
        for path in [*MODULES, *TEMPLATES]
        for first, second in NAMED.findall(text(path))
        if (first not in COMMANDS and first not in groups)
        or (first in groups and second not in ("", "EVENT") and f"{first} {second}" not in COMMANDS)
    ]
    assert not wrong, listed(wrong)


def test_every_page_is_in_a_table_of_contents_of_the_site() -> None:
    docs = ROOT / "docs"
    listed_pages = re.findall(
        r"^[a-z][\w/-]*$", "".join(TOCTREE.findall(text(docs / "index.md"))), re.MULTILINE | re.I
    )
    pages = [str(path.relative_to(docs).with_suffix("")) for path in PAGES if docs in path.parents]
    assert sorted(listed_pages) == sorted(set(pages) - {"index"}), (
        "see the tables of contents in docs/index.md"
    )


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """What the pages of the reference get from the package."""
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from _reference import MADE, filled
    finally:
        sys.path.pop(0)
    return {name: filled(f"<!-- made from the package: {name} -->") for name in MADE}


def test_an_option_is_code_on_every_page(made: dict[str, str]) -> None:
    """Elsewhere the site makes a dash of its two hyphens."""
    code = re.compile(r"^(`{3,}).*?^\1$|(`+)(?!`).+?(?<!`)\2(?!`)|<!--.*?-->", re.MULTILINE | re.DOTALL)
    wrong = [
        f"{name}: {found}"
        for name, page in ({named(path): text(path) for path in PAGES} | made).items()
        for found in re.findall(r"(?<!\w)--[a-z][\w-]*", code.sub("", page))
    ]
    assert not wrong, listed(wrong)


def test_the_reference_of_commands_has_their_arguments_and_examples(made: dict[str, str]) -> None:
    page = made["commands"]
    assert "rlm-mem remember [TEXT] [options]" in page and "| `TEXT` |" in page
    assert '$ rlm-mem erase --person "Ann Lee" --apply --report ann.json' in page


def test_the_reference_of_the_site_has_every_command_setting_operation_tool_and_name(
    made: dict[str, str],
) -> None:
    settings = [f"{part}.{name}" for part, values in Config().to_dict().items() for name in values]
    wanted = {
        "commands": [f"### `rlm-mem {command}`" for command in COMMANDS],
        "settings": [f"| `{name}` |" for name in settings],
        "operations": [f"### `{one.method} {one.path}`" for one in OPERATIONS if one.method],
        "tools": [f"### `{one.name}`" for one in tools_for(every=True)],
        "python": [f":: {name}\n" for name in rlm_mem.__all__],
        "functions": [f"## `{name}`" for name in FUNCTIONS],
        "figures": [f"| `{{{{{key}}}}}` |" for key in KEYS] + [f"| `{key}` |" for key in SLIDER_KEYS],
    }
    missing = [
        f"{page}: {name}" for page, names in wanted.items() for name in names if name not in made[page]
    ]
    for command, found in COMMANDS.items():
        own = made["commands"].split(f"### `rlm-mem {command}`\n", 1)[-1].split("\n### ", 1)[0]
        missing += [f"rlm-mem {command} {name}" for name in dashed(found) if f"`{name}`" not in own]
    assert not missing, listed(missing)
    asked = [re.findall(r"made from the package: (\w+) -->", text(path)) for path in PAGES]
    assert sorted(name for names in asked for name in names) == sorted(made)


def test_the_reference_says_of_every_setting_what_it_may_be_and_what_it_is_for(made: dict[str, str]) -> None:
    rows = [line.split(" | ") for line in made["settings"].splitlines() if line.startswith("| `")]
    values = {row[0].strip("| `"): row[2] for row in rows}
    assert [row[0] for row in rows if not row[3].strip(" |")] == []
    assert values["store.durability"] == "`full`, `normal`"
    assert values["recall.max_depth"] == "0 to 50; in the file of a brain at most 10"
    assert values["sandbox.allow_weaker_isolation"] == "`true`, `false`; in the file of a brain `false`"
    assert values["search.candidates"] == "1 to 10,000"
    assert values["recall.trajectories"] == "`true`, `false`"
    assert values["continuum.task_types"] == "a list"


TABLES: dict[str, tuple[str, str, str, list[str], bool]] = {
    "link type": ("spec/links.md", "\n## Types\n", "\n## ", ALL_LINK_TYPES, True),
    "format": ("spec/interchange.md", "\n## Formats\n", "\n## ", list(FORMATS), True),
    "tool": ("integrations.md", "\n| tool |", "\n\n", [tool.name for tool in tools_for(every=True)], False),
    "provider": ("models.md", "\n| name |", "\n\n", list(PROVIDERS), False),
    "gauge": ("persona.md", "| `gauges/` |", "\n", Library().gauges(), True),
}
"""Of each thing: the page of its table, where that begins and ends, the names, and whether it lists nothing else."""


def test_tables_name_every_row_of_what_they_list() -> None:
    first = re.compile(r"^\|? ((?:`[\w-]+[`:](?:, )?)+|templates: .*)", re.MULTILINE)
    wrong = []
    for what, (page, begin, end, names, only) in TABLES.items():
        table = text(ROOT / "docs" / page).split(begin)[1].split(end)[0]
        shown = re.findall(r"`([\w-]+)", table if what == "tool" else " ".join(first.findall(table)))
        wrong += [
            f"docs/{page} lacks a line for the {what} {name}: add it" for name in names if name not in shown
        ]
        wrong += [
            f"docs/{page} names the {what} {name}, which is not there"
            for name in shown
            if only and name not in names
        ]
    assert not wrong, listed(wrong)


def test_the_page_of_recall_names_every_function_of_programs() -> None:
    table = text(ROOT / "docs" / "recall.md").split("\n## What a program may call\n")[1].split("\n### ")[0]
    wrong = [f"docs/recall.md lacks the call `{name}(…)`" for name in FUNCTIONS if f"`{name}(" not in table]
    assert not wrong, listed(sorted(wrong))


def test_the_specification_names_every_field_of_a_result_and_every_error() -> None:
    page = text(ROOT / "docs" / "spec" / "operations.md")
    results = {
        "REMEMBER": RememberResult,
        "RECALL": RecallResult,
        "REASON": ReasoningResult,
        "Search": Hit,
        "Errors": errors,
    }
    missing = []
    for part, what in results.items():
        told = re.findall(r"`(\w+)`", page.split(f"\n## {part}\n")[1].split("\n## ")[0])
        names = errors.__all__ if what is errors else [one.name for one in fields(what)]
        missing += [f"{part}: {name}" for name in names if name not in told]
    assert not missing, listed(missing)


def test_every_setting_is_read() -> None:
    by_origin = {"trust.imported", "trust.web"}  # read together, by the origin of a new chunk
    code = "\n".join(text(path) for path in MODULES if path.name != "config.py")
    unread = [
        f"{section}.{name} is read nowhere: use it, or take it out"
        for section, values in Config().to_dict().items()
        for name in values
        if f"{section}.{name}" not in by_origin and not re.search(rf"\.{name}\b", code)
    ]
    assert not unread, listed(unread)


def test_settings_named_in_the_documents_exist() -> None:
    settings = Config().to_dict()
    known = {f"{section}.{name}" for section, values in settings.items() for name in values}
    setting = re.compile(rf"`((?:{'|'.join(settings)})\.(?!py`)[a-z_]+)")
    wrong = [
        f"{named(path)} names {name}, which is no setting"
        for path in PAGES
        for name in setting.findall(text(path))
        if name not in known
    ]
    assert not wrong, listed(wrong)
