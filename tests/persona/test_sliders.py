"""Sliders: both forms of their files, ranges, and what a value means."""

from __future__ import annotations

from pathlib import Path
from unicodedata import normalize

import pytest

from brain.scripts import load_slider
from rlm_mem.errors import InvalidConfig, NotFoundError
from rlm_mem.persona import Library, parse_commands, parse_slider

DOCUMENTED = """\
# [PATIENCE] Slider
## Range
0-10
## Description
[How long it waits]
## Examples
- 0: [Never wait]
- 5: [Wait a while]
- 10: [Wait for good]
"""
WILD = """\
# HUMOR.md — The Humor Dial

> Slider Range: 0% (stone) → 100% (clown)

## Core Function

How funny it is.

## Calibration Levels

| Range | Mode | Behavior |
|-------|------|----------|
| 0-20% | Stone | No jokes |
| 21-40% | Dry | A remark |
| 41-60% | Light | Where it fits |
| 61-80% | Playful | Often |
| 81-100% | Clown | Always |

## Shotgun Tokens

`wit`, `play`, irony

## Default: 55%
"""
NAMES = [
    *("Verbosity", "Creativity", "Technicality", "Humor", "Directness", "Morality"),
    *("Soul", "Identity", "Tools", "User"),
]


@pytest.mark.parametrize("name", NAMES)
def test_every_documented_slider_is_there(name: str) -> None:
    loaded = load_slider(name)
    assert loaded["dimension"] == name
    assert loaded["range"] == [0, 100]
    assert loaded["description"]
    assert {0, 50, 100} <= set(loaded["examples"])


def test_the_package_has_these_sliders_and_no_others() -> None:
    assert sorted(Library().sliders()) == sorted(name.lower() for name in NAMES)


def test_the_documented_defaults_hold() -> None:
    documented = {"verbosity": 28, "humor": 45, "creativity": 55, "morality": 60, "directness": 65}
    documented["technicality"] = 50
    assert {name: load_slider(name)["default"] for name in documented} == documented
    assert {name: Library().defaults()[name] for name in documented} == documented


def test_the_documented_form_is_read() -> None:
    made = parse_slider(DOCUMENTED, "PATIENCE")
    assert (made.name, made.title, made.low, made.high, made.default) == ("patience", "Patience", 0, 10, 5)
    assert made.description == "How long it waits"
    assert made.examples == ((0, "Never wait"), (5, "Wait a while"), (10, "Wait for good"))
    assert made.percent(5) == 50


def test_the_other_form_is_read() -> None:
    made = parse_slider(WILD, "HUMOR")
    assert (made.low, made.high, made.default) == (0, 100, 55)
    assert made.description == "How funny it is."
    assert [(one.low, one.high, one.mode) for one in made.levels][::4] == [
        (0, 20, "Stone"),
        (81, 100, "Clown"),
    ]
    assert made.tokens == ("wit", "play", "irony")
    assert [made.behavior(value) for value in (0, 20, 21, 50, 100)] == [
        "Stone: No jokes",
        "Stone: No jokes",
        "Dry: A remark",
        "Light: Where it fits",
        "Clown: Always",
    ]


def test_prose_without_a_range_is_a_slider_from_0_to_100() -> None:
    made = parse_slider("# SOUL.md — The Soul\n\nThis is what breathes. More words.\n", "SOUL")
    assert (made.low, made.high, made.default) == (0, 100, 50)
    assert made.behavior(80) == "This is what breathes."


def test_a_value_means_its_nearest_example() -> None:
    made = parse_slider(DOCUMENTED, "PATIENCE")
    said = [made.behavior(value) for value in (0, 2, 3, 7, 8, 10)]
    assert said == [
        "Never wait",
        "Never wait",
        "Wait a while",
        "Wait a while",
        "Wait for good",
        "Wait for good",
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0-10", "10-0", "must increase"),
        ("0-10", "plenty", "not two numbers"),
        ("- 10:", "- 11:", "line 9: the example must be from 0 to 10, not 11"),
        ("- 5: [Wait a while]", "- waits", "must name its value"),
        ("## Description", "## Default\n12\n## Description", "the default must be from 0 to 10, not 12"),
        ("## Description", "## Default: lots\n## Description", "the default must be a whole number"),
    ],
)
def test_a_slider_at_fault_is_refused_with_its_place(old: str, new: str, said: str) -> None:
    with pytest.raises(InvalidConfig, match=r"brain/sliders/PATIENCE\.md") as raised:
        parse_slider(DOCUMENTED.replace(old, new, 1), "PATIENCE", "brain/sliders/PATIENCE.md")
    assert said in str(raised.value)


def test_a_level_outside_the_range_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="line 17: the level must be from 0 to 100, not 120"):
        parse_slider(WILD.replace("81-100%", "81-120%"), "HUMOR")


def test_a_slider_dropped_into_the_brain_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "sliders"
    folder.mkdir()
    (folder / "PATIENCE.md").write_text(DOCUMENTED, encoding="utf-8")
    library = Library(tmp_path)
    assert library.slider("Patience").high == 10
    assert library.defaults()["patience"] == 5
    assert list(library.sliders())[-1] == "patience"


@pytest.mark.parametrize(
    "said", ["Follow-up", "follow up", "FOLLOW_UP", "Straße", "STRASSE", "Größe", "größe"]
)
def test_a_slider_is_known_in_every_spelling_of_its_name(tmp_path: Path, said: str) -> None:
    for folder in ("sliders", "personalities"):
        (tmp_path / folder).mkdir()
    for name in ("follow-up", "straße", normalize("NFD", "Größe")):
        (tmp_path / "sliders" / f"{name}.md").write_text(DOCUMENTED, encoding="utf-8")
    (tmp_path / "personalities" / "MINE.md").write_text(f"## Configuration\n- {said}: 7\n", encoding="utf-8")
    library = Library(tmp_path)
    name = library.slider(said).name
    assert library.personality("MINE").values == {name: 7}
    for form in ("NFC", "NFD"):
        (command,) = parse_commands(f"Set {normalize(form, said)} to 3", library)
        assert command.slider == name


def test_a_slider_of_the_brain_counts_before_the_package(tmp_path: Path) -> None:
    folder = tmp_path / "sliders"
    folder.mkdir()
    (folder / "humor.md").write_text(WILD, encoding="utf-8")
    assert load_slider("Humor", tmp_path)["shotgun_tokens"] == ["wit", "play", "irony"]
    assert len(Library(tmp_path).sliders()) == len(NAMES)


@pytest.mark.parametrize("name", ["../HUMOR", "a/b", "..", "", "/etc/passwd", "x" * 70, "a\x00b", "hu.mor"])
def test_a_name_that_is_a_path_is_refused(name: str) -> None:
    with pytest.raises(InvalidConfig, match="is not a valid name of a slider"):
        load_slider(name)


def test_an_unknown_slider_names_the_nearest() -> None:
    with pytest.raises(NotFoundError, match="there is no slider 'humour'") as raised:
        load_slider("humour")
    assert raised.value.hint == "did you mean humor?"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"x" * 300_000])
def test_a_binary_or_oversized_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "sliders").mkdir()
    (tmp_path / "sliders" / "ODD.md").write_bytes(content)
    with pytest.raises(InvalidConfig, match=r"ODD\.md"):
        Library(tmp_path).sliders()
