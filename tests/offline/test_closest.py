"""Without an answer the offline model returns the closest memories; quotations; programs that fit a screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.conftest import Clock
from tests.offline.ranked import closest_to

from rlm_mem.models.base import Message
from rlm_mem.offline import OfflineLLM
from rlm_mem.offline.extraction import piece
from rlm_mem.offline.kinds import has_form
from rlm_mem.offline.passages import Passage, Reading, Sentence
from rlm_mem.offline.question import analyse_question
from rlm_mem.offline.reader import read
from rlm_mem.offline.times import moments
from rlm_mem.offline.weights import load_weights
from rlm_mem.recall.recall import RecallOperation, RecallResult
from rlm_mem.sandbox.functions import StoreFunctions
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.text.languages import language_of

Ask = Callable[..., RecallResult]


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Ask]:
    """Ask about notes kept in files: what is read from passages does not depend on where they are kept."""
    with ChunkStore(tmp_path / "memory", clock=Clock()) as store:

        def asked(question: str, *notes: str) -> RecallResult:
            for note in notes:
                store.create_chunk(note)
            return RecallOperation(store, OfflineLLM()).recall(question)

        yield asked


def test_related_memories_without_an_answer_are_returned_as_closest(ask: Ask) -> None:
    result = ask(
        "How heavy is the heron sculpture?",
        "The heron sculpture stands in the yard of the town hall.",
        "Bread is baked on Fridays.",
    )
    assert result.outcome == "closest only"
    assert result.content is None
    assert "heron sculpture" in result.sources[0].excerpt
    assert len(result.sources) == 1
    assert str(result).startswith("No memory clearly answers the question. These come closest.\n")
    # How sure it is that there is no answer is said neither as that of an answer nor as if nothing were held.
    assert "heron sculpture" in str(result).splitlines()[-1]


def _told(number: int, text: str) -> Passage:
    return Passage(f"chunk-{number}", text, at=datetime(2026, 3, number, tzinfo=UTC))


_OF_A_SHOP = (
    "The lease of the shop ends in June.",
    "Saturday takings were good, rain on Sunday.",
    "New shelves came, two of them bent.",
    "Owen repaired the till drawer.",
    "Window cleaned, flyers printed for spring.",
    "Our shop cat sleeps on the parcels.",
    "A pallet of lamps arrived broken; claim sent to the carrier Brandvold.",
    "Parcels for the fair are packed.",
    "Heating serviced, filter replaced.",
    "Brandvold accepts the claim: 210 euros, by the end of the month.",
)


def test_a_later_note_that_goes_on_from_the_nearest_is_among_the_first_three() -> None:
    notes = [_told(number, text) for number, text in enumerate(_OF_A_SHOP, 1)]
    found = closest_to("What did we get for the broken lamps of the pallet?", notes)
    assert found[0].chunk_id == "chunk-7"
    assert "chunk-10" in [one.chunk_id for one in found[:3]]


def test_an_earlier_note_with_the_same_rare_words_does_not_go_on_from_the_nearest() -> None:
    texts = (_OF_A_SHOP[-1], *_OF_A_SHOP[:-1])
    notes = [_told(number, text) for number, text in enumerate(texts, 1)]
    found = closest_to("What did we get for the broken lamps of the pallet?", notes)
    assert [one.chunk_id for one in found] == ["chunk-8"]


def test_a_word_of_the_question_with_another_short_ending_relates_a_note() -> None:
    notes = [
        _told(1, "Graduate office shifted my defence: 18 September at 10:00."),
        _told(2, "Mowed the lawn."),
    ]
    found = closest_to("Where will I defend?", notes)
    assert [one.chunk_id for one in found] == ["chunk-1"]


def test_words_of_a_path_are_found_in_it() -> None:
    notes = [
        _told(1, "The file of the old tariff lies in the attic."),
        _told(2, "Leave internal/schema/legacy.go alone, the invoices read it."),
    ]
    found = closest_to("Why is internal/schema/legacy.go off limits?", notes)
    assert found[0].chunk_id == "chunk-2"


def test_a_quoted_sentence_continues_as_far_as_its_note_has_words_of_the_question(ask: Ask) -> None:
    result = ask(
        "What did Ulla do about the boiler's alarm 17?",
        "Boiler showed alarm 17. Ulla: pressure too low, topped up to 1.4 bar.",
        "The garden gate squeaks.",
    )
    assert result.content is None or "1.4 bar" in result.content
    assert result.confidence <= 0.6 or result.content is None


@pytest.mark.parametrize(
    ("question", "note", "answer"),
    [
        ("How much RAM has the test server?", "The test server has 4 CPUs and 16 GB of RAM.", "16 GB"),
        ("Who must be told of copies?", "Anything about copies must be told to Mr. Stahl.", "Mr. Stahl"),
    ],
)
def test_a_figure_is_of_the_thing_asked_for_and_a_person_no_pronoun(
    ask: Ask, question: str, note: str, answer: str
) -> None:
    result = ask(question, note)
    assert result.content is not None
    assert answer in result.content


def test_a_number_that_something_gets_is_no_count(ask: Ask) -> None:
    result = ask(
        "What number do calendars without a code get?",
        "212 calendars have no code. They get a number of our own that begins with 29.",
    )
    assert result.content is None or "29" in result.content


def test_closest_memories_share_the_subject_where_one_does(ask: Ask) -> None:
    result = ask("How old is Mia?", "Mia started school in September.", "Invoices are kept for ten years.")
    assert result.outcome == "closest only"
    assert [one.excerpt for one in result.sources] == ["Mia started school in September."]
    short = result.within(3).sources
    assert all(len(one.line) < len("Mia started school") for one in short)


def test_without_a_related_memory_the_outcome_is_not_held(ask: Ask) -> None:
    result = ask("Which violin did Ruth buy?", "Bread is baked on Fridays.")
    assert result.outcome == "not held"
    assert result.chunk_ids == []


def test_what_the_question_asks_for_does_not_relate_a_memory_to_the_name_in_it(ask: Ask) -> None:
    result = ask("What is the CEO's name?", "To reset a tenant, run `make reset NAME=acme`.")
    assert result.outcome == "not held"


def test_a_later_note_that_shares_only_function_words_does_not_go_on_from_the_nearest() -> None:
    notes = [_told(number, text) for number, text in enumerate(_OF_A_SHOP[:-1], 1)]
    notes.append(_told(10, "They were of the size to be put in there by us."))
    found = closest_to("Who are the broken lamps of the pallet to be paid by?", notes)
    assert found[0].chunk_id == "chunk-7"
    assert "chunk-10" not in [one.chunk_id for one in found]


def test_the_number_of_a_house_belongs_to_a_place_and_a_tax_is_a_percentage(ask: Ask) -> None:
    office = ask("Where is the new office?", "The new office is at 12 Harbour Street. Parking is behind it.")
    assert office.content == "at 12 Harbour Street"
    tax = ask("How much VAT do customers in Austria pay?", "Customers in Austria pay 20% VAT.")
    assert tax.content == "20% VAT"


def test_an_excerpt_is_the_stretch_that_bears_on_the_question(ask: Ask) -> None:
    filler = "The gauge reports its level every ten minutes and sleeps in between. " * 40
    notes = [f"{filler}The walrus gate {number} is painted blue. {filler}" for number in range(5)]
    result = ask("What does the walrus gate weigh?", *notes)
    assert all("walrus gate" in one.excerpt for one in result.sources) and len(result.sources) == 5
    most = [1_500] * 3 + [500] * 2
    assert all(room / 2 < len(one.excerpt) <= room for one, room in zip(result.sources, most, strict=True))


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("How many CPUs has the production database?", "The staging database has 4 CPUs and 16 GB of RAM."),
        (
            "When does the van go back after the get-out?",
            "Van for the get-in: Olli's Transit, Monday 9 Nov at 8:30.",
        ),
        ("What is the door code?", "The door code is changed every quarter."),
        ("Where is Tom from?", "Access to the archive is given by Tom after a call."),
        ("How large may a header be?", "Status 431 is sent for a header that is too large."),
        (
            "What is the default registry?",
            "Using the default registry you can switch to another registry later",
        ),
    ],
)
def test_another_subject_or_another_kind_of_figure_is_no_answer(ask: Ask, question: str, note: str) -> None:
    assert ask(question, note).outcome == "closest only"


@pytest.mark.parametrize(
    ("question", "note", "whole"),
    [
        (
            "What do the tests need?",
            "The tests need a running Redis, start it with `make redis-up` first.",
            "redis-up",
        ),
        (
            "How often is the board demo?",
            "There is a board demo every first Tuesday of the month.",
            "Tuesday of the",
        ),
    ],
)
def test_an_answer_is_not_a_fragment(ask: Ask, question: str, note: str, whole: str) -> None:
    answer = ask(question, note).content
    assert answer is not None
    assert whole in answer


def test_lines_of_a_wrapped_paragraph_are_one_sentence(ask: Ask) -> None:
    wrapped = "The heron module was written in the summer of 1987 by Ratcliff under the\nname Blue Lagoon and renamed."
    answer = ask("Under which name was the heron module written?", wrapped).content
    assert answer is not None
    assert "Blue Lagoon" in answer


@pytest.mark.parametrize(
    ("question", "note", "fact"),
    [
        ("Wie heißt der Drucker im Keller?", "Der Drucker im Keller heißt Minerva.", "Minerva"),
        (
            "Wann ist das Fest?",
            "Das Fest ist am 12. Dezember im Keller. Es gibt Suppe.",
            "12. Dezember im Keller",
        ),
        ("Sur quel port tourne le serveur ?", "Le serveur tourne sur le port 8093.", "8093"),
        ("¿Dónde guarda Lucía las llaves?", "Lucía guarda las llaves en el cajón azul.", "cajón azul"),
        ("Где стоит сервер копий?", "Сервер копий стоит в Новосибирске.", "Новосибирске"),
        ("على أي منفذ يعمل الخادم؟", "يعمل الخادم على المنفذ 7070.", "7070"),
        ("परीक्षण सर्वर कहाँ रखा है?", "परीक्षण सर्वर मुंबई में रखा है।", "मुंबई"),
        ("测试服务器放在哪里?", "测试服务器放在杭州的机房里。", "杭州"),
        ("会議はいつ始まりますか?", "会議は毎週火曜日の十時に始まります。", "火曜日"),
    ],
)
def test_a_question_in_another_language_is_answered_by_a_quotation(
    question: str, note: str, fact: str
) -> None:
    reading = read(
        analyse_question(question), [Passage("chunk-1", note), Passage("chunk-2", "Bread is baked.")]
    )
    assert reading.answer is not None
    assert fact in reading.answer
    assert reading.answer in note


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("Wie alt ist Frau Keller?", "Frau Keller leitet die Buchhaltung."),
        ("Сколько стоит приложение?", "Ольга отвечает за приложение."),
        ("王芳住在哪里?", "王芳负责客户支持。"),
    ],
)
def test_a_sentence_about_something_else_is_not_quoted(question: str, note: str) -> None:
    assert read(analyse_question(question), [Passage("chunk-1", note)]).answer is None


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where is it?", "english"),
        ("Wo ist der Schlüssel?", "german"),
        ("Budget Q3?", "english"),
        ("", "english"),
        ("Quand déploie-t-on ?", "french"),
        ("On déploie quand ?", "french"),
        ("Warum PostgreSQL?", "german"),
        ("¿Cuándo?", "spanish"),
        ("Comment on PR 5", "english"),
        ("Where is the dove?", "english"),
    ],
)
def test_the_language_of_a_question(text: str, language: str) -> None:
    assert language_of(text) == language


def test_a_program_fits_on_a_screen() -> None:
    question = "When did Lena put up the first gauge at Mill Bridge?"
    text = OfflineLLM().complete([Message("user", f"<question>\n{question}\n</question>")]).text
    assert len(text.splitlines()) <= 15


def test_passages_come_with_their_heading_what_was_said_before_and_what_replaced_them(
    store: ChunkStore,
) -> None:
    # What is said before stands in the text, the heading above it.
    store.create_chunk(
        "# Pump\n\nIt was bought in May.\n\nThe pump needs oil.\n\n## Valve\n\nThe valve is blue. "
        + "x " * 400
    )
    old = store.create_chunk("The depot opens at nine.")
    new = store.create_chunk("From March on everything starts an hour later.")
    store.update_chunk(old.id, metadata={"superseded_by": new.id})
    read_ids: list[str] = []
    functions = StoreFunctions(store, read_ids.append)
    valve = functions.passages("blue valve")[0]
    assert valve["heading"] == "Pump / Valve"
    depot = {one["chunk_id"]: one for one in functions.passages(["when does the depot open"])}
    assert depot[old.id]["superseded_by"] == new.id
    assert new.id in depot
    assert {old.id, new.id} <= set(read_ids)


@pytest.mark.parametrize(
    ("question", "text", "fits"),
    [
        ("What time is the review?", "Bea: the review has moved to the week of 20 April", False),
        ("What time is the review?", "Bea: the review is at half past ten", True),
        ("Which port does the pooler listen on?", "Bea: the pooler is fine with version 1.4.2", False),
        ("Which port does the pooler listen on?", "Bea: the pooler listens on 6432", True),
        ("On which day is the review?", "Bea: the review is in April 2026", False),
        ("On which day is the review?", "Bea: the review is every Thursday", True),
        ("How much does the oven cost?", "Bea: the oven costs us 11 working days", False),
        ("How much does the oven cost?", "Bea: the oven costs 540 euros", True),
    ],
)
def test_an_answer_has_the_form_that_the_question_asks_for(question: str, text: str, fits: bool) -> None:
    assert has_form(analyse_question(question), text) is fits
    read_from = [
        Passage("a", text.removeprefix("Bea: "), "Bea", score=3.0),
        Passage("b", "Hello!", "Cy", score=1.0),
    ]
    if not fits:
        assert read(analyse_question(question), read_from).answer is None


@pytest.mark.parametrize(
    ("question", "note", "answer"),
    [
        ("When does the ferry leave?", "The ferry leaves at nine.", "at nine"),
        ("When does the shop close?", "The shop closes at half past six on Fridays.", "at half past six"),
        ("When does the ferry leave?", "The ferry leaves at nine places a coat of salt.", None),
        ("Who wrote the import of CSV files?", "Grace wrote the import of CSV files.", "Grace"),
        ("Who drew the map of the harbour?", "Measure the harbour, the map is old.", None),
        ("Who is the captain of the ferry?", "The ferry leaves at nine.", None),
        ("Who is the mayor of Porto?", "The mayor of Porto remains Ruth.", "Ruth"),
        ("Who is the mayor of Porto?", "The mayor of Porto, elected in May, is Ruth.", "Ruth"),
        ("Who is the mayor of Porto?", "Ruth, the mayor of Porto, met Tom.", "Ruth"),
        ("Who is the captain of the harbour?", "Anna is the head of the harbour.", None),
    ],
)
def test_hours_in_words_and_whoever_does_what_is_asked_for(
    question: str, note: str, answer: str | None
) -> None:
    reading = read(analyse_question(question), [Passage("a", note), Passage("b", "Bread is baked.")])
    told = reading.answer if reading.answerable >= load_weights().bar else None
    assert told == answer or (answer is not None and told is not None and told.startswith(answer))


@pytest.mark.parametrize("scale", [0.1, 1.0, 40.0])
def test_a_reading_does_not_depend_on_the_scale_of_the_scores(scale: float) -> None:
    said = [
        "I moved to Porto in May, I love it.",
        "What about the car?",
        "I sold the car to a dentist from Braga.",
    ]
    authors = ["Ana", "Ben", "Ana"]
    plain, scaled = (
        read(
            analyse_question("Who bought the car from Ana?"),
            [
                Passage(str(n), text, author, score=7 + by * (3 - n))
                for n, (text, author) in enumerate(zip(said, authors, strict=True))
            ],
        )
        for by in (1.0, scale)
    )
    assert plain.answer == scaled.answer
    assert abs(plain.answerable - scaled.answerable) < 1e-3
    assert abs(plain.confidence - scaled.confidence) < 1e-3


SAID = [
    ("Ines", "Graham retires in June. His successor as deputy is Yasmin Cole."),
    ("Jonas", "Kestrel Circuits in Gdańsk quoted for the boards. Contact there is Wojtek."),
    ("Marta", "Hexwick signed last night! Ten gauges, delivery by 30 September."),
    ("Tobias", "I have had my first coffee since March."),
    ("Jonas", "Measure gaskets."),
    ("Jonas", "Gaskets from now on come from Trelleborg, they make them of silicone."),
    ("Priya", "Thirty gauges at one reading every five minutes is about 3.2 million rows a year."),
    ("Priya", "I have gone vegan since Lent, so no cheese for me any more."),
    (
        "Jonas",
        "The police rang this morning: they have found my bicycle! It was in the canal by the brewery.",
    ),
    ("Lena", "Also Tobias dropped the spectrum analyser in the Wend."),
    ("Lena", "Mill Bridge is on the phone list. I am away from 13 to 24 July."),
]


def _team(question: str) -> str:
    said = [
        Passage(str(n), text, author, datetime(2026, 7, 9, 12, tzinfo=UTC), score=2.0)
        for n, (author, text) in enumerate(SAID)
    ]
    reading = read(analyse_question(question), said)
    return reading.answer if reading.answer is not None and reading.answerable >= load_weights().bar else ""


@pytest.mark.parametrize(
    ("question", "fact", "wrong"),
    [
        ("Who takes over from Graham?", "", "June"),
        ("Who is the contact at Kestrel Circuits?", "Wojtek", "Gdańsk"),
        ("Who makes the gaskets now?", "", "Measure"),
        ("When did Hexwick sign?", "8 July 2026", "September"),
        ("When did Tobias have his first coffee?", "", "March"),
        ("How many rows a year do thirty gauges make?", "3.2 million", "hirty gauges"),
        ("How many gauges did Hexwick return?", "", "en"),
        ("Where was Jonas's bicycle found?", "canal", "police"),
        ("Is Priya vegan?", "Yes", "No"),
        ("What did Tobias drop into the Wend?", "spectrum analyser", ""),
        ("What is the phone number of Mill Bridge?", "", "i"),
        ("How long is Lena away?", "", "24 July 2026"),
    ],
)
def test_an_answer_is_of_the_kind_that_is_asked_for(question: str, fact: str, wrong: str) -> None:
    answer = _team(question)
    assert fact in answer
    assert not wrong or wrong not in answer


def test_a_weekday_named_on_that_day_is_not_said_to_come_after_it() -> None:
    monday = datetime(2026, 3, 2, 10, tzinfo=UTC)
    assert [one.words for one in moments("I move the test data over on Monday.", monday)] == ["2 March 2026"]


def read_from(question: str, *texts: str, part: bool = False) -> Reading:
    """The reading of a question from notes, or from parts of one document, told a day after the other."""
    return read(
        analyse_question(question),
        [
            Passage(
                f"chunk-{number}",
                text,
                at=datetime(2026, 5, 1 + number, tzinfo=UTC),
                score=9.0 - number,
                part=part,
            )
            for number, text in enumerate(texts)
        ],
    )


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("The review moved to Wednesday at 15:00.", "Wednesday at 15:00"),
        ("The review is from Monday to Friday.", "from Monday to Friday"),
        ("The review is at 9:00 to 17:00.", "9:00 to 17:00"),
    ],
)
def test_a_time_is_given_without_the_preposition_before_it(text: str, answer: str) -> None:
    assert read_from("When is the review?", text).answer == answer


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("Do we still use Solr?", "Solr was removed in favour of Typesense.", "No: "),
        ("Was Solr removed?", "Solr was removed in favour of Typesense.", "Yes: "),
        ("Is it safe to deploy on Fridays?", "It ain't safe to deploy on Fridays.", "No: "),
        # Words that deny in another language only.
        ("Does Ana play tennis on Mondays?", "Ana plays tennis on Mondays with Sem.", "Yes: "),
        ("Does Ben sell cakes?", "Ben sells cakes at the bar Mai Tai.", "Yes: "),
        (
            "Who is in the review rotation?",
            "The review rotation: Linn, Marek and Saga.",
            "Linn, Marek and Saga",
        ),
        (
            "When are the keys rotated next?",
            "Keys are rotated every 90 days; the next rotation: 12 May.",
            "12 May",
        ),
    ],
)
def test_the_whole_of_what_a_note_says_is_the_answer(question: str, text: str, answer: str) -> None:
    found = read_from(question, text).answer
    assert found is not None
    assert answer in found


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("How old is Hanna?", "Hanna told Priya that the bonus is 6 % this year."),
        ("How many people are in the Berlin office?", "Three more people joined the Berlin office."),
        ("Why did Yusuf leave the company?", "Yusuf wrote the sync. He left the company in April."),
        (
            "Why does the heron limit fail on small files?",
            "It takes time, so the heron limit fails on small files.",
        ),
    ],
)
def test_a_figure_of_something_else_and_the_event_itself_are_no_answers(question: str, text: str) -> None:
    found = read_from(question, text).answer
    assert found is None or "takes time" in found


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (
            "Which backends does heronlib have?",
            "The heronlib parser takes a parameter to control the backends.",
        ),
        (
            "What does ExitEarly false do in heronlib?",
            "By default, heronlib will exit after logging an error. If this is not the behavior you want, set "
            "`ExitEarly = false`.",
        ),
        (
            "In which pass does heronfsck discard blocks?",
            "heronfsck reports blocks in pass 1.\nThe inodes are counted.\nNames are read.\nLinks to discard follow.",
        ),
        (
            "How long is a month in the policy of Heron?",
            "1. Heron has a policy for fixes.\n2. A month of the policy of Heron goes by the Node version.\n"
            "3. The policy of Heron is public.",
        ),
        (
            "How do I take a read lock with heronlock?",
            "The shell opens the lock file and heronlock takes the read lock of the descriptor.",
        ),
        (
            "How many old logs does heronlog keep?",
            "This is useful if it keeps old logs.\nIf it cannot write the state, heronlog will exit with 3.",
        ),
        ("Why does heronlock open high ports?", "heronlock opens high ports to be used for this purpose."),
    ],
)
def test_a_sentence_of_a_document_that_only_has_the_words_is_no_answer(question: str, text: str) -> None:
    assert read_from(question, text, part=True).answer is None


def test_which_people_asks_for_names() -> None:
    text = "Heronlock was first made by Bob Stone and Ana Reed around 1980."
    assert read_from("Which two people first made heronlock?", text).answer == "Bob Stone and Ana Reed"


def test_a_part_of_a_document_is_not_told_again_by_a_later_part() -> None:
    first = "The heron pump has a pressure of 4 bar."
    later = "Heron pump: pressure changed from 5 to 6 bar."
    asked = "How much pressure has the heron pump?"
    assert read_from(asked, first, later).answer != "4 bar"
    assert read_from(asked, first, later, part=True).answer == first.rstrip(".")


def test_a_sentence_of_a_document_is_quoted_only_with_a_part_of_the_kind_asked_for() -> None:
    asked, text = "What does the heron pump do at night?", "At night the heron pump rinses its filter."
    assert read_from(asked, text).answer == text.rstrip(".")
    assert read_from(asked, text, part=True).answer is None


def test_a_name_with_inner_capitals_has_the_words_of_its_parts(ask: Ask) -> None:
    found = ask("Which linter do we use?", "The API is in Graz.", "We use ESLint with the rules of Ostrom.")
    assert found.outcome != "not held"
    assert "ESLint" in found.sources[0].excerpt


def test_a_figure_beside_the_words_of_the_question_is_not_sure() -> None:
    asked = "How much do we owe the Belmonte estate for the barrels?"
    apart = read_from(asked, "The Belmonte estate wants barrels in June. Everybody owes us 7 per cent.")
    whole = read_from(asked, "We owe the Belmonte estate 310 euros for the barrels.")
    assert (apart.answer, whole.answer) == ("7 per cent", "310 euros for the barrels")
    assert apart.confidence <= 0.6 < whole.confidence


def test_a_later_note_must_be_about_what_is_asked() -> None:
    found = read_from(
        "On what date does Amina begin?",
        "We decided against Oskar; the offer goes to Amina, start 1 September.",
        "Amina will get a Framework instead of a Dell.",
    )
    assert found.answer == "1 September"


def test_closest_memories_have_the_name_and_the_kind_of_thing_asked_for(ask: Ask) -> None:
    result = ask(
        "Until when is Ivo away?",
        "Saga is away on Thursday afternoons.",
        "Ivo eats everything.",
        "Ivo is on parental leave from 1 August until the end of the year.",
    )
    assert result.outcome == "closest only"
    assert "parental leave" in result.sources[0].excerpt


def test_a_memory_whose_words_another_one_has_in_every_line_is_still_among_the_closest(ask: Ask) -> None:
    fillers = [f"Shelf {number} was dusted." for number in range(40)]
    repeated = "\n".join(f"- alder pump: check {number} done" for number in range(25))
    result = ask("How loud is the alder pump?", *fillers, repeated, "The alder hums in the corner of hall 3.")
    assert result.outcome == "closest only"
    assert [one.excerpt[:9] for one in result.sources] == ["- alder p", "The alder"]


@pytest.mark.parametrize(
    ("question", "near", "others"),
    [
        (
            "Warum waren die Platten für Tann krumm?",
            "Reklamation Möbelhaus Tann: 14 Tischplatten verzogen, weil sie im Regen standen.",
            ("Möbelhaus Tann nimmt die Gutschrift an.", "Die Waage war falsch, Herr Tann weiß es."),
        ),
        (
            "¿Quién cuida las colmenas del túnel?",
            "Colmena del túnel: las cuidan Nieves y Driss.",
            ("El túnel se riega a las seis.", "Los plásticos del túnel se cambian."),
        ),
    ],
)
def test_in_another_language_the_memory_with_most_words_of_the_question_is_closest(
    question: str, near: str, others: tuple[str, ...]
) -> None:
    passages = [Passage(text, text, score=3.0 - place) for place, text in enumerate((*others, near))]
    assert closest_to(question, passages)[0].text == near


def test_words_of_a_passage_count_more_than_the_name_of_its_document() -> None:
    def part(document: str, text: str, score: float) -> Passage:
        return Passage(text, text, "", score=score, part=True, document=document, conversation_id=document)

    found = closest_to(
        "Which exit code does the walrus report give?",
        [
            part("walrus.md", "The walrus report is a table.", 1.0),
            part("options.md", "The report gives the exit code 2.", 1.0),
            part("more.md", "Something else entirely.", 0.5),
        ],
    )
    assert found[0].document == "options.md"


def test_words_in_other_lines_of_a_memory_bring_it_closer() -> None:
    found = closest_to(
        "Which valve keeps the alder pump from overheating?",
        [
            Passage("other", "The alder pump hums.", score=1.05),
            Passage("whole", "The alder pump turns.", score=1.0),
            Passage("whole", "A valve against overheating is beside it.", score=0.4),
        ],
    )
    assert [one.chunk_id for one in found] == ["whole", "other"]


@pytest.mark.parametrize(
    ("question", "note"),
    [
        ("When does a HeronFile become real?", "# lib.HeronFile.close\n\nFlush the object and end."),
        ("Why do we not use UUIDs?", "We use ULIDs for ids, UUIDv4 fragmented the index."),
    ],
    ids=["a name in a heading", "a word that begins alike"],
)
def test_what_relates_a_memory(ask: Ask, question: str, note: str) -> None:
    assert ask(question, note).outcome == "closest only"


def test_the_label_of_a_note_does_not_hide_a_word_of_the_question(ask: Ask) -> None:
    result = ask(
        "How do I start the services for local development?",
        "Local TLS: mkcert, with an entry in the hosts file.",
        "For local runs start the database outside Docker.",
        "The service of the heron began in May.",
        "API keys start with a letter.",
    )
    assert "outside Docker" in result.sources[0].excerpt


def test_an_excerpt_prefers_different_words_of_the_question_and_wastes_no_room_on_blanks(ask: Ask) -> None:
    repeated = "The walrus timeout is a timeout; a timeout ends a walrus timeout.\n" * 25
    table = "".join(f"    {number:>40}    walrus lock, shared\n" for number in range(12))
    told = "The walrus timeout fails at once with the status 124.\n"
    result = ask("With which status does the walrus timeout fail?", repeated + told + table)
    assert "124" in result.sources[0].excerpt
    result = ask("What are the walrus locks shared?", f"{'Gauges. ' * 60}\n{table}")
    assert "11 walrus lock" in result.sources[0].excerpt


def test_a_percentage_is_given_whole_and_a_plot_is_no_person() -> None:
    rate = Sentence("Rights cleared, 7 per cent of box office.", 0)
    found = piece(analyse_question("How much of the box office do they get?"), rate, None)
    assert found is not None and found.text == "7 per cent"
    grave = Sentence("The funeral of Edith is on Friday, burial in plot C14.", 0)
    assert piece(analyse_question("Who took the funeral of Edith?"), grave, None) is None
    joined = Sentence("New joiner from 16 Feb, takes over billing.", 0)
    assert piece(analyse_question("Who took the billing work over?"), joined, None) is None
