"""The OpenAPI document and the server agree: schemathesis drives every operation with good and with bad requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem.http import openapi
from tests.server.api import BEARER, PORT, serving

HEADERS = {**BEARER, "Host": f"127.0.0.1:{PORT}"}
LEFT_OUT = {
    "/changes": "a stream without an end has no answer to validate",
    "/folders/sync": "which folders a server may read is no matter of the schema",
}


def failures_of(
    brain: Path, phases: list[str], max_examples: int, only: str | None = None
) -> tuple[int, list[str]]:
    """How many scenarios were run, and what was wrong with any, as schemathesis says it."""
    # Loaded here, since each process that collects tests would spend half a second on it.
    import schemathesis
    from schemathesis.config import HealthCheck
    from schemathesis.engine import Status, from_schema
    from schemathesis.engine.events import NonFatalError, ScenarioFinished

    with serving(brain) as (app, state, _):
        for text in ("Ana chose PostgreSQL for the ledger.", "Ben drinks green tea in the morning."):
            state.memory.remember(text, conversation_id="notes", tags=["team"])
        schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers=HEADERS)
        schema = schema.include(path=only) if only else schema.exclude(path=list(LEFT_OUT))
        schema.config.update(headers=HEADERS)
        schema.config.phases.update(phases=phases)
        schema.config.generation.update(max_examples=max_examples)
        schema.config.update(continue_on_failure=True, suppress_health_check=[HealthCheck.all])
        found: list[str] = []
        count = 0
        for event in from_schema(schema).execute():
            if isinstance(event, NonFatalError):
                found.append(f"{event.label}: {event.value}")
            if isinstance(event, ScenarioFinished):
                count += 1
                if event.status in (Status.FAILURE, Status.ERROR):
                    for checks in event.recorder.checks.values():
                        found += [
                            f"{event.recorder.label}: {check.failure_info.failure}"
                            for check in checks
                            if check.failure_info is not None
                        ]
        return count, found


def test_every_operation_does_what_the_document_says(tmp_path: Path) -> None:
    count, found = failures_of(tmp_path / "brain", ["examples", "fuzzing"], 1)
    assert count > 70
    assert found == []


@pytest.mark.slow
def test_every_operation_does_what_the_document_says_at_length(tmp_path: Path) -> None:
    """All phases: every boundary of every parameter, many random requests, and chains of operations."""
    count, found = failures_of(tmp_path / "brain", ["examples", "coverage", "fuzzing", "stateful"], 30)
    assert count > 140
    assert found == []


def test_a_wrong_document_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks above can fail."""
    monkeypatch.setattr(openapi, "_REFUSALS", (401,))
    _, found = failures_of(tmp_path / "brain", ["fuzzing"], 5, only="/chunks/{chunk_id}")
    assert any("Received: 404" in one for one in found), found


def test_generators_of_clients_can_read_every_schema() -> None:
    """They leave out operations with recursive schemas, schemas that are no object, or bodies without any."""
    made = openapi.document()
    components = made["components"]["schemas"]

    def check(part: object, within: tuple[str, ...], place: str) -> None:
        if isinstance(part, list):
            for number, one in enumerate(part):
                check(one, within, f"{place}/{number}")
        elif isinstance(part, dict):
            assert "prefixItems" not in part, place
            assert not isinstance(part.get("items"), bool), place
            name = str(part.get("$ref", "")).rpartition("/")[2]
            if name in components:
                assert name not in within, f"{place} is recursive: {within}"
                check(components[name], (*within, name), place)
            for key, one in part.items():
                check(one, within, f"{place}/{key}")

    check(made["paths"], (), "paths")
    bodies = [
        one["requestBody"] for path in made["paths"].values() for one in path.values() if "requestBody" in one
    ]
    assert len(bodies) > 20
    assert all(any("schema" in media for media in body["content"].values()) for body in bodies)
