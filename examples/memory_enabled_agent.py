"""An agent with a personality and a long-term memory: recall, answer in character, remember the exchange.

`generate` stands for your model: it gets the composed system prompt and what was said.
"""

from collections.abc import Callable

from brain.scripts import ChunkStore, RememberOperation, load_personality
from rlm_mem.persona import Persona
from rlm_mem.search import search

Generate = Callable[[str, str], str]


class MemoryEnabledAgent:
    """Answers in a personality, from what it remembers; slider commands in the chat are applied."""

    def __init__(self, generate: Generate, personality: str = "BASE", brain: str = "brain") -> None:
        self.memory = ChunkStore(f"{brain}/memory")
        self.remember = RememberOperation(self.memory)
        self.personality = load_personality(personality, brain)
        self.persona = Persona(brain, mode=personality)
        self.generate = generate

    def process(self, user_input: str, conversation_id: str = "chat") -> str:
        """One turn of the conversation."""
        if self.persona.say(user_input):
            return f"{self.persona.mode}: " + self._manner()
        context = self._get_relevant_memories(user_input)
        response = self._generate(user_input, context)
        self._store_exchange(user_input, response, conversation_id)
        return response

    def close(self) -> None:
        """Close the store."""
        self.memory.close()

    def _manner(self) -> str:
        changed = {
            name: value
            for name, value in self.persona.sliders.items()
            if value != self.persona.defaults[name]
        }
        return ", ".join(f"{name} {value}%" for name, value in changed.items()) or "as by default"

    def _get_relevant_memories(self, user_input: str) -> list[str]:
        return [hit.snippet for hit in search(self.memory, user_input, limit=3)]

    def _generate(self, user_input: str, context: list[str]) -> str:
        return self.generate(self.persona.prompt({"memories": context}), user_input)

    def _store_exchange(self, user_input: str, response: str, conversation_id: str) -> None:
        self.remember.remember(f"User: {user_input}\nAgent: {response}", conversation_id)


def generate(system_prompt: str, said: str) -> str:
    """A model would go here. This stand-in reads back what the user stated first, as wordy as the prompt asks."""
    lines = system_prompt.partition("<memory>\n")[2].splitlines()
    known = next((line for line in lines if line.startswith("User:") and not line.endswith("?")), None)
    if known is None:
        return "I have not heard of that yet."
    brief = "- Verbosity 15%" in system_prompt
    return known if brief else f"You asked {said!r}. What I remember is this: {known}"


def main() -> None:
    """A short conversation."""
    agent = MemoryEnabledAgent(generate, personality="RESEARCH_ANALYST")
    for line in (
        "My boat is called Heron.",
        "What is my boat called?",
        "Concise mode",
        "What is my boat called?",
        "Set humor to 20%",
    ):
        print("User: ", line)
        print("Agent:", agent.process(line))
    agent.close()


if __name__ == "__main__":
    main()
