"""Remembered Markdown: rendered so that nothing of it runs, loads or takes long, its source one click away."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from rlm_mem.dashboard.markdown import MAX_RENDERED_CHARS, render, teaser
from tests.server.site import Site, opened, tags_of, text_of

MARKDOWN = """# Clamp checklist

For **every** gauge, see [the drawing](https://example.org/clamp).

1. clean the pole
2. close the clamp

| part | number |
|------|-------:|
| clamp | 4 |

```py
print("done")
```
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened(tmp_path_factory.mktemp("markdown") / "brain") as found:
        yield found


def remembered(site: Site, text: str) -> str:
    """The address of a memory that holds the text."""
    return f"/memories/{site.memory.store.create_chunk(text).id}"


def article(page: str) -> str:
    """What a page shows of the text itself."""
    return page.partition("<article")[2].partition("</article>")[0]


def test_markdown_is_rendered_and_its_source_is_a_click_away(site: Site) -> None:
    path = remembered(site, MARKDOWN)
    shown = article(site.get(path))
    tags = [tag for tag, _ in tags_of(shown)]
    assert {"h2", "strong", "ol", "table", "pre", "code"} <= set(tags)
    assert "h1" not in tags, "the page has one already"
    assert "**every**" not in text_of(shown)
    assert f'href="{path}?view=source"' in shown
    source = article(site.get(f"{path}?view=source"))
    assert "For **every** gauge, see [the drawing](https://example.org/clamp)." in text_of(source)
    assert f'href="{path}"' in source
    assert "<strong>" not in source
    part = site.part(f"{path}?view=source")
    assert f'hx-get="{path}?view=source"' in part, "what others write leaves the choice as it is"


def test_the_list_of_recalls_renders_the_emphasis_of_an_answer(site: Site) -> None:
    with site.memory.recall_session("Which lake is the deepest?") as session:
        session.finish("It is **Baikal**, <b>deep</b>.")
    page = site.get("/recalls")
    assert "It is <strong>Baikal</strong>, &lt;b&gt;deep&lt;/b&gt;." in page


@pytest.mark.parametrize(
    "text",
    [
        "Ben drinks tea.\nAna does not.",
        "2 * 3 * 4 = 24, snake_case_name, #tag",
        "    indented\n  and < that & that",
        "a <b>b</b>",
    ],
)
def test_a_text_without_markdown_is_shown_as_it_was_written(site: Site, text: str) -> None:
    shown = article(site.get(remembered(site, text)))
    assert "view=source" not in shown
    assert text_of(shown).endswith(" ".join(text.split()))


HOSTILE = {
    "script": "# x\n<script>alert(1)</script>\n\n<img src=x onerror=alert(1)>",
    "script links": "[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](&#106;avascript:alert(1))"
    " [d](data:text/html,x) [e](vbscript:x) [f](file:///etc/passwd) <javascript:alert(1)>"
    "\n\n[g]: javascript:alert(1)\n[g]",
    "own pages": "[log out](/logout) [up](../x) [here](#main) [host](//evil.example) [q](?x=1)",
    "images": "![a](https://evil.example/x.png) ![b](data:image/png;base64,AAAA) [![c](https://evil.example/c.png)](/x)",
    "attributes": '[a](https://e.example "x\\" onmouseover=alert(1)") \n\n```js" onclick="x\ncode\n```',
    "table": "| a |\n|:-:|\n| <style>x</style> |",
    "direction": "**a** &#x202e; \u202e <https://e.example/%E2%80%AE> &#0; \x1b[31m",
    "surrogate": "**a** \udcff",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_markdown_becomes_no_markup_and_loads_nothing(name: str) -> None:
    assert {tag for tag, _ in tags_of(str(teaser(HOSTILE[name], 600)))} <= {"strong", "em", "s", "code", "br"}
    shown = str(render(HOSTILE[name]).html)
    for tag, attributes in tags_of(shown):
        assert tag not in ("script", "img", "style", "iframe", "object", "svg", "form", "input"), tag
        assert attributes.keys() <= {"href", "title", "rel", "class", "tabindex", "role", "aria-label"}, (
            attributes
        )
        assert (
            str(attributes.get("href") or "https://").lower().startswith(("https://", "http://", "mailto:"))
        )
        if "href" in attributes:
            assert attributes["rel"] == "noopener noreferrer nofollow"
    assert not set(shown) & set("\u202e\x1b\x00\udcff")
    shown.encode()


@pytest.mark.parametrize(
    ("text", "html"),
    [
        (
            MARKDOWN,
            "<strong>Clamp checklist</strong><br>For <strong>every</strong> gauge, see the drawing.<br>"
            "1. clean the pole<br>2. close the clamp<br>part · number<br>…",
        ),
        (
            "- *a* <b>b</b>\n- ![c](http://x/c.png) &#8238;d `e*f`",
            "• <em>a</em> &lt;b&gt;b&lt;/b&gt;<br>• [image: c] ⟨202E⟩d <code>e*f</code>",
        ),
        ("`code`\n\n    > a *quote*\n", "<code>code</code><br>a <em>quote</em>"),
        ("two\nlines  of text & more", "two lines of text &amp; more"),
        ("**one and two three** four five six seven", "<strong>one and two three</strong> four five six…"),
    ],
)  # fmt: skip
def test_a_card_shows_emphasis_code_and_a_line_for_each_item(text: str, html: str) -> None:
    longest = 31 if "seven" in text else 400
    assert str(teaser(text, longest)) == html


def test_a_link_between_notes_searches_for_the_note() -> None:
    text = "Met [[Ana Keller]], see [[Trip#Costs|the costs]] and ![[a b&c.png]]; [[<b>]] [[]] [[a[b]]"
    html = str(render(text).html)
    links = [attributes for tag, attributes in tags_of(html) if tag == "a"]
    assert [link["href"] for link in links] == [
        f"/memories?q={name}" for name in ("Ana+Keller", "Trip", "a+b%26c.png", "%3Cb%3E")
    ]
    assert ">the costs</a>" in html and ">&lt;b&gt;</a>" in html and "[[]] [[a[b]]" in html
    assert str(teaser(text, 400)).startswith("Met Ana Keller, see the costs and a b&amp;c.png;")


def test_a_task_has_a_box() -> None:
    text = "- [ ] call\n- [x] write\n- [ ]\n- [x]y\n\n[ ] words"
    assert str(teaser(text, 400)) == "• ☐ call<br>• ☑ write<br>• ☐<br>• [x]y<br>[ ] words"
    assert "☑ write" in render(text).html


def test_headings_follow_the_title_of_the_page_without_a_gap() -> None:
    found = [tag for tag, _ in tags_of(str(render("### a\n\n#### b\n\n### c").html)) if tag.startswith("h")]
    assert found == ["h2", "h3", "h2"]


def test_what_an_image_shows_is_named() -> None:
    assert (
        "[image: the plan https://example.org/plan.png]"
        in render("![the plan](https://example.org/plan.png)").html
    )


SLOW = (
    "[", "[[]]", "![", "[a](", "[a][", "*a_ ", "a**b", "**a *a ", "`a``", "> ", ">", "- ", "1. ", "* - + ", "<", "<a ",
    "&a;", "\\", "|", "a|b\n-|-\n", "[a]: b\n", "~~a", "_a", "](", "<!--", "```\n", "#", "# \n", "a\n=\n", "((((",
    "[x](<", "\n", "\t", "\u2028",
)  # fmt: skip


def test_the_time_of_rendering_has_a_bound() -> None:
    """Every construct that takes a parser more than linear time, repeated for longer than what is rendered."""
    texts = [unit * (2 * MAX_RENDERED_CHARS // len(unit)) for unit in SLOW]
    texts += [
        "|" * 500 + "\n" + "|-" * 500 + "|\n" + "|\n" * 49_000,
        ">" * 200 + "a\n" + "a\n" * 50_000,
        "".join(f"{'>' * number}\n" for number in range(440)),
        "".join(f"{'  ' * number}- a\n" for number in range(310)),
        "".join("`" * number + " " for number in range(440)),
    ]
    took = {}
    for text in texts:
        began = time.process_time()
        found = render(text)
        took[text[:12]] = time.process_time() - began
        assert len(found.html) < 400_000
    assert max(took.values()) < 5.0, sorted(took.items(), key=lambda one: -one[1])[:3]


def test_a_long_text_is_rendered_in_part_and_says_so(site: Site) -> None:
    text = "**bold** words\n" * 10_000 + "the very last words"
    path = remembered(site, text)
    page = site.get(path)
    assert (
        f"Only the first {MAX_RENDERED_CHARS - MAX_RENDERED_CHARS % 15:,} of {len(text):,} characters are rendered"
        in text_of(page)
    )
    assert "the very last words" not in article(page)
    assert "the very last words" in article(site.get(f"{path}?view=source"))


@pytest.mark.parametrize("unit", ["> ", "- "])
def test_what_is_nested_too_deeply_loses_nothing(site: Site, unit: str) -> None:
    page = site.get(remembered(site, unit * 40 + "the innermost words"))
    assert "nested too deeply to be rendered" in text_of(page)
    assert "the innermost words" in article(page)
    nested = "".join(f"{'  ' * depth}- level {depth}\n" for depth in range(12))
    for depth in range(12):
        part = "".join(line + "\n" for line in nested.splitlines()[: depth + 1])
        shown = render(part)
        assert shown.note or f"level {depth}" in shown.html, depth
