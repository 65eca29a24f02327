"""Terms: what the index and the questions share."""

from __future__ import annotations

import hashlib
import random
import re
import unicodedata

import pytest
from hypothesis import given, strategies as st

from rlm_mem.errors import InvalidConfig
from rlm_mem.text import ANALYSIS_VERSION, analysis, clauses, cues
from rlm_mem.text.analysis import Analyser, get_analyser, segment_flags, time_words
from rlm_mem.text.languages import language_of
from rlm_mem.text.stopwords import LISTED, function_words, stop_words


def test_inflected_and_irregular_forms_share_a_term() -> None:
    terms = get_analyser().terms
    for group in (
        "buy buys buying bought", "child children", "paint painted painting", "go-kart go-karts",
        "heat heats heated heating", "reduce reduction reductions", "movie film films filmed filming",
    ):  # fmt: skip
        words = group.split()
        assert len({tuple(terms(word)) for word in words}) == 1, group
    assert terms("a company founded in 1990") != terms("a company found in 1990")


def test_stop_words_are_dropped_but_capital_acronyms_stay() -> None:
    assert get_analyser().terms("What did she do in the US with IT?") == ["us", "it"]
    assert get_analyser().terms("WHO ARE YOU") == []


def test_identifiers_are_found_whole_and_by_their_parts() -> None:
    terms = set(get_analyser("none").terms("call parseHTTPResponse and retry_count in ranking.py"))
    assert {
        "parsehttpresponse",
        "http",
        "response",
        "retry_count",
        "retry",
        "count",
        "ranking",
        "py",
    } <= terms


def test_versions_decimals_and_thousands_stay_one_term() -> None:
    assert get_analyser().terms("v1.2.3 costs 3.5 of 1,000") == ["v1.2.3", "cost", "3.5", "1000"]


def test_possessives_accents_and_typographic_apostrophes_fold_together() -> None:
    terms = get_analyser().terms
    assert terms("Caroline’s café") == terms("caroline cafe")
    assert terms("Søren from Łódź, Đorđe and Æsop") == terms("Soren from Lodz, Dorde and Aesop")


@pytest.mark.parametrize("language", ["english", "french", "italian"])
def test_a_word_after_an_elided_article_is_found_without_it(language: str) -> None:
    terms = get_analyser(language).terms
    assert terms("l'affiche, d’argent, dell'alba") == terms("affiche argent alba")
    assert terms("O'Dwyer") == terms("odwyer dwyer")


def test_text_without_spaces_becomes_character_bigrams() -> None:
    assert get_analyser().terms("北京烤鸭") == ["北京", "京烤", "烤鸭"]
    assert set(get_analyser().terms("烤鸭")) <= set(get_analyser().terms("我喜欢北京烤鸭"))


def test_right_to_left_words_stay_intact() -> None:
    assert get_analyser().terms("שלום ירושלים") == ["שלום", "ירושלים"]


def test_the_configured_language_stems() -> None:
    german = get_analyser("german").terms
    assert german("die Häuser") == german("Häusern")
    assert german("und die der") == []


CHANGED = (
    "what an index contains has changed: raise ANALYSIS_VERSION in rlm_mem/text/__init__.py, unless it was raised "
    "since the last release and no index of main is in use, and write here the version and {!r}"
)
WRITTEN = (
    "Ana bought two go-karts for 1,250 euros; parseHTTPResponse and retry_count are in ranking.py, v2.3.1 of WHO.",
    "Die Häuser der Weiterbildungsbehörde kosten 3,5 Mio. Straße und STRASSE, "
    "l'affiche, aujourd'hui, przełącznik łódź.",
    "दिल्ली में हमारा दफ़्तर किराए पर है। சென்னையில் கடை உள்ளது. বাংলা ভাষা",
    "Cafe\u0301 Zu\u0308rich schließt, Ἀθῆναι, שָׁלוֹם ירושלים, مُحَمَّد",
    "田中さんは東京に住んでいます。ガ\u3099 한국어는 재미있다. 北京的房子 กรุงเทพมหานคร",
    "| host | port |\n|---|---|\n| atlas | 8443 |\n\n- a list: of items\n- another one\n\n"
    "User: I like tea.\nAgent: Noted.",
)


def test_an_index_of_other_stop_words_has_another_version() -> None:
    left_out = {language: sorted(function_words(language)) for language in sorted(LISTED)}
    digest = hashlib.sha256(repr(left_out).encode()).hexdigest()[:16]
    assert (ANALYSIS_VERSION, digest) == (7, "5b583556f94ed521"), CHANGED.format(digest)


@pytest.mark.parametrize(("language", "digest"), [
    ("english", "34a62459fceb3b38"), ("german", "7cba638d69232dad"), ("french", "6cdb78b3d31ff48a"),
    ("polish", "623b4e6933261697"), ("none", "c85280105fe35c0e"),
])  # fmt: skip
def test_an_index_of_other_terms_has_another_version(language: str, digest: str) -> None:
    """An index with terms that no question has any more would miss memories without a word."""
    found = [one.terms for text in WRITTEN for one in get_analyser(language).analyse_segments(text)]
    made = hashlib.sha256(repr(found).encode()).hexdigest()[:16]
    assert (ANALYSIS_VERSION, made) == (7, digest), CHANGED.format(made)


