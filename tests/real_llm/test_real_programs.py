"""Replies of a real small model that are programs without a fence are run, and the share of replies that ran.

A grammar holds the model to the form of its reply (never to its words), so that the form is tested, not the model.
Free replies are counted: the figure is printed and kept with the report of the test; asserted is that none was lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from rlm_mem.config import Config
from rlm_mem.models.base import Completion, Limits, Prompt
from rlm_mem.recall import RecallOperation
from rlm_mem.recall.programs import programs_in
from rlm_mem.store.core.chunk_store import ChunkStore

if TYPE_CHECKING:
    from rlm_mem.models.providers import ProviderLLM

CONFIG = Config.load(
    None, environ={}, llm={"timeout_seconds": 240.0, "max_tokens": 120, "context_tokens": 4096}
)

FORMS = {
    "a bare call": 'root ::= "print(search(\\"" word " " word "\\"))"\nword ::= [a-z]{2,8}',
    "a call after prose": 'root ::= "I look for it.\\n\\nsearch(\\"" word "\\")\\n"\nword ::= [a-z]{2,8}',
    "a block without a label": 'root ::= "```\\nprint(search(\\"" word "\\"))\\n```"\nword ::= [a-z]{2,8}',
    "final alone": 'root ::= "I know it.\\n\\nFINAL(\\"" word "\\")\\n"\nword ::= [a-z]{2,8}',
}

QUESTIONS = ("Which machine runs the nightly build?", "Who is Waffle?", "What sends the password mails?")


class Held:
    """The model, held to a grammar."""

    name = "held"

    def __init__(self, model: ProviderLLM, grammar: str) -> None:
        self._model = model
        self._grammar = grammar

    def complete(self, messages: Prompt, **options: Any) -> Completion:
        return self._model.complete(messages, **options, extra_body={"grammar": self._grammar})


@pytest.fixture
def memories(store: ChunkStore) -> ChunkStore:
    for text in (
        "Ada: We moved the nightly build to the machine called Heron.",
        "Ben: The password reset mails are sent by the service Pigeon, at most three an hour.",
        "Ben: My dog Waffle ate the printed release notes.",
    ):
        store.create_chunk(text, "note", conversation_id="conv-team")
    return store


@pytest.mark.parametrize("form", FORMS)
def test_every_reply_that_is_a_program_without_a_fence_is_run(
    connect: Callable[[str], ProviderLLM], memories: ChunkStore, form: str
) -> None:
    llm = Held(connect("openai-compatible"), FORMS[form])
    limits = Limits(iterations=2, seconds=240.0)
    result = RecallOperation(memories, llm, limits=limits, config=CONFIG).recall(QUESTIONS[0])
    assert result.trajectory.steps
    for step in result.trajectory.steps:
        assert step.programs, step.reply
        assert step.error is None, step.reply
    assert result.concluded == (form == "final alone")


def test_no_free_reply_that_holds_a_program_is_lost(
    connect: Callable[[str], ProviderLLM],
    memories: ChunkStore,
    record_property: Callable[[str, object], None],
) -> None:
    replies = held = ran = 0
    for question in QUESTIONS:
        limits = Limits(iterations=3, seconds=240.0)
        operation = RecallOperation(memories, connect("openai-compatible"), limits=limits, config=CONFIG)
        for step in operation.recall(question).trajectory.steps:
            replies += 1
            held += bool(programs_in(step.reply))
            ran += bool(step.programs) and step.error is None
            # Not run are only quotations and repetitions.
            left = step.error_kind in ("QuotedProgram", "RepeatedReply")
            assert bool(programs_in(step.reply)) == bool(step.programs) or left, step.reply
    record_property("replies of a small model: all, with a program, that ran", (replies, held, ran))
    print(f"{replies} replies, {held} with a program, {ran} ran")
    assert replies
