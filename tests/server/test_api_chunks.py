"""Chunks over HTTP: what is stored comes back, nobody overwrites what they have not seen, pages stay in place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response
from starlette.testclient import TestClient

from rlm_mem.operations.traits import encode_cursor
from tests.server.api import BASE, client_of
from tests.waiting import until

PROBLEM = "application/problem+json"


@pytest.fixture(params=["folder", "postgresql"])
def brain(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Over files and over rows the interface is the same."""
    return tmp_path / "brain" if request.param == "folder" else request.getfixturevalue("dsn")


@pytest.fixture
def client(brain: Any) -> Iterator[TestClient]:
    with client_of(brain) as client:
        yield client


def create(client: TestClient, content: str = "Ana chose PostgreSQL.", **more: Any) -> dict[str, Any]:
    answer = client.post("chunks", json={"content": content, **more})
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == f"/api/v1/chunks/{answer.json()['id']}"
    made: dict[str, Any] = answer.json()
    return made


def refused(answer: Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["Content-Type"] == PROBLEM
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert problem["type"].startswith("tag:rlm-mem,2026:problem/")
    assert problem["title"] and problem["detail"]
    return problem


def test_a_chunk_that_did_not_hold_yet_is_not_said_to_be_missing(client: TestClient) -> None:
    made = client.post("chunks", json={"content": "It came late.", "occurred_at": "2026-02-01"}).json()["id"]
    told = refused(client.get(f"chunks/{made}", params={"as_of": "2026-01-01"}), 404)
    assert (told["detail"], told["hint"]) == (
        f"{made} was not valid at 2026-01-01",
        "leave out as_of to get its current state",
    )
    assert client.get(f"chunks/{made}", params={"as_of": "2026-03-01"}).status_code == 200
    told = refused(client.get("chunks/chunk-a", params={"as_of": "2026-03-01"}), 404)
    assert told["detail"] == "there is no chunk chunk-a"


def test_what_is_stored_comes_back_as_it_was_given(client: TestClient) -> None:
    given = {
        "content": "Ana chose PostgreSQL \N{BIRD}.",
        "type": "decision",
        "tags": ["db", "ledger"],
        "confidence": 0.9,
        "conversation_id": "talk 1",
        "source": "letter",
        "occurred_at": "2026-02-10T21:37:00.000000Z",
        "extra": {"page": 3, "nested": {"list": [1, 2.5, None, True]}},
        "provenance": {"agent": "a"},
    }
    made = create(client, **given)
    read = client.get(f"chunks/{made['id']}").json()
    assert read == made
    assert {name: read[name] for name in given} == given
    assert (read["revision"], read["links"], read["archived"]) == (1, [], False)


def test_a_chunk_is_changed_only_at_the_revision_that_was_read(client: TestClient) -> None:
    made = create(client)
    path = f"chunks/{made['id']}"
    tag = client.get(path).headers["ETag"]
    assert tag == '"1"'
    changed = client.patch(path, json={"tags": ["new"]}, headers={"If-Match": tag})
    assert (changed.status_code, changed.headers["ETag"], changed.json()["tags"]) == (200, '"2"', ["new"])
    problem = refused(client.patch(path, json={"content": "Other."}, headers={"If-Match": tag}), 412)
    assert "revision 2" in problem["detail"]
    assert client.get(path).json()["content"] == "Ana chose PostgreSQL."
    assert client.patch(path, json={"confidence": 0.5}, headers={"If-Match": '"7", "2"'}).status_code == 200
    assert client.patch(path, json={"confidence": 0.6}, headers={"If-Match": "*"}).headers["ETag"] == '"4"'
    # A weak tag promises nothing about the content, so it never matches for a change.
    refused(client.patch(path, json={"confidence": 0.7}, headers={"If-Match": 'W/"4"'}), 412)


@pytest.mark.parametrize("method", ["DELETE", "POST undo", "PUT link", "DELETE link"])
def test_every_change_of_a_chunk_honours_its_etag(client: TestClient, method: str) -> None:
    made, other = create(client), create(client, "Ben drinks tea.")
    client.patch(f"chunks/{made['id']}", json={"tags": ["new"]})
    path = f"chunks/{made['id']}"
    verb, _, what = method.partition(" ")
    if what == "undo":
        path += "/undo"
    elif what == "link":
        path += f"/links/{'supports/' if verb == 'PUT' else ''}{other['id']}"
    body = {} if verb in ("POST", "PUT") else None
    refused(client.request(verb, path, json=body, headers={"If-Match": '"1"'}), 412)
    assert client.get(f"chunks/{made['id']}").json()["revision"] == 2
    assert client.request(verb, path, json=body, headers={"If-Match": '"2"'}).is_success


def test_a_chunk_is_written_with_what_was_done_about_its_secrets(client: TestClient) -> None:
    key = "sk-ant-api03-" + "Ab1" * 30
    made = create(client, f"The key is {key}.")
    assert (list(made["secrets"].values()), made["secrets_hidden"]) == ([1], 1) and key not in made["content"]
    path = f"chunks/{made['id']}"
    kept = client.patch(path, json={"content": f"The key was {key}.", "secrets": "keep"}).json()
    assert (kept["secrets"], kept["secrets_hidden"]) == (made["secrets"], 0) and key in kept["content"]
    assert "secrets" not in client.patch(path, json={"content": "No key."}).json()


def test_a_conflict_at_the_revision_that_was_read_is_no_failed_precondition(client: TestClient) -> None:
    old, first, second = (
        create(client),
        create(client, "Ana chose MySQL."),
        create(client, "Ana chose SQLite."),
    )
    path = f"chunks/{old['id']}/supersede"
    assert client.post(path, json={"by": first["id"]}).is_success
    tag = client.get(f"chunks/{old['id']}").headers["ETag"]
    problem = refused(client.post(path, json={"by": second["id"]}, headers={"If-Match": tag}), 409)
    assert "already replaced" in problem["detail"]
    missing = "chunks/chunk-2026-01-01-00000000"
    refused(client.patch(missing, json={"content": "Ana left."}, headers={"If-Match": tag}), 404)


def test_what_a_client_has_already_is_not_sent_again(client: TestClient) -> None:
    path = f"chunks/{create(client)['id']}"
    answer = client.get(path, headers={"If-None-Match": 'W/"1"'})
    assert (answer.status_code, answer.content, answer.headers["ETag"]) == (304, b"", '"1"')
    client.patch(path, json={"tags": ["new"]})
    assert client.get(path, headers={"If-None-Match": '"1"'}).status_code == 200


def test_reads_are_counted_beside_the_chunk_and_do_not_change_its_etag(client: TestClient) -> None:
    path = f"chunks/{create(client)['id']}"
    first = client.get(path)
    assert client.get(path).content == first.content
    client.get(path, params={"track": False})
    assert client.get(f"{path}/reads").json()["access_count"] == 2
    head = client.head(path)
    assert (head.status_code, head.content, head.headers["ETag"]) == (200, b"", '"1"')


def test_a_deleted_chunk_is_archived_and_can_be_restored(client: TestClient) -> None:
    made = create(client, tags=["x"])
    path = f"chunks/{made['id']}"
    answer = client.delete(path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert "archive" in refused(client.get(path), 404)["hint"]
    refused(client.delete(path), 404)
    assert [one["id"] for one in client.get("archive").json()["items"]] == [made["id"]]
    assert client.get(f"archive/{made['id']}").json() == {**made, "archived": True}
    assert client.post(f"{path}/restore").json()["tags"] == ["x"]
    assert "is already restored" in refused(client.post(f"{path}/restore"), 409)["detail"]
    assert client.get("archive").json()["items"] == []
    assert client.delete(path, params={"permanent": True}).status_code == 204
    refused(client.post(f"{path}/restore"), 404)
    refused(client.get(f"{path}/history"), 404)


def test_every_version_is_kept_and_any_comes_back(client: TestClient) -> None:
    path = f"chunks/{create(client, 'First.')['id']}"
    client.patch(path, json={"content": "Second."})
    client.patch(path, json={"content": "Third."})
    versions = client.get(f"{path}/history").json()["items"]
    assert [(one["revision"], one["chunk"]["content"], one["current"]) for one in versions] == [
        (1, "First.", False), (2, "Second.", False), (3, "Third.", True),
    ]  # fmt: skip
    assert client.post(f"{path}/undo").json()["content"] == "Second."
    undone = client.post(f"{path}/undo", json={"to_revision": 1})
    assert (undone.json()["content"], undone.headers["ETag"]) == ("First.", '"5"')
    refused(client.post(f"{path}/undo", json={"to_revision": 77}), 404)


def test_text_of_any_length_is_remembered_and_known_the_second_time(client: TestClient) -> None:
    text = "\n\n".join(f"Day {day}: the gauge at Port Lowan stood at {day * 7} cm." * 20 for day in range(8))
    first = client.post("remember", json={"text": text, "conversation_id": "log", "tags": ["gauge"]}).json()
    assert first["chunks_created"] == len(first["chunk_ids"]) > 1
    again = client.post("remember", json={"text": text, "conversation_id": "log"}).json()
    assert (again["chunks_created"], again["duplicates"]) == (0, first["chunk_ids"])
    listed = client.get("chunks", params={"tag": "gauge", "conversation_id": "log"}).json()["items"]
    assert [one["id"] for one in listed] == first["chunk_ids"]


def test_the_earlier_memories_nearest_to_a_text_come_with_it_if_asked_for(client: TestClient) -> None:
    (old,) = client.post("remember", json={"text": "The gauge at Port Lowan is read at noon."}).json()[
        "chunk_ids"
    ]
    assert "earlier" not in client.post("remember", json={"text": "The gauge at Port Lowan froze."}).json()
    made = client.post(
        "remember", json={"text": "The gauge is read at nine from now on.", "earlier": 1}
    ).json()
    assert len(made["earlier"]) == 1
    made = client.post("remember", json={"text": "Reading the gauge takes an hour.", "earlier": 10}).json()
    assert old in [one["id"] for one in made["earlier"]] or old in made["replaced"]
    refused(client.post("remember", json={"text": "The gauge.", "earlier": 11}), 422)


def test_links_are_put_listed_from_both_ends_and_removed(client: TestClient) -> None:
    one, two = create(client)["id"], create(client, "Rows need policies.")["id"]
    path = f"chunks/{two}/links/supports/{one}"
    put = client.put(path, json={"strength": 0.8, "reasoning": "because"})
    assert (put.json()["strength"], put.headers["ETag"]) == (0.8, '"2"')
    assert client.put(path, json={"strength": 0.8, "reasoning": "because"}).headers["ETag"] == '"2"'
    assert client.get(f"chunks/{two}").json()["links"][0]["reasoning"] == "because"
    (back,) = client.get(f"chunks/{one}/links", params={"direction": "in"}).json()["items"]
    assert (back["chunk_id"], back["type"], back["direction"]) == (two, "supports", "in")
    assert client.get(f"chunks/{one}/links", params={"direction": "out"}).json()["items"] == []
    assert client.delete(f"chunks/{two}/links/{one}", params={"type": "contradicts"}).json() == {"removed": 0}
    assert client.delete(f"chunks/{two}/links/{one}").json() == {"removed": 1}
    refused(client.put(f"chunks/{two}/links/likes/{one}", json={}), 422)
    refused(client.put(f"chunks/{two}/links/supports/{two}", json={}), 409)
    refused(client.put(f"chunks/{two}/links/supports/chunk-none", json={}), 404)
    refused(client.get("chunks/chunk-none/links"), 404)


def pages(client: TestClient, path: str, between: Any = None, **query: Any) -> list[Any]:
    """Every item of a list, page by page along its Link headers; `between` is called after each page."""
    items: list[Any] = []
    answer = client.get(path, params=query)
    while True:
        assert answer.status_code == 200, answer.text
        items += answer.json()["items"]
        if "next" not in answer.links:
            assert answer.json()["next_cursor"] is None
            return items
        if between is not None:
            between()
        answer = client.get(BASE + answer.links["next"]["url"])


@pytest.mark.parametrize("order", ["oldest", "newest"])
def test_pages_neither_repeat_nor_hide_a_chunk_while_others_write(client: TestClient, order: str) -> None:
    """Half of the chunks share one moment, so the order within it counts too."""
    ids = [
        create(
            client, f"Note {number}.", occurred_at="2026-02-01" if number % 2 else f"2026-01-{number + 1:02}"
        )["id"]
        for number in range(16)
    ]
    kept = ids[:10]
    doomed = iter(ids[10:])

    def write() -> None:
        create(client, "Much older.", occurred_at="2020-01-01")
        create(client, "Much newer.", occurred_at="2027-01-01")
        create(client, "Of the same moment.", occurred_at="2026-02-01")
        gone = next(doomed, None)
        if gone:
            client.delete(f"chunks/{gone}", params={"permanent": True})
        client.patch(f"chunks/{kept[0]}", json={"confidence": 0.3})

    listed = [one["id"] for one in pages(client, "chunks", write, limit=3, order=order)]
    assert len(listed) == len(set(listed))
    assert set(kept) <= set(listed)


def test_pages_hold_to_their_filters(client: TestClient) -> None:
    for number in range(7):
        create(client, f"Note {number}.", tags=["even" if number % 2 == 0 else "odd"], conversation_id="c")
    items = pages(client, "chunks", tag="even", conversation_id="c", limit=2)
    assert len(items) == 4
    assert all(one["tags"] == ["even"] for one in items)
    assert pages(client, "chunks", type="decision", limit=2) == []
    assert len(pages(client, "timeline", limit=3)) == 7
    assert [one["tag"] for one in pages(client, "tags", limit=1)] == ["even", "odd"]


def test_conversations_come_in_pages_the_newest_first(client: TestClient) -> None:
    for number in range(5):
        create(client, f"Note {number}.", conversation_id=f"c{number}", occurred_at=f"2026-01-0{number + 1}")
    listed = [one["id"] for one in pages(client, "conversations", limit=2)]
    assert listed == ["c4", "c3", "c2", "c1", "c0"]


@pytest.mark.parametrize(
    "cursor",
    [*("x", "W10", "WyJuZXdlc3QiLDEsMV0", "WyJvbGRlc3QiLCJhIl0"), encode_cursor("oldest", 1.0, 2**63)],
)
def test_a_cursor_that_is_none_of_this_list_is_refused(client: TestClient, cursor: str) -> None:
    refused(client.get("chunks", params={"cursor": cursor}), 404)


def test_neighbours_are_the_chunks_around_it_in_its_conversation(client: TestClient) -> None:
    ids = [create(client, f"Line {number}.", conversation_id="c")["id"] for number in range(4)]
    found = client.get(f"chunks/{ids[1]}/neighbours", params={"after": 5}).json()
    assert found == {"before": [ids[0]], "after": ids[2:]}


def test_figures_count_what_is_there(client: TestClient) -> None:
    create(client, type="decision", conversation_id="c", tags=["t"])
    client.delete(f"chunks/{create(client, 'To go.')['id']}")
    figures = client.get("stats").json()
    assert (figures["chunk_count"], figures["archived_count"], figures["by_type"]) == (1, 1, {"decision": 1})
    assert (figures["tags"], figures["conversations"], figures["namespace"]) == (1, 1, "default")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "content"),
        ({"content": " "}, "content"),
        ({"content": 5}, "content"),
        ({"content": "x", "confidence": 2}, "confidence"),
        ({"content": "x", "tags": ["a\nb"]}, "tags"),
        ({"content": "x", "occurred_at": "2026-02-30"}, "occurred_at"),
        ({"content": "x", "occurred_at": "yesterday"}, "occurred_at"),
        ({"content": "x", "colour": "red"}, "colour"),
        ({"content": "x", "type": "poem"}, "poem"),
        ({"content": "x", "extra": []}, "extra"),
        ([], "object"),
    ],
)
def test_a_body_that_does_not_fit_is_refused_with_the_name_of_the_part(
    tmp_path: Path, body: Any, named: str
) -> None:
    with client_of(tmp_path / "brain") as client:
        problem = refused(client.post("chunks", json=body), 422)
        assert named in problem["detail"]
        assert client.get("stats").json()["chunk_count"] == 0


