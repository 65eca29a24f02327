"""Rewrites imports of modules that Monty lacks, and class statements with a base that can be done without."""

from __future__ import annotations

import ast

from rlm_mem.sandbox.prelude_modules import CLASSES, MODULES

__all__ = ["EMULATED", "rewrite_import", "rewrite_import_from", "split_base_classes"]

EMULATED = frozenset(MODULES) | {"contextlib", "collections.abc"}
"""Modules that a program may import although Monty has none of them."""

_Result = tuple[list[ast.stmt], list[str]] | None


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _emulated(module: str, name: str) -> ast.expr:
    found = ast.Name(f"_rlm_{module}_{name}", ast.Load())
    return ast.Call(found, [], []) if (module, name) in CLASSES else found


def _space(module: str) -> ast.expr:
    """``_rlm_space(mean=_rlm_statistics_mean, …)``: the module as an object."""
    names, _ = MODULES[module]
    words = [ast.keyword(name, _emulated(module, name)) for name in names]
    return ast.Call(ast.Name("_rlm_space", ast.Load()), [], words)


def rewrite_import(node: ast.Import) -> _Result:
    """``import statistics as st`` → ``st = <the emulated module>``; None when nothing has to change."""
    if not any(alias.name in EMULATED for alias in node.names):
        return None
    statements: list[ast.stmt] = []
    pieces: list[str] = []
    for alias in node.names:
        if alias.name in MODULES:
            bound = alias.asname or alias.name
            pieces.append(alias.name)
            statements.append(_assign(bound, _space(alias.name)))
        elif alias.name == "collections.abc":
            statements.append(ast.Import([ast.alias("collections")]))
        elif alias.name != "contextlib":
            statements.append(ast.Import([alias]))
    return statements or [ast.Pass()], pieces


_STAND_INS: dict[tuple[str, str], str] = {
    ("collections", "OrderedDict"): "dict",
    ("functools", "cmp_to_key"): "",
    ("functools", "wraps"): "_rlm_wraps",
    ("contextlib", "suppress"): "",
    ("contextlib", "nullcontext"): "",
}
"""What stands in for a missing name; empty where the uses are rewritten instead."""

_TYPING_MISSING = {"NamedTuple", "TypedDict", "Counter", "DefaultDict", "Deque", "Text", "Hashable"}


def rewrite_import_from(node: ast.ImportFrom) -> _Result:
    """``from statistics import mean`` → ``mean = _rlm_statistics_mean``; None when nothing has to change."""
    module = node.module or ""
    if module in MODULES:
        return _from_emulated(node, module)
    kept: list[ast.alias] = []
    statements: list[ast.stmt] = []
    pieces: list[str] = []
    for alias in node.names:
        bound = alias.asname or alias.name
        stand_in = _STAND_INS.get((module, alias.name))
        if stand_in is not None:
            if stand_in:
                statements.append(_assign(bound, ast.Name(stand_in, ast.Load())))
            if stand_in.startswith("_rlm_"):
                pieces.append(stand_in.removeprefix("_rlm_"))
        elif module == "collections.abc" or (module == "typing" and alias.name in _TYPING_MISSING):
            # Only annotations use these, and Monty does not evaluate annotations.
            statements.append(_assign(bound, ast.Name("list", ast.Load())))
        else:
            kept.append(alias)
    if len(kept) == len(node.names):
        return None
    if kept:
        statements.insert(0, ast.ImportFrom(module, kept, node.level))
    return statements or [ast.Pass()], pieces


def _from_emulated(node: ast.ImportFrom, module: str) -> _Result:
    names, _ = MODULES[module]
    statements: list[ast.stmt] = []
    for alias in node.names:
        if alias.name not in names:
            # Left as it is: Monty names the missing module, and the hint lists what there is.
            return None
        statements.append(_assign(alias.asname or alias.name, _emulated(module, alias.name)))
    return statements, [module]


_EXCEPTIONS = {
    "Exception",
    "ValueError",
    "RuntimeError",
    "KeyError",
    "TypeError",
    "LookupError",
    "BaseException",
}


def split_base_classes(node: ast.ClassDef) -> ast.stmt | None:
    """Return what replaces a class with a base, where that is possible; None when it stays as it is.

    ``class A(object)`` loses its base; an exception class without a body of its own becomes an alias of its
    base (``except`` then catches a little more); ``class P(NamedTuple)`` becomes a ``namedtuple`` call.
    """
    if len(node.bases) != 1 or node.keywords or not isinstance(node.bases[0], ast.Name):
        return None
    base = node.bases[0].id
    if base == "object":
        return ast.ClassDef(node.name, [], [], node.body, node.decorator_list)
    plain = all(
        isinstance(part, ast.Pass) or (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant))
        for part in node.body
    )
    if base in _EXCEPTIONS and plain:
        return _assign(node.name, ast.Name(base, ast.Load()))
    if base == "TypedDict":
        return _assign(node.name, ast.Name("dict", ast.Load()))
    if base == "NamedTuple":
        return _named_tuple(node)
    return None


def _named_tuple(node: ast.ClassDef) -> ast.stmt | None:
    fields: list[ast.expr] = []
    defaults: list[ast.expr] = []
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            fields.append(ast.Constant(part.target.id))
            if part.value is not None:
                defaults.append(part.value)
        elif not (isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)):
            return None
    module = ast.Name("_rlm_namedtuple", ast.Load())
    call = ast.Call(module, [ast.Constant(node.name), ast.List(fields, ast.Load())], [])
    if defaults:
        call.keywords.append(ast.keyword("defaults", ast.List(defaults, ast.Load())))
    return _assign(node.name, call)
