"""The command on a database: named by --brain or RLM_MEM_BRAIN, never shown with its password."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rlm_mem.cli import main
from tests.postgres import PASSWORD


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command; none of them holds the password."""
    code = main(arguments)
    out, err = capsys.readouterr()
    assert PASSWORD not in out + err
    return code, out, err


def data(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The JSON that a command prints."""
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_a_memory_lives_in_a_database_from_init_to_repair(
    dsn: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PASSWORD in dsn
    made = data(capsys, "init", dsn)
    assert made["created"] and made["brain"].startswith("postgresql://")
    monkeypatch.setenv("RLM_MEM_BRAIN", dsn)
    assert not data(capsys, "init")["created"]
    stored = data(capsys, "remember", "Dana prefers trains to planes.", "--tag", "travel")
    (chunk_id,) = stored["chunk_ids"]
    assert [hit["chunk_id"] for hit in data(capsys, "search", "trains")] == [chunk_id]
    assert [chunk["id"] for chunk in data(capsys, "list", "--tag", "travel")] == [chunk_id]
    assert data(capsys, "stats")["chunk_count"] == 1
    assert data(capsys, "recall", "How does Dana like to travel?")["chunk_ids"] == [chunk_id]
    assert data(capsys, "delete", chunk_id)
    assert data(capsys, "restore", chunk_id)
    for command in (
        ("check",),
        ("repair", "--apply"),
        ("sync", "--full"),
        ("index", "rebuild"),
        ("checkpoint",),
    ):
        code, _, err = run(capsys, *command)
        assert code == 0, err
    code, shown, _ = run(capsys, "config", "show", "postgres")
    assert code == 0 and "postgres.pool_size" in shown and "postgresql://" in shown
    code, shown, _ = run(capsys, "doctor")
    assert code == 0 and "1 memory in namespace default" in shown


def test_the_option_takes_precedence_over_the_environment_and_namespaces_hold(
    dsn: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLM_MEM_BRAIN", "postgresql://nobody@127.0.0.1:1/none")
    data(capsys, "remember", "Ours.", "--brain", dsn, "--namespace", "team/ours")
    assert data(capsys, "--brain", dsn, "list") == []
    assert len(data(capsys, "--brain", dsn, "--namespace", "team/ours", "list")) == 1


@pytest.mark.parametrize(
    ("change", "said", "expected"),
    [
        (lambda dsn: dsn.rsplit("/", 1)[0] + "/nothing", "does not exist", 1),
        (lambda dsn: dsn + "?colour=red", "not a valid DSN", 2),
    ],
)
def test_errors_are_one_line_and_a_hint(
    dsn: str, capsys: pytest.CaptureFixture[str], change: Any, said: str, expected: int
) -> None:
    code, out, err = run(capsys, "--brain", change(dsn), "list")
    lines = err.strip().splitlines()
    assert code == expected and not out
    assert len(lines) == 2 and said in lines[0] and lines[1].startswith("hint: ")
