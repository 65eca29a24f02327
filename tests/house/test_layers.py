"""The layers of docs/architecture.md: a module imports from its own package and lower ones."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.house import sources
from tests.house.sources import listed, named, nodes

SOURCE = sources.SOURCE / "rlm_mem"

LAYERS = (
    ("testing",),
    ("cli", "integrations"),
    ("serving",),
    ("dashboard",),
    ("mcp", "http"),
    ("operations",),
    ("aio", "capture", "access"),
    ("memory",),
    ("receipts",),
    ("recall", "continuum", "persona", "interchange"),
    ("proposals",),
    ("sandbox", "models", "offline"),
    ("search", "ingest"),
    ("store",),
    ("text",),
    ("telemetry",),
    (
        "chunk",
        "arguments",
        "errors",
        "config",
        "dsn",
        "extensions",
        "results",
        "record",
        "lazy",
        "merging",
        "own_process",
        "children",
    ),
)
LEVEL = {name: level for level, names in enumerate(reversed(LAYERS)) for name in names}
TOP = len(LAYERS)

GROUND = set(LAYERS[-1])
"""They may import each other, though not in a cycle."""

SIDEWAYS = {("offline", "models")}
"""The only imports from one package into another on the same level."""

CIRCLES: dict[str, tuple[str, ...]] = {
    # A backend is handed the open store that it checks, mends or backs up. A database is backed up by copying it
    # through the store, so that a narrower type in a leaf would repeat the whole interface.
    "store.core.backend": ("store.core.chunk_store",),
}
"""Imports that close a cycle, to be taken out. None may be added; one that closes none any more is refused."""

MODULES = [path for path in sources.MODULES if path.is_relative_to(SOURCE)]


def package_of(dotted: str) -> str:
    """``rlm_mem.store.core.chunk_store`` belongs to ``store``; the root and ``__main__`` to the empty name."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else ""


def dotted_name(path: Path) -> str:
    parts = ("rlm_mem", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(within: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and full name of every import from rlm_mem, at any depth."""
    for node in within:
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
    for line, name in imports(nodes(path)):
        other = package_of(name)
        if other == own:
            continue
        if not other:
            # The root is above everything; what is above the memory may ask it for the version number.
            if LEVEL[own] < LEVEL["operations"]:
                yield f":{line} imports the root package"
        elif LEVEL[other] >= LEVEL[own] and (own, other) not in SIDEWAYS and not {own, other} <= GROUND:
            yield f":{line} imports {name}: {own} is not above {other}"


def test_no_module_imports_in_a_cycle() -> None:
    """Imports inside functions and for types alone count: a type that two modules need belongs into a third."""
    graph = {dotted_name(path): {name for _, name in imports(nodes(path))} for path in MODULES}
    declared = {(f"rlm_mem.{one}", f"rlm_mem.{other}") for one, others in CIRCLES.items() for other in others}
    whole = strong_components(graph)
    stale = [
        f"{one} -> {other}: no cycle needs it" for one, other in declared if not together(whole, one, other)
    ]
    for one, other in declared:
        graph.get(one, set()).discard(other)
    found = [" <-> ".join(sorted(component)) for component in strong_components(graph)]
    assert not stale + found, listed(stale + found)


def strong_components(graph: dict[str, set[str]]) -> list[set[str]]:
    """Sets of modules that reach each other, of two and more (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_names: list[str] = []
    found: list[set[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        open_names.append(name)
        for other in graph[name] & graph.keys():
            if other not in number:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in open_names:
                lowest[name] = min(lowest[name], number[other])
        if lowest[name] == number[name]:
            start = open_names.index(name)
            component = set(open_names[start:])
            del open_names[start:]
            if len(component) > 1:
                found.append(component)

    for name in graph:
        if name not in number:
            visit(name)
    return found


def together(components: list[set[str]], one: str, other: str) -> bool:
    return any({one, other} <= component for component in components)


def test_the_rule_itself_notices_a_circle() -> None:
    graph = {"a": {"b", "elsewhere"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    assert strong_components(graph) == [{"b", "c"}]


def test_the_rule_itself_notices_an_upward_import() -> None:
    late = ast.parse("def late():\n    from rlm_mem.store import api\n")
    assert [package_of(name) for _, name in imports(ast.walk(late))] == ["store"]
    assert LEVEL["store"] > LEVEL["text"]


def test_backends_share_only_the_core_of_the_store() -> None:
    """``store.core`` imports no backend, and no backend imports another; only ``store.backup`` knows folders."""
    wrong = [
        f"{dotted_name(path)}:{line} imports {name}"
        for path in MODULES
        if dotted_name(path).startswith(
            ("rlm_mem.store.core", "rlm_mem.store.local", "rlm_mem.store.postgres")
        )
        for line, name in imports(nodes(path))
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
        for node in nodes(path)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        )
        if name.split(".")[0] in ("starlette", "uvicorn", "mcp", "mcp_types", "jinja2")
    ]
    assert not wrong, listed(wrong)
