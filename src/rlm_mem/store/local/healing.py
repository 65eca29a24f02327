"""An index damaged under an open store: being derived, it is set aside, built anew from the files, and asked again."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from rlm_mem.errors import CorruptStore
from rlm_mem.store.local import schema

if TYPE_CHECKING:
    from rlm_mem.store.local.local_index import LocalIndex

__all__ = ["DamagedSnapshot", "Healed", "again", "healed", "shows_damage"]

_ATTEMPTS = 3

_P = ParamSpec("_P")
_T = TypeVar("_T")
_B = TypeVar("_B", bound="LocalIndex")


class DamagedSnapshot(Exception):
    """Files of postings are missing or do not fit together; internal: they are made anew, nobody sees this."""


def shows_damage(error: BaseException) -> bool:
    """Whether an error says that the index is damaged, not merely busy or out of reach."""
    if isinstance(error, sqlite3.Error):
        return isinstance(schema.sqlite_error(error, "the index"), CorruptStore)
    return isinstance(error, CorruptStore)


def healed(
    method: Callable[Concatenate[_B, _P], _T],
) -> Callable[Concatenate[_B, _P], _T]:
    """Let a method of the local backend be repeated on a new index where the present one turns out to be damaged."""

    @functools.wraps(method)
    def call(self: _B, /, *args: _P.args, **named: _P.kwargs) -> _T:
        return again(self, lambda: method(self, *args, **named))

    return call


class Healed:
    """Stands before an object with methods that ask the index, made anew for each call."""

    def __init__(self, backend: LocalIndex, make: Callable[[], object]) -> None:
        self._backend = backend
        self._make = make

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            return again(self._backend, lambda: getattr(self._make(), name)(*args, **named))

        return call


def again(backend: LocalIndex, ask: Callable[[], _T]) -> _T:
    """What ``ask`` returns, asked again where what it reads turns out to be damaged."""
    for _ in range(_ATTEMPTS):
        known = backend.index_generation
        try:
            return ask()
        except DamagedSnapshot:
            backend.forget_postings()
        except (sqlite3.Error, CorruptStore) as error:
            if not backend.heal(error, known):
                if isinstance(error, CorruptStore):
                    raise
                raise schema.sqlite_error(error, str(backend.layout.database)) from error
    try:
        return ask()
    except (sqlite3.Error, DamagedSnapshot) as error:  # somebody damages it again and again
        raise CorruptStore(
            f"{backend.layout.database} is damaged: {error}", hint="repeat the question"
        ) from error
