"""Decodes requests from a JSON body, the parameters of an address, the arguments of an agent, or a form.

All of them use the same types. Text is converted to the number, boolean or list of its type. Agents may also use
aliases, omit arguments in several ways, and write times in any ISO form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec

from rlm_mem.chunk import format_time, parse_time
from rlm_mem.errors import InputError
from rlm_mem.operations.problems import FieldError, Refused, refused
from rlm_mem.operations.types import PARTS, TIME_PATTERN, Request

#: Maximum characters of all arguments of one call; the limit of a single memory is a lower setting.
MAX_ARGUMENT_CHARS = 10_000_000

_MAX_DEPTH = 20
_EMPTY = ("null", "none", "undefined")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_MAX_DETAIL_CHARS, _MAX_NAME_CHARS = 300, 80
"""Maximum characters of a message, which may quote the input, and of a name in it."""
_REGEX = "Expected `str` matching regex "
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`")
_TYPES = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
}
"""Names of JSON types for messages, by their names in the decoder's messages."""

_R = TypeVar("_R", bound=Request)


def from_json(kind: type[_R], content: bytes) -> _R:
    """Decode a request from a JSON body; since JSON has one type of number, 5.0 is accepted as an integer.

    Raises:
        Refused: the body is not valid JSON, or does not fit the type.
    """
    try:
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.ValidationError as error:
            if "got `float`" not in str(error):
                raise
            return msgspec.convert(_with_whole_numbers(msgspec.json.decode(content)), kind)
    except msgspec.ValidationError as error:
        raise _refused(kind, error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise refused(400, f"the body is not valid JSON{_json_fault(content, error)}") from None


def _json_fault(content: bytes, error: Exception) -> str:
    """Describe why the decoder refused a body; for invalid text, more precisely than the decoder."""
    try:
        text = content.decode()
    except UnicodeDecodeError as wrong:
        return f" in UTF-8: see byte {wrong.start}"
    try:
        json.dumps(json.loads(text), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return ": a text contains an unpaired surrogate (\\ud800 to \\udfff)"
    except (ValueError, RecursionError):
        pass  # the decoder's message names the position
    return f": {error}"


def from_parameters(kind: type[_R], given: Iterable[tuple[str, str]]) -> _R:
    """Decode a request from the parameters of an address; a parameter that may be repeated becomes a list.

    Raises:
        Refused: a parameter is unknown, is repeated although it is not a list, or does not fit its type.
    """
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    found: dict[str, Any] = {}
    for name, text in given:
        if name not in types:
            raise unknown_parameter(name, types)
        value = _typed(text, types[name])
        if _allows(list, types[name]):
            found.setdefault(name, []).append(value)
        elif name in found:
            raise refused(422, f"{name} is given twice", fields=[FieldError("given twice", name)])
        else:
            found[name] = value
    try:
        return msgspec.convert(found, kind)
    except msgspec.ValidationError as error:
        raise _refused(kind, error) from None


def from_agent(kind: type[_R], given: object, aliases: Mapping[str, str] | None = None) -> _R:
    """Decode a request from the arguments of a tool, or from the fields of a form.

    Args:
        given: an object, that object as JSON text, or None. Numbers, lists and objects may be given as text; null, an
            empty text and (unless the type is text) the word null omit an argument.
        aliases: other names of fields; giving both an alias and its field is refused.

    Raises:
        InputError: the arguments are too large, nested too deep or not an object, or a name is unknown or given twice.
        Refused: a wrong type, or a value out of range.
    """
    given = _parse_json(given) if isinstance(given, str) else given
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise InputError(f"the arguments must be an object, not {type(given).__name__}")
    if _text_size(given) > MAX_ARGUMENT_CHARS:
        raise InputError(
            f"the arguments have more than {MAX_ARGUMENT_CHARS:,} characters",
            hint="send the text in several calls",
        )
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    known: dict[str, Any] = {}
    for name, value in given.items():
        field = (aliases or {}).get(name, name)
        if field not in fields:
            known_names = f"there are: {', '.join(fields)}" if fields else "this tool takes none"
            raise InputError(f"there is no argument {name!r:.80}", hint=known_names)
        if field in known:
            raise InputError(f"{field} is given twice, also as {name!r}")
        value = _normalized(value, fields[field].type)
        if fields[field].required or not _is_omitted(value, fields[field].type):
            known[field] = value
    try:
        try:
            return msgspec.convert(known, kind, strict=False)
        except UnicodeEncodeError:  # an unpaired surrogate instead of a number: refused like any other text
            readable = json.dumps(known, ensure_ascii=False).encode("utf-8", "replace")
            return msgspec.convert(json.loads(readable), kind, strict=False)
    except msgspec.ValidationError as error:
        raise _refused(kind, error) from None
    except RecursionError:
        raise InputError("the arguments are nested too deeply") from None


def part(name: str, value: str) -> str:
    """Return a part of an address, validated by its type.

    Raises:
        Refused: the value does not fit the type.
    """
    try:
        return str(msgspec.convert(value, PARTS[name]))
    except msgspec.ValidationError as error:
        raise _refused(PARTS[name], error, name) from None


def unknown_parameter(name: str, known: Iterable[str] = ()) -> Refused:
    """Return the refusal of a parameter that an address does not accept."""
    names = ", ".join(known)
    return refused(
        422,
        f"there is no parameter {name!r:.80} here",
        hint=f"there are: {names}" if names else "this address takes none",
        fields=[FieldError("unknown", name[:80])],
    )


# --- refusals ---------------------------------------------------------------------------


def _refused(kind: Any, error: msgspec.ValidationError, name: str = "") -> Refused:
    """Return the refusal with the decoder's message, the field's name, a pointer to it, and the accepted values."""
    what, _, where = str(error).partition(" - at ")
    path = re.findall(r"[^.\[\]]+", where.strip("`").removeprefix("$"))
    hint = ""
    if what.startswith(_REGEX):
        what = f"expected {_pattern_description(kind, what) or 'another form'}"
    elif what.startswith(("Invalid enum value", "Invalid value")):
        words = _accepted_values(kind, path)
        hint = f"use one of {', '.join(words)}" if words else ""
    elif field := _FIELD.fullmatch(what):
        names = [one.encode_name for one in _fields(_type_at(kind, path))]
        path = [*path, field[2]]
        what = "missing" if field[1] == "missing required" else "there is no such field"
        hint = f"there are: {', '.join(names)}" if names else ""
    pointer = name or "/".join(["", *(one[:_MAX_NAME_CHARS] for one in path)])
    what = re.sub(
        r"`([a-z| ]+)`",
        lambda named: " or ".join(_TYPES.get(one, one) for one in named[1].split(" | ")),
        what,
    )
    detail = what.replace("`", "").encode("utf-8", "replace").decode()
    if len(detail) > _MAX_DETAIL_CHARS:  # it quotes the input
        detail = f"{detail[:_MAX_DETAIL_CHARS]}…"
    detail = detail[:1].lower() + detail[1:]
    place = pointer.strip("/").replace("/", ".")
    return refused(
        422, f"{place}: {detail}" if place else detail, hint=hint, fields=[FieldError(detail, pointer)]
    )


def _type_at(kind: Any, path: Iterable[str]) -> Any:
    """Return the type of the field at a path below a type; None if it is not declared."""
    for name in path:
        if not name.isdigit():  # an index of a list
            kind = next((field.type for field in _fields(kind) if field.encode_name == name), None)
    return kind


def _accepted_values(kind: Any, path: list[str]) -> list[str]:
    """Return the values accepted at a path: those of a literal, or the tags of a union."""
    literal = [one for one in _leaves(_type_at(kind, path)) if get_origin(one) is Literal]
    if literal:
        return [str(word) for one in literal for word in get_args(one)]
    tags = (one.__struct_config__.tag for one in _structs(_type_at(kind, path[:-1])))
    return [str(tag) for tag in tags if tag is not None]


def _fields(kind: Any) -> list[msgspec.structs.FieldInfo]:
    """Return the fields of the one struct that a type permits; none if it permits several."""
    found = _structs(kind)
    return list(msgspec.structs.fields(found[0])) if len(found) == 1 else []


def _structs(kind: Any) -> list[type[msgspec.Struct]]:
    return [one for one in _leaves(kind) if isinstance(one, type) and issubclass(one, msgspec.Struct)]


def _leaves(kind: Any) -> Iterator[Any]:
    """Yield the types within unions, lists and annotations."""
    if get_origin(kind) is Annotated:
        yield from _leaves(get_args(kind)[0])
    elif get_origin(kind) is Literal or not get_args(kind):
        yield kind
    else:
        for one in get_args(kind):
            yield from _leaves(one)


def _pattern_description(kind: Any, message: str) -> str:
    """Return the declared description of the pattern that a message quotes; empty if there is none."""
    for meta in getattr(kind, "__metadata__", ()):
        if meta.pattern is not None and message == f"{_REGEX}{meta.pattern!r}" and meta.description:
            example = f", such as {meta.examples[0]}" if meta.examples else ""
            return f"{meta.description[:1].lower()}{meta.description[1:].rstrip('.')}{example}"
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        parts = [field.type for field in msgspec.structs.fields(kind)]
    else:
        parts = [*get_args(kind)]
    return next((found for one in parts if (found := _pattern_description(one, message))), "")


# --- conversion of text -------------------------------------------------------------------------


def _with_whole_numbers(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _with_whole_numbers(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_with_whole_numbers(value) for value in data]
    return int(data) if isinstance(data, float) and data.is_integer() and abs(data) < 2**53 else data


def _typed(text: str, kind: Any) -> Any:
    """Convert a text to a whole number or boolean if the type requires one; else leave it to the decoder."""
    if _allows(bool, kind):
        return {"true": True, "false": False}.get(text, text)
    if _allows(int, kind) and _WHOLE.fullmatch(text):
        return int(text)
    return text


def _normalized(value: Any, kind: Any) -> Any:
    """Convert lists and objects given as JSON text, lists as `a, b` or one word, and times in any ISO form."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if (text.startswith("[") and _allows(list, kind)) or (text.startswith("{") and _allows(dict, kind)):
        return _parse_json(text)
    if _allows(list, kind):
        return [word.strip() for word in text.split(",") if word.strip()] or None
    if _allows_time(kind) and not re.search(TIME_PATTERN, text):
        try:
            return format_time(parse_time(text))
        except (InputError, ValueError, OverflowError):
            return value  # the decoder refuses it with the description of the pattern
    return value


def _is_omitted(value: object, kind: Any) -> bool:
    if not isinstance(value, str):
        return value is None
    return value.strip() == "" or (not _allows(str, kind) and value.strip().lower() in _EMPTY)


def _allows(wanted: type, kind: Any) -> bool:
    """Return whether a type is `wanted`, apart from bounds, `| None` and an enclosing list."""
    return kind is wanted or get_origin(kind) is wanted or any(_allows(wanted, one) for one in get_args(kind))


def _allows_time(kind: Any) -> bool:
    metas = getattr(kind, "__metadata__", ())
    return any(meta.pattern == TIME_PATTERN for meta in metas) or any(map(_allows_time, get_args(kind)))


def _parse_json(text: str) -> Any:
    if len(text) > MAX_ARGUMENT_CHARS:
        raise InputError(f"the arguments have more than {MAX_ARGUMENT_CHARS:,} characters")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"this is not valid JSON: {text[:60]!r}") from None


def _text_size(value: object, depth: int = 0) -> int:
    """Return the number of characters of all text in a value.

    Raises:
        InputError: it is nested too deeply.
    """
    if depth > _MAX_DEPTH:
        raise InputError(f"the arguments are nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(_text_size(key, depth + 1) + _text_size(item, depth + 1) for key, item in value.items())
    if isinstance(value, list | tuple):
        return sum(_text_size(item, depth + 1) for item in value) + len(value)
    return 1
