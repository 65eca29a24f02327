"""Static checks of a program before it runs: what is not allowed, at which line, and what to write instead.

This is a courtesy to the model, not the boundary. A filter over the syntax tree can be talked around; the
worker process behind the engine is what contains a program. But a clear ``line 3: import os is not allowed``
lets the model correct itself in one turn (docs/spec/sandbox.md, Language).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Set

from rlm_mem.errors import ProgramError, SandboxViolation
from rlm_mem.sandbox.engine import program_error
from rlm_mem.sandbox.hints import hint_for
from rlm_mem.sandbox.names import BLOCKED_ATTRIBUTES, REBINDABLE, SAFE_DUNDERS, ProgramNames, names_of
from rlm_mem.sandbox.parsing import NODES_BETWEEN_LOOKS, TooManyTokens, check_deadline, syntax_tree

__all__ = ["PRELUDE_PREFIX", "check_names", "check_program", "parse"]

PRELUDE_PREFIX = "_rlm_"
"""Names of the compatibility layer; a program may neither use nor bind them."""

_BLOCKED_NAMES = {
    "eval": "write the expression itself",
    "exec": "write the statements themselves",
    "compile": "write the statements themselves, or use re.compile for patterns",
    "open": "there is no file system; memories are read with read_chunk(chunk_id)",
    "__import__": "write an import statement for one of the allowed modules",
    "input": "nobody is there to answer; use the question you were given",
    "breakpoint": "print what you want to see",
    "exit": "call FINAL(answer) to finish",
    "quit": "call FINAL(answer) to finish",
    "memoryview": "use bytes or str",
}

_NO_OUTSIDE = "there is no file system, network or process; memories are read with read_chunk"
_INSTEAD_OF_MODULES = {
    **dict.fromkeys(("os", "sys", "pathlib", "subprocess", "shutil", "glob", "tempfile"), _NO_OUTSIDE),
    **dict.fromkeys(("socket", "urllib", "http", "requests", "ftplib", "smtplib", "httpx"), _NO_OUTSIDE),
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

_DUNDER = re.compile(r"__\w+__\Z")
_FORMAT_FIELD = re.compile(r"\{([^{}]*+)\}")
_LONG_WORD = re.compile(r"\w{5,}+")
_BLOCKED_STRINGS = re.compile(
    r"__(?:class|bases?|subclasses|mro|globals|code|builtins|import|dict|getattribute|reduce(?:_ex)?|closure"
    r"|func|self|wrapped|loader|spec|traceback|context|cause|init_subclass|subclasshook)__\Z"
)


def parse(code: str) -> ast.Module:
    """Return the syntax tree of a program.

    Raises:
        ProgramError: a SyntaxError with its line. What this Python cannot read, nothing has checked, so it is not run
            even where an engine knows newer syntax.
        SandboxViolation: it has too many words and signs.
    """
    try:
        return syntax_tree(code)
    except TooManyTokens as error:
        raise SandboxViolation(
            str(error), hint="Write a loop instead of repeated statements, and read texts with read_chunk."
        ) from None
    except SyntaxError as error:
        message = str(error.msg or "invalid syntax")[:300]
        raise _syntax_error(message, error.lineno, hint_for("SyntaxError", message)) from None
    except (ValueError, UnicodeError):
        raise _syntax_error("the program holds characters that no program can have", None, None) from None
    except (RecursionError, MemoryError):
        raise _syntax_error("the program is nested too deeply", None, "Use fewer nested brackets.") from None


def _syntax_error(message: str, line: int | None, hint: str | None) -> ProgramError:
    return program_error("SyntaxError", message, line, hint)


def check_names(names: ProgramNames) -> None:
    """Refuse what would reach into the compatibility layer of the sandbox.

    Raises:
        SandboxViolation: a name of the layer stands in the program, in whatever role.
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
        code: the program.
        importable: top-level modules it may import; dotted names are checked by their full path first.
        reserved: names of host functions, which it may call but not redefine.
        max_chars: longest program accepted, in characters.
        deadline: seconds on the monotonic clock at which the checks give up.

    Raises:
        ProgramError: this Python cannot parse it.
        SandboxViolation: with the line of the first thing that is not allowed.
        TimeoutError: the deadline passed.
    """
    if len(code) > max_chars:
        raise SandboxViolation(
            f"the program has {len(code):,} characters; at most {max_chars:,} are accepted",
            hint="Send a shorter program and read texts with read_chunk instead of pasting them.",
        )
    tree = parse(code)
    check_names(names_of(tree))
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
    # An explicit stack: a program nested deeper than Python's own recursion limit must not end the host.
    stack: list[tuple[ast.AST, bool]] = [(tree, True)]
    seen = 0
    while stack:
        node, at_module = stack.pop()
        seen += 1
        if seen % NODES_BETWEEN_LOOKS == 0:
            check_deadline(deadline)
        yield from _imports(node, importable, reserved, at_module)
        yield from _names(node, reserved, at_module)
        yield from _attributes(node)
        inner = at_module and not isinstance(
            node,
            ast.FunctionDef
            | ast.AsyncFunctionDef
            | ast.Lambda
            | ast.ClassDef
            | ast.ListComp
            | ast.SetComp
            | ast.DictComp
            | ast.GeneratorExp,
        )
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
        # `collections.abc` may be allowed by its own name, or through its package.
        if module not in importable and module.partition(".")[0] not in importable:
            allowed = ", ".join(sorted(name for name in importable if "." not in name and name[0] != "_"))
            instead = _INSTEAD_OF_MODULES.get(module.partition(".")[0], "")
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
        f"Call {name}(...) as it is, and choose another name (for example my_{name.lower()}) for your own.",
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
        # A result may be named after its function; another function may not.
        taken = node.value
        if isinstance(taken, ast.Lambda) or (
            isinstance(taken, ast.Name) and taken.id in reserved - REBINDABLE
        ):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name) and target.id in REBINDABLE & reserved:
                    yield _redefinition(node, target.id)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        # A definition is refused at any depth: it is always meant to replace the host function.
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
    """Whether a field of a format string reaches for an attribute such as `__class__`."""
    for field in _FORMAT_FIELD.finditer(text):
        for word in _LONG_WORD.findall(field[1]):
            opening = word.find("__")
            if opening >= 0 and word.find("__", opening + 3) >= 0:
                return True
    return False


def _blocked_attribute(name: str) -> bool:
    return name in BLOCKED_ATTRIBUTES or (bool(_DUNDER.match(name)) and name not in SAFE_DUNDERS)
