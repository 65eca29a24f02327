"""Which parts of a reply are programs: with and without fences, and never prose or quotations."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from recall_memories import fill

from rlm_mem import Memory
from rlm_mem.config import Config
from rlm_mem.models.base import Limits
from rlm_mem.models.scripted import ScriptedLLM
from rlm_mem.recall import RecallOperation
from rlm_mem.recall.programs import MAX_REPLY_CHARS, programs_in, without_definitions
from rlm_mem.sandbox.functions import FUNCTIONS
from rlm_mem.store.core.chunk_store import ChunkStore

NEVER = Config.load(None, recall={"scaffold": "never"})
ENGINES = ("monty", "cpython")

LOOP = "for hit in search('tea'):\n    print(hit['snippet'])"

BARE = {
    LOOP: [LOOP],
    "  FINAL('tea')": ["FINAL('tea')"],
    f"Here is the program:\n\n{LOOP}\n\nIt prints all hits.": [LOOP],
    f"Sure, here is it: I search.\n{LOOP}": [LOOP],
    "The answer is known.\n\nFINAL(answer)\n\nThat is all.": ["FINAL(answer)"],
    "FINAL(\n  'tea (green)',\n  chunk_ids=['a'],\n)": ["FINAL(\n  'tea (green)',\n  chunk_ids=['a'],\n)"],
    "I am done.\nFINAL({'a': [1,\n 2]})\nBye.": ["FINAL({'a': [1,\n 2]})"],
    "**FINAL('tea')**": ["FINAL('tea')"],
    "So:\n`FINAL(answer)`.": ["FINAL(answer)"],
    "So:\n- FINAL(answer)": ["FINAL(answer)"],
    "So I end.\nreturn FINAL(answer)": ["return FINAL(answer)"],
    ">>> hits = search('tea')\n>>> for hit in hits:\n...     print(hit)\n{'id': 1}": [
        "hits = search('tea')\nfor hit in hits:\n    print(hit)"
    ],
    "First I search.\nsearch('Ana')\nThen I read it.\nread_chunk(found)": [
        "search('Ana')",
        "read_chunk(found)",
    ],
}

FENCED = {
    f"```\n{LOOP}\n```": [LOOP],
    f"```Python3\n{LOOP}\n```": [LOOP],
    f"```tool_code\n{LOOP}\n```": [LOOP],
    f"~~~repl\n{LOOP}\n~~~": [LOOP],
    f"```repl\n{LOOP}": [LOOP],
    f"```repl\n{LOOP}```": [LOOP],
    f"```python\n{LOOP}\n\nThis prints all hits of the memory.": [LOOP],
    f"<repl>\n{LOOP}\n</repl>": [LOOP],
    "<repl>FINAL('tea')</repl>": ["FINAL('tea')"],
    "```repl FINAL('tea')```": ["FINAL('tea')"],
    "```FINAL('tea')```": ["FINAL('tea')"],
    "```pycon\n>>> x = 1\n>>> print(x)\n1\n```": ["x = 1\nprint(x)"],
    "1. ```python\n   print(1)\n   ```": ["print(1)"],
    "````repl\ns = '''\n```\n'''\n````": ["s = '''\n```\n'''"],
    # Beside a block, FINAL is run only where it uses what the block found.
    "```repl\nanswer = 1\n```\nFINAL(answer)": ["answer = 1", "FINAL(answer)"],
    "```repl\nprint(search('tea'))\n```\nFINAL('coffee')": ["print(search('tea'))"],
    "```json\n{}\n```\nFINAL('tea')": ["FINAL('tea')"],
}

NONE = [
    "",
    "Yes",
    "tea",
    "I cannot do that.",
    "len(x)",
    "print('hello')",
    "I will call FINAL('tea') when I am done.",
    "Call FINAL(answer), then stop.",
    "The final answer is FINAL.",
    '```json\n{"answer": "FINAL(\'tea\')"}\n```',
    "```\nz\n```",
    "```text\nFINAL('tea')\n```",
    "> FINAL('tea')",
    "> ```repl\n> FINAL('tea')\n> ```",
    "````markdown\n```repl\nFINAL('tea')\n```\n````",
    "```repl\n\n```",
]


@pytest.mark.parametrize("replies", [BARE, FENCED], ids=["bare", "fenced"])
def test_programs_are_found_however_they_are_written(replies: dict[str, list[str]]) -> None:
    found = {reply: [code.strip() for code in programs_in(reply)] for reply in replies}
    assert found == replies


def test_prose_quotations_and_other_languages_are_no_programs() -> None:
    assert {reply: programs_in(reply) for reply in NONE} == {reply: [] for reply in NONE}


def test_functions_of_the_caller_make_a_program_too() -> None:
    assert programs_in("weather('Rome')") == []
    assert programs_in("weather('Rome')", FUNCTIONS | {"weather"}) == ["weather('Rome')"]


@pytest.mark.parametrize("engine", ENGINES)
def test_bare_replies_are_run_in_the_session_so_that_names_resolve(place: Path | str, engine: str) -> None:
    replies = [
        "hits = search('Ana drinks')\nanswer = hits[0]['snippet']\nprint(answer)",
        "I have it now.\n\nFINAL(answer)\n",
    ]
    with Memory.open(place, llm=ScriptedLLM(replies)) as memory:
        memory.remember("Ana drinks green tea.")
        result = memory.recall("What does Ana drink?", engine=engine)
    assert result.content == "Ana drinks green tea."
    assert result.iterations_used == 2


def test_a_bare_final_with_an_unknown_name_is_an_error_and_never_read_as_text(store: ChunkStore) -> None:
    llm = ScriptedLLM(["FINAL(answer)", "FINAL('tea')"])
    result = RecallOperation(store, llm).recall("What does Ana drink?")
    assert "NameError" in llm.prompts[1][-1].content
    assert result.content == "tea"


WORST = [
    "(", "FINAL(", "FINAL(\n", "`", "```\n", "```repl\n", "x = (\n", "search(\n", "for x in y\n", "a\n", "<repl>\n",
    ">>> x\n", "'", "FINAL('", "lambda: ", "-", "search(x)\n'\n", "x = 1\n", "if x:\n", "{a:", " ", "- ", "\t\n",
    "def search(): 0\n", "- search(x) -> a\n", "```\nsearch(x)\n```\n", "search(x) for ", "1 if 1 else ", "f'{", "</",
    "\\", "~~~\n", "> ", "\ufeff",
]  # fmt: skip


def test_no_reply_takes_long_to_look_through() -> None:
    """Some ten milliseconds each; a quadratic look at 100,000 characters takes minutes."""
    began = time.process_time()
    for piece in WORST:
        reply = (piece * MAX_REPLY_CHARS)[:MAX_REPLY_CHARS]
        programs_in(reply)
        without_definitions(reply[:64_000], FUNCTIONS)
    assert time.process_time() - began < 20


DEFINED = {
    "def search(query, limit=10):\n    return []\nprint(len(search('tea')))": ["search"],
    "from memory import search, read_chunk\nprint(len(search('tea')))": ["search", "read_chunk"],
    "search(query, limit=10) -> list of {chunk_id, score}\nprint(len(search('tea')))": ["search"],
    "class FINAL:\n    pass\n\n@decorated\ndef stats():\n    return 1\nprint(len(search('tea')))": [
        "FINAL",
        "stats",
    ],
}


@pytest.mark.parametrize("engine", ENGINES)
def test_definitions_of_what_exists_are_left_out_with_a_note(store: ChunkStore, engine: str) -> None:
    fill(store)
    for program, names in DEFINED.items():
        llm = ScriptedLLM([f"```repl\n{program}\n```", "FINAL('done')"])
        result = RecallOperation(store, llm, engine=engine).recall("What does Ana drink?")
        said = llm.prompts[1][-1].content
        assert f"left out: your own {', '.join(names)}" in said
        step = result.trajectory.steps[0]
        assert step.error is None
        assert step.output.splitlines()[-1].isdigit()


def test_lines_keep_their_numbers_and_a_program_of_definitions_alone_is_an_error(store: ChunkStore) -> None:
    llm = ScriptedLLM(
        [
            "```repl\ndef search(q):\n    return []\nprint(missing)\n```",
            "```repl\ndef search(q):\n    return []\n```",
            "FINAL('done')",
        ]
    )
    RecallOperation(store, llm, config=NEVER).recall("What?")
    assert "line 3: NameError" in llm.prompts[1][-1].content
    assert "nothing to run" in llm.prompts[2][-1].content


def test_what_only_looks_like_a_definition_stays() -> None:
    for program in (
        "def mine(q):\n    return search(q)",
        "x = 1; from memory import search\nprint(x)",
        "from json import dumps",
        "if x:\n    def search(q):\n        return q",
        "s = '''\ndef search(q): pass\n'''",
    ):
        assert without_definitions(program, FUNCTIONS) == (program, [])


def test_a_reply_that_fails_again_and_again_ends_the_run(store: ChunkStore) -> None:
    llm = ScriptedLLM(default="```repl\nprint(missing)\n```")
    operation = RecallOperation(store, llm, limits=Limits(iterations=10), config=NEVER)
    result = operation.recall("What does Ana drink?")
    assert (result.stopped_by, result.concluded, result.iterations_used) == ("repetition", False, 4)
    assert [step.programs for step in result.trajectory.steps[1:]] == [()] * 3
    assert "was not run again" in llm.prompts[2][-1].content


def test_a_reply_that_prints_something_else_may_come_again(store: ChunkStore) -> None:
    for again, end in (("seen += 1\nprint(seen)", ("iterations", 6)), ("seen += 1", ("repetition", 6))):
        llm = ScriptedLLM(["```repl\nseen = 0\n```"], default=f"```repl\n{again}\n```")
        operation = RecallOperation(store, llm, limits=Limits(iterations=6), config=NEVER)
        result = operation.recall("What does Ana drink?")
        assert (result.stopped_by, result.iterations_used) == end
