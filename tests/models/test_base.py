"""What counts as a model, and how a name becomes one."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest
from hypothesis import given, strategies as st

from rlm_mem import Memory
from rlm_mem.config import Config
from rlm_mem.errors import InputError, InvalidConfig, ModelError, ModelUnavailable
from rlm_mem.models import LLM, Completion, Message, Usage, adapt, get_llm
from rlm_mem.models.base import as_messages, render_prompt
from rlm_mem.models.scripted import ScriptedLLM

counts = st.integers(0, 10**9)
usages = st.builds(Usage, counts, counts, counts, counts, counts, st.booleans())


@given(usages, usages, usages)
def test_usage_adds_up_in_any_order(a: Usage, b: Usage, c: Usage) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Usage() == a
    assert (a + b).total_tokens == a.total_tokens + b.total_tokens


def test_a_message_with_an_unknown_role_is_refused() -> None:
    with pytest.raises(InputError, match="role 'robot'"):
        Message("robot", "hello")  # type: ignore[arg-type]


def test_an_empty_list_of_messages_is_refused() -> None:
    with pytest.raises(InputError, match="no message"):
        as_messages([])


def test_something_else_than_messages_is_refused() -> None:
    with pytest.raises(InputError, match="dict"):
        as_messages([{"role": "user", "content": "hi"}])  # type: ignore[list-item]


def test_a_plain_question_is_rendered_as_it_is() -> None:
    assert render_prompt("Who won?") == "Who won?"
    assert (
        render_prompt([Message("system", "Be brief."), Message("user", "Who won?")])
        == "Be brief.\n\nWho won?"
    )


def test_several_turns_are_rendered_with_their_roles() -> None:
    turns = [Message("user", "a"), Message("assistant", "b"), Message("user", "c")]
    assert render_prompt(turns) == "[user]\na\n\n[assistant]\nb\n\n[user]\nc"


def test_a_callable_is_a_model() -> None:
    model = adapt(lambda prompt: prompt.upper())
    completion = model.complete([Message("user", "loud")])
    assert completion.text == "LOUD"
    assert completion.provider == "callable"
    assert completion.usage.estimated
    assert completion.usage.input_tokens > 0
    assert completion.cost is None


def test_an_object_whose_complete_takes_a_string_is_a_model() -> None:
    class Client:
        def complete(self, prompt: str) -> str:
            assert isinstance(prompt, str)
            return f"answer to {prompt}"

    model = adapt(Client())
    assert model.name == "Client"
    assert model.complete("x", max_tokens=5, timeout=1.0).text == "answer to x"


def test_options_that_a_callable_names_are_handed_on_and_others_are_not() -> None:
    seen: dict[str, Any] = {}

    def model(prompt: str, *, max_tokens: int = 1, **others: Any) -> str:
        seen.update(prompt=prompt, max_tokens=max_tokens, **others)
        return "ok"

    adapt(model).complete("x", max_tokens=7, temperature=0.5, timeout=None)
    assert seen == {"prompt": "x", "max_tokens": 7}


def test_a_mock_client_is_called_with_the_prompt_alone() -> None:
    client = MagicMock()
    client.complete.return_value = "mocked"
    assert adapt(client).complete("hello").text == "mocked"
    client.complete.assert_called_once_with("hello")


def test_an_object_that_returns_a_completion_keeps_its_figures() -> None:
    whole = Completion("hi", Usage(3, 4), model="m")
    assert adapt(lambda _: whole).complete("x") is whole


def test_a_model_that_implements_the_protocol_is_used_unchanged() -> None:
    model = ScriptedLLM(["a"])
    assert isinstance(model, LLM)
    assert adapt(model) is model


def test_on_text_is_called_once_for_models_that_cannot_stream() -> None:
    pieces: list[str] = []
    adapt(lambda _: "whole answer").complete("x", on_text=pieces.append)
    assert pieces == ["whole answer"]


@pytest.mark.parametrize("answer", [None, 3, {"text": "x"}])
def test_an_answer_that_is_no_text_is_an_error_that_names_the_model(answer: object) -> None:
    def oracle(_: str) -> object:
        return answer

    with pytest.raises(ModelError, match="oracle returned"):
        adapt(oracle).complete("x")


def test_an_asynchronous_callable_is_an_error_that_says_so() -> None:
    async def later(prompt: str) -> str:
        return prompt

    with pytest.raises(ModelError) as caught:
        adapt(later).complete("x")
    assert "synchronous" in str(caught.value.hint)


def test_exceptions_of_a_callable_pass_through() -> None:
    def broken(prompt: str) -> str:
        raise KeyError(prompt)

    with pytest.raises(KeyError):
        adapt(broken).complete("x")


def test_other_values_than_models_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="int is not a model"):
        Memory.open(tmp_path / "brain", llm=42)
    assert not (tmp_path / "brain").exists()
    with pytest.raises(InputError, match="int is not a model"):
        adapt(3)


def test_no_name_means_the_configured_model_and_then_offline() -> None:
    assert get_llm().name == "offline"
    assert get_llm("").name == "offline"
    configured = Config.load(None, environ={}, llm={"model": "scripted"})
    assert get_llm(None, configured).name == "scripted"
    assert adapt(None, configured).name == "scripted"


@pytest.mark.parametrize("name", ["gpt-5", "nobody:x", "offline:x", ":", "openai", "cli:", 'cli:"unclosed'])
def test_an_unknown_model_name_is_refused_with_the_valid_forms(name: str) -> None:
    with pytest.raises((InvalidConfig, ModelUnavailable)) as caught:
        get_llm(name)
    assert caught.value.message


def test_a_command_that_does_not_exist_is_reported_at_once() -> None:
    with pytest.raises(ModelUnavailable, match="no program 'no-such-command-here'"):
        get_llm("cli:no-such-command-here --fast")
