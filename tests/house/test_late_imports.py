"""Imports inside functions: only where loading a module costs start-up time or needs an extra, each with its figure."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.house.sources import MODULES, SOURCE, listed, nodes

LEAST = 5
"""Milliseconds that an import has to save."""


class Late(NamedTuple):
    """What is imported late.

    Attributes:
        why: milliseconds of processor time that it adds to its importers (the smallest, beyond what they have loaded),
            or the extra that installs it.
        by: modules that import it inside a function, without ``rlm_mem.``.
    """

    why: int | str
    by: str


LATE = {
    "cryptography": Late("sign", "receipts.signing"),
    "genai_prices": Late("llm", "models.providers"),
    "keyring": Late("keyring", "models.targets"),
    "markdown_it": Late("server", "dashboard.markdown"),
    "mcp": Late("server", "serving.mcp_app serving.run"),
    "numpy": Late(278, "sandbox.line_functions store.core.encoding"),
    "openai": Late("llm", "models.provider_sdk"),
    "opentelemetry": Late("telemetry", "telemetry.providers"),
    "pydantic_ai": Late("llm", "models.apis"),
    "re2": Late(6, "text.patterns"),
    "rlm_mem.access.confined": Late(47, "operations.context operations.erasing"),
    "rlm_mem.access.oauth": Late(60, "serving.run"),
    "rlm_mem.cli.app": Late(61, "cli"),
    "rlm_mem.cli.events": Late(30, "cli"),
    "rlm_mem.continuum.model_decisions": Late(34, "memory"),
    "rlm_mem.continuum.query": Late(12, "memory"),
    "rlm_mem.continuum.system": Late(34, "memory"),
    "rlm_mem.dashboard.pages": Late(235, "dashboard"),
    "rlm_mem.dashboard.rendering": Late(119, "dashboard"),
    "rlm_mem.http.app": Late(58, "serving.app"),
    "rlm_mem.ingest.chunking": Late(30, "interchange.records"),
    "rlm_mem.ingest.filling": Late(60, "memory"),
    "rlm_mem.ingest.remember": Late(25, "capture.moving memory"),
    "rlm_mem.interchange.detection": Late(37, "dashboard.imports http.openapi"),
    "rlm_mem.interchange.folders": Late(24, "cli.remember memory"),
    "rlm_mem.mcp.hook_settings": Late(12, "mcp.hooks"),
    "rlm_mem.mcp.messages": Late("server", "serving.mcp_app serving.run"),
    "rlm_mem.mcp.server": Late(558, "serving.run"),
    "rlm_mem.mcp.service": Late(10, "serving.run"),
    "rlm_mem.memory": Late(47, "mcp.doctor operations.context"),
    "rlm_mem.models.cli_models": Late(27, "models.opening"),
    "rlm_mem.models.opening": Late(11, "memory"),
    "rlm_mem.models.provider_sdk": Late(1718, "models.providers"),
    "rlm_mem.models.providers": Late(43, "models.opening"),
    "rlm_mem.offline": Late(84, "models.opening"),
    "rlm_mem.operations.personas": Late(64, "mcp.resources"),
    "rlm_mem.operations.shapes": Late(26, "operations.runs"),
    "rlm_mem.persona": Late(34, "memory"),
    "rlm_mem.persona.figures": Late(37, "memory"),
    "rlm_mem.proposals.finding": Late(21, "memory"),
    "rlm_mem.recall.costing": Late(54, "memory"),
    "rlm_mem.recall.host_session": Late(62, "memory"),
    "rlm_mem.recall.reason": Late(65, "memory"),
    "rlm_mem.recall.recall": Late(62, "memory"),
    "rlm_mem.recall.replaying": Late(5, "cli.records"),
    "rlm_mem.recall.running": Late(60, "memory"),
    "rlm_mem.recall.trajectory_export": Late(52, "memory"),
    "rlm_mem.recall.source_lines": Late(26, "cli.ask"),
    "rlm_mem.recall.shown_runs": Late(53, "mcp.resources memory"),
    "rlm_mem.recall.trajectory": Late(53, "memory operations.changes"),
    "rlm_mem.receipts": Late(110, "cli.receipt memory"),
    "rlm_mem.sandbox.cpython": Late(5, "sandbox.session"),
    "rlm_mem.sandbox.engine": Late(15, "mcp.doctor"),
    "rlm_mem.sandbox.functions": Late(30, "persona.figures"),
    "rlm_mem.sandbox.guarantees": Late(93, "mcp.doctor"),
    "rlm_mem.sandbox.monty": Late(33, "sandbox.session"),
    "rlm_mem.sandbox.session": Late(74, "mcp.doctor"),
    "rlm_mem.serving.run": Late(737, "cli.serve"),
    "rlm_mem.store.core.erasing": Late(81, "cli.edit memory"),
    "rlm_mem.store.core.erasure_checks": Late(81, "memory operations.erasing"),
    "rlm_mem.store.core.copying": Late(15, "store.postgres.backend"),
    "rlm_mem.store.core.chunk_store": Late(7, "store.postgres.shards"),
    "rlm_mem.store.local.backup": Late(11, "store.local.local_backend"),
    "rlm_mem.store.local.local_backend": Late(26, "store.local.restore"),
    "rlm_mem.store.local.postings": Late(82, "store.local.local_index store.local.vacuum"),
    "rlm_mem.store.local.prepare": Late(6, "store.local.sync"),
    "rlm_mem.store.postgres.backend": Late(6, "store.postgres.shards"),
    "rlm_mem.store.postgres.lookup": Late(110, "store.postgres.backend"),
    "rlm_mem.store.postgres.recount": Late(97, "store.postgres.integrity"),
    "rlm_mem.store.postgres.shards": Late(102, "cli.machines"),
    "rlm_mem.store.postgres.terms": Late(75, "store.postgres.transaction"),
    "rlm_mem.telemetry.logs": Late(6, "cli.logging"),
    "rlm_mem.telemetry.providers": Late(19, "telemetry"),
    "rlm_mem.telemetry.recorder": Late(24, "telemetry"),
    "rlm_mem.text.analysis": Late(7, "store.core.records"),
    "ruamel": Late(86, "continuum.frontmatter text.yaml"),
}

SMALL = {
    "rlm_mem.recall.scaffold": "recall.running",
    "rlm_mem.store.local.integrity": "store.local.local_backend",
    "rlm_mem.text.tokens": "store.core.writer store.core.integrity store.local.prepare",
    "toktok": "text.tokens",
}
"""Imports that save less: each belongs at the top of its module. To be emptied; none may be added."""


def test_every_import_in_a_function_is_declared_with_its_reason() -> None:
    found = {pair for path in MODULES for pair in late_imports(path)}
    declared = {(name, importer) for name, late in LATE.items() for importer in late.by.split()}
    small = {(name, importer) for name, importers in SMALL.items() for importer in importers.split()}
    wrong = [
        f"{importer} imports {name} in a function: import it at the top, or declare its reason in LATE"
        for name, importer in sorted(found - declared - small)
    ]
    wrong += [
        f"{importer} does not import {name} in a function: remove it from the table"
        for name, importer in sorted((declared | small) - found)
    ]
    wrong += [f"{name} saves less than {LEAST} ms" for name, late in LATE.items() if late.why in range(LEAST)]
    assert not wrong, listed(wrong)


def late_imports(path: Path) -> Iterator[tuple[str, str]]:
    """What a module imports inside functions, but for the standard library: of others the package; and the module."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    importer = ".".join(parts[:-1] if parts[-1] == "__init__" else parts).removeprefix("rlm_mem.")
    functions = (node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    for node in (inner for function in functions for inner in ast.walk(function)):
        for name in names(node):
            package = name.split(".")[0]
            if package not in sys.stdlib_module_names:
                yield name if package == "rlm_mem" else package, importer


def names(node: ast.AST) -> Iterator[str]:
    """Modules that a statement imports, or a call of `import_module` by a name written out."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            below = f"{node.module}.{alias.name}"
            place = SOURCE / below.replace(".", "/")
            yield below if place.is_dir() or place.with_suffix(".py").exists() else str(node.module)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
        yield from (str(given.value) for given in node.args[:1] if isinstance(given, ast.Constant))


def test_the_rule_itself_notices_late_imports() -> None:
    code = (
        "def late():\n    import numpy.linalg\n    from rlm_mem import chunk\n    import_module('toktok')\n"
    )
    found = [name for node in ast.walk(ast.parse(code)) for name in names(node)]
    assert sorted(found) == ["numpy.linalg", "rlm_mem.chunk", "toktok"]
