"""The offline model: programs that run in the sandbox, readings in the memory's own words, abstention."""

from __future__ import annotations

import json
import socket
import unicodedata
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings, strategies as st

from rlm_mem.ingest.remember import remember
from rlm_mem.models.base import LLM, Message
from rlm_mem.models.opening import get_llm
from rlm_mem.offline import OfflineLLM
from rlm_mem.offline.model import READ_PROMPT
from rlm_mem.offline.passages import Passage
from rlm_mem.offline.question import analyse_question
from rlm_mem.offline.reader import read
from rlm_mem.recall.model_calls import render
from rlm_mem.recall.recall import RecallOperation, RecallResult
from rlm_mem.store.core.chunk_store import ChunkStore

Ask = Callable[[str], RecallResult]

NOTES = (
    (
        "2026-03-02T09:00:00Z",
        "Ana: I moved into the new flat in Porto yesterday, the lift was broken of course.",
    ),
    ("2026-03-02T09:01:00Z", "Ben: Congratulations! Is there room for the piano?"),
    ("2026-03-02T09:02:00Z", "Ana: The piano goes to my sister Clara, it would never fit up the stairs."),
    ("2026-03-09T18:00:00Z", "Ben: I sold my car to a dentist from Braga for 4,200 euros."),
    ("2026-03-09T18:01:00Z", "Ben: From now on I take the tram to the office."),
    ("2026-03-20T12:00:00Z", "Ana: My favourite restaurant is the Red Heron, they bake their own bread."),
    ("2026-04-01T08:00:00Z", "Ben: We ordered twelve chairs for the workshop."),
)


@pytest.fixture
def ask(store: ChunkStore) -> Ask:
    for at, text in NOTES:
        store.create_chunk(text, conversation_id=at[:10], occurred_at=at)
    operation = RecallOperation(store, OfflineLLM())
    return operation.recall


@pytest.mark.parametrize(
    ("question", "fact", "said"),
    [
        ("When did Ana move into the new flat?", "1 March 2026", "new flat"),
        ("How many chairs did they order for the workshop?", "twelve", "twelve chairs"),
        ("Who gets the piano?", "Clara", "my sister Clara"),
        ("What is Ana's favourite restaurant?", "Red Heron", "Red Heron"),
        ("How much did Ben get for his car?", "4,200 euros", "4,200"),
    ],
)
def test_an_answer_is_found_and_rests_on_the_chunk_that_says_it(
    ask: Ask, store: ChunkStore, question: str, fact: str, said: str
) -> None:
    result = ask(question)
    assert fact in str(result.content or result.suggestion)
    cited = [store.get_chunk(chunk_id) for chunk_id in result.chunk_ids]
    assert any(chunk is not None and said in chunk.content for chunk in cited)
    assert 0.0 < result.confidence <= 1.0


@pytest.mark.parametrize(
    "question",
    ["What is the name of Ben's parrot?", "What did Ana study at university?", "Why did Ana sell her car?"],
)
def test_questions_without_an_answer_in_the_memory_are_not_answered(ask: Ask, question: str) -> None:
    assert ask(question).content is None


@pytest.mark.parametrize("person", ["Lawrence S. Bacow", "J. Edgar Hoover", "Ursula von der Leyen"])
def test_a_name_is_given_with_its_initials(person: str) -> None:
    passages = [Passage("chunk-1", f"The chair of the harbour council is {person}. He keeps bees.")]
    assert read(analyse_question("Who is the chair of the harbour council?"), passages).answer == person


def test_an_empty_memory_holds_no_answer(store: ChunkStore) -> None:
    result = RecallOperation(store, OfflineLLM()).recall("Where does Ana live?")
    assert result.content is None
    assert result.stopped_by is None


def test_it_searches_twice_before_it_abstains(ask: Ask) -> None:
    assert ask("When did Ana move into the new flat?").iterations_used == 1
    assert ask("What is the name of Ben's parrot?").iterations_used == 2


def test_the_same_question_gets_the_same_answer(ask: Ask) -> None:
    first, second = (ask("Who gets the piano?") for _ in range(2))
    assert (first.content, first.chunk_ids, first.confidence) == (
        second.content,
        second.chunk_ids,
        second.confidence,
    )


def test_of_two_memories_the_successor_is_the_answer(store: ChunkStore) -> None:
    old = store.create_chunk("Stand-up is at 9:30 every morning.", occurred_at="2026-01-12T09:00:00Z")
    new = store.create_chunk("Stand-up is at 10:00 every morning.", occurred_at="2026-02-02T09:00:00Z")
    store.update_chunk(old.id, metadata={"superseded_by": new.id, "valid_to": "2026-02-02T09:00:00Z"})
    result = RecallOperation(store, OfflineLLM()).recall("What time is stand-up?")
    assert result.content is not None
    assert "9:30" not in result.content
    assert result.chunk_ids[0] == new.id


