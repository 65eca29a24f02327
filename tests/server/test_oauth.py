"""The server as an OAuth resource: the official client gets a token by itself; only tokens for this server count."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route

from rlm_mem.access.grants import PERMISSIONS, Access, client_of
from rlm_mem.access.oauth import ResourceServer
from rlm_mem.access.tokens import TokenFile
from rlm_mem.errors import InvalidConfig, NotFoundError, StorageError
from rlm_mem.http.guard import Keys
from rlm_mem.http.site import Site
from rlm_mem.mcp.server import McpServer
from rlm_mem.mcp.service import Service
from rlm_mem.operations.context import Settings
from rlm_mem.operations.state import ServerState
from rlm_mem.serving.app import create_app
from tests.server.api import BASE, PORT

ISSUER = "https://login.example"
RESOURCE = f"{BASE}/mcp"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class Login:
    """An authorization server: registration, the code flow with PKCE, and keys."""

    def __init__(self) -> None:
        self.key, self.kid, self.asked = KEY, "one", 0
        self.codes: dict[str, dict[str, str]] = {}
        self.app = Starlette(
            routes=[
                Route("/.well-known/oauth-authorization-server", self.metadata),
                Route("/jwks", self.jwks),
                Route("/register", self.register, methods=["POST"]),
                Route("/authorize", self.authorize),
                Route("/token", self.token, methods=["POST"]),
            ]
        )

    def sign(self, key: Any = None, algorithm: str = "RS256", header: Any = None, **claims: Any) -> str:
        usual = {
            "iss": ISSUER, "aud": RESOURCE, "sub": "ana", "exp": time.time() + 600,
            "scope": "openid rlm-mem:read rlm-mem:write", "rlm_mem_namespaces": ["team/ana"], **claims,
        }  # fmt: skip
        given = {name: value for name, value in usual.items() if value is not None}
        return jwt.encode(
            given,
            None if key == "none" else key or self.key,
            algorithm,
            {"kid": self.kid, "typ": "at+jwt", **(header or {})},
        )

    async def metadata(self, _: Request) -> Response:
        return JSONResponse(
            {
                "issuer": ISSUER, "authorization_endpoint": f"{ISSUER}/authorize", "token_endpoint": f"{ISSUER}/token",
                "registration_endpoint": f"{ISSUER}/register", "jwks_uri": f"{ISSUER}/jwks",
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            }
        )  # fmt: skip

    async def jwks(self, _: Request) -> Response:
        self.asked += 1
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return JSONResponse({"keys": [{**public, "kid": self.kid, "use": "sig", "alg": "RS256"}]})

    async def register(self, request: Request) -> Response:
        return JSONResponse({**await request.json(), "client_id": "client-1"}, 201)

    async def authorize(self, request: Request) -> Response:
        asked = dict(request.query_params)
        self.codes["code-1"] = asked
        return RedirectResponse(
            f"{asked['redirect_uri']}?{urlencode({'code': 'code-1', 'state': asked['state']})}", 302
        )

    async def token(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        asked = self.codes.pop(form["code"])
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]
        # The audience is what the client asked for (RFC 8707), the scope what the server had told it.
        assert form["resource"] == asked["resource"] == RESOURCE
        token = self.sign(aud=form["resource"], scope=asked["scope"])
        return JSONResponse(
            {"access_token": token, "token_type": "Bearer", "expires_in": 600, "scope": asked["scope"]}
        )


class Kept:
    """Where the client keeps its token."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@pytest.fixture
def login() -> Login:
    return Login()


@pytest.fixture
def app(tmp_path: Path, login: Login) -> Iterator[Starlette]:
    state = ServerState(Settings(brain=tmp_path / "brain"))
    server = McpServer(Service(state.opened), client_of)
    oauth = ResourceServer(ISSUER, RESOURCE, transport=httpx2.ASGITransport(login.app))
    keys = Keys(None, PORT, oauth=oauth)
    yield create_app(state, keys=keys, port=PORT, mcp=lambda: server, api=True, site=Site(PORT, oauth=True))
    server.close()
    state.close()


