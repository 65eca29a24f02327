"""Authenticates HTTP requests by Host, Origin, and a token or login cookie."""

from __future__ import annotations

import contextlib
import hmac
import logging
import secrets
import threading
import time
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from rlm_mem.access.grants import NEEDED, OWNER, Access, Caller, name_of_client, session_of, set_client
from rlm_mem.errors import StorageError
from rlm_mem.http.encoding import problem_response
from rlm_mem.http.limits import BODY_SECONDS, BodyTooLarge, TimedBody, read_body
from rlm_mem.http.metrics import Metrics, route_of
from rlm_mem.http.site import Site
from rlm_mem.operations.problems import problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from rlm_mem.access.oauth import ResourceServer
    from rlm_mem.access.tokens import TokenFile

    LoginPage = Callable[[Request, str | None], Response]
    """Returns the page for a browser that has not logged in, given the message of the last failed attempt."""

#: Path prefix of the HTTP interface.
API = "/api/"
#: Header with the namespace of a request, for tokens with access to several.
NAMESPACE_HEADER = "RLM-MEM-Namespace"

#: Header with the name of a client, to tell agents apart that share a token.
CLIENT_HEADER = "RLM-MEM-Client"

_LEFT = 499
"""Logged status of a request whose client disconnected before the answer."""
_SAFE = {"GET", "HEAD", "OPTIONS"}
_LONGEST_FORM = 4096
_SMALL = 1 << 20
"""Maximum bytes of an answer that is sent completely even if its token is revoked meanwhile."""
_LONGEST_TOKEN = 8192
_MAX_LOGINS = 1000
_OPEN = ("/login", "/static/")
"""Path prefixes that a browser may request before it has logged in."""
_PUBLIC = "/.well-known/oauth-protected-resource"
"""Path of the metadata with which clients without a token find the authorization server."""

_log = logging.getLogger("rlm_mem.access")