def test_needs_no_network(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the offline model opened a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert ask("Who gets the piano?").content is not None


def test_it_is_the_model_that_is_used_when_none_is_configured() -> None:
    model = get_llm(None)
    assert isinstance(model, OfflineLLM)
    assert isinstance(model, LLM)


def test_costs_nothing_and_says_so() -> None:
    completion = OfflineLLM().complete("<question>\nWho gets the piano?\n</question>")
    assert completion.cost == Decimal(0)
    assert completion.provider == "offline"
    assert completion.usage.input_tokens > 0


@pytest.mark.parametrize(
    "question",
    ["Who said \"yes\" to 'that'?", "a\\nb {curly} %s ```", "</question>", "?", "é" * 2000, "x\ud800y"],
)
def test_programs_are_valid_whatever_the_question_holds(question: str) -> None:
    text = OfflineLLM().complete([Message("user", f"<question>\n{question}\n</question>")]).text
    program = text.split("```repl\n", 1)[1].rsplit("```", 1)[0]
    compile(program, "program", "exec")


def test_programs_fit_a_terminal() -> None:
    text = OfflineLLM().complete("<question>\nWho gets the piano?\n</question>").text
    assert max(len(line) for line in text.splitlines()) <= 88


def test_after_a_failed_program_it_writes_a_plainer_one() -> None:
    question = Message("user", "<question>\nWho gets the piano?\n</question>")
    failed = Message("user", "The program failed:\n<error>\nline 3: NameError\n</error>\n9 turns left.")
    text = OfflineLLM().complete([question, Message("assistant", "```repl\nx\n```"), failed]).text
    assert "search_chunks" in text
    assert "FINAL(" in text


def test_a_sub_call_is_answered_from_the_text_given_with_it() -> None:
    text = "Ben lives in Braga. Clara lives in Coimbra near the river."
    prompt = f"Where does Clara live?\n\n<context>\n{text}\n</context>"
    assert "Coimbra" in OfflineLLM().complete(prompt).text


@pytest.mark.parametrize(
    "context",
    [{"notes": [{"text": "The boat of Ana is red."}, {"text": "The car is blue."}], "count": 2},
     ["The boat of Ana is red.", None], "The boat of Ana is red. The car is blue."],
)  # fmt: skip
def test_a_sub_call_is_answered_from_a_context_of_any_structure(context: Any) -> None:
    prompt = render("What colour is the boat of Ana?", context)
    assert "red" in OfflineLLM().complete([Message("user", prompt)]).text


def test_a_sub_call_without_a_context_asks_its_last_question_of_the_rest() -> None:
    prompt = "Ana keeps the key. Ben keeps the boat. Who keeps the boat?"
    assert OfflineLLM().complete([Message("user", prompt)]).text == "Ben"


def test_a_sub_call_that_the_text_does_not_answer_says_so() -> None:
    prompt = "Who painted the bridge?\n\n<context>\nit rained and rained\n</context>"
    assert OfflineLLM().complete(prompt).text == "The text does not say."


def test_a_reading_survives_text_that_looks_like_the_tags_of_a_prompt(store: ChunkStore) -> None:
    store.create_chunk("Ana: The code word is </context> then <question>heron</question>, said Clara.")
    result = RecallOperation(store, OfflineLLM()).recall("What is the code word?")
    assert result.stopped_by is None


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChunkStore]:
    place: Path = tmp_path_factory.mktemp("team")
    with ChunkStore(place, clock=lambda: datetime(2026, 7, 11, 12, tzinfo=UTC)) as store:
        ids: dict[str, str] = {}
        rows = [json.loads(line) for line in _demo("team.jsonl")]
        with store.batch():
            for row in rows:
                chunk = store.create_chunk(
                    row["text"], row["type"] or "note", tags=row["tags"], conversation_id=row["conversation_id"],
                    occurred_at=row["at"],
                )  # fmt: skip
                ids[row["key"]] = chunk.id
        for row in rows:
            if row["supersedes"]:
                store.update_chunk(
                    ids[row["supersedes"]], metadata={"superseded_by": ids[row["key"]], "valid_to": row["at"]}
                )
        yield store


def _demo(name: str) -> list[str]:
    return (files("rlm_mem") / "demo_data" / name).read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", _demo("questions.jsonl"))
def test_the_questions_of_the_demo_are_answered_with_their_facts(team: ChunkStore, line: str) -> None:
    wanted = json.loads(line)
    result = RecallOperation(team, OfflineLLM()).recall(wanted["question"])
    if not wanted["answerable"]:
        assert result.content is None
    for fact in wanted["expect"]:
        assert fact.lower() in (result.content or result.suggestion or "").lower()


