"""Notes on one subject of which it is not sure which holds: each hit names the other, on every surface."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote_plus

import pytest
from tests.server.api import client_of
from tests.server.site import opened

from rlm_mem import Memory
from rlm_mem.capture.context import prompt_context
from rlm_mem.cli import main
from rlm_mem.mcp.service import Service
from rlm_mem.operations.context import OpenMemory, Settings
from rlm_mem.recall.opening import build_opening
from rlm_mem.sandbox.functions import StoreFunctions

OLDER = "Autoclave: a cycle takes 35 min."
NEWER = "New gasket, new programme. Autoclave needs 22 min per cycle, we timed it twice."
ASK = "How long does a cycle of the autoclave take?"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "brain"


@pytest.fixture
def ids(place: Path) -> Iterator[tuple[str, str]]:
    with Memory.open(place) as memory:
        older = memory.remember(OLDER, occurred_at="2026-01-10").chunk_ids[0]
        memory.remember("The dishwasher takes 90 min.", occurred_at="2026-02-01")
        newer = memory.remember(NEWER, occurred_at="2026-05-02").chunk_ids[0]
    yield older, newer


def test_each_of_two_notes_names_the_other(place: Path, ids: tuple[str, str]) -> None:
    older, newer = ids
    with Memory.open(place) as memory:
        hits = {hit.chunk_id: hit for hit in memory.search(ASK)}
    assert hits[older].marks() == [f"a later note on the same subject: {newer}, 2026-05-02: {NEWER}"]
    assert hits[newer].marks() == [f"an earlier note on the same subject: {older}, 2026-01-10: {OLDER}"]
    assert hits[older].marks()[0] in str(hits[older])
    assert all(not hit.marks() for key, hit in hits.items() if key not in ids)


STANDUP = (
    "Standup of the team: 9:30, small room.",
    "We have moved the standup to 10:00, school run.",
    "No standup on Fridays any more, write in the channel.",
)


def test_each_later_note_that_changes_a_hit_is_named_the_newest_value_first(place: Path) -> None:
    with Memory.open(place) as memory:
        first, moved, ended = (
            memory.remember(text, occurred_at=f"2026-0{month}-05").chunk_ids[0]
            for month, text in enumerate(STANDUP, 2)
        )
        hits = {hit.chunk_id: hit for hit in memory.search("When is the standup?")}
        answer = memory.recall("When is the standup?")
    assert hits[first].marks() == [
        f"a later note on the same subject: {moved}, 2026-03-05: {STANDUP[1]}",
        f"another later note on the same subject: {ended}, 2026-04-05: {STANDUP[2]}",
    ]
    assert hits[ended].earlier_note is not None
    assert hits[ended].earlier_note.chunk_id == moved  # which it changes, not the one before that
    assert "10:00" in str(answer.suggestion) and "No standup on Fridays" in str(answer.suggestion)
    with client_of(place) as http:
        items = http.post("/search", json={"query": "When is the standup?"}).json()["items"]
    (more,) = next(item["more_later"] for item in items if item["chunk_id"] == first)
    assert more["chunk_id"] == ended
    with opened(place) as site:
        page = site.part(f"/memories?q={quote_plus('When is the standup?')}")
    assert page.count(f'<a href="/memories/{ended}" dir="auto">{STANDUP[2]}</a>') >= 2


def test_a_long_note_is_quoted_from_the_sentence_that_fits_and_an_untrusted_one_is_marked(
    tmp_path: Path,
) -> None:
    long = f"Spent the morning in the wash-up room, nobody came. {'Rain again. ' * 15}{NEWER} {'More rain. ' * 15}"
    with Memory.open(tmp_path) as memory:
        memory.remember(OLDER, occurred_at="2026-01-10", origin="web", trust="untrusted")
        memory.remember(long, occurred_at="2026-05-02")
        marks = [mark for hit in memory.search(ASK) for mark in hit.marks()]
    assert any(": Autoclave needs 22 min per cycle, we timed it twice. More rain." in mark for mark in marks)
    assert any(f": untrusted, from web: {OLDER}" in mark for mark in marks)
    assert all(len(mark) < 250 for mark in marks)


def test_the_mark_names_a_note_below_the_limit(place: Path, ids: tuple[str, str]) -> None:
    with Memory.open(place) as memory:
        (only,) = memory.search(ASK, limit=1)
    assert set(ids) & {one.chunk_id for one in (only.later_note, only.earlier_note) if one is not None}


def test_what_a_later_memory_contradicts_is_marked_with_it(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        older = memory.remember("The rent is 1,200 euros, heating included, and Ola collects it.").chunk_ids[
            0
        ]
        newer = memory.remember("Ola wants the rent by transfer.").chunk_ids[0]
        ask = "Who collects the rent, and what is in it?"
        assert all(hit.later_note is None for hit in memory.search(ask))
        memory.link(newer, older, "contradicts")
        first = memory.search(ask)[0]
    assert first.chunk_id == older and first.later_note is not None
    assert (first.later_note.chunk_id, first.later_note.text) == (newer, "Ola wants the rent by transfer.")


def test_a_question_about_the_past_and_an_untrusted_later_note_mark_nothing(
    place: Path, ids: tuple[str, str]
) -> None:
    older, newer = ids
    with Memory.open(place) as memory:
        assert all(
            not hit.marks() for hit in memory.search("How long did a cycle of the autoclave take before?")
        )
        memory.store.update_chunk(newer, metadata={"origin": "web", "trust": "untrusted"})
        hits = {hit.chunk_id: hit for hit in memory.search(ASK)}
    assert hits[older].later_note is None


def test_the_command_shows_the_mark(
    place: Path, ids: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--brain", str(place), "search", ASK]) == 0
    assert f"a later note on the same subject: {ids[1]}, 2026-05-02" in " ".join(
        capsys.readouterr().out.split()
    )


def test_http_and_the_tool_give_the_mark(place: Path, ids: tuple[str, str]) -> None:
    older, newer = ids
    with client_of(place) as http:
        items = {hit["chunk_id"]: hit for hit in http.post("/search", json={"query": ASK}).json()["items"]}
    assert (items[older]["later_note"]["chunk_id"], items[newer]["earlier_note"]["chunk_id"]) == (
        newer,
        older,
    )
    service = Service(OpenMemory(Settings(brain=place)))
    try:
        answer = service.call("search", {"query": ASK})
    finally:
        service.close()
    assert f"a later note on the same subject: {newer}, 2026-05-02" in answer.text


def test_the_dashboard_leads_to_the_other_note(place: Path, ids: tuple[str, str]) -> None:
    older, newer = ids
    with opened(place) as site:
        page = site.part(f"/memories?q={quote_plus(ASK)}")
    for chunk_id, text in ((newer, NEWER), (older, OLDER)):
        assert f'<a href="/memories/{chunk_id}" dir="auto">{text}</a>' in page


def test_the_prompt_hook_and_the_opening_of_a_recall_show_the_mark(place: Path, ids: tuple[str, str]) -> None:
    with Memory.open(place) as memory:
        text = prompt_context([memory], ASK, budget=600).text
        start = build_opening(memory.store, ASK)
    assert f"a later note on the same subject: {ids[1]}, 2026-05-02" in text
    marks = {hit["id"]: hit.get("same_subject") for hit in start.hits}
    assert f"{ids[1]}, 2026-05-02" in marks[ids[0]][0]


def test_programs_are_given_the_mark(place: Path, ids: tuple[str, str]) -> None:
    with Memory.open(place) as memory:
        rows = {row["id"]: row for row in StoreFunctions(memory.store).search(ASK)}
    assert f"{ids[1]}, 2026-05-02" in rows[ids[0]]["same_subject"][0]


@pytest.mark.parametrize(
    ("later", "is_given"),
    [
        ("Orla started at Brightwater on Monday.", True),  # another name where the earlier note has one
        ("Orla lost her umbrella on the tram.", False),
        ("Rang Orla about the tickets for the fair.", False),
    ],
)
def test_an_answer_comes_with_the_nearest_later_note_that_gives_another_value(
    tmp_path: Path, later: str, is_given: bool
) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        for month in (1, 3, 5):
            memory.remember(f"Watered the beans, {month} rows.", occurred_at=f"2026-0{month}-01")
            memory.remember(f"The oven timer rang {month} times.", occurred_at=f"2026-0{month}-02")
        memory.remember("Orla works at Tannhof.", occurred_at="2026-02-02")
        memory.remember(later, occurred_at="2026-04-02")
        found = memory.recall("Where does Orla work?")
        answer = found.content or found.suggestion
    assert answer == ("Tannhof" + f" (2026-02-02); later, 2026-04-02: {later}" * is_given)


def test_a_later_note_with_the_verb_of_what_is_asked_for_casts_doubt_on_an_answer(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        memory.remember("Tess Quill is the director of Marlow Press.", occurred_at="2026-02-02")
        memory.remember("Ole Brandt directs Marlow Press.", occurred_at="2026-04-02")
        assert "Ole Brandt" in str(memory.recall("Who is the director of Marlow Press?"))


@pytest.mark.parametrize(
    ("question", "earlier", "later"),
    [
        (
            "Where is the Kestrel moored?",
            "The Kestrel is moored in Brixham.",
            "The Osprey is moored in Brixham.",
        ),
        (
            "Who directs Marlow Press?",
            "Tess Quill directs Marlow Press.",
            "Tess Quill is a citizen of Canada.",
        ),
        (
            "Who directs Marlow Press?",
            "7. Tess Quill directs Marlow Press.",
            "9. Ole Brandt is employed by Marlow Press.",
        ),
    ],
)
def test_a_later_note_on_another_name_or_person_casts_no_doubt_on_an_answer(
    tmp_path: Path, question: str, earlier: str, later: str
) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        memory.remember("The oven timer rang.", occurred_at="2026-01-02")
        memory.remember(earlier, occurred_at="2026-02-02")
        memory.remember(later, occurred_at="2026-04-02")
        found = memory.recall(question)
    assert found.outcome == "answered"
    assert later not in str(found.content)


def test_which_later_notes_are_read_does_not_depend_on_the_random_ids(tmp_path: Path) -> None:
    corpus = Path(__file__).parents[2] / "benchmarks" / "corpora" / "offline" / "trades.jsonl"
    rows = [json.loads(line) for line in corpus.read_text(encoding="utf-8").splitlines()]
    notes = [(row["note"], row["at"]) for row in rows if "note" in row and row["store"] == "thesis"]
    question = "How many of the flux runs are good?"
    found = set()
    for number in range(5):
        with Memory.open(tmp_path / str(number), llm="offline") as memory:
            with memory.batch():
                for text, at in notes:
                    memory.remember(text, occurred_at=at)
            found.add(tuple(source.line for source in memory.recall(question).sources))
    assert len(found) == 1


@pytest.mark.parametrize(("apart", "named"), [(0.003, False), (50, False), (3_600, True)])
def test_of_files_that_were_copied_together_none_is_later(tmp_path: Path, apart: float, named: bool) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number, text in enumerate((OLDER, NEWER)):
        (folder / f"{number}.md").write_text(text)
        os.utime(folder / f"{number}.md", (at := 1_790_000_000 + number * apart, at))
    with Memory.open(tmp_path / "brain") as memory:
        memory.sync_folder(folder)
        hits = memory.search(ASK)
        told = memory.recall(ASK)
    assert len(hits) == 2
    assert any(hit.marks() for hit in hits) == named
    assert ("later" in f"{told.content} {told.suggestion}") == named


@pytest.mark.parametrize(
    ("question", "earlier", "later"),
    [
        (  # a measure
            "After how many minutes does the alarm go to the caretaker?",
            "The alarm goes to the caretaker after 12 minutes.",
            "Sessions of the shop now last 20 minutes.",
        ),
        (  # a month
            "What does Nora drink?",
            "Nora quit coffee in January and drinks mint tea now.",
            "The fee table is now updated each January, Olof sends it.",
        ),
        (  # a title
            "Who is at the front desk?",
            "Dr. Adler and Dr. Baum share the practice, and the front desk is run by Petra Linde.",
            "Saturday hours are now 10:00 to 13:00, as those of Dr. Conrad.",
        ),
        (  # one of many words
            "Who put the new elements into the small kiln?",
            "Kiln 2, the small Rohde, got new elements on 6 March; Uwe Tanner fitted them for 410 euros and left the "
            "old ones in the yard.",
            "Sensor of the large kiln replaced, it read 12 degrees too high.",
        ),
    ],
)
def test_what_is_shared_by_chance_marks_nothing(
    tmp_path: Path, question: str, earlier: str, later: str
) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        for number in range(6):
            memory.remember(
                f"Walked {number + 2} kilometres, it rained.", occurred_at=f"2026-01-0{number + 1}"
            )
        first = memory.remember(earlier, occurred_at="2026-02-02").chunk_ids[0]
        memory.remember(later, occurred_at="2026-05-02")
        hit = memory.search(question)[0]
    assert hit.chunk_id == first
    assert not hit.marks()
