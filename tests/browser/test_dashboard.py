"""The dashboard in a real browser: every page, both themes, a phone, the keyboard, and live updates."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from rlm_mem.memory import Memory
from tests.waiting import until

PAGES = (
    "/memories", "/memories?q=gauge+bridge", "/memories?tag=team&archived=yes", "/memories/new", "/graph", "/timeline",
    "/changes", "/tiers", "/tiers/plan", "/recalls", "/review", "/persona", "/costs?days=0", "/integrity",
    "/tokens", "/namespaces", "/login",
)  # fmt: skip
SIZES = {"desktop": (1280, 860), "phone": (390, 844), "small phone": (320, 844)}

pytestmark = pytest.mark.early  # a browser and a server of their own

Open = Callable[..., Any]
Elsewhere = Callable[..., "subprocess.Popen[str]"]


def note(brain: Path, words: str) -> str:
    """The id of the first memory that is found for some words."""
    with Memory.open(brain) as memory:
        return memory.search(words)[0].chunk_id


def newest_run(brain: Path) -> str:
    with Memory.open(brain) as memory:
        return str(memory.trajectories(limit=1)[0].id)


LOOKS: dict[tuple[str, str], dict[str, Any]] = {
    ("desktop", "light"): {},
    ("phone", "light"): {"runOnly": ["target-size", "scrollable-region-focusable"]},
    # The markup is the same, the colours are not.
    ("small phone", "dark"): {"runOnly": ["color-contrast"]},
}
"""Each size and theme that a page is shown in, with the rules of axe that it can break; one visit serves all."""


def test_every_page_fits_is_accessible_and_causes_no_browser_errors(open_page: Open, brain: Path) -> None:
    """No error in the browser, no horizontal scrolling, no serious violation found by axe."""
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe()
    one = note(brain, "LoRa cannot see Mill Bridge")
    paths = [
        *PAGES,
        f"/memories/{one}",
        f"/memories/{one}/edit",
        f"/memories/{one}/history",
        f"/recalls/{newest_run(brain)}",
        "/memories/import",
    ]
    page = open_page("/memories/import")
    page.get_by_label("Files").set_input_files(
        [
            {"name": "lock.md", "mimeType": "text/markdown", "buffer": b"The lock is oiled in March. " * 30},
            {"name": "cut.json", "mimeType": "", "buffer": b'[{"role": "user", "content": "Hello."}, {'},
        ]
    )
    page.get_by_role("button", name="Show what would be stored").click()
    page.get_by_role("button", name="Discard").wait_for()
    paths.append(urlsplit(page.url).path)
    found = []
    for path in paths:
        page.goto(path)
        page.evaluate(
            "for (const a of document.querySelectorAll('.head > p a')) a.textContent += 'long'.repeat(99)"
        )
        page.evaluate(axe.axe_script)
        assert page.locator("h1").count() == 1, path
        for (size, colours), rules in LOOKS.items():
            resize(page, size)
            page.emulate_media(color_scheme=colours, reduced_motion="reduce")
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, f"{path} is {wide} pixels too wide for a {size}"
            options = {"resultTypes": ["violations"], **rules}
            for problem in page.evaluate(f"axe.run({json.dumps(options)}).then((run) => run.violations)"):
                if problem["impact"] in ("serious", "critical"):
                    where = [node["html"][:160] for node in problem["nodes"]][:3]
                    found.append((path, size, problem["id"], where))
    assert found == []


def resize(page: Any, size: str) -> None:
    width, height = SIZES[size]
    page.set_viewport_size({"width": width, "height": height})


def test_the_form_of_a_token_has_each_box_beside_its_word_and_its_hint_on_a_line(open_page: Open) -> None:
    page = open_page("/tokens")
    for size in ("desktop", "small phone"):
        resize(page, size)
        for permission in ("read", "write", "review", "admin", "metrics"):
            label = page.locator("label", has=page.locator(f"input[value={permission}]"))
            assert label.bounding_box()["height"] < 48, (size, permission)
        hint = page.get_by_text("Namespaces, separated by spaces")
        assert hint.evaluate(
            "one => [...one.children].every(part => getComputedStyle(part).display === 'inline')"
        )
        assert hint.evaluate("one => one.tagName") == "SPAN"
        gap = page.evaluate(
            "document.querySelector('.empty + .sheet').getBoundingClientRect().top"
            " - document.querySelector('.empty').getBoundingClientRect().bottom"
        )
        assert gap > 8, size


def test_an_admin_reaches_the_tokens_in_every_window(open_page: Open) -> None:
    page = open_page("/memories")
    for size in SIZES:
        resize(page, size)
        page.get_by_role("link", name="Tokens").click()
        page.wait_for_url("**/tokens")
        page.goto("/memories")


def test_the_check_of_accessibility_notices_what_it_is_for(open_page: Open) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = open_page("/memories/new")
    page.evaluate(
        "document.querySelector('textarea').parentElement.replaceWith(document.querySelector('textarea'))"
    )
    page.evaluate("document.querySelector('.lead').style.color = '#ccc'")
    found = {problem["id"] for problem in Axe().run(page).response["violations"]}
    assert {"label", "color-contrast"} <= found


def test_the_policy_blocks_markup_that_was_not_escaped(open_page: Open, complaints: list[str]) -> None:
    """The policy alone stops what templates should never let through: scripts, styles, other hosts, forms to them."""
    page = open_page("/memories")
    page.evaluate(
        """() => {
            const place = document.querySelector("main");
            const script = document.createElement("script");
            script.textContent = "window.ran = 1";
            place.append(script);
            place.insertAdjacentHTML("beforeend", `<img src=x onerror="window.ran = 2"><div style="color: red">x</div>
                <form action="https://evil.example/" method="post"><button>send</button></form>`);
            const image = document.createElement("img");
            image.src = "https://evil.example/pixel.png";
            place.append(image);
        }"""
    )
    page.evaluate("document.querySelector('form[action^=https]').requestSubmit()")

    def missing() -> set[str]:
        assert page.evaluate("window.ran") is None
        refused = [said for said in complaints if "Content Security Policy" in said]
        return {
            kind
            for kind in ("script", "style", "img-src", "form")
            if not any(kind in said for said in refused)
        }

    until(
        lambda: not missing() and any("404" in said for said in complaints),
        "a complaint of the browser about each of them, and about the image that is not there",
    )
    assert page.url.endswith("/memories")
    complaints.clear()


def test_results_update_while_typing_and_so_does_the_address(open_page: Open) -> None:
    page = open_page("/memories")
    page.get_by_label("Search memories").press_sequentially("mill bri", delay=30)
    page.get_by_text("We put the first gauge up").wait_for()
    page.wait_for_url(re.compile(r"q=mill"), wait_until="commit")
    assert page.locator("mark").count() > 0
    page.get_by_label("Search memories").fill("zebra unicorn")
    page.get_by_role("heading", name="Nothing fits").wait_for()
    page.get_by_label("Search memories").fill("")
    page.locator("#results li").nth(5).wait_for()
    page.get_by_text("Filters").click()
    page.get_by_label("Conversation", exact=True).fill("radio")
    page.wait_for_url(re.compile(r"conversation=radio"), wait_until="commit")
    page.get_by_text("Then we go to NB-IoT").wait_for()
    assert page.locator("#results li").count() == 2


def test_a_question_in_the_search_box_is_answered_above_the_results(open_page: Open) -> None:
    page = open_page("/memories")
    search = page.get_by_label("Search memories")
    search.fill("Where did we put up the first gauge?")
    page.get_by_text("answers the question").wait_for()
    assert page.locator("#answer > *").count() == 0, "not while somebody types"
    search.press("Enter")
    page.locator("#answer").get_by_role("link", name="How it was found").wait_for()
    assert page.locator("#answer .state").inner_text() in ("answered", "closest only")
    search.press_sequentially(" ")
    page.wait_for_function("() => !document.querySelector('#answer > *')")


def test_hostile_text_is_shown_as_it_was_written(open_page: Open, brain: Path) -> None:
    page = open_page(f"/memories/{note(brain, 'boo bold')}")
    shown = page.get_by_role("article", name="Content").inner_text()
    assert "<script>alert('boo')</script>" in shown
    assert "{{ 7 * 7 }}" in shown
    assert page.locator("main img").count() == 0


def test_the_keyboard_alone_finds_a_memory_and_links_it(open_page: Open, brain: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    one, other = note(brain, "night trains to Vienna"), note(brain, "clamp went on in forty")
    page = open_page(f"/memories/{one}")
    page.locator("#link-form > summary").press("Enter")
    page.get_by_label("Find the other memory").press_sequentially("forty minutes")
    choice = page.locator(f"#linkable input[value={other}]")
    choice.wait_for()
    axe = Axe().run(page, context="#link-form")
    assert axe.violations_count == 0, axe.generate_report()
    choice.press("Space")
    with Memory.open(brain) as memory:  # another process writes: what is chosen stays
        meanwhile = memory.remember("Somebody else writes at this moment.", conversation_id="meanwhile")
    page.locator("#live.told").wait_for()
    assert choice.is_checked()
    page.get_by_role("button", name="Link", exact=True).press("Enter")
    page.get_by_text("Linked.", exact=True).wait_for()
    page.locator(f"#linked-{other}").get_by_text("supports").wait_for()
    with Memory.open(brain) as memory:
        memory.unlink(one, other, "supports")
        memory.delete(meanwhile.chunk_ids[0], permanent=True)


def test_the_keyboard_alone_archives_all_that_a_filter_shows_and_undoes_it(
    open_page: Open, brain: Path
) -> None:
    with Memory.open(brain) as memory:
        ids = [memory.remember(f"Lamp {n} is out.", tags=["lamps"]).chunk_ids[0] for n in range(3)]
    page = open_page("/memories?tag=lamps")
    page.get_by_text("Select several").press("Enter")
    page.get_by_label("Tick all that are shown").press("Space")
    assert page.locator(".tick input:checked").count() == 3
    page.get_by_role("button", name="Archive the ticked").press("Enter")
    page.get_by_text("as one change.").first.wait_for()
    with Memory.open(brain) as memory:
        assert not any(map(memory.store.exists, ids))
    page.get_by_role("button", name="Undo").press("Enter")
    page.get_by_text("Undone").first.wait_for()
    with Memory.open(brain) as memory:
        assert all(map(memory.store.exists, ids))
        for chunk_id in ids:
            memory.delete(chunk_id, permanent=True)


def test_the_keyboard_alone_keeps_one_of_two_memories_that_say_the_same(open_page: Open, brain: Path) -> None:
    from axe_playwright_python.sync_playwright import Axe

    axe = Axe()
    with Memory.open(brain) as memory:
        one = memory.remember("The weir keeper is Anselm.", conversation_id="weir").chunk_ids[0]
        twin = memory.remember("The weir keeper is Anselm!", conversation_id="lock").chunk_ids[0]
    page = open_page(f"/memories/{twin}")
    page.evaluate(axe.axe_script)
    violations = page.evaluate("axe.run({resultTypes: ['violations']}).then((run) => run.violations)")
    assert [found["id"] for found in violations if found["impact"] in ("serious", "critical")] == []
    page.get_by_role("button", name=re.compile("Keep only this memory")).focus()
    page.keyboard.press("Enter")
    page.get_by_text("This memory replaces the other one").wait_for()
    with Memory.open(brain) as memory:
        found = memory.get(one)
        assert found is not None and found.metadata.superseded_by == twin
        memory.undo()
        memory.delete(one, permanent=True)
        memory.delete(twin, permanent=True)


def test_the_keyboard_alone_finds_edits_and_saves_a_memory(open_page: Open, brain: Path) -> None:
    page = open_page("/costs")
    keys = page.keyboard
    keys.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    keys.press("Enter")
    keys.press("g")
    keys.press("m")
    page.wait_for_url(re.compile("/memories"))
    keys.press("/")
    keys.type("clamp forty minutes")
    page.wait_for_url(re.compile("minutes"), wait_until="commit")
    page.get_by_text("Jonas: The clamp went on").wait_for()
    keys.press("ArrowDown")
    keys.press("Enter")
    page.get_by_role("article", name="Content").wait_for()
    keys.press("e")
    page.wait_for_url(re.compile("/edit"))
    page.wait_for_function("() => document.activeElement.name === 'content'")
    keys.press("Control+End")
    keys.type(" It holds.")
    keys.press("Control+Enter")
    page.get_by_text("Saved.").wait_for()
    with Memory.open(brain) as memory:
        chunk = memory.store.get_chunk(page.url.split("/")[-1].split("?")[0])
    assert chunk is not None
    assert (chunk.content, chunk.revision) == ("Jonas: The clamp went on in forty minutes. It holds.", 2)
    keys.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    keys.press("Escape")
    assert not page.get_by_role("dialog").is_visible()
    page.wait_for_function("() => document.hasFocus() && !document.querySelector('dialog[open]')")
    page.wait_for_load_state("networkidle")
    keys.press("h")
    page.wait_for_url(re.compile("/history"))
    keys.press("u")
    page.get_by_role("article", name="Content").wait_for()
    keys.press("[")
    page.get_by_role("heading", name="Lena: We put the first gauge up").wait_for()
    keys.press("]")
    page.get_by_role("heading", name="Jonas: The clamp went on").wait_for()
    keys.press("n")
    page.get_by_label("Text").wait_for()
    page.wait_for_function("() => document.activeElement.name === 'text'")
    keys.press("Control+k")
    keys.type("night trains")
    page.get_by_role("option", name=re.compile("^Sam drinks")).wait_for()
    keys.press("Enter")
    page.get_by_role("heading", name="Sam drinks").wait_for()
    keys.press("Control+k")
    keys.type("time")
    keys.press("Enter")
    page.wait_for_url(re.compile("/timeline"))


def test_conflicting_edits_lose_nothing(open_page: Open, brain: Path, complaints: list[str]) -> None:
    one = note(brain, "flood warns Ellerby")
    page = open_page(f"/memories/{one}/edit")
    with Memory.open(brain, actor="other") as memory:
        memory.update(one, content="Marta: We build a gauge that warns the whole valley.")
    page.get_by_label("Text").fill("Marta: We build a gauge and a siren.")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="Changed by somebody else").wait_for()
    assert page.get_by_text("warns the whole valley").count() > 0
    complaints[:] = [said for said in complaints if "409" not in said]  # the browser notes the status
    page.get_by_role("button", name="Overwrite with mine").click()
    page.get_by_text("Saved.").wait_for()
    page.goto(f"/memories/{one}/history")
    assert page.get_by_role("heading", name="Revision").count() == 3


def test_what_another_process_writes_appears_by_itself(open_page: Open, elsewhere: Elsewhere) -> None:
    page = open_page("/memories")
    page.locator("#live:not([hidden])").wait_for()
    page.locator("#results li").first.wait_for()
    before = page.locator("#figures").inner_text()
    elsewhere("write", "A kingfisher sat on the gauge this morning.").wait(60)
    page.get_by_text("A kingfisher sat on the gauge").wait_for()
    assert page.locator("#figures").inner_text() != before, "the figures above the list moved with it"


def test_a_recall_of_another_process_is_shown_step_by_step(open_page: Open, elsewhere: Elsewhere) -> None:
    page = open_page("/recalls")
    page.locator("#live:not([hidden])").wait_for()
    process = elsewhere("ask")
    assert process.stdin

    def go_on() -> None:
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()

    page.get_by_role("link", name="Where does the slow gauge hang?").click()
    page.get_by_text("The first program is being written").wait_for()
    go_on()
    page.get_by_text("looking for the gauge 2").or_(
        page.get_by_text("looking for the gauge")
    ).first.wait_for()
    page.get_by_text("Step 1 is done").wait_for()
    go_on()
    page.get_by_text("Step 2 is done").wait_for()
    assert page.locator(".state-run").count() == 1
    go_on()
    page.locator(".answer", has_text="It hangs at Mill Bridge.").wait_for()
    assert page.get_by_text("answered", exact=True).count() == 1


def test_a_question_is_asked_and_answered_on_the_page(open_page: Open) -> None:
    page = open_page("/recalls")
    page.get_by_label("Question").fill("Where did we put the first gauge?")
    page.get_by_role("button", name="Recall").click()
    page.wait_for_url(re.compile("/recalls/traj-"))
    page.get_by_role("heading", name="Sources").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    assert page.url.endswith("#step-1")
    assert page.locator(".run .bars rect").count() > 0


def test_a_review_is_approved_by_a_named_person(open_page: Open, brain: Path) -> None:
    page = open_page("/review")
    case = page.locator("article.case").first
    title = case.get_by_role("heading").first.inner_text()
    case.get_by_label("Your name").fill("Maya")
    case.get_by_label("Why").fill("It worked in both projects.")
    case.get_by_role("button", name="Move to the core").click()
    page.get_by_text("It is part of the core now.").wait_for()
    page.get_by_role("link", name="approved 1").click()
    page.get_by_text("It worked in both projects.").wait_for()
    assert page.get_by_role("heading", name=title).count() == 1
    with Memory.open(brain) as memory:
        assert memory.continuum.health()["tiers"]["ultra-low"] == 1


def test_the_keyboard_alone_decides_one_case_after_the_other(open_page: Open, brain: Path) -> None:
    """`j` goes to each case of the queue, and after a decision the focus is on what was done, which is read out."""
    with Memory.open(brain) as memory:
        for lock in ("north", "south"):
            for keeper in ("Anselm", "Berta"):
                memory.remember(
                    f"The keeper of the {lock} lock is {keeper}.", conversation_id=f"{lock} {keeper}"
                )
        waiting = memory.continuum.review.cases()
    page = open_page("/review")
    keys = page.keyboard
    reached = []
    for _ in waiting:
        keys.press("j")
        reached.append(page.evaluate("document.activeElement.closest('.case')?.id"))
    assert set(reached) == {case.id for case in waiting}
    assert page.evaluate(
        "document.activeElement.closest('.case').querySelector('a') === document.activeElement"
    )
    page.locator("article.case", has_text="Berta").first.get_by_label("Your name").fill("Maya")
    keys.press("Control+Enter")
    page.get_by_text("The older memory is marked as replaced.").wait_for()
    page.wait_for_function("() => document.activeElement.matches('.notice[role=status]')")
    keys.press("j")
    assert page.evaluate("document.activeElement.closest('.case') !== null")


def test_a_slider_moves_and_the_prompt_changes_beside_it(open_page: Open, brain: Path) -> None:
    page = open_page("/persona")
    slider = page.get_by_label("Verbosity")
    slider.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    wanted = str(slider.input_value())
    page.locator("#prompt").get_by_text(f"Verbosity {wanted}%").wait_for()
    assert page.locator("output[for='slider-verbosity']").inner_text() == wanted
    page.locator("#live:not([hidden])").wait_for()
    with Memory.open(brain) as memory:
        assert memory.persona(keep=True).sliders["verbosity"] == int(wanted)
        memory.persona(keep=True).set("humor", 7)
    page.locator("#prompt").get_by_text("Humor 7%").wait_for()
    page.wait_for_function("() => document.getElementById('slider-humor').value === '7'")


def test_the_graph_is_walked_with_the_keyboard_narrowed_and_filtered(open_page: Open, brain: Path) -> None:
    page = open_page(f"/graph?id={note(brain, 'LoRa cannot see Mill Bridge')}")
    page.get_by_text(re.compile(r"^[\d,]+ memor(y|ies), [\d,]+ links?, [\d,]+ communit")).wait_for()
    canvas = page.get_by_role("application", name="Graph of linked memories")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    card = page.locator("#graph-card")
    card.get_by_text("LoRa cannot see").wait_for()
    for key in ("ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Enter", "+", "-", "0"):
        page.keyboard.press(key)
    page.get_by_label("Find in the graph").fill("mill bridge")
    page.get_by_text(re.compile(r"^1 of \d+ memories")).wait_for()
    page.keyboard.press("Escape")
    page.get_by_text("Links and size").click()
    for kind in ("context of", "follows", "related to"):
        page.get_by_label(kind).uncheck()
    page.get_by_text(re.compile(r", [1-9] links?")).wait_for()
    page.goto("/graph?limit=500")
    page.get_by_text(re.compile(r"^[\d,]+ memor(y|ies), [\d,]+ links?")).wait_for()
    page.locator(".chip").last.click()
    page.get_by_text(re.compile(r"^\d+ of \d+ memories")).wait_for()
    page.locator(".chip").last.click()
    page.get_by_text(re.compile(r"^[\d,]+ memor(y|ies), [\d,]+ links?")).wait_for()
    page.locator("#graph-to").focus()
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    page.get_by_text(re.compile(r"^\d+ of \d+ memories")).wait_for()
    assert (
        not page.locator("#graph-when")
        .inner_text()
        .endswith(page.locator("#graph-span").get_attribute("data-days").split()[-1])
    )
    page.keyboard.press("End")
    page.get_by_role("button", name="radio").click()
    page.get_by_text(re.compile(r"^2 of \d+ memories")).wait_for()
    page.keyboard.press("Escape")
    page.get_by_text(re.compile(r"^\d+ memories, ")).wait_for()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("o")
    page.get_by_role("article", name="Content").wait_for()


def test_the_theme_is_switched_and_stays(open_page: Open) -> None:
    page = open_page("/memories")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Dark").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light != dark
    page.goto("/tiers")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    assert page.get_by_role("button", name="Dark").get_attribute("aria-pressed") == "true"


def test_a_check_runs_and_ends_by_itself(open_page: Open) -> None:
    page = open_page("/integrity")
    page.get_by_role("button", name="Check now").or_(page.get_by_role("button", name="Check again")).click()
    page.get_by_role("button", name="Check again").wait_for()
    page.get_by_text(re.compile("No problems found|What a repair would do")).wait_for()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_folder_is_imported_and_that_is_undone_by_the_keyboard(
    open_page: Open, brain: Path, tmp_path: Path, scripts: bool
) -> None:
    name = f"notes-{scripts}"
    (folder := tmp_path / name / "sub").mkdir(parents=True)
    (folder / "weir.md").write_text(f"The weir has {7 + scripts} gates of oak.")
    os.utime(folder / "weir.md", (1_600_000_000, 1_600_000_000))
    (folder.parent / "map.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    page = open_page("/memories", **({} if scripts else {"java_script_enabled": False}))
    page.get_by_role("link", name="Import", exact=True).click()
    if scripts:
        page.get_by_role("button", name="Show what would be stored").press("Enter")
        page.get_by_text("No file is chosen.").wait_for()
    page.get_by_label("or a folder").set_input_files(str(folder.parent))
    page.get_by_role("button", name="Show what would be stored").press("Enter")
    page.get_by_text("gates of oak").wait_for()
    assert page.get_by_text("1 other file without memories").count() == 1
    page.get_by_role("button", name="Import").press("Enter")
    page.get_by_text("Imported.").wait_for()
    with Memory.open(brain) as memory:
        (made,) = memory.search(f"weir {7 + scripts} gates", limit=1)
        chunk = memory.get(made.chunk_id)
    assert chunk is not None and f"{7 + scripts} gates" in chunk.content
    if scripts:
        assert str(chunk.metadata.occurred_at).startswith("2020-09-13T12:26:40")
        page.keyboard.press("Tab")  # the notice has the focus
        page.keyboard.press("Enter")
    else:
        page.get_by_role("button", name="Undo").click()
    page.get_by_text("Undone.").wait_for()
    with Memory.open(brain) as memory:
        assert memory.get(made.chunk_id) is None


def test_without_scripts_pages_are_read_searched_and_acted_on(open_page: Open, brain: Path) -> None:
    page = open_page("/memories", java_script_enabled=False)
    page.get_by_label("Search memories").fill("night trains Vienna")
    page.get_by_role("button", name="Search").click()
    page.locator("a.what").first.click()
    page.get_by_role("link", name=re.compile("History")).click()
    page.get_by_role("button", name="Back to revision 1").click()
    page.get_by_text("The former version was restored").wait_for()
    assert page.get_by_text("Sam drinks green tea").count() > 0
    page.get_by_role("link", name="Open the audit log").click()
    page.get_by_text("Changes of this memory").wait_for()
    page.goto("/persona")
    page.get_by_role("button", name="Dark").click()
    assert page.url.endswith("/persona")
