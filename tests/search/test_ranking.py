"""Ranking: which of several memories comes first, and why."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rlm_mem.errors import InvalidQuery
from rlm_mem.search import Hit, features, ranking, search
from rlm_mem.search.ranking import ONE_SIDED, TALK, WEIGHTS
from rlm_mem.store.core.chunk_store import ChunkStore

Said = tuple[str, str]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChunkStore]:
    opened = ChunkStore(tmp_path / "memory")
    yield opened
    opened.close()


def talk(store: ChunkStore, conversation: str, day: str, *lines: str) -> list[str]:
    """Store each line as a chunk of one conversation, a minute apart."""
    return [
        store.create_chunk(
            line, "note", conversation_id=conversation, occurred_at=f"{day}T10:{minute:02d}:00Z"
        ).id
        for minute, line in enumerate(lines)
    ]


def first(store: ChunkStore, question: str) -> Hit:
    return search(store, question, limit=5, explain=True)[0]


def test_a_turn_with_the_word_is_shown_before_a_question_about_it_in_a_chat_of_two_turns(
    store: ChunkStore,
) -> None:
    store.create_chunk("Ana: I moved to Porto\nBen: How is it?", "note", conversation_id="c")
    assert search(store, "porto")[0].snippet == "Ana: I moved to Porto"


def test_the_answer_to_a_matching_question_is_found_though_it_shares_no_word(store: ChunkStore) -> None:
    ids = talk(
        store, "c1", "2023-05-01",
        "Ann: Lovely weather.", "Bob: Which instrument did you pick for the orchestra?",
        "Ann: The oboe, after long thought.", "Bob: See you.",
    )  # fmt: skip
    talk(store, "c2", "2023-06-01", "Ann: Dinner was nice.", "Bob: The car is fixed.", "Ann: Great news.")
    hits = [hit.chunk_id for hit in search(store, "What instrument did Ann pick for the orchestra?", limit=3)]
    assert ids[2] in hits[:2]


@pytest.mark.parametrize(
    ("question", "reply", "query"),
    [
        (
            "Wo ist der Schlüssel für den Keller?",
            "Unter der Matte vor der Tür.",
            "wo ist der schlüssel für den keller",
        ),
        ("¿Dónde está la llave del sótano?", "Debajo de la alfombra.", "dónde está la llave del sótano"),
        ("地下室的钥匙在哪里？", "在门口的垫子下面。", "地下室的钥匙在哪里"),
    ],
)
def test_a_question_in_another_language_finds_the_reply_without_its_mark(
    store: ChunkStore, question: str, reply: str, query: str
) -> None:
    for said in (f"Ana: {question}", f"Ben: {reply}", "Ana: Okay.", "Ben: See you."):
        store.create_chunk(said, "note", conversation_id="c")
    assert search(store, query)[0].snippet == f"Ben: {reply}"


def test_words_alone_find_the_line_that_has_them_and_a_question_the_reply_to_it(store: ChunkStore) -> None:
    lines = (
        "Ann: The kids are with my sister.", "Bob: Have you ever seen the canals of Ghent in autumn?",
        "Ann: Every year, the ivy on the old warehouses turns red within a few days.", "Bob: See you on Monday.",
    )  # fmt: skip
    store.create_chunk("\n".join(lines), "note", conversation_id="c1")
    for number in range(12):
        store.create_chunk(
            f"Ann: Dinner number {number} was nice.\nBob: The car is fixed again, and the garage cheap.\nAnn: Great.",
            "note",
        )
    assert first(store, "autumn ghent").snippet == lines[1]
    assert first(store, "Have you seen Ghent in autumn?").snippet == lines[2]


def test_what_the_named_person_says_comes_before_the_same_words_of_another(store: ChunkStore) -> None:
    talk(store, "c1", "2023-05-01", "Bob: I adopted a cat.", "Ann: Wonderful.")
    ids = talk(store, "c2", "2023-05-02", "Ann: I adopted a cat.", "Bob: Wonderful.")
    assert first(store, "What did Ann adopt, a cat?").chunk_id == ids[0]


def test_a_month_in_the_question_prefers_what_was_said_in_it(store: ChunkStore) -> None:
    talk(store, "c1", "2023-02-10", "Ann: We went camping with the kids.")
    ids = talk(store, "c2", "2023-06-12", "Ann: We went camping with the kids again.")
    hit = first(store, "When did Ann go camping in June 2023?")
    assert hit.chunk_id == ids[0]
    assert hit.parts is not None and hit.parts["in_month"] > 0


def test_a_month_without_year_means_the_one_in_which_memories_lie(store: ChunkStore) -> None:
    talk(store, "c1", "2011-02-10", "Ann: We went camping with the kids.")
    ids = talk(store, "c2", "2011-06-12", "Ann: We went camping with the kids again.")
    assert first(store, "When did Ann go camping in June?").chunk_id == ids[0]


def test_a_class_in_the_question_finds_its_members(store: ChunkStore) -> None:
    talk(store, "c1", "2023-05-01", "Ann: The garden is wet.", "Ann: The bus was late.")
    ids = talk(store, "c2", "2023-05-02", "Ann: I practise the violin every day.")
    hit = first(store, "Which instruments does Ann know?")
    assert hit.chunk_id == ids[0]
    assert hit.parts is not None and hit.parts["related_words"] > 0


def test_a_near_miss_of_spelling_still_finds(store: ChunkStore) -> None:
    talk(store, "c1", "2023-05-01", "Ann: The bakery closes at six.")
    ids = talk(store, "c2", "2023-05-02", "Ann: The observatory opens on Friday.")
    assert first(store, "observatroy opening").chunk_id == ids[0]


def test_parts_are_named_signals_and_add_up_to_the_score(store: ChunkStore) -> None:
    talk(store, "c1", "2023-05-01", "Ann: I bought a red kayak in Oslo.", "Bob: Nice.")
    hit = search(store, "Where did Ann buy the kayak?", limit=1, by="segment", explain=True)[0]
    parts = hit.parts or {}
    assert set(parts) <= {
        *WEIGHTS,
        *TALK,
        *ONE_SIDED,
        "superseded",
        "confidence",
        "supersedes",
        "succeeded",
        "repetition",
    }
    assert sum(parts.values()) == pytest.approx(hit.score)


def test_outdated_memories_rank_below_current_ones(store: ChunkStore) -> None:
    old = store.create_chunk("The service listens on port 8080.", "fact", valid_to="2023-01-01T00:00:00Z")
    new = store.create_chunk("The service now listens on port 9090 for good.", "fact")
    hits = search(store, "Which port does the service listen on?")
    assert [hit.chunk_id for hit in hits] == [new.id, old.id]


def test_equal_memories_keep_one_order_and_unrelated_ones_are_not_hits(store: ChunkStore) -> None:
    for number in range(6):
        store.create_chunk("The mill stands by the river.", "note", conversation_id=f"c{number}")
    store.create_chunk("Quarterly figures are due.", "note", conversation_id="other")
    orders = [[hit.chunk_id for hit in search(store, "mill by the river", limit=10)] for _ in range(3)]
    assert orders[0] == orders[1] == orders[2]
    assert len(orders[0]) == 6


def test_texts_of_other_scripts_are_found_by_part(store: ChunkStore) -> None:
    chinese = store.create_chunk("我昨天在北京吃了烤鸭，非常好吃。", "note").id
    hebrew = store.create_chunk("הפגישה הבאה תהיה בירושלים ביום ראשון.", "note").id
    store.create_chunk("Nothing of interest here.", "note")
    assert first(store, "烤鸭").chunk_id == chinese
    hit = first(store, "בירושלים")
    assert hit.chunk_id == hebrew
    assert hit.snippet == "הפגישה הבאה תהיה בירושלים ביום ראשון."


def test_every_learned_weight_belongs_to_a_signal() -> None:
    known = {signal.__name__ for signal in features.SIGNALS} | {f"has_{cue}" for cue in features.CUES}
    known |= {f"{kind}:{cue}" for kind, cues in features.ASKED.items() for cue in cues}
    assert known >= {*WEIGHTS, *TALK, *ONE_SIDED}


def test_texts_that_nobody_says_are_ranked_by_words_and_dates_alone(store: ChunkStore) -> None:
    for number in range(5):
        store.create_chunk(f"Because the valve {number} stuck, is the flow lower? We think so.", "note")
    for hit in search(store, "Why is the flow at the valve lower?", explain=True):
        assert set(hit.parts or {}) <= {*WEIGHTS, "confidence", "feedback"}


def test_of_equal_matches_the_one_with_the_words_of_the_best_comes_first(store: ChunkStore) -> None:
    with store.batch():
        for number in range(3):
            store.create_chunk(
                f"Turbine blades flutter at resonance {number}: damping, torsion, stall.", "note"
            )
        for number in range(30):
            store.create_chunk(f"Letter {number} was posted and stamped on time.", "note")
        apart = store.create_chunk("Curtains flutter: garden, window, neighbour.", "note").id
        alike = store.create_chunk("Wings flutter: damping, torsion, stall.", "note").id
    hits = search(store, "turbine blades flutter resonance", explain=True)
    parts = {hit.chunk_id: dict(hit.parts or {}) for hit in hits}
    assert list(parts)[3:5] == [alike, apart]
    assert parts[alike].pop("feedback") > parts[apart].pop("feedback", 0.0)
    assert parts[alike] == parts[apart]  # by the words of the question alone they are equal
    segments = search(store, "turbine blades flutter resonance", by="segment", explain=True)
    assert segments and all("feedback" not in (hit.parts or {}) for hit in segments)


def test_a_table_that_repeats_its_own_words_gets_no_more_than_the_limit_of_feedback(
    store: ChunkStore,
) -> None:
    with store.batch():
        store.create_chunk("Turbine resonance: " + "zygote quixotic " * 400, "note")
        for number in range(60):
            store.create_chunk(f"Letter {number} was posted and stamped on time.", "note")
        store.create_chunk("The turbine hums.", "note")
    hits = search(store, "turbine resonance", explain=True)
    most = ranking.FEEDBACK * WEIGHTS["whole"] * features.MOST_SHARED
    assert max((hit.parts or {}).get("feedback", 0.0) for hit in hits) == pytest.approx(most)


def test_what_an_assistant_says_at_length_is_no_better_for_being_said_often(store: ChunkStore) -> None:
    lines = ["User: The rose?"]
    lines += [
        f"Assistant: The rose needs lime, compost, mulch and pruning, as told before ({n})." for n in range(8)
    ]
    talk(store, "c1", "2023-05-01", *lines)
    hits = search(store, "What does the rose need?", limit=20, explain=True)
    assert hits and all("feedback" not in (hit.parts or {}) for hit in hits)


def test_one_labelled_passage_does_not_make_talk_of_all_texts(store: ChunkStore) -> None:
    with store.batch():
        store.create_chunk("Turbine blades flutter at resonance: damping, torsion, stall.", "note")
        alike = store.create_chunk("Wings flutter: damping, torsion, stall.", "note").id
        for number in range(10):
            store.create_chunk(f"Curtains flutter in window {number}, and so does the washing.", "note")
    question = "turbine blades flutter resonance"

    def feedback() -> float:
        hits = {hit.chunk_id: hit.parts or {} for hit in search(store, question, limit=20, explain=True)}
        return hits[alike].get("feedback", 0.0)

    without = feedback()
    store.create_chunk("Flutter: a film about moths.", "note")
    assert "Flutter" in store.candidate_source().authors()
    assert feedback() > without * 0.8 > 0


def test_the_chunks_of_a_long_document_do_not_raise_each_other(store: ChunkStore) -> None:
    page = "\n\n".join(
        f"The {thing} of ward {{0}} is broken, and nobody knows when it will be mended."
        for thing in ("lamp", "window", "bell", "door")
    )

    def feedback(**options: str) -> float:
        with store.batch():
            ids = [store.create_chunk(page.format(number), "note", **options).id for number in range(8)]
        hits = search(store, "broken lamp", limit=20, explain=True)
        for chunk_id in ids:
            store.delete_chunk(chunk_id)
        return max((hit.parts or {}).get("feedback", 0.0) for hit in hits)

    with store.batch():
        for number in range(30):
            store.create_chunk(f"Letter {number} was posted and stamped on time.", "note")
    assert feedback(conversation_id="manual") < 0.5 * feedback()


def test_a_long_text_is_no_better_for_having_more_sentences_on_the_subject(store: ChunkStore) -> None:
    short = store.create_chunk("The heat of the plate rises with the speed of the flow.", "note").id
    aside = "Much else was measured in those years, and little of it was ever written down by anyone. "
    store.create_chunk(
        f"{aside}The plate was of steel. {aside}Speed varied. {aside * 4}The flow was slow.", "note"
    )
    assert first(store, "speed of the flow and heat of the plate").chunk_id == short


def test_a_question_about_oneself_prefers_what_was_said_of_oneself(store: ChunkStore) -> None:
    mine = store.create_chunk(
        "My trip to Lisbon is booked with the tram museum on the list, I am told.", "note"
    ).id
    store.create_chunk("A trip to Lisbon is booked with the tram museum on the list.", "note")
    for number in range(6):
        store.create_chunk(f"Trip number {number} of the school to Porto was cancelled.", "note")
    assert first(store, "Where did I book my trip to, Lisbon?").chunk_id == mine


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("What do I like?", "I like hiking."),
        ("what do I need", "I need a new saddle for the mare."),
        ("Who is Will?", "Will repairs clocks in Ghent."),
        ("two", "There were two herons on the pond."),
        ("What did May say?", "May: The ferry was late."),
    ],
)
def test_everyday_words_and_names_like_them_are_found(store: ChunkStore, question: str, wanted: str) -> None:
    for text in (
        "I like hiking.", "I need a new saddle for the mare.", "Will repairs clocks in Ghent.",
        "There were two herons on the pond.", "May: The ferry was late.", "The oven is being cleaned.",
    ):  # fmt: skip
        store.create_chunk(text, "note")
    assert first(store, question).snippet == wanted


def test_a_single_han_character_is_found_within_a_sentence(store: ChunkStore) -> None:
    cat = store.create_chunk("我家的猫喜欢吃鱼。", "note").id
    store.create_chunk("昨天北京下了大雨。", "note")
    assert [hit.chunk_id for hit in search(store, "猫")] == [cat]


def test_a_question_that_names_a_known_person_finds_what_they_say_though_no_other_word_is_known(
    store: ChunkStore,
) -> None:
    said = talk(store, "c1", "2024-05-01", "Nate: The kettle is on.", "Joanna: Lovely.")
    store.create_chunk("The oven is being cleaned, which we use a lot.", "note")
    hits = search(store, "What nickname does Nate use for Joanna?")
    assert sorted(hit.chunk_id for hit in hits) == sorted(said)


def test_headings_title_and_path_are_found_with_the_text_below_them(store: ChunkStore) -> None:
    text = "# functools\n\n## lru_cache\n\nThe default maxsize is 128.\n\n# heapq\n\nThe default maxsize is none.\n"
    store.create_chunk(text, "note")
    hit = search(store, "default maxsize of functools.lru_cache", by="segment")[0]
    assert hit.snippet == "The default maxsize is 128."
    for name, provenance in (
        ("zephyr", {"headings": ["Settings", "zephyr"]}),
        ("mistral", {"title": "The mistral handbook"}),
        ("sirocco", {"path": "pages/sirocco.md"}),
    ):
        store.create_chunk(f"The port is {len(name)}000 plus nothing.", "note", provenance=provenance)
        assert first(store, f"port of {name}").snippet.startswith(f"The port is {len(name)}000")


def test_a_question_counts_less_among_friends_than_from_somebody_who_only_asks(store: ChunkStore) -> None:
    for number in range(6):
        talk(
            store, f"c{number}", "2024-05-01",
            f"User: How do I prune apple tree number {number}?",
            f"Assistant: Cut dead wood first, then thin the crown of tree {number}. " * 12,
        )  # fmt: skip
    asked = first(store, "How do I prune the apple tree?").parts or {}
    assert asked["is_question"] + asked["asks_as_usual"] > -0.1


def test_neighbours_are_the_turns_beside_a_hit_across_chunks(store: ChunkStore) -> None:
    ids = talk(
        store, "c1", "2024-05-01", "Ann: Hello.", "Bob: Any news?", "Ann: We moved to Oslo.", "Bob: Great."
    )
    hit = search(store, "Who moved to Oslo?", limit=1, neighbours=2)[0]
    assert hit.chunk_id == ids[2]
    assert [(one.offset, one.chunk_id, one.text, one.author) for one in hit.neighbours] == [
        (-2, ids[0], "Ann: Hello.", "Ann"),
        (-1, ids[1], "Bob: Any news?", "Bob"),
        (1, ids[3], "Bob: Great.", "Bob"),
    ]
    assert search(store, "Who moved to Oslo?", limit=1)[0].neighbours == ()
    for wrong in (-1, 11, True, "2"):
        with pytest.raises(InvalidQuery, match="neighbours must"):
            search(store, "Oslo", neighbours=wrong)  # type: ignore[arg-type]


def test_neighbours_within_a_chunk_are_beside_the_segment_or_beside_the_whole_chunk(
    store: ChunkStore,
) -> None:
    content = "Ann: Hello.\nBob: Any news?\nAnn: We moved to Oslo.\nBob: Great."
    store.create_chunk(content, "note", conversation_id="c1", occurred_at="2024-05-01T10:00:00Z")
    store.create_chunk("Bob: See you.", "note", conversation_id="c1", occurred_at="2024-05-01T11:00:00Z")
    of_turn = search(store, "Who moved to Oslo?", limit=1, by="segment", neighbours=2)[0]
    assert [one.text for one in of_turn.neighbours] == [
        "Ann: Hello.", "Bob: Any news?", "Bob: Great.", "Bob: See you."
    ]  # fmt: skip
    of_chunk = search(store, "Who moved to Oslo?", limit=1, neighbours=2)[0]
    assert [one.text for one in of_chunk.neighbours] == ["Bob: See you."]


def test_before_an_event_prefers_what_was_said_before_it(store: ChunkStore) -> None:
    before = talk(store, "c1", "2023-03-01", "Ann: I painted a lighthouse.", "Bob: Nice.")
    talk(store, "c2", "2023-04-01", "Ann: The move to Oslo went well.", "Bob: Good.")
    after = talk(store, "c3", "2023-05-01", "Ann: I painted a lighthouse.", "Bob: Nice.")
    found = [hit.chunk_id for hit in search(store, "What did Ann paint before the move to Oslo?", limit=5)]
    assert found.index(before[0]) < found.index(after[0])
    found = [hit.chunk_id for hit in search(store, "What did Ann paint after the move to Oslo?", limit=5)]
    assert found.index(after[0]) < found.index(before[0])


def test_equal_scores_are_ordered_by_time_the_newest_first(store: ChunkStore) -> None:
    """Whatever their ids: the same notes rank in the same order in every store."""
    for day, colour in (("03", "red"), ("05", "green"), ("04", "white"), ("01", "brown"), ("02", "black")):
        store.create_chunk(f"The lid was {colour}.", "note", occurred_at=f"2026-01-{day}T10:00:00Z")
    found = search(store, "lid")
    assert len({hit.score for hit in found}) == 1
    assert [hit.at[8:10] for hit in found] == ["05", "04", "03", "02", "01"]
