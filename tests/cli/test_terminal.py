"""What reaches the terminal: widths, colours, control characters, errors, JSON."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from rlm_mem import Memory, __version__
from rlm_mem.cli import main
from rlm_mem.cli.terminal import amount, money, one_line, plain, print_json, safe

from .conftest import Run

DIRECTIONS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
Notes = dict[str, str]
LOOKS = [
    ["list"],
    ["search", "Ana PostgreSQL ledger tea", "--explain"],
    ["tags"],
    ["conversations"],
    ["stats"],
    ["events"],
    ["config", "show"],
    ["recall", "What does Ana drink in the morning?", "--explain"],
    ["reason", "Why PostgreSQL for the ledger?"],
    ["trajectories", "list"],
    ["trajectories", "show"],
    ["costs"],
    ["--help"],
    ["recall", "--help"],
]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(
    run: Run, notes: Notes, memory: Memory, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    memory.store.create_chunk(
        "A word that is long: " + "x" * 300, tags=["a" * 90, "b" * 90], conversation_id="c" * 150
    )
    memory.link(notes["reason"], notes["choice"], "supports", 0.8, "because " * 30)
    run("recall", "Why did we choose PostgreSQL, and what does Ana think of it in the end? " * 3)
    monkeypatch.setenv("COLUMNS", str(width))
    for look in [*LOOKS, ["show", notes["reason"]], ["links", notes["reason"]], ["history", notes["reason"]]]:
        wide = [line for line in run(*look).out.splitlines() if len(line.rstrip()) > width]
        assert wide == [], f"rlm-mem {' '.join(look)}"


def test_what_goes_to_a_file_or_another_program_is_neither_wrapped_nor_cut(
    run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "The pump in the cellar of the old mill " + "which hums " * 12 + "is serviced by Ines."
    memory.store.create_chunk(said, tags=["pump"], conversation_id="mill")
    monkeypatch.delenv("COLUMNS")
    for look in (["list"], ["search", "pump"], ["recall", "Who services the pump?"]):
        lines = run(*look).out.splitlines()
        assert any(said in line for line in lines), f"rlm-mem {' '.join(look)}"
        assert max(map(len, lines)) < len(said) + 100
    assert max(map(len, run("recall", "Who services the pump?", "--explain").out.splitlines())) < 300


def test_lines_of_programs_and_their_output_do_not_end_in_spaces(run: Run, notes: Notes) -> None:
    question = "What does Ana drink in the morning?"
    for look in (["recall", question, "--explain"], ["trajectories", "show"]):
        lines = run(*look).out.splitlines()
        assert [line for line in lines if line != line.rstrip()] == [], f"rlm-mem {' '.join(look)}"


def test_lines_of_a_paragraph_do_not_end_in_spaces(
    run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.store.create_chunk(
        "The pump in the cellar hums, " * 9 + "and Ines services the pump.", tags=["pump"]
    )
    monkeypatch.setenv("COLUMNS", "80")
    for look in (["search", "pump"], ["recall", "Who services the pump?"]):
        lines = run(*look).out.splitlines()
        assert sum(line.startswith("      ") for line in lines) > 2, f"rlm-mem {' '.join(look)}"
        assert [line for line in lines if line.endswith(" ")] == []


def test_a_chunk_id_is_never_cut(run: Run, notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    for look in (["list"], ["search", "Ana"], ["links", notes["reason"]]):
        shown = re.findall(r"chunk-[\w-]+", run(*look).out)
        assert all(chunk_id in notes.values() for chunk_id in shown)


def test_no_control_character_is_printed(
    run: Run, memory: Memory, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every control character, every mark of direction and every separator of lines, as text and as JSON."""
    obeyed = [
        character
        for character in map(chr, range(0x110000))
        if unicodedata.category(character) in ("Cc", "Zl", "Zp")
        or unicodedata.bidirectional(character) in DIRECTIONS
        or (unicodedata.category(character) == "Cf" and 0x2060 < ord(character) < 0x2070)
        or character in "\u061c\u200e\u200f"
    ]
    assert len(obeyed) > 80
    everything = "a".join(obeyed)
    allowed = {"\n", "\t"}
    assert not (set(safe(everything)) & set(obeyed)) - allowed
    print_json({"text": everything, everything: [everything]})
    shown = capsys.readouterr().out
    assert not (set(shown) & set(obeyed)) - allowed
    assert json.loads(shown) == {"text": everything, everything: [everything]}
    stored = "herons " + "a".join(c for c in obeyed if c != "\0")
    chunk = memory.store.create_chunk(stored).id
    for command in (
        ["show", chunk, "--json"],
        ["search", "herons", "--json"],
        ["list", "--json"],
        ["show", chunk],
    ):
        printed = run(*command).out
        assert not (set(printed) & set(obeyed)) - allowed, command


