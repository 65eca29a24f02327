"""`search` as a caller sees it: what is found, filters, limits, odd input, and independence of the store's history."""

from __future__ import annotations

import json
import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from rlm_mem.errors import InputError, InvalidQuery
from rlm_mem.search import Filters, Hit, keyword_ids, passages, ranked_ids, search
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.store.local import schema
from rlm_mem.store.local.local_backend import LocalBackend
from rlm_mem.store.local.postings import PostingsIndex

WORDS = [
    "apple",
    "bridge",
    "candle",
    "desert",
    "engine",
    "forest",
    "garden",
    "harbor",
    "island",
    "jungle",
    "kettle",
]


def merge(store: ChunkStore) -> None:
    """Make a snapshot of the postings, as another process would; the rows of a database are counted anew."""
    if not isinstance(store.backend, LocalBackend):
        store.rebuild_index()
        return
    folder = Path(store.base_path) / "index"
    connection = schema.connect(folder / "index.sqlite", wait_seconds=30)
    PostingsIndex(folder / "postings", 1).merge(connection)
    connection.close()
    assert list(folder.rglob("postings/1/*/meta.json"))


def ids(hits: list[Hit]) -> list[str]:
    return [hit.chunk_id for hit in hits]


@pytest.fixture
def garden(store: ChunkStore) -> dict[str, str]:
    """Five chunks by name."""
    made = {
        "rose": store.create_chunk(
            "Ann: The rose by the gate blooms in May.\nBob: And the hedge needs a cut.",
            conversation_id="spring", tags=["flower", "red"], occurred_at="2023-05-01T10:00:00Z",
        ),
        "tulip": store.create_chunk(
            "Bob: The tulip blooms early this year.", conversation_id="spring", tags=["flower"],
            occurred_at="2023-03-20T10:00:00Z", chunk_type="fact",
        ),
        "shed": store.create_chunk(
            "Decision: the shed gets a new roof.", conversation_id="autumn", tags=["red"], chunk_type="decision",
            occurred_at="2023-10-02T23:30:00Z",
        ),
        "hose": store.create_chunk("The garden hose is stored in the shed.", occurred_at="2023-10-03T00:30:00Z"),
        "pond": store.create_chunk("The pond freezes in winter.", occurred_at="2023-12-24T10:00:00Z"),
    }  # fmt: skip
    return {name: chunk.id for name, chunk in made.items()}


def test_a_hit_has_the_position_of_the_match_its_speaker_and_its_time(
    store: ChunkStore, garden: dict[str, str]
) -> None:
    (hit, *_) = search(store, "When does the rose bloom?")
    assert hit.chunk_id == garden["rose"]
    chunk = store.get_chunk(hit.chunk_id, track=False)
    assert chunk is not None
    assert "rose by the gate" in chunk.content[hit.start : hit.end]
    assert "rose by the gate" in hit.snippet
    assert (hit.author, hit.segment_no, hit.conversation_id) == ("Ann", 0, "spring")
    assert hit.at == "2023-05-01T10:00:00.000000Z"
    assert hit.tags == ("flower", "red")
    assert hit.parts is None
    assert hit.score > 0


def test_explained_hits_say_what_added_to_the_score(store: ChunkStore, garden: dict[str, str]) -> None:
    (hit, *_) = search(store, "rose", explain=True)
    assert hit.chunk_id == garden["rose"]
    assert hit.parts is not None
    assert hit.parts["own"] > 0


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"tags_all": ["flower", "red"]}, {"rose"}),
    ({"tags_any": ["flower", "red"]}, {"rose", "tulip", "shed"}),
    ({"tags_any": "flower"}, {"rose", "tulip"}),
    ({"tags_all": ["nowhere"]}, set()),
    ({"chunk_type": "decision"}, {"shed"}),
    ({"chunk_type": ["decision", "fact"]}, {"shed", "tulip"}),
    ({"conversation_id": "spring"}, {"rose", "tulip"}),
    ({"conversation_id": "unknown"}, set()),
    ({"start": "2023-05-01", "end": "2023-10-02"}, {"rose", "shed"}),
    ({"end": "2023-05-01T09:59:59Z"}, {"tulip"}),
    ({"start": "2023-10-03"}, {"hose", "pond"}),
    ({"speaker": "bob"}, {"rose", "tulip"}),
    ({"speaker": "Ann"}, {"rose"}),
    ({"speaker": "Nobody"}, set()),
    ({"tags_any": ["red"], "chunk_type": "decision", "conversation_id": "autumn"}, {"shed"}),
]
"""Filters, and what of the garden passes them."""


