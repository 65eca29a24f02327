"""YAML front matter of Markdown files: written with one field per line as JSON (which is YAML), read in any form."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from rlm_mem.errors import InvalidChunk
from rlm_mem.text import yaml

_MAX_CHARS = 4_000_000
_MAX_NODES = 200_000

# Words that every YAML reader parses as text.
_PLAIN = re.compile(
    r"(?!(?:true|false|null|yes|no|on|off|y|n)\Z)[A-Za-z][A-Za-z0-9_-]*(?:/[A-Za-z0-9_-]+)*\Z", re.IGNORECASE
)
# Characters that JSON leaves unescaped, but YAML reads as line breaks or refuses.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def split_frontmatter(text: str) -> tuple[str | None, str]:
    """Return the front matter without its fences, and the body after it; None if there is none.

    The body is verbatim: only the first closing fence counts.
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
    """Format one field. Lists of texts and of objects take one line per item."""
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
    """Return the fields as plain data (times as ISO text); raises InvalidChunk with the reason and line."""
    if len(header) > _MAX_CHARS:
        raise InvalidChunk(f"the front matter is longer than {_MAX_CHARS:,} characters")
    quick = yaml.quick_fields(header)
    if quick is not None:
        return quick
    try:
        loaded = yaml.load(yaml.plain_reader(), header, first_line=2)
        return {} if loaded is None else yaml.plain_fields(loaded, _MAX_NODES)
    except yaml.BadYaml as error:
        raise InvalidChunk(f"the front matter {error}") from None
