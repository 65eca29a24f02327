"""Rewrites everyday Python idioms that Monty lacks into ones it has (generators, ``del``, ``key=d.get``, …).

Models write ``max(d, key=d.get)`` and ``next((x for …), None)`` without thinking. Telling them "not supported"
costs a turn; rewriting the tree costs microseconds. A program without such an idiom is passed on unchanged.
"""

from __future__ import annotations

import ast
import math
from bisect import bisect_right
from collections.abc import Container
from dataclasses import dataclass, field

from rlm_mem.sandbox.idiom_rewriter import Rewriter, as_text
from rlm_mem.sandbox.idiom_tables import QUIET_BUILTINS
from rlm_mem.sandbox.parsing import check_deadline, syntax_tree
from rlm_mem.sandbox.prelude import REQUIRES

__all__ = ["Rewritten", "leaves_no_trace", "rewrite"]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A program as it is fed to Monty.

    Attributes:
        code: source text.
        pieces: pieces of the prelude that it needs, each after those it needs itself.
        guarded: its last value leaves the sandbox as text; otherwise it must not be looked at.
        lines: first line of each statement in ``code`` and the line it had, or empty when nothing moved.
    """

    code: str
    pieces: tuple[str, ...] = ()
    lines: tuple[tuple[int, int], ...] = field(default=())
    guarded: bool = True

    def original_line(self, line: int) -> int:
        """The line of the caller's program that became ``line``."""
        if not self.lines:
            return line
        at = bisect_right(self.lines, (line, 1 << 60)) - 1
        return self.lines[max(0, at)][1]


def rewrite(code: str, tree: ast.Module, deadline: float = math.inf) -> Rewritten:
    """Return the program in the form that Monty runs.

    Args:
        code: the program.
        tree: its syntax tree; changed in place.
        deadline: seconds on the monotonic clock at which rewriting gives up.

    Raises:
        TimeoutError: the deadline passed.
    """
    try:
        rewriter = Rewriter(tree, deadline)
        rewriter.visit(tree)
        if not rewriter.changed and (guarded := _guard_text(code, tree)) is not None:
            return Rewritten(guarded)
        _guard(tree)
        ast.fix_missing_locations(tree)
        fresh = ast.unparse(tree)
        check_deadline(deadline)
        lines = _line_map(tree, syntax_tree(fresh))
    except (RecursionError, ValueError, SyntaxError):
        # Nested too deep for the rewriter, too long once rewritten, or an f-string that cannot be written back: Monty
        # sees the program as it was, and its own error is the right answer.
        return Rewritten(code, guarded=False)
    return Rewritten(fresh, _with_required(rewriter.pieces), lines)


def leaves_no_trace(tree: ast.Module, functions: Container[str]) -> bool:
    """Whether a program only looks: nothing is bound, and nothing called that could change a value.

    Args:
        tree: its syntax tree before it is rewritten.
        functions: host functions, which cannot touch the namespace.
    """
    if not all(isinstance(statement, ast.Expr) for statement in tree.body):
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.NamedExpr | ast.Await | ast.Lambda):
            return False
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            if called not in functions and called not in QUIET_BUILTINS:
                return False
    return True


def _guard(tree: ast.Module) -> None:
    """Let the value of the last expression leave as text."""
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        last.value = ast.copy_location(as_text(last.value), last.value)


def _guard_text(code: str, tree: ast.Module) -> str | None:
    """The same on the text, which keeps it and its lines as they are; None where that is not possible."""
    if not tree.body or not isinstance(last := tree.body[-1], ast.Expr):
        return code
    value = last.value
    if "\r" in code or "\f" in code or value.end_lineno is None or value.end_col_offset is None:
        return None
    lines = code.split("\n")
    # Offsets count bytes of UTF-8. The end first: inserting at the start would move it.
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
    """Both trees hold the same statements in the same order; pair their lines."""
    pairs: dict[int, int] = {}
    old = [node for node in ast.walk(before) if isinstance(node, ast.stmt | ast.ExceptHandler)]
    new = [node for node in ast.walk(after) if isinstance(node, ast.stmt | ast.ExceptHandler)]
    if len(old) != len(new):
        return ((1, 1),)
    for one, other in zip(old, new, strict=True):
        pairs.setdefault(other.lineno, one.lineno)
    return tuple(sorted(pairs.items()))
