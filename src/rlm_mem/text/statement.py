"""The record of a statement: a topic, an attribute and a value (docs/spec/links.md, Proposals)."""

from __future__ import annotations

from msgspec import Struct

ME = "me"
"""The topic of a speaker without a name: "I", "my", "we", "our"."""
UNKNOWN = "?"
"""The topic of "she" and "they" if nobody was named before."""


class Stated(Struct, frozen=True, gc=False):
    """One statement of a sentence.

    Attributes:
        topic: stems of its subject; the speaker is :data:`ME`.
        head: the stem of the main noun of the topic: "budget" of "the budget of the roof".
        attribute: the family of the verb, with the participle if there is one.
        preposition: preposition between verb and value; empty if there is none.
        value: stems of the stated value; empty if the sentence only ends a former value.
        context: stems of further words of the clause, beside topic and value.
        former: stems of a value that has ended.
        denied: whether the value is denied.
        always: whether the sentence has the word "always".
        news: words that mark a change; empty if there are none.
        sure: whether it is not a plan, a question or hearsay.
        text: the sentence. ``start``, ``end``: its position in the text.
        shown: the value as written. ``shown_former``: the former one.
        kind: ``time``, ``day``, ``date``, ``number``, ``name`` or ``word``.
        number: the number of a numbered line.
        gone: stems of a thing that another clause of the sentence ends.
        instead: whether the value replaces the thing in ``gone``.
        over: whether the topic itself has ended: "the drill was cancelled".
        added: whether the value is added to others: "also", "too".
        named: stems of all words of the sentence, and of the one before it.
        labelled: whether it is a value after a label that may be a speaker: "Linter: flake8", "Ben: Yes".
        unclear: whether it is about the speaker only if the heading above it names nobody.
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
    unclear: bool = False

    @property
    def standing(self) -> bool:
        """Whether it states a value that is in force until another statement ends it."""
        return self.sure and bool(self.value) and UNKNOWN not in self.topic
