"""Pictures of every page, on a brain of 600 memories with tiers that move over half a year and runs of every kind.

    python -m tests.browser.pictures FOLDER                 # every page, both themes, three widths: a minute
    python -m tests.browser.pictures FOLDER --only graph    # the pages with this in their name
    python -m tests.browser.pictures docs/pictures --docs --brain FOLDER    # those of the documentation

The brain is made once, in `FOLDER/brain` (or `--brain`), and used again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rlm_mem.cli.demo import remember_team
from rlm_mem.errors import ModelError
from rlm_mem.memory import Memory
from rlm_mem.models.base import Limits
from rlm_mem.models.scripted import ScriptedLLM
from tests.browser.brain import OUTCOMES
from tests.browser.conftest import CHROMIUM, ROOT, Serving
from tests.continuum.conftest import PROVEN, StillClock, open_continuum, record, rewrite

LOADED = """() => document.readyState === "complete"
    && !document.querySelector(".htmx-request, #events > p > a[href$=events]")
    && (document.getElementById("graph-count")?.textContent ?? "drawn") !== "" """
"""Whether the parts that are loaded after a page are there."""
THEMES = ("light", "dark")
WIDTHS = {390: 844, 768: 1024, 1280: 860}
GOALS = (
    "Deploy the gauge firmware over the air",
    "Fetch and summarise the river bulletin",
    "Rotate the keys of the radio gateways",
    "Restore the readings from a backup",
    "Calibrate a gauge against the staff",
    "Answer a question of the county",
)
STEPS = (
    "hits = search('gauge Mill Bridge', limit=5)\nfor hit in hits:\n    print(hit['chunk_id'], hit['snippet'][:80])",
    "words = llm_query('Which of these says where the gauge hangs? ' + hits[0]['snippet'])\nprint(words)",
    "for one in turns(contains='gauge', limit=4):\n    print(one['date'], one['speaker'], one['text'][:60])",
    "found = read_chunk(hits[0]['chunk_id'])\nprint(found['content'])",
    "FINAL('The first gauge hangs at **Mill Bridge**; it went up in April.', [hits[0]['chunk_id']], confidence=0.95)",
)
CARD = """## Before the first frost

1. drain the stilling well
2. check the **heater**: `gaugectl heat --test`
3. photograph the staff

| gauge | heater | last test |
|---|---|--:|
| Mill Bridge | 12 W | 2026-10-02 |
| Tanner's Weir | none | – |

