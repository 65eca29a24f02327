"""Find, parse, edit and write YAML front matter without changing other text.

A memory begins with a line ``---``, YAML, and another ``---``, followed by its body. Files of several memories contain
one such block after another.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rlm_mem.errors import InvalidMemory
from rlm_mem.merging import without_marks
from rlm_mem.text import yaml

if TYPE_CHECKING:
    from ruamel.yaml import YAML

_MAX_CHARS = 200_000
_MAX_NODES = 20_000
_FENCE = re.compile(r"---[ \t]*\r?\n?\Z")
_OPENS = re.compile(
    r"(?:memory_frequency|volatility|update_trigger|retention_policy|confidence_score)[ \t]*:"
)


def split_one(text: str) -> tuple[str, str, str] | None:
    """Split a file of one memory into ``(before, YAML, body)``; None if it has no front matter.

    ``before`` is the opening fence with any byte order mark; ``body`` begins with the closing fence. Concatenated, the
    three parts are the file.
    """
    lines = text.splitlines(keepends=True)
    if not lines or not _FENCE.match(lines[0].removeprefix("\ufeff")):
        return None
    for number in range(1, len(lines)):
        if _FENCE.match(lines[number]):
            return lines[0], "".join(lines[1:number]), "".join(lines[number:])
    return None


def split_blocks(text: str) -> list[str]:
    """The memories of a file, each up to the next; without the text before the first, they are the whole file."""
    lines = text.splitlines(keepends=True)
    fences = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    starts: list[int] = []
    at = 0
    while at + 1 < len(fences):
        first, last = fences[at], fences[at + 1]
        if any(_OPENS.match(line) for line in lines[first + 1 : last]):
            starts.append(first)
            at += 2
        else:
            at += 1
    return ["".join(lines[first:end]) for first, end in itertools.pairwise([*starts, len(lines)])]


def guarded(body: str) -> str:
    """Indent lines of a body that look like a fence or a merge conflict marker by a space, which Markdown ignores."""
    lines = without_marks(body).splitlines(keepends=True)
    return "".join(" " + line if _FENCE.match(line) else line for line in lines)


# --- reading -------------------------------------------------------------------------------------------------------


def parse_yaml(header: str, where: str) -> dict[str, Any]:
    """Parse front matter into plain data; raises InvalidMemory naming the file."""
    if len(header) > _MAX_CHARS:
        raise InvalidMemory(f"{where}: the front matter is longer than {_MAX_CHARS:,} characters")
    quick = yaml.quick_fields(header)
    if quick is not None:
        return quick
    with _named(where):
        return yaml.plain_fields(yaml.load(_yaml(header), header, first_line=2), _MAX_NODES)


def _yaml(header: str) -> YAML:
    made = yaml.round_trip()
    made.preserve_quotes = True
    made.width = 1_000_000
    made.allow_unicode = True
    if re.search(r"^ +- ", header, re.MULTILINE):
        made.indent(mapping=2, sequence=4, offset=2)
    return made


@contextmanager
def _named(where: str) -> Iterator[None]:
    """Name the file in errors of its YAML."""
    try:
        yield
    except yaml.BadYaml as error:
        raise InvalidMemory(f"{where}: the front matter {error}") from None


# --- writing -------------------------------------------------------------------------------------------------------


def render(data: Mapping[str, Any], order: Iterable[str] = ()) -> str:
    """Write new front matter, one field per line; empty fields are omitted."""
    first = [name for name in order if name in data]
    names = [*first, *(name for name in data if name not in first)]
    return "".join(
        f"{name}: {_scalar(data[name])}\n" for name in names if data[name] not in (None, {}, [], "")
    )


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        digits = f"{value:.6f}".rstrip("0")
        return digits + "0" if digits.endswith(".") else digits
    if isinstance(value, str) and yaml.PLAIN_WORD.match(value):
        return value
    # JSON is YAML, but characters that YAML reads as line breaks need an escape.
    text = json.dumps(value, ensure_ascii=False)
    return "".join(
        char if char.isprintable() and char not in "\u0085\u2028\u2029" else _escape(char) for char in text
    )


def _escape(char: str) -> str:
    # JSON has no \U escape; the YAML library reads lines that contain it.
    code = ord(char)
    return f"\\U{code:08x}" if code > 0xFFFF else f"\\u{code:04x}"


def edited(header: str, changes: Mapping[str, Any], where: str) -> str:
    """Front matter with some fields changed (None removes a field); order, comments and other fields are preserved.

    Raises:
        InvalidMemory: the front matter is not valid YAML.
    """
    crlf = "\r\n" in header
    editor = _yaml(header)
    with _named(where):
        loaded = yaml.load(editor, header.replace("\r\n", "\n"), first_line=2)
    if loaded is None:
        return render(changes)
    if not isinstance(loaded, MutableMapping):
        raise InvalidMemory(f"{where}: the front matter is not a table of fields")
    for name, value in changes.items():
        if value is None:
            loaded.pop(name, None)
        elif _differs(loaded.get(name), value):
            loaded[name] = _flow(value, top=True)
    with _named(where):
        text = yaml.written(editor, loaded)
    return text.replace("\n", "\r\n") if crlf else text


def _differs(former: Any, value: Any) -> bool:
    return type(former) is bool or type(value) is bool or former != value


def _flow(value: Any, *, top: bool = False) -> Any:
    """Convert a value to the one-line form that ``render`` writes."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString

    if isinstance(value, Mapping):
        table = CommentedMap({DoubleQuotedScalarString(key): _flow(item) for key, item in value.items()})
        table.fa.set_flow_style()
        return table
    if isinstance(value, list | tuple):
        sequence = CommentedSeq([_flow(item) for item in value])
        sequence.fa.set_flow_style()
        return sequence
    if isinstance(value, str) and not (top and yaml.PLAIN_WORD.match(value)):
        return DoubleQuotedScalarString(value)
    return round(value, 6) if isinstance(value, float) else value
