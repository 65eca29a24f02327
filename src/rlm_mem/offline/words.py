"""The function words of English, by the part they play in a phrase."""

from __future__ import annotations

__all__ = [
    "AUXILIARIES",
    "CONJUNCTIONS",
    "DETERMINERS",
    "FUNCTION_WORDS",
    "PREPOSITIONS",
    "PRONOUNS",
    "word_set",
]


def word_set(text: str) -> frozenset[str]:
    """The words of a text as a set: lists of words stay readable that way."""
    return frozenset(text.split())


DETERMINERS = word_set("a an the this that these those my your his her its our their some any every each no")
PREPOSITIONS = word_set(
    """
    of in on at to for from with by about into over after before under between through during without within
    against among around near since until as like than off onto across behind
    """
)
CONJUNCTIONS = word_set(
    "and or but so because if when while which who whom whose where that though although cause plus nor"
)
AUXILIARIES = word_set(
    """
    is are was were be been being am do does did has have had will would can could should may might must 's
    're 've 'll 'd 'm isn't aren't wasn't weren't don't doesn't didn't can't couldn't won't wouldn't haven't
    hasn't it's i'm i've i'd i'll we're we've that's there's they're he's she's you're let's gonna
    """
)
PRONOUNS = word_set("i you he she it we they me him us them myself yourself what there here")
FUNCTION_WORDS = DETERMINERS | PREPOSITIONS | CONJUNCTIONS | AUXILIARIES | PRONOUNS
