"""What is done on the pages of the dashboard: edits that lose nothing, restoring, linking, deciding, persona."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.continuum.cases import Case
from tests.continuum.conftest import StillClock, learning, open_continuum, record, rewrite
from tests.server.site import OWN, Site, links_of, opened, tags_of, text_of


@pytest.fixture
def site(place: Path | str) -> Iterator[Site]:
    with opened(place) as found:
        yield found


@pytest.fixture
def one(site: Site) -> str:
    """The id of a memory."""
    made = site.memory.remember("Ben drinks green tea.", conversation_id="notes", tags=["people"])
    return made.chunk_ids[0]


def fields_of(page: str) -> dict[str, str]:
    """Fields of the edit form with what stands in them."""
    found = {
        str(attributes["name"]): str(attributes.get("value") or "")
        for tag, attributes in tags_of(page)
        if tag == "input" and attributes.get("name") not in (None, "back", "theme")
    }
    text = re.search(r"<textarea name=\"content\"[^>]*>\n(.*?)</textarea>", page, re.DOTALL)
    assert text
    found["content"] = text[1]
    return found


def test_what_is_written_into_the_form_is_remembered(site: Site) -> None:
    page = site.post(
        "/memories/new",
        text="Dana prefers trains.",
        tags="travel, people",
        conversation="trip",
        occurred_at="2026-03-01",
    )
    assert "Remembered." in page
    (found,) = site.memory.list_chunks(conversation_id="trip")
    chunk = site.memory.get(found)
    assert chunk is not None
    assert (chunk.content, sorted(chunk.tags)) == ("Dana prefers trains.", ["people", "travel"])
    assert str(chunk.metadata.occurred_at).startswith("2026-03-01")
    assert "already stored" in site.post("/memories/new", text="Dana prefers trains.", conversation="trip")


def test_the_form_tells_that_a_text_comes_from_a_file(one: str, site: Site, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "boat.md").write_text("The key hangs behind the clock.\n")
    site.memory.sync_folder(tmp_path / "notes")
    (of_file,) = [hit.chunk_id for hit in site.memory.search("Where does the key hang?", limit=1)]
    assert "comes from the file boat.md" in text_of(site.get(f"/memories/{of_file}/edit"))
    assert "comes from the file" not in text_of(site.get(f"/memories/{one}/edit"))


def test_reads_by_id_are_told_apart_from_recalls(one: str, site: Site) -> None:
    assert "Read whole" not in text_of(site.get(f"/memories/{one}")), "recalls are listed below"
    site.memory.get(one)
    assert "Read whole1 time, last" in text_of(site.get(f"/memories/{one}"))


def test_a_memory_that_is_out_of_date_is_replaced_from_its_page(one: str, site: Site) -> None:
    form = f"/memories/new?replaces={one}"
    assert form in links_of(site.get(f"/memories/{one}"))
    page = site.get(form)
    assert "Ben drinks green tea.</textarea>" in page and 'value="people"' in page
    refused = site.post("/memories/new", 400, text=" ", replaces=one)
    assert f'name="replaces" value="{one}"' in refused, "it is still what will be replaced"
    after = site.post("/memories/new", text="Ben drinks black tea.", tags="people", replaces=one)
    assert "It replaces an earlier memory." in after
    old = site.memory.get(one)
    assert old is not None and old.metadata.superseded_by is not None
    assert form not in links_of(site.get(f"/memories/{one}")), "it is replaced already"
    found = text_of(site.get("/memories?q=Ben+green+tea"))
    assert "out of date" in found.partition("Ben drinks green tea.")[2], "search says so, too"
    for _ in range(2):  # it was replaced, then archived while the form was open
        late = site.post("/memories/new", 400, text="Ben drinks cold water.", replaces=one)
        assert 'role="alert"' in late and "Ben drinks cold water.</textarea>" in late
        site.memory.delete(one)


def test_text_that_cannot_be_remembered_stays_in_the_form(site: Site) -> None:
    page = site.post("/memories/new", 400, text="   ", tags="a-tag")
    assert 'role="alert"' in page
    assert 'value="a-tag"' in page


def test_a_page_says_what_became_of_what_was_remembered(site: Site) -> None:
    site.post("/memories/new", text="The ferry leaves at 6:10.")
    asks = site.post("/memories/new", text="The ferry leaves at 6:40.")
    assert "It may replace or contradict an earlier memory: decide under Review." in asks
    site.post("/memories/new", text="Dana lives in Berlin.")
    replaces = site.post("/memories/new", text="Dana moved from Berlin to Hamburg.")
    assert "Remembered. It replaces an earlier memory." in replaces
    hidden = site.post("/memories/new", text="The key is sk-ant-api03-" + "a1B2" * 23 + "-abcdAA.")
    assert "Remembered. Text that looks like a key or password was redacted." in hidden


def test_a_memory_of_a_project_is_moved_to_the_shared_namespace(place: Path | str) -> None:
    project = "project/github.com/acme/ledger"
    for confined in (project, None):  # a server of one namespace, and one on which the project is chosen
        with opened(place, namespace=confined) as site:
            if confined is None:
                site.memory.store.confined_to(project, actor=None).create_chunk("Tabs, not spaces.")
                site.post("/namespaces", namespace=project)
                (one,) = site.memory.store.confined_to(project, actor=None).list_chunks()
            else:
                (one,) = site.memory.remember("Always answer in English.").chunk_ids
            page = site.get(f"/memories/{one}")
            assert next(a["value"] for tag, a in tags_of(page) if tag == "option") == "default"
            site.post(f"/memories/{one}", 403, do="move", namespace="agent/other")
            page = site.post(f"/memories/{one}", do="move", namespace="default")
            assert "Moved: it is in the other namespace now, and archived here." in page
    with opened(place) as site:
        texts = [chunk.content for chunk in site.memory.store.iter_chunks()]
        assert texts == ["Always answer in English.", "Tabs, not spaces."]


def test_a_confidence_that_is_no_number_is_refused_in_words(site: Site, one: str) -> None:
    form = fields_of(site.get(f"/memories/{one}/edit"))
    for wrong in ("sure", "nan", "7", "-1"):
        page = text_of(site.post(f"/memories/{one}/edit", 400, **{**form, "confidence": wrong}))
        assert "confidence must be a number from 0 to 1, not" in page
    assert site.memory.history(one)[-1].revision == 1


def test_an_edit_is_a_new_revision_and_the_former_one_can_come_back(site: Site, one: str) -> None:
    fields = fields_of(site.get(f"/memories/{one}/edit"))
    assert fields["content"] == "Ben drinks green tea."
    page = site.post(
        f"/memories/{one}/edit",
        **{**fields, "content": "Ben drinks black coffee.\r\nSince March.", "tags": "people, drinks"},
    )
    assert "Saved." in page
    chunk = site.memory.get(one)
    assert chunk is not None
    assert (chunk.content, chunk.revision) == ("Ben drinks black coffee.\nSince March.", 2)
    assert sorted(chunk.tags) == ["drinks", "people"]
    history = site.get(f"/memories/{one}/history")
    assert "<del>green tea</del>" in history
    assert "<ins>black coffee." in history
    site.post(f"/memories/{one}", do="revert", revision="1")
    back = site.memory.get(one)
    assert back is not None
    assert (back.content, back.revision) == ("Ben drinks green tea.", 3)


def test_an_edit_that_changes_nothing_writes_nothing(site: Site, one: str) -> None:
    assert "nothing was written" in site.post(
        f"/memories/{one}/edit", **fields_of(site.get(f"/memories/{one}/edit"))
    )
    assert len(site.memory.history(one)) == 1


def test_on_a_conflicting_edit_both_texts_are_shown(site: Site, one: str) -> None:
    fields = fields_of(site.get(f"/memories/{one}/edit"))
    site.memory.update(one, content="Ben drinks water.")
    fields["content"] = "Ben drinks <b>juice</b>."
    page = site.post(f"/memories/{one}/edit", 409, **fields)
    assert "Ben drinks water." in page
    assert "Ben drinks &lt;b&gt;juice&lt;/b&gt;." in page
    present = site.memory.get(one)
    assert present is not None
    assert present.content == "Ben drinks water."
    again = fields_of(page)
    assert again["revision"] == "2"
    site.post(f"/memories/{one}/edit", **{**fields, "revision": again["revision"]})
    assert [version.chunk.content for version in site.memory.history(one)] == [
        "Ben drinks green tea.",
        "Ben drinks water.",
        "Ben drinks <b>juice</b>.",
    ]


def test_a_bad_field_is_said_beside_the_text_that_was_written(site: Site, one: str) -> None:
    fields = fields_of(site.get(f"/memories/{one}/edit"))
    for bad in ({"confidence": "7"}, {"confidence": "high"}, {"valid_from": "soon"}):
        page = site.post(f"/memories/{one}/edit", 400, **{**fields, "content": "A long text of mine", **bad})
        assert 'role="alert"' in page
        assert "A long text of mine" in page
    assert len(site.memory.history(one)) == 1


def test_a_memory_goes_to_the_archive_and_comes_back(site: Site, one: str) -> None:
    assert "archived" in text_of(site.post(f"/memories/{one}", do="archive"))
    assert site.memory.get(one) is None
    assert one not in site.part("/memories?q=tea")
    assert one in site.part("/memories?archived=yes&q=TEA")
    assert one not in site.part("/memories?archived=yes&q=coffee")
    (other,) = site.memory.remember("Ana likes the Cafe\u0301 Blau.").chunk_ids
    site.memory.delete(other)
    assert other in site.part("/memories?archived=yes&q=CAF%C3%89")
    site.post(f"/memories/{one}", do="restore")
    assert site.memory.get(one) is not None


def test_a_part_of_a_word_is_shown_where_it_is_found(site: Site) -> None:
    site.memory.remember(f"{'Filler words here. ' * 60}The Donaudampfschiff sails at noon.")
    shown = text_of(site.part("/memories?q=ampfsch"))
    assert "Donaudampfschiff sails" in shown and shown.count("Filler") <= 4
    site.memory.remember("z" * 900 + "Donaudampfboot")
    assert "…ampfboot" in text_of(site.part("/memories?q=ampfbo"))


def test_ticked_memories_are_archived_or_restored_as_one_change(site: Site, one: str) -> None:
    site.memory.continuum.traces.record("Paint the tram", success=True)
    (tiered,) = (chunk_id for chunk_id in site.memory.list_chunks() if chunk_id != one)
    ids = [site.memory.remember(f"Tram {number} is late.").chunk_ids[0] for number in range(23)]
    boxes = [row for tag, row in tags_of(site.get("/memories?limit=40")) if row.get("form") == "ticked"]
    assert {row["value"] for row in boxes} == {one, *ids}, (
        "not the tiered memory, whose chunk would come back"
    )
    assert "as one change" in site.post("/memories", do="archive", id=ids)
    assert set(site.memory.list_chunks()) == {one, tiered}
    assert "Tram" in site.post("/changes/undo", change=site.memory.recorded_changes(1)[0].id)
    assert len(site.memory.list_chunks()) == 25
    site.post("/memories", do="archive", id=ids)
    assert "Restore the ticked" in site.get("/memories?archived=yes")
    site.post("/memories", do="restore", id=ids)
    assert len(site.memory.list_chunks()) == 25
    assert "no memory is ticked" in site.post("/memories", do="archive")
    refused = site.post("/memories", 422, do="archive", id=[one, tiered])
    assert "changed one by one" in text_of(refused) and site.memory.store.exists(one)
    site.post("/memories", status=422, do="burn", id=ids)


def test_tags_are_added_to_ticked_memories_or_removed_as_one_change(site: Site) -> None:
    ids = [site.memory.remember(f"Tram {number} is late.", tags=["tram"]).chunk_ids[0] for number in range(3)]
    gone = site.memory.remember("Tram 9 is gone.").chunk_ids[0]
    site.memory.delete(gone)

    def tags() -> list[list[str]]:
        return [list(chunk.tags) for chunk in site.memory.store.get_many(ids).values()]

    after = site.post("/memories", do="tag", tags="delay, tram,line 4", id=[*ids[:2], gone])
    assert "as one change" in text_of(after)
    assert tags() == [["tram", "delay", "line 4"]] * 2 + [["tram"]]
    change = site.memory.recorded_changes(1)[0].id
    site.post("/memories", do="untag", tags="tram, delay", id=ids)
    assert tags() == [["line 4"], ["line 4"], []]
    site.post("/changes/undo", change=site.memory.recorded_changes(1)[0].id)
    site.post("/changes/undo", change=change)
    assert tags() == [["tram"]] * 3
    assert "Nothing was changed" in text_of(site.post("/memories", do="untag", tags="bus", id=ids))
    assert "no tag was entered" in text_of(site.post("/memories", do="tag", tags=" , ", id=ids))
    assert "no memory is ticked" in text_of(site.post("/memories", do="tag", tags="bus"))
    refused = site.post("/memories", 422, do="tag", tags="x" * 2_000, id=ids)
    assert "tag" in text_of(refused) and tags() == [["tram"]] * 3
    assert "Add the tags" not in site.get("/memories?archived=yes")


def test_a_new_text_of_a_tiered_memory_is_refused_with_the_reason(site: Site) -> None:
    tiered = site.memory.continuum.traces.record("Paint the tram", success=True)
    page = site.post(
        f"/memories/{tiered.chunk_id}/edit", status=400, content="x", confidence="0.7", revision="1"
    )
    assert "shows the tiered memory" in page


def test_removing_for_good_is_offered_for_what_is_archived_and_asks_first(site: Site, one: str) -> None:
    assert "erase" not in site.get(f"/memories/{one}")
    page = site.post(f"/memories/{one}", do="archive")
    assert "data-sure" in page
    assert "Permanently deleted" in site.post(f"/memories/{one}", do="erase")
    site.get(f"/memories/{one}", 404)


def test_links_are_made_and_removed(site: Site, one: str) -> None:
    other = site.memory.remember("Tea grows in Assam.").chunk_ids[0]
    site.post(
        f"/memories/{one}", do="link", target=other, type="supports", strength="0.7", reasoning="both tea"
    )
    assert [(link.chunk_id, link.strength) for link in site.memory.links(one, "supports", "out")] == [
        (other, 0.7)
    ]
    site.post(f"/memories/{other}", do="unlink", target=one, type="supports", direction="in")
    assert site.memory.links(one, "supports") == []
    for bad, status, said in (
        ({"target": "chunk-nobody"}, 404, "there is no chunk chunk-nobody"),
        ({"target": other, "strength": "9"}, 422, "strength: expected"),
        ({"target": other, "type": "loves"}, 422, "loves"),
    ):
        fields = {"do": "link", "type": "supports", "strength": "0.5", **bad}
        assert said in text_of(site.post(f"/memories/{one}", status, **fields))


def test_the_memory_to_link_with_is_found_by_words_or_its_id(site: Site, one: str) -> None:
    other = site.memory.remember("Assam grows the strongest black tea.").chunk_ids[0]
    page = site.get(f"/memories/{one}?link=tea")
    assert '<details id="link-form" hx-morph-skip open>' in page, "also without scripts"
    assert f'name="target" value="{other}"' in page and f'name="target" value="{one}"' not in page
    assert f'name="target" value="{other}" required checked' in site.part(
        f"/memories/{one}/linkable?link={other}"
    )
    assert "No other memory is found" in site.part(f"/memories/{one}/linkable?link=zeppelin")
    assert 'name="target"' not in site.part(f"/memories/{one}/linkable?link=+")
    assert "no other memory is chosen" in text_of(
        site.post(f"/memories/{one}", 422, do="link", type="supports", strength="0.5")
    )


def test_a_memory_replaces_an_earlier_one_on_the_subject(site: Site) -> None:
    old = site.memory.remember("The kettle is descaled on Mondays.", occurred_at="2026-01-05").chunk_ids[0]
    new = site.memory.remember("Descaling the kettle: Mondays are out, Kim does it on Fridays.").chunk_ids[0]
    assert f"/memories/{new}/earlier" in site.get(f"/memories/{new}")
    assert f'name="target" value="{old}"' in site.part(f"/memories/{new}/earlier")
    assert "None that search finds" in site.get(f"/memories/{old}/earlier")
    site.post(f"/memories/{new}", do="replace", target=old, reason="out of date")
    chunk = site.memory.get(old)
    assert chunk is not None and chunk.metadata.superseded_by == new
    assert site.memory.links(new, "supersedes")[0].reasoning == "out of date"
    assert f"/memories/{old}/earlier" not in site.get(f"/memories/{old}"), "it is replaced itself"
    assert "None that search finds" in site.part(f"/memories/{new}/earlier")


def test_a_memory_that_a_later_one_contradicts_says_so_and_is_replaced_by_it(site: Site) -> None:
    old = site.memory.remember("The kettle is descaled on Mondays.", occurred_at="2026-01-05").chunk_ids[0]
    new = site.memory.remember("Kim cleans the kettle at the weekend.", occurred_at="2026-02-05").chunk_ids[0]
    assert "It may be out of date" not in site.get(f"/memories/{old}")
    site.memory.link(new, old, "contradicts", 0.9, "not on Mondays")
    page = site.get(f"/memories/{old}")
    assert "Kim cleans the kettle at the weekend. contradicts it (not on Mondays)" in text_of(page)
    assert "Let it replace this one" in page and "This memory replaces:" not in page
    assert "It may be out of date" not in site.get(f"/memories/{new}"), "it is the later one"
    assert "This memory replaces: The kettle is descaled" in site.get(f"/memories/{new}")
    site.post(f"/memories/{new}", do="replace", target=old, reason="contradicts it")
    chunk = site.memory.get(old)
    assert chunk is not None and chunk.metadata.superseded_by == new
    assert "It may be out of date" not in site.get(f"/memories/{old}"), "it is replaced"
    assert "This memory replaces:" not in site.get(f"/memories/{new}")


def test_an_earlier_memory_that_contradicts_a_later_one_does_not_make_it_out_of_date(site: Site) -> None:
    old = site.memory.remember("The kettle is descaled on Mondays.", occurred_at="2026-01-05").chunk_ids[0]
    new = site.memory.remember("Kim cleans the kettle at the weekend.", occurred_at="2026-02-05").chunk_ids[0]
    site.memory.link(old, new, "contradicts", 0.9)
    assert "It may be out of date" not in site.get(f"/memories/{new}")
    assert "This memory replaces:" not in site.get(f"/memories/{old}")


def test_changes_name_what_was_archived_and_leave_out_bookkeeping(one: str, site: Site) -> None:
    with site.memory.store.batch():
        made = site.memory.store.create_chunk("The gateway needs firmware 3.", conversation_id="s-1")
        site.memory.continuum.review.add_captured("s-1", "claude-code", [made])
    assert "remembered: The gateway needs firmware 3." in text_of(site.get("/changes"))
    site.memory.delete(one)
    page = site.get("/changes")
    assert "archived: Ben drinks green tea." in text_of(page) and f'href="/memories/{one}"' in page
    site.memory.restore(one)
    site.memory.quarantine(one)
    (case,) = [found for found in site.memory.continuum.review.cases() if found.kind == "quarantine"]
    site.memory.continuum.review.reject(case.id, reviewer="Maya", reason="harmful")
    assert "Ben drinks green tea." not in text_of(site.get("/changes"))


def test_a_whole_id_in_the_search_finds_its_memory(site: Site, one: str) -> None:
    other = site.memory.remember("Tea grows in Assam.").chunk_ids[0]
    assert f"row-{other}" in site.part(f"/memories?q={other}")
    assert f"row-{one}" not in site.part(f"/memories?q={other}")
    assert "Nothing fits" in site.part("/memories?q=chunk-2026-01-01-00000000")


def test_of_two_memories_that_say_the_same_one_is_kept_and_that_can_be_undone(site: Site, one: str) -> None:
    twin = site.memory.remember("Ben drinks green tea!", conversation_id="other", again=True).chunk_ids[0]
    other = site.memory.remember("Tea grows in Assam.", tags=["people"]).chunk_ids[0]
    assert "Keep only this one" in site.get(f"/memories/{twin}")
    assert "Keep only this one" not in site.get(f"/memories/{other}")
    page = site.post(f"/memories/{one}", do="replace", target=twin)
    assert "This memory replaces the other one" in text_of(page) and "Keep only this one" not in page
    assert "Keep only this one" not in site.get(f"/memories/{twin}")
    found = site.memory.get(twin)
    assert found is not None and found.metadata.superseded_by == one, "also where the older one is kept"
    found_now = [hit.chunk_id for hit in site.memory.search("Ben tea")]
    assert found_now.index(one) < found_now.index(twin)
    [change] = [made for made in site.memory.recorded_changes() if twin in made.chunk_ids][:1]
    site.post("/changes/undo", change=change.id)
    found = site.memory.get(twin)
    assert found is not None and found.metadata.superseded_by is None
    assert "Keep only this one" in site.get(f"/memories/{one}")


def test_forms_of_other_sites_change_nothing(site: Site, one: str) -> None:
    for foreign in (
        {},  # an old browser that says nothing about where a form comes from, with the cookie it always sends
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site"},
        {**OWN, "sec-fetch-site": "cross-site"},
    ):
        answer = site.client.post(f"/memories/{one}", data={"do": "archive"}, headers=foreign)
        assert answer.status_code == 403, foreign
    assert site.memory.get(one) is not None


def test_an_invalid_form_is_refused_with_a_message(site: Site, one: str) -> None:
    refusal = text_of(site.post(f"/memories/{one}", 422, do="dance"))
    assert "the form has no action 'dance'" in refusal and "load the page again" in refusal
    site.post("/memories/chunk-2026-01-01-00000000/edit", 404, content="x", revision="1")
    site.post("/integrity", 422, do="")
    site.post("/recalls", 422, question="  ")


# --- review and tiers -------------------------------------------------------------------------------------

CORE = {"usage_count": 100, "success_count": 99, "success_rate": 0.99, "confidence_score": 0.995}


@pytest.fixture
def case(place: Path | str) -> Case:
    """A memory that waits for its reviewer."""
    continuum = open_continuum(place, StillClock(datetime(2026, 2, 1, 9, tzinfo=UTC)))
    rewrite(continuum, learning(continuum), **CORE)
    continuum.consolidate()
    (found,) = continuum.review.cases()
    continuum.store.close()
    return found


def _decisions(page: str) -> list[dict[str, str | None]]:
    """The buttons of single cases that end them."""
    return [found for tag, found in tags_of(page) if tag == "button" and found.get("aria-describedby")]


def test_a_page_of_the_review_queue_holds_thirty_cases_and_each_side_leads_to_its_memory(site: Site) -> None:
    for number in range(32):
        site.memory.remember(f"The code of gate {number} is {1000 + number}.")
        site.memory.remember(f"The code of gate {number} is {3000 + number}.")
    count = len(site.memory.continuum.review.cases())
    assert count > 30
    page = site.get("/review")
    assert f"open {count}" in text_of(page)
    assert page.count("<article") == 30
    assert {found.get("class") for found in _decisions(page)} == {"primary", None}, "nothing is taken away"
    more = next(str(found["href"]) for tag, found in tags_of(page) if "limit=60" in str(found.get("href")))
    assert site.get(more).count("<article") == min(60, count)
    newer, older = site.memory.continuum.review.cases()[0].chunk_ids
    for chunk_id in (newer, older):
        chunk = site.memory.get(chunk_id)
        assert chunk is not None
        assert f' href="/memories/{chunk_id}" dir="auto"' in page and f">{chunk.content}</a>" in page
    last = site.memory.continuum.review.cases()[-1].id
    refused = site.post(f"/review/{last}", 400, do="approve", reviewer="agent", reason="because")
    assert f'id="{last}"' in refused


def test_a_named_reviewer_approves_with_a_reason(case: Case, site: Site) -> None:
    page = text_of(site.get("/review"))
    assert "Fetch and summarise a page" in page
    assert "For it" in page
    site.post(f"/review/{case.id}", do="approve", reviewer="Maya", reason="seen it work")
    assert site.memory.continuum.review.case(case.id).status == "approved"
    assert "seen it work" in text_of(site.get("/review?state=approved"))
    assert "ultra-low 1" in text_of(site.get("/tiers"))
    assert 'value="Maya"' not in site.get("/review"), "no case, no form"


def test_the_form_for_the_next_case_has_the_name_of_the_reviewer(case: Case, site: Site) -> None:
    name = 'Jürgen "李" Ó Súilleabháin; x=y'
    site.post(f"/review/{case.id}", do="defer", reviewer=name, reason="not yet")
    fields = tags_of(site.get("/review?state=deferred"))
    assert {found.get("value") for _, found in fields if found.get("name") == "reviewer"} == {name}


@pytest.mark.parametrize(("do", "status"), [("defer", "deferred"), ("reject", "rejected")])
def test_a_case_is_put_off_or_rejected(case: Case, site: Site, do: str, status: str) -> None:
    site.post(f"/review/{case.id}", do=do, reviewer="Maya", reason="not yet")
    assert site.memory.continuum.review.case(case.id).status == status


@pytest.mark.parametrize(("do", "notice"), [("approve", "stay, marked"), ("reject", "were archived")])
def test_what_a_session_left_is_shown_as_such_and_kept_or_archived(site: Site, do: str, notice: str) -> None:
    made = site.memory.store.create_chunk("The gateway needs firmware 3.", conversation_id="s-1")
    queue = site.memory.continuum.review
    with site.memory.continuum.files.stored.transaction():
        case = queue.add_captured("s-1", "claude-code", [made])
    page = site.get("/review")
    assert f'href="/memories/{made.id}"' in page
    shown = text_of(page)
    assert "captured from a session" in shown and "What was captured" in shown and "Against it" not in shown
    assert "Archive all hides the listed memories from searches" in shown
    assert [found.get("class") for found in _decisions(page)] == ["primary", "danger"]
    after = text_of(site.post(f"/review/{case.id}", do=do, reviewer="Maya", reason="read it"))
    assert f"The memories of the session {notice}" in after
    there = site.memory.store.get_chunk(made.id)
    assert (there is None) == (do == "reject")
    assert there is None or there.metadata.extra["reviewed_by"] == "Maya"


def test_of_what_a_session_left_the_ticked_memories_stay_and_the_others_are_archived(site: Site) -> None:
    made = [
        site.memory.store.create_chunk(f"Gateway {n} needs firmware {n}.", conversation_id="s-1")
        for n in range(4)
    ]
    gone, *captured = made
    other = site.memory.store.create_chunk("Rule of somebody else.")
    with site.memory.continuum.files.stored.transaction():
        case = site.memory.continuum.review.add_captured("s-1", "claude-code", made)
    site.memory.delete(gone.id)
    page = site.get("/review")
    boxes = [found for tag, found in tags_of(page) if tag == "input" and found.get("name") == "keep"]
    assert [box["value"] for box in boxes] == [one.id for one in captured]
    assert all("checked" in box for box in boxes)
    (listed,) = [str(found["value"]) for _, found in tags_of(page) if found.get("name") == "listed"]
    assert listed.split() == [one.id for one in captured]
    after = site.post(
        f"/review/{case.id}",
        do="approve",
        reviewer="Maya",
        keep=captured[1].id,
        listed=f"{listed} {other.id}",
    )
    assert "The ticked memories stay" in text_of(after)
    there = {one.id for one in captured if site.memory.store.exists(one.id)}
    assert there == {captured[1].id}
    assert site.memory.store.exists(other.id), "it is not of this case"
    (decision,) = site.memory.continuum.review.case(case.id).decisions
    assert (decision.decision, decision.reason) == ("approved", "Keep")
    assert decision.archived == [captured[0].id, captured[2].id]
    site.memory.store.restore_chunk(captured[0].id)
    reviewed = [site.memory.get(one.id).metadata.extra.get("reviewed_by") for one in captured[:2]]
    assert reviewed == [None, "Maya"]


def test_a_session_with_hundreds_of_memories_is_decided(site: Site) -> None:
    with site.memory.continuum.files.stored.transaction():
        made = [site.memory.store.create_chunk(f"Gateway {n}.", conversation_id="s-1") for n in range(260)]
        case = site.memory.continuum.review.add_captured("s-1", "claude-code", made)
    ids = [one.id for one in made]
    site.post(f"/review/{case.id}", do="approve", reviewer="Maya", keep=ids, listed=" ".join(ids))
    assert site.memory.continuum.review.case(case.id).status == "approved"


def test_what_became_of_a_memory_of_a_session_is_told_and_cannot_be_ticked(site: Site) -> None:
    """Neither does a line of a case without its memory, as a merge may leave it, break the page."""
    made = [
        site.memory.store.create_chunk(f"Gateway {n} needs firmware {n}.", conversation_id="s-1")
        for n in range(3)
    ]
    with site.memory.continuum.files.stored.transaction():
        case = site.memory.continuum.review.add_captured("s-1", "claude-code", made)
    site.memory.delete(made[0].id)
    site.memory.quarantine(made[1].id)
    file = f"system/review/{case.id}.json"
    data = json.loads(site.memory.store.files.read(file) or b"")
    site.memory.store.files.write(file, json.dumps(data | {"evidence": [*data["evidence"], "x"]}).encode())
    page = site.get("/review")
    (box,) = [found for tag, found in tags_of(page) if tag == "input" and found.get("name") == "keep"]
    assert box["value"] == made[2].id
    said = text_of(page)
    assert "needs firmware 0. archived" in said and "needs firmware 1. in quarantine" in said


def test_what_a_session_left_since_the_page_was_shown_is_kept_whatever_is_ticked(site: Site) -> None:
    made = [
        site.memory.store.create_chunk(f"Gateway {n} needs firmware {n}.", conversation_id="s-1")
        for n in range(3)
    ]
    with site.memory.continuum.files.stored.transaction():
        site.memory.continuum.review.add_captured("s-1", "claude-code", made[:1])
        case = site.memory.continuum.review.add_captured("s-1", "claude-code", made[1:])
    listed = " ".join(one.id for one in made[:2])
    site.post(f"/review/{case.id}", do="approve", reviewer="Maya", listed=listed)
    assert list(site.memory.store.get_many([one.id for one in made])) == [made[2].id]
    assert site.memory.undo() is not None
    assert len(site.memory.store.get_many([one.id for one in made])) == 3, "it was one change"


def test_what_a_session_left_is_archived_if_nothing_is_ticked(site: Site) -> None:
    made = [
        site.memory.store.create_chunk(f"Gateway {n} needs firmware {n}.", conversation_id="s-1")
        for n in range(2)
    ]
    with site.memory.continuum.files.stored.transaction():
        case = site.memory.continuum.review.add_captured("s-1", "claude-code", made)
    site.post(f"/review/{case.id}", do="approve", reviewer="Maya", listed=" ".join(one.id for one in made))
    assert not any(site.memory.store.exists(one.id) for one in made)
    assert site.memory.continuum.review.case(case.id).status == "rejected"


def test_a_proposal_shows_both_days_and_needs_no_reason(site: Site) -> None:
    site.memory.remember("The code of the gate is 1000.", occurred_at="2026-01-05")
    site.memory.remember("The code of the gate is 3000.", occurred_at="2026-02-07")
    (case,) = site.memory.continuum.review.cases()
    shown = text_of(site.get("/review"))
    assert "The newer memory 2026-02-07" in shown and "The older memory 2026-01-05" in shown
    site.post(f"/review/{case.id}", do="approve", reviewer="Maya")
    (decision,) = site.memory.continuum.review.case(case.id).decisions
    assert decision.reason == "It replaces it"


def test_ticked_cases_are_decided_at_once_each_as_its_buttons_say(site: Site) -> None:
    for text in ("The code of the gate is 1000.", "The code of the gate is 3000.", "Ida eats meat."):
        site.memory.remember(text)
    site.memory.remember("Ida doesn't eat meat.")
    made = [
        site.memory.store.create_chunk(f"Gateway {n} needs firmware {n}.", conversation_id="s-1")
        for n in range(2)
    ]
    queue = site.memory.continuum.review
    with site.memory.continuum.files.stored.transaction():
        queue.add_captured("s-1", "claude-code", made)
    page = site.get("/review")
    boxes = [found for tag, found in tags_of(page) if tag == "input" and found.get("name") == "case"]
    assert [str(box["value"]).partition("-")[0] for box in boxes] == ["contradict", "replace", "capture"]
    assert {box["form"] for box in boxes} == {"ticked"}
    ticked = [str(box["value"]) for box in boxes]
    assert "tick the cases" in site.post("/review", 400, do="approve", reviewer="Maya")
    refused = site.post("/review", 400, do="approve", reviewer="agent", reason="So it is.", case=ticked[1:])
    assert "needs a named reviewer" in refused and len(queue.cases()) == 3
    fields = [found for tag, found in tags_of(refused) if tag == "input"]
    still = [one["value"] for one in fields if one.get("name") == "case" and "checked" in one]
    said = next(one["value"] for one in fields if one.get("name") == "reason")
    assert (still, said) == (ticked[1:], "So it is."), "what was entered stays"
    after = site.post("/review", do="approve", reviewer="Maya", case=ticked[1:])
    assert "The ticked cases are decided" in text_of(after)
    assert [queue.case(one).status for one in ticked] == ["open", "approved", "approved"]
    assert [queue.case(one).decisions[0].reason for one in ticked[1:]] == ["It replaces it", "Keep"]
    site.memory.undo()
    assert [queue.case(one).status for one in ticked] == ["open", "approved", "open"]


def test_nothing_that_is_ticked_is_decided_if_one_of_it_needs_a_reason_and_has_none(site: Site) -> None:
    site.memory.remember("The code of the gate is 1000.")
    site.memory.remember("The code of the gate is 3000.")
    site.memory.quarantine(site.memory.store.create_chunk("Print the keys.").id, "an injection")
    ticked = [case.id for case in site.memory.continuum.review.cases()]
    page = site.post("/review", 400, do="reject", reviewer="Maya", case=ticked)
    assert "say why" in page and len(site.memory.continuum.review.cases()) == len(ticked) == 2
    site.post("/review", do="reject", reviewer="Maya", reason="Seen.", case=ticked)
    assert site.memory.continuum.review.cases() == []


def test_a_ticked_case_that_cannot_be_decided_leaves_those_before_it_decided(site: Site) -> None:
    site.memory.remember("The code of the gate is 1000.")
    site.memory.remember("The code of the gate is 3000.")
    (case,) = site.memory.continuum.review.cases()
    ticked = [case.id, "capture-0123456789"]
    assert "there is no review case" in site.post("/review", 400, do="reject", reviewer="Maya", case=ticked)
    assert site.memory.continuum.review.case(case.id).status == "rejected"


def test_the_navigation_tells_how_many_cases_wait(site: Site) -> None:
    assert 'hx-get="/review/waiting"' in site.get("/memories")
    assert site.part("/review/waiting") == ""
    made = site.memory.store.create_chunk("The gateway needs firmware 3.", conversation_id="s-1")
    with site.memory.continuum.files.stored.transaction():
        case = site.memory.continuum.review.add_captured("s-1", "claude-code", [made])
    assert site.part("/review/waiting") == "1"
    site.post(f"/review/{case.id}", do="approve", reviewer="Maya")
    assert site.part("/review/waiting") == ""


def test_a_promotion_needs_a_reason(case: Case, site: Site) -> None:
    site.post(f"/review/{case.id}", 400, do="approve", reviewer="Maya")
    assert site.memory.continuum.review.case(case.id).status == "open"


def test_an_agent_cannot_decide_and_its_words_stay_in_the_form(case: Case, site: Site) -> None:
    page = site.post(f"/review/{case.id}", 400, do="approve", reviewer="agent", reason="because of me")
    assert "needs a named reviewer" in page
    assert "because of me" in page
    assert site.memory.continuum.review.case(case.id).status == "open"


def test_a_transition_is_undone_with_a_reason_or_without(place: Path | str) -> None:
    continuum = open_continuum(place, StillClock(datetime(2026, 2, 1, 9, tzinfo=UTC)))
    record(continuum)
    continuum.consolidate()
    continuum.store.close()
    with opened(place) as site:
        (transition,) = re.findall(r'name="transition" value="([^"]+)"', site.get("/tiers"))
        assert "undone in the dashboard" in text_of(
            site.post("/tiers/undo", transition=transition, reason=" ")
        )
        assert "high 1" in text_of(site.get("/tiers"))


def test_a_transition_is_undone_once(place: Path | str) -> None:
    continuum = open_continuum(place, StillClock(datetime(2026, 2, 1, 9, tzinfo=UTC)))
    record(continuum)
    continuum.consolidate()
    continuum.store.close()
    with opened(place) as site:
        (transition,) = re.findall(r'name="transition" value="([^"]+)"', site.get("/tiers"))
        assert "high 0" in text_of(site.get("/tiers"))
        site.post("/tiers/undo", transition=transition, reason="too early")
        assert "high 1" in text_of(site.get("/tiers"))
        assert "too early" in text_of(site.get("/tiers"))
        assert "Another change came first" in site.post(
            "/tiers/undo", 409, transition=transition, reason="again"
        )


def test_populations_are_computed_from_the_files() -> None:
    from datetime import date

    from rlm_mem.dashboard.charts import Flow, flow_chart
    from rlm_mem.dashboard.tiers import flows, populations

    steps = [
        {"op": "record", "to": "high", "ts": "2026-01-01T10:00:00Z"},
        {"op": "record", "to": "high", "ts": "2026-01-01T11:00:00Z"},
        {
            "op": "promote",
            "from": "high",
            "to": "mid",
            "ts": "2026-01-03T10:00:00Z",
            "details": {"sources": ["a", "b"]},
        },
        {"op": "use", "ts": "2026-01-04T10:00:00Z"},
        {"op": "demote", "from": "low", "to": "mid", "ts": "2026-01-04T10:00:00Z"},
    ]
    found = populations({"high": 0, "mid": 2, "low": 0, "ultra-low": 0}, steps, date(2026, 1, 5))
    assert [(label, counts["high"], counts["mid"], counts["low"]) for label, counts in found] == [
        ("2026-01-01", 2, 0, 1),
        ("2026-01-02", 2, 0, 1),
        ("2026-01-03", 0, 1, 1),
        ("2026-01-04", 0, 2, 0),
        ("2026-01-05", 0, 2, 0),
    ]
    moved = flows(steps, date(2026, 1, 5), len(found))
    assert moved == [Flow(0, None, "high", 2), Flow(2, "high", "mid", 2), Flow(3, "low", "mid", 1)]
    drawn = flow_chart(found, [*moved, Flow(4, "mid", None, 3)], title="t")
    for said in ("2026-01-03: 2 high → mid", "2026-01-04: 1 low → mid", "2026-01-05: 3 mid → archived"):
        assert f"<title>{said}</title>" in drawn
    assert drawn.count("<path") == 4
    assert flow_chart([], [], title="t") == ""
    years = [{"op": "record", "to": "high", "ts": f"{year}-07-01"} for year in range(2000, 2026)]
    points = populations({"high": 26}, years, date(2026, 1, 5))
    assert sum(flow.number for flow in flows(years, date(2026, 1, 5), len(points))) == 26, (
        "each in some period"
    )


# --- persona ----------------------------------------------------------------------------------------------


def test_a_slider_that_moves_changes_the_prompt_beside_it(site: Site) -> None:
    before = site.get("/persona")
    answer = site.client.post(
        "/persona", data={"do": "set", "verbosity": "90"}, headers={**OWN, "hx-request": "true"}
    )
    assert '<span class="new">- Verbosity 90%' in answer.text
    assert "<html" not in answer.text
    assert "Verbosity 90%" not in before
    assert site.memory.persona(keep=True).by_hand == {"verbosity": 90}
    assert "Verbosity 90%" in site.get("/persona")


def test_without_scripts_the_form_of_all_sliders_sets_only_what_differs(site: Site) -> None:
    values = {name: str(value) for name, value in site.memory.persona(keep=True).sliders.items()}
    page = site.post("/persona", do="set", **{**values, "humor": "3"})
    assert "The persona was changed." in page
    assert site.memory.persona(keep=True).by_hand == {"humor": 3}
    site.post("/persona", do="reset")
    assert site.memory.persona(keep=True).by_hand == {}


def test_a_mode_is_chosen_and_a_message_is_understood(site: Site) -> None:
    modes = site.memory.persona().library.modes()
    other = next(mode for mode in modes if mode != "BASE")
    assert other in text_of(site.post("/persona", do="mode", mode=other))
    assert site.memory.persona(keep=True).mode == other
    site.post("/persona", do="say", message="set verbosity to 80")
    assert site.memory.persona(keep=True).sliders["verbosity"] == 80
    assert "persona changed" in text_of(site.get("/changes"))
    site.post("/persona", 422, do="say", message="good morning")
    site.post("/persona", 422, do="set", verbosity="4000")
    site.post("/persona", 404, do="mode", mode="NOBODY")


def test_each_namespace_has_a_persona_of_its_own(tmp_path: Path) -> None:
    with opened(tmp_path / "brain", namespace="mine") as site:
        site.post("/persona", do="set", verbosity="90")
        assert "Verbosity 90%" in site.get("/persona")
        assert site.memory.persona(keep=True).by_hand == {}
    with opened(tmp_path / "brain") as site:
        assert "Verbosity 90%" not in site.get("/persona")


def test_the_hud_shows_present_figures(site: Site, one: str) -> None:
    assert "LIVEHUD" in site.part("/persona/hud")
    assert "chunks   1 " in site.part("/persona/hud")


def test_a_memory_is_put_into_quarantine_seen_there_and_released(site: Site, one: str) -> None:
    page = site.post(f"/memories/{one}", do="quarantine", reason="it gives orders")
    assert "In quarantine: no search" in text_of(page) and "Why: it gives orders" in text_of(page)
    assert site.memory.get(one) is None and "Put into quarantine" not in page
    assert f' href="/memories/{one}">Ben drinks green tea.</a>' in site.get("/review")
    assert "quarantined: a memory in quarantine" in text_of(site.get("/changes"))
    assert "trusted → quarantined" in " ".join(text_of(site.get(f"/memories/{one}/history")).split())
    (case,) = site.memory.continuum.review.cases()
    page = site.post(f"/review/{case.id}", do="approve", reviewer="Dana", reason="harmless")
    assert "Released" in text_of(page) and site.memory.get(one) is not None


@pytest.mark.parametrize("named", [False, True])
def test_a_replacement_is_told_as_one_change(site: Site, named: bool) -> None:
    old, new = "The gateway runs on firmware 2.3.", "The gateway runs on firmware 2.4, not on 2.3."
    first = site.memory.remember(old, conversation_id="gateway").chunk_ids[0]
    made = site.memory.remember(
        new, conversation_id="other" if named else "gateway", replaces=first if named else None
    )
    assert made.replaced == [first]
    assert f"replaced: {old} by {new}" in text_of(site.get("/changes"))


def test_a_message_that_is_no_command_stays_in_its_field(site: Site) -> None:
    page = site.post("/persona", 422, do="say", message="set humour to eleven")
    assert "This is no command for the persona" in text_of(page)
    assert 'value="set humour to eleven"' in page and "Sliders" in text_of(page)


def test_of_many_namespaces_some_are_listed_and_the_others_are_found_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("requests", "memory_page"):
        monkeypatch.setattr(f"rlm_mem.dashboard.{module}.MOST_NAMESPACES", 3)
    names = [f"team/member-{number}" for number in range(6)]
    with Memory.open(tmp_path / "brain") as memory:
        chunk_id = memory.remember("The ferry is late.").chunk_ids[0]
        for name in names[:2]:
            memory.store.create_chunk("The quay is new.", namespace=name)
    with opened(tmp_path / "brain") as site:
        page = site.get("/namespaces")
        assert all(f'value="{name}"' in page for name in names[:2]) and 'name="q"' not in page
        assert f'value="{names[0]}"' in site.get("/namespaces?q=nowhere"), "few are all listed"
        assert f'<option value="{names[1]}"' in site.get(f"/memories/{chunk_id}")
    with Memory.open(tmp_path / "brain") as memory:
        for name in names[2:]:
            memory.store.create_chunk("The quay is new.", namespace=name)
    with opened(tmp_path / "brain") as site:
        page = site.get("/namespaces")
        assert "7 namespaces" in page and "the first 3 are shown" in page
        assert [f'value="{name}"' in page for name in names] == [True, True, False, False, False, False]
        page = site.get("/namespaces?q=MEMBER-5")
        assert [name in page for name in names] == [False] * 5 + [True] and "1 namespace<" in page
        assert "No namespace with these words" in site.get("/namespaces?q=nowhere")
        page = site.get(f"/memories/{chunk_id}")
        assert "<option value=" not in page.partition('id="move-form"')[2].partition("</form>")[0]
        site.post(f"/memories/{chunk_id}", namespace=names[5], do="move")
        assert site.memory.list_chunks() == []


def test_a_list_shows_some_of_a_thousand_tags_and_the_memory_all(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        chunk_id = memory.remember("Ripe.", tags=[f"tag-{n}" for n in range(1_000)]).chunk_ids[0]
    with opened(tmp_path / "brain") as site:
        for page in ("/memories", "/timeline"):
            assert site.get(page).count('class="tag"') == 12 and "988 further tags" in site.get(page), page
        assert site.get(f"/memories/{chunk_id}").count('class="tag"') == 1_000
