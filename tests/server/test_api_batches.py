"""Several changes over HTTP in one commit: all of them, or none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.server.api import client_of


@pytest.fixture(params=["folder", "postgresql"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[TestClient]:
    brain: Any = tmp_path / "brain" if request.param == "folder" else request.getfixturevalue("dsn")
    with client_of(brain) as client:
        yield client


def batch(client: TestClient, *steps: dict[str, Any]) -> Any:
    return client.post("batch", json={"steps": list(steps)})


def create(client: TestClient, content: str) -> str:
    made: str = client.post("chunks", json={"content": content}).json()["id"]
    return made


def test_every_kind_of_step_is_carried_out_and_reported(client: TestClient) -> None:
    old, gone, lost = (create(client, text) for text in ("The old one.", "The one to go.", "The lost one."))
    client.delete(f"chunks/{lost}")
    undone = create(client, "What it said first.")
    client.patch(f"chunks/{undone}", json={"content": "What it said then."})
    client.put(f"chunks/{old}/links/supports/{gone}", json={})
    answer = batch(
        client,
        {"do": "remember", "text": "A ferry leaves at nine.", "tags": ["ferry"]},
        {"do": "create", "content": "The ferry is blue.", "type": "fact"},
        {"do": "link", "chunk_id": "#0", "target_id": "#1", "link_type": "supports", "strength": 0.9},
        {"do": "unlink", "chunk_id": old, "target_id": gone},
        {"do": "update", "chunk_id": old, "content": "The new one.", "tags": ["new"]},
        {"do": "update", "chunk_id": old, "confidence": 0.9, "if_revision": 4},
        {"do": "undo", "chunk_id": undone},
        {"do": "delete", "chunk_id": gone, "permanent": True},
        {"do": "restore", "chunk_id": lost},
    )
    assert answer.status_code == 200, answer.text
    done = answer.json()["steps"]
    assert [one["do"] for one in done] == [
        "remember", "create", "link", "unlink", "update", "update", "undo", "delete", "restore",
    ]  # fmt: skip
    (first,), (second,) = done[0]["chunk_ids"], done[1]["chunk_ids"]
    links = client.get(f"chunks/{first}/links?type=supports").json()["items"]
    assert [(link["chunk_id"], link["strength"]) for link in links] == [(second, 0.9)]
    now = client.get(f"chunks/{old}").json()
    assert (now["content"], now["tags"], now["confidence"]) == ("The new one.", ["new"], 0.9)
    assert now["links"] == []
    assert done[6] == {"do": "undo", "chunk_ids": [undone], "revision": 3}
    assert client.get(f"chunks/{undone}").json()["content"] == "What it said first."
    assert client.get(f"chunks/{gone}").status_code == client.get(f"archive/{gone}").status_code == 404
    assert client.get(f"chunks/{lost}").json()["content"] == "The lost one."


@pytest.mark.parametrize(
    ("step", "status", "said"),
    [
        ({"do": "delete", "chunk_id": "chunk-unknown"}, 404, "there is no chunk chunk-unknown"),
        ({"do": "delete", "chunk_id": "#7"}, 409, "#7: no earlier step"),
        ({"do": "delete", "chunk_id": f"chunk-memory-{'0' * 20}"}, 409, "on its own"),
        ({"do": "update", "chunk_id": "#0", "content": "Other.", "if_revision": 9}, 409, "revision 1"),
        ({"do": "link", "chunk_id": "#0", "target_id": "#0", "link_type": "supports"}, 409, "to itself"),
        (
            {"do": "create", "content": "x", "valid_from": "2026-02-01", "valid_to": "2026-01-01"},
            409,
            "after",
        ),
    ],
)
def test_a_step_that_cannot_be_made_undoes_those_before_it(
    client: TestClient, step: dict[str, Any], status: int, said: str
) -> None:
    kept = create(client, "What stays.")
    answer = batch(
        client,
        {"do": "create", "content": "What must not stay."},
        {"do": "update", "chunk_id": kept, "content": "Changed."},
        step,
    )
    problem = answer.json()
    assert (answer.status_code, problem["errors"][0]["pointer"]) == (status, "/steps/2"), problem
    assert problem["detail"].startswith(f"step 2 ({step['do']}): ") and said in problem["detail"]
    assert "nothing of the batch was done" in problem["detail"]
    assert [one["id"] for one in client.get("chunks").json()["items"]] == [kept]
    assert client.get(f"chunks/{kept}").json()["content"] == "What stays."


def test_thousands_of_texts_are_one_commit_and_a_text_at_fault_undoes_them(client: TestClient) -> None:
    texts = [{"do": "remember", "text": f"Pump {n} runs.", "tags": ["pumps"]} for n in range(600)]
    wrong = batch(client, {"do": "create", "content": "x"}, *texts[:3], texts[3] | {"replaces": "chunk-none"})
    problem = wrong.json()
    assert (wrong.status_code, problem["errors"][0]["pointer"]) == (404, "/steps/4"), problem
    assert "nothing of the batch was done" in problem["detail"]
    early = batch(client, texts[0], {"do": "remember", "text": "Gone.", "expires": "2001-01-01T00:00:00Z"})
    assert (early.status_code, early.json()["errors"][0]["pointer"]) == (409, "/steps/1")
    assert client.get("chunks").json()["items"] == []
    done = batch(client, *texts, {"do": "update", "chunk_id": "#599", "content": "The last."}).json()["steps"]
    assert len(done) == 601
    assert client.get(f"chunks/{done[599]['chunk_ids'][0]}").json()["content"] == "The last."
    (change,) = {one["change"] for one in client.get("events?op=create").json()["items"][:5]}
    assert change


def test_a_step_of_an_unknown_kind_or_with_unknown_fields_is_refused(client: TestClient) -> None:
    for step in ({"do": "burn"}, {"content": "No kind."}, {"do": "create", "content": "x", "colour": "red"}):
        assert batch(client, step).status_code == 422
    assert batch(client).status_code == 422
    assert client.get("chunks").json()["items"] == []
