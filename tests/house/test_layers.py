"""The layers of docs/architecture.md: a module imports from its own package and lower ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.house import sources
from tests.house.sources import listed, named, tree

SOURCE = sources.SOURCE / "rlm_mem"

LAYERS = (
    ("testing",),
    ("cli", "integrations"),
    ("serving",),
    ("mcp", "http", "dashboard"),
    ("operations",),
    ("memory",),
    ("recall", "continuum", "persona", "interchange"),
    ("sandbox", "models", "offline"),
    ("search", "ingest"),
    ("store",),
    ("text",),
    ("telemetry",),
    ("chunk", "errors", "config", "dsn", "extensions", "results"),
)
LEVEL = {name: level for level, names in enumerate(reversed(LAYERS)) for name in names}
TOP = len(LAYERS)

GROUND = set(LAYERS[-1])
"""They may import each other, though not in a circle."""

SIDEWAYS = {("offline", "models")}
"""The only imports from one package into another on the same level."""

MODULES = [path for path in sources.MODULES if path.is_relative_to(SOURCE)]


def package_of(dotted: str) -> str:
    """``rlm_mem.store.core.chunk_store`` belongs to ``store``; the root and ``__main__`` to the empty name."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else ""


def dotted_name(path: Path) -> str:
    parts = ("rlm_mem", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(module: ast.AST, *, at_load_only: bool = False) -> Iterator[tuple[int, str]]:
    """Line and full name of imports from rlm_mem; ``at_load_only`` leaves out what functions import."""
    for node in ast.iter_child_nodes(module):
        if at_load_only and (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or is_type_checking(node)
        ):
            continue
        if isinstance(node, ast.Import):
            yield from (
                (node.lineno, name.name) for name in node.names if name.name.split(".")[0] == "rlm_mem"
            )
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are written in full"
            if (node.module or "").split(".")[0] == "rlm_mem":
                for name in node.names:
                    below = f"{node.module}.{name.name}"
                    yield node.lineno, below if below in NAMES else str(node.module)
        else:
            yield from imports(node, at_load_only=at_load_only)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


NAMES = {dotted_name(path) for path in MODULES}


def test_modules_import_downwards_only() -> None:
    wrong = [f"{named(path)}{problem}" for path in MODULES for problem in upward(path)]
    assert not wrong, listed(wrong)


def upward(path: Path) -> Iterator[str]:
    """Imports of a module that its layer does not allow."""
    own = package_of(dotted_name(path))
    if not own:
        return  # the root package names what is public, and __main__ starts the command
    if own not in LEVEL:
        yield f": {own} has no place among the layers: give it one here and in docs/architecture.md"
        return
    for line, name in imports(tree(path)):
        other = package_of(name)
        if other == own:
            continue
        if not other:
            # The root is above everything; what is above the memory may ask it for the version number.
            if LEVEL[own] < LEVEL["operations"]:
                yield f":{line} imports the root package"
        elif LEVEL[other] >= LEVEL[own] and (own, other) not in SIDEWAYS and not {own, other} <= GROUND:
            yield f":{line} imports {name}: {own} is not above {other}"


def test_no_import_is_circular() -> None:
    graph = {
        dotted_name(path): {name for _, name in imports(tree(path), at_load_only=True)} for path in MODULES
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, f"circular import: {' → '.join((*trail[trail.index(name) :], name))}"
        if name not in done:
            for other in graph.get(name, ()):
                visit(other, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_the_rule_itself_notices_an_upward_import() -> None:
    late = ast.parse("def late():\n    from rlm_mem.store import api\n")
    assert [package_of(name) for _, name in imports(late)] == ["store"]
    assert LEVEL["store"] > LEVEL["text"]
    assert list(imports(late, at_load_only=True)) == []


def test_backends_share_only_the_core_of_the_store() -> None:
    """``store.core`` imports no backend, and no backend imports another; only ``store.backup`` knows folders."""
    wrong = [
        f"{dotted_name(path)}:{line} imports {name}"
        for path in MODULES
        if dotted_name(path).startswith(
            ("rlm_mem.store.core", "rlm_mem.store.local", "rlm_mem.store.postgres")
        )
        for line, name in imports(ast.parse(path.read_text(encoding="utf-8")))
        if name.startswith("rlm_mem.store.")
        and name.split(".")[2] not in ("core", dotted_name(path).split(".")[2])
    ]
    assert wrong == []


def test_operations_need_no_framework() -> None:
    """What MCP, HTTP and the dashboard share imports none of what the extra ``server`` installs."""
    wrong = [
        f"{named(path)}:{node.lineno}"
        for path in MODULES
        if package_of(dotted_name(path)) == "operations"
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        )
        if name.split(".")[0] in ("starlette", "uvicorn", "mcp", "mcp_types", "jinja2")
    ]
    assert not wrong, listed(wrong)
