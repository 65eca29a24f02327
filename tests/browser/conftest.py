"""A real browser (Debian's Chromium) on a real `rlm-mem serve`; errors in its console fail the test."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.browser.brain import fill
from tests.waiting import DEADLINE

ROOT = Path(__file__).parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

Open = Callable[..., Any]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests, with the reason, where there is no browser."""
    reason = ""
    if CHROMIUM is None:
        reason = "no chromium on this machine: apt-get install chromium"
    else:
        try:
            import axe_playwright_python  # noqa: F401
            import playwright  # noqa: F401
        except ModuleNotFoundError as error:
            reason = f'{error.name} is missing: pip install "rlm-mem[browser]"'
    for item in items:
        if reason and "browser" in item.path.parts:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="module")
def brain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Filled once for all tests."""
    made = tmp_path_factory.mktemp("browser") / "brain"
    fill(made)
    return made


@pytest.fixture(scope="module")
def login(brain: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The link that logs in once, of a server that runs for all tests."""
    home = tmp_path_factory.mktemp("browser-home")
    with Serving(brain, home) as link:
        yield link


class Serving:
    """`rlm-mem serve` in a process of its own."""

    def __init__(self, brain: Path, home: Path) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("RLM_MEM_")}
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "rlm_mem",
                "serve",
                "--port",
                "0",
                "--brain",
                str(brain),
                "--llm",
                "offline",
            ],
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=environment | {"HOME": str(home)},
        )

    def __enter__(self) -> str:
        assert self._process.stderr
        said = ""
        for line in self._process.stderr:
            said += line
            found = re.search(r"http://\S+/login\?code=\S+", line)
            if found:
                return found[0]
        raise AssertionError(f"the server did not start: {said}")

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        assert self._process.stderr
        self._process.stderr.close()


@pytest.fixture(scope="package")
def chromium() -> Iterator[Any]:
    """The browser; of this folder, since its event loop must not go on running in the tests of others."""
    from playwright.sync_api import sync_playwright

    # Chromium's sandbox needs rights that root in a container does not have.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield found
        found.close()


@pytest.fixture(scope="module")
def session(chromium: Any, login: str) -> dict[str, Any]:
    """The cookie of a login by the link; the link works once."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(login)
    assert page.url.endswith("/memories")
    state: dict[str, Any] = context.storage_state()
    context.close()
    return state


@pytest.fixture(scope="module")
def site(login: str) -> str:
    """Where the dashboard is."""
    parts = urlsplit(login)
    return f"{parts.scheme}://{parts.netloc}"


@pytest.fixture
def complaints() -> list[str]:
    """Errors of the browser; must be empty at the end of a test."""
    return []


@pytest.fixture(scope="module")
def windows(chromium: Any, site: str) -> Callable[..., Any]:
    """A window of each kind (`has_touch=True`), made once: a new one takes a second of processor time."""

    @cache
    def window(**options: bool) -> Any:
        context = chromium.new_context(base_url=site, **options)
        context.set_default_timeout(DEADLINE * 1000)
        return context.new_page()

    return window


@pytest.fixture
def open_page(
    windows: Callable[..., Any], session: dict[str, Any], site: str, complaints: list[str]
) -> Iterator[Open]:
    """Open a page of the dashboard as somebody who has just come in: `open_page("/costs", width=390)`."""
    opened = []

    def console(said: Any) -> None:
        if said.type in ("error", "warning"):
            complaints.append(said.text)

    def failed(error: Any) -> None:
        complaints.append(str(error))

    def asked(request: Any) -> None:
        if not request.url.startswith(site):
            complaints.append(f"asked {request.url}")

    listeners = {"console": console, "pageerror": failed, "request": asked}

    def open_it(
        path: str = "/memories",
        *,
        width: int = 1280,
        height: int = 860,
        color_scheme: str = "light",
        **kind: bool,
    ) -> Any:
        page = windows(**kind)
        opened.append(page)
        page.context.add_cookies(session["cookies"])
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=color_scheme)
        for event, listener in listeners.items():
            page.on(event, listener)
        page.goto(path)
        return page

    yield open_it
    for page in opened:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        page.goto("/static/icon.svg")  # of the same origin, and without scripts
        page.evaluate("sessionStorage.clear()")
        page.context.clear_cookies()
    assert complaints == []


@pytest.fixture
def elsewhere(brain: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Do something with the brain in another process: `elsewhere("write", "text")`."""
    started = []

    def start(what: str, *rest: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.browser.brain", what, str(brain), *rest],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
