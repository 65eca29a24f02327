"""Reads untrusted YAML: bounded in length and depth, without merge keys, which can double the data at each level."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Set
from datetime import UTC, date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from rlm_mem.chunk import format_time
from rlm_mem.text.patterns import late

if TYPE_CHECKING:
    from ruamel.yaml import YAML

MAX_CHARACTERS = 50_000
"""Maximum characters of YAML; the library takes a time that grows with them."""
MAX_DEPTH = 64
"""Maximum nesting; at each bracket the library checks all open brackets again."""

_MAX_BITS = 1_000  # of an integer; Python refuses to format integers with thousands of digits
_MERGE = "tag:yaml.org,2002:merge"
_MAX_PROBLEM = 200
_FORMS = {"timestamp": "a day or time such as 2026-02-10 or 2026-02-10T21:37:00Z", "int": "a whole number"}
_BRACKET = late(r"[\[\]{}]")
_FIELD = late(r"([A-Za-z_][\w-]*):(?: (.*))?\Z", re.DOTALL)
_ITEM = late(r"  - (.*)\Z", re.DOTALL)
# Words that every YAML reader parses as text.
PLAIN_WORD = late(r"(?!(?:true|false|null|yes|no|on|off|y|n)\Z)[A-Za-z][A-Za-z0-9_./-]*\Z", re.IGNORECASE)


class BadYaml(ValueError):
    """The text is not valid YAML; the message has the reason and, if known, the line of the text (from 1)."""


def plain_reader() -> YAML:
    """A YAML reader that returns plain data."""
    return _reader("safe")


def round_trip() -> YAML:
    """A YAML reader and writer that preserves order, comments and quotes."""
    return _reader("rt")


def _reader(kind: str) -> YAML:
    from ruamel.yaml import YAML

    made = YAML(typ=kind, pure=True)
    made.Constructor = _constructors()[kind]
    made.composer.warn_double_anchors = False
    return made


def load(yaml: YAML, text: str, first_line: int = 1) -> Any:
    """Parse a YAML text.

    Args:
        yaml: a reader made by one of the functions above.
        first_line: number of its first line in the file, for messages.

    Raises:
        BadYaml: it is too long, nested too deeply, or not YAML.
    """
    from ruamel.yaml.error import YAMLError

    if len(text) > MAX_CHARACTERS:
        raise BadYaml(f"has more than {MAX_CHARACTERS:,} characters of YAML")
    if _depth(text) > MAX_DEPTH:
        raise BadYaml(f"is nested more than {MAX_DEPTH} levels deep")
    try:
        return yaml.load(text)
    except YAMLError as error:
        problem = getattr(error, "problem", None) or (str(error).splitlines() or [type(error).__name__])[0]
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + first_line})" if mark is not None else ""
        if mark is not None and isinstance(error, _constructors()["wrong"]):
            named = _FIELD.match(text.split("\n")[mark.line].strip())
            field = f"{named[1]}: " if named else ""
            raise BadYaml(f"has a wrong value{line}: {field}{problem}") from None
        raise BadYaml(f"is not valid YAML{line}: {problem[:_MAX_PROBLEM]}") from None
    except RecursionError:
        raise BadYaml("is nested too deeply") from None
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError) as error:
        # The library raises these for malformed numbers, dates and tags.
        raise BadYaml(f"cannot be read: {type(error).__name__}") from None


def quick_fields(text: str) -> dict[str, Any] | None:
    """Parse a YAML table with one field per line as JSON or a plain word, as this package writes it; else None.

    It is much faster than the YAML library, which matters for thousands of files.
    """
    found: dict[str, Any] = {}
    items: list[Any] | None = None
    for line in text.split("\n"):
        if not line.strip():
            continue
        item, named = _ITEM.match(line), _FIELD.match(line)
        try:
            if item and items is not None:
                items.append(_quick_value(item[1].strip()))
            elif named is None or named[1] in found or items == []:
                return None
            elif named[2] is None:
                found[named[1]] = items = []
            else:
                found[named[1]], items = _quick_value(named[2].strip()), None
        except (ValueError, RecursionError):
            return None
    return None if items == [] else found


def _quick_value(text: str) -> Any:
    if PLAIN_WORD.match(text):
        return text
    if text[:1] == "[" and text[-1:] == "]" and '"' not in text and "{" not in text:
        words = text[1:-1].split(", ") if len(text) > 2 else []
        if all(map(PLAIN_WORD.match, words)):
            return words
    return json.loads(text, parse_constant=_refused)


def _refused(name: str) -> Any:
    raise ValueError(name)


def plain_fields(loaded: Any, most: int) -> dict[str, Any]:
    """Convert a loaded table to plain data, without classes of the library and with times as ISO text.

    Args:
        loaded: the result of ``load``.
        most: maximum number of values, since nested aliases can expand beyond any memory.

    Raises:
        BadYaml: it is not a table, has too many values, is nested too deeply, or has too long a number.
    """
    if not isinstance(loaded, Mapping):
        raise BadYaml("is not a table of fields")
    budget = [most]

    def plain(value: Any, depth: int) -> Any:
        budget[0] -= 1
        if budget[0] < 0 or depth > MAX_DEPTH:
            raise BadYaml(f"has more than {most:,} values, or is nested too deeply")
        if isinstance(value, Mapping):
            return {_key(key): plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, Set):
            value = sorted(value, key=repr)  # a set of the library has the order of the file, Python's none
        if isinstance(value, list | tuple):
            return [plain(item, depth + 1) for item in value]
        if isinstance(value, datetime):
            return format_time(value if value.tzinfo else value.replace(tzinfo=UTC))
        if isinstance(value, date):
            return value.isoformat()
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int) and value.bit_length() > _MAX_BITS:
            raise BadYaml("has a number of too many digits")
        for kind in (int, float, str):
            if isinstance(value, kind):
                return kind(value)
        return str(value)

    return {_key(key): plain(value, 0) for key, value in loaded.items()}


def _key(key: Any) -> str:
    if isinstance(key, int) and key.bit_length() > _MAX_BITS:
        raise BadYaml("has a number of too many digits")
    return str(key)


def written(yaml: YAML, data: Any) -> str:
    """Serialise ``data`` as YAML.

    Raises:
        BadYaml: a value cannot be written, such as a number of thousands of digits.
    """
    out = io.StringIO()
    try:
        yaml.dump(data, out)
    except (ValueError, RecursionError) as error:
        raise BadYaml(f"cannot be written: {type(error).__name__}") from None
    return out.getvalue()


def _depth(text: str) -> int:
    """An upper bound of the nesting of brackets; brackets in texts are counted, too."""
    depth = most = 0
    for mark in _BRACKET.findall(text):
        depth = depth + 1 if mark in "[{" else max(0, depth - 1)
        most = max(most, depth)
    return most


@cache
def _constructors() -> dict[str, type]:
    from ruamel.yaml.constructor import ConstructorError, RoundTripConstructor, SafeConstructor

    def unmerged(base: type) -> type:
        def flatten_mapping(self: Any, node: Any) -> Any:
            for key, _ in node.value:
                if key.tag == _MERGE:
                    raise ConstructorError(None, None, "merge keys (<<) are not read", key.start_mark)
            return base.flatten_mapping(self, node)  # type: ignore[attr-defined]

        def construct_object(self: Any, node: Any, deep: bool = False) -> Any:
            try:
                return base.construct_object(self, node, deep)  # type: ignore[attr-defined]
            except ValueError:
                kind = node.tag.rpartition(":")[2]
                expected = _FORMS.get(kind, f"a valid {kind}")
                raise WrongValue(
                    None, None, f"{node.value!r:.60} is not {expected}", node.start_mark
                ) from None

        methods = {"flatten_mapping": flatten_mapping, "construct_object": construct_object}
        return type(base.__name__, (base,), methods)

    class WrongValue(ConstructorError):
        """A number or date that looks like one and is none."""

    return {"safe": unmerged(SafeConstructor), "rt": unmerged(RoundTripConstructor), "wrong": WrongValue}
