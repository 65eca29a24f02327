"""The requested type of an answer: a type or a JSON Schema, the instruction for the model, and the check.

``recall(question, result=…)`` takes a msgspec Struct, a dataclass, a pydantic model or a JSON Schema as a dict. An
answer that does not match is returned to the program that gave it, with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import msgspec

from rlm_mem.errors import InputError
from rlm_mem.text.patterns import linear

MAX_SCHEMA_CHARS = 20_000
_MAX_DEPTH = 40
_MAX_CHECKS = 20_000
_MAX_PATTERN = 500
_PATTERN_BYTES = 1 << 20

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_ANNOTATIONS = {
    "title", "description", "default", "examples", "format", "$schema", "$id", "$comment", "$defs", "definitions",
    "deprecated", "readOnly", "writeOnly", "discriminator",
}  # fmt: skip
#: Keywords whose value is a list of schemas, and those whose value is a number.
_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems")
_BOUNDS = (
    "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minProperties", "maxProperties",
)  # fmt: skip
_CHECKED_KEYWORDS = {
    "type", "enum", "const", "properties", "required", "additionalProperties", "items", "uniqueItems", "pattern",
    "$ref", *_SEVERAL, *_BOUNDS,
}  # fmt: skip


class ResultSchema:
    """The requested type of answers.

    Args:
        wanted: a msgspec Struct, dataclass, TypedDict or other type that msgspec supports; a pydantic model; or a
            JSON Schema as a dict.

    Attributes:
        json_schema: the type as a JSON Schema.

    Raises:
        InputError: ``wanted`` is none of these, or its schema is too large or has parts that cannot be checked.
    """

    def __init__(self, wanted: Any) -> None:
        self._convert: Callable[[Any], Any] = lambda value: value
        if isinstance(wanted, Mapping):
            self.json_schema = check_schema(wanted)
        elif hasattr(wanted, "model_json_schema") and hasattr(wanted, "model_validate"):
            self.json_schema = wanted.model_json_schema()
            self._convert = wanted.model_validate
        else:
            try:
                self.json_schema = msgspec.json.schema(wanted)
            except (TypeError, ValueError, RuntimeError) as error:
                raise InputError(
                    f"result cannot be used as a schema: {error}"[:300],
                    hint="pass a msgspec Struct, a dataclass, a pydantic model or a JSON Schema as a dict",
                ) from None
            self._convert = lambda value: msgspec.convert(value, wanted, strict=False)
        try:
            check_schema(self.json_schema)
            self._checkable = True
        except InputError:
            # A type's schema may have keywords that are not checked here; its conversion checks the answers.
            self._checkable = False

    @property
    def task(self) -> str:
        """The instruction for the model."""
        schema = json.dumps(self.json_schema, ensure_ascii=False, separators=(",", ":"))
        return f"FINAL takes an answer that fits this JSON Schema, or None if the memory does not hold it: {schema}"

    def value_of(self, answer: Any) -> Any:
        """The answer as the requested type.

        Args:
            answer: plain data; a text that does not match is also tried as JSON.

        Raises:
            InputError: it does not match; the message states where and why.
        """
        try:
            return self._convert_checked(answer)
        except (ValueError, TypeError, RecursionError) as error:
            # msgspec.ValidationError, pydantic.ValidationError and InputError are ValueErrors.
            if isinstance(answer, str):
                try:
                    return self._convert_checked(json.loads(answer))
                except (ValueError, TypeError, RecursionError):
                    pass
            reason = re.sub(r"\s+", " ", str(error))[:400]
            raise InputError(
                f"the answer does not match the schema: {reason}", hint="give an answer that matches it"
            ) from None

    def _convert_checked(self, value: Any) -> Any:
        # The schema is checked first, even for a type: a replay has only the schema and must raise the same errors.
        if self._checkable:
            check_value(value, self.json_schema)
        return self._convert(value)


def check_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema that answers can be checked against.

    Raises:
        InputError: it is not JSON, too large, or uses a keyword that would be ignored.
    """
    try:
        text = json.dumps(schema)
        plain: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise InputError("the schema is not plain JSON data") from None
    if len(text) > MAX_SCHEMA_CHARS:
        raise InputError(
            f"the schema has {len(text):,} characters; at most {MAX_SCHEMA_CHARS:,} are accepted"
        )
    stack: list[Any] = [plain]
    while stack:
        part = stack.pop()
        if not isinstance(part, bool):
            stack += _checked_parts(part, plain)
    return plain


