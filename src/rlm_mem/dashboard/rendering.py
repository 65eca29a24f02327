"""Renders templates, with their filters and functions, and sets the headers of every page."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from rlm_mem.chunk.types import strength_word
from rlm_mem.dashboard import markdown, words
from rlm_mem.recall.outcome import ENDINGS, SUGGESTED, ending_of

#: Memory text may be hostile, so scripts, styles, frames and form targets must come from this server.
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
        " object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}

#: Pages in the order of the navigation: path, label, key that opens it after `g`.
NAVIGATION = (
    ("/memories", "Memories", "m"),
    ("/graph", "Graph", "g"),
    ("/timeline", "Timeline", "t"),
    ("/changes", "Changes", "h"),
    ("/tiers", "Tiers", "l"),
    ("/recalls", "Recalls", "r"),
    ("/review", "Review", "v"),
    ("/persona", "Persona", "p"),
    ("/costs", "Costs", "c"),
    ("/integrity", "Integrity", "i"),
)

KEYS = (
    (
        "Anywhere",
        (
            ("Ctrl K", "go to a page, an action or a memory by name"),
            ("/", "search; on the page Recalls, ask; in the graph, find"),
            ("n", "remember something"),
            ("Ctrl Enter", "submit the current form"),
            ("Esc", "clear the search; leave a field"),
            ("?", "these keys"),
        ),
    ),
    (
        "Lists and runs",
        (
            ("j k", "next, previous"),
            ("Enter", "open it"),
            ("↓", "from the search field to the results"),
            ("u", "back to the list"),
        ),
    ),
    (
        "A memory",
        (("e", "edit"), ("h", "its history"), ("o", "in the graph"), ("[ ]", "previous, next in the conversation")),
    ),
    (
        "The graph",
        (
            ("← → ↑ ↓", "walk"),
            ("Enter", "expand; in the search, the next one found"),
            ("o", "open the memory"),
            ("+ − 0", "closer, farther, all of it"),
            ("Esc", "choose nothing; show all again"),
        ),
    ),
)  # fmt: skip
"""Keyboard shortcuts by group, without those that open pages (see NAVIGATION)."""

_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_THEMES = ("light", "dark")


@cache
def _static_files() -> dict[str, tuple[bytes, str, str]]:
    """Read the static files of the package, by their paths; all of them at once, since clients may ask for any name."""
    found = {}
    folders = [("", files("rlm_mem.dashboard") / "static")]
    for path, folder in folders:
        for place in folder.iterdir():
            if place.is_dir():
                folders.append((f"{path}{place.name}/", place))
            elif (kind := _TYPES.get(place.name.rpartition(".")[2])) is not None:
                data = place.read_bytes()
                found[path + place.name] = data, kind, hashlib.sha256(data).hexdigest()[:12]
    return found


def static_file(name: str) -> tuple[bytes, str, str] | None:
    """Content, media type and short hash of a static file of the package; None if it does not exist."""
    return _static_files().get(name)


def _asset(name: str) -> str:
    """Address of a static file, which changes with its content so that browsers may cache it indefinitely."""
    return f"/static/{name}?v={_static_files()[name][2]}"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("rlm_mem.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(words.FILTERS)
    made.filters["teaser"] = markdown.teaser
    made.globals.update(asset=_asset, navigation=NAVIGATION, keys=KEYS, address=words.address)
    made.globals.update(way=words.way, strength_word=strength_word, endings=ENDINGS, suggested=SUGGESTED)
    made.globals["ending_of"] = ending_of
    # Global because a block that is rendered alone has no access to its template's imports.
    made.globals["parts"] = made.get_template("parts.html").module
    return made


def prepare() -> None:
    """Compile every template and load the Markdown parser, so that the first request of a page is fast."""
    markdown.render("*")
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


def _values(request: Request, values: Mapping[str, Any]) -> dict[str, Any]:
    theme = request.cookies.get("rlm_mem_theme", "")
    return {
        "theme": theme if theme in _THEMES else "",
        "path": request.url.path,
        "here": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
        "live": "",
        "notice": "",
        **values,
    }


def page(
    request: Request, template: str, values: Mapping[str, Any], *, block: str = "", status: int = 200
) -> Response:
    """Render a whole page, or only one block of it, for a partial reload."""
    loaded, given = _environment().get_template(template), _values(request, values)
    text = "".join(loaded.blocks[block](loaded.new_context(given))) if block else loaded.render(given)
    return HTMLResponse(text.encode("utf-8", "replace"), status, headers=HEADERS)
