"""Standing instructions: sentences that ask for something from now on."""

from __future__ import annotations

import pytest

from rlm_mem.text.instructions import standing_instructions


@pytest.mark.parametrize(
    "text",
    [
        "Remember to cite sources.",
        "Please remember to cite sources.",
        "Also, remember that I never eat meat.",
        "Remember, always use metres.",
        "From now on, answer in German.",
        "If I ask for code, always add types.",
    ],
)
def test_a_lasting_request_is_an_instruction(text: str) -> None:
    assert [sentence for sentence, _ in standing_instructions(text)] == [text]


@pytest.mark.parametrize(
    "text", ["I always drink tea.", "Don't worry.", "Never mind.", "Do you remember to eat?"]
)
def test_statements_questions_and_requests_for_the_moment_are_none(text: str) -> None:
    assert standing_instructions(text) == []