def _checked_parts(part: Any, whole: Mapping[str, Any]) -> list[Any]:
    """Check the keywords of one part of a schema, and return the parts in it; raises InputError."""
    if not isinstance(part, dict):
        raise InputError(f"a part of the schema must be an object, not {str(part)[:60]!r}")
    unknown = sorted(part.keys() - _ANNOTATIONS - _CHECKED_KEYWORDS)
    if unknown:
        raise InputError(
            f"the schema uses {unknown[0]!r:.60}, which is not checked here",
            hint=f"use {', '.join(sorted(_CHECKED_KEYWORDS))}",
        )
    for name in (*_SEVERAL, "enum"):
        if not isinstance(part.get(name, []), list):
            raise InputError(f"{name} of a schema must be a list")
    parts = [one for name in ("properties", "$defs", "definitions") for one in _mapping(part, name).values()]
    parts += [one for name in _SEVERAL for one in part.get(name, [])]
    parts += [part[name] for name in ("items", "additionalProperties") if name in part]
    if "$ref" in part:
        _referenced(whole, part["$ref"])
    if "pattern" in part:
        _compile_pattern(part["pattern"])
    kinds = part.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if not isinstance(kind, str) or kind not in _TYPES:
            raise InputError(
                f"the schema has the unknown type {str(kind)[:60]!r}", hint=f"use {', '.join(_TYPES)}"
            )
    required = part.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        raise InputError("required of a schema must be a list of names")
    for name in _BOUNDS:
        if isinstance(part.get(name, 0), bool) or not isinstance(part.get(name, 0), int | float):
            raise InputError(f"{name} of a schema must be a number")
    return parts


def check_value(value: Any, schema: Mapping[str, Any]) -> None:
    """Check plain data against a schema that :func:`check_schema` accepted.

    Raises:
        InputError: it does not match.
    """
    _Checker(schema).check(value, schema, "the answer", 0)


class _Checker:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._checks_left = _MAX_CHECKS

    def check(self, value: Any, schema: Any, where: str, depth: int) -> None:
        # A bound for recursive schemas and nested alternatives.
        self._checks_left -= 1
        if depth > _MAX_DEPTH or self._checks_left < 0:
            raise InputError("the schema is too deep or has too many alternatives to check an answer against")
        if schema is True:
            return
        if schema is False:
            raise InputError(f"{where} is not allowed")
        if "$ref" in schema:
            self.check(value, _referenced(self._root, schema["$ref"]), where, depth + 1)
        kinds = schema.get("type")
        if kinds is not None and not any(
            _has_type(value, kind) for kind in (kinds if isinstance(kinds, list) else [kinds])
        ):
            raise InputError(f"{where} is {_preview(value)}, not of the type {kinds}")
        if "enum" in schema and not any(_are_equal(value, one) for one in schema["enum"]):
            raise InputError(f"{where} is {_preview(value)}, not one of {str(schema['enum'])[:120]}")
        if "const" in schema and not _are_equal(value, schema["const"]):
            raise InputError(f"{where} is {_preview(value)}, not {_preview(schema['const'])}")
        for one in schema.get("allOf", ()):
            self.check(value, one, where, depth + 1)
        for name in ("anyOf", "oneOf"):
            if name in schema:
                self._check_alternatives(value, schema[name], name, where, depth)
        if isinstance(value, str):
            self._check_text(value, schema, where)
        elif isinstance(value, dict):
            self._check_object(value, schema, where, depth)
        elif isinstance(value, list):
            self._check_array(value, schema, where, depth)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            _check_number(value, schema, where)

    def _check_alternatives(self, value: Any, schemas: list[Any], name: str, where: str, depth: int) -> None:
        matches = 0
        reason: InputError | None = None
        for one in schemas:
            try:
                self.check(value, one, where, depth + 1)
                matches += 1
            except InputError as error:
                reason = error
            if self._checks_left < 0:
                break
        if matches == 0:
            raise reason or InputError(f"{where} matches none of {name}")
        if name == "oneOf" and matches > 1:
            raise InputError(f"{where} matches {matches} of oneOf")

    def _check_text(self, value: str, schema: Mapping[str, Any], where: str) -> None:
        _check_size(len(value), schema, "Length", "characters", where)
        if "pattern" in schema and not _compile_pattern(schema["pattern"])(value):
            raise InputError(f"{where} does not match the pattern {schema['pattern'][:80]!r}")

    def _check_object(self, value: dict[str, Any], schema: Mapping[str, Any], where: str, depth: int) -> None:
        _check_size(len(value), schema, "Properties", "fields", where)
        missing = [name for name in schema.get("required", ()) if name not in value]
        if missing:
            raise InputError(f"{where} has no field {missing[0][:60]!r}")
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        for name, item in value.items():
            if name in properties:
                self.check(item, properties[name], f"{where}.{name[:60]}", depth + 1)
            elif others is False:
                raise InputError(f"{where} has a field {name[:60]!r}, which the schema does not have")
            elif others is not True:
                self.check(item, others, f"{where}.{name[:60]}", depth + 1)

    def _check_array(self, value: list[Any], schema: Mapping[str, Any], where: str, depth: int) -> None:
        _check_size(len(value), schema, "Items", "items", where)
        first = schema.get("prefixItems", [])
        for number, item in enumerate(value):
            one = first[number] if number < len(first) else schema.get("items", True)
            if one is not True:
                self.check(item, one, f"{where}[{number}]", depth + 1)
        if schema.get("uniqueItems") is True:
            texts = [json.dumps(item, sort_keys=True) for item in value]
            if len(set(texts)) < len(texts):
                raise InputError(f"{where} contains an item twice")