@pytest.mark.parametrize("merged", [False, True])
def test_filters_admit_exactly_what_passes(store: ChunkStore, garden: dict[str, str], merged: bool) -> None:
    if merged:
        merge(store)
    everything = "rose tulip shed hose pond"
    for filters, names in FILTERS:
        expected = {garden[name] for name in names}
        for by in ("chunk", "segment"):
            assert set(ids(search(store, everything, filters=filters, by=by))) == expected, (filters, by)
        newest = sorted(expected, key=lambda i: search_at(store, i), reverse=True)
        assert ids(search(store, " ", filters=filters)) == newest, filters
        assert {i for i, _ in ranked_ids(store, everything)} >= expected, filters


def test_passages_are_what_two_searches_find(store: ChunkStore, garden: dict[str, str]) -> None:
    for filters in (None, {"tags_any": "flower"}):
        found = passages(store, "rose tulip shed", limit=3, filters=filters)
        assert found.hits == search(store, "rose tulip shed", limit=3, by="segment", filters=filters)
        assert found.chunks.keys() >= set(ids(found.hits))
        best = ranked_ids(store, "rose tulip shed", limit=3, filters=filters)
        assert found.ranking == [chunk_id for chunk_id, _ in best]
        assert found.hits
    nothing = passages(store, " ")
    assert not (nothing.hits or nothing.chunks or nothing.ranking)


def search_at(store: ChunkStore, chunk_id: str) -> str:
    chunk = store.get_chunk(chunk_id, track=False)
    assert chunk is not None
    return chunk.metadata.occurred_at or ""


def test_a_filter_admits_what_held_at_a_time(store: ChunkStore) -> None:
    changed = datetime(2025, 6, 1, tzinfo=UTC)
    store.create_chunk(
        "The port is 80.", metadata={"valid_from": "2025-01-01", "valid_to": changed.isoformat()}
    )
    store.create_chunk("The port is 81.", metadata={"valid_from": changed.isoformat()})
    for days, held in ((-60, ["The port is 80."]), (60, ["The port is 81."]), (-600, [])):
        moment = (changed + timedelta(days=days)).timestamp()
        assert [hit.snippet for hit in search(store, "port", filters={"valid_at": moment})] == held
    for wrong in (True, "2025-01-01", float("nan"), float("inf"), 10**400):
        with pytest.raises(InvalidQuery, match="valid_at must be a number of seconds"):
            search(store, "port", filters={"valid_at": wrong})


def test_filters_narrow_before_the_limit_not_after(store: ChunkStore) -> None:
    """With a hundred better matches of another type, the one that passes is still found."""
    with store.batch():
        for number in range(250):
            store.create_chunk(f"needle needle needle {number}")
        lone = store.create_chunk(
            "A long text in which the needle is only mentioned once.", chunk_type="fact"
        )
    assert ids(search(store, "needle", filters={"chunk_type": "fact"}, limit=1)) == [lone.id]


def test_by_segment_gives_single_turns_and_by_conversation_one_chunk_each(
    store: ChunkStore, garden: dict[str, str]
) -> None:
    turns = search(store, "rose hedge blooms", by="segment")
    assert [(hit.chunk_id, hit.segment_no) for hit in turns if hit.chunk_id == garden["rose"]] != []
    assert len({(hit.chunk_id, hit.segment_no) for hit in turns}) == len(turns)
    talks = search(store, "rose tulip blooms shed", by="conversation")
    named = [hit.conversation_id for hit in talks if hit.conversation_id]
    assert len(named) == len(set(named))


