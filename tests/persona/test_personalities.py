"""Personalities: both forms of their files, layers over BASE, names, and errors that say where."""

from __future__ import annotations

from pathlib import Path

import pytest

from brain.scripts import load_personality
from rlm_mem.errors import InvalidConfig, NotFoundError
from rlm_mem.persona import Library, parse_personality

WILD = """\
# PIRATE.md

> Activated when: the user talks of ships

## Slider Adjustments

| Slider | Adjustment | Reason |
|---|---|---|
| Humor | ↑ 75-90% | pirates laugh |
| **Directness** | → 55% | |
| Technicality | ↓ 25% | no charts |

## Core Function

Talks like the sea.
"""
DOCUMENTED = """\
# CUSTOM_MODE Mode
## Configuration
- Creativity: 75
- Technicality: 60
- ...
## Description
[When to use this mode]
"""


def drop(brain: Path, name: str, content: str) -> Path:
    folder = brain / "personalities"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize("mode", ["BASE", "RESEARCH_ANALYST", "CREATIVE_DIRECTOR", "TECHNICAL_COPILOT"])
def test_every_documented_personality_is_there(mode: str) -> None:
    loaded = load_personality(mode)
    assert loaded["mode"] == mode
    assert set(loaded["sliders"]) == set(Library().sliders())
    assert all(0 <= value <= 100 for value in loaded["sliders"].values())
    assert loaded["description"]


@pytest.mark.parametrize(
    ("mode", "preset"),
    [
        ("RESEARCH_ANALYST", {"technicality": 85, "directness": 75, "humor": 25}),
        ("CREATIVE_DIRECTOR", {"creativity": 90, "humor": 70, "verbosity": 60}),
        ("TECHNICAL_COPILOT", {"technicality": 90, "directness": 80, "humor": 15}),
        ("CONCISE", {"verbosity": 15, "directness": 85}),
    ],
)
def test_the_documented_presets_hold(mode: str, preset: dict[str, int]) -> None:
    assert preset.items() <= load_personality(mode)["sliders"].items()


def test_a_mode_overrides_base() -> None:
    base, concise = load_personality("BASE"), load_personality("CONCISE")
    assert concise["configuration"] == {"verbosity": 15, "directness": 85}
    assert concise["sliders"] == {**base["sliders"], "verbosity": 15, "directness": 85}


def test_a_mode_dropped_into_the_brain_just_works(tmp_path: Path) -> None:
    drop(tmp_path, "CUSTOM_MODE.md", DOCUMENTED)
    loaded = load_personality("CUSTOM_MODE", tmp_path)
    assert loaded["configuration"] == {"creativity": 75, "technicality": 60}
    assert loaded["sliders"]["humor"] == load_personality("BASE")["sliders"]["humor"]
    assert "CUSTOM_MODE" in Library(tmp_path).modes()


def test_it_is_found_where_the_command_line_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drop(tmp_path, "CUSTOM_MODE.md", DOCUMENTED)
    monkeypatch.setenv("RLM_MEM_BRAIN", str(tmp_path))
    assert load_personality("CUSTOM_MODE")["sliders"]["creativity"] == 75


def test_the_other_form_is_read() -> None:
    made = parse_personality(WILD, "PIRATE")
    assert dict(made.values) == {"humor": 83, "directness": 55, "technicality": 25}
    assert made.activated_when == "the user talks of ships"
    assert made.description == "Talks like the sea."


def test_base_of_the_brain_counts_before_the_package(tmp_path: Path) -> None:
    drop(tmp_path, "base.md", "# BASE Mode\n## Configuration\n- Humor: 5\n")
    assert load_personality("BASE", tmp_path)["sliders"]["humor"] == 5
    assert load_personality("CONCISE", tmp_path)["sliders"]["humor"] == 5
    assert load_personality("BASE", tmp_path)["sliders"]["soul"] == 50, "the slider's own default"


