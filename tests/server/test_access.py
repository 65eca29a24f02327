"""Named tokens: what each permission and namespace allows, over every interface, and the end of a token."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.testclient import TestClient

from rlm_mem.access.grants import OWNER, PERMISSIONS, Access, Caller
from rlm_mem.access.tokens import TokenFile
from rlm_mem.errors import AccessDenied, ConflictError, InputError, NamespaceError, RlmMemError, StorageError
from rlm_mem.http.guard import Keys
from rlm_mem.mcp.resources import read_resource
from rlm_mem.mcp.server import McpServer
from rlm_mem.mcp.service import Service
from rlm_mem.operations.operation import Operation, parts_of
from rlm_mem.operations.registry import OPERATIONS, ROUTES
from rlm_mem.operations.state import ServerState
from tests.server.api import API, BASE, BEARER, PORT, serving
from tests.server.conftest import text_in

SECRET = "the heron server stands in the cellar"
OWN_PAGE = {"Origin": BASE}


@dataclass
class Team:
    """A server whose clients have tokens."""

    app: Starlette
    state: ServerState
    keys: Keys
    file: TokenFile

    def token(self, name: str, *namespaces: str, allow: str = "read,write", **more: Any) -> dict[str, str]:
        """The header of a new token."""
        _, token = self.file.create(name, namespaces, allow.split(","), **more)
        return {"Authorization": f"Bearer {token}"}

    def client(self, headers: dict[str, str], base: str = API) -> TestClient:
        return TestClient(self.app, base, headers=headers, follow_redirects=False)


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    path = tmp_path / "brain" / "tokens.json"
    with serving(tmp_path / "brain", dashboard=True, tokens=path, every_tool=True) as (app, state, keys):
        assert state.opened.tokens is not None
        yield Team(app, state, keys, state.opened.tokens)


def address(operation: Operation) -> str:
    parts = {
        "chunk_id": "chunk-none", "target_id": "chunk-other", "link_type": "supports", "handle": "recall-" + "0" * 16,
        "run_id": "run-" + "0" * 16, "trajectory_id": "traj-none", "case_id": "case-none",
        "transition_id": "none", "slider": "verbosity", "token_id": "0" * 12,
    }  # fmt: skip
    return operation.path[1:].format(**{name: parts[name] for name in parts_of(operation.path)})


#: What a token may do with one permission in one namespace; an operation that is missing here fails the test.
NEEDS = {
    "admin": "checkpoint createToken erase listTokens rebuildIndex repair revokeToken sync syncFolder syncMemories "
    "verifyErasure",
    "review": "approveCase decideCase deferCase rejectCase releaseChunk undoChange undoTransition",
    "write": "batch clearState consolidate createChunk deleteChunk deleteChunks deleteLinks importFile prune "
    "putLink putState quarantineChunk recordTrace recordUse remember resetSlider resetSliders restoreChunk "
    "archiveChunks restoreChunks sayToPersona setMode setSlider supersedeChunk undoChunk updateChunk",
}


def test_every_operation_needs_the_permission_that_was_decided_for_it() -> None:
    decided = {name: needed for needed, names in NEEDS.items() for name in names.split()}
    found = {one.name: one.needs for one in OPERATIONS}
    assert {name: needed for name, needed in found.items() if needed != "read"} == decided
    undeclared = Operation("POST", "/new", "new", "Neither reads nor writes by its record.", "server")
    assert undeclared.needs == "admin"


def test_each_operation_is_refused_over_http_without_its_permission(team: Team) -> None:
    team.state.memory.remember("Something of the owner.")
    wrong = []
    for permission, included in PERMISSIONS.items():
        with team.client(team.token(permission, "*", allow=permission)) as client:
            for operation in ROUTES:
                allowed = operation.needs in included
                if allowed and (permission != "read" or operation.method != "GET"):
                    continue  # that what is permitted works is for other tests
                if operation.name == "followChanges":
                    continue  # where it is not refused, it has no end
                answer = client.request(operation.method, address(operation), json={})
                denied = answer.status_code == 403 and "does not permit" in answer.text
                if denied is allowed:
                    wrong.append((permission, operation.name, answer.status_code, answer.text[:200]))
                if denied:
                    assert f'scope="rlm-mem:{operation.needs}"' in answer.headers["WWW-Authenticate"]
    assert not wrong


def test_what_concerns_every_namespace_needs_all_of_them(team: Team) -> None:
    with team.client(team.token("chief", "team/*", "default", allow="admin")) as client:
        for operation in (one for one in ROUTES if one.name != "followChanges"):
            answer = client.request(operation.method, address(operation), json={})
            assert ("every namespace" in answer.text) is operation.everywhere, (operation.name, answer.text)
    assert {one.name for one in ROUTES if one.everywhere} == {
        "checkpoint", "sync", "rebuildIndex", "syncFolder", "syncMemories", "erase", "verifyErasure",
    }  # fmt: skip


def test_figures_of_a_confined_client_have_no_size_of_the_index_of_all(team: Team) -> None:
    ana = Caller(Access("ana", ("team/ana",), frozenset({"read"})))
    memory = team.state.opened.admit(ana, "read").memory
    assert "index_size_mb" not in json.loads(read_resource(memory, "memory://status"))


def test_who_has_which_token_is_told_to_administrators_of_its_namespaces_alone(team: Team) -> None:
    everywhere = team.token("chief", "*", allow="admin")
    here = {"RLM-MEM-Namespace": "team/ana"}
    with team.client(everywhere) as client:
        for namespace in ("team/secret", "team/ana"):
            new = {"name": namespace.replace("/", "-"), "namespaces": [namespace]}
            assert client.post("tokens", json=new, headers=here).status_code == 201
        assert client.get("events", headers=here).text.count("token_create") == 2
    with team.client(team.token("ana", "team/ana")) as client:
        assert "token" not in client.get("events").text
    with team.client(team.token("lead", "team/ana", allow="admin")) as client:
        found = client.get("events").text
        assert "team-ana" in found and "secret" not in found


def test_a_token_reaches_its_namespaces_alone(team: Team) -> None:
    ana, ben = team.token("ana", "team/ana", "team/shared"), team.token("ben", "team/ben", "team/shared")
    with team.client(ana) as client:
        (chunk,) = client.post("remember", json={"text": SECRET}).json()["chunk_ids"]
        assert client.get("about").json()["namespace"] == "team/ana"
        run = client.post("recall", json={"question": "Where is the heron server?"}).json()
        handle = client.post("sessions", json={"question": "Where is it?"}).json()["handle"]
        background = client.post(
            "recall", json={"question": "Where does the heron stand?", "background": True}
        ).json()["id"]
        shared = {"RLM-MEM-Namespace": "team/shared"}
        client.post("remember", json={"text": "Lunch is at noon."}, headers=shared)
        assert client.get("stats", headers=shared).json()["chunk_count"] == 1
    with team.client(ben) as client:
        for method, path, body in (
            ("GET", f"chunks/{chunk}", None),
            ("GET", f"trajectories/{run['trajectory_id']}", None),
            ("GET", f"runs/{background}", None),
            ("POST", f"runs/{background}/cancel", {}),
            ("POST", f"sessions/{handle}/programs", {"code": "print(search('heron'))"}),
        ):
            assert client.request(method, path, json=body).status_code == 404, path
        for path in (
            "chunks",
            "events",
            "runs",
            "trajectories",
            "timeline",
            "stats",
            "conversations",
            "undo",
        ):
            answer = client.get(path)
            assert answer.status_code == 200
            assert "heron" not in answer.text
            assert chunk not in answer.text
        found = client.post("search", json={"query": "heron server"})
        assert found.status_code == 200
        assert "cellar" not in found.text
        opened = client.post("sessions", json={"question": "Where is the heron?"}).json()["handle"]
        programs = (
            "print(search('heron server'), list_chunks_by_tag('x'), stats(), timeline())",
            f"print(read_chunk('{chunk}'))",
        )
        for code in programs:
            ran = client.post(f"sessions/{opened}/programs", json={"code": code}).json()
            assert "cellar" not in ran["text"]
        assert client.get("stats", headers=shared).json()["chunk_count"] == 1
        for name in (
            "team/ana",
            "team",
            "team/ben/below",
            "TEAM/ANA",
            "team/ana/",
            "*",
            "team/*",
            "../ana",
            "",
            " ",
        ):
            answer = client.get("chunks", headers={"RLM-MEM-Namespace": name})
            assert answer.status_code == 403, name
            assert "heron" not in answer.text
        # In the name of the token, whichever client it is.
        events = client.get("events", headers=shared).json()["items"]
        assert {event["actor"] for event in events if event["op"] == "create"} == {"token:ana"}


def test_a_pattern_covers_what_is_below_it_and_a_client_names_it(team: Team) -> None:
    with team.client(team.token("all", "team/*")) as client:
        assert "name one" in client.get("about").text
        for name, status in (("team/ana", 200), ("team/a/b", 200), ("team", 403), ("teams/x", 403)):
            assert client.get("about", headers={"RLM-MEM-Namespace": name}).status_code == status
    with team.client(BEARER) as client:
        assert client.get("about").json()["namespace"] == "default"
        assert client.get("about", headers={"RLM-MEM-Namespace": "any/one"}).json()["namespace"] == "any/one"


def test_a_server_of_one_namespace_gives_nobody_another(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    with serving(tmp_path / "brain", tokens=path, namespace="team/ana") as (app, state, _):
        assert state.opened.tokens is not None
        for name, scope, status in (("a", "*", 200), ("b", "team/*", 200), ("c", "team/ben", 403)):
            _, token = state.opened.tokens.create(name, [scope], ["read"])
            with TestClient(app, API, headers={"Authorization": f"Bearer {token}"}) as client:
                assert client.get("about").status_code == status
                other = client.get("about", headers={"RLM-MEM-Namespace": "team/ben"})
                assert other.status_code == 403


def over_mcp(app: Starlette, headers: dict[str, str], play: Callable[[McpClient], Any]) -> Any:
    """What an MCP client does with a server in this process."""

    async def go() -> Any:
        transport = httpx2.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(transport=transport, base_url=BASE, headers=headers, timeout=60) as http,
            McpClient(streamable_http_client(f"{BASE}/mcp", http_client=http)) as client,
        ):
            return await play(client)

    return asyncio.run(go())


def test_agents_see_the_tools_and_memories_of_their_token(tmp_path: Path) -> None:
    from rlm_mem.access.grants import client_of
    from rlm_mem.operations.context import Settings
    from rlm_mem.serving.app import create_app

    state = ServerState(Settings(brain=tmp_path / "brain", tokens=tmp_path / "tokens.json", every_tool=True))
    assert state.opened.tokens is not None
    _, writes = state.opened.tokens.create("w", ["team/ana"], ["write"])
    _, reads = state.opened.tokens.create("r", ["team/ben"], ["read"])
    server = McpServer(Service(state.opened), client_of)
    made = []

    def app() -> Starlette:
        return create_app(
            state, keys=Keys(None, PORT, tokens=state.opened.tokens), port=PORT, mcp=lambda: server
        )

    async def write(client: McpClient) -> set[str]:
        kept = await client.call_tool("remember", {"text": SECRET})
        made.append(kept.structured_content["chunk_ids"][0])
        return {tool.name for tool in (await client.list_tools()).tools}

    async def read(client: McpClient) -> set[str]:
        for name, arguments in (
            ("search", {"query": "heron server"}), ("get", {"ids": made}),
            ("recall", {"question": "Where is the heron?"}),
        ):  # fmt: skip
            answer = await client.call_tool(name, arguments)
            assert "cellar" not in str(answer.content)
        refused = await client.call_tool("remember", {"text": "More."})
        assert refused.is_error
        assert "has no permission to write" in str(refused.content)
        listed = str((await client.list_resources()).resources)
        assert made[0] not in listed
        with pytest.raises(MCPError, match="no resource"):
            await client.read_resource(f"memory://chunks/{made[0]}")
        assert text_in((await client.read_resource("memory://recent")).contents[0]) == "[]"
        return {tool.name for tool in (await client.list_tools()).tools}

    try:
        offered = over_mcp(app(), {"Authorization": f"Bearer {writes}"}, write)
        less = over_mcp(app(), {"Authorization": f"Bearer {reads}"}, read)
    finally:
        server.close()
        state.close()
    assert {"remember", "search", "update"} <= offered
    assert offered - less >= {"remember", "forget", "update", "quarantine", "link", "import"}
    assert "review_decide" not in offered
    # A server that nobody has told who calls lets nobody do anything.
    assert Service(state.opened).tools_of(Caller()) == []


def test_a_token_is_stored_as_a_hash_and_shown_once(team: Team, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    headers = team.token("ana", "team/ana", lasts="30d")
    token = headers["Authorization"].partition(" ")[2]
    assert token not in team.file.path.read_text()
    assert team.file.path.stat().st_mode & 0o777 == 0o600
    with team.client(BEARER) as admin, team.client(headers) as client:
        listed = admin.get("tokens")
        assert [one["name"] for one in listed.json()["tokens"]] == ["ana"]
        assert token not in listed.text
        assert "digest" not in listed.text
        client.get("about")
        for changed in (
            token[:-1],
            token + "x",
            token.upper(),
            token[:-2] + "00",
            f"{token} ",
            "x" * 100_000,
        ):
            given = {"Authorization": f"Bearer {changed}"}
            assert client.get("about", headers=given).status_code == (
                200 if changed.strip() == token else 401
            )
    assert token[-16:] not in caplog.text
    assert "/about' 200 by 'ana'" in caplog.text
    assert "/about' 401\n" in caplog.text, "nobody is named by a token that is refused"


def test_a_revoked_token_is_out_with_its_next_request(team: Team) -> None:
    headers = team.token("ana", "team/ana", allow="admin")
    page = {"Accept": "text/html"}
    with team.client(headers) as client, TestClient(team.app, BASE, follow_redirects=False) as browser:
        token = headers["Authorization"].partition(" ")[2]
        assert browser.post("/login", data={"token": token}, headers=OWN_PAGE).status_code == 303
        assert "team/ana" in browser.get("/memories", headers=page).text
        assert client.get("about").status_code == 200
        (record,) = team.file.records()
        received = asyncio.run(followed(team, headers))
        assert "event: ready" in received
        assert "create" not in received
        assert client.get("about").status_code == 401
        assert browser.get("/memories", headers=page).status_code == 401
        assert team.file.get(record.id) is None
    with team.client(BEARER) as admin:
        assert admin.delete(f"tokens/{record.id}").status_code == 404


async def followed(team: Team, headers: dict[str, str]) -> str:
    """The stream of changes of a client whose token is revoked meanwhile, up to its end."""
    received = b""
    request = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if not request:
            await asyncio.Event().wait()
        return request.pop()

    async def send(message: Any) -> None:
        nonlocal received
        received += message.get("body", b"")
        if b"event: ready" in received and team.file.in_force():
            TokenFile(team.file.path).revoke("ana", by="cli:someone")  # another process
            memory = team.state.opened.admit(Caller(OWNER, "team/ana"), "write").memory
            await asyncio.to_thread(memory.remember, SECRET)

    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {
        "type": "http", "method": "GET", "path": "/api/v1/changes", "query_string": b"", "scheme": "http",
        "root_path": "", "headers": [(b"host", f"127.0.0.1:{PORT}".encode()), *raw],
    }  # fmt: skip
    await asyncio.wait_for(team.app(scope, receive, send), 8)
    return received.decode()


def test_an_admin_gives_no_more_than_it_has(team: Team) -> None:
    team.token("other", "team/ben")
    with team.client(team.token("ana", "team/ana", "team/x/*", allow="admin")) as client:
        new: dict[str, Any] = {"name": "sub", "namespaces": ["team/ana"], "permissions": ["read"]}
        made = client.post("tokens", json=new).json()
        assert made["about"]["expires_at"] is not None
        for namespaces in (["team/ben"], ["*"], ["team/*"], ["team/ana", "team/ben"], ["team/ana/below"], []):
            refused = client.post("tokens", json={**new, "name": "n", "namespaces": namespaces})
            assert refused.status_code in (403, 422), namespaces
        within = {**new, "name": "n", "namespaces": ["team/x/y", "team/x/z/*"]}
        assert client.post("tokens", json=within).status_code == 201
        assert client.post("tokens", json=new).status_code == 409
        assert {one["name"] for one in client.get("tokens").json()["tokens"]} == {"ana", "sub", "n"}
        other = next(one.id for one in team.file.records() if one.name == "other")
        assert client.delete(f"tokens/{other}").status_code == 404
        assert client.delete(f"tokens/{made['about']['id']}").json()["state"] == "revoked"
        ops = [event["op"] for event in client.get("events").json()["items"]]
        assert ops.count("token_create") == 2
        assert ops.count("token_revoke") == 1


def test_a_browser_sees_what_its_token_permits(team: Team) -> None:
    team.state.memory.remember("A memory of the owner.")
    with TestClient(team.app, BASE, headers=OWN_PAGE) as browser:
        token = team.token("eva", "team/eva", allow="read")["Authorization"].partition(" ")[2]
        browser.post("/login", data={"token": token})
        for path in (
            "/memories",
            "/timeline",
            "/timeline/density",
            "/recalls",
            "/review",
            "/integrity",
            "/costs",
        ):
            answer = browser.get(path)
            assert answer.status_code == 200
            assert "of the owner" not in answer.text
        assert "/memories/new" not in browser.get("/memories").text
        for path, fields in (
            ("/memories/new", {"text": "x"}), ("/persona", {"do": "say"}), ("/review/case-1", {"do": "approve"}),
            ("/review", {"do": "approve"}),
            ("/tiers/undo", {"transition": "x"}),
        ):  # fmt: skip
            assert browser.post(path, data=fields).status_code == 403, path


def test_a_browser_chooses_among_the_namespaces_of_its_token_and_no_others(team: Team) -> None:
    for name in ("team/ana", "team/shared", "team/ben", "else"):
        team.client(team.token(f"t{name[-3:]}", name)).post("remember", json={"text": f"Kept in {name}."})
    token = team.token("ana", "team/ana", "team/shared")["Authorization"].partition(" ")[2]
    wide = team.token("wide", "team/*")["Authorization"].partition(" ")[2]
    with TestClient(team.app, BASE, headers=OWN_PAGE) as browser, TestClient(team.app, BASE) as other:
        browser.post("/login", data={"token": token})
        page = browser.get("/memories").text
        assert "Kept in team/ana." in page and 'href="/namespaces"' in page
        offered = re.findall(r'name="namespace" value="([^"]+)"', browser.get("/namespaces").text)
        assert offered == ["team/ana", "team/shared"]
        chosen = browser.post("/namespaces", data={"namespace": "team/shared"}).text
        assert "Kept in team/shared." in chosen and "Kept in team/ana." not in chosen
        assert "Kept in team/shared." in browser.get("/memories").text
        for name in ("team/ben", "else", "*", "team/*", "team/shared/../ben", "", "Team/ben"):
            assert browser.post("/namespaces", data={"namespace": name}).status_code in (403, 422), name
        assert "Kept in team/shared." in browser.get("/memories").text
        # A server that takes over knows the choice, and keeps it only as long as the token reaches it.
        cookie, after = browser.cookies[team.keys.cookie_name], Keys("secret-token", 7412)
        after.take_over(team.keys.logins(), team.keys.choices())
        assert after.chosen_by(cookie, Access("ana", ("team/*",))) == "team/shared"
        assert after.chosen_by(cookie, Access("ana", ("team/ana",))) is None
        # A form of a page that was open before writes nothing into the namespace that was chosen since.
        form = {"text": "A note for myself.", "in": "team/ana"}
        refused = browser.post("/memories/new", data=form)
        assert refused.status_code == 409 and "team/shared was chosen since" in refused.text
        assert "A note for myself." not in browser.get("/memories").text
        assert browser.post("/memories/new", data={**form, "in": "team/shared"}).status_code == 200
        # A pattern has no first namespace: the browser is asked.
        other.headers.update(OWN_PAGE)
        other.post("/login", data={"token": wide})
        asked = other.get("/memories")
        assert asked.url.path == "/namespaces"
        assert re.findall(r'name="namespace" value="([^"]+)"', asked.text) == [
            "team/ana",
            "team/ben",
            "team/shared",
        ]
        assert "Kept in team/ben." in other.post("/namespaces", data={"namespace": "team/ben"}).text
        assert "Kept in team/shared." in browser.get("/memories").text, "each login has its own"
        assert (
            other.post(
                "/namespaces", data={"namespace": "team/ana"}, headers={"Origin": "https://evil.example"}
            ).status_code
            == 403
        )
        other.post("/logout")
        other.post("/login", data={"token": wide})
        assert other.get("/memories").url.path == "/namespaces"
    assert team.client({"Authorization": f"Bearer {wide}"}).get("stats").status_code == 422


def test_an_admin_makes_and_revokes_tokens_on_a_page(team: Team) -> None:
    with TestClient(team.app, BASE, headers=OWN_PAGE) as browser:
        reader = team.token("eva", "team/eva", allow="read")["Authorization"].partition(" ")[2]
        browser.post("/login", data={"token": reader})
        refused = browser.get("/tokens")
        assert refused.status_code == 403
        for page in (refused, *map(browser.get, ("/memories", "/namespaces"))):
            assert 'href="/tokens"' not in page.text
        form = {
            "do": "create",
            "name": "bot",
            "namespaces": "team/bot team/x/*",
            "permission": ["read", "write"],
        }
        assert browser.post("/tokens", data=form).status_code == 403
        browser.post("/login", data={"token": BEARER["Authorization"].partition(" ")[2]})
        for address in ("/memories", "/namespaces", "/memories/chunk-unknown"):
            assert 'href="/tokens"' in browser.get(address).text
        shown = browser.post("/tokens", data={**form, "expires": "1h"}).text
        found = re.search(r"rlm_mem_token_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", shown)
        assert found is not None
        record = team.file.find(found[0])
        assert record is not None
        assert (record.namespaces, record.permissions) == (("team/bot", "team/x/*"), ("read", "write"))
        assert found[0] not in browser.get("/tokens").text
        browser.post("/tokens", data={**form, "name": "forever", "expires": "never"})
        assert [one.expires_at for one in team.file.records() if one.name == "forever"] == [None]
        for wrong in ({"name": "a b"}, {"namespaces": "te*"}, {"permission": []}, {"expires": "soon"}, {}):
            answer = browser.post("/tokens", data={**form, **wrong})
            assert answer.status_code == 400
            assert 'role="alert"' in answer.text
        done = browser.post("/tokens", data={"do": "revoke", "token_id": record.id})
        assert "Revoked" in done.text
        assert team.file.find(found[0]) is None


def test_the_owner_without_a_token_of_the_start_is_nobody(tmp_path: Path) -> None:
    with serving(tmp_path / "brain") as (app, state, _):
        nobody = TestClient(app, API)
        assert nobody.get("about").status_code == 401
        with pytest.raises(AccessDenied):
            state.opened.admit(Caller(), "read")


# --- the file ---------------------------------------------------------------------------------------------


def test_tokens_expire(tmp_path: Path) -> None:
    now = [datetime(2026, 5, 1, tzinfo=UTC)]
    file = TokenFile(tmp_path / "tokens.json", lambda: now[0])
    _, token = file.create("ana", ["a"], ["read"], lasts="1h")
    _, later = file.create("ben", ["a"], ["read"], lasts="2026-06-01")
    assert [file.find(one) is not None for one in (token, later)] == [True, True]
    now[0] += timedelta(hours=1)
    assert [file.find(one) is not None for one in (token, later)] == [False, True]
    assert file.in_force()
    assert file.create("ana", ["a"], ["read"])[0].expires_at is None  # the name is free again
    assert file.revoke("ana").expires_at is None
    now[0] += timedelta(days=60)
    assert not file.in_force()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("a b", ["x"], ["read"]), InputError),
        (("a\n", ["x"], ["read"]), InputError),
        (("", ["x"], ["read"]), InputError),
        (("a", ["x y"], ["read"]), NamespaceError),
        (("a", ["te*"], ["read"]), NamespaceError),
        (("a", ["*/x"], ["read"]), NamespaceError),
        (("a", [], ["read"]), InputError),
        (("a", ["x"], []), InputError),
        (("a", ["x"], ["root"]), InputError),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(
    tmp_path: Path, arguments: Any, error: type[RlmMemError]
) -> None:
    file = TokenFile(tmp_path / "tokens.json")
    with pytest.raises(error):
        file.create(*arguments)
    for lasts in ("soon", "0d", "-1d", "2020-01-01", "9" * 12 + "w"):
        with pytest.raises(InputError):
            file.create("a", ["x"], ["read"], lasts=lasts)
    assert not (tmp_path / "tokens.json").exists()


def test_a_file_that_is_damaged_or_open_to_others_lets_nobody_in(team: Team) -> None:
    headers = team.token("ana", "team/ana")
    good = team.file.path.read_bytes()
    with team.client(headers) as client, team.client(BEARER) as owner:
        assert client.get("about").status_code == 200
        for bad in (
            b"",
            b"{",
            good.replace(b"read", b"root"),
            good.replace(b'"format": 1', b'"format": 2'),
            b"\xff",
        ):
            team.file.path.write_bytes(bad)
            assert client.get("about").status_code == 503
            assert owner.get("about").status_code == 200
            with pytest.raises(StorageError):
                team.file.create("b", ["x"], ["read"])
            assert team.file.path.read_bytes() == bad
        team.file.path.write_bytes(good)
        assert client.get("about").status_code == 200
        team.file.path.chmod(0o666)
        team.file.path.write_bytes(good + b"\n")
        assert client.get("about").status_code == 503
        team.file.path.unlink()
        assert client.get("about").status_code == 401


def test_two_processes_that_change_the_file_lose_nothing(tmp_path: Path) -> None:
    files = [TokenFile(tmp_path / "tokens.json") for _ in range(2)]
    for number in range(10):
        files[number % 2].create(f"t{number}", ["x"], ["read"])
        files[number % 2].revoke(f"t{number // 2}") if number % 2 else None
    assert len(files[0].records()) == 10
    with pytest.raises(ConflictError):
        files[0].create("t9", ["x"], ["read"])


def test_access_is_decided_by_whole_names() -> None:
    access = Access("a", ("team/ana", "x/*"), PERMISSIONS["write"])
    covered = ("team/ana", "x/y", "x/y/z", "x/*", "x/y/*")
    assert [
        name for name in (*covered, "x", "team", "team/anabel", "team/*", "*", "xy/z") if access.covers(name)
    ] == [*covered]
    assert access.includes(["x/y"], ["read", "write"])
    assert not access.includes(["x/y"], ["review"])


def test_figures_for_a_scraper_need_their_permission(team: Team) -> None:
    with team.client(team.token('a"na'.replace('"', ""), "team/ana"), BASE) as client:
        client.get("/api/v1/about")
        assert client.get("/metrics").status_code == 403
    with team.client(team.token("scraper", allow="metrics"), BASE) as client:
        assert client.get("/api/v1/about").status_code == 403
        text = client.get("/metrics").text
    assert 'rlm_mem_requests_total{token="ana",method="GET",route="/api/v1/about",status="200"} 1' in text
    for line in text.splitlines():
        assert line.startswith("#") or len(line.rsplit(" ", 1)) == 2
        float("0" if line.startswith("#") else line.rsplit(" ", 1)[1])
    assert json.dumps(SECRET) not in text
