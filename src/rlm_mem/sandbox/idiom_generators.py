"""Rewrites definitions that Monty lacks: generator functions, and classes whose base can be dropped or replaced.

A generator becomes a function that returns all of its values at once. This suits the generators of retrieval programs;
an endless one reaches the time limit.
"""

from __future__ import annotations

import ast


def name_node(identifier: str) -> ast.Name:
    """Return a name whose value is read, as a node."""
    return ast.Name(identifier, ast.Load())


def call_of(function: str, *args: ast.expr, keywords: list[ast.keyword] | None = None) -> ast.Call:
    """Return ``function(*args, **keywords)`` as a node."""
    return ast.Call(name_node(function), list(args), keywords or [])


def _returned() -> ast.Call:
    """Return ``iter(_rlm_out)``, the value of the rewritten function, as a node."""
    return call_of("iter", name_node("_rlm_out"))


def _own_nodes(function: ast.AST) -> list[ast.AST]:
    """Return the nodes of a function's own body, without those of functions inside it."""
    found, todo = [], list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            todo.extend(ast.iter_child_nodes(node))
    return found


def yields(function: ast.FunctionDef) -> bool:
    """Return whether it is a generator with ``yield`` only as a statement (``send`` cannot be emulated)."""
    own = _own_nodes(function)
    yields = [node for node in own if isinstance(node, ast.Yield | ast.YieldFrom)]
    statements = [node.value for node in own if isinstance(node, ast.Expr)]
    return bool(yields) and all(any(one is other for other in statements) for one in yields)


class _Eager(ast.NodeTransformer):
    """Turns ``yield x`` into an append and ``return`` into the return of the list."""

    def _unchanged(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_Lambda = _unchanged

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        value = node.value
        if isinstance(value, ast.Yield | ast.YieldFrom):
            method = "append" if isinstance(value, ast.Yield) else "extend"
            item = value.value or ast.Constant(None)
            append = ast.Attribute(name_node("_rlm_out"), method, ast.Load())
            return ast.copy_location(ast.Expr(ast.Call(append, [item], [])), node)
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        return ast.copy_location(ast.Return(_returned()), node)


def make_eager(function: ast.FunctionDef) -> None:
    """Make a generator function return an iterator over all values that it would yield."""
    body = [_Eager().visit(statement) for statement in function.body]
    start = assign("_rlm_out", ast.List([], ast.Load()))
    end = ast.Return(_returned())
    function.body = [
        ast.copy_location(start, function.body[0]),
        *body,
        ast.copy_location(end, function.body[-1]),
    ]


def short_circuit(name: str, generator: ast.GeneratorExp, helper: str) -> ast.FunctionDef:
    """Return ``any``, ``all`` or ``next`` over a generator expression as a function that stops early.

    Args:
        name: which of the three.
        generator: the generator; the new function takes its outermost iterable as argument.
        helper: name of the function.
    """
    body: list[ast.stmt]
    if name == "next":
        body = [ast.Return(generator.elt)]
    else:
        test = generator.elt if name == "any" else ast.UnaryOp(ast.Not(), generator.elt)
        body = [ast.If(test, [ast.Return(ast.Constant(name == "any"))], [])]
    for number, step in reversed(list(enumerate(generator.generators))):
        for condition in reversed(step.ifs):
            body = [ast.If(condition, body, [])]
        items = name_node("_rlm_items") if number == 0 else step.iter
        body = [ast.For(step.target, items, body, [])]
    arguments = ast.arguments([], [ast.arg("_rlm_items")], None, [], [], None, [])
    arguments.vararg = ast.arg("_rlm_default") if name == "next" else None
    if name == "next":
        first = ast.Subscript(name_node("_rlm_default"), ast.Constant(0), ast.Load())
        body.append(ast.If(name_node("_rlm_default"), [ast.Return(first)], []))
        body.append(ast.Raise(call_of("StopIteration"), None))
    else:
        body.append(ast.Return(ast.Constant(name == "all")))
    return ast.FunctionDef(helper, arguments, body, [], None)


def assign(name: str, value: ast.expr) -> ast.stmt:
    """Return ``name = value`` as a statement."""
    return ast.Assign([ast.Name(name, ast.Store())], value)


_BASES = {"Exception", "ValueError", "RuntimeError", "KeyError", "TypeError", "LookupError", "BaseException"}


def split_base_classes(node: ast.ClassDef) -> ast.stmt | None:
    """Return the statement that replaces a class with a base; None if the class is unchanged.

    ``class A(object)`` loses its base; an exception class without its own body becomes an alias of its
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
    if base in _BASES and plain:
        return assign(node.name, name_node(base))
    if base == "TypedDict":
        return assign(node.name, name_node("dict"))
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
    call = call_of("_rlm_namedtuple", ast.Constant(node.name), ast.List(fields, ast.Load()))
    if defaults:
        call.keywords.append(ast.keyword("defaults", ast.List(defaults, ast.Load())))
    return assign(node.name, call)
