"""Whatever a client sends as arguments, the answer is a result or an error in words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from rlm_mem.errors import InputError
from rlm_mem.mcp.service import Service, input_schema, tools_for
from rlm_mem.operations.asking import SearchArguments, SearchRequest
from rlm_mem.operations.batches import BatchRequest
from rlm_mem.operations.chunks import IdsArguments
from rlm_mem.operations.context import OpenMemory, Settings
from rlm_mem.operations.decoding import MAX_ARGUMENT_CHARS, from_agent, from_json, from_parameters
from rlm_mem.operations.problems import Refused
from rlm_mem.operations.records import TrajectoryQuery
from rlm_mem.operations.remembering import RememberArguments
from rlm_mem.operations.sessions import OpenArguments
from rlm_mem.operations.types import Request

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


def test_half_a_character_for_a_number_is_refused_by_the_name_of_its_field() -> None:
    with pytest.raises(Refused, match="limit: expected"):
        from_agent(SearchArguments, {"query": "tea \ud800", "limit": "\ud800"})


def test_nothing_and_null_mean_the_default() -> None:
    plain = from_agent(SearchArguments, {"query": "tea", "limit": None, "tags": "", "type": ""})
    assert plain == SearchArguments(query="tea")
    assert from_agent(SearchArguments, None) == SearchArguments()


def test_a_word_that_looks_like_nothing_stays_text() -> None:
    assert from_agent(RememberArguments, {"text": "null"}).text == "null"


def test_lists_come_as_lists_as_json_as_words_and_bare() -> None:
    two = ["chunk-a", "chunk-b"]
    for given_ids in (two, '["chunk-a", "chunk-b"]', "chunk-a, chunk-b", "chunk-a,chunk-b"):
        assert from_agent(IdsArguments, {"ids": given_ids}).ids == two
    assert from_agent(IdsArguments, {"ids": "chunk-a"}).ids == ["chunk-a"]


def test_an_object_may_be_json_text() -> None:
    given = {"question": "Which port?", "schema": ' {"type": "integer"}'}
    assert from_agent(OpenArguments, given).schema == {"type": "integer"}


def test_times_come_in_any_iso_form_and_what_is_none_is_refused_in_words() -> None:
    for given_time, meant in (
        ("2026-02-10", "2026-02-10"),
        ("2026-02-10 21:37", "2026-02-10T21:37:00.000000Z"),
        ("2026-02-10T21:37:00+02:00", "2026-02-10T21:37:00+02:00"),
    ):
        assert from_agent(SearchArguments, {"since": given_time}).since == meant
    with pytest.raises(Refused, match=r"since: expected a day \(YYYY-MM-DD\), or a time"):
        from_agent(SearchArguments, {"since": "yesterday"})


def test_one_set_of_bounds_holds_for_json_parameters_and_agents() -> None:
    """A value is taken in all three ways or in none, and refused in the same words."""
    wrong = {"limit": 501, "operation": "dream", "since": "2026-02-30"}
    for name, value in wrong.items():
        said = set()
        for decoded in (
            lambda: from_json(TrajectoryQuery, json.dumps({name: value}).encode()),  # noqa: B023
            lambda: from_parameters(TrajectoryQuery, [(name, str(value))]),  # noqa: B023
            lambda: from_agent(TrajectoryQuery, {name: value}),  # noqa: B023
        ):
            with pytest.raises(Refused) as refused:
                decoded()
            said.add((refused.value.problem.detail, refused.value.problem.errors[0].pointer))
        assert len(said) == 1
        assert name in said.pop()[0]


def test_the_arguments_as_a_whole_may_be_json_text() -> None:
    assert from_agent(SearchArguments, '{"query": "tea", "limit": "2"}').limit == 2


def test_too_much_text_and_too_deep_nesting_are_refused() -> None:
    with pytest.raises(InputError, match="characters"):
        from_agent(RememberArguments, {"text": "x" * (MAX_ARGUMENT_CHARS + 1)})
    deep: Any = []
    for _ in range(50):
        deep = [deep]
    with pytest.raises(InputError, match="nested"):
        from_agent(SearchArguments, {"tags": deep})
    with pytest.raises(InputError, match="JSON"):
        from_agent(SearchArguments, {"tags": "[" * 100_000})


@pytest.mark.parametrize(
    ("kind", "body", "said", "remedy"),
    [
        (
            SearchRequest,
            {"query": "a", "by": "page"},
            "by: invalid enum value 'page'",
            "use one of chunk, segment",
        ),
        (
            SearchRequest,
            {"query": "a", "filters": {"trust": "x"}},
            "filters.trust: invalid",
            "use one of untrusted",
        ),
        (
            SearchRequest,
            {"query": "a", "filters": {"tag": "x"}},
            "filters.tag: there is no",
            "there are: tags_all",
        ),
        (SearchRequest, {"q`": "a"}, "q`: there is no such field", "there are: max_tokens, query, limit"),
        (SearchRequest, {"query": 5}, "query: expected text, got a whole number", ""),
        (SearchRequest, {"query": "a", "limit": 0}, "limit: expected a whole number >= 1", ""),
        (SearchRequest, {}, "query: missing", "there are: max_tokens, query, limit"),
        (
            BatchRequest,
            {"steps": [{"do": "forget"}]},
            "steps.0.do: invalid value 'forget'",
            "use one of remember, create",
        ),
        (BatchRequest, {"steps": [{"do": "update"}]}, "steps.0.chunk_id: missing", ""),
    ],
)
def test_a_refused_body_is_reported_with_the_place_and_the_allowed_values(
    kind: type[Request], body: dict[str, Any], said: str, remedy: str
) -> None:
    with pytest.raises(Refused) as refused:
        from_json(kind, json.dumps(body).encode())
    told = refused.value.problem
    assert told.detail.startswith(said)
    assert told.hint.startswith(remedy)
    assert bool(told.hint) is bool(remedy)
    assert told.errors[0].pointer == "/" + said.partition(":")[0].replace(".", "/")