def test_a_chunk_found_by_its_speaker_is_shown_by_words_of_that_speaker(store: ChunkStore) -> None:
    store.create_chunk("Ana: I moved to Porto in May.\nBen: How is it?\nAna: Sunny.", conversation_id="a")
    for by in ("chunk", "conversation"):
        for name, said in (("Ana", "Ana: I moved to Porto in May."), ("Ben", "Ben: How is it?")):
            (hit,) = search(store, "Porto", by=by, filters={"speaker": name})
            assert (hit.author, hit.snippet) == (name, said)


def test_segments_of_a_speaker_are_those_of_that_speaker_also_where_one_succeeds(store: ChunkStore) -> None:
    older = store.create_chunk(
        "Ann: The ferry leaves at six.\nBen: The ferry is never on time.", conversation_id="a"
    )
    newer = store.create_chunk("Ben: The ferry leaves at seven now.\nAnn: Good to know.", conversation_id="b")
    store.supersede(older.id, newer.id)

    def said(by: str, speaker: str) -> list[tuple[str, str | None]]:
        hits = search(store, "When does the ferry leave?", by=by, filters={"speaker": speaker})
        return [(hit.chunk_id, hit.author) for hit in hits]

    assert said("segment", "ann") == [(newer.id, "Ann"), (older.id, "Ann")]
    assert said("segment", " BEN ") == [(newer.id, "Ben"), (older.id, "Ben")]
    assert [chunk_id for chunk_id, _ in said("chunk", "Ann")] == [newer.id, older.id]
    assert said("segment", "Cem") == []


def test_the_limit_is_kept_and_more_is_a_continuation(store: ChunkStore) -> None:
    with store.batch():
        for number in range(40):
            store.create_chunk(f"lantern light {'lantern ' * (number % 5)} number {number}")
    few, many = ids(search(store, "lantern", limit=5)), ids(search(store, "lantern", limit=40))
    assert len(few) == 5
    assert len(many) == 40
    assert many[:5] == few


def test_nothing_to_look_for_finds_nothing(store: ChunkStore, garden: dict[str, str]) -> None:
    assert garden
    for query in ("", "   ", "\n", "?!…", "the of and", "xylophonic", "\x00", "\ud800"):
        assert search(store, query) == []


def test_an_empty_store_answers_with_nothing(store: ChunkStore) -> None:
    assert search(store, "anything") == []
    assert search(store, "", filters={"tags_any": ["x"]}) == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"query": None},
        {"query": b"bytes"},
        {"query": 3},
        {"query": "x", "limit": 0},
        {"query": "x", "limit": -1},
        {"query": "x", "limit": 1001},
        {"query": "x", "limit": 2.0},
        {"query": "x", "limit": True},
        {"query": "x", "limit": "10"},
        {"query": "x", "by": "page"},
        {"query": "x", "by": None},
        {"query": "x", "filters": 3},
        {"query": "x", "filters": {"colour": "red"}},
        {"query": "x", "filters": {"tags_all": 3}},
        {"query": "x", "filters": {"tags_any": [3]}},
        {"query": "x", "filters": {"start": "last week"}},
        {"query": "x", "filters": {"end": "2023-13-01"}},
        {"query": "x", "filters": {"speaker": 3}},
        {"query": "x", "filters": {"include_superseded": "yes"}},
        {"query": "x", "filters": Filters(start="soon")},
        {"query": "x", "as_of": "soon"},
        {"query": "x", "as_of": 3},
    ],
)
def test_wrong_arguments_are_refused_with_a_sentence(store: ChunkStore, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuery) as caught:
        search(store, **arguments)
    assert 10 < len(str(caught.value)) < 300


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=200), by=st.sampled_from(["chunk", "segment", "conversation"]))
def test_any_text_is_a_question(store: ChunkStore, query: str, by: str) -> None:
    if not store.exists("chunk-fixed"):
        store.create_chunk("Ann: Some words, 123 numbers, ünïcode and 漢字.", chunk_id="chunk-fixed")
    for hit in search(store, query, by=by):
        assert hit.chunk_id == "chunk-fixed"


