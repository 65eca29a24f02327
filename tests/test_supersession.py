"""One memory replaces another: the act, its faces, what held earlier, and taking it back; on both stores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlm_mem import Memory
from rlm_mem.chunk import Chunk
from rlm_mem.cli import main
from rlm_mem.errors import ConflictError, InvalidChunk, InvalidLink, InvalidQuery, NotFoundError, RlmMemError
from rlm_mem.interchange import import_source
from rlm_mem.mcp.service import Service
from rlm_mem.operations.context import OpenMemory, Settings
from rlm_mem.store.core.integrity import check, repair
from tests.conftest import Clock
from tests.server.api import client_of
from tests.typed import present

JANUARY, MARCH, MAY = "2026-01-10", "2026-03-10", "2026-05-10"


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    """A memory in files, where the store makes no difference."""
    with Memory.open(tmp_path / "brain", clock=clock) as opened:
        yield opened


def sound(memory: Memory) -> bool:
    """Whether fields and links agree, and the store is without findings."""
    chunks = {chunk.id: chunk for chunk in memory.store.iter_chunks()}
    fields = {
        (chunk.metadata.superseded_by, chunk.id) for chunk in chunks.values() if chunk.metadata.superseded_by
    }
    links = {
        (chunk.id, link.target_id)
        for chunk in chunks.values()
        for link in chunk.links
        if link.type == "supersedes"
    }
    return fields == links and not check(memory.store)


def test_what_replaces_comes_first_what_held_is_kept_and_undo_takes_it_back(place: Path | str) -> None:
    with Memory.open(place) as memory:
        old = memory.remember("Dana lives in Berlin, in Berlin itself.", occurred_at=JANUARY).chunk_ids[0]
        made = memory.remember("Dana lives in Hamburg.", occurred_at=MARCH, replaces=old)
        new = made.chunk_ids[0]
        assert made.replaced == [old] and old in str(made)
        hits = memory.search("Where does Dana live, in Berlin?")
        assert [(hit.chunk_id, hit.superseded_by, hit.replaces) for hit in hits] == [
            (new, None, (old,)),
            (old, new, ()),
        ]
        assert f"out of date: {new}" in str(hits[1])
        [way] = memory.links(old, "supersedes")
        assert (way.chunk_id, way.direction) == (new, "in")
        chunk = memory.get(old)
        assert chunk is not None and chunk.metadata.valid_to == "2026-03-10T00:00:00.000000Z"
        assert "Hamburg" in str(memory.recall("Where does Dana live?").content)
        assert sound(memory)

        assert [hit.chunk_id for hit in memory.search("Where does Dana live?", as_of="2026-02-01")] == [old]
        assert "Berlin" in str(memory.recall("Where does Dana live?", as_of="2026-02-01").content)
        assert [memory.list_chunks(as_of=day) for day in ("2025-12-31", "2026-02-01", MARCH)] == [
            [],
            [old],
            [new],
        ]
        then = memory.get(old, as_of="2026-02-01")
        assert then is not None and then.metadata.superseded_by is None
        assert memory.get(old, as_of=MAY) is None and memory.get(new, as_of="2026-02-01") is None

        undone = memory.undo()
        assert undone is not None and memory.list_chunks() == [old] and sound(memory)
        chunk = memory.get(old)
        assert chunk is not None and (chunk.metadata.superseded_by, chunk.metadata.valid_to) == (None, None)
        memory.undo(change=undone.undo)
        assert [hit.chunk_id for hit in memory.search("Dana")] == [new, old] and sound(memory)


@pytest.mark.parametrize("given", [True, False], ids=["by the caller", "by its text"])
def test_undo_of_a_new_chunk_takes_back_what_it_replaced(place: Path | str, given: bool) -> None:
    with Memory.open(place) as memory:
        old = memory.remember("Dana lives in Berlin.").chunk_ids[0]
        made = memory.remember("Dana moved from Berlin to Hamburg.", replaces=old if given else None)
        new = made.chunk_ids[0]
        assert made.replaced == [old]
        undone = memory.undo(new)
        assert undone is not None and undone.content == "Dana moved from Berlin to Hamburg."
        chunk = memory.get(old)
        assert chunk is not None and (chunk.metadata.superseded_by, chunk.metadata.valid_to) == (None, None)
        assert memory.links(new, "supersedes") == [] and sound(memory)

        assert memory.undo(new) is not None  # undone in its turn
        chunk = memory.get(old)
        assert chunk is not None and chunk.metadata.superseded_by == new and sound(memory)
        assert memory.undo(memory.remember("The quay is closed.").chunk_ids[0]) is None


def test_an_import_records_in_both_chunks_what_one_of_them_names(place: Path | str, tmp_path: Path) -> None:
    def chunk(name: str, day: str, superseded_by: str | None = None, *replaces: str) -> str:
        links = [
            {"target_id": one, "type": "supersedes", "strength": 0.8, "created_at": MAY} for one in replaces
        ]
        about = {"created_at": f"{day}T00:00:00.000000Z", "superseded_by": superseded_by}
        return json.dumps({"id": f"chunk-{name}", "content": name, "metadata": about, "links": links}) + "\n"

    file = tmp_path / "chunks.jsonl"
    file.write_text(
        chunk("older", JANUARY, "chunk-newer")
        + chunk("old", JANUARY)
        + chunk("newer", MARCH)
        + chunk("new", MARCH, None, "chunk-old", "chunk-elsewhere")
        + chunk("one", JANUARY, "chunk-two")
        + chunk("two", JANUARY, "chunk-one")
    )
    with Memory.open(place) as memory:
        report = import_source(memory.store, file)
        assert ["cannot replace" in one.reason for one in report.problems] == [True, True]
        for older, newer in (("chunk-older", "chunk-newer"), ("chunk-old", "chunk-new")):
            about = memory.store.get_many([older])[older].metadata
            assert (about.superseded_by, about.valid_to) == (newer, "2026-03-10T00:00:00.000000Z")
            assert [link.chunk_id for link in memory.links(older, "supersedes")] == [newer]
        before = [one.to_dict() for one in memory.store.iter_chunks()]
        import_source(memory.store, file, again=True)
        assert [one.to_dict() for one in memory.store.iter_chunks()] == before
        memory.unlink("chunk-newer", "chunk-older", "supersedes")
        about = memory.store.get_many(["chunk-older"])["chunk-older"].metadata
        assert about.superseded_by is None and about.valid_to is None


def test_a_check_finds_replacements_that_one_chunk_names_and_a_repair_records_them(place: Path | str) -> None:
    """As hands, former versions and other programs leave them: chunks are written as they are."""
    with Memory.open(place) as memory:
        store = memory.store

        def chunk(name: str, superseded_by: str | None = None, replaces: str = "", **about: str) -> str:
            links = [{"target_id": replaces, "type": "supersedes", "strength": 0.8, "created_at": MAY}]
            meta = {"created_at": f"{MARCH}T00:00:00.000000Z", "superseded_by": superseded_by, **about}
            given = {"id": name, "content": name, "metadata": meta, "links": links if replaces else []}
            return store.adopt(Chunk.from_dict({**given, "namespace": store.namespace})).id

        for number in range(3):
            chunk(f"chunk-new-{number}", None, f"chunk-old-{number}" if number != 1 else "")
        chunk("chunk-old-0")
        chunk("chunk-old-1", "chunk-new-1", valid_to=MAY)
        chunk("chunk-old-2", "chunk-new-2")
        chunk("chunk-rival", None, "chunk-old-2")
        chunk("chunk-self", "chunk-self")
        gone = chunk("chunk-gone", None, "chunk-old-1")
        store.delete_chunk(gone)

        def found() -> list[tuple[str, str | None, str | None]]:
            return sorted(
                (one.code, one.chunk_id, one.target_id)
                for one in check(store)
                if one.link_type == "supersedes"
            )

        named = [
            ("one-sided-replacement", f"chunk-new-{number}", f"chunk-old-{number}") for number in range(3)
        ]
        twice = ("replaced-twice", "chunk-rival", "chunk-old-2")
        assert found() == [*named, twice, ("self-link", "chunk-self", "chunk-self")]
        steps = repair(store, dry_run=False)
        assert [step.done for step in steps if step.finding.code == "one-sided-replacement"] == [True] * 3
        assert found() == [twice]
        for number, until in ((0, MARCH), (1, MAY), (2, MARCH)):
            about = store.get_many([f"chunk-old-{number}"])[f"chunk-old-{number}"].metadata
            assert (about.superseded_by, str(about.valid_to)[:10]) == (f"chunk-new-{number}", until)
            assert [
                one.chunk_id for one in memory.links(f"chunk-new-{number}", "supersedes", direction="out")
            ] == [f"chunk-old-{number}"]
        store.undo("chunk-old-0")
        assert store.get_many(["chunk-old-0"])["chunk-old-0"].metadata.superseded_by is None

        chunk("chunk-a", "chunk-b"), chunk("chunk-b", "chunk-a")
        errors = [step.error for step in repair(store, dry_run=False) if step.error]
        assert len(errors) == 2 and all("cannot replace" in error for error in errors)


def test_swapped_ids_are_refused_unless_they_are_meant(place: Path | str) -> None:
    with Memory.open(place) as memory:
        old = memory.remember("The lamp is red.", occurred_at="2026-01-05T10:00:00Z").chunk_ids[0]
        new = memory.remember("The lamp is blue.", occurred_at="2026-02-05T10:00:00Z").chunk_ids[0]
        with pytest.raises(
            InvalidLink, match=f"{old} of 2026-01-05 is older than {new} of 2026-02-05"
        ) as error:
            memory.supersede(new, old)
        assert "force" in str(error.value.hint)
        with memory.batch(), pytest.raises(InvalidLink):  # the batch goes on
            memory.supersede(new, old)
        assert memory.store.get_many([new])[new].metadata.superseded_by is None
        assert memory.supersede(new, old, force=True).metadata.superseded_by == old
        memory.undo()
        memory.supersede(old, new)
        memory.undo()
        backdated = memory.remember("The lamp was green then.", occurred_at="2025-12-01").chunk_ids[0]
        assert memory.supersede(old, backdated).metadata.superseded_by == backdated, "it was told later"


def test_every_interface_supersedes_in_the_same_way(place: Path | str) -> None:
    with Memory.open(place) as memory:
        old, new = (memory.remember(text).chunk_ids[0] for text in ("The lamp is red.", "The lamp is blue."))
        ways = [
            (lambda: memory.supersede(old, new, "painted"), lambda: memory.unlink(new, old, "supersedes")),
            (lambda: memory.link(new, old, "supersedes", 0.9, "painted"), lambda: memory.undo()),
            (
                lambda: memory.update(old, metadata={"superseded_by": new}),
                lambda: memory.update(old, metadata={"superseded_by": None}),
            ),
            (lambda: memory.supersede(old, new), lambda: memory.undo(old)),
            (lambda: memory.supersede(old, new), lambda: memory.undo(new)),
        ]
        for act, back in ways:
            act()
            chunk = memory.store.get_chunk(old)
            assert chunk is not None and chunk.metadata.superseded_by == new and sound(memory)
            assert [hit.chunk_id for hit in memory.search("lamp red")] == [new, old]
            back()
            chunk = memory.store.get_chunk(old)
            assert chunk is not None and chunk.metadata.superseded_by is None and sound(memory)
            assert not memory.links(new, "supersedes")
        memory.supersede(old, new, "painted", confidence=0.8)
        [link] = memory.links(new, "supersedes")
        assert (link.reasoning, link.strength) == ("painted", 0.8)
        memory.delete(new, permanent=True)
        chunk = memory.store.get_chunk(old)
        assert chunk is not None and chunk.metadata.superseded_by is None and sound(memory)


def test_an_end_that_was_set_by_hand_comes_back(memory: Memory) -> None:
    old = memory.store.create_chunk("The pass holds.", occurred_at=JANUARY, valid_to=MAY).id
    new = memory.remember("The pass was withdrawn.", occurred_at=MARCH, replaces=[old]).chunk_ids[0]
    ends = []
    for step in (lambda: None, lambda: memory.unlink(new, old)):
        step()
        chunk = memory.store.get_chunk(old)
        assert chunk is not None
        ends.append(str(chunk.metadata.valid_to)[:10])
    assert ends == [MARCH, MAY]


def test_a_successor_set_by_a_field_ends_the_older_chunk_and_clearing_it_brings_its_end_back(
    memory: Memory,
) -> None:
    store = memory.store
    old, other = (
        store.create_chunk("The pass holds.", occurred_at=JANUARY, valid_to=end).id for end in (MAY, None)
    )
    new = store.create_chunk("The pass was withdrawn.", occurred_at=MARCH).id
    for chunk_id, before in ((old, MAY), (other, "None")):
        ends = []
        for by in (new, None):
            made = store.update_chunk(chunk_id, metadata={"superseded_by": by})
            assert made is not None and sound(memory)
            ends.append(str(made.metadata.valid_to)[:10])
        assert ends == [MARCH, before]
    given = store.update_chunk(old, metadata={"superseded_by": new, "valid_to": "2026-02-01"})
    assert given is not None and str(given.metadata.valid_to)[:10] == "2026-02-01"


def test_a_successor_that_is_not_there_is_refused(place: Path | str) -> None:
    """A field cannot hide a memory behind nothing, which a check would have to report."""
    with Memory.open(place, namespace="team/a") as memory:
        elsewhere = memory.remember("Dana lives in Ulm.").chunk_ids[0]
    with Memory.open(place) as memory:
        old = memory.remember("Dana lives in Berlin.").chunk_ids[0]
        archived = memory.remember("Dana lives in Hamburg.").chunk_ids[0]
        memory.delete(archived)
        for by in (elsewhere, archived, "chunk-2026-01-01-00000000"):
            with pytest.raises(InvalidLink, match="replaces nothing"):
                memory.update(old, metadata={"superseded_by": by})
            with pytest.raises(InvalidLink, match="replaces nothing"):
                memory.store.create_chunk("Dana lives in Bonn.", metadata={"superseded_by": by})
        assert memory.list_chunks() == [old] and sound(memory)


def test_invalid_replacements_are_refused_and_change_nothing(memory: Memory) -> None:
    one, two, three = (
        memory.remember(f"The lamp is {colour}.").chunk_ids[0] for colour in ("red", "blue", "grey")
    )
    memory.supersede(one, two)
    memory.supersede(two, three)
    before = [chunk.to_dict() for chunk in memory.store.iter_chunks()]
    refused: list[tuple[type[RlmMemError], Callable[[], object]]] = [
        (ConflictError, lambda: memory.supersede(one, three)),
        (InvalidLink, lambda: memory.supersede(three, one)),
        (InvalidLink, lambda: memory.supersede(three, three)),
        (InvalidLink, lambda: memory.store.update_chunk(three, metadata={"superseded_by": one})),
        (InvalidLink, lambda: memory.store.update_chunk(three, metadata={"superseded_by": three})),
        (NotFoundError, lambda: memory.supersede("chunk-2026-01-01-00000000", three)),
        (NotFoundError, lambda: memory.remember("The lamp is green.", replaces="chunk-2026-01-01-00000000")),
        (ConflictError, lambda: memory.remember("The lamp is green.", replaces=[one])),
        (InvalidChunk, lambda: memory.remember("The lamp is grey.", replaces=three)),
        (InvalidQuery, lambda: memory.list_chunks(as_of="soon")),
        (InvalidQuery, lambda: memory.get(one, as_of="2026-13-01")),
    ]
    for kind, act in refused:
        with pytest.raises(kind):
            act()
        assert [chunk.to_dict() for chunk in memory.store.iter_chunks()] == before


def test_a_refused_replacement_within_a_batch_that_goes_on_changes_nothing(place: Path | str) -> None:
    with Memory.open(place) as memory:
        first, second = (memory.store.create_chunk(f"Note {number}.").id for number in range(2))
        by = memory.store.create_chunk("Instead of the second.", links={"supersedes": [second]}).id
        with memory.batch():
            with pytest.raises(ConflictError, match="already replaced"):
                memory.store.create_chunk("Instead of both.", links={"supersedes": [first, second]})
            memory.remember("Something else.")
        assert [present(memory.get(one)).metadata.superseded_by for one in (first, second)] == [None, by]
        assert sound(memory)


def test_a_chunk_comes_back_from_the_archive_with_the_replacements_that_still_hold(place: Path | str) -> None:
    with Memory.open(place) as memory:
        pairs = []
        for number in range(4):
            old = memory.store.create_chunk(f"Lamp {number} is red.", valid_to=MAY, occurred_at=JANUARY).id
            pairs.append((old, memory.remember(f"Lamp {number} is grey.", replaces=old).chunk_ids[0]))
        (kept, by), (freed, former), (left, taken), (orphan, erased) = pairs
        later = memory.remember("Lamp 1 is blue.").chunk_ids[0]
        for chunk_id in (by, left, orphan, former):
            memory.delete(chunk_id)
        gone = memory.recorded_changes()[0].id
        memory.supersede(freed, later)  # what replaced it is in the archive
        memory.unlink(taken, left)
        memory.delete(erased, permanent=True)
        for chunk_id in (by, left, orphan):
            memory.restore(chunk_id)
        memory.undo(change=gone)
        assert sound(memory)
        now = {chunk.id: chunk for chunk in memory.store.iter_chunks()}
        assert [now[one].metadata.superseded_by for one in (kept, freed, left, orphan)] == [
            by,
            later,
            None,
            None,
        ]
        assert [str(now[one].metadata.valid_to)[:10] for one in (left, orphan)] == [MAY, MAY]


def test_an_undo_does_not_bring_back_links_to_what_was_erased(place: Path | str) -> None:
    with Memory.open(place) as memory:
        old, new, other = (
            memory.store.create_chunk(f"The lamp is {colour}.").id for colour in ("red", "blue", "grey")
        )
        memory.link(other, new, "supports")
        memory.supersede(old, new)
        memory.delete(new, permanent=True)
        for chunk_id in (other, old):
            memory.undo(chunk_id)
        assert sound(memory)
        again = memory.get(old)
        assert again is not None and (again.metadata.superseded_by, again.metadata.valid_to) == (None, None)


def test_a_circle_is_refused_though_a_part_of_it_is_archived(memory: Memory) -> None:
    one, two, three = (
        memory.remember(f"The lamp is {colour}.").chunk_ids[0] for colour in ("red", "blue", "grey")
    )
    memory.supersede(one, two)
    memory.supersede(two, three)
    memory.delete(two)
    with pytest.raises(InvalidLink, match="it was replaced by it"):
        memory.supersede(three, one)


def test_what_holds_again_is_a_statement_of_its_own(memory: Memory) -> None:
    first = memory.remember("The lamp is red.", occurred_at=JANUARY).chunk_ids[0]
    second = memory.remember("The lamp is blue.", occurred_at=MARCH, replaces=first).chunk_ids[0]
    again = memory.remember("The lamp is red.", occurred_at=MAY, replaces=second).chunk_ids[0]
    assert next(hit.chunk_id for hit in memory.search("lamp")) == again != first
    assert [memory.list_chunks(as_of=f"2026-0{month}-20") for month in (1, 3, 5)] == [
        [first],
        [second],
        [again],
    ]


def test_a_view_reads_the_version_of_its_time(memory: Memory, clock: Clock) -> None:
    chunk_id = memory.remember("The lamp is red, and it hangs.").chunk_ids[0]
    clock.advance(days=40)
    memory.update(chunk_id, "The lamp is blue, and it hangs.")
    then = memory.get(chunk_id, as_of="2026-02-20")
    assert then is not None and "red" in then.content
    [hit] = memory.search("lamp", as_of="2026-02-20")
    assert "red" in hit.snippet
    view = memory.store.held_at("2026-02-20")
    assert [one.id for one in view.latest(5)] == [one.id for one in view.timeline()] == [chunk_id]
    assert not memory.store.held_at("2026-02-09").exists(chunk_id)
    assert view.clock() < memory.store.clock()


def test_the_log_has_the_time_of_asking_not_the_time_asked_about(place: Path | str) -> None:
    with Memory.open(place) as memory:
        [chunk_id] = memory.remember("Dana lives in Berlin.", occurred_at=JANUARY).chunk_ids
        before = memory.store.clock()
        memory.recall("Where does Dana live?", as_of="2026-02-01")
        memory.get(chunk_id, as_of="2026-02-01")
        [event] = memory.events(op="recall")
        chunk = memory.get(chunk_id)
        assert chunk is not None
        assert str(event)[:10] == before.isoformat()[:10] <= chunk.metadata.accessed_at[:10]


def test_tools_http_and_the_command_replace_and_ask_as_of(
    place: Path | str, capsys: pytest.CaptureFixture[str]
) -> None:
    with client_of(place) as http:
        old = http.post("/remember", json={"text": "Dana lives in Berlin.", "occurred_at": JANUARY}).json()[
            "chunk_ids"
        ][0]
        made = http.post(
            "/remember", json={"text": "Dana lives in Oslo.", "occurred_at": MARCH, "replaces": old}
        ).json()
        new = made["chunk_ids"][0]
        assert made["replaced"] == [old]
        [first, second] = http.post("/search", json={"query": "Where does Dana live?"}).json()["items"]
        assert (first["chunk_id"], first["replaces"], second["superseded_by"]) == (new, [old], new)
        [then] = http.get("/chunks", params={"as_of": "2026-02-01"}).json()["items"]
        assert then["id"] == old
        asked = {"question": "Where does Dana live?", "as_of": "2026-02-01"}
        assert "Berlin" in http.post("/recall", json=asked).json()["answer"]
        last = http.post(
            "/chunks", json={"content": "Dana lives in Rome.", "source": "agent", "occurred_at": MAY}
        ).json()["id"]
        told = http.post(f"/chunks/{new}/supersede", json={"by": last, "reason": "she moved"}).json()
        assert told["superseded_by"] == last
        assert http.post(f"/chunks/{new}/supersede", json={"by": new}).status_code == 409

    service = Service(OpenMemory(Settings(brain=place)))
    try:
        found = service.call("search", {"query": "Where does Dana live?", "as_of": "2026-04-01"}).data["hits"]
        assert [hit["id"] for hit in found] == [new]
        newest = service.call("remember", {"text": "Dana lives in Paris.", "replaces": last}).data[
            "chunk_ids"
        ][0]
        [shown] = service.call("get", {"ids": [newest]}).data["memories"]
        assert shown["replaces"] == [last]
        other = service.call("remember", {"text": "Dana lives in Lima."}).data["chunk_ids"][0]
        assert not service.call(
            "link", {"source_id": other, "target_id": newest, "type": "supersedes"}
        ).failed
        assert service.call("search", {"query": "Where does Dana live?"}).data["hits"][0]["id"] == other
    finally:
        service.close()

    brain = ["--brain", str(place)]
    assert main([*brain, "search", "Dana", "--as-of", "2026-02-01", "--json"]) == 0
    assert [hit["chunk_id"] for hit in json.loads(capsys.readouterr().out)] == [old]
    assert main([*brain, "remember", "Dana lives in Turin.", "--replaces", other, "--json"]) == 0
    turin = json.loads(capsys.readouterr().out)["chunk_ids"][0]
    assert main([*brain, "show", other]) == 0 and turin in capsys.readouterr().out
    assert main([*brain, "show", turin, "--as-of", JANUARY]) != 0
    assert main([*brain, "recall", "Where does Dana live?", "--as-of", "2026-02-01"]) == 0
    assert "Berlin" in capsys.readouterr().out
    assert main([*brain, "chunk", "supersede", turin, old]) != 0  # old was replaced by way of others


def test_a_question_over_several_numbered_statements_is_followed_from_one_to_the_next(memory: Memory) -> None:
    facts = [
        "The captain of Sea Heron is Ana Lopes.", "Ana Lopes lives in the town of Porto.",
        "The mayor of Porto is Rui Dias.", "The owner of Sea Heron is Ivo Brand.",
        "Ivo Brand lives in the town of Delft.", "The mayor of Delft is Eva Smit.",
        "The harbour of Porto was built by Nuno Reis.", "Ana Lopes lives in the town of Faro.",
        "The mayor of Faro is Gil Matos.", "Gil Matos plays the violin.",
    ]  # fmt: skip
    memory.remember("The harbour towns.\n\n" + "\n".join(f"{n}. {fact}" for n, fact in enumerate(facts)))
    answers = {
        "Who is the mayor of the town where the captain of the Sea Heron lives?": "Gil Matos",
        "Who is the mayor of the town in which the owner of the Sea Heron lives?": "Eva Smit",
        "In which town does the captain of Sea Heron live?": "Faro",
        "What does the mayor of the town where Ana Lopes lives play?": "violin",
        "Who is the captain of the Sea Heron?": "Ana Lopes",
    }
    for question, answer in answers.items():
        assert memory.recall(question).content == answer
    for question in (
        "Who built the harbour of the town where the captain of Sea Heron lives?",  # nothing on the harbour of Faro
        "What is the favourite food of the captain of Sea Heron?",
    ):
        assert memory.recall(question).content not in ("Faro", "Nuno Reis")


def test_of_numbered_statements_the_last_one_holds(memory: Memory) -> None:
    facts = [
        "The lead of Harbour is Ana Ortiz.", "Harbour is located in the city of Lisbon.",
        "Ben Haas is a citizen of Norway.", "The author of The Quiet Gate is Carla Nunes.",
        "squash is associated with the sport of The Old Hall.", "Harbour is located in the city of Porto.",
        "The lead of Lantern is Dev Rao.", "Ben Haas is a citizen of Chile.",
        "The lead of Harbour is The Council of Harbour.", "Ben Haas was born in the city of Bergen.",
    ]  # fmt: skip
    memory.remember("A list of facts:\n" + "\n".join(f"{n}. {fact}" for n, fact in enumerate(facts)))
    answers = {
        "Who is the lead of Harbour?": "The Council of Harbour",
        "Which city is Harbour located in?": "Porto",
        "What is the country of citizenship of Ben Haas?": "Chile",
        "Which city was Ben Haas born in?": "Bergen",
        "Who is the lead of Lantern?": "Dev Rao",
        "Who is the author of The Quiet Gate?": "Carla Nunes",
    }
    for question, answer in answers.items():
        assert memory.recall(question).content == answer
    assert memory.recall("Who is the lead of Beacon?").content is None


def test_a_statement_made_again_after_another_one_is_stored_again_and_holds(base: Path) -> None:
    with Memory.open(base) as memory:
        first = memory.remember("The standup is at 9:15.", occurred_at="2025-01-01")
        memory.remember("The standup is at 9:45.", occurred_at="2025-02-01")
        again = memory.remember("The standup is at 9:15.", occurred_at="2025-03-01")
        assert again.created == 1 and again.chunk_ids != first.chunk_ids
        assert memory.search("When is the standup?", limit=1)[0].chunk_id == again.chunk_ids[0]
        assert "9:15" in str(memory.recall("When is the standup?").content)
        repeated = memory.remember("The standup is at 9:15.", occurred_at="2025-04-01")
        assert repeated.created == 0 and repeated.duplicates
        told_before = memory.remember("The standup is at 9:45.", occurred_at="2025-01-15")
        assert told_before.created == 0


def test_what_holds_again_after_it_was_replaced_is_stored_once(base: Path) -> None:
    first, second = "The port of the ledger is 8080.", "The port of the ledger is 9090 now."
    with Memory.open(base) as memory:
        memory.remember(first)
        assert memory.remember(second).replaced
        again = memory.remember(first)
        assert again.created == 1
        for _ in range(2):
            assert memory.remember(first).duplicates == again.chunk_ids
        assert memory.remember_many([first])[0].duplicates == again.chunk_ids


def test_two_statements_that_take_turns_are_stored_a_few_times_only(place: Path | str) -> None:
    """Texts without dates may be filled in again and again."""
    with Memory.open(place) as memory:
        for _ in range(6):
            memory.remember_many(["The stand-up is at 9:15.", "The stand-up is at 9:45."])
        assert memory.stats().chunk_count <= 2 * memory.config.ingest.max_similar


def test_a_text_that_replaces_many_is_written_once_for_all_of_them(place: Path | str) -> None:
    with Memory.open(place) as memory:
        made = memory.remember_many([f"Rack {number} is in use." for number in range(40)])
        old = [one.chunk_ids[0] for one in made]
        for replaced in (old[:20], old[20:]):
            [new] = memory.remember(
                f"{len(replaced)} racks of {replaced[0]} were sold.", replaces=replaced
            ).chunk_ids
            [chunk] = memory.store.get_many(new).values()
            assert chunk.revision == 2
            assert {link.chunk_id for link in memory.links(new, "supersedes", "out")} == set(replaced)
        assert sound(memory)
        memory.undo()
        assert [one for one in memory.store.get_many(old).values() if one.metadata.superseded_by is None] == [
            *memory.store.get_many(old[20:]).values()
        ]


def test_a_memory_whose_replacement_was_archived_or_has_expired_is_marked_everywhere_and_can_be_replaced_again(
    place: Path | str, clock: Clock
) -> None:
    with Memory.open(place, clock=clock) as memory:
        for number, gone in enumerate(("archived", "expired")):
            subject = ("ledger", "archive")[number]
            old = memory.remember(f"The {subject} deploys on Thursdays.").chunk_ids[0]
            ttl = "1h" if gone == "expired" else None
            new = memory.remember(f"The {subject} deploys on Mondays.", replaces=old, ttl=ttl).chunk_ids[0]
            if gone == "archived":
                memory.delete(new)
            clock.advance(hours=2)
            result = memory.recall(f"When does the {subject} deploy?")
            assert result.outcome == "closest only" and "Thursdays" in str(result.suggestion)
            assert result.sources[0].superseded_by == new and f"out of date: {new} replaced it" in str(result)

            third = memory.remember(f"The {subject} deploys on Fridays.", replaces=old).chunk_ids[0]
            about = present(memory.store.get_chunk(old, track=False)).metadata
            assert about.superseded_by == third and not check(memory.store)
            assert "Fridays" in str(memory.recall(f"When does the {subject} deploy?").content)
            if gone == "archived":
                memory.restore(new)
                assert not list(memory.store.get_many([new])[new].replaces) and sound(memory)
                memory.delete(new)
            memory.undo()
            memory.undo(third)
            assert not check(memory.store)


def test_what_is_released_from_quarantine_replaces_again_what_nothing_else_replaced(
    place: Path | str,
) -> None:
    with Memory.open(place) as memory:
        olds = [memory.store.create_chunk(f"Lamp {number} is red.").id for number in range(2)]
        new = memory.remember("The lamps are grey.", replaces=olds).chunk_ids[0]
        memory.quarantine(new, "a doubt")
        other = memory.remember("Lamp 1 is blue.", replaces=olds[1]).chunk_ids[0]
        memory.release(new)
        now = memory.store.get_many(olds)
        assert [now[one].metadata.superseded_by for one in olds] == [new, other] and sound(memory)


def test_a_memory_whose_validity_is_over_is_marked_and_no_answer_about_the_present(
    place: Path | str, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with Memory.open(place, clock=clock) as memory:
        chunk = memory.store.create_chunk(
            "Ann lives in Porto.", type="preference", occurred_at=JANUARY, valid_to="2026-02-01"
        )
        [hit] = memory.search("Where does Ann live?")
        assert hit.ended_at == "2026-02-01T00:00:00.000000Z" and "[out of date since 2026-02-01]" in str(hit)
        result = memory.recall("Where does Ann live?")
        assert result.outcome == "closest only" and "Porto" in str(result.suggestion)
        assert "out of date since 2026-02-01" in str(result)
        assert not memory.context("Where does Ann live?").chunk_ids
        assert memory.recall("Where does Ann live?", as_of="2026-01-20").content == "Porto"
        assert [hit.ended_at for hit in memory.search("Ann lives", as_of="2026-01-20")] == [None]
        program = 'print(search("Ann lives")[0]["ended_at"], passages("Ann lives")[0]["ended_at"])'
        with memory.recall_session("Where does Ann live?") as session:
            assert "out of date since 2026-02-01" in session.opening
            assert session.execute(program).text.count("2026-02-01") == 2
        assert memory.get(chunk.id) is not None
    for command in (["list"], ["search", "Ann"], ["recall", "Where does Ann live?"]):
        assert main([*command, "--brain", str(place)]) == 0
        assert "out of date" in capsys.readouterr().out
