"""JSON with comments and trailing commas, as in settings of editors: reading it, and changing one entry of an object.

Everything else of the text stays as it is: comments, order, indentation.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # public in use, missing from the type stubs
from typing import Any

__all__ = ["read_commented", "with_entry"]

_NEXT = re.compile(r'"|//|/\*')
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"|,(?=\s*+[}\]])', re.DOTALL)
_SPACE = re.compile(r"\s*+")
_COMMENT = re.compile(r"[^\n]")
_DECODER = json.JSONDecoder()
_TOO_DEEP = "it is nested too deeply"


def read_commented(text: str) -> Any:
    """The value of the text.

    Raises:
        ValueError: it is not JSON, even without comments and trailing commas, or nested too deeply.
    """
    plain = _without_trailing_commas(_without_comments(text))
    try:
        return json.loads(plain)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def with_entry(text: str, table: str, name: str, entry: dict[str, Any] | None) -> str:
    """The text with the entry in one of its objects, or (None) without it; the object comes and goes with it.

    Args:
        text: an object; ``table`` is an object in it or missing.

    Raises:
        ValueError: the text is not an object with an object of that name.
    """
    plain = _without_comments(text)
    whole = _members(plain, _SPACE.match(plain).end())  # type: ignore[union-attr]  # matches anything
    unit = _indent_of(plain, whole) or "  "
    holder = next((member for member in whole.members if member.key == table), None)
    if holder is None:
        if entry is None:
            return text
        value = json.dumps({name: entry}, ensure_ascii=False, indent=unit)
        return _inserted(text, plain, whole, table, value, unit)
    inner = _members(plain, holder.value)
    ours = next((member for member in inner.members if member.key == name), None)
    if entry is None:
        if ours is None:
            return text
        alone = len(inner.members) == 1 and not text[inner.start + 1 : ours.start].strip()
        if alone and not text[ours.end : inner.end].strip(" \t\r\n,"):
            return _removed(text, plain, whole, holder)
        return _removed(text, plain, inner, ours)
    within = _indent_of(plain, inner) or 2 * unit
    value = json.dumps(entry, ensure_ascii=False, indent=unit)
    if ours is not None:
        return text[: ours.value] + value.replace("\n", "\n" + within) + text[ours.end :]
    return _inserted(text, plain, inner, name, value, within)


@dataclass(frozen=True)
class _Member:
    """A key with its value: where the key begins, where the value begins, and where it ends."""

    key: str
    start: int
    value: int
    end: int


@dataclass(frozen=True)
class _Object:
    """An object: where its brace opens, where it closes, and its members."""

    start: int
    end: int
    members: list[_Member]


def _without_comments(text: str) -> str:
    """The text with a space for each character of a comment."""
    parts: list[str] = []
    position = 0
    while found := _NEXT.search(text, position):
        parts.append(text[position : found.start()])
        if found[0] == '"':
            _, position = scanstring(text, found.end())
            parts.append(text[found.start() : position])
            continue
        end = text.find("\n", found.end()) if found[0] == "//" else text.find("*/", found.end())
        if end < 0 and found[0] == "/*":
            raise ValueError("a comment that is not closed")
        position = len(text) if end < 0 else end + (2 if found[0] == "/*" else 0)
        parts.append(_COMMENT.sub(" ", text[found.start() : position]))
    return "".join(parts) + text[position:]


def _without_trailing_commas(plain: str) -> str:
    return _STRING_OR_COMMA.sub(lambda found: " " if found[0] == "," else found[0], plain)


def _members(plain: str, start: int) -> _Object:
    """The members of the object that begins here in a text without comments."""
    if plain[start : start + 1] != "{":
        raise ValueError("an object was expected")
    plain = _without_trailing_commas(plain)
    members: list[_Member] = []
    position = start + 1
    while True:
        position = _after_space(plain, position)
        mark = plain[position : position + 1]
        if mark == "}":
            return _Object(start, position, members)
        if mark == "," and members:
            position = _after_space(plain, position + 1)
        if plain[position : position + 1] != '"':
            raise ValueError("a key was expected")
        key, end = scanstring(plain, position + 1)
        colon = _after_space(plain, end)
        if plain[colon : colon + 1] != ":":
            raise ValueError("a colon was expected")
        value = _after_space(plain, colon + 1)
        try:
            _, end = _DECODER.raw_decode(plain, value)
        except RecursionError:
            raise ValueError(_TOO_DEEP) from None
        members.append(_Member(key, position, value, end))
        position = end


def _after_space(plain: str, position: int) -> int:
    found = _SPACE.match(plain, position)
    return found.end() if found else position


def _indent_of(plain: str, within: _Object) -> str:
    """The space before the first member where it begins a line."""
    if not within.members:
        return ""
    first = within.members[0].start
    line = plain[plain.rfind("\n", 0, first) + 1 : first]
    return line if not line.strip() and "\n" in plain[within.start : first] else ""


def _inserted(text: str, plain: str, within: _Object, key: str, value: str, indent: str) -> str:
    """A new first member; what stands behind the opening brace on its line stays there."""
    member = f"{json.dumps(key, ensure_ascii=False)}: {value}".replace("\n", "\n" + indent)
    after = within.start + 1
    line = text.find("\n", after)
    if line >= 0 and not plain[after:line].strip() and line < within.end:
        after = line
    comma = "," if within.members else ""
    # An object on one line closes on a line of its own from now on, one step further out.
    outer = text[text.rfind("\n", 0, within.start) + 1 :]
    closing = (
        "" if "\n" in text[after : within.end] else "\n" + outer[: len(outer) - len(outer.lstrip(" \t"))]
    )
    return f"{text[:after]}\n{indent}{member}{comma}{closing}{text[after:]}"


def _removed(text: str, plain: str, within: _Object, member: _Member) -> str:
    """The text without a member, its comma and, where it stood alone on its lines, these lines."""
    end = _after_space(plain, member.end)
    has_comma = plain[end : end + 1] == ","
    end = end + 1 if has_comma else member.end
    start = member.start
    line = text.rfind("\n", 0, start)
    rest = text.find("\n", end)
    # The end of a line may be the end of a comment: it goes only where another one stands behind the member.
    if line > within.start and not text[line:start].strip() and rest >= 0 and not text[end:rest].strip():
        start = line
    before = [one for one in within.members if one.end <= member.start]
    if before and not has_comma:  # the last one: the comma before it goes, too
        comma = plain.find(",", before[-1].end, member.start)
        return text[:comma] + text[comma + 1 : start] + text[end:]
    return text[:start] + text[end:]
