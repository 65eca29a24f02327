"""A server that other machines reach: what it demands, what it answers to, and its replacement while clients work."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers

from rlm_mem.access.tokens import TokenFile
from rlm_mem.errors import InvalidConfig, StorageError
from rlm_mem.http.site import Site
from rlm_mem.serving import run
from rlm_mem.serving.handover import HandedOver, Predecessor, start_successor
from rlm_mem.serving.network import Network
from tests.house.sources import ROOT

sys.path.append(str(ROOT / "benchmarks"))

PUBLIC = "https://memory.example"
PROXY: dict[str, Any] = {"public_url": PUBLIC, "proxies": ("10.0.0.5", "fd00::/8")}


def test_a_team_works_while_tokens_are_revoked_and_the_server_is_replaced(tmp_path: Path) -> None:
    """The short form of benchmarks/team.py. The first server takes its socket as from a service manager."""
    import team

    played = team.play(tmp_path / "brain", clients=5, seconds=3, revocations=1)
    assert (played.leaks, played.broken, played.lost, played.twice, played.astray) == ([], [], [], [], [])
    assert played.acknowledged > 0
    assert len(played.revoked) == 1
    before, after = played.restarted
    assert before != after
    assert 0 not in played.restarted


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        ({}, ("--public-url", "--tls-cert", "rlm-mem token create")),
        ({"public_url": PUBLIC}, ("--tls-cert", "rlm-mem token create")),
        (PROXY, ("rlm-mem token create",)),
        ({"proxies": ("10.0.0.5",)}, ("--public-url", "rlm-mem token create")),
        ({"public_url": PUBLIC, "oauth_issuer": "https://login.example"}, ("--tls-cert",)),
        ({**PROXY, "oauth_issuer": "https://login.example"}, ()),
    ],
)
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7"])
def test_other_machines_are_let_in_with_protection_only(
    tmp_path: Path, host: str, more: dict[str, Any], missing: tuple[str, ...]
) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    tokens.create("old", ["x"], ["read"])
    tokens.revoke("old")
    network = Network(7412, host=host, **more)
    if not missing:
        network.check(tokens)
        return
    with pytest.raises(InvalidConfig) as refused:
        network.check(tokens)
    named = ("--public-url", "--tls-cert", "rlm-mem token create")
    assert tuple(one for one in named if one in str(refused.value)) == missing
    tokens.create("new", ["x"], ["read"])
    if missing == ("rlm-mem token create",):
        network.check(tokens)


@pytest.mark.parametrize(
    "more",
    [
        {"host": "0.0.0.0", "public_url": "http://memory.example"},
        {"public_url": "https://memory.example/path"},
        {"public_url": "https://user@memory.example"},
        {"public_url": "https://memory.example?x"},
        {"public_url": "https://memory.example:99999"},
        {"public_url": "memory.example"},
        {"public_url": "https://[::1"},
        {"proxies": ("memory.example",)},
        {"proxies": ("10.0.0.5/8",)},
        {"host": "memory.example"},
        {"tls_cert": Path("cert.pem")},
        {"tls_cert": Path("nowhere.pem"), "tls_key": Path("nowhere.key")},
    ],
)
def test_a_network_that_makes_no_sense_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig):
        Network(**{"port": 7412, **more}).check(None)


REQUESTS = [
    # of a server behind a proxy: peer, Host, scheme, X-Forwarded-Proto, answer
    ("10.0.0.5", "memory.example", "http", ["https"], None),
    ("::ffff:10.0.0.5", "memory.example", "http", ["https"], None),
    ("fd00::7", "MEMORY.example", "http", ["https"], None),
    ("10.0.0.5", "memory.example", "http", [], 403),
    ("10.0.0.5", "memory.example", "http", ["http"], 403),
    ("10.0.0.5", "memory.example", "http", ["https", "http"], 403),
    ("10.0.0.6", "memory.example", "http", ["https"], 403),
    ("127.0.0.1", "memory.example", "http", ["https"], 403),
    ("not an address", "memory.example", "http", ["https"], 403),
    ("10.0.0.5", "memory.example.evil", "http", ["https"], 421),
    ("10.0.0.5", "", "http", ["https"], 421),
    ("10.0.0.5", "127.0.0.1:7412", "http", ["https"], 421),
    ("192.168.1.9", "localhost:7412", "http", [], 421),
    ("127.0.0.1", "localhost:7412", "http", [], None),
    ("192.168.1.9", "memory.example", "https", [], None),
]


@pytest.mark.parametrize(("peer", "host", "scheme", "forwarded", "status"), REQUESTS)
def test_a_request_has_to_come_by_an_address_of_the_server(
    peer: str, host: str, scheme: str, forwarded: list[str], status: int | None
) -> None:
    site = Network(7412, host="0.0.0.0", **PROXY).site(7412)
    raw = [(b"host", host.encode()), *((b"x-forwarded-proto", one.encode()) for one in forwarded)]
    found = site.refusal({"client": (peer, 1), "scheme": scheme}, Headers(raw=raw))
    assert (found and found[0]) == status


def test_cookies_and_origins_are_those_of_the_public_address() -> None:
    site = Network(7412, host="0.0.0.0", **PROXY).site(7412)
    assert site.secure
    assert site.is_own_origin(PUBLIC)
    assert not site.is_own_origin("http://memory.example")
    assert not site.is_own_origin(f"{PUBLIC}.evil")
    assert not Site(7412).secure


def test_a_server_whose_successor_does_not_start_keeps_running(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "argv", ["rlm-mem", "serve", "--port", "none"])
    with socket.create_server(("127.0.0.1", 0)) as listening:
        assert not asyncio.run(start_successor(listening, HandedOver("secret-token")))
        socket.create_connection(listening.getsockname()).close()
    assert "this one continues" in caplog.text
    assert "secret-token" not in caplog.text


@pytest.mark.parametrize("state", [b"[1]\n", b'{"logins": 3}\n', b"\xff\n", b"[" * 9_000 + b"\n"])
def test_a_malformed_state_of_the_server_before_is_refused(
    monkeypatch: pytest.MonkeyPatch, state: bytes
) -> None:
    own, other = socket.socketpair()
    with own, socket.socket() as listening:
        own.sendall(state)
        inherited = socket.dup(listening.fileno())
        monkeypatch.setenv("RLM_MEM_HANDOVER", f"{inherited},{other.detach()}")
        with pytest.raises(StorageError, match="does not name a server to take over from"):
            Predecessor.of_environment()


def test_a_server_that_takes_over_refuses_a_replaced_token_and_the_logins_with_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("new-token-of-the-owner")
    file.chmod(0o600)
    before = HandedOver("old-token-of-the-owner", "token …", {"cookie": None, "ana": "0123"})
    token, _ = run._owner_token(Network(), file, before)
    assert (token, run._logins(before, token)) == ("new-token-of-the-owner", {"ana": "0123"})
    token, _ = run._owner_token(Network(), None, before)
    assert (token, run._logins(before, token)) == (before.token, before.logins)


def test_refused_requests_are_logged_without_what_they_carried(caplog: pytest.LogCaptureFixture) -> None:
    from starlette.testclient import TestClient

    from rlm_mem.http.guard import Guard, Keys
    from rlm_mem.http.metrics import Metrics

    async def nothing(*_: Any) -> None:
        raise AssertionError("the guard let it in")

    caplog.set_level(logging.INFO)
    guard = Guard(nothing, keys=Keys("t" * 32, 7412), site=Site(7412), metrics=Metrics())
    client = TestClient(guard, "http://127.0.0.1:7412")
    sent = "Bearer " + "s3cret" * 8
    answer = client.get("/api/v1/chunks?query=private", headers={"Authorization": sent, "Cookie": "a=s3cret"})
    assert answer.status_code == 401
    assert re.search(r"GET '/api/v1/chunks' 401", caplog.text)
    assert "s3cret" not in caplog.text
    logged = next(record for record in caplog.records if record.name == "rlm_mem.access")
    assert "private" not in logged.getMessage()
