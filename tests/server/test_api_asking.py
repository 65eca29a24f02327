"""Asking over HTTP: search, recall and reason, their steps as events, sessions, and runs that others follow."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.testclient import TestClient

from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.operations import runs
from rlm_mem.operations.state import ServerState
from tests.server.api import API, BEARER, serving
from tests.server.test_api_chunks import refused

EVENTS = {"Accept": "text/event-stream"}
LOOK = "```repl\nprint(search('ledger')[0]['snippet'])\n```"
ANSWER = "```repl\nFINAL('PostgreSQL')\n```"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Any, ServerState]]:
    with serving(tmp_path / "brain") as (app, state, _):
        for text in ("Ana chose PostgreSQL for the ledger.", "Ben drinks green tea in the morning."):
            state.memory.remember(text, conversation_id="notes", tags=["team"])
        yield app, state


@pytest.fixture
def client(served: tuple[Any, ServerState]) -> Iterator[TestClient]:
    with TestClient(served[0], API, headers=BEARER) as client:
        yield client


def scripted(state: ServerState, *replies: Any) -> ScriptedLLM:
    model = ScriptedLLM(list(replies))
    state.memory._llm = model
    return model


def events_in(text: str) -> list[tuple[str, Any]]:
    """Names and data of a stream."""
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":"))
        if fields:
            found.append((fields["event"], json.loads(fields["data"])))
    return found


def test_a_search_says_what_matched_where_and_why(client: TestClient) -> None:
    body = {"query": "which database has the ledger", "limit": 5, "explain": True, "by": "segment"}
    hit = client.post("search", json=body).json()["items"][0]
    content = client.get(f"chunks/{hit['chunk_id']}").json()["content"]
    assert content[hit["start"] : hit["end"]].startswith("Ana chose")
    assert hit["parts"] and all(isinstance(value, float) for value in hit["parts"].values())


@pytest.mark.parametrize(
    ("filters", "count"),
    [({"tags_all": ["team"]}, 1), ({"tags_any": ["none"]}, 0), ({"conversation_id": "notes"}, 1),
     ({"start": "2999-01-01"}, 0), ({"speaker": "Zoe"}, 0), ({"type": "preference"}, 0)],
)  # fmt: skip
def test_a_search_keeps_to_its_filters(client: TestClient, filters: dict[str, Any], count: int) -> None:
    found = client.post("search", json={"query": "ledger PostgreSQL", "filters": filters}).json()["items"]
    assert len([hit for hit in found if "ledger" in hit["snippet"]]) == count


def test_a_question_is_answered_in_one_document(client: TestClient) -> None:
    answer = client.post("recall", json={"question": "What did Ana choose for the ledger?"}).json()
    assert "PostgreSQL" in answer["answer"]
    assert (answer["concluded"], answer["stopped_by"]) == (True, None)
    recorded = client.get(f"trajectories/{answer['trajectory_id']}").json()
    assert recorded["query"] == "What did Ana choose for the ledger?"
    assert recorded["outcome"]["content"] == answer["answer"]
    assert client.get("trajectories").json()["items"][0]["id"] == answer["trajectory_id"]


def test_an_unsure_answer_is_a_suggestion_with_the_closest_memories(client: TestClient) -> None:
    for text in (
        "The seal of the pump was replaced on 3 May 2026.",
        "The pump hums since the seal of the lid broke.",
    ):
        client.post("remember", json={"text": text})
    unsure = client.post("recall", json={"question": "When was the rubber seal of the pump replaced?"}).json()
    assert (unsure["answer"], unsure["suggestion"], unsure["outcome"]) == (None, "3 May 2026", "closest only")
    assert 0 < unsure["confidence"] <= 0.6
    assert ["hums" in one["excerpt"] for one in unsure["sources"]] == [False, True]
    sure = client.post("recall", json={"question": "When was the seal of the pump replaced?"}).json()
    assert (sure["answer"], sure["suggestion"], sure["closest"]) == ("3 May 2026", None, [])
    runs = client.get("trajectories").json()["items"]
    assert [run["suggestion"] for run in runs] == [None, "3 May 2026"]


def test_the_steps_of_a_recall_come_as_they_happen(
    client: TestClient, served: tuple[Any, ServerState]
) -> None:
    scripted(served[1], LOOK, ANSWER)
    answer = client.post("recall", json={"question": "What did Ana choose?"}, headers=EVENTS)
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert answer.headers["Cache-Control"] == "no-store"
    found = events_in(answer.text)
    steps = [data for name, data in found if name == "step"]
    assert [step["turn"] for step in steps] == [1, 2]
    assert "Ana chose PostgreSQL" in steps[0]["output"]
    assert "".join(data["text"] for name, data in found if name == "text").count("```repl") == 2
    assert found[-1][0] == "result"
    assert found[-1][1]["answer"] == "PostgreSQL"


def test_a_model_that_fails_ends_the_stream_with_its_problem(
    client: TestClient, served: tuple[Any, ServerState]
) -> None:
    from rlm_mem.errors import ModelOverloaded

    scripted(served[1], ModelOverloaded("too many requests", hint="wait"), ModelOverloaded("too many"))
    name, problem = events_in(client.post("recall", json={"question": "Who?"}, headers=EVENTS).text)[-1]
    assert (name, problem["status"]) == ("error", 503)
    problem = refused(client.post("recall", json={"question": "Who?"}), 503)
    assert problem["type"].endswith("/ModelOverloaded")


def test_a_budget_ends_a_recall_and_is_named(client: TestClient, served: tuple[Any, ServerState]) -> None:
    scripted(served[1], *[LOOK] * 5)
    body = {"question": "Who?", "limits": {"iterations": 2}}
    answer = client.post("recall", json=body).json()
    assert (answer["answer"], answer["stopped_by"], answer["iterations"]) == (None, "iterations", 2)


def test_a_conclusion_comes_with_its_path(client: TestClient) -> None:
    answer = client.post("reason", json={"question": "Why PostgreSQL for the ledger?"}).json()
    assert {"conclusion", "path", "supports", "contradicts"} <= set(answer)
    assert events_in(client.post("reason", json={"question": "Why?"}, headers=EVENTS).text)[-1][0] == "result"


def test_a_reasoning_streams_what_the_model_writes(
    client: TestClient, served: tuple[Any, ServerState]
) -> None:
    said = '```repl\nFINAL({"conclusion": "It scales."})\n```'
    scripted(served[1], said)
    found = events_in(client.post("reason", json={"question": "Why PostgreSQL?"}, headers=EVENTS).text)
    assert "".join(data["text"] for name, data in found if name == "text") == said
    assert (found[-1][0], found[-1][1]["conclusion"]) == ("result", "It scales.")


class Gate:
    """A model that waits, at its first turn, until a test lets it go on."""

    name = "gate"

    def __init__(self, *replies: str) -> None:
        self.asked = threading.Event()
        self.open = threading.Event()
        self._inner = ScriptedLLM(list(replies))

    def complete(self, messages: Any, **options: Any) -> Any:
        self.asked.set()
        assert self.open.wait(20)
        return self._inner.complete(messages)


def test_a_run_in_the_background_is_followed_by_several(
    client: TestClient, served: tuple[Any, ServerState]
) -> None:
    gate = served[1].memory._llm = Gate(LOOK, ANSWER)
    begun = client.post("recall", json={"question": "What?", "background": True})
    assert begun.status_code == 202
    run = begun.json()
    assert begun.headers["Location"] == f"/api/v1/runs/{run['id']}"
    assert client.get(f"runs/{run['id']}").json()["state"] == "running"
    assert client.get("runs").json()["items"][0]["id"] == run["id"]
    gate.open.set()
    first, second = (client.get(f"runs/{run['id']}/events", headers=EVENTS).text for _ in range(2))
    assert first == second
    assert [name for name, _ in events_in(first) if name != "text"] == ["step", "step", "result"]
    after = client.get(f"runs/{run['id']}/events", headers={**EVENTS, "Last-Event-ID": "2"}).text
    assert first.endswith(after)
    assert after.startswith("id: 3\n")
    done = client.get(f"runs/{run['id']}").json()
    assert (done["state"], done["turns"], done["result"]["answer"]) == ("done", 2, "PostgreSQL")
    assert [one["seq"] for one in client.get(f"runs/{run['id']}/events").json()["items"]][:2] == [1, 2]


def test_a_run_that_is_cancelled_ends_at_once(client: TestClient, served: tuple[Any, ServerState]) -> None:
    gate = served[1].memory._llm = Gate(*[LOOK] * 9)
    run = client.post("recall", json={"question": "What?", "background": True}).json()
    assert gate.asked.wait(20)
    client.post(f"runs/{run['id']}/cancel")
    kinds = [name for name, _ in events_in(client.get(f"runs/{run['id']}/events", headers=EVENTS).text)]
    assert [kind for kind in kinds if kind != "text"] == ["error"], "nobody waited for the model"
    gate.open.set()
    done = client.get(f"runs/{run['id']}").json()
    assert (done["state"], done["error"]["status"]) == ("cancelled", 409)


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
def test_a_client_that_leaves_ends_its_run_at_once(served: tuple[Any, ServerState], accept: str) -> None:
    app, state = served
    gate = state.memory._llm = Gate(*[LOOK] * 9)

    async def leave() -> None:
        """What a server does when the connection of a request breaks."""
        sent = [{"type": "http.request", "body": json.dumps({"question": "What?"}).encode()}]
        gone = anyio.Event()

        async def receive() -> dict[str, Any]:
            if sent:
                return sent.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            pass

        headers = {**BEARER, "Host": "127.0.0.1:7499", "Content-Type": "application/json", "Accept": accept}
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1",
            "method": "POST", "path": "/api/v1/recall", "raw_path": b"/api/v1/recall", "root_path": "",
            "scheme": "http", "query_string": b"", "server": ("127.0.0.1", 7499), "client": ("127.0.0.1", 1),
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }  # fmt: skip
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app, scope, receive, send)
            assert await anyio.to_thread.run_sync(gate.asked.wait, 20)
            gone.set()

    anyio.run(leave)
    (run,) = state.runs.list()
    assert run.wait(20), "nobody waits for the model"
    gate.open.set()
    assert (run.state, [one.kind for one in run.events if one.kind != "text"]) == ("cancelled", ["error"])
    assert run.trajectory_id == state.memory.trajectories(limit=1)[0].id, "its steps are recorded"


def test_a_session_runs_the_programs_of_its_caller(client: TestClient) -> None:
    opened = client.post("sessions", json={"question": "What did Ana choose?"})
    assert opened.status_code == 201
    handle = opened.json()["handle"]
    assert opened.headers["Location"] == f"/api/v1/sessions/{handle}"
    assert opened.json()["hits"][0]["id"].startswith("chunk-")
    path = f"sessions/{handle}"
    ran = client.post(
        f"{path}/programs",
        json={"code": "```python\nfound = search('ledger')\nprint(found[0]['snippet'])\n```"},
    )
    assert "Ana chose" in ran.json()["output"]
    wrong = client.post(f"{path}/programs", json={"code": "import os"}).json()
    assert "line 1" in wrong["error"] or "os" in wrong["error"]
    done = client.post(f"{path}/finish", json={"answer": "PostgreSQL", "confidence": 0.9}).json()
    assert (done["answer"], done["confidence"]) == ("PostgreSQL", 0.9)
    refused(client.post(f"{path}/programs", json={"code": "1"}), 409)
    assert client.post(f"{path}/finish", json={}).json()["answer"] == "PostgreSQL"
    refused(client.post(f"{path}/finish", json={"answer": "SQLite"}), 409)
    refused(client.post("sessions/recall-0000000000000000/finish", json={}), 404)


@pytest.mark.parametrize(
    "program", ["FINAL({'a'})", "FINAL(b'a')", "FINAL(len)", "FINAL(1e999)", "FINAL({1: 2})"]
)
def test_an_answer_that_json_cannot_hold_is_an_error_of_the_program(client: TestClient, program: str) -> None:
    path = f"sessions/{client.post('sessions', json={'question': 'What?'}).json()['handle']}"
    ran = client.post(f"{path}/programs", json={"code": program})
    assert ran.status_code == 200
    assert "FINAL: " in ran.json()["error"]
    ids = ["chunk-2020-01-01-ffffffff"]
    problem = refused(client.post(f"{path}/finish", json={"answer": "x", "chunk_ids": ids}), 422)
    assert "there is no chunk" in problem["detail"]
    ended = client.post(f"{path}/programs", json={"code": "FINAL(['tea \\ud800', {'n': None}])"}).json()
    assert ended["result"]["answer"] == '["tea \ufffd", {"n": null}]'


def test_a_session_that_is_closed_has_no_answer(client: TestClient) -> None:
    handle = client.post("sessions", json={"question": "What?"}).json()["handle"]
    assert client.delete(f"sessions/{handle}").status_code == 204
    assert client.get("trajectories/last").json()["outcome"]["concluded"] is False


@pytest.mark.parametrize("path", ["recall", "reason", "sessions"])
def test_a_question_has_words(client: TestClient, path: str) -> None:
    for question in ("", "  \n", "x" * 20_001, None):
        assert "question" in refused(client.post(path, json={"question": question}), 422)["detail"]


def test_too_many_runs_at_once_are_refused(
    served: tuple[Any, ServerState], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, state = served
    gate = state.memory._llm = Gate(*[ANSWER] * 50)
    monkeypatch.setattr(runs, "_MAX_RUNS", 3)
    with TestClient(app, API, headers=BEARER) as client:
        begun = [client.post("recall", json={"question": "?a", "background": True}) for _ in range(4)]
        assert [answer.status_code for answer in begun] == [202, 202, 202, 409]
        gate.open.set()


def test_the_kept_runs_of_any_number_of_namespaces_are_bounded(
    served: tuple[Any, ServerState], monkeypatch: pytest.MonkeyPatch
) -> None:
    app, state = served
    monkeypatch.setattr(runs, "_MAX_KEPT_IN_ALL", 4)
    with TestClient(app, API, headers=BEARER) as client:
        for number in range(9):
            headers = {"RLM-MEM-Namespace": f"team/{number}"}
            assert client.post("recall", json={"question": "What?"}, headers=headers).status_code == 200
            assert len(client.get("runs", headers=headers).json()["items"]) == 1
    assert [run.namespace for run in state.runs.list()] == [f"team/{number}" for number in (8, 7, 6, 5)]


def test_a_request_ends_with_an_error_if_its_answer_cannot_be_made(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr("rlm_mem.operations.shapes.recall_answer", fails)
    assert client.post("recall", json={"question": "Which database has the ledger?"}).status_code == 500
    assert [run["state"] for run in client.get("runs").json()["items"]] == ["failed"]
