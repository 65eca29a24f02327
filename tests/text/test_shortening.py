"""Short forms of texts that are listed together."""

from __future__ import annotations

import time

import pytest

from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.blocks import one_line
from rlm_mem.text.shortening import Shortener

_ASKED = [
    "I'm kinda worried that my $12.99/month subscription might not be enough, can you help me with that?",
    "I'm kinda worried that I have never sailed, can you help me with that?",
    "I'm kinda worried about April 3, can you help me with that?",
    "I'm kinda worried that Ben doesn't reply, can you help me with that?",
    "I'm kinda worried about the harvest, can you help me with that?",
]


def test_a_clause_of_prose_comes_before_pasted_code() -> None:
    shortener = Shortener(_ASKED, get_analyser())
    text = "I refactored the parser, rows.append(parse(line)), total += rows[0].amount, can you help me with that?"
    assert shortener.short(text, 30) == "refactored the parser"
    assert "rows.append" in shortener.short("rows.append(parse(line)), total += rows[0].amount", 30)


def test_rare_words_numbers_and_denials_stay_and_common_words_go() -> None:
    shortener = Shortener(_ASKED, get_analyser())
    short = [shortener.short(text, 50) for text in _ASKED]
    assert short == [
        "$12.99/month subscription might not be enough",
        "never sailed",
        "April 3",
        "Ben doesn't reply",
        "harvest",
    ]
    assert shortener.short("Call me.", 60) == "Call me.", "what has room stays as it is"
    assert shortener.content(_ASKED[0]) > shortener.content("Can you help me?") >= 0
    assert (
        shortener.share(_ASKED[4], "a late harvest")
        > shortener.share(_ASKED[4], "worried about a late frost")
        > 0
    )
    assert shortener.share(_ASKED[4], "the") == 0


def test_a_shortened_text_prefers_words_that_other_rows_lack() -> None:
    text = "I oiled the fence on April 3, I planted seven lilacs by the shed, I was shown Portland stone"
    shortener = Shortener([*_ASKED, text], get_analyser())
    first = shortener.short(text, 24, 40)
    assert first == "oiled fence April 3, Portland"
    told = frozenset(get_analyser().terms(first))
    assert shortener.short(text, 24, 40, told).startswith("planted seven lilacs")


def test_likeness_is_the_share_of_words_that_the_given_texts_have() -> None:
    texts = [
        "new sails for the boat",
        "a mast for the boat",
        "the sails and the mast",
        "rye bread from the oven",
    ]
    likeness = Shortener(texts, get_analyser()).likeness(texts, {0, 1})
    assert likeness[2] > likeness[3] == 0
    assert 0 < likeness[0] < 1, "a text is not compared with itself"


def test_who_a_text_is_about_stays() -> None:
    rare = ("zebras", "trolls", "sherpas", "waiters", "bagpipers", "gardeners", "umpires", "plumbers")
    told = [f"Yesterday we all met Leslie again, and then some {one} also arrived there." for one in rare]
    others = [f"Nothing special happened on day {number}." for number in range(20)]
    shortener = Shortener([*told, *others], get_analyser())
    assert all("Leslie" in shortener.short(text, 24) for text in told)


def test_a_number_that_many_texts_repeat_gives_way_to_what_is_new() -> None:
    parts = ("login", "chart", "export", "menu", "paging", "sorting", "tagging", "search")
    said = [f"We pay 40 euros for 2 tables, and that {one} is slow." for one in parts]
    shortener = Shortener(said, get_analyser())
    assert all(one in shortener.short(text, 20) for one, text in zip(parts, said, strict=True))
    assert shortener.short("We pay 7,500 euros for it since the spring of last year, as agreed.", 24).count(
        "7,500"
    )


def test_numbers_dates_and_names_of_a_clause_that_is_cut_stay() -> None:
    said = (
        "we talked about further grants mentioned by several neighbours living around harbours that could be asked "
        "together for $7,500 before May 25 at the office of Rosa Lind"
    )
    short = Shortener([said, *_ASKED], get_analyser()).short(said, 80)
    assert short == "talked further grants mentioned several … $7,500 … May 25 … Rosa Lind"
    dated = Shortener([said, *_ASKED], get_analyser()).short(said.replace("May 25", "May 25, 2026,"), 80)
    assert "May 25, 2026" in dated
    money = "Somebody said something of it, and my own uncle paid $40 on 3 June, after a long quarrel over all of that"
    assert "$40 on 3 June" in Shortener([money, *_ASKED], get_analyser()).short(money, 45)


