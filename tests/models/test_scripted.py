"""The scripted model: a queue of replies and a record of prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from rlm_mem.errors import InvalidConfig, ModelError, ModelOverloaded
from rlm_mem.models import Completion, Message, Usage, get_llm
from rlm_mem.models.scripted import ScriptedLLM


def test_replies_come_in_order_and_prompts_are_kept() -> None:
    model = ScriptedLLM(["one", Completion("two", Usage(1, 2)), lambda messages: messages[-1].content * 2])
    assert [model.complete(prompt).text for prompt in ("a", "b", "c")] == ["one", "two", "cc"]
    assert [[message.content for message in asked] for asked in model.prompts] == [["a"], ["b"], ["c"]]
    assert model.calls == 3
    assert model.remaining == 0


def test_an_exception_in_the_queue_is_raised_and_the_next_call_works() -> None:
    model = ScriptedLLM([ModelOverloaded("busy"), "fine"])
    with pytest.raises(ModelOverloaded, match="busy"):
        model.complete("a")
    assert model.complete("b").text == "fine"


def test_an_empty_queue_is_an_error_unless_there_is_a_default() -> None:
    with pytest.raises(ModelError, match="no reply left for call 1"):
        ScriptedLLM().complete("a")
    always = ScriptedLLM(default="again")
    assert [always.complete("x").text for _ in range(3)] == ["again"] * 3


def test_options_are_recorded_and_text_is_handed_out() -> None:
    pieces: list[str] = []
    model = ScriptedLLM(["hi"])
    model.complete([Message("user", "x")], max_tokens=3, on_text=pieces.append)
    assert model.options[0]["max_tokens"] == 3
    assert pieces == ["hi"]


def test_replies_can_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "replies.json"
    path.write_text('["first", "second"]', encoding="utf-8")
    assert get_llm(f"scripted:{path}").complete("x").text == "first"


@pytest.mark.parametrize("content", [None, "{", '{"a": 1}', "[1, 2]"])
def test_a_file_that_holds_no_replies_is_refused(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "replies.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(InvalidConfig, match=r"replies\.json"):
        ScriptedLLM.from_file(path)
