"""The statements of texts, cached, and the terms by which the index finds earlier chunks about the same things."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from rlm_mem.text.analysis import get_analyser
from rlm_mem.text.clauses import FAMILIES
from rlm_mem.text.differences import NOUN_OF
from rlm_mem.text.statement import ME, Stated
from rlm_mem.text.statements import statements_in

if TYPE_CHECKING:
    from rlm_mem.text.analysis import Analyser

_LOOKUPS = 3
"""Maximum number of sentences of one chunk that are looked up."""
_TEXTS = 2_000_000
"""Maximum characters of the texts whose statements are cached."""
_WORDS = 24
"""Maximum number of words of a sentence by which the chunks with its topic are ranked."""
_ENOUGH = 8
"""Maximum number of words looked up for a statement that names no topic; an earlier chunk needs one of them."""


class StatementCache:
    """The statements of texts: the same earlier chunks are compared again and again."""

    def __init__(self, analyser: Analyser) -> None:
        self._analyser = analyser
        self._stated: dict[str, Sequence[Stated]] = {}
        self._characters = 0

    def __contains__(self, text: str) -> bool:
        return text in self._stated

    def __iter__(self) -> Iterator[str]:
        return iter(self._stated)

    def of(self, text: str) -> Sequence[Stated]:
        """The statements of a text."""
        found = self._stated.get(text)
        if found is None:
            found = statements_in(text, self._analyser)
            self.keep(text, found)
        return found

    def keep(self, text: str, stated: Sequence[Stated]) -> None:
        """Cache the statements of a text, such as one that was analysed ahead."""
        if text not in self._stated:
            self._characters += len(text)
            if self._characters > _TEXTS:
                self._stated, self._characters = {}, len(text)
        self._stated[text] = stated


def comparable(statements: Sequence[Stated]) -> list[Stated]:
    """Statements that may end or contradict an earlier one; those that state a change first."""
    sure = [one for one in statements if one.sure and (one.former or one.over or one.standing)]
    return sorted(sure, key=lambda one: not (one.former or one.news))


def by_sentence(statements: Sequence[Stated]) -> list[list[Stated]]:
    """The statements of the first sentences, grouped by sentence."""
    found: dict[str, list[Stated]] = {}
    for one in statements:
        found.setdefault(one.text, []).append(one)
    return list(found.values())[:_LOOKUPS]


@cache
def stems(verbs: tuple[str, ...]) -> frozenset[str]:
    """The stems of some verbs."""
    return frozenset(get_analyser("english").stem(verb) for verb in verbs)


@lru_cache(maxsize=4096)
def terms_of(stem: str) -> tuple[str, ...]:
    """The terms of the index for a stem of a statement: "follow-up" and "14:00" are two terms each."""
    return (stem,) if stem.isalnum() else tuple(get_analyser("english").terms(stem)) or (stem,)


def stems_of(statements: Sequence[Stated]) -> set[str]:
    """The stems and terms of what statements are about and say, and the keys of their attributes."""
    stems = {stem for one in statements for stem in (*one.topic, *one.value, *one.context)}
    stems |= {term for stem in stems for term in terms_of(stem)}
    return stems.union(map(sign_of, statements))


def sign_of(statement: Stated) -> str:
    """A key for the attribute of a statement, different from any stem."""
    return f"={statement.attribute}"


def groups(statement: Stated, told: Sequence[Stated], analyser: Analyser) -> list[Collection[str]]:
    """Groups of terms; a chunk that differs from a statement has all of one group: the topic or the former value.

    Args:
        told: the statements of the sentence; one of its words is enough for a statement that names no topic.
    """
    groups: list[Collection[str]] = [terms_of(stem) for stem in statement.former | statement.gone]
    if not (statement.value or statement.over):
        return groups
    topic = statement.topic - {ME}
    if topic:
        groups.append([term for stem in topic for term in terms_of(stem)])
        thing = topic - {statement.head}
        if statement.head in NOUN_OF and thing:  # "the deadline of X", "X is due"
            groups.append([term for stem in thing for term in terms_of(stem)])
        return groups
    verbs: Collection[str] = ()
    if statement.topic:
        verbs = stems(FAMILIES.get(statement.attribute, ()))
        if statement.kind == "number":  # "five chickens"
            groups += [terms_of(stem) for stem in statement.value]
    more = () if verbs and statement.attribute != "change" else lookup_words(told, analyser, _ENOUGH)
    return groups + [(word,) for word in list(dict.fromkeys((*verbs, *more)))[:_ENOUGH]]


def lookup_words(statements: Sequence[Stated], analyser: Analyser, most: int = _WORDS) -> list[str]:
    """Index terms of an earlier statement about the same thing: those of the sentence except its new values.

    Other numbers are left out too: they belong to another day or order.
    """
    words = dict.fromkeys(term for term in analyser.terms(statements[0].text) if not term[0].isdigit())
    topics = {term for one in statements for stem in one.topic for term in terms_of(stem)}
    for one in statements:
        kept = topics | one.value if one.kind == "number" and one.topic == {ME} else topics  # "five chickens"
        for term in analyser.terms(one.shown):
            if term not in kept:
                words.pop(term, None)
    for one in statements if len(words) < most else ():
        if one.shown_former:
            words.update(dict.fromkeys(analyser.terms(one.shown_former)))
        words.update(dict.fromkeys(stems(FAMILIES.get(one.attribute, ()))))
    return list(words)[:most]
