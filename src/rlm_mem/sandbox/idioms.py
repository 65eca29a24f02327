"""Rewrites everyday Python idioms that Monty lacks into supported ones (generators, ``del``, ``key=d.get``, …).

Models often write ``max(d, key=d.get)`` and ``next((x for …), None)``. An error costs a turn of the model; rewriting
the tree takes microseconds. A program without such an idiom is unchanged.
"""

from __future__ import annotations

import ast
import math
from bisect import bisect_right
from collections.abc import Container

from rlm_mem.record import FrozenRecord
from rlm_mem.sandbox.idiom_generators import (
    assign,
    call_of,
    make_eager,
    name_node,
    short_circuit,
    split_base_classes,
    yields,
)
from rlm_mem.sandbox.idiom_tables import (
    CALLBACK_SAFE_BUILTINS,
    EXCEPTIONS,
    METHODS,
    TYPE_NAMES,
    TYPES_OWN_METHODS,
)
from rlm_mem.sandbox.policy import syntax_tree
from rlm_mem.sandbox.prelude import REQUIRES
from rlm_mem.sandbox.prelude_modules import CLASSES, MODULES
from rlm_mem.sandbox.values import NODES_PER_CLOCK_CHECK, check_deadline

EMULATED = frozenset(MODULES) | {"contextlib", "collections.abc"}
"""Modules that a program may import although Monty lacks them."""

_Result = tuple[list[ast.stmt], list[str]] | None


def _emulated(module: str, name: str) -> ast.expr:
    full_name = f"_rlm_{module}_{name}"
    return call_of(full_name) if (module, name) in CLASSES else name_node(full_name)


def _space(module: str) -> ast.expr:
    """Return the module as an object: ``_rlm_space(mean=_rlm_statistics_mean, …)``."""
    names, _ = MODULES[module]
    words = [ast.keyword(name, _emulated(module, name)) for name in names]
    return call_of("_rlm_space", keywords=words)


def rewrite_import(node: ast.Import) -> _Result:
    """Rewrite ``import statistics as st`` → ``st = <the emulated module>``; None if nothing must change."""
    if not any(alias.name in EMULATED for alias in node.names):
        return None
    statements: list[ast.stmt] = []
    pieces: list[str] = []
    for alias in node.names:
        if alias.name in MODULES:
            bound = alias.asname or alias.name
            pieces.append(alias.name)
            statements.append(assign(bound, _space(alias.name)))
        elif alias.name == "collections.abc":
            statements.append(ast.Import([ast.alias("collections")]))
        elif alias.name != "contextlib":
            statements.append(ast.Import([alias]))
    return statements or [ast.Pass()], pieces


_REPLACEMENTS: dict[tuple[str, str], str] = {
    ("collections", "OrderedDict"): "dict",
    ("functools", "cmp_to_key"): "",
    ("functools", "wraps"): "_rlm_wraps",
    ("contextlib", "suppress"): "",
    ("contextlib", "nullcontext"): "",
}
"""Replacements of missing names; empty if their uses are rewritten instead."""

_TYPING_MISSING = {"NamedTuple", "TypedDict", "Counter", "DefaultDict", "Deque", "Text", "Hashable"}


def rewrite_import_from(node: ast.ImportFrom) -> _Result:
    """Rewrite ``from statistics import mean`` → ``mean = _rlm_statistics_mean``; None if nothing must change."""
    module = node.module or ""
    if module in MODULES:
        return _from_emulated(node, module)
    kept: list[ast.alias] = []
    statements: list[ast.stmt] = []
    pieces: list[str] = []
    for alias in node.names:
        bound = alias.asname or alias.name
        stand_in = _REPLACEMENTS.get((module, alias.name))
        if stand_in is not None:
            if stand_in:
                statements.append(assign(bound, name_node(stand_in)))
            if stand_in.startswith("_rlm_"):
                pieces.append(stand_in.removeprefix("_rlm_"))
        elif module == "collections.abc" or (module == "typing" and alias.name in _TYPING_MISSING):
            # They are only used in annotations, which Monty does not evaluate.
            statements.append(assign(bound, name_node("list")))
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
            # Unchanged: Monty reports the missing module, and the hint lists what is available.
            return None
        statements.append(assign(alias.asname or alias.name, _emulated(module, alias.name)))
    return statements, [module]


