"""The dashboard: what is remembered, how it is recalled and what it costs, as pages for a browser.

Here are the pages, the templates, the style sheet and the scripts. Pages read through :mod:`rlm_mem.memory`, and their
forms carry out operations (:mod:`rlm_mem.operations`); who may come in is decided in :mod:`rlm_mem.http.guard`. No page
needs JavaScript to be read or to be acted on; with it, pages search as you type and follow what others write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from rlm_mem.operations.state import ServerState

__all__ = ["login_page", "routes"]


def routes(state: ServerState) -> list[BaseRoute]:
    """Every page and its static files, to be served at the root.

    Args:
        state: what the server holds: the memory, the runs, the changes.
    """
    from rlm_mem.dashboard.pages import all_routes
    from rlm_mem.dashboard.rendering import prepare

    state.at_start.insert(0, prepare)
    return all_routes(state)


def login_page(request: Request, *, error: str | None = None) -> Response:
    """What a browser sees that has not logged in yet.

    Args:
        error: why the last attempt failed.
    """
    from rlm_mem.dashboard.rendering import login

    return login(request, error)
