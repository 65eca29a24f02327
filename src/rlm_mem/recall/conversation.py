"""The messages of a run, kept within the model's window: older turns are condensed, newer ones stay whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlm_mem.models.base import Message
from rlm_mem.recall.prompts import clip, fenced
from rlm_mem.record import FrozenRecord
from rlm_mem.text.tokens import count_tokens

if TYPE_CHECKING:
    from rlm_mem.recall.opening import Opening

_MARGIN = 0.92  # models count differently from o200k, and their windows are hard limits
_BYTES_PER_TOKEN = 3.2  # of ordinary English; near the limit tokens are counted
_MIN_OUTPUT = 400  # characters of the newest output that are always kept


class Turn(FrozenRecord, frozen=True):
    """One reply of the model and the message after it.

    Args:
        reply: the model's text.
        answer: the message that followed, output included.
        summary: one line that replaces both when the window is small.
    """

    reply: str
    answer: str
    summary: str


class Conversation:
    """Builds the messages of the next call.

    Args:
        system: instructions; always sent whole.
        opening: the question with metadata; its hits are cut before the newest output.
        context_tokens: window of the model, in tokens.
        answer_tokens: tokens reserved for the reply, at most a quarter of the window.

    Attributes:
        answer_tokens: most tokens of a reply that fits the window beside a full prompt.
    """

    def __init__(
        self, system: str, opening: Opening, context_tokens: int = 8192, answer_tokens: int = 1024
    ) -> None:
        self._system = system
        self._opening = opening
        self._turns: list[Turn] = []
        self.answer_tokens = max(32, min(answer_tokens, context_tokens // 4))
        self._room = int((context_tokens - self.answer_tokens) * _MARGIN)
        self._counts: dict[str, int] = {}
        self._condensed = 0

    def add(self, turn: Turn) -> None:
        """Append a finished turn."""
        self._turns.append(turn)

    def messages(self) -> list[Message]:
        """Return the prompt of the next call, condensed as far as the window requires.

        In this order until it fits: the oldest turns become one line each, hits of the opening are dropped, the
        newest output and reply lose their middle, the question loses its middle.
        """
        newest = len(self._turns) - 1
        # What did not fit before does not fit with one more turn.
        for condensed in range(self._condensed, max(1, newest + 1)):
            self._condensed = condensed
            messages = self._build(condensed)
            if self._fits(messages):
                return messages
        condensed = max(0, newest)
        for hits, limit, question in (
            (4, None, 8000),
            (2, 2000, 4000),
            (2, 1000, 2000),
            (1, _MIN_OUTPUT, 1000),
            (0, _MIN_OUTPUT, 400),
        ):
            messages = self._build(condensed, hits, limit, question)
            if self._fits(messages):
                break
        return messages

    def estimate(self, messages: list[Message]) -> int:
        """Estimate the tokens of a prompt: from its bytes, or counted with o200k if the window is nearly full."""
        size = sum(len(message.content.encode("utf-8", "replace")) for message in messages)
        rough = int(size / _BYTES_PER_TOKEN) + 4 * len(messages)
        # Loading the token tables takes a third of a second, which a prompt that clearly fits does not need.
        if rough < self._room * 0.6:
            return rough
        return sum(self._count(message.content) + 4 for message in messages)

    def _fits(self, messages: list[Message]) -> bool:
        return self.estimate(messages) <= self._room

    def _build(
        self, condensed: int, hits: int | None = None, limit: int | None = None, question: int = 8000
    ) -> list[Message]:
        first = self._opening.render(hits, question)
        if condensed:
            # Of many earlier turns only the newest lines are kept, and the number of the others.
            lines = [f"{number}. {turn.summary}" for number, turn in enumerate(self._turns[:condensed], 1)]
            kept = lines if limit is None else lines[-5:]
            if len(kept) < len(lines):
                kept.insert(0, f"({len(lines) - len(kept)} turns before these are left out)")
            note = "Earlier turns, condensed; the variables they set are still there:"
            first = f"{first}\n{note}\n{fenced('earlier', chr(10).join(kept))}"
        messages = [Message("system", self._system), Message("user", first)]
        for turn in self._turns[condensed:]:
            reply, answer = turn.reply, turn.answer
            if limit is not None:
                reply, _ = clip(reply, limit, "the reply")
                answer, _ = clip(answer, limit)
            messages += [Message("assistant", reply or "(empty reply)"), Message("user", answer)]
        return messages

    def _count(self, text: str) -> int:
        known = self._counts.get(text)
        if known is None:
            known = self._counts[text] = count_tokens(text)
        return known
