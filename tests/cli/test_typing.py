"""Input in short forms: ids, days in words, settings."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from rlm_mem.cli.ids import known_id
from rlm_mem.cli.periods import day_of
from rlm_mem.cli.settings import toml_with_value
from rlm_mem.errors import InputError, InvalidConfig, InvalidQuery, NotFoundError
from rlm_mem.integrations.records import Records
from rlm_mem.memory import Memory

from .conftest import Run

IDS = [
    "chunk-2026-03-02-a1b2c3d4",
    "chunk-2026-03-02-a1ffffff",
    "chunk-2026-04-01-77001122",
    "chunk-own_name",
]
TODAY = date(2026, 11, 18)  # a Wednesday


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("chunk-2026-04", IDS[2]),
        ("2026-04", IDS[2]),
        ("a1b", IDS[0]),
        ("77", IDS[2]),
        ("own", IDS[3]),
        (IDS[1], IDS[1]),
        ("chunk-2026-03-02-a1f", IDS[1]),
    ],
)
def test_a_short_id_names_the_one_that_it_fits(given: str, meant: str) -> None:
    assert known_id(given, IDS, "chunk", "hint") == meant


@pytest.mark.parametrize("given", ["chunk-2026-03", "a1", "2026", "chunk-", "c"])
def test_an_ambiguous_short_id_is_one_error_with_the_candidates(given: str) -> None:
    with pytest.raises(InputError, match=r"matches \d ids: .*chunk-2026-03-02-a1ffffff"):
        known_id(given, IDS, "chunk", "hint")


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ("b2", NotFoundError),
        ("unk-", NotFoundError),
        (IDS[0] + "x", NotFoundError),
        ("", InputError),
        ("*", InputError),
    ],
)
def test_an_unknown_prefix_is_not_found(given: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        known_id(given, IDS, "chunk", "hint")


def test_short_ids_wherever_an_id_is_taken(run: Run, notes: dict[str, str], tmp_path: Path) -> None:
    short = {name: chunk_id.rpartition("-")[2] for name, chunk_id in notes.items()}
    assert run("show", short["tea"], "--json").json["id"] == notes["tea"]
    assert (
        run("link", "add", short["choice"], short["reason"], "supports", "--json").json["target_id"]
        == notes["reason"]
    )
    assert run("link", "list", short["choice"], "--json").json[0]["chunk_id"] == notes["reason"]
    assert run("link", "remove", short["choice"], short["reason"]).code == 0
    assert run("chunk", "update", short["tea"], "--tag", "new", "--json").json["id"] == notes["tea"]
    assert run("undo", short["tea"]).code == 0
    assert len(run("chunk", "history", short["tea"], "--json").json) == 3
    assert notes["tea"] in run("export", "--chunk", short["tea"]).out
    assert run("store", "events", "--chunk", short["tea"], "--json").json[0]["chunk_id"] == notes["tea"]
    assert run("delete", short["cake"], "--json").json == {"deleted": [notes["cake"]], "not_found": []}
    assert run("chunk", "restore", short["cake"], "--json").json["restored"] == [notes["cake"]]
    ambiguous = run("delete", "chunk-")
    assert (ambiguous.code, ambiguous.out) == (2, "")
    assert all(chunk_id in ambiguous.err for chunk_id in notes.values())
    assert len(run("list", "--json").json) == 4, "an ambiguous id changes nothing"
    run("recall", "What does Ana drink?")
    trajectory = run("trajectories", "show", "last", "--json").json["id"]
    assert run("trajectories", "show", trajectory.rpartition("-")[2], "--json").json["id"] == trajectory


def test_the_long_id_of_a_record_is_listed_by_its_beginning_which_finds_it(run: Run, brain: Path) -> None:
    with Memory.open(brain) as memory:
        Records(memory, "langgraph").put(("people",), "bees", {"text": "The bees live in Porto."})
        (chunk_id,) = memory.list_chunks()
    short = run("list").out.splitlines()[-1].split()[0]
    assert len(short) == 8 < len(chunk_id.rpartition("-")[2])
    assert chunk_id in run("show", short).out


def test_wrong_uses_name_what_would_be_right(run: Run, notes: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("The gate is red.")
    ran = run("remember", "--folder", str(tmp_path / "note.md"))
    assert (ran.code, "is a file, not a folder" in ran.err, "remember --file" in ran.err) == (2, True, True)
    assert "rlm-mem project import --help shows how" in run("project", "import", "--watch=maybe").err
    assert "rlm-mem recall --help shows how" in run("recall", "When?", "--json=no").err
    assert "'abc' is not a whole number." in run("search", "tea", "--limit", "abc").err
    assert "'70%' is not a number." in run("remember", "tea", "--confidence", "70%").err
    assert "rlm-mem remember --help shows how" in run("--namespace", "x", "remember", "--folder").err
    assert "ttl must be a number with s, m, h, d or w" in run("remember", "tea", "--ttl", "3600").err
    address = run("import", "https://example.org/notes.zip")
    assert (
        address.code,
        "https://example.org/notes.zip is an address" in address.err,
        "download it" in address.err,
    ) == (2, True, True)
    refused = run("chunk", "supersede", notes["tea"], "Ana drinks mate now.").err
    assert "NEW is the id of a chunk, not a text" in refused
    assert f'rlm-mem remember "TEXT" --replaces {notes["tea"]}' in refused
    ran = run("undo", f"zzz{len(notes)}")
    assert (ran.code, "there is no chunk or change zzz4" in ran.err) == (1, True)


@pytest.mark.parametrize(
    ("given", "example"),
    [
        (("link", "add", "a1b2c3d4", "e5f6a7b8"), "rlm-mem link add a1b2c3d4 e5f6a7b8 supports"),
        (
            ("chunk", "update", "a1b2c3d4", "The gate is red."),
            'rlm-mem chunk update a1b2c3d4 --content "The gate',
        ),
        (
            ("store", "restore", "brain.tar.gz", "restored"),
            "rlm-mem --brain restored store restore brain.tar.gz",
        ),
    ],
)
def test_too_few_or_too_many_arguments_are_answered_with_an_example(
    run: Run, given: tuple[str, ...], example: str
) -> None:
    ran = run(*given)
    assert (ran.code, f"shows how; for example, {example}" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("said", "since", "until"),
    [
        ("2026-03-02", "2026-03-02", "2026-03-02"),
        ("2026-03-02T10:00:00Z", "2026-03-02T10:00:00Z", "2026-03-02T10:00:00Z"),
        ("2026-03", "2026-03-01", "2026-03-31"),
        ("2025", "2025-01-01", "2025-12-31"),
        ("today", "2026-11-18", "2026-11-18"),
        ("Yesterday", "2026-11-17", "2026-11-17"),
        ("3 days ago", "2026-11-15", "2026-11-15"),
        ("two weeks  ago", "2026-11-04", "2026-11-04"),
        ("a month ago", "2026-10-18", "2026-10-18"),
        ("last week", "2026-11-09", "2026-11-15"),
        ("last 2 weeks", "2026-11-04", "2026-11-18"),
        ("monday", "2026-11-16", "2026-11-16"),
        ("last friday", "2026-11-13", "2026-11-13"),
        ("12 May 2026", "2026-05-12", "2026-05-12"),
        ("may", "2026-05-01", "2026-05-31"),
    ],
)
def test_a_day_in_words(said: str, since: str, until: str) -> None:
    assert (day_of(said, "--since", TODAY), day_of(said, "--until", TODAY)) == (since, until)


@pytest.mark.parametrize(
    "said", ["", "soon", "2026-02-30x", "yesterday or today", "31 February 2026", "1 " * 9999]
)
def test_an_invalid_day_is_bad_input(said: str) -> None:
    with pytest.raises(InvalidQuery, match="--since"):
        day_of(said, "--since", TODAY)


def test_periods_are_taken_where_dates_are(run: Run, notes: dict[str, str]) -> None:
    two_days_ago = (datetime.now(UTC) - timedelta(days=2)).strftime("%Y-%m-%d")
    new = run("remember", "Cleo plays chess.", "--at", two_days_ago, "--json").json["chunk_ids"]
    for words in (["list"], ["search", "Cleo Ana chess tea"]):
        found = run(*words, "--since", "3 days ago", "--json").json
        assert [one.get("id", one.get("chunk_id")) for one in found] == new
    assert len(run("list", "--until", "April 2026", "--json").json) == 4
    assert run("list", "--since", "whenever").code == 2
    assert run("trajectories", "costs", "--since", "last month").code == 0


CONFIG = """\
# of this team
[recall]  # budgets
# max_iterations = 10
max_seconds = 30.0   # slow machine # really

