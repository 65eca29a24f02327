"""Checks of programs before they run: syntax, names, and constructs that are not allowed.

A violation is reported with its line and a remedy, such as ``line 3: import os is not allowed``, so that the model can
correct itself in one turn (docs/spec/sandbox.md, Language). The checks are not the security boundary, since they can be
circumvented: the engine's worker process confines the program.

The parser of CPython 3.11 and 3.12 counts its depth for the whole interpreter: if two threads parse at the same time,
both can fail with a SystemError. A lock prevents that. Parsing blocks the interpreter, so the number of
tokens is bounded. Names are collected from all fields of a node, not by type of statement, so that syntax of a later
Python (``type X = …``) is covered.
"""

from __future__ import annotations

import ast
import math
import threading
from collections.abc import Iterator, Set

from rlm_mem.errors import SandboxViolation
from rlm_mem.sandbox.engine import program_error
from rlm_mem.sandbox.hints import hint_for
from rlm_mem.sandbox.reference import PAGES
from rlm_mem.sandbox.values import NODES_PER_CLOCK_CHECK, check_deadline
from rlm_mem.text.patterns import late

MAX_TOKENS = 20_000
"""Maximum words and signs of a text that is parsed."""

_TOKEN = late(r"\w+|[^\w\s]")
_LOCK = threading.Lock()


class TooManyTokens(ValueError):
    """A text has more words and signs than are parsed."""


_NEWLINE = late(r"\r\n|\r|\n")


def split_before_final(code: str, tree: ast.Module) -> list[tuple[str, ast.Module]]:
    """Split a program before a last statement that calls FINAL; others are not split. Lines keep their numbers.

    FINAL ends a program at the call, and the variables of an ended program are not kept.
    """
    last = tree.body[-1] if len(tree.body) > 1 else None
    call = last.value if isinstance(last, ast.Expr | ast.Return) else None
    called = call.func if isinstance(call, ast.Call) else None
    if last is None or not isinstance(called, ast.Name) or called.id != "FINAL":
        return [(code, tree)]
    starts = [0, *(one.end() for one in _NEWLINE.finditer(code))]
    line = code[starts[last.lineno - 1] :]
    begin = starts[last.lineno - 1] + len(line.encode()[: last.col_offset].decode())
    # The value of the first part is not needed.
    parts = (f"{code[:begin]}\nNone", "\n" * (last.lineno - 1) + code[begin:])
    return [(part, syntax_tree(part)) for part in parts]


def syntax_tree(code: str) -> ast.Module:
    """Parse ``code``.

    Raises:
        TooManyTokens: it has more than ``MAX_TOKENS`` words and signs.
        Exception: the exceptions of ``ast.parse`` for text that is not a program.
    """
    tokens = sum(1 for _ in _TOKEN.finditer(code))
    if tokens > MAX_TOKENS:
        raise TooManyTokens(
            f"the program has {tokens:,} words and signs; at most {MAX_TOKENS:,} are accepted"
        )
    with _LOCK:
        try:
            return ast.parse(code)
        except SystemError:
            # A library parsed at the same time: the next attempt counts its depth from zero.
            return ast.parse(code)


