"""`rlm-mem config`: lists the current settings with their sources, and writes them to `config.toml`."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from pathlib import Path
from typing import Annotated, Any

from rlm_mem.chunk import check_namespace
from rlm_mem.cli.call import BrainCall, shown_place
from rlm_mem.cli.options import argument
from rlm_mem.cli.terminal import FOLDED, note, print_json, print_table, print_text
from rlm_mem.config import Config, parse_setting
from rlm_mem.errors import InputError, InvalidConfig, ModelUnavailable, NotFoundError
from rlm_mem.ingest.chunking import analyse
from rlm_mem.mcp.clients import read_text, read_toml
from rlm_mem.models import get_llm
from rlm_mem.store.core.files import write_atomic
from rlm_mem.text.analysis import get_analyser


def list_(
    call: BrainCall,
    section: Annotated[str | None, argument("[SECTION]", "Only this section, for example recall.")] = None,
) -> None:
    """Show the current settings, and whether each is a default or from config.toml or the environment."""
    place = call.place
    config = Config.load(place)
    settings = config.to_dict()
    if section is not None:
        if section not in settings:
            raise InvalidConfig(f"there is no section {section!r}", hint=f"use one of {', '.join(settings)}")
        settings = {section: settings[section]}
    if call.printed_json({"brain": shown_place(place), "settings": settings}):
        return
    origins = _origins(config, place)
    rows = (
        (f"{name}.{key}", _shown(value), origins.get((name, key), "default"))
        for name, values in settings.items()
        for key, value in values.items()
    )
    print_text(f"brain: {shown_place(place)}", "dim")
    print_table((("setting", {"style": "cyan"}), ("value", FOLDED), ("from", {"style": "dim"})), rows)


Setting = Annotated[str, argument("SETTING", "SECTION.NAME, as in rlm-mem config list.")]


def _value(config: Config, setting: str) -> Any:
    section, _, name = setting.partition(".")
    values = config.to_dict().get(section, {})
    if name not in values:
        raise InvalidConfig(f"there is no setting {setting!r:.60}", hint="rlm-mem config list lists them")
    return values[name]


def get(call: BrainCall, setting: Setting) -> None:
    """Print the current value of a setting."""
    config = Config.load(call.place)
    value = _value(config, setting)
    if call.json:
        section, _, name = setting.partition(".")
        origin = _origins(config, call.place).get((section, name), "default")
        print_json({"setting": setting, "value": value, "from": origin})
    else:
        print_text(_shown(value), wrap=False)


def set_(
    call: BrainCall,
    setting: Setting,
    value: Annotated[str, argument("VALUE", "The value; separate the items of a list by commas.")],
) -> None:
    """Write a setting to the brain's config.toml: rlm-mem config set recall.max_iterations 6.

    It is checked first; comments and all other lines are kept.
    """
    _write(call, setting, parse_setting(setting, value))


def unset(call: BrainCall, setting: Setting) -> None:
    """Remove a setting from the brain's config.toml, so that its default applies again."""
    _value(Config(), setting)
    _write(call, setting, None)


def _write(call: BrainCall, setting: str, value: Any) -> None:
    """Write the setting to the file, or (None) remove it, and print the resulting value."""
    place = call.place
    if isinstance(place, str):
        variable = f"RLM_MEM_{setting.upper().replace('.', '_')}"
        raise InputError(
            f"{shown_place(place)} is a database, which has no config.toml",
            hint=f"set {variable} in the environment of the programs that open it",
        )
    if not place.is_dir():
        raise NotFoundError(
            f"there is no brain at {place}",
            hint=f"rlm-mem store init {shlex.quote(str(place))} creates one; --brain PATH names another place",
        )
    path = place / "config.toml"
    before = read_text(path)
    section, _, name = setting.partition(".")
    after = toml_with_value(before, section, name, value, where=str(path))
    made = Config.of_file(after, str(path))
    if value is not None:
        _check_usable(section, made)
    if after != before:
        target = path.resolve()  # a symbolic link, for example to a folder of dotfiles, is kept
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o644
        write_atomic(target, after.encode("utf-8"), mode=mode)
        target.chmod(mode)  # whatever the mask of this user
    config = Config.load(place)
    current = _value(config, setting)
    if call.printed_json(
        {"setting": setting, "value": current, "file": str(path), "changed": after != before}
    ):
        return
    if value is not None:
        done = f"{setting} = {_toml(current)}"
    else:
        done = f"{setting} is {_toml(current)} again" if after != before else f"{setting} was not set there"
    print_text(f"{done}  ({path})", wrap=False)
    if _origins(config, place).get((section, name)) == "environment":
        note("the environment also sets this, and takes precedence over the file")


