"""`rlm-mem doctor` says in words what is right and what is wrong, and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem import Memory
from tests.cli.conftest import Run


def states(ran: object) -> dict[str, str]:
    return {found["subject"]: found["state"] for found in ran.json["findings"]}  # type: ignore[attr-defined]


@pytest.mark.local_only("look at files")
def test_a_sound_memory_is_found_sound(run: Run, brain: Path, memory: Memory) -> None:
    memory.remember("Something to find.")
    ran = run("doctor", "--json")
    assert ran.code == 0
    assert ran.json["ok"]
    assert {"brain", "store", "search", "model", "sandbox"} <= set(states(ran))
    assert set(states(ran).values()) == {"ok"}
    text = run("doctor").out
    assert str(brain) in text
    assert "1 memories" in text


@pytest.mark.local_only("look at files")
def test_without_a_memory_it_says_how_to_make_one_and_makes_none(run: Run, brain: Path) -> None:
    ran = run("doctor", "--json")
    assert ran.code == 0
    found = next(one for one in ran.json["findings"] if one["subject"] == "brain")
    assert "rlm-mem store init" in found["remedy"]
    assert not brain.exists()


@pytest.mark.local_only("look at files")
def test_it_tries_out_what_each_engine_of_the_sandbox_guarantees(run: Run, brain: Path) -> None:
    """Also without a memory: it is about the machine. Each attempt stands in the answer with what happened."""
    from rlm_mem.sandbox import seccomp

    ran = run("doctor", "--json")
    found = {one["subject"]: one for one in ran.json["findings"]}
    for name in ("monty", "cpython"):
        guarantees = found[f"sandbox engine {name}"]["guarantees"]
        assert guarantees["engine"] == name
        if name == "cpython" and not seccomp.supported():
            assert not guarantees["available"]
            continue
        assert {probe["tried"]: probe["held"] for probe in guarantees["probes"]} == dict.fromkeys(
            (
                *("run a program", "read and write files", "open a connection"),
                *("take memory without end", "loop without end"),
            ),
            True,
        )
        assert guarantees["memory_mb"] == 32 and guarantees["seconds"] == 60.0
        assert guarantees["system_call_filter"] is (name == "cpython")


@pytest.mark.local_only("look at files")
def test_an_engine_that_cannot_be_confined_is_said_to_refuse(
    run: Run, brain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rlm_mem.sandbox import seccomp

    monkeypatch.setattr(seccomp, "supported", lambda: False)
    found = {one["subject"]: one for one in run("doctor", "--json").json["findings"]}[
        "sandbox engine cpython"
    ]
    assert not found["guarantees"]["available"] and "system-call filter" in found["message"]


@pytest.mark.local_only("look at files")
def test_a_wrong_setting_is_named(run: Run, brain: Path, memory: Memory) -> None:
    (brain / "config.toml").write_text("[recall]\nmax_iterations = 0\n", encoding="utf-8")
    ran = run("doctor", "--json")
    assert ran.code == 1
    assert "max_iterations" in next(one["message"] for one in ran.json["findings"] if one["state"] == "wrong")


def test_a_model_that_is_not_set_up_is_named(
    run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLM_MEM_LLM_MODEL", "openai:gpt-5")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ran = run("doctor", "--json")
    assert ran.code == 1
    assert states(ran)["model"] == "wrong"
    assert states(ran)["sandbox"] == "ok"


@pytest.mark.local_only("look at files")
def test_a_file_that_cannot_be_read_is_named(run: Run, brain: Path) -> None:
    with Memory.open(brain) as memory:
        made = memory.remember("Something.").chunk_ids[0]
    file = next(path for path in (brain / "memory").rglob(f"{made}*.json"))
    file.write_text("{", encoding="utf-8")
    ran = run("doctor", "--json")
    assert ran.code == 1
    wrong = [one for one in ran.json["findings"] if one["state"] == "wrong"]
    assert any("rlm-mem store check" in one["remedy"] for one in wrong)


def test_a_missing_extra_is_named_with_how_to_install_it(
    run: Run, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    import rlm_mem.mcp.doctor as doctor

    real = doctor.find_spec
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "mcp" else real(name))
    ran = run("doctor", "--json")
    found = next(one for one in ran.json["findings"] if one["subject"] == "extra server")
    assert (ran.code, found["state"]) == (1, "wrong")
    assert "rlm-mem[server]" in found["remedy"]
