"""Arguments of a tool call: aliases and stringified JSON are understood, all else is refused in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin

import msgspec

from rlm_mem.errors import InputError
from rlm_mem.operations.types import Request

__all__ = ["MAX_ARGUMENT_CHARS", "decode"]

#: Most characters of text in all arguments of one call together; what one memory may hold is a setting, and less.
MAX_ARGUMENT_CHARS = 10_000_000

_MAX_DEPTH = 20
_EMPTY = ("null", "none", "undefined")

_T = TypeVar("_T", bound="Request")


def decode(kind: type[_T], aliases: Mapping[str, str], given: object) -> _T:
    """Make the arguments of a call from what the client sent.

    Args:
        kind: what the tool takes.
        aliases: other names of fields; one given beside the field itself is refused.
        given: what came over the wire: an object, that object as JSON text, or nothing.

    Raises:
        InputError: too large, not an object, an unknown name, a wrong type or a value out of range.
    """
    given = _parsed(given) if isinstance(given, str) else given
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise InputError(f"the arguments must be an object, not {type(given).__name__}")
    if _size(given) > MAX_ARGUMENT_CHARS:
        raise InputError(
            f"the arguments hold more than {MAX_ARGUMENT_CHARS:,} characters",
            hint="Send the text in several calls.",
        )
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    known: dict[str, Any] = {}
    for name, value in given.items():
        field = aliases.get(name, name)
        if field not in fields:
            raise InputError(
                f"there is no argument {name!r:.80}",
                hint=f"There are: {', '.join(fields)}." if fields else "This tool takes none.",
            )
        if field in known:
            raise InputError(f"{field} is given twice (also as {name!r})")
        value = _unwrapped(value, fields[field].type)
        if fields[field].required or not _said_nothing(value, fields[field].type):
            known[field] = value
    try:
        return msgspec.convert(known, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(_in_words(str(error))) from None


def _in_words(message: str) -> str:
    """The decoder's sentence with the argument's name in front."""
    what, _, where = message.partition(" - at ")
    name = where.strip("`").removeprefix("$").removeprefix(".")
    what = what.replace("`", "")
    return f"{name}: {what[:1].lower()}{what[1:]}" if name else what


def _said_nothing(value: object, kind: Any) -> bool:
    """Null, an empty text, or (where no text is wanted) the word null: so do clients leave something out."""
    if not isinstance(value, str):
        return value is None
    return value.strip() == "" or (not _is(str, kind) and value.strip().lower() in _EMPTY)


def _unwrapped(value: Any, kind: Any) -> Any:
    """A list that came as JSON text, as `a, b` or as one bare value; other values as they are."""
    if not _is(list, kind):
        return value
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            return _parsed(text)
        return [part.strip() for part in text.split(",") if part.strip()] or None
    return value


def _is(wanted: type, kind: Any) -> bool:
    """Whether a type, without its bounds and its `| None`, is `wanted`."""
    if kind is wanted or get_origin(kind) is wanted:
        return True
    if get_origin(kind) is list:
        return False
    return any(_is(wanted, part) for part in get_args(kind))


def _parsed(text: str) -> Any:
    if len(text) > MAX_ARGUMENT_CHARS:
        raise InputError(f"the arguments hold more than {MAX_ARGUMENT_CHARS:,} characters")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"this is not valid JSON: {text[:60]!r}") from None


def _size(value: object, depth: int = 0) -> int:
    """Characters of text within; refuses what is nested deeper than any argument is."""
    if depth > _MAX_DEPTH:
        raise InputError(f"the arguments are nested deeper than {_MAX_DEPTH} levels")
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(_size(key, depth + 1) + _size(item, depth + 1) for key, item in value.items())
    if isinstance(value, list | tuple):
        return sum(_size(item, depth + 1) for item in value) + len(value)
    return 1
