"""Every name and signature of the documented import path `brain.scripts`, in the words of the documents."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

import brain.scripts as scripts

REQUIRED: Any = inspect.Parameter.empty

SIGNATURES: dict[str, dict[str, Any]] = {
    "ChunkStore": {"base_path": ...},
    "ChunkStore.create_chunk": {
        "content": REQUIRED,
        "chunk_type": ...,  # None, so that a type given twice is noticed; a chunk without one is a note
        "metadata": None,
        "links": None,
        "tags": None,
        # also, in the words of the chunk schema
        "conversation_id": None,
        "tokens": None,
        "confidence": None,
        # and of the architecture's custom types
        "type": None,
    },
    "ChunkStore.get_chunk": {"chunk_id": REQUIRED},
    "ChunkStore.update_chunk": {
        "chunk_id": REQUIRED,
        "content": None,
        "metadata": None,
        "links": None,
        "tags": None,
        "confidence": None,
    },
    "ChunkStore.delete_chunk": {"chunk_id": REQUIRED, "permanent": False},
    "ChunkStore.list_chunks": {
        "conversation_id": None,
        "start_date": None,
        "end_date": None,
        "tags": None,
        "chunk_type": None,
    },
    "ChunkStore.get_stats": {},
    "RememberOperation": {"store": REQUIRED},
    "RememberOperation.remember": {
        "content": REQUIRED,
        "conversation_id": ...,
        "tags": None,
        "confidence": 0.7,
        "chunk_type": None,
    },
    "REPLSession": {
        "chunk_store": REQUIRED,
        "llm_client": ...,
        "max_iterations": 10,
        "timeout_seconds": 60,
        "max_depth": 5,
    },
    "REPLSession.execute": {"code": REQUIRED, "timeout": None},
    "REPLSession.retrieve": {"query": None, "max_iterations": None},
    "REPLSession.llm_query": {"prompt": REQUIRED, "context": None},
    "REPLSession.get_state": {},
    "REPLSession.get_result": {},
    "REPLSession.is_complete": {},
    "REPLSession.reset": {},
    "ChunkingEngine": {"min_tokens": 100, "max_tokens": 800},
    "ChunkingEngine.chunk": {"content": REQUIRED, "conversation_id": ..., "tags": None},
    "ChunkingEngine.detect_content_type": {"content": REQUIRED},
    "AutoLinker": {"chunk_store": REQUIRED},
    "AutoLinker.link_on_create": {"chunk": REQUIRED},
    "AutoLinker.add_manual_link": {
        "source_id": REQUIRED,
        "target_id": REQUIRED,
        "link_type": REQUIRED,
        "strength": 0.5,
        "reasoning": None,
    },
    "init_storage": {"base_path": REQUIRED},
    "load_personality": {"mode": REQUIRED},
    "load_slider": {"dimension": REQUIRED},
    "add_manual_link": {
        "chunk_store": REQUIRED,
        "source_id": REQUIRED,
        "target_id": REQUIRED,
        "link_type": REQUIRED,
        "strength": 0.5,
        "reasoning": None,
    },
}
"""Parameter → default; ``...`` where the document leaves it open. Others may follow, with defaults."""

FIELDS = {
    "Chunk": ["id", "content", "tokens", "type", "metadata", "links", "tags"],
    "ChunkMetadata": [
        "created_at",
        "modified_at",
        "accessed_at",
        "access_count",
        "confidence",
        "conversation_id",
    ],
    "ChunkLinks": ["target_id", "type", "strength", "created_at"],
    "RecallResult": ["content", "chunk_ids", "confidence", "iterations_used"],
    "ReasoningResult": ["conclusion", "path", "confidence"],
    "ReasoningStep": ["chunk_id", "operation", "reasoning"],
}


def found(dotted: str) -> Any:
    value: Any = scripts
    for part in dotted.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("dotted", SIGNATURES)
def test_a_documented_call_has_its_documented_parameters(dotted: str) -> None:
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(found(dotted)).parameters.items()
        if name != "self"
    }
    documented = SIGNATURES[dotted]
    for name, default in documented.items():
        assert name in parameters, f"{dotted} has no parameter {name}"
        if default is not ...:
            assert parameters[name].default == default, f"{dotted}({name}=…)"
    for name, parameter in parameters.items():
        if name not in documented and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            assert parameter.default is not REQUIRED, f"{dotted} demands {name}, which no document names"


@pytest.mark.parametrize(
    "dotted", [name for name in SIGNATURES if "." not in name or name.split(".")[1].islower()]
)
def test_documented_parameters_may_be_given_by_position(dotted: str) -> None:
    """In the order of the API reference, up to the parameters that only other documents name."""
    later = {"tokens", "type", "confidence"} if dotted.startswith("ChunkStore.") else set()
    if dotted == "ChunkStore.create_chunk":
        later.add("conversation_id")
    parameters = [name for name in inspect.signature(found(dotted)).parameters if name != "self"]
    documented = [name for name in SIGNATURES[dotted] if name not in later]
    assert parameters[: len(documented)] == documented


@pytest.mark.parametrize("name", FIELDS)
def test_a_documented_data_class_has_its_documented_fields_first(name: str) -> None:
    cls = found(name)
    fields = [field.name for field in dataclasses.fields(cls)]
    documented = FIELDS[name]
    if name.startswith("Chunk"):
        assert set(documented) <= set(fields)
    else:
        assert fields[: len(documented)] == documented


def test_a_session_is_a_context_manager() -> None:
    assert hasattr(scripts.REPLSession, "__enter__")
    assert hasattr(scripts.REPLSession, "__exit__")


def test_the_documented_constants_hold_the_documented_values() -> None:
    assert list(scripts.CHUNK_TYPES) == ["preference", "fact", "pattern", "decision", "note"]
    assert list(scripts.AUTO_LINK_TYPES) == ["context_of", "follows", "related_to"]
    assert list(scripts.MANUAL_LINK_TYPES) == ["supports", "contradicts"]


@pytest.mark.parametrize("name", ["SandboxViolation", "MaxIterationsError", "TimeoutError"])
def test_a_documented_exception_is_an_exception(name: str) -> None:
    assert issubclass(found(name), Exception)


def test_a_timeout_is_also_the_builtin_one() -> None:
    assert issubclass(scripts.TimeoutError, TimeoutError)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("memory_store", "ChunkStore"),
        ("chunking_engine", "ChunkingEngine"),
        ("auto_linker", "AutoLinker"),
        ("repl_environment", "REPLSession"),
    ],
)
def test_the_modules_that_the_architecture_names_can_be_imported(module: str, name: str) -> None:
    loaded = __import__(f"brain.scripts.{module}", fromlist=[name])
    assert getattr(loaded, name) is found(name)