def test_the_official_client_gets_a_token_and_works_with_it(app: Starlette, login: Login) -> None:
    kept = Kept()
    mounts = {ISSUER: httpx2.ASGITransport(login.app), BASE: httpx2.ASGITransport(app)}
    landed: list[str] = []

    async def redirect(address: str) -> None:
        async with httpx2.AsyncClient(mounts=mounts) as browser:
            landed.append((await browser.get(address)).headers["location"])

    async def callback() -> Any:
        from mcp.client.auth import AuthorizationCodeResult

        found = parse_qs(urlsplit(landed[0]).query)
        return AuthorizationCodeResult(code=found["code"][0], state=found["state"][0])

    metadata = OAuthClientMetadata.model_validate(
        {
            "client_name": "test",
            "redirect_uris": ["http://127.0.0.1:1/callback"],
            "grant_types": ["authorization_code"],
        }
    )

    async def go() -> tuple[Any, Any]:
        provider = OAuthClientProvider(RESOURCE, metadata, kept, redirect, callback)
        async with (
            app.router.lifespan_context(app),
            httpx2.AsyncClient(auth=provider, mounts=mounts, timeout=60) as http,
            Client(streamable_http_client(RESOURCE, http_client=http)) as client,
        ):
            made = await client.call_tool("remember", {"text": "The heron server stands in the cellar."})
            return made, await client.call_tool("status", {})

    made, status = asyncio.run(go())
    assert not made.is_error, made.content
    assert (status.structured_content["namespace"], status.structured_content["memories"]) == ("team/ana", 1)
    assert kept.tokens is not None
    assert "rlm-mem:read" in str(kept.tokens.scope)
    assert len(landed) == 1


def asked(app: Starlette, token: str | None, path: str = "/api/v1/about") -> httpx2.Response:
    async def go() -> httpx2.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=BASE) as client:
            return await client.get(path, headers=headers)

    return asyncio.run(go())


def test_a_client_without_a_token_learns_where_to_get_one(app: Starlette) -> None:
    answer = asked(app, None, "/mcp")
    assert answer.status_code == 401
    address = f"{BASE}/.well-known/oauth-protected-resource/mcp"
    assert f'resource_metadata="{address}"' in answer.headers["WWW-Authenticate"]
    assert "error=" not in answer.headers["WWW-Authenticate"]
    for path in (address.removeprefix(BASE), "/.well-known/oauth-protected-resource"):
        found = asked(app, None, path).json()
        assert (found["resource"], found["authorization_servers"]) == (RESOURCE, [ISSUER])
        assert "rlm-mem:read" in found["scopes_supported"]


def test_a_token_counts_only_when_it_was_signed_for_this_server(app: Starlette, login: Login) -> None:
    assert asked(app, login.sign()).json()["namespace"] == "team/ana"
    assert asked(app, login.sign(aud=["https://other.example", RESOURCE])).status_code == 200
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key())
    good = login.sign()
    head, body, signature = good.split(".")
    wrong = {
        "another audience": login.sign(aud="https://other.example/mcp"),
        "the address without its path": login.sign(aud=BASE),
        "no audience": login.sign(aud=None),
        "another issuer": login.sign(iss="https://evil.example"),
        "expired": login.sign(exp=time.time() - 120),
        "without an end": login.sign(exp=None),
        "without a subject": login.sign(sub=None),
        "not valid yet": login.sign(nbf=time.time() + 600),
        "another key": login.sign(other),
        "an unknown key": login.sign(header={"kid": "none"}),
        "an identity token": login.sign(header={"typ": "secevent+jwt"}),
        "no signature": login.sign("none", "none"),
        "a secret": login.sign("x" * 40, "HS256"),
        "the public key as a secret": login.sign(hashlib.sha256(public.encode()).hexdigest(), "HS256"),
        "cut short": f"{head}.{body}.",
        "another body": f"{head}.{body[:-4]}AAAA.{signature}",
        "no token": "a.b.c",
        "too long": "x" * 20_000,
        "namespaces that are none": login.sign(rlm_mem_namespaces=["team/ana", "../x"]),
        "namespaces of another form": login.sign(rlm_mem_namespaces={"team": "ana"} and 7),
    }
    for why, token in wrong.items():
        answer = asked(app, token)
        assert answer.status_code == 401, why
        assert 'error="invalid_token"' in answer.headers["WWW-Authenticate"]
    for why, token in {
        "no namespaces": login.sign(rlm_mem_namespaces=None),
        "no scope": login.sign(scope=None),
        "the scope of another server": login.sign(scope="read write admin"),
    }.items():
        assert asked(app, token).status_code == 403, why
    # Tokens that name unknown keys do not make the server ask again and again.
    assert login.asked <= 2