def test_very_long_questions_and_chunks_are_answered(store: ChunkStore) -> None:
    store.create_chunk("needle " + "straw " * 50_000)
    store.create_chunk("x" * 500_000)
    assert len(search(store, "needle " + "hay " * 100_000)) == 1
    assert search(store, "y" * 1_000_000) == []


def test_dates_may_be_given_as_objects(store: ChunkStore, garden: dict[str, str]) -> None:
    found = search(store, "blooms", filters={"start": datetime(2023, 4, 1, tzinfo=UTC)})
    assert ids(found) == [garden["rose"]]


def test_a_question_that_names_a_month_finds_what_happened_then(
    store: ChunkStore, garden: dict[str, str]
) -> None:
    assert ids(search(store, "What happened in December 2023?"))[0] == garden["pond"]


@pytest.mark.local_only("look at files")
def test_a_chunk_whose_file_is_gone_gives_way_to_the_next(store: ChunkStore, base: Path) -> None:
    first = store.create_chunk("needle needle needle")
    second = store.create_chunk("needle in a haystack of many words")
    assert ids(search(store, "needle", limit=1)) == [first.id]
    next(iter((base / "chunks").rglob(f"{first.id}.json"))).unlink()
    assert ids(search(store, "needle", limit=1)) == [second.id]


def chunk_files(base: Path) -> list[Path]:
    return sorted((base / "chunks").rglob("*.json"))


@pytest.mark.local_only("look at files")
def test_a_store_edited_by_hand_ranks_as_one_whose_index_is_made_anew(base: Path) -> None:
    rng = random.Random(3)

    def text() -> str:
        return "\n".join(
            f"{rng.choice(['Ann', 'Bob'])}: {' '.join(rng.choices(WORDS, k=6))}." for _ in range(3)
        )

    with ChunkStore(base) as store:
        with store.batch():
            made = [store.create_chunk(text(), conversation_id=f"c{n % 4}") for n in range(60)]
        search(store, "apple")
        merge(store)
        for chunk in made[:10]:
            store.update_chunk(chunk.id, content=text())
        for chunk in made[10:20]:
            store.delete_chunk(chunk.id, permanent=True)
    for path in chunk_files(base)[::7]:
        content = json.loads(path.read_text())
        content["content"] = text()
        path.write_text(json.dumps(content, indent=2))
    for path in chunk_files(base)[3::9]:
        path.unlink()
    questions = [" ".join(rng.sample(WORDS, 3)) for _ in range(15)] + ["What did Ann say about the apple?"]
    with ChunkStore(base) as store:
        store.sync(full=True)
        edited = [[(h.chunk_id, h.score, h.start) for h in search(store, q)] for q in questions]
    shutil.rmtree(base / "index")
    with ChunkStore(base) as store:
        fresh = [[(h.chunk_id, h.score, h.start) for h in search(store, q)] for q in questions]
    assert edited == fresh
    assert all(edited)


def test_a_keyword_search_gives_the_chunks_that_hold_a_word_of_the_query_and_no_others(
    store: ChunkStore,
) -> None:
    said = [
        "Carla: We went to the zoo.", "Ben: Look, zebras!", "Carla: They had stripes.", "Ben: I played the violin.",
    ]  # fmt: skip
    zoo, zebra, stripes, violin = (store.create_chunk(text, conversation_id="trip").id for text in said)
    alone = store.create_chunk("A zebra crossing is a road marking.").id
    assert set(keyword_ids(store, "zebra")) == {zebra, alone}
    assert set(keyword_ids(store, "the zebra's stripe")) == {zebra, alone, stripes}
    assert set(keyword_ids(store, "Carla")) == {zoo, stripes}, "who speaks is a word of the chunk"
    assert keyword_ids(store, "instrument") == [], "nothing related"
    assert keyword_ids(store, "zebar") == [], "nothing spelt nearly so"
    assert keyword_ids(store, "nothing of this") == []
    assert len(keyword_ids(store, "zebra", limit=1)) == 1
    assert violin in {hit.chunk_id for hit in search(store, "zebra")}, "search brings what lies beside"