def test_a_period_that_ends_before_it_begins_does_not_fit(tmp_path: Path) -> None:
    with client_of(tmp_path / "brain") as client:
        period = {"valid_from": "2026-02-01", "valid_to": "2026-01-01"}
        refused(client.post("chunks", json={"content": "x", **period}), 409)
        path = f"chunks/{create(client, valid_from='2026-02-01')['id']}"
        refused(client.patch(path, json={"valid_to": "2026-01-01"}), 409)
        assert (
            client.patch(path, json={"valid_to": "2026-03-01"}).json()["valid_to"]
            == "2026-03-01T00:00:00.000000Z"
        )


def test_numbers_are_taken_as_json_knows_them(tmp_path: Path) -> None:
    """5.0 is a whole number in JSON, "5" is none; what is kept as plain data is kept as it came."""
    with client_of(tmp_path / "brain") as client:
        create(client, extra={"size": 1.0})
        answer = client.post("search", json={"query": "PostgreSQL", "limit": 5.0})
        assert answer.status_code == 200
        refused(client.post("search", json={"query": "PostgreSQL", "limit": "5"}), 422)
        refused(client.post("search", json={"query": "PostgreSQL", "limit": 5.5}), 422)
        refused(client.get("chunks", params={"limit": "5.0"}), 422)


