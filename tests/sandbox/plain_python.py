"""Runs a program in plain Python and on an engine, with the same functions, and compares what they give."""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
from collections.abc import Callable
from typing import Any

from rlm_mem.recall import REPLSession
from rlm_mem.sandbox.engine import HostCallFailed
from rlm_mem.store.core.chunk_store import ChunkStore

__all__ = ["alike", "in_plain_python", "model", "on_engine"]


def model(prompt: str) -> str:
    return "yes" if "tea" in prompt.lower() else "no"


class Concluded(BaseException):
    pass


def in_plain_python(store: ChunkStore, code: str) -> tuple[Any, Any, str]:
    """Answer, value of the last expression and output of the program, run by CPython itself."""
    answers: list[Any] = []

    def conclude(answer: Any, chunk_ids: Any = None, confidence: Any = None) -> None:
        answers.append(answer)
        raise Concluded

    def bare(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            try:
                return function(*args, **named)
            except HostCallFailed as error:
                raise getattr(builtins, error.kind)(error.message) from None

        return call

    session = REPLSession(store, model, 100)
    names: dict[str, Any] = {name: bare(function) for name, function in session._table.items()}
    names |= {"FINAL": conclude, "__name__": "__main__"}
    tree, value, output = ast.parse(code), None, io.StringIO()
    last = tree.body[-1]
    with contextlib.redirect_stdout(output), contextlib.suppress(Concluded):
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(tree.body[:-1], []), "program", "exec"), names)
            value = eval(compile(ast.Expression(last.value), "program", "eval"), names)
        else:
            exec(compile(tree, "program", "exec"), names)
    return (answers[0] if answers else None), (None if answers else value), output.getvalue()


def alike(value: Any) -> Any:
    """Tuples and lists alike: which of them a sandbox hands out is not the point."""
    if isinstance(value, list | tuple):
        return [alike(item) for item in value]
    if isinstance(value, dict):
        return {key: alike(item) for key, item in value.items()}
    return value


def on_engine(store: ChunkStore, code: str, engine: str) -> tuple[tuple[Any, Any, str], Exception | None]:
    session = REPLSession(store, model, 100, engine=engine)
    step = session.run(code, timeout=20)
    answer = session.get_result()
    session.close()
    return (answer, step.value, step.output), step.error
