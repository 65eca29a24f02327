"""A later note that has a rare word of the first hit, and perhaps none of the question, is named on that hit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from rlm_mem import Filters, Hit, Memory

OLDER = "Our plumber is Mr Feddersen on Dock Road."
NEWER = "Took the boiler papers to Ms Okafor, Feddersen has retired."
ASK = "Who is our plumber?"


@pytest.fixture
def memory(place: str) -> Iterator[Memory]:
    with Memory.open(place) as opened:
        noted(opened, "2026-01-05", OLDER)
        for number in range(6):
            noted(
                opened,
                f"2026-02-0{number + 1}",
                f"Tram {number} was late on Dock Road, {number} people waited.",
            )
        yield opened


def noted(memory: Memory, day: str, text: str, **more: Any) -> str:
    return memory.remember(text, occurred_at=day, **more).chunk_ids[0]


def texts(memory: Memory, hits: list[Hit]) -> list[str]:
    return [memory.get(hit.chunk_id).content for hit in hits]


def test_what_says_that_the_answer_has_ended_is_shown_without_a_word_of_the_question(memory: Memory) -> None:
    assert memory.search(ASK)[0].later_note is None
    newer = noted(memory, "2026-03-05", NEWER)
    (hit,) = memory.search(ASK)
    assert hit.later_note is not None
    assert (hit.later_note.chunk_id, hit.later_note.text) == (newer, NEWER)
    answer = memory.recall(ASK)
    assert answer.content is None
    assert "Okafor" in str(answer.suggestion)


@pytest.mark.parametrize("heading", ["Journal", "Weekly Review", "Tom"])
def test_what_contradicts_a_hit_by_a_link_is_shown_without_a_word_in_common(
    memory: Memory, heading: str
) -> None:
    """Whether a heading names a person or a journal is unknown: nothing is replaced, and the change is named."""
    older = noted(memory, "2026-01-06", "I live in Porto.", tags=["home"])
    newer = noted(memory, "2026-03-05", f"# {heading}\n\nMoved to Lyon.", tags=["private"])
    hit = memory.search("Where do I live?")[0]
    assert (hit.chunk_id, hit.superseded_by) == (older, None)
    assert hit.later_note is not None
    assert hit.later_note.chunk_id == newer
    (hit,) = memory.search("Where do I live?", filters=Filters(tags_all=("home",)))
    assert hit.later_note is None  # the filter excludes it
    memory.quarantine(newer, "planted")
    assert memory.search("Where do I live?")[0].later_note is None


def test_the_links_to_all_hits_that_may_be_the_answer_are_read_together(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look-up for each hit would be a round trip to a database for each."""
    ids = {
        noted(memory, f"2026-01-0{day}", f"Our plumber is {name}.")
        for day, name in ((6, "Ms Lund"), (7, "Jo"))
    }
    asked: list[set[str]] = []
    look_up = memory.store.linked_of_each
    monkeypatch.setattr(
        memory.store, "linked_of_each", lambda ids, *how: (asked.append(set(ids)), look_up(ids, *how))[1]
    )
    assert len(memory.search(ASK)) > 2
    (together,) = asked
    assert ids < together


def test_what_may_change_the_answer_is_shown_beside_it(memory: Memory) -> None:
    noted(memory, "2026-01-06", "The wedding is on 20 June at the Lindenhof.")
    newer = noted(memory, "2026-03-05", "Lindenhof has double-booked us, we got 4 July instead.")
    hits = memory.search("When is the wedding?")
    assert newer in {hit.later_note.chunk_id for hit in hits if hit.later_note is not None}
    answer = memory.recall("When is the wedding?")
    assert answer.content is None
    assert "4 July" in str(answer.suggestion)


@pytest.mark.parametrize(
    "later",
    [
        "Ms Okafor repaired the tap within an hour.",  # no word of the note
        "Tram 9 was late on Dock Road, Ms Okafor waited.",  # words that many notes have
        "Feddersen, of the choir, sings bass.",  # nothing that changes what the note says
    ],
)
def test_another_note_is_not_shown(memory: Memory, later: str) -> None:
    noted(memory, "2026-03-05", later)
    (hit,) = memory.search(ASK)
    assert (memory.get(hit.chunk_id).content, hit.later_note) == (OLDER, None)