class Keys:
    """Credentials accepted by a server: its token, named tokens, single-use login codes, and login cookies.

    A cookie does not contain its token, but is invalid once the token is. Cookies are lost with the server, unless it
    hands over to a new one.

    Args:
        token: the owner's token, for `Authorization: Bearer …`; None: there is none.
        port: part of the cookie's name, since all ports of a host share their cookies.
        tokens: the named tokens; None: there are none.
        oauth: verifies the tokens of an authorization server; None: there is none.
        secure: whether browsers send the cookie over TLS only.
    """

    def __init__(
        self,
        token: str | None,
        port: int,
        *,
        tokens: TokenFile | None = None,
        oauth: ResourceServer | None = None,
        secure: bool = False,
    ) -> None:
        self.cookie_name = f"rlm_mem_{port}"
        self.tokens = tokens
        self.oauth = oauth
        self._token = None if token is None else token.encode()
        self._secure = secure
        self._logins: OrderedDict[str, str | None] = OrderedDict()
        """Cookie → id of the token that logged in; None: the owner's."""
        self._chosen: dict[str, str] = {}
        """Cookie → namespace chosen by its browser."""
        self._codes: set[str] = set()
        self._guard = threading.Lock()

    def new_code(self) -> str:
        """A single-use code that logs the owner in, for a link to open in a browser."""
        code = secrets.token_urlsafe(24)
        with self._guard:
            self._codes.add(code)
        return code

    def is_token(self, given: str) -> bool:
        """Whether this is the owner's token."""
        return self._token is not None and hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    async def access_of(self, given: str) -> Access | None:
        """The access granted by a token; None if it is wrong, expired or revoked.

        Raises:
            StorageError: the named tokens cannot be read.
        """
        if len(given) > _LONGEST_TOKEN:
            return None
        if self.is_token(given):
            return OWNER
        named = None if self.tokens is None else self.tokens.find(given)
        if named is not None:
            return named.access
        access = None if self.oauth is None else await self.oauth.access_of(given)
        return None if access is None or self._refuses(access.name) else access

    def is_current(self, given: str, name: str) -> bool:
        """Whether a token accepted under this name is still valid.

        Raises:
            StorageError: the named tokens cannot be read.
        """
        if self.tokens is not None and self.tokens.find(given) is not None:
            return True
        return self.oauth is not None and self.oauth.is_current(given) and not self._refuses(name)

    def _refuses(self, subject: str) -> bool:
        return self.tokens is not None and self.tokens.refuses(subject)

    def login_of(self, headers: Headers) -> Access | None:
        """The access granted by the cookie of a request; None without a valid cookie.

        Raises:
            StorageError: the named tokens cannot be read.
        """
        given = self.cookie_of(headers)
        with self._guard:
            if given not in self._logins:
                return None
            named = self._logins[given]
        if named is None:
            return OWNER
        record = None if self.tokens is None else self.tokens.get(named)
        return None if record is None else record.access

    def cookie_of(self, headers: Headers) -> str:
        """The login cookie of a request; empty if it has none."""
        return cookie_parser(headers.get("cookie", "")).get(self.cookie_name, "")

    def choose(self, cookie: str, namespace: str) -> None:
        """Set the namespace of a browser's further requests."""
        with self._guard:
            if cookie in self._logins:
                self._chosen[cookie] = namespace

    def chosen_by(self, cookie: str, access: Access) -> str | None:
        """The namespace chosen by a browser, if its token still permits it."""
        with self._guard:
            found = self._chosen.get(cookie)
        return found if found is not None and access.covers(found) else None

    def log_in(self, response: Response, given: str) -> Response | None:
        """Set a login cookie on a response in exchange for a code or token; None if it is invalid.

        Raises:
            StorageError: the named tokens cannot be read.
        """
        if self.is_token(given):
            return self._logged_in(response, None)
        by_code = self.log_in_by_code(response, given)
        if by_code is not None:
            return by_code
        record = None if self.tokens is None else self.tokens.find(given)
        return None if record is None else self._logged_in(response, record.id)

    def log_in_by_code(self, response: Response, code: str) -> Response | None:
        """Set a login cookie on a response in exchange for a code, which is then used up; None if it is invalid."""
        with self._guard:
            valid = code in self._codes
            self._codes.discard(code)
        return self._logged_in(response, None) if valid else None

    def _logged_in(self, response: Response, named: str | None) -> Response:
        """Set the cookie of a new login by the token of this id; None: by the owner's."""
        cookie = secrets.token_urlsafe(32)
        with self._guard:
            self._logins[cookie] = named
            while len(self._logins) > _MAX_LOGINS:  # drop the oldest login
                self._chosen.pop(self._logins.popitem(last=False)[0], None)
        response.set_cookie(
            self.cookie_name, cookie, path="/", httponly=True, samesite="strict", secure=self._secure
        )
        return response

    def logins(self) -> dict[str, str | None]:
        """The token id of each login by cookie, for handing over to a new server."""
        with self._guard:
            return dict(self._logins)

    def choices(self) -> dict[str, str]:
        """The namespace chosen by each browser, by login cookie, for handing over to a new server."""
        with self._guard:
            return dict(self._chosen)

    def take_over(self, logins: Mapping[str, str | None], choices: Mapping[str, str]) -> None:
        """Accept the logins and chosen namespaces of the previous server."""
        with self._guard:
            self._logins.update(logins)
            self._chosen.update(choices)

    def log_out(self, request: Request, response: Response) -> Response:
        """End the login of a request, and delete its cookie with the response."""
        with self._guard:
            cookie = self.cookie_of(request.headers)
            self._logins.pop(cookie, None)
            self._chosen.pop(cookie, None)
        response.delete_cookie(self.cookie_name, path="/", httponly=True, samesite="strict")
        return response


