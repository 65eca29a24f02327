"""Routes of the dashboard."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from rlm_mem.access.grants import Permission, client_of
from rlm_mem.dashboard import (
    answers,
    changes_page,
    costs_page,
    graph,
    imports,
    integrity_page,
    memories,
    memory_page,
    personas,
    recalls,
    tiers,
    timeline,
    tokens_page,
)
from rlm_mem.dashboard.rendering import HEADERS, static_file
from rlm_mem.dashboard.requests import PageRequest, form_of, local_address, namespaces_route, page_route
from rlm_mem.errors import NotFoundError, RlmMemError
from rlm_mem.http.streams import stream
from rlm_mem.operations.changes import ChangeFeed
from rlm_mem.operations.problems import Refused, problem_of
from rlm_mem.operations.server import model_name
from rlm_mem.operations.state import ServerState

Pages = dict[str, Callable[[PageRequest], Response]]
_WITH_FILES = ("POST", "/memories/import")
_IMMUTABLE = "public, max-age=31536000, immutable"


_READING: Pages = {
    "/memories": memories.list_page,
    "/memories/{chunk_id}": memory_page.memory_page,
    "/memories/{chunk_id}/history": memory_page.history_page,
    "/memories/{chunk_id}/events": memory_page.events_part,
    "/memories/{chunk_id}/linkable": memory_page.linkable_part,
    "/memories/{chunk_id}/earlier": memory_page.earlier_part,
    "/graph": graph.graph_page,
    "/graph/data": graph.graph_data,
    "/timeline": timeline.timeline_page,
    "/timeline/density": timeline.density_part,
    "/changes": changes_page.changes_page,
    "/tiers": tiers.tiers_page,
    "/tiers/plan": tiers.plan_page,
    "/recalls": recalls.recalls_page,
    "/recalls/{run}": recalls.recall_page,
    "/recalls/{run}/receipt": recalls.receipt_page,
    "/review": tiers.review_page,
    "/review/waiting": tiers.waiting_part,
    "/persona": personas.persona_page,
    "/persona/hud": personas.hud_part,
    "/costs": costs_page.costs_page,
    "/export": memories.export,
    "/integrity": integrity_page.integrity_page,
}
# Asking and checking change no memory, so they are available on a read-only server.
_SENDING: Pages = {
    "/memories/answer": answers.answer_part,
    "/recalls": recalls.ask,
    "/recalls/{run}": recalls.cancel,
    "/integrity": integrity_page.start,
}
_FORMS: Pages = {
    "/memories/new": memories.new_page,
    "/memories/import": imports.import_page,
    "/memories/import/{upload}": imports.upload_page,
    "/memories/{chunk_id}/edit": memory_page.edit_page,
}
_WRITING: Pages = {
    "/memories": memories.act_on_ticked,
    "/memories/new": memories.remember,
    "/memories/import": imports.receive,
    "/memories/import/{upload}": imports.decide,
    "/memories/{chunk_id}": memory_page.act,
    "/memories/{chunk_id}/edit": memory_page.save,
    "/persona": personas.change,
}
_REVIEWING: Pages = {
    "/changes/undo": changes_page.undo,
    "/tiers/undo": tiers.undo,
    "/review": tiers.decide_ticked,
    "/review/{case}": tiers.decide,
}
#: Method, permission, whether they serve to write, and the pages; the first that matches an address answers.
_ROUTES: tuple[tuple[str, Permission, bool, Pages], ...] = (
    ("GET", "write", True, _FORMS),
    ("GET", "read", False, _READING),
    ("POST", "read", False, _SENDING),
    ("GET", "admin", False, {"/tokens": tokens_page.tokens_page}),
    ("POST", "write", True, _WRITING),
    ("POST", "review", True, _REVIEWING),
    ("POST", "admin", True, {"/tokens": tokens_page.change}),
)


def all_routes(state: ServerState) -> list[BaseRoute]:
    """All routes; those that serve to write are omitted on a read-only server."""
    return [
        Route("/", _to_memories, include_in_schema=False),
        Route("/static/{name:path}", _static, include_in_schema=False),
        Route("/theme", _theme, methods=["POST"], include_in_schema=False),
        Route("/live", _live(state), include_in_schema=False),
        namespaces_route(state),
        *(
            page_route(
                state, path, page, method=method, needs=needs, takes_files=(method, path) == _WITH_FILES
            )
            for method, needs, writes, pages in _ROUTES
            if not (writes and state.read_only)
            for path, page in pages.items()
        ),
        page_route(state, "/{anything:path}", _not_found),
    ]


def read_ahead(state: ServerState) -> None:
    """Read once what the pages read: loading the modules for it takes half a second, for some models two."""
    memory = state.memory
    memory.recorded_changes(1)
    memory.trajectories(limit=1)
    memory.hud_figures()
    model_name(memory)


def _live(state: ServerState) -> Callable[[Request], Awaitable[Response]]:
    """The endpoint that streams an event `changed` with the affected topics for each change."""

    async def live(request: Request) -> Response:
        try:
            opened = await state.admit(client_of(request.scope), "read")
        except RlmMemError as error:
            return Response(str(error), problem_of(error).status, media_type="text/plain")
        return stream(changed(state.changes_of(opened)), HEADERS)

    return live


async def changed(changes: ChangeFeed) -> AsyncIterator[bytes]:
    """Encode the changes of a feed as events for the scripts of the pages."""
    yield b"retry: 1000\n\n"
    async for change in changes.follow():
        yield f"event: changed\ndata: {' '.join(sorted(change.topics))}\n\n".encode()


async def _to_memories(request: Request) -> Response:  # noqa: ARG001 - the signature of an endpoint
    return RedirectResponse("/memories", status_code=307, headers=HEADERS)


async def _static(request: Request) -> Response:
    found = static_file(str(request.path_params["name"]))
    if found is None:
        return Response("There is no such file.", 404, media_type="text/plain", headers=HEADERS)
    data, kind, mark = found
    headers = {**HEADERS, "ETag": f'"{mark}"', "Content-Type": kind}
    headers["Cache-Control"] = _IMMUTABLE if request.query_params.get("v") == mark else "no-cache"
    if request.headers.get("if-none-match") == f'"{mark}"':
        return Response(status_code=304, headers=headers)
    return Response(data, headers=headers)


async def _theme(request: Request) -> Response:
    """Store the theme of this browser, for pages without scripts."""
    try:
        form = dict(await form_of(request))
    except Refused as refusal:
        return Response(str(refusal), refusal.problem.status, media_type="text/plain")
    theme = form.get("theme", "")
    back = local_address(form.get("back", "")) or "/memories"
    response = RedirectResponse(back, status_code=303, headers=HEADERS)
    response.set_cookie(
        "rlm_mem_theme",
        theme if theme in ("light", "dark") else "auto",
        max_age=31_536_000,
        samesite="strict",
    )
    return response


def _not_found(request: PageRequest) -> Response:
    raise NotFoundError(f"there is no page {request.request.url.path!r:.100}")