def test_keys_are_changed_and_a_server_that_is_away_is_no_reason_to_let_anybody_in(login: Login) -> None:
    now = [time.time()]
    oauth = ResourceServer(ISSUER, RESOURCE, lambda: now[0], httpx2.ASGITransport(login.app))

    async def play() -> None:
        before = login.sign()
        assert await oauth.access_of(before) is not None
        login.key, login.kid = rsa.generate_private_key(public_exponent=65537, key_size=2048), "two"
        now[0] += 61
        assert await oauth.access_of(login.sign(sub="ben")) is not None
        assert await oauth.access_of(before) is None
        away = ResourceServer(ISSUER, RESOURCE, transport=httpx2.ASGITransport(Starlette()))
        with pytest.raises(StorageError, match="cannot be read"):
            await away.access_of(before)
        brief = login.sign(exp=now[0] + 30)
        assert await oauth.access_of(brief) is not None
        assert oauth.is_current(brief)
        now[0] += 31
        assert not oauth.is_current(brief)

    asyncio.run(play())


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example", "jwks_uri": f"{ISSUER}/jwks"},
        {"issuer": ISSUER, "jwks_uri": "http://evil.example/jwks"},
        {"issuer": ISSUER},
        [ISSUER],
        {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/jwks", "more": "x" * 2_000_000},
    ],
    ids=["issuer", "address", "none", "list", "size"],
)
def test_keys_are_not_taken_from_metadata_that_are_not_the_issuers(login: Login, metadata: Any) -> None:
    async def metadata_of(_: Request) -> Response:
        return JSONResponse(metadata)

    paths = {route.path for route in login.app.routes if "well-known" in route.path}  # type: ignore[attr-defined]
    pages = [Route(path, metadata_of) for path in paths]
    altered = Starlette(routes=[*pages, Mount("/", login.app)])
    oauth = ResourceServer(ISSUER, RESOURCE, transport=httpx2.ASGITransport(altered))
    with pytest.raises(StorageError, match="cannot be read"):
        asyncio.run(oauth.access_of(login.sign()))
    assert login.asked == 0


def test_a_token_without_the_name_of_a_key_is_of_the_only_one_and_an_odd_subject_gets_a_name(
    login: Login,
) -> None:
    oauth = ResourceServer(ISSUER, RESOURCE, transport=httpx2.ASGITransport(login.app))
    claims = jwt.decode(login.sign(sub="a b\n" * 90), options={"verify_signature": False})
    access = asyncio.run(oauth.access_of(jwt.encode(claims, KEY, "RS256", {"typ": "at+jwt"})))
    assert access is not None and re.fullmatch(r"oauth:[0-9a-f]{32}", access.name)


def test_a_subject_is_revoked_here_at_once_and_readmitted(tmp_path: Path, login: Login) -> None:
    state = ServerState(Settings(brain=tmp_path / "brain"))
    tokens = TokenFile(tmp_path / "tokens.json")
    oauth = ResourceServer(ISSUER, RESOURCE, transport=httpx2.ASGITransport(login.app))
    keys = Keys(None, PORT, tokens=tokens, oauth=oauth)
    app = create_app(state, keys=keys, port=PORT, api=True, site=Site(PORT, oauth=True))
    ana, ben = login.sign(), login.sign(sub="ben")
    assert [asked(app, one).status_code for one in (ana, ben)] == [200, 200]
    subject = f"oauth:{jwt.decode(ana, options={'verify_signature': False})['sub']}"
    assert keys.is_current(ana, subject)
    with pytest.raises(NotFoundError):  # an admin of one namespace does not decide for the others
        tokens.revoke(subject, within=Access("x", ("team/ana",), PERMISSIONS["admin"]))
    tokens.revoke(subject, by="test")
    assert not keys.is_current(ana, subject), "an answer that goes on ends"
    later = login.sign(exp=time.time() + 900)
    assert [asked(app, one).status_code for one in (ana, later, ben)] == [401, 401, 200]
    assert [(one.name, tokens.state_of(one)) for one in tokens.records()] == [(subject, "revoked")]
    with pytest.raises(NotFoundError):
        tokens.revoke(subject)
    tokens.readmit(subject)
    assert [asked(app, one).status_code for one in (ana, ben)] == [200, 200]
    with pytest.raises(NotFoundError, match="not a revoked subject"):
        tokens.readmit(subject)
    state.close()


@pytest.mark.parametrize(
    "issuer",
    [
        "http://login.example",
        "login.example",
        "https://login.example/?x=1",
        "https://",
        "https://[",
        "https://login.example:99999",
    ],
)
def test_an_issuer_that_others_could_speak_for_is_refused(issuer: str) -> None:
    with pytest.raises(InvalidConfig, match="oauth-issuer"):
        ResourceServer(issuer, RESOURCE)