class Guard:
    """Serves only authenticated requests that are addressed to a name of this server.

    Any web page can make a browser send requests to 127.0.0.1, even under the page's own host name (DNS rebinding). So
    the Host header must name this server, and so must an Origin header if there is one. Browsers send a cookie with
    requests of any page, so a request with only a cookie may write only if the browser marks it as same-origin.

    A long answer, such as a stream, ends at the next part after its token is revoked.

    Args:
        app: the application to protect.
        keys: the accepted credentials.
        site: the addresses of the server.
        metrics: counts requests.
        login_page: shown to browsers that have not logged in; None: they are refused like any client.
    """

    def __init__(
        self, app: ASGIApp, *, keys: Keys, site: Site, metrics: Metrics, login_page: LoginPage | None = None
    ) -> None:
        self._app = app
        self._keys = keys
        self._site = site
        self._metrics = metrics
        self._login_page = login_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request, or refuse it with 421 (foreign Host), 403 (foreign Origin) or 401 (no valid token)."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began, name = time.perf_counter(), ""
        body = TimedBody(receive)
        answer = _Answer(scope, body, send, self._site, self._metrics)
        with self._metrics.in_flight():
            try:
                try:
                    client, refusal = await self._client(scope, body)
                except StorageError as error:
                    _log.error("the tokens cannot be read: %s", error)
                    why = "the tokens of this server cannot be read"
                    client, refusal = None, _refusal_response(scope, 503, why)
                if client is not None:
                    set_client(scope, client)
                    name = client.access.name
                    if not client.access.owner:
                        answer.still_valid = self._checks(scope, client)
                with contextlib.suppress(ClientDisconnect):
                    await (refusal or self._app)(scope, body, answer.send)
                if answer.is_too_late:
                    answer.status = 408
                    why = f"the body of the request did not arrive within {BODY_SECONDS:g} seconds"
                    await _refusal_response(scope, 408, why, {"Connection": "close"})(scope, receive, send)
            except _Revoked:
                _log.warning("an answer to %s ends early: its token is revoked", name)
                if answer.size is not None:
                    raise  # fail, so that the client does not mistake the answer for complete
                await send({"type": "http.response.body", "body": b"", "more_body": False})
            finally:
                self._record(scope, name, answer.status, time.perf_counter() - began)

    def _record(self, scope: Scope, name: str, status: int, seconds: float) -> None:
        """Count and log an answered request; ``name``: of its token, or empty."""
        self._metrics.record(name, scope["method"], route_of(scope) or "", status, seconds)
        _log.log(
            logging.WARNING if status in (401, 403, 421, 429) else logging.INFO,
            "%s %.200r %d%s",
            scope["method"],
            scope["path"],
            status,
            f" by {name!r:.200}" if name else "",
            extra={"token": name, "status": status, "seconds": round(seconds, 4)},
        )

    def _checks(self, scope: Scope, client: Caller) -> Callable[[], bool]:
        """A function that returns whether the client's token or login is still valid."""
        headers = Headers(scope=scope)
        given = _bearer(headers)

        def check() -> bool:
            try:
                if client.browser:
                    return self._keys.login_of(headers) is not None
                return self._keys.is_current(given, client.access.name)
            except StorageError:
                return False

        return check

    async def _client(self, scope: Scope, receive: Receive) -> tuple[Caller | None, Response | None]:
        """The client of a request, or the response that refuses it; neither for public paths."""
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        from_own_origin = origin is not None and self._site.is_own_origin(origin)
        wrong = self._site.refusal(scope, headers)
        if wrong is not None:
            return None, _refusal_response(scope, *wrong)
        if origin is not None and not from_own_origin:
            return None, _refusal_response(scope, 403, "requests from other origins are refused")
        namespace = headers.get(NAMESPACE_HEADER.lower())
        given = _bearer(headers)
        if given:
            access = await self._keys.access_of(given)
            if access is not None:
                return Caller(access, namespace, session=_session(headers)), None
        path: str = scope["path"]
        if path == _PUBLIC or path.startswith(f"{_PUBLIC}/"):
            return None, None
        from_us = from_own_origin or headers.get("sec-fetch-site") == "same-origin"
        if self._login_page is not None and path.startswith(_OPEN):
            # A login only sets the browser's cookie and itself requires a code or token.
            return None, None
        login = self._keys.login_of(headers) if self._login_page is not None else None
        if login is not None:
            if scope["method"] not in _SAFE and not from_us:
                return None, _refusal_response(
                    scope, 403, "a login is valid for the pages of this server only; send the token"
                )
            cookie = self._keys.cookie_of(headers)
            if namespace is None:
                namespace = self._keys.chosen_by(cookie, login)
            return Caller(login, namespace, browser=True, choose=partial(self._keys.choose, cookie)), None
        browser = "text/html" in headers.get("accept", "") and scope["method"] == "GET"
        if self._login_page is not None and browser and not path.startswith((API, "/mcp")):
            return None, self._login_page(Request(scope, receive), None)
        why = "this token is wrong, expired or revoked" if given else "send the token of this server"
        return None, _refusal_response(
            scope,
            401,
            f"{why}: Authorization: Bearer TOKEN",
            {
                "WWW-Authenticate": self._site.challenge(
                    "invalid_token" if given else "", "rlm-mem:read rlm-mem:write" if self._site.oauth else ""
                )
            },
        )


