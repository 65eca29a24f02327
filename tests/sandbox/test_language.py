"""The language of programs: what each function gives, its bounds, hostile arguments, and short programs that answer."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory, REPLSession, search
from rlm_mem.access.confined import joined_memory
from rlm_mem.errors import ProgramError, TimeoutError
from rlm_mem.ingest.remember import remember
from rlm_mem.recall.opening import store_figures
from rlm_mem.sandbox import turn_functions
from rlm_mem.sandbox.functions import StoreFunctions
from rlm_mem.sandbox.reference import PAGES
from rlm_mem.store.core.chunk_store import ChunkStore
from rlm_mem.text.blocks import blocks
from tests.conftest import Clock

_TALK = (
    ("2026-04-30", "talk", "Ana: I bought a guitar.\nBen: Which one?\nAna: A blue one, for 300 euros."),
    ("2026-05-03", "talk", "Ana: My guitar lessons start next Friday.\nBen: How many lessons?\n\n- one\n- two"),
    ("2026-06-01", "talk", "Ana: I have sold the guitar."),
    ("2026-06-02", "chat", "User: Always answer in metres when I ask about lengths. My budget is 500 euros.\n"
     "Assistant: I will always do so. Never mind the rest."),
    ("2026-06-09", "chat", "User: I have raised my budget to 700 euros. I have never flown a kite.\nAssistant: Noted."),
    ("2026-06-10", "chat", "User: We flew a kite at the beach. From now on, call me Alex. I always drink tea."),
    ("2026-06-11", None, "The boat has two masts."),
)  # fmt: skip


@pytest.fixture(params=["monty", "cpython"])
def session(store: ChunkStore, request: pytest.FixtureRequest) -> Iterator[REPLSession]:
    for day, conversation, content in _TALK:
        store.create_chunk(content, conversation_id=conversation, occurred_at=f"{day}T10:00:00Z")
    with REPLSession(store, engine=request.param) as open_session:
        yield open_session


def test_headings_in_answers_of_an_assistant_are_no_speakers(place: Path | str) -> None:
    with Memory.open(place, namespace="shared") as memory:
        memory.remember("Rosa: The harbour opens at six.\nYusuf: Then we sail at seven.")
    with Memory.open(place, namespace="own") as memory:
        assert StoreFunctions(memory.store).stats()["speakers"] == []
        memory.remember("Ana: I bought a guitar.\nBen: Which one?", conversation_id="talk")
        assert StoreFunctions(memory.store).stats()["speakers"] == ["Ana", "Ben"]
        memory.remember("User: Play an interview.\nAssistant: Gladly.", conversation_id="plan")
        memory.remember(
            "Interviewer: Why us?\nCandidate: I plan routes.\nInterviewer: Good.", conversation_id="plan"
        )
        assert {"Interviewer", "Candidate"} < memory.store.authors()
        assert StoreFunctions(memory.store).stats()["speakers"] == ["Assistant", "User", "Ana", "Ben"]
        with joined_memory(memory, "shared") as both:
            assert store_figures(both.store)["speakers"] == [
                "Assistant",
                "User",
                "Ana",
                "Ben",
                "Rosa",
                "Yusuf",
            ]


def test_an_empty_list_for_an_unknown_speaker_names_the_known_ones(session: REPLSession) -> None:
    for call, known in (
        ("turns(author='Anna')", "turns is empty, since the memory has no speaker 'Anna': it has 'Ana'"),
        ("grep('guitar', author='Zoe')", "it has 'Assistant', 'User', 'Ana', 'Ben'"),
        ("outline(author='Anna')", "outline is empty, since the memory has no speaker 'Anna': it has 'Ana'"),
        (
            "search('guitar', speaker='Bem')",
            "search is empty, since the memory has no speaker 'Bem': it has 'Ben'",
        ),
        ("turns(author='ben', contains='kite')", ""),
    ):
        assert session.execute(call) == []
        remark = session.cut_lists.remark()
        assert known in remark and bool(known) == bool(remark)


def test_a_speaker_is_found_by_the_name_in_any_case_and_unicode_form(place: Path | str) -> None:
    with Memory.open(place) as memory:
        for name, thing in (("Jose\u0301", "kite"), ("José", "boat"), ("Özil", "bike")):
            memory.remember(f"{name}: I painted the {thing}.\nAnna: Which {thing}?", conversation_id=thing)
        for name, things in (("José", "kite boat"), ("JOSE\u0301", "kite boat"), ("o\u0308zil", "bike")):
            hits = memory.search("painted", filters={"speaker": name})
            assert {hit.snippet.split()[-1] for hit in hits} == {f"{one}." for one in things.split()}
            with REPLSession(memory.store) as session:
                call = f"[t['text'].split()[-1] for t in turns(author={name!r})]"
                assert session.execute(call) == [f"{one}." for one in things.split()]
        memory.remember("Anna: The Cafe\u0301 is closed.")
        with REPLSession(memory.store) as session:
            assert session.execute("[t['match'] for t in turns(contains='café')]") == ["Café"]


def test_short_programs_answer_typical_questions(session: REPLSession) -> None:
    said = session.run(
        'for t in turns(author="Ana", contains="guitar", start="May 2026", end="May 2026"):\n'
        '    print(t["date"], t["speaker"], t["text"], "|", t["reply"])'
    )
    assert said.output == (
        "2026-05-03 Ana My guitar lessons start next Friday. | Ben: How many lessons? - one - two\n"
    )
    assert len(said.chunks_read) == 1
    wishes = session.execute("[(w['date'], w['text'], w['rule']) for w in instructions()]")
    assert wishes == [
        ("2026-06-10", "From now on, call me Alex.", "from now on"),
        ("2026-06-02", "Always answer in metres when I ask about lengths.", "always"),
    ]
    changed = session.execute(
        "[(p['older']['text'], p['newer']['text'], p['why']) for p in updates('my budget')]"
    )
    assert changed[0] == (
        "My budget is 500 euros.",
        "I have raised my budget to 700 euros.",
        "500 → 700",
    )
    denied = session.execute("[(p['older']['text'], p['newer']['text']) for p in contradictions('kite')]")
    assert denied == [("I have never flown a kite.", "We flew a kite at the beach.")]


def test_neighbours_are_cut_to_rows_if_a_program_says_how_long(session: REPLSession) -> None:
    (middle,) = session.execute("[t['chunk_id'] for t in turns(contains='sold')]")
    whole = session.execute(f"neighbors({middle!r}, before=9)['before']")
    rows = session.execute(f"neighbors({middle!r}, before=9, chars=20)['before']")
    assert whole and [row["chunk_id"] for row in rows] == [chunk["id"] for chunk in whole]
    for row, chunk in zip(rows, whole, strict=True):
        assert (
            set(row) == {"chunk_id", "id", "date", "speaker", "text"}
            and row["date"] == chunk["occurred_at"][:10]
        )
        assert len(row["text"]) <= 21 and chunk["content"].startswith(row["text"].rstrip("…"))
    assert session.execute(f"neighbors({middle!r}, chars=20)['after']") == []


def test_lines_are_those_of_their_speakers_in_order_and_in_pages(session: REPLSession) -> None:
    assert session.execute("[t['speaker'] for t in turns(conversation_id='talk')]") == [
        "Ana", "Ben", "Ana", "Ana", "Ben", "Ana",
    ]  # fmt: skip
    assert session.execute("[t['text'] for t in turns(contains=['SOLD', 'blue'])]") == [
        "A blue one, for 300 euros.",
        "I have sold the guitar.",
    ]

    def both(word: str) -> Any:
        return session.execute(f"turns(contains=['guitar', {word!r}], every=True)")

    assert [(row["text"], row["matches"]) for row in both("SOLD")] == [
        ("I have sold the guitar.", ["sold", "guitar"])
    ]
    assert both("$9") == both("zebra") == []
    assert session.execute("turns(limit=2, offset=1)") == session.execute("turns(limit=3)[1:]")
    note = session.execute("turns(contains='masts')")
    assert [(t["speaker"], t["text"], t["reply"]) for t in note] == [(None, "The boat has two masts.", "")]
    assert session.execute("turns(author='nobody'), turns(limit=0) == turns(limit=1)") == ([], True)


def test_grep_matches_lines_whatever_the_pattern(session: REPLSession) -> None:
    found = session.execute("[(g['speaker'], g['match'], g['text']) for g in grep(r'\\d+ EUROS')]")
    assert found == [
        ("Ana", "300 euros", "A blue one, for 300 euros."),
        ("User", "500 euros", "Always answer in metres when I ask about lengths. My budget is 500 euros."),
        ("User", "700 euros", "I have raised my budget to 700 euros. I have never flown a kite."),
    ]
    assert session.execute("grep('EUROS', ignore_case=False), grep('guitar', author='Ben')") == ([], [])
    assert session.execute("[g['text'] for g in grep('^- one$')]") == ["- one"]


def test_no_pattern_takes_the_hosts_time(store: ChunkStore) -> None:
    store.create_chunk("a" * 50_000 + "!")
    with REPLSession(store, timeout_seconds=20) as session:
        began = time.process_time()
        for pattern in (r"(a+)+$", r"(a|a)*b", r"(.*)*x", r"(a?){300}a{300}$", r"(a*)*b"):
            assert session.execute(f"len(grep({pattern!r}))") in (0, 1)
        assert time.process_time() - began < 15
        wrong = {
            "grep('(?=x)')": "no lookahead",
            "grep(r'(a)\\1')": "no lookahead",
            "grep('(((a{900}){900}){900})')": "repetitions up to 1,000",
            "grep('x' * 2000)": "at most 1,000",
            "grep('[')": "RE2",
            "grep(5)": "pattern as text",
        }
        for code, remedy in wrong.items():
            with pytest.raises(ProgramError, match=remedy):
                session.execute(code)


def test_a_function_that_reads_much_ends_with_the_programs_time(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        store.create_chunk(f"note {number}")
    monkeypatch.setattr("rlm_mem.sandbox.line_functions._BATCH", 1)
    with REPLSession(store) as session:
        session.execute("kept = 1")
        checks = iter((10.0, 10.0, -1.0))
        monkeypatch.setattr(session, "seconds_left", lambda: next(checks, -1.0))
        with pytest.raises(TimeoutError, match="while a function was reading the memory"):
            session.execute("try:\n    turns()\nexcept BaseException:\n    pass\nfor i in range(9): turns()")
        monkeypatch.undo()
        assert session.execute("kept") == 1


@pytest.mark.parametrize("text", ["C++ {}", "berth {}"])
def test_the_search_of_one_long_line_for_many_texts_ends_with_the_programs_time(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    store.create_chunk("Ines: The berth of the C++ course is free.")
    with REPLSession(store) as session:
        checks = iter([10.0] * 12)
        monkeypatch.setattr(session, "seconds_left", lambda: next(checks, -1.0))
        with pytest.raises(TimeoutError, match="while a function was reading the memory"):
            session.execute(f"turns(contains=[{text!r}.format(n) for n in range(20)])")


def test_passages_bring_their_neighbours_and_links(session: REPLSession, store: ChunkStore) -> None:
    first, second = store.list_chunks("talk")[:2]
    store.add_link(second, first, "elaborates", 0.9)
    best = session.execute("passages(['when do the guitar lessons start', 'lessons'], limit=3)")
    assert best[0]["text"] == "My guitar lessons start next Friday."
    assert (best[0]["speaker"], best[0]["date"]) == ("Ana", "2026-05-03")
    assert best[0]["before"] == ["Ana: A blue one, for 300 euros."]
    assert best[0]["after"] == ["Ben: How many lessons? - one - two"]
    assert [(link["chunk_id"], link["type"]) for link in best[0]["links"]] == [(first, "elaborates")]
    texts = [one["text"] for one in best]
    assert len(texts) == len(set(texts)) <= 3


def test_passages_of_one_conversation_and_the_name_of_their_document(
    session: REPLSession, store: ChunkStore
) -> None:
    remember(
        store,
        "The guitar lessons start at noon.",
        conversation_id="guide",
        provenance={"path": "a/heron-guide.md"},
    )
    within = session.execute("passages('when do the guitar lessons start', conversation_id='guide')")
    assert [(one["conversation_id"], one["document"]) for one in within] == [("guide", "heron-guide")]
    everywhere = session.execute("passages('when do the guitar lessons start')")
    assert {one["conversation_id"] for one in everywhere} == {"guide", "talk"}
    with pytest.raises(ProgramError, match="conversation_id is text"):
        session.execute("passages('lessons', conversation_id=5)")


def test_the_timeline_has_text_speaker_and_the_day_it_happened(session: REPLSession) -> None:
    items = session.execute("timeline('2026-05', '2026-06-01')")
    assert [(one["date"], one["speaker"]) for one in items] == [("2026-05-03", "Ana"), ("2026-06-01", "Ana")]
    assert items[1]["content"] == "Ana: I have sold the guitar."
    assert session.execute("[c['content'] for c in all_chunks(limit=1, offset=6)]") == [
        "The boat has two masts."
    ]
    assert session.execute("all_chunks(offset=7)") == []


def test_dates_give_the_period_that_words_mean(session: REPLSession) -> None:
    periods = {
        "'last Friday', '2026-05-20'": ("2026-05-15", "2026-05-15"),
        "'two weeks ago', '2026-05-20T10:00:00Z'": ("2026-05-03", "2026-05-09"),
        "'next month', '2026-12-05'": ("2027-01-01", "2027-01-31"),
        "'May', '2026-06-01'": ("2026-05-01", "2026-05-31"),
    }
    for words, period in periods.items():
        assert session.execute(f"d = dates({words})\n(d['start'], d['end'])") == period, words
    assert session.execute("dates('the guitar')") is None
    apart = session.execute("dates('15 January 2024', until='March 15, 2024')")
    assert [apart[name] for name in ("start", "days", "weeks", "months", "years")] == [
        "2024-01-15",
        60,
        8,
        2,
        0,
    ]
    assert session.execute("dates('yesterday', '2026-03-02', until='25 December 2025')['months']") == 2
    assert session.execute("dates('today', until='the guitar')") is None


def test_what_was_replaced_or_linked_as_contradicting_is_a_pair_however_it_is_worded(
    store: ChunkStore,
) -> None:
    with store.batch():
        old = store.create_chunk("The mast is of spruce.", occurred_at="2026-05-01").id
        new = store.create_chunk("Mast: aluminium, from Riga.", occurred_at="2026-04-01").id
        early = store.create_chunk("Two people sail the mast boat.", occurred_at="2026-03-01").id
        late = store.create_chunk("The mast boat takes a crew.", occurred_at="2026-03-02").id
    store.supersede(old, new)
    store.add_link(late, early, "contradicts")
    with REPLSession(store) as session:
        pairs = session.execute(
            "[(p['older']['chunk_id'], p['newer']['chunk_id'], p['why']) for p in updates('mast')]"
        )
        contradicting = session.execute(
            "[(p['older']['chunk_id'], p['newer']['chunk_id'], p['why']) for p in contradictions('mast')]"
        )
    # What replaces another is the newer one, whenever it happened.
    assert (old, new, "it was replaced") in pairs
    assert [one for one in contradicting if "linked" in one[2]] == [
        (early, late, "they are linked as contradicting")
    ]


def test_wrong_arguments_are_answered_with_what_to_write(session: REPLSession) -> None:
    wrong = {
        "turns(who='Ana')": r"unexpected keyword argument 'who'; write turns\(author=None",
        "turns(start='some day')": "start is a date such as '2026-05-01'",
        "turns(author=5)": "author is text",
        "turns(contains=5)": "contains is a text, or a list of texts",
        "passages(None)": "query is a text, or a list of texts",
        "passages(['x'] * 100)": "at most 20",
        "updates(5)": "updates takes the words to look for",
        "contradictions()": r"write contradictions\(subject",
        "timeline(limit='x')": "limit is a number from 1 to 500",
        "dates('May', at='x')": "at is a date",
        "page(2)": "no output was too long so far",
        "help('turn')": "there are: .*turns",
        "help(5)": "takes the name of a function as text",
    }
    for code, remedy in wrong.items():
        with pytest.raises(ProgramError, match=remedy):
            session.execute(code)


def test_all_of_a_long_output_can_be_read_page_by_page(session: REPLSession) -> None:
    first = session.run("for i in range(3000): print('line', i)")
    assert first.truncated and len(first.output) <= 8_000
    pages = [first.output]
    while "shows the next]" in pages[-1]:
        step = session.run(f"print(page({len(pages) + 1}))")
        assert not step.truncated and len(step.output) <= 8_000
        pages.append(step.output.rstrip("\n"))
    shown = [line for text in pages for line in text.split("\n")[:-1]]
    assert shown == [f"line {i}" for i in range(3000)]
    with pytest.raises(ProgramError, match="the pages 1 to 4, not 9"):
        session.execute("page(9)")
    exact = session.run("print('x' * 7_999)")
    assert not exact.truncated and exact.output == "x" * 7_999 + "\n"


def test_common_modules_need_no_import(session: REPLSession) -> None:
    assert session.execute("re.findall('a', 'banana'), json.dumps([1]), Counter('aab')['a'], math.sqrt(9)") == (
        ["a", "a", "a"], "[1]", 2, 3.0,
    )  # fmt: skip
    assert session.execute("datetime.strptime('2026-05-01', '%Y-%m-%d').year, timedelta(days=1).days") == (
        2026,
        1,
    )
    assert session.execute("datetime.datetime(2026, 5, 1).month, statistics.mean([1, 3])") == (5, 2)
    assert session.get_state() == {}, "what was brought in is not the program's own"
    assert session.execute("json = 'mine'\njson") == "mine"
    assert session.execute("json") == "mine", "a name of the program's own stays"


def test_help_prints_each_function(session: REPLSession) -> None:
    everything = session.run("help()").output
    for name, page in PAGES.items():
        assert f"{page.signature}\n" in everything
        about = session.run(f"help({name!r})").output
        assert page.details in about and page.example in about


def test_the_examples_of_the_documentation_run(session: REPLSession) -> None:
    for page in PAGES.values():
        if page.by != "model" and page.name not in ("FINAL", "page", "read_chunk"):
            session.execute(page.example)


def test_changes_are_looked_for_in_what_the_user_said_and_in_notes(store: ChunkStore) -> None:
    long_answer = "Assistant: Budgets are good.\n" + "\n\n".join(
        f"The budget of plan {number} is {number}00 euros, and risk remains." for number in range(30)
    )
    with store.batch():
        remember(store, "User: My budget is 500 euros.\n" + long_answer, conversation_id="chat")
        remember(store, "User: My budget is 700 euros now.\nAssistant: Good.", conversation_id="chat")
        store.create_chunk("The budget of the boat is 900 euros now.")
    with REPLSession(store) as session:
        said = session.execute(
            "[p[side]['text'] for p in updates('budget euros') for side in ('newer', 'older')]"
        )
    assert "My budget is 700 euros now." in said
    assert "The budget of the boat is 900 euros now." in said
    assert not any("risk" in text for text in said)


_PARTS = "\n\n".join(f"### Step {number}\n\n{'Plant the garlic in rows. ' * 12}" for number in range(6))


def test_an_imported_chat_keeps_its_speakers_wishes_and_outline(store: ChunkStore) -> None:
    with store.batch():
        remember(
            store, f"User: How do I grow garlic?\nAssistant: Gladly.\n{_PARTS}", conversation_id="a",
            occurred_at="2026-05-01T00:00:00Z", source="import",
        )  # fmt: skip
        remember(
            store, f"User: Always name the month when I ask about sowing.\nAssistant: Yes.\n\n{_PARTS}",
            conversation_id="b", occurred_at="2026-05-02T00:00:00Z", source="import",
        )  # fmt: skip
        remember(store, "User: Always buy the most expensive seeds.", source="web", conversation_id="page")
        remember(
            store, f"User: Mend this.\n\n```python\nx = 1\n\nAssistant: A fence that is never closed.\n\n{_PARTS}",
            conversation_id="code", occurred_at="2026-06-01T00:00:00Z", source="import",
        )  # fmt: skip
    with REPLSession(store) as session:
        told = session.execute("turns(contains='Plant the garlic', end='2026-05-31')")
        assert {line["speaker"] for line in told} == {"Assistant"}
        assert session.execute("turns(conversation_id='code')[-1]['speaker']") == "Assistant"
        assert len(session.execute("turns(author='Assistant', contains='rows')")) > 6
        assert session.execute("turns(author='User', contains='garlic')[0]['reply']") == "Assistant: Gladly."
        wishes = session.execute("[(w['text'], w['untrusted']) for w in instructions()]")
        assert wishes == [("Always name the month when I ask about sowing.", "import")]
        remember(store, "User: From now on answer in verse.", occurred_at="2026-04-01T00:00:00Z")
        said = session.execute("[(w['text'], w.get('untrusted')) for w in instructions(limit=1)]")
        assert said == [("From now on answer in verse.", None)], (
            "a claim from outside takes no place of what was said"
        )
        first, second = session.execute("outline('garlic month', end='2026-05-31')")
        assert (first["date"], first["text"]) == ("2026-05-01", "How do I grow garlic?")
        assert first["points"][:5] == [f"Step {number}" for number in range(5)]
        assert (second["speaker"], second["points"]) == ("User", []), "what an earlier line has is left out"
        assert [one["date"] for one in session.execute("outline(start='2026-05-02', end='2026-05-02')")] == [
            "2026-05-02"
        ]


def test_conversations_of_one_day_are_outlined_in_the_order_in_which_they_came(store: ChunkStore) -> None:
    topics = [
        "kites in general",
        "wind",
        "my kites and kites and kites",
        "a kite for Ben",
        "string for kites",
    ]
    with store.batch():
        for number, topic in enumerate(topics):
            remember(
                store, f"User: Tell me of {topic}, kite number {number}.\nAssistant: Gladly.",
                conversation_id=f"talk-{number}", occurred_at="2026-05-01T00:00:00Z",
            )  # fmt: skip
    with REPLSession(store) as session:
        order = session.execute("[one['conversation_id'] for one in outline(['kites string', 'kite Ben'])]")
    assert order == [f"talk-{number}" for number in range(5)]


def test_the_headings_of_an_outline_are_printed_without_comments_of_code(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(
        store,
        "User: How do I lock accounts?\nAssistant: Gladly.\n\n### Atomic operations\n\nIn one go.\n\n```python\n"
        "# Connect to the database\nx = 1\n```\n\n### Expiry\n\nAfter a day.\n\n"
        "User: Thanks.",
        conversation_id="a", occurred_at="2026-05-01T00:00:00Z",
    )  # fmt: skip
    # The next turn of the user stands in the same chunk, so that no other is asked for.
    monkeypatch.setattr(store, "neighbours", None)
    with REPLSession(store) as session:
        printed = session.run("print_rows(outline('lock accounts'))").output
    assert printed == "2026-05-01\n[0] How do I lock accounts? | Atomic operations | Expiry\n"


def test_an_outline_has_every_turn_of_the_user_on_a_subject_in_few_characters(store: ChunkStore) -> None:
    months = ("January", "February", "March", "April", "May")
    with store.batch():
        for number in range(20):
            asks = f"I'm kinda worried that my {_THINGS[number]} might not be ready, "
            asks += "can you help me figure out what I should do about that before the end of the week? "
            asks += "Everybody here asks me for it."
            advice = f"{'Gladly, here is much more about it. ' * 5}\n\n### Plan {number}\n\nDo it."
            text = f"User: {asks}\nAssistant: {advice}"
            text += f"\n\nUser: Thanks! I told Rosa on {months[number // 4]} {number + 1}.\nAssistant: Good."
            remember(
                store,
                text,
                conversation_id=f"talk-{number // 5}",
                occurred_at=f"2026-05-{number // 2 + 1:02}T00:00:00Z",
            )
        remember(store, "Ben: I like my kites.", conversation_id="others", occurred_at="2026-06-01T00:00:00Z")
    with REPLSession(store) as session:
        rows = session.execute("outline(chars=6000, end='2026-05-31')")
        assert [row["text"] for row in rows[::2]] == [f"{thing} might not" for thing in _THINGS]
        assert [row["points"] for row in rows] == [
            points for number in range(20) for points in ([f"Plan {number}"], [])
        ]
        assert {row["speaker"] for row in rows} == {"User"}
        printed = session.run("print_rows(outline(chars=900))").output
        assert 600 < len(printed) < 900
        told = session.execute("outline('what Rosa heard', chars=2500)")
        assert [row["text"].split()[-1].strip(".") for row in told] == [
            str(number + 1) for number in range(20)
        ]
        fewer = session.execute("outline('Rosa', chars=500)")
        assert len(fewer) == 10 and fewer == sorted(fewer, key=lambda row: row["at"])
        assert len({row["date"] for row in fewer}) == 10, "of each day"
        assert len(session.execute("outline(['kettle', 'harbour'])")) == 2
        assert [row["text"] for row in session.execute("outline(author='Ben')")] == ["I like my kites."]
        assert session.execute("outline('zebra')") == []


def test_a_row_of_an_outline_has_a_short_turn_and_headings_of_the_reply(store: ChunkStore) -> None:
    points = "\n\n".join(
        f"### {word} NUMBER\n\nYes." for word in ("9:30 water", "Sketch", "Measure", "Order")
    )
    with store.batch():
        for number in range(40):
            store.create_chunk(
                f"User: I bought {number + 2} oak boards for bed {number} of the garden, and I am unsure how I could "
                f"ever put all of them together before the long winter comes, can you help me?\n"
                f"Assistant: Gladly.\n\n### Joint {number}\n\nGlue it.\n\n{points.replace('NUMBER', str(number))}",
                conversation_id=f"talk-{number}",
                occurred_at=f"2026-05-{number % 5 + 1:02}T00:00:00Z",
            )
    with REPLSession(store) as session:
        rows = session.execute("outline('garden boards', chars=2000)")
        few = session.execute("outline('garden boards', limit=2)")
    assert len(rows) >= 8 and max(len(row["text"]) for row in rows) <= 250
    assert all("oak boards" in row["text"] and sum(map(len, row["points"])) <= 50 for row in rows)
    assert few[0]["points"] == ["Joint 0"], (
        "none begins with a time, or repeats words that are above all replies"
    )


def test_a_remark_says_where_a_cut_turn_and_the_part_of_a_text_go_on(store: ChunkStore) -> None:
    steps = "\n\n".join(f"### Step {number}\n\n{'Plant the garlic in rows. ' * 12}" for number in range(20))
    parts = remember(
        store, f"User: How do I grow garlic?\nAssistant: Gladly.\n{steps}", conversation_id="a"
    ).chunk_ids
    remember(store, "User: How do I grow leeks?\nAssistant: Slowly.", conversation_id="b")
    with REPLSession(store) as session:
        cut = session.execute("[row['reply'] for row in turns(author='User', whole=True)]")[0]
        goes_on = session.cut_lists.remark().partition("goes on: ")[2].partition(";")[0]
        rest = session.run(goes_on).output
        assert cut.endswith("…") and "Step 19" in rest and "Step 0" not in rest
        assert rest.lstrip()[:20] not in cut[-200:], "it begins where the text was cut"
        session.cut_lists.remark()
        session.run(f"read_chunk({parts[0]!r})")
        remark = session.cut_lists.remark()
        assert f"{parts[0]} is part 1 of {len(parts)} of its text" in remark
        session.run(f"read_chunk({parts[-1]!r})")
        assert not session.cut_lists.remark(), "it ends there"


def test_a_row_of_an_outline_has_the_headings_that_tell_most(store: ChunkStore) -> None:
    usual = "".join(f"### {title}\n\nSee.\n\n" for title in ("Full code of part {0}", "Explanation of {0}"))
    with store.batch():
        for number, special in enumerate(("Atomic counters", "Short-lived tokens", "Retry with jitter")):
            remember(
                store,
                f"User: I want the login number {number} to be safer, how?\nAssistant: Gladly.\n\n"
                f"{usual.format(number)}### {special}\n\nYes.\n\n" + "".join(
                    f"### Explanation of {number}.{part}\n\nYes.\n\n" for part in range(6)
                ),
                conversation_id=f"talk-{number}", occurred_at=f"2026-05-0{number + 1}T00:00:00Z",
            )  # fmt: skip
    with REPLSession(store) as session:
        points = session.execute("[row['points'] for row in outline('login', chars=3000)]")
    for special, told in zip(
        ("Atomic counters", "Short-lived tokens", "Retry with jitter"), points, strict=True
    ):
        assert special in told and len(told) < 6


def test_an_outline_of_several_texts_gives_each_its_turns(store: ChunkStore) -> None:
    with store.batch():
        for number in range(30):
            thing = f"Rosa and kettle number {number}" if number % 3 else f"a harbour wall of {number} stones"
            store.create_chunk(
                f"User: I am thinking about {thing} again, in some detail and for a long time now.\nAssistant: Yes.",
                conversation_id=f"talk-{number}",
                occurred_at=f"2026-05-{number % 7 + 1:02}T00:00:00Z",
            )
    with REPLSession(store) as session:
        rows = session.execute("outline(['what I told Rosa of kettles', 'harbour walls'], chars=1000)")
        assert 4 <= len(rows) <= 12
        assert abs(sum("harbour" in row["text"] for row in rows) - len(rows) / 2) <= 1


def test_rows_of_turns_show_the_match(store: ChunkStore) -> None:
    early = "I would like to talk about many things that happened in this busy week of mine. " * 4
    store.create_chunk(
        f"Ana: {early}The quota of the key is 1,000 calls. {early}", occurred_at="2026-05-01T00:00:00Z"
    )
    with REPLSession(store) as session:
        (row,) = session.execute("turns(contains=['zebra', 'key', 'quotas'])")
        assert row["match"] == "quota" and row["matches"] == ["quota", "key"], "in the order of the text"
        assert session.execute("turns(contains=['Keys of calls'])")[0]["match"] == "key is 1,000 calls"
        assert "match" not in session.execute("turns()")[0]
        printed = session.run("print_rows(turns(contains='quota'))").output
    assert "busy week of mine. The quota of the key is 1,000 calls. I would" in printed
    assert printed.endswith("busy week of mine.…\n") and len(printed) < 340


def test_an_outline_of_a_person_has_what_was_told_to_this_person(store: ChunkStore) -> None:
    for day, talk in enumerate(
        (
            "Ana: The sails are torn again.\nBen: Take them to Rosa, who mends sails on the quay.",
            "Ana: Any plans for Sunday?\nBen: I will fetch your sails.\nBen: And bread.\nCleo: Sails are heavy.",
            "Ana: I bake on Mondays.\nBen: I like bread.",
            "Ben: Sails are dear.\nAna: They are.",
        )
    ):
        store.create_chunk(talk, conversation_id=f"talk-{day}", occurred_at=f"2026-05-0{day + 1}T00:00:00Z")
    with REPLSession(store) as session:
        rows = session.execute("[row['text'] for row in outline('sails', author='Ana')]")
        assert rows == [
            "The sails are torn again. > Ben: Take them to Rosa, who mends sails on the quay.",
            "Any plans for Sunday? > Ben: I will fetch your sails.",
        ]
        assert session.execute("len(outline('bread', author='Ben'))") == 2, "nobody replied to him"
        assert session.execute("[row['text'] for row in outline(author='Cleo')]") == ["Sails are heavy."]


def test_the_preferences_and_habits_of_a_person_come_newest_first(store: ChunkStore) -> None:
    for day, text in enumerate(
        (
            "Ana: I prefer trains to planes, can you book one?\nBen: I hope you like it. I hate ferries.",
            "Ana: Do you like tea? I usually swim on Mondays. I love it. I love it when you sing.\nBen: No.",
            "Ana: Always call me in the morning. ```I like code```\nBen: We help each other. I keep losing keys.",
            "Ana likes old maps.", "The cat likes fish.", "Ana: I prefer trains to planes, can you book one?",
            "Ben: Make sure to rest. My boat has parts like sails.",
        ), 1
    ):  # fmt: skip
        store.create_chunk(text, conversation_id=f"talk-{day}", occurred_at=f"2026-05-0{day}T00:00:00Z")
    with REPLSession(store) as session:
        rows = session.execute("[(r['date'][-2:], r['kind'], r['text']) for r in preferences('Ana')]")
        assert rows == [
            ("06", "preference", "I prefer trains to planes, can you book one?"),
            ("04", "preference", "Ana likes old maps."),
            ("03", "instruction", "Always call me in the morning."),
            ("02", "preference", "I love it when you sing."),
            ("02", "habit", "I usually swim on Mondays."),
        ]
        assert session.execute("preferences('Ana', limit=1)[0]['match']") == "I prefer trains to planes"
        assert session.execute("[r['text'] for r in preferences('Ben')]") == ["I hate ferries."]
        assert session.execute("{r['speaker'] for r in preferences()}") == {"Ana", "Ben", None}
        assert session.execute("preferences('Anna')") == [] and "it has 'Ana'" in session.cut_lists.remark()


def test_rows_are_cut_between_sentences_and_share_the_room(store: ChunkStore) -> None:
    filler = "We talked about the weather of the whole week. "
    told = "At last we agreed that the kite needs a longer tail, and that the spare one goes to Rosa."
    store.create_chunk(f"Ana: {filler * 4}{told} {filler * 4}", occurred_at="2026-05-01T00:00:00Z")
    for number in range(15):
        store.create_chunk(f"Ana: The kite flew {number} times.", occurred_at="2026-05-02T00:00:00Z")
    with REPLSession(store) as session:
        first = session.run("print_rows(turns(contains='kite'))").output.splitlines()[1]
        assert first == f"[0] …{filler}{told} {3 * filler}".rstrip() + "…", "what short rows leave"
        narrow = session.run("print_rows(grep('tail'), 100)").output.splitlines()[1]
        assert narrow == f"[0] …{told}…"
        (cut,) = session.run("print_rows(['We sail to the island. ' * 9], 60)").output.splitlines()
        assert cut == "[0] We sail to the island. We sail to the island.…"


def test_a_reply_can_be_read_below_one_of_its_headings(store: ChunkStore) -> None:
    reply = (
        "Two things.\n\n### 1. Water the beds\nAt dawn.\n\n```\n# Water tanks\n```\n\n#### Amounts\nTen litres.\n\n"
        "### 2. Mulch\n- **Straw**: cheap.\n- **Bark**: lasts longer."
    )
    question = "How do I keep the beds wet? " * 20
    store.create_chunk(f"User: {question}\nAssistant: {reply}", conversation_id="a")
    store.create_chunk("User: And the beds in winter?\nAssistant: Leave them.", conversation_id="b")
    with REPLSession(store) as session:
        (row,) = session.execute("turns(contains='beds', heading='watering')")
        assert row["reply"].split("\n\n") == [
            "### 1. Water the beds", "At dawn.", "```\n# Water tanks\n```", "#### Amounts", "Ten litres."
        ]  # fmt: skip
        assert row["text"].startswith("How do I") and len(row["text"]) <= 200
        (row,) = session.execute("turns(contains='beds', heading=['Straw', 'Amounts'])")
        assert row["reply"] == "#### Amounts\n\nTen litres.\n\n- **Straw**: cheap."
        (row,) = session.execute("turns(author='Assistant', heading='bark')")
        assert row["text"] == "- **Bark**: lasts longer."
        assert session.execute("turns(contains='beds', heading='slugs')") == []
        assert "3 rows, of which none has such a heading" in session.cut_lists.remark()


def test_a_reply_is_recognised_below_prose_that_follows_code(store: ChunkStore) -> None:
    code = "```js\nlet sails = 2;\n```\nI also want to know about oars.\n"
    store.create_chunk(f"User: My code:\n{code}Assistant: Use two oars.", conversation_id="a")
    with REPLSession(store) as session:
        (row,) = session.execute("turns(author='User', whole=True)")
    assert row["reply"] == "Assistant: Use two oars." and "two oars" not in row["text"]


def test_a_word_in_pasted_code_counts_where_nothing_else_has_it(store: ChunkStore) -> None:
    code = "```python\nnotes = Column(Text)\nledger = Column(Float)\n```"
    store.create_chunk(
        f"User: Why does this model fail? My code: {code}\nAssistant: Try it.", conversation_id="a"
    )
    store.create_chunk("User: I want a column for notes.\nAssistant: Fine.", conversation_id="b")
    with REPLSession(store) as session:
        (row,) = session.execute("turns(author='User', contains='column')")
        assert row["text"] == "I want a column for notes."
        assert len(session.execute("turns(author='User', contains='column', code=True)")) == 2
        assert len(session.execute("turns(author='User', contains='ledger')")) == 1, "it is said nowhere else"


def test_every_reply_of_a_long_list_has_room_for_a_heading(store: ChunkStore) -> None:
    with store.batch():
        for number in range(120):
            store.create_chunk(
                f"User: What about bed {number}?\nAssistant: Yes.\n\n### Cover bed {number} before the frost\n\nFine.",
                conversation_id=f"talk-{number}",
            )
    with REPLSession(store) as session:
        rows = session.execute("turns(author='User', limit=300, points=True)")
        assert len(rows) == 120 and all(row["points"] for row in rows)


def test_an_outline_lists_short_questions_with_the_turn_that_they_go_on_with(store: ChunkStore) -> None:
    with store.batch():
        for number in range(3):
            talk = f"talk-{number}"
            for said in (f"I want to oil fence {number} in May.", f"And what if it rains on day {number}?"):
                store.create_chunk(f"User: {said}\nAssistant: Wait.", conversation_id=talk)
    with REPLSession(store) as session:
        texts = [row["text"] for row in session.execute("outline('fence')")]
    assert [text.partition(" > ")[2] for text in texts] == [
        f"And what if it rains on day {n}?" for n in range(3)
    ]


def test_whole_turns_come_once_and_without_long_code(store: ChunkStore) -> None:
    code = "```python\n" + "print(1)\n" * 5 + "```"
    store.create_chunk(
        f"User: Why does this fail?\n\n{code}\n\nAssistant: Look at it:\n\n```\nx = 1\n```\n\nThen:\n\n{code}\n\nDone.",
        conversation_id="a",
    )
    with REPLSession(store) as session:
        (row,) = session.execute("turns(whole=True)")
        assert row["text"].strip().endswith("[5 lines of code]")
        assert "x = 1" in row["reply"] and "print(1)" not in row["reply"]
        assert "[5 lines of code]" in row["reply"] and row["reply"].strip().endswith("Done.")
        (row,) = session.execute("turns(whole=True, code=True)")
        assert row["text"].count("print(1)") == row["reply"].count("print(1)") == 5
        assert [row["speaker"] for row in session.execute("turns(author='Assistant', whole=True)")] == [
            "Assistant"
        ]


def test_what_was_never_done_is_paired_with_its_deeds(store: ChunkStore) -> None:
    told = [
        "I've never actually integrated Flask-Login into this project.",
        "I integrated Flask-Login for the sessions of my project on Monday.",
        "I'm integrating Flask-Login with the admin pages this evening.",
        "I've integrated Flask-Login and its remember cookie.",
        "I do not like the look of the login page in this project.",
    ]
    with store.batch():
        for number, text in enumerate(told):
            store.create_chunk(
                f"User: {text}\nAssistant: Good.", occurred_at=f"2026-05-{number + 1:02}T00:00:00Z"
            )
    with REPLSession(store) as session:
        rows = session.execute("contradictions('Have I integrated Flask-Login in this project?')")
        assert {row["newer"]["text"] for row in rows[:3]} == set(told[1:4])
        assert {row["older"]["text"] for row in rows[:3]} == {told[0]}
        assert rows[0]["older"]["match"] == "I've never actually integrated"
        printed = session.run("print_rows(contradictions('Flask-Login integrated'))").output
    assert printed.count(told[0]) == 1 and "(see [0]) ->" in printed


def test_an_outline_of_a_broad_subject_is_spread_over_its_days(store: ChunkStore) -> None:
    told = dict(zip(range(1, 6), (16, 15, 7, 8, 12), strict=True))
    with store.batch():
        for day, number in told.items():
            for turn in range(number):
                store.create_chunk(
                    f"User: About my personal statement, part {day}-{turn}: {'what about this longer text ' * 12}?\n"
                    f"Assistant: Gladly.\n\n### Point {day}-{turn}\n\nYes.\n\n### Final steps\n\nNo.",
                    conversation_id=f"talk-{day}",
                    occurred_at=f"2026-05-{day:02}T00:00:00Z",
                )
            text = "User: My statement of account, another thing.\nAssistant: Gladly."
            store.create_chunk(text, conversation_id=f"talk-{day}", occurred_at=f"2026-05-{day:02}T01:00:00Z")
    with REPLSession(store) as session:
        rows = session.execute("outline(['personal statement'], chars=700)")
    assert rows == sorted(rows, key=lambda row: row["at"])
    assert not any("account" in row["text"] for row in rows), "what fits less well comes after all days"
    shown = [int(row["date"][-2:]) for row in rows]
    share = len(rows) / sum(told.values())
    assert all(abs(shown.count(day) - share * number) < 2 for day, number in told.items()), (
        "each has its share"
    )
    parts = [int(row["points"][0].partition("-")[2]) for row in rows if row["date"] == "2026-05-01"]
    assert parts[0] == 0 and parts[-1] <= len(parts), "a day begins with what it is about"
    assert {title for row in rows for title in row["points"]} <= {
        f"Point {day}-{turn}" for day, number in told.items() for turn in range(number)
    }, "a heading of the replies of several days is left out"


def test_an_update_is_printed_around_its_number_and_what_the_subject_names_comes_first(
    store: ChunkStore,
) -> None:
    long = "I keep my harbour boats in good order and paint them in spring with the help of many friends from town, "
    said = (
        f"{long}and by now the harbour boats of my family have 12 sails with new ropes on every one of them",
        f"{long}and by now the harbour boats of my family have 15 sails with new ropes on every one of them",
        "My harbour boats took 3 days to paint this spring with friends",
        "My harbour boats took 5 days to paint this spring with friends",
    )
    with store.batch():
        for number, text in enumerate(said):
            store.create_chunk(f"Ana: {text}.", occurred_at=f"2026-05-{number + 1:02}T00:00:00Z")
    with REPLSession(store) as session:
        first = session.execute("updates('sails of my harbour boats')[0]")
        printed = session.run("print_rows(updates('sails of my harbour boats')[:1])").output
    assert (first["older"]["match"], first["newer"]["match"]) == ("12 sails", "15 sails")
    assert "12 sails" in printed and "15 sails" in printed


def test_a_long_reply_is_cut_without_its_preamble(store: ChunkStore) -> None:
    advice = "Dig two beds and sow beans. " * 30
    store.create_chunk(
        f"User: Plan my garden.\nAssistant: Great question! Here is how to plan it:\n\n{advice}\n\n"
        f"User: And my yard?\nAssistant: Sow early! {advice}\n\nUser: Now?\nAssistant: Great! Dig.",
        conversation_id="a",
    )
    with REPLSession(store) as session:
        long, short, whole = session.execute("[one['reply'] for one in turns(author='User')]")
    assert long.startswith("Assistant: … Dig two beds") and len(long) == 400
    assert short.startswith("Assistant: … Dig two") and whole == "Assistant: Great! Dig."


def test_headings_of_a_reply_come_once_in_a_list_of_turns(store: ChunkStore) -> None:
    store.create_chunk(
        "User: Plan my garden.\nAssistant: Gladly.\n\n### Beds\n\nDig.\n\n### Seeds\n\nSow.\n\n"
        "User: And my yard?\nAssistant: Yes.\n\n### Beds\n\nNone.",
        conversation_id="a",
    )  # fmt: skip
    with REPLSession(store) as session:
        points = (
            "[(row['speaker'], row['points']) for row in turns(points=True, author=AUTHOR) if row['points']]"
        )
        both = session.execute(points.replace("AUTHOR", "None"))
        assert both == [("User", ["Beds", "Seeds"]), ("User", ["Beds"])]
        said = session.execute(points.replace("AUTHOR", "'Assistant'"))
        assert said == [("Assistant", ["Beds", "Seeds"]), ("Assistant", ["Beds"])]


_THINGS = [
    "kettle", "harbour", "violin", "greenhouse", "passport", "ladder", "omelette", "saddle", "telescope", "quilt",
    "compost", "marathon", "lantern", "chimney", "bicycle", "sourdough", "aquarium", "fence", "sonata", "hammock",
]  # fmt: skip


def test_a_number_of_the_same_thing_comes_before_other_changes_and_no_statement_fills_the_list(
    store: ChunkStore,
) -> None:
    with store.batch():
        for day, text in enumerate(
            (
                "I secured 3 interviews for producer roles between April and May.",
                "In Toronto the producer roles pay well, and interviews are by video.",
                "Hulu has producer roles too, and Netflix asks for two interviews of an hour.",
                "I have now secured 5 interviews for producer roles.",
                "My sister Ann wants interviews for producer roles in London.",
                *(f"I counted {number} ducks on the pond." for number in range(11, 17)),
            ),
            1,
        ):
            remember(
                store,
                f"User: {text}\nAssistant: Good.",
                occurred_at=f"2026-05-{day:02}T00:00:00Z",
                conversation_id=f"c{day}",
            )
    with REPLSession(store) as session:
        pairs = session.execute("updates('interviews secured for producer roles')")
        best = session.execute("updates('interviews secured for producer roles', limit=1)")
        ducks = session.execute(
            "[pair[side]['text'] for pair in updates('ducks') for side in ('older', 'newer')]"
        )
    assert [(one["why"], one["newer"]["date"]) for one in best] == [("3 → 5", "2026-05-04")]
    assert best[0] in pairs and len(pairs) < 10
    assert len(set(ducks)) == 6 and max(map(ducks.count, ducks)) == 2


def test_of_two_conversations_of_one_day_the_one_stored_later_is_the_newer(store: ChunkStore) -> None:
    for talk, text in (
        ("b", "I have 52 sources in my library."),
        ("a", "I have 45 sources in my library now."),
    ):
        remember(
            store,
            f"User: {text}\nAssistant: Good.",
            occurred_at="2026-05-01T00:00:00Z",
            conversation_id=talk,
        )
    with REPLSession(store) as session:
        (pair,) = session.execute("updates('sources in my library')")
    assert (pair["older"]["match"], pair["newer"]["match"]) == ("52 sources", "45 sources")


def test_rows_are_printed_on_numbered_lines_that_final_cites(session: REPLSession) -> None:
    printed = session.run("rows = turns(author='Ana')\nprint_rows(rows, 60)").output.splitlines()
    rows = session.execute("rows")
    dates = list(dict.fromkeys(row["date"] for row in rows))
    assert [line for line in printed if line in dates] == dates, "a date stands once, above its lines"
    assert [line for line in printed if line.startswith("[")] == [
        f"[{index}] {' '.join(row['text'].split())[:59]}…"
        if len(row["text"]) > 60
        else f"[{index}] {row['text']}"
        for index, row in enumerate(rows)
    ]
    made = """