@pytest.mark.parametrize("chars", [1, 20, 45, 160])
@pytest.mark.parametrize(
    "text",
    [
        "明日は雨が降るそうなので、傘を持って行きます。" * 20,
        "word " * 900,
        "(((((" * 900,
        "a,b;" * 900,
        "x" * 5_000,
        "Möglicherweise kommt Jürgen nicht, weil er krank ist; " * 9,
    ],
)
def test_a_short_form_never_exceeds_its_room(text: str, chars: int) -> None:
    short = Shortener([text, *_ASKED], get_analyser()).short(text, chars)
    assert 0 < len(short) <= chars and "\n" not in short


def test_code_is_left_out_and_long_text_takes_linear_time() -> None:
    shortener = Shortener(_ASKED, get_analyser())
    assert shortener.short("```python\nprint(1)\n```", 60) == ""
    assert shortener.short("Mend this:\n\n```python\nprint(1)\n```", 60) == "Mend this:"
    begun = time.process_time()
    shortener.short("why, " * 400_000, 60)
    assert time.process_time() - begun < 2
    assert one_line("a  b\nc", 10) == "a b c"


def test_the_clause_with_a_name_is_kept_before_others() -> None:
    others = [f"I am writing note {number} about the resume, and it is for Dawn" for number in range(30)]
    text = (
        "I am stuck on how to make my resume pass any tracking system, and my close friend Dawn, "
        "59 and met at a storytelling workshop in 2015, recommended strong verbs for every section of it"
    )
    short = Shortener([*others, text], get_analyser("english")).short(text, 130)
    assert "friend Dawn" in short and "2015" in short


def test_words_without_content_that_many_texts_have_go_within_a_clause_unless_a_number_follows() -> None:
    others = [
        f"I mend the gate number {number} and the fence to the west for my aunt." for number in range(9)
    ]
    text = (
        "I paint the north wall and the roof of the shed for my neighbour, I cut the bill from 90 to 70 euros, "
        "and it is not for the school"
    )
    short = Shortener([*others, text], get_analyser()).short(text, 90)
    assert short.startswith("paint north wall roof of shed neighbour") and "bill from 90 to 70 euros" in short
    assert "not school" in Shortener([*others, text], get_analyser()).short(text, 110)


def test_a_name_of_several_words_stays_whole() -> None:
    books = (
        "The Name of the Wind",
        "Lord of the Rings",
        "A Dance with Dragons",
        "East of Eden",
        "War and Peace",
    )
    texts = [f"At the end of a long day with the dog and of the rain I read {book} again" for book in books]
    shortener = Shortener(texts, get_analyser())
    shown = [shortener.short(text, 60) for text in texts]
    assert all(
        book.removeprefix("The ").removeprefix("A ") in text for book, text in zip(books, shown, strict=True)
    )
    assert not any("with the dog" in text for text in shown), "other words without content go"


def test_figures_and_names_of_omitted_clauses_stay_if_they_have_room() -> None:
    said = (
        "I signed up for the pottery evening course with several patient neighbours from the harbour, the first "
        "session is on June 3, it costs $85, and Rosa Lind teaches it, can you help me with that?"
    )
    shortener = Shortener([said, *_ASKED], get_analyser())
    assert not any(fact in shortener.short(said, 60) for fact in ("June 3", "$85"))
    kept = shortener.short(said, 60, facts=40)
    assert all(fact in kept for fact in ("June 3", "$85", "Rosa Lind")) and len(kept) <= 105


def test_a_clause_that_tells_little_is_left_out_even_if_it_has_room() -> None:
    asked = [
        f"I need help with {one}, review my code, suggest some changes." for one in ("tar", "zinc", "oak")
    ]
    said = (
        "I moved the zebra enclosure beside the old lighthouse today, review my code, suggest some changes."
    )
    short = Shortener([said, *asked, *_ASKED], get_analyser()).short(said, 85)
    assert "zebra" in short and "review" not in short


def test_clauses_about_the_subject_of_a_list_come_first() -> None:
    said = (
        "Yesterday a quarrelsome xylophonist insulted Zebulon, then I bought a potted fern, and the dog slept on "
        "my favourite velvet armchair."
    )
    assert "fern" not in Shortener([said, *_ASKED], get_analyser()).short(said, 30)
    assert "potted fern" in Shortener([said, *_ASKED], get_analyser(), "ferns in pots").short(said, 30)


def test_a_fact_of_an_omitted_clause_is_shown_once() -> None:
    said = (
        "The quarrelsome xylophonist insulted everybody, the dog slept on my favourite velvet armchair, while "
        "the page said 401 Unauthorized to me."
    )
    short = Shortener([said, *_ASKED], get_analyser()).short(said, 45, facts=60)
    assert short.count("401 Unauthorized") == short.count("Unauthorized") == 1
