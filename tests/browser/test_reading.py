"""Reading and typing: nothing is covered or cut off at any width, and shortcuts do not work inside of fields."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.memory import Memory
from tests.browser.brain import LAST_LINE, OUTCOMES

PAGES = (
    "/memories", "/memories?q=gauge+bridge", "/memories?tag=team&archived=yes", "/memories/new", "/graph", "/timeline",
    "/changes", "/tiers", "/tiers/plan", "/recalls", "/review", "/persona", "/costs?days=0", "/costs?days=90",
    "/integrity", "/nowhere",
)  # fmt: skip

pytestmark = pytest.mark.early  # a browser and a server of their own

Open = Callable[..., Any]

COVERED = (Path(__file__).parent / "covered.js").read_text(encoding="utf-8")


def runs_of(brain: Path) -> dict[str, str]:
    """Questions and the addresses of their runs."""
    with Memory.open(brain) as memory:
        return {info.query: f"/recalls/{info.id}" for info in memory.trajectories(limit=50)}


def memory_of(brain: Path, words: str) -> str:
    with Memory.open(brain) as memory:
        return f"/memories/{memory.search(words)[0].chunk_id}"


def test_nothing_covers_or_cuts_off_anything_at_any_width(
    open_page: Open, brain: Path, complaints: list[str]
) -> None:
    one, tea = memory_of(brain, "LoRa cannot see Mill Bridge"), memory_of(brain, "night trains to Vienna")
    paths = [*PAGES, one, f"{one}/edit", f"{one}/history", f"{one}/events", tea, f"{tea}/history"]
    paths += [
        memory_of(brain, "clamp checklist smithy"),
        memory_of(brain, "boo bold"),
        *runs_of(brain).values(),
    ]
    page = open_page("/memories")
    found = {}

    def look_at(path: str) -> None:
        page.goto(path)
        page.wait_for_load_state("networkidle" if path.startswith("/timeline") else "load")
        page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        for width in (360, 768, 1280):
            page.set_viewport_size({"width": width, "height": 844})
            if problems := page.evaluate(COVERED):
                found[path, width] = problems

    for path in paths:
        look_at(path)
    page.context.clear_cookies()
    look_at("/login")
    # The browser notes these states.
    complaints[:] = [said for said in complaints if "404" not in said and "401" not in said]
    assert found == {}


def test_the_check_for_covered_elements_finds_them(open_page: Open) -> None:
    page = open_page("/costs?days=0", width=390, height=844)
    assert page.evaluate(COVERED) == []
    sheet = "const sheet = new CSSStyleSheet(); document.adoptedStyleSheets = [sheet]; sheet.replaceSync"
    for rule, said in (
        (".figures dd { margin-bottom: -2rem; }", "overlap"),
        ("main { width: 500px; }", "too wide"),
        (
            ".figures { position: sticky; bottom: 0; }\n.sheet { position: sticky; bottom: .5rem; z-index: 2; }",
            "under",
        ),
        ("h1 { width: 1rem; overflow: hidden; white-space: nowrap; }", "cut off"),
    ):
        page.evaluate(f"{sheet}({rule!r})")
        assert any(said in one for one in page.evaluate(COVERED)), rule


def test_a_long_word_in_a_step_does_not_widen_the_page(open_page: Open, brain: Path) -> None:
    page = open_page(runs_of(brain)["Which radio did we choose in the end?"])
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    cells = page.evaluate(
        "Array.from(document.querySelectorAll('.step td code'), one => (one.textContent += 'long'.repeat(99))).length"
    )
    assert cells > 0
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 860})
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width


def test_a_long_word_of_another_note_does_not_widen_the_results(open_page: Open) -> None:
    page = open_page("/memories?q=gauge")
    page.evaluate("""() => {
        const note = document.createElement("p");
        note.className = "quiet small";
        note.innerHTML = `a later note: <a href="/memories">${"long".repeat(99)}</a>`;
        document.querySelector("#results .list > li").append(note);
    }""")
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 860})
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, width


def test_the_bar_for_several_memories_stays_in_sight_and_counts_them(open_page: Open) -> None:
    page = open_page("/memories", width=390, height=844)
    page.get_by_text("Select several").click()
    boxes = page.locator(".tick input")
    boxes.nth(3).check()
    boxes.last.check()
    assert page.evaluate("scrollY") > 844
    bar = page.locator("#several").bounding_box()
    assert bar["y"] == 0 and bar["height"] < 844 / 4
    assert page.locator("[data-ticked]").inner_text() == "2 ticked"
    page.get_by_role("button", name="Archive the ticked").click(trial=True)
    for _ in range(12):
        page.keyboard.press("Shift+Tab")
        assert page.evaluate(
            """() => {
            const top = document.activeElement.getBoundingClientRect().top;
            return top >= document.getElementById("several").getBoundingClientRect().bottom;
        }"""
        ), "the bar covers what has the focus"
    page.get_by_label("Tick all that are shown").check()
    assert page.locator("[data-ticked]").inner_text() == f"{boxes.count()} ticked"
    page.get_by_label("Tick all that are shown").uncheck()
    assert page.locator("[data-ticked]").inner_text() == ""


def test_a_program_is_read_to_its_end_by_scrolling_the_page_alone(open_page: Open, brain: Path) -> None:
    page = open_page(runs_of(brain)["Which program is long?"])
    program = page.locator("pre.program")
    assert LAST_LINE in program.inner_text()
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 860})
        hidden = program.evaluate(
            "one => [one.scrollWidth - one.clientWidth, one.scrollHeight - one.clientHeight]"
        )
        assert hidden == [0, 0], width
    for _ in range(80):
        page.keyboard.press("PageDown")
        if page.evaluate("innerHeight + scrollY >= document.documentElement.scrollHeight - 2"):
            break
    assert page.locator("main > :last-child, .program").last.bounding_box()["y"] < 860


def test_outcomes_have_colours_of_their_own(open_page: Open) -> None:
    page = open_page("/recalls")
    colours = {
        word: page.locator(".state", has_text=re.compile(f"^{word}$")).first.evaluate(
            "one => getComputedStyle(one).color + getComputedStyle(one).backgroundColor"
        )
        for word in (*OUTCOMES, "failed")
    }
    assert len(set(colours.values())) == 5
    assert page.get_by_text("A clamp of the smithy").count() == 1


def test_escape_in_the_search_brings_the_list_back(open_page: Open) -> None:
    page = open_page("/memories")
    search = page.get_by_label("Search memories")
    search.press_sequentially("zebra unicorn")
    page.get_by_role("heading", name="Nothing fits").wait_for()
    page.keyboard.press("Escape")
    page.locator("#results li").nth(5).wait_for()
    assert search.input_value() == ""
    page.wait_for_url(re.compile(r"/memories$"), wait_until="commit")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body"), "a second time, it leaves the field"


def test_letters_are_keys_of_the_page_only_outside_of_fields(open_page: Open, brain: Path) -> None:
    """`g t` goes to the timeline from a page that was just opened, and is text wherever something can be typed."""
    page = open_page("/memories")
    page.keyboard.type("gt")
    page.wait_for_url(re.compile("/timeline"))
    one = memory_of(brain, "night trains to Vienna")
    for path in (
        "/memories",
        "/memories/new",
        f"{one}/edit",
        "/recalls",
        "/review",
        "/persona",
        one,
        "/graph",
        "/timeline",
    ):
        page.goto(path)
        page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        fields = page.locator("main").locator("input:visible, select:visible, textarea:visible")
        kinds = fields.evaluate_all("all => all.map((one) => one.type)")
        for number in map(kinds.index, dict.fromkeys(kinds)):
            field = fields.nth(number)
            field.focus()
            typed = field.evaluate("one => one.matches('textarea, input:not([type]), [type=search]')")
            if typed:
                field.fill("")
            page.keyboard.type("g t/jke?")
            assert page.url.split("#")[0].split("?")[0].endswith(path.split("?")[0]), (path, number)
            assert not page.get_by_role("dialog").is_visible()
            assert not typed or field.input_value() == "g t/jke?"
    page.goto("/memories")
    page.evaluate(
        "document.querySelector('main').insertAdjacentHTML('beforeend', '<p contenteditable id=free></p>')"
    )
    page.locator("#free").focus()
    page.keyboard.type("g t")
    assert page.locator("#free").inner_text() == "g t"
    page.locator("h1").click()
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.type("gt")
    assert page.url.endswith("/memories"), "an open dialog keeps its keys"


def test_the_way_back_keeps_the_search_also_after_an_edit(open_page: Open) -> None:
    page = open_page("/memories")
    page.get_by_label("Search memories").press_sequentially("clamp forty")
    page.wait_for_url(re.compile(r"q=clamp(\+|%20)forty"), wait_until="commit")
    page.get_by_role("link", name="Jonas: The clamp went on").click()
    page.get_by_role("link", name="Edit").click()
    page.get_by_role("button", name="Save").click()
    page.get_by_text(re.compile("Saved|Nothing was changed")).wait_for()
    page.get_by_role("link", name="← Results for “clamp forty”").click()
    page.wait_for_url(re.compile(r"q=clamp"))
    assert page.get_by_label("Search memories").input_value() == "clamp forty"


def test_markdown_is_shown_and_its_source_with_the_keyboard(open_page: Open, brain: Path) -> None:
    page = open_page(memory_of(brain, "clamp checklist smithy"))
    assert page.locator(".prose strong", has_text="every").count() == 1
    page.get_by_role("link", name="Source").focus()
    page.keyboard.press("Enter")
    page.get_by_text("For **every** gauge").wait_for()
    page.get_by_role("link", name="Rendered").click()
    page.locator(".prose table").wait_for()