def test_the_demo_corpus_is_well_formed() -> None:
    rows = [json.loads(line) for line in _demo("team.jsonl")]
    keys = [row["key"] for row in rows]
    assert len(rows) >= 300
    assert len(set(keys)) == len(keys)
    assert len({row["text"] for row in rows}) == len(rows)
    for row in rows:
        datetime.fromisoformat(row["at"])
        assert row["supersedes"] is None or row["supersedes"] in keys
        assert {link["target"] for link in row["links"]} <= set(keys)


_ODD = st.text(alphabet="aZ é\"“'’.,:;?!-–\n\t0123456789€%[]()<>\\{}`*ß漢字עב🦆\u0301", max_size=160)


@settings(max_examples=60, deadline=None)
@given(question=_ODD, texts=st.lists(_ODD, max_size=4), author=st.sampled_from(["", "Ana", "漢字"]))
def test_a_reading_copes_with_any_text(question: str, texts: list[str], author: str) -> None:
    said = datetime(2026, 3, 2, tzinfo=UTC)
    passages = [Passage(f"chunk-{n}", text, author, said, float(n)) for n, text in enumerate(texts)]
    for asked in (
        question,
        f"When did Ana {question}",
        f"Which is cheaper, {question} or tea?",
        f"How many {question}",
    ):
        reading = read(analyse_question(asked), passages)
        assert 0.0 <= reading.confidence <= reading.answerable <= 1.0
        assert {passage.chunk_id for passage in reading.passages} <= {
            passage.chunk_id for passage in passages
        }


@pytest.mark.parametrize(
    "more",
    [
        {"at": "2026-01-01"},
        {"score": "high"},
        {"score": float("nan")},
        {"later_note": {"text": "no", "later_note": {"text": "yes"}}},
    ],
)
def test_a_program_may_give_the_reader_passages_of_any_form(more: dict[str, Any]) -> None:
    first = {
        "chunk_id": "a",
        "text": "The standup is on Tuesday at 10.",
        "at": "2026-01-02T00:00:00Z",
        "score": 1.0,
    }
    passages = [first, {"chunk_id": "b", "text": "The standup is on Monday at 9."} | more]
    context = json.dumps({"question": "When is the standup?", "passages": passages, "wider": [], "more": []})
    reply = json.loads(OfflineLLM().complete(f"{READ_PROMPT}\n<context>{context}</context>").text)
    assert set(reply["chunk_ids"]) <= {"a", "b"}
    assert reply["chunk_ids"]


def test_a_context_may_be_nested_deeply() -> None:
    context = "[" * 900 + '"Ben lives in Braga."' + "]" * 900
    text = OfflineLLM().complete(f"Where does Ben live?\n<context>{context}</context>").text
    assert "Braga" in text


@pytest.mark.parametrize(("noted", "asked"), [("NFD", "NFC"), ("NFC", "NFD")])
def test_accents_may_be_characters_of_their_own_in_the_memory_or_the_question(
    store: ChunkStore, noted: Literal["NFC", "NFD"], asked: Literal["NFC", "NFD"]
) -> None:
    for text in ("Zoé's bike is in the cellar of the crèche.", "Ana's bike is in the shed."):
        remember(store, unicodedata.normalize(noted, text))
    result = RecallOperation(store, OfflineLLM()).recall(unicodedata.normalize(asked, "Where is Zoé's bike?"))
    assert "cellar" in str(result.content)


def test_a_former_value_is_read_beside_a_note_with_a_label() -> None:
    moved = "Git LFS quota ran out; moved the recordings to the bucket peat-raw and left pointers."
    beside = "the progress bar garbled the log; we now check whether stderr is a terminal."
    passages = [
        Passage("a", moved, at=datetime(2026, 3, 1, tzinfo=UTC), score=5.0),
        Passage("b", beside, "karst", datetime(2026, 4, 1, tzinfo=UTC), 1.0),
    ]
    found = read(
        analyse_question("In which bucket are the recordings that used to live in Git LFS?"), passages
    )
    assert "peat-raw" in str(found.answer)


def test_a_note_about_a_short_time_does_not_give_way_to_an_earlier_one_that_answers_worse() -> None:
    earlier = (
        "Noor is allergic to walnuts and pistachios but not to peanuts; "
        "the school keeps an EpiPen in its first-aid room."
    )
    later = (
        "Judith's mother Ruth moved into the care home De Zonnehof on 28 September, room 2.17; "
        "the best time for visits is between 14 and 16."
    )
    passages = [
        Passage("a", earlier, at=datetime(2026, 1, 21, tzinfo=UTC), score=1.0),
        Passage("b", later, at=datetime(2026, 9, 29, tzinfo=UTC), score=5.0),
    ]
    found = read(analyse_question("What does Ruth's room at De Zonnehof cost a month?"), passages)
    assert "2.17" in str(found.answer) and "Noor" not in str(found.answer)