def test_the_same_text_stored_again_changes_no_answer(memory: Memory) -> None:
    """As two clones of a brain leave it that both remembered it before they were merged."""
    text = "Wifi password rotates on Mondays."
    memory.store.create_chunk(text)
    memory.store.create_chunk(text)
    hits = memory.search("When does the wifi password rotate?")
    assert [(hit.later_note, hit.earlier_note) for hit in hits] == [(None, None)] * 2
    assert memory.recall("When does the wifi password rotate?").content == "Mondays"


def named(memory: Memory, **options: Any) -> set[str]:
    """The hits and what is named on them."""
    hits = memory.search(ASK, **options)
    return {hit.chunk_id for hit in hits} | {
        hit.later_note.chunk_id for hit in hits if hit.later_note is not None
    }


def test_a_note_of_before_or_less_trusted_or_filtered_out_is_not_shown(memory: Memory) -> None:
    assert noted(memory, "2025-12-05", NEWER) not in named(memory)
    newer = noted(memory, "2026-03-05", f"{NEWER} He fishes.", tags=["house"])
    assert newer in named(memory)
    assert newer in named(memory, filters=Filters(end="2026-03-06"))
    for filters in (
        Filters(end="2026-02-28"),
        Filters(chunk_type="decision"),
        Filters(trust="trusted", tags_any=("x",)),
    ):
        assert newer not in named(memory, filters=filters)
    assert newer not in named(memory, as_of="2026-02-20")
    memory.store.update_chunk(newer, metadata={"origin": "web", "trust": "untrusted"})
    assert newer not in named(memory)
    memory.store.update_chunk(newer, metadata={"trust": "quarantined"})
    assert newer not in named(memory)


def test_a_note_of_another_namespace_is_not_looked_up(memory: Memory, place: str) -> None:
    with Memory.open(place, namespace="elsewhere") as other:
        noted(other, "2026-03-05", NEWER)
    (hit,) = memory.search(ASK)
    assert hit.later_note is None


@pytest.mark.parametrize(
    ("older", "newer", "ask"),
    [
        (
            "The dye bath of the wool runs at 84 °C.",
            "With the new pots, the dye bath of the wool only wants 78 °C.",
            "temperature of the dye bath",
        ),
        (
            "The lathe gets oil every 2500 h.",
            "The maker cut the oil interval for the lathe from 2500 to 2000 h.",
            "How often does the lathe get oil?",
        ),
        ("Ilkay's desk is in room 3.14.", "Seats: Oda 2.02, Ilkay 5.20.", "In which room does Ilkay sit?"),
        (
            "The parcels are packed in foam.",
            "The parcels went from foam to straw, which saves a third and smells better.",
            "What are the parcels packed in?",
        ),
        ("Kiln 3 takes cone 6.", "Kiln 3 gets cone 9 with the stoneware.", "cone of kiln 3"),
        (
            "Our web host is Larkfield.",
            "Moved all sites to Brightwater, Larkfield is cancelled.",
            "Who is our web host?",
        ),
        (
            "The night bakery uses a batch of 40 loaves.",
            "Oven trouble, we had to go down to a batch of 24 loaves at the night bakery.",
            "What batch does the night bakery use?",
        ),
        (
            "The cache TTL for menu pages is 10 minutes.",
            "Lowered menu page caching to 90 seconds.",
            "What is the cache TTL for menu pages?",
        ),
        ("We use tabs for indentation.", "Switched to spaces after the linter change.", "Tabs or spaces?"),
        ("We drink coffee at work.", "Moved on to tea last week.", "Coffee or tea at work?"),
        (
            "The lathe has a drive belt of type A42, and a 3-jaw chuck.",
            "While the varnish was drying I swapped the lathe's drive belt, there's a B44 on it.",
            "What type of drive belt does the lathe have?",
        ),
        (
            "Pupils may use their phones during break.",
            "Conference voted 23 to 8. Phones are banned during break too, for all pupils, starting immediately.",
            "May pupils use their phones during break?",
        ),
        (
            "Physio told me: knee exercises twice a week, 3 sets of 12.",
            "Physio again. Knee's better than she thought, now every other day, 4 sets.",
            "How often should I do the knee exercises?",
        ),
        (
            "Allotment plot number 27, neighbour is Mr Dvorak.",
            "We swapped plots with the Bergs, ours is now number 31.",
            "What is the number of our allotment plot?",
        ),
        (
            "Macrogen does our sequencing.",
            "The Macrogen contract ran out and was not renewed. All plates go to Novogene.",
            "Who does our sequencing?",
        ),
        (
            "Dentist booked: Dr Albrecht, Thursday 9 April at 8:15. Bring the old x-rays.",
            "Dr Albrecht's practice phoned, she's at a congress that week. Postponed my checkup to 23 April.",
            "When do I have to go to the dentist?",
        ),
        (
            "Menus are validated with schema 6.",
            "Upgraded: menus go through schema 8, draft 2020-12 works.",
            "Which schema validates the menus?",
        ),
    ],
    ids=[
        "asked in keywords",
        "a figure that looks like a year",
        "a possessive",
        "a third that is a fraction",
        "search terms",
        "no word of the question",
        "a number after of",
        "an abbreviation that the later note lacks",
        "another option",
        "another option, in passing",
        "a change during an activity",
        "an additional thing from now on",
        "a comparison with a thought",
        "a verb before the thing",
        "a phrase for an end",
        "a change without a word of the question",
        "a dated draft",
    ],
)
def test_the_later_of_two_notes_comes_first(memory: Memory, older: str, newer: str, ask: str) -> None:
    noted(memory, "2026-01-05", older)
    noted(memory, "2026-03-05", newer)
    assert texts(memory, memory.search(ask))[0] == newer


