"""Gauges: Markdown templates, filled with figures and drawn as an aligned box (docs/spec/persona.md, Gauges)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm_mem.errors import InvalidConfig
from rlm_mem.persona.boxes import BoxLine, BoxRule, Part, cut, draw, fixed_width, left, right, width_of
from rlm_mem.persona.documents import flat, parse_document

_PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
_BLOCK = re.compile(r"\{\{ ?([#/]) ?(\w+)(?: ([\w.]+))?(?: (columns))? ?\}\}$")
_PATH = re.compile(r"\w+(?:\.\w+)*$")
_RULE = re.compile(r"-{3,}\s*(.*)$")
_FILL = "\x00"  # placeholder of {{fill}} in a filled line; no figure can contain it
_WITH_NUMBER = ("bar", "left", "right", "cut")
_FILTERS = (*_WITH_NUMBER, "count", "moment", "money", "join")
_GAP = 3
"""Number of cells between columns."""
_MAX_DEPTH = 16
"""Maximum nesting of blocks."""
_MAX_NODES = 20_000
"""Maximum number of lines and blocks that are filled, since nested lists multiply them."""
_MAX_CHARS = 500_000
"""Maximum number of characters of all figures, since a line may repeat them."""


@dataclass(frozen=True)
class _Line:
    number: int
    text: str


@dataclass(frozen=True)
class _Block:
    number: int
    kind: str
    path: str
    columns: bool
    body: tuple[_Line | _Block, ...]


@dataclass(frozen=True)
class Gauge:
    """A parsed gauge file.

    Attributes:
        name: name in upper case, the title of the box.
        description: the file's prose.
        body: lines and blocks.
        where: the file, for messages.
    """

    name: str
    description: str
    body: tuple[_Line | _Block, ...]
    where: str = ""


def parse_gauge(text: str, name: str, where: str = "") -> Gauge:
    """Parse a gauge file: Markdown with the template in a fenced block named ``gauge`` (or in its only block).

    Raises:
        InvalidConfig: the block is missing or its template is malformed; the message names the line.
    """
    where = where or name
    document = parse_document(text)
    named = [fence for fence in document.fences if fence[0] in ("gauge", "hud")]
    blocks = named or (document.fences if len(document.fences) == 1 else [])
    if not blocks:
        raise InvalidConfig(
            f"{where} contains no template",
            hint="put it into a block that begins with ```gauge and ends with ```",
        )
    _, opening, lines = blocks[0]
    body = _body(enumerate(lines, opening + 1), where, None)
    about = document.section("description")
    return Gauge(name.upper(), about.text if about else document.intro, body, where)


def _body(
    lines: Iterator[tuple[int, str]], where: str, within: tuple[int, str] | None, depth: int = 0
) -> tuple[_Line | _Block, ...]:
    """Parse nodes up to the end of the lines or, within a block (its line and kind), to its end."""
    result: list[_Line | _Block] = []
    for number, text in lines:
        match = _BLOCK.match(flat(text))
        if match is None:
            _check_placeholders(text, f"{where} line {number}")
            result.append(_Line(number, text.rstrip()))
            continue
        sign, kind, path, columns = match.groups()
        if kind not in ("each", "if"):
            raise InvalidConfig(f"{where} line {number}: there is no block {kind!r}", hint="blocks: each, if")
        if sign == "/":
            if within is None or within[1] != kind:
                raise InvalidConfig(f"{where} line {number}: {{{{/{kind}}}}} does not close a block")
            return tuple(result)
        if not path or not _PATH.match(path):
            raise InvalidConfig(f"{where} line {number}: {{{{#{kind}}}}} names no figure")
        if depth == _MAX_DEPTH:
            raise InvalidConfig(f"{where} line {number}: more than {_MAX_DEPTH} blocks within each other")
        inner = _body(lines, where, (number, kind), depth + 1)
        result.append(_Block(number, kind, path, bool(columns), inner))
    if within is not None:
        raise InvalidConfig(f"{where} line {within[0]}: {{{{#{within[1]}}}}} is never closed")
    return tuple(result)


def _check_placeholders(text: str, where: str) -> None:
    for inside in _PLACEHOLDER.findall(text):
        path, *filters = [part.strip() for part in inside.split("|")]
        if not _PATH.match(path):
            raise InvalidConfig(f"{where}: {{{{{inside}}}}} names no figure", hint="write {{store.chunks}}")
        for filter_text in filters:
            name, *numbers = filter_text.split()
            expected_count = 1 if name in _WITH_NUMBER else 0
            if name not in _FILTERS:
                raise InvalidConfig(
                    f"{where}: there is no filter {name!r:.40}", hint=f"filters: {', '.join(_FILTERS)}"
                )
            if len(numbers) != expected_count or any(
                not one.isdecimal() or int(one) > 500 for one in numbers
            ):
                raise InvalidConfig(
                    f"{where}: the filter {name} takes {expected_count or 'no'} number, up to 500"
                )


def render_gauge(
    gauge: Gauge, figures: Mapping[str, Any], width: int = 80, *, ascii_only: bool = False
) -> str:
    """Fill and draw a gauge.

    Args:
        figures: values of the placeholders (see ``rlm_mem.persona.figures``).
        width: width of the box in cells including the frame, at least 24.
        ascii_only: draw frame and bars in ASCII, for terminals with double-width box characters.

    Returns:
        Lines of exactly ``width`` cells, without a trailing newline.

    Raises:
        InvalidConfig: the template names an unknown figure, or repeats lists too often.
    """
    filling = _Filling(gauge.where or gauge.name, max(width, 24) - 4, "#." if ascii_only else "█░")
    parts = filling.nodes(gauge.body, [figures])
    return "\n".join(draw(parts, gauge.name, width, ascii_only=ascii_only))


@dataclass
class _Filling:
    """Fills a template.

    Attributes:
        where: the file, for messages.
        inner: cells between the frame's sides.
        ink: the characters of a bar, full and empty.
        left: number of lines and blocks that may still be filled; ``room``: of characters.
    """

    where: str
    inner: int
    ink: str
    left: int = _MAX_NODES
    room: int = _MAX_CHARS

    def nodes(self, nodes: Sequence[_Line | _Block], scopes: list[Mapping[str, Any]]) -> list[Part]:
        result: list[Part] = []
        for node in nodes:
            self.left -= 1
            if self.left < 0:
                raise InvalidConfig(f"{self.where} line {node.number}: the blocks repeat too many lines")
            result += self._line(node, scopes) if isinstance(node, _Line) else self._block(node, scopes)
        return result

    def _line(self, line: _Line, scopes: list[Mapping[str, Any]]) -> list[Part]:
        rule = _RULE.match(line.text)
        if rule:
            return [BoxRule(self._filled(rule[1], line.number, scopes).replace(_FILL, " "))]
        before, _, after = self._filled(line.text, line.number, scopes).partition(_FILL)
        return [BoxLine(before, after.replace(_FILL, " "))]

    def _block(self, block: _Block, scopes: list[Mapping[str, Any]]) -> list[Part]:
        value = self._figure(block.path, block.number, scopes)
        if block.kind == "if":
            return self.nodes(block.body, scopes) if value else []
        if not isinstance(value, list | tuple):
            raise InvalidConfig(f"{self.where} line {block.number}: {block.path} is not a list")
        items = [
            self.nodes(block.body, [*scopes, item if isinstance(item, Mapping) else {"item": item}])
            for item in value
        ]
        if block.columns and all(len(parts) == 1 and isinstance(parts[0], BoxLine) for parts in items):
            return list(
                self._columns([part for parts in items for part in parts if isinstance(part, BoxLine)])
            )
        return [part for parts in items for part in parts]

    def _columns(self, rows: list[BoxLine]) -> list[BoxLine]:
        """The rows side by side, as many as fit, read downwards."""
        texts = [" ".join(part for part in (row.text, row.end) if part).rstrip() for row in rows]
        if not texts:
            return []
        widest = max(width_of(text) for text in texts)
        across = max(1, (self.inner + _GAP) // (widest + _GAP))
        if across == 1:
            return rows
        down = -(-len(texts) // across)
        return [
            BoxLine((" " * _GAP).join(left(text, widest) for text in texts[at::down]).rstrip())
            for at in range(down)
        ]

    def _filled(self, text: str, number: int, scopes: list[Mapping[str, Any]]) -> str:
        # Every second part was between braces. Text of the template is untrusted too.
        return "".join(
            self._placeholder(part, number, scopes) if at % 2 else _template(part)
            for at, part in enumerate(_PLACEHOLDER.split(text))
        )

    def _placeholder(self, inside: str, number: int, scopes: list[Mapping[str, Any]]) -> str:
        path, *filters = [part.strip() for part in inside.split("|")]
        if path == "fill":
            return _FILL
        found = self._figure(path, number, scopes)
        for filter_text in filters:
            found = self._filter(found, *filter_text.split())
        text = found if isinstance(found, _Shaped) else _format_value(found)
        self.room -= len(text)
        if self.room < 0:
            raise InvalidConfig(f"{self.where} line {number}: the figures are longer than a box may be")
        return text

    def _figure(self, path: str, number: int, scopes: list[Mapping[str, Any]]) -> Any:
        first, *rest = path.split(".")
        scope = next((one for one in reversed(scopes) if first in one), None)
        value: Any = scope[first] if scope is not None else None
        known = scope is not None
        for name in rest:
            known = known and isinstance(value, Mapping) and name in value
            value = value[name] if known else None
        if not known:
            raise InvalidConfig(
                f"{self.where} line {number}: there is no figure {path!r:.60}",
                hint="rlm-mem persona hud --json shows all of them",
            )
        return value

    def _filter(self, value: Any, name: str, number: str = "0") -> Any:
        size = int(number)
        if name == "bar":
            share = min(100.0, max(0.0, float(value))) if isinstance(value, int | float) else 0.0
            full = round(size * share / 100)
            return _Shaped(self.ink[0] * full + self.ink[1] * (size - full))
        if name == "count":
            return f"{value:,}" if isinstance(value, int | float) else value
        if name == "money":
            if not isinstance(value, int | float):
                return "unpriced" if value is None else value
            return f"${value:,.2f}" if value >= 0.01 or not value else f"${value:.4f}"
        if name == "moment":
            return str(value)[:16].replace("T", " ") if value else value
        if name == "join":
            return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
        text = _format_value(value)
        return _Shaped({"left": left, "right": right, "cut": cut}[name](text, size))


class _Shaped(str):
    """Text whose spaces are kept."""

    __slots__ = ()


def _template(text: str) -> str:
    """Text of the template with its spaces kept and every character of a fixed width."""
    return "".join(
        fixed_width(part) if part.strip() else " " * len(part) for part in re.split(r"(\s+)", text)
    )


def _format_value(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_format_value(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_format_value(item) for item in value)
    return fixed_width(str(value))
