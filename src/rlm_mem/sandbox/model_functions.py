"""The functions of programs that a model answers: ``llm_query``, ``rlm_query`` and their batched forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rlm_mem.errors import ModelUnavailable
from rlm_mem.sandbox.engine import HostCallFailed
from rlm_mem.sandbox.seen import SeenChunks
from rlm_mem.sandbox.values import chunk_ids_in, plain

MAX_SUB_QUESTIONS = 20
"""Maximum questions of one call of ``rlm_query_batched``."""


class ModelFunctions:
    """Hands the calls of a program to the functions of the session's caller.

    Args:
        ask, ask_all, sub_question, sub_questions: see :class:`~rlm_mem.sandbox.session.SandboxSession`.
        seconds_left: returns the seconds until the program ends.
        seen: takes the chunks of the answers to sub-questions.
    """

    def __init__(
        self,
        ask: Callable[[Any, Any, float], str] | None,
        ask_all: Callable[[Any, float], list[str]] | None,
        sub_question: Callable[[str], Any] | None,
        sub_questions: Callable[[list[str]], list[Any]] | None,
        seconds_left: Callable[[], float],
        seen: SeenChunks,
    ) -> None:
        self._ask = ask or _no_model
        self._ask_all = ask_all or _no_model
        self._sub_question = sub_question or _no_model
        self._sub_questions = sub_questions or (lambda questions: list(map(self._sub_question, questions)))
        self._seconds_left = seconds_left
        self._seen = seen

    def table(self) -> dict[str, Callable[..., Any]]:
        """The functions, by name."""
        return {
            "llm_query": lambda prompt, context=None: self._ask(prompt, context, self._seconds_left()),
            "llm_query_batched": lambda prompts: self._ask_all(prompts, self._seconds_left()),
            "rlm_query": self._ask_sub_question,
            "rlm_query_batched": self._ask_sub_questions,
        }

    def _ask_sub_question(self, question: Any) -> Any:
        if not isinstance(question, str) or not question.strip():
            raise HostCallFailed("TypeError", "rlm_query takes a question as text")
        return self._outcome(self._sub_question(question))

    def _ask_sub_questions(self, questions: Any) -> Any:
        if (
            not isinstance(questions, list | tuple)
            or len(questions) > MAX_SUB_QUESTIONS
            or not all(isinstance(one, str) and one.strip() for one in questions)
        ):
            raise HostCallFailed(
                "TypeError", f"rlm_query_batched takes a list of up to {MAX_SUB_QUESTIONS} questions as text"
            )
        # A repeated question is answered once.
        asked = list(dict.fromkeys(questions))
        given = self._sub_questions(asked) if asked else []
        answers = dict(zip(asked, map(self._outcome, given), strict=True))
        return [answers[one] for one in questions]

    def _outcome(self, given: Any) -> Any:
        outcome = plain(given)
        if isinstance(outcome, dict):
            self._seen.add(chunk_ids_in(outcome.get("chunk_ids")))
        return outcome


def _no_model(*_: Any) -> Any:
    raise ModelUnavailable("this session has no model", hint="open a REPLSession, or pass ask=")