@pytest.mark.parametrize(
    "newer",
    [
        "Has Larkfield been cancelled? Their page says so.",  # a question
        "Larkfield Road is closed, the florist of Dock Street, the baker and Ms Okafor moved to Brightwater.",
    ],
)
def test_a_note_without_a_word_of_the_question_stays_second_if_it_may_say_anything_else(
    memory: Memory, newer: str
) -> None:
    older = "Our web host is Larkfield, account 4417, paid by Ms Okafor every March from the shop account."
    noted(memory, "2026-01-05", older)
    noted(memory, "2026-03-05", newer)
    assert texts(memory, memory.search("Who is our web host?"))[0] == older


def test_a_change_without_a_word_of_the_question_stays_behind_if_it_is_of_another_place(
    memory: Memory,
) -> None:
    older = "Dentist in Husum booked: Dr Albrecht, Thursday 9 April at 8:15."
    noted(memory, "2026-01-05", older)
    noted(
        memory,
        "2026-03-05",
        "Dr Albrecht phoned from the practice at Kiel. Postponed the checkup there to 23 April.",
    )
    assert texts(memory, memory.search("When do I have to go to the dentist in Husum?"))[0] == older


@pytest.mark.parametrize(
    ("older", "newer", "ask"),
    [
        (
            "Der Wirt von Nora ist Herr Unger.",
            "Der Wirt von Noras Schwester ist jetzt Herr Pohl.",
            "Wer ist der Wirt von Nora?",
        ),
        ("Das Boot heißt Möwe.", "Das ist das Haus, das heißt das Café daneben.", "Wie heißt das Boot?"),
        (
            "Die Apotheke ist in der Mühlgasse.",
            "Die Post ist in der Schulgasse, das ist neu.",
            "Wo ist die Apotheke?",
        ),
    ],
)
def test_articles_of_a_foreign_question_tie_no_other_note_to_it(
    memory: Memory, older: str, newer: str, ask: str
) -> None:
    noted(memory, "2026-01-05", older)
    noted(memory, "2026-01-06", "Der Hausmeister heißt Herr Zander.")
    noted(memory, "2026-01-07", "Die Werkstatt hat bis 17 Uhr offen.")
    noted(memory, "2026-03-05", newer)
    assert texts(memory, memory.search(ask))[0] == older


