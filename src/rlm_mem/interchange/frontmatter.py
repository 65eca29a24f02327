"""YAML front matter of Markdown files: written one field a line as JSON (which is YAML), read in any form."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from rlm_mem.errors import InvalidChunk
from rlm_mem.text import yaml

_MAX_CHARS = 4_000_000
_MAX_NODES = 200_000

_FIELD = re.compile(r"([A-Za-z_][\w-]*):(?: (.*))?\Z", re.DOTALL)
_LIST_ITEM = re.compile(r"  - (.*)\Z", re.DOTALL)
# Words that every YAML reader parses as text.
_PLAIN = re.compile(
    r"(?!(?:true|false|null|yes|no|on|off|y|n)\Z)[A-Za-z][A-Za-z0-9_-]*(?:/[A-Za-z0-9_-]+)*\Z", re.IGNORECASE
)
# Characters that JSON leaves as they are, but YAML reads as line breaks or refuses.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def split_frontmatter(text: str) -> tuple[str | None, str]:
    """The front matter without its fences, and the body after it; None where there is none.

    The body is verbatim, whatever it contains: only the first closing fence counts.
    """
    start = 1 if text.startswith("\ufeff") else 0
    for fence in ("---\n", "---\r\n"):
        if text.startswith(fence, start):
            first = start + len(fence)
            break
    else:
        return None, text
    if text.startswith("---", first) and (text[first + 3 : first + 4] in ("", "\n", "\r")):
        close = first
    else:
        found = re.compile(r"\n(?=---[ \t]*(?:\r?\n|\Z))").search(text, first - 1)
        if found is None:
            return None, text
        close = found.end()
    end = text.find("\n", close)
    return text[first:close], "" if end < 0 else text[end + 1 :]


def frontmatter_line(name: str, value: Any) -> str:
    """One field. Lists of texts and of objects take one line for each item."""
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        return f"{name}:\n" + "".join(f"  - {_scalar(item)}\n" for item in value)
    return f"{name}: {_scalar(value)}\n"


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.match(value):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidChunk(f"frontmatter cannot contain {value}")
    if isinstance(value, list) and all(isinstance(item, str) and _PLAIN.match(item) for item in value):
        return f"[{', '.join(value)}]"
    made = json.dumps(value, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", made)


# --- reading ---------------------------------------------------------------------------------------


def read_frontmatter(header: str) -> dict[str, Any]:
    """The fields as plain data (times as ISO text); raises InvalidChunk with the reason and line."""
    if len(header) > _MAX_CHARS:
        raise InvalidChunk(f"the front matter is longer than {_MAX_CHARS:,} characters")
    quick = _quick(header)
    if quick is not None:
        return quick
    try:
        loaded = yaml.load(yaml.plain_reader(), header, first_line=2)
        return {} if loaded is None else yaml.plain_fields(loaded, _MAX_NODES)
    except yaml.BadYaml as error:
        raise InvalidChunk(f"the frontmatter {error}") from None


def _quick(header: str) -> dict[str, Any] | None:
    """Read the lines that this package writes; None if a line has another form.

    The YAML library needs milliseconds where this needs microseconds, and stores have many thousand files.
    """
    found: dict[str, Any] = {}
    into: list[Any] | None = None
    for line in header.split("\n"):
        if not line:
            continue
        item = _LIST_ITEM.match(line)
        try:
            if item and into is not None:
                into.append(_quick_value(item[1]))
                continue
            named = _FIELD.match(line)
            if named is None or named[1] in found:
                return None
            if named[2] is None:
                into = found[named[1]] = []
            else:
                into = None
                found[named[1]] = _quick_value(named[2])
        except (ValueError, RecursionError):
            return None
    return (
        None if any(value == [] and f"{name}: []" not in header for name, value in found.items()) else found
    )


def _quick_value(text: str) -> Any:
    if _PLAIN.match(text):
        return text
    if text[:1] == "[" and text[-1:] == "]" and '"' not in text and "{" not in text:
        words = text[1:-1].split(", ") if len(text) > 2 else []
        if all(_PLAIN.match(word) for word in words):
            return words
    return json.loads(text, parse_constant=_refuse)


def _refuse(name: str) -> Any:
    raise ValueError(name)
