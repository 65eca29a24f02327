"""Base classes for records that are cheap to define: msgspec structs that work with `dataclasses` functions.

Defining a data class compiles up to six functions, which takes half a millisecond at each start of a process; a struct
takes a fortieth of that and does not load `dataclasses`. Records are for classes that opening a store, searching,
remembering and recalling load.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import NODEFAULT, Struct, field

if TYPE_CHECKING:
    import dataclasses


class _WithFactory(Struct):
    made: list[Any] = field(default_factory=list)


_FACTORY = type(_WithFactory.__struct_defaults__[0])
"""The class of defaults that are made anew for each record, which msgspec does not export."""


@cache
def _dataclass_fields(kind: type[Struct]) -> dict[str, dataclasses.Field[Any]]:
    import dataclasses
    import inspect

    # As those of a data class, types stay text, which may name what only type checkers import.
    types = {
        name: kept for base in reversed(kind.__mro__) for name, kept in inspect.get_annotations(base).items()
    }
    names, given = kind.__struct_fields__, kind.__struct_defaults__
    defaults = (NODEFAULT,) * (len(names) - len(given)) + given
    made: Any = dataclasses.make_dataclass(
        kind.__name__,
        [(name, types[name], _field(default)) for name, default in zip(names, defaults, strict=True)],
        init=False,
        repr=False,
        eq=False,
    )
    found: dict[str, dataclasses.Field[Any]] = made.__dataclass_fields__
    return found


def _field(default: Any) -> Any:
    import dataclasses

    if default is NODEFAULT:
        return dataclasses.field()
    if isinstance(default, _FACTORY):
        return dataclasses.field(default_factory=default.factory)
    return dataclasses.field(default=default)


class _DataclassFields:
    """Descriptor that makes `dataclasses.fields`, `replace` and `asdict` work on a record; computed on first access."""

    def __get__(self, instance: object, kind: type[Struct]) -> dict[str, dataclasses.Field[Any]]:
        return _dataclass_fields(kind)


class _AsDataclass:
    __slots__ = ()
    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    else:
        __dataclass_fields__ = _DataclassFields()


class MutableRecord(Struct, _AsDataclass):
    """Base class of mutable records."""


class FrozenRecord(Struct, _AsDataclass, frozen=True):
    """Base class of frozen records."""