def parse(code: str) -> ast.Module | None:
    """Return the syntax tree of ``code``, or None if Python cannot parse it or it is too long to be parsed."""
    try:
        return syntax_tree(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def syntax_error_line(code: str) -> int:
    """Return the line, from 1, of the first syntax error of ``code``; 1 if it is unknown."""
    try:
        syntax_tree(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return getattr(error, "lineno", None) or 1
    return 1


SAFE_DUNDERS = frozenset(
    {"__init__", "__name__", "__doc__", "__len__", "__str__", "__repr__", "__eq__", "__lt__", "__hash__"}
    | {"__contains__", "__getitem__", "__iter__", "__next__", "__enter__", "__exit__", "__call__", "__main__"}
    | {"__post_init__", "__setitem__", "__bool__", "__add__", "__qualname__"}
)

BLOCKED_ATTRIBUTES = frozenset(
    {"f_back", "f_builtins", "f_code", "f_globals", "f_locals", "f_trace", "tb_frame", "tb_next", "tb_lasti"}
    | {"gi_frame", "gi_code", "gi_yieldfrom", "cr_frame", "cr_code", "cr_await", "ag_frame", "ag_code"}
    | {"func_globals", "func_code", "co_code", "co_consts", "mro"}
)

REBINDABLE = frozenset(name for name, page in PAGES.items() if page.rebindable)
"""Host functions whose names programs may use for their results: ``turns = turns(author="Ana")``."""

_ALIAS = "__"
"""Suffix, inside the sandbox, of a variable with the name of a host function."""

_MODULES = "re json math datetime collections itertools functools statistics random string"
READY = {
    **{name: f"import {name}" for name in _MODULES.split()},
    **dict.fromkeys(("Counter", "defaultdict", "deque"), "from collections import {}"),
    **dict.fromkeys(("timedelta", "date"), "from datetime import {}"),
}
"""Names that programs need not import, each with the statement that imports it."""

_DATETIME_PARTS = frozenset(
    ("datetime", "date", "time", "timedelta", "timezone", "UTC", "MINYEAR", "MAXYEAR")
)

_ATTRIBUTE_FUNCTIONS = {
    **dict.fromkeys(("getattr", "setattr", "delattr", "hasattr"), 1),
    **dict.fromkeys(("attrgetter", "methodcaller"), 0),
}
"""Functions that take the name of an attribute, with the position of that argument."""

_TAKES_CALLABLE = {"isinstance": 1, "issubclass": 1, "map": 0, "filter": 0, "reduce": 0}
"""Built-ins that take a function or a type, with the position of that argument."""

_PLAIN = (ast.Name, ast.Attribute, ast.Constant, ast.keyword)


class ProgramNames:
    """Names of one program.

    Attributes:
        every: all identifiers (variables, attributes, arguments, aliases, captures), each with a node that has it.
        bound: those that the program may bind anywhere (an overestimate).
        functions: those that it calls, or passes in place of a function, a type or an exception.
    """

    def __init__(self, tree: ast.AST) -> None:
        self.every: dict[str, ast.AST] = {}
        self.bound: set[str] = set()
        self.functions: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant):
                continue
            for name in _identifiers(node):
                self.every.setdefault(name, node)
                stored = isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
                if stored or not isinstance(node, _PLAIN):
                    self.bound.add(name)
            used: list[ast.AST | None] = []
            if isinstance(node, ast.Call):
                # Arguments are usually variables, even with the name of a built-in: print(sum), read_chunk(id).
                callee = node.func.id if isinstance(node.func, ast.Name) else ""
                used = [node.func, *node.args[_TAKES_CALLABLE.get(callee, len(node.args)) :][:1]]
                used += [word.value for word in node.keywords if word.arg in ("key", "default_factory")]
            elif isinstance(node, ast.ExceptHandler):
                used = [node.type]
            elif isinstance(node, ast.Raise):
                used = [node.exc]
            elif isinstance(node, ast.MatchClass):
                used = [node.cls]
            for part in used:
                each = part.elts if isinstance(part, ast.Tuple) else [part]
                self.functions.update(one.id for one in each if isinstance(one, ast.Name))


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


def variable_name(name: str) -> str:
    """Return the program's name of a variable that is called ``name`` in the sandbox."""
    plain = name.removesuffix(_ALIAS)
    return plain if plain in REBINDABLE else name


def separate_variables(
    code: str, tree: ast.Module, earlier: Set[str]
) -> tuple[str, ast.Module, frozenset[str]]:
    """Rename variables that have the name of a host function, so that both can be used.

    A call ``turns(…)`` always refers to the host function; any other use refers to the variable once it was assigned.

    Args:
        earlier: names of such variables in earlier programs.

    Returns:
        The program and its tree with these variables renamed, and the names of all of them so far.
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
            # Python 3.11 has no positions inside an f-string: unparse the tree instead.
            for one in places:
                one.id += _ALIAS
            fresh = ast.unparse(tree)
            return fresh, syntax_tree(fresh), frozenset(names)
        end = node.col_offset + len(old)
        lines[node.lineno - 1] = line[:end] + _ALIAS.encode() + line[end:]
    fresh = b"\n".join(lines).decode("utf-8", "surrogatepass")
    return fresh, syntax_tree(fresh), frozenset(names)


class _Variables(ast.NodeVisitor):
    """Collects uses of names of :data:`REBINDABLE` as module variables of a program.

    Attributes:
        stored: names that it assigns.
        used: occurrences of each name, except as the function of a call.
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
    """Return the names that a program uses without binding them, each with the import that provides it.

    ``datetime`` is the module if the program uses ``datetime.timedelta`` or similar, else the class.

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


def may_reach_interpreter(tree: ast.AST) -> bool:
    """Return whether a program might access internals of the interpreter or the worker.

    Such a program uses a name or attribute that begins with an underscore (except its own ``self._x``), or attributes
    whose names are computed at run time. The CPython worker is replaced after it.
    """
    called: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            at = _ATTRIBUTE_FUNCTIONS.get(function)
            if at is not None:
                called.add(id(node.func))
                attributes = node.args[at : at + 1] if at else node.args
                if node.keywords or not attributes or not all(_is_plain_name(part) for part in attributes):
                    return True
        elif isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            inner = node.attr.startswith("_") and not (own and not node.attr.startswith("__"))
            if (inner and node.attr not in SAFE_DUNDERS) or node.attr in BLOCKED_ATTRIBUTES:
                return True
            if node.attr in _ATTRIBUTE_FUNCTIONS and id(node) not in called:
                return True
        elif isinstance(node, ast.Name):
            hidden = node.id.startswith("__") and node.id not in SAFE_DUNDERS
            if (
                hidden
                or node.id in ("vars", "globals")
                or (node.id in _ATTRIBUTE_FUNCTIONS and id(node) not in called)
            ):
                return True
        elif isinstance(node, ast.alias):
            if any(part.startswith("_") and part != "__future__" for part in node.name.split(".")):
                return True
        elif isinstance(node, ast.MatchClass) and any(name.startswith("_") for name in node.kwd_attrs):
            return True
    return False


def _is_plain_name(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and node.value[:1] != "_"
        and "._" not in node.value
    )


PRELUDE_PREFIX = "_rlm_"
"""Prefix of the names of the compatibility layer, which a program may neither use nor bind."""

_BLOCKED_NAMES = {
    "eval": "write the expression itself",
    "exec": "write the statements themselves",
    "compile": "write the statements themselves, or use re.compile for patterns",
    "open": "there is no file system; memories are read with read_chunk(chunk_id)",
    "__import__": "write an import statement for one of the allowed modules",
    "input": "there is no user to answer; use the question you were given",
    "breakpoint": "print what you want to see",
    "exit": "call FINAL(answer) to finish",
    "quit": "call FINAL(answer) to finish",
    "memoryview": "use bytes or str",
}

_NO_SYSTEM_ACCESS = "there is no file system, network or process; memories are read with read_chunk"
_MODULE_REMEDIES = {
    **dict.fromkeys(("os", "sys", "pathlib", "subprocess", "shutil", "glob", "tempfile"), _NO_SYSTEM_ACCESS),
    **dict.fromkeys(
        ("socket", "urllib", "http", "requests", "ftplib", "smtplib", "httpx"), _NO_SYSTEM_ACCESS
    ),
    **dict.fromkeys(("numpy", "pandas"), "write it with lists, dicts, math and statistics"),
    **dict.fromkeys(
        ("asyncio", "threading", "concurrent", "multiprocessing"),
        "to ask several prompts at once, call llm_query_batched(prompts)",
    ),
    "enum": "use plain constants or a dict",
    "io": "collect the pieces in a list and join them",
    "logging": "print what you want to see",
    "pickle": "use json",
    "uuid": "use a counter",
}

_SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
"""Nodes inside which names are not variables of the module."""

_DUNDER = late(r"__\w+__\Z")
_FORMAT_FIELD = late(r"\{([^{}]*+)\}")
_LONG_WORD = late(r"\w{5,}+")
_BLOCKED_STRINGS = late(
    r"__(?:class|bases?|subclasses|mro|globals|code|builtins|import|dict|getattribute|reduce(?:_ex)?|closure"
    r"|func|self|wrapped|loader|spec|traceback|context|cause|init_subclass|subclasshook)__\Z"
)


def program_tree(code: str) -> ast.Module:
    """Return the syntax tree of a program.

    Raises:
        ProgramError: a SyntaxError with its line. A program that this Python cannot parse cannot be checked, so it is
            not run even if an engine supports newer syntax.
        SandboxViolation: it has too many words and signs.
    """
    try:
        return syntax_tree(code)
    except TooManyTokens as error:
        raise SandboxViolation(
            str(error), hint="write a loop instead of repeated statements, and read texts with read_chunk"
        ) from None
    except SyntaxError as error:
        message = str(error.msg or "invalid syntax")[:300]
        hint = hint_for("SyntaxError", message)
        raise program_error("SyntaxError", message, line=error.lineno, hint=hint) from None
    except ValueError:
        message = "the program contains characters that are not allowed in a program"
        raise program_error("SyntaxError", message) from None
    except (RecursionError, MemoryError):
        message, hint = "the program is nested too deeply", "Use fewer nested brackets."
        raise program_error("SyntaxError", message, hint=hint) from None


def check_names(names: ProgramNames) -> None:
    """Refuse names of the sandbox's compatibility layer.

    Raises:
        SandboxViolation: the program contains such a name.
    """
    for name, node in names.every.items():
        if name.startswith(PRELUDE_PREFIX):
            raise _violation(
                node, f"names that begin with {PRELUDE_PREFIX} are reserved", "Choose another name."
            )


def check_program(
    code: str, *, importable: Set[str], reserved: Set[str], max_chars: int, deadline: float = math.inf
) -> ast.Module:
    """Check one program and return its syntax tree.

    Args:
        importable: top-level modules it may import; dotted names are checked by their full path first.
        reserved: names of host functions, which it may call but not redefine.
        max_chars: maximum characters of the program.
        deadline: seconds on the monotonic clock after which the checks raise TimeoutError.

    Raises:
        ProgramError: this Python cannot parse it.
        SandboxViolation: the first construct that is not allowed, with its line.
        TimeoutError: the deadline passed.
    """
    if len(code) > max_chars:
        raise SandboxViolation(
            f"the program has {len(code):,} characters; at most {max_chars:,} are accepted",
            hint="send a shorter program and read texts with read_chunk instead of pasting them",
        )
    tree = program_tree(code)
    check_names(ProgramNames(tree))
    first: SandboxViolation | None = None
    for violation in _violations(tree, importable, reserved, deadline):
        if first is None or (violation.line or 0) < (first.line or 0):
            first = violation
    if first is not None:
        raise first
    return tree


def _violation(node: ast.AST, what: str, hint: str) -> SandboxViolation:
    line = getattr(node, "lineno", None)
    place = f"line {line}: " if line else ""
    return SandboxViolation(f"{place}{what}", line=line, hint=hint)


def _violations(
    tree: ast.Module, importable: Set[str], reserved: Set[str], deadline: float
) -> Iterator[SandboxViolation]:
    # An explicit stack, since a program may be nested deeper than Python's recursion limit.
    stack: list[tuple[ast.AST, bool]] = [(tree, True)]
    seen = 0
    while stack:
        node, at_module = stack.pop()
        seen += 1
        if seen % NODES_PER_CLOCK_CHECK == 0:
            check_deadline(deadline)
        yield from _imports(node, importable, reserved, at_module)
        yield from _names(node, reserved, at_module)
        yield from _attributes(node)
        inner = at_module and not isinstance(node, _SCOPES)
        stack.extend((child, inner) for child in ast.iter_child_nodes(node))


def _imports(
    node: ast.AST, importable: Set[str], reserved: Set[str], at_module: bool
) -> Iterator[SandboxViolation]:
    if isinstance(node, ast.Import):
        modules = [alias.name for alias in node.names]
        bound = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        modules = ["." * node.level + (node.module or "")]
        bound = [alias.asname or alias.name for alias in node.names]
    else:
        return
    for module in modules:
        # `collections.abc` may be allowed by its full name or by its package.
        if module not in importable and module.partition(".")[0] not in importable:
            allowed = ", ".join(sorted(name for name in importable if "." not in name and name[0] != "_"))
            instead = _MODULE_REMEDIES.get(module.partition(".")[0], "")
            hint = f"{instead[:1].upper()}{instead[1:]}. " if instead else ""
            yield _violation(
                node, f"import {module} is not allowed", f"{hint}A program may import: {allowed}."
            )
    if at_module:
        for name in bound:
            if name in reserved:
                yield _redefinition(node, name)


def _redefinition(node: ast.AST, name: str) -> SandboxViolation:
    return _violation(
        node,
        f"{name} is provided by the sandbox and cannot be redefined",
        f"Call {name}(...), and choose another name (for example my_{name.lower()}) for your own.",
    )


def _names(node: ast.AST, reserved: Set[str], at_module: bool) -> Iterator[SandboxViolation]:
    if isinstance(node, ast.Name):
        name = node.id
        if name in _BLOCKED_NAMES:
            yield _violation(node, f"{name} is not allowed", f"Instead: {_BLOCKED_NAMES[name]}.")
        elif _DUNDER.match(name) and name not in SAFE_DUNDERS:
            yield _violation(node, f"{name} is not allowed", "Use ordinary names only.")
        elif at_module and name in reserved - REBINDABLE and not isinstance(node.ctx, ast.Load):
            yield _redefinition(node, name)
    elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and at_module:
        # A result may have the name of a host function; another function may not.
        assigned = node.value
        if isinstance(assigned, ast.Lambda) or (
            isinstance(assigned, ast.Name) and assigned.id in reserved - REBINDABLE
        ):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and target.id in REBINDABLE & reserved:
                    yield _redefinition(node, target.id)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        # A definition is refused at any depth, since it is always meant to replace the host function.
        if node.name in reserved:
            yield _redefinition(node, node.name)
    elif isinstance(node, ast.Global | ast.Nonlocal):
        for name in node.names:
            if name in reserved:
                yield _redefinition(node, name)
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar):
        if at_module and node.name in reserved:
            yield _redefinition(node, str(node.name))
    elif isinstance(node, ast.MatchMapping) and at_module and node.rest in reserved:
        yield _redefinition(node, str(node.rest))


def _attributes(node: ast.AST) -> Iterator[SandboxViolation]:
    if isinstance(node, ast.Attribute):
        if _blocked_attribute(node.attr):
            yield _violation(
                node, f"the attribute {node.attr} is not allowed", "Use ordinary methods and fields only."
            )
    elif isinstance(node, ast.MatchClass):
        for attribute in node.kwd_attrs:
            if _blocked_attribute(attribute):
                yield _violation(node, f"the attribute {attribute} is not allowed", "Match ordinary fields.")
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
        if "__" in text and (_BLOCKED_STRINGS.match(text) or _names_dunder(text)):
            yield _violation(
                node, "text that names interpreter attributes is not allowed", "Use ordinary fields only."
            )


def _names_dunder(text: str) -> bool:
    """Return whether a field of a format string accesses an attribute such as `__class__`."""
    for field in _FORMAT_FIELD.finditer(text):
        for word in _LONG_WORD.findall(field[1]):
            opening = word.find("__")
            if opening >= 0 and word.find("__", opening + 3) >= 0:
                return True
    return False


def _blocked_attribute(name: str) -> bool:
    return name in BLOCKED_ATTRIBUTES or (bool(_DUNDER.match(name)) and name not in SAFE_DUNDERS)
