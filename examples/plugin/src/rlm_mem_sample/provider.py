"""A provider whose models are rules: ``sample:first`` answers with the best hit of one search."""

from __future__ import annotations

import time
from typing import Unpack

from rlm_mem.config import LLMConfig
from rlm_mem.errors import InvalidConfig
from rlm_mem.models import LLM, Completion, Options, Prompt, as_messages, estimate_usage, render_prompt

__all__ = ["open_model"]

_PROGRAM = """\
```repl
hits = search({question!r}, limit=1)
if hits:
    FINAL(hits[0]["snippet"], chunk_ids=[hits[0]["chunk_id"]])
else:
    FINAL(None)
```"""


def open_model(model: str, settings: LLMConfig) -> LLM:  # noqa: ARG001 - a rule has nothing to set
    """Return the model of ``sample:MODEL``, without contacting anything; called when a recall names it.

    Args:
        model: the name after the colon.
        settings: the user's ``[llm]`` settings: time-out, retries, length of answers.

    Raises:
        InvalidConfig: there is no such model.
    """
    if model != "first":
        raise InvalidConfig(f"sample:{model:.40} is not a model", hint="use sample:first")
    return FirstHit()


class FirstHit:
    """Writes one program for any question."""

    name = "sample:first"

    def complete(self, messages: Prompt, **options: Unpack[Options]) -> Completion:
        """Answer with a program that searches for the question and concludes with the best hit."""
        began = time.monotonic()
        asked = as_messages(messages)
        text = next((one.content for one in asked if "<question>\n" in one.content), asked[-1].content)
        question = text.partition("<question>\n")[2].partition("\n</question>")[0] or text
        answer = _PROGRAM.format(question=question[:2000])
        on_text = options.get("on_text")
        if on_text is not None:
            on_text(answer)
        return Completion(
            answer,
            usage=estimate_usage(render_prompt(asked), answer),
            model=self.name,
            seconds=time.monotonic() - began,
            provider="sample",
            finish_reason="stop",
        )
