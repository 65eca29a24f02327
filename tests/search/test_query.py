"""Questions: what analysis takes from them."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime

import pytest
from hypothesis import given, strategies as st

from rlm_mem.search.query import (
    MAX_ALTERNATIVES,
    MAX_TERMS,
    RELATED,
    REPAIR,
    WORD,
    analyse_query,
    one_edit,
    question_kind,
    rarest,
    with_months,
    with_related,
    with_repairs,
)
from rlm_mem.text.analysis import get_analyser

ENGLISH = get_analyser()


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When did Ann move?", "when"),
        ("Which year was it?", "when"),
        ("Where does the cache live?", "where"),
        ("Which city did they visit?", "where"),
        ("Why was the flag removed?", "why"),
        ("Who gave her the ring when she was young?", "who"),
        ("Whom did Dana meet?", "who"),
        ("WHOSE car is it?", "who"),
        ("What caused the outage?", "why"),
        ("How long have they been married?", "how_long"),
        ("How many jobs fail?", "how_many"),
        ("What book did she read?", "title"),
        ("How did Bob feel about it?", "feeling"),
        ("Would she like the opera?", "would"),
        ("Is the server up?", "yes_no"),
        ("connection pool", "words"),
        ("Please, tell me the deploy port", "what"),
        ("show us when it was", "when"),
        ("show me", "what"),
        ("show deploy ports", "words"),
    ],
)
def test_the_kind_of_a_question_follows_its_first_question_word(question: str, kind: str) -> None:
    assert question_kind(question) == kind


def test_named_authors_are_recognised_and_their_names_are_no_terms() -> None:
    query = analyse_query(
        "What did Mel paint for Bob's wall?", ENGLISH, known_authors=["Melanie", "Bob", "Eve"]
    )
    assert query.authors == ("Melanie", "Bob")
    assert query.terms == ("paint", "wall")


def test_names_are_looked_up_among_thousands_of_authors_at_once() -> None:
    authors = [f"Ann{number} Smith{number}" for number in range(20_000)]
    question = " ".join(f"Smi{number} Smith{number}" for number in range(200))
    analyse_query("Ann1", ENGLISH, known_authors=authors)  # the table of names is cached
    started = time.process_time()
    assert len(analyse_query(question, ENGLISH, known_authors=authors).authors) == 200
    assert time.process_time() - started < 0.15


def test_a_name_in_lower_case_counts_only_as_a_whole() -> None:
    known = ["Project Manager", "Local TLS", "Eve"]
    whole = analyse_query("Why did the project manager's team wait, eve?", ENGLISH, known_authors=known)
    assert whole.authors == ("Project Manager", "Eve")
    assert {"project", "manag"} <= set(whole.terms), "in lower case they are words, too"
    part = analyse_query("Which local project has a manager?", ENGLISH, known_authors=known)
    assert part.authors == ()


def test_a_question_of_nothing_but_names_looks_for_the_names() -> None:
    assert analyse_query("Melanie?", ENGLISH, known_authors=["Melanie"]).terms == ("melani",)


def test_dates_are_counted_from_now() -> None:
    query = analyse_query("What happened yesterday?", ENGLISH, now=datetime(2023, 5, 8, tzinfo=UTC))
    assert [mention.first for mention in query.dates] == [date(2023, 5, 7)]


def test_words_that_only_ask_count_less() -> None:
    query = analyse_query("What type of violin?", ENGLISH)
    weights = dict(zip(query.terms, query.weights, strict=True))
    assert weights["type"] < weights["violin"] == 1.0


def test_members_of_a_class_join_as_weaker_alternatives() -> None:
    query = with_related(analyse_query("Which instruments does she play?", ENGLISH), ENGLISH)
    place = query.terms.index("violin")
    assert query.roles[place] == RELATED
    assert query.concepts[place] == query.terms.index("instrument")
    assert query.weights[place] < query.weights[query.terms.index("instrument")]


def test_other_languages_get_no_english_classes() -> None:
    german = get_analyser("german")
    assert set(with_related(analyse_query("Welche instrument spielt sie?", german), german).roles) == {WORD}


def test_a_word_the_store_lacks_is_repaired_by_one_edit() -> None:
    store = {"festiv": 3, "guitar": 2}
    query = analyse_query("When was the fesetival with the guitr?", ENGLISH)
    fixed = with_repairs(query, ENGLISH, lambda terms: {t: store[t] for t in terms if t in store})
    assert {"festiv", "guitar"} <= set(fixed.terms)
    assert {fixed.roles[fixed.terms.index(t)] for t in ("festiv", "guitar")} == {REPAIR}


def test_known_words_and_short_ones_are_left_as_they_are() -> None:
    store = {"guitar": 1, "guita": 1, "cat": 1}
    query = analyse_query("guita cot 1234x", ENGLISH)
    assert with_repairs(query, ENGLISH, lambda terms: {t: store[t] for t in terms if t in store}) == query


def test_one_edit_covers_deletion_exchange_replacement_and_insertion() -> None:
    assert {"ct", "act", "cot", "cart"} <= one_edit("cat")
    assert "cat" not in one_edit("cat")


def test_a_very_long_question_is_cut_to_a_bounded_number_of_terms() -> None:
    text = " ".join(f"wordnumber{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(600))
    query = rarest(analyse_query(text * 50, ENGLISH), lambda terms: dict.fromkeys(terms, 1))
    query = with_related(query, ENGLISH)
    assert len([role for role in query.roles if role == WORD]) <= MAX_TERMS
    assert len(query.terms) <= MAX_TERMS + MAX_ALTERNATIVES


def test_of_a_long_question_the_words_that_the_store_has_least_of_are_kept() -> None:
    common = [f"verylongandcommonword{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(MAX_TERMS)]
    query = rarest(
        analyse_query(" ".join([*common, "unknownword", "zinc"]), ENGLISH),
        lambda terms: {term: 2 if term == "zinc" else 50 for term in terms if term != "unknownword"},
    )
    assert "zinc" in query.terms
    assert len(query.terms) == MAX_TERMS


def test_everyday_words_weigh_less_than_others_and_in_full_where_there_is_nothing_else() -> None:
    mixed = analyse_query("Which tea do you like?", ENGLISH)
    worth = dict(zip(mixed.terms, mixed.weights, strict=True))
    assert 0 < worth["like"] < worth["tea"] == 1
    alone = analyse_query("What do I like?", ENGLISH)
    assert (alone.terms, alone.weights) == (("like",), (1.0,))


def test_beside_a_compound_its_parts_together_count_as_one_word() -> None:
    query = analyse_query("Can SQLite shrink task_time_limit?", ENGLISH)
    weights = dict(zip(query.terms, query.weights, strict=True))
    assert weights["sqlite"] == weights["task_time_limit"] == weights["shrink"] == 1.0
    assert weights["sq"] + weights["lite"] == 1.0
    assert weights["task"] == weights["limit"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "question",
    [
        "Which width do links have unless I say otherwise?",
        "Which width do links have if I set nothing?",
        "Which width do links have when I don't configure it?",
        "Which width do links have out of the box?",
        "Which width do links have without configuring anything?",
    ],
)
def test_a_default_asked_for_in_other_words_is_searched_by_its_name(question: str) -> None:
    query = analyse_query(question, ENGLISH)
    weights = dict(zip(query.terms, query.weights, strict=True))
    assert weights.pop("default") == weights.pop("link") == weights.pop("width") == 1.0
    assert all(weight < 1 for weight in weights.values())


def test_a_condition_that_sets_something_asks_for_no_default() -> None:
    assert "default" not in analyse_query("If I set the width to 3, what happens?", ENGLISH).terms


def test_function_and_question_words_of_another_language_weigh_less() -> None:
    query = analyse_query("Quels jours arrive la farine chez le boulanger ?", ENGLISH)
    weights = dict(zip(query.terms, query.weights, strict=True))
    assert weights["farin"] == 1.0 > max(weights["quel"], weights["la"], weights["le"])


@pytest.mark.parametrize(
    ("question", "term", "other"),
    [
        ("When is the ferry of 11 April?", "april", "apr"),
        ("When is the ferry of 11 Apr?", "apr", "april"),
        ("What is due on 3 March?", "march", "mar"),
    ],
)
def test_a_month_in_a_date_has_its_other_names(question: str, term: str, other: str) -> None:
    query = with_months(analyse_query(question, ENGLISH, now=datetime(2026, 4, 1, tzinfo=UTC)), ENGLISH)
    weights = dict(zip(query.terms, query.weights, strict=True))
    assert weights[ENGLISH.stem(other)] == weights[ENGLISH.stem(term)] == 1.0


@pytest.mark.parametrize("question", ["Who may march with us?", "What grows by the mar?"])
def test_a_word_that_is_no_month_has_no_other_name(question: str) -> None:
    query = analyse_query(question, ENGLISH, now=datetime(2026, 4, 1, tzinfo=UTC))
    assert with_months(query, ENGLISH) == query


def test_an_everyday_word_that_is_written_as_a_name_counts_in_full() -> None:
    query = analyse_query("When did May and Will buy the mill?", ENGLISH)
    worth = dict(zip(query.terms, query.weights, strict=True))
    assert worth["may"] == worth["will"] == worth["mill"] == 1


def test_a_han_character_counts_beside_the_pairs_that_it_is_in() -> None:
    query = analyse_query("猫吃什么", ENGLISH)
    worth = dict(zip(query.terms, query.weights, strict=True))
    assert 0 < worth["猫"] < worth["猫吃"]
    assert analyse_query("猫", ENGLISH).weights == (1.0,)


@given(st.text(st.characters(), max_size=200))
def test_no_text_makes_analysis_fail_and_the_columns_stay_in_step(text: str) -> None:
    query = with_related(
        analyse_query(text, ENGLISH, now=datetime(2024, 2, 29), known_authors=["Ann"]), ENGLISH
    )
    assert len(query.terms) == len(query.weights) == len(query.concepts) == len(query.roles)
    assert len(set(query.terms)) == len(query.terms)
    assert all(0 < weight <= 1 for weight in query.weights)


def test_an_event_used_as_a_date_is_an_anchor() -> None:
    query = analyse_query("What did Ann paint before the move to Oslo?", ENGLISH, known_authors=["Ann"])
    assert query.anchor is not None
    assert query.anchor.before
    assert query.anchor.terms == ("move", "oslo")
    assert analyse_query("What did she paint after 3 May 2023?", ENGLISH).anchor is None
    assert analyse_query("What came after the move?", ENGLISH).anchor is None


def test_a_word_of_thousands_of_terms_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A paragraph in Chinese may have no space; looking it up for each of its terms took seconds."""
    asked: list[str] = []
    monkeypatch.setattr("rlm_mem.search.query.fold", lambda word: asked.append(word) or word)
    query = analyse_query("猫吃鱼" * 300, ENGLISH)
    assert "吃鱼" in query.terms
    assert asked == ["猫吃鱼" * 300]