@pytest.mark.parametrize(
    ("older", "newer", "ask"),
    [
        ("We print the posters at Falk & Roth.", "Falk & Roth has shut its doors, Lindner is our printer.",
         "Where do we print the posters?"),
        ("Deploy\nThe deploy is on Tuesday.", "Deploy day\nThe deploy day is Thursday now.", "When is the deploy?"),
        ("Our in-house billing library is called pennywise.",
         "A letter about a trademark came. So pennywise was renamed to coinpurse.",
         "What is our billing library called?"),
        ("Class CE has lunch at 11:45.", "Lunch, new times:\n– CP: 11:30\n– CE: 12:20\n– CM: 13:00",
         "When does class CE have lunch?"),
        ("Macrogen does our sequencing.", "The Macrogen contract was not renewed. All plates go to Novogene.",
         "Who does our sequencing?"),
    ],
    ids=[
        "the name of the answer, and few words of the question", "a longer title without a further name",
        "it ends the answer, and shares no more than a word", "a list with labels that belongs to no conversation",
        "a name that opens the answer",
    ],
)  # fmt: skip
def test_a_later_note_that_is_tied_to_the_answer_comes_first(
    memory: Memory, older: str, newer: str, ask: str
) -> None:
    noted(memory, "2026-01-05", older)
    chunk_id = noted(memory, "2026-03-05", newer)
    assert memory.search(ask)[0].chunk_id == chunk_id


@pytest.mark.parametrize(("title", "first"), [("Rowing club", 1), ("Cooking", 0)])
def test_a_note_with_few_words_of_the_question_comes_first_only_from_the_folder_that_is_asked_about(
    memory: Memory, title: str, first: int
) -> None:
    older, newer = (
        "We print the posters at Falk & Roth.",
        "Falk & Roth has shut its doors, Lindner is our printer.",
    )
    noted(memory, "2026-01-05", older, provenance={"title": "Rowing club"})
    noted(memory, "2026-03-05", newer, provenance={"title": title})
    found = texts(memory, memory.search("Where does the rowing club print the posters?"))
    assert found[0] == (older, newer)[first]


def test_an_article_on_another_thing_changes_nothing(memory: Memory) -> None:
    first = noted(memory, "2026-01-07", "Hanna Lind\nHanna Lind is a Swedish violinist and composer.")
    quartet = "The Lind Quartet is a string quartet, which the violinist and composer Hanna Lind leads today."
    noted(memory, "2026-02-07", f"Lind Quartet\n{quartet}")
    hit = memory.search("Which instrument does Hanna Lind play?")[0]
    assert (hit.chunk_id, hit.later_note) == (first, None)
    newer = noted(memory, "2026-03-07", "Hanna Lind\nHanna Lind is a Swedish cellist now, and a composer.")
    assert memory.search("Which instrument does Hanna Lind play?")[0].chunk_id == newer


def test_later_notes_are_looked_up_for_the_note_of_the_answer_though_another_is_the_first_hit(
    memory: Memory,
) -> None:
    first = noted(memory, "2026-01-06", "Release 5.2 is live.")
    noted(memory, "2026-01-07", "Grandma lives in Leeds.")
    noted(memory, "2026-03-05", "Helped Grandma unpack the last boxes in her new flat in York.")
    ask = "Where does Grandma live?"
    assert memory.search(ask)[0].chunk_id == first
    answer = memory.recall(ask)
    assert answer.content is None
    assert "York" in str(answer.suggestion)


def test_a_note_that_shares_a_word_with_a_long_one_by_chance_does_not_come_before_it(memory: Memory) -> None:
    older = noted(
        memory,
        "2026-01-05",
        "Kiln 3 is for raku in the yard only, it burns propane from the blue rack, and two spare bottles stand beside "
        "it at every firing.",
    )
    noted(memory, "2026-03-05", "The raku evening is cancelled, the new date is 6 September.")
    ask = "How many spare gas bottles should stand ready at a raku firing?"
    assert memory.search(ask)[0].chunk_id == older


@pytest.mark.parametrize(
    ("earlier", "later", "asked"),
    [
        (
            "Our dentist is Dr. Ito on Main Street\nThe dentist opens at nine",
            "Our dentist is now Dr. Cho in Hill Lane, and no longer Dr. Ito\nThe dentist opens at eight",
            "Who is our dentist?",
        ),
        (
            "Standup is at 9:30 on workdays\nThe standup room is B2",
            "We hold the standup at 10:15 now\nThe standup room is B2, as always before",
            "When is the standup on workdays?",
        ),
    ],
)
def test_the_first_line_of_a_note_is_no_title_of_an_article(
    memory: Memory, earlier: str, later: str, asked: str
) -> None:
    noted(memory, "2026-01-07", earlier)
    newer = noted(memory, "2026-03-07", later)
    assert memory.search(asked)[0].chunk_id == newer
