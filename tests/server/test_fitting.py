"""`max_tokens`: what any tool or address returns keeps to it, and says when something was left out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm_mem.errors import InputError
from rlm_mem.mcp.service import Service, tools_for
from rlm_mem.memory import Memory
from rlm_mem.operations.context import OpenMemory, Settings
from rlm_mem.operations.fitting import Bounded, fitted
from rlm_mem.text.tokens import count_tokens
from tests.server.api import client_of

Ask = Callable[..., Any]

LONG = "The heron server listens on port 8431, says Ben, and it has done so for years. " * 12


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Call one tool: its data, or the text of the error."""
    service = Service(
        OpenMemory(Settings(brain=tmp_path_factory.mktemp("fitting") / "brain", every_tool=True))
    )

    def ask_it(name: str, /, **arguments: Any) -> Any:
        answer = service.call(name, arguments)
        return answer.text if answer.failed else answer.data

    yield ask_it
    service.close()


@pytest.fixture(scope="module")
def herons(ask: Ask) -> list[str]:
    """Ids of long memories about one thing."""
    made = []
    for number in range(12):
        made += ask("remember", text=f"Note {number}. {LONG}")["chunk_ids"]
    return made


def tokens(answer: Any) -> int:
    return count_tokens(json.dumps(answer, ensure_ascii=False))


@pytest.mark.parametrize("most", [60, 250, 700])
def test_every_tool_that_returns_text_keeps_to_it(ask: Ask, herons: list[str], most: int) -> None:
    handle = ask("recall_open", question="Where is the heron?")["handle"]
    cited = [herons[0]]
    calls: dict[str, dict[str, Any]] = {
        "search": {"query": "heron port", "limit": 20},
        "get": {"ids": herons[:6]},
        "trajectories": {},
        "changes": {},
        "receipt": {"trajectory_id": ask("recall", question="Which port?")["trajectory_id"]},
        "verify_receipt": {"receipt": "nothing"},
        "review": {},
        "consolidate": {"dry_run": True},
        "recall_exec": {"handle": handle, "code": f"print(read_chunk({herons[0]!r}))\nprint('heron ' * 900)"},
        "recall_finish": {"handle": handle, "answer": LONG, "chunk_ids": cited},
        "recall": {"question": "Which port does the heron server listen on?"},
        "reason": {"question": "Which port does the heron server listen on?"},
        "update": {"id": herons[1], "content": LONG * 3},
        "persona": {},
        "recall_open": {"question": "Which port?"},
    }
    names_and_figures = 220  # of an answer whose lists are empty and whose texts are cut
    for name, arguments in calls.items():
        whole = ask(name, **arguments) if name not in ("recall_exec", "recall_finish", "update") else None
        found = ask(name, **arguments, max_tokens=most)
        assert isinstance(found, dict), f"{name}: {found}"
        assert tokens(found) <= max(most, names_and_figures), name
        if whole is not None and tokens(whole) <= most:
            assert found.keys() == whole.keys(), name
            assert found["truncated"] is False, name
        elif whole is not None and tokens(whole) > names_and_figures:
            assert found["truncated"] is True, name


def test_every_offered_tool_takes_it_but_those_that_return_ids_only() -> None:
    without = {tool.name for tool in tools_for(every=True) if not issubclass(tool.request, Bounded)}
    assert without == {"remember", "forget", "link", "restore", "quarantine", "review_decide", "undo"}


def test_the_best_hits_come_first_and_a_first_one_that_is_too_long_is_shortened(
    ask: Ask, herons: list[str]
) -> None:
    every = ask("search", query="heron port", limit=12)["hits"]
    some = ask("search", query="heron port", limit=12, max_tokens=600)
    assert 0 < len(some["hits"]) < len(every)
    assert some["hits"] == every[: len(some["hits"])]
    (one,) = ask("get", ids=herons[:3], max_tokens=220)["memories"]
    assert (one["id"], one["truncated"]) == (herons[0], True)
    assert one["content"].endswith(" …")


@pytest.mark.parametrize("most", [1, 50])
def test_the_best_hit_stays_however_little_room_there_is(ask: Ask, herons: list[str], most: int) -> None:
    found = ask("search", query="heron port", limit=12, max_tokens=most)
    assert (found["outcome"], found["truncated"], len(found["hits"])) == ("found", True, 1)
    assert found["hits"][0]["snippet"].startswith("The heron") and tokens(found) <= 220
    assert [one["id"] for one in ask("get", ids=herons[:3], max_tokens=most)["memories"]] == herons[:1]


