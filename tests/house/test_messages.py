"""Messages of errors and their remedies: a clause each that starts in lower case, without a full stop."""

from __future__ import annotations

import ast

from rlm_mem import errors
from rlm_mem.sandbox.hints import hint_for
from tests.house.sources import MODULES, listed, named, nodes

ERRORS = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.RlmMemError)
}
IN_PROGRAMS = [
    ("NameError", "name 'dir' is not defined"),
    ("NameError", "name 'walnut' is not defined"),
    ("ModuleNotFoundError", "No module named 'contextlib'"),
    ("ModuleNotFoundError", "No module named 'walnut'"),
    ("KeyError", "'walnut'"),
    ("TypeError", "object of type 'int' has no len()"),
    ("RecursionError", "maximum recursion depth exceeded"),
]
"""Errors of programs for which there is a remedy, each another one."""


def test_messages_start_in_lower_case_and_have_no_full_stop() -> None:
    wrong = [
        f"{named(path)}:{node.lineno}: {ast.unparse(node.args[0])}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.Call) and _called(node) in ERRORS and node.args and _breaks_rule(node.args[0])
    ]
    assert not wrong, listed(wrong, "begin in lower case, without a full stop")


def test_remedies_have_the_form_of_messages() -> None:
    wrong = [
        f"{named(path)}:{text.lineno}: {ast.unparse(text)}"
        for path in MODULES
        for node in nodes(path)
        if isinstance(node, ast.keyword)
        and (node.arg == "hint" or (node.arg == "detail" and isinstance(node.value, ast.Constant)))
        for text in _texts(node.value)
        if _breaks_rule(text)
    ]
    assert not wrong, listed(wrong, "begin in lower case, without a full stop")
    told = {hint_for(kind, message) for kind, message in IN_PROGRAMS} - {None}
    assert len(told) == len(IN_PROGRAMS)
    assert not [one for one in told if one and (one.endswith(".") or (one[0].isupper() and one[1].islower()))]


def test_the_rule_refuses_what_it_is_for() -> None:
    for code in (
        '"The store is closed"',
        '"the store is closed."',
        'f"the {place} is closed."',
        'f"The {place}"',
    ):
        assert _breaks_rule(ast.parse(code, mode="eval").body)
    for code in (
        '"the store is closed"',
        '"FINAL was called"',
        'f"{place}: no such file"',
        '"JSON is too deep"',
    ):
        assert not _breaks_rule(ast.parse(code, mode="eval").body)


def _texts(value: ast.expr) -> list[ast.expr]:
    """The texts that an expression may have as its value."""
    if isinstance(value, ast.IfExp):
        return [*_texts(value.body), *_texts(value.orelse)]
    if isinstance(value, ast.BoolOp):
        return [text for one in value.values for text in _texts(one)]
    return [value] if isinstance(value, ast.Constant | ast.JoinedStr) else []


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _breaks_rule(message: ast.expr) -> bool:
    parts = message.values if isinstance(message, ast.JoinedStr) else [message]
    first, last = parts[0], parts[-1]
    start = first.value if isinstance(first, ast.Constant) else ""
    end = last.value if isinstance(last, ast.Constant) else ""
    # A word in capitals is a name: JSON, FINAL.
    return (isinstance(start, str) and start[:1].isupper() and start[1:2].islower()) or (
        isinstance(end, str) and end.endswith(".")
    )
