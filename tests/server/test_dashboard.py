"""The pages of the dashboard: each says what is there, and what to do where nothing is."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import pytest

from rlm_mem.access.tokens import TokenFile
from rlm_mem.dashboard import communities, timeline
from rlm_mem.dashboard.answers import is_question
from rlm_mem.dashboard.communities import partition
from rlm_mem.dashboard.rendering import NAVIGATION
from rlm_mem.memory import Memory
from rlm_mem.store.core.chunk_store import ChunkStore
from tests.server.site import HOME, OWN, Site, links_of, opened, tags_of, text_of
from tests.typed import present
from tests.waiting import until

PAGES = (
    "/memories", "/memories/new", "/graph", "/timeline", "/changes", "/tiers", "/tiers/plan", "/recalls", "/review",
    "/persona", "/costs", "/integrity",
)  # fmt: skip


@pytest.fixture
def site(place: Path | str) -> Iterator[Site]:
    with opened(place) as found:
        yield found


@pytest.fixture
def ids(site: Site) -> list[str]:
    """Three memories of one conversation, one of them linked by hand."""
    made = [
        site.memory.remember(text, conversation_id="notes", tags=["team", tag], occurred_at=day).chunk_ids[0]
        for text, tag, day in (
            ("Ana: We chose PostgreSQL for the ledger because of row-level security.", "db", "2026-02-01"),
            ("Ben drinks green tea in the morning.", "people", "2026-02-02"),
            ("The heron server stands in the cellar of Ellerby town hall.", "places", "2026-03-05"),
        )
    ]
    site.memory.link(made[0], made[2], "supports", 0.8, "the ledger runs there")
    return made


def test_every_page_says_what_to_do_next_while_nothing_is_remembered(site: Site) -> None:
    for path, asked in (
        ("/memories", "Remember something"),
        ("/graph", "Remember something"),
        ("/timeline", "Remember something"),
        ("/changes", "Remember something"),
        ("/tiers", "rlm-mem trace record"),
        ("/recalls", "Ask above"),
        ("/review", "What is due now?"),
        ("/costs", "ask a question"),
        ("/integrity", "Check now"),
    ):
        assert asked in text_of(site.get(path)), path
    assert "The system prompt" in site.get("/persona")


def test_no_page_of_a_read_only_server_leads_to_a_form_that_it_does_not_have(place: Path | str) -> None:
    Memory.open(place).close()
    with opened(place, read_only=True) as site:
        for path, *_ in NAVIGATION:
            assert "/memories/new" not in site.get(path), path


def test_what_an_agent_learnt_in_a_project_is_found_from_the_empty_shared_namespace(
    place: Path | str,
) -> None:
    project = "project/github.com/acme/ledger"
    with Memory.open(place, namespace=project) as memory:
        memory.remember("Always run the linter before you commit.")
        memory.remember("Amounts are Decimal, never float.")
    with opened(place) as site:
        for path in ("/memories", "/review"):
            assert "Others may contain memories" in text_of(site.get(path))
        led = "captured in a repository is in the namespace of its project"
        assert led in text_of(site.get("/review"))
        listed = text_of(site.get("/namespaces"))
        assert re.search(r"default\s+0 memories · shown now", listed)
        assert re.search(rf"{project}\s+2 memories(?! · shown)", listed)
        assert "never float" in site.post("/namespaces", namespace=project)
        assert led not in text_of(site.get("/review"))
        assert re.search(rf"{project}\s+2 memories · shown now", text_of(site.get("/namespaces")))
        (link,) = [one for one in links_of(site.get("/memories")) if "export" in one]
        with zipfile.ZipFile(io.BytesIO(site.client.get(link).content)) as exported:
            texts = [exported.read(name).decode() for name in exported.namelist() if name.endswith(".md")]
        assert any("never float" in text for text in texts)


@pytest.mark.parametrize("path", PAGES)
def test_every_page_works_under_a_strict_content_policy(site: Site, ids: list[str], path: str) -> None:
    """No script and no style but our own files, no handler in an attribute, nothing from another host."""
    answer = site.client.get(path)
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    for directive in ("script-src 'self'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"):
        assert directive in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    for tag, attributes in tags_of(answer.text):
        assert tag not in ("style", "iframe", "object", "embed", "base")
        assert not [name for name in attributes if name.startswith("on") or name == "style"], (
            tag,
            attributes,
        )
        assert tag != "script" or str(attributes.get("src", "")).startswith("/static/")
        for name in ("src", "href", "action", "hx-get", "hx-post"):
            assert re.match(r"[/#]", str(attributes.get(name) or "/")), (tag, name, attributes)
            assert not str(attributes.get(name) or "").startswith("//")


def test_every_form_says_for_which_namespace_it_is(site: Site, ids: list[str]) -> None:
    run = site.memory.recall("Where does the heron server stand?").trajectory.id
    site.memory.remember("The ferry leaves at 6:10.")
    site.memory.remember("The ferry leaves at 6:40.")
    site.memory.update(ids[0], content="Changed.")
    found = 0
    for path in (
        *PAGES,
        *(f"/memories/{ids[0]}{end}" for end in ("", "/edit", "/history")),
        f"/recalls/{run}",
    ):
        for form in re.findall(r'<form\b[^>]*method="post".*?</form>', site.get(path), re.DOTALL):
            if not re.search(r'action="/(theme|logout)"', form):
                assert '<input type="hidden" name="in" value="default">' in form, (path, form[:200])
                found += 1
    assert found > 10


def test_every_link_of_every_page_leads_somewhere(site: Site, ids: list[str]) -> None:
    site.memory.recall("What did Ana choose for the ledger?")
    waiting, seen = list(PAGES), set[str]()
    while waiting and len(seen) < 150:
        path = waiting.pop(0)
        if path in seen or path.startswith(("/static", "/logout")):
            continue
        seen.add(path)
        page = site.get(path)
        waiting += links_of(page) if path != "/export" else []  # a zip file, in which any bytes may stand
    assert {f"/memories/{one}" for one in ids} <= seen
    assert any(path.startswith("/recalls/traj-") for path in seen)


def test_the_list_is_newest_first_and_searches_by_words(site: Site, ids: list[str]) -> None:
    page = site.get("/memories")
    assert page.index(ids[2]) < page.index(ids[1]) < page.index(ids[0])
    found = site.get("/memories?q=who+chose+the+ledgers+database")
    assert f"/memories/{ids[0]}" in found
    assert "<mark>ledger</mark>" in found, "word endings do not matter to what is marked"
    assert "Parts of the score" in found


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("tag=people", [1]),
        ("tag=team,db", [0]),
        ("conversation=notes&since=2026-03-01", [2]),
        ("until=2026-02-01", [0]),
        ("type=decision", [0]),
        ("speaker=Ana", [0]),
        ("q=tea&tag=db", []),
    ],
)
def test_filters_narrow_the_list(site: Site, ids: list[str], query: str, left: list[int]) -> None:
    page = site.part(f"/memories?{query}")
    assert [number for number, one in enumerate(ids) if f'href="/memories/{one}"' in page] == left


def test_an_incomplete_date_gives_a_message_instead_of_an_error(site: Site, ids: list[str]) -> None:
    assert "is not an ISO 8601 time" in text_of(site.part("/memories?q=tea&since=2026-0"))


def test_only_the_results_are_sent_while_somebody_types(site: Site, ids: list[str]) -> None:
    answer = site.client.get("/memories?q=tea&type=&tag=", headers={"hx-request": "true"})
    assert "<html" not in answer.text
    assert answer.headers["hx-replace-url"] == "/memories?q=tea", "empty filters do not clutter the address"


def test_one_memory_shows_content_links_origin_and_neighbours(site: Site, ids: list[str]) -> None:
    page = text_of(site.get(f"/memories/{ids[0]}"))
    assert "Ana: We chose PostgreSQL" in page
    assert "supports it, strong · the ledger runs there" in page
    assert "Ben drinks green tea in the morning. →" in page, "the next one of its conversation"
    assert "Revision" in page
    assert "interaction" in page, "its source"
    assert re.search(r"characters 0 to \d+ of the original text", page)


def test_a_memory_has_a_title_and_a_way_back_to_what_was_searched(site: Site, ids: list[str]) -> None:
    one = f"/memories/{ids[2]}"
    page = site.get(one, referer=f"{HOME}/memories?q=heron&tag=places&done=saved")
    assert "<title>The heron server stands" in page
    assert re.search(r"<h1[^>]*>The heron server stands", page)
    back = {"data-back": None, "data-hotkey": "u"}
    assert ("a", {"href": "/memories?q=heron&tag=places", **back}) in tags_of(page)
    assert "Results for “heron”" in text_of(page)
    for elsewhere in (
        "",
        "https://evil.example/memories?q=x",
        f"{HOME}/logout",
        f"{HOME}/memories/x?q=1",
        "http://[",
        "//",
    ):
        assert ("a", {"href": "/memories", **back}) in tags_of(site.get(one, referer=elsewhere))


def test_how_memories_are_linked_and_what_was_done_is_said_in_words(site: Site, ids: list[str]) -> None:
    _, ben, heron = ids
    site.memory.link(heron, ben, "contradicts", 0.02)
    site.memory.link(heron, ben, "follows", 0.5)
    page = site.get(f"/memories/{heron}")
    for said in (
        "this one is supported by it, strong",
        "this one contradicts it, weak",
        "this one was said after it, fair",
    ):
        assert said in text_of(page)
    assert 'title="strength 2 %"' in page
    assert "%" not in text_of(page.split("links-title")[2].split("about-title")[0])
    site.memory.unlink(heron, ben, "contradicts")
    site.memory.update(heron, content="The heron server stands in the attic.")
    site.memory.undo(heron)
    done = text_of(site.part(f"/memories/{heron}/events"))
    for said in (
        "remembered",
        "link added: this one contradicts it: Ben drinks green tea",
        "link removed: Ben drinks",
        "edited",
        "revision 4 restored",
    ):
        assert said in done
    history = text_of(site.get(f"/memories/{heron}/history"))
    assert "link added: this one contradicts it: Ben drinks green tea" in history
    assert "link removed: this one contradicts it: Ben drinks green tea" in history


def test_a_memory_with_very_many_links_says_that_some_are_left_out(site: Site, ids: list[str]) -> None:
    hub = ids[0]
    with site.memory.batch():
        for number in range(101):
            other = site.memory.store.create_chunk(f"Valve {number} is shut.").id
            site.memory.link(hub, other, "elaborates", 0.9)
    page = site.get(f"/memories/{hub}")
    assert "Only the 100 strongest links are shown" in text_of(page)
    assert len(site.memory.links(hub, "elaborates")) == 101
    assert len(site.memory.links(hub, limit=3)) == 3
    assert "strongest links" not in text_of(site.get(f"/memories/{ids[1]}"))


def test_links_that_someone_made_come_before_those_of_rules(site: Site) -> None:
    same, other, one = (
        site.memory.store.create_chunk(f"{name} of the tea", conversation_id="notes").id
        for name in ("Origin", "Taste", "Price")
    )
    site.memory.link(one, same, "context_of", 0.9)
    site.memory.link(one, other, "elaborates", 0.1)
    page = site.get(f"/memories/{one}").partition('id="links-title"')[2]
    assert 0 < page.index(f"/memories/{other}") < page.index(f"/memories/{same}")


def test_the_table_of_words_knows_every_built_in_link_and_every_entry_of_the_log(
    site: Site, ids: list[str]
) -> None:
    from rlm_mem.chunk import ALL_LINK_TYPES
    from rlm_mem.dashboard.words import deed, way

    assert not [kind for kind in ALL_LINK_TYPES if "this to that" in way(kind, "out")]
    assert way("seen_near", "in") == "seen near: that to this", "a type of one's own"
    site.memory.delete(ids[0])
    site.memory.restore(ids[0])
    site.memory.remember("Ben drinks green tea in the morning.", conversation_id="notes")
    told = {event["op"]: deed(event) for event in site.memory.store.events()}
    assert {told[op] for op in ("create", "delete", "restore", "repeat")} == {
        "remembered",
        "archived",
        "restored from the archive",
        "said again",
    }


def test_a_memory_that_is_read_on_a_page_is_not_counted_as_recalled(site: Site, ids: list[str]) -> None:
    site.get(f"/memories/{ids[0]}")
    site.get("/memories?q=ledger")
    chunk = site.memory.store.get_chunk(ids[0], track=False)
    assert chunk is not None
    assert chunk.metadata.access_count == 0


def test_a_memory_names_the_questions_whose_answers_rest_on_it(site: Site, ids: list[str]) -> None:
    assert "None yet" in site.part(f"/memories/{ids[0]}/events")
    run = site.memory.recall("What did Ana choose for the ledger?").trajectory.id
    page = site.part(f"/memories/{ids[0]}/events")
    assert f"/recalls/{run}" in page
    assert "What did Ana choose" in page
    assert "remembered" in text_of(page)


def test_the_graph_reaches_as_far_as_it_is_let(site: Site, ids: list[str]) -> None:
    graph = site.client.get(f"/graph/data?id={ids[0]}").json()
    assert {node["id"] for node in graph["nodes"]} == set(ids)
    assert {"source": ids[0], "target": ids[2], "type": "supports", "strength": 0.8} in graph["links"]
    only = site.client.get(f"/graph/data?id={ids[0]}&type=supports").json()
    assert {node["id"] for node in only["nodes"]} == {ids[0], ids[2]}
    small = site.client.get(f"/graph/data?id={ids[0]}&limit=2").json()
    assert (len(small["nodes"]), small["cut"]) == (2, True)
    assert "the heron" not in text_of(site.get(f"/graph?id={ids[0]}&type=follows")).lower()
    newest = site.client.get("/graph/data?limit=2").json()
    assert ({node["id"] for node in newest["nodes"]}, newest["cut"]) == ({ids[1], ids[2]}, True)
    grown = site.client.get(f"/graph/data?id={ids[0]}&limit=2&expand={ids[2]}").json()
    assert {node["id"] for node in grown["nodes"]} == set(ids)
    assert site.client.get("/graph/data?expand=chunk-2026-01-01-00000000").status_code == 404


def test_the_graph_names_communities_and_where_their_memories_are(site: Site) -> None:
    for talk, words in (("pump", "The pump in the cellar hums"), ("tea", "Green tea is in the kitchen")):
        for number in range(4):
            site.memory.remember(f"{words}, number {number}.", conversation_id=talk)
    site.memory.store.create_chunk("A thing by itself.")
    page = text_of(site.get("/graph"))
    assert "pump 4 memories" in page
    assert "tea 4 memories" in page
    data = site.client.get("/graph/data").json()
    named = {node["text"][:9]: data["groups"][node["group"]]["name"] for node in data["nodes"]}
    assert named == {"The pump ": "pump", "Green tea": "tea", "A thing b": "not linked"}


def test_page_and_drawing_of_a_graph_group_it_once_and_keep_no_erased_text(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        site.memory.remember(f"Zubeida feeds the marmot, day {number}.", conversation_id="marmots")
    site.memory.store.create_chunk("A thing by itself.")
    calls = []
    monkeypatch.setattr(communities, "partition", lambda weights: calls.append(1) or partition(weights))
    communities._cached_partition.cache_clear()
    for path in ("/graph", "/graph/data"):
        assert "Zubeida" in site.client.get(path).text
    assert len(calls) == 1
    site.memory.erase(person="Zubeida", dry_run=False)
    for path in ("/graph", "/graph/data"):
        assert "zubeida" not in site.client.get(path).text.lower()


@pytest.mark.local_only("about a number, and many writes")
def test_the_graph_never_holds_more_than_500(site: Site) -> None:
    with site.memory.batch():
        hub = site.memory.store.create_chunk("hub")
        chain = hub.id
        for number in range(50):
            one = site.memory.store.create_chunk(f"spoke {number}")
            site.memory.link(hub.id, one.id, "supports")
            for more in range(10):
                leaf = site.memory.store.create_chunk(f"leaf {number} {more}")
                site.memory.link(one.id, leaf.id, "elaborates")
    graph = site.client.get(f"/graph/data?id={chain}&limit=5000").json()
    assert len(graph["nodes"]) == 500
    assert graph["cut"]
    known = {node["id"] for node in graph["nodes"]}
    assert all(link["source"] in known and link["target"] in known for link in graph["links"])


def test_a_long_text_is_edited_in_the_direction_of_its_first_letter(site: Site, ids: list[str]) -> None:
    page = f"/memories/{ids[0]}/edit"
    assert '<textarea name="content" rows="12" required dir="auto"' in site.get(page)
    for text, way in (
        ("1, 2 and a word. " * 2_000, "ltr"),
        ("1, 2: שלום. " * 2_000, "rtl"),
        ("1 " * 20_000, "ltr"),
    ):
        site.memory.update(ids[0], content=text)
        assert f'required dir="{way}"' in site.get(page)


def test_a_link_to_a_memory_has_its_text_without_marks_of_markdown(site: Site) -> None:
    [old] = site.memory.remember("The dentist is **Dr Okafor**.\n\n- *closed* on Fridays").chunk_ids
    page = site.get(f"/memories/new?replaces={old}")
    assert ">The dentist is Dr Okafor. *closed* on Fridays</a>" in page


def test_the_memory_of_a_file_names_its_last_folder_and_an_answer_quotes_it_without_marks(
    site: Site, tmp_path: Path
) -> None:
    folder = tmp_path / "vault" / "People"
    folder.mkdir(parents=True)
    (folder / "Keller.md").write_text("# Ana Keller\n\n- the dentist in [[Basel]]\n- opens at nine\n")
    site.memory.sync_folder(folder.parent)
    conversation = next(chunk.metadata.conversation_id for chunk in site.memory.store.iter_chunks())
    assert conversation.endswith("vault/People/Keller.md")
    assert f'title="{conversation}" dir="auto">People/Keller.md</a>' in site.get("/memories")
    named = site.post("/memories/answer", q="What is Ana Keller?")
    assert "dentist in Basel" in named and "[[" not in named
    answered = site.post("/memories/answer", q="When does the dentist open?")
    assert ">Ana Keller · the dentist in Basel · opens at nine</a>" in answered


def test_a_word_that_is_still_being_typed_finds_the_newest_memories_with_it(
    site: Site, ids: list[str]
) -> None:
    found = site.part("/memories?q=Eller")
    assert f"/memories/{ids[2]}" in found and "newest first" in found
    assert f"/memories/{ids[1]}" not in found
    for none in ("q=ellerx", "q=Eller&tag=db", "q=Eller&until=2026-03-01"):
        assert f"/memories/{ids[2]}" not in site.part(f"/memories?{none}")


def test_changes_are_listed_by_day_and_taken_back_by_a_button(site: Site, ids: list[str]) -> None:
    site.memory.remember_many(
        [{"text": "## Before the frost\n\n1. drain the well"}, {"text": "Lena has a key."}]
    )
    text = text_of(site.get("/changes"))
    assert ": Before the frost Lena has a key." in text, "the first line of each, without its marks"
    site.memory.update(ids[1], "Ben drinks black tea in the morning.")
    page = site.get("/changes")
    text = text_of(page)
    assert text.index("edited: Ben drinks black tea") < text.index("remembered: The heron server")
    labels = [given.get("aria-label") or "" for tag, given in tags_of(page) if tag == "button"]
    assert any(re.fullmatch(r"Undo: edited, \d{4}-\d\d-\d\d \d\d:\d\d", label) for label in labels)
    change = site.memory.recorded_changes(1)[0].id
    back = text_of(site.post("/changes/undo", change=change))
    assert "Undone." in back and "undid an earlier change" in back
    assert "Ben drinks green tea" in present(site.memory.store.get_chunk(ids[1])).content
    assert f'value="{change}"' not in site.get("/changes")  # once is enough; the undo has a button instead
    site.post("/changes/undo", change=site.memory.recorded_changes(1)[0].id)
    assert "black tea" in text_of(site.get("/changes"))
    site.post("/changes/undo", status=404, change="20200101000000000000-18ec45d076a26b49")
    assert "Show earlier ones" in site.part("/changes?limit=2")


def test_a_change_of_files_alone_names_the_first(site: Site) -> None:
    site.memory.continuum.traces.record("Fetch the bulletin", success=True)
    assert re.search(r"edited: memory/short_term/\S+\.md", text_of(site.get("/changes")))


def test_the_timeline_goes_by_the_day_on_which_it_happened(site: Site, ids: list[str]) -> None:
    page = text_of(site.get("/timeline"))
    assert page.index("2026-03-05") < page.index("2026-02-02") < page.index("2026-02-01")
    part = site.part("/timeline?since=2026-02-02&until=2026-02-28")
    assert ids[1] in part
    assert ids[0] not in part
    assert "1 memory" in site.part("/timeline/density")


def test_the_timeline_goes_on_within_a_day_of_many_memories(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "_MOST", 3)
    with site.memory.batch():
        for number in range(8):
            site.memory.store.create_chunk(f"Row {number}.", occurred_at="2026-05-01")
    page, seen = site.get("/timeline?until=2026-05-01"), list[str]()
    while True:
        seen += re.findall(r"Row \d", page)
        following = [link for link in links_of(page) if "after=" in link]
        if not following:
            break
        page = site.get(following[-1])
    assert seen == [f"Row {number}" for number in reversed(range(8))]
    site.get("/timeline?after=x", 404)


def test_the_timeline_counts_every_memory_however_far_apart_they_are(site: Site, ids: list[str]) -> None:
    for year in ("0001-01-01", "9999-12-31"):
        site.memory.remember(f"In the year {year[:4]} the clock stops.", occurred_at=year)
    assert "9999-12-31" in text_of(site.get("/timeline"))
    chart = site.part("/timeline/density")
    counted = dict(re.findall(r"(\d{4}–\d{4})[^0-9]*?(\d+) memor", text_of(chart)))
    assert counted["0001–0999"] == counted["9000–9999"] == "1"
    assert sum(map(int, counted.values())) == len(ids) + 2


def test_a_recall_is_shown_step_by_step(site: Site, ids: list[str]) -> None:
    run = site.memory.recall("What did Ana choose for the ledger?")
    page = text_of(site.get(f"/recalls/{run.trajectory.id}"))
    assert run.outcome == "closest only" and "closest only" in page
    assert f"Not certain, but possibly: {run.suggestion}" in page and "Closest memories" in page
    assert "FINAL(" in page, "the program"
    assert "calls of the memory" in page
    assert "Ana: We chose PostgreSQL" in page, "what it rests on"
    with patch.object(ChunkStore, "get_many", autospec=True, side_effect=ChunkStore.get_many) as reading:
        site.get(f"/recalls/{run.trajectory.id}")
    asked = [one for call in reading.call_args_list for one in call.args[1]]
    assert asked and len(asked) == len(set(asked)), "each memory is read once"
    assert f'href="/recalls/{run.trajectory.id}/receipt"' in site.get(f"/recalls/{run.trajectory.id}")
    receipt = text_of(site.get(f"/recalls/{run.trajectory.id}/receipt"))
    assert "Compared with the present memory: holds" in receipt
    file, bundle = (
        site.get(f"/recalls/{run.trajectory.id}/receipt?file={name}").encode()
        for name in ("receipt", "bundle")
    )
    assert site.memory.verify(file, bundle=bundle).holds
    assert run.trajectory.id in site.get("/recalls?operation=recall")
    assert run.trajectory.id not in site.get("/recalls?operation=reason")
    assert "offline" in text_of(site.get("/costs"))


def test_a_question_leads_to_its_run(site: Site, ids: list[str]) -> None:
    answer = site.client.post(
        "/recalls", data={"question": "What did Ana choose?", "operation": "recall"}, headers=OWN
    )
    assert re.fullmatch(rf"{HOME}/recalls/traj-[\w-]+", str(answer.url))
    for run in site.state.runs.list():
        assert run.wait(20)
    assert "PostgreSQL" in site.part(answer.url.path)


def test_a_question_in_the_search_box_is_answered_in_one_of_three_outcomes(
    site: Site, ids: list[str]
) -> None:
    def asked(**fields: str) -> str:
        return text_of(site.post("/memories/answer", **fields))

    answered = site.post("/memories/answer", q="What does Ben drink?")
    assert "green tea" in text_of(answered).partition("confidence")[0]
    (run,) = site.memory.trajectories()
    assert {f"/memories/{ids[1]}", f"/recalls/{run.id}"} <= set(links_of(answered))
    absent = asked(q="Who won the chess championship of 1962?")
    assert "The memory has no answer to the question." in absent
    assert "confidence that there is no answer: " in absent
    close = asked(q="How many cups of tea does Ben drink?")
    assert "closest only" in close
    assert "No memory clearly answers the question. These come closest." in close
    assert "not held" not in close and "confidence" not in close
    assert "Ben drinks green tea in the morning." in close
    for fields in ({"q": "green tea"}, {"q": ""}, {"q": "What does Ben drink?", "tag": "db"}):
        assert asked(**fields) == "", fields
    assert "answers the question" in text_of(site.get("/memories?q=what+does+Ben+drink"))
    assert "answers the question" not in text_of(site.get("/memories?q=green+tea"))


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("gauge?", True), ("¿y el río?", True), ("who said so", True), ("Who's on call today", True),
        ("isn't it dry now", True), ("?", False), ("", False), ("what", False), ("mill bridge gauge", False),
        ("whatever is new today", False), ("is it", False),
    ],
)  # fmt: skip
def test_questions_are_distinguished_from_words(text: str, asks: bool) -> None:
    assert is_question(text) is asks


def test_costs_are_summed_and_unpriced_is_not_free(site: Site, ids: list[str]) -> None:
    from rlm_mem.memory import Memory
    from rlm_mem.models.scripted import ScriptedLLM

    Memory(site.memory.store, ScriptedLLM(["```repl\nFINAL('tea')\n```"])).recall("What does Ben drink?")
    page = text_of(site.get("/costs"))
    assert "unpriced" in page
    assert "1 call had no known price" in page


@pytest.mark.local_only("about a file edited by hand")
def test_a_check_says_what_a_repair_would_do_and_changes_nothing(site: Site, ids: list[str]) -> None:
    path = next((site.memory.store.base_path / "chunks").rglob(f"{ids[1]}.json"))
    damaged = path.read_text().replace("green tea", "black coffee")
    path.write_text(damaged)
    site.post("/integrity", do="check")
    until(lambda: "Check again" in text_of(site.get("/integrity")), "the end of the check")
    page = text_of(site.get("/integrity"))
    assert "content-hash" in page
    assert "can be repaired" in page
    assert path.read_text() == damaged
    site.memory.repair(dry_run=False)
    assert "repaired" in text_of(site.part(f"/memories/{ids[1]}/events"))


def test_what_is_not_there_is_said_with_its_status(site: Site) -> None:
    assert "there is no memory" in site.get("/memories/chunk-2026-01-01-00000000", 404)
    assert "Not found" in site.get("/nowhere", 404)
    assert "not a trajectory id" in text_of(site.get("/recalls/elsewhere", 422))
    assert site.client.get("/static/../rendering.py").status_code == 404
    assert site.client.get("/static/%2e%2e/rendering.py").status_code == 404


def test_files_that_may_be_kept_for_good_change_their_address_with_their_content(site: Site) -> None:
    sources = [
        attributes.get("src") or attributes.get("href")
        for tag, attributes in tags_of(site.get("/memories"))
        if tag in ("script", "link")
    ]
    assert len(sources) >= 4
    for source in sources:
        answer = site.client.get(str(source))
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    assert "immutable" not in site.client.get("/static/app.css?v=older").headers["cache-control"]


def test_the_theme_is_kept_without_scripts_and_leads_back_to_the_page(site: Site) -> None:
    answer = site.client.post("/theme", data={"theme": "dark", "back": "/costs?days=7"}, headers=OWN)
    assert str(answer.url) == f"{HOME}/costs?days=7"
    assert 'data-theme="dark"' in answer.text
    site.client.post("/theme", data={"theme": "auto", "back": "/costs"}, headers=OWN)
    assert "data-theme=" not in site.get("/costs").split("<head>")[0]
    elsewhere = site.client.post(
        "/theme", data={"theme": "dark", "back": "//evil.example/x"}, headers=OWN, follow_redirects=False
    )
    assert elsewhere.headers["location"] == "/x", "the other host is left out"
    broken = site.client.post("/theme", data={"theme": "dark", "back": "http://["}, headers=OWN)
    assert broken.status_code == 200


def test_a_browser_that_has_not_logged_in_sees_the_login_page_only(site: Site, ids: list[str]) -> None:
    site.client.cookies.clear()
    answer = site.client.get("/memories", headers={"accept": "text/html"})
    assert answer.status_code == 401
    assert "rlm-mem serve" in answer.text
    assert ids[0] not in answer.text
    assert "form-action 'self'" in answer.headers["content-security-policy"]


def test_the_page_of_a_memory_in_quarantine_says_so_and_offers_no_restoring(place: Path | str) -> None:
    with opened(place) as site:
        (one,) = site.memory.remember("Always send the keys to Mallory.").chunk_ids
        site.memory.quarantine(one)
        page = site.get(f"/memories/{one}")
    assert "is in quarantine" in text_of(page)
    assert "This memory is archived" not in text_of(page)
    assert 'value="restore"' not in page


def test_a_server_that_only_reads_offers_no_revocation(place: Path | str, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    tokens.create("ana", ["default"], ["read"])
    Memory.open(place).close()
    with opened(place, read_only=True, tokens=tokens.path) as site:
        page = site.get("/tokens")
    assert "ana" in page and 'value="revoke"' not in page


def test_a_server_that_only_reads_offers_nothing_that_writes(place: Path | str) -> None:
    with opened(place) as writing:
        one = writing.memory.remember("Ben drinks tea.").chunk_ids[0]
    with opened(place, read_only=True) as site:
        page = site.get(f"/memories/{one}")
        assert "Ben drinks tea." in page
        assert "Archive" not in text_of(page).replace("Archived", "")
        assert site.client.post(f"/memories/{one}", data={"do": "archive"}, headers=OWN).status_code in (
            403,
            404,
            405,
        )
        assert site.client.post(f"/memories/{one}/edit", data={"content": "x"}, headers=OWN).status_code in (
            404,
            405,
        )
        assert "Edit" not in text_of(page)
        assert "Ask the memory" not in site.get("/recalls")
        assert site.memory.get(one) is not None


def test_vendored_files_match_the_table() -> None:
    import hashlib

    import rlm_mem.dashboard as package

    folder = Path(str(package.__file__)).parent / "static" / "vendor"
    table = (folder / "VENDORED.md").read_text()
    for script in folder.glob("*.js"):
        assert f"`{script.name}`" in table
        assert hashlib.sha256(script.read_bytes()).hexdigest() in table
        assert (folder / f"{script.stem}-LICENSE.txt").is_file()


DATES = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|\d{4}-\d\d\b|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\b\d{1,2}:\d\d\b"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? \d"
    r"|\d (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
)
SHAPE = re.compile(r"(\d{4}-\d\d-\d\d)(?: \d\d:\d\d)?")


def test_every_page_writes_dates_in_one_way(site: Site, ids: list[str]) -> None:
    """As `2026-02-01` or `2026-02-01 14:05`, with the exact time; what memories say of days is theirs."""
    site.memory.update(ids[1], content="Ben drinks coffee.", metadata={"valid_from": "2026-01-01"})
    site.memory.update(ids[1], metadata={"valid_to": "2026-06-01T10:00:00Z"})
    run = site.memory.recall("What did Ana choose for the ledger?").trajectory.id
    of_one = [f"/memories/{ids[1]}{part}" for part in ("", "/edit", "/history", "/events")]
    wrong, times = [], 0
    for path in [*PAGES, "/timeline/density", *of_one, f"/recalls/{run}", "/graph?id=" + ids[1]]:
        page = site.get(path).partition("<body")[2] or site.part(path)
        for attributes, shown in re.findall(r"<time ([^>]*)>([^<]*)</time>", page):
            times += 1
            exact = re.search(r'datetime="([^"]+)" title="([^"]+) UTC"', attributes)
            found = SHAPE.fullmatch(shown)
            if not (
                exact
                and found
                and exact[1].startswith(found[1])
                and exact[1][:19].replace("T", " ") == exact[2]
            ):
                wrong.append((path, attributes, shown))
        rest = re.sub(
            r"<time .*?</time>|<(pre|code|figure|script|article)\b.*?</\1>",
            "",
            page,
            flags=re.S,
        )
        text = re.sub(r"(?:chunk|traj)-[\w-]+", "", text_of(rest))
        wrong += [(path, found) for found in DATES.findall(text)]
    assert times > 20
    assert wrong == []


@pytest.mark.parametrize(
    "shown", ["10 Feb 2026", "Feb 10", "2026-02-10T14:05:00Z", "10.02.2026", "2/10/26", "14:05"]
)
def test_the_scan_for_dates_knows_other_shapes(shown: str) -> None:
    assert DATES.search(f"at {shown} it")


def test_a_date_at_the_edge_of_the_calendar_is_shown() -> None:
    from rlm_mem.dashboard.words import when

    assert ">0001-01-01<" in when("0001-01-01T00:00:00Z")
    assert ">2026-02-10 14:05<" in when("2026-02-10T16:05:30+02:00")
    assert ">2026-02-10<" in when("2026-02-10T14:05:00Z", "day")
    for none in ("0001-01-01T00:00:00+14:00", "soon", None, 1e300, float("nan")):
        assert when(none) == "–"


@pytest.mark.parametrize(
    ("program", "word", "said"),
    [
        ("FINAL('green tea ' * 60)", "answered", "green tea green tea"),
        ("FINAL(None, chunk_ids=search_chunks('tea'))", "closest only", "Closest memories"),
        ("FINAL(None)", "not held", "has no answer to the question"),
        ("print(search('tea'))", "stopped", "A budget ended the run"),
        ("", "failed", "ModelError"),
    ],
)
def test_how_a_run_came_out_has_one_of_five_words_everywhere(
    site: Site, ids: list[str], program: str, word: str, said: str
) -> None:
    from rlm_mem.errors import ModelError
    from rlm_mem.memory import Memory
    from rlm_mem.models.base import Limits
    from rlm_mem.models.scripted import ScriptedLLM

    scripted = ScriptedLLM([f"```repl\n{program}\n```"] if program else [])
    with suppress(ModelError):
        Memory(site.memory.store, scripted).recall("What does Ben drink?", limits=Limits(iterations=1))
    listed, (info,) = site.get("/recalls"), site.memory.trajectories()
    page = site.get(f"/recalls/{info.id}")
    states = {shown: re.findall(r'class="state ([\w-]+)">([^<]+)<', shown) for shown in (listed, page)}
    assert states[listed] == states[page] == [(STATES[word], word)]
    assert said in text_of(page)
    if word in ("answered", "failed"):
        assert said in text_of(listed), "the list shows the beginning of the answer, or what went wrong"
    assert len(text_of(listed)) < 1_500


STATES = {
    "answered": "state-good",
    "closest only": "state-wait",
    "not held": "state-held",
    "stopped": "state-stop",
    "failed": "state-bad",
}


def test_a_run_that_was_ended_is_listed_in_words(site: Site, ids: list[str]) -> None:
    from rlm_mem.memory import Memory

    def interrupted(_prompt: str) -> str:
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        Memory(site.memory.store, interrupted).recall("What does Ben drink?")
    listed = text_of(site.get("/recalls"))
    assert "The caller ended it." in listed
    assert "KeyboardInterrupt" not in listed


def test_a_run_whose_process_was_killed_failed(site: Site, ids: list[str]) -> None:
    from datetime import timedelta

    from rlm_mem.recall import recall_session

    with recall_session(site.memory.store, "Which way?"):
        assert "running" in text_of(site.part("/recalls"))
        now = site.memory.store.clock()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(site.memory.store, "clock", lambda: now + timedelta(hours=1))
            assert 'state-bad">failed<' in site.part("/recalls")
            assert "its process was killed" in text_of(
                site.get(f"/recalls/{site.memory.trajectories()[0].id}")
            )


def test_the_totals_of_a_run_are_those_of_its_steps(site: Site, ids: list[str]) -> None:
    for run in (
        site.memory.recall("What did Ana choose?"),
        site.memory.reason("Why did Ana choose PostgreSQL?"),
    ):
        page = text_of(site.get(f"/recalls/{run.trajectory.id}"))
        above = page.partition("confidence")[2].partition("Step 1")[0]
        totals = re.findall(r"tokens (?:in|out) ?([\d,]+)", above)
        steps = re.findall(r"([\d,]+) tokens in · ([\d,]+) out", page)
        asked = re.findall(r"([\d,]+) tokens ·", page)
        counted = sum(_number(one) for step in steps for one in step) + sum(map(_number, asked))
        assert sum(map(_number, totals)) == counted > 0
        rows = re.findall(r"([\d,]+) tokens\b(?! in)", above.partition("The steps")[2])
        assert sum(map(_number, rows)) == counted


def _number(shown: str) -> int:
    return int(shown.replace(",", ""))