def test_a_word_of_the_question_is_found_in_the_label_of_a_note_and_in_the_text_of_another(
    store: ChunkStore,
) -> None:
    label = store.create_chunk("Ceilidh: 118 guests, 95 for the hall.").id
    inside = store.create_chunk("Fundraiser: ceilidh at Corn Hall, tickets 12.").id
    store.create_chunk("The bus costs 88 thousand a year.")
    store.create_chunk("Slates: Welsh ones, second hand.")
    for question in ("What did the ceilidh cost?", "ceilidh", "CEILIDHS"):
        assert {hit.chunk_id for hit in search(store, question, limit=2)} == {label, inside}, question
        assert set(keyword_ids(store, question)) >= {label, inside}, question
    assert search(store, "What is a slate made of?")[0].snippet.startswith("Slates:")


def test_a_rare_label_makes_no_rare_word_of_a_common_one(store: ChunkStore) -> None:
    for number in range(30):
        store.create_chunk(
            f"Disks of shelf {number} have a size of {number} TB, and Heron stores responses there."
        )
    store.create_chunk(
        "CHUNK_MIN: the lower bound\n\nWINDOW_SIZE: the size of the window. The size must be odd."
    )
    wanted = store.create_chunk("Heron warns about a response of more than 32 MiB in size.").id
    assert [hit.chunk_id for hit in search(store, "Heron response size warning", limit=1)] == [wanted]


def test_a_label_is_no_speaker_where_other_notes_tell_of_it(store: ChunkStore) -> None:
    store.create_chunk("Osprey: weekly sync on Tuesdays.")
    store.create_chunk("The cache of Osprey runs on Redis.")
    osprey = store.create_chunk("The index of Osprey runs on DuckDB.").id
    heron = store.create_chunk("The index of Heron runs on SQLite.").id
    found = [hit.chunk_id for hit in search(store, "Which index does Osprey have?")]
    assert found.index(osprey) < found.index(heron)


def test_a_type_that_no_memory_has_is_refused_with_the_known_ones(
    store: ChunkStore, garden: dict[str, str]
) -> None:
    store.types.register_chunk_type("voyage")
    sailed = store.create_chunk("We sailed past the rose garden.", chunk_type="voyage").id
    del store.types.chunk_types["voyage"]  # as in a program that did not register it
    asked = {
        "search": lambda kind: ids(search(store, "rose", filters=Filters(chunk_type=kind))),
        "newest": lambda kind: ids(search(store, "", filters={"chunk_type": (kind,)})),
        "list": lambda kind: store.list_chunks(chunk_type=kind),
        "page": lambda kind: store.list_page(5, chunk_type=kind)[0],
    }
    for ask in asked.values():
        assert ask("voyage") == [sailed]
        assert ask("pattern") == [], "none of a known type is no fault"
        with pytest.raises(
            InvalidQuery, match="type 'facts': use one of preference, fact, pattern, decision, note"
        ):
            ask("facts")
        with pytest.raises(InvalidQuery):
            ask("")
        with pytest.raises(InputError):
            ask(5)
    assert store.delete_chunk(sailed)
    assert asked["search"]("voyage") == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"by": "x" * 100_000},
        {"filters": {"x" * 100_000: 1}},
        {"filters": {"tags_all": {"x" * 100_000: 1}}},
        {"filters": {"include_superseded": "x" * 100_000}},
    ],
)
def test_an_error_shows_the_beginning_of_a_wrong_value(store: ChunkStore, arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidQuery) as refused:
        search(store, "harbor", **arguments)
    assert len(str(refused.value)) < 400
