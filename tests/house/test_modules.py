"""The form of a module: short, its subject first, every public name described, no error swallowed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
MODULES = sorted(SOURCE.rglob("*.py"))
LONGEST = 450


def named(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def stub(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Described elsewhere: a member of a Protocol (the body is an ellipsis), or what `ast.NodeVisitor` calls."""
    if node.name.startswith("visit_"):
        return True
    last = node.body[-1]
    return isinstance(last, ast.Expr) and isinstance(last.value, ast.Constant) and last.value.value is ...


def public_definitions(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
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


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_can_be_read_in_one_sitting(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LONGEST, f"{lines} lines: it holds two subjects"


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_a_module_says_its_subject_in_its_first_line(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    assert docstring, "no docstring"
    assert docstring.splitlines()[0].strip()


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_every_public_name_is_described(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bare = [name for name, node in public_definitions(tree.body) if not ast.get_docstring(node)]  # type: ignore[arg-type]
    assert bare == [], "no docstring"


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_no_error_is_swallowed(path: Path) -> None:
    """No bare except; catching everything needs its reason beside it."""
    content = path.read_text(encoding="utf-8")
    lines = content.splitlines()
    for node in ast.walk(ast.parse(content)):
        if not isinstance(node, ast.ExceptHandler):
            continue
        assert node.type is not None, f"line {node.lineno}: bare except"
        broad = isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")
        passed_on = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
        if broad and not passed_on:
            around = "\n".join(lines[max(0, node.lineno - 2) : node.body[0].end_lineno])
            assert "#" in around, f"line {node.lineno}: catches everything and does not say why"
