"""The names, signatures and fields of `brain.scripts` are those of docs/spec/operations.md and its neighbours."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

import brain.scripts as scripts
from tests.house.sources import ROOT, listed, text

REQUIRED: Any = inspect.Parameter.empty

SIGNATURES: dict[str, dict[str, Any]] = {
    "ChunkStore": {"base_path": ...},
    "ChunkStore.create_chunk": {
        "content": REQUIRED,
        "chunk_type": ...,  # None, so that a type given twice is noticed; a chunk without one is a note
        "metadata": None,
        "links": None,
        "tags": None,
        # fields of a chunk, by name
        "conversation_id": None,
        "tokens": None,
        "confidence": None,
        # another name of chunk_type
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


def test_documented_calls_have_their_documented_parameters() -> None:
    wrong = [problem for dotted in SIGNATURES for problem in deviations(dotted)]
    assert not wrong, listed(wrong)


def deviations(dotted: str) -> Iterator[str]:
    """Where a call is not as documented."""
    parameters = {
        name: parameter
        for name, parameter in inspect.signature(found(dotted)).parameters.items()
        if name != "self"
    }
    documented = SIGNATURES[dotted]
    for name, default in documented.items():
        if name not in parameters:
            yield f"{dotted} has no parameter {name}"
        elif default is not ... and parameters[name].default != default:
            yield f"{dotted}({name}={parameters[name].default!r}), documented is {default!r}"
    for name, parameter in parameters.items():
        optional = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if name not in documented and not optional and parameter.default is REQUIRED:
            yield f"{dotted} demands {name}, which no document names"


def test_documented_parameters_may_be_given_by_position() -> None:
    """In the order of the API reference, up to the parameters that only other documents name."""
    wrong = []
    for dotted, signature in SIGNATURES.items():
        later = {"tokens", "type", "confidence"} if dotted.startswith("ChunkStore.") else set()
        if dotted == "ChunkStore.create_chunk":
            later.add("conversation_id")
        parameters = [name for name in inspect.signature(found(dotted)).parameters if name != "self"]
        documented = [name for name in signature if name not in later]
        if parameters[: len(documented)] != documented:
            wrong.append(f"{dotted} takes {parameters}, documented are {documented}")
    assert not wrong, listed(wrong)


def test_documented_data_classes_have_their_documented_fields_first() -> None:
    wrong = []
    for name, documented in FIELDS.items():
        fields = [field.name for field in dataclasses.fields(found(name))]
        right = (
            set(documented) <= set(fields)
            if name.startswith("Chunk")
            else fields[: len(documented)] == documented
        )
        if not right:
            wrong.append(f"{name} has {fields}, documented are {documented}")
    assert not wrong, listed(wrong)


def test_a_session_is_a_context_manager() -> None:
    assert hasattr(scripts.REPLSession, "__enter__")
    assert hasattr(scripts.REPLSession, "__exit__")


def test_the_documented_constants_hold_the_documented_values() -> None:
    assert list(scripts.CHUNK_TYPES) == ["preference", "fact", "pattern", "decision", "note"]
    assert list(scripts.AUTO_LINK_TYPES) == ["context_of", "follows", "related_to"]
    assert list(scripts.MANUAL_LINK_TYPES) == ["supports", "contradicts"]


def test_documented_exceptions_are_exceptions() -> None:
    names = ("SandboxViolation", "MaxIterationsError", "TimeoutError")
    assert [name for name in names if not issubclass(found(name), Exception)] == []


def test_a_timeout_is_also_the_builtin_one() -> None:
    assert issubclass(scripts.TimeoutError, TimeoutError)


def test_the_modules_that_the_architecture_names_can_be_imported() -> None:
    for module, name in {
        "memory_store": "ChunkStore",
        "chunking_engine": "ChunkingEngine",
        "auto_linker": "AutoLinker",
        "repl_environment": "REPLSession",
    }.items():
        loaded = __import__(f"brain.scripts.{module}", fromlist=[name])
        assert getattr(loaded, name) is found(name)


def test_the_specification_names_every_public_name() -> None:
    pages = "\n".join(text(path) for path in sorted((ROOT / "docs" / "spec").glob("*.md")))
    assert [name for name in scripts.__all__ if not re.search(rf"\b{name}\b", pages)] == []