def _has_type(value: Any, kind: str) -> bool:
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _are_equal(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _check_number(value: float, schema: Mapping[str, Any], where: str) -> None:
    low, high = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if (low is not None and value < low) or (above is not None and value <= above):
        raise InputError(f"{where} is {value}, less than the schema allows")
    if (high is not None and value > high) or (below is not None and value >= below):
        raise InputError(f"{where} is {value}, more than the schema allows")
    step = schema.get("multipleOf")
    if step and not _is_multiple(value, step):
        raise InputError(f"{where} is {value}, not a multiple of {step}")


def _is_multiple(value: float, step: float) -> bool:
    try:  # by the digits: as floats, 0.3 is no multiple of 0.1
        exact = [Fraction(one if isinstance(one, int) else str(one)) for one in (value, step)]
    except ValueError:  # infinite, or not a number
        return False
    return (exact[0] / exact[1]).denominator == 1


def _check_size(size: int, schema: Mapping[str, Any], what: str, of: str, where: str) -> None:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if least is not None and size < least:
        raise InputError(f"{where} has {size} {of}, fewer than {least}")
    if most is not None and size > most:
        raise InputError(f"{where} has {size} {of}, more than {most}")


def _referenced(root: Mapping[str, Any], reference: Any) -> Any:
    """The part of a schema that a reference such as ``#/$defs/NAME`` points to."""
    if reference == "#":
        return root
    parts = reference.split("/") if isinstance(reference, str) else []
    if len(parts) == 3 and parts[0] == "#" and parts[1] in ("$defs", "definitions"):
        found = _mapping(root, parts[1]).get(parts[2].replace("~1", "/").replace("~0", "~"))
        if found is not None:
            return found
    raise InputError(f"the schema refers to {str(reference)[:80]!r}, which is not in its $defs")


def _mapping(part: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = part.get(name, {})
    if not isinstance(found, dict):
        raise InputError(f"{name} of a schema must be an object")
    return found


def _compile_pattern(pattern: Any) -> Callable[[str], object]:
    if not isinstance(pattern, str) or len(pattern) > _MAX_PATTERN:
        raise InputError(f"a pattern of a schema must be text of at most {_MAX_PATTERN} characters")
    try:
        search: Callable[[str], object] = linear(pattern, _PATTERN_BYTES).search
    except ValueError:
        raise InputError(f"the pattern {pattern[:80]!r} of the schema is not a valid RE2 pattern") from None
    return search


def _preview(value: Any) -> str:
    return repr(value)[:80]