def test_an_empty_result_is_stated_and_takes_few_tokens(ask: Ask, herons: list[str]) -> None:
    found = ask("search", query="zebra quantum")
    assert (found["hits"], found["outcome"]) == ([], "nothing relevant is remembered")
    assert ask("search", query="heron")["outcome"] == "found"
    assert ask("search", query="heron", speaker="Nobody")["outcome"] == "nothing with these filters"
    assert ask("search", query="", tags=["none"])["outcome"] == "nothing with these filters"
    assert ask("search", query="zebra", tags=["none"])["outcome"] == "nothing relevant is remembered"
    recalled = ask("recall", question="Where does Zoltan keep his zebra?")
    assert (recalled["outcome"], recalled["answer"]) == ("not held", None)
    assert recalled["chunk_ids"] == recalled["sources"] == []


def test_every_address_that_returns_text_keeps_to_it_and_pages_go_on_where_they_ended(tmp_path: Path) -> None:
    with client_of(tmp_path / "brain") as api:
        ids = [api.post("/chunks", json={"content": f"Note {n}. {LONG}"}).json()["id"] for n in range(6)]
        seen: list[str] = []
        address = "/chunks?limit=500&max_tokens=400"
        while address:
            page = api.get(address)
            assert count_tokens(page.text) <= 400
            seen += [one["id"] for one in page.json()["items"]]
            assert ("max_tokens=400" in page.headers.get("link", "")) == bool(page.json()["next_cursor"])
            cursor = page.json()["next_cursor"]
            address = f"/chunks?limit=500&max_tokens=400&cursor={cursor}" if cursor else ""
        assert seen == ids
        question = {"question": "Which port does the heron server listen on?", "max_tokens": 400}
        answers = [
            api.post("/search", json={"query": "heron", "limit": 50, "max_tokens": 300, "explain": True}),
            api.post("/recall", json=question),
            api.get(f"/chunks/{ids[0]}?max_tokens=400"),
            api.get(f"/chunks/{ids[0]}/markdown?max_tokens=400"),
            api.get(f"/chunks/{ids[0]}/history?max_tokens=400"),
            api.get("/persona/prompt?max_tokens=400"),
            api.get("/trajectories/last?max_tokens=400"),
        ]
        for answer in answers:
            assert answer.status_code == 200, answer.text
            assert count_tokens(answer.text) <= 400, answer.text
        trajectory = api.get("/trajectories/last?max_tokens=400").json()
        assert (trajectory["steps"], trajectory["truncated"]) == ([], True)
        streamed = api.post("/recall", json=question, headers={"Accept": "text/event-stream"})
        (last,) = [line for line in streamed.text.splitlines() if '"outcome"' in line]
        assert count_tokens(last.removeprefix("data: ")) <= 400
        assert api.get("/persona/prompt?max_tokens=0").status_code == 422
        # The ETag names the chunk, whatever part of it was sent.
        assert answers[2].headers["etag"] == '"1"'
        assert api.get(f"/chunks/{ids[0]}?max_tokens=300").json()["truncated"] is True


def test_python_respects_the_limit(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "brain") as memory:
        for number in range(6):
            memory.remember(f"Note {number}. {LONG}")
        every = memory.search("heron port")
        some = memory.search("heron port", max_tokens=100)
        assert [hit.chunk_id for hit in some] == [hit.chunk_id for hit in every][: len(some)]
        assert 0 < sum(count_tokens(hit.snippet) for hit in some) <= 100
        assert memory.search("heron port", max_tokens=0) == []
        recalled = memory.recall("Which port does the heron server listen on?", max_tokens=30)
        assert sum(count_tokens(source.excerpt) for source in recalled.sources) <= 30
        with pytest.raises(InputError, match="max_tokens must be a whole number from 0 up"):
            memory.search("heron", max_tokens=-1)


def test_what_fits_is_as_it_was_and_names_are_never_cut() -> None:
    data = {"id": "chunk-2026-02-10-a1b2c3d4", "text": "word " * 500, "items": [{"id": "x" * 90}] * 50}
    assert fitted(data, None) is data
    assert fitted(data, 100_000) == data
    cut = fitted(data, 80)
    assert (cut["id"], cut["truncated"]) == (data["id"], True)
    assert tokens(cut) <= 80
    assert all(one == {"id": "x" * 90} for one in cut["items"])
