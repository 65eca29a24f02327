"""Gauges and their box: templates over figures, aligned at every width, whatever the content."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from rich.cells import cell_len

from rlm_mem.errors import InvalidConfig, NotFoundError
from rlm_mem.persona import Library, library, parse_gauge, render_gauge
from rlm_mem.persona.boxes import cut, fixed_width, left, right, wrap

FIGURES = {
    "name": "日本語のメモリ 🚀",
    "share": 25,
    "cost": None,
    "count": 1234567,
    "at": "2026-02-10T12:34:56.000000Z",
    "tags": ["a", "b"],
    "deep": {"er": {"value": 0.5}},
    "items": [{"title": f"item{number}", "value": number} for number in range(5)],
    "none": [],
    "yes": True,
}


def drawn(template: str, width: int = 40, **more: object) -> list[str]:
    gauge = parse_gauge(f"# Mine\n\nWhat it is.\n\n```gauge\n{template}\n```\n", "mine")
    return render_gauge(gauge, {**FIGURES, **more}, width).split("\n")


def inside(template: str, width: int = 40, **more: object) -> list[str]:
    """What stands in the box, without its frame and the space at the ends."""
    return [line[2:-2].rstrip() for line in drawn(template, width, **more)[1:-1]]


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("plain  text", "plain  text"),
        ("{{name}}", "日本語のメモリ 🚀"),
        ("{{ deep.er.value }}", "0.5"),
        ("{{share | bar 8}}", "██░░░░░░"),
        ("{{count | count}}", "1,234,567"),
        ("{{cost | money}} {{cost}}", "unpriced –"),
        ("{{share | money}}", "$25.00"),
        ("{{name | money}} {{tags | money}}", "日本語のメモリ 🚀 a, b"),
        ("{{at | moment}}", "2026-02-10 12:34"),
        ("{{tags | join}}", "a, b"),
        ("{{yes}}", "yes"),
        ("[{{share | right 5}}] [{{share | left 5}}]", "[   25] [25   ]"),
        ("{{name | cut 7}}", "日本語…"),
        ("{{#if yes}}\nshown\n{{/if}}\n{{#if none}}\nnot shown\n{{/if}}", "shown"),
    ],
)
def test_a_template_is_filled(template: str, shown: str) -> None:
    assert inside(template) == [shown]


def test_fill_pushes_to_the_right() -> None:
    assert drawn("a{{fill}}b", 30)[1] == "│ a" + " " * 24 + "b │"
    assert inside("long words on the left{{fill}}and on the right", 30) == [
        "long words on the left",
        " " * 10 + "and on the right",
    ]


def test_a_rule_goes_across_with_its_title() -> None:
    assert drawn("--- {{name}}", 30)[1] == "├─ 日本語のメモリ 🚀 " + "─" * 8 + "┤"
    assert drawn("---", 30)[1] == "├" + "─" * 28 + "┤"


def test_a_list_has_a_line_for_each_item() -> None:
    assert inside("{{#each items}}\n{{title}} of {{share}}\n{{/each}}") == [
        f"item{number} of 25" for number in range(5)
    ]
    assert inside("{{#each tags}}\n- {{item}}\n{{/each}}") == ["- a", "- b"]


def test_columns_take_as_many_as_fit_and_read_downwards() -> None:
    template = "{{#each items columns}}\n{{title}}\n{{/each}}"
    assert inside(template, 24)[0].split() == ["item0", "item3"]
    assert inside(template, 80)[0].split() == [f"item{number}" for number in range(5)]
    assert len(inside(template, 24)) == 3


def test_a_line_that_is_too_long_continues_below_its_value() -> None:
    assert inside("label    one two three four five", 24) == [
        "label    one two",
        "         three four",
        "         five",
    ]


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("{{nothing}}", "mine line 6: there is no figure 'nothing'"),
        ("ok\n{{deep.nothing}}", "mine line 7: there is no figure 'deep.nothing'"),
        ("{{share | shout}}", "line 6: there is no filter 'shout'"),
        ("{{share | bar}}", "the filter bar takes 1 number"),
        ("{{share | bar x}}", "the filter bar takes 1 number"),
        ("{{share | bar 9999}}", "the filter bar takes 1 number"),
        ("{{a b}}", "names no figure"),
        ("{{#each items}}", "line 6: {{#each}} is never closed"),
        ("{{/each}}", "line 6: {{/each}} does not close a block"),
        ("{{#each share}}\n{{/each}}", "share is not a list"),
        ("{{#while share}}\n{{/while}}", "there is no block 'while'"),
    ],
)
def test_a_template_at_fault_is_refused_with_its_line(template: str, said: str) -> None:
    with pytest.raises(InvalidConfig) as raised:
        drawn(template)
    assert said in str(raised.value)


def test_a_gauge_without_a_template_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="contains no template"):
        parse_gauge("# Only words\n", "mine")


def test_a_gauge_dropped_into_the_brain_is_there(tmp_path: Path) -> None:
    (tmp_path / "gauges").mkdir()
    (tmp_path / "gauges" / "mine.md").write_text("# x\n```gauge\n{{share}}\n```\n", encoding="utf-8")
    library = Library(tmp_path)
    assert library.gauges()[0] == "LIVEHUD"
    assert "MINE" in library.gauges()
    assert "│ 25" in render_gauge(library.gauge("Mine"), FIGURES)
    with pytest.raises(NotFoundError, match="there is no gauge 'other'"):
        library.gauge("other")
    with pytest.raises(InvalidConfig, match="not a valid name of a gauge"):
        library.gauge("../mine")


def test_ascii_is_ascii() -> None:
    gauge = parse_gauge("```gauge\n--- x\n{{share | bar 4}}\n```", "mine")
    assert render_gauge(gauge, FIGURES, 24, ascii_only=True).isascii()


HARD = [
    "日本語の長い文章がここにあります、改行もありません。",
    "👨‍👩‍👧‍👦 family, 👍🏽 thumb, 🇩🇪 flag, ❤️ heart, 1️⃣ key, 🏳️‍🌈 pride",
    "한국어 문장 하나와 둘",
    "e\u0301 a\u0308 Z" + "\u0336" * 40,
    "tab\there\r\nnew\x00line\x1b[31mred\x1b[0m \u202egnihton\u202c \u200bzero",
    "🧑‍🚀" * 30,
    "العربية والعبرية עברית",
    "\U0001fae8 \U000e0041 \ue000 \uffff",
    "x" * 300,
]


@pytest.mark.parametrize("width", [24, 60, 80, 120])
@pytest.mark.parametrize("content", HARD)
def test_every_line_is_exactly_as_wide_as_the_box(content: str, width: int) -> None:
    template = (
        "{{name}}\nlabel    {{name}}{{fill}}{{name}}\n--- {{name}}\n{{name | left 9}}|\n"
        "{{#each tags columns}}\n{{item}}\n{{/each}}"
    )
    lines = drawn(template, width, name=content, tags=[content, "b", "c"])
    assert {cell_len(line) for line in lines} == {width}
    assert all(line[0] in "┌│├└" and line[-1] in "┐│┤┘" for line in lines)


@settings(max_examples=150, deadline=None)
@given(content=st.text(max_size=80), width=st.integers(1, 130))
def test_any_text_is_aligned(content: str, width: int) -> None:
    lines = drawn("a  {{name}}{{fill}}{{name}}\n--- {{name}}", width, name=content)
    assert {cell_len(line) for line in lines} == {max(width, 24)}


@settings(max_examples=150, deadline=None)
@given(content=st.text(max_size=60), width=st.integers(2, 40), indent=st.integers(0, 45))
def test_wrapping_loses_nothing_but_space(content: str, width: int, indent: int) -> None:
    text = fixed_width(content)
    lines = wrap(text, width, indent)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


@settings(max_examples=150, deadline=None)
@given(content=st.text(max_size=40), width=st.integers(0, 30))
def test_padding_is_exact_and_cutting_never_too_wide(content: str, width: int) -> None:
    text = fixed_width(content)
    assert cell_len(left(text, width)) == cell_len(right(text, width)) == width
    assert cell_len(cut(text, width)) <= width


def test_what_terminals_disagree_about_is_made_plain() -> None:
    assert fixed_width("👨‍👩‍👧 🇩🇪 👍🏽 ❤️ 1️⃣") == "👨 DE 👍 ❤ 1"
    assert fixed_width("a\x1b[2J\u202eb\nc\ud800") == "a[2Jb c"
    assert fixed_width("e\u0301") == "é"


def test_a_gauge_that_the_package_brings_is_found_whatever_the_case_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "walnut.md").write_text("```gauge\nWALNUT\n```\n", encoding="utf-8")
    monkeypatch.setattr(library, "_package", lambda kind: [tmp_path / "walnut.md"])
    assert "WALNUT" in Library().gauges()
    assert Library().gauge("walnut").name == "WALNUT"