> The well at Tanner's Weir froze in 2021. See [the checklist](https://example.org/frost).
"""


def make(brain: Path) -> None:
    """Fill a brain; takes half a minute."""
    _tiers(brain)
    with Memory.open(brain, llm="offline", actor="maya") as memory:
        remember_team(memory, lambda _done, _all: None)
        _notes(memory)
        memory.remember(CARD, conversation_id="frost", tags=["checklist", "winter"], occurred_at="2026-06-29")
        for question in (
            "Which radio did we choose in the end?", "Who is our first customer?", "What does the clamp cost?",
            "When does the nightly backup start?", "Who won the chess championship of 1962?",
        ):  # fmt: skip
            memory.recall(question)
        memory.reason("Why did we choose NB-IoT?")
        for word, program in OUTCOMES.items():
            scripted = ScriptedLLM([f"```repl\n{program}\n```"])
            Memory(memory.store, scripted).recall(f"Which question is {word}?", limits=Limits(iterations=1))
        with suppress(ModelError):
            Memory(memory.store, ScriptedLLM([])).recall("Which question is failed?")
        replies = [f"```repl\n{program}\n```" for program in STEPS]
        replies.insert(2, "The second one, at Mill Bridge.")  # of the call within the second program
        Memory(memory.store, ScriptedLLM(replies)).recall("Where does the first gauge hang?")


def _notes(memory: Memory) -> None:
    rows = (
        (ROOT / "benchmarks" / "corpora" / "notes" / "notes.jsonl").read_text(encoding="utf-8").splitlines()
    )
    with memory.batch():
        for row in map(json.loads, filter(None, rows)):
            memory.remember(
                row["text"],
                conversation_id=row["document"],
                tags=[row["document"].split("-")[0]],
                occurred_at=row["at"],
            )


def _tiers(brain: Path) -> None:
    clock = StillClock(datetime(2026, 5, 4, 9, tzinfo=UTC))
    continuum = open_continuum(brain, clock)
    for week in range(26):
        clock.now += timedelta(7)
        goal = GOALS[min(len(GOALS) - 1, week // 4)]
        record(
            continuum, f"{goal}, week {week}", project="alpha" if week % 2 else "beta", success=week % 5 > 0
        )
        continuum.consolidate()
        if week % 6 == 4:
            traces = list(continuum.files.entries(kinds=("trace",)))
            rewrite(continuum, traces[-1], **PROVEN)
            continuum.consolidate()
        if week % 9 == 8:
            continuum.prune()
    continuum.store.close()


def pages(brain: Path) -> dict[str, str]:
    """The name and address of every page."""
    with Memory.open(brain) as memory:
        card, talk = (
            memory.search("before the first frost")[0],
            memory.search("LoRa Mill Bridge church tower")[0],
        )
        runs = {info.query: info.id for info in memory.trajectories(limit=None)}
    return {
        "memories": "/memories",
        "search": "/memories?q=mill+bridge+gauge",
        "question": "/memories?q=Which+radio+did+we+choose+in+the+end%3F",
        "nothing": "/memories?q=zebra+unicorn",
        "memory": f"/memories/{talk.chunk_id}",
        "card": f"/memories/{card.chunk_id}",
        "edit": f"/memories/{card.chunk_id}/edit",
        "history": f"/memories/{talk.chunk_id}/history",
        "new": "/memories/new",
        "graph": "/graph?limit=500",
        "graph-one": f"/graph?id={talk.chunk_id}&limit=120",
        "recall": f"/recalls/{runs['Where does the first gauge hang?']}",
        "plan": "/tiers/plan",
        "costs": "/costs?days=0",
        **{
            name: f"/{name}"
            for name in ("timeline", "changes", "tiers", "recalls", "review", "persona", "integrity")
        },
        **{
            f"recall-{word.replace(' ', '-')}": f"/recalls/{runs[f'Which question is {word}?']}"
            for word in (*OUTCOMES, "failed")
        },
    }


@contextmanager
def browsing(brain: Path) -> Iterator[tuple[Any, str, Any]]:
    """A browser, the address of the dashboard, and the state of a login."""
    from playwright.sync_api import sync_playwright

    with (
        tempfile.TemporaryDirectory() as home,
        Serving(brain, Path(home)) as link,
        sync_playwright() as playwright,
    ):
        chromium = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        first = chromium.new_context()
        first.new_page().goto(link)
        parts = urlsplit(link)
        yield chromium, f"{parts.scheme}://{parts.netloc}", first.storage_state()
        chromium.close()


def shoot(
    brain: Path,
    folder: Path,
    *,
    only: str = "",
    themes: tuple[str, ...] = THEMES,
    widths: tuple[int, ...] = tuple(WIDTHS),
    whole: bool = True,
) -> None:
    """Write `NAME-WIDTH-THEME.png` of every page."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {name: path for name, path in pages(brain).items() if only in name}
    with browsing(brain) as (chromium, site, login):
        for theme in themes:
            for width in widths:
                context = chromium.new_context(
                    base_url=site, storage_state=login, viewport={"width": width, "height": WIDTHS[width]},
                    color_scheme=theme, reduced_motion="reduce",
                )  # fmt: skip
                page = context.new_page()
                page.on("console", lambda said: print(said.type, said.text, file=sys.stderr))
                page.on("pageerror", lambda error: print(error, file=sys.stderr))
                for name, path in wanted.items():
                    page.goto(path)
                    page.wait_for_function(LOADED)
                    page.screenshot(path=folder / f"{name}-{width}-{theme}.png", full_page=whole)
                context.close()


def illustrate(brain: Path, folder: Path) -> None:
    """Write the pictures of the documentation."""
    named = pages(brain)
    with browsing(brain) as (chromium, site, login):

        def page(width: int, height: int, theme: str, path: str) -> Any:
            opened = chromium.new_context(
                base_url=site, storage_state=login, viewport={"width": width, "height": height},
                color_scheme=theme, reduced_motion="reduce",
            ).new_page()  # fmt: skip
            opened.goto(path)
            opened.wait_for_function(LOADED)
            return opened

        asked = page(1100, 620, "light", "/memories")
        asked.get_by_label("Search memories").fill("Who is our first customer?")
        asked.keyboard.press("Enter")
        asked.locator("#answer .sheet").wait_for()
        asked.wait_for_function("() => document.querySelectorAll('#results mark').length > 0")
        shots = {
            "memories": asked,
            "graph": page(1100, 900, "light", named["graph"]),
            "recall": page(1100, 900, "light", named["recall"]),
            "tiers": page(1100, 560, "dark", named["tiers"]),
            "phone": page(390, 700, "dark", named["card"]),
        }
        for name, shot in shots.items():
            # As PNG the points and lines of the graph take three times as much.
            shot.screenshot(path=folder / f"dashboard-{name}.{'jpg' if name == 'graph' else 'png'}")


def main() -> None:
    """Make the brain where it is missing, then the pictures."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("folder", type=Path, help="where the pictures go")
    asked.add_argument("--brain", type=Path)
    asked.add_argument("--only", default="", help="pages with this in their name")
    asked.add_argument("--theme", choices=THEMES)
    asked.add_argument("--width", type=int, choices=list(WIDTHS))
    asked.add_argument("--docs", action="store_true", help="the pictures of the documentation alone")
    asked.add_argument("--screen", action="store_true", help="what a screen shows, not the whole page")
    given = asked.parse_args()
    brain = given.brain or given.folder / "brain"
    if not brain.exists():
        make(brain)
    if given.docs:
        illustrate(brain, given.folder)
        return
    shoot(
        brain, given.folder, only=given.only, themes=(given.theme,) if given.theme else THEMES,
        widths=(given.width,) if given.width else tuple(WIDTHS), whole=not given.screen,
    )  # fmt: skip


if __name__ == "__main__":
    main()