def _check_usable(section: str, config: Config) -> None:
    """Check that the memory can use the settings of a section.

    Raises:
        InputError: a value, or several together, cannot be used.
    """
    if section == "store":
        check_namespace(config.store.namespace)
    elif section == "search":
        get_analyser(config.search.language)
    elif section == "ingest":
        analyse("A text.", config.ingest, config.secrets)
    elif section == "llm":
        for model in filter(None, (config.llm.model, config.llm.sub_model)):
            try:
                get_llm(model, config)
            except ModelUnavailable as missing:
                note(str(missing))


def _origins(config: Config, place: Path | str) -> dict[tuple[str, str], str]:
    """Return the source of each setting whose value is not the default, by section and name."""
    plain: dict[str, dict[str, Any]] = Config().to_dict()
    in_file = Config.load(place, environ={}).to_dict()
    found: dict[tuple[str, str], str] = {}
    for section, values in config.to_dict().items():
        for key, value in values.items():
            if value != in_file[section][key]:
                found[section, key] = "environment"
            elif value != plain[section][key]:
                found[section, key] = "config.toml"
    return found


def settings_file() -> str:
    """Return the text of a ``config.toml`` with every setting commented out at its default."""
    lines = [
        "# Settings of this memory: remove the # from a line to change it.",
        "# rlm-mem config list shows the current settings.",
    ]
    for section, values in Config().to_dict().items():
        lines += ["", f"[{section}]"]
        lines += [
            f"# {name} = {_toml(value)}" for name, value in values.items() if not isinstance(value, dict)
        ]
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else _toml(value)


def _toml(value: Any) -> str:
    # JSON and TOML write strings, numbers, booleans and lists of them alike.
    return json.dumps(list(value) if isinstance(value, tuple) else value)


_HEADER = re.compile(r"\s*\[")


def toml_with_value(text: str, section: str, name: str, value: Any, *, where: str) -> str:
    """Return the text with ``name = value`` in its section, or (None) without it.

    The value replaces the former one, if any; otherwise it is inserted below the commented default, or at the beginning
    of the section, which is added if missing.

    Args:
        text: a whole TOML file.
        value: a string, number, boolean or list of them, whose syntax is the same in JSON and TOML.
        where: the name of the file, for messages.

    Raises:
        InvalidConfig: the text is not TOML, or the setting spans several lines.
    """
    wanted = read_toml(text, where)
    table = wanted.setdefault(section, {})
    if not isinstance(table, dict):
        raise InvalidConfig(f"{where}: [{section}] must be a table of settings")
    if value is None:
        table.pop(name, None)
    else:
        table[name] = value
    lines = text.splitlines(keepends=True)
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    made = None if value is None else f"{name} = {json.dumps(value, ensure_ascii=False)}"
    try:
        after = "".join(_lines_with_value(lines, section, name, made, end))
        same = {section: {}, **tomllib.loads(after)} == {section: {}, **wanted}
    except tomllib.TOMLDecodeError:
        same = False
    if not same:
        raise InvalidConfig(
            f"{where} has {section}.{name} in a form that cannot be edited automatically",
            hint="edit the file by hand",
        )
    return after


def _lines_with_value(lines: list[str], section: str, name: str, made: str | None, end: str) -> list[str]:
    first = next((number for number, line in enumerate(lines) if _is_header(line, section)), None)
    if first is None:
        if made is None:
            return lines
        gap = [end] if lines and lines[-1].endswith("\n") else [end, end] if lines else []
        return [*lines, *gap, f"[{section}]{end}", made + end]
    last = next((n for n in range(first + 1, len(lines)) if _HEADER.match(lines[n])), len(lines))
    own = next((n for n in range(first + 1, last) if _is_assignment(lines[n], name)), None)
    if own is not None:
        new = [] if made is None else [made + _comment_of(lines[own]) + end]
        return [*lines[:own], *new, *lines[own + 1 :]]
    if made is None:
        return lines
    after = next(
        (n for n in range(first + 1, last) if _is_assignment(lines[n].lstrip().removeprefix("#"), name)),
        first,
    )
    if not lines[after].endswith("\n"):
        lines = [*lines[:after], lines[after] + end, *lines[after + 1 :]]
    return [*lines[: after + 1], made + end, *lines[after + 1 :]]


def _is_header(line: str, section: str) -> bool:
    code = line.partition("#")[0].strip()
    return code.startswith("[") and code.endswith("]") and code[1:-1].strip() == section


def _is_assignment(line: str, name: str) -> bool:
    key, equals, _ = line.partition("=")
    return bool(equals) and key.strip() == name


def _comment_of(line: str) -> str:
    """Return the comment after the value of a line, preceded by two spaces; empty if there is none."""
    stripped = line.rstrip("\r\n")
    for found in re.finditer("#", stripped[:1000]):
        try:
            tomllib.loads(stripped[: found.start()])
        except tomllib.TOMLDecodeError:
            continue  # the # is part of a string
        return "  " + stripped[found.start() :]
    return ""
