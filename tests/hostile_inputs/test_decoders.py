"""Texts made to be slow or to break what decodes them: bounded work, and one error of ours at most."""

from __future__ import annotations

import ast
import asyncio
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from starlette.requests import Request

import rlm_mem
from rlm_mem.continuum import frontmatter as tiers
from rlm_mem.dashboard.diffs import word_diff
from rlm_mem.errors import InputError, RlmMemError, TimeoutError
from rlm_mem.http.limits import BodyTooLarge, read_body
from rlm_mem.ingest.chunking import ChunkingEngine
from rlm_mem.interchange import frontmatter
from rlm_mem.offline import OfflineLLM
from rlm_mem.sandbox.idioms import rewrite
from rlm_mem.sandbox.policy import TooManyTokens, parse, syntax_tree
from rlm_mem.sandbox.values import Bounds, read_value

SIZE = 100_000
SECONDS = 2.0
"""Of processor time; each takes well under one on a quiet machine."""

_DOUBLING = "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
YAML = {
    "flow": "[" * SIZE, "tables": "{" * SIZE, "blocks": "- " * 5_000, "keys": "? " * 5_000,
    "open alias": "*" * SIZE, "one key": "a: 1\n" * 2_000, "anchors": "a: &a [*a]\n" * 500,
    "laughs": "a0: &a0 [x, x]\n" + _DOUBLING, "laughing key": "a0: &a0 [x, x]\n" + _DOUBLING + "? *a59\n: 1\n",
    "merges": "a0: &a0 {k: 1}\n" + "".join(f"a{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40)),
    "tagged merge": "a: &a {k: 1}\nb:\n  ? !!merge x\n  : [*a, *a]\n",
    "digits": "a: " + "9" * 40_000, "hexadecimal": "a: 0x" + "f" * 40_000, "long key": "0x" + "f" * 40_000 + ": 1",
    "base 60": "%YAML 1.1\n---\na: " + "1:" * 20_000 + "1", "a time": "a: 2001-01-01 00:00:00 +99:99",
    "a tag": "a: !!timestamp x", "a table": "a: !!map x", "surrogate": 'a: "\\ud800"', "long": "a: 'x\n" * 60_000,
}  # fmt: skip


def spent(work: Callable[[], object]) -> float:
    began = time.process_time()
    try:
        work()
    except RlmMemError as error:
        assert len(str(error)) < 500
    return time.process_time() - began


READERS: dict[str, Callable[[str], object]] = {
    "an import": frontmatter.read_frontmatter,
    "a tiered memory": lambda text: tiers.parse_yaml(text, "a.md"),
    "an edit": lambda text: tiers.edited(text, {"z": 1}, "a.md"),
}


@pytest.mark.parametrize("reader", READERS)
def test_every_frontmatter_is_read_or_refused_quickly(reader: str) -> None:
    took = {name: spent(partial(READERS[reader], text)) for name, text in YAML.items()}
    assert {name: seconds for name, seconds in took.items() if seconds > SECONDS} == {}


def test_merge_keys_are_refused_and_aliases_are_not() -> None:
    with pytest.raises(InputError, match="merge keys"):
        frontmatter.read_frontmatter("a: &a {k: 1}\nb: {<<: *a}\n")
    assert frontmatter.read_frontmatter("a: &a [x]\nb: *a\n") == {"a": ["x"], "b": ["x"]}


def test_every_json_decoder_handles_deep_nesting() -> None:
    """Every decoder stands where a RecursionError is caught, or in a function whose callers do so."""
    package = Path(rlm_mem.__file__).parent
    # Files of the package itself, or what this process wrote a moment ago; the others are guarded by their callers.
    known = {"cli/demo.py", "offline/weights.py", "operations/context.py", "text/yaml.py"}
    known |= {"http/app.py", "store/core/backup_archive.py", "interchange/documents.py"}
    known |= {"ingest/filling.py", "store/postgres/routes.py"}
    found = [
        f"{name}:{line}"
        for path in sorted(package.rglob("*.py"))
        if (name := path.relative_to(package).as_posix()) not in known
        if any(decoder in (text := path.read_text(encoding="utf-8")) for decoder in DECODERS)
        for line in unguarded(ast.parse(text), frozenset())
    ]
    assert found == []


#: Calls that read JSON, which nests as deep as its text says.
DECODERS = ("json.load", "json.loads", "msgspec.json.decode", "_DECODER.raw_decode")


def unguarded(node: ast.AST, caught: frozenset[str]) -> list[int]:
    if isinstance(node, ast.Try):
        names = {
            getattr(part, "id", getattr(part, "attr", ""))
            for handler in node.handlers
            for part in ast.walk(handler.type or ast.Name("RecursionError"))
        }
        inside = [line for part in node.body for line in unguarded(part, caught | names)]
        others = (*node.handlers, *node.orelse, *node.finalbody)
        return inside + [line for part in others for line in unguarded(part, caught)]
    if isinstance(node, ast.With):
        caught |= {
            ast.unparse(name)
            for item in node.items
            if isinstance(call := item.context_expr, ast.Call) and ast.unparse(call.func) == "suppress"
            for name in call.args
        }
    own = []
    if isinstance(node, ast.Call) and ast.unparse(node.func) in DECODERS and "RecursionError" not in caught:
        own = [node.lineno]
    return own + [line for part in ast.iter_child_nodes(node) for line in unguarded(part, caught)]


def test_sections_of_a_few_tokens_are_chunked_in_linear_time() -> None:
    text = "---\n" * (SIZE // 20)
    assert spent(lambda: ChunkingEngine().chunk(text, "c")) < SECONDS
    headed = "# a\nb\n" * (SIZE // 30)
    chunks = ChunkingEngine().chunk(headed, "c")
    assert "".join(headed.split()) == "".join("".join(c.content[c.overlap :].split()) for c in chunks)


@pytest.mark.parametrize("pump", ["[", '{"a":', "A. ", "a b. ", "def f():\n"])
def test_the_offline_model_reads_any_context(pump: str) -> None:
    context = (pump * SIZE)[: SIZE // 10]
    prompt = f"Where does Ana live?\n<context>\n{context}\n</context>"
    assert spent(lambda: OfflineLLM().complete(prompt)) < SECONDS


def test_versions_with_many_repeats_are_compared_in_bounded_time() -> None:
    seeded = random.Random(1)
    shuffled = [" ".join(seeded.choices("ab", k=3_000)) for _ in range(2)]
    lines = ["\n".join(seeded.choices("abc", k=50_000)) for _ in range(2)]
    for before, after in (shuffled, lines, ["a" * 300_000, "b" * 300_000]):
        assert spent(partial(word_diff, before, after)) < SECONDS
    assert "only the first 100,000 of 300,000" in word_diff("a" * 300_000, "b" * 300_000)
    assert word_diff("Ana lives in Rome now.", "Ana lives in Oslo now.") == (
        "Ana lives in <del>Rome </del><ins>Oslo </ins>now."
    )


def test_text_with_more_tokens_than_a_program_may_have_is_not_parsed() -> None:
    with pytest.raises(TooManyTokens):
        syntax_tree("a\n" * 30_000)
    assert parse("a\n" * 30_000) is None


def test_rewriting_and_reading_values_end_with_the_time_of_the_program() -> None:
    code = "a = 1\n" * 4_000
    with pytest.raises(TimeoutError):
        rewrite(code, ast.parse(code), time.monotonic())
    with pytest.raises(TimeoutError):
        read_value("l40000:" + "N" * 40_000, Bounds(), time.monotonic())
    assert read_value("l2:NN", Bounds(), time.monotonic() + 60) == [None, None]


@pytest.mark.parametrize("said", ["9" * 5_000, "²"])
def test_an_impossible_content_length_is_refused_or_ignored(said: str) -> None:
    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    scope = {"type": "http", "headers": [(b"content-length", said.encode("latin-1"))]}
    reading = read_body(Request(scope, receive), 1_000)
    if said.isascii():
        with pytest.raises(BodyTooLarge):
            asyncio.run(reading)
    else:
        assert asyncio.run(reading) == b"{}"
