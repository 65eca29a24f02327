"""`rlm-mem recall --receipt` and `rlm-mem verify`."""

from __future__ import annotations

from pathlib import Path

from rlm_mem import Memory

from .conftest import Run


def test_a_recall_writes_its_receipt_and_verify_says_what_holds(
    run: Run, memory: Memory, notes: dict[str, str], tmp_path: Path
) -> None:
    receipt, bundle = str(tmp_path / "answer.receipt"), str(tmp_path / "answer.bundle")
    asked = run(
        "recall", "Which database for the ledger?", "--receipt", receipt, "--bundle", bundle, "--json"
    )
    assert asked.code == 0, asked.err
    assert asked.json["receipt"] == receipt
    found = run("verify", receipt)
    assert found.code == 0, found.out
    assert "holds" in found.out
    assert run("verify", receipt, "--bundle", bundle, "--json").json["verdict"] == "holds"

    memory.update(notes["choice"], content="Ana: We chose SQLite for the notebook.")
    changed = run("verify", receipt, "--json")
    assert changed.code == 1
    assert changed.json["verdict"] == "changed"
    assert run("verify", receipt, "--bundle", bundle).code == 0

    Path(receipt).write_text(Path(receipt).read_text().replace("PostgreSQL", "PostgreSQ1", 1))
    altered = run("verify", receipt)
    assert altered.code == 1
    assert "altered" in altered.out


def test_wrong_options_are_refused_before_the_question_is_asked(
    run: Run, notes: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "there").write_text("x")
    for options, word in (
        (("--bundle", str(tmp_path / "b")), "--receipt"),
        (("--receipt", str(tmp_path / "there")), "exists already"),
        (("--receipt", str(tmp_path / "r"), "--as-of", "2026-01-01"), "cannot cover a recall with --as-of"),
        (("--receipt", str(tmp_path / "r"), "--sign", str(tmp_path / "nokey")), "cannot be read"),
    ):
        ran = run("recall", "Which database?", *options)
        assert ran.code == 2
        assert word in ran.err
    assert run("trajectories", "list", "--json").json == []
    assert run("verify", str(tmp_path / "missing")).code == 2
    assert run("--brain", str(tmp_path / "nowhere"), "verify", str(tmp_path / "there")).code == 1
