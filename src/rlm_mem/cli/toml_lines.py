"""Edits one setting in the text of a ``config.toml`` line by line; comments and all other lines are kept."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

from rlm_mem.errors import InvalidConfig

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
    wanted = _parsed(text, where)
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


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidConfig(f"{where} is not valid TOML: {error}", hint="edit the file by hand") from None


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
