"""Tiers, review, persona, records, care, import and export over HTTP, and the news of what others write."""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from rlm_mem import Memory
from rlm_mem.continuum.review import ReviewQueue
from rlm_mem.interchange.detection import FORMATS
from rlm_mem.operations.state import ServerState
from tests.continuum.conftest import learning, rewrite
from tests.server.api import API, BEARER, client_of, serving
from tests.server.test_api_chunks import create, pages, refused

CORE = {"usage_count": 100, "success_count": 99, "success_rate": 0.99, "confidence_score": 0.995}
STEPS = [{"tool": "WebFetch", "call": "https://example.org", "validation": "status 200", "result": "a page"}]


@pytest.fixture(params=["folder", "postgresql"])
def brain(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return tmp_path / "brain" if request.param == "folder" else request.getfixturevalue("dsn")


@pytest.fixture
def served(brain: Any) -> Iterator[tuple[TestClient, ServerState]]:
    with serving(brain) as (app, state, _), TestClient(app, API, headers=BEARER) as client:
        yield client, state


@pytest.fixture
def client(served: tuple[TestClient, ServerState]) -> TestClient:
    return served[0]


# --- tiers and review -------------------------------------------------------------------------------------


def test_a_tiered_memory_is_archived_and_restored_by_its_chunk_whose_text_cannot_be_changed(
    client: TestClient,
) -> None:
    client.post("continuum/traces", json={"goal": "Graft the medlar", "success": True})
    (mirror,) = (one["id"] for one in client.get("chunks", params={"tag": "tier:high"}).json()["items"])
    refused(client.patch(f"chunks/{mirror}", json={"content": "Other."}), 409)
    assert client.delete(f"chunks/{mirror}", headers={"If-Match": "*"}).status_code == 204
    assert client.get("continuum/health").json()["tiers"]["high"] == 0
    assert client.post(f"chunks/{mirror}/restore", headers={"If-Match": "*"}).status_code == 200


def test_a_trace_is_recorded_used_found_promoted_and_undone(client: TestClient) -> None:
    body = {
        "goal": "Fetch and summarise a page",
        "steps": STEPS,
        "success": True,
        "indicators": ["five lines"],
    }
    made = client.post("continuum/traces", json={**body, "project": "alpha"})
    assert made.status_code == 201
    key = made.json()["key"]
    assert made.json()["tier"] == "high"
    used = client.post("continuum/uses", json={"key": key, "success": True, "project": "beta"}).json()
    assert used["usage_count"] == 2
    assert client.get("continuum/memory", params={"key": key}).json()["fields"]["usage_count"] == 2
    found = client.post("continuum/query", json={"goal": "summarise pages", "kind": "recent"}).json()["items"]
    assert [one["file"] for one in found] == [key]
    assert client.post("continuum/consolidate", json={}).json()["dry_run"] is True
    assert client.get("continuum/health").json()["tiers"]["high"] == 1
    done = client.post("continuum/consolidate", json={"dry_run": False}).json()
    assert [one["key"] for one in done["promoted"]] == [key]
    assert client.get("continuum/memories", params={"tier": "mid"}).json()["items"][0]["tier"] == "mid"
    weighted = client.post(
        "continuum/query", json={"goal": "summarise pages", "weights": {"high": 1, "mid": 1}}
    )
    assert weighted.json()["items"][0]["parts"]["tier_weight"] > 0
    steps = pages(client, "continuum/journal", limit=1)
    assert [one["op"] for one in steps] == ["record", "use", "promote"]
    undone = client.post(f"continuum/transitions/{steps[-1]['id']}/undo", json={"reason": "too early"})
    assert undone.json()["op"] == "undo"
    assert client.get("continuum/health").json()["tiers"] == {"high": 1, "mid": 0, "low": 0, "ultra-low": 0}
    refused(client.post(f"continuum/transitions/{steps[-1]['id']}/undo"), 409)
    assert client.post("continuum/prune").json()["dry_run"] is True
    assert client.get("continuum/problems").json()["items"] == []
    assert client.post("continuum/sync").json()["files"] >= 0
    assert client.get("continuum/hints", params={"goal": "summarise a page"}).status_code == 200


def test_a_plain_chunk_proves_itself_too(client: TestClient) -> None:
    chunk_id = create(client)["id"]
    used = client.post("continuum/uses", json={"key": chunk_id, "success": True}).json()
    assert (used["key"], used["usage_count"], used["success_rate"]) == (chunk_id, 1, 1.0)


@pytest.mark.parametrize(
    "key", ["chunk-none", "nothing.md", "../../etc/passwd", "memory/long_term/pattern_x.md", "a b"]
)
def test_a_memory_that_is_not_there_is_not_found(client: TestClient, key: str) -> None:
    refused(client.get("continuum/memory", params={"key": key}), 404)
    refused(client.post("continuum/uses", json={"key": key, "success": True}), 404)


def test_working_state_is_put_read_and_cleared(client: TestClient) -> None:
    put = client.put("continuum/state", json={"plan": "First look, then leap.", "constraints": "By noon."})
    assert put.json()["plan"].strip() == "First look, then leap."
    assert client.get("continuum/state").json() == put.json()
    assert "workspace/state/plan.md" in client.delete("continuum/state").json()["removed"]
    assert client.get("continuum/state").json()["plan"] == ""


@pytest.mark.parametrize(
    ("verb", "status", "more"),
    [("approve", "approved", {}), ("reject", "rejected", {}), ("defer", "deferred", {"days": 3})],
)
def test_a_named_reviewer_decides(
    served: tuple[TestClient, ServerState], verb: str, status: str, more: dict[str, int]
) -> None:
    client, state = served
    continuum = state.memory.continuum
    rewrite(continuum, learning(continuum), **CORE)
    client.post("continuum/consolidate", json={"dry_run": False})
    (case,) = client.get("review").json()["items"]
    assert client.get(f"review/{case['id']}").json() == case
    path = f"review/{case['id']}/{verb}"
    refused(client.post(path, json={"reviewer": "agent", "reason": "I like it."}), 422)
    refused(client.post(path, json={"reviewer": "Maya"}), 422)
    done = client.post(path, json={"reviewer": "Maya", "reason": "Seen it.", **more}).json()
    assert (done["case"]["status"], done["case"]["decisions"][0]["reviewer"]) == (status, "Maya")
    if verb != "defer":
        refused(client.post(path, json={"reviewer": "Maya", "reason": "Again."}), 409)
    assert client.get("review").json()["items"] == []
    assert len(client.get("review", params={"status": "all"}).json()["items"]) == 1
    refused(client.post("review/promote-0000000000/approve", json={"reviewer": "M", "reason": "x"}), 404)


def test_a_named_reviewer_keeps_some_memories_of_a_session(
    served: tuple[TestClient, ServerState], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, state = served
    store, queue = state.memory.store, state.memory.continuum.review
    made = [store.create_chunk(f"Gateway {n} needs firmware {n}.", conversation_id="s-1") for n in range(3)]
    with store.files.transaction():
        case = queue.add_captured("s-1", "claude-code", made)
    assert client.get(f"review/{case.id}").json()["chunk_ids"] == case.chunk_ids
    body = {"reviewer": "Maya", "keep": case.chunk_ids[:1]}
    refused(client.post(f"review/{case.id}/reject", json=body), 422)
    refused(client.post(f"review/{case.id}/approve", json={**body, "keep": []}), 422)
    monkeypatch.delattr(ReviewQueue, "cases")  # a decision reads its own case alone
    done = client.post(f"review/{case.id}/approve", json=body).json()
    assert done["case"]["decisions"][0]["archived"] == case.chunk_ids[1:]
    assert list(store.get_many(case.chunk_ids)) == case.chunk_ids[:1]


# --- changes and their undo -------------------------------------------------------------------------------


def test_two_clients_with_one_token_undo_only_what_they_did_if_they_name_themselves(
    client: TestClient,
) -> None:
    one, two = {"RLM-MEM-Client": "nightly import"}, {"RLM-MEM-Client": "editor"}
    kept = client.post("chunks", json={"content": "The kettle is blue."}, headers=one).json()["id"]
    gone = client.post("chunks", json={"content": "The ladder is red."}, headers=two).json()["id"]
    assert client.post("undo", json={}, headers=two).status_code == 200
    assert client.post("undo", json={}, headers=two).status_code == 409
    assert client.get(f"chunks/{gone}").status_code == 404 and client.get(f"chunks/{kept}").status_code == 200
    actors = [one["actor"] for one in client.get("undo").json()["items"]]
    assert {one.rpartition(":")[2] for one in actors} >= {"nightly-import", "editor"}


def test_changes_are_listed_and_undone_one_by_one_or_by_id(served: tuple[TestClient, ServerState]) -> None:
    client, _ = served
    first = create(client)["id"]
    client.put("persona/sliders/humor", json={"value": 20})
    client.patch(f"chunks/{first}", json={"tags": ["quince"]})
    client.delete(f"chunks/{first}")
    listed = pages(client, "undo", limit=1)
    assert [one["ops"] for one in listed if first in one["chunk_ids"]] == [["delete"], ["update"], ["create"]]
    assert not any(one["undone"] for one in listed)

    undone = client.post("undo").json()
    assert (undone["change"], undone["chunk_ids"]) == (listed[0]["id"], [first])
    client.post("undo")
    assert client.get(f"chunks/{first}").json()["tags"] == []
    by_id = client.post("undo", json={"change": undone["undo"]})
    assert refused(by_id, 409)["type"].endswith("ConflictError")
    again = client.get("undo", params={"limit": 2}).json()["items"]
    assert [one["undoes"] for one in again] == [listed[1]["id"], listed[0]["id"]]
    assert [one["undone"] for one in pages(client, "undo", limit=3)][2:4] == [True, True]
    refused(client.post("undo", json={"change": "0" * 20 + "-" + "0" * 16}), 404)
    refused(client.post("undo", json={"change": "../x"}), 422)


def test_nothing_to_undo_is_not_found(client: TestClient) -> None:
    refused(client.post("undo"), 404)
    assert client.get("undo").json()["items"] == []


# --- persona ----------------------------------------------------------------------------------------------


def test_mode_and_sliders_are_set_kept_and_let_go(client: TestClient) -> None:
    assert client.put("persona/mode", json={"mode": "concise"}).json()["mode"] == "CONCISE"
    assert client.put("persona/sliders/humor", json={"value": 20}).json()["by_hand"] == {"humor": 20}
    assert client.get("persona").json()["sliders"]["humor"] == 20
    said = client.post("persona/say", json={"message": "Set verbosity to 80%"}).json()
    assert (said["changed"], said["persona"]["sliders"]["verbosity"]) == (["set"], 80)
    assert client.post("persona/say", json={"message": "What a day."}).json()["changed"] == []
    assert client.delete("persona/sliders/humor").json()["by_hand"] == {"verbosity": 80}
    assert client.delete("persona/sliders").json()["by_hand"] == {}
    assert "# Persona" in client.get("persona/prompt").json()["prompt"]
    library = client.get("persona/library").json()
    assert "CONCISE" in library["modes"]
    assert {one["name"] for one in library["sliders"]} == set(client.get("persona").json()["sliders"])
    refused(client.put("persona/mode", json={"mode": "NONE_SUCH"}), 404)
    refused(client.put("persona/sliders/nothing", json={"value": 1}), 404)
    refused(client.put("persona/sliders/humor", json={"value": 101}), 422)
    assert client.get("hud").json()["figures"]["mode"]["name"] == "CONCISE"


# --- records ----------------------------------------------------------------------------------------------


def test_recalls_and_what_they_cost_are_on_record(client: TestClient) -> None:
    create(client)
    ids = [
        client.post("recall", json={"question": f"What did Ana choose {number}?"}).json()["trajectory_id"]
        for number in range(5)
    ]
    assert {one["id"] for one in pages(client, "trajectories", limit=2)} == set(ids)
    assert client.get("trajectories", params={"operation": "reason"}).json()["items"] == []
    assert client.get("trajectories", params={"since": "2999-01-01"}).json()["items"] == []
    one = client.get(f"trajectories/{ids[0]}").json()
    assert one["steps"][0]["programs"]
    assert "path" not in one
    refused(client.get("trajectories/traj-20200101T000000-00000000"), 404)
    made = client.get(f"trajectories/{ids[0]}/receipt", params={"bundle": True}).json()
    assert made["run"] == ids[0]
    body = {"receipt": made["receipt"], "bundle": made["bundle"]}
    assert client.post("receipts/verify", json=body).json()["verdict"] == "holds"
    altered = client.post(
        "receipts/verify", json={"receipt": made["receipt"].replace("Ana", "Eva", 1)}
    ).json()
    assert (altered["verdict"], altered["checks"][0]["part"]) == ("altered", "file")
    refused(client.post("receipts/verify", json={"receipt": "", "key": "/etc/passwd"}), 422)
    costs = client.get("costs").json()
    assert (sum(line["runs"] for line in costs["items"]), costs["unpriced_calls"]) == (5, 0)
    assert client.get("costs", params={"until": "2020-01-01"}).json()["items"] == []


def test_the_audit_log_comes_in_pages_that_do_not_move(client: TestClient) -> None:
    made = create(client)
    for number in range(6):
        client.patch(f"chunks/{made['id']}", json={"tags": [f"t{number}"]})
    listed = pages(client, "events", lambda: create(client, "More."), limit=2)
    mine = [one["op"] for one in listed if one.get("chunk_id") == made["id"]]
    assert mine == ["create", *["update"] * 6]
    keys = [(one["ts"], one["op"], one.get("revision")) for one in listed]
    assert len(keys) == len(set(keys))
    only = client.get("events", params={"chunk_id": made["id"], "op": "update"}).json()["items"]
    assert [one["revision"] for one in only] == [2, 3, 4, 5, 6, 7]
    assert only[0]["actor"] == "mcp"


# --- care -------------------------------------------------------------------------------------------------


def test_damage_is_found_and_mended_only_when_asked(tmp_path: Path) -> None:
    with client_of(tmp_path / "brain") as client:
        one, two = create(client)["id"], create(client, "Ben drinks tea.")["id"]
        client.put(f"chunks/{one}/links/supports/{two}", json={})
        (path,) = (tmp_path / "brain" / "memory" / "chunks").rglob(f"{two}.json")
        path.unlink()
        codes = {finding["code"] for finding in client.post("check").json()["findings"]}
        assert "index-missing-file" in codes
        planned = client.post("repair").json()
        assert planned["dry_run"] and planned["repairs"]
        assert not any(repair["done"] for repair in planned["repairs"])
        done = client.post("repair", json={"dry_run": False}).json()
        assert any(repair["done"] for repair in done["repairs"])
        assert "index-missing-file" not in {one["code"] for one in client.post("check").json()["findings"]}


def test_maintenance_operations_work(client: TestClient) -> None:
    create(client)
    assert client.post("checkpoint").json()["figures"] is not None
    assert client.post("sync").json()["unreadable"] == []
    assert client.post("rebuild").status_code == 200
    assert client.post("check").json()["findings"] == []
    assert client.get("stats").json()["chunk_count"] == 1


# --- in and out -------------------------------------------------------------------------------------------


def send(client: TestClient, name: str, data: bytes, **query: Any) -> Any:
    headers = {"Content-Type": "application/octet-stream"}
    return client.post("import", params={"name": name, **query}, content=data, headers=headers)


def test_no_export_is_left_behind(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client, "Ben drinks green tea.")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for bounds, status in (("bytes=0-5", 206), ("bytes=x", 400), ("bytes=999999-", 416)):
        assert client.get("export", headers={"Range": bounds}).status_code == status
        assert list(tmp_path.glob("rlm-mem-export-*")) == []


def test_what_is_exported_comes_in_again_elsewhere(client: TestClient, tmp_path: Path) -> None:
    one, two = create(client, tags=["t"])["id"], create(client, "Rows need policies.")["id"]
    client.put(f"chunks/{two}/links/supports/{one}", json={"strength": 0.8})
    client.delete(f"chunks/{create(client, 'To go.')['id']}")
    lines = client.get("export")
    assert lines.headers["Content-Type"].startswith("application/x-ndjson")
    assert "attachment" in lines.headers["Content-Disposition"]
    zipped = client.get("export", params={"format": "zip", "archive": False})
    names = zipfile.ZipFile(BytesIO(zipped.content)).namelist()
    assert len([name for name in names if name.startswith("chunks/")]) == 2
    assert "supports" in client.get(f"chunks/{two}/markdown").json()["markdown"]
    with client_of(tmp_path / "other", namespace="else/where") as other:
        would = send(other, "export.jsonl", lines.content, dry_run=True).json()
        assert (would["created"], other.get("stats").json()["chunk_count"]) == (3, 0)
        assert send(other, "export.jsonl", lines.content).json()["problems"] == []
        there = other.get(f"chunks/{two}").json()
        assert (there["namespace"], there["links"][0]["target_id"]) == ("else/where", one)
        assert other.get("stats").json()["archived_count"] == 1
        assert send(other, "export.jsonl", lines.content).json()["created"] == 0


def test_another_file_of_the_same_name_replaces_nothing(client: TestClient) -> None:
    assert send(client, "notes.md", b"# Monday\n\nThe ferry leaves at nine.\n").json()["created"] == 1
    done = send(client, "notes.md", b"# Tuesday\n\nThe ferry leaves at ten.\n").json()
    assert (done["created"], done["archived"]) == (1, 0)
    assert client.get("stats").json()["chunk_count"] == 2
    assert "/tmp" not in json.dumps(client.get("chunks").json())


@pytest.mark.parametrize("name", ["../x.md", "a/b.md", "", ".x", "x" * 200, "c:\\x.md"])
def test_an_upload_has_a_bare_name(client: TestClient, name: str) -> None:
    assert "name" in refused(send(client, name, b"A note."), 422)["detail"]


def test_an_upload_may_have_every_format_of_the_command(client: TestClient) -> None:
    shown = client.get("openapi.json").json()["paths"]["/import"]["post"]["parameters"]
    (names,) = [one["schema"]["enum"] for one in shown if one["name"] == "format"]
    assert set(names) >= set(FORMATS)
    data = json.dumps({"results": [{"id": "1", "memory": "Ana prefers rye bread."}]}).encode()
    done = send(client, "export.json", data, format="mem0").json()
    assert (done["formats"], done["created"]) == ({"mem0": 1}, 1)
    assert "mem0" in refused(send(client, "notes.md", b"A note.", format="mem9"), 422)["detail"]


def test_an_archive_that_is_none_is_refused(client: TestClient) -> None:
    refused(send(client, "export.zip", b"PK\x03\x04 no archive"), 422)


def test_an_upload_beyond_the_limit_is_refused_before_it_is_read(client: TestClient) -> None:
    headers = {"Content-Type": "application/zip", "Content-Length": str(300 * 1024 * 1024)}
    refused(client.post("import", params={"name": "a.zip"}, content=iter([b"x"]), headers=headers), 413)


# --- news -------------------------------------------------------------------------------------------------


def test_writes_of_another_process_are_reported_promptly(tmp_path: Path) -> None:
    """Over a real connection: the stream has no end."""
    import httpx

    from tests.server.test_api_serve import running

    brain = tmp_path / "brain"
    with (
        running(brain, "--no-dashboard") as address,
        httpx.Client(base_url=address, headers=BEARER, timeout=60) as http,
    ):
        with http.stream("GET", "/api/v1/changes") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: ready"
            with Memory.open(brain) as other:
                other.remember("The heron came back.", conversation_id="birds")
            # Comments keep the connection alive for ever: after a few of them nothing will come any more.
            told = next(line for line, _ in zip(lines, range(40), strict=False) if "memories" in line)
        change = json.loads(told.removeprefix("data: "))
        assert "create" in {event["op"] for event in change["events"]}