def as_text(value: ast.expr) -> ast.expr:
    """Return ``''.join(_rlm_value(value))``, which is text even if the program replaced the function."""
    return ast.Call(ast.Attribute(ast.Constant(""), "join", ast.Load()), [call_of("_rlm_value", value)], [])


def _calling_method(name: str, method: str) -> ast.Lambda:
    """Return ``lambda *_a, **_k: name.method(*_a, **_k)`` as a node."""
    found = ast.Attribute(name_node(name), method, ast.Load())
    call = ast.Call(found, [ast.Starred(name_node("_a"), ast.Load())], [ast.keyword(None, name_node("_k"))])
    return ast.Lambda(ast.arguments([], [], ast.arg("_a"), [], [], ast.arg("_k"), []), call)


class Rewriter(ast.NodeTransformer):
    """Rewrites one program in place.

    New statements get the line of the one that they replace, for :func:`_line_map`; expressions need none.

    Args:
        tree: the whole program; names that it binds are not treated as built-ins.
        deadline: seconds on the monotonic clock at which visiting raises TimeoutError.

    Attributes:
        changed: whether anything was rewritten.
        pieces: pieces of the prelude that the result needs, in order of first use.
    """

    def __init__(self, tree: ast.Module, deadline: float = math.inf) -> None:
        self.changed = False
        self._deadline = deadline
        self._visited = 0
        self.pieces: dict[str, None] = {}
        self._bound = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        } | {
            node.name
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }
        self._hoisted: list[ast.stmt] = []
        self._nested = 0  # depth in lambdas, comprehensions and classes, which nothing can be hoisted out of
        self._count = 0
        self._functions = 0

    def _use(self, piece: str) -> None:
        self.changed = True
        self.pieces[piece] = None

    def _is_builtin(self, node: ast.expr, *names: str) -> bool:
        return isinstance(node, ast.Name) and node.id in names and node.id not in self._bound

    # Statements, each possibly preceded by functions hoisted out of it.

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt] | None:
        """Rewrite a node; functions hoisted out of a statement are placed before it."""
        self._visited += 1
        if self._visited % NODES_PER_CLOCK_CHECK == 0:
            check_deadline(self._deadline)
        if not isinstance(node, ast.stmt):
            return super().visit(node)  # type: ignore[no-any-return]
        outer, self._hoisted = self._hoisted, []
        result = super().visit(node)
        mine, self._hoisted = self._hoisted, outer
        if not mine:
            return result  # type: ignore[no-any-return]
        for statement in mine:
            ast.copy_location(statement, node)
        tail = result if isinstance(result, list) else [] if result is None else [result]
        return [*mine, *tail]

    def visit_Import(self, node: ast.Import) -> ast.AST | list[ast.stmt]:
        return self._imports(node, rewrite_import(node))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | list[ast.stmt]:
        return self._imports(node, rewrite_import_from(node))

    def _imports(
        self, node: ast.stmt, found: tuple[list[ast.stmt], list[str]] | None
    ) -> ast.AST | list[ast.stmt]:
        if found is None:
            return node
        statements, pieces = found
        self.changed = True
        for piece in pieces:
            self._use(piece)
        for statement in statements:
            ast.copy_location(statement, node)
        return statements

    def visit_Delete(self, node: ast.Delete) -> ast.AST | list[ast.stmt]:
        out: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Name):
                # Monty cannot unbind names; assigning None frees the memory, which is the usual purpose of ``del``.
                out.append(assign(target.id, ast.Constant(None)))
            elif isinstance(target, ast.Subscript):
                value = self.visit(target.value)
                place = self.visit(target.slice)
                assert isinstance(value, ast.expr) and isinstance(place, ast.expr)
                if isinstance(place, ast.Slice):
                    out.append(
                        ast.Assign([ast.Subscript(value, place, ast.Store())], ast.List([], ast.Load()))
                    )
                else:
                    out.append(ast.Expr(ast.Call(ast.Attribute(value, "pop", ast.Load()), [place], [])))
            else:
                return node
        self.changed = True
        for statement in out:
            ast.copy_location(statement, node)
        return out

    def visit_With(self, node: ast.With) -> ast.AST:
        item = node.items[0]
        call = item.context_expr
        if (
            len(node.items) == 1
            and item.optional_vars is None
            and isinstance(call, ast.Call)
            and _called_name(call) == "suppress"
        ):
            self.changed = True
            kinds: ast.expr = call.args[0] if len(call.args) == 1 else ast.Tuple(call.args, ast.Load())
            replaced = ast.Try(node.body, [ast.ExceptHandler(kinds, None, [ast.Pass()])], [], [])
            return self.generic_visit(ast.copy_location(replaced, node))
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        replaced = split_base_classes(node)
        if replaced is not None:
            self.changed = True
            ast.copy_location(replaced, node)
            if not isinstance(replaced, ast.ClassDef):
                if isinstance(replaced, ast.Assign) and isinstance(replaced.value, ast.Call):
                    self._use("namedtuple")
                return replaced
            node = replaced
        return self._inner(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if yields(node):
            self.changed = True
            make_eager(node)
        return self._function(node)

    def _function(self, node: ast.AST) -> ast.AST:
        outer, self._nested = self._nested, 0
        self._functions += 1
        self.generic_visit(node)
        self._functions -= 1
        self._nested = outer
        return node

    visit_AsyncFunctionDef = _function

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        node.value = self._as_iterator(node.value)
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        self.generic_visit(node)
        if node.value is not None:
            node.value = self._as_iterator(node.value)
            if not self._functions:
                # A top-level return is accepted (docs/spec/sandbox.md, Functions), and its value leaves the sandbox.
                self.changed = True
                node.value = as_text(node.value)
        return node

    def _as_iterator(self, value: ast.expr) -> ast.expr:
        """Wrap generator expressions, zip, map and so on, which are lists in Monty, so that iteration exhausts them."""
        lazy = isinstance(value, ast.GeneratorExp) or (
            isinstance(value, ast.Call)
            and self._is_builtin(value.func, "zip", "map", "filter", "enumerate", "reversed")
        )
        if not lazy:
            return value
        self.changed = True
        return call_of("_rlm_b_iter", value)

    # Expressions.

    def _inner(self, node: ast.AST) -> ast.AST:
        self._nested += 1
        self.generic_visit(node)
        self._nested -= 1
        return node

    visit_Lambda = visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _inner

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load):
            return node
        if self._is_builtin(node.value, *TYPE_NAMES):
            if node.attr == "maketrans":
                self._use("maketrans")
                return name_node("_rlm_maketrans")
            if node.attr in TYPES_OWN_METHODS:
                return node
            # str.lower as a value: lambda text, *rest: text.lower(*rest)
            self.changed = True
            made = _calling_method("_s", node.attr)
            made.args.posonlyargs = [ast.arg("_s")]
            return made
        if node.attr in METHODS and not isinstance(node.value, ast.Call):
            return self._bound_method(node)
        return node

    def _bound_method(self, node: ast.Attribute) -> ast.expr:
        """Rewrite ``d.get`` as a value: ``_rlm_method(d, 'get', lambda _o: lambda *_a, **_k: _o.get(*_a, **_k))``."""
        self._use("method")
        arguments = ast.arguments([], [ast.arg("_o")], None, [], [], None, [])
        make = ast.Lambda(arguments, _calling_method("_o", node.attr))
        return call_of("_rlm_method", node.value, ast.Constant(node.attr), make)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        func = node.func
        if isinstance(func, ast.Attribute):
            return self._method_call(node, func)
        if not isinstance(func, ast.Name) or func.id in self._bound:
            return self.generic_visit(node)
        if func.id in ("any", "all", "next"):
            hoisted = self._hoist(node, func.id)
            if hoisted is not None:
                return hoisted
        self.generic_visit(node)
        return self._builtin_call(node, func.id)

    def _builtin_call(self, node: ast.Call, name: str) -> ast.AST:
        if name in ("sorted", "min", "max"):
            key = _keyword(node, "key")
            if name == "sorted" and isinstance(key, ast.Call) and _called_name(key) == "cmp_to_key":
                self._use("cmp")
                rest = [word for word in node.keywords if word.arg != "key"]
                return call_of("_rlm_sorted_cmp", *node.args, key.args[0], keywords=rest)
            if key is not None and not self._is_callback_safe(key):
                return self._renamed(node, name)
        elif name in ("map", "filter"):
            if node.args and not self._is_callback_safe(node.args[0]):
                return self._renamed(node, name)
        elif name == "next":
            if node.args and isinstance(node.args[0], ast.GeneratorExp):
                node.args[0] = ast.ListComp(node.args[0].elt, node.args[0].generators)
            return self._renamed(node, name)
        elif name == "callable" or (name == "object" and not node.args):
            return self._renamed(node, name)
        elif name in EXCEPTIONS and node.args and not node.keywords:
            self._take_one_text(node)
        elif name == "iter" and len(node.args) == 1:
            return node
        elif name == "globals" and not node.args and not self._functions and not self._nested:
            self.changed = True
            return call_of("_rlm_b_locals")
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        if node.msg is not None and not _is_text(node.msg):
            node.msg = self._formatted(node.msg)
        return node

    def _take_one_text(self, node: ast.Call) -> None:
        """Rewrite ``ValueError(5)`` → ``ValueError(f'{5}')``, since exceptions of Monty take one text or nothing."""
        several = len(node.args) > 1 or isinstance(node.args[0], ast.Starred)
        if several or not _is_text(node.args[0]):
            given = ast.Tuple(node.args, ast.Load()) if several else node.args[0]
            node.args = [self._formatted(given)]

    def _formatted(self, value: ast.expr) -> ast.expr:
        self.changed = True
        return ast.JoinedStr([ast.FormattedValue(value, -1)])

    def _renamed(self, node: ast.Call, piece: str) -> ast.Call:
        self._use(piece)
        node.func = name_node(f"_rlm_{piece}")
        return node

    def _method_call(self, node: ast.Call, func: ast.Attribute) -> ast.AST:
        value, name = func.value, func.attr
        if self._is_builtin(value, *TYPE_NAMES) and name not in TYPES_OWN_METHODS and node.args:
            if name == "maketrans":
                self.generic_visit(node)
                return node
            # str.lower(text) → text.lower()
            self.changed = True
            moved = ast.Call(ast.Attribute(node.args[0], name, ast.Load()), node.args[1:], node.keywords)
            return self.visit_Call(ast.copy_location(moved, node))
        func.value = self.visit(value)  # type: ignore[assignment]
        node.args = [self.visit(argument) for argument in node.args]  # type: ignore[misc]
        node.keywords = [self.visit(word) for word in node.keywords]  # type: ignore[misc]
        value = func.value
        if isinstance(value, ast.Name) and value.id == "re" and node.args:
            self._verbose(node)
        if name == "sort" and (key := _keyword(node, "key")) is not None and not self._is_callback_safe(key):
            self._use("sort")
            return call_of("_rlm_sort", value, keywords=node.keywords)
        if name in ("sub", "subn"):
            at = 1 if isinstance(value, ast.Name) and value.id == "re" else 0
            text = len(node.args) > at and isinstance(node.args[at], ast.Constant | ast.JoinedStr)
            if name == "subn" or not text:
                self._use("sub")
                self._use(name)
                return call_of(f"_rlm_{name}", value, *node.args, keywords=node.keywords)
        elif name == "translate" and len(node.args) == 1:
            self._use("translate")
            return call_of("_rlm_translate", value, node.args[0])
        elif name == "format_map" and len(node.args) == 1:
            self.changed = True
            func.attr = "format"
            node.keywords = [ast.keyword(None, node.args.pop())]
        elif name == "dumps" and (default := _keyword(node, "default")) is not None and node.args:
            self._use("dumps")
            node.keywords = [word for word in node.keywords if word.arg != "default"]
            node.args[0] = call_of("_rlm_plain", node.args[0], default)
        elif name == "OrderedDict" and isinstance(value, ast.Name) and value.id == "collections":
            self.changed = True
            node.func = name_node("_rlm_b_dict")
        return node

    def _verbose(self, node: ast.Call) -> None:
        """Rewrite ``re.compile(p, re.VERBOSE)``: Monty lacks the flag, but supports ``(?x)`` before the pattern."""
        flags = [*node.args[1:], *(word.value for word in node.keywords)]
        found = [
            part
            for flag in flags
            for part in ast.walk(flag)
            if isinstance(part, ast.Attribute) and part.attr in ("VERBOSE", "X")
        ]
        if found:
            self.changed = True
            for part in found:
                part.attr = "NOFLAG"
            node.args[0] = ast.BinOp(ast.Constant("(?x)"), ast.Add(), node.args[0])

    def _is_callback_safe(self, function: ast.expr) -> bool:
        """Return whether Monty can call ``function`` from inside a built-in, where it must not call a host function."""
        if isinstance(function, ast.Constant):
            return True
        if isinstance(function, ast.Name):
            return function.id in CALLBACK_SAFE_BUILTINS and function.id not in self._bound
        if not isinstance(function, ast.Lambda):
            return False
        return all(
            isinstance(node.func, ast.Attribute)
            or (isinstance(node.func, ast.Name) and node.func.id in CALLBACK_SAFE_BUILTINS)
            for node in ast.walk(function.body)
            if isinstance(node, ast.Call)
        )

    def _hoist(self, node: ast.Call, name: str) -> ast.AST | None:
        """Move ``any(f(x) for x in xs)`` into a function before the statement, since only a loop stops early.

        This is done only if the parts can call a function of the program or the host; otherwise there is no observable
        difference.
        """
        generator = node.args[0] if node.args else None
        if not isinstance(generator, ast.GeneratorExp) or self._nested or node.keywords:
            return None
        parts = [generator.elt, *(test for step in generator.generators for test in step.ifs)]
        parts += [step.iter for step in generator.generators[1:]]
        if all(
            self._is_callback_safe(ast.Lambda(ast.arguments([], [], None, [], [], None, []), part))
            for part in parts
        ):
            return None
        if any(isinstance(part, ast.NamedExpr) for whole in parts for part in ast.walk(whole)):
            return None
        self.changed = True
        self._count += 1
        helper = f"_rlm_loop{self._count}"
        function = short_circuit(name, generator, helper)
        function.lineno = node.lineno
        ast.fix_missing_locations(function)
        made = self.visit_FunctionDef(function)
        assert isinstance(made, ast.FunctionDef)
        source = self.visit(generator.generators[0].iter)
        rest = [self.visit(argument) for argument in node.args[1:]]
        self._hoisted.append(made)
        return call_of(helper, source, *rest)  # type: ignore[arg-type]


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((word.value for word in node.keywords if word.arg == name), None)


