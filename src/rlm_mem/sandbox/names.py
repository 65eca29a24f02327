"""Names in a program: those it binds and uses, those that need no import, and variables named after functions.

Gone through by field, not by kind of statement: syntax of a later Python (``type X = …``) is covered as soon as the
parser knows it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Set

from rlm_mem.sandbox.parsing import syntax_tree

__all__ = [
    "BLOCKED_ATTRIBUTES", "REBINDABLE", "SAFE_DUNDERS", "ProgramNames", "names_of", "reaches_inside", "ready_imports",
    "variable_name", "with_own_variables",
]  # fmt: skip

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

REBINDABLE = frozenset(
    {"turns", "passages", "instructions", "updates", "contradictions", "timeline", "dates", "neighbors"}
    | {"all_chunks", "stats", "page", "help"}
)
"""Host functions after which programs name their results: ``turns = turns(author="Ana")``."""

_ALIAS = "__"
"""What the variable that a program names after a host function ends with inside the sandbox."""

_MODULES = (
    "re",
    "json",
    "math",
    "datetime",
    "collections",
    "itertools",
    "functools",
    "statistics",
    "random",
    "string",
)
READY = {
    **{name: f"import {name}" for name in _MODULES},
    **dict.fromkeys(("Counter", "defaultdict", "deque"), "from collections import {}"),
    **dict.fromkeys(("timedelta", "date"), "from datetime import {}"),
}
"""How each name that needs no import is brought in."""

_DATETIME_PARTS = frozenset(
    ("datetime", "date", "time", "timedelta", "timezone", "UTC", "MINYEAR", "MAXYEAR")
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


def variable_name(name: str) -> str:
    """The name that a program gave to a variable which is kept under this one."""
    plain = name.removesuffix(_ALIAS)
    return plain if plain in REBINDABLE else name


def with_own_variables(
    code: str, tree: ast.Module, earlier: Set[str]
) -> tuple[str, ast.Module, frozenset[str]]:
    """Keep variables that are named after host functions apart from these.

    A call ``turns(…)`` is always one of the host function; everything else is the variable, once one was assigned.

    Args:
        code: the program.
        tree: its syntax tree.
        earlier: such variables of earlier programs.

    Returns:
        The program and its tree with these variables under another name, and the names of all of them so far.
    """
    found = _Variables()
    found.visit(tree)
    names = earlier | found.stored
    places = [node for name in names for node in found.used.get(name, ())]
    if not places:
        return code, tree, frozenset(names)
    lines = code.encode("utf-8", "surrogatepass").split(b"\n")
    for node in sorted(places, key=lambda one: (one.lineno, one.col_offset), reverse=True):
        old = node.id.encode()
        line = lines[node.lineno - 1] if node.lineno <= len(lines) else b""
        if line[node.col_offset : node.col_offset + len(old)] != old:
            # Inside of a longer f-string Python 3.11 does not tell places: the text is written anew from the tree.
            for one in places:
                one.id += _ALIAS
            fresh = ast.unparse(tree)
            return fresh, syntax_tree(fresh), frozenset(names)
        end = node.col_offset + len(old)
        lines[node.lineno - 1] = line[:end] + _ALIAS.encode() + line[end:]
    fresh = b"\n".join(lines).decode("utf-8", "surrogatepass")
    return fresh, syntax_tree(fresh), frozenset(names)


class _Variables(ast.NodeVisitor):
    """Where a program uses names of :data:`REBINDABLE` as variables of its module.

    Attributes:
        stored: those that it assigns.
        used: for each name, where it stands other than as the function of a call.
    """

    def __init__(self) -> None:
        self.stored: set[str] = set()
        self.used: dict[str, list[ast.Name]] = {}
        self._local: list[set[str]] = []

    def visit_Name(self, node: ast.Name) -> None:
        if node.id in REBINDABLE and not any(node.id in names for names in self._local):
            self.used.setdefault(node.id, []).append(node)
            if not isinstance(node.ctx, ast.Load):
                self.stored.add(node.id)

    def visit_Call(self, node: ast.Call) -> None:
        if not (isinstance(node.func, ast.Name) and node.func.id in REBINDABLE):
            self.visit(node.func)
        for part in (*node.args, *node.keywords):
            self.visit(part)

    def _scope(self, node: ast.AST) -> None:
        bound = {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
        bound |= {
            one.id
            for one in ast.walk(node)
            if isinstance(one, ast.Name) and not isinstance(one.ctx, ast.Load)
        }
        self._local.append(bound)
        self.generic_visit(node)
        self._local.pop()

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _scope
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _scope


def ready_imports(tree: ast.Module, taken: Set[str]) -> dict[str, str]:
    """The names that a program uses without having bound them, each with the import that provides it.

    ``datetime`` is the module where the program takes ``datetime.timedelta`` and the like from it, else the class.

    Args:
        taken: names that this or an earlier program of the session may have bound.
    """
    used = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in READY and isinstance(node.ctx, ast.Load)
    }
    wanted = {name: READY[name].format(name) for name in sorted(used - taken)}
    if "datetime" in wanted:
        parts = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "datetime"
        }
        if not parts & _DATETIME_PARTS:
            wanted["datetime"] = "from datetime import datetime"
    return wanted


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
