"""Tests wait for the thing itself: no pause of a fixed length outside `tests/waiting.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.sources import ROOT, listed, named, text, tree

HELPER = ROOT / "tests" / "waiting.py"
PAUSES = {"sleep", "wait_for_timeout"}
"""`time.sleep`, `asyncio.sleep`; Playwright's `page.wait_for_timeout`."""


def test_no_test_pauses_for_a_fixed_time() -> None:
    wrong = [
        f"{named(path)}:{line}: {name}; use until, soon or takes of tests/waiting.py"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path != HELPER and any(name in text(path) for name in PAUSES)
        for line, name in pauses(tree(path))
    ]
    assert not wrong, listed(wrong)


def test_the_rule_notices_a_pause() -> None:
    code = "time.sleep(1)\nawait sleep(2)\nawait asyncio.sleep(0)\npage.wait_for_timeout(9)\n"
    module = compile(code, "test", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    assert isinstance(module, ast.Module)
    assert sorted(line for line, _ in pauses(module)) == [1, 2, 4]


def pauses(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Calls that only let time pass, by line; one of 0 seconds gives way to others and is none."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            gives_way = bool(node.args) and isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
            if name in PAUSES and not gives_way:
                yield node.lineno, ast.unparse(node)