def test_a_text_that_was_edited_by_hand_is_sent_again_and_not_overwritten(tmp_path: Path) -> None:
    """The server has had the memory open all the time."""
    with client_of(tmp_path / "brain") as client:
        made = create(client)
        path = f"chunks/{made['id']}"
        file = next((tmp_path / "brain").rglob(f"{made['id']}.json"))
        file.write_text(file.read_text().replace("chose", "refused"))
        assert (
            client.get(path, headers={"If-None-Match": '"1"'}).json()["content"] == "Ana refused PostgreSQL."
        )
        refused(client.patch(path, json={"content": "Other."}, headers={"If-Match": '"1"'}), 412)
        tag = client.get(path).headers["ETag"]
        until(lambda: client.post("search", json={"query": "refused"}).json()["items"], "the edit")
        assert (
            client.patch(path, json={"content": "Other."}, headers={"If-Match": tag}).headers["ETag"] == '"2"'
        )


def test_an_older_chunk_replaces_a_newer_one_only_on_request(client: TestClient) -> None:
    older = create(client, "The lamp is red.", occurred_at="2026-01-05T10:00:00Z")["id"]
    newer = create(client, "The lamp is blue.", occurred_at="2026-02-05T10:00:00Z")["id"]
    told = refused(client.post(f"chunks/{newer}/supersede", json={"by": older}), 422)
    assert f"{older} of 2026-01-05 is older" in told["detail"]
    answer = client.post(f"chunks/{newer}/supersede", json={"by": older, "force": True})
    assert answer.json()["superseded_by"] == older
