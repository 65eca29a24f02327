"""What each way of reading shows of a memory in each state (docs/spec/chunk-format.md, Who is shown what)."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rlm_mem import Memory
from rlm_mem.capture.context import prompt_context, session_context
from rlm_mem.cli import main
from rlm_mem.interchange import export_store, import_source
from rlm_mem.mcp.resources import read_resource, recent
from rlm_mem.mcp.service import Service
from rlm_mem.operations.context import OpenMemory, Settings
from rlm_mem.sandbox.functions import StoreFunctions
from tests.conftest import Clock
from tests.server.api import client_of
from tests.server.site import opened
from tests.test_trust import Recorded

PAGE = Path(__file__).parent.parent / "docs" / "spec" / "chunk-format.md"
STATES = ("active", "superseded", "expired", "archived", "in quarantine", "rejected", "erased")
WORDS = dict(
    zip(STATES, ("zinnia", "yarrow", "wisteria", "verbena", "tulip", "salvia", "rosemary"), strict=True)
)
QUESTION = "Which pomegranate stands beside the shed?"
SAID = "Every pomegranate beside the shed is a {}."


@dataclass
class Garden:
    """A brain with one memory in each state.

    Attributes:
        ids: of the memories, by state.
        before: a time at which none was replaced, archived or in quarantine yet.
    """

    place: Path | str
    clock: Clock
    memory: Memory
    ids: dict[str, str]
    before: Any


def told(memory: Memory, state: str, **more: Any) -> str:
    given = {"conversation_id": "garden", "tags": "fruit", "chunk_type": "decision"} | more
    return memory.remember(SAID.format(WORDS[state]), **given).chunk_ids[0]


@pytest.fixture
def garden(place: Path | str) -> Iterator[Garden]:
    clock = Clock(datetime.now(UTC) - timedelta(days=4))
    with Memory.open(place, clock=clock, llm=Recorded("print(1)")) as memory:
        ids = {}
        for state in STATES:
            more: dict[str, Any] = {"ttl": "2d"} if state == "expired" else {}
            more |= {"conversation_id": "hedge"} if state == "erased" else {}
            ids[state] = told(memory, state, **more)
            clock.advance(minutes=1)
        before = clock.now
        clock.advance(days=1)
        memory.supersede(ids["superseded"], memory.remember("No other fruit stands there.").chunk_ids[0])
        memory.link(ids["active"], ids["expired"], "supports")
        memory.delete(ids["archived"])
        for state in ("in quarantine", "rejected"):
            memory.quarantine(ids[state], "it gives orders")
        case = next(one for one in memory.continuum.review.cases() if one.entry == ids["rejected"])
        memory.continuum.review.reject(case.id, reviewer="Ines", reason="harmful")
        memory.erase(source="hedge", dry_run=False)
        clock.advance(days=2)
        yield Garden(place, clock, memory, ids, before)


def as_text(found: object) -> str:
    return found if isinstance(found, str) else json.dumps(found, default=str, ensure_ascii=False)


def programs(garden: Garden) -> str:
    """Everything that the functions of programs return."""
    seen = StoreFunctions(garden.memory.store)
    ids = list(garden.ids.values())
    found: list[Any] = [
        seen.search(QUESTION, limit=50), seen.passages(QUESTION), seen.turns(contains="pomegranate"),
        seen.grep("pomegranate"), seen.outline(QUESTION), seen.instructions(), seen.updates("pomegranate"),
        seen.contradictions("pomegranate"), seen.timeline(), seen.all_chunks(), seen.search_chunks("pomegranate"),
        seen.list_chunks_by_tag("fruit"), seen.stats(),
    ]  # fmt: skip
    for one in ids:
        for ask in (seen.read_chunk, seen.neighbors, seen.get_linked_chunks):
            try:
                found.append(ask(one))
            except Exception as error:  # noqa: BLE001 - a program is told so, which is looked at, too
                found.append(str(error))
    return as_text(found)


def opening(garden: Garden) -> str:
    """What a model is shown by a recall."""
    model = garden.memory.llm
    assert isinstance(model, Recorded)
    model.shown.clear()
    garden.memory.recall(QUESTION)
    return "\n".join(model.shown)


def offline(garden: Garden) -> str:
    with Memory.open(garden.place, clock=garden.clock, llm="offline") as memory:
        answer = memory.recall(QUESTION)
        return as_text(
            [answer.content, answer.suggestion, [str(one) for one in (*answer.sources, *answer.closest)]]
        )


def tools(garden: Garden) -> str:
    """The answers of the tools for agents."""
    service = Service(OpenMemory(Settings(brain=garden.place, every_tool=True)))
    try:
        calls = [
            ("search", {"query": QUESTION, "limit": 20}), ("get", {"ids": list(garden.ids.values())}),
            ("status", {}), ("changes", {}), ("review", {}), ("review", {"status": "all"}), ("trajectories", {}),
            ("skills", {}),
        ]  # fmt: skip
        return "\n".join(str(service.call(name, given)) for name, given in calls)
    finally:
        service.close()


def resources(garden: Garden) -> str:
    found = [one.model_dump_json() for one in recent(garden.memory)]
    return "\n".join(
        [*found, *(read_resource(garden.memory, f"memory://{one}") for one in ("status", "recent"))]
    )


def http_lists(garden: Garden) -> str:
    with client_of(garden.place) as client:
        found = [client.get(path).text for path in ("chunks", "timeline", "tags", "conversations", "archive")]
        return "\n".join([*found, client.post("search", json={"query": QUESTION, "limit": 20}).text])


def http_review(garden: Garden) -> str:
    with client_of(garden.place) as client:
        return "\n".join(client.get(path).text for path in ("quarantine", "review", "review?status=all"))


def commands(garden: Garden, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    for words in (
        ["list"],
        ["list", "--archived"],
        ["search", QUESTION],
        ["list", "--json"],
        ["store", "events"],
    ):
        assert main([*words, "--brain", str(garden.place)]) in (0, 1)
    return capsys.readouterr().out


def hooks(garden: Garden) -> str:
    memory = garden.memory
    return "\n".join(
        [
            prompt_context([memory], QUESTION, budget=4_000).text,
            session_context(memory, memory, "pomegranate shed", budget=4_000).text,
            str(memory.context(QUESTION, max_tokens=4_000)),
        ]
    )


def earlier_view(garden: Garden) -> str:
    view = garden.memory.store.held_at(garden.before)
    hits = garden.memory.search(QUESTION, as_of=garden.before, limit=50)
    return as_text([[one.content for one in view.iter_chunks()], [hit.snippet for hit in hits]])


def dashboard(*paths: str) -> Callable[[Garden], str]:
    def show(garden: Garden) -> str:
        with opened(garden.place) as site:
            return "\n".join(site.get(path) for path in paths)

    return show


def exported(garden: Garden, archive: bool) -> str:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "export.jsonl"
        export_store(garden.memory.store, file, format="jsonl", archive=archive)
        return file.read_text(encoding="utf-8")


WAYS: dict[str, Callable[[Garden], str]] = {
    "search": lambda garden: as_text([hit.snippet for hit in garden.memory.search(QUESTION, limit=50)]),
    "lists of Python": lambda garden: as_text([one.content for one in garden.memory.store.iter_chunks()]),
    "functions of programs": programs,
    "opening and programs of a recall": opening,
    "answers with their sources": offline,
    "contexts and hooks": hooks,
    "a view `as_of` an earlier time": earlier_view,
    "tools": tools,
    "MCP resources": resources,
    "HTTP: chunks, search, timeline, `archive`": http_lists,
    "HTTP: `quarantine`, `review`": http_review,
    "dashboard: memories, timeline, graph": dashboard(
        "/", "/memories", "/memories?q=pomegranate", "/timeline", "/graph", "/graph/data", "/recalls", "/tiers"
    ),
    "dashboard: archived memories": dashboard("/memories?archived=yes", "/memories?archived=yes&q=pomegranate"),
    "dashboard: changes": dashboard("/changes"),
    "dashboard: review": dashboard("/review", "/review?status=all"),
    "export": lambda garden: exported(garden, archive=True),
    "export without archive": lambda garden: exported(garden, archive=False),
}  # fmt: skip


def expected() -> dict[str, list[str]]:
    """The states that each way shows, by the table of the page."""
    _, _, part = PAGE.read_text(encoding="utf-8").partition("### Who is shown what")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", part, re.M)
    ]
    head, rows = rows[0][1:], rows[2 : 2 + len(WAYS) + 1]
    assert tuple(head) == STATES
    return {row[0]: [state for state, cell in zip(head, row[1:], strict=True) if cell != "–"] for row in rows}


def test_each_way_of_reading_shows_memories_in_the_states_that_the_specification_says(
    garden: Garden, capsys: pytest.CaptureFixture[str]
) -> None:
    ways = {**WAYS, "command: `list`, `search`, `store events`": lambda garden: commands(garden, capsys)}
    shown = {name: [state for state in STATES if WORDS[state] in way(garden)] for name, way in ways.items()}
    assert shown == expected()


def test_nothing_brings_back_what_has_expired_or_was_rejected(garden: Garden, tmp_path: Path) -> None:
    """Restored, undone or imported, it stays as hidden as it was."""
    memory, ids = garden.memory, garden.ids
    assert memory.store.sweep() == [ids["expired"]]
    exported_to = tmp_path / "all.jsonl"
    export_store(memory.store, exported_to, format="jsonl")
    for state in ("expired", "rejected"):
        assert memory.restore(ids[state]) is not None
        assert memory.get(ids[state]) is None and ids[state] not in memory.list_chunks()
    memory.undo(ids["expired"], to_revision=1)
    import_source(memory.store, exported_to, replace=True)
    with Memory.open(tmp_path / "other", clock=garden.clock) as other:
        import_source(other.store, exported_to)
        for one in (memory, other):
            shown = as_text(
                [[hit.snippet for hit in one.search(QUESTION, limit=50)], exported(garden, False)]
            )
            assert WORDS["active"] in shown and one.get(ids["rejected"]) is None
            assert WORDS["expired"] not in shown.partition("]")[0] and one.get(ids["expired"]) is None
            assert not {ids["expired"], ids["rejected"]} & set(one.list_chunks())
    assert ids["expired"] in memory.store.expired() + memory.list_chunks(archived=True)


def test_an_agent_is_shown_no_text_in_quarantine_by_the_review_queue_and_releases_none(
    garden: Garden,
) -> None:
    service = Service(OpenMemory(Settings(brain=garden.place, every_tool=True)))
    try:
        (case,) = service.call("review", {}).data["cases"]
        assert (
            case["counter_evidence"] == ["it gives orders"] and "A person can read it" in case["evidence"][0]
        )
        said = {"case_id": case["id"], "reviewer": "Ines", "reason": "harmless"}
        answer = service.call("review_decide", {**said, "decision": "approve"})
        assert answer.failed and "an agent cannot release" in str(answer)
        assert not service.call("review_decide", {**said, "decision": "reject"}).failed
    finally:
        service.close()
    assert garden.memory.list_chunks(archived=True).count(garden.ids["in quarantine"]) == 1


@pytest.mark.local_only("about pages")
def test_what_was_rejected_is_listed_as_such_and_shows_its_text_on_its_own_page(garden: Garden) -> None:
    with opened(garden.place) as site:
        page = site.get("/memories?archived=yes")
        assert "Rejected while in quarantine" in page and garden.ids["rejected"] in page
        own = site.get(f"/memories/{garden.ids['rejected']}")
        assert WORDS["rejected"] in own and "It was rejected while in quarantine" in own


def test_who_restores_what_stays_hidden_is_told(garden: Garden, capsys: pytest.CaptureFixture[str]) -> None:
    garden.memory.store.sweep()
    hidden = [garden.ids["expired"], garden.ids["rejected"]]
    shown = garden.ids["archived"]
    assert main(["restore", shown, *hidden, "--brain", str(garden.place)]) == 0
    told = capsys.readouterr().out
    assert (
        f"{hidden[0]} stays hidden: it expired on" in told
        and f"{hidden[1]} stays hidden: it is in quar" in told
    )
    assert f"{shown} stays" not in told
    garden.memory.delete(shown)
    garden.memory.store.sweep()
    service = Service(OpenMemory(Settings(brain=garden.place, every_tool=True)))
    try:
        answer = service.call("restore", {"ids": [shown, hidden[0]]}).data
        assert answer == {"restored": [shown, hidden[0]], "missing": [], "hidden": [hidden[0]]}
    finally:
        service.close()
