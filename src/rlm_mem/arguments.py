"""Validation of arguments of the Python API that are not fields of a chunk.

Wrong arguments are rejected before anything is done: ``delete(id, "no")`` deletes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import date
from os import PathLike, fsencode
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

from rlm_mem.chunk import format_time, parse_time
from rlm_mem.chunk.types import is_iterable, shown
from rlm_mem.errors import InputError, InvalidChunk, InvalidQuery

_Kind = TypeVar("_Kind")
_Function = TypeVar("_Function", bound=Callable[..., Any] | None)

_SINCE = r"(?i)[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}(?:[T ][0-9:.,]*(?:Z|([+-][0-9:]+))?)?)?)?"


def check_flag(value: object, what: str) -> bool:
    """Return ``value`` if it is True or False; raises InputError for any other value, even if truthy."""
    if isinstance(value, bool):
        return value
    raise InputError(f"{what} must be True or False, not {shown(value)}")


def check_function(value: _Function, what: str) -> _Function:
    """Return ``value`` if it is callable or None; raises InputError."""
    if value is None or callable(value):
        return value
    raise InputError(f"{what} must be a function, not {shown(value)}")


def check_model(model: object) -> None:
    """Raise InputError unless it may be a model: a name, None, a callable, or an object with ``complete()``."""
    if not (
        model is None
        or isinstance(model, str)
        or callable(model)
        or callable(getattr(model, "complete", None))
    ):
        raise InputError(
            f"{type(model).__name__} is not a model",
            hint="pass a name such as 'openai:gpt-5', a callable, or an object with complete(prompt)",
        )


def check_kind(value: object, kind: type[_Kind], what: str, *, hint: str | None = None) -> _Kind:
    """Return ``value`` if it is an instance of ``kind``; raises InputError."""
    if isinstance(value, kind):
        return value
    raise InputError(f"{what} must be {_NAMES.get(kind, kind.__name__)}, not {shown(value)}", hint=hint)


_NAMES: dict[type, str] = {str: "text"}


def check_mapping(value: object, what: str) -> Mapping[str, Any]:
    """Return ``value`` if it is a mapping; raises InputError."""
    if isinstance(value, Mapping):
        return value
    raise InputError(f"{what} must be a mapping, not {shown(value)}")


def check_items(value: Iterable[_Kind], what: str) -> Iterable[_Kind]:
    """Return ``value`` if it is iterable but not a single text; raises InputError."""
    if is_iterable(value) and not isinstance(value, str | bytes | bytearray | Mapping):
        return value
    raise InputError(f"{what} must be a list, not {shown(value)}")


def check_words(value: object, what: str) -> str:
    """Return ``value`` if it is text that UTF-8 can encode; raises InvalidQuery."""
    if not isinstance(value, str):
        raise InvalidQuery(f"{what} must be text, not {shown(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidQuery(f"{what} {shown(value)} contains a lone surrogate") from None
    return value


def check_path(value: object, what: str) -> Path:
    """Return ``value`` as the path of a file or folder; raises InputError."""
    if isinstance(value, str | PathLike) and "\0" not in (text := str(value)) and text:
        with suppress(UnicodeEncodeError):  # lone surrogates are not allowed in file names
            fsencode(text)
            return Path(value)
    raise InputError(f"{what} must be the path of a file or folder, not {shown(value)}")


def check_since(value: object, what: str) -> str | None:
    """Return a time or the beginning of one, such as ``2026-05``, in UTC; None is returned unchanged.

    Raises:
        InvalidQuery: the value is not a time.
    """
    if isinstance(value, date):
        value = value.isoformat()
    found = re.fullmatch(_SINCE, value) if isinstance(value, str) else None
    if value is None or (found is not None and found[1] is None):
        return cast("str | None", value)
    if found is not None:
        with suppress(InvalidChunk):
            return format_time(parse_time(value, what))
    raise InvalidQuery(f"{what} must be a date or time, not {shown(value)}", hint="write it as YYYY-MM-DD")


def not_copied(self: object) -> NoReturn:
    """A ``__getstate__`` for objects with open files or connections, which cannot be copied or pickled."""
    raise InputError(
        f"an open {type(self).__name__} can be neither pickled nor copied",
        hint="open the same brain again where it is needed",
    )