def test_control_characters_of_a_memory_do_not_reach_the_terminal(run: Run, memory: Memory) -> None:
    nasty = "Red \x1b[31malert\x1b[0m, bell \x07, title \x1b]0;gotcha\x07, C1 \x9b31m, reversed \u202eabc"
    chunk = memory.store.create_chunk(
        f"{nasty}, [bold]markup[/bold]", tags=["evil\u202e"], conversation_id="c\u202e"
    )
    looks = [
        ["list"],
        ["show", chunk.id],
        ["show", "--raw", chunk.id],
        ["search", "alert"],
        ["tags"],
        ["recall", "red alert"],
    ]
    for look in [*looks, ["conversations"], ["trajectories", "show"], ["history", chunk.id]]:
        shown = run(*look).out
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown), (
            f"rlm-mem {' '.join(look)}"
        )
    assert "[bold]markup[/bold]" in run("show", chunk.id).out


def test_json_is_valid_whatever_the_memory_holds(run: Run, memory: Memory) -> None:
    chunk = memory.store.create_chunk('Quotes " and \x1b[31m and \\ and 日本語 and \U0001f980', tags=['"'])
    assert run("show", chunk.id, "--json").json["content"] == chunk.content


def on_a_terminal(arguments: list[str], **environment: str) -> str:
    """What a command writes to a real terminal."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "rlm_mem", *arguments],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", **environment},
    ) as process:
        os.close(follower)
        written = b""
        try:
            while block := os.read(leader, 65536):
                written += block
        except OSError:  # the other end is closed: that is how a terminal says that it is over
            pass
        process.wait(timeout=60)
    os.close(leader)
    return written.decode("utf-8")


def test_colours_are_for_terminals_only_and_not_with_no_color(run: Run, notes: Notes, memory: Memory) -> None:
    memory.close()
    colour = re.compile(r"\x1b\[[0-9;]*3[0-9]m")
    assert not colour.search(run("list").out)
    assert colour.search(on_a_terminal(["list"]))
    assert not colour.search(on_a_terminal(["list"], NO_COLOR="1"))


def test_a_progress_bar_shows_on_a_terminal_and_is_gone_afterwards(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text(
        "\n\n".join(f"{number}. Water under the bridge. " * 40 for number in range(60)), encoding="utf-8"
    )
    written = on_a_terminal(["remember", "--file", str(path)])
    assert "remembering" in written
    assert "━" in written
    assert "remembering" not in run("remember", "--file", str(path)).err


@pytest.mark.parametrize("before", [True, False])
def test_brain_and_namespace_may_be_given_before_or_after_the_command(
    run: Run, tmp_path: Path, before: bool
) -> None:
    where = ["--brain", str(tmp_path / "elsewhere"), "--namespace", "agent/a"]

    def placed(*command: str) -> list[str]:
        return [*where, *command] if before else [*command, *where]

    assert run(*placed("remember", "Here.")).code == 0
    assert run(*placed("stats", "--json")).json["namespace"] == "agent/a"
    assert (tmp_path / "elsewhere" / "memory").is_dir()


@pytest.mark.parametrize(
    "arguments",
    [["nosuch"], ["search"], ["list", "--nosuch"], ["list", "--limit", "many"], ["trajectories", "nosuch"]],
)
def test_a_command_line_that_is_not_understood_is_bad_input(run: Run, arguments: list[str]) -> None:
    ran = run(*arguments)
    assert (ran.code, ran.out) == (2, "")
    first, second = ran.err.splitlines()
    assert first.startswith("rlm-mem: ")
    assert "--help" in second


def test_an_invalid_namespace_is_bad_input(run: Run) -> None:
    assert run("remember", "x", "--namespace", "../other").code == 2


def test_an_unexpected_error_is_one_line_too(run: Run, notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("what nobody thought of")

    monkeypatch.setattr(Memory, "search", broken)
    ran = run("search", "x")
    assert ran.code == 1
    assert ran.err.splitlines()[0] == "rlm-mem: unexpected ZeroDivisionError: what nobody thought of"
    assert "Traceback" not in ran.err


def test_an_interrupted_command_says_so(run: Run, notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Memory, "search", interrupted)
    ran = run("search", "x")
    assert (ran.code, ran.err) == (130, "rlm-mem: interrupted\n")
    monkeypatch.setattr(Memory, "remember", interrupted)
    ran = run("remember", "x")
    assert ran.code == 130
    assert "repeat the command to continue" in ran.err
    assert run("remember", "x", "--again").err == "rlm-mem: interrupted\n", "that would store it twice"


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        # The reader has gone before anything is written.
        ("> >(:)", 0, ""),
        (">&-", 0, ""),
        ("> /dev/full", 1, "rlm-mem: the output cannot be written: No space left on device\n"),
        ("2>&-", 0, ""),
    ],
)
def test_an_output_that_takes_nothing(end: str, code: int, said: str) -> None:
    """A pipe that was closed, and a stream that is not there, are no errors; a full disk is."""
    for words in ("config show", "--help"):
        command = f"{sys.executable} -m rlm_mem {words} {end}"
        ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
        assert (ran.returncode, ran.stderr) == (code, said), words


def test_a_width_of_0_is_not_known(run: Run, notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in ("0", ""):
        monkeypatch.setenv("COLUMNS", width)
        assert notes["tea"].rpartition("-")[2] in run("list").out


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version").out == f"rlm-mem {__version__}\n"


def test_no_command_shows_the_help(run: Run) -> None:
    ran = run()
    assert "Usage: rlm-mem" in ran.out
    assert ran.err == ""


def test_main_takes_its_arguments_from_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["rlm-mem", "--version"])
    assert main() == 0


def test_safe_keeps_newlines_and_tabs() -> None:
    assert safe("a\tb\r\nc\x1b") == "a\tb\nc␛"


def test_one_line_is_one_line_of_at_most_so_many_characters() -> None:
    assert one_line("a\n\n b\tc") == "a b c"
    assert len(one_line("word " * 100, 40)) <= 40


def test_plain_turns_anything_into_json_values() -> None:
    from decimal import Decimal

    assert plain({"a": (1, Decimal("0.5"), {"y", "x"}), 2: Path("b")}) == {
        "a": [1, 0.5, ["x", "y"]],
        "2": "b",
    }


@pytest.mark.parametrize(
    ("count", "noun", "said"),
    [(1, "chunk", "1 chunk"), (0, "chunk", "0 chunks"), (1204, "entry", "1,204 entries")],
)
def test_amounts_read_as_english(count: int, noun: str, said: str) -> None:
    assert amount(count, noun) == said


@pytest.mark.parametrize(
    ("cost", "said"), [(None, "unpriced"), (0, "$0.00"), (0.00123, "$0.0012"), (12.5, "$12.50")]
)
def test_unpriced_is_not_zero(cost: float | None, said: str) -> None:
    assert money(cost) == said


@pytest.mark.skipif(sys.platform == "win32", reason="Windows hands arguments over as Unicode")
def test_words_of_other_alphabets_are_found_in_the_plain_c_locale(tmp_path: Path) -> None:
    """With Python's UTF-8 mode switched off arguments would arrive as half surrogate pairs."""
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "rlm_mem", "--brain", str(tmp_path / "brän")]
    for more in (["remember", "Zoë lives in Zürich."], ["search", "Zürich"]):
        ran = subprocess.run(
            [*command, *more], env=environment, capture_output=True, encoding="utf-8", timeout=60, check=False
        )
        assert ran.returncode == 0, ran.stderr
    assert "Zoë lives in Zürich." in ran.stdout
    assert (tmp_path / "brän" / "memory").is_dir()


def test_a_narrow_terminal_shows_ids_and_content_whole(
    run: Run, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    shown = run("list").out
    assert all(one in shown.split() for one in notes.values())
    assert "Ana drinks green tea" in shown
    run("link", notes["tea"], notes["cake"], "supports")
    column = [line.split() for line in run("link", "list", notes["tea"]).out.splitlines()[1:]]
    assert column[0][2] + "".join(row[0] for row in column[1:]) == notes["cake"]
