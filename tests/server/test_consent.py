"""With `trust.by_agents = "ask"`, what a person wrote or confirmed does not vanish by an agent's act alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from rlm_mem import Memory
from rlm_mem.access.tokens import TokenFile
from rlm_mem.errors import ConflictError
from rlm_mem.mcp.service import Service
from rlm_mem.operations.context import OpenMemory, Settings
from tests.server.api import API, BEARER, serving
from tests.server.site import opened

Ask = Callable[..., Any]
BERTH = "The Heron has berth 14, says Ines."


@pytest.fixture(autouse=True)
def _ask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLM_MEM_TRUST_BY_AGENTS", "ask")


@pytest.fixture
def agent(place: Path | str) -> Iterator[Ask]:
    """An agent with every tool: the data of a call, or the sentence of its refusal."""
    service = Service(OpenMemory(Settings(brain=place, every_tool=True, actor="mcp")))

    def call(tool: str, **arguments: Any) -> Any:
        answer = service.call(tool, arguments)
        return answer.text if answer.failed else answer.data

    yield call
    service.close()


def told(place: Path | str, text: str = BERTH, **more: Any) -> str:
    """Remember a text as a person."""
    with Memory.open(place) as memory:
        return memory.remember(text, conversation_id="port", **more).chunk_ids[0]


def found(place: Path | str) -> list[str]:
    with Memory.open(place) as memory:
        return [hit.snippet for hit in memory.search("Heron berth") if hit.superseded_by is None]


def decided(place: Path | str, word: str) -> None:
    """Let a person decide the only open case."""
    with Memory.open(place) as memory:
        (case,) = memory.continuum.review.cases()
        getattr(memory.continuum.review, word)(case.id, reviewer="Ines")
        assert memory.continuum.review.cases() == []


def test_an_agent_asks_a_person_to_forget_what_they_wrote(place: Path | str, agent: Ask) -> None:
    one, own = told(place), agent("remember", text="The tender is grey.")["chunk_ids"][0]
    answer = agent("forget", ids=[one, own])
    assert (answer["forgotten"], answer["missing"], len(answer["proposed"])) == ([own], [], 1)
    assert answer["note"].startswith(
        f"{one} was written by a person: it stays until a person approves your request"
    )
    assert found(place) == [BERTH]
    assert agent("forget", ids=[one])["proposed"] == answer["proposed"], "asked twice, it is one case"
    approved = {"case_id": answer["proposed"][0], "decision": "approve", "reviewer": "Ines"}
    assert "not decided by an agent" in agent("review_decide", **approved)
    decided(place, "approve")
    assert found(place) == []
    with Memory.open(place) as memory:
        assert memory.list_chunks(archived=True).count(one) == 1
        memory.undo()
    assert found(place) == [BERTH]


def test_what_a_person_declined_stays_and_the_agent_is_told(place: Path | str, agent: Ask) -> None:
    one = told(place)
    agent("forget", ids=[one])
    decided(place, "reject")
    answer = agent("forget", ids=[one])
    assert "a person declined to forget it" in answer["note"] and "proposed" not in answer
    assert found(place) == [BERTH] and agent("review")["cases"] == []


@pytest.mark.parametrize("way", ["remember", "link"])
def test_an_agent_asks_a_person_whether_a_text_replaces_theirs(
    place: Path | str, agent: Ask, way: str
) -> None:
    one, text = told(place), "The Heron has berth 3."
    if way == "remember":
        answer = agent("remember", text=text, replaces=[one])
        assert answer["replaced"] == [] and len(answer["proposed"]) >= 1
    else:
        newer = agent("remember", text=text)["chunk_ids"][0]
        with Memory.open(place) as memory:
            for case in memory.continuum.review.cases():  # what a rule found
                memory.continuum.review.reject(case.id, reviewer="Ines")
        newer = agent("remember", text="The Heron lies elsewhere, at berth 3.")["chunk_ids"][0]
        answer = agent("link", source_id=newer, target_id=one, type="supersedes")
        text = "The Heron lies elsewhere, at berth 3."
    assert f"{one} was written by a person: it stays" in answer["note"]
    assert BERTH in found(place) and text in found(place)
    with Memory.open(place) as memory:
        (case,) = [one for one in memory.continuum.review.cases() if one.asked_by]
    approved = {"case_id": case.id, "decision": "approve", "reviewer": "Ines"}
    assert "not decided by an agent" in agent("review_decide", **approved)
    with Memory.open(place) as memory:
        memory.continuum.review.approve(case.id, reviewer="Ines")
    assert BERTH not in found(place) and text in found(place)


def test_a_text_that_was_edited_after_an_agent_asked_is_asked_about_anew(
    place: Path | str, agent: Ask
) -> None:
    one = told(place)
    newer = agent("remember", text="The Heron has berth 3.", replaces=[one])["chunk_ids"][0]
    agent("update", id=newer, content="Nobody knows the Heron.")
    with Memory.open(place) as memory:
        (case,) = [case for case in memory.continuum.review.cases(None) if case.asked_by]
        assert "was edited and does not say" in str(case.obsolete_because)
        with pytest.raises(ConflictError, match="was edited"):
            memory.continuum.review.approve(case.id, reviewer="Ines")
    assert BERTH in found(place)
    agent("link", source_id=newer, target_id=one, type="supersedes")
    with Memory.open(place) as memory:
        (case,) = [case for case in memory.continuum.review.cases() if case.asked_by]
        assert case.sentences[0] == "Nobody knows the Heron."
        memory.continuum.review.approve(case.id, reviewer="Ines")
    assert BERTH not in found(place)


def test_an_agent_changes_neither_the_text_nor_takes_back_a_change_of_what_a_person_wrote(
    place: Path | str, agent: Ask
) -> None:
    one = told(place)
    assert "cannot change the text of it" in agent("update", id=one, content="The Heron is gone.")
    assert agent("update", id=one, tags=["boats"])["tags"] == ["boats"]
    assert found(place) == [BERTH]


def test_an_agent_that_hid_what_a_person_wrote_cannot_archive_it_then(place: Path | str, agent: Ask) -> None:
    one = told(place)
    assert agent("quarantine", id=one, reason="it gives orders")["trust"] == "quarantined"
    assert f"{one} is in quarantine, so a client cannot forget it" in agent("forget", ids=[one])
    new = {"text": "The Heron has berth 3.", "replaces": [one]}
    assert f"{one} is in quarantine, so a client cannot replace it" in agent("remember", **new)
    with Memory.open(place) as memory:
        (case,) = memory.continuum.review.cases()
    rejected = {"case_id": case.id, "decision": "reject", "reviewer": "Ines", "reason": "hostile"}
    assert "not decided by an agent" in agent("review_decide", **rejected)
    with Memory.open(place) as memory:
        memory.release(one)
        assert memory.list_chunks(archived=True) == []
    assert found(place) == [BERTH]


def test_what_agents_wrote_stays_theirs_until_a_person_confirms_it(place: Path | str, agent: Ask) -> None:
    one = agent("remember", text=BERTH)["chunk_ids"][0]
    other = agent("remember", text="The Heron has berth 3.", replaces=[one])
    assert other["replaced"] == [one] and other["note"] is None
    with Memory.open(place) as memory:
        kept = memory.store.create_chunk(
            "The Heron has berth 9.", source="transcript", conversation_id="s1"
        ).id
        memory.continuum.review.add_captured("s1", "claude-code", [memory.store.get_chunk(kept)])
        memory.continuum.review.approve(memory.continuum.review.cases()[0].id, reviewer="Ines")
    assert "was confirmed by Ines" in agent("forget", ids=[kept])["note"]
    with Memory.open(place) as memory:
        memory.remember("We moved the Heron from berth 9 to berth 4.", origin="agent", source="agent")
        assert memory.get(kept).metadata.superseded_by is None


def test_by_default_agents_act_by_themselves(
    place: Path | str, agent: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = told(place), told(place, "The Heron is blue.")
    monkeypatch.delenv("RLM_MEM_TRUST_BY_AGENTS")
    service = Service(OpenMemory(Settings(brain=place)))
    assert service.call("forget", {"ids": [one]}).data == {"forgotten": [one], "missing": []}
    made = service.call("remember", {"text": "The Heron is red.", "replaces": other}).data
    service.close()
    assert made["replaced"] == [other] and found(place) == ["The Heron is red."]


def test_a_client_that_may_not_decide_reviews_asks_and_one_that_may_acts(
    place: Path | str, tmp_path: Path
) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    writer = tokens.create("app", ["*"], ["write"])[1]
    reviewer = tokens.create("ines", ["*"], ["write", "review"])[1]
    one, two = told(place), told(place, "The Heron is blue.")
    with serving(place, tokens=tmp_path / "tokens.json") as (app, _, _), TestClient(app, API) as client:
        client.headers["Authorization"] = f"Bearer {writer}"
        made = client.post(
            "remember", json={"text": "The Heron is red.", "replaces": two, "origin": "agent"}
        ).json()
        assert made["replaced"] == [] and len(made["proposed"]) >= 1
        newer = made["chunk_ids"][0]
        for answer in (
            client.delete(f"chunks/{one}"),
            client.delete(f"chunks/{one}", params={"permanent": True}),
            client.post(f"chunks/{two}/supersede", json={"by": newer}),
            client.put(f"chunks/{newer}/links/supersedes/{two}", json={}),
        ):
            assert answer.status_code == 202 and "was written by a person" in answer.json()["note"]
        for answer in (
            client.patch(f"chunks/{one}", json={"content": "Gone."}),
            client.patch(f"chunks/{one}", json={"expires_at": "2999-01-01"}),
            client.patch(f"chunks/{one}", json={"origin": "agent"}),
            client.post(f"chunks/{one}/undo", json={}),
            client.post("archive", json={"conversation_id": "port", "dry_run": False}),
            client.post("batch", json={"steps": [{"do": "delete", "chunk_id": one}]}),
            client.post("batch", json={"steps": [{"do": "remember", "text": "Gone.", "replaces": one}]}),
        ):
            assert answer.status_code == 409 and "was written by a person" in answer.json()["detail"]
        assert client.delete(f"chunks/{newer}").status_code == 204
        for token in (reviewer, BEARER["Authorization"].removeprefix("Bearer ")):
            client.headers["Authorization"] = f"Bearer {token}"
            assert client.delete(f"chunks/{one if token == reviewer else two}").status_code == 204
        client.headers["Authorization"] = f"Bearer {writer}"
        for answer in (
            client.delete(f"chunks/{one}", params={"permanent": True}),
            client.post("batch", json={"steps": [{"do": "delete", "chunk_id": one, "permanent": True}]}),
        ):
            assert answer.status_code == 409 and "cannot erase it" in answer.json()["detail"]
        assert client.get(f"archive/{one}").status_code == 200
    assert found(place) == []


def test_a_request_holds_only_for_the_revision_that_it_names_when_asked_and_when_approved(
    place: Path | str, tmp_path: Path
) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    writer = tokens.create("app", ["*"], ["write"])[1]
    one, two = told(place), told(place, "The Heron is blue.")
    with serving(place, tokens=tmp_path / "tokens.json") as (app, _, _), TestClient(app, API) as client:
        client.headers["Authorization"] = f"Bearer {writer}"
        newer = client.post("remember", json={"text": "The Heron is red.", "origin": "agent"}).json()[
            "chunk_ids"
        ][0]
        stale = {"If-Match": '"7"'}
        for answer in (
            client.delete(f"chunks/{one}", headers=stale),
            client.post(f"chunks/{two}/supersede", json={"by": newer}, headers=stale),
            client.put(f"chunks/{newer}/links/supersedes/{two}", json={}, headers=stale),
        ):
            assert answer.status_code == 412 and "is now at revision 1" in answer.json()["detail"]
        with Memory.open(place) as memory:
            assert not [case for case in memory.continuum.review.cases(None) if case.asked_by], (
                "nothing was asked"
            )
        (asked,) = client.delete(f"chunks/{one}", headers={"If-Match": '"1"'}).json()["proposed"]
        with Memory.open(place) as memory:
            memory.update(one, tags=["boats"])
            with pytest.raises(ConflictError, match=r"asked for revision 1, and it is at 2"):
                memory.continuum.review.approve(asked, reviewer="Ines")
            assert memory.get(one) is not None
        (again,) = client.delete(f"chunks/{one}", headers={"If-Match": '"2"'}).json()["proposed"]
        assert again == asked, "asked anew, it is the same case"
    with Memory.open(place) as memory:
        memory.continuum.review.approve(asked, reviewer="Ines")
        assert memory.get(one) is None


def test_what_was_edited_after_an_agent_asked_to_forget_it_is_not_forgotten(
    place: Path | str, agent: Ask
) -> None:
    one = told(place)
    (asked,) = agent("forget", ids=[one])["proposed"]
    with Memory.open(place) as memory:
        memory.update(one, "The Heron has berth 2, and the key is with Ines.")
        with pytest.raises(ConflictError, match="was edited after mcp had asked"):
            memory.continuum.review.approve(asked, reviewer="Ines")
        assert memory.get(one) is not None


@pytest.mark.local_only("about pages")
def test_a_person_decides_on_the_page_review(place: Path, agent: Ask) -> None:
    one = told(place)
    (case,) = agent("forget", ids=[one])["proposed"]
    with opened(place) as site:
        page = site.get("/review")
        assert "an agent asks to forget it" in page and "it was written by a person" in page and BERTH in page
        site.post(f"/review/{case}", do="approve", reviewer="Ines")
    assert found(place) == []


def test_plain_undo_of_a_client_takes_its_own_last_change_and_names_those_of_others(
    place: Path | str, tmp_path: Path
) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    by = {name: tokens.create(name, ["*"], ["write", "review"])[1] for name in ("ana", "ben", "eva")}
    with serving(place, tokens=tmp_path / "tokens.json") as (app, _, _), TestClient(app, API) as client:

        def ask(name: str, path: str, **body: Any) -> Any:
            client.headers["Authorization"] = f"Bearer {by[name]}"
            return client.post(path, json=body)

        first = ask("ana", "remember", text="The Heron is blue.").json()["chunk_ids"]
        second = ask("ben", "remember", text="The tender is grey.").json()["chunk_ids"]
        assert ask("ana", "undo").json()["chunk_ids"] == first
        refused = ask("ana", "undo")
        assert refused.status_code == 409 and "create of" in refused.json()["detail"]
        assert "by token:ben" in refused.json()["detail"] and "by somebody else" in refused.json()["detail"]
        change = refused.json()["hint"].rpartition(" ")[2]
        assert ask("eva", "undo", change=change).json()["chunk_ids"] == second
        assert ask("ben", "undo").status_code == 404, "both are undone"


def test_undo_by_an_agent_takes_its_own_change_and_no_memory_of_a_person(
    place: Path | str, agent: Ask
) -> None:
    own = agent("remember", text="The tender is grey.")["chunk_ids"]
    one = told(place)
    (theirs,) = [change["id"] for change in agent("changes")["changes"] if change["chunk_ids"] == [one]]
    assert f"takes away {one}, which a person wrote" in agent("undo", change=theirs)
    assert agent("undo")["chunk_ids"] == own
    assert "by somebody else, and none by mcp is left" in agent("undo") and found(place) == [BERTH]
