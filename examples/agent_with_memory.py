"""An agent that searches its memory before it answers, and remembers the exchange.

The `answer` function stands for your model: it gets what was said and what is known about it.
"""

from collections.abc import Callable
from types import TracebackType

from rlm_mem import Memory


class AgentWithMemory:
    """Wraps any answering function with long-term memory, one namespace per user."""

    def __init__(self, brain: str, user: str, answer: Callable[[str, list[str]], str]) -> None:
        self.memory = Memory.open(brain, namespace=f"assistant/{user}")
        self.answer = answer

    def __enter__(self) -> "AgentWithMemory":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.memory.close()

    def process(self, said: str, conversation: str) -> str:
        """Answer, and remember the exchange."""
        known = [hit.snippet for hit in self.memory.search(said, limit=3)]
        reply = self.answer(said, known)
        self.memory.remember(f"User: {said}\nAgent: {reply}", conversation_id=conversation)
        return reply


def answer(_said: str, known: list[str]) -> str:
    """A model would go here."""
    return f"I remember: {known[0]}" if known else "I have not heard of that yet."


with AgentWithMemory("brain", "dana", answer) as agent:
    for line in ("My boat is called Heron.", "She lies in Ellerby harbour.", "What is my boat called?"):
        print("User: ", line)
        print("Agent:", agent.process(line, conversation="boats"))

with AgentWithMemory("brain", "somebody-else", answer) as agent:
    print("Somebody else:", agent.process("What is my boat called?", conversation="boats"))
