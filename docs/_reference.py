"""What is made from the package: commands, settings, HTTP operations, tools, functions of programs, figures of gauges.

A page of ``docs`` holds a line ``<!-- made from the package: NAME -->``; when the site is built, what the
function NAME of this module returns stands there. Nothing made is in the repository, so nothing can be out of date.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import rlm_mem
from rlm_mem import config
from rlm_mem.cli.app import loaded
from rlm_mem.cli.catalogue import PANELS, CommandRow, rows_of
from rlm_mem.cli.examples import EXAMPLES
from rlm_mem.http.openapi import document
from rlm_mem.mcp.prompts import INSTRUCTIONS, PROMPTS
from rlm_mem.mcp.resources import FIXED, TEMPLATES
from rlm_mem.mcp.service import input_schema, tools_for
from rlm_mem.persona.figures import KEYS, SLIDER_KEYS
from rlm_mem.sandbox.reference import PAGES

__all__ = ["MADE", "filled"]

_PLACE = re.compile(r"^<!-- made from the package: (\w+) -->$", re.MULTILINE)
_PAGE = re.compile(r"\bdocs/([\w/-]+\.md)\b(?:, ([A-Z][\w ]*[\w]))?")


def filled(text: str) -> str:
    """A page with what is made from the package in its place."""
    return _PLACE.sub(lambda found: MADE[found[1]](), text)


# --- Markdown -----------------------------------------------------------------------------------------------


def _cell(text: object) -> str:
    """A text as it may stand in a table: one line, and only its code and the options that it names are code."""
    shown = re.sub(r"``?([^`]+)``?", r"`\1`", " ".join(str(text).split()))
    parts = re.split(r"(`[^`]*`)", shown)
    parts[::2] = [
        re.sub(r"(?<!\w)--\w[\w-]*", r"`\g<0>`", re.sub(r"([<>*_\[\]])", r"\\\1", part))
        for part in parts[::2]
    ]
    return _linked("".join(parts).replace("|", "\\|"))


def _linked(text: str) -> str:
    """Pages that docstrings name, as links: ``docs/spec/links.md, Types``."""

    def link(found: re.Match[str]) -> str:
        page, heading = found.groups()
        anchor = "#" + heading.lower().replace(" ", "-") if heading else ""
        return f"[{heading or page}](../{page}{anchor})"

    return _PAGE.sub(link, text)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *rows)) + "\n"


# --- commands -----------------------------------------------------------------------------------------------


def commands() -> str:
    """Every command with its arguments and options, as ``--help`` has them."""
    parts = []
    for title, rows in PANELS:
        parts.append(f"## {title}\n")
        for row in rows:
            for command in (row,) if isinstance(row, CommandRow) else rows_of(row):
                parts.append(_command(command))
    return "\n".join(parts)


def _command(row: CommandRow) -> str:
    command = loaded(row)
    own = [one for one in command.params if not getattr(one, "hidden", False)]
    arguments = [one for one in own if one.param_type_name == "argument"]
    shown = [(one.metavar or one.name.upper()).strip("[]") for one in arguments]
    usage = " ".join(
        name if one.required else f"[{name}]" for name, one in zip(shown, arguments, strict=True)
    )
    rows = [(f"`{name}`", _cell(one.help or "")) for name, one in zip(shown, arguments, strict=True)]
    for one in own:
        if one.param_type_name == "option":
            names = ", ".join(f"`{name}`" for name in one.opts)
            value = f" `{one.metavar}`" if one.metavar and not one.is_flag else ""
            default = "" if one.is_flag or one.default in (None, "", []) else f" Default: `{one.default}`."
            rows.append((names + value, _cell(one.help or "") + default))
    lines = "\n".join(f"$ rlm-mem {line}" for line in EXAMPLES.get(row.path, ()))
    summary = " ".join((command.help or row.summary).split("\n\n", 1)[0].split())
    return (
        f"### `rlm-mem {row.path}`\n\n{_cell(summary)}\n\n"
        f"```text\nrlm-mem {row.path}{' ' + usage if usage else ''} [options]\n```\n\n"
        + _table(("argument or option", "meaning"), rows)
        + (f"\n```console\n{lines}\n```\n" if lines else "")
    )


# --- Python -------------------------------------------------------------------------------------------------

_DOORS = ("memory", "aio", "host_session", "repl_session")  # modules of the classes that a program opens


def python() -> str:
    """Every public name of ``rlm_mem``, by what it is."""
    groups: dict[str, list[str]] = {
        "Memory and sessions": [],
        "Settings, results and records": [],
        "Errors": [],
    }
    for name in rlm_mem.__all__:
        found = getattr(rlm_mem, name)
        if isinstance(found, type) and issubclass(found, BaseException):
            groups["Errors"].append(f".. autoexception:: {name}\n   :show-inheritance:\n")
        elif isinstance(found, type):
            door = found.__module__.rpartition(".")[2] in _DOORS
            group = groups["Memory and sessions" if door else "Settings, results and records"]
            group.append(f".. autoclass:: {name}\n   :members:\n")
        else:
            groups["Settings, results and records"].append(f".. autodata:: {name}\n")
    return "\n".join(
        f"## {title}\n\n```{{eval-rst}}\n.. currentmodule:: rlm_mem\n\n" + "\n".join(blocks) + "```\n"
        for title, blocks in groups.items()
    )


# --- settings -----------------------------------------------------------------------------------------------


def settings() -> str:
    """Every setting with its default, what it may be and what it is for."""
    source = Path(config.__file__).read_text(encoding="utf-8")
    notes = _comments(source)
    parts = []
    for section in fields(config.Config):
        kind = section.default_factory
        assert isinstance(kind, type)
        types = get_type_hints(kind, include_extras=True)
        rows = [
            (
                f"`{section.name}.{one.name}`",
                f"`{_default(one)}`",
                _cell(_values(types[one.name])),
                _cell(notes.get((kind.__name__, one.name), "")),
            )
            for one in fields(kind)
        ]
        about = " ".join((kind.__doc__ or "").split())
        parts.append(
            f"## `[{section.name}]`\n\n{_cell(about)}\n\n"
            + _table(("setting", "default", "values", "meaning"), rows)
        )
    return "\n".join(parts)


def _default(one: Field[Any]) -> str:
    value = one.default if one.default.__class__.__name__ != "_MISSING_TYPE" else {}
    return {True: "true", False: "false"}.get(value, "") if isinstance(value, bool) else _toml(value)


def _toml(value: object) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return "[]" if value == () else str(value)


def _values(given: Any) -> str:
    kind, *bounds = get_args(given) if hasattr(given, "__metadata__") else (given,)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    shown = {bool: "`true`, `false`", str: "text"}.get(kind, "a table" if "dict" in str(kind) else "a list")
    for bound in bounds:
        if kind is not bool:
            shown = f"{bound.low:,} to {bound.high:,}"
        if bound.in_file is not None:
            shown += "; in the file of a brain " + (
                f"at most {bound.in_file:,}" if bound.in_file else "`false`"
            )
    return shown


def _comments(source: str) -> dict[tuple[str, str], str]:
    """The comments of the fields of the classes of a module, beside or above them, by class and field."""
    said: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            above = token.line.lstrip().startswith("#")
            said[token.start[0] + above] = token.string.lstrip("# ")
    found = {}
    for kind in ast.parse(source).body:
        for field in kind.body if isinstance(kind, ast.ClassDef) else ():
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                lines = range(field.lineno, (field.end_lineno or field.lineno) + 1)
                found[kind.name, field.target.id] = " ".join(said[line] for line in lines if line in said)
    return found


# --- HTTP ---------------------------------------------------------------------------------------------------


def operations() -> str:
    """Every HTTP operation and type, from the OpenAPI document that the server gives."""
    described = document()
    parts = []
    for tag in described["tags"]:
        parts.append(f"## {tag['name'].capitalize()}\n")
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                if isinstance(operation, dict) and tag["name"] in operation.get("tags", ()):
                    parts.append(_operation(method.upper(), path, operation))
    parts.append("## Types\n")
    for name, schema in sorted(described["components"]["schemas"].items()):
        parts.append(_type(name, schema))
    return "\n".join(parts)


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    rows = [
        (
            f"`{one['name']}`",
            one["in"],
            _shape(one["schema"]) + (", required" if one.get("required") else ""),
            _cell(one.get("description", "")),
        )
        for one in operation.get("parameters", ())
        if "name" in one
    ]
    text = f"### `{method} {path}`\n\n{_cell(operation['summary'])} (`{operation['operationId']}`)\n\n"
    text += f"{_cell(operation['description'])}\n\n" if operation.get("description") else ""
    text += _table(("parameter", "in", "value", "meaning"), rows) + "\n"
    if body := operation.get("requestBody"):
        text += f"Body: {_content(body)}\n\n"
    for status, answer in operation["responses"].items():
        if status.startswith("2"):
            text += f"Answer {status}: {_content(answer) or _cell(answer.get('description', ''))}\n\n"
    return text


def _content(holder: Mapping[str, Any]) -> str:
    return "; ".join(
        f"`{kind}`" + (f", {_shape(one['schema'])}" if one.get("schema") else "")
        for kind, one in holder.get("content", {}).items()
    )


def _type(name: str, schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = [
        (
            f"`{field}`",
            _shape(one) + (", required" if field in needed else ""),
            _cell("" if isinstance(one, bool) else one.get("description", "")),
        )
        for field, one in schema.get("properties", {}).items()
    ]
    text = f"(type-{name.lower()})=\n### {name}\n\n{_cell(schema.get('description', ''))}\n\n"
    return text + (_table(("field", "value", "meaning"), rows) or f"{_shape(schema)}\n")


def _shape(schema: Mapping[str, Any] | bool) -> str:
    """What a value is, in words: its type or choices, and its bounds."""
    if isinstance(schema, bool):
        return "anything"
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return f"[{name}](#type-{name.lower()})" if "/schemas/" in reference else f"`{name}`"
    if several := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(_shape(one) for one in several))
    if choices := schema.get("enum"):
        return ", ".join(f"`{choice}`" for choice in choices)
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_shape(schema.get('items', {}))}"
    low, high = schema.get("minimum"), schema.get("maximum")
    bounds = f", {low:,} to {high:,}" if low is not None and high is not None else ""
    longest = f", up to {schema['maxLength']:,} characters" if "maxLength" in schema else ""
    return f"{' or '.join(kind) if isinstance(kind, list) else kind}{bounds}{longest}"


# --- tools --------------------------------------------------------------------------------------------------


def tools() -> str:
    """Every tool, resource and prompt that agents are offered over MCP."""
    parts = [f"What a client tells its model with the tools:\n\n> {INSTRUCTIONS}\n", "## Tools\n"]
    for one in tools_for(every=True):
        schema = input_schema(one)
        rows = [
            (
                f"`{name}`",
                _argument(field) + (", required" if name in schema.get("required", ()) else ""),
                _cell(field.get("description", "")),
            )
            for name, field in schema.get("properties", {}).items()
        ]
        traits = [
            *(["offered with `--tools all` only"] if not one.tool.default else []),
            *(["reads only"] if one.read_only else ["destructive" if one.tool.destructive else "writes"]),
        ]
        parts.append(
            f"### `{one.name}`\n\n{_cell(one.tool.description)} ({'; '.join(traits)})\n\n"
            + _table(("argument", "value", "meaning"), rows)
        )
    parts.append("## Resources\n")
    parts.append(
        _table(
            ("address", "what it is"),
            [
                (f"`{uri}`", _cell(about or ""))
                for uri, about in (
                    *((one.uri, one.description) for one in FIXED),
                    *((one.uri_template, one.description) for one in TEMPLATES),
                )
            ],
        )
    )
    parts.append("## Prompts\n")
    parts.append(
        _table(
            ("prompt", "argument", "what it is for"),
            [
                (
                    f"`{one.name}`",
                    ", ".join(f"`{argument.name}`" for argument in one.arguments or ()),
                    _cell(one.description or ""),
                )
                for one, _ in PROMPTS
            ],
        )
    )
    return "\n".join(parts)


def _argument(schema: Mapping[str, Any]) -> str:
    """The value of an argument; its types stand in its own schema, so they have no link."""
    return re.sub(r"\[(\w+)\]\(#type-\w+\)", r"`\1`", _shape(schema)).replace("null", "nothing")


# --- programs and gauges ------------------------------------------------------------------------------------


def functions() -> str:
    """Every function that programs may call, as ``help`` prints it there."""
    return "\n".join(
        f"## `{page.name}`\n\n```text\n{page.signature}\n```\n\n*{_cell(page.gives)}*\n\n{_cell(page.details)}\n\n"
        f"```text\n{page.example}\n```\n"
        for page in PAGES.values()
    )


def figures() -> str:
    """Every figure that a gauge can show, then the keys of a slider."""
    shown = [(f"`{{{{{key}}}}}`", _cell(meaning)) for key, meaning in KEYS.items()]
    keys = [(f"`{key}`", _cell(meaning)) for key, meaning in SLIDER_KEYS.items()]
    return (
        _table(("in a template", "value"), shown)
        + "\nEach item of `sliders`:\n\n"
        + _table(("key", "value"), keys)
    )


MADE: Mapping[str, Callable[[], str]] = {
    "commands": commands,
    "python": python,
    "settings": settings,
    "operations": operations,
    "tools": tools,
    "functions": functions,
    "figures": figures,
}