def _called_name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


class Rewritten(FrozenRecord, frozen=True):
    """A program in the form that Monty runs.

    Attributes:
        code: source text.
        pieces: pieces of the prelude that it needs, each after the pieces that it requires.
        guarded: its last value leaves the sandbox as text; otherwise the host must not read it.
        lines: first line of each statement in ``code`` with its original line, or empty if no line changed.
    """

    code: str
    pieces: tuple[str, ...] = ()
    lines: tuple[tuple[int, int], ...] = ()
    guarded: bool = True

    def original_line(self, line: int) -> int:
        """Return the line of the original program for ``line``."""
        if not self.lines:
            return line
        at = bisect_right(self.lines, (line, 1 << 60)) - 1
        return self.lines[max(0, at)][1]


def rewrite(code: str, tree: ast.Module, deadline: float = math.inf) -> Rewritten:
    """Return the program in the form that Monty runs.

    Args:
        tree: its syntax tree; changed in place.
        deadline: seconds on the monotonic clock after which rewriting raises TimeoutError.

    Raises:
        TimeoutError: the deadline passed.
    """
    try:
        rewriter = Rewriter(tree, deadline)
        rewriter.visit(tree)
        if not rewriter.changed and (guarded := _guard_text(code, tree)) is not None:
            return Rewritten(guarded)
        _return_as_text(tree)
        ast.fix_missing_locations(tree)
        fresh = ast.unparse(tree)
        check_deadline(deadline)
        lines = _line_map(tree, syntax_tree(fresh))
    except (RecursionError, ValueError, SyntaxError):
        # Too deeply nested for the rewriter, too long once rewritten, or an f-string that cannot be unparsed: run the
        # original program, so that Monty reports the error.
        return Rewritten(code, guarded=False)
    return Rewritten(fresh, _with_required(rewriter.pieces), lines)


