"""The list of operations: what each record says is what the faces offer, and a record is all that one needs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from rlm_mem.http import streams
from rlm_mem.http.openapi import document
from rlm_mem.mcp import service as tools
from rlm_mem.mcp.service import Service
from rlm_mem.operations import registry
from rlm_mem.operations.context import OpenMemory, Settings
from rlm_mem.operations.operation import Context, Operation, Tool, parts_of
from rlm_mem.operations.registry import OPERATIONS
from rlm_mem.operations.types import PARTS, Request


def test_every_operation_is_offered_by_the_faces_that_its_record_names() -> None:
    shown = {
        (method.upper(), path): about
        for path, methods in document()["paths"].items()
        for method, about in methods.items()
    }
    offered = {tool.name for tool in tools.tools_for(every=True)}
    wrong: list[str] = []
    for operation in OPERATIONS:
        if not operation.method and operation.tool is None:
            wrong.append(f"{operation.name} is offered nowhere")
        if operation.method:
            about = shown.pop((operation.method, operation.path), {})
            if about.get("operationId") != operation.name:
                wrong.append(f"{operation.name} is not in the document")
            if ("requestBody" in about) != (operation.body is not None or bool(operation.raw_body)):
                wrong.append(f"{operation.name}: its body is not in the document")
            if (operation.run is None) != (operation.name in streams.SERVED):
                wrong.append(f"{operation.name} needs one function over HTTP")
        if operation.tool is not None and operation.tool.name not in offered:
            wrong.append(f"{operation.name} is no tool")
        wrong += [f"{operation.name}: {part}" for part in parts_of(operation.path) if part not in PARTS]
    assert not wrong
    assert not shown, "the document shows what is no operation"
    assert len(offered) == sum(operation.tool is not None for operation in OPERATIONS)


def test_no_operation_type_or_tool_is_declared_twice() -> None:
    names = Counter(operation.name for operation in OPERATIONS)
    names.update(operation.tool.name + " (tool)" for operation in OPERATIONS if operation.tool)
    kinds = {
        kind
        for operation in OPERATIONS
        for face in (operation, operation.tool)
        if face is not None
        for kind in (face.request, face.response)
        if isinstance(kind, type) and kind is not Request
    }
    names.update(kind.__name__ for kind in kinds)
    assert [name for name, count in names.items() if count > 1] == []


class Echo(Request):
    """What is to come back."""

    text: str


class Echoed(msgspec.Struct):
    """What came."""

    text: str


def test_one_record_is_all_that_a_new_operation_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def echo(context: Context, request: Echo) -> Echoed:
        return Echoed(f"{request.text} in {context.memory.store.namespace}")

    added = Operation(
        "POST", "/echo", "echo", "Say it again.", "server", run=echo, writes=True,
        tool=Tool(name="echo", title="Echo", description="Say it again."),
    )  # fmt: skip
    for module, name in ((registry, "OPERATIONS"), (tools, "OPERATIONS"), (registry, "ROUTES")):
        monkeypatch.setattr(module, name, (*getattr(module, name), added))
    monkeypatch.setattr("rlm_mem.http.openapi.ROUTES", registry.ROUTES)
    assert document()["paths"]["/echo"]["post"]["operationId"] == "echo"
    service = Service(OpenMemory(Settings(brain=tmp_path / "brain")))
    try:
        assert service.call("echo", {"text": "hello"}).data == {"text": "hello in default"}
        assert "text" in service.call("echo", {"txt": "hello"}).text
    finally:
        service.close()
    assert "echo" not in {tool.name for tool in tools.tools_for(read_only=True)}
