"""Memory text is hostile: whatever stands in it, pages show it as text, in every place where it appears."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rlm_mem.dashboard.requests import MAX_FORM_BYTES
from rlm_mem.memory import Memory
from rlm_mem.models.scripted import ScriptedLLM
from tests.server.site import OWN, Site, opened, tags_of

TEXTS = {
    "script": "<script>alert(1)</script> tea",
    "quotes": "\"><img src=x onerror=alert(1)> tea ' onmouseover='alert(2)",
    "htmx": "<div hx-get='https://evil.example' hx-trigger='load'>tea</div>",
    "template": "{{ config }} {% include '/etc/passwd' %} tea ${7*7}",
    "markdown": "# tea\n[click](javascript:alert(1)) ![x](https://evil.example/x.png) `code`",
    "rtl": "שלום עולם tea مرحبا \u202e reversed \u2066 isolate",
    "control": "tea \x1b[31mred\x1b[0m \x07 bell \x0b",
    "unicode": "tea \u200b\ufeff 👩‍👩‍👧 z̷̢a̸l̵g̶o",
    "comment": "--><!-- tea ]]> </textarea></title></style>",
    "lines": "tea\n" * 500,
    "word": "tea " + "x" * 20_000,
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened(tmp_path_factory.mktemp("hostile") / "brain") as found:
        store = found.memory.store
        last = None
        for name, text in TEXTS.items():
            chunk = store.create_chunk(
                text,
                tags=['"><script>tag</script>', name],
                conversation_id='"><script>conversation</script>',
                source="<script>source</script>",
                provenance={"<b>agent</b>": "<script>agent</script>"},
                metadata={"<i>extra</i>": "<script>extra</script>"},
                chunk_id=f"chunk-hostile-{name}",
            )
            if last is not None:
                store.add_link(chunk.id, last, "supports", 0.5, "<script>reasoning</script>")
            last = chunk.id
        store.update_chunk("chunk-hostile-script", content="</ins><script>alert('new')</script> tea")
        lines = (
            "# </pre><script>alert(1)</script>",
            "print('</pre><script>x</script>')",
            "FINAL('<script>answer</script>')",
        )
        program = "```repl\n" + "\n".join(lines) + "\n```"
        Memory(store, ScriptedLLM([program])).recall("<script>question</script>?")
        yield found


def harmless(page: str, *, as_written: bool = False) -> None:
    """Nothing in the page came out of the memory as markup."""
    for tag, attributes in tags_of(page):
        assert tag not in ("img", "iframe", "object", "embed", "style", "base", "b", "i"), tag
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert tag != "script" or str(attributes.get("src", "")).startswith("/static/"), attributes
        for name in ("href", "hx-get", "src", "action"):
            assert str(attributes.get(name) or "/").startswith(("/", "#")), attributes
    if not as_written:  # a form must give back what it was given; everywhere else such signs are made visible
        assert "\x1b" not in page
        assert "\u202e" not in page


@pytest.mark.parametrize(
    "path",
    [
        "/memories", "/memories?q=tea", "/memories?q=%3Cscript%3E", "/memories?since=%3Cscript%3E",
        "/memories?tag=%22%3E%3Cscript%3Etag%3C/script%3E", "/memories?done=%3Cscript%3E",
        "/timeline", "/changes", "/graph", "/tiers", "/persona", "/costs", "/integrity?code=%22%3E%3Cscript%3E",
        "/recalls", "/recalls?operation=%22%3E%3Cimg%20src=x%3E", "/review?state=%3Cscript%3E",
    ],
)  # fmt: skip
def test_no_page_lets_text_become_markup(site: Site, path: str) -> None:
    harmless(site.get(path))
    harmless(site.part(path))


@pytest.mark.parametrize("name", TEXTS)
def test_one_hostile_memory_is_shown_edited_and_drawn_as_text(site: Site, name: str) -> None:
    for path in ("", "/edit", "/history", "/events"):
        harmless(site.get(f"/memories/chunk-hostile-{name}{path}"), as_written=path == "/edit")
    harmless(site.get(f"/graph?id=chunk-hostile-{name}"))
    answer = site.client.get(f"/graph/data?id=chunk-hostile-{name}")
    assert answer.headers["content-type"] == "application/json"


def test_a_recall_of_hostile_words_is_shown_as_text(site: Site) -> None:
    (info,) = site.memory.trajectories()
    page = site.get(f"/recalls/{info.id}")
    harmless(page)
    assert "&lt;script&gt;answer&lt;/script&gt;" in page
    assert "tok-c" in page


def test_addresses_that_hold_markup_are_answered_as_text(site: Site) -> None:
    for path in (
        "/memories/%3Cscript%3E",
        "/recalls/%22%3E%3Cscript%3E",
        "/%3Cscript%3Ealert(1)%3C/script%3E",
    ):
        answer = site.client.get(path)
        assert answer.status_code in (404, 422)
        harmless(answer.text)


def test_a_huge_text_keeps_its_pages_bounded(site: Site) -> None:
    store = site.memory.store
    store.create_chunk("tea " + "word " * 200_000, chunk_id="chunk-huge-1")
    assert len(site.get("/memories?q=word")) < 400_000
    assert len(site.get("/memories")) < 400_000
    page = site.get("/memories/chunk-huge-1")
    assert 'tabindex="0"' in page, "a long text scrolls in a place of its own"


@pytest.mark.parametrize(
    ("path", "form", "message"),
    [
        ("/memories/new", "x=1&" * 50_000, "the form has more than 1,050 fields"),
        ("/namespaces", "x=1&" * 50_000, "the form has more than 1,050 fields"),
        ("/theme", "back=" + "x" * MAX_FORM_BYTES, "the form has more than 16 MiB"),
        ("/memories/new", "text=" + "x" * MAX_FORM_BYTES, "the form has more than 16 MiB"),
    ],
)
def test_a_form_that_is_too_large_is_refused_with_the_reason(
    site: Site, path: str, form: str, message: str
) -> None:
    answer = site.client.post(
        path, content=form, headers={**OWN, "content-type": "application/x-www-form-urlencoded"}
    )
    assert answer.status_code == 413
    assert message in answer.text