def _is_text(value: ast.expr) -> bool:
    return isinstance(value, ast.JoinedStr) or isinstance(getattr(value, "value", None), str)


def only_reads(tree: ast.Module, functions: Container[str], *, leaves_state: bool = False) -> bool:
    """Return whether a program only reads: it binds no name and calls nothing that could change a value.

    Args:
        tree: its syntax tree before rewriting.
        functions: host functions, which cannot change the namespace.
        leaves_state: it also uses no name that an earlier program bound. Even reading a value may change it: an
            iterator moves on, and a ``defaultdict`` or a class of a program may add something.
    """
    if not all(isinstance(statement, ast.Expr) for statement in tree.body):
        return False
    own, used = set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.NamedExpr | ast.Await | ast.Lambda):
            return False
        if isinstance(node, ast.Name):
            (used if isinstance(node.ctx, ast.Load) else own).add(node.id)
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            if called not in functions and called not in CALLBACK_SAFE_BUILTINS:
                return False
    return not leaves_state or all(
        name in own or name in functions or name in CALLBACK_SAFE_BUILTINS for name in used
    )


def _return_as_text(tree: ast.Module) -> None:
    """Convert the value of the last expression to text."""
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        last.value = as_text(last.value)


def _guard_text(code: str, tree: ast.Module) -> str | None:
    """Do the same in the source text, which keeps its lines; return None if that is not possible."""
    if not tree.body or not isinstance(last := tree.body[-1], ast.Expr):
        return code
    value = last.value
    if "\r" in code or "\f" in code or value.end_lineno is None or value.end_col_offset is None:
        return None
    lines = code.split("\n")
    # Offsets count bytes of UTF-8. Insert at the end first, since inserting at the start would move it.
    for number, column, text in (
        (value.end_lineno, value.end_col_offset, ")))"),
        (value.lineno, value.col_offset, "''.join(_rlm_value(("),
    ):
        line = lines[number - 1].encode()
        lines[number - 1] = (line[:column] + text.encode() + line[column:]).decode()
    return "\n".join(lines)


def _with_required(pieces: dict[str, None]) -> tuple[str, ...]:
    ordered: dict[str, None] = {}
    for piece in pieces:
        for required in REQUIRES.get(piece, ()):
            ordered[required] = None
        ordered[piece] = None
    return tuple(ordered)


def _line_map(before: ast.Module, after: ast.Module) -> tuple[tuple[int, int], ...]:
    """Pair the lines of two trees with the same statements in the same order."""
    pairs: dict[int, int] = {}
    old = [node for node in ast.walk(before) if isinstance(node, ast.stmt | ast.ExceptHandler)]
    new = [node for node in ast.walk(after) if isinstance(node, ast.stmt | ast.ExceptHandler)]
    if len(old) != len(new):
        return ((1, 1),)
    for one, other in zip(old, new, strict=True):
        pairs.setdefault(other.lineno, one.lineno)
    return tuple(sorted(pairs.items()))