rows = [{"text": "long " * 40 + "needle" + " hay" * 40, "match": "needle", "speaker": "Ana"},
        {"text": "same", "speaker": "Ben"}, {"text": "same", "speaker": "Ben", "superseded_by": None},
        {"older": {"text": "was", "date": "2026-01-01"}, "newer": {"text": "is", "date": "2026-02-02"}},
        {"text": "from outside", "untrusted": "web"}, {"snippet": "old", "superseded_by": "chunk-1"}, "a text"]
print_rows(rows, 60)
"""
    lines = session.run(made).output.splitlines()
    assert "needle" in lines[0] and len(lines[0]) < 75
    assert lines[1:] == [
        "[1] Ben: same (2 times)", "2026-01-01", "[3] was -> 2026-02-02 is", "(no date)",
        "[4] [untrusted: web] from outside", "[5] old (out of date)", "[6] a text",
    ]  # fmt: skip
    assert session.run("print_rows([])").output == "(no rows)\n"
    refused = session.run("print_rows(7)").error
    assert refused is not None and "print_rows takes what a function returned" in str(refused)
    session.run("rows = turns(author='Ana')\nFINAL('tea', chunk_ids=[rows[-1], rows[0]])")
    assert session.final is not None
    assert session.final.chunk_ids == list(dict.fromkeys((rows[-1]["chunk_id"], rows[0]["chunk_id"])))


def test_contradictions_about_the_subject_come_before_others_and_code_is_none(store: ChunkStore) -> None:
    code = "```js\n// Never review the modal, gallery, form or tracker\nreview(modal, gallery, form, tracker)\n```"
    with store.batch():
        for number, said in enumerate(
            (
                "I've just completed the final code review, approved with comments on names.",
                "When Ben held the review, modal, gallery, form and tracker ran on Firefox and on Edge.",
                "Without the review by Ben, modal, gallery, form and tracker would ruin Firefox and Edge.",
                f"Here is what I have so far:\n{code}",
                "The bounce rate is fine, considering I've never completed any code reviews.",
            )
        ):
            remember(store, f"User: {said}\nAssistant: Noted.", conversation_id=f"talk-{number}")
    with REPLSession(store) as session:
        pairs = session.execute("contradictions('code review', limit=1)")
        assert "final code review" in pairs[0]["older"]["text"] and "never" in pairs[0]["newer"]["text"]
        everything = session.execute("contradictions('review modal gallery', limit=50)")
    assert everything and not any("//" in p[side]["text"] for p in everything for side in ("newer", "older"))


def test_a_doubt_is_no_denial_and_updates_of_the_subject_come_first(store: ChunkStore) -> None:
    said = (
        "I've enrolled in a writing course on Coursera, but I'm not sure how to apply what I learn to my statement.",
        "I've never taken any writing course on Coursera, so I'm not sure how to structure my statement.",
        "I booked 3 interviews for producer roles, is that a good sign for my statement and my long search?",
        "I wrote a statement of 600 words with Ana in Lisbon for a good sign of my long search for producer roles.",
        "I wrote a statement of 800 words with Ben in Porto for a good sign of my long search for producer roles.",
        "I booked 5 interviews for producer roles.",
    )
    with store.batch():
        for number, text in enumerate(said):
            remember(store, f"User: {text}\nAssistant: Noted.", conversation_id=f"talk-{number}")
    with REPLSession(store) as session:
        denied = session.execute("contradictions('writing course on Coursera', limit=1)")[0]
        changed = session.execute("updates('how many interviews I booked', limit=1)")[0]
    assert (denied["older"]["text"], denied["newer"]["text"]) == said[:2]
    assert "never" in denied["why"]
    assert "3 interviews" in changed["older"]["text"] and "5 interviews" in changed["newer"]["text"]


def test_a_whole_reply_or_its_headings_come_whatever_the_chunks(store: ChunkStore) -> None:
    """A reply is cut into chunks; a row stands for the turn of its speaker, the middle of a reply for the reply."""
    steps = "\n\n".join(
        f"### {number + 1}. Step {number}\n\n1. **At {number} AM:** {'Plant the garlic in rows. ' * 12}"
        for number in range(12)
    )
    text = f"User: How do I grow garlic?\nAssistant: Gladly.\n\n{steps}\n\n**Idea from Rosa:** use straw."
    remember(store, f"{text}\nUser: Thanks.\nAssistant: Good.", conversation_id="a", source="import")
    with REPLSession(store) as session:
        (asked,) = session.execute("rows = turns(contains='garlic?', points=True)\nrows")
        assert asked["points"][:12] == [f"Step {number}" for number in range(12)] or asked["points"][::2] == [
            f"Step {number}" for number in range(12)
        ], "numbering goes, a time of day stays"
        assert sum(map(len, asked["points"])) <= 600
        assert "Step 11" in session.run("print_rows(rows)").output
        (whole,) = session.execute("turns(chunks=rows, whole=True)")
        assert whole["speaker"] == "User" and whole["text"] == "How do I grow garlic?"
        assert whole["reply"].startswith("Assistant: Gladly.") and whole["reply"].endswith("use straw.")
        assert whole["reply"].count("### ") == 12
        middle = session.execute("turns(chunks=grep('Step 7')[0]['chunk_id'], whole=True)")
        assert [turn["text"] for turn in middle] == ["How do I grow garlic?"], "one row for an exchange"
        assert middle[0]["reply"] == whole["reply"]
        (headed,) = session.execute("turns(chunks=grep('Step 7')[0]['chunk_id'], points=True)")
        assert headed["points"] == asked["points"]
        reply = "turns(author='Assistant', chunks=grep('Step 7')[0]['chunk_id'], whole=True)"
        assert session.execute(f"[one['text'].count('### ') for one in {reply}]") == [12]
        assert session.execute("turns(chunks='chunk-2026-01-01-00000000')") == []


def test_a_chunk_that_begins_in_a_users_turn_ends_it_at_the_reply(store: ChunkStore) -> None:
    parts = "\n\n".join(
        f"#### Part {number}\n- {'Kites fly high over the hill. ' * 14}" for number in range(6)
    )
    remember(
        store,
        f"User: Please review this.\n\n{parts}\n\nIs it right?\nAssistant: Certainly, it is.",
        conversation_id="a",
        source="import",
    )
    with REPLSession(store) as session:
        assert session.execute("[one['text'] for one in grep('Certainly', author='User')]") == []
        assert session.execute("[one['text'] for one in grep('Certainly', author='Assistant')]") == [
            "Certainly, it is."
        ]
        assert session.execute("len(grep('Is it right', author='User'))") == 1


def test_a_match_is_shown_with_the_start_of_its_line(store: ChunkStore) -> None:
    remember(store, f"Ana: I sold my boat, {'and it rained a lot, ' * 11}then the buyer paid.")
    with REPLSession(store) as session:
        printed = session.run("print_rows(grep('buyer'))").output
        assert "I sold my boat" in printed and printed.rstrip().endswith("the buyer paid."), "it has room"
        cut = session.run("print_rows(grep('buyer'), 80)").output.splitlines()[-1]
        assert cut.startswith("[0] I sold my boat") and "buyer paid." in cut and len(cut) < 90
        many = session.run("print_rows(20 * grep('buyer') + ['sold'])").output.splitlines()[1]
        assert many.startswith("[0] …") and "rained a lot, then the buyer paid." in many, (
            "but not in a long list"
        )


@pytest.mark.parametrize("engine", ["monty", "cpython"])
@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ("SystemExit(0)", "SystemExit: 0"), ("ValueError('a', 2)", "ValueError: ('a', 2)"),
        ("KeyError(3)", "KeyError: "), ("RuntimeError(*['a', 'b'])", "RuntimeError: ('a', 'b')"),
        ("ValueError('plain')", "ValueError: plain"), ("TypeError", "TypeError"),
    ],
)  # fmt: skip
def test_an_exception_takes_any_values(store: ChunkStore, engine: str, raised: str, said: str) -> None:
    with REPLSession(store, engine=engine) as session:
        with pytest.raises(ProgramError, match=re.escape(said)) as failed:
            session.execute(f"x = 1\nraise {raised}")
        assert failed.value.line == 2
        with pytest.raises(ProgramError, match="AssertionError: 5"):
            session.execute("assert x == 2, 5")
        assert (
            session.execute("try:\n    raise ValueError(5)\nexcept ValueError as e:\n    said = str(e)\nsaid")
            == "5"
        )


def test_what_monty_lacks_is_no_internal_error(store: ChunkStore) -> None:
    with (
        REPLSession(store, engine="monty") as session,
        pytest.raises(ProgramError, match="TypeError: exceptions can only be called with") as failed,
    ):
        session.execute("kind = ValueError\nraise kind(5)")
    assert failed.value.hint is not None and "str(value)" in failed.value.hint


def test_an_acronym_in_the_question_matches_whole_words_only(store: ChunkStore) -> None:
    said = ["I start at ten", "I use the STAR method", "one star at night", "two STARs"]
    for number, text in enumerate(said):
        store.create_chunk(f"Ana: {text}", conversation_id=str(number))
    with REPLSession(store) as session:
        found = session.execute("[t['text'] for t in turns(contains='STAR')]")
        assert sorted(found) == sorted(said[1:])
        assert session.execute("[t['text'] for t in turns(contains='star')]") == said[1:]
        store.create_chunk("Ana: They told us of the US STAR RULES.")
        assert session.execute("[t['match'] for t in turns(contains='US')]") == ["US"]


def test_texts_are_found_as_words_in_any_form_and_near_each_other(store: ChunkStore) -> None:
    far = "and it rained on the hill " * 12
    said = [
        "I started with a party of clowns.",
        "My art lessons began in May; I paid $500 for all of them.",
        "All is in order.\nThe projects and their cards, too.",
        f"One project is done, {far} and I lost a card.",
        "In auth.py the maxSize is 250ms, and xauth.py is gone.",
        "我们去了花园，很开心。",
    ]
    with store.batch():
        for number, text in enumerate(said):
            remember(store, f"Ana: {text}", conversation_id=str(number))
    found = {
        "art": [1], "lesson": [1], "PARTIES": [0], "project card": [2], "card project": [],
        "order projects": [], "auth.py": [4], "uth.py": [],
        "maxsize": [4], "250": [4], "$500": [1], "花园": [5], "in order": [2], "of all": [], "for all of": [1],
    }  # fmt: skip
    with REPLSession(store) as session:
        for text, expected in found.items():
            told = session.execute(f"[t['text'] for t in turns(contains={text!r})]")
            assert told == [said[number] for number in expected], text
        assert session.execute("turns(contains=['lesson', 'zebra', 'auth.py'])[1]['match']") == "auth.py"
        assert session.execute("turns(contains='zebra')") == []
        assert session.execute("turns(contains=['zebra', 'less'])") != [], (
            "nothing has the word, but a beginning of one"
        )


def test_texts_are_found_in_what_a_chunk_said_at_an_earlier_time(store: ChunkStore, clock: Clock) -> None:
    chunk = store.create_chunk("Ana: I like kites a lot.")
    before = clock.now
    clock.advance(days=1)
    store.update_chunk(chunk.id, content="Ana: I like boats.")
    clock.advance(days=1)
    for seen, found in ((store.held_at(before), ["I like kites a lot."]), (store, [])):
        with REPLSession(seen) as session:
            assert session.execute("[t['text'] for t in turns(contains='kite')]") == found


def test_every_match_is_shown_with_the_text_around_it(store: ChunkStore) -> None:
    rain = "and it rained on all of the hills " * 9
    text = (
        f"The coverage was 60% {rain} then the coverage of the tests was 85% {rain} and at last 91% coverage."
    )
    remember(store, f"Ana: {text}\n\nA line about nothing.\n\nThe coverage is fine.")
    with REPLSession(store) as session:
        for call in ("turns(contains='coverage')", "grep('coverage')"):
            printed = session.run(f"print_rows({call})").output
            assert all(one in printed for one in ("60%", "was 85%", "91% coverage")), call
            assert len(printed) < 340
        (row,) = session.execute("grep('[0-9]+%|is fine')")
        assert row["matches"] == ["60%", "85%", "91%", "is fine"] and row["match"] == "60%"
        assert row["text"].endswith("… The coverage is fine.") and len(row["text"]) <= 1_000
        (row,) = session.execute("grep('coverage')")
        assert row["text"].count("coverage") == 4 and "nothing" not in row["text"]
        many = session.run(
            "print_rows([{'text': 'the key of a very long door ' * 99, 'match': 'key'}])"
        ).output
        assert "(+" in many and len(many) < 340


@pytest.mark.parametrize("chars", [20, 100, 1_000])
def test_a_row_stays_within_its_characters_whatever_matched(store: ChunkStore, chars: int) -> None:
    text = "The key of a very long door. " * 200
    rows: list[dict[str, Any]] = [
        {"text": text, "match": text[:3_000].strip()},
        {"text": text, "matches": [text[29:600].strip(), "long door"]},
        {"text": "x" * 9_000, "match": "x" * 8_000},
        {"text": "door " * 900, "matches": ["door " * 10 + "door", "door door"]},
    ]
    with REPLSession(store) as session:
        for row in rows:
            assert len(session.run(f"print_rows({[row]!r}, chars={chars})").output) < chars + 10


def test_a_passage_has_as_much_of_its_turn_as_is_asked_for(store: ChunkStore) -> None:
    said = " ".join(f"In week {number} I oiled the oars of the boat." for number in range(60))
    talk = (
        f"Ana: {said} The mast broke in a storm, which cost 300 euros. {said} The mast was mended.\nBen: Oh."
    )
    store.create_chunk(talk)
    with REPLSession(store) as session:
        short = session.execute("passages('the mast broke in a storm')")
        wide = session.execute("passages('the mast broke in a storm', chars=1200)")
        assert len(short[0]["text"]) < 600
        assert 1_000 < len(wide[0]["text"]) <= 1_200 and "mast broke in a storm" in wide[0]["text"]
        assert wide[0]["text"].startswith("In week") and wide[0]["text"].endswith("of the boat.")
        assert sum("mast broke" in row["text"] for row in wide) == 1, "no part of a turn comes twice"
        assert (
            wide[0]["text"]
            in session.run("print_rows(passages('the mast broke in a storm', chars=1200))").output
        )


def test_headings_of_few_replies_come_with_what_follows_them(store: ChunkStore) -> None:
    store.create_chunk(
        "User: How do I stop the retries?\nAssistant: Gladly.\n\n"
        "1. **Backoff**: Wait twice as long after each failure, up to 30 seconds. Then give up.\n"
        "2. **Jitter**: Add a random delay.\n\n### Code\n\nHere is the code:\n\n```\nx = 1\n```\n\n"
        "### Close\n\n- Tell the user of it.",
        conversation_id="a",
    )
    with REPLSession(store) as session:
        (row,) = session.execute("turns(author='User', points=True)")
        assert row["points"] == ["Backoff", "Jitter", "Code", "Close"]
        assert row["below"] == [
            "Wait twice as long after each failure, up to 30 seconds. Then give up.",
            "Add a random delay.",
            "",
            "Tell the user of it.",
        ]
        printed = session.run("print_rows(turns(author='User', points=True))").output
        assert "| Backoff: Wait twice" in printed and "| Code | Close: Tell the user" in printed


def test_turns_are_shown_without_pasted_code(store: ChunkStore) -> None:
    code = "```python\n" + "total = ledger.sum()\n" * 9
    for number, end in enumerate(("```\nCan you help?", "")):
        store.create_chunk(
            f"User: My ledger is slow:\n{code}{end}\nAssistant: Yes.", conversation_id=str(number)
        )
    with REPLSession(store) as session:
        texts = session.execute("[t['text'] for t in turns(author='User', contains='ledger')]")
        assert texts[0] == "My ledger is slow:\n[9 lines of code]\nCan you help?"
        assert texts[1].startswith("My ledger is slow:\n[") and "total" not in texts[1]
        assert "total" in session.execute("turns(author='User', code=True)[0]['text']")
        assert "ledger.sum" in session.execute("turns(contains='sum')[0]['text']"), "only the code has it"


def test_of_statements_of_one_time_the_later_chunk_is_newer(store: ChunkStore) -> None:
    for text in (
        "User: Good morning, and thank you again for the help with the plans.\n\nUser: We get bread on 2 days a week.",
        "User: We get bread on 3 days a week now.",
    ):
        store.create_chunk(text, conversation_id="chat", occurred_at="2026-06-10T10:00:00Z")
    with REPLSession(store) as session:
        pairs = session.execute(
            "[(p['older']['text'], p['newer']['text']) for p in updates('days a week with bread')]"
        )
    assert pairs == [("We get bread on 2 days a week.", "We get bread on 3 days a week now.")]


def test_a_whole_exchange_is_printed_in_one_call_though_it_was_split(store: ChunkStore) -> None:
    steps = "\n\n".join(f"### Step {number}\n\nDig bed {number} before it freezes." for number in range(1, 9))
    head, tail = steps[:200], steps[200:]
    with store.batch():
        first = store.create_chunk(
            f"User: {'What about my beds and their soil? ' * 12}\n\nAssistant: Gladly.\n\n{head}",
            conversation_id="beds",
        )
        store.create_chunk(tail, conversation_id="beds")
    with REPLSession(store) as session:
        printed = session.run(f"print_rows(turns(chunks={first.id!r}, author='User', whole=True))").output
    assert (
        printed.count("their soil?") == 12 and "### Step 1\n\nDig bed 1" in printed and "Dig bed 8" in printed
    )


def test_the_number_of_a_name_is_no_count_and_words_for_numbers_are_numbers(store: ChunkStore) -> None:
    said = (
        "We plan the harvest of plums in Sprint 2 weeks ahead.",
        "We plan the harvest of plums some 6 weeks ahead.",
        "My choir has two sopranos and a pianist.",
        "My choir has 2 sopranos and a pianist, Ines.",
    )
    with store.batch():
        for number, text in enumerate(said):
            store.create_chunk(text, occurred_at=f"2026-05-0{number + 1}T00:00:00Z")
    with REPLSession(store) as session:
        for subject in ("harvest of plums", "sopranos of my choir"):
            reasons = [pair["why"] for pair in session.execute(f"updates({subject!r})")]
            assert not any(one in ("2 → 6", "two → 2") for one in reasons), reasons


def test_updates_compare_numbers_of_one_unit(store: ChunkStore) -> None:
    told = (
        ("2026-03-01", "I study 15 hours weekly for the harbour exam."),
        ("2026-04-01", "I study 4 days weekly for the harbour exam."),
        ("2026-05-01", "I study 20 hours weekly for the harbour exam."),
        ("2026-06-01", "The harbour exam has a $50 fee and 30% failed the exam."),
        ("2026-07-01", "The harbour exam has a $60 fee and 12 failed the exam."),
    )
    for day, text in told:
        store.create_chunk(text, conversation_id=day, occurred_at=f"{day}T08:00:00Z")
    with REPLSession(store) as session:
        reasons = session.execute("[pair['why'] for pair in updates('harbour exam', limit=50)]")
    assert "15 → 20" in reasons and "50 → 60" in reasons
    assert not {"15 → 4", "4 → 20", "30 → 12"}.intersection(reasons)


def test_the_headings_of_many_rows_ask_for_each_chunk_once(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.batch():
        for number in range(40):
            store.create_chunk(
                f"User: What about bed {number}?\n\nAssistant: Well.\n\n### Bed {number}",
                conversation_id="beds",
            )
    functions = StoreFunctions(store)
    asked: list[str] = []
    neighbours = store.neighbours

    def counted(chunk_id: str, **how: int) -> object:
        asked.append(chunk_id)
        return neighbours(chunk_id, **how)

    monkeypatch.setattr(store, "neighbours", counted)
    rows = functions.turns(author="User", points=True)
    assert [row["points"] for row in rows] == [[f"Bed {number}"] for number in range(40)]
    assert len(asked) < 20


def test_an_outline_puts_turns_with_a_name_of_its_query_first(store: ChunkStore) -> None:
    with store.batch():
        for number in range(40):
            asks = f"My work on step {number} takes time, and the plan has {number + 3} parts, is that fine for now?"
            if number % 10 == 3:
                asks = f"I met Robert about step {number}."
            reply = "Good." if number != 8 else "Ask Robert."
            store.create_chunk(f"User: {asks}\nAssistant: {reply}", conversation_id=f"talk-{number}")
    with REPLSession(store) as session:
        rows = session.execute("outline('How did my work and plan with Robert take time?', chars=6000)")
        assert len([row for row in rows if "Robert" in row["text"]]) == 4
        assert next(row["text"] for row in rows if "Robert" not in row["text"]).startswith(
            "My work on step 8"
        )
        assert len(rows) == 5, "work, plan and time are no rare words"
        both = session.execute("outline(['plan with Robert', 'parts'], chars=6000)")
        assert len(both) > 5, "a text without a name has its turns"
        few = session.execute("outline('plan', chars=600, points=False)")
        assert len(few) > len(session.execute("outline('plan', chars=500)")) and not few[0]["points"]


def test_many_rows_have_short_points_without_recurring_ones_and_whole_turns_are_cut_at_a_sentence(
    store: ChunkStore,
) -> None:
    with store.batch():
        for number in range(12):
            heads = "\n\n".join(f"### Advice {number}-{part} about the harbour\n\nYes." for part in range(10))
            store.create_chunk(
                f"User: Tell me of boat {number}. It is old. {'It leaks a lot. ' * 20}\n"
                f"Assistant: Gladly.\n\n### Example\n\nA boat.\n\n{heads}",
                conversation_id=f"talk-{number}",
            )
    with REPLSession(store) as session:
        many = session.execute("turns(author='User', points=True)")
        few = session.execute("turns(author='User', points=True, limit=2)")
        assert all(60 < sum(map(len, row["points"])) <= 150 for row in many)
        assert all(sum(map(len, row["points"])) > 200 for row in few)
        assert not any("Example" in row["points"] for row in many) and "Example" in few[0]["points"]
        whole = session.execute("turns(author='User', whole=True, chars=100, limit=1)")[0]
        assert whole["text"].endswith("It leaks a lot.…") and len(whole["text"]) <= 100 >= len(whole["reply"])


def test_long_lists_have_short_rows_headings_without_times_and_bounded_whole_turns(store: ChunkStore) -> None:
    with store.batch():
        for number in range(40):
            store.create_chunk(
                f"User: How do I paint boat {number} in a green that lasts? {'The old coat is flaking off. ' * 6}\n"
                f"Assistant: Gladly.\n\n### 7:00 AM - 8:00 AM: Sand it\n\nYes.\n\n### July 11 - July 25\n\nYes.\n\n"
                f"### Scrape hull {number} down to the wood\n\n{'It has to be dry before you start. ' * 60}",
                conversation_id=f"talk-{number}",
            )
    with REPLSession(store) as session:
        rows = session.execute("rows = turns(author='User', points=True, limit=40)\nrows")
        said = [point for row in rows for point in row["points"]]
        assert any(one.startswith("Scrape hull") for one in said)
        assert not any(one.startswith(("7:00", "July")) for one in said) and sum(map(len, said)) <= 2_000
        many = session.run("print_rows(rows)").output
        few = session.run("print_rows(rows[:5])").output
        assert max(map(len, many.splitlines())) < 230 < max(map(len, few.splitlines()))
        plain = session.run("print_rows([{'text': row['text']} for row in rows])").output
        assert len(plain) < 4_400, "a long list has short rows"
        whole = session.execute("turns(author='User', whole=True, limit=4)")
        assert all(300 < len(row["reply"]) <= 1_000 and row["reply"].endswith("…") for row in whole)
        assert (
            len(session.execute("turns(author='User', whole=True, limit=1, chars=20000)")[0]["reply"]) > 2_000
        )


def test_an_outline_of_a_single_long_day_reaches_its_end(store: ChunkStore) -> None:
    with store.batch():
        for turn in range(150):
            store.create_chunk(
                f"User: About my kite, part {turn}.\nAssistant: Gladly.",
                conversation_id=f"talk-{turn}",
                occurred_at="2026-05-01T00:00:00Z",
            )
    with REPLSession(store) as session:
        rows = session.execute("outline('my kite', chars=1000)")
    parts = [int(row["text"].rstrip(".").rpartition(" ")[2]) for row in rows]
    assert len(parts) < 40 and parts[0] == 0 and any(60 <= one < 80 for one in parts) and parts[-1] >= 120


def test_what_goes_on_with_a_turn_is_no_row_of_an_outline_beside_its_beginning(store: ChunkStore) -> None:
    code = "\n".join(f"kite_{number} = Kite(length={number}, colour='red')" for number in range(300))
    text = f"User: What is wrong with my kite?\n\n```python\n{code}\n```\nAssistant: Nothing."
    assert len(remember(store, text, conversation_id="kite", source="import").chunk_ids) > 2
    store.create_chunk("User: Thanks.\nAssistant: Gladly.", conversation_id="thanks")
    with REPLSession(store) as session:
        rows = session.execute("outline('my kite', chars=5000)")
    assert len(rows) == 1 and "wrong with my kite" in rows[0]["text"]


def test_turns_with_a_name_of_the_query_are_outlined_nearly_whole(store: ChunkStore) -> None:
    rest = "and it cost 40 euros, which was more than we had set aside for the first half of the summer"
    with store.batch():
        for number in range(30):
            who = "my neighbour Darla" if number % 6 == 0 else "someone else"
            store.create_chunk(
                f"User: Over lunch I spoke with {who} about the {('mast', 'keel', 'oars')[number % 3]} of boat "
                f"{number}, {rest}, so what should I ask the harbour master about it?\nAssistant: Fine.",
                conversation_id=f"talk-{number}",
                occurred_at=f"2026-05-{number % 28 + 1:02}T00:00:00Z",
            )
    with REPLSession(store) as session:
        rows = session.execute("outline('What did Darla and I plan for the boats?', chars=2500)")
        printed = session.run("print_rows(outline('plans with Darla for the boats', chars=2500))").output
    named = [row["text"] for row in rows if "Darla" in row["text"]]
    assert len(named) == 5 and all("Over lunch" in text and "40 euros" in text for text in named)
    assert all(text in printed for text in named), "nor are they cut when they are printed"
    assert all(len(row["text"]) <= 150 for row in rows if "Darla" not in row["text"])


def test_a_speaker_whom_an_outline_names_is_found_by_the_own_turns(store: ChunkStore) -> None:
    with store.batch():
        for number in range(20):
            store.create_chunk(
                f"Ana: I read book {number}, a novel on the sea.\nBen: Nice, Ana! I fed the ducks and cat {number}.",
                conversation_id=f"talk-{number}",
            )
    with REPLSession(store) as session:
        rows = session.execute("outline('Which books did Ana read?', limit=20)")
    assert [row["speaker"] for row in rows] == ["Ana"] * 20


def test_an_outline_lists_follow_ups_after_the_turns_that_bring_something_up(store: ChunkStore) -> None:
    with store.batch():
        for number, thing in enumerate(("rudder", "anchor", "engine", "mast", "keel", "hatch")):
            store.create_chunk(
                f"User: The {thing} of my boat is broken, what do I do about it?\n"
                f"Assistant: Take the {thing} of the boat to the harbour and let them weld it.\n"
                f"User: Thanks, I'll take the {thing} of my boat to the harbour and let them weld it.\n"
                "Assistant: You are welcome.",
                conversation_id=f"talk-{number}",
            )
    with REPLSession(store) as session:
        rows = session.execute("outline('my boat at the harbour', limit=6)")
        assert len(rows) == 6 and all("broken" in row["text"] for row in rows)
        assert len(session.execute("outline('my boat at the harbour', chars=5000)")) == 12


def test_grep_takes_a_period(store: ChunkStore) -> None:
    for month in ("03", "04", "05"):
        store.create_chunk(f"Ana paid {month} euros.", occurred_at=f"2026-{month}-10")
    with REPLSession(store) as session:
        rows = session.execute("grep('paid', start='2026-04', end='May 2026')")
        assert [row["date"] for row in rows] == ["2026-04-10", "2026-05-10"]
        with pytest.raises(ProgramError, match="start is a date"):
            session.execute("grep('paid', start='soonish')")


def test_an_outline_has_the_notes_beside_a_chat(session: REPLSession, store: ChunkStore) -> None:
    remember(store, "# Rigging\n\nThe guitar of the boat hangs below deck.", conversation_id="manual")
    texts = session.execute("[(row['speaker'], row['text']) for row in outline('guitar')]")
    assert ("Ana", "I have sold the guitar.") in texts and ("Ben", "Which one?") not in texts
    assert any("below deck" in text for _, text in texts)
    everything = session.execute("[row['text'] for row in outline()]")
    assert {"The boat has two masts.", "I have sold the guitar."} <= set(everything)
    assert not any("Noted." in text for text in everything), "replies of the assistant have no rows"


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("turns(start='2026-13-45')", "start is a date such as '2026-05-01'.*not '2026-13-45'"),
        ("search('kite', end='31 February 2026')", "end is a date such as"),
        ("search('kite', tags=5)", "search takes a tag, or a list of tags, as text$"),
        ("search('kite', tags=[5])", "search takes a tag, or a list of tags, as text$"),
    ],
)
def test_a_wrong_filter_is_named(session: REPLSession, program: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message) as failure:
        session.execute(program)
    assert failure.value.hint is None, "the message says all: a general hint would point elsewhere"


def test_a_time_of_day_beside_a_date_is_no_other_date(session: REPLSession) -> None:
    assert len(session.execute("turns(start='9 June 2026, 8:30', end='9 June 2026, 11 pm')")) == 2


@pytest.mark.parametrize(
    ("name", "hint"), [("serach", "write search,"), ("FINALE", "write FINAL,"), ("total", "assign it first")]
)
def test_a_misspelt_function_is_named(session: REPLSession, name: str, hint: str) -> None:
    with pytest.raises(ProgramError) as failure:
        session.execute(f"{name}('kite')")
    assert failure.value.hint is not None and hint in failure.value.hint


def test_the_match_of_a_text_that_is_longer_in_lower_case_is_whole(store: ChunkStore) -> None:
    store.create_chunk("Ana: I live in Hauptstrasse 5.")
    with REPLSession(store) as session:
        assert session.execute("turns(contains='Hauptstraße')")[0]["match"] == "Hauptstrasse"


def test_comparing_is_bounded_and_ends_with_the_time_of_the_program(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (3, 5):
        store.create_chunk(f"The harbour has {number} cranes.", occurred_at=f"2026-05-0{number}T00:00:00Z")
    with REPLSession(store) as session:
        assert len(session.execute("updates('harbour cranes')")) == 1
        monkeypatch.setattr("rlm_mem.sandbox.subject_functions._SENTENCES", 1)
        assert session.execute("updates('harbour cranes')") == []
        monkeypatch.setattr(session, "seconds_left", lambda: -1.0)
        with pytest.raises(TimeoutError):
            session.execute("updates('harbour cranes')")


def test_rows_with_any_mark_are_printed(store: ChunkStore) -> None:
    with REPLSession(store) as session:
        assert (
            "[untrusted: ['web']] b"
            in session.run("print_rows([{'text': 'a'}, {'text': 'b', 'untrusted': ['web']}])").output
        )


def test_the_code_of_a_long_memory_is_looked_for_once(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_chunk("\n".join(f"Ana: This is plan {number}.\n# Step {number}" for number in range(40)))
    read: list[str] = []
    monkeypatch.setattr(turn_functions, "blocks", lambda text: read.append(text) or blocks(text))
    with REPLSession(store) as session:
        rows = session.execute("turns(points=True)")
        assert len(rows) > 10 and rows[0]["points"] and len(read) == 1


def test_turns_asks_the_figures_of_the_index_whether_a_word_is_in_the_memory(
    store: ChunkStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = store.create_chunk("Ines: The quagga is here.").id
    store.create_chunk("Ines: Quaggas came, and quaggalike horses.")
    with REPLSession(store) as session:
        lines = "[row['text'] for row in turns(contains='quagga')]"
        listed = []
        found = search.ids_with_terms
        monkeypatch.setattr(search, "ids_with_terms", lambda *given: listed.append(given) or found(*given))
        assert len(session.execute(lines)) == 2 and len(listed) == 1, "only what is returned is listed"
        for chunk_id in [one, *store.list_chunks()]:
            store.delete_chunk(chunk_id)
        store.create_chunk("Ines: The quaggalike horse.")
        assert session.execute(lines) == ["The quaggalike horse."], "no chunk has the word any more"
