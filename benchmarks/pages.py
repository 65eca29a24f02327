"""The pages of the site and of the dashboard, by the rules of axe and by Lighthouse.

Every page of the site (`make site` builds it) and of the dashboard, on the brain of 600 memories of
`tests/browser/pictures.py`, in both themes: violations of the rules of axe, whatever their impact. Some pages also by
Lighthouse, which emulates a slow phone on a slow network: the score in each category, of 100.

    npm install --prefix build/lighthouse lighthouse@12    # once; without it the rules of axe alone are checked
    python benchmarks/pages.py
    python benchmarks/pages.py --only site --brain FOLDER
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from support import Report, arguments

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.browser import pictures
from tests.browser.conftest import CHROMIUM

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "build" / "site"
LIGHTHOUSE = ROOT / "build" / "lighthouse" / "node_modules" / ".bin" / "lighthouse"
ENGLISH = {
    "performance": "performance",
    "accessibility": "accessibility",
    "best-practices": "best practices",
    "seo": "SEO",
}
OF_SITE = ("index.html", "start.html", "cli.html", "reference/python.html", "benchmarks.html")
OF_DASHBOARD = ("memories", "card", "graph", "recall", "tiers", "review")
_FLAGS = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-sync"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing: a line for each request would hide the figures."""


@contextlib.contextmanager
def site(folder: Path) -> Iterator[str]:
    """The address of a server of the folder."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def violations(browser: Any, at: str, paths: Sequence[str], login: Any, theme: str) -> list[str]:
    """Each violation of a rule of axe, with its page."""
    from axe_playwright_python.sync_playwright import Axe

    context = browser.new_context(
        base_url=at, storage_state=login, color_scheme=theme, reduced_motion="reduce"
    )
    page, found = context.new_page(), []
    for path in paths:
        page.goto(path)
        page.wait_for_function(pictures.LOADED)
        for problem in Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]:
            found.append(
                f"{path}, {theme}: {problem['id']} ({problem['impact']}, {len(problem['nodes'])} places)"
            )
            print(f"  {found[-1]}: {problem['nodes'][0]['html'][:200]}", file=sys.stderr, flush=True)
    context.close()
    return found


def scores(address: str, headers: Mapping[str, str], categories: Sequence[str]) -> dict[str, int]:
    """The score in each category, by its English name."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [
            str(LIGHTHOUSE), address, "--quiet", f"--chrome-flags={_FLAGS}", "--output=json",
            f"--output-path={result}", f"--only-categories={','.join(categories)}",
            f"--extra-headers={json.dumps(dict(headers))}",
        ]  # fmt: skip
        subprocess.run(command, check=True, timeout=300, env=os.environ | {"CHROME_PATH": str(CHROMIUM)})
        told = json.loads(result.read_text(encoding="utf-8"))
    for name, audit in told["audits"].items():
        if audit["score"] == 0 and audit["scoreDisplayMode"] == "binary":
            print(f"    {name}: {audit['title']}", file=sys.stderr, flush=True)
    return {ENGLISH[name]: round(100 * told["categories"][name]["score"]) for name in categories}


def main() -> None:
    """Look at both."""
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--brain", type=Path, help="of the pictures; made where it is missing")
    parser.add_argument("--only", choices=("site", "dashboard"), help="one of them")
    options = parser.parse_args()
    report = Report("pages", "Pages by the rules of axe and by Lighthouse")
    wrong: list[str] = []
    lights = LIGHTHOUSE.exists() and not options.quick

    def look(
        what: str,
        browser: Any,
        at: str,
        paths: Sequence[str],
        login: Any,
        some: Mapping[str, str],
        cookie: str,
    ) -> None:
        by_theme = {theme: violations(browser, at, paths, login, theme) for theme in pictures.THEMES}
        for found in by_theme.values():
            wrong.extend(found)
        counted = {f"violations, {theme}": len(found) for theme, found in by_theme.items()}
        report.add(what=what, pages=len(paths), **counted)
        # The pages of the dashboard ask not to be listed by search engines.
        categories = [name for name in ENGLISH if name != "seo" or not cookie]
        for name, path in some.items() if lights else ():
            headers = {"Cookie": cookie} if cookie else {}
            found = scores(f"{at}/{path.lstrip('/')}", headers, categories)
            report.add(page=f"{what}: {name}", **found)

    with contextlib.ExitStack() as stack:
        brain = options.brain or Path(stack.enter_context(tempfile.TemporaryDirectory())) / "brain"
        if not brain.exists():
            pictures.make(brain)
        browser, address, login = stack.enter_context(pictures.browsing(brain))
        if options.only != "dashboard":
            paths = sorted(
                str(path.relative_to(SITE)) for path in SITE.rglob("*.html") if "_" not in path.name[:1]
            )
            if not paths:
                raise SystemExit("there is no site: run make site")
            look(
                "site",
                browser,
                stack.enter_context(site(SITE)),
                paths,
                None,
                {path: path for path in OF_SITE},
                "",
            )
        if options.only != "site":
            named = pictures.pages(brain)
            cookie = "; ".join(f"{one['name']}={one['value']}" for one in login["cookies"])
            some = {name: named[name] for name in OF_DASHBOARD}
            look("dashboard", browser, address, list(named.values()), login, some, cookie)
    report.facts["violations"] = "; ".join(wrong) or "none"
    if not options.quick:
        report.finish(options.output)
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
