"""search, show, list, tags, conversations, namespaces, links, history, stats."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from rlm_mem import Memory
from rlm_mem.store.core import files
from rlm_mem.text.tokens import count_tokens

from .conftest import Run

Notes = dict[str, str]


def test_list_shows_every_chunk_newest_first(run: Run, notes: Notes) -> None:
    ran = run("list")
    assert ran.code == 0
    places = [ran.out.index(notes[name].rpartition("-")[2]) for name in ("cake", "tea", "reason", "choice")]
    assert places == sorted(places)


def test_list_leaves_room_for_the_contents_and_its_ids_are_taken_by_every_command(
    run: Run, tmp_path: Path
) -> None:
    """Ids of imported memories are long: in 80 columns they would leave two letters of each content."""
    export = tmp_path / "mem0.json"
    export.write_text(
        json.dumps(
            [
                {
                    "id": f"{start}-1fa5-4888-9699-c43ca1dd8351",
                    "user_id": "ann",
                    "memory": f"Prefers the {start} train.",
                }
                for start in ("a190dfe7", "bccaaf48")
            ]
        )
    )
    assert run("import", str(export)).code == 0
    listed = run("list").out
    shown = next(line.split()[0] for line in listed.splitlines() if "Prefers the a190dfe7 train." in line)
    assert "Prefers the a190dfe7 train." in run("show", shown).out


def test_list_oldest_turns_the_order_round(run: Run, notes: Notes) -> None:
    ran = run("list", "--oldest", "--json")
    assert [chunk["id"] for chunk in ran.json] == [
        notes[name] for name in ("choice", "reason", "tea", "cake")
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--tag", "database"], {"choice", "reason"}),
        (["--tag", "database", "--tag", "security"], {"reason"}),
        (["--any-tag", "security", "--any-tag", "people"], {"reason", "tea", "cake"}),
        (["--type", "pattern"], {"cake"}),
        (["--conversation", "kitchen"], {"tea", "cake"}),
        (["-c", "kitchen", "--since", "2026-04-02"], {"cake"}),
        (["--until", "2026-03-02"], {"choice", "reason"}),
        (["--tag", "nothing"], set()),
    ],
)
def test_list_filters(run: Run, notes: Notes, options: list[str], expected: set[str]) -> None:
    ran = run("list", "--json", *options)
    assert {chunk["id"] for chunk in ran.json} == {notes[name] for name in expected}


@pytest.mark.parametrize("width", ["100", "50"])
def test_list_marks_what_a_newer_memory_replaced(
    run: Run, notes: Notes, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    assert "out of date" not in run("list").out
    assert run("chunk", "supersede", notes["tea"], notes["cake"]).code == 0
    assert "out of date: Ana" in run("list").out


def test_list_pages_through_the_chunks(run: Run, notes: Notes) -> None:
    pages = [run("list", "--json", "--limit", "3", "--offset", str(start)).json for start in (0, 3)]
    assert [len(page) for page in pages] == [3, 1]
    assert {chunk["id"] for page in pages for chunk in page} == set(notes.values())


def test_list_refuses_an_invalid_date(run: Run, notes: Notes) -> None:
    ran = run("list", "--since", "soon")
    assert (ran.code, ran.out) == (2, "")
    assert "soon" in ran.err


def test_show_prints_content_metadata_and_links(run: Run, notes: Notes, memory: Memory) -> None:
    memory.link(notes["reason"], notes["choice"], "supports", 0.8, "the reason that was given")
    shown = run("show", notes["reason"]).out
    for part in (
        "row-level security",
        "fact",
        "database, security",
        "supports",
        "strong",
        "the reason that was given",
    ):
        assert part in shown


def test_show_raw_prints_the_content_alone(run: Run, notes: Notes) -> None:
    assert run("show", "--raw", notes["tea"]).out == "Ana drinks green tea in the morning.\n"


def test_show_json_is_the_file_of_the_chunk(run: Run, notes: Notes) -> None:
    shown = run("show", "--json", notes["tea"]).json
    assert shown["schema"] == "2.0"
    assert shown["metadata"]["occurred_at"].startswith("2026-04-01T08:00:00")


def test_show_several_as_json_is_a_list(run: Run, notes: Notes) -> None:
    assert [chunk["id"] for chunk in run("show", "--json", notes["tea"], notes["cake"]).json] == [
        notes["tea"],
        notes["cake"],
    ]


def test_a_chunk_that_is_not_there_is_a_failure_with_a_hint(run: Run, notes: Notes) -> None:
    ran = run("show", "chunk-2026-01-01-00000000")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines() == [
        "rlm-mem: there is no chunk chunk-2026-01-01-00000000",
        "hint: rlm-mem list, or rlm-mem list --archived, shows the ids",
    ]


def test_an_invalid_id_is_bad_input(run: Run, notes: Notes) -> None:
    assert run("show", "../../etc/passwd").code == 2


def test_search_finds_by_words_and_shows_the_matching_text(run: Run, notes: Notes) -> None:
    ran = run("search", "what", "tea", "does", "Ana", "drink")
    assert ran.out.index(notes["tea"]) < ran.out.index("green tea")


def test_search_shows_in_a_narrow_terminal_that_a_hit_is_untrusted(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run("remember", "The lamp is green.", "--origin", "web", "--conversation", "a long name of a talk " * 4)
    assert "untrusted (web)" in run("search", "lamp").out.splitlines()[0]


def test_search_json_holds_scores_in_order(run: Run, notes: Notes) -> None:
    hits = run("search", "row-level security of the database", "--json").json
    assert hits[0]["chunk_id"] == notes["reason"]
    assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)


def test_a_score_that_rounds_to_zero_has_no_sign(
    run: Run, notes: Notes, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    hit = replace(memory.search("green tea", limit=1)[0], score=-0.001)
    assert "(score 0.00)" in str(hit)
    monkeypatch.setattr(Memory, "search", lambda *_, **__: [hit])
    assert run("search", "green tea").out.startswith("  0.00  ")


def test_search_explain_names_the_parts_of_a_score(run: Run, notes: Notes) -> None:
    hits = run("search", "green tea", "--explain", "--json").json
    assert hits[0]["parts"]


def test_search_filters(run: Run, notes: Notes) -> None:
    found = run("search", "Ana PostgreSQL tea", "--tag", "people", "--json").json
    assert notes["choice"] not in {hit["chunk_id"] for hit in found}


def test_search_prints_no_more_text_than_was_asked_for(run: Run, notes: Notes) -> None:
    def tokens(*arguments: str) -> int:
        hits = run("search", "Ana PostgreSQL tea", "--neighbours", "1", "--json", *arguments).json
        texts = [
            text for hit in hits for text in (hit["snippet"], *(one["text"] for one in hit["neighbours"]))
        ]
        return sum(map(count_tokens, texts))

    assert 0 < tokens("--max-tokens", "9") <= 9 < tokens()
    assert run("search", "zeppelin", "--max-tokens", "9").out == "nothing found\n"


def test_search_refuses_an_unknown_unit(run: Run, notes: Notes) -> None:
    ran = run("search", "tea", "--by", "page")
    assert ran.code == 2
    assert "not one of 'chunk', 'segment', 'conversation'" in ran.err


def test_an_empty_result_is_not_a_failure(run: Run, notes: Notes) -> None:
    ran = run("search", "xylophone")
    assert (ran.code, ran.out.strip()) == (0, "nothing found")


def test_an_empty_memory_says_how_to_begin(run: Run, memory: Memory) -> None:
    for asked in (["list"], ["search", "Ana"], ["recall", "What does Ana like?"]):
        assert "nothing is remembered yet: rlm-mem remember TEXT" in run(*asked).out
    memory.remember("Ben likes tea.")
    for asked in (["list", "--tag", "x"], ["search", "zebra"], ["recall", "What is a zebra?"]):
        assert "remembered yet" not in run(*asked).out


def test_a_later_note_is_quoted_below_the_memory_itself(run: Run, memory: Memory) -> None:
    said = "the seat lock timeout is 90 seconds, users complained it's too short"
    memory.remember(said, occurred_at="2026-10-20")
    memory.remember("raised seat lock timeout to 180 seconds", occurred_at="2026-10-21")
    lines = [line.strip() for line in run("search", "seat lock 90").out.splitlines()]
    own = lines.index(said)
    assert lines[own + 1].startswith("a later note on the same subject: ")


@pytest.mark.parametrize("command", [("list",), ("search", "tea")])
def test_an_empty_namespace_names_those_with_memories(
    run: Run, notes: Notes, command: tuple[str, ...]
) -> None:
    said = run(*command, "--namespace", "defualt").out
    assert f"the namespace defualt is empty; memories are in: default ({len(notes)})" in said
    assert run(*command, "--namespace", "defualt", "--json").json == []
    assert "memories are in" not in run("list", "--tag", "nowhere").out


def test_a_day_that_does_not_exist_is_named_with_its_option(run: Run, notes: Notes) -> None:
    ran = run("search", "tea", "--since", "2026-13-01")
    assert (ran.code, "--since '2026-13-01' is not a date" in ran.err) == (2, True)


def test_a_file_in_place_of_a_brain_is_reported_as_such(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    for command in ("list", "remember"):
        ran = run(command, *["x"][: command == "remember"], "--brain", str(tmp_path / "notes.txt"))
        assert (ran.code, "is a file: a memory is a folder" in ran.err) == (2, True)


def test_an_empty_query_is_bad_input(run: Run, notes: Notes) -> None:
    assert run("search", " ").code == 2


def test_filters_that_exclude_everything_are_named_as_the_reason(run: Run, notes: Notes) -> None:
    assert run("search", "tea", "--tag", "nosuch").out == "nothing found with these filters\n"
    assert run("search", "", "--tag", "nosuch").out == "nothing found with these filters\n"
    assert run("search", "zeppelin", "--tag", "people").out == "nothing found\n"
    assert run("list", "--tag", "nosuch").out == "none of 4 chunks match\n"
    assert run("list", "--archived").out == "no chunks\n"
    assert run("trajectories", "list", "--operation", "nosuch").code == 2


def test_tags_are_counted(run: Run, notes: Notes) -> None:
    assert run("tags", "--json").json == [
        {"tag": "database", "chunks": 2},
        {"tag": "people", "chunks": 2},
        {"tag": "security", "chunks": 1},
    ]
    assert "security" in run("tags").out


def test_conversations_show_their_span(run: Run, notes: Notes) -> None:
    found = {row["id"]: row for row in run("conversations", "--json").json}
    assert found["kitchen"]["chunks"] == 2
    assert (found["kitchen"]["first_at"], found["kitchen"]["last_at"]) == (
        "2026-04-01T08:00:00Z",
        "2026-04-03T15:00:00Z",
    )
    assert "2026-04-01" in run("conversations").out


def test_namespaces_are_listed(run: Run, notes: Notes) -> None:
    run("remember", "Another agent's secret.", "--namespace", "agent/other")
    assert {row["namespace"] for row in run("namespaces", "--json").json} == {"default", "agent/other"}


def test_a_namespace_sees_its_own_chunks_only(run: Run, notes: Notes) -> None:
    assert run("list", "--json", "--namespace", "agent/other").json == []
    assert run("show", notes["tea"], "--namespace", "agent/other").code == 1


def test_links_are_shown_from_both_ends(run: Run, notes: Notes, memory: Memory) -> None:
    memory.link(notes["reason"], notes["choice"], "supports", 0.8, "why")
    assert run("links", notes["reason"], "--json").json[0]["direction"] == "out"
    assert run("links", notes["choice"], "--json").json[0]["direction"] == "in"
    assert run("links", notes["choice"], "--direction", "out", "--json").json == []
    shown = run("links", notes["choice"]).out
    assert "supports" in shown and "row-level security" in shown, "what is linked is shown, not only its id"


def test_links_of_a_chunk_that_is_not_there_are_a_failure(run: Run, notes: Notes) -> None:
    assert run("links", "chunk-2026-01-01-00000000").code == 1


def test_history_says_what_each_version_changed(run: Run, notes: Notes) -> None:
    run("update", notes["tea"], "--content", "Ana drinks white tea.", "--confidence", "0.9")
    run("update", notes["tea"], "--tag", "drinks")
    versions = run("history", notes["tea"], "--json").json
    assert [version["revision"] for version in versions] == [1, 2, 3]
    shown = run("history", notes["tea"]).out
    assert "content, confidence" in shown
    assert "* 3" in shown


def test_history_shows_which_value_was_in_force_when(run: Run) -> None:
    days = ("2026-01-05", "2026-02-05", "2026-03-05")
    texts = (
        "The standup is at 9:30.",
        "The standup moved to 10:00.",
        "The standup moved from 10:00 to 10:15.",
    )
    ids = [
        run("remember", text, "--at", on, "--json").json["chunk_ids"][0]
        for on, text in zip(days, texts, strict=True)
    ]
    lines = [line.split() for line in run("history", ids[1]).out.splitlines()]
    assert ["*", "2", "validity"] in [
        [*line[:2], line[4]] for line in lines if line[:1] == ["*"] and len(line[1]) == 1
    ]
    shown = [[part for part in line if part != "*"][:3] for line in lines if any(one in line for one in ids)]
    assert shown == [[ids[0], *days[:2]], [ids[1], *days[1:]], [ids[2], days[2], "–"]]


def test_an_unreadable_chunk_has_its_former_versions_and_is_not_said_to_be_missing(
    run: Run, notes: Notes, brain: Path | str
) -> None:
    tea, cake = notes["tea"], notes["cake"]
    run("chunk", "update", tea, "--content", "Ana drinks white tea.")
    for one in (tea, cake):
        if isinstance(brain, Path):
            (file,) = (brain / "memory" / "chunks").rglob(f"{one}.json")
            file.write_text("{")
        else:
            with psycopg.connect(brain) as connection:
                connection.execute(
                    "UPDATE rlm_mem.bodies SET body = '{' WHERE doc = (SELECT doc FROM rlm_mem.chunks WHERE id = %s)",
                    (one,),
                )
    ran = run("chunk", "history", tea)
    assert ran.code == 0 and "green tea" in ran.out and "* " not in ran.out
    assert f"{tea} cannot be read" in ran.err
    for command in (["chunk", "history"], ["show"], ["undo"]):
        for given in (cake, cake[-8:]):
            ran = run(*command, given)
            assert ran.code == 1 and f"rlm-mem: {cake} cannot be read" in ran.err, command


def test_stats_count(run: Run, notes: Notes) -> None:
    figures = run("stats", "--json").json
    assert figures["chunk_count"] == 4
    assert figures["conversations"] == 2
    assert "4" in run("stats").out


@pytest.mark.parametrize("command", [("search", "tea"), ("list",)])
def test_an_unknown_type_is_not_silently_that_of_nothing(
    run: Run, notes: Notes, command: tuple[str, ...]
) -> None:
    ran = run(*command, "--type", "facts")
    assert ran.code == 2
    assert "no memory has the type 'facts': use one of preference, fact" in " ".join(ran.err.split())


def test_search_shows_what_replaced_a_hit_and_the_memories_beside_it(
    run: Run, notes: Notes, memory: Memory
) -> None:
    memory.supersede(notes["choice"], notes["reason"])
    lines = run("search", "row-level security", "--neighbours", "1").out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.strip().startswith("Ben: Because"))
    assert "We chose PostgreSQL" in lines[at - 1] and f"replaces {notes['choice']}" in lines[at - 2]
    lines = run("search", "chose PostgreSQL ledger", "--neighbours", "1").out.splitlines()
    at = next(number for number, line in enumerate(lines) if f"out of date: {notes['reason']}" in line)
    assert "We chose PostgreSQL" in lines[at + 1] and "row-level security" in lines[at + 2]


def test_list_says_that_it_ended_at_its_limit(run: Run, notes: Notes) -> None:
    assert "the first 2;" in run("list", "--limit", "2").out
    assert "the first" not in run("list").out


def test_a_chunk_is_written_as_markdown_and_no_file_is_replaced_unasked(
    run: Run, notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    target = tmp_path / "tea.md"
    assert run("export", str(target), "--chunk", notes["tea"]).code == 0
    assert target.read_text(encoding="utf-8") == run("export", "--chunk", notes["tea"]).out
    target.write_text("mine")
    refused = run("export", str(target), "--chunk", notes["tea"])
    assert refused.code == 2 and "--overwrite" in refused.err and target.read_text() == "mine"
    with monkeypatch.context() as patch:
        patch.setattr(files, "publish", full)
        failed = run("export", str(target), "--chunk", notes["tea"], "--overwrite")
    assert failed.code == 1 and "tea.md" in failed.err and target.read_text() == "mine"
    assert run("export", str(target), "--chunk", notes["tea"], "--overwrite").code == 0
    assert "green tea" in target.read_text(encoding="utf-8")
    (tmp_path / "link.md").symlink_to(target)
    target.write_text("mine")
    assert run("export", str(tmp_path / "link.md"), "--chunk", notes["tea"], "--overwrite").code == 0
    assert "green tea" in target.read_text(encoding="utf-8") and (tmp_path / "link.md").is_symlink()
    os.mkfifo(tmp_path / "pipe")
    refused = run("export", str(tmp_path / "pipe"), "--chunk", notes["tea"], "--overwrite")
    assert refused.code == 2 and "not a regular file" in refused.err
    assert run("export", str(tmp_path), "--chunk", notes["cake"], "--json").json["chunk_id"] == notes["cake"]
    assert "cake" in (tmp_path / f"{notes['cake']}.md").read_text(encoding="utf-8")
