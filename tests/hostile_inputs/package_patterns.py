"""The regular expressions of the package, found in its modules and sources, so that a new one is covered unasked."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.house.sources import nodes as nodes_of

import rlm_mem
from rlm_mem.text.patterns import Expressions, LatePattern

SOURCE = Path(rlm_mem.__file__).parent
METHODS = frozenset({"search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"})
ANCHORED = frozenset({"match", "fullmatch"})


@dataclass(frozen=True)
class Found:
    """One pattern of the package and the methods it is used with."""

    place: str
    pattern: str
    flags: int
    methods: tuple[str, ...]


def modules() -> Iterator[tuple[ModuleType, list[ast.AST]]]:
    """Every module of the package that can be imported here, with the nodes of its syntax tree, the root first."""
    for info in pkgutil.walk_packages([str(SOURCE)], "rlm_mem."):
        if info.name.endswith("__main__"):
            continue
        try:
            module = importlib.import_module(info.name)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("rlm_mem"):
                raise
            continue  # an adapter whose framework is not installed
        path = module.__file__
        if path is not None and path.endswith(".py"):
            yield module, nodes_of(Path(path))


@cache
def package_patterns() -> list[Found]:
    """Every pattern of the package, once each."""
    loaded = list(modules())
    uses = {module.__name__: _uses(nodes) for module, nodes in loaded}
    shared: dict[str, set[str]] = {}
    for used in uses.values():
        for name, methods in used.items():
            shared.setdefault(name, set()).update(methods)
    found: dict[tuple[str, tuple[str, ...]], Found] = {}
    for module, _ in loaded:
        for one in _of_module(module, uses[module.__name__], shared):
            found.setdefault((one.pattern, one.methods), one)
    values = {one.pattern for one in found.values()}
    for module, nodes in loaded:
        for one in _of_source(module, nodes):
            if one.pattern not in values:
                found.setdefault((one.pattern, one.methods), one)
    return list(found.values())


def _uses(nodes: Sequence[ast.AST]) -> dict[str, set[str]]:
    """What each name is used for: the methods called on it, and "any" where it is handed on."""
    called: dict[int, str] = {}
    used: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Attribute):
            called[id(_named(node.value))] = node.attr
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) > 1:
            # From a place in the text, perhaps from each: as good as a search.
            called[id(_named(node.func.value))] = "search" if node.func.attr in ANCHORED else node.func.attr
    for node in nodes:
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
        if isinstance(name, str) and not isinstance(getattr(node, "ctx", None), ast.Store):
            used.setdefault(name, set()).add(called.get(id(node), "any"))
    return used


def _named(node: ast.AST) -> ast.AST:
    """What is called where a pattern comes from a function that compiles it, else the node itself."""
    return node.func if isinstance(node, ast.Call) else node


def _of_module(
    module: ModuleType, used: Mapping[str, set[str]], shared: Mapping[str, set[str]]
) -> Iterator[Found]:
    for name, value in list(vars(module).items()):
        if _compiles_when_used(value):
            value = value()
        for pattern in _patterns_in(value, 0):
            if isinstance(pattern.pattern, str):
                methods = (used if name.startswith("_") else shared).get(name, set())
                place = f"{module.__name__}.{name}"
                yield Found(place, pattern.pattern, pattern.flags, _methods(methods))


def _compiles_when_used(value: Any) -> bool:
    """A function without arguments that keeps the patterns it made at its first call."""
    if not hasattr(value, "cache_info"):
        return False
    signature = inspect.signature(value)
    return not signature.parameters and "Pattern" in str(signature.return_annotation)


def _methods(used: Set[str]) -> tuple[str, ...]:
    """What to try: anchored only where the sources use it so; otherwise a search, or a walk over all matches."""
    used = used - {"pattern", "flags"}
    if used and used <= ANCHORED:
        return tuple(sorted(used))
    if used and used <= ANCHORED | {"search"}:
        return ("search",)
    return ("finditer",)


def _patterns_in(value: Any, depth: int) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern | LatePattern):
        yield value.compiled if isinstance(value, LatePattern) else value
    elif isinstance(value, Expressions):
        yield from _patterns_in(value.others, depth + 1)
    elif depth > 4 or isinstance(value, str | bytes):
        return
    elif isinstance(value, Mapping):
        for key, inner in list(value.items()):
            yield from _patterns_in(key, depth + 1)
            yield from _patterns_in(inner, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in list(value):
            yield from _patterns_in(inner, depth + 1)
    elif isinstance(value, type):
        if value.__module__.startswith("rlm_mem"):
            for inner in list(vars(value).values()):
                if isinstance(inner, re.Pattern | LatePattern | list | tuple | dict):
                    yield from _patterns_in(inner, depth + 1)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _patterns_in(getattr(value, field.name, None), depth + 1)


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """What is evaluated when the module is imported."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        return
    yield node
    for inner in ast.iter_child_nodes(node):
        yield from _outside_functions(inner)


def _evaluated_at_import(tree: ast.AST, names: Mapping[str, Any]) -> Iterator[int]:
    """The ids of the nodes whose patterns are values of the module, or of a function that keeps them."""
    for statement in ast.iter_child_nodes(tree):
        if isinstance(statement, ast.FunctionDef) and _compiles_when_used(names.get(statement.name)):
            yield from map(id, ast.walk(statement))
        else:
            yield from map(id, _outside_functions(statement))


def _of_source(module: ModuleType, nodes: Sequence[ast.AST]) -> Iterator[Found]:
    """Patterns handed to `re` inside functions; those at module level are found as values."""
    aliases = {"re"} | {
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "re"
    }
    names = vars(module)
    calls = [
        (node, node.func.attr)
        for node in nodes
        if isinstance(node, ast.Call)
        and node.args
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in aliases
        and node.func.attr in METHODS | {"compile"}
    ]
    values = set(_evaluated_at_import(nodes[0], names)) if calls else set()
    for node, method in calls:
        if method == "compile" and id(node) in values:
            continue  # found as a value
        for text in _texts(node.args[0], names):
            flags = 0
            for keyword in (
                *node.keywords,
                *([ast.keyword("flags", node.args[-1])] if len(node.args) > 1 else []),
            ):
                if keyword.arg == "flags":
                    flags |= _flags(keyword.value, names)
            methods = _methods(set() if method == "compile" else {method})
            yield Found(f"{module.__name__}:{node.lineno}", text, flags, methods)


def _flags(node: ast.expr, names: Mapping[str, Any]) -> int:
    total = 0
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(
            value := getattr(re, inner.attr, None), re.RegexFlag
        ):
            total |= int(value)
    return total


def _texts(node: ast.expr, names: Mapping[str, Any]) -> list[str]:
    """The pattern that an expression gives; a part only known at run time stands as a word."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return ["".join((_texts(part, names) or [""])[0] for part in node.values)]
    if isinstance(node, ast.FormattedValue):
        value = names.get(node.value.id) if isinstance(node.value, ast.Name) else None
        return [value if isinstance(value, str) else "name"]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _texts(node.left, names), _texts(node.right, names)
        return [(left or ["name"])[0] + (right or ["name"])[0]]
    if isinstance(node, ast.Name) and isinstance(value := names.get(node.id), str):
        return [value]
    return []