@pytest.mark.parametrize("language", LISTED)
def test_a_question_of_stop_words_is_recognised_as_of_their_language(language: str) -> None:
    assert language_of(" ".join(sorted(stop_words(language)))) == language


def test_an_unknown_language_names_the_choices() -> None:
    with pytest.raises(InvalidConfig, match="'klingon' is not known") as refused:
        Analyser("klingon")
    assert "english" in str(refused.value.hint)


@given(st.text(st.characters(), max_size=300))
def test_any_text_has_terms_within_bounds_and_offsets_inside_it(text: str) -> None:
    for term, start, end in get_analyser().located_terms(text):
        assert 0 < len(term) <= 2 * analysis.MAX_TERM
        assert 0 <= start < end <= len(text)


@given(st.text(max_size=200))
def test_flags_fit_thirty_two_bits_for_any_text(text: str) -> None:
    assert 0 <= segment_flags(text) < 2**32


def test_flags_describe_the_content_of_a_segment() -> None:
    flags = segment_flags(
        'Yesterday I went to Lisbon with my sister because she loves "Dune", for three weeks.'
    )
    for bit in (
        "PLACE_CUE",
        "DURATION",
        "QUOTES",
        "CAPITALS",
        "NUMBER",
        "FIRST_PERSON",
        "REASON",
        "PERSON_CUE",
        "PREFERENCE",
    ):
        assert flags & getattr(analysis, bit), bit
    assert time_words(flags) == 1
    assert not flags & analysis.IS_QUESTION
    assert segment_flags("Really? How come?") & analysis.IS_QUESTION
    assert not segment_flags("Really? I went home.") & analysis.IS_QUESTION


def test_a_cue_is_never_missed_for_want_of_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    pick = random.Random(3)
    patterns = [pattern for pattern, _ in (*analysis._CASELESS_CUES, *analysis._CASED_CUES)]
    words = sorted(set(re.findall(r"[A-Za-z']+", " ".join([*patterns, cues.TIME]))))
    words += [
        "1999",
        "2nd",
        "3pm",
        "Lisbon",
        "'ll",
        "feeling",
        "photos",
        "n't",
        "a_b",
        "2nd_3pm",
        "20",
        "2019,",
        "pm",
        "12",
    ]
    texts = [" —"[k % 2].join(pick.choices(words, k=k)) for k in pick.choices(range(1, 6), k=3000)]
    found = [segment_flags(text) for text in texts]
    monkeypatch.setattr(analysis, "_hints", lambda _: ~analysis._DIGITS)
    assert found == [segment_flags(text) for text in texts]


def test_time_words_are_counted_up_to_three() -> None:
    assert time_words(segment_flags("today, yesterday, last week, in June 2023 and tomorrow")) == 3
    assert time_words(segment_flags("nothing of the kind")) == 0


def test_segments_carry_author_offsets_and_frequencies() -> None:
    content = "Ann: I paint. I painted a lake.\nBob: Where is it?"
    segments = get_analyser().analyse_segments(content)
    assert [segment.author for segment in segments] == ["Ann", "Bob"]
    assert segments[0].terms["paint"] == 2
    assert segments[0].length == sum(segments[0].terms.values())
    assert content[segments[1].start : segments[1].end].strip() == "Bob: Where is it?"
    assert "ann" not in segments[0].terms


def test_repeated_leading_text_is_not_indexed_twice() -> None:
    content = "The mill burnt down. Rebuilding took a year."
    skipped = get_analyser().analyse_segments(content, skip_before=len("The mill burnt down. "))
    assert "mill" not in {term for segment in skipped for term in segment.terms}
    assert "rebuild" in {term for segment in skipped for term in segment.terms}


@given(
    st.text(st.sampled_from("ab Z9.,!?'`’-_:;\n\t é中ſ\u2010\u00a0%+/="), max_size=30)
    | st.lists(
        st.sampled_from(["the", "1,000", "a.b", "v2", ", ", ". ", ",", ".", "  ", "it's", "…", "!?", "no. "])
    ).map("".join)
)
def test_words_found_by_splitting_are_those_of_the_patterns(text: str) -> None:
    """Of most texts the words are found without the patterns, which define what a word is."""
    assert list(analysis.words_in(text)) == [word for word, _, _ in analysis.words(text)]
    assert clauses.token_texts(text) == clauses._TOKEN.findall(text)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("french", "L’école d’été, où Zoé l'a ramenée."),
        ("german", "Größe der Tür"),
        ("polish", "zażółć gęślą jaźń"),
        ("none", "한국어 문장, がぎぐ パピプ"),
    ],
)
@pytest.mark.parametrize("indexed", [False, True])
def test_a_text_whose_accents_are_characters_of_their_own_has_the_same_terms(
    language: str, text: str, indexed: bool
) -> None:
    """As texts of macOS and of PDF files have them."""
    analyser, apart = get_analyser(language), unicodedata.normalize("NFD", text)
    assert apart != text
    terms = analyser.terms(text, indexed=indexed)
    assert analyser.terms(apart, indexed=indexed) == terms
    located = list(analyser.located_terms(apart, indexed=indexed))
    assert [term for term, _, _ in located] == terms
    assert all(apart[start:end].strip() == apart[start:end] != "" for _, start, end in located)


def test_the_vowel_signs_of_hindi_do_not_split_its_words() -> None:
    assert get_analyser("none").terms("दिल्ली में किताब") == ["दिल्ली", "में", "किताब"]