[llm]
model = "offline#1" # a sign in a string
"""


@pytest.mark.parametrize(
    ("section", "name", "value", "line"),
    [
        ("recall", "max_iterations", 6, "# max_iterations = 10\nmax_iterations = 6\n"),
        ("recall", "max_seconds", 5.5, "max_seconds = 5.5  # slow machine # really\n"),
        ("recall", "max_seconds", None, "# max_iterations = 10\n\n[llm]"),
        ("recall", "max_depth", 2, "[recall]  # budgets\nmax_depth = 2\n"),
        ("llm", "model", 'a "b" \\ # c', 'model = "a \\"b\\" \\\\ # c"  # a sign in a string\n'),
        ("search", "language", "german", '\n\n[search]\nlanguage = "german"\n'),
        ("continuum", "task_types", ["a", "b"], '[continuum]\ntask_types = ["a", "b"]\n'),
        ("search", "language", None, CONFIG),
    ],
)
def test_one_line_of_a_config_changes(section: str, name: str, value: object, line: str) -> None:
    after = toml_with_value(CONFIG, section, name, value, where="config.toml")
    assert line in after
    assert tomllib.loads(after).get(section, {}).get(name) == value
    removed = [one for one in CONFIG.splitlines() if one not in after.splitlines()]
    assert len(removed) <= 1, "every other line stays"
    assert toml_with_value(after.replace("\n", "\r\n"), section, name, value, where="x").count(
        "\r\n"
    ) == after.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "[recall",
        "recall.max_depth = 1\n",
        "[recall]\nmax_depth = [\n1]\n",
        "recall = 3\n",
        "recall = {max_depth = 1}\n",
    ],
)
def test_a_config_that_cannot_be_changed_by_lines_is_refused(text: str) -> None:
    with pytest.raises(InvalidConfig):
        toml_with_value(text, "recall", "max_depth", 2, where="config.toml")


def test_settings_are_listed_read_written_and_taken_out(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain = tmp_path / "settings"
    monkeypatch.setenv("RLM_MEM_BRAIN", str(brain))
    assert run("config", "set", "recall.max_iterations", "6").code == 1, "no brain yet"
    run("store", "init")
    before = (brain / "config.toml").read_text(encoding="utf-8")
    done = run("config", "set", "recall.max_iterations", "6", "--json").json
    assert (done["value"], done["changed"]) == (6, True)
    assert run("config", "get", "recall.max_iterations").out == "6\n"
    assert run("config", "get", "recall.max_iterations", "--json").json["from"] == "config.toml"
    assert run("config", "set", "secrets.pii", "true").code == 0
    assert run("config", "set", "continuum.task_types", "cooking, chess").code == 0
    assert run("config", "list", "continuum", "--json").json["settings"]["continuum"]["task_types"] == [
        "cooking",
        "chess",
    ]
    written = (brain / "config.toml").read_text(encoding="utf-8")
    assert set(before.splitlines()) <= set(written.splitlines()), "comments stay"
    for wrong in (
        ("recall.max_iterations", "many"), ("recall.max_iterations", "0"), ("recall.max_iterations", "1000"),
        ("recall.nosuch", "1"), ("nosuch.x", "1"), ("recall", "1"), ("log.level", "loud"), ("types.chunk", "x"),
        ("llm.model", "cli:rm"), ("llm.base_url", "https://elsewhere.example"), ("llm.base_url", "http://["),
        ("llm.model", "banana"), ("llm.sub_model", "banana"), ("search.language", "klingon"),
        ("store.namespace", "two words"), ("ingest.max_tokens", "99"), ("ingest.overlap_tokens", "300"),
    ):  # fmt: skip
        assert run("config", "set", *wrong).code == 2, wrong
    assert (brain / "config.toml").read_text(encoding="utf-8") == written, "what is refused is not written"
    assert run("config", "unset", "search.language").out.startswith("search.language was not set there")
    monkeypatch.setenv("RLM_MEM_RECALL_MAX_ITERATIONS", "7")
    assert "environment" in run("config", "set", "recall.max_iterations", "5").err
    monkeypatch.delenv("RLM_MEM_RECALL_MAX_ITERATIONS")
    shown = run("config", "list").out
    assert re.search(r"secrets\.pii +true +config", shown)
    assert re.search(r"ingest\.folders +\[\] +default", shown), "as the file has it"
    for setting in ("recall.max_iterations", "secrets.pii", "continuum.task_types"):
        assert run("config", "unset", setting).code == 0
    assert (brain / "config.toml").read_text(encoding="utf-8") == before
    assert run("config", "unset", "recall.nosuch").code == 2
    monkeypatch.setenv("RLM_MEM_BRAIN", "postgresql://localhost/brain")
    refused = run("config", "set", "recall.max_iterations", "6")
    assert refused.code == 2
    assert "RLM_MEM_RECALL_MAX_ITERATIONS" in refused.err


def test_a_settings_file_keeps_its_permissions_and_the_link_to_it(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    brain, dotfile = tmp_path / "settings", tmp_path / "dotfiles.toml"
    monkeypatch.setenv("RLM_MEM_BRAIN", str(brain))
    run("store", "init")
    (brain / "config.toml").rename(dotfile)
    (brain / "config.toml").symlink_to(dotfile)
    dotfile.chmod(0o660)
    assert run("config", "set", "recall.max_iterations", "6").code == 0
    assert (brain / "config.toml").is_symlink()
    assert "max_iterations = 6" in dotfile.read_text(encoding="utf-8")
    assert dotfile.stat().st_mode & 0o777 == 0o660


@pytest.mark.parametrize("name", ["", " ", "../x", "a/../b", "*", "./", "dеfault"])
def test_a_name_that_is_none_is_refused_and_not_taken_for_the_default_namespace(run: Run, name: str) -> None:
    """As from a variable of the shell that is not set: ``--namespace "$TEAM"``."""
    assert run("remember", "The kettle is red.").code == 0
    for command in (["list"], ["remember", "The kettle is blue."], ["mcp"]):
        for arguments in (["--namespace", name, *command], [*command, "--namespace", name]):
            refused = run(*arguments)
            assert refused.code == 2
            assert "is not a namespace" in refused.err
    assert run("list", "--brain", "").code == 2
    assert "blue" not in run("list").out


def test_an_empty_path_is_refused_and_not_taken_for_the_working_folder(run: Run) -> None:
    Path("note.md").write_text("The kettle is red.\n", encoding="utf-8")
    for command in (
        *(["remember", "--folder"], ["remember", "--file"], ["import"], ["tier", "skills"]),
        *(["token", "list", "--tokens"], ["mcp", "--project", "--folder"]),
    ):
        refused = run(*command, "")
        assert refused.code == 2
        assert "the path is empty" in refused.err
    note = run("remember", "The kettle is blue.", "--json").json["chunk_ids"][0]
    for command in (["store", "init"], ["export", "--chunk", note]):
        refused = run(*command, "")
        assert refused.code == 2, command
    assert "<path>" in run("import", "--help").out
    assert run("remember", "--folder", ".").code == 0
