"""The form of a module: one subject, stated first, every public name described, no error swallowed."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from functools import cache

from tests.house.sources import MODULES, listed, named, nodes, text, tree

LONGEST = 700
"""Lines. A module is as long as its subject; beyond this it has two."""


def test_no_module_has_two_subjects() -> None:
    lengths = {named(path): len(text(path).splitlines()) for path in MODULES}
    wrong = [
        f"{name}: {lines} lines, {LONGEST} at most: give a part of it a module of its own"
        for name, lines in lengths.items()
        if lines > LONGEST
    ]
    assert not wrong, listed(wrong)


def test_every_module_names_its_subject_in_its_first_line() -> None:
    wrong = [
        named(path) for path in MODULES if not (ast.get_docstring(tree(path)) or "").split("\n")[0].strip()
    ]
    assert not wrong, listed(wrong, "begin it with a docstring")


def test_what_a_package_says_of_its_modules_is_so() -> None:
    """Names in the docstring of an ``__init__`` are those of modules, or of what it exports."""
    packages = {path: ast.get_docstring(tree(path)) or "" for path in MODULES if path.name == "__init__.py"}
    modules = {path.stem for path in MODULES} | {path.parent.name for path in packages}
    wrong = [
        f"{named(path)} names {name}, which is no module: see its docstring"
        for path, about in packages.items()
        for name in re.findall(r"(?<!`)(?<!extra )`{1,2}([a-z_]+)`", about)
        if name not in modules and not re.search(rf"\b{name}\b", text(path).partition("from __future__")[2])
    ]
    assert not wrong, listed(wrong)


def test_every_public_name_is_described() -> None:
    wrong = [
        f"{named(path)}:{node.lineno}: {name} has no docstring"
        for path in MODULES
        for name, node in public_definitions(tree(path).body)
        if not ast.get_docstring(node) and name not in described_by_protocols(tree(path))
    ]
    assert not wrong, listed(wrong)


def test_every_described_argument_is_one() -> None:
    wrong = [
        f"{named(path)}:{node.lineno}: {node.name} describes {name}, which it does not take"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, Definition) and (taken := arguments(node)) is not None
        for name in described_arguments(ast.get_docstring(node) or "")
        if name not in taken
    ]
    assert not wrong, listed(wrong)


def test_no_error_is_swallowed() -> None:
    """No bare except; catching everything needs its reason beside it."""
    wrong = [
        f"{named(path)}:{line}: {why}" for path in MODULES for line, why in swallowed(text(path), nodes(path))
    ]
    assert not wrong, listed(wrong)


def test_the_rules_notice_a_violation() -> None:
    code = "class Open:\n    def close(self): pass\ntry:\n    pass\nexcept Exception:\n    pass\nexcept:\n    pass\n"
    module = ast.parse(code)
    assert [name for name, _ in public_definitions(module.body)] == ["Open", "Open.close"]
    named_protocol = ast.parse(
        'class Rows:\n    """`CandidateSource` over rows; the protocol documents the methods."""\n'
    )
    described = described_by_protocols(named_protocol)
    assert "Rows.term_ids" in described
    assert "Rows.of_its_own" not in described
    documented = 'def ask(question):\n    """Ask.\n\n    Args:\n        text: what to ask.\n    """'
    ask = ast.parse(documented).body[0]
    assert isinstance(ask, ast.FunctionDef)
    assert described_arguments(ast.get_docstring(ask) or "") == ["text"]
    assert arguments(ask) == {"question"}
    assert [line for line, _ in swallowed(code, ast.walk(module))] == [5, 7]
    explained = code.replace("Exception:", "Exception:  # whatever it is, the next file is read")
    assert [line for line, _ in swallowed(explained, ast.walk(ast.parse(explained)))] == [7]


Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public_definitions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Public functions and classes, and the public methods of public classes."""
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield prefix + node.name, node
            yield from public_definitions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            overload = any(
                isinstance(mark, ast.Name) and mark.id == "overload" for mark in node.decorator_list
            )
            setter = any(
                isinstance(mark, ast.Attribute) and mark.attr == "setter" for mark in node.decorator_list
            )
            if not overload and not setter and not stub(node):
                yield prefix + node.name, node


def arguments(node: Definition) -> set[str] | None:
    """Names of the arguments of a function, or of a class by its `__init__`; None if they are not fixed."""
    if isinstance(node, ast.ClassDef):
        made = (one for one in node.body if isinstance(one, ast.FunctionDef) and one.name == "__init__")
        return next(map(arguments, made), None)
    given = node.args
    if given.kwarg is not None:
        return None
    return {one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg) if one}


def described_arguments(docstring: str) -> list[str]:
    """The names below "Args:" in a docstring."""
    _, _, below = docstring.partition("Args:\n")
    lines = itertools.takewhile(lambda line: not line or line.startswith("    "), below.splitlines())
    rows = (re.match(r"    ([a-z_]\w*(?:, [a-z_]\w*)*): ", line) for line in lines)
    return [name for row in rows if row for name in row[1].split(", ")]


def described_by_protocols(module: ast.Module) -> set[str]:
    """Methods of classes whose docstring names a protocol in backticks, which describes them."""
    protocols = members_of_protocols()
    return {
        f"{node.name}.{member}"
        for node in module.body
        if isinstance(node, ast.ClassDef)
        for name in re.findall(r"`(\w+)`", (ast.get_docstring(node) or "").split("\n\n")[0])
        for member in protocols.get(name, ())
    }


@cache
def members_of_protocols() -> dict[str, set[str]]:
    """The described methods of each protocol, with those of the protocols that it extends."""
    found: dict[str, set[str]] = {}
    bases: dict[str, list[str]] = {}
    for path in MODULES:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "Protocol" for base in node.bases):
                methods = [
                    one for one in node.body if isinstance(one, ast.FunctionDef) and ast.get_docstring(one)
                ]
                found[node.name] = {one.name for one in methods}
                bases[node.name] = [ast.unparse(base) for base in node.bases]
    return {
        name: set().union(members, *(found.get(base, ()) for base in bases[name]))
        for name, members in found.items()
    }


def stub(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Described elsewhere: a member of a Protocol (the body is an ellipsis), or what `ast.NodeVisitor` calls."""
    if node.name.startswith("visit_"):
        return True
    last = node.body[-1]
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is ...


def swallowed(content: str, within: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Handlers that catch everything, neither pass it on nor say why; by line."""
    lines = content.splitlines()
    for node in within:
        if not isinstance(node, ast.ExceptHandler):
            continue
        if node.type is None:
            yield node.lineno, "bare except"
            continue
        broad = isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")
        passed_on = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
        if broad and not passed_on:
            around = "\n".join(lines[max(0, node.lineno - 2) : node.body[0].end_lineno])
            if "#" not in around:
                yield node.lineno, "catches everything and does not say why"


def test_public_class_names_are_unique() -> None:
    found: dict[str, list[str]] = {}
    for path in MODULES:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(named(path))
    assert {name: places for name, places in found.items() if len(places) > 1} == {}
