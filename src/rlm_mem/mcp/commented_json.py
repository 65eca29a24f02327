"""JSON with comments and trailing commas, as in the settings of editors: parsing it, and editing it in place.

Edits keep comments, order and indentation.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]  # public in use, missing from the type stubs
from typing import Any

_NEXT = re.compile(r'"|//|/\*')
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+"|,(?=\s*+[}\]])', re.DOTALL)
_SPACE = re.compile(r"\s*+")
_TOO_DEEP = "it is nested too deeply"


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def read_commented(text: str) -> Any:
    """Return the value of the text.

    Raises:
        ValueError: it is not JSON even after comments and trailing commas are removed, or is nested too deeply.
    """
    try:
        return _DECODER.decode(_without_trailing_commas(_without_comments(text)))
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def is_empty(text: str) -> bool:
    """Return whether the text is an empty object without a comment."""
    return re.sub(r"\s", "", text) in ("", "{}")


def rewritten(text: str, wanted: Any) -> str:
    """Return the text, edited so that its value is ``wanted``.

    Args:
        wanted: the value of the result, which should differ in few places.

    Raises:
        ValueError: the text is not JSON with comments, or nested too deeply.
    """
    crlf = text.count("\r\n") == text.count("\n") > 0
    text = text.replace("\r\n", "\n") if crlf else text
    while (changed := _with_one_change(text, wanted)) is not None:
        text = changed
    return text.replace("\n", "\r\n") if crlf else text


def without_empty(text: str, *path: str) -> str:
    """Return the text without the member at the path, if that is an empty object or list without a comment.

    Args:
        path: the keys of the member; each but the last must name an object.

    Raises:
        ValueError: there is no such member.
    """
    plain = _without_comments(text)
    within = _parse_container(plain, _after_space(plain, 0))
    for key in path[:-1]:
        within = _parse_container(plain, within.by_key()[key].value)
    member = within.by_key()[path[-1]]
    if text[member.value + 1 : member.end - 1].strip():
        return text
    return _remove_member(text, plain, within, member)


def _with_one_change(text: str, wanted: Any) -> str | None:
    """Return the text with one difference from ``wanted`` removed; None if there is none."""
    plain = _without_comments(text)
    position, unit = _after_space(plain, 0), "  "
    if plain[position : position + 1] == "{":
        unit = _indent_of(plain, _parse_container(plain, position)) or unit
    bare = _without_trailing_commas(plain)
    while True:
        value, end = _parse_value(bare, position)
        if value == wanted:
            return None
        if isinstance(value, dict) and isinstance(wanted, dict):
            within = _parse_container(plain, position)
            present = within.by_key()
            for member in within.members:
                if member.key not in wanted:
                    return _remove_member(text, plain, within, member)
            for key in reversed(wanted):
                if key not in present:
                    return _inserted(text, plain, within, wanted[key], unit, 0, key)
            position, wanted = next(
                (present[key].value, wanted[key]) for key in wanted if value[key] != wanted[key]
            )
        elif isinstance(value, list) and isinstance(wanted, list):
            within = _parse_container(plain, position)
            shorter = min(len(value), len(wanted))
            same = next((at for at in range(shorter) if value[at] != wanted[at]), shorter)
            rest = shorter - same
            tail = next((at for at in range(rest) if value[-1 - at] != wanted[-1 - at]), rest)
            if len(value) > same + tail and len(wanted) > same + tail:
                position, wanted = within.members[same].value, wanted[same]
            elif len(value) > len(wanted):
                return _remove_member(text, plain, within, within.members[same])
            else:
                return _inserted(text, plain, within, wanted[same], unit, same)
        else:
            outer = _indent_at(text, position)
            return text[:position] + _written(wanted, unit).replace("\n", "\n" + outer) + text[end:]


@dataclass(frozen=True)
class _Member:
    """A member of an object, or an element of a list (its key is empty).

    Attributes:
        start: position of the key; in a list, of the value.
    """

    key: str
    start: int
    value: int
    end: int


@dataclass(frozen=True)
class _Container:
    """An object or a list: the positions of its brackets, and its members."""

    start: int
    end: int
    members: list[_Member]

    def is_on_one_line(self, text: str) -> bool:
        """Return whether both brackets are on the same line."""
        return "\n" not in text[self.start : self.end]

    def by_key(self) -> dict[str, _Member]:
        """Return the members by key; of a repeated key the last one, as parsers do."""
        return {member.key: member for member in self.members}


def _without_comments(text: str) -> str:
    """Replace each character of a comment by a space, including line ends within it."""
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
            raise ValueError("a comment is not closed")
        position = len(text) if end < 0 else end + (2 if found[0] == "/*" else 0)
        parts.append(" " * (position - found.start()))
    return "".join(parts) + text[position:]


def _without_trailing_commas(plain: str) -> str:
    return _STRING_OR_COMMA.sub(lambda found: " " if found[0] == "," else found[0], plain)


def _parse_container(plain: str, start: int) -> _Container:
    """Parse the object or list at this position of a text without comments."""
    closing = {"{": "}", "[": "]"}.get(plain[start : start + 1])
    if closing is None:
        raise ValueError("an object was expected")
    plain = _without_trailing_commas(plain)
    members: list[_Member] = []
    position = start + 1
    while True:
        position = _after_space(plain, position)
        mark = plain[position : position + 1]
        if mark == closing:
            return _Container(start, position, members)
        if mark == "," and members:
            position = _after_space(plain, position + 1)
        key, value = "", position
        if closing == "}":
            if plain[position : position + 1] != '"':
                raise ValueError("a key was expected")
            key, end = scanstring(plain, position + 1)
            colon = _after_space(plain, end)
            if plain[colon : colon + 1] != ":":
                raise ValueError("a colon was expected")
            value = _after_space(plain, colon + 1)
        _, end = _parse_value(plain, value)
        members.append(_Member(key, position, value, end))
        position = end


def _parse_value(plain: str, position: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(plain, position)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None


def _written(value: Any, unit: str | None, key: str | None = None) -> str:
    """Return a value, or a member of an object, as JSON: indented, or (unit None) on one line."""
    written = json.dumps(value, ensure_ascii=False, indent=unit)
    return written if key is None else f"{json.dumps(key, ensure_ascii=False)}: {written}"


def _after_space(plain: str, position: int) -> int:
    found = _SPACE.match(plain, position)
    return found.end() if found else position


def _indent_of(plain: str, within: _Container) -> str:
    """Return the white space before the first member, if that begins a line; else an empty text."""
    if not within.members:
        return ""
    first = within.members[0].start
    line = plain[plain.rfind("\n", 0, first) + 1 : first]
    return line if not line.strip() and "\n" in plain[within.start : first] else ""


def _indent_at(text: str, position: int) -> str:
    """Return the indentation of the line with this position."""
    line = text[text.rfind("\n", 0, position) + 1 :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _inserted(
    text: str, plain: str, within: _Container, value: Any, unit: str, index: int, key: str | None = None
) -> str:
    """Insert a new member on its own lines; the rest of the line before it, such as a comment, is kept there.

    If the members are on one line with both brackets, so is the new one.
    """
    if within.members and within.is_on_one_line(text):
        written = _written(value, None, key)
        if index < len(within.members):
            at = within.members[index].start
            return f"{text[:at]}{written}, {text[at:]}"
        at = within.members[-1].end
        return f"{text[:at]}, {written}{text[at:]}"
    written = _written(value, unit, key)
    outer = _indent_at(text, within.start)
    indent = _indent_of(plain, within) or outer + unit
    written = written.replace("\n", "\n" + indent)
    after = within.start + 1 if index == 0 else within.members[index - 1].end
    before, separator = text[:after], _after_space(plain, after)
    if index > 0 and plain[separator : separator + 1] == ",":
        before, after = text[: separator + 1], separator + 1
    elif index > 0:
        before += ","
    line = plain.find("\n", after)
    if line >= 0 and not plain[after:line].strip() and line < within.end:
        before, after = before + text[after:line], line
    comma = "," if index < len(within.members) else ""
    # The closing bracket of an object that was on one line gets its own line, indented one step less.
    closing = "" if "\n" in text[after : within.end] else "\n" + outer
    return f"{before}\n{indent}{written}{comma}{closing}{text[after:]}"


def _remove_member(text: str, plain: str, within: _Container, member: _Member) -> str:
    """Remove a member with its comma, and its lines if nothing else is on them."""
    end = _after_space(plain, member.end)
    has_comma = plain[end : end + 1] == ","
    end = end + 1 if has_comma else member.end
    start = member.start
    line = text.rfind("\n", 0, start)
    rest = text.find("\n", end)
    # The line end before the member may end a comment, so it is removed only if another one follows the member.
    if line > within.start and not text[line:start].strip() and rest >= 0 and not text[end:rest].strip():
        start = line
    before = [one for one in within.members if one.end <= member.start]
    after = [one for one in within.members if one.start >= member.end]
    if within.is_on_one_line(text):
        if after and not text[end : after[0].start].strip():
            return text[:start] + text[after[0].start :]
        if before and not after and text[before[-1].end : start].strip() == ",":
            return text[: before[-1].end] + text[member.end :]
    if not before and not after and not (text[within.start + 1 : start] + text[end : within.end]).strip():
        return text[: within.start + 1] + text[within.end :]
    if before and not has_comma:  # the last member: remove the comma before it
        comma = plain.find(",", before[-1].end, member.start)
        return text[:comma] + text[comma + 1 : start] + text[end:]
    return text[:start] + text[end:]
