"""The dashboard: memories, recalls and costs as pages for a browser.

The package contains pages, templates, style sheet and scripts. Pages read through :mod:`rlm_mem.memory`, and their
forms run operations (:mod:`rlm_mem.operations`); :mod:`rlm_mem.http.guard` authenticates requests. Every page and form
works without JavaScript; with it, pages search as you type and show changes live.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from rlm_mem.operations.state import ServerState

__all__ = ["login_page", "routes"]


def routes(state: ServerState) -> list[BaseRoute]:
    """Routes of all pages and static files, to be served at the root.

    Args:
        state: shared state of the server.
    """
    from rlm_mem.dashboard.pages import all_routes, read_ahead
    from rlm_mem.dashboard.rendering import prepare

    state.at_start.insert(0, prepare)
    state.at_start.append(lambda: read_ahead(state))
    return all_routes(state)


def login_page(request: Request, error: str | None) -> Response:
    """The page shown to a browser that has not logged in.

    Args:
        error: message of the last failed attempt.
    """
    from rlm_mem.dashboard.rendering import page

    return page(request, "login.html", {"error": error}, status=401)
