"""One statement of a sentence: a topic, an attribute and a value (docs/spec/links.md, Proposals)."""

from __future__ import annotations

from msgspec import Struct

ME = "me"
"""The topic of a speaker without a name: "I", "my", "we", "our"."""
UNKNOWN = "?"
"""The topic of "she" and "they" where nobody was named before."""


class Stated(Struct, frozen=True, gc=False):
    """One statement of a sentence.

    Attributes:
        topic: stems of what the statement is about; the speaker is :data:`ME`.
        head: the stem of the main noun of the topic: "budget" of "the budget of the roof".
        attribute: the family of the verb, with the participle if there is one.
        preposition: between verb and value; empty for none.
        value: stems of the stated value; empty if a sentence only says what does not hold any more.
        context: stems of further words of the clause, beside topic and value.
        former: stems of a value that does not hold any more.
        denied: it says that the value does not hold.
        news: words by which the sentence says that something has changed; empty if there are none.
        sure: not a plan, a question or hearsay.
        text: the sentence. ``start``, ``end``: its position in the text.
        shown: the value as written. ``shown_former``: the former one.
        kind: ``time``, ``day``, ``date``, ``number``, ``name`` or ``word``.
        number: the number of a numbered line.
        gone: stems of what has ended according to another clause of the sentence.
        instead: the value holds instead of what is in ``gone``.
        over: it says that the topic itself has ended: "the drill was cancelled".
        added: it says that the value holds beside others: "also", "too".
        named: stems of all words of the sentence, and of the one before it.
        labelled: it is a value below a label that may be a speaker: "Linter: flake8", "Ben: Yes".
        labels: numbers and names of the topic that follow a noun, each with the stem of that noun, in order: "item 3".
    """

    topic: frozenset[str]
    head: str
    attribute: str
    preposition: str
    value: frozenset[str]
    context: frozenset[str] = frozenset()
    former: frozenset[str] = frozenset()
    denied: bool = False
    always: bool = False
    news: str = ""
    sure: bool = True
    text: str = ""
    start: int = 0
    end: int = 0
    shown: str = ""
    shown_former: str = ""
    kind: str = "word"
    number: int | None = None
    labels: tuple[tuple[str, str], ...] = ()
    gone: frozenset[str] = frozenset()
    instead: bool = False
    over: bool = False
    added: bool = False
    named: frozenset[str] = frozenset()
    labelled: bool = False

    @property
    def standing(self) -> bool:
        """Whether it states a value that holds until another statement ends it."""
        return self.sure and bool(self.value) and UNKNOWN not in self.topic
