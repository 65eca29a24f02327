"""Whatever a client sends as arguments, the answer is a result or an error in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rlm_mem.errors import InputError
from rlm_mem.mcp.arguments import MAX_ARGUMENT_CHARS, decode
from rlm_mem.mcp.service import Service, input_schema, tools_for
from rlm_mem.operations.asking import SearchArguments
from rlm_mem.operations.chunks import IdsArguments, RememberArguments
from rlm_mem.operations.context import OpenMemory, Settings

TOOLS = {tool.name: tool for tool in tools_for(every=True)}
NAMES = sorted(
    {name for tool in TOOLS.values() for name in (*input_schema(tool)["properties"], *tool.tool.aliases)}
)

texts = st.text(max_size=40) | st.sampled_from(
    ["", "null", "[", '["a"]', "{}", "chunk-a", "../x", "\ud800", "\x00", "1e400", "9" * 400, "2026-13-45"]
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(OpenMemory(Settings(brain=tmp_path_factory.mktemp("fuzz") / "brain", every_tool=True)))
    service.memory.remember("Something to find.")
    yield service
    service.close()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(sorted(TOOLS)),
    arguments=st.dictionaries(st.sampled_from(NAMES) | texts, values, max_size=5) | texts,
)
def test_any_arguments_give_a_result_or_an_error_in_words(fuzzed: Service, name: str, arguments: Any) -> None:
    answer = fuzzed.call(name, arguments)
    assert answer.text
    assert "internal error" not in answer.text
    answer.text.encode()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_odd_values_under_the_right_names_never_break_a_tool(fuzzed: Service, data: st.DataObject) -> None:
    tool = TOOLS[data.draw(st.sampled_from(sorted(TOOLS)))]
    properties = input_schema(tool)["properties"]
    arguments = {name: data.draw(values) for name in properties}
    answer = fuzzed.call(tool.name, arguments)
    assert "internal error" not in answer.text


def test_nothing_and_null_mean_the_default() -> None:
    plain = decode(SearchArguments, {}, {"query": "tea", "limit": None, "tags": "", "type": ""})
    assert plain == SearchArguments(query="tea")
    assert decode(SearchArguments, {}, None) == SearchArguments()


def test_a_word_that_looks_like_nothing_stays_text() -> None:
    assert decode(RememberArguments, {}, {"text": "null"}).text == "null"


def test_lists_come_as_lists_as_json_as_words_and_bare() -> None:
    for given_ids in (["a", "b"], '["a", "b"]', "a, b", "a,b"):
        assert decode(IdsArguments, {}, {"ids": given_ids}).ids == ["a", "b"]
    assert decode(IdsArguments, {}, {"ids": "a"}).ids == ["a"]


def test_the_arguments_as_a_whole_may_be_json_text() -> None:
    assert decode(SearchArguments, {}, '{"query": "tea", "limit": "2"}').limit == 2


def test_too_much_text_and_too_deep_nesting_are_refused() -> None:
    with pytest.raises(InputError, match="characters"):
        decode(RememberArguments, {}, {"text": "x" * (MAX_ARGUMENT_CHARS + 1)})
    deep: Any = []
    for _ in range(50):
        deep = [deep]
    with pytest.raises(InputError, match="nested"):
        decode(SearchArguments, {}, {"tags": deep})
    with pytest.raises(InputError, match="JSON"):
        decode(SearchArguments, {}, {"tags": "[" * 100_000})
