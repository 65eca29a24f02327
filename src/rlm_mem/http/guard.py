"""Authentication of every HTTP request: Host, Origin, and a token or the cookie of a login."""

from __future__ import annotations

import hmac
import secrets
import threading
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import Request, cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from rlm_mem.http.encoding import problem_response
from rlm_mem.http.limits import BodyTooLarge, read_body
from rlm_mem.operations.problems import problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

    LoginPage = Callable[[Request, str | None], Response | Awaitable[Response]]

__all__ = ["API", "LOOPBACK", "Guard", "Keys", "login_routes"]

#: The only address that the server listens on.
LOOPBACK = "127.0.0.1"
#: Path prefix of the HTTP interface.
API = "/api/"

_NAMES = (LOOPBACK, "localhost")
_SAFE = {"GET", "HEAD", "OPTIONS"}
_LONGEST_FORM = 4096
_OPEN = ("/login", "/static/")
"""Path prefixes that a browser may request before it has logged in."""


class Keys:
    """The credentials of a server: the token, login codes that work once, and the cookie that a login sets.

    The cookie is independent of the token, and no cookie outlives the server.

    Args:
        token: the token of `Authorization: Bearer …`.
        port: cookies are shared by all ports of a host, so the port is part of their name.
    """

    def __init__(self, token: str, port: int) -> None:
        self.cookie_name = f"rlm_mem_{port}"
        self._token = token.encode()
        self._cookie = secrets.token_urlsafe(32)
        self._codes: set[str] = set()
        self._guard = threading.Lock()

    def new_code(self) -> str:
        """A code for one login, for a link that is opened in a browser."""
        code = secrets.token_urlsafe(24)
        with self._guard:
            self._codes.add(code)
        return code

    def use_code(self, code: str) -> bool:
        """Whether the code is valid; it is then used up."""
        with self._guard:
            valid = code in self._codes
            self._codes.discard(code)
        return valid

    def is_token(self, given: str) -> bool:
        """Whether this is the token."""
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token)

    def bears_token(self, headers: Headers) -> bool:
        """Whether the request carries the token."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self.is_token(given.strip())

    def bears_cookie(self, headers: Headers) -> bool:
        """Whether the request carries the cookie of a login."""
        given = cookie_parser(headers.get("cookie", "")).get(self.cookie_name, "")
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._cookie.encode())

    def log_in(self, response: Response) -> Response:
        """Set the cookie on a response."""
        response.set_cookie(self.cookie_name, self._cookie, path="/", httponly=True, samesite="strict")
        return response

    def log_out(self, response: Response) -> Response:
        """Delete the cookie with a response."""
        response.delete_cookie(self.cookie_name, path="/", httponly=True, samesite="strict")
        return response


class Guard:
    """Serves only requests with the token or the cookie of a login, addressed to a name of this machine.

    Any web page can make a browser send requests to 127.0.0.1, even under the page's own host name (DNS rebinding). So
    the Host header must name this server, and so must an Origin header if there is one. Browsers send a cookie with
    requests of any page, so a request with a cookie alone may only write if the browser marks it as same-origin.

    Args:
        app: the guarded application, all of its paths.
        keys: the accepted credentials.
        port: the port that the server listens on.
        login_page: shown to a browser that has not logged in; None: it is refused like any client.
    """

    def __init__(self, app: ASGIApp, *, keys: Keys, port: int, login_page: LoginPage | None = None) -> None:
        self._app = app
        self._keys = keys
        self._hosts = {f"{name}:{port}" for name in _NAMES}
        self._origins = {f"http://{host}" for host in self._hosts}
        self._login_page = login_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request, or refuse it: 421 foreign Host, 403 foreign Origin, 401 no token."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        refusal = await self._refusal(scope, receive)
        await (refusal or self._app)(scope, receive, send)

    async def _refusal(self, scope: Scope, receive: Receive) -> Response | None:
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        own = origin is not None and origin.lower() in self._origins
        if headers.get("host", "").lower() not in self._hosts:
            return _refused(scope, 421, "this server answers to 127.0.0.1 and localhost only")
        if origin is not None and not own:
            return _refused(scope, 403, "requests from other origins are refused")
        if self._keys.bears_token(headers):
            return None
        path: str = scope["path"]
        from_us = own or headers.get("sec-fetch-site") == "same-origin"
        if self._login_page is not None and path.startswith(_OPEN):
            # A login only sets the browser's cookie, and itself requires a code or the token.
            return None
        if self._login_page is not None and self._keys.bears_cookie(headers):
            scope["rlm_mem.client"] = "browser"
            if scope["method"] not in _SAFE and not from_us:
                return _refused(
                    scope, 403, "a login is valid for the pages of this server only; send the token"
                )
            return None
        browser = "text/html" in headers.get("accept", "") and scope["method"] == "GET"
        if self._login_page is not None and browser and not path.startswith((API, "/mcp")):
            return await _shown(self._login_page, Request(scope, receive), None)
        return _refused(
            scope,
            401,
            "send the token of this server: Authorization: Bearer TOKEN",
            {"WWW-Authenticate": "Bearer"},
        )


def login_routes(keys: Keys, page: LoginPage) -> list[Route]:
    """The routes by which a browser logs in, with a one-time link, its code, or the token, and logs out."""

    async def login(request: Request) -> Response:
        if request.method == "POST":
            given = await _form(request)
            if given is not None and (keys.is_token(given) or keys.use_code(given)):
                return keys.log_in(_elsewhere("/"))
            return await _shown(
                page, request, "That is neither a code that still works nor the token of this server."
            )
        code = request.query_params.get("code")
        if code is None:
            return (
                _elsewhere("/") if keys.bears_cookie(request.headers) else await _shown(page, request, None)
            )
        if keys.use_code(code):
            return keys.log_in(_elsewhere("/"))
        return await _shown(
            page, request, "The code of that link does not work, or not any more: each works once."
        )

    async def logout(_: Request) -> Response:
        return keys.log_out(_elsewhere("/login"))

    return [
        Route("/login", login, methods=["GET", "POST"]),
        Route("/logout", logout, methods=["POST"]),
    ]


async def _form(request: Request) -> str | None:
    """The code or token of the login form; None where there is none, or the form is too large."""
    try:
        body = await read_body(request, _LONGEST_FORM)
    except BodyTooLarge:
        return None
    fields = parse_qs(body.decode("latin-1"))
    given = (fields.get("code") or fields.get("token") or [""])[0].strip()
    # A pasted link stands for the code in it.
    return given.rpartition("login?code=")[2] or None


async def _shown(page: LoginPage, request: Request, error: str | None) -> Response:
    shown = page(request, error)
    response = shown if isinstance(shown, Response) else await shown
    response.status_code = 401
    return response


def _elsewhere(path: str) -> RedirectResponse:
    return RedirectResponse(
        path, 303, headers={"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
    )


def _refused(scope: Scope, status: int, why: str, headers: dict[str, str] | None = None) -> Response:
    """A refusal: a problem document for the HTTP interface, plain text for other paths."""
    more = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})}
    if not scope["path"].startswith(API):
        return PlainTextResponse(why, status, headers=more)
    return problem_response(problem(status, why), more)
