"""Base classes for records that are cheap to define: msgspec structs that work with `dataclasses` functions.

Defining a data class compiles up to six functions, which takes half a millisecond at each start of a process; a struct
takes a fortieth of that and does not load `dataclasses`. Records are for classes that every opening of a store and
every search load.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import NODEFAULT, Struct, structs

if TYPE_CHECKING:
    import dataclasses


@cache
def _dataclass_fields(kind: type[Struct]) -> dict[str, dataclasses.Field[Any]]:
    import dataclasses

    def field(one: structs.FieldInfo) -> Any:
        if one.default is not NODEFAULT:
            return dataclasses.field(default=one.default)
        if one.default_factory is not NODEFAULT:
            return dataclasses.field(default_factory=one.default_factory)
        return dataclasses.field()

    made: Any = dataclasses.make_dataclass(
        kind.__name__, [(one.name, one.type, field(one)) for one in structs.fields(kind)], kw_only=True
    )
    found: dict[str, dataclasses.Field[Any]] = made.__dataclass_fields__
    return found


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