@pytest.mark.parametrize(
    "said", ["research", "Research", "research_analyst", "RESEARCH-ANALYST", "analyst", "research analyst"]
)
def test_a_mode_is_known_by_a_word_of_its_name(said: str) -> None:
    assert Library().find_mode(said) == "RESEARCH_ANALYST"


def test_a_word_of_two_modes_is_refused(tmp_path: Path) -> None:
    drop(tmp_path, "MARKET_RESEARCH.md", DOCUMENTED)
    with pytest.raises(InvalidConfig, match="is ambiguous: MARKET_RESEARCH or RESEARCH_ANALYST"):
        Library(tmp_path).find_mode("research")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("- Humor: 101", "line 3: Humor must be from 0 to 100, not 101"),
        ("- Humor: -5", "line 3: Humor must be a whole number"),
        ("- Humor: 12.5", "line 3: Humor must be a whole number"),
        ("- Humor: [0-100]", "line 3: Humor must be a whole number"),
        ("- Wit: 20", "line 3: there is no slider 'wit'"),
        ("- Humor 20", "line 3: 'Humor 20' does not set a slider"),
        ("- Humor: 20\n- HUMOR: 30", "line 4: humor is set a second time"),
    ],
)
def test_a_personality_at_fault_is_refused_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    drop(tmp_path, "ODD.md", f"# ODD Mode\n## Configuration\n{line}\n")
    with pytest.raises(InvalidConfig) as raised:
        load_personality("ODD", tmp_path)
    assert said in str(raised.value)
    assert "ODD.md" in str(raised.value)


@pytest.mark.parametrize(
    "mode", ["../secret", "..", "a/../b", "/etc/passwd", "a\\b", "", " ", "a\nb", "~root", "x.md.md/..", 7]
)
def test_a_mode_name_that_is_a_path_is_refused(tmp_path: Path, mode: str) -> None:
    (tmp_path / "secret.md").write_text(DOCUMENTED, encoding="utf-8")
    drop(tmp_path, "X.md", DOCUMENTED)
    with pytest.raises(InvalidConfig, match="is not a valid name of a mode"):
        load_personality(mode, tmp_path)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "secret.md"
    outside.write_text(DOCUMENTED, encoding="utf-8")
    folder = drop(tmp_path / "brain", "OK.md", DOCUMENTED).parent
    (folder / "LEAK.md").symlink_to(outside)
    with pytest.raises(InvalidConfig, match="a link out of"):
        load_personality("LEAK", tmp_path / "brain")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "personalities").symlink_to(folder)
    with pytest.raises(InvalidConfig, match="a link out of"):
        load_personality("OK", tmp_path / "other")


def test_an_unknown_mode_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="there is no mode 'POET'"):
        load_personality("POET")


def test_a_readme_is_not_a_mode(tmp_path: Path) -> None:
    drop(tmp_path, "README.md", "# About this folder\n")
    assert "README" not in Library(tmp_path).modes()


def test_crlf_a_byte_order_mark_and_frontmatter_do_not_matter(tmp_path: Path) -> None:
    text = "\ufeff---\ntitle: x\n---\n" + DOCUMENTED
    drop(tmp_path, "CUSTOM_MODE.md", text.replace("\n", "\r\n"))
    assert load_personality("CUSTOM_MODE", tmp_path)["sliders"]["creativity"] == 75


def test_defaults_are_copied_once_and_never_over_a_file(tmp_path: Path) -> None:
    path = drop(tmp_path, "base.md", "# mine\n")
    written = Library(tmp_path).copy_defaults()
    assert path.read_text(encoding="utf-8") == "# mine\n"
    assert not (tmp_path / "personalities" / "BASE.md").exists()
    assert {one.split("/")[0] for one in written} == {"personalities", "sliders", "gauges"}
    assert Library(tmp_path).copy_defaults() == []
    assert Library(tmp_path).values("CONCISE")["verbosity"] == 15
