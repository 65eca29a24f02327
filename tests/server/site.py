"""The dashboard for tests: a brain of its own behind the real application, and a browser that has logged in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from rlm_mem.http.guard import Keys
from rlm_mem.memory import Memory
from rlm_mem.operations.context import Settings
from rlm_mem.operations.state import ServerState
from rlm_mem.serving.app import create_app

PORT = 8765
HOME = f"http://127.0.0.1:{PORT}"
OWN = {"origin": HOME, "sec-fetch-site": "same-origin"}


class Site:
    """A logged-in browser without scripts."""

    def __init__(self, client: TestClient, state: ServerState) -> None:
        self.client = client
        self.state = state

    @property
    def memory(self) -> Memory:
        """The memory behind the pages."""
        return self.state.memory

    def get(self, path: str, status: int = 200, **headers: str) -> str:
        """The text of a page that answers with this status."""
        answer = self.client.get(
            path, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )
        assert answer.status_code == status, (path, answer.status_code, answer.text[:2000])
        return str(answer.text)

    def part(self, path: str) -> str:
        """Only the part of a page that changes."""
        return self.get(path, hx_request="true")

    def post(self, path: str, status: int = 200, **fields: Any) -> str:
        """Send a form, follow where it leads, give the page there."""
        answer = self.client.post(path, data=fields, headers=OWN)
        assert answer.status_code == status, (path, answer.status_code, answer.text[:2000])
        return str(answer.text)


@contextmanager
def opened(brain: Path | str, **settings: Any) -> Iterator[Site]:
    """The dashboard over a brain."""
    state = ServerState(Settings(brain=brain, actor="dashboard", llm="offline", **settings))
    keys = Keys("t" * 32, PORT, tokens=state.opened.tokens)
    with TestClient(create_app(state, keys=keys, port=PORT, dashboard=True), base_url=HOME) as client:
        # The page that it leads to is not read: it takes longer than the login, and most tests ask for another one.
        assert client.get(f"/login?code={keys.new_code()}", follow_redirects=False).status_code == 303
        yield Site(client, state)
    state.close()


class _Reader(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def tags_of(page: str) -> list[tuple[str, dict[str, str | None]]]:
    """Every element of a page with its attributes."""
    reader = _Reader()
    reader.feed(page)
    return reader.tags


def text_of(page: str) -> str:
    """What a person reads, without the markup; white space as one space."""
    reader = _Reader()
    reader.feed(page)
    return " ".join("".join(reader.text).split())


def links_of(page: str) -> list[str]:
    """Addresses within the site that a page leads to."""
    return [
        str(attributes["href"])
        for tag, attributes in tags_of(page)
        if tag == "a" and re.match(r"/(?!/)", str(attributes.get("href")))
    ]
