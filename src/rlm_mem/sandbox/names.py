"""Names in a program: every identifier, those it may bind, and the built-ins it uses as functions.

Gone through by field, not by kind of statement: syntax of a later Python (``type X = …``) is covered as soon as the
parser knows it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

__all__ = ["BLOCKED_ATTRIBUTES", "SAFE_DUNDERS", "ProgramNames", "names_of", "reaches_inside"]

SAFE_DUNDERS = frozenset(
    {"__init__", "__name__", "__doc__", "__len__", "__str__", "__repr__", "__eq__", "__lt__", "__hash__"}
    | {"__contains__", "__getitem__", "__iter__", "__next__", "__enter__", "__exit__", "__call__", "__main__"}
    | {"__post_init__", "__setitem__", "__bool__", "__add__", "__name__", "__qualname__"}
)

BLOCKED_ATTRIBUTES = frozenset(
    {"f_back", "f_builtins", "f_code", "f_globals", "f_locals", "f_trace", "tb_frame", "tb_next", "tb_lasti"}
    | {"gi_frame", "gi_code", "gi_yieldfrom", "cr_frame", "cr_code", "cr_await", "ag_frame", "ag_code"}
    | {"func_globals", "func_code", "co_code", "co_consts", "mro"}
)

_BY_NAME = {"getattr": 1, "setattr": 1, "delattr": 1, "hasattr": 1, "attrgetter": 0, "methodcaller": 0}
"""Functions that take the name of an attribute, and the place of that argument."""

_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.keyword)


class ProgramNames:
    """Names of one program.

    Attributes:
        every: each identifier with the node it stands in: variables, attributes, arguments, aliases, captures.
        bound: those that the program may bind anywhere, in whatever way (more rather than fewer).
        functions: those it calls, or gives where a function, a type or an exception is expected.
    """

    def __init__(self, tree: ast.AST) -> None:
        self.every: dict[str, ast.AST] = {}
        self.bound: set[str] = set()
        self.functions: set[str] = set()
        for node in ast.walk(tree):
            self._look(node)

    def _look(self, node: ast.AST) -> None:
        if isinstance(node, ast.Constant):
            return
        for name in _identifiers(node):
            self.every.setdefault(name, node)
            if isinstance(node, ast.Name):
                if not isinstance(node.ctx, ast.Load):
                    self.bound.add(name)
            elif not isinstance(node, _PLAIN):
                self.bound.add(name)
        used: list[ast.AST | None]
        if isinstance(node, ast.Call):
            # An argument is mostly a variable, whatever it is called: print(sum), read_chunk(id).
            taking = node.func.id if isinstance(node.func, ast.Name) else ""
            at = {"isinstance": 1, "issubclass": 1, "map": 0, "filter": 0, "reduce": 0}.get(
                taking, len(node.args)
            )
            used = [node.func, *_each(node.args[at : at + 1])]
            used += [word.value for word in node.keywords if word.arg in ("key", "default_factory")]
        elif isinstance(node, ast.ExceptHandler):
            used = [*_each([node.type])]
        elif isinstance(node, ast.Raise):
            used = [node.exc]
        elif isinstance(node, ast.MatchClass):
            used = [node.cls]
        else:
            return
        self.functions.update(part.id for part in used if isinstance(part, ast.Name))


def _each(nodes: Iterable[ast.AST | None]) -> Iterator[ast.AST | None]:
    for node in nodes:
        if isinstance(node, ast.Tuple):
            yield from node.elts
        else:
            yield node


def _identifiers(node: ast.AST) -> Iterator[str]:
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, str):
            yield value
            if "." in value:
                # import a.b binds a.
                yield value.partition(".")[0]
        elif isinstance(value, list):
            yield from (part for part in value if isinstance(part, str))


def names_of(tree: ast.AST) -> ProgramNames:
    """Return the names of a program."""
    return ProgramNames(tree)


def reaches_inside(tree: ast.AST) -> bool:
    """Whether a program might reach what belongs to the interpreter or the worker rather than to itself.

    It asks for a name or attribute that begins with an underscore (its own ``self._x`` apart), or for attributes by
    names that are made at run time. After such a program a worker that is plain CPython is not used again.
    """
    called: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            at = _BY_NAME.get(function)
            if at is not None:
                called.add(id(node.func))
                asked = node.args[at : at + 1] if at else node.args
                if node.keywords or not asked or not all(_ordinary(part) for part in asked):
                    return True
        elif isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            inner = node.attr.startswith("_") and not (own and not node.attr.startswith("__"))
            if (inner and node.attr not in SAFE_DUNDERS) or node.attr in BLOCKED_ATTRIBUTES:
                return True
            if node.attr in _BY_NAME and id(node) not in called:
                return True
        elif isinstance(node, ast.Name):
            hidden = node.id.startswith("__") and node.id not in SAFE_DUNDERS
            if hidden or node.id in ("vars", "globals") or (node.id in _BY_NAME and id(node) not in called):
                return True
        elif isinstance(node, ast.alias):
            if any(part.startswith("_") and part != "__future__" for part in node.name.split(".")):
                return True
        elif isinstance(node, ast.MatchClass) and any(name.startswith("_") for name in node.kwd_attrs):
            return True
    return False


def _ordinary(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value[:1] != "_"
        and "._" not in node.value
    )