class _Answer:
    """The answer to one request on its way to the client.

    Attributes:
        status: its HTTP status; ``_LEFT`` before it has begun.
        size: its bytes according to ``Content-Length``; None without one.
        still_valid: whether the client's token is still valid; None: this is not checked.
    """

    def __init__(self, scope: Scope, body: TimedBody, send: Send, site: Site, metrics: Metrics) -> None:
        self.status = _LEFT
        self.size: int | None = None
        self.still_valid: Callable[[], bool] | None = None
        self._scope, self._body, self._send = scope, body, send
        self._site, self._metrics = site, metrics
        connection = Headers(scope=scope).get("connection", "").lower()
        self._closes = scope.get("http_version") == "1.0" or "close" in connection

    @property
    def is_too_late(self) -> bool:
        """Whether the body of the request came too slowly for an answer to have begun; the guard then sends 408."""
        return self._body.too_slow and self.status == _LEFT

    async def send(self, message: Message) -> None:
        """Pass a message on to the client; raises `_Revoked` in a long answer to a token that was revoked."""
        if self.is_too_late:
            return
        if message["type"] == "http.response.start":
            self._begin(message)
        elif self.size is not None and self.size <= _SMALL:
            pass  # a short answer is sent completely
        elif self.still_valid is not None and not self.still_valid():
            raise _Revoked
        if self._closes and message["type"] == "http.response.body" and not message.get("more_body"):
            await self._body.drain()
        await self._send(message)

    def _begin(self, message: Message) -> None:
        self.status = message["status"]
        needed = self._scope.get(NEEDED)
        if self.status == 403 and needed:
            challenge = self._site.challenge("insufficient_scope", f"rlm-mem:{needed}")
            MutableHeaders(scope=message)["WWW-Authenticate"] = challenge
        if self._metrics.draining:
            MutableHeaders(scope=message)["Connection"] = "close"
        declared = Headers(raw=message.get("headers", [])).get("content-length", "")
        self.size = int(declared) if declared.isdigit() else None


class _Revoked(Exception):
    """The client's token was revoked while its request was being answered."""


def _session(headers: Headers) -> str:
    """Return the name that the client gives itself, or what its session over MCP is called."""
    name = name_of_client(headers.get(CLIENT_HEADER.lower(), ""))
    return name or session_of(headers.get("mcp-session-id", ""))


def _bearer(headers: Headers) -> str:
    """The bearer token of a request; empty if it has none."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def login_routes(keys: Keys, page: LoginPage) -> list[Route]:
    """Routes to log in with a browser (by a single-use link, its code, or a token) and to log out."""

    async def login(request: Request) -> Response:
        if request.method == "POST":
            given = await _form(request)
            done = keys.log_in(_redirect("/"), given) if given is not None else None
            return done or page(
                request, "That is neither a code that still works nor a token of this server."
            )
        code = request.query_params.get("code")
        if code is None:
            known = keys.login_of(request.headers) is not None
            return _redirect("/") if known else page(request, None)
        return keys.log_in_by_code(_redirect("/"), code) or page(
            request, "The code of that link does not work, or not any more: each works once."
        )

    async def logout(request: Request) -> Response:
        return keys.log_out(request, _redirect("/login"))

    return [Route("/login", login, methods=["GET", "POST"]), Route("/logout", logout, methods=["POST"])]


async def _form(request: Request) -> str | None:
    """The code or token of the login form; None if it is missing or too large."""
    try:
        body = await read_body(request, _LONGEST_FORM)
    except BodyTooLarge:
        return None
    fields = parse_qs(body.decode("latin-1"))
    given = (fields.get("code") or fields.get("token") or [""])[0].strip()
    # If the whole link was pasted, use only its code.
    return given.rpartition("login?code=")[2] or None


def _redirect(path: str) -> RedirectResponse:
    return RedirectResponse(
        path, 303, headers={"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    )


def _refusal_response(
    scope: Scope, status: int, why: str, headers: Mapping[str, str] | None = None
) -> Response:
    """A response that refuses a request: a problem document for the HTTP interface, plain text for other paths."""
    more = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})}
    if not scope["path"].startswith(API):
        return PlainTextResponse(why, status, headers=more)
    return problem_response(problem(status, why), more)
