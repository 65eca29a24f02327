"""The ASGI application of the HTTP interface: routes, rate limit, and the headers of every answer.

A request is handled by the operation of its address: all parts are validated by their types, errors become problems.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rlm_mem.access.grants import NEEDED, client_of
from rlm_mem.errors import AccessDenied, RlmMemError, StoreReadOnly
from rlm_mem.http.encoding import encode, problem_response
from rlm_mem.http.limits import BodyTooLarge, ClientLimits, Limited, read_body
from rlm_mem.http.streams import SERVED, Exchange
from rlm_mem.operations.decoding import from_json, from_parameters, part, unknown_parameter
from rlm_mem.operations.fitting import Reply, run_fitted
from rlm_mem.operations.operation import PREFIX, Context, Operation
from rlm_mem.operations.problems import Problem, problem, problem_of, refused
from rlm_mem.operations.registry import ROUTES
from rlm_mem.operations.state import ServerState
from rlm_mem.operations.traits import PreconditionFailed, next_link

_log = logging.getLogger(__name__)
_JSON = "application/json"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: Default maximum bytes of a body, which fits the largest text that one remember accepts.
MAX_BODY_BYTES = 16 * 1024 * 1024


class Resource:
    """All methods of one path, as an ASGI application.

    Args:
        operations: the operations at this path.
        state: the server's state.
    """

    def __init__(self, operations: Sequence[Operation], state: ServerState) -> None:
        self._by_method = {operation.method: operation for operation in operations}
        self._state = state
        methods = [*self._by_method, *(["HEAD"] if "GET" in self._by_method else [])]
        self._allow = ", ".join(sorted(methods))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; every error becomes a problem document."""
        request = Request(scope, receive)
        method = "GET" if request.method == "HEAD" else request.method
        operation = self._by_method.get(method)  # type: ignore[call-overload]
        if operation is None:
            why = problem(405, f"{request.method} is not a method of this address: use {self._allow}")
            await problem_response(why, {"Allow": self._allow})(scope, receive, send)
            return
        try:
            response = await self._answer(operation, request)
        except ClientDisconnect:
            return  # the client has disconnected
        except Exception as error:  # noqa: BLE001 - the one place where any error becomes a response
            response = problem_response(_problem(error, request))
        await response(scope, receive, send)

    async def _answer(self, operation: Operation, request: Request) -> Response:
        state = self._state
        if operation.writes and state.read_only:
            raise StoreReadOnly("this server is read-only", hint="start it without --read-only")
        # Checked before the body is read, so that a forbidden request costs the server nothing.
        opened = await state.admit(client_of(request.scope), operation.needs, everywhere=operation.everywhere)
        path = {name: part(name, value) for name, value in request.path_params.items()}
        arguments: Any = None
        if operation.parameters is not None:
            arguments = from_parameters(operation.parameters, request.query_params.multi_items())
        elif request.query_params:
            raise unknown_parameter(next(iter(request.query_params)))
        if operation.raw_body:
            _check_media(request, operation.raw_body)
        else:
            body = await self._body(operation, request)
            arguments = body if operation.parameters is None else arguments
        if operation.run is None:
            return await SERVED[operation.name](Exchange(state, opened, request, path, arguments))
        context = Context(
            opened=opened,
            path=path,
            if_match=request.headers.get("if-match") if operation.conditional else None,
            if_none_match=request.headers.get("if-none-match") if operation.tagged else None,
            kept_runs=state.runs,
            agent=not opened.access.permits("review"),
        )
        run = operation.run

        def run_operation() -> tuple[Reply[Any], bytes]:
            answer = run_fitted(lambda request: run(context, request), arguments)
            reply = answer if isinstance(answer, Reply) else Reply(answer)
            return reply, b"" if reply.data is None else encode(reply.data)

        reply, content = await state.run_in_worker(run_operation)
        more = dict(reply.headers)
        data = reply.data
        cursor = data.get("next_cursor") if isinstance(data, dict) else getattr(data, "next_cursor", None)
        if cursor:
            more["Link"] = next_link(request.url.path, request.query_params.multi_items(), cursor)
        return Response(
            content, reply.status or operation.status, headers=more, media_type=_JSON if content else None
        )

    async def _body(self, operation: Operation, request: Request) -> Any:
        content = await read_body(request, operation.max_bytes or MAX_BODY_BYTES)
        if operation.body is None:
            return None
        if not content and not any(field.required for field in msgspec.structs.fields(operation.body)):
            return operation.body()
        _check_media(request, (_JSON,))
        return from_json(operation.body, content)


def _problem(error: Exception, request: Request) -> Problem:
    if isinstance(error, PreconditionFailed):
        return problem(412, error.message, hint=error.hint or "")
    if isinstance(error, BodyTooLarge):
        return problem(413, str(error), hint="send it in parts, or import it from a file")
    if isinstance(error, AccessDenied):
        request.scope[NEEDED] = error.needed
    found = problem_of(error)
    if found.status >= 500:
        expected = isinstance(error, RlmMemError)
        _log.error("%s %s: %s", request.method, request.url.path, error, exc_info=None if expected else error)
    return found


def _check_media(request: Request, allowed: Sequence[str]) -> None:
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in allowed:
        actual = f"not {media_type!r:.80}" if media_type else "and the request names none"
        raise refused(415, f"the body must be {' or '.join(allowed)}, {actual}")
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding != "identity":
        raise refused(415, f"a body in the coding {coding!r:.40} is not read", hint="send it uncompressed")


def api_app(state: ServerState, limits: ClientLimits) -> ASGIApp:
    """The HTTP interface of a server, to be mounted at ``PREFIX`` behind the guard."""
    by_path: dict[str, list[Operation]] = {}
    for operation in ROUTES:
        by_path.setdefault(operation.path, []).append(operation)
    routes = [Route(path, endpoint=Resource(operations, state)) for path, operations in by_path.items()]
    return _WithHeaders(Limited(Router(routes, redirect_slashes=False, default=_nothing), limits))


def nothing_there() -> Response:
    """The response for an unknown address."""
    why = problem(404, "there is nothing at this address", hint=f"{PREFIX}/openapi.json lists every address")
    return problem_response(why, _HEADERS)


async def _nothing(scope: Scope, receive: Receive, send: Send) -> None:
    await nothing_there()(scope, receive, send)


class _WithHeaders:
    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The mount has set itself; a request that matches no route below it must not be counted by its own address.
        scope["endpoint"] = None

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self._inner(scope, receive, with_headers)
